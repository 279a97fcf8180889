"""From logits to codes: temperature, top-k, top-p, and the draw itself by inverse CDF. Pure functions."""

import torch
from torch import Tensor


def temperatures(
    steps: int,
    temperature: float = 1.0,
    inverse_start: float = 1.0,
    inverse_end: float = 1.0,
    power: float = 1.0,
    warmup: int = 0,
) -> list[float]:
    """Temperature of each step; logits are divided by it, 0 means argmax.

    `temperature` alone is constant. The published samplers multiply logits by tau_i = linspace(inverse_start,
    inverse_end)[i] ** power, halved during the first `warmup` steps (flatter, not sharper); ours divide, so the
    result is temperature / tau_i.
    """
    ramp = torch.linspace(inverse_start, inverse_end, steps, dtype=torch.float64) ** power
    ramp[:warmup] *= 0.5
    return [temperature / tau for tau in ramp.tolist()]


def anneal(steps: int, start: float) -> list[float]:
    """Factors of the temperature from `start` at the first step linearly to 1 at the last.

    While little is known, a low temperature would make every position choose the commonest code on its own; once much
    is known, a high one breaks what stands.
    """
    return [start + (1 - start) * index / max(1, steps - 1) for index in range(steps)]


def suppress(logits: Tensor, ids: tuple[int, ...]) -> Tensor:
    """Logits (..., V) with the columns `ids` at minus infinity, in float32."""
    logits = logits.float()
    if ids:
        logits = logits.index_fill(-1, torch.tensor(ids, device=logits.device), -torch.inf)
    return logits


def keep_top_k(logits: Tensor, k: int | None) -> Tensor:
    """Keep exactly the k largest of the last axis (ties: the lower id), the rest at minus infinity; None keeps all."""
    if k is None or k >= logits.shape[-1]:
        return logits
    rows = logits.reshape(-1, logits.shape[-1])  # (R, V)
    least = rows.topk(k).values[:, -1:]
    return _keep_largest(rows, least, torch.full_like(least, k, dtype=torch.int64)).view(logits.shape)


def keep_top_p(logits: Tensor, p: float | None) -> Tensor:
    """Nucleus filter (arXiv 1904.09751): drop an entry when the mass of the larger ones already exceeds p."""
    if p is None or p >= 1:
        return logits
    rows = logits.reshape(-1, logits.shape[-1])  # (R, V)
    return _keep_largest(rows, *_nuclei(rows, p)).view(logits.shape)


def _keep_largest(rows: Tensor, least: Tensor, count: Tensor) -> Tensor:
    """Logits (R, V) with all but the `count` (R, 1) largest of a row at minus infinity, `least` (R, 1) the last kept.

    Of those equal to it the lower ids go first.
    """
    kept = rows >= least
    split = (kept.sum(-1) > count[:, 0]).nonzero()[:, 0]  # rows that keep some of equal entries
    if len(split):
        row, last = rows[split], least[split]
        above, equal = row > last, row == last
        kept[split] = above | (equal & (equal.cumsum(-1) <= count[split] - above.sum(-1, keepdim=True)))
    return rows.masked_fill(~kept, -torch.inf)


def _nuclei(rows: Tensor, p: float) -> tuple[Tensor, Tensor]:
    """Smallest entry and size, both (R, 1), of the nucleus of each row of logits (R, V).

    Sorting whole vocabularies would take most of a text sampler's time on a CPU, and nuclei are mostly small: so the 16
    largest entries first, and 64 times as many wherever those do not hold the mass. A GPU sorts faster than it would
    wait to hear which rows are left.
    """
    size = rows.shape[-1]
    largest = rows.amax(-1, keepdim=True)
    total = (rows - largest).exp_().sum(-1, keepdim=True)
    least, count = torch.empty_like(largest), torch.empty_like(largest, dtype=torch.int64)
    left = torch.arange(len(rows), device=rows.device)
    k = 16 if rows.device.type == "cpu" else size
    while len(left):
        k = min(k, size)
        top = rows[left].topk(k).values
        mass = (top - largest[left]).exp_() / total[left]
        found = ((mass.cumsum(-1) - mass) <= p).sum(-1, keepdim=True)  # 1 at least: nothing precedes the largest
        least[left], count[left] = top.gather(-1, found - 1), found
        left, k = (left[found[:, 0] == k] if k < size else left[:0]), 64 * k
    return least, count


def draw(probabilities: Tensor, uniforms: Tensor) -> Tensor:
    """Inverse CDF: probabilities (B, Q, V) float32, uniforms (B, Q) in [0, 1) -> codes (B, Q) int64.

    Never returns a code of zero probability.
    """
    cdf = probabilities.cumsum(-1)  # (B, Q, V)
    total = cdf[..., -1:]
    # Rounding may bring u * total up to total itself, behind the last code; step back by one representable number.
    target = torch.minimum(uniforms[..., None].to(cdf.dtype) * total, torch.nextafter(total, torch.zeros_like(total)))
    return torch.searchsorted(cdf, target, right=True).squeeze(-1)


def choose(
    logits: Tensor,
    uniforms: Tensor,
    temperature: float | Tensor = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Draw a code for every query.

    logits: (B, Q, V) float32, -inf where forbidden; uniforms: (B, Q); temperature: a number, or positive ones for each
    row, (B, 1, 1). Returns codes (B, Q) int64 and their
    log-probabilities (B, Q) float32 under the distribution drawn from (with temperature 0: under temperature 1).
    """
    if not isinstance(temperature, Tensor) and temperature == 0:
        codes = logits.argmax(-1)
        return codes, logits.log_softmax(-1).gather(-1, codes[..., None]).squeeze(-1)
    # The largest logit goes to 0 first, so that neither a tiny temperature nor huge logits overflow.
    scaled = (logits - logits.amax(-1, keepdim=True)) / temperature
    log_probabilities = keep_top_p(keep_top_k(scaled, top_k), top_p).log_softmax(-1)
    codes = draw(log_probabilities.exp(), uniforms)
    return codes, log_probabilities.gather(-1, codes[..., None]).squeeze(-1)
