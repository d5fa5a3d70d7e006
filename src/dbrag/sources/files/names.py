"""Names: which files hold data, what their tables and columns are called."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence

JSON_EXTENSIONS = frozenset({".json", ".jsonl", ".ndjson"})
SPREADSHEET_EXTENSIONS = frozenset({".xlsx", ".xlsm", ".xls", ".xlsb", ".ods"})
PARQUET_EXTENSIONS = frozenset({".parquet", ".pq"})
ARROW_EXTENSIONS = frozenset({".feather", ".arrow"})
DATA_EXTENSIONS = (
    frozenset({".csv", ".tsv", ".tab"})
    | JSON_EXTENSIONS
    | SPREADSHEET_EXTENSIONS
    | PARQUET_EXTENSIONS
    | ARROW_EXTENSIONS
)
"""Endings of data files found in a folder, in lower case."""
NAMED_EXTENSIONS = DATA_EXTENSIONS | {".txt", ".dat", ".psv"}
"""Endings read where the file itself is named."""
COMPRESSED_EXTENSIONS = frozenset({".gz", ".bz2", ".xz", ".zst"})
"""Endings that may follow those of data files; ``.zip`` holds several of them."""
ARCHIVE_EXTENSION = ".zip"


def split_name(path: str) -> tuple[str, str, str]:
    """(stem, ending of the data, ending of the compression) of a path, endings in lower case.

    ``/x/Sales.2024.CSV.gz`` is ``("Sales.2024", ".csv", ".gz")``.
    """
    name = os.path.basename(path)
    stem, ending = os.path.splitext(name)
    packed = ""
    if ending.lower() in COMPRESSED_EXTENSIONS:
        packed = ending.lower()
        stem, ending = os.path.splitext(stem)
    return stem, ending.lower(), packed


def is_data_file(path: str, *, named: bool = False) -> bool:
    """Whether its name ends as that of a data file, packed or not; the file is not opened.

    Args:
        named: the user named this very file: a ``.txt`` is then taken for data.
    """
    _, ending, packed = split_name(path)
    return ending in (NAMED_EXTENSIONS if named else DATA_EXTENSIONS) or (
        ending == ARCHIVE_EXTENSION and not packed
    )


def is_hidden(name: str) -> bool:
    """Whether a file or folder is hidden, or left by an office program that is open."""
    return name.startswith((".", "~$", ".~lock.")) or name == "__MACOSX"


def unique_table_names(wanted: Sequence[tuple[str, str]]) -> list[str]:
    """One name for each (name, parent folder), equal without regard to case to no other.

    Where names collide all of them get their parent folder before it, then a number.
    """
    count = Counter(name.casefold() for name, _ in wanted)
    names = [
        f"{parent}_{name}" if count[name.casefold()] > 1 and parent else name
        for name, parent in wanted
    ]
    return numbered(names)


def unique_column_names(cells: Iterable[str | None]) -> list[str]:
    """Column names from the cells of a header, kept exactly but for blanks around them.

    An empty one becomes ``column_N``; a repeated one (without regard to case, as the engine
    sees them) gets a number: ``name_2``.
    """
    names = []
    for position, cell in enumerate(cells, 1):
        name = (cell or "").strip("\ufeff \t\r\n\f\v\u00a0\u3000")
        names.append(name or f"column_{position}")
    return numbered(names)


def numbered(names: Sequence[str]) -> list[str]:
    """``names`` with ``_2``, ``_3`` … after those that came before, without regard to case."""
    all_names = {name.casefold() for name in names}
    used: set[str] = set()
    result = []
    for name in names:
        one, number = name, 1
        while one.casefold() in used or (number > 1 and one.casefold() in all_names):
            number += 1
            one = f"{name}_{number}"
        used.add(one.casefold())
        result.append(one)
    return result
