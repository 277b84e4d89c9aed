"""Theorem 1 in numbers: the constants of SDCA-ADMM's linear rate, and the distance that contracts.

For the parameters of the ``theory`` preset the theorem says

    E R_D(x_T, y_T, w_T) <= (1 - mu/K)^T R_D(x_0, y_0, w_0)

:func:`constants` computes mu and all it is made of, :func:`distance` evaluates R_D. The statement is the
corrected one of ``docs/theory.md``, which lists every difference to the printed theorem with its reason.

===========  ==========================================================================================
n, K         rows; blocks of rows
Z            the data, one column per visit (a row seen by one output), intercept included
B            B' is the penalty's map
rho, gamma   step; step of w (1/(4n) in the theorem; the proof covers up to 1/(2n))
eta_Z        one number per block: H_II = rho Z_I'Z_I + G_II = rho eta_Z,I I
eta_B        Q = rho (eta_B I - B'B)
v            strong convexity of the (weighted) f_i*, smallest over the rows
h            strong convexity of psi
v_psi        strong convexity of psi* along Ker(B), in the weak sense of Assumption 1
sigma_*      extreme eigenvalues of Z'Z, Z_I'Z_I, H = diag(H_II), BB', Q
===========  ==========================================================================================
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg as sla

from .._validate import Array, Ints, MatrixLike
from ..foundation.numerics import AT_ONCE, DENSE, NOTHING
from ..maps import spectral_norm
from ..problem import Point, Problem
from ..solver.result import Result

if TYPE_CHECKING:
    from ..methods.sdca_admm.method import SDCAADMM


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Constants:
    """The constants of Theorem 1 for one problem and one setting; made by :func:`constants`.

    Attributes
    ----------
    n, K : int
        Rows, and blocks of rows.
    bounds : array of K + 1
        First visit of every block, and the number of visits.
    rho, gamma, eta_Z, eta_B
        The method's parameters; `eta_Z` has one entry per block.
    v, h, v_psi : float
        The moduli of Assumption 1. `v_psi` is infinite where Ker(B) = {0}: its term then plays no part.
    v_psi_is_local : bool
        True where `v_psi` is the curvature at the solution and not a global modulus.
    mu_joint : float or None
        The two y-terms taken together, at the solution; see `mu_local`.
    sigma_Z, sigma_blocks, sigma_H, sigma_B_min, sigma_B_max, sigma_Q
        Eigenvalues: the largest of Z'Z, of every Z_I'Z_I and of H; both ends of BB'; the largest of Q.
    reasons : tuple of str
        Why the theorem does not apply; empty where it does.
    """

    n: int
    K: int
    bounds: Ints
    rho: float
    gamma: float
    eta_Z: Array
    eta_B: float
    v: float
    h: float
    v_psi: float
    v_psi_is_local: bool
    mu_joint: float | None
    sigma_Z: float
    sigma_blocks: Array
    sigma_H: float
    sigma_B_min: float
    sigma_B_max: float
    sigma_Q: float
    reasons: tuple[str, ...]

    @property
    def terms(self) -> dict[str, float]:
        """The four numbers whose smallest is mu, by what they make contract.

        ``x``: the dual variables of the rows; ``w``: the primal; ``y_kernel`` and ``y_range``: the dual
        variable of the penalty along Ker(B) and across it.
        """
        n, K, rho, v, sigma_Q = self.n, self.K, self.rho, self.v, self.sigma_Q
        slack = (1 / (n * self.h) if self.h > 0 else math.inf) + rho * self.sigma_B_max + sigma_Q / (2 * K - 1)
        return {
            "x": _ratio(v, 4 * (v + self.sigma_H)),
            "w": n * self.gamma * _ratio(rho * self.sigma_B_min, slack),
            "y_kernel": _ratio(K * self.v_psi, 4 * n * sigma_Q),
            "y_range": _ratio(K * rho * v * self.sigma_B_min, 4 * sigma_Q * (rho * self.sigma_Z + 4 * v)),
        }

    @property
    def printed_terms(self) -> dict[str, float]:
        """The four terms as the paper prints them (with BB' for B'B). They are not a valid bound."""
        n, rho, v, h, sigma_Q = self.n, self.rho, self.v, self.h, self.sigma_Q
        return {
            "x": _ratio(v, 4 * (v + self.sigma_H)),
            "w": h * rho * self.sigma_B_min / (2 * max(1 / n, 4 * h * rho, 4 * h * sigma_Q)),
            "y_kernel": _ratio(self.v_psi, 4 * sigma_Q),
            "y_range": _ratio(n * v * self.sigma_B_min, 4 * sigma_Q * (rho * self.sigma_Z + 4 * v)),
        }

    @property
    def applies(self) -> bool:
        """Whether every condition of the theorem holds."""
        return not self.reasons

    @property
    def limiting(self) -> str:
        """The name of the smallest term."""
        return min(self.terms, key=lambda name: self.terms[name])

    @property
    def mu(self) -> float:
        """The smallest of the four terms; 0 where the theorem does not apply."""
        return min(self.terms.values()) if self.applies else 0.0

    @property
    def mu_local(self) -> float:
        """mu with the two y-terms replaced by `mu_joint`: the rate once the iterates are close.

        Assumption 1 asks for curvature of psi* along all of Ker(B). Where one copy of a feature is active
        and another is not there is none, and v_psi = 0; but the y-step then contracts through the residual.
        Needs the solution, a penalty of l1 norms, group norms and quadratics, and inactive groups
        strictly inside their dual ball; otherwise 0.
        """
        others = [reason for reason in self.reasons if not reason.startswith("v_psi")]
        if others or self.mu_joint is None:
            return self.mu
        terms = self.terms
        return min(terms["x"], terms["w"], self.mu_joint)

    @property
    def contraction(self) -> float:
        """1 - mu/K: the factor of one iteration."""
        return 1 - self.mu / self.K

    @property
    def per_epoch(self) -> float:
        """(1 - mu/K)^K: the factor of K iterations."""
        return math.exp(self.K * math.log1p(-self.mu / self.K))

    def iterations(self, epsilon: float) -> float:
        """Iterations after which the bound on R_D has fallen by the factor `epsilon`; infinite for mu = 0."""
        if not 0 < epsilon < 1:
            raise ValueError(f"epsilon is {epsilon!r}; it must lie between 0 and 1")
        return math.ceil(math.log(epsilon) / math.log1p(-self.mu / self.K)) if self.mu > 0 else math.inf

    def epochs(self, epsilon: float) -> float:
        """The same in passes over the data: K iterations each."""
        return self.iterations(epsilon) / self.K

    def summary(self) -> str:
        """A table of the constants, the four terms and what limits the rate."""
        local = " (local)" if self.v_psi_is_local else ""
        means = {"x": "rows", "w": "primal", "y_kernel": "penalty, Ker B", "y_range": "penalty, off Ker B"}
        lines = [
            f"SDCA-ADMM, Theorem 1: n = {self.n}, K = {self.K} blocks, rho = {self.rho:g}, gamma = {self.gamma:g}",
            f"  eta_Z     {self.eta_Z.min():.4g} to {self.eta_Z.max():.4g}",
            f"  eta_B     {self.eta_B:.6g}",
            f"  moduli    v = {self.v:.4g}, h = {self.h:.4g}, v_psi = {self.v_psi:.4g}{local}",
            f"  spectra   Z'Z <= {self.sigma_Z:.4g}, H <= {self.sigma_H:.4g}, "
            f"{self.sigma_B_min:.4g} <= BB' <= {self.sigma_B_max:.4g}, Q <= {self.sigma_Q:.4g}",
        ]
        for name, value in self.terms.items():
            mark = "  <- limits the rate" if self.applies and name == self.limiting else ""
            lines.append(f"  {name:9} {value:<10.4g} ({means[name]}){mark}")
        lines.append(f"  mu        {self.mu:.4g}; 1 - mu/K = {self.contraction:.8g}; per epoch {self.per_epoch:.6g}")
        if self.mu > 0:
            lines.append(f"  epochs for a factor 1e-6: {self.epochs(1e-6):.4g}")
        elif self.mu_local > 0:
            lines.append(f"  near the solution: mu = {self.mu_local:.4g}")
        lines += [f"  does not apply: {reason}" for reason in self.reasons]
        return "\n".join(lines)

    __repr__ = summary


def constants(problem: Problem, *, rho: float = 0.1, block_size: int = 50, gamma: float | None = None,
              eta_z: float | None = None, eta_b: float | None = None, solution: Any = None) -> Constants:  # fmt: skip
    """The constants of Theorem 1 for a problem, with the parameters the ``theory`` preset would use.

    Parameters
    ----------
    problem : Problem
    rho, block_size, gamma, eta_z, eta_b
        As in :class:`fenchel.methods.sdca_admm.SDCAADMM`; None takes the preset's value.
    solution : Result, or anything with `x`, `y` and `w`, optional
        Needed for `v_psi` where B has a kernel and the penalty has a kink.

    Returns
    -------
    Constants
        ``print`` it for a table. Its `reasons` name every condition that fails; mu is then 0.

    Notes
    -----
    With weights s_i the conjugate of s_i f has modulus 1/(s_i L) for an L-smooth loss, so v belongs to the
    heaviest row; a loss without a Lipschitz gradient has v = 0. h is the smallest quadratic that a block of
    the penalty carries. v_psi is infinite where Ker(B) = {0}; the inverse of the largest curvature for a
    penalty of quadratics; and otherwise a property of the solution: the curvature of psi* there, which
    bounds the rate once the active groups no longer change, and 0 where psi* is flat along Ker(B).
    """
    from ..methods.sdca_admm import SDCAADMM

    method = SDCAADMM("theory", rho=rho, gamma=gamma, eta_z=eta_z, eta_b=eta_b, block_size=block_size)
    method.start(problem, np.random.default_rng(0))
    n, K, rho = problem.n, method.blocks, cast(float, method.rho)  # the preset has a value for it
    eta_Z = method.eta[method.bounds[:-1]]
    sigma_blocks = np.array([_top(problem, i, j) for i, j in zip(method.bounds[:-1], method.bounds[1:], strict=True)])
    sigma_B_min, sigma_B_max, kernel = _map_spectrum(problem)
    eta_B = float(method.c[0]) if problem.d else 0.0
    sigma_Q = rho * (eta_B if kernel else eta_B - sigma_B_min)
    smoothness = problem.loss.smoothness
    v = 1 / (smoothness * problem.weight.max(initial=1.0)) if smoothness else 0.0
    h = min((b.ridge for b in problem.blocks), default=0.0)
    sigma_Z = _top(problem, 0, problem.visits)
    reasons = _failures(problem, method, eta_Z, sigma_blocks, eta_B, v, h, sigma_B_min, sigma_B_max)
    v_psi, local, mu_joint = math.inf, False, None
    if kernel and h == 0:
        v_psi = 0.0
    elif kernel and all(b.function.vanishes(b.d) for b in problem.blocks):
        v_psi = 1 / max(b.ridge for b in problem.blocks)
    elif kernel:
        local = True
        try:
            curvature = _dual_curvature(problem, solution)
            v_psi = _kernel_modulus(problem, curvature)
            if eta_B > sigma_B_max:
                mu_joint = _joint_term(problem, curvature, K, rho, eta_B, v, sigma_Z)
            why = "psi* is flat along Ker(B) at the solution, as where one copy of a feature is idle and one is not"
        except _Unknown as unknown:
            v_psi, why = 0.0, str(unknown)
        if v_psi == 0:
            reasons.append(f"v_psi = 0: {why}")
    return Constants(
        n=n, K=K, bounds=method.bounds, rho=rho, gamma=method.gamma_n / n, eta_Z=eta_Z, eta_B=eta_B, v=v, h=h,
        v_psi=v_psi, v_psi_is_local=local, mu_joint=mu_joint, sigma_Z=sigma_Z, sigma_blocks=sigma_blocks,
        sigma_H=float(rho * eta_Z.max()), sigma_B_min=sigma_B_min, sigma_B_max=sigma_B_max, sigma_Q=sigma_Q,
        reasons=tuple(reasons),
    )  # fmt: skip


def distance(problem: Problem, constants: Constants, state: Any, solution: Any) -> float:
    r"""R_D: what Theorem 1 bounds, zero at the solution.

    Parameters
    ----------
    problem : Problem
    constants : Constants
        For the same problem and parameters as the run.
    state, solution : Result, State, or anything with `x`, `y` and `w`

    Notes
    -----
    .. math:: R_D = F_D(x,y) - F_D(x^*,y^*) + \frac{\|w-w^*\|^2}{2n^2\gamma\rho}
       + \frac{\rho(1-\gamma n/K)}{2n}\|Zx+By\|^2 + \frac{\|x-x^*\|^2_{vI+H}}{2n} + \frac{\|y-y^*\|_Q^2}{2nK},

    .. math:: F_D(x,y) = \frac1n \sum_i f_i^*(x_i) + \psi^*(y/n) - \langle w^*, (Zx+By)/n \rangle.

    The theorem takes the nearest of all optimal y; here the given one is taken. That is the same where y*
    is unique, and an upper bound elsewhere.
    """
    x, y, w, _ = _arrays(state)
    x_star, y_star, w_star, _ = _arrays(solution)
    n, K, rho, gamma = constants.n, constants.K, constants.rho, constants.gamma
    residual = problem.residual(x, y)
    residual_star = problem.residual(x_star, y_star)
    gap = problem.dual(x_star, y_star) - problem.dual(x, y) - w_star @ (residual - residual_star) / n
    H = rho * np.repeat(constants.eta_Z, np.diff(constants.bounds))
    dy = y - y_star
    Q_norm = rho * (constants.eta_B * dy @ dy - np.sum((problem.map_slots.T @ dy) ** 2))
    return float(
        gap
        + np.sum((w - w_star) ** 2) / (2 * n**2 * gamma * rho)
        + rho * (1 - gamma * n / K) / (2 * n) * residual @ residual
        + np.sum((constants.v + H) * (x - x_star) ** 2) / (2 * n)
        + Q_norm / (2 * n * K)
    )


# -- conditions -------------------------------------------------------------------------------------


def _failures(
    problem: Problem,
    method: SDCAADMM,
    eta_Z: Array,
    sigma_blocks: Array,
    eta_B: float,
    v: float,
    h: float,
    sigma_B_min: float,
    sigma_B_max: float,
) -> list[str]:
    """Every condition of the theorem that does not hold, in words."""
    reasons = []
    if problem.fit_intercept:
        reasons.append("B' is not injective: the intercept carries no penalty")
    elif sigma_B_min == 0:
        reasons.append("B' is not injective: some direction of w carries no penalty")
    if v == 0:
        reasons.append(f"v = 0: {problem.loss!r} has no Lipschitz gradient")
    if h == 0:
        reasons.append("h = 0: psi is not strongly convex; add a quadratic (Ridge) to every block")
    if method.gamma_n > 0.5:
        reasons.append(f"gamma is {method.gamma_n:g}/n; the proof needs at most 1/(2n)")
    short = np.flatnonzero(eta_Z <= (1 + 2 * method.gamma_n * (1 - 1 / method.blocks)) * sigma_blocks)
    if short.size:
        reasons.append(
            f"eta_Z of block {short[0]} is {eta_Z[short[0]]:g}, not above "
            f"(1 + 2 gamma n (1 - 1/K)) sigma_max(Z_I'Z_I), sigma_max = {sigma_blocks[short[0]]:g}"
        )
    if problem.d and eta_B <= sigma_B_max:
        reasons.append(f"eta_B is {eta_B:g}, not above sigma_max(BB') = {sigma_B_max:g}")
    return reasons


def _ratio(a: float, b: float) -> float:
    return a / b if b > 0 else math.inf if a > 0 else 0.0


def _arrays(state: Any) -> tuple[Any, Any, Any, Any]:
    """x, y, w and, where known, u = B'w with its exact zeros."""
    state = state.state if isinstance(state, Result) else state
    point = Point.of(state)
    known = state if isinstance(state, dict) else vars(state)
    return point.x, point.y, point.w, known.get("u")


# -- spectra ----------------------------------------------------------------------------------------


def _top(problem: Problem, first: int, last: int) -> float:
    """The largest eigenvalue of Z_I'Z_I for the visits first .. last - 1."""
    outputs, stride, offset, _ = problem.layout
    visits = np.arange(first, last)
    rows = visits // outputs
    parts = visits % outputs * stride + (offset[rows] if offset.size else 0)
    # visits to different parts of w are orthogonal
    return max(_top_of_rows(problem, rows[parts == part]) for part in np.unique(parts))


def _top_of_rows(problem: Problem, rows: Ints) -> float:
    width = problem.p + problem.fit_intercept
    step = max(1, AT_ONCE // max(width, 1))
    chunks = [rows[i : i + step] for i in range(0, len(rows), step)]
    if len(rows) <= min(width, DENSE):
        part = _take(problem, rows)
        gram = part @ part.T
    elif width <= DENSE:
        gram = sum((part.T @ part for part in (_take(problem, chunk) for chunk in chunks)), np.zeros((width, width)))
    else:

        def product(a: Array) -> Array:
            out: Array = sum(part.T @ (part @ np.ravel(a)) for part in (_take(problem, chunk) for chunk in chunks))
            return out

        operator = sla.LinearOperator((width, width), product, dtype=float)
        return float(sla.eigsh(operator, k=1, v0=np.ones(width), tol=1e-9, return_eigenvectors=False)[0])
    gram = gram.toarray() if sp.issparse(gram) else gram
    return float(max(np.linalg.eigvalsh(gram)[-1], 0.0)) if gram.size else 0.0


def _take(problem: Problem, rows: Ints) -> MatrixLike:
    """Rows of X in double precision, with the column of an intercept."""
    if problem.data.sparse:
        X = sp.csr_array(problem.data.arrays, shape=(problem.n, problem.p))[rows].astype(float)
        return sp.hstack([X, np.ones((len(rows), 1))], format="csr") if problem.fit_intercept else X
    X = problem.data.arrays[0][rows].astype(float)
    return np.column_stack([X, np.ones(len(rows))]) if problem.fit_intercept else X


def _map_spectrum(problem: Problem) -> tuple[float, float, bool]:
    """Smallest and largest eigenvalue of BB', and whether B has a kernel."""
    matrix, features = problem.map, problem.map.shape[1]
    gram = problem.gram
    blind = gram.unseen.size + gram.blind.shape[1]
    kernel = problem.d > features - blind
    if gram.is_diagonal:
        low, high = gram.diagonal.min(initial=np.inf), gram.diagonal.max(initial=0.0)
    elif features <= DENSE:
        values = np.linalg.eigvalsh((matrix.T @ matrix).toarray())
        low, high = values[0], values[-1]
    else:
        low, high = 0.0, spectral_norm(matrix) ** 2
        if not blind:
            product = sp.csc_array(matrix.T @ matrix)
            start = np.ones(features)
            low = sla.eigsh(product, k=1, sigma=0, which="LM", v0=start, return_eigenvectors=False)[0]
    injective = not blind and not problem.fit_intercept and features > 0
    return float(low) if injective else 0.0, float(high), kernel


# -- the penalty's conjugate at the solution ---------------------------------------------------------


class _Unknown(Exception):
    """v_psi could not be computed; the message says why."""


def _dual_curvature(problem: Problem, solution: Any) -> Array:
    """The Hessian of psi* at y*/n, (d, d), with inactive groups strictly inside their dual ball."""
    if problem.d > DENSE:
        raise _Unknown(f"not computed for more than {DENSE} coordinates of B'w")
    if solution is None:
        raise _Unknown("it depends on the solution; pass solution=")
    _, _, w, u = _arrays(solution)
    u = problem.map_slots @ w if u is None else u
    u = np.where(np.abs(u) <= 1e-9 * np.abs(u).max(initial=0.0), 0.0, u)
    out = np.zeros((problem.d, problem.d))
    for block, first, last in zip(problem.blocks, problem.bounds[:-1], problem.bounds[1:], strict=True):
        own = block.function.conjugate_curvature(u[first:last], block.scale, block.ridge)
        if own is None:
            raise _Unknown(f"not known for {type(block.function).__name__}")
        out[first:last, first:last] = own
    return out


def _kernel_modulus(problem: Problem, curvature: Array) -> float:
    """The largest v with M >= v P, P the projection on Ker(B) without the directions in which Y* extends."""
    values, vectors = np.linalg.eigh(curvature)
    flat = values <= NOTHING * values[-1]
    kernel = scipy.linalg.null_space(problem.map.toarray().T)
    bends, mix = np.linalg.eigh(kernel.T @ curvature @ kernel)
    kernel = kernel @ mix[:, bends > NOTHING * values[-1]]
    if kernel.shape[1] == 0:
        return math.inf
    if np.abs(kernel.T @ vectors[:, flat]).max(initial=0.0) > 1e-8:
        return 0.0
    seen = vectors[:, ~flat].T @ kernel
    return float(1 / np.linalg.eigvalsh(seen.T @ (seen / values[~flat, None]))[-1])


def _joint_term(
    problem: Problem, curvature: Array, K: int, rho: float, eta_B: float, v: float, sigma_Z: float
) -> float:
    """2 K times the smallest a > 0 with M/(4n) + theta B'B >= a Q: see docs/theory.md."""
    gram = (problem.map @ problem.map.T).toarray()
    theta = _ratio(rho * v, 4 * (rho * sigma_Z + 2 * v))
    Q = rho * (eta_B * np.eye(problem.d) - gram)
    values = scipy.linalg.eigh(curvature / (4 * problem.n) + theta * gram, Q, eigvals_only=True)
    return float(2 * K * values[values > 1e-12 * values[-1]][0])
