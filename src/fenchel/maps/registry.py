"""Maps by name."""

from __future__ import annotations

from .._validate import registering
from .base import Identity, Matrix, Stack
from .differences import Difference, Gradient, Incidence
from .operators import Operator
from .selections import Copies, Selection

MAPS = {
    "identity": Identity,
    "matrix": Matrix,
    "incidence": Incidence,
    "difference": Difference,
    "gradient": Gradient,
    "copies": Copies,
    "selection": Selection,
    "stack": Stack,
    "operator": Operator,
}

register = registering(MAPS, "map")  # a decorator: @register("name") enters a map of your own
