"""The matrix kind × engine, collected while the tests run."""

from __future__ import annotations

ENGINES = ("sqlite", "duckdb", "postgres", "mariadb", "files")
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
        lines = [f"| kind | {' | '.join(TITLES)} |", "| --- |" + " :-: |" * len(ENGINES)]
        for kind in sorted(self.cells):
            cells = [self.cells[kind].get(engine, "") for engine in ENGINES]
            lines.append(f"| {kind} | {' | '.join(cells)} |")
        lines.append("")
        lines += [f"({number}) {reason}  " for reason, number in self.reasons.items()]
        return "\n".join(lines)
