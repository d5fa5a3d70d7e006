"""What a user sees when the server dies: in the middle of a question, and of indexing.

    python bench/server_killed.py [postgres] [mariadb]   # as root, with both installed

Starts a PostgreSQL and a MariaDB of its own in a temporary folder, fills each, then kills
all its processes (SIGKILL) while ``dbrag sql`` computes and while ``dbrag index`` reads;
prints exit code, output and error of dbrag, starts the server again and runs the same command.
"""

from __future__ import annotations

import glob
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from sqlalchemy import create_engine, text

ROWS = 2_000_000
TABLES = 120


class Server:
    """A server in a folder, run by an unprivileged user."""

    user = ""
    url = ""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None
        folder.mkdir()
        account = pwd.getpwnam(self.user)
        os.chown(folder, account.pw_uid, account.pw_gid)

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> None:
        self.process = subprocess.Popen(
            ["runuser", "-u", self.user, "--", *self.command()],
            stdout=subprocess.DEVNULL,
            stderr=(self.folder / "log").open("ab"),
            start_new_session=True,
        )
        for _ in range(120):
            try:
                with create_engine(self.url).connect() as connection:
                    connection.execute(text("SELECT 1"))
                return
            except Exception:
                time.sleep(0.5)
        sys.exit(f"{self.url} does not start: {(self.folder / 'log').read_text()[-2000:]}")

    def kill(self) -> None:
        """SIGKILL for every process that works in the folder."""
        subprocess.run(["pkill", "-9", "-f", str(self.folder)], check=False)
        # PostgreSQL's own processes rename themselves.
        for path in glob.glob("/proc/[0-9]*/cwd"):
            try:
                if os.readlink(path).startswith(str(self.folder)):
                    os.kill(int(path.split("/")[2]), signal.SIGKILL)
            except OSError:
                continue
        if self.process is not None:
            self.process.wait()
        for leftover in ("data/postmaster.pid", ".s.PGSQL.54329.lock", ".s.PGSQL.54329", "pid"):
            (self.folder / leftover).unlink(missing_ok=True)

    def fill(self) -> None:
        raise NotImplementedError

    def execute(self, *statements: str) -> None:
        with create_engine(self.url).connect() as connection:
            for statement in statements:
                connection.exec_driver_sql(statement)
            connection.commit()


class Postgres(Server):
    user = "postgres"
    url = "postgresql://postgres@127.0.0.1:54329/postgres"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.bin = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        subprocess.run(
            ["runuser", "-u", self.user, "--", f"{self.bin}/initdb", "-A", "trust", "-E", "UTF8",
             "-D", str(folder / "data")],
            check=True, stdout=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip

    def command(self) -> list[str]:
        return [f"{self.bin}/postgres", "-D", str(self.folder / "data"), "-p", "54329",
                "-k", str(self.folder)]  # fmt: skip

    def fill(self) -> None:
        self.execute(
            f"CREATE TABLE big AS SELECT i, md5(i::text) t FROM generate_series(1, {ROWS}) i",
            *(
                f"CREATE TABLE table_{n} AS SELECT i, md5(i::text) t "
                "FROM generate_series(1, 4000) i"
                for n in range(TABLES)
            ),
        )


class MariaDb(Server):
    user = "mysql"
    url = "mysql+pymysql://dbrag@127.0.0.1:33069/shop"

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        subprocess.run(
            ["mariadb-install-db", f"--datadir={folder / 'data'}", "--user=mysql",
             "--auth-root-authentication-method=normal"],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        (folder / "init.sql").write_text(
            # One statement a line.
            "CREATE DATABASE IF NOT EXISTS shop;\n"
            "DELETE FROM mysql.global_priv WHERE User = '';\n"
            "FLUSH PRIVILEGES;\n"
            "CREATE USER IF NOT EXISTS dbrag@'127.0.0.1';\n"
            "GRANT ALL ON *.* TO dbrag@'127.0.0.1';\n"
            "CREATE USER IF NOT EXISTS dbrag@localhost;\n"
            "GRANT ALL ON *.* TO dbrag@localhost;\n"
        )
        os.chmod(folder / "init.sql", 0o644)

    def command(self) -> list[str]:
        return ["/usr/sbin/mariadbd", "--no-defaults", f"--datadir={self.folder / 'data'}",
                "--port=33069", "--bind-address=127.0.0.1", f"--socket={self.folder}/socket",
                f"--pid-file={self.folder}/pid", f"--init-file={self.folder}/init.sql"]  # fmt: skip

    def fill(self) -> None:
        self.execute(
            f"CREATE TABLE big AS SELECT seq AS i, md5(seq) AS t FROM seq_1_to_{ROWS}",
            *(
                f"CREATE TABLE table_{n} AS SELECT seq AS i, md5(seq) AS t FROM seq_1_to_4000"
                for n in range(TABLES)
            ),
        )


def dbrag(server: Server, index: Path, *arguments: str) -> list[str]:
    command, *rest = arguments
    return [sys.executable, "-m", "dbrag.interfaces.cli", command, *rest,
            "-s", f"shop={server.url}", "--index", str(index)]  # fmt: skip


def trial(server: Server, index: Path, after_s: float, *arguments: str) -> None:
    """Run a command, kill the server in the middle, run it again."""
    command = dbrag(server, index, *arguments)
    print(f"\n$ dbrag {' '.join(arguments)}   # server killed after {after_s:g} s")
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(after_s)
    running = process.poll() is None
    server.kill()
    killed = time.monotonic()
    out, err = process.communicate(timeout=120)
    waited = time.monotonic() - killed
    print(f"still running then: {running}; ended {waited:.1f} s later, exit {process.returncode}")
    print("\n".join((out + err).strip().splitlines()[-8:]))
    server.start()
    again = subprocess.run(command, capture_output=True, text=True, check=False)
    print(f"again, after its restart: exit {again.returncode}")
    print("\n".join((again.stdout + again.stderr).strip().splitlines()[-6:]))


def main() -> None:
    root = Path(tempfile.mkdtemp(prefix="dbrag-killed-"))
    root.chmod(0o755)
    slow = "SELECT COUNT(DISTINCT a.t || b.t) FROM big a JOIN big b ON a.i % 1000 = b.i % 1000"
    slow_mysql = slow.replace("a.t || b.t", "CONCAT(a.t, b.t)")
    for kind, statement in ((Postgres, slow), (MariaDb, slow_mysql)):
        if kind.__name__.lower() not in (sys.argv[1:] or ["postgres", "mariadb"]):
            continue
        server = kind(root / kind.__name__.lower())
        try:
            server.start()
            server.fill()
            print(f"\n== {kind.__name__}: {TABLES + 1} tables")
            index = root / f"index-{kind.__name__}"
            trial(server, index, 6, "sql", statement)
            trial(server, index, 8, "index")
        finally:
            server.kill()
    shutil.rmtree(root, ignore_errors=True)


if __name__ == "__main__":
    main()
