"""Changes of a TiKV cluster: PD, regions, the change feed of each store."""
