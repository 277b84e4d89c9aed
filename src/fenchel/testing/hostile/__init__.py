"""Random problems that are meant to go wrong, and a judge who believes nothing.

    python -m fenchel.testing.hostile --cases 10000 --seed 1

`make` draws a problem for a seed (``problems.py``), `run` solves it as a user would and judges the answer
(``judge.py``): both bounds with sixty digits (``exact.py``), and by a conic solver where the problem has such a form
(``conic.py``; cvxpy and clarabel are needed for that alone).
"""

from __future__ import annotations

from .judge import Outcome, run
from .problems import PENALTIES, Drawn, make

__all__ = ["PENALTIES", "Drawn", "Outcome", "make", "run"]
