"""Changes as unsaved objects of your own Django models.

python examples/django_models.py mysql://user:password@host:port

Django itself connects to no database here. In a project, call `follow` in a management command: leave out the
settings, and import the models of the app.
"""

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

import django
from django.apps import apps
from django.conf import settings
from django.db import connection, models
from django.utils.timezone import is_naive, make_aware

import tidemill

settings.configure(USE_TZ=True)
django.setup()


class Customer(models.Model):
    name = models.CharField(max_length=50)

    class Meta:
        app_label = "shop"
        db_table = "customers"
        managed = False

    def __str__(self) -> str:
        return f"customer {self.pk} ({self.name})"


class Order(models.Model):
    customer = models.ForeignKey(Customer, models.DO_NOTHING)
    total = models.DecimalField(max_digits=8, decimal_places=2, null=True)
    is_paid = models.BooleanField()
    placed = models.DateTimeField()
    details = models.JSONField()

    class Meta:
        app_label = "shop"
        db_table = "orders"
        managed = False

    def __str__(self) -> str:
        paid = "paid" if self.is_paid else "open"
        return f"order {self.pk} of {self.customer_id} ({self.total}, {paid}, {self.placed}, {self.details})"


MODELS = {model._meta.db_table: model for model in apps.all_models["shop"].values()}

Changed = Callable[[str, models.Model | None, models.Model | None], None]


def follow(changed: Changed, source: str, data_dir: str = "state", until: str | None = None) -> None:
    """Call `changed(op, before, after)` with each row of a table that has a model. Columns that a model lacks
    are left out; fields that a row lacks have their defaults. `order.customer_id` is there, while
    `order.customer` would be a query."""

    def made(table: str, image: dict[str, Any] | None) -> models.Model | None:
        if image is None:
            return None
        fields = [field for field in MODELS[table]._meta.concrete_fields if field.column in image]
        return MODELS[table](**{field.attname: converted(field, image[field.column]) for field in fields})

    def receive(txn: tidemill.Transaction) -> None:
        for row in txn.rows:
            if row.table.name in MODELS:
                before, after = row.before_dict(), row.after_dict()
                changed(row.op, made(row.table.name, before), made(row.table.name, after))

    tidemill.follow(receive, source, ["shop.*"], data_dir=data_dir, until=until)


def converted(field: models.Field, value: Any) -> Any:
    """Return a column's value as a query of Django does: booleans, JSON, UUIDs, times with a zone."""
    for convert in field.get_db_converters(connection):
        value = convert(value, None, connection)
    if isinstance(field, models.TimeField) and value is not None:
        value = str(value)  # a TIME is a timedelta
    value = field.to_python(value)
    if isinstance(value, datetime) and connection.timezone and is_naive(value):
        value = make_aware(value, connection.timezone)
    return value


def show(op: str, before: models.Model | None, after: models.Model | None) -> None:
    print(f"{op}: {before} -> {after}")


if __name__ == "__main__":
    follow(show, *sys.argv[1:])
