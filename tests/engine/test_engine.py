"""The loop with an engine: its proposals are judged like any certificate, and epochs take over where it gives up."""

from __future__ import annotations

import time

import cases
import numpy as np
import pytest

import fenchel as fl
from fenchel.engine import registry
from fenchel.engine.attempts import Faces, Multiplied, Rounds
from fenchel.engine.roles import Goal, Iterate, Proposal
from fenchel.solver.convergence import Convergence, stalled
from fenchel.solver.progress import Progress
from fenchel.solver.schedule import Schedule
from fenchel.testing import hostile


class Fake:
    """Proximal gradient steps, so many in a round; gives up after so many rounds. Told things are kept."""

    name = "fake"
    steps, most, hook = 300, 100, None
    cost = 1.0  # nanoseconds of a round, as it says: so cheap that epochs get no turn before it gives up
    made: list = []  # noqa: RUF012

    def __init__(self):
        self.begun, self.starts = [], []
        type(self).made.append(self)

    def unfit(self, problem):
        return None if problem.loss.smoothness is not None else "the loss has kinks"

    def begin(self, problem, alphas, tol):
        self.begun.append((list(alphas), tol))

    def rounds(self, problem, start, goal):
        self.starts.append(start)
        w = np.zeros(problem.size) if start is None else start.w.copy()
        step = 1.0 / np.linalg.norm(problem.data.arrays[0], 2) ** 2
        for number in range(self.most):
            for _ in range(self.steps):
                zx = problem.gradient_sum(problem.slopes_at(problem.scores(w)))
                length = np.full(problem.d, problem.n * step * problem.blocks[0].scale)
                u = problem.blocks[0].prox(w[:-1] - step * zx[:-1], length)
                w = np.append(u, 0.0)
            x = problem.slopes_at(problem.scores(w))
            zx = problem.gradient_sum(x)
            iterate = Iterate(w, x, -zx[:-1], zx, u)
            primal = problem.primal_at(w)
            made = problem.certificate(iterate, fresh=False, primal=primal)
            if self.hook is not None:
                self.hook(number)
            yield Proposal(iterate, primal, 2.0, self.name, made, nanoseconds=self.cost)


@pytest.fixture
def fake(monkeypatch):
    """An engine whose class attributes may be changed."""
    kind = type("Tested", (Fake,), {"made": []})
    monkeypatch.setattr(registry, "ENGINES", [lambda prices: kind()])
    return kind


@pytest.fixture
def problem():
    X, y, _ = cases.data(cases.losses()["squared"], n=120)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1())
    return problem.with_alpha(0.1 * problem.alpha_max())


def test_an_engine_finds_the_answer(fake, problem):
    result = fl.solve(problem, tol=1e-8)
    assert result.status is fl.Status.CONVERGED
    assert result.relative_gap <= 1e-8
    assert result.state["epoch"] == 0
    assert result.epochs == 2 * (len(result.history) - 1) > 0  # the first record is zero's
    (engine,) = fake.made
    assert engine.begun == [([problem.alpha], 1e-8)]
    assert engine.starts == [None]
    assert result.primal == pytest.approx(fl.solve(problem, tol=1e-8, newton=False).primal, rel=1e-7)


def test_epochs_go_on_where_it_gives_up(fake, problem):
    fake.steps, fake.most = 3, 2
    result = fl.solve(problem, tol=1e-8)
    assert result.status is fl.Status.CONVERGED
    assert list(result.history.epoch[:3]) == [0, 2, 4]
    assert result.epochs > 4 == result.state["engine_passes"]
    current = result.history.current  # the method went on from where the engine was
    assert current[2] < current[1] < current[0]
    assert np.all(result.history.primal[2:] <= current[2])


@pytest.mark.parametrize("most", [0, 1])
def test_an_engine_may_give_up_at_once(fake, problem, most):
    fake.steps, fake.most = 1, most
    assert fl.solve(problem, tol=1e-8).status is fl.Status.CONVERGED


def test_a_callback_stops_it(fake, problem):
    seen = []

    def stop(snapshot):
        seen.append((snapshot.epoch, snapshot.coef))
        return len(seen) == 3

    fake.steps = 2
    result = fl.solve(problem, tol=1e-12, callback=stop)
    assert result.status is fl.Status.CALLBACK
    assert [epoch for epoch, _ in seen] == [0, 2, 4]
    assert seen[-1][1].any()
    assert result.relative_gap < result.history.relative_gap[0]


def test_limits_stop_it(fake, problem):
    fake.steps = 1
    few = fl.solve(problem, tol=1e-12, max_epochs=10)
    assert few.status is fl.Status.EPOCH_LIMIT
    assert few.epochs == 10
    assert len(few.history) == 6
    late = fl.solve(problem, tol=1e-12, time_limit=0.0)
    assert late.status is fl.Status.TIME_LIMIT
    assert late.epochs == 0  # no round is begun
    fake.hook = staticmethod(lambda number: time.sleep(1.05))
    late = fl.solve(problem, tol=1e-12, time_limit=1.0)
    assert late.status is fl.Status.TIME_LIMIT
    assert late.epochs == 2  # what it was at is judged


def test_no_engine_for_a_handful_of_epochs_other_presets_or_without_attempts(fake, problem):
    for options in ({"max_epochs": 7}, {"preset": "paper", "max_epochs": 9}, {"newton": False, "max_epochs": 9}):
        assert fl.solve(problem, tol=1e-12, **options).state["engine_passes"] == 0
    assert fl.solve(problem, "batch-admm", tol=1e-2, max_epochs=9).epochs == 9
    assert not fake.made


def test_it_says_what_does_not_fit(fake):
    X, y, _ = cases.data(cases.losses()["hinge"], n=60)
    problem = fl.Problem(X, y, loss="hinge", penalty=fl.L1(), alpha=0.05)
    assert registry.fitting(problem) is None
    assert fl.solve(problem, tol=1e-6).status is fl.Status.CONVERGED


def test_ctrl_c_inside_it(fake, problem):
    def interrupt(number):
        if number == 2:
            raise KeyboardInterrupt

    fake.steps, fake.hook = 2, staticmethod(interrupt)
    result = fl.solve(problem, tol=1e-12)
    assert result.status is fl.Status.INTERRUPTED
    assert len(result.history) == 3  # zero and two rounds
    assert result.relative_gap < result.history.relative_gap[0]


def test_a_stopped_run_goes_on(fake, problem, tmp_path):
    fake.steps = 2
    part = fl.solve(problem, tol=1e-8, max_epochs=10)
    part.save(tmp_path / "part.npz")
    resumed = fl.solve(problem, tol=1e-8, warm_start=fl.Result.load(tmp_path / "part.npz"))
    assert resumed.status is fl.Status.CONVERGED
    assert resumed.epochs > part.epochs
    assert len(resumed.history) > len(part.history)
    np.testing.assert_array_equal(fake.made[-1].starts[0].x, part.state["x"])
    neighbour = fl.solve(problem.with_alpha(0.9 * problem.alpha), tol=1e-8, warm_start=part)
    assert neighbour.status is fl.Status.CONVERGED


def test_an_engine_that_gave_up_is_not_asked_again(fake, problem, monkeypatch):
    fake.steps, fake.most = 1, 2
    monkeypatch.setattr(Schedule, "propose", lambda *args: None)  # epochs alone
    whole = fl.solve(problem, tol=1e-12, max_epochs=400)
    part = fl.solve(problem, tol=1e-12, max_epochs=8)
    assert part.status is fl.Status.EPOCH_LIMIT
    assert part.state["epoch"] == 4
    resumed = fl.solve(problem, tol=1e-12, max_epochs=400, warm_start=part)
    assert [len(engine.starts) for engine in fake.made] == [1, 1, 0]
    assert resumed.epochs == whole.epochs
    np.testing.assert_array_equal(resumed.state["w"], whole.state["w"])


def test_one_engine_for_a_whole_path(fake, problem):
    alphas = problem.alpha_max() * np.array([0.8, 0.4, 0.2, 0.1])
    path = fl.path(problem, alphas=alphas, tol=1e-7)
    assert path.converged.all()
    (engine,) = fake.made
    assert engine.begun == [(list(alphas), 1e-7)]
    assert engine.starts == [None] * 4  # an engine predicts for itself
    cold = [fl.solve(problem.with_alpha(alpha), tol=1e-7, newton=False).primal for alpha in alphas]
    np.testing.assert_allclose(path.primals, cold, rtol=1e-6)


def test_folds_have_engines_of_their_own(fake, problem):
    found = fl.cross_validate_path(problem, cv=3, n_alphas=3, eps=0.1)
    assert found.converged.all()
    assert len(fake.made) == 3


# -- the attempts, the rule and the progress ----------------------------------------------------------


@pytest.mark.parametrize("kind", [Faces, Multiplied, Rounds])
@pytest.mark.parametrize("loss", ["squared", "logistic", "hinge"])
@pytest.mark.parametrize("edges", [False, True])
def test_attempts_say_whether_they_fit_and_propose_true_points(kind, loss, edges):
    X, y, _ = cases.data(cases.losses()[loss], n=200)
    penalty = fl.L1() @ fl.Difference(cases.P) if edges else fl.L1()
    problem = fl.Problem(X, y, loss=loss, penalty=penalty, alpha=0.02)
    reason = kind.unfit(problem)
    if reason is not None:
        assert isinstance(reason, str) and reason
        return
    near = fl.solve(problem, tol=1e-2, newton=False)
    start = Iterate(*(near.state[key] for key in ("w", "x", "y", "zx", "u")))
    goal = Goal(1e-6, np.inf, np.inf, Convergence.of(problem, 1e-6).allowed)
    attempt = kind(problem)
    assert attempt.price(start) > 0
    found = attempt.run(start, goal, 1e12)
    assert found.by == attempt.name
    assert found.passes > 0
    assert found.primal == pytest.approx(problem.primal_at(found.iterate.w), rel=1e-12)
    made = problem.certificate(found.iterate)
    assert made.relative_gap <= 1e-2
    if found.certificate is not None:
        assert found.certificate.gap == pytest.approx(made.gap, rel=1e-3, abs=1e-9 * abs(made.primal))


def test_one_rule_for_converged():
    X, y, _ = cases.data(cases.losses()["squared"], n=60)
    squared = fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.1)
    rule = Convergence.of(squared, 1e-3)
    assert rule.at_zero == squared.objective_at_zero() == pytest.approx(np.mean(y**2) / 2)
    assert rule.allowed(2.0) == pytest.approx(2e-3)
    assert rule.allowed(0.0) == pytest.approx(1e-13 * rule.at_zero)  # a trace stands in for zero
    assert rule.reached(fl.Certificate(1.0, 0.9995, 0.0)) and not rule.reached(fl.Certificate(1.0, 0.998, 0.0))
    assert not rule.reached(fl.Certificate(1.0, -np.inf, 0.0)) and not rule.reached(fl.Certificate(np.inf, 1.0, 0.0))
    labels = np.where(y > np.median(y), 1.0, -1.0)
    logistic = fl.Problem(X, labels, loss="logistic", penalty=fl.L1(), alpha=0.1)
    assert Convergence.of(logistic, 1e-3).at_zero == 0.0  # its infimum is not attained
    shares = {"mixed": np.full(60, 0.3), "one of zero": np.append(np.full(59, 0.3), 0.0)}
    mixed, falling = (fl.Problem(X, y, loss="binomial", penalty=fl.L1(), alpha=0.1) for y in shares.values())
    assert Convergence.of(mixed, 1e-3).at_zero == mixed.objective_at_zero() > 0.08
    assert Convergence.of(falling, 1e-3).at_zero == 0.0
    boxed = fl.Problem(X, y, loss="squared", penalty=fl.Box(0.1, 1.0))
    assert Convergence.of(boxed, 1e-3).at_zero == 0.0


def test_stalled_at_rounding():
    level = [fl.Certificate(1.0, 1.0 - 1e-13, 0.0)] * 13
    assert stalled(level) and not stalled(level[1:])
    assert not stalled([fl.Certificate(1.0, 1.0 - 1e-9, 0.0)] * 13)
    assert not stalled([*level[:12], fl.Certificate(1.0, 1.0 - 5e-14, 0.0)])
    zero = [fl.Certificate(1e-15, 0.0, 0.0)] * 13  # beside an objective of 1 at the start that is rounding
    assert stalled(zero, at_zero=1.0) and not stalled(zero)


def test_runs_end_where_rounding_is_all_that_is_left_of_a_loss_without_a_least_value():
    """Two rows that a direction without penalty separates up to a trace of alpha: nothing more can be proven."""
    result = fl.solve(hostile.make(21001000132).problem, time_limit=60)
    assert result.status == fl.Status.STALLED and result.gap < 1e-12


def test_progress_of_older_files():
    """Numbers that were saved under other names, or not at all, have their meaning or their default."""
    old = {"epoch": 12, "newton_passes": 3.5, "newton_due": 24, "newton_tries": 1, "rested": 0.25, "w": np.zeros(3)}
    progress = Progress.from_dict(old)
    assert (progress.attempt_passes, progress.attempt_due, progress.attempts_in_vain) == (3.5, 24, 1)
    assert progress.passes == 16
    assert progress.gap == np.inf and not progress.engine_ended
    assert Progress.from_dict(progress.as_dict()) == progress


def test_an_older_file_resumes(problem):
    """As it was saved before the loop counted: to the same bits."""
    part = fl.solve(problem, tol=0.0, max_epochs=30, newton=False)
    resumed = fl.solve(problem, tol=0.0, max_epochs=20, warm_start=part, newton=False)
    names = {"attempt_passes": "newton_passes", "attempt_due": "newton_due", "attempts_in_vain": "newton_tries"}
    gone = ("engine_passes", "engine_ended")
    part.state = {names.get(key, key): value for key, value in part.state.items() if key not in gone}
    again = fl.solve(problem, tol=0.0, max_epochs=20, warm_start=part, newton=False)
    np.testing.assert_array_equal(again.state["w"], resumed.state["w"])
    assert again.epochs == resumed.epochs


# -- weights ------------------------------------------------------------------------------------------


def test_other_weights_are_another_problem(problem):
    """Nothing that depends on weights is shared; the squared loss keeps its curvature from solve to solve."""
    rng = np.random.default_rng(0)
    weight = rng.exponential(size=problem.n)
    first = fl.solve(problem, tol=1e-9)
    other = problem.with_weights(weight)
    assert other.zero_answer is None and other.fingerprint != problem.fingerprint
    assert other.gram is problem.gram
    X, y = problem.data.arrays[0], problem.target
    anew = fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=problem.alpha, sample_weight=weight)
    found, expected = fl.solve(other, tol=1e-9), fl.solve(anew, tol=1e-9)
    assert found.primal == expected.primal and found.epochs == expected.epochs
    np.testing.assert_array_equal(found.coef, expected.coef)
    assert found.primal != first.primal
    assert problem.weight.size == 0  # as it was
    np.testing.assert_array_equal(fl.solve(problem, tol=1e-9).coef, first.coef)
