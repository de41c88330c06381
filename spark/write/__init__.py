"""Writers of the data source, for every kind of sink."""
