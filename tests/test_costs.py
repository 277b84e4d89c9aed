"""The schedule of a run goes by prices, and these by the problem alone."""

from __future__ import annotations

import cases
import numpy as np
import pytest

import fenchel as fl
from fenchel import costs, solver
from fenchel.methods import proposals
from fenchel.methods.sdca_admm import SDCAADMM

EDGES = fl.L1() @ fl.Incidence(cases.EDGES, cases.P)


def make(n=300, penalty=EDGES):
    loss = cases.losses()["logistic"]
    X, y, _ = cases.data(loss, n=n)
    return fl.Problem(X, y, loss=loss, penalty=penalty, alpha=0.01)


@pytest.mark.parametrize("size", [1, 7, 300])
def test_given_blocks_change_no_schedule(size):
    problem, chosen, plain = make(), SDCAADMM(block_size=size), SDCAADMM()
    states = [method.start(problem, np.random.default_rng(0)) for method in (chosen, plain)]
    assert states[0].newton_due == states[1].newton_due
    assert chosen.proposals.epoch == plain.proposals.epoch == costs.epoch_nanoseconds(problem)
    assert solver._spacing(problem, chosen) == solver._spacing(problem, plain)


def test_newton_comes_after_so_many_rows(monkeypatch):
    """Four epochs, or fewer where these are very many rows; what it costs itself counts as well."""
    problem = make(n=2000)
    attempts = SDCAADMM()
    attempts.start(problem, np.random.default_rng(0))
    first = attempts.proposals.first_due()
    assert first >= 4
    monkeypatch.setattr(proposals, "_VISITS", 1.0)
    monkeypatch.setattr(proposals, "_STEPS", 0.0)
    assert attempts.proposals.first_due() == 1
