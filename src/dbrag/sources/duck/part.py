"""Rows from all over large Parquet files, without reading what lies between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds

_PLACES = 20
"""Row groups from whose beginnings the rows come."""
_PART_MB = 128
"""Memory of the rows, about, before DuckDB cuts their cells."""


def rows_from_all_over(dataset: ds.Dataset, rows: int) -> pa.Table:
    """The first rows of up to 20 row groups, evenly spread over all files; the same each time.

    Args:
        rows: how many together, at most; fewer where rows are huge.

    Raises:
        OSError, ValueError: a file cannot be read.
    """
    import pyarrow as pa
    import pyarrow.dataset as ds

    # Without it Arrow would read row groups to their ends beforehand.
    lazily = ds.ParquetFragmentScanOptions(pre_buffer=False, use_buffered_stream=True)
    groups = _groups(dataset)
    tables: list[pa.Table] = []
    left, bytes_left = rows, _PART_MB * 2**20
    for i, group in enumerate(groups):
        (about,) = group.row_groups
        row_bytes = max(1, about.total_byte_size // max(1, about.num_rows))
        places = len(groups) - i
        share = max(1, min(left // places, bytes_left // places // row_bytes))
        place = ds.FileSystemDataset([group], dataset.schema, dataset.format, dataset.filesystem)
        head = place.head(share, batch_size=share, fragment_scan_options=lazily)
        tables.append(head)
        left -= head.num_rows
        bytes_left -= head.num_rows * row_bytes
        if left <= 0:
            break
    return pa.concat_tables(tables) if tables else dataset.schema.empty_table()


def _groups(dataset: Any) -> list[Any]:
    """Fragments of one row group each, in the order of the files."""
    files = _spread(list(dataset.get_fragments()))
    # From few files several groups each.
    each = -(-_PLACES // max(1, len(files)))
    return _spread(
        [
            file.subset(row_group_ids=[group.id])
            for file in files
            for group in _spread(file.row_groups, each)
        ]
    )


def _spread(items: list[Any], n: int = _PLACES) -> list[Any]:
    """At most ``n`` of them, evenly spread, the first one among them."""
    count = min(n, len(items))
    return [items[i * len(items) // count] for i in range(count)]
