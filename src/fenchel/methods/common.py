"""What the baselines share: options, blocks of rows, step sizes, the state and the run of an epoch.

Symbols: w primal, x and y dual variables of rows and penalty, u = B'w; eta the step of w, eta0 its first
value, t the steps taken; L the smoothness of a block's loss; K blocks of rows.
"""

from __future__ import annotations

import dataclasses
import numbers
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias, overload

import numpy as np

from .._validate import Array, Ints
from ..engine.roles import Iterate
from ..problem import Problem
from ..proximal import CompiledPenalty, StructuredProx, check_callbacks, feature_quadratic
from .blocks import block_norms, epoch_parts
from .roles import EpochReport, PrimalIterate

if TYPE_CHECKING:
    pass

_SAMPLED = 10  # blocks that a default step size is taken from


# -- options ----------------------------------------------------------------------------------------


@overload
def positive(name: str, value: float) -> float: ...
@overload
def positive(name: str, value: float | None) -> float | None: ...
def positive(name: str, value: float | None) -> float | None:
    """None, or a positive finite number."""
    if value is None:
        return None
    if not (isinstance(value, numbers.Real) and np.isfinite(value) and value > 0):
        raise ValueError(f"{name} is {value!r}; it must be a positive number")
    return float(value)


@overload
def whole(name: str, value: int) -> int: ...
@overload
def whole(name: str, value: int | None) -> int | None: ...
def whole(name: str, value: int | None) -> int | None:
    """None, or a whole number from 1 on."""
    if value is None:
        return None
    if not (isinstance(value, numbers.Real) and value >= 1 and value == np.floor(value)):
        raise ValueError(f"{name} is {value!r}; it must be a whole number, at least 1")
    return int(value)


def choice(name: str, value: str, known: tuple[str, ...]) -> str:
    if value not in known:
        raise ValueError(f"{name} is {value!r}; it must be {', '.join(map(repr, known[:-1]))} or {known[-1]!r}")
    return value


# -- state ------------------------------------------------------------------------------------------


# arrays of a state, by what they have an entry for: fields of these types begin at zero
PerVisit: TypeAlias = Array
PerSlot: TypeAlias = Array
PerCoordinate: TypeAlias = Array
_SIZES = {"PerVisit": "visits", "PerSlot": "size", "PerCoordinate": "d"}


@dataclasses.dataclass(kw_only=True)
class State:
    """Everything that changes. Plain arrays and numbers, so that a run can be saved and resumed."""

    method: str
    rng: np.random.Generator
    epoch: int = 0
    w: PerSlot
    y: PerCoordinate
    u: PerCoordinate

    @classmethod
    def _vectors(cls) -> dict[str, str]:
        """Names of the arrays, and the problem's attribute that is their length."""
        return {f.name: _SIZES[str(f.type)] for f in dataclasses.fields(cls) if f.type in _SIZES}

    @classmethod
    def fresh(cls, method: str, problem: Problem, rng: np.random.Generator) -> State:
        arrays: dict[str, Any] = {name: np.zeros(getattr(problem, size)) for name, size in cls._vectors().items()}
        return cls(method=method, rng=rng, **arrays)

    def as_dict(self) -> dict[str, Any]:
        saved = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        saved = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in saved.items()}
        return saved | {"rng": self.rng.bit_generator.state}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any], method: str, problem: Problem, rng: np.random.Generator) -> State:
        """The state that `as_dict` gave, for this method and a problem of the same shape."""
        origin = saved.get("method", "sdca-admm")
        if origin != method:
            raise ValueError(f"warm_start comes from {origin}; {method} can only go on from a result of its own")
        for name, size in cls._vectors().items():
            have, want = len(saved[name]), getattr(problem, size)
            if have != want:
                raise ValueError(f"warm_start has {have} entries in {name}, but this problem has {want}")
        values = {f.name: saved[f.name] for f in dataclasses.fields(cls)}
        rng.bit_generator.state = values.pop("rng")
        values = {key: value.copy() if isinstance(value, np.ndarray) else value for key, value in values.items()}
        return cls(rng=rng, **values)

    def point(self) -> Iterate | PrimalIterate:
        """What a certificate is made of; the arrays are the state's own."""
        return PrimalIterate(self.w, self.y, self.u)

    def clear(self) -> None:
        """Back to zero, as at the start."""
        for name in self._vectors():
            getattr(self, name)[:] = 0.0


@dataclasses.dataclass(kw_only=True)
class DualState(State):
    """With a dual variable for every row, and Z x kept up to date."""

    x: PerVisit
    zx: PerSlot

    def point(self) -> Iterate:
        return Iterate(self.w, self.x, self.y, self.zx, self.u)


# -- what the kernels take ----------------------------------------------------------------------------


def live_slots(problem: Problem) -> Array:
    """1 for every entry of w that may move; 0 for intercepts that are switched off."""
    live = np.ones(problem.size)
    if not problem.fit_intercept:
        live[problem.intercept_slots] = 0.0
    return live


def weighted_norms(problem: Problem, bounds: Ints, metric: Array | None = None) -> Array:
    """Largest eigenvalue of Z_I' M Z_I for every block I, rows scaled by the root of their weight."""
    scale = np.ones(problem.visits)
    if problem.weight.size:
        scale = np.repeat(np.sqrt(problem.weight), problem.layout[0])
    return block_norms(problem, bounds, live_slots(problem) if metric is None else metric, scale)


def squared_norms(problem: Problem, metric: Array) -> Array:
    """z_i'M z_i for every visit, with a floor for empty rows."""
    from ..kernels import rows

    squares = np.empty(problem.visits)
    rows.squares(problem.data.arrays, problem.layout, metric, squares)
    return np.maximum(squares, 1e-12 * squares.mean() if squares.any() else 1.0)


def smoothness(problem: Problem, bounds: Ints, *, sampled: bool = False) -> float:
    """The largest Lipschitz constant of a block's unbiased gradient, (K/n) sigma_max(Z_I'Z_I) times the loss's.

    A loss without one counts as 1. `sampled` looks at the first blocks only.
    """
    blocks = len(bounds) - 1
    norms = weighted_norms(problem, bounds[: _SAMPLED + 1] if sampled else bounds)
    largest = (problem.loss.smoothness or 1.0) * blocks / problem.n * float(norms.max())
    return largest if largest > 0 else 1.0


def prox_rule(problem: Problem, tol: float, most: int) -> tuple[float, float, int]:
    """When an inner prox stops: its gap, in units of the objective, relative to the mean loss at zero."""
    return tol, max(problem.mean_loss(np.zeros(problem.visits)), 0.0), most


def constraint_reason(problem: Problem) -> str | None:
    """Why a method whose w meets constraints in the limit only does not fit."""
    for block in problem.blocks:
        if block.function.limits(block.d) is not None:
            return (
                "its iterates meet constraints in the limit only, so that the objective would be infinite all along; "
                "use sdca-admm"
            )
    return None


def smooth_reason(problem: Problem) -> str | None:
    """Why a method that needs a Lipschitz gradient does not fit."""
    if problem.loss.smoothness is None:
        return f"it needs a loss with a Lipschitz gradient, and {type(problem.loss).__name__} has none"
    return None


# -- methods ------------------------------------------------------------------------------------------


class Method:
    """Blocks of rows, compiled functions, and an epoch that visits K blocks.

    Parameters
    ----------
    block_size : int
        Rows per block; the paper takes 50.
    order : {"random", "shuffle", "cyclic"}
        K blocks drawn with replacement, as in the papers; every block once in random order; or as they stand.
    """

    name = ""
    OPTIONS: tuple[str, ...] = ()
    averages = False
    snaps = False  # whether the structure of the penalty's point is made exact before a certificate
    foreseeable = attempts = continues = engines = False  # see fenchel.methods.roles.Method
    _structured: StructuredProx | None = None
    state_type: ClassVar[type[State]] = State

    def __init__(self, block_size: int | None = 50, order: str = "random") -> None:
        self.block_size = whole("block_size", block_size)
        self.order = choice("order", order, ("random", "shuffle", "cyclic"))

    def supports(self, problem: Problem) -> str | None:
        """Why the method does not fit the problem; None where it does."""
        return None

    def iterate(self, state: Any) -> Iterate | PrimalIterate:
        """The point of a state; its arrays are the state's own."""
        out: Iterate | PrimalIterate = state.point()
        return out

    def step_size(self, state: State) -> float:
        """No rho that changes."""
        return float("nan")

    def alternative(self, state: State) -> Iterate | None:
        """No second point worth a certificate."""
        return None

    def consider_restart(self, state: State, gap: float, other_gap: float) -> None:
        """Nothing to start again from."""

    def adopt(self, state: State, iterate: Iterate, gap: float = np.inf) -> None:
        """Nobody proposes a point to these methods."""
        raise NotImplementedError(f"{self.name} goes its own way")

    def learn(self, state: State, gap: float, before: float) -> None:
        """A certificate on schedule found this relative gap; nothing follows from it."""

    def start(self, problem: Problem, rng: np.random.Generator, warm: Mapping[str, Any] | None = None) -> State:
        """Prepare everything that stays fixed, and the state (zero, or a warm start's)."""
        self.problem = problem
        n = problem.visits
        self.bounds = np.append(np.arange(0, n, self.block_size or n), n).astype(np.int64)
        self.blocks = len(self.bounds) - 1
        self.data = (
            problem.data.arrays, problem.layout, problem.target, problem.weight, self.bounds,
            float(problem.fit_intercept), problem.offset,
        )  # fmt: skip
        self._loss_functions = problem.loss.compiled(), problem.loss.compiled_gradient()
        self._loss_params = problem.loss.params
        self.loss = (*(f.address for f in self._loss_functions), self._loss_params.ctypes.data)
        self.prepare(problem)
        if warm is not None:
            return self.state_type.from_dict(warm, self.name, problem, rng)
        return self.state_type.fresh(self.name, problem, rng)

    def prepare(self, problem: Problem) -> None:
        """Whatever else stays fixed; sets `penalty`."""
        self.penalty = CompiledPenalty(problem)

    def epoch(self, state: State) -> EpochReport:
        """Visit K blocks."""
        from ..kernels.compiled import interrupts_held

        with interrupts_held((*self._loss_functions, *self.penalty.functions)):
            for part in epoch_parts(self.problem, self.order, self.blocks, state.rng):
                self.advance(state, part)
        check_callbacks(*self._loss_functions, self.penalty)
        state.epoch += 1
        self.finish(state)
        return EpochReport()

    def advance(self, state: State, order: Ints) -> None:
        """Visit the blocks listed in `order`."""
        raise NotImplementedError

    def finish(self, state: State) -> None:
        """What is to be done after an epoch."""

    def structured(self, problem: Problem) -> StructuredProx:
        """The prox of the problem's whole penalty, prepared once."""
        if self._structured is None or self._structured.problem is not problem:
            self._structured = StructuredProx(problem)
        return self._structured


@dataclasses.dataclass(kw_only=True)
class OnlineState(State):
    """w is what is reported: the running iterate or the mean of all of them."""

    t: int = 0
    eta0: float = 0.0
    caution: float = 1.0
    current: PerSlot
    mean: PerSlot
    dual: PerCoordinate
    mean_dual: PerCoordinate


class Online(Method):
    """A method that sees one block at a time with a step size of its own schedule.

    Parameters
    ----------
    eta0 : float, optional
        First step size. By default the one with which the step after K steps is `factor`/L, in which L is the largest
        smoothness of a block's loss: factor sqrt(K)/L for "sqrt", else factor/L. The class's SCHEDULES hold the
        factors, chosen on the paper's problems.
    schedule : str
        One of SCHEDULES.
    report : {"average", "last"}
        Which iterate is the answer: the mean, which the methods' papers analyse, or the last.
    block_size, order
        See :class:`Method`.

    Notes
    -----
    If the numbers overflow (a step far too long for an exponential loss), the run starts again from zero with
    eta0 divided by four.
    """

    SCHEDULES: ClassVar[dict[str, tuple[str, float]]] = {}  # name: the kernel's name, and factor
    OPTIONS: tuple[str, ...] = ("eta0", "schedule", "report", "block_size", "order")
    state_type: ClassVar[type[State]] = OnlineState

    def __init__(
        self,
        eta0: float | None = None,
        schedule: str = "sqrt",
        report: str = "average",
        block_size: int | None = 50,
        order: str = "random",
    ) -> None:
        super().__init__(block_size, order)
        self.eta0 = positive("eta0", eta0)
        self.schedule = choice("schedule", schedule, tuple(self.SCHEDULES))
        self.report = choice("report", report, ("average", "last"))

    def start(self, problem: Problem, rng: np.random.Generator, warm: Mapping[str, Any] | None = None) -> Any:
        state: Any = super().start(problem, rng, warm)
        if self.eta0 is not None:
            state.eta0 = self.eta0
        elif warm is None:
            growth = np.sqrt(self.blocks) if self.schedule == "sqrt" else 1.0
            state.eta0 = self.SCHEDULES[self.schedule][1] * growth / smoothness(problem, self.bounds, sampled=True)
        return state

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        self.strength = float(feature_quadratic(problem)[0][problem.feature_slots].min())

    def rule(self, state: Any, *more: Any) -> tuple[Any, ...]:
        """Kind of step size, eta0 and strong convexity, and what the kernel wants beside them."""
        from ..kernels.baselines import STEP_SIZES

        kind = STEP_SIZES[self.SCHEDULES[self.schedule][0]]
        return (kind, state.eta0 / state.caution, self.strength, *more)

    def advance(self, state: Any, order: Ints) -> None:
        self.visit(state, order)
        state.t += len(order)

    def visit(self, state: State, order: Ints) -> None:
        """One step for each of the blocks listed in `order`."""
        raise NotImplementedError

    def finish(self, state: Any) -> None:
        if not np.isfinite(state.current).all():
            state.clear()
            state.t, state.caution = 0, 4.0 * state.caution
            return
        last = self.report == "last"
        state.w[:] = state.current if last else state.mean
        state.y[:] = self.problem.n * self.subgradient(state.dual if last else state.mean_dual, state.w)

    def subgradient(self, dual: Array, w: Array) -> Array:
        """The subgradient of the penalty at B'w that belongs to the method's own dual variable."""
        raise NotImplementedError


DESCENT = {"sqrt": ("sqrt", 1.5), "strong": ("strong", 1.5), "constant": ("constant", 1.5)}


class OnlineADMM(Online):
    """An online method that splits w and u = B'w; adds the step rho of the multiplier to Online's options."""

    OPTIONS = ("rho", *Online.OPTIONS)

    def __init__(
        self,
        rho: float = 0.1,
        eta0: float | None = None,
        schedule: str = "sqrt",
        report: str = "average",
        block_size: int | None = 50,
        order: str = "random",
    ) -> None:
        super().__init__(eta0, schedule, report, block_size, order)
        self.rho = positive("rho", rho)

    def supports(self, problem: Problem) -> str | None:
        return constraint_reason(problem)

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        self.split = (self.penalty.map, self.penalty.blocks, *self.penalty.steps(1.0 / self.rho))

    def arguments(self, state: Any, order: Ints) -> tuple[Any, ...]:
        """What the kernels of all of them take first."""
        rule = self.rule(state, self.rho, self.penalty.norm)
        return (
            self.data, order, self.loss, self.problem.n, self.split, rule, state.t, state.current, state.u, state.dual,
            state.mean, state.mean_dual,
        )  # fmt: skip

    def subgradient(self, dual: Array, w: Array) -> Array:
        return -dual


class OnlineProximal(Online):
    """An online method with the prox of the whole penalty; adds its tolerance to Online's options.

    Parameters
    ----------
    prox_tol : float
        Duality gap at which the inner prox stops, relative to the mean loss at zero.
    eta0, schedule, report, block_size, order
        See :class:`Online`.
    """

    OPTIONS = (*Online.OPTIONS, "prox_tol")
    dual_averaging = False
    penalty: StructuredProx

    def __init__(
        self,
        eta0: float | None = None,
        schedule: str = "sqrt",
        report: str = "average",
        block_size: int = 50,
        order: str = "random",
        prox_tol: float = 1e-6,
    ) -> None:
        super().__init__(eta0, schedule, report, block_size, order)
        self.prox_tol = positive("prox_tol", prox_tol)

    def supports(self, problem: Problem) -> str | None:
        return None if self.structured(problem).separated else constraint_reason(problem)

    def prepare(self, problem: Problem) -> None:
        super().prepare(problem)
        self.penalty = self.structured(problem)
        self.prox_rule = prox_rule(problem, self.prox_tol, 200)

    def visit(self, state: Any, order: Ints) -> None:
        from ..kernels.baselines import proximal_epoch

        rule = self.rule(state, self.prox_rule)
        proximal_epoch(
            self.data, order, self.loss, self.problem.n, self.penalty.solver, rule, state.t, state.current, state.u,
            state.dual, state.mean, state.mean_dual, self.averaged(state), self.dual_averaging,
        )  # fmt: skip

    def averaged(self, state: Any) -> Array:
        """The mean gradient of a method that averages gradients; the kernel does not touch it for others."""
        mean: Array = state.mean
        return mean

    def subgradient(self, dual: Array, w: Array) -> Array:
        return self.penalty.dual(dual, w)
