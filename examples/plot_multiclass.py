"""
Ten classes, one set of pixels
==============================

Ten digits are told apart by ten linear models, one for each digit against the rest. If each picks its own pixels, the
camera must record the pixels of all ten. fenchel solves the ten as *one* problem, so that a penalty can take a pixel
in or out for all of them. (For the softmax, the default, see :doc:`plot_softmax`.)
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import fenchel as fl

# sphinx_gallery_thumbnail_number = 2

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=600, stratify=y, random_state=0)

# %%
# Pixels against accuracy
# -----------------------
# :class:`fenchel.Lasso` is applied to every class for itself, :class:`fenchel.MultiTaskLasso` to all of them together:
# it adds up the Euclidean norms of the pixels' ten weights.
penalties = {"each class for itself": fl.Lasso(), "all classes together": fl.MultiTaskLasso()}
models = {name: [] for name in penalties}
for name, penalty in penalties.items():
    for alpha in np.geomspace(0.06, 0.003, 8):
        model = fl.StructuredClassifier(penalty=penalty, alpha=alpha, multi_class="ovr")
        models[name].append(model.fit(X_train, y_train))

figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, fits in models.items():
    pixels = [np.count_nonzero(model.coef_.any(axis=0)) for model in fits]
    scores = [model.score(X_test, y_test) for model in fits]
    ax.plot(pixels, scores, marker="o", label=name)
    print(name, [f"{k}: {score:.3f}" for k, score in zip(pixels, scores, strict=True)])
ax.set(xlabel="pixels that some class uses, of 64", ylabel="accuracy on 1197 new images")
ax.grid(alpha=0.3)
ax.legend(frameon=False)
plt.show()

# %%
# With 16 of 64 pixels the joint model reads five digits in six. Models that pick for themselves read half of them
# with as many pixels, and need some 26 to draw level. When most pixels are in, there is little left to gain.
#
# The sixteen pixels
# ------------------
# The weights of the ten digits, on the same sixteen pixels; everything else is exactly zero, in all ten.
few = models["all classes together"][0]
fl.plotting.weights_on_grid(few, (8, 8))
plt.show()

# %%
used = few.coef_.any(axis=0)
assert not few.coef_[:, ~used].any()
print(f"{used.sum()} pixels, accuracy {few.score(X_test, y_test):.3f}, {few.status_}, gap {few.gap_:.1e}")
