"""Models on disk: what is saved comes back, and every kind of broken folder is told in one sentence."""

import json
from dataclasses import asdict

import pytest
import torch
from safetensors.torch import load_file, save_file

import pgm.weights
from pgm.models import build, load_model, save_model
from pgm.weights import load_into, read_weights, save_weights


@pytest.fixture(params=["partition", "masked"])
def model(request, partition, masked):
    return {"partition": partition, "masked": masked}[request.param]()


@pytest.fixture
def folder(model, tmp_path):
    save_model(model, tmp_path / "model")
    return tmp_path / "model"


def one_sentence(error):
    text = str(error.value)
    assert "\n" not in text and len(text) < 400
    return text


def assert_same(model, loaded, cast=None):
    assert loaded.config == model.config and not any(module.training for module in loaded.modules())
    for key, value in model.state_dict().items():
        expected = value.to(cast).float() if cast else value
        assert torch.equal(loaded.state_dict()[key], expected), key


def test_what_is_saved_comes_back(model, folder):
    assert_same(model, load_model(folder))


def test_shards_of_a_large_model_come_back_too(model, tmp_path, monkeypatch):
    monkeypatch.setattr(pgm.weights, "MAX_SHARD", "12KB")
    save_model(model, tmp_path)
    shards = sorted(path.name for path in tmp_path.glob("*.safetensors"))
    assert len(shards) > 1 and (tmp_path / "model.safetensors.index.json").exists()
    assert_same(model, load_model(tmp_path))
    (tmp_path / shards[1]).unlink()
    with pytest.raises(ValueError, match=f"{shards[1]} is missing; download the model again"):
        load_model(tmp_path)


def test_a_smaller_export_leaves_no_old_shards(model, tmp_path, monkeypatch):
    monkeypatch.setattr(pgm.weights, "MAX_SHARD", "12KB")
    save_model(model, tmp_path)
    monkeypatch.setattr(pgm.weights, "MAX_SHARD", "9MB")
    save_model(model, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    assert_same(model, load_model(tmp_path))


def test_half_precision_export(model, tmp_path):
    save_model(model, tmp_path, torch.float16)
    dtypes = {tensor.dtype for tensor in load_file(tmp_path / "model.safetensors").values()}
    assert dtypes == {torch.float16}
    assert_same(model, load_model(tmp_path), torch.float16)
    loaded = load_model(tmp_path, dtype=torch.bfloat16)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.bfloat16}


def test_tied_tables_stay_tied(masked, tmp_path):
    save_model(masked(), tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.head.weight is loaded.tok_emb.weight


@pytest.mark.parametrize("kept", ["head.weight", "tok_emb.weight"])
def test_either_name_of_a_tied_table_is_enough_but_not_neither(masked, tmp_path, kept):
    model = masked()
    state = {k: v.clone() for k, v in model.state_dict().items() if k not in ("head.weight", "tok_emb.weight")}
    save_weights(tmp_path, {**state, kept: model.head.weight.detach().clone()}, asdict(model.config))
    assert_same(model, load_model(tmp_path))
    save_weights(tmp_path, state, asdict(model.config))
    with pytest.raises(ValueError, match="2 keys are missing"):
        load_model(tmp_path)


def test_a_config_with_fewer_layers_names_the_unexpected_keys(partition, tmp_path):
    model = partition()
    save_model(model, tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    for layers, message in ((1, "10 are unexpected"), (3, "10 keys are missing")):
        (tmp_path / "config.json").write_text(json.dumps({**config, "encoder_layers": layers}))
        with pytest.raises(ValueError, match=message) as error:
            load_model(tmp_path)
        text = one_sentence(error)
        assert str(tmp_path) in text and f"first: encoder.blocks.{min(layers, 2)}." in text


def test_a_config_of_another_width_names_the_first_shape(partition, tmp_path):
    save_model(partition(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "width": 32}))
    with pytest.raises(ValueError, match=r"tensors have another shape \(first: .* is \(.*should be \(") as error:
        load_model(tmp_path)
    one_sentence(error)


def test_a_failed_load_leaves_the_model_unchanged(partition):
    model, other = partition(seed=0), partition(seed=1)
    before = {key: value.clone() for key, value in model.state_dict().items()}
    state = other.state_dict()
    for broken in ({**state, "extra": torch.zeros(1)}, dict(list(state.items())[1:]), {}):
        with pytest.raises(ValueError, match="does not fit"):
            load_into(model, broken, "file")
    with pytest.raises(ValueError, match="another shape"):
        load_into(model, {**state, "output_layer.linear.bias": torch.zeros(3)}, "file")
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    load_into(model, state, "file")
    assert all(torch.equal(value, state[key]) for key, value in model.state_dict().items())


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n", "a Git LFS pointer"),
        (b"<!DOCTYPE html><html><body>Not found</body></html>", "an HTML page"),
        (b"\n  <html>", "an HTML page"),
        (b"", "empty"),
        (None, "truncated or damaged"),
        (b"PK\x03\x04 something else entirely, long enough for a header", "truncated or damaged"),
    ],
    ids=["lfs", "html", "html-indented", "empty", "half", "zip"],
)
def test_a_broken_weights_file_is_called_what_it_is(folder, content, reason):
    path = folder / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2] if content is None else content)
    with pytest.raises(ValueError, match=f"it is {reason}.*download it again") as error:
        load_model(folder)
    assert str(path) in one_sentence(error)


def test_missing_files_are_named(folder, tmp_path):
    (folder / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="model.safetensors is missing"):
        load_model(folder)
    with pytest.raises(ValueError, match="nowhere.*config.json is missing"):
        load_model(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "config.json is not valid JSON"),
        ("<html>", "config.json is not valid JSON"),
        ("[1, 2]", "config.json must hold a JSON object, not a list"),
        ("{}", "model_type must be one of partition-transformer, masked-transformer,.* got None"),
        ('{"model_type": "gan"}', "got 'gan'"),
        ('{"model_type": "masked-transformer", "grid": 4}', "missing .* required"),
    ],
)
def test_a_broken_config_is_named(folder, text, message):
    (folder / "config.json").write_text(text)
    with pytest.raises(ValueError, match=message) as error:
        load_model(folder)
    assert "config.json" in one_sentence(error)


def test_an_unknown_config_field_is_named(model):
    with pytest.raises(ValueError, match="unknown field 'depth' for .*Config; known are "):
        build({**asdict(model.config), "depth": 3})


@pytest.mark.parametrize("text", ["{", "[]", '{"weight_map": []}'])
def test_a_broken_index_is_named(folder, text):
    (folder / "model.safetensors.index.json").write_text(text)
    with pytest.raises(ValueError, match="model.safetensors.index.json"):
        read_weights(folder)


def test_a_checkpoint_in_the_published_layout_loads_with_both_tied_keys(masked, tmp_path):
    model = masked()
    save_file({key: value.clone() for key, value in model.state_dict().items()}, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(asdict(model.config)))
    assert_same(model, load_model(tmp_path))
