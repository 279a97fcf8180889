"""`python -m pgm_image card`: the README of a model folder, from what training and evaluation wrote down."""

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

from pgm.learning_curve import draw_learning_curve
from pgm_image.model_info import ModelInfo, read_info

CURVE = "curve.svg"
PAIRS = "pairs.png"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--model", required=True, type=Path, help="model folder, gets README.md and evaluation.json")
    parser.add_argument("--report", required=True, type=Path, help="JSON of `evaluate --out`")
    parser.add_argument("--run", type=Path, help="folder of the transformer's training run")
    parser.add_argument("--tokenizer-report", type=Path, help="JSON of `evaluate --tokenizer --out`")
    parser.add_argument("--pairs", type=Path, help="picture of the closest pairs, made by `evaluate --pairs`")
    parser.add_argument("--training", type=Path, help="Markdown file: how it was trained, hardware, hours, commands")


def run(args: argparse.Namespace) -> int:
    """Write the card, the curve, the closest pairs and the report beside the weights."""
    info, report = read_info(args.model), json.loads(args.report.read_text())
    tokenizer = json.loads(args.tokenizer_report.read_text()) if args.tokenizer_report else None
    training = args.training.read_text().strip() if args.training else ""
    if args.run:
        (args.model / CURVE).write_text(draw_learning_curve(args.run / "metrics.jsonl", "code"), encoding="utf-8")
        training += f"\n\n![Learning curve]({CURVE})"
    if args.pairs:
        shutil.copyfile(args.pairs, args.model / PAIRS)
    card = model_card(info, report, tokenizer, training, pairs=bool(args.pairs))
    (args.model / "README.md").write_text(card, encoding="utf-8")
    reports = {"model": report, "tokenizer": tokenizer}
    (args.model / "evaluation.json").write_text(json.dumps(reports, indent=1) + "\n")
    print(args.model / "README.md")
    return 0


def model_card(
    info: ModelInfo, report: dict[str, Any], tokenizer: dict[str, Any] | None, training: str, pairs: bool = False
) -> str:
    """Markdown with the header the hub reads; every number comes from the reports. pairs: show `PAIRS`."""
    sections = [
        _header(info),
        f"# {info.name}\n\n{info.title}. {info.parameters / 1e6:.1f} M parameters, {info.image_size} × "
        f"{info.image_size} pixels as {info.grid[0]} × {info.grid[1]} codes of {info.codebook_size}, "
        f"{len(info.classes)} classes, {len(info.styles)} styles.",
        _usage(info),
        "## Evaluation\n\n" + evaluation_table(report) + ("\n\n" + tokenizer_table(tokenizer) if tokenizer else ""),
        _pairs(report) if pairs else "",
        "## Training\n\n" + training if training else "",
        _limits(info),
        _credits(info),
    ]
    return "\n\n".join(section for section in sections if section) + "\n"


def evaluation_table(report: dict[str, Any]) -> str:
    """Markdown table of one evaluation, generated beside real held-out pictures."""
    protocol, probe = report["protocol"], report["probe"]
    generated, ceiling = report["distances"], report["ceiling"]
    rows = [
        (
            "KID × 1000",
            f"{generated['kid']:.1f} ± {generated['kid_std']:.1f}",
            f"{ceiling['kid']:.1f} ± {ceiling['kid_std']:.1f}",
        ),
        ("FID", _number(generated["fid"]), _number(ceiling["fid"])),
    ]
    for name, key in (("class", "class"), ("style", "style")):
        made, real = probe[f"{key}_generated"], probe[f"{key}_heldout"]
        for top in ("top1", "top5"):
            if made is not None and not (key == "style" and top == "top5"):
                rows.append((f"{name} top-{top[-1]}", f"{made[top]:.1%}", f"{real[top]:.1%}"))
    for near in report["nearest"]:
        rows.append(
            (f"nearer than the 1st percentile of held-out ({near['space']})", f"{near['share_below_1']:.1%}", "1.0%")
        )
    settings = ", ".join(f"{key} {value}" for key, value in protocol["settings"].items() if value is not None)
    lines = ["| | generated | real held-out |", "|---|---|---|", *(f"| {a} | {b} | {c} |" for a, b, c in rows)]
    note = (
        f"{protocol['samples']} samples ({settings}); reference: {protocol['reference']}. Distances by "
        f"{protocol['distance_features']}, recognition by {protocol['recognition_features']}: not comparable with "
        f"published FID. `evaluation.json` has everything."
    )
    return "\n".join(lines) + "\n\n" + note


def tokenizer_table(report: dict[str, Any]) -> str:
    """The tokenizer on held-out concepts, and what its reconstructions leave to be recognised."""
    parts = [f"Tokenizer on held-out concepts: PSNR {report['psnr']:.2f} dB, L1 {report['l1']:.2f} of 255"]
    parts.append(f"{report['usage']:.0%} of the codebook in use, perplexity {report['perplexity']:.0f}")
    parts.append(f"reconstruction KID × 1000 {report['distances']['kid']:.1f}")
    sentences = [", ".join(parts) + "."]
    for found in report.get("recognition", []):
        sentences.append(
            f"Of {found['n']} reconstructions of {found['images']} the class of {found['class_reconstructed']:.1%} is "
            f"recognised (of the originals {found['class_original']:.1%}), the style of "
            f"{found['style_reconstructed']:.1%} ({found['style_original']:.1%})."
        )
    if len(sentences) > 1:
        sentences.append("More than that can hardly be expected of generated pictures.")
    return " ".join(sentences)


def _pairs(report: dict[str, Any]) -> str:
    space = report["nearest"][0]["space"]
    text = "The samples that come closest to any training picture, each beside it, with their distance"
    return f"## Closest pairs\n\n{text} ({space}).\n\n![Samples beside the training pictures nearest to them]({PAIRS})"


def _header(info: ModelInfo) -> str:
    kind = "partition-generative-model" if info.architecture == "pgm" else info.architecture
    return "\n".join(
        [
            "---",
            f"license: {info.licence.lower()}",
            "library_name: pgm-image",
            "pipeline_tag: unconditional-image-generation",
            f"tags: [image-generation, class-conditional, {kind}]",
            "---",
        ]
    )


def _usage(info: ModelInfo) -> str:
    settings = ", ".join(f"{key} {value}" for key, value in info.recommended.items())
    return (
        "## Use\n\n```python\nimport pgm_image\n\n"
        f'pgm_image.generate(class_id="{info.classes[min(27, len(info.classes) - 1)]}", model="{info.name}")\n```\n\n'
        f"Recommended settings, used when nothing else is asked for: {settings}.{_editing(info)}"
    )


def _editing(info: ModelInfo) -> str:
    if not info.editing:
        return ""
    settings = ", ".join(f"{key} {value}" for key, value in info.editing.items())
    return f" Where a picture is edited, {settings} instead."


def _limits(info: ModelInfo) -> str:
    text = "## Limits\n\nA small model of a small set: drawings only; rare classes are weaker than common ones."
    if info.unseen:
        pairs = len(info.classes) * len(info.styles)
        text += f" {len(info.unseen)} of the {pairs} class and style pairs have no training picture."
    return text


def _credits(info: ModelInfo) -> str:
    if not info.credits:
        return ""
    rows = [f"| {c['style']} | {c['artwork']} | {c['licence']} | {c['source']} |" for c in info.credits]
    table = "\n".join(["| Style | Artwork | Licence | Source |", "|---|---|---|---|", *rows])
    note = "Where the artwork's licence asks for credit, it is due for pictures close to it, too."
    return f"## Data and credits\n\n{table}\n\n{note}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.1f}"
