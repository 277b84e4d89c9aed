"""The floors of pyproject.toml, installed and tested: every dependency at the lowest version that is promised to work.

    python scripts/lowest_versions.py               prints the pins
    python scripts/lowest_versions.py --run         makes a virtual environment of them, and runs the tests in it
    python scripts/lowest_versions.py --run -- -x tests/solver      with arguments for pytest

The core dependencies and those of the extras cli, plot, io, formula and dask are held at their floors; what only the
tests need is not, since no user installs it. Run it with the lowest Python that is promised. A floor that fails is
raised, in pyproject.toml alone.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
HELD = ("cli", "plot", "io", "formula", "dask")  # extras that a user installs


def floors() -> list[str]:
    """The promised floors, as pins."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    lists = [_list(text, "dependencies"), *(_list(text, extra) for extra in HELD)]
    return list(dict.fromkeys(need.replace(">=", "==") for needs in lists for need in needs if ">=" in need))


def _list(text: str, key: str) -> list[str]:
    """The strings of a list in pyproject.toml; Python 3.10 has no reader of its own for that file."""
    found = re.search(rf"^{key} = \[(.*?)\] *(?:#.*)?$", text, flags=re.DOTALL | re.MULTILINE)
    if found is None:
        sys.exit(f"pyproject.toml has no list named {key!r}")
    return re.findall(r'"([^"]+)"', found.group(1))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="store_true", help="install them and run the tests")
    parser.add_argument("--folder", type=Path, default=ROOT / ".venv-lowest", help="of the virtual environment")
    parser.add_argument("pytest", nargs="*", help="arguments for pytest, after --")
    options = parser.parse_args()
    pins = floors()
    print(*pins, sep="\n", flush=True)
    if not options.run:
        return 0
    python = options.folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    subprocess.run([sys.executable, "-m", "venv", str(options.folder)], check=True)
    subprocess.run([str(python), "-m", "pip", "install", "-q", "-e", f"{ROOT}[test]", *pins], check=True)
    return subprocess.run([str(python), "-m", "pytest", "-n", "2", *options.pytest], cwd=ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
