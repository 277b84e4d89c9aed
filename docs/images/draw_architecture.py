"""The picture of the rooms, for docs/architecture.md: python docs/images/draw_architecture.py"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import tomllib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

TEXTS = {
    "__main__": "python -m fenchel",
    "testing": "proofs of a loss, penalty,\nmap, method, engine",
    "cli": "the command line",
    "experiments": "the paper",
    "report": "one page of HTML",
    "plotting": "pictures",
    "dask": "the rows of a cluster",
    "models": "estimators,\npath, CV",
    "theory": "rates",
    "datasets": "the paper's data",
    "io": "files",
    "formulas": "columns from words: y ~ a + bs(b)",
    "solver": "the one loop: whose turn, convergence, limits, Result",
    "methods": "epochs: SDCA-ADMM and the paper's other methods, row by row",
    "engine": "rounds: restriction, curvature, inner solver, step",
    "proximal": "the prox of a whole penalty",
    "prices": "what things cost, in nanoseconds by a model",
    "problem": "objective, dual, certificate, alpha_max",
    "data": "rows: in memory, on a disk, of a cluster",
    "penalties": "ψ: norms, their algebra,\nnames by purpose",
    "structure": "groups, graphs, grids, trees, with names",
    "maps": "B",
    "losses": "f, f*, dual step",
    "kernels": "all compiled code",
    "_validate": "checks of arguments",
    "foundation": "files, Ctrl-C, numbers of all rooms",
}
"""What a room is for."""


def layers() -> list[list[str]]:
    """The layers that `lint-imports` checks, top to bottom; a room may import from those below it, and from nothing
    beside or above it."""
    settings = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return [[room.strip() for room in layer.split("|")] for layer in contract["layers"]]


WIDTH, HEIGHT, GAP = 12.0, 0.72, 0.22


def main() -> None:
    figure, ax = plt.subplots(figsize=(9.5, 13))
    rows = layers()
    top = len(rows) * (HEIGHT + GAP)
    for k, row in enumerate(rows):
        each = (WIDTH - GAP * (len(row) - 1)) / len(row)
        for i, name in enumerate(row):
            x, y = i * (each + GAP), top - (k + 1) * (HEIGHT + GAP)
            ax.add_patch(
                FancyBboxPatch(
                    (x, y), each, HEIGHT, boxstyle="round,pad=0,rounding_size=0.12", fc="#eef3f8", ec="#5b7d9e"
                )
            )
            ax.text(x + 0.2, y + HEIGHT / 2, name, va="center", weight="bold", fontsize=10, family="monospace")
            ax.text(x + each - 0.2, y + HEIGHT / 2, TEXTS[name], va="center", ha="right", fontsize=8.5, color="#333333")
    ax.annotate(
        "", xy=(-0.45, GAP), xytext=(-0.45, top - GAP), arrowprops={"arrowstyle": "-|>", "color": "#b3541e", "lw": 2}
    )
    ax.text(-0.65, top / 2, "may import", rotation=90, va="center", ha="right", color="#b3541e", fontsize=10)
    ax.set_xlim(-1.3, WIDTH + 0.1)
    ax.set_ylim(-0.1, top)
    ax.axis("off")
    figure.savefig(Path(__file__).with_name("architecture.png"), dpi=110, bbox_inches="tight")


if __name__ == "__main__":
    main()
