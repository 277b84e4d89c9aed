"""What the explorable part of a page knows: every point of the path, as numbers that a script draws.

The script (``explore.js``) and these numbers are part of the page. It fetches nothing, and without scripts the page
still has its pictures and tables.
"""

from __future__ import annotations

import dataclasses
import json
from importlib import resources
from typing import TYPE_CHECKING, Any

import numpy as np

from .._validate import Array, Names
from ..models.judging import deviance_explained

if TYPE_CHECKING:
    from ..models.cross_validation import CrossValidation
    from ..models.paths import Path
    from ..problem.problem import Problem

HEAVY = 20_000  # points from which on a picture is of pixels, and values that the page keeps; more: pages of megabytes
MOST_ROWS = 1500  # rows whose fitted values it keeps; more: as above, and points hide each other


@dataclasses.dataclass
class Fitted:
    """Some rows of the data: their targets, and their scores at every alpha, or the means that these predict. `classes`
    names -1 and 1; `quality` is what is measured, and its value at every alpha."""

    target: Array
    scores: Array
    rows: int
    classes: list[str] | None
    quality: tuple[str, Array]

    @classmethod
    def of(cls, problem: Problem, coefs: Array, intercepts: Array, classes: list[Any] | None) -> Fitted | None:
        """None where rows have several scores, or these are compared with one another and not with targets."""
        if not problem.single or problem.loss.across_rows:
            return None
        some = np.arange(problem.n)
        if problem.n > MOST_ROWS:
            some = np.sort(np.random.default_rng(0).choice(problem.n, MOST_ROWS, replace=False))
        scores = np.asarray(problem.data.rows(some) @ np.atleast_2d(coefs).T).T + np.reshape(intercepts, (-1, 1))
        if problem.offset.size:
            scores = scores + problem.offset[some]
        target, loss = problem.target[some], problem.loss
        if loss.classification:
            names = [str(one) for one in classes] if classes is not None and len(classes) == 2 else ["-1", "1"]
            right = np.mean((scores > 0) == (target > 0), axis=1)
            return cls(target, scores, problem.n, names, ("accuracy", right))
        if loss.deviance:
            known = problem.offset[some] if problem.offset.size else None
            explained = np.array([deviance_explained(loss, one, target, None, known) for one in scores])
            return cls(target, loss.mean(scores), problem.n, None, ("D²", explained))
        spread = float(np.sum((target - target.mean()) ** 2)) or 1.0
        left = np.sum((target - scores) ** 2, axis=1)
        return cls(target, scores, problem.n, None, ("R²", 1.0 - left / spread))


def explorer(
    path: Path, chosen: int, names: Names, labels: list[str] | None, groups: Any, cv: CrossValidation | None,
    fitted: Fitted | None,
) -> str:  # fmt: skip
    """The part of a page with a slider over alpha."""
    text = json.dumps(_numbers(path, chosen, names, labels, groups, cv, fitted), separators=(",", ":"))
    text = text.replace("<", "\\u003c")  # nothing in a name may end the script
    return (
        "<section id=explore hidden><h2>Explore</h2><div class=dial><label for=alpha>alpha</label>"
        f'<input id=alpha type=range min=0 max={len(path) - 1} step=1 value={chosen} aria-label="alpha"></div>'
        "<dl id=readout></dl><div class=panels id=panels></div></section>"
        f"<script type=application/json id=numbers>{text}</script>"
    )


def script() -> str:
    """The script of a page: it draws what :func:`explorer` knows, sorts tables and switches to dark."""
    return resources.files(__package__).joinpath("explore.js").read_text(encoding="utf-8")


def style() -> str:
    return resources.files(__package__).joinpath("explore.css").read_text(encoding="utf-8")


def _numbers(
    path: Path, chosen: int, names: Names, labels: list[str] | None, groups: Any, cv: CrossValidation | None,
    fitted: Fitted | None,
) -> dict[str, Any]:  # fmt: skip
    coefs = path.coefs.reshape(len(path), -1, path.coefs.shape[-1])
    flat = coefs.reshape(len(path), -1)
    largest = np.abs(flat).max(axis=0)
    order = np.argsort(-largest, kind="stable")
    most = HEAVY // len(path)
    order = order[largest[order] > 0][:most]
    p = coefs.shape[-1]
    out: dict[str, Any] = {
        "alphas": _short(path.alphas), "chosen": chosen, "nonzeros": path.nonzeros.tolist(),
        "objective": _short(path.primals, 8), "gap": _short(path.relative_gaps, 2),
        "names": [str(names[j % p]) if labels is None else f"{labels[j // p]}: {names[j % p]}" for j in order],
        "coefs": [_short(flat[:, j]) for j in order], "left": int(np.count_nonzero(largest)) - len(order),
    }  # fmt: skip
    if groups is not None:
        norms = np.array([[np.linalg.norm(coef[:, group]) for group in groups] for coef in coefs])
        live = np.argsort(-norms.max(axis=0), kind="stable")
        live = live[norms.max(axis=0)[live] > 0][:most]
        out["groups"] = {"names": [str(groups.names[k]) for k in live], "norms": [_short(norms[:, k]) for k in live]}
    if cv is not None:
        out["cv"] = {"mean": _short(cv.mean), "error": _short(cv.standard_error)}
    if fitted is not None:
        name, quality = fitted.quality
        out["fitted"] = {
            "target": _short(fitted.target), "scores": [_short(one) for one in fitted.scores],
            "rows": fitted.rows, "classes": fitted.classes, "quality": [name, _short(quality)],
        }  # fmt: skip
    return out


def _short(values: Array, digits: int = 5) -> list[float | None]:
    """Numbers with more digits than a picture shows; none where a number is not finite, which JSON has no word for."""
    return [float(f"{value:.{digits}g}") if np.isfinite(value) else None for value in np.asarray(values, dtype=float)]
