"""100,000 tables and 10 million rows: time, memory and size of indexing, then of searching.

    python bench/scale.py --out /tmp/scale --tables 100000 --rows 100
    python bench/scale.py --out /tmp/scale --wide

Databases are generated (seeded; SQLite files of 1,000 tables, ten columns each, with
foreign keys) and kept, as is the index: a run that was stopped goes on where it was, and
``--again`` indexes anew. Every table has siblings that differ by one word of their name,
so that the questions, each about one table and two of its columns, are not easy.
Indexing and searching each get a process of their own, so that each has its own peak of
memory. ``--fake-encoder`` hashes texts instead of encoding them: all figures but recall
and the time of encoding, in minutes.

``--wide`` is the other shape: one table of 2,000 columns, 40 of 100 columns and 200 of
ten; every question is about one column of a wide table.
"""

from __future__ import annotations

import argparse
import json
import random
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    import dbrag


def _words(text: str) -> list[str]:
    return text.split()


PER_SOURCE = 1_000
QUESTIONS = 300
AREAS = _words(
    """logistics payroll hospital insurance retail banking university airline railway hotel
museum library brewery mining forestry fishery housing energy water telecom media football
athletics theatre cinema tourism customs police court prison army navy aviation shipping space
pharmacy dental veterinary farming dairy bakery catering grocery fashion furniture toys jewelry
cosmetics automotive cycling recycling waste sewage weather climate ocean geology archaeology
census election parliament embassy charity church cemetery wedding daycare kindergarten
highschool research patent publishing printing newspaper radio podcast gaming casino lottery
betting auction pawnshop leasing mortgage pension audit tax treasury stock crypto venture
startup franchise warehouse packaging courier taxi parking ferry harbour airport cargo"""
)
ENTITIES = _words(
    """customer supplier employee order invoice payment shipment delivery product item
contract claim visit appointment ticket booking reservation complaint survey rating promotion
discount campaign budget forecast expense salary bonus absence shift training certificate
inspection repair fault sensor meter reading vehicle driver route stop station building room
desk device license asset loan deposit transfer account card branch region district route_plan
event participant match player team coach referee season league course lecture exam grade
student teacher patient doctor nurse diagnosis treatment prescription laboratory_test sample
batch recipe ingredient allergy menu meal guest member donation grant project milestone task
document letter parcel pallet container crane dock permit fine incident witness alarm camera
rental tenant lease auction_lot bid species habitat observation well pipeline turbine"""
)
SUFFIXES = ["", "history", "detail", "archive", "summary", "audit", "2019", "2020", "2021", "draft"]
HEADS = _words(
    """amount date status type code name count price weight height width duration distance
rate score level category city country quantity limit balance margin volume temperature pressure
priority channel currency version owner reason"""
)
MODIFIERS = _words(
    """planned actual first last total average minimum maximum net gross daily monthly
annual initial final expected approved rejected estimated local foreign primary secondary former
current internal external late early confirmed"""
)
CITIES = _words(
    """Kabul Lisbon Osaka Quito Tallinn Nairobi Lima Oslo Hanoi Dakar Riga Perth Turin
Porto Lyon Graz Gdansk Malmo Bergen Basel"""
)
SYLLABLES = _words("ba do ri ka lu me no pa shi ta ve zo gran hil mor son berg ley ton well")


# ---- data ---------------------------------------------------------------------------


def columns_of(rng: random.Random, n: int) -> list[str]:
    """``n`` different column names such as ``planned_amount``."""
    pairs = rng.sample(range(len(HEADS) * len(MODIFIERS)), n)
    return [f"{MODIFIERS[i % len(MODIFIERS)]}_{HEADS[i // len(MODIFIERS)]}" for i in pairs]


def cell(rng: random.Random, column: str) -> str | int | float:
    """A value that suits the column's name."""
    head = column.rsplit("_", 1)[-1]
    if head == "date":
        return f"20{rng.randrange(10, 26)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"
    if head in ("city", "country"):
        return rng.choice(CITIES)
    if head in ("name", "owner"):
        first, last = ("".join(rng.choices(SYLLABLES, k=2)) for _ in range(2))
        return f"{first.title()} {last.title()}"
    if head in ("status", "type", "category", "channel", "reason", "currency", "code"):
        return f"{rng.choice(SYLLABLES)}{rng.randrange(12)}"
    if head in ("count", "level", "priority", "quantity", "version"):
        return rng.randrange(1_000)
    return round(rng.uniform(0, 10_000), 2)


def spoken(area: str, entity: str, suffix: str, asked: list[str], turn: int) -> str:
    """A question about a table and two of its columns."""
    one, other = (column.replace("_", " ") for column in asked)
    what = " ".join(part for part in (entity.replace("_", " "), suffix) if part)
    return (
        f"What is the highest {one} for each {other} in the {what} of the {area}?",
        f"For {area}, list the {one} and the {other} of every {what}.",
        f"Which {area} {what} has the largest {one}, and what is its {other}?",
    )[turn % 3]


def generate(folder: Path, n_tables: int, rows: int) -> list[dict[str, str]]:
    """Databases of 1,000 tables each, those that are there already left alone; questions."""
    names = list(product(AREAS, ENTITIES, SUFFIXES))
    if n_tables > len(names):
        sys.exit(f"at most {len(names)} tables have names of their own")
    random.Random(0).shuffle(names)
    # Siblings, of one area and entity, lie in one database as often as not.
    names = sorted(names[:n_tables], key=lambda name: (name[0], name[1]))
    folder.mkdir(parents=True, exist_ok=True)
    questions: list[dict[str, str]] = []
    wanted = set(random.Random(1).sample(range(n_tables), min(QUESTIONS, n_tables)))
    for start in range(0, n_tables, PER_SOURCE):
        source = f"db{start // PER_SOURCE:03}"
        path = folder / f"{source}.sqlite"
        part = path.with_suffix(".part")
        part.unlink(missing_ok=True)
        rng = random.Random(start)
        with closing(sqlite3.connect(":memory:" if path.exists() else part)) as connection:
            before = ""
            for i, (area, entity, suffix) in enumerate(names[start : start + PER_SOURCE], start):
                table = "_".join(filter(None, (area, entity, suffix)))
                columns = columns_of(rng, 8)
                key = [f'"{before}_id" REFERENCES "{before}" (id)'] if before and i % 3 else []
                if i in wanted:
                    question = spoken(area, entity, suffix, rng.sample(columns, 2), i)
                    questions.append({"question": question, "source": source, "table": table})
                if not path.exists():
                    create(connection, random.Random(i), table, columns, key, rows)
                before = table
            connection.commit()
        if not path.exists():
            part.rename(path)
    return questions


def create(
    connection: sqlite3.Connection,
    rng: random.Random,
    table: str,
    columns: list[str],
    key: list[str],
    rows: int,
) -> None:
    """One table with its rows."""
    declared = ["id INTEGER PRIMARY KEY", *(f'"{column}"' for column in columns), *key]
    connection.execute(f'CREATE TABLE "{table}" ({", ".join(declared)})')
    data = [
        (i, *(cell(rng, column) for column in columns), *([rng.randrange(rows)] if key else []))
        for i in range(rows)
    ]
    connection.executemany(f'INSERT INTO "{table}" VALUES ({", ".join("?" * len(declared))})', data)


def generate_wide(folder: Path) -> list[dict[str, str]]:
    """One table of 2,000 columns, 40 of 100, 200 of ten; a question for some columns."""
    rng = random.Random(0)
    pool = [f"{entity}_{column}" for entity in ENTITIES for column in columns_of(rng, 80)]
    rng.shuffle(pool)
    widths = [2_000, *[100] * 40, *[10] * 200]
    names = [f"{area}_records" for area in AREAS] + [f"{area}_figures" for area in AREAS]
    names += [f"{area}_log" for area in AREAS]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "wide.sqlite"
    path.unlink(missing_ok=True)
    questions = []
    with closing(sqlite3.connect(path)) as connection:
        for width, table in zip(widths, names, strict=False):
            columns, pool = pool[:width], pool[width:]
            quoted = ", ".join(f'"{column}"' for column in columns)
            connection.execute(f'CREATE TABLE "{table}" ({quoted})')
            marks = ", ".join("?" * width)
            data = [[cell(rng, column) for column in columns] for _ in range(20)]
            connection.executemany(f'INSERT INTO "{table}" VALUES ({marks})', data)
            for column in rng.sample(columns, {2_000: 100, 100: 5}.get(width, 0)):
                asked = f"What is the largest {column.replace('_', ' ')}?"
                questions.append({"question": asked, "source": "wide", "table": table})
        connection.commit()
    return questions


# ---- measuring ----------------------------------------------------------------------


def memory_mb() -> dict[str, float]:
    """Memory of this process in MB: all of it, its own, and its peak."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    names = {"rss": "VmRSS", "own": "RssAnon", "peak": "VmHWM"}
    return {name: round(int(status[key].split()[0]) / 1024, 1) for name, key in names.items()}


def connected(out: Path, fake: bool) -> dbrag.Database:
    """The generated databases, with the index of this run."""
    from dbrag.database import Database
    from dbrag.models.testing import HashEmbedder
    from dbrag.settings import Settings

    settings = Settings(sources=(str(out / "data"),), index=str(out / "index"))
    return Database(settings, embedder=HashEmbedder(dim=384) if fake else None)


def index(out: Path, fake: bool) -> dict[str, Any]:
    """Index what is new; seconds by stage, bytes, memory."""
    stages: dict[str, float] = {}
    stage, before, printed = "open", time.perf_counter(), 0.0

    def told(progress: Any) -> None:
        nonlocal stage, before, printed
        now = time.perf_counter()
        stages[stage] = stages.get(stage, 0.0) + now - before
        if progress.stage != stage or now - printed > 30:
            printed = now
            print(f"{progress.stage} {progress.done:,} of {progress.total:,}", file=sys.stderr)
        stage, before = progress.stage, now

    started = time.perf_counter()
    with connected(out, fake) as db:
        report = db.index(progress=told)
    return {
        "seconds": round(time.perf_counter() - started, 1),
        "stages": {name: round(seconds, 1) for name, seconds in stages.items()},
        "tables": sum(source.tables for source in report.sources),
        "rows": sum(source.rows for source in report.sources),
        "index_mb": round(report.bytes / 2**20, 1),
        "memory_mb": memory_mb(),
    }


def search(out: Path, fake: bool) -> dict[str, Any]:
    """Ask all questions in a fresh process; times, memory, recall."""
    import numpy as np

    questions = json.loads((out / "questions.json").read_text())
    started = time.perf_counter()
    with connected(out, fake) as db:
        opened = time.perf_counter() - started
        db.search(questions[0]["question"])
        first = time.perf_counter() - started
        for asked in questions[:20]:
            db.search(asked["question"])
        taken: list[float] = []
        stages: dict[str, float] = {}
        found: list[int] = []
        for asked in questions:
            before = time.perf_counter()
            result = db.search(asked["question"], top=50)
            taken.append(1000 * (time.perf_counter() - before))
            for name, seconds in result.stages.items():
                stages[name] = stages.get(name, 0.0) + 1000 * seconds / len(questions)
            names = [(c.table.source, c.table.name) for c in result.candidates]
            right = (asked["source"], asked["table"])
            found.append(names.index(right) if right in names else 99)
    places = np.array(found)
    return {
        "questions": len(questions),
        "open_s": round(opened, 2),
        "first_s": round(first, 2),
        "p50_ms": round(float(np.percentile(taken, 50)), 1),
        "p95_ms": round(float(np.percentile(taken, 95)), 1),
        "stages_ms": {name: round(ms, 1) for name, ms in stages.items()},
        "memory_mb": memory_mb(),
        **{f"R@{k}": round(100 * float((places < k).mean()), 1) for k in (1, 5, 50)},
    }


def steps(out: Path, arguments: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """Generate, then index and search in processes of their own."""
    started = time.perf_counter()
    if arguments.wide:
        questions = generate_wide(out / "data")
    else:
        questions = generate(out / "data", arguments.tables, arguments.rows)
    (out / "questions.json").write_text(json.dumps(questions, indent=1))
    yield "generate", {"seconds": round(time.perf_counter() - started, 1)}
    options = ["--fake-encoder"] if arguments.fake_encoder else []
    for step in ("index", "search"):
        command = [sys.executable, __file__, "--out", str(arguments.out), "--step", step]
        command += [*options, *(["--wide"] if arguments.wide else [])]
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
        yield step, json.loads(done.stdout)


def check_same_data(out: Path, wanted: dict[str, int]) -> None:
    """Refuse a folder whose databases were generated otherwise: the questions would not fit."""
    path = out / "data.json"
    out.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        path.write_text(json.dumps(wanted))
    known = json.loads(path.read_text())
    if known != wanted:
        sys.exit(f"{str(out)!r} holds other data ({known}, not {wanted}): choose another --out")


def main() -> None:
    """Print the figures of each step as JSON, and keep them in ``results.json``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="folder that keeps everything")
    parser.add_argument("--tables", type=int, default=100_000)
    parser.add_argument("--rows", type=int, default=100, help="rows of each table")
    parser.add_argument("--wide", action="store_true", help="few tables, very wide ones")
    parser.add_argument("--fake-encoder", action="store_true")
    parser.add_argument("--again", action="store_true", help="index anew")
    parser.add_argument("--step", choices=["index", "search"], help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    out: Path = arguments.out / ("wide" if arguments.wide else "tables")
    if arguments.step:
        run = index if arguments.step == "index" else search
        print(json.dumps(run(out, arguments.fake_encoder)))
        return
    check_same_data(
        out, {} if arguments.wide else {"tables": arguments.tables, "rows": arguments.rows}
    )
    if arguments.again and (out / "index").exists():
        import shutil

        shutil.rmtree(out / "index")
    results: dict[str, Any] = {}
    for step, figures in steps(out, arguments):
        results[step] = figures
        print(json.dumps({step: figures}), flush=True)
        (out / "results.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
