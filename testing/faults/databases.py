"""Faults of live feeds between databases: how each is made, which stage is to blame, and what is said of it.

A fault starts a feed in a Place, waits until it is healthy, and makes the fault there. The first line of the
explanation has to name the stage, to have the words, and must not blame an innocent stage.
"""

from __future__ import annotations

import sqlite3

from ..disk import small_disk
from ..progress import eventually
from .fault import SINK, SOURCE, fault
from .place import USER, Place, authority, stop, url_of

# --- the target ----------------------------------------------------------------------------------


@fault("lock", "PROCESSLIST", stage=SINK, quick=True)
def a_row_is_locked_in_the_target(place: Place) -> None:
    place.start()
    place.hold(place.to, "SELECT * FROM shop.item WHERE id = 1 FOR UPDATE")
    place.at_source("UPDATE shop.item SET name = 'new' WHERE id = 1")


@fault("lock", "PROCESSLIST", stage=SINK)
def a_table_is_locked_in_the_target(place: Place) -> None:
    place.start()
    place.hold(place.to, "LOCK TABLES shop.item WRITE")
    place.write()


@fault(r"slow|target to take", "triggers|PROCESSLIST", stage=SINK)
def a_sink_is_slow(place: Place) -> None:
    place.start()
    place.at_target(
        "CREATE TRIGGER shop.slow BEFORE INSERT ON shop.item FOR EACH ROW SET @slept = SLEEP(0.3)"
    )
    for _ in range(300):
        place.write()


@fault("disk is full|No space|full", "free space", stage=SINK)
def the_disk_of_the_target_is_full(place: Place) -> None:
    disk = place.stack.enter_context(small_disk(place.directory / "disk", 4))
    place.start(sink=f"sqlite:///{disk}/copy.db")
    place.write(300, 100_000)


@fault("No space", "free space", stage="")
def the_disk_of_the_sorter_is_full(place: Place) -> None:
    disk = place.stack.enter_context(small_disk(place.directory / "disk", 8))
    place.start(sorter={"memory_bytes": 0, "directory": str(disk / "scratch")})
    place.hold(place.to, "LOCK TABLES shop.item WRITE")
    place.write(600, 100_000)


@fault("command denied", "grant", stage=SINK, quick=True)
def a_right_in_the_target_is_revoked(place: Place) -> None:
    place.start()
    place.at_target(
        f"REVOKE ALL ON *.* FROM {USER}@'%'",
        f"GRANT SELECT, CREATE ON *.* TO {USER}@'%'",
        f"GRANT ALL ON tidemill.* TO {USER}@'%'",
    )
    place.kill_sessions(place.to)
    place.write()


@fault("Access denied", "password", stage=SINK)
def the_password_of_the_target_was_changed(place: Place) -> None:
    place.start()
    place.at_target(f"SET PASSWORD FOR {USER}@'%' = PASSWORD('rotated')")
    place.kill_sessions(place.to)
    place.write()


@fault(r"waited|silent|no answer", "network|reached|runs", stage=SINK)
def the_network_to_the_target_is_frozen(place: Place) -> None:
    proxy = place.freezable(place.to)
    place.start(sink=url_of(proxy.port))
    proxy.freeze()
    place.write()


@fault("refused|lost|gone|Can't connect", "see if the server runs", stage=SINK, quick=True)
def the_target_is_stopped(place: Place) -> None:
    place.start()
    place.to.kill()
    place.write()


@fault("resol|not known", "host name", stage=SINK, quick=True)
def the_name_of_the_target_is_unknown(place: Place) -> None:
    place.start(sink=url_of(3306, host="db.invalid"), healthy=False)


@fault("read.only", "writable", stage=SINK)
def the_target_is_read_only(place: Place) -> None:
    place.start()
    place.at_target("SET GLOBAL read_only = 1")
    place.write()


@fault("[Tt]oo many connections", "maximum number of connections", stage=SINK)
def the_target_has_too_many_connections(place: Place) -> None:
    place.start()
    place.at_target("SET GLOBAL max_connections = 10")
    place.kill_sessions(place.to)
    place.occupy(place.to)
    place.write()


@fault("item", "isn't there", "again", stage=SINK, quick=True)
def a_table_of_the_target_is_missing(place: Place) -> None:
    place.start()
    place.at_target("DROP TABLE shop.item")
    place.write()


@fault("item", "in the way|[Dd]uplicate|exists", stage=SINK, quick=True)
def a_row_is_in_the_way(place: Place) -> None:
    place.start()
    place.at_target("INSERT INTO shop.item VALUES (2, 'foreign')")
    place.write()


@fault("item", "no such row", "resnapshot", stage=SINK)
def a_row_of_the_target_is_missing(place: Place) -> None:
    place.start()
    place.at_target("DELETE FROM shop.item")
    place.at_source("UPDATE shop.item SET name = 'new' WHERE id = 1")


@fault("too long", "widen", stage=SINK, quick=True)
def a_value_is_too_long(place: Place) -> None:
    place.start()
    place.at_target("ALTER TABLE shop.item MODIFY name VARCHAR(8)")
    place.write(1, 100)


@fault("[Dd]eadlock", "what else writes", stage=SINK)
def the_target_reports_deadlocks(place: Place) -> None:
    place.start()
    place.at_target(
        "CREATE TRIGGER shop.dead BEFORE INSERT ON shop.item FOR EACH ROW"
        " SIGNAL SQLSTATE '40001' SET MYSQL_ERRNO = 1213, MESSAGE_TEXT = 'Deadlock found'"
    )
    place.write()


@fault("[Ll]ock wait timeout|target to take", "lock", stage=SINK)
def a_lock_of_the_target_times_out(place: Place) -> None:
    place.to = place.server("target", "--innodb-lock-wait-timeout=1")
    place.start()
    place.hold(place.to, "SELECT * FROM shop.item WHERE id = 1 FOR UPDATE")
    place.at_source("UPDATE shop.item SET name = 'new' WHERE id = 1")


@fault("locked", "fuser", stage=SINK, innocent="PROCESSLIST", quick=True)
def the_file_of_the_target_is_locked(place: Place) -> None:
    file = place.directory / "copy.db"
    place.start(sink=f"sqlite:///{file}")
    other = sqlite3.connect(file, isolation_level=None)
    place.stack.callback(other.close)
    other.execute("BEGIN IMMEDIATE")
    place.write()


@fault("large transaction", "smaller", stage=SINK)
def a_transaction_is_huge(place: Place) -> None:
    place.start()
    place.at_target(
        "CREATE TRIGGER shop.slow BEFORE INSERT ON shop.item FOR EACH ROW"
        " SET @slept = IF(NEW.id % 1000, 0, SLEEP(0.1))"
    )
    place.write(150_000, 20)


@fault(r"TLS|SSL", "TLS", stage=SINK, quick=True)
def the_target_has_no_tls(place: Place) -> None:
    place.start(sink=f"{url_of(place.to.port)}?ssl_ca={authority(place)}", healthy=False)


# --- the source ----------------------------------------------------------------------------------


@fault("purged|can't read the binlog|not available|Could not find", "resnapshot", stage=SOURCE)
def the_binlog_is_purged(place: Place) -> None:
    place.start()
    stop(place.feed)
    place.kill_sessions(place.from_)
    place.write()
    place.at_source("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    eventually(place.is_purged)
    place.start_again(healthy=False)


@fault("denied|may not|privilege", "[Gg][Rr][Aa][Nn][Tt]", stage=SOURCE)
def the_right_to_read_the_log_is_revoked(place: Place) -> None:
    place.start()
    place.at_source(f"REVOKE ALL ON *.* FROM {USER}@'%'", f"GRANT SELECT ON *.* TO {USER}@'%'")
    place.kill_sessions(place.from_)


@fault("Access denied", "password", stage=SOURCE, quick=True)
def the_password_of_the_source_was_changed(place: Place) -> None:
    place.start()
    place.at_source(f"SET PASSWORD FOR {USER}@'%' = PASSWORD('rotated')")
    place.kill_sessions(place.from_)


@fault("silent|waited", "reached|runs", stage=SOURCE)
def the_network_to_the_source_is_frozen(place: Place) -> None:
    proxy = place.freezable(place.from_)
    place.start(source=url_of(proxy.port))
    proxy.freeze()


@fault("refused|[Ll]ost|gone|Can't connect", "see if the server runs", stage=SOURCE, quick=True)
def the_source_is_stopped(place: Place) -> None:
    place.start()
    place.from_.kill()


@fault("resol|not known", "host name", stage=SOURCE, quick=True)
def the_name_of_the_source_is_unknown(place: Place) -> None:
    place.start(source=url_of(3306, host="db.invalid"), healthy=False)


@fault(r"TLS|SSL", "TLS", stage=SOURCE)
def the_source_has_no_tls(place: Place) -> None:
    place.start(section={"ssl_ca": authority(place)}, healthy=False)
