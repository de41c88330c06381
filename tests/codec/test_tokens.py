"""The words of statements."""

from __future__ import annotations

import pytest

from tidemill.codec.mysql.tokens import Tokens


def words(statement: str, *, of_mysql: bool) -> list[str]:
    tokens, found = Tokens(statement, of_mysql=of_mysql), []
    while (token := tokens.take()).kind != "end":
        found.append(token.value)
    return found


@pytest.mark.parametrize(("of_mysql", "wanted"), [(False, ["A", "B", "C", "x"]), (True, ["A", "B", "x"])])
def test_what_is_for_mariadb_only_is_a_comment_in_mysql(of_mysql: bool, wanted: list[str]) -> None:
    assert words("a /*!40000 b */ /*M!100100 c */ /* d */ 'x'", of_mysql=of_mysql) == wanted
