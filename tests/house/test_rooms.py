"""The house rules that can be counted, and the names that 0.2.0 promised."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
from pathlib import Path

import pytest

import fenchel
from fenchel.losses import Loss
from fenchel.maps import Map
from fenchel.methods import METHODS
from fenchel.penalties import Penalty

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "fenchel"
FILES = sorted(PACKAGE.rglob("*.py"))
LONGEST = 500
"""Lines of a file, so that a reader sees what it is about."""
QUANTITIES = 357
"""Numbers with names that decide something. It may fall, and it must not rise: what another one would say, a principle
or a measurement that is already there should."""

JUDGE = "testing/hostile/conic.py"
"""Writes losses and penalties for a conic solver. It judges them, so that it must not ask them how."""


@pytest.fixture(scope="module")
def trees():
    """The syntax of every module, by its path in the package."""
    return {str(file.relative_to(PACKAGE)): ast.parse(file.read_text(encoding="utf-8")) for file in FILES}


@pytest.fixture(scope="module")
def script():
    place = ROOT / "scripts" / "constants.py"
    spec = importlib.util.spec_from_file_location("constants", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def calls(tree, name):
    """The calls of a function or class by its plain name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
            yield node


def test_the_root_holds_packages():
    assert {file.name for file in PACKAGE.glob("*.py")} == {"__init__.py", "__main__.py", "_validate.py"}
    assert (PACKAGE / "py.typed").exists()


def test_no_file_is_too_long():
    long = {str(file.relative_to(ROOT)): len(file.read_text(encoding="utf-8").splitlines()) for file in FILES}
    long = {name: lines for name, lines in long.items() if lines > LONGEST}
    assert not long, f"{long}: split them by what they are about"


def test_one_place_makes_results(trees):
    places = [f"{name}:{node.lineno}" for name, tree in trees.items() for node in calls(tree, "Result")]
    assert len(places) == 1 and places[0].startswith("solver/run.py"), places


def test_nobody_asks_a_state_for_what_it_may_have(trees):
    asked = [
        f"{name}:{node.lineno}"
        for name, tree in trees.items()
        for asking in ("getattr", "hasattr")
        for node in calls(tree, asking)
        if ast.unparse(node.args[0]) in ("state", "self.state")
    ]
    assert not asked, asked


def families(base):
    """The names of all classes of a role but its base, and the package that they live in."""
    found, todo = set(), list(base.__subclasses__())
    while todo:
        kind = todo.pop()
        todo += kind.__subclasses__()
        if kind.__module__.startswith("fenchel."):
            found.add((kind.__name__, kind.__module__.split(".")[1]))
    return found


def test_objects_answer_for_themselves(trees):
    """No module asks what class a loss, penalty, map or method is; whether it is a penalty at all may be asked."""
    for package in ("losses", "penalties", "maps", "methods"):
        for file in (PACKAGE / package).rglob("*.py"):
            importlib.import_module(".".join(["fenchel", *file.relative_to(PACKAGE).with_suffix("").parts]))
    home = dict(pair for base in (Loss, Penalty, Map) for pair in families(base))
    home |= {kind.__name__: "methods" for kind in METHODS.values()}
    assert {"L1", "Hinge", "Incidence", "SDCAADMM"} <= set(home)
    switches = []
    for name, tree in trees.items():
        for asking in ("isinstance", "issubclass"):
            for node in calls(tree, asking):
                asked = {getattr(part, "id", getattr(part, "attr", None)) for part in ast.walk(node.args[1])}
                if any(home.get(kind, name.split("/")[0]) != name.split("/")[0] for kind in asked) and name != JUDGE:
                    switches.append(f"{name}:{node.lineno}: {ast.unparse(node)}")
    assert not switches, switches


def test_constants_do_not_grow(script):
    found = [one for one in script.constants() if one[3] == "quantity"]
    assert len(found) <= QUANTITIES, f"{len(found)} numbers; `python scripts/constants.py --list` has them"


def test_places_are_told_from_quantities(script, tmp_path):
    """What the counter counts, on a module of which the answer is known."""
    (tmp_path / "one.py").write_text(
        "A, B = range(2)\nC = 3\nD, E = 1e-3, -2.0\nF = 1 << 20\nG = np.zeros(0)\nH = (1, 2)\nI: float = 0.5\n"
        "J = 'word'\nclass K(enum.IntEnum):\n    L = 0\nclass M:\n    N = 3\n    _O = 4\n    p: int = 1\n"
        "_i8, Q = ir.IntType(8), float(2)\nR = {'a': 0, 'b': 1}\nS = {'a': 0.5}\nT = (0, np.zeros(2))\nU = 2 * C\n"
        "def _v(a, b=1, *, c=5): pass\ndef w(d=6): pass\n"
    )
    found = {name: kind for _, name, _, kind in script.constants(tmp_path)}
    assert found == {
        "A": "place", "B": "place", "C": "quantity", "D": "quantity", "E": "quantity", "F": "quantity", "G": "empty",
        "H": "quantity", "I": "quantity", "K.L": "place", "M.N": "quantity", "M._O": "quantity", "M.p": "attribute",
        "Q": "quantity", "R": "place", "S": "quantity", "_v(c)": "quantity", "w(d)": "default",
    }  # fmt: skip


# -- what 0.2.0 promised ------------------------------------------------------------------------------

PROMISED = Path(__file__).with_name("names-0.2.0.txt").read_text(encoding="utf-8").split()
"""Every name in the reference of 0.2.0, with methods and the functions of modules."""


def value_of(name):
    """What stands under a dotted name of the package, a module too."""
    value = fenchel
    for part in name.split("."):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(f"{value.__name__}.{part}")
    return value


def test_names_of_0_2_0_are_there():
    assert len(PROMISED) == 284
    lost = []
    for name in PROMISED:
        try:
            value_of(name)
        except (AttributeError, ImportError):
            lost.append(name)
    assert not lost, lost


def test_arguments_of_0_2_0_are_there():
    """Those that most programs name, in the order of 0.2.0 where they may be given without a name."""
    expected = {
        "solve": ["problem", "method", "tol", "max_epochs"],
        "path": ["problem"],
        "prox": ["v", "penalty", "step", "tol", "max_iter", "warm_start", "return_info"],
        "Problem": ["X", "y", "loss", "penalty", "alpha", "sample_weight", "fit_intercept", "task"],
        "StructuredRegressor": ["loss", "penalty", "alpha"],
    }
    for name, arguments in expected.items():
        value = value_of(name)
        known = list(inspect.signature(value.__init__ if inspect.isclass(value) else value).parameters)
        assert [one for one in known if one in arguments] == arguments, name
