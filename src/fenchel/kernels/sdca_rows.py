"""Visits to whole rows, for losses that see all scores of a row together; symbols as in ``sdca_admm.py``."""

from __future__ import annotations

from .caching import WITHIN, njit
from .calls import call_step
from .rows import LEAN, row_add_scaled, row_dot_fresh


@njit(cache=True, **LEAN, **WITHIN)
def visit_whole_rows(rows, layout, target, weight, offset, block, kappa_R, rho, eta, x, v, loss, scratch):
    """The rows of a block one after another: the products of a row with all its parts of v, one step of the loss for
    all its dual variables, and their changes in v. Blocks begin and end with a row."""
    first, last, _ = block
    outputs, stride, _, slot = layout
    new, point, bend, goal, mass = scratch
    moved = 0.0
    for begin in range(first, last, outputs):
        row = begin // outputs
        own = weight[row] if weight.size > 0 else 1.0
        for k in range(outputs):
            i, start = begin + k, k * stride
            bend[k] = rho * eta[i]
            product = row_dot_fresh(rows, row, v, start) + v[start + slot]
            if offset.size > 0:
                product += offset[i]
            point[k] = x[i] + product / bend[k]
            new[k], goal[k], mass[k] = x[i], target[i], own
        call_step(loss[1], outputs, new, point, bend, goal, mass, loss[3])
        for k in range(outputs):
            i, start = begin + k, k * stride
            change = new[k] - x[i]
            if change != 0.0:
                x[i] = new[k]
                moved += eta[i] * change * change
                row_add_scaled(rows, row, -change, v, kappa_R, start)
                v[start + slot] -= kappa_R[start + slot] * change
    return moved
