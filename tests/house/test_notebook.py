"""What a notebook shows: representations as HTML that stand alone, and one output that progress is drawn in."""

import html.parser
import importlib
import io
import sys
import types

import numpy as np
import pytest

import fenchel as fl
from fenchel.foundation import display
from fenchel.foundation.html import Shown
from fenchel.penalties import CATALOGUE

rng = np.random.default_rng(0)
X = rng.standard_normal((80, 6))
Y = X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(80)
NAMES = [f"<f{j}> & co" for j in range(6)]  # what a page must not take for its own


class Page(html.parser.HTMLParser):
    """A fragment whose tags close, and that refers to nothing."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text, self.tags = [], "", set()
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "link", "img", "iframe", "style") and not any("src" in name for name, _ in attrs)
        assert "<" not in tag and not tag.startswith("f")
        self.tags.add(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def objects():
    groups = fl.Groups([[0, 1], [1, 2], [3, 4, 5]], names=["<one>", "two", "three"], features=NAMES)
    problem = fl.Problem(X, Y, loss="squared", penalty=fl.GroupLasso(groups) + 0.1 * fl.L1(), alpha=0.05)
    path = fl.path(X, Y, loss="squared", penalty=fl.L1(), n_alphas=6)
    return {
        "groups": (groups, "two"), "graph": (fl.Graph([(0, 1), (2, 3)], features=NAMES), "<f0> & co"),
        "weighted": (fl.Graph([(0, 1, -2.0)], 3), "-2"), "grid": (fl.Grid((2, 3)), "2 x 3"),
        "tree": (fl.Tree({"a": "top", "b": "top"}), "top"), "penalty": (problem.penalty, "0.1"),
        "problem": (problem, "80 rows, 6 features"), "history": (fl.solve(problem).history, "relative gap"),
        "result": (fl.solve(problem), "converged"), "path": (path, "6 alphas"),
        "cv": (fl.cross_validate_path(X, Y, loss="squared", penalty=fl.L1(), n_alphas=6), "one standard error"),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["groups", "graph", "weighted", "grid", "tree", "penalty", "problem", "history",
                                  "result", "path", "cv"])  # fmt: skip
def test_representation(name):
    made, word = objects()[name]
    assert isinstance(made, Shown)
    page = Page(made._repr_html_())
    assert word in page.text
    if name in ("history", "path", "cv"):
        assert "svg" in page.tags


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_penalty_has_one(name):
    assert issubclass(CATALOGUE[name], Shown) or callable(CATALOGUE[name])


def test_empty_and_uncertified_ones_too():
    Page(fl.solve(fl.Problem(X, Y, loss="squared", penalty=fl.L1(), alpha=1e9)).history._repr_html_())
    page = fl.path(X, Y, loss="squared", penalty=fl.L1(), alphas=[1e9])
    assert "svg" not in Page(page._repr_html_()).tags  # one point is no curve


def test_a_problem_prints_as_one_line():
    text = repr(objects()["problem"][0])
    assert text.startswith("Problem(80 rows, 6 features, Squared(), GroupLasso(") and text.endswith("alpha 0.05)")
    assert "\n" not in text and "sparse" not in text


# -- progress ---------------------------------------------------------------------------------------


@pytest.fixture
def notebook(monkeypatch):
    """IPython as far as progress asks for it; what it was told to display."""
    drawn = []

    class Handle:
        def update(self, content, raw):
            drawn.append(("update", content["text/plain"]))

    def show(content, raw, display_id):
        drawn.append(("display", content["text/plain"]))
        return Handle()

    module, inner = types.ModuleType("IPython"), types.ModuleType("IPython.display")
    module.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    inner.display = show
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", inner)
    return drawn


@pytest.mark.parametrize("what", ["solve", "path", "cv", "fit"])
def test_a_notebook_gets_one_output_that_is_redrawn(notebook, capsys, what):
    problem = fl.Problem(X, Y, loss="squared", penalty=fl.L1(), alpha=0.05)
    if what == "solve":
        fl.solve(problem, progress=True)
    elif what == "path":
        fl.path(problem, n_alphas=8, verbose=True)
    elif what == "cv":
        fl.cross_validate_path(problem, n_alphas=8, verbose=True)
    else:
        fl.StructuredRegressorCV(n_alphas=8, verbose=True).fit(X, Y)
    assert [kind for kind, _ in notebook].count("display") == 1 and notebook[-1][0] == "update"
    out = capsys.readouterr()
    assert out.err == "" and out.out == ""
    if what != "solve":
        done, total = notebook[-1][1].split(" ")[0:3:2]
        assert done == total


@pytest.mark.parametrize("last", [True, False])
def test_a_pipe_gets_a_line_a_minute(monkeypatch, capsys, last):
    now = [0.0]
    monkeypatch.setattr(display.time, "monotonic", lambda: now[0])
    lines = display.LineAMinute(last)
    for second in range(600):
        now[0] = float(second)
        lines.show(f"second {second}")
    lines.end()
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 9 + last and said[0] == "second 60"
    assert said[-1] == ("second 599" if last else "second 540")


def test_a_passing_line_stays_out_of_a_live_bar(monkeypatch):
    """Kernels that are compiled under a bar were counted in the midst of it, with the signs that clear a line."""
    rich = pytest.importorskip("rich")
    terminal = io.StringIO()
    terminal.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", terminal)
    line = display.Passing()
    line.show("1 kernel compiled")
    assert "1 kernel compiled" in terminal.getvalue()
    line._end.cancel()
    proxy = importlib.import_module("rich.file_proxy").FileProxy(rich.get_console(), terminal)
    monkeypatch.setattr(sys, "stderr", proxy)
    monkeypatch.setattr(line, "_drawn", -1.0)
    line.show("2 kernels compiled")
    line._clear()
    assert "2 kernels" not in terminal.getvalue() and terminal.getvalue().count("\x1b[K") == 1
