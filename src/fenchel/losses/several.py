r"""Losses of several scores per row: f(u; t) of m numbers u, one for every class.

What makes them different is that the scores of a row are seen together, so that f is no sum over them and its dual
variable x has m numbers that depend on each other. All arrays are those of scalar losses, in the order of the visits:
the m numbers of a row stand together, a row after the other, or in an array (rows, m). Functions of a row are told in
m parts that add up to it (`value`, `conjugate`), so that sums over visits are sums over rows.

Both losses here are a maximum over the simplex,

.. math:: f(u; t) = \max_{v \in \Delta} \; (v - t)^\top u - \varphi(v; t), \qquad
          f^*(x; t) = \varphi(x + t; t) \quad\text{on}\quad x + t \in \Delta,

with the class as a unit vector t. As t lies in the simplex as well, so does every point between x + t and it: a
multiple of x by a factor of at most 1 stays in the domain.

Symbols: u scores; x dual variables; v = x + t, which are probabilities for the softmax; h the curvatures, times the
weights: the curvature of a row is the matrix diag(h) - h h' / sum(h), which diag(h) bounds.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import numpy.typing as npt

from .._validate import Array, _count
from ..foundation.numerics import HALF, ROUNDING
from .base import Loss

_MOST_CLASSES = 100_000  # more in a vector of labels are measurements, not classes


def away_from(v: Array, target: Array) -> Array:
    """v - t for rows of the simplex. Where v is all but t, the entry of the class is minus the sum of the others, which
    keeps the digits that 1 - 1 would lose."""
    out: Array = v - target
    sure = (target == 1.0) & (v > 0.5)
    if sure.any():
        rows = np.flatnonzero(sure.any(axis=1))
        others = np.where(sure[rows], 0.0, v[rows]).sum(axis=1)
        out[sure] = -others
    return out


class SimplexLoss(Loss):
    """What the losses over the simplex share. A subclass defines `value`, `gradient`, `potential` (phi and its slope's
    share of the step, see `kernels/simplex.py`) and the name of its compiled step."""

    classification = True
    coupled = True
    closed_step = False
    shares = False  # whether targets may be shares of several classes

    def __init__(self, n_classes: int | None = None) -> None:
        self.n_classes = None if n_classes is None else _count("n_classes", n_classes)
        if n_classes == 1:
            raise ValueError("n_classes is 1; there must be two classes or more")

    def for_outputs(self, outputs: int) -> SimplexLoss:
        if self.n_classes not in (None, outputs):
            raise ValueError(f"n_classes is {self.n_classes}, but the targets are those of {outputs} classes")
        out = copy.copy(self)
        out.n_classes = outputs
        return out

    @property
    def params(self) -> Array:
        return np.array([float(self.n_classes or 0)])

    def rows(self, values: Any) -> Array:
        """An array of visits as (rows, classes)."""
        flat: Array = np.asarray(values, dtype=float)
        if flat.ndim > 1:
            return flat
        if self.n_classes is None:
            raise ValueError(f"{type(self).__name__} does not know the number of classes; give n_classes")
        return flat.reshape(-1, self.n_classes)

    def domain(self, target: Array) -> tuple[Array, Array]:
        """The smallest box around the domain of f*."""
        target = np.asarray(target, dtype=float)
        return -target, 1.0 - target

    def inside(self, dual: Array, target: Array) -> Array:
        v = np.maximum(self.rows(dual) + self.rows(target), 0.0)
        total = v.sum(axis=1, keepdims=True)
        v = np.where(total > 0, v / np.where(total > 0, total, 1.0), 1.0 / v.shape[1])
        return np.asarray((v - self.rows(target)).reshape(np.shape(dual)))

    def tilted(self, dual: Array, move: Array, target: Array) -> Array:
        """The dual variables whose v are multiplied by exp(move) and normalised: they stay in the domain."""
        v, move = np.maximum(self.rows(dual) + self.rows(target), 0.0), self.rows(move)
        v = v * np.exp(move - move.max(axis=1, keepdims=True))
        total = v.sum(axis=1, keepdims=True)
        v /= np.where(total > 0, total, 1.0)
        return np.asarray((v - self.rows(target)).reshape(np.shape(dual)))

    def bent(self, h: Array, scores: Array) -> Array:
        h, s = self.rows(h), self.rows(scores)
        total = h.sum(axis=1, keepdims=True)
        hs = h * s
        mean = hs.sum(axis=1, keepdims=True) / np.where(total > 0, total, 1.0)
        return np.asarray((hs - h * mean).reshape(np.shape(scores)))

    def reached(self, dual: Array, target: Array, weight: Array, reach: float) -> Array:
        """h, of which `bent` makes how a dual step answers to the scores, where it has led to these dual variables; for
        losses with kinks. `reach` is one over the steps' curvature. All classes that have kept a share move alike."""
        free = self.rows(dual) + self.rows(weight * target) > 0
        free &= free.sum(axis=1, keepdims=True) > 1
        return np.asarray(np.where(free, reach, 0.0).reshape(np.shape(dual)))

    def conjugate(self, dual: Array, target: Array) -> Array:
        x, t = self.rows(dual), self.rows(target)
        v = x + t
        good = (v >= -ROUNDING).all(axis=1) & (np.abs(x.sum(axis=1)) <= ROUNDING)
        out = self.potential(np.maximum(v, 0.0), t)
        out[~good] = np.inf
        return np.asarray(out.reshape(np.shape(dual)))

    def potential(self, v: Array, target: Array) -> Array:
        """phi in its m parts."""
        raise TypeError(f"{type(self).__name__} must define potential(v, target)")

    def compiled(self) -> Any:
        from ..kernels import compiled, simplex

        return compiled.compile_step(getattr(simplex, str(self.kernel)))

    def check_targets(self, target: npt.ArrayLike) -> Array:
        """Targets (n, classes): unit vectors made of class numbers 0, 1, ..., or as they are given."""
        target, name = np.asarray(target), type(self).__name__
        if target.dtype.kind not in "biuf":
            raise ValueError(f"y has dtype {target.dtype}; {name} takes class numbers 0, 1, 2, ..., or a column for "
                             "each class (StructuredClassifier takes labels of any kind)")  # fmt: skip
        target = np.asarray(target, dtype=float)
        bad = np.flatnonzero(~np.isfinite(target).ravel())
        if bad.size:
            place = np.unravel_index(bad[0], target.shape)
            raise ValueError(f"y[{', '.join(map(str, place))}] is {target.flat[bad[0]]}; y must be finite")
        out = self._unit_vectors(target) if target.ndim == 1 else self._checked_rows(target)
        if out.shape[1] < 2:
            raise ValueError(f"y holds one class only; {name} needs two or more")
        missing = np.flatnonzero(~out.any(axis=0))
        if len(out) and missing.size:
            raise ValueError(
                f"class {missing[0]} does not occur in y; number the {out.shape[1] - missing.size} classes that do "
                "from 0 without gaps"
            )
        return np.ascontiguousarray(out)

    def _unit_vectors(self, code: Array) -> Array:
        name, bad = type(self).__name__, np.flatnonzero((code < 0) | (code != np.floor(code)))
        if bad.size:
            raise ValueError(f"y[{bad[0]}] is {code[bad[0]]:g}; {name} takes class numbers 0, 1, 2, ..., or a column "
                             "for each class")  # fmt: skip
        count = self.n_classes or int(code.max(initial=0)) + 1
        if code.max(initial=0) >= min(count, _MOST_CLASSES):
            place = int(code.argmax())
            raise ValueError(f"y[{place}] is {code[place]:g}; {name} takes class numbers below "
                             f"{min(count, _MOST_CLASSES)}")  # fmt: skip
        if count > max(len(code), 2):
            missing = np.setdiff1d(np.arange(count), code.astype(int))
            raise ValueError(f"class {missing[0]} does not occur in y; number the classes that do from 0 without gaps")
        return np.asarray(code[:, None] == np.arange(count), dtype=float)

    def _checked_rows(self, target: Array) -> Array:
        name, total = type(self).__name__, target.sum(axis=1)
        wrong = (target < 0).any(axis=1) | (np.abs(total - 1) > HALF)
        if not self.shares:
            wrong |= ~((target == 0) | (target == 1)).all(axis=1)
        bad = np.flatnonzero(wrong)
        if bad.size:
            what = "shares that add up to 1" if self.shares else "one 1 and zeros"
            raise ValueError(f"row {bad[0]} of y is {target[bad[0]].tolist()}; {name} takes rows of {what}, a column "
                             "for each class, or a vector of class numbers")  # fmt: skip
        return target / total[:, None] if self.shares else target


class Multinomial(SimplexLoss):
    r"""The softmax loss of several classes, :math:`\log \sum_k e^{u_k} - t^\top u`.

    Parameters
    ----------
    n_classes : int, optional
        A :class:`fenchel.Problem` knows it from its targets: class numbers 0, 1, 2, ..., or (n, classes) with unit
        vectors or shares in its rows.

    Notes
    -----
    Conjugate: :math:`\sum_k v_k \log v_k` with :math:`v = x + t` on the simplex. The dual step solves
    :math:`\log v_k + C_k v_k = C_k b_k + \nu` for every class, where Newton's method finds the one number
    :math:`\nu` for which the v add up to 1. The curvature is :math:`\mathrm{diag}(\pi) - \pi\pi^\top \preceq
    \tfrac12 (I - 11^\top/m)`.

    Examples
    --------
    >>> import fenchel as fl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> problem = fl.Problem(X, y, loss="multinomial", penalty=fl.PerOutput(fl.L1(), 3), alpha=0.01, fit_intercept=True)
    >>> result = fl.solve(problem)
    >>> result.coef.shape, bool(result.gap < 1e-6)
    ((3, 4), True)
    """

    kernel = "softmax"
    smoothness = 0.5
    likelihood = True
    attained = False
    shares = True

    def probability(self, score: Array) -> Array:
        """The probability of every class, from scores (n, classes)."""
        u = self.rows(score)
        e = np.exp(u - u.max(axis=1, keepdims=True))
        return np.asarray((e / e.sum(axis=1, keepdims=True)).reshape(np.shape(score)))

    def value(self, score: Array, target: Array) -> Array:
        u, t = self.rows(score), self.rows(target)
        top = u.argmax(axis=1)[:, None]
        away = u - np.take_along_axis(u, top, axis=1)
        e = np.exp(away)
        np.put_along_axis(e, top, 0.0, axis=1)
        # the logarithm of the sum, less the largest score: small numbers keep their digits
        parts = np.where(t > 0, t * (np.log1p(e.sum(axis=1, keepdims=True)) - away), 0.0)
        return np.asarray(parts.reshape(np.shape(score)))

    def gradient(self, score: Array, target: Array) -> Array:
        pi, t = self.rows(self.probability(score)), self.rows(target)
        return np.asarray(away_from(pi, t).reshape(np.shape(score)))

    def curvature(self, score: Array, target: Array) -> Array:
        """h, of which `bent` makes the curvature."""
        return self.probability(score)

    def sums(self, score: Array, target: Array, weight: Array) -> tuple[float, Array, Array]:
        from ..kernels.simplex import softmax_sums

        score = np.ascontiguousarray(score, dtype=float).ravel()
        slope, bend = np.empty_like(score), np.empty_like(score)
        m = self.n_classes or 1
        return softmax_sums(score, np.asarray(target, dtype=float).ravel(), weight, m, slope, bend), slope, bend

    def total(self, score: Array, target: Array, weight: Array) -> float:
        from ..kernels.simplex import softmax_total

        score, target = np.ascontiguousarray(score, dtype=float).ravel(), np.asarray(target, dtype=float).ravel()
        return float(softmax_total(score, target, weight, self.n_classes or 1))

    def potential(self, v: Array, target: Array) -> Array:
        out: Array = v * np.log(np.maximum(v, 1e-300))
        return out


class MulticlassHinge(SimplexLoss):
    r"""The support vector machine of several classes (Crammer and Singer), :math:`\max_k (u_k + 1 - t_k) - t^\top u`.

    Parameters
    ----------
    n_classes : int, optional
        As in :class:`Multinomial`; targets are class numbers or unit vectors.

    Notes
    -----
    Conjugate: :math:`-v^\top (1 - t)` with :math:`v = x + t` on the simplex; the dual step projects
    :math:`b + (1 - t)/C` onto it.

    Examples
    --------
    >>> import fenchel as fl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = fl.StructuredClassifier(loss="multiclass-hinge", penalty=fl.L1(), alpha=0.02).fit(X, y)
    >>> model.coef_.shape, bool(model.gap_ < 1e-6), bool(model.score(X, y) > 0.9)
    ((3, 4), True, True)
    """

    kernel = "hinge"

    def value(self, score: Array, target: Array) -> Array:
        u, t = self.rows(score), self.rows(target)
        top = (u + 1.0 - t).max(axis=1, keepdims=True)
        return np.asarray(np.where(t > 0, t * (top - u), 0.0).reshape(np.shape(score)))

    def gradient(self, score: Array, target: Array) -> Array:
        u, t = self.rows(score), self.rows(target)
        best = (u + 1.0 - t).argmax(axis=1)
        return np.asarray(((best[:, None] == np.arange(u.shape[1])) - t).reshape(np.shape(score)))

    def potential(self, v: Array, target: Array) -> Array:
        return -v * (1.0 - target)
