"""The paper's experimental section as one call: :func:`reproduce` with the settings of :mod:`.settings`.

settings.py   what is run: data sets, curves, windows, grids, and the fingerprint of it all
data.py       problems and test functions, from generated data, files or downloads
measure.py    one method on one problem, evaluated outside the clock
tune.py       step sizes of the baselines, on a held-out seed
studies.py    the small experiments: blocks, order, quadratic term, rho
store.py      the results folder: what is finished stays finished
run.py        everything in order, side by side if wanted
traces.py     what was measured, and what can be read off it
claims.py     the paper's claims, each with a criterion and a number
tables.py, figures.py, report.py    CSV, pictures and the page
"""

from __future__ import annotations

from .claims import Claim
from .run import Outcome, reproduce
from .settings import Settings, artificial, real

__all__ = ["Claim", "Outcome", "Settings", "artificial", "real", "reproduce"]
