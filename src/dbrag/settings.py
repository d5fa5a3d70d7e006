"""Settings: arguments, then ``DBRAG_*`` variables, then ``dbrag.toml``, then defaults.

Paths in ``dbrag.toml`` are relative to its folder, all others to the working directory.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from dbrag.convert import CONVERT, KIND_NAMES, is_of, one_of, out_of_range
from dbrag.convert import WORDS as _WORDS
from dbrag.errors import UsageError
from dbrag.options import (
    FileOptions,
    JoinOptions,
    OpenOptions,
    SourceOptions,
    TableNote,
    leave_out,
    read_notes,
    read_options,
)

CONFIG_NAME = "dbrag.toml"
DEFAULT_MODEL = "local:qwen2.5-coder-1.5b"
SAMPLE_ROWS = 5
"""Rows of a table that are known without asking its source."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set; times in seconds, sizes in rows unless named otherwise.

    Attributes:
        sources: paths, URLs or ``name=…`` of them.
        index: folder of the index; None means one per set of sources in the cache.
        model: chat model as ``provider:name``.
        encoder: text encoder as ``provider:name`` or the path of an ONNX folder.
        cache: folder for weights and default indexes; None means the user's cache.
        k: tables kept by the coarse ranking.
        top: tables shown by ``search``; what a program gets to see is selected anew.
        selection: whether of these the tables are selected that a program needs ("auto"), or
            it sees the ``top`` best ones of one source ("off").
        prompt_tokens: what a program prompt may take; None depends on the model.
        votes: programs voted on.
        vote_temperature: of those that are sampled.
        rounds: repair rounds for one program.
        mend: whether names, joins and compared texts of a program are put right by rule ("on",
            "off"), before the model is asked again.
        program: how it is written: "query" (one statement at once) or "steps".
        looks: whether a step is looked at before the next is written: "on", "off", or "auto"
            (in local engines: SQLite, DuckDB, data files).
        max_steps: steps of one program.
        program_tokens: length of one reply with a program or step.
        program_rows: rows of a table in a program prompt: two "sample" rows, or those that
            ``row_context`` and ``context_rows`` say ("context").
        naming_hint: whether the model is told to name the columns of a result as SQL does
            ("on", "off").
        answer_s: seconds after which no more of the model is asked for one question; None: never.
        answer_tokens: the same for tokens of prompts and replies, without remembered ones.
        max_rows: rows printed; never limits what is computed.
        max_result_rows: rows a result may have before it is refused.
        max_result_mb: memory a result may take before it is refused.
        timeout_s: time one statement may run.
        profile_rows: rows read of one table for its profile and the row index.
        profile_s: seconds spent on reading one table.
        source_rows: rows read of all tables of one source; small tables come first.
        source_s: seconds spent on reading the tables of one source; those that are
            left then are known by their columns only.
        learned: file of verified questions with their SQL, or "off"; None means
            ``learned.sql`` beside the ``dbrag.toml`` in use, else in the index.
        reply_cache: whether a model's replies are remembered and given again: "on", "off",
            or "auto" (those of remote models).
        threads: threads of the local model; None chooses from the free cores.
        offline: never open a connection for weights or remote models.
        schemas: schemas of a server to read; empty means all that the user may see.
        redact: columns that are never read: ``column``, ``table.column``, and so on.
        engine_mb: memory of the engine that reads files.
        refresh_s: how old the index of a server whose data (not schema) changed may be.
        source_options: ``[source.NAME]`` of ``dbrag.toml``.
        file_options: ``[files."PATTERN"]`` of ``dbrag.toml``.
        notes: ``[notes."TABLE"]`` of ``dbrag.toml``: descriptions, synonyms, preferred tables.
        infer_joins: where joins are inferred from values and names beside the declared
            keys: "all", "undeclared" (sources that declare none) or "off".
        joins: ``[joins]`` of ``dbrag.toml``: joins to add and to remove.
        membership: tables of one database support each other in the ranking.
        rerank: whether the chat model orders the best tables anew: "on", "off", or "auto"
            (by model, see ``retrieval.auto.is_wanted``).
        rerank_k: tables shown to the model; None means ``k``, fewer to a small local model.
        rerank_votes: replies whose orders are fused; more than one are sampled.
        rerank_tokens: what a reranking prompt may take; None depends on the model.
        m: tables that the model is asked to name, best first.
        row_context: rows shown of each table: "relevant" to the question, "random", "none".
        context_rows: how many.
        join_ranking: how joins count in the ranking, see ``retrieval.joinaware``.
        row_search: how rows are found: by "text", by vectors ("dense"), or "both".
        dense_rows: rows of one table that get a vector at most.
        readtable_tokens: what a prompt of the baseline ReadTable may take; None: the context.
        mtqa_model: weights of the baseline MTQA: a name on the Hugging Face hub, or a folder.
    """

    sources: tuple[str, ...] = ()
    index: str | None = None
    model: str = DEFAULT_MODEL
    encoder: str = "local:all-minilm-l6-v2"
    cache: str | None = None
    k: int = 50
    top: int = 5
    selection: str = "auto"
    mend: str = "on"
    prompt_tokens: int | None = None
    votes: int = 3
    vote_temperature: float = 0.7
    rounds: int = 3
    program: str = "query"
    looks: str = "auto"
    max_steps: int = 8
    program_tokens: int = 800
    program_rows: str = "sample"
    naming_hint: str = "off"
    answer_s: float | None = None
    answer_tokens: int | None = None
    max_rows: int = 50
    max_result_rows: int = 1_000_000
    max_result_mb: int = 512
    timeout_s: float = 30.0
    profile_rows: int = 200_000
    profile_s: float = 10.0
    source_rows: int = 5_000_000
    source_s: float = 1200.0
    learned: str | None = None
    reply_cache: str = "auto"
    threads: int | None = None
    offline: bool = False
    schemas: tuple[str, ...] = ()
    redact: tuple[str, ...] = ()
    engine_mb: int = 1024
    refresh_s: float = 60.0
    source_options: Mapping[str, SourceOptions] = field(default_factory=dict)
    file_options: Mapping[str, FileOptions] = field(default_factory=dict)
    notes: Mapping[str, TableNote] = field(default_factory=dict)
    infer_joins: str = "all"
    joins: JoinOptions = field(default_factory=JoinOptions)
    membership: bool = False
    rerank: str = "auto"
    rerank_k: int | None = None
    rerank_votes: int = 1
    rerank_tokens: int | None = None
    m: int = 5
    row_context: str = "relevant"
    context_rows: int = 2
    row_search: str = "text"
    join_ranking: str = "pagerank"
    dense_rows: int = 10_000
    readtable_tokens: int | None = None
    mtqa_model: str = "vaishali/multitabqa-base"

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", read_notes(self.notes))
        object.__setattr__(self, "joins", read_options(JoinOptions, self.joins, "joins"))
        for name, kind in (("source", SourceOptions), ("files", FileOptions)):
            options = getattr(self, _TABLES[name])
            if not isinstance(options, Mapping):
                raise UsageError(f"{name} must be a table, not {options!r}", f"write [{name}.…]")
            read = {key: read_options(kind, one, f"{name}.{key}") for key, one in options.items()}
            object.__setattr__(self, _TABLES[name], read)
        for name, wanted in out_of_range(self, SAMPLE_ROWS):
            value, hint = getattr(self, name), leave_out(Settings, name, variable=True)
            raise UsageError(f"{name} must {wanted}, not {value!r}", hint)

    @property
    def cache_dir(self) -> Path:
        """Folder for weights and default indexes."""
        if self.cache:
            return Path(self.cache).expanduser()
        import platformdirs

        return Path(platformdirs.user_cache_dir("dbrag", appauthor=False))

    def open_options(self) -> OpenOptions:
        """What opening the sources depends on."""
        return OpenOptions(
            cache=self.cache_dir / "files",
            schemas=self.schemas,
            redact=self.redact,
            sources=self.source_options,
            files=self.file_options,
            memory_mb=self.engine_mb,
            threads=self.threads,
        )


def load_settings(
    arguments: Mapping[str, Any] | None = None,
    *,
    config: str | None = None,
    environ: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Settings:
    """Merge the three layers; an argument of None counts as not given.

    Args:
        config: a file to read instead of the ``dbrag.toml`` found upwards of ``directory``.

    Raises:
        UsageError: an unknown key, a value of the wrong kind, an unreadable file.
    """
    environ = os.environ if environ is None else environ
    path = config_path(config, directory)
    values: dict[str, Any] = {}
    if path is not None:
        values |= _from_file(path)
    values |= _from_environment(environ)
    for name, value in (arguments or {}).items():
        if value is not None and value != ():
            values[name] = _checked(name, value, "argument")
    return replace(Settings(), **values)


def lenient_settings(
    arguments: Mapping[str, Any], *, config: str | None, environ: Mapping[str, str]
) -> tuple[Settings, list[UsageError]]:
    """As :func:`load_settings`, but what is wrong is left out and given back: an error per key."""
    problems: list[UsageError] = []
    good = Settings()

    def take(read: Callable[..., Mapping[str, Any]], *given: Any) -> None:
        nonlocal good
        try:
            good = replace(good, **read(*given))
        except UsageError as error:
            problems.append(error)

    path = config_path(config)
    if path is not None:
        try:
            data = _read_toml(path)
        except UsageError as error:
            data = {}
            problems.append(error)
        for name, value in data.items():
            take(_from_key, name, value, path)
    for name, text in environ.items():
        take(_from_environment, {name: text})
    for name, value in arguments.items():
        if value not in (None, ()):
            take(lambda n, v: {n: _checked(n, v, "argument")}, name, value)
    return good, problems


def _from_key(name: str, value: Any, path: Path) -> dict[str, Any]:
    """What one key of a settings file gives, without what its absence would."""
    values = _from_data({name: value}, path)
    return values if name == "learned" else {k: v for k, v in values.items() if k != "learned"}


def config_path(config: str | None = None, directory: Path | None = None) -> Path | None:
    """The settings file in force: the one named, else ``dbrag.toml`` here or upwards, else None."""
    return Path(config).expanduser() if config else _find(directory or Path.cwd())


def _find(directory: Path) -> Path | None:
    for folder in (directory, *directory.resolve().parents):
        if (folder / CONFIG_NAME).is_file():
            return folder / CONFIG_NAME
    return None


def _from_file(path: Path) -> dict[str, Any]:
    return _from_data(_read_toml(path), path)


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(
            f"cannot read the configuration {str(path)!r}: {reason}", "--config FILE names another"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{str(path)!r} is not valid TOML: {error}", "mend that line, or --config FILE"
        ) from error


def _from_data(data: dict[str, Any], path: Path) -> dict[str, Any]:
    """The values of a settings file; takes its tables out of ``data``."""
    tables: dict[str, Any] = {}
    for name, kind in (("source", SourceOptions), ("files", FileOptions)):
        if name in data:
            tables[_TABLES[name]] = _from_table(data.pop(name), name, kind, str(path))
    if "joins" in data:
        try:
            tables["joins"] = read_options(JoinOptions, data.pop("joins"), "joins")
        except UsageError as error:
            raise UsageError(f"{error.message} (in {path})", error.hint) from error
    if "notes" in data:
        try:
            tables["notes"] = read_notes(data.pop("notes"))
        except UsageError as error:
            raise UsageError(f"{error.message} (in {path})", error.hint) from error
    values = {name: _checked(name, value, str(path), typed=True) for name, value in data.items()}
    values |= tables
    folder = path.resolve().parent
    values.setdefault("learned", "learned.sql")
    for name in ("index", "cache", "learned"):
        if name in values and (name, values[name]) != ("learned", "off"):
            values[name] = _from_folder(values[name], folder)
    if "sources" in values:
        values["sources"] = tuple(_from_folder(spec, folder) for spec in values["sources"])
    return values


def _from_table(data: Any, name: str, kind: type[Any], path: str) -> dict[str, Any]:
    if not isinstance(data, dict):
        example = f'{name}."PATTERN"' if name == "files" else f"{name}.NAME"
        raise UsageError(f"{name} in {path} must be a table, not {data!r}", f"write [{example}]")
    options = {}
    for key, one in data.items():
        written = f'{name}."{key}"' if name == "files" else f"{name}.{key}"
        if name == "files" and not isinstance(one, dict):
            raise UsageError(
                f"{key!r} in [files] of {path} names no files", f'write [files."*.csv"], then {key}'
            )
        try:
            options[key] = read_options(kind, one, written)
        except UsageError as error:
            raise UsageError(f"{error.message} (in {path})", error.hint) from error
    return options


def _from_folder(spec: str, folder: Path) -> str:
    """A path of the file, which is relative to the file and not to the working directory."""
    name, separator, rest = spec.partition("=")
    if separator and not any(mark in name for mark in "/\\:"):
        return f"{name}={_from_folder(rest, folder)}"
    return spec if "://" in spec else str(folder / Path(spec).expanduser())


def _from_environment(environ: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for one in fields(Settings):
        text = environ.get(f"DBRAG_{one.name.upper()}")
        if text and one.name not in _TABLES.values():
            values[one.name] = _checked(one.name, text, f"DBRAG_{one.name.upper()}")
    return values


def _checked(name: str, value: Any, where: str, *, typed: bool = False) -> Any:
    """``value`` as the type of the field ``name``.

    Args:
        typed: the layer has types of its own (TOML): 5 is no text there, "yes" no truth value.
    """
    kinds = {one.name: str(one.type) for one in fields(Settings)}
    if name in _TABLES.values():
        return value
    if name not in kinds:
        known = ", ".join(sorted(kinds.keys() - _TABLES.values() | _TABLES.keys()))
        raise UsageError(f"unknown setting {name!r} in {where}", f"known settings: {known}")
    kind = "texts" if name in _TEXTS else kinds[name].removesuffix(" | None")
    try:
        if typed and not is_of(kind, value):
            raise TypeError(value)
        return CONVERT[kind](value)
    except (ValueError, TypeError) as error:
        wanted = one_of(_WORDS[name]) if name in _WORDS else KIND_NAMES[kind]
        hint = leave_out(Settings, name)
        raise UsageError(f"{name} in {where} must be {wanted}, not {value!r}", hint) from error


_TABLES = {"source": "source_options", "files": "file_options", "notes": "notes", "joins": "joins"}
"""Tables of ``dbrag.toml`` and their fields."""
_TEXTS = frozenset({"schemas", "redact"})
