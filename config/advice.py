"""Remedies for errors of servers, disks and networks, by the text of the error.

Errors of this package name their remedy themselves. Those of servers and drivers don't, and reach a feed as
text, often over a child process or a status file: so the text is what is looked at.
"""

from __future__ import annotations

import re
from typing import Final

from ..errors import Retryable, TidemillError

_ADVICE: Final[tuple[tuple[str, str], ...]] = (
    (
        r"no space left|disk is full|disk full|got error 28|errcode: 28|table '.*' is full|disk quota",
        "free space on that disk, or enlarge it",
    ),
    (
        r"read-only|read_only|readonly|super_read_only",
        "make the server or the file writable, or name another",
    ),
    (
        r"name or service not known|name resolution|nodename nor servname|could not translate host|"
        r"getaddrinfo|no address associated|failed to resolve|couldn't resolve|dns",
        "correct the host name, or the DNS of this machine",
    ),
    (
        r"certificate|\bssl\b|\btls\b",
        "check the TLS options of the URL, and that the server has TLS and a valid certificate",
    ),
    (
        r"access denied for user .*using password|password authentication failed|authentication fail|"
        r"sasl|login failed|check user and password",
        "put the present user and password into the feed's URL",
    ),
    (
        r"command denied|access denied|permission denied|not authorized|authorization failed|forbidden|"
        r"accessdenied|access_denied|\b403\b|may not",
        "grant the feed's user the right that it names",
    ),
    (
        r"too many connections|max_user_connections|remaining connection slots|too many clients",
        "raise the server's maximum number of connections, or close some",
    ),
    (
        r"deadlock",
        "find what else writes to these tables in the target, and stop it or let it take its locks later",
    ),
    (
        r"database (table |schema )?is locked",
        "find the process that has the file open for writing (fuser FILE), and end its transaction",
    ),
    (
        r"canceling statement due to lock",
        "find who holds the lock (pg_stat_activity, pg_locks), and end that transaction",
    ),
    (
        r"lock wait timeout|lock timeout",
        "find who holds the lock (SHOW PROCESSLIST, information_schema.innodb_trx), and end that transaction",
    ),
    (
        r"message size|message too large|msg_size_too_large|record too large",
        "raise the broker's and the topic's max.message.bytes, and message.max.bytes of the sink",
    ),
    (r"nosuchbucket|no such bucket|bucket does not exist", "create the bucket, or correct its name"),
    (
        r"doesn't exist|does not exist|no such table|unknown table|undefined table",
        "create it as the source has it, or load it again (tidemill resume FEED --resnapshot TABLE)",
    ),
    (
        r"data too long|value too long|out of range|string data, right truncat",
        "widen the column in the target, then start again",
    ),
    (
        r"duplicate (entry|key)|unique constraint|already exists|duplicate key value",
        "remove the row that is in the way from the target, or set safe_mode, and start again",
    ),
    (
        r"connection refused|can't connect|timed out|timeout|unreachable|lost connection|gone away|"
        r"closed the connection|the connection is closed|server ended|silent for|broken pipe|reset by peer|"
        r"unavailable|transport failure|brokers are down|no answer|didn't answer|connection was killed|eof",
        "see if the server runs, and if this machine reaches it",
    ),
)
_KNOWN: Final = [(re.compile(pattern), advice) for pattern, advice in _ADVICE]


def advice(error: str) -> str:
    """Return what to do about an error; empty if it isn't known."""
    text = error.lower()
    return next((remedy for pattern, remedy in _KNOWN if pattern.search(text)), "")


def explained(error: Exception) -> str:
    """Return an error's text, with advice if it is that of a server or a driver: a Retryable, or none of this
    package's errors."""
    text = str(error.args[-1] if error.args else error)
    remedy = "" if isinstance(error, TidemillError) and not isinstance(error, Retryable) else advice(text)
    return f"{text}: {remedy}" if remedy else text
