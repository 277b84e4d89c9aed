"""The objective in fenchel's words, as a user would write it."""

from __future__ import annotations

import numpy as np

import fenchel as fl


def problem(objective):
    """The penalty and the Problem; alpha is part of the penalty's weights."""
    X, y, loss = objective.X, objective.y, objective.loss
    return fl.Problem(X, y, loss=loss, penalty=penalty(objective), alpha=1.0)


def penalty(objective):
    """The penalty in fenchel's words."""
    total, groups, weights = None, [], []

    def add(part):
        nonlocal total
        total = part if total is None else total + part

    for term in objective.terms:
        if term.groups is None:
            scale = term.weights[0]
            one = scale * fl.L1() if np.all(term.weights == scale) else fl.L1(term.weights)
        elif term.grid is not None:
            one = term.weights[0] * fl.TotalVariation(term.grid)
        elif term.edges is None:
            # families of groups on the features are one family of overlapping groups
            groups, weights, one = groups + term.groups, weights + list(term.weights), None
        else:
            one = fl.GroupL2(term.groups, term.weights)
        if term.edges is not None and term.grid is None:
            edges = fl.Incidence(term.edges, objective.p)
            add((one + term.ridge * fl.Ridge() if term.ridge else one) @ edges)
            continue
        if one is not None:
            add(one)
        if term.ridge:
            add(term.ridge * fl.Ridge())
    if groups:
        add(fl.GroupL2(groups, weights))
    return total
