"""What a solve returns: the answer, the proof, why it stopped, and how it got there."""

from __future__ import annotations

import dataclasses
import enum
import io
import json
import math
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from .._validate import Array
from ..foundation.files import read_npz, write_whole
from ..foundation.html import Shown, drawing, table
from ..foundation.numerics import LARGEST
from ..problem import Bounds, Certificate, Fingerprint, Problem


class Status(enum.Enum):
    """Why the solver stopped."""

    CONVERGED = "converged"
    EPOCH_LIMIT = "epoch limit"
    TIME_LIMIT = "time limit"
    CALLBACK = "stopped by the callback"
    INTERRUPTED = "interrupted"
    STALLED = "stalled"
    NO_ANSWER = "no answer"
    CONTRADICTION = "contradictory bounds"

    def __str__(self) -> str:
        return str(self.value)


@dataclasses.dataclass(frozen=True)
class Record(Bounds):
    """One certificate of a run; `primal` and `dual` are the best so far."""

    epoch: int
    seconds: float
    primal: float
    dual: float
    residual: float
    rho: float = math.nan
    work: float = math.nan  # seconds inside the method itself, certificates and callbacks left out
    current: float = math.nan  # the objective at the iterate, which may be above the best
    by: str = ""  # who found the point: an engine, a method, or one that is tried between its epochs
    nanoseconds: float = math.nan  # so far, by the price model that decides whose turn it is


_WORK = ("certificates", "passes", "seconds", "nanoseconds")


class Snapshot:
    """What a callback receives: a record's fields, and the iterate as `coef` and `intercept`."""

    def __init__(self, record: Record, problem: Problem, w: np.ndarray) -> None:
        self.record, self._problem, self._w = record, problem, w

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.record, name)

    @property
    def coef(self) -> np.ndarray:
        return self._problem.unpack(self._w)[0].copy()

    @property
    def intercept(self) -> float | np.ndarray:
        return self._problem.unpack(self._w)[1]


class History(Shown):
    """The records of a run; `history.gap`, `history.epoch`, … are arrays."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.records: list[Record] = list(records)

    def __len__(self) -> int:
        return len(self.records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __getitem__(self, index: int) -> Record:
        return self.records[index]

    def work(self) -> dict[str, dict[str, float]]:
        """Who did what, and what it cost: certificates, passes over the data, seconds, and nanoseconds of the price
        model, each from the record before; and the factor by which the gap fell."""
        found: dict[str, dict[str, float]] = {}
        before: Record | None = None
        for record in self.records:
            own = found.setdefault(record.by, dict.fromkeys(_WORK, 0.0) | {"gap": 1.0})
            own["certificates"] += 1
            for name, key in (("passes", "epoch"), ("seconds", "seconds"), ("nanoseconds", "nanoseconds")):
                now = getattr(record, key)
                own[name] += now - getattr(before, key) if before is not None else now
            if before is not None and 0 < before.gap < math.inf:
                own["gap"] *= record.gap / before.gap
            before = record
        return found

    def __repr__(self) -> str:
        last = f", relative gap {self.records[-1].relative_gap:.1e}" if self.records else ""
        return f"History({len(self)} certificates{last})"

    def _html_title(self) -> str:
        return repr(self)

    def _html_more(self) -> list[str]:
        if not self.records:
            return []
        gaps, epochs = self.relative_gap, self.epoch.astype(float)
        best = np.fmin.accumulate(np.where(gaps > 0, gaps, np.nan))
        rows = [(r.epoch, f"{r.seconds:.3f}", f"{r.primal:.8g}", f"{r.dual:.8g}", f"{r.relative_gap:.2e}", r.by)
                for r in self.records[-8:]]  # fmt: skip
        head = ["epoch", "seconds", "primal", "dual", "relative gap", "by"]
        picture = drawing(epochs, best, across="epoch", up="relative gap, the best so far", log=True)
        return [picture, table(head, rows, len(self) - 8)]

    def __getattr__(self, name: str) -> np.ndarray:
        if name.startswith("_") or name == "records":
            raise AttributeError(name)
        if name in Record.__dataclass_fields__ or name in ("gap", "relative_gap"):
            return np.array([getattr(record, name) for record in self.records])
        raise AttributeError(
            f"a History has no {name!r}; it has {', '.join(Record.__dataclass_fields__)}, gap, relative_gap"
        )


class _Made:
    """A field whose value may be a function that makes it when it is first asked for: most results are never gone on
    from, and dual variables take a pass over the data."""

    def __get__(self, result: Any, owner: type) -> dict[str, Any]:
        if result is None:
            raise AttributeError("a Result has its state; its class has none")
        if callable(result.__dict__["_state"]):
            result.__dict__["_state"] = result.__dict__["_state"]()
        made: dict[str, Any] = result.__dict__["_state"]
        return made

    def __set__(self, result: Any, value: Any) -> None:
        result.__dict__["_state"] = value


@dataclasses.dataclass
class Result(Shown, Bounds):
    """The answer of :func:`fenchel.solve`.

    Attributes
    ----------
    coef, intercept : the best answer found
    primal, dual, gap : dual <= optimum <= primal is proven
    reason : why the last certificate could not be made, if it could not; the bound is then an older one
    status : Status
    history : History, one record per certificate
    epochs : passes over the data, including those of the result it was started from
    state : what a warm start and a resumed run need; made when it is first asked for
    """

    coef: Array
    intercept: float | Array
    primal: float
    dual: float
    status: Status
    history: History
    epochs: int
    seconds: float
    state: _Made = _Made()
    reason: str = ""

    def __getstate__(self) -> dict[str, Any]:
        # the status by its name: not all that saves results knows enums
        return self.__dict__ | {"_state": self.state, "status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        known = state["status"]
        self.__dict__.update(state | {"status": Status[known] if isinstance(known, str) else known})

    @property
    def certificate(self) -> Certificate:
        residual = self.history[-1].residual if len(self.history) else np.inf
        return Certificate(self.primal, self.dual, residual, self.reason)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one .npz file, whole or not at all; `Result.load` reads it back."""
        head = {
            "format": "fenchel result 1",
            "primal": self.primal, "dual": self.dual, "status": self.status.name, "epochs": self.epochs,
            "seconds": self.seconds, "reason": self.reason,
            "history": [dataclasses.astuple(record) for record in self.history],
            "state": {
                key: str(value) if isinstance(value, Fingerprint) else value
                for key, value in self.state.items() if not isinstance(value, np.ndarray)
            },
        }  # fmt: skip
        arrays: dict[str, Any] = {
            f"state.{key}": value for key, value in self.state.items() if isinstance(value, np.ndarray)
        }
        buffer = io.BytesIO()
        np.savez(buffer, head=np.array(json.dumps(head)), coef=self.coef, intercept=self.intercept, **arrays)
        write_whole(path, buffer.getvalue())

    @classmethod
    def remembered(
        cls, coef: Array, intercept: float | Array, *, primal: float = math.inf, dual: float = -math.inf,
        status: Status = Status.EPOCH_LIMIT, history: History | None = None, epochs: int = 0, seconds: float = 0.0,
        state: dict[str, Any] | None = None, reason: str = "",
    ) -> Result:  # fmt: skip
        """An answer from before: one that a file holds, or a point to start from. New ones come from the loop alone."""
        history = History() if history is None else history
        made: Any = {} if state is None else state
        return cls(coef, intercept, primal, dual, status, history, epochs, seconds, made, reason)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Result:
        """Read what `save` wrote, or raise a ValueError that says what is wrong with the file."""
        arrays = read_npz(path, "a saved fenchel result")
        try:
            head = json.loads(str(arrays.pop("head")))
            if head["format"] != "fenchel result 1":
                raise ValueError(f"its format is {head['format']!r}")
            return cls._from_parts(head, arrays)
        except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
            what = f"it has no {error}" if isinstance(error, KeyError) else f"{error}"
            raise ValueError(f"{os.fspath(path)} is not a saved fenchel result ({what})") from error

    @classmethod
    def _from_parts(cls, head: dict[str, Any], arrays: dict[str, Any]) -> Result:
        coef, intercept = arrays["coef"], arrays["intercept"]
        found = {key[6:]: value for key, value in arrays.items() if key.startswith("state.")}
        for name, part in {"coef": coef, "intercept": intercept, **found}.items():
            if part.dtype.kind not in "biuf" or not (np.abs(part) <= LARGEST).all():
                raise ValueError(f"its {name} must be finite numbers, below {LARGEST:g} in size")
        if coef.ndim not in (1, 2) or intercept.shape != coef.shape[:-1]:
            raise ValueError(f"it has coefficients of shape {coef.shape} and intercepts of shape {intercept.shape}")
        numbers = [head[key] for key in ("primal", "dual", "seconds", "epochs")]
        if any(isinstance(number, bool) or not isinstance(number, (int, float)) for number in numbers):
            raise ValueError("primal, dual, seconds and epochs must be numbers")
        return cls.remembered(
            coef=coef, intercept=float(intercept) if intercept.ndim == 0 else intercept,
            primal=head["primal"], dual=head["dual"], status=Status[head["status"]],
            history=History(Record(*map(_known, row)) for row in head["history"]), epochs=head["epochs"],
            seconds=head["seconds"], state=dict(head["state"]) | found, reason=str(head["reason"]),
        )  # fmt: skip

    def _html_rows(self) -> list[tuple[str, Any]]:
        rows: list[tuple[str, Any]] = [
            ("status", str(self.status)), ("primal, an upper bound", f"{self.primal:.10g}"),
            ("dual, a lower bound", f"{self.dual:.10g}" if self.certified else f"none: {self.reason}"),
            ("relative gap", f"{self.relative_gap:.2e}"), ("passes over the data", f"{self.epochs:,}"),
            ("seconds", f"{self.seconds:.3f}"),
            ("coefficients not zero", f"{np.count_nonzero(self.coef):,} of {self.coef.size:,}"),
        ]  # fmt: skip
        return [*rows, ("history", self.history)] if len(self.history) else rows

    def __repr__(self) -> str:
        proof = f"relative gap {self.relative_gap:.1e}"
        if self.reason:
            proof += f" (no newer certificate: {self.reason})"
        return f"Result({self.status}, primal {self.primal:.8g}, {proof}, {self.epochs} epochs, {self.seconds:.2f} s)"


def _known(value: Any) -> Any:
    """A number of a record; one nan for all that are not known, so that equal records are equal."""
    return value if value == value else math.nan
