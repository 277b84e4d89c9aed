"""A pool of rows on a Dask cluster.

Partitions are made by tasks, and gathered into shards, about one for every worker: a round is one task per shard. The
scheduler sends that task to where the shard is, and makes the shard again from its graph where it was lost. Nothing is
pinned to a worker, and no worker keeps anything but rows.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import math
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..data.partitions import Partition
from ..data.pools import Gathering, Outcome, Pool
from ..data.roles import Job
from ..data.streamed import Streamed
from ..problem.pooled import ROOM

log = logging.getLogger("fenchel.dask")

RETRIES = 2  # of a task that failed with its worker; more: longer before a shard that kills workers is named
TREE = 8  # results that are added by one task, where shards are many; more: more of them in the memory of one worker
INLINE = 1 << 20  # bytes of a job that are sent with every task; larger ones are scattered first
PIECE = 0.1  # of the memory of a worker: such a shard; larger: two of them at once fill it


def current_client(client: Any = None) -> Any:
    """The client as given, or the current one; a ValueError that says how to make one."""
    try:
        import distributed
    except ImportError:
        raise ImportError("fenchel.dask needs distributed: pip install 'fenchel[dask]'") from None
    if client is not None:
        if not isinstance(client, distributed.Client):
            raise ValueError(f"client is {client!r}; it must be a distributed.Client")
        return client
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError(
            "there is no Dask client; make one first, e.g. client = distributed.Client(), or pass client="
        ) from None


class DaskPool(Pool):
    """Partitions on a cluster.

    Parameters
    ----------
    client : distributed.Client
    parts : list of delayed Partitions
    names : list of str, optional
        Of the features.
    nbytes : float
        Of all rows, about; nan where nobody knows.
    kind : (dtype, bool)
        Of the rows, and whether they are sparse: what kernels are compiled for.
    """

    home = "a cluster"

    def __init__(
        self, client: Any, parts: Sequence[Any], names: Sequence[str] | None = None, nbytes: float = math.nan,
        kind: tuple[str, bool] = ("float64", False),
    ) -> None:  # fmt: skip
        self.client, self.names, self._count = client, names, len(parts)
        self.round, self.tag = 0, uuid.uuid4().hex[:8]
        if not parts:
            raise ValueError("there are no partitions")
        from .warm_up import WarmUp

        self.tasks: Sequence[Any] | None = None
        client.register_plugin(WarmUp(*kind))
        self.workers = self._workers()
        self.spans: list[tuple[int, int]] = []  # of every shard: its first partition, and the one after its last
        self.shards = client.compute(self._sharded(parts, nbytes))

    @property
    def count(self) -> int:
        return self._count

    def _workers(self) -> dict[str, float]:
        """Addresses, and bytes of memory."""
        found = self.client.scheduler_info(n_workers=-1)["workers"]
        return {address: float(one.get("memory_limit") or 0.0) for address, one in found.items()}

    def _sharded(self, parts: Sequence[Any], nbytes: float) -> list[Any]:
        """Lists of neighbouring partitions; delayed."""
        import dask

        workers = max(len(self.workers), 1)
        shards, room = workers, sum(self.workers.values())
        if math.isfinite(nbytes) and room and nbytes > ROOM * room:
            shards = max(shards, math.ceil(nbytes / (PIECE * room / workers)))
            log.info("%.3g GB of rows, %.3g GB of memory: %d smaller shards, which Dask may put on disks", nbytes / 1e9,
                     room / 1e9, shards)  # fmt: skip
        shards = min(shards, len(parts))
        self.spans = list(itertools.pairwise(len(parts) * k // shards for k in range(shards + 1)))
        self.made = {str(getattr(part, "key", "")): k for k, part in enumerate(parts)}
        gather = dask.delayed(_shard, pure=False)
        return [
            gather(list(parts[first:last]), dask_key_name=f"fenchel-shard-{self.tag}-{k}")
            for k, (first, last) in enumerate(self.spans)
        ]

    def _partitions_of(self, key: str) -> str:
        """What a task works on, as a message names it."""
        if key in self.made:
            first = last = self.made[key]
        elif self.tag in key and not key.startswith("fenchel-sum-"):
            first, end = self.spans[int(key.rpartition("-")[2])]
            last = end - 1
        else:
            return f"task {key}"
        which = f"partition {first}" if first == last else f"partitions {first} to {last}"
        return f"{which} (of {self.count}, numbered from 0; task {key})"

    def run(self, jobs: Sequence[Job]) -> list[Outcome]:
        self.round += 1
        found: list[Any] = []
        try:
            found = self._submitted(jobs)
            with self._watched():
                gathered: list[Gathering] = self.client.gather(found)
        except KeyboardInterrupt:
            self.client.cancel(found)
            raise
        except Exception as error:
            raise self._explained(error) from error
        self._notice_losses()
        total = Gathering(jobs)
        for one in gathered:
            total.merge(one)
        return total.outcomes()

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """Dask waits for workers to join where none is left: after a while the log says so."""
        import dask

        patience = dask.utils.parse_timedelta(dask.config.get("distributed.comm.timeouts.connect"))
        done = threading.Event()

        def watch() -> None:
            while not done.wait(patience):
                if self.client.status == "running" and not self._workers():
                    log.warning("no worker is left in round %d; the fit goes on when one joins the cluster", self.round)

        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    def _submitted(self, jobs: Sequence[Job]) -> list[Any]:
        """Futures of what a few tasks gather, each from several shards."""
        client = self.client
        names = "-".join(sorted({job.name for job in jobs}))
        tag = f"{names}-{self.tag}-{self.round}"
        sent: Any = list(jobs)
        if _size(sent) > INLINE:
            sent = client.scatter([sent], broadcast=False, hash=False)[0]
        found = [
            client.submit(_work, sent, shard, pure=False, retries=RETRIES, key=f"fenchel-{tag}-{k}")
            for k, shard in enumerate(self.shards)
        ]
        level = 0
        while len(found) > TREE:
            level += 1
            found = [
                client.submit(_merge, found[first : first + TREE], pure=False, retries=RETRIES,
                              key=f"fenchel-sum-{tag}-{level}-{first}")
                for first in range(0, len(found), TREE)
            ]  # fmt: skip
        return found

    def _explained(self, error: Exception) -> Exception:
        """An error of the cluster, with a way out."""
        import distributed

        if isinstance(error, distributed.KilledWorker):
            tried = error.allowed_failures + 1
            return RuntimeError(
                f"{self._partitions_of(str(error.task))}: {tried} workers ended over it, one after another, the last "
                f"one {error.last_worker.address}. Its rows are likely too many for the memory of a worker, or they "
                "hold something that ends the process that reads them. Give smaller chunks, fewer threads to a worker "
                "or more memory, or look at these rows alone"
            )
        if self.client.status in ("closing", "closed"):
            return RuntimeError(
                f"the client was closed in round {self.round} of the fit, and the cluster forgets the rows with it. "
                "Keep the client open until the fit is done; with another one fit again, or resume from a checkpoint"
            )
        if isinstance(error, distributed.client.FutureCancelledError):
            return RuntimeError(
                "the cluster has forgotten the rows: data that was scattered to a worker was lost with it. Give rows "
                "that can be made again (from files, say), or resume from a checkpoint"
            )
        return error

    def _notice_losses(self) -> None:
        """Say in the log who came and who went."""
        now = self._workers()
        for address in self.workers.keys() - now.keys():
            log.warning("worker %s was lost in round %d; its rows were made again elsewhere", address, self.round)
        for address in now.keys() - self.workers.keys():
            log.info("worker %s joined in round %d", address, self.round)
        self.workers = now


def _shard(parts: list[Partition]) -> list[Partition]:
    return parts


def _work(jobs: list[Job], shard: list[Partition]) -> Gathering:
    gathered = Gathering(jobs)
    for part in shard:
        gathered.add(part)
    gathered.jobs = ()  # what was asked need not come back
    return gathered


def _merge(found: list[Gathering]) -> Gathering:
    total = found[0]
    for one in found[1:]:
        total.merge(one)
    return total


def _size(jobs: list[Any]) -> int:
    own = [vars(getattr(job, "job", job)) for job in jobs]  # a job may be around another
    return sum(value.nbytes for one in own for value in one.values() if isinstance(value, np.ndarray))


# -- where partitions come from ---------------------------------------------------------------------------


def distribute(rows: Streamed, client: Any = None) -> DaskPool:
    """The rows that :func:`fenchel.open_data` opened, read by the workers of a cluster and kept there.

    All workers must see the files, and the shards of files that were converted, under the same paths.
    """
    import dask

    client = current_client(client)
    read = dask.delayed(_read, pure=False)
    parts = [read(reader) for reader in rows.readers]
    first = rows.readers[0]()
    pool = DaskPool(client, parts, rows.names, float(rows.nbytes), (first.arrays[0].dtype.name, first.sparse))
    pool.tasks, pool.memory = rows.tasks, rows.memory
    return pool


def _read(reader: Callable[[], Partition]) -> Partition:
    return reader()


def from_collections(client: Any, X: Any, y: Any, sample_weight: Any, offset: Any, task: Any) -> DaskPool:
    """A pool of dask arrays, frames, lists of delayed pieces, or of numpy arrays."""
    import dask

    pieces, names, nbytes, kind = _pieces(X)
    lengths = _lengths(X)
    others = [
        [None] * len(pieces) if one is None else _beside(name, one, len(pieces), lengths)
        for name, one in (("y", y), ("sample_weight", sample_weight), ("offset", offset), ("task", task))
    ]
    make = dask.delayed(_partition, pure=False)
    parts = [make(k, piece, *beside) for k, (piece, *beside) in enumerate(zip(pieces, *others, strict=True))]
    pool = DaskPool(client, parts, names, nbytes, kind)
    for k, given in enumerate(zip(pieces, *others, strict=True)):
        pool.made.update({str(one.key): k for one in given if hasattr(one, "key")})
    return pool


def _partition(number: int, X: Any, y: Any, weight: Any, offset: Any, task: Any) -> Partition:
    """One piece of every collection, as a partition."""
    import scipy.sparse as sp

    if hasattr(X, "to_numpy"):
        single = all(str(kind) == "float32" for kind in X.dtypes)
        X = X.to_numpy(dtype=np.float32 if single else float)
    elif not sp.issparse(X):
        X = np.asarray(X)
    y, weight, offset, task = (None if one is None else np.asarray(one) for one in (y, weight, offset, task))
    for name, one in (("y", y), ("sample_weight", weight), ("offset", offset), ("task", task)):
        if one is None:
            continue
        if not one.ndim or len(one) != X.shape[0]:
            found = len(one) if one.ndim else 1
            raise ValueError(
                f"partition {number}: {name} has {found} entries, but X has {X.shape[0]} rows; give {name} in the "
                "partitions of X, an entry for every row"
            )
        if one.ndim > 1 and name != "y":
            raise ValueError(_flat(name, one.shape, X.shape[0]))
    if y.dtype.kind == "O":
        y = y.astype(str)
    return Partition.of(number, X, y, weight, offset, task)


def _is_array(given: Any) -> bool:
    return hasattr(given, "chunks") and hasattr(given, "to_delayed")


def _pieces(X: Any) -> tuple[list[Any], list[str] | None, float, tuple[str, bool]]:
    """Delayed pieces of rows, names of columns, bytes, and what the rows are made of."""
    if _is_array(X):
        if X.ndim != 2:
            raise ValueError(f"X has {X.ndim} dimension(s); it must have two")
        if len(X.chunks[1]) > 1:
            log.info("X has %d chunks of columns; rows are put together", len(X.chunks[1]))
            X = X.rechunk({1: -1})
        sparse = hasattr(X._meta, "indptr") or type(X._meta).__module__.startswith("scipy.sparse")
        kind = X.dtype.name if X.dtype.name in ("float32", "float64") else "float64"
        return list(X.to_delayed().ravel()), None, float(X.nbytes), (kind, sparse)
    if hasattr(X, "to_delayed"):
        from pandas.api.types import is_numeric_dtype

        words = [str(name) for name, kind in X.dtypes.items() if not is_numeric_dtype(kind)]
        if words:
            raise ValueError(
                f"column {words[0]!r} of X holds words, categories or dates, not numbers; make numbers of it first "
                "(dask.dataframe.get_dummies(X.categorize()), say), or leave it out"
            )
        return list(X.to_delayed()), [str(name) for name in X.columns], math.nan, ("float64", False)
    if isinstance(X, (list, tuple)) and X and all(map(_is_delayed, X)):
        return list(X), None, math.nan, ("float64", False)
    raise ValueError(f"X is {type(X).__name__}; it must be a dask array, a dask frame or a list of delayed pieces")


def _is_delayed(given: Any) -> bool:
    return hasattr(given, "dask") or hasattr(given, "key")


def is_table(given: Any) -> bool:
    """Whether a list holds numbers row by row; otherwise it holds pieces."""
    return isinstance(given, (list, tuple)) and not any(_is_delayed(one) or np.ndim(one) > 1 for one in given)


def _flat(name: str, shape: tuple[int, ...], rows: int) -> str:
    return f"{name} has shape {shape}; it must hold one number for each of the {rows} rows"


def _lengths(X: Any) -> tuple[float, ...] | None:
    return X.chunks[0] if _is_array(X) else None


def _beside(name: str, given: Any, count: int, lengths: tuple[float, ...] | None) -> list[Any]:
    """Pieces that belong to those of X."""
    if _is_array(given):
        known = lengths is not None and not any(math.isnan(one) for one in (*lengths, *given.chunks[0]))
        if known and given.chunks[0] != lengths:
            if sum(given.chunks[0]) != sum(lengths or ()):
                raise ValueError(f"{name} has {sum(given.chunks[0])} entries, but X has {sum(lengths or ())} rows")
            given = given.rechunk({0: lengths})
        if given.ndim == 2:
            given = given.rechunk({1: -1})
        pieces = list(given.to_delayed().ravel())
    elif hasattr(given, "to_delayed"):
        pieces = list(given.to_delayed())
    elif isinstance(given, (list, tuple)) and any(_is_delayed(one) or np.ndim(one) for one in given):
        pieces = list(given)
    elif lengths is not None and not any(math.isnan(one) for one in lengths):
        ends = np.cumsum([0, *lengths]).astype(int)
        values = np.asarray(given)
        if not values.ndim or (values.ndim > 1 and name != "y"):
            raise ValueError(_flat(name, values.shape, ends[-1]))
        if len(values) != ends[-1]:
            raise ValueError(f"{name} has {len(values)} entries, but X has {ends[-1]} rows")
        pieces = [values[first:last] for first, last in itertools.pairwise(ends)]
    else:
        raise ValueError(f"{name} is {type(given).__name__}, but the lengths of X's pieces are not known; give pieces")
    if len(pieces) != count:
        raise ValueError(f"{name} has {len(pieces)} pieces, but X has {count}; give them the same partitions")
    return pieces
