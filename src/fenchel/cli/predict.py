"""The command `fenchel predict`: a model on new rows."""

from __future__ import annotations

import csv
import io
import sys
from typing import TYPE_CHECKING, Annotated, Any

from ..foundation.files import write_whole
from .common import check_output

if TYPE_CHECKING:
    from .._validate import AnyArray, Array
    from ..models.saved_model import Model

try:
    import typer
except ImportError:  # cli.main() says what to install
    typer = None  # type: ignore[assignment]  # main() says what to install


def predict(
    model: Annotated[str, typer.Argument(help="A model that `fenchel fit` or `fenchel cv` wrote.")],
    file: Annotated[str, typer.Argument(help="Data: LIBSVM, CSV, TSV, Parquet, npz or npy.")],
    output: Annotated[
        str | None, typer.Option("--output", "-o", help="A CSV file to write; standard output by default.")
    ] = None,
    decision: Annotated[bool, typer.Option("--decision", help="Add the scores X w + b.")] = False,
    probability: Annotated[
        bool, typer.Option("--probability", help="Add the probability of every label (logistic or multinomial loss).")
    ] = False,
    target: Annotated[
        list[str] | None,
        typer.Option(help="The column to compare with; the model's target, if FILE has it, by default."),
    ] = None,
    offset: Annotated[
        str | None,
        typer.Option(help="What is added to the scores, as in `fenchel fit`; the model's offset by default."),
    ] = None,
    header: Annotated[
        bool | None, typer.Option("--header/--no-header", help="Whether a CSV begins with names; seen by default.")
    ] = None,
) -> None:
    """Predict with a model; with a target in the file, report accuracy, R^2 or D^2 (on stderr).

    Columns are matched by name where there are names, else by position.
    """
    from ..io import read_like
    from ..io.coding import Coding
    from ..models import Model

    check_output(output, inputs=(model, file))
    fitted = Model.load(model)
    target = list(target or []) or None
    data = read_like(
        file, n_features=fitted.n_features, features=fitted.features, target=target or fitted.target,
        first_index=fitted.first_index, must_have_target=target is not None, header=header, task=fitted.task,
        offset=offset or fitted.offset, coding=None if fitted.coding is None else Coding(**fitted.coding),
    )  # fmt: skip
    scores = fitted.decision(data.X, data.task, data.offset)
    predicted = fitted.from_decision(scores)
    shares = fitted.probabilities(scores) if probability else None
    text = _predictions(fitted, predicted, scores if decision else None, shares)
    if output is None:
        sys.stdout.write(text)
        sys.stdout.flush()
    else:
        write_whole(output, text.encode())
        print(f"{len(predicted):,} predictions: {output}", file=sys.stderr)
    if data.y is not None:
        try:
            name, value = fitted.score(predicted, data.y, scores, data.offset)
        except ValueError as error:
            print(f"fenchel: no score for {file}: {error}", file=sys.stderr)
        else:
            print(f"{name} {value:.6g} on {len(predicted):,} rows of {file}", file=sys.stderr)


def _predictions(model: Model, predicted: AnyArray, scores: Array | None, shares: Array | None) -> str:
    columns = dict(_columns("prediction", predicted, model.target))
    if scores is not None:
        columns |= _columns("decision", scores, model.classes or model.target)
    if shares is not None:
        columns |= _columns("probability", shares, model.classes)
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(column.tolist() for column in columns.values()), strict=True))
    return buffer.getvalue()


def _columns(name: str, values: AnyArray, labels: Any) -> dict[str, AnyArray]:
    """One column of that name, or one per label."""
    if values.ndim == 1:
        return {name: values}
    labels = labels if isinstance(labels, list) and len(labels) == values.shape[1] else range(values.shape[1])
    return {f"{name}_{label}": column for label, column in zip(labels, values.T, strict=True)}
