"""Feeds of a program in the program's own web application, and one feed of `tidemill run --http`."""

from __future__ import annotations

import re
import shutil
import signal

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

import tidemill
from tidemill.client import Client, Refused
from tidemill.emulator.sql.sql import Tidb
from tidemill.server import app
from tidemill.testing.certificates import Authority
from tidemill.testing.child import CLI, Child
from tidemill.testing.progress import eventually


@pytest.fixture(scope="module")
def tidb():
    with Tidb(stores=1, tick_seconds=0.02) as cluster:
        cluster.execute("create database shop")
        cluster.execute("create table shop.item (id int primary key)")
        yield cluster


async def test_feeds_of_a_program_are_served_below_a_path(tidb, tmp_path) -> None:
    source = f"tikv://{tidb.pd_address}"
    with tidemill.open(source, ["shop.*"], data_dir=tmp_path / "state", name="mine") as feed:
        outer = Starlette(routes=[Mount("/cdc", app([feed]))])
        transport = httpx.ASGITransport(app=outer)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost/cdc") as http:
            answer = (await http.get("/api/v1/feeds")).json()
            assert [one["name"] for one in answer["feeds"]] == ["mine"]
            assert (await http.get("/api/v1/feeds/mine")).json()["status"]["pid"]
            assert (await http.get("/")).headers["content-type"].startswith("text/html")
            assert (await http.get("/page/index.html")).status_code == 200
            assert (await http.get("/health")).json() == {"status": "ok"}
            json = {"Content-Type": "application/json"}
            paused = await http.post("/api/v1/feeds/mine/pause", headers=json, content="{}")
            assert (paused.status_code, paused.json()["error"]["code"]) == (409, "conflict")
            assert (await http.post("/api/v1/feeds", headers=json, content="{}")).status_code == 409
            foreign = await http.get("/api/v1/feeds", headers={"Host": "evil.example"})
            assert foreign.status_code == 403


def test_two_feeds_of_one_name_are_refused(tidb, tmp_path) -> None:
    feeds = [
        tidemill.open(f"tikv://{tidb.pd_address}", ["shop.*"], data_dir=tmp_path / name) for name in "ab"
    ]
    with pytest.raises(tidemill.ConfigError, match="two feeds are called 'tidemill'"):
        app(feeds)


def test_a_run_shows_its_feed(tidb, tmp_path) -> None:
    file = tmp_path / "feed.toml"
    file.write_text(
        f'name = "shop"\ndata_dir = "{tmp_path}/state"\n[source]\nurl = "tikv://{tidb.pd_address}"\n'
        f'tables = ["shop.*"]\n[[sink]]\nurl = "sqlite:///{tmp_path}/copy.db"\n'
    )
    log = tmp_path / "log"
    with Child([*CLI, "run", file, "--http", "127.0.0.1:0"], log) as child:
        url = child.wait_until(lambda: re.search(r"http://\S+", log.read_text()))[0]
        client = Client(url)
        eventually(lambda: client.feed("shop").feed.state == "normal")
        assert client.feed("shop").options["name"] == "shop"
        with pytest.raises(Refused, match="run by a program"):
            client.pause("shop")
        child.process.send_signal(signal.SIGTERM)
        assert child.exit_status() == 0


def test_an_address_in_use_is_an_error(served, tmp_path, call) -> None:
    code, _, said = call("serve", tmp_path / "x", "--http", served.url.partition("://")[2])
    assert code == 2
    assert "in use" in said


@pytest.mark.skipif(not shutil.which("openssl"), reason="there is no command openssl")
def test_a_server_with_tls_and_a_token(tmp_path) -> None:
    authority = Authority(tmp_path / "ca")
    certificate, key = authority.issue("server")
    token = tmp_path / "token"
    token.write_text("alice correct-horse-battery-staple\n")
    flags = ["--tls-cert", certificate, "--tls-key", key, "--token-file", token]
    log = tmp_path / "log"
    with Child([*CLI, "serve", tmp_path / "feeds", "--http", "127.0.0.1:0", *flags], log) as child:
        url = child.wait_until(lambda: re.search(r"https://\S+", log.read_text()))[0]
        client = Client(url, "correct-horse-battery-staple", ca_file=authority.ca)
        assert client.feeds() == []
        with pytest.raises(Refused, match="token"):
            Client(url, ca_file=authority.ca).feeds()
        with pytest.raises(tidemill.Retryable, match="certificate"):
            Client(url, "correct-horse-battery-staple").feeds()
        child.process.send_signal(signal.SIGTERM)
        assert child.exit_status() == 0


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--http", "0.0.0.0:0"], "--token-file"),
        (["--http", "nowhere"], "host:port"),
        (["--http", "127.0.0.1:99999"], "host:port"),
        (["--tls-cert", "x.pem"], "both or neither"),
        (["--sorter-memory", "much"], "--sorter-memory"),
        (["--token-file", "missing"], "--token-file"),
    ],
)
def test_wrong_flags_are_named(tmp_path, call, flags, said) -> None:
    code, _, error = call("serve", tmp_path / "x", *flags)
    assert code == 2
    assert said in error
    assert "Traceback" not in error


def test_the_commands_speak_to_a_server(serve, tidb, tmp_path, call, monkeypatch) -> None:
    token = "correct-horse-battery-staple"
    served = serve(access={"tokens": {token: "alice"}})
    monkeypatch.setenv("TIDEMILL_TOKEN", token)
    document = {
        "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
        "sink": [{"url": f"sqlite:///{tmp_path}/copy.db"}],
    }
    to = ["--server", served.url]
    assert call("status", *to) == (0, "the server has no feeds\n", "")
    served.client.create({**document, "name": "a"})
    served.until("a", "normal")
    code, out, _ = call("status", *to)
    assert (code, "normal" in out) == (0, True)
    assert call("pause", *to) == (0, "a: stopped\n", "")
    served.client.create({**document, "name": "b", "sink": [{"url": f"sqlite:///{tmp_path}/b.db"}]})
    code, _, error = call("pause", *to)
    assert (code, "--feed: name one of the server's feeds: a, b" in error) == (2, True)
    code, out, _ = call("resume", *to, "--feed", "a")
    assert (code, out[:3]) == (0, "a: ")
    code, out, _ = call("status", *to, "--feed", "a", "--json")
    assert (code, '"name":"a"' in out) == (0, True)
    assert call("explain", *to, "--feed", "b")[0] == 0
    assert call("snapshot", "shop.item", *to, "--feed", "b") == (0, "shop.item: loaded again now\n", "")
    code, _, error = call("snapshot", "other.item", *to, "--feed", "b")
    assert (code, "doesn't follow" in error) == (1, True)
    monkeypatch.setenv("TIDEMILL_TOKEN", "")
    code, _, error = call("status", *to)
    assert (code, "token" in error) == (1, True)
    file = tmp_path / "token"
    file.write_text(token)
    assert call("status", *to, "--token-file", file)[0] == 0
    code, _, error = call("status", "feed.toml", *to)
    assert (code, "--server: give it without a feed file" in error) == (2, True)
