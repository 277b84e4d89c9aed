"""One page of HTML about an answer that needs nothing beside itself: proof, pictures, structure, settings.

Pictures are part of the page, and nothing is fetched. :func:`make` returns the page as a string.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import __version__
from .._validate import Array, Names
from ..foundation.words import listed
from ..structure import active_groups, segments
from .explore import HEAVY, Fitted, explorer, script, style
from .html import _MOST, _pairs, _table, embed, page, picture

if TYPE_CHECKING:
    from ..models.cross_validation import CrossValidation
    from ..models.paths import Path
    from ..problem.problem import Problem
    from ..solver.result import Result

_OWN = """
body { max-width: 64rem; } figure { max-width: 44rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 27rem), 1fr)); gap: 1rem 2rem; }
.pair > * { min-width: 0; } th.n { text-align: right; } td { overflow-wrap: break-word; }
.set td { overflow-wrap: anywhere; }
.bar { display: inline-block; height: .7em; border-radius: 2px; background: #0072B2; }
.bar.minus { background: #D55E00; }
td.b { width: 30%; min-width: 5rem; } dl { margin: 0; }
footer { color: #7f8c8d; font-size: .85rem; margin: 3rem 0 1rem; }
@media (max-width: 40rem) { body { margin-top: 1rem; } th, td { padding: .3rem .35rem; } h1 { font-size: 1.35rem; } }
"""


def make(
    title: str,
    result: Result,
    *,
    tol: float,
    names: Names,
    labels: list[str] | None = None,
    settings: Sequence[tuple[str, str]] = (),
    features: npt.ArrayLike | None = None,
    groups: Any = None,
    tree: Any = None,
    graph: Any = None,
    grid: Any = None,
    path: Path | None = None,
    cv: CrossValidation | None = None,
    alpha: float | None = None,
    standardised: bool = False,
    problem: Problem | None = None,
    classes: list[Any] | None = None,
) -> str:
    """The page.

    Parameters
    ----------
    title : str
    result : Result
        The answer that the page is about.
    tol : float
    names : list of str
        Of all features.
    labels : list of str, optional
        Of the outputs, where there are several.
    settings : list of (name, value)
    features : vector of feature numbers, optional
        Those that groups, tree, graph and grid describe; all by default.
    groups, tree, graph, grid : optional
    path : Path, optional
    cv : CrossValidation, optional
    alpha : float, optional
        That of the answer.
    standardised : bool
        Whether coefficients are per standard deviation.
    problem : Problem, optional
        That of the answer: fitted values, and accuracy or R^2.
    classes : list, optional
        The two labels of a classification.
    """
    coef = np.atleast_2d(result.coef)
    places = np.arange(coef.shape[1]) if features is None else np.asarray(features)
    kept = coef[:, places]
    known = _Known(coef, kept, [names[int(j)] for j in places], labels, groups, tree, graph, grid)
    at = "" if alpha is None else f" at alpha = {alpha:.4g}"
    whole, chosen = _all_points(path, result, tol, alpha)
    fitted = None if problem is None else Fitted.of(problem, whole.coefs, whole.intercepts, classes)
    described = known.groups if known.whole and not known.nodes else None
    parts = [
        f"<h1>{html.escape(title)}</h1>",
        f"<p class=lead>{_verdict(result, tol)}</p>",
        "<div class=pair><section><h2>Certificate</h2>" + _certificate(result, tol, fitted, chosen) + "</section>",
        "<section><h2>What was fitted</h2>" + _pairs(settings) + "</section></div>",
        explorer(whole, chosen, names, labels, described, cv, fitted),
        *_search(path, cv, known, names),
        f"<h2>How it got there{html.escape(at) if path is None else ''}</h2>",
        *_convergence(result if path is None else path, tol),
        f"<h2>The answer{html.escape(at)}</h2>",
        *_structure(known),
        _support(coef, names, labels, standardised),
        *([_points(path)] if path is not None else []),
        f"<footer>fenchel {__version__}. This page needs no network.</footer>",
    ]
    return page(title, parts, _OWN + style(), script())


def _all_points(path: Path | None, result: Result, tol: float, alpha: float | None) -> tuple[Path, int]:
    """The path, or one of a single point, and the place of the answer on it."""
    from ..models.paths import Path

    if path is None:
        return Path(np.array([np.nan if alpha is None else alpha]), [result], tol), 0
    return path, next((k for k, one in enumerate(path.results) if one is result), len(path) - 1)


class _Known:
    """The answer and its structure; `kept` are the coefficients that it describes."""

    def __init__(
        self,
        coef: Array,
        kept: Array,
        names: Names,
        labels: list[str] | None,
        groups: Any,
        tree: Any,
        graph: Any,
        grid: Any,
    ) -> None:
        self.coef, self.kept, self.names, self.labels = coef, kept, names, labels
        self.groups, self.graph, self.grid = groups if tree is None else tree.groups(), graph, grid
        self.nodes = tree is not None
        self.whole = kept.shape == coef.shape


def _verdict(result: Result, tol: float) -> str:
    from ..solver.result import Status

    good = result.status is Status.CONVERGED
    badge = f'<span class="{"yes" if good else "no"}">{html.escape(str(result.status))}</span>'
    if not result.certified:
        return (
            f"{badge} Nothing is proven about this answer: {html.escape(result.reason or 'no certificate was made')}."
        )
    share = f"{result.relative_gap:.1e}"
    goal = "" if good else f"; the goal was {tol:g}"
    return f"{badge} Proven: no other coefficients lower the objective by more than {share} of its value{goal}."


def _certificate(result: Result, tol: float, fitted: Fitted | None, chosen: int) -> str:
    rows = [("objective of this answer", f"{result.primal:.10g}")]
    if result.certified:
        rows += [
            ("lowest possible objective, at least", f"{result.dual:.10g}"),
            ("gap between the two", f"{result.gap:.3e}"),
        ]
        rows += [("relative gap", f"{result.relative_gap:.3e}")]
    rows += [("goal", f"{tol:g}"), ("epochs", f"{result.epochs:,}"), ("seconds", f"{result.seconds:.3f}")]
    if result.reason:
        rows.append(("last certificate", result.reason))
    if fitted is not None:
        name, quality = fitted.quality
        seen = len(fitted.target)
        some = "the rows fitted" if seen == fitted.rows else f"{seen:,} of the {fitted.rows:,} rows fitted"
        rows.append((f"{name} on {some}", f"{quality[chosen]:.4g}"))
    return _pairs(rows)


def _search(path: Path | None, cv: CrossValidation | None, known: _Known, names: Names) -> Iterator[str]:
    """Pictures of cross-validation and of the path."""
    from .. import plotting

    if cv is None and path is None:
        return
    yield "<noscript>"  # with scripts, what can be explored shows the same
    if cv is not None:
        yield "<h2>Cross-validation</h2>"
        curve = picture(lambda ax: plotting.cv_curve(cv, ax=ax), (6.2, 3.9))
        yield embed(curve, "svg", "Loss of held-out rows for every alpha; the band is one standard error.")
    if path is not None:
        yield "<h2>Path</h2><div class=pair>"
        groups = known.groups if known.whole and known.groups is not None and not known.nodes else None
        kind = "png" if path.coefs.size > HEAVY else "svg"
        lines = picture(
            lambda ax: plotting.path(path, groups=groups, names=names, labels=known.labels, ax=ax), (5.2, 3.8), kind
        )
        yield embed(lines, kind, "Coefficients as the penalty grows weaker.")
        if groups is not None:
            norms = picture(lambda ax: plotting.group_norms(path, groups, ax=ax), (5.2, 3.8))
            yield embed(norms, "svg", "Norms of the groups as the penalty grows weaker.")
        yield "</div>"
    yield "</noscript>"


def _convergence(found: Result | Path, tol: float) -> Iterator[str]:
    """The one picture of convergence: all certificates of the answer, or of every alpha."""
    from .. import plotting

    if not all(len(one.history) for one in getattr(found, "results", [found])):
        yield "<p>No certificate was made on the way.</p>"
        return
    content = picture(lambda ax: plotting.convergence(found, tol=tol, ax=ax), (6.2, 3.7))
    yield embed(content, "svg", "The certified relative gap, certificate by certificate.")


def _structure(known: _Known) -> Iterator[str]:
    """Pictures and tables of groups, grids and graphs."""
    from .. import plotting

    kept = known.kept
    if known.groups is not None:
        shown = min(max(int(np.count_nonzero([kept[:, group].any() for group in known.groups])), 3), 15)
        bars = picture(lambda ax: plotting.group_norms(kept, known.groups, ax=ax), (5.2, 1.2 + 0.25 * shown))
        noun = "nodes" if known.nodes else "groups"
        table = active_groups(kept, known.groups)
        cells = [[name, row["size"], row["nonzero"], row["norm"]] for name, row in table.iterrows()]
        caption = f"{len(table):,} of {len(known.groups):,} {noun} are not zero"
        yield "<div class=pair>" + embed(bars, "svg", f"The norms of the largest {noun}.")
        yield _table(caption, [noun[:-1], "features", "not zero", "norm"], cells, largest=3) + "</div>"
    if known.grid is not None and sum(size > 1 for size in known.grid.shape) <= 3:
        kind = "png" if kept.size > HEAVY // 4 else "svg"
        labels = known.labels or ["weights"]
        image = picture(lambda ax: plotting.weights_on_grid(kept, known.grid, labels=labels, ax=ax), (5.6, 4.2), kind)
        yield embed(image, kind, "The coefficients where their features stand.")
    if known.graph is not None:
        for k, label in enumerate((known.labels or [""])[:6]):
            kind = "png" if len(known.graph) > HEAVY // 10 else "svg"
            drawn = picture(
                lambda ax, k=k: plotting.weights_on_graph(kept, known.graph, names=known.names, output=k, ax=ax),
                (6.2, 4.6),
                kind,
            )
            yield embed(drawn, kind, f"The coefficients on their graph{': ' + label if label else ''}.")
    joined = known.graph if known.graph is not None else known.grid
    if joined is not None and kept.shape[1] <= HEAVY:
        yield _segments(known, joined)


def _segments(known: _Known, joined: Any) -> str:
    found = segments(known.kept, joined, names=known.names)
    found = found[(found["size"] > 1) & (found["value"] != 0)].sort_values("size", ascending=False, kind="stable")
    head = ["value", "size", "features"]
    cells = [[row["value"], row["size"], listed(row["features"])] for _, row in found.iterrows()]
    if known.labels is not None:
        head = ["output", *head]
        cells = [[known.labels[k], *row] for k, row in zip(found["output"], cells, strict=True)]
    return _table(f"{len(cells):,} regions of several features with one value that is not zero", head, cells)


def _support(coef: Array, names: Names, labels: list[str] | None, standardised: bool) -> str:
    output, feature = np.nonzero(coef)
    value = coef[output, feature]
    order = np.argsort(-np.abs(value), kind="stable")
    cells = [[names[feature[k]], float(value[k])] for k in order[:_MOST]]
    head = ["feature", "coefficient"]
    if labels is not None:
        head = ["output", *head]
        cells = [[labels[output[k]], *row] for k, row in zip(order, cells, strict=False)]
    unit = ", per standard deviation of the column" if standardised else ""
    caption = f"{value.size:,} of {coef.size:,} coefficients are not zero{unit}"
    return _table(caption, head, cells, total=value.size, largest=len(head) - 1)


def _points(path: Path) -> str:
    """The path as a table, at most 25 of its points."""
    some = np.unique(np.linspace(0, len(path) - 1, 25).round().astype(int))
    cells: list[list[float | str]] = [
        [f"{path.alphas[k]:.4g}", f"{path.primals[k]:.8g}", f"{path.relative_gaps[k]:.1e}", int(path.nonzeros[k]),
         int(path.epochs[k]), str(path.results[k].status)] for k in some
    ]  # fmt: skip
    caption = (
        f"{len(some)} of the {len(path)} points of the path" if len(some) < len(path) else "The points of the path"
    )
    return _table(caption, ["alpha", "objective", "relative gap", "not zero", "epochs", "status"], cells)
