"""The unified engine: sorted pieces in memory, in files when that is short, merged at the end."""
