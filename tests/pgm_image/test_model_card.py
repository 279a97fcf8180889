"""A model card repeats what was measured."""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

from PIL import Image

from pgm_image.__main__ import main
from pgm_image.pipeline import PGMPipeline

DISTANCES = {"kid": 81.25, "kid_std": 1.5, "fid": 140.2, "n": 200, "fid_note": "small"}
ACCURACY = {"top1": 0.25, "top5": 0.5, "top1_class_mean": 0.2, "n": 200}
REPORT = {
    "protocol": {
        "settings": {"steps": 16, "sampler": "halton", "top_k": None},
        "samples": 200,
        "reference": "200 drawings",
        "distance_features": "lite0",
        "recognition_features": "MobileNetV2",
    },
    "distances": DISTANCES,
    "ceiling": {**DISTANCES, "kid": 2.5, "fid": None},
    "probe": {
        "class_generated": ACCURACY,
        "class_heldout": {**ACCURACY, "top1": 0.56},
        "style_generated": ACCURACY,
        "style_heldout": ACCURACY,
    },
    "nearest": [{"space": "pixels", "share_below_1": 0.03}],
}
RECOGNITION = {"class_original": 0.92, "class_reconstructed": 0.72, "style_original": 0.7, "style_reconstructed": 0.47}
TOKENIZER = {
    "psnr": 24.5,
    "l1": 6.1,
    "usage": 0.99,
    "perplexity": 700.0,
    "distances": DISTANCES,
    "recognition": [{"images": "training concepts", "n": 24, **RECOGNITION}],
}


def test_the_card_holds_the_measured_numbers(pipeline: PGMPipeline, tmp_path):
    model, run = tmp_path / "model", tmp_path / "run"
    pipeline.info = replace(pipeline.info, editing={"temperature": 0.6})
    pipeline.save_pretrained(model)
    run.mkdir()
    lines = [{"step": 10, "loss": 6.0}, {"step": 20, "loss": 5.0}, {"step": 20, "held_out_loss": 5.5}]
    (run / "metrics.jsonl").write_text("\n".join(map(json.dumps, lines)))
    for name, content in (("report", REPORT), ("vq", TOKENIZER)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    (tmp_path / "training.md").write_text("Two cores, 95 minutes.")
    arguments = ["--report", str(tmp_path / "report.json"), "--tokenizer-report", str(tmp_path / "vq.json")]
    arguments += ["--run", str(run), "--training", str(tmp_path / "training.md")]
    Image.new("RGB", (8, 8)).save(tmp_path / "twelve.png")
    arguments += ["--pairs", str(tmp_path / "twelve.png")]
    assert main(["card", "--model", str(model), *arguments]) == 0
    card = (model / "README.md").read_text()
    for expected in ("81.2 ± 1.5", "2.5 ± 1.5", "25.0%", "56.0%", "3.0%", "24.50 dB", "95 minutes", "steps 16", "tiny"):
        assert expected in card
    assert "top_k" not in card and "Where a picture is edited, temperature 0.6 instead." in card
    assert (
        "Of 24 reconstructions of training concepts the class of 72.0% is recognised (of the originals 92.0%)" in card
    )
    assert json.loads((model / "evaluation.json").read_text())["model"] == REPORT
    ElementTree.parse(model / "curve.svg")
    assert "## Closest pairs" in card and Image.open(model / "pairs.png").size == (8, 8)
    assert all((model / name).is_file() for name in re.findall(r"\]\((\S+?)\)", card) if ":" not in name)
