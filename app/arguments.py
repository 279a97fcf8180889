"""The arguments of a public endpoint, each described once: from this come the hidden inputs, the names that programs
use, and the docstring that Gradio shows on its API page and hands to MCP clients.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import gradio as gr
from gradio.components import Component


@dataclass(frozen=True)
class Argument:
    """One input of an endpoint: its name for programs, what it means, and what it is when left out."""

    name: str
    kind: type[Component]
    meaning: str
    value: Any = None
    required: bool = False
    options: dict[str, Any] = field(default_factory=dict)  # further ones of the component

    def component(self) -> Component:
        """A new input of this kind."""
        return self.kind(self.value, label=self.meaning, **self.options)


def whole_number(name: str, meaning: str, value: int | None = None) -> Argument:
    """An argument that is a whole number."""
    return Argument(name, gr.Number, meaning, value, options={"precision": 0})


def number(name: str, meaning: str, value: float | None = None) -> Argument:
    """An argument that is any number."""
    return Argument(name, gr.Number, meaning, value)


def text(name: str, meaning: str, value: str = "") -> Argument:
    """An argument that is a text."""
    return Argument(name, gr.Textbox, meaning, value)


def file(name: str, meaning: str, required: bool = False) -> Argument:
    """An argument that is a file; it comes as the path of an upload."""
    return Argument(name, gr.File, meaning, None, required, {"type": "filepath"})


def endpoint(name: str, says: str, arguments: Sequence[Argument], returns: str) -> Callable[[Callable], Callable]:
    """Decorator for a function that takes its arguments as one dict by name: gives it their names, one by one, and a
    docstring.
    """
    names = [one.name for one in arguments]
    lines = [f"    {one.name}: {one.meaning}." for one in arguments]
    parameters = [
        inspect.Parameter(
            one.name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=inspect.Parameter.empty if one.required else one.value,
        )
        for one in arguments
    ]

    def decorate(function: Callable[[dict[str, Any]], Any]) -> Callable:
        if inspect.isgeneratorfunction(function):

            def called(*values: Any) -> Any:
                yield from function(dict(zip(names, values, strict=True)))
        else:

            def called(*values: Any) -> Any:
                return function(dict(zip(names, values, strict=True)))

        called.__name__ = called.__qualname__ = name
        called.__doc__ = "\n".join([says, "", "Args:", *lines, "", "Returns:", f"    {returns}"])
        called.__signature__ = inspect.Signature(parameters)
        return called

    return decorate
