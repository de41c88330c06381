"""The language of rules: what a feed, a sink and a filter take."""
