"""Penalties without a map, where the specialists live: l1, elastic net, group lasso, sparse group lasso.

Two strengths: that of the paper's artificial problem, whose answers keep many features, and a tenth of the strength
at which all vanish, whose answers keep few.
"""

from typing import ClassVar

import numpy as np
from objective import Objective, Term

from fenchel import datasets


class Dataset:
    problems: ClassVar = {
        "l1-logistic": {"kind": "l1"},
        "l1-logistic-sparse": {"kind": "l1", "share": 0.1},
        "elastic-net-logistic": {"kind": "elastic net"},
        "elastic-net-hinge": {"kind": "elastic net", "loss": "smoothed-hinge"},
        "group-lasso-logistic": {"kind": "group"},
        "group-lasso-squared": {"kind": "group", "loss": "squared"},
        "sparse-group-lasso": {"kind": "sparse group", "share": 0.05},
    }
    quick = ("l1-logistic",)

    def get_data(self, kind, loss="logistic", share=None, n=5120, side=32):
        X, y, _ = datasets.artificial(n, side)
        p, groups = side * side, datasets.artificial_groups(side)[:side]
        if share is None:
            single = joint = 0.1 / np.sqrt(n)
        else:
            gradient = X.T @ y / (2 * n)
            single = share * np.abs(gradient).max()
            joint = share * max(np.linalg.norm(gradient[group]) for group in groups)
        terms = {
            "l1": [Term(p, np.full(p, single))],
            "elastic net": [Term(p, np.full(p, single), ridge=single)],
            "group": [Term(p, np.full(side, joint), groups)],
            "sparse group": [Term(p, np.full(p, 0.5 * single)), Term(p, np.full(side, 0.5 * joint), groups)],
        }
        return Objective(X, y, loss, terms[kind])
