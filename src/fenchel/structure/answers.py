"""Reading an answer: which features, groups and segments it uses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from .._validate import AnyArray, Array, Frame, Ints
from .graph import Graph
from .grid import Grid
from .groups import Groups
from .names import _index, _names, _pandas
from .tree import GroupsLike, as_groups


def support(coef: npt.ArrayLike, names: Any = None, outputs: Sequence[Any] | None = None) -> Frame:
    """The features with non-zero coefficients, the largest first.

    Parameters
    ----------
    coef : array (p,) or (outputs, p)
    names : list of str, structure or data frame, optional
        Of the features; numbers by default.
    outputs : list, optional
        Names of several outputs; numbers by default.

    Returns
    -------
    pandas.DataFrame
        Columns `feature` and `coefficient`; with several outputs also `output`.
    """
    coef = _as_coef(coef)
    names = _feature_names(names, coef.shape[1])
    output, feature = np.nonzero(coef)
    value = coef[output, feature]
    order = np.lexsort((-np.abs(value), output))
    columns = {"output": _output_names(outputs, len(coef))[output[order]]} if len(coef) > 1 else {}
    return _pandas().DataFrame(columns | {"feature": names[feature[order]], "coefficient": value[order]})


@runtime_checkable
class Grouping(Protocol):
    """What knows groups of features, and what each of them has in coefficients: a penalty."""

    def grouped(self, coef: Array) -> tuple[Groups, list[Array]] | None: ...


def active_groups(coef: npt.ArrayLike, groups: GroupsLike | Grouping) -> Frame:
    """The groups with a non-zero coefficient, the largest norm first.

    Of latent groups, a feature's coefficient is the sum of the parts that its groups have in it: give the penalty in
    place of the groups, and those count whose part is not zero.

    Parameters
    ----------
    coef : array (p,) or (outputs, p)
        A feature counts as non-zero where one of its outputs is.
    groups : Groups, Tree, what Groups takes, or a penalty that has groups

    Returns
    -------
    pandas.DataFrame
        Indexed by group: its `size`, how many features are `nonzero`, and the Euclidean `norm` of their coefficients
        (of latent groups: of the group's part in them).
    """
    coef = _as_coef(coef)
    if isinstance(groups, Grouping):
        found = groups.grouped(coef)
        if found is None:
            raise ValueError(f"{groups!r} has no groups; give groups")
        groups, parts = found
    else:
        groups = as_groups(groups, coef.shape[1])
        parts = [coef[:, group] for group in groups]
    nonzero = np.array([np.count_nonzero(part.any(axis=0)) for part in parts])
    norm = np.array([np.linalg.norm(part) for part in parts])
    order = np.argsort(-norm, kind="stable")
    order = order[nonzero[order] > 0]
    columns = {"size": groups.sizes[order], "nonzero": nonzero[order], "norm": norm[order]}
    return _pandas().DataFrame(columns, index=_index([groups.names[k] for k in order], "group"))


def segments(
    coef: npt.ArrayLike, structure: Any = None, names: Any = None, outputs: Sequence[Any] | None = None
) -> Frame:
    """The connected features that share one value, bit for bit.

    Parameters
    ----------
    coef : array (p,) or (outputs, p)
    structure : Graph, Grid, edges, "line" or "sizes"
        What connects the features: in a line (also None) each is joined to the next, and "sizes" joins all of one
        absolute value. Along an edge of negative weight the values are opposite.
    names : list of str or data frame, optional
        Of the features; the structure's by default.
    outputs : list, optional
        Names of several outputs; numbers by default.

    Returns
    -------
    pandas.DataFrame
        A row per segment, in the order of its first feature: `value` (of that feature), `size` and `features`; with
        several outputs also `output`.
    """
    coef = _as_coef(coef)
    p = coef.shape[1]
    sizes = isinstance(structure, str) and structure == "sizes"
    edges, sign = _edges(None if sizes else structure, p)
    names = _feature_names(structure if names is None and hasattr(structure, "features") else names, p)
    labels, rows = _output_names(outputs, len(coef)), []
    for k, w in enumerate(coef):
        if sizes:
            label = np.unique(np.abs(w), return_inverse=True)[1]
        else:
            a, b = edges[w[edges[:, 0]] == sign * w[edges[:, 1]]].T
            graph = sp.coo_array((np.ones(a.size), (a, b)), shape=(p, p))
            label = sp.csgraph.connected_components(graph, directed=False)[1]
        members = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
        for part in sorted(members, key=lambda part: part[0]):
            row = {"output": labels[k]} if len(coef) > 1 else {}
            rows.append(row | {"value": w[part[0]], "size": part.size, "features": list(names[part])})
    return _pandas().DataFrame(rows)


def _as_coef(coef: npt.ArrayLike) -> Array:
    coef = np.asarray(coef, dtype=float)
    if coef.ndim not in (1, 2) or coef.size == 0:
        raise ValueError(f"coef has shape {coef.shape}; it must be (p,) or (outputs, p)")
    return np.atleast_2d(coef)


def _output_names(outputs: Sequence[Any] | None, count: int) -> AnyArray:
    if outputs is None:
        return np.arange(count)
    if len(outputs) != count:
        raise ValueError(f"outputs has {len(outputs)} names for {count} outputs")
    return np.asarray(outputs)


def _feature_names(names: Any, p: int) -> AnyArray:
    names = getattr(names, "features", names)
    if names is None:
        return np.arange(p)
    names = _names(names, "names")
    if len(names) != p:
        raise ValueError(f"names has {len(names)} entries for {p} coefficients")
    return np.array(names, dtype=object)


def _edges(structure: Any, p: int) -> tuple[Ints, Array]:
    """Edges and, for each, whether its ends are equal (1) or opposite (-1)."""
    if structure is None or (isinstance(structure, str) and structure == "line"):
        edges, weights = np.column_stack([np.arange(p - 1), np.arange(1, p)]), None
    else:
        graph = structure if isinstance(structure, (Graph, Grid)) else Graph(structure, p)
        graph.checked(p)
        edges, weights = graph.edges, getattr(graph, "weights", None)
    return edges, np.ones(len(edges)) if weights is None else np.where(weights < 0, -1.0, 1.0)
