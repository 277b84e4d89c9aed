"""The command `fenchel fit`: one alpha, certified, written as a model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, cast

from ..foundation.files import write_whole
from .common import (
    certificate_rows,
    check_different,
    check_output,
    check_picture,
    draw_file,
    finish,
    live_bar,
    make_console,
    print_files,
    print_table,
)
from .options import ModelOptions

if TYPE_CHECKING:
    from ..solver.result import Result
    from .problem import Setup

try:
    import typer
except ImportError:  # cli.main() says what to install
    typer = None  # type: ignore[assignment]  # main() says what to install


def fit(
    file: Annotated[str, typer.Argument(help="Data: LIBSVM, CSV, TSV, Parquet, npz or npy.")],
    options: ModelOptions,
    alpha: Annotated[float | None, typer.Option(help="Strength of the penalty.", rich_help_panel="Penalty")] = None,
    alpha_ratio: Annotated[
        float | None,
        typer.Option(
            help="The same as a share of the alpha from which on the answer is zero; 0.1 if neither is given.",
            rich_help_panel="Penalty",
        ),
    ] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds, at most.", rich_help_panel="Solver")] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The model to write.", rich_help_panel="Output")
    ] = "model.json",
) -> None:
    """Fit a model to a data file, certify it, and write it as JSON.

    Features are numbered from 0, the target not counted (in a LIBSVM file feature 1 is number 0). Ctrl-C
    stops the solver: the best answer so far is written with its gap, and the exit code is 130.
    """
    from .. import plotting
    from ..solver import solve
    from .problem import choose_alpha, prepare

    check_outputs(file, options, output=output)
    setup = prepare(file, options)
    strength, largest = choose_alpha(setup.problem, alpha, alpha_ratio, options.penalty)
    problem = setup.problem.with_alpha(strength)
    with live_bar(options.tol, options.max_epochs, not options.quiet) as show:
        problem.watch(None if show is None else show.reading)
        result = solve(
            problem, tol=options.tol, max_epochs=options.max_epochs, time_limit=time_limit, random_state=options.seed,
            callback=show,
        )  # fmt: skip
    setup.model(result, problem).save(output)
    rows = setup.rows(problem) if largest is None else setup.rows(problem, largest)
    if largest is None:
        rows.append(("alpha", f"{problem.alpha:.6g}"))
    if options.picture is not None:
        draw_file(options.picture, lambda ax: plotting.convergence(result, tol=options.tol, ax=ax))
    if options.report is not None:
        write_report(setup, "fit", rows, result, alpha=problem.alpha)
    if not options.quiet:
        console = make_console()
        print_table(console, "Model", rows + setup.answer_rows(result))
        print_table(console, "Certificate", certificate_rows(result))
        print_files(console, model=output, picture=options.picture, report=options.report)
    finish(result, options.tol)


def check_outputs(file: str, options: ModelOptions, **paths: str | None) -> None:
    """Everything that can be known to fail before the work does so before it."""
    inputs = [file, *options.files]
    for option, path in paths.items():
        check_output(path, f"--{option}", inputs)
    check_output(options.report, "--report", inputs)
    check_picture(options.picture, "--picture", inputs)
    check_different(**paths, report=options.report, picture=options.picture)
    if options.report is not None:
        from ..report import check_matplotlib

        check_matplotlib()


def write_report(setup: Setup, command: str, rows: list[tuple[str, str]], result: Result, **more: Any) -> None:
    """The page of --report, whole or not at all."""
    from ..report import make

    structure = setup.structure
    page = make(
        f"fenchel {command}: {setup.file}", result, tol=setup.options.tol, names=setup.names, labels=setup.labels,
        settings=[*rows, ("command", command_line())], features=structure.kept, groups=structure.used("groups"),
        tree=structure.used("tree"), graph=structure.used("graph"), grid=structure.used("grid"),
        standardised=setup.options.standardize, problem=setup.problem, classes=setup.classes, **more,
    )  # fmt: skip
    write_whole(cast(str, setup.options.report), page.encode())


def command_line() -> str:
    """What was typed."""
    import shlex

    return shlex.join(["fenchel", *sys.argv[1:]])
