"""The command `fenchel inspect`: what a model file holds, as tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from ..foundation.words import listed
from .common import make_console, print_table

if TYPE_CHECKING:
    from ..models.saved_model import Model

try:
    import typer
except ImportError:  # cli.main() says what to install
    typer = None  # type: ignore[assignment]  # main() says what to install


def inspect(
    model: Annotated[str, typer.Argument(help="A model that `fenchel fit`, `fenchel cv` or `model.save` wrote.")],
    all_rows: Annotated[
        bool, typer.Option("--all", help="Every coefficient that is not zero; the 20 largest by default.")
    ] = False,
) -> None:
    """Print a model: what was fitted, how far it is proven, and its coefficients, the largest first."""
    from ..models import Model

    fitted = Model.load(model)
    console = make_console()
    print_table(console, "Model", [("file", model), *_about(fitted)])
    print_table(console, "Certificate", _proof(fitted.certificate))
    _print_coefficients(console, fitted, None if all_rows else 20)


def _about(model: Model) -> list[tuple[str, str]]:
    params = ", ".join(f"{name}={value}" for name, value in model.loss_params.items())
    rows = [("loss", f"{model.loss}{f' ({params})' if params else ''}"), ("penalty", model.penalty),
            ("alpha", f"{model.alpha:.6g}")]  # fmt: skip
    for name, value in (("target", model.target), ("labels", model.classes), ("tasks", model.tasks)):
        if value is not None:
            rows.append((name, listed(value if isinstance(value, list) else [value])))
    if model.offset is not None:
        rows.append(("offset", model.offset))
    if model.scaling is not None:
        rows.append(("columns", "standardised for the fit; these coefficients are for the data as it stands"))
    if model.coding is not None and model.coding["levels"]:
        words = [f"{name} ({len(levels)})" for name, levels in model.coding["levels"].items()]
        rows.append(("columns of words", listed(words)))
    if model.coding is not None and model.coding["means"]:
        rows.append(("missing numbers", "the mean of their column in the rows of the fit"))
    coef = np.atleast_2d(model.coef)
    rows.append(("features", f"{np.count_nonzero(coef.any(axis=0)):,} of {coef.shape[1]:,} not zero"))
    if len(coef) == 1:
        rows.append(("intercept", f"{float(np.ravel(model.intercept)[0]):.6g}"))
    return [*rows, ("written by", f"fenchel {model.version}")]


def _proof(certificate: dict[str, Any]) -> list[tuple[str, str]]:
    names = {"status": "status", "primal": "primal (upper bound)", "dual": "dual (lower bound)", "gap": "gap",
             "relative_gap": "relative gap", "tol": "asked for", "epochs": "epochs"}  # fmt: skip
    rows = []
    for key, name in names.items():
        value = certificate.get(key)
        if value is not None and not (key in ("dual", "gap", "relative_gap") and not certificate.get("certified")):
            rows.append((name, f"{value:.10g}" if isinstance(value, float) else str(value)))
    if not certificate.get("certified"):
        rows.append(("proven", f"nothing: {certificate.get('reason') or 'no certificate'}"))
    return rows


def _print_coefficients(console: Any, model: Model, most: int | None) -> None:
    """A table with a row per feature and a column per output."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    coef = np.atleast_2d(model.coef)
    alive = np.flatnonzero(coef.any(axis=0))
    order = alive[np.argsort(-np.abs(coef[:, alive]).max(axis=0), kind="stable")][:most]
    labels = _labels(model, len(coef))
    table = Table(title="Coefficients", title_justify="left", title_style="bold", box=box.SIMPLE_HEAD)
    table.add_column("feature", overflow="fold")
    for label in labels:
        table.add_column(escape(label), justify="right")
    if len(coef) > 1:
        table.add_row("(intercept)", *(f"{value:.6g}" for value in np.ravel(model.intercept)), style="dim")
    for j in order:
        name = str(j) if model.features is None else model.features[j]
        table.add_row(escape(name), *(f"{value:.6g}" for value in coef[:, j]))
    console.print(table)
    if len(order) < len(alive):
        console.print(f"{len(alive) - len(order):,} smaller ones are not shown; --all shows them", highlight=False)


def _labels(model: Model, outputs: int) -> list[str]:
    if outputs == 1:
        return ["coefficient"]
    for names in (model.tasks, model.classes, model.target):
        if isinstance(names, list) and len(names) == outputs:
            return [str(name) for name in names]
    return [f"output {k}" for k in range(outputs)]
