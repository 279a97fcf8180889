"""Which device and number format to compute in when the caller does not say."""

from typing import Literal, get_args

import torch

Precision = Literal["auto", "bf16", "fp32"]  # of a training; bf16 is autocast: weights and losses stay float32
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
    gains = has_bfloat16(device) and (device.type == "cuda" or parameters >= SMALL_MODEL)
    return torch.bfloat16 if gains else torch.float32


def check_precision(precision: str) -> None:
    """Raises ValueError for what `resolve_precision` does not take."""
    if precision not in get_args(Precision):
        raise ValueError(f"precision must be one of {', '.join(get_args(Precision))}, got {precision!r}")


def resolve_precision(precision: str, device: torch.device) -> str:
    """bf16 or fp32 for a training: as given, or for "auto" bf16 where the device has it in hardware.

    Raises ValueError for anything else.
    """
    check_precision(precision)
    if precision == "auto":
        return "bf16" if has_bfloat16(device) else "fp32"
    return precision


def has_bfloat16(device: torch.device) -> bool:
    """Whether the device multiplies bfloat16 matrices in hardware, not by way of float32, which is slower than float32.

    oneDNN calls bfloat16 supported from AVX-512 on; without AMX or AVX512-BF16 a product there takes four times as long
    as in float32. False on MPS, where it was not measured.
    """
    if device.type == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if device.type != "cpu" or not torch.backends.mkldnn.is_available():
        return False
    found = getattr(torch.cpu, "get_capabilities", dict)()  # PyTorch without it says nothing: float32
    return any(found.get(name, False) for name in ("amx_bf16", "avx512_bf16", "bf16"))  # the last is ARM's
