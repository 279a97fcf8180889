"""Multiply-adds of a generation from config and schedule (the cost model of arXiv 2505.18883, section 5)."""

from pgm.masked_transformer import MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformerConfig
from pgm.sampling import SamplingConfig
from pgm.schedules import step_counts

Config = PartitionTransformerConfig | MaskedTransformerConfig


def step_operations(config: Config, known: int, queries: int) -> int:
    """Multiply-adds of one forward pass of one picture with `known` codes clean and `queries` asked for.

    adaLN projections are left out: they depend on the condition only and are computed once per generation.
    """
    width = config.width
    if isinstance(config, MaskedTransformerConfig):
        rows = config.length + config.registers
        hidden = -(-int(8 * width / 3) // 256) * 256
        layer = rows * (4 * width**2 + 3 * width * hidden) + 2 * rows**2 * width
        return config.layers * layer + queries * width * (config.codebook_size + 1)
    clean = known + 1 + config.registers - config.registers // 2  # BOS and the register of group 0
    ratio = config.mlp_ratio
    encoder = (4 + 2 * ratio) * clean * width**2 + 2 * clean**2 * width
    swap = 2 * clean * width**2 + queries * width**2 + 2 * queries * clean * width  # queries: the output projection
    decoder = (2 + 2 * ratio) * queries * width**2 + 2 * clean * width**2 + 2 * queries * clean * width
    head = queries * width * config.vocab_size
    return config.encoder_layers * encoder + swap + config.decoder_layers * decoder + head


def generation_operations(config: Config, sampling: SamplingConfig, length: int) -> int:
    """Multiply-adds of one picture: all steps, guidance passes included (none at steps of weight 0)."""
    rule = "confidence" if sampling.order == "confidence" else "ordered"
    counts = step_counts(sampling.schedule, length, sampling.steps, rule)
    known = total = 0
    for index, count in enumerate(counts):
        queries = length - known if sampling.order == "confidence" else count
        ramp = sampling.guidance_schedule == "constant" or index > 0 or len(counts) == 1
        passes = 2 if sampling.guidance_scale and ramp else 1
        total += passes * step_operations(config, known, queries)
        known += count
    return total
