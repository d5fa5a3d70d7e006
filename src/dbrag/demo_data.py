"""The words of the demo shop: its schema, names and goods."""

from __future__ import annotations

SCHEMA = """
CREATE TABLE categories (
    category_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    description TEXT
);
CREATE TABLE suppliers (
    supplier_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    country TEXT NOT NULL,
    email TEXT
);
CREATE TABLE products (
    product_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    category_id INTEGER NOT NULL REFERENCES categories (category_id),
    supplier_id INTEGER NOT NULL REFERENCES suppliers (supplier_id),
    price DECIMAL(8, 2) NOT NULL,
    weight_kg REAL,
    discontinued_on DATE
);
CREATE TABLE stores (
    store_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    city TEXT NOT NULL,
    opened_on DATE NOT NULL
);
CREATE TABLE staff (
    staff_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    job_title TEXT NOT NULL,
    store_id INTEGER NOT NULL REFERENCES stores (store_id),
    manager_id INTEGER REFERENCES staff (staff_id),
    hired_on DATE NOT NULL,
    salary DECIMAL(9, 2) NOT NULL
);
CREATE TABLE customers (
    customer_id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT,
    city TEXT NOT NULL,
    "postal code" TEXT NOT NULL,
    birth_date DATE,
    joined_on DATE NOT NULL
);
CREATE TABLE stock (
    store_id INTEGER NOT NULL REFERENCES stores (store_id),
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    quantity INTEGER NOT NULL,
    PRIMARY KEY (store_id, product_id)
);
CREATE TABLE orders (
    order_id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    store_id INTEGER NOT NULL REFERENCES stores (store_id),
    staff_id INTEGER NOT NULL REFERENCES staff (staff_id),
    ordered_on DATE NOT NULL,
    status TEXT NOT NULL,
    note TEXT
);
CREATE TABLE order_lines (
    order_line_id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    quantity INTEGER NOT NULL,
    unit_price DECIMAL(8, 2) NOT NULL
);
CREATE TABLE payments (
    payment_id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    amount DECIMAL(10, 2) NOT NULL,
    method TEXT NOT NULL,
    paid_on DATE NOT NULL
);
CREATE TABLE shipments (
    shipment_id INTEGER PRIMARY KEY,
    order_id INTEGER NOT NULL REFERENCES orders (order_id),
    carrier TEXT NOT NULL,
    shipped_on DATE NOT NULL,
    delivered_on DATE
);
CREATE TABLE returns (
    return_id INTEGER PRIMARY KEY,
    order_line_id INTEGER NOT NULL REFERENCES order_lines (order_line_id),
    returned_on DATE NOT NULL,
    reason TEXT,
    refund_amount DECIMAL(10, 2) NOT NULL
);
CREATE TABLE reviews (
    review_id INTEGER PRIMARY KEY,
    product_id INTEGER NOT NULL REFERENCES products (product_id),
    customer_id INTEGER NOT NULL REFERENCES customers (customer_id),
    rating INTEGER NOT NULL CHECK (rating BETWEEN 1 AND 5),
    comment TEXT,
    written_on DATE NOT NULL
);
CREATE TABLE "gift cards" (
    card_number TEXT PRIMARY KEY,
    customer_id INTEGER REFERENCES customers (customer_id),
    amount DECIMAL(8, 2) NOT NULL,
    balance DECIMAL(8, 2) NOT NULL,
    issued_on DATE NOT NULL,
    expires_on DATE NOT NULL
);
CREATE VIEW order_totals AS
    SELECT orders.order_id, orders.customer_id, orders.ordered_on,
           SUM(order_lines.quantity * order_lines.unit_price) AS total
    FROM orders JOIN order_lines ON order_lines.order_id = orders.order_id
    GROUP BY orders.order_id;
"""

CATEGORIES = (
    ("Coffee", "Beans, ground coffee and capsules"),
    ("Tea", "Loose leaf and bags"),
    ("Kitchen", "Pots, pans and tools"),
    ("Garden", "Tools, pots and seeds"),
    ("Stationery", "Paper, pens and notebooks"),
    ("Toys", "For children up to twelve"),
    ("Textiles", "Towels, blankets and cushions"),
    ("Lighting", None),
)

PRODUCTS = (
    (("Espresso Beans", "Filter Coffee", "Coffee Capsules", "Decaf Coffee"), 5, 24),
    (("Green Tea", "Black Tea", "Herbal Tea", "Jasmine Tea"), 3, 18),
    (("Frying Pan", "Saucepan", "Bread Knife", "Cutting Board", "Mixing Bowl"), 8, 90),
    (("Watering Can", "Hand Trowel", "Flower Pot", "Garden Hose"), 4, 60),
    (("Notebook", "Fountain Pen", "Desk Calendar", "Letter Paper"), 2, 45),
    (("Wooden Train", "Puzzle", "Building Blocks", "Kite"), 6, 55),
    (("Bath Towel", "Wool Blanket", "Cushion Cover", "Table Cloth"), 7, 80),
    (("Desk Lamp", "Table Lamp", "Lantern", "String Lights"), 9, 120),
)
"""For each category: goods, and the lowest and highest price."""

STYLES = ("Classic", "Nordic", "Rustic", "Modern", "Compact", "Premium", "Everyday", "Coastal")

SUPPLIERS = (
    ("Nordic Mills", "Sweden"),
    ("Blue Harbour Trading", "Portugal"),
    ("Alpine Goods", "Austria"),
    ("Lowland Imports", "Netherlands"),
    ("Verde Home", "Italy"),
    ("Baltic Paper", "Estonia"),
    ("Castle Crafts", "Ireland"),
    ("Sunfield Farms", "Spain"),
    ("Orchid Textiles", "France"),
    ("Stone Bridge Supply", "Germany"),
    ("Little Fox Toys", "Denmark"),
    ("Lumen Works", "Poland"),
)

STORES = (
    ("Harbour Street", "Lisbon", "2014-03-01"),
    ("Old Market", "Dublin", "2015-09-12"),
    ("Canal House", "Amsterdam", "2016-05-20"),
    ("Station Square", "Vienna", "2017-11-03"),
    ("Castle Hill", "Edinburgh", "2018-04-14"),
    ("River Walk", "Prague", "2019-08-30"),
    ("North Quay", "Copenhagen", "2021-02-26"),
    ("Garden Arcade", "Lyon", "2022-10-07"),
)

CITIES = (
    ("Lisbon", "PT-1"),
    ("Dublin", "IE-2"),
    ("Amsterdam", "NL-1"),
    ("Vienna", "AT-1"),
    ("Edinburgh", "UK-3"),
    ("Prague", "CZ-1"),
    ("Copenhagen", "DK-2"),
    ("Lyon", "FR-6"),
    ("Porto", "PT-4"),
    ("Cork", "IE-5"),
    ("Graz", "AT-8"),
    ("Brno", "CZ-6"),
)

_FIRST_NAMES = (
    "Anna Ben Clara David Elena Felix Grace Hugo Irene Jonas Karin Leo Marta Nils Olivia Paul "
    "Quinn Rosa Simon Teresa Ulrich Vera Walter Xenia Yusuf Zoe Amira Boris Carmen Dmitri Esther "
    "Frida Georg Hana Ivan Julia Kofi Laura Mateo Nadia"
)
FIRST_NAMES = tuple(_FIRST_NAMES.split())
_LAST_NAMES = (
    "Almeida Bauer Costa Dubois Eriksen Ferrari Garcia Hansen Ibrahim Jensen Kowalski Larsen "
    "Murphy Novak Okafor Petrov Quirke Rossi Schmidt Tanaka Ueda Vargas Weber Xu Young Zeman "
    "Byrne Collins Doyle Evans Fischer Gruber Horvat Ivanova Janssen Klein Lopez Moreau Nilsen "
    "O'Brien Pereira Reyes Santos Turner Urban Visser Walsh Yilmaz Zhang Andersen Brandt"
)
LAST_NAMES = tuple(_LAST_NAMES.split())

SALARIES = {
    "Manager": (420, 560),
    "Cashier": (240, 300),
    "Sales Assistant": (260, 330),
    "Buyer": (340, 430),
}
"""Yearly pay in hundreds, lowest and highest, by job."""

NOTES = ("gift wrap", "leave at the door", "call before delivery", "invoice to the company")
CARRIERS = ("Swift Parcel", "Green Courier", "Postal Service")
RETURN_REASONS = ("damaged", "wrong item", "changed mind", "arrived late")
COMMENTS = {
    5: ("Excellent, would buy again.", "Exactly as described.", "A perfect present."),
    4: ("Very good.", "Good quality, slow delivery."),
    3: ("It is all right.", "Smaller than I thought."),
    2: ("Not what I hoped for.", "The colour is off."),
    1: ("Broke after a week.", "Never again."),
}
