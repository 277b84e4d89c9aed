"""Problems that are meant to go wrong: none of 300 may break, warn, or have a false bound."""

from __future__ import annotations

import numpy as np
import pytest

import fenchel as fl
from fenchel.testing import hostile
from fenchel.testing.hostile import command, exact, judge, problems


@pytest.fixture
def small(monkeypatch):
    """Problems whose runs take some milliseconds."""
    monkeypatch.setattr(problems, "MOST", 12)
    monkeypatch.setattr(judge, "SECONDS", 0.02)


@pytest.mark.parametrize("part", range(10))
def test_three_hundred_problems(part, small):
    outcomes = [hostile.run(seed, seconds=2.0) for seed in range(30 * part, 30 * (part + 1))]
    assert not [command._line(one) for one in outcomes if one.wrong]
    assert sum(one.exact for one in outcomes) >= 30
    assert sum(one.verdict == "unconverged" for one in outcomes) <= 1


def test_a_seed_is_one_problem():
    first, second = (hostile.make(5) for _ in range(2))
    assert str(first) == str(second)
    assert first.problem.alpha == second.problem.alpha
    np.testing.assert_array_equal(first.problem.target, second.problem.target)


@pytest.mark.parametrize("loss", exact.LOSSES)
def test_objectives_with_sixty_digits_are_those_of_doubles(loss):
    """The formulas of the judge, which are written by themselves, agree with those that they judge."""
    rng = np.random.default_rng(1)
    kind = getattr(fl, loss)()
    X = rng.standard_normal((12, 6))
    y = np.sign(X[:, 0] + 0.1) if kind.classification else np.abs(np.round(3 * X[:, 0]))
    for penalty in (fl.Lasso(), fl.ElasticNet(0.3), fl.GroupLasso([[0, 1], [1, 2, 3]]), fl.GroupMax([[0, 1], [4, 5]]),
                    fl.FusedLasso(0.2), fl.LowRank((2, 3)), fl.Slope(), fl.TreeGroups([[0, 1, 2], [0, 1], [4]]),
                    fl.ExclusiveLasso([[0, 1], [2, 3, 4]]), fl.NonNegative(), fl.Box(-1, 2)):  # fmt: skip
        problem = fl.Problem(X, y, loss=kind, penalty=penalty, alpha=0.3, fit_intercept=True)
        w = rng.uniform(0, 1, problem.size)
        assert float(exact.objective(problem, w)) == pytest.approx(problem.primal_at(w), rel=1e-13)


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
        found = [hostile.run(seed, seconds=5.0, loss="squared", penalty="lasso") for seed in range(4)]
        assert all(one.false for one in found)
    assert command._good(found, 1.0) is False


def test_from_the_command_line(small, capsys):
    assert command.main(["--cases", "2", "--seed", "3", "--quick", "--well-scaled", "--loss", "squared"]) == 0
    assert "0 broke, warned or had a false bound" in capsys.readouterr().out
