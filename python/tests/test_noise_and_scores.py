"""Estimates of noise, and scores."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from conftest import noisy

import proxlift


@pytest.mark.parametrize("sigma", [0.02, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_white_noise_is_found(photograph, sigma, dtype):
    z = (photograph / 255 + np.random.default_rng(0).normal(0, sigma, photograph.shape)).astype(dtype)
    noise = proxlift.estimate_noise(z)
    assert noise.kind == "gaussian" and abs(noise.sigma / sigma - 1) < 0.2
    assert proxlift.estimate_sigma(z) == noise.sigma
    assert "white" in str(noise) and len(noise.spectrum[0]) > 2
    assert pickle.loads(pickle.dumps(noise)) == noise


def test_levels_of_channels(colours):
    rng = np.random.default_rng(0)
    z = colours / 255 + rng.normal(0, 1, colours.shape) * [0.05, 0.1, 0.2]
    levels = proxlift.estimate_sigma(z, channel_axis=-1)
    assert np.allclose(levels, [0.05, 0.1, 0.2], rtol=0.25)
    assert proxlift.estimate_sigma(z, average_sigmas=True, channel_axis=-1) == pytest.approx(np.mean(levels))
    assert len(proxlift.estimate_noise(z, channel_axis=-1).levels) == 3


@pytest.mark.parametrize("gain", [0.5, 1.0, 4.0])
def test_counts_are_found(gain):
    rng = np.random.default_rng(1)
    clean, _ = noisy((256, 256))
    z = gain * rng.poisson(80 * clean + 4)
    noise = proxlift.estimate_noise(z)
    assert noise.kind.startswith("poisson") and abs(noise.variances[0].b / gain - 1) < 0.25
    assert noise.variances[0](100.0) == pytest.approx(noise.variances[0].a + 100 * noise.variances[0].b)


def test_estimates_of_what_is_not_one_image():
    with pytest.raises(ValueError, match="one image"):
        proxlift.estimate_noise(np.zeros((2, 16, 16)))
    with pytest.raises(ValueError):
        proxlift.estimate_noise(np.zeros((16, 16)), noise="snow")


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32, np.float64])
def test_scores_are_those_of_scikit_image(photograph, dtype):
    metrics = pytest.importorskip("skimage.metrics")
    clean = photograph / 255
    z = np.clip(clean + np.random.default_rng(0).normal(0, 0.05, clean.shape), 0, 1)
    scale = 1 if np.dtype(dtype).kind == "f" else np.iinfo(dtype).max
    a, b = (clean * scale).astype(dtype), (z * scale).astype(dtype)
    data_range = 1 if scale == 1 else None
    theirs = metrics.peak_signal_noise_ratio(a, b, data_range=scale)
    assert proxlift.psnr(a, b, data_range=data_range) == pytest.approx(theirs, abs=1e-4)
    theirs = metrics.structural_similarity(
        a, b, data_range=scale, gaussian_weights=True, sigma=1.5, use_sample_covariance=False
    )
    assert proxlift.ssim(a, b, data_range=data_range) == pytest.approx(theirs, abs=2e-4)


def test_scores_in_colour(colours):
    metrics = pytest.importorskip("skimage.metrics")
    a = colours / 255
    b = a + np.random.default_rng(0).normal(0, 0.05, a.shape)
    ours = proxlift.ssim(a, b, data_range=1, channel_axis=-1)
    theirs = metrics.structural_similarity(
        a, b, data_range=1, gaussian_weights=True, sigma=1.5, use_sample_covariance=False, channel_axis=-1
    )
    assert ours == pytest.approx(theirs, abs=1e-4)


def test_wrong_scores():
    a = np.zeros((16, 16))
    assert proxlift.psnr(a, a, data_range=1) == float("inf")
    for call in (
        lambda: proxlift.psnr(a, a), lambda: proxlift.psnr(a, a[1:], data_range=1),
        lambda: proxlift.psnr(a, a, data_range=0), lambda: proxlift.ssim(a[:5], a[:5], data_range=1),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            call()
