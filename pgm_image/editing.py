"""The public functions that edit a picture: edit, variations, outpaint, and the steps behind them."""

from collections.abc import Iterator
from typing import Any

from PIL import Image

from pgm.sampling import Step
from pgm_image import edits
from pgm_image.registry import DEFAULT_MODEL, load, model_info

Pictures = list[Image.Image]


def edit(image: Any, mask: Any, class_id: Any = None, *, model: str = DEFAULT_MODEL, **arguments: Any) -> Pictures:
    """Generate the painted part of a picture anew, as the given class, around what stays.

    image: Pillow picture, file, bytes or (H, W, 3) uint8 array, of any size. It is fitted into the model's square:
    fit="whole" (default) shows all of it on white, "crop" its central square. mask: white, True or painted = change,
    as array, picture, transparent layer or file, of the picture's size or aspect; a code is generated when the mask
    touches its cell; invert=True keeps what is painted instead. Nothing painted gives the picture back; a mask painted
    all over is a plain generation with the same seed.

    composite=True returns the picture at its own size: pixels outside the touched cells are byte for byte those of the
    input (upright; transparency is kept, generated cells are opaque). composite=False returns the model's square.

    Also class_id, style, num_images, steps, sampler, guidance_scale, seed, ... as in `generate`, and device, dtype,
    attention, batch_size, progress, callback_on_step_end. Raises ValueError for a bad argument, before weights are
    read.

    >>> edit("bird.png", "mask.png", class_id="cat or monkey face", seed=3)[0].save("edited.png")
    """
    running, loading, arguments = _sorted(arguments)
    task = edits.repaint(model_info(model), image, mask, class_id, **arguments)
    return load(model, **loading).run_edit(task, **running)


def variations(
    image: Any, strength: float = 0.5, num_images: int = 4, class_id: Any = None, *, model: str = DEFAULT_MODEL,
    **arguments: Any,
) -> Pictures:  # fmt: skip
    """Pictures like this one: the share `strength` (0 to 1) of its codes, chosen by the seed, is generated anew.

    By default the model's own square comes back (composite=False), since its decoder joins neighbouring cells; other
    arguments as in `edit`.
    """
    running, loading, arguments = _sorted(arguments)
    task = edits.variations(model_info(model), image, strength, class_id, num_images=num_images, **arguments)
    return load(model, **loading).run_edit(task, **running)


def outpaint(
    image: Any, shift: tuple[float, float] = (0.0, 0.0), scale: float = 1.0, class_id: Any = None, *,
    model: str = DEFAULT_MODEL, **arguments: Any,
) -> Pictures:  # fmt: skip
    """Shift the picture (right, down; shares of its sides, -1 to 1) or shrink it (scale, 0 to 1) and fill the rest.

    The size stays. Other arguments as in `edit`.
    """
    running, loading, arguments = _sorted(arguments)
    task = edits.outpaint(model_info(model), image, shift, scale, class_id, **arguments)
    return load(model, **loading).run_edit(task, **running)


def edit_steps(
    image: Any, mask: Any, class_id: Any = None, *, model: str = DEFAULT_MODEL, **arguments: Any
) -> Iterator[Step]:
    """The generator of steps behind `edit`; closing it ends the work. Arguments are checked when this is called."""
    _, loading, arguments = _sorted(arguments)
    task = edits.repaint(model_info(model), image, mask, class_id, **arguments)
    return task.steps(load(model, **loading))


def _sorted(arguments: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Arguments of the run, of loading, and of the edit."""
    running, loading = ("batch_size", "progress", "callback_on_step_end"), ("device", "dtype", "attention")
    rest = {key: value for key, value in arguments.items() if key not in (*running, *loading)}
    return *({key: arguments[key] for key in keys if key in arguments} for keys in (running, loading)), rest
