"""Attention kernels: equal results, queries that see nothing, and names that are refused."""

import pytest
import torch
from torch.testing import assert_close

from pgm.attention import attention, merge_heads, resolve_backend, split_heads


@pytest.fixture
def qkv():
    torch.manual_seed(0)
    return [torch.randn(2, 2, length, 4, requires_grad=True) for length in (3, 5, 5)]


def test_kernels_agree_with_the_formula(qkv):
    q, k, v = qkv
    mask = torch.tensor([[True, False, True, True, False]] * 3)
    scores = (q @ k.transpose(-1, -2) / 2).masked_fill(~mask, -torch.inf)
    for backend in ("sdpa", "math", "matmul"):
        assert_close(attention(q, k, v, mask, backend), scores.softmax(-1) @ v)
        assert_close(attention(q, k, v, None, backend), (q @ k.transpose(-1, -2) / 2).softmax(-1) @ v)


@pytest.mark.parametrize("backend", ["sdpa", "math", "matmul"])
def test_a_query_without_visible_keys_gets_zeros_and_finite_gradients(qkv, backend):
    mask = torch.ones(3, 5, dtype=torch.bool)
    mask[1] = False
    out = attention(*qkv, mask, backend)
    assert (out[:, :, 1] == 0).all() and (out[:, :, 0] != 0).all()
    out.square().sum().backward()
    assert all(t.grad.isfinite().all() and t.grad.abs().sum() > 0 for t in qkv)


@pytest.mark.parametrize("visible", [0.5, None])
def test_plain_products_have_the_gradients_of_the_formula(visible):
    """In double precision against finite differences, and compiled or under autocast close to float32."""
    torch.manual_seed(1)
    q, k, v = (torch.randn(2, 2, length, 4, dtype=torch.double, requires_grad=True) for length in (3, 5, 5))
    mask = None if visible is None else torch.rand(2, 1, 3, 5) < visible
    assert torch.autograd.gradcheck(lambda *x: attention(*x, mask, "matmul"), (q, k, v))
    half = [x.detach().float().transpose(1, 2).contiguous().transpose(1, 2).requires_grad_() for x in (q, k, v)]
    with torch.autocast("cpu", torch.bfloat16):
        out = attention(*half, mask, "matmul")
    out.float().square().sum().backward()
    exact = attention(q, k, v, mask, "math")
    exact.square().sum().backward()
    assert out.dtype == torch.bfloat16
    assert_close(out.double(), exact, atol=0.03, rtol=0.03)
    for low, high in zip(half, (q, k, v), strict=True):
        assert_close(low.grad.double(), high.grad, atol=0.15, rtol=0.05)


def test_heads_split_and_merge():
    x = torch.arange(24.0).reshape(1, 3, 8)
    assert split_heads(x, 2).shape == (1, 2, 3, 4)
    assert torch.equal(split_heads(x, 2)[0, 1, 0], torch.arange(4.0, 8.0))
    assert torch.equal(merge_heads(split_heads(x, 2)), x)


def test_unknown_and_unusable_kernels_are_refused(partition):
    assert resolve_backend("auto", "cpu") == "sdpa"
    with pytest.raises(ValueError, match="auto, sdpa, xformers, math, matmul, got 'flash'"):
        resolve_backend("flash", "cpu")
    with pytest.raises(ValueError, match="needs a CUDA device"):
        partition().set_attention_backend("xformers")
