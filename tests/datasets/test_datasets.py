"""The paper's data: what it must be by its description, and loaders that say what is missing."""

import numpy as np
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel import datasets
from fenchel.datasets import paper


def needs(*names):
    """Skip, with the reason, where a data file is not at hand."""
    folder = datasets.data_folder()
    if folder is None:
        pytest.skip("no data folder: set FENCHEL_DATA or put the files into ../shared/data")
    for name in names:
        if not (folder / name).is_file():
            pytest.skip(f"{name} is not in {folder}")


# -- artificial -------------------------------------------------------------------------------------


def test_artificial_is_what_the_paper_describes():
    X, y, w = datasets.artificial(400, side=6, seed=3)
    assert X.shape == (400, 36) and X.flags.c_contiguous
    assert set(np.unique(y)) == {-1.0, 1.0}
    matrix = w.reshape(6, 6, order="F")
    assert np.all(matrix[:, 0] != 0) and not matrix[:, 1:].any()
    assert abs(X.mean()) < 0.05 and abs(X.std() - 1) < 0.05
    # noise of 0.1 inside a score of standard deviation |w| flips few signs
    assert np.mean(np.sign(X @ w) == y) > 0.9


def test_artificial_without_noise_is_the_sign_and_seeds_repeat():
    X, y, w = datasets.artificial(50, side=4, noise=0.0, seed=7)
    assert np.array_equal(y, np.sign(X @ w))
    again = datasets.artificial(50, side=4, noise=0.0, seed=7)
    assert all(np.array_equal(a, b) for a, b in zip((X, y, w), again, strict=True))
    assert not np.array_equal(X, datasets.artificial(50, side=4, seed=8)[0])


def test_groups_are_columns_and_rows_of_the_column_major_matrix():
    side = 5
    groups = datasets.artificial_groups(side)
    assert len(groups) == 2 * side
    entries = np.random.default_rng(0).standard_normal(side * side)
    matrix = entries.reshape(side, side, order="F")
    for j in range(side):
        assert np.array_equal(entries[groups[j]], matrix[:, j])
        assert np.array_equal(entries[groups[side + j]], matrix[j, :])
    assert np.array_equal(np.bincount(np.concatenate(groups)), np.full(side * side, 2))


def test_artificial_problem_has_the_paper_objective():
    n, side = 60, 4
    problem = datasets.artificial_problem(n, side=side, seed=1)
    X, y, _ = datasets.artificial(n, side=side, seed=1)
    w = np.random.default_rng(2).standard_normal(side * side)
    matrix = w.reshape(side, side, order="F")
    short = np.maximum(1 - y * (X @ w), 0)
    loss = np.mean(np.where(short >= 1, short - 0.5, 0.5 * short**2))
    norms = np.linalg.norm(matrix, axis=0).sum() + np.linalg.norm(matrix, axis=1).sum()
    alpha = 0.1 / np.sqrt(n)
    assert problem.primal(w) == pytest.approx(loss + alpha * (norms + 0.01 * 0.5 * (w @ w)), rel=1e-13)


@pytest.mark.parametrize("bad", [{"n": 0}, {"n": 2.5}, {"side": 0}, {"side": True}, {"noise": -1.0}, {"noise": np.nan}])
def test_artificial_names_a_bad_argument(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        datasets.artificial(**({"n": 10, "side": 3} | bad))


# -- folder and missing files -----------------------------------------------------------------------


def test_data_folder_prefers_the_environment(monkeypatch, tmp_path):
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    assert datasets.data_folder() == tmp_path


def test_data_folder_is_else_in_the_cache(monkeypatch, tmp_path):
    monkeypatch.delenv("FENCHEL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert datasets.data_folder() is None
    (tmp_path / "fenchel").mkdir()
    assert datasets.data_folder() == tmp_path / "fenchel"


def test_data_folder_is_in_the_home_where_no_cache_is_named(monkeypatch, tmp_path):
    monkeypatch.delenv("FENCHEL_DATA", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(paper.Path, "home", lambda: tmp_path)
    (tmp_path / ".cache" / "fenchel").mkdir(parents=True)
    assert datasets.data_folder() == tmp_path / ".cache" / "fenchel"


def test_a_folder_beside_the_checkout_is_the_tests_affair_alone(monkeypatch, tmp_path):
    monkeypatch.delenv("FENCHEL_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "here").mkdir()
    (tmp_path / "shared" / "data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    assert datasets.data_folder() is None


@pytest.mark.parametrize(
    ("load", "name"),
    [
        (datasets.load_a9a, "a9a"),
        (lambda: datasets.load_a9a("test"), "a9a.t"),
        (datasets.load_20news, "20news_w100.mat"),
        (datasets.load_p53, "p53.npz"),
    ],
)
def test_a_missing_file_is_named_with_its_folder(monkeypatch, tmp_path, load, name):
    monkeypatch.setenv("FENCHEL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError) as caught:
        load()
    message = str(caught.value)
    assert f"Put {name} " in message and str(tmp_path) in message and "FENCHEL_DATA" in message


def test_no_folder_at_all_says_which_variable_to_set(monkeypatch):
    monkeypatch.setattr(paper, "data_folder", lambda: None)
    with pytest.raises(FileNotFoundError, match=r"Put p53.npz .* FENCHEL_DATA"):
        datasets.load_p53()


def test_a9a_refuses_an_unknown_split():
    with pytest.raises(ValueError, match="split is 'valid'"):
        datasets.load_a9a("valid")


# -- the real files ---------------------------------------------------------------------------------


def test_a9a():
    needs("a9a", "a9a.t")
    X, y = datasets.load_a9a()
    assert X.shape == (32561, 123) and (y == 1).sum() == 7841 and set(np.unique(y)) == {-1.0, 1.0}
    X, y = datasets.load_a9a("test")
    assert X.shape == (16281, 123) and (y == 1).sum() == 3846


def test_the_graph_of_a9a_from_sparse_and_dense():
    """Its 415 edges; at the usual accuracy a few are missing, and which ones depends on the release of scikit-learn."""
    needs("a9a")
    X, _ = datasets.load_a9a()
    edges = datasets.graph_edges(X)
    exact = {tuple(edge) for edge in datasets.graph_edges(X, tol=1e-7).tolist()}
    assert len(exact) == 415
    assert len(exact ^ {tuple(edge) for edge in edges.tolist()}) <= 8
    assert np.array_equal(edges, datasets.graph_edges(X.toarray()))


def test_20news():
    needs("20news_w100.mat")
    X, y = datasets.load_20news()
    assert X.shape == (16242, 100) and X.format == "csr" and X.dtype == np.float64
    assert set(np.unique(X.data)) == {1.0}
    assert (y == 1).sum() == 4605 + 3519 and (y == -1).sum() == 2657 + 5461


def test_p53():
    needs("p53.npz")
    X, y, groups, genes, pathways = datasets.load_p53()
    assert X.shape == (50, 4301) and X.flags.c_contiguous
    assert (y == 1).sum() == 33 and (y == -1).sum() == 17
    sizes = [len(group) for group in groups]
    assert len(groups) == len(pathways) == 308 and min(sizes) == 15 and max(sizes) == 358
    assert len(genes) == 4301 and max(group.max() for group in groups) < 4301


# -- graphs -----------------------------------------------------------------------------------------


def paired_data(n=4000):
    """Columns 0 and 1, 2 and 3, 4 and 5 depend on each other; the pairs are independent."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, 6))
    X[:, 1::2] += 0.8 * X[:, ::2]
    return X


def test_graph_edges_finds_the_pairs():
    # the graphical lasso joins across groups of columns only where a covariance exceeds alpha
    assert datasets.graph_edges(paired_data(), alpha=0.2).tolist() == [[0, 1], [2, 3], [4, 5]]


def test_graph_edges_of_sparse_and_dense_agree():
    X = np.where(np.abs(paired_data()) > 1, paired_data(), 0.0)
    dense = datasets.graph_edges(X, alpha=0.05)
    assert len(dense) and np.array_equal(dense, datasets.graph_edges(sp.csr_array(X), alpha=0.05))


def test_graph_penalty_is_the_paper_formula():
    edges, p = [(0, 1), (1, 3), (0, 2)], 4
    w = np.array([1.0, -2.0, 0.5, 3.0])
    jumps = np.array([w[i] - w[j] for i, j in edges])
    ratio = len(edges) / p
    expected = np.abs(w).sum() + ratio * np.abs(jumps).sum() + 0.01 * ((w**2).sum() + ratio * (jumps**2).sum())
    X, y = np.zeros((2, p)), np.array([1.0, -1.0])
    X[0, 0] = 1.0
    problem = fl.Problem(X, y, loss="squared", penalty=datasets.graph_penalty(edges, p), alpha=0.3)
    without = fl.Problem(X, y, loss="squared")
    assert problem.primal(w) - without.primal(w) == pytest.approx(0.3 * expected, rel=1e-12)
