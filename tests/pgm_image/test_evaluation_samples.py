"""Sampling for an evaluation, and the sheets drawn from it."""

import numpy as np
import pytest
from PIL import Image

from pgm_image.evaluation.image_set import balanced_selection, load_image_set
from pgm_image.evaluation.samples import (
    Settings,
    check_image_size,
    draw_samples,
    label_map,
    pipeline_labels,
    to_array,
)
from pgm_image.evaluation.sheet import class_style_sheet, pairs_sheet, sample_sheet
from tests.pgm_image.evaluation_data import CLASSES, STYLES, DrawingPipeline, write_shards


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    train = load_image_set(write_shards(tmp_path_factory.mktemp("data") / "shapes"), "train")
    return train.take(balanced_selection(train, 12))


def test_samples_have_the_labels_of_the_reference_by_name(reference):
    pipe = DrawingPipeline()
    class_id, style_id = pipeline_labels(pipe, reference)
    names = [pipe.classes[label] for label in class_id]
    assert names == [CLASSES[label] for label in reference.class_id]
    assert style_id.tolist() == reference.style_id.tolist()


def test_images_do_not_depend_on_the_chunk_or_on_the_number_of_processes(reference):
    pipe = DrawingPipeline()
    labels = pipeline_labels(pipe, reference)
    whole = draw_samples(pipe, *labels, Settings(), seed=5, chunk=12).images
    assert whole.shape == (12, 16, 16, 3)
    np.testing.assert_array_equal(draw_samples(pipe, *labels, Settings(), seed=5, chunk=5).images, whole)
    parts = [draw_samples(pipe, *labels, Settings(), 5, 5, process, 3).images for process in range(3)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_only_given_settings_reach_the_pipeline(reference):
    pipe = DrawingPipeline()
    settings = Settings(steps=4, temperature=0.5)
    draw_samples(pipe, *pipeline_labels(pipe, reference), settings, chunk=12)
    assert set(pipe.calls[0]) == {"class_id", "style", "seed", "steps", "temperature"}
    assert settings.resolved(pipe.recommended)["steps"] == 4
    assert settings.resolved(pipe.recommended)["sampler"] == "halton"


def test_a_class_the_model_lacks_is_named():
    with pytest.raises(ValueError, match="the model has no class named 'cross'"):
        label_map(["circle"], ("circle", "cross"), "class")


def test_a_model_of_another_size_is_refused_before_sampling(reference):
    pipe = DrawingPipeline()
    pipe.image_size = 32
    with pytest.raises(ValueError, match="the model draws 32 px, the data has 16 px"):
        check_image_size(pipe, reference)


def test_images_of_two_sizes_are_refused():
    with pytest.raises(ValueError, match="one size"):
        to_array([Image.new("RGB", (8, 8)), Image.new("RGB", (9, 9))])


def test_a_sheet_shows_each_image_enlarged_by_whole_pixels(reference):
    image = reference.images[0]
    sheet = np.asarray(sample_sheet([[image, None]], ["row"], ["first", "second"], scale=3))
    enlarged = image.repeat(3, axis=0).repeat(3, axis=1)
    windows = np.lib.stride_tricks.sliding_window_view(sheet, enlarged.shape)[..., 0, :, :, :]
    assert (windows == enlarged).all(axis=(2, 3, 4)).sum() == 1


def test_sheets_of_classes_and_of_pairs_are_drawn(reference):
    labels = (reference.class_id, reference.style_id)
    sheet = class_style_sheet(reference.images, *labels, CLASSES, STYLES)
    assert sheet.height > 3 * 16
    pairs = [(index, index + 1, 1.5) for index in range(6)]
    sheet = pairs_sheet(reference.images, reference.images, pairs, ["circle"] * 6)
    assert sheet.width > 4 * 32


def test_a_sheet_with_missing_names_is_refused(reference):
    with pytest.raises(ValueError, match="one per name"):
        sample_sheet([[reference.images[0]]], ["a"], ["b", "c"])
