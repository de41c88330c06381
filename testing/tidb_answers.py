"""Answers of TiDB that differ from MySQL's: texts of its errors.toml, and those to a syntax that it lacks."""

from __future__ import annotations

from typing import Final

from .answers import Answer

_COLLATIONS: Final = (
    "ascii_bin", "binary", "gbk_bin", "gbk_chinese_ci", "latin1_bin", "utf8_bin", "utf8_general_ci",
    "utf8_unicode_ci", "utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci",
)  # fmt: skip

SETTINGS: Final = Answer(r"SET tidb_txn_mode='pessimistic', tidb_tmp_table_max_size=\d+", instead="DO 0")

TRY_AGAIN: Final = {
    8002: "[1] can not retry select for update statement",
    8005: "Write conflict, txnStartTS 430138355034357762 is stale [try again later]",
    8022: "Error: KV error safe to retry Error(Txn(Error(Mvcc(Error(TxnLockNotFound))))) [try again later]",
    8027: "Information schema is out of date: schema failed to update in 1 lease, please make sure TiDB can"
    " connect to TiKV",
    8028: "Information schema is changed during the execution of the statement(for example, table definition"
    " may be updated by other DDL ran in parallel). If you see this error often, try increasing"
    " `tidb_max_delta_schema_count`. [try again later]",
    9001: "PD server timeout",
    9002: "TiKV server timeout",
    9003: "TiKV server is busy",
    9004: "Resolve lock timeout",
    9005: "Region is unavailable",
    9007: "Write conflict, txnStartTS=430138355034357762, conflictStartTS=430138355034357761,"
    " conflictCommitTS=430138355034357763, key={tableID=76, handle=1} [try again later]",
    1105: "tikv aborts txn: Error(Txn(Error(...))) [try again later]",
}
"""Errors after which the same transaction may succeed."""

TOO_LARGE: Final = (8025, "entry too large, the max entry size is 6291456, the size of data is 7690800")
CLUSTERED: Final = (8200, "Unsupported drop primary key when the table is using clustered index")


def version(number: str) -> Answer:
    return Answer(r"VERSION\(\)", instead=f"'8.0.11-TiDB-v{number}'")


def _syntax(near: str) -> tuple[int, str]:
    return 1064, (
        "You have an error in your SQL syntax; check the manual that corresponds to your TiDB version for the"
        f' right syntax to use line 1 column 40 near "{near}"'
    )


def dialect(number: str = "8.1.0") -> list[Answer]:
    """Return the answers of a TiDB of this version to statements that MySQL takes."""
    collations = " UNION ".join(f"SELECT '{name}' AS COLLATION_NAME" for name in _COLLATIONS)
    return [
        version(number),
        SETTINGS,
        Answer(r"@@tidb_current_ts", instead="430138355034357764"),
        Answer(r"SELECT COLLATION_NAME FROM information_schema\.COLLATIONS$", instead=collations),
        Answer(
            r"CREATE (TEMPORARY )?TABLE [^;]*\bSELECT\b",
            (1105, "'CREATE TABLE ... SELECT' is not implemented yet"),
        ),
        Answer(r"CREATE TEMPORARY TABLE \S+ LIKE .*;\s*ALTER", _syntax("ALTER")),
        Answer(r"WITH CONSISTENT SNAPSHOT, READ ONLY", _syntax(", READ ONLY")),
        Answer(r"^ALTER TABLE .*DROP PRIMARY KEY", CLUSTERED),
        Answer(r"^(CREATE|ALTER) TABLE .* (geometry|point)\b", _syntax("geometry NULL")),
        Answer(r"^(CREATE|ALTER) TABLE .*\bSPATIAL\b", _syntax("SPATIAL KEY")),
        Answer(
            r"^(CREATE|ALTER) TABLE .*(text|blob|json)[^,]* NULL DEFAULT",
            (1101, "BLOB/TEXT/JSON column 't' can't have a default value"),
        ),
        Answer(r"LOAD DATA", (1105, "LOAD DATA was sent to a server that splits it into transactions")),
    ]
