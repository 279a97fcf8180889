"""Number formats: bfloat16 only where a device multiplies it in hardware."""

import pytest
import torch

from pgm.devices import SMALL_MODEL, has_bfloat16, resolve_dtype, resolve_precision

CPU = torch.device("cpu")
# What PyTorch reports of CPUs: a desktop, a server without and with bfloat16 products of either kind, ARM.
WITHOUT = [{"avx2": True}, {"avx2": True, "avx512_f": True, "avx512_bw": True, "avx512_vnni": True, "amx_bf16": False}]
WITH = [{"avx512_f": True, "amx_bf16": True}, {"avx512_f": True, "avx512_bf16": True}, {"neon": True, "bf16": True}]


@pytest.fixture
def cpu(monkeypatch):
    def is_one_with(capabilities):
        monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities)
        monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)

    return is_one_with


@pytest.mark.parametrize("capabilities", WITHOUT)
def test_a_cpu_that_only_imitates_bfloat16_computes_in_float32(cpu, capabilities):
    cpu(capabilities)
    assert not has_bfloat16(CPU)
    assert resolve_precision("auto", CPU) == "fp32"
    assert resolve_dtype(None, CPU, 10 * SMALL_MODEL) == torch.float32


def test_a_pytorch_that_cannot_tell_computes_in_float32(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities", raising=False)
    assert resolve_precision("auto", CPU) == "fp32"


@pytest.mark.parametrize("capabilities", WITH)
def test_a_cpu_with_bfloat16_trains_in_it_and_samples_large_models_in_it(cpu, capabilities):
    cpu(capabilities)
    assert resolve_precision("auto", CPU) == "bf16"
    assert resolve_dtype(None, CPU, 10 * SMALL_MODEL) == torch.bfloat16
    assert resolve_dtype(None, CPU, SMALL_MODEL - 1) == torch.float32


@pytest.mark.parametrize("capabilities", [WITHOUT[0], WITH[0]])
def test_what_is_asked_for_is_taken_wherever_it_runs(cpu, capabilities):
    cpu(capabilities)
    assert [resolve_precision(name, CPU) for name in ("bf16", "fp32")] == ["bf16", "fp32"]
    assert resolve_dtype("bfloat16", CPU, 1) == torch.bfloat16


@pytest.mark.parametrize("value", ["no", "fp16", "", None])
def test_other_precisions_are_refused_with_what_there_is(value):
    with pytest.raises(ValueError, match=f"precision must be one of auto, bf16, fp32, got {value!r}"):
        resolve_precision(value, CPU)
