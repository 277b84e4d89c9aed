"""The same problems for a conic solver (CVXPY with Clarabel), which shares nothing with what it judges."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import entr

from ... import penalties as known
from ...losses import (
    Binomial,
    Cox,
    EpsilonInsensitive,
    Gamma,
    Hinge,
    Huber,
    Logistic,
    Loss,
    MulticlassHinge,
    Multinomial,
    NegativeBinomial,
    Poisson,
    Quantile,
    SmoothedHinge,
    Squared,
    SquaredHinge,
    Tweedie,
)  # fmt: skip
from ...penalties import Penalty
from ...penalties.exclusive import ExclusiveL1
from ...penalties.latent import LatentL2
from ...penalties.nested import NestedL2
from ...problem import Problem

MOST = 20_000  # visits times coefficients; more: gigabytes, and minutes
SECONDS = 10.0  # of the solver; what it has then is not judged; more: longer trials


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


def row_loss_expression(loss: Loss, scores: Any, target: Any) -> Any:
    """The loss of every row of several scores (n, m), as a CVXPY expression."""
    import cvxpy as cp

    if isinstance(loss, Multinomial):
        over = cp.log_sum_exp(scores, axis=1)
    elif isinstance(loss, MulticlassHinge):
        over = cp.max(scores + 1 - target, axis=1)
    else:
        return cp.sum(loss_expression(loss, scores, target), axis=1)
    return over - cp.sum(cp.multiply(target, scores), axis=1)


def coupled_expression(loss: Loss, score: Any, target: Any, weight: Any) -> Any:
    """A loss of all scores at once; Breslow's rule alone, for Efron's is a difference of sums."""
    import cvxpy as cp

    if not isinstance(loss, Cox) or loss.ties != "breslow":
        raise TypeError(loss)
    total: Any = 0
    for stratum, time in sorted({(row["stratum"], row["time"]) for row in target[target["event"] & (weight > 0)]}):
        risk = np.flatnonzero((target["stratum"] == stratum) & (target["time"] >= time) & (weight > 0))
        now = risk[target["event"][risk] & (target["time"][risk] == time)]
        mass = weight[now].sum()
        total += mass * (cp.log_sum_exp(score[risk] + np.log(weight[risk])) - np.log(mass)) - weight[now] @ score[now]
    return total


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
        elif isinstance(leaf, (known.GroupL2, known.GroupLinf)):
            norm = cp.norm2 if isinstance(leaf, known.GroupL2) else cp.norm_inf
            for g, k in zip(leaf.groups, leaf.weights, strict=True):
                if np.isinf(k):
                    constraints.append(u[g] == 0)
                else:
                    total += scale * k * norm(u[g])
        elif isinstance(leaf, LatentL2):
            whole: Any = 0
            for g, k in zip(leaf.members, leaf.weights, strict=True):
                part = cp.Variable(len(g))
                whole += np.eye(u.shape[0])[:, g] @ part
                total += scale * k * cp.norm2(part)
            constraints.append(whole == u)
        elif isinstance(leaf, known.SortedL1):
            falls = np.append(leaf.weights[:-1] - leaf.weights[1:], leaf.weights[-1])
            total += scale * sum(one * cp.sum_largest(cp.abs(u), k + 1) for k, one in enumerate(falls) if one > 0)
        elif isinstance(leaf, NestedL2):
            spans = zip(leaf.first, leaf.last, leaf.weights, strict=True)
            total += scale * sum(k * cp.norm2(u[first:last]) for first, last, k in spans)
        elif isinstance(leaf, ExclusiveL1):
            ends = np.cumsum([0, *leaf.sizes])
            total += scale * sum(
                k * cp.square(cp.norm1(u[ends[g] : ends[g + 1]])) / 2 for g, k in enumerate(leaf.weights)
            )
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
    best = _solved(cp.sum(losses) + alpha * value, constraints)
    return best, w.value, float(b.value) if fit_intercept else 0.0


def _solved(objective: Any, constraints: list[Any]) -> float:
    """The least value."""
    import cvxpy as cp

    problem = cp.Problem(cp.Minimize(objective), constraints)
    with warnings.catch_warnings():
        # asked for more digits than it always has; whoever compares allows for that
        warnings.filterwarnings("ignore", message="Solution may be inaccurate")
        problem.solve(solver=cp.CLARABEL, time_limit=SECONDS, tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    assert problem.status in ("optimal", "optimal_inaccurate"), problem.status
    out: float = problem.value
    return out


def _several(problem: Problem) -> tuple[float, Any, Any]:
    """The optimum of several outputs, tasks, or a loss of all scores at once."""
    import cvxpy as cp

    X, (outputs, stride, task, _) = problem.data.filled(), problem.layout
    W, b = cp.Variable(problem.vectors * problem.p), cp.Variable(problem.vectors)
    each = [X @ W[k * problem.p : (k + 1) * problem.p] + problem.fit_intercept * b[k] for k in range(problem.vectors)]
    scores = cp.vstack(each).T
    if task.size:
        scores = cp.reshape(scores[np.arange(problem.n), task // stride], (problem.n, 1), order="C")
    if problem.offset.size:
        scores = scores + problem.offset.reshape(problem.n, outputs)
    value, constraints = penalty_expression(problem.penalty, W) if problem.penalty is not None else (0, [])
    weight = problem.weight if problem.weight.size else np.ones(problem.n)
    if problem.loss.across_rows:
        total = coupled_expression(problem.loss, scores[:, 0], problem.target, weight)
    else:
        some = weight > 0
        target = problem.target.reshape(problem.n, outputs)[some]
        total = cp.sum(cp.multiply(weight[some], row_loss_expression(problem.loss, scores[some], target)))
    best = _solved(total / problem.n + problem.alpha * value, constraints)
    levels = b.value if problem.fit_intercept else np.zeros(problem.vectors)
    coef = W.value.reshape(problem.vectors, problem.p)
    return (best, coef[0], levels[0]) if problem.single else (best, coef, levels)


def optimum(problem: Problem) -> tuple[float, Any, Any] | None:
    """The optimum of a problem, coefficients and intercept; None where there is no conic form of it here, or the solver
    fails."""
    if problem.visits * problem.size > MOST:
        return None
    try:
        if problem.vectors > 1 or problem.loss.across_rows:
            value, coef, intercept = _several(problem)
            return (float(value), coef, intercept) if value is not None and np.isfinite(value) else None
        value, coef, intercept = reference(
            problem.data.filled(), problem.target, problem.loss, problem.penalty, problem.alpha,
            problem.weight if problem.weight.size else None, problem.fit_intercept,
            problem.offset if problem.offset.size else 0.0,
        )  # fmt: skip
    except Exception:  # conic solvers fail in many ways, which say nothing of ours
        return None
    return (float(value), coef, intercept) if value is not None and np.isfinite(value) else None
