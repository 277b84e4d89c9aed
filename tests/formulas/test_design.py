"""Formulas: features, targets, offsets and groups from a data frame; models of them; and what newcomers write."""

import numpy as np
import pytest

import fenchel as fl

pd = pytest.importorskip("pandas", reason="formulas need a data frame (fenchel[formula])")
pytest.importorskip("formulaic", reason="formulas need formulaic (fenchel[formula])")

rng = np.random.default_rng(0)
N = 300
FRAME = pd.DataFrame(
    {
        "region": rng.choice(["north", "south", "west"], N), "age": rng.uniform(18, 80, N),
        "bonus": rng.standard_normal(N), "noise": rng.choice(list("abcd"), N), "exposure": rng.uniform(0.2, 2.0, N),
    }
)  # fmt: skip
RATE = np.exp(0.8 * (FRAME["region"] == "south") - 0.5 * FRAME["bonus"] - 0.5)
FRAME["claims"] = rng.poisson(FRAME["exposure"] * RATE)
FORMULA = "claims ~ C(region) + bs(age, 5) + bonus + C(noise) + offset(log(exposure))"


def test_what_a_formula_makes():
    made = fl.design(FORMULA, FRAME)
    assert made.groups.names == ["C(region)", "bs(age, 5)", "bonus", "C(noise)"]
    assert made.groups.sizes.tolist() == [3, 5, 1, 4] and made.X.shape == (N, 13) and made.fit_intercept
    assert np.array_equal(made.y, FRAME["claims"]) and np.allclose(made.offset, np.log(FRAME["exposure"]))
    assert np.array_equal(made.X["C(region)[south]"], FRAME["region"] == "south")
    assert repr(made).endswith("300 rows, 13 features of 4 terms, with an offset)")
    assert not fl.design("claims ~ 0 + bonus", FRAME).fit_intercept
    assert fl.design("~ bonus + age", FRAME).y is None


def test_other_rows_have_the_same_features():
    made = fl.design(FORMULA, FRAME)
    new = FRAME.iloc[:5].drop(columns="claims")
    again = made.of(new)
    assert np.allclose(again.X, made.X.iloc[:5]) and np.allclose(again.offset, made.offset[:5]) and again.y is None


def test_a_model_of_a_formula():
    model = fl.StructuredRegressor.from_formula(FORMULA, FRAME, loss="poisson", alpha=0.04)
    made = model.design_
    by_hand = fl.StructuredRegressor("poisson", fl.GroupLasso(made.groups), alpha=0.04)
    by_hand.fit(made.X, made.y, offset=made.offset)
    assert np.array_equal(model.coef_, by_hand.coef_) and model.status_ is fl.Status.CONVERGED
    assert set(model.active_groups().index) == {"C(region)", "bonus"}
    new = made.of(FRAME.iloc[:7])
    assert np.allclose(model.predict(new.X, offset=new.offset), model.predict(made.X, offset=made.offset)[:7])
    # a frame as it was in the fit goes through the formula, with its offset
    assert np.array_equal(model.predict(FRAME.iloc[:7]), model.predict(new.X, offset=new.offset))
    with pytest.raises(ValueError, match="does not go with this frame"):
        model.predict(FRAME.drop(columns="age"))


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("claims ~ C(regoin)", "does not go with this frame"),
        ("claims ~ 1", "no features on its right side"),
        ("claims ~ bonus +", "does not go with this frame"),
        ("claims ~ bonus + offset(log(exposure - exposure))", r"is -inf in row 0 .* exposure of 0"),
    ],
)
def test_bad_formulas(formula, message):
    with pytest.raises(ValueError, match=message):
        fl.design(formula, FRAME)


def test_bad_frames():
    with pytest.raises(ValueError, match="a formula needs a data frame"):
        fl.design("y ~ x", np.eye(3))
    with pytest.raises(ValueError, match="needs a target, as in 'y ~ bonus'"):
        fl.StructuredRegressor.from_formula("bonus", FRAME)
    with pytest.raises(ValueError, match="does not go with this frame"):
        fl.design("claims ~ bonus", FRAME.assign(bonus=np.nan))


@pytest.mark.parametrize("kind", ["str", "category"])
def test_words_in_a_frame_are_told_the_way(kind):
    frame = FRAME[["age", "region"]].astype({"region": kind if kind == "category" else object})
    with pytest.raises(ValueError, match="column 'region' of X holds words") as error:
        fl.StructuredRegressor().fit(frame, FRAME["claims"])
    lines = str(error.value).splitlines()
    made = eval(lines[1].split("=", 1)[1].strip(), {"fenchel": fl, "X": frame})  # the lines that it shows run
    fl.StructuredRegressor(alpha=0.1).fit(made.X, FRAME["claims"])
    with pytest.raises(ValueError, match="column 'region' of X holds words"):
        fl.StructuredClassifier().fit(frame, FRAME["claims"] > 0)
    with pytest.raises(ValueError, match="column 'region' of X holds words") as error:
        fl.Problem(frame, FRAME["claims"], loss="squared")
    lines = str(error.value).splitlines()
    made = eval(lines[1].split("=", 1)[1].strip(), {"fenchel": fl, "X": frame})
    assert lines[2].strip() == "fenchel.Problem(design.X, y, …)"
    assert fl.Problem(made.X, FRAME["claims"], loss="squared").p == made.X.shape[1]
