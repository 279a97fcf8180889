"""The command line from corpus to report: train every recipe, resume, export, generate, evaluate, and bad input."""

import json
import shutil

import numpy as np
import pytest
import torch

import pgm_text
from pgm.models import build, load_model
from pgm_text import registry
from pgm_text.__main__ import COMMANDS, main, parser_for
from pgm_text.evaluation import command
from pgm_text.evaluation.steps_plot import draw_steps
from pgm_text.export import info_of
from pgm_text.latent_files import write_latents
from pgm_text.latents import draw_latents
from pgm_text.recipes import RECIPES
from pgm_text.representation import Representation


@pytest.fixture(scope="module")
def latents(tmp_path_factory):
    folder = tmp_path_factory.mktemp("latents")
    write_latents(folder, "train", draw_latents(range(224), 4))
    write_latents(folder, "heldout", draw_latents(range(500, 532), 4))
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory, corpus, latents):
    """Twenty steps of every tiny recipe."""
    folder = tmp_path_factory.mktemp("runs")
    for kind in ("pgm", "mdlm", "complementary-mdlm", "rmdm", "scorer"):
        more = ["--latents", str(latents)] if kind == "rmdm" else []
        arguments = ["--recipe", f"tiny-{kind}", "--data", str(corpus), "--out", str(folder / kind), *more]
        assert main(["train", *arguments]) == 0
    return folder


@pytest.fixture
def bundled(runs, corpus, tmp_path, monkeypatch):
    """Exported models under the names of bundled ones."""
    monkeypatch.setattr(registry, "ASSETS", tmp_path / "assets")
    registry._load.cache_clear()
    registry._tokenizer.cache_clear()
    for kind in ("pgm", "mdlm", "rmdm"):
        out = tmp_path / "assets" / f"dictionary-{kind}"
        assert main(["export", "--run", str(runs / kind), "--data", str(corpus), "--out", str(out)]) == 0
    yield tmp_path / "assets"
    registry._load.cache_clear()
    registry._tokenizer.cache_clear()


def test_every_command_explains_itself(capsys):
    for name in COMMANDS:
        with pytest.raises(SystemExit) as exit_:
            main([name, "--help"])
        assert exit_.value.code == 0
        assert f"python -m pgm_text {name}" in capsys.readouterr().out
    assert main([]) == 2 and main(["--help"]) == 0
    assert all(command in capsys.readouterr().out for command in list(COMMANDS)[:1])
    assert main(["sing"]) == 2
    assert "no command named 'sing'" in capsys.readouterr().err


def test_training_lowers_the_loss_and_writes_what_it_did(runs):
    for kind in ("pgm", "mdlm", "complementary-mdlm", "rmdm", "scorer"):
        lines = [json.loads(line) for line in (runs / kind / "metrics.jsonl").read_text().splitlines()]
        losses = [line["loss"] for line in lines if "loss" in line]
        assert len(losses) == 4 and all(np.isfinite(losses))
        assert lines[-1]["step"] == 20 and np.isfinite(lines[-1]["held_out_loss"])
    scorer = [json.loads(line) for line in (runs / "scorer" / "metrics.jsonl").read_text().splitlines()]
    assert scorer[3]["loss"] < scorer[0]["loss"]
    assert (runs / "pgm" / "samples" / "0000020.txt").read_text().count("\n") >= 8


def test_a_stopped_run_goes_on_to_the_same_weights(runs, corpus, tmp_path):
    arguments = ["train", "--recipe", "tiny-pgm", "--data", str(corpus), "--out", str(tmp_path / "run")]
    assert main([*arguments, "--until", "7"]) == 0
    assert main(arguments) == 0
    whole, resumed = (load_model(folder / "export").state_dict() for folder in (runs / "pgm", tmp_path / "run"))
    assert all(torch.equal(whole[key], resumed[key]) for key in whole)


def test_another_run_can_start_from_the_recipe_of_one(runs, corpus, tmp_path):
    arguments = ["train", "--data", str(corpus), "--out", str(tmp_path / "again")]
    assert main([*arguments, "--config", str(runs / "mdlm" / "recipe.json")]) == 0
    first, again = (load_model(folder / "export").state_dict() for folder in (runs / "mdlm", tmp_path / "again"))
    assert all(torch.equal(first[key], again[key]) for key in first)


def test_what_training_refuses(corpus, latents, tmp_path, capsys):
    base = ["train", "--data", str(corpus), "--out", str(tmp_path / "r")]
    for arguments, message in (
        (["--recipe", "opera"], "recipe must be one of dictionary-pgm"),
        (["--recipe", "tiny-rmdm"], "RMDM needs latents"),
        (["--recipe", "tiny-pgm", "--latents", str(latents)], "--latents is for RMDM"),
        (["--recipe", "tiny-rmdm", "--latents", str(tmp_path)], "latents-train.npy is missing"),
        (["--recipe", "tiny-pgm", "--sizes", "depth=3"], "sizes must be like layers=4,dropout=0.1, got 'depth=3'"),
        (["--recipe", "tiny-pgm", "--steps", "0"], "steps must be positive, got 0"),
    ):
        assert main([*base, *arguments]) == 2
        assert message in capsys.readouterr().err
    assert main(["train", "--data", str(tmp_path), "--out", str(tmp_path / "r")]) == 2
    assert "no token shards" in capsys.readouterr().err


def test_the_dictionary_models_have_equal_sizes_and_orders():
    manifest = {"vocab_size": 4096, "grid": [1, 64], "mask_id": 4095, "bos_id": 0, "layout": "entries"}
    names = ("dictionary-pgm", "dictionary-mdlm", "dictionary-rmdm")
    counts = {}
    for name in names:
        config = RECIPES[name].model_config(manifest, 32 if name == "dictionary-rmdm" else 0)
        with torch.device("meta"):
            model = build(config)
        counts[name] = sum(parameter.numel() for parameter in model.parameters())
        assert info_of(model, manifest, name, "").architecture == name.removeprefix("dictionary-")
    assert max(counts.values()) < 1.15 * min(counts.values())
    assert 2 * sum(counts.values()) < 40 * 2**20  # in half precision
    trainings = {RECIPES[name].training for name in names}
    assert len(trainings) == 1


def test_an_export_is_small_complete_and_loads(bundled, corpus):
    folder = bundled / "dictionary-pgm"
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert files >= {"model_index.json", "tokenizer.json", "transformer/config.json", "LICENCE-made-up.txt"}
    assert "</svg>" in (folder / "curve.svg").read_text()
    info = registry.model_info("dictionary-pgm")
    assert info.training == {"recipe": "tiny-pgm", "algorithm": "pgm", "smoothing": 0.3, "steps": 20, "rows": 160,
                             "tokens": 160 * 39}  # fmt: skip
    assert info.length == 38 and info.credits[0]["name"] == "made up"
    assert [m.name for m in pgm_text.models()] == ["dictionary-pgm", "dictionary-mdlm", "dictionary-rmdm"]


def test_the_public_functions_work_on_bundled_models(bundled):
    texts = pgm_text.generate("lantern (noun): ", num_texts=2, steps=4)
    assert len(texts) == 2 and all(text.startswith("lantern (noun): ") for text in texts)
    steps = list(pgm_text.generate_steps("a ____ raven", model="dictionary-rmdm", steps=2))
    assert len(steps) == 2
    assert pgm_text.load("dictionary-rmdm") is pgm_text.load("dictionary-rmdm")
    z = pgm_text.load("dictionary-rmdm").draw_latents([0, 1])
    middle = pgm_text.slerp(z[0], z[1], 0.5)
    settings = {"model": "dictionary-rmdm", "steps": 2, "output_type": "ids"}
    assert torch.equal(pgm_text.generate(z=z[0], seed=0, **settings), pgm_text.generate(seed=0, **settings))
    assert pgm_text.generate(z=middle, num_texts=2, **settings).shape == (2, 38)


def test_bad_arguments_are_found_before_any_weight_is_read(bundled):
    for shard in (bundled / "dictionary-pgm" / "transformer").glob("*.safetensors"):
        shard.unlink()
    with pytest.raises(ValueError, match="steps must be an integer"):
        pgm_text.generate(steps=-3)
    with pytest.raises(ValueError, match=r"prompt has \d+ tokens"):
        pgm_text.generate_steps("word " * 99)
    with pytest.raises(ValueError, match="weights file .* is missing"):
        pgm_text.generate(steps=3)


def test_generate_prints_texts_or_json(bundled, capsys):
    arguments = ["generate", "a raven", "--num-texts", "3", "--steps", "2", "--seed", "4"]
    assert main(arguments) == 0
    texts = capsys.readouterr().out
    assert main([*arguments, "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["seed"] for row in rows] == [4, 5, 6] and "\n".join(row["text"] for row in rows) + "\n" == texts
    assert main(["generate", "--model", "dictionary-rmdm", "--same-z", "--num-texts", "2", "--steps", "2"]) == 0
    assert main(["generate", "--steps", "0"]) == 2
    assert "steps must be an integer in 1..4096, got 0" in capsys.readouterr().err


def test_models_lists_bundled_and_published_ones(bundled, capsys):
    assert main(["models"]) == 0
    printed = capsys.readouterr().out
    assert "dictionary-pgm" in printed and "pgm_8_8.ckpt" in printed and "kuleshov-group/mdlm-owt" in printed
    assert main(["models", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["name"] == "dictionary-pgm"


def test_evaluate_prints_tables_and_writes_json(bundled, runs, corpus, latents, tmp_path, capsys, monkeypatch):
    out, sampled, few_step_table = tmp_path / "report.json", [], command.few_step_table
    monkeypatch.setattr(command, "few_step_table", lambda *a, **s: sampled.append(s) or few_step_table(*a, **s))
    arguments = [
        "evaluate", "--models", "dictionary-pgm", "dictionary-rmdm", "--data", str(corpus), "--scorer",
        str(runs / "scorer" / "export"), "--latents", str(latents), "--rows", "6", "--draws", "2", "--texts", "3",
        "--steps", "2", "4", "--no-known-language", "--out", str(out), "--plot", str(tmp_path / "plots" / "steps.svg"),
        "--temperature", "0.5",
    ]  # fmt: skip
    assert main(arguments) == 0
    assert [(one["temperature"], "top_p" in one) for one in sampled] == [(0.5, False)] * 2, "the rest is the model's"
    printed = capsys.readouterr().out
    report = json.loads(out.read_text())
    assert list(report["models"]) == ["dictionary-pgm", "dictionary-rmdm"]
    figures = report["models"]["dictionary-pgm"]["steps"]["4"]
    assert {"generative_perplexity", "entropy", "distinct_3", "longest_shared_run", "tokens_per_second"} <= set(figures)
    assert set(report["models"]["dictionary-rmdm"]["terms_per_token"]) == {"given z", "price of z"}
    assert report["protocol"]["settings"] == {"temperature": 0.5}
    assert report["protocol"]["rows"] == 6 and report["held_out"]["texts"] == 3
    assert "gen. ppl" in printed and "price of z" in printed
    assert (tmp_path / "plots" / "steps.svg").read_text() == draw_steps(report)
    measured = tmp_path / "measured"
    assert main(["export", "--run", str(runs / "pgm"), "--data", str(corpus), "--out", str(measured), "--name",
                 "dictionary-pgm", "--measured", str(out)]) == 0  # fmt: skip
    assert registry.model_info(measured).measured == report["models"]["dictionary-pgm"]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--plot", "steps.png"], "plot must be a file that ends in .svg, got 'steps.png'"),
        (["--plot", "steps.svg"], "plot needs --data"),
        (["--plot", "steps.svg", "--data", "corpus"], "plot needs --scorer"),
        (["--plot", "steps.svg", "--data", "corpus", "--scorer", "run", "--models"], "plot needs --models"),
    ],
)
def test_a_plot_that_cannot_be_drawn_is_refused_before_anything_is_measured(words, says, capsys):
    assert main(["evaluate", *words]) == 2
    printed = capsys.readouterr()
    assert says in printed.err and printed.err.count("\n") == 1 and not printed.out


def test_fit_representation_writes_latents_of_every_row_and_its_checks(tmp_path, capsys):
    embeddings = tmp_path / "embeddings"
    embeddings.mkdir()
    generator = torch.Generator().manual_seed(0)
    basis = torch.randn(2, 6, generator=generator)
    splits = {}
    for split, count in (("train", 600), ("heldout", 200)):
        rows = torch.randn(count, 2, generator=generator) @ basis + 0.01 * torch.randn(count, 6, generator=generator)
        np.save(embeddings / f"{split}.npy", rows.numpy().astype(np.float16))
        splits[split] = [{"embeddings": f"{split}.npy", "count": count}]
    (embeddings / "manifest.json").write_text(json.dumps({"encoder": "toy", "dimension": 6, "splits": splits}))
    arguments = ["--dimension", "2", "--steps", "150", "--batch-size", "128", "--flow-width", "32", "--flow-blocks",
                 "1", "--lr", "0.005"]  # fmt: skip
    code = main(["fit-representation", "--embeddings", str(embeddings), "--out", str(tmp_path / "z"), *arguments])
    report = json.loads((tmp_path / "z" / "report.json").read_text())
    assert code == (0 if report["passed"] else 1)
    assert report["smallest_singular_value"] > 0 and report["cycle_error"] < 0.5
    z = np.load(tmp_path / "z" / "latents-train.npy")
    assert z.shape == (600, 2) and abs(z.mean()) < 0.02 and abs(z.std() - 1) < 0.02
    assert Representation.load(tmp_path / "z").config.encoder == "toy"
    assert "sliced_distance" in capsys.readouterr().out


def test_a_broken_or_missing_model_is_named(bundled, tmp_path):
    with pytest.raises(ValueError, match="model must be one of dictionary-pgm, .*pgm_8_8.ckpt.* got 'no model here'"):
        pgm_text.load("no model here")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="model_index.json is missing"):
        pgm_text.load(tmp_path / "empty")
    shutil.copytree(bundled / "dictionary-pgm", tmp_path / "image")
    index = tmp_path / "image" / "model_index.json"
    index.write_text(json.dumps({**json.loads(index.read_text()), "_class_name": "PGMPipeline"}))
    with pytest.raises(ValueError, match="describes a PGMPipeline, which TextPipeline cannot run"):
        pgm_text.load(tmp_path / "image")
    index.write_text("[]")
    with pytest.raises(ValueError, match="not a usable model index"):
        pgm_text.load(tmp_path / "image")


@pytest.mark.parametrize("name", ["pgm_8_8.ckpt", "kuleshov-group/mdlm-owt", "someone/text-model"])
def test_without_network_a_published_model_says_how_to_get_it(name):
    with pytest.raises(ValueError, match="go online once, or"):
        pgm_text.load(name)
    assert parser_for("generate")[0].parse_args(["--model", name]).model == name
