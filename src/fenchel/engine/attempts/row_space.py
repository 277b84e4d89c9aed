r"""Newton directions on faces with more coefficients than rows, in the space of the rows.

Where every unit of the penalty bends each coefficient by itself, less one direction a unit, the curvature on a face is

.. math:: M = D + V^\top \operatorname{diag}(\pm 1) V, \qquad V = \begin{pmatrix} \operatorname{diag}(b)^{1/2} R \\
          \operatorname{diag}(s)^{1/2} A \end{pmatrix}

with D diagonal, R the rows with their bends b, and A the directions of the units with their strengths s, which count
negatively. Then a solve takes one symmetric system with as many unknowns as there are rows and units:

.. math:: M^{-1} = D^{-1} - D^{-1} V^\top T^{-1} V D^{-1}, \qquad T = \operatorname{diag}(\pm 1) + V D^{-1} V^\top
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.linalg import lapack

Vector = npt.NDArray[np.float64]
LIFT = 1e-7  # of the bends of the rows: what a coefficient without a bend of its own gets; larger: more mending


def row_space_solve(rows: Any, bend: Vector, diagonal: Vector, A: Any, S: Vector) -> Callable[[Vector], Vector] | None:
    """The solve with diag(diagonal) + rows' diag(bend) rows - A' diag(S) A, nearly; None where it fails.

    `rows` is overwritten. What has no bend of its own is lifted a little, so that some rounds of conjugate gradients
    should follow.
    """
    n = rows.shape[0]
    rows *= np.sqrt(bend)[:, None]
    own = np.einsum("ij,ij->j", rows, rows)
    D = np.maximum(diagonal, LIFT * np.maximum(own, 1e-3 * own.mean()) + 1e-300)
    root = 1.0 / np.sqrt(D)
    rows *= root
    units = 0 if A is None else A.shape[0]
    T = np.empty((n + units, n + units))
    T[:n, :n] = rows @ rows.T
    T[np.arange(n), np.arange(n)] += 1.0
    if units:
        A = sp.csr_array(A)
        A = sp.csr_array(sp.diags_array(np.sqrt(S)) @ A @ sp.diags_array(root))
        T[n:, :n] = A @ rows.T
        T[n:, n:] = (A @ A.T).toarray()
        T[np.arange(n, n + units), np.arange(n, n + units)] -= 1.0
    scale = 1.0 / np.sqrt(np.maximum(np.abs(np.diag(T)), 1e-300))
    T *= scale
    T *= scale[:, None]
    # the lower triangle in C order is the upper one in Fortran's
    factor, pivots, failed = lapack.dsytrf(T.T, lower=0, lwork=64 * (n + units), overwrite_a=1)
    if failed:
        return None

    def solve(right: Vector) -> Vector:
        right = root * right
        inner = np.concatenate([rows @ right, A @ right]) if units else rows @ right
        found = scale * lapack.dsytrs(factor, pivots, scale * inner, lower=0)[0]
        back = found[:n] @ rows
        if units:
            back += A.T @ found[n:]
        return np.asarray(root * (right - back))

    return solve
