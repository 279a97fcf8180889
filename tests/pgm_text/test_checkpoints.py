"""Published checkpoints without network: sizes from shapes, prefixes, files, and a vocabulary that does not fit."""

import pytest
import torch
from safetensors.torch import save_file
from torch.testing import assert_close

from pgm.diffusion_transformer import DiffusionTransformer, DiffusionTransformerConfig
from pgm_text.checkpoints import PUBLIC_CHECKPOINTS, download_checkpoint, read_checkpoint, transformer_from_state
from pgm_text.pipeline import TextPipeline
from pgm_text.registry import checkpoint_info, is_checkpoint

SIZES = {"n_heads": 2, "length": 12}


def masked(vocab_size=30):
    torch.manual_seed(0)
    config = DiffusionTransformerConfig(
        vocab_size=vocab_size, length=11, width=64, heads=1, layers=2, mask_id=vocab_size - 1, bos_id=vocab_size - 2,
        condition_width=8,
    )  # fmt: skip
    model = DiffusionTransformer(config)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.1)
    return model.eval()


@pytest.mark.parametrize("query_processor", ["linear", "mlp4"])
def test_a_partition_transformer_is_rebuilt_from_its_tensors(text_model, query_processor):
    model = text_model("pgm", query_processor=query_processor)
    config = model.config
    rebuilt = transformer_from_state(
        model.state_dict(), {"n_heads": config.heads, "length": config.length + 1}, mask_id=config.mask_id
    )
    assert rebuilt.config.query_processor == query_processor
    assert (rebuilt.config.width, rebuilt.config.encoder_layers) == (config.width, config.encoder_layers)
    tokens, groups = torch.randint(2, 300, (2, 40)), torch.rand(2, 40) < 0.5
    with torch.no_grad():
        assert_close(rebuilt(tokens, groups, torch.zeros(2)), model(tokens, groups, torch.zeros(2)), rtol=0, atol=0)


@pytest.mark.parametrize("prefix", ["", "backbone.", "backbone.backbone.", "backbone._orig_mod."])
@pytest.mark.parametrize("kind", ["safetensors", "bin"])
def test_any_prefix_and_either_bare_format_is_read(tmp_path, prefix, kind):
    model = masked()
    state = {prefix + key: value for key, value in model.state_dict().items() if "inv_freq" not in key}
    path = tmp_path / f"model.{kind}"
    save_file(state, path) if kind == "safetensors" else torch.save(state, path)
    loaded = read_checkpoint(path)
    tokens = torch.randint(0, 30, (2, 12))
    with torch.no_grad():
        assert_close(loaded(tokens, torch.zeros(2)), model(tokens, torch.zeros(2)), rtol=0, atol=0)
    assert (loaded.config.length, loaded.config.heads) == (1023, 1)  # what shapes do not tell is as published


def test_foreign_tensors_are_refused(tmp_path):
    with pytest.raises(ValueError, match="holds no text PGM or MDLM"):
        transformer_from_state({"weight": torch.zeros(2)}, SIZES)
    state = masked().state_dict()
    state["blocks.0.extra"] = torch.zeros(1)
    with pytest.raises(ValueError, match="unexpected"):
        transformer_from_state(state, SIZES)


def test_a_checkpoint_of_another_vocabulary_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "model.safetensors"
    save_file(masked().state_dict(), path)
    assert is_checkpoint(path)
    monkeypatch.setattr("pgm_text.pipeline.gpt2_tokenizer", lambda: type("T", (), {"vocab_size": 50258})())
    with pytest.raises(ValueError, match="vocabulary of 30, GPT-2's tokenizer with a mask has 50258"):
        TextPipeline.from_pretrained(path)


def test_published_names_say_what_they_are():
    for name in PUBLIC_CHECKPOINTS:
        info = checkpoint_info(name)
        assert is_checkpoint(name) and info.layout == "wrapped" and info.length == 1023
        assert info.architecture == ("pgm" if name.startswith("pgm") else "mdlm")


def test_a_download_without_network_names_the_file():
    with pytest.raises(ValueError, match="mdlm.ckpt of the hub repository jdeschena/pgm is not in the cache"):
        download_checkpoint("mdlm.ckpt", local_files_only=True)
