"""The user's notes on tables and columns (``[notes]``), joined with what the database says.

Catalog files keep the database's own comments; notes are laid over them whenever texts
are made or the catalog is opened. So removing a note leaves no trace.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dbrag.catalog.catalog import Catalog
from dbrag.catalog.names import owners, spellings
from dbrag.options import TableNote
from dbrag.textsafe import one_line
from dbrag.types import AnswerWarning, Column, Table, TableRef

MAX_DESCRIPTION = 200
MAX_COLUMN_DESCRIPTION = 120
"""Characters of a description that count, of a table and of a column."""
MAX_SPOKEN_WORDS, MAX_SPOKEN_CHARS = 4, 100
"""A description of so few words and characters is a name."""
_MAX_SYNONYM = 60
_TOLD = 10
_COMPARED = 5_000
_UNREADABLE = "cannot be read"


@dataclass(frozen=True, slots=True)
class NotesInForce:
    """Notes by the tables they are of, and what is wrong with the others."""

    tables: Mapping[TableRef, TableNote]
    problems: tuple[AnswerWarning, ...] = ()

    def apply(self, table: Table) -> Table:
        """The table with its note, if it has one."""
        note = self.tables.get(table.ref)
        return table if note is None else annotated(table, note)


NO_NOTES = NotesInForce({})


def annotated(table: Table, note: TableNote) -> Table:
    """The table with the user's words: descriptions before comments, synonyms, preference.

    Columns that the note names and the table lacks are passed over (``notes_of`` tells).
    """
    found = {
        column.name: one
        for name, one in note.columns.items()
        if isinstance(column := _column(table, name), Column)
    }
    columns = tuple(
        replace(
            column,
            comment=_joined(found[column.name].description, column.comment, MAX_COLUMN_DESCRIPTION),
            synonyms=_clean(found[column.name].synonyms),
        )
        if column.name in found
        else column
        for column in table.columns
    )
    return replace(
        table,
        columns=columns,
        comment=_joined(note.description, table.comment, MAX_DESCRIPTION),
        synonyms=_clean(note.synonyms),
        preferred=note.preferred,
    )


def spoken_names(named: Table | Column) -> tuple[str, ...]:
    """What people may call a table or column: its name, synonyms, a very short description.

    A description, or a comment of the database, of at most four words is taken for a name.
    """
    own = named.ref.name if isinstance(named, Table) else named.name
    if not named.synonyms and not named.comment:
        return (own,)  # almost always, and asked of all columns of all tables
    names = [own, *named.synonyms]
    said = named.comment[: MAX_SPOKEN_CHARS + 1].split(";", 1)[0]
    short = len(said) <= MAX_SPOKEN_CHARS and 0 < len(said.split()) <= MAX_SPOKEN_WORDS
    if short and not said.strip().startswith(_UNREADABLE):
        names.append(said.strip())
    return tuple(dict.fromkeys(names))


def description_of(named: Table | Column) -> str:
    """What a model is told of a table or column: the comment and its other names."""
    also = f"also called {', '.join(named.synonyms)}" if named.synonyms else ""
    return "; ".join(text for text in (also, named.comment) if text)


def notes_of(notes: Mapping[str, TableNote], catalog: Catalog) -> NotesInForce:
    """Find the table of every note: ``source.schema.table``, parts of it, letter case ignored.

    Of 100,000 tables only those with a note are looked at, of the others the names.
    Problems are told as warnings: ``notes_unused`` (no such table or column, or several),
    ``notes_cut`` (a description too long to be used whole).
    """
    if not notes:
        return NO_NOTES
    named = owners({name.strip().casefold() for name in notes}, catalog.refs)
    found: dict[TableRef, tuple[str, TableNote]] = {}
    unused: list[str] = []
    cut: list[str] = []
    for name, note in sorted(notes.items()):
        owned = _narrowed(name.strip(), named.get(name.strip().casefold(), []))
        if len(owned) != 1:
            unused.append(_not_one(name, owned, catalog.refs, len(unused) < _TOLD))
            continue
        table = catalog.by_ref[owned[0]]
        if table.ref in found:
            before = found[table.ref][0]
            unused.append(f"notes {_q(before)} and {_q(name)} are of one table; the second holds")
        found[table.ref] = (name, note)
        unused += _unknown_columns(name, note, table, max(0, _TOLD - len(unused)))
        cut += _too_long(name, note)
    problems = _warnings("notes_unused", unused) + _warnings("notes_cut", cut)
    return NotesInForce({ref: note for ref, (_, note) in found.items()}, problems)


def _narrowed(name: str, refs: list[TableRef]) -> list[TableRef]:
    """Of several, the one that is written exactly so."""
    if len(refs) > 1:
        whole = [ref for ref in refs if str(ref).casefold() == name.casefold()]
        exact = [ref for ref in whole or refs if name in spellings(ref)]
        return exact if len(exact) == 1 else whole or refs
    return refs


def _column(table: Table, name: str) -> Column | int:
    """The column of that name; how many there are, if not one (letter case ignored)."""
    wanted = name.strip().casefold()
    like = [column for column in table.columns if column.name.casefold() == wanted]
    exact = [column for column in like if column.name == name]
    return exact[0] if exact else like[0] if len(like) == 1 else len(like)


def _joined(description: str, comment: str, limit: int) -> str:
    """The user's words first; ``one_line`` keeps either from speaking for the other."""
    description = one_line(description.strip(), limit)
    if not description:
        return comment
    return f"{description}; {comment}" if _tells(comment) else description


def _tells(comment: str) -> bool:
    return bool(comment) and not comment.startswith(_UNREADABLE)


def _clean(synonyms: Iterable[str]) -> tuple[str, ...]:
    texts = (one_line(text.strip(), _MAX_SYNONYM) for text in synonyms)
    return tuple(dict.fromkeys(text for text in texts if text))


def _not_one(name: str, refs: Sequence[TableRef], known: Sequence[TableRef], is_told: bool) -> str:
    """What is wrong with a name; near ones are looked for only if it will be told."""
    if refs:
        listed = ", ".join(str(ref) for ref in refs[:3]) + (", …" if len(refs) > 3 else "")
        return f"notes {_q(name)} could mean {len(refs)} tables: {listed}; write source.table"
    near = _near(name, {str(ref): ref.name for ref in known}) if is_told else ""
    return f"notes {_q(name)} name no table here{near}"


def _unknown_columns(name: str, note: TableNote, table: Table, told_at_most: int) -> list[str]:
    told: list[str] = []
    for column in note.columns:
        found = _column(table, column)
        if isinstance(found, int):
            known = {one.name: one.name for one in table.columns}
            near = _near(column, known) if len(told) < told_at_most else ""
            what = f"{_q(column)}, which {found or 'no'} columns of {table.ref} are called"
            told.append(f"notes {_q(name)} hold {what}{near}")
    return told


def _too_long(name: str, note: TableNote) -> list[str]:
    told = []
    texts = [("", note.description, MAX_DESCRIPTION)]
    texts += [
        (f" on {_q(column)}", one.description, MAX_COLUMN_DESCRIPTION)
        for column, one in note.columns.items()
    ]
    for where, text, limit in texts:
        if len(text.strip()) > limit:
            told.append(
                f"notes {_q(name)}{where}: of {len(text.strip()):,} characters of the description "
                f"the first {limit} count"
            )
    return told


def _near(name: str, known: Mapping[str, str]) -> str:
    """`` (did you mean a, b?)`` or nothing.

    Args:
        known: name as it should be written → the part of it that people know.
    """
    last = name.rpartition(".")[2].casefold()
    if len(known) > _COMPARED:  # comparing all of 100,000 names takes seconds
        known = {full: short for full, short in known.items() if short[:1].casefold() == last[:1]}
    full = {text.casefold(): text for text in list(known)[:_COMPARED]}
    short = {known[text].casefold(): text for text in full.values()}
    near = _closest(last, short) or _closest(name.casefold(), full)
    told = list(dict.fromkeys(near))
    return f" (did you mean {' or '.join(one_line(text, 80) for text in told)}?)" if told else ""


def _closest(name: str, known: Mapping[str, str]) -> list[str]:
    return [known[text] for text in difflib.get_close_matches(name, known, n=2, cutoff=0.7)]


def _q(name: str) -> str:
    return repr(one_line(name, 80))


def _warnings(code: str, texts: Sequence[str]) -> tuple[AnswerWarning, ...]:
    told = list(texts[:_TOLD])
    if len(texts) > _TOLD:
        told.append(f"{len(texts) - _TOLD:,} more notes like these")
    return tuple(AnswerWarning(code, text) for text in told)
