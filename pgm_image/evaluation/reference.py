"""Real pictures, or their statistics, that samples are compared with; also generated pictures given as files."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import PartialState

from pgm_image.evaluation.fidelity import FidelityFeatures, ReferenceFeatures, moments
from pgm_image.evaluation.image_folder import LOSSLESS, LOSSY
from pgm_image.evaluation.parts import agree_on, read_parts, share_parts
from tokenizer.image_files import open_picture
from tokenizer.shards import read_images, read_manifest
from tokenizer.sources import Pictures

STATISTICS = ("mu", "sigma")


@dataclass(frozen=True)
class Given:
    """What a path holds: pictures, statistics, or both."""

    name: str
    pictures: Any = None  # sliced: (n, S, S, 3) uint8
    mean: np.ndarray | None = None
    covariance: np.ndarray | None = None


def open_given(argument: str, path: str | Path, size: int | None, split: str) -> Given:
    """A folder of pictures (short side resized to `size`, central crop; None: the size of the first), image shards
    (their `split`, or what they have), or an npz with pictures `arr_0`, with statistics `mu` and `sigma`, or with both.

    Raises ValueError naming `argument` for anything else.
    """
    path = Path(path)
    if path.is_dir() and (path / "manifest.json").is_file():
        splits = read_manifest(path)["splits"]
        split = split if split in splits else next(iter(splits))
        return Given(f"{path.name} {split}", read_images(path, split).images)
    if path.is_dir():
        files = sorted(file for file in path.rglob("*") if file.suffix.lower() in LOSSLESS + LOSSY)
        if not files:
            raise ValueError(f"{argument}: {str(path)!r} holds no pictures")
        size = size or min(open_picture(files[0]).size)
        return Given(path.name, Pictures(lambda index: open_picture(files[index]), len(files), size, "imagenet", 4))
    if path.suffix == ".npz" and path.is_file():
        with np.load(path, allow_pickle=False) as arrays:
            names = set(arrays.files)
            if not names & {"arr_0", *STATISTICS}:
                raise ValueError(f"{argument}: {str(path)!r} has neither arr_0 nor mu and sigma, only {sorted(names)}")
            found = {name: arrays[name] for name in ("arr_0", *STATISTICS) if name in names}
        mean, covariance = (np.asarray(found[name], np.float64) if name in found else None for name in STATISTICS)
        return Given(path.name, found.get("arr_0"), mean, covariance)
    raise ValueError(f"{argument} must be a folder of pictures, image shards or an .npz file, got {str(path)!r}")


def share_features(
    given: Given,
    extractor: FidelityFeatures,
    clean_resize: bool,
    work: Path,
    state: PartialState,
    say: Callable[[str], None],
) -> None:
    """Have the features of all pictures computed, by all processes together, as parts in `work`."""
    count = len(given.pictures)
    settings = {
        "pictures": given.name,
        "count": count,
        "extractor": extractor.name,
        "layers": extractor.layers,
        "clean_resize": clean_resize,
    }
    agree_on(work, settings, state)
    share_parts(
        work, count, lambda start, stop: extractor(np.asarray(given.pictures[start:stop]), clean_resize), state, say
    )


def reference_features(
    given: Given,
    extractor: FidelityFeatures,
    clean_resize: bool,
    work: Path,
    state: PartialState,
    say: Callable[[str], None],
) -> ReferenceFeatures | None:
    """The real side, on the first process. Statistics in the file win over those of pictures beside them."""
    if given.pictures is not None:
        share_features(given, extractor, clean_resize, work, state, say)
    if not state.is_main_process:
        return None
    features = None if given.pictures is None else read_parts(work, len(given.pictures))
    if given.mean is not None and given.covariance is not None:
        mean, covariance = given.mean, given.covariance
    else:
        mean, covariance = moments(features[extractor.layers["fid"]])
    return ReferenceFeatures(mean, covariance, features, None if given.pictures is None else len(given.pictures))
