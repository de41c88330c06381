"""A table as a Polars frame, and what changed in it since the last call.

python examples/mariadb_to_polars.py mysql://user:password@host:port
"""

import sys

import polars as pl

import tidemill


def changes(source: str, data_dir: str = "state") -> pl.DataFrame:
    """Return the changes of `shop.orders` since the last call, with columns op, before and after; the first
    call returns the rows that are there, as inserts."""
    batches: list[pl.DataFrame] = []
    with tidemill.open(source, ["shop.orders"], data_dir=data_dir, until="now", arrow=True) as feed:
        for batch in feed.arrow_batches():
            batches.append(pl.DataFrame(batch.data).select("commit_ts", "op", "before", "after"))
            feed.ack(batch)
    return pl.concat(batches) if batches else pl.DataFrame()


def merged(rows: pl.DataFrame, found: pl.DataFrame) -> pl.DataFrame:
    """Return the rows after the changes found: a change removes the row with its old id, and puts its new
    image there, of which the last one of each id counts."""
    if found.is_empty():
        return rows
    numbered = found.with_row_index("number")
    images = pl.concat(
        [
            numbered.select(
                "number", "after", id=pl.col(image).struct.field("id"), is_new=pl.lit(image == "after")
            )
            for image in ("before", "after")
        ]
    )
    last = images.drop_nulls("id").sort("number", "is_new").unique("id", keep="last", maintain_order=True)
    present = last.filter("is_new").select("after").unnest("after")
    return present if rows.is_empty() else pl.concat([rows.join(last, on="id", how="anti"), present])


def main(source: str, data_dir: str = "state") -> None:
    rows = merged(pl.DataFrame(), changes(source, data_dir))
    print(rows.select(pl.len(), pl.sum("total")))


if __name__ == "__main__":
    main(*sys.argv[1:])
