"""Pairs of rows whose scores are in the order of their times, counted in O(n log n)."""

from __future__ import annotations

from .caching import WITHIN, njit


@njit(cache=True, **WITHIN)
def _add(tree, place, weight):
    """Add to a Fenwick tree: sums of weights by rank."""
    place += 1
    while place < tree.size:
        tree[place] += weight
        place += place & -place


@njit(cache=True, **WITHIN)
def _below(tree, place):
    """The weight of all ranks below a place."""
    found = 0.0
    while place > 0:
        found += tree[place]
        place -= place & -place
    return found


@njit(cache=True)
def count(order, opens, event, weight, rank, tree):
    """The weight of pairs that can be compared (one has an event before the time of the other), of those in which it
    has the higher score, and of those whose scores are equal. `rank` numbers the scores; see ``kernels/cox.py`` for
    the rest; `tree` has one entry more than there are ranks, and is used up."""
    n = order.size
    pairs = right = equal = 0.0
    end, total = n, 0.0
    for i in range(n - 1, -1, -1):
        if not opens[i]:
            continue
        for k in range(i, end):  # who is censored at this time outlives its events
            j = order[k]
            if not event[j] and weight[j] > 0.0:
                _add(tree, rank[j], weight[j])
                total += weight[j]
        for k in range(i, end):
            j = order[k]
            if event[j] and weight[j] > 0.0:
                below = _below(tree, rank[j])
                pairs += weight[j] * total
                right += weight[j] * below
                equal += weight[j] * (_below(tree, rank[j] + 1) - below)
        for k in range(i, end):
            j = order[k]
            if event[j] and weight[j] > 0.0:
                _add(tree, rank[j], weight[j])
                total += weight[j]
        end = i
        if opens[i] == 2:  # the next stratum is compared with itself alone
            tree[:] = 0.0
            total = 0.0
    return pairs, right, equal
