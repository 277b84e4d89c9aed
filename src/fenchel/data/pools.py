"""Pools of rows: partitions, wherever they are, that jobs are run on."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from .._validate import AnyArray, Array
from ..foundation.lazy import lazy
from .exact_sums import ExactSum
from .jobs import MOST_LABELS, Stats
from .partitions import Partition
from .roles import Job


@dataclasses.dataclass
class Outcome:
    """What a job brought: the sum over all partitions, and what each of them gave beside, by its number."""

    sums: Array
    kept: list[Any]


@dataclasses.dataclass(frozen=True)
class Reading:
    """How far a pass has come: bytes, seconds, and which pass it is."""

    done: int
    total: int
    seconds: float
    number: int

    def __str__(self) -> str:
        rate = self.done / max(self.seconds, 1e-9)
        left = (self.total - self.done) / max(rate, 1e-9)
        return (
            f"pass {self.number}: {self.done / 1e9:.2f} of {self.total / 1e9:.2f} GB at {rate / 1e9:.2f} GB/s, "
            f"{left:.0f} s left"
        )


class Gathering:
    """The outcome of several jobs, as partitions report in any order."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self.jobs = jobs
        self.sums: list[ExactSum | None] = [None] * len(jobs)
        self.kept: list[dict[int, Any]] = [{} for _ in jobs]

    def add(self, part: Partition) -> None:
        """Run the jobs on a partition."""
        for k, job in enumerate(self.jobs):
            values, kept = job(part)
            if values is not None:
                self._sum(k, ExactSum.of(values))
            if kept is not None:
                self.kept[k][part.number] = kept

    def _sum(self, k: int, one: ExactSum) -> None:
        before = self.sums[k]
        self.sums[k] = one if before is None else before + one

    def merge(self, other: Gathering) -> Gathering:
        """With what somebody else gathered."""
        for k, one in enumerate(other.sums):
            if one is not None:
                self._sum(k, one)
            self.kept[k].update(other.kept[k])
        return self

    def outcomes(self) -> list[Outcome]:
        return [
            Outcome(np.zeros(0) if total is None else total.rounded(), [kept[k] for k in sorted(kept)])
            for total, kept in zip(self.sums, self.kept, strict=True)
        ]


@dataclasses.dataclass(frozen=True)
class Facts:
    """What one pass tells of the rows.

    Attributes
    ----------
    mean_squares : array (p,)
    weight_sum : float
    labels : array or None
        The different targets, where they are few.
    counted : array or None
        Those among them with a row whose weight is not zero.
    largest : float
        The largest size of a target.
    offset : float
        The largest size of an offset.
    together : int
        Rows of the largest partition: so many are added in plain sums.
    """

    n: int
    p: int
    outputs: int
    sparse: bool
    dtype: np.dtype[Any]
    stored: int
    nbytes: int
    mean_squares: Array
    weight_sum: float
    weighted: bool
    labels: AnyArray | None
    counted: AnyArray | None
    tasks: int
    largest: float
    offset: float
    together: int

    @property
    def positive_weight(self) -> float:
        """The sum of the weights; a ValueError where all are zero."""
        if not self.weight_sum > 0:
            raise ValueError(
                f"sample_weight is zero in all {self.n} rows, so that none of them counts; give a weight above 0 to "
                "those that shall, or leave the weights out"
            )
        return self.weight_sum

    @classmethod
    def of(cls, outcome: Outcome) -> Facts:
        """From the outcome of :class:`fenchel.data.jobs.Stats`."""
        known = [one for one in outcome.kept if one["n"]]
        if not known:
            raise ValueError("there are no rows to learn from")
        first = known[0]
        for key, what in (("p", "columns"), ("outputs", "targets"), ("sparse", "storage")):
            others = {one[key] for one in known}
            if len(others) > 1:
                raise ValueError(f"partitions differ in their {what}: {sorted(others)}")
        n = int(outcome.sums[0])
        labels: AnyArray | None = None
        counted: AnyArray | None = None
        if all(one["labels"] is not None for one in known):
            labels, counted = (np.unique(np.concatenate([one[key] for one in known])) for key in ("labels", "counted"))
            if labels.size > MOST_LABELS:
                labels = counted = None
        return cls(
            n, first["p"], first["outputs"], first["sparse"], np.result_type(*{one["dtype"] for one in known}),
            sum(one["stored"] for one in known), sum(one["bytes"] for one in known), outcome.sums[2:] / n,
            float(outcome.sums[1]), any(one["weighted"] for one in known), labels, counted,
            *(max(one[key] for one in known) for key in ("tasks", "largest", "offset", "n")),
        )  # fmt: skip


class Pool:
    """See :class:`fenchel.data.roles.RowPool`; what all kinds share."""

    home = "memory"
    memory: float | None = None
    held = False  # whether these are the rows of a sample, which are read for nothing
    names: Sequence[str] | None = None
    watch: Callable[[Reading], None] | None = None  # told how far a pass has come

    @property
    def count(self) -> int:
        """Partitions."""
        raise NotImplementedError

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        """Every job on every partition, for one read of the data."""
        raise NotImplementedError

    @lazy
    def facts(self) -> Facts:
        """Of the data: takes a pass, once."""
        return Facts.of(self.run([Stats()])[0])


class Inline(Pool):
    """Partitions in memory, one after another."""

    def __init__(self, parts: Iterable[Partition]) -> None:
        self.parts = list(parts)

    @property
    def count(self) -> int:
        return len(self.parts)

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        gathered = Gathering(jobs)
        for part in self.parts:
            gathered.add(part)
        return gathered.outcomes()


class SharedPasses:
    """One pass over a pool for the jobs of several solvers, each in a thread of its own.

    A solver that asks waits until all others ask too, or are done; then one pass serves them all. What each of them
    gets does not depend on the others, so that its answer is the one it would find alone.
    """

    def __init__(self, pool: Any, members: int) -> None:
        self.pool, self.live = pool, members
        self.memory = None if pool.memory is None else pool.memory / members  # each holds a sample of its own
        self.changed = threading.Condition()
        self.waiting: list[_Request] = []
        self.passes, self.ended = 0, False

    def member(self) -> SharedMember:
        return SharedMember(self)

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        request = _Request(list(jobs))
        with self.changed:
            self.waiting.append(request)
            self.changed.notify_all()
            while request.outcomes is None and request.error is None:
                if len(self.waiting) == self.live:
                    self._serve()
                else:
                    self.changed.wait()
        if request.error is not None:
            raise request.error
        assert request.outcomes is not None
        return request.outcomes

    def leave(self) -> None:
        """A solver is done."""
        with self.changed:
            self.live -= 1
            if self.waiting and len(self.waiting) == self.live:
                self._serve()
            self.changed.notify_all()

    def end(self) -> None:
        """No further pass is made: whoever asks for one gets an error."""
        self.ended = True

    def _serve(self) -> None:
        requests, self.waiting = self.waiting, []
        try:
            if self.ended:
                raise RuntimeError("the passes were ended by those who asked for them")
            found = iter(self.pool.run([job for request in requests for job in request.jobs]))
            self.passes += 1
            for request in requests:
                request.outcomes = [next(found) for _ in request.jobs]
        except BaseException as error:  # all of them shall know
            for request in requests:
                request.error = error
        self.changed.notify_all()


@dataclasses.dataclass
class _Request:
    jobs: list[Job]
    outcomes: list[Outcome] | None = None
    error: BaseException | None = None


class SharedMember(Pool):
    """A pool whose passes are shared with others."""

    def __init__(self, shared: SharedPasses) -> None:
        self.shared, self.home = shared, shared.pool.home
        self.memory, self.names = shared.memory, shared.pool.names
        self.facts = shared.pool.facts

    @property
    def count(self) -> int:
        return int(self.shared.pool.count)

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        return self.shared.run(jobs)


def ahead(make: Iterator[Any], most: int) -> Iterator[Any]:
    """What an iterator gives, made by a thread that is at most so many steps ahead."""
    import queue

    line: queue.Queue[tuple[bool, Any]] = queue.Queue(maxsize=most)
    stop = threading.Event()

    def fill() -> None:
        try:
            for item in make:
                while not stop.is_set():
                    try:
                        line.put((True, item), timeout=0.1)
                        break
                    except queue.Full:
                        continue
                del item
                if stop.is_set():
                    return
            end: tuple[bool, Any] = (False, None)
        except BaseException as error:  # the reader's failure is the caller's
            end = (False, error)
        while not stop.is_set():
            try:
                line.put(end, timeout=0.1)
                return
            except queue.Full:
                continue

    thread = threading.Thread(target=fill, daemon=True, name="fenchel reader")
    thread.start()
    try:
        while True:
            good, item = line.get()
            if not good:
                if item is not None:
                    raise item
                return
            yield item
            del item
    finally:
        stop.set()
        thread.join()
