"""Generations through `torch.compile`: the same logits at rounded sizes, and one line in the log where it fails."""

import pytest
import torch
from torch.testing import assert_close

from pgm.compiled_pass import make_pass, rounded
from pgm.models import make_predictor
from pgm.predictors import Clean

VARIANTS = [{}, {"decoder_mode": "interleave"}, {"query_mode": "learn+freqs+mean"}]


def passes(model, sizes=(0, 3, 9)):
    """Logits of passes of one generation with so many codes known, those with 9 ragged."""
    with torch.no_grad():
        labels = torch.tensor([1, 2])
        predictor = make_predictor(model, model.condition(labels), model.condition(torch.full_like(labels, -1)))
    arrival = torch.stack((torch.arange(16), torch.arange(16).flip(0)))
    codes = (torch.arange(32) % 12).view(2, 16)
    found = []
    for known in sizes:
        lengths, counts = (torch.tensor([9, 2]), torch.tensor([1, 4])) if known == 9 else (None, None)
        found += predictor.predict(Clean(codes, arrival[:, :known], lengths), arrival[:, 12:], counts, True)
    return found


def assert_same(found, expected):
    for logits, own in zip(found, expected, strict=True):
        real = own.abs().amax(-1, keepdim=True) > 0  # padding is zeros in the plain pass
        assert_close(torch.where(real, logits, 0.0), own, atol=1e-4, rtol=1e-4)


def said(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "pgm.compiled_pass"]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_rounded_sizes_change_no_logits(partition, monkeypatch, variant):
    model, seen = partition(**variant), set()

    def uncompiled(function, **settings):
        def run(model, embedded, content, *rest):
            seen.add((embedded.hidden.shape[1], content.shape[1]))
            return function(model, embedded, content, *rest)

        return run

    expected = passes(model)
    monkeypatch.setattr(torch, "compile", uncompiled)
    model.set_compilation("auto")
    assert_same(passes(model), expected)
    assert seen == {(2, 32), (18, 32)}  # register and BOS alone, then never more than there are positions


def test_a_compiled_pass_gives_the_same_logits(partition, monkeypatch, caplog):
    model = partition(encoder_layers=1, decoder_layers=1)
    expected, compile_ = passes(model, (3,)), torch.compile
    # Traced and guarded as always, but no C++ is built: that takes minutes.
    monkeypatch.setattr(torch, "compile", lambda function, dynamic, mode: compile_(function, backend="eager"))
    model.set_compilation("auto")
    assert_same(passes(model, (3,)), expected)
    assert said(caplog) == []


def test_where_it_cannot_work_one_line_says_so(partition, monkeypatch, caplog):
    def failing(function, **settings):
        def run(*arguments):
            raise RuntimeError("no compiler\nmore about it")

        return run

    model = partition()
    expected = passes(model)
    monkeypatch.setattr(torch, "compile", failing)
    model.set_compilation("auto")
    assert_same(passes(model), expected)
    assert said(caplog) == ["running without torch.compile, which failed: RuntimeError: no compiler"]


def test_sizes_are_rounded_up():
    assert [rounded(count, 32) for count in (0, 1, 32, 33)] == [0, 32, 32, 64]


def test_an_unknown_setting_is_refused():
    assert make_pass("off", torch.device("cpu")) is None
    with pytest.raises(ValueError, match="compile must be one of off, auto, got 'max'"):
        make_pass("max", torch.device("cpu"))
