"""Transactions and schema changes that a sink doesn't get, as cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.chain import Chain
from tidemill.chain.selection.sections import omission_rules
from tidemill.chain.selection.stage import SelectionStage
from tidemill.dialects.options import MARK_SCHEMA, MARK_TABLE
from tidemill.engine.options import feed_options
from tidemill.errors import ConfigError, SinkError
from tidemill.events import AddColumn, Column, CreateTable, Ddl, Item, Table
from tidemill.sink.loopback import LoopbackStage
from tidemill.testing.cases import load, title
from tidemill.testing.changes import ORDERS, insert, transaction, update

MARKS = Table(MARK_SCHEMA, MARK_TABLE, (Column("id", "bigint"), Column("channel_id", "bigint")), key=(0, 1))


def item(line: str) -> Item:
    word, *parts = line.split()
    ts = int(word.rstrip("-"))
    if parts in (["ddl"], ["create"]):
        action = CreateTable(ORDERS) if parts == ["create"] else AddColumn(Column("n", "int"))
        return Ddl(ts, ts, "src", "shop", "orders", "alter" if parts == ["ddl"] else "", (action,))
    rows = []
    for part in parts:
        name, _, channel = part.partition("=")
        row = (1, int(channel or 0))
        rows.append(insert(ORDERS, ts, "a") if name == "orders" else update(MARKS, row, row))
    return transaction(ts, *rows, last=not word.endswith("-"))


def line(found: Item) -> str:
    if isinstance(found, Ddl):
        return f"{found.commit_ts} {'ddl' if found.query else 'create'}"
    names = ["mark" if row.table is MARKS else row.table.name for row in found.rows]
    return " ".join([f"{found.commit_ts}{'' if found.last else '-'}", *names])


def play(commands: str) -> str:
    given: dict = {}
    found = []
    for command in commands.splitlines():
        match command.split():
            case ["channel", number]:
                given["loopback_channel"] = int(number)
            case ["ignore", *timestamps]:
                given["ignore_txn_commit_ts"] = tuple(map(int, timestamps))
            case ["no", "ddl"]:
                given["sync_ddl"] = False
            case _:
                found.append(item(command))
    channel = given.pop("loopback_channel", 0)
    stages: list = [SelectionStage([*omission_rules(**given)], keys=())]
    if channel:
        stages.append(LoopbackStage(channel))
    chain = Chain(stages)
    lines = []
    try:
        for one in found:
            lines += map(line, chain.apply([one]))
    except SinkError as error:
        lines.append(f"error: {error}")
    return "\n".join(lines)


@pytest.mark.parametrize("case", load(Path(__file__).with_name("omissions.txt")), ids=title)
def test_case(case, rewrite):
    case.expect(play(case.commands), rewrite)


@pytest.mark.parametrize(
    ("tables", "sink", "said"),
    [
        (["shop.*"], {"loopback_channel": 1}, 'add "retl._drainer_repl_mark" to source.tables'),
        (["*.*"], {"loopback_channel": -1}, "loopback_channel = -1: expected `int` >= 0"),
        (["*.*"], {"loopback_channel": 1, "workers": 2}, "leave out workers and order"),
        (["*.*"], {"ignore_txn_commit_ts": "5"}, "ignore_txn_commit_ts"),
    ],
)
def test_options_that_do_not_go_together_are_refused(tables, sink, said):
    url = {"url": "mysql://root@h/"}
    with pytest.raises(ConfigError, match=said):
        feed_options({"source": {"url": "pump://h", "pd": ["h:1"], "tables": tables}, "sink": [url | sink]})


def test_loopback_control_is_for_mysql():
    section = {"url": "sqlite:///copy.db", "loopback_channel": 1}
    with pytest.raises(ConfigError, match="loopback_channel"):
        feed_options({"source": {"url": "pump://h", "pd": ["h:1"], "tables": ["*.*"]}, "sink": [section]})
