"""proxlift as a denoiser of deepinv: for plug-and-play methods, unfolded networks and all else that takes one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

try:
    import deepinv.models  # type: ignore[import-untyped]
except ImportError as error:
    raise ImportError("proxlift.deepinv needs deepinv: install the package deepinv") from error

import torch
from torch import Tensor

from proxlift import Model
from proxlift.torch import Network, Sigma, denoise

if TYPE_CHECKING:
    from os import PathLike

__all__ = ["Denoiser"]


class Denoiser(deepinv.models.Denoiser):  # type: ignore[misc]
    """A denoiser D(x, sigma) for white Gaussian noise of any level.

    Parameters
    ----------
    model : str, path or proxlift.Model
        A built-in model ("best", "small" or "photo"), of which the colour version takes images of three channels and
        the grey one all others, channel by channel; a model file; or a model.
    backend : {"engine", "torch"}
        "engine" is the fast one: it computes on the CPU, wherever the images are, in single precision, and autograd
        can differentiate it once in the images and sigma. "torch" computes where the module is and can be trained.
    device : optional
        Where the networks of the backend "torch" are.

    Examples
    --------
    >>> import torch
    >>> from proxlift.deepinv import Denoiser
    >>> denoiser = Denoiser("small")
    >>> denoiser(torch.rand(2, 3, 32, 32), 0.1).shape
    torch.Size([2, 3, 32, 32])

    As the prior of a plug-and-play method:

    >>> from deepinv.optim import PGD, L2
    >>> from deepinv.optim.prior import PnP
    >>> from deepinv.physics import BlurFFT
    >>> physics = BlurFFT((1, 32, 32), filter=torch.full((1, 1, 3, 3), 1 / 9))
    >>> method = PGD(prior=PnP(denoiser), data_fidelity=L2(), stepsize=1.0, sigma_denoiser=0.05, max_iter=3)
    >>> method(physics(torch.rand(1, 1, 32, 32)), physics).shape
    torch.Size([1, 1, 32, 32])
    """

    def __init__(
        self,
        model: str | PathLike[str] | Model = "best",
        *,
        backend: Literal["engine", "torch"] = "engine",
        device: str | torch.device = "cpu",
    ) -> None:
        super().__init__()
        if backend not in ("engine", "torch"):
            raise ValueError(f'there is no backend "{backend}": use "engine" or "torch"')
        models = [model] if isinstance(model, Model) else [Model.load(model, channels=c) for c in (1, 3)]
        # A file holds one model, whatever the channels.
        self.models = models if len({model.channels for model in models}) > 1 else models[:1]
        self.networks = torch.nn.ModuleList(Network(model) for model in self.models if backend == "torch")
        self.backend = backend
        self.to(device)

    def forward(self, x: Tensor, sigma: Sigma | None = None, **kwargs: Any) -> Tensor:
        """The denoised images.

        Parameters
        ----------
        x : (B, C, H, W)
            Noisy images.
        sigma : optional
            The noise level: one number, one for each image, as a list or tensor of any such shape, or a map
            (B, 1, H, W). Without it, that of the training.
        **kwargs
            Ignored: what other denoisers of deepinv take.
        """
        colour = len(self.models) > 1 and x.dim() == 4 and x.shape[1] == 3
        if self.backend == "engine":
            return denoise(x, sigma, self.models[colour])
        network = self.networks[colour]
        assert isinstance(network, Network)
        estimate: Tensor = network(x.to(network.theta), sigma)
        return estimate.to(x)

    def extra_repr(self) -> str:
        return f'backend="{self.backend}"'
