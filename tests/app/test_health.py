"""What the page tells a watchdog, and the switch that makes its endpoints MCP tools."""

import asyncio
import io
import re
import subprocess
import sys
import time
from pathlib import Path

import gradio as gr
import httpx
import pytest
from gradio_client import Client

from app.edit_endpoint import ARGUMENTS as EDITED
from app.endpoints import ARGUMENTS as GENERATED
from app.environment import mcp_wanted
from app.limits import Limits
from app.page import build, launch_settings
from pgm_image.metadata import read_settings

ROOT = Path(__file__).resolve().parents[2]


def health(served) -> dict:
    answer = httpx.get(f"{served.url}health", timeout=10)
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store"
    return answer.json()


def test_a_page_at_rest_is_well(served):
    report = health(served)
    assert report["status"] == "ok" and report["device"] in ("cpu", "cuda", "mps") and report["uptime_seconds"] >= 0
    assert report["models"] == {"available": ["fake"], "loaded": ["fake"], "most_loaded": Limits().max_models}
    assert report["queue"] == {"running": 0, "waiting": 0, "workers": 1, "room": 32}


def test_health_answers_while_pictures_are_made_and_counts_those_who_wait(served):
    client = Client(served.url, verbose=False)
    jobs = [client.submit(class_id="owl", steps=64, api_name="/generate_steps") for _ in range(3)]
    try:
        end = time.monotonic() + 20
        while (report := health(served)["queue"])["waiting"] != 2:
            assert time.monotonic() < end, report
        assert report["running"] == 1
        ran = served.pipeline.steps_run
        asked = time.monotonic()
        health(served)
        assert time.monotonic() - asked < 3
        assert served.pipeline.running == 1 and served.pipeline.steps_run >= ran
    finally:
        for job in jobs:
            job.cancel()
    end = time.monotonic() + 20
    while (report := health(served)["queue"])["waiting"] or report["running"]:
        assert time.monotonic() < end, report
        time.sleep(0.05)


def test_health_can_only_be_read(served):
    assert httpx.post(f"{served.url}health", timeout=10).status_code == 405
    assert httpx.head(f"{served.url}health", timeout=10).status_code == 200


@pytest.mark.parametrize(("value", "wanted"), [("", False), ("False", False), ("0", False)])
def test_there_are_no_mcp_tools_unless_asked_for(value, wanted):
    assert mcp_wanted({"GRADIO_MCP_SERVER": value}) is wanted
    assert mcp_wanted({}) is False


def test_without_the_package_one_sentence_says_what_to_install(pipeline, monkeypatch):
    monkeypatch.setitem(sys.modules, "mcp", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("GRADIO_MCP_SERVER", "True")
    page = build(pipelines={"fake": pipeline})
    with pytest.raises(ValueError, match=r"^GRADIO_MCP_SERVER needs the package mcp.*pip install 'gradio\[mcp\]'$"):
        launch_settings(page)


def test_the_start_file_says_it_without_a_traceback():
    program = (
        "import sys, types, runpy\n"
        "page = types.ModuleType('app.page')\n"
        "page.build = lambda: None\n"
        "def settings(demo): raise ValueError('one sentence')\n"
        "page.launch_settings = settings\n"
        "sys.modules['app.page'] = page\n"
        "package = types.ModuleType('app'); package.__path__ = []\n"
        "sys.modules['app'] = package\n"
        "runpy.run_path(sys.argv[1], run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(ROOT / "app.py")], capture_output=True, text=True)
    assert done.returncode == 1 and done.stderr == "one sentence\n"


def test_endpoints_are_mcp_tools_that_read_well(pipeline, monkeypatch):
    pytest.importorskip("mcp", reason="gradio[mcp] is not installed")
    monkeypatch.setenv("GRADIO_MCP_SERVER", "True")
    page = build(pipelines={"fake": pipeline})
    assert launch_settings(page)["mcp_server"] is True
    page.launch(**launch_settings(page), prevent_thread_lock=True, quiet=True, inbrowser=False, ssr_mode=False)
    try:
        tools = {tool["name"]: tool for tool in httpx.get(f"{page.local_url}gradio_api/mcp/schema", timeout=20).json()}
        assert sorted(tools) == ["edit", "generate", "generate_steps", "text", "text_steps"]
        for name, arguments in (("generate", GENERATED), ("edit", EDITED)):
            properties = tools[name]["inputSchema"]["properties"]
            assert list(properties) == [one.name for one in arguments]
            for one in arguments:
                assert one.meaning in properties[one.name]["description"]
            assert "recommended settings" in tools[name]["description"]
        addresses = asyncio.run(drawn_by_mcp(f"{page.local_url}gradio_api/mcp/"))
        pictures = [read_settings(io.BytesIO(httpx.get(one, timeout=20).content)) for one in addresses]
        assert [(one["class_id"], one["steps"], one["seed"]) for one in pictures] == [("owl", 2, 7), ("owl", 2, 8)]
    finally:
        page.close(verbose=False)


async def drawn_by_mcp(address: str) -> list[str]:
    """Addresses of the pictures that the tool `generate` returns to a client of the protocol."""
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client

    async with streamablehttp_client(address) as (read, write, _), ClientSession(read, write) as session:
        await session.initialize()
        answer = await session.call_tool("generate", {"class_id": "owl", "num_images": 2, "steps": 2, "seed": 7})
        assert not answer.isError, answer
        return re.findall(r"'url': '(http[^']+\.png)'", answer.content[0].text)


def test_gradio_is_told_of_the_switch(pipeline, monkeypatch):
    monkeypatch.delenv("GRADIO_MCP_SERVER", raising=False)
    page = build(pipelines={"fake": pipeline})
    assert isinstance(page, gr.Blocks) and launch_settings(page)["mcp_server"] is False
