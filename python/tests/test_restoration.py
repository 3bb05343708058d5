"""Restoration: what was done is undone, with the bits of the command line, and with operators of all kinds."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from conftest import noisy

import proxlift
from proxlift import operators, restoration

RNG = np.random.default_rng(3)
CLEAN = np.kron(RNG.uniform(size=(6, 6)), np.ones((8, 8)))
KERNEL = np.fft.rfft2(np.pad(np.full((3, 3), 1 / 9), ((0, 45), (0, 45))))
SIGMA = 0.02


class Blur:
    def apply(self, x):
        return np.fft.irfft2(np.fft.rfft2(x) * KERNEL, x.shape[-2:])

    def adjoint(self, y):
        return np.fft.irfft2(np.fft.rfft2(y) * KERNEL.conj(), y.shape[-2:])


SEEN = Blur().apply(CLEAN) + RNG.normal(0, SIGMA, CLEAN.shape)


def error(x):
    return np.sqrt(np.mean((x - CLEAN) ** 2))


def test_a_blur_is_undone():
    found = restoration.restore(SEEN, Blur(), SIGMA, start=SEEN, prior="small")
    assert found.x.shape == CLEAN.shape and len(found.residuals) == 8 and found.settled
    assert error(found.x) < 0.5 * error(SEEN)


@pytest.mark.parametrize("prior", ["tv", "convex", "weakly-convex"])
def test_functions_are_minimised_with_any_operator(prior):
    found = proxlift.restore(SEEN, Blur(), SIGMA, prior=prior, weight=0.2, tolerance=1e-3)
    assert error(found.x) < 0.7 * error(SEEN) and found.settled and found.objective > 0
    assert (found.gap is None) == (prior == "weakly-convex")
    if found.gap is not None:
        assert found.gap <= 1e-3 * found.objective and found.iterations % 25 == 0
    ours = proxlift.restore(np.roll(SEEN, (-1, -1), (0, 1)), blur="box:3", border="circular", sigma=SIGMA, prior=prior, weight=0.2,
                            tolerance=1e-3)  # fmt: skip
    assert np.abs(found.x - ours.x).max() < 0.05 and found.objective == pytest.approx(ours.objective, rel=1e-2)
    assert error(proxlift.restore(SEEN, Blur(), SIGMA, prior=prior, tolerance=1e-2).x) < error(SEEN)
    with pytest.raises(ValueError, match="steps is for denoisers"):
        proxlift.restore(SEEN, Blur(), SIGMA, prior=prior, steps=3)


def test_our_own_operators_may_be_theirs_on_one_thread():
    kernel = np.zeros((1, 1, 3, 3))
    kernel[0, 0, 1] = 1 / 3
    blur = operators.Convolution(kernel)
    before = proxlift.threads()
    proxlift.set_threads(1)
    try:
        found = proxlift.restore(blur.apply(CLEAN[np.newaxis]), blur, 0.01, prior="small")
    finally:
        proxlift.set_threads(before)
    assert found.x.shape == (1, 48, 48) and error(found.x[0]) < 0.05


def test_exceptions_of_operators_are_passed_on():
    class Broken(Blur):
        def apply(self, x):
            raise KeyError("mine")

    for prior in ("small", "tv", "weakly-convex"):
        with pytest.raises(KeyError, match="mine"):
            proxlift.restore(SEEN, Broken(), SIGMA, prior=prior)

    class Short(Blur):
        def apply(self, x):
            return x[1:]

    with pytest.raises(ValueError, match="2256 numbers where 2304"):
        proxlift.restore(SEEN, Short(), SIGMA, prior="small")


def test_counts_are_restored():
    counts = np.random.default_rng(0).poisson(Blur().apply(CLEAN) / 0.01) * 0.01
    with_ours = proxlift.restore(counts, blur="box:3", border="circular", likelihood="poisson", gain=0.01, prior="small")
    found = proxlift.restore(counts, Blur(), likelihood="poisson", gain=0.01, prior="small")
    assert error(found.x) < 0.7 * error(counts) and with_ours.sigma == pytest.approx(found.sigma)


CALLS = {
    "blur": ({"blur": "gaussian:1.2"}, ["--blur", "gaussian:1.2"]),
    "kernel": ({"blur": np.arange(15.0).reshape(3, 5), "border": "mirrored"}, ["--blur", "kernel.npy", "--border", "mirrored"]),
    "inpaint": ({"inpaint": np.arange(48 * 40).reshape(48, 40) % 3 == 0}, ["--inpaint", "mask.tif"]),
    "upscale": ({"upscale": 2, "sigma": 0.02}, ["--upscale", "2", "--sigma", "0.02"]),
    "demosaic": ({"demosaic": "gbrg", "sigma": 0.02}, ["--demosaic", "gbrg", "--sigma", "0.02"]),
    "convex": ({"blur": "box:3", "prior": "convex", "strength": 0.9}, ["--blur", "box:3", "--prior", "convex", "--strength", "0.9"]),
    "tv": ({"blur": "box:3", "prior": "tv"}, ["--blur", "box:3", "--prior", "tv"]),
    "counts": (
        {"blur": "box:3", "likelihood": "poisson", "gain": 0.01},
        ["--blur", "box:3", "--likelihood", "poisson", "--gain", "0.01"],
    ),
}


@pytest.mark.filterwarnings("ignore:the last iterations", "ignore:the tolerance")
@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("colour", [False, True])
def test_the_same_bits_as_the_command_line(name, colour, tmp_path):
    program = os.environ.get("PROXLIFT")
    if not program or not Path(program).exists():
        pytest.skip("the environment variable PROXLIFT does not name the program")
    tifffile = pytest.importorskip("tifffile")
    settings, flags = CALLS[name]
    _, z = noisy((3, 48, 40) if colour else (48, 40), 0.02)
    z = np.ascontiguousarray(np.moveaxis(z, 0, -1) if colour else z).astype(np.float32)
    tifffile.imwrite(tmp_path / "seen.tif", z, photometric="rgb" if colour else "minisblack")
    np.save(tmp_path / "kernel.npy", CALLS["kernel"][0]["blur"])
    if name == "inpaint":
        tifffile.imwrite(tmp_path / "mask.tif", settings["inpaint"].astype(np.uint8) * 255)
    settings = {"prior": "small", **settings}
    flags = flags if "--prior" in flags else [*flags, "--prior", "small"]
    command = [program, "restore", "seen.tif", "-o", "restored.tif", "--json", *flags]
    told = json.loads(subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout)
    ours = proxlift.restore(z, channel_axis=-1 if colour else None, **settings)
    np.testing.assert_array_equal(ours.x, tifffile.imread(tmp_path / "restored.tif"))
    assert ours.x.dtype == np.float32 and ours.iterations == told["iterations"] and ours.settled == told["settled"]
    assert ours.sigma == pytest.approx(told["sigma"]) and ours.residuals[-1] == pytest.approx(told["residual"])
    for number in ("objective", "gap"):
        assert getattr(ours, number) == (None if told[number] is None else pytest.approx(told[number]))


def test_conventions_are_those_of_the_package():
    fast = {"prior": "small", "border": "circular"}
    eight = (255 * SEEN.clip(0, 1)).astype(np.uint8)
    found = proxlift.restore(eight, blur="box:3", **fast)
    assert found.x.dtype == np.float64 and found.x.min() >= 0 and found.x.max() <= 1 and 0.01 < found.sigma < 0.03
    assert proxlift.restore(eight, blur="box:3", clip=False, **fast).x.max() != found.x.max()
    stack = np.stack([SEEN, SEEN[::-1], SEEN.T, SEEN]).reshape(2, 2, 48, 48)
    found = proxlift.restore(stack, blur="box:3", **fast)
    assert found.x.shape == stack.shape and np.shape(found.sigma) == (2, 2) and found.iterations == 8
    np.testing.assert_array_equal(found.x[0, 1], proxlift.restore(SEEN[::-1], blur="box:3", **fast).x)
    each = proxlift.restore(stack, sigma=[[0.02, 0.02], [0.02, 0.1]], blur="box:3", prior="tv", border="circular", tolerance=1e-2)
    assert each.sigma[1, 1] == 0.1 and each.gap > 0 and np.abs(each.x[0, 0] - each.x[1, 1]).max() > 0.02
    moved = proxlift.restore(np.moveaxis(stack[0], 0, -1), blur="box:3", channel_axis=-1, **fast)
    np.testing.assert_array_equal(moved.x[..., 1], found.x[0, 1])
    colours = np.stack([SEEN, SEEN, SEEN])
    large = proxlift.restore(colours, upscale=2, blur="gaussian:1", channel_axis=0, sigma=0.02, prior="small")
    assert large.x.shape == (3, 96, 96)
    large = proxlift.restore(np.moveaxis(colours, 0, 1), upscale=2, blur="gaussian:1", channel_axis=1, sigma=0.02, prior="small")
    assert large.x.shape == (96, 3, 96)
    mosaic = proxlift.restore(stack[0].astype(np.float32), demosaic="rggb", prior="small")
    assert mosaic.x.shape == (2, 48, 48, 3) and mosaic.x.dtype == np.float32
    model = proxlift.Model.load("small")
    np.testing.assert_array_equal(proxlift.restore(SEEN, blur="box:3", **{**fast, "prior": model}).x,
                                  proxlift.restore(SEEN, blur="box:3", **fast).x)  # fmt: skip


def test_what_is_missing_does_not_matter():
    missing = np.random.default_rng(4).uniform(size=CLEAN.shape) < 0.5
    found = [proxlift.restore(np.where(missing, value, CLEAN), inpaint=missing, prior="small").x for value in (0, 7, np.nan)]
    np.testing.assert_array_equal(found[0], found[1])
    np.testing.assert_array_equal(found[0], found[2])
    assert error(found[0]) < 0.05


def test_a_convex_function_of_ones_own(tmp_path):
    proxlift.Model.load("convex").save(path := tmp_path / "mine.safetensors")
    call = {"blur": "box:3", "border": "circular", "tolerance": 1e-2}
    mine = proxlift.restore(SEEN, prior=f"convex:{path}", **call)
    np.testing.assert_array_equal(mine.x, proxlift.restore(SEEN, prior="convex", **call).x)
    with pytest.raises(FileNotFoundError):
        proxlift.restore(SEEN, prior="convex:nothing", **call)


def test_progress_is_told(capsys):
    pytest.importorskip("tqdm")
    proxlift.restore(SEEN, blur="box:3", prior="small", progress=True)
    assert "8/8" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("operator", [None, Blur()])
def test_ctrl_c_ends_it(operator):
    call = {"blur": "box:3"} if operator is None else {}
    # Shells start what goes on in the background with Ctrl-C ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(KeyboardInterrupt):
            proxlift.restore(SEEN, operator, SIGMA, prior="tv", tolerance=0, iterations=10_000_000, **call)
    finally:
        signal.signal(signal.SIGINT, before)


def test_gaps_are_filled_better_with_multipliers():
    known = np.random.default_rng(4).uniform(size=CLEAN.shape) < 0.4

    class Mask:
        def apply(self, x):
            return known * x

        adjoint = apply

    def filled(**schedule):
        start = np.where(known, CLEAN, 0.5)
        return restoration.restore(known * CLEAN, Mask(), 0.005, start=start, prior="small", **schedule).x

    plain = error(filled(steps=20, last=4 / 255))
    better = error(filled(steps=20, last=4 / 255, remembers=True))
    assert better < plain < error(np.where(known, CLEAN, 0.5))
    with pytest.raises(ValueError, match="schedule"):
        filled(last=0.0)


def test_operators_of_scipy_give_the_same():
    linalg = pytest.importorskip("scipy.sparse.linalg")
    n, blur = CLEAN.size, Blur()
    flat = linalg.LinearOperator(
        (n, n),
        matvec=lambda x: blur.apply(x.reshape(48, 48)).ravel(),
        rmatvec=lambda y: blur.adjoint(y.reshape(48, 48)).ravel(),
    )
    expected = restoration.restore(SEEN, blur, SIGMA, prior="small").x
    found = restoration.restore(SEEN.ravel(), flat, SIGMA, shape=(48, 48), prior="small").x
    assert np.allclose(found, expected, atol=1e-5)
    with pytest.raises(ValueError, match="shape of the image"):
        restoration.restore(SEEN.ravel(), flat, SIGMA, prior="small")


def test_colour_is_restored():
    colour = np.stack([SEEN, SEEN, SEEN])
    found = restoration.restore(colour, Blur(), SIGMA, prior="small")
    assert found.x.shape == colour.shape and error(found.x[1]) < 0.6 * error(SEEN)


def test_a_physics_of_deepinv_is_taken():
    torch = pytest.importorskip("torch")

    class Physics:
        def A(self, x):
            return 0.5 * x

        def A_adjoint(self, y):
            return 0.5 * y

    found = restoration.restore(0.5 * CLEAN, Physics(), 0.01, prior="small")
    assert torch is not None and error(found.x) < 0.05


def test_what_cannot_be_is_refused():
    for sigma in (0, -1, float("nan")):
        with pytest.raises(ValueError, match="sigma"):
            restoration.restore(SEEN, Blur(), sigma)
    with pytest.raises(ValueError, match="finite"):
        restoration.restore(np.full((4, 4), np.nan), Blur(), 0.1)
    with pytest.raises(TypeError, match="apply"):
        restoration.restore(SEEN, object(), 0.1)
    with pytest.raises(ValueError, match="schedule"):
        restoration.restore(SEEN, Blur(), 0.1, steps=0)
    for match, call in {
        "not nothing": {}, "not operator and blur": {"operator": Blur(), "blur": "box:3"},
        "not blur and inpaint": {"blur": "box:3", "inpaint": SEEN > 0}, "0 in the kernel|above 0": {"blur": "gaussian:0"},
        "steps is for": {"blur": "box:3", "steps": 3}, "gain": {"blur": "box:3", "likelihood": "poisson"},
        "likelihood": {"blur": "box:3", "likelihood": "x"}, "border": {"blur": "box:3", "border": "x"},
        "sigma is for": {"blur": "box:3", "likelihood": "poisson", "gain": 0.1, "sigma": 0.1}, "upscale": {"upscale": 5},
        "shape": {"inpaint": SEEN[1:] > 0}, "no known pixel": {"inpaint": SEEN > -9}, "four letters": {"demosaic": "rgb"},
        "map": {"blur": "box:3", "sigma": np.full(SEEN.shape, 0.1)}, "strength": {"blur": "box:3", "strength": 0},
        "above 0": {"operator": Blur()}, "channel_axis": {"operator": Blur(), "sigma": 0.1, "channel_axis": 0},
        "rows, columns": {"blur": np.ones(3)}, "negative": {"blur": [[-1.0, 2.0]]}, "iteration": {"blur": "box:3", "iterations": 0},
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=match):
            proxlift.restore(SEEN, **call)
    with pytest.raises(TypeError, match="bool"):
        proxlift.restore(SEEN, inpaint=SEEN)
    with pytest.raises(FileNotFoundError):
        proxlift.restore(SEEN, blur="box:3", prior="nothing")
    with pytest.raises(ValueError, match="2 channels"):
        proxlift.restore(np.stack([SEEN, SEEN]), Blur(), 0.1)
