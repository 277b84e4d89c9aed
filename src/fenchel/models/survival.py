"""Estimators for survival times: Cox's model with a structured penalty, every fit with a certified duality gap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.extmath import safe_sparse_dot
from sklearn.utils.validation import check_is_fitted, validate_data

from .._validate import AnyArray, Array, Ints, MatrixLike, sound
from ..data import check_numeric
from ..data.pools import Pool
from ..losses.cox import Cox, survival_records
from ..problem.looks import whole_only
from . import preparation as helpers
from .cross_validated import CrossValidated
from .fitting import OneAlpha, with_callbacks

if TYPE_CHECKING:
    from typing_extensions import Self

    from ..penalties.base import Penalty


def concordance(y: Any, risk: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None, strata: Any = None) -> float:
    """Harrell's index of concordance: the share of pairs in which who has the event first has the higher risk.

    Parameters
    ----------
    y : structured array of events and times, or two columns, time and event
    risk : vector of n scores, larger for an earlier event
    sample_weight : vector of n weights, optional
        A pair counts for the product of its two.
    strata : vector of n labels, optional
        Pairs are taken within a stratum.

    Returns
    -------
    float
        0.5 for scores that know nothing; equal scores count one half.
    """
    from ..kernels.concordance import count

    records = survival_records(y, strata)
    risk = np.asarray(risk, dtype=float)
    if risk.shape != records.shape:
        raise ValueError(f"risk has shape {risk.shape}; it must hold one score for each of the {len(records)} rows")
    weight = np.ones(len(records)) if sample_weight is None else np.asarray(sample_weight, dtype=float)
    values, rank = np.unique(risk, return_inverse=True)
    tree = np.zeros(values.size + 1)
    pairs, right, equal = count(records["order"], records["opens"], records["event"], weight, rank, tree)
    if not pairs > 0:
        raise ValueError("y has no two rows that can be compared: nobody outlives an event")
    return float((right + 0.5 * equal) / pairs)


class _Survives(BaseEstimator):  # type: ignore[misc]  # scikit-learn has no types
    """Times and events: in, and risks and curves out."""

    _classification = False
    _coupled = True
    fit_intercept = False  # the baseline hazard takes it up
    ties: str

    @property
    def loss(self) -> Cox:
        """Cox's partial likelihood with the rule for ties."""
        return Cox(self.ties)

    @with_callbacks
    def fit(
        self,
        X: MatrixLike,
        y: Any = None,
        sample_weight: npt.ArrayLike | None = None,
        strata: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
        y : structured array, data frame or array of n rows
            An event (true or false) and a time each, as scikit-survival has them; or two columns, the time and the
            event (1, or 0 where it is censored).
        sample_weight : vector of n weights, optional
        strata : vector of n labels, optional
            Each stratum has a baseline hazard of its own.
        offset : vector of n numbers, optional
            Added to the scores.

        Returns
        -------
        self
        """
        if isinstance(X, Pool):
            raise ValueError(whole_only(self.loss, X.home))
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        check_numeric(X)
        with helpers.gaps_named(X, None):
            X = validate_data(self, sound("X", X), accept_sparse=["csr", "csc"], dtype=[np.float64, np.float32])
        X = helpers.contiguous(X)
        records = survival_records(y, strata)
        if len(records) != X.shape[0]:
            raise ValueError(f"y has {len(records)} rows, but X has {X.shape[0]}")
        weight = helpers.row_weights(sample_weight, None, records["time"], X)
        if weight is not None and not records["event"][weight > 0].any():
            raise ValueError("all rows with an event have weight 0; nothing can be learnt from censored times alone")
        self.strata_ = None if strata is None else np.unique(np.asarray(strata))
        self._fit(X, records, records, weight, None, offset)
        scores = helpers.shifted(safe_sparse_dot(X, self.coef_), offset)
        times, hazards = self.loss.baseline(scores, records, np.zeros(0) if weight is None else weight)
        self.event_times_ = np.unique(np.concatenate(times))
        self._keep_hazards(np.array([_steps(self.event_times_, *one) for one in zip(times, hazards, strict=True)]))
        return self

    def _keep_hazards(self, logarithms: Array) -> None:
        self._log_hazards = logarithms
        with np.errstate(over="ignore"):
            found = np.exp(logarithms)
        self.cumulative_baseline_hazard_ = found[0] if self.strata_ is None else found

    def baseline(self) -> dict[str, Any]:
        """The baseline hazard in lists, as files hold it; None stands for the logarithm of zero."""
        rows = [[level if np.isfinite(level) else None for level in row] for row in self._log_hazards.tolist()]
        strata = None if self.strata_ is None else self.strata_.tolist()
        return {"times": self.event_times_.tolist(), "log_hazards": rows, "strata": strata}

    def restore_baseline(self, baseline: dict[str, Any] | None) -> None:
        """What `baseline` gave; a model of the command line has none, and predicts risks alone."""
        if baseline is None:
            return
        self.strata_ = None if baseline["strata"] is None else np.array(baseline["strata"])
        self.event_times_ = np.array(baseline["times"])
        rows = [[-np.inf if level is None else level for level in row] for row in baseline["log_hazards"]]
        self._keep_hazards(np.array(rows, dtype=float))

    def _shaped_plainly(self, coef: Array, intercept: Array | float) -> dict[str, Any]:
        return {"coef_": coef, "intercept_": 0.0}

    def predict(self, X: MatrixLike, offset: npt.ArrayLike | None = None) -> Array:
        """The logarithm of the risk of every row, relative to one whose features (and offset) are zero."""
        out: Array = self._scores(X, None, offset)
        return out

    def predict_cumulative_hazard_function(
        self,
        X: MatrixLike,
        times: npt.ArrayLike | None = None,
        strata: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> Array:
        """The cumulative hazard of every row, by Breslow's estimate of the baseline.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
        times : vector of m times, optional
            ``event_times_`` by default.
        strata : vector of n labels
            Where the model was fitted with strata.
        offset : vector of n numbers, optional

        Returns
        -------
        array (n, m)
        """
        check_is_fitted(self)
        if not hasattr(self, "_log_hazards"):
            raise ValueError(
                "this model was saved by the command line, which keeps no baseline hazard: it predicts risks alone; "
                "for curves fit it in Python"
            )
        scores = self._scores(X, None, offset)
        levels = self._log_hazards[self._stratum_of(strata, len(scores))]
        if times is not None:
            levels = np.column_stack([np.full(len(levels), -np.inf), levels])
            levels = levels[:, np.searchsorted(self.event_times_, np.asarray(times, dtype=float), side="right")]
        with np.errstate(over="ignore"):
            out: Array = np.exp(levels + scores[:, None])
        return out

    def predict_survival_function(
        self,
        X: MatrixLike,
        times: npt.ArrayLike | None = None,
        strata: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> Array:
        """The probability of every row to have no event up to a time; the arguments are those of
        :meth:`predict_cumulative_hazard_function`.

        Returns
        -------
        array (n, m)
        """
        out: Array = np.exp(-self.predict_cumulative_hazard_function(X, times, strata, offset))
        return out

    def score(
        self,
        X: MatrixLike,
        y: Any,
        sample_weight: npt.ArrayLike | None = None,
        strata: npt.ArrayLike | None = None,
        offset: npt.ArrayLike | None = None,
    ) -> float:
        """Harrell's index of concordance; see :func:`fenchel.concordance`."""
        return concordance(y, self.predict(X, offset), sample_weight, strata)

    def _stratum_of(self, strata: npt.ArrayLike | None, n: int) -> Ints:
        """The row of the baseline that belongs to every row."""
        known: AnyArray | None = self.strata_
        if known is None:
            if strata is not None:
                raise ValueError(f"{type(self).__name__} was fitted without strata, but strata was given")
            return np.zeros(n, dtype=np.int64)
        if strata is None:
            raise ValueError(f"{type(self).__name__} was fitted with strata; give the stratum of every row")
        labels = np.asarray(strata)
        if labels.shape != (n,):
            raise ValueError(f"strata has shape {labels.shape}; it must hold one label for each of the {n} rows")
        place = np.minimum(np.searchsorted(known, labels), len(known) - 1)
        bad = np.flatnonzero(known[place] != labels)
        if bad.size:
            raise ValueError(
                f"strata holds {labels.tolist()[bad[0]]!r} in row {bad[0]}, which was not among those of fit"
            )
        return place


def _steps(times: Array, own: Array, hazard: Array) -> Array:
    """The logarithm of a step function at these times, from that of its levels."""
    levels = np.concatenate([[-np.inf], hazard])
    out: Array = levels[np.searchsorted(own, times, side="right")]
    return out


class CoxRegressor(_Survives, OneAlpha):
    """Cox's proportional hazards with a structured penalty, for survival times that may be censored.

    Minimises half the deviance of the partial likelihood, divided by the number of rows, plus ``alpha * penalty``.

    Parameters
    ----------
    penalty : Penalty, optional
        ``fenchel.L1()`` by default; any other one goes, pathways that overlap for instance.
    alpha : float
        Multiplies the penalty.
    ties : {"breslow", "efron"}
        What events at one time count for; see :class:`fenchel.Cox`.
    alpha_ratio, standardize, relax, tol, max_epochs, time_limit, warm_start, random_state, verbose, solver_options
        As in :class:`StructuredClassifier`.

    Attributes
    ----------
    coef_ : array (p,)
        Logarithms of hazard ratios.
    event_times_ : array (m,)
        The times of events, rising.
    cumulative_baseline_hazard_ : array (m,), or (strata, m)
        Breslow's estimate for a row whose features are zero, at these times.
    strata_ : array, or None
    gap_, status_, n_iter_, result_, n_features_in_, feature_names_in_
        As in :class:`StructuredClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> import fenchel as fl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> time = rng.exponential(np.exp(-X[:, 0]))
    >>> y = np.column_stack([np.minimum(time, 1.0), time < 1.0])
    >>> model = fl.CoxRegressor(alpha=0.05).fit(X, y)
    >>> np.flatnonzero(model.coef_), bool(model.gap_ < 1e-5), bool(model.score(X, y) > 0.7)
    (array([0]), True, True)
    """

    def __init__(
        self,
        penalty: Penalty | str | None = None,
        alpha: float = 0.01,
        *,
        ties: str = "breslow",
        alpha_ratio: float | None = None,
        standardize: bool = False,
        relax: float = 0.0,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        warm_start: bool = False,
        random_state: Any = 0,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.penalty = penalty
        self.alpha = alpha
        self.ties = ties
        self.alpha_ratio = alpha_ratio
        self.standardize = standardize
        self.relax = relax
        self.tol = tol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options


class CoxRegressorCV(_Survives, CrossValidated):
    """Cox's model whose alpha is found by cross-validation over warm-started paths.

    A fold is judged by what its rows add to the partial likelihood of the others (Verweij and van Houwelingen), unless
    `scoring` says otherwise; ``scoring=None`` and the concordance, ``scoring=lambda model, X, y: model.score(X, y)``,
    are the usual choices.

    Parameters
    ----------
    penalty, ties, tol, max_epochs, random_state, verbose, solver_options
        As in :class:`CoxRegressor`.
    alphas, n_alphas, eps, penalty_grid, selection, n_jobs, standardize, relax, time_limit
        As in :class:`StructuredClassifierCV`.
    cv : int, splitter, or list of (training rows, held-out rows)
        For a number, every fold has about the same share of events.
    scoring : callable, optional
        Of a model, X and y.

    Attributes
    ----------
    alpha_, alphas_, cv_results_, path_
        As in :class:`StructuredClassifierCV`.
    coef_, event_times_, cumulative_baseline_hazard_, strata_, gap_, status_, n_iter_, result_, n_features_in_
        As in :class:`CoxRegressor`.
    """

    def __init__(
        self,
        penalty: Penalty | str | None = None,
        *,
        ties: str = "breslow",
        alphas: npt.ArrayLike | None = None,
        n_alphas: int = 50,
        eps: float | None = None,
        penalty_grid: Mapping[str, Any] | None = None,
        cv: Any = 5,
        scoring: Any = None,
        selection: str = "min",
        n_jobs: int | None = None,
        standardize: bool = False,
        relax: Any = 0.0,
        tol: float = 1e-6,
        max_epochs: int = 10_000,
        time_limit: float | None = None,
        random_state: Any = 0,
        verbose: bool = False,
        solver_options: Mapping[str, Any] | None = None,
    ) -> None:
        self.penalty = penalty
        self.ties = ties
        self.alphas = alphas
        self.n_alphas = n_alphas
        self.eps = eps
        self.penalty_grid = penalty_grid
        self.cv = cv
        self.scoring = scoring
        self.selection = selection
        self.n_jobs = n_jobs
        self.standardize = standardize
        self.relax = relax
        self.tol = tol
        self.max_epochs = max_epochs
        self.time_limit = time_limit
        self.random_state = random_state
        self.verbose = verbose
        self.solver_options = solver_options
