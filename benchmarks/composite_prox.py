"""The prox of a whole penalty, for peers that bring a smooth part and ask for one prox: ours, in numba.

    argmin_w  |w - v|^2 / 2 + step * sum_k norms_k(A_k w)

What is closed on the features (an l1 norm, groups that do not overlap, or both) is applied in closed form; the other
terms enter through their dual, which is solved by FISTA with restarts, warm-started, until its gap is a small share of
the last move of w, or for so many turns, a few at first and more from call to call: the dual point goes on from one
call to the next, so that early calls gain little by more turns (measured: 30 are enough down to 1e-6, and 1e-9 needs
hundreds). Without other terms the prox is exact.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from numba import njit
from objective import Stack


class CompositeProx:
    """Call it with (v, step); it keeps the dual point from call to call, and `reset` forgets it."""

    def __init__(self, objective, share=1e-2, fewest=30, most=300):
        self.share, self.fewest, self.most = share, fewest, most
        closed, others = objective.split
        p = objective.p
        # single features count as groups of one
        families = [term.groups or np.arange(p)[:, None] for term in closed.terms]
        groups = [group for family in families for group in family]
        self.members = np.concatenate([np.zeros(0, np.int64), *groups])
        self.bounds = np.cumsum([0, *(len(group) for group in groups)])
        self.weights = np.concatenate([np.zeros(0), *(term.weights for term in closed.terms)])
        stack = sp.vstack([term.matrix for term in others], format="csr") if others else sp.csr_matrix((0, p))
        self.rows, self.columns = _parts(stack), _parts(sp.csr_matrix(stack.T))
        sizes = np.concatenate([np.diff(term.bounds) for term in others]) if others else np.zeros(0, np.int64)
        self.dual_bounds = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self.dual_weights = np.concatenate([term.weights for term in others]) if others else np.zeros(0)
        self.curvature = Stack(others).curvature() if others else 1.0
        self.reset()

    def reset(self):
        self.y = np.zeros(self.dual_bounds[-1])  # per unit of step
        self.last, self.calls = None, 0

    def __call__(self, v, step):
        v = np.ascontiguousarray(v, dtype=np.float64)
        w = np.empty_like(v)
        # before the first move there is none to compare with
        before = v if self.last is None else self.last
        most = min(self.fewest + self.calls, self.most)
        self.calls += 1
        solve_dual(
            v, step, self.members, self.bounds, self.weights, self.rows, self.columns, self.dual_bounds,
            self.dual_weights, 1.0 / self.curvature, self.y, before, self.share, most, w,
        )  # fmt: skip
        self.last = w
        return w.copy()


def _parts(matrix):
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int64), matrix.data.astype(np.float64)


@njit(cache=True)
def _apply(matrix, x, out):
    indptr, indices, data = matrix
    for i in range(len(out)):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += data[k] * x[indices[k]]
        out[i] = total


@njit(cache=True)
def _closed(w, step, members, bounds, weights):
    for g in range(len(weights)):
        norm = 0.0
        for k in range(bounds[g], bounds[g + 1]):
            norm += w[members[k]] ** 2
        norm = np.sqrt(norm)
        factor = max(1.0 - step * weights[g] / norm, 0.0) if norm > 0 else 0.0
        for k in range(bounds[g], bounds[g + 1]):
            w[members[k]] *= factor


@njit(cache=True)
def _project(y, bounds, weights):
    for g in range(len(weights)):
        norm = 0.0
        for k in range(bounds[g], bounds[g + 1]):
            norm += y[k] ** 2
        norm = np.sqrt(norm)
        if norm > weights[g]:
            for k in range(bounds[g], bounds[g + 1]):
                y[k] *= weights[g] / norm


@njit(cache=True)
def _norms(u, bounds, weights):
    total = 0.0
    for g in range(len(weights)):
        norm = 0.0
        for k in range(bounds[g], bounds[g + 1]):
            norm += u[k] ** 2
        total += weights[g] * np.sqrt(norm)
    return total


@njit(cache=True)
def solve_dual(v, step, members, bounds, weights, rows, columns, dual_bounds, dual_weights, dual_step, y, before,
               share, most, w):  # fmt: skip
    """FISTA on the dual; y (per unit of step) and w are overwritten."""
    d, p = len(y), len(v)
    back, u = np.empty(p), np.empty(d)
    z, old, t = y.copy(), y.copy(), 1.0
    for turn in range(most + 1):
        # the primal point of the dual point y every few turns, to look at the gap; of z otherwise
        looking = turn % 5 == 0 or turn == most
        _apply(columns, y if looking else z, back)
        for j in range(p):
            w[j] = v[j] - step * back[j]
        _closed(w, step, members, bounds, weights)
        if d == 0:
            return
        _apply(rows, w, u)
        if looking:
            gap = step * (_norms(u, dual_bounds, dual_weights) - y @ u)
            move = 0.0
            for j in range(p):
                move += (w[j] - before[j]) ** 2
            if gap <= max(share * 0.5 * move, 1e-30) or turn == most:
                return
            if turn > 0:
                _apply(columns, z, back)
                for j in range(p):
                    w[j] = v[j] - step * back[j]
                _closed(w, step, members, bounds, weights)
                _apply(rows, w, u)
        old[:] = y
        for k in range(d):
            y[k] = z[k] + dual_step / step * u[k]
        _project(y, dual_bounds, dual_weights)
        slope = 0.0
        for k in range(d):
            slope += (z[k] - y[k]) * (y[k] - old[k])
        if slope > 0:
            t = 1.0
            z[:] = y
            continue
        after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * t * t))
        for k in range(d):
            z[k] = y[k] + (t - 1.0) / after * (y[k] - old[k])
        t = after
