"""The floor of texts counts what a text pipeline runs, at the settings that it recommends."""

import pytest

from benchmarks import floor, operations
from benchmarks.floor import achieved_text, main
from benchmarks.operations import generation_operations, step_operations
from pgm.sampling import SamplingConfig
from pgm_text.pipeline import TextPipeline


@pytest.mark.parametrize("name", ["dictionary-pgm", "dictionary-mdlm", "dictionary-rmdm"])
def test_operations_of_texts_are_those_that_run(name):
    pipeline = TextPipeline.from_pretrained(name, device="cpu", dtype="float32")
    config, calls = pipeline.transformer.config, []
    partition = name == "dictionary-pgm"
    block = pipeline.transformer.encoder.blocks[1] if partition else pipeline.transformer.blocks[1]
    hooks = [
        block.attn_out.register_forward_hook(lambda module, given, found: calls.append(found.shape)),
        pipeline.transformer.output_layer.linear.register_forward_hook(
            lambda module, given, found: calls.append(found.shape)
        ),
    ]
    request = pipeline.request(num_texts=3)
    for _ in pipeline.steps(request):
        pass
    for hook in hooks:
        hook.remove()
    ran = 0
    for clean, queries in zip(calls[::2], calls[1::2], strict=True):  # each (rows, positions, width or vocabulary)
        if partition:
            ran += clean[0] * operations._partition_pass(config, clean[1], queries[1])
        else:
            assert clean[1] == config.length + 1
            ran += clean[0] * step_operations(config, 0, queries[1])
    length = len(request.layout)
    assert ran == 3 * generation_operations(config, request.sampling, length, config.length - length)
    found = achieved_text(pipeline, 3, 1e9, runs=1)
    assert found[1] == pytest.approx(ran / 1e9) and found[2] == pytest.approx(found[1] / found[0])


def test_a_masked_text_transformer_is_counted_by_hand():
    config = TextPipeline.from_pretrained("dictionary-mdlm", device="cpu").transformer.config
    layer = 64 * (3 * 128**2 + 128**2 + 2 * 3 * 128**2) + 2 * 64 * 64 * 128
    assert generation_operations(config, SamplingConfig(steps=1, schedule="even"), 63) == 6 * layer + 63 * 128 * 4096


def test_the_command_prints_a_row_for_each_text_model_and_batch(capsys, monkeypatch):
    small = floor.product_rate
    monkeypatch.setattr(floor, "product_rate", lambda device, dtype, clock: small(device, dtype, 64, 1, clock))
    main(["--batch-sizes", "--full-batch-sizes", "--dtypes", "float32", "--runs", "1", "--text-batch-sizes", "1", "2"])
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[2:]] == 2 * ["dictionary-pgm"] + 2 * ["dictionary-mdlm"]
    assert all(line.endswith("%") for line in lines[2:])
    work = [float(line.split()[3]) for line in lines[2:]]
    assert work[1] == pytest.approx(2 * work[0], abs=0.11) and work[2] > work[0] > 0
