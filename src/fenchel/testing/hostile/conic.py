"""The same problems for a conic solver (CVXPY with Clarabel), which shares nothing with what it judges."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import entr

from ... import penalties as known
from ...losses import (
    Binomial,
    EpsilonInsensitive,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    Loss,
    NegativeBinomial,
    Poisson,
    Quantile,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    Tweedie,
)  # fmt: skip
from ...penalties import Penalty
from ...problem import Problem


def loss_expression(loss: Loss, score: Any, target: Any) -> Any:
    """The loss of every row, as a CVXPY expression."""
    import cvxpy as cp

    margin = cp.multiply(target, score)
    residual = score - target
    if isinstance(loss, SmoothedHinge):
        # the infimal convolution of the hinge with a quadratic
        part = cp.Variable(score.shape)
        return cp.pos(1 - part) + cp.square(margin - part) / (2 * loss.smoothing)
    if isinstance(loss, SquaredHinge):
        return cp.square(cp.pos(1 - margin))
    if isinstance(loss, Hinge):
        return cp.pos(1 - margin)
    if isinstance(loss, Logistic):
        return cp.logistic(-margin)
    if isinstance(loss, Squared):
        return cp.square(residual) / 2
    if isinstance(loss, Huber):
        return cp.huber(residual, loss.delta) / 2
    if isinstance(loss, Quantile):
        return cp.maximum(-loss.quantile * residual, (1 - loss.quantile) * residual)
    if isinstance(loss, EpsilonInsensitive):
        return cp.pos(cp.abs(residual) - loss.epsilon)
    if isinstance(loss, Poisson):
        return cp.exp(score) - cp.multiply(target, score)
    if isinstance(loss, Binomial):
        return cp.logistic(score) - cp.multiply(target, score) - entr(target) - entr(1 - target)
    if isinstance(loss, Gamma):
        return score - np.log(target) + cp.exp(np.log(target) - score) - 1
    if isinstance(loss, Tweedie):
        q, r = 2 - loss.power, loss.power - 1
        return cp.exp(q * score) / q + cp.multiply(target, cp.exp(-r * score)) / r - target**q / (q * r)
    if isinstance(loss, NegativeBinomial):
        most = target + loss.theta
        best = np.where(target > 0, target * np.log(np.where(target > 0, target, 1.0)), 0.0)
        rise = cp.multiply(most, cp.logistic(score - np.log(loss.theta)) - np.log1p(target / loss.theta))
        return rise - cp.multiply(target, score) + best
    raise TypeError(loss)


def penalty_expression(penalty: Penalty, w: Any) -> tuple[Any, list[Any]]:
    """alpha-free penalty of w and its constraints, term by term from the algebra (not from the compiled blocks)."""
    import cvxpy as cp

    total: Any = 0
    constraints: list[Any] = []
    for scale, leaf, map_ in penalty.terms(w.shape[0]):
        u = map_.matrix(w.shape[0]) @ w
        if isinstance(leaf, known.L1):
            weights = np.ones(u.shape[0]) if leaf.weights is None else leaf.weights
            out = np.flatnonzero(np.isinf(weights))
            total += scale * cp.norm1(cp.multiply(np.where(np.isinf(weights), 0.0, weights), u))
            constraints += [u[out] == 0] if out.size else []
        elif isinstance(leaf, known.Ridge):
            total += scale * cp.sum_squares(u) / 2
        elif isinstance(leaf, known.GroupL2):
            total += scale * sum(k * cp.norm2(u[g]) for g, k in zip(leaf.groups, leaf.weights, strict=True))
        elif isinstance(leaf, known.GroupLinf):
            total += scale * sum(k * cp.norm_inf(u[g]) for g, k in zip(leaf.groups, leaf.weights, strict=True))
        elif isinstance(leaf, known.TraceNorm):
            total += scale * cp.normNuc(cp.reshape(u, leaf.shape, order="C"))
        elif isinstance(leaf, known.NonNegative):
            constraints.append(u >= 0)
        elif isinstance(leaf, known.Box):
            constraints += [u >= leaf.lower, u <= leaf.upper]
        else:
            raise TypeError(leaf)
    return total, constraints


def reference(
    X: Any, y: Any, loss: Loss, penalty: Penalty | None, alpha: float, sample_weight: Any = None,
    fit_intercept: bool = False, offset: Any = 0.0,
) -> tuple[float, Any, float]:  # fmt: skip
    """Optimal value and coefficients by an interior point method."""
    import cvxpy as cp

    X = X.toarray() if hasattr(X, "toarray") else np.asarray(X, dtype=float)
    n, p = X.shape
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    w, b = cp.Variable(p), cp.Variable()
    score = X @ w + (b if fit_intercept else 0) + offset
    value, constraints = penalty_expression(penalty, w) if penalty is not None else (0, [])
    some = weight > 0
    losses = cp.multiply(weight[some] / weight.sum(), loss_expression(loss, score[some], y[some]))
    problem = cp.Problem(cp.Minimize(cp.sum(losses) + alpha * value), constraints)
    with warnings.catch_warnings():
        # asked for more digits than it always has; whoever compares allows for that
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    return problem.value, w.value, float(b.value) if fit_intercept else 0.0


def optimum(problem: Problem) -> tuple[float, Any, float] | None:
    """The optimum of a problem, coefficients and intercept; None where there is no conic form of it here, or the solver
    fails."""
    if problem.vectors > 1:
        return None
    try:
        value, coef, intercept = reference(
            problem.data.filled(), problem.target, problem.loss, problem.penalty, problem.alpha,
            problem.weight if problem.weight.size else None, problem.fit_intercept,
            problem.offset if problem.offset.size else 0.0,
        )  # fmt: skip
    except Exception:  # conic solvers fail in many ways, which say nothing of ours
        return None
    return (float(value), coef, intercept) if value is not None and np.isfinite(value) else None
