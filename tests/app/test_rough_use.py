"""Two hundred requests in the queue, with people who stop or leave in between: every answer is right, none is lost, and
nothing is kept of anybody.
"""

import asyncio
import gc
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from gradio_client import Client

from app.endpoints import ARGUMENTS
from app.reveal import decoded

CASES = [(name, seed) for name in ("cat", "owl", "sun", "whale") for seed in (1, 2)]
VISITORS = 40
WAYS = ("waits", "stops", "waits", "waits", "leaves")  # what each of them asks for, one after the other, and does then
MEMORY = Path("/proc/self/statm")
MEGABYTE = 2**20


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


def resident() -> int:
    """Bytes of memory this process holds; 0 where that cannot be told."""
    return int(MEMORY.read_text().split()[1]) * 4096 if MEMORY.exists() else 0


def case(number: int, turn: int) -> tuple[str, int]:
    """What visitor `number` asks for at their `turn`."""
    return CASES[(number + turn) % len(CASES)]


async def asked(client: httpx.AsyncClient, url: str, session: dict[str, Any], wanted: tuple[str, int], way: str) -> Any:
    """One request, made as the page makes it: its last record, or None when it was not waited for."""
    values = {"class_id": wanted[0], "seed": wanted[1], "steps": 2, "guidance_scale": 0}
    data = [values.get(one.name, one.value) for one in ARGUMENTS]
    joined = await client.post(f"{url}gradio_api/queue/join", json={"data": data, **session})
    event = joined.json()["event_id"]
    address = f"{url}gradio_api/queue/data?session_hash={session['session_hash']}"
    async with client.stream("GET", address) as messages:
        async for line in messages.aiter_lines():
            message = json.loads(line.removeprefix("data:")) if line.startswith("data:") else {}
            if message.get("event_id") != event:
                continue
            if message["msg"] == "process_completed":
                assert message["success"], message
                return message["output"]["data"][0] if way == "waits" else None
            if way == "leaves":
                return None
            if way == "stops":
                await client.post(f"{url}gradio_api/cancel", json={"event_id": event, **session})
    raise AssertionError("the answer was lost")


async def crowd(url: str, function: int, numbers: range) -> dict[tuple[int, int], Any]:
    """All visitors at once: answers by (visitor, turn)."""
    answers = {}

    async def visitor(client: httpx.AsyncClient, number: int) -> None:
        session = {"session_hash": f"visitor-{number}", "fn_index": function}
        for turn, way in enumerate(WAYS):
            answers[number, turn] = await asked(client, url, session, case(number, turn), way)

    async with httpx.AsyncClient(timeout=None, limits=httpx.Limits(max_connections=None)) as client:
        await asyncio.gather(*(visitor(client, number) for number in numbers))
    return answers


def test_two_hundred_requests_with_people_who_stop_or_leave_in_between(patient):
    pipeline, queue = patient.pipeline, patient.page._queue
    [function] = [key for key, fn in patient.page.fns.items() if fn.api_name == "generate_steps"]
    expected = {
        (name, seed): np.asarray(pipeline.pictures(name, seed=seed, steps=2, guidance_scale=0)[0])
        for name, seed in CASES
    }
    asyncio.run(crowd(patient.url, function, range(1000, 1005)))  # what is made once and for all
    gc.collect()
    before = resident()
    answers = asyncio.run(crowd(patient.url, function, range(VISITORS)))
    assert len(answers) == VISITORS * len(WAYS) == 200
    for (number, turn), record in answers.items():
        if WAYS[turn] != "waits":
            assert record is None
            continue
        assert (record["index"], record["known"]) == (1, 256)
        assert np.array_equal(np.asarray(decoded(record["previews"][0])), expected[case(number, turn)]), number
    wait_until(lambda: len(queue) == 0 and not any(queue.active_jobs))
    assert pipeline.most_running == 1 and pipeline.running == 0 and pipeline.started == pipeline.closed
    assert len(patient.page.app.state_holder.session_data) <= patient.page.limits.max_sessions
    del answers, record
    gc.collect()
    assert resident() - before < 32 * MEGABYTE
    assert len(Client(patient.url, verbose=False).predict(class_id="owl", api_name="/generate")) == 1
