"""The demo: a generated SQLite shop and six questions with their gold SQL.

The rows depend on the seed alone (``demo_rows``), on every platform.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random

from dbrag.demo_data import SCHEMA
from dbrag.demo_rows import Rows, generate
from dbrag.errors import SourceUnreadable, UsageError

DEFAULT_PATH = "demo/shop.db"
APPLICATION_ID = 0x64627261
"""Mark in the SQLite header ("dbra") by which the demo knows its own file."""


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question about the shop, its gold SQL and the tables that it needs."""

    question: str
    sql: str
    tables: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DemoInfo:
    """What was written: the file, and the rows of each table in the order of creation."""

    path: Path
    seed: int
    rows: dict[str, int]

    @property
    def total_rows(self) -> int:
        """Rows of all tables, without the view."""
        return sum(self.rows.values())


QUESTIONS: tuple[DemoQuestion, ...] = (
    DemoQuestion(
        "What is the name of each store and how many orders did it receive?",
        "SELECT stores.name, COUNT(*) FROM orders JOIN stores ON orders.store_id = stores.store_id"
        " GROUP BY stores.store_id, stores.name",
        ("orders", "stores"),
    ),
    DemoQuestion(
        "How many customers live in each city?",
        "SELECT city, COUNT(*) FROM customers GROUP BY city",
        ("customers",),
    ),
    DemoQuestion(
        "What is the total balance of all gift cards?",
        'SELECT SUM(balance) FROM "gift cards"',
        ("gift cards",),
    ),
    DemoQuestion(
        "What is the name of the staff member who handled the most orders?",
        "SELECT staff.name FROM orders JOIN staff ON orders.staff_id = staff.staff_id"
        " GROUP BY staff.staff_id ORDER BY COUNT(*) DESC LIMIT 1",
        ("orders", "staff"),
    ),
    DemoQuestion(
        "What is the total quantity of all order lines with products in the category Coffee?",
        "SELECT SUM(order_lines.quantity) FROM order_lines"
        " JOIN products ON order_lines.product_id = products.product_id"
        " JOIN categories ON products.category_id = categories.category_id"
        " WHERE categories.name = 'Coffee'",
        ("categories", "order_lines", "products"),
    ),
    DemoQuestion(
        "What is the total refund amount of returns of products from the supplier Nordic Mills?",
        "SELECT SUM(returns.refund_amount) FROM returns"
        " JOIN order_lines ON returns.order_line_id = order_lines.order_line_id"
        " JOIN products ON order_lines.product_id = products.product_id"
        " JOIN suppliers ON products.supplier_id = suppliers.supplier_id"
        " WHERE suppliers.name = 'Nordic Mills'",
        ("order_lines", "products", "returns", "suppliers"),
    ),
)


def write_demo(path: str | Path = DEFAULT_PATH, seed: int = 0, *, force: bool = False) -> DemoInfo:
    """Write the shop; the file appears whole or not at all.

    Args:
        force: overwrite a file that is not the demo.

    Raises:
        UsageError: something else is at ``path``, or the demo there is open elsewhere.
        SourceUnreadable: the folder cannot be written.
    """
    target = Path(path).expanduser()
    _check_target(target, force)
    tables = dict(generate(Random(seed)))  # noqa: S311 - goods, not secrets
    scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch.unlink(missing_ok=True)
        _write(scratch, tables)
        scratch.replace(target)
    except (OSError, sqlite3.Error) as error:
        reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
        raise SourceUnreadable(
            f"cannot write the demo to {str(target)!r}: {reason}",
            "choose another place: dbrag demo PATH",
        ) from error
    finally:
        if scratch.exists():
            scratch.unlink()
    return DemoInfo(target, seed, {name: len(rows) for name, rows in tables.items()})


def is_demo(path: Path) -> bool:
    """Whether the file is a shop that ``write_demo`` wrote."""
    try:
        with path.open("rb") as file:
            header = file.read(100)
    except OSError:
        return False
    # SQLite keeps the application id as four big-endian bytes at offset 68.
    return header[:16] == b"SQLite format 3\0" and header[68:72] == APPLICATION_ID.to_bytes(4)


def _check_target(target: Path, force: bool) -> None:
    if target.is_dir():
        hint = f"name a file in it: dbrag demo {target / 'shop.db'}"
        raise UsageError(f"{str(target)!r} is a folder", hint)
    if not target.exists():
        return
    if not (force or is_demo(target)):
        raise UsageError(
            f"{str(target)!r} exists and is not the demo",
            "choose another path, or overwrite it with --force",
        )
    for suffix in ("-wal", "-journal"):
        # SQLite would play a left-over log into the new file.
        if target.with_name(target.name + suffix).exists():
            raise UsageError(
                f"{str(target)!r} is open in another program", "close it, or choose another path"
            )


def _write(path: Path, tables: dict[str, Rows]) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SCHEMA)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        for name, rows in tables.items():
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', rows)
        connection.commit()
