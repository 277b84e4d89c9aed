"""Problems that are meant to go wrong: none of 300 may break, warn, or have a false bound."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel as fl
from fenchel.losses import known_losses
from fenchel.testing import hostile
from fenchel.testing.hostile import command, conic, exact, judge, problems, targets


@pytest.fixture
def small(monkeypatch):
    """Problems whose runs take some milliseconds."""
    monkeypatch.setattr(problems, "DRAWS", problems.Draws(most=12))
    monkeypatch.setattr(judge, "SECONDS", 0.02)


@pytest.mark.parametrize("part", range(10))
def test_three_hundred_problems(part, small):
    outcomes = [hostile.run(seed, seconds=60.0) for seed in range(30 * part, 30 * (part + 1))]  # compiling counts
    assert not [command._line(one) for one in outcomes if one.wrong]
    assert sum(one.exact for one in outcomes) >= 30
    assert sum(one.verdict == "unconverged" for one in outcomes) <= 1


def test_a_group_model_that_no_step_helps():
    """Its patience doubles for ever: beyond all whole numbers, once."""
    assert not hostile.run(901000461, seconds=2.0, exact=False).wrong


def test_a_step_of_no_length_ends_the_search_for_its_curvature():
    """Softmax on columns whose units differ by many decades: what a step moves has a square below all numbers."""
    assert not hostile.run(9511000073, seconds=1.0, exact=False).wrong


def test_a_seed_is_one_problem():
    first, second = (hostile.make(5) for _ in range(2))
    assert str(first) == str(second)
    assert first.problem.alpha == second.problem.alpha
    np.testing.assert_array_equal(first.problem.target, second.problem.target)


def test_every_loss_is_drawn_and_judged():
    assert set(targets.DRAWN) == set(known_losses())


@pytest.mark.parametrize("loss", known_losses())
def test_objectives_with_sixty_digits_are_those_of_doubles(loss):
    """The formulas of the judge, which are written by themselves, agree with those that they judge."""
    rng = np.random.default_rng(1)
    kind = targets.drawn_loss(rng, loss)
    X, classes = rng.standard_normal((12, 6)), 3 if kind.coupled else 1
    score = X[:, :classes] + 0.1
    y = targets.targets_of(rng, kind, score if kind.coupled else score[:, 0], "plain")
    offset, weight = 0.3 * rng.standard_normal(12), np.append(rng.exponential(size=11), 0.0)
    for penalty in (fl.Lasso(), fl.ElasticNet(0.3), fl.GroupLasso([[0, 1], [1, 2, 3]]), fl.GroupMax([[0, 1], [4, 5]]),
                    fl.FusedLasso(0.2), fl.LowRank((2, 3 * classes)), fl.Slope(), fl.TreeGroups([[0, 1, 2], [0, 1]]),
                    fl.ExclusiveLasso([[0, 1], [2, 3, 4]]), fl.NonNegative(), fl.Box(-1, 2)):  # fmt: skip
        problem = fl.Problem(
            X, y, loss=kind, penalty=penalty, alpha=0.3, fit_intercept=not kind.across_rows, offset=offset,
            sample_weight=weight,
        )  # fmt: skip
        w = rng.uniform(0, 1, problem.size)
        assert float(exact.objective(problem, w)) == pytest.approx(problem.primal_at(w), rel=1e-13)


def test_infinite_weights_are_limits():
    problem = fl.Problem(np.eye(3), np.ones(3), loss="squared", alpha=1.0,
                         penalty=fl.GroupLasso([[0], [1, 2]], weights=[1.0, np.inf]))  # fmt: skip
    assert float(exact.objective(problem, np.array([0.5, 0.0, 0.0, 0.0]))) == pytest.approx(0.875)
    with pytest.raises(exact.Broken):
        exact.objective(problem, np.array([0.5, 0.0, 1e-300, 0.0]))


@pytest.mark.parametrize("loss", ["squared", "multinomial", "multiclass-hinge", "cox"])
def test_conic_optima_are_those_of_the_judge(loss, small):
    problem = hostile.make(10, loss=loss, penalty="multi-task-lasso" if loss == "squared" else "lasso",
                           well_scaled=True).problem  # fmt: skip
    value, coef, intercept = conic.optimum(problem)
    assert float(exact.objective(problem, problem.pack(coef, intercept))) == pytest.approx(value, rel=1e-6)


def test_a_broken_limit_is_seen():
    problem = fl.Problem(np.eye(3), np.ones(3), loss="squared", penalty=fl.Monotone(), alpha=1.0)
    with pytest.raises(exact.Broken):
        exact.objective(problem, np.array([1.0, 1.0 - 1e-15, 2.0, 0.0]))


def test_a_false_bound_is_seen(monkeypatch, small):
    """A dual bound that is raised by a millionth, and coefficients that are not those of the objective."""
    honest = judge.solve

    def raised(problem, **options):
        result = honest(problem, **options)
        result.dual = result.primal + 1e-6 * abs(result.primal)
        return result

    def moved(problem, **options):
        result = honest(problem, **options)
        result.coef = result.coef + 0.1
        return result

    for lie in (raised, moved):
        monkeypatch.setattr(judge, "solve", lie)
        found = [hostile.run(seed, seconds=5.0, loss="squared", penalty="lasso", well_scaled=True) for seed in range(4)]
        assert all(one.false for one in found)
    assert command._good(found, 1.0) is False


def test_from_the_command_line(small, capsys):
    assert command.main(["--cases", "2", "--seed", "3", "--quick", "--well-scaled", "--loss", "squared"]) == 0
    assert "0 broke, warned or had a false bound" in capsys.readouterr().out
