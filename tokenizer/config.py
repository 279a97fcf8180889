"""Sizes of a VQGAN tokenizer (Esser et al. 2021, section 3.1), saved as config.json beside the weights."""

from dataclasses import asdict, dataclass, field

from pgm.weights import config_from_dict

DISTANCES = ("euclidean", "cosine")


@dataclass(frozen=True)
class TokenizerConfig:
    """Everything needed to rebuild a `tokenizer.vqgan.VQGAN`; the defaults are the bundled 64-pixel model."""

    model_type: str = "vqgan"
    image_size: int = 64  # pixels of a square training image; other sizes work, the network is convolutional
    channels: int = 32  # width at full resolution
    multipliers: tuple[int, ...] = (1, 2, 4)  # width factor per level; each level after the first halves the size
    blocks: int = 1  # residual blocks per encoder level; a decoder level has one more
    low_attention: bool = False  # attention after each residual block of the lowest-resolution level
    middle_attention: bool = False  # attention in the middle of encoder and decoder
    norm_groups: int = 8  # groups of every group norm
    latent_channels: int = 64  # encoder output, before the 1x1 convolution to code_dim
    codebook_size: int = 1024
    code_dim: int = 8
    distance: str = "cosine"  # "cosine": latent and codebook rows on the unit sphere (LlamaGen); "euclidean": taming
    # As `blocks`, where the decoder has another number; not shown in repr, which the hash of the codes is made from.
    decoder_blocks: int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "multipliers", tuple(int(m) for m in self.multipliers))
        if self.model_type != "vqgan":
            raise ValueError(f"model_type must be 'vqgan', got {self.model_type!r}")
        if self.distance not in DISTANCES:
            raise ValueError(f"distance must be one of {DISTANCES}, got {self.distance!r}")
        for name in ("image_size", "channels", "blocks", "norm_groups", "latent_channels", "codebook_size", "code_dim"):
            value = getattr(self, name)
            if not isinstance(value, int) or value < 1:
                raise ValueError(f"{name} must be an integer >= 1, got {value!r}")
        if self.decoder_blocks is not None and (not isinstance(self.decoder_blocks, int) or self.decoder_blocks < 1):
            raise ValueError(f"decoder_blocks must be an integer >= 1 or None, got {self.decoder_blocks!r}")
        if not self.multipliers or min(self.multipliers) < 1:
            raise ValueError(f"multipliers must be positive integers, got {self.multipliers!r}")
        if self.image_size % self.factor:
            raise ValueError(f"image_size must be a multiple of the factor {self.factor}, got {self.image_size}")
        for width in self.widths:
            if width % self.norm_groups:
                raise ValueError(f"every width {self.widths} must be a multiple of norm_groups={self.norm_groups}")

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels per level, full resolution first."""
        return tuple(self.channels * m for m in self.multipliers)

    @property
    def factor(self) -> int:
        """Pixels per code along each side."""
        return 2 ** (len(self.multipliers) - 1)

    @property
    def grid(self) -> tuple[int, int]:
        """(h, w) of the codes of one image of `image_size`."""
        side = self.image_size // self.factor
        return side, side

    def to_dict(self) -> dict:
        """JSON-ready fields; `decoder_blocks` only where it says something."""
        found = {**asdict(self), "multipliers": list(self.multipliers)}
        if self.decoder_blocks is None:
            del found["decoder_blocks"]
        return found

    @classmethod
    def from_dict(cls, fields: dict) -> "TokenizerConfig":
        """Rebuild from `to_dict`; raises ValueError for a field this version does not know."""
        return config_from_dict(cls, fields)


def llamagen(factor: int) -> TokenizerConfig:
    """The published LlamaGen VQ-8 or VQ-16."""
    multipliers = {8: (1, 2, 2, 4), 16: (1, 1, 2, 2, 4)}
    if factor not in multipliers:
        raise ValueError(f"factor must be 8 or 16, got {factor!r}")
    return TokenizerConfig(
        image_size=256,
        channels=128,
        multipliers=multipliers[factor],
        blocks=2,
        low_attention=True,
        middle_attention=True,
        norm_groups=32,
        latent_channels=256,
        codebook_size=16384,
        code_dim=8,
        distance="cosine",
    )


def taming_f16(codebook_size: int = 1024) -> TokenizerConfig:
    """The published taming-transformers ImageNet f16 models, 1024 or 16384 codes."""
    return TokenizerConfig(
        image_size=256,
        channels=128,
        multipliers=(1, 1, 2, 2, 4),
        blocks=2,
        low_attention=True,
        middle_attention=True,
        norm_groups=32,
        latent_channels=256,
        codebook_size=codebook_size,
        code_dim=256,
        distance="euclidean",
    )
