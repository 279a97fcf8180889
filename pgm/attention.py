"""Scaled dot-product attention with a choice of kernel, as used by every transformer here.

Public functions: `attention` (one call for all kernels), `resolve_backend` (which kernel a machine can run) and
`training_backend` (which one to train with).
"""

from typing import Literal, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from pgm.matmul_attention import matmul_attention

Backend = Literal["auto", "sdpa", "xformers", "math", "matmul"]


def resolve_backend(backend: str, device: torch.device | str) -> str:
    """Turn a requested kernel into one that runs on `device`.

    "auto" is PyTorch's fused attention ("sdpa"), which picks its own kernel and gives the same bytes on every run;
    "math" computes scores in float32; "matmul" computes all in the inputs' precision, the fastest for training on a
    CPU (see `matmul_attention`).
    Raises ValueError for an unknown name and for "xformers" where its kernels cannot run, so that the fault shows
    when a model is loaded and not in the middle of a generation.
    """
    if backend not in get_args(Backend):
        raise ValueError(f"attention must be one of {', '.join(get_args(Backend))}, got {backend!r}")
    if backend == "auto":
        return "sdpa"
    if backend == "xformers":
        if torch.device(device).type != "cuda":
            raise ValueError("attention='xformers' needs a CUDA device; use 'auto' or 'sdpa' on this one")
        try:
            import xformers.ops  # noqa: F401
        except Exception as error:
            raise ValueError(
                f"attention='xformers' is not usable here ({error}); install the extra [xformers]"
            ) from error
    return backend


def training_backend(device: torch.device | str) -> str:
    """The kernel that trains fastest on `device`."""
    return "matmul" if torch.device(device).type == "cpu" else "auto"


def attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, backend: str = "sdpa", dropout: float = 0.0
) -> Tensor:
    """Attend from `q` to `k`, `v`; a query that may see no key gets zeros.

    q: (B, H, Lq, E); k, v: (B, H, Lk, E); mask: bool, broadcastable to (B, H, Lq, Lk), True = visible, or None for
    all visible; dropout: probability on the attention weights. Returns (B, H, Lq, E). The scale is 1/sqrt(E).
    """
    if backend == "xformers":
        out = _xformers(q, k, v, mask, dropout)
    elif backend == "matmul" and not dropout:
        out = matmul_attention(q, k, v, mask)
    elif backend in ("math", "matmul"):
        out = _math(q, k, v, mask, dropout)
    else:
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
    if mask is None:
        return out
    # Kernels disagree about rows without any visible key (zeros or NaN); zeros are what we promise.
    return out.masked_fill(~mask.any(-1, keepdim=True), 0.0)


def _math(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    scores = (q @ k.transpose(-1, -2)).float() / q.shape[-1] ** 0.5  # (B, H, Lq, Lk)
    if mask is not None:
        # The lowest finite number: a row without visible keys then has finite gradients too.
        scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return F.dropout(scores.softmax(-1), dropout).to(v.dtype) @ v


def _xformers(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float) -> Tensor:
    from xformers.ops import memory_efficient_attention

    bias = None
    if mask is not None:
        bias = torch.zeros_like(mask, dtype=q.dtype).masked_fill(~mask, -torch.inf)
        bias = bias.expand(q.shape[0], q.shape[1], q.shape[2], k.shape[2]).contiguous()
    out = memory_efficient_attention(*(t.transpose(1, 2) for t in (q, k, v)), attn_bias=bias, p=dropout)
    return out.transpose(1, 2)


def split_heads(x: Tensor, heads: int) -> Tensor:
    """(B, L, D) -> (B, H, L, D/H)."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge_heads(x: Tensor) -> Tensor:
    """(B, H, L, E) -> (B, L, H*E)."""
    return x.transpose(1, 2).flatten(2)
