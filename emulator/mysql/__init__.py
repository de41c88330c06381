"""A MariaDB in your process: statements and rows from Python, a binlog that replicas follow."""
