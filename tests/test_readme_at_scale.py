"""The README's commands for large models run as written, on pictures of 16 pixels: only numbers that need large
machines are made small, and eight GPUs become two processes on a CPU."""

import os
import re
import shlex
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from accelerate.state import AcceleratorState, GradientState
from PIL import Image
from torch_fidelity import register_feature_extractor
from torch_fidelity.registry import FEATURE_EXTRACTORS_REGISTRY

from pgm_image import registry
from pgm_image.__main__ import main as image_main
from pgm_image.__main__ import parser_for
from tests.pgm_image.fidelity_run import EXTRACTOR, MeanColour
from tests.pgm_image.public_files import TINY_PGM, weights, write_tokenizer, write_transformer
from tokenizer.__main__ import main as tokenizer_main
from tokenizer.shards import read_manifest

pytestmark = pytest.mark.timeout(900)  # seconds, but for a busy machine
ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LAUNCHER = ["accelerate", "launch", "--multi_gpu", "--num_processes", "8"]
TWO = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
SMALL_MODEL = "width=32,heads=2,encoder_layers=1,decoder_layers=1"


def commands(section: str) -> list[list[str]]:
    """The commands of a section's bash blocks as words, continuation lines joined."""
    text = README.split(f"\n## {section}\n")[1].split("\n## ")[0]
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", text, flags=re.DOTALL)).replace("\\\n", " ")
    return [words for line in blocks.splitlines() if (words := shlex.split(line, comments=True))]


def one(section: str, *has: str, lacks: str = "\0") -> list[str]:
    """The only command of a section that has these words and lacks that one."""
    found = [words for words in commands(section) if set(has) <= set(words) and lacks not in words]
    assert len(found) == 1, f"{len(found)} commands of {section!r} have {has}"
    return found[0]


def run(words: list[str], *more: str) -> None:
    """A README's command with further words, in this process, or on two if it says several."""
    if words[0] == "accelerate":
        assert words[: len(LAUNCHER)] == LAUNCHER
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
        environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        command = [*TWO, *words[len(LAUNCHER) :], *more]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
    else:
        assert words[:2] == ["python", "-m"]
        AcceleratorState._reset_state(True)  # accelerate keeps the precision of the first run of a process
        GradientState._reset_state()
        main = {"tokenizer": tokenizer_main, "pgm_image": image_main}[words[2]]
        assert main([*words[3:], *more]) == 0


def put(words: list[str], **other: str) -> list[str]:
    """The command with other words in place of some: put(words, model="x") changes what follows --model."""
    words = list(words)
    for name, value in other.items():
        words[words.index(f"--{name.replace('_', '-')}") + 1] = value
    return words


def fewer_steps(words: list[str]) -> list[str]:
    """The command with numbers of steps that 16 codes allow."""
    return [{"32": "4", "64": "8"}.get(word, word) for word in words]


def picture(seed: int) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 256, (3, 4, 3)).astype(np.uint8)
    return Image.fromarray(noise).resize((20, 18), Image.BICUBIC)


@pytest.fixture(scope="module")
def place(shared_parity, tmp_path_factory):
    """A working folder with data/imagenet, data/imagenet-wds and downloads as the README has them, in miniature."""
    folder = tmp_path_factory.mktemp("scale")
    for number in range(1000):  # every class has its folder, as the names are those of all classes
        (folder / "data" / "imagenet" / "train" / f"n{number:08d}").mkdir(parents=True)
        if number % 25 == 0:
            (folder / "data" / "imagenet" / "val" / f"n{number:08d}").mkdir(parents=True)
            for split, seed in (("train", number), ("val", number + 10_000)):
                path = folder / "data" / "imagenet" / split / f"n{number:08d}" / "0.jpeg"
                picture(seed).save(path, "JPEG")
    (folder / "data" / "imagenet-wds").mkdir()
    for name, numbers in (("train-0000", range(0, 6)), ("train-0001", range(6, 10)), ("val-0000", range(90, 95))):
        with tarfile.open(folder / "data" / "imagenet-wds" / f"{name}.tar", "w") as tar:
            for number in numbers:
                file = BytesIO()
                picture(number).save(file, "JPEG")
                for suffix, content in (("jpg", file.getvalue()), ("cls", str(number).encode())):
                    info = tarfile.TarInfo(f"{number:04d}.{suffix}")
                    info.size = len(content)
                    tar.addfile(info, BytesIO(content))
    (folder / "downloads").mkdir()
    image = shared_parity / "image"
    write_tokenizer(folder / "downloads" / "vq_ds8_c2i.pt", weights(image / "vq_llamagen_tiny_weights.safetensors"))
    write_transformer(folder / "downloads" / TINY_PGM.file, weights(image / "pgm_tiny_weights.safetensors"))
    (folder / "assets").symlink_to(ROOT / "assets")
    (folder / "reports").mkdir()
    return folder


@pytest.fixture(scope="module")
def encoded(place):
    """The place with models/vq8 and data/imagenet-codes."""
    before = Path.cwd()
    os.chdir(place)
    try:
        run(one("Train at scale", "tokenizer", "convert"), "--image-size", "16")
        run(one("Train at scale", "tokenizer", "encode", lacks="accelerate"))
    finally:
        os.chdir(before)
    return place


@pytest.fixture(scope="module")
def exported(encoded):
    """The place with runs/tiny, runs/pgm-12-12 and models/my-imagenet256."""
    before = Path.cwd()
    os.chdir(encoded)
    small = ["--sizes", SMALL_MODEL, "--log-every", "1"]
    try:
        run(one("Train at scale", "train", "tiny"))
        single = one("Train at scale", "train", "imagenet256-pgm-12-12", "--compile", lacks="accelerate")
        run([word for word in single if word != "--compile"], *small, "--steps", "2")
        run(one("Train at scale", "export"))
    finally:
        os.chdir(before)
    return encoded


@pytest.fixture
def extractor():
    if EXTRACTOR not in FEATURE_EXTRACTORS_REGISTRY:
        register_feature_extractor(EXTRACTOR, MeanColour)
    yield EXTRACTOR
    FEATURE_EXTRACTORS_REGISTRY.pop(EXTRACTOR, None)


def test_pictures_become_codes_from_a_folder_and_from_tars_on_two_processes(encoded, monkeypatch):
    monkeypatch.chdir(encoded)
    manifest = read_manifest("data/imagenet-codes")
    assert manifest["classes"][1] == "goldfish" and len(manifest["classes"]) == 1000
    counts = {split: [entry["count"] for entry in parts] for split, parts in manifest["splits"].items()}
    assert counts == {"train": [40], "heldout": [40]}
    words = [w.replace("data/imagenet-codes", "data/wds-codes") for w in one("Train at scale", "encode", "accelerate")]
    run(words)
    manifest = read_manifest("data/wds-codes")
    counts = {split: [entry["count"] for entry in parts] for split, parts in manifest["splits"].items()}
    assert counts == {"train": [6, 4], "heldout": [5]} and manifest["classes"][1] == "goldfish"
    folder = one("Train at scale", "tokenizer", "encode", lacks="accelerate")
    run([*LAUNCHER, *(w.replace("data/imagenet-codes", "data/two-codes") for w in folder[1:])])
    for name in ("train-00000.codes.npy", "heldout-00000.labels.npy"):
        alone, two = (np.load(f"data/{codes}/{name}") for codes in ("imagenet-codes", "two-codes"))
        assert np.array_equal(alone, two)


def test_the_published_recipe_trains_on_two_processes_and_in_shards(encoded, monkeypatch):
    monkeypatch.chdir(encoded)
    small = ["--sizes", SMALL_MODEL, "--log-every", "1", "--steps", "2"]
    for more in ("--compile", "--shard"):
        words = put(one("Train at scale", "accelerate", "train", more), out=f"runs/two{more}")
        run([word for word in words if word != "--compile"], *small)
        assert (Path(f"runs/two{more}") / "export" / "config.json").is_file()
        assert (Path(f"runs/two{more}") / ("checkpoint.json" if more == "--shard" else "checkpoint.pt")).is_file()


def test_a_run_becomes_a_model_that_generates_and_is_evaluated(exported, monkeypatch, extractor, capsys):
    monkeypatch.chdir(exported)
    model = {"model": "models/my-imagenet256"}
    run(put(fewer_steps(one("Models", "generate")), **model), "--out", "goldfish")
    assert Image.open(next(Path("goldfish").glob("*.png"))).size == (16, 16)
    capsys.readouterr()
    single = put(fewer_steps(one("Evaluate", "--guidance")), **model)
    run(single, "--samples", "20", "--extractor", extractor)
    assert "| halton | 4 | 3.0 | 20 |" in capsys.readouterr().out
    assert "reports/pgm-12-12.json" in single and Path("reports/pgm-12-12.md").is_file()
    sweep = one("Evaluate", "accelerate")  # on two processes in test_fidelity.py, where they know the extractor
    assert sweep[: len(LAUNCHER)] == LAUNCHER
    alone = put(fewer_steps(["python", *sweep[len(LAUNCHER) :]]), **model, out="reports/sweep.json")
    run(alone, "--samples", "10", "--extractor", extractor)
    report = Path("reports/sweep.md").read_text()
    assert report.count("| halton |") == 16 and "sweep-guidance.svg" in report
    assert len(list(Path("reports").glob("sweep-*.npz"))) == 16


def test_the_bundled_model_is_evaluated_without_a_download(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for index in range(12):
        Path("real/anything").mkdir(parents=True, exist_ok=True)
        picture(index).resize((64, 64)).save(f"real/anything/{index}.png")
    run(put(one("Evaluate", "efficientnet-lite0"), reference="real", samples="10"), "--steps", "2")
    recommended = registry.model_info(registry.DEFAULT_MODEL).recommended
    assert f"| halton | 2 | {recommended['guidance_scale']} | 10 |" in capsys.readouterr().out
    assert "torch-fidelity" in Path("emoji.json").read_text()


def test_a_published_file_becomes_a_folder_of_ours(encoded, monkeypatch):
    monkeypatch.chdir(encoded)
    words = one("Models", "convert")
    run(put(words, **{"from": f"downloads/{TINY_PGM.file}"}), "--grid", "4", "--tokenizer", "models/vq8")
    folder = words[words.index("--out") + 1]
    generate = put(fewer_steps(one("Models", "generate")), model=folder)
    run(["3" if word == "goldfish" else word for word in generate], "--out", "converted")
    assert len(list(Path("converted").glob("*.png"))) == 1


def test_the_job_file_for_slurm_is_valid_shell_and_names_a_known_command(tmp_path):
    (script,) = re.findall(r"```sh\n(.*?)```", README, flags=re.DOTALL)
    assert subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True).returncode == 0
    (inner,) = re.findall(r"exec (accelerate launch .*?)'", script, flags=re.DOTALL)
    words = shlex.split(inner.replace("\\\n", " "))
    arguments = words[words.index("pgm_image") + 1 :]
    assert parser_for("train")[0].parse_args(arguments[1:]).recipe == "imagenet256-pgm-12-12"
