"""Runs as a report reads them: folders of ``dbrag eval``, or published ``.jsonl`` records.

Every figure of a report is computed from the records, never taken from ``summary.json``: that
one tells the configuration, the versions, and why a run was not run.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from dbrag.errors import UsageError
from dbrag.evaluation.paper import Corpus, corpus_of
from dbrag.evaluation.records import (
    CONFIG,
    RECORDS,
    SUMMARY,
    Record,
    read_json,
    read_records,
    usable,
)
from dbrag.evaluation.reports.document import DASH, plain, span
from dbrag.evaluation.significance import bootstrap
from dbrag.evaluation.summary import score

RETRIEVAL, ANSWERS = "retrieval", "answers"


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        name: unique in a report.
        task: "retrieval" or "answers".
        records: one per question, whole or slim; empty where it was not run.
        not_run: ``reason`` and ``command`` of a run that could not begin, else None.
        finished: false for a run without a summary: more questions may come.
    """

    name: str
    task: str
    records: tuple[Record, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, Any] = field(default_factory=dict)
    not_run: Mapping[str, str] | None = None
    finished: bool = True

    @property
    def method(self) -> str:
        """The name of the method, empty where no configuration tells it."""
        return str(self.config.get("method") or "")

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that count for the run."""
        found: Mapping[str, Any] = self.config.get("settings") or {}
        return found

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the scores, in the order of the records."""
        return tuple(dict.fromkeys(key for record in self.records for key in record["scores"]))

    @property
    def corpus(self) -> Corpus | None:
        """The paper's data set that it is about; None where it is another's."""
        data = self.config.get("data") or {}
        databases = {str(record["db_id"]) for record in self.records}
        return corpus_of(data.get("tables", 0), databases, data.get("sources", 0))

    @property
    def data(self) -> str:
        """The name of the data set: the paper's, the one database's, or the folder's."""
        if self.corpus is not None:
            return self.corpus.name
        data = self.config.get("data") or {}
        databases = {str(record["db_id"]) for record in self.records}
        # A sample may ask one database of many: then it is not the name of them all.
        if len(databases) == 1 and data.get("sources", 1) == 1:
            return next(iter(databases))
        return str(data.get("name", "unknown data"))

    @property
    def file(self) -> tuple[str, str]:
        """Name and hash of the question file: ids only mean the same within one."""
        questions = self.config.get("questions") or {}
        return str(questions.get("name", "")), str(questions.get("sha256", ""))

    @property
    def asked(self) -> tuple[str, str, tuple[str, str]]:
        """Task, data set and question file: question ids mean the same where these are alike."""
        return self.task, self.data, self.file

    @property
    def model(self) -> str | None:
        """The chat model that was asked, ``provider:name``; None where none was."""
        # A run that is not finished has no versions; its settings name a model if it asks one.
        told = self.versions.get("model") or self.settings.get("model")
        return str(told) if told else None

    @property
    def tables(self) -> Mapping[int, tuple[Record, ...]]:
        """The records by number of gold tables, fewest first."""
        sizes = sorted({int(record["n_tables"]) for record in self.records})
        return {n: tuple(r for r in self.records if int(r["n_tables"]) == n) for n in sizes}

    @property
    def failed(self) -> int:
        """Questions without a score; they count 0."""
        return sum(1 for record in self.records if record.get("error"))


@dataclass(frozen=True)
class QuestionSet:
    """The runs on exactly the same questions; only their figures may stand side by side.

    ``missing`` are those on the same question file that could not begin.
    """

    title: str
    runs: tuple[Run, ...]
    missing: tuple[Run, ...] = ()

    @property
    def corpus(self) -> Corpus | None:
        """The paper's data set, if it is one."""
        return self.runs[0].corpus


def mean(records: Sequence[Record], key: str) -> float | None:
    """The mean of a score, 0 to 1; a failed question counts 0; None where there is no question."""
    return fmean(score(record, key) for record in records) if records else None


def mean_of_groups(run: Run, key: str) -> float | None:
    """The mean over the groups by number of gold tables, each counting the same."""
    found = [mean(records, key) for records in run.tables.values()]
    known = [one for one in found if one is not None]
    return fmean(known) if known else None


def interval_of(run: Run, key: str) -> str:
    """The 95% bootstrap interval of a mean over databases, in percent.

    With a single database nothing can be said of others: then over its questions, which is said.
    """
    scores = [score(record, key) for record in run.records]
    found = bootstrap(scores, [str(record["db_id"]) for record in run.records])
    if found.low is not None:
        return span(found.low, found.high)
    found = bootstrap(scores)
    return DASH if found.low is None else f"{span(found.low, found.high)} (questions)"


def read_runs(specs: Sequence[str]) -> list[Run]:
    """The runs of folders and files, each ``PATH`` or ``NAME=PATH``, names made unique.

    Raises:
        UsageError: none is given, one cannot be read, or two are given the same name.
    """
    runs: list[Run] = []
    given: Counter[str] = Counter()
    for spec in specs:
        name, path = _split(spec)
        given[name or ""] += 1
        runs.append(_read(name or _name(path), path))
    if not runs:
        raise UsageError("no run is given", "dbrag eval report runs/mine")
    twice = [name for name, n in given.items() if name and n > 1]
    if twice:
        raise UsageError(f"two runs are named {twice[0]!r}", "write NAME=PATH with other names")
    return _unique(runs, [_split(spec)[1] for spec in specs])


def question_sets(runs: Sequence[Run], task: str) -> list[QuestionSet]:
    """The runs of a task, put together where their questions are the same, in their order."""
    groups: dict[Any, list[Run]] = {}
    for run in runs:
        if run.task == task and run.records:
            ids = frozenset(str(record["id"]) for record in run.records)
            groups.setdefault((run.data, run.file[1], ids), []).append(run)
    return [
        QuestionSet(_title(members[0]), tuple(members), tuple(_missing(runs, members[0])))
        for members in groups.values()
    ]


def missing_rows(one: QuestionSet) -> list[list[str]]:
    """A row of a table for each run that could not begin, with what would run it."""
    rows = []
    for run in one.missing:
        told = run.not_run or {}
        command = " ".join(told.get("command", "").split())
        reason = f"{plain(run.name)}: not run: {plain(told.get('reason', ''))}"
        rows.append([f"{reason} (`{plain(command)}`)" if command else reason])
    return rows


def _missing(runs: Sequence[Run], like: Run) -> list[Run]:
    data = like.config.get("data") or {}
    return [
        run
        for run in runs
        if run.not_run is not None
        and (run.task, run.file) == (like.task, like.file)
        and (run.config.get("data") or {}).get("tables") == data.get("tables")
    ]


def related(a: Run, b: Run) -> bool:
    """Whether question ids mean the same in both."""
    return a.asked == b.asked


def in_common(runs: Sequence[Run]) -> list[Run]:
    """The runs, each cut to the questions that all related ones hold; see :func:`related`.

    A sample can so be set beside a run of all questions.

    Raises:
        UsageError: related runs have no question in common.
    """
    shared: dict[Any, set[str]] = {}
    for run in runs:
        if run.records:
            ids = {str(record["id"]) for record in run.records}
            shared[run.asked] = shared.get(run.asked, ids) & ids
            if not shared[run.asked]:
                names = ", ".join(one.name for one in runs if related(one, run))
                raise UsageError(
                    f"no question of {run.data!r} is in all runs of eval {run.task}: {names}",
                    "leave out --common, or the run that asked others",
                )
    return [
        replace(run, records=tuple(r for r in run.records if str(r["id"]) in shared[run.asked]))
        if run.records
        else run
        for run in runs
    ]


def _title(run: Run) -> str:
    n, total = len(run.records), (run.config.get("questions") or {}).get("n")
    name = run.file[0]
    counted = f"{n:,} questions" if total in (None, n) else f"{n:,} of {total:,} questions"
    return f"{run.data}, {name}, {counted}" if name else f"{run.data}, {counted}"


def _split(spec: str) -> tuple[str | None, Path]:
    name, equals, place = spec.partition("=")
    if not equals or Path(spec).exists() or not name.strip():
        return None, Path(spec)
    return name.strip(), Path(place)


def _name(path: Path) -> str:
    return (path if path.is_dir() else path.with_suffix("")).resolve().name


def _unique(runs: list[Run], paths: Sequence[Path]) -> list[Run]:
    counted = Counter(run.name for run in runs)
    named = [
        replace(run, name=f"{path.resolve().parent.name}/{run.name}")
        if counted[run.name] > 1
        else run
        for run, path in zip(runs, paths, strict=True)
    ]
    twice = [name for name, n in Counter(run.name for run in named).items() if n > 1]
    if twice:
        raise UsageError(f"two runs are named {twice[0]!r}", "name them: NAME=PATH")
    return named


def _read(name: str, path: Path) -> Run:
    summary_file, records_file = _files(path)
    summary = usable(summary_file, read_json(summary_file)) if summary_file.exists() else None
    told_in = path / CONFIG
    if summary is None and path.is_dir() and told_in.exists():
        config = usable(told_in, {"config": read_json(told_in)})["config"]
    else:
        config = dict((summary or {}).get("config") or {})
    versions = (summary or {}).get("versions") or {}
    if summary is not None and "not_run" in summary:
        told = summary["not_run"]
        why = {key: told[key] for key in ("reason", "command")}
        return Run(name, str(summary.get("task")), (), config, versions, why)
    records = tuple(read_records(records_file))
    if not records:
        raise UsageError(f"the run {str(path)!r} holds no record", "go on with it: --resume")
    lacking = [record["id"] for record in records if "n_tables" not in record]
    if lacking:
        raise UsageError(
            f"{str(path)!r} is no run of dbrag eval: {lacking[0]!r} lacks 'n_tables'",
            "dbrag eval answers --out DIR",
        )
    task = str(config.get("task") or _task_of(records))
    return Run(name, task, records, config, versions, None, summary is not None)


def _files(path: Path) -> tuple[Path, Path]:
    """Where the summary and the records of a run are."""
    if path.is_dir():
        return path / SUMMARY, path / RECORDS
    return path.with_suffix(".json"), path.with_suffix(".jsonl") if path.suffix == ".json" else path


def _task_of(records: Sequence[Record]) -> str:
    keys = {key for record in records for key in record["scores"]}
    return RETRIEVAL if any(key.startswith("R@") for key in keys) else ANSWERS
