"""Feeds of a server over its API: created, paused, resumed, replaced, removed; seen over restarts."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidemill.client import Refused
from tidemill.emulator.sql.sql import Tidb
from tidemill.server.model.feeds import Rescanned
from tidemill.server.model.tables import TablesQuery
from tidemill.testing.progress import eventually


@pytest.fixture(scope="module")
def tidb():
    with Tidb(stores=1, tick_seconds=0.02) as cluster:
        cluster.execute("create database shop")
        cluster.execute("create table shop.item (id int primary key)")
        yield cluster


def document(tidb: Tidb, directory: Path, name: str = "shop") -> dict[str, Any]:
    return {
        "name": name,
        "source": {"url": f"tikv://{tidb.pd_address}", "tables": ["shop.*"]},
        "sink": [{"name": "copy", "url": f"sqlite:///{directory}/{name}.db"}],
    }


def copied(directory: Path, name: str = "shop") -> list[int]:
    """Return the keys in the copy; none while its table isn't there yet."""
    with closing(sqlite3.connect(directory / f"{name}.db")) as connection:
        if not connection.execute("select 1 from sqlite_master where name = 'shop.item'").fetchall():
            return []
        return [row[0] for row in connection.execute('select id from "shop.item" order by id')]


def arrives(directory: Path, number: int, name: str = "shop") -> None:
    eventually(lambda: number in copied(directory, name), sign=lambda: copied(directory, name))


numbers = iter(range(1, 1000))


def insert(tidb: Tidb) -> int:
    number = next(numbers)
    with tidb.transaction() as txn:
        txn.insert("shop.item", (number,))
    return number


def test_a_feed_is_created_paused_resumed_and_removed(served, tidb, tmp_path) -> None:
    client = served.client
    assert client.create(document(tidb, tmp_path)).name == "shop"
    served.until("shop", "normal")
    arrives(tmp_path, insert(tidb))
    assert client.pause("shop").state == "stopped"
    missed = insert(tidb)
    assert missed not in copied(tmp_path)
    assert client.resume("shop").name == "shop"
    arrives(tmp_path, missed)
    assert [feed.name for feed in client.feeds()] == ["shop"]
    client.delete("shop", data=True)
    assert client.feeds() == []
    assert [path.name for path in (tmp_path / "feeds").glob("*.toml")] == []
    assert not (tmp_path / "feeds" / "data" / "shop").exists()


def test_files_are_found_by_a_rescan_and_lost_ones_are_told(served, tidb, tmp_path) -> None:
    client, feeds = served.client, tmp_path / "feeds"
    client.create(document(tidb, tmp_path))
    written = (feeds / "shop.toml").read_text()
    (feeds / "later.toml").write_text(written.replace('"shop"', '"later"').replace("shop.db", "later.db"))
    (feeds / "no feed.toml").write_text("")
    (feeds / "broken.toml").write_text("source = 7")
    assert client.rescan() == Rescanned(["broken", "later"], [], [], ["no feed.toml"])
    served.until("later", "normal")
    served.until("broken", "failed")
    arrives(tmp_path, insert(tidb), "later")
    (feeds / "shop.toml").write_text(f'on_table_error = "park"\n{written}')
    (feeds / "later.toml").unlink()
    assert client.rescan() == Rescanned([], ["shop"], ["later"], ["no feed.toml"])
    arrives(tmp_path, insert(tidb), "later")
    client.pause("shop")
    client.resume("shop")
    served.until("shop", "normal")
    client.delete("later")
    assert client.rescan() == Rescanned([], [], [], ["no feed.toml"])
    assert "its file was found" in [one.text for one in client.history("broken")]


def test_the_history_names_states_operations_and_who_asked(serve, tidb, tmp_path) -> None:
    served = serve(access={"tokens": {"t" * 20: "alice"}})
    served.client.create(document(tidb, tmp_path))
    served.until("shop", "normal")
    served.client.pause("shop")
    said = [(one.kind, one.text, one.by) for one in served.client.history("shop")]
    assert ("operation", "created", "alice") in said
    assert ("operation", "paused", "alice") in said
    assert ("state", "normal", "") in said
    assert said[0] == ("state", "stopped", "") or said[1] == ("state", "stopped", "")


def test_wishes_survive_a_restart_of_the_server(serve, tidb, tmp_path) -> None:
    served = serve()
    served.client.create(document(tidb, tmp_path, "a"))
    served.client.create(document(tidb, tmp_path, "b"))
    served.until("a", "normal")
    served.client.pause("b")
    served.registry.close()
    again = serve()
    again.until("a", "normal")
    assert again.client.feed("b").feed.state == "stopped"
    assert ("operation", "paused") in [(one.kind, one.text) for one in again.client.history("b")]


def test_options_are_replaced_without_telling_secrets(served, tidb, tmp_path) -> None:
    client = served.client
    client.create(document(tidb, tmp_path))
    served.until("shop", "normal")
    arrives(tmp_path, insert(tidb))
    shown = client.feed("shop").options
    shown["sink"][0]["url"] = f"sqlite:///{tmp_path}/other.db"
    client.replace("shop", shown)
    served.until("shop", "normal")
    eventually(lambda: (tmp_path / "other.db").exists())
    with pytest.raises(Refused, match="can't be renamed") as refused:
        client.replace("shop", {**shown, "name": "other"})
    assert (refused.value.status, refused.value.field) == (422, "name")


def test_a_wrong_file_fails_its_feed_only(serve, tidb, tmp_path) -> None:
    feeds = tmp_path / "feeds"
    feeds.mkdir()
    (feeds / "bad.toml").write_text("oops = 1")
    (feeds / "worse.toml").write_text("= [")
    served = serve()
    served.client.create(document(tidb, tmp_path))
    served.until("shop", "normal")
    states = {feed.name: (feed.state, feed.detail) for feed in served.client.feeds()}
    assert states["bad"][0] == states["worse"][0] == "failed"
    assert "source.url: missing" in states["bad"][1]
    assert "not TOML" in states["worse"][1]
    answer = served.request("GET", "/ready")
    assert answer.status == 503
    assert "feed bad is failed" in answer.body["error"]["message"]
    served.client.delete("bad")
    served.client.delete("worse")
    assert served.request("GET", "/ready")[:2] == (200, {"ready": True})


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": "no name"}, "name"),
        ({"name": None}, "name"),
        ({"source": {"url": "nosql://x", "tables": ["a.*"]}}, "source.url"),
        ({"source": {"tables": ["a.*"]}}, "source.url"),
        ({"sink": [{"url": "sqlite:///x", "safe_mod": True}]}, "sink sink-1: safe_mod"),
        ({"sorter": {"memory_bytes": "many"}}, "sorter.memory_bytes"),
        ({"surprise": 1}, "surprise"),
        ({"verify": {"every": "soon"}}, "verify.every"),
        ({"verify": {}, "sink": [{"url": "kafka://127.0.0.1/shop"}]}, "verify"),
        ({"source": {"url": "mysql://${NO_SUCH_VARIABLE}@x", "tables": ["a.*"]}}, "source.url"),
    ],
)
def test_a_wrong_document_is_refused_and_stores_nothing(served, tidb, tmp_path, change, field) -> None:
    with pytest.raises(Refused) as refused:
        served.client.create({**document(tidb, tmp_path), **change})
    assert (refused.value.status, refused.value.code, refused.value.field) == (422, "invalid", field)
    assert served.client.feeds() == []
    assert [*(tmp_path / "feeds").glob("*.toml")] == []


def test_a_feed_is_created_once(served, tidb, tmp_path) -> None:
    served.client.create(document(tidb, tmp_path))
    with pytest.raises(Refused, match="already") as refused:
        served.client.create(document(tidb, tmp_path))
    assert refused.value.status == 409


def test_data_outside_of_the_servers_directory_is_never_removed(served, tidb, tmp_path) -> None:
    outside = tmp_path / "precious"
    served.client.create({**document(tidb, tmp_path), "data_dir": str(outside)})
    served.until("shop", "normal")
    with pytest.raises(Refused, match="remove it yourself"):
        served.client.delete("shop", data=True)
    served.until("shop", "normal")
    served.client.delete("shop")
    assert outside.is_dir()


def test_two_servers_dont_share_a_directory(served, tmp_path) -> None:
    from tidemill.errors import ConfigError
    from tidemill.server.registry import Registry

    second = Registry(directory=tmp_path / "feeds")
    with pytest.raises(ConfigError, match="another server"):
        second.start()
    second.close()


def test_a_comparison_is_a_job(served, tidb, tmp_path) -> None:
    client = served.client
    client.create(document(tidb, tmp_path))
    served.until("shop", "normal")
    arrives(tmp_path, insert(tidb))
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        connection.execute('delete from "shop.item"')
        connection.commit()
    job = client.start_diff("shop")
    ended = eventually(
        lambda: one if (one := client.diff("shop", job)).ended else None,
        sign=lambda: client.diff("shop", job),
    )
    assert (ended.state, ended.is_equal, ended.error, ended.percent) == ("done", False, "", 100.0)
    assert ended.differences == len(ended.found) > 0
    assert ended.found[0]["kind"] == "missing"
    assert [one.job for one in client.diffs("shop")] == [job]
    assert client.stop_diff("shop", job).state == "done"
    with pytest.raises(Refused, match="no comparison"):
        client.diff("shop", "999")


def test_a_feed_that_verifies_its_target_says_what_differs(served, tidb, tmp_path) -> None:
    number = insert(tidb)
    served.client.create(document(tidb, tmp_path) | {"verify": {"every": "1s", "share": 1}})
    served.until("shop", "normal")
    arrives(tmp_path, number)
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute(f'delete from "shop.item" where id={number}')
    (one,) = eventually(
        lambda: [one for one in served.client.feed("shop").status.verify if one.diverged],
        sign=lambda: served.client.feed("shop").status.verify,
    )
    assert one.divergences[0].rows == (f"shop.item id={number}: missing in the target",)
    served.until("shop", "warning")
    assert (
        f"shop.item (1 missing, 0 only there, 0 changed, id={number})"
        in served.client.waits("shop").explanation[0]
    )
    assert b"tidemill_verify_differences" in served.request("GET", "/metrics").body
    served.client.pause("shop")
    assert served.client.feed("shop").status.verify[0].detail == "the feed doesn't run"


def test_tables_sinks_waits_locks_and_checks_answer(served, tidb, tmp_path) -> None:
    client = served.client
    client.create(document(tidb, tmp_path))
    served.until("shop", "normal")
    arrives(tmp_path, insert(tidb))
    assert client.sinks("shop").sinks[0].name == "copy"
    assert isinstance(client.waits("shop").explanation, list)
    assert client.locks("shop").locks == []
    assert client.dead_letters("shop").total == 0
    assert {one.level for one in client.check(document(tidb, tmp_path, "other"))} <= {"ok", "warning"}
    assert client.server().feeds == {"normal": 1}
    with pytest.raises(Refused, match="no lock"):
        client.unlock("shop", "a-`b`.`c`")
    with pytest.raises(Refused, match="doesn't follow"):
        client.reload_table("shop", "other.table")
    lag = b'tidemill_lag_seconds{feed="shop",sink="copy",stage="total"}'
    eventually(lambda: lag in served.request("GET", "/metrics").body)


def test_a_table_is_paused_resumed_and_listed_while_the_others_go_on(served, tidb, tmp_path) -> None:
    client = served.client
    tidb.execute("create table shop.other (id int primary key)")
    client.create(document(tidb, tmp_path))
    served.until("shop", "normal")
    arrives(tmp_path, insert(tidb))

    def state(name: str) -> str:
        return client.table("shop", name).state

    assert client.pause_table("shop", "shop.other") == [
        "shop.other is paused: its changes are skipped until it is resumed"
    ]
    eventually(lambda: state("shop.other") == "paused", sign=lambda: state("shop.other"))
    with tidb.transaction() as txn:
        txn.insert("shop.other", (1,))
    arrives(tmp_path, insert(tidb))
    assert others(tmp_path) == []
    listed = client.tables("shop", TablesQuery(state="paused"))
    assert [one.name for one in listed.tables] == ["shop.other"]
    assert listed.states == client.feed("shop").feed.table_states == {"following": 1, "paused": 1}
    with pytest.raises(Refused, match="it is paused already"):
        client.pause_table("shop", "shop.other")
    client.resume_table("shop", "shop.other")
    eventually(lambda: others(tmp_path) == [1], sign=lambda: others(tmp_path))
    eventually(lambda: state("shop.other") == "following", sign=lambda: state("shop.other"))
    assert {one.text for one in client.history("shop")} >= {"shop.other: paused", "shop.other: resumed"}


def others(directory: Path) -> list[int]:
    with closing(sqlite3.connect(directory / "shop.db")) as connection:
        return [row[0] for row in connection.execute('select id from "shop.other"')]
