"""Progress of a verification, kept over the end of its process."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest

from tidemill.compare.chunks import KeyMark
from tidemill.compare.finding import Difference
from tidemill.compare.verified import Verified, VerifiedFile
from tidemill.events import Column, Table

ITEM = Table("shop", "item", (Column("id", "int", nullable=False), Column("v", "varchar", length=9)), (0,))


@pytest.fixture
def reloaded(tmp_path):
    """Return what a new process finds."""
    file = VerifiedFile(tmp_path / "verify.json")

    def reload(verified):
        file.save(verified)
        return file.load()

    return reload


def difference(number, kind="missing"):
    return Difference("shop.item", kind, {"id": number}, {"id": number, "v": "x"})


@pytest.mark.parametrize(
    "value",
    [
        -7,
        1 << 63,
        1.5,
        "ключ",
        b"\xff\x00",
        Decimal("1.20"),
        date(2026, 11, 28),
        datetime(2026, 11, 28, 1, 2, 3, 4),  # noqa: DTZ001 # wall-clock time, as DATETIME is
        -timedelta(hours=838, microseconds=1),
        None,
    ],
    ids=repr,
)
def test_a_key_of_any_kind_is_kept_with_its_type(reloaded, value):
    verified = Verified()
    verified.mark(ITEM)
    mark = KeyMark((value, 1), (value, "1"))
    verified.reach(mark)
    found = reloaded(verified).mark(ITEM)
    assert found == mark
    assert type(found.source[0]) is type(value)


def test_differences_after_the_last_key_are_counted_once(reloaded):
    verified = Verified()
    verified.begin(1.0)
    verified.mark(ITEM)
    verified.rows = 10
    verified.differ("shop.item", "", [difference(1)], 2.0)
    verified.reach(KeyMark((10,), (10,)))
    verified.rows = 20
    verified.differ("shop.item", "", [difference(11), difference(12, "extra")], 3.0)
    killed = reloaded(verified)
    assert killed.current()["shop.item"].differences == 3
    assert killed.mark(ITEM) == KeyMark((10,), (10,))
    assert killed.rows == 10
    assert killed.current()["shop.item"].differences == 1
    killed.differ("shop.item", "", [difference(11), difference(12, "extra")], 4.0)
    one = killed.current()["shop.item"]
    assert (one.missing, one.extra, one.first, one.last, one.found) == (2, 1, "id=1", "id=12", 2.0)


def test_a_table_with_another_key_begins_anew(reloaded):
    verified = Verified()
    verified.mark(ITEM)
    verified.reach(KeyMark((10,), (10,)))
    other = Table("shop", "item", (Column("id", "bigint", nullable=False), ITEM.columns[1]), (0,))
    assert reloaded(verified).mark(other) is None


def test_a_divergence_lasts_until_its_table_is_compared_again_without_one(reloaded):
    verified = Verified()
    verified.begin(1.0)
    verified.mark(ITEM)
    verified.differ("shop.item", "", [difference(1)], 2.0)
    verified.finish_table("shop.item")
    verified.end(3.0, {"shop.item"})
    verified = reloaded(verified)
    verified.begin(4.0)
    verified.mark(ITEM)
    assert "shop.item" in verified.current()
    verified.finish_table("shop.item")
    assert verified.current() == {}


def test_a_divergence_of_a_table_that_is_gone_ends_with_the_pass():
    verified = Verified()
    verified.begin(1.0)
    verified.differ("shop.gone", "the target has no such table", [], 2.0)
    verified.finish_table("shop.gone")
    verified.end(3.0, {"shop.gone"})
    assert set(verified.divergences) == {"shop.gone"}
    verified.begin(4.0)
    verified.end(5.0, {"shop.item"})
    assert verified.divergences == {}
    assert (verified.passes, verified.whole_began, verified.whole_ended) == (2, 4.0, 5.0)


def test_a_damaged_file_begins_anew_and_is_named(tmp_path, caplog):
    path = tmp_path / "verify.json"
    path.write_text("{")
    assert VerifiedFile(path).load() == Verified()
    assert str(path) in caplog.text
