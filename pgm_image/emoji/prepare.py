"""Build the emoji image shards: `prepare_emoji(out)` fetches, matches, renders, splits and writes.

Held-out pictures are chosen by concept, so no vendor's drawing of a held-out emoji is in the training split.
The same packages and seed give the same files.
"""

import argparse
import hashlib
import json
import multiprocessing
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from pgm_image.emoji.matching import MIXED_TONE, ConceptIndex
from pgm_image.emoji.render import render
from pgm_image.emoji.scheme import CLASS_NAMES, STYLE_NAMES, STYLES, Concept, Style
from pgm_image.emoji.sources import Icon, default_cache, read_concepts, read_icons

SPLITS = ("train", "heldout")
SHARD_IMAGES = 2000
SMALLEST_SPLIT_CLASS = 10  # classes with fewer concepts keep them all for training


@dataclass(frozen=True)
class Picture:
    """One picture to render, with its labels."""

    data: str | bytes
    style_id: int
    concept: Concept
    tone: int  # 0 default, 1..5


def prepare_emoji(
    out: str | Path,
    size: int = 64,
    *,
    processes: int = 1,
    packages: str | Path | None = None,
    heldout: float = 0.05,
    seed: int = 0,
) -> dict:
    """Write emoji image shards and their manifest to folder `out`, replacing those of an earlier build.

    Args:
        out: folder for `manifest.json`, `train-00000.npz`, ..., `heldout-00000.npz`, ...
        size: side of the square pictures in pixels, 16..256.
        processes: rendering processes.
        packages: folder that already holds the npm tarballs; None fetches them into the user's cache.
        heldout: share of each class's concepts that is held out, 0 <= heldout <= 0.5.
        seed: changes which concepts are held out and the order of the pictures.

    Returns:
        The manifest, as written.

    Raises:
        ValueError: for an argument out of range.
        OSError: if a package cannot be had or read.
    """
    if not 16 <= size <= 256:
        raise ValueError(f"size must be between 16 and 256 pixels, got {size!r}")
    if processes < 1:
        raise ValueError(f"processes must be an integer >= 1, got {processes!r}")
    if not 0 <= heldout <= 0.5:
        raise ValueError(f"heldout must be between 0 and 0.5, got {heldout!r}")
    folder, download = (default_cache(), True) if packages is None else (Path(packages), False)
    index = read_concepts(folder, download)
    icons = {style.name: list(read_icons(style, index, folder, download)) for style in STYLES}
    return build_shards(Path(out), index, icons, size, processes, heldout, seed)


def build_shards(
    out: Path,
    index: ConceptIndex,
    icons: dict[str, Sequence[Icon]],
    size: int,
    processes: int,
    heldout: float,
    seed: int,
) -> dict:
    """Render and write the icons of each style name; the part of `prepare_emoji` that needs no network."""
    pictures, dropped = select_pictures(icons)
    drawn = {picture.concept.key for picture in pictures}
    concepts = [concept for concept in index.concepts if concept.key in drawn]
    concept_id = {concept.key: number for number, concept in enumerate(concepts)}
    held = split_concepts(concepts, heldout, seed)

    out.mkdir(parents=True, exist_ok=True)
    for old in [*out.glob("train-*.npz"), *out.glob("heldout-*.npz"), *out.glob("manifest.json")]:
        old.unlink()
    splits, counts = {}, {}
    for split in SPLITS:
        chosen = [picture for picture in pictures if (picture.concept.key in held) == (split == "heldout")]
        order = np.random.default_rng(seed).permutation(len(chosen))
        chosen = [chosen[position] for position in order]
        rendered = render_all([picture.data for picture in chosen], size, processes)
        splits[split] = list(write_shards(out, split, chosen, rendered, concept_id))
        counts[split] = count_pictures(chosen)
    manifest = {
        "name": f"emoji{size}",
        "size": size,
        "seed": seed,
        "splits": splits,
        "classes": list(CLASS_NAMES),
        "styles": list(STYLE_NAMES),
        "concepts": [
            {
                "key": concept.key,
                "name": concept.name,
                "class_id": concept.class_id,
                "heldout": concept.key in held,
            }
            for concept in concepts
        ],
        "licences": [licence(style) for style in STYLES],
        "counts": {**counts, "left_out": dropped},
    }
    text = json.dumps(manifest, indent=1, ensure_ascii=False)
    (out / "manifest.json").write_text(text + "\n", encoding="utf-8")
    return manifest


def select_pictures(icons: dict[str, Sequence[Icon]]) -> tuple[list[Picture], dict[str, dict[str, int]]]:
    """Keep one picture per style, concept and tone.

    Left out are icons that match no emoji, people of different skin tones in one picture (a picture has
    one tone label), and second drawings of the same emoji.

    Returns:
        The pictures, and per style name how many icons were left out and why.
    """
    pictures, dropped = [], {}
    for style_id, style in enumerate(STYLE_NAMES):
        seen, reasons = set(), Counter(unmatched=0, mixed_tone=0, duplicate=0)
        for icon in icons.get(style, ()):
            if icon.match is None:
                reasons["unmatched"] += 1
                continue
            concept, tone = icon.match.concept, icon.match.tone
            if tone == MIXED_TONE:
                reasons["mixed_tone"] += 1
            elif (concept.key, tone) in seen:
                reasons["duplicate"] += 1
            else:
                seen.add((concept.key, tone))
                pictures.append(Picture(icon.data, style_id, concept, tone))
        dropped[style] = dict(reasons)
    return pictures, dropped


def split_concepts(concepts: Iterable[Concept], share: float, seed: int) -> set[str]:
    """Choose the held-out concepts: the same share of every class, by a hash of seed and key.

    Classes with fewer than `SMALLEST_SPLIT_CLASS` concepts keep all for training, the others hold out
    at least one (when share > 0).

    Returns:
        Keys of the held-out concepts.
    """
    of_class: dict[int, list[str]] = defaultdict(list)
    for concept in concepts:
        of_class[concept.class_id].append(concept.key)
    held: set[str] = set()
    for keys in of_class.values():
        if share > 0 and len(keys) >= SMALLEST_SPLIT_CLASS:
            ranked = sorted(keys, key=lambda key: hashlib.sha256(f"{seed}:{key}".encode()).digest())
            held.update(ranked[: max(1, round(share * len(keys)))])
    return held


def render_all(data: Sequence[str | bytes], size: int, processes: int) -> Iterator[np.ndarray]:
    """Render in order, each (size, size, 3) uint8, in this process or in several."""
    draw = partial(render, size=size)
    if processes == 1:
        yield from map(draw, data)
        return
    # spawn, not fork: safe whatever threads the caller runs
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        yield from pool.imap(draw, data, chunksize=64)


def write_shards(
    out: Path,
    split: str,
    pictures: Sequence[Picture],
    images: Iterator[np.ndarray],
    concept_id: dict[str, int],
) -> Iterator[str]:
    """Write npz files of at most `SHARD_IMAGES` pictures; yields their names."""
    for number, start in enumerate(range(0, len(pictures), SHARD_IMAGES)):
        part = pictures[start : start + SHARD_IMAGES]
        name = f"{split}-{number:05d}.npz"
        np.savez_compressed(
            out / name,
            images=np.stack([next(images) for _ in part]),  # (n, size, size, 3)
            class_id=np.array([picture.concept.class_id for picture in part], np.int16),
            style_id=np.array([picture.style_id for picture in part], np.int16),
            concept_id=np.array([concept_id[picture.concept.key] for picture in part], np.int32),
            tone=np.array([picture.tone for picture in part], np.int8),
        )
        yield name


def count_pictures(pictures: Iterable[Picture]) -> dict:
    """Number of pictures, untoned ("base") and toned, in all, per style name and per class name."""
    kinds = ("base", "toned")
    total = dict.fromkeys(kinds, 0)
    styles = {name: dict.fromkeys(kinds, 0) for name in STYLE_NAMES}
    classes = {name: dict.fromkeys(kinds, 0) for name in CLASS_NAMES}
    for picture in pictures:
        kind = kinds[picture.tone > 0]
        total[kind] += 1
        styles[STYLE_NAMES[picture.style_id]][kind] += 1
        classes[CLASS_NAMES[picture.concept.class_id]][kind] += 1
    return {"images": sum(total.values()), **total, "styles": styles, "classes": classes}


def licence(style: Style) -> dict[str, str]:
    """Whom to credit for a style, as listed in the manifest."""
    return {
        "style": style.name,
        "artwork": style.artwork,
        "licence": style.licence,
        "source": style.source,
        "package": f"{style.pin.package}@{style.pin.version}",
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `prepare_emoji` to a command line parser."""
    parser.add_argument("--out", required=True, type=Path, help="folder for the shards")
    parser.add_argument("--size", type=int, default=64, help="side of the pictures in pixels (default 64)")
    parser.add_argument("--processes", type=int, default=1, help="rendering processes (default 1)")
    parser.add_argument("--packages", type=Path, help="folder with the npm tarballs (default: fetch them)")
    parser.add_argument("--heldout", type=float, default=0.05, help="share of concepts held out (0.05)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the split and the order (default 0)")


def run(args: argparse.Namespace) -> None:
    """Build the shards from parsed options and print what was written."""
    start = time.perf_counter()
    manifest = prepare_emoji(
        args.out,
        args.size,
        processes=args.processes,
        packages=args.packages,
        heldout=args.heldout,
        seed=args.seed,
    )
    seconds = time.perf_counter() - start
    megabytes = sum(path.stat().st_size for path in args.out.iterdir()) / 1e6
    print(summary(manifest))
    print(f"{args.out}: {megabytes:.1f} MB in {seconds:.0f} s")


def summary(manifest: dict) -> str:
    """A table of pictures per style and split, and of icons left out."""
    counts = manifest["counts"]
    lines = [f"{'style':<18}{'train':>7}{'toned':>7}{'heldout':>9}{'toned':>7}{'left out':>10}"]
    for style in manifest["styles"]:
        train, held = (counts[split]["styles"][style] for split in SPLITS)
        dropped = sum(counts["left_out"][style].values())
        lines.append(
            f"{style:<18}{train['base']:>7}{train['toned']:>7}{held['base']:>9}{held['toned']:>7}{dropped:>10}"
        )
    train, held = (counts[split] for split in SPLITS)
    lines.append(f"{'all':<18}{train['base']:>7}{train['toned']:>7}{held['base']:>9}{held['toned']:>7}")
    return "\n".join(lines)


if __name__ == "__main__":
    command = argparse.ArgumentParser(description="Build emoji image shards.")
    add_arguments(command)
    run(command.parse_args())
