"""The evidence for a candidate: matching rows, values mentioned, and one plain sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dbrag.errors import IndexUnusable
from dbrag.index.files import REBUILD
from dbrag.index.words import plain_words, split_identifier
from dbrag.retrieval.spelling import inflections
from dbrag.types import ValueMatch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.index.lazy import StoredCatalog
    from dbrag.index.row_search import RowMode
    from dbrag.index.store import Index
    from dbrag.retrieval.coarse import Parts
    from dbrag.retrieval.mentions import Mention

ROWS_PER_TABLE = 3
MATCHES_PER_TABLE = 10
_CLEARLY = 1.5
"""Deviations above the mean from which a part is worth a word in the reason."""
_FEWEST_COMPARED = 4
"""Of n tables none is further than √(n - 1) deviations above their mean: 1.4 of three."""
_LONGEST_SHOWN = 40
_HOW_ROWS = {"text": "shares words with", "dense": "resembles", "both": "fits"}


def matches_of(
    catalog: StoredCatalog, i: int, mentions: Sequence[Mention]
) -> tuple[ValueMatch, ...]:
    """The values of table ``i`` that the question mentions, longest first, at most ten.

    A weak mention that only repeats the table's own names ("customer" in a column of
    ``customers``) is no evidence and is left out, as is another form of words that the
    table has exactly.
    """
    ref = catalog.refs[i]
    here = [mention for mention in mentions if mention.table == ref]
    if not here:
        return ()
    own = set(plain_words(split_identifier(ref.name)))
    for column in catalog.columns(i):
        own |= set(plain_words(split_identifier(column)))
    forms = own | {form for word in own for form in inflections(word)}
    exact = {(mention.start, mention.end) for mention in here if mention.how == "exact"}
    matches: dict[tuple[str, str], ValueMatch] = {}
    for mention in here:
        names = own if mention.how == "exact" else forms
        repeats = not mention.strong and set(plain_words(mention.value)) <= names
        if not repeats and (mention.how == "exact" or (mention.start, mention.end) not in exact):
            match = ValueMatch(mention.column, mention.value, mention.said, mention.how)
            matches.setdefault((mention.column, mention.value), match)
    return tuple(matches.values())[:MATCHES_PER_TABLE]


def reason(
    index: Index,
    i: int,
    parts: Parts,
    scores: NDArray[np.float32],
    matches: Sequence[ValueMatch],
    row_search: RowMode = "text",
) -> str:
    """Why table ``i`` of the catalog ranks where it does, in one sentence."""
    name = max(parts.names[i], parts.bm25[i]) > _CLEARLY
    column = parts.columns[i] > _CLEARLY
    said = []
    if name and column:
        said.append("name and columns resemble the question")
    elif name or column:
        said.append(f"{'the name' if name else 'a column'} resembles the question")
    said += [
        f"{index.catalog.refs[i].name}.{m.column} = {_shown(m.value)}"
        + ("" if m.how == "exact" else f" (asked: {_shown(m.said)})")
        for m in matches[:2]
    ]
    if parts.rows[i] > _CLEARLY and not matches:
        said.append(f"a row {_HOW_ROWS[row_search]} the question")
    joined = _likeliest_neighbour(index, i, scores)
    if joined:
        said.append(joined)
    if not said and len(parts.names) < _FEWEST_COMPARED:
        return "too few tables to tell what stands out"
    return "; ".join(said) or "little in it resembles the question"


def _likeliest_neighbour(index: Index, i: int, scores: NDArray[np.float32]) -> str:
    """ "joined with country by country_code": the best-scored table that joins it."""
    near = index.adjacency.neighbours(i).tolist()
    if not near:
        return ""
    here = index.catalog.refs[i]
    best = index.catalog.refs[max(near, key=lambda j: (float(scores[j]), -j))]
    edges = index.joins.between(here, best)
    if not edges:
        raise IndexUnusable(
            f"the index is damaged: it lacks the join of {here} and {best}", REBUILD
        )
    edge = edges[0]
    columns = edge.left_columns if edge.left == here else edge.right_columns
    sure = "" if edge.declared else f" (inferred, {edge.percent} sure)"
    return f"joined with {best.name} by {', '.join(columns)}{sure}"


def _shown(value: str) -> str:
    cut = value if len(value) <= _LONGEST_SHOWN else value[: _LONGEST_SHOWN - 1] + "…"
    return "'" + " ".join(cut.split()) + "'"
