"""
A curve through a cloud: fused, trend-filtered, monotone
========================================================

How does the progression of diabetes depend on the body mass index? Sort the 442 patients by it, and look for a curve
that is close to the points and has few steps, or few bends, or never falls. Each is a penalty, and the curve is its
proximal operator: :func:`fenchel.prox`, no regression needed.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes

import fenchel as fl

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
order = np.argsort(X["bmi"].to_numpy(), kind="stable")
bmi, progression = X["bmi"].to_numpy()[order], y.to_numpy()[order]

# %%
# Three ideas of a curve
# ----------------------
# The fused lasso counts steps, the trend filter of order 2 counts bends, and a monotone fit has no parameter at all.
# Trend filters are ill-conditioned: neighbouring points say little about where a bend should be. The dual method behind
# `prox` then needs many (very cheap) iterations, and the certificate says when it has made enough.
curves = {
    "few steps": fl.prox(progression, fl.FusedLasso(l1_ratio=0), step=300),
    "never falls": fl.prox(progression, fl.Monotone()),
}
curves["few bends"], info = fl.prox(
    progression, fl.TrendFilter(order=2), step=2e4, tol=1e-6, max_iter=500_000, return_info=True
)
print(f"trend filter: {info.iterations} iterations, relative gap {info.gap:.0e}")

figure, ax = plt.subplots(figsize=(8, 4.6), layout="constrained")
ax.plot(progression, ".", color="0.8", markersize=5)
for (name, curve), colour in zip(curves.items(), ("C0", "C2", "C3"), strict=True):
    ax.plot(curve, color=colour, linewidth=2, label=name)
ticks = np.arange(0, len(bmi), 63)
ax.set_xticks(ticks, [f"{value:.0f}" for value in bmi[ticks]])
ax.set(xlabel="body mass index of the patients, in order", ylabel="progression after a year")
ax.legend(frameon=False)
plt.show()

# %%
# Steps and bends are exact
# -------------------------
# The values of a step agree in every bit. Of the second differences of the trend filter four stand out, and all others
# are zero to the precision that was asked for: five straight pieces.
print("steps:", len(np.unique(curves["few steps"])))
print("steps of the monotone curve:", len(np.unique(curves["never falls"])))
second = np.sort(np.abs(np.diff(curves["few bends"], 2)))[::-1]
print("second differences:", second[:4], "and the next", second[4])
