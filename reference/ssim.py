"""Golden values for SSIM and PSNR, from scikit-image.

    python3 reference/ssim.py > crates/proxlift/tests/data/ssim.json

The images are a formula that crates/proxlift/tests/metrics_golden.rs computes again.
"""

import json

import numpy as np
from skimage.metrics import peak_signal_noise_ratio, structural_similarity


def uniform(count, seed):
    """Numbers in [0, 1) from the 32-bit linear congruential generator of Numerical Recipes."""
    state, out = seed, np.empty(count)
    for i in range(count):
        state = (1664525 * state + 1013904223) % 2**32
        out[i] = state / 2**32
    return out


def images(channels, height, width, level, seed):
    c, y, x = np.meshgrid(np.arange(channels), np.arange(height), np.arange(width), indexing="ij")
    clean = 0.5 + 0.3 * np.sin(0.21 * x + 0.5 * c) * np.cos(0.13 * y) + 0.1 * ((x // 7 + y // 5) % 2)
    noise = uniform(clean.size, seed).reshape(clean.shape) - 0.5
    return clean, clean + level * noise


def case(channels, height, width, level, seed):
    clean, noisy = images(channels, height, width, level, seed)
    ssim = structural_similarity(
        clean if channels > 1 else clean[0],
        noisy if channels > 1 else noisy[0],
        gaussian_weights=True,
        sigma=1.5,
        use_sample_covariance=False,
        data_range=1.0,
        channel_axis=0 if channels > 1 else None,
    )
    return {
        "channels": channels,
        "height": height,
        "width": width,
        "level": level,
        "seed": seed,
        "ssim": float(ssim),
        "psnr": float(peak_signal_noise_ratio(clean, noisy, data_range=1.0)),
        "psnr_clean_maximum": float(peak_signal_noise_ratio(clean, noisy, data_range=clean.max())),
    }


CASES = [
    (1, 11, 11, 0.2, 1),
    (1, 12, 31, 0.05, 2),
    (1, 64, 64, 0.35, 3),
    (1, 65, 37, 1.0, 4),
    (3, 29, 43, 0.35, 5),
    (3, 80, 60, 0.1, 6),
]

if __name__ == "__main__":
    print(json.dumps([case(*c) for c in CASES], indent=2))
