"""p53 mutation status from the expression of 4,301 genes in 308 overlapping pathways; 50 rows."""

from typing import ClassVar

import numpy as np
from objective import Objective, Term

from fenchel import datasets


class Dataset:
    problems: ClassVar = {"p53-pathways": {}}
    quick = ("p53-pathways",)

    def get_data(self):
        X, y, groups, _, _ = datasets.load_p53()
        X = X - X.mean(axis=0)
        X = X / np.maximum(X.std(axis=0), 1e-12)
        sizes = np.sqrt([len(group) for group in groups])
        # the norm of the gradient at zero on the heaviest pathway is an upper bound on what lets it in
        gradient = X.T @ (0.5 * y) / len(y)
        alpha = 0.05 * max(np.linalg.norm(gradient[group]) / size for group, size in zip(groups, sizes, strict=True))
        outside = np.setdiff1d(np.arange(X.shape[1]), np.concatenate(groups))
        groups = [*groups, *([gene] for gene in outside)]  # a gene in no pathway is a pathway of its own
        weights = alpha * np.sqrt([len(group) for group in groups])
        return Objective(X, y, "logistic", [Term(X.shape[1], weights, groups)])
