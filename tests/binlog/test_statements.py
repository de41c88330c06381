"""Statements of recorded logs, with the settings of their sessions."""

from __future__ import annotations

from tidemill.dialects.mysql.zone import ServerZone
from tidemill.puller.mysql.query import LoggedStatement

from .recorded import Recorded

QUERY = 2


def test_a_statement_of_mysql_has_the_settings_that_its_status_variables_say() -> None:
    events = [event for event in Recorded("mysql-9.7.4", "statements").events if event[4] == QUERY]
    queries = [LoggedStatement(event[19:-4]).as_query(1_000, ServerZone()) for event in events]
    tables = [query for query in queries if query.query.startswith("CREATE TABLE acc")]
    assert [query.explicit_timestamps for query in tables] == [True]
    triggers = [query for query in queries if "TRIGGER" in query.query and "CREATE" in query.query]
    assert triggers
    assert all(1_000 < query.epoch_seconds < 1_001 for query in triggers[:2])  # after invoker and databases
