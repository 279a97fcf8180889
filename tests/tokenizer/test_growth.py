"""A decoder grown in depth decodes as before, keeps the codes, and its new blocks learn."""

from dataclasses import replace

import pytest
import torch

from tokenizer import VQGAN
from tokenizer.__main__ import main
from tokenizer.growth import with_decoder_blocks
from tokenizer.train import Trainer
from tokenizer.train_config import TrainConfig


def test_a_deeper_decoder_starts_as_the_same_function_of_the_same_codes(model, tmp_path):
    grown = with_decoder_blocks(model, 3)
    codes = torch.randint(0, model.config.codebook_size, (2, 4, 4))
    assert torch.equal(grown.decode(codes), model.decode(codes))
    assert grown.codes_hash() == model.codes_hash()
    assert len(list(grown.decoder.parameters())) > len(list(model.decoder.parameters()))
    assert len(list(grown.encoder.parameters())) == len(list(model.encoder.parameters()))
    grown.save_pretrained(tmp_path)
    assert torch.equal(VQGAN.from_pretrained(tmp_path).decode(codes), model.decode(codes))
    assert with_decoder_blocks(grown, 3).config == grown.config


def test_the_new_blocks_follow_the_seed_and_leave_the_global_generator_alone(model):
    before = torch.get_rng_state()
    first, again, other = (with_decoder_blocks(model, 2, seed).state_dict() for seed in (3, 3, 4))
    assert torch.equal(torch.get_rng_state(), before)
    new = [key for key in first if key not in model.state_dict()]
    assert new and all(torch.equal(first[key], again[key]) for key in new)
    assert any(not torch.equal(first[key], other[key]) for key in new)


def test_new_blocks_learn(model, config, split, tmp_path):
    settings = TrainConfig(steps=4, batch_size=4, lr=1e-2, perceptual="none", precision="fp32", freeze_encoder=True)
    grown = with_decoder_blocks(model, 2)
    export = Trainer(settings, grown.config, split, split, tmp_path, grown).run()
    trained = VQGAN.from_pretrained(export)
    assert trained.decoder.up_blocks[0].resnets[2].conv2.weight.abs().sum() > 0
    assert trained.codes_hash() == model.codes_hash()


def test_a_decoder_does_not_shrink_and_one_with_attention_does_not_grow(model, config):
    with pytest.raises(ValueError, match="decoder_blocks must be at least the 2"):
        with_decoder_blocks(with_decoder_blocks(model, 2), 1)
    with pytest.raises(ValueError, match="attention"):
        with_decoder_blocks(VQGAN(replace(config, low_attention=True)), 2)


def test_the_command_grows_a_decoder_or_builds_a_deeper_one(model, shard_folder, tmp_path, capsys):
    model.save_pretrained(tmp_path / "start")
    common = ["--steps", "1", "--perceptual", "none", "--precision", "fp32", "--decoder-blocks", "2"]
    grown = ["--init", str(tmp_path / "start"), "--freeze-encoder"]
    assert main(["train", str(shard_folder), str(tmp_path / "grown"), *grown, *common]) == 0
    deeper = "--image-size 16 --channels 8 --multipliers 1 1 2 --norm-groups 4 --latent-channels 8 --codebook-size 16"
    assert main(["train", str(shard_folder), str(tmp_path / "deeper"), *deeper.split(), *common]) == 0
    for run in ("grown", "deeper"):
        assert VQGAN.from_pretrained(tmp_path / run / "export").config.decoder_blocks == 2
