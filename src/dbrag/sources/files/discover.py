"""Which files are data files, by their names."""

from __future__ import annotations

import os

COMPRESSED = (".gz", ".bz2", ".xz", ".zst")
DATA_EXTENSIONS = (
    *(".csv", ".tsv", ".tab", ".json", ".jsonl", ".ndjson"),
    *(".xlsx", ".xls", ".xlsb", ".ods", ".parquet", ".pq"),
)


def is_data_file(path: str) -> bool:
    """True when the name says that the file holds tables, compressed or not."""
    stem, extension = os.path.splitext(os.path.basename(path).lower())
    if extension in COMPRESSED:
        extension = os.path.splitext(stem)[1]
    return extension in DATA_EXTENSIONS or extension == ".zip"
