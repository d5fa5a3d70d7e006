"""The right answers of the noisy market, computed in Python from its clean records."""

from __future__ import annotations

from collections import Counter, defaultdict
from statistics import mean
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from market_data import Line, Market, Product, Supplier

Rows = list[tuple[Any, ...]]


def one(value: Any) -> Rows:
    """A single value as a result."""
    return [(value,)]


def products_by_id(m: Market) -> dict[int, Product]:
    """Id → product."""
    return {p.id: p for p in m.products}


def values(m: Market) -> dict[int, float]:
    """Order → what its lines are worth."""
    product, total = products_by_id(m), defaultdict[int, float](float)
    for line in m.lines:
        total[line.order] += (
            product[line.product].cents * line.quantity * (100 - line.discount) / 10_000
        )
    return total


def country_of(m: Market) -> dict[str, str]:
    """Customer → country."""
    return {c.id: c.country for c in m.customers}


def units(lines: Iterable[Line]) -> Counter[int]:
    """Product → units sold."""
    sold: Counter[int] = Counter()
    for line in lines:
        sold[line.product] += line.quantity
    return sold


def leaders(
    things: Sequence[Product] | Sequence[Supplier],
    group: Callable[[Any], str],
    count: Counter[int],
    n: int,
) -> Rows:
    """Group → its ``n`` things with the largest counts, equal ones by name; none without any."""
    rows: Rows = []
    for one in sorted({group(thing) for thing in things}):
        inside = [thing for thing in things if group(thing) == one and count[thing.id]]
        inside.sort(key=lambda thing: (-count[thing.id], thing.name))
        rows += [(one, thing.name, count[thing.id]) for thing in inside[:n]]
    return rows


def best_sellers(m: Market) -> Rows:
    """The three products of each category that sold most."""
    return leaders(m.products, lambda p: p.category, units(m.lines), 3)


def cancelled_by_month(m: Market) -> Rows:
    """Month of 2024 → percent of its orders that were cancelled."""
    months = sorted({f"{o.day:%Y-%m}" for o in m.orders if o.day.year == 2024})
    by_month = {k: [o for o in m.orders if f"{o.day:%Y-%m}" == k] for k in months}
    return [
        (month, round(100 * sum(o.status == "cancelled" for o in orders) / len(orders), 1))
        for month, orders in by_month.items()
    ]


def best_country(m: Market) -> Rows:
    """The country whose orders are worth most, and how much."""
    value, home = values(m), country_of(m)
    total = defaultdict[str, float](float)
    for order in m.orders:
        if order.status != "cancelled":
            total[home[order.customer]] += value[order.id]
    best = max(total, key=lambda country: total[country])
    return [(best, round(total[best], 2))]


def ratio(m: Market) -> Rows:
    """Average delivered order of Germany over that of France."""
    value, home = values(m), country_of(m)

    def average(country: str) -> float:
        return mean(
            value[o.id] for o in m.orders if o.status == "delivered" and home[o.customer] == country
        )

    return one(round(average("Germany") / average("France"), 2))


def main_suppliers(m: Market) -> Rows:
    """The supplier of each country that supplies most products."""
    supplies = Counter(s.supplier for s in m.supplies)
    return leaders(m.suppliers, lambda s: s.country, supplies, 1)


def dear(m: Market) -> Rows:
    """Products above three times the average price of their category."""
    average = {
        c: mean(p.cents for p in m.products if p.category == c)
        for c in {p.category for p in m.products}
    }
    return [(p.name,) for p in m.products if p.cents > 3 * average[p.category]]


def margins(m: Market) -> Rows:
    """The five largest margins over the cheapest supply."""
    cheapest: dict[int, int] = {}
    for s in m.supplies:
        if s.cents is not None:
            cheapest[s.product] = min(s.cents, cheapest.get(s.product, s.cents))
    rows = [(p.name, (p.cents - cheapest[p.id]) / 100) for p in m.products if p.id in cheapest]
    return sorted(rows, key=lambda row: -row[1])[:5]


def in_month(m: Market, month: str) -> set[str]:
    """Customers who ordered in a month, "2024-03"."""
    return {o.customer for o in m.orders if f"{o.day:%Y-%m}" == month}


def above(m: Market) -> Rows:
    """How many customers spent more than the average one."""
    value = values(m)
    spent = defaultdict[str, float](float)
    for order in m.orders:
        if order.status != "cancelled":
            spent[order.customer] += value[order.id]
    return one(sum(total > mean(spent.values()) for total in spent.values()))
