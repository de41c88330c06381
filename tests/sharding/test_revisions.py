"""Stores that several feeds share: the same answers from a table of each SQL target, and from etcd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread

import pytest

from tidemill.puller.pump.registry.etcd import EtcdRegistry
from tidemill.sharding import Revisions
from tidemill.sink.registry import given_sink
from tidemill.testing.progress import eventually


@pytest.fixture(params=["sqlite", "mariadb", "postgres", "etcd"])
def connect(request, tmp_path) -> Iterator[Callable[[], Revisions]]:
    """Return a function that connects to the store again."""
    kind, made = request.param, []
    if kind == "etcd":
        etcd = request.getfixturevalue("private_etcd")
    elif kind == "postgres":
        url = request.getfixturevalue("postgresql").url(request.getfixturevalue("postgres_database"))
    elif kind == "mariadb":
        url = request.getfixturevalue("mariadb").url(request.getfixturevalue("database"))
    else:
        url = f"sqlite:///{tmp_path}/copy.db"

    def open_store() -> Revisions:
        if kind == "etcd":
            made.append(EtcdRegistry([etcd.address], prefix="/tidemill/test/"))
        else:
            given = given_sink("copy", url)
            made.append(given.kind.revisions(given.target, given.options, "feed"))
        return made[-1]

    yield open_store
    for store in made:
        store.close()


def test_a_record_is_written_only_over_the_revision_that_was_read(connect):
    one, two = connect(), connect()
    assert one.get("lock/a") is None
    first = one.put("lock/a", b"one", 0)
    assert two.put("lock/a", b"two", 0) is None
    assert two.get("lock/a") == (b"one", first)
    second = two.put("lock/a", b"two", first)
    assert second not in (None, first)
    assert one.put("lock/a", b"one", first) is None
    assert one.list("lock/") == {"lock/a": (b"two", second)}
    assert one.list("feed/") == {}


def test_a_removed_record_can_be_written_again(connect):
    store = connect()
    first = store.put("feed/a", b"one", 0)
    second = store.put("feed/a", b"two", first)
    assert not store.delete("feed/a", first)
    assert store.delete("feed/a", second)
    assert (store.get("feed/a"), store.list("feed/")) == (None, {})
    third = store.put("feed/a", b"three", 0)
    assert third not in (first, second)
    assert not store.delete("feed/a", second)


def test_a_record_is_gone_after_its_time(connect):
    store = connect()
    first = store.put("feed/a", b"one", 0, 1)
    assert store.put("feed/a", b"two", first, 1) is not None
    eventually(lambda: store.get("feed/a") is None)
    assert store.list("feed/") == {}
    assert store.put("feed/a", b"three", 0, 60) is not None
    assert store.get("feed/a") is not None


def test_of_feeds_that_write_at_the_same_time_one_is_first(connect):
    stores = [connect() for _ in range(4)]
    first: list[int] = []

    def write(number: int) -> None:
        if stores[number].put("lock/a", str(number).encode(), 0) is not None:
            first.append(number)

    threads = [Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [str(number).encode() for number in first] == [stores[0].get("lock/a")[0]]
