"""How the noisy market was typed, undone in SQL: expressions and steps of ideal programs."""

from __future__ import annotations

from market_data import MISSPELT


def date(cell: str) -> str:
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


def known(cell: str, number: str) -> str:
    """A number, or NULL where a word for "unknown" stands."""
    return f"CASE WHEN {cell} IN ('N/A', 'n/a', '-') THEN NULL ELSE {number} END"


def title(cell: str) -> str:
    """One spelling of a word: first letter capital, no blanks around."""
    return f"upper(substr(trim({cell}), 1, 1)) || lower(substr(trim({cell}), 2))"


def country(cell: str) -> str:
    """One spelling of a country."""
    return (
        f"CASE lower(trim({cell})) WHEN 'germny' THEN 'Germany' WHEN 'itlay' THEN 'Italy' "
        f"ELSE {title(cell)} END"
    )


def any_spelling(place: str) -> str:
    """The list of a place's spellings after SQLite's lower(), which knows A to Z only."""
    plain = place.translate(str.maketrans("öüáã", "ouaa"))
    wrong = [bad for bad, good in MISSPELT.items() if good == place]
    every = [place, place.upper(), plain, *wrong]
    lower = ("".join(c.lower() if c.isascii() else c for c in text) for text in every)
    return "(" + ", ".join(f"'{text}'" for text in dict.fromkeys(lower)) + ")"


FLAG = "IN ('yes', 'Y', '1')"
FEE = known("shipping_fee", "CAST(replace(shipping_fee, ',', '.') AS REAL)")
PRICE = (
    "CAST(CASE WHEN price LIKE '%€' THEN replace(replace(price, '.', ''), ',', '.') "
    "ELSE replace(replace(price, '€', ''), ',', '') END AS REAL)"
)
GRAMS = "CAST(weight AS REAL) * CASE WHEN weight LIKE '%kg' THEN 1000 ELSE 1 END"
STATUS = (
    "CASE WHEN lower(trim(status)) LIKE 'cancel%' THEN 'cancelled' ELSE lower(trim(status)) END"
)
BUYERS = (
    "buyers",
    f"SELECT DISTINCT customer_id, trim(name) AS name, {country('country')} AS country, "
    "signed_up FROM customers",
)
ARTICLES = (
    "articles",
    f"SELECT product_id, name, {title('category')} AS category, {PRICE} AS price FROM products",
)
SALES = (
    "sales",
    "SELECT DISTINCT order_id, upper(trim(customer_id)) AS customer_id, "
    f"{date('order_date')} AS day, {STATUS} AS status, {FEE} AS fee FROM orders",
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
