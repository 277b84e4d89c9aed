"""Kernels that are compiled one by one: calls by name, tuples by reference, the cache, and the losses' own kernels."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from numba import float64, int64, types

import fenchel as fl
from fenchel.kernels.apart import MATRIX, READ, VECTOR, Reference, apart, door, opened, refer
from fenchel.kernels.small_losses import _KERNELS, KINDS


class Pair(NamedTuple):
    matrix: np.ndarray
    vector: np.ndarray
    size: int


PAIR = types.NamedTuple((MATRIX, VECTOR, int64), Pair)


@apart(float64(MATRIX, READ, int64))
def trace(matrix, vector, size):
    total = 0.0
    for i in range(size):
        total += matrix[i, i] * vector[i]
    return total


@apart(types.UniTuple(float64, 2)(Reference(PAIR), float64))
def both(pair, factor):
    pair.vector[0] = 5.0
    return trace(pair.matrix, pair.vector, pair.size) * factor, factor


@door(float64(MATRIX, VECTOR, int64))
def run(matrix, vector, size):
    pair = refer(Pair(matrix, vector, size))
    first, second = both(pair, 2)  # a literal becomes the number that the kernel takes
    return first + second + pair.vector[0]


def test_kernels_call_each_other_by_name():
    vector = np.ones(3)
    assert run(np.eye(3), vector, 3) == 2.0 * (5.0 + 1.0 + 1.0) + 2.0 + 5.0
    assert vector[0] == 5.0
    with pytest.raises(TypeError):
        run(np.eye(3, dtype=np.float32), vector, 3)  # a door has one signature


SCRIPT = """
import numpy as np
from numba.core import event
count = []
class Listener(event.Listener):
    def on_start(self, record):
        count.append(getattr(record.data["dispatcher"], "__module__", "").startswith("fenchel"))
    def on_end(self, record): pass
event.register("numba:compile", Listener())
import fenchel as fl
X = np.random.default_rng(0).standard_normal((30, 6))
found = fl.solve(fl.Problem(X, X[:, 0], loss="squared", penalty=fl.L1(), alpha=0.1))
print(sum(count), found.primal.hex(), found.coef.tobytes().hex())
"""


def test_a_second_process_compiles_nothing_and_finds_the_same(tmp_path):
    surroundings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    lines = []
    for _ in range(2):
        made = subprocess.run([sys.executable, "-c", SCRIPT], env=surroundings, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        lines.append(made.stdout.split())
    assert int(lines[0][0]) > 0 and int(lines[1][0]) == 0
    assert lines[0][1:] == lines[1][1:]


SPECIALISED = """
import numpy as np
from numba import float64
from fenchel.kernels.apart import apart, specialised

@apart(float64(float64))
def half(x):
    return 0.5 * x

@specialised(nogil=True)
def sum_of_halves(values):
    total = 0.0
    for value in values:
        total += half(value)
    return total

print(sum_of_halves(np.arange(5.0)), sum_of_halves(np.arange(5)), sum(sum_of_halves._cache_hits.values()))
"""


def test_a_specialised_kernel_from_the_cache_finds_those_that_it_calls(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(SPECIALISED)
    for hits in (0, 2):
        made = subprocess.run([sys.executable, str(script)], env=os.environ, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        assert made.stdout.split() == ["5.0", "5.0", str(hits)]


LOSSES = {
    "squared": fl.Squared(), "logistic": fl.Logistic(), "smoothed-hinge": fl.SmoothedHinge(0.7),
    "squared-hinge": fl.SquaredHinge(), "huber": fl.Huber(0.8), "poisson": fl.Poisson(),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_sums_of_losses(name):
    loss, rng, n = LOSSES[name], np.random.default_rng(1), 200
    kind, parameter = loss.small_form()
    assert kind == name
    sums, conjugate, ends = (opened(kernel) for kernel in _KERNELS[KINDS[name]])
    target = rng.poisson(2.0, n).astype(float) if name == "poisson" else rng.choice([-1.0, 1.0], n)
    score, weight = 2.0 * rng.standard_normal(n), rng.uniform(0.2, 2.0, n)
    weight[:5], score[:5] = 0.0, np.inf  # rows that play no part
    slope, curvature, low, high = np.empty((4, n))
    value = sums(parameter, target, weight, score, slope, curvature)
    some = weight > 0
    t, s, u = target[some], weight[some], score[some]
    assert value == pytest.approx(np.sum(s * loss.value(u, t)) / n, rel=1e-12)
    assert np.allclose(slope[some], s * loss.gradient(u, t), rtol=1e-12, atol=1e-12) and not slope[~some].any()
    assert not curvature[~some].any() and np.all(curvature >= 0)
    start = ends(parameter, target, weight, low, high)
    assert np.isfinite(start) and np.all(low <= 0) and np.all(high >= 0)
    assert np.all(low[some] <= slope[some] + 1e-15) and np.all(slope[some] <= high[some] + 1e-15)
    for scale in (1.0, 0.6):  # where Fenchel and Young meet, and inside
        x = scale * slope[some] / s
        wanted = np.sum(s * loss.conjugate(x, t)) / n
        assert conjugate(parameter, target, weight, slope, scale) == pytest.approx(wanted, rel=1e-10, abs=1e-12)
