"""
Which measurements matter? Groups of columns
============================================

The breast cancer data describes cell nuclei by ten quantities, each given three times: its mean, its standard error
and its worst value. The lasso picks columns; the group lasso picks quantities. What is the difference, and what does
it cost?
"""

# %%
# Quantities from column names
# ----------------------------
import matplotlib.pyplot as plt
from sklearn.datasets import load_breast_cancer

import fenchel as fl

data = load_breast_cancer(as_frame=True)
X = (data.data - data.data.mean()) / data.data.std()
y = data.target_names[data.target]


def quantity(column):
    return column.replace("mean ", "").replace("worst ", "").replace(" error", "")


groups = fl.Groups.from_columns(X, by=quantity)
groups.to_frame()

# %%
# Two cross-validated models
# --------------------------
# Both take the simplest model within one standard error of the best. The score of a fold is the mean loss of the rows
# held out.
models = {
    "lasso": fl.StructuredClassifierCV(penalty=fl.Lasso(), selection="1se", n_alphas=25, n_jobs=2),
    "group lasso": fl.StructuredClassifierCV(penalty=fl.GroupLasso(groups), selection="1se", n_alphas=25, n_jobs=2),
}
for name, model in models.items():
    model.fit(X, y)
    loss = -model.cv_results_.mean.max()
    active = model.active_groups(groups)
    print(f"{name:12s} held-out loss {loss:.3f}: {len(model.support())} columns of {len(active)} quantities")

# %%
# They predict about equally well. The lasso uses half as many columns, and yet it needs just as many quantities: it
# takes a worst value here, a standard error there. Whoever has to take the measurements gains nothing from its zeros.
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    fl.plotting.group_norms(model, groups, ax=ax)
    ax.set_title(name.capitalize(), loc="left", fontweight="bold", pad=20)
plt.show()

# %%
# How a quantity enters
# ---------------------
# Along the path the three columns of a quantity enter together. The concave parts of the outline come first:
fl.plotting.path(models["group lasso"])
plt.show()

# %%
# Every point is certified: no coefficients whatever have an objective that is smaller by more than the gap.
print(models["group lasso"].path_)
print(models["group lasso"].status_, models["group lasso"].gap_)
