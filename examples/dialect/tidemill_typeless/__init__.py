"""Tables of columns without types, in a file of SQLite: an example of a database of your own."""
