"""Sources of a feed: the protocol, and the kinds of sources."""
