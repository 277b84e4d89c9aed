"""Graph-guided fusion on real data: features that the graphical lasso joins should have like coefficients."""

from typing import ClassVar

import numpy as np
from objective import Objective, Term

from fenchel import datasets

LOADERS = {"a9a": datasets.load_a9a, "20news": datasets.load_20news}


class Dataset:
    problems: ClassVar = {
        "a9a-graph": {"data": "a9a", "loss": "smoothed-hinge"},
        "a9a-graph-logistic": {"data": "a9a", "loss": "logistic"},
        "20news-graph": {"data": "20news", "loss": "smoothed-hinge"},
    }
    quick = ("a9a-graph",)

    def get_data(self, data, loss):
        X, y = LOADERS[data]()
        edges = datasets.graph_edges(X)
        n, p = X.shape
        # the paper's constants: C1 = 0.01 / sqrt(n), C2 = C1 |E| / p, quadratics 0.01 C u^2
        alpha = 0.01 / np.sqrt(n)
        beta = alpha * len(edges) / p
        terms = [
            Term(p, np.full(p, alpha), ridge=0.02 * alpha),
            Term(p, np.full(len(edges), beta), edges=edges, ridge=0.02 * beta),
        ]
        return Objective(X, y, loss, terms)
