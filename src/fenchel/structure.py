"""What is known about the features: groups, a graph, a grid, a tree; with names.

Each of them knows the number of features p (where it can), keeps the names of features and groups, and refuses what
does not fit with a ValueError that names it. The catalogue takes them, or plain lists and arrays in their place.
`active_groups`, `segments` and `support` answer by name from coefficients, as pandas data frames.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import numbers
import os

import numpy as np
import scipy.sparse as sp

from ._validate import _count, finite_vector, repeated

_SLAB = 1 << 22  # correlations looked at together

# -- names ------------------------------------------------------------------------------------------


def _names(names, what="features") -> list[str] | None:
    """A list of different names, from a list or the columns of a data frame; None stays None."""
    if names is None:
        return None
    names = getattr(names, "columns", names)
    if isinstance(names, str) or not hasattr(names, "__iter__"):
        raise ValueError(f"{what} is {names!r}; it must be a list of names")
    names = [name if isinstance(name, str) else str(name) for name in names]
    places = _places(names)
    if len(places) < len(names):
        twice = next(name for k, name in enumerate(names) if places[name] != k)
        raise ValueError(f"{what} names {twice!r} twice")
    return names


def _places(names) -> dict:
    return {name: k for k, name in enumerate(names)}


def _number(p, names, what):
    """The number of features that p and the names agree on; None where neither says."""
    if p is not None:
        p = _count("p", p)
        if names is not None and len(names) != p:
            raise ValueError(f"{what} has {len(names)} names for p = {p} features")
        return p
    return None if names is None else len(names)


def _label(names, k):
    return repr(names[k]) if names is not None else str(k)


def _several(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _fits(structure, p):
    """Refuse p features for a structure of another number; returns the number that is known."""
    if structure.p is not None and p is not None and structure.p != p:
        raise ValueError(
            f"{structure!r} describes {structure.p} features, but the penalty acts on {p}; "
            "for several outputs see PerOutput and MultiTaskLasso, for further covariates Unpenalised"
        )
    return structure.p if p is None else p


def _pandas():
    try:
        import pandas
    except ImportError as error:
        raise ImportError("answers by name are pandas data frames; install pandas (pip install fenchel[io])") from error
    return pandas


# -- groups -----------------------------------------------------------------------------------------


class Groups:
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

    def __init__(self, groups, names=None, p: int | None = None, features=None):
        self.features = _names(features)
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
        self.names = [f"group {k}" for k in range(len(groups))] if names is None else _names(names, "names")
        if len(self.names) != len(groups):
            raise ValueError(f"names has {len(self.names)} entries for {len(groups)} groups")
        places = {} if self.features is None else _places(self.features)
        numbers = [_numbers(name, group, places) for name, group in zip(self.names, groups, strict=True)]
        bounds = np.concatenate([[0], np.cumsum([len(group) for group in numbers])])
        flat = np.concatenate(numbers)
        self._check(flat, bounds)
        self.flat, self.bounds = flat.astype(np.int64), bounds.astype(np.int64)
        self.members = [self.flat[first:last] for first, last in itertools.pairwise(bounds.tolist())]

    def _check(self, flat, bounds):
        """Refuse numbers that are no features, and a feature that stands in one group twice."""
        last = np.inf if self.p is None else self.p - 1
        outside = np.flatnonzero((flat < 0) | (flat > last) | (flat != np.floor(flat)))
        if outside.size:
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
    def from_columns(cls, columns, by="_") -> Groups:
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
            key = _before(by)
        elif callable(by):
            key = by
        else:
            key = _longest_prefix([str(prefix) for prefix in by])
        groups: dict[str, list[str]] = {}
        for name in names:
            found = key(name)
            for group in [] if found is None else [found] if np.isscalar(found) else found:
                groups.setdefault(str(group), []).append(name)
        if isinstance(by, (list, tuple)):
            empty = [prefix for prefix in by if prefix not in groups]
            if empty:
                raise ValueError(f"no column begins with {empty[0]!r}")
        return cls(groups, features=names)

    @classmethod
    def _from_dict(cls, names, by):
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
    def from_encoder(cls, encoder) -> Groups:
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
    def from_gmt(cls, file, genes, min_size: int = 1, max_size: int | None = None) -> Groups:
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

    def __len__(self):
        return len(self.members)

    def __iter__(self):
        return iter(self.members)

    def __getitem__(self, name):
        if isinstance(name, str):
            if name not in self.names:
                raise KeyError(f"there is no group {name!r}")
            return self.members[self.names.index(name)]
        return self.members[name]

    @property
    def sizes(self) -> np.ndarray:
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

    def to_frame(self):
        """A data frame with a row per group: its size and features."""
        members = [[self.features[j] for j in g] if self.features else g.tolist() for g in self.members]
        return _pandas().DataFrame({"size": self.sizes, "features": members}, index=_index(self.names, "group"))

    def __repr__(self):
        sizes = self.sizes
        each = f"{sizes.min()}" if sizes.min() == sizes.max() else f"{sizes.min()} to {sizes.max()}"
        text = f"{_several(len(self), 'group')} of {each}"
        text += f" of {self.p} features" if self.p is not None else " features"
        counts = np.unique(np.concatenate(self.members), return_counts=True)[1]
        several = np.count_nonzero(counts > 1)
        if several:
            text += f", {_several(several, 'feature')} in several"
        if self.p is not None and counts.size < self.p:
            text += f", {self.p - counts.size} in none"
        return f"Groups({text})"


def as_groups(groups, p: int | None = None) -> Groups:
    """Groups from a Groups object, index lists, a dict or a vector of labels, for p features."""
    if isinstance(groups, Tree):
        groups = groups.groups()
    return (groups if isinstance(groups, Groups) else Groups(groups)).checked(p)


def _numbers(name, group, places):
    """The features of one group as numbers, from numbers or names."""
    if isinstance(group, np.ndarray) and group.ndim == 1 and group.size and group.dtype.kind in "iuf":
        return group
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


def _by_label(labels, names):
    values, code = np.unique(np.asarray(labels), return_inverse=True)
    groups = np.split(np.argsort(code, kind="stable"), np.cumsum(np.bincount(code))[:-1])
    return groups, [str(value) for value in values] if names is None else names


def _before(separator):
    return lambda name: name.split(separator, 1)[0] or name


def _longest_prefix(prefixes):
    prefixes = sorted(prefixes, key=len, reverse=True)
    return lambda name: next((prefix for prefix in prefixes if name.startswith(prefix)), None)


def _lines(file):
    if not isinstance(file, (str, os.PathLike)):
        yield from file
        return
    with (gzip.open if os.fspath(file).endswith(".gz") else open)(file, "rt", encoding="utf-8") as lines:
        yield from lines


def _outputs(encoder, columns) -> dict[str, list[int]]:
    """Group -> numbers of the outputs of a fitted transformer of these columns."""
    if hasattr(encoder, "output_indices_"):
        return _column_transformer_outputs(encoder)
    if hasattr(encoder, "steps"):
        steps = [step for _, step in encoder.steps if step is not None and step != "passthrough"]
        while len(steps) > 1 and _keeps_columns(steps[-1]):
            steps.pop()
        if not steps:
            return {str(name): [k] for k, name in enumerate(columns)}
        return _outputs(steps[-1], getattr(steps[-1], "feature_names_in_", columns))
    count = encoder.n_features_in_
    columns = [f"x{k}" for k in range(count)] if columns is None or len(columns) != count else list(columns)
    widths = _widths(encoder)
    if widths is None:
        raise ValueError(f"{encoder!r} is not an encoder whose outputs can be told apart by column; give a "
                         "OneHotEncoder or a ColumnTransformer")  # fmt: skip
    ends = np.cumsum(widths)
    return {str(name): list(range(end - width, end))
            for name, width, end in zip(columns, widths, ends, strict=True) if width}  # fmt: skip


def _keeps_columns(encoder):
    """Whether the transformer has one output for every input."""
    if hasattr(encoder, "output_indices_") or hasattr(encoder, "steps"):
        return False
    return _widths(encoder) == [1] * encoder.n_features_in_


def _widths(encoder) -> list[int] | None:
    """Outputs per input column of a fitted transformer; None where they do not stand side by side."""
    count = encoder.n_features_in_
    if hasattr(encoder, "categories_") and hasattr(encoder, "drop_idx_"):  # OneHotEncoder
        widths = [len(categories) for categories in encoder.categories_]
        if getattr(encoder, "infrequent_categories_", None) is not None:
            for k, rare in enumerate(encoder.infrequent_categories_):
                widths[k] -= 0 if rare is None else len(rare) - 1
        if encoder.drop_idx_ is not None:
            widths = [width - (dropped is not None) for width, dropped in zip(widths, encoder.drop_idx_, strict=True)]
        return widths
    if hasattr(encoder, "n_bins_"):  # KBinsDiscretizer
        return [1] * count if encoder.encode == "ordinal" else [int(bins) for bins in encoder.n_bins_]
    if hasattr(encoder, "bsplines_"):  # SplineTransformer
        return [encoder.n_features_out_ // count] * count
    try:
        outputs = len(encoder.get_feature_names_out())
    except (AttributeError, ValueError):
        return None
    return [1] * count if outputs == count else None


def _column_transformer_outputs(encoder):
    groups: dict[str, list[int]] = {}
    names = getattr(encoder, "feature_names_in_", None)
    for label, transformer, columns in encoder.transformers_:
        outputs = encoder.output_indices_.get(label, slice(0, 0))
        width = outputs.stop - outputs.start
        if not width:
            continue
        columns = _columns(columns, names, encoder.n_features_in_)
        if isinstance(transformer, str):  # "passthrough"
            own = {name: [k] for k, name in enumerate(columns)}
        else:
            try:
                own = _outputs(transformer, columns)
            except ValueError:
                own = {label: list(range(width))}
        if sum(map(len, own.values())) != width:
            own = {label: list(range(width))}
        for name, places in own.items():
            if name in groups:  # one column that goes through several transformers
                name = f"{label}__{name}"
            groups[name] = [outputs.start + k for k in places]
    return groups


def _columns(columns, names, count):
    """Names of the columns that a ColumnTransformer's selector means."""
    names = [f"x{k}" for k in range(count)] if names is None else [str(name) for name in names]
    if isinstance(columns, str):
        return [columns]
    columns = columns if isinstance(columns, slice) else np.atleast_1d(np.asarray(columns))
    if not isinstance(columns, slice) and columns.dtype.kind in "OUT":
        return [str(name) for name in columns]
    return list(np.array(names, dtype=object)[columns])


# -- graphs -----------------------------------------------------------------------------------------


class Graph:
    """An undirected graph whose nodes are the features.

    Parameters
    ----------
    edges : array of shape (m, 2), list of pairs, or data frame
        Feature numbers, or names if `features` is given. A third column holds weights.
    p : int, optional
        The number of features; needed where `features` does not tell it.
    weights : vector of m numbers, optional
        How strongly an edge fuses its ends. A negative one asks for opposite values.
    features : list of str or data frame, optional
        Names of all features, in the order of the columns.

    Attributes
    ----------
    edges : array (m, 2)
    weights : array of m, or None where all are 1
    features, p

    Examples
    --------
    >>> import fenchel as fl
    >>> fl.Graph([("a", "b"), ("b", "c")], features=["a", "b", "c", "d"])
    Graph(2 edges between 4 features)
    """

    def __init__(self, edges, p: int | None = None, weights=None, features=None):
        self.features = _names(features)
        self.p = _number(p, self.features, "features")
        if self.p is None:
            raise ValueError("p or features is needed: edges alone do not tell the number of features")
        pairs, own = _pairs(edges)
        self.edges = self._numbers(pairs)
        weights = own if weights is None else weights
        self.weights = None if weights is None else finite_vector("weights", weights, len(self.edges))
        self._check()

    def _numbers(self, pairs):
        """Feature numbers of pairs that may be names."""
        numbers = pairs
        if not isinstance(pairs, np.ndarray):
            places = {} if self.features is None else _places(self.features)
            numbers = [[places.get(node, -1) if isinstance(node, str) else node for node in pair] for pair in pairs]
            numbers = np.array(numbers, dtype=float).reshape(-1, 2)
        missing = np.argwhere(~((numbers >= 0) & (numbers < self.p) & (numbers == np.floor(numbers))))
        if len(missing):
            k, end = missing[0]
            a, b = (node.item() if isinstance(node, np.generic) else node for node in pairs[k])
            raise ValueError(
                f"edge {k}, ({a!r}, {b!r}), joins {(a, b)[end]!r}, which is not among the {self.p} features"
            )
        return numbers.astype(np.int64)

    def _check(self):
        loops = np.flatnonzero(self.edges[:, 0] == self.edges[:, 1])
        if loops.size:
            raise ValueError(f"edge {loops[0]} joins {_label(self.features, self.edges[loops[0], 0])} to itself")
        low, high = self.edges.min(axis=1, initial=self.p), self.edges.max(axis=1, initial=-1)
        _, first = np.unique(low * self.p + high, return_index=True)
        if first.size < len(self.edges):
            k = np.setdiff1d(np.arange(len(self.edges)), first)[0]
            a, b = (_label(self.features, j) for j in self.edges[k])
            raise ValueError(f"edge {k} joins {a} and {b} a second time")

    @classmethod
    def from_edges(cls, edges, p: int | None = None, features=None, weights=None) -> Graph:
        """The graph with these edges; parameters as in the class."""
        return cls(edges, p, weights, features)

    @classmethod
    def from_networkx(cls, graph, features=None, weight: str | None = "weight") -> Graph:
        """A networkx graph.

        Parameters
        ----------
        graph : networkx graph
            The directions of its edges are ignored.
        features : list of nodes or data frame, optional
            The nodes in the order of the columns; by default in the graph's own order. Those that the graph does not
            hold have no edges.
        weight : str or None
            Attribute of the edges with their weights, 1 where it is missing; None: all are 1.
        """
        nodes = list(graph.nodes if features is None else getattr(features, "columns", features))
        places = {node: k for k, node in enumerate(nodes)}
        edges: dict[tuple[int, int], float] = {}
        for a, b, value in graph.edges(data=weight or "weight", default=1.0):
            for node in (a, b):
                if node not in places:
                    raise ValueError(f"the edge ({a!r}, {b!r}) joins {node!r}, which is not among the "
                                     f"{len(nodes)} features")  # fmt: skip
            # both directions of an edge, and parallel ones, are one
            edges.setdefault((min(places[a], places[b]), max(places[a], places[b])), 1.0 if weight is None else value)
        weights = np.array(list(edges.values()), dtype=float)
        pairs = np.array(list(edges), dtype=np.int64).reshape(-1, 2)
        return cls(pairs, len(nodes), None if np.all(weights == 1) else weights, [str(node) for node in nodes])

    @classmethod
    def from_data(cls, X, method: str = "glasso", *, alpha: float = 0.005, threshold: float = 0.5,
                  neighbours: int | None = None, signed: bool = False, features=None) -> Graph:  # fmt: skip
        """A graph that joins features which go together in the data.

        Parameters
        ----------
        X : array, sparse matrix or data frame (n, p)
        method : {"glasso", "correlation"}
            The graphical lasso (as in the paper; minutes beyond some hundred features), or the pairs whose
            correlation is large (fast).
        alpha : float
            Penalty of the graphical lasso; a larger one leaves fewer edges.
        threshold : float
            Smallest absolute correlation of an edge.
        neighbours : int, optional
            An edge must also be among this many strongest of one of its ends.
        signed : bool
            Negatively correlated ends are asked for opposite values: weight -1.
        features : list of str, optional
            Names; those of a data frame by default.
        """
        features = X if features is None and hasattr(X, "columns") else features
        X = X if sp.issparse(X) else np.asarray(X.to_numpy() if hasattr(X, "to_numpy") else X, dtype=float)
        if method == "glasso":
            from .datasets import _covariance, graph_edges

            edges = graph_edges(X, alpha)
            correlation = _covariance(X)[edges[:, 0], edges[:, 1]] if signed else None
        elif method == "correlation":
            if not 0 < threshold <= 1:
                raise ValueError(f"threshold is {threshold!r}; it must lie above 0 and at most at 1")
            edges, correlation = _correlated(X, threshold, neighbours)
        else:
            raise ValueError(f"method is {method!r}; it must be 'glasso' or 'correlation'")
        weights = np.where(correlation < 0, -1.0, 1.0) if signed else None
        return cls(edges, X.shape[1], weights, features)

    def checked(self, p: int | None) -> Graph:
        """Self, for p features."""
        _fits(self, p)
        return self

    def to_frame(self):
        """A data frame with a row per edge."""
        names = np.array(self.features if self.features else range(self.p), dtype=object)
        columns = {"from": names[self.edges[:, 0]], "to": names[self.edges[:, 1]]}
        return _pandas().DataFrame(columns | ({} if self.weights is None else {"weight": self.weights}))

    def __len__(self):
        return len(self.edges)

    def __repr__(self):
        text = f"{_several(len(self), 'edge')} between {self.p} features"
        negative = 0 if self.weights is None else np.count_nonzero(self.weights < 0)
        text += ", weighted" if self.weights is not None else ""
        return f"Graph({text}{f', {negative} negative' if negative else ''})"


def _pairs(edges):
    """Pairs of nodes, as an array if they are numbers, and weights from a third column."""
    edges = edges.to_numpy() if hasattr(edges, "to_numpy") else edges
    if isinstance(edges, np.ndarray) and edges.dtype.kind in "biuf" and edges.ndim == 2 and edges.shape[1] in (2, 3):
        return edges[:, :2], edges[:, 2] if edges.shape[1] == 3 else None
    edges = [tuple(edge) for edge in edges]
    wrong = next((k for k, edge in enumerate(edges) if len(edge) != len(edges[0]) or len(edge) not in (2, 3)), None)
    if wrong is not None:
        raise ValueError(f"edge {wrong} is {edges[wrong]!r}; it must be two features, or two and a weight")
    weights = np.array([edge[2] for edge in edges], dtype=float) if edges and len(edges[0]) == 3 else None
    return [edge[:2] for edge in edges], weights


def _correlated(X, threshold, neighbours):
    """Pairs i < j with |correlation| >= threshold, and the correlations; a slab of columns at a time."""
    n, p = X.shape
    mean = np.asarray(X.mean(axis=0)).ravel()
    if sp.issparse(X):
        X = sp.csc_array(X)
        largest, square = abs(X).max(axis=0).toarray().ravel(), X.multiply(X).sum(axis=0) - n * mean**2
    else:
        largest, X = np.abs(X).max(axis=0), X - mean
        mean, square = np.zeros(p), np.einsum("ij,ij->j", X, X)
    constant = square <= 1e-13 * n * largest**2
    scale = np.divide(1.0, np.sqrt(np.maximum(square, 0.0)), out=np.zeros(p), where=~constant)
    rows, columns, values = [], [], []
    slab = max(1, _SLAB // p)
    for first in range(0, p, slab):
        some = slice(first, first + slab)
        part = X[:, some].T @ X
        part = part.toarray() if sp.issparse(part) else part
        part = (part - n * np.outer(mean[some], mean)) * np.outer(scale[some], scale)
        part[np.arange(part.shape[0]), first + np.arange(part.shape[0])] = 0.0
        strong = np.abs(part) >= threshold
        if neighbours is not None and neighbours < p:
            weakest = np.partition(np.abs(part), p - neighbours, axis=1)[:, p - neighbours]
            strong &= np.abs(part) >= weakest[:, None]
        i, j = np.nonzero(strong)
        rows.append(i + first)
        columns.append(j)
        values.append(part[i, j])
    i, j, value = np.concatenate(rows), np.concatenate(columns), np.concatenate(values)
    low, high = np.minimum(i, j), np.maximum(i, j)
    _, keep = np.unique(low * p + high, return_index=True)
    return np.column_stack([low[keep], high[keep]]), value[keep]


# -- grids ------------------------------------------------------------------------------------------


class Grid:
    """Features on a grid of any number of dimensions, C-ordered, perhaps only where a mask is true.

    Parameters
    ----------
    shape : int or tuple of int
    mask : boolean array of that shape, optional
        The features are its true cells, in C order: ``images[:, mask]``.

    Attributes
    ----------
    p : int
    edges : array (m, 2)
        Neighbouring features; all edges from one cell stand together.
    features : list of str
        Cells as "row,column".

    Examples
    --------
    >>> import fenchel as fl
    >>> fl.Grid((28, 28))
    Grid(28 x 28)
    """

    def __init__(self, shape, mask=None):
        self.shape = tuple(_count("shape", s) for s in np.atleast_1d(shape).tolist())
        self.mask = None
        number = np.arange(int(np.prod(self.shape))).reshape(self.shape)
        if mask is not None:
            mask = np.asarray(mask)
            if mask.shape != self.shape or mask.dtype != bool:
                raise ValueError(f"mask is {mask.dtype} of shape {mask.shape}; it must be boolean, {self.shape}")
            if not mask.any():
                raise ValueError("mask is false everywhere; there are no features")
            self.mask = mask.copy()
            number = np.where(mask, np.cumsum(mask.ravel()).reshape(self.shape) - 1, -1)
        self.p = int(np.count_nonzero(number >= 0))
        pairs = []
        for axis, length in enumerate(self.shape):
            here = np.take(number, range(length - 1), axis=axis).ravel()
            there = np.take(number, range(1, length), axis=axis).ravel()
            pairs.append(np.column_stack([here, there])[(here >= 0) & (there >= 0)])
        pairs = np.concatenate(pairs)
        self.edges = pairs[np.argsort(pairs[:, 0], kind="stable")]

    @property
    def features(self) -> list[str]:
        cells = np.ndindex(self.shape) if self.mask is None else map(tuple, np.argwhere(self.mask).tolist())
        return [",".join(map(str, cell)) for cell in cells]

    def image(self, coef, fill=np.nan) -> np.ndarray:
        """The coefficients on their grid, `fill` outside the mask."""
        coef = np.asarray(coef)
        if coef.shape != (self.p,):
            raise ValueError(f"coef has shape {coef.shape}; {self!r} has {self.p} features")
        if self.mask is None:
            return coef.reshape(self.shape)
        out = np.full(self.shape, fill)
        out[self.mask] = coef
        return out

    def checked(self, p: int | None) -> Grid:
        """Self, for p features."""
        _fits(self, p)
        return self

    def __repr__(self):
        masked = "" if self.mask is None else f", {self.p} cells in the mask"
        return f"Grid({' x '.join(map(str, self.shape))}{masked})"


# -- trees ------------------------------------------------------------------------------------------


class Tree:
    """A forest over the features: every node stands for the features at and below it.

    Parameters
    ----------
    parents : dict (or Series) child -> parent, or vector with the parent's number of every node
        None, -1 or a missing child mark a root.
    features : "leaves", "all" or list of nodes (or data frame)
        Which nodes are features, in the order of the columns: the leaves (default), every node, or those listed
        (nodes with no feature at or below are left out).

    Attributes
    ----------
    names : list of str
        The nodes, and `parents` the number of each one's parent, -1 for a root.
    features : list of str
    p : int

    Examples
    --------
    >>> import fenchel as fl
    >>> fl.Tree({"cat": "mammal", "dog": "mammal", "trout": "fish", "mammal": "animal", "fish": "animal"})
    Tree(6 nodes over 3 features, 1 root, depth 3)
    """

    def __init__(self, parents, features="leaves"):
        names, up = _as_forest(parents)
        _refuse_cycle(names, up)
        inner = np.zeros(len(names), dtype=bool)
        inner[up[up >= 0]] = True
        places = _places(names)
        if isinstance(features, str):
            if features not in ("leaves", "all"):
                raise ValueError(f"features is {features!r}; it must be 'leaves', 'all' or a list of nodes")
            nodes = np.flatnonzero(~inner) if features == "leaves" else np.arange(len(names))
        else:
            listed = _names(features)
            unknown = [name for name in listed if name not in places]
            if unknown:
                raise ValueError(f"feature {unknown[0]!r} is not a node of the tree")
            nodes = np.array([places[name] for name in listed], dtype=np.int64)
        ways = list(_levels(nodes, up))
        holders, held = (np.concatenate(parts) for parts in zip(*ways, strict=True))
        order = np.lexsort((held, holders))
        kept = np.bincount(holders, minlength=len(names)) > 0
        number = np.cumsum(kept) - 1
        self.features = [names[node] for node in nodes.tolist()]
        self.p = len(nodes)
        self.names = [name for name, keep in zip(names, kept.tolist(), strict=True) if keep]
        self.parents = np.where(up[kept] >= 0, number[up[kept]], -1)
        self._below = np.split(held[order], np.flatnonzero(np.diff(holders[order])) + 1)

    @classmethod
    def from_parents(cls, parents, features="leaves") -> Tree:
        """The tree with these parents; parameters as in the class."""
        return cls(parents, features)

    def groups(self) -> Groups:
        """One group for every node: the features at and below it."""
        return self._groups

    @functools.cached_property
    def _groups(self):
        return Groups(self._below, self.names, self.p, self.features)

    def checked(self, p: int | None) -> Tree:
        """Self, for p features."""
        _fits(self, p)
        return self

    @property
    def depth(self) -> int:
        """Nodes on the longest way from a root."""
        return sum(1 for _ in _levels(np.arange(len(self.names)), self.parents))

    def __len__(self):
        return len(self.names)

    def __iter__(self):
        return iter(self.groups())

    def __getitem__(self, name):
        """The features at and below a node."""
        return self.groups()[name]

    def __repr__(self):
        roots = _several(np.count_nonzero(self.parents < 0), "root")
        return f"Tree({_several(len(self), 'node')} over {_several(self.p, 'feature')}, {roots}, depth {self.depth})"


def _as_forest(parents):
    """Names of the nodes and the number of each one's parent, -1 for roots."""
    if hasattr(parents, "items"):
        parents = {str(child): None if top is None or top != top else str(top) for child, top in parents.items()}
        names = list(dict.fromkeys([*parents, *(top for top in parents.values() if top is not None)]))
        places = _places(names)
        up = np.array([places.get(parents.get(name), -1) for name in names], dtype=np.int64)
    else:
        parents = [-1 if parent is None else parent for parent in parents]
        for node, parent in enumerate(parents):
            if not (isinstance(parent, numbers.Integral) and -1 <= parent < len(parents)):
                raise ValueError(
                    f"node {node} has the parent {parent!r}; nodes are numbered from 0 to {len(parents) - 1}"
                )
        up = np.array(parents, dtype=np.int64)
        names = [str(k) for k in range(len(up))]
    if not names:
        raise ValueError("parents is empty; give at least one node")
    return names, up


def _levels(nodes, up):
    """The nodes, their parents, the parents of these and so on, each with the places in `nodes` where it began."""
    begun = np.arange(len(nodes))
    while begun.size:
        yield nodes, begun
        nodes = up[nodes]
        nodes, begun = nodes[nodes >= 0], begun[nodes >= 0]


def _refuse_cycle(names, up):
    ahead = up  # of 1, 2, 4, … steps: without a circle all have left the tree after as many as there are nodes
    for _ in range(len(up).bit_length()):
        ahead = np.where(ahead >= 0, ahead[ahead], -1)
    if np.all(ahead < 0):
        return
    state = np.zeros(len(up), dtype=np.int8)  # 1: on the way, 2: leads to a root
    for start in range(len(up)):
        way, node = [], start
        while node >= 0 and state[node] == 0:
            state[node] = 1
            way.append(node)
            node = up[node]
        if node >= 0 and state[node] == 1:
            circle = [names[k] for k in way[way.index(node) :]]
            raise ValueError(f"the tree goes round in a circle: {' -> '.join([*circle, circle[0]])}")
        state[way] = 2


# -- answers by name --------------------------------------------------------------------------------


def support(coef, names=None, outputs=None):
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


def active_groups(coef, groups):
    """The groups with a non-zero coefficient, the largest norm first.

    Parameters
    ----------
    coef : array (p,) or (outputs, p)
        A feature counts as non-zero where one of its outputs is.
    groups : Groups, Tree, or what Groups takes

    Returns
    -------
    pandas.DataFrame
        Indexed by group: its `size`, how many features are `nonzero`, and the Euclidean `norm` of their coefficients.
    """
    coef = _as_coef(coef)
    groups = as_groups(groups, coef.shape[1])
    live = (coef != 0).any(axis=0)
    nonzero = np.array([np.count_nonzero(live[group]) for group in groups])
    norm = np.array([np.linalg.norm(coef[:, group]) for group in groups])
    order = np.argsort(-norm, kind="stable")
    order = order[nonzero[order] > 0]
    columns = {"size": groups.sizes[order], "nonzero": nonzero[order], "norm": norm[order]}
    return _pandas().DataFrame(columns, index=_index([groups.names[k] for k in order], "group"))


def segments(coef, structure=None, names=None, outputs=None):
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
    outputs, rows = _output_names(outputs, len(coef)), []
    for k, w in enumerate(coef):
        if sizes:
            label = np.unique(np.abs(w), return_inverse=True)[1]
        else:
            a, b = edges[w[edges[:, 0]] == sign * w[edges[:, 1]]].T
            graph = sp.coo_array((np.ones(a.size), (a, b)), shape=(p, p))
            label = sp.csgraph.connected_components(graph, directed=False)[1]
        members = np.split(np.argsort(label, kind="stable"), np.cumsum(np.bincount(label))[:-1])
        for part in sorted(members, key=lambda part: part[0]):
            row = {"output": outputs[k]} if len(coef) > 1 else {}
            rows.append(row | {"value": w[part[0]], "size": part.size, "features": list(names[part])})
    return _pandas().DataFrame(rows)


def _as_coef(coef):
    coef = np.asarray(coef, dtype=float)
    if coef.ndim not in (1, 2) or coef.size == 0:
        raise ValueError(f"coef has shape {coef.shape}; it must be (p,) or (outputs, p)")
    return np.atleast_2d(coef)


def _output_names(outputs, count):
    if outputs is None:
        return np.arange(count)
    if len(outputs) != count:
        raise ValueError(f"outputs has {len(outputs)} names for {count} outputs")
    return np.asarray(outputs)


def _feature_names(names, p):
    names = getattr(names, "features", names)
    if names is None:
        return np.arange(p)
    names = _names(names, "names")
    if len(names) != p:
        raise ValueError(f"names has {len(names)} entries for {p} coefficients")
    return np.array(names, dtype=object)


def _edges(structure, p):
    """Edges and, for each, whether its ends are equal (1) or opposite (-1)."""
    if structure is None or (isinstance(structure, str) and structure == "line"):
        edges, weights = np.column_stack([np.arange(p - 1), np.arange(1, p)]), None
    else:
        graph = structure if isinstance(structure, (Graph, Grid)) else Graph(structure, p)
        graph.checked(p)
        edges, weights = graph.edges, getattr(graph, "weights", None)
    return edges, np.ones(len(edges)) if weights is None else np.where(weights < 0, -1.0, 1.0)


def _index(names, label):
    return _pandas().Index(names, name=label, dtype=object)
