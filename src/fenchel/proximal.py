"""The proximal operator of a penalty behind its maps: argmin_w 1/2 |w - v|^2 + step * penalty(w).

A closed form where every feature stands in one simple block, one sweep along chains; otherwise the dual problem,
solved by an accelerated proximal gradient method with restarts and stopped by the duality gap. Useful by itself
(denoising, trend filtering, projections), and the inner step of the methods that need the whole penalty at once.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings

import numpy as np
import scipy.sparse as sp

from .losses import Squared
from .maps import row_width, spectral_norm
from .penalties import Penalty, Separable, compiled_prox
from .problem import Problem


def compiled_map(problem: Problem):
    """B' on w with its intercept slots, as CSR with the types that the kernels take."""

    def make():
        matrix = problem.map
        slots = problem.entry_slots.astype(np.uint64)
        return matrix.indptr.astype(np.int64), slots, matrix.data.astype(float)

    return problem.shared("compiled map", make)


class CompiledPenalty:
    """The blocks of a problem's penalty as the arrays and addresses that the kernels take.

    Attributes
    ----------
    map, blocks : tuples
        B' as CSR, and per block its rows, entries per row and addresses; see ``kernels/prox.py``.
    scale, ridge : arrays
        Factor and quadratic of the block, one entry per coordinate of B'w.
    norm : float
        An upper bound on the largest eigenvalue of B B'.
    """

    def __init__(self, problem: Problem, keep=None):
        self.problem = problem
        keep = range(len(problem.blocks)) if keep is None else keep
        bounds = problem.bounds
        counts = np.diff(bounds)
        self.scale = np.repeat([b.scale for b in problem.blocks], counts).astype(float)
        self.ridge = np.repeat([b.ridge for b in problem.blocks], counts).astype(float)
        functions = [problem.blocks[k].function for k in keep]
        self._proxes = [compiled_prox(f) for f in functions]
        self._values = [_compiled_value(f) for f in functions]
        self._arrays = [(f.params, f.index) for f in functions]
        self.blocks = tuple(
            np.array(column, dtype=np.int64)
            for column in (
                [bounds[k] for k in keep],
                [bounds[k + 1] for k in keep],
                [row_width(problem.blocks[k].matrix) for k in keep],
                [f.address for f in self._proxes],
                [f.address for f in self._values],
                [params.ctypes.data for params, _ in self._arrays],
                [index.ctypes.data for _, index in self._arrays],
            )
        )

    @functools.cached_property
    def map(self):
        return compiled_map(self.problem)

    @functools.cached_property
    def norm(self) -> float:
        return spectral_norm(self.problem.map_slots) ** 2

    def steps(self, step):
        """What a prox of all blocks with this step multiplies the point by, and the step of the bare functions."""
        shrink = 1.0 / (1.0 + step * self.ridge)
        return shrink, step * self.scale * shrink

    @property
    def functions(self):
        """The C functions, some of which may call back into Python."""
        return (*self._proxes, *self._values)

    def check(self):
        """Raise what a penalty written in Python has raised inside a kernel."""
        check_callbacks(*self.functions)


class StructuredProx(CompiledPenalty):
    """The proximal operator of a problem's whole penalty, prepared for the kernel.

    A quadratic of the features themselves is taken out of the penalty (it only scales the prox), and blocks
    that hold nothing else are left out.

    Attributes
    ----------
    quadratic : array
        The quadratic of w itself, one entry per entry of w.
    separated : bool
        Whether every feature stands in one block at most, so that the prox has a closed form.
    solver : tuple
        What the kernel takes; see ``kernels/prox.py``.
    """

    def __init__(self, problem: Problem):
        self.quadratic, self.folded = feature_quadratic(problem)
        keep = [k for k, block in enumerate(problem.blocks) if not _is_free(block.function) or _has_pairs(block)]
        super().__init__(problem, keep)
        self.ridge = self.ridge - self.folded
        counts = np.diff(problem.bounds)
        self._rows = _of_blocks(keep, counts)
        units = [first + b.function.units(b.d) for b, first in zip(problem.blocks, problem.bounds, strict=False)]
        self._units = np.concatenate(units or [np.zeros(0)]).astype(np.int64)
        self.separated = self._is_separated()
        closed = np.zeros(len(keep), dtype=bool) if self.separated else self._closed_blocks(keep)
        self._dual_rows = _of_blocks(np.array(keep, dtype=int)[~closed], counts)
        bound = np.ones(problem.d) if self.separated else self._bounds()
        with_dual, without = (tuple(column[which] for column in self.blocks) for which in (~closed, closed))
        self.solver = (self.map, with_dual, self.scale, self.ridge, self.quadratic, bound, self._screened_units(),
                       self.separated, without)  # fmt: skip

    @functools.cached_property
    def _kept(self):
        """B' of the blocks that have dual variables; the other rows are empty."""
        return sp.csr_array(sp.diags_array(self._dual_rows.astype(float)) @ self.problem.map_slots)

    def _closed_blocks(self, keep):
        """Which of the blocks that are kept are simple in w itself, beside others that join features.

        Their features must differ; so that of two on the same features the first one is taken.
        """
        problem, taken = self.problem, np.zeros(self.problem.size, dtype=bool)
        closed = np.zeros(len(keep), dtype=bool)
        if not any(_has_pairs(problem.blocks[k]) for k in keep):
            return closed
        for place, k in enumerate(keep):
            rows = np.arange(problem.bounds[k], problem.bounds[k + 1])
            if self._is_simple(rows):
                features = self.map[1][self.map[0][rows]]
                if not taken[features].any():
                    closed[place] = taken[features] = True
        return closed

    def _is_separated(self):
        return self._is_simple(np.flatnonzero(self._rows))

    def _is_simple(self, rows):
        """Whether these rows of B' only rename and scale features, each at most once and alike within a unit."""
        start, column, value = self.map
        if np.any(start[rows + 1] - start[rows] != 1):
            return False
        entries = start[rows]
        features = column[entries].astype(np.int64)
        if not value[entries].all() or np.bincount(features, minlength=1).max() > 1:
            return False
        return all(_constant(values, self._units[rows]) for values in (value[entries] ** 2, self.quadratic[features]))

    def _bounds(self):
        """diag(c) >= B'B, constant on each unit: the norm, or the bound of Pock and Chambolle (2011) if smaller."""
        size = abs(self._kept)
        c = size @ np.asarray(size.sum(axis=0)).ravel()
        largest = np.zeros(self._units.max(initial=-1) + 1)
        np.maximum.at(largest, self._units, c)
        c = largest[self._units] * (1 + 1e-9)
        # chains and grids meet the cheap bound, and are where the norm itself is slow to find
        if _rough_square_norm(self._kept) < 0.8 * c[self._dual_rows].mean():
            top = spectral_norm(self._kept) ** 2
            c = np.full_like(c, top) if top < c[self._dual_rows].mean() else c
        return np.maximum(c, max(1e-12 * c.max(initial=0.0), 1e-300))

    def _screened_units(self):
        """Units that may be found to be zero before the dual is solved; none where the argument does not hold.

        It needs every block to shrink each of its features towards zero.
        """
        kept = [(b, first) for b, first in zip(self.problem.blocks, self.problem.bounds, strict=False)
                if self._rows[first]]  # fmt: skip
        first, last, radius, absolute = [], [], [], []
        if all(_renames(b.matrix) and _shrinks(b.function) for b, _ in kept):
            for block, begin in kept:
                function = block.function
                groups = not isinstance(function, Separable)
                ends = function.bounds if groups else np.arange(block.d + 1)
                first.append(begin + ends[:-1])
                last.append(begin + ends[1:])
                radius.append(block.scale * function.weights)
                absolute.append(np.full(len(ends) - 1, function.kernel == "group_linf"))
        columns = ((first, np.int64), (last, np.int64), (radius, float), (absolute, bool))
        return tuple(np.concatenate([np.zeros(0), *parts]).astype(kind) for parts, kind in columns)

    def dual(self, slope, w):
        """Subgradients of all blocks, quadratics included, from the kernel's slope at w."""
        return slope + self.folded * self.problem.penalised(w)


def _of_blocks(which, counts):
    """The rows of B' that belong to these blocks."""
    some = np.zeros(counts.size, dtype=bool)
    some[which] = True
    return np.repeat(some, counts)


def check_callbacks(*functions):
    """Raise what a function written in Python has raised inside a kernel."""
    for function in functions:
        if hasattr(function, "check"):
            function.check()


def _compiled_value(function: Penalty):
    """The value of a penalty as a C function, or a callback into Python."""
    from .kernels import compiled, values
    from .kernels.calls import PROX_CTYPE

    if hasattr(values, str(function.kernel)):
        return compiled.compile_prox(getattr(values, function.kernel))

    def value(d, u, out, params, index):
        out[0] = function.value(np.ctypeslib.as_array(u, shape=(d,)).copy())

    return compiled.Callback(PROX_CTYPE, value)


def _renames(matrix):
    """Whether every row of the map is a multiple of one feature."""
    return bool(np.all(np.diff(matrix.indptr) == 1) and np.all(matrix.data != 0))


def _has_pairs(block):
    """Whether some row of the block's map joins several features."""
    return bool(np.any(np.diff(block.matrix.indptr) > 1))


def _is_free(function):
    """Whether the function is zero everywhere: a block that only carries a quadratic."""
    return isinstance(function, Separable) and not (
        function.weights.any() or np.isfinite(function.lower).any() or np.isfinite(function.upper).any()
    )


def _shrinks(function):
    """Whether the function pulls every coordinate towards zero, and its units' dual balls are known here."""
    if isinstance(function, Separable):
        return bool(np.all(function.lower <= 0) and np.all(function.upper >= 0))
    return function.kernel in ("group_l2", "group_linf")


def _rough_square_norm(matrix, rounds=20):
    """The square of the largest singular value, from below and to some per cent: power iterations."""
    vector = np.random.default_rng(0).standard_normal(matrix.shape[1])
    value, back = 0.0, sp.csr_array(matrix.T)
    for _ in range(rounds):
        length = np.linalg.norm(vector)
        if length == 0:
            break
        image = matrix @ (vector / length)
        value, vector = float(image @ image), back @ image
    return value


def _constant(values, labels):
    """Whether values agree, up to rounding, wherever labels do."""
    if not values.size or bool((labels[1:] > labels[:-1]).all()):
        return True
    low, high = np.full(labels.max() + 1, np.inf), np.zeros(labels.max() + 1)
    np.minimum.at(low, labels, values)
    np.maximum.at(high, labels, values)
    return bool(np.all(high[labels] <= low[labels] * (1 + 1e-12)))


def feature_quadratic(problem):
    """The quadratics of single features: their sum per entry of w, and which ridge per row of B' was taken."""
    quadratic, folded = np.zeros(problem.size), np.zeros(problem.d)
    for block, first in zip(problem.blocks, problem.bounds, strict=False):
        if block.ridge > 0 and not _has_pairs(block):
            matrix = problem.map_slots[first : first + block.d]
            quadratic += block.ridge * np.asarray(matrix.power(2).sum(axis=0)).ravel()
            folded[first : first + block.d] = block.ridge
    return quadratic, folded


@dataclasses.dataclass(frozen=True)
class ProxInfo:
    """How a prox was found.

    Attributes
    ----------
    gap : duality gap of the answer, relative to the objective
    iterations : steps of the dual method; 0 for a closed form, 1 for a sweep along chains
    converged : whether the gap is at most `tol`
    dual : array, to be passed as `warm_start` to a prox of the same penalty at another point or step
    """

    gap: float
    iterations: int
    converged: bool
    dual: np.ndarray = dataclasses.field(repr=False)


def prox(v, penalty: Penalty, step: float = 1.0, *, tol: float = 1e-10, max_iter: int = 10_000,
         warm_start=None, return_info: bool = False):  # fmt: skip
    r"""The proximal operator of any fenchel penalty, whatever maps it holds.

    Parameters
    ----------
    v : array
        The point. An array of several dimensions is read in C order, as the maps read it, and the answer has
        its shape.
    penalty : Penalty
    step : float
        Multiplies the penalty.
    tol : float
        Relative duality gap to reach.
    max_iter : int
        Steps of the dual method; a ConvergenceWarning tells when they did not suffice.
    warm_start : array, optional
        `info.dual` of a prox of the same penalty.
    return_info : bool
        Also return a :class:`ProxInfo`.

    Returns
    -------
    w : array
        Zero and equal entries are exact where the penalty makes them so.
    info : ProxInfo
        Only with `return_info`.

    Notes
    -----
    .. math:: \operatorname{prox}(v) = \operatorname*{argmin}_w \tfrac12 \|w - v\|^2 + \eta\, \psi(B^\top w)
              = v - B s, \quad s = \operatorname*{argmin}_s \tfrac12 \|v - B s\|^2 + \eta\, \psi^*(s / \eta).

    By strong convexity the answer is within :math:`\sqrt{2 \cdot \text{gap}}` of the exact one.

    Examples
    --------
    >>> import numpy as np, fenchel as fl
    >>> from fenchel.proximal import prox
    >>> noisy = np.array([0.0, 0.1, -0.1, 1.1, 0.9, 1.0])
    >>> prox(noisy, fl.L1() @ fl.Difference(6), 0.3).round(6)
    array([0.1, 0.1, 0.1, 0.9, 0.9, 0.9])
    """
    v, point = _as_point(v)
    if not isinstance(penalty, Penalty):
        raise ValueError(f"penalty is {penalty!r}; it must be a fenchel penalty, e.g. fenchel.L1()")
    if not (np.isfinite(step) and step >= 0):
        raise ValueError(f"step is {step!r}; it must be a finite number, not negative")
    if not (np.isfinite(tol) and tol >= 0):
        raise ValueError(f"tol is {tol!r}; it must be a finite number, not negative")
    if int(max_iter) != max_iter or max_iter < 1:
        raise ValueError(f"max_iter is {max_iter!r}; it must be a whole number, at least 1")
    p = point.size
    # the prox is p times the minimiser of a mean squared error: its objective, snapping and checks serve here too
    problem = Problem(sp.eye_array(p, format="csr"), point, loss=Squared(), penalty=penalty, alpha=step / p)
    structured = StructuredProx(problem)
    slope = _as_slope(warm_start, problem.d)
    w, gap, steps, converged = _run(structured, point, slope, tol, int(max_iter))
    if not converged:
        from sklearn.exceptions import ConvergenceWarning

        warnings.warn(
            f"prox reached a relative gap of {gap:.1e} in {max_iter} iterations, not tol = {tol:g}; raise max_iter",
            ConvergenceWarning,
            stacklevel=2,
        )
    w = w.reshape(v.shape)
    return (w, ProxInfo(gap, steps, converged, slope)) if return_info else w


def _run(structured, point, slope, tol, max_iter):
    """The prox on the problem's own scale: coefficients, relative gap, steps, and whether it stopped by the gap."""
    from .kernels.prox import structured_prox
    from .lattice import ChainProx, LatticeProx

    problem = structured.problem
    v, info = problem.pack(point), np.zeros(4)
    chain = LatticeProx.make(structured)
    if isinstance(chain, ChainProx):
        w = chain(v, float(problem.n), slope, None, info)
        chain.structure(slope)
        return problem.unpack(w)[0], 0.0, 1, True
    w, u = np.empty(problem.size), np.zeros(problem.d)
    steps = 0
    # where a constraint holds only in the limit, making it exact may cost more than the gap left room for
    for aim in (tol, 0.1 * tol, 0.01 * tol):
        rule = (float(aim), 0.0, max_iter - steps)
        structured_prox(v, float(problem.n), slope, w, u, structured.solver, rule, info)
        structured.check()
        steps += int(info[2])
        closed = bool(info[3])
        if structured.separated:
            return problem.unpack(w)[0], 0.0, steps, closed
        coef, gap = _snap(structured, w, u, info[0], info[1], tol)
        if gap <= tol or not closed or steps >= max_iter:
            break
    return coef, gap, steps, closed


def _snap(structured, w, u, gap, objective, tol):
    """Coefficients with exact zeros and ties, if the gap allows, and the relative gap."""
    problem = structured.problem
    # rows of B' that the prox left alone say nothing about zeros
    u = np.where(structured._rows, u, 1.0)
    plain, snapped = (problem.unpack(candidate)[0] for candidate in (w, problem.snap(w, u)))
    before, after = (problem.n * problem.primal(candidate) for candidate in (plain, snapped))
    floor = max(objective, 1e-300)
    feasible = bool(np.isfinite(before))
    worse = after - (before if feasible else objective)
    if np.isfinite(after) and (not feasible or gap + worse <= max(gap, tol * floor)):
        return snapped, max(gap + worse, 0.0) / floor
    return plain, gap / floor


def _as_point(v):
    v = np.asarray(v)
    if v.dtype == object or not (np.issubdtype(v.dtype, np.number) or v.dtype == bool) or v.size == 0:
        raise ValueError(f"v has dtype {v.dtype} and shape {v.shape}; it must hold numbers")
    if np.issubdtype(v.dtype, np.complexfloating):
        raise ValueError(f"v has dtype {v.dtype}; it must be real")
    point = np.ascontiguousarray(v, dtype=float).ravel()
    bad = np.flatnonzero(~np.isfinite(point))
    if bad.size:
        place = ", ".join(str(i) for i in np.unravel_index(bad[0], v.shape))
        raise ValueError(f"v[{place}] is {point[bad[0]]}; v must be finite")
    return v, point


def _as_slope(warm_start, d):
    if warm_start is None:
        return np.zeros(d)
    slope = np.array(warm_start, dtype=float)
    if slope.shape != (d,) or not np.isfinite(slope).all():
        raise ValueError(
            f"warm_start has shape {slope.shape}; it must be the dual of {d} finite numbers of a like prox"
        )
    return slope
