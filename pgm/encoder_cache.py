"""What the encoder made of each code, kept between steps (as arXiv 2505.19089 does in masked transformers).

A code that was just found is encoded alone: it attends to the keys and values that older codes had when they were
encoded, and to those of its own step. What the decoder reads of older codes is kept likewise. Training let all known
codes see each other, so this is an approximation; encoding everything anew now and then bounds it.
"""

from torch import Tensor

from pgm.attention import attention, merge_heads
from pgm.partition_transformer import PartitionTransformer, Prepared
from pgm.prepared_layers import Embedded, cross_attention, normalise, project, self_attention, turn


class EncoderCache:
    """Keys and values of the encoder's blocks, of GroupSwap and of the decoder, for rows of equal length.

    Columns are clean tokens in the order of their arrival, registers and BOS in front.
    """

    def __init__(self, model: PartitionTransformer, prepared: Prepared, rows: int, columns: int):
        """Raises ValueError for a decoder that reads more of the encoder's outputs than keys and values."""
        config = model.config
        if prepared.queries is None or config.decoder_mode != "cross-only":
            raise ValueError(
                "encoder_refresh must be 1 unless decoder_mode is 'cross-only' and query_mode 'learn' or "
                f"'learn+freqs', got a model with {config.decoder_mode!r} and {config.query_mode!r}"
            )
        self.model = model
        sets = [1] * (config.encoder_layers - 1) + [1, config.decoder_layers]  # the first block's are in `Embedded`
        weight, size = model.vocab_embed.embedding, config.width // config.heads
        self._kept = [weight.new_zeros(rows, columns, 2 * count * config.heads, size) for count in sets]

    def encode(self, rows: slice, embedded: Embedded, start: int, stop: int, prepared: Prepared) -> None:
        """Encode columns start..stop-1, each of which sees all before `stop`; those before `start` stay as they are."""
        x, angles = embedded.hidden[rows, start:stop], tuple(part[rows, start:stop] for part in embedded.angles)
        heads, backend = self.model.config.heads, self.model.attention_backend
        for index, block in enumerate(self.model.encoder.blocks):
            folded = prepared.blocks[index]
            if index:
                projected = project(block, folded, x, angles)
                seen = self._keep(index - 1, rows, start, stop, projected[:, :, heads:])
            else:
                projected, seen = embedded.projected[rows, start:stop], embedded.projected[rows, :stop, heads:]
            x = self_attention(block, folded, x, projected, None, backend, seen)
        fetched = self.model.decoder.group_swap.hidden_to_key_value(x).unflatten(-1, (2 * heads, -1))
        turn(fetched[:, :, :heads], angles)
        self._keep(-2, rows, start, stop, fetched)
        self._keep(-1, rows, start, stop, self.model.keys_values(x, angles, prepared))

    def _keep(self, index: int, rows: slice, start: int, stop: int, new: Tensor) -> Tensor:
        """Write keys and values of columns start..stop-1; returns those of all columns before `stop`."""
        self._kept[index][rows, start:stop] = new
        return self._kept[index][rows, :stop]

    def decode(self, rows: slice, stop: int, positions: Tensor, prepared: Prepared) -> Tensor:
        """Logits (B, Q, V) at positions (B, Q), as `PartitionTransformer.decode`, given the columns before `stop`."""
        model, heads, backend = self.model, self.model.config.heads, self.model.attention_backend
        internal = positions + model.config.registers
        swap, decoder = (kept[rows, :stop].transpose(1, 2) for kept in self._kept[-2:])
        queries = prepared.queries[internal].transpose(1, 2)  # (B, H, Q, E)
        x = model.decoder.group_swap.output_linear(
            merge_heads(attention(queries, *swap.chunk(2, dim=1), backend=backend))
        )
        keys, values = (part.split(heads, dim=1) for part in decoder.chunk(2, dim=1))
        angles, blocks = prepared.angles(internal), prepared.blocks[model.config.encoder_layers :]
        for layer, folded, key, value in zip(model.decoder.layers, blocks, keys, values, strict=True):
            x = cross_attention(layer, folded, x, key, value, angles, None, backend)
        return model.output_layer.linear(normalise(x, *prepared.output))
