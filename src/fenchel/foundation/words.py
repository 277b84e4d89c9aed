"""Lists of names, as messages, tables and reports print them."""

from __future__ import annotations

from collections.abc import Iterable

_SHOWN = 6  # names that are listed; more: lines that nobody reads to the end


def listed(names: Iterable[object]) -> str:
    """The first few names, and how many there are where some are left out."""
    words = [str(name) for name in names]
    rest = f", … ({len(words)} in all)" if len(words) > _SHOWN else ""
    return ", ".join(words[:_SHOWN]) + rest
