"""What users have verified: learned pairs, used for the same and for similar questions.

The same question (folded) is answered by its program, after the guard has admitted it
anew. Similar questions of the same source are shown to the model with their programs, in
the part of the prompt that changes with the question. Everything here comes from a file
of unknown origin: it is data, whatever it says.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, UsageError
from dbrag.execution import guard
from dbrag.execution.run import run_admitted
from dbrag.index.arrays import load_archive
from dbrag.reasoning.attempt import Attempt
from dbrag.reasoning.learned_file import LearnedFile, Pair, fold, read
from dbrag.reasoning.program import split
from dbrag.types import AnswerWarning, Program

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from dbrag.catalog.catalog import Catalog
    from dbrag.execution.guard import Admitted
    from dbrag.models.base import Embedder
    from dbrag.settings import Settings
    from dbrag.sources.base import Source


FILE_NAME = "learned.sql"
OFF = "off"
MOST_SHOWN = 2
MAX_SQL_CHARS = 1000
"""A longer program is not shown: it would crowd out the tables."""
ENCODED_AT_ONCE = 200
"""Questions encoded while someone waits for an answer: about 2 s."""
SIMILAR = {
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6": 0.70,
}
"""Encoder (SHA-256) → cosine from which two questions of one database count as similar.

On 1,492 training questions of Spider (30 databases), the two nearest other questions with
another program read the same tables in 65% of the cases for cosines of 0.7 to 0.8, in 77% for
0.8 to 0.9, in 52% for 0.6 to 0.7 and in 46% for 0.5 to 0.6 (all-MiniLM-L6-v2, int8)."""
SIMILAR_ELSE = 0.8
"""For encoders that were not measured: stricter."""


@dataclass(frozen=True, slots=True)
class Solved:
    """A learned pair that the guard admits on ``source``; the cosine with the question."""

    pair: Pair
    source: str
    admitted: Admitted
    similarity: float = 1.0

    def event(self) -> dict[str, Any]:
        """The entry of the trace."""
        return {
            "stage": "learned",
            "question": self.pair.question,
            "source": self.source,
            "sql": self.admitted.sql,
            "similarity": round(self.similarity, 4),
        }


class Learned:
    """The learned pairs of one file.

    Args:
        path: the file, which need not exist; None: nothing is learned.
        vectors: file that remembers the vectors of the questions.
        embedder: gives the encoder, when similar questions are looked for.
    """

    def __init__(self, path: Path | None, vectors: Path, embedder: Callable[[], Embedder]) -> None:
        self.path = path
        self._vectors = vectors
        self._embedder = embedder
        self._file = LearnedFile()
        self.unreadable: UsageError | None = None
        if path is not None:
            try:
                self._file = read(path)
            except UsageError as error:
                self.unreadable = error

    @classmethod
    def of(cls, settings: Settings, index_dir: Path, embedder: Callable[[], Embedder]) -> Learned:
        """The pairs that the settings name."""
        path = learned_path(settings, index_dir)
        return cls(path, index_dir / "learned-vectors.npz", embedder)

    @property
    def pairs(self) -> tuple[Pair, ...]:
        """All pairs, in the order of the file."""
        return self._file.pairs

    @property
    def problems(self) -> tuple[tuple[int, str], ...]:
        """Lines of the file that are no pair, and why."""
        return self._file.problems

    def file_warnings(self) -> tuple[AnswerWarning, ...]:
        """What is wrong with the file itself."""
        if self.unreadable is not None:
            return (AnswerWarning("learned_file", self.unreadable.message),)
        if not self.problems:
            return ()
        line, what = self.problems[0]
        more = f" (and {len(self.problems) - 1} more)" if len(self.problems) > 1 else ""
        return (AnswerWarning("learned_file", f"{self.path}, line {line}: {what}{more}"),)

    def exact(
        self,
        question: str,
        sources: Mapping[str, Source],
        catalog: Catalog,
        warnings: list[AnswerWarning],
    ) -> tuple[Solved, ...]:
        """The pairs of this very question, one for a source at most; those that no longer
        pass the guard are told in ``warnings``."""
        wanted = fold(question)
        found: dict[str, Solved] = {}
        for pair in self.pairs:
            if fold(pair.question) != wanted or (pair.source and pair.source not in sources):
                continue
            try:
                solved = admit(pair, sources, catalog)
                found.setdefault(solved.source, solved)
            except DbragError as error:
                warnings.append(self.broken(pair, error))
        return tuple(found.values())

    def similar(
        self, question: str, source: Source, catalog: Catalog, warnings: list[AnswerWarning]
    ) -> tuple[Solved, ...]:
        """At most ``MOST_SHOWN`` pairs of ``source`` whose questions resemble this one, the
        nearest first; those that no longer pass the guard are told in ``warnings``."""
        own = [pair for pair in self.pairs if pair.source in ("", source.name)]
        if not own:
            return ()
        embedder = self._embedder()
        floor = SIMILAR.get(embedder.sha256, SIMILAR_ELSE)
        vectors, known, missing = self._encoded(own, ENCODED_AT_ONCE)
        if missing:
            warnings.append(
                AnswerWarning(
                    "learned_not_ready",
                    f"{missing:,} learned questions are not encoded yet and were not compared: "
                    "dbrag learn --list encodes them",
                )
            )
        if not known:
            return ()
        cosines = vectors @ embedder.encode([question])[0]
        found: list[Solved] = []
        for i in cosines.argsort(kind="stable")[::-1].tolist():
            if cosines[i] < floor or len(found) == MOST_SHOWN:
                break
            try:
                solved = admit(known[i], {source.name: source}, catalog, float(cosines[i]))
            except DbragError as error:
                if known[i].source:  # without one it may well belong to another source
                    warnings.append(self.broken(known[i], error))
                continue
            if len(solved.admitted.sql) <= MAX_SQL_CHARS:
                found.append(solved)
        return tuple(found)

    def prepare(self) -> None:
        """Encode all questions that are not yet: about 100 in a second."""
        self._encoded(self.pairs, None)

    def broken(self, pair: Pair, error: DbragError) -> AnswerWarning:
        """That a pair is left out, and why."""
        return AnswerWarning(
            "learned_broken",
            f"the program learned for {pair.question[:80]!r} ({self.path}, line {pair.line}) "
            f"cannot be used: {error.message}",
        )

    def used(self, solved: Solved) -> AnswerWarning:
        """That an answer comes from a pair and not from the model."""
        return AnswerWarning(
            "learned",
            f"this is the program learned for this question ({self.path}, line "
            f"{solved.pair.line}); the model was not asked",
        )

    # ---- vectors --------------------------------------------------------------------

    def _encoded(
        self, pairs: Sequence[Pair], at_most: int | None
    ) -> tuple[NDArray[np.float32], list[Pair], int]:
        """Vectors ``[n_known, dim]``, their pairs ``[n_known]``, and how many are missing.

        Args:
            at_most: questions encoded now; None means all.
        """
        import numpy as np

        embedder = self._embedder()
        stored = _load(self._vectors, embedder.dim)
        key_of = {
            pair: hashlib.sha256(f"{embedder.sha256} {fold(pair.question)}".encode()).digest()[:16]
            for pair in self.pairs
        }
        new = list({key_of[p]: p for p in pairs if key_of[p] not in stored}.items())[:at_most]
        if new:
            fresh = embedder.encode([fold(pair.question) for _, pair in new])
            stored |= {key: vector for (key, _), vector in zip(new, fresh, strict=True)}
            kept = set(key_of.values())
            _save(self._vectors, {key: v for key, v in stored.items() if key in kept})
        known = [pair for pair in pairs if key_of[pair] in stored]
        rows = [stored[key_of[pair]] for pair in known]
        matrix = np.stack(rows) if rows else np.zeros((0, embedder.dim), np.float32)
        return matrix, known, len(pairs) - len(known)


def learned_path(settings: Settings, index_dir: Path) -> Path | None:
    """The file of the settings, else one beside the index; None where it is off."""
    if settings.learned == OFF:
        return None
    return Path(settings.learned).expanduser() if settings.learned else index_dir / FILE_NAME


def admit(
    pair: Pair, sources: Mapping[str, Source], catalog: Catalog, similarity: float = 1.0
) -> Solved:
    """The pair, admitted by the guard on its source.

    Raises:
        Refused, UnknownName: it may not run.
        UsageError: its source is not open, or it names none and several could run it.
    """
    if pair.source and pair.source not in sources:
        raise UsageError(f"its source {pair.source!r} is not open", "name it with --source")
    names = [pair.source] if pair.source else list(sources)
    admitted: list[Solved] = []
    reason: DbragError | None = None
    for name in names:
        source, tables = sources[name], catalog.of_source(name)
        try:
            allowed = guard.admit(pair.sql, source.dialect, tables, functions=source.functions())
            admitted.append(Solved(pair, name, allowed, similarity))
        except DbragError as error:
            reason = reason or error
    if len(admitted) > 1:
        found = ", ".join(solved.source for solved in admitted)
        raise UsageError(
            f"{len(admitted)} sources could run it ({found}): add its -- source: line",
            f"-- source: {admitted[0].source}",
        )
    if not admitted:
        raise reason or UsageError("no source is open", "name one with --source")
    return admitted[0]


def run_solved(solved: Solved, source: Source, settings: Settings, *, dry_run: bool) -> Attempt:
    """The learned program as an attempt, run unless ``dry_run``.

    Raises:
        ExecutionError, LimitReached: it does not run.
    """
    admitted = solved.admitted
    program = Program(
        steps=split(admitted.sql, source.dialect),
        sql=admitted.sql,
        dialect=source.dialect,
        tables=admitted.tables,
    )
    execution = None
    if not dry_run:
        execution = run_admitted(source, admitted, settings)
    return Attempt(admitted.tables, program, execution, ordered=admitted.ordered)


def _load(path: Path, dim: int) -> dict[bytes, NDArray[np.float32]]:
    """Key → vector ``[dim]``; a file that is missing or damaged only costs time."""
    import numpy as np

    try:
        stored = load_archive(path)
        keys, vectors = stored["keys"], stored["vectors"]
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile):
        return {}  # TypeError: a bare array
    if keys.dtype != np.uint8 or vectors.dtype != np.float32:
        return {}
    if keys.shape[1:] != (16,) or vectors.shape != (len(keys), dim):
        return {}
    return {key.tobytes(): vector for key, vector in zip(keys, vectors, strict=True)}


def _save(path: Path, vectors: Mapping[bytes, NDArray[np.float32]]) -> None:
    """In one step; where the folder cannot be written, the next question encodes again."""
    import numpy as np

    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    keys = np.frombuffer(b"".join(vectors), np.uint8).reshape(-1, 16)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file:
            np.savez(file, keys=keys, vectors=np.stack(list(vectors.values())))
        os.replace(part, path)
    except OSError:
        part.unlink(missing_ok=True)
