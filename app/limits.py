"""What one visitor may ask for. Every limit of the page is here and can be changed by an environment variable."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields

MAY_BE_NOTHING = ("warm_models", "warm_steps")


@dataclass(frozen=True)
class Limits:
    """Upper bounds of one request and of the queue. Each field is read from `PGM_<FIELD NAME IN CAPITALS>`."""

    max_images: int = 8  # pictures revealed together
    max_texts: int = 8  # texts revealed together
    max_steps: int = 256
    max_refine_rounds: int = 8  # second looks at a picture or text, in which unlikely codes are drawn anew
    max_sweep: int = 24  # pictures of one sweep over steps and guidance
    max_guidance: float = 10.0
    max_temperature: float = 2.0
    max_pixels: int = 40_000_000  # width x height of an uploaded picture
    max_upload_mb: int = 20  # size of an uploaded file
    workers: int = 1  # runs on the device at the same time
    queue_size: int = 32  # runs that may wait; beyond that a visitor is told to come back
    max_sessions: int = 500  # visitors and programs whose last run is remembered; the longest away are forgotten first
    max_models: int = 2  # models in memory; the least recently used makes room for another
    warm_models: int = 1  # models loaded before the first visitor comes; 0 loads each when it is first asked for
    warm_steps: int = 0  # steps that each of those runs then and throws away: a first pass pays for setting up
    gpu_seconds: int = 60  # asked from a ZeroGPU Space for one run
    cache_seconds: int = 3600  # uploads and downloads older than this are deleted

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Limits":
        """Limits with every `PGM_...` variable applied; ValueError names a variable that is not a positive number.

        The warm-up may be 0.
        """
        values = {}
        for field in fields(cls):
            name = f"PGM_{field.name.upper()}"
            if name not in environment:
                continue
            kind = type(field.default)
            try:
                value = kind(environment[name])
            except ValueError:
                value = None
            may_be_nothing = field.name in MAY_BE_NOTHING
            if value is None or not (value > 0 or may_be_nothing and value == 0):
                allowed = f"0 or a positive {kind.__name__}" if may_be_nothing else f"a positive {kind.__name__}"
                raise ValueError(f"{name} must be {allowed}, got {environment[name]!r}")
            values[field.name] = value
        return cls(**values)
