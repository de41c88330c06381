"""Windows, batches and iterators over RocksDB."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidemill.errors import StoreError
from tidemill.store.batch import PairBatch
from tidemill.store.scratch import Scratch
from tidemill.store.store import Store
from tidemill.testing.disk import usage


@pytest.fixture
def scratch(tmp_path: Path) -> Iterator[Scratch]:
    scratch = Scratch(tmp_path / "scratch")
    yield scratch
    scratch.close()


@pytest.fixture
def store(scratch: Scratch) -> Iterator[Store]:
    store = Store(scratch.new_store())
    yield store
    store.close()


def batch(newest: int, **pairs: bytes) -> PairBatch:
    made = PairBatch()
    for key, value in pairs.items():
        made.put(key.encode(), value, newest)
    return made


def test_what_was_written_is_read_by_key_and_in_order(store):
    window = store.write(batch(5, b=b"2", a=b"1", d=b"4", c=b"3"))
    assert store.write(batch(7, e=b"5")) is window
    assert store.get(window, b"c") == b"3"
    assert store.get(window, b"x") is None
    assert list(store.iterate(window, b"b", b"e")) == [(b"b", b"2"), (b"c", b"3"), (b"d", b"4")]
    assert window.newest == 7


def test_nothing_is_opened_before_the_first_write(store):
    assert not store.path.exists()
    store.write(batch(1, a=b""))
    assert store.path.exists()


def test_a_window_ends_when_it_is_full_or_when_told(scratch):
    store = Store(scratch.new_store(), window_bytes=100)
    first = store.write(batch(1, a=bytes(99)))
    second = store.write(batch(2, b=b""))
    assert first is not second
    assert store.ended() == [first]
    store.end_window()
    assert store.ended() == [first, second]
    store.close()


def test_a_dropped_window_takes_its_files_along(store, scratch):
    for n in range(20):
        window = store.write(batch(n, **{f"k{n}": bytes(100_000)}))
        window.family.flush()
    store.end_window()
    kept = store.write(batch(99, kept=b"here"))
    assert usage(scratch.directory) > 2_000_000
    store.drop(window)
    del window
    gc.collect()
    assert usage(scratch.directory) < 500_000
    assert store.bytes == len(b"kepthere")
    assert store.get(kept, b"kept") == b"here"


def test_a_dropped_window_can_be_read_by_who_still_holds_it(store):
    window = store.write(batch(1, a=b"1", b=b"2"))
    store.end_window()
    store.drop(window)
    assert store.get(window, b"a") == b"1"
    assert len(list(store.iterate(window, b"a", b"z"))) == 2


def test_windows_grow_when_there_are_many(scratch):
    store = Store(scratch.new_store(), window_bytes=1000)
    for n in range(200):
        store.write(batch(n, **{f"k{n}": bytes(500)}))
    assert len(store.ended()) < 50
    store.close()


def test_many_batches_at_once_never_stall_a_writer(scratch):
    store = Store(scratch.new_store(), buffer_bytes=1 << 20)
    for n in range(300):
        store.write(batch(n, **{f"k{n:03}": bytes(100_000)}))
    windows = {store.write(batch(999, last=b"")), *store.ended()}
    assert sum(1 for w in windows for _ in store.iterate(w, b"k", b"l")) == 300
    store.close()


def test_a_damaged_file_is_an_error_and_not_an_early_end(store):
    window = store.write(batch(1, **{f"k{n:03}": bytes([n]) * 1000 for n in range(100)}))
    window.family.flush()
    for path in store.path.glob("*.sst"):
        data = bytearray(path.read_bytes())
        data[50_000] ^= 0xFF
        path.write_bytes(data)
    read = []
    with pytest.raises(StoreError, match=r"can't be read.*[Cc]orrupt"):
        read.extend(store.iterate(window, b"k", b"l"))
    with pytest.raises(StoreError, match=r"can't be read.*[Cc]orrupt"):
        [store.get(window, f"k{n:03}".encode()) for n in range(100)]


def test_a_closed_store_says_so(store):
    store.write(batch(1, a=b""))
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.write(batch(1, a=b""))


def test_no_space_on_the_disk_is_a_clear_error(small_disk):
    store = Store(small_disk / "store", buffer_bytes=1 << 20)

    def fill() -> None:
        for n in range(1000):
            store.write(batch(n, **{f"k{n}": bytes(100_000)}))

    with pytest.raises(StoreError, match="has no space left on its disk"):
        fill()
    store.close()


# --- the scratch directory ---------------------------------------------------------------------------


def test_a_scratch_directory_is_emptied_of_stores_and_nothing_else(tmp_path):
    Scratch(tmp_path).close()
    (tmp_path / "store-3" / "deep").mkdir(parents=True)
    (tmp_path / "store-3" / "deep" / "file").write_text("left by a crash")
    (tmp_path / "sort-12-3.tmp").write_text("left by a crash")
    others = ["checkpoint.json", "sort-of-important", "store-backup"]
    for name in others:
        (tmp_path / name).write_text("{}")
    scratch = Scratch(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [*others, "tidemill.lock"]
    scratch.close()
    scratch.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == [*others, "tidemill.lock"]


@pytest.mark.parametrize("name", ["store-1", "sort-1-2.tmp"])
def test_a_directory_with_somebody_else_s_stores_is_refused(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(StoreError, match=f"{name} isn't tidemill's, .*: name an empty directory"):
        Scratch(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_second_holder_in_this_process_is_refused(tmp_path):
    first = Scratch(tmp_path)
    with pytest.raises(StoreError, match="is in use by pid"):
        Scratch(tmp_path)
    first.close()
    Scratch(tmp_path).close()


def test_a_second_process_is_told_the_directory_and_who_holds_it(tmp_path):
    script = (
        "import sys, pathlib; from tidemill.store.scratch import Scratch; "
        "Scratch(pathlib.Path(sys.argv[1])); print(); input()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdin is not None
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(StoreError) as raised:
            Scratch(tmp_path)
        assert str(tmp_path) in str(raised.value)
        assert f"pid {holder.pid};" in str(raised.value)
        holder.kill()
    Scratch(tmp_path).close()


def test_a_directory_that_cannot_be_made_is_a_store_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match=r"scratch directory .*file/inside"):
        Scratch(tmp_path / "file" / "inside")
