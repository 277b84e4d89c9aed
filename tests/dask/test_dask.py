"""A cluster of two real processes: the same bits as in one process, also where workers die."""

import hashlib
import logging
import os
import signal
import subprocess
import sys
import time
import types

import numpy as np
import pytest

import fenchel as fl
from fenchel.data.jobs import Stats
from fenchel.data.partitions import partitioned
from fenchel.data.pools import Inline
from fenchel.problem import pooled

distributed = pytest.importorskip("distributed")
import dask  # noqa: E402
import dask.array as da  # noqa: E402

import fenchel.dask as fd  # noqa: E402

N, P, ROWS = 3000, 12, 250
SETTINGS = {"penalty": fl.FusedLasso(), "alpha": 0.01}


@pytest.fixture(scope="module", autouse=True)
def anew():
    """Rows that no driver can hold: every round reads them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pooled, "SPACE", 1.0)
        yield


@pytest.fixture(scope="module")
def cluster():
    with (
        dask.config.set({"distributed.worker.daemon": True, "distributed.comm.timeouts.connect": "60s"}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, worker_dashboard_address=None
        ) as made,
        distributed.Client(made),
    ):
        yield made


def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P))
    y = np.where(X[:, :3].sum(axis=1) + rng.standard_normal(N) > 0, "yes", "no")
    order = np.argsort(y, kind="stable")  # most partitions have rows of one label
    return X[order], y[order]


def sha(model):
    return hashlib.sha256(model.coef_.tobytes() + np.asarray(model.intercept_).tobytes()).hexdigest()


@pytest.fixture(scope="module")
def alone(anew):
    """The answer of one process."""
    X, y = rows()
    return fl.StructuredClassifier(**SETTINGS).fit(Inline(partitioned(X, y, rows=ROWS)))


def test_two_workers_give_the_bits_of_one_process(cluster, alone):
    X, y = rows()
    columns_apart, other_chunks = da.from_array(X, chunks=(ROWS, 5)), da.from_array(y, chunks=1000)
    model = fd.StructuredClassifier(**SETTINGS).fit(columns_apart, other_chunks)
    assert sha(model) == sha(alone) and model.result_.relative_gap <= 1e-6
    assert model.classes_.tolist() == ["no", "yes"]
    lazy = model.predict(columns_apart)
    assert isinstance(lazy, da.Array)
    assert np.array_equal(lazy.compute(), alone.predict(X))
    assert np.allclose(model.predict_proba(columns_apart).compute(), alone.predict_proba(X))
    assert model.score(columns_apart, other_chunks) == pytest.approx(alone.score(X, y))
    assert type(model.to_local()) is fl.StructuredClassifier
    assert sha(model.to_local()) == sha(alone)
    unknown = da.from_array(X, chunks=(ROWS, P))[da.from_array(np.ones(N, dtype=bool), chunks=ROWS)]
    assert np.isnan(unknown.chunks[0][0])
    assert sha(fd.StructuredClassifier(**SETTINGS).fit(unknown, other_chunks.rechunk(ROWS))) == sha(alone)


def test_a_killed_worker_changes_no_bit(cluster, alone, monkeypatch, caplog):
    X, y = rows()
    run, killed = fd.DaskPool.run, []

    def deadly(self, jobs):
        if self.round == 3 and not killed:
            worker = next(iter(cluster.workers.values()))
            killed.append(worker.process.pid)
            os.kill(worker.process.pid, signal.SIGKILL)
        return run(self, jobs)

    monkeypatch.setattr(fd.DaskPool, "run", deadly)
    model = fd.StructuredClassifier(**SETTINGS).fit(da.from_array(X, chunks=(ROWS, P)), da.from_array(y, chunks=ROWS))
    assert killed and sha(model) == sha(alone)


def test_all_workers_die_one_leaves_and_another_joins(cluster, alone, monkeypatch):
    X, y = rows()
    run, seen = fd.DaskPool.run, []

    def eventful(self, jobs):
        if self.round == 2 and "died" not in seen:
            seen.append("died")
            for worker in cluster.workers.values():
                os.kill(worker.process.pid, signal.SIGKILL)
        if self.round == 3 and "joined" not in seen:
            seen.append("joined")
            cluster.scale(3)
            self.client.wait_for_workers(3, timeout=120)
        if self.round == 4 and "left" not in seen:
            seen.append("left")
            self.client.retire_workers([next(iter(self.client.scheduler_info(n_workers=-1)["workers"]))])
        return run(self, jobs)

    monkeypatch.setattr(fd.DaskPool, "run", eventful)
    Xd, yd = da.from_array(X, chunks=(ROWS, P)), da.from_array(y, chunks=ROWS)
    model = fd.StructuredClassifier(**SETTINGS).fit(Xd, yd)
    assert seen == ["died", "joined", "left"] and sha(model) == sha(alone)


def test_a_fit_without_any_worker_says_so_and_goes_on(alone, monkeypatch):
    X, y = rows()
    run, told = fd.DaskPool.run, []
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "300ms"}),
        distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None) as own,
        distributed.Client(own) as client,
    ):

        class Joins(logging.Handler):
            def emit(self, record):
                if "no worker is left in round 3" in record.getMessage() and not told:
                    told.append(record)
                    own.scale(1)

        def deserted(self, jobs):
            if self.round == 2:
                own.scale(0)
                while self._workers():
                    time.sleep(0.01)
            return run(self, jobs)

        monkeypatch.setattr(fd.DaskPool, "run", deserted)
        logger, handler = logging.getLogger("fenchel.dask"), Joins()
        logger.addHandler(handler)
        try:
            chunks = da.from_array(X, chunks=(ROWS, P)), da.from_array(y, chunks=ROWS)
            model = fd.StructuredClassifier(client=client, **SETTINGS).fit(*chunks)
        finally:
            logger.removeHandler(handler)
    assert told and sha(model) == sha(alone)


def test_frames_pieces_and_files(cluster, tmp_path):
    import dask.dataframe as dd
    import pandas as pd

    X, y = rows()
    number = np.where(y == "yes", 1.0, 0.0)
    frame = dd.from_pandas(pd.DataFrame(X, columns=[f"f{j}" for j in range(P)]).assign(y=number), npartitions=3)
    settings = {"penalty": fl.L1(), "alpha": 0.01, "tol": 1e-8}
    known = fl.StructuredRegressor(**settings).fit(X, number)
    model = fd.StructuredRegressor(**settings).fit(frame.drop(columns="y"), frame["y"])
    assert model.feature_names_in_.tolist() == [f"f{j}" for j in range(P)]
    assert np.allclose(model.coef_, known.coef_, atol=1e-4)
    pieces = [dask.delayed(X[k : k + 1000]) for k in range(0, N, 1000)]
    model = fd.StructuredRegressor(**settings).fit(pieces, [number[k : k + 1000] for k in range(0, N, 1000)])
    assert np.allclose(model.coef_, known.coef_, atol=1e-4)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", number)
    opened = fl.open_data(tmp_path / "X.npy", target=str(tmp_path / "y.npy"))
    here, there = fl.StructuredRegressor(**settings).fit(opened), fl.StructuredRegressor(**settings)
    assert sha(here) == sha(there.fit(fd.distribute(opened)))


def test_cross_validation_and_fits_within_a_task(cluster, alone):
    X, y = rows()
    Xd, yd = da.from_array(X, chunks=(ROWS, P)), da.from_array(y, chunks=ROWS)
    model = fd.StructuredClassifierCV(penalty=fl.L1(), alphas=[0.1, 0.01], cv=2).fit(Xd, yd)
    local = fl.StructuredClassifierCV(penalty=fl.L1(), alphas=[0.1, 0.01], cv=2)
    local.fit(Inline(partitioned(X, y, rows=ROWS)))
    assert np.array_equal(model.cv_results_.scores, local.cv_results_.scores)

    def inside():
        from fenchel.problem import pooled

        pooled.SPACE = 1.0  # in the process of the worker
        return fd.StructuredClassifier(**SETTINGS).fit(Xd, yd)

    assert sha(distributed.get_client().submit(inside).result()) == sha(alone)


@pytest.mark.parametrize("when", ["before tasks are sent", "while they run"])
def test_a_client_that_is_closed_amid_a_fit_is_named(cluster, monkeypatch, when):
    X, y = rows()
    run = fd.DaskPool.run
    with distributed.Client(cluster, set_as_default=False) as own:

        def closing(self, jobs):
            if self.round == 2 and when == "while they run":
                gather = own.gather
                monkeypatch.setattr(own, "gather", lambda found: own.close() or gather(found))
            elif self.round == 2:
                own.close()
            return run(self, jobs)

        monkeypatch.setattr(fd.DaskPool, "run", closing)
        model = fd.StructuredClassifier(**SETTINGS, client=own)
        with pytest.raises(RuntimeError, match=r"client was closed in round 3 .* resume from a checkpoint"):
            model.fit(da.from_array(X, chunks=(ROWS, P)), da.from_array(y, chunks=ROWS))


@pytest.mark.parametrize(
    ("task", "told"),
    [
        ("fenchel-look-{tag}-1-1", r"partitions 6 to 11 \(of 12, numbered from 0; task fenchel-look-"),
        ("fenchel-shard-{tag}-0", r"partitions 0 to 5 \(of 12"),
        ("{part}", r"partition 7 \(of 12, numbered from 0; task "),
        ("numbers-3", "^task numbers-3: 4 workers"),
    ],
)
def test_a_task_that_ends_its_workers_is_told_by_its_partitions(cluster, monkeypatch, task, told):
    cluster.scale(2)  # others may have joined
    while len(distributed.get_client().scheduler_info()["workers"]) != 2:
        time.sleep(0.05)
    X, y = rows()
    pool = fd.pool.from_collections(
        distributed.get_client(), da.from_array(X, chunks=(ROWS, P)), da.from_array(y, chunks=ROWS), None, None, None
    )
    key = task.format(tag=pool.tag, part={number: key for key, number in pool.made.items()}[7])
    last = types.SimpleNamespace(address="tcp://somewhere:1")

    def killed(found):
        raise distributed.KilledWorker(key, last, 3)

    monkeypatch.setattr(pool.client, "gather", killed)
    with pytest.raises(RuntimeError, match=told) as error:
        pool.run([Stats()])
    for word in ("4 workers", "tcp://somewhere:1", "memory of a worker", "smaller chunks"):
        assert word in str(error.value)


def test_words_in_a_frame_and_divisions_that_nobody_knows(cluster, tmp_path):
    import dask.dataframe as dd
    import pandas as pd

    X, y = rows()
    frame = pd.DataFrame(X, columns=[f"f{j}" for j in range(P)])
    frame.to_parquet(tmp_path / "a.parquet")
    unknown = dd.read_parquet(tmp_path / "a.parquet")
    assert not unknown.known_divisions
    model = fd.StructuredClassifier(**SETTINGS).fit(unknown, da.from_array(y, chunks=N))
    known = fl.StructuredClassifier(**SETTINGS).fit(Inline(partitioned(X, y, rows=N)))
    assert sha(model) == sha(known)
    for words in (pd.Categorical(y), y):
        given = dd.from_pandas(frame.assign(kind=words), npartitions=2)
        with pytest.raises(ValueError, match=r"column 'kind' of X holds words.*get_dummies"):
            fd.StructuredClassifier(**SETTINGS).fit(given, [y[: N // 2], y[N // 2 :]])


DRIVER = """
import sys, time
import dask.array as da, distributed, numpy as np
import fenchel as fl, fenchel.dask as fd
from fenchel.problem import pooled

pooled.SPACE = 1.0
run = fd.DaskPool.run

def told(self, jobs):
    if self.round == 4:
        print("round 4", flush=True)
        time.sleep(600)  # until somebody ends this process
    return run(self, jobs)

fd.DaskPool.run = told
address, rows, checkpoint = sys.argv[1:]
with np.load(rows) as found, distributed.Client(address):
    X, y = da.from_array(found["X"], chunks=(250, found["X"].shape[1])), da.from_array(found["y"], chunks=250)
    options = {"checkpoint": checkpoint}
    fd.StructuredClassifier(penalty=fl.FusedLasso(), alpha=0.01, solver_options=options).fit(X, y)
"""


def test_a_driver_that_is_killed_is_gone_on_from_by_another(cluster, alone, tmp_path):
    X, y = rows()
    saved = tmp_path / "run.npz"
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    given = [cluster.scheduler_address, str(tmp_path / "rows.npz"), str(saved)]
    driver = subprocess.Popen([sys.executable, "-c", DRIVER, *given], stdout=subprocess.PIPE, text=True)
    try:
        assert driver.stdout.readline() == "round 4\n"
        driver.send_signal(signal.SIGKILL)
        assert driver.wait(60) == -signal.SIGKILL
    finally:
        driver.kill()
        driver.wait(60)
        driver.stdout.close()
    before = fl.Result.load(saved)
    assert before.status is fl.Status.INTERRUPTED and len(before.history) >= 1
    Xd, yd = da.from_array(X, chunks=(ROWS, P)), da.from_array(y, chunks=ROWS)
    model = fd.StructuredClassifier(**SETTINGS, solver_options={"checkpoint": str(saved)}).fit(Xd, yd)
    assert model.result_.status is fl.Status.CONVERGED and len(model.result_.history) > len(before.history)
    assert model.result_.primal == pytest.approx(alone.result_.primal, rel=2e-6)
    # it begins with the certificate that the other one had reached
    begun = model.result_.history[len(before.history)]
    assert begun.primal == before.primal and begun.dual == pytest.approx(before.dual, rel=1e-12)
    assert before.relative_gap < 0.01


def test_numbers_in_memory_beside_chunks(cluster):
    X, y = rows()
    weight = np.random.default_rng(1).random(N)
    Xd, yd = da.from_array(X, chunks=(ROWS, P)), da.from_array(y, chunks=ROWS)
    known = fd.StructuredClassifier(**SETTINGS).fit(Xd, yd, sample_weight=da.from_array(weight, chunks=ROWS))
    for own in (weight, weight.tolist()):
        assert sha(fd.StructuredClassifier(**SETTINGS).fit(Xd, y.tolist(), sample_weight=own)) == sha(known)
    lists = fd.StructuredClassifier(**SETTINGS).fit(X.tolist(), y.tolist(), sample_weight=weight.tolist())
    assert np.allclose(lists.coef_, known.coef_, atol=1e-3)
    for wrong, told in (
        (weight[:10].tolist(), "sample_weight has 10 entries, but X has 3000 rows"),
        (np.ones((N, 2)), r"sample_weight has shape \(3000, 2\); it must hold one number for each of the 3000 rows"),
        (3.0, r"sample_weight has shape \(\); it must hold one number"),
        (da.ones((N, 2), chunks=(ROWS, 2)), r"partition \d+: sample_weight has shape \(250, 2\)|has shape"),
        ([np.ones(9)] * 12, r"partition \d+: sample_weight has 9 entries, but X has 250 rows; give sample_weight"),
        (np.zeros(N), r"sample_weight is zero in all 3000 rows.*above 0"),
    ):
        with pytest.raises(ValueError, match=told):
            fd.StructuredClassifier(**SETTINGS).fit(Xd, yd, sample_weight=wrong)
    with pytest.raises(ValueError, match="X is list; it must be a dask array"):
        fd.StructuredClassifier(**SETTINGS).fit([X[:10], X[10:]], [y[:10], y[10:]])


def test_three_classes_in_partitions_of_their_own(cluster):
    X, _ = rows()
    score = X[:, 0] - X[:, 1]
    order = np.argsort(score, kind="stable")
    X, y = X[order], np.array(["a", "b", "c"])[np.digitize(score[order], [-0.5, 0.5])]
    settings = {"penalty": fl.L1(), "alpha": 0.01}
    Xd = da.from_array(X, chunks=(ROWS, P))
    model = fd.StructuredClassifier(**settings).fit(Xd, da.from_array(y, chunks=ROWS))
    local = fl.StructuredClassifier(**settings).fit(Inline(partitioned(X, y, rows=ROWS)))
    assert sha(model) == sha(local) and model.result_.relative_gap <= 1e-6
    known = fl.StructuredClassifier(**settings, tol=1e-9).fit(X, y)
    assert model.result_.primal == pytest.approx(known.result_.primal, rel=2e-6)
    assert np.allclose(model.predict_proba(Xd).compute().sum(axis=1), 1.0)


def test_rows_of_a_cluster_are_predicted_and_judged(cluster, tmp_path):
    X, y = rows()
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", np.where(y == "yes", 1.0, 0.0))
    pool = fd.distribute(fl.open_data(tmp_path / "X.npy", target=str(tmp_path / "y.npy")))
    model = fd.StructuredClassifier(penalty=fl.L1(), alpha=0.01).fit(pool)
    assert np.array_equal(model.predict(pool), model.to_local().predict(X))
    assert model.score(pool) == pytest.approx(np.mean(model.predict(pool) == (y == "yes")))


def test_mistakes(cluster):
    import pickle

    from sklearn.base import clone

    X, y = rows()
    Xd = da.from_array(X, chunks=(ROWS, P))
    with pytest.raises(ValueError, match="y has 10 entries, but X has 3000 rows"):
        fd.StructuredClassifier().fit(Xd, da.from_array(y[:10]))
    with pytest.raises(ValueError, match="requires y"):
        fd.StructuredClassifier().fit(Xd)
    with pytest.raises(ValueError, match=r"must be a distributed\.Client"):
        fd.StructuredClassifier(client=3).fit(Xd, da.from_array(y, chunks=ROWS))
    model = fd.StructuredClassifier(alpha=0.5, client=distributed.get_client())
    assert clone(model).alpha == 0.5 and clone(model).client is None
    assert pickle.loads(pickle.dumps(model)).client is None


def test_without_a_client_the_way_out_is_told(monkeypatch):
    monkeypatch.setattr(distributed, "get_client", lambda: (_ for _ in ()).throw(ValueError("none")))
    with pytest.raises(ValueError, match="make one first"):
        fd.pool.current_client()
