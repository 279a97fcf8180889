"""The pipeline keeps what diffusers taught its users to expect, and the promises of the sampling loop."""

import random
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import pgm_image
from pgm_image.model_info import read_info
from pgm_image.pipeline import PGMPipeline


def pixels(pictures: list[Image.Image]) -> np.ndarray:
    return np.stack([np.asarray(p) for p in pictures])


@pytest.mark.parametrize("sampler", ["halton", "confidence", "random", "raster"])
def test_a_picture_is_the_same_alone_and_in_any_batch(pipeline, sampler):
    settings = {"sampler": sampler, "output_type": "codes"}
    whole = pipeline("bird", num_images=5, seed=3, **settings)
    for size in (1, 2, 4):
        assert torch.equal(pipeline("bird", num_images=5, seed=3, batch_size=size, **settings), whole)
    for k in range(5):
        assert torch.equal(pipeline("bird", seed=3 + k, **settings)[0], whole[k])
    # Equal codes; a convolution over another batch may round a pixel to the neighbouring level.
    alone, batch = pixels(pipeline.decode(whole[:1])), pixels(pipeline.decode(whole))[:1]
    assert np.abs(alone.astype(int) - batch).max() <= 1


def test_pictures_differ_between_seeds_and_huge_seeds_work(pipeline):
    a, b, c = (pixels(pipeline("bird", seed=seed, temperature=2.0)) for seed in (1, 2, 2**32 + 1))
    assert (a != b).any() and (a != c).any()


def test_global_random_state_neither_matters_nor_changes(pipeline):
    torch.manual_seed(1), np.random.seed(1), random.seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1].copy(), random.getstate()
    first = pixels(pipeline("bird", roll=True))
    assert (torch.get_rng_state() == before[0]).all()
    assert (np.random.get_state()[1] == before[1]).all() and random.getstate() == before[2]
    torch.manual_seed(2)
    assert (pixels(pipeline("bird", roll=True)) == first).all()


def test_saving_and_loading_changes_nothing(pipeline, tmp_path):
    pipeline.save_pretrained(tmp_path)
    again = PGMPipeline.from_pretrained(tmp_path)
    assert again.info == pipeline.info == read_info(tmp_path)
    assert (pixels(again("goldfish", style="flat")) == pixels(pipeline("goldfish", style="flat"))).all()


def test_all_output_types_agree(pipeline):
    pil = pixels(pipeline("bird", num_images=2))
    array = pipeline("bird", num_images=2, output_type="np")
    tensor = pipeline("bird", num_images=2, output_type="pt")
    codes = pipeline("bird", num_images=2, output_type="codes")
    assert array.shape == (2, 8, 8, 3) and (np.rint(array * 255) == pil).all()
    assert tensor.shape == (2, 3, 8, 8) and np.allclose(tensor.permute(0, 2, 3, 1), array)
    assert codes.shape == (2, 4, 4) and (pixels(pipeline.decode(codes)) == pil).all()
    assert torch.equal(pipeline("bird", num_images=2, output_type="latent"), codes)
    with pytest.raises(ValueError, match="output_type"):
        pipeline("bird", output_type="jpeg")


def test_steps_can_be_watched_and_the_last_is_the_result(pipeline):
    steps = list(pipeline.generate_steps("bird", steps=4))
    assert [step.index for step in steps] == [0, 1, 2, 3]
    previews = [pipeline.decode(step.codes)[0] for step in steps]
    assert previews[-1].tobytes() == pipeline("bird", steps=4)[0].tobytes()


def test_unknown_cells_are_white_paper(pipeline):
    codes = torch.full((1, 16), -1)
    codes[0, 5] = 3
    picture = np.asarray(pipeline.decode(codes)[0])
    row, column = divmod(5, 4)
    known = np.zeros((8, 8), dtype=bool)
    known[2 * row : 2 * row + 2, 2 * column : 2 * column + 2] = True
    assert (picture[~known] == 255).all()
    assert (picture[known] != 255).any()


def test_arguments_of_generate_steps_are_checked_when_it_is_called(pipeline):
    with pytest.raises(ValueError, match="steps"):
        pipeline.generate_steps("bird", steps=0)


def test_a_callback_sees_every_step_and_can_interrupt(pipeline):
    seen = []

    def watch(pipe, index, total, extra):
        seen.append((index, total, extra["step"].known.sum().item()))
        if index == 1:
            pipe.interrupt()

    codes = pipeline("bird", steps=4, callback_on_step_end=watch, output_type="codes")
    assert [s[:2] for s in seen] == [(0, 4), (1, 4)]
    assert (codes >= 0).sum() == seen[-1][2] < 16
    assert (pipeline("bird", steps=4, output_type="codes") >= 0).all()  # the next one is whole


def test_a_torch_generator_sets_the_seed(pipeline):
    pictures = [
        pixels(pipeline("bird", generator=torch.Generator().manual_seed(s), temperature=2.0)) for s in (4, 4, 5)
    ]
    assert (pictures[0] == pictures[1]).all() and (pictures[0] != pictures[2]).any()
    with pytest.raises(ValueError, match="generator"):
        pipeline("bird", generator=4)
    with pytest.raises(ValueError, match="seed or generator"):
        pipeline("bird", generator=torch.Generator(), seed=3)


def test_guidance_zero_runs_one_pass_per_step(pipeline, monkeypatch):
    rows = []
    embed = pipeline.transformer.embed
    monkeypatch.setattr(
        pipeline.transformer, "embed", lambda tokens, *a, **k: rows.append(len(tokens)) or embed(tokens, *a, **k)
    )
    pipeline("bird", steps=4, guidance_scale=0)
    pipeline("bird", steps=4, guidance_scale=2, guidance_schedule="constant")
    assert rows == [1] * 4 + [2] * 4


def test_the_device_and_dtype_can_be_chosen_and_wrong_ones_are_named(model_folder):
    pipe = PGMPipeline.from_pretrained(model_folder, device="cpu", torch_dtype=torch.bfloat16)
    assert pipe.dtype == torch.bfloat16 and pipe.device.type == "cpu"
    assert len(pipe("bird")) == 1
    assert pipe.to(dtype=torch.float32).dtype == torch.float32
    for arguments, name in (
        ({"device": "tpu9"}, "device"),
        ({"dtype": "int8"}, "dtype"),
        ({"attention": "x"}, "attention"),
    ):
        with pytest.raises(ValueError, match=name):
            PGMPipeline.from_pretrained(model_folder, **arguments)
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="not available"):
            PGMPipeline.from_pretrained(model_folder, device="cuda")
        with pytest.raises(ValueError, match="xformers"):
            PGMPipeline.from_pretrained(model_folder, device="cpu", attention="xformers")


def test_bad_arguments_are_reported_before_any_weight_is_read(model_folder, monkeypatch):
    monkeypatch.setattr("pgm_image.pipeline.load_model", lambda *a: pytest.fail("weights were read"))
    with pytest.raises(ValueError, match="class_id"):
        pgm_image.generate(class_id="no such thing", model=str(model_folder))
    with pytest.raises(ValueError, match="steps"):
        pgm_image.generate_steps(class_id=0, steps=99, model=str(model_folder))


def test_an_unknown_model_is_an_error_that_lists_what_there_is(tmp_path):
    with pytest.raises(ValueError, match="model"):
        pgm_image.generate(class_id=0, model="no-such-model")
    with pytest.raises(ValueError, match="model_index.json"):
        pgm_image.load(str(tmp_path))
    for name in ("../assets", "/etc", "..", ""):
        with pytest.raises(ValueError):
            pgm_image.load(name)


def test_a_hub_model_that_is_not_cached_says_so_offline_and_the_next_call_works(model_folder, pipeline):
    with pytest.raises(ValueError, match="someone/somemodel"):
        pgm_image.load("someone/somemodel")
    assert len(pgm_image.generate(class_id=0, model=str(model_folder))) == 1


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "LFS"),
        (b"<html>not found</html>", "HTML"),
        (b"", "empty"),
        (None, "truncated"),
    ],
)
def test_a_broken_weights_file_is_one_sentence(pipeline, tmp_path, content, says):
    pipeline.save_pretrained(tmp_path)
    path: Path = tmp_path / "transformer" / "model.safetensors"
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2] if content is None else content)
    with pytest.raises(ValueError, match=says):
        PGMPipeline.from_pretrained(tmp_path)
