"""Groups, graphs, grids and trees: where they come from, what they refuse; answers by name."""

from __future__ import annotations

import copy
import gzip
import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.compose import ColumnTransformer, make_column_selector, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OneHotEncoder, OrdinalEncoder, SplineTransformer, StandardScaler

from fenchel.structure import Graph, Grid, Groups, Tree, active_groups, as_groups, segments, support

COLUMNS = ["colour_red", "colour_dark_blue", "size_s", "size_l", "age"]


def listed(groups):
    """Names and members as plain Python."""
    return {name: group.tolist() for name, group in zip(groups.names, groups, strict=True)}


# -- groups -----------------------------------------------------------------------------------------


def test_groups_from_lists_dicts_and_labels():
    assert listed(Groups([[0, 2], range(1, 3)])) == {"group 0": [0, 2], "group 1": [1, 2]}
    assert listed(Groups([[0], [1]], names=list("ab"), p=3)) == {"a": [0], "b": [1]}
    assert listed(Groups({"a": ["y"], "b": ["x", 1]}, features=list("xyz"))) == {"a": [1], "b": [0, 1]}
    assert listed(Groups(["b", "a", "b"])) == {"a": [1], "b": [0, 2]}
    assert listed(Groups(np.array([[3, 4], [0, 1]]))) == {"group 0": [3, 4], "group 1": [0, 1]}
    labels = Groups(pd.Series([1, 0, 1]), names=["even", "odd"])
    assert listed(labels) == {"even": [1], "odd": [0, 2]} and labels.p == 3


def test_groups_look_like_a_list():
    groups = Groups({"a": [0, 1], "b": [1]}, p=4)
    assert len(groups) == 2 and groups["b"].tolist() == groups[1].tolist() == [1]
    assert groups.sizes.tolist() == [2, 1] and groups.overlap
    with pytest.raises(KeyError, match="no group 'c'"):
        groups["c"]
    frame = Groups({"a": [0, 1], "b": [1]}, features=list("xyz")).to_frame()
    assert frame.loc["a", "features"] == ["x", "y"] and frame["size"].tolist() == [2, 1]
    assert Groups([[1]]).to_frame()["features"].iloc[0] == [1]


@pytest.mark.parametrize("names", [COLUMNS, pd.DataFrame(columns=COLUMNS), pl.DataFrame({c: [1] for c in COLUMNS})])
def test_groups_from_columns(names):
    expected = {"colour": [0, 1], "size": [2, 3], "age": [4]}
    by_prefix = Groups.from_columns(names)
    assert listed(by_prefix) == expected and by_prefix.features == COLUMNS and by_prefix.p == 5
    assert listed(Groups.from_columns(names, by=["colour", "size"])) == {"colour": [0, 1], "size": [2, 3]}
    dark = Groups.from_columns(names, by=["colour", "colour_dark"])
    assert listed(dark) == {"colour": [0], "colour_dark": [1]}
    assert listed(Groups.from_columns(names, by={"c": COLUMNS[:2], "s": ["age", "size_l"]})) == {
        "c": [0, 1],
        "s": [4, 3],
    }
    assert listed(Groups.from_columns(names, by={"age": "a", "size_s": "b", "size_l": "b"})) == {"a": [4], "b": [2, 3]}
    numbered = Groups.from_columns(pd.DataFrame(columns=[10, 20, 30]), by={"a": [30, 10]})
    assert listed(numbered) == {"a": [2, 0]}
    both = Groups.from_columns(names, by=lambda name: ["s", "l"] if "size" in name else None)
    assert listed(both) == {"s": [2, 3], "l": [2, 3]}


DATA = pd.DataFrame(
    {
        "colour": ["red", "blue", "red", "green"] * 5,
        "size": ["s", "l", "s", "m"] * 5,
        "rare": ["a"] * 17 + ["b", "c", "d"],
        "age": np.arange(20.0),
        "height": np.arange(20.0) ** 2,
    }
)


@pytest.mark.parametrize(
    ("options", "widths"),
    [
        ({}, [3, 3, 4]),
        ({"drop": "first"}, [2, 2, 3]),
        ({"drop": "if_binary", "min_frequency": 2}, [3, 3, 1]),
        ({"min_frequency": 2}, [3, 3, 2]),
        ({"max_categories": 2, "drop": "first"}, [1, 1, 1]),
        (
            {"categories": [["red", "blue", "green", "x"], ["s", "m", "l"], ["a"]], "handle_unknown": "ignore"},
            [4, 3, 1],
        ),
    ],
)
def test_groups_from_a_one_hot_encoder(options, widths):
    encoder = OneHotEncoder(**options).fit(DATA[["colour", "size", "rare"]])
    groups = Groups.from_encoder(encoder)
    assert groups.names == ["colour", "size", "rare"] and groups.sizes.tolist() == widths
    assert groups.p == encoder.transform(DATA[["colour", "size", "rare"]]).shape[1]
    assert groups.features == list(encoder.get_feature_names_out())
    assert all(groups.features[j].startswith("size") for j in groups["size"])


def test_an_encoder_may_leave_nothing_of_a_column():
    constant = DATA.assign(colour="red")[["colour", "size"]]
    groups = Groups.from_encoder(OneHotEncoder(drop="first").fit(constant))
    assert listed(groups) == {"size": [0, 1]}


def test_an_encoder_of_an_array_has_numbered_columns():
    assert Groups.from_encoder(OneHotEncoder().fit(DATA[["colour", "size"]].to_numpy())).names == ["x0", "x1"]


@pytest.mark.parametrize("sparse", [0.0, 1.0])
def test_groups_from_a_column_transformer(sparse):
    transformer = ColumnTransformer(
        [
            ("hot", OneHotEncoder(), ["colour", "rare"]),
            ("none", "drop", ["size"]),
            ("bins", KBinsDiscretizer(4, strategy="uniform"), ["age", "height"]),
            ("line", SplineTransformer(4, degree=2), ["age", "height"]),
            ("scaled", StandardScaler(), slice(3, 5)),
            ("pca", PCA(1), [3, 4]),
        ],
        sparse_threshold=sparse,
    ).fit(DATA)
    groups = Groups.from_encoder(transformer)
    assert groups.p == transformer.transform(DATA).shape[1] == 3 + 4 + 8 + 10 + 2 + 1
    assert dict(zip(groups.names, groups.sizes.tolist(), strict=True)) == {
        "colour": 3, "rare": 4, "age": 4, "height": 4, "line__age": 5, "line__height": 5,
        "scaled__age": 1, "scaled__height": 1, "pca": 1,
    }  # fmt: skip
    assert np.array_equal(np.concatenate(groups.members), np.arange(groups.p))
    assert groups.features == list(transformer.get_feature_names_out())


def test_groups_from_pipelines_remainders_and_selectors():
    transformer = make_column_transformer(
        (
            make_pipeline(SimpleImputer(strategy="most_frequent"), OneHotEncoder()),
            make_column_selector(dtype_exclude=float),
        ),
        (make_pipeline(SimpleImputer(), "passthrough"), [False, False, False, True, False]),
        remainder="passthrough",
    ).fit(DATA)
    groups = Groups.from_encoder(transformer)
    assert dict(zip(groups.names, groups.sizes.tolist(), strict=True)) == {
        "colour": 3, "size": 3, "rare": 4, "age": 1, "height": 1,
    }  # fmt: skip
    assert listed(Groups.from_encoder(OrdinalEncoder().fit(DATA[["colour"]]))) == {"colour": [0]}
    scaled = make_pipeline(transformer, StandardScaler(with_mean=False)).fit(DATA)
    assert listed(Groups.from_encoder(scaled)) == listed(groups)
    plain = make_pipeline(SimpleImputer(), StandardScaler()).fit(DATA[["age", "height"]])
    assert listed(Groups.from_encoder(plain)) == {"age": [0], "height": [1]}


def test_groups_from_a_gmt_file(tmp_path):
    text = "apoptosis\thttp://one\tTP53\tBAX\tBAX\tCASP3\n\nrepair\t\tTP53\tATM\r\nother\tna\tXYZ\n"
    (tmp_path / "sets.gmt").write_text(text)
    with gzip.open(tmp_path / "sets.gmt.gz", "wt") as file:
        file.write(text)
    genes = ["ATM", "BAX", "TP53"]
    for source in (tmp_path / "sets.gmt", str(tmp_path / "sets.gmt.gz"), text.splitlines()):
        groups = Groups.from_gmt(source, genes)
        assert listed(groups) == {"apoptosis": [2, 1], "repair": [2, 0]} and groups.features == genes
    assert listed(Groups.from_gmt(tmp_path / "sets.gmt", ["ATM", "TP53"], min_size=2)) == {"repair": [1, 0]}
    assert listed(Groups.from_gmt(["a\tb\tX\tY", "c\td\tX"], ["X", "Y"], max_size=1)) == {"c": [0]}


def test_complete_gives_every_feature_a_group():
    groups = Groups({"a": ["x", "z"]}, features=["w", "x", "y", "z", "a"]).complete()
    assert listed(groups) == {"a": [1, 3], "w": [0], "y": [2], "a alone": [4]}
    assert listed(Groups([[1]]).complete(3)) == {"group 0": [1], "feature 0": [0], "feature 2": [2]}
    with pytest.raises(ValueError, match="p is needed"):
        Groups([[1]]).complete()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Groups([]), "groups is empty"),
        (lambda: Groups({}), "groups is empty"),
        (lambda: Groups(5), "groups is 5"),
        (lambda: Groups("job"), "groups is 'job'"),
        (lambda: Groups([[0], None]), "group 'group 1' is None"),
        (lambda: Groups({"a": [0], "b": []}), "group 'b' is empty"),
        (lambda: Groups({"a": [0, 1, 0]}), "group 'a' holds feature 0 twice"),
        (lambda: Groups({"a": ["y", "y"]}, features=list("xy")), "group 'a' holds feature 'y' twice"),
        (lambda: Groups({"a": ["q"]}, features=list("xy")), "group 'a' holds 'q', which is not among the 2 features"),
        (lambda: Groups({"a": ["q"]}), "group 'a' holds 'q'; names need features="),
        (lambda: Groups({"a": "xy"}, features=list("xy")), "group 'a' is 'xy'; it must be a list"),
        (lambda: Groups({"a": [5]}, p=5), "group 'a' holds feature 5; features are numbered from 0 to 4"),
        (lambda: Groups({"a": [-1]}), "group 'a' holds feature -1; features are numbered from 0$"),
        (lambda: Groups({"a": [0.5]}), "group 'a' holds 0.5"),
        (lambda: Groups([[[0, 1]]]), r"group 'group 0' holds \[0, 1\]"),
        (lambda: Groups([[0], [1]], names=["a"]), "names has 1 entries for 2 groups"),
        (lambda: Groups([[0], [1]], names=["a", "a"]), "names names 'a' twice"),
        (lambda: Groups({"a": [0]}, names=["b"]), "given twice"),
        (lambda: Groups([[0]], features=["x", "x"]), "features names 'x' twice"),
        (lambda: Groups([[0]], features="xy"), "features is 'xy'; it must be a list of names"),
        (lambda: Groups([[0]], p=3, features=list("xy")), "features has 2 names for p = 3 features"),
        (lambda: Groups([[0]], p=0), "p is 0"),
        (lambda: Groups([0, 1, 1], p=4), "groups has 3 labels for 4 features"),
        (lambda: Groups.from_columns(COLUMNS, by={"a": ["weight"]}), "group 'a' holds 'weight', which is not among"),
        (lambda: Groups.from_columns(COLUMNS, by={"weight": "a"}), "by names the column 'weight'"),
        (lambda: Groups.from_columns(COLUMNS, by=["colour", "shape"]), "no column begins with 'shape'"),
        (lambda: Groups.from_columns(COLUMNS, by=""), "empty string"),
        (lambda: Groups.from_columns(COLUMNS, by=lambda name: None), "groups is empty"),
        (lambda: Groups.from_encoder(OneHotEncoder()), "not fitted"),
        (lambda: Groups.from_encoder(PCA(1).fit(np.eye(3))), "not an encoder whose outputs can be told apart"),
        (lambda: Groups.from_gmt(["a\tb\tX", "alone"], ["X"]), "line 2 of the GMT file has 1 fields"),
        (
            lambda: Groups.from_gmt(["a\tb\tX", "a\tb\tX"], ["X"]),
            "line 2 of the GMT file names the pathway 'a' a second",
        ),
        (lambda: Groups.from_gmt(["a\tb\tX"], ["Y"]), "none of the 1 pathways"),
        (lambda: Groups.from_gmt(["a\tb\tX"], ["X", "X"]), "genes names 'X' twice"),
        (lambda: as_groups(Groups([[0]], p=3), 4), "describes 3 features, but the penalty acts on 4"),
        (lambda: as_groups({"a": [7]}, 4), "group 'a' holds feature 7; features are numbered from 0 to 3"),
    ],
)
def test_groups_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- graphs -----------------------------------------------------------------------------------------


def test_graph_from_edges():
    graph = Graph.from_edges([("b", "c"), ("a", "c")], features=list("abc"))
    assert graph.edges.tolist() == [[1, 2], [0, 2]] and graph.weights is None and len(graph) == 2
    frame = pd.DataFrame({"from": ["a", "b"], "to": ["b", "c"], "strength": [1.0, -2.0]})
    weighted = Graph(frame, features=list("abc"))
    assert weighted.edges.tolist() == [[0, 1], [1, 2]] and weighted.weights.tolist() == [1, -2]
    assert weighted.to_frame()["to"].tolist() == ["b", "c"]
    assert Graph(np.array([[0, 1, 0.5]]), 2).weights.tolist() == [0.5]
    assert len(Graph([], 3)) == 0 and len(Graph(np.zeros((0, 2)), 3)) == 0
    assert Graph(pl.DataFrame({"a": [0, 1], "b": [1, 2]}), 3).edges.tolist() == [[0, 1], [1, 2]]


def test_graph_from_networkx():
    networkx = pytest.importorskip("networkx")
    plain = networkx.Graph([("b", "a"), ("b", "c")])
    graph = Graph.from_networkx(plain)
    assert graph.features == ["b", "a", "c"] and graph.edges.tolist() == [[0, 1], [0, 2]] and graph.weights is None
    ordered = Graph.from_networkx(plain, features=pd.DataFrame(columns=list("abcd")))
    assert ordered.p == 4 and ordered.edges.tolist() == [[0, 1], [1, 2]]
    weighted = networkx.MultiDiGraph()
    weighted.add_edge(0, 1, weight=-2.0)
    weighted.add_edge(1, 0, weight=-2.0)
    weighted.add_edge(1, 5)
    graph = Graph.from_networkx(weighted)
    assert graph.edges.tolist() == [[0, 1], [1, 2]] and graph.weights.tolist() == [-2, 1]
    assert Graph.from_networkx(weighted, weight=None).weights is None
    with pytest.raises(ValueError, match="joins 'c', which is not among the 2 features"):
        Graph.from_networkx(plain, features=["a", "b"])


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_array, pd.DataFrame])
def test_graph_from_data(kind):
    rng = np.random.default_rng(0)
    common = rng.standard_normal((200, 2))
    X = common[:, [0, 0, 1, 1, 1]] * [1, -1, 1, 2, 1] + 0.1 * rng.standard_normal((200, 5))
    X = np.column_stack([X, np.ones(200)])
    blocks = [[0, 1], [2, 3], [2, 4], [3, 4]]
    fast = Graph.from_data(kind(X), "correlation", threshold=0.8)
    assert sorted(fast.edges.tolist()) == blocks and fast.p == 6
    signed = Graph.from_data(kind(X), "correlation", threshold=0.8, signed=True)
    assert signed.weights[signed.edges.tolist().index([0, 1])] == -1 and np.sum(signed.weights) == 2
    few = Graph.from_data(kind(X), "correlation", threshold=0.8, neighbours=1)
    assert len(few) == 3 and [0, 1] in few.edges.tolist()
    slow = Graph.from_data(kind(X[:, :5] + rng.standard_normal((200, 5))), alpha=0.1, signed=True)
    assert {tuple(e) for e in blocks} & {tuple(e) for e in slow.edges.tolist()}
    assert slow.weights[slow.edges.tolist().index([0, 1])] == -1
    assert (fast.features is None) == (kind is not pd.DataFrame)


def test_correlations_in_slabs(monkeypatch):
    rng = np.random.default_rng(0)
    X = 1e-9 * rng.standard_normal((20, 37)) * (rng.random((20, 37)) < 0.5)
    X[:, 0] = 5.0
    monkeypatch.setattr("fenchel.structure.graph.BESIDE", 37 * 5)
    expected = np.argwhere(np.triu(np.abs(np.corrcoef(X[:, 1:].T)) >= 0.3, 1)) + 1
    for kind in (np.asarray, sp.csr_array):
        graph = Graph.from_data(kind(X), "correlation", threshold=0.3)
        assert sorted(graph.edges.tolist()) == expected.tolist()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Graph([(0, 1)]), "p or features is needed"),
        (
            lambda: Graph([("a", "z")], features=list("abc")),
            r"edge 0, \('a', 'z'\), joins 'z', which is not among the 3",
        ),
        (lambda: Graph(np.array([[0, 1], [1, 9]]), 3), r"edge 1, \(1, 9\), joins 9, which is not among the 3 features"),
        (lambda: Graph([(0, -1)], 3), r"edge 0, \(0, -1\), joins -1"),
        (lambda: Graph([(0, 0.5)], 3), "joins 0.5"),
        (lambda: Graph([(0, "a")], 3), "joins 'a'"),
        (lambda: Graph([(1, 1)], 3), "edge 0 joins 1 to itself"),
        (lambda: Graph([("a", "b"), ("b", "a")], features=list("ab")), "edge 1 joins 'b' and 'a' a second time"),
        (lambda: Graph([(0, 1), (0, 1, 2)], 3), r"edge 1 is \(0, 1, 2\)"),
        (lambda: Graph([(0,)], 3), r"edge 0 is \(0,\)"),
        (lambda: Graph([(0, 1)], 3, weights=[1, 2]), "weights has 2 entries; expected 1"),
        (lambda: Graph([(0, 1)], 3, weights=[np.inf]), r"weights\[0\] is inf"),
        (lambda: Graph.from_data(np.eye(3), "guess"), "method is 'guess'"),
        (lambda: Graph.from_data(np.eye(3), "correlation", threshold=0), "threshold is 0"),
        (lambda: Graph([(0, 1)], 3).checked(4), "describes 3 features"),
    ],
)
def test_graphs_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- grids ------------------------------------------------------------------------------------------


def test_grid():
    grid = Grid((2, 3))
    assert grid.p == 6 and grid.features[:2] == ["0,0", "0,1"]
    assert sorted(grid.edges.tolist()) == [[0, 1], [0, 3], [1, 2], [1, 4], [2, 5], [3, 4], [4, 5]]
    assert grid.edges[:, 0].tolist() == [0, 0, 1, 1, 2, 3, 4]  # the edges from a cell stand together
    assert np.array_equal(grid.image(np.arange(6)), [[0, 1, 2], [3, 4, 5]])
    assert len(Grid(4).edges) == 3 and len(Grid((2, 2, 2)).edges) == 12
    assert len(Grid(1).edges) == 0


def test_masked_grid():
    mask = np.array([[True, True, False], [False, True, True]])
    grid = Grid((2, 3), mask)
    assert grid.p == 4 and grid.features == ["0,0", "0,1", "1,1", "1,2"]
    assert grid.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
    image = grid.image(np.arange(1, 5), fill=0)
    assert np.array_equal(image, [[1, 2, 0], [0, 3, 4]])
    assert np.isnan(grid.image(np.arange(4.0))[0, 2])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Grid((2, 0)), "shape is 0"),
        (lambda: Grid((2, 2), np.ones((2, 3), bool)), r"mask is bool of shape \(2, 3\)"),
        (lambda: Grid((2, 2), np.ones((2, 2))), "mask is float64"),
        (lambda: Grid(np.ones((30, 40))), r"^shape is an array of float64 of shape \(30, 40\).{,99}$"),
        (lambda: Grid((2, 2), np.zeros((2, 2), bool)), "mask is false everywhere"),
        (lambda: Grid((2, 2)).image(np.ones(3)), r"coef has shape \(3,\); Grid\(2 x 2\) has 4 features"),
    ],
)
def test_grids_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- trees ------------------------------------------------------------------------------------------

KINDS = {"cat": "mammal", "dog": "mammal", "trout": "fish", "mammal": "animal", "fish": "animal", "fern": None}


def test_tree_from_parents():
    tree = Tree.from_parents(KINDS)
    assert tree.features == ["cat", "dog", "trout", "fern"] and tree.p == 4 and tree.depth == 3
    assert listed(tree.groups()) == {
        "cat": [0], "dog": [1], "trout": [2], "mammal": [0, 1], "fish": [2], "fern": [3], "animal": [0, 1, 2],
    }  # fmt: skip
    assert len(tree) == len(list(tree)) == 7 and tree["mammal"].tolist() == [0, 1]
    assert [tree.names[k] if k >= 0 else None for k in tree.parents] == [
        "mammal", "mammal", "fish", "animal", "animal", None, None,
    ]  # fmt: skip


def test_tree_with_chosen_features():
    tree = Tree(KINDS, features=pd.DataFrame(columns=["dog", "cat"]))
    assert listed(tree.groups()) == {"cat": [1], "dog": [0], "mammal": [0, 1], "animal": [0, 1]}
    every = Tree([-1, 0, 0, 1], features="all")
    assert listed(every.groups()) == {"0": [0, 1, 2, 3], "1": [1, 3], "2": [2], "3": [3]}
    assert listed(as_groups(every, 4)) == listed(every.groups())
    assert Tree([None, 0, 0]).features == ["1", "2"]
    assert listed(Tree(pd.Series({"a": "c", "b": "c", "c": None})).groups()) == {"a": [0], "b": [1], "c": [0, 1]}
    assert listed(Tree({1: 7, 2: 7, 7: np.nan}).groups()) == {"1": [0], "2": [1], "7": [0, 1]}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Tree({"a": "b", "b": "c", "c": "a", "d": None}), "circle: a -> b -> c -> a"),
        (lambda: Tree({"a": "a"}), "circle: a -> a"),
        (lambda: Tree([1, 0]), "circle: 0 -> 1 -> 0"),
        (lambda: Tree([-1, 7]), "node 1 has the parent 7; nodes are numbered from 0 to 1"),
        (lambda: Tree([-1, "0"]), "node 1 has the parent '0'"),
        (lambda: Tree({}), "parents is empty"),
        (lambda: Tree(KINDS, features=["cat", "cow"]), "feature 'cow' is not a node of the tree"),
        (lambda: Tree(KINDS, features=["cat", "cat"]), "features names 'cat' twice"),
        (lambda: Tree(KINDS, features="roots"), "features is 'roots'"),
        (lambda: Tree(KINDS).checked(5), "describes 4 features"),
    ],
)
def test_trees_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- answers by name --------------------------------------------------------------------------------


def test_support():
    frame = support([0.0, -2.0, 0.5, 0.0], list("abcd"))
    assert frame["feature"].tolist() == ["b", "c"] and frame["coefficient"].tolist() == [-2.0, 0.5]
    assert support([0.0, 1.0])["feature"].tolist() == [1]
    assert support(np.zeros(3)).empty
    several = support([[0.0, 1.0], [3.0, -4.0]], Groups([[0]], features=list("xy")))
    assert several.to_dict("list") == {"output": [0, 1, 1], "feature": ["y", "y", "x"], "coefficient": [1, -4, 3]}


def test_active_groups():
    groups = Groups({"a": [0, 1], "b": [2], "c": [1, 2, 3]}, p=5)
    frame = active_groups([3.0, 0.0, 0.0, 5.0, 1.0], groups)
    assert frame.index.tolist() == ["c", "a"] and frame.index.name == "group"
    assert frame.to_dict("list") == {"size": [3, 2], "nonzero": [1, 1], "norm": [5.0, 3.0]}
    assert active_groups([[0, 3, 0, 0, 0], [0, 4, 0, 0, 0]], groups)["norm"].tolist() == [5, 5]
    assert active_groups([1.0, 0, 0, 0], Tree(KINDS)).index.tolist() == ["cat", "mammal", "animal"]
    assert active_groups([0.0, 1], [[0], [1]]).index.tolist() == ["group 1"]


def test_segments():
    line = segments([1.0, 1.0, 0.0, 1.0], names=list("abcd"))
    assert line.to_dict("list") == {"value": [1, 0, 1], "size": [2, 1, 1], "features": [["a", "b"], ["c"], ["d"]]}
    ring = segments([1.0, 1.0, 0.0, 1.0], Graph([(0, 3), (0, 1), (1, 2)], features=list("abcd")))
    assert ring["features"].tolist() == [["a", "b", "d"], ["c"]]
    nearly = segments([1.0, np.nextafter(1.0, 2.0)])
    assert nearly["size"].tolist() == [1, 1]
    image = segments([2.0, 2.0, 0.0, 2.0], Grid((2, 2)))
    assert image["features"].tolist() == [["0,0", "0,1", "1,1"], ["1,0"]]
    opposite = segments([1.0, -1.0, -1.0], [(0, 1, -1.0), (1, 2, 1.0)])
    assert opposite["size"].tolist() == [3] and opposite["value"].tolist() == [1.0]
    assert segments([[1.0, 1.0], [0.0, 2.0]])["output"].tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: support(np.ones(3), list("ab")), "names has 2 entries for 3 coefficients"),
        (lambda: support(np.zeros((2, 2, 2))), "coef has shape"),
        (lambda: active_groups(np.ones(3), Groups([[0]], p=4)), "describes 4 features"),
        (lambda: segments(np.ones(3), Grid(4)), "describes 4 features"),
        (lambda: segments(np.ones(3), [(0, 3)]), r"edge 0, \(0, 3\)"),
    ],
)
def test_answers_refuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()


# -- all of them ------------------------------------------------------------------------------------

EACH = {
    "Groups(2 groups of 1 to 2 of 4 features, 1 feature in several, 2 in none)": Groups([[0, 1], [1]], p=4),
    "Groups(1 group of 2 features)": Groups([[0, 1]]),
    "Graph(1 edge between 3 features)": Graph([(0, 1)], 3),
    "Graph(2 edges between 3 features, weighted, 1 negative)": Graph([(0, 1), (1, 2)], 3, [1, -1]),
    "Grid(2 x 3 x 4)": Grid((2, 3, 4)),
    "Grid(2 x 2, 3 cells in the mask)": Grid((2, 2), np.array([[True, True], [False, True]])),
    "Tree(7 nodes over 4 features, 2 roots, depth 3)": Tree(KINDS),
}


@pytest.mark.parametrize("text", EACH)
def test_prints_copies_and_pickles(text):
    structure = EACH[text]
    for one in (structure, copy.deepcopy(structure), pickle.loads(pickle.dumps(structure))):
        assert repr(one) == text
        assert one.checked(structure.p) is one


# -- many groups ------------------------------------------------------------------------------------


def test_many_groups_are_checked_at_once():
    """As each for itself: who is wrong is still named."""
    many = [[3 * k, 3 * k + 1, 3 * k + 2] for k in range(20_000)]
    groups = Groups(many)
    assert len(groups) == 20_000
    np.testing.assert_array_equal(groups.members[777], many[777])
    np.testing.assert_array_equal(Groups(np.arange(60_000) // 3).members[777], many[777])
    many[12_345] = [7, 8, 7]
    with pytest.raises(ValueError, match=r"group 'group 12345' holds feature 7 twice"):
        Groups(many)
    many[12_345] = [7, -8, 9]
    with pytest.raises(ValueError, match=r"group 'group 12345' holds feature -8"):
        Groups(many)
    many[12_345] = [7, 8, 60_000]
    with pytest.raises(ValueError, match=r"group 'group 12345' holds feature 60000; .* from 0 to 59999"):
        Groups(many, p=60_000)
    with pytest.raises(ValueError, match=r"group 'group 12345' holds feature 60000; .* from 0 to 59999"):
        Groups(many).checked(60_000)


@pytest.mark.parametrize("seed", range(4))
def test_a_tree_knows_what_is_below_each_node(seed):
    rng = np.random.default_rng(seed)
    parents = np.array([rng.integers(-1, node) for node in range(60)])
    order = rng.permutation(60)
    shuffled = np.empty(60, dtype=int)
    shuffled[order] = np.where(parents >= 0, order[parents], -1)
    tree = Tree(shuffled, features="all")

    def below(node):
        return {node}.union(*(below(child) for child in np.flatnonzero(shuffled == node)))

    def depth(node):
        return 1 if shuffled[node] < 0 else 1 + depth(shuffled[node])

    for node, name in enumerate(tree.names):
        assert set(tree[name]) == below(int(name)), node
    assert tree.depth == max(map(depth, range(60)))
    leaves = Tree(shuffled)
    assert leaves.p == np.setdiff1d(np.arange(60), shuffled).size
    assert sum(len(group) for group in leaves if len(group) == 1) >= leaves.p
