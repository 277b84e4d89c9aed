"""Speed and memory of the engine: prints the figures that the README and the issues quote.

    python benchmarks/engine.py             everything that the data at hand allows
    python benchmarks/engine.py epoch       only the named sections

Times are ratios within one run, medians of several, one thread. Data sets are found through FENCHEL_DATA
(see fenchel.datasets); a section without its data says so.
"""

from __future__ import annotations

import os

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

import subprocess
import sys
import tempfile
import textwrap
import time

import numpy as np
import scipy.sparse as sp

import fenchel as fl
from fenchel import datasets
from fenchel.methods import SDCAADMM


def line(name, value, goal=""):
    print(f"  {name:<66} {value:>12}   {goal}", flush=True)


def a9a_problem():
    X, y = datasets.load_a9a()
    edges = datasets.graph_edges(X, alpha=0.005)
    penalty = datasets.graph_penalty(edges, X.shape[1])
    return fl.Problem(X, y, loss=fl.SmoothedHinge(), penalty=penalty, alpha=0.01 / np.sqrt(X.shape[0])), X, len(edges)


def epochs(problem, tol, **options):
    """Exact epochs to a relative gap: a certificate after each."""
    return fl.solve(problem, tol=tol, max_epochs=5000, check_every=1, **options).epochs


def convergence():
    print("Epochs to a certified relative gap")
    for n, share in ((512, 3), (5120, 5)):
        problem = datasets.artificial_problem(n)
        paper, ours = epochs(problem, 1e-6, preset="paper"), epochs(problem, 1e-6)
        line(f"artificial n = {n}: paper preset to 1e-6", paper)
        line(f"artificial n = {n}: default to 1e-6", ours, f"goal: at most {paper / share:.0f}")
        deep = fl.solve(problem, preset="paper", tol=1e-10, max_epochs=5000, check_every=10)
        line(f"artificial n = {n}: paper preset to 1e-10", deep.epochs, f"reached {deep.relative_gap:.1e}")
    problem, _, edges = a9a_problem()
    line(f"a9a, graph of {edges} edges: default to 1e-6", epochs(problem, 1e-6), "goal: at most 40")
    line(f"a9a, graph of {edges} edges: paper preset to 1e-6", epochs(problem, 1e-6, preset="paper"))


def epoch_of(problem, copy=True, **options):
    """An epoch over all rows, as a function; without the copy in single precision, if it is not wanted."""
    method = SDCAADMM(**options)
    state = method.start(problem, np.random.default_rng(0))
    state.precise = not copy
    for _ in range(4):  # before rows are rested
        method.epoch(state)
    return lambda: method.epoch(state)


def ratio(first, second, rounds=41, at_a_time=1):
    """How many times as long the first takes. They take turns, so that a busy minute of the machine hits both."""
    found = []
    for _ in range(rounds):
        start = time.perf_counter()
        for _ in range(at_a_time):
            first()
        between = time.perf_counter()
        for _ in range(at_a_time):
            second()
        found.append((between - start) / (time.perf_counter() - between))
    return float(np.median(found))


def epoch():
    print("Cost of an epoch over all rows, in pairs of X @ v and X.T @ u of numpy or scipy on the same data")
    default = {}
    for dtype in (np.float64, np.float32):
        X, y, _ = datasets.artificial(5120)
        X = X.astype(dtype)
        penalty = datasets.artificial_problem(64).penalty
        problem = fl.Problem(X, y, loss="smoothed-hinge", penalty=penalty, alpha=0.1 / np.sqrt(5120))
        v, u = np.ones(X.shape[1], dtype), np.ones(X.shape[0], dtype)
        for name, goal, options in (
            ("default", "", {"rest": False}),
            ("block 50", "goal: at most 1.5", {"rest": False, "block_size": 50}),
            ("paper", "", {"preset": "paper"}),
        ):
            one = epoch_of(problem, copy=False, **options)
            default.setdefault(dtype, one)
            pairs = ratio(one, lambda X=X, v=v, u=u: (X @ v, X.T @ u))
            goal = goal if dtype is np.float64 else ""
            line(f"dense n = 5120, {np.dtype(dtype).name}, {name}", f"{pairs:.2f}", goal)
        if dtype is np.float64:
            pairs = ratio(epoch_of(problem, rest=False), lambda X=X, v=v, u=u: (X @ v, X.T @ u))
            line("dense n = 5120, float64, default, its copy in single precision", f"{pairs:.2f}")
    # some epochs at a time, as in a run: after the other kind of data there is nothing of one's own in the cache
    faster = ratio(default[np.float64], default[np.float32], rounds=21, at_a_time=6)
    line("dense n = 5120: how many times faster float32 is", f"{faster:.2f}", "goal: at least 1.5")
    problem, X, edges = a9a_problem()
    v, u = np.ones(X.shape[1]), np.ones(X.shape[0])
    for name, goal, options in (("default", "goal: at most 3", {"rest": False}), ("paper", "", {"preset": "paper"})):
        pairs = ratio(epoch_of(problem, **options), lambda: (X @ v, X.T @ u))
        line(f"a9a, {edges} edges, {name}", f"{pairs:.2f}", goal)


def threads():
    print("Threads that share the columns of dense rows")
    rng = np.random.default_rng(0)
    for p in (1024, 4096):
        X = rng.standard_normal((5120 * 1024 // p, p))
        y = np.where(X[:, :20].sum(axis=1) + rng.standard_normal(len(X)) > 0, 1.0, -1.0)
        problem = fl.Problem(X, y, loss="logistic", penalty=fl.L1(), alpha=0.005)
        one = epoch_of(problem, rest=False, n_jobs=1)
        for jobs in (2, 4)[: max(1, os.cpu_count() // 2)]:
            faster = ratio(one, epoch_of(problem, rest=False, n_jobs=jobs))
            line(f"dense {X.shape[0]} x {p}, logistic: an epoch with {jobs} threads, times faster", f"{faster:.2f}")
        same = [fl.solve(problem, tol=1e-4, n_jobs=2).coef for _ in range(2)]
        line(f"dense {X.shape[0]} x {p}: two threads twice, the same bits", str(np.array_equal(*same)))


def certificates():
    print("Share of a run that goes into certificates")
    problems = [(f"artificial n = {n}", datasets.artificial_problem(n)) for n in (512, 5120)]
    problem, X, _ = a9a_problem()
    problems.append(("a9a", problem))
    y, penalty, alpha = problem.target, problem.penalty, problem.alpha
    options = {"penalty": penalty, "alpha": alpha, "fit_intercept": True}
    problems.append(("a9a with an intercept", fl.Problem(X, y, loss="smoothed-hinge", **options)))
    problems.append(("a9a, hinge, with an intercept", fl.Problem(X, y, loss="hinge", **options)))
    for name, problem in problems:
        fl.solve(problem, max_epochs=2)
        shares = []
        for _ in range(5):
            result = fl.solve(problem, tol=1e-6)
            after_start = result.seconds - result.history[0].seconds
            shares.append((after_start - result.history[-1].work) / result.seconds)
        share = float(np.median(shares))
        line(f"{name}: {result.epochs} epochs, {result.seconds:.2f} s", f"{100 * share:.0f} %", "goal: under 15 %")


FIRST = """
import time
start = time.perf_counter()
import fenchel as fl
light = time.perf_counter() - start
import numpy as np, scipy.sparse, numba, sklearn.utils.validation
rng = np.random.default_rng(0)
X = rng.standard_normal((500, 64)); y = np.sign(X[:, 0] + 0.1 * rng.standard_normal(500))
groups = list(np.arange(64).reshape(8, 8)) + list(np.arange(64).reshape(8, 8).T)
start = time.perf_counter()
problem = fl.Problem(X, y, loss="smoothed-hinge", penalty=fl.GroupL2(groups) + 0.01 * fl.Ridge(), alpha=0.01)
fl.solve(problem)
print(light, time.perf_counter() - start)
"""


def first():
    print("First solve in a new process")
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache}
        for kind, goal in (("cold cache", "goal: under 25 s"), ("warm cache", "goal: under 1 s")):
            run = subprocess.run(
                [sys.executable, "-c", FIRST], env=environment, capture_output=True, text=True, check=True
            )
            light, seconds = map(float, run.stdout.split())
            line(f"{kind}: first solve beyond imports", f"{seconds:.2f} s", goal)
            if kind == "cold cache":
                line("cold cache: the user is told", "yes" if "compiling" in run.stderr else "NO")
        line("import fenchel", f"{light:.3f} s", "goal: under 0.3 s")


MEMORY = """
import sys, resource, numpy as np, scipy.sparse as sp
import fenchel as fl
from fenchel import datasets
kind, dtype, path = sys.argv[1:]

def peak():
    # the high-water mark of anonymous memory: file pages of a memmap belong to the page cache
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(fields["VmHWM"].split()[0]) * 1024, int(fields["RssFile"].split()[0]) * 1024

rng = np.random.default_rng(0)
tiny = rng.standard_normal((100, 20)).astype(dtype)
ty = np.sign(tiny[:, 0])
data = sp.csr_array(tiny) if kind == "csr" else tiny
fl.solve(fl.Problem(data, ty, loss="smoothed-hinge", penalty=fl.L1(), alpha=0.01), max_epochs=30)
parts = np.load(path, mmap_mode="r" if kind == "memmap" else None, allow_pickle=False)
if kind == "csr":
    X = sp.csr_array((parts["data"], parts["indices"], parts["indptr"]), shape=tuple(parts["shape"]))
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
else:
    X = parts
    size = X.nbytes
y = np.where(np.arange(X.shape[0]) % 3, 1.0, -1.0)
before = int(dict(l.split(":", 1) for l in open("/proc/self/status"))["VmRSS"].split()[0]) * 1024
open("/proc/self/clear_refs", "w").write("5")  # forget the high-water mark of loading
problem = fl.Problem(X, y, loss="smoothed-hinge", penalty=fl.L1(), alpha=0.01)
fl.solve(problem, tol=0, max_epochs=8)
high, mapped = peak()
extra = high - before - (mapped if kind == "memmap" else 0)
print(size, max(extra, 0))
"""


def memory_of(kind, dtype, file):
    """Bytes of the data, and beyond them, in a process of its own."""
    command = [sys.executable, "-c", textwrap.dedent(MEMORY), kind, dtype, file]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    return map(int, run.stdout.split())


def memory():
    print("Peak memory during Problem and solve, as a multiple of the data (1 = the data alone)")
    rng = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder:
        np.save(f"{folder}/wide.npy", rng.standard_normal((5120, 1024)))
        size, extra = memory_of("dense", "float64", f"{folder}/wide.npy")
        line(f"wide, float64, {size >> 20} MiB: with its copy in single precision", f"{1 + extra / size:.2f}",
             "goal: under 1.8")  # fmt: skip
        for dtype in ("float64", "float32"):
            dense = rng.standard_normal((100_000, 200), dtype=dtype)
            rows = sp.random_array((200_000, 5000), density=0.012, rng=rng, dtype=dtype, format="csr")
            np.save(f"{folder}/dense.npy", dense)
            np.savez(f"{folder}/csr.npz", data=rows.data, indices=rows.indices, indptr=rows.indptr, shape=rows.shape)
            for kind, file in (("dense", "dense.npy"), ("csr", "csr.npz"), ("memmap", "dense.npy")):
                size, extra = memory_of(kind, dtype, f"{folder}/{file}")
                if kind == "memmap":
                    line(
                        f"memmap, {dtype}, {size >> 20} MiB: beyond the file's pages",
                        f"{extra / size:.2f}",
                        "goal: far below 1",
                    )
                else:
                    line(f"{kind}, {dtype}, {size >> 20} MiB", f"{1 + extra / size:.2f}", "goal: under 1.3")


SECTIONS = {
    "convergence": convergence,
    "epoch": epoch,
    "threads": threads,
    "certificates": certificates,
    "first": first,
    "memory": memory,
}


def main(names):
    unknown = set(names) - set(SECTIONS)
    if unknown:
        sys.exit(f"unknown section {sorted(unknown)[0]!r}; there are {', '.join(SECTIONS)}")
    for name in names or SECTIONS:
        try:
            SECTIONS[name]()
        except FileNotFoundError as error:
            print(f"  left out: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
