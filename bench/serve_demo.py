"""``dbrag`` with a scripted model and an encoder without weights: for checks of the server.

    python bench/serve_demo.py [--think S] serve -s demo/shop.db --port 0 --json

The model knows the six questions of the demo shop (``dbrag demo``); to others it answers
with a count of customers. It takes ``S`` seconds for each program, and stops when cancelled.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import dbrag
from dbrag.cancel import check
from dbrag.database import connect
from dbrag.demo import QUESTIONS
from dbrag.models.base import Prompt
from dbrag.models.testing import FunctionModel, HashEmbedder
from dbrag.settings import Settings


def answering(think_s: float) -> Callable[[Prompt], str]:
    """What the model does with a prompt."""

    def answer(prompt: Prompt) -> str:
        end = time.monotonic() + think_s
        while time.monotonic() < end:
            check()
            time.sleep(0.01)
        for one in QUESTIONS:
            if one.question in prompt.request:
                return one.sql
        return "SELECT COUNT(*) AS n FROM customers"

    return answer


def main(arguments: list[str]) -> int:
    """Run one command line; its exit code."""
    think_s = 0.0
    if arguments[:1] == ["--think"]:
        think_s, arguments = float(arguments[1]), arguments[2:]
    model = FunctionModel(answering(think_s))

    def with_fakes(*, settings: Settings) -> Any:
        return connect(settings=settings, chat_model=model, embedder=HashEmbedder())

    vars(dbrag)["connect"] = with_fakes
    from dbrag.interfaces.cli import main as cli

    return cli(arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
