"""Block descent: the least along a unit against brute force, laws of its parts, and whole models."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fenchel.engine.inner.descent import ModelDescent
from fenchel.engine.inner.groups import GroupModel
from fenchel.engine.inner.local import LocalPenalty
from fenchel.kernels import block_descent
from fenchel.kernels.apart import opened
from fenchel.prices import PRICES

reduce_block, largest_eigenvalue, least_of_block = (
    opened(kernel)
    for kernel in (block_descent.reduce_block, block_descent.largest_eigenvalue, block_descent.least_of_block)
)

seeds = st.integers(0, 10_000)
sizes = st.integers(1, 12)


def block(seed, size, rank=None):
    """A positive semidefinite block with columns of very different lengths."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rank or size + 2, size)) * 10.0 ** rng.uniform(-2, 2, size)
    return A.T @ A, rng


def reduced(G):
    size = len(G)
    basis, work = np.empty(size * (size + 2)), np.empty(size * (size + 3))
    work[: size * size] = G[:size, :size].ravel()
    reduce_block(size, basis, 0, work)
    square = size * size
    T = np.diag(basis[square : square + size])
    beside = basis[square + size : square + 2 * size - 1]
    return basis, basis[:square].reshape(size, size).T, T + np.diag(beside, 1) + np.diag(beside, -1)


def least_by_eigenvectors(H, b, weight):
    """The root of |v(r)| = r by bisection, in the eigenvectors of H."""
    if np.linalg.norm(b) <= weight:
        return np.zeros(len(b))
    values, vectors = np.linalg.eigh(H)
    c = vectors.T @ b

    def s(r):
        return c / (r * np.maximum(values, 0.0) + weight)

    low, high = 0.0, 1.0
    while np.linalg.norm(s(high)) > 1:
        high *= 2
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if np.linalg.norm(s(middle)) > 1 else (low, middle)
    return high * (vectors @ s(high))


@given(seeds, sizes, st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_block_is_reduced_to_three_diagonals(seed, size, poor):
    H, _ = block(seed, size, max(1, size // 2) if poor else None)
    _, Q, T = reduced(H)
    np.testing.assert_allclose(Q @ T @ Q.T, H, atol=1e-12 * np.abs(H).max())
    np.testing.assert_allclose(Q.T @ Q, np.eye(size), atol=1e-12)


@pytest.mark.parametrize("H", [np.zeros((3, 3)), np.eye(4), np.ones((5, 5)), np.diag([1.0, 0.0, 2.0])])
def test_blocks_without_much_in_them(H):
    _, Q, T = reduced(H)
    np.testing.assert_allclose(Q @ T @ Q.T, H, atol=1e-14)


@given(seeds, sizes)
@settings(max_examples=60, deadline=None)
def test_the_largest_eigenvalue_is_bounded_tightly(seed, size):
    H, _ = block(seed, size)
    basis, _, _ = reduced(H)
    found, true = largest_eigenvalue(basis, size * size, size), np.linalg.norm(H, 2)
    assert true * (1 - 1e-12) <= found <= true * 1.002


# at a share of one, 10**0, rounding decides whether the weight holds the block at zero
@given(seeds, sizes, st.floats(-3, 1).filter(lambda share: abs(share) > 1e-6), st.floats(-6, 3), st.booleans())
@settings(max_examples=150, deadline=None)
def test_the_least_along_a_block(seed, size, share, start, poor):
    """From any start: visits from where the last one ended come to the minimiser, and no visit raises the model."""
    H, rng = block(seed, size, max(1, size // 2) if poor else None)
    basis, _, _ = reduced(H)
    b = H @ rng.standard_normal(size)
    weight = 10.0**share * np.linalg.norm(b)
    best, work, space = least_by_eigenvectors(H, b, weight), np.empty(size * (size + 3)), np.empty(size)

    def value(v):
        return 0.5 * v @ H @ v - b @ v + weight * np.linalg.norm(v)

    # a weight that nearly holds the block leaves differences of large numbers
    rounding, v = 1e-13 * abs(b @ best), 10.0**start * rng.standard_normal(size)
    for _ in range(12):
        before = value(v)
        space[:] = b
        least_of_block(0, size, weight, basis, 0, np.linalg.norm(v), space, work)
        v = space.copy()
        assert value(v) <= before + 1e-12 * (abs(before) + abs(value(best))) + rounding
    assert value(v) <= value(best) + 1e-10 * abs(value(best)) + rounding
    np.testing.assert_array_equal(v == 0, best == 0)


def groups_of(m, size, seed, sparse=False, rank=None):
    """A model with groups whose columns are alike, and its penalty."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((rank or 2 * m, m // size))
    A = np.repeat(common, size, axis=1) + 0.3 * rng.standard_normal((rank or 2 * m, m))
    G, g = A.T @ A / len(A), A.T @ rng.standard_normal(len(A)) / np.sqrt(len(A))
    none = np.full(m, np.inf)
    start = np.arange(0, m + 1, size)
    return G, g, LocalPenalty(np.full(m, 0.2 if sparse else 0.0), -none, none, start, np.full(m // size, 0.8))


def value(G, g, v, local):
    return g @ v + 0.5 * v @ G @ v + local.value(v)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("m", "size", "rank"), [(60, 5, None), (120, 3, 40), (200, 20, 50), (30, 1, None)])
def test_models_with_groups_are_solved(m, size, rank, sparse):
    """The slopes at the answer are those of the penalty: the optimality conditions, and the gap's word."""
    G, g, local = groups_of(m, size, 1, sparse, rank)
    v, q = np.zeros(m), g.copy()
    assert ModelDescent(PRICES).solve(G, q, v, local, 1e-10) <= 1e-10
    np.testing.assert_allclose(q, g + G @ v, atol=1e-9)
    for first in range(0, m, size):
        part, slope, weight = v[first : first + size], -q[first : first + size], local.l1[first : first + size]
        if part.any():
            slope = slope - 0.8 * part / np.linalg.norm(part)
            np.testing.assert_allclose(slope[part != 0], (weight * np.sign(part))[part != 0], atol=1e-4)
            assert np.all(np.abs(slope[part == 0]) <= weight[part == 0] + 1e-4)
        else:
            assert np.linalg.norm(np.maximum(np.abs(slope) - weight, 0.0)) <= 0.8 + 1e-4


def test_what_is_gained_is_what_the_model_loses():
    G, g, local = groups_of(60, 5, 2, sparse=True)
    v, q = np.zeros(60), g.copy()
    run = GroupModel(G, q, v, local)
    for _ in range(6):
        run.settle(0.0, 1)
        small, some = run.part(run.live())
        small.settle(0.0, 20_000)
        small.newton()
        run.take(small, run.live(), some)
        assert run.gained == pytest.approx(value(G, g, np.zeros(60), local) - value(G, g, v, local), rel=1e-9)
        np.testing.assert_allclose(q, g + G @ v, atol=1e-10)


def test_extrapolation_stays_within_the_bounds_and_descends():
    G, g, local = groups_of(60, 5, 3)
    local.lower[::2] = 0.0
    v, q = np.zeros(60), g.copy()
    run, last = GroupModel(G, q, v, local), np.inf
    for _ in range(20):
        run.settle(0.0, 60 * 60 * 12)
        assert np.all(v >= local.lower)
        assert value(G, g, v, local) <= last + 1e-12
        last = value(G, g, v, local)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("near", [True, False])
def test_groups_have_the_same_bits_wherever_the_arrays_are(near, sparse):
    """Sums in a loop that writes would be added in another order where arrays are close to each other."""
    G, g, local = groups_of(60, 6, 4, sparse)

    def run(memory, step):
        q, v = memory[:60], memory[step : step + 60]
        q[:], v[:] = g, 0.0
        GroupModel(G, q, v, local).settle(0.0, 60 * 60 * 15)
        return q.tobytes() + v.tobytes()

    assert run(np.zeros(120), 60) == run(np.zeros(1000), 300 if near else 301)


@pytest.mark.parametrize("sparse", [False, True])
def test_newton_in_the_space_of_the_rows_is_newton(sparse):
    """Fewer rows than coefficients: the same step by Woodbury's identity."""
    rng = np.random.default_rng(5)
    A = rng.standard_normal((60, 25)) / 5.0
    G, g, local = A @ A.T, A @ rng.standard_normal(25), groups_of(60, 5, 5, sparse)[2]
    v = rng.standard_normal(60) * np.repeat(np.arange(12) % 3 > 0, 5)
    v[::7] = 0.0 if sparse else v[::7]
    run = GroupModel(G, g + G @ v, v, local)
    run.roots, run.rank = (lambda some: A[some]), 25
    place = np.empty(60, dtype=np.int64)
    count = run.kernels.movable(v, *run.limits[:5], place)
    np.testing.assert_allclose(run._narrow_step(place), run._step(place, count), rtol=1e-4, atol=1e-6)
