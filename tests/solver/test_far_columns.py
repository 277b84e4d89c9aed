"""Columns far from zero, with an intercept: single fits take no longer, and what comes back is of the data as it is."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel as fl

CASES = {
    "slope": ("squared", fl.Slope()),
    "fused": ("logistic", fl.FusedLasso()),
    "hinge": ("hinge", fl.L1()),
    "quantile": ("quantile", fl.FusedLasso()),
    "counts": ("poisson", fl.GroupMax([[0, 1, 2], [3, 4, 5]], rest="alone")),
    "matrix": ("huber", fl.LowRank((4, 5))),
}


def problems(loss, penalty, away=1e4, dtype=float, order="C", **more):
    """A problem, and the same on columns that lie `away` deviations from zero."""
    rng = np.random.default_rng(1)
    near = rng.standard_normal((60, 20))
    shift = away * rng.uniform(0.5, 1.5, 20) * rng.choice([-1, 1], 20)
    score = near[:, 0] - near[:, 1] + 0.3 * rng.standard_normal(60)
    y = np.sign(score) if loss in ("logistic", "hinge") else score
    y = rng.poisson(np.exp(0.3 * score)).astype(float) if loss == "poisson" else y
    y = np.column_stack([y, y[::-1]]) if more.pop("outputs", False) else y
    far = np.asarray(near + shift, dtype=dtype, order=order)
    near = far.astype(float) - shift  # what single precision made of it
    options = {"loss": loss, "penalty": penalty, "alpha": 0.02, "fit_intercept": True} | more
    return fl.Problem(near, y, **options), fl.Problem(far, y, **options), shift


def check(problem, result, tol=1e-6):
    """The result is proven for this very problem, state and all."""
    assert result.status is fl.Status.CONVERGED and result.relative_gap <= tol
    assert problem.primal(result.coef, result.intercept) == pytest.approx(result.primal, rel=1e-9)
    assert result.state["problem"] == problem.fingerprint
    made = problem.certificate(result.state)
    assert made.dual <= result.primal and made.relative_gap <= 10 * tol
    assert (np.diff(result.history.epoch) >= 0).all()


@pytest.mark.parametrize("name", CASES)
def test_as_many_passes_as_near_zero(name):
    near, far, shift = problems(*CASES[name])
    both = [fl.solve(problem) for problem in (near, far)]
    check(far, both[1])
    assert both[1].epochs <= 1.2 * both[0].epochs + 5
    assert max(result.dual for result in both) <= min(result.primal for result in both) * (1 + 1e-9)
    moved = both[1].intercept + shift @ both[1].coef
    assert near.primal(both[1].coef, moved) == pytest.approx(both[1].primal, rel=1e-6)


@pytest.mark.parametrize(
    "more",
    [
        {"dtype": np.float32, "away": 100.0},
        {"order": "F"},
        {"outputs": True},
        {"task": np.arange(60) % 2},
        {"sample_weight": np.arange(60) % 3},
        {"offset": np.linspace(-1, 1, 60)},
    ],
    ids=lambda more: next(iter(more)),
)
def test_kinds_of_data(more):
    _, far, _ = problems("squared", fl.FusedLasso(), **more)
    check(far, fl.solve(far))


def test_callbacks_see_the_columns_as_they_stand():
    _, far, _ = problems(*CASES["fused"])
    seen = []
    fl.solve(far, callback=lambda now: seen.append((now.current, far.primal(now.coef, now.intercept))))
    np.testing.assert_allclose(*np.transpose(seen), rtol=1e-8)
    assert len(seen) > 2
    seen.clear()
    stopped = fl.solve(far, callback=lambda now: seen.append(now.epoch) or len(seen) == 2, tol=1e-12)
    assert stopped.status is fl.Status.CALLBACK and stopped.epochs == seen[-1] and len(seen) == 2
    assert far.primal(stopped.coef, stopped.intercept) == pytest.approx(stopped.primal, rel=1e-8)


def test_limits_hold_for_the_whole():
    _, far, _ = problems(*CASES["quantile"])
    assert fl.solve(far, time_limit=0).status is fl.Status.TIME_LIMIT
    some = fl.solve(far, max_epochs=20, tol=1e-12)
    assert some.status is fl.Status.EPOCH_LIMIT and some.epochs <= 40  # an attempt that has begun is finished
    more = fl.solve(far, warm_start=some, tol=1e-6)
    check(far, more)
    assert more.epochs > some.epochs and len(more.history) > len(some.history)
    assert fl.solve(far, warm_start=more).epochs == more.epochs  # nothing is left to do


def test_a_neighbour_starts_it():
    _, far, _ = problems(*CASES["fused"])
    first = fl.solve(far)
    check(far.with_alpha(0.018), fl.solve(far.with_alpha(0.018), warm_start=first))
    with pytest.raises(ValueError, match="warm_start"):
        fl.solve(far, warm_start=fl.solve(fl.Problem(np.eye(60, 3), far.target, loss="logistic")))


def test_same_seed_same_bits():
    _, far, _ = problems(*CASES["hinge"])
    np.testing.assert_array_equal(*[fl.solve(far).coef for _ in range(2)])


def test_data_in_a_file_is_not_copied(tmp_path):
    """It may be larger than memory; and epochs alone are the paper's method, which looks at rows as they are."""
    from fenchel.solver.columns import begun_on_other_columns
    from fenchel.solver.engines import Engines
    from fenchel.solver.entry import _settings

    _, far, _ = problems(*CASES["slope"])
    np.save(tmp_path / "X.npy", far.data.dense)
    mapped = far.with_data(np.load(tmp_path / "X.npy", mmap_mode="r"))
    plain = {"tol": 1e-6, "max_epochs": 100, "time_limit": None, "callback": None, "random_state": 0}
    for problem, method, moved in [(far, "auto", True), (mapped, "auto", False), (far, "sdca-admm", False)]:
        settings = _settings(problem, method, {}, check_every=None, progress=False, **plain)
        begun = begun_on_other_columns(problem, settings, Engines(problem, settings, [problem.alpha]), None)
        assert (begun is not None) == moved


@pytest.mark.parametrize("far", [30.0, 1e5])
def test_moments_of_tasks_see_to_columns_themselves(far):
    """A proof for the columns as they stand, after a fit on centred ones, cost fifty times that fit."""
    from fenchel.solver.columns import begun_on_other_columns
    from fenchel.solver.engines import Engines
    from fenchel.solver.entry import _settings

    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 5)) + far * rng.standard_normal(5)
    y, task = rng.standard_normal(120) + X[:, 0] - X[:, 0].mean(), np.arange(120) % 4
    plain = {"tol": 1e-6, "max_epochs": 100, "time_limit": None, "callback": None, "random_state": 0}
    for loss, moved in [("squared", False), ("huber", True)]:
        problem = fl.Problem(X, y, loss=loss, penalty=fl.MultiTaskLasso(4), alpha=0.02, fit_intercept=True, task=task)
        settings = _settings(problem, "auto", {}, check_every=None, progress=False, **plain)
        begun = begun_on_other_columns(problem, settings, Engines(problem, settings, [problem.alpha]), None)
        assert (begun is not None) == moved
        check(problem, fl.solve(problem))
