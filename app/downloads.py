"""Files to take along: the picture of any step as PNG with its settings inside, the reveal as a moving picture."""

import io
import re
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from app.reveal import picture_at
from app.settings import Settings
from pgm_image.metadata import png_info

PAPER = (243, 241, 236)
ACCENT = (85, 70, 232)
SMALLEST_FRAME = 384  # pixels; smaller pictures are enlarged by a whole factor
REVEAL_SECONDS = 4.0
HOLD_SECONDS = 1.5  # of the last frame
MEDIA_TYPES = {
    "png": "image/png",
    "zip": "application/zip",
    "webp": "image/webp",
    "gif": "image/gif",
    "mp4": "video/mp4",
}


def save(value: dict[str, Any], kind: str, picture: int, step: int) -> tuple[str, str, bytes]:
    """File name, media type and content for one picture of a reveal.

    kind: "png" (the picture at `step`), "zip" (all pictures at that step), "webp", "gif" or, where an ffmpeg program
    exists, "mp4" (the reveal). Raises ValueError when there is no such thing.
    """
    if kind not in MEDIA_TYPES:
        raise ValueError(f"a download is one of {', '.join(MEDIA_TYPES)}, not {kind!r}")
    if not 0 <= picture < value["count"] or not 0 <= step < len(value["steps"]):
        raise ValueError("there is no such picture or step in this run")
    if kind == "png":
        name, content = one_png(value, picture, step)
        return name, MEDIA_TYPES[kind], content
    name = file_name(Settings(**value["settings"]).of_picture(picture))
    if kind == "zip":
        return f"{name}-all.zip", MEDIA_TYPES[kind], archive(value, step)
    moving = movie if kind == "mp4" else animation
    return f"{name}-reveal.{kind}", MEDIA_TYPES[kind], moving(frames(value, picture), kind)


def one_png(value: dict[str, Any], picture: int, step: int) -> tuple[str, bytes]:
    """File name and content of one picture at a step (0-based)."""
    name = file_name(Settings(**value["settings"]).of_picture(picture))
    whole = step + 1 == value["total"]
    content = png(picture_at(value, step, picture), value["pictures"][picture], None if whole else step + 1)
    return f"{name}.png" if whole else f"{name}-step{step + 1}.png", content


def archive(value: dict[str, Any], step: int) -> bytes:
    """ZIP of all pictures of a run at a step (0-based)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as files:
        for picture in range(value["count"]):
            files.writestr(*one_png(value, picture, step))
    return buffer.getvalue()


def file_name(settings: Settings) -> str:
    """A name that is safe on every system, e.g. "red-apple-noto-seed7"."""
    words = re.sub(r"[^a-z0-9]+", "-", settings.title().lower()).strip("-")[:60]
    return f"{words or 'picture'}-seed{settings.seed}"


def png(picture: Image.Image, settings: dict[str, Any], step: int | None = None) -> bytes:
    """PNG with the settings of this one picture in its text chunks; `step` (1-based) marks an unfinished one."""
    recorded = settings if step is None else {**settings, "shown_step": step}
    buffer = io.BytesIO()
    picture.save(buffer, "png", pnginfo=png_info(recorded))
    return buffer.getvalue()


def frames(value: dict[str, Any], picture: int) -> list[Image.Image]:
    """One RGB frame per step: known cells show the picture, this step's cells are tinted, the others are paper."""
    rows, columns = value["grid"]
    born = np.full(rows * columns, -1)
    if "given" in value:  # codes an edit started from are there in every frame, and no step's own
        born[value["given"]["cells"][picture]] = len(value["steps"])
    result = []
    scale = max(1, -(-SMALLEST_FRAME // value["size"][0]))
    for index, step in enumerate(value["steps"]):
        born[step["taken_back"][picture]] = -1
        born[step["filled"][picture]] = index
        shown = picture_at(value, index, picture)
        width, height = shown.size
        age = np.asarray(
            Image.fromarray(born.reshape(rows, columns).astype(np.int32), "I").resize((width, height), Image.NEAREST)
        )
        pixels = np.asarray(shown).astype(np.float32)
        pixels[age < 0] = PAPER
        if index + 1 < value["total"]:
            pixels[age == index] = 0.7 * pixels[age == index] + 0.3 * np.array(ACCENT)
        frame = Image.fromarray(pixels.round().astype(np.uint8), "RGB")
        result.append(frame.resize((width * scale, height * scale), Image.NEAREST))
    return result


def pace_of(count: int) -> int:
    """Milliseconds per frame, so that `count` of them take about four seconds."""
    return round(1000 * min(max(REVEAL_SECONDS / count, 0.04), 0.25))


def animation(pictures: list[Image.Image], kind: str) -> bytes:
    """Endless animated WebP or GIF of about four seconds that rests on the last picture."""
    pace = pace_of(len(pictures))
    durations = [pace] * (len(pictures) - 1) + [pace + round(1000 * HOLD_SECONDS)]
    buffer = io.BytesIO()
    exact = {"lossless": True, "quality": 20, "method": 0} if kind == "webp" else {"disposal": 1}
    pictures[0].save(buffer, kind, save_all=True, append_images=pictures[1:], duration=durations, loop=0, **exact)
    return buffer.getvalue()


def has_movies() -> bool:
    """Whether this machine has an ffmpeg program."""
    return shutil.which("ffmpeg") is not None


def movie(pictures: list[Image.Image], kind: str = "mp4") -> bytes:
    """The same reveal as an H.264 film that any phone plays. Raises ValueError where it cannot be made."""
    program = shutil.which("ffmpeg")
    if program is None:
        raise ValueError("MP4 needs an ffmpeg program on the server; take WebP or GIF")
    pace = pace_of(len(pictures))
    width, height = (side - side % 2 for side in pictures[0].size)  # yuv420p halves the sides of its colour planes
    still = pictures[-1:] * round(1000 * HOLD_SECONDS / pace)
    raw = b"".join(picture.crop((0, 0, width, height)).tobytes() for picture in [*pictures, *still])
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / f"reveal.{kind}"
        source = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"1000/{pace}", "-i", "-"]
        format_ = ["-pix_fmt", "yuv420p", "-crf", "16", "-movflags", "+faststart"]
        command = [program, "-hide_banner", "-loglevel", "error", "-y", *source, *format_, str(target)]
        done = subprocess.run(command, input=raw, capture_output=True, timeout=60)
        if done.returncode or not target.exists():
            raise ValueError("ffmpeg could not make an MP4 of this reveal; take WebP or GIF")
        return target.read_bytes()
