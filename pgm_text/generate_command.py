"""`python -m pgm_text generate`: texts from the shell."""

from __future__ import annotations

import argparse
import json
import sys

from pgm_text.api import load
from pgm_text.prompt import BLANK_TOKENS
from pgm_text.registry import DEFAULT_MODEL, model_info, tokenizer_of
from pgm_text.request import SAMPLERS, make_request

_SETTINGS = (
    "num_texts", "length", "steps", "sampler", "temperature", "top_p", "top_k", "guidance_scale", "refine_rounds",
    "seed", "blank_tokens",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Arguments of the command; what is left out is the model's recommended setting."""
    parser.add_argument(
        "prompt", nargs="?", help='a beginning, or a text with blanks: "____ (noun): a person who ____ boats"'
    )
    parser.add_argument(
        "--model", default=DEFAULT_MODEL, help="name, folder, checkpoint file or hub id (default: %(default)s)"
    )
    parser.add_argument("--num-texts", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0, help="seed of the first text, the next has seed + 1")
    parser.add_argument("--length", type=int, help="most tokens of a text, the prompt included")
    parser.add_argument("--steps", type=int, help="forward passes")
    parser.add_argument("--sampler", help=f"one of {', '.join(SAMPLERS)}")
    parser.add_argument("--temperature", type=float, help="0 = always the likeliest token")
    parser.add_argument("--top-p", type=float)
    parser.add_argument(
        "--refine-rounds", type=int, help="how often unlikely tokens are taken back and drawn anew at the end"
    )
    parser.add_argument("--top-k", type=int)
    parser.add_argument("--guidance", type=float, dest="guidance_scale", help="how strongly to follow z (RMDM)")
    parser.add_argument("--blank-tokens", type=int, help=f"tokens of one blank (default: {BLANK_TOKENS})")
    parser.add_argument("--same-z", action="store_true", help="all texts from the z of the first seed (RMDM)")
    parser.add_argument("--device", help="cpu, cuda, mps (default: the best there is)")
    parser.add_argument("--dtype", help="float32, bfloat16 or float16")
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--json", action="store_true", help="print one line of JSON per text")


def run(args: argparse.Namespace) -> int:
    """Generate and print, one text a line."""
    settings = {name: getattr(args, name) for name in _SETTINGS}
    info = model_info(args.model)
    request = make_request(info, tokenizer_of(args.model), args.prompt, **settings)
    pipeline = load(args.model, args.device, args.dtype)
    if args.same_z:
        settings["z"] = pipeline.draw_latents(request.seeds[:1])[0]
    texts = pipeline.generate(args.prompt, batch_size=args.batch_size, progress=sys.stderr.isatty(), **settings)
    for seed, text in zip(request.seeds, texts, strict=True):
        print(json.dumps({"model": info.name, "seed": seed, "text": text}, ensure_ascii=False) if args.json else text)
    return 0
