"""Reading LIBSVM's format."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp

from .arrays import _whole, check_width
from .contents import Data
from .text import _first_line, _is_finite


def _read_libsvm(
    path: str | Path,
    target: int | str | None,
    first_index: int | None = None,
    n_features: int = 0,
    max_features: int | None = None,
) -> Data:
    from sklearn.datasets import load_svmlight_file

    if target is not None:
        raise ValueError(f"target is {target!r}, but in the LIBSVM file {path} the target is the first entry of a line")
    try:
        with open(path, "rb") as file:  # by its name it might be taken for a packed one
            X, y = load_svmlight_file(file, zero_based=True)
    except (ValueError, OverflowError, IndexError, MemoryError) as error:
        line, what = _libsvm_fault(path)
        raise ValueError(f"{path}{line}: {what or _first_line(error)}") from error
    if X.shape[0] == 0:
        raise ValueError(f"{path} has no rows")
    bad = np.flatnonzero(~np.isfinite(y))
    bad = bad if bad.size else np.flatnonzero(~np.isfinite(X.data))
    if bad.size:
        line, what = _libsvm_fault(path)
        raise ValueError(f"{path}{line}: {what}")
    has_zero = bool(X.nnz) and X.indices.min() == 0
    if first_index is None:
        first_index = 0 if has_zero else 1
    elif has_zero and first_index == 1:
        raise ValueError(f"{path} has a feature 0, but the model was fitted on a file that counts from 1")
    width = max(X.shape[1] - first_index, n_features)
    if width > n_features:
        check_width(path, width, X.nnz, max_features)
    X = sp.csr_array((X.data, X.indices - first_index, X.indptr), shape=(X.shape[0], width))
    return Data(X, _whole(y), first_index=first_index)


def _libsvm_fault(path: str | Path) -> tuple[str, str]:
    """Where and why a LIBSVM file does not parse: the first line that is wrong."""
    with open(path, "rb") as file:
        for number, line in enumerate(file, 1):
            words = line.split(b"#")[0].decode("utf-8", "replace").split()
            what = _libsvm_line_fault(words)
            if what:
                return f", line {number}", what
    return "", ""


def _libsvm_line_fault(words: list[str]) -> str:
    if not words:
        return ""
    if not _is_finite(words[0]):
        return f"the target {words[0]!r} is not a finite number"
    before = -1
    for word in words[2:] if len(words) > 1 and words[1].startswith("qid:") else words[1:]:
        index, colon, value = word.partition(":")
        if not colon or not index.isdigit():
            return f"{word!r} is not of the form index:value"
        if not _is_finite(value):
            return f"{word!r} does not hold a finite number"
        if int(index) <= before:
            return f"index {index} follows {before}; the indices of a line must rise"
        before = int(index)
    return ""
