"""The words of statements."""

from __future__ import annotations

import pytest

from tidemill.codec.mysql.tokens import NotUnderstood, Tokens


def words(statement: str, *, of_mysql: bool) -> list[str]:
    tokens, found = Tokens(statement, of_mysql=of_mysql), []
    while (token := tokens.take()).kind != "end":
        found.append(token.value)
    return found


@pytest.mark.parametrize(("of_mysql", "wanted"), [(False, ["A", "B", "C", "x"]), (True, ["A", "B", "x"])])
def test_what_is_for_mariadb_only_is_a_comment_in_mysql(of_mysql: bool, wanted: list[str]) -> None:
    assert words("a /*!40000 b */ /*M!100100 c */ /* d */ 'x'", of_mysql=of_mysql) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a */* x */ b", ["A", "*", "B"]),
        ("/*! a */ */ b", ["A", "*", "/", "B"]),
        ("a--\x01 b\nc --d", ["A", "C", "-", "-", "D"]),
        ("t★.ä1 $x 1a", ["T★", ".", "Ä1", "$X", "1A"]),
        ("1.5e3 .5 2. t1.2x 1e5x", ["1.5e3", ".5", "2.", "T1", ".", "2X", "1E5X"]),
        (r"'a''b\'c' '\\'", ["a'b'c", "\\"]),
        ("/*!123456x */", ["X"]),
    ],
)
def test_tokens_are_those_of_the_servers(text: str, wanted: list[str]) -> None:
    assert words(text, of_mysql=False) == wanted


@pytest.mark.parametrize("text", ["a 'b", 'a "b', "a `b", "a /* b", "a '\\'", "a '''", "a\xa0b"])
def test_what_is_not_closed_is_not_understood(text: str) -> None:
    with pytest.raises(NotUnderstood):
        words(text, of_mysql=False)


def test_a_step_back_into_an_executed_comment() -> None:
    tokens = Tokens("a /*! b */ c */* d */ e")
    tokens.take()
    start = tokens.next
    read = [tokens.take().value for _ in range(4)]
    assert read == ["B", "C", "*", "E"]
    assert [token.value for token in tokens.since(start)] == read
    tokens.step_back_to(start)
    assert [tokens.take().value for _ in range(4)] == read
    assert tokens.text_since(start) == "b */ c */* d */ e"
