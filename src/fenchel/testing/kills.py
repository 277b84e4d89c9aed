"""Processes that are killed at random moments: every file is whole or absent, and a run goes on to the same bits.

    python -m fenchel.testing.kills --kills 300 --seed 0

Commands of the command line and a saved run are started again and again, each in a folder of its own, and killed
(SIGKILL) after a random part of the time that they take. After each kill every file of the folder must be one that can
be read whole, but for those that are being written, whose names begin with a dot. In the end the command runs through,
must leave nothing of those, and its files must hold what those of an undisturbed run hold, times left out. Exits with 1
if one of that fails.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..foundation.files import read_json, read_npz
from ..models.saved_model import Model
from ..solver.result import Result

_RUN = """
import os, sys
import numpy as np, fenchel as fl
data = np.load("data.npz")
problem = fl.Problem(data["X"], data["y"], loss="hinge", penalty=fl.L1(), alpha=1e-3)
run = fl.Result.load("run.npz") if os.path.exists("run.npz") else None
while run is None or run.epochs < 60:
    run = fl.solve(problem, "sdca-admm", tol=0, max_epochs=3, check_every=1, warm_start=run)
    run.save("run.npz")
"""
_QUICK = ("reproduce", "artificial", "--quick", "--rows", "60", "--side", "4", "--repetitions", "1", "--window", "0.05")
_METHODS = ("--method", "sdca-admm", "--method", "opg-admm")
_TIMED = {"seconds", "version", "work", "nanoseconds"}  # what differs between two runs that are the same


class Task(NamedTuple):
    """A command, and how to look at each file that it writes; `timed` ones differ in what they hold."""

    name: str
    command: list[str]
    looks: dict[str, Callable[[Path], Any]]
    timed: bool = False


def tasks(quick: bool = False) -> list[Task]:
    """What is killed; the quick one is a saved run."""
    fenchel = [sys.executable, "-m", "fenchel"]
    groups = ("--penalty", "group-lasso", "--groups", "groups.json")
    fit = Task("fit", [*fenchel, "fit", "data.npz", *groups, "-q"], {"model.json": _model})
    saved = Task("saved run", [sys.executable, "-c", _RUN], {"run.npz": _run})
    if quick:
        return [saved]
    return [
        fit,
        Task("fit, report", [*fenchel, "fit", "data.npz", "--report", "page.html", "--picture", "p.png", "-q"],
             {"model.json": _model, "page.html": _page, "p.png": _picture}),
        Task("path", [*fenchel, "path", "data.npz", *groups, "--n-alphas", "12", "--coefficients", "c.npz", "-q"],
             {"path.csv": _table, "c.npz": _arrays}),
        Task("cv", [*fenchel, "cv", "data.npz", "--n-alphas", "8", "--folds", "3", "--table", "cv.csv", "-q"],
             {"model.json": _model, "cv.csv": _table}),
        saved,
        Task("reproduce", [*fenchel, *_QUICK, *_METHODS, "-o", "out"],
             {"out/settings.json": read_json, "out/parts/*.json": read_json, "out/*.csv": _table,
              "out/report.html": _page, "out/*.png": _picture}, timed=True),
    ]  # fmt: skip


# -- looks: what a file holds, without times; an error where it is not whole -------------------------------


def _model(path: Path) -> Any:
    Model.load(path)
    return _without_times(read_json(path))


def _run(path: Path) -> Any:
    result = Result.load(path)
    state = {key: np.asarray(value).tolist() for key, value in result.state.items() if key != "rng"}
    return result.coef.tolist(), result.primal, result.dual, result.epochs, _without_times(state)


def _table(path: Path) -> Any:
    with open(path, newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    if not rows or any(None in row or None in row.values() for row in rows):
        raise ValueError(f"{path} is cut short")
    return [_without_times(row) for row in rows]


def _arrays(path: Path) -> Any:
    return {name: array.tolist() for name, array in read_npz(path, "an npz file").items()}


def _page(path: Path) -> Any:
    if not path.read_text(encoding="utf-8").rstrip().endswith("</html>"):
        raise ValueError(f"{path} is cut short")
    return None


def _picture(path: Path) -> Any:
    if b"IEND" not in path.read_bytes()[-16:]:
        raise ValueError(f"{path} is cut short")
    return None


def _without_times(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_times(value) for key, value in content.items() if key not in _TIMED}
    return [_without_times(part) for part in content] if isinstance(content, list) else content


# -- kills ---------------------------------------------------------------------------------------------


def killed(task: Task, kills: int, rng: np.random.Generator) -> list[str]:
    """Kill a task so many times, and return what was wrong."""
    with tempfile.TemporaryDirectory() as made:
        calm, folder = Path(made) / "calm", Path(made) / "killed"
        for place in (calm, folder):
            place.mkdir()
            _make_data(place)
        _finish(task, calm)  # what must be compiled is compiled now
        began = time.perf_counter()
        _clear(calm)
        _finish(task, calm)
        span = time.perf_counter() - began
        expected, wrong = _looked_at(task, calm), []
        for _ in range(kills):
            _kill_once(task, folder, rng.uniform(0.02, 1.0) * span)
            try:
                _looked_at(task, folder)
            except Exception as error:
                wrong.append(f"{task.name}: after a kill {error!r}")
            if rng.random() < 0.3:  # the next one begins anew, and does not go on
                _clear(folder)
        _finish(task, folder)
        found = _looked_at(task, folder)
        if sorted(found) != sorted(expected) or not (task.timed or found == expected):
            wrong.append(f"{task.name}: what it holds in the end is not what an undisturbed run holds")
        parts = [str(path) for path in folder.rglob(".fenchel-*")]
        if parts:
            wrong.append(f"{task.name}: {len(parts)} temporary files are left: {parts[0]}")
        return wrong


def _make_data(folder: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 12))
    np.savez(folder / "data.npz", X=X, y=np.where(X[:, 0] + rng.standard_normal(150) > 0, 1, -1))
    (folder / "groups.json").write_text(json.dumps([[j, j + 1, j + 2] for j in range(0, 10, 2)]), encoding="utf-8")


def _kill_once(task: Task, folder: Path, after: float) -> None:
    with _started(task, folder) as process, contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(after)


def _finish(task: Task, folder: Path) -> None:
    with _started(task, folder) as process:
        errors = process.communicate()[1]
    if process.returncode:
        raise RuntimeError(f"{task.name} ended with {process.returncode}: {errors}")


@contextlib.contextmanager
def _started(task: Task, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """The task as a process with all that it starts, which are killed together."""
    pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(task.command, cwd=folder, start_new_session=True, **pipes) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def _clear(folder: Path) -> None:
    """Take away what was written, and leave what somebody is writing, or was."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name not in ("data.npz", "groups.json") and not path.name.startswith("."):
            path.unlink()


def _looked_at(task: Task, folder: Path) -> dict[str, Any]:
    return {
        str(path.relative_to(folder)): look(path) for pattern, look in task.looks.items() for path in
        sorted(folder.glob(pattern)) if not path.name.startswith(".")
    }  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m fenchel.testing.kills", description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng, wrong, todo = np.random.default_rng(given.seed), [], tasks()
    for k, task in enumerate(todo):
        count = given.kills * (k + 1) // len(todo) - given.kills * k // len(todo)
        began = time.perf_counter()
        found = killed(task, count, rng)
        print(f"{task.name:14}{count:6} kills {time.perf_counter() - began:8.1f} s {len(found):6} wrong", flush=True)
        wrong += found
    for line in wrong:
        print(line)
    print(f"{given.kills} kills, seed {given.seed}: {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
