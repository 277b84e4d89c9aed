"""Images as features: the coefficients form an image with few edges (isotropic total variation and a small l1 norm)."""

from typing import ClassVar

import numpy as np
from objective import Objective, Term


class Dataset:
    problems: ClassVar = {
        "digits-tv": {"data": "digits", "alpha": 0.01},
        "images-tv": {"data": "images", "alpha": 0.01},
    }
    limits: ClassVar = {"images-tv": 20.0}
    quick = ("digits-tv",)

    def get_data(self, data, alpha):
        X, y, shape = digits() if data == "digits" else images()
        p = X.shape[1]
        edges, groups = grid(shape)
        terms = [Term(p, np.full(p, 0.1 * alpha)), Term(p, np.full(len(groups), alpha), groups, edges, grid=shape)]
        return Objective(X, y, "logistic", terms)


def digits():
    """8 x 8 digits of scikit-learn: odd or even."""
    from sklearn.datasets import load_digits

    X, digit = load_digits(return_X_y=True)
    return X / 16.0 - 0.5, np.where(digit % 2, 1.0, -1.0), (8, 8)


def images(side=40, n=2000):
    """Smooth random images, labelled by the mean over two patches."""
    rng = np.random.default_rng(0)
    rows = np.arange(side)
    kernel = np.exp(-0.5 * (np.subtract.outer(rows, rows) / 1.5) ** 2)
    X = kernel @ rng.standard_normal((n, side, side)) @ kernel
    X /= X.std()
    truth = np.zeros((side, side))
    truth[5:15, 8:20], truth[22:34, 20:36] = 1.0, -0.7
    X = X.reshape(n, -1)
    score = X @ truth.ravel()
    score += 0.3 * score.std() * rng.standard_normal(n)
    return X, np.where(score >= 0, 1.0, -1.0), (side, side)


def grid(shape):
    """Edges to the right and downwards, and one group for each pixel that has any."""
    index = np.arange(np.prod(shape)).reshape(shape)
    right = np.column_stack([index[:, 1:].ravel(), index[:, :-1].ravel()])
    down = np.column_stack([index[1:].ravel(), index[:-1].ravel()])
    edges = np.concatenate([right, down])
    of_pixel = [[] for _ in range(index.size)]
    for edge, pixel in enumerate(edges[:, 1]):
        of_pixel[pixel].append(edge)
    return edges, [group for group in of_pixel if group]
