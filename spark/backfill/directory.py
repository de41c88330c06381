"""The files of a backfill, and the records that make them count: after a kill only finished work counts."""

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
from .plan import VERSION, BackfillPlan
from .records import ChunkRecord, LaterChanges, Manifest

READ: Final = "chunks"
MERGED: Final = "merged"
_PLAN: Final = "plan.json"
_DONE: Final = "done.json"
_STOP: Final = "stop"
_KEPT: Final = "kept"

T = TypeVar("T")


class BackfillDirectory:
    """Shared by the driver and the executors. All methods raise StoreError if the disk fails.

    A task may outlive a killed driver, and be repeated: every file has a unique name, and of two records for
    the same chunk the first one stays.
    """

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the directory for one driver. Raises ConfigError if another holds it."""
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

    def plan(self) -> BackfillPlan | None:
        """Return the plan, if there is one. Raises CheckpointError if its version isn't known."""
        plan = self._load(_PLAN, BackfillPlan)
        if plan is not None and plan.version != VERSION:
            raise CheckpointError(
                f"{self.path} holds a backfill of version {plan.version}; this tidemill reads version "
                f"{VERSION}: remove the directory to begin again"
            )
        return plan

    def save_plan(self, plan: BackfillPlan) -> None:
        self._save(_PLAN, plan)

    def manifest(self) -> Manifest | None:
        """Return the manifest; None while the backfill isn't finished."""
        return self._load(_DONE, Manifest)

    def save_manifest(self, manifest: Manifest) -> None:
        self._save(_DONE, manifest)

    # --- chunks

    def new_file(self, folder: str, number: int) -> Path:
        """Return a new path for a chunk's rows."""
        return self.path / folder / f"{number:06}-{uuid4().hex[:12]}.sst"

    def save_record(self, folder: str, record: ChunkRecord) -> bool:
        """Mark the chunk as finished; False if it already was, with another file."""
        return self._save(f"{folder}/{record.number:06}.json", record, once=True)

    def record(self, folder: str, number: int) -> ChunkRecord | None:
        return self._load(f"{folder}/{number:06}.json", ChunkRecord)

    def numbers(self, folder: str) -> set[int]:
        """Return the numbers of the finished chunks."""
        return {int(path.stem) for path in (self.path / folder).glob("*.json")}

    def records(self, folder: str, numbers: Sequence[int]) -> dict[int, ChunkRecord]:
        records = {}
        for number in numbers:
            record = self.record(folder, number)
            if record is not None:
                records[number] = record
        return records

    def sweep(self, folder: str, kept: dict[int, ChunkRecord], missing: Collection[int] = ()) -> None:
        """Remove all but these records and their files; of `missing` chunks only the records.

        A task may still write the files of missing chunks.
        """
        names = {self.path / record.file for record in kept.values()}
        for path in (self.path / folder).iterdir():
            is_record = path.suffix == ".json"
            number = int(path.name.partition(".")[0].partition("-")[0])
            keeps = number in kept if is_record else path in names or number in missing
            if not keeps:
                path.unlink(missing_ok=True)

    # --- changes

    def new_changes_file(self) -> Path:
        """Return a new path for changes."""
        return self.path / f"changes-{uuid4().hex[:12]}.parquet"

    def changes(self, position: str) -> LaterChanges | None:
        return self._load(f"changes-{_plain(position)}.json", LaterChanges)

    def save_changes(self, changes: LaterChanges) -> None:
        """Save the changes unless some are saved already."""
        self._save(f"changes-{_plain(changes.position)}.json", changes, once=True)

    def remove_changes(self) -> None:
        for path in self.path.glob("changes-*"):
            path.unlink(missing_ok=True)

    @property
    def scratch(self) -> str:
        """Directory for RocksDB while the files are read; on this file system they can be linked."""
        return str(self.path / "open")

    # --- stopping

    @property
    def is_stopped(self) -> bool:
        """True if a task has failed for good, so that others needn't begin."""
        return (self.path / _STOP).exists()

    def stop(self) -> None:
        (self.path / _STOP).touch()

    def go(self) -> None:
        (self.path / _STOP).unlink(missing_ok=True)

    # --- its end

    def keep(self) -> None:
        """Mark the directory as kept: only `remove` deletes it."""
        (self.path / _KEPT).touch()

    @property
    def is_kept(self) -> bool:
        return (self.path / _KEPT).exists()

    def remove(self) -> None:
        """Remove the files, the manifest last, so that a half-removed backfill isn't continued.

        Raises ConfigError if another process uses the directory.
        """
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
        """Save a record atomically; with `once` only if there is none."""
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
    """Rename a new file unless the name is taken; False, with the file removed, if it is."""
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
