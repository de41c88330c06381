"""The private MySQL of these tests."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tidemill.testing.mysql import MySql


def query(server: MySql, sql: str, **options: object) -> list[tuple[object, ...]]:
    with server.connect(**options) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())


def test_the_server_is_mysql_9_7_with_gtids_and_full_metadata(mysql97: MySql) -> None:
    ((version, *found),) = query(
        mysql97, "SELECT VERSION(), @@log_bin, @@gtid_mode, @@binlog_format, @@binlog_row_metadata"
    )
    assert str(version).startswith("9.7.")
    assert found == [1, "ON", "ROW", "FULL"]


def test_a_login_works_with_and_without_tls(mysql97: MySql) -> None:
    cipher = "SHOW STATUS LIKE 'Ssl_cipher'"
    assert query(mysql97, cipher, ssl_disabled=True) == [("Ssl_cipher", "")]
    assert query(mysql97, cipher) != [("Ssl_cipher", "")]


def test_servers_of_one_template_are_different_ones(mysql97: MySql, private_mysql: MySql) -> None:
    identity = "SELECT @@server_uuid"
    assert query(private_mysql.start(), identity) != query(mysql97, identity)


def test_a_killed_server_comes_back_on_its_port(private_mysql: MySql) -> None:
    server = private_mysql.start()
    port = server.port
    query(server, "CREATE DATABASE shop")
    server.kill()
    server.start()
    assert server.port == port
    assert ("shop",) in query(server, "SHOW DATABASES")


def test_preparing_it_again_does_nothing_and_a_machine_without_apt_is_told_why(tmp_path: Path) -> None:
    script = Path(__file__).parent / "mysql97"
    home = tmp_path / "home"
    (home / "usr/sbin").mkdir(parents=True)
    (home / "usr/sbin/mysqld").touch(mode=0o755)
    for program in "dirname", "mkdir", "basename":
        (tmp_path / program).symlink_to(f"/usr/bin/{program}")
    only = {"PATH": str(tmp_path)}
    again = subprocess.run(["/bin/sh", script, home], env=only, capture_output=True, text=True, check=True)
    assert again.stdout + again.stderr == ""
    lost = subprocess.run(
        ["/bin/sh", script, tmp_path / "other"], env=only, capture_output=True, text=True, check=False
    )
    assert lost.returncode == 1
    assert lost.stderr.endswith("are left out: this is no Debian with apt-get\n")
