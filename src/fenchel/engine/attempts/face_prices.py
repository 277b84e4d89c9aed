"""What Newton steps on a face cost, by the price model, and the cheapest way of making them."""

from __future__ import annotations

import functools

import numpy as np
import scipy.sparse as sp

from ... import prices
from ...foundation.numerics import DENSE
from ...problem import Problem
from ..accuracy import FIRM, PROJECTIONS

_FEW = 0.5  # of the rows, what conjugate gradients may have to read
_MAKES_UP = 4.0  # products with the curvature, that a matrix in single precision may cost more
_FAINT = 0.3  # of the mean bend of a row: those below it hold some per cent of all, and may be half of the rows
REUSES = 12  # rounds of conjugate gradients with the factor of an earlier curvature


class FacePrices:
    """Of one problem; `faces` are how many an attempt expects, `budget` what it may cost."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.units, self.unit_count = problem.units
        # no feature stands in two coordinates of B'w, and each of those has one: there is but one choice of y
        single = problem.map.nnz == problem.d == np.count_nonzero(problem.gram.diagonal)
        self.alone = bool(single and problem.gram.is_diagonal)
        self.faces, self.budget = 1, np.inf
        self.trust = True  # in single precision

    def _bend(self, scores):
        """The second derivative of the loss, divided by n, for every visit."""
        problem = self.problem
        return problem._weights() / problem.n * problem.loss.curvature(problem.seen(scores), problem.target)

    @functools.cached_property
    def bends_everywhere(self) -> bool:
        """Whether the loss has no flat parts, as far as three looks tell."""
        looks = (0.0,) if self.problem.loss.quadratic else (-10.0, 0.0, 10.0)
        return all(np.all(self._bend(np.full(self.problem.visits, score)) > 0) for score in looks)

    def _matrix_price(self, face, rows, dtype=float):
        """Nanoseconds, by a model, for the curvature as a matrix with its factor; in the space of the rows, if that is
        cheaper."""
        return min(self._whole_price(face, rows, dtype), self._row_space_price(face, rows))

    def _row_space_price(self, face, rows):
        """The same in the space of the rows; infinite where the penalty does not bend coefficients one by one."""
        if not self._bends_singly or face.turn is not None or rows >= face.count or not sp.issparse(face.map):
            return np.inf
        return prices.face_row_space_nanoseconds(self.problem, face.count, rows, self._large_units)

    @functools.cached_property
    def _large_units(self):
        """Units of several coordinates."""
        return int(np.count_nonzero(np.bincount(self.units, minlength=self.unit_count) > 1))

    @functools.cached_property
    def _bends_singly(self):
        """Whether every coordinate of B'w is one feature, and some unit has several: then no curvature couples two
        features but along the direction of a unit."""
        return bool(np.all(self.problem.widths == 1)) and self._large_units > 0 and self.problem.single

    def _whole_price(self, face, rows, dtype=float):
        """Nanoseconds for the curvature as a matrix of all coefficients, with its factor."""
        return prices.face_matrix_nanoseconds(
            self.problem, face.count, rows,
            single=dtype is not float, scattered=face.data.scattered, plain=face.data.plain,
        )  # fmt: skip

    def _product_price(self, face, rows):
        """The same for one product with it."""
        return prices.face_product_nanoseconds(self.problem, face.count, rows, keeps=face.data.keeps)

    def _single(self, face, rows, thin=False):
        """Whether to form it in single precision first, and make up for that with some products (as has to be done
        where the matrix is `thin` anyway)."""
        if not self.trust or face.data.scattered or rows < FIRM * face.count:
            return False
        saved = self._matrix_price(face, rows) - self._matrix_price(face, rows, np.float32)
        return saved > (0.0 if thin else _MAKES_UP * self._product_price(face, rows))

    def _direct(self, face, rows):
        """Whether to form the curvature as a matrix: where that is cheaper than some eighty products with it."""
        cheap = self._matrix_price(face, rows) <= 80 * self._product_price(face, rows) + 1e6
        small = face.count <= DENSE
        if not small and self._row_space_price(face, rows) < np.inf:
            small = rows + self._large_units <= DENSE
        return small and self.problem.single and cheap

    def _foresee(self, face, z, bent):
        """Nanoseconds that the steps from here may take: a matrix and up to fifteen products, or a hundred products."""
        problem = self.problem
        look = self._product_price(face, problem.n)
        if face.data.keeps:
            look = prices.face_look_nanoseconds(problem, face.count)
        least = 12 * look + self._face_price(face) + self.least_nanoseconds
        if least > self.budget:
            return least
        # at zero every row may be bent, whatever it is there
        rows = problem.visits
        if not self.bends_everywhere and (face.map @ z).any():
            rows = np.count_nonzero(self._bend(problem.scores(face.lift(z))))
        if face.count > rows and not bent.diagonal.any():
            return np.inf  # more coefficients than anything holds: the zeros of the answer are not found yet
        product = self._product_price(face, rows)
        if self._direct(face, rows):
            single = self.faces == 1 and self._single(face, rows)
            matrix = self._matrix_price(face, rows, np.float32 if single else float)
            # where there are several faces one of them soon becomes the next, and its factor is of no use any more
            reuse = (0.25 if self.faces == 1 else 0.5) * REUSES * (product + prices.face_solve_nanoseconds(face.count))
            return least + self.faces * (matrix + 5 * min(matrix, reuse))
        if rows <= _FEW * problem.visits:
            return least + self.faces * 110 * product
        return np.inf  # many products with most of the rows: as many passes as the epochs would take

    @property
    def least_nanoseconds(self) -> float:
        """Nanoseconds that an attempt takes on any face."""
        return prices.face_least_nanoseconds(self.problem, self._dual_rounds)

    def _face_price(self, face):
        """Nanoseconds to see the rows as a face sees them."""
        return prices.face_rows_nanoseconds(self.problem, face.count, keeps=face.data.keeps)

    @property
    def _dual_rounds(self):
        """Rounds to find the dual variables of the penalty."""
        return 2 if self.alone else PROJECTIONS

    def _strong(self, face, bend):
        """The bends of which a matrix is made: without the faint ones, where some products make up for these."""
        strong = np.where(bend >= _FAINT * bend.mean(), bend, 0.0)
        some, rows = np.count_nonzero(strong), np.count_nonzero(bend)
        if not self.trust or face.data.scattered or some < FIRM * face.count:
            return bend
        saved = self._matrix_price(face, rows) - self._matrix_price(face, some)
        return strong if saved > _MAKES_UP * self._product_price(face, rows) else bend
