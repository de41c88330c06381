"""A cluster as a whole: start and stop, writers in threads, TLS, other processes, recordings, schedules."""

from __future__ import annotations

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from tidemill.actors.clock import ManualClock
from tidemill.codec.proto import cdcpb
from tidemill.codec.tidb.key import encode_bytes, record_key, record_prefix
from tidemill.emulator import Cluster, Rejected, Tls
from tidemill.emulator.__main__ import main as emulate
from tidemill.emulator.faults.schedule import Schedule
from tidemill.emulator.loop import LoopThread
from tidemill.emulator.percolator import COMMIT, PREWRITE, Row
from tidemill.emulator.recorded import RecordedCluster, record
from tidemill.emulator.shard import PUT
from tidemill.errors import ConfigError
from tidemill.testing.progress import STALL_SECONDS, completed, ended, happened, joined

from .client import Client
from .script import told


def ports(cluster):
    servers = [*(m.server for m in cluster.pd.members), *(s.server for s in cluster.stores.values())]
    return [int(server.address.rpartition(":")[2]) for server in servers]


def test_a_closed_cluster_leaves_no_thread_and_no_port():
    with Cluster(stores=2, pd_members=2) as cluster:
        used = ports(cluster)
        names = [thread.name for thread in threading.enumerate()]
        assert names.count("tidemill-emulator") == 1
    for port in used:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", port))
    cluster.close()
    for late in (lambda: cluster.write([("put", b"a", b"1")]), cluster.tso, cluster.pd_down):
        with pytest.raises(RuntimeError, match="closed"):
            late()


def test_a_writer_that_waits_does_not_wait_longer_than_the_cluster_lives(make_client):
    client = make_client(quota_bytes=3_000, congestion_seconds=600.0)
    feed = client.feed(1)
    feed.send(client.pd("GetRegion", region_key=b"").region)
    feed.read()
    client.cluster.pause_streams()
    client.cluster.write([("put", b"a", bytes(2_000))])

    def write():
        with contextlib.suppress(RuntimeError):  # closed meanwhile; or its stream was, and it went on
            client.cluster.write([("put", b"b", bytes(2_000))])

    writer = threading.Thread(target=write)
    writer.start()
    client.cluster.close()
    joined(writer)


def test_work_that_the_close_cuts_short_is_told_so():
    loop = LoopThread("tidemill-test")
    begun = threading.Event()

    async def endless():
        begun.set()
        await asyncio.sleep(3_600)

    with ThreadPoolExecutor(1) as pool:
        promised = pool.submit(loop.run, endless())
        happened(begun)
        loop.stop()
        with pytest.raises(RuntimeError, match="closed meanwhile"):
            promised.result(timeout=STALL_SECONDS)


def test_a_taken_port_is_told_and_nothing_is_left_behind():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(RuntimeError, match="bind"):
            Cluster(pd_port=taken.getsockname()[1])
        with pytest.raises(ConfigError, match="no_such_option: no such key"):
            Cluster(no_such_option=1)


@pytest.mark.parametrize(
    "options", [{"stores": 0}, {"pd_members": 0}, {"tick_seconds": 0.0}, {"commit_mode": "none"}]
)
def test_an_option_out_of_range_is_named(options):
    (name,) = options
    with pytest.raises(ConfigError, match=rf"cluster\.{name}: "):
        Cluster(**options)


def test_resolved_ts_come_by_themselves(make_client):
    client = make_client(tick_seconds=0.001)
    found = client.pd("GetRegion", region_key=b"")
    feed = client.feed(1)
    feed.send(found.region)
    seen = []
    while len(seen) < 3:
        message = feed.read()
        seen += [message.resolved_ts.ts] if message.HasField("resolved_ts") else []
    assert seen == sorted(seen)


def test_many_threads_may_write_at_once(make_client):
    client = make_client()
    cluster = client.cluster
    for table in range(1, 9):
        cluster.split(record_prefix(table))

    def patiently(table):
        for handle in range(100):
            while True:
                try:
                    cluster.write([("put", record_key(table, handle), b"v"), ("put", b"shared", b"s")])
                    break
                except Rejected:
                    continue

    threads = [threading.Thread(target=patiently, args=(table,)) for table in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    rows = sum(len(region.shard.latest) for region in cluster.keyspace)
    assert (rows, len(cluster.keyspace.locked)) == (801, 0)


def test_a_transaction_of_a_hundred_thousand_rows_over_many_regions_is_one_commit(make_client):
    client = make_client(replicas=1)
    client.cluster.pave(record_key(1, handle) for handle in range(0, 100_000, 1_000))
    commit_ts = client.cluster.write([("put", record_key(1, handle), b"v") for handle in range(100_000)])
    found = {write.commit_ts for region in client.cluster.keyspace for write in region.shard.latest.values()}
    assert found == {commit_ts}
    assert {region.leader for region in client.cluster.keyspace} == {1, 2, 3}


def test_a_refused_write_leaves_no_lock(make_client):
    cluster = make_client().cluster
    cluster.split(b"m")
    cluster.prewrite(cluster.tso(), [("put", b"z", b"1")])
    with pytest.raises(Rejected, match="lock"):
        cluster.write([("put", b"a", b"1"), ("put", b"z", b"1")])
    assert len(cluster.keyspace.locked) == 1
    with pytest.raises(ValueError, match="at least one"):
        cluster.write([])


def test_of_one_key_in_a_transaction_the_last_counts(make_client):
    cluster = make_client().cluster
    cluster.write([("put", b"a", b"1"), ("delete", b"b", b""), ("put", b"a", b"2")])
    assert cluster.keyspace.locate_raw(b"a").shard.latest[b"a"].value == b"2"


def test_a_name_that_is_none_is_told_what_there_is(make_client):
    cluster = make_client().cluster
    for line in ("explode", "split", "transfer_leader 99", "fail_next 2 bad_hair", "store_down 9"):
        with pytest.raises(ValueError, match=r"there (are|is none)"):
            cluster.play(line)
    with pytest.raises(ValueError, match="already"):
        [cluster.split(b"m") for _ in range(2)]


# --- TLS


def openssl(folder, *arguments):
    completed(["openssl", *arguments], cwd=folder).check_returncode()


@pytest.fixture
def tls(tmp_path):
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not there to make certificates")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    names = ["-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    openssl(tmp_path, "req", "-x509", *curve, "-subj", "/CN=ca", "-keyout", "ca.key", "-out", "ca.pem")
    openssl(
        tmp_path, "req", "-x509", "-CA", "ca.pem", "-CAkey", "ca.key", *curve,
        "-subj", "/CN=tikv", *names, "-keyout", "tikv.key", "-out", "tikv.pem",
    )  # fmt: skip
    return Tls(ca_path=tmp_path / "ca.pem", cert_path=tmp_path / "tikv.pem", key_path=tmp_path / "tikv.key")


def test_with_tls_only_who_shows_a_certificate_is_answered(make_client, tls):
    with Cluster(stores=1, tls=tls) as cluster:
        ca, key, cert = (path.read_bytes() for path in (tls.ca_path, tls.key_path, tls.cert_path))
        client = Client(cluster, grpc.ssl_channel_credentials(ca, key, cert))
        members = client.pd("GetMembers")
        assert members.leader.client_urls[0].startswith("https://")
        cluster.write([("put", b"a", b"1")])
        assert client.kv("KvGet", client.context(b"a"), key=b"a", version=1 << 62).value == b"1"
        client.close()
        for credentials in (None, grpc.ssl_channel_credentials(ca)):
            other = Client(cluster, credentials)
            with pytest.raises(grpc.RpcError) as raised:
                other.pd("GetMembers")
            assert raised.value.code().name == "UNAVAILABLE"
            other.close()


# --- another process


@pytest.mark.parametrize("ending", ["stdin", "SIGTERM"])
def test_it_runs_as_a_process_until_stdin_closes_or_it_is_told_to_end(ending):
    command = [sys.executable, "-m", "tidemill.emulator", "--stores", "2"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        said = json.loads(process.stdout.readline())
        with grpc.insecure_channel(said["pd"]) as channel:
            answer = channel.unary_unary("/pdpb.PD/GetMembers")(b"", timeout=STALL_SECONDS)
        assert str(said["pd"]).encode() in answer
        if ending == "stdin":
            process.stdin.close()
        else:
            process.terminate()
        assert ended(process) == 0


def test_a_process_with_an_option_out_of_range_says_so(capsys):
    with pytest.raises(SystemExit):
        emulate(["--stores", "0"])
    assert "cluster.stores: expected `int` >= 1" in capsys.readouterr().err


# --- recordings


def test_a_recording_is_played_to_whoever_registers():
    rows = [Row(PREWRITE, b"a%d" % i, 5, 0, PUT, b"v", b"o") for i in range(3)]
    rows += [Row(COMMIT, b"a%d" % i, 5, 6, PUT) for i in range(3)]
    with RecordedCluster(stores=1, tick_seconds=None, clock=ManualClock(epoch=0.0)) as cluster:
        cluster.recordings[2] = record(2, rows, resolved_ts=9, rows_per_event=2, events_per_message=2)
        client = Client(cluster)
        found = client.pd("GetRegion", region_key=b"")
        feed = client.feed(1)
        feed.send(found.region, request_id=7)
        messages = [feed.read() for _ in range(3)]
        assert [len(message.events) for message in messages] == [2, 2, 0]
        said = [line for message in messages for line in told(message)]
        assert said[0] == "7/2 INITIALIZED"
        assert said[1] == "7/2 PREWRITE a0 start=5 put 'v' old 'o'"
        assert said[-2:] == ["7/2 COMMIT a2 start=5 commit=6 put ''", "7/[2] resolved 9"]
        client.close()


# --- schedules


def test_a_schedule_draws_the_same_faults_for_the_same_seed_and_counts_what_it_hit(make_client):
    keys = [b"b", b"d", b"f", b"h"]
    drawn = []
    for _ in range(2):
        client = make_client(pd_members=3, tick_seconds=None)
        feed = client.feed(1)
        feed.send(client.pd("GetRegion", region_key=encode_bytes(b"d")).region)
        feed.read()
        schedule = Schedule(client.cluster, seed=7, keys=keys)
        drawn.append([schedule.step() for _ in range(150)])
        schedule.calm()
        hits = schedule.hits
        assert hits["split"] > 0
        assert hits["merge"] > 0
        assert hits["transfer_leader"] > 0
        assert hits["store_down"] > 0
        assert client.cluster.injected.waiting() > 0
        assert all(server.up for server in client.cluster._servers())
    assert drawn[0] == drawn[1]
    with pytest.raises(ValueError, match="split"):
        Schedule(client.cluster, seed=7, keys=keys, words=["sabotage"])


def test_an_injected_error_counts_once_it_was_given(make_client):
    client = make_client()
    schedule = Schedule(client.cluster, seed=1, keys=[b"m"], words=["fail_next"])
    schedule.step()
    (word,) = {charge.word for charges in client.cluster.injected._charges.values() for charge in charges}
    assert schedule.hits == {}
    feed = client.feed(1)
    feed.send(client.pd("GetRegion", region_key=b"").region)
    message = feed.read()
    client.kv("KvGet", client.context(b"a"), key=b"a", version=1)
    assert schedule.hits == {word: 1}
    assert isinstance(message, cdcpb.ChangeDataEvent)
