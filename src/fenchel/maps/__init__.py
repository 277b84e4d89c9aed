"""Linear maps B': w -> u = B'w, as sparse matrices."""

from __future__ import annotations

from .base import (
    Composed,
    Identity,
    MadeMap,
    Map,
    Matrix,
    Stack,
    is_shared_identity,
    row_width,
    runs_of_rows,
    spectral_norm,
)
from .differences import Difference, Gradient, Incidence
from .gram import Gram
from .operators import Operator
from .registry import MAPS, register
from .selections import Copies, Selection

__all__ = [
    "MAPS",
    "Composed",
    "Copies",
    "Difference",
    "Gradient",
    "Gram",
    "Identity",
    "Incidence",
    "MadeMap",
    "Map",
    "Matrix",
    "Operator",
    "Selection",
    "Stack",
    "is_shared_identity",
    "register",
    "row_width",
    "runs_of_rows",
    "spectral_norm",
]
