"""Mistakes in options and prefixes, stores that answer slowly or half, and second copies of a feed."""

from __future__ import annotations

from threading import Event

import moto.settings
import pytest

from tidemill.errors import CheckpointError, ConfigError, Retryable, SinkError
from tidemill.sink import Delivery, open_sink
from tidemill.sink.files.directory import Directory
from tidemill.sink.kind import SinkContext
from tidemill.sink.registry import given_sink, survey_sink
from tidemill.testing.changes import ORDERS, MemoryStore, at, batch, insert, transaction
from tidemill.testing.s3 import Broken

from .places import BucketPlace, DirectoryPlace


def opened(url, **options):
    return open_sink("copy", url, feed="f", store=MemoryStore(), options=options)


def ids(place):
    return [change["after"]["id"] for change in place.changes("table=shop.orders")]


def one(ts):
    return batch(transaction(ts, insert(ORDERS, ts, "")))


def begun(place):
    """Return a sink with one row, and its delivery."""
    sink = place.sink()
    sink.open()
    sink.write(one(1))
    return sink, Delivery(sink, sink.flush(), "src")


# --- options and addresses


@pytest.mark.parametrize(
    ("url", "options", "words"),
    [
        ("s3://", {}, "names no bucket; for instance s3://bucket/prefix"),
        ("s3://key:secret@bucket/p", {}, "give access_key and secret_key as options"),
        ("s3://bucket?secret_key=x", {}, "secret_key in the URL: no such option"),
        ("s3://bucket?format=avro", {}, "format = 'avro' in the URL: 'avro' is none of 'parquet', 'ndjson'"),
        ("s3://bucket", {"access_key": "x"}, "access_key and secret_key go together"),
        ("s3://bucket", {"endpoint": "minio:9000"}, "endpoint = 'minio:9000': a URL"),
        ("s3://bucket", {"flush_seconds": -1.0}, "flush_seconds = -1.0: expected `float` >= 0"),
        ("s3://bucket", {"encoding": {"null": ""}}, "the format parquet has no such options"),
        ("s3://bucket?format=csv", {"encoding": {"output-old-value": True}}, "two rows with one key"),
        ("s3://bucket?format=csv", {"encoding": {"nul": ""}}, "nul"),
        (
            "s3://bucket?format=csv&layout=ticdc&row_key=true",
            {"encoding": {"output-old-value": True}},
            "two rows with one key; give row_key = false",
        ),
        (
            "s3://bucket?format=csv&layout=ticdc&row_key=true",
            {"encoding": {"output-field-header": True}},
            "no line of names",
        ),
        ("s3://bucket?layout=ticdc&file_expiration_days=-1", {}, "= '-1' in the URL: expected `int` >= 0"),
        (
            "s3://bucket?layout=ticdc&file_expiration_days=3&date_separator=none",
            {},
            'file_expiration_days needs date_separator = "day"',
        ),
        ("s3://bucket?format=canal-json&row_key=true", {}, "row_key needs encoding.enable-tidb-extension"),
        ("s3://bucket?format=maxwell&row_key=true", {}, "row_key: the format maxwell has no place for a key"),
        (
            "s3://bucket?layout=ticdc&file_index_width=5",
            {},
            "= '5' in the URL: expected `int` >= 6",
        ),
        ("s3://bucket?date_separator=month", {}, 'date_separator goes with layout = "ticdc": give it'),
        ("directory:///", {}, "names no directory; for instance directory:///var/rows"),
    ],
)
def test_options_that_are_wrong_are_named(url, options, words):
    with pytest.raises(ConfigError) as refused:
        opened(url, **options)
    assert words in str(refused.value)
    assert str(refused.value).startswith("sink copy: ")


# --- the store


def test_a_bucket_that_is_missing_is_named(s3_server):
    with pytest.raises(SinkError, match="there is no bucket 'nowhere': create it, or correct the URL"):
        opened(s3_server.url("nowhere/rows")).open()


def test_wrong_credentials_are_said_to_be_wrong(place, monkeypatch):
    monkeypatch.setattr(moto.settings, "INITIAL_NO_AUTH_ACTION_COUNT", 0.0)
    with pytest.raises(SinkError, match=r"correct (the credentials|access_key)"):
        place.sink().open()


def test_a_bucket_that_goes_away_stops_the_feed(place, s3_server):
    sink = place.sink()
    sink.open()
    sink.write(one(1))
    s3_server.delete_bucket(place.path.partition("/")[0])
    with pytest.raises(SinkError, match="there is no bucket"):
        sink.flush()
    sink.close()


def test_a_store_that_answers_slowly_is_waited_for(place, s3_server):
    place.options["timeout_seconds"] = 3.0
    sink, work = begun(place)
    over, slow = Event(), Event()

    def fault(environ, handle):
        if "/staged/" in environ["PATH_INFO"] and not over.is_set():
            if not slow.is_set():  # later attempts are cut at once: the test takes the time of one
                slow.set()
                over.wait()
            raise Broken

    s3_server.fault = fault
    try:
        work.accept([transaction(2, insert(ORDERS, 2, ""))])
        with pytest.raises(Retryable, match="the store doesn't answer as it should"):
            work.run(0)
        assert slow.is_set()
    finally:
        over.set()
        s3_server.fault = None
    assert ids(place) == [1]
    work.run(0)
    sink.close()
    assert ids(place) == [1, 2]


def test_an_upload_that_stops_halfway_shows_nothing(place, s3_server):
    """An object of several parts, whose second one never arrives."""
    sink, work = begun(place)

    def fault(environ, handle):
        if "partNumber=2" in environ["QUERY_STRING"]:
            raise Broken

    rows = [insert(ORDERS, number, "x" * 500_000) for number in range(2, 26)]
    s3_server.fault = fault
    try:
        work.accept([transaction(2, *rows)])
        with pytest.raises(Retryable):
            work.run(0)
    finally:
        s3_server.fault = None
    assert ids(place) == [1]
    work.run(0)
    sink.close()
    assert ids(place) == list(range(1, 26))


# --- what is in the prefix


def test_objects_of_somebody_else_are_left_alone(tmp_path):
    place = DirectoryPlace(tmp_path)
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(SinkError, match=r"holds mine\.txt already: empty it, or give another prefix"):
        place.sink().open()
    assert place.objects() == {"mine.txt": b"mine"}


def test_the_prefix_of_another_feed_is_refused_and_left_alone(tmp_path):
    place = DirectoryPlace(tmp_path / "copy")
    first = place.sink()
    first.open()
    first.write(one(1))
    first.flush()
    with pytest.raises(SinkError, match="belongs to sink 'copy' of feed 'test': give another prefix"):
        place.sink("other").open()
    first.write(one(2))
    first.flush()
    first.close()
    assert ids(place) == [1, 2]


def test_another_format_is_refused(tmp_path):
    place = DirectoryPlace(tmp_path / "copy")
    sink = place.sink()
    sink.open()
    sink.write(one(1))
    sink.flush()
    sink.close()
    with pytest.raises(SinkError, match="has files of format 'ndjson' in the layout 'tables': give these"):
        place.sink(format="parquet").open()


def test_a_damaged_state_is_named(tmp_path):
    place = DirectoryPlace(tmp_path / "copy")
    sink = place.sink()
    sink.open()
    sink.write(one(1))
    sink.flush()
    sink.close()
    [state] = (tmp_path / "copy" / "_tidemill" / "states").glob("*-000000000001-*")
    state.write_bytes(state.read_bytes()[:-30])
    with pytest.raises(CheckpointError, match=r"states/.*\.json is damaged"):
        place.sink().open()


def test_a_directory_that_can_not_be_made_is_named(tmp_path):
    with pytest.raises(SinkError, match=r"can't write .*no/copy: No such file or directory"):
        DirectoryPlace(tmp_path / "no" / "copy").sink().open()


# --- a second copy of the feed


@pytest.fixture(params=["directory", "bucket"])
def shared(request, tmp_path, s3_server, bucket):
    if request.param == "directory":
        return DirectoryPlace(tmp_path / "copy")
    return BucketPlace(s3_server, f"{bucket}/copy")


def test_a_second_copy_fences_off_the_first(shared):
    first, second = shared.sink(), shared.sink()
    first.open()
    first.write(one(1))
    first.flush()
    assert second.open() == at(1)
    first.write(one(2))
    with pytest.raises(SinkError, match="another copy of feed 'test' has taken over: stop one of them"):
        first.flush()
    first.close()
    assert ids(shared) == [1]
    second.write(one(2))
    second.write(one(3))
    second.flush()
    second.close()
    third = shared.sink()
    assert third.open() == at(3)
    third.close()
    assert ids(shared) == [1, 2, 3]


def test_a_commit_saved_before_the_second_copy_reads_is_published_by_it(tmp_path):
    place = DirectoryPlace(tmp_path / "copy")
    first, second = place.sink(), place.sink()
    first.open()
    save = first._commits._ledger.save

    def saved_just_before(state):
        save(state)
        assert second.open() == at(1)

    first._commits._ledger.save = saved_just_before
    first.write(one(1))
    with pytest.raises(SinkError, match="has taken over"):
        first.flush()
    first.close()
    second.close()
    assert ids(place) == [1]


def test_a_commit_saved_too_late_does_not_count(tmp_path):
    place = DirectoryPlace(tmp_path / "copy")
    first, second = place.sink(), place.sink()
    first.open()
    save = first._commits._ledger.save

    def saved_too_late(state):
        assert second.open() is None
        save(state)

    first._commits._ledger.save = saved_too_late
    first.write(one(1))
    with pytest.raises(SinkError, match="has taken over"):
        first.flush()
    first.close()
    second.write(one(1))
    second.flush()
    second.close()
    third = place.sink()
    assert third.open() == at(1)
    third.close()
    assert ids(place) == [1]


def test_of_two_copies_that_start_at_once_none_writes(tmp_path):
    place = DirectoryPlace(tmp_path / "copy")
    first, second = place.sink(), place.sink()
    write = first._target.store.write

    def after_the_other(name, content):
        first._target.store.write = write
        with pytest.raises(Retryable, match="starts at this moment"):
            claimed_meanwhile(second, lambda: write(name, content))
        write(name, content)

    def claimed_meanwhile(sink, do):
        own = sink._target.store.write

        def written(name, content):
            own(name, content)
            do()

        sink._target.store.write = written
        sink.open()

    first._target.store.write = after_the_other
    assert first.open() is None  # the other one has withdrawn
    first.close()


# --- checks before the start


def test_the_check_says_where_the_feed_begins(place):
    def said():
        given = given_sink("copy", place.url(), place.options)
        context = SinkContext(name="copy", feed="test", store=MemoryStore())
        return [finding.text for finding in survey_sink(given, context)]

    bucket = place.path.partition("/")[0]
    assert said() == [f"bucket '{bucket}' is there", "has no position yet"]
    sink = place.sink()
    sink.open()
    sink.write(one(1))
    sink.flush()
    assert said() == [f"bucket '{bucket}' is there", "has position log:1"]
    sink.write(one(2))
    sink.flush()  # the check fenced off nobody
    sink.close()


def test_a_directory_that_refuses_to_remove_a_folder_says_so(tmp_path):
    store = Directory(tmp_path)
    store.write("folder/one", b"1")
    store.remove_folder("folder")
    store.remove_folder("folder")  # it is gone
    assert store.entries() == []
    store.write("file", b"1")
    with pytest.raises(SinkError, match=f"can't write {tmp_path}: Not a directory"):
        store.remove_folder("file")
