"""The plain training step is the oracle of ours: same losses and gradients; operations are those counted by hand."""

import pytest
import torch
import torch.nn.functional as F
from torch.testing import assert_close

from benchmarks import floor, training_step
from benchmarks.operations import training_operations
from benchmarks.pgm_vs_maskgit import make
from benchmarks.plain_training import plain_logits, plain_loss
from benchmarks.training_step import batch_loss, compare, main, random_batch
from pgm.attention import training_backend
from pgm.layers import GELU
from pgm.masked_transformer import MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformerConfig
from pgm.training import TrainingConfig

pytestmark = pytest.mark.usefixtures("own_accelerator_state")
CPU = torch.device("cpu")


@pytest.fixture
def small_product(monkeypatch):
    """The product that sets the rate takes no time."""
    rate = floor.product_rate
    monkeypatch.setattr(training_step, "product_rate", lambda *where, clock: rate(*where, 64, 1, clock))


def config_of(**changes):
    sizes = {"width": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "num_classes": 3, "num_styles": 2}
    special = {"vocab_size": 18, "mask_id": 16, "bos_id": 17, "length": 16, "dropout": 0.0}
    return PartitionTransformerConfig(**{**sizes, **special, **changes})


def model_of(**changes):
    model = make(config_of(**changes), CPU, torch.float32)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(15)  # context matters
    return model


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("backend", [training_backend("cpu"), "sdpa"])
@pytest.mark.parametrize("changes", [{}, {"registers": 4, "num_styles": 0, "query_processor": "mlp4"}])
def test_losses_and_gradients_are_equal_in_float32(changes, backend, compiled):
    model, gradients, losses = model_of(**changes), [], []
    model.set_attention_backend(backend)
    batch = random_batch(model.config, 5, 0)
    ours = torch.compile(model, backend="eager") if compiled else model  # the code that is compiled, without compiler
    for module, loss_of in ((ours, batch_loss), (model, plain_loss)):
        model.zero_grad()
        loss = loss_of(module, batch)
        loss.backward()
        losses.append(loss.detach())
        gradients.append({name: parameter.grad.clone() for name, parameter in model.named_parameters()})
    assert_close(*losses, rtol=1e-6, atol=0)
    assert losses[0] > 1.05 * torch.tensor(16.0).log()  # the model says something
    for name, gradient in gradients[0].items():
        assert gradient.abs().max() > 0, name
        assert_close(gradients[1][name], gradient, rtol=1e-4, atol=1e-6, msg=lambda said, name=name: f"{name}: {said}")


def test_the_groups_are_blind_to_themselves_in_the_plain_step_too():
    model = model_of()
    batch = random_batch(model.config, 2, 0)
    batch["hidden"][:] = True  # then nothing but registers and BOS is seen
    other = {**batch, "codes": (batch["codes"] + 1) % 16}
    names = ("codes", "hidden", "classes", "styles")
    rows = [plain_logits(model, *(b[name] for name in names))[:, 1:] for b in (batch, other)]
    assert torch.equal(*rows)


@pytest.mark.parametrize("compiled", [False, True])
def test_losses_are_close_in_bf16(compiled):
    model = model_of(width=32)
    run = torch.compile(model, backend="eager") if compiled else model
    batch = random_batch(model.config, 8, 0)
    exact = plain_loss(model, batch)
    with torch.autocast("cpu", torch.bfloat16):
        ours, plain = batch_loss(run, batch), plain_loss(model, batch)
    assert_close(ours, plain, rtol=5e-3, atol=0)
    assert_close(ours, exact, rtol=5e-3, atol=0)
    assert ours != exact


def test_gelu_is_the_same_compiled_for_a_cpu():
    x = torch.linspace(-12, 12, 1001, dtype=torch.float64).requires_grad_()
    exact = F.gelu(x, approximate="tanh")
    (slope,) = torch.autograd.grad(exact.sum(), x)
    narrow = x.detach().float().requires_grad_()
    found = torch.compile(GELU(), backend="eager")(narrow)
    (own,) = torch.autograd.grad(found.sum(), narrow)
    assert_close(found.double(), exact, rtol=1e-6, atol=1e-6)
    assert_close(own.double(), slope, rtol=1e-5, atol=1e-6)
    assert GELU()(x).equal(exact)


def test_many_steps_of_both_have_the_same_losses(small_product):
    training = TrainingConfig(steps=20, batch_size=4, lr=3e-3, warmup_steps=2, ema_decay=0.9, precision="fp32")
    found = compare(model_of(), training, pairs=6, discarded=2)
    assert found.difference < 1e-4
    assert found.ours > 0 and found.plain > 0 and found.ratio > 0 and found.rate > 0


def test_operations_are_those_counted_by_hand():
    # 2 registers, BOS and 16 codes are 19 rows of the encoder; 17 of the decoder see all of them. Width 16.
    encoder = 19 * (3 * 256 + 256 + 2 * 4 * 256) + 2 * 19 * 19 * 16
    swap = 19 * 2 * 256 + 2 * 17 * 19 * 16 + 17 * 256
    decoder = 17 * (256 + 256 + 2 * 4 * 256) + 19 * 2 * 256 + 2 * 17 * 19 * 16
    assert training_operations(config_of()) == 3 * (2 * encoder + swap + 2 * decoder + 17 * 16 * 18)
    masked = MaskedTransformerConfig(codebook_size=16, grid=4, width=48, layers=2, heads=1, num_classes=3)
    layer = 17 * (4 * 48**2 + 3 * 48 * 256) + 2 * 17 * 17 * 48
    assert training_operations(masked) == 3 * (2 * layer + 16 * 48 * 17)


@pytest.mark.parametrize("changes", [{"registers": 0}, {"num_classes": 0}, {"decoder_mode": "interleave"}])
def test_a_model_that_the_plain_step_does_not_know_is_refused(changes):
    with pytest.raises(ValueError, match="trains models of pictures"):
        compare(model_of(**changes), TrainingConfig(precision="fp32"), pairs=1, discarded=0)


def test_the_command_prints_a_row_for_each_depth(capsys, small_product):
    main(["--recipe", "tiny", "--layers", "1", "2", "--batch-size", "2", "--pairs", "1", "--discarded", "1"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3 and "1+1" in lines[1] and "2+2" in lines[2] and lines[1].count("%") == 2
