"""Keys of copies in a real PostgreSQL, and what waits for the SQL transactions of lost workers."""

from __future__ import annotations

import pytest

from tidemill.dialects.address import parsed
from tidemill.dialects.applied import Applied
from tidemill.dialects.options import PostgresOptions
from tidemill.dialects.postgres.postgres import PostgresDatabase
from tidemill.dialects.worker import Advance, Start
from tidemill.errors import Retryable
from tidemill.testing.conflicts import ITEMS, LINES, NOTES, POSTGRES_COPY


@pytest.fixture
def target(postgresql, postgres_database):
    made = PostgresDatabase(parsed(postgresql.url(postgres_database)), PostgresOptions(), "test")
    made.connect()
    for statement in POSTGRES_COPY:
        made.session.execute(statement)
    yield made
    made.close()


def columns_of(keys):
    return {key.name: [part.column for part in key.parts] for key in keys}


def test_keys_are_primary_unique_and_foreign_ones(target):
    items, lines = target.rows.keys_of(ITEMS), target.rows.keys_of(LINES)
    assert columns_of(items.unique) == {
        "shop.items (id)": [0],
        "shop.items (code)": [1],
        "shop.items (slot)": [2],
    }
    assert columns_of(lines.unique) == {"shop.lines (id)": [0]}
    assert columns_of(lines.references) == {"shop.items (id)": [1]}
    assert items.shared == lines.shared == ("shop.items",)
    assert not items.references + items.taken + lines.taken
    assert target.rows.keys_of(NOTES).unique == ()


@pytest.mark.parametrize(
    "definition",
    [
        "CREATE UNIQUE INDEX ON shop.items (lower(code))",
        "CREATE UNIQUE INDEX ON shop.items (code) WHERE n > 3",
        "CREATE UNIQUE INDEX ON shop.items (code varchar_pattern_ops)",
        "ALTER TABLE shop.items ADD EXCLUDE USING btree (n WITH =)",
        "ALTER TABLE shop.items ALTER code TYPE text",
        "CREATE COLLATION any_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false); "
        "ALTER TABLE shop.items ALTER code TYPE varchar(20) COLLATE any_case",
    ],
)
def test_a_table_with_a_unique_key_that_may_call_other_values_equal_is_one_key(target, definition):
    target.session.execute(definition)
    assert target.rows.keys_of(ITEMS).unique == ()
    assert columns_of(target.rows.keys_of(LINES).references) == {"shop.items (id)": [1]}


def test_an_index_that_is_not_unique_and_columns_that_are_only_included_are_no_keys(target):
    target.session.execute("CREATE INDEX ON shop.items (lower(code)); CREATE INDEX ON shop.items (n)")
    target.session.execute("CREATE UNIQUE INDEX ON shop.items (n, slot) INCLUDE (code)")
    assert columns_of(target.rows.keys_of(ITEMS).unique)["shop.items (n, slot)"] == [3, 2]


def test_a_foreign_key_whose_column_is_of_another_type_takes_the_whole_parent(target):
    target.session.execute("ALTER TABLE shop.lines ALTER item TYPE bigint")
    lines = target.rows.keys_of(LINES)
    assert (lines.references, lines.shared, lines.taken) == ((), (), ("shop.items",))


def test_records_are_read_once_no_worker_may_add_one(target):
    worker = target.another()
    worker.connect_worker()
    assert worker.begin_work(Start(Applied((7, 9))))
    target.session.execute("SET lock_timeout = '100ms'")
    with pytest.raises(Exception, match="lock timeout") as met:
        target.store.load()
    assert isinstance(target.explain(met.value, "connecting"), Retryable)
    target.session.rollback()
    worker.commit()
    assert target.store.load() == [Applied((7, 9))]
    worker.close()


def test_a_worker_that_finds_another_checkpoint_does_not_begin(target):
    worker = target.another()
    worker.connect_worker()
    target.save_checkpoint(None, 5, "five")
    assert not worker.begin_work(Start(advance=Advance(4, 6, "six")))
    worker.rollback()
    assert worker.begin_work(Start(advance=Advance(5, 6, "six")))
    worker.commit()
    assert target.load_checkpoint() == "six"
    worker.close()
