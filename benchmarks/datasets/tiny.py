"""A problem of a second, for the tests of the benchmark itself."""

from typing import ClassVar

import numpy as np
from objective import Objective, Term


class Dataset:
    problems: ClassVar = {"tiny": {}, "tiny-l1": {"graph": False}}
    quick = ()
    hidden = True

    def get_data(self, graph=True, n=60, p=12):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, p))
        y = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(n) >= 0, 1.0, -1.0)
        terms = [Term(p, np.full(p, 0.01))]
        if graph:
            edges = np.column_stack([np.arange(p - 1), np.arange(1, p)])
            terms.append(Term(p, np.full(p - 1, 0.02), edges=edges, ridge=0.001))
        return Objective(X, y, "logistic", terms)
