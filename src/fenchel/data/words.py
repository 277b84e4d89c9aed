"""Words where numbers belong: who hands them over is told what makes numbers of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from .._validate import MatrixLike


def check_numeric(X: MatrixLike, use: str = "model.fit(design.X, y)") -> None:
    """Refuse a data frame with words or categories, and show the two lines that make numbers of them; `use` is the
    second."""
    frame = type(X).__module__.partition(".")[0] == "pandas" and hasattr(X, "columns")
    columns = list(X.columns) if frame and X.columns.is_unique else []
    names = [str(name) for name in columns if _holds_words(X[name])]
    dates = [str(name) for name in columns if str(X[name].dtype).startswith(("datetime", "timedelta", "period"))]
    if dates:
        raise ValueError(
            f"column {dates[0]!r} of X holds dates or times, not numbers; a model may need the days since a start, the "
            f"month or the weekday: for example X[{dates[0]!r}] = (X[{dates[0]!r}] - X[{dates[0]!r}].min()).dt.days"
        )
    if names:
        terms = " + ".join(f"C({name})" if str(name) in names else str(name) for name in list(X.columns)[:4])
        more = " + …" if len(X.columns) > 4 else ""
        raise ValueError(
            f"column {names[0]!r} of X holds words or categories, not numbers. Two lines make numbers of them "
            f"(pip install 'fenchel[formula]'), with a group for every term:\n"
            f'    design = fenchel.design("{terms}{more}", X)\n'
            f"    {use}"
        )


def first_word(y: npt.ArrayLike | None) -> str | None:
    """The first target that is a word and no number; None where there is none."""
    cells = np.asarray(y)  # of anything that can be one, by that alone
    if cells.dtype.kind not in "OUS":
        return None
    words = (cell for cell in cells.ravel().tolist() if isinstance(cell, (str, bytes)))
    return next((str(word) for word in words if not _is_number(word)), None)


def _is_number(word: str | bytes) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def _holds_words(column: Any) -> bool:
    """Whether a column holds categories or strings."""
    kind = str(column.dtype)
    if kind == "object":
        return any(isinstance(cell, str) for cell in column)
    return kind == "category" or kind.startswith("str")
