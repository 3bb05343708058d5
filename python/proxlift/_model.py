"""Trained networks."""

from __future__ import annotations

import base64
import html
import os
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from . import _proxlift
from ._denoise import check_model_name, denoise

Floats = NDArray[np.float32]


class Model:
    """A trained network with what its users must know of it. It does not change; `replace` makes another one.

    Examples
    --------
    >>> import proxlift
    >>> model = proxlift.Model.load("small")
    >>> model
    <proxlift.Model: K=8, J=27, 3x3 kernels, stride 2, grey, ...>
    >>> model.theta.shape, round(255 * model.sigma)
    ((9, 27, 4, 3, 3), 25)
    """

    __slots__ = ("_native",)
    _native: _proxlift.Model

    def __init__(self) -> None:
        raise TypeError("use Model.load, Model.from_arrays or proxlift.train")

    @classmethod
    def _of(cls, native: _proxlift.Model) -> Model:
        model = cls.__new__(cls)
        model._native = native
        return model

    @classmethod
    def load(cls, name: str | os.PathLike[str], *, channels: int = 1) -> Model:
        """A built-in model, ``"best"``, ``"small"`` or ``"photo"``, for 1 or 3 channels; or a model file.

        Raises
        ------
        FileNotFoundError
            If there is neither.
        ValueError
            If the file is no model of proxlift, or damaged.
        """
        path = os.fspath(name)
        check_model_name(path)
        return cls._of(_proxlift.Model.load(path, channels))

    @classmethod
    def from_bytes(cls, data: bytes) -> Model:
        """The model of a file's contents."""
        return cls._of(_proxlift.Model.from_bytes(data))

    @classmethod
    def from_arrays(
        cls,
        theta: ArrayLike,
        tau: ArrayLike,
        *,
        knots: ArrayLike | None = None,
        slopes: ArrayLike | None = None,
        lam: ArrayLike | None = None,
        synthesis: ArrayLike | None = None,
        unrolling: str = "dual-forward-backward",
        bounded: bool = False,
        border: int = 0,
        step_scale: float = 1.0,
        sigma: float = 0.0,
        noise: str = "white",
        provenance: dict[str, str] | None = None,
    ) -> Model:
        """A model from its parameters.

        Parameters
        ----------
        theta : array_like, (K + 1, J, C, k, k)
            The filters of all operators. With 4 C channels they are of stride 2: each set of four is the phases of a kernel
            of 2k x 2k, as `torch.nn.functional.pixel_unshuffle` takes it apart.
        tau : array_like, (K - 1,)
            The steps.
        knots, slopes : array_like, (K - 1, J, M) and (K - 1, J, M + 1)
            The activations: odd, piecewise linear, with ``slopes[..., m]`` between the knots ``m - 1`` and ``m``.
        lam : array_like, (J,) or a number
            Instead of them, the thresholds of the paper's clip, the same in all layers.
        synthesis : array_like, (K - 1, J, C, k, k), optional
            The filters of the synthesis of layers 1 to K - 1; without it, it is the adjoint of the analysis.
        unrolling : str
            ``"dual-forward-backward"``, ``"inertial"``, ``"chambolle-pock"``, ``"chambolle-pock-accelerated"`` or
            ``"averaged-dual-forward-backward"``.
        bounded : bool
            Whether the estimate stays in [0, 1] in every layer.
        border : int
            Mirrored pixels that the network is given around an image.
        step_scale : float
            How many times the steps are as long as convergence allows; not used by the network itself.
        sigma : float
            The noise level that it was trained for; 0 if that is not known, and then it cannot follow another one.
        noise : {"white", "camera", "own"}
            The noise that it was trained for.
        provenance : dict of str
            How it came to be.
        """
        theta = np.asarray(theta, np.float32)
        tau = np.asarray(tau, np.float32)
        if theta.ndim != 5:
            raise ValueError(f"theta has the shape {theta.shape}, but it must be (K + 1, J, C, k, k)")
        if tau.ndim != 1:
            raise ValueError(f"tau has the shape {tau.shape}, but it must be (K - 1,)")
        if synthesis is not None:
            synthesis = np.asarray(synthesis, np.float32)
            if synthesis.ndim != 5:
                raise ValueError(f"synthesis has the shape {synthesis.shape}, but it must be (K - 1, J, C, k, k)")
        if (lam is None) == (knots is None) or (knots is None) != (slopes is None):
            raise ValueError("give either lam, or knots and slopes")
        if lam is not None:
            clip = np.broadcast_to(np.asarray(lam, np.float32), theta.shape[1:2])
            knots = np.broadcast_to(clip[:, np.newaxis], (len(tau), *clip.shape, 1))
            slopes = np.broadcast_to(np.array([1, 0], np.float32), (len(tau), *clip.shape, 2))
        activations = [np.asarray(part, np.float32) for part in (knots, slopes)]
        if any(part.ndim != 3 for part in activations):
            raise ValueError("knots must be (K - 1, J, M) and slopes (K - 1, J, M + 1)")
        return cls._of(
            _proxlift.Model.from_arrays(
                theta,
                tau,
                *activations,
                synthesis=synthesis,
                unrolling=unrolling,
                bounded=bounded,
                border=border,
                step_scale=step_scale,
                sigma=sigma,
                noise=noise,
                provenance=dict(provenance or {}),
            )
        )

    def replace(self, **changes: Any) -> Model:
        """A copy with other parameters: any arguments of `from_arrays`."""
        names = "theta synthesis tau knots slopes unrolling bounded border step_scale sigma noise provenance".split()
        if "lam" in changes:
            names = [name for name in names if name not in ("knots", "slopes")]
        return Model.from_arrays(**{**{name: getattr(self, name) for name in names}, **changes})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to a file, all or nothing."""
        self._native.save(os.fspath(path))

    def to_bytes(self) -> bytes:
        """The contents of its file."""
        return self._native.to_bytes()

    def to_onnx(self, path: str | os.PathLike[str]) -> None:
        """Write the model as ONNX, for onnxruntime and others.

        Its inputs are ``image``, (N, C, H, W) of any size, where white is 1, and ``sigma``, (N,), the noise level of each
        image; its output is ``denoised``. A model that does not know its level has no ``sigma``.
        """
        self._native.save_onnx(os.fspath(path))

    def denoise(self, image: ArrayLike, sigma: ArrayLike | None = None, **settings: Any) -> NDArray[Any]:
        """`proxlift.denoise` with this model."""
        return denoise(image, sigma, model=self, **settings)

    @property
    def theta(self) -> Floats:
        """The filters, (K + 1, J, C, k, k)."""
        return self._native.theta

    @property
    def synthesis(self) -> Floats | None:
        """The filters of the synthesis of layers 1 to K - 1, (K - 1, J, C, k, k); None where it is the adjoint."""
        return self._native.synthesis

    @property
    def tau(self) -> Floats:
        """The steps, (K - 1,)."""
        return self._native.tau

    @property
    def knots(self) -> Floats:
        """The knots of the activations, (K - 1, J, M)."""
        return self._native.knots

    @property
    def slopes(self) -> Floats:
        """The slopes of the activations, (K - 1, J, M + 1)."""
        return self._native.slopes

    @property
    def depth(self) -> int:
        """K, the number of layers."""
        return self._native.sizes[0]

    @property
    def features(self) -> int:
        """J, the features of a layer."""
        return self._native.sizes[1]

    @property
    def kernel(self) -> int:
        """k, the side of the kernels."""
        return self._native.sizes[2]

    @property
    def channels(self) -> int:
        """C, 1 for grey and 3 for colour."""
        return self._native.sizes[3]

    @property
    def stride(self) -> int:
        """The stride of the convolutions: 1, or 2 where the layers see the four phases of an image as so many channels."""
        return self._native.stride

    @property
    def parameters(self) -> int:
        """The numbers that training moves."""
        return self._native.parameters

    @property
    def receptive_radius(self) -> int:
        """How far, in pixels, an output pixel sees."""
        return self._native.receptive_radius

    @property
    def sigma(self) -> float:
        """The noise level that it was trained for; 0 if that is not known."""
        return self._native.sigma

    @property
    def noise(self) -> str:
        """The noise that it was trained for: white, camera or own."""
        return self._native.noise

    @property
    def unrolling(self) -> str:
        """The algorithm that it is unrolled from."""
        return self._native.unrolling

    @property
    def bounded(self) -> bool:
        """Whether the estimate stays in [0, 1] in every layer."""
        return self._native.bounded

    @property
    def border(self) -> int:
        """Mirrored pixels that it is given around an image."""
        return self._native.border

    @property
    def step_scale(self) -> float:
        """How many times its steps are as long as convergence allows."""
        return self._native.step_scale

    @property
    def memory(self) -> list[tuple[float, float, float]]:
        """alpha, beta and gamma of layers 1 to K: inertia, memory and extrapolation."""
        return self._native.memory

    @property
    def provenance(self) -> dict[str, str]:
        """How it came to be."""
        return self._native.provenance

    def __reduce__(self) -> tuple[Any, tuple[bytes]]:
        return Model.from_bytes, (self.to_bytes(),)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Model) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        return f"<proxlift.Model: {self._native.describe()}>"

    def filters_png(self) -> bytes:
        """A picture of all filters as PNG: a row for each operator, grey is zero."""
        return self._native.filters_png()

    def _repr_html_(self) -> str:
        rows = {
            "network": self._native.describe(),
            "parameters": f"{self.parameters:,}",
            "receptive field": f"{2 * self.receptive_radius + 1} x {2 * self.receptive_radius + 1} pixels",
            "trained for": f"{self.noise} noise, sigma {self.sigma:.4f} ({255 * self.sigma:.1f}/255)",
            **self.provenance,
        }
        table = "".join(f"<tr><th>{html.escape(k)}</th><td>{html.escape(v)}</td></tr>" for k, v in rows.items())
        picture = base64.b64encode(self.filters_png()).decode()
        style = "max-width:100%;image-rendering:pixelated"
        return (
            f"<table><caption>proxlift.Model</caption>{table}</table>"
            f'<img alt="all filters, a row for each operator" style="{style}" src="data:image/png;base64,{picture}">'
        )
