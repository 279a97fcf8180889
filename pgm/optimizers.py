"""Optimisers of a training run: AdamW for everything, or Muon for the matrices inside blocks and AdamW for the rest."""

import re
from typing import Literal

import torch
from torch import nn

OptimizerName = Literal["adamw", "muon"]

_INSIDE_BLOCKS = re.compile(r"(^|\.)(blocks|layers|group_swap)\.")
_LEFT_OUT = re.compile(r"adaLN_modulation|base_embedding|\.mlp\.1\.")  # modulations (zero at first) and vectors


def build_optimizers(
    model: nn.Module, name: OptimizerName, lr: float, betas: tuple[float, float], weight_decay: float
) -> list[torch.optim.Optimizer]:
    """One optimiser, or two for "muon" (arXiv 2502.16982): its update has AdamW's RMS, so both share the rate `lr`.

    Raises ValueError for another name.
    """
    if name not in ("adamw", "muon"):
        raise ValueError(f"optimizer must be 'adamw' or 'muon', got {name!r}")
    parameters = {key: p for key, p in model.named_parameters() if p.requires_grad}
    matrices = {key: p for key, p in parameters.items() if name == "muon" and _takes_muon(key, p)}
    rest = [p for key, p in parameters.items() if key not in matrices]
    optimizers: list[torch.optim.Optimizer] = [
        torch.optim.AdamW(rest, lr=lr, betas=betas, weight_decay=weight_decay, fused=True)
    ]
    if matrices:
        optimizers.append(
            torch.optim.Muon(matrices.values(), lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw")
        )
    return optimizers


def _takes_muon(key: str, parameter: nn.Parameter) -> bool:
    return parameter.ndim == 2 and bool(_INSIDE_BLOCKS.search(key)) and not _LEFT_OUT.search(key)
