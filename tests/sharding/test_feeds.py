"""Random histories of two feeds end with the union of their shards' rows, wherever either is killed."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing

import pytest

from tidemill.errors import SinkError

from .feeds import OWN, Feeds
from .history import CHANGES, History
from .life import rows_of


def play(tmp_path, monkeypatch, seed, *, unlocks=False):
    history = History(seed, joins=False, ends=True, changes=3 if unlocks else len(CHANGES))
    path = tmp_path / "copy.db"
    held = [1000, 3][seed % 2]
    feeds = Feeds(path, history.items, monkeypatch, seed, max_held_rows=held, unlocks=unlocks)
    feeds.run(kills=16)
    assert rows_of(path, "all.item") == history.expected()
    assert rows_of(path, "app.plain") == {(number,) for number in history.plain}
    return feeds


def test_kills_reach_every_step_of_two_feeds(tmp_path, monkeypatch):
    killed: Counter[str] = Counter()
    for seed in range(8):
        (tmp_path / str(seed)).mkdir()
        killed += play(tmp_path / str(seed), monkeypatch, seed, unlocks=True).killed
    assert set(OWN) <= set(killed)


@pytest.mark.parametrize("seed", range(6))
def test_a_history_of_two_feeds(tmp_path, monkeypatch, seed):
    play(tmp_path, monkeypatch, seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 300))
def test_many_histories_of_two_feeds(tmp_path, monkeypatch, seed):
    play(tmp_path, monkeypatch, seed)


@pytest.mark.parametrize("seed", range(6))
def test_a_history_of_two_feeds_with_unlocks(tmp_path, monkeypatch, seed):
    play(tmp_path, monkeypatch, seed, unlocks=True)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(300, 500))
def test_many_histories_of_two_feeds_with_unlocks(tmp_path, monkeypatch, seed):
    play(tmp_path, monkeypatch, seed, unlocks=True)


def test_a_table_with_other_rows_isn_t_shared(tmp_path, monkeypatch):
    path = tmp_path / "copy.db"
    with closing(sqlite3.connect(path)) as copy:
        copy.execute('CREATE TABLE "all.item" (id INTEGER NOT NULL PRIMARY KEY, n INTEGER)')
        copy.execute('INSERT INTO "all.item" VALUES (1, 1)')
        copy.commit()
    feeds = Feeds(path, History(1, joins=False, ends=True).items, monkeypatch, 1)
    with pytest.raises(
        SinkError, match=r"all\.item has rows already, and all\.item is about to be loaded into"
    ):
        feeds.run()
