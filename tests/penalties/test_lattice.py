"""The prox along chains and grids: against the general kernel and a conic solver, and where it does not apply."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fenchel as fl
from fenchel.kernels.prox import structured_prox
from fenchel.proximal import ChainProx, LatticeProx, StructuredProx, prox

P = 24
PATHS = fl.Incidence([(i, i + 1) for i in range(P - 1) if i not in (6, 7, 15)], P)  # a feature stands alone
CHAINS = {
    "chain": fl.L1() @ fl.Difference(P),
    "chain with l1": fl.L1() @ fl.Difference(P) + 0.4 * fl.L1(),
    "chain with l1 and a quadratic": fl.L1() @ fl.Difference(P) + 0.2 * fl.L1() + 0.3 * fl.Ridge(),
    "weighted chain": fl.L1(np.linspace(0.1, 2, P - 1)) @ fl.Difference(P),
    "scaled chain": fl.L1() @ fl.Matrix(np.diff(np.eye(P), axis=0) * np.linspace(-1, 2, P - 1)[:, None]),
    "chains": fl.L1() @ PATHS + 0.3 * fl.L1(),
}
GRIDS = {
    "grid": fl.TotalVariation((4, 6)),
    "grid with l1": fl.TotalVariation((4, 6), l1_ratio=0.3),
    "grid with a quadratic": fl.TotalVariation((4, 6)) + 0.2 * fl.Ridge(),
    "grid of three dimensions": fl.TotalVariation((2, 3, 4)),
    "edges of a grid": fl.L1()
    @ fl.Incidence([(i, i + d) for d in (1, 6) for i in range(P - d) if d > 1 or i % 6 < 5], P),
    "chain with another l1 norm": fl.L1() @ fl.Difference(P) + fl.L1(np.linspace(0.1, 1, P)),
}
OTHERS = {
    "graph": fl.L1() @ fl.Incidence([(i, (7 * i + 3) % P) for i in range(P) if i != (7 * i + 3) % P], P),
    "trend": fl.L1() @ fl.Difference(P, order=2),
    "bounds": fl.L1() @ fl.Difference(P) + fl.NonNegative(),
    "quadratic of differences": fl.L1() @ fl.Difference(P) + fl.Ridge() @ fl.Difference(P),
    "an edge twice": fl.L1() @ fl.Incidence([(0, 1), (1, 2), (0, 1)], P),
    "groups along a chain": fl.GroupL2([range(10), range(10, P - 1)]) @ fl.Difference(P),
    "l1": fl.L1(),
}


def prepare(penalty, **options):
    rng = np.random.default_rng(0)
    problem = fl.Problem(
        rng.standard_normal((5, P)), rng.standard_normal(5), loss="squared", penalty=penalty, **options
    )
    structured = StructuredProx(problem)
    return problem, structured, LatticeProx.make(structured)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(CHAINS | GRIDS)), st.floats(0.01, 30), st.integers(0, 10_000), st.booleans())
def test_agrees_with_the_general_kernel(name, eta, seed, fit_intercept):
    problem, structured, lattice = prepare((CHAINS | GRIDS)[name], alpha=0.7, fit_intercept=fit_intercept)
    assert isinstance(lattice, ChainProx) == (name in CHAINS)
    v, info = np.random.default_rng(seed).standard_normal(problem.size), np.zeros(4)
    expected, u, general = np.zeros(problem.size), np.zeros(problem.d), np.zeros(problem.d)
    structured_prox(v, eta, general, expected, u, structured.solver, (1e-15, 0.0, 100_000), info)
    slope = np.zeros(problem.d)
    w = lattice(v, eta, slope, (1e-14 * float(v @ v), 100_000), info)
    assert info[3] == 1.0
    np.testing.assert_allclose(w, expected, atol=1e-5)
    seen, kept = lattice.structure(slope), structured._rows
    np.testing.assert_allclose(seen[kept], (problem.map_slots @ w)[kept], atol=1e-5)
    # all blocks have their subgradients: v - w = B s, inside the balls, and tight
    np.testing.assert_allclose(eta * (problem.adjoint @ structured.dual(slope, w)), v - w, atol=1e-9 * (1 + eta))
    for block, first, last in problem._parts():
        if block.function.gauge(np.ones(block.d)) < np.inf:
            assert block.function.gauge(slope[first:last] / block.scale) <= 1 + 1e-9
            at = (problem.map_slots @ w)[first:last]
            assert eta * slope[first:last] @ at == pytest.approx(eta * block.scale * block.function.value(at), abs=1e-5)


@pytest.mark.parametrize("name", OTHERS)
def test_leaves_other_penalties_alone(name):
    assert prepare(OTHERS[name])[2] is None


@pytest.mark.parametrize("step", [0.1, 2.0, 1e3])
def test_long_chain_against_a_conic_solver(step):
    rng = np.random.default_rng(1)
    v = np.repeat(rng.standard_normal(20), 15) + 0.3 * rng.standard_normal(300)
    found, info = prox(v, fl.L1() @ fl.Difference(300) + 0.2 * fl.L1(), step, return_info=True)
    w = cp.Variable(300)
    value = cp.sum_squares(w - v) / 2 + step * (cp.norm1(cp.diff(w)) + 0.2 * cp.norm1(w))
    cp.Problem(cp.Minimize(value)).solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    np.testing.assert_allclose(found, w.value, atol=1e-6)
    np.testing.assert_array_equal(np.diff(found) == 0, np.abs(np.diff(w.value)) < 1e-5)
    assert info.converged
    assert info.iterations == 1


def test_a_grid_begins_where_it_ended():
    problem, _, lattice = prepare(GRIDS["grid"])
    v, info, slope = np.random.default_rng(2).standard_normal(problem.size), np.zeros(4), np.zeros(problem.d)
    first = lattice(v, 2.0, slope, (1e-12, 10_000), info)
    steps = info[2]
    again = lattice(v, 2.0, slope, (1e-12, 10_000), info)
    assert info[2] < steps
    np.testing.assert_allclose(first, again, atol=1e-5)
