"""Rows that are there, read in parallel by Spark into sorted files, so that a feed can go on from them."""
