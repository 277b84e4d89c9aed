"""The command `fenchel`: demo, fit, predict.

Exit codes: 0 when an answer was written (a warning tells if its gap is larger than asked), 2 for an
error (one line on stderr, and nothing is written), 130 after Ctrl-C. Ctrl-C during a fit keeps the best
answer: the model is written with its status and its gap, and the exit code still says 130.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import functools
import os
import sys
from typing import Annotated

try:
    import rich  # noqa: F401
    import typer
except ImportError:  # main() says what to install
    typer = None

from . import __version__

_TINY = 1e-300


# -- entry ------------------------------------------------------------------------------------------


def main() -> None:
    """Run the command line."""
    if typer is None:
        print("fenchel: error: the command line needs typer and rich: pip install 'fenchel[cli]'", file=sys.stderr)
        sys.exit(2)
    make_app()(prog_name="fenchel")


def make_app():
    """The typer application."""
    app = typer.Typer(
        help="Linear models with structured sparsity, every answer with a certified duality gap.",
        no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown",
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    from .cli_reproduce import reproduce

    app.callback()(_global)
    for command in (demo, fit, predict, reproduce):
        app.command()(_guarded(command))
    return app


def _guarded(command):
    """The command, with expected errors as one line on stderr and exit code 2."""

    @functools.wraps(command)
    def run(*args, **kwargs):
        try:
            return command(*args, **kwargs)
        except BrokenPipeError:
            raise
        except (ValueError, OSError, ImportError, MemoryError) as error:
            message = " ".join(str(error).split()) or type(error).__name__
            print(f"fenchel: error: {message}", file=sys.stderr)
            raise typer.Exit(2) from None
        except KeyboardInterrupt:
            print("fenchel: interrupted; nothing was written", file=sys.stderr)
            raise typer.Exit(130) from None

    return run


def _show_version(wanted: bool):
    if wanted:
        print(f"fenchel {__version__}")
        raise typer.Exit


def _global(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
):
    pass


# -- demo -------------------------------------------------------------------------------------------


def demo(
    n: Annotated[int, typer.Option(help="Rows of data.", min=2)] = 5120,
    side: Annotated[int, typer.Option(help="The weights form a SIDE x SIDE matrix.", min=2)] = 32,
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach.")] = 1e-6,
    preset: Annotated[str, typer.Option(help="The solver's parameters: default, paper or theory.")] = "default",
    output: Annotated[str, typer.Option("--output", "-o", help="The picture to write.")] = "fenchel-demo.png",
    seed: Annotated[int, typer.Option(help="Seed of the data and of the solver.")] = 0,
    max_epochs: Annotated[int, typer.Option(help="Passes over the data, at most.")] = 1000,
):
    """Solve the paper's artificial problem and draw the answer.

    Only the first column of the true weight matrix is not zero; the penalty knows that rows and columns
    are groups, and not which of them count.
    """
    from . import solve
    from .datasets import artificial, artificial_problem_of

    _check_output(output)
    _check_picture(output)
    X, y, truth = artificial(n, side, seed=seed)
    problem = artificial_problem_of(X, y, side)
    console = _console()
    console.print(
        f"[bold]Overlapping group lasso[/]: {n:,} rows, {side * side:,} features in {2 * side} groups "
        f"(rows and columns of a {side} x {side} matrix)", soft_wrap=True, highlight=False,
    )  # fmt: skip
    with _live_bar(tol, max_epochs, True) as show:
        result = solve(problem, tol=tol, max_epochs=max_epochs, random_state=seed, preset=preset, callback=show)
    matrix, true_matrix = (w.reshape(side, side, order="F") for w in (result.coef, truth))
    _print_table(console, "Certificate", _certificate_rows(result))
    _print_table(console, "What was recovered", _recovery_rows(matrix, true_matrix))
    _draw_demo(output, result, tol, matrix, true_matrix)
    console.print(f"picture: {output}", soft_wrap=True, highlight=False)
    _finish(result, tol)


def _recovery_rows(matrix, truth):
    """Which column of the estimate carries the weight, and how close it is to the true one."""
    import numpy as np

    energy = (matrix**2).sum(axis=0)
    total = max(float(energy.sum()), _TINY)
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


def _check_picture(output):
    """Fail before the work, not after it, if the picture cannot be drawn."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise ImportError("the picture needs matplotlib: pip install 'fenchel[plot]'") from None
    kinds = FigureCanvasAgg.get_supported_filetypes()
    if os.path.splitext(output)[1].lower().lstrip(".") not in kinds:
        raise ValueError(f"output is {output!r}; its extension must be one of {', '.join(sorted(kinds))}")


def _draw_demo(output, result, tol, matrix, truth):
    """Convergence beside the weights and the truth, in one picture, whole or not at all."""
    import io

    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from .result import write_whole

    figure = Figure(figsize=(13.6, 5.6), dpi=150, facecolor="white", layout="constrained")
    FigureCanvasAgg(figure)
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    curves, images = figure.subfigures(1, 2, width_ratios=(1.0, 1.62))
    top, bottom = curves.subplots(2, 1, sharex=True, height_ratios=(1.3, 1.0))
    _draw_gap(top, result, tol)
    _draw_bounds(bottom, result)
    _draw_weights(images, matrix, truth)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=os.path.splitext(output)[1].lower().lstrip("."))
    write_whole(output, buffer.getvalue())


_BLUE, _RED, _GREY = "#2a5caa", "#c0392b", "#6b7680"


def _draw_gap(axes, result, tol):
    import numpy as np

    history = result.history
    gap = np.where(history.relative_gap > 0, history.relative_gap, np.nan)
    axes.semilogy(history.epoch, gap, color=_BLUE, linewidth=2.0, marker="o", markersize=3.2)
    if tol > 0:
        axes.axhline(tol, color=_GREY, linewidth=1.0, linestyle=(0, (4, 3)))
        axes.annotate(f"goal {tol:.0e}", (0.01, tol), xycoords=("axes fraction", "data"), xytext=(0, 4),
                      textcoords="offset points", va="bottom", color=_GREY, fontsize=9)  # fmt: skip
    axes.set_ylabel("relative duality gap")
    _title(axes, "Certified convergence", f"{result.status}: {result.epochs} epochs, {result.seconds:.2f} s")
    _tidy(axes)


def _draw_bounds(axes, result):
    import numpy as np
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

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
    _title(axes, "The optimum lies between the bounds", f"objective {result.primal:.6g}")
    _tidy(axes)


def _title(axes, title, subtitle):
    axes.set_title(title, loc="left", fontsize=12.5, color="#1c2733", pad=20)
    axes.annotate(subtitle, (0, 1), xycoords="axes fraction", xytext=(0, 6), textcoords="offset points", va="bottom",
                  color=_GREY, fontsize=9.5)  # fmt: skip


def _tidy(axes):
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    axes.grid(True, which="major", color="#e6e8ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.015)


def _draw_weights(figure, matrix, truth):
    import numpy as np

    panels = figure.subplots(1, 2, sharey=True)
    # a separator's scale is free, so both pictures are brought to the same norm
    scaled = [w / max(np.linalg.norm(w), _TINY) for w in (matrix, truth)]
    largest = max(float(np.abs(w).max()) for w in scaled)
    shares = [float((w[:, 0] ** 2).sum()) for w in scaled]
    for axes, weights, title, share in zip(panels, scaled, ("Estimated weights", "True weights"), shares, strict=True):
        rows, columns = weights.shape
        image = axes.imshow(weights, cmap="RdBu_r", vmin=-largest, vmax=largest, interpolation="nearest",
                            extent=(0.5, columns + 0.5, rows + 0.5, 0.5))  # fmt: skip
        _title(axes, title, f"column 1 holds {share:.1%} of the squared norm")
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


def _ticks(count):
    step = max(1, round(count / 4))
    return sorted({1, *range(step, count + 1, step)})


# -- fit --------------------------------------------------------------------------------------------


def fit(
    file: Annotated[str, typer.Argument(help="Data: LIBSVM, CSV, TSV, Parquet or npz.")],
    target: Annotated[
        str | None,
        typer.Option(
            help="Name or position (from 0) of the target column; the last by default.", rich_help_panel="Data"
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(
            help="Sample weights: a column of FILE, or a file with one number per line.", rich_help_panel="Data"
        ),
    ] = None,
    drop: Annotated[
        list[str] | None, typer.Option(help="Leave a column out; may be repeated.", rich_help_panel="Data")
    ] = None,
    header: Annotated[
        bool | None,
        typer.Option(
            "--header/--no-header",
            help="Whether a CSV begins with names; its first lines tell by default.",
            rich_help_panel="Data",
        ),
    ] = None,
    loss: Annotated[
        str | None,
        typer.Option(
            help="smoothed-hinge, hinge, squared-hinge, logistic; squared, huber, quantile, epsilon-insensitive, "
            "poisson. By default logistic for two labels, else squared.",
            rich_help_panel="Loss",
        ),
    ] = None,
    smoothing: Annotated[
        float | None, typer.Option(help="Width of the smoothed hinge's quadratic piece.", rich_help_panel="Loss")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Where Huber's loss becomes linear.", rich_help_panel="Loss")
    ] = None,
    quantile: Annotated[
        float | None, typer.Option(help="Quantile of the quantile loss.", rich_help_panel="Loss")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option(help="Half width of the epsilon-insensitive tube.", rich_help_panel="Loss")
    ] = None,
    intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Fit an unpenalised intercept.", rich_help_panel="Loss")
    ] = True,
    penalty: Annotated[
        str,
        typer.Option(
            help="l1, ridge, elastic-net; group, group-linf (--groups); graph (--edges), fused, trend (--order); "
            "tv, trace (--shape); non-negative, box (--lower, --upper).",
            rich_help_panel="Penalty",
        ),
    ] = "l1",
    alpha: Annotated[float | None, typer.Option(help="Strength of the penalty.", rich_help_panel="Penalty")] = None,
    alpha_ratio: Annotated[
        float | None,
        typer.Option(
            help="The same as a share of the alpha from which on the answer is zero; 0.1 if neither is given.",
            rich_help_panel="Penalty",
        ),
    ] = None,
    l1: Annotated[
        float | None,
        typer.Option(
            help="Weight of an l1 norm beside the penalty; for l1, elastic-net, graph and fused 1 by default, else 0.",
            rich_help_panel="Penalty",
        ),
    ] = None,
    ridge: Annotated[
        float | None,
        typer.Option(
            help="Weight of half the sum of squares beside the penalty; for ridge and elastic-net 1 by default, "
            "else 0.",
            rich_help_panel="Penalty",
        ),
    ] = None,
    lower: Annotated[
        float | None, typer.Option(help="Lower bound on every coefficient.", rich_help_panel="Penalty")
    ] = None,
    upper: Annotated[
        float | None, typer.Option(help="Upper bound on every coefficient.", rich_help_panel="Penalty")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="File of groups: JSON, lists of features by name, or CSV lines group,feature.",
            rich_help_panel="Structure",
        ),
    ] = None,
    edges: Annotated[
        str | None,
        typer.Option(
            help="File of edges: JSON list of pairs, or CSV lines i,j; a third entry is a weight.",
            rich_help_panel="Structure",
        ),
    ] = None,
    shape: Annotated[
        str | None,
        typer.Option(help="HxW: the grid or matrix that the features form, row by row.", rich_help_panel="Structure"),
    ] = None,
    order: Annotated[
        int | None, typer.Option(help="Order of the differences, 2 by default.", rich_help_panel="Structure")
    ] = None,
    isotropic: Annotated[
        bool,
        typer.Option("--isotropic/--anisotropic", help="Which total variation.", rich_help_panel="Structure"),
    ] = True,
    tol: Annotated[float, typer.Option(help="Relative duality gap to reach.", rich_help_panel="Solver")] = 1e-6,
    max_epochs: Annotated[int, typer.Option(help="Passes over the data, at most.", rich_help_panel="Solver")] = 10_000,
    time_limit: Annotated[float | None, typer.Option(help="Seconds, at most.", rich_help_panel="Solver")] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same bits.", rich_help_panel="Solver")] = 0,
    output: Annotated[str, typer.Option("--output", "-o", help="The model to write.")] = "model.json",
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print warnings and errors only.")] = False,
):
    """Fit a model to a data file, certify it, and write it as JSON.

    Features are numbered from 0, the target not counted (in a LIBSVM file feature 1 is number 0). Ctrl-C
    stops the solver: the best answer so far is written with its gap, and the exit code is 130.
    """
    from . import solve
    from .files import read_data
    from .model import Model
    from .problem import Problem

    _check_output(output)
    data = read_data(file, target=target, weights=weights, drop=drop or (), header=header)
    params = {"smoothing": smoothing, "delta": delta, "quantile": quantile, "epsilon": epsilon}
    loss_function, y, classes = _make_loss(loss, params, data.y, file)
    structure = _Structure(
        data.X.shape[1], data.features if data.named else None, groups, edges, shape, order, isotropic, l1, ridge,
        lower, upper,
    )  # fmt: skip
    problem = Problem(
        data.X, y, loss=loss_function, penalty=_make_penalty(penalty, structure), alpha=1.0,
        sample_weight=data.weights, fit_intercept=intercept,
    )  # fmt: skip
    strength, largest = _choose_alpha(problem, alpha, alpha_ratio, penalty)
    problem = problem.with_alpha(strength)
    with _live_bar(tol, max_epochs, not quiet) as show:
        result = solve(problem, tol=tol, max_epochs=max_epochs, time_limit=time_limit, random_state=seed, callback=show)
    model = Model.from_result(
        result, problem, tol=tol, features=data.features, classes=classes, target=data.target,
        first_index=data.first_index,
    )  # fmt: skip
    model.save(output)
    if not quiet:
        console = _console()
        _print_table(console, "Model", _model_rows(problem, model, data, largest, structure))
        _print_table(console, "Certificate", _certificate_rows(result))
        console.print(f"model: {output}", soft_wrap=True, highlight=False)
    _finish(result, tol)


@dataclasses.dataclass
class _Structure:
    """What the options say about the features."""

    p: int
    features: list[str] | None
    groups_file: str | None
    edges_file: str | None
    shape_text: str | None
    order: int | None
    isotropic: bool
    l1: float | None
    ridge: float | None
    lower: float | None
    upper: float | None

    @functools.cached_property
    def groups(self):
        from .files import read_groups

        return read_groups(_needed("--groups", self.groups_file), self.p, self.features)[0]

    def incidence(self):
        from .files import read_edges
        from .maps import Incidence

        edges, weights = read_edges(_needed("--edges", self.edges_file), self.p, self.features)
        return Incidence(edges, self.p, weights)

    @property
    def shape(self):
        text = _needed("--shape", self.shape_text)
        try:
            height, width = (int(part) for part in text.lower().split("x"))
        except ValueError:
            raise ValueError(f"--shape is {text!r}; write it as HxW, e.g. 32x32") from None
        if height < 1 or width < 1 or height * width != self.p:
            raise ValueError(f"--shape is {text}, which is {height * width} features, but the data has {self.p}")
        return height, width


def _needed(option, value):
    if value is None:
        raise ValueError(f"this penalty needs {option}")
    return value


def _group(structure):
    from .penalties import GroupL2

    return GroupL2(structure.groups)


def _group_linf(structure):
    from .penalties import GroupLinf

    return GroupLinf(structure.groups)


def _graph(structure):
    from .penalties import L1

    return L1() @ structure.incidence()


def _fused(structure):
    from .maps import Difference
    from .penalties import L1

    return L1() @ Difference(structure.p)


def _trend(structure):
    from .maps import Difference
    from .penalties import L1

    order = 2 if structure.order is None else structure.order
    if not 1 <= order < structure.p:
        raise ValueError(f"--order is {order}; it must lie between 1 and {structure.p - 1}")
    return L1() @ Difference(structure.p, order)


def _tv(structure):
    from .maps import Gradient
    from .penalties import L1, GroupL2

    gradient = Gradient(structure.shape)
    return (GroupL2(gradient.cells, weights=[1.0] * len(gradient.cells)) if structure.isotropic else L1()) @ gradient


def _trace(structure):
    from .penalties import TraceNorm

    return TraceNorm(structure.shape)


def _non_negative(structure):
    from .penalties import NonNegative

    return NonNegative()


def _box(structure):
    if structure.lower is None and structure.upper is None:
        raise ValueError("the penalty box needs --lower, --upper or both")


# the penalties that read each option of structure
_USERS = {
    "groups": ("group", "group-linf"),
    "edges": ("graph",),
    "shape": ("tv", "trace"),
    "order": ("trend",),
}
# how each penalty is made, and the weights that --l1 and --ridge have without being given
_PENALTIES = {
    "l1": (None, 1.0, 0.0),
    "ridge": (None, 0.0, 1.0),
    "elastic-net": (None, 1.0, 1.0),
    "group": (_group, 0.0, 0.0),
    "group-linf": (_group_linf, 0.0, 0.0),
    "graph": (_graph, 1.0, 0.0),
    "fused": (_fused, 1.0, 0.0),
    "trend": (_trend, 0.0, 0.0),
    "tv": (_tv, 0.0, 0.0),
    "trace": (_trace, 0.0, 0.0),
    "non-negative": (_non_negative, 0.0, 0.0),
    "box": (_box, 0.0, 0.0),
}


def _make_penalty(name, structure):
    """The penalty of that name, with --l1, --ridge and bounds added."""
    from .penalties import L1, Box, Ridge

    if name not in _PENALTIES:
        raise ValueError(f"--penalty is {name!r}; {_hint(name, _PENALTIES)}")
    given = {
        "groups": structure.groups_file, "edges": structure.edges_file, "shape": structure.shape_text,
        "order": structure.order,
    }  # fmt: skip
    for option, value in given.items():
        if value is not None and name not in _USERS[option]:
            raise ValueError(f"--{option} goes with the penalty {' or '.join(_USERS[option])}, not with {name!r}")
    make, l1, ridge = _PENALTIES[name]
    l1 = l1 if structure.l1 is None else structure.l1
    ridge = ridge if structure.ridge is None else structure.ridge
    parts = [None if make is None else make(structure)]
    parts.append(_times(l1, L1()))
    parts.append(_times(ridge, Ridge()))
    if structure.lower is not None or structure.upper is not None:
        infinity = float("inf")
        parts.append(
            Box(
                -infinity if structure.lower is None else structure.lower,
                infinity if structure.upper is None else structure.upper,
            )
        )
    parts = [part for part in parts if part is not None]
    return functools.reduce(lambda a, b: a + b, parts) if parts else None


def _times(weight, penalty):
    if weight == 0:
        return None
    return penalty if weight == 1 else weight * penalty


def _make_loss(name, params, y, file):
    """The loss, the targets it takes, and the two labels of a classification."""
    import numpy as np

    from .losses import LOSSES
    from .model import encode_labels

    labels = len(np.unique(y))
    if name is None:
        name = "logistic" if labels <= 2 or not np.issubdtype(y.dtype, np.number) else "squared"
    if name not in LOSSES:
        raise ValueError(f"--loss is {name!r}; {_hint(name, LOSSES)}")
    given = {key: value for key, value in params.items() if value is not None}
    takes = vars(LOSSES[name]())
    for key in given:
        if key not in takes:
            raise ValueError(f"--{key} does not go with the loss {name!r}")
    loss = LOSSES[name](**given)
    if not loss.classification:
        if not (np.issubdtype(y.dtype, np.number) or y.dtype == bool):
            raise ValueError(f"{file}: the target holds {str(y[0])!r}; the loss {name!r} takes numbers")
        return loss, y.astype(float), None
    try:
        encoded, classes = encode_labels(y)
    except ValueError as error:
        raise ValueError(f"{file}: {error}") from None
    return loss, encoded, classes


def _choose_alpha(problem, alpha, ratio, penalty):
    """alpha as given, or as a share of alpha_max; and alpha_max where it was computed."""
    import math

    from .penalties import Box, NonNegative
    from .problem import NoCertificate

    if alpha is not None and ratio is not None:
        raise ValueError("give --alpha or --alpha-ratio, not both")
    if alpha is not None:
        return alpha, None
    leaves = [] if problem.penalty is None else [leaf for _, leaf, _ in problem.penalty.terms()]
    if ratio is None and all(isinstance(leaf, (Box, NonNegative)) for leaf in leaves):
        return 1.0, None  # bounds have no strength
    try:
        largest = problem.alpha_max()
    except NoCertificate as why:
        raise ValueError(f"alpha_max could not be computed ({why}); give --alpha instead") from None
    if not (math.isfinite(largest) and largest > 0):
        raise ValueError(f"alpha_max is {largest:g} for the penalty {penalty!r} on this data; give --alpha instead")
    ratio = 0.1 if ratio is None else ratio
    if not (math.isfinite(ratio) and ratio >= 0):
        raise ValueError(f"--alpha-ratio is {ratio:g}; it must be finite and not negative")
    return ratio * largest, largest


def _model_rows(problem, model, data, largest, structure):
    import numpy as np

    rows = [("data", f"{problem.n:,} rows, {problem.p:,} features{' (sparse)' if problem.data.sparse else ''}")]
    rows.append(("loss", repr(problem.loss)))
    if model.classes is not None:
        rows.append(("labels", f"{model.classes[0]} is -1, {model.classes[1]} is +1"))
    rows.append(("penalty", model.penalty))
    share = "" if largest is None else f" ({problem.alpha / largest:.3g} of alpha_max)"
    rows.append(("alpha", f"{problem.alpha:.6g}{share}"))
    rows.append(("coefficients not zero", f"{np.count_nonzero(model.coef):,} of {problem.p:,}"))
    if structure.groups_file is not None:
        alive = sum(bool(np.any(model.coef[group])) for group in structure.groups)
        rows.append(("groups not zero", f"{alive:,} of {len(structure.groups):,}"))
    if problem.fit_intercept:
        rows.append(("intercept", f"{model.intercept:.6g}"))
    return rows


# -- predict ----------------------------------------------------------------------------------------


def predict(
    model: Annotated[str, typer.Argument(help="A model that `fenchel fit` wrote.")],
    file: Annotated[str, typer.Argument(help="Data: LIBSVM, CSV, TSV, Parquet or npz.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="A CSV file to write; standard output by default.")
    ] = None,
    decision: Annotated[bool, typer.Option("--decision", help="Add the scores X w + b.")] = False,
    target: Annotated[
        str | None, typer.Option(help="The column to compare with; the model's target, if FILE has it, by default.")
    ] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether a CSV begins with names; seen by default.")
    ] = None,
):
    """Predict with a model; with a target in the file, report accuracy or R^2 (on stderr).

    Columns are matched by name where there are names, else by position.
    """
    from .files import read_like
    from .model import Model
    from .result import write_whole

    fitted = Model.load(model)
    if output is not None:
        _check_output(output)
    data = read_like(
        file, n_features=len(fitted.coef), features=fitted.features, target=target or fitted.target,
        first_index=fitted.first_index, must_have_target=target is not None, header=header,
    )  # fmt: skip
    scores = fitted.decision(data.X)
    predicted = fitted.from_decision(scores)
    text = _predictions(predicted, scores if decision else None)
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_whole(output, text.encode())
        print(f"{len(predicted):,} predictions: {output}", file=sys.stderr)
    if data.y is not None:
        try:
            name, value = fitted.score(predicted, data.y)
        except ValueError as error:
            print(f"fenchel: no score for {file}: {error}", file=sys.stderr)
        else:
            print(f"{name} {value:.6g} on {len(predicted):,} rows of {file}", file=sys.stderr)


def _predictions(predicted, scores) -> str:
    import csv
    import io

    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    if scores is None:
        writer.writerow(["prediction"])
        writer.writerows([value] for value in predicted.tolist())
    else:
        writer.writerow(["prediction", "decision"])
        writer.writerows(zip(predicted.tolist(), scores.tolist(), strict=True))
    return buffer.getvalue()


# -- shared -----------------------------------------------------------------------------------------


def _check_output(output):
    """Fail before the work, not after it, if the file cannot be written."""
    folder = os.path.dirname(os.path.abspath(output))
    if not os.path.isdir(folder):
        raise ValueError(f"--output is {output!r}, but the folder {folder} does not exist")
    if os.path.exists(output) and not os.path.isfile(output):
        # the new file takes the old one's place, which must never happen to a folder or a device
        raise ValueError(f"--output is {output!r}, which exists and is not a regular file")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"--output is {output!r}, but the folder {folder} cannot be written to")


def _hint(name, known):
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"it must be one of {', '.join(known)}"


def _console(**options):
    from rich.console import Console

    return Console(**options)


@contextlib.contextmanager
def _live_bar(tol, max_epochs, wanted):
    """A callback for `solve` that draws a live bar on a terminal, or None elsewhere.

    The bar is full when the gap reaches the goal: gaps fall by factors, so it counts decades.
    """
    import math

    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = _console(stderr=True)
    if not wanted or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(None), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=1.0)

        def show(record):
            gap = record.relative_gap
            # at w = 0 the gap is about 1: the goal is -log10(tol) decades away
            decades = -math.log10(gap) if 0 < gap < 1 else 0.0
            done = decades / -math.log10(tol) if 0 < tol < 1 else record.epoch / max(max_epochs, 1)
            progress.update(
                task, completed=min(max(done, 0.0), 1.0),
                description=f"epoch {record.epoch:4d}  objective {record.primal:<11.6g} relative gap {gap:.1e}",
            )  # fmt: skip

        yield show


def _certificate_rows(result):
    rows = [("status", str(result.status)), ("primal (upper bound)", f"{result.primal:.10g}")]
    if result.certified:
        rows.append(("dual (lower bound)", f"{result.dual:.10g}"))
        rows.append(("gap", f"{result.gap:.3e}"))
        rows.append(("relative gap", f"{result.relative_gap:.3e}"))
    else:
        rows.append(("dual (lower bound)", f"none: {result.reason}"))
    return [*rows, ("epochs", f"{result.epochs:,}"), ("seconds", f"{result.seconds:.3f}")]


def _print_table(console, title, rows):
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=box.SIMPLE_HEAD)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, escape(value))
    console.print(table)


def _finish(result, tol):
    """Say so if the answer is not what was asked for; 130 after Ctrl-C."""
    from .result import Status

    advice = {
        Status.EPOCH_LIMIT: "; try more --max-epochs or a larger --tol",
        Status.TIME_LIMIT: "; try a longer --time-limit or a larger --tol",
        Status.STALLED: "; rounding leaves no room, try a larger --tol",
    }
    if result.status is not Status.CONVERGED:
        proof = f"relative gap {result.relative_gap:.2e}, goal {tol:g}" if result.certified else "no certificate"
        proof += f" ({result.reason})" if result.reason else ""
        end = advice.get(result.status, "")
        print(f"fenchel: warning: not converged ({result.status}): {proof}{end}", file=sys.stderr)
    if result.status is Status.INTERRUPTED:
        raise typer.Exit(130)
