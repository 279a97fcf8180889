"""The page: head, tabs, public endpoints, queue, and the settings it is launched with."""

from collections.abc import Mapping
from typing import Any

import gradio as gr
from starlette.routing import Route

from app.about import build_about
from app.class_pictures import class_pictures, class_pictures_route, sheets_of
from app.compare_tab import build_compare_tab
from app.edit_endpoint import build_edit_endpoint
from app.edit_tab import build_edit_tab
from app.endpoints import build_endpoints
from app.environment import mcp_wanted, on_zero_gpu
from app.health import health_route
from app.image_tab import build_image_tab
from app.limits import Limits
from app.models import ImagePipeline, Models
from app.record import Record, record
from app.run_control import PRIVATE
from app.text_endpoint import build_text_endpoints
from app.text_models import TextModels, TextPipeline
from app.text_tab import build_text_tab
from app.theme import head, theme
from app.tokens_tab import build_tokens_tab

TITLE = "PGM image"
BRAND = """
<div class="brand">
  <svg viewBox="0 0 28 28" aria-hidden="true">
    <rect x="1" y="1" width="8" height="8" rx="1.5"/><rect x="19" y="1" width="8" height="8" rx="1.5"/>
    <rect x="10" y="10" width="8" height="8" rx="1.5"/><rect x="1" y="19" width="8" height="8" rx="1.5"/>
    <rect class="later" x="10" y="1" width="8" height="8" rx="1.5"/>
    <rect class="later" x="19" y="19" width="8" height="8" rx="1.5"/>
  </svg>
  <div><b>PGM image</b><span>Watch a picture being thought of, a few codes at a time</span></div>
</div>
"""


class Page(gr.Blocks):
    """The page with what it is launched with: routes beside Gradio's own, and the limits it was built for."""

    routes: list[Route]
    limits: Limits


def build(
    pipelines: Mapping[str, ImagePipeline] | None = None,
    limits: Limits | None = None,
    absent: Mapping[str, str] | None = None,
    text_pipelines: Mapping[str, TextPipeline] | None = None,
) -> Page:
    """The whole page. `pipelines` (name -> pipeline) replaces the models of `pgm_image`, and `absent` (name -> reason)
    those that are shown but cannot be chosen, `text_pipelines` the models of `pgm_text`; tests use them.
    """
    limits = limits or Limits.from_environment()
    models = Models(pipelines, absent, limits.max_models)
    texts = TextModels(text_pipelines)
    names = models.names()
    # ZeroGPU gives each run a process of its own, where a model that is loaded then is lost again when the run ends.
    if on_zero_gpu():
        models.warm_up(limits.max_models, steps=0)
        texts.warm_up()
    else:
        models.warm_up(min(limits.warm_models, limits.max_models), limits.warm_steps)
    with Page(
        title=TITLE, fill_width=True, delete_cache=(max(limits.cache_seconds // 6, 1), limits.cache_seconds)
    ) as page:
        with gr.Row(elem_id="top"):
            gr.HTML(BRAND, js_on_load=None, apply_default_css=False)
            model = gr.Dropdown(
                [(models.title(name), name) for name in (*names, *models.absent())],
                value=names[0],
                show_label=False,
                label="Model",
                container=False,
                elem_id="image-model",
                interactive=len(names) + len(models.absent()) > 1,
            )
            model_picker(models)
            sheets = sheets_of(models)
            class_pictures(models, sheets)
            model.change(None, model, None, js="(name) => { pgm.drawnBy(name); }", **PRIVATE)
        with gr.Tabs():
            with gr.Tab("Image", id="image"):
                image = build_image_tab(models, limits, model)
            with gr.Tab("Edit", id="edit"):
                build_edit_tab(models, limits, model, image)
            with gr.Tab("Compare", id="compare"):
                build_compare_tab(models, limits, model, image.history)
            with gr.Tab("Text", id="text", elem_id="text-tab"):
                build_text_tab(texts, limits)
            with gr.Tab("Tokens", id="tokens"):
                build_tokens_tab(models, limits, model, image.session)
            with gr.Tab("About", id="about-tab"):
                build_about(models, texts)
        build_endpoints(models, limits)
        build_edit_endpoint(models, limits)
        build_text_endpoints(texts, limits)

        def forget(request: gr.Request) -> None:
            """Drop what is held of a visitor who has left; Gradio itself would keep it for another hour."""
            session = page.app.state_holder.session_data.get(request.session_hash)
            if session is not None:
                session.state_data.clear()
                session.config_values.clear()

        page.unload(forget)
    page.limits = limits
    page.routes = [health_route(page, models, limits), class_pictures_route(sheets)]
    return page.queue(max_size=limits.queue_size, default_concurrency_limit=4)


def model_picker(models: Models) -> Record:
    """Greys the models that cannot be chosen in the menu of the page's head and gives the reason there."""
    absent = {models.title(name): reason for name, reason in models.absent().items()}
    return record(None, ("model_picker.js",), "mountModelPicker(props)", "model-picker", absent=absent)


def launch_settings(page: Page) -> dict[str, Any]:
    """Keyword arguments for `page.launch`. Host and port are left to Gradio's environment variables (default: local).

    Raises ValueError when GRADIO_MCP_SERVER asks for what is not installed.
    """
    return {
        "theme": theme(),
        "head": head(),
        "footer_links": ["api"],
        "allowed_paths": [],
        "state_session_capacity": page.limits.max_sessions,
        "max_file_size": f"{page.limits.max_upload_mb}mb",
        "mcp_server": mcp_wanted(),
        "app_kwargs": {"routes": page.routes},
        "show_error": False,
    }
