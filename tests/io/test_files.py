"""Reading files: every format gives the same data, and what is wrong is named with its place."""

import json
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from fenchel.io import read_data, read_edges, read_groups, read_like, read_mask, read_tree, read_vector, read_weights

pd = pytest.importorskip("pandas", reason="reading CSV and Parquet needs pandas (fenchel[io])")

X = np.array([[1.0, 0.0, 2.5], [0.0, -3.0, 0.1], [4.0, 0.0, 1e-17]])
Y = np.array([1, 0, 1])


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def fails(match, function, *args, **kwargs):
    with pytest.raises(ValueError, match=match):
        function(*args, **kwargs)


def dense(data):
    return data.X.toarray() if sp.issparse(data.X) else data.X


# -- formats ----------------------------------------------------------------------------------------


def make(folder, kind):
    """The same data in each format."""
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(y=Y)
    path = folder / kind
    if kind.endswith((".csv", ".tsv")):
        separator = {"d.csv": ",", "semi.csv": ";", "bare.csv": ",", "d.tsv": "\t"}[kind]
        frame.to_csv(path, sep=separator, index=False, header=kind != "bare.csv")
    elif kind.endswith(".parquet"):
        frame.to_parquet(path)
    elif kind == "dense.npz":
        np.savez(path, X=X, y=Y)
    elif kind == "parts.npz":
        csr = sp.csr_array(X)
        np.savez(path, data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape, y=Y)
    elif kind == "scipy.npz":
        csc = sp.csc_array(X)
        np.savez(path, format=b"csc", data=csc.data, indices=csc.indices, indptr=csc.indptr, shape=csc.shape, y=Y,
                 _is_array=True)  # fmt: skip
    else:
        dump_svmlight_file(X, Y, str(path), zero_based=kind.startswith("zero"))
    return path


KINDS = ["d.csv", "semi.csv", "bare.csv", "d.tsv", "d.parquet", "dense.npz", "parts.npz", "scipy.npz", "d.svm",
         "d.libsvm", "d.txt", "plain", "zero.svm"]  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_bits(tmp_path, kind):
    data = read_data(make(tmp_path, kind))
    assert np.array_equal(dense(data), X) and dense(data).dtype == np.float64
    assert data.y.tolist() == Y.tolist()
    assert not isinstance(data.X, np.ndarray) or data.X.flags.c_contiguous


def test_names_come_from_the_header_only(tmp_path):
    data = read_data(make(tmp_path, "d.csv"))
    assert data.features == ["a", "b", "c"] and data.named and data.target == "y"
    data = read_data(make(tmp_path, "bare.csv"))
    assert data.features == ["0", "1", "2"] and not data.named and data.target == "3"
    assert read_data(make(tmp_path, "d.svm")).features is None


@pytest.mark.parametrize("target", ["b", "1", 1, -3])
def test_target_by_name_or_position(tmp_path, target):
    data = read_data(make(tmp_path, "d.csv"), target=target)
    assert data.target == "b" and data.features == ["a", "c", "y"]
    assert data.y.tolist() == X[:, 1].tolist()


def test_a_name_wins_over_a_position(tmp_path):
    data = read_data(write(tmp_path / "d.csv", "2,1,0\n5,6,7\n8,9,10\n"), target="2", header=True)
    assert data.y.tolist() == [5, 8]


def test_text_labels_without_a_header(tmp_path):
    data = read_data(write(tmp_path / "d.csv", "5.1,3.5,yes\n4.9,3.0,no\n"))
    assert data.y.tolist() == ["yes", "no"] and data.X.tolist() == [[5.1, 3.5], [4.9, 3.0]]


def test_header_can_be_told(tmp_path):
    path = write(tmp_path / "d.csv", "1,2,3\n4,5,6\n")
    assert len(read_data(path).y) == 2
    assert read_data(path, header=True).features == ["1", "2"]


def test_truth_values_are_numbers_and_labels(tmp_path):
    data = read_data(write(tmp_path / "d.csv", "a,y\nTrue,False\nFalse,True\n"))
    assert data.X.tolist() == [[1.0], [0.0]] and data.y.tolist() == [False, True]


def test_blank_lines_quotes_and_a_byte_order_mark(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes('\ufeff"a", "b, c", y\n\n1, 2, 0\n\n3, 4, 1\n'.encode())
    data = read_data(path)
    assert data.features == ["a", "b, c"] and data.X.tolist() == [[1, 2], [3, 4]]


def test_drop_and_weights_columns(tmp_path):
    path = write(tmp_path / "d.csv", "id,a,w,y\nx1,1,2,0\nx2,3,4,1\n")
    data = read_data(path, drop=["id"], weights="w")
    assert data.features == ["a"] and data.weights.tolist() == [2, 4]


def test_weights_from_a_file_or_an_array(tmp_path):
    weights = write(tmp_path / "w.txt", "1\n2.5\n\n3\n")
    assert read_data(make(tmp_path, "d.svm"), weights=str(weights)).weights.tolist() == [1, 2.5, 3]
    np.savez(tmp_path / "w.npz", X=X, y=Y, w=np.arange(3.0))
    assert read_data(tmp_path / "w.npz", weights="w").weights.tolist() == [0, 1, 2]


def test_floats_round_trip_through_csv(tmp_path):
    values = np.random.default_rng(0).standard_normal((200, 2)) * 10.0 ** np.arange(-100, 100)[:, None]
    pd.DataFrame(values).assign(y=1).to_csv(tmp_path / "d.csv", index=False)
    assert np.array_equal(read_data(tmp_path / "d.csv").X, values)


# -- bad data files ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("d.csv", "", r"d.csv is empty"),
        ("d.csv", "a,b,y\n", r"d.csv has no rows"),
        ("d.csv", "a,b,y\n1,2,0\n\n3,oops,1\n", r"d.csv, line 4: column 'b' holds oops"),
        ("d.csv", "a,b,y\n1,2,0\n3,,1\n", r"d.csv, line 3: column 'b' has no value"),
        ("d.csv", "a,b,y\n1,2,0\n3,inf,1\n", r"d.csv, line 3: column 'b' holds inf"),
        ("d.csv", "a,b,y\n1,2,0\n3,4\n", r"d.csv, line 3: column 'y' has no value"),
        ("d.csv", "a,b,y\n1,2,0\n3,4,1\n5,6,7,1\n", r"d.csv, line 4: 4 cells, but the first line has 3"),
        ("d.csv", "a,b,y\n1,2,3,0\n", r"d.csv, line 2: 4 cells"),
        ("d.csv", ",a,y\n0,1,0\n1,2,1\n", r"d.csv, line 1: column 0 has no name.*index=False"),
        ("d.csv", "a,a,y\n0,1,0\n", r"d.csv, line 1: two columns are named 'a'"),
        ("d.csv", "y\n0\n1\n", r"d.csv has no feature columns"),
        ("NA.csv", "NA,1,0\n3,4,1\n", r"NA.csv, line 1: column '0' has no value"),
        ("d.svm", "", r"d.svm has no rows"),
        ("d.svm", "1 1:2\n-1 2:x\n", r"d.svm, line 2: '2:x' does not hold a finite number"),
        ("d.svm", "1 1:2\n# note\n-1 3:1 2:4\n", r"d.svm, line 3: index 2 follows 3"),
        ("d.svm", "1 1:2\nfoo 1:2\n", r"d.svm, line 2: the target 'foo'"),
        ("d.svm", "1 1:2\n-1 2\n", r"d.svm, line 2: '2' is not of the form index:value"),
        ("d.svm", "1 1:2\n-1 1:nan\n", r"d.svm, line 2: '1:nan'"),
        ("d.svm", "nan 1:2\n-1 1:1\n", r"d.svm, line 1: the target 'nan'"),
        ("plain", "some words here\n", r"plain, line 1: the target 'some'"),
    ],
)
def test_bad_text_is_named_with_its_line(tmp_path, name, text, match):
    fails(match, read_data, write(tmp_path / name, text))


@pytest.mark.parametrize("name", ["d.csv", "d.parquet", "d.npz", "d.bin"])
def test_noise_is_refused_by_name(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(bytes(range(128, 256)) * 4)
    fails(name, read_data, path)


def test_missing_and_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nope\.csv does not exist"):
        read_data(tmp_path / "nope.csv")
    fails("is a folder", read_data, tmp_path)


def test_compressed_says_unpack(tmp_path):
    (tmp_path / "d.bz2").write_bytes(b"BZh91AY")
    fails("unpack it first", read_data, tmp_path / "d.bz2")


@pytest.mark.parametrize(
    ("arrays", "match"),
    [
        ({"Z": X}, "holds Z; it needs X"),
        ({"X": X}, "no array 'y'"),
        ({"X": X, "y": Y[:2]}, r"y has shape \(2,\), but X has 3 rows"),
        ({"X": X[0], "y": Y}, "numeric matrix"),
        ({"X": np.array([["a"]]), "y": Y[:1]}, "numeric matrix"),
        ({"X": np.where(X == 4, np.nan, X), "y": Y}, r"X\[2, 0\] is not a finite number"),
        ({"X": X, "y": np.array([1, np.nan, 0])}, r"y\[1\] is nan"),
        ({"data": [1.0], "indices": [9], "indptr": [0, 1], "shape": [1, 3], "y": [1]}, "d.npz: "),
    ],
)
def test_bad_npz_is_named(tmp_path, arrays, match):
    np.savez(tmp_path / "d.npz", **arrays)
    fails(match, read_data, tmp_path / "d.npz")


def test_nan_in_a_sparse_npz_is_placed(tmp_path):
    csr = sp.csr_array(np.where(X == -3, np.nan, X))
    np.savez(tmp_path / "d.npz", data=csr.data, indices=csr.indices, indptr=csr.indptr, shape=csr.shape, y=Y)
    fails(r"X\[1, 1\] is not a finite number", read_data, tmp_path / "d.npz")


def test_pickles_are_not_loaded(tmp_path):
    np.savez(tmp_path / "d.npz", X=np.array([[{}]], dtype=object), y=Y[:1])
    fails("not an npz file of plain arrays", read_data, tmp_path / "d.npz")


def test_unknown_columns_are_named(tmp_path):
    path = make(tmp_path, "d.csv")
    fails(r"target is 'z', but .* its columns are a, b, c, y", read_data, path, target="z")
    fails(r"target is 4, but .* columns 0 to 3", read_data, path, target=4)
    fails(r"drop is 'q'", read_data, path, drop=["q"])
    fails(r"drop names 'y', which is the target", read_data, path, drop=["y"])
    fails(r"weights is 'q', which is neither a column of .* nor a file", read_data, path, weights="q")
    named = write(tmp_path / "n.csv", "radius,target\n1,0\n2,1\n")
    fails("did you mean 'target'", read_data, named, target="tarqet")


def test_dates_and_nulls_in_parquet_are_named(tmp_path):
    pd.DataFrame({"when": pd.to_datetime(["2024-01-01", "2024-01-02"]), "y": [0, 1]}).to_parquet(tmp_path / "t.parquet")
    fails(r"row 0 .*column 'when' holds 2024-01-01", read_data, tmp_path / "t.parquet")
    pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "y": [0, 1]}).to_parquet(tmp_path / "n.parquet")
    fails(r"row 1 .*column 'a' has no value", read_data, tmp_path / "n.parquet")


def test_without_pandas_the_extra_is_named(tmp_path, monkeypatch):
    path, svm = make(tmp_path, "d.csv"), make_svm(tmp_path)  # scikit-learn writes the second, and may look for pandas
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"fenchel\[io\]"):
        read_data(path)
    assert len(read_data(svm).y) == 3


def make_svm(folder):
    dump_svmlight_file(X, Y, str(folder / "e.svm"))
    return folder / "e.svm"


# -- data for a model -------------------------------------------------------------------------------


def test_columns_are_matched_by_name(tmp_path):
    path = write(tmp_path / "d.csv", "y,c,extra,b,a\n1,30,9,20,10\n")
    data = read_like(path, n_features=3, features=["a", "b", "c"], target="y")
    assert data.X.tolist() == [[10, 20, 30]] and data.y.tolist() == [1]
    fails(r"has 1 of the model's 2 features; missing: z", read_like, path, n_features=2, features=["a", "z"])


def test_the_target_may_be_absent(tmp_path):
    path = write(tmp_path / "d.csv", "b,a\n20,10\n")
    assert read_like(path, n_features=2, features=["a", "b"], target="y").y is None
    fails("target is 'y'", read_like, path, n_features=2, features=["a", "b"], target="y", must_have_target=True)


@pytest.mark.parametrize(("text", "y"), [("7,1,2\n8,3,4\n", [7, 8]), ("1,2\n3,4\n", None)])
def test_without_a_header_position_decides(tmp_path, text, y):
    # the model was fitted with its target in column 0
    data = read_like(write(tmp_path / "d.csv", text), n_features=2, features=["1", "2"], target="0")
    assert data.X.tolist() == [[1, 2], [3, 4]]
    assert data.y is None if y is None else data.y.tolist() == y


def test_libsvm_is_padded_but_not_cut(tmp_path):
    path = write(tmp_path / "d.svm", "1 1:2 3:4\n-1 2:1\n")
    data = read_like(path, n_features=5, first_index=1)
    assert data.X.shape == (2, 5) and data.X.toarray()[0].tolist() == [2, 0, 4, 0, 0]
    fails("has 3 features, but the model has 2", read_like, path, n_features=2, first_index=1)


def test_libsvm_counts_as_the_model_counted(tmp_path):
    path = write(tmp_path / "d.svm", "1 1:2\n-1 2:1\n")
    assert read_like(path, n_features=3, first_index=0).X.toarray()[0].tolist() == [0, 2, 0]
    path = write(tmp_path / "z.svm", "1 0:2\n-1 2:1\n")
    fails("has a feature 0", read_like, path, n_features=3, first_index=1)


def test_wrong_number_of_columns_names_both(tmp_path):
    np.savez(tmp_path / "d.npz", X=X)
    fails("has 3 features, but the model has 7", read_like, tmp_path / "d.npz", n_features=7)
    path = write(tmp_path / "d.csv", "1,2\n3,4\n")
    fails("has 2 feature columns, but the model has 7", read_like, path, n_features=7)


# -- groups -----------------------------------------------------------------------------------------

NAMES = ["red", "green", "blue", "7"]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("g.json", '{"warm": ["red", 1], "cold": ["blue", "green"]}', {"warm": [0, 1], "cold": [2, 1]}),
        ("g.json", "[[0, 1], [2]]", {"0": [0, 1], "1": [2]}),
        ("g.csv", "warm,red\ncold,blue\nwarm,1\n", {"warm": [0, 1], "cold": [2]}),
        ("g.csv", "group,feature\nwarm,red\n", {"warm": [0]}),
        ("g.tsv", "warm\tred\n", {"warm": [0]}),
        ("g.csv", "odd,7\n", {"odd": [3]}),  # a name wins over a number
    ],
)
def test_groups(tmp_path, name, text, expected):
    groups, names = read_groups(write(tmp_path / name, text), 4, NAMES)
    assert dict(zip(names, (group.tolist() for group in groups), strict=True)) == expected


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("g.json", '{"a": [0,\n 1', r"g.json, line 2: not JSON"),
        ("g.json", '{"a": [0], "a": [1]}', r"names 'a' twice"),
        ("g.json", "3", r"must hold"),
        ("g.json", "{}", r"no groups"),
        ("g.json", '{"a": []}', r"group 'a': expected a list of features"),
        ("g.json", '{"a": [0, 4]}', r"group 'a', entry 1: feature 4 does not exist; features are numbered 0 to 3"),
        ("g.json", '{"a": [-1]}', r"feature -1 does not exist"),
        ("g.json", '{"a": [true]}', r"entry 0: True is neither"),
        ("g.json", '{"a": [1.5]}', r"entry 0: 1.5 is neither"),
        ("g.json", '{"a": ["gren"]}', r"'gren' is neither .*did you mean 'green'"),
        ("g.json", '{"a": [0, "red"]}', r"group 'a': feature red stands in it twice"),
        ("g.csv", "a,0\na,99\n", r"g.csv, line 2: feature 99 does not exist"),
        ("g.csv", "a,0\nb\n", r"g.csv, line 2: expected group,feature, found 1"),
        ("g.csv", "a,0\nb,purple\n", r"g.csv, line 2: 'purple' is neither"),
        ("g.csv", "a,0\na,0\n", r"g.csv, line 2, group 'a': feature 0 stands in it twice"),
    ],
)
def test_bad_groups_are_placed(tmp_path, name, text, match):
    fails(match, read_groups, write(tmp_path / name, text), 4, NAMES)


# -- edges, weights ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text", "edges", "weights"),
    [
        ("e.json", '[[0, 1], ["blue", "red"]]', [[0, 1], [2, 0]], None),
        ("e.json", "[[0, 1, 2.5], [1, 2, -1]]", [[0, 1], [1, 2]], [2.5, -1]),
        ("e.csv", "0,1\nblue,red\n", [[0, 1], [2, 0]], None),
        ("e.csv", "i,j,weight\n0,1,0.1\n", [[0, 1]], [0.1]),
    ],
)
def test_edges(tmp_path, name, text, edges, weights):
    found, size = read_edges(write(tmp_path / name, text), 4, NAMES)
    assert found.tolist() == edges
    assert size is None if weights is None else size.tolist() == weights


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("e.json", "[[0, 1], 2]", r"edge 1: expected \[i, j\]"),
        ("e.json", '{"a": 1}', r"must hold a list"),
        ("e.json", "[[0, 1], [2]]", r"edge 1: expected i,j or i,j,weight, found 1"),
        ("e.json", "[[0, 1, null]]", r"edge 0: the weight None"),
        ("e.json", "[]", r"no edges"),
        ("e.csv", "0,1\n1,9\n", r"e.csv, line 2: feature 9 does not exist"),
        ("e.csv", "0,1\n2,2\n", r"e.csv, line 2: the edge joins feature 2 to itself"),
        ("e.csv", "0,1\n1,2,3\n", r"e.csv, line 2: either every edge has a weight or none"),
        ("e.csv", "0,1,x\n", r"e.csv, line 1: the weight 'x'"),
    ],
)
def test_bad_edges_are_placed(tmp_path, name, text, match):
    fails(match, read_edges, write(tmp_path / name, text), 4, NAMES)


def test_a_bad_weight_is_placed(tmp_path):
    fails(r"w.txt, line 2: expected one finite number, found 'x'", read_vector, write(tmp_path / "w.txt", "1\nx\n"))


def test_json_from_python_works(tmp_path):
    path = write(tmp_path / "g.json", json.dumps({"a": np.arange(3).tolist()}))
    assert read_groups(path, 3)[0][0].tolist() == [0, 1, 2]


# -- several targets, tasks, weights ----------------------------------------------------------------


def test_several_targets_and_tasks(tmp_path):
    path = write(tmp_path / "d.csv", "a,t,u,who\n1,2,3,x\n4,5,6,y\n")
    data = read_data(path, target=["u", "t"], task="who")
    assert data.target == ["u", "t"] and data.y.tolist() == [[3, 2], [6, 5]] and data.features == ["a"]
    assert data.task.tolist() == ["x", "y"]
    fails("target names 't' twice", read_data, path, target=["t", 1])
    fails("task names 't', which is the target", read_data, path, target="t", task="t", drop=["who", "u"])
    like = read_like(path, n_features=1, features=["a"], target=["u", "t"], task="who")
    assert like.y.tolist() == data.y.tolist() and like.task.tolist() == ["x", "y"]
    assert read_like(write(tmp_path / "n.csv", "a\n1\n"), n_features=1, features=["a"], target=["u", "t"]).y is None


def test_tasks_from_files_and_arrays(tmp_path):
    np.savez(tmp_path / "d.npz", X=X, y=np.column_stack([Y, Y]), who=["a", "b", "a"])
    data = read_data(tmp_path / "d.npz", task="who")
    assert data.task.tolist() == ["a", "b", "a"] and data.y.shape == (3, 2)
    names = str(write(tmp_path / "who.txt", "p\nq\np\n\n"))
    assert read_data(tmp_path / "d.npz", task=names).task.tolist() == ["p", "q", "p"]
    fails("who.txt names 2 tasks, but .* has 3 rows", read_data, tmp_path / "d.npz",
          task=str(write(tmp_path / "who.txt", "p\nq\n")))  # fmt: skip
    fails("line 2: the task has no name", read_data, tmp_path / "d.npz",
          task=str(write(tmp_path / "who.txt", "p\n\nq\n")))  # fmt: skip


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("1\n2\n", "w.txt ends at line 2 with 2 weights, but .* has 3 rows"),
        ("1\n-2\n3\n", "w.txt, line 2: the weight -2 is negative"),
        ("1\nx\n3\n", "w.txt, line 2: expected one finite number"),
        ("0\n0\n0\n", "w.txt: all weights are 0"),
    ],
)
def test_bad_weights_name_file_and_line(tmp_path, text, match):
    weights = str(write(tmp_path / "w.txt", text))
    fails(match, read_data, make(tmp_path, "d.csv"), weights=weights)


def test_bad_weights_in_a_column_or_an_array(tmp_path):
    path = write(tmp_path / "d.csv", "a,w,y\n1,1,0\n2,-3,1\n")
    fails("d.csv, line 3: column 'w' holds -3; a weight must not be negative", read_data, path, weights="w")
    np.savez(tmp_path / "d.npz", X=X, y=Y, w=[1, np.nan, 2], v=[1, 2])
    fails(r"d.npz: w\[1\] is nan; a weight must be finite", read_data, tmp_path / "d.npz", weights="w")
    fails("it must hold a weight for each of 3 rows", read_data, tmp_path / "d.npz", weights="v")


def test_pandas_counts_are_a_header(tmp_path):
    data = read_data(write(tmp_path / "d.csv", "0,1,2,kind\n5,6,7,x\n8,9,10,y\n"))
    assert data.named and data.target == "kind" and data.X.shape == (2, 3)


# -- npy --------------------------------------------------------------------------------------------


def test_npy_stays_on_disk(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", Y)
    data = read_data(tmp_path / "X.npy", target=str(tmp_path / "y.npy"))
    assert np.array_equal(data.X, X) and data.y.tolist() == Y.tolist()
    assert isinstance(data.X.base, np.memmap) or isinstance(data.X, np.memmap)
    assert not data.X.flags.writeable


def test_npy_columns_as_targets(tmp_path):
    np.save(tmp_path / "d.npy", np.column_stack([X, Y]))
    assert read_data(tmp_path / "d.npy").y.tolist() == Y.tolist()
    data = read_data(tmp_path / "d.npy", target=["0", "-1"])
    assert data.target == ["0", "3"] and np.array_equal(data.X, X[:, 1:])
    np.save(tmp_path / "f.npy", X.astype(np.float32))
    assert read_data(tmp_path / "f.npy").X.dtype == np.float32
    np.save(tmp_path / "new.npy", X)
    assert read_like(tmp_path / "new.npy", n_features=3, target="3").y is None
    assert read_like(tmp_path / "d.npy", n_features=3, target="3").y.tolist() == Y.tolist()
    fails("d.npy has 4 columns, but the model has 7 features", read_like, tmp_path / "d.npy", n_features=7)


# -- trees, masks, weights of features --------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "text"),
    [("t.json", '{"cat": "mammal", "mammal": null}'), ("t.csv", "child,parent\ncat,mammal\nmammal,\n")],
)
def test_trees(tmp_path, name, text):
    assert read_tree(write(tmp_path / name, text)) == {"cat": "mammal", "mammal": None}


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("t.json", "[1]", 'must hold {"child": "parent", ...}'),
        ("t.json", '{"a": ["b"]}', "node 'a': expected its parent"),
        ("t.json", "{}", "holds no nodes"),
        ("t.csv", "a,b,c\n", "line 1: expected child,parent, found 3 cells"),
        ("t.csv", "a,b\na,c\n", "line 2: 'a' has a second parent, 'c'"),
    ],
)
def test_bad_trees(tmp_path, name, text, match):
    fails(match, read_tree, write(tmp_path / name, text))


def test_masks(tmp_path):
    mask = np.array([[True, False, True], [False, True, True]])
    np.save(tmp_path / "m.npy", mask.astype(int))
    for path in (
        tmp_path / "m.npy",
        write(tmp_path / "m.txt", "1 0 1\n0 1 1\n"),
        write(tmp_path / "m.csv", "true,false,true\nfalse,true,true\n"),
        write(tmp_path / "column.txt", "1\n0\n1\n0\n1\n1\n"),
    ):
        assert np.array_equal(read_mask(path, (2, 3)), mask)
    fails("has 6 cells, but the shape 3x3 has 9", read_mask, tmp_path / "m.txt", (3, 3))
    fails("line 2: '7' is neither 0 nor 1", read_mask, write(tmp_path / "m.txt", "1 0 1\n0 7 1\n"), (2, 3))
    np.save(tmp_path / "m.npy", np.array(["a"]))
    fails("a mask holds 0 and 1", read_mask, tmp_path / "m.npy", (1,))


def test_weights_of_features(tmp_path):
    assert read_weights(write(tmp_path / "w.txt", "1\n0\n2.5\n")).tolist() == [1, 0, 2.5]
    assert read_weights(write(tmp_path / "w.json", "[1, 0, 2.5]")).tolist() == [1, 0, 2.5]
    for path in (
        write(tmp_path / "w.json", '{"a": 1, "b": 0}'),
        write(tmp_path / "w.csv", "name,weight\na,1\nb,0\n"),
    ):
        assert read_weights(path, ["a", "b", "c"]) == {"a": 1.0, "b": 0.0}


@pytest.mark.parametrize(
    ("name", "text", "match"),
    [
        ("w.txt", "1\n-2\n", "line 2: the weight -2 is negative"),
        ("w.csv", "a,1\nb,x\n", "line 2: the weight 'x' is not a finite number"),
        ("w.csv", "a,1\na,2\n", "line 2: 'a' has a second weight"),
        ("w.csv", "a,1\nb,2,3\n", "line 2: expected name,weight, found 3 cells"),
        ("w.csv", "apha,1\n", "to 'apha', which does not exist; did you mean 'alpha'"),
        ("w.json", '"a"', "or a list of weights"),
        ("w.json", "{}", "holds no weights"),
    ],
)
def test_bad_weights_of_features(tmp_path, name, text, match):
    fails(match, read_weights, write(tmp_path / name, text), ["alpha", "a", "b"])


def test_gmt_groups(tmp_path):
    path = write(tmp_path / "p.gmt", "one\tx\tb\ta\tz\ntwo\tx\tc\n")
    groups, names = read_groups(path, 3, ["a", "b", "c"])
    assert [group.tolist() for group in groups] == [[1, 0], [2]] and names == ["one", "two"]
    fails("the data has no named columns", read_groups, path, 3)
    fails("p.gmt: line 1 of the GMT file has 1 fields", read_groups, write(path, "one\n"), 3, ["a", "b", "c"])


# -- words and gaps ---------------------------------------------------------------------------------

MIXED = """town,age,kind,y
Ulm,1,van,0
Bern,,bus,1
,3,van,1
Oslo,4,bus,0
"""


def test_words_become_columns_and_gaps_are_filled(tmp_path):
    path = write(tmp_path / "d.csv", MIXED)
    data = read_data(path, one_hot="auto", missing="mean")
    assert data.features == ["town_(missing)", "town_Bern", "town_Oslo", "town_Ulm", "age", "kind_bus", "kind_van"]
    assert data.X[:, 4].tolist() == [1, 8 / 3, 3, 4]
    assert data.X[:, :4].tolist() == [[0, 0, 0, 1], [0, 1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]
    assert data.coding.groups() == {"town": [0, 1, 2, 3], "age": [4], "kind": [5, 6]}
    # new rows are read as those of the fit were, whatever words and gaps they have
    new = write(tmp_path / "new.csv", "kind,town,age\nvan,Rom,\nbus,,7\n")
    with pytest.warns(UserWarning, match=r"new.csv, line 2: column 'town' holds 'Rom', a word that no row"):
        rows = read_like(new, n_features=7, features=data.features, coding=data.coding)
    assert rows.X.tolist() == [[0, 0, 0, 0, 8 / 3, 0, 1], [1, 0, 0, 0, 7, 1, 0]]


@pytest.mark.parametrize("kind", ["d.csv", "d.parquet"])
def test_rows_with_gaps_are_left_out(tmp_path, kind):
    path = tmp_path / kind
    text = write(tmp_path / "text.csv", MIXED)
    if kind == "d.csv":
        path.write_text(MIXED)
    else:
        pd.read_csv(text).to_parquet(path)
    weights = write(tmp_path / "weights.txt", "1\n2\n3\n4\n")
    data = read_data(path, one_hot="auto", missing="drop", weights=str(weights), together="kind")
    assert data.kept.tolist() == [True, False, False, True] and data.weights.tolist() == [1, 4]
    assert data.features == ["town_Oslo", "town_Ulm", "age"] and data.together.tolist() == ["van", "bus"]
    assert data.X.tolist() == [[0, 1, 1], [1, 0, 4]] and data.y.tolist() == [0, 0]
    assert read_data(path, one_hot="auto", missing="drop", drop=["town", "age"]).kept.all()  # unread gaps are none


def test_many_words_are_sparse(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice([f"w{k}" for k in range(200)], 600), "b": rng.standard_normal(600), "y": 0.0})
    frame.to_csv(tmp_path / "d.csv", index=False)
    data = read_data(tmp_path / "d.csv", one_hot="auto")
    words = pd.get_dummies(frame["a"]).to_numpy(float)
    assert sp.issparse(data.X) and np.array_equal(data.X.toarray(), np.column_stack([words, frame["b"]]))


@pytest.mark.parametrize(
    "text, options, message",
    [
        (MIXED.replace(",,", ",2,"), {}, r"d.csv, line 2: column 'town' holds Ulm, .*--one-hot auto .*--drop town"),
        (MIXED, {"one_hot": "auto"}, r"d.csv, line 4: column 'town' has no value; --missing mean .*--missing drop"),
        (MIXED, {"one_hot": "yes"}, "--one-hot is 'yes'; it must be auto"),
        (MIXED, {"missing": "median"}, "--missing is 'median'; it must be mean or drop"),
        ("a,b,y\n1,,0\n2,,1\n", {"missing": "mean"}, "column 'b' has no value in any row; .*--drop"),
        ("a,b,y\n1,,0\n2,,1\n", {"missing": "drop"}, "every row misses a value"),
        ("a,y\n1,0\n2,\n", {"missing": "mean"}, "line 3: column 'y' has no value; --missing drop"),
        ("a,y\n" + "".join(f"n{k},{k}\n" for k in range(40)), {"one_hot": "auto"}, "40 different words .*--drop a"),
    ],
)
def test_words_and_gaps_that_nothing_is_said_about(tmp_path, text, options, message):
    fails(message, read_data, write(tmp_path / "d.csv", text), **options)


def test_words_and_gaps_are_for_tables(tmp_path):
    fails("is no table; --one-hot and --missing are for CSV", read_data, make(tmp_path, "d.svm"), one_hot="auto")
