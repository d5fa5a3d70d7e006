"""A program of its own: Vega-Lite in, SVG out, one JSON line each, until its input ends.

The library ends its whole process on some inputs (a character that XML has not, version
1.9); here that ends one drawing, not the server. It is run as a file and imports nothing of
dbrag.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    """Answer each line ``specification`` with ``{"svg"}`` or ``{"error"}``."""
    import vl_convert

    for line in sys.stdin:
        try:
            # No address is allowed: nothing is loaded, whatever a specification says.
            svg = vl_convert.vegalite_to_svg(json.loads(line), allowed_base_urls=[])
            reply = {"svg": svg}
        except ValueError as error:
            reply = {"error": str(error)[:500]}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
