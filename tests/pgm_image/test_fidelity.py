"""Published protocols from command to report, with Gaussian features whose FID has a closed form."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
import torch
from PIL import Image
from torch_fidelity.registry import FEATURE_EXTRACTORS_REGISTRY

import pgm_image
from pgm_image.evaluation import fidelity
from pgm_image.evaluation.efficientnet import load_efficientnet_lite0
from pgm_image.evaluation.features import extract, lite0_extractor
from pgm_image.evaluation.fidelity import FidelityFeatures, check_weights, resize_cleanly, too_few
from pgm_image.evaluation.lite0_fidelity import LITE0
from pgm_image.evaluation.protocols import describe_counts, draw_labels

ROOT = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("fidelity_run", Path(__file__).with_name("fidelity_run.py"))
formula = importlib.util.module_from_spec(spec)
spec.loader.exec_module(formula)


def closed_form(mean1, covariance1, mean2, covariance2):
    """Frechet distance of two Gaussians; the root by an eigendecomposition of the symmetric product."""
    values, vectors = np.linalg.eigh(covariance1)
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    cross = np.sqrt(np.linalg.eigvalsh(root @ covariance2 @ root)).sum()
    difference = mean1 - mean2
    return difference @ difference + np.trace(covariance1) + np.trace(covariance2) - 2 * cross


@pytest.fixture
def pipe(monkeypatch):
    monkeypatch.setattr(pgm_image, "load", pgm_image.load)  # put back afterwards
    yield formula.SquarePipeline()
    FEATURE_EXTRACTORS_REGISTRY.pop(formula.EXTRACTOR, None)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    path = tmp_path_factory.mktemp("real") / "real.npz"
    seeds = range(10**6, 10**6 + 4000)
    np.savez(path, arr_0=formula.squares(formula.REFERENCE_MEAN, formula.REFERENCE_ROOT, seeds))
    return path


def report_of(out):
    return json.loads(out.read_text())


def test_fid_is_that_of_the_gaussians(pipe, reference, tmp_path, capsys):
    out = tmp_path / "report.json"
    words = ["--protocol", "adm", "--reference", str(reference), "--samples", "4000", "--out", str(out)]
    assert formula.evaluate([*words, "--guidance-sweep", "0", "4"], pipe) == 0
    rows = report_of(out)["rows"]
    covariances = [root @ root.T for root in (formula.SAMPLE_ROOT, formula.REFERENCE_ROOT)]
    for row, guidance in zip(rows, (0, 4), strict=True):
        expected = closed_form(formula.SAMPLE_MEAN + guidance, covariances[0], formula.REFERENCE_MEAN, covariances[1])
        assert row["metrics"]["fid"] == pytest.approx(expected, rel=0.05)
        assert row["settings"]["guidance_scale"] == guidance and row["n"] == 4000
        assert row["metrics"]["kid"] > 0 and 0 <= row["metrics"]["precision"] <= 1
    assert rows[1]["metrics"]["recall"] > 0 and rows[0]["metrics"]["inception_score"] > 1
    assert "| halton | 4 | 4.0 | 4000 |" in capsys.readouterr().out
    text = out.with_suffix(".md").read_text()
    for name in ("guidance", "seconds"):
        assert f"report-{name}.svg" in text
        assert (tmp_path / f"report-{name}.svg").read_text().count("<circle") == 2


def test_statistics_alone_give_fid_but_no_kid(pipe, tmp_path):
    mean, root = formula.REFERENCE_MEAN, formula.REFERENCE_ROOT
    np.savez(tmp_path / "real.npz", mu=mean, sigma=root @ root.T)
    out = tmp_path / "report.json"
    words = ["--protocol", "adm", "--reference", str(tmp_path / "real.npz"), "--samples", "600", "--out", str(out)]
    assert formula.evaluate(words, pipe) == 0
    metrics = report_of(out)["rows"][0]["metrics"]
    covariance = formula.SAMPLE_ROOT @ formula.SAMPLE_ROOT.T
    assert metrics["fid"] == pytest.approx(closed_form(formula.SAMPLE_MEAN, covariance, mean, root @ root.T), rel=0.15)
    assert metrics["kid"] is None and metrics["recall"] is None


@pytest.mark.timeout(900)  # seconds, but for a busy machine
def test_two_processes_give_the_report_of_one(pipe, reference, tmp_path):
    out = tmp_path / "alone.json"
    words = ["--protocol", "adm", "--reference", str(reference), "--samples", "610", "--keep", "npz"]
    assert formula.evaluate([*words, "--out", str(out)], pipe) == 0
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "ACCELERATE_USE_CPU": "true"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    launch = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*launch, str(Path(__file__).with_name("fidelity_run.py")), *words, "--out", str(tmp_path / "two.json")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    alone, two = report_of(out), report_of(tmp_path / "two.json")
    assert (alone["processes"], two["processes"]) == (1, 2)
    assert [row["metrics"] for row in alone["rows"]] == [row["metrics"] for row in two["rows"]]
    kept = [np.load(next(tmp_path.glob(f"{name}-*.npz")))["arr_0"] for name in ("alone", "two")]
    assert np.array_equal(*kept)
    assert np.array_equal(kept[0], formula.squares(formula.SAMPLE_MEAN, formula.SAMPLE_ROOT, range(610)))


def test_a_killed_run_goes_on_with_the_parts_it_lacks(pipe, reference, tmp_path):
    out = tmp_path / "report.json"
    words = ["--protocol", "adm", "--reference", str(reference), "--samples", "600", "--out", str(out)]
    assert formula.evaluate(words, pipe) == 0
    before = report_of(out)["rows"][0]["metrics"]
    next((tmp_path / "report.parts").glob("halton*/00001.npz")).unlink()
    pipe.calls.clear()
    assert formula.evaluate(words, pipe) == 0
    assert [call["seed"] for call in pipe.calls] == [250]
    assert report_of(out)["rows"][0]["metrics"] == before
    with pytest.raises(ValueError, match="holds parts of another evaluation"):
        formula.evaluate([*words, "--seed", "9"], pipe)


def test_parts_of_an_extractor_with_other_layers_are_refused_in_a_sentence(pipe, reference, tmp_path):
    words = ["--protocol", "adm", "--reference", str(reference), "--samples", "10", "--out", str(tmp_path / "r.json")]
    assert formula.evaluate(words, pipe) == 0
    for path in (tmp_path / "r.parts").glob("*/settings.json"):
        held = json.loads(path.read_text())
        path.write_text(json.dumps({**held, "layers": {**held["layers"], "fid": "another layer"}}))
        with pytest.raises(ValueError, match="holds parts of another evaluation"):
            formula.evaluate(words, pipe)
        path.write_text(json.dumps(held))


def test_pictures_of_scales_that_share_their_whole_number_are_kept_apart(pipe, reference, tmp_path):
    words = ["--protocol", "adm", "--reference", str(reference), "--samples", "10", "--keep", "npz"]
    assert formula.evaluate([*words, "--guidance-sweep", "1", "1.5", "--out", str(tmp_path / "r.json")], pipe) == 0
    for guidance in (1.0, 1.5):
        expected = formula.squares(formula.SAMPLE_MEAN + guidance, formula.SAMPLE_ROOT, range(10))
        assert np.array_equal(np.load(tmp_path / f"r-halton-4-guidance-{guidance}.npz")["arr_0"], expected)


def test_kept_pictures_measured_again_give_the_same_numbers(pipe, reference, tmp_path):
    out = tmp_path / "report.json"
    words = ["--protocol", "pgm-paper", "--reference", str(reference), "--samples", "40"]
    small = tmp_path / "small.npz"
    with np.load(reference) as arrays:
        np.savez(small, arr_0=arrays["arr_0"][:40])
    words[3] = str(small)
    assert formula.evaluate([*words, "--keep", "folder", "--as-published", "--out", str(out)], pipe) == 0
    assert pipe.calls[0]["visible_length"] == "reference"
    report = report_of(out)
    assert sorted(np.bincount(pipe.calls[0]["class_id"])) == [4] * 10 and "balanced: 10 classes x 4" in report["labels"]
    assert report["warnings"] == ["n = 40 is not the 50000 of the protocol: not comparable with published numbers"]
    (folder,) = [path for path in tmp_path.glob("report-*") if path.is_dir()]
    again = tmp_path / "again.json"
    assert formula.evaluate([*words, "--images", str(folder), "--out", str(again)], pipe) == 0
    assert report_of(again)["rows"][0]["metrics"] == report["rows"][0]["metrics"]
    assert report_of(again)["rows"][0]["settings"] == {} and report_of(again)["labels"] == "unknown"
    with pytest.raises(ValueError, match="at least 10 pictures"):
        (tmp_path / "few").mkdir()
        Image.new("RGB", (8, 8)).save(tmp_path / "few" / "0.png")
        formula.evaluate([*words, "--images", str(tmp_path / "few"), "--out", str(tmp_path / "few.json")], pipe)
    assert len(list(folder.glob("*.png"))) == 40


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--protocol", "adm"], "out: a protocol needs a file"),
        (["--protocol", "adm", "--out", "report.json"], "needs --reference: statistics of the training pictures"),
        (["--protocol", "adm", "--out", "report.json", "--samples", "3"], "samples must be >= 10"),
        (["--protocol", "adm", "--out", "no/report.json", "--reference", "x"], "the folder of 'no/report.json'"),
        (["--protocol", "adm", "--out", "report.json", "--reference", "x"], "reference must be a folder"),
        (["--protocol", "adm", "--out", "report.json", "--reference", "bad.npz"], "has neither arr_0 nor mu"),
    ],
)
def test_bad_arguments_are_one_sentence_and_nothing_is_sampled(pipe, tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    np.savez("bad.npz", pictures=np.zeros(3))
    with pytest.raises(ValueError, match=says):
        formula.evaluate(words, pipe)
    assert pipe.calls == []


def test_lite0_measures_without_a_download_what_pictures_show(tmp_path):
    extractor = FidelityFeatures(LITE0)
    assert set(extractor.layers.values()) == {"pooled", "logits"} and extractor.layers["isc"] == "logits"
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (12, 40, 40, 3), dtype=np.uint8)
    found = extractor(pictures, clean_resize=False, batch_size=5)
    assert np.allclose(found["pooled"], extract(pictures, lite0_extractor()), atol=1e-5)
    network = load_efficientnet_lite0()
    with torch.no_grad():
        assert np.allclose(found["logits"], network.fc(torch.from_numpy(found["pooled"])).numpy(), atol=1e-5)
    mean, covariance = fidelity.moments(found["pooled"])
    same = fidelity.measure(found, fidelity.ReferenceFeatures(mean, covariance, found, 12), extractor.layers)
    other = extractor(255 - pictures // 4, clean_resize=True)
    moved = fidelity.measure(other, fidelity.ReferenceFeatures(mean, covariance, found, 12), extractor.layers)
    assert abs(same.fid) < 1e-3 < 1 < moved.fid and same.precision == 1 > moved.precision


def test_weights_that_cannot_be_downloaded_name_the_file_and_the_option(monkeypatch):
    def offline(name, layers, **options):
        raise URLError("Name or service not known")

    monkeypatch.setattr(fidelity, "create_feature_extractor", offline)
    with pytest.raises(ValueError, match=r"get weights-inception-2015-12-05-6726825d.pth .* --inception-weights FILE"):
        FidelityFeatures()
    with pytest.raises(ValueError, match="extractor must be one of .*inception-v3-compat.*, got 'eye'"):
        FidelityFeatures("eye")


def test_weights_from_a_local_file_are_read_safely(tmp_path):
    torch.save({"weight": torch.zeros(2)}, tmp_path / "good.pth")
    check_weights(tmp_path / "good.pth")
    torch.save(Path("anything"), tmp_path / "hostile.pth")
    with pytest.raises(ValueError, match="not a file of plain tensors"):
        check_weights(tmp_path / "hostile.pth")
    with pytest.raises(ValueError, match="is not a file"):
        check_weights(tmp_path / "missing.pth")


def test_too_few_samples_are_a_warning_with_the_number():
    assert too_few(10_240, 2048) is None
    assert "n = 2000 samples are too few for a stable FID of 2048 features (at least 10240)" in too_few(2000, 2048)


def test_clean_resizing_keeps_a_constant_and_does_not_alias():
    grey = np.full((1, 16, 16, 3), 77, np.uint8)
    assert (resize_cleanly(grey, 24) == 77).all()
    stripes = np.zeros((1, 64, 64, 3), np.uint8)
    stripes[:, :, ::2] = 255
    small = resize_cleanly(stripes, 16)
    assert small.std() < 10 and abs(small.mean() - 127) < 3


def test_labels_of_the_protocols():
    balanced = draw_labels("balanced", 1000, 50_000, seed=0)
    assert describe_counts(balanced, 1000) == "1000 classes x 50 images"
    assert not np.array_equal(balanced[:1000], np.sort(balanced[:1000]))
    assert np.array_equal(balanced, draw_labels("balanced", 1000, 50_000, seed=0))
    uniform = np.bincount(draw_labels("uniform", 10, 10_000, seed=1))
    assert uniform.std() > 5 and abs(uniform - 1000).max() < 150
