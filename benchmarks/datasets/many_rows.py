"""A million sparse rows of 100 binary features, most of them rare as words are, with a graph on the features."""

from typing import ClassVar

import numpy as np
import scipy.sparse as sp
from objective import Objective, Term


class Dataset:
    problems: ClassVar = {"million-rows": {"n": 1_000_000, "p": 100, "present": 10}}
    quick = ()
    limits: ClassVar = {"million-rows": 40.0}

    def get_data(self, n, p, present):
        rng = np.random.default_rng(0)
        frequency = 1.0 / np.arange(1, p + 1)
        indices = rng.choice(p, size=n * present, p=frequency / frequency.sum())
        X = sp.csr_matrix((np.ones(n * present), indices, np.arange(0, n * present + 1, present)), (n, p))
        X.sum_duplicates()
        X.data[:] = 1.0
        truth = np.repeat(rng.standard_normal(p // 10) * (rng.random(p // 10) < 0.5), 10)
        score = X @ truth
        y = np.where(score + score.std() * rng.standard_normal(n) >= 0, 1.0, -1.0)
        # a ring of neighbours, and chords to those five further on
        ring = np.column_stack([np.arange(p), (np.arange(p) + 1) % p])
        chords = np.column_stack([np.arange(p), (np.arange(p) + 5) % p])
        edges = np.concatenate([ring, chords])
        alpha = 1e-4
        terms = [Term(p, np.full(p, alpha)), Term(p, np.full(len(edges), alpha), edges=edges)]
        return Objective(X, y, "logistic", terms)
