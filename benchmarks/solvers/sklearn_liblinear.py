"""scikit-learn's LIBLINEAR."""

from sklearn_model import SklearnSolver


class Solver(SklearnSolver):
    name = "scikit-learn, liblinear"
    solver = "liblinear"
    stops = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7)

    def skip(self, objective):
        return super().skip(objective) or ("it has no elastic net" if objective.ridge else None)
