"""Reading data, and what is known about its features, from files."""

from __future__ import annotations

from .arrays import read_vector
from .contents import Data
from .files import read_data, read_like
from .opening import open_data
from .structure_files import read_edges, read_groups, read_mask, read_tree, read_weights

__all__ = [
    "Data",
    "open_data",
    "read_data",
    "read_edges",
    "read_groups",
    "read_like",
    "read_mask",
    "read_tree",
    "read_vector",
    "read_weights",
]
