"""The proximal operator of a penalty behind its maps: argmin_w 1/2 |w - v|^2 + step * penalty(w).

A closed form where every feature stands in one simple block, one sweep along chains; otherwise the dual problem,
solved by an accelerated proximal gradient method with restarts and stopped by the duality gap. Useful by itself
(denoising, trend filtering, projections), and the inner step of the methods that need the whole penalty at once.
"""

from __future__ import annotations

import dataclasses
import warnings
from typing import Literal, cast, overload

import numpy as np
import numpy.typing as npt

from .._validate import AnyArray, Array
from .base import Penalty
from .snapping import Snapping
from .structured_prox import StructuredProx


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
    dual: Array = dataclasses.field(repr=False)


class _Denoising(Snapping):
    """The problem whose answer is a prox: half the mean of |w - v|^2 plus step / p times the penalty."""

    def __init__(self, point: Array, penalty: Penalty, step: float) -> None:
        self.point, self.n = point, point.size
        self._compile(penalty, step / self.n, self.n, 1, True)

    def primal(self, coef: Array) -> float:
        """The objective at these coefficients."""
        away = coef - self.point
        return float(np.sum(0.5 * (away * away))) / self.n + self.penalty_value(self.penalised(self.pack(coef)))


@overload
def prox(
    v: npt.ArrayLike, penalty: Penalty, step: float = 1.0, *, tol: float = 1e-10, max_iter: int = 10_000,
    warm_start: npt.ArrayLike | None = None, return_info: Literal[False] = False,
) -> Array: ...  # fmt: skip
@overload
def prox(
    v: npt.ArrayLike, penalty: Penalty, step: float = 1.0, *, tol: float = 1e-10, max_iter: int = 10_000,
    warm_start: npt.ArrayLike | None = None, return_info: Literal[True],
) -> tuple[Array, ProxInfo]: ...  # fmt: skip
def prox(
    v: npt.ArrayLike,
    penalty: Penalty,
    step: float = 1.0,
    *,
    tol: float = 1e-10,
    max_iter: int = 10_000,
    warm_start: npt.ArrayLike | None = None,
    return_info: bool = False,
) -> Array | tuple[Array, ProxInfo]:
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
    given, point = _as_point(v)
    if not isinstance(penalty, Penalty):
        raise ValueError(f"penalty is {penalty!r}; it must be a fenchel penalty, e.g. fenchel.L1()")
    if not (np.isfinite(step) and step >= 0):
        raise ValueError(f"step is {step!r}; it must be a finite number, not negative")
    if not (np.isfinite(tol) and tol >= 0):
        raise ValueError(f"tol is {tol!r}; it must be a finite number, not negative")
    if int(max_iter) != max_iter or max_iter < 1:
        raise ValueError(f"max_iter is {max_iter!r}; it must be a whole number, at least 1")
    problem = _Denoising(point, penalty, float(step))
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
    w = w.reshape(given.shape)
    return (w, ProxInfo(gap, steps, converged, slope)) if return_info else w


def _run(
    structured: StructuredProx, point: Array, slope: Array, tol: float, max_iter: int
) -> tuple[Array, float, int, bool]:
    """The prox on the problem's own scale: coefficients, relative gap, steps, and whether it stopped by the gap."""
    from ..kernels.prox import structured_prox
    from .lattice_prox import LatticeProx

    problem = cast(_Denoising, structured.problem)
    v, info = problem.pack(point), np.zeros(4)
    chain = LatticeProx.make(structured)
    if chain is not None and chain.exact:
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


def _snap(
    structured: StructuredProx, w: Array, u: Array, gap: float, objective: float, tol: float
) -> tuple[Array, float]:
    """Coefficients with exact zeros and ties, if the gap allows, and the relative gap."""
    problem = cast(_Denoising, structured.problem)
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


def _as_point(v: npt.ArrayLike) -> tuple[AnyArray, Array]:
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


def _as_slope(warm_start: npt.ArrayLike | None, d: int) -> Array:
    if warm_start is None:
        return np.zeros(d)
    slope = np.array(warm_start, dtype=float)
    if slope.shape != (d,) or not np.isfinite(slope).all():
        raise ValueError(
            f"warm_start has shape {slope.shape}; it must be the dual of {d} finite numbers of a like prox"
        )
    return slope
