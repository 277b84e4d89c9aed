"""Draw the pictures of docs/penalties.md: the answer of each penalty on the same kind of small regression.

python docs/images/penalties/draw.py
"""

from __future__ import annotations

import pathlib

import matplotlib

matplotlib.use("agg")
import matplotlib.pyplot as plt
import numpy as np

import fenchel as fl

HERE = pathlib.Path(__file__).parent
P = 36
BLUE, GREY = "#2464a4", "#c8c8c8"


def fit(truth, penalty, alpha, n=60, noise=0.5, seed=0):
    """Coefficients of the shape of `truth`, whose rows are outputs if it has n_outputs rows."""
    rng = np.random.default_rng(seed)
    truth = np.asarray(truth, dtype=float)
    outputs = getattr(penalty, "n_outputs", None)
    flat = truth if outputs else truth.ravel()
    X = rng.standard_normal((n, flat.shape[-1]))
    y = X @ flat.T
    y += noise * rng.standard_normal(y.shape)
    problem = fl.Problem(X, y, loss="squared", penalty=penalty, alpha=alpha)
    return fl.solve(problem, tol=1e-7, max_epochs=5000).coef.reshape(truth.shape)


def bars(name, truth, penalty, alpha, groups=(), **options):
    coef = fit(truth, penalty, alpha, **options)
    figure, axes = plt.subplots(figsize=(2.4, 1.1), dpi=100)
    for k, group in enumerate(groups):
        low, high = min(group) - 0.5, max(group) + 0.5
        axes.axvspan(low, high, ymin=0.06 * (k % 2), ymax=0.06 * (k % 2) + 0.06, color="#e08a2e", lw=0.5, ec="white")
    axes.step(np.arange(len(truth) + 1) - 0.5, np.append(truth, truth[-1]), where="post", color=GREY, lw=1)
    axes.vlines(np.flatnonzero(coef), 0, coef[coef != 0], color=BLUE, lw=2.5)
    axes.axhline(0, color="black", lw=0.5)
    axes.set_xlim(-1, len(truth))
    axes.margins(y=0.15)
    save(figure, axes, name)


def picture(name, truth, penalty, alpha, **options):
    coef = fit(truth, penalty, alpha, **options)
    figure, axes = plt.subplots(figsize=(2.4, 1.1), dpi=100)
    largest = np.abs(coef).max()
    axes.imshow(coef.reshape(len(coef), -1), cmap="RdBu_r", vmin=-largest, vmax=largest, aspect="auto")
    save(figure, axes, name)


def save(figure, axes, name):
    axes.set_axis_off()
    figure.subplots_adjust(0.01, 0.01, 0.99, 0.99)
    figure.savefig(HERE / f"{name}.png")
    plt.close(figure)


def main():
    spikes = np.zeros(P)
    spikes[[3, 4, 11, 20, 29]] = [2, 1.5, -1.5, 1, -2]
    block = np.zeros(P)
    block[6:12], block[24:30] = [1, -1, 0.5, 1, 1.5, -0.5], [-1, 0.5, 1, 1, -1, 1]
    sixes = [list(range(k, k + 6)) for k in range(0, P, 6)]
    steps = np.repeat([0, 1.5, 0, -1, -1, 0], 6)
    overlapping = [list(range(k, min(k + 9, P))) for k in range(0, P - 3, 6)]
    covered = np.zeros(P)
    covered[6:15], covered[18:27] = np.linspace(-1, 1.5, 9), np.linspace(1.5, -1, 9)
    line = np.arange(P)

    bars("lasso", spikes, fl.Lasso(), 0.25)
    bars("elastic-net", spikes, fl.ElasticNet(0.5), 0.3)
    bars("group-lasso", block, fl.GroupLasso(sixes), 0.2, sixes)
    bars("latent-group-lasso", covered, fl.LatentGroupLasso(overlapping), 0.25, overlapping)
    bars("sparse-group-lasso", block * (line % 3 > 0), fl.SparseGroupLasso(sixes, 0.5), 0.25, sixes)
    halves = [list(range(18)), list(range(18, P)), *sixes, *([j] for j in range(P))]
    bars("tree-groups", np.where(line < 18, spikes + block, 0), fl.TreeGroups(halves, [1] * len(halves)), 0.12, sixes)
    bars(
        "group-max",
        np.repeat([0, 1, 0, -1.5, 0, 0], 6) * np.where(line % 4 == 1, -1, 1),
        fl.GroupMax(sixes),
        0.5,
        sixes,
    )
    bars(
        "exclusive-lasso", np.where(line % 6 == 2, 1.5, 0) + 0.3 * (line % 6 == 4), fl.ExclusiveLasso(sixes), 0.1, sixes
    )
    bars("fused-lasso", steps, fl.FusedLasso(0.3), 0.3)
    bars("trend-filter", np.interp(line, [0, 12, 24, P], [-1, 1.5, 0, 0.5]), fl.TrendFilter(2), 0.3)
    bars("slope", np.select([line % 9 == 0, line % 9 == 4], [1.5, -1.5]), fl.Slope(q=0.3), 0.12)
    bars("monotone", np.interp(line, [0, 10, 20, P], [-1, -1, 1, 1.2]), fl.Monotone(), 1.0, noise=2.0)

    rows, columns = np.mgrid[:16, :24]
    disc = np.where((rows - 7) ** 2 + (columns - 8) ** 2 < 20, 1.0, 0.0) - (abs(columns - 19) + abs(rows - 9) < 4)
    picture("total-variation", disc, fl.TotalVariation((16, 24), l1_ratio=0.1), 0.12, n=200, noise=1.0)
    walk = np.select([columns + rows < 12, columns - rows > 10], [1.0, -1.0])
    picture("graph-fused", walk, fl.GraphFused(fl.Grid((16, 24)).edges, 0.1), 0.15, n=200, noise=1.0)
    factors = np.outer(np.sin(np.arange(16)), np.cos(np.arange(24) / 3))
    picture("low-rank", factors, fl.LowRank((16, 24)), 0.8, n=250)
    tensor = factors[:, :, None] * np.array([1.0, -1.0])
    picture("tensor-trace-norm", tensor[:8, :8], fl.TensorTraceNorm((8, 8, 2)), 0.3, n=100)
    shared = np.zeros((6, P))
    shared[:, [4, 10, 11, 25]] = np.random.default_rng(0).standard_normal((6, 4))
    picture("multi-task-lasso", shared, fl.MultiTaskLasso(6), 0.6, n=50)
    picture("multi-task-low-rank", np.outer([1, 2, -1, 1, 0, -2], np.sin(line / 4)), fl.MultiTaskLowRank(6), 1.0, n=50)


if __name__ == "__main__":
    main()
