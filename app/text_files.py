"""Texts to take along: plain text of any step, or everything as JSON."""

import json
import re
from typing import Any

from app.text_reveal import rate

MEDIA_TYPES = {"txt": "text/plain;charset=utf-8", "json": "application/json"}


def save(value: dict[str, Any], kind: str, step: int) -> tuple[str, str, bytes]:
    """File name, media type and content of a run: "txt", its texts at a step (0-based), or "json", its settings, texts
    and steps. Raises ValueError when there is no such thing.
    """
    if kind not in MEDIA_TYPES:
        raise ValueError(f"a download is one of {', '.join(MEDIA_TYPES)}, not {kind!r}")
    reached = max(len(side["steps"]) for side in value["sides"])
    if not isinstance(step, int) or not 0 <= step < reached:
        raise ValueError(f"there is no step {step} in this run")
    name = file_name(value) + ("" if kind == "json" or step + 1 == value["sides"][0]["total"] else f"-step{step + 1}")
    content = plain(value, step) if kind == "txt" else json.dumps(report(value), ensure_ascii=False, indent=1) + "\n"
    return f"{name}.{kind}", MEDIA_TYPES[kind], content.encode("utf-8")


def file_name(value: dict[str, Any]) -> str:
    """A name that is safe on every system, e.g. "lantern-noun-seed7"."""
    settings = value["sides"][0]["settings"]
    words = re.sub(r"[^a-z0-9]+", "-", settings["prompt"].lower()).strip("-")[:60].strip("-")
    return f"{words or 'text'}-seed{settings['seed']}"


def plain(value: dict[str, Any], step: int) -> str:
    """All texts at a step, each with a heading where there are several. One alone is written as it is."""
    named = []
    for side in value["sides"]:
        texts = texts_at(side, step)
        for label, text in zip(side["labels"], texts, strict=True):
            kind = f"{side['label']}, " if len(value["sides"]) > 1 else ""
            named.append((f"{kind}{label}", text))
    if len(named) == 1:
        return named[0][1] + "\n"
    return "\n".join(f"[{heading}]\n{text}\n" for heading, text in named)


def texts_at(side: dict[str, Any], step: int) -> list[str]:
    """Texts of a side at a step (0-based; the last one it has, if it has fewer)."""
    return side["steps"][min(step, len(side["steps"]) - 1)]["texts"] if side["steps"] else [""] * side["count"]


def report(value: dict[str, Any]) -> dict[str, Any]:
    """Settings, texts and steps of every model of a run, as it is written to a JSON file."""
    models = []
    for side in value["sides"]:
        steps = [
            {
                "step": index + 1,
                "texts": record["texts"],
                "second_look": record["round"],
                "tokens_taken_back": record["taken_back"],
                "new_tokens": record["filled"],
                "tokens_known": record["known"],
                "tokens_computed": record["computed"],
                "tokens_computed_masked": record["masked"],
                "seconds": record["seconds"],
            }
            for index, record in enumerate(side["steps"])
        ]
        last = len(steps) - 1
        texts = [
            {"label": label, "seed": seed, "text": text}
            for label, seed, text in zip(side["labels"], side["seeds"], texts_at(side, last), strict=True)
        ]
        for one, latent in zip(texts, side["z"], strict=False):
            one["z"] = latent
        models.append(
            {
                "model": side["settings"]["model"],
                "kind": side["label"],
                "finished": side["done"],
                "settings": side["settings"],
                "texts": texts,
                "tokens_per_second": round(rate(side, last), 1) if steps else 0,
                "steps": steps,
            }
        )
    return {"title": value["title"], "models": models}
