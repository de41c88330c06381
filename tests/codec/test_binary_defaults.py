"""Constant defaults in SHOW CREATE TABLE."""

from __future__ import annotations

import pytest

from tidemill.codec.mysql.binary_defaults import constant_defaults
from tidemill.codec.mysql.tokens import NotUnderstood


def defaults(*columns: str, rest: str = "") -> dict[str, bytes]:
    return constant_defaults(f"CREATE TABLE `t` (\n  {', '.join(columns)}{rest}\n) ENGINE=InnoDB")


def test_strings_have_their_bytes_and_numbers_their_digits() -> None:
    assert defaults(
        "`id` int(11) NOT NULL",
        r"`a` binary(6) NOT NULL DEFAULT '.\0''\\\n\r'",
        "`b` varbinary(9) DEFAULT '\udc80?'",
        "`c` varbinary(9) DEFAULT 0x00FF",
        "`d` varchar(9) DEFAULT 'a,b)' COMMENT 'DEFAULT \\'x\\''",
    ) == {"a": b".\0'\\\n\r", "b": b"\x80?", "c": b"\x00\xff", "d": b"a,b)"}


def test_other_defaults_and_what_follows_the_columns_are_left_out() -> None:
    found = defaults(
        "`DEFAULT` int DEFAULT 5",
        "`at` timestamp NOT NULL DEFAULT current_timestamp() ON UPDATE current_timestamp()",
        "`e` varbinary(9) DEFAULT (concat('a', 'b'))",
        "`n` varbinary(9) DEFAULT NULL",
        "`last` varbinary(9) DEFAULT 'z'",
        rest=", PRIMARY KEY (`n`), CONSTRAINT `c` CHECK (`e` <> 'DEFAULT')",
    )
    assert found == {"last": b"z"}


def test_another_statement_is_not_understood() -> None:
    with pytest.raises(NotUnderstood):
        constant_defaults("CREATE VIEW v AS SELECT 1")
