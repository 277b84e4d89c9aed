r"""Stability selection by complementary pairs (Shah and Samworth, 2013).

The rows are cut into two halves, B times, and the model is fitted to each half. What is selected in a share
:math:`\pi \ge \tau` of the 2B fits is stable. With q the mean number of units that a half selects, of p in all, the
expected number of units that are chosen although a half selects them no more often than a random guess would (with
probability q/p at the most) is at most

.. math:: \frac{q^2 / p}{2 \tau - 1}

whatever the data, and, where the distribution of the share over pairs is unimodal, at most :math:`C q^2 / p` with
:math:`C = 1 / (2 (2\tau - 1 - 1/2B))` for :math:`\tau \le 3/4` and
:math:`C = 4 (1 - \tau + 1/2B) / (1 + 1/B)` above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.feature_selection import SelectorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validate import Array, Flags, Frame, Ints, MatrixLike, _count
from . import preparation as helpers
from .cross_validation import FOLD_TOL
from .parameters import is_number
from .paths import _as_alphas, _follow
from .progress import Bar

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..problem import Problem


class StabilitySelection(SelectorMixin, MetaEstimatorMixin, BaseEstimator):  # type: ignore[misc]  # without types
    """Which features, groups and edges a model selects again and again, on halves of the rows.

    Parameters
    ----------
    model : estimator of fenchel
        It is fitted to all rows once, which also finds its alpha if it cross-validates.
    alphas : vector, optional
        A unit counts as selected by a half if it is at any of these; by default the alpha of the model alone. Larger
        alphas select fewer, and bound the false selections better.
    n_pairs : int
        Pairs of halves.
    threshold : float
        Share of the fits, above 1/2, from which on a unit is stable.
    random_state : int, RandomState or None
    n_jobs : int, optional
        Fits at a time, in threads; all share the data.
    verbose : bool
        Show a live bar.

    Attributes
    ----------
    model_ : the model, fitted to all rows
    alphas_ : array
    feature_probabilities_ : array (p,)
        The share of the fits that select each feature.
    group_probabilities_ : array, if the penalty has groups
        Likewise; of latent groups, those whose part is not zero.
    edge_probabilities_ : array, if the penalty joins features
        The share of the fits whose values differ along each edge.
    n_features_in_, feature_names_in_

    Examples
    --------
    >>> import numpy as np, fenchel as fl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((100, 20))
    >>> y = X[:, 0] - X[:, 1] + 0.5 * rng.standard_normal(100)
    >>> found = fl.StabilitySelection(fl.StructuredRegressor(alpha=0.3), n_pairs=10).fit(X, y)
    >>> found.get_support(indices=True).tolist(), bool(found.expected_false() < 1)
    ([0, 1], True)
    """

    def __init__(
        self,
        model: Any,
        *,
        alphas: npt.ArrayLike | None = None,
        n_pairs: int = 50,
        threshold: float = 0.75,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.model = model
        self.alphas = alphas
        self.n_pairs = n_pairs
        self.threshold = threshold
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: MatrixLike, y: npt.ArrayLike, **given: Any) -> Self:
        """Fit the model to all rows and to halves of them.

        Parameters
        ----------
        X, y : as in the model
        **given
            Further arguments of the model's `fit`, such as sample_weight or task.

        Returns
        -------
        self
        """
        from joblib import Parallel, delayed

        pairs = _count("n_pairs", self.n_pairs)
        self._checked(self.threshold)
        problem = self._fit_whole(X, y, given)
        penalty, p = self.model_.penalty_, problem.p
        self.alphas_ = np.array([self.model_.alpha_]) if self.alphas is None else _as_alphas(self.alphas)
        graph = helpers.find_graph(penalty, p)
        self._edges = None if graph is None or isinstance(graph, str) else graph
        if problem.n < 2:
            raise ValueError("X has 1 sample; two halves need one row each at least")
        rng = np.random.default_rng(helpers.as_seed(self.random_state))
        halves = [half for _ in range(pairs) for half in _halves(problem, rng)]

        def selected(rows: Ints) -> list[Flags]:
            weight = np.zeros(problem.n)
            weight[rows] = problem.weight[rows] if problem.weight.size else 1.0
            seen: list[Flags] = []
            tol, epochs = max(self.model_.tol, FOLD_TOL), self.model_.max_epochs
            for result in _follow(problem.with_weights(weight), self.alphas_, tol, epochs, 0, None):
                found = self._units(np.atleast_2d(result.coef))
                seen = found if not seen else [a | b for a, b in zip(seen, found, strict=True)]
            bar.step()
            return seen

        with Bar(len(halves), bool(self.verbose)) as bar:
            found = Parallel(n_jobs=self.n_jobs, prefer="threads")(delayed(selected)(rows) for rows in halves)
        shares = [np.mean(kind, axis=0) for kind in zip(*found, strict=True)]
        self.feature_probabilities_ = shares.pop(0)
        if helpers.find_groups(penalty, p) is not None:
            self.group_probabilities_ = shares.pop(0)
        if self._edges is not None:
            self.edge_probabilities_ = shares.pop(0)
        return self

    def _fit_whole(self, X: MatrixLike, y: npt.ArrayLike, given: dict[str, Any]) -> Problem:
        """Fit the model to all rows; returns the problem that it made."""
        for name in ("group_probabilities_", "edge_probabilities_"):
            if hasattr(self, name):
                delattr(self, name)
        if isinstance(self.model, type) or not hasattr(self.model, "_solve"):
            raise ValueError(
                f"model is {self.model!r}; it must be an estimator of fenchel, e.g. "
                "fenchel.StructuredRegressor(alpha_ratio=0.2)"
            )
        model = clone(self.model)
        made: list[Problem] = []
        solve = model._solve

        def noticed(problem: Problem, *others: Any) -> Any:
            made.append(problem)
            return solve(problem, *others)

        model._solve = noticed
        try:
            self.model_ = model.fit(X, y, **given)
        finally:
            del model._solve
        self.n_features_in_ = model.n_features_in_
        if hasattr(model, "feature_names_in_"):
            self.feature_names_in_ = model.feature_names_in_
        return made[0].with_penalty(helpers.for_outputs(model.penalty_, made[0].vectors, made[0].p))

    def _units(self, coef: Array) -> list[Flags]:
        """Whether every feature, every group and every edge is selected."""
        out: list[Flags] = [np.asarray(coef.any(axis=0))]
        grouped = self.model_.penalty_.grouped(coef) if self.model_.penalty_ is not None else None
        if grouped is not None:
            out.append(np.array([bool(part.any()) for part in grouped[1]]))
        if self._edges is not None:
            a, b = self._edges.edges.T
            weights = getattr(self._edges, "weights", None)
            sign = np.ones(len(a)) if weights is None else np.where(weights < 0, -1.0, 1.0)
            out.append((coef[:, a] != sign * coef[:, b]).any(axis=0))
        return out

    # -- what it says --------------------------------------------------------------------------------

    def table(self, units: str = "features") -> Frame:
        """The probabilities of all units by name, the largest first, and whether they are stable.

        Parameters
        ----------
        units : {"features", "groups", "edges"}

        Returns
        -------
        pandas.DataFrame
        """
        import pandas

        share = self._probabilities(units)
        order = np.argsort(-share, kind="stable")
        columns = {"probability": share[order], "stable": share[order] >= self.threshold}
        names = np.array(self._names(units), dtype=object)
        return pandas.DataFrame(columns, index=pandas.Index(names[order], name=units[:-1]))

    def expected_false(
        self, threshold: float | None = None, units: str = "features", *, unimodal: bool = True
    ) -> float:
        """A bound on the expected number of stable units that a half selects no more often than a guess would.

        Parameters
        ----------
        threshold : float, optional
            That of the selection by default.
        units : {"features", "groups", "edges"}
        unimodal : bool
            Take the shares over pairs as unimodally distributed, as they are in practice; False assumes nothing.

        Returns
        -------
        float
        """
        share = self._probabilities(units)
        tau = self._checked(self.threshold if threshold is None else threshold)
        mean, pairs = float(share.sum()), self.n_pairs
        least = mean**2 / len(share)
        plain = least / (2 * tau - 1)
        if not unimodal:
            return plain
        if tau > 0.75:
            return min(plain, least * 4 * (1 - tau + 1 / (2 * pairs)) / (1 + 1 / pairs))
        room = 2 * tau - 1 - 1 / (2 * pairs)
        guess = mean / len(share)
        holds = tau > min(0.5 + guess**2, 0.5 + 1 / (2 * pairs) + 0.75 * guess**2)
        return min(plain, least / (2 * room)) if holds and room > 0 else plain

    def _probabilities(self, units: str) -> Array:
        check_is_fitted(self)
        if units not in ("features", "groups", "edges"):
            raise ValueError(f"units is {units!r}; it must be 'features', 'groups' or 'edges'")
        found: Array | None = getattr(self, f"{units[:-1]}_probabilities_", None)
        if found is None:
            raise ValueError(f"the penalty {self.model_.penalty_!r} has no {units}")
        return found

    def _names(self, units: str) -> list[str]:
        names = self.model_._feature_names()
        names = [str(j) for j in range(self.n_features_in_)] if names is None else [str(name) for name in names]
        if units == "features":
            return names
        if units == "groups":
            groups = helpers.find_groups(self.model_.penalty_, self.n_features_in_)
            assert groups is not None
            return list(groups.names)
        assert self._edges is not None
        return [f"{names[a]} - {names[b]}" for a, b in self._edges.edges]

    def _get_support_mask(self) -> Flags:
        check_is_fitted(self)
        return np.asarray(self.feature_probabilities_ >= self.threshold)

    def transform(self, X: MatrixLike) -> Any:
        """X with the stable features alone."""
        validate_data(self, X, accept_sparse=True, reset=False)
        return super().transform(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @staticmethod
    def _checked(threshold: Any) -> float:
        if not (is_number(threshold) and 0.5 < threshold <= 1):
            raise ValueError(f"threshold is {threshold!r}; it must be a number above 1/2 and at most 1")
        return float(threshold)


def _halves(problem: Problem, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Two halves of the rows that have weight, drawn at random, with equal shares of the labels."""
    rows = np.flatnonzero(problem.weight > 0) if problem.weight.size else np.arange(problem.n)
    labels = np.zeros(len(rows), dtype=np.int64)
    if problem.loss.classification:
        labels = np.unique(problem.target.reshape(problem.n, -1)[rows], axis=0, return_inverse=True)[1].ravel()
    shuffled = rng.permutation(len(rows))
    order = shuffled[np.argsort(labels[shuffled], kind="stable")]
    return np.sort(rows[order[::2]]), np.sort(rows[order[1::2]])
