"""A server over the demo shop with scripted models, and the SDK's own client."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from collections.abc import Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import pytest

import dbrag
from dbrag.models.testing import FunctionModel, HashEmbedder

if importlib.util.find_spec("mcp") is None:
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail("the extra is not installed: pip install '.[mcp]'", pytrace=False)
    pytest.skip("the extra is not installed: pip install '.[mcp]'", allow_module_level=True)

MODES = ("legacy", "auto")
"""The handshake of up to 2025, and requests without one."""
CITIES = "SELECT city, COUNT(*) AS n FROM customers GROUP BY city ORDER BY city"
QUESTION = "How many customers live in each city?"

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run to the end, in no case for ever."""

    async def bounded() -> T:
        async with asyncio.timeout(180):
            return await work

    return asyncio.run(bounded())


class Calls:
    """A client's calls: what came back, and the progress that was told meanwhile."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.progress: list[tuple[float, str]] = []

    async def __call__(self, tool: str, /, **arguments: Any) -> Any:
        """The result of a tool, whatever it is."""

        async def told(number: float, total: float | None, message: str | None) -> None:
            assert total is None
            self.progress.append((number, message or ""))

        result = await self.client.call_tool(tool, arguments, progress_callback=told)
        text = result.content[0].text
        assert "Traceback" not in text
        assert "pydantic" not in text
        return result

    async def good(self, tool: str, /, **arguments: Any) -> tuple[dict[str, Any], str]:
        """Structured content and text of a call that works; the client checks the schema."""
        result = await self(tool, **arguments)
        assert not result.is_error, result.content[0].text
        return result.structured_content, result.content[0].text

    async def bad(self, tool: str, /, **arguments: Any) -> str:
        """The text of a call that fails."""
        result = await self(tool, **arguments)
        assert result.is_error, result.content[0].text
        text: str = result.content[0].text
        return text


def database(*sources: Path | str, model: Any = None, **arguments: Any) -> dbrag.Database:
    """A database whose chat model writes ``CITIES``, or is ``model``."""
    chat = model or FunctionModel(lambda _: CITIES)
    return dbrag.connect(*sources, chat_model=chat, embedder=HashEmbedder(), **arguments)


@asynccontextmanager
async def connected(db: dbrag.Database, mode: str = "auto", **bounds: Any) -> Any:
    """(calls, service) of a client in this process."""
    from mcp import Client

    from dbrag.interfaces.mcp.server import build_server
    from dbrag.interfaces.mcp.service import Service

    service = Service(db, **bounds)
    try:
        async with Client(build_server(service), mode=mode) as client:
            yield Calls(client), service
    finally:
        await service.close()


async def until(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
    """Whether something comes true in time."""
    end = asyncio.get_running_loop().time() + seconds
    while not condition() and asyncio.get_running_loop().time() < end:
        await asyncio.sleep(0.02)
    return condition()
