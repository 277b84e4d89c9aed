"""Every Python block of the README and the documentation runs; and the README's promises about itself hold."""

from __future__ import annotations

import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs(page, tmp_path, monkeypatch):
    """The blocks of a page run one after another, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    space = {"__name__": "documentation"}
    for code in re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M):
        exec(compile(code, str(page), "exec"), space)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_import_is_light():
    heavy = "{'numba', 'matplotlib', 'scipy', 'sklearn'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"import sys, fenchel; sys.exit(str({heavy}) if {heavy} else 0)"], check=True)


def test_public_names_exist_and_are_documented():
    import fenchel

    for name in fenchel.__all__:
        assert getattr(fenchel, name).__doc__, name


def test_no_submodule_hides_a_public_function():
    """Importing a submodule sets it as an attribute of the package; none may carry a public function's name."""
    import fenchel

    modules = {path.stem for path in (ROOT / "src" / "fenchel").iterdir()}
    assert not modules & (set(fenchel.__all__) - {"theory", "testing"})
