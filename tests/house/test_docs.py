"""Every Python block of the README and the documentation runs, and so does the gallery; what they promise holds."""

from __future__ import annotations

import functools
import importlib.util
import pathlib
import re
import shlex
import subprocess
import sys
import textwrap

import pytest

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))


def blocks(page, language):
    """The fenced blocks of a page, those in lists too."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", page.read_text(encoding="utf-8"), re.S | re.M)
    return [textwrap.dedent(code) for _, code in found]


@pytest.fixture
def quiet_pictures():
    """Figures are made and thrown away."""
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def run(code, name):
    exec(compile(code, str(name), "exec"), space := {"__name__": "documentation"})
    return space


# -- what is shown runs -----------------------------------------------------------------------------


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_runs(page, tmp_path, monkeypatch, quiet_pictures):
    """The blocks of a page run one after another, as a reader would type them."""
    monkeypatch.chdir(tmp_path)
    run("\n".join(blocks(page, "python")), page)


@pytest.mark.filterwarnings("ignore:FigureCanvasAgg is non-interactive", "error::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_gallery_runs(example, tmp_path, monkeypatch, quiet_pictures):
    monkeypatch.chdir(tmp_path)
    space = run(example.read_text(encoding="utf-8"), example)
    title, underline = space["__doc__"].strip().splitlines()[:2]
    assert set(underline) == {"="} and len(underline) >= len(title)
    assert space["plt"].get_fignums()


def commands():
    for page in PAGES:
        for block in blocks(page, "bash"):
            for line in block.replace("\\\n", " ").splitlines():
                if line.startswith("fenchel "):
                    yield pytest.param(shlex.split(line, comments=True)[1:], id=f"{page.name}: {line.strip()[:60]}")


@pytest.mark.parametrize("words", list(commands()))
def test_commands_know_their_options(words):
    import typer

    from fenchel.cli import make_app

    known = typer.main.get_command(make_app()).commands
    assert words[0] in known
    options = {name for parameter in known[words[0]].params for name in (*parameter.opts, *parameter.secondary_opts)}
    given = {word.partition("=")[0] for word in words[1:] if word.startswith("-")} - {"-h", "--help"}
    assert given <= options


# -- the site holds together ------------------------------------------------------------------------


def anchors(page):
    """The headings of a page, as GitHub and myst link to them."""
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)
    headings = re.findall(r"^#+ (.+)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def is_generated(target):
    """Whether a document is written at build time, from something that is here."""
    folder, _, name = target.partition("/")
    if folder == "gallery":
        return name == "index" or (ROOT / "examples" / f"{name}.py").exists()
    return folder == "api" and name in reference().pages()


@functools.cache
def reference():
    """docs/reference.py, under a name of its own: the tests have a module `reference`, too."""
    spec = importlib.util.spec_from_file_location("documentation_reference", DOCS / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    text = page.read_text(encoding="utf-8")
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#\s]*)#?([^)\s]*)\)", text):
        other = page.parent / target if target else page
        assert other.exists(), target
        assert not anchor or anchor in anchors(other), f"{target}#{anchor}"
    for target in re.findall(r"\{doc\}`([^`<]+)`", text):
        assert (DOCS / f"{target}.md").exists() or is_generated(target), target


@pytest.mark.parametrize("page", ["architecture.md", "contributing.md", "mathematics.md"])
def test_files_that_a_page_names_are_there(page):
    """What looks like a file of the project in a page for those who work on it is one."""
    package = ROOT / "src" / "fenchel"
    for name in re.findall(r"`([\w/.]+/|[\w/]+\.py)`", (DOCS / page).read_text(encoding="utf-8")):
        known = any((folder / name).exists() for folder in (ROOT, package)) or any(package.rglob(name))
        assert known, f"{page} names {name}, which is nowhere"


def test_every_page_is_in_the_contents():
    contents = "".join(blocks(DOCS / "index.md", r"\{toctree\}"))
    entries = [line for line in contents.splitlines() if line and not line.startswith(":")]
    assert len(entries) == len(set(entries))
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= set(entries)
    assert {"api/index", "gallery/index"} <= set(entries)


def test_every_public_name_is_in_the_reference():
    import fenchel

    pages, listed = reference().pages(), reference().index()
    assert len({name.lower() for name in pages}) == len(pages)  # on disks that know no capitals
    for name in fenchel.__all__:
        page = pages[reference().page_name(name)]
        assert re.search(rf":: (fenchel\.)?{name}$", page, re.M), name
        assert re.search(rf"^   {name}$", listed, re.M), name
        assert re.search(rf"^   {reference().page_name(name)}$", listed, re.M), name


@pytest.mark.parametrize(
    ("name", "members"),
    [
        ("StructuredClassifier", "fit predict predict_proba decision_function score active_groups"),
        ("Groups", "from_columns from_encoder from_gmt complete"),
        ("Penalty", "value prox conjugate gauge units"),
        ("Status", "CONVERGED STALLED"),
    ],
)
def test_the_reference_shows_what_a_class_can_do(name, members):
    shown = re.search(r":members: (.*)", reference().page(name))[1].split(", ")
    assert set(members.split()) <= set(shown)


# -- the package's promises about itself ------------------------------------------------------------


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
