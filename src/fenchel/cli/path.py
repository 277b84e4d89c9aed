"""The commands `fenchel path` and `fenchel cv`: many alphas, every one certified."""

from __future__ import annotations

import contextlib
import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from ..foundation.files import write_whole
from .common import certificate_rows, draw_file, finish, make_console, print_files, print_table, warn
from .fit import check_outputs, write_report
from .options import ModelOptions

if TYPE_CHECKING:
    from .._validate import Array
    from ..models.cross_validation import CrossValidation
    from ..models.paths import Path
    from .problem import Setup

try:
    import typer
except ImportError:  # cli.main() says what to install
    typer = None  # type: ignore[assignment]  # main() says what to install


def path(
    file: Annotated[str, typer.Argument(help="Data: LIBSVM, CSV, TSV, Parquet, npz or npy.")],
    options: ModelOptions,
    alphas: Annotated[
        str | None, typer.Option(help="The values, separated by commas.", rich_help_panel="Penalty")
    ] = None,
    n_alphas: Annotated[
        int, typer.Option(help="How many, evenly spaced in the logarithm.", min=1, rich_help_panel="Penalty")
    ] = 50,
    eps: Annotated[
        float,
        typer.Option(help="The smallest, as a share of that from which on all is zero.", rich_help_panel="Penalty"),
    ] = 1e-3,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The table to write (CSV).", rich_help_panel="Output")
    ] = "path.csv",
    coefficients: Annotated[
        str | None,
        typer.Option(help="Also write the coefficients of every alpha: .csv or .npz.", rich_help_panel="Output"),
    ] = None,
) -> None:
    """Solve for a falling sequence of alphas, each warm-started from the last and certified; write a table.

    Options of data, loss, penalty and structure are those of fit. Ctrl-C keeps the points that are finished.
    """
    from .. import plotting
    from ..models import path as solve_path
    from .problem import prepare

    check_outputs(file, options, output=output, coefficients=coefficients)
    if coefficients is not None and not coefficients.lower().endswith((".csv", ".npz")):
        raise ValueError(f"--coefficients is {coefficients!r}; its extension must be .csv or .npz")
    setup = prepare(file, options)
    values = make_alphas(setup, alphas, n_alphas, eps)
    with alpha_bar(len(values), options) as show:
        found = solve_path(
            setup.problem, alphas=values, tol=options.tol, max_epochs=options.max_epochs, random_state=options.seed,
            callback=show,
        )  # fmt: skip
    write_whole(output, _path_table(setup, found, values).encode())
    if coefficients is not None:
        write_whole(coefficients, _coefficients(setup, found, coefficients))
    groups = setup.structure.used("groups") if not setup.structure.free.size else None
    if options.picture is not None:
        draw_file(
            options.picture,
            lambda ax: plotting.path(found, groups=groups, names=setup.names, labels=setup.labels, ax=ax),
            (8.0, 4.8),
        )
    rows = setup.rows(setup.problem)
    if found.interrupted:
        rows.append(("interrupted", f"after {len(found)} of {len(values)} alphas"))
    if options.report is not None:
        write_report(setup, "path", rows, found[-1], path=found, alpha=float(found.alphas[-1]))
    if not options.quiet:
        console = make_console()
        print_table(console, "Path", [*rows, *_path_rows(found)])
        print_files(console, table=output, coefficients=coefficients, picture=options.picture, report=options.report)
    _finish_path(found, len(values), options.tol)


def cv(
    file: Annotated[str, typer.Argument(help="Data: LIBSVM, CSV, TSV, Parquet, npz or npy.")],
    options: ModelOptions,
    alphas: Annotated[
        str | None, typer.Option(help="The values, separated by commas.", rich_help_panel="Penalty")
    ] = None,
    n_alphas: Annotated[
        int, typer.Option(help="How many, evenly spaced in the logarithm.", min=1, rich_help_panel="Penalty")
    ] = 50,
    eps: Annotated[
        float,
        typer.Option(help="The smallest, as a share of that from which on all is zero.", rich_help_panel="Penalty"),
    ] = 1e-3,
    folds: Annotated[int, typer.Option(help="Parts of the data.", min=2, rich_help_panel="Cross-validation")] = 5,
    shuffle: Annotated[
        bool,
        typer.Option(
            "--shuffle/--no-shuffle",
            help="Folds of rows drawn by --seed, or of rows as they stand.",
            rich_help_panel="Cross-validation",
        ),
    ] = True,
    cv_groups: Annotated[
        str | None,
        typer.Option(
            help="Rows of one label stay in one fold: a column of FILE (which is then no feature), or a file with a "
            "label per line.",
            rich_help_panel="Cross-validation",
        ),
    ] = None,
    scoring: Annotated[
        str | None,
        typer.Option(
            help="A score of scikit-learn, such as accuracy, roc_auc, r2 or neg_mean_absolute_error; larger is better. "
            "By default minus the mean loss.",
            rich_help_panel="Cross-validation",
        ),
    ] = None,
    rule: Annotated[
        str,
        typer.Option(
            help="min: the smallest held-out loss, or best score; 1se: the largest alpha within one standard error.",
            rich_help_panel="Cross-validation",
        ),
    ] = "min",
    jobs: Annotated[
        int, typer.Option("--jobs", "-j", help="Folds side by side.", min=1, rich_help_panel="Cross-validation")
    ] = 1,
    output: Annotated[
        str, typer.Option("--output", "-o", help="The model to write.", rich_help_panel="Output")
    ] = "model.json",
    table: Annotated[
        str | None, typer.Option(help="Also write the scores of every alpha (CSV).", rich_help_panel="Output")
    ] = None,
) -> None:
    """Choose alpha by cross-validation and write the model that all rows give for it.

    Options of data, loss, penalty and structure are those of fit. An alpha is judged by the mean loss of the rows
    held out, or by --scoring. Folds keep the shares of the labels.
    """
    from .. import plotting
    from ..models import path as solve_path
    from .folds import check_scoring, cross_validated
    from .problem import prepare

    check_outputs(file, options, output=output, table=table)
    if rule not in ("min", "1se"):
        raise ValueError(f"--rule is {rule!r}; it must be min or 1se")
    check_scoring(scoring)
    if cv_groups is not None and options.memory is not None:
        raise ValueError("--cv-groups reads all rows at once, and does not go with --memory")
    setup = prepare(file, options, cv_groups)
    values = make_alphas(setup, alphas, n_alphas, eps)
    limits: dict[str, Any] = {"tol": options.tol, "max_epochs": options.max_epochs, "random_state": options.seed}
    found = cross_validated(setup, values, folds, shuffle, scoring, jobs, limits)
    index = found.select(rule)
    last = len(values) if options.report is not None else index + 1  # a page shows the whole path
    with alpha_bar(last, options) as show:
        whole = solve_path(setup.problem, alphas=values[:last], callback=show, **limits)
    if whole.interrupted:
        raise KeyboardInterrupt
    result = whole[index]
    problem = setup.problem.with_alpha(values[index])
    setup.model(result, problem).save(output)
    if table is not None:
        write_whole(table, _cv_table(found, scoring).encode())
    if options.picture is not None:
        draw_file(options.picture, lambda ax: plotting.cv_curve(found, ax=ax))
    rows = [*setup.rows(problem), *_cv_rows(found, rule, index, scoring)]
    if options.report is not None:
        write_report(setup, "cv", rows, result, path=whole, cv=found, alpha=float(values[index]))
    if not options.quiet:
        console = make_console()
        print_table(console, "Model", rows + setup.answer_rows(result))
        print_table(console, "Certificate", certificate_rows(result))
        print_files(console, model=output, table=table, picture=options.picture, report=options.report)
    if rule == "min" and index == len(values) - 1 > 0:
        warn("the smallest alpha is the best; a smaller one may be better still, try a smaller --eps")
    if not found.converged.all():
        count = int((~found.converged).sum())
        warn(f"{count} of {found.converged.size} fits of the folds did not converge; try more --max-epochs or a "
             f"larger --tol or --eps (largest relative gap {found.relative_gaps.max():.1e})")  # fmt: skip
    finish(result, options.tol)


@contextlib.contextmanager
def alpha_bar(total: int, options: ModelOptions) -> Iterator[Callable[..., None]]:
    """A function (alpha, result) to call after every point of a path, which moves a live bar."""
    from ..models.progress import Bar

    with Bar(total, not options.quiet, "alphas", last=False) as bar:
        yield lambda alpha, result: bar.step(f"alpha {alpha:.4g}, relative gap {result.relative_gap:.1e}")


# -- alphas ------------------------------------------------------------------------------------------


def make_alphas(setup: Setup, text: str | None, count: int, eps: float) -> Array:
    """The alphas from large to small."""
    import numpy as np

    from ..models.paths import _as_alphas
    from .problem import largest_alpha, only_bounds

    if text is not None:
        try:
            values = [float(word) for word in text.replace(",", " ").split()]
        except ValueError:
            raise ValueError(f"--alphas is {text!r}; write numbers separated by commas, e.g. 1,0.1,0.01") from None
        return _as_alphas(values)
    if only_bounds(setup.problem):
        raise ValueError(f"the penalty {setup.options.penalty!r} has no strength to vary; use fenchel fit")
    if not 0 < eps < 1:
        raise ValueError(f"--eps is {eps:g}; it must lie between 0 and 1")
    try:
        largest = largest_alpha(setup.problem, setup.options.penalty)
    except ValueError as error:
        raise ValueError(str(error).replace("--alpha instead", "--alphas instead")) from None
    return np.geomspace(largest, eps * largest, count) if count > 1 else np.array([largest])


# -- tables -----------------------------------------------------------------------------------------


def _path_table(setup: Setup, found: Path, wanted: Array) -> str:
    """A row for every alpha; of one that Ctrl-C kept from being solved there is nothing but its status."""
    from ..solver.result import Status

    head = ["alpha", "objective", "lower_bound", "relative_gap", "nonzeros"]
    columns: list[Any] = [found.alphas, found.primals, found.duals, found.relative_gaps, found.nonzeros]
    groups = setup.structure.used("groups")
    if groups is not None:
        kept = found.coefs.reshape(len(found), -1, setup.problem.p)[..., setup.structure.kept]
        head.append("active_groups")
        columns.append([sum(bool(coef[:, group].any()) for group in groups) for coef in kept])
    head += ["epochs", "seconds", "status"]
    columns += [found.epochs, found.seconds, [str(result.status) for result in found.results]]
    rows = zip(*(getattr(column, "tolist", lambda c=column: c)() for column in columns), strict=True)
    left: Any = wanted[len(found) :] if found.interrupted else []
    return _csv(head, [*rows, *([float(alpha), *[None] * (len(head) - 2), str(Status.INTERRUPTED)] for alpha in left)])


def _coefficients(setup: Setup, found: Path, name: str) -> bytes:
    """The coefficients of every alpha, for the data as it stands."""
    import numpy as np

    answers = [setup.model(result, setup.problem) for result in found.results]
    coefs = np.array([answer.coef for answer in answers])
    intercepts = np.array([answer.intercept for answer in answers])
    if name.lower().endswith(".npz"):
        buffer = io.BytesIO()
        arrays: dict[str, Any] = {
            "alphas": found.alphas,
            "coef": coefs,
            "intercept": intercepts,
            "features": np.array(setup.names),
            "interrupted": np.array(found.interrupted),
        }
        if setup.labels is not None:
            arrays["outputs"] = np.array(setup.labels)
        np.savez(buffer, **arrays)
        return buffer.getvalue()
    prefixes = [""] if setup.labels is None else [f"{label}:" for label in setup.labels]
    head = ["alpha"] + [f"{prefix}{feature}" for prefix in prefixes for feature in ("(intercept)", *setup.names)]
    k = len(found)
    whole = np.concatenate([intercepts.reshape(k, -1, 1), coefs.reshape(k, len(prefixes), -1)], axis=2)
    return _csv(head, np.column_stack([found.alphas, whole.reshape(k, -1)]).tolist()).encode()


def _cv_table(found: CrossValidation, scoring: str | None) -> str:
    head = ["alpha", "mean_loss" if scoring is None else f"mean_{scoring}", "standard_error", "relative_gap"]
    head += [f"fold_{k}" for k in range(found.scores.shape[1])]
    worst = found.relative_gaps.max(axis=1)
    sign = -1.0 if scoring is None else 1.0
    rows = zip(found.alphas, sign * found.mean, found.standard_error, worst, sign * found.scores, strict=True)
    return _csv(head, ([float(x) for x in row[:4]] + row[4].tolist() for row in rows))


def _csv(head: Sequence[str], rows: Iterable[Iterable[Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return buffer.getvalue()


def _path_rows(found: Path) -> list[tuple[str, str]]:
    return [
        ("alphas", f"{len(found)} from {found.alphas[0]:.4g} to {found.alphas[-1]:.4g}"),
        ("coefficients not zero", f"{found.nonzeros[0]:,} to {found.nonzeros.max():,}"),
        ("largest relative gap", f"{found.relative_gaps.max():.3e}"),
        ("epochs", f"{found.epochs.sum():,}"),
        ("seconds", f"{found.seconds.sum():.3f}"),
    ]


def _cv_rows(found: CrossValidation, rule: str, index: int, scoring: str | None) -> list[tuple[str, str]]:
    best = "smallest mean loss" if scoring is None else f"best mean {scoring}"
    chosen = best if rule == "min" else "one standard error"
    mean = -found.mean[index] if scoring is None else found.mean[index]
    return [
        ("alpha", f"{found.alphas[index]:.6g} ({chosen}, {found.scores.shape[1]} folds)"),
        (f"held-out {scoring or 'loss'}", f"{mean:.6g} \u00b1 {found.standard_error[index]:.2g}"),
        ("other rule", f"min {found.best_alpha:.4g}, 1se {found.alpha_1se:.4g}"),
    ]


def _finish_path(found: Path, wanted: int, tol: float) -> None:
    late = int((~found.converged).sum())
    if late:
        warn(f"{late} of {len(found)} points not converged: largest relative gap {found.relative_gaps.max():.2e}, "
             f"goal {tol:g}; try more --max-epochs or a larger --tol or --eps")  # fmt: skip
    if found.interrupted:
        warn(f"interrupted after {len(found)} of {wanted} alphas")
        raise typer.Exit(130)
