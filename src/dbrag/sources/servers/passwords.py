"""Where a server's password comes from, if not from its URL."""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from dbrag.errors import SourceError, UsageError

if TYPE_CHECKING:
    from dbrag.options import SourceOptions

COMMAND_S = 30.0
"""Seconds a password command may take."""
KEPT_S = 300.0
"""Seconds a command's answer is used again: tokens of cloud databases expire."""


class Password:
    """The password of one source, looked up when a connection is opened.

    Args:
        source: the source's name, for messages.
        options: what ``[source.NAME]`` says; an environment variable comes before a command.
    """

    def __init__(self, source: str, options: SourceOptions | None) -> None:
        self._source = source
        self._options = options
        self._lock = threading.Lock()
        self._kept: tuple[float, str] | None = None

    def get(self) -> str | None:
        """The password; None where none is named: the driver's own ways are left.

        Raises:
            SourceError: the variable is not set; the command fails, is slow or says nothing.
            UsageError: the command cannot be split into words.
        """
        options = self._options
        if options is None:
            return None
        if options.password_env is not None:
            return self._from_environment(options.password_env)
        if options.password_command is None:
            return None
        with self._lock:
            if self._kept is None or time.monotonic() - self._kept[0] > KEPT_S:
                self._kept = (time.monotonic(), self._from_command(options.password_command))
            return self._kept[1]

    def _from_environment(self, name: str) -> str:
        value = os.environ.get(name)
        if value is None:
            raise SourceError(
                f"the password of source {self._source!r} is not there: "
                f"the environment variable {name!r} is not set",
                f"export {name}=…",
            )
        return value

    def _from_command(self, command: str) -> str:
        """The first line that the command prints; whatever else it prints is not shown."""
        where = f"password_command in [source.{self._source}]"
        try:
            words = shlex.split(command)
        except ValueError:
            words = []
        if not words:
            raise UsageError(f"{where} is no command", 'write it as in a shell: "pass show shop"')
        hint = "run the command by hand to see why"
        try:
            done = subprocess.run(  # noqa: S603  the user's own command
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=COMMAND_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            # Its cause would hold what was printed.
            raise SourceError(f"{where} took longer than {COMMAND_S:g} s", hint) from None
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise SourceError(f"{where}: cannot run {words[0]!r}: {reason}", hint) from error
        if done.returncode:
            raise SourceError(f"{where} ended with status {done.returncode}", hint)
        line = done.stdout.decode("utf-8", "replace").split("\n", 1)[0].rstrip("\r")
        if not line:
            raise SourceError(f"{where} printed no password", hint)
        return line
