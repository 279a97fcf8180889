"""Growing a trained decoder: new residual blocks add nothing at first, so the deeper one starts as the same function.

Codes made with the small tokenizer stay valid: encoder and codebook are copied.
"""

import re
from dataclasses import replace

import torch

from tokenizer.vqgan import VQGAN

_LAST = re.compile(r"^decoder\.up_blocks\.\d+\.resnets\.\d+\.conv2\.")  # what a block adds to its input


def with_decoder_blocks(model: VQGAN, blocks: int, seed: int = 0) -> VQGAN:
    """A copy of the model with `blocks` residual blocks a decoder level (it computes with one more), eval mode.

    seed: of the new blocks' other weights; the global generator is left alone.
    Raises ValueError for fewer than it has, and for decoders with attention at the lowest level.
    """
    config = model.config
    few = config.blocks if config.decoder_blocks is None else config.decoder_blocks
    if blocks < few:
        raise ValueError(f"decoder_blocks must be at least the {few} that the tokenizer has, got {blocks}")
    if config.low_attention:
        raise ValueError("decoder_blocks cannot grow in a tokenizer with attention at the lowest resolution")
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        grown = VQGAN(replace(config, decoder_blocks=blocks))
    old, new = model.state_dict(), grown.state_dict()
    with torch.no_grad():
        for key in new.keys() - old.keys():
            if _LAST.match(key):
                new[key].zero_()
    grown.load_state_dict({**new, **old})
    weight = model.post_quant_conv.weight
    return grown.to(weight.device, weight.dtype).eval()
