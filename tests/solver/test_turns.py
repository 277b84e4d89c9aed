"""Whose turn it is, and what that costs: never more than 5/2 of the better of engine and epochs, in the price model."""

import math

import cases
import numpy as np
import pytest

import fenchel as fl
from fenchel.engine import registry
from fenchel.prices import PRICES
from fenchel.solver import turns
from fenchel.solver.progress import Progress

BARE = ("non-negative",)  # no penalty beside the constraint: a logistic loss may have no least value
SMOOTH = [name for name, loss in cases.losses().items() if not loss.kinked]


def alone(monkeypatch, problem, who):
    """The run of one of the two; infinite where the engine gives up, and epochs go on."""
    with monkeypatch.context() as patch:
        if who == "engine":
            patch.setattr(turns.Turns, "engine_goes", lambda self, progress: True)
        else:
            patch.setattr(registry, "ENGINES", [])
        result = fl.solve(problem.with_alpha(problem.alpha), tol=1e-6)
    gave_up = who == "engine" and result.state["epoch"] > 0
    return math.inf if gave_up else result.history.nanoseconds[-1], result


def pieces(history):
    return np.diff(history.nanoseconds, prepend=0.0)


@pytest.mark.parametrize("loss", SMOOTH)
def test_never_far_from_the_better_one(loss, monkeypatch):
    """Over all penalties; a last round or a certificate's spacing of epochs may come on top."""
    checked = 0
    for name, (penalty, alpha) in cases.penalties().items():
        X, y, _ = cases.data(cases.losses()[loss], n=80)
        problem = fl.Problem(X, y, loss=cases.losses()[loss], penalty=penalty, alpha=alpha)
        if registry.fitting(problem) is None or (name in BARE and not problem.loss.attained):
            continue
        both = fl.solve(problem, tol=1e-6)
        engine, first = alone(monkeypatch, problem, "engine")
        epochs, second = alone(monkeypatch, problem, "epochs")
        assert both.status is fl.Status.CONVERGED, name
        last = max(pieces(one.history).max() for one in (both, first, second))
        assert both.history.nanoseconds[-1] <= 2.5 * min(engine, epochs) + last, name
        checked += 1
    assert checked > 5


def several_outputs(rng):
    X = rng.standard_normal((60, 12))
    Y = X @ (rng.standard_normal((12, 3)) * (rng.random((12, 1)) < 0.4)) + 0.3 * rng.standard_normal((60, 3))
    return fl.Problem(X, Y, loss="squared", penalty=fl.MultiTaskLasso(3))


def several_tasks(rng):
    X, task = rng.standard_normal((90, 8)), np.arange(90) % 3
    y = np.where(X[:, 0] + 0.5 * rng.standard_normal(90) > 0, 1.0, -1.0)
    return fl.Problem(X, y, loss="logistic", penalty=fl.MultiTaskLowRank(3), task=task)


def a_wide_chain(rng):
    X = rng.standard_normal((40, 1200))
    y = X[:, 100:140].sum(axis=1) + rng.standard_normal(40)
    return fl.Problem(X, y, loss="squared", penalty=fl.FusedLasso(0.5))


def a_lasso(rng):
    X = rng.standard_normal((80, 30))
    return fl.Problem(X, X[:, 0] + 0.3 * rng.standard_normal(80), loss="huber", penalty=fl.L1())


def a_graph(rng):
    X = rng.standard_normal((200, 30))
    edges = [(i, (7 * i + 3) % 30) for i in range(30) if i != (7 * i + 3) % 30]
    y = np.where(X[:, :5].sum(axis=1) + rng.standard_normal(200) > 0, 1.0, -1.0)
    return fl.Problem(X, y, loss="logistic", penalty=fl.L1() @ fl.Incidence(edges, 30))


def latent_groups(rng):
    X = rng.standard_normal((40, 80))
    y = X[:, :8].sum(axis=1) + rng.standard_normal(40)
    groups = [list(range(k, min(k + 8, 80))) for k in range(0, 80, 6)]
    return fl.Problem(X, y, loss="squared", penalty=fl.LatentGroupLasso(groups))


def classes(rng):
    X, y = rng.standard_normal((120, 10)), rng.integers(0, 3, 120)
    return fl.Problem(X, y, loss="multinomial", penalty=fl.L1())


def times(rng):
    """No sum over rows: epochs do not serve it."""
    X = rng.standard_normal((60, 8))
    y = np.column_stack([rng.exponential(np.exp(-X[:, 0])), rng.random(60) < 0.7])
    return fl.Problem(X, y, loss="cox", penalty=fl.L1() @ fl.Difference(8))


KINDS = {
    "outputs": several_outputs, "tasks": several_tasks, "wide": a_wide_chain, "lasso": a_lasso, "graph": a_graph,
    "latent": latent_groups, "classes": classes,
}  # fmt: skip


@pytest.mark.parametrize("share", [0.3, 0.02])
@pytest.mark.parametrize("kind", KINDS)
def test_never_far_from_the_better_one_for_every_engine(kind, share, monkeypatch):
    problem = KINDS[kind](np.random.default_rng(5))
    problem = problem.with_alpha(share * problem.alpha_max())
    assert registry.fitting(problem) is not None
    both = fl.solve(problem, tol=1e-6)
    engine, first = alone(monkeypatch, problem, "engine")
    epochs, second = alone(monkeypatch, problem, "epochs")
    assert both.status is fl.Status.CONVERGED
    last = max(pieces(one.history).max() for one in (both, first, second))
    assert both.history.nanoseconds[-1] <= 2.5 * min(engine, epochs) + last


def test_every_engine_of_the_registry_is_among_them():
    found = {registry.fitting(make(np.random.default_rng(5))).name for make in [*KINDS.values(), times]}
    assert found == {kind(PRICES).name for kind in registry.ENGINES}


def test_the_engine_waits_for_epochs_that_may_be_faster():
    rule = turns.Turns(lambda: 1000.0, math.exp(-10))
    fresh = Progress()
    assert rule.engine_goes(fresh)
    fresh.engine_nanoseconds = 1.5 * 10 * 1000
    assert rule.engine_goes(fresh)
    fresh.engine_nanoseconds *= 1.01
    assert not rule.engine_goes(fresh)  # more than 3/2 of what ten epochs cost
    fresh.epochs_nanoseconds = 11 * 1000.0
    assert rule.engine_goes(fresh)  # they have caught up


def test_a_slow_pace_of_epochs_lets_the_engine_go_on():
    rule = turns.Turns(lambda: 1000.0, 1e-6)
    slow = Progress(engine_nanoseconds=60_000.0)
    assert not rule.engine_goes(slow)
    for _ in range(10):
        slow.count_epoch(1.0, math.inf, 1000.0)
    slow.learn(0.5)  # a gap of 1/2 after ten epochs: some 200 more
    assert rule.engine_goes(slow)


def test_no_price_is_asked_where_the_first_round_suffices():
    def never():
        raise AssertionError("nobody needs to know")

    assert turns.Turns(never, 1e-6).engine_goes(Progress())


def test_history_tells_who_did_what():
    X, y, _ = cases.data(cases.losses()["logistic"], n=80)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1() @ fl.Difference(X.shape[1]))
    problem = problem.with_alpha(0.05 * problem.alpha_max())
    auto, epochs = fl.solve(problem), fl.solve(problem, "sdca-admm")
    assert set(auto.history.work()) == {"zero", "quadratic models"}
    assert set(epochs.history.work()) == {"zero", "sdca-admm"}
    for result in (auto, epochs):
        work = result.history.work()
        assert sum(own["passes"] for own in work.values()) == result.epochs
        assert sum(own["certificates"] for own in work.values()) == len(result.history)
        assert sum(own["nanoseconds"] for own in work.values()) == pytest.approx(result.history.nanoseconds[-1])
        assert math.prod(own["gap"] for own in work.values()) == pytest.approx(result.gap / result.history.gap[0])
    assert auto.primal == pytest.approx(epochs.primal, rel=2e-6)


def test_history_survives_a_file(tmp_path):
    X, y, _ = cases.data(cases.losses()["squared"], n=40)
    result = fl.solve(fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.1))
    result.save(tmp_path / "result.npz")
    again = fl.Result.load(tmp_path / "result.npz")
    assert list(again.history.by) == list(result.history.by)
    assert again.history.records == result.history.records


def test_few_rows_behind_a_map_take_more_epochs():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((10, 90)), rng.standard_normal(10)
    chain = fl.Problem(X, y, loss="squared", penalty=fl.L1() @ fl.Difference(90))
    assert turns.fold_of(chain) == pytest.approx(9.0)
    assert turns.fold_of(fl.Problem(X, y, loss="squared", penalty=fl.L1())) == 1.0
    assert turns.fold_of(fl.Problem(X.T, rng.standard_normal(90), loss="squared", penalty=fl.GroupL2([[0, 1]]))) == 1.0
    rule = turns.Turns(lambda: 1000.0, math.exp(-10), 9.0)
    assert rule.engine_goes(Progress(engine_nanoseconds=1.5 * 90 * 1000))
    assert not rule.engine_goes(Progress(engine_nanoseconds=1.51 * 90 * 1000))
