"""Names of tables of several sources: plain in each source, with the source's name in the feed."""

from __future__ import annotations

import msgspec
import pytest

from tidemill.errors import CheckpointError
from tidemill.events import CREATED, REST, WHOLE, Checkpoint, Chunk, Ddl, Table, TablePosition, Transaction
from tidemill.sharding.merged_table import MergedState, MergedTable
from tidemill.sharding.shard import Shard
from tidemill.sources.table_names import TableNames

NAMES = TableNames(["north", "south"])
AT = TablePosition(5, "five")
TABLE = Table("all", "item", ())
TABLES = {"north": [("shop", "item"), ("shop", "own")], "south": [("shop", "item")]}


def state(**fields) -> dict[str, str]:
    made = MergedState(("all", "item"), [Shard("south", "shop", "item")], TABLE, **fields)
    return {"merged all.item": msgspec.json.encode(made).decode()}


def test_items_of_a_source_have_its_name():
    ddl = Ddl(1, 1, "id", "shop", "item", "CREATE", ())
    assert NAMES.item(ddl, "north").origin_name == "north: shop.item"
    loaded = Transaction(1, 1, "id", [], chunk=Chunk("shop.item", WHOLE))
    assert NAMES.item(loaded, "south").chunk.table == "south: shop.item"
    end = Transaction(1, 1, "id", [], chunk=Chunk(""))
    assert NAMES.item(end, "south") is end
    assert TableNames().item(ddl, "north") is ddl


def test_a_source_is_told_its_own_part_of_the_snapshot_s_progress():
    loading = {"north: shop.item": WHOLE, "south: shop.item": CREATED, REST: WHOLE}
    assert NAMES.loading(loading, "south") == {"shop.item": CREATED, REST: WHOLE}
    assert NAMES.loading(None, "south") is None
    assert TableNames().loading(loading, "south") is loading


def test_a_checkpoint_of_an_earlier_version_gets_the_names_of_sources():
    old = Checkpoint(
        9, "nine", {"shop.own": WHOLE, "shop.item": CREATED}, "id", None, {"shop.item": AT}, state()
    )
    found = NAMES.adopted(old, TABLES)
    assert found.loading == {"north: shop.own": WHOLE, "south: shop.item": CREATED}
    assert found.tables == {"south: shop.item": AT}
    assert NAMES.adopted(found, TABLES) == found
    assert TableNames().adopted(old, TABLES) is old


def test_a_checkpoint_s_table_of_an_unknown_source_is_refused():
    for name, count in (("shop.item", 2), ("shop.gone", 0)):
        with pytest.raises(
            CheckpointError, match=rf"^table {name} of the checkpoint is in {count} of the sources"
        ):
            NAMES.adopted(Checkpoint(9, "nine", None, "id", None, {name: AT}), TABLES)


def test_the_state_of_a_merged_table_of_an_earlier_version_is_read():
    old = state(definitions={"shop.item": TABLE}, dropped={"shop.item": ["c"]}, owed={"shop.item": ["form"]})
    merged = MergedTable.restored("feed", old["merged all.item"])
    name = "south: shop.item"
    assert msgspec.json.decode(merged.state, type=MergedState) == MergedState(
        ("all", "item"),
        [Shard("south", "shop", "item")],
        TABLE,
        {name: TABLE},
        {name: ["c"]},
        {name: ["form"]},
    )
