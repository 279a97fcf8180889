"""What one visitor may ask for. Every limit of the page is here and can be changed by an environment variable."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Limits:
    """Upper bounds of one request and of the queue. Each field is read from `PGM_<FIELD NAME IN CAPITALS>`."""

    max_images: int = 8  # pictures revealed together
    max_steps: int = 256
    max_sweep: int = 24  # pictures of one sweep over steps and guidance
    max_guidance: float = 10.0
    max_temperature: float = 2.0
    max_pixels: int = 40_000_000  # width x height of an uploaded picture
    workers: int = 1  # runs on the device at the same time
    queue_size: int = 32  # runs that may wait; beyond that a visitor is told to come back
    gpu_seconds: int = 60  # asked from a ZeroGPU Space for one run
    cache_seconds: int = 3600  # uploads and downloads older than this are deleted

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Limits":
        """Limits with every `PGM_...` variable applied; ValueError names a variable that is not a positive number."""
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
            if value is None or not value > 0:
                raise ValueError(f"{name} must be a positive {kind.__name__}, got {environment[name]!r}")
            values[field.name] = value
        return cls(**values)
