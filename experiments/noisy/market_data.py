"""A small trade whose data was typed by many hands: clean records, and the noisy tables.

Everything follows from the seed. ``clean_market`` makes the records, ``write_noisy`` writes
them to SQLite as people would have: letter case, blanks, accents and misspellings in
values, four ways to write a date, numbers with currency signs, separators and units,
words for "unknown", several kinds of flags, rows entered twice.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

SEED = 20240305
MISSPELT = {
    "Germny": "Germany",
    "Itlay": "Italy",
    "Lisbno": "Lisbon",
    "Pariss": "Paris",
    "Berln": "Berlin",
}
PLACES = {
    "Paris": "France",
    "Lyon": "France",
    "Berlin": "Germany",
    "Köln": "Germany",
    "Zürich": "Switzerland",
    "Lisbon": "Portugal",
    "Málaga": "Spain",
    "Milan": "Italy",
    "São Paulo": "Brazil",
}
CATEGORIES = ("Garden", "Kitchen", "Lighting", "Office", "Sports", "Toys")
STATUSES = ("delivered", "shipped", "pending", "cancelled")
UNKNOWN = ("N/A", "-", "n/a")
_MONTHS, _FIRST, _LAST, _KINDS, _THINGS = (
    words.split()
    for words in (
        "January February March April May June July August September October November December",
        "Ana Bela Carl Dina Emil Fritz Gina Hugo Ines Jonas Klara Lena Marco Nora Otto Paula "
        "Rita Sven Tara Vera",
        "Adler Bauer Costa Dupont Ferri Gomez Huber Keller Lopes Moreau Rossi Weber",
        "Amber Basic Compact Deluxe Elegant Folding Grand Handy Ideal Jumbo Light Modern Nordic "
        "Prime Royal",
        "Basket Board Chair Clock Frame Holder Lamp Rack Stand Tray",
    )
)


@dataclass(frozen=True)
class Customer:
    """Who buys."""

    id: str
    name: str
    city: str
    country: str
    signed_up: date
    active: bool


@dataclass(frozen=True)
class Product:
    """What is sold: price in cents, weight in grams."""

    id: int
    name: str
    category: str
    cents: int
    grams: int


@dataclass(frozen=True)
class Supplier:
    """Who makes it, and within how many days if that is known."""

    id: int
    name: str
    country: str
    days: int | None


@dataclass(frozen=True)
class Supply:
    """A supplier's price of a product in cents, if it is known."""

    product: int
    supplier: int
    cents: int | None


@dataclass(frozen=True)
class Order:
    """An order with its shipping fee in cents, if it is known."""

    id: int
    customer: str
    day: date
    status: str
    cents: int | None


@dataclass(frozen=True)
class Line:
    """So many of a product in an order, with a discount in percent."""

    order: int
    number: int
    product: int
    quantity: int
    discount: int


@dataclass(frozen=True)
class Review:
    """A rating from 1 to 5, if one was given."""

    id: int
    product: int
    customer: str
    rating: int | None
    day: date
    verified: bool


@dataclass(frozen=True)
class Market:
    """All records, clean."""

    customers: tuple[Customer, ...]
    products: tuple[Product, ...]
    suppliers: tuple[Supplier, ...]
    supplies: tuple[Supply, ...]
    orders: tuple[Order, ...]
    lines: tuple[Line, ...]
    reviews: tuple[Review, ...]


def clean_market(seed: int = SEED) -> Market:
    """The records as they really are."""
    rng = random.Random(seed)  # noqa: S311
    names = [f"{first} {last}" for first in _FIRST for last in _LAST]
    rng.shuffle(names)
    customers = []
    for i, name in enumerate(names[:200]):
        city = rng.choice(list(PLACES))
        signed = _day(rng, date(2022, 1, 1), 730)
        customers.append(
            Customer(f"C{i + 1:04d}", name, city, PLACES[city], signed, rng.random() < 0.7)
        )
    articles = [f"{kind} {thing}" for kind in _KINDS for thing in _THINGS]
    rng.shuffle(articles)
    products = [
        Product(
            i + 1,
            name,
            rng.choice(CATEGORIES),
            rng.randrange(300, 250_000 if rng.random() < 0.2 else 20_000),
            rng.randrange(1, 60) * 100,
        )
        for i, name in enumerate(articles[:140])
    ]
    countries = sorted(set(PLACES.values()))
    suppliers = [
        Supplier(i + 1, f"{name} & Co", rng.choice(countries), _maybe(rng, rng.randrange(2, 40)))
        for i, name in enumerate(names[200:])
    ]
    supplies = []
    for product in products:
        for supplier in rng.sample(suppliers, rng.randrange(1, 4)):
            cost = _maybe(rng, product.cents * rng.randrange(40, 90) // 100, 0.1)
            supplies.append(Supply(product.id, supplier.id, cost))
    buyers = rng.sample(customers, 150)
    orders, lines = [], []
    for i in range(400):
        customer = rng.choice(buyers)
        status = rng.choices(STATUSES, (6, 2, 1, 2))[0]
        fee = _maybe(rng, rng.randrange(290, 1990, 10))
        orders.append(Order(i + 1, customer.id, _day(rng, date(2023, 9, 1), 365), status, fee))
        for number, product in enumerate(rng.sample(products[:120], rng.randrange(1, 4))):
            discount = rng.choice((0, 0, 0, 5, 10, 20))
            lines.append(Line(i + 1, number + 1, product.id, rng.randrange(1, 9), discount))
    reviews = [
        Review(
            i + 1,
            rng.choice(products[20:]).id,
            rng.choice(buyers).id,
            _maybe(rng, rng.choices(range(1, 6), (1, 1, 2, 4, 4))[0]),
            _day(rng, date(2023, 9, 1), 400),
            rng.random() < 0.6,
        )
        for i in range(300)
    ]
    records = (customers, products, suppliers, supplies, orders, lines, reviews)
    return Market(*(tuple(rows) for rows in records))  # type: ignore[arg-type]


def write_noisy(market: Market, path: Path, seed: int = SEED) -> None:
    """Write the market to a new SQLite file as many hands would have typed it.

    Raises:
        FileExistsError: there is one already.
    """
    if path.exists():
        raise FileExistsError(path)
    hand = _Hand(random.Random(seed + 1))  # noqa: S311
    with sqlite3.connect(path) as connection:
        for name, columns, rows in _tables(market, hand):
            connection.execute(f"CREATE TABLE {name} ({columns})")
            marks = ", ".join("?" * len(rows[0]))
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    connection.close()


def _tables(market: Market, hand: _Hand) -> list[tuple[str, str, list[tuple[Any, ...]]]]:
    rng = hand.rng
    customers = [
        (c.id, hand.blank(c.name), hand.place(c.city), hand.place(c.country),
         hand.date(c.signed_up, "iso", "dots"), hand.flag(c.active))
        for c in market.customers
    ]  # fmt: skip
    customers = hand.twice(customers, [lambda row=row: row for row in customers])
    products = [
        (p.id, p.name, hand.typed(p.category), hand.price(p.cents), hand.weight(p.grams))
        for p in market.products
    ]
    suppliers = [
        (s.id, s.name, hand.place(s.country),
         hand.unknown() if s.days is None else rng.choice((f"{s.days} days", f"{s.days}")))
        for s in market.suppliers
    ]  # fmt: skip
    supplies = [
        (
            s.product,
            s.supplier,
            "-" if s.cents is None else f"{s.cents / 100:.2f}".replace(".", ","),
        )
        for s in market.supplies
    ]

    def order(o: Order) -> tuple[Any, ...]:
        fee = hand.unknown() if o.cents is None else f"{o.cents / 100:.2f}"
        fee = fee.replace(".", ",") if rng.random() < 0.4 else fee
        who = hand.blank(o.customer.lower() if rng.random() < 0.15 else o.customer)
        day = hand.date(o.day, "iso", "dots", "slashes", "words")
        status = "canceled" if o.status == "cancelled" and rng.random() < 0.3 else o.status
        return o.id, who, day, hand.typed(status), fee

    def line(one: Line) -> tuple[Any, ...]:
        quantity = rng.choice((f"{one.quantity}", f"{one.quantity} pcs", f" {one.quantity}"))
        none = rng.choice(("-", "0%"))
        discount = rng.choice((f"{one.discount}%", f"{one.discount} %")) if one.discount else none
        return one.order, one.number, one.product, quantity, discount

    orders = hand.twice(
        [order(o) for o in market.orders], [lambda o=o: order(o) for o in market.orders]
    )
    lines = hand.twice(
        [line(one) for one in market.lines], [lambda one=one: line(one) for one in market.lines]
    )
    reviews = [
        (r.id, r.product, r.customer,
         hand.unknown() if r.rating is None else rng.choice((f"{r.rating}/5", f"{r.rating}")),
         hand.date(r.day, "slashes", "words"), hand.flag(r.verified))
        for r in market.reviews
    ]  # fmt: skip
    return [
        ("customers", "customer_id TEXT, name TEXT, city TEXT, country TEXT, signed_up TEXT, "
                      "active TEXT", customers),
        ("products", "product_id INTEGER, name TEXT, category TEXT, price TEXT, weight TEXT",
         products),
        ("suppliers", "supplier_id INTEGER, name TEXT, country TEXT, lead_time TEXT", suppliers),
        ("supplies", "product_id INTEGER, supplier_id INTEGER, unit_cost TEXT", supplies),
        ("orders", "order_id INTEGER, customer_id TEXT, order_date TEXT, status TEXT, "
                   "shipping_fee TEXT", orders),
        ("order_lines", "order_id INTEGER, line_no INTEGER, product_id INTEGER, quantity TEXT, "
                        "discount TEXT", lines),
        ("reviews", "review_id INTEGER, product_id INTEGER, customer_id TEXT, rating TEXT, "
                    "review_date TEXT, verified TEXT", reviews),
    ]  # fmt: skip


@dataclass
class _Hand:
    """Writes one value in one of the ways it may be typed."""

    rng: random.Random

    def blank(self, text: str) -> str:
        return self.rng.choices((text, f"{text} ", f" {text}"), (8, 1, 1))[0]

    def typed(self, text: str) -> str:
        """Letter case and blanks."""
        ways = (text, text.lower(), text.upper(), text.capitalize())
        return self.blank(self.rng.choices(ways, (6, 1, 1, 1))[0])

    def place(self, text: str) -> str:
        """Letter case, blanks, accents and misspellings."""
        wrong = [bad for bad, good in MISSPELT.items() if good == text]
        if wrong and self.rng.random() < 0.1:
            return self.rng.choice(wrong)
        if self.rng.random() < 0.3:
            text = text.translate(str.maketrans("öüáã", "ouaa"))
        return self.typed(text) if self.rng.random() < 0.7 else text

    def flag(self, value: bool) -> str:
        return self.rng.choice(("yes", "Y", "1") if value else ("no", "N", "0"))

    def unknown(self) -> str:
        return self.rng.choice(UNKNOWN)

    def date(self, day: date, *ways: str) -> str:
        match self.rng.choice(ways):
            case "iso":
                return day.isoformat()
            case "dots":
                return f"{day.day:02d}.{day.month:02d}.{day.year}"
            case "slashes":
                return f"{day.month}/{day.day}/{day.year % 100:02d}"
            case _:
                return f"{_MONTHS[day.month - 1]} {day.day}, {day.year}"

    def price(self, cents: int) -> str:
        text = f"{cents / 100:,.2f}"
        swapped = text.translate(str.maketrans(",.", ".,"))
        return self.rng.choice((f"€{text}", f"{swapped} €", text, text.replace(",", "")))

    def weight(self, grams: int) -> str:
        kilos = f"{grams / 1000:g}"
        return self.rng.choice((f"{grams} g", f"{kilos} kg", f"{kilos}kg"))

    def twice(self, rows: list[tuple[Any, ...]], again: Sequence[Any]) -> list[tuple[Any, ...]]:
        """The rows, and one in twenty typed once more further down."""
        chosen = self.rng.sample(range(len(rows)), len(rows) // 20)
        return rows + [again[i]() for i in sorted(chosen)]


def _day(rng: random.Random, first: date, days: int) -> date:
    return first + timedelta(days=rng.randrange(days))


def _maybe(rng: random.Random, value: int, share: float = 0.15) -> int | None:
    return None if rng.random() < share else value
