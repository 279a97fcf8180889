"""Files of public models: found in a folder, in the hub's cache or on the hub, and turned into networks as they are.

Places in their order: the folder given as `checkpoints`, or else named by the environment variable PGM_CHECKPOINTS
(files lie in it directly or as user/repository/file); the cache of huggingface_hub; the hub (HF_ENDPOINT names a
mirror). With HF_HUB_OFFLINE the hub is not asked. Nothing is asked over the network for files that are here.
"""

import os
import queue
import threading
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from pgm.foreign_weights import read_state_dict
from pgm.models import TIED, build_empty
from pgm.weights import load_into
from pgm_image.public_models import PublicModel
from tokenizer.convert import convert_file
from tokenizer.vqgan import VQGAN

FOLDER_VARIABLE = "PGM_CHECKPOINTS"
ANSWER_SECONDS = 5.0  # how long the hub may take to show that it can be reached

Wanted = tuple[str, str]  # repository, file


def load_public(
    model: PublicModel,
    device: torch.device | str = "cpu",
    dtype: torch.dtype = torch.float32,
    checkpoints: str | Path | None = None,
    **download: Any,
) -> tuple[nn.Module, VQGAN]:
    """Transformer and tokenizer in eval mode, straight from the public files, downloaded on first use with progress.

    download: `revision` (of the transformer's repository), `cache_dir`, `local_files_only` and `token`, as in
    huggingface_hub. Raises ValueError in one sentence that names the file: not to be had, damaged, unsafe, or another
    architecture.
    """
    transformer_file, tokenizer_file = fetch(model, checkpoints, **download)
    transformer = fill(model.config, read_state_dict(transformer_file), transformer_file)
    tokenizer = read_tokenizer(tokenizer_file, model.image_size)
    check_tokenizer(tokenizer, model.codebook_size, model.grid, tokenizer_file)
    return transformer.to(device, dtype).eval(), tokenizer.to(device)


def fill(config: Any, state: dict[str, Tensor], source: str | Path) -> nn.Module:
    """A network of a config with the tensors of `state` themselves, mapped as they are; raises as `load_into`."""
    network = build_empty(config)
    load_into(network, state, source, TIED, assign=True)
    return network.eval()


def read_tokenizer(path: Path, image_size: int) -> VQGAN:
    """A VQGAN from a public file or from a folder of ours."""
    return VQGAN.from_pretrained(path) if path.is_dir() else convert_file(path, image_size)


def check_tokenizer(tokenizer: VQGAN, codebook_size: int, grid: tuple[int, int], source: str | Path) -> None:
    """ValueError unless the tokenizer can decode what the transformer generates."""
    config = tokenizer.config
    if config.codebook_size != codebook_size or config.grid != grid:
        raise ValueError(
            f"tokenizer {source} has {config.codebook_size} codes on a grid of {config.grid[0]}x{config.grid[1]} at "
            f"{config.image_size} pixels, but the transformer generates {codebook_size} codes on {grid[0]}x{grid[1]}"
        )


def fetch(model: PublicModel, checkpoints: str | Path | None = None, **download: Any) -> tuple[Path, Path]:
    """Paths of the transformer's and the tokenizer's file, downloading what is not here."""
    options = [{**download}, {key: value for key, value in download.items() if key != "revision"}]
    paths = [find(wanted, checkpoints, option) for wanted, option in zip(model.files, options, strict=True)]
    if None in paths:
        absent = [wanted for wanted, path in zip(model.files, paths, strict=True) if path is None]
        offline = is_offline() or bool(download.get("local_files_only"))
        if offline or not hub_answers():
            raise ValueError(absence(model.name, absent, offline))
    found = zip(model.files, paths, options, strict=True)
    transformer, tokenizer = (path or _download(model.name, wanted, option) for wanted, path, option in found)
    return transformer, tokenizer


def find(wanted: Wanted, checkpoints: str | Path | None = None, options: dict[str, Any] | None = None) -> Path | None:
    """The file where it lies on this machine, or None. Raises ValueError for a `checkpoints` that is no folder."""
    from huggingface_hub import try_to_load_from_cache

    repo, file = wanted
    named = checkpoints or os.environ.get(FOLDER_VARIABLE)
    if named:
        folder = Path(named).expanduser()
        if not folder.is_dir():
            argument = "checkpoints" if checkpoints else FOLDER_VARIABLE
            raise ValueError(f"{argument} must be a folder, got {str(named)!r}")
        for path in (folder / file, folder / repo / file):
            if path.is_file():
                return path
    if not repo:
        return None
    places = {key: value for key, value in (options or {}).items() if key in ("cache_dir", "revision")}
    cached = try_to_load_from_cache(repo, file, **places)
    return Path(cached) if isinstance(cached, str) else None


def is_here(model: PublicModel, checkpoints: str | Path | None = None) -> bool:
    """Whether both files are on this machine."""
    return all(find(wanted, checkpoints) for wanted in model.files)


def why_unavailable(
    model: PublicModel, checkpoints: str | Path | None = None, online: bool | None = None
) -> str | None:
    """None for a model whose files are here or can be downloaded, else the reason in one sentence.

    online: whether the hub answers; None asks it, where that matters.
    """
    absent = [wanted for wanted in model.files if find(wanted, checkpoints) is None]
    if not absent:
        return None
    offline = is_offline()
    reachable = False if offline else hub_answers() if online is None else online
    return None if reachable else absence(model.name, absent, offline)


def absence(name: str, absent: list[Wanted], offline: bool) -> str:
    """Which files are not here, and where to put them by hand."""
    files = " and ".join(f"{file} of {repo}" for repo, file in absent)
    why = "downloads are switched off" if offline else "the Hugging Face hub cannot be reached"
    return (
        f"model {name!r} needs {files}, which {'is' if len(absent) == 1 else 'are'} not on this machine, and {why}; "
        f"go online once, or put the files into a folder and give it as {FOLDER_VARIABLE} (or checkpoints=)"
    )


def is_offline() -> bool:
    """Whether HF_HUB_OFFLINE forbids asking the hub."""
    from huggingface_hub import constants

    return bool(constants.HF_HUB_OFFLINE)


def hub_answers(seconds: float = ANSWER_SECONDS) -> bool:
    """Whether the hub, or the mirror named by HF_ENDPOINT, answers at all within `seconds`.

    Asked apart from the download, which retries for minutes, and in a thread, as looking up a name knows no time limit.
    """
    answers: queue.SimpleQueue[bool] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(_asked(seconds)), daemon=True).start()
    try:
        return answers.get(timeout=seconds + 1)
    except queue.Empty:
        return False


def _asked(seconds: float) -> bool:
    from huggingface_hub import constants
    from huggingface_hub.utils import get_session

    try:
        get_session().head(constants.ENDPOINT, timeout=seconds)
    except Exception:  # whatever keeps us from an answer, of whichever HTTP library
        return False
    return True


def _download(name: str, wanted: Wanted, options: dict[str, Any]) -> Path:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    repo, file = wanted
    try:
        return Path(hf_hub_download(repo, file, **options))
    except LocalEntryNotFoundError as error:
        raise ValueError(absence(name, [wanted], offline=False)) from error
    except (HfHubHTTPError, OSError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise ValueError(f"{file} of {repo}, needed by model {name!r}, could not be downloaded: {reason}") from error
