"""The statements of both vendors' grammars on tables, databases, sequences and views, followed into a server
of the same kind: definitions are compared by information_schema, whole, and rows.

The cases are in statement_corpus.txt. A title says if only one of the servers, or one version, has its
statements; {t} is the name of the case's own table, which it may create itself. What was followed live is
then loaded, too, by a feed of its own. What may differ stands in testing/information_schema.py.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import pytest

from tidemill.testing.cases import Case, expect_all, load
from tidemill.testing.mariadb import MariaDb
from tidemill.testing.mariadb118 import MariaDb118
from tidemill.testing.mysql import MySql
from tidemill.testing.private_server import PrivateServer
from tidemill.testing.statement_corpus import StatementCorpus

FILE = Path(__file__).with_name("statement_corpus.txt")


HALVES = pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.soak)])
"""The two MariaDB share the statements that both have; the soak gives each all of its own."""


def play(
    kind: str,
    source: PrivateServer,
    target: PrivateServer,
    names: Collection[str],
    directory: Path,
    shared: slice = slice(None),
) -> list[tuple[str, str]]:
    """Return all cases with their outcomes. Those are run whose title names no server, or one of `names`;
    of those that this version doesn't have alone, the ones of `shared`."""
    every = load(FILE)
    of_others = [case for case in every if not servers_of(case) or "MariaDB" in servers_of(case)]
    left_out = {case.number for case in of_others} - {case.number for case in of_others[shared]}
    cases = [
        case
        for case in every
        if (servers_of(case).intersection(names) or not servers_of(case)) and case.number not in left_out
    ]
    corpus = StatementCorpus(source, target, cases, directory)
    try:
        corpus.begin()
        for case in cases:
            corpus.execute(case)
        corpus.follow()
        corpus.load()
        found = corpus.outcomes()
    finally:
        corpus.drop()
    return [(case.given, _joined(case.wanted, found.get(case.number), kind)) for case in every]


def _joined(wanted: str, found: str | None, kind: str) -> str:
    """Return the outcome on one server beside those on others: a first line for all, with lines for those of
    which another is known, as "mysql: loaded again"."""
    first, *others = wanted.split("\n")
    own = next((line for line in others if line.startswith(f"{kind}: ")), f"{kind}: {first}")
    return wanted if found is None or own == f"{kind}: {found}" else f"{wanted}\n{kind}: {found}"


def servers_of(case: Case) -> set[str]:
    _, _, names = case.title.rstrip(")").partition(" (")
    return set(filter(None, names.split(", ")))


@pytest.mark.long
@HALVES
def test_statements_of_a_mariadb(
    mariadb: MariaDb, private_mariadb: MariaDb, tmp_path: Path, rewrite: bool, is_whole: bool
) -> None:
    shared = slice(None) if is_whole or rewrite else slice(0, None, 2)
    found = play("mariadb", mariadb, private_mariadb.start(), ["MariaDB", "MariaDB 10.11"], tmp_path, shared)
    expect_all(FILE, found, rewrite)


@pytest.mark.long
@HALVES
def test_statements_of_a_mariadb_11_8(
    mariadb118: MariaDb118, tmp_path: Path, rewrite: bool, is_whole: bool
) -> None:
    shared = slice(None) if is_whole or rewrite else slice(1, None, 2)
    target = MariaDb118(tmp_path / "target", template=mariadb118.template)
    target.start()
    try:
        found = play("mariadb118", mariadb118, target, ["MariaDB", "MariaDB 11.8"], tmp_path, shared)
    finally:
        target.stop()
    expect_all(FILE, found, rewrite)


@pytest.mark.long
def test_statements_of_a_mysql(mysql97: MySql, private_mysql: MySql, tmp_path: Path, rewrite: bool) -> None:
    found = play("mysql", mysql97, private_mysql.start(), ["MySQL"], tmp_path)
    expect_all(FILE, found, rewrite)
