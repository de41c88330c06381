"""Checkpoints of TiDB-Binlog's drainer: read from it, and written so that it can go on from them."""
