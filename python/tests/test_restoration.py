"""Plug-and-play with operators of all kinds: they give the same picture, and a better one."""

import numpy as np
import pytest
from proxlift import restoration

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
