"""Evaluation: the bound is exact where it can be, RMDM's has both terms, samples and reports hold what they say."""

import math
import re

import pytest
import torch

from pgm_text.algorithms import mdlm
from pgm_text.evaluation.bound import Bound, measure_bound, nelbo
from pgm_text.evaluation.known_truth import TwoTemplates, sampled_distribution, study, train_model
from pgm_text.evaluation.report import readable, table
from pgm_text.evaluation.samples import few_step_table, measure_texts, sample_rows
from pgm_text.evaluation.steps_plot import draw_steps
from pgm_text.metrics import VerbatimIndex
from pgm_text.representation import noised_posterior_kl
from pgm_text.scorer import score, up_to_end


@pytest.fixture(scope="module")
def rows(tokenizer):
    texts = [tokenizer.encode(text) for text in ("a kind of raven", "lantern", "a small ladder made of wood")]
    longest = 39
    return torch.tensor([[0, *ids, *[1] * (longest - len(ids))] for ids in texts])


def test_the_bound_of_independent_tokens_is_their_likelihood():
    probabilities = torch.softmax(torch.randn(5, 7, generator=torch.Generator().manual_seed(0)), -1)
    tokens = torch.randint(0, 7, (40, 6), generator=torch.Generator().manual_seed(1))
    exact = -probabilities[torch.arange(5), tokens[:, 1:]].log()

    def token_nll(part, hidden, z):
        nats = -probabilities[torch.arange(5), part[:, 1:]].log()
        return torch.cat((torch.zeros(len(part), 1), nats), dim=1) * hidden

    nats = nelbo(token_nll, tokens, 500, torch.Generator().manual_seed(2), batch_size=16)
    torch.testing.assert_close(nats, exact.sum(1).double(), rtol=0.05, atol=0.05)


def test_the_bound_averages_over_orders():
    # Two tokens that are always equal: 1 bit in either order, 2 bits when both are hidden at once.
    def token_nll(part, hidden, z):
        alone = hidden[:, 1] & hidden[:, 2]
        nats = torch.where(alone, math.log(2), 0.0)[:, None]
        return torch.cat((torch.zeros_like(nats), nats, nats), dim=1) * hidden

    nats = nelbo(token_nll, torch.zeros(2000, 3, dtype=torch.long), 2, torch.Generator().manual_seed(0))
    assert nats.mean().item() == pytest.approx(math.log(2), abs=1e-6)  # k = 1 and k = 2 once each: stratified


def test_an_untrained_model_has_the_bound_of_the_uniform_distribution(text_model, rows):
    for kind in ("pgm", "mdlm"):
        model = text_model(kind, random=False)
        bound = measure_bound(model, rows, 1, draws=3)["bound"]
        tokens = int(up_to_end(rows, 1)[:, 1:].sum())
        exact = 39 * math.log(model.config.vocab_size - 1)
        assert bound["nats_per_text"] == pytest.approx(exact, rel=1e-5)
        assert bound["standard_error"] == pytest.approx(0, abs=1e-4)
        assert bound["nats_per_token"] == pytest.approx(3 * exact / tokens, rel=1e-5)
        assert (bound["texts"], bound["tokens"], bound["draws"]) == (3, tokens, 3)
        assert bound["perplexity"] == pytest.approx(math.exp(bound["nats_per_token"]))


def test_rmdms_bound_is_the_sum_of_its_terms(text_model, rows):
    model, z = text_model("rmdm", random=False), torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    found = measure_bound(model, rows, 1, draws=2, z=z, smoothing=0.4)
    terms = found["terms_per_token"]
    assert found["bound"]["nats_per_token"] == pytest.approx(sum(terms.values()))
    price = noised_posterior_kl(z, 0.4).sum().item() / found["bound"]["tokens"]
    assert terms["price of z"] == pytest.approx(price) and price > 0
    assert set(found["given"]) == {"own z", "another text's z", "fresh z", "null z"}
    with pytest.raises(ValueError, match="z must be given for a model with a latent"):
        measure_bound(model, rows, 1, draws=2)


def test_the_standard_error_is_over_texts():
    bound = Bound.of(torch.tensor([1.0, 3.0], dtype=torch.float64), tokens=8, draws=4)
    assert bound.nats_per_text == 2 and bound.nats_per_token == 0.5
    assert bound.standard_error == pytest.approx(1.0)


def test_texts_are_measured_up_to_their_first_end_token(rows, text_model, tokenizer):
    index = VerbatimIndex([tokenizer.encode("a kind of raven"), tokenizer.encode("lantern (noun): a")])
    scorer = text_model("scorer", random=False)
    found = measure_texts(rows, 1, scorer, index)
    lengths = [len(tokenizer.encode(text)) for text in ("a kind of raven", "lantern", "a small ladder made of wood")]
    assert found["tokens_per_text"] == pytest.approx((sum(lengths) + 3) / 3)
    assert found["whole_copies"] == pytest.approx(2 / 3)
    assert found["generative_perplexity"] == pytest.approx(scorer.config.vocab_size, rel=1e-4)
    assert 0 < found["distinct_1"] <= found["distinct_3"] == 1
    changed = rows.clone()
    changed[:, -1] = 9  # behind the end
    assert measure_texts(changed, 1, scorer, index) == pytest.approx(found)


def test_positions_up_to_the_end():
    rows = torch.tensor([[0, 5, 1, 1, 6], [1, 5, 6, 7, 8], [0, 1, 5, 1, 1]])
    expected = [[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 1, 0, 0, 0]]  # BOS may be the end token, as in GPT-2
    assert up_to_end(rows, 1).long().tolist() == expected


def test_the_scorer_cannot_look_ahead(text_model, rows):
    scorer = text_model("scorer")
    changed = rows.clone()
    changed[:, 20:] = 9
    with torch.no_grad():
        torch.testing.assert_close(scorer(rows)[:, :20], scorer(changed)[:, :20], atol=1e-5, rtol=1e-5)
    assert score(scorer, rows, 1, batch_size=2).count == int(up_to_end(rows, 1)[:, 1:].sum())


def test_samples_come_with_their_cost(pipelines):
    rows, cost = sample_rows(pipelines["pgm"], 5, 4, batch_size=2, seed=9)
    assert rows.shape == (5, 39) and (rows[:, 0] == 0).all()
    assert torch.equal(rows[:, 1:], pipelines["pgm"].generate(num_texts=5, steps=4, seed=9, output_type="ids"))
    masked = sample_rows(pipelines["mdlm"], 5, 4, batch_size=2)[1]
    assert masked["positions_computed_per_text"] == 4 * 40 > cost["positions_computed_per_text"]
    assert cost["tokens_per_second"] == pytest.approx(38 / cost["seconds_per_text"])
    table_ = few_step_table(pipelines["mdlm"], [2, 3], 2, None, None)
    assert list(table_) == ["2", "3"] and "generative_perplexity" not in table_["2"]


# -- the language whose truth is known -----------------------------------------------------------------------------


def test_the_truth_by_enumeration():
    language = TwoTemplates(length=3, slip=0.0)
    truth = language.truth()
    assert truth["without z"] == pytest.approx(2 * math.log(2))  # three bits that are one
    assert 0 < truth["given z'"] < truth["without z"]
    assert TwoTemplates(smoothing=0.01).truth()["given z'"] < 0.02
    noisy = TwoTemplates(length=3, slip=0.5).truth()
    assert noisy["without z"] == pytest.approx(0, abs=1e-12)
    assert language.joint().sum() == pytest.approx(1)
    words, z = TwoTemplates().draw(20_000, torch.Generator().manual_seed(0))
    index = ((words == 2).long() * torch.tensor([8, 4, 2, 1])).sum(1)
    frequencies = torch.bincount(index, minlength=16) / 20_000
    torch.testing.assert_close(frequencies.double(), TwoTemplates().joint().flatten(), atol=0.01, rtol=0)
    assert ((words[:, 0] == 1) == (z[:, 0] > 0)).float().mean() > 0.97


def test_one_step_of_mdlm_mixes_templates_and_one_of_rmdm_does_not():
    language = TwoTemplates(length=4, slip=0.0, smoothing=0.1)
    pure = torch.zeros(16, dtype=torch.bool)
    pure[[0, 15]] = True
    share = {}
    for latent in (False, True):
        model = train_model(language, latent, steps=150)
        share[latent] = sampled_distribution(model, language, steps=1, count=1000)[pure].sum().item()
    assert share[False] < 0.25  # 1/8: four independent coins that agree
    assert share[True] > 0.85


def test_the_study_reports_truth_and_models():
    found = study(TwoTemplates(length=2), training_steps=60)
    assert set(found["total_correlation_truth"]) == {"without z", "given z'", "given z"}
    assert found["total_correlation_models"]["mdlm"] > found["total_correlation_models"]["rmdm, given z'"]
    assert set(found["total_variation_to_truth_at_steps"]["mdlm"]) == {"1", "2"}
    text = readable({"protocol": {"rows": 1, "draws": 1}, "models": {}, "known_truth": found})
    assert "total correlation" in text and "truth" in text


def test_the_plot_holds_every_model_and_the_held_out_texts():
    def steps(*perplexities):
        return {str(2**i): {"generative_perplexity": p, "entropy": 3 + i} for i, p in enumerate(perplexities)}

    report = {
        "models": {"dictionary-pgm": {"steps": steps(90.0, 60.0, 50.0)}, "dictionary-mdlm": {"steps": steps(99.0)}},
        "held_out": {"generative_perplexity": 45.0, "entropy": 3.2},
    }
    svg = draw_steps(report)
    assert svg.count("<polyline") == 4 and svg.count("<circle") == 8  # two models in two panels
    words = ("generative perplexity", "token entropy, nats", "steps", "dictionary-mdlm", "held-out texts")
    assert all(f">{word}</text>" in svg for word in words)
    first = svg.split('points="')[1].split('"')[0].split()
    heights = [float(point.split(",")[1]) for point in first]
    assert heights == sorted(heights)  # perplexity falls, and SVG counts downwards
    level = re.search(r'y1="([\d.]+)"[^>]*stroke-dasharray', svg)
    assert float(level.group(1)) > heights[-1]  # no model reaches the held-out texts
    for figures in (report["models"]["dictionary-pgm"]["steps"], report["models"]["dictionary-mdlm"]["steps"]):
        for row in figures.values():
            del row["generative_perplexity"]
    with pytest.raises(ValueError, match="no value of generative perplexity is known"):
        draw_steps(report)


def test_tables_line_up():
    lines = table(("model", "ppl"), [("pgm", 12.34567), ("a long name", 1.0)]).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert "12.35" in lines[2]


def test_mdlm_and_its_token_nll_share_a_normalisation(text_model, rows):
    model = text_model("mdlm", random=False)
    hidden = torch.zeros_like(rows, dtype=torch.bool)
    hidden[:, 5] = True
    with torch.no_grad():
        nll = mdlm.token_nll(model, rows, hidden)
    assert nll.sum().item() == pytest.approx(3 * math.log(model.config.vocab_size - 1), rel=1e-5)
