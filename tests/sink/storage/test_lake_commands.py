"""`tidemill analyze` and `tidemill compact` on lakes, as users call them, and killed."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread

import pytest

from tidemill.sink.files.lakes.upkeep import LakePlan, decode_lake_plan, encode_lake_plan
from tidemill.testing.child import CLI, Child
from tidemill.testing.iceberg_rest import IcebergRest
from tidemill.testing.s3 import LOGIN, S3Process

from .copies import DeltaCopies
from .fed_lake import FedLake
from .lakes import DeltaBucket, DeltaLake, IcebergLake, RestLake
from .test_upkeep import OFTEN, PLACES


def tidemill(*arguments: str | Path, failpoint: str = "") -> tuple[int, str]:
    """Run a command; return its exit status and what it said."""
    with TemporaryDirectory() as name:
        log = Path(name, "log")
        with Child([*CLI, *arguments], log, failpoint=failpoint) as child:
            return child.exit_status(), child.output()


@pytest.mark.parametrize("kind", ["delta history", "iceberg copy"])
def test_a_lake_is_analyzed_and_compacted_while_its_feed_is_there(kind: str, tmp_path: Path) -> None:
    fed = FedLake(PLACES[kind](tmp_path / "lake", **OFTEN))
    fed.insert(6)
    plan, page, after = tmp_path / "plan.json", tmp_path / "lake.html", tmp_path / "after.html"
    url = fed.place.url()
    status, said = tidemill("analyze", url, "--plan", plan, "--page", page)
    assert (status, "wrote" in said) == (0, True), said
    assert "tidemill compact" in page.read_text()
    assert decode_lake_plan(plan.read_bytes(), "plan").lake == url
    status, said = tidemill("compact", url, "--plan", plan, "--page", after)
    assert status == 0, said
    assert f"{'sort' if kind == 'delta history' else 'join'} shop.item" in said
    assert "reading everything, measured: " in said
    assert "Before and after" in after.read_text()
    fed.change()
    fed.check()
    fed.sink.close()


def test_a_lake_is_compacted_by_spark(tmp_path: Path) -> None:
    fed = FedLake(PLACES["iceberg copy"](tmp_path / "lake", **OFTEN))
    fed.insert(6)
    _, made = fed.analyzed()
    plan = tmp_path / "plan.json"
    plan.write_text(encode_lake_plan(made))
    status, said = tidemill("compact", fed.place.url(), "--plan", plan, "--master", "local[2]", "--json")
    assert status == 0, said
    report = json.loads(said.splitlines()[-1])
    (done,) = [one for one in report["outcomes"] if one["step"]["folder"] == "shop.item"]
    assert (done["left"], done["files_before"], done["files_after"]) == ("", 6, 1)
    fed.change()
    fed.check()
    fed.sink.close()


KILLS = ["upkeep.written:1", "copy.committing:1", "upkeep.committed:1", "upkeep.expired:1"]
MERGE_KILLS = ["merge.staged", "sink.committed", "copy.committing", "copy.committed", "merge.committed"]
SECTIONS = """
name = "f"
[source]
url = "mysql://u@localhost"
tables = ["shop.*"]
[[sink]]
name = "lake"
url = "delta+s3://lake/x"
access_key = "a"
secret_key = "b"
"""


@pytest.mark.parametrize(
    "kind",
    [
        "iceberg copy",
        *[pytest.param(kind, marks=pytest.mark.soak) for kind in ("iceberg history", "delta copy")],
    ],
)
def test_a_compaction_is_killed_at_any_point_and_repeated(kind: str, tmp_path: Path) -> None:
    fed = FedLake(PLACES[kind](tmp_path / "lake", **OFTEN))
    url = fed.place.url()
    plan = tmp_path / "plan.json"
    for point in KILLS:
        fed.insert(4, 2)
        fed.change()
        _, made = fed.analyzed()
        actions = ["sort" if "history" in kind else "join", "expire", "vacuum"]
        steps = [step for step in made.steps if step.folder == "shop.item"][:1]
        wanted = [*steps, *[_step(action) for action in actions[1:]]]
        plan.write_text(encode_lake_plan(LakePlan(2, url, 168, 128 << 20, wanted)))
        status, said = tidemill("compact", url, "--plan", plan, failpoint=point)
        assert status == -signal.SIGKILL, said
        fed.check()
        fed.change()
        fed.check()
        status, said = tidemill("compact", url, "--plan", plan)
        assert status == 0, said
        fed.check()
        fed.reopen()
        fed.change()
        fed.check()
    fed.sink.close()


def _step(action: object) -> object:
    from .test_upkeep import step

    return step(action)


def test_a_history_is_merged_again_and_again_and_killed(tmp_path: Path) -> None:
    fed = FedLake(DeltaLake(tmp_path / "lake", **OFTEN))
    copy = DeltaCopies(tmp_path / "copy")
    arguments = ["compact", fed.place.url(), "--copy", copy.url(), "--index", str(copy.index)]
    for point in MERGE_KILLS:
        fed.insert(2)
        fed.change()
        status, said = tidemill(*arguments, failpoint=point)
        assert status == -signal.SIGKILL, said
    status, said = tidemill(*arguments)
    assert (status, "changes and" in said) == (0, True), said
    assert sorted((row["id"], row["note"]) for row in copy.list("shop.item")) == sorted(fed.rows.items())
    status, said = tidemill(*arguments, "--json")
    assert (status, json.loads(said)["changes"]) == (0, 0), said
    fed.sink.close()


@contextmanager
def demanding(port: int, token: str) -> Iterator[int]:
    """Pass requests with a token to a catalog, and refuse others; yield the port to ask."""

    class Door(BaseHTTPRequestHandler):
        def answer(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            if self.headers.get("Authorization") != f"Bearer {token}":
                self.reply(401, b"{}")
                return
            there = HTTPConnection("127.0.0.1", port)
            there.request(self.command, self.path, content, {"Content-Type": "application/json"})
            with closing(there):
                found = there.getresponse()
                self.reply(found.status, found.read())

        def reply(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(b"" if self.command == "HEAD" else content)

        do_GET = do_POST = do_HEAD = do_DELETE = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Door) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server.server_address[1]
        finally:
            server.shutdown()
            thread.join()


def test_a_history_is_merged_into_a_catalog_that_needs_a_token(
    iceberg_rest: IcebergRest, tmp_path: Path
) -> None:
    fed = FedLake(DeltaLake(tmp_path / "lake", **OFTEN))
    fed.insert(3)
    file = tmp_path / "lakes.toml"
    present = RestLake(tmp_path / "present", iceberg_rest.port)
    with demanding(iceberg_rest.port, "geheim") as port:
        sections = f"""
            [[sink]]
            name = "history"
            url = "{fed.place.url()}"
            [[sink]]
            name = "present"
            url = "iceberg+rest://127.0.0.1:{port}"
            location = "{present.path}"
            mode = "copy"
            """
        arguments = ["compact", file, "--sink", "history", "--copy", "present"]
        file.write_text(sections)
        status, said = tidemill(*arguments)
        assert (status != 0, "the catalog denies access" in said) == (True, True), said
        status, said = tidemill(*arguments[:-1], "history")
        assert (status != 0, 'expected mode = "copy"' in said) == (True, True), said
        file.write_text(f'{sections}token = "geheim"')
        status, said = tidemill(*arguments)
        assert (status, "changes and" in said) == (0, True), said
    rows = present.arrow("shop.item").to_pylist()
    assert sorted((row["id"], row["note"]) for row in rows) == sorted(fed.rows.items())
    fed.sink.close()


def test_a_lake_in_a_bucket_by_a_feed_file(tmp_path: Path) -> None:
    """Credentials that can't be in a URL are those of the sink."""
    os.environ.update(LOGIN)
    with S3Process() as server:
        server.bucket("lake")
        fed = FedLake(DeltaBucket(server, "lake/x", format="parquet", **OFTEN))  # type: ignore[arg-type]
        fed.insert(5)
        file, plan = tmp_path / "feed.toml", tmp_path / "plan.json"
        file.write_text(f'{SECTIONS}endpoint = "{server.endpoint}"\n')
        page = tmp_path / "lake.html"
        status, said = tidemill("analyze", file, "--sink", "lake", "--plan", plan, "--page", page)
        assert status == 0, said
        status, said = tidemill("compact", file, "--sink", "lake", "--plan", plan)
        assert (status, "sort shop.item" in said) == (0, True), said
        fed.check()
        fed.sink.close()
        status, said = tidemill("analyze", file, "--sink", "other", "--page", page)
        assert "--sink: " in said
        assert "has no sink 'other'; accepted: lake" in said


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["analyze", "delta://{0}/none"], "there is no such directory"),
        (
            ["analyze", "s3://bucket/lake"],
            "s3://bucket/lake: no lake that can be analyzed; accepted: delta:///",
        ),
        (["analyze", "delta://{0}", "--archive", "{0}"], "--archive: not with the lake delta://"),
        (["analyze", "delta://{0}", "--master", "local[2]"], "--master: not with a lake, which is analyzed"),
        (["compact", "delta://{0}", "--plan", "{0}/plan", "--config", "a=b"], "--config: it is for Spark"),
        (
            ["compact", "delta://{0}", "--copy", "delta:///x", "--master", "local"],
            "--master: not with --copy",
        ),
        (
            ["analyze", "--archive", "{0}", "--keep-hours", "9"],
            "--keep-hours: only with a lake",
        ),
        (["compact", "delta://{0}"], "compact: give --plan, by tidemill analyze delta://"),
        (["compact", "delta://{0}", "--plan", "{0}/plan", "--up-to", "7"], "--up-to: not with the lake"),
        (["compact", "--copy", "delta:///x", "--plan", "{0}/plan"], "--copy, --index: only with a lake"),
        (
            ["compact", "delta://{0}", "--copy", "delta:///x", "--plan", "{0}/plan"],
            "--plan: not with --copy",
        ),
        (["compact", "delta://{0}", "--copy", "sqlite:///x"], "sink copy"),
        (["compact", "delta://{0}", "--copy", "x"], "--copy: 'x' is no URL, and the name of a sink needs"),
        (["compact", "{0}/lakes.toml", "--sink", "a", "--copy", "x"], "has no sink 'x'; accepted: a"),
        (["compact", "iceberg+sql://{0}", "--plan", "{0}/plan"], "there is no catalog"),
    ],
)
def test_mistakes_are_one_sentence(tmp_path: Path, arguments: list[str], sentence: str) -> None:
    (tmp_path / "plan").write_text(encode_lake_plan(LakePlan(2, "delta:///elsewhere", 168, 1, [])))
    (tmp_path / "lakes.toml").write_text(f'[[sink]]\nname = "a"\nurl = "delta://{tmp_path}"\n')
    status, said = tidemill(*[one.format(tmp_path) for one in arguments])
    assert status != 0
    assert sentence in " ".join(said.split())
    assert "Traceback" not in said


def test_a_plan_of_another_lake_is_refused(tmp_path: Path) -> None:
    fed = FedLake(IcebergLake(tmp_path / "lake", **OFTEN))
    fed.insert(1)
    (tmp_path / "plan").write_text(encode_lake_plan(LakePlan(2, "delta:///elsewhere", 168, 1, [])))
    status, said = tidemill("compact", fed.place.url(), "--plan", tmp_path / "plan")
    assert (status != 0, "is for delta:///elsewhere" in said) == (True, True), said
    status, said = tidemill("compact", fed.place.url(), "--plan", tmp_path / "none")
    assert (status != 0, "No such file" in said) == (True, True), said
    fed.sink.close()
