"""A fitted model as one JSON file: coefficients, what was solved, and how far it is proven.

The numbers round-trip exactly. A bound that is not proven (an infinite gap) is stored as null, because
JSON has no infinity.
"""

from __future__ import annotations

import dataclasses
import json
import math
import os

import numpy as np
import scipy.sparse as sp

from . import __version__
from .losses import LOSSES, Loss, Poisson
from .result import Result, write_whole

_FORMAT = "fenchel model 1"
_NUMBERS = ("primal", "dual", "gap", "relative_gap", "seconds")


@dataclasses.dataclass
class Model:
    """Coefficients with what is needed to use and to judge them.

    Attributes
    ----------
    coef : array of p numbers
    intercept : float
    loss : name of the loss
    loss_params : its parameters
    penalty : description of the penalty
    alpha : float
    features : names of the features, or None
    classes : the two labels, first the negative one; None for a regression
    target : name of the target, or None
    first_index : where the LIBSVM file began to count, or None
    certificate : primal, dual, gap, relative_gap, certified, status, reason, epochs, seconds, tol
    version : of fenchel
    """

    coef: np.ndarray
    intercept: float
    loss: str
    loss_params: dict
    penalty: str
    alpha: float
    features: list[str] | None = None
    classes: list | None = None
    target: str | None = None
    first_index: int | None = None
    certificate: dict = dataclasses.field(default_factory=dict)
    version: str = __version__

    @classmethod
    def from_result(cls, result: Result, problem, *, tol: float, **about) -> Model:
        """The model of a solved problem with one output; `about` holds features, classes, target, first_index."""
        if not problem.single:
            raise ValueError("problem has several outputs or tasks; a model file holds one")
        certificate = {
            "primal": result.primal, "dual": result.dual, "gap": result.gap, "relative_gap": result.relative_gap,
            "certified": result.certified, "status": str(result.status), "reason": result.reason,
            "epochs": int(result.epochs), "seconds": result.seconds, "tol": tol,
        }  # fmt: skip
        return cls(
            result.coef, float(result.intercept), _loss_name(problem.loss), dict(vars(problem.loss)),
            repr(problem.penalty), problem.alpha, certificate=certificate, **about,
        )  # fmt: skip

    # -- use ------------------------------------------------------------------------------------------

    def decision(self, X) -> np.ndarray:
        """The scores X coef + intercept."""
        X = X if sp.issparse(X) else np.asarray(X, dtype=float)
        if X.ndim != 2 or X.shape[1] != len(self.coef):
            raise ValueError(f"X has shape {X.shape}, but the model has {len(self.coef)} features")
        return np.asarray(X @ self.coef).ravel() + self.intercept

    def predict(self, X) -> np.ndarray:
        """Labels as they stood in the data, or numbers (for Poisson the expected count)."""
        return self.from_decision(self.decision(X))

    def from_decision(self, decision) -> np.ndarray:
        """The predictions that belong to these scores."""
        if self.classes is not None:
            return np.array(self.classes)[(np.asarray(decision) > 0).astype(int)]
        return np.exp(decision) if self.loss == _loss_name(Poisson()) else decision

    def score(self, predicted, y) -> tuple[str, float]:
        """("accuracy", share) or ("R^2", value) of predictions for these targets."""
        y = np.asarray(y)
        if len(y) != len(predicted):
            raise ValueError(f"y has {len(y)} entries, but there are {len(predicted)} predictions")
        if self.classes is not None:
            unknown = [label for label in np.unique(y).tolist() if label not in self.classes]
            if unknown:
                raise ValueError(f"y holds {unknown[0]!r}; the model knows {self.classes[0]!r} and {self.classes[1]!r}")
            return "accuracy", float(np.mean(predicted == y.astype(predicted.dtype)))
        if not np.issubdtype(y.dtype, np.number):
            raise ValueError(f"y holds {y[0]!r}; the model predicts numbers")
        spread = float(np.sum((y - np.mean(y)) ** 2))
        left = float(np.sum((predicted - y) ** 2))
        return "R^2", 1.0 - left / spread if spread > 0 else math.nan

    # -- file -----------------------------------------------------------------------------------------

    def save(self, path) -> None:
        """Write the model, whole or not at all."""
        content = dataclasses.asdict(self)
        content["coef"] = self.coef.tolist()
        for key in _NUMBERS:
            value = content["certificate"].get(key)
            content["certificate"][key] = value if value is not None and math.isfinite(value) else None
        content["loss"] = {"name": content["loss"], "params": content.pop("loss_params")}
        text = json.dumps({"format": _FORMAT, **content}, allow_nan=False, ensure_ascii=False, indent=1)
        write_whole(path, (text + "\n").encode())

    @classmethod
    def load(cls, path) -> Model:
        """Read what `save` wrote, or raise a ValueError that says what is wrong with the file."""
        path = os.fspath(path)
        if not os.path.exists(path):
            raise FileNotFoundError(f"{path} does not exist")
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
        except json.JSONDecodeError as error:
            raise ValueError(f"{path} is not a fenchel model: line {error.lineno}: {error.msg}") from error
        except UnicodeDecodeError as error:
            raise ValueError(f"{path} is not a fenchel model: it is not text") from error
        made = content.get("format") if isinstance(content, dict) else None
        if made != _FORMAT:
            found = f"its format is {made!r}, this fenchel reads {_FORMAT!r}" if made else "it has no 'format'"
            raise ValueError(f"{path} is not a fenchel model: {found}")
        try:
            return cls._from_content(content)
        except KeyError as error:
            raise ValueError(f"{path} is a broken fenchel model: it has no {error.args[0]!r}") from error
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{path} is a broken fenchel model: {error}") from error

    @classmethod
    def _from_content(cls, content) -> Model:
        coef = np.array(content["coef"], dtype=float)
        intercept = float(content["intercept"])
        if coef.ndim != 1 or not np.isfinite(coef).all() or not math.isfinite(intercept):
            raise ValueError("coef and intercept must be finite numbers")
        features, classes = content["features"], content["classes"]
        if features is not None and len(features) != len(coef):
            raise ValueError(f"it has {len(coef)} coefficients, but {len(features)} feature names")
        name, params = content["loss"]["name"], content["loss"]["params"]
        if name not in LOSSES:
            raise ValueError(f"its loss is {name!r}; known losses: {', '.join(LOSSES)}")
        if LOSSES[name](**params).classification != (classes is not None and len(classes) == 2):
            raise ValueError(f"its classes are {classes!r}, which do not go with the loss {name!r}")
        certificate = dict(content["certificate"])
        for key in ("primal", "gap", "relative_gap"):
            certificate[key] = math.inf if certificate[key] is None else certificate[key]
        certificate["dual"] = -math.inf if certificate["dual"] is None else certificate["dual"]
        return cls(
            coef, intercept, name, params, content["penalty"], float(content["alpha"]), features, classes,
            content["target"], content["first_index"], certificate, content["version"],
        )  # fmt: skip


def encode_labels(y) -> tuple[np.ndarray, list]:
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
    return next((name for name, kind in LOSSES.items() if type(loss) is kind), type(loss).__name__)
