"""What a solver of separable problems is to `separable.py`: a base class; the files of `specialists/` hold one each."""

from __future__ import annotations

import numpy as np


class Specialist:
    """One package.

    Attributes
    ----------
    name, package : str
    requirements, environment, python
        As of `solving.Solver`: what pip installs, and the virtual environment it goes into.
    stops : tuple
        Tolerances, from loose to tight.
    default : float
        The package's own tolerance.
    tasks : tuple
        Of "fit", "path", "cv": what it has. "tiny" is a fit.
    seconds : float or None
        The seconds of the last run, where it has its own clock because the work is in another process.
    """

    name = ""
    package = ""
    requirements: tuple = ()
    environment: str | None = "separable"
    python: str | None = None
    stops: tuple = ()
    default: float = 1e-4
    tasks: tuple = ("fit", "path")
    seconds: float | None = None

    def skip(self, problem, task) -> str | None:
        """Why it does not apply; None if it does."""
        raise NotImplementedError

    def set_problem(self, problem, alphas, folds) -> None:
        """Take the data in whatever form it likes best, off the clock. `folds` is a list of (training, held out)."""
        raise NotImplementedError

    def fit(self, stop):
        return self.path(stop, np.array([self.problem.alpha]))

    def path(self, stop, alphas):
        """Coefficients (k, p) and intercepts (k,), on the clock."""
        raise NotImplementedError

    def cv(self, stop, alphas, folds) -> None:
        raise NotImplementedError

    def version(self) -> str:
        import importlib.metadata

        return importlib.metadata.version(self.package)


def answers(coefs, intercepts, scale=1.0):
    """Arrays of the shapes that the judge takes."""
    coefs = np.atleast_2d(np.asarray(coefs, dtype=float)) * scale
    return coefs, np.broadcast_to(np.asarray(intercepts, dtype=float) * scale, len(coefs)).copy()


def columns_first(problem):
    """The data in the layout of those who work column by column."""
    import scipy.sparse as sp

    return sp.csc_matrix(problem.X) if problem.sparse else np.asfortranarray(problem.X)
