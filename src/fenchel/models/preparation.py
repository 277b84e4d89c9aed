"""What the estimators do to labels, tasks, weights and penalties before there is a problem."""

from __future__ import annotations

import copy
import functools
import sys
import warnings

import numpy as np
from sklearn.utils import check_random_state

from ..losses import LOSSES, Logistic, Loss
from ..maps import Difference, Gradient, Incidence, Selection
from ..penalties import L1, Mapped, Penalty, Scaled, Sum, compile_penalty
from ..solver.result import Status


def as_loss(loss, classification: bool) -> Loss:
    """The loss by name or itself; a ValueError where it is of the other kind."""
    if isinstance(loss, str) and loss in LOSSES:
        loss = LOSSES[loss]()
    fitting = [name for name, kind in LOSSES.items() if kind.classification == classification]
    if not isinstance(loss, Loss) or loss.classification != classification:
        task = "classification" if classification else "regression"
        raise ValueError(f"loss is {loss!r}; it must be a loss for {task}: {', '.join(fitting)}, or one of your own")
    return loss


def has_likelihood(model) -> bool:
    """Whether the loss is minus the logarithm of a probability; otherwise an AttributeError that says so."""
    if not (model.loss == "logistic" or isinstance(model.loss, Logistic)):
        raise AttributeError(f"predict_proba needs the loss 'logistic'; this one is {model.loss!r}")
    return True


def encode_classes(y, weight):
    """The classes, and targets +1 and -1: a vector for two classes, a column per class for more."""
    classes, code = np.unique(y, return_inverse=True)
    seen = np.unique(code if weight is None else code[weight > 0])
    if seen.size < 2:
        trimmed = "" if len(classes) < 2 else " of positive weight"
        raise ValueError(
            f"y holds one class only{trimmed}, {classes[seen[0]]!r}; a classifier needs two classes or more"
        )
    if seen.size < len(classes):
        lost = np.delete(classes, seen).tolist()[0]
        raise ValueError(f"all rows of class {lost!r} have weight 0; leave the class out")
    if len(classes) == 2:
        return classes, 2.0 * code - 1.0
    return classes, np.where(code[:, None] == np.arange(len(classes)), 1.0, -1.0)


def row_weights(sample_weight, class_weight, y, X):
    """Sample weights times class weights, or None where there are neither."""
    from sklearn.utils.class_weight import compute_class_weight
    from sklearn.utils.validation import _check_sample_weight

    if sample_weight is not None:
        sample_weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not sample_weight.any():
            raise ValueError("Sample weights must contain at least one non-zero number.")
    if class_weight is None:
        return sample_weight
    classes, code = np.unique(y, return_inverse=True)
    if isinstance(class_weight, str) and class_weight == "balanced":
        counts = np.bincount(code, sample_weight)
        own = np.divide(counts.sum(), len(classes) * counts, out=np.zeros(len(classes)), where=counts > 0)
    else:
        own = compute_class_weight(class_weight, classes=classes, y=y)
    return own[code] if sample_weight is None else own[code] * sample_weight


def encode_tasks(task, n, known=None):
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


def contiguous(X):
    """X as it is where its rows or its columns are stored one after another, otherwise a copy."""
    if isinstance(X, np.ndarray) and not (X.flags.c_contiguous or X.flags.f_contiguous):
        return np.ascontiguousarray(X)
    return X


def as_seed(random_state) -> int:
    """The first whole number of a random state; a whole number always gives the same one."""
    if isinstance(random_state, int):
        return _seed_of(random_state)
    return check_random_state(random_state).randint(2**31 - 1)


@functools.lru_cache(maxsize=64)
def _seed_of(number):
    return check_random_state(number).randint(2**31 - 1)


def for_outputs(penalty, outputs: int, p: int) -> Penalty:
    """The penalty on all outputs * p coefficients.

    A part of a sum that declares itself joint (by an attribute `joint`, or a parameter `n_outputs`) gets the
    coefficients of all outputs; so does one that fits outputs * p coefficients but not p. Any other part is applied to
    each output for itself.
    """
    penalty = L1() if penalty is None else penalty
    if not isinstance(penalty, Penalty):
        raise ValueError(f"penalty is {penalty!r}; it must be a fenchel penalty, e.g. fenchel.L1()")
    if isinstance(penalty, Sum):
        return Sum(*(for_outputs(part, outputs, p) for part in penalty.parts))
    if isinstance(penalty, Scaled):
        return penalty.scale * for_outputs(penalty.part, outputs, p)
    params = penalty.get_params(deep=False)
    if "n_outputs" in params:
        if params["n_outputs"] is None:
            penalty = copy.copy(penalty).set_params(n_outputs=outputs)
        return penalty
    if outputs == 1 or getattr(penalty, "joint", False):
        return penalty
    try:
        compile_penalty(penalty, p, 1.0)
    except ValueError:
        if _fits(penalty, outputs * p):
            return penalty
        raise
    from ..penalties import PerOutput

    return PerOutput(penalty, outputs)


def _fits(penalty, size):
    try:
        compile_penalty(penalty, size, 1.0)
    except ValueError:
        return False
    return True


def with_names(penalty, names):
    """The penalty with these names wherever it holds names of features but not the list of all."""
    from ..penalties import Unpenalised

    if not isinstance(penalty, Penalty):
        return penalty
    changes = {}
    for name, part in penalty.get_params(deep=False).items():
        own = with_names(part, names) if isinstance(part, Penalty) else part
        if own is not part:
            changes[name] = own
    if isinstance(penalty, Unpenalised) and penalty.names is None and any(isinstance(f, str) for f in penalty.features):
        changes["names"] = list(names)
    return copy.copy(penalty).set_params(**changes) if changes else penalty


def check_names(penalty, names):
    """Refuse structure that knows the features by other names than the data does."""
    if not isinstance(penalty, Penalty):
        return
    for part, places in _parts(penalty, None, len(names)):
        own = names if places is None else names[places]
        for structure in (getattr(part, name, None) for name in ("groups", "tree", "graph")):
            known = getattr(structure, "features", None)
            if known is None or len(known) != len(own):
                continue
            other = next((j for j in range(len(own)) if str(own[j]) != known[j]), None)
            if other is not None:
                raise ValueError(
                    f"{structure!r} knows feature {other} as {known[other]!r}, but that column of X is {own[other]!r}; "
                    "make it with features=X, or fit to an array, which has no names"
                )


def find_groups(penalty, p):
    """The groups of the p features that a penalty is made of; None where there are none.

    The features themselves for a penalty that takes each in or out for all outputs.
    """
    from ..penalties import MultiTaskLasso
    from ..structure import Groups, as_groups

    for part, places in _parts(penalty, None, p):
        for name in ("groups", "tree"):
            groups = getattr(part, name, None)
            if groups is not None:
                groups = as_groups(groups)
                return groups if places is None else Groups([places[g] for g in groups], groups.names, p)
        if isinstance(part, MultiTaskLasso):
            return Groups(np.arange(p)[:, None], [str(j) for j in range(p)], p)
    return None


def find_graph(penalty, p):
    """What joins neighbouring features in a penalty, as `structure.segments` takes it; None where nothing does."""
    from ..penalties import Monotone, Oscar, Slope
    from ..structure import Graph, Grid

    for part, places in _parts(penalty, None, p):
        if isinstance(part, (Slope, Oscar)):
            return "sizes"
        found, map_ = None, getattr(part, "map", None)
        size = p if places is None else len(places)
        if getattr(part, "graph", None) is not None:
            found = part.graph if isinstance(part.graph, Graph) else Graph(part.graph, size)
        elif getattr(part, "grid", None) is not None:
            found = part.grid if isinstance(part.grid, Grid) else Grid(part.grid)
        elif isinstance(map_, Incidence):
            found = Graph(map_.edges, map_.p, map_.weights)
        elif isinstance(map_, Gradient):
            found = Grid(map_.shape)
        elif isinstance(part, Monotone) or getattr(map_ if isinstance(map_, Difference) else part, "order", None) == 1:
            found = Graph(Grid(size).edges, size)  # a line
        if found is not None:
            return found if places is None else Graph(places[found.edges], p, getattr(found, "weights", None))
    return None


def _parts(penalty, places, p):
    """The parts of a sum, each with the features that it acts on (None: all, in their order).

    A penalty that is repeated for every output stands for itself.
    """
    from ..penalties import Unpenalised

    if isinstance(penalty, Sum):
        for part in penalty.parts:
            yield from _parts(part, places, p)
    elif isinstance(penalty, Scaled):
        yield from _parts(penalty.part, places, p)
    elif isinstance(penalty, Unpenalised):
        rest = penalty.rest(p if places is None else len(places))
        yield from _parts(penalty.penalty, rest if places is None else places[rest], p)
    elif isinstance(penalty, Mapped) and isinstance(penalty.map, Selection):
        yield from _parts(penalty.part, penalty.map.index if places is None else places[penalty.map.index], p)
    elif hasattr(penalty, "n_outputs") and isinstance(getattr(penalty, "penalty", None), Penalty):
        yield from _parts(penalty.penalty, places, p)
    else:
        yield penalty, places


_ADVICE = {
    Status.EPOCH_LIMIT: "raise max_epochs or tol, or bring the features to a like scale",
    Status.TIME_LIMIT: "raise the time limit or tol",
    Status.STALLED: "rounding leaves no room for this tol; raise it",
    Status.NO_ANSWER: "an alpha above 0, or a penalty on all directions, makes one",
}


def warn_unless_converged(name, result, tol):
    """A ConvergenceWarning with the gap that was reached and what to change."""
    if result.status not in _ADVICE:
        return
    proof = f"a relative gap of {result.relative_gap:.1e} is proven" if result.certified else "no gap is proven"
    reason = f" ({result.reason})" if result.reason else ""
    warn(
        f"{name} stopped before tol = {tol:g} ({result.status}, {result.epochs} epochs): {proof}{reason}; "
        f"{_ADVICE[result.status]}"
    )


def warn(message):
    """A ConvergenceWarning that points at the code which asked for the fit."""
    from sklearn.exceptions import ConvergenceWarning

    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in ("fenchel", "sklearn"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ConvergenceWarning, stacklevel=level)
