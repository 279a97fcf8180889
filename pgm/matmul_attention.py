"""Attention as plain matrix products in the precision of its inputs, for training on CPUs.

PyTorch's fused CPU kernel saves memory that short sequences do not need; at the lengths used here the plain products
take half its time in bfloat16, forward and backward. They are opaque to `torch.compile`, whose own code for them is
slower. Gradients flow to q, k and v.
"""

import torch
from torch import Tensor

HIDDEN = -1e9  # finite: a row without visible keys has finite gradients, too


def matmul_attention(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
    """q: (B, H, Lq, E); k, v: (B, H, Lk, E), cast to autocast's dtype where that is on; mask: bool, broadcastable to
    (B, H, Lq, Lk), True = visible.

    Returns (B, H, Lq, E). The scale is 1/sqrt(E).
    """
    kind = q.device.type
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
        q, k, v = q.to(dtype), k.to(dtype), v.to(dtype)
    return _forward(q, k, v, mask)[0]


@torch.library.custom_op("pgm::matmul_attention", mutates_args=())
def _forward(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)  # (B, H, Lq, Lk)
    if mask is not None:
        scores += torch.zeros(mask.shape, dtype=q.dtype, device=q.device).masked_fill_(~mask, HIDDEN)
    weights = torch.softmax(scores, -1, dtype=q.dtype)
    return weights @ v, weights


@_forward.register_fake
def _(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    return torch.empty_like(q, memory_format=torch.contiguous_format), q.new_empty((*q.shape[:-1], k.shape[-2]))


@torch.library.custom_op("pgm::matmul_attention_backward", mutates_args=())
def _backward(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    scale = q.shape[-1] ** -0.5
    grad_weights = grad @ v.transpose(-1, -2)
    grad_scores = torch._softmax_backward_data(grad_weights, weights, -1, weights.dtype)
    return (
        (grad_scores @ k) * scale,
        grad_scores.transpose(-1, -2) @ (q * scale),
        weights.transpose(-1, -2) @ grad,
    )


@_backward.register_fake
def _(grad: Tensor, q: Tensor, k: Tensor, v: Tensor, weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    return tuple(torch.empty_like(x, memory_format=torch.contiguous_format) for x in (q, k, v))


def _keep(ctx: torch.autograd.function.FunctionCtx, inputs: tuple, output: tuple) -> None:
    q, k, v, _ = inputs
    ctx.save_for_backward(q, k, v, output[1])


def _differentiate(ctx: torch.autograd.function.FunctionCtx, grad: Tensor, _: Tensor | None) -> tuple:
    return *_backward(grad, *ctx.saved_tensors), None


_forward.register_autograd(_differentiate, setup_context=_keep)
