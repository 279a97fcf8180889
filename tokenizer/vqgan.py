"""VQGAN (Esser et al. 2021, arXiv 2012.09841, section 3.1): convolutional encoder, vector quantiser, decoder.

Encoder and decoder are those of `diffusers.VQModel`, which coincide with the published taming and LlamaGen networks.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from diffusers import VQModel
from PIL import Image
from torch import Tensor, nn

from pgm.weights import load_into, read_config, read_weights, save_weights
from tokenizer import pixels
from tokenizer.config import TokenizerConfig
from tokenizer.image_files import to_rgb
from tokenizer.quantizer import Quantizer

MAX_PIXELS = 1024 * 1024  # larger pictures are shrunk before `reconstruct` to bound memory


class Reconstruction(NamedTuple):
    """What one training forward returns."""

    images: Tensor  # (B, 3, H, W)
    latents: Tensor  # (B, code_dim, h, w) before quantisation
    codes: Tensor  # (B, h, w) int64
    commitment: Tensor  # scalar
    drawn: Tensor | None = None  # (D, 3, H, W), of codes that a model drew


class VQGAN(nn.Module):
    """Images in [-1, 1] <-> grids of codes; `config.factor` pixels per code along each side."""

    def __init__(self, config: TokenizerConfig) -> None:
        super().__init__()
        self.config = config
        parts = _networks(config, config.blocks)
        self.encoder = parts.encoder
        self.quant_conv = parts.quant_conv
        self.quantizer = Quantizer(config.codebook_size, config.code_dim, config.distance)
        self.post_quant_conv = parts.post_quant_conv
        self.decoder = parts.decoder
        if config.decoder_blocks not in (None, config.blocks):
            self.decoder = _networks(config, config.decoder_blocks).decoder

    # ---- tensors ----

    def forward(self, images: Tensor, bypass: Tensor | None = None, drawn: Tensor | None = None) -> Reconstruction:
        """Training pass. images: (B, 3, H, W) in [-1, 1], sides multiples of the factor; bypass: as in `Quantizer`.

        drawn: (D, h, w) int64 codes that come from elsewhere, decoded along.
        """
        latents = self.quant_conv(self.encoder(images))  # (B, code_dim, h, w)
        quantised, codes, commitment = self.quantizer(latents, bypass)
        if drawn is None:
            return Reconstruction(self.decoder(self.post_quant_conv(quantised)), latents, codes, commitment)
        quantised = torch.cat((quantised, self.quantizer.lookup(drawn).permute(0, 3, 1, 2).to(quantised.dtype)))
        decoded = self.decoder(self.post_quant_conv(quantised)).split((len(images), len(drawn)))
        return Reconstruction(decoded[0], latents, codes, commitment, decoded[1])

    def latents(self, images: Tensor) -> Tensor:
        """images: (B, 3, H, W) in [-1, 1] -> (B, code_dim, H / factor, W / factor) before quantisation."""
        self._leave_half_precision()
        weight = self.quant_conv.weight
        return self.quant_conv(self.encoder(images.to(weight.device, weight.dtype)))

    @torch.no_grad()
    def encode(self, images: Tensor) -> Tensor:
        """images: (B, 3, H, W) float in [-1, 1], H and W multiples of the factor -> codes (B, h, w) int64.

        Raises ValueError for another shape.
        """
        factor = self.config.factor
        if images.ndim != 4 or images.shape[1] != 3:
            raise ValueError(f"images must have shape (B, 3, H, W), got {tuple(images.shape)}")
        if not images.shape[2] or not images.shape[3] or images.shape[2] % factor or images.shape[3] % factor:
            raise ValueError(f"image height and width must be multiples of {factor}, got {tuple(images.shape[2:])}")
        return self.quantizer.nearest(self.latents(images).permute(0, 2, 3, 1))

    @torch.no_grad()
    def decode(self, codes: Tensor) -> Tensor:
        """codes: (B, h, w) integers in 0..codebook_size-1 -> images (B, 3, h * factor, w * factor) in [-1, 1].

        Raises ValueError for another shape or a code outside the codebook.
        """
        if codes.ndim != 3 or codes.is_floating_point():
            raise ValueError(f"codes must be integers of shape (B, h, w), got {codes.dtype} {tuple(codes.shape)}")
        size = self.config.codebook_size
        if codes.numel() and (codes.min() < 0 or codes.max() >= size):
            raise ValueError(f"codes must be in 0..{size - 1}, got {codes.min().item()}..{codes.max().item()}")
        self._leave_half_precision()
        weight = self.post_quant_conv.weight
        rows = self.quantizer.lookup(codes.to(weight.device, torch.int64))  # (B, h, w, code_dim)
        images = self.decoder(self.post_quant_conv(rows.permute(0, 3, 1, 2).to(weight.dtype)))
        return images.float().clamp(-1, 1)

    def _leave_half_precision(self) -> None:
        # Activations of these networks exceed the float16 range (65504) and would decode to NaN.
        if self.post_quant_conv.weight.dtype == torch.float16:
            self.float()

    # ---- pictures ----

    def encode_images(self, pictures: Sequence[Image.Image]) -> Tensor:
        """Pictures of any size, cropped to their central square and resized to `image_size` -> codes (B, h, w)."""
        side = self.config.image_size
        return self.encode(torch.stack([pixels.from_pil(square(picture, side)) for picture in pictures]))

    def decode_images(self, codes: Tensor) -> list[Image.Image]:
        """codes: (B, h, w) -> B RGB pictures."""
        return pixels.to_pil(self.decode(codes))

    def reconstruct(self, pictures: Image.Image | Sequence[Image.Image]) -> Image.Image | list[Image.Image]:
        """Through the codes and back; each result has the size of its picture.

        Sides are padded to a multiple of the factor by repeating the last row and column, and cropped back. Pictures
        over `MAX_PIXELS` are shrunk first and the result is enlarged to the original size.
        """
        if isinstance(pictures, Image.Image):
            return self._reconstruct_one(pictures)
        return [self._reconstruct_one(picture) for picture in pictures]

    def _reconstruct_one(self, picture: Image.Image) -> Image.Image:
        picture = to_rgb(picture)
        width, height = picture.size
        scale = (MAX_PIXELS / (width * height)) ** 0.5
        if scale < 1:
            smaller = picture.resize((max(1, int(width * scale)), max(1, int(height * scale))), Image.LANCZOS)
            return self._reconstruct_one(smaller).resize((width, height), Image.LANCZOS)
        image = pixels.from_pil(picture)[None]  # (1, 3, H, W)
        factor = self.config.factor
        padded = F.pad(image, (0, -width % factor, 0, -height % factor), mode="replicate")
        return pixels.to_pil(self.decode(self.encode(padded))[..., :height, :width])[0]

    # ---- files ----

    def save_pretrained(self, folder: str | Path, dtype: torch.dtype | None = None) -> None:
        """Write config.json and safetensors (shards under 9 MB) into the folder, made if missing, as `dtype` if any."""
        save_weights(folder, self.state_dict(), self.config.to_dict(), dtype)

    @classmethod
    def from_pretrained(
        cls, folder: str | Path, device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
    ) -> "VQGAN":
        """Read a folder written by `save_pretrained`, in eval mode; with float16 it computes in float32 all the same.

        Raises ValueError when files are missing or damaged, or hold another kind of model.
        """
        with torch.device("meta"):  # nothing is drawn at random only to be overwritten
            model = cls(TokenizerConfig.from_dict(read_config(folder)))
        load_into(model, read_weights(folder), folder, assign=True)
        return model.to(device, dtype).eval()

    def codes_hash(self) -> str:
        """Hex digest of what decides the codes (encoder and codebook): equal hashes read each other's codes.

        Fine-tuning the decoder alone leaves it as it is.
        """
        digest = hashlib.sha256(repr(self.config).encode())
        for name, tensor in self.state_dict().items():
            if name.startswith(("encoder.", "quant_conv.", "quantizer.")):
                digest.update(name.encode() + tensor.detach().float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]


def _networks(config: TokenizerConfig, blocks: int) -> VQModel:
    """Encoder and decoder of the configuration's widths, with so many residual blocks a level."""
    levels = len(config.widths)
    low = ("AttnDownEncoderBlock2D", "AttnUpDecoderBlock2D")
    plain = ("DownEncoderBlock2D", "UpDecoderBlock2D")
    lowest = low if config.low_attention else plain
    return VQModel(
        down_block_types=(plain[0],) * (levels - 1) + (lowest[0],),
        up_block_types=(lowest[1],) + (plain[1],) * (levels - 1),
        block_out_channels=config.widths,
        layers_per_block=blocks,
        latent_channels=config.latent_channels,
        vq_embed_dim=config.code_dim,
        num_vq_embeddings=1,  # its quantiser is not used
        norm_num_groups=config.norm_groups,
        mid_block_add_attention=config.middle_attention,
    )


def square(picture: Image.Image, side: int) -> Image.Image:
    """The central square of a picture, upright RGB at side x side pixels (Lanczos)."""
    picture = to_rgb(picture)
    width, height = picture.size
    edge = min(width, height)
    left, top = (width - edge) // 2, (height - edge) // 2
    # Cropped first: with resize(box=...) the filter would reach over the edge of the box.
    picture = picture.crop((left, top, left + edge, top + edge))
    return picture.resize((side, side), Image.LANCZOS)
