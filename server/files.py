"""Feeds of a server as files: documents, and what users want of each; every change is atomic and durable.

The directory has a document NAME.toml for each feed, and in `.tidemill/` NAME.json (a FeedIntent, if the feed
should not just run) and NAME.history. The data directory of a feed is `data/NAME` unless its document says
otherwise.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import tomli_w
from msgspec import Struct

from .. import config
from ..config.form import NAME
from ..errors import ConfigError, StoreError
from ..failpoint import reach
from ..store import disk

Intention: TypeAlias = Literal["running", "paused", "removed"]


class FeedIntent(Struct, frozen=True):
    """The last wish of users about a feed."""

    intention: Intention = "running"
    removes_data: bool = False
    """True if the data directory goes with a removed feed."""


class FeedFiles:
    """The directory of one server. Call it from one thread at a time for each feed."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._state = directory / ".tidemill"
        self._lock = -1

    def claim(self) -> None:
        """Lock the directory for this server, and make what is missing. Raises ConfigError."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            disk.make_private(self._state)
            self._lock = disk.lock(self._state / "server.lock")
        except BlockingIOError:
            raise ConfigError(f"{self.directory}: another server runs the feeds of this directory") from None
        except OSError as error:
            raise ConfigError(f"{self.directory}: {error.strerror}") from None

    def release(self) -> None:
        """Unlock the directory. Safe to repeat."""
        held, self._lock = self._lock, -1
        if held >= 0:
            os.close(held)

    def names(self) -> list[str]:
        """Return the names of all feeds, also of those whose removal was interrupted."""
        names = {path.stem for path in self.directory.glob("*.toml") if path.is_file()}
        names |= {path.stem for path in self._state.glob("*.json")}
        return sorted(name for name in names if NAME.fullmatch(name))

    def misnamed(self) -> list[Path]:
        """Return the feed files whose names can't be those of feeds."""
        return [path for path in sorted(self.directory.glob("*.toml")) if not NAME.fullmatch(path.stem)]

    def path(self, name: str) -> Path:
        return self.directory / f"{name}.toml"

    def history_path(self, name: str) -> Path:
        return self._state / f"{name}.history"

    def data_dir(self, name: str) -> Path:
        """Return the data directory of a feed whose document names none."""
        return self.directory / "data" / name

    # --- documents

    def read(self, name: str, *, expanded: bool) -> dict[str, Any]:
        """Return a feed's document, with its name and data directory; `expanded` replaces the variables of
        the environment. Raises ConfigError."""
        path = self.path(name)
        return self._complete(name, config.read(path) if expanded else config.read_as_written(path))

    def as_read(self, name: str, document: Mapping[str, object]) -> dict[str, object]:
        """Return a document as `read` will, expanded, once it is written. Raises ConfigError."""
        return self._complete(name, config.expand(document))

    def _complete(self, name: str, document: dict[str, object]) -> dict[str, object]:
        written = document.setdefault("name", name)
        if written != name:
            raise ConfigError(f"name: {written!r} isn't the name of the file {name}.toml: rename one of them")
        document.setdefault("data_dir", str(self.data_dir(name)))
        return document

    def write(self, name: str, document: Mapping[str, Any]) -> None:
        """Store a document. Raises ConfigError for values that TOML can't hold, and StoreError."""
        try:
            text = tomli_w.dumps(document)
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the document can't be written as TOML: {error}") from None
        reach("server.before_write")
        try:
            disk.replace(self.path(name), text.encode(), mode=0o600)
        except OSError as error:
            raise StoreError(f"{self.path(name)}: {error.strerror}") from None
        reach("server.written")

    # --- intentions

    def intent(self, name: str) -> FeedIntent:
        """Return what users want of a feed. Raises StoreError."""
        path = self._state / f"{name}.json"
        try:
            return msgspec.json.decode(path.read_bytes(), type=FeedIntent)
        except FileNotFoundError:
            return FeedIntent()
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None
        except msgspec.DecodeError as error:
            raise StoreError(f"{path} is damaged ({error}): remove it; the feed runs then") from None

    def set_intent(self, name: str, intent: FeedIntent) -> None:
        """Store what users want of a feed. Raises StoreError."""
        path = self._state / f"{name}.json"
        try:
            disk.replace(path, msgspec.json.encode(intent))
        except OSError as error:
            raise StoreError(f"{path}: {error.strerror}") from None
        reach("server.intended")

    # --- removal

    def remove(self, name: str, *, removes_data: bool) -> None:
        """Remove a feed that doesn't run, whose stored intention is its removal; that goes last, so an
        interrupted removal is finished at the next start. Raises StoreError."""
        try:
            if removes_data:
                with suppress(FileNotFoundError):
                    shutil.rmtree(self.data_dir(name))
                reach("server.data_removed")
            self.path(name).unlink(missing_ok=True)
            disk.sync(self.directory)
            reach("server.file_removed")
            self.history_path(name).unlink(missing_ok=True)
            (self._state / f"{name}.json").unlink(missing_ok=True)
            disk.sync(self._state)
            reach("server.removed")
        except OSError as error:
            raise StoreError(f"{error.filename}: {error.strerror}") from None
