"""A client that leaves in the very moment something was sent to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from dbrag.interfaces.http.front import Front
from dbrag.interfaces.http.metrics import Metrics
from dbrag.interfaces.http.options import ServeOptions
from dbrag.interfaces.http.stream import Pieces


@pytest.mark.parametrize("later", range(8))
def test_it_is_noticed_in_whichever_turn_of_the_loop(later: int) -> None:
    """``later``: turns of the event loop into the sending, which takes four, or after it."""
    asyncio.run(asyncio.wait_for(_exchange(later), 20))


async def _exchange(later: int) -> None:
    sending = asyncio.Event()
    ended = asyncio.Event()

    async def pieces() -> AsyncIterator[bytes]:
        yield b"a piece"
        await asyncio.Event().wait()  # the work, without end

    async def send(message: Any) -> None:
        await asyncio.sleep(0)
        if message["type"] == "http.response.body":
            sending.set()
            for _ in range(4):
                await asyncio.sleep(0)

    async def receive() -> dict[str, Any]:
        await sending.wait()
        for _ in range(later):
            await asyncio.sleep(0)
        return {"type": "http.disconnect"}

    front = Front(
        Pieces(pieces(), media_type="text/plain", at_end=ended.set), ServeOptions(), Metrics()
    )
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/api/v1/health",
        "headers": [(b"host", b"localhost")],
        "client": ("127.0.0.1", 1),
    }
    await front(scope, receive, send)
    assert ended.is_set()
