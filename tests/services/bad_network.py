"""A feed between real servers behind a bad network."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

from tidemill.testing.child import CLI, Child
from tidemill.testing.network_faults import NetworkFaults
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.progress import completed
from tidemill.testing.proxy import Proxy
from tidemill.testing.repeated import RepeatedInSession

from .bad_network_targets import Target
from .histories_of_rows import TABLES, assert_applied_once, create_tables, read_audit, read_rows

FIRST_ROWS: Final = 60
PAUSE_SECONDS: Final = 0.02
STEP: Final = 1_000
"""Distance of two inserted versions, which updates count up."""


class Outcome(NamedTuple):
    faults: Counter[str]
    """Number of faults of each kind, on both sides."""
    at_commits: int
    """Number of those at the requests that make rows durable, as far as they aren't encrypted."""
    kills: int
    changes: int


class BadNetwork:
    """A source that changes all the time, and the feed from it to a target."""

    def __init__(
        self, directory: Path, source: PrivateServer, schema: str, target: Target, seed: object
    ) -> None:
        self.directory = directory
        self._source = source
        self._schema = schema
        self._target = target
        self._random = Random(f"{seed}/changes")
        self._kills = Random(f"{seed}/kills")
        self._seed = seed
        self._version = 0
        self._log = directory / "feed.log"
        self._config = directory / "feed.toml"

    def survive(self, faults: int, longest_seconds: float) -> Outcome:
        """Run the feed through so many faults on each side; compare the copy with the source."""
        self._create()
        self._target.prepare()
        try:
            by_side = [
                NetworkFaults(f"{self._seed}/{side}", faults, longest_seconds=longest_seconds, aim=aim)
                for side, aim in (("source", b""), ("target", self._target.aim))
            ]
            kills = self._run(*by_side)
            changes = self._compare()
        finally:
            self._target.remove()
            self._remove()
        of_source, of_target = by_side
        return Outcome(of_source.made + of_target.made, of_target.aimed, kills, changes)

    def _run(self, of_source: NetworkFaults, of_target: NetworkFaults) -> int:
        """Run the feed while rows change, and then up to the source's end; return how often it was killed."""
        if self._target.repeats:
            with self._network():
                self._run_to_end()
        with self._network(of_source, of_target), ExitStack() as stack:
            writer = RepeatedInSession(
                self._connect, self._change, name="writer", pause_seconds=PAUSE_SECONDS
            )
            stack.callback(writer.stop)
            writer.start()
            kills = self._supervise(of_source, of_target)
            writer.stop()
            self._run_to_end()
            return kills

    @contextmanager
    def _network(
        self, of_source: NetworkFaults | None = None, of_target: NetworkFaults | None = None
    ) -> Iterator[None]:
        """The network between the feed and both servers, which is good without faults."""
        source, target = self._source, self._target
        with (
            Proxy(source.host, source.port, faults=of_source) as at_source,
            Proxy(target.host, target.port, faults=of_target, own_port=target.own_port) as at_target,
        ):
            self._configure(at_source.port, target.section(at_target.port))
            yield

    def _run_to_end(self) -> None:
        done = completed([*CLI, "run", self._config, "--until", "now"])
        assert done.returncode == 0, done.stderr

    # --- the source

    def _connect(self) -> Any:
        return self._source.connect(autocommit=False)

    def _create(self) -> None:
        with closing(self._source.connect()) as session, session.cursor() as cursor:
            create_tables(cursor, self._schema)
        with closing(self._connect()) as session, session.cursor() as cursor:
            for table in TABLES:
                for number in range(FIRST_ROWS):
                    self._insert(cursor, table, number)
            session.commit()

    def _insert(self, cursor: Any, table: str, number: int) -> None:
        self._version += STEP
        body = "x" * int(2000 ** self._random.random())
        cursor.execute(
            f"INSERT INTO {self._schema}.{table} VALUES (%s, %s, %s)", (number, self._version, body)
        )

    def _change(self, session: Any) -> None:
        """Run a transaction of a few changes, now and then of many."""
        random = self._random
        with session.cursor() as cursor:
            for _ in range(random.choice((1, 1, 2, 5)) if random.random() < 0.98 else 60):
                table = random.choice(tuple(TABLES))
                name, number = f"{self._schema}.{table}", random.randrange(FIRST_ROWS)
                match random.randrange(4):
                    case 0:
                        cursor.execute(f"DELETE FROM {name} WHERE id = {number}")
                        if random.random() < 0.8:
                            self._insert(cursor, table, number)
                    case 1:
                        cursor.execute(f"SELECT 1 FROM {name} WHERE id = {number}")
                        if not cursor.fetchall():
                            self._insert(cursor, table, number)
                    case 2:
                        cursor.execute(
                            f"UPDATE {name} SET n = n + 1 WHERE id BETWEEN {number} AND {number + 3}"
                        )
                    case _:
                        cursor.execute(f"UPDATE {name} SET n = n + 1 WHERE id = {number}")
        session.commit()

    def _remove(self) -> None:
        self._source.execute(f"DROP DATABASE {self._schema}_audit")

    # --- the feed

    def _configure(self, source_port: int, section: dict[str, Any]) -> None:
        random = Random(f"{self._seed}/options")
        lines = [
            f'name = "{self._schema}"',
            f'data_dir = "{self.directory / "state"}"',
            "[source]",
            f'url = "{self._source.url().replace(str(self._source.port), str(source_port))}"',
            f'tables = ["{self._schema}.*"]',
            "chunk_rows = 20",
            f"snapshot_workers = {random.choice((0, 1, 2))}",
            f'max_batch_bytes = "{random.choice(("4KiB", "1MiB"))}"',
            "timeout_seconds = 1",
            "heartbeat_seconds = 0.3",
            "retry_first_seconds = 0.05",
            "retry_longest_seconds = 0.5",
            "[sorter]",
            f"memory_bytes = {random.choice((0, 1 << 20))}",
            "[[sink]]",
            'name = "copy"',
            *(f"{name} = {value}" for name, value in section.items()),
        ]
        self._config.write_text("\n".join(lines) + "\n")

    def _supervise(self, *faults: NetworkFaults) -> int:
        """Run the feed until there are no more faults, and kill it now and then; return how often.

        It mustn't end by itself: faults of a network are retried.
        """

        def made() -> int:
            return sum(one.made.total() for one in faults)

        limit = sum(one.limit for one in faults)
        for kills in count(1):
            enough = min(limit, made() + self._kills.randint(2, 12))
            with Child([*CLI, "run", self._config], self._log) as child:
                child.wait_until(lambda enough=enough: made() >= enough, sign=made)
            if made() == limit:
                return kills
        raise AssertionError

    # --- the comparison

    def _compare(self) -> int:
        """Compare the target with the source; return the number of changes that were compared."""
        with closing(self._source.connect()) as session, session.cursor() as cursor:
            made = read_audit(cursor, self._schema)
            rows = {table: read_rows(cursor, self._schema, table) for table in TABLES}
        assert_applied_once(made, self._target.history())
        for table in TABLES:
            assert self._target.rows(table) == rows[table]
        return len(made)
