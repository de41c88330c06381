"""Snapshots of one table: tasks read its columns, keys and ranges, by SELECTs or by scans of TiKV."""
