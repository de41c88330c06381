"""Sources of a feed: the protocol, and what is special about each kind."""
