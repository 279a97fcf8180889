"""Any picture -> a square of pixels for the encoder, in one of the ways that published codes were made."""

from PIL import Image

from tokenizer.image_files import to_rgb
from tokenizer.vqgan import square

CROPS = ("square", "imagenet")


def short_side(picture: Image.Image, side: int) -> Image.Image:
    """The short side resized to `side` (bilinear with antialias), then the central side x side pixels, RGB.

    As torchvision's Resize and CenterCrop, which the published ImageNet models were trained and judged with.
    """
    picture = to_rgb(picture)
    width, height = picture.size
    upright = width <= height
    size = (side, int(side * height / width)) if upright else (int(side * width / height), side)
    if size != (width, height):
        picture = picture.resize(size, Image.BILINEAR)
    left, top = round((size[0] - side) / 2), round((size[1] - side) / 2)
    return picture.crop((left, top, left + side, top + side))


def crop_to(picture: Image.Image, side: int, crop: str) -> Image.Image:
    """The picture at side x side pixels. crop: "square" (central square, Lanczos) or "imagenet" (see `short_side`)."""
    return square(picture, side) if crop == "square" else short_side(picture, side)
