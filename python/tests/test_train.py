"""Training."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest
from conftest import scene

import proxlift

TINY = {"depth": 3, "features": 4, "epochs": 3, "count": 24, "patch": 16, "progress": False}


def pictures(count=4, size=40):
    return [scene(size, size, seed) for seed in range(count)]


def test_it_learns_and_is_repeatable():
    first = proxlift.train(pictures(), **{**TINY, "epochs": 8, "count": 120})
    again = proxlift.train(pictures(), **{**TINY, "epochs": 8, "count": 120})
    assert first.history[-1]["loss"] < first.history[0]["loss"]
    assert first.model == again.model and first.last == again.last
    other = proxlift.train(pictures(), **{**TINY, "epochs": 8, "count": 120, "seed": 1})
    assert other.model != first.model
    noisy = scene(64, 64, 9) + np.random.default_rng(0).normal(0, 0.1, (64, 64))
    clean = scene(64, 64, 9)
    better = proxlift.psnr(clean, first.model.denoise(noisy, 0.1), data_range=1)
    assert better > proxlift.psnr(clean, noisy, data_range=1) + 2


def test_what_comes_of_it():
    training = proxlift.train(pictures(), test=pictures(2), test_every=2, **TINY)
    assert [entry["epoch"] for entry in training.history] == [1, 2, 3]
    assert all(entry["psnr"] > 10 and 0 < entry["ssim"] < 1 for entry in training.history)
    assert ["test_psnr" in entry for entry in training.history] == [False, True, True]
    assert not training.stopped and "3 epochs" in repr(training)
    assert training.settings["depth"] == 3 and training.settings["rate"] == 1e-3
    assert training.model.sigma == pytest.approx(0.1) and "4 held" not in training.model.provenance["data"]
    given = {**training.settings, "progress": False}
    assert proxlift.train(pictures(), **given).last == training.last


@pytest.mark.parametrize(
    "settings",
    [
        {"preset": "paper", "batch": 8}, {"preset": "sgd"}, {"preset": "adam"}, {"preset": "backtracking"},
        {"preset": "momentum"}, {"knots": 3}, {"unrolling": "inertial"}, {"border": 2}, {"tied": True},
        {"sigma_range": (0.05, 0.2)}, {"metric": "kronecker"}, {"start": "cosines"}, {"threads": 1},
        {"rate": "grid", "rate_grid": [1e-3, 1e-2], "preset": "sgd"}, {"bounded": True}, {"step_scale": 2},
    ],
)  # fmt: skip
def test_settings_of_the_command_line(settings):
    training = proxlift.train(pictures(), **{**TINY, "epochs": 1, **settings})
    assert np.isfinite(training.history[0]["loss"])


def test_all_settings_are_told():
    told = proxlift.train.settings()
    assert len(told) > 40 and "Noise level" in told["sigma"] and '"lifted"' in told["preset"]


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_colour_and_types(dtype):
    images = [np.stack([scene(32, 32, seed + c) for c in range(3)], -1) for seed in range(3)]
    if np.dtype(dtype).kind == "u":
        images = [(image * np.iinfo(dtype).max).astype(dtype) for image in images]
    training = proxlift.train(images, **{**TINY, "epochs": 1})
    assert training.model.channels == 3


def test_pairs_and_noisy_images_alone():
    rng = np.random.default_rng(0)
    noisy = [image + rng.normal(0, 0.1, image.shape) for image in pictures(6, 64)]
    for images in (pictures(6, 64), None):
        training = proxlift.train(images, noisy=noisy, **{**TINY, "epochs": 1})
        assert training.model.noise == "own"
    with pytest.raises(ValueError, match="partners"):
        proxlift.train(pictures(5, 64), noisy=noisy, **TINY)


def test_folders(tmp_path):
    io = pytest.importorskip("skimage.io")
    for i, image in enumerate(pictures()):
        io.imsave(tmp_path / f"{i}.png", (255 * image).astype(np.uint8), check_contrast=False)
    eight = [(255 * image).astype(np.uint8) for image in pictures()]
    assert proxlift.train(tmp_path, **TINY).last.tau.tolist() == proxlift.train(eight, **TINY).last.tau.tolist()
    with pytest.raises((ValueError, OSError)):
        proxlift.train(tmp_path / "none", **TINY)


@pytest.mark.parametrize("stop", [1, 2])
def test_a_stopped_training_goes_on_to_the_same_bits(tmp_path, stop):
    whole = proxlift.train(pictures(), **TINY)
    stopped = proxlift.train(pictures(), out=tmp_path, callback=lambda record, _: record["epoch"] == stop, **TINY)
    assert stopped.stopped and len(stopped.history) == stop
    seen = []
    rest = proxlift.train(pictures(), out=tmp_path, callback=lambda record, _: seen.append(record["epoch"]), **TINY)
    assert seen == list(range(stop + 1, 4)) and not rest.stopped
    assert rest.last.theta.tobytes() == whole.last.theta.tobytes()
    assert [entry["loss"] for entry in rest.history] == [entry["loss"] for entry in whole.history]
    lines = (tmp_path / "history.jsonl").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in lines] == [1, 2, 3]
    assert proxlift.Model.load(tmp_path / "model.safetensors") == rest.model
    again = proxlift.train(pictures(), out=tmp_path, **TINY)
    assert again.last == rest.last
    with pytest.raises(ValueError, match="other settings or other images"):
        proxlift.train(pictures(5), out=tmp_path, **TINY)
    with pytest.raises(ValueError, match="other settings or other images"):
        proxlift.train(pictures(), out=tmp_path, **{**TINY, "seed": 5})


def test_callbacks_may_denoise_and_raise():
    shapes = []

    def callback(record, model):
        shapes.append(model.denoise(scene(20, 20), 0.1).shape)

    proxlift.train(pictures(), callback=callback, **TINY)
    proxlift.train(pictures(), callback=callback, **{**TINY, "threads": 1})
    assert shapes == 6 * [(20, 20)]

    def broken(record, model):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        proxlift.train(pictures(), callback=broken, **TINY)


def test_fine_tuning():
    tuned = proxlift.train(pictures(), **{"from": "small", "epochs": 1, "count": 16, "patch": 24, "progress": False})
    assert tuned.model.depth == 8 and tuned.model.unrolling == "chambolle-pock-accelerated"


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"depht": 3}, TypeError), ({"depth": "three"}, ValueError), ({"depth": 1}, ValueError), ({"mu": -1}, ValueError),
        ({"preset": "sgd", "mu": 1.0}, ValueError), ({"preset": "none"}, ValueError), ({"epochs": 0}, ValueError),
        ({"kernel": 4}, ValueError), ({"patch": 64}, ValueError), ({"preset": "sgd", "rate": 1e6}, RuntimeError),
    ],
)  # fmt: skip
def test_wrong_settings(settings, error):
    with pytest.raises(error):
        proxlift.train(pictures(), **{**TINY, **settings})


@pytest.mark.parametrize("images", [[], [np.zeros(5)], [np.zeros((4, 4, 4))], [np.full((40, 40), np.nan)], [1j * np.ones((40, 40))]])
def test_images_that_are_none(images):
    with pytest.raises((ValueError, TypeError)):
        proxlift.train(images, **TINY)


def test_progress_needs_tqdm(monkeypatch, capsys):
    proxlift.train(pictures(), **{**TINY, "progress": True})
    assert "epoch" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    proxlift.train(pictures(), **{**TINY, "progress": None, "epochs": 1})
    with pytest.raises(ImportError, match="tqdm"):
        proxlift.train(pictures(), **{**TINY, "progress": True})
