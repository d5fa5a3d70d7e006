"""How many columns are told of as noisy, and how many gold programs are warned of or widened.

    python bench/noise_told.py INDEX DATABASES QUESTIONS…

INDEX is the index of the folder DATABASES, QUESTIONS files of ``dbrag eval`` over them.
Programs are read, not run; the rows of other spellings are counted.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

from dbrag.catalog.formats import column_format
from dbrag.evaluation.datasets import load_questions
from dbrag.index.store import open_index
from dbrag.reasoning.all_spellings import with_all_spellings
from dbrag.reasoning.noise import noise_warnings
from dbrag.reasoning.spellings import StoredSpellings
from dbrag.settings import Settings
from dbrag.sources import open_sources
from dbrag.types import Program

index, databases, *files = map(Path, sys.argv[1:])
opened = open_index(index)
sources = {source.name: source for source in open_sources([str(databases)])[0]}
columns, told = 0, []
for table in opened.catalog.tables:
    profiles = {profile.column: profile for profile in table.profile}
    columns += len(table.columns)
    for column in table.columns:
        if column.name in profiles:
            words = column_format(column, profiles[column.name]).in_words()
            told += [f"{table.ref}.{column.name}: {words}"] if words else []
print(*told, sep="\n")
print(f"{len(told):,} of {columns:,} columns are told of")
for file in files:
    questions = load_questions(file, opened.catalog)
    codes: Counter[str] = Counter()
    warned = widened = 0
    for question in questions:
        program = Program((), question.sql or "", "sqlite", question.tables)
        look = StoredSpellings(opened.values, sources[question.db_id], Settings())
        found = noise_warnings(program, opened.catalog, look)
        tables = opened.catalog.of_source(question.db_id)
        _, matched = with_all_spellings(program.sql, tables, "sqlite", look)
        widened += bool(matched)
        warned += bool(found)
        codes.update(one.code for one in found)
        print(*(f"{question.id}: {one.message}" for one in found), sep="\n", end="\n" * bool(found))
    print(f"{file.name}: {warned:,} of {len(questions):,} gold programs are warned of", dict(codes))
    print(f"{widened:,} of them are compared with more spellings")
