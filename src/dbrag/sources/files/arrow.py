"""Arrow and Feather files, and packed Parquet: typed already, only written anew."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from dbrag.sources.files.names import PARQUET_EXTENSIONS
from dbrag.sources.files.unpack import Unreadable


def copy_arrow(
    path: str, ending: str, target: Path, hides: Callable[[str], bool] = lambda _: False
) -> tuple[str, ...]:
    """Write the table of an Arrow or Parquet file as Parquet, batch by batch.

    Args:
        hides: tells the columns to leave out.

    Returns:
        The columns that were left out.

    Raises:
        Unreadable: it is damaged.
    """
    import pyarrow as pa
    from pyarrow import dataset, parquet

    kind = "parquet" if ending in PARQUET_EXTENSIONS else "ipc"
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    try:
        source = dataset.dataset(path, format=kind)
        gone = [i for i, name in enumerate(source.schema.names) if hides(name)]
        kept = [i for i in range(len(source.schema)) if i not in gone]
        if gone and not kept:
            raise Unreadable("has only redacted columns")
        schema = pa.schema([source.schema.field(i) for i in kept]) if gone else source.schema
        names = [source.schema.names[i] for i in kept] if gone else None
        with parquet.ParquetWriter(str(target), schema, compression="zstd") as writer:
            for batch in source.to_batches(columns=names):
                if batch.num_rows:
                    writer.write_batch(batch)
    except UnicodeEncodeError as error:
        raise Unreadable("has a path that is no UTF-8, which Arrow cannot open") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        first = str(error).splitlines()[0] if str(error) else "damaged"
        raise Unreadable(f"is no {ending[1:]} file that can be read: {first}") from error
    return tuple(source.schema.names[i] for i in gone)
