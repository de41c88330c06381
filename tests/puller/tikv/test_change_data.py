"""Messages of the change feed, read by either decoder."""

from __future__ import annotations

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from tidemill.codec.proto import cdcpb
from tidemill.codec.proto.change_data import read, rows_of, unpack

from .rows import change_data, row

pytestmark = pytest.mark.usefixtures("decoder")

text = st.one_of(st.just(b""), st.binary(max_size=3), st.binary(min_size=120, max_size=300))
numbers = st.one_of(st.just(0), st.integers(1, 9), st.integers(2**58, 2**64 - 1))
some_rows = st.lists(
    st.builds(
        cdcpb.Event.Row,
        type=st.sampled_from([1, 1, 2, 2, 3, 4, 4, 5, 9, 300]),
        op_type=st.integers(0, 2),
        start_ts=numbers,
        commit_ts=numbers,
        key=text,
        value=text,
        old_value=text,
        generation=st.sampled_from([0, 0, 0, 1]),
        txn_source=st.sampled_from([0, 3]),
    ),
    max_size=12,
)


def plain(rows):
    return [
        (r.type, r.op_type, r.start_ts, r.commit_ts, r.key, r.value, r.old_value, r.generation) for r in rows
    ]


@settings(max_examples=300, deadline=None)
@given(events=st.lists(some_rows, max_size=4))
def test_rows_are_as_sent_and_ordered_by_type_unless_the_scan_ends(events):
    found = {}
    data = change_data(*((number, number + 100, rows) for number, rows in enumerate(events)))
    for region_id, request_id, rows in read(data).events:
        assert request_id == region_id + 100
        assert region_id not in found
        found[region_id] = [*rows]
        assert [rows[at] for at in range(len(rows))] == found[region_id]
        with pytest.raises(IndexError):
            rows[len(rows)]
    for number, rows in enumerate(events):
        wanted = plain(rows)
        if not any(r.type == 5 for r in rows):
            wanted.sort(key=lambda row: row[0])
        assert found.get(number, []) == wanted


def test_prewrites_come_first_of_an_event_with_rows_of_several_types():
    rows = [
        row("commit", "a", "put", start_ts=1, commit_ts=2),
        row("prewrite", "b", "put", start_ts=1, value="v"),
    ]
    ((_, _, payload),) = read(change_data((1, 2, rows))).events
    assert [kind for kind, *_ in payload] == [1, 2]


def test_rows_without_a_type_are_rows_alone_as_well_as_beside_others():
    untyped = cdcpb.Event.Row(start_ts=5, key=b"a")
    other = row("prewrite", "b", "put", start_ts=5, value="v")
    for rows in ([untyped], [untyped, untyped], [cdcpb.Event.Row()], [other, untyped], [untyped, other]):
        ((_, _, payload),) = read(change_data((1, 2, rows))).events
        assert [*payload] == rows_of(rows) == sorted(plain(rows))


def test_what_else_is_in_a_message():
    message = cdcpb.ChangeDataEvent()
    message.events.add(region_id=1, request_id=2, resolved_ts=9)
    message.events.add(region_id=3, request_id=4).error.not_leader.region_id = 3
    message.events.add(region_id=5, request_id=6).admin.SetInParent()
    message.events.add(region_id=7, request_id=8).error.SetInParent()
    message.events.add(region_id=9, request_id=8, entries=cdcpb.Event.Entries())
    data = read(message.SerializeToString())
    assert [(*ids, payload) for *ids, payload in data.events] == [
        (1, 2, 9),
        (3, 4, cdcpb.Error(not_leader={"region_id": 3})),
        (7, 8, cdcpb.Error()),
    ]
    assert data.resolved is None


def test_resolved_regions_come_as_a_batch():
    batch = cdcpb.ResolvedTs(regions=[5, 3, 4], ts=77, request_id=2)
    resolved = read(change_data(resolved=batch)).resolved
    assert (list(unpack(resolved.packed)), resolved.ts, resolved.request_id) == ([5, 3, 4], 77, 2)


@pytest.mark.parametrize("count", [0, 1, 127, 128, 20_000])
def test_resolved_regions_may_come_unpacked(count):
    ids = [7 * number for number in range(count)]
    data = b"".join(b"\x08" + cdcpb.ResolvedTs(ts=id_).SerializeToString()[1:] for id_ in ids if id_)
    batch = data + cdcpb.ResolvedTs(ts=77, request_id=2).SerializeToString()
    length = cdcpb.ResolvedTs(ts=len(batch)).SerializeToString()[1:]
    resolved = read(b"\x12" + length + batch).resolved
    assert (list(unpack(resolved.packed)), resolved.ts, resolved.request_id) == (ids[1:], 77, 2)


def test_what_is_no_message_is_refused():
    with pytest.raises(DecodeError):
        read(b"\x0a\xff")


def test_a_message_of_many_regions_is_read_region_by_region():
    events = [
        (number, 1, [row("committed", f"k{number}", "put", start_ts=5, commit_ts=9, value="v")])
        for number in range(500)
    ]
    data = read(change_data(*events))
    assert [(region, [row[4] for row in rows]) for region, _, rows in data.events] == [
        (number, [f"k{number}".encode()]) for number in range(500)
    ]
