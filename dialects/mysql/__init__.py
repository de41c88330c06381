"""MySQL and MariaDB as a database to write, define and read."""
