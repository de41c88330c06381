"""Keys of copies in a real MariaDB, by which transactions conflict."""

from __future__ import annotations

from tidemill.dialects.address import parsed
from tidemill.dialects.mysql.mysql import MySqlDatabase
from tidemill.dialects.options import MySqlOptions
from tidemill.events import Column, Table
from tidemill.testing.mariadb import MariaDb

ID = Column("id", "int", nullable=False)
LINES = Table("shop", "lines", (ID, Column("item", "int"), Column("gift", "int")), key=(0,))


def test_each_of_two_foreign_keys_to_the_same_parent_key_is_a_reference(
    mariadb: MariaDb, database: str
) -> None:
    mariadb.execute(
        "CREATE TABLE items (id INT PRIMARY KEY)",
        "CREATE TABLE `lines` (id INT PRIMARY KEY, item INT, gift INT, "
        "FOREIGN KEY (item) REFERENCES items (id), FOREIGN KEY (gift) REFERENCES items (id))",
        database=database,
    )
    target = MySqlDatabase(parsed(mariadb.url(database)), MySqlOptions(), "test")
    target.connect()
    try:
        references = target.rows.keys_of(LINES).references
    finally:
        target.close()
    parent = f"{database}.items (id)"
    assert [(key.name, [part.column for part in key.parts]) for key in references] == [
        (parent, [1]),
        (parent, [2]),
    ]
