"""The estimators on dask collections: fitted where the rows are, and lazy where they predict."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from .. import models as local
from ..data.streamed import rows_together
from .pool import _is_array, current_client, from_collections, is_table

if TYPE_CHECKING:
    from typing_extensions import Self


@contextlib.contextmanager
def _client(given: Any) -> Iterator[Any]:
    """A client to wait with: within a task one that lets others work meanwhile."""
    import distributed

    if given is None:
        try:
            distributed.get_worker()
        except ValueError:
            pass
        else:
            with distributed.worker_client() as own:
                yield own
            return
    yield current_client(given)


class _OnCluster:
    """What the four share. `client` is no parameter: it is neither cloned nor saved."""

    _local: ClassVar[type[Any]]
    client: Any = None

    def __init__(self, *given: Any, client: Any = None, **named: Any) -> None:
        super().__init__(*given, **named)
        self.client = client

    def __init_subclass__(cls, **more: Any) -> None:
        """The constructor shows the parameters of the local estimator."""
        super().__init_subclass__(**more)
        if "_local" not in vars(cls):
            return

        @functools.wraps(cls._local.__init__)
        def init(self: Any, *given: Any, client: Any = None, **named: Any) -> None:
            _OnCluster.__init__(self, *given, client=client, **named)

        setattr(cls, "__init__", init)  # noqa: B010  # what mypy has no words for

    @classmethod
    def _get_param_names(cls) -> list[str]:
        names: list[str] = cls._local._get_param_names()
        return names

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {key: value for key, value in state.items() if key != "client"}

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, task: Any = None, offset: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : dask array (n, p), dask frame, or list of delayed pieces of rows
            Chunks of unknown length are fine; chunks of columns are put together. Also numpy arrays and lists of rows,
            for a try, and rows that :func:`fenchel.dask.distribute` made.
        y : dask array, series, or list of delayed pieces, in the same partitions
            Also an array or a list with an entry for every row, where the lengths of X's chunks are known.
        sample_weight, task, offset : likewise, optional
            Tasks are whole numbers, from 0.

        Returns
        -------
        self
        """
        from ..data import Pool

        if isinstance(X, Pool):
            return self._fit_pool(X, y=y, sample_weight=sample_weight, task=task, offset=offset)  # type: ignore[attr-defined, no-any-return]
        if y is None:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None")
        with _client(self.client) as client:
            if not hasattr(X, "to_delayed") and (is_table(X) or not isinstance(X, (list, tuple))):
                X, y = self._wrapped(X, y)
            pool = from_collections(client, X, y, sample_weight, offset, task)
            self._fit_pool(pool, y=None, sample_weight=None, task=None, offset=None)  # type: ignore[attr-defined]
        return self

    def _wrapped(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Arrays in memory as dask arrays."""
        import dask.array as da
        from sklearn.utils.validation import validate_data

        several = not self._local._classification
        X, y = validate_data(self, X, y, accept_sparse=["csr"], dtype=[np.float64, np.float32], multi_output=several)
        size = (X.data.nbytes + X.indices.nbytes if sp.issparse(X) else X.nbytes) / X.shape[0]
        return da.from_array(X, chunks=(rows_together(size), X.shape[1]), asarray=False), y

    def _lazily(self, name: str, X: Any, width: int | None, dtype: Any) -> Any:
        """A method of the local model on every piece."""
        model = self.to_local()
        if hasattr(model, "tasks_") or model._with_offset:
            raise ValueError("a model with tasks or offsets predicts pieces by to_local(), each with its own")
        if _is_array(X):
            X = X.rechunk({1: -1}) if len(X.chunks[1]) > 1 else X
            if width is None:
                return X.map_blocks(_call, model, name, dtype=dtype, drop_axis=1)
            return X.map_blocks(_call, model, name, dtype=dtype, chunks=(X.chunks[0], (width,)))
        meta = np.zeros(0 if width is None else (0, width), dtype=dtype)
        return X.map_partitions(_call, model, name, meta=meta)

    def _outputs(self) -> int | None:
        rows = np.atleast_2d(self.coef_).shape[0]  # type: ignore[attr-defined]
        return None if rows == 1 else rows

    def predict(self, X: Any, task: Any = None, offset: Any = None) -> Any:
        """As the local estimator; lazy for a dask collection, which goes without tasks and offsets."""
        if not hasattr(X, "to_delayed"):
            return super().predict(X, task, offset)  # type: ignore[misc]
        if self._local._classification:
            return self._lazily("predict", X, None, self.classes_.dtype)  # type: ignore[attr-defined]
        return self._lazily("predict", X, self._outputs(), float)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None, task: Any = None, offset: Any = None) -> float:
        """As the local estimator; predictions and targets of dask collections are brought here for it."""
        if not hasattr(X, "to_delayed"):
            return float(super().score(X, y, sample_weight, task, offset))  # type: ignore[misc]
        import dask
        from sklearn.metrics import accuracy_score, r2_score

        found, target, weight = dask.compute(self.predict(X), y, sample_weight)
        measure = accuracy_score if self._local._classification else r2_score
        return float(measure(target, found, sample_weight=weight))

    def to_local(self) -> Any:
        """The same model without a cluster: an estimator of :mod:`fenchel`."""
        model = self._local(**self.get_params(deep=False))  # type: ignore[attr-defined]
        kept = {key: value for key, value in vars(self).items() if key.endswith("_") or key == "_with_offset"}
        vars(model).update(kept)
        return model


def _call(part: Any, model: Any, name: str) -> Any:
    return getattr(model, name)(part)


class _Labels(_OnCluster):
    def decision_function(self, X: Any, task: Any = None, offset: Any = None) -> Any:
        """As the local estimator; lazy for a dask collection, which goes without tasks and offsets."""
        if not hasattr(X, "to_delayed"):
            return super().decision_function(X, task, offset)  # type: ignore[misc]
        return self._lazily("decision_function", X, self._outputs(), float)

    def predict_proba(self, X: Any, task: Any = None, offset: Any = None) -> Any:
        """As the local estimator; lazy for a dask collection, which goes without tasks and offsets."""
        if not hasattr(X, "to_delayed"):
            return super().predict_proba(X, task, offset)  # type: ignore[misc]
        return self._lazily("predict_proba", X, len(self.classes_), float)  # type: ignore[attr-defined]


class StructuredClassifier(_Labels, local.StructuredClassifier):
    """:class:`fenchel.StructuredClassifier` on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client, optional
        The current one by default. It is not saved with the model.
    **parameters
        Those of :class:`fenchel.StructuredClassifier`.
    """

    _local = local.StructuredClassifier


class StructuredRegressor(_OnCluster, local.StructuredRegressor):
    """:class:`fenchel.StructuredRegressor` on a Dask cluster; see :class:`fenchel.dask.StructuredClassifier`."""

    _local = local.StructuredRegressor


class StructuredClassifierCV(_Labels, local.StructuredClassifierCV):  # type: ignore[misc]
    """:class:`fenchel.StructuredClassifierCV` on a Dask cluster; `cv` is a number of folds, which share all passes."""

    _local = local.StructuredClassifierCV


class StructuredRegressorCV(_OnCluster, local.StructuredRegressorCV):  # type: ignore[misc]
    """:class:`fenchel.StructuredRegressorCV` on a Dask cluster; `cv` is a number of folds, which share all passes."""

    _local = local.StructuredRegressorCV
