"""Effects of statements, by their first words."""

from __future__ import annotations

import pytest

from tidemill.codec.mysql.effect import read_effect
from tidemill.codec.mysql.tokens import NotUnderstood, Tokens

COMMENTS = (
    "--\n", "--\r\n", "--\t\n", "--\x01\n", "--\x7f x\n", "-- x\n", "--\n-- Table structure\n--\n",
    "#\n", "#x\n", "/**/", "/***/", "/*/*/", "/* a /* b */", "/* a\0 */", "/*+ x */",
    "/*!*/", "/*! */", "/*! /* x */ */", "/*! -- x */\n */", "/*! # x */\n */", "/*!50003 */", "/*!050003 */",
    "/*M 999999 x */", "/* 99999 x (* y *) z */", "/*!50003", "/*!100100 ", " \t\v\f\r\n",
)  # fmt: skip
"""Comments and spaces that both servers skip before a word."""
OF_MARIADB = ("/*M!*/", "/*M!100100 */", "/*M! /* x */ */", "/*M!100100")
OF_MYSQL = ("/*M!999999 x */", "/*M! DROP */", "/*M! /* x */")
STATEMENTS = {
    "TRUNCATE t": "definitions",
    "CREATE TABLE t (a INT)": "definitions",
    "CREATE OR REPLACE UNIQUE INDEX x ON t (a)": "definitions",
    "CREATE VECTOR INDEX x ON t (a)": "definitions",
    "ALTER ONLINE TABLE t ADD a INT": "definitions",
    "ALTER SCHEMA CHARACTER SET latin1": "definitions",
    "DROP TABLES t, u": "definitions",
    "RENAME TABLE t TO u": "definitions",
    "SET STATEMENT a = 1, b = SUBSTRING('x' FROM 1 FOR 2) FOR DROP INDEX x ON t": "definitions",
    "SET STATEMENT a = 1 FOR SET STATEMENT b = 'FOR' FOR DROP DATABASE d": "definitions",
    "INSERT INTO t VALUES (1)": "rows",
    "(SELECT 1)": "rows",
    "((WITH c AS (SELECT 1) SELECT f()))": "rows",
    "ANALYZE FORMAT=JSON UPDATE t SET a = 1": "rows",
    "ANALYZE DELETE FROM t": "rows",
    "TABLE t": "rows",
    "DO f()": "rows",
    "": "nothing",
    "ANALYZE LOCAL TABLE t": "nothing",
    "OPTIMIZE NO_WRITE_TO_BINLOG TABLE t": "nothing",
    "CREATE DEFINER=`root`@`localhost` TRIGGER x": "nothing",
    "CREATE OR REPLACE ALGORITHM=MERGE VIEW v AS SELECT 1": "nothing",
    "CREATE SPATIAL REFERENCE SYSTEM 1 NAME 'x'": "nothing",
    "CREATE TEMPORARY TABLE t (a INT)": "nothing",
    "DROP TEMPORARY TABLE t": "nothing",
    "RENAME USER a TO b": "nothing",
    "SET PASSWORD FOR x = 'y'": "nothing",
    "GRANT ALL ON *.* TO x": "nothing",
}
UNKNOWN = (
    "FROBNICATE t", "CREATE FROBNICATOR t", "ALTER", "ANALYZED UPDATE", "CHECK t", "`DROP` TABLE t", "'DROP'",
    "SET @a = f()", "SET STATEMENT a = 1 TRUNCATE t", "RENAME COLUMN", "DROP 'TABLE'", "; DROP TABLE t",
    "-DROP", "--DROP TABLE t", "/* TRUNCATE t", "ROLLBACK /* x */", "\xa0TRUNCATE t", "\u2003TRUNCATE t",
    "\uff24ROP TABLE t",
    "*/ TRUNCATE t", "/*!1 */TRUNCATE t", "/*!0500030 */TRUNCATE t", "\0TRUNCATE t", "\x1cTRUNCATE t",
)  # fmt: skip


def effect(statement: str, *, of_mysql: bool = False) -> str:
    try:
        return read_effect(Tokens(statement, of_mysql=of_mysql))
    except NotUnderstood:
        return "unknown"


@pytest.mark.parametrize("of_mysql", [False, True])
@pytest.mark.parametrize("comment", ["", *COMMENTS])
def test_a_comment_does_not_hide_a_statement(comment: str, of_mysql: bool) -> None:
    texts = {f"{comment}{statement}": wanted for statement, wanted in STATEMENTS.items()}
    assert {text: effect(text, of_mysql=of_mysql) for text in texts} == texts


@pytest.mark.parametrize(("of_mysql", "comments"), [(False, OF_MARIADB), (True, OF_MYSQL)])
def test_a_comment_for_mariadb_only(of_mysql: bool, comments: tuple[str, ...]) -> None:
    found = {comment: effect(f"{comment}TRUNCATE t", of_mysql=of_mysql) for comment in comments}
    assert found == dict.fromkeys(comments, "definitions")


@pytest.mark.parametrize("statement", UNKNOWN)
def test_what_is_not_listed_is_not_understood(statement: str) -> None:
    assert effect(statement) == effect(statement, of_mysql=True) == "unknown"


def test_no_more_than_the_first_words_are_read() -> None:
    assert effect("CREATE PROCEDURE p() SELECT 'open") == "nothing"
    assert effect("CREATE TABLE t (a INT DEFAULT 'open") == "definitions"
