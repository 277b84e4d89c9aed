r"""The curvature of all coefficients as a matrix: exact when made, corrected by secants, made anew when it misses.

.. math:: H = Z \operatorname{diag}(h) Z^\top / n

Rows whose curvature is nearly zero count for a little (`LEAST`), and where steps were refused for more (`floor`), so
that steps stay bounded. An intercept has its own row; where it is switched off that row is one of the identity.
"""

from __future__ import annotations

import math

import numpy as np

from ...foundation.numerics import NOTHING
from ...kernels.rules import CAREFUL, FLAT, LEAST
from ...prices import Prices
from ...problem import Problem
from ..lower_gram import lower_gram
from ..parts import Matrix, Vector

LIFT_SINGLE = 1e-6  # of the diagonal: makes H definite in spite of rounding, in single precision
SAMPLE = 8  # rows for each feature, in a rough curvature; twice as many there must be; fewer: models that miss more
ALIKE = 10.0  # times the mean of what the rows count for: if none counts for more, some will do
WORTH = 1e6  # nanoseconds that single precision must save
SAME = 0.05  # relative change of a row's curvature that a new matrix of sparse rows may leave out; larger: worse models
ROOM = 1e30  # squares of columns beyond which, or below whose inverse, single precision will not do


class WholeGram:
    """H for one output; see :class:`fenchel.engine.parts.Curvature`.

    Attributes
    ----------
    matrix : H, with secants
    h : the curvatures of the rows that `exact`, H without secants, was made with
    floor : share of the largest curvature that every row counts for
    """

    def __init__(self, problem: Problem, prices: Prices) -> None:
        self.problem, self.prices = problem, prices
        self.matrix: Matrix | None = None
        self.exact: Matrix | None = None
        self.h: Vector = np.zeros(0)
        self.pairs: list[tuple[Vector, Vector, Vector, Vector]] = []  # secants, with the slopes that belong to them
        self.squares: Vector | None = None  # of the rows' lengths
        self.floor, self.precise, self.rough, self.single = 0.0, False, False, False
        self.loaded: tuple[Vector, Matrix] | None = None  # the sum over sparse rows, and the curvatures that are in it

    @classmethod
    def unfit(cls, problem: Problem) -> str | None:
        if problem.vectors > 1 or problem.layout[2].size:
            return "several outputs or tasks"
        return f"{type(problem.loss).__name__} has kinks" if problem.loss.kinked else None

    def price(self) -> float:
        """Nanoseconds of an exact one."""
        data, prices = self.problem.data, self.prices
        if data.sparse:
            return prices.csr_gram * data.pairs + prices.cast * data.p**2
        work = 0.5 * data.n * data.p**2
        pair = prices.syrk32 if self._single() else prices.syrk64
        return work * pair + data.stored * prices.cast

    def _single(self) -> bool:
        """Whether single precision saves something, and will do."""
        data = self.problem.data
        if self.precise or data.sparse:
            return False
        saved = 0.5 * data.n * data.p**2 * (self.prices.syrk64 - self.prices.syrk32)
        squares = data.mean_squares
        some = squares[squares > 0]
        return saved > WORTH and bool(some.size) and some.max() * data.n < ROOM and some.min() > 1 / ROOM

    def begin(self, h: Vector) -> None:
        """Look at the curvatures where a fit begins."""
        flat = not self.problem.loss.quadratic and bool((h <= 0).any()) and self.problem.loss.smoothness is not None
        self.floor = FLAT if flat else 0.0

    @property
    def samples(self) -> bool:
        """Whether some of the rows tell enough of the curvature, far from the answer."""
        problem = self.problem
        return not (problem.data.sparse or problem.loss.quadratic) and problem.n >= 2 * SAMPLE * problem.p

    def _alike(self, curvature: Vector) -> bool:
        """Whether no row counts for much more than the others."""
        if self.squares is None:
            X = self.problem.data.dense
            self.squares = np.einsum("ij,ij->i", X, X, dtype=float)
        size = self.squares * curvature
        return bool(size.max() <= ALIKE * size.mean())

    def make(self, curvature: Vector, rough: bool = False) -> float:
        """H from the curvatures of the rows; a rough one from every so many of them, if these are many. Returns the
        share of the rows that were read, where it is a whole pass or less; a rough one counts for nothing."""
        problem, n, p = self.problem, self.problem.n, self.problem.p
        self.rough = rough and self.samples and self._alike(curvature)
        h = self._raised(curvature)
        H, single, share = np.empty((p + 1, p + 1)), self._single(), 0.0 if self.rough else 1.0
        if problem.data.sparse:
            h, share = self._make_sparse(h, H)
        else:
            self._make_dense(h / n, H, single)
        diagonal = np.diag(H)
        mean = float(diagonal[:p].mean())
        if not problem.fit_intercept:
            H[p], H[:, p] = 0.0, 0.0
            H[p, p] = mean if mean > 0 else 1.0
        places = np.arange(p + 1)
        H[places, places] += (LIFT_SINGLE if single else NOTHING) * (diagonal + 1e-3 * mean) + 1e-300
        self.matrix, self.exact, self.h, self.single, self.pairs = H, H, h, single, []
        return share

    def _raised(self, curvature: Vector) -> Vector:
        """The curvatures of the rows, none of them nearly zero."""
        problem, largest = self.problem, self._largest(curvature)
        if problem.loss.quadratic and not problem.weight.size:
            return curvature
        least = max(LEAST * max(float(curvature.mean()), NOTHING * largest), self.floor * largest)
        weight = problem.weight if problem.weight.size else 1.0
        return np.asarray(np.maximum(curvature, np.maximum(least * weight, 1e-300)))

    def _largest(self, curvature: Vector) -> float:
        smoothness = self.problem.loss.smoothness
        return float(curvature.max()) if smoothness is None else smoothness

    def _make_dense(self, h: Vector, H: Matrix, single: bool) -> None:
        from ...kernels.models import mirrored

        p = self.problem.p
        out = np.zeros((p, p), dtype=np.float32 if single else np.float64, order="F")
        data = self.problem.data
        if self.rough:
            every = data.n // (SAMPLE * p)
            rows = data.dense[::every].astype(float)
            h = h[::every] * (data.n / len(rows))
            H[p, :p] = H[:p, p] = h @ rows
        else:
            rows = data.dense
            H[p, :p] = H[:p, p] = data.transposed_times(h)
        mirrored(lower_gram(rows, h, out), H[:p, :p])
        H[p, p] = h.sum()

    def _change(self, h: Vector) -> Vector:
        """Of the curvatures of sparse rows since their sum was made; zero where it is little."""
        seen = self.loaded[0] if self.loaded is not None else np.zeros(h.size)
        change = h - seen
        change[np.abs(change) <= SAME * np.maximum(np.maximum(h, seen), SAME * float(h.mean()))] = 0.0
        return change

    def renewal(self, curvature: Vector) -> float:
        """Nanoseconds of a matrix for these curvatures of the rows, now that there is one for others: with a loss that
        is flat in places few rows change theirs, and those of sparse data are added one by one."""
        if self.loaded is None:
            return math.inf
        change = self._change(self._raised(curvature))
        return self.price() * np.count_nonzero(change) / change.size if change.any() else math.inf

    def _make_sparse(self, h: Vector, H: Matrix) -> tuple[Vector, float]:
        """The curvatures that are in H, and the share of the rows that had to be added."""
        from ...kernels.newton import sparse_curvature

        change = self._change(h)
        seen, total = self.loaded if self.loaded is not None else (np.zeros(h.size), np.zeros(H.shape))
        share = np.count_nonzero(change) / h.size
        if share:
            H[:] = 0.0
            sparse_curvature(*self.problem.data.arrays, self.problem.layout, change / self.problem.n, H)
            H += H.T
            H[np.diag_indices_from(H)] /= 2
            total = total + H
        self.loaded = seen + change, total
        H[:] = total
        return self.loaded[0], share

    def times(self, d: Vector) -> Vector:
        assert self.matrix is not None
        return np.asarray(self.matrix @ d)

    def along(self, d: Vector, scores: Vector) -> Vector:
        """The change of the rows' slopes along d (whose scores are given) that belongs to H d = Z(it)/n."""
        found = self.h * scores
        for a, of_a, b, of_b in self.pairs:
            found += float(a @ d) * of_a
            found -= float(b @ d) * of_b
        return found

    def learn(
        self, d: Vector, change: Vector, foreseen: Vector, slopes: Vector, slopes_foreseen: Vector
    ) -> tuple[Vector, Vector] | None:
        """A secant: the gradient changed by `change` along d, and H foresaw `foreseen`; the slopes of the rows are
        theirs. Returns what was added to H as a a' - b b'; None where nothing was."""
        from ...kernels.models import add_secant

        assert self.matrix is not None
        curved, expected = float(d @ change), float(d @ foreseen)
        if not (curved > 1e-12 * float(np.linalg.norm(d) * np.linalg.norm(change)) and expected > 0):
            return None
        root, other = math.sqrt(curved), math.sqrt(expected)
        a, b = change / root, foreseen / other
        self.pairs.append((a, slopes / root, b, slopes_foreseen / other))
        if self.matrix is self.exact:
            self.matrix = self.matrix.copy()
        add_secant(self.matrix, a, b)
        return a, b

    def refuse(self) -> None:
        """A step was no use: rows count for more in the next model."""
        self.floor = min(1.0, max(10 * self.floor, CAREFUL))

    def trust(self) -> None:
        """A whole step was taken, as foreseen: rows count for what they are, soon."""
        self.floor = 0.0 if self.floor < 1e-2 else 0.2 * self.floor
