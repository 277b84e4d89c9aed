"""The schedule of a run goes by prices, and these by the problem alone."""

from __future__ import annotations

import dataclasses

import cases
import pytest
import scipy.sparse as sp

import fenchel as fl
from fenchel import prices
from fenchel.prices.calibrated import MEASURED
from fenchel.solver import run, schedule
from fenchel.solver.schedule import Schedule

EDGES = fl.L1() @ fl.Incidence(cases.EDGES, cases.P)


def make(n=300, penalty=EDGES):
    loss = cases.losses()["logistic"]
    X, y, _ = cases.data(loss, n=n)
    return fl.Problem(X, y, loss=loss, penalty=penalty, alpha=0.01)


@pytest.mark.parametrize("size", [1, 7, 300])
def test_given_blocks_change_no_schedule(size):
    """Certificates and attempts go by what the problem costs, whatever blocks somebody has chosen."""
    problem = make()
    chosen, plain = (fl.solve(problem, max_epochs=0, **options).state for options in ({"block_size": size}, {}))
    assert chosen["attempt_due"] == plain["attempt_due"] == Schedule(problem).first_due()
    assert chosen["due"] == plain["due"] == run.spacing(problem)
    assert Schedule(problem).epoch == prices.epoch_nanoseconds(problem)


def test_newton_comes_after_so_many_rows(monkeypatch):
    """Four epochs, or fewer where these are very many rows; what it costs itself counts as well."""
    attempts = Schedule(make(n=2000))
    assert attempts.first_due() >= 4
    monkeypatch.setattr(schedule, "_VISITS", 1.0)
    monkeypatch.setattr(attempts.rounds, "price", lambda start: 0.0)
    assert attempts.first_due() == 1


def test_every_price_is_measured_and_positive():
    assert dataclasses.asdict(prices.PRICES) == MEASURED
    assert min(MEASURED.values()) > 0


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
def test_prices_grow_with_the_rows(sparse):
    """Of one kind of data with ten times the rows everything that reads them costs more."""
    X, y, _ = cases.data(cases.losses()["squared"], n=2000)
    X = sp.csr_array(X) if sparse else X
    small, large = (fl.Problem(X[:n], y[:n], loss="squared", penalty=EDGES, alpha=0.01) for n in (200, 2000))
    for price in (
        prices.epoch_nanoseconds, prices.certificate_nanoseconds, prices.multipliers_nanoseconds,
        prices.accelerated_nanoseconds,
        lambda problem: prices.face_product_nanoseconds(problem, 5, problem.n, keeps=False),
    ):  # fmt: skip
        assert 0 < price(small) < price(large)
