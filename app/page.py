"""The page: head, tabs, public endpoints, queue, and the settings it is launched with."""

from collections.abc import Mapping
from typing import Any

import gradio as gr

from app.about import build_about
from app.compare_tab import build_compare_tab
from app.edit_endpoint import build_edit_endpoint
from app.edit_tab import build_edit_tab
from app.endpoints import build_endpoints
from app.image_tab import build_image_tab
from app.limits import Limits
from app.models import ImagePipeline, Models
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


def build(pipelines: Mapping[str, ImagePipeline] | None = None, limits: Limits | None = None) -> gr.Blocks:
    """The whole page. `pipelines` (name -> pipeline) replaces the models of `pgm_image`; tests use it."""
    limits = limits or Limits.from_environment()
    models = Models(pipelines)
    names = models.names()
    models.pipeline(names[0])  # loaded before the first visitor comes, and where ZeroGPU wants it
    with gr.Blocks(
        title=TITLE, fill_width=True, delete_cache=(max(limits.cache_seconds // 6, 1), limits.cache_seconds)
    ) as page:
        with gr.Row(elem_id="top"):
            gr.HTML(BRAND, js_on_load=None, apply_default_css=False)
            model = gr.Dropdown(
                [(models.info(name).title, name) for name in names],
                value=names[0],
                show_label=False,
                label="Model",
                container=False,
                elem_id="image-model",
                interactive=len(names) > 1,
            )
        with gr.Tabs():
            with gr.Tab("Image", id="image"):
                image = build_image_tab(models, limits, model)
            with gr.Tab("Edit", id="edit"):
                build_edit_tab(models, limits, model, image)
            with gr.Tab("Compare", id="compare"):
                build_compare_tab(models, limits, model, image.history)
            with gr.Tab("Tokens", id="tokens"):
                build_tokens_tab(models, limits, model, image.session)
            with gr.Tab("About", id="about-tab"):
                build_about(models.info(names[0]).credits)
        build_endpoints(models, limits)
        build_edit_endpoint(models, limits)

        def forget(request: gr.Request) -> None:
            """Drop what is held of a visitor who has left; Gradio itself would keep it for another hour."""
            session = page.app.state_holder.session_data.get(request.session_hash)
            if session is not None:
                session.state_data.clear()
                session.config_values.clear()

        page.unload(forget)
    return page.queue(max_size=limits.queue_size, default_concurrency_limit=4)


def launch_settings() -> dict[str, Any]:
    """Keyword arguments for `launch`. Host and port are left to Gradio's environment variables (default: local)."""
    return {
        "theme": theme(),
        "head": head(),
        "footer_links": ["api"],
        "allowed_paths": [],
        "max_file_size": "20mb",
        "show_error": False,
    }
