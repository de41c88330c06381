"""The content of a relay after the items that passed it, as cases; and the rest of it after damage."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from tidemill.chain import Lag, StageContext
from tidemill.errors import SinkError, StoreError
from tidemill.events import (
    AddColumn,
    Checkpoint,
    Chunk,
    Column,
    Ddl,
    RowChange,
    Table,
    TablePosition,
    TableProgress,
    Transaction,
)
from tidemill.sink.relay.options import RelayOptions
from tidemill.sink.relay.reader import Relay
from tidemill.sink.relay.stage import RelayStage
from tidemill.testing.cases import load, title
from tidemill.testing.changes import ORDERS, delete, insert, transaction, update

CASES = load(Path(__file__).parent / "relays.txt")


def item(word: str, text: str = "a") -> Transaction:
    ts = int(word.rstrip(".-"))
    rows = [] if word.endswith(".") else [insert(ORDERS, ts, text)]
    return transaction(ts, *rows, last=not word.endswith("-"))


def word(one: Transaction) -> str:
    return f"{one.commit_ts}{'' if one.rows else '.'}{'' if one.last else '-'}"


class Player:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.stage: RelayStage | None = None
        self.passed: list[str] = []

    def play(self, commands: str) -> str:
        try:
            for line in commands.splitlines():
                name, *words = line.split()
                getattr(self, name)(*words)
        except SinkError as error:
            return f"error: {error}".replace(str(self.directory), "DIR")
        finally:
            self.crash()
        relay = Relay(self.directory)
        items = " ".join(word(one) for one, _ in relay.items(0))
        return f"begin {relay.begin_ts}, end {relay.end_ts}: {items}\npassed {' '.join(self.passed)}"

    def open(self, ts: str, *words: str) -> None:
        given = dict(one.split("=") for one in words if "=" in one)
        options = RelayOptions(
            directory=self.directory,
            segment_bytes=int(given.get("segment", 1 << 20)),
            keep_bytes=int(given.get("keep", 0)),
        )
        loading = {} if "loading" in words else None
        at = Checkpoint(int(ts), "" if ts == "0" else ts, loading, given.get("source", "src"))
        self.stage = RelayStage(options)
        self.stage.open(
            StageContext(feed=given.get("feed", "f"), sink="s", checkpoint=at, now=float, seek=lambda _: None)
        )

    def apply(self, *words: str) -> None:
        if words:
            text = "x" * 5000 if "large" in words else "a"
            items = [item(one, text) for one in words if one != "large"]
            self.passed += [word(one) for one in self.stage.apply(items)]

    def lag(self, table: str) -> None:
        self.stage.apply([Lag(table, TablePosition(1, "1"))])

    def durable(self, ts: str) -> None:
        self.stage.durable(Checkpoint(int(ts), ts))

    def crash(self) -> None:
        """Nothing is marked by an end either."""
        if self.stage is not None:
            self.stage.close()


@pytest.mark.parametrize("case", CASES, ids=title)
def test_case(case, tmp_path, rewrite, caplog):
    found = Player(tmp_path / "relay").play(case.commands)
    warnings = [f"warning:{record.getMessage().rpartition(':')[2]}\n" for record in caplog.records]
    case.expect("".join(warnings) + found, rewrite)


def relay_of(directory: Path, *batches: list) -> Relay:
    player = Player(directory)
    player.open("0")
    for batch in batches:
        player.stage.apply(batch)
    player.crash()
    return Relay(directory)


EVERYTHING = Table(
    "s",
    "everything",
    (
        Column("id", "bigint", unsigned=True),
        Column("d", "decimal", length=65, scale=30),
        Column("f", "double"),
        Column("day", "date"),
        Column("at", "datetime", scale=6),
        Column("zoned", "timestamp", scale=6),
        Column("t", "time", scale=6),
        Column("b", "varbinary", length=9),
        Column("j", "json"),
        Column("e", "enum", members=("", "x")),
    ),
    key=(0,),
)
ROW = (
    2**64 - 1,
    Decimal("-0.000000000000000000000000000001"),
    -0.0,
    date(1, 1, 1),
    datetime(9999, 12, 31, 23, 59, 59, 999999),  # noqa: DTZ001
    datetime(2026, 1, 1, 0, 0, 0, 1, tzinfo=UTC),
    timedelta(hours=-838, microseconds=-1),
    b"\x00\xff",
    '{"a": 1}',
    "0",
)
ZERO = (1, None, None, "0000-00-00", "2024-00-01 00:00:00", "0000-00-00 00:00:00", None, b"", None, "")


def test_every_value_comes_back_exactly(tmp_path):
    items = [
        transaction(10, insert(EVERYTHING, *ROW), update(EVERYTHING, ROW, ZERO), delete(EVERYTHING, *ZERO)),
        Ddl(20, 19, "src", "s", "everything", "alter", (AddColumn(Column("n", "int"), ""),), "log:20"),
        transaction(30, insert(ORDERS, 1, None), chunk=Chunk("shop.orders", TableProgress((1, "a")), (0,))),
    ]
    found = [one for one, _ in relay_of(tmp_path, items).items(0)]
    stamped = [
        RowChange(10, 0, change.table, change.op, change.before, change.after) for change in items[0].rows
    ]
    assert list(found[0].rows) == stamped
    assert str(found[0].rows[0].after[2]) == "-0.0"
    assert [found[0].source, found[0].position, found[1]] == ["src", "log:10", items[1]]
    assert found[2].chunk == items[2].chunk


def test_whatever_the_end_of_power_left_of_the_last_group_is_left_out(tmp_path):
    relay = relay_of(tmp_path, [item("10"), item("20")], [item("30"), item("40")])
    (content,) = relay.contents
    data = content.path.read_bytes()
    first = Relay(tmp_path)
    rng = Random(1)
    for length in [*range(content.length - 60, content.length), *rng.sample(range(content.length), 60)]:
        content.path.write_bytes(data[:length])
        cut = Relay(tmp_path)
        content.path.write_bytes(data[:length] + bytes(len(data) - length))
        assert Relay(tmp_path).end_ts == cut.end_ts <= 20
        assert [one.commit_ts for one, _ in cut.items(0)] == ([10, 20] if cut.end_ts else [])
    assert first.end_ts == 40


def test_damage_before_a_group_that_was_durable_is_an_error(tmp_path):
    relay = relay_of(tmp_path, [item("10")], [item("20")], [item("30")])
    (content,) = relay.contents
    data = bytearray(content.path.read_bytes())
    data[70] ^= 1
    content.path.write_bytes(data)
    with pytest.raises(StoreError, match=r"0+1\.relay is damaged at byte \d+: put back the whole file"):
        Relay(tmp_path)


def test_a_file_that_is_missing_is_an_error(tmp_path):
    player = Player(tmp_path)
    for ts in ("0", "10", "20"):
        player.open(ts, "keep=1000000")
        player.apply(str(int(ts) + 10))
        player.crash()
    (tmp_path / "000000000002.relay").unlink()
    with pytest.raises(StoreError, match=r"3\.relay begins after ts 20 of src, the file before ends at 10"):
        Relay(tmp_path)


def test_a_second_feed_is_refused(tmp_path):
    one, other = Player(tmp_path), Player(tmp_path)
    one.open("0")
    with pytest.raises(StoreError, match="another feed or a replay uses it"):
        other.open("0")
    one.crash()
    other.open("0")
    other.crash()


def test_a_full_disk_is_an_error_before_anything_passes(small_disk):
    player = Player(small_disk / "relay")
    player.open("0")
    passed = 0

    def fill() -> None:
        nonlocal passed
        for ts in range(10, 100_000, 10):
            player.stage.apply([item(str(ts), "x" * 200_000)])
            passed = ts

    with pytest.raises(StoreError, match="No space left on device: make room"):
        fill()
    player.crash()
    assert Relay(player.directory).end_ts == passed > 0
