"""The estimators of a cluster on arrays in memory are estimators like others."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

distributed = pytest.importorskip("distributed")
import fenchel.dask as fd  # noqa: E402

MODELS = [fd.StructuredRegressor(alpha=0.1), fd.StructuredClassifier(alpha=0.01)]


@pytest.fixture(scope="module", autouse=True)
def cluster():
    """Of threads: checks are many, and rows few."""
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as made,
        distributed.Client(made),
    ):
        yield made


@parametrize_with_checks(MODELS)
def test_scikit_learn(estimator, check):
    check(estimator)
