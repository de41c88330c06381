from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from struct import pack, unpack

import pytest
from msgspec.structs import replace

from tidemill.codec.mysql.column_defaults import NotComputable, default_for_existing_rows
from tidemill.events import Column

NOW = 1_700_000_000.123456  # 2023-11-14 22:13:20.123456
FLOAT = unpack("<f", pack("<f", 1.1))[0]


def column(kind, **options):
    return Column("c", kind, **options)


@pytest.mark.parametrize(
    ("column", "default", "value"),
    [
        (column("int"), "NULL", None),
        (column("int"), None, None),
        (column("int", nullable=False), None, 0),
        (column("int"), "-7", -7),
        (column("int"), "'12'", 12),
        (column("int"), "1.5", 2),
        (column("tinyint"), "TRUE", 1),
        (column("bigint", unsigned=True), "18446744073709551615", 2**64 - 1),
        (column("bit", length=5), "b'101'", 5),
        (column("bit", length=64), "0xFFFFFFFFFFFFFFFF", 2**64 - 1),
        (column("decimal", length=65, scale=30), "'1e-3'", Decimal("0.001").quantize(Decimal("1e-30"))),
        (column("decimal", length=5, scale=2), "1.005", Decimal("1.01")),
        (column("decimal", length=5, scale=2, nullable=False), None, Decimal(0)),
        (column("float"), "1.1", FLOAT),
        (column("double"), "1.1", 1.1),
        (column("double", nullable=False), None, 0.0),
        (column("varchar", length=9), r"'a''b\'c\\d\ne'", "a'b'c\\d\ne"),
        (column("varchar", length=9), "_utf8mb4'ä'", "ä"),
        (column("varchar", length=9), "12", "12"),
        (column("varchar", length=9, charset="utf8mb4"), "x'c3a4'", "ä"),
        (column("varchar", length=9, charset="utf16"), "0x00e4", "ä"),
        (column("varchar", length=9), "'NULL'", "NULL"),
        (column("char", length=9), "'a  '", "a"),
        (column("char", length=9, nullable=False), None, ""),
        (column("binary", length=3), "'a'", b"a\0\0"),
        (column("binary", length=3, nullable=False), None, b"\0\0\0"),
        (column("varbinary", length=3), "x'00ff'", b"\0\xff"),
        (column("varbinary", length=3, nullable=False), None, b""),
        (column("date"), "'2024-02-29'", date(2024, 2, 29)),
        (column("date"), "'0000-00-00'", "0000-00-00"),
        (column("date"), "'2024-2-9 10:00:00'", date(2024, 2, 9)),
        (column("date"), "curdate()", date(2023, 11, 14)),
        (column("date", nullable=False), None, "0000-00-00"),
        (column("datetime", scale=3), "'2024-01-02'", datetime.fromisoformat("2024-01-02")),
        (
            column("datetime", scale=3),
            "'2024-01-02 03:04:05.6789'",
            datetime.fromisoformat("2024-01-02 03:04:05.678"),
        ),
        (column("datetime", scale=3), "'0000-00-00'", "0000-00-00 00:00:00.000"),
        (column("datetime"), "'2024-00-10 01:02:03'", "2024-00-10 01:02:03"),
        (column("datetime", scale=6), "now(6)", datetime.fromisoformat("2023-11-14 22:13:20.123456")),
        (column("datetime", nullable=False, scale=3), None, "0000-00-00 00:00:00.000"),
        (column("timestamp"), "CURRENT_TIMESTAMP", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (column("timestamp"), "'2024-01-02 03:04:05'", datetime(2024, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (column("time", scale=1), "'-838:59:59.9'", -timedelta(hours=838, minutes=59, seconds=59.9)),
        (column("time"), "'7:30'", timedelta(hours=7, minutes=30)),
        (column("time"), "current_timestamp()", timedelta(hours=22, minutes=13, seconds=20)),
        (column("time", nullable=False), None, timedelta()),
        (column("year"), "'2024'", 2024),
        (column("year"), "69", 2069),
        (column("year"), "now()", 2023),
        (column("year", nullable=False), None, 0),
        (column("enum", members=("Red", "it's")), "'red'", "Red"),
        (column("enum", members=("Red", "it's"), nullable=False), None, "Red"),
        (column("set", members=("a", "b", "c")), "'c,A'", "a,c"),
        (column("set", members=("a", "b"), nullable=False), None, ""),
        (column("text", length=2, nullable=False), None, ""),
        (column("json"), "'{}'", "{}"),
    ],
)
def test_existing_rows_get_what_the_source_gives_them(column, default, value):
    column = Column(
        **{name: getattr(column, name) for name in column.__struct_fields__} | {"default": default}
    )
    found = default_for_existing_rows(column, NOW)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("column", "default", "value"),
    [
        (column("datetime", scale=3), "now()", datetime.fromisoformat("2023-11-15 03:43:20.123")),
        (column("date"), "now(3)", date(2023, 11, 15)),
        (column("date"), "curdate()", date(2023, 11, 15)),
        (column("time", scale=2), "now()", timedelta(hours=3, minutes=43, seconds=20)),
        (column("time", scale=2), "now(1)", timedelta(hours=3, minutes=43, seconds=20.1)),
        (column("timestamp"), "now()", datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)),
        (column("timestamp"), "current_date", datetime(2023, 11, 14, 18, 30, tzinfo=UTC)),
        (column("timestamp"), "'2020-01-01'", datetime(2019, 12, 31, 18, 30, tzinfo=UTC)),
        (column("timestamp"), "0", "0000-00-00 00:00:00"),
        (column("datetime"), "'2020-01-01'", datetime.fromisoformat("2020-01-01")),
    ],
)
def test_existing_rows_get_the_time_of_the_session_s_clock(column, default, value):
    column = replace(column, default=default)
    found = default_for_existing_rows(column, NOW, 19_800)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("column", "default"),
    [
        (column("int"), "(rand() * 10)"),
        (column("int"), "x'31'"),
        (column("int"), "2.5e0"),
        (column("varchar", length=9), "1e3"),
        (column("varchar", length=9), "x'41'"),
        (column("varchar", length=9), "now()"),
        (column("enum", members=("a", "A")), "x'61'"),
        (column("enum", members=("b", "B")), "'c'"),
        (column("year"), "1.5"),
        (column("date"), "101"),
        (column("date"), "'2024/01/02'"),
        (column("date"), "'000000'"),
        (column("time"), "'1 10:00:00'"),
        (column("time"), "'00:99:00'"),
        (column("time"), "12345678"),
        (column("timestamp"), "'2024-02-31'"),
        (column("varchar", length=36), "uuid()"),
        (column("int"), "'x'"),
        (column("date"), "'tomorrow'"),
        (column("enum", members=("a",)), "'b'"),
        (column("int"), "now()"),
        (column("varchar", length=3), "x'ff'"),
    ],
)
def test_what_only_the_source_can_compute_is_refused(column, default):
    column = Column("c", column.kind, length=column.length, members=column.members, default=default)
    with pytest.raises(
        NotComputable, match=r"column c: what DEFAULT .* put into the existing rows can't be computed"
    ):
        default_for_existing_rows(column, NOW)
