"""Blocks of a lazy array have the bits of the whole array denoised at once."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proxlift

da = pytest.importorskip("dask.array", reason="dask is not installed")
lazy = pytest.importorskip("proxlift.dask")

RADIUS = proxlift.Model.load("small").receptive_radius
DTYPES = [np.uint8, np.uint16, np.float16, np.float32, np.float64]


def picture(*shape: int, dtype: Any = np.float32, seed: int = 1) -> np.ndarray:
    """Edges and shades of the last two axes under noise of level 0.1."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: shape[-2], : shape[-1]]
    clean = 0.25 + 0.25 * np.sin(y / 17) * np.cos(x / 11) + 0.25 * ((x + 2 * y) // 23 % 2)
    noisy = np.clip(clean + 0.1 * rng.standard_normal(shape), 0, 1)
    if np.dtype(dtype).kind == "u":
        return np.round(noisy * np.iinfo(dtype).max).astype(dtype)
    return noisy.astype(dtype)


def check(array: np.ndarray, chunks: Any, sigma: Any = None, **settings: Any) -> None:
    """Compare with the whole, computed at once, in bits, chunks and type."""
    settings = {"model": "small", **settings}
    noisy = da.from_array(array, chunks=chunks)
    result = lazy.denoise(noisy, sigma, **settings)
    whole = proxlift.denoise(array, np.asarray(sigma) if isinstance(sigma, da.Array) else sigma, **settings)
    assert result.chunks == noisy.chunks
    computed = result.compute()
    assert computed.dtype == result.dtype == whole.dtype
    np.testing.assert_array_equal(computed, whole)
    scale = np.iinfo(array.dtype).max if array.dtype.kind == "u" else 1
    assert not np.array_equal(computed, array / scale), "nothing was done"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("sigma", [None, 0.1])
def test_types_at_odd_places(dtype: Any, sigma: float | None) -> None:
    check(picture(237, 211, dtype=dtype), ((65, 67, 105), (71, 69, 71)), sigma)


@pytest.mark.parametrize("first", range(64, 70))
def test_chunks_that_begin_at_any_row_and_column(first: int) -> None:
    check(picture(150, 151), ((first, 150 - first), (first + 1, 150 - first)), 0.1)


@pytest.mark.parametrize("chunks", [7, RADIUS - 1, (1, 200), ((3, 230, 4), (90, 1, 120))])
def test_chunks_smaller_than_what_a_pixel_sees(chunks: Any) -> None:
    check(picture(237, 211), chunks, 0.1)


def test_pictures_smaller_than_what_a_pixel_sees() -> None:
    for height, width in [(1, 1), (2, 300), (300, 1), (9, 7), (65, 63)]:
        check(picture(height, width), 5, 0.1)


def test_colour() -> None:
    check(picture(3, 171, 163), (1, 67, 81), 0.1, channel_axis=0)
    last = np.ascontiguousarray(np.moveaxis(picture(3, 171, 163, dtype=np.uint8), 0, -1))
    check(last, (67, 81, 3), channel_axis=-1)
    check(last, (67, 81, 2), 0.1, channel_axis=-1)


def test_other_channels() -> None:
    check(picture(2, 151, 143), (1, 67, 81), channel_axis=0)
    check(picture(3, 151, 4, 143), (2, 67, 3, 81), 0.1, channel_axis=2)


def test_a_grey_model_takes_the_channels_of_a_colour_picture() -> None:
    grey = proxlift.Model.load("small")
    for sigma in [None, 0.1]:
        check(picture(3, 171, 163), (1, 67, 81), sigma, channel_axis=0, model=grey)


def test_stacks_page_by_page() -> None:
    # Each page has noise of its own.
    strength = np.array([0.5, 1.0, 2.0, 3.0, 4.0], np.float32)[:, None, None]
    stack = 0.5 + strength * (picture(5, 137, 141) - 0.5)
    for chunks in [(2, 67, 71), (1, 137, 141), (5, 65, 65)]:
        check(stack, chunks)
    check(stack, (2, 67, 71), np.array([0.05, 0.1, 0.2, 0.3, 0.4]))
    check(stack.reshape(5, 1, 137, 141), (2, 1, 67, 71), da.from_array(np.full((5, 1), 0.1), chunks=1))


def test_maps() -> None:
    level = np.linspace(0, 0.3, 141)
    check(picture(137, 141), (67, 71), np.broadcast_to(level, (137, 141)))
    check(picture(2, 137, 141), (1, 67, 71), da.from_array(level, chunks=50))
    check(picture(2, 3, 137, 141), (1, 3, 67, 71), np.broadcast_to(level, (137, 141)), channel_axis=1)
    check(picture(2, 137, 141), (1, 67, 71), np.broadcast_to(level, (137, 141)), channel_axis=0)


def test_a_map_that_is_constant_in_a_block_but_not_in_its_page() -> None:
    level = np.where(np.arange(201) < 100, 0.13, 0.21)
    check(picture(137, 201), (137, 67), np.broadcast_to(level, (137, 201)))
    constant = np.full(201, 0.13)
    for axis, shape in [(None, (2, 137, 201)), (1, (2, 3, 137, 201)), (1, (2, 2, 137, 201))]:
        maps = np.stack([level, constant])[:, None, :]
        check(picture(*shape), (2, *shape[1:-1], 67), np.broadcast_to(maps, (2, 137, 201)), channel_axis=axis)


def test_levels_that_are_not_known_yet() -> None:
    level = da.from_array(np.array(0.1), chunks=())
    check(picture(137, 141), (67, 71), level)
    check(picture(2, 137, 141), (1, 67, 71), level)


def test_counts() -> None:
    counts = np.random.default_rng(2).poisson(80 * picture(3, 171, 163)).astype(np.uint16)
    check(counts, (2, 67, 81), noise="poisson", gain=1)
    check(counts, (2, 67, 81), noise="poisson-gaussian")
    check(counts, (2, 67, 81))
    counts[1] = 0
    check(counts, (2, 67, 81), noise="poisson")


def test_the_noise_of_a_large_page_is_estimated_from_the_same_rows() -> None:
    # Noise that grows from top to bottom, in a page of which the estimate sees some bands.
    height, width = 4500, 1000
    page = picture(height, width)
    page += (np.linspace(0, 0.3, height)[:, None] * picture(height, width, seed=2)).astype(np.float32)
    check(page, (1111, 1000))


def test_the_model_that_suits_the_noise() -> None:
    # Noise of a camera is soft: in colour it takes another model than white noise does.
    grain = np.random.default_rng(3).standard_normal((3, 417, 413))
    soft = sum(np.roll(grain, (i, j), (1, 2)) for i in range(2) for j in range(2)) / 2
    noisy = (0.5 + 0.2 * np.sin(np.arange(417) / 40)[:, None] + 0.05 * soft).astype(np.float32)
    assert proxlift.estimate_noise(noisy, channel_axis=0).kind == "camera"
    check(noisy, (3, 211, 413), channel_axis=0, model="best")


@pytest.mark.parametrize("settings", [{"strength": 1.7}, {"clip": True}, {"clip": False}, {"noise": "gaussian"}])
def test_settings(settings: dict[str, Any]) -> None:
    check(picture(137, 141, dtype=np.uint8), (67, 71), **settings)


def test_a_network_with_a_border_of_its_own() -> None:
    small = proxlift.Model.load("small")
    for border in [0, 2, RADIUS // 2 * 2]:
        check(picture(237, 211), (67, 71), 0.1, model=small.replace(border=border))


def test_zarr_in_and_out(tmp_path: Path) -> None:
    pytest.importorskip("zarr", reason="zarr is not installed")
    stack = picture(3, 137, 141, dtype=np.uint16)
    da.from_array(stack, chunks=(1, 67, 71)).to_zarr(str(tmp_path / "noisy.zarr"))
    noisy = da.from_zarr(str(tmp_path / "noisy.zarr"))
    lazy.denoise(noisy, model="small").to_zarr(str(tmp_path / "clean.zarr"))
    clean = da.from_zarr(str(tmp_path / "clean.zarr"))
    assert clean.chunksize == (1, 67, 71)
    np.testing.assert_array_equal(clean, proxlift.denoise(stack, model="small"))


def test_nothing_is_computed_before_it_is_asked_for() -> None:
    seen = []

    def load(block_info: Any = None) -> np.ndarray:
        (place,) = [info["array-location"] for key, info in block_info.items() if key is None]
        seen.append(place)
        return picture(*(stop - start for start, stop in place))

    noisy = da.map_blocks(load, chunks=((256,) * 8, (256,) * 8), meta=np.empty((0, 0), np.float32))
    result = lazy.denoise(noisy, 0.1, model="small")
    assert not seen
    result[:100, :100].compute()
    assert {place[0][0] for place in seen} == {0, 256} == {place[1][0] for place in seen}, "more than the neighbours"


def test_a_model_file_is_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "own.safetensors"
    proxlift.Model.load("small").save(path)
    noisy = picture(137, 141)
    results = [lazy.denoise(da.from_array(noisy, chunks=67), 0.1, model=model) for model in (path, str(path))]
    path.unlink()
    for result in results:
        np.testing.assert_array_equal(result, proxlift.denoise(noisy, 0.1, model="small"))
    assert results[0].name == results[1].name, "the same graph has the same name"


@pytest.mark.parametrize(
    ("shape", "settings"),
    [
        ((20,), {}),
        ((20, 20), {"sigma": -1.0}),
        ((20, 20), {"model": "no-such-model"}),
        ((20, 20), {"noise": "no-such-noise"}),
        ((20, 20), {"strength": -1.0}),
        ((4, 20, 20), {"sigma": np.ones(3)}),
        ((20, 20, 20), {"channel_axis": 3}),
    ],
)
def test_what_is_wrong_is_refused_at_once(shape: tuple[int, ...], settings: dict[str, Any]) -> None:
    with pytest.raises((ValueError, OSError)):
        lazy.denoise(da.zeros(shape, chunks=10), **settings)


def test_a_cluster(tmp_path: Path) -> None:
    distributed = pytest.importorskip("distributed", reason="distributed is not installed")
    own = proxlift.Model.load("small").replace(border=8)
    stack = picture(2, 237, 211, dtype=np.uint16)
    noisy = da.from_array(stack, chunks=(1, 101, 99))
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        distributed.LocalCluster(**options, local_directory=str(tmp_path)) as cluster,
        distributed.Client(cluster) as client,
    ):
        for model in [own, "small"]:
            result = lazy.denoise(noisy, model=model).compute()
            np.testing.assert_array_equal(result, proxlift.denoise(stack, model=model))
        assert set(client.run(_threads).values()) == {1}, "workers compute with the threads that they were given"


def _threads() -> int:
    return proxlift.threads()


def test_models_travel_as_pickles() -> None:
    model = pickle.loads(pickle.dumps(proxlift.Model.load("small")))
    check(picture(137, 141), (67, 71), 0.1, model=model)
