"""Which columns belong together, as scikit-learn's transformers made them."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validate import Names


def _outputs(encoder: Any, columns: Names | None) -> dict[str, list[int]]:
    """Group -> numbers of the outputs of a fitted transformer of these columns."""
    if hasattr(encoder, "output_indices_"):
        return _column_transformer_outputs(encoder)
    if hasattr(encoder, "steps"):
        steps = [step for _, step in encoder.steps if step is not None and step != "passthrough"]
        while len(steps) > 1 and _keeps_columns(steps[-1]):
            steps.pop()
        if not steps:
            return {str(name): [k] for k, name in enumerate(() if columns is None else columns)}
        return _outputs(steps[-1], getattr(steps[-1], "feature_names_in_", columns))
    count = encoder.n_features_in_
    columns = [f"x{k}" for k in range(count)] if columns is None or len(columns) != count else list(columns)
    widths = _widths(encoder)
    if widths is None:
        raise ValueError(f"{encoder!r} is not an encoder whose outputs can be told apart by column; give a "
                         "OneHotEncoder or a ColumnTransformer")  # fmt: skip
    ends = np.cumsum(widths)
    return {str(name): list(range(end - width, end))
            for name, width, end in zip(columns, widths, ends, strict=True) if width}  # fmt: skip


def _keeps_columns(encoder: Any) -> bool:
    """Whether the transformer has one output for every input."""
    if hasattr(encoder, "output_indices_") or hasattr(encoder, "steps"):
        return False
    return _widths(encoder) == [1] * encoder.n_features_in_


def _widths(encoder: Any) -> list[int] | None:
    """Outputs per input column of a fitted transformer; None where they do not stand side by side."""
    count = encoder.n_features_in_
    if hasattr(encoder, "categories_") and hasattr(encoder, "drop_idx_"):  # OneHotEncoder
        widths = [len(categories) for categories in encoder.categories_]
        if getattr(encoder, "infrequent_categories_", None) is not None:
            for k, rare in enumerate(encoder.infrequent_categories_):
                widths[k] -= 0 if rare is None else len(rare) - 1
        if encoder.drop_idx_ is not None:
            widths = [width - (dropped is not None) for width, dropped in zip(widths, encoder.drop_idx_, strict=True)]
        return widths
    if hasattr(encoder, "n_bins_"):  # KBinsDiscretizer
        return [1] * count if encoder.encode == "ordinal" else [int(bins) for bins in encoder.n_bins_]
    if hasattr(encoder, "bsplines_"):  # SplineTransformer
        return [encoder.n_features_out_ // count] * count
    try:
        outputs = len(encoder.get_feature_names_out())
    except (AttributeError, ValueError):
        return None
    return [1] * count if outputs == count else None


def _column_transformer_outputs(encoder: Any) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = {}
    names = getattr(encoder, "feature_names_in_", None)
    for label, transformer, columns in encoder.transformers_:
        outputs = encoder.output_indices_.get(label, slice(0, 0))
        width = outputs.stop - outputs.start
        if not width:
            continue
        columns = _columns(columns, names, encoder.n_features_in_)
        if isinstance(transformer, str):  # "passthrough"
            own = {name: [k] for k, name in enumerate(columns)}
        else:
            try:
                own = _outputs(transformer, columns)
            except ValueError:
                own = {label: list(range(width))}
        if sum(map(len, own.values())) != width:
            own = {label: list(range(width))}
        for name, places in own.items():
            if name in groups:  # one column that goes through several transformers
                name = f"{label}__{name}"
            groups[name] = [outputs.start + k for k in places]
    return groups


def _columns(columns: Any, names: Names | None, count: int) -> list[str]:
    """Names of the columns that a ColumnTransformer's selector means."""
    names = [f"x{k}" for k in range(count)] if names is None else [str(name) for name in names]
    if isinstance(columns, str):
        return [columns]
    columns = columns if isinstance(columns, slice) else np.atleast_1d(np.asarray(columns))
    if not isinstance(columns, slice) and columns.dtype.kind in "OUT":
        return [str(name) for name in columns]
    return list(np.array(names, dtype=object)[columns])
