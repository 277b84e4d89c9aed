"""
Survival with pathways
======================

Which genes tell how long a patient stays free of metastases? Genes act together, and a gene takes part in more than
one module, so groups of genes overlap. Cox's model with a *latent group lasso* selects unions of such modules, beside
clinical covariates that stay in the model whatever their effect is.

The data are the 198 node-negative breast cancers of Desmedt et al. (2007), with 76 genes, that ship with
scikit-survival (``pip install scikit-survival``). Without that package the example says so and goes on with generated
data of the same shape.
"""

# %%
# Patients, genes, times
# ----------------------
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import fenchel as fl

clinical = ["age", "size"]
try:
    from sksurv.datasets import load_breast_cancer

    table, times = load_breast_cancer()
    genes = table.filter(regex="^X[0-9]")
    genes = genes.join(table[clinical])
    event, time = times["e.tdm"], times["t.tdm"] / 365.25
except ImportError:
    print("scikit-survival is not installed (pip install scikit-survival): these are generated data of the same shape")
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((198, 12))
    expression = shared[:, np.arange(76) % 12] + 0.8 * rng.standard_normal((198, 76))
    genes = pd.DataFrame(expression, columns=[f"gene {j}" for j in range(76)])
    genes = genes.assign(age=rng.uniform(25, 60, 198), size=rng.uniform(0.6, 5, 198))
    life = rng.exponential(20 * np.exp(-0.8 * shared[:, 3] - 0.3 * (genes["size"] - 2)))
    end = rng.uniform(5, 25, 198)
    event, time = life <= end, np.maximum(np.minimum(life, end), 0.01)

X = (genes - genes.mean()) / genes.std()
y = np.column_stack([time, event])
print(f"{len(X)} patients, {int(np.sum(event))} with metastases, {X.shape[1] - 2} genes")

# %%
# Modules that overlap
# --------------------
# A module is a gene with its four nearest by correlation. Most genes stand in several of them.
names = [name for name in X.columns if name not in clinical]
near = np.argsort(-np.abs(np.corrcoef(X[names].T)), axis=1)[:, :5]
modules = fl.Groups({f"around {names[j]}": np.sort(near[j]) for j in range(len(names))}, features=names)
print(modules)

# %%
# Cox's model
# -----------
# The clinical covariates carry no penalty. Cross-validation says whether genes add anything to them: a fold is judged
# by what its patients add to the partial likelihood, here compared with the covariates alone. (Events are few, and the
# answer may well be that genes add little.)
penalty = fl.Unpenalised(fl.LatentGroupLasso(modules), clinical)
groups = fl.CoxRegressorCV(penalty, n_alphas=12, eps=0.1, cv=4, tol=1e-5).fit(X, y)
lasso = fl.CoxRegressorCV(fl.Unpenalised(fl.L1(), clinical), n_alphas=12, eps=0.1, cv=4, tol=1e-5).fit(X, y)
for name, one in (("modules", groups), ("lasso", lasso)):
    scores = one.cv_results_.mean
    print(
        f"{name:8s} alpha {one.alpha_:.3g}, {np.count_nonzero(one.coef_) - 2} genes, held-out likelihood per patient "
        f"{scores.max() - scores[0]:+.4f}, proven within {one.gap_:.1e} of the optimum"
    )

# %%
# What enters first: the model at seven tenths of the largest useful alpha.
model = fl.CoxRegressor(penalty, alpha_ratio=0.7).fit(X, y)
print(f"concordance {model.score(X, y):.3f} on the data of the fit")
print(model.support().head(8))

# %%
# Curves
# ------
# Patients are parted by the risk that their genes and covariates predict. The lines are the model's own curves,
# averaged over a third of the patients each; crosses are what happened to them (Kaplan and Meier's estimate).
grid = np.linspace(0.1, 12, 60)
risk = model.predict(X)
thirds = np.digitize(risk, np.quantile(risk, [1 / 3, 2 / 3]))
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4))
for third, label in enumerate(("low risk", "middle", "high risk")):
    some = thirds == third
    left.plot(grid, model.predict_survival_function(X[some], grid).mean(axis=0), color=f"C{third}", label=label)
    at = np.array([np.sum(time[some] >= t) for t in np.sort(time[some])])
    factors = np.where(event[some][np.argsort(time[some])], 1 - 1 / at, 1.0)
    left.plot(np.sort(time[some]), np.cumprod(factors), "+", color=f"C{third}", alpha=0.5, markersize=4)
left.set(xlabel="years", ylabel="free of metastases", ylim=(0, 1.02), xlim=(0, 12))
left.legend()
path = groups.path_
right.plot(path.alphas, path.coefs)
right.axvline(model.alpha_, color="grey", linestyle=":")
right.set(xscale="log", xlabel="alpha", ylabel="logarithm of hazard ratios", title="coefficients along the path")
ticks = path.alphas[np.linspace(0, len(path.alphas) - 1, 4).astype(int)]
right.set_xticks(ticks, [f"{tick:.2g}" for tick in ticks])
right.set_xticks([], minor=True)
right.invert_xaxis()
figure.tight_layout()
plt.show()
