"""The built-in weakly convex model, solved for on a picture made by a formula: Newton's method in double precision."""

import torch
from torch.nn.functional import conv2d

from shipped import mirrored, picture, read


def influence(activation, tau, noise):
    """The corners `(w, u)` of the slope of every potential: `u = s(t)` is that at `w = (t - u) / tau`."""
    knots, slopes = noise * activation.knots, activation.slopes
    t = torch.cat([torch.zeros(len(knots), 1, dtype=torch.float64), knots], 1)
    u = torch.cat([t[:, :1], torch.cumsum(slopes[:, :-1] * (t[:, 1:] - t[:, :-1]), 1)], 1)
    assert (slopes[:, -1] == 0).all() and (slopes < 1).all()
    return (t - u) / tau, u


def at(corners, w):
    """The slopes of the potentials at `w`, feature by feature: straight lines between corners, constant beyond the last."""
    result = []
    for w_m, u_m, w in zip(*corners, w):
        m = torch.searchsorted(w_m, w.abs().detach()).clamp(1, len(w_m) - 1)
        rise = (u_m[m] - u_m[m - 1]) / (w_m[m] - w_m[m - 1]).clamp(min=1e-300)
        line = u_m[m - 1] + rise * (w.abs() - w_m[m - 1])
        result.append(w.sign() * torch.where(w.abs() > w_m[-1], u_m[-1], line))
    return torch.stack(result)


def solve(network, z, noise=1.0):
    """`argmin_x 1/2 ||x - z||^2 + g(L x)`."""
    theta, tau = network.theta[0], network.tau[0]
    corners, radius = influence(network.activation[0], tau, noise), theta.shape[-1] // 2

    def features(x):
        return conv2d(mirrored(x[None], radius), theta)[0]

    def gradient(x):
        w, back = torch.func.vjp(features, x)
        return x - z + back(at(corners, w))[0]

    x = z
    for _ in range(300):
        x = x - 0.02 * gradient(x)
    for _ in range(100):
        g = gradient(x)
        if g.norm() < 1e-12:
            return x
        hessian = torch.func.jacrev(gradient)(x).reshape(x.numel(), -1)
        step = torch.linalg.solve(hessian, g.flatten()).reshape(x.shape)
        length = 1.0
        while length > 1e-4 and gradient(x - length * step).norm() > g.norm():
            length /= 2
        x = x - length * step
    raise RuntimeError(f"not solved: {gradient(x).norm()}")


def weakly_convex_cases():
    network, z = read("grey-weakly-convex"), picture(1)
    results = {"1": solve(network, z), "2": solve(network, z, 2.0)}
    # Single precision is that of the model and of the engine that runs it.
    yield "golden_weakly_convex.safetensors", ({name: x.float() for name, x in results.items()}, {"model": "weakly-convex"})
