"""A stop that comes before, while and after a session is connected."""

from __future__ import annotations

import socket
from types import SimpleNamespace

import pytest

from tidemill.puller.mysql.stop_signal import StopSignal


@pytest.fixture
def session():
    """A session, and the server's end of its connection."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(60)
        yield SimpleNamespace(_sock=ours), theirs


def is_cut(theirs):
    return theirs.recv(1) == b""


def test_the_watched_session_is_cut(session):
    signal = StopSignal()
    signal.watch(session[0])
    signal.set()
    assert is_cut(session[1])


def test_a_session_is_cut_at_once_after_the_stop(session):
    signal = StopSignal()
    signal.set()
    signal.watch(session[0])
    assert is_cut(session[1])


def test_a_session_that_is_closed_already_is_left_alone(session):
    signal = StopSignal()
    signal.watch(session[0])
    session[0]._sock.close()
    signal.set()
    session[0]._sock = None
    signal.set()
    assert is_cut(session[1])
