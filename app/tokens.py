"""What the tokenizer sees: a picture as a grid of codes, what comes back from them, and what a code looks like."""

import secrets
from collections.abc import Sequence
from typing import Any

import torch
from PIL import Image
from torch import Tensor

from app.models import ImagePipeline
from app.reveal import preview
from tokenizer.evaluate import psnr
from tokenizer.pixels import from_pil
from tokenizer.vqgan import square

SIMILAR = 8  # entries offered beside a code
SWATCH = 3  # cells along each side of the patch that shows an entry; the middle one is cut out
SAME = 98.5  # dB; beyond it two 8-bit pictures are the same


@torch.no_grad()
def read_tokens(
    pipeline: ImagePipeline, picture: Image.Image, title: str, chosen: Sequence[int] = ()
) -> dict[str, Any]:
    """Value of the token viewer for a picture of any size; its central square is what the tokenizer gets.

    chosen: the codes a model had picked for this picture, to be compared with those the tokenizer reads back.
    """
    info = pipeline.info
    original = square(picture, info.image_size)
    codes = pipeline.tokenizer.encode(from_pil(original)[None]).cpu()  # (1, h, w)
    flat = codes.flatten().tolist()
    palette = entry_colours(pipeline.tokenizer.quantizer.codebook)
    return {
        "run": secrets.token_hex(8),
        "title": title,
        "model": info.name,
        "grid": list(codes.shape[1:]),
        "size": [original.width, original.height],
        "codebook": info.codebook_size,
        "codes": flat,
        "original": preview(original, True),
        "agreeing": sum(a == b for a, b in zip(chosen, flat, strict=True)) if chosen else None,
        "palette": {str(code): palette[code] for code in set(flat)},
        **rebuilt(pipeline, codes, original),
    }


@torch.no_grad()
def rebuilt(pipeline: ImagePipeline, codes: Tensor, original: Image.Image) -> dict[str, Any]:
    """Decoded picture of codes (1, h, w) and its PSNR in dB against the original, None when they are the same."""
    [picture] = pipeline.tokenizer.decode_images(codes)
    one, other = ((from_pil(image)[None].movedim(1, -1) + 1) * 127.5 for image in (picture, original))
    decibels = psnr(one.round(), other.round()).item()
    return {"rebuilt": preview(picture, True), "psnr": None if decibels > SAME else round(decibels, 2)}


@torch.no_grad()
def swapped(pipeline: ImagePipeline, codes: Sequence[Any], original: Image.Image) -> dict[str, Any]:
    """What `rebuilt` returns for codes as a browser sends them, row by row. ValueError when they are no such grid."""
    info = pipeline.info
    whole = all(
        isinstance(code, int) and not isinstance(code, bool) and 0 <= code < info.codebook_size for code in codes
    )
    if len(codes) != info.length or not whole:
        raise ValueError(f"Codes must be {info.length} whole numbers from 0 to {info.codebook_size - 1}.")
    return rebuilt(pipeline, torch.tensor(list(codes)).reshape(1, *info.grid), original)


@torch.no_grad()
def similar(pipeline: ImagePipeline, code: Any) -> dict[str, Any]:
    """The entries of the codebook nearest to `code`, the code itself first: {code, entries: [{code, swatch, colour}]}.

    A swatch is the middle of a patch that holds nothing but this entry; in a picture its neighbours change its look.
    """
    size = pipeline.info.codebook_size
    if not isinstance(code, int) or isinstance(code, bool) or not 0 <= code < size:
        raise ValueError(f"A code must be a whole number from 0 to {size - 1}, not {str(code)[:20]}.")
    codebook = pipeline.tokenizer.quantizer.codebook
    rows = codebook.float()  # (V, D)
    distance = (rows - rows[code]).square().sum(-1)
    distance[code] = -1  # itself first, even where two entries are equal
    nearest = distance.argsort()[: SIMILAR + 1].cpu()
    patches = pipeline.tokenizer.decode_images(nearest[:, None, None].expand(-1, SWATCH, SWATCH))
    cell = patches[0].width // SWATCH
    middle = (cell * (SWATCH // 2), cell * (SWATCH // 2), cell * (SWATCH // 2 + 1), cell * (SWATCH // 2 + 1))
    palette = entry_colours(codebook)
    entries = [
        {"code": one, "swatch": preview(patch.crop(middle), True), "colour": palette[one]}
        for one, patch in zip(nearest.tolist(), patches, strict=True)
    ]
    return {"code": code, "entries": entries}


def entry_colours(codebook: Tensor) -> list[str]:
    """A CSS colour for each row of a codebook (V, D): similar entries have similar colours.

    The first three principal directions become lightness and the two colour axes of OKLab, each by rank, so that the
    whole range is used.
    """
    rows = codebook.detach().float().cpu()
    rows = rows - rows.mean(0)
    directions = torch.linalg.svd(rows.T @ rows)[0][:, :3]  # (D, up to 3)
    ranks = (rows @ directions).argsort(0).argsort(0) / max(len(rows) - 1, 1)  # (V, up to 3) in [0, 1]
    ranks = torch.cat([ranks, torch.full((len(rows), 3 - ranks.shape[1]), 0.5)], 1)
    lightness, first, second = ranks.unbind(1)
    return [
        f"oklab({light:.3f} {a:.3f} {b:.3f})"
        for light, a, b in zip(
            (0.45 + 0.45 * lightness).tolist(),
            (0.3 * first - 0.15).tolist(),
            (0.3 * second - 0.15).tolist(),
            strict=True,
        )
    ]
