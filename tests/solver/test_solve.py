"""The one loop: limits, callbacks, interrupts, warm starts, files, determinism, presets, and hard small cases."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import weakref

import cases
import numpy as np
import pytest
import scipy.sparse as sp
from reference import reference
from threadpoolctl import threadpool_limits

import fenchel as fl
from fenchel.datasets import artificial_problem
from fenchel.engine import registry
from fenchel.engine.attempts.multipliers import Multipliers
from fenchel.engine.roles import Goal, Iterate, Proposal
from fenchel.methods import SDCAADMM
from fenchel.solver.convergence import Convergence
from fenchel.solver.progress import Progress
from fenchel.solver.schedule import Schedule


@pytest.fixture
def problem():
    X, y, _ = cases.data(fl.Logistic(), n=120)
    return fl.Problem(X, y, loss="logistic", penalty=fl.GroupL2(cases.OVERLAP), alpha=0.02, fit_intercept=True)


def epochs_to(problem, tol, **options):
    """Exact number of epochs to a relative gap: a certificate after each."""
    result = fl.solve(problem, tol=tol, max_epochs=3000, check_every=1, **options)
    assert result.status is fl.Status.CONVERGED
    return result.epochs


# -- stopping ---------------------------------------------------------------------------------------


def test_converged_result_carries_its_proof(problem):
    result = fl.solve(problem, tol=1e-8)
    assert result.status is fl.Status.CONVERGED
    assert result.certified
    assert result.relative_gap <= 1e-8
    assert result.dual <= result.primal
    assert result.primal == problem.primal(result.coef, result.intercept)
    # the history's bounds only ever tighten
    assert np.all(np.diff(result.history.primal) <= 0)
    assert np.all(np.diff(result.history.dual) >= 0)
    assert result.history.epoch[-1] == result.epochs
    assert "relative gap" in repr(result)


def test_epoch_limit(problem):
    result = fl.solve(problem, tol=0, max_epochs=7)
    assert result.status is fl.Status.EPOCH_LIMIT
    assert result.epochs == 7
    assert np.isfinite(result.primal)
    for most in range(1, 8):  # attempts between epochs would take more
        assert fl.solve(problem, tol=0, max_epochs=most).epochs == most
    nothing = fl.solve(problem, max_epochs=0)
    assert nothing.status is fl.Status.EPOCH_LIMIT
    assert nothing.epochs == 0
    assert nothing.primal == pytest.approx(np.log(2))


def test_time_limit():
    X, y, _ = cases.data(fl.Logistic(), n=20_000)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.GroupL2(cases.OVERLAP), alpha=0.02, fit_intercept=True)
    result = fl.solve(problem, tol=0, max_epochs=10**9, time_limit=0.05, newton=False)  # which would find the answer
    assert result.status is fl.Status.TIME_LIMIT
    assert result.epochs >= 1


@pytest.mark.parametrize(
    "penalty", [fl.L1() + fl.L1() @ fl.Difference(cases.P), fl.GroupLinf(cases.OVERLAP), fl.GroupL2(cases.OVERLAP)]
)
def test_attempts_end_at_the_deadline(penalty):
    X, y, _ = cases.data(cases.losses()["logistic"], n=230)
    problem = fl.Problem(X, y, loss="logistic", penalty=penalty, alpha=0.02, fit_intercept=True)
    optimum = fl.solve(problem, tol=1e-8)
    spent = {}
    for deadline in (0.0, np.inf):
        method, schedule = SDCAADMM(), Schedule(problem)
        state = method.start(problem, np.random.default_rng(0))
        goal = Goal(1e-9, deadline, np.inf, Convergence.of(problem, 1e-9).allowed)
        progress, points = Progress(attempt_due=4), []
        schedule.epoch *= 1e3  # so that attempts seem cheap
        for _ in range(40):
            report = method.epoch(state)
            progress.count_epoch(report.share, report.guess)
            before = progress.attempt_passes
            found = schedule.propose(method.iterate(state), progress, goal)
            if found is not None:
                points.append(progress.attempt_passes - before)
                made = problem.certificate(found.iterate)
                assert made.dual <= optimum.primal * (1 + 1e-12)
                assert made.primal >= optimum.dual * (1 - 1e-12)
        spent[deadline] = max(points)
    assert spent[0.0] <= 5 < spent[np.inf]


def test_the_method_of_multipliers_ends_at_the_deadline():
    X, y, _ = cases.data(cases.losses()["hinge"], n=230)
    problem = fl.Problem(X, y, loss="hinge", penalty=fl.GroupL2(cases.OVERLAP), alpha=0.02)
    method, start = Multipliers(problem), [np.zeros(size) for size in (problem.size, problem.visits, problem.d)]
    assert method.run(*start, tol=1e-6, steps=100).passes > 10
    method.deadline = 0.0
    point = method.run(*start, tol=1e-6, steps=100)
    assert point.passes == 1.0
    assert point.primal == pytest.approx(problem.primal_at(point.w))


def test_callback_sees_the_iterate_and_can_stop(problem):
    seen = []

    def stop_at_third(snapshot):
        seen.append(snapshot)
        return len(seen) == 3

    result = fl.solve(problem, tol=0, callback=stop_at_third, check_every=2, newton=False)
    assert result.status is fl.Status.CALLBACK
    assert [s.epoch for s in seen] == [0, 2, 4]
    for snapshot in seen:
        assert problem.primal(snapshot.coef, snapshot.intercept) == pytest.approx(snapshot.current, rel=1e-13)
        assert snapshot.gap >= 0


def test_progress_on_request(problem, capsys):
    fl.solve(problem, tol=1e-4)
    assert capsys.readouterr() == ("", "")
    result = fl.solve(problem, tol=1e-4, progress=True)
    shown = capsys.readouterr().err.splitlines()  # where nobody looks on: a line a minute, and the last one
    assert 1 <= len(shown) <= len(result.history)
    assert f"epoch {result.epochs:5d}" in shown[-1]
    assert f"relative gap {result.history[-1].relative_gap:.2e}" in shown[-1]


def test_progress_in_a_terminal(problem):
    """A live line in a real pseudo-terminal, gone when the solve is over."""
    import pty

    code = (
        "import fenchel as fl, numpy as np; X = np.random.default_rng(0).standard_normal((300, 40));"
        "fl.solve(fl.Problem(X, X[:, 0], loss='squared', penalty=fl.L1(), alpha=0.1), tol=1e-9, progress=True)"
    )
    master, slave = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "120"}
    with subprocess.Popen([sys.executable, "-c", code], stderr=slave, stdout=slave, env=environment) as process:
        os.close(slave)
        seen = b""
        while True:
            try:
                part = os.read(master, 4096)
            except OSError:
                break
            if not part:
                break
            seen += part
        assert process.wait() == 0
    assert b"relative gap" in seen and b"goal" in seen
    assert b"\x1b[2K" in seen  # the line is erased at the end


def test_stalls_at_rounding_instead_of_running_on(problem):
    result = fl.solve(problem, tol=0, max_epochs=100_000)
    assert result.status in (fl.Status.STALLED, fl.Status.CONVERGED)
    assert result.relative_gap < 1e-12


def hear_interrupts():
    """A shell starts background jobs deaf to them, and what they start inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_that_python_swallows_is_not_lost(problem):
    before = signal.signal(signal.SIGINT, signal.default_int_handler)

    class Swallows:
        def __del__(self):
            signal.raise_signal(signal.SIGINT)  # an exception in a destructor is printed and forgotten

    def callback(snapshot):
        if snapshot.epoch == 5:
            Swallows()

    result = fl.solve(problem, tol=0, max_epochs=200, callback=callback, check_every=5, newton=False)
    assert result.status is fl.Status.INTERRUPTED
    assert result.epochs == 5
    assert signal.signal(signal.SIGINT, before) is signal.default_int_handler


def test_interrupt_returns_the_best_answer(tmp_path):
    """A real SIGINT to a real process in the middle of a long solve."""
    script = tmp_path / "long.py"
    script.write_text(
        textwrap.dedent(
            """
            import fenchel as fl, numpy as np, time
            rng = np.random.default_rng(0)
            X = rng.standard_normal((400, 60)); y = np.sign(X[:, 0] + rng.standard_normal(400))
            problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), alpha=0.01)
            fl.solve(problem, max_epochs=3)
            def started(snapshot):
                if snapshot.epoch == 5:
                    print("started", flush=True)
                time.sleep(0.05)  # long enough for the signal to find it at work
            result = fl.solve(problem, tol=0, max_epochs=10**9, callback=started, check_every=5, newton=False)
            print(result.status.name, result.epochs > 0, np.isfinite(result.primal), flush=True)
            """
        )
    )
    command = [sys.executable, str(script)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=hear_interrupts) as process:
        assert process.stdout.readline().strip() == "started"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.readline().strip() == "INTERRUPTED True True"
        assert process.wait() == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tol": -1}, "tol is -1"),
        ({"tol": float("nan")}, "tol is nan"),
        ({"tol": "small"}, "tol is 'small'"),
        ({"max_epochs": float("inf")}, "max_epochs is inf"),
        ({"time_limit": "1 s"}, "time_limit is '1 s'"),
        ({"callback": 3}, "callback is 3"),
        ({"rho": "auto"}, "rho is 'auto'"),
        ({"block_size": float("nan")}, "block_size is nan"),
        ({"max_epochs": -2}, "max_epochs is -2"),
        ({"time_limit": -1}, "time_limit is -1"),
        ({"check_every": 0}, "check_every is 0"),
        ({"method": "newton"}, "method is 'newton'; known methods: auto, sdca-admm"),
        ({"stepsize": 1}, "no option 'stepsize'"),
        ({"rho": 0}, "rho is 0"),
        ({"gamma": -1}, "gamma is -1"),
        ({"block_size": 0}, "block_size is 0"),
        ({"block_size": 2.5}, "block_size is 2.5"),
        ({"order": "sorted"}, "order is 'sorted'"),
        ({"within": "both"}, "within is 'both'"),
        ({"preset": "fast"}, "preset is 'fast'"),
        ({"column_power": 2}, "column_power is 2"),
        ({"eta_b": 0.5}, "eta_b is 0.5; it must exceed"),
        ({"warm_start": 3}, "warm_start is int"),
    ],
)
def test_bad_arguments(problem, options, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        fl.solve(problem, **options)


def test_warm_start_of_another_shape(problem):
    X, y, _ = cases.data(fl.Logistic(), n=30)
    other = fl.solve(fl.Problem(X, y, loss="logistic", penalty=fl.L1()), max_epochs=3)
    with pytest.raises(ValueError, match="warm_start has 30 entries in x, but this problem has 120"):
        fl.solve(problem, warm_start=other)


# -- determinism, resuming, warm starts -------------------------------------------------------------


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("newton", [False, True])
def test_same_seed_same_bits(loss, sparse, newton):
    X, y, _ = cases.data(fl.Logistic(), n=230, sparse=sparse)
    problem = fl.Problem(X, y, loss=loss, penalty=fl.L1(), alpha=0.02, fit_intercept=True)
    first, second = (fl.solve(problem, tol=1e-7, random_state=3, newton=newton) for _ in range(2))
    assert np.array_equal(first.coef, second.coef)
    assert first.intercept == second.intercept
    assert np.array_equal(first.history.dual, second.history.dual)
    if first.state["epoch"] == 0:  # Newton's method draws nothing
        return
    other = fl.solve(problem, tol=1e-7, random_state=4, newton=newton)
    assert not np.array_equal(first.state["x"], other.state["x"])


@pytest.mark.parametrize("penalty", [fl.L1(), fl.L1() @ fl.Difference(cases.P), fl.GroupL2(cases.OVERLAP)], ids=repr)
def test_resumed_at_any_epoch(penalty, monkeypatch):
    """Also where an attempt between epochs was due, or had just been made."""
    if not isinstance(penalty, fl.L1):
        monkeypatch.setattr(registry, "ENGINES", [])  # epochs and attempts alone
    X, y, _ = cases.data(cases.losses()["smoothed-hinge"], n=230, sparse=True)
    problem = fl.Problem(X, y, loss="smoothed-hinge", penalty=penalty, alpha=0.01, fit_intercept=True)
    with threadpool_limits(1):  # several threads of the linear algebra do not always add up in one order
        # rounds of an engine begin anew where the run was, which is another way
        options = {"newton": False} if isinstance(penalty, fl.L1) else {}
        whole = fl.solve(problem, tol=0, max_epochs=200, **options)
        compared = 0
        for stop in range(8, 40):
            part = fl.solve(problem, tol=0, max_epochs=stop, **options)
            resumed = fl.solve(problem, tol=0, max_epochs=200 - part.epochs, warm_start=part, **options)
            if resumed.gap == 0 < whole.gap:  # the certificate at the stop, to the last bit: nothing is left to do
                assert resumed.status is fl.Status.CONVERGED
                continue
            compared += 1
            assert resumed.epochs == whole.epochs, stop
            for key in ("x", "y", "w", "zx"):
                assert np.array_equal(resumed.state[key], whole.state[key]), (stop, key)
        assert compared > 20


@pytest.mark.parametrize("name", cases.penalties())
def test_a_problem_is_freed_at_once(name):
    """No cycle of references keeps data, and copies of it, until somebody collects garbage."""
    penalty, alpha = cases.penalties()[name]
    X, y, _ = cases.data(cases.losses()["logistic"], n=100)
    problem = fl.Problem(X, y, loss="logistic", penalty=penalty, alpha=alpha, fit_intercept=True)
    data = weakref.ref(problem.data)
    gc.collect()
    gc.disable()
    try:
        fl.solve(problem, tol=1e-8, max_epochs=300)
        del problem
        assert data() is None
    finally:
        gc.enable()


def test_a_proposal_that_is_worse_than_the_iterate_is_not_taken(monkeypatch):
    """Also before the iterate's first certificate: then it is made."""
    monkeypatch.setattr("fenchel.engine.registry.ENGINES", [])  # epochs from the start
    X, y, _ = cases.data(cases.losses()["logistic"], n=230)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.GroupL2(cases.OVERLAP), alpha=0.02)
    early = []

    def propose(self, start, progress, goal):
        if progress.epoch == 3:
            early.append((progress.gap, start.w.copy()))
        elif progress.epoch == 12:
            w = early[0][1]
            x = problem.slopes_at(problem.scores(w))
            iterate = Iterate(w, x, start.y.copy(), problem.gradient_sum(x), problem.map_slots @ w)
            return Proposal(iterate, problem.primal_at(w), 0.0, "a test")
        return None

    plain = fl.solve(problem, tol=0, max_epochs=20, newton=False, check_every=15)
    monkeypatch.setattr(Schedule, "propose", propose)
    result = fl.solve(problem, tol=0, max_epochs=20, check_every=15)
    assert early[0][0] == np.inf
    assert 12 in result.history.epoch
    np.testing.assert_allclose(result.coef, plain.coef, rtol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "quantile"])
def test_saved_run_resumes_where_it_was(tmp_path, loss):
    kind = cases.losses()[loss]
    X, y, _ = cases.data(kind, n=230)
    problem = fl.Problem(X, y, loss=kind, penalty=fl.L1(), alpha=0.02, fit_intercept=True)
    # rounds of an engine, which the logistic loss would have, begin anew where the run was: another way
    options = {"newton": False} if loss == "logistic" else {}
    whole = fl.solve(problem, tol=0, max_epochs=75, **options)
    part = fl.solve(problem, tol=0, max_epochs=31, **options)
    part.save(tmp_path / "run.npz")
    loaded = fl.Result.load(tmp_path / "run.npz")
    assert loaded.status is fl.Status.EPOCH_LIMIT
    assert np.array_equal(loaded.coef, part.coef)
    assert loaded.intercept == part.intercept
    assert list(loaded.history) == list(part.history)
    # an attempt that had begun was finished: it may have taken a pass more
    resumed = fl.solve(problem, tol=0, max_epochs=75 - loaded.epochs, warm_start=loaded, **options)
    assert resumed.epochs == whole.epochs
    for key in ("x", "y", "w", "zx"):
        assert np.array_equal(resumed.state[key], whole.state[key]), key
    assert resumed.seconds > loaded.seconds


def test_save_is_whole_or_not_at_all(tmp_path, problem, monkeypatch):
    result = fl.solve(problem, max_epochs=3)
    target = tmp_path / "run.npz"
    target.write_bytes(b"precious")

    def broken(*args):
        raise OSError("disk full")

    monkeypatch.setattr(os, "replace", broken)
    with pytest.raises(OSError, match="disk full"):
        result.save(target)
    assert target.read_bytes() == b"precious"
    assert os.listdir(tmp_path) == ["run.npz"]


def test_load_of_something_else(tmp_path):
    file = tmp_path / "other.npz"
    file.write_bytes(b"not a zip")
    with pytest.raises(ValueError, match=r"other\.npz is not a saved fenchel result"):
        fl.Result.load(file)
    with pytest.raises(FileNotFoundError):
        fl.Result.load(tmp_path / "missing.npz")


def test_warm_start_from_a_neighbour_is_cheaper_and_not_trusted(problem):
    cold = fl.solve(problem, tol=1e-8, check_every=1)
    near = problem.with_alpha(problem.alpha * 0.97)
    cold_near = fl.solve(near, tol=1e-8, check_every=1)
    warm_near = fl.solve(near, tol=1e-8, check_every=1, warm_start=cold)
    assert warm_near.epochs < cold_near.epochs
    # the neighbour's bounds must not leak: the certificate is of the new problem
    assert warm_near.dual <= cold_near.primal
    assert warm_near.primal >= cold_near.dual


@pytest.mark.parametrize("loss", ["squared", "hinge", "logistic"])
@pytest.mark.parametrize("change", ["scaled", "other rows", "other targets", "no intercept", "other weights"])
def test_warm_start_from_another_problem_proves_nothing_by_itself(loss, change):
    """The same shapes, other data: sums over the old data, old bounds and old history must all be left behind."""
    kind = cases.losses()[loss]
    X, y, _ = cases.data(kind, n=100)
    options = {"loss": kind, "penalty": fl.L1(), "alpha": 0.05, "fit_intercept": True}
    old = fl.solve(fl.Problem(X, y, **options), tol=1e-9, max_epochs=5000)
    if change == "scaled":
        X = 3 * X
    elif change == "other rows":
        X = np.random.default_rng(9).standard_normal(X.shape)
    elif change == "other targets":
        y = -y
    elif change == "no intercept":
        options["fit_intercept"] = False
    else:
        options["sample_weight"] = np.linspace(0, 1, 100)
    problem = fl.Problem(X, y, **options)
    cold = fl.solve(problem, tol=1e-9, max_epochs=20_000)
    warm = fl.solve(problem, tol=1e-9, max_epochs=20_000, warm_start=old)
    assert cold.status is warm.status is fl.Status.CONVERGED
    assert warm.primal == pytest.approx(cold.primal, rel=3e-9)
    assert warm.dual <= cold.primal * (1 + 1e-12)
    assert warm.history.epoch[0] == 0
    assert change != "no intercept" or warm.intercept == 0.0


def test_stalled_run_does_not_stall_its_neighbour(problem):
    stalled = fl.solve(problem, tol=0, max_epochs=100_000)
    near = fl.solve(problem.with_alpha(0.5 * problem.alpha), tol=1e-7, warm_start=stalled)
    assert near.status is fl.Status.CONVERGED
    assert near.epochs > 0


def test_no_feasible_point_is_not_convergence():
    X, y, _ = cases.data(fl.Squared())
    problem = fl.Problem(X, y, loss="squared", penalty=fl.Box(1, 2))
    early = fl.solve(problem, max_epochs=0)
    assert early.status is fl.Status.EPOCH_LIMIT
    assert not np.isfinite(early.primal)
    assert "no point within the constraints" in early.reason
    later = fl.solve(problem)
    assert later.status is fl.Status.CONVERGED
    assert np.all((later.coef >= 1 - 1e-12) & (later.coef <= 2 + 1e-12))


def test_optimum_of_zero_is_reached():
    X, _, _ = cases.data(fl.Squared())
    result = fl.solve(fl.Problem(X, np.full(40, 3.0), loss="squared", penalty=fl.L1(), alpha=0.1, fit_intercept=True))
    assert result.status is fl.Status.CONVERGED
    assert result.intercept == pytest.approx(3.0)


def test_nearly_dependent_rows_of_the_map():
    rng = np.random.default_rng(1)
    X, y, _ = cases.data(fl.Squared(), n=60)
    M = rng.standard_normal((cases.P, cases.P))
    M[-1] = M[0] * (1 + 1e-9 * rng.standard_normal(cases.P))
    result = fl.solve(fl.Problem(X, y, loss="squared", penalty=fl.L1() @ fl.Matrix(M), alpha=0.02), max_epochs=3000)
    assert result.dual <= result.primal


# -- the paper's problem ----------------------------------------------------------------------------


def test_paper_preset_converges_linearly():
    problem = artificial_problem(512)
    result = fl.solve(problem, preset="paper", tol=1e-10, max_epochs=2000, check_every=10)
    assert result.status is fl.Status.CONVERGED
    gaps = np.log10(result.history.relative_gap)
    epochs = result.history.epoch
    # linear: from 1e-2 on, log gap against epochs is a straight line
    tail = gaps < -2
    slope, offset = np.polyfit(epochs[tail], gaps[tail], 1)
    assert slope < -0.01
    assert np.abs(gaps[tail] - (slope * epochs[tail] + offset)).max() < 0.7


def test_default_needs_at_most_a_third_of_the_paper_preset_at_512():
    problem = artificial_problem(512)
    assert 3 * epochs_to(problem, 1e-6) <= epochs_to(problem, 1e-6, preset="paper")


def test_theory_preset_converges():
    X, y, _ = cases.data(fl.Squared(), n=60)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1() + 0.5 * fl.Ridge(), alpha=0.05)
    result = fl.solve(problem, preset="theory", block_size=5, max_epochs=5000, tol=1e-8)
    assert result.status is fl.Status.CONVERGED


@pytest.mark.parametrize(
    "options",
    [
        {"block_size": 1},
        {"block_size": 10**6},
        {"order": "random"},
        {"order": "cyclic"},
        {"within": "joint"},
        {"within": "joint", "block_size": 1},
        {"column_power": 0.0},
        {"column_power": 0.5},
        {"rho": 0.05},
        {"preset": "paper", "rho": 0.01, "block_size": 10, "eta_z": 1.2, "eta_b": 4.0, "gamma": 1 / 240},
    ],
    ids=str,
)
def test_every_parameter_can_be_set(problem, options):
    result = fl.solve(problem, tol=1e-7, max_epochs=20_000, **options)
    assert result.status is fl.Status.CONVERGED


# -- invariances ------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss_name", list(cases.losses()))
def test_weight_is_repetition(loss_name):
    loss = cases.losses()[loss_name]
    X, y, weight = cases.data(loss, weighted=True)
    penalty, alpha = cases.penalties()["graph"]
    repeat = np.repeat(np.arange(len(y)), weight.astype(int))
    options = {"loss": loss, "penalty": penalty, "alpha": alpha, "fit_intercept": True}
    weighted = fl.solve(fl.Problem(X, y, sample_weight=7.5 * weight, **options), tol=1e-8, max_epochs=20_000)
    repeated = fl.solve(fl.Problem(X[repeat], y[repeat], **options), tol=1e-8, max_epochs=20_000)
    assert weighted.primal == pytest.approx(repeated.primal, rel=3e-8)


def test_dense_csr_memmap_and_float32_agree(tmp_path):
    X, y, _ = cases.data(fl.Logistic(), n=150)
    X = X.astype(np.float32).astype(float)  # the same numbers in both precisions
    file = tmp_path / "X.dat"
    X.tofile(file)
    S = sp.csr_array(X)
    kinds = {
        "dense": X,
        "csr": S,
        "csr with long indices": sp.csr_array((S.data, S.indices.astype(np.int64), S.indptr.astype(np.int64)), X.shape),
        "csc": sp.csc_array(X),
        "memmap": np.memmap(file, dtype=float, mode="r", shape=X.shape),
        "float32": X.astype(np.float32),
        "csr float32": sp.csr_array(X.astype(np.float32)),
    }  # fmt: skip
    values = {}
    for name, data in kinds.items():
        problem = fl.Problem(data, y, loss="logistic", penalty=fl.L1(), alpha=0.02, fit_intercept=True)
        values[name] = fl.solve(problem, tol=1e-9).primal
    assert max(values.values()) - min(values.values()) <= 2e-9 * values["dense"], values


def test_row_order_does_not_matter():
    X, y, _ = cases.data(fl.Huber(), n=150)
    order = np.random.default_rng(5).permutation(len(y))
    options = {"loss": "huber", "penalty": fl.L1(), "alpha": 0.05, "fit_intercept": True}
    one = fl.solve(fl.Problem(X, y, **options), tol=1e-9)
    two = fl.solve(fl.Problem(X[order], y[order], **options), tol=1e-9)
    assert one.primal == pytest.approx(two.primal, rel=2e-9)
    assert one.coef == pytest.approx(two.coef, abs=1e-4)


@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_scale_of_the_rows(factor):
    """X scaled and alpha scaled alike: the same objective, whatever the units."""
    X, y, _ = cases.data(fl.SmoothedHinge(), n=150)
    one = fl.solve(fl.Problem(X, y, loss="smoothed-hinge", penalty=fl.L1(), alpha=0.02), tol=1e-8)
    two = fl.solve(fl.Problem(factor * X, y, loss="smoothed-hinge", penalty=fl.L1(), alpha=0.02 * factor), tol=1e-8)
    assert two.status is fl.Status.CONVERGED
    assert one.primal == pytest.approx(two.primal, rel=2e-8)
    assert factor * two.coef == pytest.approx(one.coef, abs=1e-4)


def test_several_outputs_with_a_separable_penalty_are_separate_problems():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((60, cases.P))
    Y = X[:, :3] + 0.3 * rng.standard_normal((60, 3))
    joint = fl.solve(fl.Problem(X, Y, loss="squared", penalty=fl.L1(), alpha=0.05, fit_intercept=True), tol=1e-10)
    assert joint.coef.shape == (3, cases.P)
    assert joint.intercept.shape == (3,)
    for k in range(3):
        one = fl.solve(
            fl.Problem(X, Y[:, k], loss="squared", penalty=fl.L1(), alpha=0.05, fit_intercept=True), tol=1e-10
        )
        assert joint.coef[k] == pytest.approx(one.coef, abs=1e-4)
        assert joint.intercept[k] == pytest.approx(one.intercept, abs=1e-4)


def test_outputs_coupled_by_groups_against_conic_solver():
    """A feature in or out for all outputs: groups across the outputs' coefficients."""
    import cvxpy as cp

    rng = np.random.default_rng(3)
    X = rng.standard_normal((50, 8))
    Y = X[:, :3] @ rng.standard_normal((3, 4)) + 0.5 * rng.standard_normal((50, 4))
    weight = rng.random(50)
    groups = [[k * 8 + j for k in range(4)] for j in range(8)]
    problem = fl.Problem(
        X, Y, loss="squared", penalty=fl.GroupL2(groups), alpha=0.1, fit_intercept=True, sample_weight=weight
    )
    result = fl.solve(problem, tol=1e-9)
    W, b = cp.Variable((4, 8)), cp.Variable(4)
    residual = X @ W.T + np.ones((50, 1)) @ cp.reshape(b, (1, 4), order="C") - Y
    mean = cp.sum(cp.multiply((weight / weight.sum())[:, None], cp.square(residual))) / 2
    optimum = cp.Problem(cp.Minimize(mean + 0.1 * 2 * cp.sum(cp.norm(W, 2, axis=0)))).solve(solver=cp.CLARABEL)
    assert result.primal == pytest.approx(optimum, rel=1e-7)
    assert result.status is fl.Status.CONVERGED
    off = np.all(result.coef == 0.0, axis=0)
    assert off.sum() >= 3  # exact zeros, whole features at a time


def test_tasks_have_their_own_coefficients():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((90, 5))
    task = rng.integers(0, 3, 90)
    y = np.where(task == 0, X[:, 0], np.where(task == 1, -X[:, 1], X[:, 2])) + 2.0 * task
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.02, fit_intercept=True, task=task)
    result = fl.solve(problem, tol=1e-9)
    assert result.coef.shape == (3, 5)
    for k in range(3):
        # the mean is over all rows, so that a task's share of them scales its alpha
        own = task == k
        alone = fl.Problem(
            X[own], y[own], loss="squared", penalty=fl.L1(), alpha=0.02 * 90 / own.sum(), fit_intercept=True
        )
        one = fl.solve(alone, tol=1e-10)
        assert result.coef[k] == pytest.approx(one.coef, abs=2e-4)
        assert result.intercept[k] == pytest.approx(one.intercept, abs=2e-4)


# -- structure is exact -----------------------------------------------------------------------------


def test_zeros_are_zeros_and_fused_values_are_equal_bits():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 20))
    w = np.repeat([0.0, 1.0, 0.0, -2.0], 5)
    y = X @ w + 0.1 * rng.standard_normal(200)
    penalty = 0.5 * fl.L1() + fl.L1() @ fl.Difference(20)
    result = fl.solve(fl.Problem(X, y, loss="squared", penalty=penalty, alpha=0.1), tol=1e-9)
    assert np.all(result.coef[[0, 1, 2, 3, 4, 10, 11, 12, 13, 14]] == 0.0)
    assert np.unique(result.coef[5:10]).size == 1
    assert np.unique(result.coef[15:]).size == 1


# -- cases that are not errors ----------------------------------------------------------------------


def degenerate():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((30, 4))
    y = X[:, 0] + 0.1 * rng.standard_normal(30)
    zero_column = X.copy()
    zero_column[:, 2] = 0.0
    constant = X.copy()
    constant[:, 1] = 3.0
    zero_row = X.copy()
    zero_row[5] = 0.0
    twice = np.vstack([X, X])
    weights = np.ones(30)
    weights[10:] = 0.0
    return {
        "zero column": (zero_column, y, None),
        "constant column": (constant, y, None),
        "zero row": (zero_row, y, None),
        "all zero": (np.zeros((30, 4)), y, None),
        "duplicate rows": (twice, np.concatenate([y, y]), None),
        "duplicate columns": (np.hstack([X, X]), y, None),
        "zero-weight rows": (X, y, weights),
        "p = 1": (X[:, :1].copy(), y, None),
        "n = 1": (X[:1], y[:1], None),
        "wild columns": (X * np.array([1e3, 1.0, 1e-3, 1.0]), y, None),
    }


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", list(degenerate()))
def test_degenerate_data_gives_the_right_answer(name, sparse, intercept):
    X, y, weight = degenerate()[name]
    penalty = fl.L1() + 0.1 * fl.Ridge()
    data = sp.csr_array(X) if sparse else X
    problem = fl.Problem(
        data, y, loss="squared", penalty=penalty, alpha=0.05, sample_weight=weight, fit_intercept=intercept
    )
    result = fl.solve(problem, tol=1e-8, max_epochs=20_000)
    optimum, _, _ = reference(X, y, fl.Squared(), penalty, 0.05, weight, intercept)
    assert result.status is fl.Status.CONVERGED
    assert result.primal == pytest.approx(optimum, rel=1e-6, abs=1e-8)


def test_no_penalty_at_all_is_least_squares():
    X, y, _ = cases.data(fl.Squared(), n=60)
    for problem in (
        fl.Problem(X, y, loss="squared", fit_intercept=True),
        fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.0, fit_intercept=True),
    ):
        result = fl.solve(problem, tol=1e-9, max_epochs=20_000)
        exact = np.linalg.lstsq(np.column_stack([X, np.ones(60)]), y, rcond=None)[0]
        assert result.status is fl.Status.CONVERGED
        assert result.coef == pytest.approx(exact[:-1], abs=1e-3)
        assert result.intercept == pytest.approx(exact[-1], abs=1e-3)


def test_beyond_alpha_max_the_answer_is_zero():
    X, y, _ = cases.data(fl.Logistic(), n=80)
    problem = fl.Problem(X, y, loss="logistic", penalty=fl.GroupL2(cases.OVERLAP), alpha=1.0, fit_intercept=True)
    top = problem.alpha_max()
    result = fl.solve(problem.with_alpha(1.001 * top), tol=1e-9)
    assert result.status is fl.Status.CONVERGED
    assert np.all(result.coef == 0.0)


def test_overflow_restarts_with_a_margin():
    """Rows that are all alike, one large block, no margin: the state may overflow but the answer must come."""
    rng = np.random.default_rng(0)
    X = 1.0 + 1e-3 * rng.standard_normal((400, 5))
    y = np.where(rng.random(400) < 0.6, 1.0, -1.0)
    problem = fl.Problem(X, y, loss="squared-hinge", penalty=fl.L1() + fl.Ridge(), alpha=0.01)
    result = fl.solve(problem, tol=1e-7, max_epochs=20_000, block_size=200, eta_z=1.0)
    assert result.status is fl.Status.CONVERGED


def test_method_state_can_be_driven_by_hand():
    X, y, _ = cases.data(fl.Squared(), n=60)
    problem = fl.Problem(X, y, loss="squared", penalty=fl.L1(), alpha=0.05)
    method = SDCAADMM(preset="paper", block_size=7)
    state = method.start(problem, np.random.default_rng(0))
    before = problem.certificate(state)
    for _ in range(50):
        method.epoch(state)
    after = problem.certificate(state)
    assert after.gap < 1e-2 * before.gap
    # the running sums are what they claim to be
    assert state.zx[: problem.p] == pytest.approx(X.T @ state.x, abs=1e-9)
    assert state.by == pytest.approx(problem.map_slots.T @ state.y, abs=1e-9)
