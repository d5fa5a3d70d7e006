"""Thirty questions on the noisy market: the right answer, and an ideal program for each.

The right answers are computed in Python from the clean records. The programs compute them
in SQL from what was typed: chains of steps, as a model would write them.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from market_data import MISSPELT, Line, Market, Product

Rows = list[tuple[Any, ...]]


@dataclass(frozen=True)
class Asked:
    """A question, its program as steps (name, SQL), and its answer from the clean records."""

    question: str
    tables: tuple[str, ...]
    steps: tuple[tuple[str, str], ...]
    answer: Callable[[Market], Rows]
    columns: tuple[str, ...]

    @property
    def sql(self) -> str:
        """The program as one statement."""
        *earlier, (_, last) = self.steps
        if not earlier:
            return last
        return "WITH " + ", ".join(f"{name} AS ({sql})" for name, sql in earlier) + " " + last


# ---- what was typed, in SQL ---------------------------------------------------------


def _date(cell: str) -> str:
    """Four ways to write a date as YYYY-MM-DD."""
    months = "JanFebMarAprMayJunJulAugSepOctNovDec"
    return (
        f"CASE WHEN {cell} LIKE '____-__-__' THEN {cell} "
        f"WHEN {cell} LIKE '__.__.____' THEN "
        f"substr({cell}, 7, 4) || '-' || substr({cell}, 4, 2) || '-' || substr({cell}, 1, 2) "
        f"WHEN {cell} LIKE '%/%' THEN '20' || substr({cell}, -2) || '-' || "
        f"printf('%02d', CAST({cell} AS INTEGER)) || '-' || "
        f"printf('%02d', CAST(substr({cell}, instr({cell}, '/') + 1) AS INTEGER)) "
        f"ELSE substr({cell}, -4) || '-' || "
        f"printf('%02d', (instr('{months}', substr({cell}, 1, 3)) + 2) / 3) || '-' || "
        f"printf('%02d', CAST(substr({cell}, instr({cell}, ' ') + 1) AS INTEGER)) END"
    )


def _known(cell: str, number: str) -> str:
    return f"CASE WHEN {cell} IN ('N/A', 'n/a', '-') THEN NULL ELSE {number} END"


def _title(cell: str) -> str:
    return f"upper(substr(trim({cell}), 1, 1)) || lower(substr(trim({cell}), 2))"


def _country(cell: str) -> str:
    return (
        f"CASE lower(trim({cell})) WHEN 'germny' THEN 'Germany' WHEN 'itlay' THEN 'Italy' "
        f"ELSE {_title(cell)} END"
    )


def _any_spelling(place: str) -> str:
    """The list of a place's spellings after SQLite's lower(), which knows A to Z only."""
    plain = place.translate(str.maketrans("öüáã", "ouaa"))
    wrong = [bad for bad, good in MISSPELT.items() if good == place]
    every = [place, place.upper(), plain, *wrong]
    lower = ("".join(c.lower() if c.isascii() else c for c in text) for text in every)
    return "(" + ", ".join(f"'{text}'" for text in dict.fromkeys(lower)) + ")"


_FLAG = "IN ('yes', 'Y', '1')"
_FEE = _known("shipping_fee", "CAST(replace(shipping_fee, ',', '.') AS REAL)")
_PRICE = (
    "CAST(CASE WHEN price LIKE '%€' THEN replace(replace(price, '.', ''), ',', '.') "
    "ELSE replace(replace(price, '€', ''), ',', '') END AS REAL)"
)
_GRAMS = "CAST(weight AS REAL) * CASE WHEN weight LIKE '%kg' THEN 1000 ELSE 1 END"
_STATUS = (
    "CASE WHEN lower(trim(status)) LIKE 'cancel%' THEN 'cancelled' ELSE lower(trim(status)) END"
)
BUYERS = (
    "buyers",
    f"SELECT DISTINCT customer_id, trim(name) AS name, {_country('country')} AS country, "
    "signed_up FROM customers",
)
ARTICLES = (
    "articles",
    f"SELECT product_id, name, {_title('category')} AS category, {_PRICE} AS price FROM products",
)
SALES = (
    "sales",
    "SELECT DISTINCT order_id, upper(trim(customer_id)) AS customer_id, "
    f"{_date('order_date')} AS day, {_STATUS} AS status, {_FEE} AS fee FROM orders",
)
PARTS = (
    "parts",
    "SELECT DISTINCT order_id, line_no, product_id, CAST(trim(quantity) AS INTEGER) AS units, "
    "CASE WHEN discount = '-' THEN 0 ELSE CAST(discount AS INTEGER) END AS percent "
    "FROM order_lines",
)
WORTH = (
    "worth",
    "SELECT p.order_id, SUM(p.units * a.price * (100 - p.percent) / 100.0) AS total "
    "FROM parts AS p JOIN articles AS a ON a.product_id = p.product_id GROUP BY p.order_id",
)


# ---- what is right, in Python ---------------------------------------------------------


def _one(value: Any) -> Rows:
    return [(value,)]


def _product(m: Market) -> dict[int, Product]:
    return {p.id: p for p in m.products}


def _values(m: Market) -> dict[int, float]:
    """Order → what its lines are worth."""
    product, total = _product(m), defaultdict[int, float](float)
    for line in m.lines:
        total[line.order] += (
            product[line.product].cents * line.quantity * (100 - line.discount) / 10_000
        )
    return total


def _country_of(m: Market) -> dict[str, str]:
    return {c.id: c.country for c in m.customers}


def _units(lines: Iterable[Line]) -> Counter[int]:
    units: Counter[int] = Counter()
    for line in lines:
        units[line.product] += line.quantity
    return units


def _best_sellers(m: Market) -> Rows:
    units = _units(m.lines)
    rows: Rows = []
    for category in sorted({p.category for p in m.products}):
        inside = [p for p in m.products if p.category == category and units[p.id]]
        inside.sort(key=lambda p: (-units[p.id], p.name))
        rows += [(category, p.name, units[p.id]) for p in inside[:3]]
    return rows


def _cancelled_by_month(m: Market) -> Rows:
    months = sorted({f"{o.day:%Y-%m}" for o in m.orders if o.day.year == 2024})
    by_month = {k: [o for o in m.orders if f"{o.day:%Y-%m}" == k] for k in months}
    return [
        (month, round(100 * sum(o.status == "cancelled" for o in orders) / len(orders), 1))
        for month, orders in by_month.items()
    ]


def _best_country(m: Market) -> Rows:
    value, home = _values(m), _country_of(m)
    total = defaultdict[str, float](float)
    for order in m.orders:
        if order.status != "cancelled":
            total[home[order.customer]] += value[order.id]
    best = max(total, key=lambda country: total[country])
    return [(best, round(total[best], 2))]


def _ratio(m: Market) -> Rows:
    value, home = _values(m), _country_of(m)

    def average(country: str) -> float:
        return mean(
            value[o.id] for o in m.orders if o.status == "delivered" and home[o.customer] == country
        )

    return _one(round(average("Germany") / average("France"), 2))


def _main_suppliers(m: Market) -> Rows:
    count = Counter(s.supplier for s in m.supplies)
    rows: Rows = []
    for country in sorted({s.country for s in m.suppliers}):
        inside = [s for s in m.suppliers if s.country == country and count[s.id]]
        inside.sort(key=lambda s: (-count[s.id], s.name))
        rows += [(country, s.name, count[s.id]) for s in inside[:1]]
    return rows


def _dear(m: Market) -> Rows:
    average = {
        c: mean(p.cents for p in m.products if p.category == c)
        for c in {p.category for p in m.products}
    }
    return [(p.name,) for p in m.products if p.cents > 3 * average[p.category]]


def _margins(m: Market) -> Rows:
    cheapest: dict[int, int] = {}
    for s in m.supplies:
        if s.cents is not None:
            cheapest[s.product] = min(s.cents, cheapest.get(s.product, s.cents))
    rows = [(p.name, (p.cents - cheapest[p.id]) / 100) for p in m.products if p.id in cheapest]
    return sorted(rows, key=lambda row: -row[1])[:5]


def _in_month(m: Market, month: str) -> set[str]:
    return {o.customer for o in m.orders if f"{o.day:%Y-%m}" == month}


def _above(m: Market) -> Rows:
    value = _values(m)
    spent = defaultdict[str, float](float)
    for order in m.orders:
        if order.status != "cancelled":
            spent[order.customer] += value[order.id]
    return _one(sum(total > mean(spent.values()) for total in spent.values()))


def _ask(
    question: str,
    tables: str,
    steps: Sequence[tuple[str, str]] | str,
    answer: Callable[[Market], Rows],
    columns: str = "answer",
) -> Asked:
    chain = (("answer", steps),) if isinstance(steps, str) else tuple(steps)
    return Asked(question, tuple(tables.split()), chain, answer, tuple(columns.split()))


def _customers(where: str) -> str:
    return f"SELECT COUNT(DISTINCT customer_id) FROM customers WHERE {where}"


SINGLE = (
    _ask(
        "How many customers live in Paris?",
        "customers",
        _customers(f"lower(trim(city)) IN {_any_spelling('Paris')}"),
        lambda m: _one(sum(c.city == "Paris" for c in m.customers)),
    ),
    _ask(
        "How many customers live in São Paulo?",
        "customers",
        _customers(f"lower(trim(city)) IN {_any_spelling('São Paulo')}"),
        lambda m: _one(sum(c.city == "São Paulo" for c in m.customers)),
    ),
    _ask(
        "How many customers are from Germany?",
        "customers",
        _customers(f"lower(trim(country)) IN {_any_spelling('Germany')}"),
        lambda m: _one(sum(c.country == "Germany" for c in m.customers)),
    ),
    _ask(
        "How many customers have an active account?",
        "customers",
        _customers(f"active {_FLAG}"),
        lambda m: _one(sum(c.active for c in m.customers)),
    ),
    _ask(
        "How many customers in Zürich have an account that is not active?",
        "customers",
        _customers(f"lower(trim(city)) IN {_any_spelling('Zürich')} AND NOT active {_FLAG}"),
        lambda m: _one(sum(c.city == "Zürich" and not c.active for c in m.customers)),
    ),
    _ask(
        "How many customers signed up in 2023?",
        "customers",
        _customers("signed_up LIKE '2023-%' OR signed_up LIKE '%.2023'"),
        lambda m: _one(sum(c.signed_up.year == 2023 for c in m.customers)),
    ),
    _ask(
        "How many orders were cancelled?",
        "orders",
        "SELECT COUNT(DISTINCT order_id) FROM orders WHERE lower(trim(status)) LIKE 'cancel%'",
        lambda m: _one(sum(o.status == "cancelled" for o in m.orders)),
    ),
    _ask(
        "How many orders were placed in March 2024?",
        "orders",
        f"SELECT COUNT(DISTINCT order_id) FROM orders WHERE {_date('order_date')} LIKE '2024-03-%'",
        lambda m: _one(sum(f"{o.day:%Y-%m}" == "2024-03" for o in m.orders)),
    ),
    _ask(
        "On which day was the first order placed (YYYY-MM-DD)?",
        "orders",
        f"SELECT MIN({_date('order_date')}) FROM orders",
        lambda m: _one(min(o.day for o in m.orders).isoformat()),
    ),
    _ask(
        "How many orders have no known shipping fee?",
        "orders",
        "SELECT COUNT(DISTINCT order_id) FROM orders WHERE shipping_fee IN ('N/A', 'n/a', '-')",
        lambda m: _one(sum(o.cents is None for o in m.orders)),
    ),
    _ask(
        "What do all products cost together?",
        "products",
        f"SELECT ROUND(SUM({_PRICE}), 2) FROM products",
        lambda m: _one(sum(p.cents for p in m.products) / 100),
    ),
    _ask(
        "Which product is the most expensive?",
        "products",
        f"SELECT name FROM products ORDER BY {_PRICE} DESC LIMIT 1",
        lambda m: _one(max(m.products, key=lambda p: p.cents).name),
    ),
    _ask(
        "How many products weigh more than 2 kg?",
        "products",
        f"SELECT COUNT(*) FROM products WHERE ROUND({_GRAMS}) > 2000",
        lambda m: _one(sum(p.grams > 2000 for p in m.products)),
    ),
    _ask(
        "How many products are there in each category?",
        "products",
        f"SELECT {_title('category')} AS category, COUNT(*) FROM products GROUP BY 1",
        lambda m: list(Counter(p.category for p in m.products).items()),
        "category products",
    ),
    _ask(
        "What is the average lead time in days of the suppliers in Italy, rounded to 2 places?",
        "suppliers",
        f"SELECT ROUND(AVG({_known('lead_time', 'CAST(lead_time AS INTEGER)')}), 2) "
        f"FROM suppliers WHERE {_country('country')} = 'Italy'",
        lambda m: _one(
            round(mean(s.days for s in m.suppliers if s.country == "Italy" and s.days), 2)
        ),
    ),
    _ask(
        "What is the average rating of all reviews, rounded to 2 places?",
        "reviews",
        f"SELECT ROUND(AVG({_known('rating', 'CAST(rating AS INTEGER)')}), 2) FROM reviews",
        lambda m: _one(round(mean(r.rating for r in m.reviews if r.rating), 2)),
    ),
    _ask(
        "How many reviews did verified buyers write in 2024?",
        "reviews",
        f"SELECT COUNT(*) FROM reviews WHERE verified {_FLAG} "
        f"AND {_date('review_date')} LIKE '2024-%'",
        lambda m: _one(sum(r.verified and r.day.year == 2024 for r in m.reviews)),
    ),
    _ask(
        "How many units were sold in all orders together?",
        "order_lines",
        (PARTS, ("answer", "SELECT SUM(units) FROM parts")),
        lambda m: _one(sum(line.quantity for line in m.lines)),
    ),
    _ask(
        "What are the shipping fees of all delivered orders together?",
        "orders",
        (SALES, ("answer", "SELECT ROUND(SUM(fee), 2) FROM sales WHERE status = 'delivered'")),
        lambda m: _one(sum(o.cents or 0 for o in m.orders if o.status == "delivered") / 100),
    ),
)

SEVERAL = (
    _ask(
        "Which three products of each category sold the most units? Give category, name and "
        "units, ties by name.",
        "products order_lines",
        (
            ARTICLES,
            PARTS,
            (
                "sold",
                "SELECT a.category, a.name, SUM(p.units) AS units FROM parts AS p "
                "JOIN articles AS a ON a.product_id = p.product_id GROUP BY a.category, a.name",
            ),
            (
                "ranked",
                "SELECT category, name, units, ROW_NUMBER() OVER "
                "(PARTITION BY category ORDER BY units DESC, name) AS place FROM sold",
            ),
            ("answer", "SELECT category, name, units FROM ranked WHERE place <= 3"),
        ),
        _best_sellers,
        "category name units",
    ),
    _ask(
        "Which customers from Spain have never placed an order?",
        "customers orders",
        (
            BUYERS,
            SALES,
            (
                "answer",
                "SELECT name FROM buyers WHERE country = 'Spain' "
                "AND customer_id NOT IN (SELECT customer_id FROM sales)",
            ),
        ),
        lambda m: [
            (c.name,)
            for c in m.customers
            if c.country == "Spain" and c.id not in {o.customer for o in m.orders}
        ],
        "name",
    ),
    _ask(
        "What percentage of the orders of each month of 2024 was cancelled, to 1 place?",
        "orders",
        (
            SALES,
            (
                "answer",
                "SELECT substr(day, 1, 7) AS month, "
                "ROUND(100.0 * SUM(status = 'cancelled') / COUNT(*), 1) AS percent "
                "FROM sales WHERE day LIKE '2024-%' GROUP BY 1",
            ),
        ),
        _cancelled_by_month,
        "month percent",
    ),
    _ask(
        "The customers of which country bought for the most money, without cancelled orders "
        "and after discounts, and for how much?",
        "customers products orders order_lines",
        (
            BUYERS,
            ARTICLES,
            SALES,
            PARTS,
            WORTH,
            (
                "answer",
                "SELECT b.country, ROUND(SUM(w.total), 2) AS total FROM sales AS s "
                "JOIN worth AS w ON w.order_id = s.order_id "
                "JOIN buyers AS b ON b.customer_id = s.customer_id "
                "WHERE s.status <> 'cancelled' GROUP BY b.country ORDER BY total DESC LIMIT 1",
            ),
        ),
        _best_country,
        "country total",
    ),
    _ask(
        "How many products were ordered but never reviewed?",
        "order_lines reviews",
        (
            (
                "unreviewed",
                "SELECT product_id FROM order_lines EXCEPT SELECT product_id FROM reviews",
            ),
            ("answer", "SELECT COUNT(*) FROM unreviewed"),
        ),
        lambda m: _one(
            len({line.product for line in m.lines} - {review.product for review in m.reviews})
        ),
    ),
    _ask(
        "How many customers ordered both in January 2024 and in February 2024?",
        "orders",
        (
            SALES,
            (
                "both_months",
                "SELECT customer_id FROM sales WHERE day LIKE '2024-01-%' INTERSECT "
                "SELECT customer_id FROM sales WHERE day LIKE '2024-02-%'",
            ),
            ("answer", "SELECT COUNT(*) FROM both_months"),
        ),
        lambda m: _one(len(_in_month(m, "2024-01") & _in_month(m, "2024-02"))),
    ),
    _ask(
        "How many times as high as in France is the average value of a delivered order in "
        "Germany, after discounts and to 2 places?",
        "customers products orders order_lines",
        (
            BUYERS,
            ARTICLES,
            SALES,
            PARTS,
            WORTH,
            (
                "averages",
                "SELECT b.country, AVG(w.total) AS average FROM sales AS s "
                "JOIN worth AS w ON w.order_id = s.order_id "
                "JOIN buyers AS b ON b.customer_id = s.customer_id "
                "WHERE s.status = 'delivered' GROUP BY b.country",
            ),
            (
                "answer",
                "SELECT ROUND((SELECT average FROM averages WHERE country = 'Germany') / "
                "(SELECT average FROM averages WHERE country = 'France'), 2) AS ratio",
            ),
        ),
        _ratio,
        "ratio",
    ),
    _ask(
        "Which supplier of each country supplies the most products, and how many? Give country, "
        "supplier and number, ties by name.",
        "suppliers supplies",
        (
            (
                "counted",
                f"SELECT {_country('s.country')} AS country, s.name, COUNT(*) AS products "
                "FROM suppliers AS s JOIN supplies AS u ON u.supplier_id = s.supplier_id "
                "GROUP BY s.supplier_id",
            ),
            (
                "ranked",
                "SELECT country, name, products, ROW_NUMBER() OVER "
                "(PARTITION BY country ORDER BY products DESC, name) AS place FROM counted",
            ),
            ("answer", "SELECT country, name, products FROM ranked WHERE place = 1"),
        ),
        _main_suppliers,
        "country name products",
    ),
    _ask(
        "Which products cost more than three times the average price of their category?",
        "products",
        (
            ARTICLES,
            (
                "averages",
                "SELECT category, AVG(price) AS average FROM articles GROUP BY category",
            ),
            (
                "answer",
                "SELECT a.name FROM articles AS a JOIN averages AS v "
                "ON v.category = a.category WHERE a.price > 3 * v.average",
            ),
        ),
        _dear,
        "name",
    ),
    _ask(
        "For which five products is the price furthest above the lowest known unit cost, and by "
        "how much?",
        "products supplies",
        (
            ARTICLES,
            (
                "costs",
                "SELECT product_id, MIN(CAST(replace(unit_cost, ',', '.') AS REAL)) AS cost "
                "FROM supplies WHERE unit_cost <> '-' GROUP BY product_id",
            ),
            (
                "answer",
                "SELECT a.name, ROUND(a.price - c.cost, 2) AS margin FROM articles AS a "
                "JOIN costs AS c ON c.product_id = a.product_id ORDER BY margin DESC LIMIT 5",
            ),
        ),
        _margins,
        "name margin",
    ),
    _ask(
        "How many customers spent more than the average customer who bought anything, without "
        "cancelled orders and after discounts?",
        "products orders order_lines",
        (
            ARTICLES,
            SALES,
            PARTS,
            WORTH,
            (
                "spent",
                "SELECT s.customer_id, SUM(w.total) AS total FROM sales AS s "
                "JOIN worth AS w ON w.order_id = s.order_id WHERE s.status <> 'cancelled' "
                "GROUP BY s.customer_id",
            ),
            ("answer", "SELECT COUNT(*) FROM spent WHERE total > (SELECT AVG(total) FROM spent)"),
        ),
        _above,
    ),
)
QUESTIONS: tuple[Asked, ...] = (*SINGLE, *SEVERAL)
