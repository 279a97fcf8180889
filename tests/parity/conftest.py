"""Where the recorded numbers of the image models are: beside the repository, or the few that are copied into it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

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
