"""The pictures: what is drawn is what is in the model, whatever its size; and they leave pyplot alone."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris

import fenchel as fl

matplotlib = pytest.importorskip("matplotlib", reason="the pictures need matplotlib (fenchel[plot])")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.collections import LineCollection  # noqa: E402

from fenchel import plotting  # noqa: E402
from fenchel.plotting.layout import graph_layout  # noqa: E402

rng = np.random.default_rng(0)
X = rng.standard_normal((150, 12))
Y = np.sign(X @ np.r_[2.0, -2.0, 1.0, np.zeros(9)] + 0.5 * rng.standard_normal(150))
GROUPS = fl.Groups({"signal": [0, 1, 2], "mixed": [2, 3, 4], "noise": [5, 6, 7, 8], "rest": [9, 10, 11]}, p=12)
NAMES = [f"f{j}" for j in range(12)]


@pytest.fixture(autouse=True)
def clean():
    plt.close("all")
    yield
    plt.close("all")


def problem(**more):
    arguments = {"loss": "logistic", "penalty": fl.GroupLasso(GROUPS), "alpha": 0.05, "fit_intercept": True}
    return fl.Problem(X, Y, **(arguments | more))


@pytest.fixture(scope="module")
def result():
    return fl.solve(problem(loss="smoothed-hinge"), tol=1e-7)


@pytest.fixture(scope="module")
def path():
    return fl.path(problem(), n_alphas=15, eps=0.01)


@pytest.fixture(scope="module")
def model():
    frame = pytest.importorskip("pandas").DataFrame(X, columns=NAMES)
    return fl.StructuredClassifierCV(penalty=fl.GroupLasso(GROUPS), n_alphas=12, selection="1se").fit(frame, Y)


@pytest.fixture(scope="module")
def iris():
    return fl.StructuredClassifier(penalty=fl.TotalVariation((2, 2)), alpha=0.05).fit(*load_iris(return_X_y=True))


GRAPH = fl.Graph([(0, 1, 1.0), (1, 2, -1.0), (4, 5, 2.0)], 12, features=NAMES)
DRAWN = {
    "convergence": lambda m, ax=None: plotting.convergence(m["result"], tol=1e-7, ax=ax),
    "convergence of a path": lambda m, ax=None: plotting.convergence(m["path"], ax=ax),
    "convergence of several": lambda m, ax=None: plotting.convergence({"a": m["result"], "b": m["model"]}, ax=ax),
    "path": lambda m, ax=None: plotting.path(m["path"], ax=ax),
    "path by group": lambda m, ax=None: plotting.path(m["model"], ax=ax),
    "group norms": lambda m, ax=None: plotting.group_norms(m["model"], ax=ax),
    "group norms of a path": lambda m, ax=None: plotting.group_norms(m["path"], GROUPS, ax=ax),
    "grid": lambda m, ax=None: plotting.weights_on_grid(m["result"], (3, 4), ax=ax),
    "line": lambda m, ax=None: plotting.weights_on_grid(m["result"], 12, ax=ax),
    "volume": lambda m, ax=None: plotting.weights_on_grid(m["result"], (2, 2, 3), ax=ax),
    "classes": lambda m, ax=None: plotting.weights_on_grid(m["iris"], ax=ax),
    "graph": lambda m, ax=None: plotting.weights_on_graph(m["result"], GRAPH, ax=ax),
    "cv": lambda m, ax=None: plotting.cv_curve(m["model"], ax=ax),
}


@pytest.fixture
def models(result, path, model, iris):
    return {"result": result, "path": path, "model": model, "iris": iris}


@pytest.mark.parametrize("name", DRAWN)
def test_draws_on_the_axes_given_and_makes_no_figure(models, name):
    figure = matplotlib.figure.Figure()
    ax = figure.subplots()
    assert DRAWN[name](models, ax) is ax
    assert plt.get_fignums() == []
    figure.savefig("/dev/null" if sys.platform != "win32" else "NUL", format="png")


@pytest.mark.parametrize("name", DRAWN)
def test_makes_one_figure_with_labels_and_leaves_the_rest(models, name):
    before = dict(matplotlib.rcParams)
    ax = DRAWN[name](models)
    assert plt.get_fignums() == [1] and ax.figure is plt.figure(1)
    assert ax.get_title(loc="left")
    assert not ax.axison or ax.get_xlabel() or len(ax.get_xticks()) == 0
    assert dict(matplotlib.rcParams) == before
    ax.figure.canvas.draw()


def test_the_title_can_be_replaced(result):
    ax = plotting.convergence(result)
    ax.set_title("mine", loc="left")
    assert ax.get_title(loc="left") == "mine" and ax.get_title() == ""


# -- convergence ------------------------------------------------------------------------------------


@pytest.mark.parametrize("against", ["epochs", "seconds"])
def test_convergence_shows_every_certificate(result, against):
    ax = plotting.convergence(result, against=against, tol=1e-7)
    line, goal = ax.get_lines()
    history = result.history
    x = history.epoch if against == "epochs" else history.seconds
    seen = np.isfinite(line.get_ydata())
    assert np.array_equal(line.get_xdata()[: len(x)], x) and ax.get_yscale() == "log"
    finite = np.isfinite(history.relative_gap)
    gaps = np.maximum(history.relative_gap[finite], 1e-16)  # a gap of 0 has its place, too
    assert np.array_equal(line.get_ydata()[seen][: finite.sum()], gaps)
    assert np.allclose(goal.get_ydata(), 1e-7) and against in ax.get_xlabel()


def test_a_polished_answer_ends_at_its_own_gap(model):
    ax = plotting.convergence(model)
    assert ax.get_lines()[0].get_ydata()[-1] == pytest.approx(max(model.result_.relative_gap, 1e-16))


def test_a_path_adds_up_its_work(path):
    x = plotting.convergence(path).get_lines()[0].get_xdata()
    assert np.nanmax(x) <= path.epochs.sum() and np.count_nonzero(np.isnan(x)) == len(path) - 1


def test_a_path_whose_points_took_no_pass_shows_all_of_them():
    """One Gram matrix answers all alphas: a line through one epoch would show nothing."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 5))
    path = fl.path(X, X[:, 0] + rng.standard_normal(200), loss="squared", penalty=fl.L1(), n_alphas=80)
    (line,) = [made for made in plotting.convergence(path).get_lines() if len(made.get_xdata()) > 2]
    x, gap = np.asarray(line.get_xdata(), float), np.asarray(line.get_ydata(), float)
    shown = np.isfinite(x) & np.isfinite(gap)
    assert np.count_nonzero(shown) >= 80 and np.unique(x[shown]).size == np.count_nonzero(shown)
    marked = line.get_markevery()
    neighbours = np.isfinite(np.append(gap, np.nan)[1:]) | np.isfinite(np.append(np.nan, gap)[:-1])
    assert line.get_marker() == "o" and (marked is None or set(marked) == set(np.flatnonzero(shown & ~neighbours)))


def test_convergence_refuses_what_it_cannot_show(result):
    with pytest.raises(ValueError, match="against is 'minutes'"):
        plotting.convergence(result, against="minutes")
    with pytest.raises(ValueError, match="empty dict"):
        plotting.convergence({})
    with pytest.raises(ValueError, match="model is ndarray; give a Result"):
        plotting.convergence(np.ones(3))


# -- paths ------------------------------------------------------------------------------------------


def lines_by_colour(ax):
    found = {}
    for line in ax.get_lines():
        if len(line.get_xdata()) > 2:
            found.setdefault(line.get_color(), []).append(line.get_ydata())
    return found


def legend(ax):
    return {text.get_text(): handle.get_color() for text, handle in
            zip(ax.get_legend().get_texts(), ax.get_legend().legend_handles, strict=True)}  # fmt: skip


def test_a_path_is_coloured_by_group(path):
    ax = plotting.path(path, groups=GROUPS)
    assert ax.get_xscale() == "log" and ax.get_xlim()[0] > ax.get_xlim()[1]  # strong penalties at the left
    drawn, names = lines_by_colour(ax), legend(ax)
    assert set(names) <= set(GROUPS.names) and "signal" in names
    # a feature of two groups takes the colour of the larger
    signal = np.array(drawn[names["signal"]])
    assert sorted(map(tuple, signal)) == sorted(map(tuple, path.coefs[:, [0, 1, 2]].T))
    assert sum(map(len, drawn.values())) == np.count_nonzero(path.coefs.any(axis=0))


def test_without_groups_features_are_named(path):
    ax = plotting.path(path, names=NAMES, top=3)
    size = np.abs(path.coefs).max(axis=0)
    best = [NAMES[j] for j in np.argsort(-size)[:3]]
    assert [name for name in legend(ax) if "other" not in name] == best
    rest = np.count_nonzero(size) - 3
    assert f"{rest} other features" in legend(ax)
    (grey,) = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert len(grey.get_segments()) == rest


def test_the_proof_is_in_the_picture(path):
    def story(found):
        return " ".join(text.get_text() for text in plotting.path(found).texts)

    assert "15 alphas, each certified to a relative gap of 1e-06" in story(path)
    late = fl.path(problem(loss="hinge"), alphas=[0.1, 0.01, 0.001], tol=1e-12, max_epochs=2)
    assert "not certified to 1e-12" in story(late)


@pytest.mark.parametrize("alphas", [[0.01], [1e4], [0.1, 0.01, 0.0], [0.0]])
def test_odd_paths(alphas):
    ax = plotting.path(fl.path(problem(), alphas=alphas))
    ax.figure.canvas.draw()
    labels = [tick.get_text() for tick in ax.get_xticklabels()]
    assert ("0" in labels) == (0.0 in alphas)
    texts = [text.get_text() for text in ax.texts]
    assert ("all coefficients are zero" in texts) == (alphas == [1e4])


def test_a_path_of_several_outputs(iris):
    data, kinds = load_iris(return_X_y=True)
    target = np.where(kinds[:, None] == np.arange(3), 1.0, -1.0)
    found = fl.path(data, target, loss="logistic", penalty=fl.MultiTaskLasso(3), n_alphas=5, eps=0.1)
    ax = plotting.path(found, names=["a", "b", "c", "d"], top=20)
    assert "c (output 0)" in legend(ax)
    assert "c (setosa)" in legend(plotting.path(found, names=list("abcd"), labels=["setosa", "two", "three"], top=20))
    ax = plotting.path(found, groups={"sepal": [0, 1], "petal": [2, 3]})
    assert set(legend(ax)) == {"sepal", "petal"}


def test_many_features_and_groups_stay_readable():
    wide = np.random.default_rng(1).standard_normal((40, 1500))
    found = fl.path(wide, wide[:, ::100].sum(axis=1), loss="squared", penalty=fl.L1(), alphas=[0.5, 0.2, 0.1], tol=1e-3)
    ax = plotting.path(found, groups=np.arange(1500) // 10)
    assert len(legend(ax)) == 8 and any("other groups" in name for name in legend(ax))
    ax = plotting.group_norms(found[-1], np.arange(1500) // 10)
    assert len(ax.patches) == 15 and "the largest 15 shown" in ax.texts[-1].get_text()


def test_paths_refuse_what_is_none(result):
    with pytest.raises(ValueError, match="model is Result; give a Path"):
        plotting.path(result)
    with pytest.raises(ValueError, match="names has 2 entries for 12 features"):
        plotting.path(fl.path(problem(), alphas=[0.1]), names=["a", "b"])


# -- groups -----------------------------------------------------------------------------------------


def test_group_norms_are_norms(result):
    ax = plotting.group_norms(result, GROUPS)
    expected = fl.active_groups(result.coef, GROUPS)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx(expected["norm"].tolist())
    assert [tick.get_text() for tick in ax.get_yticklabels()] == expected.index.tolist()
    assert any(f"{len(expected)} of 4 groups" in text.get_text() for text in ax.texts)


def test_groups_along_a_path(path):
    ax = plotting.group_norms(path, GROUPS)
    line = lines_by_colour(ax)[legend(ax)["signal"]][0]
    assert line == pytest.approx(np.linalg.norm(path.coefs[:, [0, 1, 2]], axis=1))


def test_zero_groups_and_joint_groups():
    ax = plotting.group_norms(np.zeros(12), GROUPS)
    assert any("all groups are zero" in text.get_text() for text in ax.texts) and not ax.patches
    both = plotting.group_norms(np.arange(6.0).reshape(2, 3), [[0, 3], [2, 5]])  # numbers beyond p: all outputs
    assert [bar.get_width() for bar in both.patches] == pytest.approx([np.hypot(2, 5), 3.0])
    with pytest.raises(ValueError, match="groups is needed"):
        plotting.group_norms(np.ones(3))


# -- grids ------------------------------------------------------------------------------------------


def canvas(ax):
    return np.ma.filled(ax.get_images()[-1].get_array().astype(float), np.nan)


def test_an_image_is_the_weights(result):
    ax = plotting.weights_on_grid(result, (3, 4))
    assert np.array_equal(canvas(ax), result.coef.reshape(3, 4))
    low, high = ax.get_images()[-1].get_clim()
    assert low == -high == -np.abs(result.coef).max()  # zero is white


def test_a_mask_leaves_cells_out():
    mask = np.array([[True, False], [True, True]])
    ax = plotting.weights_on_grid([1.0, -2.0, 3.0], mask)
    assert np.array_equal(canvas(ax), [[1.0, np.nan], [-2.0, 3.0]], equal_nan=True)
    assert np.array_equal(np.isnan(np.ma.filled(ax.get_images()[0].get_array(), np.nan)), mask)


def test_classes_and_slices_stand_side_by_side(iris):
    ax = plotting.weights_on_grid(iris)
    drawn = canvas(ax)
    assert np.sort(drawn[np.isfinite(drawn)]) == pytest.approx(np.sort(iris.coef_.ravel()))
    assert {"0", "1", "2"} <= {text.get_text() for text in ax.texts}
    ax = plotting.weights_on_grid(np.arange(24.0), (2, 3, 4))
    assert {"slice 0", "slice 1"} <= {text.get_text() for text in ax.texts}


def test_a_line_and_what_a_penalty_knows(result):
    model = fl.StructuredClassifier(penalty=fl.FusedLasso(), alpha=0.02).fit(X, Y)
    line = plotting.weights_on_grid(model).get_lines()[0]
    assert np.array_equal(line.get_ydata(), model.coef_[0])
    low = fl.StructuredClassifier(penalty=fl.LowRank((3, 4)), alpha=0.05).fit(X, Y)
    assert np.array_equal(canvas(plotting.weights_on_grid(low)), low.coef_.reshape(3, 4))


def test_grids_refuse_what_does_not_fit(result):
    with pytest.raises(ValueError, match="there are 12 coefficients, but Grid\\(5 x 5\\) has 25 cells"):
        plotting.weights_on_grid(result, (5, 5))
    with pytest.raises(ValueError, match="grid is needed"):
        plotting.weights_on_grid(result)
    with pytest.raises(ValueError, match="4 dimensions"):
        plotting.weights_on_grid(np.ones(24), (2, 3, 2, 2))
    with pytest.raises(ValueError, match="labels has 1 entries for 2 outputs"):
        plotting.weights_on_grid(np.ones((2, 4)), (2, 2), labels=["a"])


# -- graphs -----------------------------------------------------------------------------------------


def test_nodes_edges_and_names():
    coef = np.zeros(12)
    coef[:6] = [2.0, 2.0, -2.0, 0.0, 1.0, 0.5]
    ax = plotting.weights_on_graph(coef, GRAPH, top=2)
    zero, live = [c for c in ax.collections if not isinstance(c, LineCollection)]
    assert len(zero.get_offsets()) == 7 and np.array_equal(live.get_array(), coef[coef != 0])
    edges = [c for c in ax.collections if isinstance(c, LineCollection)]
    assert sum(len(c.get_segments()) for c in edges) == 3
    assert any("2 of 3 edges are fused" in text.get_text() for text in ax.texts)  # 0-1, and 1-2 with opposite signs
    named = {text.get_text() for text in ax.texts}
    assert {"f0", "f1"} <= named and not {"f4", "f5"} & named


def test_graphs_of_every_shape():
    for edges, p in (([], 3), ([(0, 1)], 2), ([(0, i) for i in range(1, 9)], 10)):
        graph = fl.Graph(np.array(edges, dtype=int).reshape(-1, 2), p)
        plotting.weights_on_graph(np.zeros(p), graph).figure.canvas.draw()
    grid = fl.StructuredClassifier(penalty=fl.TotalVariation((3, 4)), alpha=0.05).fit(X, Y)
    assert any("of 17 edges" in text.get_text() for text in plotting.weights_on_graph(grid).texts)
    places = np.column_stack([np.arange(12), np.zeros(12)])
    ax = plotting.weights_on_graph(np.ones(12), GRAPH, places=places)
    assert np.array_equal(ax.collections[-1].get_offsets(), places)


def test_graphs_refuse_what_does_not_fit():
    with pytest.raises(ValueError, match="graph is needed"):
        plotting.weights_on_graph(np.ones(3))
    with pytest.raises(ValueError, match="describes 12 features"):
        plotting.weights_on_graph(np.ones(3), GRAPH)
    with pytest.raises(ValueError, match="output is 2; there are 1 outputs"):
        plotting.weights_on_graph(np.ones(12), GRAPH, output=2)
    with pytest.raises(ValueError, match="places has shape"):
        plotting.weights_on_graph(np.ones(12), GRAPH, places=np.ones(3))


def test_the_layout_follows_distances_in_the_graph():
    n = 12
    ring = [(k, (k + 1) % n) for k in range(n)]
    places = graph_layout(ring, n)
    edge = np.linalg.norm(places[[a for a, _ in ring]] - places[[b for _, b in ring]], axis=1)
    assert edge.max() / edge.min() < 1.1  # a ring is round
    across = np.linalg.norm(places[0] - places[n // 2])
    assert across > 3 * edge.mean()
    assert np.array_equal(places, graph_layout(ring, n))


@pytest.mark.parametrize("p", [11, 36, 700])
def test_a_long_chain_turns_and_leaves_room_for_names(p):
    order = np.random.default_rng(0).permutation(p)
    chain = np.column_stack([order[:-1], order[1:]])
    places = graph_layout(chain, p)
    np.testing.assert_allclose(np.linalg.norm(places[chain[:, 0]] - places[chain[:, 1]], axis=1), 1.0)
    wide, high = np.ptp(places, axis=0)
    assert np.unique(places.round(6), axis=0).shape[0] == p and wide <= 3 * high
    names = [f"feature_number_{j}" for j in range(p)]
    ax = plotting.weights_on_graph(np.arange(p) % 2 * 1.0, fl.Graph(chain, p), names=names)
    figure = ax.figure
    figure.canvas.draw()
    title = ax.get_title(loc="left") and ax._left_title.get_window_extent()
    assert not any(title.overlaps(text.get_window_extent()) for text in ax.texts if text.get_text().startswith("feat"))
    plt.close(figure)


@pytest.mark.parametrize("p", [3, 40, 900])
def test_nodes_do_not_share_a_spot(p):
    rng = np.random.default_rng(p)
    edges = np.column_stack([np.arange(1, p), rng.integers(0, np.arange(1, p))])  # a random tree
    places = graph_layout(edges, p + 5)  # and five nodes alone
    assert np.isfinite(places).all()
    assert np.unique(places.round(6), axis=0).shape[0] == p + 5


# -- cross-validation -------------------------------------------------------------------------------


def test_the_curve_is_the_mean_with_its_error(model):
    ax = plotting.cv_curve(model)
    found = model.cv_results_
    assert np.array_equal(ax.get_lines()[0].get_ydata(), -found.mean)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert band.max() == pytest.approx((-found.mean + found.standard_error).max())
    marked = [line.get_xdata()[0] for line in ax.get_lines() if len(set(line.get_xdata())) == 1]
    assert {found.best_alpha, found.alpha_1se} <= set(marked)
    words = [text.get_text() for text in ax.get_legend().get_texts()]
    assert any(word.startswith("best: alpha") for word in words)
    assert any(word.startswith("one standard error: alpha") for word in words)
    assert "loss" in ax.get_ylabel()


def test_other_scores_are_named(model):
    ax = plotting.cv_curve(model.cv_results_, score="accuracy")
    assert ax.get_ylabel().startswith("accuracy") and np.array_equal(
        ax.get_lines()[0].get_ydata(), model.cv_results_.mean
    )


def test_one_alpha_and_refusals(model):
    one = fl.cross_validate_path(problem(), alphas=[0.05], cv=3)
    plotting.cv_curve(one).figure.canvas.draw()
    with pytest.raises(ValueError, match="give a CrossValidation"):
        plotting.cv_curve(np.ones(3))


# -- without matplotlib -----------------------------------------------------------------------------


def test_without_matplotlib_the_extra_is_named():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import numpy as np, fenchel as fl\n"
        "try: fl.plotting.weights_on_grid(np.ones(4), (2, 2))\n"
        "except ImportError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install 'fenchel[plot]'" in done.stdout, done.stderr


def test_the_names_that_are_listed_are_the_functions():
    assert dir(fl.plotting) == fl.plotting.__all__
