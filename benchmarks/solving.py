"""What a solver of the benchmark is: the base class, the clock, and the recorder of its iterates."""

from __future__ import annotations

import contextlib
import time

import numpy as np

DEEPEST = 1e-9  # relative suboptimality at which a run has shown all that is asked of it
_SPACING = 1.03  # two recorded points of a run are this factor apart in time


CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


class Done(Exception):
    """Raised by the recorder: accurate enough, or out of time."""


class Recorder:
    """Takes (seconds, iterate) of one run; judging happens while the clock stands still.

    Parameters
    ----------
    objective : Objective
    optimum : float
        Its least known value; the run ends at a relative suboptimality of 1e-9.
    limit : float
        Seconds.
    clock : function
    emit : function of a dict
    """

    def __init__(self, objective, optimum, limit, clock, emit):
        self.objective, self.optimum, self.limit, self.emit = objective, optimum, limit, emit
        self.clock = clock
        self.best = np.inf
        self._kept = 0.0
        self.start()

    def start(self):
        self._start, self._paused = self.clock(), 0.0

    @property
    def seconds(self):
        return self.clock() - self._start - self._paused

    def __call__(self, w, last=False):
        """Record the iterate w (an array, or a function that makes one). Raises Done when the run may end.

        `last` marks the answer a solver returns, which is kept whatever the spacing.
        """
        seconds = self.seconds
        if not last and seconds < _SPACING * self._kept + 1e-4:
            return
        pause = self.clock()
        self._kept = seconds
        value = self.judge(w() if callable(w) else w)
        self.emit({"event": "point", "seconds": seconds, "value": value})
        self._paused += self.clock() - pause
        if self.accurate(value) or seconds > self.limit:
            raise Done

    def judge(self, w):
        w = np.asarray(w, dtype=np.float64).ravel()
        value = self.objective.value(w) if np.all(np.isfinite(w)) else np.inf
        self.best = min(self.best, value)
        return value

    def accurate(self, value):
        # half of it, so that a reference that is improved later leaves the run long enough
        return value - self.optimum <= 0.5 * DEEPEST * abs(self.optimum)


class Solver:
    """One solver in one configuration; a file in ``solvers/`` holds one of these, named ``Solver``.

    Attributes
    ----------
    name : str
    package : str
        The distribution whose version is written down.
    requirements : list of str
        What pip installs for it.
    environment : str or None
        Name of the virtual environment; solvers whose requirements agree share one. None: the interpreter that runs
        the benchmark, which holds fenchel.
    python : str or None
        Version of Python that the environment needs, such as "3.10".
    sampling : {"callback", "tolerance"}
        How its progress is seen: it calls `record` with its iterates, or, a black box, it is run again and again from
        the start with smaller tolerances.
    stops : sequence
        The tolerances.
    """

    name = ""
    package = ""
    requirements: tuple = ()
    environment: str | None = "shared"
    python: str | None = None
    sampling = "callback"
    stops: tuple = ()

    def skip(self, objective) -> str | None:
        """Why it does not apply to this problem; None if it does."""
        return None

    def set_objective(self, objective) -> None:
        """Take the data, in whatever form it likes best. Off the clock."""
        self.objective = objective

    def warm_up(self, objective) -> None:
        """Compile what will be needed. Off the clock."""
        tiny = objective.tiny()
        self.set_objective(tiny)
        if self.sampling == "callback":
            with contextlib.suppress(Done):
                self.run(Recorder(tiny, -np.inf, 0.5, time.perf_counter, lambda event: None))
        else:
            self.run(self.stops[0])

    def run(self, stop):
        """Solve from the start, on the clock: `stop` is the recorder, or a tolerance, and then w is returned."""
        raise NotImplementedError
