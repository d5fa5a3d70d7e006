"""Selection: which of the retrieved tables a program gets to see (R*_q of the paper).

No model is asked. A program runs in one source, so first the source is chosen (of a
server with many schemas the part, ``catalog.parts``), then in it the tables that the
question needs by all signs, then the tables that connect them. Further table sets, each
a plausible reading of its own, serve the later votes. Switched off (``selection``), the
best ranked tables of the source are taken.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.joins import JoinGraph
from dbrag.errors import UsageError
from dbrag.reasoning.preference import before_copies
from dbrag.reasoning.relevance import probabilities
from dbrag.settings import Settings
from dbrag.types import Candidate, TableRef


@dataclass(frozen=True, slots=True)
class SelectWeights:
    """How sources are compared and when a table is taken.

    ``coverage`` and ``values`` were fitted on Spider's training questions with
    ``bench/selection_weights.py``, which also shows what other thresholds than
    ``needed`` would give; ``preferred``, ``close`` and ``most`` were set by hand.

    Attributes:
        coverage: weight of the share of the question that a source's names know.
        values: added when the question mentions a value of the source.
        preferred: added to a source whose best table the user prefers: enough to decide
            between copies, less than what tells sources apart otherwise.
        needed: a table is taken from this probability on.
        close: a source this near to the best one (in units of score) is named in a warning.
        most: tables taken at most, connecting ones included.
    """

    coverage: float = 4.0
    values: float = 2.5
    preferred: float = 0.5
    needed: float = 0.3
    close: float = 0.7
    most: int = 5


DEFAULT = SelectWeights()
_OTHER_THRESHOLDS = (0.5, 0.12)


@dataclass(frozen=True, slots=True)
class Selection:
    """The tables of one source, further sets to try, and near misses elsewhere.

    ``strengths`` tell how well each source, or part of one, fits the question.
    """

    source: str
    tables: tuple[TableRef, ...]
    alternatives: tuple[tuple[TableRef, ...], ...]
    rivals: tuple[TableRef, ...]
    strengths: Mapping[str, float] = field(default_factory=dict)


def select(
    question: str,
    candidates: Sequence[Candidate],
    catalog: Catalog,
    joins: JoinGraph,
    coverage: Mapping[str, float],
    *,
    parts: Mapping[TableRef, str] | None = None,
    only: Sequence[TableRef] = (),
    settings: Settings | None = None,
    weights: SelectWeights = DEFAULT,
) -> Selection:
    """Choose a source and tables from ranked candidates (at least one).

    Args:
        coverage: share of the question that the names of each source, or part of one,
            know, 0..1.
        parts: table → the source or part it belongs to; without it, its source.
        only: tables the user named: they are taken as they are.
        settings: with ``selection`` off the ``top`` best tables of the source are taken as
            they are ranked, none beside them to connect them, and no further sets.

    Raises:
        UsageError: the tables the user named lie in several sources.
    """
    if only:
        owners = sorted({ref.source for ref in only})
        if len(owners) > 1:
            raise UsageError(
                f"a program reads one source, but the tables lie in {', '.join(owners)}",
                f"name tables of one source, or use --exclude; for example --tables {only[0]}",
            )
        return Selection(only[0].source, tuple(only), (), ())
    homes = [_home(candidate.table, parts) for candidate in candidates]
    preferred = {c.table for c in candidates if catalog.by_ref[c.table].preferred}
    strengths = source_strengths(candidates, homes, coverage, weights, preferred)
    home = max(strengths, key=lambda name: strengths[name])
    own = [c for c, place in zip(candidates, homes, strict=True) if place == home]
    rivals = _rivals(candidates, homes, strengths, home, weights)
    source = own[0].table.source
    if settings is not None and settings.selection == "off":
        best = tuple(c.table for c in own[: settings.top])
        return Selection(source, best, (), rivals, strengths)
    chances = before_copies(
        question,
        probabilities(question, own, catalog.by_ref),
        [catalog.by_ref[candidate.table] for candidate in own],
    )
    ranked = sorted(zip(chances, own, strict=True), key=lambda pair: (-pair[0], -pair[1].score))

    def taken(threshold: float) -> tuple[TableRef, ...]:
        likely = [c.table for chance, c in ranked if chance >= threshold] or [ranked[0][1].table]
        return connect(likely[: weights.most], joins, weights)

    chosen = taken(weights.needed)
    others: list[tuple[TableRef, ...]] = []
    for tables in map(taken, _OTHER_THRESHOLDS):
        if all(set(tables) != set(seen) for seen in (chosen, *others)):
            others.append(tables)
    return Selection(source, chosen, tuple(others), rivals, strengths)


def _home(ref: TableRef, parts: Mapping[TableRef, str] | None) -> str:
    return ref.source if parts is None else parts.get(ref, ref.source)


def source_strengths(
    candidates: Sequence[Candidate],
    homes: Sequence[str],
    coverage: Mapping[str, float],
    weights: SelectWeights = DEFAULT,
    preferred: Collection[TableRef] = (),
) -> dict[str, float]:
    """Home of a candidate (source or part) → its best table's score + weighted coverage +
    bonuses for mentioned values and for a best table that the user prefers."""
    best: dict[str, Candidate] = {}
    mentioned: set[str] = set()
    for candidate, source in zip(candidates, homes, strict=True):
        if source not in best or candidate.score > best[source].score:
            best[source] = candidate
        if candidate.matches:
            mentioned.add(source)
    return {
        source: first.score
        + weights.coverage * coverage.get(source, 0.0)
        + weights.values * (source in mentioned)
        + weights.preferred * (first.table in preferred)
        for source, first in best.items()
    }


def connect(
    tables: Sequence[TableRef], joins: JoinGraph, weights: SelectWeights = DEFAULT
) -> tuple[TableRef, ...]:
    """The tables plus those on the join path between them, best first, at most ``most``."""
    chosen = list(tables)
    for edge in joins.path(tuple(tables)):
        for ref in (edge.left, edge.right):
            if ref not in chosen and len(chosen) < weights.most:
                chosen.append(ref)
    return tuple(chosen)


def _rivals(
    candidates: Sequence[Candidate],
    homes: Sequence[str],
    strengths: Mapping[str, float],
    home: str,
    weights: SelectWeights,
) -> tuple[TableRef, ...]:
    """The best table of each other source that comes close, at most three."""
    found: dict[str, TableRef] = {}
    for candidate, other in zip(candidates, homes, strict=True):
        if other != home and strengths[other] >= strengths[home] - weights.close:
            found.setdefault(other, candidate.table)
    return tuple(found.values())[:3]
