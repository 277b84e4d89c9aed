r"""Cox's partial likelihood for times that may be censored.

With weights s, scores u, and for every time of an event the set R of rows at risk,

.. math:: F(u) = \sum_t d_t \log \sum_{j \in R_t} s_j e^{u_j} - \sum_{i \in \mathrm{events}} s_i u_i - c

where d is the weight of a time's events (Breslow's rule for ties) and c the least value of the rest, so that F is half
the deviance. The slopes are :math:`x_j = v_j - \delta_j` with :math:`v_j = s_j e^{u_j} \Lambda(t_j)`, the hazard
:math:`\Lambda(t) = \sum_{t' \le t} d_{t'} / S_{t'}`, and :math:`\delta` the weights of the events; the curvature is
diag(v) less a sum of squares, one for every time of an event. A factor of it takes the mean of all later rows off a row
(``kernels/cox.py``).

Efron's rule takes the d events of a time out of the set at risk one after another, each as the mean of all: m terms of
weight w = d/m, whose sums over R lack r/m of what the events make up of it, r = 0, ..., m - 1.

**The conjugate** has a closed form. Let G_k be the rows whose last event time is the k-th, V_k the sum of v = x + delta
over them, and B_k what the events so far are worth more than the rows so far, B_k = B_{k-1} + d_k - V_k. Then x is in
the domain where all v and B are nonnegative and the last B of a stratum is 0, and

.. math:: F^*(x) = \sum_j v_j \log \frac{v_j}{s_j} + \sum_k \left(B_k \log B_k - A_k \log A_k\right) + c,
   \qquad A_k = B_{k-1} + d_k.

(The slopes say s_j e^{u_j} = v_j / Λ_k. Put in, S_k and Λ_k obey Λ_k S_k = A_k and Λ_k S_{k+1} = B_k, whose ratios give
both, and the sums telescope.) At x = 0 it is 0. Under Efron's rule the events of a time have a hazard of their own:
with D_k the part of V_k that belongs to them and R_k the other part and B_k, the k-th term is B log B - D log D -
R log R and the maximum over q in (0, 1) of D log q + R log(1 - q) - sum over r of w log(1 - qr/m).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._validate import AnyArray, Array, Floats, Index, Ints
from ..foundation.lazy import lazy
from ..foundation.numerics import LARGEST, ROUNDING
from .coupled import CoupledCurvature, CoupledLoss

_EDGE = 1 / LARGEST  # of a row's weight: how near to the edge of the domain a slope is taken for one inside
RECORD = np.dtype([("event", "?"), ("time", "f8"), ("stratum", "i8"), ("order", "i8"), ("opens", "i1")])


class Cox(CoupledLoss):
    """Half the deviance of Cox's partial likelihood: scores are logarithms of a row's risk relative to the others.

    Targets are a structured array of events (true or false) and times, as scikit-survival has it, or two columns, time
    and event (0 or 1); a third column numbers strata, whose rows are compared with one another only. There is no
    intercept: the baseline hazard takes it up.

    Parameters
    ----------
    ties : {"breslow", "efron"}
        What events at one time count for. Efron's rule is nearer to what an exact order would give, and the same
        where no two events share a time.

    Notes
    -----
    Times matter by their order alone. With sample weights, a row of weight 2 is two rows under Breslow's rule.

    Examples
    --------
    >>> import numpy as np
    >>> import fenchel as fl
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 5))
    >>> life, censored = rng.exponential(np.exp(-X[:, 0])), rng.exponential(2.0, 200)
    >>> y = np.column_stack([np.minimum(life, censored), life <= censored])
    >>> result = fl.solve(fl.Problem(X, y, loss=fl.Cox(ties="efron"), penalty=fl.L1(), alpha=0.1))
    >>> np.flatnonzero(result.coef).tolist(), bool(result.relative_gap < 1e-6)
    ([0], True)
    """

    def __init__(self, ties: str = "breslow") -> None:
        if ties not in ("breslow", "efron"):
            raise ValueError(f"ties is {ties!r}; it must be 'breslow' or 'efron'")
        self.ties = ties

    @property
    def params(self) -> Array:
        return np.array([float(self.ties == "efron")])

    def __repr__(self) -> str:
        return f"{type(self).__name__}(ties={self.ties!r})"

    def mean(self, score: Array) -> Array:
        """The logarithm of the risk."""
        return score

    def check_targets(self, target: npt.ArrayLike) -> AnyArray:
        """Events, times and strata as records, with their order."""
        return survival_records(target)

    def fold_labels(self, target: AnyArray) -> AnyArray:
        """Events."""
        return np.asarray(target["event"])

    def target_size(self, target: AnyArray) -> float:
        """An event counts for 1."""
        return 1.0

    def value_terms(self, target: AnyArray) -> tuple[Any, Any]:
        """Of an event, the logarithm of a sum over those at risk, and scores; nothing where it was alone."""
        order, opens, n = target["order"], target["opens"], len(target)
        place = np.arange(n)
        last = np.minimum.accumulate(np.where(np.append(opens[1:], 2) == 2, place, n)[::-1])[::-1]
        first = np.maximum.accumulate(np.where(opens > 0, place, 0))
        some = np.zeros(n)
        some[order] = last - first + 1.0  # rows at risk
        event = target["event"] & (some > 1)
        return np.where(event, np.log(some), 0.0), np.where(event, 2.0, 0.0)

    def falls_towards(self, target: AnyArray) -> Array:
        """An event asks for a score as large as can be."""
        return target["event"].astype(float)

    def ordered(self, target: AnyArray, weight: Array) -> tuple[Index, Index]:
        """An event, and a row that was at risk at its time, for all such pairs: along scores that grow by no less for
        the first of every pair the loss does not rise."""
        alive = weight > 0 if weight.size else np.ones(len(target), dtype=bool)
        event = np.flatnonzero(target["event"] & alive)
        with_it = (target["stratum"] == target["stratum"][event, None]) & (
            target["time"] >= target["time"][event, None]
        )
        first, other = np.nonzero(with_it & alive)
        some = event[first] != other
        return event[first][some], other[some]

    def domain(self, target: AnyArray) -> tuple[Array, Array]:
        """The ends of every row's own interval; the domain is a part of what they span."""
        return -target["event"].astype(float), np.full(len(target), np.inf)

    def sums(self, score: Array, target: AnyArray, weight: Array) -> tuple[float, Array, Array]:
        found = _Survey(self, score, target, weight)
        return found.total, found.x, found.bound

    def curvature_at(self, score: Array, target: AnyArray, weight: Array) -> CoupledCurvature:
        made: CoupledCurvature = _Survey(self, score, target, weight)
        return made

    def total_conjugate(self, dual: Array, target: AnyArray, weight: Array) -> float:
        from ..kernels import cox

        rows = _rows(target)
        return float(cox.conjugate(*rows, self.ties == "efron", _ones(weight, target), _own(dual), ROUNDING))

    def scores_of(self, dual: Array, target: AnyArray, weight: Array) -> Array:
        from ..kernels import cox

        out = np.zeros(len(target))
        cox.scores_of(*_rows(target), self.ties == "efron", _ones(weight, target), _own(dual), _EDGE, out)
        return out

    def baseline(self, score: Array, target: AnyArray, weight: Array) -> tuple[list[Array], list[Array]]:
        """For every stratum, the times of its events and the logarithm of the cumulative hazard of a row with score 0
        there: Breslow's estimate, whose jumps under Efron's rule are those of its terms."""
        found = _Survey(self, score, target, weight)
        times, hazards = [], []
        first = np.flatnonzero(found.rows[1] == 2)
        for start, end in zip(first, [*first[1:], len(target)], strict=True):
            at = np.arange(start, end)[found.rows[1][start:end] > 0]
            at = at[found.about[at, 3] > 0]
            times.append(target["time"][found.rows[0][at]])
            hazards.append(found.about[at, 5])
        return times, hazards


class _Survey:
    """The loss at some scores; see :class:`CoupledCurvature`."""

    def __init__(self, loss: Cox, score: Array, target: AnyArray, weight: Array) -> None:
        from ..kernels import cox

        n = len(target)
        self.rows, self.efron = _rows(target), loss.ties == "efron"
        self.weight = _ones(weight, target)
        self.x, self.bound, self.share, self.lead = (np.empty(n) for _ in range(4))
        self.about = np.zeros((n, 6))
        self.total = float(
            cox.survey(
                *self.rows, _own(score), self.weight, self.efron, self.x, self.bound, self.share, self.lead, self.about
            )
        )

    def times(self, t: Array) -> Array:
        from ..kernels import cox

        out = np.empty(len(t))
        cox.times(*self.rows, self.efron, self.bound, self.share, self.lead, self.about, _own(t), out)
        return out

    @lazy
    def squares(self) -> Array:
        from ..kernels import cox

        out = np.empty(self.bound.size)
        cox.factor_weights(*self.rows, self.efron, self.weight, self.bound, self.share, self.about, out)
        return out

    def down(self, columns: Array) -> Array:
        from ..kernels import cox

        out = np.empty(columns.shape)
        cox.down(*self.rows, self.efron, self.weight, self.share, self.about, columns, out)
        return out

    def down_rows(self, X: Floats) -> Floats:
        from ..kernels import cox

        out = np.empty(X.shape, dtype=X.dtype)
        cox.down_rows(*self.rows, self.efron, self.weight, self.share, self.about, X, out)
        return out

    def up(self, z: Array) -> Array:
        return self._up(z, False)

    def solve_up(self, x: Array) -> Array:
        return self._up(x, True)

    def _up(self, x: Array, solve: bool) -> Array:
        from ..kernels import cox

        out = np.empty(x.size)
        cox.up(*self.rows, self.efron, self.weight, self.share, self.lead, self.about, _own(x), solve, out)
        return out


def _rows(target: AnyArray) -> tuple[Any, Any, Any]:
    """The fields that the kernels walk along."""
    return target["order"], target["opens"], target["event"]


def _own(vector: Array) -> Array:
    return np.ascontiguousarray(vector, dtype=float)


def _ones(weight: Array, target: AnyArray) -> Array:
    return weight if weight.size else np.ones(len(target))


def survival_records(y: Any, strata: npt.ArrayLike | None = None) -> AnyArray:
    """Events and times as records in their order; a ValueError names what cannot be one.

    Parameters
    ----------
    y : structured array of an event (bool) and a time (float), or an array of two columns, time and event
        A third column, or a field `stratum`, numbers the strata.
    strata : vector of n labels, optional
        Instead of that.
    """
    if hasattr(y, "columns"):
        y = _frame_records(y)
    event, time, own = _event_and_time(np.asarray(y))
    bad = np.flatnonzero(~np.isfinite(time))
    if bad.size:
        raise ValueError(f"y has the time {time[bad[0]]} in row {bad[0]}; times must be finite")
    bad = np.flatnonzero(time <= 0)
    if bad.size:
        raise ValueError(
            f"y has the time {time[bad[0]]:g} in row {bad[0]}; times must be positive (leave out rows that were never "
            "at risk, or add a small time to all)"
        )
    if strata is not None:
        labels = np.asarray(strata)
        if labels.shape != time.shape:
            raise ValueError(f"strata has shape {labels.shape}; it must hold a label for each of the {len(time)} rows")
        own = _numbered(labels)
    if not event.any():
        raise ValueError("y holds no event: all times are censored, and nothing can be learnt from their order")
    out = np.empty(len(time), dtype=RECORD)
    out["event"], out["time"], out["stratum"] = event, time, own
    order = np.lexsort((~event, time, own))  # of one time events first
    out["order"] = order
    before, after = order[:-1], order[1:]
    out["opens"][:1] = 2
    out["opens"][1:] = np.where(own[before] != own[after], 2, np.where(time[before] != time[after], 1, 0))
    return out


def _numbered(labels: AnyArray) -> Ints:
    """Numbers of the strata by their labels; what is missing is none."""
    try:
        bad = np.flatnonzero(labels != labels)
        own: Ints = np.unique(labels, return_inverse=True)[1]
    except TypeError:  # words beside None or pandas' NA, which nobody can order
        kinds = ", ".join(sorted({type(label).__name__ for label in labels.tolist()}))
        raise ValueError(f"strata holds labels of several kinds ({kinds}); every row needs one of one kind") from None
    if bad.size:
        raise ValueError(f"strata is {labels[bad[0]]} in row {bad[0]}; every row needs a label (0, say, for unknown)")
    return own


def _frame_records(y: Any) -> AnyArray:
    """The columns of a data frame: an event is known by its kind, wherever it stands, or else by its place."""
    columns = {str(name): np.asarray(y[name]) for name in y.columns}
    if sum(values.dtype.kind == "b" for values in columns.values()) != 1:
        return np.column_stack(list(columns.values())) if columns else np.empty((len(y), 0))
    out = np.empty(len(y), dtype=[(name, values.dtype) for name, values in columns.items()])
    for name, values in columns.items():
        out[name] = values
    return out


def _event_and_time(y: AnyArray) -> tuple[AnyArray, Array, AnyArray]:
    """Events, times and strata in whatever form they come."""
    if y.dtype.names is not None:
        return _fields(y)
    if y.ndim != 2 or y.shape[1] not in (2, 3):
        raise ValueError(
            f"y has shape {y.shape}; survival times need two columns, time and event, or a structured array of events "
            "and times"
        )
    try:
        y = y.astype(float)
    except (TypeError, ValueError):
        row, value = next((i, v) for i, row in enumerate(y.tolist()) for v in row if not _is_number(v))
        raise ValueError(
            f"y has {value!r} in row {row}; a time must be a number, and an event 0 (censored) or 1 (true or false)"
        ) from None
    strata = y[:, 2] if y.shape[1] == 3 else np.zeros(len(y))
    if not np.isfinite(strata).all() or (strata != np.round(strata)).any():
        raise ValueError("y has a third column that does not hold whole numbers; it numbers the strata")
    return _as_event(y[:, 1], y[:, 0]), np.ascontiguousarray(y[:, 0]), strata.astype(np.int64)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _fields(y: AnyArray) -> tuple[AnyArray, Array, AnyArray]:
    names = list(y.dtype.names or ())
    strata = np.asarray(y["stratum"], dtype=np.int64) if "stratum" in names else np.zeros(y.size, dtype=np.int64)
    names = [name for name in names if name not in ("stratum", "order", "opens")]
    flags = [name for name in names if y.dtype[name].kind == "b"]
    numbers = [name for name in names if y.dtype[name].kind in "iuf"]
    if y.ndim != 1 or len(flags) != 1 or len(numbers) != 1:
        raise ValueError(
            f"y has the fields {', '.join(y.dtype.names or ())} and shape {y.shape}; it needs one of events (bool) and "
            "one of times (float)"
        )
    return np.array(y[flags[0]], dtype=bool), np.array(y[numbers[0]], dtype=float), strata


def _as_event(event: Array, time: Array) -> AnyArray:
    bad = np.flatnonzero((event != 0) & (event != 1))
    if bad.size:
        hint = "; are the columns time and event in this order?" if np.isin(time, (0, 1)).all() else ""
        raise ValueError(
            f"y has the event {event[bad[0]]:g} in row {bad[0]}; it must be 0 (censored) or 1 (true or false){hint}"
        )
    return np.asarray(event == 1)
