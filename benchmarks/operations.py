"""Multiply-adds of a generation, from config and schedule, and of training (arXiv 2505.18883, section 5).

Modulations (adaLN projections) are left out: they depend on the condition alone and cost 0.2 % of a pass in training.
"""

from pgm.diffusion_transformer import DiffusionTransformerConfig
from pgm.masked_transformer import MaskedTransformerConfig
from pgm.partition_transformer import PartitionTransformerConfig
from pgm.sampling import SamplingConfig
from pgm.schedules import step_counts

Config = PartitionTransformerConfig | MaskedTransformerConfig | DiffusionTransformerConfig


def step_operations(config: Config, known: int, queries: int) -> int:
    """Multiply-adds of one forward pass of one sample with `known` codes clean and `queries` asked for.

    Modulations of a partition transformer's generation are computed once, before its first step.
    """
    width = config.width
    if isinstance(config, MaskedTransformerConfig):
        rows = config.length + config.registers
        hidden = -(-int(8 * width / 3) // 256) * 256
        layer = rows * (4 * width**2 + 3 * width * hidden) + 2 * rows**2 * width
        return config.layers * layer + queries * width * (config.codebook_size + 1)
    if isinstance(config, DiffusionTransformerConfig):
        layers = config.layers * _self_attention_block(config, config.length + 1)  # BOS
        return layers + queries * width * config.vocab_size
    clean = known + 1 + config.registers - config.registers // 2  # BOS and the register of group 0
    return _partition_pass(config, clean, queries)


def _self_attention_block(config: PartitionTransformerConfig | DiffusionTransformerConfig, rows: int) -> int:
    return (4 + 2 * config.mlp_ratio) * rows * config.width**2 + 2 * rows**2 * config.width


def _partition_pass(config: PartitionTransformerConfig, clean: int, queries: int) -> int:
    """clean: all rows of the encoder; queries: all rows of the decoder; each attends to all clean ones."""
    width, ratio = config.width, config.mlp_ratio
    encoder = _self_attention_block(config, clean)
    swap = 2 * clean * width**2 + queries * width**2 + 2 * queries * clean * width  # queries: the output projection
    decoder = (2 + 2 * ratio) * queries * width**2 + 2 * clean * width**2 + 2 * queries * clean * width
    head = queries * width * config.vocab_size
    return config.encoder_layers * encoder + swap + config.decoder_layers * decoder + head


def training_operations(config: Config) -> int:
    """Multiply-adds of training on one sample: a forward pass over all positions, and twice that backward.

    Attention is counted between all pairs of positions, those that a mask hides included, as plain code computes them.
    """
    if isinstance(config, PartitionTransformerConfig):
        content = config.length + 1  # BOS
        return 3 * _partition_pass(config, content + config.registers, content)
    return 3 * step_operations(config, 0, config.length)


def generation_operations(config: Config, sampling: SamplingConfig, length: int, given: int = 0) -> int:
    """Multiply-adds of one sample: all steps, guidance passes included (none at steps of weight 0).

    length: codes to generate, beside `given` ones that are known from the start.
    """
    rule = "confidence" if sampling.order == "confidence" else "ordered"
    schedule = sampling.schedule
    if schedule == "even":
        schedule, rule = "linear", "even" if rule == "ordered" else rule
    counts = step_counts(schedule, length, sampling.steps, rule)
    known = total = 0
    for index, count in enumerate(counts):
        queries = length - known if sampling.order == "confidence" else count
        ramp = sampling.guidance_schedule == "constant" or index > 0 or len(counts) == 1
        passes = 2 if sampling.guidance_scale and ramp else 1
        total += passes * step_operations(config, given + known, queries)
        known += count
    return total
