"""
Genes in overlapping pathways
=============================

A gene takes part in several pathways, so groups of genes overlap. Two penalties take such groups, and they mean
opposite things. The *group lasso* puts groups **out**: what remains is what stands in no excluded group. The *latent*
group lasso brings groups **in**: what is selected is a union of pathways, which is what "pathway 3 is involved"
means. On generated expression data, where we know the truth, the difference is plain.
"""

# %%
# Twenty pathways, two of them active
# -----------------------------------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import fenchel as fl

rng = np.random.default_rng(0)
n, p = 120, 120
genes = [f"gene {j}" for j in range(p)]
members = {f"pathway {k}": np.sort(rng.choice(p, 10, replace=False)) for k in range(20)}
pathways = fl.Groups(members, features=genes)
print(pathways)

# %%
# The genes of a pathway are expressed together. Two pathways decide who is ill.
X = rng.standard_normal((n, p))
for genes_of_one in members.values():
    X[:, genes_of_one] += 0.7 * rng.standard_normal((n, 1))
truth = np.zeros(p)
for name in ("pathway 3", "pathway 17"):
    truth[members[name]] += 0.3 * rng.choice([-1, 1]) + 0.1 * rng.standard_normal(10)
y = np.where(X @ truth + 0.7 * rng.standard_normal(n) > 0, "case", "control")
X = pd.DataFrame(X, columns=genes)

# %%
# Three penalties
# ---------------
# Genes that stand in no pathway become groups of their own (`complete`), else they would carry no penalty.
groups = pathways.complete()
penalties = {
    "lasso": fl.Lasso(),
    "group lasso": fl.GroupLasso(groups),
    "latent group lasso": fl.LatentGroupLasso(groups),
}
models = {}
for name, penalty in penalties.items():
    model = fl.StructuredClassifierCV(penalty=penalty, selection="1se", n_alphas=15, eps=0.05, tol=1e-4, n_jobs=2)
    model.fit(X, y)
    models[name] = model
    found = model.coef_[0] != 0
    loss = -model.cv_results_.mean[model.cv_results_.select("1se")]
    print(
        f"{name:19s} held-out loss {loss:.2f}; {found.sum()} genes, "
        f"{np.sum(found & (truth != 0))} of the {np.count_nonzero(truth)} true ones"
    )

# %%
# The latent form finds every true gene, adds few others, and predicts best. The lasso misses some. To the group lasso
# an overlap is an obstacle: a gene is in only if *all* its pathways are, so to keep the true ones it must let nearly
# all pathways in.
figure, axes = plt.subplots(4, 1, figsize=(9, 6), sharex=True, layout="constrained")
coefs = {"truth": truth} | {name: -model.coef_[0] for name, model in models.items()}  # cases come first
for ax, (name, coef) in zip(axes, coefs.items(), strict=True):
    ax.vlines(np.flatnonzero(coef), 0, coef[coef != 0], color="C0", linewidth=2)
    ax.axhline(0, color="0.7", linewidth=0.8)
    ax.set_title(f"{name}: {np.count_nonzero(coef)} genes", loc="left", fontsize=10)
    ax.set_yticks([])
axes[-1].set_xlabel("gene")
plt.show()

# %%
# Which pathways?
# ---------------
# Those whose latent part is not zero. Others have some genes of it only because they share them.
models["latent group lasso"].active_groups()
