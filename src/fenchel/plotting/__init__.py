"""Pictures of answers and of how they were found, with matplotlib.

Every function takes what it is about (a :class:`fenchel.Result`, a :class:`fenchel.Path`, a fitted estimator, …),
returns a matplotlib Axes and draws on `ax` if it is given. Without `ax` it makes a figure; nothing else of pyplot's
state is touched. Titles stand at the left: ``ax.set_title("mine", loc="left")`` replaces one.

Colours are told apart by the colour-blind (Okabe and Ito's palette; red and blue for signs). Of many features or
groups only the largest get a colour and a name.
"""

from __future__ import annotations

from .graphs import weights_on_graph
from .grids import weights_on_grid
from .groups import group_norms
from .paths import cv_curve, path
from .runs import convergence
from .stability import stability

__all__ = ["convergence", "cv_curve", "group_norms", "path", "stability", "weights_on_graph", "weights_on_grid"]


def __dir__() -> list[str]:
    return __all__
