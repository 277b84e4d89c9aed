"""Pools of rows: jobs, shared passes, and the same bits wherever the rows live."""

import dataclasses
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data.jobs import Fold, Look, Sample, Stats, Terms, uniform
from fenchel.data.partitions import Partition, partitioned
from fenchel.data.pools import Inline, SharedPasses, ahead

N, P = 3000, 15


def rows(sparse=False, single=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P)) * (rng.random((N, P)) < 0.5)
    X = X.astype(np.float32) if single else X
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(N) > 0, 1.0, -1.0)
    return (sp.csr_array(X) if sparse else X), y, rng.uniform(0.5, 2.0, N)


@pytest.fixture(autouse=True)
def anew(monkeypatch):
    """Rows that no driver can hold: every round reads them."""
    import fenchel.problem.pooled as module

    monkeypatch.setattr(module, "SPACE", 1.0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_order_of_partitions_does_not_change_a_bit(sparse, single, intercept):
    X, y, weight = rows(sparse, single)
    parts = partitioned(X, y, weight, rows=400)
    settings = {"loss": "logistic", "penalty": fl.FusedLasso(), "alpha": 0.01, "fit_intercept": intercept}
    first = fl.solve(fl.Problem(Inline(parts), **settings))
    other = fl.solve(fl.Problem(Inline(parts[::-1]), **settings))
    assert first.coef.tobytes() == other.coef.tobytes() and first.intercept == other.intercept
    assert first.status is fl.Status.CONVERGED


def test_other_borders_give_the_same_certified_answer():
    X, y, weight = rows()
    settings = {"loss": "squared-hinge", "penalty": fl.L1(), "alpha": 0.02, "fit_intercept": True}
    found = [
        fl.solve(fl.Problem(Inline(partitioned(X, y, weight, rows=k)), **settings), tol=1e-9) for k in (1, 77, 3000)
    ]
    memory = fl.solve(fl.Problem(X, y, sample_weight=weight, **settings), tol=1e-9)
    for one in found:
        assert one.relative_gap <= 1e-9
        assert one.primal == pytest.approx(memory.primal, rel=2e-9)


def test_partitions_without_rows_play_no_part():
    X, y, _ = rows()
    parts = partitioned(X, y, rows=1000)
    empty = [dataclasses.replace(Partition.of(k, X[:0], y[:0])) for k in (3, 4)]
    settings = {"loss": "logistic", "penalty": fl.L1(), "alpha": 0.02}
    one = fl.solve(fl.Problem(Inline(parts), **settings))
    other = fl.solve(fl.Problem(Inline([empty[0], *parts, empty[1]]), **settings))
    assert one.coef.tobytes() == other.coef.tobytes()


def test_draws_depend_on_the_place_of_a_row_alone():
    assert np.array_equal(uniform(3, 100, 7)[:50], uniform(3, 50, 7))
    assert not np.array_equal(uniform(3, 50, 7), uniform(4, 50, 7))
    many = uniform(0, 20_000, 0)
    assert many.min() >= 0 and many.max() < 1 and abs(many.mean() - 0.5) < 0.01
    X, y, _ = rows()
    parts = partitioned(X, y, rows=500)
    masks = [np.concatenate([Fold(4, k, 0).mask(part) for part in parts]) for k in range(4)]
    assert np.array_equal(np.sum(masks, axis=0), np.full(N, 3))  # every row is left out once


def test_a_sample_estimates_the_gram_matrix():
    X, y, _ = rows()
    parts = partitioned(X, y, rows=500)
    squares = (X**2).mean(axis=0)
    job = Sample(Terms(fl.Logistic(), 1), 1 / squares / (2 * N * P), 0.5 * 1000 / N, 1000.0, 0)
    total, count = np.zeros((P, P)), 0
    for seed in range(30):
        for part in parts:
            kept = dataclasses.replace(job, seed=seed)(part)[1]
            total += (kept["X"] / kept["share"][:, None]).T @ kept["X"] / 30
            count += len(kept["X"])
    assert np.abs(total - X.T @ X).max() < 0.05 * (X.T @ X).max()
    assert 800 < count / 30 < 1200


def test_a_look_sums_what_the_rows_have():
    X, y, weight = rows()
    loss = fl.Logistic()
    w = np.append(np.linspace(-1, 1, P), 0.3)
    terms = Terms(loss, 1, N / weight.sum())
    pool = Inline(partitioned(X, y, weight, rows=700))
    sums = pool.run([Look(terms, w, (0.0, 0.5, 1.0), 0.0, True, np.zeros((P + 1, 0)))])[0].sums
    s = weight * N / weight.sum()
    u = X @ w[:-1] + w[-1]
    x, Z = s * loss.gradient(u, y), np.column_stack([X, np.ones(N)])
    assert sums[0] == pytest.approx(s @ loss.value(u, y), rel=1e-12)
    own, each = loss.value_terms(y)
    assert sums[3] == pytest.approx(np.sum(s * np.abs(own)), rel=1e-12, abs=1e-12)  # for the allowances for rounding
    assert sums[4] == pytest.approx(np.sum((s * each) ** 2), rel=1e-12)
    conjugates, slopes = sums[5:11].reshape(2, 3), sums[11 : 11 + 2 * (P + 1)].reshape(2, -1)
    for k, group in enumerate((x > 0, x <= 0)):
        assert np.allclose(slopes[k], Z[group].T @ x[group], rtol=1e-12)
        for t, tau in enumerate((0.0, 0.5, 1.0)):
            true = s[group] @ loss.conjugate(tau * x[group] / s[group], y[group])
            assert conjugates[k, t] == pytest.approx(true, rel=1e-12, abs=1e-12)
    assert np.allclose(sums[11 + 2 * (P + 1) : 11 + 3 * (P + 1)], (s * loss.curvature(u, y)) @ Z**2, rtol=1e-12)


def test_several_solvers_share_their_passes():
    X, y, _ = rows()
    pool = Inline(partitioned(X, y, rows=500))
    problem = fl.Problem(pool, loss="logistic", penalty=fl.L1(), alpha=0.02)
    alone = [fl.solve(problem.with_pool(pool).with_alpha(alpha)) for alpha in (0.03, 0.01)]
    shared, found = SharedPasses(pool, 2), [None, None]

    def fit(k, alpha):
        try:
            found[k] = fl.solve(problem.with_pool(shared.member()).with_alpha(alpha))
        finally:
            shared.leave()

    threads = [threading.Thread(target=fit, args=(k, alpha)) for k, alpha in enumerate((0.03, 0.01))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(alone, found, strict=True):
        assert one.coef.tobytes() == other.coef.tobytes()
    assert shared.passes < alone[0].epochs + alone[1].epochs


def test_a_failure_reaches_everybody_who_shares_the_pass():
    class Broken(Inline):
        def run(self, jobs):
            if any(job.name == "look" for job in jobs):
                raise RuntimeError("the disk is gone")
            return super().run(jobs)

    X, y, _ = rows()
    pool = Broken(partitioned(X, y, rows=500))
    problem = fl.Problem(pool, loss="logistic", penalty=fl.L1())
    with pytest.raises(RuntimeError, match="disk is gone"):
        fl.cross_validate_path(problem, cv=3, alphas=[0.1, 0.01])


def test_a_reader_ahead_stops_with_its_caller_and_tells_of_errors():
    def numbers():
        yield 1
        yield 2
        raise ValueError("row 3")

    taken = []
    with pytest.raises(ValueError, match="row 3"):
        for number in ahead(numbers(), 1):
            taken.append(number)
    assert taken == [1, 2]
    endless = ahead(iter(int, 1), 2)
    assert next(endless) == 0
    endless.close()
    assert not any(thread.name == "fenchel reader" for thread in threading.enumerate())


def test_what_is_not_finite_is_named_with_its_place():
    X, y, _ = rows()
    X[1234, 7] = np.nan
    with pytest.raises(ValueError, match=r"partition 2, row 1234, column 7 is nan"):
        fl.Problem(Inline(partitioned(X, y, rows=500)), loss="logistic")
    sparse = sp.csr_array(X)
    with pytest.raises(ValueError, match=r"row 1234, column 7 is nan"):
        fl.Problem(Inline(partitioned(sparse, y, rows=500)), loss="logistic")
    X[1234, 7] = 0.0
    y[77] = np.inf
    with pytest.raises(ValueError, match=r"row 77: the target is inf"):
        fl.Problem(Inline(partitioned(X, y, rows=500)), loss="squared")
    assert Stats().name == "stats"
