"""``dbrag serve``: an HTTP API over :class:`dbrag.Database`, without logic of its own.

options    what can be set, and which combinations are refused at start
server     uvicorn: start and graceful stop; protocol: its limits on slow and damaged heads
app        the application: middleware outside, routes inside, static files of ``page/`` at /
service    what all routes share: the database, jobs, results, history, metrics
jobs       bounded lanes of work in threads; a job is cancelled when its client leaves
access     who may ask: Host, Origin, token, rate; sizes and times of requests; headers
errors     every failure as ``{"error": {code, message, hint}}`` with its status
bodies, answers, shapes   requests and responses as OpenAPI describes them
routes_*   the endpoints under /api/v1
stream     answers as server-sent events
results    finished answers, kept in memory for download; downloads CSV, Parquet, JSON
history    what was asked: in memory, or in a file that the user names
logs, metrics   JSON lines without questions or values; Prometheus

Only ``options``, ``jobs``, ``results``, ``history`` and ``logs`` import without the extra
``serve``.
"""
