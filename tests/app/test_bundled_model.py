"""The page over a real pipeline: a tiny one with random weights, bundled like the model that ships."""

import io
import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import httpx
import numpy as np
import pytest
import torch
from PIL import Image
from tiny_pipeline import tiny_pipeline

from app.compare import ORDERS, TWIN, in_step, sides
from app.downloads import save
from app.limits import Limits
from app.models import Models
from app.page import build
from app.reveal import reveal
from app.settings import Settings
from app.tokens import similar
from app.tokens_tab import take
from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig
from pgm_image import registry
from pgm_image.pipeline import PGMPipeline

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = Settings("emoji64", "bird", "ink", num_images=2, steps=5, seed=3, guidance_scale=1.0)


@pytest.fixture(scope="module")
def assets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("assets")
    tiny_pipeline().save_pretrained(folder / "emoji64")
    return folder


@pytest.fixture
def bundled(assets, monkeypatch):
    monkeypatch.setattr(registry, "ASSETS", assets)
    registry._load.cache_clear()
    yield
    registry._load.cache_clear()


def test_a_reveal_of_the_bundled_model_ends_in_what_generate_returns(bundled):
    pipeline = Models().pipeline("emoji64")
    *_, value = reveal(pipeline, SETTINGS)
    assert value["done"] and len(value["steps"]) == 5
    expected = pipeline.generate(**SETTINGS.arguments())
    for picture in range(2):
        name, _, content = save(value, "png", picture, 4)
        assert name == f"bird-ink-seed{3 + picture}.png"
        assert np.array_equal(np.asarray(Image.open(io.BytesIO(content))), np.asarray(expected[picture]))


def test_a_reveal_keeps_no_gradients(bundled):
    pipeline = Models().pipeline("emoji64")
    for _ in reveal(pipeline, SETTINGS):
        pass
    assert torch.is_grad_enabled()
    assert all(weight.grad is None for weight in pipeline.transformer.parameters())


def test_the_page_is_built_from_the_models_own_card(bundled):
    page = build(limits=Limits())
    values = {block.elem_id: block for block in page.blocks.values() if getattr(block, "elem_id", None)}
    assert values["image-steps"].value == 4 and values["image-steps"].maximum == 16
    assert [name for name, _ in values["image-class"].choices] == ["Anything", "bird", "fish"]


def test_a_real_model_and_its_twin_go_in_step_and_the_partition_model_computes_less(bundled):
    pipeline = Models().pipeline("emoji64")
    network = MaskedTransformer(
        MaskedTransformerConfig(codebook_size=32, grid=4, width=16, layers=2, heads=2, num_classes=2, num_styles=2)
    )
    info = replace(pipeline.info, name="twin", architecture="maskgit")
    models = Models({"emoji64": pipeline, "twin": PGMPipeline(network, pipeline.tokenizer, info)})
    settings = replace(SETTINGS, num_images=1)
    *_, value = in_step(models, sides(models, TWIN, settings))
    ours, theirs = value["sides"]
    assert [len(side["steps"]) for side in value["sides"]] == [5, 5]
    assert [step["known"] for step in ours["steps"]] == [step["known"] for step in theirs["steps"]]
    assert ours["steps"][-1]["computed"] < theirs["steps"][-1]["computed"] == theirs["steps"][-1]["masked"]
    *_, alone = reveal(pipeline, settings)
    assert ours["steps"][-1]["codes"] == alone["steps"][-1]["codes"], "company changes nothing"
    assert "encoded" not in value["summary"]
    once = replace(settings, encoder_refresh=5, steps=5)
    *_, value = in_step(Models({"emoji64": pipeline}), sides(Models({"emoji64": pipeline}), ORDERS, once))
    assert value["summary"].endswith("each code encoded once")


def test_the_real_tokenizer_reads_what_the_model_drew(bundled):
    models = Models()
    *_, value = reveal(models.pipeline("emoji64"), SETTINGS)
    seen = take(models, value, {"picture": 1, "step": 4})
    assert seen["grid"] == [4, 4] and len(seen["codes"]) == 16 and 0 <= seen["agreeing"] <= 16
    entries = similar(models.pipeline("emoji64"), seen["codes"][0])["entries"]
    assert entries[0]["code"] == seen["codes"][0] and len(entries) == 9


def test_no_bundled_model_is_one_clear_sentence(tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "ASSETS", tmp_path)
    with pytest.raises(ValueError, match="no model is bundled"):
        build()


RUNNING = re.compile(r"Running on local URL:\s+(http://127\.0\.0\.1:\d+)")
GRADIO = "import sys; from gradio.cli import cli; sys.argv = ['gradio', 'app.py']; cli()"


@pytest.mark.parametrize("command", [["app.py"], ["-c", GRADIO]], ids=["python", "gradio"])
def test_both_ways_of_starting_serve_the_page_even_where_the_port_is_taken(assets, tmp_path, command):
    (tmp_path / "sitecustomize.py").write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(ROOT)!r})\n"
        "from pathlib import Path\n"
        "from pgm_image import registry\n"
        f"registry.ASSETS = Path({str(assets)!r})\n"
    )
    taken = socket.create_server(("127.0.0.1", 0))
    environment = {
        **os.environ,
        "PYTHONPATH": str(tmp_path),
        "PYTHONUNBUFFERED": "1",
        "OMP_NUM_THREADS": "1",
        "GRADIO_SERVER_PORT": str(taken.getsockname()[1]),
    }
    log = open(tmp_path / "log.txt", "w+")  # noqa: SIM115  outlives the process
    process = subprocess.Popen(
        [sys.executable, *command], cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True
    )
    try:
        deadline = time.monotonic() + 180
        while (address := RUNNING.search(Path(log.name).read_text())) is None:
            assert process.poll() is None and time.monotonic() < deadline, Path(log.name).read_text()
            time.sleep(0.25)
        answer = httpx.get(f"{address[1]}/config", timeout=60)
        assert answer.json()["title"] == "PGM image"
    finally:
        os.killpg(process.pid, 15)
        process.wait(20)
        taken.close()
        log.close()
    assert "Traceback" not in Path(log.name).read_text()
