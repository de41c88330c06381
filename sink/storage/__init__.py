"""Files of rows in object stores and directories, with their checkpoint beside them."""
