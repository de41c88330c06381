"""`tidemill` as a process of its own: what it is told, what it says, and how it ends."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ..engine.status import FeedStatus, StatusFile
from ..errors import CheckpointError
from ..events import Row
from .child import CLI, Child
from .mariadb import MariaDb
from .progress import completed, moved


class Ended(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def sentence(self) -> str:
        """The one line that says why it failed, without the program's name."""
        assert self.status > 0, self
        assert "Traceback" not in self.err, self.err
        lines = [line for line in self.err.splitlines() if line.startswith("tidemill: ")]
        assert lines == self.err.splitlines()[-1:], self.err
        return lines[0].removeprefix("tidemill: ")


class Followed(Protocol):
    """Where a feed runs."""

    directory: Path

    def status(self) -> FeedStatus | None: ...


class Running(Child):
    """A `tidemill run` that goes on until it is stopped, fails or is killed."""

    def __init__(self, place: Followed, command: Sequence[str], **options: Any) -> None:
        self._place = place
        log = place.directory / "run.log"
        log.unlink(missing_ok=True)
        super().__init__(command, log, **options)

    def status(self) -> FeedStatus | None:
        """Return the status that this run wrote, not one that a run before it left."""
        status = self._place.status()
        return status if status is not None and status.pid == self.process.pid else None

    def until(self, condition: Callable[[FeedStatus], object]) -> FeedStatus:
        """Return the first status that meets the condition. Raises as Child.wait_until."""

        def look() -> FeedStatus | None:
            status = self.status()
            return status if status is not None and condition(status) else None

        value = self.wait_until(look, sign=lambda: moved(self.status()))
        assert value is not None
        return value

    def ended(self) -> Ended:
        """Wait for its end. Raises Stalled."""
        status = self.exit_status(sign=lambda: moved(self.status()))
        return Ended(status, "", self.output())

    def stop(self, signal_number: int) -> Ended:
        self.process.send_signal(signal_number)
        return self.ended()


class CopiedTable:
    """A table `item` in a schema of its own, and a feed that copies it into SQLite."""

    inside: Sequence[str] = ()
    """Prefix of every command, which says where it runs."""
    copy_server: MariaDb | None = None
    """Where the copy is if it isn't in SQLite ..."""
    copy_schema = ""
    """... and in which schema."""
    source_line = "retry_longest_seconds = 1"
    """In the source's section of every feed.toml."""

    def __init__(self, directory: Path, server: MariaDb, schema: str) -> None:
        self.directory = directory
        self.server = server
        self.schema = schema
        self.copy = directory / "copy.db"
        self.config = directory / "feed.toml"
        self.execute(f"CREATE TABLE {schema}.item (id INT PRIMARY KEY, name VARCHAR(40))")
        self.insert(1, 2, 3)
        self.configure()

    # --- the source

    def execute(self, *statements: str) -> list[Row]:
        """The rows of the last one."""
        return self.server.execute(*statements)

    def insert(self, *ids: int) -> None:
        rows = ", ".join(f"({number}, 'item {number}')" for number in ids)
        self.execute(f"INSERT INTO {self.schema}.item VALUES {rows}")

    # --- the feed

    def configure(
        self,
        *,
        url: str = "",
        tables: Sequence[str] = (),
        sinks: Sequence[str] = (),
        source: str = "",
        sorter: str = "",
        state: str = "state",
    ) -> None:
        """Write feed.toml; `source` and `sorter` are more lines of these sections."""
        lines = [
            'name = "copy"',
            f'data_dir = "{self.directory / state}"',
            "[source]",
            f'url = "{url or self.source_url}"',
            f"tables = {json.dumps(list(tables) or [f'{self.schema}.*'])}",
            self.source_line,
            source,
            "[sorter]",
            'memory_bytes = "1MiB"' if "memory_bytes" not in sorter else "",
            sorter,
        ]
        for number, sink in enumerate(sinks or [self.sqlite_url], 1):
            lines += ["[[sink]]", f'name = "{"abcdef"[number - 1]}"', f'url = "{sink}"']
        self.config.write_text("\n".join(lines) + "\n")

    @property
    def source_url(self) -> str:
        return self.server.url()

    @property
    def sqlite_url(self) -> str:
        return f"sqlite:///{self.copy}"

    def command(self, *arguments: str) -> list[str]:
        return [*self.inside, *CLI, *arguments]

    def call(self, *arguments: str) -> Ended:
        """A command to its end."""
        done = completed(self.command(*arguments), sign=lambda: moved(self.status()))
        return Ended(done.returncode, done.stdout, done.stderr)

    def run(self, *more: str) -> Ended:
        """Up to the source's present end, or its failure."""
        return self.call("run", str(self.config), "--until", "now", *more)

    def start(self, *more: str, **options: object) -> Running:
        return self.start_command("run", str(self.config), *more, **options)

    def start_command(self, *arguments: str, **options: object) -> Running:
        return Running(self, self.command(*arguments), **options)

    def shell(self, script: str) -> None:
        completed([*self.inside, "sh", "-c", script]).check_returncode()

    def status(self) -> FeedStatus | None:
        try:
            return StatusFile(self.directory / "state").load()
        except CheckpointError:
            return None

    def continues(self) -> None:
        """The feed runs to the source's end, and the copy is as the source is."""
        done = self.run()
        assert done.status == 0, done
        assert self.copied() == self.present()

    def begins_again(self) -> None:
        """With a new target."""
        self.copy = self.directory / "again.db"
        self.configure()
        self.continues()

    # --- the copy

    def present(self) -> list[Row]:
        return self.execute(f"SELECT * FROM {self.schema}.item ORDER BY id")

    def copied(self) -> list[Row]:
        if self.copy_server is not None:
            return self.copy_server.execute("SELECT * FROM item ORDER BY id", database=self.copy_schema)
        with closing(sqlite3.connect(self.copy, timeout=60)) as connection:
            return connection.execute(f'SELECT * FROM "{self.schema}.item" ORDER BY id').fetchall()

    def copied_ids(self) -> list[int]:
        return [row[0] for row in self.copied()]
