"""Maps: every law of `fenchel.testing`, the matrices written down, large sizes, bad input, one's own."""

import numpy as np
import pytest
import scipy.sparse as sp
from cases import random_sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.fft import dct, idct
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import fenchel as fl
import fenchel.maps.gram as gram_module
from fenchel.maps import MAPS, spectral_norm
from fenchel.testing import check_map

rng = np.random.default_rng(0)
low_rank = rng.standard_normal((7, 2)) @ rng.standard_normal((2, 5))
path = np.column_stack([np.arange(9), np.arange(1, 10)])
rise = LinearOperator((6, 7), matvec=np.diff, rmatvec=lambda u: -np.diff(u, prepend=0, append=0), dtype=float)
# (map, p); p only where the map takes any
CASES = {
    "identity": [(fl.Identity(5), None), (fl.Identity(), 4)],
    "matrix": [
        (fl.Matrix(rng.standard_normal((4, 6))), None),
        (fl.Matrix(rng.standard_normal((9, 6))), None),
        (fl.Matrix(low_rank), None),
        (fl.Matrix(np.zeros((3, 4))), None),
        (fl.Matrix(1e-8 * rng.standard_normal((4, 6))), None),
        (fl.Matrix(1e8 * low_rank), None),
        (fl.Matrix(np.diag([1.0, 0.0, 2.0])), None),
        (fl.Matrix(random_sparse((30, 40), density=0.05, rng=rng)), None),
        (fl.Matrix(rng.standard_normal((260, 300))), None),
    ],
    "incidence": [
        (fl.Incidence(path, 10), None),
        (fl.Incidence(path[:, ::-1], 10), None),
        (fl.Incidence([[0, 1], [1, 2], [2, 0], [4, 3]], 6), None),
        (fl.Incidence([[2, 1], [2, 0], [0, 1], [4, 3]], 6, [1, -2, 0.5, 0]), None),
        (fl.Incidence([[0, 1], [1, 2], [2, 0]], 3, [1, 1, -1]), None),
        (fl.Incidence([[0, 1], [0, 1]], 2), None),
        (fl.Incidence([], 3), None),
        (fl.Incidence(path, 10, 10.0 ** -np.arange(9)), None),
        (fl.Incidence(path, 10, [1, 1, 1, 1, 1e-6, 1, 1, 1, 1]), None),
    ],
    "difference": [
        (fl.Difference(8), None),
        (fl.Difference(8, 2), None),
        (fl.Difference(9, 3), None),
        (fl.Difference(1), None),
        (fl.Difference(3, 3), None),
        (fl.Difference(300), None),
        (fl.Difference(300, 2), None),
        (fl.Difference(1000, 2), None),
        (fl.Difference(200, 3), None),
    ],
    "operator": [(fl.Operator(rise), None), (fl.Operator(aslinearoperator(low_rank)), None)],
    "gradient": [
        (fl.Gradient((4, 5)), None),
        (fl.Gradient((3, 2, 4)), None),
        (fl.Gradient((1, 6)), None),
        (fl.Gradient(7), None),
        (fl.Gradient(1), None),
        (fl.Gradient((20, 20)), None),
    ],
    "copies": [(fl.Copies([0, 2, 0, 0, 3], 5), None), (fl.Copies([], 3), None)],
    "selection": [(fl.Selection([3, 0], 5), None), (fl.Selection([], 3), None)],
    "stack": [
        (fl.Stack(fl.Identity(), fl.Difference(6)), None),
        (fl.Stack(fl.Difference(6), fl.Difference(6, 2)), None),
        (fl.Stack(fl.Selection([1], 6), fl.Incidence([[5, 4], [2, 3]], 6)), None),
        (fl.Stack(fl.Identity(), fl.Identity()), 4),
    ],
}
COMPOSED = [
    (fl.Difference(5) @ fl.Difference(6), None),
    (fl.Copies([0, 0, 3], 5) @ fl.Difference(6), None),
    (fl.Matrix(low_rank.T) @ fl.Matrix(low_rank), None),
    (fl.Identity() @ fl.Selection([2, 0], 4), None),
]


def name_of(case):
    return repr(case[0])


def test_every_registered_map_has_a_case():
    assert set(CASES) == set(MAPS)
    for name, cases in CASES.items():
        assert all(type(map_) is MAPS[name] for map_, _ in cases)


@pytest.mark.parametrize("case", [case for cases in CASES.values() for case in cases] + COMPOSED, ids=name_of)
def test_laws(case):
    check_map(*case)


def test_laws_with_conjugate_gradients(monkeypatch):
    """The path that sizes above the direct limit take."""
    monkeypatch.setattr(gram_module, "_DIRECT", 5)
    check_map(fl.Incidence(np.vstack([path, [0, 9]]), 12))
    check_map(fl.Gradient((6, 7)))


@pytest.mark.parametrize("p", [2000, 40_000])
def test_a_long_chain_is_solved_to_rounding(p):
    chain = fl.Difference(p)
    r = chain.adjoint(np.sin(np.arange(p - 1.0)))
    back = chain.adjoint(chain.apply(chain.gram_solve(r)))
    assert np.abs(back - r).max() <= 1e-9 * np.abs(r).max()
    assert chain.null_space().shape == (p, 1)


def test_a_graph_of_many_parts_has_a_sparse_null_space():
    """A constant on each of 20,000 parts: as an array they would take gigabytes."""
    p = 40_000
    pairs = fl.Incidence(np.arange(p).reshape(-1, 2), p)
    blind = pairs._gram.blind
    assert blind.shape == (p, p // 2) and blind.nnz == p
    r = pairs.adjoint(np.sin(np.arange(p // 2.0)))
    v = pairs.gram_solve(r)
    assert np.abs(pairs.adjoint(pairs.apply(v)) - r).max() <= 1e-12
    assert np.abs(blind.T @ v).max() <= 1e-12


@pytest.mark.parametrize(("p", "order"), [(2000, 2), (5000, 2)])
def test_null_space_of_long_trends(p, order):
    trend = fl.Difference(p, order)
    basis = trend.null_space()
    assert basis.shape == (p, order)
    assert np.abs(trend.matrix(p) @ basis).max() < 1e-9


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(2, 9), st.data())
def test_laws_of_any_graph(p, data):
    pairs = st.tuples(st.integers(0, p - 1), st.integers(0, p - 1)).filter(lambda e: e[0] != e[1])
    edges = data.draw(st.lists(pairs, min_size=1, max_size=12))
    weights = data.draw(
        st.lists(st.sampled_from([-2.0, -1.0, 0.0, 0.5, 1.0]), min_size=len(edges), max_size=len(edges))
    )
    check_map(fl.Incidence(edges, p, weights))


@settings(derandomize=True, deadline=None, max_examples=40)
@given(st.integers(1, 6), st.integers(1, 6), st.integers(0, 6), st.integers(0, 10_000))
def test_laws_of_any_matrix(d, p, rank, seed):
    draw = np.random.default_rng(seed)
    check_map(fl.Matrix(draw.integers(-3, 4, (d, rank)) @ draw.integers(-3, 4, (rank, p))))


# -- the matrices, written down ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("map_", "matrix"),
    [
        (fl.Identity(2), [[1, 0], [0, 1]]),
        (fl.Matrix([[1, 2], [0, 3]]), [[1, 2], [0, 3]]),
        (fl.Incidence([[0, 2], [2, 1]], 3), [[1, 0, -1], [0, -1, 1]]),
        (fl.Incidence([[0, 2], [2, 1]], 3, [2, -3]), [[2, 0, -2], [0, 3, 3]]),
        (fl.Difference(3), [[-1, 1, 0], [0, -1, 1]]),
        (fl.Difference(4, 2), [[1, -2, 1, 0], [0, 1, -2, 1]]),
        (fl.Difference(2, 2), np.zeros((0, 2))),
        (fl.Gradient((2, 2)), [[-1, 0, 1, 0], [-1, 1, 0, 0], [0, -1, 0, 1], [0, 0, -1, 1]]),
        (fl.Copies([1, 1, 0], 2), [[0, 1], [0, 1], [1, 0]]),
        (fl.Selection([2, 0], 3), [[0, 0, 1], [1, 0, 0]]),
        (fl.Stack(fl.Difference(2), fl.Identity()), [[-1, 1], [1, 0], [0, 1]]),
        (fl.Difference(2) @ fl.Selection([2, 0], 3), [[1, 0, -1]]),
    ],
    ids=repr,
)
def test_matrix(map_, matrix):
    np.testing.assert_array_equal(map_.matrix(map_.p).toarray(), matrix)


def test_cells_of_a_gradient_are_the_groups_of_the_isotropic_total_variation():
    image = rng.standard_normal((4, 5))
    gradient = fl.Gradient(image.shape)
    right, down = np.diff(image, axis=1), np.diff(image, axis=0)
    square = np.zeros(image.shape)
    square[:, :-1] += right**2
    square[:-1] += down**2
    penalty = fl.GroupL2(gradient.cells, np.ones(len(gradient.cells)))
    assert penalty.value(gradient.apply(image.ravel())) == pytest.approx(np.sqrt(square).sum())
    assert len(gradient.cells) == 19
    assert fl.Gradient(1).cells == []


def test_a_map_is_not_changed_by_its_use():
    edges = np.array([[0, 1], [3, 2]])
    map_ = fl.Incidence(edges, 4)
    before = map_.apply(np.arange(4.0)).copy()
    map_.norm()
    map_.null_space()
    abs(map_.matrix(4)).sum_duplicates()
    np.testing.assert_array_equal(map_.apply(np.arange(4.0)), before)
    np.testing.assert_array_equal(edges, [[0, 1], [3, 2]])
    given_matrix = sp.csr_array((np.array([1.0, 2.0]), np.array([1, 0]), np.array([0, 2])), shape=(1, 2))
    map_ = fl.Matrix(given_matrix)
    map_.norm()
    np.testing.assert_array_equal(map_.apply(np.array([1.0, 10.0])), [12.0])
    np.testing.assert_array_equal(given_matrix.indices, [1, 0])


@pytest.mark.parametrize("shape", [(300, 400), (400, 300), (900, 250)])
def test_spectral_norm_of_a_large_matrix(shape):
    draw = np.random.default_rng(1)
    for matrix in (draw.standard_normal(shape), random_sparse(shape, density=0.02, rng=draw)):
        exact = np.linalg.norm(matrix.toarray() if sp.issparse(matrix) else matrix, 2)
        assert exact * (1 - 1e-12) <= spectral_norm(matrix) <= 1.015 * exact


def test_spectral_norm_where_the_top_is_crowded():
    """Lanczos has to work for its last digits here, and must not stay below."""
    for map_ in (fl.Difference(3000, 2), fl.Gradient((60, 60)), fl.Gradient((15, 15, 15))):
        matrix = map_.matrix(map_.p)
        top = 4.0 if isinstance(map_, fl.Difference) else fl.Gradient.norm(map_)
        assert 0.999 * top <= spectral_norm(matrix) <= 1.015 * top
        assert map_.norm() <= 1.015 * top


def test_a_map_without_a_size():
    assert fl.Identity().apply([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert fl.Identity().norm() == 1.0
    with pytest.raises(ValueError, match="takes any number of features"):
        fl.Identity().adjoint([1.0])
    with pytest.raises(ValueError, match="p is needed"):
        check_map(fl.Identity())
    assert fl.Stack(fl.Identity(), fl.Identity()).p is None


# -- bad input --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fl.Identity(0), "p is 0; it must be a whole number, at least 1"),
        (lambda: fl.Identity(2.5), "p is 2.5"),
        (lambda: fl.Identity(True), "p is True"),
        (lambda: fl.Identity("3"), "p is '3'"),
        (lambda: fl.Identity(np.nan), "p is nan"),
        (lambda: fl.Identity(np.inf), "p is inf"),
        (lambda: fl.Matrix([[1, np.nan], [0, 1]]), r"M\[0, 1\] is nan; M must be finite"),
        (lambda: fl.Matrix(sp.csr_array([[0, 1], [0, 0], [-np.inf, 0]])), r"M\[2, 0\] is -inf; M must be finite"),
        (lambda: fl.Matrix(np.array([[1, None]])), "M has dtype object"),
        (lambda: fl.Matrix(np.ones(3)), r"M has dtype float64 and shape \(3,\)"),
        (lambda: fl.Matrix([["a"]]), "M has dtype <U1"),
        (lambda: fl.Matrix([[1 + 1j]]), "M has dtype complex128"),
        (lambda: fl.Matrix(sp.csr_array([[1 + 1j]])), "M has dtype complex128"),
        (lambda: fl.Matrix(sp.coo_array(np.ones(3))), "M has .*shape"),
        (lambda: fl.Incidence([[0, 1], [1, 5]], 3), r"edges\[1, 1\] is 5; features are numbered 0 to 2"),
        (lambda: fl.Incidence([[0, 1], [-1, 2]], 3), r"edges\[1, 0\] is -1; features are numbered 0 to 2"),
        (lambda: fl.Incidence([[0, 1], [2, 2]], 3), r"edges\[1\] joins feature 2 to itself"),
        (lambda: fl.Incidence([[0, 1, 2]], 3), r"edges has shape \(1, 3\); it must be \(number of edges, 2\)"),
        (lambda: fl.Incidence([0, 1], 3), r"edges has shape \(2,\)"),
        (lambda: fl.Incidence([[0, 1.5]], 3), "edges has dtype float64; it must hold whole numbers"),
        (lambda: fl.Incidence([[0, np.nan]], 3), "edges has dtype float64; it must hold whole numbers"),
        (lambda: fl.Incidence([["a", "b"]], 3), "edges has dtype <U1"),
        (lambda: fl.Incidence([[0, 1]], 3, [1, 2]), "weights has 2 entries; expected 1"),
        (lambda: fl.Incidence([[0, 1], [1, 2]], 3, [1, np.nan]), r"weights\[1\] is nan; it must be finite"),
        (lambda: fl.Incidence([[0, 1]], 0), "p is 0"),
        (lambda: fl.Difference(0), "p is 0"),
        (lambda: fl.Difference(5, 0), "order is 0"),
        (lambda: fl.Difference(5, 1.5), "order is 1.5"),
        (lambda: fl.Difference(None), "p is None"),
        (lambda: fl.Gradient((3, 0)), "shape is 0"),
        (lambda: fl.Gradient((3, -1)), "shape is -1"),
        (lambda: fl.Gradient((2.5, 3)), "shape is 2.5"),
        (lambda: fl.Gradient([[2, 3]]), "shape"),
        (lambda: fl.Copies([0, 3], 3), r"index\[1\] is 3; features are numbered 0 to 2"),
        (lambda: fl.Selection([0, 1, 0], 3), "index names feature 0 twice; use Copies for overlap"),
        (lambda: fl.Selection([-1], 3), r"index\[0\] is -1"),
        (lambda: fl.Stack(), "Stack needs at least one map"),
        (lambda: fl.Stack(fl.Identity(2), fl.Identity(3)), r"different numbers of features: \[2, 3\]"),
        (lambda: fl.Difference(4).matrix(5), "Difference acts on 4 features, but there are 5"),
        (lambda: (fl.Difference(5) @ fl.Difference(5)).matrix(5), "Difference acts on 5 features, but there are 4"),
    ],
)
@pytest.mark.filterwarnings("error")
def test_bad_input(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_what_cannot_be_composed():
    with pytest.raises(TypeError):
        fl.Identity(3) @ 2


# -- a map of one's own -----------------------------------------------------------------------------


class Sums(fl.Map):
    """Sums of neighbours."""

    def __init__(self, p):
        self.p = p

    def _matrix(self, p):
        return sp.csr_array(sp.diags_array([np.ones(p - 1), np.ones(p - 1)], offsets=[0, 1], shape=(p - 1, p)))


def test_own_map_passes_the_checks_and_solves():
    check_map(Sums(7))
    X = rng.standard_normal((40, 5))
    y = X @ [1.0, -1.0, 1.0, -1.0, 0.0]
    dense = fl.Matrix(Sums(5).matrix(5).toarray())
    mine, built_in = (
        fl.solve(fl.Problem(X, y, loss="squared", penalty=fl.L1() @ map_, alpha=0.1), tol=1e-9)
        for map_ in (Sums(5), dense)
    )
    assert mine.relative_gap <= 1e-9
    np.testing.assert_allclose(mine.coef, built_in.coef, atol=1e-4)


# -- the checks find what is wrong ------------------------------------------------------------------


def wrong(**methods):
    return type("Wrong", (fl.Difference,), methods)(6)


WRONG = {
    "adjoint of the wrong sign": (wrong(adjoint=lambda self, u: -fl.Difference.adjoint(self, u)), "adjoint"),
    "apply not linear": (wrong(apply=lambda self, w: np.abs(np.diff(w))), "linear"),
    "apply is another matrix": (wrong(apply=lambda self, w: -np.diff(w)), "apply is the matrix"),
    "norm too small": (wrong(norm=lambda self: 1.9), "upper bound"),
    "norm too large": (wrong(norm=lambda self: 2.0), "tight"),
    "null space forgotten": (wrong(null_space=lambda self: np.zeros((6, 0))), "null space is complete"),
    "null space not normed": (wrong(null_space=lambda self: np.ones((6, 1))), "orthonormal"),
    "null space seen": (wrong(null_space=lambda self: np.eye(6)[:, :1]), "does not see its null space"),
    "solve off": (wrong(gram_solve=lambda self, r: 1.001 * fl.Difference.gram_solve(self, r)), "solves B B' v = r"),
    "solve not least": (wrong(gram_solve=lambda self, r: 1 + fl.Difference.gram_solve(self, r)), "least norm"),
    "any size": (wrong(matrix=lambda self, p: fl.Difference(6).matrix(6)), "wrong number of features is refused"),
}


@pytest.mark.parametrize("name", WRONG)
def test_check_map_names_the_broken_law(name):
    map_, law = WRONG[name]
    with pytest.raises(AssertionError, match=f"Wrong breaks the law .*({law})"):
        check_map(map_)


def test_null_vectors_where_the_iteration_for_them_fails(monkeypatch):
    """A long cycle: constants are all that its differences do not see."""
    from scipy.sparse.linalg import ArpackNoConvergence

    from fenchel.maps import gram

    size = 450
    cycle = sp.csr_array(sp.eye_array(size) - sp.csr_array(np.roll(np.eye(size), 1, axis=1)))
    found = gram._null_of_part(cycle)

    def fail(*args, **options):
        raise ArpackNoConvergence("no convergence", np.zeros(0), np.zeros((size, 0)))

    monkeypatch.setattr(gram.sla, "eigsh", fail)
    other = gram._null_of_part(cycle)
    assert found.shape == other.shape == (1, size)
    assert np.allclose(np.abs(other), 1 / np.sqrt(size)) and np.allclose(np.abs(found), np.abs(other))


# -- operators --------------------------------------------------------------------------------------


def cosine(p):
    """The orthonormal cosine transform: dense, and known by its products alone."""
    return LinearOperator(
        (p, p), matvec=lambda w: dct(np.ravel(w), norm="ortho"), rmatvec=lambda u: idct(np.ravel(u), norm="ortho"),
        dtype=float,
    )  # fmt: skip


def test_products_alone_give_norm_and_solves():
    """A running mean, of which no matrix is read before a problem asks."""
    size = 3_000
    mean = LinearOperator(
        (size - 1, size), matvec=lambda w: 0.5 * (w[1:] + w[:-1]) + w[1:],
        rmatvec=lambda u: np.append(0.0, 1.5 * u) + np.append(0.5 * u, 0.0), dtype=float,
    )  # fmt: skip
    operator = fl.Operator(mean)
    assert operator.norm() == pytest.approx(2.0, rel=1e-2) and operator.norm() >= 2.0 - 1e-3
    r = operator.adjoint(np.random.default_rng(0).standard_normal(size - 1))
    v = operator.gram_solve(r)
    assert np.linalg.norm(operator.adjoint(operator.apply(v)) - r) <= 1e-9 * np.linalg.norm(r)
    assert "_values" not in vars(operator)
    with pytest.raises(ValueError, match="no certificate could be made"):
        fl.Operator(rise).gram_solve(np.ones(7))


def test_an_operator_is_the_matrix_of_its_products():
    assert np.allclose(fl.Operator(cosine(16)).matrix(16).toarray(), dct(np.eye(16), axis=0, norm="ortho"), atol=1e-15)
    assert (fl.Operator(rise).matrix(7) != fl.Difference(7).matrix(7)).nnz == 0
    assert fl.Operator(cosine(16)).norm() == pytest.approx(1.0, rel=1e-2)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_a_penalty_behind_an_operator_is_proven(loss):
    """Smooth signals have few frequencies: l1 of the transform, written as penalty @ operator."""
    own = np.random.default_rng(3)
    X = own.standard_normal((60, 16))
    score = X @ np.cos(np.arange(16) / 5.0)
    y = score if loss == "squared" else np.sign(score)
    given = {"loss": loss, "alpha": 0.05, "fit_intercept": True}
    by_products = fl.solve(fl.Problem(X, y, penalty=fl.L1() @ cosine(16), **given), tol=1e-8)
    by_matrix = fl.solve(fl.Problem(X, y, penalty=fl.L1() @ dct(np.eye(16), axis=0, norm="ortho"), **given), tol=1e-8)
    assert by_products.status is fl.Status.CONVERGED
    assert by_products.primal == pytest.approx(by_matrix.primal, rel=1e-7)


class ByHand:
    """Not SciPy's, but with the same methods."""

    shape = (3, 4)

    def matvec(self, w):
        return np.diff(w)

    def rmatvec(self, u):
        return -np.diff(u, prepend=0, append=0)


@pytest.mark.parametrize("shape", [(1, 1), (3, 1), (1, 6), (2, 5), (6, 2), (4, 4)])
@pytest.mark.parametrize("kind", ["zero", "rank 1", "full"])
def test_the_norm_of_a_small_operator(shape, kind):
    matrix = np.random.default_rng(1).standard_normal(shape) * (kind != "zero")
    if kind == "rank 1":
        matrix[:] = matrix[0]
    norm = fl.Operator(aslinearoperator(matrix)).norm()
    assert np.linalg.norm(matrix, 2) <= norm * (1 + 1e-12) and norm <= 1.01 * np.linalg.norm(matrix, 2)


def test_any_object_with_the_two_products():
    assert np.array_equal(fl.Operator(ByHand()).matrix(4).toarray(), fl.Difference(4).matrix(4).toarray())
    assert repr(fl.L1() @ ByHand()) == "(L1()) @ Operator(3, 4)"


@pytest.mark.parametrize(
    ("operator", "message"),
    [
        (LinearOperator((3, 4), matvec=np.diff, dtype=float), "no rmatvec"),
        (LinearOperator((4, 4), matvec=np.cumsum, rmatvec=np.cumsum, dtype=float), "not the adjoint of its matvec"),
        (LinearOperator((2, 2), matvec=lambda w: 1j * w, rmatvec=lambda w: w, dtype=complex), "must be real"),
        (LinearOperator((2, 2), matvec=lambda w: w / 0.0, rmatvec=lambda w: w, dtype=float), "adjoint|gives"),
        (LinearOperator((2, 2), matvec=lambda w: w + 1, rmatvec=lambda w: w, dtype=float), "adjoint"),
        (np.diff, "has no shape and no matvec"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operators_of_which_nothing_can_be_proven(operator, message):
    with pytest.raises(ValueError, match=message):
        fl.Operator(operator)


def test_an_operator_with_too_many_entries(monkeypatch):
    monkeypatch.setattr("fenchel.maps.operators.SPACE", 12_000)  # bytes
    with pytest.raises(ValueError, match=r"more than 1,000 entries .* in 16 of 64 features"):
        fl.Problem(np.eye(64), np.ones(64), loss="squared", penalty=fl.L1() @ cosine(64))


def test_the_size_of_a_full_operator_is_told(recwarn):
    """A square one gives the features other coordinates, and a small one costs nothing."""
    full = cosine(401)
    low = LinearOperator(
        (300, 401), matvec=lambda w: full.matvec(w)[:300], rmatvec=lambda u: full.rmatvec(np.append(u, np.zeros(101)))
    )
    fl.Operator(low).matrix(401)
    assert "of 300 x 401 (1 MiB): a fit works with all of them" in str(recwarn.pop(UserWarning).message)
    fl.Operator(full).matrix(401)
    fl.Operator(cosine(16)).matrix(16)
    assert not recwarn


@pytest.mark.parametrize("shape", [(410, 410), (300, 500)])
def test_zeros_of_full_maps_are_exact_without_a_band(shape, monkeypatch):
    """A band as wide as the matrix took the cube of it in memory that was made anew for every diagonal."""
    from fenchel.penalties import snapping

    monkeypatch.setattr(snapping, "_by_band", None)
    rng = np.random.default_rng(0)
    problem = fl.Problem(
        rng.standard_normal((5, shape[1])), rng.standard_normal(5), loss="squared",
        penalty=fl.L1() @ fl.Matrix(rng.standard_normal(shape)),
    )  # fmt: skip
    w = rng.standard_normal(problem.size)
    u = problem.penalised(w)
    zero = rng.permutation(problem.d)[: shape[1] // 3]
    u[zero] = 0.0
    snapped = list(problem.snaps(w, u))[-1]
    assert np.abs(problem.penalised(snapped)[zero]).max() <= 1e-12 * np.abs(u).max()
    assert np.linalg.norm(snapped - w) < np.linalg.norm(w)
