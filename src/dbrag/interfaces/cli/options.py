"""The flags that every command takes, before or after its name, and what they become."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dbrag.errors import UsageError
from dbrag.interfaces.cli import complete

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dbrag.database import Database
    from dbrag.settings import Settings

Command = TypeVar("Command", bound="Callable[..., Any]")


@dataclass
class Run:
    """One call of ``dbrag``: its common flags; ``command`` and ``asked`` serve error reports.

    ``asked`` is the question or statement, for the JSON of a failed ``ask`` or ``sql``.
    """

    sources: tuple[str, ...] = ()
    index: str | None = None
    config: str | None = None
    model: str | None = None
    schemas: tuple[str, ...] = ()
    json: bool = False
    quiet: bool = False
    verbose: bool = False
    command: str = ""
    asked: str = ""

    def settings(self, **arguments: Any) -> Settings:
        """Flags, then ``DBRAG_*``, then ``dbrag.toml``; an argument of None is not given.

        Raises:
            UsageError: an unknown or wrong setting.
        """
        from dbrag.settings import load_settings

        given = {"sources": self.sources, "index": self.index, "model": self.model}
        given["schemas"] = self.schemas
        return load_settings({**given, **arguments}, config=self.config)

    @contextmanager
    def database(self, **arguments: Any) -> Iterator[Database]:
        """The database that the flags name, closed at the end.

        Raises:
            UsageError: no source is named.
            SourceError: a source cannot be opened.
        """
        import dbrag

        settings = self.settings(**arguments)
        if not settings.sources and settings.index is None:
            raise UsageError(
                "no source is named", "add -s PATH; to try it out: dbrag demo, -s demo/shop.db"
            )
        database = dbrag.connect(settings=settings)
        try:
            yield database
        finally:
            database.close()


pass_run = click.make_pass_decorator(Run, ensure=True)

_COMMON = (
    click.option(
        "-s",
        "--source",
        "sources",
        multiple=True,
        metavar="[NAME=]PATH|URL",
        shell_complete=complete.files,
        help="A database or data file, a folder or glob of them, or the URL of a server; "
        "may be repeated.",
    ),
    click.option(
        "--schema",
        "schemas",
        multiple=True,
        metavar="NAME",
        help="Read only this schema of a server; may be repeated.",
    ),
    click.option(
        "--index",
        metavar="DIR",
        shell_complete=complete.folders,
        help="Folder of the index (also DBRAG_INDEX).",
    ),
    click.option(
        "--config",
        metavar="FILE",
        shell_complete=complete.files,
        help="Settings file instead of dbrag.toml.",
    ),
    click.option(
        "--model",
        metavar="PROVIDER:NAME",
        shell_complete=complete.models,
        help="Chat model (also DBRAG_MODEL).",
    ),
    click.option("--json", is_flag=True, help="Print one JSON object on standard output."),
    click.option("-q", "--quiet", is_flag=True, help="Print the result only."),
    click.option("-v", "--verbose", is_flag=True, help="Print each stage, and more on errors."),
)


def common_options(command: Command) -> Command:
    """Add the flags that every command takes; their values go to the :class:`Run`."""
    for option in reversed(_COMMON):
        command = option(command)
    for parameter in command.__click_params__:  # type: ignore[attr-defined]
        if parameter.name in Run.__dataclass_fields__ and parameter.callback is None:
            parameter.expose_value = False
            parameter.callback = _store
    return command


def membership_option(command: Command) -> Command:
    """Add ``--membership/--no-membership``; without either the setting holds."""
    return click.option(
        "--membership/--no-membership",
        default=None,
        help="Tables of one database support each other in the ranking.",
    )(command)


def named(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
    """The callback of paths: an empty one is a variable that is not set, not this folder.

    Raises:
        UsageError: a path is empty.
    """
    for one in value if isinstance(value, tuple) else (value,):
        if one is not None and not one.strip():
            raise UsageError(
                f"{parameter.get_error_hint(context)} is {one!r}, no path",
                "name a file or a folder; a variable of the shell may not be set",
            )
    return value


def _store(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    run = context.ensure_object(Run)
    run.command = _command_of(context) or run.command
    if parameter.name == "sources":
        run.sources += tuple(value)
    elif parameter.name == "schemas":
        run.schemas += tuple(value)
    elif value:
        setattr(run, str(parameter.name), value)


def _command_of(context: click.Context) -> str:
    """``ask`` for ``dbrag ask``; empty while only the group is known."""
    return context.command_path.partition(" ")[2]


class ListCommand(click.Command):
    """A command whose repeatable options also take several values: ``--tables a b``.

    Values reach to the next flag. Where that would leave no argument, the last
    value is the argument: ``ask --tables a b "how many …"``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Rewrite ``--tables a b`` as ``--tables a --tables b``, then parse."""
        ctx.meta[complete.TYPED] = tuple(args)
        return super().parse_args(ctx, self._spread(args))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Also the second and later values of a repeatable option."""
        option = None if _is_flag(incomplete) else self.open_list(ctx.meta.get(complete.TYPED, ()))
        if option is not None:
            return option.shell_complete(ctx, incomplete)
        return super().shell_complete(ctx, incomplete)

    def open_list(self, words: Sequence[str]) -> click.Parameter | None:
        """The repeatable option that the next word belongs to, where the last flag is one."""
        flags = [word for word in words if _is_flag(word)]
        if not flags or flags[-1] not in self._option_names()[0]:
            return None
        return next(parameter for parameter in self.params if flags[-1] in parameter.opts)

    def _spread(self, args: list[str]) -> list[str]:
        lists, valued = self._option_names()
        out: list[str] = []
        swallowed: tuple[int, str] | None = None
        arguments = False
        i = 0
        while i < len(args):
            word = args[i]
            i += 1
            if word == "--":
                return [*out, word, *args[i:]]
            if word in lists:
                values = 0
                while i < len(args) and (values == 0 or not _is_flag(args[i])):
                    out += [word, args[i]]
                    values += 1
                    i += 1
                if values > 1:
                    swallowed = (len(out) - 2, args[i - 1])
                elif values == 0:
                    out.append(word)
            elif word in valued:
                out += args[i - 1 : i + 1]
                i += 1
            else:
                arguments = arguments or not _is_flag(word)
                out.append(word)
        if not arguments and swallowed:
            place, value = swallowed
            out[place : place + 2] = [value]
        return out

    def _option_names(self) -> tuple[set[str], set[str]]:
        """Names of the list options, and of the other options that take a value."""
        lists: set[str] = set()
        valued: set[str] = set()
        for parameter in self.params:
            if not isinstance(parameter, click.Option) or parameter.is_flag:
                continue
            greedy = parameter.multiple and parameter.name not in ("sources", "schemas")
            (lists if greedy else valued).update(parameter.opts)
        return lists, valued


def _is_flag(word: str) -> bool:
    return word.startswith("-") and word != "-"
