"""Algorithms, one file each: `start` makes a state, `epoch` advances it by one pass over the data.

The loop over epochs, certificates, limits and callbacks is `fenchel.solve`; a method knows nothing of it.
"""

from __future__ import annotations

from typing import Any

from .._validate import registering
from . import roles
from .baselines.asdca import ASDCA
from .baselines.batch_admm import BatchADMM
from .baselines.fobos import FOBOS
from .baselines.ol_admm import OLADMM
from .baselines.opg_admm import OPGADMM
from .baselines.rda import RDA
from .baselines.rda_admm import RDAADMM
from .baselines.sag import SAG
from .baselines.sdca import SDCA
from .common import DualState, Method, State
from .reweighted import ReweightedSquares
from .roles import EpochReport, PrimalIterate
from .sdca_admm.method import SDCAADMM

__all__ = [
    "ASDCA", "AUTO", "COUPLED_METHODS", "FOBOS", "METHODS", "OLADMM", "OPGADMM", "RDA", "RDAADMM", "SAG", "SDCA",
    "SDCAADMM", "BatchADMM",
    "DualState", "EpochReport", "Method", "PrimalIterate", "ReweightedSquares", "State", "make_method", "register",
]  # fmt: skip

METHODS = {
    method.name: method for method in (SDCAADMM, BatchADMM, OLADMM, OPGADMM, RDAADMM, RDA, FOBOS, SDCA, SAG, ASDCA)
}
# for losses that are one function of all scores, see `reweighted.py`
COUPLED_METHODS: dict[str, Any] = {ReweightedSquares.name: ReweightedSquares}


register = registering(METHODS, "method")  # a decorator: @register("name") enters a method of your own

AUTO = "auto"  # epochs of SDCA-ADMM in turns with an engine, and other ways tried between them


def make_method(name: str, options: dict[str, Any], across_rows: bool = False) -> roles.Method:
    """The method of that name with its options, or a ValueError that lists what there is. `across_rows` tells whether
    the loss is one function of all scores, which no method that visits single rows can serve."""
    if name == AUTO and across_rows:
        name, options = ReweightedSquares.name, {"engine": True} | options
    if name == AUTO:
        name, options = SDCAADMM.name, {"newton": options.get("preset", "default") == "default"} | options
    known: dict[str, Any] = METHODS | COUPLED_METHODS
    if name not in known:
        raise ValueError(f"method is {name!r}; known methods: {', '.join([AUTO, *known])}")
    method = known[name]
    unknown = set(options) - set(method.OPTIONS)
    if unknown:
        raise ValueError(f"{name} has no option {sorted(unknown)[0]!r}; it has {', '.join(method.OPTIONS)}")
    return method(**options)  # type: ignore[no-any-return]
