import io
import logging
import os
import subprocess
import sys

import msgspec
import pytest
from rich.console import Console

from tidemill.engine.failures import Retry
from tidemill.engine.lag import Lag
from tidemill.engine.progress import JsonLines, LogLines, explanation, panel, size
from tidemill.engine.rate import Rate
from tidemill.engine.status import (
    BackfillProgress,
    FeedStatus,
    SinkStatus,
    SnapshotStatus,
    StatusFile,
    resident_bytes,
)
from tidemill.engine.verification import Divergence, VerifyStatus
from tidemill.errors import CheckpointError
from tidemill.events import JOB_QUEUE, Wait

STATUS = FeedStatus(
    name="shop",
    state="normal",
    detail="",
    pid=os.getpid(),
    updated=100.0,
    started=90.0,
    source="mysql://db:3306",
    position="binlog.000001:4",
    rows=12,
    transactions=3,
    rows_per_second=1.5,
    memory_bytes=3 << 20,
    sorter_memory_bytes=0,
    sorter_disk_bytes=0,
    sinks=[
        SinkStatus("copy", "mysql://copy", "binlog.000001:4", 1, 2.5, 12),
        SinkStatus("lite", "sqlite:///x", "", 0, None, 0),
    ],
)


def test_a_status_survives_its_file(tmp_path):
    file = StatusFile(tmp_path)
    file.claim()
    file.save(STATUS)
    assert StatusFile(tmp_path).load() == STATUS
    file.release()


def test_a_feed_whose_process_is_gone_has_failed(tmp_path):
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    StatusFile(tmp_path).save(msgspec.structs.replace(STATUS, pid=child.pid, waits=[Wait("a", "room", 1.0)]))
    found = StatusFile(tmp_path).load()
    assert (found.state, found.waits) == ("failed", [])
    assert str(child.pid) in found.detail


def test_a_feed_whose_process_id_belongs_to_another_process_has_failed(tmp_path):
    running = msgspec.structs.replace(STATUS, state="normal", pid=os.getpid())
    file = StatusFile(tmp_path)
    file.claim()
    file.save(running)
    assert StatusFile(tmp_path).load() == running
    file.release()
    assert StatusFile(tmp_path).load().state == "failed"
    StatusFile(tmp_path).claim()


def test_a_stopped_feed_stays_stopped_when_its_process_is_gone(tmp_path):
    StatusFile(tmp_path).save(msgspec.structs.replace(STATUS, pid=2**22 + 1, state="stopped"))
    assert StatusFile(tmp_path).load().state == "stopped"


def test_no_file_and_a_truncated_file_are_named(tmp_path):
    with pytest.raises(CheckpointError, match="no feed has run here"):
        StatusFile(tmp_path).load()
    StatusFile(tmp_path).save(STATUS)
    path = tmp_path / "status.json"
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(CheckpointError, match=r"status\.json: not a status file"):
        StatusFile(tmp_path).load()


def test_log_lines_come_on_a_change_of_state_and_every_few_seconds():
    stream = io.StringIO()
    lines = LogLines(stream)
    for updated, state in [(0, "normal"), (1, "normal"), (2, "warning"), (3, "warning"), (8, "warning")]:
        lines.show(msgspec.structs.replace(STATUS, updated=float(updated), state=state))
    found = [line.split("level=")[1].split(" feed=")[0] for line in stream.getvalue().splitlines()]
    assert found == ["info event=normal", "warning event=warning", "warning event=warning"]


def test_log_lines_have_a_level_and_are_one_line_each():
    stream = io.StringIO()
    lines = LogLines(stream)
    lines.show(msgspec.structs.replace(STATUS, state="failed", detail="table shop.a\nb\x1b[1m is missing"))
    logging.getLogger("tidemill.sink").warning("first\nsecond")
    logging.getLogger("tidemill.sink").error("third")
    lines.close()
    found = [line.partition(" level=")[2] for line in stream.getvalue().splitlines()]
    assert [line.split()[0:2] for line in found] == [
        ["error", "event=failed"],
        ["warning", "event=message"],
        ["error", "event=message"],
    ]
    assert r"shop.a\nb\x1b[1m is missing" in found[0].replace("\\\\", "\\")
    assert r"first\nsecond" in found[1].replace("\\\\", "\\")


GTIDS = "mysql-bin.000003:4711 0-1-100,1-2-200 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-1000"


def test_the_panel_keeps_lag_rows_and_state_on_80_columns():
    sink = SinkStatus(
        "orders", "mysql://warehouse:3306/shop_copy", GTIDS, 1, 12.3, 1_234_567, state="warning"
    )
    snapshot = SnapshotStatus("shop.\norders", 120_000, 1_000_000, 12, 3)
    source = "mysql server 3e11fa47-71ca-11e1-9e33-c80aa9429562"
    console = Console(file=io.StringIO(), width=80)
    console.print(
        panel(msgspec.structs.replace(STATUS, source=source, position=GTIDS, sinks=[sink], snapshot=snapshot))
    )
    lines = console.file.getvalue().splitlines()
    assert len(lines) == 5, lines
    assert lines[2].startswith("snapshot  12% ")
    assert "table 4 of 12, 120,000 of about" in lines[2]
    assert lines[3].split() == ["sink", "lag", "rows", "state", "target", "checkpoint"]
    assert lines[4].startswith("orders  12.3 s  1,234,567  warning  mysql://")


def test_the_panel_and_the_first_line_of_explain_name_what_differs():
    one = VerifyStatus(
        "copy",
        "comparing",
        since=1_700_000_000.0,
        percent=42.4,
        table="shop.orders",
        whole_ended=1_699_990_000.0,
        divergences=(Divergence("shop.a", 1, 1, 1, "id=9", "id=20"), Divergence("shop.b", detail="lacks x")),
        differences=3,
        diverged=2,
    )
    away = VerifyStatus("lite", "paused", "no answer of the server")
    status = msgspec.structs.replace(STATUS, state="warning", verify=[one, away])
    said = (
        "3 rows of shop.a (1 missing, 1 only there, 1 changed, id=9 to id=20) differ between the source and "
        "sink copy; so does another table: run tidemill diff"
    )
    lines = explanation(status, [])
    assert lines[0] == f"feed shop: warning: {said}"
    assert "the verification of sink lite is paused: no answer of the server" in lines
    late = Wait("sink copy", "retry", 2.0, reason="away", pause_seconds=1.0)
    assert explanation(status, [late])[0].endswith(f"; {said}")
    shown = io.StringIO()
    Console(file=shown, width=300).print(panel(status))
    assert (
        "verification of sink copy: comparing; 42% of the rows compared since 2023-11-14 22:13:20 UTC, now "
        "shop.orders; last whole pass ended 2023-11-14 19:26:40 UTC; 3 rows differ in 2 tables"
    ) in shown.getvalue()


def test_rows_that_come_in_bursts_have_a_rate():
    rate, rows, rates = Rate(), 0, []
    for tick in range(400):
        if tick % 40 == 0:
            rows += 1000
        rates.append(rate(tick / 4, rows))
    assert all(60 < found < 400 for found in rates[80:])
    assert rate(160.0, rows) == 0.0
    assert [round(rate(160.0 + second, rows + 50 * second)) for second in range(10)][6:] == [50, 50, 50, 50]


def test_a_backfill_shows_its_stage_and_how_much_is_left():
    at = BackfillProgress("reading", 3, 12, 4_000, 16_000, 8.4)
    stream = io.StringIO()
    lines = LogLines(stream)
    for updated, stage in [(0.0, "reading"), (1.0, "reading"), (2.0, "loading")]:
        backfill = msgspec.structs.replace(at, stage=stage)
        lines.show(msgspec.structs.replace(STATUS, updated=updated, backfill=backfill))
    lines.close()
    found = stream.getvalue().splitlines()
    assert [line.split("stage=")[1].split(" rows=")[0] for line in found] == [
        "reading chunks=3/12 seconds_left=8",
        "loading chunks=3/12 seconds_left=8",
    ]
    console = Console(file=io.StringIO(), width=160)
    console.print(panel(msgspec.structs.replace(STATUS, backfill=at)))
    assert "3 of 12 chunks, 4,000 of about 16,000 rows, 8 s left" in console.file.getvalue()


def test_json_lines_come_once_a_second_and_always_at_the_end():
    stream = io.StringIO()
    lines = JsonLines(stream)
    for updated, state in [(1.0, "normal"), (1.5, "normal"), (2.1, "normal"), (2.2, "finished")]:
        lines.show(msgspec.structs.replace(STATUS, updated=updated, state=state))
    found = [msgspec.json.decode(line)["state"] for line in stream.getvalue().splitlines()]
    assert found == ["normal", "normal", "finished"]


def test_an_explanation_begins_with_the_cause_and_names_the_longest_wait_first():
    waits = [Wait("reader", "room", 1.0, on="decoder"), Wait("decoder", "room", 7.0, on="sink copy")]
    assert explanation(STATUS, waits) == [
        "feed shop: normal: sink copy is the slowest stage: what comes before it has waited 7.0 s for room: "
        "see what its target does, or give the sink more workers",
        "decoder has waited 7.0 s for room in sink copy",
        "reader has waited 1.0 s for room in decoder",
        "the furthest behind is sink copy, by 2.5 s",
    ]
    assert explanation(STATUS, [])[:2] == ["feed shop: normal", "nothing waits"]


def test_a_root_cause_goes_before_what_it_holds_up():
    waits = [
        Wait("decoder", "room", 60.0, on="sink copy"),
        Wait("table shop.a", "region", 50.0, region=3),
        Wait("sink copy", "answer", 30.0, on="mysql://copy"),
    ]
    assert explanation(STATUS, waits)[0].startswith(
        "feed shop: normal: sink copy has waited 30.0 s for an answer of mysql://copy: see if it runs"
    )
    retry = Retry("sink copy", "Too many connections", at=25.0, since=24.0).wait(24.5)
    assert explanation(STATUS, [*waits, retry])[0].endswith(
        "Too many connections: raise the server's maximum number of connections, or close some"
    )


def test_a_region_is_named_by_the_users_table_before_the_job_queue():
    waits = [
        Wait("jobs", "region retry", 5.0, table=JOB_QUEUE, region=2, reason="NotLeader"),
        Wait("a", "region retry", 4.9, table="shop.a", region=2, reason="NotLeader"),
    ]
    assert "table shop.a has waited 4.9 s" in explanation(STATUS, waits)[0]
    elsewhere = [waits[0], msgspec.structs.replace(waits[1], region=3)]
    assert "the job queue of the schema has waited 5.0 s" in explanation(STATUS, elsewhere)[0]


@pytest.mark.parametrize(
    ("count", "held"), [(3, "; 3 transactions depend on others like that"), (0, "")], ids=["some", "none"]
)
def test_a_worker_that_waits_says_what_it_holds_up(count: int, held: str) -> None:
    wait = Wait("sink copy worker 4", "worker", 8.2, reason="commit ts 5 (shop.item)", count=count)
    said = f"sink copy worker 4 has waited 8.2 s for the target to take commit ts 5 (shop.item){held}"
    assert explanation(STATUS, [wait])[1] == said


def test_short_waits_are_no_cause():
    waits = [
        Wait("sink copy", "answer", 0.5, on="mysql://copy"),
        Wait("decoder", "room", 0.9, on="sink copy"),
    ]
    assert explanation(STATUS, waits)[0] == "feed shop: normal"


def test_without_waits_the_stage_that_the_oldest_change_is_in_is_the_cause():
    def first(lag: Lag, **more: object) -> str:
        sinks = [msgspec.structs.replace(STATUS.sinks[0], lag=lag), STATUS.sinks[1]]
        return explanation(msgspec.structs.replace(STATUS, sinks=sinks, **more), [])[0]

    assert "sink copy is slow" in first(Lag(0.1, 0.1, 3.0, 0.5, 3.7))
    assert "not yet all that comes before it" in first(Lag(0.1, 9.0, 0.0, 0.0, 9.1))
    assert "catches up with the source: it is 60.0 s behind" in first(Lag(60, 0, 0, 0, 60), connected=True)
    assert "the source isn't connected" in first(Lag(60, 0, 0, 0, 60))
    assert first(Lag(0.5, 0.1, 0.1, 0.1, 0.8)) == "feed shop: normal"


def test_an_explanation_says_that_tables_are_loaded():
    loading = msgspec.structs.replace(STATUS, snapshot=SnapshotStatus("shop.b", 1_200, 5_000, 3, 1))
    said = "table shop.b is loaded, 2 of 3: 1,200 of about 5,000 rows so far"
    assert explanation(loading, [])[:2] == ["feed shop: normal", said]
    wait = Wait("decoder", "room", 7.0, on="sink copy")
    assert explanation(loading, [wait])[1:3] == [said, "decoder has waited 7.0 s for room in sink copy"]


def test_what_is_retried_is_explained_with_its_error_and_the_time_of_the_next_attempt():
    retry = Retry("source", "no answer", at=25.0, since=10.0)
    assert retry.sentence(21.0) == "source: no answer; trying again in 4.0 s"
    assert explanation(STATUS, [retry.wait(21.0)])[1] == (
        "source has waited 11.0 s for the next attempt, in 4.0 s: no answer"
    )


def test_a_feed_that_has_ended_explains_why_and_nothing_else():
    failed = msgspec.structs.replace(STATUS, state="failed", detail="the disk is full")
    wanted = "feed shop: failed: the disk is full: free space on that disk, or enlarge it"
    assert explanation(failed, []) == [wanted]
    blamed = msgspec.structs.replace(failed, blamed="sink copy", detail="no row with id=1")
    assert explanation(blamed, []) == ["feed shop: failed: sink copy: no row with id=1"]


def test_a_snapshot_shows_its_percentage_and_never_more_than_the_whole():
    assert SnapshotStatus("shop.a", 50, 200, 3, 1).percent == 25.0
    assert SnapshotStatus("shop.a", 300, 200, 3, 1).percent == 100.0
    assert SnapshotStatus("", 0, 0, 0, 0).percent == 100.0


def test_sizes_are_for_people():
    assert [size(n) for n in (0, 1023, 1536, 3 << 20, 5 << 40)] == [
        "0 B", "1023 B", "1.5 KiB", "3.0 MiB", "5.0 TiB",
    ]  # fmt: skip


def test_this_process_holds_some_memory():
    assert resident_bytes() > 1 << 20
