"""The page as a server: who may call what, in which order people are served, what is left behind."""

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from gradio_client import Client
from PIL import Image

from app.edit_endpoint import ARGUMENTS as EDITED
from app.endpoints import ARGUMENTS as GENERATED
from app.limits import Limits
from app.page import build, launch_settings
from app.run_control import WORKER
from app.settings import Settings
from pgm_image.metadata import read_settings

ROOT = Path(__file__).resolve().parents[2]


def wait_until(condition, seconds=10.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.02)


def arguments(**changes):
    names = [
        "class_id",
        "style",
        "num_images",
        "steps",
        "sampler",
        "guidance_scale",
        "temperature",
        "top_k",
        "seed",
        "model",
    ]
    values = {"class_id": "cat", "style": "", "num_images": 1, "seed": 0, "sampler": "", "model": "", **changes}
    return [values.get(name) for name in names]


def test_only_the_named_endpoints_are_public(served):
    endpoints = Client(served.url, verbose=False).view_api(return_format="dict")
    assert sorted(endpoints["named_endpoints"]) == ["/edit", "/generate", "/generate_steps", "/text", "/text_steps"]
    assert not endpoints["unnamed_endpoints"]


def test_a_program_finds_every_argument_named_and_explained(served):
    endpoints = Client(served.url, verbose=False).view_api(return_format="dict")["named_endpoints"]
    for name, arguments in (("/generate", GENERATED), ("/generate_steps", GENERATED), ("/edit", EDITED)):
        parameters = endpoints[name]["parameters"]
        assert [one["parameter_name"] for one in parameters] == [one.name for one in arguments]
        assert [one["label"] for one in parameters] == [one.meaning for one in arguments]
        assert len(endpoints[name]["description"]) > 80 and "Args" not in endpoints[name]["description"]
        required = [one["parameter_name"] for one in parameters if not one["parameter_has_default"]]
        assert required == [one.name for one in arguments if one.required]


def test_a_program_may_leave_out_everything_but_the_class(served):
    [drawn] = Client(served.url, verbose=False).predict(class_id="owl", api_name="/generate")
    settings = read_settings(drawn["image"])
    assert (settings["steps"], settings["guidance_scale"], settings["seed"]) == (16, 2.0, 0)


def test_every_event_that_uses_the_model_shares_one_queue(pipeline):
    page = build(pipelines={"fake": pipeline})
    heavy = [fn for fn in page.fns.values() if fn.concurrency_id == WORKER]
    assert {fn.concurrency_limit for fn in heavy} == {Limits().workers}
    public = sorted(fn.api_name for fn in heavy if fn.api_visibility == "public")
    assert public == ["edit", "generate", "generate_steps", "text", "text_steps"]
    assert {fn.api_visibility for fn in page.fns.values() if fn.api_name not in public} == {"private"}


def test_generate_returns_png_files_with_their_settings(served):
    paths = Client(served.url, verbose=False, download_files=True).predict(
        *arguments(num_images=2, steps=4, seed=5, style="Ink"), api_name="/generate"
    )
    files = [Path(item["image"]) for item in paths]
    assert [path.suffix for path in files] == [".png", ".png"]
    pictures = served.pipeline.pictures("cat", style="Ink", num_images=2, steps=4, seed=5)
    for i, (path, expected) in enumerate(zip(files, pictures, strict=True)):
        assert np.array_equal(np.asarray(Image.open(path).convert("RGB")), np.asarray(expected))
        settings = read_settings(path)
        assert (settings["seed"], settings["steps"], settings["class_id"]) == (5 + i, 4, "cat")


def test_generate_steps_streams_one_record_per_step(served):
    job = Client(served.url, verbose=False).submit(*arguments(steps=5), api_name="/generate_steps")
    job.result(timeout=20)
    records = job.outputs()
    assert [record["index"] for record in records] == [0, 1, 2, 3, 4]
    assert records[-1]["known"] == 256


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"class_id": "no such"}, "no such"),
        ({"num_images": 10_000}, "How many must be"),
        ({"model": "../x"}, "model must be one of"),
        ({"model": "/etc"}, "model must be one of"),
        ({"seed": -4}, "Seed must be"),
    ],
)
def test_a_program_gets_one_clear_message(served, changes, words):
    with pytest.raises(Exception, match=words):
        Client(served.url, verbose=False).predict(*arguments(**changes), api_name="/generate")


def test_cancelling_closes_the_generator(served):
    before = served.pipeline.closed
    job = Client(served.url, verbose=False).submit(*arguments(steps=200), api_name="/generate_steps")
    wait_until(lambda: len(job.outputs()) > 2)
    job.cancel()
    wait_until(lambda: served.pipeline.closed > before)
    steps = served.pipeline.steps_run
    time.sleep(0.4)
    assert served.pipeline.steps_run == steps and served.pipeline.running == 0


def test_two_people_are_served_one_after_the_other(served):
    served.pipeline.most_running = 0
    jobs = [
        Client(served.url, verbose=False).submit(*arguments(steps=6, class_id=name), api_name="/generate_steps")
        for name in ("cat", "owl", "sun")
    ]
    for job in jobs:
        job.result(timeout=30)
        assert [record["index"] for record in job.outputs()] == list(range(6))
    assert served.pipeline.most_running == 1


PATHS = ["../../etc/passwd", "/etc/passwd", "..%2f..%2fetc%2fpasswd", str(ROOT / "pyproject.toml")]


@pytest.mark.parametrize("path", PATHS)
def test_no_file_of_the_server_can_be_read(served, path):
    answer = httpx.get(f"{served.url}gradio_api/file={path}", timeout=20)
    assert answer.status_code >= 400
    assert "root:" not in answer.text and "[project]" not in answer.text


def test_the_launch_leaves_host_and_port_to_the_environment(pipeline):
    settings = launch_settings(build(pipelines={"fake": pipeline}))
    assert not {"server_name", "server_port", "share"} & set(settings)
    assert settings["allowed_paths"] == []


def test_analytics_are_off_unless_asked_for():
    import app  # noqa: F401

    assert os.environ["GRADIO_ANALYTICS_ENABLED"] == "False"


def test_building_the_page_generates_nothing(pipeline):
    build(pipelines={"fake": pipeline})
    assert pipeline.started == 0


def test_spaces_is_imported_before_torch_touches_a_gpu(tmp_path):
    (tmp_path / "spaces.py").write_text(
        "import sys\n"
        "assert 'torch' not in sys.modules or not sys.modules['torch'].cuda.is_initialized()\n"
        "asked = []\n"
        "def GPU(duration):\n"
        "    asked.append(duration)\n"
        "    return lambda function: function\n"
    )
    program = (
        "import sys; sys.path[:0] = [sys.argv[1], sys.argv[2], sys.argv[3]]\n"
        "import app, spaces\n"
        "from fake_pipeline import FakePipeline\n"
        "from app.page import build\n"
        "from app.run_control import WORKER\n"
        "page = build(pipelines={'fake': FakePipeline()})\n"
        "heavy = [fn for fn in page.fns.values() if fn.concurrency_id == WORKER]\n"
        "assert len(spaces.asked) == len(heavy) >= 3, spaces.asked\n"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path), str(ROOT), str(Path(__file__).parent)],
        check=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


def test_the_start_file_is_a_package_too_when_gradio_reloads_it():
    text = (ROOT / "app.py").read_text(encoding="utf-8")
    program = (
        "import sys, types\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "module = types.ModuleType('app')\n"
        "sys.modules['app'] = module\n"
        "module.__path__ = [sys.argv[1] + '/app']\n"
        "import app.page, app.settings\n"
        "assert app.page.build\n"
    )
    assert "__path__" in text
    subprocess.run([sys.executable, "-c", program, str(ROOT)], check=True, timeout=120)


def test_settings_names_are_arguments_of_the_pipeline(pipeline):
    assert pipeline.request(**Settings("fake", "cat", steps=2).arguments()).sampling.steps == 2


def test_uploads_that_are_too_large_are_refused(served):
    answer = httpx.post(
        f"{served.url}gradio_api/upload", files={"files": ("big.png", io.BytesIO(bytes(21 * 2**20)))}, timeout=30
    )
    assert answer.status_code == 413
