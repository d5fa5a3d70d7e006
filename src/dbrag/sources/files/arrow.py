"""Arrow and Feather files, and packed Parquet: typed already, only written anew."""

from __future__ import annotations

import os
from pathlib import Path

from dbrag.sources.files.unpack import Unreadable


def copy_arrow(path: str, ending: str, target: Path) -> None:
    """Write the table of an Arrow or Parquet file as Parquet, batch by batch.

    Raises:
        Unreadable: it is damaged.
    """
    import pyarrow as pa
    from pyarrow import dataset, parquet

    kind = "parquet" if ending in (".parquet", ".pq") else "ipc"
    os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    try:
        source = dataset.dataset(path, format=kind)
        with parquet.ParquetWriter(str(target), source.schema, compression="zstd") as writer:
            for batch in source.to_batches():
                if batch.num_rows:
                    writer.write_batch(batch)
    except UnicodeEncodeError as error:
        raise Unreadable("has a path that is no UTF-8, which Arrow cannot open") from error
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
        first = str(error).splitlines()[0] if str(error) else "damaged"
        raise Unreadable(f"is no {ending[1:]} file that can be read: {first}") from error
