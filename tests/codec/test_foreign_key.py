"""Foreign keys in statements."""

import pytest

from tidemill.codec.mysql.foreign_key import changing_rules
from tidemill.codec.mysql.tokens import ANSI_QUOTES

KID = "CREATE TABLE kid (id INT, p INT, FOREIGN KEY (p) REFERENCES par (id)"


@pytest.mark.parametrize(
    ("statement", "rules"),
    [
        (f"{KID})", []),
        (f"{KID} ON DELETE RESTRICT ON UPDATE NO ACTION)", []),
        (f"{KID} on delete cascade)", ["ON DELETE CASCADE"]),
        (f"{KID} ON UPDATE SET NULL ON DELETE SET DEFAULT)", ["ON UPDATE SET NULL", "ON DELETE SET DEFAULT"]),
        (f"{KID} ON /* a comment */ DELETE -- and another\n CASCADE)", ["ON DELETE CASCADE"]),
        (f"{KID} /*!50000 ON DELETE CASCADE */)", ["ON DELETE CASCADE"]),
        ("CREATE TABLE t (a INT REFERENCES b (c) ON DELETE CASCADE)", ["ON DELETE CASCADE"]),
        (
            "ALTER TABLE t ADD CONSTRAINT x FOREIGN KEY (a) REFERENCES b (c) ON UPDATE CASCADE",
            ["ON UPDATE CASCADE"],
        ),
        ("CREATE TABLE t (a TIMESTAMP NULL ON UPDATE CURRENT_TIMESTAMP)", []),
        ("CREATE TABLE t (a INT COMMENT 'ON DELETE CASCADE', `ON DELETE CASCADE` INT)", []),
        ('CREATE TABLE t ("ON DELETE CASCADE" INT)', []),
    ],
)
def test_the_rules_by_which_rows_change(statement, rules):
    assert changing_rules(statement, ANSI_QUOTES if '"' in statement else 0) == rules
