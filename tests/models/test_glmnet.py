"""Answers of glmnet on data that ships with scikit-learn, columns standardised.

The numbers are those of glmnet 4.1-6 (R 4.2, thresh=1e-15, maxit=1e7, standardize=FALSE), the last lambda of three:
multinomial on wine with lambda .2, .1, .05, ungrouped and grouped; on diabetes poisson (20, 10, 5), binomial with the
target / 400 as shares (.1, .05, .02), and cox (.2, .1, .05) with ties, in times of round(target / 10) + 1, of which
every third is censored.
"""

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_wine

import fenchel as fl

UNGROUPED = [
    [0.1047052952767, 0, 0, 0, -0.1051694119564, 0, 0, 0.0948904309968, 0, 0, 0, 0, 0.1355041100176, 1.1052897538117],
    [0.353415988072, -0.948336797529, 0, -0.223458271229, 0, 0, 0, 0, 0, 0, -0.678726553160, 0, 0, -0.135605036615],
    [-0.458121283349, 0, 0, 0, 0, 0, 0, -0.937597964749, 0, 0, 0, -0.573287450741, -0.516428083777, 0],
]
GROUPED = [
    [0.05802871849580, 0.47133068118400, 0.00896854760971, 0.06614606050787, -0.05389579425927, 0, 0, 0.57694578828139,
     0, 0, 0.07391329617484, 0.05511194781604, 0.30621113509154, 0.80207925111199],
    [0.3504993143411, -0.5999073056672, -0.0823007502327, -0.1285244151365, 0.0257991747249, 0, 0, 0.2061131682752,
     0, 0, -0.5151460587590, 0.2418245855110, 0.0905011588149, -0.6917286796893],
    [-0.4085280328369, 0.1285766244832, 0.0733322026230, 0.0623783546286, 0.0280966195344, 0, 0, -0.7830589565566,
     0, 0, 0.4412327625841, -0.2969365333270, -0.3967122939064, -0.1103505714227],
]  # fmt: skip
POISSON = [4.9771509679510, 0, -0.0136661895957, 0.1491821084720, 0.0693973501079, 0, 0, -0.0537806799168, 0,
           0.1369927682188, 0]  # fmt: skip
SHARES = [-0.5130707934649, 0, 0, 0.2527082726751, 0.0892259905643, 0, 0, -0.0502191910092, 0, 0.2220644068441, 0]
COX = [0, 0.0228509591695, -0.3721364847314, -0.1601056353217, 0, 0, 0.1311142627210, 0, -0.3131477460187,
       -0.0175779697785]  # fmt: skip


def standardised(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


@pytest.mark.parametrize(
    ("penalty", "theirs"), [(fl.L1(), UNGROUPED), (fl.MultiTaskLasso(), GROUPED)], ids=["ungrouped", "grouped"]
)
def test_multinomial(penalty, theirs):
    X, y = standardised(load_wine)
    model = fl.StructuredClassifier(penalty=penalty, alpha=0.05, tol=1e-11).fit(X, y)
    theirs = np.array(theirs)
    assert np.allclose(model.coef_, theirs[:, 1:], atol=1e-6)
    away = model.intercept_ - theirs[:, 0]
    assert np.allclose(away, away.mean(), atol=1e-6)  # what all classes share changes nothing
    assert np.array_equal(model.coef_ != 0, theirs[:, 1:] != 0)


@pytest.mark.parametrize("loss", ["poisson", "logistic", "binomial"])
def test_counts_and_shares(loss):
    X, y = standardised(load_diabetes)
    theirs, y, alpha = (POISSON, y, 5.0) if loss == "poisson" else (SHARES, y / 400, 0.02)
    model = fl.StructuredRegressor(loss, fl.L1(), alpha=alpha, tol=1e-12).fit(X, y)
    assert np.allclose(np.append(model.intercept_, model.coef_), theirs, atol=1e-6)


def test_cox_with_ties():
    X, y = standardised(load_diabetes)
    times, event = np.round(y / 10) + 1, np.arange(1, len(y) + 1) % 3 != 0
    model = fl.CoxRegressor(fl.L1(), alpha=0.05, tol=1e-12).fit(X, np.column_stack([times, event]))
    assert np.allclose(model.coef_, COX, atol=1e-6)
