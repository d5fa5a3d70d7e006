#!/usr/bin/env bash
# All the set-up: an environment, the packages, the weights, and a first answer.
#
#   bash scripts/setup.sh                         local model, nothing leaves this machine
#   bash scripts/setup.sh --model openai:NAME     a remote model: no big download
#   bash scripts/setup.sh --model local:/path/to/model.gguf
#   bash scripts/setup.sh --plan                  only say what would be done
set -euo pipefail
source "$(dirname "$0")/common.sh"

plan_only=
while [ $# -gt 0 ]; do
    case $1 in
        --model)
            [ $# -ge 2 ] || stop "--model needs a value, such as openai:NAME"
            export DBRAG_MODEL=$2
            shift 2
            ;;
        --plan)
            plan_only=1
            shift
            ;;
        -h | --help)
            sed -n '2,7s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *) stop "unknown argument '$1' (see --help)" ;;
    esac
done

extra=local,servers
case ${DBRAG_MODEL:-local:} in
    local:* | *.gguf) ;;
    *) extra=remote,servers ;;
esac

python=$(find_python)
say "dbrag: set-up in $PWD"
say "packages: into $VENV, from PyPI; about 250 MB to download, 840 MB on disk"
say "weights: into dbrag's cache (DBRAG_CACHE), unless they are there:"
PYTHONPATH=src "$python" - >&2 <<'PY'
import os
import shutil
from pathlib import Path

from dbrag.models import weights
from dbrag.settings import Settings

model = os.environ.get("DBRAG_MODEL") or Settings().model
for name in (model, Settings().encoder):
    if name.startswith("local:") and not weights.is_path(name):
        print("  " + weights.describe(name).replace("\n", "\n  "))
free = shutil.disk_usage(Path.cwd()).free / 1e9
print(f"this machine: {free:.1f} GB of disk free here", end="")
try:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES") / 1e9
    print(f", {memory:.1f} GB of memory unused")
except (ValueError, OSError, AttributeError):
    print()
PY
say "another model: bash scripts/setup.sh --model PROVIDER:NAME (press Ctrl-C now to choose)"
[ -z "$plan_only" ] || exit 0
if [ -t 0 ]; then sleep 5; fi

ensure_venv
install_extras "$extra"
"$VENV/bin/dbrag" models pull
"$VENV/bin/dbrag" demo --ask
say ""
say "Next: source $VENV/bin/activate, then: dbrag demo; dbrag ask -s YOUR.db \"…\""
