"""Which architecture a state dict in the public key layout belongs to, read from its names and shapes."""

from collections.abc import Mapping

from torch import Tensor

from pgm.masked_transformer import MaskedTransformerConfig
from pgm.models import build_empty
from pgm.partition_transformer import PartitionTransformerConfig
from pgm_image.public_models import MASKED_SIZES, PUBLIC_MODELS, PublicModel

PARTITION_KEY, MASKED_KEY = "vocab_embed.embedding", "tok_emb.weight"


def identify(state: Mapping[str, Tensor]) -> PublicModel | None:
    """The published model that has exactly these keys and shapes, if there is one."""
    shapes = {key: value.shape for key, value in state.items()}
    for model in PUBLIC_MODELS.values():
        key = PARTITION_KEY if model.architecture == "pgm" else MASKED_KEY
        if key not in shapes:
            continue
        own = build_empty(model.config).state_dict()
        if shapes == {name: value.shape for name, value in own.items()}:
            return model
    return None


def infer_config(
    state: Mapping[str, Tensor], grid: int | None = None, heads: int | None = None
) -> PartitionTransformerConfig | MaskedTransformerConfig:
    """Sizes of a transformer trained with the published code.

    grid: codes along each side, which a PGM's weights do not show; heads: attention heads, which a masked transformer's
    do not show beyond the published sizes. Raises ValueError naming the option that is needed.
    """
    if PARTITION_KEY in state and "decoder.group_swap.base_embedding" in state:
        return _partition(state, grid)
    if MASKED_KEY in state and "pos_emb.weight" in state:
        return _masked(state, heads)
    raise ValueError(
        f"neither a PGM nor a masked transformer in the public layout; first key is {next(iter(state), None)!r}"
    )


def _partition(state: Mapping[str, Tensor], grid: int | None) -> PartitionTransformerConfig:
    if "cls_embed.embedding_table.weight" not in state or "rotary_emb.inv_freq" not in state:
        raise ValueError(
            "this PGM has no class table or no rotary table: it is not an image model in the public layout"
        )
    if grid is None:
        raise ValueError("the grid of codes cannot be told from a PGM's weights; give --model NAME or --grid SIDE")
    vocab_size, width = state[PARTITION_KEY].shape
    layers = _count(state, "decoder.layers.")
    if any(f"decoder.layers.{i}.attn_q.weight" not in state for i in range(layers)):
        raise ValueError("its decoder mixes self- and cross-attention, which the published image models do not")
    registers = state.get("reg_tokens.weight")
    return PartitionTransformerConfig(
        vocab_size=vocab_size,
        length=grid**2,
        width=width,
        heads=width // (2 * len(state["rotary_emb.inv_freq"])),
        encoder_layers=_count(state, "encoder.blocks."),
        decoder_layers=layers,
        mask_id=vocab_size - 2,
        bos_id=vocab_size - 1,
        registers=0 if registers is None else len(registers),
        num_classes=len(state["cls_embed.embedding_table.weight"]) - 1,
        query_processor="linear" if "decoder.group_swap.query_processor.weight" in state else "mlp4",
        mlp_ratio=state["encoder.blocks.0.mlp.0.weight"].shape[0] // width,
    )


def _masked(state: Mapping[str, Tensor], heads: int | None) -> MaskedTransformerConfig:
    rows, width = state[MASKED_KEY].shape
    layers = _count(state, "transformer.layers.")
    if heads is None:
        published = {(w, n): h for w, n, h in MASKED_SIZES.values()}
        if (width, layers) not in published:
            raise ValueError(
                f"the attention heads of a masked transformer of width {width} with {layers} layers cannot be told "
                "from its weights; give --model NAME or --heads COUNT"
            )
        heads = published[width, layers]
    patch = state["in_proj.weight"].shape[-1] if "in_proj.weight" in state else 1
    registers = state.get("reg_tokens.weight")
    return MaskedTransformerConfig(
        codebook_size=rows - 1,
        grid=round(len(state["pos_emb.weight"]) ** 0.5) * patch,
        width=width,
        layers=layers,
        heads=heads,
        num_classes=len(state["cls_emb.weight"]) - 1,
        registers=0 if registers is None else len(registers),
        patch=patch,
    )


def _count(state: Mapping[str, Tensor], prefix: str) -> int:
    return len({key[len(prefix) :].split(".")[0] for key in state if key.startswith(prefix)})
