"""Certificates from sums: true bounds, whatever the point."""

import numpy as np
import pytest
import scipy.sparse as sp
from cases import OVERLAP, P, data, losses, penalties, random_sparse, targets

import fenchel as fl
from fenchel.data.partitions import partitioned
from fenchel.data.pools import Inline
from fenchel.problem.looks import GRID

SMOOTH = {name: loss for name, loss in losses().items() if not loss.kinked}
KINKED = {name: loss for name, loss in losses().items() if loss.kinked}


@pytest.fixture
def anew(monkeypatch):
    """Rows that no driver can hold: every round reads them."""
    import fenchel.problem.pooled as module

    monkeypatch.setattr(module, "SPACE", 1.0)
    monkeypatch.setattr(module, "FEWEST", 500)


def both(loss, penalty, alpha, *, n=300, intercept=False, weighted=True, sparse=False, **more):
    X, y, weight = data(loss, n=n, sparse=sparse, weighted=weighted)
    settings = {"loss": loss, "penalty": penalty, "alpha": alpha, "fit_intercept": intercept}
    pooled = fl.Problem(Inline(partitioned(X, y, weight, rows=70)), **settings, **more)
    return pooled, fl.Problem(X, y, sample_weight=weight, **settings)


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("intercept", [False, True])
def test_bounds_of_any_point_hold_and_are_those_of_the_rows_in_memory(name, intercept):
    pooled, memory = both(SMOOTH[name], fl.L1() + 0.3 * fl.Ridge(), 0.05, intercept=intercept)
    best = fl.solve(memory, tol=1e-10)
    rng = np.random.default_rng(1)
    for size in (0.0, 0.1, 1.0):
        w = pooled.pack(best.coef, best.intercept)
        w[pooled.feature_slots] += size * 0.3 * rng.standard_normal(P)
        state = {"w": w, "y": pooled.n * 0.01 * rng.standard_normal(pooled.d)}
        made, known = pooled.certificate(state), memory.certificate(state)
        assert made.primal == pytest.approx(known.primal, rel=1e-12)
        assert made.dual <= best.primal * (1 + 1e-12) + 1e-12
        if not intercept:  # otherwise slopes are balanced in another way
            assert made.dual <= known.dual + 1e-9 * abs(known.primal)


@pytest.mark.parametrize("name", SMOOTH)
def test_chords_lie_above_the_conjugate(name):
    loss = SMOOTH[name]
    pooled, memory = both(loss, fl.L1(), 0.05)
    w = np.append(np.random.default_rng(2).standard_normal(P), 0.0)
    slopes = pooled.look(w).slopes
    x = memory.slopes_at(memory.scores(w))
    for tau in (*GRID, 0.2, 0.7, 0.95, 0.9995):
        true = memory.n * memory.mean_conjugate(x, tau)
        assert slopes.conjugate(tau) >= true - 1e-10 * max(abs(true), 1.0)
        if tau in GRID:
            assert slopes.conjugate(tau) == pytest.approx(true, rel=1e-10, abs=1e-8)
    assert np.allclose(pooled.gradient_sum(slopes), memory.gradient_sum(x), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", [*SMOOTH, *KINKED])
def test_rows_that_all_fit_are_read_a_few_times_alone(name):
    loss = losses()[name]
    pooled, memory = both(loss, fl.FusedLasso(), 0.03, n=600, intercept=True)
    found, known = fl.solve(pooled), fl.solve(memory, tol=1e-9)
    assert found.status is fl.Status.CONVERGED
    assert found.dual <= known.primal * (1 + 1e-10) and found.primal >= known.dual * (1 - 1e-10)
    assert found.epochs <= 6  # facts, the sample, the answer; and what rounding asks for
    path = fl.path(pooled, n_alphas=4)
    assert path.converged.all()


@pytest.mark.parametrize("name", penalties())
def test_every_penalty_is_solved_and_certified(name):
    penalty, alpha = penalties()[name]
    pooled, memory = both(fl.Huber(0.5), penalty, alpha, n=400, intercept=True)
    found, known = fl.solve(pooled, tol=1e-8), fl.solve(memory, tol=1e-9)
    assert found.status is fl.Status.CONVERGED
    assert found.dual <= known.primal * (1 + 1e-10) and found.primal >= known.dual * (1 - 1e-10)
    assert found.epochs <= 60
    # exact zeros stay exact
    assert np.array_equal(found.coef == 0, np.isclose(found.coef, 0, atol=0))


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("heavy", [False, True])
def test_every_smooth_loss_takes_few_rounds(anew, name, heavy):
    loss, rng, n, p = SMOOTH[name], np.random.default_rng(0), 6000, 40
    X = rng.standard_normal((n, p))
    w = np.where(rng.random(p) < 0.3, rng.standard_normal(p), 0.0)
    score = X @ w
    if heavy:
        X = X * np.exp(rng.uniform(-2, 2, p)) * np.maximum(1.0, np.abs(rng.standard_t(2, size=(n, 1))))
    y = targets(loss, score, rng)
    order = np.argsort(y, kind="stable")  # no partition has seen both labels
    penalty = fl.GroupLasso([list(range(k, min(k + 6, p))) for k in range(0, p, 4)])
    problem = fl.Problem(
        Inline(partitioned(X[order], y[order], rows=500)), loss=loss, penalty=penalty, alpha=0.01, fit_intercept=True
    )
    result = fl.solve(problem)
    assert result.status is fl.Status.CONVERGED and result.epochs <= 60


@pytest.mark.parametrize("name", KINKED)
@pytest.mark.parametrize("penalty", [fl.L1(), fl.TrendFilter(), fl.GroupL2(OVERLAP)], ids=["l1", "trend", "groups"])
def test_losses_with_kinks_are_certified(monkeypatch, name, penalty):
    import fenchel.problem.pooled as module

    monkeypatch.setattr(module, "SPACE", 1.0)
    monkeypatch.setattr(module, "FEWEST", 200)
    for intercept, sparse in ((True, False), (False, True)):
        pooled, memory = both(KINKED[name], penalty, 0.03, intercept=intercept, sparse=sparse)
        found, known = fl.solve(pooled), fl.solve(memory, tol=1e-9)
        assert found.status is fl.Status.CONVERGED and found.epochs <= 120
        assert found.dual <= known.primal * (1 + 1e-10) and found.primal >= known.dual * (1 - 1e-10)


def test_losses_with_kinks_go_the_same_way_whoever_holds_the_rows():
    X, y, weight = data(fl.Hinge(), n=900, weighted=True)
    parts = partitioned(X, y, weight, rows=100)
    settings = {"loss": "hinge", "penalty": fl.L1(), "alpha": 0.02, "fit_intercept": True}
    one, other = (fl.solve(fl.Problem(Inline(order), **settings)) for order in (parts, parts[::-1]))
    assert one.coef.tobytes() == other.coef.tobytes() and one.status is fl.Status.CONVERGED


def test_several_outputs_of_a_loss_with_kinks_and_a_path():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 8))
    y = X @ (rng.standard_normal((3, 8)) * (rng.random(8) < 0.5)).T + rng.standard_normal((900, 3)) + 50
    settings = {"loss": fl.Quantile(0.3), "penalty": fl.MultiTaskLasso(3), "fit_intercept": True}
    pooled, memory = fl.Problem(Inline(partitioned(X, y, rows=100)), **settings), fl.Problem(X, y, **settings)
    largest = pooled.alpha_max()
    assert largest >= memory.alpha_max() * (1 - 1e-3)
    one, other = (fl.path(problem, alphas=largest * np.array([0.5, 0.1])) for problem in (pooled, memory))
    assert one.converged.all() and np.allclose(one.primals, other.primals, rtol=3e-6)
    assert not fl.solve(pooled.with_alpha(1.01 * largest)).coef.any()


@pytest.mark.parametrize("outputs", [1, 3])
def test_several_outputs_and_tasks(outputs):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 8))
    w = rng.standard_normal((3, 8)) * (rng.random(8) < 0.5)
    settings = {"loss": "squared", "penalty": fl.MultiTaskLasso(3), "alpha": 0.05, "fit_intercept": True}
    if outputs == 3:
        y, task = X @ w.T + 0.1 * rng.standard_normal((900, 3)), None
    else:
        task = rng.integers(0, 3, 900)
        y = (X * w[task]).sum(axis=1) + 0.1 * rng.standard_normal(900)
    pooled = fl.Problem(Inline(partitioned(X, y, task=task, rows=100)), **settings)
    found, known = fl.solve(pooled, tol=1e-8), fl.solve(fl.Problem(X, y, task=task, **settings), tol=1e-9)
    assert found.status is fl.Status.CONVERGED and found.coef.shape == (3, 8)
    assert found.primal == pytest.approx(known.primal, rel=2e-8)


def test_offsets_are_added_to_the_scores():
    rng = np.random.default_rng(0)
    X, offset = rng.standard_normal((2000, 6)), rng.standard_normal(2000)
    y = rng.poisson(np.exp(0.3 * X[:, 0] + offset)).astype(float)
    settings = {"loss": "poisson", "penalty": fl.L1(), "alpha": 0.01, "fit_intercept": True}
    pooled = fl.Problem(Inline(partitioned(X, y, offset=offset, rows=300)), **settings)
    found, known = fl.solve(pooled, tol=1e-8), fl.solve(fl.Problem(X, y, offset=offset, **settings), tol=1e-9)
    assert found.relative_gap <= 1e-8
    assert found.primal == pytest.approx(known.primal, rel=2e-8)


def classes_of(n, sparse, seed=0):
    """Rows of three classes, and their weights."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, P)) * (rng.random((n, P)) < 0.5)
    W = rng.standard_normal((3, P)) * (rng.random((3, P)) < 0.4)
    y = (X @ W.T + rng.gumbel(size=(n, 3)) + [0.0, 0.3, 0.6]).argmax(axis=1).astype(float)
    return (sp.csr_array(X) if sparse else X), y, rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("kind", ["within", "across", "chain"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("held", [False, True])
def test_several_classes_together(monkeypatch, kind, sparse, held):
    import fenchel.problem.pooled as module

    if not held:
        monkeypatch.setattr(module, "SPACE", 1.0)
        monkeypatch.setattr(module, "FEWEST", 600)
    X, y, weight = classes_of(2000, sparse)
    penalty = {
        "within": fl.PerOutput(fl.L1(), 3), "across": fl.MultiTaskLasso(3) + 0.1 * fl.Ridge(),
        "chain": fl.FusedLasso().for_outputs(3, P),
    }[kind]  # fmt: skip
    for intercept in (False, True):
        settings = {"loss": "multinomial", "penalty": penalty, "alpha": 0.01, "fit_intercept": intercept}
        parts = partitioned(X, y, weight, rows=300)
        pooled, memory = fl.Problem(Inline(parts), **settings), fl.Problem(X, y, sample_weight=weight, **settings)
        found, known = fl.solve(pooled, tol=1e-8), fl.solve(memory, tol=1e-10)
        assert found.status is fl.Status.CONVERGED and found.epochs <= (6 if held else 30)
        assert found.primal == pytest.approx(known.primal, rel=2e-8) and found.dual <= known.primal * (1 + 1e-12)
        other = fl.solve(fl.Problem(Inline(parts[::-1]), **settings), tol=1e-8)
        assert found.coef.tobytes() == other.coef.tobytes()
        assert pooled.alpha_max() == pytest.approx(memory.alpha_max(), rel=1e-6)
        rng, state = np.random.default_rng(1), {}
        for size in (0.1, 1.0):  # bounds of any point
            w = pooled.pack(known.coef, known.intercept)
            w[pooled.feature_slots] += size * rng.standard_normal(3 * P)
            state = {"w": w, "y": pooled.n * 0.01 * rng.standard_normal(pooled.d)}
            assert pooled.certificate(state).dual <= known.primal * (1 + 1e-12)


def test_class_numbers_of_several_classes_are_checked():
    X, y, _ = classes_of(300, False)
    settings = {"loss": "multinomial", "penalty": fl.PerOutput(fl.L1(), 3), "alpha": 0.01}
    with pytest.raises(ValueError, match="takes class numbers 0, 1, 2"):
        fl.Problem(Inline(partitioned(X, y + 1, rows=100)), **settings)
    with pytest.raises(ValueError, match="one class only"):
        fl.Problem(Inline(partitioned(X, 0 * y, rows=100)), **settings)
    shares = np.eye(3)[y.astype(int)]
    shares[205] = 0.5
    with pytest.raises(ValueError, match=r"partition 2, row 205: the target is \[0\.5, 0\.5, 0\.5\]"):
        fl.solve(fl.Problem(Inline(partitioned(X, shares, rows=100)), **settings))
    with pytest.raises(ValueError, match="has kinks, whose multipliers nobody keeps"):
        fl.Problem(Inline(partitioned(X, y, rows=100)), **settings | {"loss": "multiclass-hinge"})


def test_the_largest_alpha_and_paths():
    for penalty, intercept in ((fl.L1(), False), (fl.FusedLasso(), True), (fl.TrendFilter(), True)):
        pooled, memory = both(fl.Logistic(), penalty, 1.0, intercept=intercept, weighted=False)
        assert pooled.alpha_max() == pytest.approx(memory.alpha_max(), rel=1e-6)
    pooled, memory = both(fl.Squared(), fl.FusedLasso(), 1.0, intercept=True)
    one, other = fl.path(pooled, n_alphas=6, eps=0.01), fl.path(memory, n_alphas=6, eps=0.01)
    assert one.converged.all() and np.allclose(one.alphas, other.alphas, rtol=1e-8)
    assert np.allclose(one.primals, other.primals, rtol=3e-6)
    large = fl.solve(pooled.with_alpha(1.01 * one.alphas[0]))
    assert not large.coef.any() and large.epochs <= 3


def test_a_sample_of_few_rows_costs_rounds_alone(monkeypatch):
    import fenchel.problem.pooled as module

    monkeypatch.setattr(module, "SPACE", 1.0)
    monkeypatch.setattr(module, "FEWEST", 30)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((4000, 30))
    X[:, 3] = rng.random(4000) < 0.001  # the sample has hardly seen that one
    y = np.where(X[:, 0] + rng.standard_normal(4000) > 0, 1.0, -1.0)
    problem = fl.Problem(Inline(partitioned(X, y, rows=500)), loss="logistic", penalty=fl.L1(), alpha=0.01)
    result = fl.solve(problem)
    assert result.status is fl.Status.CONVERGED and 5 < result.epochs <= 80


def test_what_cannot_be_done_says_so():
    X, y, weight = data(fl.Logistic(), weighted=True)
    pool = Inline(partitioned(X, y, rows=10))
    wide = fl.Problem(Inline(partitioned(np.tile(X, 200), y, rows=100)), loss="hinge", penalty=fl.L1())
    with pytest.raises(ValueError, match="at most 2000"):
        fl.solve(wide)
    with pytest.raises(ValueError, match="y was given beside rows in memory"):
        fl.Problem(pool, y, loss="logistic")
    with pytest.raises(ValueError, match="y is missing"):
        fl.Problem(X, loss="logistic")
    problem = fl.Problem(pool, loss="logistic", penalty=fl.L1())
    with pytest.raises(TypeError, match="look"):
        problem.scores(np.zeros(problem.size))
    with pytest.raises(ValueError, match="with_fold"):
        problem.with_weights(weight)
    with pytest.raises(ValueError, match="labels -1 and \\+1"):
        fl.Problem(Inline(partitioned(X, (y > 0).astype(float), rows=10)), loss="logistic")
    with pytest.raises(ValueError, match="row 3: the target is -1"):
        bad = np.ones(len(y))
        bad[3] = -1.0
        fl.solve(fl.Problem(Inline(partitioned(X, bad, rows=10)), loss="poisson", penalty=fl.L1()))


def test_a_run_is_resumed_where_it_stopped(anew):
    pooled, _ = both(fl.Logistic(), fl.FusedLasso(), 0.01, n=2000, intercept=True)
    whole = fl.solve(pooled, tol=1e-8)
    part = fl.solve(pooled, tol=1e-8, max_epochs=4)
    assert part.status is fl.Status.EPOCH_LIMIT
    rest = fl.solve(pooled, tol=1e-8, warm_start=part)
    assert rest.status is fl.Status.CONVERGED and len(rest.history) > len(part.history)
    assert rest.primal == pytest.approx(whole.primal, rel=2e-8)


def test_a_checkpoint_is_gone_on_from(anew, tmp_path):
    pooled, memory = both(fl.Logistic(), fl.FusedLasso(), 0.01, n=2000, intercept=True)
    path = tmp_path / "run.npz"
    calls = []

    def die(snapshot):
        calls.append(snapshot.epoch)
        if len(calls) == 4:
            raise RuntimeError("the driver is gone")

    with pytest.raises(RuntimeError, match="driver is gone"):
        fl.solve(pooled, tol=1e-8, checkpoint=path, callback=die)
    saved = fl.Result.load(path)
    assert saved.status is fl.Status.INTERRUPTED
    X, y, weight = data(fl.Logistic(), n=2000, weighted=True)
    elsewhere = fl.Problem(
        Inline(partitioned(X, y, weight, rows=70)), loss=fl.Logistic(), penalty=fl.FusedLasso(), alpha=0.01,
        fit_intercept=True,
    )  # fmt: skip
    found = fl.solve(elsewhere, tol=1e-8, checkpoint=path)
    assert found.status is fl.Status.CONVERGED and len(found.history) > len(saved.history)
    assert fl.Result.load(path).status is fl.Status.CONVERGED
    with pytest.raises(ValueError, match="of another problem"):
        fl.solve(elsewhere.with_alpha(0.02), checkpoint=path)
    with pytest.raises(ValueError, match="rows in a pool"):
        fl.solve(memory, checkpoint=path)


@pytest.mark.parametrize("grouped", [False, True])
def test_many_features_are_worked_on_a_few_at_a_time(grouped):
    rng, n, p = np.random.default_rng(0), 3000, 6500
    X = random_sparse((n, p), 0.002, rng, format="csr")
    X.data[:] = rng.standard_normal(X.nnz)
    truth = np.where(rng.random(p) < 0.02, 3 * rng.standard_normal(p), 0.0)
    y = np.where(X @ truth + rng.logistic(size=n) > 0, 1.0, -1.0)
    penalty = fl.GroupLasso(np.arange(p).reshape(-1, 5).tolist()) + 0.1 * fl.Ridge() if grouped else fl.L1()
    settings = {"loss": "logistic", "penalty": penalty, "alpha": 3e-4, "fit_intercept": True}
    parts = partitioned(X, y, rows=700)
    found, other = (fl.solve(fl.Problem(Inline(order), **settings)) for order in (parts, parts[::-1]))
    known = fl.solve(fl.Problem(X, y, **settings), tol=1e-9)
    assert found.status is fl.Status.CONVERGED and found.epochs <= 20
    assert found.primal == pytest.approx(known.primal, rel=2e-6) and found.dual <= known.primal * (1 + 1e-12)
    assert found.coef.tobytes() == other.coef.tobytes() and np.count_nonzero(found.coef)
    with pytest.raises(ValueError, match=r"no way to solve .* combinations of features"):
        fl.solve(fl.Problem(Inline(parts), loss="logistic", penalty=fl.TrendFilter(), alpha=1e-3))


@pytest.mark.parametrize("loss", ["logistic", "poisson"])
@pytest.mark.parametrize("name", ["chain", "grid", "graph", "groups", "signs", "differences"])
def test_joined_features_are_worked_on_by_faces(monkeypatch, anew, name, loss):
    import fenchel.engine.sampled as sampled
    import fenchel.engine.sampled_faces as faces

    monkeypatch.setattr(sampled, "LARGEST", 10)  # as if these features were many
    monkeypatch.setattr(faces, "LARGEST", 10)
    penalty, p = {
        "chain": fl.FusedLasso(), "grid": fl.TotalVariation((8, 8)),
        "graph": fl.L1() + fl.L1() @ fl.Incidence([(j, (7 * j + 3) % 64) for j in range(64) if (6 * j + 3) % 64], 64),
        "groups": fl.GroupLasso([list(range(k, min(k + 6, 64))) for k in range(0, 64, 4)]) + 0.1 * fl.Ridge(),
        "signs": fl.FusedLasso() + fl.NonNegative(), "differences": fl.L1() @ fl.Difference(64),
    }[name], 64  # fmt: skip
    rng = np.random.default_rng(3)
    X = rng.standard_normal((2500, p))
    score = X @ np.repeat(0.3 * rng.standard_normal(8) * (np.arange(8) % 2), 8)
    y = targets(losses()[loss], score, rng)
    for intercept in (False, True):
        settings = {"loss": loss, "penalty": penalty, "alpha": 0.02, "fit_intercept": intercept}
        parts = partitioned(X, y, rows=500)
        found, other = (fl.solve(fl.Problem(Inline(order), **settings), tol=1e-7) for order in (parts, parts[::-1]))
        known = fl.solve(fl.Problem(X, y, **settings), tol=1e-9)
        assert found.status is fl.Status.CONVERGED and found.epochs <= 30
        assert found.primal == pytest.approx(known.primal, rel=2e-7) and found.dual <= known.primal * (1 + 1e-12)
        assert found.coef.tobytes() == other.coef.tobytes()


def test_a_loss_that_is_flat_nearly_everywhere_is_not_led_astray_by_secants():
    rng, n, p = np.random.default_rng(6), 3000, 300
    X = np.where(rng.random((n, p)) < 0.05, rng.standard_normal((n, p)), 0.0)
    y = np.where(X @ np.where(rng.random(p) < 0.05, 1.0, 0.0) + rng.logistic(size=n) > 0, 1.0, -1.0)
    problem = fl.Problem(
        Inline(partitioned(X, y, rows=1000)), loss="smoothed-hinge", penalty=fl.L1() + 0.2 * fl.Ridge(), alpha=5e-3
    )
    result = fl.solve(problem)
    assert result.status is fl.Status.CONVERGED and result.epochs <= 60


def test_a_step_goes_no_further_than_the_sample_agrees(anew):
    from fenchel.engine.parts import Answer
    from fenchel.engine.sampled import Fit, SampledModels
    from fenchel.prices import PRICES

    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 6)) * np.maximum(1.0, np.abs(rng.standard_t(2, size=(2000, 1))))
    y = rng.poisson(np.exp(np.clip(X[:, 0], -3, 2))).astype(float)
    problem = fl.Problem(Inline(partitioned(X, y, rows=500)), loss="poisson", penalty=fl.L1(), alpha=0.01)
    engine = SampledModels(PRICES)
    fit = Fit(engine, problem, None)
    view = problem.look(np.zeros(problem.size))
    fit.curvature = engine._curvature(problem)
    assert fit.curvature.rows < problem.n
    H = fit._model(view)
    far = -10.0 * view.gradient  # along which the loss grows by many powers of ten
    step = fit._shortened(view, Answer(far, problem.penalised(far), np.zeros(problem.d)), H)
    assert (X @ far[:6]).max() > 20.0 and problem.look(step.v).loss < view.loss
    near = 1e-4 * far
    answer = Answer(near, problem.penalised(near), np.zeros(problem.d))
    assert fit._shortened(view, answer, H) is answer
