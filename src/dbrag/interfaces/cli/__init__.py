"""The command line: thin over :func:`dbrag.connect`. ``main`` is the entry point.

app      the group, exit codes, errors as text or JSON
options  flags that every command takes, and the settings they become
output   standard output and standard error, and nothing else writes to them
tables   rows as aligned text
render   answers, candidates, status and reports for people
notices  progress, notes, and what has to be said before data leaves the machine
start    what to do next: ``dbrag`` alone
complete what shells offer for a word that is being typed
index, search, joins, ask, models, evaluate, serve, mcp, demo, doctor, completion   the commands
"""

from __future__ import annotations

from dbrag.interfaces.cli.app import main

__all__ = ["main"]
