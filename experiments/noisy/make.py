"""Write the noisy market and its thirty questions: ``python experiments/noisy/make.py FOLDER``.

The folder gets ``market.sqlite`` and ``questions.json`` (question, tables, gold SQL, and the
gold answer from the clean records), and the command that runs them is printed.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from market_data import clean_market, write_noisy
from market_questions import QUESTIONS


def make(folder: Path) -> tuple[Path, Path]:
    """Write both files, and give their paths.

    Raises:
        FileExistsError: the database is there already.
    """
    folder.mkdir(parents=True, exist_ok=True)
    database, questions = folder / "market.sqlite", folder / "questions.json"
    market = clean_market()
    write_noisy(market, database)
    records = [
        {
            "db_id": "market",
            "question": asked.question,
            "tables": list(asked.tables),
            "query": asked.sql,
            "answer": {"columns": list(asked.columns), "rows": asked.answer(market)},
        }
        for asked in QUESTIONS
    ]
    questions.write_text(json.dumps(records, ensure_ascii=False, indent=1), encoding="utf-8")
    return database, questions


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python experiments/noisy/make.py FOLDER")
    made = make(Path(sys.argv[1]))
    print(f"dbrag eval answers --data {made[0]} --questions {made[1]} --out runs/noisy")
