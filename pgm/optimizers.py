"""Optimisers of a training run: AdamW for everything, or Muon (arXiv 2502.16982) for the matrices of the layers.

Muon moves a matrix along its orthogonalised momentum. With updates scaled to AdamW's size, as in that paper's section
2.2, it takes AdamW's rate and weight decay as they are.
"""

from collections.abc import Callable
from typing import Any, Literal, get_args

from torch import Tensor, nn
from torch.optim import AdamW, Muon, Optimizer

OptimizerName = Literal["adamw", "muon"]
# Ends of the names that attention, MLP and GroupSwap layers have in our transformers.
HIDDEN = (
    *("attn_qkv", "attn_q", "attn_kv", "attn_out", "attn.wq", "attn.wk", "attn.wv", "attn.wo"),
    *("mlp.0", "mlp.2", "ff.w1", "ff.w2", "ff.w3"),
    *("query_processor", "hidden_to_key_value", "output_linear"),
)


def optimizer_names() -> tuple[str, ...]:
    """All optimisers by name."""
    return get_args(OptimizerName)


def make_optimizer(
    model: nn.Module, name: str, lr: float, betas: tuple[float, float], weight_decay: float
) -> Optimizer:
    """The optimiser `name` for all parameters of one of our transformers.

    muon: AdamW, with `betas`, keeps what is no matrix between hidden states (see `hidden_matrices`).
    """
    if name == "adamw":
        return AdamW(model.parameters(), lr=lr, betas=betas, weight_decay=weight_decay, fused=True)
    matrices = hidden_matrices(model)
    chosen = {id(matrix) for matrix in matrices}
    rest = [parameter for parameter in model.parameters() if id(parameter) not in chosen]
    return Together(
        Muon(matrices, lr=lr, weight_decay=weight_decay, adjust_lr_fn="match_rms_adamw"),
        AdamW(rest, lr=lr, betas=betas, weight_decay=weight_decay, fused=True),
    )


def hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """Weights of attention, MLP and GroupSwap layers.

    Embeddings, the output layer and what turns a time or a condition into modulations are not among them.
    """
    return [
        module.weight
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and name.endswith(HIDDEN) and not name.startswith("sigma_map")
    ]


class Together(Optimizer):
    """Several optimisers of different parameters as one: their groups side by side, their states in one."""

    def __init__(self, *parts: Optimizer):
        self.parts = parts
        super().__init__([group for part in parts for group in part.param_groups], {})
        self._share()

    def step(self, closure: Callable[[], Tensor] | None = None) -> None:
        """One step of each. Raises ValueError for a closure, which each of them would call."""
        if closure is not None:
            raise ValueError("closure must be None: every part would call it")
        for part in self.parts:
            part.step()

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict(state_dict)
        self._share()

    def _share(self) -> None:
        # Each part has one group here; loading replaces groups and state, so the parts must look at the new ones.
        for part, group in zip(self.parts, self.param_groups, strict=True):
            part.param_groups, part.state = [group], self.state
