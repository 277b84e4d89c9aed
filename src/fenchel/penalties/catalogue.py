"""Penalties by name: the building blocks, and the catalogue of structured ones."""

from __future__ import annotations

import difflib
import inspect

from .._validate import registering
from .base import Penalty
from .differences import FusedLasso, GraphFused, Monotone, TotalVariation, TrendFilter
from .exclusive import ExclusiveLasso
from .group_lasso import GroupLasso, GroupMax, SparseGroupLasso
from .groups import GroupL2, GroupLinf
from .lasso import ElasticNet, Lasso
from .latent import LatentGroupLasso
from .low_rank import LowRank, MultiTaskLowRank, TensorTraceNorm, TraceNorm
from .nested import TreeGroups
from .outputs import MultiTaskLasso, PerOutput, Unpenalised
from .separable import L1, Box, NonNegative, Ridge
from .slope import Oscar, Slope

__all__ = [
    "CATALOGUE",
    "L1",
    "PENALTIES",
    "Box",
    "ElasticNet",
    "ExclusiveLasso",
    "FusedLasso",
    "GraphFused",
    "GroupL2",
    "GroupLasso",
    "GroupLinf",
    "GroupMax",
    "Lasso",
    "LatentGroupLasso",
    "LowRank",
    "Monotone",
    "MultiTaskLasso",
    "MultiTaskLowRank",
    "NonNegative",
    "Oscar",
    "PerOutput",
    "Ridge",
    "Slope",
    "SparseGroupLasso",
    "TensorTraceNorm",
    "TotalVariation",
    "TraceNorm",
    "TreeGroups",
    "TrendFilter",
    "Unpenalised",
    "why_no_penalty",
]

CATALOGUE: dict[str, type[Penalty]] = {
    "lasso": Lasso,
    "elastic-net": ElasticNet,
    "group-lasso": GroupLasso,
    "latent-group-lasso": LatentGroupLasso,
    "sparse-group-lasso": SparseGroupLasso,
    "tree-groups": TreeGroups,
    "group-max": GroupMax,
    "exclusive-lasso": ExclusiveLasso,
    "fused-lasso": FusedLasso,
    "trend-filter": TrendFilter,
    "total-variation": TotalVariation,
    "graph-fused": GraphFused,
    "low-rank": LowRank,
    "tensor-trace-norm": TensorTraceNorm,
    "multi-task-lasso": MultiTaskLasso,
    "multi-task-low-rank": MultiTaskLowRank,
    "slope": Slope,
    "oscar": Oscar,
    "monotone": Monotone,
    "per-output": PerOutput,
    "unpenalised": Unpenalised,
}


PENALTIES: dict[str, type[Penalty]] = {
    "l1": L1,
    "ridge": Ridge,
    "group-l2": GroupL2,
    "group-linf": GroupLinf,
    "trace-norm": TraceNorm,
    "non-negative": NonNegative,
    "box": Box,
}

register = registering(CATALOGUE, "penalty")  # a decorator: @register("name") enters a penalty of your own


def why_no_penalty(given: object) -> str:
    """What to write where something stands for a penalty that is none: for a name the object of that name."""
    must = "it must be a fenchel penalty"
    if isinstance(given, type) and issubclass(given, Penalty):
        return f"{must}, not its class: {_called(given)}"
    if not isinstance(given, str):
        return f"{must}, e.g. fenchel.L1()"
    known = CATALOGUE | PENALTIES
    plain = {_plain(name): name for name in known} | {_plain(kind.__name__): name for name, kind in known.items()}
    close = difflib.get_close_matches(_plain(given.rpartition(".")[2].partition("(")[0]), plain, 1)
    meant = f"did you mean {_called(known[plain[close[0]]])}? " if close else ""
    return f"{must}, an object and no name; {meant}there are {', '.join(_called(kind) for kind in known.values())}"


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())


def _called(kind: type[Penalty]) -> str:
    """How an object of this class is made: parameters that have no default are named."""
    needed = [one.name for one in inspect.signature(kind).parameters.values() if one.default is one.empty]
    home = "fenchel." if kind.__module__.startswith("fenchel.") else ""
    return f"{home}{kind.__name__}({', '.join(needed)})"
