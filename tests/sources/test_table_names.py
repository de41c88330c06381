"""Names of tables of several sources: plain in each source, with the source's name in the feed."""

from __future__ import annotations

from tidemill.events import CREATED, REST, WHOLE, Chunk, Ddl, Transaction
from tidemill.sources.table_names import TableNames

NAMES = TableNames(["north", "south"])


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
