"""From a file and the options to a problem, and from its answer to a model."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from .._validate import AnyArray, Floats
from ..data.moments import deviations
from ..data.pools import Pool
from ..data.streamed import Streamed
from ..foundation.words import listed
from ..io import Data, open_data, read_data
from ..losses import are_proportions, known_losses, why_unknown
from ..models import Model, Scaling
from ..models import preparation as helpers
from ..models.columns import prepared
from ..problem import NoCertificate, Problem
from ..problem.pooled import PooledProblem
from .common import hint
from .penalty import full_name, make_penalty
from .structure import Structure
from .survival import check_survival, survival_columns, survival_targets

if TYPE_CHECKING:
    from ..losses.base import Loss
    from ..penalties.base import Penalty
    from ..solver.result import Result
    from .options import ModelOptions


@dataclasses.dataclass
class Setup:
    """A problem, and what is needed to tell of its answers."""

    file: str
    options: ModelOptions
    data: Data
    problem: Problem
    structure: Structure
    classes: list[Any] | None
    tasks: list[Any] | None
    scaling: Scaling | None

    def model(self, result: Result, problem: Problem) -> Model:
        """What is written to a file; coefficients for the data as it stands."""
        data, scaling = self.data, self.scaling
        if scaling is not None and not self.options.standardize:  # columns were centred on the way
            result, scaling = scaling.moved_back(result), None
        return Model.from_result(
            result, problem, tol=self.options.tol, features=data.features, classes=self.classes, target=data.target,
            first_index=data.first_index, task=self.options.task, tasks=self.tasks, scaling=scaling,
            offset=self.options.offset, coding=None if data.coding is None else dataclasses.asdict(data.coding),
        )  # fmt: skip

    @property
    def names(self) -> list[str]:
        return self.data.features or [f"feature {j}" for j in range(self.problem.p)]

    @property
    def labels(self) -> list[str] | None:
        """Names of the rows of coefficients, where there are several."""
        if self.problem.single:
            return None
        for labels in (self.tasks, self.classes, self.data.target):
            if isinstance(labels, list) and len(labels) == self.outputs:
                return [str(label) for label in labels]
        return [f"output {k}" for k in range(self.outputs)]

    @property
    def outputs(self) -> int:
        return self.problem.vectors

    def rows(self, problem: Problem, largest: float | None = None) -> list[tuple[str, str]]:
        """What was fitted to what, as lines of a table."""
        sparse = " (sparse)" if problem.data.sparse else ""
        rows = [("data", f"{self.file}: {problem.n:,} rows, {problem.p:,} features{sparse}")]
        if self.options.standardize:
            rows.append(("columns", "standardised for the fit"))
        rows += self._coded()
        if isinstance(self.data.target, list):
            rows.append(("targets", ", ".join(self.data.target)))
        if self.tasks is not None:
            rows.append(("tasks", f"{len(self.tasks)} by {self.options.task}"))
        if self.options.offset is not None:
            rows.append(("offset", self.options.offset))
        rows.append(("loss", repr(problem.loss)))
        if self.classes is not None and problem.loss.coupled:
            rows.append(("labels", f"{listed(self.classes)}; all together"))
        elif self.classes is not None and len(self.classes) == 2:
            rows.append(("labels", f"{self.classes[0]} is -1, {self.classes[1]} is +1"))
        elif self.classes is not None:
            rows.append(("labels", f"{listed(self.classes)}; each against the rest"))
        rows.append(("penalty", repr(problem.penalty)))
        if self.structure.free.size:
            rows.append(("without penalty", listed([self.names[j] for j in self.structure.free])))
        groups = self.structure.used("groups")
        if groups is not None:
            alone = self.structure.p - np.unique(np.concatenate(groups.members)).size
            if alone:
                rows.append(("in no group", f"{alone:,} features, which carry no penalty (see --complete-groups)"))
        if largest is not None:
            rows.append(("alpha", f"{problem.alpha:.6g} ({problem.alpha / largest:.3g} of alpha_max)"))
        return rows

    def _coded(self) -> list[tuple[str, str]]:
        """What was made of words and of missing values."""
        rows, coding, kept = [], self.data.coding, self.data.kept
        if coding is not None and coding.levels:
            words = [f"{name} ({len(levels)})" for name, levels in coding.levels.items()]
            rows.append(("columns of words", listed(words)))
        if kept is not None:
            rows.append(("rows left out", f"{np.count_nonzero(~kept):,} of {kept.size:,}, which miss a value"))
        return rows

    def answer_rows(self, result: Result) -> list[tuple[str, str]]:
        """What the answer looks like, as lines of a table."""
        from ..structure import segments

        coef = np.atleast_2d(result.coef)
        rows = [("coefficients not zero", f"{np.count_nonzero(coef):,} of {coef.size:,}")]
        if len(coef) > 1:
            rows.append(("features not zero", f"{np.count_nonzero(coef.any(axis=0)):,} of {coef.shape[1]:,}"))
        kept = coef[:, self.structure.kept]
        for name, noun in (("groups", "groups"), ("tree", "nodes")):
            found = self.structure.used(name)
            if found is not None:
                alive = sum(bool(kept[:, group].any()) for group in found)
                rows.append((f"{noun} not zero", f"{alive:,} of {len(found):,}"))
        for name in ("graph", "grid"):
            found = self.structure.used(name)
            if found is not None and kept.shape[1] <= 20_000:
                rows.append(("connected regions of one value", f"{len(segments(kept, found)):,}"))
        if self.problem.fit_intercept and len(coef) == 1:
            moved = result if self.scaling is None else self.scaling.moved_back(result)
            rows.append(("intercept", f"{float(moved.intercept):.6g}"))
        return rows


def prepare(file: str, options: ModelOptions, together: str | None = None) -> Setup:
    """Read the data and make the problem, with alpha = 1; `together` names what keeps rows in one fold."""
    if options.memory is not None or options.scheduler is not None:
        return _prepare_pool(file, options)
    data = read_data(
        file, target=survival_columns(options) or options.target or None, weights=options.weights, drop=options.drop,
        header=options.header, task=options.task or options.strata, offset=options.offset,
        max_features=options.max_features, together=together, one_hot=options.one_hot, missing=options.missing,
    )  # fmt: skip
    full_name(options.penalty)
    y = cast(AnyArray, data.y)  # without targets nothing is read
    loss, target, classes = _make_loss(options, y, file)
    if loss.across_rows:
        target, data.task = survival_targets(y, data.task, file), None
    tasks: list[Any] | None = None
    codes: AnyArray | None = None
    if data.task is not None:
        if target.ndim > 1:
            raise ValueError("--task goes with one target of numbers or two labels; there are more")
        found, codes = np.unique(data.task, return_inverse=True)
        tasks = found.tolist()
    outputs = len(tasks) if tasks is not None else 1 if target.ndim == 1 else target.shape[1]
    weight = helpers.row_weights(data.weights, _class_weights(options, classes), y, data.X)
    free = options.intercept or (loss.across_rows and options.standardize)  # what takes up the means of columns
    X, scaling = prepared(data.X, weight, free, options.standardize)
    structure = Structure(options, data.X, data.features if data.named or data.coding else None, data.coding)
    penalty = make_penalty(options, structure, outputs, data.X.shape[1])
    problem = Problem(
        X, target, loss=loss, penalty=penalty, alpha=1.0, sample_weight=weight,
        fit_intercept=options.intercept and not loss.across_rows, task=codes, offset=data.offset,
    )  # fmt: skip
    return Setup(file, options, data, problem, structure, classes, tasks, scaling)


def _prepare_pool(file: str, options: ModelOptions) -> Setup:
    """The same for rows that stay on the disk."""
    for name in ("class_weight", "time", "event", "strata", "one_hot", "missing"):
        if getattr(options, name):
            raise ValueError(
                f"--{name.replace('_', '-')} reads all rows at once, and does not go with --memory or --scheduler"
            )
    pool = open_data(
        file, target=options.target or None, weights=options.weights, offset=options.offset, task=options.task,
        drop=options.drop or (), header=options.header, memory=options.memory or "1GB",
    )  # fmt: skip
    rows: Pool = pool if options.scheduler is None else _on_cluster(pool, options.scheduler)
    full_name(options.penalty)
    facts = rows.facts
    if facts.labels is None:
        y: AnyArray = np.arange(3.0)[:, None] if facts.outputs > 1 else np.arange(1e5) + 0.5  # numbers, and many
    else:
        y = facts.labels
    loss, _, classes = _make_loss(options, y, file)
    several = classes is not None and (len(classes) > 2 or loss.coupled)
    outputs = facts.tasks or (len(classes) if classes is not None and several else facts.outputs)
    data = Data(
        None, None, list(pool.names) if pool.names is not None else None, pool.named, pool.target,
        first_index=pool.first_index,
    )  # fmt: skip
    structure = Structure(options, _NoRows(facts.p), data.features if data.named else None)
    penalty = make_penalty(options, structure, outputs, facts.p)
    problem = PooledProblem(
        rows, loss=loss, penalty=penalty, alpha=1.0, fit_intercept=options.intercept,
        labels=None if classes is None else np.array(classes),
        scale=deviations(rows) if options.standardize else None,
    )  # fmt: skip
    scaling = None if problem.scale is None else Scaling(problem.scale)
    tasks = list(pool.tasks) if pool.tasks is not None else None
    return Setup(file, options, data, problem, structure, classes, tasks, scaling)


def _on_cluster(pool: Streamed, address: str) -> Pool:
    """The same rows, read and held by the workers of a cluster."""
    try:
        from distributed import Client

        from ..dask import distribute
    except ImportError:
        raise ImportError("--scheduler needs distributed: pip install 'fenchel[dask]'") from None
    try:
        client = Client(address, timeout="10s", set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(f"--scheduler is {address!r}, and no Dask scheduler answers there ({error})") from None
    return distribute(pool, client)


class _NoRows:
    """Stands where structure asks for the data: its width is known, and nothing else is held."""

    def __init__(self, p: int) -> None:
        self.shape = (0, p)

    def __getitem__(self, which: Any) -> Any:
        raise ValueError("a graph from the data reads all rows at once, and does not go with --memory")

    def __array__(self, *given: Any, **named: Any) -> Any:
        return self[:]


def choose_alpha(problem: Problem, alpha: float | None, ratio: float | None, name: str) -> tuple[float, float | None]:
    """alpha as given, or as a share of alpha_max; and alpha_max where it was computed."""
    if alpha is not None and ratio is not None:
        raise ValueError("give --alpha or --alpha-ratio, not both")
    if alpha is not None:
        return alpha, None
    if ratio is None and only_bounds(problem):
        return 1.0, None
    largest = largest_alpha(problem, name)
    ratio = 0.1 if ratio is None else ratio
    if not (np.isfinite(ratio) and ratio >= 0):
        raise ValueError(f"--alpha-ratio is {ratio:g}; it must be finite and not negative")
    return ratio * largest, largest


def only_bounds(problem: Problem) -> bool:
    """Whether the penalty consists of bounds, which have no strength."""
    leaves = [leaf for _, leaf, _ in cast("Penalty", problem.penalty).terms(problem.vectors * problem.p)]
    return not any(leaf.has_strength for leaf in leaves)


def largest_alpha(problem: Problem, name: str) -> float:
    """alpha_max, or a ValueError that asks for alpha instead."""
    try:
        largest = problem.alpha_max()
    except NoCertificate as why:
        raise ValueError(f"alpha_max could not be computed ({why}); give --alpha instead") from None
    if not (np.isfinite(largest) and largest > 0):
        raise ValueError(f"alpha_max is {largest:g} for the penalty {name!r} on this data; give --alpha instead")
    return largest


# -- losses, labels, weights ------------------------------------------------------------------------


def _make_loss(options: ModelOptions, y: AnyArray, file: str) -> tuple[Loss, Floats, list[Any] | None]:
    """The loss, the targets it takes, and the labels of a classification."""
    labels = len(np.unique(y)) if y.ndim == 1 else np.inf
    numbers = np.issubdtype(y.dtype, np.number) or y.dtype == bool
    name = options.loss
    if name is None and options.time is not None:
        name = "cox"
    if name is None:
        name = "logistic" if labels <= 2 or not numbers else "squared"
    losses = known_losses()
    if name not in losses:
        raise ValueError(f"--loss is {name!r}; {why_unknown(name)}")
    keys = ("smoothing", "delta", "quantile", "epsilon", "power", "theta", "ties")
    params = {key: getattr(options, key) for key in keys}
    params = {key: value for key, value in params.items() if value is not None}
    takes = vars(losses[name]())
    for key in params:
        if key not in takes:
            raise ValueError(f"--{key} does not go with the loss {name!r}")
    loss = losses[name](**params)
    check_survival(options, name, loss.across_rows)
    if loss.across_rows:
        return loss, y, None
    proportional = loss.for_proportions()
    if proportional is not None and numbers and labels > 2 and are_proportions(y):
        loss, name = proportional, "binomial"
    if not loss.classification:
        if not numbers:
            raise ValueError(f"{file}: the target holds {str(y.flat[0])!r}; the loss {name!r} takes numbers")
        if options.class_weight:
            raise ValueError(f"--class-weight goes with a loss for labels, not with {name!r}")
        return loss, y.astype(float), None
    if y.ndim > 1:
        raise ValueError(f"{file}: several targets need a loss for numbers, such as --loss squared; not {name!r}")
    _check_labels(y, labels, numbers, name, file, proportional is not None)
    classes, code = helpers.encode_classes(y, None)
    try:
        loss = helpers.loss_of_classes(loss, options.multi_class, len(classes))
    except ValueError as error:
        raise ValueError(str(error).replace("multi_class", "--multi-class")) from None
    return loss, helpers.class_targets(code, len(classes), loss), classes.tolist()


def _check_labels(y: AnyArray, labels: float, numbers: bool, name: str, file: str, proportions: bool) -> None:
    first = ", ".join(repr(label) for label in np.unique(y)[:3].tolist()) + (", …" if labels > 3 else "")
    regression = "; for a regression say --loss squared" if numbers else ""
    if labels == 1:
        raise ValueError(
            f"{file}: the target holds one class only ({first}); the loss {name!r} needs two or more{regression}"
        )
    if labels > max(20, len(y) // 2) or (numbers and labels > 2 and np.any(y != np.floor(y))):
        if proportions and numbers:
            row = int(np.flatnonzero(~((y >= 0) & (y <= 1)))[0])  # there is one: with none they were taken as such
            regression += f"; as proportions all must lie in [0, 1], and row {row} holds {y[row]:g}"
        raise ValueError(f"{file}: the target holds {labels} different values ({first}), not labels{regression}")


def _class_weights(options: ModelOptions, classes: list[Any] | None) -> dict[Any, float] | str | None:
    """What `row_weights` takes: None, "balanced", or a dict by label."""
    given = options.class_weight
    if not given or classes is None:
        return None
    if given == ["balanced"]:
        return "balanced"
    by_name = {str(label): label for label in classes}
    weights = {}
    for text in given:
        name, equals, number = text.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = -1.0
        if not equals or not (np.isfinite(weight) and weight >= 0):
            raise ValueError(f"--class-weight is {text!r}; write balanced, or label=weight such as {classes[0]}=2")
        if name not in by_name:
            raise ValueError(f"--class-weight names {name!r}; {hint(name, list(by_name))}")
        weights[by_name[name]] = weight
    return dict.fromkeys(classes, 1.0) | weights
