"""The command line."""

from __future__ import annotations

from .app import main, make_app

__all__ = ["main", "make_app"]
