"""What a run of SDCA-ADMM holds between epochs."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ..._validate import Array

_ARRAYS = ("x", "y", "w", "zx", "by", "u", "idle")
_AVERAGED = {"x", "y", "w", "zx", "by"}
_NUMBERS = ("rho", "epoch", "caution", "reach_w", "reach_x", "summed", "restart_gap", "precise")


@dataclasses.dataclass
class State:
    """What the method changes. Plain arrays and numbers, so that a run can be saved and resumed.

    `epoch` is the age of the method's own adaptation: rho moves less and less, and rows rest after some epochs.
    """

    x: Array
    y: Array
    w: Array
    zx: Array
    by: Array
    u: Array
    rho: float
    epoch: int
    rng: np.random.Generator
    caution: float = 1.0
    reach_w: float = 0.0  # largest |w|^2 and |x|^2 so far, in the metric
    reach_x: float = 0.0
    mean: dict[str, Array] = dataclasses.field(default_factory=dict)  # sums of w, x, y, zx, by since the last restart
    summed: int = 0
    restart_gap: float = np.inf
    precise: bool = False  # whether the data have to be read in double precision from here on
    idle: npt.NDArray[np.uint8] | None = None  # visits in a row that changed nothing, up to 255

    def __post_init__(self) -> None:
        if self.idle is None:
            self.idle = np.zeros(self.x.size, dtype=np.uint8)

    def averaged(self) -> dict[str, Array]:
        """The arrays whose averages are a second point worth a certificate, by their names."""
        return {"x": self.x, "y": self.y, "w": self.w, "zx": self.zx, "by": self.by}

    def as_dict(self) -> dict[str, Any]:
        out = {key: getattr(self, key) for key in _ARRAYS}
        out = {key: value.copy() for key, value in out.items()}
        out |= {key: getattr(self, key) for key in _NUMBERS}
        out |= {f"mean_{key}": value.copy() for key, value in self.mean.items()}
        return out | {"rng": self.rng.bit_generator.state}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], rng: np.random.Generator, sizes: Mapping[str, int]) -> State:
        """The state that `as_dict` gave, or a part of it; `sizes` has the length of every vector. Kernels count on
        what is checked here: a file that was read may hold anything."""
        arrays = {key: saved[key] for key in _ARRAYS if key in saved}
        mean = {key[5:]: value for key, value in saved.items() if key.startswith("mean_")}
        numbers = {key: saved[key] for key in _NUMBERS if key in saved}
        needed = [field.name for field in dataclasses.fields(cls) if field.default is dataclasses.MISSING]
        lost = next((key for key in needed if key not in (*arrays, *numbers, "rng", "mean")), None)
        if lost is not None or (mean and set(mean) != _AVERAGED):
            raise ValueError(f"warm_start is not whole: its state has no {lost or 'means'!r}")
        for key, value in (*arrays.items(), *mean.items()):
            kind = np.uint8 if key == "idle" else np.float64
            if getattr(value, "shape", None) != (sizes[key],) or value.dtype != kind:
                raise ValueError(f"warm_start is damaged: its {key!r} must be a vector of {sizes[key]} numbers")
        for key, value in numbers.items():
            if not isinstance(value, (int, float, np.number)) or not (value == value and value >= 0):
                raise ValueError(f"warm_start is damaged: its {key!r} is {value!r}")
        if "rng" in saved:
            try:
                rng.bit_generator.state = saved["rng"]
            except (ValueError, TypeError, KeyError, OverflowError, AttributeError) as error:
                raise ValueError(
                    f"warm_start is damaged: the state of its random numbers is not one ({error})"
                ) from None
        copies = ({key: value.copy() for key, value in part.items()} for part in (arrays, mean))
        vectors, sums = copies
        return cls(**vectors, **numbers, mean=sums, rng=rng)
