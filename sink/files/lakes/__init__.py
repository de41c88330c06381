"""Files as tables of a lake: `layout.py` adds the files of a commit to the tables, which are of one kind."""
