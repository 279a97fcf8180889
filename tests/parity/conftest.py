"""Where the recorded numbers are: beside the repository or, a few, copied into it; and models to compare with them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from pgm.diffusion_transformer import DiffusionTransformer, DiffusionTransformerConfig
from pgm.partition_transformer import PartitionTransformer, PartitionTransformerConfig

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = (ROOT.parent / "shared" / "parity" / "image", ROOT / "tests" / "data")


@pytest.fixture(scope="session")
def image_parity() -> Callable[[str], Path]:
    """Path of a fixture by name; the test skips where the file is neither beside the repository nor in tests/data."""

    def find(name: str) -> Path:
        for folder in FOLDERS:
            if (folder / name).is_file():
                return folder / name
        pytest.skip(f"{name} is neither in ../shared/parity/image nor in tests/data")

    return find


@pytest.fixture(scope="session")
def partition_model() -> Callable[..., PartitionTransformer]:
    """A Partition Transformer in eval mode with recorded weights, sizes of the recorded tiny model unless given."""

    def build(state: dict[str, torch.Tensor], **sizes: object) -> PartitionTransformer:
        recorded = {"width": 64, "heads": 4, "encoder_layers": 3, "decoder_layers": 2}
        config = PartitionTransformerConfig(
            vocab_size=34, length=16, mask_id=32, bos_id=33, num_classes=10, **{**recorded, **sizes}
        )
        model = PartitionTransformer(config)
        model.load_state_dict(state, strict=True)
        return model.eval()

    return build


@pytest.fixture(scope="session")
def labels() -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Recorded labels with the dropped ones as null."""
    return lambda classes, dropped: torch.where(dropped, -1, classes)


@pytest.fixture(scope="session")
def text_parity() -> Callable[[str], Path]:
    """Path of a fixture of the text models by name; the test skips where it is not beside the repository."""

    def find(name: str) -> Path:
        path = ROOT.parent / "shared" / "parity" / "text" / name
        if not path.is_file():
            pytest.skip(f"{name} is not in ../shared/parity/text")
        return path

    return find


# Vocabulary 40 with the mask last, BOS = EOS = 38, context 16 with BOS: the sizes of all recorded text models.
TEXT_SIZES = {
    "vocab_size": 40, "length": 15, "width": 64, "heads": 4, "mask_id": 39, "bos_id": 38, "condition_width": 32,
}  # fmt: skip


def without_prefix(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {key.removeprefix("backbone."): value for key, value in state.items()}


@pytest.fixture(scope="session")
def text_partition(text_parity) -> Callable[..., PartitionTransformer]:
    """text_partition(changes of its config, extra weights) -> the recorded text PGM in eval mode."""

    def build(extra: dict[str, torch.Tensor] | None = None, **changes: object) -> PartitionTransformer:
        state = without_prefix({**load_file(text_parity("pgm_tiny_weights.safetensors")), **(extra or {})})
        config = PartitionTransformerConfig(
            **{**TEXT_SIZES, "encoder_layers": 3, "decoder_layers": 2, "registers": 0, **changes}
        )
        model = PartitionTransformer(config)
        known = model.state_dict()
        model.load_state_dict({key: value for key, value in state.items() if key in known}, strict=True)
        return model.eval()

    return build


@pytest.fixture(scope="session")
def text_masked(text_parity) -> DiffusionTransformer:
    """The recorded MDLM in eval mode."""
    model = DiffusionTransformer(DiffusionTransformerConfig(**TEXT_SIZES, layers=3))
    model.load_state_dict(without_prefix(load_file(text_parity("mdlm_tiny_weights.safetensors"))), strict=True)
    return model.eval()
