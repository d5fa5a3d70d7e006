"""The matrix kind × engine, collected while the tests run."""

from __future__ import annotations

ENGINES = ("sqlite", "duckdb", "postgres", "mariadb", "files")
TITLE = """# Kinds of faults and values, on every engine

Made by the test run (`DBRAG_MATRIX=docs/matrix.md pytest tests/matrix`), over real servers and
files. ✓ passed, ✗ failed; a number is the reason why it does not apply."""
TITLES = ("SQLite", "DuckDB", "PostgreSQL", "MariaDB", "files")


class Matrix:
    """Outcomes of the tests marked ``kind``: kind → engine → cell."""

    def __init__(self) -> None:
        self.cells: dict[str, dict[str, str]] = {}
        self.reasons: dict[str, int] = {}

    def add(self, kind: str, engine: str, outcome: str, reason: str = "") -> None:
        """Note an outcome ("passed", "failed", "skipped"); a failure outweighs all others."""
        row = self.cells.setdefault(kind, {})
        if outcome == "failed" or row.get(engine) == "✗":
            row[engine] = "✗"
        elif outcome == "passed":
            row[engine] = "✓"
        elif row.get(engine) != "✓":
            number = self.reasons.setdefault(reason, len(self.reasons) + 1)
            row[engine] = f"({number})"

    def markdown(self) -> str:
        """The table, and the reasons of what does not apply."""
        lines = [TITLE, "", f"| kind | {' | '.join(TITLES)} |", "| --- |" + " :-: |" * len(ENGINES)]
        for kind in sorted(self.cells):
            cells = [self.cells[kind].get(engine, "") for engine in ENGINES]
            lines.append(f"| {kind} | {' | '.join(cells)} |")
        lines.append("")
        lines += [f"({number}) {reason}  " for reason, number in self.reasons.items()]
        return "\n".join(lines)
