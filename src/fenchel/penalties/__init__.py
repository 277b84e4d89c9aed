"""Penalties psi: the algebra, a file per family, and the catalogue of names."""

from __future__ import annotations

from .base import Mapped, Penalty, Scaled, Sum, UnitForm, unbounded
from .catalogue import CATALOGUE, PENALTIES, register, why_no_penalty
from .compile import Block, compile_penalty, scale_blocks, unit_blocks
from .differences import FusedLasso, GraphFused, Monotone, TotalVariation, TrendFilter
from .exclusive import ExclusiveL1, ExclusiveLasso
from .group_lasso import GroupLasso, GroupMax, SparseGroupLasso
from .groups import GroupL2, GroupLinf
from .lasso import ElasticNet, Lasso
from .latent import LatentGroupLasso, LatentL2
from .low_rank import LowRank, MultiTaskLowRank, TensorTraceNorm, TraceNorm
from .nested import NestedL2, TreeGroups
from .outputs import MultiTaskLasso, PerOutput, Unpenalised
from .run import compiled_prox, run_prox
from .separable import L1, Box, NonNegative, Ridge, Separable
from .shorthand import Shorthand
from .slope import Oscar, Slope, SortedL1

__all__ = [
    "CATALOGUE",
    "L1",
    "PENALTIES",
    "Block",
    "Box",
    "ElasticNet",
    "ExclusiveL1",
    "ExclusiveLasso",
    "FusedLasso",
    "GraphFused",
    "GroupL2",
    "GroupLasso",
    "GroupLinf",
    "GroupMax",
    "Lasso",
    "LatentGroupLasso",
    "LatentL2",
    "LowRank",
    "Mapped",
    "Monotone",
    "MultiTaskLasso",
    "MultiTaskLowRank",
    "NestedL2",
    "NonNegative",
    "Oscar",
    "Penalty",
    "PerOutput",
    "Ridge",
    "Scaled",
    "Separable",
    "Shorthand",
    "Slope",
    "SortedL1",
    "SparseGroupLasso",
    "Sum",
    "TensorTraceNorm",
    "TotalVariation",
    "TraceNorm",
    "TreeGroups",
    "TrendFilter",
    "UnitForm",
    "Unpenalised",
    "compile_penalty",
    "compiled_prox",
    "register",
    "run_prox",
    "scale_blocks",
    "unbounded",
    "unit_blocks",
    "why_no_penalty",
]
