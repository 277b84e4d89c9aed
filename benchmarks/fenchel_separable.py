"""A separable problem's penalty in fenchel's words, as a user would write it."""

from __future__ import annotations


def penalty_of(problem):
    """The penalty in fenchel's words."""
    import fenchel as fl

    if problem.penalty == "l1":
        return fl.L1()
    if problem.penalty == "weighted l1":
        return fl.L1(problem.l1)
    if problem.penalty == "elastic net":
        return fl.ElasticNet(float(problem.l1[0]))
    if problem.penalty == "nonnegative":
        return fl.L1() + fl.NonNegative()
    if problem.penalty == "groups":
        return fl.GroupLasso(problem.groups(), problem.group)
    share = float(problem.l1[0])
    return fl.SparseGroupLasso(problem.groups(), share, problem.group / (1 - share))
