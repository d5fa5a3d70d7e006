"""The HTTP API under load: times, errors, a full queue, and whether memory grows.

    python bench/serve_load.py                       # all of it: some minutes
    python bench/serve_load.py --seconds 3 --requests 200    # a try

A server of its own process over the demo shop, with a scripted model that takes 0.2 s for
a program. 50 clients search for 60 s; 20 clients ask for as long, with a queue of 10, so
that some are refused (429) and come again when they are told; then 5,000 requests of all
kinds one after the other, with the server's memory (RSS, /proc) after each tenth.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import httpx
from serve_fuzz import bugs, demo_server

from dbrag.demo import QUESTIONS

THINK_S = 0.2
QUEUE = 10


class Measured:
    """Milliseconds of the requests that were answered, and how often each status came."""

    def __init__(self) -> None:
        self.ms: list[float] = []
        self.statuses: Counter[str] = Counter()

    def to_dict(self, seconds: float) -> dict[str, Any]:
        """p50, p95 and the longest, requests a second, statuses."""
        ms = sorted(self.ms) or [0.0]
        return {
            "answered": len(self.ms),
            "per_s": round(len(self.ms) / seconds, 1),
            "p50_ms": round(statistics.median(ms), 1),
            "p95_ms": round(ms[min(len(ms) - 1, int(0.95 * len(ms)))], 1),
            "max_ms": round(ms[-1], 1),
            "statuses": dict(self.statuses),
        }


async def client(
    http: httpx.AsyncClient, path: str, end: float, number: int, found: Measured
) -> None:
    """Ask one question after the other until ``end``; refused, wait as long as told."""
    while time.monotonic() < end:
        question = QUESTIONS[number % len(QUESTIONS)].question
        started = time.perf_counter()
        try:
            response = await http.post(path, json={"question": question})
        except httpx.HTTPError as error:
            found.statuses[type(error).__name__] += 1
            continue
        found.statuses[str(response.status_code)] += 1
        if response.status_code == 200:
            found.ms.append(1000 * (time.perf_counter() - started))
        elif response.status_code == 429:
            await asyncio.sleep(float(response.headers["retry-after"]))
        number += 1


async def many(url: str, path: str, clients: int, seconds: float) -> dict[str, Any]:
    """So many clients at once for so long."""
    found = Measured()
    limits = httpx.Limits(max_connections=clients, max_keepalive_connections=clients)
    async with httpx.AsyncClient(base_url=f"{url}/api/v1", timeout=120, limits=limits) as http:
        end = time.monotonic() + seconds
        await asyncio.gather(*(client(http, path, end, i, found) for i in range(clients)))
    return {"clients": clients, **found.to_dict(seconds)}


async def leaving(url: str) -> dict[str, Any]:
    """A client that leaves in the middle of a question: how soon its place is free, seconds."""
    async with httpx.AsyncClient(base_url=f"{url}/api/v1", timeout=60) as http:
        body = {"question": QUESTIONS[0].question, "id": "a-client-that-leaves"}
        asked = asyncio.ensure_future(http.post("/ask", json=body))
        while not (await http.get("/jobs")).json()["jobs"]:
            await asyncio.sleep(0.01)
        asked.cancel()
        started = time.perf_counter()
        while (await http.get("/jobs")).json()["jobs"]:
            await asyncio.sleep(0.01)
        state = (await http.get("/jobs/a-client-that-leaves")).json()["state"]
    return {"state": state, "free_after_s": round(time.perf_counter() - started, 3)}


def rss_mb(pid: int) -> float:
    """Memory of a process in megabytes (Linux)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


def growth(url: str, pid: int, requests: int) -> dict[str, Any]:
    """Memory after each tenth of so many requests of all kinds."""
    seen = []
    statuses: Counter[str] = Counter()
    with httpx.Client(base_url=f"{url}/api/v1", timeout=120) as http:
        kinds: list[Callable[[int], httpx.Response]] = [
            lambda i: http.post("/search", json={"question": QUESTIONS[i % 6].question}),
            lambda i: http.post("/sql", json={"sql": f"SELECT {i}, city FROM customers"}),
            lambda i: http.get("/tables", params={"offset": i % 10}),
            lambda i: http.post("/sql", json={"sql": f"SELECT nothing{i}"}),
            lambda i: http.get("/history", params={"text": str(i)}),
            lambda i: http.get(f"/nothing{i}"),
            lambda i: http.post("/ask", json={"question": QUESTIONS[1].question, "dry_run": True}),
        ]
        for i in range(requests):
            statuses[str(kinds[i % len(kinds)](i).status_code)] += 1
            if (i + 1) % max(1, requests // 10) == 0:
                seen.append(round(rss_mb(pid), 1))
    return {"requests": requests, "rss_mb": seen, "statuses": dict(statuses)}


def main() -> int:
    """Print one JSON object; 0 when nothing failed with a 5xx or a broken connection."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--requests", type=int, default=5000)
    arguments = parser.parse_args()
    told: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with demo_server(folder, "--queue", "1000") as (url, _):
            told["search"] = _run(many(url, "/search", 50, arguments.seconds))
        with demo_server(folder, "--queue", str(QUEUE), think_s=THINK_S) as (url, _):
            told["ask"] = _run(many(url, "/ask", 20, arguments.seconds))
            told["leaving"] = _run(leaving(url))
        with demo_server(folder) as (url, pid):
            told["memory"] = growth(url, pid, arguments.requests)
        told["bugs"] = len(bugs(folder / "log.jsonl"))
    print(json.dumps(told, indent=1))
    statuses = [status for one in told.values() if isinstance(one, dict)
                for status in one.get("statuses", {})]  # fmt: skip
    return int(any(not status.isdigit() or status >= "500" for status in statuses))


def _run(work: Coroutine[Any, Any, dict[str, Any]]) -> dict[str, Any]:
    return asyncio.run(work)


if __name__ == "__main__":
    sys.exit(main())
