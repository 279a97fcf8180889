"""The commands from arguments to report, with a formula pipeline on synthetic shards."""

import argparse
import csv
import json

import numpy as np
import pytest
from PIL import Image

import pgm_image
from pgm_image.evaluation import command
from pgm_image.evaluation.evaluate import choose_reference, prepare_real_side
from pgm_image.evaluation.sweep import SweepRow, best
from pgm_image.evaluation.tokenizer_report import evaluate_tokenizer, psnr, with_recognition
from tests.pgm_image.evaluation_data import DrawingPipeline, write_shards


@pytest.fixture(scope="module")
def shards(tmp_path_factory):
    return write_shards(tmp_path_factory.mktemp("data") / "shapes")


@pytest.fixture
def pipe(monkeypatch):
    pipe = DrawingPipeline()
    monkeypatch.setattr(pgm_image, "load", lambda name, device=None: pipe, raising=False)
    return pipe


def evaluate(*words):
    parser = argparse.ArgumentParser()
    command.add_arguments(parser)
    return command.run(parser.parse_args([str(word) for word in words]))


def test_evaluate_reports_protocol_and_numbers(shards, pipe, tmp_path, capsys):
    out, sheet, pairs = tmp_path / "report.json", tmp_path / "sheet.png", tmp_path / "pairs.png"
    words = ["--data", shards, "--samples", 24, "--batch-size", 10, "--steps", 4, "--device", "cpu"]
    assert evaluate(*words, "--out", out, "--sheet", sheet, "--pairs", pairs) == 0
    table = capsys.readouterr().out
    assert "3 classes x 8 images; 2 styles x 12 images" in table
    assert "steps 4, sampler halton, guidance_scale 1.0" in table
    assert "n = 24 < 2048: not comparable" in table
    report = json.loads(out.read_text())
    protocol = report["protocol"]
    assert protocol["samples"] == 24
    assert protocol["resolution"] == 16
    assert "EfficientNet-lite0" in protocol["distance_features"]
    assert set(protocol["versions"]) == {"python", "torch", "torch-fidelity", "numpy", "pillow"}
    # the pipeline draws as the data does, so its shapes are recognised and it is as near as real images are
    assert report["probe"]["class_generated"]["top1"] > 0.8
    assert report["probe"]["style_generated"]["top1"] > 0.9
    assert report["distances"]["kid"] < 30
    assert [call["seed"] for call in pipe.calls] == [0, 10, 20]
    assert Image.open(sheet).width > 0
    assert Image.open(pairs).width > 0


def test_noise_scores_worse_than_drawings(shards, pipe, capsys):
    reports = []
    for temperature in (0.0, 3.0):
        evaluate("--data", shards, "--samples", 24, "--temperature", temperature, "--json", "--device", "cpu")
        reports.append(json.loads(capsys.readouterr().out))
    drawings, noisy = reports
    assert noisy["distances"]["kid"] > drawings["distances"]["kid"] + 50
    assert noisy["distances"]["fid"] > drawings["distances"]["fid"]
    assert noisy["nearest"][0]["generated_quantiles"][4] > drawings["nearest"][0]["generated_quantiles"][4]
    assert noisy["distances"]["kid"] > noisy["ceiling"]["kid"]


def test_the_same_command_gives_the_same_numbers(shards, pipe, capsys):
    results = []
    for batch_size in (6, 24):
        words = ["--samples", 24, "--seed", 7, "--batch-size", batch_size, "--json", "--device", "cpu"]
        evaluate("--data", shards, *words)
        report = json.loads(capsys.readouterr().out)
        results.append({key: report[key] for key in ("distances", "ceiling", "probe", "nearest")})
    assert results[0] == results[1]


def test_pictures_in_a_folder_are_measured_without_labels(shards, tmp_path, capsys):
    with np.load(shards / "train-00000.npz") as arrays:
        for index, image in enumerate(arrays["images"][:12]):
            Image.fromarray(image).save(tmp_path / f"{index}.png")
    evaluate("--images", tmp_path, "--data", shards, "--samples", 24, "--json", "--device", "cpu")
    report = json.loads(capsys.readouterr().out)
    assert report["protocol"]["labels"] == "unknown"
    assert report["probe"]["class_generated"] is None
    assert report["nearest"][0]["generated_quantiles"][-1] == 0.0  # they are training images
    assert report["nearest"][0]["share_below_5"] == 1.0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--samples", 3], "samples must be an integer >= 4, got 3"),
        (["--samples", 4000], "samples must be at most 48"),
        (["--batch-size", 0], "batch_size must be an integer >= 1, got 0"),
        (["--out", "missing-folder/report.json"], "out: the folder of 'missing-folder/report.json'"),
        (["--device", "abacus"], "device must be"),
    ],
)
def test_bad_arguments_are_refused_before_sampling(shards, pipe, words, message):
    with pytest.raises(ValueError, match=message):
        evaluate("--data", shards, *words)
    assert pipe.calls == []


def test_a_missing_data_folder_is_one_sentence(pipe, tmp_path):
    with pytest.raises(ValueError, match="manifest.json"):
        evaluate("--data", tmp_path / "nowhere")


def test_sweep_tries_every_combination_and_names_the_best(shards, pipe, tmp_path, capsys):
    parser = argparse.ArgumentParser()
    command.add_sweep_arguments(parser)
    out = tmp_path / "sweep.csv"
    words = ["--data", shards, "--samples", 12, "--guidance", 0, 2, "--temperature", 0, 3, "--steps", 4]
    args = parser.parse_args([str(word) for word in [*words, "--out", out, "--device", "cpu"]])
    assert command.run_sweep(args) == 0
    with out.open() as file:
        rows = list(csv.DictReader(file))
    tried = [(row["guidance_scale"], row["temperature"]) for row in rows]
    assert tried == [("0.0", "0.0"), ("0.0", "3.0"), ("2.0", "0.0"), ("2.0", "3.0")]
    quiet = [float(row["kid"]) for row in rows if row["temperature"] == "0.0"]
    noisy = [float(row["kid"]) for row in rows if row["temperature"] == "3.0"]
    assert max(quiet) < min(noisy)
    last = capsys.readouterr().out.strip().splitlines()[-1].split()
    assert last[:2] == ["best:", "-"]
    assert last[5] == "0.0"


def row(kid, top1):
    return SweepRow("halton", 8, 1.0, "constant", 1.0, 2.0, 0, kid, 1.0, top1, 1.0, 1.0, 1.0, 10)


def test_the_best_row_is_the_best_recognised_among_the_nearest():
    nearest, recognised, far = row(2.0, 0.5), row(2.9, 0.6), row(3.1, 0.9)
    assert best([far, nearest, recognised]) is recognised


class RoundingTokenizer:
    """Codes are 16 grey levels of the mean of each image."""

    def encode(self, images):
        return ((images.mean(dim=(1, 2, 3)) + 1) * 7.5).round().long()[:, None, None]

    def decode(self, codes):
        return (codes / 7.5 - 1)[:, None].expand(-1, 3, 8, 8)


def test_tokenizer_report_counts_codes_over_all_images_and_measures_errors():
    greys = np.array([0, 17, 34, 255], dtype=np.uint8).repeat(10)
    images = np.broadcast_to(greys[:, None, None, None], (40, 8, 8, 3)).copy()
    report = evaluate_tokenizer(RoundingTokenizer(), 16, images, "greys")
    assert report.l1 == 0
    assert report.psnr == 100
    assert report.usage == 4 / 16
    assert report.perplexity == pytest.approx(4)
    assert abs(report.distances.fid) < 1e-3
    shifted = evaluate_tokenizer(RoundingTokenizer(), 16, images.clip(2, 253), "greys")
    assert shifted.l1 == pytest.approx(1.0)  # half of the images are off by two levels
    assert "4 of 16 codes used" in shifted.table()


class LevelTokenizer:
    """Codes are 8 levels of every pixel's channel, or of the mean over channels, which loses the colour."""

    def __init__(self, colour: bool):
        self.colour = colour

    def encode(self, images):
        seen = images if self.colour else images.mean(1, keepdim=True).expand_as(images)
        return ((seen + 1) * 3.5).round().long()

    def decode(self, codes):
        return codes / 3.5 - 1


def test_recognition_of_reconstructions_tells_what_a_tokenizer_loses(shards):
    train, reference = choose_reference(shards, 24)
    real = prepare_real_side(shards, train, reference)
    plain = evaluate_tokenizer(LevelTokenizer(True), 8, real.heldout.images, "shapes")
    assert plain.recognition == ()
    for colour in (True, False):
        report = with_recognition(plain, LevelTokenizer(colour), real)
        training, heldout = report.recognition
        assert (training.n, heldout.n) == (24, len(real.heldout))
        assert training.class_original > 0.9 and training.style_original > 0.9
        assert (training.style_reconstructed > 0.9) == colour  # the styles are red and blue
        assert (heldout.style_reconstructed > 0.9) == colour
        assert "reconstructions of held-out concepts" in report.table()


def test_psnr_of_a_known_error():
    black = np.zeros((1, 4, 4, 3), dtype=np.uint8)
    assert psnr(black, black + 255)[0] == pytest.approx(0)
    assert psnr(black, black + 51)[0] == pytest.approx(20 * np.log10(5))
