"""Folded texts against the collations of real servers: texts that are equal there are never told apart."""

from __future__ import annotations

import string

import pytest

from tidemill.sink.sql.parallel.keys import fold_of

PRINTABLE = [chr(code) for code in range(32, 127)]


@pytest.fixture(params=["mariadb", "mysql97"])
def server(request):
    return request.getfixturevalue(request.param)


def test_printable_characters_that_a_known_collation_calls_equal_have_one_fold(server):
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(
            "SELECT collation_name FROM information_schema.collations WHERE collation_name LIKE 'utf8mb4%'"
        )
        known = [name for (name,) in cursor.fetchall() if name and fold_of(name)("a") is not None]
        assert len(known) > 5
        values = " UNION ALL ".join(f"SELECT 0x{ord(one):02x}" for one in PRINTABLE)
        text = "CONVERT({}.c USING utf8mb4) COLLATE {}"
        equal: list[tuple[str, str, str]] = []
        for name in known:
            one, two = (f"CONCAT('x', {text.format(side, name)}, 'x')" for side in "ab")
            chars = f"(SELECT 0x00 AS c UNION ALL {values})"
            cursor.execute(
                f"SELECT {text.format('a', name)}, {text.format('b', name)} FROM {chars} a JOIN {chars} b "
                f"ON a.c < b.c AND {one} = {two} WHERE a.c > 0x00"
            )
            equal += [(name, *pair) for pair in cursor.fetchall()]
    assert len(equal) >= 26 * 5
    assert [one for one in equal if fold_of(one[0])(one[1]) != fold_of(one[0])(one[2])] == []


def test_texts_that_may_equal_several_letters_are_not_folded():
    fold = fold_of("utf8mb4_general_ci")
    assert fold("Stra\u00dfe") is None
    assert fold("Code ") == fold("cODE") == "code"
    assert fold_of("utf8mb4_lithuanian_ci")(string.ascii_letters) is None
    assert fold_of("utf8mb4_bin")("Stra\u00dfe ") == "Stra\u00dfe"
