# Shared by setup.sh, test.sh and .ci/run. Sets VENV; changes to the root of the checkout.

cd "$(dirname "${BASH_SOURCE[0]}")/.."
VENV=${VENV:-.venv}

say() { printf '%s\n' "$*" >&2; }
stop() {
    say "error: $*"
    exit 1
}

# The first Python of at least 3.11 on this machine.
find_python() {
    local name
    for name in "${PYTHON:-python3}" python3.14 python3.13 python3.12 python3.11 python; do
        if "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
    stop "Python 3.11 or later is needed; name it with PYTHON=/path/to/python3"
}

# An environment in $VENV, made unless it is there.
ensure_venv() {
    if [ -x "$VENV/bin/python" ] && "$VENV/bin/python" -m pip --version >/dev/null 2>&1; then
        return
    fi
    local python
    python=$(find_python)
    say "making $VENV with $python"
    "$python" -m venv "$VENV" >&2 ||
        stop "cannot make $VENV (on Debian and Ubuntu: apt install python3-venv)"
}

# Install this checkout with the extras named, for example: install_extras local,dev
install_extras() {
    say "installing dbrag[$1] into $VENV"
    "$VENV/bin/python" -m pip install --quiet --disable-pip-version-check -e ".[$1]" >&2 ||
        stop "pip could not install dbrag[$1]"
}
