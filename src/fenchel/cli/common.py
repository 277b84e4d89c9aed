"""What the commands share: outputs that can be written, live bars, tables, how a run ends."""

from __future__ import annotations

import contextlib
import difflib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..foundation.display import LineAMinute
from ..foundation.files import same_file, writable, write_whole

if TYPE_CHECKING:
    from ..solver.result import Result

try:
    import typer
except ImportError:  # cli.main() says what to install
    typer = None  # type: ignore[assignment]  # main() says what to install


def check_output(path: str | None, option: str = "--output", inputs: Iterable[str | None] = ()) -> None:
    """Fail before the work, not after it, if the file cannot be written, or is one that is read."""
    if path is None:
        return
    writable(path, option)
    for file in inputs:
        if file is not None and same_file(path, file):
            raise ValueError(
                f"{option} is {path!r}, which is the input {file}; it would be lost, give another name to write to"
            )


def check_picture(path: str | None, option: str = "output", inputs: Iterable[str | None] = ()) -> None:
    """Fail before the work if the picture cannot be drawn."""
    if path is None:
        return
    check_output(path, option, inputs)
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise ImportError("the picture needs matplotlib: pip install 'fenchel[plot]'") from None
    kinds = FigureCanvasAgg.get_supported_filetypes()
    if os.path.splitext(path)[1].lower().lstrip(".") not in kinds:
        raise ValueError(f"{option} is {path!r}; its extension must be one of {', '.join(sorted(kinds))}")


def check_different(**paths: str | None) -> None:
    """Two outputs must not be one file."""
    given = [(option, path) for option, path in paths.items() if path is not None]
    for (one, first), (other, second) in itertools.combinations(given, 2):
        if same_file(first, second):
            raise ValueError(f"--{one} and --{other} are both {second!r}")


def hint(name: str, known: Any) -> Any:
    """The name that was meant, or all of them."""
    close = difflib.get_close_matches(name, known, 1)
    return f"did you mean {close[0]!r}?" if close else f"it must be one of {', '.join(known)}"


# -- on the terminal --------------------------------------------------------------------------------


def make_console(**options: Any) -> Any:
    from rich.console import Console

    return Console(**options)


@contextlib.contextmanager
def _bar(wanted: bool, total: float) -> Iterator[Any]:
    """A function (completed, description) that moves a live bar on a terminal, or None elsewhere."""
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = make_console(stderr=True)
    if not wanted or not console.is_terminal:
        yield None
        return
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(None), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        task = progress.add_task("starting", total=total)
        yield lambda completed, description: progress.update(task, completed=completed, description=description)


@contextlib.contextmanager
def live_bar(tol: float, max_epochs: int, wanted: bool) -> Iterator[Any]:
    """A callback for `solve` that draws a live bar on a terminal, or says a line a minute elsewhere; None for neither.

    The bar is full when the gap reaches the goal: gaps fall by factors, so it counts decades.
    """
    import math

    with _bar(wanted, 1.0) as move:

        def show(record: Any) -> None:
            gap = record.relative_gap
            # at w = 0 the gap is about 1: the goal is -log10(tol) decades away
            decades = -math.log10(gap) if 0 < gap < 1 else 0.0
            done = decades / -math.log10(tol) if 0 < tol < 1 else record.epoch / max(max_epochs, 1)
            text = f"epoch {record.epoch:4d}  objective {record.primal:<11.6g} relative gap {gap:.1e}"
            state[:] = [min(max(done, 0.0), 1.0), text]
            draw(*state)

        def reading(how_far: Any) -> None:
            draw(state[0], f"{state[1]}  {how_far}")

        def draw(done: float, text: str) -> None:
            if move is None:
                lines.show(f"{text}  {time.monotonic() - began:.0f} s")
            else:
                move(done, text)

        state: list[Any] = [0.0, "starting"]
        lines, began = LineAMinute(last=False), time.monotonic()
        show.reading = reading  # type: ignore[attr-defined]  # for rows that are read from a disk
        yield show if wanted else None


def certificate_rows(result: Result) -> list[tuple[str, str]]:
    """What is proven, as lines of a table."""
    rows = [("status", str(result.status)), ("primal (upper bound)", f"{result.primal:.10g}")]
    if result.certified:
        rows.append(("dual (lower bound)", f"{result.dual:.10g}"))
        rows.append(("gap", f"{result.gap:.3e}"))
        rows.append(("relative gap", f"{result.relative_gap:.3e}"))
    else:
        rows.append(("dual (lower bound)", f"none: {result.reason}"))
    return [*rows, ("epochs", f"{result.epochs:,}"), ("seconds", f"{result.seconds:.3f}")]


def print_table(console: Any, title: str, rows: list[tuple[str, str]]) -> None:
    """Names and values."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", show_header=False, box=box.SIMPLE_HEAD)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in rows:
        table.add_row(name, escape(value))
    console.print(table)


def print_files(console: Any, **paths: Any) -> None:
    """What was written."""
    for name, path in paths.items():
        if path is not None:
            console.print(f"{name}: {path}", soft_wrap=True, highlight=False, markup=False)


# -- the end ----------------------------------------------------------------------------------------


def warn(message: str) -> None:
    print(f"fenchel: warning: {message}", file=sys.stderr)


def finish(result: Result, tol: float) -> None:
    """Say so if the answer is not what was asked for; 130 after Ctrl-C."""
    from ..solver.result import Status

    advice = {
        Status.EPOCH_LIMIT: "; try more --max-epochs or a larger --tol",
        Status.TIME_LIMIT: "; try a longer --time-limit or a larger --tol",
        Status.STALLED: "; rounding leaves no room, try a larger --tol",
        Status.NO_ANSWER: "; an --alpha above 0 or a penalty on all directions makes one",
    }
    if result.status is not Status.CONVERGED:
        proof = f"relative gap {result.relative_gap:.2e}, goal {tol:g}" if result.certified else "no certificate"
        proof += f" ({result.reason})" if result.reason else ""
        warn(f"not converged ({result.status}): {proof}{advice.get(result.status, '')}")
    if result.status is Status.INTERRUPTED:
        raise typer.Exit(130)


def draw_file(path: str, draw: Callable[..., Any], size: tuple[float, float] = (7.2, 4.6)) -> None:
    """A picture by `draw(ax)`, whole or not at all."""
    from ..report import picture

    write_whole(path, picture(draw, size, os.path.splitext(path)[1].lower().lstrip("."), dpi=150))
