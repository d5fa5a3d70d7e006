"""Have the chat model write programs for Spider's questions, for ``program_weights.py``.

    dbrag index -s $DBRAG_BENCH/spider/database --index DIR
    python bench/program_pool.py --index DIR --out runs/pool.jsonl [--questions train]
        [--limit 150] [--seed 7] [--variants A,B1,S1,S2,R,G]
    python bench/program_pool.py --wrong --out runs/wrong.jsonl [--limit 60] [--seed 11]

Variants: A greedy on the selected tables, B1, B2 greedy on the other table sets, S1, S2, …
sampled with this seed on the selected ones, R greedy on what would be selected from the first
source that nearly was chosen, G greedy on the gold tables. What a question has not is left out.

``--wrong`` puts every question to one other database, drawn at random and opened alone
(``wrong_database.py``); its index goes to a temporary folder, or is kept in ``--alone``.

Only ``--out`` is written, a line for each question (``common.py`` tells the format). A killed
run goes on where it was; questions that the file holds are not asked again. Needs the chat
model and, with two slow cores, half a minute for a question.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TextIO

from common import SPIDER, Desk, Found, cut_to_whole_lines, read_pool, run
from wrong_database import databases, drawn

import dbrag
from dbrag.errors import DbragError, ModelNotInstalled, WeightsError
from dbrag.evaluation.datasets import Question, load_questions, sample
from dbrag.evaluation.pack import read_asked
from dbrag.reasoning.prompting import Prompter
from dbrag.reasoning.token_budget import prompt_budget
from dbrag.reasoning.variants import VOTE_TEMPERATURE, Variant
from dbrag.types import TableRef

VARIANT = re.compile(r"A|B[1-9]|S[1-9]|R|G")


def variant_names(text: str) -> list[str]:
    """The names in an argument.

    Raises:
        argparse.ArgumentTypeError: one is not known.
    """
    names = [name.strip() for name in text.split(",")]
    for name in names:
        if not VARIANT.fullmatch(name):
            raise argparse.ArgumentTypeError(f"no variant {name!r}; A, B1.., S1.., R and G are")
    return names


def rival_tables(desk: Desk, found: Found) -> tuple[TableRef, ...]:
    """What would be selected from the first source that nearly was; none without one."""
    rivals = found.selection.rivals
    if not rivals:
        return ()
    place = desk.home(rivals[0])
    own = [candidate for candidate in found.candidates if desk.home(candidate.table) == place]
    return desk.selection(found.question, own, found.coverage).tables


def plan(
    names: Sequence[str], desk: Desk, found: Found, gold: tuple[TableRef, ...]
) -> dict[str, Variant]:
    """Variant's name → how it is sampled; those that there is nothing for are left out."""
    selection = found.selection
    planned: dict[str, Variant] = {}
    for name in names:
        kind, number = name[0], int(name[1:] or 0)
        tables, temperature, seed = selection.tables, 0.0, 0
        if kind == "B":
            tables = next(iter(selection.alternatives[number - 1 : number]), ())
        elif kind == "S":
            temperature, seed = VOTE_TEMPERATURE, number
        elif kind == "R":
            tables = rival_tables(desk, found)
        elif kind == "G":
            tables = gold
        if tables:
            planned[name] = Variant(tables, temperature, seed)
    return planned


def written(desk: Desk, found: Found, variant: Variant) -> dict[str, Any]:
    """Have one program written and repaired; its replies.

    Raises:
        ModelNotInstalled, WeightsError: there is no model to ask.
    """
    events: list[Any] = []
    model = desk.db.chat_model()
    shop = desk.workshop(variant.tables[0].source, model, events.append)
    prompt = Prompter(
        found.question,
        found.candidates,
        desk.catalog.by_ref,
        desk.index.joins,
        dialect=shop.source.dialect,
        solved=(),
        budget_tokens=prompt_budget(shop.settings, model),
        report=lambda event: None,
    )
    told: dict[str, Any] = {"tables": [str(ref) for ref in variant.tables]}
    try:
        shop.attempt(
            prompt(variant.tables),
            variant.tables,
            temperature=variant.temperature,
            seed=variant.seed,
            widen=prompt,
        )
    except (ModelNotInstalled, WeightsError):
        raise
    except DbragError as error:
        told["fatal"] = error.message
    kept = ("round", "reply", "logprob", "tokens", "sql", "error")
    return {**told, "events": [{key: event[key] for key in kept} for event in events]}


def record(
    desk: Desk, question: Question, names: Sequence[str], other: str | None = None
) -> dict[str, Any]:
    """One line of the pool."""
    started = time.perf_counter()
    candidates = desk.candidates(question.question)
    told: dict[str, Any] = {"id": question.id, "db": question.db_id, "q": question.question}
    if other is not None:
        told |= {"other": other, "refused": desk.refused(candidates)}
    told["attempts"] = []
    if not told.get("refused"):
        found = desk.found(question.question, candidates)
        gold = tuple(sorted(question.tables, key=str))
        for name, variant in plan(names, desk, found, gold).items():
            told["attempts"].append({"v": name, **written(desk, found, variant)})
    return {**told, "s": round(time.perf_counter() - started, 2)}


@contextmanager
def appended(path: Path) -> Iterator[tuple[TextIO, set[str]]]:
    """The file, open for more lines, and the questions that it holds."""
    path.parent.mkdir(parents=True, exist_ok=True)
    cut_to_whole_lines(path)
    done = {line["id"] for line in read_pool(path)}
    with path.open("a", encoding="utf-8") as file:
        yield file, done


def put(file: TextIO, line: dict[str, Any]) -> None:
    file.write(json.dumps(line, ensure_ascii=False) + "\n")
    file.flush()
    variants = " ".join(attempt["v"] for attempt in line["attempts"])
    print(line["id"], line.get("other", line["db"]), f"{line['s']} s", variants, flush=True)


def ask_right(given: argparse.Namespace, options: dict[str, Any]) -> None:
    """Put the questions to all databases together."""
    with (
        dbrag.connect(SPIDER / "database", index=given.index, **options) as db,
        appended(given.out) as (file, done),
    ):
        desk = Desk(db)
        questions = load_questions(SPIDER / f"{given.questions}.json", desk.catalog)
        for question in sample(questions, given.limit, given.seed):
            if question.id not in done:
                put(file, record(desk, question, given.variants))


def ask_wrong(given: argparse.Namespace, options: dict[str, Any]) -> None:
    """Put each question to one other database, opened alone."""
    files = databases(SPIDER / "database")
    questions = sample(read_asked(SPIDER / f"{given.questions}.json"), given.limit, given.seed)
    pairs = [(drawn(one, list(files), given.seed, False), one) for one in questions]
    pairs.sort(key=lambda pair: pair[0])
    with (
        tempfile.TemporaryDirectory(prefix="dbrag-alone-") as folder,
        appended(given.out) as (file, done),
    ):
        for name, group in groupby(pairs, key=lambda pair: pair[0]):
            left = [question for _, question in group if question.id not in done]
            if not left:
                continue
            index = Path(given.alone or folder) / name
            with dbrag.connect(files[name], index=index, **options) as db:
                desk = Desk(db)
                for question in left:
                    put(file, record(desk, question, given.variants, name))
                options = {**options, "embedder": db.embedder(), "chat_model": db.chat_model()}


def main(arguments: Sequence[str] | None = None, **models: Any) -> None:
    """Ask; ``models`` are passed on to ``dbrag.connect``."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", type=Path, required=True, help="JSONL, appended to")
    parser.add_argument("--index", type=Path, help="index of all databases")
    parser.add_argument("--questions", choices=("train", "dev"), default="train")
    parser.add_argument("--limit", type=int, default=150, help="questions, by database")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument(
        "--variants", type=variant_names, help="default A,B1,S1,S2,R,G, the first four with --wrong"
    )
    parser.add_argument("--wrong", action="store_true", help="ask one other database")
    parser.add_argument("--alone", type=Path, help="keeps the indexes of databases opened alone")
    parser.add_argument("--model", help="chat model as provider:name")
    parser.add_argument("--threads", type=int)
    given = parser.parse_args(arguments)
    given.variants = given.variants or variant_names("A,B1,S1,S2" + ",R,G" * (not given.wrong))
    options = {"model": given.model, "threads": given.threads, **models}
    if given.wrong:
        if "G" in given.variants:
            parser.error("a wrong database has no gold tables: leave G out of --variants")
        run(partial(ask_wrong, given, options))
    elif given.index is None:
        parser.error("--index is needed without --wrong")
    else:
        run(partial(ask_right, given, options))


if __name__ == "__main__":
    main()
