"""One page of HTML about an answer that needs nothing beside itself."""

from __future__ import annotations

from .answer import make
from .html import STYLE, check_matplotlib, embed, page, picture

__all__ = ["STYLE", "check_matplotlib", "embed", "make", "page", "picture"]
