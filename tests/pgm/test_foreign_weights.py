"""Weights files of others: found in every container, refused when they would run code, never read beyond need."""

import argparse
import collections
import os
import pickle
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

import pgm.foreign_weights
from pgm.foreign_weights import UnsafeWeightsError, read_state_dict, read_torch_file, strip_prefixes, submodule

STATE = {"a.weight": torch.arange(6.0).reshape(2, 3), "b.bias": torch.ones(3)}


def assert_same(state: dict[str, torch.Tensor]) -> None:
    assert state.keys() == STATE.keys()
    assert all(torch.equal(state[key], STATE[key]) for key in STATE)


def one_sentence(error: pytest.ExceptionInfo[ValueError], name: str) -> str:
    text = str(error.value)
    assert name in text and "\n" not in text and len(text) < 300
    return text


@pytest.mark.parametrize("container", ["model_state_dict", "model", "state_dict", "ema", None])
@pytest.mark.parametrize("legacy", [False, True])
def test_weights_are_found_in_every_container_of_new_and_old_torch_files(tmp_path, container, legacy):
    content = STATE if container is None else {"iter": 5, container: STATE, "optimizer_state_dict": {"state": {}}}
    torch.save(content, tmp_path / "file.ckpt", _use_new_zipfile_serialization=not legacy)
    assert_same(read_state_dict(tmp_path / "file.ckpt"))


def test_a_container_within_a_container_is_opened_too(tmp_path):
    torch.save({"model": {"state_dict": STATE, "epoch": 1}}, tmp_path / "file.pt")
    assert_same(read_state_dict(tmp_path / "file.pt"))


def test_a_safetensors_file_is_read_likewise(tmp_path):
    save_file({f"module.{key}": value for key, value in STATE.items()}, tmp_path / "file.safetensors")
    assert_same(read_state_dict(tmp_path / "file.safetensors"))


@pytest.mark.parametrize("prefix", ["module.", "_orig_mod.", "module._orig_mod.", "_orig_mod.module.module."])
def test_wrapper_prefixes_are_removed_however_they_are_nested(tmp_path, prefix):
    torch.save({"model": {prefix + key: value for key, value in STATE.items()}}, tmp_path / "file.pt")
    assert_same(read_state_dict(tmp_path / "file.pt"))
    assert strip_prefixes({"encoder._orig_mod.blocks.0.w": torch.ones(1)}).keys() == {"encoder.blocks.0.w"}


def test_two_tensors_that_become_one_are_refused():
    with pytest.raises(ValueError, match="'a' twice"):
        strip_prefixes({"a": torch.ones(1), "module.a": torch.ones(1)})


def test_a_part_of_a_larger_model_is_taken_out_and_the_rest_counted():
    part, others = submodule({"first.a": torch.ones(1), "x": torch.ones(1), "y": torch.ones(1)}, ("none.", "first."))
    assert part.keys() == {"a"} and others == 2
    assert submodule(STATE, ("none.",)) == (STATE, 0)


class Harmful:
    """Would leave a mark when unpickled without care."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self):
        return os.mkdir, (str(self.mark),)


@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_that_would_run_code_is_refused_by_the_name_of_what_it_asks_for_and_runs_nothing(tmp_path, legacy):
    content = {"model": STATE, "extra": Harmful(tmp_path / "mark")}
    torch.save(content, tmp_path / "bad.ckpt", _use_new_zipfile_serialization=not legacy)
    with pytest.raises(UnsafeWeightsError, match="mkdir") as error:
        read_state_dict(tmp_path / "bad.ckpt")
    assert "refused" in one_sentence(error, "bad.ckpt")
    assert not (tmp_path / "mark").exists()
    assert_same(_saved_and_read(tmp_path))  # the next file is read as ever


def test_code_hidden_behind_an_accepted_package_name_does_not_run(tmp_path, monkeypatch):
    """A name of a stand-in's package is replaced whatever it is, so even numpy's own functions stay untouched."""
    numpy = pytest.importorskip("numpy")
    calls = []
    monkeypatch.setattr(numpy, "savetxt", lambda *arguments: calls.append(arguments))
    numpy.savetxt.__module__, numpy.savetxt.__qualname__ = "numpy", "savetxt"

    class Sneaky:
        def __reduce__(self):
            return numpy.savetxt, (str(tmp_path / "mark"), [1])

    torch.save({"model": STATE, "extra": Sneaky()}, tmp_path / "file.ckpt")
    assert_same(read_state_dict(tmp_path / "file.ckpt"))
    assert not calls and not (tmp_path / "mark").exists()


def test_configs_and_numbers_that_training_code_leaves_in_a_file_do_no_harm(tmp_path):
    numpy = pytest.importorskip("numpy")
    content = {
        "state_dict": STATE,
        "args": argparse.Namespace(lr=1e-4),
        "loss": numpy.float64(0.5),
        "seen": collections.defaultdict(list, {"a": [1]}),
        "path": Path("somewhere"),
    }
    torch.save(content, tmp_path / "file.ckpt")
    assert_same(read_state_dict(tmp_path / "file.ckpt"))
    assert not isinstance(read_torch_file(tmp_path / "file.ckpt")["args"], argparse.Namespace)


def test_a_bare_pickle_is_refused(tmp_path):
    (tmp_path / "plain.pt").write_bytes(pickle.dumps({"model": Harmful(tmp_path / "mark")}))
    with pytest.raises(ValueError) as error:
        read_state_dict(tmp_path / "plain.pt")
    one_sentence(error, "plain.pt")
    assert not (tmp_path / "mark").exists()


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 1977\n"


@pytest.mark.parametrize("name", ["file.ckpt", "file.safetensors"])
@pytest.mark.parametrize(
    ("content", "says"),
    [(POINTER, "Git LFS pointer"), (b"<html><body>Not found</body></html>", "HTML page"), (b"", "empty")],
)
def test_what_is_no_weights_file_is_said_to_be_what_it_is(tmp_path, name, content, says):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=says) as error:
        read_state_dict(tmp_path / name)
    assert "download it again" in one_sentence(error, name)


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
@pytest.mark.parametrize("legacy", [False, True])
def test_a_file_that_was_cut_off_is_one_sentence(tmp_path, share, legacy):
    torch.save({"model": {"w": torch.ones(5000)}}, tmp_path / "whole", _use_new_zipfile_serialization=not legacy)
    whole = (tmp_path / "whole").read_bytes()
    (tmp_path / "cut.pt").write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ValueError) as error:
        read_state_dict(tmp_path / "cut.pt")
    one_sentence(error, "cut.pt")


def test_a_missing_file_and_one_without_weights_are_named(tmp_path):
    with pytest.raises(ValueError, match="does not exist"):
        read_state_dict(tmp_path / "none.pt")
    torch.save({"epoch": 3}, tmp_path / "file.pt")
    with pytest.raises(ValueError, match="file.pt holds no state dict"):
        read_state_dict(tmp_path / "file.pt")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_the_optimizers_state_is_not_read_into_memory(tmp_path):
    megabyte = 2**20
    content = {
        "model_state_dict": STATE,
        "optimizer_state_dict": {"state": {0: {"exp_avg": torch.ones(24 * megabyte)}}},
    }
    torch.save(content, tmp_path / "file.ckpt")
    assert (tmp_path / "file.ckpt").stat().st_size > 96 * megabyte
    del content
    before = _resident_bytes()
    state = read_state_dict(tmp_path / "file.ckpt")
    assert _resident_bytes() - before < 24 * megabyte
    assert_same(state)


def test_reading_always_asks_torch_for_tensors_only(tmp_path, monkeypatch):
    seen = {}
    real = torch.load
    monkeypatch.setattr(pgm.foreign_weights.torch, "load", lambda *a, **k: seen.update(k) or real(*a, **k))
    assert_same(_saved_and_read(tmp_path))
    assert seen["weights_only"] is True and seen["mmap"] is True


def _saved_and_read(folder: Path) -> dict[str, torch.Tensor]:
    torch.save(STATE, folder / "good.pt")
    return read_state_dict(folder / "good.pt")


def _resident_bytes() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmRSS")).split()[1])
