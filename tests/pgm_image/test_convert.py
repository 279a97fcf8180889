"""`python -m pgm_image convert`: a public file becomes a folder that gives the same numbers, or one sentence."""

import json

import pytest
import torch
from safetensors import safe_open

from pgm_image.__main__ import main
from pgm_image.pipeline import PGMPipeline
from pgm_image.public_layout import infer_config
from pgm_image.public_loading import load_public
from pgm_image.public_models import PUBLIC_MODELS
from tests.pgm_image.public_files import (
    TINY_MASKGIT,
    TINY_PGM,
    TOKENIZER,
    weights,
    write_tokenizer,
    write_transformer,
)


@pytest.fixture
def files(shared_parity, tmp_path):
    """Folder of the public files of the tiny models."""
    folder = tmp_path / "public"
    folder.mkdir()
    for file, name in ((TINY_PGM.file, "pgm_tiny"), (TINY_MASKGIT.file, "maskgit_tiny")):
        state = weights(shared_parity / "image" / f"{name}_weights.safetensors")
        write_transformer(folder / file, state, "module._orig_mod.")
    write_tokenizer(folder / TOKENIZER.file, weights(shared_parity / "image" / "vq_llamagen_tiny_weights.safetensors"))
    return folder


@pytest.mark.parametrize("model", [TINY_PGM, TINY_MASKGIT], ids=lambda model: model.name)
def test_a_published_model_is_recognised_and_comes_back_as_itself(files, tmp_path, monkeypatch, capsys, model):
    monkeypatch.setitem(PUBLIC_MODELS, model.name, model)
    monkeypatch.setenv("PGM_CHECKPOINTS", str(files))  # where its tokenizer is found
    out = tmp_path / "out"
    assert main(["convert", "--from", str(files / model.file), "--out", str(out)]) == 0
    assert capsys.readouterr().out.strip() == str(out)
    pipe = PGMPipeline.from_pretrained(out, device="cpu")
    assert pipe.info == model.info() and pipe.transformer.config == model.config
    transformer, tokenizer = load_public(model)
    for ours, public in ((pipe.transformer, transformer), (pipe.tokenizer, tokenizer)):
        expected = public.state_dict()
        assert ours.state_dict().keys() == expected.keys()
        assert all(torch.equal(value, expected[key]) for key, value in ours.state_dict().items())
    direct = PGMPipeline(transformer, tokenizer, model.info())
    assert torch.equal(pipe(3, seed=1, output_type="codes"), direct(3, seed=1, output_type="codes"))
    card = (out / "README.md").read_text()
    assert "license: other" in card and "| steps | 4 |" in card and model.file in card


def test_half_precision_halves_the_transformer_and_computes_as_before(files, tmp_path):
    for name, more in (("whole", []), ("half", ["--half"])):
        arguments = ["--from", str(files / TINY_PGM.file), "--out", str(tmp_path / name), "--grid", "4", *more]
        assert main(["convert", *arguments, "--tokenizer", str(files / TOKENIZER.file)]) == 0
    sizes = [(tmp_path / name / "transformer" / "model.safetensors").stat().st_size for name in ("whole", "half")]
    assert sizes[1] < 0.55 * sizes[0]
    with safe_open(tmp_path / "half" / "transformer" / "model.safetensors", framework="pt") as file:
        assert file.get_tensor("vocab_embed.embedding").dtype == torch.float16
    pipes = [PGMPipeline.from_pretrained(tmp_path / name, device="cpu") for name in ("whole", "half")]
    assert pipes[1].dtype == torch.float32
    tokens = torch.tensor([[33, *range(16)]])
    with torch.no_grad():
        logits = [pipe.transformer(tokens, tokens % 2, torch.tensor([3])) for pipe in pipes]
    assert 0 < (logits[0] - logits[1]).abs().max() < 0.1


def test_a_model_of_ones_own_gets_numbered_classes_and_its_name(files, tmp_path):
    out = tmp_path / "my-model"
    arguments = ["--from", str(files / TINY_MASKGIT.file), "--tokenizer", str(files / TOKENIZER.file), "--heads", "4"]
    assert main(["convert", *arguments, "--out", str(out)]) == 0
    pipe = PGMPipeline.from_pretrained(out, device="cpu")
    assert pipe.info.name == "my-model" and pipe.classes == [f"class {i}" for i in range(10)]
    assert (pipe.grid, pipe.image_size, pipe.info.architecture) == ((4, 4), 16, "maskgit")
    assert pipe.generate("class 3", steps=2)[0].size == (16, 16)
    assert "imagenet" not in (out / "README.md").read_text()


def test_a_tokenizer_may_be_a_folder_of_ours(files, tmp_path):
    common = ["--from", str(files / TINY_PGM.file), "--grid", "4"]
    assert main(["convert", *common, "--tokenizer", str(files / TOKENIZER.file), "--out", str(tmp_path / "a")]) == 0
    assert main(["convert", *common, "--tokenizer", str(tmp_path / "a/tokenizer"), "--out", str(tmp_path / "b")]) == 0
    a, b = (PGMPipeline.from_pretrained(tmp_path / name, device="cpu") for name in "ab")
    assert torch.equal(a.decode_tensor(torch.arange(16)[None]), b.decode_tensor(torch.arange(16)[None]))


def test_what_shapes_do_not_tell_is_asked_for(files, tmp_path, capsys):
    out = str(tmp_path / "out")
    vq = ["--tokenizer", str(files / TOKENIZER.file)]
    for arguments, says in (
        (["--from", str(files / TINY_PGM.file)], "--model NAME"),
        (["--from", str(files / TINY_PGM.file), *vq], "--grid SIDE"),
        (["--from", str(files / TINY_MASKGIT.file), *vq], "--heads COUNT"),
        (["--from", str(files / TOKENIZER.file), *vq], "neither a PGM nor a masked transformer"),
        (["--from", str(files / "none.ckpt")], "does not exist"),
        (["--from", str(files / TINY_PGM.file), "--model", "big"], "model must be one of imagenet256-pgm-12-12"),
        (["--from", str(files / TINY_PGM.file), "--tokenizer", "nowhere.pt"], "nowhere.pt"),
        (["--from", str(files / TINY_PGM.file), "--grid", "0", *vq], "grid must be an integer >= 1"),
        (["--from", str(files / TINY_PGM.file), "--model", "imagenet256-pgm-12-12"], "keys are missing"),
    ):
        assert main(["convert", "--out", out, *arguments]) == 2
        error = capsys.readouterr().err
        assert says in error and error.count("\n") == 1, error
    assert not (tmp_path / "out").exists()


def test_a_tokenizer_that_does_not_fit_is_refused(files, tmp_path, capsys):
    state = torch.load(files / TOKENIZER.file, weights_only=True)["model"]
    state["quantize.embedding.weight"] = torch.randn(48, 8)
    write_tokenizer(files / "other.pt", state)
    arguments = ["--from", str(files / TINY_PGM.file), "--grid", "4", "--tokenizer", str(files / "other.pt")]
    assert main(["convert", "--out", str(tmp_path / "out"), *arguments]) == 2
    assert "48 codes" in capsys.readouterr().err


def test_converting_over_an_earlier_result_and_saving_onto_itself_are_safe(files, tmp_path):
    arguments = ["--from", str(files / TINY_PGM.file), "--grid", "4", "--tokenizer", str(files / TOKENIZER.file)]
    for _ in range(2):
        assert main(["convert", "--out", str(tmp_path / "out"), *arguments]) == 0
    pipe = PGMPipeline.from_pretrained(tmp_path / "out", device="cpu")
    expected = {key: value.clone() for key, value in pipe.transformer.state_dict().items()}
    pipe.save_pretrained(tmp_path / "out")  # its tensors are mapped from the very files that are replaced
    again = PGMPipeline.from_pretrained(tmp_path / "out", device="cpu").transformer.state_dict()
    assert all(torch.equal(again[key], expected[key]) for key in expected)


def test_sizes_are_read_from_shapes(files, shared_parity):
    state = weights(shared_parity / "image" / "pgm_swap_learn_freqs_mlp4.safetensors")
    config = infer_config({key: value for key, value in state.items() if "." in key}, grid=4)
    assert (config.width, config.heads, config.encoder_layers, config.query_processor) == (32, 2, 1, "mlp4")
    assert json.loads((shared_parity / "image" / "pgm_tiny.json").read_text())["pgm_config"]["model"]["n_heads"] == 4
