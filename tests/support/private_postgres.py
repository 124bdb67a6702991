"""A private Postgres server for one test: on a Unix socket, in a folder of its own that is removed afterwards."""
import glob
import hashlib
import os
import shutil
import subprocess
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def _bin(name):
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}")) or [shutil.which(name)]
    return found[-1]


def migrations():
    """Applies and lists the migrations like the daemon (src/store/postgres/migrations.cpp), which creates the list first."""
    texts = ["CREATE TABLE schema_migration (number integer PRIMARY KEY CHECK (number > 0), name text NOT NULL CHECK (octet_length(name) <= 256),"
             " sha256 text NOT NULL CHECK (sha256 ~ '^[0-9a-f]{64}$'), applied_at timestamptz NOT NULL DEFAULT now());"]
    for path in sorted(glob.glob(os.path.join(ROOT, "migrations", "*.sql"))):
        with open(path, "rb") as file:
            text = file.read()
        name = os.path.basename(path)
        texts.append(text.decode())
        texts.append(f"INSERT INTO schema_migration (number, name, sha256) VALUES ({int(name[:4])}, '{name}', '{hashlib.sha256(text).hexdigest()}');")
    return "\n".join(texts)


class PrivatePostgres:
    """The server: after `start`, `uri(database)` connects to a database; each one is made from migrations/*.sql."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="muniment-pg-", dir="/tmp")
        self._data = os.path.join(self.folder, "data")
        self._as_user = []
        if os.geteuid() == 0:      # Postgres refuses to run as root
            shutil.chown(self.folder, "postgres", "postgres")
            self._as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]

    def _run(self, *command):
        done = subprocess.run([*self._as_user, *command], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]}: {done.stdout.decode(errors='replace')}")

    def start(self):
        self._run(_bin("initdb"), "-D", self._data, "-U", "muniment", "-A", "trust", "-N", "-E", "UTF8", "--locale=C.UTF-8")
        with open(os.path.join(self._data, "postgresql.conf"), "a", encoding="utf-8") as config:
            config.write(f"listen_addresses = ''\nunix_socket_directories = '{self.folder}'\nfsync = off\n"
                         "max_connections = 40\nshared_buffers = 64MB\n")
        self._run(_bin("pg_ctl"), "-D", self._data, "-w", "-l", os.path.join(self.folder, "log"), "start")
        return self

    def standby(self, name):
        """Starts a replica as the standby `name`; the caller stops it."""
        made = PrivatePostgres.__new__(PrivatePostgres)
        made.folder, made._as_user = tempfile.mkdtemp(prefix="muniment-pg-", dir="/tmp"), self._as_user
        made._data = os.path.join(made.folder, "data")
        if self._as_user:
            shutil.chown(made.folder, "postgres", "postgres")
        made._run(_bin("pg_basebackup"), "-D", made._data, "-R", "-c", "fast", "-d", f"host={self.folder} user=muniment application_name={name}")
        with open(os.path.join(made._data, "postgresql.conf"), "a", encoding="utf-8") as config:
            config.write(f"unix_socket_directories = '{made.folder}'\n")
        made._run(_bin("pg_ctl"), "-D", made._data, "-w", "-l", os.path.join(made.folder, "log"), "start")
        return made

    @classmethod
    def for_class(cls, case):
        """Starts a server for all tests of a unittest class, and stops it at the end of the class."""
        server = cls().start()
        case.addClassCleanup(server.stop)
        return server

    def stop(self):
        if not os.path.isdir(self.folder):
            return
        try:
            self._run(_bin("pg_ctl"), "-D", self._data, "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def uri(self, database="postgres"):
        return f"postgresql:///{database}?host={self.folder}&user=muniment"

    def sql(self, text, database="postgres"):
        """Runs SQL as the superuser. Returns the output."""
        done = subprocess.run(["psql", "-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", self.uri(database), "-f", "-"],
                              input=text.encode(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.decode(errors="replace"))
        return done.stdout.decode().strip()

    def create(self, database):
        self.sql(f'CREATE DATABASE "{database}"')
        self.sql(migrations(), database)
        return self.uri(database)

    def reset(self, database):
        """Empties the database by recreating its schema, because dropping a database waits for a checkpoint."""
        self.sql("SET client_min_messages = error; DROP SCHEMA IF EXISTS report CASCADE; DROP SCHEMA public CASCADE; CREATE SCHEMA public;\n" + migrations(), database)
