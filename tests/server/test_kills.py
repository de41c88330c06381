"""Kill -9 at every point around every verb: what users wanted is there after a restart.

A model has, for each feed, what was answered. The request during which the process died may have been carried
out or not, and nothing in between; no other feed is touched.
"""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tidemill.client import Client, Refused
from tidemill.emulator.sql.sql import Tidb
from tidemill.errors import Retryable
from tidemill.failpoint import POINTS
from tidemill.testing.child import CLI, Child
from tidemill.testing.progress import eventually

OURS = [point for point in POINTS if point.startswith("server.")]
NAMES = ("a", "b", "c")
ROUNDS = 14


class Wanted(NamedTuple):
    """The last wish about a feed; None in its place: there is no feed."""

    paused: bool
    ahead_bytes: int
    """An option that makes no difference here, by which documents are told apart."""


@pytest.fixture(scope="module")
def tidb():
    with Tidb(stores=1, tick_seconds=0.02) as cluster:
        cluster.execute("create database shop")
        cluster.execute("create table shop.item (id int primary key)")
        yield cluster


class World:
    def __init__(self, tidb: Tidb, directory: Path, seed: int) -> None:
        self.tidb = tidb
        self.directory = directory
        self.random = random.Random(seed)
        self.model: dict[str, Wanted] = {}
        self.numbers = 0
        self.runs = 0

    def start(self, failpoint: str = "") -> tuple[Child, Client]:
        self.runs += 1
        log = self.directory / f"log-{self.runs}"
        command = [*CLI, "serve", self.directory / "feeds", "--http", "127.0.0.1:0"]
        child = Child(command, log, failpoint=failpoint)
        try:
            url = child.wait_until(lambda: re.search(r"http://\S+", log.read_text()))[0]
        except AssertionError:
            if not failpoint:
                raise
            return child, Client("http://127.0.0.1:9")  # it died while it started the feeds
        return child, Client(url)

    def document(self, name: str, ahead_bytes: int) -> dict[str, object]:
        return {
            "name": name,
            "source": {"url": f"tikv://{self.tidb.pd_address}", "tables": ["shop.*"]},
            "sink": [{"name": "copy", "url": f"sqlite:///{self.directory}/{name}.db"}],
            "sorter": {"ahead_bytes": ahead_bytes},
        }

    def operate(self, client: Client) -> tuple[str, Wanted | None]:
        """Do one operation; return the feed, and what is wanted of it after a success. Raises Retryable if
        the server dies meanwhile, with `pending` set."""
        name = self.random.choice(NAMES)
        before = self.model.get(name)
        number = self.random.randrange(1, 1 << 20)
        verbs: list[tuple[Callable[[], object], Wanted | None]] = [
            (lambda: client.create(self.document(name, number)), Wanted(False, number))
        ]
        if before is not None:
            verbs = [
                (lambda: client.pause(name), before._replace(paused=True)),
                (lambda: client.resume(name), before._replace(paused=False)),
                (
                    lambda: client.replace(name, self.document(name, number)),
                    before._replace(ahead_bytes=number),
                ),
                (lambda: client.delete(name, data=True), None),
            ]
        act, after = self.random.choice(verbs)
        self.pending = name, after
        act()
        return name, after

    def set(self, name: str, wanted: Wanted | None) -> None:
        self.model.pop(name, None)
        if wanted is not None:
            self.model[name] = wanted

    def seen(self, client: Client) -> dict[str, Wanted]:
        found = {}
        for feed in client.feeds():
            options = client.feed(feed.name).options
            found[feed.name] = Wanted(feed.state == "stopped", options["sorter"]["ahead_bytes"])
        return found

    def insert(self) -> int:
        self.numbers += 1
        with self.tidb.transaction() as txn:
            txn.insert("shop.item", {"id": self.random.randrange(1 << 30)})
        return self.numbers

    def copied(self, name: str) -> list[int]:
        with closing(sqlite3.connect(self.directory / f"{name}.db")) as connection:
            return [row[0] for row in connection.execute('select id from "shop.item" order by id')]


def kill_at(tidb: Tidb, directory: Path, seed: int) -> None:
    world = World(tidb, directory, seed)
    point, nth = OURS[seed % len(OURS)], 1 + seed // len(OURS) % 4
    child, client = world.start(f"{point}:{nth}")
    pending = None
    with child:
        try:
            for _ in range(ROUNDS):
                world.set(*world.operate(client))
        except Retryable:
            pending = world.pending
            child.dies()
    child, client = world.start()
    with child:
        eventually(lambda: all(feed.state != "starting" for feed in client.feeds()))
        accepted = [dict(world.model)]
        if pending is not None:
            name, after = pending
            world.set(name, after)
            accepted.append(dict(world.model))
        assert world.seen(client) in accepted, (pending, accepted)
        world.model = world.seen(client)
        folders = {path.name for path in (directory / "feeds" / "data").glob("*")}
        assert folders <= set(world.model)
        world.insert()
        present = sorted(row[0] for row in tidb.rows("shop.item"))
        for name, wanted in world.model.items():
            if not wanted.paused:
                eventually(lambda: world.copied(name) == present, sign=lambda: world.copied(name))  # noqa: B023
        for name in [*world.model]:  # each of them still obeys
            client.delete(name, data=True)
        assert client.feeds() == []
        with pytest.raises(Refused):
            client.pause(NAMES[0])
    left = [path for path in (directory / "feeds").rglob("*") if path.is_file()]
    assert [path.name for path in left] == ["server.lock"]


@pytest.mark.parametrize(
    "seed", [*range(10), *(pytest.param(n, marks=pytest.mark.soak) for n in range(10, 20))]
)
def test_wishes_survive_kills(tidb, tmp_path, seed) -> None:
    kill_at(tidb, tmp_path, seed)


@pytest.mark.soak
def test_wishes_survive_many_kills(tidb, tmp_path, request) -> None:
    only = request.config.getoption("--seed")
    for seed in range(100, 300) if only is None else [only]:
        directory = tmp_path / str(seed)
        directory.mkdir()
        kill_at(tidb, directory, seed)
