"""Images <-> grids of codes: VQGAN, quantiser, converters for public checkpoints, training and encoding."""

from tokenizer.config import TokenizerConfig
from tokenizer.vqgan import VQGAN

__all__ = ["VQGAN", "TokenizerConfig"]
