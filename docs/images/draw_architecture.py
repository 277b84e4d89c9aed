"""The picture of the rooms, for docs/architecture.md: python docs/images/draw_architecture.py"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.patches import FancyBboxPatch

# every row is a layer; a room may import from the rows below it, and from nothing beside or above it
ROWS = [
    [("cli", "the command line")],
    [("report", "one page of HTML"), ("plotting", "pictures"), ("experiments", "the paper")],
    [("models", "estimators,\npath, CV"), ("testing", "laws for a loss,\npenalty or map"), ("theory datasets io", "")],
    [("solver", "the one loop: whose turn, convergence, limits, Result")],
    [("methods", "epochs: SDCA-ADMM and the paper's other methods, row by row")],
    [("engine", "rounds: restriction, curvature, inner solver, step")],
    [("proximal", "prox of a whole penalty"), ("prices", "what things cost, in ns")],
    [("problem", "objective, dual, certificate, alpha_max, exact zeros")],
    [("data", "rows"), ("penalties", "ψ: norms, their algebra,\nnames by purpose")],
    [("structure", "groups, graphs, grids, trees, with names")],
    [("losses", "f, f*, dual step"), ("maps", "B")],
    [("kernels", "all compiled code"), ("_validate", "checks of arguments")],
]  # fmt: skip
WIDTH, HEIGHT, GAP = 12.0, 0.72, 0.22


def main() -> None:
    figure, ax = plt.subplots(figsize=(9, 8.4))
    top = len(ROWS) * (HEIGHT + GAP)
    for k, row in enumerate(ROWS):
        each = (WIDTH - GAP * (len(row) - 1)) / len(row)
        for i, (name, text) in enumerate(row):
            x, y = i * (each + GAP), top - (k + 1) * (HEIGHT + GAP)
            ax.add_patch(
                FancyBboxPatch(
                    (x, y), each, HEIGHT, boxstyle="round,pad=0,rounding_size=0.12", fc="#eef3f8", ec="#5b7d9e"
                )
            )
            ax.text(x + 0.2, y + HEIGHT / 2, name, va="center", weight="bold", fontsize=10, family="monospace")
            ax.text(x + each - 0.2, y + HEIGHT / 2, text, va="center", ha="right", fontsize=8.5, color="#333333")
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
