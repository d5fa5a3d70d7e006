"""Text of unknown origin: without secrets for logs and errors, without power for prompts."""

from __future__ import annotations

import logging
import re

MASK = "***"

_URL = re.compile(r"(?<![\w+.-])([A-Za-z][\w+.-]*://)(\S+)")
_KEY = (
    r"(?<![\w.-])[\w.-]{0,50}(?:password|passwd|passphrase|pwd|secret|token|credential|api_?-?key|"
    r"access_?-?key|private_?-?key)[\w-]{0,50}"
)
_QUOTED = r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.)*\"|\{[^}]*\}"
# password=… of a DSN, an environment or a query string; "password": "…" of JSON and reprs.
_ASSIGNED = re.compile(rf"(?i)({_KEY}\s*=\s*)({_QUOTED}|(?!…)[^\s&;,'\")\]}}]+)")
_KEYED = re.compile(rf"(?i)((['\"]){_KEY}\2\s*:\s*)({_QUOTED})")
_QUERY = re.compile(rf"(?i)([?&]{_KEY}=)[^&#\s]*")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+[\w.~+/=-]{8,}")
_API_KEY = re.compile(r"\b(sk|ghp|xox[abp])([-_])[\w-]{16,}")

_MASKED_CHARS = 2_000
"""Of a text of which a prompt shows far less."""

# Characters that break a line, are not seen, or turn the reading direction.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff"
    "\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e0fff]+|[\ufe00-\ufe0f]{2,}"
)
_ANSI = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
# Marks that chat templates and formats give a meaning: taken apart, they are plain text.
_TEMPLATE = (
    (re.compile(r"<(?=[|\uff5c])"), "< "),
    (re.compile(r"(?<=[|\uff5c])>"), " >"),
    (re.compile(r"<<(?=/?SYS)|<(?=/?SYS>)", re.IGNORECASE), "< "),
    (
        re.compile(
            r"<(?=/?(?:s|bos|eos|pad|unk|mask|think|thought|system|user|assistant|human|"
            r"instructions?|tool_?\w*|function_?\w*|(?:start|end)_of_\w+|im_\w+)\s*/?>)",
            re.IGNORECASE,
        ),
        "< ",
    ),
    (
        re.compile(r"\[(?=/?(?:INST|SYS|TOOL_\w+|AVAILABLE_TOOLS|SYSTEM_PROMPT)\])", re.IGNORECASE),
        "[ ",
    ),
    (re.compile(r"`{3,}"), "''"),
    (re.compile(r"~{3,}"), "~~"),
    (re.compile(r"#{3,}"), "##"),
)


def mask_secrets(text: str) -> str:
    """Text whose passwords, tokens and keys are ``***``: of URLs, DSNs, headers, settings."""
    if "://" in text:
        text = _URL.sub(lambda match: without_password(match[0], MASK), text)
    text = _ASSIGNED.sub(rf"\1{MASK}", text)
    text = _KEYED.sub(rf'\1"{MASK}"', text)
    text = _BEARER.sub(rf"\1 {MASK}", text)
    return _API_KEY.sub(rf"\1\2{MASK}", text)


def without_password(url: str, mark: str = "") -> str:
    """A URL without the password before the host and without secrets in its query.

    An unescaped ``@`` or ``/`` in the password is taken as a part of it.

    Args:
        mark: what stands in its place; without one, the URL is as if it never had any.
    """
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    user, colon, after = authority.partition(":")
    if "@" in authority:
        userinfo, _, host = authority.rpartition("@")
        user, colon, _ = userinfo.partition(":")
        tail = host + rest[len(authority) :]
    elif colon and "@" in rest and not after.isdigit():
        tail = rest.rpartition("@")[2]
    else:
        return f"{scheme}://{_without_keys(rest, mark)}"
    secret = f":{mark}" if colon and mark else ""
    return f"{scheme}://{user}{secret}@{_without_keys(tail, mark)}"


def _without_keys(rest: str, mark: str) -> str:
    if mark:
        return _QUERY.sub(rf"\g<1>{mark}", rest)
    bare = re.sub(rf"(?i)(?<=[?&]){_KEY}=[^&#\s]*&?", "", rest)
    return bare.rstrip("?&")


class SecretFilter(logging.Filter):
    """Masks the secrets of every record of a handler, its traceback included."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Mask the message; never drop it."""
        try:
            message = record.getMessage()
        except Exception:
            return True  # logging itself reports a wrong format
        record.msg, record.args = mask_secrets(message), None
        if record.exc_info and not record.exc_text:
            record.exc_text = logging.Formatter().formatException(record.exc_info)
        if record.exc_text:
            record.exc_text = mask_secrets(record.exc_text)
        return True


def one_line(text: str, limit: int) -> str:
    """Text for a prompt: one line without unseen characters, at most ``limit`` characters.

    Terminal sequences vanish, control characters and line breaks become a space, and
    marks of chat templates and Markdown are taken apart. Other text stays as it is.
    """
    # First a bound on the work: one cell may be megabytes.
    cut = len(text) > 4 * limit + 16
    text = text[: 4 * limit + 16] if cut else text
    flat = _UNSEEN.sub(" ", _ANSI.sub(" ", text) if "\x1b" in text or "\x9b" in text else text)
    flat = disarm(flat)
    return flat[: limit - 1] + "…" if cut or len(flat) > limit else flat


def masked_line(text: str, limit: int) -> str:
    """``one_line`` of a comment or a cell: passwords, tokens and keys in it are ``***``."""
    return one_line(mask_secrets(text[: max(_MASKED_CHARS, limit)]), limit)


def disarm(text: str) -> str:
    """Text in which no chat template, fence or heading can be recognised."""
    for pattern, plain in _TEMPLATE:
        text = pattern.sub(plain, text)
    return text


def is_plain(text: str) -> bool:
    """Whether ``one_line`` would leave a text of any length as it is."""
    return _UNSEEN.search(text) is None and disarm(text) == text
