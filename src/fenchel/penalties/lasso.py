"""The lasso and the elastic net."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validate import Array, weight_vector
from ..maps import Matrix
from .separable import L1, Ridge
from .shorthand import Shorthand, _feature_weights, _known, _ratio

if TYPE_CHECKING:
    from .base import Penalty


class Lasso(Shorthand):
    r"""The lasso, :math:`\sum_j \omega_j |w_j|`.

    Parameters
    ----------
    weights : vector of p numbers, optional
        0 leaves a feature without penalty, infinity keeps it out.

    Notes
    -----
    Prox: soft threshold. Conjugate: 0 on :math:`|y_j| \le \omega_j`.
    """

    def __init__(self, weights: npt.ArrayLike | None = None) -> None:
        self.weights = weights

    def adapted(self, coef: Array, dearer: Callable[[Array], Array]) -> Penalty:
        usual = np.ones(coef.shape[1]) if self.weights is None else np.asarray(self.weights, dtype=float)
        made: Penalty = copy.copy(self).set_params(weights=usual * dearer(np.linalg.norm(coef, axis=0)))
        return made

    def build(self, p: int | None) -> Penalty:
        return L1(None if self.weights is None else weight_vector("weights", self.weights, _known(p, "weights")))


class ElasticNet(Shorthand):
    r"""The elastic net, :math:`\sum_j \omega_j (\rho |w_j| + \tfrac{1 - \rho}{2} w_j^2)`, as in scikit-learn.

    Parameters
    ----------
    l1_ratio : float
        The share :math:`\rho` of the l1 norm.
    weights : vector of p numbers, optional
        0 leaves a feature without penalty.

    Notes
    -----
    Prox: soft threshold at :math:`s \omega_j \rho`, then division by :math:`1 + s \omega_j (1 - \rho)`.
    Conjugate: :math:`\sum_j (|y_j| - \omega_j \rho)_+^2 / (2 \omega_j (1 - \rho))`.
    """

    def __init__(self, l1_ratio: float = 0.5, weights: npt.ArrayLike | None = None) -> None:
        self.l1_ratio, self.weights = _ratio(l1_ratio), weights

    def adapted(self, coef: Array, dearer: Callable[[Array], Array]) -> Penalty:
        usual = np.ones(coef.shape[1]) if self.weights is None else np.asarray(self.weights, dtype=float)
        made: Penalty = copy.copy(self).set_params(weights=usual * dearer(np.linalg.norm(coef, axis=0)))
        return made

    def build(self, p: int | None) -> Penalty:
        weights = _feature_weights(self.weights, p)
        if weights is None:
            return self.l1_ratio * L1() + (1 - self.l1_ratio) * Ridge()
        # both terms behind one map, so that they stay one block
        root = np.sqrt(weights[weights > 0])
        scale = Matrix(sp.csr_array((root, np.flatnonzero(weights), np.arange(root.size + 1)), shape=(root.size, p)))
        return (self.l1_ratio * L1(root) + (1 - self.l1_ratio) * Ridge()) @ scale
