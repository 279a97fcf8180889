"""Model folders from the Hugging Face hub, by huggingface_hub and its cache."""

from pathlib import Path
from typing import Any


def is_hub_id(text: str) -> bool:
    """Whether `text` has the form of a repository, "user/model"."""
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(text)
    except HFValidationError:
        return False
    return text.count("/") == 1


def download_folder(repo: str, index: str, parts: str, **download: Any) -> Path:
    """Folder of a repository in our layout, downloaded on first use (arguments `download`) or from the cache.

    index: file that marks our layout; parts: what else belongs to it, in words. Raises ValueError in one sentence
    when it is not cached and the hub cannot be reached, or when the repository is of another kind.
    """
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    patterns = ["*.json", "*.safetensors", "README.md"]
    try:
        folder = Path(snapshot_download(repo, allow_patterns=patterns, **download))
    except LocalEntryNotFoundError as error:
        raise ValueError(
            f"model {repo!r} is not in the cache and the hub cannot be reached; go online once, or put {index} and "
            f"{parts} of that repository into a folder and give its path"
        ) from error
    except (HfHubHTTPError, OSError) as error:
        raise ValueError(f"model {repo!r} could not be downloaded: {error}") from error
    if not (folder / index).is_file():
        raise ValueError(f"hub repository {repo!r} has no {index}: it is not in the layout of this project")
    return folder
