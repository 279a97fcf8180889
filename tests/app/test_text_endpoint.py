"""The endpoints `/text` and `/text_steps` over HTTP: with gradio_client, with nothing else, without a model."""

import json

import httpx
import pytest
from fake_pipeline import FakePipeline
from fake_text_pipeline import FakeTextPipeline, entry
from gradio_client import Client

from app.limits import Limits
from app.page import build, launch_settings
from app.text_endpoint import ARGUMENTS


def serve(text_pipelines):
    page = build({"fake": FakePipeline(0.0)}, Limits(), text_pipelines=text_pipelines)
    try:
        yield page.launch(
            **launch_settings(page), prevent_thread_lock=True, quiet=True, inbrowser=False, ssr_mode=False
        )[1]
    finally:
        page.close(verbose=False)


@pytest.fixture(scope="module")
def address():
    yield from serve({f"fake-{kind}": FakeTextPipeline(kind, 0.0) for kind in ("pgm", "rmdm")})


@pytest.fixture(scope="module")
def client(address):
    return Client(address, verbose=False)


@pytest.mark.parametrize("name", ["/text", "/text_steps"])
def test_every_argument_is_named_explained_and_optional(client, name):
    found = client.view_api(return_format="dict")["named_endpoints"][name]
    assert [one["parameter_name"] for one in found["parameters"]] == [one.name for one in ARGUMENTS]
    assert all(one["parameter_has_default"] and one["label"] for one in found["parameters"])
    kinds = {one["parameter_name"]: one["python_type"]["type"] for one in found["parameters"]}
    assert (kinds["prompt"], kinds["steps"], kinds["temperature"]) == ("str", "int", "float")
    assert "kept to the letter" in found["description"]


def test_texts_come_with_seeds_settings_and_what_they_cost(client):
    answer = client.predict(prompt="lantern (noun): ", num_texts=2, seed=7, steps=5, api_name="/text")
    expected = ["lantern (noun): " + entry(seed).partition(": ")[2] for seed in (7, 8)]
    assert (answer["model"], answer["texts"], answer["seeds"]) == ("fake-pgm", expected, [7, 8])
    assert answer["settings"]["steps"] == 5 and answer["settings"]["top_p"] == 0.95
    assert 0 < answer["tokens_computed"] < answer["tokens_computed_masked"]


def test_steps_are_streamed_and_the_last_one_holds_the_texts(client):
    job = client.submit(prompt="lantern (noun): ", num_texts=2, seed=7, steps=5, api_name="/text_steps")
    final = job.result()
    records = job.outputs()
    assert records[-1] == final
    assert [one["index"] for one in records] == [0, 1, 2, 3, 4] and {one["total"] for one in records} == {5}
    assert [sum(map(len, one["filled"])) > 0 for one in records] == [True] * 5
    assert [one["known"] for one in records] == sorted(one["known"] for one in records)
    assert "____" in records[0]["texts"][0] and records[0]["texts"][0].startswith("lantern (noun): ")
    whole = client.predict(prompt="lantern (noun): ", num_texts=2, seed=7, steps=5, api_name="/text")
    assert final["texts"] == whole["texts"] and final["computed"] == whole["tokens_computed"]


def test_everything_may_be_left_out(client):
    assert client.predict(api_name="/text")["texts"] == [entry(0)]


def test_blanks_are_filled_around_what_is_given(client):
    (text,) = client.predict(prompt="<b>a ____</b> 👋🏽", api_name="/text")["texts"]
    assert text.startswith("<b>a ") and text.endswith("</b> 👋🏽") and "____" not in text


def test_one_z_may_be_given_to_all_texts_of_a_model_that_has_one(client):
    answer = client.predict(model="fake-rmdm", num_texts=2, z_seed=5, api_name="/text")
    assert answer["settings"]["z"] == 5
    with pytest.raises(Exception, match="has no z"):
        client.predict(model="fake-pgm", z_seed=5, api_name="/text")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"seed": -1}, "Seed must be"),
        ({"z_seed": -1, "model": "fake-rmdm"}, "The seed of z must be"),
        ({"model": "../x"}, "model must be one of fake-pgm, fake-rmdm"),
        ({"num_texts": 10_000}, "How many must be"),
        ({"prompt": "word " * 100}, "do not fit"),
        ({"sampler": "no such"}, "Sampler must be one of"),
    ],
)
def test_bad_input_is_one_clear_message(client, arguments, words):
    for name in ("/text", "/text_steps"):
        with pytest.raises(Exception, match=words):
            client.predict(**arguments, api_name=name)
    assert client.predict(steps=1, api_name="/text")["texts"]


def test_plain_http_is_enough(address):
    values = [{"prompt": "lantern (noun): ", "seed": 7}.get(one.name, one.value) for one in ARGUMENTS]
    call = httpx.post(f"{address}gradio_api/call/text", json={"data": values}, timeout=20).json()
    answer = httpx.get(f"{address}gradio_api/call/text/{call['event_id']}", timeout=20).text
    assert "event: complete" in answer
    (found,) = json.loads(answer.partition("data: ")[2])
    assert found["texts"] == ["lantern (noun): " + entry(7).partition(": ")[2]]


def test_without_a_text_model_the_endpoint_says_how_to_get_one():
    for address in serve({}):
        for name in ("/text", "/text_steps"):
            with pytest.raises(Exception, match="No text model is installed"):
                Client(address, verbose=False).predict(api_name=name)
