"""scikit-learn's SAGA."""

from sklearn_model import SklearnSolver


class Solver(SklearnSolver):
    name = "scikit-learn, saga"
    solver = "saga"
    stops = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)
