"""What things cost, in nanoseconds by a model.

By a model and not by the clock, so that the same seed always takes the same way. The coefficients are measured and
written to ``prices/calibrated.py``; the functions here know how many of what a problem asks for. A price that is too
high makes the schedule try the thing later, one that is too low makes it try in vain.

Nothing but the problem is looked at: this module imports neither methods nor engines, which may all ask it.
"""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING

import numpy as np

from .calibrated import MEASURED

if TYPE_CHECKING:
    from ..maps import Gram
    from ..problem import Problem

_PROX_ROUNDS = 20  # of the prox in an accelerated step; more: such steps seem dearer, and are taken less often


@dataclasses.dataclass(frozen=True)
class Prices:
    """Nanoseconds of the smallest pieces of work; the name says of what.

    An `entry` is a stored number of the data (or of B', for the penalty and its prox), a `pair` a multiply-add of two
    such numbers of a row or of two columns, a `coordinate` one of B'w, a `call` what is paid however small the problem.
    """

    syrk64: float
    syrk32: float
    gemv: float
    gemv32: float
    copy: float
    cast: float
    potrf: float
    descent: float
    csr_pass: float
    csc_pass: float
    csr_gram: float
    loss: float
    call: float
    loss_closed: float
    loss_iterated: float
    visit_sparse_row: float
    visit_sparse_entry: float
    visit_dense_row: float
    visit_single_entry: float
    visit_double_entry: float
    penalty_call: float
    penalty_coordinate: float
    penalty_entry: float
    penalty_slot: float
    epoch_call: float
    certificate_call: float
    certificate_sparse_entry: float
    certificate_dense_entry: float
    certificate_visit: float
    certificate_coordinate: float
    certificate_free_pair: float
    certificate_free_visit: float
    newton_call: float
    multipliers_call: float
    multipliers_sparse_pair: float
    multipliers_dense_pair: float
    multipliers_factor: float
    multipliers_pair: float
    multipliers_sparse_entry: float
    multipliers_dense_entry: float
    multipliers_row: float
    accelerated_call: float
    accelerated_sparse_entry: float
    accelerated_single_entry: float
    accelerated_double_entry: float
    accelerated_visit: float
    prox_coordinate: float
    prox_entry: float
    prox_grid_coordinate: float
    prox_chain_coordinate: float
    face_call: float
    face_step: float
    face_coordinate: float
    face_visit: float
    face_pair: float
    face_copied_entry: float
    face_product_call: float
    face_kept_entry: float
    face_sparse_entry: float
    face_dense_entry: float
    face_product_coordinate: float
    face_scattered_pair: float
    face_double_pair: float
    face_single_pair: float
    face_plain_entry: float
    face_double_entry: float
    face_single_entry: float
    face_factor: float
    face_solve_pair: float
    face_dual_call: float
    face_dual_coordinate: float
    gram_solve_entry: float
    gram_solve_feature: float


PRICES = Prices(**MEASURED)


# -- epochs and certificates --------------------------------------------------------------------------


def visit_nanoseconds(problem: Problem) -> float:
    """A row, seen by one output."""
    width = problem.data.stored / problem.n
    loss = PRICES.loss_closed if problem.loss.closed_step else PRICES.loss_iterated
    if problem.data.sparse:
        return loss + PRICES.visit_sparse_entry * width + PRICES.visit_sparse_row
    entry = PRICES.visit_single_entry if problem.data.dtype == np.float32 else PRICES.visit_double_entry
    return loss + PRICES.visit_dense_row + entry * width


def penalty_nanoseconds(problem: Problem) -> float:
    """One step of the penalty, and of w."""
    coordinates, entries = PRICES.penalty_coordinate * problem.d, PRICES.penalty_entry * int(problem.map.nnz)
    return PRICES.penalty_call + coordinates + entries + PRICES.penalty_slot * problem.size


def epoch_nanoseconds(problem: Problem) -> float:
    """All rows, in blocks as :func:`block_size` makes them.

    This is what certificates and attempts of other methods are spaced by. It does not ask for the blocks that somebody
    has chosen: runs with other blocks are to differ in these alone.
    """
    blocks = math.ceil(problem.visits / block_size(problem))
    return PRICES.epoch_call + problem.visits * visit_nanoseconds(problem) + blocks * penalty_nanoseconds(problem)


def block_size(problem: Problem, threads: int = 1) -> int:
    """Rows that cost some times as much as one step of the penalty, within 12 and 200 (or as many bytes, if they are
    dense and in single precision: 400).

    Along edges the penalty's steps carry news from feature to feature, so that there they must be many: once, and
    at least 40 blocks. Elsewhere 12 times, and 10 blocks. Threads wait during these steps. Where a step costs
    more than 400 rows (large graphs), half as many rows as it costs and down to 4 blocks: the passes become a few
    more, and each of them much cheaper.
    """
    cost = penalty_nanoseconds(problem) / visit_nanoseconds(problem)
    edges = problem.widest > 1
    rows = (1 if edges else 12) * threads * cost
    blocks = min(max(16_000 / cost, 4), 40 if edges else 10)
    most = 400 if problem.data.dtype == np.float32 and not problem.data.sparse else 200
    return int(min(np.clip(rows, 12, max(most, cost / 2)), np.ceil(problem.visits / blocks)))


def certificate_nanoseconds(problem: Problem) -> float:
    """A certificate with its Z x afresh."""
    work = problem.data.stored * problem.layout[0]
    product = (PRICES.certificate_sparse_entry if problem.data.sparse else PRICES.certificate_dense_entry) * work
    visits, coordinates = PRICES.certificate_visit * problem.visits, PRICES.certificate_coordinate * problem.d
    price: float = PRICES.certificate_call + product + visits + coordinates
    price += product
    free = problem.constraint_count
    if free:
        each = free * (PRICES.certificate_free_pair * free + PRICES.certificate_free_visit)
        price += product + problem.visits * (PRICES.certificate_visit + each)
    return price


# -- Newton's method and its kin ----------------------------------------------------------------------


def multipliers_nanoseconds(problem: Problem) -> float:
    """A Newton step of the method of multipliers."""
    stored, size, outputs = problem.data.stored, problem.size, problem.layout[0]
    if problem.data.sparse:
        curvature = PRICES.multipliers_sparse_pair * outputs * stored * (stored / problem.n)
    else:
        curvature = PRICES.multipliers_dense_pair * problem.vectors * stored * problem.p
    if problem.loss.coupled:  # for every pair of classes, not for every class
        curvature *= 0.5 * (outputs - 1)
    entry = PRICES.multipliers_sparse_entry if problem.data.sparse else PRICES.multipliers_dense_entry
    matrix = PRICES.multipliers_factor * size**3 + PRICES.multipliers_pair * size**2
    rows = PRICES.multipliers_row * (problem.visits + problem.d)
    return PRICES.multipliers_call + curvature + matrix + outputs * entry * stored + rows


def accelerated_nanoseconds(problem: Problem) -> float:
    """A step of accelerated gradients without its prox."""
    work = problem.data.stored * problem.layout[0]
    if problem.data.sparse:
        entry = PRICES.accelerated_sparse_entry
    else:
        entry = PRICES.accelerated_single_entry if problem.data.halves else PRICES.accelerated_double_entry
    return PRICES.accelerated_call + 2 * (entry * work) + PRICES.accelerated_visit * problem.visits


def prox_round_nanoseconds(problem: Problem, *, chain: bool = False, grid: bool = False) -> float:
    """A round of the prox of the whole penalty; along a chain, as if its one sweep were twenty rounds."""
    if chain:
        return PRICES.prox_chain_coordinate * problem.d
    if grid:
        return PRICES.prox_grid_coordinate * problem.d
    return PRICES.prox_coordinate * problem.d + PRICES.prox_entry * int(problem.map.nnz)


def prox_nanoseconds(one_round: float) -> float:
    """The rounds of an accelerated step's prox, one of which costs so much."""
    return _PROX_ROUNDS * one_round


def gram_solve_nanoseconds(gram: Gram) -> float:
    """A solve with B B' by conjugate gradients; 0 where it is direct."""
    return 0.0 if gram.direct else PRICES.gram_solve_entry * gram.nnz + PRICES.gram_solve_feature * gram.p


# -- Newton's method on a face ------------------------------------------------------------------------


def face_least_nanoseconds(problem: Problem, dual_rounds: int) -> float:
    """What an attempt takes on any face, with so many rounds for the dual variables of the penalty."""
    rows = PRICES.face_coordinate * problem.d + PRICES.face_visit * problem.visits
    return PRICES.face_call + rows + face_dual_nanoseconds(problem, dual_rounds)


def face_dual_nanoseconds(problem: Problem, rounds: int) -> float:
    """Rounds that find the dual variables of the penalty."""
    return rounds * (PRICES.face_dual_call + PRICES.face_dual_coordinate * problem.d)


def face_step_nanoseconds(problem: Problem, count: int, product: float) -> float:
    """A step on a face of so many coefficients, beside its matrix; `product` is the price of one with the curvature."""
    own = PRICES.face_coordinate * problem.d + PRICES.face_pair * count**2
    return PRICES.face_step + 2 * product + own


def face_rows_nanoseconds(problem: Problem, count: int, *, keeps: bool) -> float:
    """The rows as a face sees them, where a copy of these is kept."""
    return PRICES.face_copied_entry * problem.n * count if keeps else 0.0


def face_look_nanoseconds(problem: Problem, count: int) -> float:
    """A look at all rows of such a copy."""
    return PRICES.face_kept_entry * problem.n * count


def face_product_nanoseconds(problem: Problem, count: int, rows: int, *, keeps: bool) -> float:
    """A product with the curvature of so many rows."""
    if keeps:
        return PRICES.face_product_call + face_look_nanoseconds(problem, count)
    entry = PRICES.face_sparse_entry if problem.data.sparse else PRICES.face_dense_entry
    per_row = problem.data.stored / problem.n * entry
    return PRICES.face_product_call + rows * per_row + PRICES.face_product_coordinate * problem.d


def face_matrix_nanoseconds(
    problem: Problem, count: int, rows: int, *, single: bool, scattered: bool, plain: bool
) -> float:
    """The curvature of so many rows as a matrix, with its factor."""
    if scattered:
        pairs = (problem.data.stored / problem.n) ** 2
        return rows * PRICES.face_scattered_pair * pairs + PRICES.face_factor * count**3
    pair = PRICES.face_single_pair if single else PRICES.face_double_pair
    copied = PRICES.face_plain_entry
    if not plain:
        copied = PRICES.face_single_entry if single else PRICES.face_double_entry
    return rows * count * (pair * count + copied) + pair * count**3


def face_row_space_nanoseconds(problem: Problem, count: int, rows: int, units: int) -> float:
    """The same with its factor in the space of the rows and of so many units of the penalty."""
    made = (PRICES.copy + PRICES.syrk64 * rows / 2) * rows * count + PRICES.csr_pass * rows * problem.d
    return made + PRICES.potrf * (rows + units) ** 3 / 2


def face_solve_nanoseconds(count: int) -> float:
    """A solve with such a factor."""
    return PRICES.face_solve_pair * count**2
