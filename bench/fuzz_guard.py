"""Fuzz the guard: nothing but errors of dbrag may come out, nothing but reading may run.

    python bench/fuzz_guard.py --seconds 60 --dialect duckdb --engine hypothesis
    python bench/fuzz_guard.py --seconds 60 --dialect mysql --engine atheris

Admitted statements run on a real engine (SQLite and DuckDB in memory, PostgreSQL and
MariaDB as a role that may only read) under a detector that is independent of the guard.
``hypothesis`` draws statements from a grammar over the corpora; ``atheris`` is guided by
the coverage of the guard's own code (``pip install atheris``). Exit code 1 on an escape
or a crash.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.execution.corpus import ENGINES, beds, detect, grow
from tests.servers import MYSQL, POSTGRES, fresh_database

from dbrag.errors import DbragError
from dbrag.execution.guard import admit

_SHOWN = 10


class Run:
    """Counts, and the findings themselves."""

    def __init__(self, dialect: str, seconds: float, stack: ExitStack) -> None:
        self.dialect = dialect
        self.executions = self.admitted = 0
        self.escapes: dict[str, str] = {}
        self.crashes: dict[str, str] = {}
        self.ends = time.monotonic() + seconds
        database = None
        if dialect in ("postgres", "mysql"):
            server = POSTGRES if dialect == "postgres" else MYSQL
            made = stack.enter_context(fresh_database(server, "fuzz"))
            database = made.name
            self.detect = stack.enter_context(detect.server_detector(made.url, made))
        else:
            detectors = {"sqlite": detect.sqlite_detector, "duckdb": detect.duckdb_detector}
            self.detect = detectors[dialect]()
        self.tables = beds.tables(dialect, database)

    def over(self) -> bool:
        return time.monotonic() >= self.ends

    def one(self, sql: str) -> None:
        self.executions += 1
        try:
            admitted = admit(sql, self.dialect, self.tables)
        except DbragError:
            return
        except Exception:
            last = traceback.format_exc().strip().splitlines()
            self.crashes.setdefault(" | ".join(last[-3:]), sql)
            return
        self.admitted += 1
        finding = self.detect(admitted.sql)
        if finding is not None and detect.SECRET not in sql:
            self.escapes.setdefault(finding[:80], f"{sql!r} → {admitted.sql!r}")

    def report(self) -> int:
        counts = f"executions {self.executions}, admitted {self.admitted}"
        found = f"escapes {len(self.escapes)}, crashes {len(self.crashes)}"
        print(f"{self.dialect}: {counts}, {found}")
        for title, findings in (("ESCAPE", self.escapes), ("CRASH", self.crashes)):
            for what, sql in list(findings.items())[:_SHOWN]:
                print(f"{title} {what}\n  {sql!r}")
        return 1 if self.escapes or self.crashes else 0


def by_hypothesis(run: Run, seed: int) -> None:
    from hypothesis import HealthCheck, Phase, given, settings
    from hypothesis import seed as with_seed
    from hypothesis import strategies as st

    while not run.over():

        @with_seed(seed)
        @settings(
            max_examples=500,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(source=st.randoms(use_true_random=False), text=st.text(max_size=30))
        def batch(source: random.Random, text: str) -> None:
            sql = grow.statement(grow.Seeded(source), run.dialect)
            for statement in (sql, "SELECT name FROM singer " + text):
                if not run.over():
                    run.one(statement)

        batch()
        seed += 1


def by_atheris(run: Run, seed: int) -> None:
    try:
        import atheris
    except ImportError:
        sys.exit("atheris is not installed: pip install atheris")
    from dbrag.execution import calls, columns, entries, guard, lexis, names, parts, tokens

    for module in (guard, calls, columns, entries, lexis, names, parts, tokens):
        for name, value in list(vars(module).items()):
            if callable(value) and getattr(value, "__module__", "") == module.__name__:
                _instrument(atheris, module, name, value)

    class Bytes:
        def __init__(self, provider: Any) -> None:
            self._provider = provider

        def pick(self, n: int) -> int:
            return int(self._provider.ConsumeIntInRange(0, n - 1))

    def target(data: bytes) -> None:
        if run.over():
            code = run.report()
            sys.stdout.flush()
            _close_all()
            import os

            os._exit(code)
        if data[:1] < b"\x40":
            run.one(data[1:].decode("utf-8", "replace"))
        else:
            run.one(grow.statement(Bytes(atheris.FuzzedDataProvider(data[1:])), run.dialect))

    atheris.Setup(
        [sys.argv[0], f"-seed={seed}", "-max_len=512", "-len_control=0", "-verbosity=0"], target
    )
    atheris.Fuzz()


def _instrument(atheris: Any, module: Any, name: str, value: Any) -> None:
    if isinstance(value, type):
        for key, member in list(vars(value).items()):
            if hasattr(member, "__code__"):
                setattr(value, key, atheris.instrument_func(member))
    elif hasattr(value, "__code__"):
        setattr(module, name, atheris.instrument_func(value))


_stacks: list[ExitStack] = []


def _close_all() -> None:
    for stack in _stacks:
        stack.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--dialect", choices=ENGINES, default="sqlite")
    parser.add_argument("--engine", choices=["hypothesis", "atheris"], default="hypothesis")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    with ExitStack() as stack:
        _stacks.append(stack)
        run = Run(arguments.dialect, arguments.seconds, stack)
        if arguments.engine == "hypothesis":
            by_hypothesis(run, arguments.seed)
        else:
            by_atheris(run, arguments.seed)
        return run.report()


if __name__ == "__main__":
    sys.exit(main())
