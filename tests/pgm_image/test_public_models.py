"""Published models by name: found, downloaded, loaded exactly, or explained; never in the way of the bundled ones."""

import json
import time
from pathlib import Path

import huggingface_hub
import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

import pgm_image
from pgm_image import public_loading, registry
from pgm_image.__main__ import main
from pgm_image.imagenet import imagenet_classes, imagenet_words
from pgm_image.labels import nearest_names
from pgm_image.pipeline import PGMPipeline
from pgm_image.public_models import PUBLIC_MODELS
from pgm_image.registry import model_info
from pgm_image.request import make_request
from tests.pgm_image import public_files
from tests.pgm_image.public_files import TINY_MASKGIT, TINY_PGM, TOKENIZER, write_tokenizer, write_transformer

CLOSE = {"atol": 1e-4, "rtol": 1e-4}


@pytest.fixture
def recorded(shared_parity):
    """Weights of the reference implementations by fixture name."""
    return lambda name: public_files.weights(shared_parity / "image" / f"{name}_weights.safetensors")


@pytest.fixture
def tiny_models(monkeypatch):
    """The two tiny models in the table of published ones."""
    for model in (TINY_PGM, TINY_MASKGIT):
        monkeypatch.setitem(PUBLIC_MODELS, model.name, model)


@pytest.fixture
def hub(monkeypatch, tmp_path, tiny_models):
    """A hub that answers and "downloads" from a folder; the files asked for are noted in it."""
    folder = tmp_path / "hub"
    folder.mkdir()
    asked = []

    def download(repo, file, **options):
        asked.append((repo, file, options))
        return str(folder / file)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(public_loading, "is_offline", lambda: False)
    monkeypatch.setattr(public_loading, "hub_answers", lambda: True)
    return folder, asked


# -- the same numbers through the whole path -------------------------------------------------------------------------


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "module._orig_mod."])
@torch.no_grad()
def test_a_downloaded_pgm_gives_the_recorded_logits(hub, recorded, shared_parity, prefix):
    folder, asked = hub
    write_transformer(folder / TINY_PGM.file, recorded("pgm_tiny"), prefix)
    write_tokenizer(folder / TOKENIZER.file, recorded("vq_llamagen_tiny"))
    pipe = PGMPipeline.from_pretrained("tiny-pgm", device="cpu", revision="abc", token="t")
    assert asked == [
        ("someone/models", "tiny-pgm.ckpt", {"revision": "abc", "token": "t"}),
        ("someone/tokenizers", "vq_tiny.pt", {"token": "t"}),
    ]
    forward = load_file(shared_parity / "image" / "pgm_tiny_forward.safetensors")
    labels = torch.where(forward["train.drop_label"], -1, forward["train.y"])
    logits = pipe.transformer(forward["train.x"], forward["train.group_idxs"], labels)
    assert_close(logits, forward["train.logits"], **CLOSE)
    io = load_file(shared_parity / "image" / "vq_llamagen_tiny_io.safetensors")
    assert torch.equal(pipe.tokenizer.encode(io["image"]).flatten(), io["indices"].flatten())
    assert not any(tensor.is_meta for tensor in (*pipe.transformer.parameters(), *pipe.transformer.buffers()))


@pytest.mark.parametrize("container", ["model_state_dict", "model", "state_dict"])
@torch.no_grad()
def test_a_downloaded_maskgit_gives_the_recorded_logits_and_stays_tied(hub, recorded, shared_parity, container):
    folder, _ = hub
    write_transformer(folder / TINY_MASKGIT.file, recorded("maskgit_tiny"), "module.", container)
    write_tokenizer(folder / TOKENIZER.file, recorded("vq_llamagen_tiny"))
    network = PGMPipeline.from_pretrained("tiny-maskgit", device="cpu").transformer
    forward = load_file(shared_parity / "image" / "maskgit_tiny_forward.safetensors")
    labels = torch.where(forward["drop_label"], -1, forward["y"])
    assert_close(network(forward["x"].flatten(1), labels), forward["logits"], **CLOSE)
    assert network.head.weight is network.tok_emb.weight


def test_generating_by_name_downloads_and_gives_pictures(hub, recorded):
    folder, _ = hub
    write_transformer(folder / TINY_PGM.file, recorded("pgm_tiny"))
    write_tokenizer(folder / TOKENIZER.file, recorded("vq_llamagen_tiny"))
    registry._load.cache_clear()
    pictures = pgm_image.generate(["class 3", 4], model="tiny-pgm", seed=5, device="cpu")
    assert [picture.size for picture in pictures] == [(16, 16), (16, 16)]
    pipe = PGMPipeline.from_pretrained("tiny-pgm", device="cpu")
    published = {"visible_length": "reference", "temperature_warmup": 1}
    other = pipe.generate(3, seed=5, output_type="codes", **published)
    assert not torch.equal(other, pipe.generate(3, seed=5, output_type="codes"))
    registry._load.cache_clear()


# -- where files are looked for --------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["{file}", "{repo}/{file}"])
@pytest.mark.parametrize("way", ["argument", "environment"])
def test_files_put_into_a_folder_by_hand_are_used_without_the_network(
    tiny_models, recorded, tmp_path, monkeypatch, layout, way
):
    monkeypatch.setattr(public_loading, "hub_answers", lambda: pytest.fail("the hub was asked"))
    for (repo, file), write, name in zip(
        TINY_PGM.files, (write_transformer, write_tokenizer), ("pgm_tiny", "vq_llamagen_tiny"), strict=True
    ):
        path = tmp_path / layout.format(repo=repo, file=file)
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path, recorded(name))
    given = {"checkpoints": tmp_path} if way == "argument" else {}
    if way == "environment":
        monkeypatch.setenv("PGM_CHECKPOINTS", str(tmp_path))
        assert pgm_image.why_unavailable("tiny-pgm") is None
    assert PGMPipeline.from_pretrained("tiny-pgm", device="cpu", **given).info.name == "tiny-pgm"


def test_a_file_in_the_hubs_cache_is_used_without_the_network(tiny_models, recorded, tmp_path, monkeypatch):
    commit = "0" * 40
    monkeypatch.setattr(public_loading, "hub_answers", lambda: pytest.fail("the hub was asked"))
    for (repo, file), write, name in zip(
        TINY_PGM.files, (write_transformer, write_tokenizer), ("pgm_tiny", "vq_llamagen_tiny"), strict=True
    ):
        repository = tmp_path / f"models--{repo.replace('/', '--')}"
        (repository / "snapshots" / commit).mkdir(parents=True)
        (repository / "refs").mkdir()
        (repository / "refs" / "main").write_text(commit)
        write(repository / "snapshots" / commit / file, recorded(name))
    pipe = PGMPipeline.from_pretrained("tiny-pgm", device="cpu", cache_dir=tmp_path)
    assert pipe.grid == (4, 4)


def test_a_folder_that_does_not_exist_is_named(tiny_models, monkeypatch):
    monkeypatch.setenv("PGM_CHECKPOINTS", "no/such/folder")
    with pytest.raises(ValueError, match="PGM_CHECKPOINTS must be a folder, got 'no/such/folder'"):
        PGMPipeline.from_pretrained("tiny-pgm")


# -- what cannot be had, in one sentence ------------------------------------------------------------------------------


@pytest.mark.parametrize("switched_off", [True, False])
def test_without_network_one_sentence_names_files_and_repositories_within_ten_seconds(monkeypatch, switched_off):
    if not switched_off:  # the tests' own fence refuses the connection, as a machine without network does
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    start = time.perf_counter()
    with pytest.raises(ValueError) as error:
        PGMPipeline.from_pretrained("imagenet256-pgm-12-12")
    assert time.perf_counter() - start < 10
    text = str(error.value)
    for part in (
        "imagenet256-pgm-12-12", "images_pgm_12_12_100epochs.ckpt", "jdeschena/pgm", "vq_ds8_c2i.pt",
        "FoundationVision/LlamaGen", "PGM_CHECKPOINTS", "switched off" if switched_off else "cannot be reached",
    ):  # fmt: skip
        assert part in text
    assert "\n" not in text


def test_a_hub_that_never_answers_is_given_up_on(monkeypatch):
    monkeypatch.setattr(public_loading, "_asked", lambda seconds: time.sleep(60))
    monkeypatch.setattr(public_loading, "is_offline", lambda: False)
    start = time.perf_counter()
    assert public_loading.hub_answers(0.1) is False
    assert time.perf_counter() - start < 5


def test_after_a_failed_load_other_models_still_work(model_folder):
    with pytest.raises(ValueError, match="not on this machine"):
        pgm_image.load("imagenet256-maskgit")
    assert len(pgm_image.generate("bird", model=str(model_folder), steps=2)) == 1


def test_a_failed_download_is_one_sentence(hub, monkeypatch):
    def refuse(*_, **__):
        raise OSError("disk full\nmore lines")

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", refuse)
    with pytest.raises(ValueError, match=r"tiny-pgm.ckpt of someone/models, .* could not be downloaded: disk full$"):
        PGMPipeline.from_pretrained("tiny-pgm")


def test_weights_of_another_architecture_are_told_by_name(hub, recorded):
    folder, _ = hub
    state = recorded("pgm_tiny")
    removed = state.pop("encoder.blocks.2.attn_out.weight")
    state["encoder.blocks.3.attn_out.weight"] = removed
    write_transformer(folder / TINY_PGM.file, state)
    write_tokenizer(folder / TOKENIZER.file, recorded("vq_llamagen_tiny"))
    with pytest.raises(
        ValueError, match=r"1 keys are missing \(first: encoder.blocks.2.attn_out.weight\) and 1 are un"
    ):
        PGMPipeline.from_pretrained("tiny-pgm")
    state = recorded("pgm_tiny")
    state["reg_tokens.weight"] = torch.zeros(3, 64)
    write_transformer(folder / TINY_PGM.file, state)
    with pytest.raises(ValueError, match=r"reg_tokens.weight is \(3, 64\), should be \(2, 64\)"):
        PGMPipeline.from_pretrained("tiny-pgm")


def test_a_table_and_a_head_that_differ_are_not_tied_silently(hub, recorded):
    folder, _ = hub
    state = recorded("maskgit_tiny")
    state["head.weight"] = state["head.weight"] + 1
    write_transformer(folder / TINY_MASKGIT.file, state)
    with pytest.raises(ValueError, match="head.weight and tok_emb.weight differ"):
        PGMPipeline.from_pretrained("tiny-maskgit")


def test_a_pointer_instead_of_the_download_is_told(hub, recorded):
    folder, _ = hub
    (folder / TINY_PGM.file).write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n")
    with pytest.raises(ValueError, match="tiny-pgm.ckpt is not a usable weights file: it is a Git LFS pointer"):
        PGMPipeline.from_pretrained("tiny-pgm")


# -- what is known without weights ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLIC_MODELS)
def test_every_public_model_is_known_without_its_weights(name):
    info = model_info(name)
    model = PUBLIC_MODELS[name]
    assert len(info.classes) == 1000 and info.grid[0] * model.tokenizer.config.factor == info.image_size
    assert info.codebook_size == model.tokenizer.config.codebook_size
    assert info.source == f"{model.repo}/{model.file}" and info.licence
    for preset in ({}, *info.presets.values(), info.published):
        make_request(info, "goldfish", **preset)  # every setting that is recommended is one that can be asked for


@pytest.mark.parametrize("bad", [1000, -1, "no such", "", [1, "x"], True, 3.7])
def test_a_bad_class_is_refused_before_any_file_is_looked_for(monkeypatch, bad):
    monkeypatch.setattr(public_loading, "find", lambda *_: pytest.fail("files were looked for"))
    with pytest.raises(ValueError, match="class_id"):
        pgm_image.generate(bad, model="imagenet256-pgm-14-10")


def test_bundled_and_public_models_are_listed_apart():
    bundled, all_models = ([info.name for info in pgm_image.models(public=public)] for public in (False, True))
    assert all_models == [*bundled, *PUBLIC_MODELS] and not set(bundled) & set(PUBLIC_MODELS)


def test_models_that_cannot_be_had_come_with_the_reason_and_the_hub_is_asked_once(hub, recorded, monkeypatch):
    asked = []
    monkeypatch.setattr(public_loading, "hub_answers", lambda: asked.append(1) or False)
    reasons = pgm_image.unavailable_models()
    assert set(reasons) == set(PUBLIC_MODELS) and len(asked) == 1
    assert "cannot be reached" in reasons["imagenet384-halton-large"]
    assert "ImageNet_384_large.pth of llvictorll/Halton-Maskgit" in reasons["imagenet384-halton-large"]
    monkeypatch.setattr(public_loading, "hub_answers", lambda: True)
    assert pgm_image.unavailable_models() == {}
    assert pgm_image.why_unavailable("imagenet256-halton-tiny") is None


def test_an_unknown_name_lists_the_public_ones():
    with pytest.raises(ValueError, match="imagenet256-pgm-12-12"):
        pgm_image.load("imagenet257")
    with pytest.raises(ValueError, match="imagenet256-pgm-12-12"):
        pgm_image.why_unavailable("imagenet257")


def test_the_command_lists_public_models_with_what_there_is_to_know(capsys):
    assert main(["models"]) == 0
    text = capsys.readouterr().out
    for part in (
        "imagenet256-pgm-14-10",
        "494.2 M parameters",
        "24x24 codes",
        "licence MIT",
        "GB to download",
        "taming",
    ):
        assert part in text
    assert main(["models", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    row = rows["imagenet256-maskgit"]
    assert (row["bundled"], row["cached"], row["parameters"]) == (False, False, 480_443_393)
    assert row["published"] == {"resample_known": True, "temperature_warmup": 1}


# -- the thousand classes ---------------------------------------------------------------------------------------------


def test_imagenet_has_a_thousand_classes_with_names_of_their_own():
    names = imagenet_classes()
    assert len(names) == len({name.casefold() for name in names}) == 1000
    assert all(name == name.strip() and name for name in names)
    assert names[:2] == ("tench", "goldfish") and names[207] == "golden retriever" and names[999] == "toilet paper"
    assert {names[134], names[517]} == {"crane (bird)", "crane (machine)"}
    assert names[638] != names[639] and "maillot" in names[638] and "maillot" in names[639]
    assert names[264] == "Cardigan Welsh corgi" and names[474] == "cardigan"


@pytest.mark.parametrize(
    ("word", "index"),
    [("Carassius auratus", 1), ("cab", 468), ("cellphone", 487), ("tank suit", 639), ("orca", 148), ("rosehip", 989)],
)
def test_a_class_is_found_by_its_synonyms(word, index, capsys):
    words, names = imagenet_words(), imagenet_classes()
    assert word in words[names[index]]
    assert nearest_names(word.casefold(), names, words)[0] == names[index]
    assert main(["classes", word, "--model", "imagenet256-pgm-12-12"]) == 0
    assert str(index) in capsys.readouterr().out.split()


def test_groups_hold_what_they_name():
    words, names = imagenet_words(), imagenet_classes()
    dogs = [i for i, name in enumerate(names) if "dog" in words[name]]
    assert dogs == list(range(151, 269))
    assert "musical instrument" in words["cello"] and "fruit" in words["pineapple"]


def test_the_class_file_is_small_and_carries_its_source():
    path = Path(pgm_image.__file__).parent.parent / "assets" / "imagenet_classes.json"
    assert path.stat().st_size < 90_000
    assert "Princeton" in json.loads(path.read_text(encoding="utf-8"))["source"]
    assert "WordNet 3.0 Copyright 2006" in (path.parent / "WORDNET-LICENSE.txt").read_text()
