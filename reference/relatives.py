"""General feed-forward networks beyond the paper's: smooth activations, learned ones, strides, other losses; and one iteration
of the methods with closed forms."""

import torch
import torch.nn.functional as F

from bregman import Activation, PiecewiseLinear, Relu, SoftThreshold, generator, outputs, per_sample
from networks import FeedForward


class Softmax(Activation):
    """prox of the negative entropy less 1/2 ||.||^2 on the simplex, across the features."""

    name = "softmax"

    def prox(self, v):
        return torch.softmax(v, dim=1)

    def potential(self, v):
        return torch.logsumexp(v, dim=1)

    def psi(self, u):
        return torch.special.xlogy(u, u) - 0.5 * u * u

    def kinks(self, v):
        return torch.full_like(v, torch.inf)

    def shares(self, v):
        return [torch.ones(())]

    def sample(self, shape, random):
        return torch.softmax(2 * random(shape), dim=1)


class Simplex(Activation):
    """The projection on the simplex, across the features, by Michelot's algorithm."""

    name = "simplex"

    def level(self, v):
        inside = torch.ones_like(v, dtype=torch.bool)
        while True:
            level = (torch.where(inside, v, 0.0).sum(dim=1, keepdim=True) - 1) / inside.sum(dim=1, keepdim=True)
            left = inside & (v > level)
            if bool((left == inside).all()):
                return level
            inside = left

    def prox(self, v):
        return torch.relu(v - self.level(v))

    def psi(self, u):
        off = (u.sum(dim=1, keepdim=True) - 1).abs() + torch.relu(-u)
        return torch.where(off < 1e-12, 0.0, torch.inf)

    def potential(self, v):
        p = self.prox(v)
        return p * v - 0.5 * p * p

    def kinks(self, v):
        return (v - self.level(v)).abs()

    def shares(self, v):
        zero = (self.prox(v) == 0).double().mean()
        return [zero, 1 - zero]

    def sample(self, shape, random):
        return self.prox(random(shape))


class Sigmoid(Activation):
    """prox of the negative entropy of a coin less 1/2 u^2."""

    name = "sigmoid"

    def prox(self, v):
        return torch.sigmoid(v)

    def potential(self, v):
        return F.softplus(v, threshold=700.0)

    def psi(self, u):
        return torch.special.xlogy(u, u) + torch.special.xlogy(1 - u, 1 - u) - 0.5 * u * u

    def kinks(self, v):
        return torch.full_like(v, torch.inf)

    def shares(self, v):
        return [torch.ones(())]

    def sample(self, shape, random):
        return torch.sigmoid(2 * random(shape))


class General(FeedForward):
    """With a stride and padding for each convolution, and any loss."""

    def __init__(self, weight, bias, activation, strides, paddings, loss):
        super().__init__(weight, bias, activation)
        self.strides, self.paddings, self.loss_name = strides, paddings, loss

    def affine(self, k, a):
        if self.weight[k].dim() == 2:
            return F.linear(a, self.weight[k], self.bias[k])
        return F.conv2d(a, self.weight[k], self.bias[k], stride=self.strides[k], padding=self.paddings[k])

    def loss(self, output, x):
        if self.loss_name == "softmax":
            return -(x * torch.log_softmax(output, dim=1)).sum(dim=1)
        if self.loss_name == "logistic":
            return per_sample(F.binary_cross_entropy_with_logits(output, x, reduction="none"))
        return super().loss(output, x)


def general_case(seed, layer_shapes, activations, input_shape, loss="squared", strides=(), paddings=()):
    random = generator(seed)
    z = random(input_shape)
    weight, bias = [], []
    for shape in layer_shapes:
        fan_in = torch.Size(shape[1:]).numel()
        weight.append(random(shape) * (3 / fan_in) ** 0.5)
        bias.append(0.2 * random(shape[:1]))
    activations = [a(random) if callable(a) else a for a in activations]
    network = General(weight, bias, activations, list(strides), list(paddings), loss)
    pre, output = network.feed_forward(z)
    x = random(output.shape)
    if loss == "softmax":
        x = torch.softmax(2 * x, dim=1)
    elif loss == "logistic":
        x = (x + 1) / 2
    u = [a.sample(v.shape, random) for a, v in zip(activations, pre)]
    learned = [(k, a) for k, a in enumerate(activations) if isinstance(a, PiecewiseLinear)]
    shapes = {f"knots_{k}": a.knots for k, a in learned} | {f"slopes_{k}": a.slopes for k, a in learned}
    for variable in weight + bias + u + list(shapes.values()):
        variable.requires_grad_(True)
    parameters = {f"weight_{k}": w for k, w in enumerate(weight)} | {f"bias_{k}": b for k, b in enumerate(bias)}
    result, shares = outputs(network, parameters, shapes, u, 0, z, x, 1.0)
    tensors = {"z": z, "x": x, **parameters, **shapes, **result}
    tensors |= {f"u_{k}": uk for k, uk in enumerate(u)}
    descriptions = []
    for activation in activations:
        if isinstance(activation, Relu):
            descriptions.append({"name": "relu"})
        elif isinstance(activation, SoftThreshold):
            descriptions.append({"name": "soft_threshold", "threshold": activation.threshold})
        elif isinstance(activation, PiecewiseLinear):
            descriptions.append({"name": "learned", "knots": activation.knots.shape[1]})
        else:
            descriptions.append({"name": activation.name})
    configuration = {
        "network": "feedforward", "layer": "dense" if len(layer_shapes[0]) == 2 else "convolution", "loss": loss,
        "strides": list(strides), "paddings": list(paddings), "activations": descriptions, "batch": input_shape[0],
        "mu": 1.0, "shares": shares,
    }  # fmt: skip
    return tensors, configuration


def closed_form_case(seed, widths, batch, mu, rho, gamma, proximal):
    """A relu network after an iteration of closed forms, and after two of ADMM: least squares by orthogonal factors, the
    prox of the loss and of the activation from their definitions."""
    random = generator(seed)
    z, x = random([batch, widths[0]]), random([batch, widths[-1]])
    pairs = list(zip(widths, widths[1:]))
    theta = [torch.cat([random([m, n]) * (6 / n) ** 0.5, 0.2 * random([m, 1])], dim=1) for n, m in pairs]
    tensors = {"z": z, "x": x}
    tensors |= {f"weight_{k}": t[:, :-1] for k, t in enumerate(theta)}
    tensors |= {f"bias_{k}": t[:, -1] for k, t in enumerate(theta)}

    def affine(t, u):
        return u @ t[:, :-1].T + t[:, -1]

    u, v = [z], []
    for t in theta:
        v.append(affine(t, u[-1]))
        u.append(torch.relu(v[-1]))
    u.pop()  # u[k] is what layer k gets, u[0] = z
    y = [torch.zeros_like(vk) for vk in v]
    w = [torch.zeros_like(uk) for uk in u[1:]]
    last = len(theta) - 1

    def value():
        total = 0.5 * mu * ((v[last] - x) ** 2).sum()
        total += 0.5 * rho * sum(((v[k] - affine(theta[k], u[k]) + y[k]) ** 2).sum() for k in range(last + 1))
        return total + 0.5 * gamma * sum(((u[k + 1] - torch.relu(v[k]) + w[k]) ** 2).sum() for k in range(last))

    def iterate():
        for k in reversed(range(last + 1)):
            if k < last:
                weight, bias = theta[k + 1][:, :-1], theta[k + 1][:, -1]
                rows = torch.cat([rho**0.5 * weight, gamma**0.5 * torch.eye(weight.shape[1])])
                right = torch.cat([rho**0.5 * (v[k + 1] + y[k + 1] - bias), gamma**0.5 * (torch.relu(v[k]) - w[k])], dim=1)
                u[k + 1] = torch.linalg.lstsq(rows, right.T).solution.T
            a = affine(theta[k], u[k]) - y[k]
            if k == last:
                v[k] = (mu * x + rho * a) / (mu + rho)
            else:
                c = u[k + 1] + w[k]
                below, above = torch.clamp(a, max=0.0), torch.clamp((rho * a + gamma * c) / (rho + gamma), min=0.0)
                cost = [rho * (t - a) ** 2 + gamma * (torch.relu(t) - c) ** 2 for t in (below, above)]
                assert float((cost[0] - cost[1]).abs().min()) > 1e-6, "two pieces are as good"
                v[k] = torch.where(cost[0] < cost[1], below, above)
            ones = torch.cat([u[k], torch.ones(batch, 1)], dim=1)
            rows = torch.cat([ones, proximal**0.5 * torch.eye(ones.shape[1])])
            right = torch.cat([v[k] + y[k], proximal**0.5 * theta[k].T])
            theta[k] = torch.linalg.lstsq(rows, right).solution.T

    before = value()
    iterate()
    tensors["closed_energy"] = torch.stack([before, value()])
    tensors |= {f"closed_theta_{k}": t for k, t in enumerate(theta)}
    for k in range(last + 1):
        y[k] = y[k] + v[k] - affine(theta[k], u[k])
    for k in range(last):
        w[k] = w[k] + u[k + 1] - torch.relu(v[k])
    iterate()
    tensors |= {f"admm_theta_{k}": t for k, t in enumerate(theta)}
    configuration = {
        "network": "closed form", "batch": batch, "mu": mu, "rho": rho, "gamma": gamma, "proximal": proximal,
    }  # fmt: skip
    return tensors, configuration
