"""The command `fenchel reproduce`: the paper's experiments, their figures, and a verdict on each claim."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from ..experiments.run import Outcome
    from ..experiments.settings import Settings

try:
    import typer
except ImportError:  # cli.main() says what to install
    typer = None  # type: ignore[assignment]  # main() says what to install

_EXPERIMENTS = ("artificial", "real")


def reproduce(
    experiment: Annotated[str, typer.Argument(help="artificial or real.", show_default=False)],
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            help="Of real: 20news, a9a or a data file; may be repeated, the first two by default.",
            rich_help_panel="Data",
        ),
    ] = None,
    edges: Annotated[
        str | None,
        typer.Option(
            help="Of a data file: its graph, as JSON or CSV; from the graphical lasso by default.",
            rich_help_panel="Data",
        ),
    ] = None,
    rows: Annotated[
        list[int] | None,
        typer.Option(help="Of artificial: n; may be repeated, 512 and 5120 by default.", rich_help_panel="Data"),
    ] = None,
    side: Annotated[
        int, typer.Option(help="Of artificial: the weights form a SIDE x SIDE matrix.", rich_help_panel="Data")
    ] = 32,
    method: Annotated[
        list[str] | None, typer.Option(help="A curve to draw; may be repeated, the paper's methods by default.")
    ] = None,
    repetitions: Annotated[
        int | None, typer.Option(help="10 for artificial, 5 for real, 2 with --quick by default.", show_default=False)
    ] = None,
    window: Annotated[
        float | None, typer.Option(help="Seconds for every method; chosen per data set by default.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="About a minute: fewer repetitions, shorter windows.")] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Repetitions side by side; at most one per core.")] = 1,
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="Folder of the results; named after the experiment by default.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Throw away what an earlier run left in the folder.")] = False,
) -> None:
    """Rerun the paper's experiments and say of every claim whether the run shows it.

    Writes CSV files, figures (PNG, SVG), settings.json and report.html. A run that was interrupted goes on
    with what it had when the same command is given again.
    """
    from .. import experiments

    _check(experiment, dataset, edges, rows, side)
    common: dict[str, Any] = {"repetitions": repetitions, "methods": method, "window": window, "quick": quick}
    if experiment == "artificial":
        settings = experiments.artificial(rows=rows or (512, 5120), side=side, **common)
    else:
        settings = experiments.real(dataset or ("20news", "a9a"), edges=edges, **common)
    folder = output or _folder(settings)
    try:
        outcome = experiments.reproduce(settings, folder, jobs=jobs, fresh=fresh, progress=True)
    except KeyboardInterrupt:
        print(
            f"fenchel: interrupted; what was finished is kept in {folder}, the same command goes on with it",
            file=sys.stderr,
        )
        raise typer.Exit(130) from None
    _print(outcome)


def _check(experiment: str, dataset: list[str] | None, edges: str | None, rows: list[int] | None, side: int) -> None:
    """Options that do not go with the experiment are errors, not ignored."""
    if experiment not in _EXPERIMENTS:
        raise ValueError(f"experiment is {experiment!r}; it must be {' or '.join(_EXPERIMENTS)}")
    if experiment == "artificial" and (dataset or edges):
        raise ValueError(f"{'--dataset' if dataset else '--edges'} goes with the experiment real")
    if experiment == "real" and (rows or side != 32):
        raise ValueError(f"{'--rows' if rows else '--side'} goes with the experiment artificial")


def _folder(settings: Settings) -> str:
    names = [settings.experiment]
    if settings.experiment == "real":
        names += [data.name for data in settings.data]
    return "-".join(["fenchel-reproduce", *names, *(["quick"] if settings.quick else [])])


def _print(outcome: Outcome) -> None:
    from rich import box
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console()
    table = Table(box=box.SIMPLE_HEAD, title="Claims of the paper", title_justify="left", title_style="bold")
    table.add_column("")
    table.add_column("this run", no_wrap=True)
    table.add_column("measured", overflow="fold")
    colors = {"shown": "green", "not shown": "red", "not measured": "dim"}
    for claim in outcome.claims:
        verdict = f"[{colors[claim.verdict]}]{claim.verdict}[/]"
        table.add_row(f"({claim.key})", verdict, f"{escape(claim.text)}\n[dim]{escape(claim.measured)}[/]")
    console.print(table)
    for dataset, curve, reason in outcome.left_out:
        print(f"fenchel: {curve} is left out on {dataset}: {reason}", file=sys.stderr)
    console.print(f"report: {outcome.folder / 'report.html'}", soft_wrap=True, highlight=False)
