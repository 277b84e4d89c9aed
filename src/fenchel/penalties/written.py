"""What a penalty knows of features and outputs, as the user wrote it.

Parameters that are named groups, tree, graph, grid, shape or order are understood by themselves.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..foundation.html import Shown
from ..foundation.words import listed

if TYPE_CHECKING:
    from ..structure import Graph, Grid, Groups


class Written(Shown):
    """The structure of a penalty as it was written; :class:`fenchel.Penalty` adds the function."""

    joint = False  # whether it wants the coefficients of all outputs at once, whatever fits

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        raise NotImplementedError

    def set_params(self, **params: Any) -> Any:
        raise NotImplementedError

    def _own_params(self) -> dict[str, Any]:
        raise NotImplementedError

    def _html_rows(self) -> list[tuple[str, Any]]:
        return [(name, "not given" if value is None else value) for name, value in self._own_params().items()]

    def written_parts(self, places: np.ndarray | None, p: int) -> Iterator[tuple[Any, np.ndarray | None]]:
        """The penalties that it is made of as the user wrote it, each with the features that it acts on.

        `places` are the features that this one acts on, of p in all; None means all, in their order. A penalty that is
        repeated for every output stands for itself.
        """
        yield self, places

    def feature_groups(self, size: int) -> Groups | None:
        """The groups of the `size` features that it acts on; None where it has none."""
        from ..structure import as_groups

        params = self._own_params()
        found = next((params[name] for name in ("groups", "tree") if params.get(name) is not None), None)
        return None if found is None else as_groups(found)

    def group_parts(self, coef: np.ndarray, groups: Groups) -> list[np.ndarray]:
        """What every group has in coefficients (outputs, size): those of its features, or its own parts."""
        return [coef[:, group] for group in groups]

    def grouped(self, coef: np.ndarray) -> tuple[Groups, list[np.ndarray]] | None:
        """The groups of features that it is made of, and what each of them has in coefficients (outputs, p).

        Where the groups number the coefficients of all outputs, one output's after the other's, there is one row.
        """
        from ..structure import Groups

        p = coef.shape[1]
        for part, places in self.written_parts(None, p):
            groups = part.feature_groups(p if places is None else len(places))
            if groups is None:
                continue
            own = coef if places is None else coef[:, places]
            own = own.reshape(1, -1) if groups.flat.max() >= own.shape[1] else own
            numbered = groups if places is None else Groups([places[group] for group in groups], groups.names, p)
            return numbered, part.group_parts(own, groups)
        return None

    def feature_graph(self, size: int) -> Graph | Grid | str | None:
        """What joins features: a graph, a grid, "sizes" where features of one size stick together; None for nothing."""
        from ..structure import Graph, Grid

        params = self._own_params()
        graph, grid = params.get("graph"), params.get("grid")
        if graph is not None:
            return graph if isinstance(graph, Graph) else Graph(graph, size)
        if grid is not None:
            return grid if isinstance(grid, Grid) else Grid(grid)
        return Graph(Grid(size).edges, size) if params.get("order") == 1 else None  # a line

    def feature_shape(self, size: int) -> Grid | tuple[int, ...] | int | None:
        """The line, image or volume that the features lie on, or the shape of their matrix; None for none."""
        params = self._own_params()
        found = next((params[name] for name in ("grid", "shape") if params.get(name) is not None), None)
        return size if found is None and params.get("order") is not None else found

    def named_structures(self) -> list[Any]:
        """The groups, trees and graphs among its parameters, which may know features by names."""
        params = self._own_params()
        return [params[name] for name in ("groups", "tree", "graph") if params.get(name) is not None]

    def for_columns(self, names: Any) -> Any:
        """This penalty for data whose columns have these names; a ValueError if its structure is of others."""
        named = self.with_feature_names(names)
        for part, places in named.written_parts(None, len(names)):
            own = names if places is None else [names[place] for place in places]
            for structure in part.named_structures():
                _check_columns(structure, own)
        return named

    def with_feature_names(self, names: list[str]) -> Any:
        """This penalty with these names wherever it holds names of features but not the list of all."""
        changes = {}
        for name, part in self.get_params(deep=False).items():
            own = part.with_feature_names(names) if isinstance(part, Written) else part
            if own is not part:
                changes[name] = own
        return copy.copy(self).set_params(**changes) if changes else self

    def for_outputs(self, outputs: int, p: int) -> Any:
        """The penalty on all outputs * p coefficients, output after output.

        One that declares itself joint (by the attribute `joint`, or a parameter `n_outputs`) gets the coefficients of
        all outputs; so does one that fits outputs * p coefficients but not p. Any other is applied to each output for
        itself.
        """
        from .compile import compile_penalty
        from .outputs import PerOutput

        written: Any = self  # a penalty, by the class that it is part of
        params = self.get_params(deep=False)
        if "n_outputs" in params:
            return copy.copy(self).set_params(n_outputs=outputs) if params["n_outputs"] is None else self
        if outputs == 1 or self.joint:
            return self
        try:
            compile_penalty(written, p, 1.0)
        except ValueError:
            with contextlib.suppress(ValueError):
                compile_penalty(written, outputs * p, 1.0)
                return self
            raise
        return PerOutput(written, outputs)


_REMEDY = (
    "make it with features=X, or let the penalty make it at every fit from groups or edges by name, by='_' or "
    "by=function"
)


def _check_columns(structure: Any, names: Any) -> None:
    """Refuse structure that knows the features by other names than the data does."""
    known = getattr(structure, "features", None)
    if known is None:
        return
    if len(known) == len(names):
        other = next((j for j in range(len(names)) if str(names[j]) != known[j]), None)
        if other is not None:
            raise ValueError(
                f"{structure!r} knows feature {other} as {known[other]!r}, but that column of X is {names[other]!r}; "
                f"{_REMEDY}, or fit to an array, which has no names"
            )
    elif len(known) % len(names):  # a multiple: perhaps it is about all outputs
        own = {str(name) for name in names}
        absent = [repr(name) for name in known if name not in own]
        extra = [repr(str(name)) for name in names if str(name) not in set(known)]
        found = f"X lacks {listed(absent)}" if absent else f"X has {listed(extra)} besides"
        raise ValueError(f"{structure!r} was made for {len(known)} columns, but X has {len(names)}: {found}; {_REMEDY}")
