"""Lakes are analyzed and kept while their feeds write: each change, and each row, stays there once."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from msgspec.structs import replace
from pyiceberg.table import Table as IcebergTable

from tidemill import failpoint
from tidemill.errors import ConfigError, Retryable, SinkError
from tidemill.events import AddColumn, ChangeColumn, Column, CreateTable, Ddl, Table
from tidemill.sink.files.lakes.delta_table import Delta
from tidemill.sink.files.lakes.upkeep import (
    LakePlan,
    LakeReport,
    LakeStep,
    LakeTable,
    decode_lake_plan,
    lake_of,
)
from tidemill.sink.registry import given_sink
from tidemill.spark.analytics.lake_page import lake_page
from tidemill.testing.changes import delete, insert, transaction, update
from tidemill.testing.s3 import LOGIN, S3Process

from .copies import DeltaCopies, IcebergCopies
from .fed_lake import ITEM, NAME, Ahead, FedLake, actions
from .lakes import DeltaBucket, DeltaLake, IcebergBucket, IcebergLake, RestLake

PLACES = {
    "delta history": DeltaLake,
    "delta copy": DeltaCopies,
    "iceberg history": IcebergLake,
    "iceberg copy": IcebergCopies,
}
OFTEN = {"flush_seconds": 0.0, "journal_seconds": 0.0}


@pytest.fixture(params=PLACES)
def fed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FedLake]:
    made = FedLake(PLACES[request.param](tmp_path / "lake", **OFTEN))
    yield made
    made.sink.close()


@pytest.fixture
def observed() -> Iterator[Callable[[str, Callable[[], object]], None]]:
    """Call a function at the first pass of a point."""

    def at(point: str, then: Callable[[], object]) -> None:
        def see(name: str) -> None:
            if name == point:
                failpoint.observe(None)
                then()

        failpoint.observe(see)

    yield at
    failpoint.observe(None)


def item(report: LakeReport) -> LakeTable:
    return next(one for one in report.tables if one.folder == NAME)


def step(action: Any) -> LakeStep:
    return LakeStep(NAME, action, [], 1, 0, 0, 0, 1.0)


def only(plan: LakePlan, *chosen: Any) -> LakePlan:
    return replace(plan, steps=[step(action) for action in chosen])


def own(plan: LakePlan) -> LakePlan:
    return replace(plan, steps=[one for one in plan.steps if one.folder == NAME])


def test_small_files_are_joined_beside_the_feed(fed: FedLake) -> None:
    fed.insert(22)
    report, plan = fed.analyzed()
    was = item(report)
    joins = "sort" if was.kind == "history" else "join"
    assert actions(plan)[0] == joins
    assert (was.files, was.small_files, was.files_after, was.rows) == (22, 22, 1, 22)
    outcomes = fed.kept(plan)
    assert [one.left for one in outcomes] == [""] * len(plan.steps)
    (done,) = [one for one in outcomes if one.step.folder == NAME and one.step.action == joins]
    assert (done.files_before, done.files_after) == (22, 1)
    fed.check()
    after, next_plan = fed.analyzed()
    now = item(after)
    assert (now.files, now.rows, now.unused_files) == (1, 22, 22)
    assert joins not in actions(next_plan)
    fed.change()
    fed.check()
    fed.reopen()
    fed.change()
    fed.check()
    page = lake_page(report, plan, 0.0)
    assert "shop.item: 22 files of" in page
    assert "small files of shop.item" in page


def test_joined_rows_are_in_the_order_of_their_commits_with_the_source_s_definition(fed: FedLake) -> None:
    for _ in range(4):
        fed.change()
    _, plan = fed.analyzed()
    fed.kept(plan)
    report, _ = fed.analyzed()
    if item(report).kind == "history":
        rows = fed.place.arrow(NAME).to_pylist()  # type: ignore[union-attr]
        order = [(row["commit_ts"], row["sequence"]) for row in rows]
        assert order == sorted(order)
        assert (item(report).keys or 0) > 4  # which are counted by the definition


def test_keys_are_counted_with_the_changes_of_each(tmp_path: Path) -> None:
    fed = FedLake(IcebergLake(tmp_path / "lake", **OFTEN))
    fed.commit(insert(ITEM, 1, "a"), insert(ITEM, 2, "b"))
    for number in range(6):
        fed.commit(update(ITEM, (1, fed.rows[1]), (1, f"a{number}")))
    fed.commit(update(ITEM, (2, "b"), (3, "b")), delete(ITEM, 1, fed.rows[1]))
    report, plan = fed.analyzed()
    found = item(report)
    assert (found.keys, found.changes) == (3, 11)
    assert [(one.key, one.changes) for one in found.hot_keys] == [('{"id":1}', 8), ('{"id":2}', 2)]
    assert "73 % of the changes are of one row" in lake_page(report, plan, 0.0)
    fed.sink.close()


def test_deleted_rows_are_found_and_purged(fed: FedLake) -> None:
    fed.insert(1, 40)
    keys = range(1, 41, 4)
    fed.commit(*[delete(ITEM, key, fed.rows[key]) for key in keys])
    report, plan = fed.analyzed()
    found = item(report)
    if found.kind == "history":
        assert found.deleted_rows == 0
        return
    assert (found.rows, found.deleted_rows, found.partitions[0].name) == (30, 10, "")
    assert actions(plan) == ["purge"]
    assert "25 % of the rows in its files are deleted" in lake_page(report, plan, 0.0)
    assert [one.left for one in fed.kept(plan) if one.step.folder == NAME] == [""]
    assert item(fed.analyzed()[0]).deleted_rows == 0
    fed.check()
    fed.change()
    fed.check()


# --- beside commits


def test_a_feed_commits_while_files_are_joined(fed: FedLake, observed: Any) -> None:
    """Rows of the joined files change, in several ways, before the commit."""
    fed.insert(6, 3)

    def changes() -> None:
        for _ in range(3):
            fed.change()
        keys = list(fed.rows)
        fed.commit(delete(ITEM, keys[0], fed.rows[keys[0]]))

    observed("upkeep.written", changes)
    _, plan = fed.analyzed()
    assert [one.left for one in fed.kept(own(plan))] == [""]
    fed.check()
    assert item(fed.analyzed()[0]).files < 6 + 7
    fed.change()
    fed.check()
    fed.reopen()
    fed.change()
    fed.check()


def test_all_rows_of_a_joined_file_are_deleted_meanwhile(fed: FedLake, observed: Any) -> None:
    fed.insert(5, 2)
    observed("upkeep.written", lambda: fed.commit(*[delete(ITEM, key, fed.rows[key]) for key in (1, 2)]))
    _, plan = fed.analyzed()
    fed.kept(own(plan))
    fed.check()
    fed.change()
    fed.check()


@pytest.mark.parametrize("point", ["sink.committed", "lake.adding", "copy.changing", "copy.committing"])
def test_files_are_joined_while_the_feed_is_in_a_commit(fed: FedLake, observed: Any, point: str) -> None:
    fed.insert(6)
    _, plan = fed.analyzed()
    said: list[str] = []
    observed(point, lambda: said.extend(one.left for one in fed.kept(only(plan, "join"))))
    fed.commit(update(ITEM, (3, fed.rows[3]), (3, "changed")))
    failpoint.observe(None)
    fed.change()
    fed.check()
    assert not any(said)
    fed.kept(only(plan, "join"))
    fed.check()


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 2))])
def test_feed_and_upkeep_take_turns_at_random(fed: FedLake, seed: int) -> None:
    """At any point of either one, the other does something, too."""
    random = fed.random
    random.seed(seed)
    depth = 0

    def see(name: str) -> None:
        nonlocal depth
        is_ours = name.startswith("upkeep.")
        if depth == 0 and random.random() < 0.15 and (is_ours or not name.startswith("upkeep")):
            depth += 1
            if is_ours:
                fed.change()
            else:
                upkeep()
            depth -= 1

    def upkeep() -> None:
        lake = fed.lake()
        lake.close()
        fed.kept(LakePlan(2, lake.url, 168, 1 << 30, [step(random.choice(["join", "purge", "expire"]))]))

    fed.insert(3, 2)
    failpoint.observe(see)
    for _ in range(8):
        random.choice([fed.change, fed.change, upkeep])()
    failpoint.observe(None)
    fed.check()
    fed.reopen()
    fed.change()
    fed.check()


def test_files_are_joined_while_the_feed_adds_a_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The feed has read the table's log, and changes the columns of the version before."""
    fed = FedLake(DeltaLake(tmp_path / "lake", **OFTEN))
    fed.insert(5)
    _, plan = fed.analyzed()
    real: Callable[..., Any] = Delta._widened
    done: list[str] = []

    def widened(self: Delta, table: DeltaTable, fields: pa.Schema) -> Any:
        if not done and "item" in table.table_uri:
            done.extend(one.left for one in fed.kept(own(plan)))
        return real(self, table, fields)

    monkeypatch.setattr(Delta, "_widened", widened)
    widen(fed)
    assert done == [""]
    fed.check()
    fed.sink.close()


def widen(fed: FedLake) -> None:
    """Add a column, and a row that has it."""
    wide = replace(ITEM, columns=(*ITEM.columns, Column("more", "int")))
    action = AddColumn(wide.columns[2])
    fed.write(Ddl(fed._tick(), 0, "src", "shop", "item", "ALTER TABLE item ADD more INT", (action,)))
    fed.changes += 1
    fed.rows[99] = "new"
    fed.write(transaction(fed._tick(), insert(wide, 99, "new", 7)))


def test_files_of_iceberg_from_before_columns_exchanged_their_names_are_joined(tmp_path: Path) -> None:
    """Readers leave out files by the bounds of a column: those of the joined file are of the right one."""
    columns = (Column("id", "int", nullable=False), Column("a", "int"), Column("b", "int"))
    pairs = Table("shop", "pair", columns, (0,))
    fed = FedLake(IcebergCopies(tmp_path / "lake", **OFTEN))
    fed.write(Ddl(fed._tick(), 0, "src", "shop", "pair", "", (CreateTable(pairs),)))
    for key in range(5):
        fed.write(transaction(fed._tick(), insert(pairs, key, 1_000 + key, key)))
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        action = ChangeColumn(old, Column(new, "int"), Column(old, "int"))
        fed.write(Ddl(fed._tick(), 0, "src", "shop", "pair", "", (action,)))
    _, plan = fed.analyzed()
    outcomes = fed.kept(replace(plan, steps=[one for one in plan.steps if one.folder == "shop.pair"]))
    assert [one.left for one in outcomes] == [""]
    assert outcomes[0].files_after == 1
    pair = fed.place.catalog().load_table("shop.pair")  # type: ignore[union-attr]
    assert sorted(pair.scan(row_filter="b >= 1003").to_arrow()["id"].to_pylist()) == [3, 4]
    assert pair.scan(row_filter="a >= 1000").to_arrow().num_rows == 0
    fed.sink.close()


def test_a_table_that_is_altered_meanwhile_is_left(fed: FedLake, observed: Any) -> None:
    fed.insert(5)
    observed("upkeep.written", lambda: widen(fed))
    _, plan = fed.analyzed()
    (outcome,) = fed.kept(own(plan))
    assert "were changed meanwhile: plan again" in outcome.left
    fed.check()


# --- old versions and leftovers


def test_old_files_are_removed_and_those_of_a_commit_are_not(
    fed: FedLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The feed dies after its commit is saved, and before its files are in the table."""
    fed.insert(6)
    _, plan = fed.analyzed()
    fed.kept(only(plan, "join"))

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(type(fed.sink._commits._target.layout), "announce", dies)
        with pytest.raises(KeyboardInterrupt):
            fed.insert(1)
    stray = Path(fed.place.path) / NAME / "stray.parquet"
    stray.write_bytes(b"of a writer that died")
    report, plan = fed.analyzed(days=30)
    found = item(report)
    if found.kind == "history":
        assert found.unannounced == 1
        assert "vacuum" not in actions(plan)
        assert "until it has, nothing is removed" in lake_page(report, plan, 0.0)
        (outcome,) = fed.kept(only(plan, "vacuum"), days=30)
        assert "a feed has yet to add 1 files of a commit" in outcome.left
        assert outcome.files_before == outcome.files_after
    fed.reopen()
    fed.check()
    _, plan = fed.analyzed(days=30)
    assert "vacuum" in actions(plan)
    assert not [one.left for one in fed.kept(plan, days=30) if one.left]
    assert not stray.exists()
    report, plan = fed.analyzed(days=30)
    assert item(report).removable_files == 0
    assert "vacuum" not in actions(plan)
    fed.check()
    fed.change()
    fed.check()
    fed.reopen()
    fed.change()
    fed.check()


def test_a_removal_dies_and_is_repeated(fed: FedLake) -> None:
    fed.insert(6)
    _, plan = fed.analyzed()
    fed.kept(only(plan, "join"))
    left = 3

    def see(name: str) -> None:
        nonlocal left
        left -= name == "upkeep.removing"
        if not left:
            raise KeyboardInterrupt

    failpoint.observe(see)
    with pytest.raises(KeyboardInterrupt):
        fed.kept(only(plan, "vacuum"), days=30)
    failpoint.observe(None)
    fed.check()
    fed.change()
    assert [one.left for one in fed.kept(only(plan, "vacuum"), days=30)] == [""]
    assert item(fed.analyzed(days=30)[0]).removable_files == 0
    fed.check()


def test_young_files_stay(fed: FedLake) -> None:
    fed.insert(6)
    _, plan = fed.analyzed()
    fed.kept(only(plan, "join"))
    report, plan = fed.analyzed()
    assert (item(report).unused_files, item(report).removable_files) == (6, 0)
    (outcome,) = fed.kept(only(plan, "vacuum"))
    assert (outcome.left, outcome.files_before) == ("", outcome.files_after)


@pytest.mark.parametrize("kind", ["history", "copy"])
def test_old_snapshots_of_iceberg_are_forgotten_and_tags_stay(tmp_path: Path, kind: str) -> None:
    fed = FedLake(PLACES[f"iceberg {kind}"](tmp_path / "lake", **OFTEN))
    fed.insert(12)
    table = iceberg(fed)
    tagged = table.metadata.snapshots[5].snapshot_id
    rows = table.scan(snapshot_id=tagged).to_arrow().num_rows
    table.manage_snapshots().create_tag(tagged, "audit").commit()
    fed.insert(13)
    report, plan = fed.analyzed(days=30)
    found = item(report)
    assert found.versions - found.old_versions == 2
    assert "expire" in actions(plan)
    assert "Forget old snapshots of shop.item" in lake_page(report, plan, 0.0)
    assert not [one.left for one in fed.kept(plan, days=30) if one.left]
    table = iceberg(fed)
    assert {one.snapshot_id for one in table.metadata.snapshots} >= {tagged}
    assert len(table.metadata.snapshots) <= 3  # and that of the joined files
    assert table.scan(snapshot_id=tagged).to_arrow().num_rows == rows
    fed.check()
    fed.change()
    fed.check()
    fed.sink.close()


def iceberg(fed: FedLake) -> IcebergTable:
    return fed.place.catalog().load_table(NAME)  # type: ignore[union-attr]


def test_older_versions_can_be_read_until_they_are_removed(tmp_path: Path) -> None:
    fed = FedLake(DeltaLake(tmp_path / "lake", **OFTEN))
    fed.insert(6)
    version = fed.place.version(NAME)
    _, plan = fed.analyzed()
    fed.kept(plan)
    fed.kept(only(plan, "vacuum"))
    assert fed.place.arrow(NAME, version).num_rows == 6
    log = DeltaTable(tmp_path / "lake" / NAME).history(1)
    assert log[0]["operation"] == "OPTIMIZE"
    fed.sink.close()


def test_a_log_gets_a_checkpoint(tmp_path: Path) -> None:
    fed = FedLake(DeltaLake(tmp_path / "lake", **OFTEN))
    fed.insert(24)
    report, plan = fed.analyzed()
    assert item(report).replayed > 20
    assert actions(plan) == ["sort", "checkpoint"]
    assert [one.left for one in fed.kept(plan) if one.left] == []
    assert item(fed.analyzed()[0]).replayed <= 1
    fed.change()
    fed.check()
    fed.sink.close()


# --- other places


def test_a_lake_of_delta_in_a_bucket() -> None:
    os.environ.update(LOGIN)
    with S3Process() as server:  # delta-rs holds the interpreter's lock while it waits
        server.bucket("lake")
        fed = FedLake(DeltaBucket(server, "lake/x", **IN_BUCKET))  # type: ignore[arg-type]
        in_bucket(fed)
        fed.sink.close()


IN_BUCKET = {"format": "parquet", **OFTEN}


def in_bucket(fed: FedLake) -> None:
    fed.insert(5)
    _, plan = fed.analyzed()
    assert "sort" in actions(plan)
    assert not [one.left for one in fed.kept(own(plan)) if one.left]
    fed.check()
    fed.change()
    fed.check()
    _, plan = fed.analyzed(days=30)
    assert "vacuum" in actions(plan)
    assert not [one.left for one in fed.kept(own(plan), days=30) if one.left]
    fed.check()


def test_a_lake_of_iceberg_in_a_bucket_that_denies_access(
    s3_server: Any, bucket: str, tmp_path: Path
) -> None:
    fed = FedLake(IcebergBucket(s3_server, f"{bucket}/lake", tmp_path, **IN_BUCKET))
    in_bucket(fed)
    fed.insert(4)
    _, plan = fed.analyzed()
    s3_server.denies = True
    outcomes = fed.kept(own(plan))
    s3_server.denies = False
    assert [one.files_before == one.files_after for one in outcomes] == [True] * len(outcomes)
    assert "access is denied" in outcomes[0].left
    fed.change()
    fed.check()
    fed.sink.close()


def test_a_lake_in_a_rest_catalog(iceberg_rest: Any, tmp_path: Path) -> None:
    fed = FedLake(RestLake(tmp_path / "lake", iceberg_rest.port, **OFTEN))
    fed.insert(5)
    _, plan = fed.analyzed()
    assert not [one.left for one in fed.kept(plan) if one.left]
    fed.check()
    fed.change()
    _, plan = fed.analyzed(days=30)
    assert not [one.left for one in fed.kept(plan, days=30) if one.left]
    fed.check()
    iceberg_rest.kill()
    with pytest.raises(Retryable, match="the catalog doesn't answer as it should"):
        fed.lake()
    iceberg_rest.restart()
    fed.change()
    fed.check()
    fed.sink.close()


# --- what isn't a feed's


def test_a_table_of_another_program_is_joined_with_its_partitions(tmp_path: Path) -> None:
    for day in ("a", "b c"):
        for number in range(4):
            rows = pa.table({"n": [number], "day": [day]})
            write_deltalake(tmp_path / "others", rows, mode="append", partition_by=["day"])
    lake = opened(f"delta://{tmp_path}")
    from tidemill.sink.files.lakes.upkeep import analyze_lake, carry_out, plan_of

    report = analyze_lake(lake, Ahead())
    (found,) = report.tables
    assert (found.kind, found.rows, [one.name for one in found.partitions]) == ("rows", 8, ["a", "b c"])
    assert [one.left for one in carry_out(lake, plan_of(report), Ahead())] == [""]
    table = DeltaTable(tmp_path / "others")
    assert len(table.file_uris()) == 2
    rows = table.to_pyarrow_table().sort_by([("day", "ascending"), ("n", "ascending")]).to_pylist()
    assert rows == [{"n": number, "day": day} for day in ("a", "b c") for number in range(4)]


def opened(url: str) -> Any:
    return lake_of(url, given_sink("lake", url).options)


def test_a_table_of_a_newer_format_is_left_out_with_the_reason(tmp_path: Path) -> None:
    fed = FedLake(IcebergLake(tmp_path / "lake", **OFTEN))
    fed.insert(2)
    fed.place.make("shop.newer", pa.table({"n": [1]}))  # type: ignore[union-attr]
    with fed.place.catalog() as catalog:  # type: ignore[union-attr]
        path = Path(catalog.load_table("shop.newer").metadata_location.removeprefix("file://"))
    metadata = json.loads(path.read_text())
    path.write_text(json.dumps({**metadata, "format-version": 3, "next-row-id": 0}))
    report, plan = fed.analyzed()
    assert [one.folder for one in report.left] == ["shop.newer"]
    assert "format version 3" in report.left[0].why
    assert "shop.newer isn&#x27;t in this report" in lake_page(report, plan, 0.0)
    fed.sink.close()


def test_a_delta_table_with_unknown_features_is_left_out(tmp_path: Path) -> None:
    fed = FedLake(DeltaLake(tmp_path / "lake", **OFTEN))
    fed.insert(2)
    write_deltalake(tmp_path / "lake/shop.newer", pa.table({"n": [1]}))
    features = {"readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"]}
    protocol = {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    (tmp_path / f"lake/shop.newer/_delta_log/{1:020}.json").write_text(json.dumps(protocol))
    report, _ = fed.analyzed()
    assert [one.folder for one in report.left] == ["shop.newer"]
    assert "columnMapping" in report.left[0].why
    fed.sink.close()


def test_a_step_whose_table_is_gone_is_left_out(fed: FedLake) -> None:
    fed.insert(1)
    _, plan = fed.analyzed()
    gone = LakeStep("shop.gone", "vacuum", [], 1, 0, 0, 0, 1.0)
    (outcome,) = fed.kept(replace(plan, steps=[gone]))
    assert outcome.left == "there is no such table any more"
    assert "nothing was done: there is no such table" in outcome.line


@pytest.mark.parametrize(
    ("url", "error", "sentence"),
    [
        ("s3://bucket/x", ConfigError, r"s3://bucket/x: no lake that can be analyzed; accepted: delta:///"),
        ("delta://{0}", SinkError, "has no table of a lake"),
        ("delta://{0}/none", SinkError, "there is no such directory"),
        ("iceberg+sql://{0}", SinkError, r"catalog\.db: there is no catalog"),
    ],
)
def test_what_is_no_lake_is_said(tmp_path: Path, url: str, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        opened(url.format(tmp_path))
    assert list(tmp_path.iterdir()) == []  # nothing is made


def test_a_catalog_that_is_down_is_said(tmp_path: Path) -> None:
    (tmp_path / "shop.item").mkdir()
    with pytest.raises(Retryable, match="the catalog doesn't answer as it should"):
        opened(f"iceberg+rest://127.0.0.1:1?location={tmp_path}")


def test_what_is_no_plan_is_said() -> None:
    with pytest.raises(ConfigError, match=r"plan\.json is no plan of a lake: .*missing required field"):
        decode_lake_plan("{}", "plan.json")
    with pytest.raises(ConfigError, match=r"Expected `int` >= 1 - at `\$.keep_hours`"):
        decode_lake_plan(
            '{"version": 2, "lake": "", "keep_hours": 0, "target_bytes": 1, "steps": []}', "plan"
        )
    with pytest.raises(ConfigError, match="plan has version 1; accepted: 2"):
        decode_lake_plan(
            '{"version": 1, "lake": "", "keep_hours": 1, "target_bytes": 1, "steps": []}', "plan"
        )
