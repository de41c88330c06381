from tidemill.events import PENDING, REST, STALE, WHOLE, TableProgress
from tidemill.events.checkpoint import load_again


def test_tables_are_loaded_again_but_for_those_that_the_first_snapshot_has_not_come_to():
    begun = {"shop.item": TableProgress((7,)), "shop.new": PENDING}
    assert load_again(begun, ["shop.item", "shop.new", "shop.later"]) == {
        "shop.item": STALE,
        "shop.new": PENDING,
    }


def test_after_the_first_snapshot_every_table_can_be_loaded_again():
    assert load_again(None, ["shop.item"]) == {REST: WHOLE, "shop.item": STALE}
