"""Answers, candidates, status and reports for people; one function per kind of result."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

from dbrag.interfaces.cli import output
from dbrag.interfaces.cli.tables import aligned, cell_text, cut
from dbrag.reasoning.sureness import in_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dbrag.types import Answer, Candidate, IndexReport, SearchResult


def terminal_width() -> int | None:
    """Columns of the terminal on standard output; None where nothing may be cut."""
    if not output.is_terminal(sys.stdout):
        return None
    return max(20, shutil.get_terminal_size((100, 24)).columns)


def count(n: int, noun: str, plural: str = "") -> str:
    """``1 row``, ``1,203 rows``."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def size(n: int) -> str:
    """Bytes for people, decimal units."""
    value = float(n)
    for unit in ("B", "kB", "MB"):
        if value < 1000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1000
    return f"{value:.2f} GB"


def duration(seconds: float) -> str:
    """``0.42 s``, ``3 min``, ``2 h``, ``5 days``."""
    if seconds < 10:
        return f"{seconds:.2f} s"
    for unit, length, until in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if seconds < until:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds / 86_400:.0f} days"


def answer_lines(answer: Answer, *, quiet: bool = False, rows: bool = True) -> list[str]:
    """The result, unless not ``rows``; then what it rests on: tables, agreement, SQL, warnings."""
    lines = _result_lines(answer) if rows else []
    text = cell_text(answer.text)
    if text and text.rstrip(".") not in lines[-1:]:  # "8 rows." below "8 rows" says nothing
        lines += ["", text] if lines else [text]
    if quiet:
        return lines
    facts: list[tuple[str, str]] = []
    if answer.tables:
        facts.append(("tables", ", ".join(cell_text(str(table)) for table in answer.tables)))
    if answer.status == "answered" and answer.votes_requested:
        facts.append(("agreement", agreement_words(answer)))
    if answer.confidence is not None:
        facts.append(("confidence", in_words(answer.confidence)))
    if answer.sql:
        facts.append(("sql", cell_text(answer.sql)))
    facts += [(f"warning ({w.code})", cell_text(w.message)) for w in answer.warnings]
    total = answer.seconds.get("total")
    if total is not None:
        spent = [f"{duration(total)}"]
        if answer.tokens.get("completion"):
            read, written = answer.tokens.get("prompt", 0), answer.tokens["completion"]
            spent.append(f"{count(read, 'token')} read, {written:,} written")
        if hits := answer.tokens.get("cache_hits"):
            spent.append(f"{hits:,} repl{'y' if hits == 1 else 'ies'} from the cache")
        if answer.model:
            spent.append(answer.model)
        facts.append(("time", ", ".join(spent)))
    if lines and facts:
        lines.append("")
    return lines + [f"{name}: {text}" for name, text in facts]


def _result_lines(answer: Answer) -> list[str]:
    if answer.execution is None:
        return []
    rows = answer.execution.rows
    shown = rows if answer.max_rows is None else rows[: answer.max_rows]
    names = [column.name for column in answer.execution.columns]
    lines = aligned(names, shown, width=terminal_width()) if names else []
    if len(shown) < len(rows):
        lines.append(f"{len(shown):,} of {count(len(rows), 'row')} shown (--max-rows N for more)")
    else:
        lines.append(count(len(rows), "row"))
    return lines


def agreement_words(answer: Answer) -> str:
    """How many of the programs gave this result."""
    if answer.agreement is None:
        return "one program, no vote"
    valid = answer.votes_valid
    same = round(answer.agreement * valid)
    early = ""
    if valid < answer.votes_requested:
        early = f" ({answer.votes_requested} allowed)"
    if valid == 1:
        return f"only 1 program gave a result{early}"
    if same == valid:
        return f"all {valid} programs gave this result{early}"
    return f"{same} of {valid} programs gave this result{early}"


def search_lines(result: SearchResult, *, explain: bool = False) -> list[str]:
    """The candidates, best first."""
    if not result.candidates:
        lines = ["no table matches"]
    else:
        rows = [
            (i, str(c.table), f"{c.score:.3f}", c.reason)
            for i, c in enumerate(result.candidates, 1)
        ]
        lines = aligned(("", "table", "score", "why"), rows, width=terminal_width())
    if result.rerank:
        lines.append(rerank_line(result.rerank))
    if explain:
        for candidate in result.candidates:
            lines += ["", *candidate_lines(candidate)]
        told = ", ".join(f"{name} {1000 * s:,.1f}" for name, s in result.stages.items())
        lines += ["", f"{duration(result.seconds)}; by stage, ms: {told}"] if told else []
    lines += [f"warning ({w.code}): {cell_text(w.message)}" for w in result.warnings]
    return lines


def rerank_line(told: Mapping[str, Any]) -> str:
    """Who ordered the tables anew, from how many, and what it cost."""
    tokens = told["tokens"]["prompt"] + told["tokens"]["completion"]
    text = (
        f"reranked by {cell_text(told['model'])} among {count(told['k'], 'table')}: "
        f"{told['valid']} of {count(told['votes'], 'order')} valid, "
        f"{count(tokens, 'token')}, {duration(told['seconds'])}"
    )
    left = ", ".join(f"{n:,} {what}" for what, n in told["left_out"].items() if n)
    return f"{text}; left out of the prompt: {left}" if left else text


def candidate_lines(candidate: Candidate) -> list[str]:
    """A candidate with the parts of its score and the evidence in its rows."""
    parts = ", ".join(f"{name} {part:+.3f}" for name, part in candidate.parts.items())
    lines = [f"{cell_text(str(candidate.table))}  {candidate.score:.3f} = {parts}"]
    if candidate.reason:
        lines.append(f"  because: {cell_text(candidate.reason)}")
    lines += [
        f"  value: {cell_text(match.column)} = {cell_text(match.value)}"
        + ("" if match.how == "exact" else f" (asked: {cell_text(match.said)}; {match.how})")
        for match in candidate.matches
    ]
    for row in candidate.rows:
        lines.append(
            "  row: " + ", ".join(f"{cell_text(k)}={cell_text(v)}" for k, v in row.items())
        )
    width = terminal_width()
    return lines if width is None else [cut(line, width) for line in lines]


def index_lines(report: IndexReport) -> list[str]:
    """One line per source that was built or skipped, and the sum."""
    rows = [
        (
            source.name,
            source.status,
            source.tables,
            source.rows,
            source.rows_indexed,
            source.reason or ("sampled" if source.sampled else ""),
        )
        for source in report.sources
        if source.status != "unchanged"
    ]
    names = ("source", "status", "tables", "rows", "rows indexed", "note")
    lines = aligned(names, rows, width=terminal_width()) if rows else []
    unchanged = [source for source in report.sources if source.status == "unchanged"]
    if unchanged:
        reason = f"; {unchanged[0].reason}" if unchanged[0].reason else ""
        lines.append(f"{count(len(unchanged), 'source')} unchanged{reason}")
    lines.append(
        f"done in {duration(report.seconds)}, index {size(report.bytes)}, "
        f"peak memory {report.peak_mb:,.0f} MB"
    )
    return lines + [f"warning ({w.code}): {cell_text(w.message)}" for w in report.warnings]


def status_lines(status: Mapping[str, Any]) -> list[str]:
    """Where the index is, and what it knows of each source."""
    lines = [f"index: {status['index']}"]
    if status.get("exists"):
        lines[0] += f" ({size(int(status.get('bytes') or 0))})"
    else:
        lines[0] += " (not built yet; dbrag index builds it)"
    if status.get("encoder"):
        lines.append(f"encoder: {_encoder_text(status['encoder'])}")
    if status.get("row_vectors"):
        lines.append(_row_vectors_text(status["row_vectors"]))
    for reason in status.get("changed") or ():
        lines.append(f"{reason}: the next question brings the texts up to date")
    lines += [f"warning: {cell_text(one['message'])}" for one in status.get("warnings") or ()]
    rows = []
    for source in status["sources"]:
        age = source.get("age_s")
        rows.append(
            (
                source["name"],
                source["status"],
                _or_dash(source.get("tables")),
                _or_dash(source.get("rows")),
                _or_dash(source.get("rows_indexed")),
                "-" if age is None else f"{duration(float(age))} ago",
                source.get("reason") or _reading_text(source),
                source.get("location", ""),
            )
        )
    names = ("source", "status", "tables", "rows", "rows indexed", "indexed", "note", "location")
    lines += ["", *aligned(names, rows, width=terminal_width())] if rows else []
    return lines + _files_left_out(status["sources"]) + _files_read(status["sources"])


_SHOWN = 20
"""Files that the text of ``status`` tells about; ``--json`` tells all."""


def _files_left_out(sources: Sequence[Mapping[str, Any]]) -> list[str]:
    files = [file for source in sources for file in source.get("left_out") or ()]
    said = [f"  {cell_text(file['location'])}: {cell_text(file['reason'])}" for file in files]
    return _section("left out:", said)


def _files_read(sources: Sequence[Mapping[str, Any]]) -> list[str]:
    """How data files were read, those with something odd first."""
    found = [(source["name"], one) for source in sources for one in source.get("notes") or ()]
    found.sort(key=lambda pair: not pair[1]["odd"])
    said = []
    for source, one in found:
        odd = [f"warning: {note}" for note in one["odd"]]
        plain = [note for note in one["notes"] if note not in one["odd"]]
        notes = cell_text("; ".join([*odd, *plain]))
        said.append(f"  {cell_text(source)}.{cell_text(one['table'])}: {notes}")
    return _section("how files were read:", said)


def _section(title: str, said: Sequence[str]) -> list[str]:
    if not said:
        return []
    more = len(said) - _SHOWN
    last = [f"  and {more:,} more (--json shows all)"] if more > 0 else []
    return ["", title, *said[:_SHOWN], *last]


def _reading_text(source: Mapping[str, Any]) -> str:
    """Which tables were not read, or not whole."""
    unread = source.get("unread") or ()
    lists = (
        ("cannot be read", source.get("broken") or ()),
        ("known by columns only", unread),
        ("sampled", [name for name in source.get("sampled") or () if name not in unread]),
    )
    said = []
    for what, tables in lists:
        more = f" and {len(tables) - 3:,} more" if len(tables) > 3 else ""
        said += [f"{what}: {', '.join(tables[:3])}{more}"] if tables else []
    return "; ".join(said)


def _row_vectors_text(told: Mapping[str, Any]) -> str:
    cut = told["cut"]
    more = f" and {len(cut) - 3:,} more" if len(cut) > 3 else ""
    said = f"; more rows have: {', '.join(map(cell_text, cut[:3]))}{more}" if cut else ""
    return f"row vectors: of up to {told['dense_rows']:,} rows of a table{said}"


def _encoder_text(encoder: Any) -> str:
    if isinstance(encoder, dict):
        return ", ".join(f"{key} {_short(str(value), 40)}" for key, value in encoder.items())
    return cell_text(encoder)


def _or_dash(value: Any) -> Any:
    return "-" if value is None else value


def trace_lines(trace: Sequence[Mapping[str, Any]]) -> list[str]:
    """The stages of an answer, for ``--explain``: one line each, lists indented below."""
    lines = []
    for entry in trace:
        if entry.get("stage") == "step":
            lines += _step_lines(entry)
            continue
        facts = {key: value for key, value in entry.items() if key != "stage"}
        plain = {k: v for k, v in facts.items() if not isinstance(v, list | tuple | dict)}
        text = ", ".join(f"{key} {_fact(value)}" for key, value in plain.items())
        lines.append(f"{entry.get('stage', '?')}: {text}".rstrip(" :"))
        for key, value in facts.items():
            if isinstance(value, dict):
                lines += [f"  {key}.{k}: {_fact(v)}" for k, v in value.items()]
            elif isinstance(value, list | tuple):
                lines += [f"  {key}: {_item(item)}" for item in value]
    return lines


def _step_lines(step: Mapping[str, Any]) -> list[str]:
    """One step of a program: its SQL, and what the model was shown of it."""
    head = f"step {step['number']}: {cell_text(step['name']) or 'without a name'}"
    if step["round"]:
        head += f" (after {count(step['round'], 'repair')})"
    lines = [head, f"  {cell_text(step['sql'] or step['reply'])}"]
    lines += [f"  {cell_text(change)}" for change in step["changes"]]
    if step["error"]:
        return [*lines, f"  failed: {cell_text(step['error']['message'])}"]
    if step["not_looked_at"]:
        lines.append(f"  not looked at: {cell_text(step['not_looked_at'])}")
    else:
        lines.append(f"  {'more than ' if step['more'] else ''}{count(step['row_count'], 'row')}")
    names = [f"{cell_text(c['name'])} {c['type']}".strip() for c in step["columns"]]
    lines.append(f"  columns: {_short(', '.join(names), 400)}")
    lines += [f"  {_short(cell_text(' | '.join(row)), 400)}" for row in step["rows"]]
    return lines


def _item(item: Any) -> str:
    if isinstance(item, dict):
        return ", ".join(f"{key} {_fact(value)}" for key, value in item.items())
    return _fact(item)


def _fact(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.3f}"
    if isinstance(value, dict) and {"source", "name"} <= value.keys():
        return cell_text(".".join(str(p) for p in value.values() if p is not None))
    if isinstance(value, dict | list | tuple):
        return _short(cell_text(value), 200)
    return cell_text(value)


def _short(text: str, width: int) -> str:
    """Cut for people; what a program or a file gets is whole."""
    return text if terminal_width() is None else cut(text, width)
