"""Files as targets: each task writes hidden files, and the driver publishes those of a whole batch.

    <query>-<batch>-<partition>.ndjson                       lines, in one directory
    table=shop.orders/date=…/<first>-<last>-…-<query>-<batch>-<partition>.parquet
    _tidemill/spark-<query>/<batch>/…                        unpublished files
    _tidemill/spark-<query>.json                             the files of the last batch

A repeated batch replaces its files, which are known by their names. Files of an attempt at a task that Spark
hasn't committed are never published.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Sequence
from pathlib import Path
from uuid import uuid4

import msgspec
from msgspec import Struct
from pyspark.sql.datasource import WriterCommitMessage

from ...errors import InvariantViolated, SinkError
from ...events import Checkpoint
from ...sink import Sink
from ...sink.files.names import HIDDEN, check_unused
from ...sink.kind import ByFiles, SinkContext
from ...sink.registry import open_given
from ...store.disk import make_folder, replace, sync
from .options import NAME, WriteOptions
from .place import Place


class Made(WriterCommitMessage):
    """A task's commit message: the files it has written; none if its target isn't a directory."""

    def __init__(self, place: Place, folder: str = "", names: Sequence[str] = ()) -> None:
        self.place = place
        self.folder = folder
        self.names = list(names)
        self.host = socket.gethostname()


class Batch(Struct, frozen=True):
    """The files of a batch, those of an earlier attempt to publish it included."""

    epoch: int
    names: list[str]


class Files:
    """A directory that is the target of one query."""

    def __init__(self, options: WriteOptions) -> None:
        self._options = options
        way = options.way
        if not isinstance(way, ByFiles):
            raise InvariantViolated(f"{options.url} isn't written by files")
        self.way = way
        self.directory = way.directory(options.url)
        self._hidden = self.directory / HIDDEN

    # --- in the driver

    def prepare(self) -> None:
        """Create the directory. Raises SinkError if it isn't tidemill's, or can't be created."""
        try:
            if self.directory.exists() and not self._hidden.is_dir():
                self._check_empty()
            self.directory.mkdir(exist_ok=True)
            self._hidden.mkdir(exist_ok=True)
        except OSError as error:
            raise SinkError(f"can't write {self.directory}: {error.strerror}") from error

    def _check_empty(self) -> None:
        if not self.directory.is_dir():
            raise SinkError(f"{self.directory} is a file: Spark writes a directory of them; name another")
        check_unused(self.directory, [path.name for path in self.directory.iterdir()])

    def publish(self, made: Sequence[Made]) -> None:
        """Publish the files of a batch in place of its earlier ones. Raises SinkError."""
        if not made:
            return
        query, epoch = made[0].place.query, made[0].place.epoch
        try:
            self._publish(self._hidden / f"spark-{_short(query)}", epoch, made)
        except OSError as error:
            raise SinkError(f"can't write {self.directory}: {error.strerror}") from error

    def _publish(self, making: Path, epoch: int, made: Sequence[Made]) -> None:
        moves = {Path(one.folder) / name: self._target(one.place, name) for one in made for name in one.names}
        for one in made:
            if one.names and not Path(one.folder).is_dir():
                raise SinkError(
                    f"{self.directory} of host {one.host}, where a task wrote, isn't that of the driver's "
                    f"host {socket.gethostname()}: name a directory that all of them share"
                )
        names = {str(path.relative_to(self.directory)) for path in moves.values()}
        record = making.with_suffix(".json")
        if not record.exists():
            made[0].place.check_new(str(self.directory))
        before = self._before(record, epoch)
        replace(record, msgspec.json.encode(Batch(epoch, sorted(names | before))))
        for path, target in sorted(moves.items()):
            make_folder(target.parent, self.directory)
            path.replace(target)
        for name in before - names:
            (self.directory / name).unlink(missing_ok=True)
        for folder in {target.parent for target in moves.values()} | {self.directory}:
            sync(folder)
        shutil.rmtree(making, ignore_errors=True)

    def _before(self, record: Path, epoch: int) -> set[str]:
        """Return the names of the batch's files if it was published before."""
        found = msgspec.json.decode(record.read_bytes(), type=Batch) if record.exists() else Batch(-1, [])
        return set(found.names) if found.epoch == epoch else set()

    def _target(self, place: Place, name: str) -> Path:
        its = f"{_short(place.query)}-{place.epoch:010}-{place.partition:05}"
        return self.directory / self.way.published(name, its)

    def discard(self, made: Sequence[Made]) -> None:
        """Remove the files of a failed batch."""
        for one in made:
            if one.folder:
                shutil.rmtree(one.folder, ignore_errors=True)

    # --- in a task

    def begin(self, place: Place) -> tuple[Path, Sink]:
        """Create a folder for this attempt, and a sink that writes into it."""
        if not self._hidden.is_dir():
            raise SinkError(
                f"{self.directory} of the driver's host {self._options.host} isn't there on "
                f"{socket.gethostname()}: name a directory that all of them share"
            )
        above = self._hidden / f"spark-{_short(place.query)}" / str(place.epoch)
        folder = above / f"{place.partition}-{uuid4().hex}"
        folder.mkdir(parents=True)
        given = self._options.given._replace(target=self.way.task_url(folder))
        return folder, open_given(given, SinkContext(name=NAME, feed=NAME, store=_Nowhere()))

    def end(self, place: Place, folder: Path) -> Made:
        """Return the files after the sink was closed. Raises SinkError if it couldn't finish them."""
        left = folder.glob(self.way.unfinished) if self.way.unfinished else ()
        if any(path.stat().st_size for path in left):
            raise SinkError(f"can't make files in {folder}: is there room on its disk?")
        found = folder.glob(self.way.pattern)
        return Made(place, str(folder), sorted(str(path.relative_to(folder)) for path in found))


class _Nowhere:
    """A checkpoint store without a checkpoint: every attempt starts from the beginning."""

    def load(self) -> tuple[Checkpoint, int] | None:
        return None

    def save(self, checkpoint: Checkpoint, length: int = 0) -> None:
        """Save nothing: publishing the whole batch is the commit."""


def _short(query: str) -> str:
    return query.replace("-", "")[:12]
