"""What the parts of a saved model must be; a file may have been cut, mixed up or written by hand."""

from __future__ import annotations

import math
from typing import Any

from .._validate import Array

_CERTIFIED = ("primal", "dual", "gap", "relative_gap", "seconds", "epochs", "tol")


def check_content(content: dict[str, Any]) -> None:
    """Raise a ValueError that names the first part of a saved model that is not what it must be."""
    for key in ("features", "target", "classes", "tasks"):
        part = content.get(key)
        words = key in ("features", "target")
        if part is not None and not (words and key == "target" and isinstance(part, str)):
            _check_list(key, part, words)
    for key in ("task", "offset", "penalty", "version"):
        part = content.get(key)
        if not (isinstance(part, str) or (part is None and key in ("task", "offset"))):
            raise ValueError(f"its {key} is {_short(part)}; it must be text")
    if content.get("first_index") not in (None, 0, 1) or isinstance(content.get("first_index"), (bool, float)):
        raise ValueError(f"its first_index is {_short(content['first_index'])}; it must be 0 or 1")
    _check_number("alpha", content["alpha"])
    if content["alpha"] < 0:
        raise ValueError(f"its alpha is {content['alpha']}; it must not be negative")
    loss = _checked_dict("loss", content["loss"])
    for key, value in _checked_dict("loss's params", loss["params"]).items():
        if not isinstance(value, (str, bool, type(None))):
            _check_number(f"loss's {key}", value)
    certificate = _checked_dict("certificate", content["certificate"])
    for key in _CERTIFIED:
        if certificate.get(key) is not None:
            _check_number(f"certificate's {key}", certificate[key])


def check_scaling(scale: Array, center: Array | None, p: int) -> None:
    """Raise a ValueError where a scaling does not belong to p columns."""
    for name, values in (("scale", scale), ("center", center)):
        if values is not None and (values.shape != (p,) or not all(map(math.isfinite, values.tolist()))):
            raise ValueError(f"its {name} has shape {values.shape}; it must be {p} finite numbers")
    if not (scale > 0).all():
        raise ValueError("its scale must be above 0 everywhere")


def checked_coding(coding: Any, features: list[str] | None) -> dict[str, Any] | None:
    """How a table's columns become features; a ValueError where it does not make the features of the model."""
    if coding is None:
        return None
    for key, kind in (("columns", list), ("levels", dict), ("means", dict)):
        if not isinstance(_checked_dict("coding", coding).get(key), kind):
            raise ValueError(f"its coding's {key} are {_short(coding.get(key))}; they must be a {kind.__name__}")
    columns, levels, means = coding["columns"], coding["levels"], coding["means"]
    _check_list("coding's columns", columns, True)
    for name, words in levels.items():
        _check_list(f"levels of {name!r}", words, True)
        if words != sorted(set(words)):
            raise ValueError(f"its levels of {name!r} are not sorted, or not different")
    for name, mean in means.items():
        _check_number(f"mean of {name!r}", mean)
    made = [f"{name}_{word}" if word else name for name in columns for word in levels.get(name, [None])]
    if made != features:
        raise ValueError("its coding does not make its features")
    return {"columns": columns, "levels": levels, "means": means}


def checked_baseline(baseline: Any) -> dict[str, Any] | None:
    """The baseline hazard of a model of survival times; a ValueError where it is none."""
    if baseline is None:
        return None
    found = _checked_dict("baseline", baseline)
    times: Any = found.get("times")
    rows: Any = found.get("log_hazards")
    strata: Any = found.get("strata")
    for name, part in (("baseline's times", times), ("baseline's rows", rows)):
        if not isinstance(part, list) or not part:
            raise ValueError(f"its {name} are {_short(part)}; they must be a list")
    if strata is not None:
        _check_list("baseline's strata", strata, False)
    if len(rows) != (1 if strata is None else len(strata)):
        raise ValueError(f"its baseline has {len(rows)} rows, which are not those of its strata")
    for row in rows:
        if not isinstance(row, list) or len(row) != len(times):
            raise ValueError(f"a row of its baseline is {_short(row)}; it must hold {len(times)} numbers")
    for number in [*times, *(number for row in rows for number in row if number is not None)]:
        _check_number("baseline", number)
    return {"times": times, "log_hazards": rows, "strata": strata}


def _check_list(key: str, part: Any, words: bool) -> None:
    kinds = (str,) if words else (str, bool, int, float)
    if not isinstance(part, list) or not part:
        raise ValueError(f"its {key} are {_short(part)}; they must be a list")
    for k, entry in enumerate(part):
        if not isinstance(entry, kinds) or (isinstance(entry, int) and abs(entry) >= 1 << 63):
            raise ValueError(f"entry {k} of its {key} is {_short(entry)}, which is no {'name' if words else 'label'}")


def _checked_dict(name: str, part: Any) -> dict[str, Any]:
    if not isinstance(part, dict):
        raise ValueError(f"its {name} is {_short(part)}; it must have named parts")
    return part


def _check_number(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) <= 1e308:
        raise ValueError(f"its {name} is {_short(value)}; it must be a finite number")


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else text[:40] + "…"
