"""Tiny random models of both architectures, and a predictor whose logits are known by formula."""

from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from pgm.masked_transformer import MaskedTransformer, MaskedTransformerConfig
from pgm.models import make_predictor
from pgm.noise import draw_noise
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig
from pgm.predictors import Clean
from pgm.sampling import SamplingConfig, Step, planned_steps, sample

CODES, LENGTH = 12, 16


def randomise(model: nn.Module, seed: int = 0) -> nn.Module:
    """Fill every parameter, also gates and heads that start at zero, so that logits spread and context matters."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim > 1:
                parameter.copy_(1.5 * noise / parameter.shape[-1] ** 0.5)
            else:
                parameter.copy_(0.2 * noise + (1.0 if name.endswith("weight") else 0.0))  # norms, biases
    return model.eval()


def partition_config(**changes: object) -> PartitionTransformerConfig:
    sizes = {"width": 16, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "num_classes": 5, "length": LENGTH}
    special = {"vocab_size": CODES + 2, "mask_id": CODES, "bos_id": CODES + 1}
    return PartitionTransformerConfig(**{**sizes, **special, **changes})


def masked_config(**changes: object) -> MaskedTransformerConfig:
    sizes = {"codebook_size": CODES, "grid": 4, "width": 16, "layers": 2, "heads": 2, "num_classes": 5}
    return MaskedTransformerConfig(**{**sizes, **changes})


class FormulaPredictor:
    """Answers with `formula(clean, queries)` (B, Q, V) and `null_formula` for the unconditional pass; counts calls."""

    def __init__(
        self,
        formula: Callable[[Clean, Tensor], Tensor],
        null_formula: Callable[[Clean, Tensor], Tensor] | None = None,
        length: int = LENGTH,
        special_ids: tuple[int, ...] = (),
        can_resample: bool = False,
        unknown_id: int | None = None,
    ):
        self.formula, self.null_formula = formula, null_formula
        self.length, self.special_ids, self.unknown_id = length, special_ids, unknown_id
        self.can_resample, self.can_guide = can_resample, null_formula is not None
        self.calls: list[SimpleNamespace] = []

    def predict(self, clean, queries, query_lengths, guided):
        self.calls.append(SimpleNamespace(clean=clean, queries=queries, query_lengths=query_lengths, guided=guided))
        return self.formula(clean, queries), self.null_formula(clean, queries) if guided else None

    def cost(self, known: int, queries: int) -> int:
        return known + queries


@pytest.fixture(scope="session")
def formula() -> type[FormulaPredictor]:
    return FormulaPredictor


@pytest.fixture(scope="session")
def partition() -> Callable[..., PartitionTransformer]:
    """partition(**config) -> a random tiny Partition Transformer in eval mode."""
    return lambda seed=0, **changes: randomise(PartitionTransformer(partition_config(**changes)), seed)


@pytest.fixture(scope="session")
def masked() -> Callable[..., MaskedTransformer]:
    """masked(**config) -> a random tiny masked transformer in eval mode."""
    return lambda seed=0, **changes: randomise(MaskedTransformer(masked_config(**changes)), seed)


@pytest.fixture(scope="session")
def fresh() -> Callable[..., nn.Module]:
    """fresh("partition" | "masked", **config) -> a model as its constructor leaves it."""
    kinds = {"partition": (PartitionTransformer, partition_config), "masked": (MaskedTransformer, masked_config)}

    def build(kind: str, **changes: object) -> nn.Module:
        torch.manual_seed(0)
        model, config = kinds[kind]
        return model(config(**changes))

    return build


@pytest.fixture(scope="session")
def steps_of() -> Callable[..., list[Step]]:
    """steps_of(model, classes, seeds, known=None, **sampling config) -> all steps of a generation on a 4x4 grid."""

    def generate(model, classes, seeds, known=None, **config):
        settings = SamplingConfig(**{"steps": 5, **config})
        labels = torch.tensor(classes)
        with torch.no_grad():
            conditions = model.condition(labels), model.condition(torch.full_like(labels, -1))
        noise = draw_noise(seeds, LENGTH, planned_steps(settings, LENGTH) if settings.order == "confidence" else 0)
        return list(sample(make_predictor(model, *conditions), noise, (4, 4), settings, known_codes=known))

    return generate
