"""Everything in order: step sizes, optima and curves, studies; then tables, figures, claims and the report."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..methods import make_method
from . import figures, report, studies, tables
from .claims import Claim, make_claims
from .data import make_instance
from .measure import find_optimum, run_method
from .settings import Settings
from .store import Store
from .traces import Optimum, Trace, Traces
from .tune import grid, tune

if TYPE_CHECKING:
    from .settings import Curve, DataSet


@dataclasses.dataclass(frozen=True)
class Job:
    """One piece of work; `cost` is a guess of its seconds, for the progress bar."""

    key: tuple[Any, ...]
    cost: float
    options: tuple[Any, ...] = ()


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What a run leaves behind.

    Attributes
    ----------
    folder : Path
    claims : list of Claim
    traces : Traces
    chosen : dict
        Options of the tuned curves, by data set and curve.
    left_out : list of (data set, curve, reason)
    """

    folder: Path
    claims: list[Claim]
    traces: Traces
    chosen: dict[str, Any]
    left_out: list[tuple[str, str, str]]


def reproduce(
    settings: Settings, folder: Path | str, *, jobs: int = 1, fresh: bool = False, progress: bool = False
) -> Outcome:
    """Run an experiment and write its results; what the folder holds already is not run again.

    Parameters
    ----------
    settings : Settings
        Of :func:`.settings.artificial` or :func:`.settings.real`.
    folder : path
        Results of other settings in it are an error, unless `fresh`.
    jobs : int
        Processes side by side. More than there are cores distorts the measured times.
    fresh : bool
        Throw away what an earlier run left in the folder.
    progress : bool
        Show a bar with the time left.
    """
    if int(jobs) != jobs or jobs < 1:
        raise ValueError(f"jobs is {jobs!r}; it must be a whole number, at least 1")
    figures.check_matplotlib()
    abouts, left_out = _look(settings)
    store = Store(folder, settings, fresh)
    tuning = _tuning_jobs(settings, left_out)
    rest = _study_jobs(settings)
    total = sum(job.cost for job in (*tuning, *_curve_jobs(settings, left_out, None), *rest))
    with _bar(total, progress) as bar:
        _run(tuning, settings, store, jobs, bar)
        chosen = _chosen(settings, store, left_out)
        _run(_curve_jobs(settings, left_out, chosen), settings, store, jobs, bar)
        _run(rest, settings, store, jobs, bar)
    return _write(settings, store, chosen, left_out, abouts, jobs)


# -- jobs -------------------------------------------------------------------------------------------


def _look(settings: Settings) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    """Sizes of the data sets, and the curves that do not fit, with the reason."""
    abouts, left_out = {}, []
    for data in settings.data:
        instance = make_instance(data, settings.tuning.held_out)
        abouts[data.name] = instance.about
        for curve in settings.curves:
            reason = make_method(curve.method, dict(curve.options)).supports(instance.problem)
            if reason:
                left_out.append((data.name, curve.name, reason))
        if sum(name == data.name for name, _, _ in left_out) == len(settings.curves):
            raise ValueError(f"no method fits {data.title}: {left_out[-1][1]}: {left_out[-1][2]}")
    return abouts, left_out


def _pairs(settings: Settings, left_out: list[tuple[str, str, str]]) -> Iterator[tuple[DataSet, Curve]]:
    missing = {(data, curve) for data, curve, _ in left_out}
    for data in settings.data:
        for curve in settings.curves:
            if (data.name, curve.name) not in missing:
                yield data, curve


def _tuning_jobs(settings: Settings, left_out: list[tuple[str, str, str]]) -> list[Job]:
    tuning = settings.tuning
    return [
        Job(("tune", data.name, curve.name), (tuning.share * len(grid(curve, tuning)) + 7 * tuning.long) * data.window)
        for data, curve in _pairs(settings, left_out)
        if curve.tuned
    ]


def _curve_jobs(
    settings: Settings,
    left_out: list[tuple[str, str, str]],
    chosen: dict[str, Any] | None,
) -> list[Job]:
    """Optima and curves, repetition after repetition; without `chosen` only their costs are right."""
    out = []
    for repetition in range(settings.repetitions):
        for data in settings.data:
            out.append(Job(("optimum", data.name, repetition), 0.2 * data.window))
            for curve in (curve for where, curve in _pairs(settings, left_out) if where is data):
                options = dict(curve.options) | (chosen or {}).get(data.name, {}).get(curve.name, {})
                out.append(Job(("curve", data.name, curve.name, repetition), 1.3 * data.window, tuple(options.items())))
    return out


def _study_jobs(settings: Settings) -> list[Job]:
    return [Job(("study", name, repetition), cost) for name, repetition, cost in studies.jobs(settings)]


def _run(todo: list[Job], settings: Settings, store: Store, jobs: int, bar: Callable[..., Any] | _Lines) -> None:
    """Do what is not done yet."""
    left = []
    for job in todo:
        if _is_done(job, store):
            bar(job, again=True)
        else:
            left.append(job)
    if not left:
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=min(jobs, len(left)), return_as="generator_unordered", batch_size=1)
    for finished in parallel(delayed(_do)(job, settings, store) for job in left):
        if finished is None:
            raise KeyboardInterrupt
        bar(finished)


def _is_done(job: Job, store: Store) -> bool:
    part = store.load(job.key)
    return part is not None and (job.key[0] != "curve" or part["options"] == dict(job.options))


def _do(job: Job, settings: Settings, store: Store) -> Job | None:
    """Do a job and store its result; None after Ctrl-C, which a worker must not die of."""
    kind, name, *more = job.key
    try:
        if kind == "study":
            store.save(job.key, studies.run_study(name, settings, *more))
            return job
        data = settings.dataset(name)
        if kind == "tune":
            curve, instance = settings.curve(more[0]), make_instance(data, settings.tuning.held_out)
            store.save(job.key, tune(instance, curve, settings.tuning, data.window, settings.max_epochs))
        elif kind == "optimum":
            best = find_optimum(make_instance(data, more[0]), settings.optimum_tol)
            store.save(job.key, dataclasses.asdict(best))
        else:
            trace = run_method(
                make_instance(data, more[1]), settings.curve(more[0]).method, dict(job.options), seed=more[1],
                window=data.window, points=settings.points, max_epochs=settings.max_epochs,
            )  # fmt: skip
            store.save(job.key, trace | {"options": dict(job.options)})
    except KeyboardInterrupt:
        return None
    return job


def _chosen(settings: Settings, store: Store, left_out: list[tuple[str, str, str]]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for data, curve in _pairs(settings, left_out):
        if curve.tuned:
            out.setdefault(data.name, {})[curve.name] = store.load(("tune", data.name, curve.name))["chosen"]
    return out


# -- results ----------------------------------------------------------------------------------------


def _write(
    settings: Settings,
    store: Store,
    chosen: dict[str, Any],
    left_out: list[tuple[str, str, str]],
    abouts: dict[str, Any],
    jobs: int,
) -> Outcome:
    traces = _load_traces(settings, store, left_out)
    tuned = {
        (data.name, curve.name): store.load(("tune", data.name, curve.name))
        for data, curve in _pairs(settings, left_out)
        if curve.tuned
    }
    study_rows = _load_studies(settings, store)
    claims = make_claims(settings, traces, study_rows)
    machine = _machine(jobs)
    store.write_settings({"chosen": chosen, "left_out": left_out, "data": abouts, "machine": machine})
    store.write("curves.csv", tables.curves(traces))
    store.write("summary.csv", tables.summary(settings, traces))
    store.write("tuning.csv", tables.tuning(tuned))
    store.write("studies.csv", tables.studies(study_rows))
    store.write("claims.json", tables.claims(claims))
    pictures = figures.draw(settings, traces, study_rows)
    for name, content in pictures.items():
        store.write(name, content)
    store.write(
        "report.html",
        report.make(settings, traces, claims, tuned, left_out, abouts, machine, pictures, study_rows),
    )
    return Outcome(store.folder, claims, traces, chosen, left_out)


def _load_traces(settings: Settings, store: Store, left_out: list[tuple[str, str, str]]) -> Traces:
    traces = []
    for data, curve in _pairs(settings, left_out):
        for repetition in range(settings.repetitions):
            part = store.load(("curve", data.name, curve.name, repetition))
            best = Optimum(**store.load(("optimum", data.name, repetition)))
            names = ("epoch", "seconds", "objective", "test_loss", "test_error")
            columns: dict[str, Any] = {key: np.array(part[key]) for key in names}
            traces.append(Trace(data.name, curve.name, repetition, optimum=best, still=part["still"], **columns))
    return Traces(traces, {data.name: data.title for data in settings.data})


def _load_studies(settings: Settings, store: Store) -> list[dict[str, Any]]:
    rows = []
    for name, repetition, _ in studies.jobs(settings):
        for row in store.load(("study", name, repetition)):
            rows.append({"study": name, "repetition": repetition, **row})
    return rows


def _machine(jobs: int) -> dict[str, Any]:
    import numba

    return {
        "processor": platform.processor() or platform.machine(), "cores": os.cpu_count(), "jobs": jobs,
        "system": platform.system(), "python": platform.python_version(), "numpy": np.__version__,
        "numba": numba.__version__,
    }  # fmt: skip


# -- progress ---------------------------------------------------------------------------------------


@contextlib.contextmanager
def _bar(total: float, wanted: bool) -> Iterator[Callable[..., Any] | _Lines]:
    """A function to call with every job that is done."""
    if not wanted:
        yield lambda job, again=False: None
        return
    try:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    except ImportError:
        yield _Lines(total)
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines(total)
        return
    columns = (
        SpinnerColumn(), TextColumn("{task.description}"), BarColumn(None), TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(), TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, speed_estimate_period=600) as progress:
        task = progress.add_task("starting", total=total)

        def show(job: Any, again: bool = False) -> None:
            if again:  # work of an earlier run says nothing about the time left
                progress.update(task, total=progress.tasks[0].total - job.cost)
            else:
                progress.update(task, advance=job.cost, description=_words(job))

        yield show


class _Lines:
    """A line on stderr at every tenth of the work, where there is no terminal."""

    def __init__(self, total: float) -> None:
        self.total, self.done, self.told = max(total, 1e-9), 0.0, 0

    def __call__(self, job: Job, again: bool = False) -> None:
        self.done += job.cost
        tenth = int(10 * self.done / self.total + 1e-9)
        if tenth > self.told:
            self.told = tenth
            print(f"fenchel: {10 * tenth} % done ({_words(job)})", file=sys.stderr)


def _words(job: Job) -> str:
    kind, *more = job.key
    if kind == "tune":
        return f"step size of {more[1]}, {more[0]}"
    if kind == "study":
        return f"study of {more[0]}"
    where = f"{more[0]}, repetition {more[-1] + 1}"
    return f"optimum, {where}" if kind == "optimum" else f"{more[1]}, {where}"
