"""Reading public VQ checkpoints."""

import pickle

import pytest
import torch
from torch import nn

from tokenizer import VQGAN, TokenizerConfig
from tokenizer.__main__ import main
from tokenizer.config import llamagen, taming_f16
from tokenizer.convert import convert, convert_file, convert_key, family, infer_config, read_checkpoint

SMALL = {
    "ch": 32,
    "out_ch": 3,
    "ch_mult": (1, 1, 2),
    "num_res_blocks": 1,
    "attn_resolutions": [4],
    "in_channels": 3,
    "resolution": 16,
    "z_channels": 16,
}


class Reference(nn.Module):
    """taming's VQModel without Lightning: its own encoder, decoder and quantiser."""

    def __init__(self) -> None:
        super().__init__()
        diffusion = pytest.importorskip("taming.modules.diffusionmodules.model")
        quantize = pytest.importorskip("taming.modules.vqvae.quantize")
        self.encoder = diffusion.Encoder(**SMALL, double_z=False)
        self.decoder = diffusion.Decoder(**SMALL)
        self.quantize = quantize.VectorQuantizer(32, 8, beta=0.25)
        self.quant_conv = nn.Conv2d(16, 8, 1)
        self.post_quant_conv = nn.Conv2d(8, 16, 1)


@pytest.fixture
def reference(capsys) -> Reference:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Reference().eval()
        nn.init.normal_(model.quantize.embedding.weight)
    return model


@torch.no_grad()
def test_a_converted_taming_model_equals_taming_itself(reference):
    ours = convert(reference.state_dict(), image_size=16)
    images = torch.rand(2, 3, 16, 16) * 2 - 1
    latents = reference.quant_conv(reference.encoder(images))
    quantised, _, (_, _, indices) = reference.quantize(latents)
    decoded = reference.decoder(reference.post_quant_conv(quantised))
    torch.testing.assert_close(ours.latents(images), latents, atol=1e-5, rtol=1e-5)
    assert torch.equal(ours.encode(images), indices.reshape(2, 4, 4))
    torch.testing.assert_close(ours.decode(ours.encode(images)), decoded.clamp(-1, 1), atol=2e-5, rtol=1e-5)


@pytest.mark.parametrize("prefix", ["", "module.", "_orig_mod.", "first_stage_model.", "module._orig_mod."])
@pytest.mark.parametrize("container", ["model", "state_dict", None])
def test_wrappers_around_the_weights_are_recognised(reference, tmp_path, prefix, container):
    state = {prefix + key: value for key, value in reference.state_dict().items()}
    state[prefix + "loss.discriminator.main.0.weight"] = torch.zeros(3)
    state[prefix + "quantize.codebook_used"] = torch.zeros(65536)
    content = state if container is None else {container: state, "epoch": 3, "optimizer_states": [{}]}
    torch.save(content, tmp_path / "last.ckpt")
    ours = convert_file(tmp_path / "last.ckpt", image_size=16)
    assert torch.equal(ours.quantizer.codebook, reference.quantize.embedding.weight)
    assert ours.config == TokenizerConfig(
        image_size=16, channels=32, multipliers=(1, 1, 2), blocks=1, low_attention=True, middle_attention=True,
        norm_groups=32, latent_channels=16, codebook_size=32, code_dim=8, distance="euclidean",
    )  # fmt: skip


def test_a_tokenizer_inside_a_larger_model_is_taken_out_and_the_rest_counted(reference, tmp_path):
    state = {f"first_stage_model.{key}": value for key, value in reference.state_dict().items()}
    state |= {"model.diffusion_model.out.weight": torch.zeros(2), "cond_stage_model.table": torch.zeros(2)}
    torch.save({"state_dict": state}, tmp_path / "model.ckpt")
    with pytest.warns(UserWarning, match="2 tensors outside first_stage_model. are ignored"):
        ours = convert_file(tmp_path / "model.ckpt", image_size=16)
    assert torch.equal(ours.quantizer.codebook, reference.quantize.embedding.weight)


def test_missing_and_unexpected_keys_are_counted_and_named(reference):
    state = reference.state_dict()
    del state["decoder.conv_out.bias"]
    with pytest.raises(ValueError, match=r"1 keys are missing \(first: decoder.conv_out.bias\)"):
        convert(state)
    state = reference.state_dict() | {"decoder.extra.weight": torch.zeros(1)}
    with pytest.raises(ValueError, match=r"1 are unexpected \(first: decoder.extra.weight\)"):
        convert(state)


@pytest.mark.parametrize(
    "name, config", [("llamagen", llamagen(8)), ("llamagen", llamagen(16)), ("taming", taming_f16(1024))]
)
def test_the_published_sizes_build_without_memory(name, config):
    with torch.device("meta"):
        model = VQGAN(config)
    assert config.grid == (256 // config.factor,) * 2
    assert sum(value.numel() for value in model.state_dict().values()) > 70_000_000


def test_keys_are_renamed_as_published():
    assert convert_key("decoder.up.0.block.1.nin_shortcut.weight", "taming", 5) == (
        "decoder.up_blocks.4.resnets.1.conv_shortcut.weight"
    )
    assert convert_key("decoder.conv_blocks.0.attn.2.proj_out.bias", "llamagen", 5) == (
        "decoder.up_blocks.0.attentions.2.to_out.0.bias"
    )
    assert convert_key("encoder.mid.1.norm.weight", "llamagen", 5) == "encoder.mid_block.attentions.0.group_norm.weight"
    assert convert_key("encoder.norm_out.bias", "taming", 5) == "encoder.conv_norm_out.bias"
    assert convert_key("quantize.embedding.weight", "taming", 5) == "quantizer.codebook"


def test_foreign_state_dicts_are_refused():
    with pytest.raises(ValueError, match="first key is 'layers.0.weight'"):
        family({"layers.0.weight": torch.zeros(1)})
    with pytest.raises(ValueError, match="Gumbel"):
        infer_config({"quantize.proj.weight": torch.zeros(1)})


class Harmful:
    """Would write a file when unpickled without care."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def test_a_checkpoint_that_would_run_code_is_refused_and_runs_nothing(tmp_path, reference):
    torch.save({"state_dict": reference.state_dict(), "extra": Harmful(str(tmp_path / "ran"))}, tmp_path / "bad.ckpt")
    with pytest.raises(ValueError, match="bad.ckpt is refused: it needs io.open"):
        read_checkpoint(tmp_path / "bad.ckpt")
    assert not (tmp_path / "ran").exists()
    (tmp_path / "plain.pt").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="plain.pt"):
        read_checkpoint(tmp_path / "plain.pt")


def test_the_callback_classes_of_old_lightning_files_are_read_as_nothing(tmp_path, reference):
    callbacks = pytest.importorskip("pytorch_lightning").callbacks
    content = {"state_dict": reference.state_dict(), "callbacks": {callbacks.ModelCheckpoint: {"monitor": "loss"}}}
    torch.save(content, tmp_path / "last.ckpt")
    assert "quantize.embedding.weight" in read_checkpoint(tmp_path / "last.ckpt")


@pytest.mark.parametrize("content", [b"", b"<html></html>", b"PK\x03\x04 cut"])
@pytest.mark.parametrize("name", ["file.pt", "file.safetensors"])
def test_damaged_files_get_one_sentence(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=name) as caught:
        read_checkpoint(tmp_path / name)
    assert "\n" not in str(caught.value)


def test_a_file_without_weights_is_refused(tmp_path):
    torch.save({"epoch": 3}, tmp_path / "file.pt")
    with pytest.raises(ValueError, match="no state dict"):
        read_checkpoint(tmp_path / "file.pt")


def test_the_command_writes_a_loadable_folder(reference, tmp_path, capsys):
    torch.save({"state_dict": reference.state_dict()}, tmp_path / "last.ckpt")
    assert main(["convert", str(tmp_path / "last.ckpt"), str(tmp_path / "out"), "--image-size", "16"]) == 0
    assert VQGAN.from_pretrained(tmp_path / "out").config.image_size == 16
