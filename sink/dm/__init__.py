"""The checkpoint of TiDB Data Migration (DM): its table, and what its rows say."""
