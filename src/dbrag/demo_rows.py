"""The rows of the demo shop, drawn from ``Random.random()`` alone.

Its sequence is guaranteed for a given seed on every platform and version of Python.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from dbrag import demo_data as data

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from random import Random

T = TypeVar("T")
Rows = list[tuple[Any, ...]]


class _Dice:
    """Draws built on ``random()`` alone."""

    def __init__(self, random: Random) -> None:
        self._random = random.random

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1."""
        return int(self._random() * n)

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + self.below(high - low + 1)

    def chance(self, share: float) -> bool:
        """True in that share of draws."""
        return self._random() < share

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[self.below(len(items))]

    def skewed(self, n: int) -> int:
        """A whole number below n; small ones come more often, as bestsellers do."""
        draw = self._random()
        return int(draw * draw * n)

    def day(self, first: date, last: date) -> date:
        """A day from first to last."""
        return first + timedelta(days=self.below((last - first).days + 1))


def _money(cents: int) -> float:
    return cents / 100


def generate(random: Random) -> Iterator[tuple[str, Rows]]:
    """The tables with their rows, referred tables first."""
    dice = _Dice(random)
    yield "categories", [(i, *item) for i, item in enumerate(data.CATEGORIES, 1)]
    yield "suppliers", _suppliers()
    products = _products(dice)
    yield "products", products
    stores = [(i, *item) for i, item in enumerate(data.STORES, 1)]
    yield "stores", stores
    staff = _staff(dice, stores)
    yield "staff", staff
    customers = _customers(dice)
    yield "customers", customers
    yield (
        "stock",
        [(store[0], product[0], dice.between(0, 120)) for store in stores for product in products],
    )
    orders = _orders(dice, customers, staff)
    yield "orders", orders
    lines = _lines(dice, orders, products)
    yield "order_lines", lines
    yield "payments", _payments(dice, orders, lines)
    yield "shipments", _shipments(dice, orders)
    yield "returns", _returns(dice, orders, lines)
    yield "reviews", _reviews(dice, customers, products)
    yield "gift cards", _gift_cards(dice, customers)


def _suppliers() -> Rows:
    rows: Rows = []
    for i, (name, country) in enumerate(data.SUPPLIERS, 1):
        email = None if i % 7 == 0 else f"sales@{name.lower().replace(' ', '')}.example"
        rows.append((i, name, country, email))
    return rows


def _products(dice: _Dice) -> Rows:
    rows: Rows = []
    for category, (nouns, low, high) in enumerate(data.PRODUCTS, 1):
        for noun in nouns:
            for style in data.STYLES:
                if dice.chance(0.3):
                    continue
                price = _money(dice.between(low, high) * 100 - dice.pick((1, 5, 50)))
                weight = None if dice.chance(0.15) else dice.between(1, 400) / 100
                gone = dice.day(date(2024, 1, 1), date(2025, 6, 30)) if dice.chance(0.06) else None
                supplier = 1 + (category * 3 + dice.below(5)) % len(data.SUPPLIERS)
                rows.append(
                    (
                        len(rows) + 1,
                        f"{style} {noun}",
                        category,
                        supplier,
                        price,
                        weight,
                        gone.isoformat() if gone else None,
                    )
                )
    return rows


def _staff(dice: _Dice, stores: Rows) -> Rows:
    names = _names(dice, len(stores) * 6)
    rows: Rows = []
    for store_id, *_ in stores:
        manager: int | None = None
        for job in ("Manager", "Cashier", "Cashier", "Sales Assistant", "Sales Assistant", "Buyer"):
            staff_id = len(rows) + 1
            pay = dice.between(*data.SALARIES[job]) * 100
            hired = dice.day(date(2015, 1, 1), date(2023, 6, 30)).isoformat()
            rows.append((staff_id, next(names), job, store_id, manager, hired, float(pay)))
            manager = manager or staff_id
    return rows


def _names(dice: _Dice, n: int) -> Iterator[str]:
    """n different names of persons."""
    pairs = len(data.FIRST_NAMES) * len(data.LAST_NAMES)
    start = dice.below(pairs)
    # A step without a factor in common with the number of pairs visits each pair once.
    step = next(s for s in range(1009, 9999, 2) if _coprime(s, pairs))
    for i in range(n):
        pair = (start + i * step) % pairs
        first, last = divmod(pair, len(data.LAST_NAMES))
        yield f"{data.FIRST_NAMES[first]} {data.LAST_NAMES[last]}"


def _coprime(a: int, b: int) -> bool:
    while b:
        a, b = b, a % b
    return a == 1


def _customers(dice: _Dice) -> Rows:
    rows: Rows = []
    for i, name in enumerate(_names(dice, 2_000), 1):
        city, postal = data.CITIES[dice.skewed(len(data.CITIES))]
        email = None
        if not dice.chance(0.08):
            email = f"{name.lower().replace(' ', '.')}@mail.example"
        born = None
        if not dice.chance(0.2):
            born = dice.day(date(1945, 1, 1), date(2006, 12, 31)).isoformat()
        joined = dice.day(date(2021, 1, 1), date(2023, 12, 31)).isoformat()
        rows.append((i, name, email, city, f"{postal}{dice.between(100, 999)}", born, joined))
    return rows


def _orders(dice: _Dice, customers: Rows, staff: Rows) -> Rows:
    rows: Rows = []
    days = sorted(dice.day(date(2023, 1, 1), date(2025, 6, 30)) for _ in range(9_000))
    for i, day in enumerate(days, 1):
        customer = customers[dice.skewed(len(customers))]
        seller = staff[dice.skewed(len(staff))]
        status = "delivered"
        if dice.chance(0.05):
            status = "cancelled"
        elif day > date(2025, 6, 15):
            status = "open"
        note = dice.pick(data.NOTES) if dice.chance(0.1) else None
        rows.append((i, customer[0], seller[3], seller[0], day.isoformat(), status, note))
    return rows


def _lines(dice: _Dice, orders: Rows, products: Rows) -> Rows:
    rows: Rows = []
    for order in orders:
        for _ in range(1 + dice.skewed(6)):
            product = products[dice.skewed(len(products))]
            rows.append(
                (len(rows) + 1, order[0], product[0], 1 + dice.skewed(5), product[4]),
            )
    return rows


def _cents_by_order(lines: Rows) -> dict[int, int]:
    totals: dict[int, int] = {}
    for _, order_id, _, quantity, price in lines:
        totals[order_id] = totals.get(order_id, 0) + quantity * round(price * 100)
    return totals


def _payments(dice: _Dice, orders: Rows, lines: Rows) -> Rows:
    rows: Rows = []
    totals = _cents_by_order(lines)
    for order_id, _, _, _, day, status, _ in orders:
        if status == "cancelled":
            continue
        method = dice.pick(("card", "card", "card", "cash", "gift card", "bank transfer"))
        rows.append((len(rows) + 1, order_id, _money(totals[order_id]), method, day))
    return rows


def _shipments(dice: _Dice, orders: Rows) -> Rows:
    rows: Rows = []
    for order_id, _, _, _, day, status, _ in orders:
        if status != "delivered" or dice.chance(0.25):
            continue
        shipped = date.fromisoformat(day) + timedelta(days=dice.between(0, 4))
        arrived = None
        if not dice.chance(0.03):
            arrived = (shipped + timedelta(days=dice.between(1, 9))).isoformat()
        carrier = dice.pick(data.CARRIERS)
        rows.append((len(rows) + 1, order_id, carrier, shipped.isoformat(), arrived))
    return rows


def _returns(dice: _Dice, orders: Rows, lines: Rows) -> Rows:
    rows: Rows = []
    for line_id, order_id, _, quantity, price in lines:
        order = orders[order_id - 1]
        if order[5] != "delivered" or not dice.chance(0.06):
            continue
        back = date.fromisoformat(order[4]) + timedelta(days=dice.between(3, 30))
        reason = None if dice.chance(0.2) else dice.pick(data.RETURN_REASONS)
        refund = _money(dice.between(1, quantity) * round(price * 100))
        rows.append((len(rows) + 1, line_id, back.isoformat(), reason, refund))
    return rows


def _reviews(dice: _Dice, customers: Rows, products: Rows) -> Rows:
    rows: Rows = []
    for i in range(1, 3_001):
        product, customer = products[dice.skewed(len(products))], dice.pick(customers)
        rating = 5 - dice.skewed(5)
        comment = None if dice.chance(0.4) else dice.pick(data.COMMENTS[rating])
        written = dice.day(date(2023, 2, 1), date(2025, 6, 30)).isoformat()
        rows.append((i, product[0], customer[0], rating, comment, written))
    return rows


def _gift_cards(dice: _Dice, customers: Rows) -> Rows:
    rows: Rows = []
    for i in range(1, 401):
        amount = dice.pick((2_000, 2_500, 5_000, 10_000))
        balance = 0 if dice.chance(0.4) else dice.between(1, amount)
        owner = None if dice.chance(0.25) else dice.pick(customers)[0]
        issued = dice.day(date(2023, 1, 1), date(2025, 6, 30))
        number = f"GC-{i:05d}"
        expires = issued + timedelta(days=730)
        rows.append(
            (
                number,
                owner,
                _money(amount),
                _money(balance),
                issued.isoformat(),
                expires.isoformat(),
            )
        )
    return rows
