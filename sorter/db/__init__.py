"""The default engine: memory first, then blocks of sorted changes in an LSM."""
