"""Penalties by name: the building blocks, and the catalogue of structured ones."""

from __future__ import annotations

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
