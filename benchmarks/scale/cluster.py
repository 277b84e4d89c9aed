"""A cluster of processes on this machine: the same bits as one process, with workers killed and joining; and the price
of a round.

    python benchmarks/scale/cluster.py --gb 0.5 --workers 1 2 4
"""

from __future__ import annotations

import hashlib
import os
import random
import signal
import time

import numpy as np
from common import arguments, dense_rows, overlapping

import fenchel as fl


def main() -> None:
    import distributed

    import fenchel.dask as fd

    parser = arguments(__doc__.splitlines()[0], gb=0.2, memory="60MB")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--features", type=int, default=256)
    parser.add_argument("--price", action="store_true", help="the price of a round alone: nobody is killed")
    given = parser.parse_args()
    files = dense_rows(given.folder.resolve(), given.gb, given.features)
    rows = fl.open_data(files[0], target=str(files[1]), memory=given.memory)  # too little to hold the rows
    settings = {"loss": "logistic", "penalty": fl.GroupLasso(overlapping(given.features)), "alpha": 0.002}

    def tell(name: str, pool: object) -> None:
        began = time.perf_counter()
        result = fl.solve(fl.Problem(pool, **settings))
        sha = hashlib.sha256(result.coef.tobytes()).hexdigest()[:16]
        seconds = time.perf_counter() - began
        print(f"{name:24s} {sha}  {result.epochs} passes  gap {result.relative_gap:.1e}  {seconds:.1f} s", flush=True)

    tell("one process, from disk", rows)
    run = fd.DaskPool.run
    for count in given.workers:
        with (
            distributed.LocalCluster(
                n_workers=count,
                threads_per_worker=1,
                dashboard_address=None,
                death_timeout=300,  # more than cores
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            tell(f"{count} workers", fd.distribute(rows, client))
            _price(fd.distribute(rows, client), given.features)
            if count < 2 or given.price:
                continue
            rounds = random.Random(0).sample(range(2, 7), 3)

            def deadly(self: object, jobs: object, rounds: list[int] = rounds, cluster: object = cluster) -> object:
                if self.round in rounds:
                    rounds.remove(self.round)
                    os.kill(next(iter(cluster.workers.values())).process.pid, signal.SIGKILL)
                return run(self, jobs)

            fd.DaskPool.run = deadly
            tell(f"{count} workers, three kills", fd.distribute(rows, client))
            done = []

            def all_die(self: object, jobs: object, done: list[int] = done, cluster: object = cluster) -> object:
                if self.round == 3 and not done:
                    done.append(1)
                    for worker in cluster.workers.values():
                        os.kill(worker.process.pid, signal.SIGKILL)
                return run(self, jobs)

            fd.DaskPool.run = all_die
            tell(f"{count} workers, all killed", fd.distribute(rows, client))
            fd.DaskPool.run = run
            pool = fd.distribute(rows, client)
            cluster.scale(count + 1)
            tell(f"{count} workers, one joins", pool)


def _price(pool: object, p: int) -> None:
    """Seconds of a round."""
    problem = fl.Problem(pool, loss="logistic", penalty=fl.L1())
    problem.look(np.zeros(p + 1))
    began = time.perf_counter()
    for k in range(1, 6):
        problem.look(np.full(p + 1, 1e-3 * k))
    print(f"    a round: {(time.perf_counter() - began) / 5 * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
