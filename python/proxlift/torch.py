"""The networks in PyTorch: a module to train, and the engine as a function that autograd can differentiate.

`Network` computes with PyTorch, on CPU or GPU, in the precision of the module, with gradients in the images, sigma and
all parameters. `denoise` computes with proxlift's engine, on the CPU and in single precision, with gradients in the
images and sigma.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

try:
    import torch
except ImportError as error:
    raise ImportError("proxlift.torch needs PyTorch: install the package torch") from error

import numpy as np
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from proxlift import Model, _proxlift

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

__all__ = ["Network", "denoise"]

Sigma = float | Sequence[float] | np.ndarray | Tensor

#: Below the level of its training, a network changes no pixel by more than so many times the level.
MOST_CHANGE = 6.0

#: Maps of sigma are blended between 0 and the levels 2^(i/4) from this i on.
_LEAST = -48


class Network(torch.nn.Module):
    """A proxlift model as a PyTorch module, with the outputs of the engine to single precision.

    Parameters
    ----------
    model : proxlift.Model
        The network to start from.
    train_tau : bool
        Whether the steps `tau` are parameters too, and not a buffer.

    Attributes
    ----------
    theta, tau : (K + 1, J, C, k, k), (K - 1,)
        The filters of all layers, and the steps.
    knots, slopes : (K - 1, J, M), (K - 1, J, M + 1)
        The activations. Training may move them where they are no proximity operators: `project_` brings them back.
    model : proxlift.Model
        The model that it was made from, which training leaves as it is.

    Examples
    --------
    >>> import torch
    >>> from proxlift.torch import Network
    >>> network = Network.load("small")
    >>> noisy = torch.rand(2, 1, 32, 32)
    >>> network(noisy, sigma=0.1).shape
    torch.Size([2, 1, 32, 32])
    >>> network(noisy, sigma=torch.tensor([0.05, 0.2])).square().mean().backward()
    >>> network.theta.grad.shape == network.theta.shape
    True
    >>> network.to_model().features
    27
    """

    tau: Tensor

    def __init__(self, model: Model, *, train_tau: bool = False) -> None:
        super().__init__()
        self.model = model
        self.theta = torch.nn.Parameter(torch.tensor(model.theta))
        own = model.synthesis
        self.synthesis = None if own is None else torch.nn.Parameter(torch.tensor(own))
        self.knots = torch.nn.Parameter(torch.tensor(model.knots))
        self.slopes = torch.nn.Parameter(torch.tensor(model.slopes))
        if train_tau:
            self.tau = torch.nn.Parameter(torch.tensor(model.tau))
        else:
            self.register_buffer("tau", torch.tensor(model.tau))
        self.memory = [tuple(float(weight) for weight in weights) for weights in model.memory]

    @classmethod
    def load(cls, name: str | PathLike[str], *, channels: int = 1, train_tau: bool = False) -> Network:
        """The network of a built-in model ("best", "small" or "photo", with 1 or 3 channels) or of a model file."""
        return cls(Model.load(name, channels=channels), train_tau=train_tau)

    def forward(self, x: Tensor, sigma: Sigma | None = None) -> Tensor:
        """The denoised images.

        Parameters
        ----------
        x : (N, C, H, W)
            Noisy images, in the precision of the module. A network for grey pictures takes any number of channels, one
            by one.
        sigma : optional
            The noise level: one number, one for each image, (N,) or (N, 1, 1, 1), or a map (N, 1, H, W), whose pixels
            are blended between the levels 0 and 2^(i/4) unless all of an image have the same and need no gradient.
            At 0 an image stays as it is. Without sigma, the level is that of the training.
        """
        _check_images(x, self.model.channels)
        if sigma is not None:
            _check_follows(self.model)
        return self._levels(x, None) if sigma is None else _denoise(x, sigma, self._levels)

    def _levels(self, x: Tensor, sigma: Tensor | None) -> Tensor:
        z, levels = _samples(x, sigma, self.model.channels)
        if sigma is None:
            return self._unrolled(z, None).reshape(x.shape)
        scale = (levels / self.model.sigma).to(self.knots.dtype).reshape(-1, 1, 1)
        estimate = self._unrolled(z, scale).reshape(x.shape)
        # The outermost slopes do not follow the level: below that of the training, they would blur strong edges.
        level = sigma.to(x.dtype).reshape(-1, 1, 1, 1)
        most = MOST_CHANGE * level
        limited = torch.minimum(torch.maximum(estimate, x - most), x + most)
        return torch.where(level == 0, x, torch.where(level < self.model.sigma, limited, estimate))

    def _unrolled(self, z: Tensor, scale: Tensor | None) -> Tensor:
        """All layers, with knots times `scale`; `r` is minus the estimate of the image."""
        height, width = z.shape[-2:]
        border, stride = self.model.border, self.model.stride
        z = F.pixel_unshuffle(_mirrored(z, border, stride), stride)
        u = u_before = self._analyse(0, z)
        r = torch.zeros_like(z)
        for k, (alpha, beta, gamma) in enumerate(self.memory, start=1):
            y = u + alpha * (u - u_before) if alpha else u
            q = self._synthesise(k, y) - z
            q = (1 - beta) * q + beta * r if beta else q
            r_before, r = r, q.clamp(-1, 0) if self.model.bounded else q
            if k < len(self.memory):
                seen = r + gamma * (r - r_before) if gamma else r
                v = y - self.tau[k - 1] * self._analyse(k, seen)
                u_before, u = u, self._activate(k, v, scale)
        return -F.pixel_shuffle(r, stride)[..., border : border + height, border : border + width]

    def _analyse(self, k: int, image: Tensor) -> Tensor:
        return F.conv2d(image, self.theta[k], padding=self.theta.shape[-1] // 2)

    def _synthesise(self, k: int, features: Tensor) -> Tensor:
        """The synthesis as a convolution with flipped filters, for which PyTorch has the faster kernels."""
        own = self.synthesis if k < len(self.memory) else None
        filters = self.theta[k] if own is None else own[k - 1]
        return F.conv2d(features, filters.flip(2, 3).transpose(0, 1), padding=filters.shape[-1] // 2)

    def _activate(self, k: int, v: Tensor, scale: Tensor | None) -> Tensor:
        knots = self.knots[k - 1 : k]
        u: Tensor = _Activation.apply(v, knots if scale is None else scale * knots, self.slopes[k - 1])
        return u

    @torch.no_grad()
    def project_(self) -> Network:
        """Puts the knots of every activation in order and its slopes between 0 and 1, in place: it is a prox again."""
        self.knots.copy_(self.knots.clamp(min=0).cummax(-1).values)
        self.slopes.clamp_(0, 1)
        return self

    def to_model(self, **fields: Any) -> Model:
        """The model of these parameters, in single precision; `fields`, such as `sigma`, are for `Model.replace`.

        Fails where the activations describe no network: nothing is projected unless `project_` is called.
        """
        knots, slopes = self.knots.detach(), self.slopes.detach()
        ordered = (knots.diff(dim=-1, prepend=torch.zeros_like(knots[..., :1])) >= 0).all()
        if not bool(ordered & knots.isfinite().all()):
            raise ValueError("the knots of an activation are negative or not in order: call project_() first")
        if not bool(((slopes >= 0) & slopes.isfinite()).all()):
            raise ValueError("a slope of an activation is negative or not a number: call project_() first")
        names = ("theta", "tau", "knots", "slopes") + (() if self.synthesis is None else ("synthesis",))
        arrays = {name: _array(getattr(self, name)) for name in names}
        return self.model.replace(**{**arrays, **fields})

    def extra_repr(self) -> str:
        return repr(self.model)


def denoise(x: Tensor, sigma: Sigma | None = None, model: Model | str = "best") -> Tensor:
    """Images denoised by the engine on the CPU, differentiable once in the images and in sigma.

    Parameters
    ----------
    x : (N, C, H, W)
        Noisy images. Those of another device are computed on the CPU, those of another precision in single, and the
        result is as `x`.
    sigma : optional
        As for `Network.forward`.
    model : proxlift.Model or str
        A model, a model file, or the name of a built-in model: its colour version for 3 channels, else the grey one.

    Examples
    --------
    >>> import torch
    >>> from proxlift.torch import denoise
    >>> noisy = torch.rand(1, 3, 40, 30, requires_grad=True)
    >>> estimate = denoise(noisy, 0.1, "small")
    >>> estimate.square().sum().backward()
    >>> noisy.grad.shape
    torch.Size([1, 3, 40, 30])
    """
    if not isinstance(model, Model):
        model = Model.load(model, channels=3 if x.dim() == 4 and x.shape[1] == 3 else 1)
    _check_images(x, model.channels)
    if sigma is None:
        sigma, model = (model.sigma, model) if model.sigma > 0 else (1.0, model.replace(sigma=1.0))
    _check_follows(model)

    def levels(x: Tensor, sigma: Tensor) -> Tensor:
        z, sigma = _samples(x, sigma, model.channels)
        return torch.as_tensor(_Engine.apply(z, sigma, model)).reshape(x.shape)

    return _denoise(x, sigma, levels)


class _Activation(torch.autograd.Function):
    """s(v) = c v + sum_m a_m clip(v, -l_m, l_m), where a_m is by how much the slope falls at the knot l_m.

    For v (N, J, H, W), knots (N or 1, J, M) and slopes (J, M + 1). It keeps nothing but v of all terms for gradients.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(v: Tensor, knots: Tensor, slopes: Tensor) -> Tensor:
        slopes = slopes[..., None, None]
        u = slopes[:, -1] * v
        for m, knot in enumerate(knots[..., None, None].unbind(2)):
            u = u + (slopes[:, m] - slopes[:, m + 1]) * torch.clamp(v, -knot, knot)
        return u

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        v, knots, slopes = ctx.saved_tensors
        falls = slopes[:, :-1] - slopes[:, 1:]
        by_v, signed, by_fall, by_knot = slopes[:, -1, None, None] * g, g * v.sign(), [], []
        for m, knot in enumerate(knots[..., None, None].unbind(2)):
            inside = v.abs() < knot
            by_v = by_v + falls[:, m, None, None] * torch.where(inside, g, 0.0)
            by_knot.append(falls[:, m] * torch.where(inside, 0.0, signed).sum((2, 3)))
            by_fall.append((g * torch.clamp(v, -knot, knot)).sum((0, 2, 3)))
        by_falls = torch.stack([*by_fall, (g * v).sum((0, 2, 3))], -1)
        by_slopes = by_falls - F.pad(by_falls, (1, 0))[:, :-1]
        return by_v, torch.stack(by_knot, -1).sum_to_size(knots.shape), by_slopes


class _Engine(torch.autograd.Function):
    """z, (N, C, H, W), denoised for the levels sigma, (N,)."""

    @staticmethod
    def forward(z: Tensor, sigma: Tensor, model: Model) -> Tensor:
        estimate = model.denoise(_array(z), _array(sigma), channel_axis=1)
        return torch.from_numpy(estimate).to(z)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor, Model], output: Tensor) -> None:
        z, sigma, ctx.model = inputs
        if ctx.model.bounded and ctx.needs_input_grad[1]:
            raise ValueError("the engine has no gradient in sigma for a bounded model: use proxlift.torch.Network")
        ctx.save_for_backward(z, sigma)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        z, sigma = ctx.saved_tensors
        image, level, g = _array(z), _array(sigma), _array(gradient)
        estimate, back = _proxlift.vjp(ctx.model._native, image, level.tolist(), g)
        by_sigma = None
        if ctx.needs_input_grad[1]:
            # D(c z, c sigma) = c D(z, sigma), so by Euler's identity sigma dD/dsigma = D - J z; at sigma = 0 it is 0.
            pairs = [np.einsum("nchw,nchw->n", a, b, dtype=np.float64) for a, b in ((g, estimate), (back, image))]
            slope = np.divide(pairs[0] - pairs[1], level, out=np.zeros(len(level)), where=level > 0)
            by_sigma = torch.from_numpy(slope).to(sigma)
        return torch.from_numpy(back).to(z), by_sigma, None


def _denoise(x: Tensor, sigma: Sigma, levels: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Images denoised for any sigma by `levels`, which takes one number for each image."""
    if not isinstance(sigma, Tensor):
        sigma = torch.as_tensor(np.asarray(sigma, dtype=np.float64))
    sigma = sigma.to(device=x.device, dtype=torch.promote_types(x.dtype, torch.float32))
    if not bool(((sigma >= 0) & sigma.isfinite()).all()):
        raise ValueError("sigma is negative or not a finite number")
    images, shape = x.shape[0], tuple(sigma.shape)
    if sigma.numel() == 1:
        return levels(x, sigma.reshape(1).expand(images))
    if sigma.numel() == images and shape[0] == images:
        return levels(x, sigma.reshape(images))
    if shape in ((images, 1, *x.shape[2:]), (1, 1, *x.shape[2:])):
        maps = sigma.expand(images, -1, -1, -1)
        blended = (maps != maps[..., :1, :1]).flatten(1).any(1) | maps.requires_grad
        result = torch.zeros_like(x)
        for some in filter(len, (blended.nonzero()[:, 0], (~blended).nonzero()[:, 0])):
            noise = maps[some]
            part = _blend(x[some], noise, levels) if blended[some[0]] else levels(x[some], noise[:, 0, 0, 0])
            result = result.index_copy(0, some, part)
        return result
    raise ValueError(
        f"sigma has the shape {shape}, but it must be one number, one for each of {images} images, or a map of the "
        f"shape {(images, 1, *x.shape[2:])}"
    )


def _blend(x: Tensor, sigma: Tensor, levels: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """Each pixel between the images denoised for the two levels around its own sigma."""
    below = torch.floor(4 * sigma.detach().log2()).clamp(min=_LEAST - 1)
    low, high = (torch.where(i < _LEAST, 0.0, torch.exp2(i / 4)).to(sigma) for i in (below, below + 1))
    above = (sigma - low) / (high - low)
    result = torch.zeros_like(x)
    found = torch.unique(below).tolist()
    for i in sorted({*found, *(i + 1 for i in found)}):
        upper, lower = below == i - 1, below == i
        images = (upper | lower).flatten(1).any(1).nonzero()[:, 0]
        level = 0.0 if i < _LEAST else math.pow(2, i / 4)
        weight = (torch.where(upper, above, 0.0) + torch.where(lower, 1 - above, 0.0)).to(x)
        part = levels(x[images], sigma.new_full((len(images),), level))
        result = result.index_add(0, images, weight[images] * part)
    return result


def _samples(x: Tensor, sigma: Tensor | None, channels: int) -> tuple[Tensor, Tensor]:
    """The samples that a network with so many channels sees, and their levels."""
    levels = x.new_zeros(()) if sigma is None else sigma.repeat_interleave(x.shape[1] // channels)
    return x.reshape(-1, channels, *x.shape[2:]), levels


def _mirrored(image: Tensor, border: int, stride: int) -> Tensor:
    """The image continued by its mirror images, the pixels at the edge repeated, as often as it takes.

    Where the stride does not divide a side, one row or column more.
    """
    for axis in (-2, -1) if border or stride > 1 else ():
        length = image.shape[axis]
        places = torch.arange(-border, length + border + length % stride, device=image.device) % (2 * length)
        image = image.index_select(axis, torch.minimum(places, 2 * length - 1 - places))
    return image


def _check_images(x: Tensor, channels: int) -> None:
    if x.dim() != 4 or not x.is_floating_point():
        raise ValueError(f"x is {x.dtype} of the shape {tuple(x.shape)}, but it must be real images (N, C, H, W)")
    if x.shape[1] != channels != 1:
        raise ValueError(f"x has {x.shape[1]} channels, but the model was made for {channels}: use a grey model")


def _check_follows(model: Model) -> None:
    if not model.sigma > 0:
        raise ValueError("the model does not say which level it was trained for (its sigma is 0): leave sigma out")


def _array(tensor: Tensor) -> NDArray[np.float32]:
    """Its numbers in single precision; those of the tensor themselves where they are in order already."""
    return tensor.detach().to("cpu", torch.float32).contiguous().numpy()
