"""The numbers with names in the package: which there are, and which of them decide something.

    python scripts/constants.py             the counts, room by room
    python scripts/constants.py --list      every name with its value

Five kinds of names hold numbers: at the top of a module or of a class, in a dictionary there, or as the default of an
argument.

- *quantities*, which decide something: a tolerance, a limit, a share, a price. What is counted against the limit of
  `tests/house/test_rooms.py`. Defaults of private functions and of those in `engine` and `kernels` are quantities,
  since nobody else chooses them; but 0, 1 and infinity are none: they stand for nothing, all, and no limit.
- *places* of an array, which decide nothing: all names that are unpacked from one `range(...)`, the members of an
  enumeration, and the values of a dictionary that count from 0 or 1.
- *empty arrays*, which stand for "none of them".
- *attributes* of a class in small letters, by which an object answers for itself (`smoothness`), and fields with their
  defaults. In capitals they are quantities.
- *defaults* of public functions, which a user may change.

A name that is bound to anything else is not seen here: the type of a machine word (`ir.IntType(32)`), an array, what is
worked out from other names, a number within a formula.
"""

from __future__ import annotations

import argparse
import ast
import collections
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "fenchel"
KINDS = ("quantity", "place", "empty", "attribute", "default")
ARRAYS = ("zeros", "ones", "empty", "IntType")  # calls that make no number of numbers
NO_LIMITS = ("0", "1", "0.0", "1.0", "math.inf")
OWN = ("engine", "kernels")  # rooms whose functions no user calls


def constants(package: Path = PACKAGE) -> Iterator[tuple[str, str, str, str]]:
    """Module, name, value as it is written, and kind of every number with a name."""
    for file in sorted(package.rglob("*.py")):
        module = str(file.relative_to(package))
        tree = ast.parse(file.read_text(encoding="utf-8"))
        for name, value, kind in _bound(tree.body):
            yield module, name, value, kind
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                enumeration = any("Enum" in ast.unparse(base) for base in node.bases)
                for name, value, kind in _bound(node.body):
                    own = "attribute" if kind == "quantity" and not name.isupper() else kind
                    yield module, f"{node.name}.{name}", value, "place" if enumeration else own
        yield from _defaults(module, tree)


def _defaults(module: str, tree: ast.Module) -> Iterator[tuple[str, str, str, str]]:
    """The numbers among the defaults of functions and methods."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef):
            continue
        given = [*node.args.posonlyargs, *node.args.args]
        pairs = [*zip(reversed(given), reversed(node.args.defaults), strict=False)]
        pairs += [*zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)]
        private = module.split("/")[0] in OWN or (node.name.startswith("_") and not node.name.startswith("__"))
        for argument, value in pairs:
            if value is not None and _number(value) and ast.unparse(value) not in NO_LIMITS:
                name = f"{node.name}({argument.arg})"
                yield module, name, ast.unparse(value), "quantity" if private else "default"


def _bound(body: list[ast.stmt]) -> Iterator[tuple[str, str, str]]:
    """Name, value and kind of the numbers that these statements bind."""
    for node in body:
        if isinstance(node, ast.Assign):
            targets, value = node.targets, node.value
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            targets, value = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
                pairs = list(zip(target.elts, value.elts, strict=True))
            elif isinstance(target, ast.Tuple):
                pairs = [(one, value) for one in target.elts]
            else:
                pairs = [(target, value)]
            for one, own in pairs:
                kind = _kind(own, unpacked=isinstance(target, ast.Tuple))
                if isinstance(one, ast.Name) and kind:
                    yield one.id, ast.unparse(own), kind


def _kind(value: ast.expr, unpacked: bool) -> str | None:
    if _called(value, "range"):
        return "place" if unpacked else "quantity"
    if _called(value, "zeros") and _zero(value):
        return "empty"
    if isinstance(value, ast.Dict) and value.values and all(map(_number, value.values)):
        written = [ast.unparse(one) for one in value.values]
        counted = any(written == [str(first + k) for k in range(len(written))] for first in (0, 1))
        return "place" if counted else "quantity"
    return "quantity" if _number(value) else None


def _called(value: ast.expr, name: str) -> bool:
    if not isinstance(value, ast.Call):
        return False
    return getattr(value.func, "id", getattr(value.func, "attr", None)) == name


def _zero(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and isinstance(value.args[0], ast.Constant) and value.args[0].value == 0


def _number(value: ast.expr) -> bool:
    """Whether an expression is made of numbers alone."""
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float) and not isinstance(value.value, bool)
    if isinstance(value, ast.UnaryOp):
        return _number(value.operand)
    if isinstance(value, ast.BinOp):
        return _number(value.left) and _number(value.right)
    if isinstance(value, ast.Tuple | ast.List):
        return bool(value.elts) and all(map(_number, value.elts))
    if isinstance(value, ast.Call):
        return bool(value.args) and all(map(_number, value.args)) and not any(_called(value, name) for name in ARRAYS)
    if isinstance(value, ast.Attribute):  # np.pi, np.finfo(float).eps
        return ast.unparse(value).startswith(("np.finfo", "math.", "np.pi")) or _number(value.value)
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true", help="print every name with its value")
    listed = parser.parse_args().list
    found = list(constants())
    rooms: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for module, _, _, kind in found:
        rooms[module.split("/")[0]][kind] += 1
    if listed:
        for module, name, value, kind in found:
            print(f"{kind:10} {module}: {name} = {value}")
    print(f"{'room':16}", *(f"{kind:>10}" for kind in KINDS))
    for room, counts in sorted(rooms.items(), key=lambda item: -item[1]["quantity"]):
        print(f"{room:16}", *(f"{counts[kind]:10}" for kind in KINDS))
    print(f"{'all':16}", *(f"{sum(one[kind] for one in rooms.values()):10}" for kind in KINDS))


if __name__ == "__main__":
    main()
