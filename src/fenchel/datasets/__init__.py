"""The paper's data: the artificial problem, and loaders for the real files."""

from __future__ import annotations

from ..structure import graph_edges
from .artificial import artificial, artificial_groups, artificial_problem, artificial_problem_of
from .paper import data_folder, graph_penalty, load_20news, load_a9a, load_p53

__all__ = [
    "artificial",
    "artificial_groups",
    "artificial_problem",
    "artificial_problem_of",
    "data_folder",
    "graph_edges",
    "graph_penalty",
    "load_20news",
    "load_a9a",
    "load_p53",
]
