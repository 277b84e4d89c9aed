"""Files that are written: whole or not at all, never in the place of an input, and nothing is left behind."""

import json
import os
import signal
import stat
import subprocess
import sys
import time

import numpy as np
import pytest

import fenchel as fl
from fenchel.foundation import files
from fenchel.foundation.files import write_whole

posix = pytest.mark.skipif(sys.platform == "win32", reason="links, modes and signals differ on Windows")


def parts(folder):
    return sorted(name for name in os.listdir(folder) if name.startswith(".fenchel-"))


@posix
def test_a_link_is_followed_and_not_replaced(tmp_path):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "model.json", tmp_path / "there" / "real.json"
    link.symlink_to(target)
    write_whole(link, b"new")  # the target need not be there yet
    write_whole(link, b"newer")
    assert link.is_symlink() and target.read_bytes() == b"newer" and not parts(tmp_path / "there")
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(ValueError, match="leads to itself"):
        write_whole(loop, b"")


@posix
def test_modes_are_those_of_any_other_file(tmp_path):
    code = "import os, sys; from fenchel.foundation.files import write_whole; os.umask(0o027); "
    code += "write_whole(sys.argv[1], b'')"
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "new")], check=True)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    old = tmp_path / "old"
    old.write_bytes(b"")
    old.chmod(0o604)
    write_whole(old, b"content")
    assert stat.S_IMODE(old.stat().st_mode) == 0o604 and old.read_bytes() == b"content"


def test_the_mask_of_the_process_is_never_touched(tmp_path, monkeypatch):
    """Another thread's files would get the wrong mode meanwhile."""

    def umask(mask):
        raise AssertionError("the mask was changed")

    monkeypatch.setattr(os, "umask", umask)
    write_whole(tmp_path / "file", b"")


def test_what_cannot_be_written_leaves_what_was_there(tmp_path, monkeypatch):
    target = tmp_path / "model.json"
    target.write_bytes(b"old")

    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(target, b"new")
    assert target.read_bytes() == b"old" and os.listdir(tmp_path) == ["model.json"]


SLOW = """
import os, sys, time
from fenchel.foundation import files
os.fsync = lambda handle: (print("writing", flush=True), time.sleep(600))
files.write_whole(sys.argv[1], b"x" * 1000)
"""


@posix
def test_what_a_killed_process_left_is_removed_and_what_is_being_written_is_not(tmp_path, monkeypatch):
    def begin():
        command = [sys.executable, "-c", SLOW, str(tmp_path / "model.json")]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert running.stdout.readline() == "writing\n"
        return running

    killed, alive = begin(), begin()
    try:
        os.kill(killed.pid, signal.SIGKILL)
        killed.communicate()
        assert len(parts(tmp_path)) == 2 and not (tmp_path / "model.json").exists()
        (tmp_path / ".fenchel-notes").write_text("somebody's own")
        monkeypatch.setattr(files, "_swept", set())
        write_whole(tmp_path / "other.json", b"")
        left = [name for name in parts(tmp_path) if name.endswith(".part")]
        assert len(left) == 1 and ".fenchel-notes" in parts(tmp_path)
    finally:
        alive.kill()
        alive.communicate()


# -- inputs are never written over ---------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = np.where(X[:, 0] > 0, "yes", "no")
    with open("d.csv", "w") as file:
        file.write("a,b,c,d,y\n")
        file.writelines(",".join([*map(repr, map(float, row)), label]) + "\n" for row, label in zip(X, y, strict=True))
    with open("groups.json", "w") as file:
        json.dump({"one": [0, 1], "two": [2, 3]}, file)
    np.savetxt("weights.txt", np.ones(40))
    np.savetxt("features.txt", np.ones(4))
    return tmp_path


def run(*arguments):
    from typer.testing import CliRunner

    from fenchel.cli import make_app

    return CliRunner().invoke(make_app(), list(arguments))


GROUPS = ("--penalty", "group-lasso", "--groups", "groups.json")


@pytest.mark.parametrize(
    "command, lost",
    [
        (("fit", "d.csv", "-o", "d.csv"), "d.csv"),
        (("fit", "d.csv", "-o", "./d.csv"), "d.csv"),
        (("fit", "d.csv", "-o", "link.csv"), "d.csv"),
        (("fit", "d.csv", "-o", "hard.csv"), "d.csv"),
        (("fit", "d.csv", "--report", "d.csv"), "d.csv"),
        (("fit", "d.csv", *GROUPS, "-o", "groups.json"), "groups.json"),
        (("fit", "d.csv", *GROUPS, "--report", "groups.json"), "groups.json"),
        (("fit", "d.csv", "--weights", "weights.txt", "-o", "weights.txt"), "weights.txt"),
        (("fit", "d.csv", "--feature-weights", "features.txt", "-o", "features.txt"), "features.txt"),
        (("path", "d.csv", "-o", "d.csv"), "d.csv"),
        (("path", "d.csv", "--coefficients", "link.csv"), "d.csv"),
        (("cv", "d.csv", "-o", "d.csv"), "d.csv"),
        (("cv", "d.csv", "--table", "d.csv"), "d.csv"),
        (("predict", "model.json", "d.csv", "-o", "model.json"), "model.json"),
        (("predict", "model.json", "d.csv", "-o", "d.csv"), "d.csv"),
    ],
)
@posix
def test_an_output_that_is_an_input_is_refused(folder, command, lost):
    os.symlink("d.csv", "link.csv")
    os.link("d.csv", "hard.csv")
    with open("model.json", "w") as file:
        file.write("precious")
    with open(lost, "rb") as file:
        before = file.read()
    result = run(*command)
    assert result.exit_code == 2 and "it would be lost" in result.stderr and lost in result.stderr
    assert len(result.stderr.splitlines()) == 1
    with open(lost, "rb") as file:
        assert file.read() == before


def test_an_error_after_the_first_file_names_it(folder, monkeypatch):
    def full(*arguments, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fenchel.cli.fit.write_report", full)
    result = run("fit", "d.csv", "--report", "page.html")
    assert result.exit_code == 2 and "written before: model.json" in result.stderr and os.path.exists("model.json")

    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("fenchel.cli.fit.write_report", interrupt)
    result = run("fit", "d.csv", "--report", "page.html")
    assert result.exit_code == 130 and "nothing was written" not in result.stderr
    assert "interrupted (written before: model.json)" in result.stderr


# -- Ctrl-C --------------------------------------------------------------------------------------------

SWALLOWED = """
import ctypes, os, signal, sys
import numpy as np, fenchel as fl
import fenchel.problem.alpha_max as module

inner = module._unpenalised_answer

def hit(problem):  # a callback of C, out of which no exception gets
    call = ctypes.CFUNCTYPE(None)(lambda: os.kill(os.getpid(), signal.SIGINT))
    call()
    return inner(problem)

module._unpenalised_answer = hit
from fenchel.cli import main
main()
"""


@posix
def test_ctrl_c_in_alpha_max_is_not_swallowed(folder):
    done = subprocess.run(
        [sys.executable, "-c", SWALLOWED, "fit", "d.csv"], capture_output=True, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    assert done.returncode == 130 and "interrupted; nothing was written" in done.stderr, done.stderr
    assert not os.path.exists("model.json")


def test_a_path_that_was_interrupted_is_marked():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((30, 4)), rng.standard_normal(30)

    def interrupt(alpha, result):
        raise KeyboardInterrupt

    found = fl.path(X, y, loss="squared", penalty=fl.L1(), n_alphas=5, callback=interrupt)
    assert found.interrupted and len(found) == 1 and "interrupted" in repr(found)
    whole = fl.path(X, y, loss="squared", penalty=fl.L1(), n_alphas=5)
    assert not whole.interrupted and "interrupted" not in repr(whole)


@posix
def test_interrupts_are_noticed_in_nested_places_and_held_back_in_others():
    from fenchel.foundation.interrupts import interrupts_held, interrupts_noticed

    before = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with interrupts_noticed() as outer, interrupts_noticed() as inner:
            with pytest.raises(KeyboardInterrupt), interrupts_held():
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(0)  # where it would be raised
                reached = True
            assert reached and outer and inner
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
