"""
Probabilities of ten digits: softmax with structure
===================================================

What is the chance that this is a 7? One model for each digit against the rest gives ten answers that do not add up to
one, and dividing them by their sum does not make them right. The softmax sees all classes of a row together, and its
scores are fitted to be probabilities. fenchel fits it with any penalty, here one that knows that pixels have
neighbours, and proves how close the answer is to the best one.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import fenchel as fl

# sphinx_gallery_thumbnail_number = 2

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=300, stratify=y, random_state=0)

# %%
# Together, or each against the rest
# ----------------------------------
# Three classes or more are fitted by the softmax unless ``multi_class="ovr"`` says otherwise. The held-out log-loss
# asks for probabilities that can be believed, not for labels alone. :class:`fenchel.MultiTaskLasso` takes a pixel in or
# out for all digits.
alphas = np.geomspace(0.02, 0.0005, 6)
figure, ax = plt.subplots(figsize=(6.4, 4), layout="constrained")
for name, how in {"softmax": "multinomial", "each against the rest": "ovr"}.items():
    losses = []
    for alpha in alphas:
        model = fl.StructuredClassifier(penalty=fl.MultiTaskLasso(), alpha=alpha, multi_class=how, tol=1e-4)
        losses.append(log_loss(y_test, model.fit(X_train, y_train).predict_proba(X_test)))
    print(f"{name}: log-loss {min(losses):.3f}")
    ax.plot(alphas, losses, marker="o", label=name)
ax.set(xscale="log", xlabel="alpha", ylabel="log-loss of 1497 new images")
ax.grid(alpha=0.3)
ax.legend(frameon=False)
plt.show()

# %%
# Ten images of weights
# ---------------------
# The penalty of a class may be any other one as well: here the total variation of its image, with a little of the ℓ1
# norm. Neighbouring pixels share a value wherever the data do not tell them apart, so that the weights are regions, not
# dots. A red region speaks for the digit, a blue one against it.
penalty = fl.TotalVariation((8, 8)) + 0.2 * fl.L1()
model = fl.StructuredClassifier(penalty=penalty, alpha=0.0005, tol=1e-3).fit(X_train, y_train)
print(f"{model.score(X_test, y_test):.1%} right; no weights have an objective smaller by more than {model.gap_:.0e}")
largest = np.abs(model.coef_).max()
figure, axes = plt.subplots(2, 5, figsize=(8, 3.6), layout="constrained")
for digit, ax in enumerate(axes.ravel()):
    ax.imshow(model.coef_[digit].reshape(8, 8), cmap="RdBu_r", vmin=-largest, vmax=largest)
    ax.set_title(str(digit), fontsize=11)
    ax.set_axis_off()
plt.show()

# %%
# Are they probabilities?
# -----------------------
# Of all images to which the softmax gives a chance of about 90 %, about 90 % should be what it says.
chance = model.predict_proba(X_test)
sure, right = chance.max(axis=1), model.predict(X_test) == y_test
for low, high in [(0.0, 0.6), (0.6, 0.8), (0.8, 0.95), (0.95, 1.01)]:
    some = (sure >= low) & (sure < high)
    print(f"{some.sum():4d} images with a mean chance of {sure[some].mean():.2f}: {right[some].mean():.2f} right")
