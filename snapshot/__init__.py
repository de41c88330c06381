"""Chunks of tables: bounds by key, rows read in views, and the overlay that makes them exact at a position.

`mysql/` reads chunks of MariaDB and MySQL, each in a view that lies between two positions of the log; `tikv/`
reads all at one ts, at which they are exact. Who uses them puts the chunks where they belong.
"""
