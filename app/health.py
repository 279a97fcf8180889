"""The health of the page for whoever watches the server: GET /health answers while pictures are being made."""

import time
from typing import Any

import gradio as gr
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

import pgm_image
from app.limits import Limits
from app.models import Models
from app.run_control import WORKER
from pgm.devices import resolve_device

PATH = "/health"


def report(page: gr.Blocks, models: Models, limits: Limits, started: float) -> dict[str, Any]:
    """What /health answers; `started` is a reading of `time.monotonic`."""
    line = page._queue.event_queue_per_concurrency_id.get(WORKER)  # Gradio has no public door to its queue
    return {
        "status": "ok",
        "version": pgm_image.__version__,
        "device": str(resolve_device(None)),
        "uptime_seconds": round(time.monotonic() - started, 1),
        "models": {"available": models.names(), "loaded": models.loaded(), "most_loaded": limits.max_models},
        "queue": {
            "running": line.current_concurrency if line else 0,
            "waiting": len(line.queue) if line else 0,
            "workers": limits.workers,
            "room": limits.queue_size,
        },
    }


def health_route(page: gr.Blocks, models: Models, limits: Limits) -> Route:
    """The route, for the server that `page` is launched on."""
    started = time.monotonic()

    async def health(request: Request) -> JSONResponse:
        return JSONResponse(report(page, models, limits, started), headers={"Cache-Control": "no-store"})

    return Route(PATH, health, methods=["GET"])
