"""Descent over the units of a penalty, on a quadratic that is given by its matrix."""

from __future__ import annotations

import math

from numba import njit

from .rows import LEAN

_INNER = 20  # steps on a group of several coordinates, each with the whole prox of the group
_TILE = 64
_LONGEST = 100_000  # sweeps
_LOOK = 0.05  # of the work of a row, a look at a coordinate


@njit(cache=True, nogil=True, **LEAN)
def mirror(H):
    """The lower triangle becomes that of the upper one."""
    for first in range(0, H.shape[0], _TILE):
        for other in range(0, first + 1, _TILE):
            for i in range(first, min(first + _TILE, H.shape[0])):
                for j in range(other, min(other + _TILE, i)):
                    H[i, j] = H[j, i]


@njit(cache=True, nogil=True, **LEAN)
def bounds_of_units(H, starts, out):
    """For every unit an upper bound for the largest eigenvalue of its part of H: row sums, or the Frobenius norm."""
    for g in range(out.size):
        rows, squares = 0.0, 0.0
        for i in range(starts[g], starts[g + 1]):
            total = 0.0
            for j in range(starts[g], starts[g + 1]):
                total += abs(H[i, j])
                squares += float(H[i, j]) ** 2
            rows = max(rows, total)
        out[g] = min(rows, math.sqrt(squares))


@njit(cache=True, **LEAN)
def _add_row(row, scale, slope):
    for j in range(slope.size):
        slope[j] += scale * row[j]


@njit(cache=True, **LEAN)
def _group_step(H, slope, u, first, last, weight, bend, new, at):
    """new[: last - first] = the best values of a group, nearly, while the others stay where they are."""
    size = last - first
    for a in range(size):
        new[a] = u[first + a]
    for _ in range(_INNER):
        norm = 0.0
        for a in range(size):
            row = H[first + a, first:last]
            total = slope[first + a]
            for b in range(size):
                total += row[b] * (new[b] - u[first + b])
            at[a] = new[a] - total / bend
            norm += at[a] * at[a]
        norm = math.sqrt(norm)
        factor = 1.0 - weight / (bend * norm) if bend * norm > weight else 0.0
        moved, length = 0.0, 0.0
        for a in range(size):
            value = factor * at[a]
            moved += (value - new[a]) ** 2
            length += value * value
            new[a] = value
        if moved <= 1e-6 * length:
            break


@njit(cache=True, nogil=True, **LEAN)
def descend(H, slope, u, starts, weight, lower, upper, bend, enough, most, new, at):
    """Sweeps over the units of 1/2 u'Hu - c'u + psi(u), psi a sum of weight |u_g| with bounds for units of one.

    `slope` is Hu - c and kept up to date; `bend` bounds the curvature of each unit. Ends when no unit moves by more
    than `enough` over its bend. Gives up, and returns False, after the work of adding `most` rows of H to the slope.
    """
    work = 0.0
    for _ in range(_LONGEST):
        largest = 0.0
        for g in range(starts.size - 1):
            first, last = starts[g], starts[g + 1]
            if not bend[g] > 0.0:
                continue
            if last - first == 1:
                point, threshold = u[first] - slope[first] / bend[g], weight[g] / bend[g]
                value = max(point - threshold, 0.0) + min(point + threshold, 0.0)
                new[0] = min(max(value, lower[g]), upper[g])
            else:
                _group_step(H, slope, u, first, last, weight[g], bend[g], new, at)
            for j in range(first, last):
                change = new[j - first] - u[j]
                if change != 0.0:
                    _add_row(H[j], change, slope)
                    largest = max(largest, bend[g] * abs(change))
                    u[j] = new[j - first]
                    work += 1.0
        work += _LOOK * u.size
        if largest <= enough:
            return True
        if work > most:
            return False
    return False
