"""Going on at another server of a replication topology, after the same GTIDs."""

from __future__ import annotations

from ...codec.mysql.gtid import parse_gtids
from ...codec.mysql.position import Position
from ...dialects.mysql.client import Session, Unavailable, is_mariadb, query
from ...errors import CheckpointError
from .options import MysqlOptions


def check_reached(session: Session, options: MysqlOptions, position: Position) -> None:
    """Check that the server has every transaction before `position`.

    Raises Unavailable if it lags behind, and CheckpointError if nothing shows that it has the same
    transactions. Raises pymysql's errors: use it inside translated().
    """
    wanted = parse_gtids(position.gtid)
    text = written_gtids(session)
    here = parse_gtids(text)
    if not here.meets(wanted):
        raise CheckpointError(
            f"{options.address} is another server than the one of the checkpoint, {position}, and its GTIDs "
            f"({text or 'none'}) don't show that it replicates the same changes: connect to a replica that "
            "writes them to its binlog, or remove the checkpoint to begin with a new snapshot"
        )
    if not here.contains(wanted):
        raise Unavailable(
            f"{options.address} is behind: it has {text}, and the checkpoint is at {position.gtid}"
        )


def written_gtids(session: Session) -> str:
    """Return the GTIDs of the transactions in the server's binlog, those that were purged included."""
    variable = "@@gtid_binlog_pos" if is_mariadb(session) else "@@global.gtid_executed"
    return "".join(str(query(session, f"SELECT {variable}")[0][0] or "").split())


def gtids_at(session: Session, position: Position) -> str | None:
    """Return the GTIDs before a position of this server; None if it can't tell."""
    if not is_mariadb(session):
        return position.gtid or None
    gtids = query(session, "SELECT BINLOG_GTID_POS(%s, %s)", position.file, position.offset)[0][0]
    return None if gtids is None else str(gtids)
