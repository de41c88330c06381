"""Changes of a column's type: all values stay the same, also as text, or they may not."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tidemill.codec.mysql.definition import parse_column
from tidemill.dialects.conversion import keeps_text, keeps_values
from tidemill.dialects.mysql.modes import converting
from tidemill.dialects.renames import Rename, in_order
from tidemill.events import Column

LATIN, UTF8, UTF8MB4 = ("CHARACTER SET " + name for name in ("latin1", "utf8mb3", "utf8mb4"))


@pytest.mark.parametrize(
    ("change", "keeps"),
    [
        ("INT -> BIGINT", "text"),
        ("INT -> INT NOT NULL DEFAULT 5", "text"),
        ("INT -> MEDIUMINT", ""),
        ("INT UNSIGNED -> BIGINT", "text"),
        ("INT UNSIGNED -> INT", ""),
        ("INT -> BIGINT UNSIGNED", ""),
        ("INT -> DECIMAL(20,0)", ""),
        ("INT -> VARCHAR(20)", ""),
        ("DECIMAL(5,2) -> DECIMAL(6,2)", "text"),
        ("DECIMAL(5,2) -> DECIMAL(6,3)", "values"),
        ("DECIMAL(5,2) -> DECIMAL(5,3)", ""),
        ("DECIMAL(5,2) UNSIGNED -> DECIMAL(5,2)", "text"),
        ("DECIMAL(5,2) -> DECIMAL(5,2) UNSIGNED", ""),
        ("FLOAT -> DOUBLE", ""),
        ("FLOAT -> FLOAT NOT NULL", "text"),
        ("BIT(5) -> BIT(64)", "text"),
        ("BIT(5) -> BIT(4)", ""),
        ("DATETIME -> DATETIME(3)", "values"),
        ("TIME(3) -> TIME", ""),
        ("TIMESTAMP -> DATETIME", ""),
        ("DATE -> DATETIME", ""),
        ("YEAR -> YEAR NOT NULL", "text"),
        ("BINARY(3) -> BINARY(4)", ""),
        ("VARBINARY(3) -> VARBINARY(4)", "text"),
        ("VARBINARY(255) -> TINYBLOB", "text"),
        ("VARBINARY(256) -> TINYBLOB", ""),
        ("BLOB -> LONGBLOB", "text"),
        ("BLOB -> LONGTEXT", ""),
        ("VARCHAR(9) -> VARCHAR(10)", "text"),
        ("VARCHAR(9) -> VARCHAR(8)", ""),
        ("VARCHAR(63) -> TINYTEXT", "text"),
        ("VARCHAR(64) -> TINYTEXT", ""),
        ("CHAR(3) -> CHAR(4)", "text"),
        ("CHAR(3) -> VARCHAR(4)", ""),
        (f"VARCHAR(9) {LATIN} -> VARCHAR(9) {UTF8MB4}", "text"),
        (f"VARCHAR(9) {UTF8MB4} -> VARCHAR(9) {UTF8}", ""),
        (f"VARCHAR(9) {UTF8} -> VARCHAR(9) {LATIN}", ""),
        (f"VARCHAR(9) {LATIN} -> VARCHAR(9) {UTF8}", "text"),
        (f"VARCHAR(9) {LATIN} -> VARCHAR(9)", ""),
        (f"TEXT {LATIN} -> TEXT {UTF8MB4}", ""),
        ("VARCHAR(9) CHARACTER SET sjis -> VARCHAR(9) CHARACTER SET utf8mb4", ""),
        ("ENUM('a') -> ENUM('a','b')", "text"),
        ("ENUM('a') -> ENUM('b','a')", ""),
        ("ENUM('a') -> ENUM('a','')", ""),
        ("SET('a') -> SET('a','b')", "text"),
        ("SET('a','b') -> SET('a')", ""),
        ("JSON -> JSON NOT NULL", "text"),
        ("JSON -> LONGTEXT", ""),
    ],
)
def test_a_conversion(change: str, keeps: str) -> None:
    before, after = (parse_column("c", definition) for definition in change.split(" -> "))
    assert keeps_values(before, after) == (keeps != "")
    assert keeps_text(before, after) == (keeps == "text")


def test_modes_are_those_that_decide_about_conversions() -> None:
    traditional = sum(1 << bit for bit in (2, 20, 21, 24, 34, 40))
    assert converting(traditional) == (
        "NO_AUTO_VALUE_ON_ZERO,STRICT_TRANS_TABLES,NO_ZERO_DATE,TIME_ROUND_FRACTIONAL"
    )
    assert converting(0) == "NO_AUTO_VALUE_ON_ZERO"


@pytest.mark.parametrize(
    ("pairs", "folds", "steps"),
    [
        ("a>b", True, "a>b"),
        ("a>a", True, ""),
        ("a>b c>d", True, "a>b c>d"),
        ("a>b b>a", True, "a>0 b>1 0>b 1>a"),
        ("b>c a>b", True, "b>0 a>1 0>c 1>b"),
        ("a>A", True, "a>0 0>A"),
        ("a>A", False, "a>A"),
        ("a>B b>A", True, "a>0 b>1 0>B 1>A"),
    ],
)
def test_renames_at_once_are_put_in_order(pairs: str, folds: bool, steps: str) -> None:
    renames = [
        Rename(*pair.split(">"), str(number))  # type: ignore[call-arg]
        for number, pair in enumerate(pairs.split())
    ]
    assert " ".join(f"{old}>{new}" for old, new in in_order(renames, folds=folds)) == steps


def test_utf8_is_tidbs_name_of_utf8mb3():
    before = Column("c", "varchar", length=9, charset="utf8")
    assert keeps_text(before, replace(before, charset="utf8mb4"))
    assert not keeps_values(replace(before, charset="utf8mb4"), before)
