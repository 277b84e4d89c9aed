"""The command `fenchel demo`: the paper's artificial problem, solved and drawn."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

from ..foundation.files import write_whole
from ..foundation.numerics import TINY
from .common import certificate_rows, check_output, check_picture, finish, live_bar, make_console, print_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .._validate import Array
    from ..solver.result import Result


try:
    import typer
except ImportError:  # cli.main() says what to install
    typer = None  # type: ignore[assignment]  # main() says what to install


def demo(
    n: Annotated[int, typer.Option(help="Rows of data.", min=2)] = 5120,
    side: Annotated[int, typer.Option(help="The weights form a SIDE x SIDE matrix.", min=2)] = 32,
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach.")] = 1e-6,
    preset: Annotated[str, typer.Option(help="The solver's parameters: default, paper or theory.")] = "default",
    output: Annotated[str, typer.Option("--output", "-o", help="The picture to write.")] = "fenchel-demo.png",
    seed: Annotated[int, typer.Option(help="Seed of the data and of the solver.")] = 0,
    max_epochs: Annotated[int, typer.Option(help="Passes over the data, at most.")] = 10_000,
) -> None:
    """Solve the paper's artificial problem and draw the answer.

    Only the first column of the true weight matrix is not zero; the penalty knows that rows and columns
    are groups, and not which of them count.
    """
    from ..datasets import artificial, artificial_problem_of
    from ..solver import solve

    check_output(output)
    check_picture(output)
    X, y, truth = artificial(n, side, seed=seed)
    problem = artificial_problem_of(X, y, side)
    console = make_console()
    console.print(
        f"[bold]Overlapping group lasso[/]: {n:,} rows, {side * side:,} features in {2 * side} groups "
        f"(rows and columns of a {side} x {side} matrix)", soft_wrap=True, highlight=False,
    )  # fmt: skip
    with live_bar(tol, max_epochs, True) as show:
        result = solve(problem, tol=tol, max_epochs=max_epochs, random_state=seed, preset=preset, callback=show)
    matrix, true_matrix = (w.reshape(side, side, order="F") for w in (result.coef, truth))
    print_table(console, "Certificate", certificate_rows(result))
    print_table(console, "What was recovered", _recovery_rows(matrix, true_matrix))
    _draw_demo(output, result, tol, matrix, true_matrix)
    console.print(f"picture: {output}", soft_wrap=True, highlight=False)
    finish(result, tol)


def _recovery_rows(matrix: Array, truth: Array) -> list[tuple[str, str]]:
    """Which column of the estimate carries the weight, and how close it is to the true one."""
    import numpy as np

    energy = (matrix**2).sum(axis=0)
    total = max(float(energy.sum()), TINY)
    order = np.argsort(energy)[::-1]
    best = int(order[0])
    correlation = np.corrcoef(matrix[:, best], truth[:, 0])[0, 1] if energy[best] > 0 else 0.0
    right = "the true one" if best == 0 else "not the true one, which is column 1"
    return [
        ("column with most weight", f"{best + 1} of {matrix.shape[1]} ({right})"),
        ("its share of |W|\u00b2", f"{energy[best] / total:.1%}"),
        ("next largest share", f"{energy[order[1]] / total:.2%} (column {order[1] + 1})"),
        ("correlation with the true column", f"{correlation:.5f} (Pearson, over its {len(truth)} entries)"),
        ("entries not zero", f"{np.count_nonzero(matrix):,} of {matrix.size:,}"),
    ]


def _draw_demo(output: str, result: Result, tol: float, matrix: Array, truth: Array) -> None:
    """Convergence beside the weights and the truth, in one picture, whole or not at all."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13.6, 5.6), dpi=150, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    room: Any = figure.get_layout_engine()
    room.set(w_pad=0.1, h_pad=0.1)
    parts: Any = figure.subfigures(1, 2, width_ratios=(1.0, 1.62))
    curves, images = parts
    top, bottom = curves.subplots(2, 1, sharex=True, height_ratios=(1.3, 1.0))
    _draw_gap(top, result, tol)
    _draw_bounds(bottom, result)
    _draw_weights(images, matrix, truth)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=os.path.splitext(output)[1].lower().lstrip("."))
    write_whole(output, buffer.getvalue())


_BLUE, _RED, GREY = "#2a5caa", "#c0392b", "#66707a"


def _draw_gap(axes: Axes, result: Result, tol: float) -> None:
    from ..plotting import convergence

    convergence(result, tol=tol, ax=axes)
    axes.set_xlabel("")  # the panel below has it


def _draw_bounds(axes: Axes, result: Result) -> None:
    import numpy as np
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    from ..plotting.base import tidy, titled

    history = result.history
    positive = history.dual[history.dual > 0]
    floor = 0.8 * min(positive.min(initial=np.inf), history.primal.min())
    dual = np.maximum(history.dual, 1e-3 * floor)  # a log axis has no place for the first bound, which is zero
    axes.fill_between(history.epoch, dual, history.primal, color=_BLUE, alpha=0.12, linewidth=0)
    axes.semilogy(history.epoch, history.primal, color=_RED, linewidth=1.8, label="upper bound (primal)")
    axes.semilogy(history.epoch, dual, color=_BLUE, linewidth=1.8, label="lower bound (dual)")
    axes.set_ylim(bottom=floor)
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("objective")
    axes.set_xlabel("epochs (passes over the data)")
    axes.legend(frameon=False, loc="upper right", fontsize=9)
    titled(axes, "The optimum lies between the bounds", f"objective {result.primal:.6g}")
    tidy(axes)


def _draw_weights(figure: Figure, matrix: Array, truth: Array) -> None:
    import numpy as np

    from ..plotting.base import titled

    panels = figure.subplots(1, 2, sharey=True)
    # a separator's scale is free, so both pictures are brought to the same norm
    scaled = [w / max(float(np.linalg.norm(w)), TINY) for w in (matrix, truth)]
    largest = max(float(np.abs(w).max()) for w in scaled)
    shares = [float((w[:, 0] ** 2).sum()) for w in scaled]
    for axes, weights, title, share in zip(panels, scaled, ("Estimated weights", "True weights"), shares, strict=True):
        rows, columns = weights.shape
        image = axes.imshow(weights, cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest",
                            extent=(0.5, columns + 0.5, rows + 0.5, 0.5))  # fmt: skip
        titled(axes, title, f"column 1 holds {share:.1%} of the squared norm")
        axes.set_xlabel("column")
        axes.set_xticks(_ticks(columns))
        axes.set_yticks(_ticks(rows))
        axes.tick_params(length=2.5)
        for spine in axes.spines.values():
            spine.set_color("#b8bec4")
    panels[0].set_ylabel("row")
    bar = figure.colorbar(image, ax=list(panels), location="bottom", shrink=0.6, pad=0.03, aspect=42)
    bar.set_label("weight (both matrices scaled to norm 1)")
    bar.outline.set_visible(False)


def _ticks(count: int) -> list[int]:
    step = max(1, round(count / 4))
    return sorted({1, *range(step, count + 1, step)})
