"""What is known about the features: groups, a graph, a grid, a tree; with names."""

from __future__ import annotations

from .answers import active_groups, segments, support
from .covariance import graph_edges
from .graph import Graph
from .grid import Grid
from .groups import Groups
from .tree import Tree, as_groups

__all__ = ["Graph", "Grid", "Groups", "Tree", "active_groups", "as_groups", "graph_edges", "segments", "support"]
