"""The one exception tree of dbrag.

::

    DbragError
    ├── UsageError               exit 2   wrong argument, question, setting
    │   └── Refused              exit 2   the guard does not admit the statement
    ├── SourceError              exit 3   a database or file cannot be read
    │   ├── SourceNotFound
    │   ├── SourceUnreadable               not a database, malformed, no permission
    │   └── SourceBusy                     locked by another program
    ├── IndexUnusable            exit 3   the index cannot be read or written
    │   ├── IndexLocked                    another process is indexing
    │   └── EncoderMismatch                built with another encoder
    ├── ModelError               exit 5   a chat or embedding model fails
    │   ├── ModelNotInstalled              an extra or a key is missing
    │   ├── WeightsError                   weights missing, cut or wrong
    │   ├── PromptTooLong
    │   └── InvalidReply                   not in the form that was asked for
    ├── ExecutionError           exit 1   the engine rejects or aborts a statement
    │   └── UnknownName                    a table or column that does not exist
    ├── LimitReached             exit 6   time, memory or rows
    └── Unanswerable             exit 4   nothing here can answer the question

Every error has a ``code`` (stable, for programs), a message (what is wrong,
with the value) and a ``hint`` (the next command to type), both without passwords.
Where an error is raised without a hint, that of its class is told.
Errors of other libraries are wrapped where they arise, with ``raise … from``.
"""

from __future__ import annotations

from typing import ClassVar

from dbrag.textsafe import mask_secrets


class DbragError(Exception):
    """Base of every error that dbrag raises on purpose.

    Args:
        message: what is wrong, one line, with the offending value as ``repr``.
        hint: what to type or change next; empty: the ``default_hint`` of the class.
    """

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[int] = 1
    default_hint: ClassVar[str] = ""

    def __init__(self, message: str, hint: str = "") -> None:
        # Messages of drivers are passed on, and may repeat a URL or a DSN.
        self.message = mask_secrets(message)
        self.hint = mask_secrets(hint or self.default_hint)
        super().__init__(self.message)

    def to_dict(self) -> dict[str, str]:
        """The ``error`` object of the JSON contract."""
        return {"code": self.code, "message": self.message, "hint": self.hint}


class UsageError(DbragError):
    """A wrong argument, question or setting."""

    code = "usage"
    exit_code = 2


class Refused(UsageError):
    """The guard does not admit this statement."""

    code = "refused"


class SourceError(DbragError):
    """A database or a file cannot be used."""

    code = "source"
    exit_code = 3


class SourceNotFound(SourceError):
    """No such file, folder or database."""

    code = "source_not_found"


class SourceUnreadable(SourceError):
    """It is there, but it is no database, is malformed, or may not be read."""

    code = "source_unreadable"


class SourceBusy(SourceError):
    """Another program holds a lock on it."""

    code = "source_busy"


class IndexUnusable(DbragError):
    """The index cannot be read or written (full disk, foreign or damaged files)."""

    code = "index"
    exit_code = 3


class IndexLocked(IndexUnusable):
    """Another process is writing the same index."""

    code = "index_locked"


class EncoderMismatch(IndexUnusable):
    """The index was built with another encoder than the one in use."""

    code = "encoder_mismatch"


class ModelError(DbragError):
    """A chat model or an encoder fails."""

    code = "model"
    exit_code = 5


class ModelNotInstalled(ModelError):
    """An extra, a key or a model name is missing."""

    code = "model_not_installed"


class WeightsError(ModelError):
    """Weights are missing, cut short, or not the registered bytes."""

    code = "weights"


class PromptTooLong(ModelError):
    """The prompt does not fit the model's context."""

    code = "prompt_too_long"
    default_hint = "ask about fewer tables (--tables), or use a model with a longer context"


class InvalidReply(ModelError):
    """A chat model's reply does not follow the JSON schema it was given."""

    code = "invalid_reply"
    default_hint = "ask again, or use a stronger model: --model provider:name"


class ExecutionError(DbragError):
    """The engine rejected or aborted a statement."""

    code = "execution"


class UnknownName(ExecutionError):
    """A statement names a table or column that does not exist.

    Args:
        names: the unknown names as written.
        suggestions: the nearest real ones, columns as ``table.column``.
    """

    code = "unknown_name"
    default_hint = "see the tables and columns: dbrag search QUESTION"

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        names: tuple[str, ...] = (),
        suggestions: tuple[str, ...] = (),
    ) -> None:
        super().__init__(message, hint)
        self.names = names
        self.suggestions = suggestions


class LimitReached(DbragError):
    """Time, memory or rows beyond the limit."""

    code = "limit"
    exit_code = 6


class Unanswerable(DbragError):
    """Nothing in the sources can answer the question."""

    code = "unanswerable"
    exit_code = 4
