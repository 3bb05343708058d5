"""The energy, proxes, operators and the dual solver, against autograd and laws, in double precision."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import UNROLLINGS, network, noisy

from proxlift import operators, prox, solver
from proxlift.energy import LiftedEnergy

DATA = np.random.default_rng(5).uniform(0, 2, (2, 6, 5)).round(1)
DATA_TERMS = {
    "squared": lambda: prox.squared_distance(DATA, 0.8),
    "absolute": lambda: prox.absolute_distance(DATA, 0.6),
    "counts": lambda: prox.kullback_leibler(DATA.round(), 0.9),
}
PROXES = DATA_TERMS | {
    "soft": lambda: prox.soft_threshold([0.3, 0.7]),
    "clip": lambda: prox.clip([0.5, 1.0]),
    "box": lambda: prox.box([-1.0, 0.0], [0.5, 2.0]),
    "ball": lambda: prox.l2_ball(2, 2, 0.8),
    "group": lambda: prox.group_l2(2, 2, 0.4),
    "relu": prox.relu,
    "simplex": lambda: prox.simplex(2),
    "softmax": lambda: prox.softmax(2),
    "sigmoid": prox.sigmoid,
    "identity": prox.identity,
    "learned": lambda: prox.piecewise_linear([[0.2, 0.5], [0.1, 1.0]], [[1.0, 0.5, 0.2], [0.9, 0.3, 0.1]]),
}


@pytest.mark.parametrize("name", PROXES)
def test_laws_of_proxes(name):
    p, rng = PROXES[name](), np.random.default_rng(0)
    v, w = rng.normal(0, 1, (2, 2, 6, 5))
    tau = 1.0 if name == "learned" else 0.7
    x = p.prox(v, tau)
    np.testing.assert_allclose(v, x + p.prox_conjugate(v / tau, 1 / tau) * tau, atol=1e-12)
    assert np.sum((p.prox(w, tau) - x) ** 2) <= np.vdot(p.prox(w, tau) - x, w - v) + 1e-12
    assert p.bregman(x, v, tau) == pytest.approx(0, abs=1e-12)
    assert p.bregman(p.prox(w, tau), v, tau) >= 0.5 * np.sum((p.prox(w, tau) - x) ** 2) - 1e-12
    np.testing.assert_allclose(p.bregman_gradient(w, v, tau), x - w)
    step = 1e-6 * rng.normal(size=v.shape)
    slope = (p.q_star(v + step, tau) - p.q_star(v - step, tau)) / 2
    assert slope == pytest.approx(np.vdot(x, step), rel=1e-4)
    change = (p.prox(v + step, tau) - p.prox(v - step, tau)) / 2
    assert np.vdot(change, w) == pytest.approx(np.vdot(step, p.pullback(v, w, tau)), rel=1e-3, abs=1e-12)


@pytest.mark.parametrize("name", DATA_TERMS)
def test_data_terms_are_minimised_and_conjugate(name):
    p, rng, tau = DATA_TERMS[name](), np.random.default_rng(1), 0.7
    v = rng.normal(0.5, 1, DATA.shape)
    x = p.prox(v, tau)

    def objective(u):
        return 0.5 * np.sum((u - v) ** 2) + tau * p.value(u)

    for length in (1e-3, 1e-1, 1.0):
        others = [objective(np.abs(x + length * rng.normal(size=v.shape))) for _ in range(50)]
        assert min(others) >= objective(x) - 1e-12
    # Pixel by pixel, on a grid: the values are sums over pixels.
    grid = np.linspace(0, 4, 4001)
    of = [p.value(np.where(np.arange(v.size).reshape(v.shape) == 7, u, x)) for u in grid]
    best = grid[np.argmin(0.5 * (grid - v.flat[7]) ** 2 + tau * np.array(of))]
    assert best == pytest.approx(max(x.flat[7], 0), abs=1e-3)
    # Fenchel-Young: equality where w is a subgradient, which the prox finds, else more.
    w = (v - x) / tau
    assert p.value(x) + p.conjugate_value(w) == pytest.approx(np.vdot(x, w), abs=1e-9)
    other = np.abs(x + 0.3 * rng.normal(size=v.shape))
    assert p.value(other) + p.conjugate_value(w) >= np.vdot(other, w) - 1e-9
    assert p.prox(v, tau).shape == v.shape and name[:4].lower() in repr(p).lower().replace("kullback-leibler", "counts")


def test_proxes_refuse():
    for term in DATA_TERMS.values():
        with pytest.raises(ValueError, match="60"):
            term().prox(np.zeros(3))
        with pytest.raises(ValueError, match="60"):
            solver.dual_forward_backward(np.zeros((4, 4)), operators.FiniteDifferences(), term())
    with pytest.raises(ValueError, match="count"):
        prox.kullback_leibler([-1.0])
    with pytest.raises(ValueError, match="weight"):
        prox.squared_distance([1.0], 0)
    with pytest.raises(ValueError):
        prox.absolute_distance([1.0], float("nan"))
    with pytest.raises(ValueError):
        prox.soft_threshold(-1.0)
    with pytest.raises(ValueError):
        prox.clip([1.0, 2.0]).prox(np.zeros(3))
    with pytest.raises(ValueError):
        prox.relu().prox(np.zeros(3), tau=0)
    with pytest.raises(ValueError):
        prox.piecewise_linear([[0.5, 0.2]], [[1.0, 1.0, 1.0]])


@pytest.mark.parametrize("shape", [(9, 7), (1, 1), (3, 20)])
@pytest.mark.parametrize("channels", [1, 3])
def test_operators_have_their_adjoints(shape, channels):
    rng = np.random.default_rng(0)
    for op in (operators.Convolution(rng.normal(size=(4, channels, 3, 3))), operators.FiniteDifferences()):
        x = rng.normal(size=(channels, *shape))
        y = rng.normal(size=op.apply(x).shape)
        assert np.vdot(op.apply(x), y) == pytest.approx(np.vdot(x, op.adjoint(y)), rel=1e-12, abs=1e-12)
        assert np.linalg.norm(op.apply(x)) <= op.norm(shape) * np.linalg.norm(x) * (1 + 1e-6)
        scipy = pytest.importorskip("scipy.sparse.linalg")
        matrix = operators.to_scipy(op, x.shape)
        np.testing.assert_allclose(matrix.T @ y.ravel(), op.adjoint(y).ravel())
        assert isinstance(matrix, scipy.LinearOperator)


def test_operators_refuse():
    with pytest.raises(ValueError):
        operators.Convolution(np.zeros((2, 1, 3, 5)))
    with pytest.raises(ValueError):
        operators.Convolution(np.zeros((2, 1, 3, 3))).apply(np.zeros((2, 8, 8)))
    with pytest.raises(ValueError):
        operators.FiniteDifferences().adjoint(np.zeros((3, 8, 8)))


@pytest.mark.parametrize("inertia", ["none", "nesterov", "chambolle-dossal"])
def test_the_dual_solver_finds_the_minimiser(inertia):
    _, z = noisy((14, 12))
    rng = np.random.default_rng(0)
    op = operators.Convolution(rng.normal(0, 0.3, (3, 1, 3, 3)))
    clip = prox.clip(0.1)
    found = solver.dual_forward_backward(z[np.newaxis], op, clip, inertia=inertia, tolerance=1e-7, iterations=50_000)
    assert found.converged and found.gap <= 1e-7 * found.objective

    def objective(x):
        return 0.5 * np.sum((x - z) ** 2) + 0.1 * np.abs(op.apply(x)).sum()

    assert found.objective == pytest.approx(objective(found.x), rel=1e-9)
    others = [objective(found.x + 1e-2 * rng.normal(size=z.shape)) for _ in range(20)]
    assert min(others) > found.objective
    np.testing.assert_allclose(found.x, z - op.adjoint(found.u))
    again = solver.dual_forward_backward(z[np.newaxis], op, clip, u=found.u, tolerance=1e-6)
    assert again.iterations == 0


def test_the_dual_solver_takes_any_operator_and_passes_exceptions_on():
    class Mine:
        def apply(self, x):
            return np.diff(x, axis=1, append=x[:, -1:])

        def adjoint(self, y):
            y = y.copy()
            y[:, -1] = 0
            return np.diff(-y, axis=1, prepend=0)

    _, z = noisy((8, 9))
    found = solver.dual_forward_backward(z, Mine(), prox.clip(0.2))
    assert found.converged and found.x.shape == z.shape

    class Broken(Mine):
        def adjoint(self, y):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        solver.dual_forward_backward(z, Broken(), prox.clip(0.2), tau=0.1)


class Clipped:
    """``0 <= x <= 1``, by a prox of one's own."""

    def prox(self, v, tau):
        assert tau > 0
        return v.clip(0, 1)


def test_splitting_algorithms_find_the_same_minimiser():
    _, z = noisy((12, 10))
    kernel = np.random.default_rng(0).uniform(0, 0.1, (1, 1, 3, 3))
    kernel[..., 1, 1] = 1
    data = solver.LeastSquares(blur := operators.Convolution(kernel), blur.apply(z), weight=2.0)
    start, limits = np.zeros((1, 12, 10)), {"tolerance": 1e-9, "iterations": 5000}
    absolute, differences = prox.soft_threshold(0.05), operators.FiniteDifferences()
    for inside in (prox.box(0.0, 1.0), Clipped()):
        found = [
            solver.forward_backward(data, inside, start, **limits),
            solver.forward_backward(data, inside, start, inertia="none", **limits),
            solver.douglas_rachford(data, inside, start, tau=2.0, **limits),
            solver.admm(data, inside, start, rho=0.5, **limits),
            solver.condat_vu(data, inside, prox.identity(), differences, start, **limits),
        ]
        for course in found:
            assert course.ended == "settled" and course.residual <= 1e-9 and course.x.shape == start.shape
            np.testing.assert_allclose(course.x, found[0].x, atol=1e-4)
    # The optimum of total variation has the subgradient of h that the dual variable is.
    full = solver.condat_vu(data, Clipped(), absolute, differences, start, balance=0.1, **limits)
    assert full.ended == "settled" and np.abs(full.u).max() <= 0.05 + 1e-9

    def objective(x):
        return data.value(x) + absolute.value(differences.apply(x))

    rng = np.random.default_rng(1)
    others = [objective((full.x + 1e-2 * rng.normal(size=z.shape)).clip(0, 1)) for _ in range(20)]
    assert min(others) > objective(full.x)
    again = solver.condat_vu(data, Clipped(), absolute, differences, full.x, u=full.u, balance=0.1, tolerance=1e-7)
    assert again.iterations == 1
    assert solver.admm(data, Clipped(), start, tolerance=0, iterations=3).ended == "iteration limit"


def test_condat_vu_denoises_as_the_dual_solver_does():
    _, z = noisy((12, 10))
    z, differences = z[np.newaxis], operators.FiniteDifferences()
    dual = solver.dual_forward_backward(z, differences, prox.l2_ball(2, 2, 0.1), tolerance=1e-9, iterations=20_000)
    found = solver.condat_vu(
        None, prox.squared_distance(z), prox.group_l2(2, 2, 0.1), differences, z, balance=0.1, tolerance=1e-9, iterations=20_000
    )
    np.testing.assert_allclose(found.x, dual.x, atol=1e-4)


def test_least_squares_keep_the_laws():
    rng = np.random.default_rng(0)
    data = solver.LeastSquares(operators.FiniteDifferences(), rng.normal(size=(2, 7, 6)), weight=3.0)
    v, step = rng.normal(size=(2, 1, 7, 6))
    x = data.prox(v, 0.7)
    np.testing.assert_allclose(v - x, 0.7 * data.gradient(x), atol=1e-7)
    slope = (data.value(v + 1e-6 * step) - data.value(v - 1e-6 * step)) / 2e-6
    assert slope == pytest.approx(np.vdot(data.gradient(v), step), rel=1e-6)
    assert np.linalg.norm(data.gradient(v) - data.gradient(x)) <= data.lipschitz(v.shape) * np.linalg.norm(v - x)


def test_splitting_algorithms_refuse_and_pass_exceptions_on():
    class Broken:
        def prox(self, v, tau):
            raise KeyError("mine")

        gradient = apply = adjoint = lambda self, x: {}["mine"]

    x, ours, lines = np.zeros((1, 4, 4)), prox.relu(), operators.FiniteDifferences()
    data = solver.LeastSquares(lines, np.zeros((2, 4, 4)))
    for call in (
        lambda: solver.admm(Broken(), ours, x), lambda: solver.douglas_rachford(ours, Broken(), x),
        lambda: solver.forward_backward(Broken(), ours, x, lipschitz=1.0), lambda: solver.forward_backward(data, Broken(), x),
        lambda: solver.condat_vu(data, ours, Broken(), lines, x), lambda: solver.LeastSquares(Broken(), x).prox(x),
    ):  # fmt: skip
        with pytest.raises(KeyError, match="mine"):
            call()
    for match, call in {
        "lipschitz": lambda: solver.forward_backward(Broken(), ours, x), "rho": lambda: solver.admm(ours, ours, x, rho=0),
        "step": lambda: solver.douglas_rachford(ours, ours, x, tau=-1), "60": lambda: solver.admm(prox.squared_distance(DATA), ours, x),
        "shape": lambda: solver.condat_vu(None, ours, ours, lines, x, u=x), "inertia": lambda: solver.forward_backward(data, ours, x, inertia="x"),
        "planes": lambda: solver.admm(prox.simplex(3), ours, x), "weight": lambda: solver.LeastSquares(lines, x, 0),
    }.items():  # fmt: skip
        with pytest.raises(ValueError, match=match):
            call()
    with pytest.raises(TypeError, match="prox"):
        solver.admm(ours, object(), x)


def autograd(model, z, x, u, mu):
    """E of the network and its gradients, written with PyTorch."""
    torch = pytest.importorskip("torch")
    conv, adj = torch.nn.functional.conv2d, torch.nn.functional.conv_transpose2d
    pad = model.kernel // 2
    tensor = lambda a: torch.tensor(np.asarray(a, float), requires_grad=True)  # noqa: E731
    theta, knots, slopes = tensor(model.theta), tensor(model.knots), tensor(model.slopes)
    u = [None] + [tensor(a) for a in u[1:]]
    z, x = torch.tensor(z), torch.tensor(x)
    tau, memory = model.tau.astype(float), model.memory
    shape = (-1, 1, 1)

    def q_star(k, v):
        total = 0.5 * slopes[k, :, -1].reshape(shape) * v**2
        for m in range(knots.shape[-1]):
            a, l = slopes[k, :, m] - slopes[k, :, m + 1], knots[k, :, m].reshape(shape)  # noqa: E741
            p = torch.minimum(torch.maximum(v, -l), l)
            total = total + a.reshape(shape) * p * (v - p / 2)
        return total.sum()

    us, r = [conv(z, theta[0], padding=pad)] + u[1:], None
    smooth = 0.0
    for k in range(1, model.depth + 1):
        alpha, beta, gamma = memory[k - 1]
        last = k == model.depth
        y = us[k - 1] if k == 1 or last else us[k - 1] + alpha * (us[k - 1] - us[k - 2])
        now = adj(y, theta[k], padding=pad) - z
        if r is not None:
            now = (1 - beta) * now + beta * r
        if model.bounded:
            now = now.clamp(-1, 0)
        if not last:
            seen = now if r is None else now + gamma * (now - r)
            v = y - tau[k - 1] * conv(seen, theta[k], padding=pad)
            smooth = smooth + 0.5 * (us[k] ** 2).sum() + q_star(k - 1, v) - (us[k] * v).sum()
        r = now
    loss = 0.5 * ((-r - x) ** 2).sum()
    (smooth + mu * loss).backward()
    return [g.grad.numpy() for g in (theta, knots, slopes)], [a.grad.numpy() for a in u[1:]], loss.item()


@pytest.mark.parametrize("unrolling", UNROLLINGS)
@pytest.mark.parametrize("bounded", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
def test_gradients_of_the_energy_are_those_of_autograd(unrolling, bounded, channels):
    model = network(unrolling, bounded=bounded, channels=channels, pieces=3)
    x, z = noisy((2, channels, 9, 8))
    energy = LiftedEnergy(model, z, x, mu=0.7)
    assert energy.penalties.max() < 1e-12
    rng = np.random.default_rng(0)
    u = energy.u
    for k in range(1, model.depth):
        # Inside the range of the activation, where E is finite.
        energy.set_u(k, 0.8 * u[k] + 0.001 * rng.normal(size=u[k].shape) * (np.abs(u[k]) > 0.01))
    parameters, by_u, loss = autograd(model, z, x, energy.u, 0.7)
    assert energy.value > 0 and energy.loss.sum() == pytest.approx(0.7 * loss, rel=1e-10)
    np.testing.assert_allclose(energy.theta_gradients(), parameters[0], rtol=1e-7, atol=1e-9)
    for ours, theirs in zip(energy.u_gradients(), by_u):
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


def test_the_energy_follows_its_gradient():
    model = network(pieces=2)
    x, z = noisy((1, 1, 10, 9))
    energy = LiftedEnergy(model, z, x, mu=0.5)
    for k in range(1, model.depth):
        energy.set_u(k, 0.9 * energy.u[k])
    theta, gradient = energy.theta, energy.theta_gradients()
    step = 1e-6 * np.random.default_rng(0).normal(size=theta.shape)
    energy.theta = theta + step
    above = energy.value
    energy.theta = theta - step
    assert (above - energy.value) / 2 == pytest.approx(np.vdot(gradient, step), rel=1e-5)


@pytest.mark.parametrize("part", [0, 1])
def test_the_energy_follows_its_activations(part):
    model = network(pieces=2, sigma=0.0)
    model = model.replace(slopes=0.1 + 0.8 * model.slopes)
    x, z = noisy((1, 1, 10, 9))

    def at(change):
        name = ("knots", "slopes")[part]
        energy = LiftedEnergy(model.replace(**{name: getattr(model, name) + change}), z, x)
        for k in range(1, model.depth):
            energy.set_u(k, u[k])
        return energy

    u = [0.9 * u_k for u_k in LiftedEnergy(model, z, x).u]
    gradient = at(np.float32(0)).activation_gradients()[part]
    step = (1e-3 * np.random.default_rng(0).uniform(-1, 1, gradient.shape)).astype(np.float32)
    slope = (at(step).value - at(-step).value) / 2
    assert slope == pytest.approx(np.vdot(gradient, step), rel=0.02)


def test_energies_refuse():
    model, (x, z) = network(), noisy((1, 1, 8, 8))
    for call in (
        lambda: LiftedEnergy(model, z[0], x), lambda: LiftedEnergy(model, z, x[..., 1:]),
        lambda: LiftedEnergy(model, z, x, mu=-1), lambda: LiftedEnergy(model, z, x, sigma=-1),
        lambda: LiftedEnergy(model, z, x).set_u(0, x), lambda: LiftedEnergy(model, z, x).set_u(9, x),
        lambda: LiftedEnergy(model, z, x).set_u(1, x),
    ):  # fmt: skip
        with pytest.raises(ValueError):
            call()
