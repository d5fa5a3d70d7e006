#!/usr/bin/env bash
# The one check command: format, lint, types, generated pages, the site, tests.
#
#   bash scripts/test.sh                      all of it
#   bash scripts/test.sh -m "not model"       without the real local model
#   bash scripts/test.sh tests/index -k rows  arguments go to pytest
set -uo pipefail
source "$(dirname "$0")/common.sh"

ensure_venv
install_extras local,remote,servers,serve,mcp,docs,dev

failed=()
check() {
    local name=$1
    shift
    say "== $name"
    "$@" || failed+=("$name")
}
bin=$VENV/bin
check format "$bin/ruff" format --check .
check lint "$bin/ruff" check .
check types "$bin/mypy"
check pages "$bin/python" scripts/generate_cli_docs.py --check
check site "$bin/python" scripts/check_site.py
if [ $# -gt 0 ]; then
    check tests "$bin/python" -m pytest "$@"
else
    # The local model wants the cores for itself.
    check tests "$bin/python" -m pytest -n 2 --dist loadfile -m "not model"
    check "tests with the model" "$bin/python" -m pytest -m model
fi

if [ ${#failed[@]} -gt 0 ]; then
    say "failed: ${failed[*]}"
    exit 1
fi
say "all checks passed"
