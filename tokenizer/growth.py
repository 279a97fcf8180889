"""Growing a trained decoder: new residual blocks add nothing at first, so the deeper one starts as the same function.

Codes made with the small tokenizer stay valid: encoder and codebook are copied.
"""

import re
from dataclasses import replace

import torch

from tokenizer.vqgan import VQGAN

_BLOCK = re.compile(r"^decoder\.up_blocks\.\d+\.resnets\.(\d+)\.")


def with_decoder_blocks(model: VQGAN, blocks: int) -> VQGAN:
    """A copy of the model with `blocks` residual blocks a decoder level (it computes with one more), eval mode.

    Raises ValueError for fewer than it has, and for decoders with attention at the lowest level.
    """
    config = model.config
    few = config.blocks if config.decoder_blocks is None else config.decoder_blocks
    if blocks < few:
        raise ValueError(f"decoder_blocks must be at least the {few} that the tokenizer has, got {blocks}")
    if config.low_attention:
        raise ValueError("decoder_blocks cannot grow in a tokenizer with attention at the lowest resolution")
    grown = VQGAN(replace(config, decoder_blocks=blocks))
    old, new = model.state_dict(), grown.state_dict()
    with torch.no_grad():
        for key in new.keys() - old.keys():
            if ".conv2." in key and _BLOCK.match(key):
                new[key].zero_()  # the block's last layer: what it adds to its input
    grown.load_state_dict({**new, **old})
    weight = model.post_quant_conv.weight
    return grown.to(weight.device, weight.dtype).eval()
