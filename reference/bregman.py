"""Activations, the Bregman penalty, and every result that a golden file holds.

Nothing here is shared with the Rust code. Energies are written as the equations are printed, and every gradient comes
from automatic differentiation; central differences check it while the script runs.
"""

import torch

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

NEAREST_KINK = 5e-5


def generator(seed):
    """Uniform on [-1, 1], in double precision: exact on every machine, unlike normal deviates."""
    state = torch.Generator().manual_seed(seed)
    return lambda shape: 2 * torch.rand(tuple(shape), generator=state) - 1


# --- Activations ---------------------------------------------------------------------------------------------------


class Activation:
    """s = prox_psi, entry by entry. Subclasses give `prox`, `psi`, `kinks` and `sample`.

    `kinks` are the distances of v to the kinks of s, and `sample` draws auxiliary variables in the domain of psi.
    """

    def potential(self, v):
        """q*(v) = p v - 1/2 p^2 - psi(p) with p = prox_psi(v)."""
        p = self.prox(v)
        return p * v - 0.5 * p * p - self.psi(p)

    def shares(self, v):
        """The share of units where s is flat, which back-propagation does not pass, and of all others."""
        flat = (self.prox(v + 1e-6) == self.prox(v - 1e-6)).double().mean()
        return [flat, 1 - flat]


class Relu(Activation):
    """prox of the indicator of the non-negative half-line."""

    def prox(self, v):
        return torch.relu(v)

    def psi(self, u):
        return torch.where(u >= 0, 0.0, torch.inf)

    def kinks(self, v):
        return v.abs()

    def sample(self, shape, random):
        return torch.clamp(random(shape), min=0.0)  # half of the units are exactly zero


class SoftThreshold(Activation):
    """prox of t |.|."""

    def __init__(self, threshold):
        self.threshold = threshold

    def prox(self, v):
        return torch.sign(v) * torch.relu(v.abs() - self.threshold)

    def psi(self, u):
        return self.threshold * u.abs()

    def kinks(self, v):
        return (v.abs() - self.threshold).abs()

    def sample(self, shape, random):
        u = random(shape)
        return torch.where(u.abs() < 0.3, 0.0, u)  # some units are exactly zero


class Clip(Activation):
    """prox of the indicator of the box [-bound, bound]; the bound is a number or a tensor that broadcasts."""

    def __init__(self, bound):
        self.bound = torch.as_tensor(bound)

    def prox(self, v):
        return torch.clamp(v, -self.bound, self.bound)

    def psi(self, u):
        return torch.where(u.abs() <= self.bound, 0.0, torch.inf)

    def kinks(self, v):
        return (v.abs() - self.bound).abs()

    def sample(self, shape, random):
        # 1.25 bound * uniform(-1, 1), clipped: a fifth of the units lies exactly on the bound
        return torch.clamp(1.25 * self.bound * random(shape), -self.bound, self.bound)


class PiecewiseLinear(Activation):
    """Odd, with slope p_1 up to the knot l_1, p_2 from there to l_2, ..., p_{M+1} beyond l_M; one for each feature.

    Everything is an integral over the pieces between 0 and |t|: s of the slopes, q* of s.
    """

    def __init__(self, knots, slopes):
        self.knots, self.slopes = knots, slopes  # [J, M] and [J, M + 1]

    def over_features(self, values):
        """[J, m] as [J, 1, 1, m], beside [n, J, H, W, 1]."""
        return values[:, None, None, :]

    def starts(self):
        """Where each piece starts, and the value of s there."""
        zero = torch.zeros_like(self.knots[:, :1])
        starts = torch.cat([zero, self.knots], dim=1)
        gains = self.slopes[:, :-1] * (starts[:, 1:] - starts[:, :-1])
        return starts, torch.cat([zero, torch.cumsum(gains, dim=1)], dim=1)

    def covered(self, t):
        """How much of each piece lies between 0 and |t|."""
        starts, _ = self.starts()
        ends = torch.cat([self.knots, torch.full_like(self.knots[:, :1], torch.inf)], dim=1)
        reached = torch.maximum(t.abs()[..., None], self.over_features(starts))
        return torch.minimum(reached, self.over_features(ends)) - self.over_features(starts)

    def prox(self, t):
        return torch.sign(t) * (self.over_features(self.slopes) * self.covered(t)).sum(dim=-1)

    def potential(self, t):
        """q*, the antiderivative of s."""
        covered, (_, values) = self.covered(t), self.starts()
        pieces = self.over_features(values) * covered + 0.5 * self.over_features(self.slopes) * covered**2
        return pieces.sum(dim=-1)

    def inverse(self, u):
        """w with s(w) = u, for u between two flat pieces."""
        starts, values = self.starts()
        slopes, height = self.over_features(self.slopes), u.abs()[..., None] - self.over_features(values)
        rises = torch.cat([values[:, 1:] - values[:, :-1], torch.full_like(values[:, :1], torch.inf)], dim=1)
        lengths = torch.cat([starts[:, 1:] - starts[:, :-1], torch.zeros_like(starts[:, :1])], dim=1)
        climbed = torch.minimum(torch.relu(height), self.over_features(rises))
        steps = climbed / torch.where(slopes > 0, slopes, 1.0)
        jumped = torch.where(height > 0, self.over_features(lengths), torch.zeros_like(height))
        return torch.sign(u) * torch.where(slopes > 0, steps, jumped).sum(dim=-1)

    def psi(self, u):
        """q(u) - 1/2 u^2, and q is the conjugate of q*: q(u) = u w - q*(w) where s(w) = u."""
        w = self.inverse(u)
        return u * w - self.potential(w) - 0.5 * u * u

    def kinks(self, t):
        return (t.abs()[..., None] - self.over_features(self.knots)).abs().amin(dim=-1)

    def shares(self, t):
        """The share of units on each piece."""
        beyond = (t.abs()[..., None] > self.over_features(self.knots)).sum(dim=-1)
        return [(beyond == m).double().mean() for m in range(self.slopes.shape[1])]

    def sample(self, shape, random):
        """Values of s at random places, kept away from those that a flat piece takes, where q has a kink."""
        with torch.no_grad():
            u = self.prox(1.5 * self.knots.max() * random(shape))
            _, values = self.starts()
            jumps = torch.where(self.slopes == 0, values, torch.inf)
            near = (u.abs()[..., None] - self.over_features(jumps)).abs().amin(dim=-1) < 1e-3
            return torch.where(near, 0.93 * u, u)


# --- The Bregman penalty -------------------------------------------------------------------------------------------


def per_sample(a):
    return a.reshape(a.shape[0], -1).sum(dim=1)


def half_square(a):
    return per_sample(0.5 * a * a)


def penalty_without_psi(activation, u, v):
    """B_psi(u, v) - psi(u) = 1/2 ||u||^2 + q*(v) - <u, v>."""
    return half_square(u) + per_sample(activation.potential(v)) - per_sample(u * v)


def penalty(activation, u, v):
    """B_psi(u, v) = q(u) + q*(v) - <u, v>, q(u) = 1/2 ||u||^2 + psi(u)."""
    return penalty_without_psi(activation, u, v) + per_sample(activation.psi(u))


# --- The results ---------------------------------------------------------------------------------------------------
#
# A network gives `lifted(u, z)`, the pre-activations v_k and the output at given auxiliary variables u,
# `feed_forward(z)`, those of the network itself, `activations()`, one for each u_k, and `loss(output, x)`.


def energy_terms(network, u, z, x, mu):
    """mu * l(x^, x) and the penalties B(u_k, v_k), per sample."""
    pre, output = network.lifted(u, z)
    return mu * network.loss(output, x), [penalty(a, uk, vk) for a, uk, vk in zip(network.activations(), u, pre)]


def energy(network, u, z, x, mu):
    """E, summed over the samples."""
    data_term, penalties = energy_terms(network, u, z, x, mu)
    return (data_term + sum(penalties)).sum()


def smooth_part(network, u, z, x, mu):
    """f = E - sum_k psi_k(u_k), summed over the samples."""
    pre, output = network.lifted(u, z)
    f = mu * network.loss(output, x)
    for activation, uk, vk in zip(network.activations(), u, pre):
        f = f + penalty_without_psi(activation, uk, vk)
    return f.sum()


def outputs(network, parameters, shapes, u, first, z, x, mu):
    """All results at the auxiliary variables u, the first of which is called u_{first}.

    `parameters` are the leaves on which the affine maps depend, `shapes` those of the activations, by name.
    """
    activations = network.activations()
    with torch.no_grad():
        pre, network_output = network.feed_forward(z)
        lifted_pre, _ = network.lifted(u, z)
        data_term, penalties = energy_terms(network, u, z, x, mu)
        # The files are for comparisons at the level of rounding: nothing may sit on a kink.
        distance = min(float(a.kinks(v).min()) for a, v in zip(activations * 2, pre + lifted_pre))
        distance = min([distance] + network.distances_to_bounds(u, z))
        assert distance > NEAREST_KINK, f"something is only {distance} away from a kink"
        assert all(bool((p >= 0).all()) and bool(torch.isfinite(p).all()) for p in penalties)
        at_network = [a.prox(v) for a, v in zip(activations, pre)]
        _, at_zero = energy_terms(network, at_network, z, x, mu)
        assert all(float(p.abs().max()) < 1e-12 for p in at_zero), "B(prox(v), v) is not zero"

    result = {
        "network_output": network_output,
        "loss": network.loss(network_output, x),
        "energy": data_term + sum(penalties),
        "data_term": data_term,
    }
    for k, value in enumerate(penalties, start=first):
        result[f"penalty_{k}"] = value

    by_name = parameters | {f"u_{k}": uk for k, uk in enumerate(u, start=first)}
    result |= gradients("grad", by_name, lambda: smooth_part(network, u, z, x, mu))
    result |= gradients("grad", shapes, lambda: energy(network, u, z, x, mu))
    result |= gradients("backprop", parameters | shapes, lambda: network.loss(network.feed_forward(z)[1], x).sum())
    if first == 1:
        result |= anchored(network, parameters | shapes, at_network, z, x, mu)
    shares = {"lifted": shares_of(activations, lifted_pre), "network": shares_of(activations, pre)}
    return result, shares


def gradients(prefix, variables, function):
    """The gradient of `function` by each of the variables, checked against central differences."""
    if not variables:
        return {}
    values = torch.autograd.grad(function(), list(variables.values()))
    for variable, gradient in zip(variables.values(), values):
        check_slope(function, variable, gradient)
    return {f"{prefix}_{name}": value for name, value in zip(variables, values)}


def anchored(network, parameters, u, z, x, mu):
    """One reverse sweep of E from the network's own forward pass, in unit forward-backward steps.

    For k = K-1, ..., 1 the block goes to u_k+ = s(v_k - back_k), where back_k is the derivative by u_k of all terms of E
    but its own penalty, with the later blocks moved already and everything else still at the forward pass. The results
    are the derivatives of the sum of all terms at u+, by the parameters.

    At u+ = s(w), w = v - back, q(u+) = u+ w - q*(w): B(u+, v) = q*(v) - q*(w) - u+ (v - w), u+ and w being constants.
    """
    u = [uk.detach().clone().requires_grad_(True) for uk in u]
    activations = network.activations()
    moved = {}

    def terms():
        pre, output = network.lifted(u, z)
        total = mu * network.loss(output, x).sum()
        for k, (up, w) in moved.items():
            distance = activations[k].potential(pre[k]) - activations[k].potential(w) - up * (pre[k] - w)
            total = total + distance.sum()
        return total

    with torch.no_grad():
        pre, _ = network.lifted(u, z)
    for k in reversed(range(len(u))):
        (back,) = torch.autograd.grad(terms(), u[k])
        w = pre[k] - back
        with torch.no_grad():
            moved[k] = (activations[k].prox(w), w)
    return gradients("anchored", parameters, terms)


def shares_of(activations, pre):
    """Of each layer, the share of units on each piece of its activation; none may be left out of a comparison."""
    shares = [[round(float(share), 3) for share in a.shares(v)] for a, v in zip(activations, pre)]
    assert all(share > 0.01 for layer in shares for share in layer), f"a piece has hardly any units: {shares}"
    return shares


def check_slope(function, variable, gradient):
    """The derivative along a direction agrees with a central difference."""
    direction = generator(99)(variable.shape)
    step = 1e-7
    with torch.no_grad():
        original = variable.clone()
        variable.copy_(original + step * direction)
        above = function()
        variable.copy_(original - step * direction)
        below = function()
        variable.copy_(original)
    slope = float((above - below) / (2 * step))
    expected = float((gradient * direction).sum())
    assert abs(slope - expected) <= 1e-5 * max(1.0, abs(expected)), f"slope {slope}, gradient {expected}"
