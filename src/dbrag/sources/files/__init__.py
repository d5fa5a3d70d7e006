"""Data files: found, read with their types guessed, and kept as Parquet."""

from dbrag.sources.files.find import find_tables
from dbrag.sources.files.names import DATA_EXTENSIONS, is_data_file

__all__ = ["DATA_EXTENSIONS", "find_tables", "is_data_file"]
