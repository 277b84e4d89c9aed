"""Reading numpy's files: npz, npy, and vectors."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from .._validate import AnyArray, Array, Floats, MatrixLike, sound
from ..foundation.files import PACKED, check_unpacked, read_npz, regular, text_lines
from ..foundation.words import listed
from .contents import Data, _some_weight
from .offsets import from_arrays
from .text import _first_line, _is_finite, _numbered


def _read_npz(
    path: str | Path,
    target: int | str | None,
    weights: str | None,
    task: str | None,
    offset: str | None = None,
    max_features: int | None = None,
) -> Data:
    arrays = read_npz(path, "an npz file of plain arrays")
    X = _npz_matrix(path, arrays, max_features)
    name = "y" if target is None else str(target)
    y = arrays.get(name)
    if y is not None and (y.ndim not in (1, 2) or len(y) != X.shape[0]):
        raise ValueError(f"{path}: {name} has shape {y.shape}, but X has {X.shape[0]} rows")
    if y is not None:
        y = _checked_targets(y, f"{path}: {name}")
    values = X.data if sp.issparse(X) else X
    if not np.isfinite(values).all():
        bad = sp.coo_array(X) if sp.issparse(X) else None
        row, column = (
            np.argwhere(~np.isfinite(X))[0] if bad is None else np.transpose(bad.coords)[~np.isfinite(bad.data)][0]
        )
        raise ValueError(f"{path}: X[{row}, {column}] is not a finite number")
    names = arrays.get("feature_names")
    if names is not None and names.shape != X.shape[1:]:
        raise ValueError(f"{path}: feature_names has shape {names.shape}, but X has {X.shape[1]} columns")
    sample_weight = None if weights is None else arrays.get(weights)
    if weights is not None and sample_weight is not None:
        sample_weight = _npz_weights(path, weights, sample_weight, X.shape[0])
    tasks = None if task is None else arrays.get(task)
    if tasks is not None and (tasks.shape != X.shape[:1] or tasks.dtype.kind not in "biufUS"):
        raise ValueError(
            f"{path}: {task} has dtype {tasks.dtype} and shape {tasks.shape}; it must name a task for each of "
            f"{X.shape[0]} rows"
        )
    return Data(
        X, y, None if names is None else [str(n) for n in names], names is not None, name,
        sample_weight, task=tasks, offset=None if offset is None else from_arrays(offset, arrays, path, X.shape[0]),
    )  # fmt: skip


def _npz_weights(path: str | Path, name: str, weights: AnyArray, rows: int) -> Array:
    if weights.shape != (rows,) or weights.dtype.kind not in "biuf":
        raise ValueError(
            f"{path}: {name} has dtype {weights.dtype} and shape {weights.shape}; it must hold a weight for each of "
            f"{rows} rows"
        )
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if bad.size:
        raise ValueError(f"{path}: {name}[{bad[0]}] is {weights[bad[0]]}; a weight must be finite and not negative")
    return _some_weight(weights.astype(float), f"{path}: {name}")


def _checked_targets(y: AnyArray, where: str) -> AnyArray:
    if y.dtype.kind not in "biufUS":
        raise ValueError(f"{where} has dtype {y.dtype}; targets are numbers or words")
    if y.dtype.kind == "S":
        y = np.char.decode(y, "utf-8", "replace")
    if np.issubdtype(y.dtype, np.floating) and not np.isfinite(y).all():
        at = tuple(np.argwhere(~np.isfinite(y))[0])
        place = ", ".join(map(str, at))
        raise ValueError(f"{where}[{place}] is {y[at]}; targets must be finite")
    return y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y


def _read_npy(path: str | Path, targets: Sequence[int | str]) -> Data:
    """A matrix; the targets are columns of it (the last by default), or stand in files of their own."""
    X = _npy_array(path)
    if X.ndim != 2 or X.dtype.kind not in "biuf":
        raise ValueError(f"{path} has dtype {X.dtype} and shape {X.shape}; it must be a numeric matrix")
    if len(targets) == 1 and os.path.isfile(str(targets[0])):
        return Data(_npy_matrix(path, X), _targets_file(str(targets[0]), path, len(X)), target=str(targets[0]))
    places = []
    for target in targets or [-1]:
        try:
            number = int(target)
        except ValueError:
            raise ValueError(
                f"target is {target!r}, which is neither a file nor a column's number; {path} has {X.shape[1]} columns"
            ) from None
        if not -X.shape[1] <= number < X.shape[1]:
            raise ValueError(f"target is {number}, but {path} has columns 0 to {X.shape[1] - 1}")
        places.append(number % X.shape[1])
    y = _checked_targets(np.array(X[:, places]), f"{path}: the target")
    names = [str(k) for k in places]
    return Data(
        _npy_matrix(path, np.delete(X, places, axis=1)), _whole(y), target=names if len(names) > 1 else names[0]
    )


def _npy_like(path: str | Path, n_features: int, targets: list[str], must_have_target: bool) -> Data:
    X = _npy_array(path)
    width = X.shape[1] if X.ndim == 2 else 0
    own = [target for target in targets if target.lstrip("-").isdigit()]
    if width == n_features and not (must_have_target and own):
        y = _targets_file(targets[0], path, len(X)) if must_have_target and targets else None
        return Data(_npy_matrix(path, X), y)
    if width == n_features + len(own):
        return _read_npy(path, own)
    raise ValueError(f"{path} has {width} columns, but the model has {n_features} features")


def _npy_array(path: str | Path) -> AnyArray:
    try:
        # large data stays on disk
        out: AnyArray = np.load(regular(path), mmap_mode="r", allow_pickle=False)
        if not isinstance(out, np.ndarray):
            raise ValueError("it is an archive of several arrays")
        return out
    except FileNotFoundError:
        raise
    except Exception as error:  # those of numpy, and of what it reads a header with
        raise ValueError(f"{path} is not an npy file of plain numbers ({_first_line(error)})") from error


def _npy_matrix(path: str | Path, X: MatrixLike) -> Floats:
    X = np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else float)
    if not np.isfinite(X.sum()):  # the sum may overflow where the numbers are fine
        bad = np.argwhere(~np.isfinite(X))
        if len(bad):
            raise ValueError(f"{path}: X[{bad[0][0]}, {bad[0][1]}] is not a finite number")
    out: Floats = X
    return out


def _targets_file(target: str | os.PathLike[str], path: str | Path, rows: int) -> AnyArray:
    """Targets from an npy file, or one on every line."""
    target = os.fspath(target)
    if target.endswith(".npy"):
        y = np.array(_npy_array(target))
        if y.ndim not in (1, 2):
            raise ValueError(f"{target} has shape {y.shape}; it must hold a target for every row")
        y = _checked_targets(y, target)
    else:
        words = [line.strip() for _, line in text_lines(target) if line.strip()]
        y = np.array(words)
        if all(map(_is_finite, words)):
            y = _whole(y.astype(float))
    if len(y) != rows:
        raise ValueError(f"{target} holds {len(y)} targets, but {path} has {rows} rows")
    return y


def _whole(y: AnyArray) -> AnyArray:
    """Whole numbers as such, so that labels print as 1 and not 1.0."""
    return y.astype(np.int64) if np.all(y == np.floor(y)) and np.abs(y).max(initial=0) < 2**53 else y


def _npz_matrix(path: str | Path, arrays: dict[str, AnyArray], max_features: int | None) -> MatrixLike:
    """X, or the parts of a sparse matrix as scipy.sparse.save_npz writes them."""
    if "X" in arrays:
        X = arrays["X"]
        if X.ndim != 2 or X.dtype.kind not in "biuf":
            raise ValueError(f"{path}: X has dtype {X.dtype} and shape {X.shape}; it must be a numeric matrix")
        return np.ascontiguousarray(X, dtype=X.dtype if X.dtype in (np.float32, np.float64) else float)
    if not ({"data", "shape"} <= set(arrays) and ("format" in arrays or {"indices", "indptr"} <= set(arrays))):
        raise ValueError(
            f"{path} holds {listed(sorted(arrays))}; it needs X, or data, indices, indptr and shape of a CSR matrix"
        )
    try:
        return _sparse_matrix(path, arrays, max_features)
    except KeyError as error:
        raise ValueError(f"{path} has no array {error.args[0]!r}, which a matrix of its format needs") from error
    except (ValueError, TypeError, IndexError, OverflowError, MemoryError) as error:
        where = "" if str(error).startswith(str(path)) else f"{path}: "
        raise ValueError(f"{where}{_first_line(error)}") from error


def _sparse_matrix(path: str | Path, arrays: dict[str, AnyArray], max_features: int | None) -> MatrixLike:
    shape, data = arrays["shape"], arrays["data"]
    if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 0:
        raise ValueError(f"shape has dtype {shape.dtype} and shape {shape.shape}; it must be two whole numbers")
    if data.dtype.kind not in "biuf":
        raise ValueError(f"data has dtype {data.dtype}; it must be real numbers")
    rows, columns = (int(side) for side in shape)
    word = arrays.get("format", np.array("csr"))
    kind = word.item().decode("ascii", "replace") if word.dtype.kind == "S" and not word.ndim else str(word)
    if kind in ("csr", "csc", "bsr"):
        parts: Any = (data, _whole_numbers(arrays, "indices"), _whole_numbers(arrays, "indptr"))
    elif kind == "coo":
        places = [_whole_numbers(arrays, name) for name in ("row", "col")] if "row" in arrays else arrays["coords"]
        parts = (data, tuple(places))
    elif kind == "dia":
        parts = (data, _whole_numbers(arrays, "offsets"))
    else:
        raise ValueError(f"format is {kind!r}; it must be csr, csc, bsr, coo or dia")
    check_unpacked(path, 8 * rows, "give the rows that have entries only")
    check_width(path, columns, data.size, max_features)
    made = getattr(sp, f"{kind}_array")(parts, shape=(rows, columns))
    X = sp.csr_array(sound("X", made))
    return X.astype(X.dtype if X.dtype in (np.float32, np.float64) else float)


def _whole_numbers(arrays: dict[str, AnyArray], name: str) -> AnyArray:
    values = arrays[name]
    if values.dtype.kind not in "iu" or values.ndim != 1:
        raise ValueError(f"{name} has dtype {values.dtype} and shape {values.shape}; it must hold whole numbers")
    return values


_SURELY = 1_000_000  # features: a vector of them takes 8 MB; larger: a damaged file may ask for gigabytes


def check_width(path: str | Path, width: int, entries: int, max_features: int | None) -> None:
    """Refuse sparse data with very many more columns than entries, of which one wrong number is the cause: every
    vector of the fit would have that length."""
    most = max(_SURELY, PACKED * entries) if max_features is None else max_features
    if width > most:
        raise ValueError(
            f"{path} has {entries:,} entries in {width:,} columns, more than {most:,}; if that is right, say "
            f"max_features={width} (--max-features {width})"
        )


def read_vector(path: str | Path) -> Array:
    """Numbers, one per line."""
    return np.array([value for _, value in _numbered(path)])
