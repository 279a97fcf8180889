"""Generating texts: seeds, batches, prompts kept to the letter, samplers, lengths, latents, bad arguments."""

import random
from dataclasses import replace

import numpy as np
import pytest
import torch

from pgm_text.pipeline import TextPipeline
from pgm_text.request import SAMPLERS
from pgm_text.tokenizer import Tokenizer

KINDS = ("pgm", "mdlm", "rmdm")
ODD = [
    "a <|endoftext|> b", "<|bos|>", "<script>1</script>", "wave 👋🏽", "שלום", "two\nlines", "nul \0", "   ",
    "ends with space ",
]  # fmt: skip


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_text_is_the_same_in_any_batch(pipelines, kind, sampler):
    pipeline, settings = pipelines[kind], {"steps": 6, "sampler": sampler, "length": 20}
    alone = [pipeline.generate(seed=5 + i, **settings)[0] for i in range(4)]
    assert len(set(alone)) == 4
    for batch_size in (1, 3, 4):
        assert pipeline.generate(num_texts=4, seed=5, batch_size=batch_size, **settings) == alone


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_number_of_cells_is_constant_and_all_get_filled(pipelines, kind, sampler):
    steps = list(pipelines[kind].generate_steps("lantern ", num_texts=2, steps=5, sampler=sampler, length=17))
    assert {step.codes.shape for step in steps} == {(2, 17)}
    assert all(len(row) == 17 for step in steps for row in pipelines[kind].pieces(step.codes))
    filled = sum(step.filled.long() for step in steps)
    prompt = len(pipelines[kind].tokenizer.encode("lantern"))
    assert torch.equal(filled, torch.cat((torch.zeros(2, prompt), torch.ones(2, 17 - prompt)), dim=1).long())
    assert (steps[-1].codes >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_raster_fills_from_left_to_right_around_what_is_given(pipelines, kind):
    steps = list(pipelines[kind].generate_steps("____ of ____", num_texts=2, steps=3, sampler="raster", blank_tokens=3))
    places = [step.filled[0].nonzero().flatten().tolist() for step in steps]
    blanks = (~steps[0].known | steps[0].filled)[0].nonzero().flatten().tolist()
    assert [len(place) for place in places] == [2, 2, 2] and sum(places, []) == blanks


@pytest.mark.parametrize("prompt", ODD)
@pytest.mark.parametrize("kind", ["pgm", "mdlm"])
def test_a_prefix_is_kept_to_the_letter(pipelines, kind, prompt):
    for seed in range(3):
        (text,) = pipelines[kind].generate(prompt, seed=seed, steps=8)
        assert text.startswith(prompt)


@pytest.mark.parametrize("kind", KINDS)
def test_what_stands_around_blanks_is_kept_to_the_letter(pipelines, kind):
    head, middle, tail = "a <b>&amp; ", " of <|eos|> 👋🏽 ", "'s ladder"
    for seed in range(5):
        (text,) = pipelines[kind].generate(f"{head}____{middle}[MASK]{tail}", seed=seed, steps=4, blank_tokens=2)
        assert text.startswith(head) and text.endswith(tail) and middle in text
        assert "____" not in text


def test_blanks_never_hold_special_tokens(pipelines, text_model):
    fresh = text_model("pgm", random=False)  # predicts all tokens alike
    pipeline = TextPipeline(fresh, pipelines["pgm"].tokenizer, pipelines["pgm"].info)
    ids = pipeline.generate("____", num_texts=40, steps=2, blank_tokens=8, output_type="ids")
    special = {pipeline.tokenizer.bos_id, pipeline.tokenizer.eos_id, pipeline.tokenizer.mask_id}
    assert ids.shape == (40, 8) and not special & set(ids.flatten().tolist())
    free = pipeline.generate(num_texts=40, steps=2, output_type="ids")
    assert pipeline.tokenizer.eos_id in free and pipeline.tokenizer.bos_id not in free


def test_a_prompt_that_leaves_nothing_to_generate_comes_back(pipelines):
    assert pipelines["pgm"].generate("a kind of raven", extend=False) == ["a kind of raven"]
    (step,) = pipelines["mdlm"].generate_steps("a kind of raven", extend=False)
    assert step.total == 0 and (step.codes >= 0).all()


@pytest.mark.parametrize("kind", ["pgm", "mdlm"])
@pytest.mark.parametrize(("length", "steps"), [(37, 10), (38, 7), (1, 5), (13, 13), (5, 100)])
def test_lengths_and_steps_need_not_divide(pipelines, kind, length, steps):
    seen = list(pipelines[kind].generate_steps(length=length, steps=steps, sampler="uniform"))
    assert seen[-1].codes.shape == (1, length) and (seen[-1].codes >= 0).all()
    assert len(seen) == seen[0].total == min(length, steps)
    assert all(step.filled.any() for step in seen)


def test_a_partition_model_computes_less_than_a_masked_one(pipelines):
    last = {kind: list(pipelines[kind].generate_steps(steps=19))[-1] for kind in ("pgm", "mdlm")}
    assert last["mdlm"].computed == 19 * 40
    # BOS, the end token and what is known so far, plus the two tokens asked for at each step.
    assert last["pgm"].computed == sum(1 + 1 + 2 * i + 2 for i in range(19))


def test_shorter_texts_end_by_an_end_token_that_is_given_not_shown(pipelines):
    calls = []
    model = pipelines["pgm"].transformer
    original = model.embed
    model.embed = lambda tokens, *rest, **options: calls.append(tokens) or original(tokens, *rest, **options)
    try:
        list(pipelines["pgm"].generate_steps(length=9, steps=3))
    finally:
        del model.embed
    tokenizer = pipelines["pgm"].tokenizer
    assert calls[0].tolist() == [[tokenizer.bos_id, tokenizer.eos_id]]
    assert [tokens.shape[1] for tokens in calls] == [2, 3, 3], "each token goes in once"


def test_running_text_has_no_end_behind_its_window(pipelines, text_model):
    info = replace(pipelines["mdlm"].info, layout="wrapped", length=39)
    for kind in ("pgm", "mdlm"):
        pipeline = TextPipeline(text_model(kind), pipelines[kind].tokenizer, info)
        *_, last = pipeline.generate_steps("a raven", length=12, steps=4)
        assert last.codes.shape == (1, 12)
        assert last.computed == (4 * 40 if kind == "mdlm" else last.computed)
    ends = torch.tensor([[pipeline.tokenizer.eos_id, *pipeline.tokenizer.encode("a raven")]])
    assert pipeline.decode(ends) == ["a raven"]  # documents follow each other
    assert pipelines["pgm"].decode(ends) == [""]


def test_seeds_may_come_as_any_kind_of_whole_number(pipelines):
    expected = pipelines["pgm"].generate(seed=5, steps=4)
    for seed in (5.0, np.int64(5), torch.tensor(5)):
        assert pipelines["pgm"].generate(seed=seed, steps=4) == expected
    assert pipelines["pgm"].generate(seed=2**32 + 1, steps=4) != pipelines["pgm"].generate(seed=1, steps=4)


def test_global_randomness_is_neither_used_nor_changed(pipelines):
    expected = pipelines["rmdm"].generate(seed=3, steps=4)
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    before = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    assert pipelines["rmdm"].generate(seed=3, steps=4) == expected
    assert torch.equal(before[0], torch.get_rng_state()) and before[1] == random.getstate()
    assert (before[2] == np.random.get_state()[1]).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_texts": 0}, "num_texts must be an integer >= 1, got 0"),
        ({"steps": 0}, r"steps must be an integer in 1\.\.4096, got 0"),
        ({"steps": 2.5}, "steps must be an integer"),
        ({"length": 39}, r"length must be an integer in 1\.\.38, got 39"),
        ({"sampler": "greedy"}, "sampler must be one of uniform, .*, confidence, raster, got 'greedy'"),
        ({"temperature": -1}, "temperature must be a finite number >= 0, got -1"),
        ({"top_p": 0}, r"top_p must be a number in \(0, 1\], got 0"),
        ({"top_k": 0}, "top_k must be an integer >= 1, got 0"),
        ({"seed": -1}, "seed must be an integer in"),
        ({"seed": float("nan")}, "seed must be an integer in"),
        ({"z": [0.0] * 4}, "z must be None for a model without a latent"),
        ({"guidance_scale": 1}, "guidance_scale must be 0 for 'pgm'"),
        ({"blank_tokens": 0}, "blank_tokens must be an integer >= 1, got 0"),
        ({"extend": "yes"}, "extend must be True, False or None, got 'yes'"),
        ({"batch_size": 0}, "batch_size must be an integer >= 1, got 0"),
        ({"output_type": "html"}, "output_type must be one of text, ids, got 'html'"),
        ({"prompt": ["a"]}, "prompt must be a string or None"),
    ],
)
def test_bad_arguments_are_refused_by_name_and_value(pipelines, arguments, message):
    with pytest.raises(ValueError, match=message):
        pipelines["pgm"].generate(**arguments)


def test_texts_are_not_greedy_by_default_and_greedy_ones_warn(pipelines):
    texts = pipelines["pgm"].generate(num_texts=4, steps=4)
    assert len(set(texts)) == 4
    with pytest.warns(UserWarning, match="temperature 0 takes the likeliest token"):
        greedy = pipelines["pgm"].generate(length=1, temperature=0, num_texts=3)
    assert len(set(greedy)) == 1


def test_top_k_and_top_p_narrow_the_choice(pipelines):
    pipeline, one = pipelines["pgm"], {"length": 1, "num_texts": 100, "output_type": "ids", "batch_size": 100}
    wide = pipeline.generate(**one).unique().numel()
    assert pipeline.generate(**one, top_k=1).unique().numel() == 1
    assert pipeline.generate(**one, top_k=3).unique().numel() <= 3
    assert pipeline.generate(**one, top_p=0.2).unique().numel() < wide


def test_closing_the_steps_or_interrupting_ends_the_work(pipelines):
    steps = pipelines["pgm"].generate_steps(steps=10)
    next(steps), next(steps)
    steps.close()
    with pytest.raises(StopIteration):
        next(steps)
    seen = []

    def stop(pipe, index, total, values):
        seen.append((index, total, values["step"].index))
        if index == 2:
            pipe.interrupt()

    (text,) = pipelines["pgm"].generate(steps=10, callback_on_step_end=stop)
    assert seen == [(0, 10, 0), (1, 10, 1), (2, 10, 2)]
    assert "____" in text or text  # what is unknown shows as blanks, unless an end token came first


def test_generating_leaves_the_mode_of_the_model_alone(pipelines):
    model = pipelines["mdlm"].transformer
    model.train()
    try:
        pipelines["mdlm"].generate(steps=2)
        assert model.training and all(parameter.requires_grad for parameter in model.parameters())
    finally:
        model.eval()


def test_saved_and_loaded_a_model_gives_the_same_texts(pipelines, tmp_path):
    for kind, pipeline in pipelines.items():
        pipeline.save_pretrained(tmp_path / kind)
        loaded = TextPipeline.from_pretrained(tmp_path / kind, device="cpu")
        assert loaded.info == pipeline.info
        assert loaded.generate("a ____ raven", seed=1, steps=3) == pipeline.generate("a ____ raven", seed=1, steps=3)
    assert Tokenizer.load(tmp_path / "pgm").vocab_size == pipelines["pgm"].tokenizer.vocab_size


# -- latents -----------------------------------------------------------------------------------------------------


def test_z_comes_from_the_texts_own_seed_and_stays_for_all_steps(pipelines, monkeypatch):
    pipeline, asked = pipelines["rmdm"], []
    original = pipeline.transformer.condition
    monkeypatch.setattr(pipeline.transformer, "condition", lambda s, z=None: asked.append(z) or original(s, z))
    list(pipeline.generate_steps(num_texts=3, seed=7, steps=9))
    assert len(asked) == 1  # once per generation, not per step
    assert torch.equal(asked[0], pipeline.draw_latents([7, 8, 9]))
    drawn = pipeline.draw_latents(range(4000))
    assert abs(drawn.mean()) < 0.03 and abs(drawn.std() - 1) < 0.03


def test_a_given_z_makes_variations_of_one_text(pipelines):
    pipeline = pipelines["rmdm"]
    z = pipeline.draw_latents([3])[0]
    expected = pipeline.generate(seed=3, steps=4)
    assert pipeline.generate(seed=3, steps=4, z=z) == expected
    for value in (z.tolist(), z.numpy(), z[None], [z.tolist()]):
        assert pipeline.generate(seed=3, steps=4, z=value) == expected
    assert pipeline.generate(seed=4, steps=4, z=z) != expected  # other token noise
    many = pipeline.generate(num_texts=2, seed=3, steps=4, z=torch.stack((z, -z)))
    assert many[0] == expected[0] and many[1] != pipeline.generate(seed=4, steps=4)[0]


@pytest.mark.parametrize(
    ("z", "message"),
    [
        ([0.0] * 3, r"z must have shape \(4,\) or \(2, 4\), got"),
        ([[0.0] * 4] * 3, r"z must have shape \(4,\) or \(2, 4\)"),
        ([0.0, 0.0, float("nan"), 0.0], "z must hold finite numbers"),
        ("zero", "z must be one vector of 4 numbers"),
        ([[0.0], [0.0, 1.0]], "z must be one vector of 4 numbers"),
    ],
)
def test_a_z_of_another_shape_is_refused(pipelines, z, message):
    with pytest.raises(ValueError, match=message):
        pipelines["rmdm"].generate(z=z, num_texts=2)


def test_guidance_on_z_changes_texts_and_costs_a_second_pass(pipelines):
    plain, guided = (
        list(pipelines["rmdm"].generate_steps(steps=5, seed=2, guidance_scale=scale))[-1] for scale in (0, 4)
    )
    assert guided.computed == 2 * plain.computed
    assert not torch.equal(plain.codes, guided.codes)


def test_a_model_without_a_representation_cannot_embed(pipelines):
    with pytest.raises(ValueError, match="has no representation/"):
        pipelines["rmdm"].latents_of(["a text"])
    with pytest.raises(ValueError, match="has no latent z"):
        pipelines["pgm"].draw_latents([0])
