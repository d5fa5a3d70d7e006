"""The file of ``ask --trace``: checked before the model runs, written whole or not at all."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from dbrag.errors import DbragError, UsageError
from dbrag.textsafe import mask_secrets

if TYPE_CHECKING:
    from types import TracebackType

    from dbrag.interfaces.cli.notices import Events
    from dbrag.types import Answer

_ANOTHER = "choose another file for --trace"
_START = '{"kind": "dbrag trace", "schema": 1'


class TraceFile:
    """Writes what happened when the question is done, also when it failed.

    Raises:
        UsageError: the path cannot be written, or holds something that is no trace.
    """

    def __init__(self, path: str | None, events: Events, question: str) -> None:
        self._events = events
        self._question = question
        self.answer: Answer | None = None
        self._target: Path | None = None
        self._scratch: Path | None = None
        if path is not None:
            self._open(path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._target is None:
            return
        text = self._text(error)
        try:
            if self._scratch is None:
                self._target.write_text(text, encoding="utf-8")
            else:
                self._scratch.write_text(text, encoding="utf-8")
                self._scratch.replace(self._target)
        except OSError as problem:
            if error is None:
                raise DbragError(_unwritable(self._target, problem), _ANOTHER) from problem
        finally:
            if self._scratch is not None:
                self._scratch.unlink(missing_ok=True)

    def _open(self, path: str) -> None:
        target = Path(path).expanduser().resolve()
        try:
            if target.is_file() and target.stat().st_size:
                with target.open("rb") as file:
                    if file.read(len(_START)) != _START.encode():
                        raise UsageError(f"{path!r} exists and is not a trace of dbrag", _ANOTHER)
            if target.exists() and not target.is_file():
                with target.open("ab"):  # a pipe or a device: written in place
                    pass
            else:
                self._scratch = target.with_name(f".{target.name}.{os.getpid()}.part")
                self._scratch.touch()
        except OSError as error:
            raise UsageError(_unwritable(target, error), _ANOTHER) from error
        self._target = target

    def _text(self, error: BaseException | None) -> str:
        from dbrag.values import json_value

        entries = self._events.entries
        value: dict[str, Any] = {"question": self._question}
        if self.answer is not None:
            entries = [*(e for e in entries if e.get("stage") == "index")]
            entries += [dict(entry) for entry in self.answer.trace]
            value["answer"] = self.answer.to_dict()
        if isinstance(error, DbragError):
            value["error"] = error.to_dict()
        elif error is not None:
            message = mask_secrets(str(error))
            value["error"] = {"code": type(error).__name__, "message": message, "hint": ""}
        value["trace"] = json_value(entries)
        return _START + ", " + json.dumps(value, indent=1)[1:].lstrip() + "\n"


def _unwritable(path: Path, error: OSError) -> str:
    return f"cannot write the trace to {str(path)!r}: {error.strerror or error}"
