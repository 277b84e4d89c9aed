"""Code of a user, which test_typing.py has checked by mypy --strict against the installed package, and runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from typing_extensions import assert_type

import fenchel as fl
from fenchel.problem import Certificate

Vector = npt.NDArray[np.float64]

rng = np.random.default_rng(0)
X = rng.standard_normal((40, 6))
y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(40)

# the algebra of penalties
groups = fl.Groups({"first": [0, 1, 2], "second": [3, 4, 5]}, p=6)
penalty = 0.5 * fl.L1() + fl.GroupLasso(groups) + 0.1 * (fl.L1() @ fl.Difference(6))
assert_type(penalty, fl.Penalty)
assert_type(fl.L1().value(np.ones(6)), float)
assert_type(groups["first"], npt.NDArray[np.int64])

# one fit
problem = fl.Problem(X, y, loss="squared", penalty=penalty, alpha=0.01)
assert_type(problem.with_alpha(0.1), fl.Problem)
result = fl.solve(problem, tol=1e-6)
assert_type(result, fl.Result)
assert_type(result.coef, Vector)
assert_type(result.gap, float)
assert_type(result.status, fl.Status)
certificate = problem.certificate(fl.solve(problem).state)
assert_type(certificate, Certificate)
assert_type(certificate.relative_gap, float)


# a loss and a penalty of one's own
class Halved(fl.Loss):
    """A quarter of the squared error."""

    smoothness = 0.5

    def value(self, score: Vector, target: Vector) -> Vector:
        return 0.25 * (score - target) ** 2

    def gradient(self, score: Vector, target: Vector) -> Vector:
        return 0.5 * (score - target)

    def conjugate(self, dual: Vector, target: Vector) -> Vector:
        return dual**2 + dual * target

    def domain(self, target: Vector) -> tuple[Vector, Vector]:
        return np.full_like(target, -np.inf), np.full_like(target, np.inf)

    def dual_step(self, point: Vector, curvature: Vector, target: Vector) -> Vector:
        return (curvature * point - target) / (2.0 + curvature)


class Half(fl.Penalty):
    """Half of the l1 norm."""

    def value(self, u: Vector) -> float:
        return 0.5 * float(np.abs(u).sum())

    def prox(self, u: Vector, step: float | Vector) -> Vector:
        shrunk: Vector = np.sign(u) * np.maximum(np.abs(u) - 0.5 * np.asarray(step), 0.0)
        return shrunk

    def conjugate(self, y: Vector) -> float:
        return 0.0 if self.gauge(y) <= 1 + 1e-12 else np.inf

    def gauge(self, y: Vector) -> float:
        return 2.0 * float(np.abs(y).max(initial=0.0))


fl.testing.check_loss(Halved())
fl.testing.check_penalty(Half(), 4)
own = fl.solve(fl.Problem(X, y, loss=Halved(), penalty=Half(), alpha=0.05))
assert_type(own.coef, Vector)

# paths and folds
along = fl.path(problem, n_alphas=5)
assert_type(along, fl.Path)
assert_type(along[0], fl.Result)
assert_type([one.gap for one in along], list[float])
folds = fl.cross_validate_path(X, y, loss="squared", penalty=fl.L1(), cv=3, n_alphas=4)
assert_type(folds, fl.CrossValidation)
assert_type(folds.select("1se"), int)

# estimators
model = fl.StructuredRegressor(penalty=fl.L1(), alpha=0.05).fit(X, y)
assert_type(model, fl.StructuredRegressor)
assert_type(model.coef_, Vector)
assert_type(model.result_, fl.Result)
labels = np.where(y > 0, "yes", "no")
chosen = fl.StructuredClassifierCV(penalty=fl.ElasticNet(0.5), n_alphas=4, cv=3).fit(X, labels)
assert_type(chosen, fl.StructuredClassifierCV)

# the prox of a whole penalty
assert_type(fl.prox(y, fl.L1(), 0.3), Vector)
shrunk, info = fl.prox(y, fl.FusedLasso(), 0.3, return_info=True)
assert_type(shrunk, Vector)
assert_type(info.gap, float)
