"""What reading data files gives: tables that lie in Parquet."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class FileTable:
    """One table of a data file or sheet, ready to be read through Arrow.

    Attributes:
        name: unique within its source.
        path: the user's file or folder, absolute.
        parquet: the Parquet files to read, in order: the user's own ones, or converted
            ones in dbrag's cache.
        partitioned: ``path`` is a folder whose subfolders hold column values
            (``year=2024``).
        sheet: of an Excel file.
        guessed: what was guessed in reading it, for people: "delimiter ';'".
        warnings: what was found odd and how it was read: "3 rows have more cells …".
        redacted: columns that were left out when the file was converted.
        mark: changes whenever the user's file, or how it is read, changes.
    """

    name: str
    path: str
    parquet: tuple[str, ...]
    partitioned: bool = False
    sheet: str | None = None
    guessed: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    mark: str = ""
    redacted: tuple[str, ...] = ()
