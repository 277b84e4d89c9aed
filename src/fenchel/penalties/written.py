"""What a penalty knows of features and outputs, as the user wrote it.

Parameters that are named groups, tree, graph, grid, shape or order are understood by themselves.
"""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ..structure import Graph, Grid, Groups


class Written:
    """The structure of a penalty as it was written; :class:`fenchel.Penalty` adds the function."""

    joint = False  # whether it wants the coefficients of all outputs at once, whatever fits

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        raise NotImplementedError

    def set_params(self, **params: Any) -> Any:
        raise NotImplementedError

    def _own_params(self) -> dict[str, Any]:
        raise NotImplementedError

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
