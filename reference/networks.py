"""The networks: the unrolled algorithms as their papers print them, and the general feed-forward network."""

import math

import torch
import torch.nn.functional as F

from bregman import half_square


class Unrolled:
    """Unrolled from an algorithm for min_x 1/2 ||x - z||^2 + g(L x), x in [0, 1] if `bounded`; u is its dual variable.

    - dual forward-backward: x_k = z - L_k* u_{k-1}, u_k = s(u_{k-1} + tau_k L_k x_k);
    - inertial (Beck and Teboulle 2009; Chambolle and Dossal 2015): the same from
      y = u_{k-1} + (k - 1)/(k + 2) (u_{k-1} - u_{k-2});
    - Chambolle-Pock (2011, algorithm 1) with the primal step 1: x_k = prox(x_{k-1} - L_k* u_{k-1}) for the data term,
      u_k = s(u_{k-1} + tau_k L_k (x_k + (x_k - x_{k-1})));
    - its acceleration (algorithm 2): the primal steps are t_1 = 1, t_{k+1} = theta_k t_k, theta_k = 1/sqrt(1 + 2 t_k), and
      the extrapolation is theta_{k-1} (x_k - x_{k-1});
    - averaged dual forward-backward: dual forward-backward, whose result is the mean of x_1..x_K with weights 1..K.

    It starts at u_0 = L_0 z and x_1 = z - L_1* u_0, and its result is x_K, without inertia. In the first layer there is
    nothing to remember. The loss counts only what lies `border` pixels or more from the edge.

    Where there is a `synthesis`, its filters stand for those of L_k* in layers 1..K-1.

    With stride 2, the operators are convolutions of that stride with kernels twice as large, of which `theta` holds the
    phases.
    """

    def __init__(self, unrolling, theta, tau, activation, bounded=False, border=0, stride=1,
                 synthesis=()):  # fmt: skip
        self.unrolling, self.theta, self.tau = unrolling, theta, tau
        self.synthesis = synthesis
        self.activation, self.bounded, self.border = activation, bounded, border
        self.depth = len(theta) - 1
        self.stride = stride

    def analysis(self, k, image):
        return analysis(self.theta[k], image, self.stride)

    def adjoint(self, k, features):
        theta = self.synthesis[k - 1] if k <= len(self.synthesis) else self.theta[k]
        padding = self.stride * (theta.shape[-1] // 2)
        return F.conv_transpose2d(features, on_image(theta, self.stride), stride=self.stride, padding=padding)

    def walk(self, z, given=None):
        """Pre-activations v_1..v_{K-1}, images x_1..x_K before they are bounded, and the result.

        The auxiliary variables are those `given`, or what the activations make of v.
        """
        primal_dual = self.unrolling.startswith("chambolle-pock")
        u, x, pre, images = [self.analysis(0, z)], None, [], []
        for k in range(1, self.depth + 1):
            y = u[-1]
            if self.unrolling == "inertial" and 1 < k < self.depth:
                y = u[-1] + (k - 1) / (k + 2) * (u[-1] - u[-2])
            before, x = x, z - self.adjoint(k, y)
            if primal_dual and k > 1:
                # prox of t/2 ||. - z||^2 at before - t L* y
                t = primal_step(self.unrolling, k)
                x = (before - t * self.adjoint(k, y) + t * z) / (1 + t)
            images.append(x)
            if self.bounded:
                x = torch.clamp(x, 0.0, 1.0)
            if k == self.depth:
                if self.unrolling == "averaged-dual-forward-backward":
                    weights = range(1, self.depth + 1)
                    x = sum(w * x for w, x in zip(weights, images)) / sum(weights)
                return pre, images, x
            ahead = x
            if primal_dual and k > 1:
                ahead = x + extrapolation(self.unrolling, k) * (x - before)
            pre.append(y + self.tau[k - 1] * self.analysis(k, ahead))
            u.append(self.activation[k - 1].prox(pre[-1]) if given is None else given[k - 1])

    def lifted(self, u, z):
        pre, _, output = self.walk(z, u)
        return pre, output

    def feed_forward(self, z):
        pre, _, output = self.walk(z)
        return pre, output

    def activations(self):
        return self.activation

    def loss(self, output, x):
        height, width = x.shape[-2:]
        inside = (..., slice(self.border, height - self.border), slice(self.border, width - self.border))
        return half_square((output - x)[inside])

    def distances_to_bounds(self, u, z):
        """How near the images come to a bound, where their slope jumps. Some must be within the bounds and some not."""
        if not self.bounded:
            return []
        images = torch.cat([x.flatten() for x in self.walk(z, u)[1] + self.walk(z)[1]])
        inside = ((images > 0) & (images < 1)).double().mean()
        assert 0.2 < inside < 0.98, f"{inside} of the pixels are within the bounds"
        return [float(torch.minimum(images.abs(), (images - 1).abs()).min())]


def on_image(theta, stride):
    """Kernels as they lie on the image, from their phases: [J, C, dy, dx, y, x] to [J, C, (y, dy), (x, dx)]."""
    features, channels, size, _ = theta.shape
    colours = channels // stride**2
    phases = theta.reshape(features, colours, stride, stride, size, size)
    return phases.permute(0, 1, 4, 2, 5, 3).reshape(features, colours, stride * size, stride * size)


def analysis(theta, image, stride):
    """L of a layer."""
    return F.conv2d(image, on_image(theta, stride), stride=stride, padding=stride * (theta.shape[-1] // 2))


def primal_step(unrolling, k):
    """t_k."""
    t = 1.0
    if unrolling == "chambolle-pock-accelerated":
        for _ in range(1, k):
            t = t / math.sqrt(1 + 2 * t)
    return t


def extrapolation(unrolling, k):
    """theta_{k-1}, the extrapolation of layer k."""
    if unrolling == "chambolle-pock":
        return 1.0
    return 1 / math.sqrt(1 + 2 * primal_step(unrolling, k - 1))


def longest_step(unrolling, k):
    """tau_k ||L_k||^2 that the algorithm allows."""
    if unrolling == "dual-forward-backward":
        return 1.8
    if unrolling == "inertial":
        return 1.0
    if unrolling == "averaged-dual-forward-backward":
        return 0.98
    return 1 / primal_step(unrolling, k)


class FeedForward:
    """v_0 = F_0(z), v_k = F_k(u_{k-1}), u_k = prox_k(v_k), x^ = F_K(u_{K-1}), F_k affine, dense or convolutional."""

    def __init__(self, weight, bias, activation):
        self.weight, self.bias, self.activation = weight, bias, activation

    def affine(self, k, a):
        if self.weight[k].dim() == 2:
            return F.linear(a, self.weight[k], self.bias[k])
        return F.conv2d(a, self.weight[k], self.bias[k], padding=self.weight[k].shape[-1] // 2)

    def lifted(self, u, z):
        """v_0..v_{K-1} and x^ at the auxiliary variables u = [u_0, ..., u_{K-1}]."""
        pre = [self.affine(k, a) for k, a in enumerate([z] + u)]
        return pre[:-1], pre[-1]

    def feed_forward(self, z):
        pre = [self.affine(0, z)]
        for k, activation in enumerate(self.activation):
            pre.append(self.affine(k + 1, activation.prox(pre[-1])))
        return pre[:-1], pre[-1]

    def activations(self):
        return self.activation

    def loss(self, output, x):
        return half_square(output - x)

    def distances_to_bounds(self, u, z):
        return []


# --- Norms ---------------------------------------------------------------------------------------------------------


def largest_singular_value(theta, height, width, stride=1):
    """||L|| on images of this size, from the dense matrix of L."""
    channels = theta.shape[1] // stride**2
    basis = torch.eye(channels * height * width).reshape(-1, channels, height, width)
    matrix = analysis(theta, basis, stride).reshape(basis.shape[0], -1).T
    return torch.linalg.svdvals(matrix)[0]


def norm_on_square(theta, stride=1, side=32):
    """The norm by which the program finds its steps: of L* L on the plane, cut to a square of pixels.

    An image on the square is convolved without cutting anything off, so that <x, A x> = ||L x||^2.
    """
    kernels = on_image(theta, stride)
    basis = torch.eye(kernels.shape[1] * side * side).reshape(-1, kernels.shape[1], side, side)
    images = F.conv2d(basis, kernels, stride=stride, padding=stride * (theta.shape[-1] - 1)).reshape(basis.shape[0], -1)
    return torch.linalg.eigvalsh(images @ images.T)[-1].sqrt()
