"""The command line does what it says, and says what is wrong in one sentence with exit code 2."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from pgm_image.__main__ import COMMANDS, main, parser_for
from pgm_image.metadata import generate_arguments, read_settings
from pgm_image.pipeline import PGMPipeline


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help(command):
    parser, run = parser_for(command)
    assert callable(run) and len(parser.format_help()) > 100


def test_generate_writes_pictures_that_can_be_made_again_from_their_own_settings(model_folder, tmp_path, capsys):
    arguments = ["generate", "bird", "2", "--style", "flat", "--num-images", "2", "--seed", "7", "--steps", "3"]
    assert main([*arguments, "--model", str(model_folder), "--out", str(tmp_path), "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["seed"] for line in lines] == [7, 8, 9, 10]
    pipe = PGMPipeline.from_pretrained(model_folder)
    for line in lines:
        settings = read_settings(line["path"])
        again = generate_arguments(settings)
        assert again.pop("model") == str(model_folder)
        remade = pipe(again.pop("class_id"), **again)[0]
        # Alone and in a batch, a convolution may round a pixel to the neighbouring level.
        assert np.abs(np.asarray(remade).astype(int) - np.asarray(Image.open(line["path"]))).max() <= 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["generate", "unicorn"], "class_id"),
        (["generate", "bird", "--steps", "0"], "steps"),
        (["generate", "bird", "--guidance", "-2"], "guidance_scale"),
        (["generate", "99"], "0..2"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(model_folder, capsys, arguments, says):
    assert main([*arguments, "--model", str(model_folder)]) == 2
    error = capsys.readouterr().err
    assert says in error and error.count("\n") == 1


def test_an_unknown_command_lists_the_commands(capsys):
    assert main(["paint"]) == 2
    assert "generate" in capsys.readouterr().out
    assert main([]) == 2
    assert main(["--help"]) == 0


def test_classes_can_be_searched_by_what_they_contain(model_folder, capsys):
    assert main(["classes", "--model", str(model_folder)]) == 0
    assert "goldfish" in capsys.readouterr().out
    assert main(["classes", "eagle", "--model", str(model_folder)]) == 0
    assert capsys.readouterr().out.split()[:2] == ["0", "bird"]
    assert main(["classes", "zzz", "--model", str(model_folder)]) == 1


def test_the_module_runs_as_a_program():
    done = subprocess.run([sys.executable, "-m", "pgm_image", "--help"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "prepare-emoji" in done.stdout


def test_benchmark_prints_shares_of_time(model_folder, capsys):
    assert main(["benchmark", "--model", str(model_folder), "--batch-sizes", "2", "--repeats", "1", "--json"]) == 0
    timing = json.loads(capsys.readouterr().out)
    assert 0 < timing["transformer"] <= timing["sampling"] and timing["images_per_second"] > 0
