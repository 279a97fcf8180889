"""Command line: python -m tokenizer train | average | encode | reconstruct | convert."""

import argparse
import sys
from dataclasses import fields
from pathlib import Path

from tokenizer.config import DISTANCES, TokenizerConfig
from tokenizer.train_config import TrainConfig

MODEL_FLAGS = ("image_size", "channels", "blocks", "norm_groups", "latent_channels", "codebook_size", "code_dim")


def parser() -> argparse.ArgumentParser:
    """All commands and their options."""
    root = argparse.ArgumentParser(
        prog="python -m tokenizer",
        description="Images <-> grids of codes with a VQGAN: train one, encode data, look at reconstructions, convert.",
    )
    commands = root.add_subparsers(dest="command", required=True, metavar="command")

    train = commands.add_parser(
        "train",
        help="train a VQGAN on image shards or a folder of pictures by class",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
        description="Train a VQGAN. The run's folder gets metrics.jsonl, sheets/ (original over reconstruction), "
        "checkpoint.pt and export/; calling the same command again continues after an interruption. "
        "Several GPUs: accelerate launch -m tokenizer train ...",
    )
    train.add_argument("data", help="folder of image shards (manifest.json), or one subfolder of pictures per class")
    train.add_argument("run", help="folder of this run")
    train.add_argument("--init", metavar="FOLDER", help="start from a trained tokenizer (fresh optimiser)")
    train.add_argument(
        "--drawn",
        metavar="FOLDER",
        help="code grids that a model drew (`python -m pgm_image draw-codes`): the adversarial term judges their "
        "pictures too, so the decoder learns to make good ones of imperfect codes; with --freeze-encoder --gan-start",
    )
    train.add_argument(
        "--decoder-blocks",
        type=int,
        help="residual blocks per decoder level (default: as the encoder's, or those of --init; more of those begin as "
        "the identity)",
    )
    _add_model_flags(train.add_argument_group("model (not with --init)"))
    _add_train_flags(train.add_argument_group("training"))
    train.add_argument("--threads", type=int, help="CPU threads (torch's own choice if not given)")
    train.set_defaults(action=run_train)

    average = commands.add_parser(
        "average",
        help="average decoders of the same codes, weight by weight",
        description="Between a decoder and the one that further training made of it lies one that has most of both.",
    )
    average.add_argument("tokenizers", nargs="+", help="tokenizer folders, each trained from the one before")
    average.add_argument("--shares", type=float, nargs="+", help="of each in the average (default: equal)")
    average.add_argument("--out", required=True, help="folder to write")
    average.set_defaults(action=run_average)

    encode = commands.add_parser(
        "encode",
        help="encode pictures into code shards",
        description="Encode every split of image shards, class folders, webdataset tars or a Hugging Face data set. "
        "Several GPUs: accelerate launch -m tokenizer encode ...",
    )
    encode.add_argument("tokenizer", help="folder of a trained tokenizer")
    encode.add_argument(
        "data",
        help="folder of image shards, of one subfolder of pictures per class, or of webdataset tars (or a pattern of "
        "tars in quotes); a Hugging Face data set 'owner/name' or folder",
    )
    encode.add_argument("codes", help="folder for the code shards; an interrupted run continues")
    encode.add_argument("--name", help="name of the tokenizer in the manifest (default: its folder's)")
    encode.add_argument("--batch-size", type=int, default=64, help="images at a time (default: 64)")
    encode.add_argument(
        "--crop",
        choices=("square", "imagenet"),
        default="square",
        help="central square with Lanczos (default), or short side resized bilinearly and the centre, as published",
    )
    encode.add_argument(
        "--flip", action="store_true", help="training pictures also mirrored (the published recipe does not)"
    )
    encode.add_argument(
        "--moved-copies",
        type=int,
        default=0,
        metavar="N",
        help="of each training picture, moved by a few pixels: their codes are others, so that small data lasts longer",
    )
    encode.add_argument("--moved-by", type=int, default=3, help="most pixels each way (default: 3)")
    encode.add_argument("--classes", metavar="FILE", help="names of the classes in order: JSON, or one a line")
    encode.add_argument("--decoders", type=int, default=4, help="threads per process that decode pictures (default: 4)")
    encode.add_argument("--threads", type=int, help="CPU threads")
    encode.add_argument("--device", help="cpu, cuda or mps (default: the best there is, one per process)")
    encode.set_defaults(action=run_encode)

    reconstruct = commands.add_parser(
        "reconstruct", help="send pictures through the codes and back, as PNG files of the same size"
    )
    reconstruct.add_argument("tokenizer", help="folder of a trained tokenizer")
    reconstruct.add_argument("pictures", nargs="+", help="picture files")
    reconstruct.add_argument("--out", default=".", help="folder for NAME-reconstructed.png (default: here)")
    reconstruct.add_argument("--device", default="cpu")
    reconstruct.set_defaults(action=run_reconstruct)

    convert = commands.add_parser("convert", help="convert a LlamaGen VQ or taming VQGAN checkpoint to our layout")
    convert.add_argument("checkpoint", help=".pt, .ckpt or .safetensors file")
    convert.add_argument("out", help="folder for config.json and safetensors")
    convert.add_argument("--image-size", type=int, default=256, help="training image size in pixels (default: 256)")
    convert.set_defaults(action=run_convert)
    return root


def _add_model_flags(group: argparse._ArgumentGroup) -> None:
    defaults = TokenizerConfig()
    for name in MODEL_FLAGS:
        group.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(defaults, name), help="integer")
    group.add_argument("--multipliers", type=int, nargs="+", default=list(defaults.multipliers), help="width per level")
    group.add_argument("--distance", choices=DISTANCES, default=defaults.distance, help="how codes are compared")
    group.add_argument("--low-attention", action="store_true", help="attention at the lowest resolution")
    group.add_argument("--middle-attention", action="store_true", help="attention in the middle")


def _add_train_flags(group: argparse._ArgumentGroup) -> None:
    for field in fields(TrainConfig):
        flag, text = f"--{field.name.replace('_', '-')}", field.metadata["help"]
        if field.type is bool:
            group.add_argument(flag, action="store_true", help=text)
        else:
            kind = next(k for k in (int, float, str) if k in (field.type, *getattr(field.type, "__args__", ())))
            group.add_argument(flag, type=kind, default=field.default, help=text)


def run_train(arguments: argparse.Namespace) -> None:
    """`train`: read the data, train, print where the result lies."""
    import torch

    from tokenizer.growth import with_decoder_blocks
    from tokenizer.image_folder import read_split
    from tokenizer.train import Trainer
    from tokenizer.vqgan import VQGAN

    config = TrainConfig(**{field.name: getattr(arguments, field.name) for field in fields(TrainConfig)})
    if arguments.threads is not None:
        torch.set_num_threads(positive("threads", arguments.threads))
    weights = drawn = None
    if arguments.drawn is not None and arguments.init is None:
        raise ValueError("drawn codes are of a trained tokenizer's codebook: give it with init as well")
    if arguments.init is None:
        names = (*MODEL_FLAGS, "multipliers", "distance", "low_attention", "middle_attention")
        given = {name: getattr(arguments, name) for name in names}
        model_config = TokenizerConfig(**given, decoder_blocks=arguments.decoder_blocks)
    else:
        weights = VQGAN.from_pretrained(arguments.init)
        drawn = None if arguments.drawn is None else drawn_grids(arguments.drawn, weights.codes_hash())
        if arguments.decoder_blocks is not None:
            weights = with_decoder_blocks(weights, arguments.decoder_blocks, config.seed)
        model_config = weights.config
    train = read_split(arguments.data, "train", model_config.image_size)
    held_out = read_split(arguments.data, "heldout", model_config.image_size)
    trainer = Trainer(config, model_config, train, held_out, arguments.run, weights, drawn)
    if weights is not None and trainer.step == 0:
        print(f"starting from {arguments.init} with a fresh optimiser")
    if trainer.step:
        print(f"continuing at step {trainer.step}")
    print(f"computing in {trainer.config.precision}")
    export = trainer.run()
    print(f"exported to {export}" if export else f"stopped at step {trainer.step}; the same command continues")


def drawn_grids(folder: str, codes_hash: str):
    """Grids (N, h, w) drawn with the codebook of that hash; ValueError for another's."""
    from tokenizer.shards import read_grids, read_manifest

    found = read_manifest(folder).get("tokenizer", {}).get("codes_hash")
    if found != codes_hash:
        raise ValueError(f"drawn: the codes in {folder!r} are of another tokenizer ({found}, not {codes_hash})")
    return read_grids(folder, "drawn")


def run_average(arguments: argparse.Namespace) -> None:
    """`average`: one tokenizer from several whose encoder and codebook are the same."""
    from pgm.averaging import average
    from tokenizer.vqgan import VQGAN

    models = [VQGAN.from_pretrained(folder) for folder in arguments.tokenizers]
    hashes = {model.codes_hash() for model in models}
    if len(hashes) > 1:
        raise ValueError(f"tokenizers to average must make the same codes, got {len(hashes)} kinds of codes")
    average(models, arguments.shares or [1 / len(models)] * len(models)).save_pretrained(arguments.out)
    print(arguments.out)


def run_encode(arguments: argparse.Namespace) -> None:
    """`encode`: write code shards and their manifest."""
    import torch

    from pgm.processes import process_state
    from tokenizer.encode import Preparation, encode_folder, read_class_names
    from tokenizer.vqgan import VQGAN

    if arguments.threads is not None:
        torch.set_num_threads(positive("threads", arguments.threads))
    chosen = process_state().device if arguments.device is None else device(arguments.device)
    model = VQGAN.from_pretrained(arguments.tokenizer, chosen)
    name = arguments.name or Path(arguments.tokenizer).resolve().name
    encode_folder(
        model,
        arguments.data,
        arguments.codes,
        name,
        positive("batch-size", arguments.batch_size),
        preparation=Preparation(arguments.crop, arguments.flip, arguments.moved_copies, arguments.moved_by),
        class_names=read_class_names(arguments.classes) if arguments.classes else None,
        threads=positive("decoders", arguments.decoders),
    )


def run_reconstruct(arguments: argparse.Namespace) -> None:
    """`reconstruct`: one PNG per picture."""
    from tokenizer.image_files import open_picture
    from tokenizer.vqgan import VQGAN

    pictures = [(Path(path).stem, open_picture(path)) for path in arguments.pictures]
    model = VQGAN.from_pretrained(arguments.tokenizer, device(arguments.device))
    out = Path(arguments.out)
    out.mkdir(parents=True, exist_ok=True)
    for stem, picture in pictures:
        path = out / f"{stem}-reconstructed.png"
        model.reconstruct(picture).save(path)
        print(path)


def run_convert(arguments: argparse.Namespace) -> None:
    """`convert`: a public checkpoint into a folder of ours."""
    from tokenizer.convert import convert_file

    model = convert_file(arguments.checkpoint, positive("image-size", arguments.image_size))
    model.save_pretrained(arguments.out)
    print(f"{arguments.out}: {sum(p.numel() for p in model.parameters()):,} parameters, {model.config}")


def positive(name: str, value: int) -> int:
    """The value, or ValueError when it is below 1."""
    if value < 1:
        raise ValueError(f"{name} must be >= 1, got {value}")
    return value


def device(name: str):
    """A torch device that exists here, or ValueError."""
    import torch

    try:
        chosen = torch.device(name)
        torch.empty(0, device=chosen)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(f"device {name!r} is not available here: {str(error).splitlines()[0]}") from error
    return chosen


def main(argv: list[str] | None = None) -> int:
    """Exit status: 0 done, 2 bad input (one sentence on stderr)."""
    arguments = parser().parse_args(argv)
    try:
        arguments.action(arguments)
    except (ValueError, ModuleNotFoundError, FileNotFoundError, FloatingPointError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
