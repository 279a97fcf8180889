"""`python -m pgm_image convert`: a public weights file becomes a model folder of ours that loads by memory map."""

import argparse
from pathlib import Path
from typing import Any

import torch
from torch import nn

from pgm.arguments import whole_number
from pgm.foreign_weights import read_state_dict
from pgm.partition_transformer import PartitionTransformer
from pgm_image.conversion_card import write_card
from pgm_image.model_info import ModelInfo
from pgm_image.pipeline import PGMPipeline
from pgm_image.public_layout import identify, infer_config
from pgm_image.public_loading import check_tokenizer, fetch, fill, read_tokenizer
from pgm_image.public_models import PUBLIC_MODELS, PublicModel
from tokenizer.vqgan import VQGAN

MAX_SHARD = "2GB"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command."""
    parser.add_argument("--from", dest="source", required=True, type=Path, help="public file: .ckpt, .pth or .pt")
    parser.add_argument("--out", required=True, type=Path, help="folder to write")
    parser.add_argument("--tokenizer", type=Path, help="its VQGAN: a public file or a folder of ours")
    parser.add_argument("--half", action="store_true", help="store the transformer in half precision (float16)")
    parser.add_argument("--model", help=f"which model it is, if its shapes do not say: {', '.join(PUBLIC_MODELS)}")
    parser.add_argument("--grid", type=int, help="codes along each side, for a PGM of your own")
    parser.add_argument("--heads", type=int, help="attention heads, for a masked transformer of your own")


def run(args: argparse.Namespace) -> int:
    """Write model_index.json, transformer/, tokenizer/ and README.md; print the folder."""
    if args.model is not None and args.model not in PUBLIC_MODELS:
        raise ValueError(f"model must be one of {', '.join(PUBLIC_MODELS)}, got {args.model!r}")
    if args.tokenizer is not None and not args.tokenizer.exists():
        raise ValueError(f"tokenizer must be a file or a folder, got {str(args.tokenizer)!r}, which does not exist")
    for option in ("grid", "heads"):
        if getattr(args, option) is not None:
            whole_number(option, getattr(args, option), 1)
    state = read_state_dict(args.source)
    model = PUBLIC_MODELS[args.model] if args.model else identify(state)
    if model is None and args.tokenizer is None:
        raise ValueError(
            f"{args.source.name} has the shapes of no published model; give --tokenizer FILE, or --model NAME"
        )
    config = model.config if model else infer_config(state, args.grid, args.heads)
    transformer = fill(config, state, args.source.name)
    tokenizer = find_tokenizer(args.tokenizer, model, round(config.length**0.5))
    info = model.info() if model else own_info(args.out.resolve().name, transformer, tokenizer)
    check_tokenizer(tokenizer, info.codebook_size, info.grid, args.tokenizer or model.tokenizer.file)
    pipeline = PGMPipeline(transformer, tokenizer, info)
    pipeline.save_pretrained(args.out, torch.float16 if args.half else None, MAX_SHARD)
    write_card(args.out, info, args.source.name, args.half, model.note if model else "")
    print(args.out)
    return 0


def find_tokenizer(path: Path | None, model: PublicModel | None, side: int) -> VQGAN:
    """The tokenizer that was named, or the published one of a published model; `side` codes per side."""
    if path is None:
        _, path = fetch(model)
        return read_tokenizer(path, model.image_size)
    tokenizer = read_tokenizer(path, model.image_size if model else 256)
    if model is None and path.is_file():  # a public file does not say its resolution, the transformer's grid does
        tokenizer = read_tokenizer(path, side * tokenizer.config.factor)
    return tokenizer


def own_info(name: str, transformer: nn.Module, tokenizer: VQGAN) -> ModelInfo:
    """The index of a model that is not published: classes without names, plain settings."""
    config: Any = transformer.config
    side = round(config.length**0.5)
    return ModelInfo(
        name=name,
        architecture="pgm" if isinstance(transformer, PartitionTransformer) else "maskgit",
        title=f"{name}, {config.num_classes} classes, {side * tokenizer.config.factor} pixels",
        image_size=side * tokenizer.config.factor,
        grid=(side, side),
        codebook_size=config.mask_id,
        classes=tuple(f"class {i}" for i in range(config.num_classes)),
        recommended={"steps": min(32, config.length), "sampler": "halton", "guidance_scale": 2.0},
        parameters=sum(parameter.numel() for parameter in transformer.parameters()),
        licence="see its authors",
    )
