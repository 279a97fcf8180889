"""The About tab: what the page shows, whose artwork the bundled model learned from, and the papers it follows."""

from collections.abc import Iterable, Mapping

import gradio as gr

from app.faults import sentence
from app.models import Models
from app.text_about import text_section
from app.text_models import TextModels
from pgm_image.model_info import ModelInfo
from pgm_image.public_models import PUBLIC_MODELS

TEXT = """
## What you are looking at

A picture is stored as a small grid of *codes*, each the number of an entry in a codebook. A **Partition Generative
Model** fills that grid a few codes at a time, in any order. A masked transformer runs every position at every step,
most of them blank; this model only ever computes on codes it already knows and on those it is about to fill. The
numbers under the timeline count both.

The bundled model is small and draws emoji of 64 × 64 pixels. It has seen drawings only, so everything looks like a
drawing; rare classes are weaker than common ones, and unusual settings give odd pictures. The small pictures in the
class menu are its own, one per class and unpicked.

## Papers

- Partition Generative Modeling: masked modeling without masks — [arXiv 2505.18883](https://arxiv.org/abs/2505.18883)
- Halton scheduler for masked generative image transformers — [arXiv 2503.17076](https://arxiv.org/abs/2503.17076)
- MaskGIT: masked generative image transformer — [arXiv 2202.04200](https://arxiv.org/abs/2202.04200)
- Taming transformers for high-resolution image synthesis (VQGAN) — [arXiv 2012.09841](https://arxiv.org/abs/2012.09841)
- Classifier-free diffusion guidance — [arXiv 2207.12598](https://arxiv.org/abs/2207.12598)

## Artwork
"""
PRIVACY = """
## Your data

Pictures are made on this server and kept in memory only while the tab is open. A picture you upload
is read into memory and its file deleted at once. Past pictures are kept by your own browser and nowhere else; a PNG you
drop on the page for its settings is read there too.
"""


def artwork_table(licences: Iterable[Mapping[str, str]]) -> str:
    """Markdown table of the artwork a model was trained on; each row has style, artwork, licence and source."""
    rows = [
        f"| {row['style']} | [{row['artwork']}]({row['source']}) | {row['licence']} |"
        if row.get("source")
        else f"| {row['style']} | {row['artwork']} | {row['licence']} |"
        for row in licences
    ]
    if not rows:
        return "The model in use names no artwork of its own; see its model card."
    return "\n".join(["| Style | Artwork | Licence |", "|---|---|---|", *rows])


def model_table(models: Models) -> str:
    """Markdown table of the models on this page, and why some cannot be chosen."""
    rows = [f"| {models.title(name)} | {_described(models.info(name))} |" for name in models.names()]
    rows += [f"| {models.title(name)} | {sentence(reason)} |" for name, reason in models.absent().items()]
    table = "\n".join(["\n## Models\n", "| Model | |", "|---|---|", *rows, ""])
    published = [name for name in models.absent() if name in PUBLIC_MODELS]
    return table + (f"\n`python -m pgm_image generate --model {published[0]}` downloads one.\n" if published else "")


def _described(info: ModelInfo) -> str:
    size = f"{info.parameters / 1e6:.1f} M parameters, " if info.parameters else ""
    return f"{size}{info.image_size} × {info.image_size} pixels, {len(info.classes)} classes"


def build_about(models: Models, texts: TextModels) -> None:
    """Lay out the tab inside the current Blocks."""
    with gr.Column(elem_id="about"):
        artwork = artwork_table(models.info(models.names()[0]).credits)
        gr.Markdown(TEXT + artwork + "\n" + model_table(models) + text_section(texts) + PRIVACY)
