from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidemill.codec.checkpoint import decode_checkpoint, encode_checkpoint
from tidemill.engine.checkpoint import CheckpointFile, lowest
from tidemill.errors import CheckpointError
from tidemill.events import (
    PENDING,
    STALE,
    Checkpoint,
    SparkBatch,
    SparkQuery,
    TablePosition,
    TableProgress,
    compose_ts,
)

LOADED = st.just(PENDING) | st.builds(
    TableProgress, st.none() | st.lists(st.integers(0, 2**64 - 1), max_size=3).map(tuple)
)
CHECKPOINTS = st.builds(
    Checkpoint,
    st.integers(0, 2**63 - 1),
    st.text(),
    st.none() | st.dictionaries(st.text(), LOADED, max_size=4),
    st.text(),
    st.none() | st.builds(SparkQuery, st.integers(1, 100)) | st.builds(SparkBatch, st.text(), st.integers(0)),
    st.dictionaries(st.text(), st.builds(TablePosition, st.integers(0, 2**63 - 1), st.text()), max_size=3),
)


@given(CHECKPOINTS, st.integers(0, 2**63 - 1))
def test_a_checkpoint_comes_back_from_its_text(checkpoint, length):
    assert decode_checkpoint(encode_checkpoint(checkpoint, length), "here") == (checkpoint, length)


def test_people_can_read_it():
    ts = compose_ts(1_700_000_000_123)
    loading = {"shop.orders": TableProgress((42,)), "shop.items": TableProgress(), "shop.later": PENDING}
    tables = {"shop.late": TablePosition(5, "bin.000002:4")}
    text = encode_checkpoint(Checkpoint(ts, "bin.000003:4711", loading, "server 7", SparkQuery(4), tables))
    document = json.loads(text)
    assert document.pop("checksum")
    assert document == {
        "version": 2,
        "ts": ts,
        "time": "2023-11-14T22:13:20.123+00:00",
        "position": "bin.000003:4711",
        "source": "server 7",
        "loading": {"shop.orders": [42], "shop.items": "whole", "shop.later": "pending"},
        "owner": {"type": "spark query", "partitions": 4},
        "tables": {"shop.late": {"ts": 5, "position": "bin.000002:4"}},
    }


TEXT = encode_checkpoint(Checkpoint(77, "bin.000003:4711", {"a.b": TableProgress((1,))}, "server 7"))


def test_the_progress_of_many_tables_takes_little_room():
    keys = [TableProgress(), TableProgress((1, "a\udc80")), STALE, PENDING]
    loading = {f"shop.customer_{number}": keys[number % 4] for number in range(5_000)}
    checkpoint = Checkpoint(77, "bin.000003:4711", loading, "server 7")
    text = encode_checkpoint(checkpoint, 5)
    assert len(text) < 40_000
    assert decode_checkpoint(text, "here") == (checkpoint, 5)
    middle = len(text) // 2
    other = "A" if text[middle] != "A" else "B"
    with pytest.raises(CheckpointError, match="damaged: its checksum doesn't match"):
        decode_checkpoint(text[:middle] + other + text[middle + 1 :], "here")


@given(st.integers(0, len(TEXT) - 1))
def test_a_cut_text_is_damaged(length):
    with pytest.raises(CheckpointError, match=r"the checkpoint in here is damaged.*Put back a copy"):
        decode_checkpoint(TEXT[:length], "here")


@given(st.integers(0, len(TEXT) - 1), st.characters(codec="ascii"))
def test_another_character_anywhere_is_noticed(index, character):
    changed = TEXT[:index] + character + TEXT[index + 1 :]
    try:
        found = decode_checkpoint(changed, "here")
    except CheckpointError:
        return
    assert found == decode_checkpoint(TEXT, "here")  # white space, or the character that was there


@pytest.mark.parametrize("text", ["", "[]", "3", "null", '{"version": 1}', '{"checksum": "0", "version": 1}'])
def test_what_is_no_checkpoint_is_damaged(text):
    with pytest.raises(CheckpointError, match="is damaged"):
        decode_checkpoint(text, "here")


def test_another_version_is_named():
    text = TEXT.replace('"version": 2', '"version": 4')
    with pytest.raises(CheckpointError, match="version 4; this tidemill reads versions 1 to 3"):
        decode_checkpoint(text, "here")


# --- version 1, as written before ---------------------------------------------------------------------

SOME_LOADED = {"a.b": TableProgress((1,)), "a.c": TableProgress()}
ONCE = {
    "a feed's": (
        '{"version": 1, "ts": 445644800032243712, "time": "2023-11-14T22:13:20.123+00:00", "position": '
        '"bin.000003:4711", "source": "server 7", "loading": null, "checksum": "be838854"}',
        (Checkpoint(445644800032243712, "bin.000003:4711", None, "server 7"), 0),
    ),
    "a file's in its snapshot": (
        '{"version": 1, "ts": 77, "time": "1970-01-01T00:00:00.000+00:00", "position": "bin.000003:4711", '
        '"source": "server 7", "loading": {"a.b": [1], "a.c": "whole"}, "length": 12, "checksum": '
        '"5a5f33fc"}',
        (
            Checkpoint(
                77, "bin.000003:4711", {"a.b": TableProgress((1,)), "a.c": TableProgress()}, "server 7"
            ),
            12,
        ),
    ),
    "a query's of Spark": (
        '{"version": 1, "ts": 78, "time": "1970-01-01T00:00:00.000+00:00", "position": "bin.000003:4711", '
        '"source": "engine spark, 4 partitions, of server 7", "loading": null, "checksum": "b747fb46"}',
        (Checkpoint(78, "bin.000003:4711", None, "server 7", SparkQuery(4)), 0),
    ),
    "a task's of Spark": (
        '{"version": 1, "ts": 79, "time": "1970-01-01T00:00:00.000+00:00", "position": "batch 3 of 0f9a-11", '
        '"source": "spark 0f9a-11", "loading": null, "checksum": "e95e2141"}',
        (Checkpoint(79, "batch 3 of 0f9a-11", None, "spark 0f9a-11", SparkBatch("0f9a-11", 3)), 0),
    ),
}


@pytest.mark.parametrize(("text", "wanted"), ONCE.values(), ids=ONCE)
def test_a_checkpoint_of_version_1_is_read(text, wanted):
    assert decode_checkpoint(text, "here") == wanted
    assert decode_checkpoint(encode_checkpoint(*wanted), "here") == wanted


# --- the file ---------------------------------------------------------------------------------------


def test_a_file_keeps_the_last_one_saved(tmp_path):
    file = CheckpointFile(tmp_path / "feed" / "sink.json")
    assert file.load() is None
    file.save(Checkpoint(1, "a:1"))
    file.save(Checkpoint(2, "a:2"), 17)
    assert file.load() == (Checkpoint(2, "a:2"), 17)
    assert [path.name for path in file.path.parent.iterdir()] == ["sink.json"]


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", TEXT[:50].encode()])
def test_a_damaged_file_is_named_and_left_alone(tmp_path, content):
    path = tmp_path / "sink.json"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"sink\.json is damaged"):
        CheckpointFile(path).load()
    assert path.read_bytes() == content


def test_a_file_that_cannot_be_read_or_written_is_named(tmp_path):
    (tmp_path / "sink.json").mkdir()
    file = CheckpointFile(tmp_path / "sink.json")
    with pytest.raises(CheckpointError, match=r"can't read the checkpoint .*sink\.json: Is a directory"):
        file.load()
    with pytest.raises(CheckpointError, match=r"can't write the checkpoint .*sink\.json: Is a directory"):
        file.save(Checkpoint(1, "a:1"))


def test_a_save_that_fails_leaves_the_last_one(tmp_path, monkeypatch):
    file = CheckpointFile(tmp_path / "sink.json")
    file.save(Checkpoint(1, "a:1"))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(CheckpointError, match="No space left"):
        file.save(Checkpoint(2, "a:2"))
    assert file.load() == (Checkpoint(1, "a:1"), 0)


def test_a_kill_at_any_write_leaves_a_whole_file(tmp_path):
    code = """
import os, signal, sys
from pathlib import Path
from tidemill.engine.checkpoint import CheckpointFile
from tidemill.events import Checkpoint
file = CheckpointFile(Path(sys.argv[1]))
file.save(Checkpoint(1, "a:1"))
calls = int(sys.argv[2])
def die(*args):
    global calls
    if calls == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    calls -= 1
sys.addaudithook(lambda event, args: die() if event in ("open", "os.rename") else None)
file.save(Checkpoint(2, "a:2"))
"""
    for calls in range(4):
        path = tmp_path / f"{calls}.json"
        subprocess.run([sys.executable, "-c", code, path, str(calls)], check=False)
        assert CheckpointFile(path).load()[0].ts == (1 if calls < 2 else 2)


# --- the lowest -------------------------------------------------------------------------------------


def place(ts, loading=None, source="s"):
    return Checkpoint(ts, str(ts), loading, source)


def test_without_any_checkpoint_there_is_none():
    assert lowest([], int) is None
    assert lowest([None, None], int) is None


def test_a_checkpoint_without_a_position_holds_nothing():
    assert lowest([Checkpoint(0, "", {}), None], int) is None
    assert lowest([Checkpoint(0, "", {}), place(9)], int) == place(9, {})


def test_the_lowest_position_wins():
    assert lowest([place(12), place(9), place(100)], int) == place(9)


def test_a_new_sink_has_nothing_loaded():
    assert lowest([place(12), None], int) == place(12, {})


def test_each_table_is_as_far_as_the_sink_that_has_least_of_it():
    whole, some, more, made = TableProgress(), TableProgress((3,)), TableProgress((5, 1)), TableProgress(())
    one = place(7, {"a": whole, "b": some, "c": whole, "d": whole, "e": made})
    two = place(9, {"a": whole, "b": more, "c": some, "e": whole})
    assert lowest([one, two, place(8)], int) == place(7, {"a": whole, "b": some, "c": some})


def test_a_table_whose_key_has_another_type_in_one_sink_is_at_its_start():
    old, new, whole = TableProgress(("6b",)), TableProgress((5,)), TableProgress()
    one, two = place(7, {"a": old, "b": whole}), place(9, {"a": new, "b": old})
    assert lowest([one, two], int) == place(7, {"b": old})


def late(ts, **tables):
    return Checkpoint(
        ts, str(ts), None, "s", None, {name: TablePosition(at, str(at)) for name, at in tables.items()}
    )


def test_a_table_behind_its_feed_is_where_the_source_resumes():
    assert lowest([late(12, a=7), place(9)], int) == place(7)
    assert lowest([late(12, a=70), place(15)], int) == place(12)


def test_a_checkpoint_covers_each_table_up_to_its_own_position():
    at = late(12, behind=7, ahead=20)
    assert [at.covers("behind", ts) for ts in (7, 8)] == [True, False]
    assert [at.covers("ahead", ts) for ts in (20, 21)] == [True, False]
    assert [at.covers("other", ts) for ts in (12, 13)] == [True, False]
    assert at.resume == TablePosition(7, "7")


def test_a_checkpoint_includes_one_that_no_table_is_beyond():
    assert place(12).includes(place(12))
    assert not place(12).includes(place(13))
    assert place(12).includes(late(12, a=7))
    assert not late(12, a=7).includes(place(12))
    assert late(12, a=9).includes(late(12, a=7))
    assert not late(12, a=7).includes(late(12, a=9))
    assert not place(12).includes(late(12, a=20))


def test_checkpoints_of_different_sources_do_not_mix():
    with pytest.raises(CheckpointError, match="different sources: s, t"):
        lowest([place(1), place(2, source="t")], int)
