"""Process-wide conditions the page needs before anything else is imported.

Gradio reads its analytics switch when it is imported, and on ZeroGPU Spaces `spaces` has to be imported before torch
touches CUDA. Elsewhere `spaces` is absent and `on_gpu` leaves the function as it is.
"""

import os
from collections.abc import Callable

os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")

try:
    import spaces
except ImportError:
    spaces = None


def on_gpu(duration: int | Callable[..., int]) -> Callable[[Callable], Callable]:
    """Decorator asking a ZeroGPU Space for `duration` seconds of GPU; does nothing anywhere else."""

    def decorate(function: Callable) -> Callable:
        return function if spaces is None else spaces.GPU(duration=duration)(function)

    return decorate
