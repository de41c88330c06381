"""Files of rows: one of lines, Parquet archives with a journal, directories and object stores."""
