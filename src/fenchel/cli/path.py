"""The commands `fenchel path` and `fenchel cv`: many alphas, every one certified."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

from ..foundation.files import write_whole
from .common import certificate_rows, counting_bar, draw_file, finish, make_console, print_files, print_table, warn
from .fit import check_outputs, write_report
from .options import ModelOptions

if TYPE_CHECKING:
    from .._validate import AnyArray, Array, Ints
    from ..models.cross_validation import CrossValidation
    from ..models.paths import Path
    from ..problem.problem import Problem
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
    with counting_bar(len(values), not options.quiet) as show:
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
    rule: Annotated[
        str,
        typer.Option(
            help="min: the smallest held-out loss; 1se: the largest alpha within one standard error of it.",
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
    held out. Folds keep the shares of the labels.
    """
    from .. import plotting
    from ..models import cross_validate_path
    from ..models import path as solve_path
    from .problem import prepare

    check_outputs(file, options, output=output, table=table)
    if rule not in ("min", "1se"):
        raise ValueError(f"--rule is {rule!r}; it must be min or 1se")
    setup = prepare(file, options)
    values = make_alphas(setup, alphas, n_alphas, eps)
    limits: dict[str, Any] = {"tol": options.tol, "max_epochs": options.max_epochs, "random_state": options.seed}
    with counting_bar(folds * len(values), not options.quiet) as show:
        if setup.problem.pooled:
            found = cross_validate_path(setup.problem, cv=folds, alphas=values, **limits)
        else:
            found = _cross_validate(setup.problem, values, _splits(setup, folds, shuffle), jobs, limits, show)
    index = found.select(rule)
    last = len(values) if options.report is not None else index + 1  # a page shows the whole path
    with counting_bar(last, not options.quiet) as show:
        whole = solve_path(setup.problem, alphas=values[:last], callback=show, **limits)
    if whole.interrupted:
        raise KeyboardInterrupt
    result = whole[index]
    problem = setup.problem.with_alpha(values[index])
    setup.model(result, problem).save(output)
    if table is not None:
        write_whole(table, _cv_table(found).encode())
    if options.picture is not None:
        draw_file(options.picture, lambda ax: plotting.cv_curve(found, ax=ax))
    rows = [*setup.rows(problem), *_cv_rows(found, rule, index)]
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


# -- alphas and folds -------------------------------------------------------------------------------


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


def _splits(setup: Setup, folds: int, shuffle: bool) -> list[tuple[Ints, Ints]]:
    import numpy as np
    from sklearn.model_selection import KFold, StratifiedKFold

    n = setup.problem.n
    if folds > n:
        raise ValueError(f"--folds is {folds}, but {setup.file} has {n} rows")
    y = cast("AnyArray", setup.data.y)  # without targets nothing is read
    across, stratified = setup.problem.loss.across_rows, setup.classes is not None
    if across:
        y, stratified = np.asarray(setup.problem.loss.fold_labels(setup.problem.target)), True
    if stratified:
        labels, counts = np.unique(y, return_counts=True)
        if counts.min() < folds:
            label = labels[counts.argmin()].item()
            have = f"are {'events' if label else 'censored'}" if across else f"have the label {label!r}"
            raise ValueError(f"--folds is {folds}, but only {counts.min()} rows {have}")
    kind = StratifiedKFold if stratified else KFold
    chosen = {"shuffle": True, "random_state": setup.options.seed} if shuffle else {}
    return list(kind(folds, **chosen).split(np.zeros((n, 1)), y))


def _cross_validate(
    problem: Problem,
    alphas: Array,
    splits: list[tuple[Ints, Ints]],
    jobs: int,
    limits: dict[str, Any],
    show: Callable[..., Any],
) -> CrossValidation:
    """As `cross_validate_path`, telling of every fit."""
    from joblib import Parallel, delayed

    from ..models import CrossValidation
    from ..models import path as solve_path
    from ..models.cross_validation import _held_out_losses, _training

    def whole_path(part: Problem) -> Path:
        found = solve_path(part, alphas=alphas, callback=show, **limits)
        if found.interrupted:
            raise KeyboardInterrupt
        return found

    parts = [_training(problem, k, rows) for k, (rows, _) in enumerate(splits)]
    found = Parallel(n_jobs=jobs, prefer="threads")(delayed(whole_path)(part) for part in parts)
    scores = [_held_out_losses(problem, rows, one) for one, (_, rows) in zip(found, splits, strict=True)]
    return CrossValidation(alphas, scores, found)


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


def _cv_table(found: CrossValidation) -> str:
    head = ["alpha", "mean_loss", "standard_error", "relative_gap"]
    head += [f"fold_{k}" for k in range(found.scores.shape[1])]
    worst = found.relative_gaps.max(axis=1)
    rows = zip(found.alphas, -found.mean, found.standard_error, worst, -found.scores, strict=True)
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


def _cv_rows(found: CrossValidation, rule: str, index: int) -> list[tuple[str, str]]:
    chosen = "smallest mean loss" if rule == "min" else "one standard error"
    return [
        ("alpha", f"{found.alphas[index]:.6g} ({chosen}, {found.scores.shape[1]} folds)"),
        ("held-out loss", f"{-found.mean[index]:.6g} \u00b1 {found.standard_error[index]:.2g}"),
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
