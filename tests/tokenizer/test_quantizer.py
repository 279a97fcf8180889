"""The quantiser: nearest codes, where gradients go, and a codebook that stays alive."""

import pytest
import torch
import torch.nn.functional as F

from tokenizer.quantizer import CodeUsage, EMACodebook, Quantizer


def quantizer(distance: str, size: int = 16, dim: int = 4) -> Quantizer:
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return Quantizer(size, dim, distance)


def latents(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_euclidean_picks_the_row_at_the_smallest_distance():
    q, z = quantizer("euclidean"), latents(2, 3, 3, 4)
    assert torch.equal(q.nearest(z), torch.cdist(z.reshape(-1, 4), q.codebook).argmin(-1).reshape(2, 3, 3))


def test_cosine_picks_the_row_at_the_smallest_angle_whatever_the_length_of_the_latent():
    q, z = quantizer("cosine"), latents(2, 3, 3, 4)
    expected = F.cosine_similarity(z[..., None, :], q.codebook, dim=-1).argmax(-1)
    assert torch.equal(q.nearest(z), expected)
    assert torch.equal(q.nearest(z * 37), expected)
    torch.testing.assert_close(q.codebook.norm(dim=-1), torch.ones(16))


def test_codes_do_not_depend_on_autocast():
    q, z = quantizer("cosine", 512, 8), latents(4, 16, 16, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(q.nearest(z), q.nearest(z.clone()))
        inside = q.nearest(z)
    assert torch.equal(inside, q.nearest(z))


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_quantised_values_are_codebook_rows_and_their_gradient_passes_straight_through(distance):
    q = quantizer(distance)
    z = latents(2, 4, 3, 3).requires_grad_()
    quantised, codes, _ = q(z)
    torch.testing.assert_close(quantised.permute(0, 2, 3, 1), q.lookup(codes))
    target = latents(2, 4, 3, 3, seed=5)
    (gradient,) = torch.autograd.grad((quantised * target).sum(), z)
    again = z.detach().clone().requires_grad_()
    projected = q.project(again.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)
    (expected,) = torch.autograd.grad((projected * target).sum(), again)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_the_commitment_term_moves_the_encoder_and_leaves_the_codebook_alone(distance):
    q = quantizer(distance)
    q.codebook.requires_grad_()
    z = latents(2, 4, 3, 3).requires_grad_()
    gradients = {}
    for weight in (1.0, 3.0):
        commitment = q(z)[2] * weight
        gradients[weight], codebook = torch.autograd.grad(commitment, [z, q.codebook], allow_unused=True)
        assert codebook is None
    assert gradients[1.0].abs().max() > 0
    torch.testing.assert_close(gradients[3.0], 3 * gradients[1.0])


def test_the_codebook_follows_the_running_mean_of_its_latents():
    q = quantizer("euclidean", 2, 1)
    q.codebook.copy_(torch.tensor([[-1.0], [1.0]]))
    ema = EMACodebook(q, decay=0.5, revive_below=0.0)
    z = torch.tensor([-2.0, -3.0, 4.0])[:, None, None, None]
    ema.update(z, q(z)[1], torch.Generator())
    # counts: (1 + 2) / 2 and (1 + 1) / 2; sums: (-1 - 5) / 2 and (1 + 4) / 2
    torch.testing.assert_close(q.codebook, torch.tensor([[-2.0], [2.5]]))


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_an_all_equal_codebook_revives_above_half_usage_in_300_steps(distance):
    q = quantizer(distance, size=64, dim=8)
    q.codebook.copy_(q.codebook[:1].expand_as(q.codebook).clone())
    ema = EMACodebook(q, decay=0.9)
    for step in range(300):
        z = latents(4, 8, 8, 8, seed=step)
        ema.update(z, q(z)[1], torch.Generator().manual_seed(step))
    usage = CodeUsage(64)
    usage.add(q(latents(16, 8, 8, 8, seed=1000))[1])
    assert usage.usage > 0.5
    assert usage.perplexity > 20


def test_the_state_of_a_codebook_survives_saving():
    q = quantizer("cosine")
    ema = EMACodebook(q)
    z = latents(2, 4, 3, 3)
    ema.update(z, q(z)[1], torch.Generator())
    other = EMACodebook(quantizer("cosine"))
    other.load_state_dict(ema.state_dict())
    assert torch.equal(other.counts, ema.counts) and torch.equal(other.sums, ema.sums) and other.updates == 1


def test_usage_and_perplexity_are_taken_over_all_that_was_added():
    usage = CodeUsage(8)
    usage.add(torch.tensor([0, 0]))
    assert (usage.usage, usage.perplexity) == (1 / 8, 1.0)
    usage.add(torch.tensor([[1, 1]]))
    assert usage.usage == 2 / 8
    assert usage.perplexity == pytest.approx(2)
    usage.reset()
    assert usage.usage == 0


def test_images_that_bypass_the_codebook_keep_their_latents_and_still_count_their_codes():
    q, z = quantizer("cosine"), latents(2, 4, 3, 3)
    quantised, codes, commitment = q(z, torch.tensor([True, False]))
    plain, plain_codes, plain_commitment = q(z)
    torch.testing.assert_close(quantised[0], F.normalize(z[0], dim=0))
    assert torch.equal(quantised[1], plain[1])
    assert torch.equal(codes, plain_codes) and torch.equal(commitment, plain_commitment)
