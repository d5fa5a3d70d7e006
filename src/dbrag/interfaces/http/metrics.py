"""Counters for Prometheus: how many, how long, how full; no label that a client can choose."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

if TYPE_CHECKING:
    from dbrag.interfaces.http.jobs import Job, Lane
    from dbrag.types import Answer

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "POST", "DELETE", "HEAD", "OPTIONS"})
_REQUEST_S = (0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)


class Metrics:
    """The counters of one server, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter(
            "dbrag_http_requests",
            "Responses.",
            ("route", "method", "status"),
            registry=self.registry,
        )
        self._seconds = Histogram(
            "dbrag_http_request_seconds",
            "From the head of a request to the end of its response.",
            ("route",),
            buckets=_REQUEST_S,
            registry=self.registry,
        )
        self._jobs = Counter(
            "dbrag_jobs", "Jobs that ended.", ("kind", "state"), registry=self.registry
        )
        self._waited = Histogram(
            "dbrag_job_wait_seconds",
            "In the queue.",
            ("lane",),
            buckets=_REQUEST_S,
            registry=self.registry,
        )
        self._ran = Histogram(
            "dbrag_job_seconds", "Of work.", ("kind",), buckets=_REQUEST_S, registry=self.registry
        )
        self._answers = Counter("dbrag_answers", "By status.", ("status",), registry=self.registry)
        self._stages = Counter(
            "dbrag_answer_stage_seconds",
            "Of answers, by stage.",
            ("stage",),
            registry=self.registry,
        )
        self._tokens = Counter(
            "dbrag_model_tokens", "Of the chat model.", ("kind",), registry=self.registry
        )
        self._feedback = Counter(
            "dbrag_feedback", "Verdicts of users.", ("verdict",), registry=self.registry
        )

    def watch(
        self,
        lanes: dict[str, Lane],
        ready: Callable[[], bool],
        results: Callable[[], tuple[int, int]],
    ) -> None:
        """Show the state of the lanes, whether the index is ready, and what results take."""
        running = Gauge("dbrag_jobs_running", "Jobs.", ("lane",), registry=self.registry)
        waiting = Gauge("dbrag_jobs_waiting", "Jobs.", ("lane",), registry=self.registry)
        for name, lane in lanes.items():
            running.labels(name).set_function(partial(_length, lane, "running"))
            waiting.labels(name).set_function(partial(_length, lane, "waiting"))
        Gauge("dbrag_ready", "1 when the index is open.", registry=self.registry).set_function(
            lambda: float(ready())
        )
        Gauge("dbrag_results_kept", "Results.", registry=self.registry).set_function(
            lambda: results()[0]
        )
        Gauge("dbrag_results_bytes", "Estimated.", registry=self.registry).set_function(
            lambda: results()[1]
        )

    def response(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a response; 499 is a client that left."""
        method = method if method in _METHODS else "other"
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def job(self, job: Job) -> None:
        """Count a job that ended."""
        self._jobs.labels(job.kind, job.state).inc()
        self._waited.labels(job.lane).observe(job.waited_s)
        if job.started is not None:
            self._ran.labels(job.kind).observe(job.ran_s)

    def answer(self, answer: Answer) -> None:
        """Count an answer, its seconds and tokens."""
        self._answers.labels(answer.status).inc()
        for stage in ("retrieve", "reason", "execute"):
            self._stages.labels(stage).inc(max(0.0, answer.seconds.get(stage, 0.0)))
        for kind in ("prompt", "cached", "completion"):
            self._tokens.labels(kind).inc(answer.tokens.get(kind, 0))

    def feedback(self, verdict: str) -> None:
        """Count a verdict."""
        self._feedback.labels(verdict).inc()

    def text(self) -> bytes:
        """All of them in Prometheus's text format."""
        return generate_latest(self.registry)


def _length(lane: Lane, of: str) -> float:
    return len(getattr(lane, of))
