"""Process-wide conditions the page needs before anything else is imported.

Gradio reads its analytics switch when it is imported, and on ZeroGPU Spaces `spaces` has to be imported before torch
touches CUDA. Elsewhere `spaces` is absent and `on_gpu` leaves the function as it is.
"""

import importlib.util
import os
from collections.abc import Callable, Mapping

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


def on_zero_gpu(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether this is a ZeroGPU Space, where a GPU is there only inside functions that asked for it."""
    return environment.get("SPACES_ZERO_GPU", "").lower() in ("1", "t", "true")


def mcp_wanted(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether GRADIO_MCP_SERVER asks to offer the endpoints as MCP tools. ValueError when a package is missing."""
    if environment.get("GRADIO_MCP_SERVER", "").lower() not in ("1", "true"):
        return False
    if importlib.util.find_spec("mcp") is None:
        raise ValueError("GRADIO_MCP_SERVER needs the package mcp, which is not installed: pip install 'gradio[mcp]'")
    return True
