"""The card of a converted model: README.md with the front matter that the Hugging Face hub reads."""

from pathlib import Path

from pgm_image.model_info import ModelInfo

PAPERS = {
    "pgm": "Partition Generative Modeling: Masked Modeling Without Masks (arXiv 2505.18883)",
    "maskgit": "Halton Scheduler for Masked Generative Image Transformer (arXiv 2503.17076)",
}


def write_card(folder: str | Path, info: ModelInfo, source: str, half: bool, note: str = "") -> None:
    """Write README.md: what the model is, where it comes from, how to sample it, what is not known of it.

    source: the file it was made from; half: whether the transformer was stored in float16.
    """
    (Path(folder) / "README.md").write_text(card(info, source, half, note), encoding="utf-8")


def card(info: ModelInfo, source: str, half: bool, note: str = "") -> str:
    """The text of the card."""
    settings = "\n".join(f"| {key} | {value} |" for key, value in info.recommended.items())
    published = ", ".join(f"{key}={value!r}" for key, value in info.published.items())
    origin = f" (published as {info.source})" if info.source else ""
    precision = "float16" if half else "the precision of that file"
    lines = [
        "---",
        "license: other",
        f"license_name: {_quoted(info.licence)}",
        "library_name: pgm-image",
        "pipeline_tag: unconditional-image-generation",
        *(["datasets:", "- imagenet-1k"] if len(info.classes) == 1000 else []),
        "tags:",
        f"- {info.architecture}",
        "- class-conditional-image-generation",
        "---",
        "",
        f"# {info.title}",
        "",
        f"{info.parameters / 1e6:.1f} million parameters, {info.image_size} pixels, {info.grid[0]}x{info.grid[1]} "
        f"codes of {info.codebook_size}, {len(info.classes)} classes. Method: {PAPERS[info.architecture]}.",
        "",
        f"Converted from `{source}`{origin}, transformer stored in {precision}. Nothing was trained or changed. "
        f"Licence: {info.licence}.",
        "",
        "## Use",
        "",
        "```python",
        "from pgm_image import PGMPipeline",
        "",
        'pipe = PGMPipeline.from_pretrained("path of this folder")',
        f'pipe({info.classes[min(1, len(info.classes) - 1)]!r}, seed=0)[0].save("picture.png")',
        "```",
        "",
        "## Recommended settings",
        "",
        "Taken where none are given.",
        "",
        "| setting | value |",
        "|---|---|",
        settings,
        "",
        *([f"As the authors' own code samples: `{published}` in addition.", ""] if published else []),
        "## Evaluation and limits",
        "",
        f"FID published by its authors: {info.fid}." if info.fid else "No FID is recorded for this file.",
        *([note] if note else []),
        "It generates classes of its training set only; pictures may carry the biases of that set, and small faces and "
        "text are often malformed.",
        "",
    ]
    return "\n".join(lines)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', "'") + '"'
