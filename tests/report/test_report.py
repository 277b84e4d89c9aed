"""The page of --report: whole, true, and without a single reference to anything outside itself."""

import base64
import functools
import html.parser
import io
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree

import numpy as np
import pytest

import fenchel as fl
from fenchel import cli, report

testing = pytest.importorskip("typer.testing", reason="the command line needs typer (fenchel[cli])")
pd = pytest.importorskip("pandas", reason="these tests write CSV files with pandas (fenchel[io])")
pytest.importorskip("matplotlib", reason="the report needs matplotlib (fenchel[plot])")

rng = np.random.default_rng(0)
X = rng.standard_normal((100, 12))
SCORE = X @ np.r_[2.0, 2.0, -1.0, np.zeros(9)] + 0.3 * rng.standard_normal(100)
NAMES = [f"<f{j}> & co" for j in range(12)]  # what a page must not take for its own


class Page(html.parser.HTMLParser):
    """What a page consists of, and what it refers to."""

    VOID = ("meta", "img", "br", "link", "input", "hr")

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.references, self.images, self.text = [], [], [], [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "srcset", "data", "action", "poster", "background"):
                self.references.append(value)
            if name == "style" and "url(" in value:
                self.references.append(value)
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            assert not re.search(r"fetch\(|XMLHttpRequest|import\(|innerHTML", data)
        elif self.open and self.open[-1] == "style":
            self.references += re.findall(r"url\\([^)]*\\)|@import[^;]*", data)
        else:
            self.text += data


def check(text):
    """A whole page that fetches nothing; its pictures are sound."""
    page = Page(text)
    assert text.startswith("<!doctype html>") and text.endswith("</html>\n") and page.open == []
    assert not {"link", "iframe", "object", "embed", "base", "form"} & set(page.tags)
    assert all(reference.startswith("data:image/") for reference in page.references)
    assert 'name="viewport"' in text and "width=device-width" in text
    for image in page.images:
        kind, content = re.fullmatch(r"data:image/([a-z+]+);base64,(.*)", image["src"]).groups()
        content = base64.b64decode(content, validate=True)
        assert image["alt"]
        if kind == "png":
            assert content.startswith(b"\x89PNG")
        else:
            drawing = xml.etree.ElementTree.fromstring(content)
            assert drawing.tag.endswith("svg")
            links = [v for e in drawing.iter() for k, v in e.attrib.items() if k.endswith("href")]
            assert all(link.startswith(("#", "data:")) for link in links)
    return page


def run(*args):
    result = testing.CliRunner().invoke(cli.make_app(), [str(arg) for arg in args])
    assert result.exit_code == 0, result.stderr
    return result


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame(X, columns=NAMES)
    frame.assign(y=SCORE).to_csv("d.csv", index=False)
    frame.assign(y=np.array(["a", "b", "c"])[np.arange(100) % 3]).to_csv("kinds.csv", index=False)
    (tmp_path / "g.json").write_text(json.dumps({"<one>": NAMES[:4], "two": NAMES[4:8], "three": NAMES[8:]}))
    (tmp_path / "e.csv").write_text("\n".join(f"{j},{j + 1}" for j in range(11)))
    (tmp_path / "t.csv").write_text("\n".join(f"{name},{'left' if j < 5 else 'right'}" for j, name in enumerate(NAMES)))
    return tmp_path


STRUCTURES = {
    "nothing": [],
    "groups": ["--penalty", "group-lasso", "--groups", "g.json"],
    "tree": ["--penalty", "tree-groups", "--tree", "t.csv"],
    "graph": ["--penalty", "graph-fused", "--edges", "e.csv"],
    "grid": ["--penalty", "total-variation", "--shape", "3x4", "--anisotropic"],
    "volume": ["--penalty", "total-variation", "--shape", "3x2x2"],
    "unpenalised": ["--penalty", "group-lasso", "--groups", "g.json", "--unpenalised", "0"],
}


@pytest.mark.parametrize(
    ("command", "structure"),
    [
        *(("fit", name) for name in STRUCTURES),
        ("path", "groups"),
        ("path", "unpenalised"),
        ("cv", "groups"),
        ("cv", "grid"),
    ],
)
def test_a_page_for_every_command_and_structure(folder, command, structure):
    few = [] if command == "fit" else ["--n-alphas", "5", "--eps", "0.1"]
    run(command, "d.csv", *STRUCTURES[structure], *few, "--report", "r.html", "--tol", "1e-4", "--standardize")
    page_text = (folder / "r.html").read_text(encoding="utf-8")
    page = check(page_text)
    for word in (
        "converged",
        "Certificate",
        "lowest possible objective",
        "relative gap",
        "per standard deviation",
        NAMES[0],
    ):
        assert word in page.text, word
    alts = " ".join(image["alt"] for image in page.images)
    assert alts.count("certificate by certificate") == 1
    numbers = json.loads(re.search(r"<script type=application/json id=numbers>(.*?)</script>", page_text, re.S)[1])
    assert len(numbers["alphas"]) == (1 if command == "fit" else 5) and "R² on the rows fitted" in page.text
    assert ("Loss of held-out rows" in alts) == (command == "cv")
    assert ("Coefficients as the penalty grows weaker" in alts) == (command != "fit")
    assert ("norms of the largest" in alts) == (structure in ("groups", "tree", "unpenalised"))
    assert ("on their graph" in alts) == (structure == "graph")
    assert ("where their features stand" in alts) == (structure in ("grid", "volume"))
    assert ("<one>" in page.text) == (structure in ("groups", "unpenalised"))


@pytest.mark.parametrize("options", [["--penalty", "multi-task-lasso"], ["--penalty", "tv", "--shape", "3x4"],
                                     ["--penalty", "graph", "--edges", "e.csv"]])  # fmt: skip
def test_several_classes(folder, options):
    run(
        "fit",
        "kinds.csv",
        "--multi-class",
        "ovr",
        *options,
        "--report",
        "r.html",
        "--tol",
        "1e-4",
        "--alpha-ratio",
        "0.3",
    )
    page = check((folder / "r.html").read_text(encoding="utf-8"))
    assert "a, b, c; each against the rest" in page.text


def test_the_numbers_are_those_of_the_model(folder):
    run("fit", "d.csv", "--penalty", "group-lasso", "--groups", "g.json", "--report", "r.html")
    page = check((folder / "r.html").read_text(encoding="utf-8"))
    with open("model.json") as file:
        model = json.load(file)
    certificate = model["certificate"]
    for value in (f"{certificate['primal']:.10g}", f"{certificate['gap']:.3e}", f"{certificate['relative_gap']:.3e}"):
        assert value in page.text
    coef = np.array(model["coef"])
    assert f"{np.count_nonzero(coef)} of 12 coefficients are not zero" in page.text
    for value in coef[coef != 0]:
        assert f"{value:.5g}" in page.text
    live = sum(bool(coef[k : k + 4].any()) for k in (0, 4, 8))
    assert f"{live} of 3 groups are not zero" in page.text
    assert f"lower the objective by more than {certificate['relative_gap']:.1e}" in page.text


def test_an_unproven_answer_is_said_to_be_one(folder):
    run("fit", "d.csv", "--loss", "huber", "--max-epochs", "1", "--tol", "1e-14", "--report", "r.html", "-q")
    page = check((folder / "r.html").read_text(encoding="utf-8"))
    assert "epoch limit" in page.text and "converged" not in page.text.replace("not converged", "")
    assert "the goal was 1e-14" in page.text or "Nothing is proven" in page.text


def test_zero_and_many_coefficients(folder):
    run("fit", "d.csv", "--alpha-ratio", "2", "--report", "zero.html", "-q")
    assert "0 of 12 coefficients are not zero" in check((folder / "zero.html").read_text()).text
    wide = np.random.default_rng(1).standard_normal((30, 900))
    np.savez("wide.npz", X=wide, y=wide[:, 0])
    run("path", "wide.npz", "--n-alphas", "25", "--eps", "0.2", "--tol", "1e-2", "--report", "wide.html", "-q")
    text = (folder / "wide.html").read_text()
    assert "data:image/png" in text and len(text) < 2_000_000  # many lines are pixels
    check(text)


def test_the_same_answer_gives_the_same_page():
    result = fl.solve(fl.Problem(X, SCORE, loss="squared", penalty=fl.L1(), alpha=0.1), tol=1e-6)
    pages = [report.make("t", result, tol=1e-6, names=NAMES) for _ in range(2)]
    assert pages[0] == pages[1]
    check(pages[0])


def test_a_page_appears_whole_or_not_at_all(folder, monkeypatch):
    (folder / "r.html").write_text("the old page")

    def fail(*args, **kwargs):
        raise OSError("the disk is full")

    monkeypatch.setattr("fenchel.report.answer.page", fail)
    result = testing.CliRunner().invoke(cli.make_app(), ["fit", "d.csv", "--report", "r.html"])
    assert result.exit_code == 2 and "the disk is full" in result.stderr
    assert (folder / "r.html").read_text() == "the old page"
    assert not [name for name in os.listdir() if name.startswith(".fenchel")]


def test_without_matplotlib_it_fails_before_the_work(folder):
    code = "import sys; sys.modules['matplotlib'] = None; from fenchel.cli import main; main()"
    command = [sys.executable, "-c", code, "fit", "d.csv", "--report", "r.html"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 2 and "pip install 'fenchel[plot]'" in done.stderr and done.stderr.count("\n") == 1
    assert not os.path.exists("model.json") and not os.path.exists("r.html")


# -- in a browser -----------------------------------------------------------------------------------


@functools.cache
def browser():
    return next(
        (
            found
            for name in ("chromium", "chromium-browser", "google-chrome", "chrome")
            if (found := shutil.which(name))
        ),
        None,
    )


def browse(folder, *options):
    command = [browser(), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
               f"--user-data-dir={folder / 'profile'}", *options, (folder / "r.html").as_uri()]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.skipif(browser() is None, reason="no browser is installed (Debian: apt install chromium)")
def test_a_browser_shows_every_picture_on_a_phone(folder):
    run("cv", "d.csv", "--penalty", "group-lasso", "--groups", "g.json", "--n-alphas", "5", "--report", "r.html", "-q")
    text = (folder / "r.html").read_text()
    # a script that the page itself does not have measures what the browser made of it, without a network
    probe = (
        "<script>addEventListener('load', () => { const images = [...document.images];"
        "document.body.dataset.seen = JSON.stringify({images: images.length,"
        "shown: images.filter(i => i.complete && i.naturalWidth > 0 && i.clientWidth > 200).length,"
        "wide: document.documentElement.scrollWidth, window: innerWidth,"
        "fetched: performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:')).length}); })"
        "</script>"
    )
    (folder / "r.html").write_text(text.replace("</body>", probe + "</body>"))
    offline = "--host-resolver-rules=MAP * ~NOTFOUND"
    for window in ("500,900", "1280,900"):
        dump = browse(folder, offline, f"--window-size={window}", "--virtual-time-budget=5000", "--dump-dom").stdout
        seen = json.loads(html.unescape(re.search(r'data-seen="([^"]*)"', dump)[1]))
        assert seen["images"] == seen["shown"] >= 2 and seen["fetched"] == 0, seen
        assert seen["wide"] <= seen["window"], seen  # nothing to push sideways
    (folder / "r.html").write_text(text)
    browse(folder, offline, "--window-size=500,2400", f"--screenshot={folder / 'shot.png'}")
    from matplotlib.image import imread

    pixels = imread(io.BytesIO((folder / "shot.png").read_bytes()))
    assert pixels.shape[0] >= 2000 and pixels[..., :3].std() > 0.05


@pytest.mark.parametrize("command", ["fit", "path"])
def test_names_with_dollar_signs_are_names_and_not_formulas(tmp_path, monkeypatch, command):
    monkeypatch.chdir(tmp_path)
    names = ["$a$", r"cost in $ \frac$", "$_{", "plain"]
    pd.DataFrame(X[:, :4], columns=names).assign(y=SCORE).to_csv("d.csv", index=False)
    with open("groups.json", "w") as file:
        json.dump({r"$\frac$": [0, 1], "$x": [2, 3]}, file)
    options = ("--penalty", "group-lasso", "--groups", "groups.json", "--report", "p.html", "--picture", "p.svg")
    result = testing.CliRunner().invoke(cli.make_app(), [command, "d.csv", *options])
    assert result.exit_code == 0, result.stderr
    assert os.path.exists("p.html") and os.path.exists("p.svg")


CLICKS = """<script>addEventListener('load', () => {
  const dial = document.getElementById('alpha'), out = {}, seen = [];
  const read = () => Object.fromEntries([...document.querySelectorAll('#readout div')].map(
    one => [one.children[0].textContent, one.children[1].textContent]));
  const lines = () => [...document.querySelectorAll('#panels line.here')].map(one => one.getAttribute('x1')).join();
  out.panels = [...document.querySelectorAll('#panels h3')].map(one => one.textContent);
  for (let i = 0; i <= dial.max; i++) {
    dial.value = i;
    dial.dispatchEvent(new Event('input'));
    seen.push({facts: read(), lines: lines(), bars: document.querySelectorAll('#panels rect').length});
  }
  out.seen = seen;
  const picture = document.querySelector('#panels svg'), box = picture.getBoundingClientRect();
  picture.dispatchEvent(new MouseEvent('click', {clientX: box.left + 1, clientY: box.top + 5, bubbles: true}));
  out.clicked = dial.value;
  const head = [...document.querySelectorAll('th.sort')].find(one => one.textContent === 'coefficient');
  const column = () => [...head.closest('table').querySelectorAll('tr')].slice(1).map(
    row => Number(row.children[head.cellIndex].textContent));
  head.click();
  out.falling = column();
  head.click();
  out.rising = column();
  const root = document.documentElement, before = getComputedStyle(document.body).backgroundColor;
  document.getElementById('shade').click();
  out.shades = [before, getComputedStyle(document.body).backgroundColor];
  const names = [...document.querySelectorAll('#panels svg')].slice(0, 3).map(svg =>
    [...svg.querySelectorAll('text.name')].map(one => one.getBoundingClientRect()).sort((a, b) => a.top - b.top));
  out.labels = [...document.querySelectorAll('#panels svg text')].map(one => one.textContent);
  out.collide = names.some(boxes => boxes.some((box, k) => k && box.top < boxes[k - 1].bottom - 3));
  document.body.dataset.out = JSON.stringify(out);
});</script>"""


@pytest.mark.skipif(browser() is None, reason="no browser is installed (Debian: apt install chromium)")
def test_the_slider_moves_everything_and_tables_sort(folder):
    run("cv", "d.csv", "--penalty", "group-lasso", "--groups", "g.json", "--n-alphas", "6", "--report", "r.html", "-q")
    text = (folder / "r.html").read_text()
    (folder / "r.html").write_text(text.replace("</body>", CLICKS + "</body>"))
    dump = browse(folder, "--window-size=1280,900", "--virtual-time-budget=5000", "--dump-dom").stdout
    out = json.loads(html.unescape(re.search(r'data-out="([^"]*)"', dump)[1]))
    for title in ("Cross-validation", "Coefficients along the path", "Groups at this alpha", "Fitted values"):
        assert title in out["panels"]
    facts = [one["facts"] for one in out["seen"]]
    alphas = [float(one["alpha"]) for one in facts]
    assert alphas == sorted(alphas, reverse=True) and len(set(alphas)) == 6
    assert float(facts[-1]["R²"]) > float(facts[0]["R²"]) and facts[0]["not zero"] == "0"
    assert len({one["lines"] for one in out["seen"]}) == 6 and out["seen"][0]["bars"] < out["seen"][-1]["bars"]
    assert out["clicked"] == "0"
    assert "0" in out["labels"] and not any(re.search(r"e-1\d$", label) for label in out["labels"])  # zero is zero
    assert out["falling"] == sorted(out["falling"], reverse=True) and out["rising"] == sorted(out["rising"])
    assert out["shades"][0] != out["shades"][1] and not out["collide"]


def test_counts_are_judged_by_their_deviance():
    """On the scale of the counts, and by the measure that the estimator's `score` uses."""
    from fenchel.report.explore import Fitted

    years = rng.uniform(0.5, 2.0, 100)
    counts = rng.poisson(years * np.exp(0.3 * X[:, 0])).astype(float)
    model = fl.StructuredRegressor("poisson", alpha=0.02).fit(X, counts, offset=np.log(years))
    problem = fl.Problem(X, counts, loss="poisson", fit_intercept=True, offset=np.log(years))
    fitted = Fitted.of(problem, model.coef_[None], np.array([model.intercept_]), None)
    name, explained = fitted.quality
    assert name == "D²" and explained[0] == pytest.approx(model.score(X, counts, offset=np.log(years)), rel=1e-9)
    np.testing.assert_allclose(fitted.scores[0], model.predict(X, offset=np.log(years)), rtol=1e-9)
