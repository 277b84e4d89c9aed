"""Rows and sample weights: what is taken as it is, what is converted, and what is refused with a place."""

import copy
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from cases import random_sparse

import fenchel as fl
from fenchel.data import Rows, as_weights
from fenchel.models import Model

X = np.array([[1.0, 0.0, 2.0], [0.0, -3.0, 0.0], [4.0, 5.0, 0.5], [0.0, 0.0, 1.0]])


def dense(rows):
    """What the rows hold, as a dense array."""
    if not rows.sparse:
        return rows.arrays[0]
    data, indices, indptr = rows.arrays
    return sp.csr_array((data, indices, indptr), shape=(rows.n, rows.p)).toarray()


# -- taken without a copy ---------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_is_not_copied(dtype):
    given = X.astype(dtype)
    rows = Rows(given)
    assert np.shares_memory(rows.arrays[0], given)
    assert rows.dtype == dtype and not rows.sparse
    assert (rows.n, rows.p, rows.stored, rows.nbytes) == (4, 3, 12, given.nbytes)
    assert not rows.arrays[0].flags.writeable and given.flags.writeable


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_csr_is_not_copied(kind, dtype, index):
    given = kind(X.astype(dtype))
    given.indices, given.indptr = given.indices.astype(index), given.indptr.astype(index)
    rows = Rows(given)
    for mine, theirs in zip(rows.arrays, (given.data, given.indices, given.indptr), strict=True):
        assert np.shares_memory(mine, theirs) and not mine.flags.writeable and theirs.flags.writeable
    assert rows.sparse and rows.dtype == dtype and rows.stored == given.nnz
    np.testing.assert_array_equal(dense(rows), X)


def test_the_copy_in_single_precision_uses_old_memory_again(monkeypatch):
    monkeypatch.setattr("fenchel.data.rows._spare", [])
    rng = np.random.default_rng(0)
    first, second = Rows(rng.standard_normal((30, 20))), Rows(rng.standard_normal((20, 20)))
    mine, other = first.single[0], second.single[0]
    assert mine is first.single[0] and not mine.flags.writeable
    assert not np.shares_memory(mine, other)
    np.testing.assert_array_equal(mine, first.arrays[0].astype(np.float32))
    del first
    third = Rows(rng.standard_normal((25, 20)))
    assert np.shares_memory(third.single[0], mine)
    np.testing.assert_array_equal(third.single[0], third.arrays[0].astype(np.float32))
    large = Rows(rng.standard_normal((50, 20)))
    del second
    assert large.single[0].shape == (50, 20)  # what was left is too small
    np.testing.assert_array_equal(large.single[0], large.arrays[0].astype(np.float32))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda rows: pickle.loads(pickle.dumps(rows))])
def test_copies_do_not_share_it(copied, monkeypatch):
    monkeypatch.setattr("fenchel.data.rows._spare", [])
    rows = Rows(np.random.default_rng(0).standard_normal((30, 20)))
    single = rows.single[0]
    other = copied(rows)
    assert "single" not in vars(other)
    np.testing.assert_array_equal(other.single[0], single)
    assert not np.shares_memory(other.single[0], single)


@pytest.mark.parametrize("mode", ["r", "c"])
def test_memmap_is_not_copied(tmp_path, mode):
    np.save(tmp_path / "X.npy", X)
    given = np.load(tmp_path / "X.npy", mmap_mode=mode)
    rows = Rows(given)
    assert np.shares_memory(rows.arrays[0], given)
    assert type(rows.arrays[0]) is np.ndarray and not rows.arrays[0].flags.writeable
    np.testing.assert_array_equal(dense(rows), X)


def test_memmapped_csr_is_not_copied(tmp_path):
    full = sp.csr_array(X)
    parts = []
    for name in ("data", "indices", "indptr"):
        np.save(tmp_path / f"{name}.npy", getattr(full, name))
        parts.append(np.load(tmp_path / f"{name}.npy", mmap_mode="r"))
    rows = Rows(sp.csr_array(tuple(parts), shape=X.shape))
    assert all(np.shares_memory(mine, theirs) for mine, theirs in zip(rows.arrays, parts, strict=True))


def test_a_row_slice_of_an_array_is_not_copied():
    assert np.shares_memory(Rows(X[1:3]).arrays[0], X)
    assert Rows(X[:, :1].copy(order="F")).p == 1


def test_read_only_data_is_solved_as_it_is(tmp_path):
    np.save(tmp_path / "X.npy", X)
    frozen = np.load(tmp_path / "X.npy", mmap_mode="r")
    y = np.array([1.0, -1.0, 1.0, 0.0])
    results = [
        fl.solve(fl.Problem(data, y, loss="squared", penalty=fl.L1(), alpha=0.05), tol=1e-8)
        for data in (X, frozen, sp.csr_array(X), X.astype(np.float32))
    ]
    for result in results:
        assert result.relative_gap <= 1e-8
        np.testing.assert_allclose(result.coef, results[0].coef, atol=1e-4)


# -- converted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint16, np.int64, np.float16, np.longdouble, ">f8", ">f4"])
def test_other_numbers_are_converted(dtype):
    given = np.array([[1, 0, 2], [0, 3, 1]]).astype(dtype)
    rows = Rows(given)
    assert rows.dtype == np.float64 and rows.dtype.isnative
    np.testing.assert_array_equal(dense(rows), given.astype(float))
    np.testing.assert_array_equal(dense(Rows(np.asfortranarray(given))), given.astype(float))


@pytest.mark.parametrize("dtype", [bool, np.int32, np.uint8])
@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
def test_other_sparse_is_converted(dtype, layout):
    given = np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]]).astype(dtype)
    rows = Rows(sp.csr_array(given).asformat(layout))
    assert rows.sparse and rows.dtype == np.float64
    np.testing.assert_array_equal(dense(rows), given.astype(float))


def test_lists_are_converted():
    np.testing.assert_array_equal(dense(Rows(X.tolist())), X)


@pytest.mark.parametrize("part", [X[:, ::2], X[::2], X[::-1], X[1:3, 1:], np.asfortranarray(X.astype(np.float32))[::2]])
def test_parts_of_arrays_are_copied(part):
    rows = Rows(part)
    np.testing.assert_array_equal(dense(rows), part)
    assert rows.arrays[0].dtype == part.dtype and not np.shares_memory(rows.arrays[0], part)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_data_frames_are_converted(library):
    frames = pytest.importorskip(library)
    columns = {"a": [1, 2, 3], "b": [0.5, -1.0, 2.0], "c": [True, False, True]}
    rows = Rows(frames.DataFrame(columns))
    np.testing.assert_array_equal(dense(rows), np.column_stack([np.array(c, dtype=float) for c in columns.values()]))
    assert rows.arrays[0].flags.c_contiguous
    holes = frames.DataFrame({"a": [1.0, 2.0], "b": [None, 2.0]})
    with pytest.raises(ValueError, match=r"X\[0, 1\] is nan; X must be finite"):
        Rows(holes)
    with pytest.raises(ValueError, match="could not convert string to float"):
        Rows(frames.DataFrame({"a": ["x", "y"]}))


def test_a_single_precision_frame_stays_so():
    pandas = pytest.importorskip("pandas")
    assert Rows(pandas.DataFrame(X, dtype=np.float32)).dtype == np.float32


@pytest.mark.parametrize("part", [X[:, 1:], X[:, ::2], X[::2], X[::-1], np.asfortranarray(X.astype(np.float32))[::2]])
def test_parts_of_an_array_are_copied(part):
    rows = Rows(part)
    assert rows.dtype == part.dtype and part.flags.forc is False
    np.testing.assert_array_equal(dense(rows), part)


# -- refused ----------------------------------------------------------------------------------------


def with_value(value, dtype=float):
    out = X.astype(dtype)
    out[2, 1] = value
    return out


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (X.astype(object), "X has dtype object"),
        (X.astype(str), "X has dtype <U"),
        (X.astype(complex), "X has dtype complex128; it must be real numbers"),
        (X.astype("datetime64[s]"), "X has dtype datetime64"),
        (X.astype("timedelta64[s]"), "X has dtype timedelta64"),
        (X[0], r"X has shape \(3,\); it must have two dimensions"),
        (X[None], r"X has shape \(1, 4, 3\); it must have two dimensions"),
        (np.array(1.0), r"X has shape \(\)"),
        (X[:0], r"X has shape \(0, 3\): there are no rows"),
        (X[:, :0].copy(), r"X has shape \(4, 0\)"),
        (sp.csr_array((4, 0)), r"X has shape \(4, 0\)"),
        (sp.csr_array((0, 3)), r"X has shape \(0, 3\): there are no rows"),
        (with_value(np.nan), r"X\[2, 1\] is nan; X must be finite"),
        (with_value(np.inf), r"X\[2, 1\] is inf; X must be finite"),
        (with_value(-np.inf, np.float32), r"X\[2, 1\] is -inf; X must be finite"),
        (with_value(np.nan, np.float16), r"X\[2, 1\] is nan; X must be finite"),
        (sp.csr_array(with_value(np.nan)), r"X\[2, 1\] is nan; X must be finite"),
        (sp.csr_array(with_value(-np.inf)), r"X\[2, 1\] is -inf; X must be finite"),
        (sp.csc_array(with_value(np.nan)), r"X\[2, 1\] is nan; X must be finite"),
        (sp.csr_array(X.astype(complex)), "X has dtype complex128; it must be real numbers"),
        (sp.coo_array(np.ones(3)), r"X has 1 dimension\(s\); it must have two"),
        ([1.0, 2.0], "2D"),
        ([], "2D"),
        ([["a", "b"]], "could not convert string to float"),
        (None, "X|2D"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Rows(given)


def test_infinities_that_cancel_or_overflow():
    with pytest.raises(ValueError, match=r"X\[0, 1\] is inf"):
        Rows(np.array([[0.0, np.inf], [-np.inf, 0.0]]))
    large = np.full((3, 2), 1e150)
    assert np.shares_memory(Rows(large).arrays[0], large)
    assert Rows(np.full((3, 2), 3e38, dtype=np.float32)).n == 3


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [np.array, sp.csr_array], ids=["dense", "sparse"])
def test_squares_that_overflow_are_refused(kind):
    X = np.ones((6, 3))
    X[4, 1] = 1e200
    with pytest.raises(ValueError, match=r"column 1 whose squares overflow .* another unit"):
        Rows(kind(X))
    with pytest.raises(ValueError, match="column 1"):
        fl.StructuredRegressor(penalty=fl.L1()).fit(kind(X), np.arange(6.0))


def test_the_place_is_right_beyond_the_first_chunk(monkeypatch):
    monkeypatch.setattr("fenchel.data.rows.AT_ONCE", 5)
    given = np.ones((20, 3))
    given[17, 2] = np.nan
    for data in (given, sp.csr_array(given)):
        with pytest.raises(ValueError, match=r"X\[17, 2\] is nan"):
            Rows(data)
    given[17, 2] = 4.0
    for data in (given, sp.csr_array(given), given.astype(np.float32)):
        np.testing.assert_allclose(Rows(data).mean_squares, [1, 1, (19 + 16) / 20])


@pytest.mark.parametrize("dtype", [float, np.float32])
@pytest.mark.parametrize("n", [40, 43])
def test_mean_squares_of_much_data_are_those_of_little(monkeypatch, n, dtype):
    """Much data is read by compiled code, four dense rows at a time."""
    full = random_sparse((n, 7), density=0.6, rng=np.random.default_rng(n), format="csr", dtype=dtype)
    expected = np.mean(full.toarray().astype(float) ** 2, axis=0)
    for many in (1, 1 << 20):
        monkeypatch.setattr("fenchel.data.rows.AT_ONCE", many)
        for data in (full, full.toarray()):
            np.testing.assert_allclose(Rows(data).mean_squares, expected, rtol=1e-14)
    bad = full.toarray()
    bad[n - 1, 6] = np.inf
    monkeypatch.setattr("fenchel.data.rows.AT_ONCE", 1)
    for data in (bad, sp.csr_array(bad)):
        with pytest.raises(ValueError, match=rf"X\[{n - 1}, 6\] is inf"):
            Rows(data)


def test_csr_that_points_outside_is_refused():
    """scipy does not look at the indices of a matrix put together by hand; a kernel would write past the end."""
    for indices, indptr in (([0, 3], [0, 1, 2]), ([0, -1], [0, 1, 2])):
        given = sp.csr_array((np.ones(2), np.array(indices), np.array(indptr)), shape=(2, 3))
        with pytest.raises(ValueError, match="X"):
            Rows(given)


def test_csr_with_duplicates_counts_as_their_sum():
    """The square of a sum is not the sum of squares, which the step sizes rest on."""
    rng = np.random.default_rng(0)
    full = random_sparse((60, 5), density=0.6, rng=rng, format="csr")
    parts = 8
    split = sp.csr_array(
        (np.repeat(full.data / parts, parts), np.repeat(full.indices, parts), full.indptr * parts), shape=full.shape
    )
    y = rng.standard_normal(60)
    np.testing.assert_allclose(Rows(split).mean_squares, Rows(full).mean_squares)
    one, other = (
        fl.solve(fl.Problem(data, y, loss="squared", penalty=fl.L1(), alpha=0.001), tol=1e-8) for data in (full, split)
    )
    assert other.relative_gap <= 1e-8
    np.testing.assert_allclose(one.coef, other.coef, atol=1e-4)


def test_unsorted_csr_is_fine():
    given = sp.csr_array((np.array([2.0, 1.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    rows = Rows(given)
    np.testing.assert_array_equal(dense(rows), [[1.0, 0.0, 2.0]])
    np.testing.assert_array_equal(given.indices, [2, 0])


def test_masked_values_are_not_silently_used():
    with pytest.raises(ValueError, match="mask"):
        Rows(np.ma.masked_array(X, X == 4.0))


# -- sample weights ---------------------------------------------------------------------------------


def test_weights_are_scaled_to_mean_one():
    np.testing.assert_allclose(as_weights([1, 2, 3], 3), [0.5, 1.0, 1.5])
    np.testing.assert_allclose(as_weights([True, False, True], 3), [1.5, 0.0, 1.5])
    np.testing.assert_allclose(as_weights(np.array([0, 4], dtype=np.float32), 2), [0.0, 2.0])
    given = np.array([1.0, 3.0])
    as_weights(given, 2)
    assert given.tolist() == [1.0, 3.0]


def test_equal_weights_are_none():
    assert as_weights(None, 3).size == 0
    assert as_weights([2.5, 2.5, 2.5], 3).size == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([1.0, 2.0], "sample_weight has 2 entries, but X has 3 rows"),
        ([1.0, -1e-9, 2.0], r"sample_weight\[1\] is -1e-09; weights must be finite and not negative"),
        ([1.0, 2.0, np.nan], r"sample_weight\[2\] is nan"),
        ([np.inf, 1.0, 2.0], r"sample_weight\[0\] is inf"),
        ([0.0, 0.0, 0.0], "sample_weight is zero for every row"),
        (np.ones((3, 1)), r"sample_weight has dtype float64 and shape \(3, 1\)"),
        (1.0, r"sample_weight has dtype float64 and shape \(\)"),
        (np.array([1, None, 2]), "sample_weight has dtype object"),
        (["a", "b", "c"], "sample_weight has dtype <U1"),
        (np.array([1, 2, 3j]), "sample_weight has dtype complex128"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_bad_weights(given, message):
    with pytest.raises(ValueError, match=message):
        as_weights(given, 3)
    with pytest.raises(ValueError, match=message):
        fl.Problem(X[:3], np.arange(3.0), loss="squared", sample_weight=given)


def test_weights_of_extreme_size_keep_their_proportions():
    np.testing.assert_allclose(as_weights([1e308, 1e308, 0.0], 3), [1.5, 1.5, 0.0])
    np.testing.assert_allclose(as_weights([1e-320, 3e-320, 0.0], 3), [0.75, 2.25, 0.0], rtol=1e-3)


def test_scaled_weights_are_the_same_problem():
    y = np.array([1.0, -1.0, 2.0, 0.0])
    one, other = (fl.Problem(X, y, loss="huber", sample_weight=scale * np.arange(1.0, 5)) for scale in (1.0, 1e5))
    w = np.array([0.3, -0.2, 1.0])
    assert one.primal(w) == pytest.approx(other.primal(w), rel=1e-14)


def test_no_single_precision_where_it_gains_nothing_or_does_not_hold_the_numbers():
    X, y = np.random.default_rng(0).standard_normal((20, 8)), np.ones(20)
    penalty = fl.L1() @ fl.Difference(8)
    large, small = X.copy(), X.copy()
    large[3, 2], small[:, 4] = 1e40, 1e-40 * X[:, 4]
    for rows in (X.astype(np.float32), sp.csr_array(X), large, small):
        assert fl.Problem(rows, y, loss="squared", penalty=penalty).data.single is None
    assert fl.Problem(X, y, loss="squared", penalty=penalty).data.single is not None


# -- sparse matrices that were put together by hand -----------------------------------------------------


def _broken(kind, damage):
    """A matrix of scipy with one part that does not belong to the others."""
    M = random_sparse((50, 20), density=0.3, format="csr", rng=np.random.default_rng(0)).asformat(kind)
    if kind == "bsr":
        M = sp.bsr_array(M, blocksize=(5, 5))
    damage(M)
    return M


def _set(name, place, value):
    return lambda M: getattr(M, name).__setitem__(place, value)


def _cut(name):
    return lambda M: setattr(M, name, getattr(M, name)[:5].copy())


BROKEN = [
    *((kind, _set("indptr", place, value)) for kind in ("csr", "csc", "bsr") for place, value in
      ((-1, 10**9), (2, 10**9), (0, -(10**6)), (2, -(10**9)))),
    *((kind, _set("indices", 3, value)) for kind in ("csr", "csc", "bsr") for value in (10**8, -(10**8))),
    *((kind, _cut(part)) for kind in ("csr", "csc", "bsr") for part in ("indptr", "indices", "data")),
    *(("coo", lambda M, axis=axis, value=value: M.coords[axis].__setitem__(3, value)) for axis in (0, 1)
      for value in (10**8, -(10**8))),
    ("coo", _cut("data")),
    ("lil", _set("rows", 3, [10**8])),
    ("lil", _cut("rows")),
    ("dok", lambda M: M._dict.__setitem__((10**8, 0), 1.0)),
    ("dia", _cut("data")),
]  # fmt: skip


@pytest.mark.parametrize("kind, damage", BROKEN)
def test_a_broken_sparse_matrix_is_refused_at_every_door(kind, damage):
    """Compiled code would read, and write, past the end."""
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((50, 20)), np.sign(rng.standard_normal(50))
    fitted = fl.StructuredRegressor(penalty=fl.L1(), alpha=0.1).fit(X, y)
    saved = Model(fitted.coef_, 0.0, "squared", {}, "", 0.1)
    doors = [
        lambda M: fl.Problem(M, y, loss="logistic", penalty=fl.L1(), alpha=0.1),
        lambda M: fl.StructuredRegressor(penalty=fl.L1(), alpha=0.1).fit(M, y),
        lambda M: fl.StructuredClassifier(penalty=fl.L1(), alpha=0.1).fit(M, y),
        fitted.predict,
        lambda M: fl.L1() @ M,
        lambda M: fl.Graph.from_data(M, "correlation"),
        lambda M: fl.Graph.from_data(M, "glasso"),
        saved.decision,
    ]
    for door in doors:
        with pytest.raises(ValueError, match=r"^(X|M)[ .]"):
            door(_broken(kind, damage))


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "lil", "dok", "dia"])
def test_a_sound_sparse_matrix_of_any_kind_is_taken(kind):
    rng = np.random.default_rng(1)
    M = _broken(kind, lambda M: None)
    y = np.sign(rng.standard_normal(50))
    a, b = (fl.Problem(data, y, loss="logistic", penalty=fl.L1(), alpha=0.1) for data in (M, M.toarray()))
    w = rng.standard_normal(20)
    assert a.primal(w) == pytest.approx(b.primal(w), rel=1e-12)
