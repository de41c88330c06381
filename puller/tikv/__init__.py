"""The puller of a TiKV cluster: PD, regions, and the change feed of each store."""
