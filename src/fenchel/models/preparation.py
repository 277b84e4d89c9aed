"""What the estimators do to labels, tasks, weights and penalties before there is a problem."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils import check_random_state

from .._validate import AnyArray, Array, Floats, Ints, MatrixLike, warn_user
from ..data import as_offset, first_word
from ..losses import Loss, known_losses, why_unknown
from ..penalties import L1, Penalty, why_no_penalty
from ..solver.result import Status

if TYPE_CHECKING:
    from ..solver.result import Result
    from ..structure.groups import Groups


def as_loss(loss: Loss | str, classification: bool, coupled: bool = False) -> Loss:
    """The loss by name or itself; a ValueError where it is of the other kind."""
    found = named_loss(loss)
    if found is None and isinstance(loss, str):
        raise ValueError(f"loss is {loss!r}; {why_unknown(loss)}")
    if found is not None and found.across_rows and not coupled:
        raise ValueError(f"loss is {loss!r}, which is for survival times; use fenchel.CoxRegressor")
    if found is not None and found.classification and not classification:
        found = found.for_proportions() or found
    if found is None or found.classification != classification:
        loss = loss if found is None else found
        fitting = [name for name, kind in known_losses().items() if kind.classification == classification]
        task = "classification" if classification else "regression"
        raise ValueError(f"loss is {loss!r}; it must be a loss for {task}: {', '.join(fitting)}, or one of your own")
    return found


def has_likelihood(model: Any) -> bool:
    """Whether the loss is minus the logarithm of a probability; otherwise an AttributeError that says so."""
    loss = named_loss(model.loss)
    if loss is None or not loss.likelihood:
        fitting = " or ".join(repr(name) for name, kind in known_losses().items() if kind.likelihood)
        raise AttributeError(f"predict_proba needs the loss {fitting}; this one is {model.loss!r}")
    return True


def named_loss(loss: Loss | str) -> Loss | None:
    """The loss by name or itself; None where it is neither."""
    if isinstance(loss, Loss):
        return loss
    return known_losses()[loss]() if isinstance(loss, str) and loss in known_losses() else None


def loss_of_classes(loss: Loss, multi_class: str, classes: int) -> Loss:
    """The loss that so many classes are fitted by: all of them together, or each against the rest."""
    if multi_class not in ("auto", "multinomial", "ovr"):
        raise ValueError(f"multi_class is {multi_class!r}; it must be 'auto', 'multinomial' or 'ovr'")
    if loss.coupled:
        if multi_class == "ovr":
            raise ValueError(f"multi_class is 'ovr', but {loss!r} sees all classes together; take the loss 'logistic'")
        return loss
    together = loss.for_classes()
    if multi_class == "multinomial" and together is None:
        raise ValueError(
            f"multi_class is 'multinomial', which goes with the loss 'logistic'; this one is {loss!r} (the hinge of "
            "several classes is the loss 'multiclass-hinge')"
        )
    return loss if together is None or multi_class == "ovr" or classes < 3 else together


def check_folds(folds: list[tuple[Ints, Ints]], y: npt.ArrayLike, classes: AnyArray, weight: Array | None) -> None:
    """Refuse folds that leave a class without training rows: nothing is then known of its scores."""
    y = np.asarray(y)
    for number, (train, _) in enumerate(folds):
        seen = np.unique(y[train] if weight is None else y[train][np.asarray(weight)[train] > 0])
        missing = np.setdiff1d(classes, seen)
        if missing.size:
            raise ValueError(
                f"class {missing.tolist()[0]!r} does not occur in the training rows of fold {number}; use fewer or "
                "stratified folds, leave the class out, or give multi_class='ovr'"
            )


def class_probabilities(loss: Loss, scores: Array) -> Array:
    """The probability of every class (n, classes); of several classes each against the rest, normalised."""
    if loss.coupled:
        return loss.probability(scores)
    if scores.ndim == 1:
        return np.column_stack([loss.probability(-scores), loss.probability(scores)])
    shares = loss.probability(scores)
    total = shares.sum(axis=1, keepdims=True)
    # far from all classes every share may underflow
    return np.where(total > 0, shares / np.where(total > 0, total, 1.0), 1.0 / shares.shape[1])


def encode_classes(y: npt.ArrayLike, weight: Array | None) -> tuple[AnyArray, Ints]:
    """The classes, and the number of every row's."""
    classes, code = np.unique(y, return_inverse=True)
    seen = np.unique(code if weight is None else code[weight > 0])
    if seen.size < 2:
        trimmed = "" if len(classes) < 2 else " of positive weight"
        raise ValueError(
            f"y holds one class only{trimmed}, {classes.tolist()[seen[0]]!r}; a classifier needs two classes or more"
        )
    if seen.size < len(classes):
        lost = np.delete(classes, seen).tolist()[0]
        raise ValueError(f"all rows of class {lost!r} have weight 0; leave the class out")
    return classes, code


def class_targets(code: Ints, classes: int, loss: Loss) -> Floats:
    """Unit vectors for a loss that sees all classes together, otherwise +1 and -1: a vector for two classes, a column
    per class for more."""
    if not loss.coupled and classes == 2:
        return np.asarray(2.0 * code - 1.0)
    return np.where(code[:, None] == np.arange(classes), 1.0, 0.0 if loss.coupled else -1.0)


def row_weights(
    sample_weight: npt.ArrayLike | None, class_weight: Mapping[Any, float] | str | None, y: npt.ArrayLike, X: MatrixLike
) -> Array | None:
    """Sample weights times class weights, or None where there are neither."""
    from sklearn.utils.validation import _check_sample_weight

    weight: Array | None = None
    if sample_weight is not None:
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
    if class_weight is None:
        return weight
    classes, code = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        own = balanced(np.bincount(code, weight))
    else:
        own = named_class_weights(class_weight, classes, y)
    out: Array | None = own[code] if weight is None else own[code] * weight
    return out


def named_class_weights(class_weight: Any, classes: AnyArray, y: npt.ArrayLike) -> Array:
    """Class weights as they are given, in the order of the classes."""
    from sklearn.utils.class_weight import compute_class_weight

    own = np.asarray(compute_class_weight(class_weight, classes=classes, y=y), dtype=float)
    bad = np.flatnonzero(~(np.isfinite(own) & (own >= 0)))
    if bad.size:
        raise ValueError(
            f"class_weight of class {classes.tolist()[bad[0]]!r} is {own[bad[0]]:g}; it must be finite and not negative"
        )
    return own


def balanced(sums: AnyArray) -> Array:
    """Class weights by which all classes count alike, of the sums of their rows' weights."""
    return np.asarray(np.divide(sums.sum(), len(sums) * sums, out=np.zeros(len(sums)), where=sums > 0))


def encode_tasks(task: npt.ArrayLike | None, n: int, known: AnyArray | None = None) -> tuple[AnyArray, Ints]:
    """The tasks and the number of each row's; with `known` tasks a ValueError names one that is not among them."""
    task = np.asarray(task)
    if task.ndim != 1 or len(task) != n:
        raise ValueError(f"task has shape {task.shape}; it must hold one task for each of the {n} rows")
    if known is None:
        return np.unique(task, return_inverse=True)
    place = np.searchsorted(known, task)
    found = known[np.minimum(place, len(known) - 1)] == task
    if not found.all():
        raise ValueError(f"task {task[~found].tolist()[0]!r} was not among the tasks of fit")
    return known, place


def shifted(scores: Array, offset: npt.ArrayLike | None) -> Array:
    """The scores with an offset, which may be one number for all rows."""
    if offset is None:
        return scores
    n, outputs = len(scores), 1 if scores.ndim == 1 else scores.shape[1]
    known = as_offset(np.full(n, offset) if np.ndim(offset) == 0 else offset, n, outputs)
    return scores + known.reshape(scores.shape) if known.size else scores


def check_numbers_of(y: npt.ArrayLike | None) -> None:
    """Refuse words as the targets of a regression, and name the model that predicts them."""
    word = first_word(y)
    if word is not None:
        raise ValueError(
            f"y holds words, such as {word!r}, and a regressor predicts numbers; for classes take "
            "fenchel.StructuredClassifier (or StructuredClassifierCV), which takes words as they are"
        )


def check_target_given(model: Any, y: npt.ArrayLike | None) -> None:
    """Rows in memory are judged by targets that somebody gives."""
    if y is None:
        raise ValueError(f"{type(model).__name__}.score requires y to be passed, but the target y is None")


@contextlib.contextmanager
def gaps_named(X: Any, y: Any) -> Iterator[None]:
    """Where a check of X and y fails because their lengths differ or a value is missing, say where, and what to do."""
    try:
        yield
    except ValueError:
        rows, targets = (np.shape(one)[0] if np.ndim(one) else None for one in (X, y))
        if rows is not None and targets is not None and rows != targets:
            raise ValueError(f"y has {targets} entries, but X has {rows} rows; both need one for every row") from None
        place = _first_gap(X)
        if place is None:
            missing = _missing_targets(y)
            if missing.size:
                raise ValueError(
                    f"Input y contains NaN: entry {missing[0]} has no value (counted from 0; {missing.size} are "
                    "missing in all); leave these rows out of X and y"
                ) from None
            raise
        raise ValueError(
            f"Input X contains NaN: {place}; fill them, for example by sklearn.impute.SimpleImputer in a pipeline, or "
            "leave these rows out"
        ) from None


def _first_gap(X: Any) -> str | None:
    """The place of the first missing value, and how many there are; None where X has none, or is no table."""
    if not hasattr(X, "shape") or len(X.shape) != 2 or sp.issparse(X):
        return None
    gaps = X.isna().to_numpy() if hasattr(X, "isna") else np.asarray(X)
    if gaps.dtype != bool:
        gaps = np.isnan(gaps) if gaps.dtype.kind == "f" else np.zeros(0, dtype=bool)
    if not gaps.any():
        return None
    row, column = (int(k) for k in np.argwhere(gaps)[0])
    name = repr(str(X.columns[column])) if hasattr(X, "columns") else str(column)
    return f"column {name} has no value in row {row} (counted from 0; {np.count_nonzero(gaps)} are missing in all)"


def _missing_targets(y: Any) -> Ints:
    """The rows whose target is missing; none where it cannot be told."""
    if np.iscomplexobj(y):  # said elsewhere
        return np.zeros(0, dtype=np.int64)
    try:
        gaps = np.isnan(np.asarray(y, dtype=float))
    except (TypeError, ValueError):
        return np.zeros(0, dtype=np.int64)
    return np.flatnonzero(gaps.reshape(len(gaps), -1).any(axis=1)) if gaps.ndim else np.zeros(0, dtype=np.int64)


def contiguous(X: MatrixLike) -> MatrixLike:
    """X as it is where its rows or its columns are stored one after another, otherwise a copy."""
    if isinstance(X, np.ndarray) and not (X.flags.c_contiguous or X.flags.f_contiguous):
        return np.ascontiguousarray(X)
    return X


def as_seed(random_state: Any) -> int:
    """The first whole number of a random state; a whole number always gives the same one."""
    if isinstance(random_state, int):
        out: int = _seed_of(random_state)
        return out
    result: int = check_random_state(random_state).randint(2**31 - 1)
    return result


@functools.lru_cache(maxsize=64)
def _seed_of(number: int) -> int:
    out: int = check_random_state(number).randint(2**31 - 1)
    return out


def for_outputs(penalty: Penalty | None, outputs: int, p: int) -> Penalty:
    """The penalty on all outputs * p coefficients; see :meth:`fenchel.Penalty.for_outputs`."""
    penalty = L1() if penalty is None else penalty
    if not isinstance(penalty, Penalty):
        raise ValueError(f"penalty is {penalty!r}; {why_no_penalty(penalty)}")
    out: Penalty = penalty.for_outputs(outputs, p)
    return out


def find_groups(penalty: Penalty | None, p: int) -> Groups | None:
    """The groups of the p features that a penalty is made of; None where there are none."""
    from ..structure import Groups

    if penalty is None:
        return None
    for part, places in penalty.written_parts(None, p):
        groups = part.feature_groups(p if places is None else len(places))
        if groups is not None:
            return groups if places is None else Groups([places[g] for g in groups], groups.names, p)
    return None


def find_graph(penalty: Penalty | None, p: int) -> Any:
    """What joins neighbouring features in a penalty, as `structure.segments` takes it; None where nothing does."""
    from ..structure import Graph

    if penalty is None:
        return None
    for part, places in penalty.written_parts(None, p):
        found = part.feature_graph(p if places is None else len(places))
        if isinstance(found, str):  # "sizes"
            return found
        if found is not None:
            return found if places is None else Graph(places[found.edges], p, getattr(found, "weights", None))
    return None


def largest_alpha(problem: Any) -> float:
    """The alpha from which on the penalised part of the answer is zero, for a share of it to mean something."""
    largest = float(problem.alpha_max())
    if not np.isfinite(largest):
        raise ValueError(
            f"alpha_ratio is a share of the largest useful alpha, and {problem.penalty!r} has none; give alpha instead"
        )
    return largest


_ADVICE = {
    Status.EPOCH_LIMIT: "raise max_epochs or tol, or bring the features to a like scale",
    Status.TIME_LIMIT: "raise the time limit or tol",
    Status.STALLED: "rounding leaves no room for this tol; raise it",
    Status.NO_ANSWER: "an alpha above 0, or a penalty on all directions, makes one",
}


def warn_unless_converged(name: str, result: Result, tol: float) -> None:
    """A ConvergenceWarning with the gap that was reached and what to change."""
    if result.status not in _ADVICE:
        return
    proof = f"a relative gap of {result.relative_gap:.1e} is proven" if result.certified else "no gap is proven"
    reason = f" ({result.reason})" if result.reason else ""
    warn(
        f"{name} stopped before tol = {tol:g} ({result.status}, {result.epochs} epochs): {proof}{reason}; "
        f"{_ADVICE[result.status]}"
    )


def warn(message: str) -> None:
    """A ConvergenceWarning that points at the code which asked for the fit."""
    from sklearn.exceptions import ConvergenceWarning

    warn_user(message, ConvergenceWarning)
