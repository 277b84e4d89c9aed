"""Groups of features, by number or by name: sets, weights, and what is in none of them.

A `Groups` knows the number of features p (where it can), keeps the names of features and groups, and refuses what
does not fit with a ValueError that names it. The catalogue of penalties takes it, or plain lists in its place.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from .._validate import AnyArray, Frame, Index, Ints, MatrixLike, Names, repeated, warn_user
from ..foundation.files import text_lines
from ..foundation.html import Shown, table
from ..foundation.lazy import lazy
from .encoders import _outputs
from .names import _fits, _index, _label, _names, _number, _pandas, _places, _several


class Groups(Shown):
    """Groups of features; they may overlap and leave features out.

    Parameters
    ----------
    groups : list of lists, dict, or vector of p labels
        Each list holds feature numbers, or names if `features` is given. A dict has the groups' names as keys. A
        vector puts every feature into the group of its label.
    names : list of str, optional
        One per group; "group 0", "group 1", … by default.
    p : int, optional
        The number of features.
    features : list of str or data frame, optional
        Names of all features, in the order of the columns.

    Attributes
    ----------
    members : list of arrays
        Feature numbers of each group.
    flat, bounds : vectors
        The same one after another: group k is flat[bounds[k]:bounds[k + 1]].
    names, features, p
        As above; `features` and `p` are None where they are not known.

    Examples
    --------
    >>> import fenchel as fl
    >>> fl.Groups({"colour": ["red", "blue"], "size": ["height", "width", "red"]},
    ...           features=["red", "blue", "height", "width"])
    Groups(2 groups of 2 to 3 of 4 features, 1 feature in several)
    """

    def __init__(
        self, groups: MatrixLike, names: Names | None = None, p: int | None = None, features: Names | None = None
    ) -> None:
        self.features = None if features is None else _names(features)
        self.p = _number(p, self.features, "features")
        if isinstance(groups, dict):
            if names is not None:
                raise ValueError("names is given twice: groups is a dict, whose keys are the names")
            names, groups = list(groups), list(groups.values())
        elif isinstance(groups, str) or not hasattr(groups, "__iter__"):
            raise ValueError(f"groups is {groups!r}; it must be a list of groups, a dict or a vector of labels")
        else:
            labels = isinstance(groups, np.ndarray) and groups.ndim == 1 and groups.dtype != object
            groups = groups if labels else list(groups)
            if labels or (groups and all(np.isscalar(label) for label in groups)):
                if self.p not in (None, len(groups)):
                    raise ValueError(f"groups has {len(groups)} labels for {self.p} features")
                self.p = len(groups)
                groups, names = _by_label(groups, names)
        if not groups:
            raise ValueError("groups is empty; give at least one group of features")
        if names is not None:
            self.names = _names(names, "names")
            if len(self.names) != len(groups):
                raise ValueError(f"names has {len(self.names)} entries for {len(groups)} groups")
        if not all(_are_numbers(group) for group in groups):
            self.bounds = np.arange(len(groups) + 1)  # names of groups are counted by them
            places = {} if self.features is None else _places(self.features)
            groups = [_numbers(name, group, places) for name, group in zip(self.names, groups, strict=True)]
        flat, bounds = np.concatenate(groups), np.zeros(len(groups) + 1, dtype=np.int64)
        np.cumsum([len(group) for group in groups], out=bounds[1:])
        self.bounds = bounds
        self._check(flat, bounds)
        self.flat = flat.astype(np.int64)

    @lazy
    def names(self) -> list[str]:
        return [f"group {k}" for k in range(len(self))]

    @lazy
    def members(self) -> list[np.ndarray]:
        return [self.flat[first:last] for first, last in itertools.pairwise(self.bounds.tolist())]

    def _check(self, flat: AnyArray, bounds: Ints) -> None:
        """Refuse numbers that are no features, and a feature that stands in one group twice."""
        last = np.inf if self.p is None else self.p - 1
        whole = flat.dtype.kind != "f" or (flat == np.floor(flat)).all()
        if not (whole and flat.min() >= 0 and flat.max() <= last):
            outside = np.flatnonzero((flat < 0) | (flat > last) | (flat != np.floor(flat)))
            name, number = self.names[np.searchsorted(bounds, outside[0], side="right") - 1], flat[outside[0]]
            if number != np.floor(number):
                raise ValueError(f"group {name!r} holds {number}; it must be a list of feature numbers or names")
            upper = "" if self.p is None else f" to {self.p - 1}"
            raise ValueError(f"group {name!r} holds feature {number}; features are numbered from 0{upper}")
        twice = repeated(flat, bounds)
        if twice is not None:
            feature = _label(self.features, int(twice[1]))
            raise ValueError(f"group {self.names[twice[0]]!r} holds feature {feature} twice")

    # -- where groups come from ----------------------------------------------------------------------

    @classmethod
    def from_columns(cls, columns: Names, by: Any = "_") -> Groups:
        """Groups from the names of columns.

        Parameters
        ----------
        columns : data frame or list of names
        by : str, list of str, dict or callable
            A string separates the group's name from the rest, at its first occurrence: "_" puts "colour_red" and
            "colour_blue" into "colour", and a column without it into a group of its own. A list holds the groups'
            names; a column belongs to the longest that it begins with. A dict goes from group to columns, or from
            column to group. A callable goes from a column's name to its group, to a list of groups, or to None for
            none.
        """
        names = _names(columns, "columns")
        if isinstance(by, dict):
            return cls._from_dict(names, by)
        if isinstance(by, str):
            if not by:
                raise ValueError("by is the empty string; give a separator such as '_'")
            key: Callable[[str], Any] = _before(by)
        elif callable(by):
            key = by
        else:
            key = _longest_prefix([str(prefix) for prefix in by])
        groups: dict[str, list[str]] = {}
        for name in names:
            found = key(name)
            for group in [] if found is None else [found] if np.isscalar(found) else found:
                groups.setdefault(str(group), []).append(name)
        if isinstance(by, str) and not any(by in name for name in names):
            warn_user(
                f"by={by!r} separates no name of the {len(names)} columns (the first is {names[0]!r}), so that each is "
                "a group of its own",
                UserWarning,
            )
        if isinstance(by, (list, tuple)):
            empty = [prefix for prefix in by if prefix not in groups]
            if empty:
                raise ValueError(f"no column begins with {empty[0]!r}")
        return cls(groups, features=names)

    @classmethod
    def _from_dict(cls, names: list[str], by: Any) -> Groups:
        if by and all(np.isscalar(value) or value is None for value in by.values()):
            known = set(names)
            groups: dict[str, list[str]] = {}
            for column, group in by.items():
                if str(column) not in known:
                    raise ValueError(f"by names the column {column!r}, which is not among the {len(names)} columns")
                if group is not None:
                    groups.setdefault(str(group), []).append(str(column))
        else:
            groups = {str(group): [str(column) for column in columns] for group, columns in by.items()}
        return cls(groups, features=names)

    @classmethod
    def from_encoder(cls, encoder: Any) -> Groups:
        """One group per original column, from a fitted OneHotEncoder or ColumnTransformer.

        The outputs of a OneHotEncoder, KBinsDiscretizer or SplineTransformer are grouped by the column they come
        from; a column that is passed on, or transformed to one column, is a group of its own; the outputs of any
        other transformer form one group. In a Pipeline the last step that is not one to one decides.
        """
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(encoder)
        groups = _outputs(encoder, getattr(encoder, "feature_names_in_", None))
        try:
            features = list(encoder.get_feature_names_out())
        except (AttributeError, ValueError):  # some transformers cannot name their outputs
            features = None
        return cls(groups, p=sum(map(len, groups.values())), features=features)

    @classmethod
    def from_gmt(
        cls, file: str | os.PathLike[str] | Iterable[str], genes: Names, min_size: int = 1, max_size: int | None = None
    ) -> Groups:
        """Pathways from a GMT file: a name, a description and genes on every line, separated by tabs.

        Parameters
        ----------
        file : path (.gz is read too) or open text file
        genes : list of names or data frame
            All features, in the order of the columns. Genes of the file that are not among them are left out.
        min_size, max_size : int
            Pathways with fewer or more of these genes are left out.
        """
        genes = _names(genes, "genes")
        places = _places(genes)
        groups: dict[str, list[int]] = {}
        for number, line in enumerate(_lines(file), 1):
            fields = line.rstrip("\r\n").split("\t")
            if not line.strip():
                continue
            if len(fields) < 3:
                raise ValueError(f"line {number} of the GMT file has {len(fields)} fields; it needs a name, a "
                                 "description and genes, separated by tabs")  # fmt: skip
            if fields[0] in groups:
                raise ValueError(f"line {number} of the GMT file names the pathway {fields[0]!r} a second time")
            groups[fields[0]] = [places[gene] for gene in dict.fromkeys(fields[2:]) if gene in places]
        most = len(genes) if max_size is None else max_size
        kept = {name: group for name, group in groups.items() if max(min_size, 1) <= len(group) <= most}
        if not kept:
            raise ValueError(f"none of the {len(groups)} pathways has {max(min_size, 1)} to {most} of the {len(genes)} "
                             f"genes (the first gene is {genes[0]!r})")  # fmt: skip
        return cls(kept, features=genes)

    # -- looking at them -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __iter__(self) -> Iterator[Index]:
        return iter(self.members)

    def __getitem__(self, name: str | int) -> Index:
        if isinstance(name, str):
            if name not in self.names:
                raise KeyError(f"there is no group {name!r}")
            return self.members[self.names.index(name)]
        return self.members[name]

    @property
    def sizes(self) -> Ints:
        return np.diff(self.bounds)

    @property
    def overlap(self) -> bool:
        """Whether some feature stands in several groups."""
        return np.unique(self.flat).size < self.flat.size

    def checked(self, p: int | None) -> Groups:
        """Self, for p features; a ValueError names a group that does not fit."""
        p = _fits(self, p)
        if p is not None and self.p is None and self.flat.max() >= p:
            k = int(np.searchsorted(self.bounds, np.flatnonzero(self.flat >= p)[0], side="right")) - 1
            raise ValueError(
                f"group {self.names[k]!r} holds feature {self.members[k].max()}; features are numbered from 0 to "
                f"{p - 1}"
            )
        return self

    def complete(self, p: int | None = None) -> Groups:
        """These groups, and one for every feature that stands in none (which would carry no penalty)."""
        p = self.checked(p).p or p
        if p is None:
            raise ValueError("p is needed: these groups do not know the number of features")
        alone = np.setdiff1d(np.arange(p), np.concatenate(self.members))
        names = [self.features[j] if self.features else f"feature {j}" for j in alone]
        taken = set(self.names)
        names = [f"{name} alone" if name in taken else name for name in names]
        return Groups([*self.members, *alone[:, None]], [*self.names, *names], p, self.features)

    def to_plain(self) -> dict[str, Any]:
        """What a file needs to make them again."""
        members = [group.tolist() for group in self.members]
        return {"members": members, "names": list(self.names), "p": self.p, "features": self.features}

    def to_frame(self) -> Frame:
        """A data frame with a row per group: its size and features."""
        members = [[self.features[j] for j in g] if self.features else g.tolist() for g in self.members]
        return _pandas().DataFrame({"size": self.sizes, "features": members}, index=_index(self.names, "group"))

    def _html_title(self) -> str:
        return repr(self)

    def _html_more(self) -> list[str]:
        rows = []
        for name, members in zip(self.names[:10], self.members, strict=False):
            some = [_label(self.features, int(j)).strip("'") for j in members[:8]]
            rows.append((name, len(members), ", ".join(some) + (", …" if len(members) > 8 else "")))
        return [table(["group", "size", "features"], rows, len(self) - 10)]

    def __repr__(self) -> str:
        sizes = self.sizes
        each = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
        text = f"{_several(len(self), 'group')} of {each}"
        text += f" of {self.p} features" if self.p is not None else " features"
        counts = np.unique(np.concatenate(self.members), return_counts=True)[1]
        several = np.count_nonzero(counts > 1)
        if several:
            text += f", {_several(int(several), 'feature')} in several"
        if self.p is not None and counts.size < self.p:
            text += f", {self.p - counts.size} in none"
        return f"Groups({text})"


def _are_numbers(group: Any) -> bool:
    return isinstance(group, np.ndarray) and group.ndim == 1 and group.size > 0 and group.dtype.kind in "iuf"


def _numbers(name: Any, group: Any, places: Any) -> AnyArray:
    """The features of one group as numbers, from numbers or names."""
    if _are_numbers(group):
        return np.asarray(group)
    if isinstance(group, str) or not hasattr(group, "__iter__"):
        raise ValueError(f"group {name!r} is {group!r}; it must be a list of features")
    group = group if isinstance(group, np.ndarray) else list(group)
    if not len(group):
        raise ValueError(f"group {name!r} is empty; drop it or give it features")
    members = np.asarray(group)
    if members.dtype.kind not in "iuf":
        unknown = [member for member in group if isinstance(member, str) and member not in places]
        if unknown and not places:
            raise ValueError(f"group {name!r} holds {unknown[0]!r}; names need features=, the list of all of them")
        if unknown:
            raise ValueError(f"group {name!r} holds {unknown[0]!r}, which is not among the {len(places)} features")
        members = np.asarray([places[member] if isinstance(member, str) else member for member in group])
    if members.ndim != 1 or members.dtype.kind not in "iuf":
        raise ValueError(f"group {name!r} holds {group[0]!r}; it must be a list of feature numbers or names")
    return members


def _by_label(labels: npt.ArrayLike, names: Names | None) -> tuple[list[AnyArray], Names]:
    values, code = np.unique(np.asarray(labels), return_inverse=True)
    groups = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])
    return groups, [str(value) for value in values] if names is None else names


def _before(separator: str) -> Callable[[str], str]:
    return lambda name: name.split(separator, 1)[0] or name


def _longest_prefix(prefixes: list[str]) -> Callable[[str], str | None]:
    prefixes = sorted(prefixes, key=len, reverse=True)
    return lambda name: next((prefix for prefix in prefixes if name.startswith(prefix)), None)


def _lines(file: str | os.PathLike[str] | Iterable[str]) -> Iterator[str]:
    if not isinstance(file, (str, os.PathLike)):
        yield from file
        return
    for _, line in text_lines(file):
        yield line
