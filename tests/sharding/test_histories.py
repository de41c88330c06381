"""Random histories of shards end with the union of their rows, wherever the process is killed."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from .history import History
from .life import Life
from .protocol import STATES, table_of


def play(tmp_path, monkeypatch, seed, *, max_held_rows=1000, mode="pessimistic"):
    history = History(seed, differ=mode == "optimistic")
    life = Life(
        tmp_path / "copy.db", history.items, monkeypatch, seed, max_held_rows=max_held_rows, mode=mode
    )
    life.run(kills=6, states=[STATES[seed % len(STATES)]])
    assert life.rows() == history.expected()
    assert life.rows("app.plain") == {(number,) for number in history.plain}
    return life


def play_unlocked(tmp_path, monkeypatch, seed, *, max_held_rows=1000):
    history = History(seed, joins=False, changes=3)
    life = Life(
        tmp_path / "copy.db", history.items, monkeypatch, seed, max_held_rows=max_held_rows, unlocks=True
    )
    life.run(kills=5)
    assert life.rows() == history.expected()
    return life


@pytest.fixture
def played(request, tmp_path, monkeypatch):
    """Play a history by the seed, and note its kills."""

    def run(seed, *, plays=play, **options):
        life = plays(tmp_path, monkeypatch, seed, **options)
        request.node.user_properties.append(("kills", dict(life.killed)))
        return life

    return run


@pytest.mark.parametrize("seed", range(14))
def test_a_history_whose_rows_are_held(played, seed):
    assert not played(seed).seeks


@pytest.mark.parametrize("seed", range(14))
def test_a_history_whose_rows_are_read_again(played, seed):
    played(seed, max_held_rows=2)


@pytest.mark.parametrize("seed", range(14))
def test_a_history_of_shards_that_differ(played, seed):
    played(seed, mode="optimistic")


@pytest.mark.parametrize("seed", range(10))
def test_a_history_with_unlocks(played, seed):
    played(seed, plays=play_unlocked)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2000, 2100))
@pytest.mark.parametrize("max_held_rows", [1000, 3])
def test_many_histories_with_unlocks(played, seed, max_held_rows):
    played(seed, plays=play_unlocked, max_held_rows=max_held_rows)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_many_histories_of_shards_that_differ(played, seed):
    played(seed, mode="optimistic")


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100, 350))
@pytest.mark.parametrize("max_held_rows", [1000, 3])
def test_many_histories(played, seed, max_held_rows):
    played(seed, max_held_rows=max_held_rows)


def test_kills_reach_every_state_of_a_schema_change(tmp_path, monkeypatch):
    killed: Counter[str] = Counter()
    for seed in range(3):
        history = History(seed)
        life = Life(tmp_path / f"{seed}.db", history.items, monkeypatch, seed, max_held_rows=4)
        life.run(states=Random(seed).sample(STATES, len(STATES)))
        assert life.rows() == history.expected()
        killed += life.killed
    assert set(STATES) <= set(killed), table_of(killed)
