"""Rows in a pool whose weights are multiplied by a number for each of their labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._validate import AnyArray, Array
from ..foundation.lazy import lazy
from .partitions import Partition
from .pools import Facts, Outcome, Pool, Reading
from .roles import Job


@dataclasses.dataclass(frozen=True)
class LabelWeights:
    """The sum of the weights of every label."""

    labels: AnyArray
    name = "labels"

    def __call__(self, part: Partition) -> tuple[Array, None]:
        code = np.searchsorted(self.labels, part.target)
        return np.bincount(code, part.weight if part.weight.size else None, self.labels.size).astype(float), None


@dataclasses.dataclass(frozen=True)
class Reweighted:
    """A job on rows with other weights."""

    job: Job
    labels: AnyArray
    factors: Array

    @property
    def name(self) -> str:
        return self.job.name

    def __call__(self, part: Partition) -> tuple[Array | None, Any]:
        factor = self.factors[np.searchsorted(self.labels, part.target)]
        return self.job(dataclasses.replace(part, weight=part.weight * factor if part.weight.size else factor))


class ReweightedPool(Pool):
    """The rows of a pool, with weights that are multiplied by a factor for each of their labels.

    Parameters
    ----------
    pool : Pool
    factors : callable
        From the sums of the weights of the labels (in the order of ``pool.facts.labels``) to the factors.
    """

    def __init__(self, pool: Pool, factors: Callable[[Array], Array]) -> None:
        labels = pool.facts.labels
        assert labels is not None
        self.pool, self.labels = pool, labels
        self.home, self.memory, self.names, self.held = pool.home, pool.memory, pool.names, pool.held
        self.tasks = getattr(pool, "tasks", None)
        self.sums = pool.run([LabelWeights(labels)])[0].sums
        self.factors = factors(self.sums)

    @property
    def watch(self) -> Callable[[Reading], None] | None:
        return self.pool.watch

    @watch.setter
    def watch(self, tell: Callable[[Reading], None] | None) -> None:
        self.pool.watch = tell

    @property
    def count(self) -> int:
        return self.pool.count

    @lazy
    def facts(self) -> Facts:
        """Those of the pool, with the weights that count here: no pass."""
        sums = self.factors * self.sums
        return dataclasses.replace(
            self.pool.facts, weighted=True, weight_sum=float(sums.sum()), counted=self.labels[sums > 0]
        )

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        return self.pool.run([Reweighted(job, self.labels, self.factors) for job in jobs])
