"""The paper's artificial data: a 32 x 32 weight matrix of which one column counts; column and row norms."""

from typing import ClassVar

import numpy as np
from objective import Objective, Term

from fenchel import datasets


class Dataset:
    problems: ClassVar = {
        "artificial-512": {"n": 512, "loss": "smoothed-hinge"},
        "artificial-5120": {"n": 5120, "loss": "smoothed-hinge"},
        "artificial-51200": {"n": 51200, "loss": "smoothed-hinge"},
        "artificial-5120-logistic": {"n": 5120, "loss": "logistic"},
    }
    limits: ClassVar = {"artificial-51200": 30.0}
    quick = ("artificial-512", "artificial-5120")

    def get_data(self, n, loss, side=32):
        X, y, _ = datasets.artificial(n, side)
        groups = datasets.artificial_groups(side)
        alpha = 0.1 / np.sqrt(n)
        weights = np.full(side, alpha)
        columns, rows = Term(side * side, weights, groups[:side]), Term(side * side, weights, groups[side:])
        columns.ridge = 0.01 * alpha
        return Objective(X, y, loss, [columns, rows])
