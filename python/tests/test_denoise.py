"""`proxlift.denoise` and its kin: conventions, shapes, types, levels."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import noisy

import proxlift

FAST = {"model": "small"}


@pytest.mark.parametrize("model", ["best", "small", "photo"])
@pytest.mark.parametrize("channel_axis", [None, -1])
def test_noise_goes(model, channel_axis):
    clean, z = noisy((3, 96, 96) if channel_axis else (96, 96))
    if channel_axis:
        clean, z = np.moveaxis(clean, 0, -1), np.moveaxis(z, 0, -1)
    for sigma in (None, 0.1):
        x = proxlift.denoise(z, sigma, model=model, channel_axis=channel_axis)
        gain = proxlift.psnr(clean, x, data_range=1) - proxlift.psnr(clean, z, data_range=1)
        assert x.shape == z.shape and gain > (3 if model == "photo" else 6)  # photo is not for white noise


@pytest.mark.parametrize(
    ("dtype", "result"),
    [
        ("float32", "float32"), ("float64", "float64"), ("float16", "float32"), ("longdouble", "float64"),
        ("uint8", "float64"), ("uint16", "float64"), (">f4", "float32"), (">f8", "float64"), (">u2", "float64"),
        ("int16", "float64"), ("int32", "float64"), ("uint32", "float64"), ("bool", "float64"),
    ],
)  # fmt: skip
def test_types_follow_scikit_image(dtype, result):
    skimage = pytest.importorskip("skimage")
    _, z = noisy((40, 40))
    dtype = np.dtype(dtype)
    scale = np.iinfo(dtype).max if dtype.kind in "ui" else 1
    image = (np.clip(z, 0, 1) * scale).astype(dtype) if dtype.kind != "b" else z > 0.5
    x = proxlift.denoise(image, 0.1, **FAST)
    native = image.astype(float if dtype == np.longdouble else dtype.newbyteorder("="))
    expected = proxlift.denoise(skimage.util.img_as_float64(native), 0.1, **FAST)
    if dtype.kind in "ui":
        expected = expected.clip(0, 1)
    assert x.dtype == result
    np.testing.assert_allclose(x, expected, atol=2e-6)


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, complex, object, "U3", "datetime64[s]"])
def test_types_without_a_white_are_refused(dtype):
    with pytest.raises(TypeError):
        proxlift.denoise(np.zeros((8, 8)).astype(dtype))


def test_masked_arrays_are_refused():
    with pytest.raises(TypeError, match="fill"):
        proxlift.denoise(np.ma.masked_less(np.ones((8, 8)), 0))


@pytest.mark.parametrize("shape", [(), (5,), (0, 5), (5, 0), (0,), (3, 0, 4, 4)])
def test_what_is_no_image_is_refused(shape):
    with pytest.raises(ValueError):
        proxlift.denoise(np.zeros(shape))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_values_that_are_not_finite_are_refused_by_their_place(bad, dtype):
    z = np.zeros((70, 20), dtype)
    z[66, 7] = bad
    with pytest.raises(ValueError, match="row 66, column 7"):
        proxlift.denoise(z)
    with pytest.raises(ValueError, match="row 66, column 7"):
        proxlift.denoise_tv(z, 0.1)
    with pytest.raises(ValueError):
        proxlift.estimate_noise(z)


@pytest.mark.parametrize("size", [(1, 1), (1, 7), (7, 1), (2, 2), (5, 3), (31, 37), (65, 64)])
@pytest.mark.parametrize("channels", [1, 3])
def test_every_size(size, channels):
    _, z = noisy((channels, *size))
    x = proxlift.denoise(z, 0.1, channel_axis=0, **FAST)
    assert x.shape == z.shape and np.isfinite(x).all()
    assert proxlift.denoise(z, channel_axis=0, **FAST).shape == z.shape


@pytest.mark.parametrize(
    "view",
    [
        lambda a: a[::-1], lambda a: a[:, ::-1], lambda a: a.T, lambda a: a[::2, 1::3], lambda a: np.asfortranarray(a),
        lambda a: np.broadcast_to(a[:1], a.shape), lambda a: np.lib.stride_tricks.as_strided(a, (9, 9), (8, 8)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_views_are_read_where_they_lie(view, dtype):
    _, z = noisy((48, 40))
    z = z.astype(dtype) if dtype != np.uint8 else (z.clip(0, 1) * 255).astype(np.uint8)
    part = view(np.ascontiguousarray(z, np.float64).astype(dtype))
    part.flags.writeable = False
    before = part.copy()
    x = proxlift.denoise(part, 0.1, **FAST)
    np.testing.assert_array_equal(x, proxlift.denoise(part.copy(order="C"), 0.1, **FAST))
    np.testing.assert_array_equal(part, before)


@pytest.mark.parametrize("shape", [(2, 24, 20), (2, 3, 24, 20), (1, 1, 24, 20)])
def test_leading_axes_are_a_batch(shape):
    _, z = noisy(shape)
    x = proxlift.denoise(z, **FAST)
    for at in np.ndindex(shape[:-2]):
        np.testing.assert_array_equal(x[at], proxlift.denoise(z[at], **FAST))


@pytest.mark.parametrize("axis", [0, 1, 2, 3, -1, -2, -3, -4])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_channels_may_be_anywhere(axis, channels):
    _, z = noisy((2, channels, 20, 24))
    expected = proxlift.denoise(z, 0.1, channel_axis=1, **FAST)
    moved = np.moveaxis(z, 1, axis)
    x = proxlift.denoise(moved, 0.1, channel_axis=axis, **FAST)
    np.testing.assert_array_equal(np.moveaxis(x, axis, 1), expected)
    if channels != 3:
        np.testing.assert_array_equal(expected[1, -1], proxlift.denoise(z[1, -1], 0.1, **FAST))


@pytest.mark.parametrize("axis", [5, -4])
def test_an_axis_that_is_not_there(axis):
    with pytest.raises(ValueError, match="channel_axis"):
        proxlift.denoise(np.zeros((4, 4, 3)), channel_axis=axis)


def test_a_level_for_each_image():
    _, z = noisy((2, 3, 24, 20))
    levels = np.array([[0.1, 0.2, 0.05], [0.0, 0.1, 0.3]])
    x = proxlift.denoise(z, levels, **FAST)
    for at in np.ndindex(2, 3):
        np.testing.assert_array_equal(x[at], proxlift.denoise(z[at], levels[at], **FAST))
    np.testing.assert_array_equal(x[1, 0], z[1, 0].astype(np.float32))


@pytest.mark.parametrize("sigma", [np.float32(0.1), np.array(0.1), np.array([0.1]), [0.1], 1])
def test_numbers_in_every_form(sigma):
    _, z = noisy((24, 20))
    np.testing.assert_array_equal(
        proxlift.denoise(z, sigma, **FAST), proxlift.denoise(z, float(np.asarray(sigma).item()), **FAST)
    )


@pytest.mark.parametrize("sigma", [-0.1, np.nan, np.inf, "0.1", [0.1, 0.2], np.zeros((3, 3)), 1j])
def test_levels_that_are_none(sigma):
    with pytest.raises((ValueError, TypeError)):
        proxlift.denoise(np.zeros((24, 20)), sigma)


def test_a_level_for_another_scale_is_refused():
    with pytest.raises(ValueError, match="25"):
        proxlift.denoise(np.zeros((24, 20), np.uint8), 25)


def test_a_constant_map_is_its_number():
    _, z = noisy((40, 36))
    np.testing.assert_array_equal(
        proxlift.denoise(z, np.full(z.shape, 0.1), **FAST), proxlift.denoise(z, np.float32(0.1), **FAST)
    )


def test_a_map_blends_between_levels():
    """By its definition: linear between the levels 2^(i/4) around each pixel's own."""
    _, z = noisy((48, 40))
    levels = np.geomspace(0.02, 0.3, 40, dtype=np.float32)[np.newaxis].repeat(48, 0)
    expected = np.zeros_like(z)
    low = np.floor(4 * np.log2(levels.astype(float)))
    for i in np.unique([low, low + 1]):
        share = np.maximum(0, 1 - np.where(
            low == i, (levels - 2 ** (i / 4)) / (2 ** ((i + 1) / 4) - 2 ** (i / 4)),
            (2 ** (i / 4) - levels) / (2 ** (i / 4) - 2 ** ((i - 1) / 4)),
        ))  # fmt: skip
        share[(low != i) & (low + 1 != i)] = 0
        expected += share * proxlift.denoise(z, 2 ** (i / 4), **FAST)
    np.testing.assert_allclose(proxlift.denoise(z, levels, **FAST), expected, atol=2e-6)


def test_a_map_costs_little(photograph):
    """Half-way between two levels of the grid, against that level itself."""
    clean, level = photograph / 255, 2 ** (-13.5 / 4)
    z = clean + np.random.default_rng(0).normal(0, level, clean.shape)
    levels = np.full(clean.shape, level)
    levels[0, 0] *= 1.001
    exact, blended = (proxlift.psnr(clean, proxlift.denoise(z, sigma), data_range=1) for sigma in (level, levels))
    assert abs(exact - blended) < 0.03


@pytest.mark.parametrize("channel_axis", [None, 0])
def test_maps_broadcast_and_leave_quiet_places_alone(channel_axis):
    _, z = noisy((3, 32, 40))
    levels = np.zeros((32, 40))
    levels[:, 20:] = 0.1
    x = proxlift.denoise(z, levels, channel_axis=channel_axis, **FAST)
    np.testing.assert_array_equal(x[..., :20], z[..., :20].astype(np.float32))
    assert np.abs(x - z)[..., 20:].mean() > 0.02
    row = proxlift.denoise(z, levels[:1], channel_axis=channel_axis, **FAST)
    np.testing.assert_array_equal(row, x)


def test_a_map_of_total_variation():
    _, z = noisy((32, 40))
    levels = np.zeros((32, 40))
    levels[:, 20:] = 0.1
    x = proxlift.denoise_tv(z, sigma=levels)
    np.testing.assert_array_equal(x[:, :20], z[:, :20].astype(np.float32))
    assert np.abs(x - z)[:, 20:].mean() > 0.02


def test_strength_and_clip():
    clean, z = noisy((40, 40), sigma=0.4)
    assert (proxlift.denoise(z, 0.4, strength=0, **FAST) == z.astype(np.float32)).all()
    plain, clipped = proxlift.denoise(z, 0.1, **FAST), proxlift.denoise(z, 0.1, clip=True, **FAST)
    assert plain.min() < 0 or plain.max() > 1
    np.testing.assert_array_equal(clipped, plain.clip(0, 1))
    more = proxlift.denoise(z, 0.2, strength=2, **FAST)
    np.testing.assert_allclose(more, proxlift.denoise(z, 0.4, **FAST), atol=1e-6)


def test_counts():
    rng = np.random.default_rng(0)
    clean, _ = noisy((96, 96))
    counts = rng.poisson(60 * clean + 5).astype(np.float32)
    truth = 60 * clean + 5
    errors = {
        kind: np.mean((proxlift.denoise(counts, noise=kind) - truth) ** 2) for kind in ("poisson", "gaussian", "auto")
    }
    assert errors["poisson"] < errors["gaussian"] and errors["auto"] < 1.05 * errors["poisson"]
    given = proxlift.denoise(counts, gain=1.0, offset=0.0, read_noise=0.0)
    assert np.mean((given - truth) ** 2) < 1.1 * errors["poisson"]


def test_a_blank_page_of_counts_stays():
    stack = np.zeros((2, 64, 64), np.uint16)
    stack[1] = np.random.default_rng(0).poisson(500, (64, 64))
    for kind in ("poisson", "poisson-gaussian", "auto"):
        x = proxlift.denoise(stack, noise=kind)
        assert (x[0] == 0).all() and x[1].std() < stack[1].std() / 65535


def test_wrong_settings():
    z = np.zeros((16, 16))
    for settings in (
        {"noise": "salt"}, {"strength": -1}, {"strength": np.nan}, {"sigma": 0.1, "noise": "poisson"}, {"gain": -1.0},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            proxlift.denoise(z + np.random.default_rng(0).random((16, 16)), **settings)
    with pytest.raises(FileNotFoundError, match="small, best, photo"):
        proxlift.denoise(z, model="huge")
    with pytest.raises(TypeError):
        proxlift.denoise(z, model=3)
    with pytest.raises(ValueError, match="grey"):
        proxlift.denoise(z, model=proxlift.Model.load("small", channels=3))


def test_a_grey_model_takes_channels_one_by_one():
    _, z = noisy((3, 32, 32))
    model = proxlift.Model.load("small")
    x = proxlift.denoise(z, 0.1, model=model, channel_axis=0)
    np.testing.assert_array_equal(x[1], proxlift.denoise(z[1], 0.1, model=model))


def test_total_variation_is_that_of_scikit_image():
    restoration = pytest.importorskip("skimage.restoration")
    _, z = noisy((48, 48))
    ours = proxlift.denoise_tv(z, 0.1)
    theirs = restoration.denoise_tv_chambolle(z, weight=0.1, eps=1e-9, max_num_iter=20000)
    assert np.abs(ours - theirs).max() < 5e-3
    with pytest.raises(ValueError, match="either"):
        proxlift.denoise_tv(z, 0.1, sigma=0.1)


def test_in_place_of_scikit_image(photograph):
    restoration = pytest.importorskip("skimage.restoration")
    clean = photograph / 255.0
    z = clean + np.random.default_rng(0).normal(0, 0.1, clean.shape)
    invariant = restoration.denoise_invariant(z, proxlift.denoise, denoiser_kwargs={"sigma": 0.1, **FAST})
    assert proxlift.psnr(clean, invariant, data_range=1) > proxlift.psnr(clean, z, data_range=1) + 5
    calibrated, (parameters, losses) = restoration.calibrate_denoiser(
        z, proxlift.denoise, {"sigma": [0.02, 0.1, 0.3], "model": ["small"]}, extra_output=True
    )
    assert parameters[int(np.argmin(losses))]["sigma"] == 0.1
    assert proxlift.psnr(clean, calibrated(z), data_range=1) > 27


def test_turned_is_the_mean_of_eight_orientations():
    _, z = noisy((48, 48))
    turned = proxlift.denoise(z, 0.1, turned=True)
    orientations = [np.rot90(flipped, k) for flipped in (z, z[:, ::-1]) for k in range(4)]
    back = [np.rot90(proxlift.denoise(o, 0.1), -k % 4) for o, k in zip(orientations, [0, 1, 2, 3] * 2, strict=True)]
    mean = np.mean(back[:4] + [x[:, ::-1] for x in back[4:]], axis=0)
    np.testing.assert_allclose(turned, mean, atol=1e-5)
    assert np.abs(turned - proxlift.denoise(z, 0.1)).max() > 1e-4
