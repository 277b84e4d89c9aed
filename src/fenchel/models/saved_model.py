"""A fitted model as one JSON file: coefficients, what was solved, and how far it is proven.

The numbers round-trip exactly. A bound that is not proven (an infinite gap) is stored as null, because
JSON has no infinity.
"""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .. import __version__
from .._validate import AnyArray, Array, Floats, MatrixLike, sound
from ..foundation.files import read_json, regular, write_whole
from ..losses import Loss, known_losses
from ..penalties.plain import to_plain
from ..solver.result import Result
from .columns import Scaling
from .judging import deviance_explained
from .preparation import class_probabilities, shifted
from .saved_checks import check_content, check_scaling, checked_baseline, checked_coding

if TYPE_CHECKING:
    from ..problem.problem import Problem

_FORMAT = "fenchel model 1"
_NUMBERS = ("primal", "dual", "gap", "relative_gap", "seconds")


@dataclasses.dataclass
class Model:
    """Coefficients with what is needed to use and to judge them.

    Attributes
    ----------
    coef : array of p numbers, or (outputs, p): a row per class, target or task
        For the data as it stands, whatever scaling it was fitted with.
    intercept : float, or array of outputs
    loss : name of the loss
    loss_params : its parameters
    penalty : description of the penalty
    alpha : float
    features : names of the features, or None
    classes : the labels, of two first the negative one; None for a regression
    target : name of the target, a list for several, or None
    first_index : where the LIBSVM file began to count, or None
    certificate : primal, dual, gap, relative_gap, certified, status, reason, epochs, seconds, tol
        Of the problem that was solved: with a scaling, that of the scaled columns.
    task : name of the column of tasks, or None
    tasks : their names, or None
    scaling : Scaling, or None
    offset : name of the column of offsets, or log(column), or None
    version : of fenchel
    written : the penalty as plain lists and numbers, or None where it holds what no file can
    coding : dict of columns, levels and means, or None
        How the columns of a table with words or gaps become the features.
    baseline : dict of event times, logarithms of cumulative hazards (a row per stratum) and strata, or None
        Of a model of survival times.
    """

    coef: Array
    intercept: float | Array
    loss: str
    loss_params: dict[str, Any]
    penalty: str
    alpha: float
    features: list[str] | None = None
    classes: list[Any] | None = None
    target: str | list[str] | None = None
    first_index: int | None = None
    certificate: dict[str, Any] = dataclasses.field(default_factory=dict)
    task: str | None = None
    tasks: list[Any] | None = None
    scaling: Scaling | None = None
    offset: str | None = None
    version: str = __version__
    written: dict[str, Any] | None = None
    coding: dict[str, Any] | None = None
    baseline: dict[str, Any] | None = None

    @classmethod
    def from_result(
        cls, result: Result, problem: Problem, *, tol: float, scaling: Scaling | None = None, **about: Any
    ) -> Model:
        """The model of a solved problem; `about` holds features, classes, target, first_index, task, tasks, offset."""
        certificate = certificate_of(result, tol)
        coef, intercept = result.coef + 0.0, result.intercept  # no -0.0
        if scaling is not None:
            coef, intercept = scaling.undo(coef, intercept)
        intercept = np.asarray(intercept, dtype=float) if coef.ndim == 2 else float(intercept)
        return cls(
            coef, intercept, _loss_name(problem.loss), dict(vars(problem.loss)), repr(problem.penalty), problem.alpha,
            certificate=certificate, scaling=scaling, written=to_plain(problem.penalty), **about,
        )  # fmt: skip

    # -- use ------------------------------------------------------------------------------------------

    @property
    def n_features(self) -> int:
        out: int = self.coef.shape[-1]
        return out

    def decision(self, X: MatrixLike, task: npt.ArrayLike | None = None, offset: npt.ArrayLike | None = None) -> Array:
        """The scores X coef + intercept + offset: (n,), or (n, outputs) for several classes or targets."""
        X = sound("X", X) if sp.issparse(X) else np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != self.n_features:
            raise ValueError(f"X has shape {X.shape}, but the model has {self.n_features} features")
        if self.offset is not None and offset is None:
            raise ValueError(f"the model was fitted with the offset {self.offset!r}; give that of these rows (or 0)")
        scores = np.asarray(X @ self.coef.T) + self.intercept
        if self.tasks is None:
            return shifted(scores, offset)
        if task is None:
            raise ValueError(f"the model was fitted with tasks; the data needs the column {self.task!r}")
        places = {str(name): k for k, name in enumerate(self.tasks)}
        unknown = next((name for name in np.asarray(task).tolist() if str(name) not in places), None)
        if unknown is not None:
            raise ValueError(f"task {unknown!r} is not among the {len(places)} tasks of the model")
        own = scores[np.arange(len(scores)), [places[str(name)] for name in np.asarray(task).tolist()]]
        return shifted(own, offset)

    def predict(
        self, X: MatrixLike, task: npt.ArrayLike | None = None, offset: npt.ArrayLike | None = None
    ) -> AnyArray:
        """Labels as they stood in the data, or numbers (with the log link the mean)."""
        return self.from_decision(self.decision(X, task, offset))

    def from_decision(self, decision: Array) -> AnyArray:
        """The predictions that belong to these scores."""
        decision = np.asarray(decision)
        if self.classes is not None:
            best = decision.argmax(axis=1) if decision.ndim == 2 else (decision > 0).astype(int)
            result: AnyArray = np.array(self.classes)[best]
            return result
        out: AnyArray = self._loss.mean(decision)
        return out

    def probabilities(self, decision: Array) -> Array:
        """The probability of every class (n, classes): the softmax, or each against the rest, normalised."""
        if not self._loss.likelihood:
            fitting = " or ".join(repr(name) for name, kind in known_losses().items() if kind.likelihood)
            raise ValueError(f"probabilities need the loss {fitting}; this model's is {self.loss!r}")
        return class_probabilities(self._loss, np.asarray(decision))

    @property
    def _loss(self) -> Loss:
        """The loss, made again; one of the user's own that has no name here predicts scores."""
        losses = known_losses()
        return losses[self.loss](**self.loss_params) if self.loss in losses else Loss()

    def score(
        self, predicted: AnyArray, y: npt.ArrayLike, decision: Array | None = None, offset: npt.ArrayLike | None = None
    ) -> tuple[str, float]:
        """("accuracy", share), for survival times ("concordance", share of pairs), or for numbers ("R^2", value), the
        mean over several targets, of predictions for these targets; with their scores ("D^2", share of the deviance
        explained) where the loss is half a deviance."""
        y = np.asarray(y)
        if len(y) != len(predicted):
            raise ValueError(f"y has {len(y)} entries, but there are {len(predicted)} predictions")
        if self.classes is not None:
            unknown = [label for label in np.unique(y).tolist() if label not in self.classes]
            if unknown:
                last = f"{', '.join(map(repr, self.classes[:-1]))} and {self.classes[-1]!r}"
                raise ValueError(f"y holds {unknown[0]!r}; the model knows {last}")
            return "accuracy", float(np.mean(predicted == y.astype(predicted.dtype)))
        if self._loss.across_rows:
            from .survival import concordance

            return "concordance", concordance(y, predicted)
        if not np.issubdtype(y.dtype, np.number):
            raise ValueError(f"y holds {y[0]!r}; the model predicts numbers")
        if y.shape != predicted.shape:
            raise ValueError(f"y has shape {y.shape}; the model predicts {predicted.shape}")
        if self._loss.deviance and decision is not None:
            return "D^2", deviance_explained(self._loss, decision, y.astype(float), None, offset)
        spread = np.sum((y - np.mean(y, axis=0)) ** 2, axis=0)
        left = np.sum((predicted - y) ** 2, axis=0)
        return "R^2", float(np.mean(1.0 - left / spread)) if np.all(spread > 0) else math.nan

    # -- file -----------------------------------------------------------------------------------------

    def save(self, path: Path | str) -> None:
        """Write the model, whole or not at all."""
        content = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        content["coef"], content["intercept"] = self.coef.tolist(), np.asarray(self.intercept).tolist()
        content["certificate"] = dict(self.certificate)
        for key in _NUMBERS:
            value = content["certificate"].get(key)
            content["certificate"][key] = value if value is not None and math.isfinite(value) else None
        content["loss"] = {"name": content["loss"], "params": content.pop("loss_params")}
        if self.scaling is not None:
            center = self.scaling.center
            content["scaling"] = {
                "scale": self.scaling.scale.tolist(),
                "center": None if center is None else center.tolist(),
            }
        text = json.dumps({"format": _FORMAT, **content}, allow_nan=False, ensure_ascii=False, indent=1)
        write_whole(path, (text + "\n").encode())

    @classmethod
    def load(cls, path: Path | str) -> Model:
        """Read what `save` wrote, or raise a ValueError that says what is wrong with the file."""
        path = regular(path)
        content = read_json(path, "a fenchel model")
        made = content.get("format") if isinstance(content, dict) else None
        if made != _FORMAT:
            found = f"its format is {made!r}, this fenchel reads {_FORMAT!r}" if made else "it has no 'format'"
            raise ValueError(f"{path} is not a fenchel model: {found}")
        try:
            return cls._from_content(content)
        except KeyError as error:
            raise ValueError(f"{path} is a broken fenchel model: it has no {error.args[0]!r}") from error
        except (TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ValueError(f"{path} is a broken fenchel model: {error}") from error

    @classmethod
    def _from_content(cls, content: dict[str, Any]) -> Model:
        coef = np.array(content["coef"], dtype=float)
        intercept = np.array(content["intercept"], dtype=float)
        if coef.ndim not in (1, 2) or not np.isfinite(coef).all() or not np.isfinite(intercept).all():
            raise ValueError("coef and intercept must be finite numbers")
        check_content(content)
        if intercept.shape != coef.shape[:-1] or not coef.size:
            raise ValueError(f"it has coefficients of shape {coef.shape}, but intercepts of shape {intercept.shape}")
        features, classes, tasks = content["features"], content["classes"], content.get("tasks")
        if features is not None and len(features) != coef.shape[-1]:
            raise ValueError(f"it has {coef.shape[-1]} coefficients, but {len(features)} feature names")
        name, params = content["loss"]["name"], content["loss"]["params"]
        if name not in known_losses():
            raise ValueError(f"its loss is {name!r}; known losses: {', '.join(known_losses())}")
        outputs = 1 if coef.ndim == 1 else len(coef)
        if tasks is not None and len(tasks) != outputs:
            raise ValueError(f"it has {outputs} rows of coefficients, but {len(tasks)} tasks")
        rows = 2 if tasks is not None or outputs == 1 else outputs
        if known_losses()[name](**params).classification != (classes is not None and len(classes) == rows):
            raise ValueError(f"its classes are {classes!r}, which do not go with the loss {name!r}")
        certificate = dict(content["certificate"])
        for key in ("primal", "gap", "relative_gap"):
            certificate[key] = math.inf if certificate[key] is None else certificate[key]
        certificate["dual"] = -math.inf if certificate["dual"] is None else certificate["dual"]
        scaling = content.get("scaling")
        if scaling is not None:
            center = scaling["center"]
            scaling = Scaling(np.array(scaling["scale"], float), None if center is None else np.array(center, float))
            check_scaling(scaling.scale, scaling.center, coef.shape[-1])
        return cls(
            coef, float(intercept) if intercept.ndim == 0 else intercept, name, params, content["penalty"],
            float(content["alpha"]), features, classes, content["target"], content["first_index"], certificate,
            content.get("task"), tasks, scaling, content.get("offset"), content["version"],
            written=content.get("written"), coding=checked_coding(content.get("coding"), features),
            baseline=checked_baseline(content.get("baseline")),
        )  # fmt: skip


def certificate_of(result: Result, tol: float) -> dict[str, Any]:
    """What is proven of an answer, as a file has it."""
    return {
        "primal": result.primal, "dual": result.dual, "gap": result.gap, "relative_gap": result.relative_gap,
        "certified": result.certified, "status": str(result.status), "reason": result.reason,
        "epochs": int(result.epochs), "seconds": result.seconds, "tol": tol,
    }  # fmt: skip


def encode_labels(y: npt.ArrayLike) -> tuple[Floats, list[Any]]:
    """Targets -1 and +1 for two labels of any kind, and the labels, the smaller first.

    A ValueError says how many labels there are if they are not two.
    """
    labels, codes = np.unique(y, return_inverse=True)
    if len(labels) != 2:
        found = ", ".join(repr(label) for label in labels[:5].tolist()) + (", …" if len(labels) > 5 else "")
        how = "one class only" if len(labels) == 1 else f"{len(labels)} different values"
        raise ValueError(f"the target holds {how} ({found}); a classification loss needs exactly two")
    return 2.0 * codes - 1.0, labels.tolist()


def _loss_name(loss: Loss) -> str:
    return next((name for name, kind in known_losses().items() if type(loss) is kind), type(loss).__name__)
