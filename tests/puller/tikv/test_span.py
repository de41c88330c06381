"""Spans of encoded keys, held against keys that a real TiDB wrote."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tidemill.codec.tidb.key import encode_bytes, record_key, table_prefix
from tidemill.puller.tikv.span import (
    JOB_TABLE_ID,
    UPPER_BOUND,
    Span,
    ddl_spans,
    intersect,
    table_span,
)

VECTORS = Path(__file__).parents[2] / "vectors"


def lines(name):
    with gzip.open(VECTORS / f"{name}.jsonl.gz", "rt") as file:
        yield from map(json.loads, file)


def test_a_tables_span_has_its_rows_and_not_its_indexes():
    span = table_span(45)
    assert span.start == bytes.fromhex("7480000000000000ff2d5f720000000000fa")
    assert span.end == bytes.fromhex("7480000000000000ff2d5f730000000000fa")
    for raw in (
        record_key(45, -(2**63)),
        record_key(45, 0),
        record_key(45, 2**63 - 1),
        record_key(45, b"clustered"),
    ):
        assert span.contains(encode_bytes(raw))
    index = table_prefix(45) + b"_i" + bytes(8)
    for raw in (index, record_key(44, 2**63 - 1), record_key(46, -(2**63)), table_prefix(45)):
        assert not span.contains(encode_bytes(raw))


def test_all_rows_that_a_tidb_committed_are_in_their_tables_spans():
    entries = [entry for line in lines("commits-v8.1.0") for entry in line.get("entries", ())]
    assert entries
    for entry in entries:
        span = table_span(entry["physical_id"])
        assert span.contains(encode_bytes(bytes.fromhex(entry["key_hex"])))


@pytest.mark.parametrize(("version", "where"), [("v6.1.0", (0, 1)), ("v8.1.0", (2,))])
def test_the_ddl_spans_have_every_job_that_a_tidb_put(version, where):
    """Before 6.2 in two lists, since then in a table."""
    spans = ddl_spans()
    assert len(spans) == 3
    found = set()
    jobs = 0
    for line in lines(f"ddl_events-{version}"):
        for entry in line.get("entries", ()):
            raw = bytes.fromhex(entry["key_hex"])
            inside = [at for at, span in enumerate(spans) if span.contains(encode_bytes(raw))]
            job = is_job(raw)
            assert bool(inside) == job, entry
            found.update(inside)
            jobs += job
    assert jobs
    assert found == set(where)


def is_job(raw: bytes) -> bool:
    """An item, flag 'l', of one of the two lists; or a row of the job table."""
    for name in (b"DDLJobList", b"DDLJobAddIdxList"):
        prefix = b"m" + encode_bytes(name) + bytes(7) + b"l"
        if raw.startswith(prefix):
            return True
    return raw.startswith(table_prefix(JOB_TABLE_ID) + b"_r")


def test_the_upper_bound_is_behind_all_keys():
    assert Span(b"", UPPER_BOUND).contains(encode_bytes(record_key(2**63 - 1, 2**63 - 1)))


@pytest.mark.parametrize(
    ("a", "b", "shared"),
    [
        ("a-d", "b-c", "b-c"),
        ("a-c", "b-d", "b-c"),
        ("a-b", "b-c", None),
        ("a-b", "c-d", None),
        ("a-b", "a-b", "a-b"),
    ],
)
def test_what_two_spans_share(a, b, shared):
    def span(text):
        return text and Span(*(part.encode() for part in text.split("-")))

    assert intersect(span(a), span(b)) == intersect(span(b), span(a)) == span(shared)
    assert span(a).covers(span(b)) == (shared == b)
