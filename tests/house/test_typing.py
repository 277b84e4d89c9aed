"""What type checkers see of the package: as a user has it, installed and with py.typed."""

import ast
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import fenchel

USER = Path(__file__).with_name("typing_user.py")
PACKAGE = Path(fenchel.__file__).parent


def check(file, folder):
    """mypy --strict on a file from elsewhere; the package is found as an installed one is, by the path of Python."""
    pytest.importorskip("mypy")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--cache-dir",
        str(folder / "cache"),
        str(file),
    ]
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent)}
    return subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment)


def test_a_users_code_is_typed(tmp_path):
    done = check(USER, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_users_code_runs():
    runpy.run_path(str(USER))


def test_a_users_mistakes_are_found(tmp_path):
    """Names are not Any, in the package and behind what it returns."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "import fenchel as fl\n"
        "fl.L1() + 1\n"
        "fl.solve('no problem')\n"
        "fl.Nothing\n"
        "fl.path([[1.0]], [1.0], loss='squared')[0].coefs\n"
    )
    done = check(wrong, tmp_path)
    found = [line for line in done.stdout.splitlines() if line.startswith("wrong.py")]
    assert [int(line.split(":")[1]) for line in found if ": error:" in line] == [2, 3, 4, 5], done.stdout


def test_the_stub_names_what_is_loaded_on_first_use():
    names = {
        alias.asname
        for node in ast.parse((PACKAGE / "__init__.pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert names == {*fenchel._NAMES, *fenchel._MODULES}
    assert (PACKAGE / "py.typed").is_file()
