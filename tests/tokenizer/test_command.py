"""python -m tokenizer."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tokenizer import VQGAN
from tokenizer.__main__ import main
from tokenizer.shards import write_code_shard, write_manifest

ROOT = Path(__file__).resolve().parents[2]
MODEL = "--image-size 16 --channels 8 --multipliers 1 1 2 --norm-groups 4 --latent-channels 8 --codebook-size 16"
TINY = [*MODEL.split(), "--code-dim", "4", "--batch-size", "4", "--perceptual", "none", "--precision", "fp32"]


def test_train_encode_and_reconstruct_follow_each_other(shard_folder, tmp_path, capsys):
    run, codes = tmp_path / "run", tmp_path / "codes"
    assert main(["train", str(shard_folder), str(run), *TINY, "--steps", "2"]) == 0
    assert f"exported to {run / 'export'}" in capsys.readouterr().out
    assert main(["train", str(shard_folder), str(run), *TINY, "--steps", "3"]) == 0
    assert "continuing at step 2" in capsys.readouterr().out
    assert main(["encode", str(run / "export"), str(shard_folder), str(codes)]) == 0
    assert "codes used" in capsys.readouterr().out
    picture = tmp_path / "grey.png"
    Image.new("LA", (21, 13), (100, 255)).save(picture)
    assert main(["reconstruct", str(run / "export"), str(picture), "--out", str(tmp_path / "out")]) == 0
    result = Image.open(tmp_path / "out" / "grey-reconstructed.png")
    expected = VQGAN.from_pretrained(run / "export").reconstruct(Image.open(picture))
    assert np.array_equal(np.array(result), np.array(expected))


def test_fine_tuning_starts_from_given_weights_with_a_fresh_optimiser(model, shard_folder, tmp_path, capsys):
    model.save_pretrained(tmp_path / "start")
    options = ["--init", str(tmp_path / "start"), "--freeze-encoder", "--steps", "1", "--perceptual", "none"]
    assert main(["train", str(shard_folder), str(tmp_path / "run"), *options]) == 0
    assert "with a fresh optimiser" in capsys.readouterr().out
    assert VQGAN.from_pretrained(tmp_path / "run" / "export").codes_hash() == model.codes_hash()


def test_the_decoder_trains_on_grids_drawn_with_its_own_codebook_only(model, shard_folder, tmp_path, capsys):
    pytest.importorskip("taming")
    model.save_pretrained(tmp_path / "start")
    grids = np.random.default_rng(0).integers(0, 16, (5, 16))
    entry = write_code_shard(tmp_path, "drawn", grids, np.zeros((5, 4), np.int32))
    manifest = {"grid": [4, 4], "tokenizer": {"codes_hash": model.codes_hash()}, "splits": {"drawn": [entry]}}
    write_manifest(tmp_path, manifest)
    options = ["--freeze-encoder", "--steps", "2", "--perceptual", "none", "--batch-size", "4"]
    options += ["--gan-start", "0", "--gan-layers", "2"]
    command = ["train", str(shard_folder), str(tmp_path / "run"), *options, "--drawn", str(tmp_path)]
    assert main([*command, "--init", str(tmp_path / "start")]) == 0
    assert VQGAN.from_pretrained(tmp_path / "run" / "export").codes_hash() == model.codes_hash()
    assert main(command) == 2
    assert "give it with init" in capsys.readouterr().err
    write_manifest(tmp_path, manifest | {"tokenizer": {"codes_hash": "0"}})
    assert main([*command, "--init", str(tmp_path / "start")]) == 2
    assert "are of another tokenizer" in capsys.readouterr().err


def test_decoders_of_the_same_codes_are_averaged(model, tmp_path, capsys):
    model.save_pretrained(tmp_path / "a")
    before = model.decoder.conv_out.weight.clone()
    torch.nn.init.ones_(model.decoder.conv_out.weight)
    model.save_pretrained(tmp_path / "b")
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert main(["average", *folders, "--shares", "0.25", "0.75", "--out", str(tmp_path / "c")]) == 0
    averaged = VQGAN.from_pretrained(tmp_path / "c")
    torch.testing.assert_close(averaged.decoder.conv_out.weight, 0.25 * before + 0.75)
    assert averaged.codes_hash() == model.codes_hash()
    assert main(["average", *folders, "--shares", "0.25", "--out", str(tmp_path / "d")]) == 2
    assert "shares must be as many as models" in capsys.readouterr().err
    torch.nn.init.ones_(model.quant_conv.bias)
    model.save_pretrained(tmp_path / "b")
    assert main(["average", *folders, "--out", str(tmp_path / "d")]) == 2
    assert "must make the same codes" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command, says",
    [
        ("train nowhere run --steps 1", "data must be a folder"),
        ("train nowhere run", "either steps or minutes"),
        ("train nowhere run --steps 1 --channels 30", "multiple of norm_groups"),
        ("train nowhere run --steps 1 --threads 0", "threads must be >= 1"),
        ("train nowhere run --steps 1 --init nothing", "config.json is missing"),
        ("encode nowhere data codes", "config.json is missing"),
        ("reconstruct nowhere missing.png", "'missing.png' cannot be read"),
        ("convert missing.pt out", "does not exist"),
        ("encode nowhere data codes --device teapot", "device 'teapot' is not available"),
    ],
)
def test_bad_input_ends_with_status_2_and_one_sentence(command, says, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(command.split()) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


def test_help_names_the_commands_and_their_options(capsys):
    def said(*arguments: str) -> str:
        with pytest.raises(SystemExit, match="0"):
            main([*arguments, "--help"])
        return capsys.readouterr().out

    assert all(name in said() for name in ("train", "encode", "reconstruct", "convert"))
    train = said("train")
    assert all(
        f"--{flag}" in train for flag in ("freeze-encoder", "gan-start", "steps", "minutes", "batch-size", "threads")
    )


def test_the_package_runs_as_a_module(tmp_path):
    command = [sys.executable, "-m", "tokenizer", "convert", str(tmp_path / "missing.pt"), str(tmp_path)]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 2 and result.stderr.startswith("error: checkpoint")
