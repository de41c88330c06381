"""Whatever interrupts a commit: nothing is lost or twice, and no visible file changes or goes."""

from __future__ import annotations

import sys
from collections import Counter
from contextlib import suppress
from itertools import count

import pytest

from tidemill.errors import Retryable
from tidemill.sink import Delivery, DeliveryOptions
from tidemill.sink.files.directory import Directory
from tidemill.sink.files.kinds import storage_sink
from tidemill.sink.files.options import DirectoryOptions
from tidemill.sink.files.target import files_target
from tidemill.sink.kind import SinkContext
from tidemill.testing.changes import ORDERS, PAIRS, MemoryStore
from tidemill.testing.child import Child
from tidemill.testing.s3 import Broken
from tidemill.testing.sink_conformance import HISTORY, expected, feed

from .places import DirectoryPlace

SHORT = HISTORY[:9]
CALLS = ("write", "create", "copy", "publish", "remove", "remove_folder", "read", "names")


def check(place):
    for table in (ORDERS, PAIRS):
        assert Counter(place.rows(table)) == expected(SHORT)[table.full_name]


class Killed(BaseException):
    pass


class MortalStore(Directory):
    """Ends its process before or after one of its calls."""

    def __init__(self, path, calls: int, when: str) -> None:
        super().__init__(path)
        self.left = calls
        for name in CALLS:
            setattr(self, name, self._mortal(getattr(self, name), when))

    def _mortal(self, call, when):
        def called(*args):
            self.left -= 1
            if self.left < 0 or (self.left == 0 and when == "before"):
                raise Killed
            result = call(*args)
            if self.left == 0:
                raise Killed
            return result

        return called


@pytest.mark.parametrize("journal_seconds", [0.0, 60.0], ids=["journal", "none"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_process_that_dies_at_any_call_goes_on_where_it_was(tmp_path, when, journal_seconds):
    context = SinkContext(name="copy", feed="test", store=MemoryStore())
    options = DirectoryOptions(
        format="ndjson", flush_seconds=60.0, journal_seconds=journal_seconds, file_bytes=700, parallel=1
    )
    for calls in count(1):
        place = DirectoryPlace(tmp_path / str(calls))
        store = MortalStore(place.path, calls, when)
        with suppress(Killed):
            feed(storage_sink(files_target(store, options), context), SHORT)
        visible = place.objects()
        feed(place.sink(), SHORT)
        check(place)
        assert visible.items() <= place.objects().items()
        assert not list((place.path / "_tidemill" / "staged").glob("*/*"))
        if store.left > 0:
            break
    assert calls > 25


class Silent:
    """A fault: the store is cut off from a request on, until `heal`."""

    def __init__(self, what: str, when: str) -> None:
        self.method, self.part = what.split()
        self._when = when
        self._is_cut = self._is_over = False

    def __call__(self, environ, handle) -> None:
        wanted = environ["REQUEST_METHOD"] == self.method and self.part in environ["PATH_INFO"]
        self._is_cut = not self._is_over and (self._is_cut or wanted)
        if self._is_cut:
            if self._when == "after":
                handle()
            raise Broken

    def heal(self) -> None:
        self._is_over = True


REQUESTS = ["PUT /staged/", "PUT /states/", "PUT /table=", "PUT /metadata", "DELETE /states/"]
WITH_JOURNAL = ["PUT /journal", "PUT /states/", "DELETE /states/"]


@pytest.mark.parametrize("what", REQUESTS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_request_without_an_answer_is_done_once(place, s3_server, when, what):
    done_once(place, s3_server, Silent(what, when), file_bytes=500)


@pytest.mark.parametrize("what", WITH_JOURNAL)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_request_of_the_journal_without_an_answer_is_done_once(place, s3_server, when, what):
    done_once(place, s3_server, Silent(what, when), journal_seconds=0.0)


def done_once(place, s3_server, fault, **options):
    sink = place.sink(flush_seconds=60.0, **options)
    work = Delivery(sink, sink.open(), "src", DeliveryOptions(max_rows=3, rowless_seconds=0))
    s3_server.fault = fault
    retries = 0

    def until_done(step) -> None:
        nonlocal retries
        while True:
            try:
                return step(0)
            except Retryable:
                fault.heal()
                retries += 1
                work.run(0)

    try:
        for item in SHORT:
            work.accept([item])
            until_done(work.run)
        until_done(work.flush)
    finally:
        s3_server.fault = None
    sink.close()
    check(place)
    assert retries == 1
    assert s3_server.objects(f"{place.path}/_tidemill/staged", hidden=True) == {}


PROGRAM = """
import sys
from tidemill.sink import open_sink
from tidemill.testing.changes import MemoryStore, ORDERS, PAIRS, batch, insert, transaction
options = {"format": "ndjson", "file_bytes": 1, "flush_seconds": 0.0}
sink = open_sink("copy", sys.argv[1], feed="test", store=MemoryStore(), options=options)
at = sink.open()
for ts in range(at.ts + 1 if at else 1, 13):
    rows = [insert(ORDERS, ts, "a"), insert(PAIRS, ts, "b", ts), insert(ORDERS, -ts, "c")]
    sink.write(batch(transaction(ts, *rows)))
    sink.progress()
sink.close()
"""
POINTS = [
    "sink.mid_batch:2", "storage.writing:1", "storage.writing:4", "sink.before_commit:2", "sink.committed:1",
    "storage.publishing:1", "storage.publishing:4", "storage.published:2",
]  # fmt: skip


def killed(place, points):
    command = [sys.executable, "-c", PROGRAM, place.url()]
    seen = {}
    for point in points:
        with Child(command, failpoint=point) as child:
            child.dies()
        visible = place.objects()
        assert seen.items() <= visible.items()
        seen = visible
    with Child(command) as child:
        assert child.exit_status() == 0
    objects = place.objects()
    assert seen.items() <= objects.items()
    assert len(objects) == 24
    orders = [change["after"]["id"] for change in place.changes("table=shop.orders")]
    assert orders == [one for ts in range(1, 13) for one in (ts, -ts)]
    assert [change["after"]["a"] for change in place.changes("table=shop.pairs")] == list(range(1, 13))


def test_a_killed_process_loses_and_repeats_nothing(place):
    killed(place, ["storage.publishing:2", "sink.committed:1"])


@pytest.mark.soak
def test_a_process_killed_at_every_point_loses_and_repeats_nothing(place):
    killed(place, POINTS)
