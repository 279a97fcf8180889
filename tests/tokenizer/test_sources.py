"""Encoding from webdataset tars, Hugging Face data sets and class folders, on one process or two."""

import json
import os
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision import transforms

from tokenizer import pixels
from tokenizer.__main__ import main
from tokenizer.encode import Preparation, encode_folder, read_class_names
from tokenizer.picture_crops import crop_to
from tokenizer.shards import read_codes, read_images
from tokenizer.webdataset import find_tars

ROOT = Path(__file__).resolve().parents[2]


def quiet(_: str) -> None:
    pass


def photo(seed: int, width: int = 37, height: int = 23) -> Image.Image:
    noise = np.random.default_rng(seed).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    return Image.fromarray(noise).resize((width, height), Image.BICUBIC)


def png(picture: Image.Image) -> bytes:
    file = BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def write_tar(path: Path, members: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(path, "w") as tar:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, BytesIO(content))


@pytest.fixture
def tars(tmp_path):
    """Three training tars of 2, 3 and 4 pictures, one held-out tar; the label is the picture's seed modulo 3."""
    seed = 0
    for number, count in enumerate((2, 3, 4)):
        members = {}
        for index in range(count):
            members[f"n{index:02d}/{index:04d}.png"] = png(photo(seed))
            members[f"n{index:02d}/{index:04d}.cls"] = str(seed % 3).encode()
            seed += 1
        write_tar(tmp_path / "tars" / f"set-train-{number:04d}.tar", members)
    held_out = {"0.png": png(photo(seed)), "0.json": json.dumps({"label": 2, "caption": "x"}).encode()}
    write_tar(tmp_path / "tars" / "set-validation-00.tar", held_out)
    return tmp_path / "tars"


def test_each_tar_becomes_a_code_shard_with_its_labels(model, tars, tmp_path):
    manifest = encode_folder(model, tars, tmp_path / "codes", "tiny", batch_size=2, report=quiet)
    assert [entry["count"] for entry in manifest["splits"]["train"]] == [2, 3, 4]
    assert manifest["classes"] == ["class 0", "class 1", "class 2"] and manifest["name"] == "tars"
    shards = read_codes(tmp_path / "codes", "train")
    assert np.concatenate([labels[:, 0] for _, labels in shards]).tolist() == [0, 1, 2] * 3
    concepts = np.concatenate([labels[:, 2] for _, labels in shards])
    assert len(set(concepts.tolist())) == 9  # each picture is its own concept
    codes = np.concatenate([codes for codes, _ in shards])
    expected = model.encode_images([photo(seed) for seed in range(9)]).flatten(1).numpy()
    assert np.array_equal(codes, expected)
    ((_, labels),) = read_codes(tmp_path / "codes", "heldout")
    assert labels[:, 0].tolist() == [2]  # from JSON


def test_a_pattern_names_tars_and_splits_are_told_by_words(tars):
    found = find_tars(f"{tars}/set-train-*.tar")
    assert {split: len(paths) for split, paths in found.items()} == {"train": 3}
    assert [path.name for path in find_tars(tars)["heldout"]] == ["set-validation-00.tar"]


def test_flipped_pictures_follow_their_originals_in_training_only(model, tars, tmp_path):
    options = {"preparation": Preparation(flip=True), "report": quiet, "class_names": ["a", "b", "c"]}
    manifest = encode_folder(model, tars, tmp_path / "codes", "tiny", **options)
    counts = {split: sum(e["count"] for e in entries) for split, entries in manifest["splits"].items()}
    assert counts == {"train": 18, "heldout": 1} and manifest["classes"] == ["a", "b", "c"]
    codes, labels = read_codes(tmp_path / "codes", "train")[0]
    mirrored = model.encode_images([photo(0).transpose(Image.FLIP_LEFT_RIGHT)]).flatten(1)[0]
    image = pixels.from_pil(crop_to(photo(0), 16, "square")).flip(-1)
    assert np.array_equal(codes[1], model.encode(image[None]).flatten().numpy())
    assert (codes[1] == mirrored.numpy()).mean() > 0.5  # mirroring before resizing rounds differently
    assert labels[:, 0].tolist() == [0, 0, 1, 1]
    with pytest.raises(ValueError, match="holds codes with preparation"):
        encode_folder(model, tars, tmp_path / "codes", "tiny", report=quiet)


def test_moved_copies_follow_their_originals_in_training_only(model, shard_folder, tmp_path):
    preparation, images = Preparation(moved_copies=2, moved_by=1), read_images(shard_folder, "train")
    moved = encode_folder(model, shard_folder, tmp_path / "moved", "tiny", 5, preparation=preparation, report=quiet)
    encode_folder(model, shard_folder, tmp_path / "plain", "tiny", report=quiet)
    counts = {split: sum(e["count"] for e in entries) for split, entries in moved["splits"].items()}
    assert counts == {"train": 3 * len(images), "heldout": 8}
    (codes, labels), (plain, _) = (read_codes(tmp_path / name, "train")[0] for name in ("moved", "plain"))
    assert np.array_equal(codes[::3], plain) and np.array_equal(labels[1::3], images.labels)
    edges = np.pad(images.images, ((0, 0), (1, 1), (1, 1), (0, 0)), mode="edge")
    for index in range(4):  # each copy is the picture in one of the nine places it can be moved to
        places = [edges[index, y : y + 16, x : x + 16] for y in range(3) for x in range(3)]
        possible = model.encode(pixels.from_uint8(torch.from_numpy(np.stack(places)))).flatten(1).numpy()
        for copy in (1, 2):
            assert (possible == codes[3 * index + copy]).all(1).any()
    assert not np.array_equal(codes[1::3], codes[2::3])
    again = encode_folder(model, shard_folder, tmp_path / "again", "tiny", 7, preparation=preparation, report=quiet)
    assert again == moved and np.array_equal(read_codes(tmp_path / "again", "train")[0][0], codes)
    with pytest.raises(ValueError, match="moved_copies must be >= 0, got -1"):
        Preparation(moved_copies=-1)


@pytest.mark.parametrize("size", [(300, 200), (200, 301), (64, 64), (17, 500)])
def test_the_imagenet_crop_is_that_of_torchvision(size):
    picture = photo(3, *size)
    published = transforms.Compose([transforms.Resize(64), transforms.CenterCrop(64)])(picture)
    assert np.array_equal(np.asarray(crop_to(picture, 64, "imagenet")), np.asarray(published))


@pytest.mark.timeout(900)  # seconds, but for a busy machine
def test_what_is_written_does_not_depend_on_the_number_of_processes(model, tars, tmp_path):
    model.save_pretrained(tmp_path / "vq")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    words = ["encode", str(tmp_path / "vq"), str(tars), "--device", "cpu", "--threads", "1"]
    command = [*launch, "-m", "tokenizer", *words, str(tmp_path / "codes")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("train-00000: 2 images") == 1  # each part is the work of one process
    assert main(["encode", str(tmp_path / "vq"), str(tars), str(tmp_path / "alone"), "--device", "cpu"]) == 0
    names = sorted(path.name for path in (tmp_path / "alone").iterdir())
    assert names == sorted(path.name for path in (tmp_path / "codes").iterdir()) and len(names) == 9
    for name in names:
        assert (tmp_path / "codes" / name).read_bytes() == (tmp_path / "alone" / name).read_bytes()


def test_class_names_come_from_a_file(tmp_path):
    (tmp_path / "names.txt").write_text("tench\n\ngoldfish\n")
    (tmp_path / "names.json").write_text(json.dumps({"classes": [["tench", "Tinca tinca"], "goldfish"]}))
    for name in ("names.txt", "names.json"):
        assert read_class_names(tmp_path / name) == ["tench", "goldfish"]
    assert len(read_class_names(ROOT / "assets" / "imagenet_classes.json")) == 1000


@pytest.mark.parametrize(
    ("members", "says"),
    [
        ({"a.cls": b"1"}, "'a' has no picture"),
        ({"a.png": b"not a picture", "a.cls": b"1"}, "'a'.*not a picture"),
        ({"a.png": None}, "'a': no class number"),
    ],
)
def test_an_incomplete_tar_is_named(model, tmp_path, members, says):
    write_tar(tmp_path / "x.tar", {name: content or png(photo(0)) for name, content in members.items()})
    with pytest.raises(ValueError, match=rf"(?s)x.tar: {says}"):
        encode_folder(model, f"{tmp_path}/*.tar", tmp_path / "codes", "tiny", report=quiet)


@pytest.mark.parametrize(
    ("data", "says"),
    [("nowhere", "data must be a folder"), ("none-*.tar", "no tar file matches"), ("a/b/c", "data must be a folder")],
)
def test_data_that_is_not_there_is_one_sentence(model, tmp_path, monkeypatch, data, says):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=says):
        encode_folder(model, data, tmp_path / "codes", "tiny", report=quiet)


def test_too_few_class_names_are_refused(model, tars, tmp_path):
    with pytest.raises(ValueError, match="a picture has class 2, but there are names for 1"):
        encode_folder(model, tars, tmp_path / "codes", "tiny", report=quiet, class_names=["a"])


def test_without_the_package_a_hub_data_set_is_one_sentence(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ModuleNotFoundError, match="pip install datasets"):
        encode_folder(model, "timm/imagenet-1k-wds", tmp_path / "codes", "tiny", report=quiet)


def test_a_hub_data_set_is_encoded(model, tmp_path, monkeypatch):
    datasets = pytest.importorskip("datasets")
    import pyarrow
    import pyarrow.parquet

    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
    pictures = [photo(index) for index in range(5)]
    rows = {"image": [{"bytes": png(picture), "path": None} for picture in pictures], "label": [0, 1, 1, 0, 1]}
    (tmp_path / "set").mkdir()
    table = pyarrow.table(rows, schema=features.arrow_schema)
    pyarrow.parquet.write_table(table, tmp_path / "set" / "train-0.parquet")
    manifest = encode_folder(model, tmp_path / "set", tmp_path / "codes", "tiny", shard_images=2, report=quiet)
    assert manifest["classes"] == ["cat", "dog"]
    assert [entry["count"] for entry in manifest["splits"]["train"]] == [2, 2, 1]
    codes = np.concatenate([codes for codes, _ in read_codes(tmp_path / "codes", "train")])
    assert torch.equal(torch.from_numpy(codes.astype(np.int64)), model.encode_images(pictures).flatten(1))
