"""Errors of pymysql as the puller's."""

from __future__ import annotations

import pymysql
import pytest

from tidemill.dialects.mysql.client import Unavailable, translated
from tidemill.errors import SourceError
from tidemill.puller.mysql.options import MysqlOptions

OPTIONS = MysqlOptions(host="127.0.0.1", port=1)


def test_a_statement_on_a_connection_that_was_cut_is_tried_again() -> None:
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:1: the connection is closed"), translated(OPTIONS):
        pymysql.connect(defer_connect=True).query("SELECT 1")


def test_an_unknown_error_is_final() -> None:
    with pytest.raises(SourceError, match=r"no such \(error 1\)"), translated(OPTIONS):
        raise pymysql.err.OperationalError(1, "no such")
