"""Changes as objects of your own SQLAlchemy models.

python examples/sqlalchemy_models.py mysql://user:password@host:port
"""

import sys
from collections.abc import Callable
from decimal import Decimal

from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

import tidemill


class Base(DeclarativeBase):
    pass


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    total: Mapped[Decimal | None]


MODELS = {mapper.class_.__tablename__: mapper.class_ for mapper in Base.registry.mappers}

Changed = Callable[[str, Base | None, Base | None], None]


def follow(changed: Changed, source: str, data_dir: str = "state", until: str | None = None) -> None:
    """Call `changed(op, before, after)` with each row of a table that has a model. The objects belong to no
    session; columns that a model lacks are left out."""

    def made(table: str, image: dict[str, object] | None) -> Base | None:
        model = MODELS[table]
        names = model.__mapper__.column_attrs.keys()
        return None if image is None else model(**{name: image[name] for name in names if name in image})

    def receive(txn: tidemill.Transaction) -> None:
        for row in txn.rows:
            if row.table.name in MODELS:
                before, after = row.before_dict(), row.after_dict()
                changed(row.op, made(row.table.name, before), made(row.table.name, after))

    tidemill.follow(receive, source, ["shop.*"], data_dir=data_dir, until=until)


def show(op: str, before: Base | None, after: Base | None) -> None:
    order = after or before
    if isinstance(order, Order):
        print(op, order.id, order.total)


if __name__ == "__main__":
    follow(show, *sys.argv[1:])
