# PostgreSQL and MariaDB for the tests, on a Debian machine, as root. Sets and exports
# DBRAG_TEST_POSTGRES and DBRAG_TEST_MYSQL; servers that already answer are used as they are.
# Needs VENV with the servers extra, and say and stop of common.sh.

# True when the server behind an SQLAlchemy URL lets us in.
answers() {
    "$VENV/bin/python" - "$1" >/dev/null 2>&1 <<'PY'
import sys
from sqlalchemy import create_engine, text

with create_engine(sys.argv[1]).connect() as connection:
    connection.execute(text("SELECT 1"))
PY
}

# Wait up to 60 s for it.
await() {
    local i
    for i in $(seq 60); do
        if answers "$1"; then return; fi
        sleep 1
    done
    stop "$2 does not answer"
}

install_package() {
    if dpkg -s "$1" >/dev/null 2>&1; then return; fi
    say "installing $1"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null
}

start_postgres() {
    local version
    export DBRAG_TEST_POSTGRES=${DBRAG_TEST_POSTGRES:-postgresql://root@127.0.0.1:5432/postgres}
    if answers "$DBRAG_TEST_POSTGRES"; then return; fi
    install_package postgresql
    version=$(ls /etc/postgresql | sort -n | tail -1)
    pg_ctlcluster --skip-systemctl-redirect "$version" main start 2>/dev/null || true
    sleep 2
    if answers "$DBRAG_TEST_POSTGRES"; then return; fi
    runuser -u postgres -- psql -qc "DO \$\$ BEGIN
        CREATE ROLE dbrag_ci SUPERUSER LOGIN PASSWORD 'dbrag_ci';
        EXCEPTION WHEN duplicate_object THEN NULL; END \$\$" || stop "cannot make a PostgreSQL role"
    export DBRAG_TEST_POSTGRES=postgresql://dbrag_ci:dbrag_ci@127.0.0.1:5432/postgres
    await "$DBRAG_TEST_POSTGRES" PostgreSQL
}

start_mariadb() {
    export DBRAG_TEST_MYSQL=${DBRAG_TEST_MYSQL:-mysql+pymysql://root@127.0.0.1:3306/mysql}
    if answers "$DBRAG_TEST_MYSQL"; then return; fi
    install_package mariadb-server
    mkdir -p /run/mysqld && chown mysql: /run/mysqld
    if ! pgrep -x mariadbd >/dev/null; then
        start-stop-daemon --start --oknodo --background --exec /usr/sbin/mariadbd
        sleep 5
    fi
    if answers "$DBRAG_TEST_MYSQL"; then return; fi
    mariadb -e "CREATE USER IF NOT EXISTS dbrag_ci@'127.0.0.1' IDENTIFIED BY 'dbrag_ci';
        CREATE USER IF NOT EXISTS dbrag_ci@localhost IDENTIFIED BY 'dbrag_ci';
        GRANT ALL ON *.* TO dbrag_ci@'127.0.0.1' WITH GRANT OPTION;
        GRANT ALL ON *.* TO dbrag_ci@localhost WITH GRANT OPTION" ||
        stop "cannot make a MariaDB user"
    export DBRAG_TEST_MYSQL=mysql+pymysql://dbrag_ci:dbrag_ci@127.0.0.1:3306/mysql
    await "$DBRAG_TEST_MYSQL" MariaDB
}
