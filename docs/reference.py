"""The pages of the API reference, written from the package itself: a public name cannot be missing from them."""

from __future__ import annotations

import enum
import importlib
import inspect
import pathlib
import re
import types

import fenchel

TITLES = {
    "models.estimators": "Estimators",
    "models.cv_estimators": "Estimators that cross-validate",
    "models.adaptive": "Adaptive penalties",
    "models.stability": "Stability selection",
    "models.saved_estimator": "Saved estimators",
    "problem": "Problem",
    "solver": "Solving",
    "solver.result": "Results",
    "models": "Paths and cross-validation",
    "structure": "Structure with names",
    "penalties.catalogue": "Penalties by purpose",
    "penalties": "Penalties to build from",
    "maps": "Maps",
    "losses": "Losses",
    "proximal": "Proximal operator",
}
"""Headings in reading order; a module that is not here follows under its own name."""

FURTHER = ("plotting", "datasets", "methods", "methods.sdca_admm")
"""Modules that have no name in `fenchel.__all__` and yet are of use."""


def sections() -> dict[str, list[str]]:
    """The public names by heading, modules last."""
    homes = {}
    for name in fenchel.__all__:
        home = "modules" if isinstance(getattr(fenchel, name), types.ModuleType) else fenchel._NAMES[name]
        homes.setdefault(home, []).append(name)
    modules = list(dict.fromkeys([*homes.pop("modules", []), *FURTHER]))
    order = [*(home for home in TITLES if home in homes), *(home for home in homes if home not in TITLES)]
    declared = {home: fenchel._HOME[home] for home in order}  # in the order of the package, not of the alphabet
    return {TITLES.get(home, home): declared[home] for home in order} | {"Modules": modules}


def index() -> str:
    """The page that lists them all."""
    lines = ["API reference", "=============", "", f"Every public name of fenchel {fenchel.__version__}.", ""]
    for title, names in sections().items():
        lines += [title, "-" * len(title), "", ".. currentmodule:: fenchel", ""]
        lines += [".. autosummary::", "   :nosignatures:"]
        lines += ["", *(f"   {name}" for name in names), "", ".. toctree::", "   :hidden:", ""]
        lines += [*(f"   {page_name(name)}" for name in names), ""]
    return "\n".join(lines)


def page_name(name: str) -> str:
    """Files of `path` and `Path` must differ where capitals do not."""
    return f"{name}-function" if name.islower() and not isinstance(value_of(name), types.ModuleType) else name


def value_of(name: str):
    return importlib.import_module(f"fenchel.{name}") if name in FURTHER else getattr(fenchel, name)


def page(name: str) -> str:
    """The page of one name."""
    value = value_of(name)
    lines = [name, "=" * len(name), "", ".. currentmodule:: fenchel", ""]
    if isinstance(value, types.ModuleType):
        lines += [f".. automodule:: fenchel.{name}", "   :members:"]
        within = [value_of(other) for other in FURTHER if other.startswith(f"{name}.")]  # these have pages of their own
        told = {key for other in within for key in other.__all__ if vars(value).get(key) is vars(other)[key]}
        lines += [f"   :exclude-members: {', '.join(sorted(told))}"] if told else []
    elif inspect.isclass(value):
        members = documented_members(value)
        lines += [f".. autoclass:: {name}", *([f"   :members: {', '.join(members)}"] if members else [])]
        if issubclass(value, enum.Enum):
            lines += ["   :undoc-members:"]
    else:
        lines += [f".. autofunction:: {name}"]
    return "\n".join([*lines, ""])


def documented_members(value: type) -> list[str]:
    """Methods and properties with a docstring, of the class and of those of its bases that have no page.

    What scikit-learn adds (`get_params`, metadata requests) is described in its documentation, and what a penalty,
    loss or map inherits on the page of its base.
    """
    if issubclass(value, enum.Enum):
        return list(value.__members__)
    ours = [base for base in value.__mro__ if base.__module__.startswith("fenchel.")]
    ours = [base for base in ours if base is value or base.__name__ not in fenchel.__all__]
    names = dict.fromkeys(name for base in ours for name in vars(base) if not name.startswith("_"))
    members = {name: inspect.getattr_static(value, name) for name in names}
    # a constant has no __get__, a method or property has
    return [
        name
        for name, member in members.items()
        if hasattr(member, "__get__") and _docstring(member) and not re.fullmatch(r"set_\w+_request", name)
    ]


def _docstring(member) -> str | None:
    return getattr(getattr(member, "__func__", member), "__doc__", None)


def pages() -> dict[str, str]:
    """The text of every page, by the name of its file."""
    return {"index": index()} | {page_name(name): page(name) for names in sections().values() for name in names}


def write(folder: pathlib.Path) -> None:
    """Write all pages, and nothing that is already as it should be: Sphinx rebuilds what changed."""
    folder.mkdir(exist_ok=True)
    texts = pages()
    for path in folder.glob("*.rst"):
        if path.stem not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / f"{name}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
