"""SDCA-ADMM (T. Suzuki): stochastic dual coordinate ascent with the alternating direction method.

Symbols: x, y dual variables of rows and penalty; w primal; Zx, By kept up to date; rho the step;
gamma the multiplier's step; eta_Z, eta_B the linearisation; K blocks of rows. The kernel's table is in
``kernels/sdca_admm.py``.

Presets
-------
default
    rho adapts (below), columns are brought to a common scale by a diagonal metric, and the rows of a
    block are updated one after another with a margin.
paper
    The experiments' values: rho 0.1, gamma 1/n, eta_Z 1.1 sigma_max(Z_I'Z_I), eta_B sigma_max(BB') + 1,
    blocks of 50 in random order, rows of a block together.
theory
    Theorem 1's: gamma 1/(4n), eta_Z just above (1 + 2 gamma n (1 - 1/K)) sigma_max, eta_B just above
    sigma_max(BB').

How rho adapts. Over an epoch w moves by dw and the dual variables by dx, dy. In the metric in which the
method contracts, the two moves weigh |dw|^2 / rho and rho (|dx|_eta^2 + q |Z dx|^2 + q |B dy|^2), with q about a half
(3/4 measures best). A rho far too small leaves w the slow part, one far too large leaves x; so rho is
moved towards balance after every epoch, by a factor whose logarithms are summable over the epochs: in the
end rho is constant and the convergence theory of a fixed rho applies. The moves of the first epochs say more
about the start than about the answer, and the sizes |w| / |x|_eta are soon what they stay (within a factor of 3 of
the best rho on nearly all problems measured): to begin with, rho goes to the geometric mean of the two. Where the
moves mislead for good (piecewise linear problems go in circles), the sizes hold rho, the tighter the longer it takes.
rho only scales the metric, so changing it costs nothing.

Losses that are not smooth make the problem piecewise linear, and the iterates go round the optimum in circles
that shrink slowly. The centre of a circle is their average: it is kept, certified beside the last iterate, and
taken as the new starting point when the better of the two has closed enough of the gap (or when a circle has
taken half of the run), as in restarted primal-dual methods for linear programs (Applegate et al., 2021).
"""

from __future__ import annotations

import contextlib
import math
import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..._validate import AnyArray, Array, Ints, SparseMatrix
from ...data import ROUGH, WIDE
from ...engine.roles import Iterate
from ...maps import row_width, runs_of_rows, spectral_norm
from ...penalties import compiled_prox
from ...prices import block_size
from ...problem import Problem
from ..blocks import block_norms, epoch_parts
from ..roles import EpochReport
from .state import State
from .threads import _apart, _kernels, _threads

_REACH = 30.0  # how far rho may move from |w| / |x|
_ALL = np.zeros(0, dtype=np.int64)  # stands for all visits
_NOTHING_HELD = contextlib.nullcontext()
_LONGEST_REST = 3  # power of two of the epochs
_STUCK = 0.5  # of the last certificate's gap: above it rounding may be what holds the epochs up
_COUPLED = 0.75  # weight of the moves of Z x and B y when rho is balanced
_EARLY = 5  # epochs before any row is rested; over the epoch: the weight of the sizes beside the moves, at most a half


class SDCAADMM:
    """SDCA-ADMM with its parameters; None takes the preset's value.

    Parameters
    ----------
    preset : {"default", "paper", "theory"}
    rho : float
        Constant step; the default preset adapts it when it is not given.
    gamma : float
        Step of w; 1/n and 1/(4n) are the paper's.
    eta_z : float
        eta_Z in units of the block's sigma_max (of the row's norm when rows are updated one by one).
    eta_b : float
        eta_B itself; must exceed sigma_max(BB').
    block_size : int
        Rows per block; 1 is the one-sample method. The presets take 50; the default weighs the cost of rows against
        that of the penalty's step (usually 12 to 200).
    order : {"shuffle", "random", "cyclic"}
        Every block once in random order; K blocks drawn with replacement; or the given order (which
        carries no guarantee).
    within : {"sequential", "joint"}
        Rows of a block one after another, or all at once as in the paper.
    column_power : float
        Columns are scaled by (mean square)^(-power); 0 switches the metric off.
    newton : bool
        Try Newton's method from the iterate after some epochs, and again after twice as many, where loss and penalty
        allow it: on the structure that the iterate shows (:mod:`fenchel.engine.attempts.manifold`), or with the method
        of multipliers (:mod:`fenchel.engine.attempts.multipliers`), in turns where one of them was tried in vain; and
        let an engine that fits (:mod:`fenchel.engine`) go first and take turns with the epochs, with the default
        preset. ``method="auto"`` does, ``method="sdca-admm"`` does not.
    rest : bool
        Visit rows whose dual variable does not move (the ones on the safe side of a margin, say) less often. Only rows
        updated one after another can rest, with a smooth loss. The default preset does.
    n_jobs : int
        Threads; -1 for all cores. They share the columns of dense rows, where there are at least 256 of them, and the
        answer is the same to the last bit for the same number of threads. Where cores are taken by others, one thread
        does the work of all (to the same bits): whichever was faster of late.
    """

    name = "sdca-admm"
    foreseeable = continues = whole_rows = True
    OPTIONS = ("preset", "rho", "gamma", "eta_z", "eta_b", "block_size", "order", "within", "column_power",
               "newton", "rest", "n_jobs")  # fmt: skip

    def __init__(
        self,
        preset: str = "default",
        rho: float | None = None,
        gamma: float | None = None,
        eta_z: float | None = None,
        eta_b: float | None = None,
        block_size: int | None = None,
        order: str | None = None,
        within: str | None = None,
        column_power: float | None = None,
        newton: bool | None = None,
        rest: bool | None = None,
        n_jobs: int | None = None,
    ) -> None:
        if preset not in ("default", "paper", "theory"):
            raise ValueError(f"preset is {preset!r}; it must be 'default', 'paper' or 'theory'")
        for name, value in (("rho", rho), ("gamma", gamma), ("eta_z", eta_z), ("eta_b", eta_b)):
            if value is not None and not (isinstance(value, numbers.Real) and np.isfinite(value) and value > 0):
                raise ValueError(f"{name} is {value!r}; it must be a positive number")
        whole = isinstance(block_size, numbers.Real) and block_size >= 1 and block_size == np.floor(block_size)
        if block_size is not None and not whole:
            raise ValueError(f"block_size is {block_size!r}; it must be a whole number, at least 1")
        if order not in (None, "shuffle", "random", "cyclic"):
            raise ValueError(f"order is {order!r}; it must be 'shuffle', 'random' or 'cyclic'")
        if within not in (None, "sequential", "joint"):
            raise ValueError(f"within is {within!r}; it must be 'sequential' or 'joint'")
        if column_power is not None and not 0 <= column_power <= 0.5:
            raise ValueError(f"column_power is {column_power!r}; it must lie between 0 and 0.5")
        if newton not in (None, True, False):
            raise ValueError(f"newton is {newton!r}; it must be True or False")
        if rest not in (None, True, False):
            raise ValueError(f"rest is {rest!r}; it must be True or False")
        plain = preset == "default"
        self.newton = bool(newton)
        # a step of one's own is tested against the map when the method starts, so that it must start
        self.attempts, self.engines = self.newton, plain and self.newton and eta_b is None
        self.rest = plain if rest is None else rest
        self.n_jobs = _threads(n_jobs)
        self.snaps = plain
        self.preset = preset
        self.adapts = plain and rho is None
        self.rho = rho if rho is not None else None if plain else 0.1
        self.gamma, self.eta_z, self.eta_b = gamma, eta_z, eta_b
        self.block_size = None if block_size is None else int(block_size)
        self.order = order or ("shuffle" if plain else "random")
        self.within = within or ("sequential" if plain else "joint")
        self.column_power = column_power if column_power is not None else 0.25 if plain else 0.0

    def supports(self, problem: Problem) -> str | None:
        """Why the method does not fit the problem; None where it does (this one always does)."""
        return None

    # -- set-up -------------------------------------------------------------------------------------

    def start(self, problem: Problem, rng: np.random.Generator, warm: Mapping[str, Any] | None = None) -> State:
        """Prepare everything that stays fixed, and the state (zero, or a warm start's)."""
        self.problem, self.rows = problem, problem.data.arrays
        self.psi: tuple[Any, ...] | None = None
        self._prepare_rows(problem)
        if self.preset != "default" or self.eta_b is not None:
            self._prepare_penalty(problem)  # otherwise before the first epoch, if there is one
        if warm is None:
            zeros = np.zeros
            rho = self.rho or self._first_rho()
            return State(zeros(problem.visits), zeros(problem.d), zeros(problem.size), zeros(problem.size),
                         zeros(problem.size), zeros(problem.d), float(rho), 0, rng)  # fmt: skip
        if "x" not in warm:
            raise ValueError("warm_start comes from a method without dual variables; sdca-admm cannot continue it")
        visits, d, size = problem.visits, problem.d, problem.size
        for key, length in (("x", visits), ("y", d), ("w", size)):
            have = np.size(warm.get(key, ()))
            if have != length:
                raise ValueError(f"warm_start has {have} entries in {key}, but this problem has {length}")
        warm, resumed = dict(warm), warm.get("resumed", False)
        if "rho" not in warm:  # a point that was found without the method
            warm["rho"] = float(self.rho or self._first_rho())
        if not resumed or "by" not in warm:
            warm |= {"zx": problem.combine(warm["x"]), "by": problem.spread(warm["y"])}
        lengths = {"x": visits, "idle": visits, "y": d, "u": d, "w": size, "zx": size, "by": size}
        state = State.from_dict(warm, rng, lengths)
        if not resumed:
            # another problem: take the point and the step, nothing that was summed over the old data
            if not problem.fit_intercept:
                state.w[problem.intercept_slots] = 0.0
            state.epoch, state.reach_w, state.reach_x, state.caution = 0, 0.0, 0.0, 1.0
            state.mean, state.summed, state.restart_gap = {}, 0, np.inf
            state.idle, state.precise = np.zeros(state.x.size, dtype=np.uint8), False
        if self.rho is not None:
            state.rho = float(self.rho)
        return state

    def _prepare_rows(self, problem: Problem) -> None:
        n = problem.visits
        # in units in which the penalty weighs features alike, so that other units of the columns change nothing
        units = problem.feature_units() if self.column_power else np.ones(problem.feature_slots.size)
        squares = self._column_squares(problem, units)
        scale = np.ones(squares.size)
        seen = squares > 0
        scale[seen] = squares[seen] ** (-2 * self.column_power)
        # an intercept is a column of ones that goes against many others (measured: ten typical columns, if
        # there are many); more would make it the longest part of every row
        typical = np.mean((scale * squares)[seen]) if seen.any() else 1.0
        slot = typical * np.clip(0.1 * seen.sum() / problem.vectors, 1, 10) if self.column_power else 1.0
        self.metric = np.zeros(problem.size)
        self.metric[problem.feature_slots] = scale / units**2
        self.metric[problem.intercept_slots] = slot if problem.fit_intercept else 0.0
        size = self.block_size or (block_size(problem, self.n_jobs) if self.preset == "default" else 50)
        if problem.loss.coupled:
            size = -(-size // problem.layout[0]) * problem.layout[0]  # whole rows
        self.bounds = np.append(np.arange(0, n, size), n).astype(np.int64)
        self.blocks = len(self.bounds) - 1
        self.gamma_n = problem.n * self.gamma if self.gamma is not None else 0.25 if self.preset == "theory" else 1.0
        from ...kernels.compiled import calls_python

        self.loss_step = problem.loss.compiled()
        self.averages = self.adapts and problem.loss.smoothness is None
        sequential = self.within == "sequential" and not calls_python(self.loss_step)
        # where the loss has kinks all rows may stand still while w goes round
        self.rests = (
            sequential and self.rest and problem.loss.smoothness is not None and not problem.loss.coupled
        )  # fmt: skip
        self.sequential = sequential
        self._choose_how(problem, sequential)
        self.kappa = (self.eta_z or 1.5) if sequential else 1.0
        self._eta = None if sequential else self._block_margins(problem)

    @property
    def eta(self) -> Array:
        """The margin of every row. Made when it is asked for: an answer found before all epochs saves the pass."""
        if self._eta is None:
            self._eta = self.kappa * self._row_squares(self.problem)
        return self._eta

    def _row_squares(self, problem: Problem) -> Array:
        """The squared length of every row in the metric, and a trace of the mean for rows that are zero."""
        from ...kernels import rows

        squares = np.empty(problem.visits)
        rows.squares(problem.data.arrays, problem.layout, self.metric, squares)
        return np.maximum(squares, 1e-12 * squares.mean() if squares.any() else 1.0, out=squares)

    def _block_margins(self, problem: Problem) -> Array:
        """The margins of rows that are updated together: their block's norm."""
        n, squares = problem.visits, self._row_squares(problem)
        spread = 1.0 / np.sqrt(squares) if self.preset == "default" else np.ones(n)
        norms = block_norms(problem, self.bounds, self.metric, spread)
        factor = self.eta_z or 1.1
        if self.eta_z is None and self.preset == "theory":
            factor = (1 + 2 * self.gamma_n * (1 - 1 / self.blocks)) * 1.01
        return np.repeat(np.maximum(factor * norms, 1e-12), np.diff(self.bounds)) / spread**2

    def _choose_how(self, problem: Problem, sequential: bool) -> None:
        """How the kernel goes through a block, and by how many threads."""
        dense = not problem.data.sparse
        wide = sequential and dense and problem.single and problem.p >= WIDE
        self.members = self.n_jobs if wide else 1
        self.how = 3 if sequential and problem.loss.coupled else 2 if wide else int(sequential)
        self.copies = wide and self.preset == "default" and problem.data.copied
        self.crew = _kernels()[0].Crew(self.members) if self.members > 1 else None

    @staticmethod
    def _column_squares(problem: Problem, units: Array) -> Array:
        """Mean square of every column divided by its units, evened out between features that a row of B' couples.

        A step along an edge is as short as the longer-scaled of its ends asks for: a nearly empty pixel must
        not slow down its neighbours.
        """
        out: Array = problem.gram.evened(np.tile(problem.data.mean_squares, problem.vectors) / units**2, 3)
        return out

    def _prepare_penalty(self, problem: Problem) -> None:
        from ...kernels.losses import CLOSED

        matrix = problem.map_slots
        self.B = (matrix.indptr.astype(np.int64), matrix.indices.astype(np.uint64), matrix.data.astype(float))
        self.units = np.concatenate(
            [first + b.function.units(b.d) for b, first in zip(problem.blocks, problem.bounds, strict=False)]
            or [np.zeros(0, dtype=np.int64)]
        ).astype(np.int64)
        if self.preset == "default" and self.eta_b is None:
            self.c = self._unit_bounds(matrix)
        else:
            top = spectral_norm(matrix @ sp.diags_array(np.sqrt(self.metric))) ** 2
            eta_b = self.eta_b if self.eta_b is not None else top + 1 if self.preset == "paper" else top * 1.01
            if problem.d and eta_b * 1.0101 <= top:  # the norm is an upper bound, tight to 1 %
                raise ValueError(f"eta_b is {eta_b:g}; it must exceed sigma_max(BB') = {top:g}")
            self.c = np.full(problem.d, max(eta_b, 1e-300))
        self.ridge = np.repeat([b.ridge for b in problem.blocks], np.diff(problem.bounds)).astype(float)
        self.scale = np.repeat([b.scale for b in problem.blocks], np.diff(problem.bounds)).astype(float)
        from ...kernels.compiled import calls_python

        self.proxes = [compiled_prox(b.function) for b in problem.blocks]
        self.callbacks = [function for function in (self.loss_step, *self.proxes) if calls_python(function)]
        self._arrays = [(b.function.params, b.function.index) for b in problem.blocks]
        self.psi = (
            problem.bounds,
            np.array([f.address for f in self.proxes], dtype=np.int64),
            np.array([params.ctypes.data for params, _ in self._arrays], dtype=np.int64),
            np.array([index.ctypes.data for _, index in self._arrays], dtype=np.int64),
            np.array([row_width(b.matrix) for b in problem.blocks], dtype=np.int64),
            *runs_of_rows(matrix, problem.bounds),
            np.array([b.ridge == 0 for b in problem.blocks], dtype=bool),
        )
        params, form = np.array(problem.loss.params, dtype=float), CLOSED.get(str(problem.loss.kernel), 0)
        self.loss = (form, self.loss_step.address, params, params.ctypes.data)
        self.fixed = (self.metric, self.c, problem.n * self.ridge, problem.n * self.scale)
        sums = np.empty((2, self.members, 10))
        pairs = np.zeros((problem.visits if self.how == 2 else 0, 3))
        self.space = (_apart(9, problem.size), _apart(4, problem.d), sums, pairs)

    def _unit_bounds(self, matrix: SparseMatrix) -> Array:
        """A diagonal c, constant on each unit, with diag(c) >= B' M B (Pock and Chambolle, 2011).

        c_e = sum_j |B_je| M_j sum_e' |B_je'|, and its largest value on each unit.
        """
        row, size = self.problem.entries
        across = self.metric * np.bincount(matrix.indices, size, matrix.shape[1])
        c = np.bincount(row, size * across[matrix.indices], matrix.shape[0])
        if c.size:
            largest = np.zeros(self.units.max() + 1)
            np.maximum.at(largest, self.units, c)
            c = largest[self.units]
        out: Array = np.maximum(c * (1 + 1e-6), 1e-300)
        return out

    def _first_rho(self) -> float:
        """Ten times the inverse of what a row sees of its block: within two decades of the best."""
        problem = self.problem
        smooth = problem.loss.smoothness or 1.0
        if self._eta is None and problem.single:  # the mean over rows is a sum over columns
            squares = float(np.append(problem.data.mean_squares, 1.0) @ self.metric)
            return 10.0 / (smooth * (squares or 1.0))
        out: float = 10.0 / (smooth * self.eta.mean() / self.kappa)
        return out

    # -- one pass -----------------------------------------------------------------------------------

    def epoch(self, state: State) -> EpochReport:
        """Visit K blocks."""
        teams, interrupts_held, kernel = _kernels()
        problem = self.problem
        if self.psi is None:
            self._prepare_penalty(problem)
        eta = self.eta * state.caution if state.caution > 1 else self.eta
        rows = self._rows(state)
        visits, bounds = self._needed(state)
        moved, fresh = 0.0, True
        with interrupts_held(self.callbacks) if self.callbacks else _NOTHING_HELD:
            for part in epoch_parts(problem, self.order, len(bounds) - 1, state.rng):

                def visit(
                    team: tuple[int, int, Ints, int], part: Ints = part, fresh: bool = fresh
                ) -> tuple[float, float, float, float, float]:
                    out: tuple[float, float, float, float, float] = kernel.epoch(
                        rows, problem.layout, problem.target, problem.weight, problem.offset, part, bounds, visits,
                        self.how, self.kappa * state.caution, state.x, state.y, state.w, state.zx, state.by, state.u,
                        state.rho, self.fixed, eta, self.gamma_n, self.B, self.psi, self.loss,
                        state.idle, self.space, fresh, team,
                    )  # fmt: skip
                    return out

                found = visit(teams.ALONE) if self.crew is None else self.crew.run(visit, part.size)
                moved, fresh = moved + found[0], False
        share = (visits.size or problem.visits) / problem.visits
        for function in self.callbacks:
            function.check()
        state.epoch += 1
        if not math.isfinite(moved):
            self._restart(state)
            return EpochReport(share)
        if self.adapts:
            state.rho *= self._balance(state, moved, *found[1:])
        if self.averages:
            for key, own in state.averaged().items():
                state.mean[key] = state.mean.get(key, 0.0) + own
            state.summed += 1
        return EpochReport(share, _guess(moved, *found[1:]))

    def _rows(self, state: Any) -> tuple[AnyArray, ...]:
        """The data: in single precision where that is faster and the goal is far.

        The steps themselves are made in double precision, and certificates read the data as it is.
        """
        data, rows = self.problem.data, self.problem.data.arrays
        if self.copies and not state.precise:
            rows = data.single or rows
        if rows is not self.rows:
            self.rows = rows
            self.space[3][:] = 0.0  # the products of rows with each other are remembered: these are other rows
        return rows

    def _needed(self, state: Any) -> tuple[Ints, Ints]:
        """The visits of this epoch, empty for all, and the bounds of their blocks.

        Rows whose dual variable stays where it is (at a bound) are rested: after every two visits that changed nothing
        the next one comes half as often, at the least every eighth epoch.
        """
        if not self.rests or state.epoch < _EARLY:
            return _ALL, self.bounds
        kernel = _kernels()[2]
        visits = kernel.awake(state.idle, state.epoch, _LONGEST_REST)
        if not 0 < visits.size <= 0.9 * state.idle.size:
            return _ALL, self.bounds
        return visits, kernel.block_bounds(visits.size, self.bounds[1])

    # -- what the loop asks and tells ----------------------------------------------------------------

    def iterate(self, state: State) -> Iterate:
        """The point of a state; its arrays are the state's own."""
        return Iterate(state.w, state.x, state.y, state.zx, state.u)

    def step_size(self, state: State) -> float:
        """rho, for the record."""
        return state.rho

    def learn(self, state: State, gap: float, before: float) -> None:
        """A certificate on schedule found this relative gap, after another one."""
        gap = max(gap, 1e-300)  # rounding can make it negative
        state.precise = state.precise or gap <= ROUGH or _STUCK * before < gap < np.inf

    def adopt(self, state: State, iterate: Iterate, gap: float = math.inf) -> None:
        """Go on from a point that somebody proposed, with its relative gap if that is known."""
        state.precise = state.precise or gap <= ROUGH
        iterate.copy_to(state.w, state.x, state.y, state.zx, state.u)
        state.by[:] = self.problem.spread(state.y)
        state.mean, state.summed = {}, 0

    # -- averages of a run that goes in circles -------------------------------------------------------

    def alternative(self, state: State) -> Iterate | None:
        """A second point worth a certificate, or None."""
        if not self.averages or state.summed < 2:
            return None
        w, x, y, zx = (state.mean[key] / state.summed for key in ("w", "x", "y", "zx"))
        return Iterate(w, x, y, zx, self.problem.penalised(w))

    def consider_restart(self, state: State, gap: float, other_gap: float) -> None:
        """Start again from the better of iterate and alternative when it has earned it."""
        closed = min(gap, other_gap) <= 0.3 * state.restart_gap
        if not closed and state.summed < max(16, 0.4 * state.epoch):
            return
        state.restart_gap = min(gap, other_gap)
        if other_gap < gap:
            for key, own in state.averaged().items():
                own[:] = state.mean[key] / state.summed
        state.mean, state.summed = {}, 0

    def _balance(self, state: Any, moved: float, primal: float, dual: float, size_w: float, size_x: float) -> float:
        """The factor that moves rho towards balance (see the head of this file)."""
        dual = moved + _COUPLED * dual
        if not (primal > 0 and dual > 0):
            return 1.0
        state.reach_w, state.reach_x = max(state.reach_w, size_w), max(state.reach_x, size_x)
        balance = math.sqrt(primal / dual)
        if size_w > 0 and size_x > 0:
            trust = min(0.5, _EARLY / state.epoch)
            balance = balance ** (1 - trust) * math.sqrt(size_w / size_x) ** trust
        if state.epoch > _EARLY and state.reach_x > 0:
            size = math.sqrt(state.reach_w / state.reach_x)
            reach = max(2.0, _REACH * min(1.0, 100.0 / state.epoch))
            balance = min(max(balance, size / reach), size * reach)
        limit = 1.0 + 6.0 / state.epoch**1.1
        out: float = min(max((balance / state.rho) ** 0.5, 1 / limit), limit)
        return out

    def _restart(self, state: Any) -> None:
        """Numbers overflowed: begin again from zero with twice the margin."""
        for array in (state.x, state.y, state.w, state.zx, state.by, state.u):
            array[:] = 0.0
        state.mean, state.summed, state.restart_gap = {}, 0, np.inf
        state.caution *= 2.0
        state.rho = float(self.rho or self._first_rho())


def _guess(moved: float, primal: float, dual: float, size_w: float, size_x: float) -> float:
    """A guess at the relative gap, for nothing: the larger of the relative moves of w and x over an epoch.

    Measured on the benchmark's problems, the gap is 0.05 to 6 times as large as long as it exceeds 1e-3.
    """
    if not (size_w > 0 and size_x > 0):
        return math.inf
    return math.sqrt(max(primal / size_w, (moved + _COUPLED * dual) / size_x))
