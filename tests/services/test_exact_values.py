"""Values that are easily changed on the way: from MariaDB to MariaDB, by the snapshot and by the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidemill.testing.feeds import CopiedTable
from tidemill.testing.mariadb import MariaDb

MEMBERS = ", ".join(f"'m{number}'" for number in range(300))
COLUMNS = {
    "day": ("DATE", ["'0000-00-00'", "'2024-00-00'", "'2024-02-31'", "'9999-12-31'"]),
    "span": ("TIME(6)", ["'-00:00:00.000001'", "'-838:59:59.999999'", "'-0:0:1.5'", "'00:00:00'"]),
    "span1": ("TIME(1)", ["'-00:00:00.1'", "'-00:59:59.9'"]),
    "born": ("YEAR", ["0", "1901", "2155"]),
    "zeros": ("BINARY(5)", ["'a'", "x'6100000000'", "''", "x'0000000001'"]),
    "wide": ("BIGINT UNSIGNED", ["9223372036854775807", "9223372036854775808", "18446744073709551615"]),
    "price": ("DECIMAL(65,30)", [f"{'9' * 35}.{'9' * 30}", f"-{'1' * 35}.{'0' * 29}1", "0"]),
    "bits": ("BIT(64)", ["0", "1", "9223372036854775808", "18446744073709551615"]),
    "many": (f"ENUM({MEMBERS})", ["'m0'", "'m254'", "'m255'", "'m256'", "'m299'"]),
    "single": ("FLOAT", ["0.1", "1e-45", "3.4028235e38", "16777217", "-0.0"]),
    "twice": ("DOUBLE", ["0.1", "5e-324", "1.7976931348623157e308", "0.30000000000000004"]),
    "doc": ("JSON", ["'9007199254740993'", '\'{"a": 1.0, "a": 12345678901234567890}\'', "'[1e400]'"]),
    "gbk": ("VARCHAR(9) CHARACTER SET gbk", ["'中文'", "'é'", "'a '"]),
    "sjis": ("VARCHAR(9) CHARACTER SET sjis", ["'日本'", "'ｱ'", "'表'"]),
    "ucs2": ("VARCHAR(9) CHARACTER SET ucs2", ["'é中'", "''"]),
    "latin": ("VARCHAR(9) CHARACTER SET latin1", ["'é€ÿ'", "'trailing '"]),
    "padded": ("CHAR(9) CHARACTER SET utf8mb4", ["'😀'", "'a  '"]),
}
FILLERS = [f"filler_{number}" for number in range(60)]


@pytest.fixture
def place(mariadb: MariaDb, database: str, tmp_path: Path) -> CopiedTable:
    place = CopiedTable(tmp_path, mariadb, database)
    place.copy_server, place.copy_schema = mariadb, f"{database}_copy"
    place.configure(sinks=[mariadb.url(place.copy_schema)])
    return place


def stored(place: CopiedTable, schema: str) -> list[tuple[object, ...]]:
    """The bytes of every value, and its text where HEX would round it."""
    parts = [f"HEX({name}), CAST({name} AS CHAR)" for name in COLUMNS]
    return place.execute(f"SELECT id, {', '.join([*parts, *FILLERS])} FROM {schema}.item ORDER BY id")


def test_values_are_the_same_to_the_byte(place: CopiedTable) -> None:
    columns = [f"{name} {kind}" for name, (kind, _) in COLUMNS.items()] + [
        f"{one} TINYINT" for one in FILLERS
    ]
    rows = []
    for number in range(5):
        values = [values[number % len(values)] for _, values in COLUMNS.values()]
        fillers = ["NULL" if (column * 7 + number) % 3 else str(column) for column in range(len(FILLERS))]
        rows.append(", ".join([*values, *fillers]))
    place.execute(
        f"USE {place.schema}",
        "SET sql_mode = '', SESSION check_constraint_checks = 1",
        "DROP TABLE item",
        f"CREATE TABLE item (id INT PRIMARY KEY, {', '.join(columns)}) CHARACTER SET utf8mb4",
        *[f"INSERT INTO item VALUES ({number}, {row})" for number, row in enumerate(rows)],
        "INSERT INTO item (id) VALUES (100)",
    )
    try:
        assert place.run().status == 0
        assert stored(place, place.copy_schema) == stored(place, place.schema)
        place.execute(
            f"USE {place.schema}",
            "SET sql_mode = ''",
            *[f"INSERT INTO item VALUES ({number}, {row})" for number, row in enumerate(rows, 10)],
            *[f"REPLACE INTO item VALUES ({number}, {rows[number - 1]})" for number in range(1, 5)],
            "UPDATE item SET filler_1 = 1",
            "DELETE FROM item WHERE id = 0",
        )
        assert place.run().status == 0
        assert stored(place, place.copy_schema) == stored(place, place.schema)
    finally:
        place.execute(f"DROP DATABASE {place.copy_schema}")
