"""A loss, penalty, map, method and engine of a user, each one class in one file of a package that fenchel never saw."""

from __future__ import annotations

import importlib
import subprocess
import sys

import numpy as np
import pytest

import fenchel as fl
from fenchel.engine import registry as engines
from fenchel.losses import LOSSES
from fenchel.maps import MAPS
from fenchel.methods import METHODS
from fenchel.penalties import CATALOGUE
from fenchel.testing import check_engine, check_loss, check_map, check_method, check_penalty, small_problems

FILES = {
    "expectile": '''
"""Squared error that counts `level` where the score is too low and 1 - `level` where it is too high."""
import numpy as np
import fenchel as fl
from fenchel.losses import register


@register("expectile")
class Expectile(fl.Loss):
    def __init__(self, level=0.75):
        self.level = level

    @property
    def smoothness(self):
        return max(self.level, 1 - self.level)

    def _weight(self, sign):
        return np.where(sign < 0, self.level, 1 - self.level)

    def value(self, score, target):
        return 0.5 * self._weight(score - target) * (score - target) ** 2

    def gradient(self, score, target):
        return self._weight(score - target) * (score - target)

    def conjugate(self, dual, target):
        return target * dual + dual**2 / (2 * self._weight(dual))

    def domain(self, target):
        return np.full(np.shape(target), -np.inf), np.full(np.shape(target), np.inf)

    def dual_step(self, point, curvature, target):
        top = curvature * point - target
        return top / (curvature + 1 / self._weight(top))
''',
    "probit": '''
"""A loss of labels with a likelihood: the squared hinge says nothing of probabilities, this one does."""
import fenchel as fl
from fenchel.losses import register


@register("confident")
class Confident(fl.Logistic):
    def probability(self, score):
        return super().probability(2 * score)
''',
    "growth": '''
"""An l1 norm that takes sides."""
import numpy as np
import fenchel as fl
from fenchel.penalties import register


@register("tilted")
class Tilted(fl.Penalty):
    def __init__(self, up=1.0, down=2.0):
        self.up, self.down = up, down

    def value(self, u):
        return float(np.where(u > 0, self.up, -self.down) @ u)

    def prox(self, u, step):
        return np.maximum(u - step * self.up, 0) + np.minimum(u + step * self.down, 0)

    def conjugate(self, y):
        return 0.0 if self.gauge(y) <= 1 + 1e-12 else np.inf

    def gauge(self, y):
        return float(max((y / self.up).max(initial=0.0), (-y / self.down).max(initial=0.0)))

    def units(self, d):
        return np.arange(d)
''',
    "ring": '''
"""Differences of neighbours on a circle, which is a graph that plots and answers find."""
import numpy as np
import scipy.sparse as sp
import fenchel as fl
from fenchel.maps import register
from fenchel.penalties import register as register_penalty
from fenchel.penalties.shorthand import Shorthand


@register("ring")
class Ring(fl.Map):
    def __init__(self, p):
        self.p = p

    def _matrix(self, p):
        return sp.csr_array(sp.eye_array(p) - sp.csr_array(np.roll(np.eye(p), 1, axis=1)))

    def neighbours(self):
        here = np.arange(self.p)
        return np.column_stack([here, (here + 1) % self.p]), None


@register_penalty("circular")
class Circular(Shorthand):
    """A name by which the command line finds the map."""

    def build(self, p):
        return fl.L1() @ Ring(p)
''',
    "descent": '''
"""Proximal gradients, a step per epoch."""
import numpy as np
from fenchel.methods import Method, register
from fenchel.methods.common import smooth_reason


@register("proximal-gradient")
class ProximalGradient(Method):
    name = "proximal-gradient"

    def supports(self, problem):
        if not problem.is_plain:
            return "it needs a penalty that is one function of the coefficients of one output as they are"
        return smooth_reason(problem)

    def prepare(self, problem):
        super().prepare(problem)
        X = np.column_stack([problem.data.filled(), np.full(problem.n, float(problem.fit_intercept))])
        heaviest = problem.weight.max() if problem.weight.size else 1.0
        self.step = problem.n / (problem.loss.smoothness * heaviest * np.linalg.norm(X, 2) ** 2)

    def advance(self, state, order):
        problem, (block,) = self.problem, self.problem.blocks
        slope = problem.gradient_sum(problem.slopes_at(problem.scores(state.w))) / problem.n
        v, shrink = state.w - self.step * slope, 1.0 / (1.0 + self.step * block.ridge)
        u = block.prox(shrink * v[: problem.p], np.full(problem.p, shrink * self.step * block.scale))
        state.w[:] = v
        state.w[: problem.p] = state.u[:] = u
''',
    "machine": '''
"""An engine for the expectile loss with a plain penalty: proximal gradients with momentum, proposed now and then."""
import numpy as np
from fenchel.engine.registry import register
from fenchel.engine.roles import Iterate, Proposal


@register
class Momentum:
    name = "momentum"

    def __init__(self, prices):
        self.prices = prices

    def unfit(self, problem):
        if not problem.is_plain or problem.weight.size:
            return "it needs a penalty of the coefficients as they are, and rows of equal weight"
        return None if problem.loss.smoothness else "it needs a loss with a Lipschitz gradient"

    def begin(self, problem, alphas, tol):
        X = np.column_stack([problem.data.filled(), np.full(problem.n, float(problem.fit_intercept))])
        self.step = problem.n / (problem.loss.smoothness * np.linalg.norm(X, 2) ** 2)

    def rounds(self, problem, start, goal):
        (block,) = problem.blocks
        w = np.zeros(problem.size) if start is None else start.w.copy()
        ahead, speed = w.copy(), 1.0
        shrink = 1.0 / (1.0 + self.step * block.ridge)
        for count in range(1, 4001):
            slope = problem.gradient_sum(problem.slopes_at(problem.scores(ahead))) / problem.n
            new = ahead - self.step * slope
            u = block.prox(shrink * new[: problem.p], np.full(problem.p, shrink * self.step * block.scale))
            new[: problem.p] = u
            faster = 0.5 * (1 + np.sqrt(1 + 4 * speed * speed))
            back = (ahead - new) @ (new - w) > 0
            ahead = new + (0.0 if back else (speed - 1) / faster) * (new - w)
            w, speed = new, 1.0 if back else faster
            if count % 20 == 0:
                x = problem.slopes_at(problem.scores(w))
                zx = problem.gradient_sum(x)
                at = Iterate(w.copy(), x, -zx[: problem.p], zx, u.copy())
                primal = problem.primal_at(w)
                yield Proposal(at, primal, 40.0, self.name, problem.certificate(at, fresh=False, primal=primal))
''',
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The package, imported; what it registers is gone afterwards."""
    folder = tmp_path / "mine_of_fenchel"
    folder.mkdir()
    for name, text in FILES.items():
        (folder / f"{name}.py").write_text(text)
    (folder / "__init__.py").write_text("".join(f"from . import {name}\n" for name in FILES))
    tables = LOSSES, MAPS, CATALOGUE, METHODS
    before, engines_before = [dict(table) for table in tables], list(engines.ENGINES)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module("mine_of_fenchel")
    for table, known in zip(tables, before, strict=True):
        table.clear()
        table.update(known)
    engines.ENGINES[:] = engines_before
    for name in [name for name in sys.modules if name.startswith("mine_of_fenchel")]:
        del sys.modules[name]


def data(labels=False):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 6))
    y = X[:, 0] - 2 * X[:, 1] + 0.3 * rng.standard_normal(80)
    return X, np.where(y > 0, "yes", "no") if labels else y


def test_the_whole_battery(package):
    check_loss(package.expectile.Expectile(0.9))
    check_loss(package.probit.Confident())
    check_penalty(package.growth.Tilted(0.5, 3.0), d=12)
    check_map(package.ring.Ring(12))
    check_method(package.descent.ProximalGradient)
    check_engine(package.machine.Momentum)


def test_estimators(package):
    X, y = data()
    model = fl.StructuredRegressor(loss="expectile", penalty=CATALOGUE["tilted"](), alpha=0.05).fit(X, y)
    assert model.status_.value == "converged" and model.gap_ >= 0
    assert np.mean(y < model.predict(X)) > 0.5  # the level is above one half
    ring = fl.StructuredRegressor(penalty=fl.L1() @ MAPS["ring"](6), alpha=0.1).fit(X, y)
    assert ring.status_.value == "converged" and len(ring.segments()) < 6
    best = fl.StructuredRegressorCV(loss="expectile", penalty=fl.L1(), cv=3).fit(X, y)
    assert best.status_.value == "converged"
    X, y = data(labels=True)
    bold = fl.StructuredClassifier(loss="confident", penalty=fl.L1(), alpha=0.01).fit(X, y)
    plain = fl.StructuredClassifier(loss="logistic", penalty=fl.L1(), alpha=0.01).fit(X, y)
    assert np.all(bold.predict_proba(X).max(axis=1) >= plain.predict_proba(X).max(axis=1) - 1e-4)


def test_method_and_engine_in_a_solve(package):
    X, y = data()
    problem = fl.Problem(X, y, loss="expectile", penalty=fl.L1(), alpha=0.05, fit_intercept=True)
    slow = fl.solve(problem, method="proximal-gradient", tol=1e-7, max_epochs=3000)
    quick = fl.solve(problem, tol=1e-7)
    assert slow.relative_gap <= 1e-7 and quick.relative_gap <= 1e-7
    np.testing.assert_allclose(slow.coef, quick.coef, atol=1e-3)
    assert "momentum" in {record.by for record in quick.history.records}
    path = fl.path(problem, n_alphas=5, eps=0.1)
    assert path.converged.all()
    with pytest.raises(ValueError, match="one function of the coefficients"):
        fl.solve(problem.with_penalty(fl.FusedLasso()), method="proximal-gradient")


def test_names_are_entered_once(package):
    for register, kind in (
        (fl.losses.register, fl.Squared),
        (fl.penalties.register, fl.L1),
        (fl.maps.register, fl.Map),
    ):
        with pytest.raises(ValueError, match="already"):
            register({"Squared": "expectile", "L1": "tilted", "Map": "ring"}[kind.__name__])(kind)
    with pytest.raises(ValueError, match="already"):
        engines.register(package.machine.Momentum)


def test_command_line_and_saved_model(package, tmp_path):
    """In a process of its own, as a user would: the module is named on the command line."""
    pytest.importorskip("typer")
    from fenchel.models.saved_model import Model

    X, y = data()
    np.savetxt(tmp_path / "data.csv", np.column_stack([X, y]), delimiter=",", header="a,b,c,d,e,f,y", comments="")
    command = [sys.executable, "-m", "fenchel", "--import", "mine_of_fenchel"]
    fit = [*command, "fit", "data.csv", "--loss", "expectile", "--penalty", "tilted", "--alpha", "0.05", "-o", "m.json"]
    done = subprocess.run(fit, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    model = Model.load(tmp_path / "m.json")
    assert model.loss == "expectile" and model.certificate["status"] == "converged" and "Tilted" in model.penalty
    expected = fl.StructuredRegressor(loss="expectile", penalty=CATALOGUE["tilted"](), alpha=0.05, tol=1e-6).fit(X, y)
    np.testing.assert_allclose(model.coef, expected.coef_, atol=1e-2)
    predict = [*command, "predict", "m.json", "data.csv", "-o", "p.csv"]
    done = subprocess.run(predict, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    without = [part for part in predict if part not in ("--import", "mine_of_fenchel")]
    done = subprocess.run(without, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2 and "its loss is 'expectile'" in done.stderr
    model.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()
    # behind the map, with a loss of the package: through a penalty that has a name
    ring = [*command, "fit", "data.csv", "--penalty", "circular", "--alpha", "0.1", "-o", "r.json"]
    done = subprocess.run(ring, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    model = Model.load(tmp_path / "r.json")
    assert model.certificate["status"] == "converged" and "Circular" in model.penalty
    expected = fl.StructuredRegressor(penalty=fl.L1() @ MAPS["ring"](6), alpha=0.1).fit(X, y)
    np.testing.assert_allclose(model.coef, expected.coef_, atol=1e-2)


@pytest.mark.parametrize("loss, penalty", [("expectile", "tilted"), ("confident", "circular"), ("squared", "circular")])
def test_saved_estimators(package, tmp_path, loss, penalty):
    """Each of them in a fitted estimator that goes through a file."""
    X, y = data(labels=LOSSES[loss]().classification)
    kind = fl.StructuredClassifier if LOSSES[loss]().classification else fl.StructuredRegressor
    model = kind(loss=loss, penalty=CATALOGUE[penalty](), alpha=0.02).fit(X, y)
    model.save(tmp_path / "model.json")
    again = fl.load_model(tmp_path / "model.json")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.status_ == model.status_ and again.gap_ == model.gap_
    if model._classification:
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_a_method_and_an_engine_serve_every_door(package):
    """A path goes through the engine without naming it; the method takes the penalty."""
    X, y = data()
    path = fl.path(X, y, loss="expectile", penalty=fl.L1(), n_alphas=3, eps=0.2)
    assert path.converged.all()
    by = {record.by for result in path.results for record in result.history.records}
    assert "momentum" in by
    problem = fl.Problem(X, y, loss="squared", penalty=CATALOGUE["tilted"](), alpha=0.05)
    slow = fl.solve(problem, method="proximal-gradient", tol=1e-6, max_epochs=3000)
    quick = fl.solve(problem, tol=1e-9)
    assert slow.relative_gap <= 1e-6 and quick.relative_gap <= 1e-9
    assert slow.dual <= quick.primal and quick.dual <= slow.primal


@pytest.mark.parametrize("name", ["sdca-admm", "batch-admm", "sag"])
def test_built_in_methods_pass_the_same_battery(name):
    problems = small_problems()
    check_method(METHODS[name], [problems[one] for one in ("lasso", "logistic elastic net", "quantile")])


@pytest.mark.parametrize("kind", engines.ENGINES, ids=lambda kind: kind.__name__)
def test_built_in_engines_pass_the_same_battery(kind):
    fitting = [one for one in small_problems().values() if kind(engines.PRICES).unfit(one) is None]
    if not fitting:
        pytest.skip("none of the small problems is for this engine")
    check_engine(kind, fitting)
