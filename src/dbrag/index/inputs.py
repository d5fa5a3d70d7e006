"""What texts and joins depend on besides the sources: the user's notes, and how dbrag writes.

When only that has changed, texts are made anew from the stored catalogs; no source is
opened, and rows and values stay as they are. Every generation holds the notes that it was
made with, so that an index always shows the words that its vectors were made of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dbrag.catalog.notes import NO_NOTES, NotesInForce, notes_of
from dbrag.errors import UsageError
from dbrag.index import summaries
from dbrag.index.joins import JoinInputs, read_join_inputs
from dbrag.options import TableNote, read_notes
from dbrag.types import AnswerWarning, TableRef

if TYPE_CHECKING:
    from dbrag.catalog.catalog import Catalog
    from dbrag.index.layout import Generation
    from dbrag.settings import Settings

REASONS = {
    "joins": "joins changed",
    "notes": "notes changed",
    "texts": "texts are written otherwise by this dbrag",
}
"""Name of an input → what is told when it has changed."""


@dataclass(frozen=True, slots=True)
class TextInputs:
    """Everything but the sources that a table's texts are made of."""

    notes: Mapping[str, TableNote] = field(default_factory=dict)
    joins: JoinInputs = field(default_factory=JoinInputs)

    @classmethod
    def of(cls, settings: Settings) -> TextInputs:
        """What the settings say."""
        return cls(settings.notes, JoinInputs.of(settings))

    @classmethod
    def read(cls, generation: Generation) -> TextInputs:
        """What a generation was made with.

        Raises:
            OSError, ValueError, KeyError, TypeError: damaged.
        """
        data = _read(generation)
        return cls(_notes(data["given"]) if data else {}, read_join_inputs(generation))

    @property
    def marks(self) -> Mapping[str, str]:
        """Name of each input → a digest of it, "" where there is nothing."""
        given = {name: asdict(note) for name, note in self.notes.items()}
        return {
            "joins": self.joins.digest,
            "notes": _digest(given) if given else "",
            "texts": str(summaries.FORMAT),
        }

    def record(self, generation: Generation, catalog: Catalog) -> NotesInForce:
        """The notes on these tables, and a record of them in a new generation.

        Raises:
            OSError: it cannot be written.
        """
        if not self.notes:
            return NO_NOTES
        in_force = notes_of(self.notes, catalog)
        data = {
            "given": {name: asdict(note) for name, note in self.notes.items()},
            "tables": [[ref.to_dict(), asdict(note)] for ref, note in in_force.tables.items()],
            "problems": [problem.to_dict() for problem in in_force.problems],
        }
        generation.notes.write_text(json.dumps(data, ensure_ascii=True), encoding="ascii")
        return in_force


def read_notes_in_force(generation: Generation) -> NotesInForce:
    """The notes that a generation was made with, by table.

    Raises:
        OSError, ValueError, KeyError, TypeError: damaged.
    """
    data = _read(generation)
    if not data:
        return NO_NOTES
    notes = _notes({str(i): note for i, (_, note) in enumerate(data["tables"])})
    refs = [TableRef(**ref) for ref, _ in data["tables"]]
    return NotesInForce(
        {ref: notes[str(i)] for i, ref in enumerate(refs)},
        tuple(AnswerWarning(**problem) for problem in data["problems"]),
    )


def changed_inputs(known: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """What of the inputs differs from those an index was made with, as ``REASONS`` tell it."""
    names = sorted(name for name in now if known.get(name, "") != now[name])
    return [REASONS[name] for name in names]


def _read(generation: Generation) -> dict[str, Any]:
    try:
        data = json.loads(generation.notes.read_bytes())
    except FileNotFoundError:
        return {}  # made without notes
    if not isinstance(data, dict):
        raise ValueError(f"{generation.notes.name} is damaged")
    return data


def _notes(data: Any) -> dict[str, TableNote]:
    try:
        return read_notes(data)
    except UsageError as error:
        raise ValueError(f"notes.json is damaged: {error.message}") from error


def _digest(data: Any) -> str:
    text = json.dumps(data, ensure_ascii=True, sort_keys=True)
    return sha256(text.encode("ascii")).hexdigest()[:32]
