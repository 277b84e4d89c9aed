"""Formulas as statisticians write them, by `formulaic`: factors, splines, interactions, and offsets."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import numpy as np

from .._validate import Array, Frame
from ..structure import Groups


@dataclasses.dataclass
class Design:
    """What a formula makes of a data frame.

    Attributes
    ----------
    X : pandas.DataFrame of numbers, a column per feature
    y : array of n targets, or None where the formula has no left side
    offset : array of n numbers, or None; the sum of the terms offset(…)
    groups : Groups
        The features of every term, by its name: a factor or a spline is in or out as a whole.
    fit_intercept : bool
        False where the formula takes it out (``0 + …`` or ``… - 1``).
    formula : str
    """

    X: Frame
    y: Any
    offset: Array | None
    groups: Groups
    fit_intercept: bool
    formula: str
    _spec: Any = dataclasses.field(repr=False, default=None)

    def of(self, frame: Frame) -> Design:
        """The same features of other rows: levels, knots and means are those of the first frame. The target may be
        missing there."""
        spec = self._spec.rhs if hasattr(self._spec, "rhs") else self._spec
        try:
            made = spec.get_model_matrix(frame, context=_CONTEXT)
        except Exception as error:
            raise ValueError(f"the formula {self.formula!r} does not go with this frame: {_short(error)}") from error
        return _taken_apart(made, None, self.formula, self._spec)

    def __repr__(self) -> str:
        offset = "" if self.offset is None else ", with an offset"
        n, p = self.X.shape
        return f"Design({self.formula!r}: {n} rows, {p} features of {len(self.groups)} terms{offset})"


def design(formula: str, frame: Frame) -> Design:
    """Features, target, offset and groups from a formula and a data frame.

    Parameters
    ----------
    formula : str
        ``"claims ~ C(region) + bs(age, 5) + bonus + offset(log(exposure))"``: see the documentation of formulaic.
        Every level of a factor has a column, since a penalty treats them alike. Without a left side there is no y.
    frame : pandas.DataFrame

    Returns
    -------
    Design

    Examples
    --------
    >>> import fenchel as fl, pandas as pd
    >>> frame = pd.DataFrame({"claims": [0, 2, 1, 0], "region": list("abca"), "age": [20, 40, 60, 30]})
    >>> made = fl.design("claims ~ C(region) + age", frame)
    >>> made.groups.names, made.X.shape
    (['C(region)', 'age'], (4, 4))
    """
    try:
        import formulaic
    except ImportError:
        raise ImportError("formulas need formulaic: pip install 'fenchel[formula]'") from None
    if not hasattr(frame, "columns"):
        raise ValueError(f"frame is a {type(frame).__name__}; a formula needs a data frame, whose columns have names")
    try:
        with np.errstate(divide="ignore"):  # the logarithm of an exposure of zero is told below
            made = formulaic.Formula(formula).get_model_matrix(
                frame, context=_CONTEXT, ensure_full_rank=False, na_action="raise"
            )
    except Exception as error:  # formulaic and what it calls have many families of errors
        raise ValueError(f"the formula {formula!r} does not go with this frame: {_short(error)}") from error
    left = getattr(made, "lhs", None)
    return _taken_apart(getattr(made, "rhs", made), left, formula, made.model_spec)


def _same(values: Any) -> Any:
    return values


_CONTEXT = {"offset": _same}


def _taken_apart(right: Any, left: Any, formula: str, spec: Any) -> Design:
    """The terms of the right side: the intercept and the offsets apart from the features."""
    kept, sizes, names, offset, intercept = [], [], [], None, False
    values = right.to_numpy(dtype=float)
    for term, places in right.model_spec.term_slices.items():
        name, columns = str(term), np.arange(right.shape[1])[places]
        if name == "1":
            intercept = True
        elif name.startswith("offset("):
            own = values[:, columns].sum(axis=1)
            bad = np.flatnonzero(~np.isfinite(own))
            if bad.size:
                raise ValueError(
                    f"{name} is {own[bad[0]]} in row {bad[0]} of the frame; an offset must be finite (an exposure of 0 "
                    "has no logarithm: leave such rows out)"
                )
            offset = own if offset is None else offset + own
        elif columns.size:
            kept.append(columns)
            sizes.append(columns.size)
            names.append(name)
    if not kept:
        raise ValueError(f"the formula {formula!r} has no features on its right side")
    ends = np.cumsum([0, *sizes])
    groups = [np.arange(first, last) for first, last in itertools.pairwise(ends)]
    import pandas as pd

    labels = [str(right.columns[j]) for j in np.concatenate(kept)]
    X = pd.DataFrame(values[:, np.concatenate(kept)], index=right.index, columns=labels)
    y = left.to_numpy() if left is not None and hasattr(left, "to_numpy") else None
    if y is not None and y.shape[1] == 1:
        y = y[:, 0]
    return Design(X, y, offset, Groups(groups, names, features=labels), intercept, formula, spec)


def _short(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
