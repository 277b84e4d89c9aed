"""Estimators and cross-validation on rows in a pool: on a disk, or on a cluster."""

from __future__ import annotations

import dataclasses
import queue
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import AnyArray, Array, Index
from ..data.jobs import MOST_LABELS, Fold, Losses, Scored, Terms, Weighed
from ..data.moments import deviations
from ..data.pools import Pool, SharedPasses
from ..data.reweighted import ReweightedPool
from ..problem.pooled import ROOM, PooledProblem
from . import preparation as helpers

if TYPE_CHECKING:
    from ..solver.result import Result
    from .paths import Path

_FEWEST = 3e8  # bytes: below that nobody waits long, and nothing is said; smaller: hints that nobody needs


def pooled_problem(model: Any, pool: Pool, **given: Any) -> PooledProblem:
    """The problem of an estimator on rows in a pool, whose names and classes it takes over."""
    check_nothing_beside(pool, **given)
    facts = pool.facts
    model.n_features_in_ = facts.p
    if pool.names is not None:
        model.feature_names_in_ = np.array(pool.names, dtype=object)
    elif hasattr(model, "feature_names_in_"):
        del model.feature_names_in_
    labels: AnyArray | None = None
    if model._classification:
        labels = _labels(pool)
        pool = _with_class_weights(model, pool, labels)
        _check_all_counted(pool, labels)
        model.classes_ = labels
    if hasattr(model, "tasks_"):
        del model.tasks_
    loss = helpers.as_loss(model.loss, model._classification)
    if labels is not None:
        loss = model._loss_in_use()
    outputs = facts.outputs if labels is None or (labels.size == 2 and not loss.coupled) else labels.size
    if facts.tasks:
        named = getattr(pool, "tasks", None)
        model.tasks_ = np.arange(facts.tasks) if named is None else np.array(named)
        outputs = facts.tasks
    if not isinstance(model.fit_intercept, (bool, np.bool_)):
        raise ValueError(f"fit_intercept is {model.fit_intercept!r}; it must be True or False")
    warn_if_small(pool)
    return PooledProblem(
        pool, loss=loss,
        penalty=helpers.for_outputs(model._named_penalty(), outputs, facts.p), alpha=1.0,
        fit_intercept=bool(model.fit_intercept), labels=labels,
        scale=deviations(pool) if model.standardize else None,
    )  # fmt: skip


def check_nothing_beside(pool: Pool, **given: Any) -> None:
    """Rows in a pool have targets, weights, tasks and offsets of their own."""
    for name, one in given.items():
        if one is not None:
            raise ValueError(
                f"{name} was given beside rows in {pool.home}, which have their own; name it where they are opened"
            )


@dataclasses.dataclass(frozen=True)
class Seen:
    """What a fitted model sees of the rows of a pool, in their order; `weight` and `offset` are None where they have
    none."""

    scores: Array
    target: AnyArray
    weight: Array | None
    offset: Array | None


def seen_rows(model: Any, pool: Pool, **given: Any) -> Seen:
    """The scores of the rows of a pool, and what belongs to the rows: one pass."""
    check_nothing_beside(pool, **given)
    name, known = type(model).__name__, getattr(model, "feature_names_in_", None)
    if known is not None and pool.names is not None and len(known) == len(pool.names):
        for column, (own, other) in enumerate(zip(known, pool.names, strict=True)):
            if own != other:
                raise ValueError(
                    f"column {column} of the rows in {pool.home} is {other!r}, but {name} was fitted with {own!r} "
                    "there; open them with the columns of fit, in their order"
                )
    coef = np.atleast_2d(model.coef_)
    intercept = np.broadcast_to(np.asarray(model.intercept_, dtype=float), coef.shape[0])
    codes = _codes_of_tasks(model, pool) if hasattr(model, "tasks_") else None
    kept = pool.run([Scored(coef, intercept, codes)])[0].kept
    if not kept:
        raise ValueError(f"there are no rows in {pool.home}; nothing can be predicted")
    scores, target, weight, offset = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    if model._with_offset and not offset.size:
        raise ValueError(
            f"{name} was fitted with an offset, but the rows in {pool.home} have none; name it where they are opened"
        )
    one = coef.shape[0] == 1 and (model._classification or np.ndim(model.coef_) == 1)
    return Seen(
        scores[:, 0] if one or codes is not None else scores, target, weight if weight.size else None,
        offset if offset.size else None,
    )  # fmt: skip


def _codes_of_tasks(model: Any, pool: Pool) -> Index:
    """The number that every task of the pool has in the model."""
    names = getattr(pool, "tasks", None)
    if names is None:
        return np.arange(len(model.tasks_))
    codes: Index = helpers.encode_tasks(np.array(names), len(names), model.tasks_)[1].astype(np.int64)
    return codes


def _labels(pool: Pool) -> AnyArray:
    labels = pool.facts.labels
    broken = np.zeros(0) if labels is None or labels.dtype.kind != "f" else labels[labels != np.floor(labels)]
    if labels is None or broken.size:
        seen = f"more than {MOST_LABELS} different ones" if labels is None else f"fractions such as {broken[0]:g}"
        kind = "continuous" if pool.facts.largest else "words"
        raise ValueError(
            f"Unknown label type: {kind}. The targets of the rows in {pool.home} are {seen}, not labels: a regressor "
            "takes them, where they are numbers; a classifier takes names of classes or whole numbers"
        )
    if labels.size < 2:
        raise ValueError(f"the rows hold one class only ({labels[0]}); a classifier needs two or more")
    whole = labels.dtype.kind == "f"
    return labels.astype(np.int64) if whole else labels


def _with_class_weights(model: Any, pool: Pool, classes: AnyArray) -> Pool:
    """The rows with their weights times those of their classes, which takes a pass."""
    given = getattr(model, "class_weight", None)
    if given is None:
        return pool

    def factors(sums: Array) -> Array:
        if isinstance(given, str) and given == "balanced":
            return helpers.balanced(sums)
        return helpers.named_class_weights(given, classes, classes)

    return ReweightedPool(pool, factors)


def _check_all_counted(pool: Pool, classes: AnyArray) -> None:
    """Refuse a class whose rows all have weight 0: nothing is known of its scores."""
    facts = pool.facts
    lost = classes[~np.isin(classes, [] if facts.counted is None else facts.counted)]
    if lost.size and facts.positive_weight:
        raise ValueError(f"all rows of class {lost.tolist()[0]!r} have weight 0; leave the class out")


def warn_if_small(pool: Pool) -> None:
    """Rows on a disk that fit into memory are better read into it: say so once, with the price of both ways."""
    facts, room = pool.facts, machine_memory()
    if pool.home != "files" or room is None or not _FEWEST < facts.nbytes < ROOM * room:
        return
    read = facts.nbytes / 1e9
    warnings.warn(
        f"these rows take {read:.3g} GB, and this machine has {room / 1e9:.3g} GB of memory. Read into memory by "
        f"fenchel.io.read_data they cost {read:.3g} GB of reading; rounds over files cost about ten times that. The "
        "answer is the same",
        stacklevel=4,
    )  # fmt: skip


def machine_memory() -> float | None:
    """Bytes of memory, where the system tells."""
    import os

    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return None


# -- paths ------------------------------------------------------------------------------------------------


def side_by_side(
    problem: PooledProblem, alphas: Array, together: int, walk: Callable[[PooledProblem, Array], Iterator[Result]]
) -> Iterator[Result]:
    """The results of falling alphas in their order, so many of them over the same passes.

    Each of the walks takes every so-many-th alpha, and goes from one answer of its own to the next; so its sample of
    the rows and what it has learnt of their curvature serve all of its alphas, as they do where alphas follow one
    another.
    """
    together = min(together, alphas.size)
    shared = SharedPasses(problem.pool, together)
    found: list[queue.SimpleQueue[Result | BaseException | None]] = [queue.SimpleQueue() for _ in range(together)]

    def go(k: int) -> None:
        try:
            for result in walk(problem.with_pool(shared.member()), alphas[k::together]):
                found[k].put(result)
            found[k].put(None)  # the time was over, or all is done
        except BaseException as error:
            found[k].put(error)
        finally:
            shared.leave()

    for k in range(together):
        threading.Thread(target=go, args=(k,), name=f"fenchel alphas {k}", daemon=True).start()
    try:
        for k in range(alphas.size):
            result = found[k % together].get()
            if result is None:
                return
            if isinstance(result, BaseException):
                raise result
            yield result
    finally:
        shared.end()  # nobody waits for what is still under way


# -- cross-validation -------------------------------------------------------------------------------------


def fold_paths(
    problem: PooledProblem, count: Any, alphas: Array, walk: Callable[[PooledProblem], Path], seed: int | None
) -> tuple[list[Path], list[list[float]]]:
    """Paths without the rows of every fold, all of them over the same passes, and minus the mean losses of those rows.

    Folds are drawn by a hash of every row's place, so that they do not depend on who holds the rows.
    """
    if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 2:
        raise ValueError(f"cv is {count!r}; rows in {problem.pool.home} take a number of folds, at least 2")
    folds = [Fold(int(count), k, 0 if seed is None else int(seed)) for k in range(count)]
    shared = SharedPasses(problem.pool, len(folds))
    paths: list[Any] = [None] * len(folds)
    errors: list[BaseException] = []

    def follow(k: int) -> None:
        try:
            paths[k] = walk(problem.with_pool(shared.member()).with_fold(folds[k]))
        except BaseException as error:
            errors.append(error)
        finally:
            shared.leave()

    threads = [threading.Thread(target=follow, args=(k,), name=f"fenchel fold {k}", daemon=True) for k in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return paths, _held_out(problem, folds, paths)


def _held_out(problem: PooledProblem, folds: list[Fold], paths: list[Path]) -> list[list[float]]:
    """Minus the mean loss of the rows that were left out, for every point of every path: one pass."""
    jobs: list[Any] = []
    for fold, path in zip(folds, paths, strict=True):
        left = Fold(fold.count, fold.left_out, fold.seed, kept=False)
        terms = Terms(problem.loss, problem.layout[0], 1.0, problem.terms.labels, left)
        answers = zip(path.coefs, path.intercepts, strict=True)
        points = tuple(problem.seen_by_rows(problem.pack(*answer)) for answer in answers)
        jobs += [Losses(terms, points), Weighed(terms)]
    found = problem.run(*jobs)
    return [
        [-float(value) for value in losses.sums / (weight.sums[0] * problem.layout[0] or np.nan)]
        for losses, weight in zip(found[::2], found[1::2], strict=True)
    ]
