"""Native decoding of rows: optional, with exactly the results of the decoders in Python.

`library.py` tells whether it is in use; the other modules describe a source's columns to it. The C sources
are in `source/`; `column.h` is read first.
"""
