"""model_index.json: what can be known of a model without reading its weights, in the manner of diffusers."""

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, TypeVar

FILE = "model_index.json"
Info = TypeVar("Info")


def read_index(folder: str | Path, kind: type[Info], pipeline: str) -> Info:
    """The dataclass `kind` from a model folder; fields it does not know are left out.

    pipeline: name of the pipeline class that the model must be for. Raises ValueError naming the file when it is
    missing, not usable, or describes another kind of model.
    """
    path = Path(folder) / FILE
    if not path.is_file():
        raise ValueError(f"no model at {str(folder)!r}: {FILE} is missing")
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        found = values.get("_class_name", pipeline)
        known = {field.name for field in fields(kind)}
        info = kind(**{key: _frozen(value) for key, value in values.items() if key in known})
    except (json.JSONDecodeError, UnicodeDecodeError, TypeError, AttributeError) as error:
        raise ValueError(f"{path} is not a usable model index ({error}); download the model again") from error
    if found != pipeline:
        raise ValueError(f"{path} describes a {found}, which {pipeline} cannot run")
    return info


def write_index(info: Any, folder: str | Path, pipeline: str, components: dict[str, list[str]]) -> None:
    """Write model_index.json; `components` names each part's folder or file with the module and class that reads it."""
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    values = {"_class_name": pipeline, **components, **asdict(info)}
    (path / FILE).write_text(json.dumps(values, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _frozen(value: Any) -> Any:
    # Lists become tuples, so that a frozen dataclass compares equal after a round trip.
    if isinstance(value, list):
        return tuple(_frozen(item) for item in value)
    if isinstance(value, dict):
        return {key: _frozen(item) for key, item in value.items()}
    return value
