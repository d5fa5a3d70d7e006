"""Arrays over the positions of tables in the catalog: identities and joins."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.index.arrays import load_array
from dbrag.index.layout import table_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.catalog.joins import JoinGraph
    from dbrag.index.layout import Generation
    from dbrag.types import TableRef


def write_places(generation: Generation, refs: Sequence[TableRef], joins: JoinGraph) -> None:
    """Write the identities of all tables and the pairs of those that join."""
    import numpy as np

    ids = np.array([table_id(ref) for ref in refs], np.int64)
    np.save(generation.table_ids, ids)
    position = {ref: i for i, ref in enumerate(refs)}
    pairs = [
        (i, position[other])
        for i, ref in enumerate(refs)
        for other in joins.neighbours(ref)
        if other in position
    ]
    edges = np.array(sorted(pairs), np.int32).reshape(len(pairs), 2)
    np.save(generation.edges, edges)


def read_places(
    generation: Generation, n_tables: int
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """``table_id`` of every table ``[n_tables]``, and joined tables ``[n_edges, 2]``.

    Raises:
        OSError, ValueError: missing, damaged or of another catalog.
    """
    import numpy as np

    ids, edges = load_array(generation.table_ids), load_array(generation.edges)
    if len(ids) != n_tables:
        raise ValueError(f"{generation.table_ids.name} holds {len(ids)} tables, not {n_tables}")
    if edges.ndim != 2 or edges.shape[1] != 2:
        raise ValueError(f"{generation.edges.name} holds no pairs")
    if len(edges) and not 0 <= edges.min() <= edges.max() < n_tables:
        raise ValueError(f"{generation.edges.name} names tables that are not there")
    if (np.diff(edges[:, 0]) < 0).any():
        raise ValueError(f"{generation.edges.name} is out of order")
    return ids, edges
