"""Kinds of DDL jobs. Numbers and names are TiDB's (ActionType of its model package)."""

from __future__ import annotations

from enum import IntEnum


class Action(IntEnum):
    """The `type` of a job. A job's type stays an int: a newer TiDB has types that are missing here."""

    NONE = 0
    CREATE_SCHEMA = 1
    DROP_SCHEMA = 2
    CREATE_TABLE = 3
    DROP_TABLE = 4
    ADD_COLUMN = 5
    DROP_COLUMN = 6
    ADD_INDEX = 7
    DROP_INDEX = 8
    ADD_FOREIGN_KEY = 9
    DROP_FOREIGN_KEY = 10
    TRUNCATE_TABLE = 11
    MODIFY_COLUMN = 12
    REBASE_AUTO_ID = 13
    RENAME_TABLE = 14
    SET_DEFAULT_VALUE = 15
    SHARD_ROW_ID = 16
    MODIFY_TABLE_COMMENT = 17
    RENAME_INDEX = 18
    ADD_TABLE_PARTITION = 19
    DROP_TABLE_PARTITION = 20
    CREATE_VIEW = 21
    MODIFY_TABLE_CHARSET_AND_COLLATE = 22
    TRUNCATE_TABLE_PARTITION = 23
    DROP_VIEW = 24
    RECOVER_TABLE = 25
    MODIFY_SCHEMA_CHARSET_AND_COLLATE = 26
    LOCK_TABLE = 27
    UNLOCK_TABLE = 28
    REPAIR_TABLE = 29
    SET_TIFLASH_REPLICA = 30
    UPDATE_TIFLASH_REPLICA_STATUS = 31
    ADD_PRIMARY_KEY = 32
    DROP_PRIMARY_KEY = 33
    CREATE_SEQUENCE = 34
    ALTER_SEQUENCE = 35
    DROP_SEQUENCE = 36
    ADD_COLUMNS = 37
    DROP_COLUMNS = 38
    MODIFY_TABLE_AUTO_ID_CACHE = 39
    REBASE_AUTO_RANDOM_BASE = 40
    ALTER_INDEX_VISIBILITY = 41
    EXCHANGE_TABLE_PARTITION = 42
    ADD_CHECK_CONSTRAINT = 43
    DROP_CHECK_CONSTRAINT = 44
    ALTER_CHECK_CONSTRAINT = 45
    ALTER_TABLE_ALTER_PARTITION = 46
    RENAME_TABLES = 47
    DROP_INDEXES = 48
    ALTER_TABLE_ATTRIBUTES = 49
    ALTER_TABLE_PARTITION_ATTRIBUTES = 50
    CREATE_PLACEMENT_POLICY = 51
    ALTER_PLACEMENT_POLICY = 52
    DROP_PLACEMENT_POLICY = 53
    ALTER_TABLE_PARTITION_PLACEMENT = 54
    MODIFY_SCHEMA_DEFAULT_PLACEMENT = 55
    ALTER_TABLE_PLACEMENT = 56
    ALTER_CACHE_TABLE = 57
    ALTER_TABLE_STATS_OPTIONS = 58
    ALTER_NO_CACHE_TABLE = 59
    CREATE_TABLES = 60
    MULTI_SCHEMA_CHANGE = 61
    FLASHBACK_CLUSTER = 62
    RECOVER_SCHEMA = 63
    REORGANIZE_PARTITION = 64
    ALTER_TTL_INFO = 65
    ALTER_TTL_REMOVE = 67
    CREATE_RESOURCE_GROUP = 68
    ALTER_RESOURCE_GROUP = 69
    DROP_RESOURCE_GROUP = 70
    ALTER_TABLE_PARTITIONING = 71
    REMOVE_PARTITIONING = 72


_NAMES = {
    Action.REBASE_AUTO_ID: "rebase auto_increment ID",
    Action.SHARD_ROW_ID: "shard row ID",
    Action.ADD_TABLE_PARTITION: "add partition",
    Action.DROP_TABLE_PARTITION: "drop partition",
    Action.TRUNCATE_TABLE_PARTITION: "truncate partition",
    Action.MODIFY_TABLE_AUTO_ID_CACHE: "modify auto id cache",
    Action.REBASE_AUTO_RANDOM_BASE: "rebase auto_random ID",
    Action.EXCHANGE_TABLE_PARTITION: "exchange partition",
    Action.ALTER_TABLE_ALTER_PARTITION: "alter partition",
    Action.ALTER_CACHE_TABLE: "alter table cache",
    Action.ALTER_NO_CACHE_TABLE: "alter table nocache",
    Action.ALTER_TABLE_STATS_OPTIONS: "alter table statistics options",
    Action.MULTI_SCHEMA_CHANGE: "alter table multi-schema change",
    Action.RECOVER_SCHEMA: "flashback schema",
    Action.REORGANIZE_PARTITION: "alter table reorganize partition",
    Action.ALTER_TTL_INFO: "alter table ttl",
    Action.ALTER_TTL_REMOVE: "alter table no_ttl",
    Action.ALTER_TABLE_PARTITIONING: "alter table partition by",
    Action.REMOVE_PARTITIONING: "alter table remove partitioning",
}
"""TiDB's names that differ from the constant's words."""


def action_name(number: int) -> str:
    """Return the name of a job's type in TiDB's ADMIN SHOW DDL JOBS; "action 99" for an unknown one."""
    try:
        action = Action(number)
    except ValueError:
        return f"action {number}"
    return _NAMES.get(action) or action.name.lower().replace("_", " ")
