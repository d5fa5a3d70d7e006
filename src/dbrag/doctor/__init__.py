"""``dbrag doctor``: whether this machine, the settings, the models, the sources and the index fit.

check     one finding: ok, a warning or a problem, with the next command to type
machine   Python, cores, memory, disk, the cache folder
extras    what is installed beside the core, and what is lost without it
config    the settings file and the environment, every wrong key
weights   the chat model and the encoder: their files, their runtime, their keys
sources   each source opened read-only; the rights of an account on a server
index     whether it can be read, by this dbrag and this encoder, and is fresh
examine   all of it, in this order

Nothing is built, fetched or changed, and nothing leaves the machine unless a call of a remote
model is asked for; a server that is a source is spoken to, of course.
"""

from __future__ import annotations

from dbrag.doctor.check import Check
from dbrag.doctor.examine import Wanted, examine

__all__ = ["Check", "Wanted", "examine"]
