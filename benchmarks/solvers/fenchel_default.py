"""fenchel as a user calls it: default settings. The clock covers the penalty, the Problem and every certificate."""

import numpy as np
from solving import Solver as Base


class Solver(Base):
    name = "fenchel"
    package = "fenchel"
    environment = None
    requirements = ("fenchel",)

    def warm_up(self, objective):
        """On few rows, with and without Newton's method: everything is compiled, however soon the answer is found."""
        from fenchel_model import problem

        import fenchel as fl

        small = problem(objective.tiny())
        for options in ({}, {"newton": False, "tol": 0.0}):
            fl.solve(small, max_epochs=20, **options)

    def run(self, record):
        from fenchel_model import problem

        import fenchel as fl

        best = np.inf

        def callback(snapshot):
            # the answer is the best iterate so far, so a worse one is not looked at
            nonlocal best
            if snapshot.current < best:
                best = snapshot.current
                record(lambda: snapshot.coef)

        result = fl.solve(
            problem(self.objective), tol=1e-10, max_epochs=1_000_000, time_limit=record.limit, callback=callback
        )
        record(result.coef, last=True)

    def certify(self, tolerance):
        from fenchel_model import problem

        import fenchel as fl

        result = fl.solve(problem(self.objective), tol=tolerance)
        return result.coef, result.relative_gap
