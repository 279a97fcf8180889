"""The functions behind the text tab, called without a browser; and the same with tiny real models."""

import json
from dataclasses import replace

import pytest
import torch
from fake_text_pipeline import FakeTextPipeline, tokenizer
from tiny_pipeline import tiny_text_pipeline

from app.limits import Limits
from app.page import build
from app.text_compare import verdict
from app.text_files import file_name, plain, report, save
from app.text_form import COMPARE, FIELDS, NOTHING_KEPT, asked, examples, latent_of, preset_values, reuse
from app.text_models import NONE, TextModels
from app.text_reveal import pieces_of, rate, text_so_far
from app.text_settings import TextSettings, checked, defaults, latent_vector, latent_words, request_of
from app.text_tab import kept_words, run
from pgm_text import slerp
from pgm_text.prompt import lay_out

LIMITS = Limits()
ODD = ["a <b>&amp; ____ 👋🏽 ____'s [x]", "שלום ____", "two\nlines ____", "<|eos|> ____", "   ", "un____able"]


@pytest.fixture
def pipelines():
    return {f"fake-{kind}": FakeTextPipeline(kind, 0.0) for kind in ("pgm", "mdlm", "rmdm")}


@pytest.fixture
def texts(pipelines):
    return TextModels(pipelines)


def outcome(texts, kept=None, **form):
    return list(run(texts, LIMITS, {"prompt": "lantern (noun): ", **form}, kept))


def last(texts, kept=None, **form):
    return outcome(texts, kept, **form)[-1][0]


def test_a_run_yields_the_value_twice_and_the_seed_once(texts):
    rows = outcome(texts, steps=5, seed=9)
    assert [len(viewer["sides"][0]["steps"]) for viewer, _, _ in rows] == [0, 1, 2, 3, 4, 5]
    assert all(viewer is session for viewer, session, _ in rows)
    assert rows[0][2] == 9 and isinstance(rows[1][2], dict)
    json.dumps(rows[-1][0])


def test_every_step_only_adds_to_the_value(texts):
    rows = [value for value, _, _ in outcome(texts, steps=6)]
    for before, after in zip(rows, rows[1:], strict=False):
        (one,), (two,) = before["sides"], after["sides"]
        assert two["steps"][: len(one["steps"])] == one["steps"]
        assert {key: two[key] for key in two if key not in ("steps", "done")} == {
            key: one[key] for key in one if key not in ("steps", "done")
        }


@pytest.mark.parametrize("prompt", ODD)
def test_what_the_browser_puts_together_is_the_text_and_keeps_the_prompt_to_the_letter(texts, prompt):
    (side,) = last(texts, prompt=prompt, steps=4, blank_tokens=3)["sides"]
    held = dict(map(tuple, side["given"]))
    for step in side["steps"]:
        held |= dict(map(tuple, step["pieces"][0]))
    shown = []
    for cell in range(side["cells"]):
        if held[cell] is None:
            break
        shown.append(held[cell])
    (text,) = side["steps"][-1]["texts"]
    assert "".join(shown) == text
    at = 0
    for part in prompt.split("____"):
        assert text.index(part, at) >= at
        at = text.index(part, at) + len(part)


def test_a_character_of_several_tokens_stands_in_its_first_cell():
    ids = tokenizer().encode("a 👋 b")
    assert len(ids) >= 6
    pieces = pieces_of(tokenizer(), ids, {})
    assert "".join(pieces) == "a 👋 b" and "👋" in pieces and "\ufffd" not in "".join(pieces)
    half = [*ids[:3], -1, *ids[4:]]
    assert pieces_of(tokenizer(), half, {})[3] == ""
    assert pieces_of(tokenizer(), [tokenizer().eos_id, -1], {}) == [None, ""]


@pytest.mark.parametrize(
    ("prompt", "known", "expected"),
    [
        ("lantern ", 0, "lantern ____"),
        ("un____able", 0, "un____able"),
        ("a ____ of", 0, "a ____ of"),
        ("", 0, "____"),
    ],
)
def test_unknown_cells_show_as_one_blank(prompt, known, expected):
    layout = lay_out(prompt, tokenizer(), 12)
    pieces = pieces_of(tokenizer(), layout.ids, {})
    assert text_so_far(layout.ids, pieces, layout, True) == expected


def test_texts_are_those_of_the_pipeline_and_seeds_count_up(texts, pipelines):
    value = last(texts, num_texts=3, seed=20)
    (side,) = value["sides"]
    assert side["seeds"] == [20, 21, 22] and side["labels"] == ["Seed 20", "Seed 21", "Seed 22"]
    pipeline = pipelines["fake-pgm"]
    *_, step = pipeline.steps(pipeline.request("lantern (noun): ", num_texts=3, seed=20, steps=16))
    assert side["steps"][-1]["texts"] == pipeline.decode(step.codes)


def test_there_are_never_more_steps_than_tokens_to_fill(texts):
    rows = [value for value, _, _ in outcome(texts, prompt="a ____ b", blank_tokens=3, steps=16)]
    assert {value["sides"][0]["total"] for value in rows} == {3}
    assert "3 steps" in rows[-1]["summary"] and rows[-1]["done"]


def test_a_new_seed_is_drawn_when_asked(texts):
    assert len({outcome(texts, steps=1, seed=9, randomise=True)[0][2] for _ in range(6)}) > 1


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"seed": -1}, "Seed must be a whole number from 0 up, not -1."),
        ({"steps": 0}, "Steps must be a whole number"),
        ({"length": 10_000}, "Length must be a whole number from 1 to 40, not 10000."),
        ({"top_p": 7}, "Top-p must be a number"),
        ({"temperature": float("nan")}, "Temperature must be a number"),
        ({"sampler": "no such"}, "Sampler must be one of uniform"),
        ({"model": "../x"}, "Model must be one of fake-pgm"),
        ({"prompt": "word " * 60}, "do not fit"),
        ({"prompt": "x" * 30_000}, "The prompt has 30,000 characters"),
        ({"prompt": "half \ud83d pair"}, "half of a character pair"),
        ({"num_texts": 1000}, "How many must be"),
        ({"model": "fake-rmdm", "z_mode": "keep"}, NOTHING_KEPT),
        ({"mode": "no such"}, "Show must be one of"),
    ],
)
def test_bad_input_is_one_sentence_and_the_next_run_works(texts, form, words):
    rows = outcome(texts, **form)
    assert len(rows) == 1
    assert words in rows[0][0]["error"] and rows[0][0]["error"].endswith((".", "?"))
    assert last(texts, steps=2)["done"]


def test_out_of_memory_is_told(texts, pipelines):
    def fail(request):
        raise RuntimeError("CUDA out of memory")
        yield

    pipelines["fake-pgm"].steps = fail
    assert last(texts)["error"] == "The machine ran out of memory; try fewer texts."


def test_closing_the_handler_ends_the_work(texts, pipelines):
    pipeline = pipelines["fake-pgm"]
    rows = run(texts, LIMITS, {"prompt": ""}, None)
    for _ in range(5):
        next(rows)
    rows.close()
    assert (pipeline.closed, pipeline.running, pipeline.steps_run) == (1, 0, 4)


def test_models_write_side_by_side_in_step(texts, pipelines):
    rows = [value for value, _, _ in outcome(texts, mode=COMPARE, steps=7, seed=4)]
    assert [side["label"] for side in rows[0]["sides"]] == ["PGM", "MDLM", "RMDM"]
    for value in rows:
        assert len({len(side["steps"]) for side in value["sides"]}) == 1
        assert {(side["total"], tuple(side["seeds"]), side["cells"]) for side in value["sides"]} == {(7, (4,), 40)}
    work = [side["steps"][-1]["computed"] for side in rows[-1]["sides"]]
    assert work[0] < work[1] == work[2]
    assert rows[-1]["verdict"].endswith("a masked transformer runs every position at every step.")
    assert all(pipeline.running == 0 for pipeline in pipelines.values())


def test_a_kind_that_is_not_installed_is_left_out_with_the_reason(pipelines):
    del pipelines["fake-rmdm"]
    value = last(TextModels(pipelines), mode=COMPARE, steps=2)
    assert [side["label"] for side in value["sides"]] == ["PGM", "MDLM"]
    assert value["left_out"] == "RMDM is left out: no such model that shares the vocabulary is installed."
    del pipelines["fake-mdlm"]
    alone = last(TextModels(pipelines), mode=COMPARE)
    assert alone["error"] == (
        "There is no MDLM or RMDM model with the vocabulary of Made-up dictionary, PGM to put beside it."
    )


def test_models_of_another_vocabulary_are_not_compared(pipelines):
    pipelines["fake-mdlm"] = FakeTextPipeline("mdlm", 0.0, vocab_size=9)
    texts = TextModels(pipelines)
    assert texts.beside("fake-pgm") == (["fake-pgm", "fake-rmdm"], ["MDLM"])
    assert texts.left_out("fake-pgm").startswith("MDLM is left out")
    assert texts.left_out("fake-mdlm").startswith("PGM and RMDM are left out")


def test_equal_work_is_called_equal():
    side = {"label": "PGM", "steps": [{"computed": 100}]}
    assert verdict([side, {**side, "label": "MDLM"}]) == "All of them computed the same number of tokens."


def test_a_kept_z_is_the_same_for_all_texts_while_seeds_go_on(texts, pipelines):
    value = last(texts, 7, model="fake-rmdm", z_mode="keep", num_texts=3, seed=50, steps=2)
    (request,) = pipelines["fake-rmdm"].requests
    z = pipelines["fake-rmdm"].draw_latents([7])[0]
    assert torch.equal(request.z, z.expand(3, -1)) and request.seeds == (50, 51, 52)
    assert value["sides"][0]["z"] == ["z of seed 7"] * 3
    assert latent_of(value, 2) == 7


def test_a_walk_changes_z_alone_and_any_stop_can_be_kept(texts, pipelines):
    pipeline = pipelines["fake-rmdm"]
    value = last(texts, 7, model="fake-rmdm", z_mode="walk", walk_to=11, stops=5, seed=50, steps=2)
    (request,) = pipeline.requests
    start, end = pipeline.draw_latents([7, 11])
    assert request.seeds == (50,) * 5
    assert torch.equal(request.z[0], start) and torch.equal(request.z[4], end)
    assert torch.allclose(request.z[2], slerp(start, end, 0.5))
    assert value["sides"][0]["labels"] == [
        "z of seed 7", "25% of the way", "50% of the way", "75% of the way", "z of seed 11",
    ]  # fmt: skip
    middle = latent_of(json.loads(json.dumps(value)), 2)  # as a browser or a file would bring it back
    assert latent_words(middle) == "z 50% of the way from z of seed 7 to z of seed 11"
    assert torch.allclose(latent_vector(pipeline, middle), request.z[2])
    again = last(texts, middle, model="fake-rmdm", z_mode="walk", walk_to=3, stops=2, steps=1)
    assert again["done"] and "z 50% of the way" in kept_words(middle)


def test_z_does_not_concern_models_without_one(texts, pipelines):
    assert last(texts, 7, z_mode="keep", guidance_scale=3)["done"]
    assert pipelines["fake-pgm"].requests[0].z is None
    value = last(texts, 7, mode=COMPARE, model="fake-rmdm", z_mode="walk", walk_to=1, stops=3, steps=2)
    assert value["done"] and {side["count"] for side in value["sides"]} == {1}


def test_plain_text_is_the_text_and_several_have_headings(texts):
    value = last(texts, seed=3)
    text = value["sides"][0]["steps"][-1]["texts"][0]
    name, kind, content = save(value, "txt", 15)
    assert (name, kind, content.decode()) == ("lantern-noun-seed3.txt", "text/plain;charset=utf-8", text + "\n")
    assert save(value, "txt", 2)[0] == "lantern-noun-seed3-step3.txt" and "____" in save(value, "txt", 2)[2].decode()
    many = plain(last(texts, mode=COMPARE, steps=3), 2)
    assert "[PGM, Seed 0]\n" in many and "[RMDM, Seed 0]\n" in many


def test_json_holds_all_settings_and_every_step(texts):
    value = last(texts, seed=3, num_texts=2, steps=4, temperature=0.7)
    name, kind, content = save(value, "json", 1)
    found = json.loads(content)
    (model,) = found["models"]
    assert (name, kind) == ("lantern-noun-seed3.json", "application/json")
    assert model["settings"] == value["sides"][0]["settings"] and model["settings"]["temperature"] == 0.7
    assert [step["step"] for step in model["steps"]] == [1, 2, 3, 4]
    assert [one["seed"] for one in model["texts"]] == [3, 4]
    assert model["steps"][-1]["texts"] == [one["text"] for one in model["texts"]]
    cells = [cell for step in model["steps"] for cell in step["new_tokens"][0]]
    assert sorted(cells + [cell for cell, _ in value["sides"][0]["given"]]) == list(range(40))
    assert "z" not in model["texts"][0] and "z" in report(last(texts, model="fake-rmdm"))["models"][0]["texts"][0]


@pytest.mark.parametrize(("kind", "step"), [("exe", 0), ("txt", 99), ("txt", -1), ("json", None), ("txt", "0")])
def test_what_cannot_be_saved_is_refused(texts, kind, step):
    with pytest.raises(ValueError, match="there is no step|a download is one of"):
        save(last(texts, steps=2), kind, step)


def test_a_file_name_is_safe(texts):
    assert file_name(last(texts, prompt="../../etc/\0 <b>", steps=1)) == "etc-b-seed0"
    assert file_name(last(texts, prompt="  ", steps=1)) == "text-seed0"


def test_keeping_the_seed_changes_the_seed_alone_and_remix_all_but_it(texts):
    value = last(texts, num_texts=3, seed=50, steps=4, temperature=0.5, sampler="confidence")
    kept = dict(zip(FIELDS, reuse(value, "seed", 0, 2), strict=True))
    assert (kept["seed"], kept["randomise"]) == (52, False)
    assert all(isinstance(kept[name], dict) for name in FIELDS if name not in ("seed", "randomise"))
    remixed = dict(zip(FIELDS, reuse(value, "settings", 0, 0), strict=True))
    assert remixed["randomise"] is True and isinstance(remixed["seed"], dict)
    _, settings, _ = asked(texts, LIMITS, {k: v for k, v in remixed.items() if not isinstance(v, dict)}, None)
    assert replace(settings, seed=50).as_dict() == value["sides"][0]["settings"]


def test_the_form_starts_with_the_models_recommendation(texts):
    info = texts.info("fake-pgm")
    settings = defaults(info)
    assert (settings.steps, settings.temperature, settings.top_p, settings.length) == (16, 0.9, 0.95, 40)
    assert preset_values(info, "Draft") == (6, 40, "uniform", 0, 0.9, 0.95)
    assert examples(info) and examples(replace(info, examples=("x ",))) == ["x "]


def test_all_tokens_may_be_allowed_although_the_card_recommends_fewer(pipelines):
    settings = checked(TextSettings("fake-pgm", top_p=1), LIMITS, pipelines["fake-pgm"].info)
    assert request_of(pipelines["fake-pgm"], settings).sampling.top_p == 1


def test_tokens_per_second_count_what_was_generated(texts):
    (side,) = last(texts, num_texts=2, steps=2)["sides"]
    side["steps"][-1]["seconds"] = 2.0
    assert rate(side, -1) == (40 - len(side["given"]))


def test_without_a_text_model_the_page_works_and_says_how_to_get_one(pipeline):
    texts = TextModels({})
    assert texts.missing == NONE and texts.names() == []
    with pytest.raises(ValueError, match="No text model is installed"):
        texts.pipeline("x")
    assert last(texts)["error"] == NONE
    page = build({"fake": pipeline}, text_pipelines={})
    shown = [str(block.value) for block in page.blocks.values() if getattr(block, "value", None)]
    assert any("No text model is installed" in value for value in shown)


def test_a_broken_text_model_does_not_take_the_pictures_down(monkeypatch, tmp_path, pipeline):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "model_index.json").write_text("{")
    monkeypatch.setattr("pgm_text.registry.ASSETS", tmp_path)
    texts = TextModels()
    assert "broken" in texts.missing and texts.missing.endswith(".")
    assert build({"fake": pipeline})


@pytest.mark.parametrize("kind", ["pgm", "mdlm", "rmdm"])
def test_tiny_real_models_write_in_the_tab(kind):
    real = tiny_text_pipeline(kind)
    info = real.info
    texts = TextModels({info.name: real})
    form = {"model": info.name, "steps": 5, "num_texts": 2, "blank_tokens": 3, "guidance_scale": 1.0}
    value = last(texts, 7, prompt="____ (noun): a ____ thing", z_mode="keep", **form)
    (side,) = value["sides"]
    assert value["done"] and all(
        " (noun): a" in text and text.endswith(" thing") for text in side["steps"][-1]["texts"]
    )
    assert side["steps"][-1]["known"] == [side["cells"]] * 2
