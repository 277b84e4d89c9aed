"""Virtual environments for the peers: one that most share, and one each for those that cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

BASE = ("numpy", "scipy")  # what worker.py itself needs


class CannotInstall(Exception):
    """Why a solver has no environment."""


def cache_folder() -> Path:
    named = os.environ.get("FENCHEL_BENCHMARKS")
    return Path(named) if named else Path.home() / ".cache" / "fenchel-benchmarks"


class Environments:
    """Finds, or makes, the interpreter that runs a solver.

    Parameters
    ----------
    folder : Path
    solvers : list of Solver
    current : bool
        Use the running interpreter for all, whatever it holds.
    """

    def __init__(self, folder, solvers, current=False):
        self.folder, self.current = folder, current
        self.members = {}
        for solver in solvers:
            self.members.setdefault(solver.environment, []).append(solver)
        self._ready, self._failed = set(), {}

    def interpreter(self, solver) -> str:
        if self.current or solver.environment is None:
            return sys.executable
        name = solver.environment
        if name not in self._ready:
            self._make(name)
            self._ready.add(name)
        if solver.name in self._failed:
            raise CannotInstall(self._failed[solver.name])
        return str(self._python(name))

    def _python(self, name) -> Path:
        return self.folder / name / ("Scripts/python.exe" if os.name == "nt" else "bin/python")

    def _make(self, name):
        """Install everything at once; if that fails, one by one, so that one peer's failure is its own."""
        members = self.members[name]
        wanted = sorted({*BASE, *(need for solver in members for need in solver.requirements)})
        stamp = self.folder / name / "requirements.txt"
        if stamp.is_file() and stamp.read_text().split("\n") == wanted:
            return
        try:
            if not self._python(name).is_file():
                self._create(name, members[0].python)
            self._pip(name, wanted)
        except CannotInstall as why:
            if len(members) == 1 or not self._python(name).is_file():
                self._failed |= {solver.name: str(why) for solver in members}
                return
            for solver in members:
                try:
                    self._pip(name, [*BASE, *solver.requirements])
                except CannotInstall as own:
                    self._failed[solver.name] = str(own)
            return
        stamp.write_text("\n".join(wanted))

    def _create(self, name, version):
        python = sys.executable if version is None else find_python(version)
        if python is None:
            raise CannotInstall(f"it needs Python {version}, and there is no python{version} on the path")
        print(f"making the environment {name!r} in {self.folder}", flush=True)
        _run([python, "-m", "venv", str(self.folder / name)])

    def _pip(self, name, wanted):
        print(f"  installing {', '.join(wanted)}", flush=True)
        _run([str(self._python(name)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *wanted])


def find_python(version) -> str | None:
    """An interpreter of that version that answers: this one, one on the path, or one of pyenv's."""
    candidates = [sys.executable, shutil.which(f"python{version}")]
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    candidates += sorted(root.glob(f"versions/{version}.*/bin/python"))
    for python in filter(None, candidates):
        answer = subprocess.run([str(python), "--version"], capture_output=True, text=True)
        if answer.returncode == 0 and answer.stdout.startswith(f"Python {version}."):
            return str(python)
    return None


def _run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if "rror" in line]
        raise CannotInstall((lines or done.stderr.splitlines() or ["no message"])[-1].strip()[:300])
