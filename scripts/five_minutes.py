"""Time the five-minute start as somebody has it on a new machine: empty clone, empty environment, cold kernels.

    python scripts/five_minutes.py [COMMIT]

It clones the commit (HEAD by default) into a new folder, makes a virtual environment there, installs the package as the
page says, and runs every Python block of docs/quickstart.md in one fresh process. What pip downloads is the one thing
that is not ours: its cache is used where there is one. Seconds of the processor stand beside those of the clock, for a
machine that has other things to do.
"""

from __future__ import annotations

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import time

ROOT = pathlib.Path(__file__).parents[1]


def timed(name: str, *command: str, **options: object) -> float:
    """Run a command, print how long it took, and stop where it fails."""
    began, before = time.perf_counter(), _processor()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, check=False, **options)  # type: ignore[call-overload]
    seconds = time.perf_counter() - began
    print(f"{name:28s} {seconds:7.1f} s {_processor() - before:7.1f} s of the processor", flush=True)
    if done.returncode:
        sys.exit(f"{name} failed: {' '.join(command)}")
    return seconds


def _processor() -> float:
    """Seconds that finished commands have had of the processor."""
    times = os.times()
    return times.children_user + times.children_system


def main() -> None:
    """Clone, install, run the page cold, and again warm."""
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    commit = subprocess.check_output(["git", "-C", str(ROOT), "rev-parse", commit], text=True).strip()
    with tempfile.TemporaryDirectory() as folder:
        clone, python = os.path.join(folder, "fenchel"), os.path.join(folder, "env", "bin", "python")
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "NUMBA", "FENCHEL"))}
        environment = kept | {"NUMBA_CACHE_DIR": os.path.join(folder, "kernels"), "MPLBACKEND": "agg"}
        total = timed("clone", "git", "clone", "-q", str(ROOT), clone)
        subprocess.run(["git", "-C", clone, "checkout", "-q", commit], check=True)
        total += timed("environment", sys.executable, "-m", "venv", os.path.join(folder, "env"))
        total += timed("install", python, "-m", "pip", "install", "-q", f"{clone}[cli,plot,io]", env=environment)
        page = pathlib.Path(clone, "docs", "quickstart.md").read_text(encoding="utf-8")
        blocks = re.findall(r"^( *)```python\n(.*?)^\1```", page, re.S | re.M)
        script = pathlib.Path(folder, "page.py")
        script.write_text("\n".join(textwrap.dedent(code) for _, code in blocks), encoding="utf-8")
        total += timed("the page, cold kernels", python, str(script), env=environment, cwd=folder)
        print(f"{'in all':28s} {total:7.1f} s")
        timed("the page again, warm", python, str(script), env=environment, cwd=folder)


if __name__ == "__main__":
    main()
