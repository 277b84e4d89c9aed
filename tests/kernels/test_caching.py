"""Kernels kept on disk: a cache that cannot be written to, is damaged or full never fails what needs the kernel."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import fenchel

KERNEL = """
import logging, sys
logging.basicConfig(format="%(message)s")
from fenchel.kernels.caching import njit, cfunc

@njit(cache=True)
def twice(x):
    return 2.0 * x

if len(sys.argv) > 1 and sys.argv[1] == "full":  # no file of this process may grow
    import resource
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
print(twice(21.0), sum(twice._cache_hits.values()), twice._cache.cache_path)
"""


def run(folder, *arguments, **surroundings):
    script = folder / "kernel.py"
    if not script.exists():
        script.write_text(KERNEL)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("NUMBA_CACHE")}
    environment |= {"TMPDIR": str(folder / "tmp"), "PYTHONPATH": str(Path(fenchel.__file__).parents[1]), **surroundings}
    (folder / "tmp").mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, str(script), *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    value, hits, path = done.stdout.split()
    assert value == "42.0"
    return int(hits), path, done.stderr


def nowhere(folder):
    """A place beside the sources, and a home, that nobody can write to, not even root: files in place of folders."""
    (folder / "__pycache__").write_text("")
    return {"HOME": os.devnull, "XDG_CACHE_HOME": os.devnull}


def test_kept_and_found_again(tmp_path):
    hits, path, said = run(tmp_path)
    assert hits == 0 and path == str(tmp_path / "__pycache__") and said == ""
    assert run(tmp_path)[0] == 1


def test_where_nothing_can_be_written_the_cache_is_temporary_and_that_is_said_once(tmp_path):
    places = nowhere(tmp_path)
    hits, path, said = run(tmp_path, **places)
    assert hits == 0 and path.startswith(str(tmp_path / "tmp" / "fenchel-kernels-"))
    assert len(said.splitlines()) == 1 and "NUMBA_CACHE_DIR" in said and "fenchel-kernels-" in said
    assert run(tmp_path, **places)[0] == 1  # and it works


@pytest.mark.skipif(sys.platform == "win32", reason="owners and modes differ on Windows")
def test_a_temporary_folder_that_others_can_write_to_is_not_trusted(tmp_path):
    places = nowhere(tmp_path)
    (tmp_path / "tmp").mkdir()
    open_to_all = tmp_path / "tmp" / f"fenchel-kernels-{os.getuid()}"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    hits, path, _ = run(tmp_path, **places)
    assert hits == 0 and not path.startswith(str(open_to_all) + os.sep) and not list(open_to_all.iterdir())
    assert not Path(path).exists()  # it was this process's alone


def test_without_any_place_there_is_no_cache(tmp_path):
    hits, path, said = run(tmp_path, **nowhere(tmp_path), TMPDIR=os.devnull, TEMP=os.devnull, TMP=os.devnull)
    assert hits == 0 and len(said.splitlines()) == 1
    # the system may have a folder for temporary files wherever TMPDIR points
    assert path == "None" or "fenchel-kernels-" in path


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_a_full_disk_fails_nothing(tmp_path):
    hits, _, said = run(tmp_path, "full")
    assert hits == 0 and "every process" in said
    assert run(tmp_path)[0] == 0 and run(tmp_path)[0] == 1  # with room again all is well


DAMAGED = r"""
from pathlib import Path
from fenchel.kernels.caching import njit

def twice(x):
    return 2.0 * x

def hits():
    kernel = njit(cache=True)(twice)  # as another process would make it
    assert kernel(21.0) == 42.0
    return sum(kernel._cache_hits.values())

def flipped(whole):
    at = 2 * len(whole) // 3
    return whole[:at] + bytes([whole[at] ^ 64]) + whole[at + 1 :]

folder = Path(__file__).parent / "__pycache__"
for kind in ("nbi", "nbc"):
    for damage in (lambda whole: b"", lambda whole: whole[:-40], lambda whole: b"\xff" * 99, flipped):
        assert (hits(), hits()) == (0, 1)
        (file,) = folder.glob(f"*.{kind}")
        file.write_bytes(damage(file.read_bytes()))
        assert (hits(), hits()) == (0, 1)
        for file in folder.iterdir():
            file.unlink()
"""


def test_damaged_files_are_compiled_anew(tmp_path):
    script = tmp_path / "damaged.py"
    script.write_text(DAMAGED)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stderr == "", done.stderr


def test_every_kernel_that_is_kept_is_kept_this_way():
    for file in (Path(fenchel.__file__).parent / "kernels").glob("*.py"):
        text = file.read_text(encoding="utf-8")
        if "cache=True" in text:
            assert not re.search(r"^from numba import .*\b(njit|cfunc)\b", text, re.MULTILINE), file.name


def test_who_waits_for_a_compiler_is_told_so(caplog, capsys):
    """Once, and how far it is; kernels of others are no business of ours."""
    from types import SimpleNamespace

    from fenchel.kernels.caching import _Compiling

    listener = _Compiling()
    own, other = [
        SimpleNamespace(data={"dispatcher": SimpleNamespace(__module__=name)})
        for name in ("fenchel.kernels.prox", "numba.np")
    ]
    listener.on_start(other)
    listener.on_end(other)
    assert not listener.said and not caplog.records
    for _ in range(3):
        listener.on_start(own)
        listener.on_end(own)
    assert listener.done == 3
    assert [record.message for record in caplog.records if "is compiling its kernels" in record.message] == [
        caplog.records[0].message
    ]
