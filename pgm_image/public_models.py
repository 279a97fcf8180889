"""Published ImageNet models: where their files lie, what they are, and how their authors sampled them.

PGM (arXiv 2505.18883) and its MaskGIT baseline, the Halton-MaskGIT family (arXiv 2503.17076), and the tokenizers they
work on: LlamaGen's VQ-8 and VQ-16 (arXiv 2406.06525), beside taming-transformers' f16 (arXiv 2012.09841).
"""

from dataclasses import dataclass, field
from typing import Any

from pgm.masked_transformer import MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformerConfig
from pgm_image.imagenet import imagenet_classes, imagenet_words
from pgm_image.model_info import ModelInfo
from tokenizer.config import TokenizerConfig, llamagen, taming_f16

CLASSES = 1000
CODES = 16384  # of both LlamaGen tokenizers; the mask id follows, then BOS
UNSTATED = "see repository"

# Width, layers, heads of the published masked transformers.
MASKED_SIZES = {"tiny": (384, 6, 6), "small": (512, 12, 6), "base": (768, 12, 12), "large": (1024, 24, 16)}


@dataclass(frozen=True)
class PublicTokenizer:
    """A published VQGAN; one without `repo` is not on the hub and is converted from a file by hand."""

    name: str
    title: str
    file: str
    config: TokenizerConfig
    parameters: int
    repo: str | None = None
    licence: str = UNSTATED


@dataclass(frozen=True)
class PublicModel:
    """A published transformer with the tokenizer whose codes it generates."""

    name: str
    title: str
    repo: str
    file: str
    config: PartitionTransformerConfig | MaskedTransformerConfig
    tokenizer: PublicTokenizer
    parameters: int  # of the transformer
    image_size: int
    recommended: dict[str, Any]  # settings of `generate` that are taken where the caller gives none
    published: dict[str, Any] = field(default_factory=dict)  # what to add for sampling as the authors' code does
    licence: str = UNSTATED
    fid: float | None = None  # only where the authors give one for exactly this file
    note: str = ""

    @property
    def architecture(self) -> str:
        return "pgm" if isinstance(self.config, PartitionTransformerConfig) else "maskgit"

    @property
    def grid(self) -> tuple[int, int]:
        side = round(self.config.length**0.5)
        return side, side

    @property
    def codebook_size(self) -> int:
        return self.config.mask_id

    @property
    def files(self) -> tuple[tuple[str, str], ...]:
        """(repository, file) of transformer and tokenizer."""
        return (self.repo, self.file), (self.tokenizer.repo or "", self.tokenizer.file)

    @property
    def download_bytes(self) -> int:
        """At least this much is downloaded: float32 weights, without what training left in the files."""
        return 4 * (self.parameters + self.tokenizer.parameters)

    def info(self) -> ModelInfo:
        """What the rest of the package needs to know before any weight is there."""
        known = self.config.num_classes == CLASSES
        return ModelInfo(
            name=self.name,
            architecture=self.architecture,
            title=self.title,
            image_size=self.image_size,
            grid=self.grid,
            codebook_size=self.codebook_size,
            classes=imagenet_classes() if known else tuple(f"class {i}" for i in range(self.config.num_classes)),
            recommended=dict(self.recommended),
            presets={name: {"steps": steps} for name, steps in _PRESETS.items()},
            parameters=self.parameters,
            licence=f"{self.licence}; tokenizer: {self.tokenizer.licence}",
            words=imagenet_words() if known else {},
            source=f"{self.repo}/{self.file}",
            fid=self.fid,
            published=dict(self.published),
        )


_PRESETS = {"Draft": 16, "Balanced": 32, "Best": 64}

VQ8 = PublicTokenizer(
    "llamagen-vq8", "LlamaGen VQ-8", "vq_ds8_c2i.pt", llamagen(8), 70_109_835, "FoundationVision/LlamaGen"
)
VQ16 = PublicTokenizer(
    "llamagen-vq16", "LlamaGen VQ-16", "vq_ds16_c2i.pt", llamagen(16), 71_883_403, "FoundationVision/LlamaGen"
)
PUBLIC_TOKENIZERS = {
    tokenizer.name: tokenizer
    for tokenizer in (
        VQ8,
        VQ16,
        PublicTokenizer("taming-f16-1024", "taming VQGAN f16", "last.ckpt", taming_f16(1024), 72_141_699),
        PublicTokenizer("taming-f16-16384", "taming VQGAN f16", "last.ckpt", taming_f16(16384), 76_073_859),
    )
}

# The evaluated settings are Halton order with 32 or 64 steps at guidance 0 to 7; which guidance is best is not stated.
_PGM_SETTINGS = {
    "steps": 32,
    "sampler": "halton",
    "schedule": "arccos",
    "guidance_scale": 3.0,
    "guidance_schedule": "linear",
    "temperature": 1.0,
    "confidence_temperature": 5.0,
}
# The published code hides the last clean token at every step and flattens the first step.
_PGM_PUBLISHED = {"visible_length": "reference", "temperature_warmup": 1}
# The example of the Halton-MaskGIT repository; its rising inverse temperature (1 to 1.2) is left at 1.
_HALTON_SETTINGS = {
    "steps": 32,
    "sampler": "halton",
    "schedule": "arccos",
    "guidance_scale": 2.0,
    "guidance_schedule": "constant",
    "temperature": 1.0,
    "roll": True,
}


def partition(encoder_layers: int, decoder_layers: int) -> PartitionTransformerConfig:
    """The published Partition Transformer of width 1024 on 32x32 codes."""
    return PartitionTransformerConfig(
        vocab_size=CODES + 2,
        length=32 * 32,
        width=1024,
        heads=16,
        encoder_layers=encoder_layers,
        decoder_layers=decoder_layers,
        mask_id=CODES,
        bos_id=CODES + 1,
        num_classes=CLASSES,
    )


def masked(size: str, grid: int) -> MaskedTransformerConfig:
    """A published masked transformer by the name of its size, on grid x grid codes."""
    width, layers, heads = MASKED_SIZES[size]
    return MaskedTransformerConfig(
        codebook_size=CODES, grid=grid, width=width, layers=layers, heads=heads, num_classes=CLASSES
    )


def _pgm(encoder: int, decoder: int, parameters: int) -> PublicModel:
    return PublicModel(
        name=f"imagenet256-pgm-{encoder}-{decoder}",
        title=f"PGM {encoder}/{decoder}, ImageNet, 256 pixels, 100 epochs",
        repo="jdeschena/pgm",
        file=f"images_pgm_{encoder}_{decoder}_100epochs.ckpt",
        config=partition(encoder, decoder),
        tokenizer=VQ8,
        parameters=parameters,
        image_size=256,
        recommended=_PGM_SETTINGS,
        published=_PGM_PUBLISHED,
        note="The paper measures FID against the 50,000 validation images.",
    )


def _halton(resolution: int, size: str, parameters: int) -> PublicModel:
    return PublicModel(
        name=f"imagenet{resolution}-halton-{size}",
        title=f"Halton-MaskGIT {size}, ImageNet, {resolution} pixels",
        repo="llvictorll/Halton-Maskgit",
        file=f"ImageNet_{resolution}_{size}.pth",
        config=masked(size, resolution // 16),
        tokenizer=VQ16,
        parameters=parameters,
        image_size=resolution,
        recommended=_HALTON_SETTINGS,
        licence="MIT",
    )


PUBLIC_MODELS = {
    model.name: model
    for model in (
        _pgm(12, 12, 494_220_290),
        _pgm(14, 10, 494_218_242),
        PublicModel(
            name="imagenet256-maskgit",
            title="MaskGIT large of the PGM comparison, ImageNet, 256 pixels, 100 epochs",
            repo="jdeschena/pgm",
            file="maskgit_100epochs.ckpt",
            config=masked("large", 32),
            tokenizer=VQ8,
            parameters=480_443_393,
            image_size=256,
            recommended={**_HALTON_SETTINGS, "roll": False, "confidence_temperature": 5.0},
            published={"resample_known": True, "temperature_warmup": 1},
            note="The published comparison draws codes that are already known anew at every step.",
        ),
        _halton(256, "tiny", 23_031_425),
        _halton(256, "small", 69_344_769),
        _halton(256, "base", 142_224_641),
        _halton(384, "small", 69_508_609),
        _halton(384, "base", 142_470_401),
        _halton(384, "large", 479_984_641),
    )
}
