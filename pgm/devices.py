"""Which device and number format to compute in when the caller does not say."""

import torch

SMALL_MODEL = 50_000_000  # parameters


def resolve_device(device: torch.device | str | None) -> torch.device:
    """The given device, or CUDA, then Apple's MPS, then the CPU. Raises ValueError for one that is not there."""
    if device is None:
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        resolved = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise ValueError(f"device must be like 'cpu', 'cuda', 'cuda:1' or 'mps', got {device!r}") from error
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(resolved.type, False):
        present = ", ".join(name for name, here in there.items() if here)
        raise ValueError(f"device {str(device)!r} is not available here; available: {present}")
    if resolved.type == "cuda" and (resolved.index or 0) >= torch.cuda.device_count():
        raise ValueError(
            f"device {str(device)!r} is not available here; there are {torch.cuda.device_count()} CUDA devices"
        )
    return resolved


def resolve_dtype(dtype: torch.dtype | str | None, device: torch.device, parameters: int) -> torch.dtype:
    """The given dtype, or bfloat16 where the device computes in it and the model is large enough to gain.

    Small models stay in float32 on a CPU: they are bound by overhead, and float32 gives every CPU the same pictures.
    Raises ValueError for anything but float32, bfloat16 and float16.
    """
    if dtype is not None:
        resolved = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
        if resolved not in (torch.float32, torch.bfloat16, torch.float16):
            raise ValueError(f"dtype must be float32, bfloat16 or float16, got {dtype!r}")
        return resolved
    if device.type == "cuda":
        return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float32
    if device.type == "cpu" and parameters >= SMALL_MODEL and cpu_has_bfloat16():
        return torch.bfloat16
    return torch.float32


def cpu_has_bfloat16() -> bool:
    """Whether this CPU multiplies bfloat16 matrices in hardware."""
    return bool(torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported())
