"""A private PostgreSQL: its own data, socket directory, port and password; never the machine's."""
import os
import pwd
import secrets
import signal
from pathlib import Path

from .base import Failure, Process, run, wait_for

SETTINGS = """
listen_addresses = '127.0.0.1'
unix_socket_directories = '{socket}'
unix_socket_permissions = 0700
max_connections = 20
shared_buffers = 32MB
dynamic_shared_memory_type = posix
logging_collector = off
log_min_messages = warning
password_encryption = 'scram-sha-256'
"""


def binaries():
    found = sorted((int(p.parent.name), p) for p in Path("/usr/lib/postgresql").glob("*/bin")
                   if p.parent.name.isdigit() and (p / "postgres").exists())
    if not found or found[-1][0] < 15:
        raise Failure("PostgreSQL 15 or newer is not installed (package postgresql-15)")
    return found[-1][1]


class Postgres:
    USER = "nui"
    DATABASE = "nui"

    def __init__(self, directory, port, log_dir):
        self.dir, self.port = Path(directory), port
        self.data, self.socket = self.dir / "data", self.dir / "socket"
        self.password_file, self.passfile = self.dir / "password", self.dir / "pgpass"
        self.log = Path(log_dir) / "postgresql.log"
        self.bin = binaries()
        self.process = Process("PostgreSQL", self.dir / "pid", self.log)

    def account(self):
        """Options for subprocess: PostgreSQL refuses root, so there it is Debian's own account."""
        if os.geteuid() != 0:
            return {}
        try:
            entry = pwd.getpwnam("postgres")
        except KeyError:
            raise Failure("the account postgres of Debian's package is missing") from None
        return {"user": entry.pw_uid, "group": entry.pw_gid, "extra_groups": [], "cwd": "/"}

    def create(self):
        """initdb, once."""
        if (self.data / "PG_VERSION").exists():
            return
        account = self.account()
        for directory in (self.dir, self.socket):
            directory.mkdir(mode=0o711 if directory == self.dir else 0o700, exist_ok=True)
        if not self.password_file.exists():
            password = secrets.token_hex(24)
            with open(os.open(self.passfile, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as f:
                f.write(f"*:*:*:{self.USER}:{password}\n")
            with open(os.open(self.password_file, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600),
                      "w") as f:
                f.write(password + "\n")
        self.data.mkdir(mode=0o700, exist_ok=True)
        if account:
            for path in (self.data, self.socket, self.password_file):
                os.chown(path, account["user"], account["group"])
        run([self.bin / "initdb", "-D", self.data, "-U", self.USER, "--encoding=UTF8", "--locale=C",
             "--auth-local=reject", "--auth-host=scram-sha-256", f"--pwfile={self.password_file}"],
            "initdb", self.log, **account)
        with open(self.data / "postgresql.conf", "a") as f:
            f.write(SETTINGS.format(socket=self.socket))

    def start(self, seconds=30):
        if self.process.pid() is not None:
            return
        # After a kill -9 its children take a moment to end; until then it refuses to start anew.
        wait_for("PostgreSQL to accept connections", self.start_once, seconds, self.log, 0.2)
        if not self.sql("select 1 from pg_database where datname = 'nui'", "postgres").strip():
            self.sql(f"create database {self.DATABASE}", "postgres")

    def start_once(self):
        self.process.start([self.bin / "postgres", "-D", self.data, "-p", str(self.port)],
                           **self.account())
        wait_for("PostgreSQL", lambda: self.ready() or self.process.died(), 30, self.log)
        return not self.process.died()

    def ready(self):
        try:
            lines = (self.data / "postmaster.pid").read_text().splitlines()
            return int(lines[0]) == self.process.pid() and "ready" in lines[7]
        except (OSError, IndexError, ValueError):
            return False

    def conninfo(self, database=DATABASE):
        return (f"host=127.0.0.1 port={self.port} dbname={database} user={self.USER} "
                f"passfile={self.passfile}")

    def sql(self, text, database=DATABASE):
        return run([self.bin / "psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d",
                    self.conninfo(database), "-c", text], "psql", self.log)

    def stop(self):
        return self.process.stop(signal.SIGINT)

    def kill(self):
        """kill -9 of the postmaster; its children notice and end, then it may be started anew."""
        self.process.kill()
