"""Connections without options for TLS share a context; others have their own."""

from tidemill.dialects.mysql.client import Connection


def context_of(**options):
    return Connection(defer_connect=True, **options).ctx


def test_connections_share_a_context_unless_they_have_options():
    first = context_of()
    assert first is not None
    assert context_of() is first
    assert context_of(ssl={"check_hostname": False}) is not first
    assert context_of() is first
