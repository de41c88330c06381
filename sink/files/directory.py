"""A local directory as a store."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, Final
from uuid import uuid4

from ...errors import SinkError
from ...store.disk import make_folder, replace, sync, write
from .store import StoredFile

_NEW: Final = ".new"


class Directory:
    """Durable files below a directory. Files are renamed, so that they appear as a whole."""

    def __init__(self, path: Path) -> None:
        self._path: Final = path
        self.name: Final = f"directory:{path}"
        self.url: Final = str(path)
        self.access: Final[Mapping[str, str]] = {}
        self.is_remote: Final = False

    @contextmanager
    def open(self, name: str) -> Iterator[BinaryIO]:
        with self._explained(), (self._path / name).open("rb") as file:
            yield file

    def check(self) -> None:
        with self._explained():
            self._path.mkdir(exist_ok=True)
            sync(self._path.parent)

    def entries(self) -> list[str]:
        with self._explained():
            return [path.name for path in self._path.iterdir()]

    def names(self, folder: str) -> list[str]:
        base = self._path / folder
        with self._explained():
            return [str(path.relative_to(base)) for path in _files(base)]

    def listed(self, folder: str) -> list[StoredFile]:
        base = self._path / folder
        stored = []
        with self._explained():
            for path in _files(base):
                with suppress(FileNotFoundError):  # removed meanwhile
                    stat = path.stat()
                    # A link has the time of the first write, and its making changes that of the entry.
                    modified_ms = max(stat.st_mtime_ns, stat.st_ctime_ns) // 1_000_000
                    stored.append(StoredFile(str(path.relative_to(base)), stat.st_size, modified_ms))
        return stored

    def read(self, name: str) -> bytes | None:
        with self._explained():
            try:
                return (self._path / name).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, name: str, content: Any) -> None:
        path = self._path / name
        with self._explained():
            make_folder(path.parent, self._path)
            replace(path, content)

    def create(self, name: str, content: bytes) -> bool:
        path = self._path / name
        fresh = path.with_name(f"{path.name}.{uuid4().hex}{_NEW}")
        with self._explained():
            make_folder(path.parent, self._path)
            write(fresh, content)
            try:
                os.link(fresh, path)
            except FileExistsError:
                return False
            finally:
                fresh.unlink()
            sync(path.parent)
        return True

    def copy(self, name: str, to: str) -> None:
        path = self._path / to
        with self._explained():
            make_folder(path.parent, self._path)
            with suppress(FileExistsError):
                os.link(self._path / name, path)
            sync(path.parent)

    def publish(self, staged: str, name: str) -> None:
        old, path = self._path / staged, self._path / name
        with self._explained():
            make_folder(path.parent, self._path)
            with suppress(FileNotFoundError):
                old.replace(path)
            sync(path.parent)

    def remove(self, name: str) -> None:
        with self._explained():
            (self._path / name).unlink(missing_ok=True)

    def remove_folder(self, folder: str) -> None:
        with self._explained(), suppress(FileNotFoundError):
            shutil.rmtree(self._path / folder)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            where = error.filename or self._path
            raise SinkError(f"can't write {self._path}: {error.strerror} ({where})") from error


def _files(base: Path) -> Iterator[Path]:
    """Yield the complete files below a directory."""
    return (path for path in base.rglob("*") if path.suffix != _NEW and path.is_file())
