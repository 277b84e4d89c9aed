"""The results folder: settings, and one small file for every piece of work that is finished.

Pieces appear whole or not at all, so a run that was interrupted goes on with what it had.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ..foundation.files import write_whole
from .settings import Settings

_FORMAT = "fenchel reproduce 1"
_PARTS = "parts"


class Store:
    """A folder of results that belongs to one setting.

    Parameters
    ----------
    folder : path
        Made if it does not exist.
    settings : Settings
    fresh : bool
        Throw away what an earlier run left in the folder.
    """

    def __init__(self, folder: Path | str, settings: Settings, fresh: bool = False) -> None:
        self.folder, self.settings = Path(folder), settings
        self._claim(fresh)
        self.folder.mkdir(parents=True, exist_ok=True)
        if fresh or not (self.folder / "settings.json").exists():
            self.write_settings({})  # before anything else: a run that is killed here must know its folder again
        (self.folder / _PARTS).mkdir(exist_ok=True)

    def _claim(self, fresh: bool) -> None:
        """Make sure that the folder is empty or holds results of these very settings."""
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; give a folder")
        if not self.folder.exists() or not any(not path.name.startswith(".fenchel-") for path in self.folder.iterdir()):
            return  # what begins so was being written when a run was killed
        there = self._settings_there()
        if fresh:
            shutil.rmtree(self.folder / _PARTS, ignore_errors=True)
        elif there["fingerprint"] != self.settings.fingerprint():
            difference = _difference(there["settings"], self.settings.as_dict())
            raise ValueError(
                f"{self.folder} holds results of other settings ({difference}); choose another folder with "
                "--output, or start over with --fresh"
            )

    def _settings_there(self) -> dict[str, Any]:
        try:
            there = json.loads((self.folder / "settings.json").read_text(encoding="utf-8"))
            if there["format"] != _FORMAT:
                raise KeyError(there["format"])
            out: dict[str, Any] = there
            return out
        except (OSError, ValueError, KeyError, TypeError):
            raise ValueError(
                f"{self.folder} is not empty and holds no results of `fenchel reproduce`; choose another folder with "
                "--output"
            ) from None

    def write_settings(self, more: dict[str, Any]) -> None:
        """Write settings.json: the settings, and what the run added to them."""
        head = {"format": _FORMAT, "fingerprint": self.settings.fingerprint()}
        self.write("settings.json", json.dumps(head | {"settings": self.settings.as_dict()} | more, indent=1))

    def write(self, name: str, content: str | bytes) -> None:
        write_whole(self.folder / name, content.encode() if isinstance(content, str) else content)

    # -- pieces ---------------------------------------------------------------------------------------

    def _path(self, key: tuple[Any, ...]) -> Path:
        return self.folder / _PARTS / ("~".join(map(str, key)) + ".json")

    def load(self, key: tuple[Any, ...]) -> Any:
        """A piece, or None where there is none."""
        try:
            out: Any = json.loads(self._path(key).read_text(encoding="utf-8"))
            return out
        except (FileNotFoundError, ValueError):
            return None

    def save(
        self,
        key: tuple[Any, ...],
        content: dict[str, Any] | list[dict[str, Any]],
    ) -> None:
        write_whole(self._path(key), json.dumps(content).encode())


def _difference(
    there: Any,
    here: Any,
    name: str = "",
) -> str:
    """The first setting in which two runs differ, in words."""
    if isinstance(there, dict) and isinstance(here, dict):
        pairs = [(key, there.get(key), value) for key, value in here.items() if key != "path"]
    elif isinstance(there, list) and isinstance(here, list) and len(there) == len(here):
        pairs = [(f"{k + 1}", old, new) for k, (old, new) in enumerate(zip(there, here, strict=True))]
    else:
        return f"{name}: {json.dumps(there)} there, {json.dumps(here)} here"
    key, old, new = next(pair for pair in pairs if pair[1] != pair[2])
    return _difference(old, new, f"{name} {key}".strip())
