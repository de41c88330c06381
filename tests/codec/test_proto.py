"""The messages of PD, TiKV and pump."""

import subprocess
import sys
from pathlib import Path

import pytest

from tidemill.codec import proto
from tidemill.codec.proto import CHANGE_DATA, PD, binlog, cdcpb
from tidemill.testing.proto_stubs import stubs

FOLDER = Path(proto.__file__).parent


def test_the_descriptors_are_what_protoc_makes_of_the_files(tmp_path):
    made = tmp_path / "descriptors.binpb"
    files = sorted(path.name for path in FOLDER.glob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", f"--descriptor_set_out={made}", *files]
    subprocess.run(command, cwd=FOLDER, check=True)
    assert made.read_bytes() == (FOLDER / "descriptors.binpb").read_bytes(), "run make proto"


def test_the_types_of_the_messages_are_those_of_the_files():
    assert {path.name: path.read_text() for path in FOLDER.glob("*.pyi")} == stubs(), "run make proto"


@pytest.mark.parametrize(
    ("message", "wire"),
    [
        (cdcpb.Event(region_id=3, request_id=5, resolved_ts=9), "0803 3009 3805"),
        (cdcpb.ChangeDataRequest(region_id=1, extra_op=1, filter_loop=True), "1001 4001 6001"),
        (cdcpb.Event.Row(start_ts=1, commit_ts=2, type=4, op_type=1, key=b"k"), "0801 1002 1804 2001 2a016b"),
        (cdcpb.ResolvedTs(regions=[1, 2], ts=300), "0a020102 10ac02"),
        (binlog.Binlog(tp=0, start_ts=1), "0800 1001"),
    ],
)
def test_a_message_has_the_numbers_of_the_wire(message, wire):
    assert message.SerializeToString() == bytes.fromhex(wire)


def test_a_call_has_its_path_and_its_streams():
    assert PD["GetMembers"].path == "/pdpb.PD/GetMembers"
    assert not PD["GetMembers"].client_streaming
    assert CHANGE_DATA["EventFeedV2"].client_streaming
    assert CHANGE_DATA["EventFeedV2"].server_streaming


def test_unknown_fields_are_skipped():
    assert cdcpb.Header.FromString(bytes.fromhex("0807 9a01036e6577")).cluster_id == 7
