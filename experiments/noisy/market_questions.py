"""Thirty questions on the noisy market: the right answer, and an ideal program for each.

The right answers are computed in Python from the clean records. The programs compute them
in SQL from what was typed: chains of steps, as a model would write them.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import mean
from typing import TYPE_CHECKING

import market_answers as right
import market_sql as typed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from market_answers import Rows
    from market_data import Market


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
        _customers(f"lower(trim(city)) IN {typed.any_spelling('Paris')}"),
        lambda m: right.one(sum(c.city == "Paris" for c in m.customers)),
    ),
    _ask(
        "How many customers live in São Paulo?",
        "customers",
        _customers(f"lower(trim(city)) IN {typed.any_spelling('São Paulo')}"),
        lambda m: right.one(sum(c.city == "São Paulo" for c in m.customers)),
    ),
    _ask(
        "How many customers are from Germany?",
        "customers",
        _customers(f"lower(trim(country)) IN {typed.any_spelling('Germany')}"),
        lambda m: right.one(sum(c.country == "Germany" for c in m.customers)),
    ),
    _ask(
        "How many customers have an active account?",
        "customers",
        _customers(f"active {typed.FLAG}"),
        lambda m: right.one(sum(c.active for c in m.customers)),
    ),
    _ask(
        "How many customers in Zürich have an account that is not active?",
        "customers",
        _customers(
            f"lower(trim(city)) IN {typed.any_spelling('Zürich')} AND NOT active {typed.FLAG}"
        ),
        lambda m: right.one(sum(c.city == "Zürich" and not c.active for c in m.customers)),
    ),
    _ask(
        "How many customers signed up in 2023?",
        "customers",
        _customers("signed_up LIKE '2023-%' OR signed_up LIKE '%.2023'"),
        lambda m: right.one(sum(c.signed_up.year == 2023 for c in m.customers)),
    ),
    _ask(
        "How many orders were cancelled?",
        "orders",
        "SELECT COUNT(DISTINCT order_id) FROM orders WHERE lower(trim(status)) LIKE 'cancel%'",
        lambda m: right.one(sum(o.status == "cancelled" for o in m.orders)),
    ),
    _ask(
        "How many orders were placed in March 2024?",
        "orders",
        "SELECT COUNT(DISTINCT order_id) FROM orders "
        f"WHERE {typed.date('order_date')} LIKE '2024-03-%'",
        lambda m: right.one(sum(f"{o.day:%Y-%m}" == "2024-03" for o in m.orders)),
    ),
    _ask(
        "On which day was the first order placed (YYYY-MM-DD)?",
        "orders",
        f"SELECT MIN({typed.date('order_date')}) FROM orders",
        lambda m: right.one(min(o.day for o in m.orders).isoformat()),
    ),
    _ask(
        "How many orders have no known shipping fee?",
        "orders",
        "SELECT COUNT(DISTINCT order_id) FROM orders WHERE shipping_fee IN ('N/A', 'n/a', '-')",
        lambda m: right.one(sum(o.cents is None for o in m.orders)),
    ),
    _ask(
        "What do all products cost together?",
        "products",
        f"SELECT ROUND(SUM({typed.PRICE}), 2) FROM products",
        lambda m: right.one(sum(p.cents for p in m.products) / 100),
    ),
    _ask(
        "Which product is the most expensive?",
        "products",
        f"SELECT name FROM products ORDER BY {typed.PRICE} DESC LIMIT 1",
        lambda m: right.one(max(m.products, key=lambda p: p.cents).name),
    ),
    _ask(
        "How many products weigh more than 2 kg?",
        "products",
        f"SELECT COUNT(*) FROM products WHERE ROUND({typed.GRAMS}) > 2000",
        lambda m: right.one(sum(p.grams > 2000 for p in m.products)),
    ),
    _ask(
        "How many products are there in each category?",
        "products",
        f"SELECT {typed.title('category')} AS category, COUNT(*) FROM products GROUP BY 1",
        lambda m: list(Counter(p.category for p in m.products).items()),
        "category products",
    ),
    _ask(
        "What is the average lead time in days of the suppliers in Italy, rounded to 2 places?",
        "suppliers",
        f"SELECT ROUND(AVG({typed.known('lead_time', 'CAST(lead_time AS INTEGER)')}), 2) "
        f"FROM suppliers WHERE {typed.country('country')} = 'Italy'",
        lambda m: right.one(
            round(mean(s.days for s in m.suppliers if s.country == "Italy" and s.days), 2)
        ),
    ),
    _ask(
        "What is the average rating of all reviews, rounded to 2 places?",
        "reviews",
        f"SELECT ROUND(AVG({typed.known('rating', 'CAST(rating AS INTEGER)')}), 2) FROM reviews",
        lambda m: right.one(round(mean(r.rating for r in m.reviews if r.rating), 2)),
    ),
    _ask(
        "How many reviews did verified buyers write in 2024?",
        "reviews",
        f"SELECT COUNT(*) FROM reviews WHERE verified {typed.FLAG} "
        f"AND {typed.date('review_date')} LIKE '2024-%'",
        lambda m: right.one(sum(r.verified and r.day.year == 2024 for r in m.reviews)),
    ),
    _ask(
        "How many units were sold in all orders together?",
        "order_lines",
        (typed.PARTS, ("answer", "SELECT SUM(units) FROM parts")),
        lambda m: right.one(sum(line.quantity for line in m.lines)),
    ),
    _ask(
        "What are the shipping fees of all delivered orders together?",
        "orders",
        (
            typed.SALES,
            ("answer", "SELECT ROUND(SUM(fee), 2) FROM sales WHERE status = 'delivered'"),
        ),
        lambda m: right.one(sum(o.cents or 0 for o in m.orders if o.status == "delivered") / 100),
    ),
)

SEVERAL = (
    _ask(
        "Which three products of each category sold the most units? Give category, name and "
        "units, ties by name.",
        "products order_lines",
        (
            typed.ARTICLES,
            typed.PARTS,
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
        right.best_sellers,
        "category name units",
    ),
    _ask(
        "Which customers from Spain have never placed an order?",
        "customers orders",
        (
            typed.BUYERS,
            typed.SALES,
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
            typed.SALES,
            (
                "answer",
                "SELECT substr(day, 1, 7) AS month, "
                "ROUND(100.0 * SUM(status = 'cancelled') / COUNT(*), 1) AS percent "
                "FROM sales WHERE day LIKE '2024-%' GROUP BY 1",
            ),
        ),
        right.cancelled_by_month,
        "month percent",
    ),
    _ask(
        "The customers of which country bought for the most money, without cancelled orders "
        "and after discounts, and for how much?",
        "customers products orders order_lines",
        (
            typed.BUYERS,
            typed.ARTICLES,
            typed.SALES,
            typed.PARTS,
            typed.WORTH,
            (
                "answer",
                "SELECT b.country, ROUND(SUM(w.total), 2) AS total FROM sales AS s "
                "JOIN worth AS w ON w.order_id = s.order_id "
                "JOIN buyers AS b ON b.customer_id = s.customer_id "
                "WHERE s.status <> 'cancelled' GROUP BY b.country ORDER BY total DESC LIMIT 1",
            ),
        ),
        right.best_country,
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
        lambda m: right.one(
            len({line.product for line in m.lines} - {review.product for review in m.reviews})
        ),
    ),
    _ask(
        "How many customers ordered both in January 2024 and in February 2024?",
        "orders",
        (
            typed.SALES,
            (
                "both_months",
                "SELECT customer_id FROM sales WHERE day LIKE '2024-01-%' INTERSECT "
                "SELECT customer_id FROM sales WHERE day LIKE '2024-02-%'",
            ),
            ("answer", "SELECT COUNT(*) FROM both_months"),
        ),
        lambda m: right.one(len(right.in_month(m, "2024-01") & right.in_month(m, "2024-02"))),
    ),
    _ask(
        "How many times as high as in France is the average value of a delivered order in "
        "Germany, after discounts and to 2 places?",
        "customers products orders order_lines",
        (
            typed.BUYERS,
            typed.ARTICLES,
            typed.SALES,
            typed.PARTS,
            typed.WORTH,
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
        right.ratio,
        "ratio",
    ),
    _ask(
        "Which supplier of each country supplies the most products, and how many? Give country, "
        "supplier and number, ties by name.",
        "suppliers supplies",
        (
            (
                "counted",
                f"SELECT {typed.country('s.country')} AS country, s.name, COUNT(*) AS products "
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
        right.main_suppliers,
        "country name products",
    ),
    _ask(
        "Which products cost more than three times the average price of their category?",
        "products",
        (
            typed.ARTICLES,
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
        right.dear,
        "name",
    ),
    _ask(
        "For which five products is the price furthest above the lowest known unit cost, and by "
        "how much?",
        "products supplies",
        (
            typed.ARTICLES,
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
        right.margins,
        "name margin",
    ),
    _ask(
        "How many customers spent more than the average customer who bought anything, without "
        "cancelled orders and after discounts?",
        "products orders order_lines",
        (
            typed.ARTICLES,
            typed.SALES,
            typed.PARTS,
            typed.WORTH,
            (
                "spent",
                "SELECT s.customer_id, SUM(w.total) AS total FROM sales AS s "
                "JOIN worth AS w ON w.order_id = s.order_id WHERE s.status <> 'cancelled' "
                "GROUP BY s.customer_id",
            ),
            ("answer", "SELECT COUNT(*) FROM spent WHERE total > (SELECT AVG(total) FROM spent)"),
        ),
        right.above,
    ),
)
QUESTIONS: tuple[Asked, ...] = (*SINGLE, *SEVERAL)
