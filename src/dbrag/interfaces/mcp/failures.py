"""What goes wrong, as agents read it: our message and hint, never a traceback; and the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from dbrag.errors import DbragError, UsageError
from dbrag.interfaces.cli import output
from dbrag.textsafe import SecretFilter, mask_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from mcp.server.mcpserver import MCPServer
    from mcp_types import Tool
    from pydantic import ValidationError

log = logging.getLogger("dbrag.mcp")

INSTALL = "pip install 'dbrag[mcp]'"
_HERE = {
    "dbrag search QUESTION": "search_tables",
    "dbrag search": "search_tables",
    "name one with --source": "name one in the argument source",
}
"""What hints say of the command line, and what it is for agents."""
_SHOWN = 100


def message_of(error: DbragError) -> str:
    """``refused: only SELECT is admitted``, and on the next line what to do."""
    hint = error.hint
    for there, here in _HERE.items():
        hint = hint.replace(there, here)
    return f"{error.code}: {error.message}" + (f"\ntry: {hint}" if hint else "")


def server_class() -> type[MCPServer[Any]]:
    """The SDK's server, with failures in our words.

    Raises:
        UsageError: the extra is missing.
    """
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
    except ModuleNotFoundError as error:
        raise UsageError(
            f"dbrag mcp needs packages that are not installed: {_package(error)}", INSTALL
        ) from error
    from pydantic import ValidationError

    class Server(MCPServer[Any]):
        async def list_tools(self) -> list[Tool]:
            tools = await super().list_tools()
            for tool in tools:
                tool.input_schema = {**tool.input_schema, "additionalProperties": False}
            return tools

        async def call_tool(self, name: str, arguments: dict[str, Any], context: Any = None) -> Any:
            schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
            if wrong := _wrong_names(name, arguments, schemas):
                raise ToolError(f"usage: {wrong}")
            try:
                return await super().call_tool(name, arguments, context)
            except UnexpectedToolError as error:
                raise ToolError(_bug(name, error)) from error
            except ToolError as error:
                cause = error.__cause__
                if isinstance(cause, ValidationError):
                    raise ToolError(f"usage: {_wrong_values(cause)}") from error
                if isinstance(cause, ToolError):  # ours, without the SDK's words before it
                    raise cause from cause.__cause__
                raise

    return Server


def _package(error: ModuleNotFoundError) -> str:
    return str(error.name).partition(".")[0]


def _wrong_names(
    name: str, arguments: Mapping[str, Any], schemas: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """Why a call names what there is not; None if it does not."""
    if name not in schemas:
        return f"there is no tool {name[:_SHOWN]!r}; there are {', '.join(schemas)}"
    known = schemas[name].get("properties", {})
    for argument in arguments:
        if argument not in known:
            has = ", ".join(known)
            return f"{name} has no argument {argument[:_SHOWN]!r}; it has {has}"
    return None


def _wrong_values(error: ValidationError) -> str:
    told = []
    for one in error.errors(include_url=False, include_context=False)[:3]:
        place = ".".join(map(str, one["loc"]))
        if one["type"] == "missing":
            told.append(f"the argument {place} is missing")
        else:
            text = repr(one["input"])
            text = text if len(text) <= _SHOWN else text[:_SHOWN] + "…"
            told.append(f"{place}: {one['msg'][0].lower()}{one['msg'][1:]}, not {text}")
    return mask_secrets("; ".join(told))


def _bug(name: str, error: Exception) -> str:
    cause = error.__cause__ or error
    log.error("%s failed: %s", name, type(cause).__name__, exc_info=cause)
    message = " ".join(mask_secrets(f"{type(cause).__name__}: {cause}").split())[:500]
    return f"bug: this is a bug in dbrag: {message}\ntry: run the server with -v and report it"


class StderrHandler(logging.Handler):
    """Log lines on standard error: standard output belongs to the protocol.

    Secrets are masked, control characters shown; tracebacks only where ``verbose``.
    """

    def __init__(self, verbose: bool) -> None:
        super().__init__(logging.INFO if verbose else logging.WARNING)
        self._verbose = verbose
        self.addFilter(SecretFilter())

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record."""
        try:
            text = self.format(record)
            output.note(text if self._verbose else text.partition("\n")[0])
        except Exception:
            self.handleError(record)


def set_up_log(verbose: bool) -> None:
    """Log to standard error, unless the program that we are in logs already.

    The SDK would else add a handler of its own, which draws.
    """
    from dbrag.interfaces.cli.app import OnceFilter

    root = logging.getLogger()
    if not root.handlers:
        handler, once = StderrHandler(verbose), OnceFilter()
        # A file that cannot be read is met at every look; what a call does is told every time.
        handler.addFilter(
            lambda one: (
                not one.name.startswith("dbrag.") or one.name == log.name or once.filter(one)
            )
        )
        root.addHandler(handler)
        root.setLevel(logging.INFO if verbose else logging.WARNING)
