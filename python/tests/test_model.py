"""Models: arrays, files, and how they show themselves."""

from __future__ import annotations

import copy
import pickle
import struct

import numpy as np
import pytest
from conftest import UNROLLINGS, network, noisy

import proxlift
from proxlift import Model


@pytest.mark.parametrize("name", ["small", "best", "photo"])
@pytest.mark.parametrize("channels", [1, 3])
def test_built_in_models(name, channels, tmp_path):
    model = Model.load(name, channels=channels)
    k, j, c, size = model.depth, model.features, model.channels, model.kernel
    planes = c * model.stride**2
    assert model.theta.shape == (k + 1, j, planes, size, size) and model.tau.shape == (k - 1,)
    assert model.knots.shape[:2] == (k - 1, j) and model.slopes.shape[-1] == model.knots.shape[-1] + 1
    assert c == channels and len(model.memory) == k and model.receptive_radius == model.stride * (2 * k * (size // 2) + 1) - 1
    path = tmp_path / "model.safetensors"
    model.save(path)
    assert Model.load(path) == model == Model.from_bytes(path.read_bytes())
    _, z = noisy((channels, 24, 20))
    x = model.denoise(z, 0.1, channel_axis=0)
    np.testing.assert_array_equal(x, proxlift.denoise(z, 0.1, model=path, channel_axis=0))
    if name != "photo" or channels == 3:
        np.testing.assert_array_equal(x, proxlift.denoise(z, 0.1, model=name, channel_axis=0))


@pytest.mark.parametrize("how", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy])
def test_models_travel(how):
    model = Model.load("small")
    other = how(model)
    assert other == model and hash(other) == hash(model) and other != Model.load("best")


@pytest.mark.parametrize("unrolling", UNROLLINGS)
@pytest.mark.parametrize("pieces", [1, 3])
def test_arrays_come_back(unrolling, pieces):
    model = network(unrolling, pieces=pieces, border=2, bounded=True)
    again = model.replace()
    for name in ("theta", "tau", "knots", "slopes"):
        np.testing.assert_array_equal(getattr(again, name), getattr(model, name))
    assert again == model and again.unrolling == unrolling and again.bounded and again.border == 2
    other = model.replace(theta=2 * model.theta, provenance={"made": "by hand"})
    assert other.provenance == {"made": "by hand"} and other != model


def test_the_paper_s_clip():
    model = network().replace(lam=0.1)
    assert model.knots.shape == (3, 5, 1) and (model.slopes[..., 0] == 1).all() and (model.slopes[..., 1] == 0).all()


def test_a_model_without_a_level_is_used_as_it_is():
    model = network(sigma=0.0)
    _, z = noisy((24, 20))
    assert model.denoise(z).shape == z.shape
    with pytest.raises(ValueError, match="sigma"):
        model.denoise(z, 0.1)


def test_by_hand():
    """The network of the paper, written in NumPy and SciPy."""
    signal = pytest.importorskip("scipy.signal")
    model = network(depth=3, features=2)
    _, z = noisy((12, 10))

    def analyse(theta, x):
        return np.stack([signal.correlate2d(x, w[0], "same") for w in theta])

    def adjoint(theta, u):
        return sum(signal.convolve2d(u[j], theta[j, 0], "same") for j in range(len(u)))

    def activation(v, knots, slopes):
        edges = np.concatenate([[0.0], knots, [np.inf]])
        return np.sign(v) * sum(
            slopes[m] * (np.clip(np.abs(v), edges[m], edges[m + 1]) - edges[m]) for m in range(len(slopes))
        )

    theta, tau, knots, slopes = (a.astype(float) for a in (model.theta, model.tau, model.knots, model.slopes))
    u = analyse(theta[0], z)
    for k in range(1, model.depth):
        v = u - tau[k - 1] * analyse(theta[k], adjoint(theta[k], u) - z)
        u = np.stack([activation(v[j], knots[k - 1, j], slopes[k - 1, j]) for j in range(len(u))])
    np.testing.assert_allclose(model.denoise(z, model.sigma), z - adjoint(theta[-1], u), atol=1e-5)


@pytest.mark.parametrize(
    "change",
    [
        {"theta": np.zeros((5, 5, 1, 4, 4))}, {"theta": np.zeros((5, 5, 2, 3, 3))}, {"theta": np.zeros((5, 5, 3, 3))},
        {"tau": -np.ones(3)}, {"tau": np.ones(4)}, {"knots": -np.ones((3, 5, 1))}, {"knots": np.ones((3, 4, 1))},
        {"slopes": np.full((3, 5, 2), np.nan)}, {"unrolling": "admm"}, {"sigma": -1.0}, {"border": 99},
        {"theta": np.full((5, 5, 1, 3, 3), np.inf)}, {"noise": "snow"}, {"lam": -1.0},
    ],
)  # fmt: skip
def test_parameters_that_make_no_network(change):
    with pytest.raises(ValueError):
        network().replace(**change)


def test_files_that_are_no_models(tmp_path):
    with pytest.raises(FileNotFoundError, match="built-in"):
        Model.load(tmp_path / "none.safetensors")
    damaged = tmp_path / "damaged.safetensors"
    damaged.write_bytes(Model.load("small").to_bytes()[:1000])
    for call in (lambda: Model.load(damaged), lambda: Model.from_bytes(b"not a model")):
        with pytest.raises(ValueError, match="not a proxlift model"):
            call()
    with pytest.raises(OSError):
        Model.load("small").save(tmp_path / "no" / "such" / "folder")
    with pytest.raises(ValueError):
        Model.load("small", channels=2)
    with pytest.raises(TypeError):
        Model()


def test_jupyter_shows_a_table_and_a_picture():
    model = network().replace(provenance={"data": "<b>mine</b>"})
    page = model._repr_html_()
    assert page.count("<tr>") >= 5 and "&lt;b&gt;mine" in page and "data:image/png;base64," in page
    assert repr(model).startswith("<proxlift.Model: K=4, J=5, 3x3 kernels, grey")
    png = model.filters_png()
    width, height = struct.unpack(">II", png[16:24])
    assert png[:8] == b"\x89PNG\r\n\x1a\n" and width > height / 2 > 50
