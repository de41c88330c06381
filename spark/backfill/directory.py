"""A backfill's files, and which of them count: what is there after a kill is what was finished."""

from __future__ import annotations

import os
import shutil
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar
from uuid import uuid4

import msgspec
from msgspec import Struct

from ...errors import CheckpointError, ConfigError, StoreError
from ...store.disk import lock, sync, write
from .plan import Plan
from .records import Changes, ChunkRecord, Manifest

READ: Final = "chunks"
MERGED: Final = "merged"
_PLAN: Final = "plan.json"
_DONE: Final = "done.json"
_STOP: Final = "stop"
_KEPT: Final = "kept"

T = TypeVar("T")


class Directory:
    """Shared by the driver and the executors. All methods raise StoreError if the disk fails.

    A task may outlive the driver that was killed, and do what another does again: so every file has a name of
    its own, and of two records for the same thing the first one stays, whoever has read it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @contextmanager
    def held(self) -> Iterator[None]:
        """By one driver at a time. Raises ConfigError if another has it."""
        try:
            for folder in (READ, MERGED):
                (self.path / folder).mkdir(parents=True, exist_ok=True)
            descriptor = lock(self.path / "lock")
        except BlockingIOError:
            raise ConfigError(f"directory: another backfill runs in {self.path}") from None
        except OSError as error:
            raise StoreError(f"{self.path}: {error.strerror}") from error
        try:
            yield
        finally:
            os.close(descriptor)

    # --- the plan and the end

    def plan(self) -> Plan | None:
        return self._load(_PLAN, Plan)

    def save_plan(self, plan: Plan) -> None:
        self._save(_PLAN, plan)

    def manifest(self) -> Manifest | None:
        """None while the backfill isn't finished."""
        return self._load(_DONE, Manifest)

    def save_manifest(self, manifest: Manifest) -> None:
        self._save(_DONE, manifest)

    # --- chunks

    def new_file(self, folder: str, number: int) -> Path:
        """For a chunk's rows; another one at each call."""
        return self.path / folder / f"{number:06}-{uuid4().hex[:12]}.sst"

    def save_record(self, folder: str, record: ChunkRecord) -> bool:
        """From now on the chunk is finished; False if it was before, with another file."""
        return self._save(f"{folder}/{record.number:06}.json", record, once=True)

    def record(self, folder: str, number: int) -> ChunkRecord | None:
        return self._load(f"{folder}/{number:06}.json", ChunkRecord)

    def numbers(self, folder: str) -> set[int]:
        """Of the chunks that are finished."""
        return {int(path.stem) for path in (self.path / folder).glob("*.json")}

    def records(self, folder: str, numbers: Sequence[int]) -> dict[int, ChunkRecord]:
        found = {}
        for number in numbers:
            record = self.record(folder, number)
            if record is not None:
                found[number] = record
        return found

    def sweep(self, folder: str, kept: dict[int, ChunkRecord], missing: Collection[int] = ()) -> None:
        """Remove all but these records and their files; of `missing` chunks only the records, as a task may
        write their files still."""
        names = {self.path / record.file for record in kept.values()}
        for path in (self.path / folder).iterdir():
            is_record = path.suffix == ".json"
            number = int(path.name.partition(".")[0].partition("-")[0])
            keeps = number in kept if is_record else path in names or number in missing
            if not keeps:
                path.unlink(missing_ok=True)

    # --- changes

    def new_changes_file(self) -> Path:
        """Another one at each call."""
        return self.path / f"changes-{uuid4().hex[:12]}.parquet"

    def changes(self, position: str) -> Changes | None:
        return self._load(f"changes-{_plain(position)}.json", Changes)

    def save_changes(self, changes: Changes) -> None:
        """Unless there are any."""
        self._save(f"changes-{_plain(changes.position)}.json", changes, once=True)

    def remove_changes(self) -> None:
        for path in self.path.glob("changes-*"):
            path.unlink(missing_ok=True)

    @property
    def scratch(self) -> str:
        """For what is made of the files while they are read: here they needn't be copied."""
        return str(self.path / "open")

    # --- stopping

    @property
    def is_stopped(self) -> bool:
        """A task has failed for good: the others needn't begin."""
        return (self.path / _STOP).exists()

    def stop(self) -> None:
        (self.path / _STOP).touch()

    def go(self) -> None:
        (self.path / _STOP).unlink(missing_ok=True)

    # --- its end

    def keep(self) -> None:
        """Nobody but who made it removes it."""
        (self.path / _KEPT).touch()

    @property
    def is_kept(self) -> bool:
        return (self.path / _KEPT).exists()

    def remove(self) -> None:
        """That it is finished is forgotten last: one that is half removed isn't taken for one that is half
        read. Raises ConfigError if somebody uses it."""
        with self.held():
            for path in self.path.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.name != _DONE:
                    path.unlink(missing_ok=True)
            shutil.rmtree(self.path)

    # --- files

    def _load(self, name: str, kind: type[T]) -> T | None:
        try:
            return msgspec.json.decode((self.path / name).read_bytes(), type=kind)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{self.path / name} can't be read: {error.strerror}") from error
        except msgspec.MsgspecError as error:
            raise CheckpointError(
                f"{self.path / name} is damaged ({error}): remove the directory to begin again"
            ) from None

    def _save(self, name: str, what: Struct, *, once: bool = False) -> bool:
        """Whole or not at all; with `once` only if it isn't there."""
        path = self.path / name
        fresh = path.with_name(f"{path.name}.{uuid4().hex[:12]}.new")
        try:
            write(fresh, msgspec.json.encode(what))
            if once and not _took_name(fresh, path):
                return False
            if not once:
                fresh.replace(path)
            sync(path.parent)
        except OSError as error:
            raise StoreError(f"{path} can't be written: {error.strerror}") from error
        return True


def _took_name(fresh: Path, path: Path) -> bool:
    """Give what was written its name; False, and nothing is left of it, if something has that name."""
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if path.exists():
            return False
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)
    return True


def _plain(position: str) -> str:
    return position.replace(":", "-")
