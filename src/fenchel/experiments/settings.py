"""What is run: data sets, curves, windows, grids; and the fingerprint that tells two runs apart."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from typing import Any

from .. import __version__

TRAIN_ROWS = {"a9a": 32_561, "20news": 12_995}
TEST_ROWS = {"a9a": 16_281, "20news": 3_247}

# seconds inside a method; SDCA-ADMM with the paper's settings reaches rounding in them on a laptop
_WINDOWS = {"n512": 0.4, "n5120": 9.0, "20news": 1.0, "a9a": 4.5, "other": 5.0}
_QUICK_WINDOWS = {"n512": 0.3, "n5120": 2.5, "20news": 0.8, "a9a": 2.0, "other": 5.0}

PAPER = "sdca-admm"
DEFAULT = "sdca-admm-default"
LABELS = {
    PAPER: "SDCA-ADMM (paper)",
    DEFAULT: "SDCA-ADMM (fenchel's default)",
    "batch-admm": "Batch-ADMM",
    "ol-admm": "OL-ADMM",
    "opg-admm": "OPG-ADMM",
    "rda-admm": "RDA-ADMM",
    "rda": "RDA",
    "fobos": "FOBOS",
    "sag": "SAG",
    "sdca": "SDCA",
    "asdca": "ASDCA",
}
_ARTIFICIAL_CURVES = (PAPER, DEFAULT, "batch-admm", "ol-admm", "opg-admm", "rda-admm", "rda")
_REAL_CURVES = (PAPER, DEFAULT, "ol-admm", "opg-admm", "rda-admm", "rda")
ONLINE = ("ol-admm", "opg-admm", "rda-admm", "rda", "fobos")


@dataclasses.dataclass(frozen=True)
class Setup:
    """What the paper says of its experiments.

    Attributes
    ----------
    block_size : int
        Rows of a block.
    rho : float
        Of the augmented Lagrangian.
    graph_c : float
        C1 sqrt(n) of the real problems.
    noise : float
        Standard deviation of what is added to the scores of the artificial problem.
    """

    block_size: int = 50
    rho: float = 0.1
    graph_c: float = 0.01
    noise: float = 0.1


SETUP = Setup()


@dataclasses.dataclass(frozen=True)
class DataSet:
    """One row of the figure.

    Attributes
    ----------
    name : str
        Names its files.
    title : str
    kind : {"artificial", "a9a", "20news", "file"}
    window : float
        Seconds that every method gets.
    rows, side : int
        Of the artificial problem.
    path, edges : str
        Of a file, as given.
    digest : str
        Of the data that was read, so that another file of the same name is not mixed in.
    """

    name: str
    title: str
    kind: str
    window: float
    rows: int = 0
    side: int = 0
    path: str = ""
    edges: str = ""
    digest: str = ""


@dataclasses.dataclass(frozen=True)
class Curve:
    """One line of the figure: a method with its options; `tuned` ones get their step size from the tuner."""

    name: str
    label: str
    method: str
    options: tuple[tuple[str, Any], ...]
    tuned: bool


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The grid, and how it is searched.

    Every point runs for `share` of the window, and with `long` the best eta0 of every schedule and iterate for a
    whole window; from the best of these the neighbours in eta0 do, as long as the objective at the end falls. All of
    it on data of the seed `held_out`; repetitions are numbered from 0.
    """

    eta0: tuple[float, ...] = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    reports: tuple[str, ...] = ("average", "last")
    share: float = 0.1
    long: bool = True
    held_out: int = 1000


@dataclasses.dataclass(frozen=True)
class Studies:
    """The small experiments behind the claims (e), (f) and (g), and rho; no repetitions, no studies."""

    repetitions: int = 3
    rows: int = 256
    side: int = 16
    correlation: float = 0.9
    blocks: tuple[int, ...] = (1, 2, 5, 10, 25)
    order_block: int = 10
    level: float = 1e-6
    max_epochs: int = 6000
    quadratic_rows: int = 512
    quadratic_side: int = 32
    rho: tuple[float, ...] = (0.0001, 0.001, 0.003, 0.01, 0.03, 0.1)


@dataclasses.dataclass(frozen=True)
class Settings:
    """Everything that the results depend on; `levels` are the relative excesses of the report's table."""

    experiment: str
    data: tuple[DataSet, ...]
    curves: tuple[Curve, ...]
    repetitions: int
    tuning: Tuning
    studies: Studies
    points: int = 300
    max_epochs: int = 100_000
    optimum_tol: float = 1e-14
    levels: tuple[float, ...] = (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9)
    quick: bool = False
    version: str = __version__

    def as_dict(self) -> dict[str, Any]:
        content = dataclasses.asdict(self)
        for curve in content["curves"]:
            curve["options"] = dict(curve["options"])
        out: dict[str, Any] = json.loads(json.dumps(content))
        return out

    def fingerprint(self) -> str:
        """A short hash of all settings; where a file stands does not matter, what it holds does."""
        content = self.as_dict()
        for data in content["data"]:
            del data["path"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def curve(self, name: str) -> Curve:
        return next(curve for curve in self.curves if curve.name == name)

    def dataset(self, name: str) -> DataSet:
        return next(data for data in self.data if data.name == name)


# -- the two experiments ----------------------------------------------------------------------------


def artificial(
    *,
    rows: Sequence[int] = (512, 5120),
    side: int = 32,
    repetitions: int | None = None,
    methods: Sequence[str] | None = None,
    window: float | None = None,
    quick: bool = False,
) -> Settings:
    """The paper's Figure 1: the artificial problem at every n in `rows`.

    Parameters
    ----------
    rows : sequence of int
    side : int
        The weights form a side x side matrix.
    repetitions : int, optional
        Ten by default, two with `quick`.
    methods : sequence of str, optional
        Curves; the paper's by default.
    window : float, optional
        Seconds for every method; by default chosen for the paper's sizes.
    quick : bool
        Fewer repetitions, shorter windows and a coarser grid.
    """
    windows = _QUICK_WINDOWS if quick else _WINDOWS
    data = []
    for n in dict.fromkeys(_whole("rows", n, 2) for n in rows):
        default = windows.get(f"n{n}", windows["other"] * n / 5120) if side == 32 else windows["other"]
        data.append(
            DataSet(f"n{n}", f"n = {n}", "artificial", _window(window, default), rows=n, side=_whole("side", side, 2))
        )
    if not data:
        raise ValueError("rows is empty; give at least one number of rows")
    repetitions = _repetitions(repetitions, 2 if quick else 10)
    studies = Studies(repetitions=1, blocks=(1, 5, 25), rho=()) if quick else Studies()
    return Settings("artificial", tuple(data), _curves(methods, _ARTIFICIAL_CURVES), repetitions, _tuning(quick),
                    studies, **_pace(quick))  # fmt: skip


def real(
    datasets: Sequence[str] = ("20news", "a9a"),
    *,
    edges: str | None = None,
    repetitions: int | None = None,
    methods: Sequence[str] | None = None,
    window: float | None = None,
    quick: bool = False,
) -> Settings:
    """The paper's Figure 2: graph-guided regularisation on real data.

    Parameters
    ----------
    datasets : sequence of str
        "20news", "a9a" or the path of a data file. The data is looked up, and read, here.
    edges : str, optional
        File with the graph's edges, for a data file; the graphical lasso finds them by default.
    repetitions : int, optional
        Five by default, two with `quick`.
    methods, window, quick
        See :func:`artificial`.
    """
    from .data import describe

    windows = _QUICK_WINDOWS if quick else _WINDOWS
    data = []
    for name in dict.fromkeys(datasets):
        about = describe(name, edges)
        data.append(DataSet(window=_window(window, windows.get(name, windows["other"])), **about))
    if not data:
        raise ValueError("no data set is given")
    if len({d.name for d in data}) < len(data):
        raise ValueError("two data files have the same name; rename one of them")
    repetitions = _repetitions(repetitions, 2 if quick else 5)
    return Settings("real", tuple(data), _curves(methods, _REAL_CURVES), repetitions, _tuning(quick),
                    Studies(repetitions=0), **_pace(quick))  # fmt: skip


def known_curves() -> list[str]:
    """Names that `methods` may hold."""
    from ..methods import METHODS

    return [PAPER, DEFAULT, *(name for name in METHODS if name != PAPER)]


def _curves(names: Sequence[str] | None, default: tuple[str, ...]) -> tuple[Curve, ...]:
    names = default if not names else tuple(dict.fromkeys(names))
    known = known_curves()
    for name in names:
        if name not in known:
            raise ValueError(f"method is {name!r}; known methods: {', '.join(known)}")
    return tuple(_curve(name) for name in names)


def _curve(name: str) -> Curve:
    from ..methods import METHODS

    if name == PAPER:
        options = {"preset": "paper", "rho": SETUP.rho, "block_size": SETUP.block_size}
    elif name == DEFAULT:
        options = {"newton": True}
    else:
        offered = METHODS[name].OPTIONS
        options = {
            key: value for key, value in (("rho", SETUP.rho), ("block_size", SETUP.block_size)) if key in offered
        }
    method = PAPER if name == DEFAULT else name
    return Curve(name, LABELS.get(name, name), method, tuple(options.items()), name in ONLINE)


def _pace(quick: bool) -> dict[str, Any]:
    return {"quick": True, "points": 120} if quick else {}


def _tuning(quick: bool) -> Tuning:
    return Tuning((0.1, 1.0, 10.0), long=False) if quick else Tuning()


def _repetitions(value: int | None, default: int) -> int:
    return default if value is None else _whole("repetitions", value, 1)


def _window(value: float | None, default: float) -> float:
    if value is None:
        return default
    if not 0 < value < 1e6:
        raise ValueError(f"window is {value!r}; it must be a positive number of seconds")
    return float(value)


def _whole(name: str, value: int, least: int) -> int:
    if int(value) != value or value < least:
        raise ValueError(f"{name} is {value!r}; it must be a whole number, at least {least}")
    return int(value)
