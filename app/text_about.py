"""What the About tab says of the text models: how they write, what they learned from, and the papers they follow."""

from app.text_models import TextModels
from pgm_text.model_info import TextModelInfo

WORDS = """
## Text

The Text tab fills tokens (words and pieces of words) instead of codes. **PGM** computes only on tokens it knows or is
about to fill; **MDLM**, a masked transformer, runs every position at every step; **RMDM** first draws a vector *z*,
what the text is about, and then writes with z held, so that words of one step agree better with each other.

- Simple and effective masked diffusion language models (MDLM) — [arXiv 2406.07524](https://arxiv.org/abs/2406.07524)
- A masked diffusion model guided by one global text representation (RMDM) — [arXiv 2609.12382](https://arxiv.org/abs/2609.12382)

What you write and what comes out is kept in memory only while the tab is open.
"""


def text_section(texts: TextModels) -> str:
    """Markdown: the three kinds of model, those that are here with their sources, or why there is none."""
    if texts.missing:
        return f"{WORDS}\n{texts.missing}\n"
    infos = [texts.info(name) for name in texts.names()]
    rows = [f"| {info.title} | {_described(info)} |" for info in infos]
    sources = {credit.get("name", ""): credit.get("licence", "") for info in infos for credit in info.credits}
    learned = "; ".join(f"{name} ({licence})" for name, licence in sources.items() if name)
    table = "\n".join(["| Model | |", "|---|---|", *rows])
    return f"{WORDS}\n{table}\n" + (f"\nThey learned from {learned}.\n" if learned else "")


def _described(info: TextModelInfo) -> str:
    size = f"{info.parameters / 1e6:.1f} M parameters, " if info.parameters else ""
    return f"{size}{info.vocab_size:,} tokens in its vocabulary, texts of up to {info.length:,} tokens"
