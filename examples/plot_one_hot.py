"""
Factors and bins: groups from an encoder
========================================

A one-hot encoder turns a column into many. What belongs together is then only in the encoder's head, and
:meth:`fenchel.Groups.from_encoder` asks it. Here the ten measurements of the diabetes data are cut into bins, as one
does with age bands and income brackets, so that effects need not be straight lines.
"""

# %%
import itertools

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import OneHotEncoder

import fenchel as fl

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)


def banded(values):
    """Twelve bins of about as many rows each; fewer where values are few."""
    return values if values.name == "sex" else pd.qcut(values, 12, labels=False, duplicates="drop")


bins_of = X.apply(banded)
encoder = OneHotEncoder().fit(bins_of)
Z = encoder.transform(bins_of)  # sparse
groups = fl.Groups.from_encoder(encoder)
print(Z.shape, groups)

# %%
# A measurement is in or out
# --------------------------
# The group lasso keeps or drops a measurement with all its bins. But it treats the bins as if they had no order.
plain = fl.StructuredRegressorCV(penalty=fl.GroupLasso(groups), n_alphas=20, eps=1e-2, cv=10, n_jobs=2).fit(Z, y)

# %%
# Neighbouring bins
# -----------------
# An edge between neighbouring bins asks them for the same value, unless the data insists. This is one more term:
edges = [(a, b) for bins in groups.members for a, b in itertools.pairwise(bins)]
fused = fl.L1() @ fl.Incidence(edges, Z.shape[1])
penalty = fl.GroupLasso(groups) + fused
stepwise = fl.StructuredRegressorCV(penalty=penalty, n_alphas=20, eps=1e-2, cv=10, n_jobs=2).fit(Z, y)

linear = fl.StructuredRegressorCV(penalty=fl.Lasso(), n_alphas=20, cv=10, n_jobs=2).fit((X - X.mean()) / X.std(), y)
for name, model in {"bins": plain, "fused bins": stepwise, "straight lines": linear}.items():
    print(f"{name:15s} held-out loss {-model.cv_results_.mean.max():.0f}")

# %%
# Neighbours that are asked to agree predict better than bins without an order, and about as well as straight lines.
# The effects of s5 and of the blood pressure are nearly straight; that of the body mass index is flat among the
# lighter half and then climbs.
largest = stepwise.active_groups().index[:6]
figure, axes = plt.subplots(2, 3, figsize=(10, 5), sharey=True, layout="constrained")
for ax, name in zip(axes.flat, largest, strict=True):
    bins = groups.members[groups.names.index(name)]
    for model, colour, label in ((plain, "0.65", "bins"), (stepwise, "C0", "fused bins")):
        values = model.coef_[bins]
        ax.stairs(values, np.arange(len(bins) + 1), baseline=None, color=colour, linewidth=2, label=label)
    ax.axhline(0, color="0.8", linewidth=0.8, zorder=0)
    ax.set(title=name, xticks=[])
axes[0, 0].legend(frameon=False)
figure.supxlabel("bins, from low to high")
figure.supylabel("effect on the progression")
plt.show()

# %%
# Fused bins share one value in every bit, so they can be counted:
graph = fl.Graph(edges, Z.shape[1])
print(f"{len(fl.segments(plain.coef_, graph))} steps without, {len(fl.segments(stepwise.coef_, graph))} with fusion")
print(stepwise.status_, stepwise.gap_)
