"""A corpus of made-up dictionary entries and tiny text models of every kind, random or fresh."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

from pgm.models import build
from pgm_text.export import info_of
from pgm_text.packing import read_manifest, write_token_shards
from pgm_text.pipeline import TextPipeline
from pgm_text.recipes import find_recipe
from pgm_text.tokenizer import Tokenizer, train_tokenizer

NOUNS = ("lantern", "harbour", "meadow", "violin", "copper", "raven", "ladder", "orchard")
GLOSSES = ("a kind of {}", "the place where a {} is kept", "a person who paints a {}", "a small {} made of wood")
ENTRIES = [f"{noun} (noun): {gloss.format(other)}" for noun in NOUNS for other in NOUNS for gloss in GLOSSES]
LENGTH = 40


@pytest.fixture(scope="session")
def tokenizer() -> Tokenizer:
    return train_tokenizer(ENTRIES, 320)


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, tokenizer) -> Path:
    """A corpus folder as `prepare` leaves it, small."""
    folder = tmp_path_factory.mktemp("corpus")
    tokenizer.save(folder)
    splits = {"train": ENTRIES[:224], "heldout": ENTRIES[224:]}
    write_token_shards(
        folder / "tokens", {k: tokenizer.encode_batch(v) for k, v in splits.items()}, tokenizer, length=LENGTH
    )
    (folder / "LICENCE-made-up.txt").write_text("made up\n")
    (folder / "manifest.json").write_text(
        '{"name": "made up", "licences": [{"name": "made up", "licence": "none", "notice": "LICENCE-made-up.txt"}]}'
    )
    return folder


def randomise(model: nn.Module, seed: int = 0) -> nn.Module:
    """Fill every parameter, also gates and heads that start at zero, so that logits spread and context matters."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            noise = torch.randn(parameter.shape, generator=generator)
            if parameter.ndim > 1:
                parameter.copy_(1.5 * noise / parameter.shape[-1] ** 0.5)
            else:
                parameter.copy_(0.2 * noise + (1.0 if name.endswith("weight") else 0.0))
    return model.eval()


@pytest.fixture(scope="session")
def text_model(corpus) -> Callable[..., nn.Module]:
    """text_model("pgm" | "mdlm" | "rmdm" | "scorer", random=True, **changes of its config) -> a tiny model."""

    def make(kind: str, random: bool = True, **changes: object) -> nn.Module:
        config = find_recipe(f"tiny-{kind}").model_config(read_manifest(corpus / "tokens"), 4 * (kind == "rmdm"))
        torch.manual_seed(0)
        model = build({**config, "width": 16, **changes})
        return randomise(model) if random else model.eval()

    return make


@pytest.fixture(scope="session")
def pipelines(corpus, text_model, tokenizer) -> dict[str, TextPipeline]:
    """Random tiny models by architecture; their texts are nonsense, but everything else is as it should be."""
    manifest = read_manifest(corpus / "tokens")
    models = {kind: text_model(kind) for kind in ("pgm", "mdlm", "rmdm")}
    return {
        kind: TextPipeline(model, tokenizer, info_of(model, manifest, kind, "random")) for kind, model in models.items()
    }
