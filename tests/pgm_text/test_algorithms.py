"""Losses of the four algorithms: what they see, what they cannot see, and how they agree."""

import math

import pytest
import torch
from torch.testing import assert_close

from pgm_text.algorithms import algorithm_of, complementary_mdlm, mdlm, pgm, rmdm
from pgm_text.latents import draw_latents
from pgm_text.text_batches import TextBatches

SEEN = ("pgm", "mdlm", "rmdm")


@pytest.fixture(scope="module")
def batch(corpus):
    latents = draw_latents(range(224), 4)
    return TextBatches(corpus / "tokens", 8, seed=3, latents=latents)(0)


def model_and_algorithm(text_model, kind, random=True):
    return text_model(kind, random=random), {"pgm": pgm, "mdlm": mdlm, "rmdm": rmdm}[kind]


def test_every_model_finds_its_algorithm(text_model):
    assert [algorithm_of(text_model(kind)) for kind in SEEN] == [pgm, mdlm, rmdm]
    with pytest.raises(TypeError, match="no algorithm for CausalTransformer"):
        algorithm_of(text_model("scorer"))


@pytest.mark.parametrize("kind", SEEN)
def test_hidden_tokens_are_predicted_from_visible_ones_only(text_model, batch, kind):
    model, algorithm = model_and_algorithm(text_model, kind)
    tokens, hidden, z = batch["tokens"], batch["hidden"], batch["z"] if kind == "rmdm" else None
    other = torch.where(hidden, (tokens + 7) % 300, tokens)  # other targets, same context
    with torch.no_grad():
        if kind == "pgm":
            seen = [model(x, hidden, torch.zeros(8))[hidden] for x in (tokens, other)]
        else:
            seen = [model(torch.where(hidden, model.config.mask_id, x), torch.zeros(8), z) for x in (tokens, other)]
        assert_close(*seen, atol=1e-5, rtol=1e-5)
        nll = algorithm.token_nll(model, tokens, hidden, z)
        assert (nll[~hidden] == 0).all() and (nll[hidden] > 0).all()
        moved = tokens.clone()
        moved[:, 1] = torch.where(hidden[:, 1], tokens[:, 1], (tokens[:, 1] + 5) % 300)
        differ = (algorithm.token_nll(model, moved, hidden, z) - nll).abs() > 1e-6
        rows = ~hidden[:, 1] & hidden.any(1)
        assert differ[rows].any() and not differ[hidden[:, 1]].any()


@pytest.mark.parametrize("kind", SEEN)
def test_an_untrained_model_is_uniform_over_real_tokens(text_model, batch, kind):
    model, algorithm = model_and_algorithm(text_model, kind, random=False)
    with torch.no_grad():
        nll = algorithm.token_nll(model, batch["tokens"], batch["hidden"], batch["z"] if kind == "rmdm" else None)
    assert_close(nll[batch["hidden"]], torch.full_like(nll[batch["hidden"]], math.log(model.config.vocab_size - 1)))


def test_losses_of_an_untrained_model_follow_from_the_masks(text_model, batch):
    hidden, t = batch["hidden"][:, 1:], batch["t"][:, None]
    entropy = math.log(text_model("pgm").config.vocab_size - 1)
    one_side = (hidden / t).mean().item() * entropy
    other_side = (~hidden / (1 - t)).mean().item() * entropy
    expected = {"pgm": (one_side + other_side) / 2, "mdlm": one_side, "rmdm": one_side}
    with torch.no_grad():
        for kind, value in expected.items():
            model, algorithm = model_and_algorithm(text_model, kind, random=False)
            assert algorithm.loss(model, batch).item() == pytest.approx(value, rel=1e-4)
        model = text_model("mdlm", random=False)
        assert complementary_mdlm.loss(model, batch).item() == pytest.approx(expected["pgm"], rel=1e-4)


def test_complementary_masking_is_the_mean_of_two_masked_losses(text_model, batch):
    model, swapped = text_model("mdlm"), dict(batch)
    swapped["hidden"] = ~batch["hidden"]
    swapped["hidden"][:, 0] = False
    swapped["t"] = 1 - batch["t"]
    with torch.no_grad():
        expected = (mdlm.loss(model, {**batch, "z": None}) + mdlm.loss(model, {**swapped, "z": None})) / 2
        loss = complementary_mdlm.loss(model, {k: v for k, v in batch.items() if k != "z"})
    assert_close(loss, expected, rtol=1e-4, atol=1e-4)


def test_dropped_latents_are_the_null_latent(text_model, batch):
    model = text_model("rmdm")
    with torch.no_grad():
        null = rmdm.token_nll(model, batch["tokens"], batch["hidden"], None)
        nan = rmdm.token_nll(model, batch["tokens"], batch["hidden"], torch.full((8, 4), torch.nan))
        own = rmdm.token_nll(model, batch["tokens"], batch["hidden"], torch.ones(8, 4))
    assert_close(null, nan, rtol=0, atol=0)
    assert (own - null).abs().max() > 0.01
    with pytest.raises(ValueError, match="RMDM needs latents"):
        rmdm.loss(model, {k: v for k, v in batch.items() if k != "z"})


def test_rmdm_also_runs_on_the_partition_transformer(text_model, batch):
    model = text_model("pgm", latent_width=4)
    assert algorithm_of(model) is rmdm
    loss = rmdm.loss(model, batch)
    loss.backward()
    assert loss.isfinite() and model.latent_map.mlp[0].weight.grad.abs().sum() > 0


def test_batches_are_a_pure_function_of_their_number_and_share_masks(corpus):
    with_z, without = (
        TextBatches(corpus / "tokens", 8, seed=1, latents=latents) for latents in (draw_latents(range(224), 4), None)
    )
    first, again = with_z(5), with_z(5)
    assert all(torch.equal(first[key].nan_to_num(), again[key].nan_to_num()) for key in first)
    plain = without(5)
    assert set(first) - set(plain) == {"z"}
    assert all(torch.equal(plain[key], first[key]) for key in plain)
    assert not torch.equal(with_z(6)["tokens"], first["tokens"])
    assert not torch.equal(with_z(5, process=1)["tokens"], first["tokens"])


def test_an_epoch_visits_every_row_once(corpus):
    batches = TextBatches(corpus / "tokens", 10, seed=1)
    rows = [number for index in range(45) for number in batches.row_numbers(index)][: 2 * 224]
    assert sorted(rows[:224]) == sorted(rows[224:]) == list(range(224))
    assert rows[:224] != rows[224:]


def test_times_are_stratified_bos_is_known_and_valid_ends_at_the_first_end_token(corpus):
    batch = TextBatches(corpus / "tokens", 64, seed=0)(0)
    bins = ((batch["t"] - 1e-3) / (1 - 1e-3) * 64).floor().long()
    assert bins.sort().values.tolist() == list(range(64))
    assert (batch["tokens"][:, 0] == 0).all() and not batch["hidden"][:, 0].any()
    share = batch["hidden"][:, 1:].float().mean(1)
    assert torch.corrcoef(torch.stack((share, batch["t"])))[0, 1] > 0.95
    ends = batch["tokens"] == 1
    assert (ends & batch["valid"]).sum() == 64  # exactly one end token of each text counts


def test_a_tenth_of_the_latents_is_dropped_and_the_rest_keep_unit_variance(corpus):
    batches = TextBatches(corpus / "tokens", 224, latents=draw_latents(range(224), 4), smoothing=0.5)
    z = torch.cat([batches(index)["z"] for index in range(20)])
    dropped = z.isnan().any(1)
    assert 0.08 < dropped.float().mean() < 0.12
    assert torch.equal(z.isnan().any(1), z.isnan().all(1))
    assert abs(z[~dropped].std() - 1) < 0.05
    with pytest.raises(ValueError, match="224 rows in 'train', the latents have 3"):
        TextBatches(corpus / "tokens", 8, latents=torch.zeros(3, 4))
