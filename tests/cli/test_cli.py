"""The command line without a server: what it accepts, prints and answers mistakes with."""

import json
import platform
import sqlite3

import msgspec
import pytest

import tidemill
from tidemill.codec.native import library
from tidemill.engine.status import FeedStatus, SinkStatus, StatusFile
from tidemill.events import Chunk, Wait
from tidemill.sink.kind import SinkContext
from tidemill.sink.registry import given_sink, open_given
from tidemill.testing.changes import ORDERS, MemoryStore, batch, create, insert, transaction, update

FEED = """\
data_dir = "{directory}"

[source]
url = "mysql://nobody@127.0.0.1:1"
tables = ["shop.*"]

[[sink]]
url = "sqlite:///{directory}/copy.db"
"""

STATUS = FeedStatus(
    name="shop",
    state="stopped",
    detail="",
    pid=1,
    updated=100.0,
    started=90.0,
    source="mariadb server 1",
    position="binlog.000001:4",
    rows=12_000,
    transactions=3,
    rows_per_second=1.5,
    memory_bytes=3 << 20,
    sorter_memory_bytes=0,
    sorter_disk_bytes=0,
    sinks=[SinkStatus("copy", "sqlite:/var/lib/copy.db", "binlog.000001:4", 1, 2.5, 12_000)],
    waits=[Wait("sink copy", "answer", 3.0, on="sqlite:/var/lib/copy.db")],
)


ENCODE = (
    "source.url: the user name or password has a character that means something else in a URL: "
    "percent-encode it (/ is %2F, # is %23, ? is %3F, @ is %40)"
)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "feed.toml"
    path.write_text(FEED.format(directory=tmp_path))
    return path


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["run", "none.toml"], "none.toml: No such file or directory"),
        (
            ["run"],
            'source.url: missing; for instance "mysql://user:password@host:3306" or'
            ' "tikv://pd1:2379,pd2:2379" or "pump://host:8250,host:8250"',
        ),
        (
            ["run", "--source", "mysql://db", "--sink", "sqlite:///x.db"],
            'source.tables: no pattern given; name at least one, for instance "shop.*"',
        ),
        (
            ["run", "--source", "mysql://db", "--table", "shop.*"],
            'sink: none is named; for instance [[sink]] with url = "sqlite:///copy.db"',
        ),
        (
            ["run", "--source", "oracle://db", "--table", "shop.*"],
            "source.url: no source 'oracle'; accepted: mysql, mariadb, tikv, pump, binlog",
        ),
        *(
            (["run", "--source", f"mysql://root:{password}@db:3306", "--table", "shop.*"], ENCODE)
            for password in ("pass/word", "1/2", "pass#word", "1#2", "1?2", "pass?word", "[")
        ),
        (
            ["run", "--source", "mysql://db:3306/shop", "--table", "shop.*"],
            "source.url: ends after host and port; the tables are chosen by source.tables",
        ),
        (
            ["run", "--source", "mysql://db", "--sink", "sqlite:///x.db", "--table", "shop"],
            "source.tables: 'shop' is not a pattern; write \"schema.table\", with * and ? as wildcards "
            'and ! in front to exclude, for instance "shop.*" or "!shop.tmp_*"',
        ),
    ],
)
def test_a_mistake_is_one_sentence_and_status_2(call, arguments, sentence):
    assert call(*arguments) == (2, "", f"tidemill: {sentence}\n")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            'source = "mysql://db"\ntables = ["shop.*"]\n',
            'source: expected a table: write [source], and below it url = "…" and tables = ["…"]',
        ),
        (
            'tables = ["shop.*"]\n[source]\nurl = "mysql://db"\n',
            "tables: it is a key of [source] or of a [[sink]]: write it below one of them",
        ),
        (
            '[source]\nurl = "pump://p1"\ntables = ["shop.*"]\n',
            "source.pd: missing: pump:// names the pumps only, and the schema is read from TiKV: give the "
            'addresses of the placement drivers, pd = ["pd1:2379"]',
        ),
        (
            '[source]\nurl = "mysql://u:p@db:x"\ntables = ["shop.*"]\n',
            "source.url: 'x', the port of db, is not a number from 1 to 65535",
        ),
    ],
)
def test_a_mistake_in_a_file_says_what_to_write(call, config, text, sentence):
    config.write_text(text)
    assert call("check", config) == (2, "", f"tidemill: {sentence}\n")


def test_a_mistyped_mode_of_a_bench_is_one_sentence(call):
    sentence = "--mode: no mode 'boht'; accepted: write, fetch, both, latency, tables"
    assert call("bench", "sorter", "--mode", "boht") == (2, "", f"tidemill: {sentence}\n")


def test_flags_go_before_the_file(call, config):
    assert call("run", config, "--source", "oracle://db")[2].startswith(
        "tidemill: source.url: no source 'oracle'"
    )


@pytest.mark.parametrize(
    ("section", "key", "nearest"),
    [
        ("spark", "partition", "partitions"),
        ("spark.backfill", "chunk_row", "chunk_rows"),
        ("capture", "listne", "listen"),
    ],
)
@pytest.mark.parametrize("command", ["run", "check"])
def test_a_mistake_in_a_section_of_another_command_is_named(call, config, command, section, key, nearest):
    config.write_text(f"{config.read_text()}\n[{section}]\n{key} = 2\n")
    status, _, err = call(command, config)
    assert status == 2
    sentence = f"tidemill: {section}.{key}: no such key; did you mean {nearest!r}? (accepted: "
    assert err.startswith(sentence)


@pytest.mark.parametrize(
    "flags", [["--master", "local[2]"], ["--partitions", "2"], ["--config", "spark.a=1"]]
)
def test_a_flag_for_spark_is_refused_without_it(call, config, flags):
    assert call("run", config, *flags) == (2, "", f"tidemill: {flags[0]}: it is for --engine spark\n")


@pytest.mark.parametrize("command", ["status", "explain"])
def test_where_no_feed_has_run_status_is_1(call, tmp_path, command):
    said = f"tidemill: {tmp_path}/status.json: No such file or directory: no feed has run here\n"
    assert call(command, "--data-dir", tmp_path) == (1, "", said)


def test_status_prints_every_figure_uncut(call, tmp_path):
    StatusFile(tmp_path).save(STATUS)
    status, out, _ = call("status", "--data-dir", tmp_path)
    assert status == 0
    for figure in "stopped", "binlog.000001:4", "12,000 rows", "sqlite:/var/lib/copy.db", "2.5 s", "3.0 MiB":
        assert figure in out


def test_status_for_machines_is_the_whole_status(call, tmp_path):
    StatusFile(tmp_path).save(STATUS)
    assert msgspec.json.decode(call("status", "--data-dir", tmp_path, "--json")[1], type=FeedStatus) == STATUS


def test_the_status_of_a_feed_that_failed_is_1_and_says_why(call, config, tmp_path):
    StatusFile(tmp_path).save(msgspec.structs.replace(STATUS, state="failed", detail="the disk is full"))
    status, out, _ = call("status", config)
    assert (status, "the disk is full" in out) == (1, True)
    wanted = "feed shop: failed: the disk is full: free space on that disk, or enlarge it\n"
    assert call("explain", config) == (0, wanted, "")


@pytest.mark.parametrize("in_use", [True, False])
def test_the_version_is_printed_with_the_decoder_and_pythons(call, monkeypatch, in_use):
    monkeypatch.setattr(library, "in_use", in_use)
    decoder = "native" if in_use else "python (the native decoder isn't used: "
    status, out, err = call("--version")
    assert (status, err) == (0, "")
    assert out.startswith(f"tidemill {tidemill.__version__}, decoder {decoder}")
    assert out.endswith(f", Python {platform.python_version()}\n")


@pytest.mark.parametrize("command", ["status", "explain", "locks"])
def test_reading_a_status_needs_no_password(call, config, tmp_path, command):
    StatusFile(tmp_path).save(STATUS)
    config.write_text(config.read_text().replace("nobody@", "repl:${NO_SUCH_PASSWORD}@"))
    status, out, err = call(command, config)
    assert (status, err) == (0, "")
    assert out
    config.write_text(config.read_text().replace(f'"{tmp_path}"', "5", 1))
    assert call(command, config) == (2, "", "tidemill: data_dir: expected `str`, got `int`\n")


def test_explain_is_sentences_or_a_list_of_them(call, tmp_path):
    running = msgspec.structs.replace(STATUS, state="normal")
    file = StatusFile(tmp_path)
    file.claim()
    file.save(running)
    lines = [
        "feed shop: normal: sink copy has waited 3.0 s for an answer of sqlite:/var/lib/copy.db: see if it "
        "runs, if it is reached from here, and what it is busy with",
        "sink copy has waited 3.0 s for an answer of sqlite:/var/lib/copy.db",
        "the furthest behind is sink copy, by 2.5 s",
    ]
    assert call("explain", "--data-dir", tmp_path)[1].splitlines() == lines
    assert json.loads(call("explain", "--data-dir", tmp_path, "--json")[1]) == lines


def test_check_of_a_source_that_does_not_answer_is_1_and_makes_nothing(call, config, tmp_path):
    status, out, err = call("check", config)
    assert (status, err) == (1, "")
    assert out.startswith("error   source: 127.0.0.1:1: Can't connect to MySQL server on '127.0.0.1'")
    assert f"ok      sink sink-1: {tmp_path}/copy.db will be made\n" in out
    assert out.endswith(f"ok      decoder: {library.description()}\n")
    assert list(tmp_path.iterdir()) == [config]


# --- dead letters


@pytest.fixture
def rejected(config, tmp_path):
    """A feed whose sink has two letters of a row, and one of another; its target."""
    given = given_sink("sink-1", f"sqlite:///{tmp_path}/copy.db", {"on_error": "dead letters"})
    sink = open_given(given, SinkContext(name="sink-1", feed="tidemill", store=MemoryStore()))
    sink.open()
    for item in create(1, ORDERS), transaction(2, chunk=Chunk("")):
        sink.write(batch(item))
    sink.flush()
    target = sqlite3.connect(tmp_path / "copy.db", isolation_level=None)
    target.execute('CREATE UNIQUE INDEX notes ON "shop.orders" (note)')
    rows = (
        insert(ORDERS, 1, "a"),
        insert(ORDERS, 2, "a"),
        update(ORDERS, (2, "a"), (2, "b")),
        insert(ORDERS, 3, "a"),
    )
    sink.write(batch(transaction(30, *rows)))
    sink.flush()
    sink.close()
    yield target
    target.close()


def test_dead_letters_are_listed(call, config, rejected):
    assert call("dead-letters", "list", config) == (
        0,
        "sink-1 1: insert of shop.orders (id=2) at 30: UNIQUE constraint failed: shop.orders.note\n"
        "sink-1 2: update of shop.orders (id=2) at 30: an earlier change of the same row is a dead letter\n"
        "sink-1 3: insert of shop.orders (id=3) at 30: UNIQUE constraint failed: shop.orders.note\n",
        "",
    )
    assert call("dead-letters", "list", config, "--table", "shop.other") == (0, "", "")
    _, out, _ = call("dead-letters", "list", config, "--id", "2", "--json")
    line = json.loads(out)
    assert (line["sink"], line["ts"], line["position"]) == ("sink-1", 30, "log:30")
    assert (line["before"], line["after"]) == ({"id": 2, "note": "a"}, {"id": 2, "note": "b"})


def test_dead_letters_are_applied_again(call, config, rejected):
    status, out, _ = call("dead-letters", "retry", config)
    assert (status, out.count("rejected again: ")) == (1, 2)
    rejected.execute("DROP INDEX notes")
    assert call("dead-letters", "retry", config, "--id", "3", "--json") == (
        0,
        '{"sink": "sink-1", "applied": [3], "rejected": []}\n',
        "",
    )
    assert call("dead-letters", "retry", config)[:2] == (0, "sink-1: 2 applied\n")
    assert rejected.execute('SELECT * FROM "shop.orders"').fetchall() == [(1, "a"), (2, "b"), (3, "a")]


def test_dead_letters_are_dropped(call, config, rejected):
    assert call("dead-letters", "drop", config, "--id", "3")[:2] == (0, "sink-1: 1 dropped\n")
    assert call("dead-letters", "drop", config, "--json")[1] == '{"sink": "sink-1", "dropped": [1, 2]}\n'
    assert call("dead-letters", "list", config) == (0, "", "")


def test_a_target_without_letters_has_none(call, config):
    assert call("dead-letters", "list", config) == (0, "", "")
    assert call("dead-letters", "drop", config)[:2] == (0, "sink-1: 0 dropped\n")


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--sink", "none"], "--sink none: there is no such sink; accepted: sink-1, second, lines"),
        (["--sink", "lines"], "dead letters are kept by SQL targets only, and none is meant here"),
        (["--id", "1"], "--id 1: add --sink, as each sink has its own numbers"),
    ],
)
def test_mistakes_about_dead_letters_are_one_sentence(call, config, flags, sentence):
    more = '[[sink]]\nname = "second"\nurl = "sqlite:///second.db"\n[[sink]]\nname = "lines"\nurl = "file:///x"\n'
    config.write_text(config.read_text() + more)
    assert call("dead-letters", "list", config, *flags) == (2, "", f"tidemill: {sentence}\n")
