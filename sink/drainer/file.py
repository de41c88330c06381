"""A drainer's checkpoint in a TOML file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from ...errors import CheckpointError
from ...store.disk import replace
from .content import DrainerState, from_toml, to_toml

MODE: Final = 0o644


class CheckpointToml:
    """A file, replaced atomically."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.where = str(path)

    def load(self) -> DrainerState | None:
        try:
            text = self._path.read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        except UnicodeDecodeError as error:
            raise CheckpointError(f"{self.where} is not a checkpoint of a drainer: {error.reason}") from None
        return from_toml(text, self.where)

    def save(self, state: DrainerState) -> None:
        replace(self._path, to_toml(state).encode(), mode=MODE)

    def close(self) -> None:
        pass
