"""Reading public checkpoints without running anything of theirs; broken and hostile files are refused."""

import os
from collections import OrderedDict
from types import SimpleNamespace

import pytest
import torch

from pgm.foreign_weights import StandIn, UnsafeWeightsError, strip_prefixes
from pgm_text.lightning_checkpoint import (
    NETWORK_PREFIXES,
    ema_param_order,
    name_ema,
    plain_config,
    read_container,
    read_lightning_checkpoint,
)


class Runs:
    """Pickles as a call of `function` with `arguments`."""

    def __init__(self, function, *arguments):
        self.function, self.arguments = function, arguments

    def __reduce__(self):
        return self.function, self.arguments


def small_state_dict():
    return OrderedDict(
        [
            ("backbone.vocab_embed.embedding", torch.arange(12.0).reshape(4, 3)),
            ("backbone.rotary_emb.inv_freq", torch.tensor([1.0, 0.5])),
            ("backbone.blocks.0.norm1.weight", torch.ones(3)),
            ("backbone.output_layer.linear.bias", torch.zeros(4)),
        ]
    )


def small_content(**changes):
    shadows = [torch.full((4, 3), 7.0), torch.full((3,), 8.0), torch.full((4,), 9.0)]
    content = {
        "state_dict": small_state_dict(),
        "ema": {"decay": 0.9999, "num_updates": 5, "shadow_params": shadows},
        "hyper_parameters": {"config": {"model": {"hidden_size": 3}}, "vocab_size": 4},
        "global_step": 5,
    }
    return content | changes


def save(content, path):
    torch.save(content, path)
    return path


def test_raw_and_averaged_weights_come_with_names(tmp_path):
    checkpoint = read_lightning_checkpoint(save(small_content(), tmp_path / "a.ckpt"))
    assert torch.equal(checkpoint.raw["vocab_embed.embedding"], torch.arange(12.0).reshape(4, 3))
    assert torch.equal(checkpoint.ema["vocab_embed.embedding"], torch.full((4, 3), 7.0))
    assert torch.equal(checkpoint.ema["blocks.0.norm1.weight"], torch.full((3,), 8.0))
    assert torch.equal(checkpoint.ema["output_layer.linear.bias"], torch.full((4,), 9.0))
    assert torch.equal(checkpoint.ema["rotary_emb.inv_freq"], torch.tensor([1.0, 0.5]))  # a buffer, not averaged
    assert checkpoint.weights is checkpoint.ema
    assert checkpoint.config == {"model": {"hidden_size": 3}}
    assert (checkpoint.vocab_size, checkpoint.global_step, checkpoint.ema_updates) == (4, 5, 5)


def test_a_file_without_averages_gives_its_raw_weights(tmp_path):
    content = small_content()
    del content["ema"]
    checkpoint = read_lightning_checkpoint(save(content, tmp_path / "a.ckpt"))
    assert checkpoint.ema is None and checkpoint.weights is checkpoint.raw


def test_averages_of_another_length_or_shape_are_refused_by_name(tmp_path):
    content = small_content()
    content["ema"]["shadow_params"].pop()
    with pytest.raises(ValueError, match="a.ckpt: the EMA list holds 2 tensors, the network has 3 parameters"):
        read_lightning_checkpoint(save(content, tmp_path / "a.ckpt"))
    content = small_content()
    content["ema"]["shadow_params"][1] = torch.zeros(5)
    with pytest.raises(ValueError, match=r"blocks.0.norm1.weight has shape \(5,\), the parameter has \(3,\)"):
        read_lightning_checkpoint(save(content, tmp_path / "a.ckpt"))
    with pytest.raises(ValueError, match="no parameter elsewhere"):
        name_ema({"here": torch.zeros(1)}, [torch.zeros(1)], ["elsewhere"])


@pytest.mark.parametrize(
    "prefix", ["", "backbone.", "backbone.backbone.", "module._orig_mod.", "_orig_mod.backbone.module."]
)
def test_prefixes_of_wrapped_and_compiled_runs_are_removed(prefix):
    state = {f"{prefix}blocks.0.norm1.weight": torch.zeros(1)}
    assert list(strip_prefixes(state, "it", NETWORK_PREFIXES)) == ["blocks.0.norm1.weight"]


def test_an_infix_of_a_compiled_run_is_removed_and_clashes_are_refused():
    names = {"backbone._orig_mod.a": torch.zeros(1)}
    assert list(strip_prefixes(names, "it", NETWORK_PREFIXES)) == ["a"]
    with pytest.raises(ValueError, match="'a' twice"):
        strip_prefixes(names | {"a": torch.zeros(1)}, "it", NETWORK_PREFIXES)


def test_order_leaves_out_buffers():
    assert ema_param_order(strip_prefixes(small_state_dict(), "it", NETWORK_PREFIXES)) == [
        "vocab_embed.embedding",
        "blocks.0.norm1.weight",
        "output_layer.linear.bias",
    ]


@pytest.mark.parametrize(
    "weapon",
    [
        lambda marker: Runs(os.system, f"touch {marker}"),
        lambda marker: Runs(eval, f"open({str(marker)!r}, 'w')"),
        lambda marker: Runs(exec, f"open({str(marker)!r}, 'w')"),
        lambda marker: Runs(open, str(marker), "w"),
        lambda marker: Runs(__import__, "antigravity"),
        lambda marker: Runs(os.mkdir, str(marker)),
        lambda marker: SimpleNamespace(a=1),
    ],
    ids=["os.system", "eval", "exec", "open", "import", "os.mkdir", "unlisted class"],
)
@pytest.mark.parametrize("place", ["state_dict", "hyper_parameters", "callbacks"])
def test_a_hostile_file_is_refused_and_runs_nothing(tmp_path, weapon, place):
    marker = tmp_path / "ran"
    content = small_content(**{place: {"x": weapon(marker)}})
    with pytest.raises(UnsafeWeightsError, match="refused"):
        read_lightning_checkpoint(save(content, tmp_path / "a.ckpt"))
    assert not marker.exists()


def test_hidden_in_an_admitted_class_a_call_is_still_refused(tmp_path):
    # The reduce of os.system sits inside the arguments of an admitted name.
    omegaconf = pytest.importorskip("omegaconf")
    marker = tmp_path / "ran"
    config = omegaconf.OmegaConf.create({"a": 1})
    config._set_flag("allow_objects", True)
    config.__dict__["_metadata"].object_type = Runs(os.system, f"touch {marker}")
    with pytest.raises(UnsafeWeightsError, match="system"):
        read_container(save(small_content(hyper_parameters={"config": config}), tmp_path / "a.ckpt"))
    assert not marker.exists()


def test_the_error_names_the_class_and_it_can_be_admitted_as_a_stand_in(tmp_path):
    path = save(small_content(sampler=SimpleNamespace(a=1)), tmp_path / "a.ckpt")
    before = torch.serialization.get_safe_globals()
    with pytest.raises(UnsafeWeightsError, match="types.SimpleNamespace"):
        read_container(path)
    sampler = read_container(path, also_accept=["types.SimpleNamespace"])["sampler"]
    assert isinstance(sampler, StandIn) and not isinstance(sampler, SimpleNamespace)
    assert sampler.state == {"a": 1}
    assert set(torch.serialization.get_safe_globals()) == set(before)  # nothing stays admitted afterwards


def test_even_an_admitted_function_is_not_called(tmp_path):
    marker = tmp_path / "ran"
    path = save(small_content(callbacks=Runs(os.path.join, str(marker), "x")), tmp_path / "a.ckpt")
    joined = read_container(path, also_accept=["posixpath.join"])["callbacks"]
    assert isinstance(joined, StandIn) and joined.arguments == (str(marker), "x")


def test_a_pickled_omegaconf_becomes_plain_values(tmp_path):
    omegaconf = pytest.importorskip("omegaconf")
    values = {"model": {"length": 16, "name": "tiny", "rates": [0.1, 2], "none": None}, "on": True}
    content = small_content(hyper_parameters={"config": omegaconf.OmegaConf.create(values), "vocab_size": 4})
    assert read_lightning_checkpoint(save(content, tmp_path / "a.ckpt")).config == values


def test_a_pickled_tokenizer_becomes_a_stand_in(tmp_path):
    tokenizers = pytest.importorskip("tokenizers")
    content = small_content(hyper_parameters={"tokenizer": tokenizers.Tokenizer(tokenizers.models.BPE())})
    tokenizer = read_container(save(content, tmp_path / "a.ckpt"))["hyper_parameters"]["tokenizer"]
    assert isinstance(tokenizer, StandIn) and plain_config(tokenizer) == "<stand-in for tokenizers.Tokenizer>"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "Git LFS pointer"),
        (b"<!DOCTYPE html><html></html>", "HTML page"),
        (b"\x80\x02}q\x00.", "truncated or not a torch file|refused"),
    ],
)
def test_a_broken_file_gives_one_sentence_naming_it(tmp_path, content, message):
    path = tmp_path / "broken.ckpt"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"broken.ckpt.*{message}"):
        read_lightning_checkpoint(path)


def test_half_a_file_and_a_missing_file(tmp_path):
    path = save(small_content(), tmp_path / "half.ckpt")
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match="half.ckpt.*download it again"):
        read_lightning_checkpoint(path)
    with pytest.raises(ValueError, match="absent.ckpt' does not exist"):
        read_lightning_checkpoint(tmp_path / "absent.ckpt")


def test_a_file_with_other_contents_is_refused(tmp_path):
    with pytest.raises(ValueError, match="holds a list"):
        read_lightning_checkpoint(save([1, 2], tmp_path / "a.ckpt"))
    with pytest.raises(ValueError, match="no state_dict"):
        read_lightning_checkpoint(save({"weights": torch.zeros(2)}, tmp_path / "a.ckpt"))
    with pytest.raises(ValueError, match="names to tensors"):
        read_lightning_checkpoint(save({"state_dict": {"a": 3}}, tmp_path / "a.ckpt"))


def test_tensors_are_mapped_from_the_file(tmp_path):
    path = save(small_content(), tmp_path / "a.ckpt")
    tensor = read_lightning_checkpoint(path).raw["vocab_embed.embedding"]
    assert tensor.numpy().tobytes() in path.read_bytes()
    maps = f"/proc/{os.getpid()}/maps"
    if not os.path.exists(maps):
        pytest.skip("needs /proc to see memory maps")
    with open(maps) as file:
        assert str(path) in file.read()
