"""One file per algorithm: what is minimised, and the log-probabilities that its likelihood bound is made of.

Each module has `loss(model, batch)` -> scalar, for batches of `TextBatches`, and
`token_nll(model, tokens, hidden, z)` -> (B, N) nats of every hidden token given the visible ones.
"""

from types import ModuleType

from torch import nn

from pgm.diffusion_transformer import DiffusionTransformer
from pgm.models import unwrapped
from pgm.partition_transformer import PartitionTransformer
from pgm_text.algorithms import complementary_mdlm, mdlm, pgm, rmdm

ALGORITHMS: dict[str, ModuleType] = {
    "pgm": pgm,
    "mdlm": mdlm,
    "complementary-mdlm": complementary_mdlm,
    "rmdm": rmdm,
}


def algorithm_of(model: nn.Module) -> ModuleType:
    """The module that evaluates a model. Raises TypeError for other models."""
    inner = unwrapped(model)
    if getattr(inner.config, "latent_width", 0):
        return rmdm
    if isinstance(inner, PartitionTransformer):
        return pgm
    if isinstance(inner, DiffusionTransformer):
        return mdlm
    raise TypeError(f"no algorithm for {type(inner).__name__}")
