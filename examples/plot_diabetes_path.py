"""
A path, its certificates, and where to stop on it
=================================================

How does the progression of diabetes depend on ten measurements of a patient? The lasso answers for every alpha at once:
a path, from a model with nothing in it to all ten. Every point of it is certified, and cross-validation says how far
along the path the data can take us.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import fenchel as fl

# sphinx_gallery_thumbnail_number = 2

X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = StandardScaler().set_output(transform="pandas").fit_transform(X)
model = fl.StructuredRegressorCV(penalty=fl.Lasso(), selection="1se", cv=10, n_jobs=2).fit(X, y)
print(model.cv_results_)

# %%
# The best alpha, and the simplest that is as good
# ------------------------------------------------
# The curve of the held-out loss is flat near its best point: ten folds cannot tell a whole range of alphas apart. The
# one-standard-error rule takes the simplest model of that range.
fl.plotting.cv_curve(model)
plt.show()

# %%
path = fl.path(X, y, loss="squared", penalty=fl.Lasso(), alphas=model.alphas_, fit_intercept=True)
best, simple = (model.cv_results_.select(rule) for rule in ("min", "1se"))
print(f"best score:         {path.nonzeros[best]} features")
print(f"one standard error: {path.nonzeros[simple]} features")
model.support()

# %%
# The path
# --------
# Body mass index and s5 (the logarithm of triglycerides) come first and stay. Look at s1: it enters late, and ends as
# one of the largest, against s2. Total cholesterol (s1) is roughly the sum of its parts (s2 and s3), so that large
# coefficients of opposite sign cancel. The one-standard-error model (dashed) stops before that happens.
ax = fl.plotting.path(path, names=list(X.columns), top=7)
ax.axvline(model.alpha_, color="0.4", linewidth=1, linestyle="--")
plt.show()

# %%
# Every point is proven
# ---------------------
# For each alpha the optimum lies between the dual and the primal value. With the squared loss this bounds the fitted
# values too: as a root of a mean square they are within √(2 gap) of those of the exact optimum.
error = np.sqrt(2 * path.gaps)
print(path)
print(f"fitted values are within {error.max():.2f} of the exact ones; the targets have a spread of {y.std():.0f}")
path.to_frame().iloc[::10]
