"""The ways through a block of rows: one by one or by fours, alone or in a team, all rows or those that move."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel.data import WIDE, rows
from fenchel.kernels import teams
from fenchel.kernels.losses import CLOSED
from fenchel.kernels.sdca_admm import add_edges, awake
from fenchel.losses import LOSSES
from fenchel.maps import runs_of_rows
from fenchel.methods import SDCAADMM
from fenchel.methods.sdca_admm import method as sdca_admm


def make(n=70, p=WIDE + 5, loss="smoothed-hinge", dtype=float, **options):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)).astype(dtype)
    y = np.where(X[:, :5].sum(axis=1) + rng.standard_normal(n) > 0, 1.0, -1.0)
    groups = [range(k, min(k + 20, p)) for k in range(0, p - 3, 10)]
    problem = fl.Problem(X, y, loss=loss, penalty=fl.GroupL2(groups), **options)
    return problem.with_alpha(0.1 * problem.alpha_max())


def after(problem, epochs, how=None, shares=None, **options):
    """The state after so many epochs; `shares` gathers how many of the rows each of them visited."""
    method = SDCAADMM(**options)
    state = method.start(problem, np.random.default_rng(0))
    if how is not None:
        method.how = how
    visited = [method.epoch(state).share for _ in range(epochs)]
    if shares is not None:
        shares.extend(visited)
    return state


@pytest.mark.parametrize("loss", ["smoothed-hinge", "logistic"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_by_fours_is_one_by_one(loss, weighted, fit_intercept, dtype):
    weight = np.linspace(0.0, 2.0, 70) if weighted else None
    problem = make(loss=loss, dtype=dtype, fit_intercept=fit_intercept, sample_weight=weight)
    # blocks of 18 rows: the last four of each are two
    states = [after(problem, 6, how, block_size=18) for how in (1, 2)]
    for key in ("w", "x", "y", "zx", "by", "u"):
        one, four = (getattr(state, key) for state in states)
        np.testing.assert_allclose(four, one, rtol=1e-9, atol=1e-11 * np.abs(one).max())
    assert np.array_equal(states[0].idle, states[1].idle)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_rows_that_are_asked_for_ahead(n_jobs):
    problem = make(n=6301, dtype=np.float32, fit_intercept=True)  # large enough for it, and blocks end within a four
    shares = []
    states = [after(problem, 8, how, shares, block_size=101, n_jobs=jobs) for how, jobs in ((1, 1), (2, n_jobs))]
    assert min(shares[:8]) < 1  # some rows rested
    for key in ("w", "x", "y", "zx"):
        one, four = (getattr(state, key) for state in states)
        np.testing.assert_allclose(four, one, rtol=1e-8, atol=1e-10 * np.abs(one).max())


@pytest.mark.parametrize("loss", [name for name, loss in LOSSES.items() if loss.kernel in CLOSED])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_closed_forms_in_the_loop_are_those_that_are_called(loss, weighted, sparse, monkeypatch):
    weight = np.linspace(0.0, 2.0, 70) if weighted else None
    problem = make(p=40, loss=loss, sample_weight=weight, fit_intercept=True)
    if sparse:
        X = sp.csr_array(problem.data.arrays[0] * (np.arange(40) % 3 == 0))
        problem = fl.Problem(X, problem.target, loss=loss, penalty=problem.penalty, alpha=problem.alpha,
                             sample_weight=weight, fit_intercept=True)  # fmt: skip
    inside = after(problem, 6)
    monkeypatch.setattr("fenchel.kernels.losses.CLOSED", {})
    called = after(problem, 6)
    assert inside.x.any()
    for key in ("w", "x", "y", "zx"):
        one, other = getattr(inside, key), getattr(called, key)
        np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-11 * np.abs(other).max())


def test_sparse_rows_of_all_lengths_are_dense_ones():
    rng = np.random.default_rng(0)
    X = rng.permuted(np.tril(rng.standard_normal((31, 30)), -1), axis=1)
    assert np.count_nonzero(X, axis=1).tolist() == [*range(31)]
    y = np.where(rng.standard_normal(31) > 0, 1.0, -1.0)
    dense, sparse = (
        after(fl.Problem(data, y, loss="smoothed-hinge", penalty=fl.L1(), alpha=0.01, fit_intercept=True), 6)
        for data in (X, sp.csr_array(X))
    )
    for key in ("w", "x", "y", "zx"):
        np.testing.assert_allclose(getattr(sparse, key), getattr(dense, key), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("outputs", [1, 3])
def test_one_read_of_the_data_gives_both_products(sparse, fit_intercept, outputs):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((41, 30)) * (rng.random((41, 30)) < 0.5)
    y = rng.standard_normal((41, 3) if outputs > 1 else 41)
    problem = fl.Problem(sp.csr_array(X) if sparse else X, y, loss="squared", penalty=fl.L1(), alpha=0.1,
                         fit_intercept=fit_intercept)  # fmt: skip
    w, x = rng.standard_normal(problem.size), rng.standard_normal(problem.visits) * (np.arange(problem.visits) % 3 > 0)
    scores, total = problem.sweep(w, x)
    assert np.array_equal(scores, problem.scores(w))
    assert np.array_equal(total, problem.gradient_sum(x))
    coef, intercept = problem.unpack(w)
    np.testing.assert_allclose(scores.reshape(41, -1), (X @ coef.T + intercept).reshape(41, -1), rtol=1e-10)
    np.testing.assert_allclose(total[problem.feature_slots].reshape(outputs, 30), (X.T @ x.reshape(41, -1)).T)


@pytest.mark.parametrize("edges", range(8))
def test_edges_are_added_once_each(edges):
    rng = np.random.default_rng(edges)
    ends = np.array([rng.permutation(4)[:2] for _ in range(edges)], dtype=np.uint64).reshape(-1, 2)
    value, cy, inverse, by = rng.standard_normal(2 * edges), rng.standard_normal(edges), rng.random(edges), np.ones(4)
    B = sp.csr_array((value, ends.ravel().astype(int), np.arange(0, 2 * edges + 1, 2)), shape=(edges, 4))
    add_edges(cy, inverse, ends.ravel(), value, by)
    np.testing.assert_allclose(by, 1 + B.T @ (inverse * cy), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_remembered_products_change_no_bit(n_jobs, dtype):
    """Those of rows with each other: a resumed run has none, and must go the same way."""
    problem = make(loss="logistic", dtype=dtype)
    state = after(problem, 6, block_size=18, n_jobs=n_jobs)
    method = SDCAADMM(block_size=18, n_jobs=n_jobs)
    forgetful = method.start(problem, np.random.default_rng(0))
    for _ in range(6):
        method.epoch(forgetful)
        assert method.space[-1].any()
        method.space[-1][:] = 0.0
    for key in ("w", "x", "y", "zx"):
        assert np.array_equal(getattr(state, key), getattr(forgetful, key))


def test_runs_of_rows_with_one_entry():
    keep = np.r_[0:300, 10:200]  # two runs
    scattered, edges = np.arange(400)[::-1], fl.Difference(400).matrix(400)
    blocks = [sp.eye_array(400, format="csr")[keep], edges, sp.eye_array(400, format="csr")[scattered]]
    matrix = sp.csr_array(sp.vstack(blocks))
    bounds = np.cumsum([0, *(b.shape[0] for b in blocks)])
    in_runs, runs = runs_of_rows(matrix, bounds)
    assert in_runs.tolist() == [0, 2, 2, 2]
    assert runs.tolist() == [0, 300, bounds[-1]]
    assert runs_of_rows(sp.csr_array((0, 5)), np.array([0]))[1].tolist() == [0]


@pytest.mark.parametrize("penalty", [fl.L1(), fl.L1() + fl.L1() @ fl.Difference(WIDE + 5) + fl.GroupL2([range(130)])])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_runs_change_nothing(penalty, fit_intercept, monkeypatch):
    problem = make(fit_intercept=fit_intercept)
    problem = fl.Problem(*problem.data.arrays, problem.target, loss="smoothed-hinge", penalty=penalty, alpha=0.01,
                         fit_intercept=fit_intercept)  # fmt: skip
    assert runs_of_rows(problem.map_slots, problem.bounds)[0][-1] > 0
    with_runs = after(problem, 6)
    monkeypatch.setattr(sdca_admm, "runs_of_rows", lambda matrix, bounds: (np.zeros(len(bounds), int), bounds[-1:]))
    without = after(problem, 6)
    for key in ("w", "x", "y", "by", "u"):
        np.testing.assert_allclose(getattr(with_runs, key), getattr(without, key), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_a_team_finds_the_same_and_the_same_bits_every_time(n_jobs):
    problem = make(fit_intercept=True)
    alone = after(problem, 8, block_size=10)
    first, second = (after(problem, 8, block_size=10, n_jobs=n_jobs) for _ in range(2))
    for key in ("w", "x", "y", "zx", "by", "u", "idle"):
        assert np.array_equal(getattr(first, key), getattr(second, key)), key
    np.testing.assert_allclose(first.w, alone.w, rtol=1e-9, atol=1e-11 * np.abs(alone.w).max())
    result = fl.solve(problem, n_jobs=n_jobs)
    assert result.status is fl.Status.CONVERGED
    assert result.primal == pytest.approx(fl.solve(problem).primal, rel=2e-6)


@pytest.mark.parametrize("together", [True, False])
def test_one_thread_does_the_work_of_a_team_to_the_same_bits(together, monkeypatch):
    problem = make(fit_intercept=True)
    mixed = after(problem, 8, block_size=10, n_jobs=3)
    monkeypatch.setattr(teams.Crew, "_choose", lambda crew: together)
    state = after(problem, 8, block_size=10, n_jobs=3)
    for key in ("w", "x", "y", "zx", "by", "u", "idle"):
        assert np.array_equal(getattr(state, key), getattr(mixed, key)), key


def test_a_crew_takes_the_faster_way_and_tries_the_other_again(monkeypatch):
    crew, ways = teams.Crew(2), []
    # a clock by which together takes longer, as if the other core were taken
    monkeypatch.setattr(teams.time, "perf_counter", lambda: sum(10.0 if way == 2 else 1.0 for way in ways))

    def work(team):
        ways.append(team[1])

    for _ in range(34):
        crew.run(work, 1)
    assert ways.count(1) == 34 - 3  # at first, and after 16 and 32 calls
    assert ways.count(2) == 3 * 2
    assert ways[-1] == 1


def test_threads_where_they_cannot_help_change_nothing():
    narrow = make(p=40)
    alone, team = (fl.solve(narrow, n_jobs=jobs, newton=False, block_size=10) for jobs in (1, 2))
    assert np.array_equal(alone.coef, team.coef)


@pytest.mark.parametrize("n_jobs", [0, 1.5, "all", True])
def test_a_number_of_threads(n_jobs):
    with pytest.raises(ValueError, match=r"n_jobs is .*; it must be a whole number of threads, or -1 for all cores"):
        fl.solve(make(n=20), n_jobs=n_jobs)


def test_all_cores():
    assert SDCAADMM(n_jobs=-1).n_jobs >= 1
    assert SDCAADMM(n_jobs=None).n_jobs == 1


def test_resting_rows_are_seen_at_least_every_eighth_epoch():
    idle = np.arange(256, dtype=np.uint8)
    seen = np.array([np.isin(np.arange(256), awake(idle, epoch, 3)) for epoch in range(16)])
    gaps = [np.diff(np.flatnonzero(column)).max(initial=0) for column in seen.T]
    assert gaps == [2 ** min(count // 2, 3) for count in range(256)]


@pytest.mark.parametrize("loss", ["smoothed-hinge", "squared-hinge", "huber"])
def test_rest_saves_passes_and_not_the_answer(loss):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 20))
    y = np.where(X[:, :5].sum(axis=1) + 0.3 * rng.standard_normal(400) > 0, 1.0, -1.0)
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1() + fl.L1() @ fl.Difference(20), alpha=0.002)
    rest, visit = (fl.solve(problem, tol=1e-8, newton=False, rest=rest, max_epochs=5000) for rest in (True, False))
    assert rest.status is visit.status is fl.Status.CONVERGED
    np.testing.assert_allclose(rest.coef, visit.coef, atol=1e-3 * np.abs(visit.coef).max())
    if loss == "smoothed-hinge":  # most rows are on the safe side of the margin
        assert rest.epochs < 0.8 * visit.epochs


@pytest.fixture
def copied(monkeypatch):
    """Small data, too, are copied in single precision."""
    monkeypatch.setattr(rows, "CACHE", 0)


@pytest.mark.parametrize("loss", ["smoothed-hinge", "logistic"])
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_single_precision_is_left_for_the_last_digits(copied, loss, fit_intercept):
    problem = make(n=150, loss=loss, fit_intercept=fit_intercept)
    method = SDCAADMM(newton=False)
    state = method.start(problem, np.random.default_rng(0))
    method.epoch(state)
    assert method.rows[0].dtype == np.float32
    result = fl.solve(problem, tol=1e-10, newton=False)
    assert result.status is fl.Status.CONVERGED
    assert result.state["precise"]
    plain = fl.solve(problem, tol=1e-10, newton=False, block_size=7)
    assert result.primal == pytest.approx(plain.primal, rel=2e-10)


@pytest.mark.parametrize("options", [{"preset": "paper"}, {"preset": "theory"}, {"within": "joint"}], ids=str)
def test_presets_read_the_data_as_they_are(copied, options):
    method = SDCAADMM(**options)
    problem = make()
    method.epoch(method.start(problem, np.random.default_rng(0)))
    assert method.rows is problem.data.arrays
    assert "single" not in vars(problem.data)


def test_single_precision_that_holds_the_epochs_up_is_left(copied):
    """Columns far from zero: what counts is lost in rounding, and certificates show it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, WIDE))
    y = np.where(X[:, :5].sum(axis=1) > 0, 1.0, -1.0)
    X[:, :20] += 3e6
    problem = fl.Problem(X, y, loss="smoothed-hinge", penalty=fl.L1() + 0.1 * fl.Ridge(), alpha=0.02)
    result = fl.solve(problem, tol=1e-6, newton=False, max_epochs=300)
    assert result.state["precise"]
    assert result.dual <= fl.solve(problem, tol=1e-6, max_epochs=300).primal


@pytest.mark.parametrize("loss", ["smoothed-hinge", "logistic"])
def test_single_precision_of_columns_in_other_units(copied, loss):
    """A column of 1e8 beside one of 1e-8: the answer is proven all the same."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, WIDE))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, 1.0, -1.0)
    X[:, 5] *= 1e8
    X[:, 6] *= 1e-8
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1(), alpha=0.02)
    assert problem.data.single is not None
    assert fl.solve(problem, tol=1e-6).status is fl.Status.CONVERGED


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_resumed_in_either_precision(copied, n_jobs):
    problem = make(n=150, loss="smoothed-hinge")
    whole = fl.solve(problem, tol=0, max_epochs=150, newton=False, n_jobs=n_jobs)
    seen = set()
    for stop in range(5, 120, 11):
        part = fl.solve(problem, tol=0, max_epochs=stop, newton=False, n_jobs=n_jobs)
        seen.add(part.state["precise"])
        resumed = fl.solve(
            problem, tol=0, max_epochs=150 - part.epochs, warm_start=part, newton=False, n_jobs=n_jobs
        )  # fmt: skip
        for key in ("x", "y", "w", "zx"):
            assert np.array_equal(resumed.state[key], whole.state[key]), (stop, key)
    assert seen == {False, True}


def test_rest_is_a_yes_or_a_no():
    with pytest.raises(ValueError, match="rest is 'often'; it must be True or False"):
        fl.solve(make(n=20), rest="often")
