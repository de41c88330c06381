"""Conformance of the registries: in etcd and in SQLite."""

from __future__ import annotations

import pytest

from tidemill.errors import ConfigError, SourceError
from tidemill.puller.pump.registry.location import open_registry
from tidemill.puller.pump.registry.node import DRAINERS, PUMPS, NodeStatus, decode, encode, key
from tidemill.puller.pump.registry.registry import RegistryUnavailable, nodes

A = key(PUMPS, "a")


def pump(node_id):
    return NodeStatus(node_id=node_id, host=f"{node_id}:8250", state="online", max_commit_ts=7, update_ts=9)


def test_a_value_is_found_with_the_revision_of_its_write(open_one):
    one, other = open_one(), open_one()
    revision = one.put(A, b"first", 0)
    assert other.get(A) == (b"first", revision)


def test_a_key_that_is_not_there_has_no_record(open_one):
    assert open_one().get(A) is None


def test_a_write_needs_the_present_revision(open_one):
    one, other = open_one(), open_one()
    first = one.put(A, b"1", 0)
    assert other.put(A, b"2", 0) is None
    second = other.put(A, b"2", first)
    assert second > first
    assert one.put(A, b"3", first) is None
    assert one.get(A) == (b"2", second)


def test_a_list_has_the_keys_of_its_prefix_in_order(open_one):
    registry = open_one()
    for each in (key(PUMPS, "b"), A, key(DRAINERS, "a"), "/tidb-binlog/v1/pumpsx"):
        registry.put(each, b"{}", 0)
    assert list(registry.list(key(PUMPS))) == [A, key(PUMPS, "b")]


def test_nodes_are_parsed_and_keys_below_a_node_are_left_out(open_one):
    registry = open_one()
    for each in (pump("b"), pump("a")):
        registry.put(key(PUMPS, each.node_id), encode(each), 0)
    registry.put(key(PUMPS, "a/alive"), b"1", 0)
    assert nodes(registry, PUMPS) == [pump("a"), pump("b")]


def test_a_record_that_is_not_one_is_named(open_one):
    registry = open_one()
    registry.put(A, b'{"nodeId":"a"}', 0)
    with pytest.raises(SourceError, match="/tidb-binlog/v1/pumps/a is not a node's record"):
        nodes(registry, PUMPS)


def test_a_record_is_the_json_of_tidb_binlog():
    assert encode(pump("a")) == (
        b'{"nodeId":"a","host":"a:8250","state":"online","isAlive":false,"score":0,"label":null,'
        b'"maxCommitTS":7,"updateTS":9}'
    )


def test_records_of_old_and_labelled_pumps_are_read():
    old = b'{"nodeId":"a","host":"h","state":"paused","isAlive":true,"score":3,"label":{"labels":{"z":"1"}}}'
    found = decode(A, old)
    assert (found.state, found.label.labels, found.max_commit_ts) == ("paused", {"z": "1"}, 0)


@pytest.mark.parametrize("url", ["redis://h:1", "sqlite://", "binlog", "binlog://", "binlog://pd1"])
def test_a_url_that_is_no_registry_is_refused(url):
    with pytest.raises(ConfigError):
        open_registry(url)


def test_an_etcd_that_is_not_there_is_unavailable():
    registry = open_registry("binlog://127.0.0.1:1", timeout_seconds=1.0)
    with pytest.raises(RegistryUnavailable, match=r"127\.0\.0\.1:1: get: etcd connection failed"):
        registry.get(A)
    registry.close()


def test_a_second_endpoint_is_used_when_the_first_fails(private_etcd):
    registry = open_registry(f"binlog://127.0.0.1:1,{private_etcd.address}", timeout_seconds=60.0)
    found = []
    for _ in range(2):
        try:
            found.append(registry.put(A, b"1", 0))
        except RegistryUnavailable:
            continue
    registry.close()
    assert found[0] is not None


def test_a_file_that_is_not_a_registry_is_refused(tmp_path):
    path = tmp_path / "registry.db"
    path.write_bytes(b"something else" * 1000)
    with pytest.raises(SourceError, match=r"registry\.db"):
        open_registry(f"sqlite:///{path}").get(A)
