"""``python -m dbrag.interfaces.cli``: the same as ``dbrag``."""

from __future__ import annotations

import sys

from dbrag.interfaces.cli.app import main

sys.exit(main())
