"""The log: one JSON object a line on standard error.

Questions, statements, values and tokens are not in it; a question is only with
``--log-questions``. Secrets in messages of libraries are masked.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any, TextIO

from dbrag.textsafe import SecretFilter

NAME = "dbrag.http"
log = logging.getLogger(NAME)


class JsonLines(logging.Formatter):
    """A record as one line of JSON; the fields of ``extra={"fields": …}`` stand beside it."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without line breaks whatever the message holds."""
        entry: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        fields = getattr(record, "fields", None)
        if isinstance(fields, dict):
            entry |= {key: value for key, value in fields.items() if value is not None}
        if record.exc_info and not record.exc_text:
            record.exc_text = self.formatException(record.exc_info)
        if record.exc_text:
            entry["traceback"] = record.exc_text
        return json.dumps(entry, default=str)


def set_up(level: int, stream: TextIO | None = None) -> logging.Handler:
    """Send the log of the server, of dbrag and of uvicorn to ``stream`` (standard error)."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    handler.addFilter(SecretFilter())
    for name, least in ((NAME, level), ("dbrag", logging.WARNING), ("uvicorn", logging.WARNING)):
        logger = logging.getLogger(name)
        logger.setLevel(least)
        logger.handlers = [handler]
        logger.propagate = False
    logging.getLogger("uvicorn.access").disabled = True  # ours has no query and no address
    log.handlers, log.propagate = [], True
    return handler


def event(name: str, level: int = logging.INFO, **fields: Any) -> None:
    """Log one event; fields of None are left out."""
    log.log(level, name, extra={"fields": fields})
