"""Run a real PostgreSQL server for the tests, with Debian's programs and without root privileges."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import psycopg

from resume_hooks.parts.team.connect import read_schema_sql

Connection = psycopg.Connection[tuple[Any, ...]]
"""A connection of a test to the database. The engine's code does not filter its results."""

LOGIN_ROLES = ("admin", "alice", "bob", "mallory")
"""Roles that may log in. Mallory is a hostile member of the team."""

STRANGER_ROLE = "stranger"
"""A role that may log in to the server but is not a member of the team."""


def find_postgres_folder() -> Path | None:
    """Return the folder with PostgreSQL's programs, or None. Debian installs them outside ``PATH``."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    on_path = shutil.which("initdb")
    return found[-1].parent if found else Path(on_path).parent if on_path else None


# The server's folder is in memory if 1 GiB is free there, because a disk is much slower.
RAM_DISK_FOLDER = "/dev/shm"
MIN_FREE_BYTES = 1 << 30


class Server:
    """A running PostgreSQL server with a template database for teams."""

    def __init__(self, bin_folder: Path) -> None:
        has_memory = (
            os.access(RAM_DISK_FOLDER, os.W_OK)
            and shutil.disk_usage(RAM_DISK_FOLDER).free > MIN_FREE_BYTES
        )
        self.folder = Path(
            tempfile.mkdtemp(prefix="rh-pg-", dir=RAM_DISK_FOLDER if has_memory else "/tmp")
        )
        self.bin = bin_folder
        self._number = 0
        self._as: list[str] = []
        if os.getuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
            self._as = [
                "setpriv",
                f"--reuid={nobody.pw_uid}",
                f"--regid={nobody.pw_gid}",
                "--clear-groups",
            ]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._run_program(
            "initdb",
            "-D",
            self._data_folder,
            "-U",
            "postgres",
            "-A",
            "trust",
            "-N",
            "-E",
            "UTF8",
            "--locale=C",
        )
        self._create_certificate()
        self.start()
        with self.connect_as_superuser("postgres") as db:
            for name in (*LOGIN_ROLES, STRANGER_ROLE):
                db.execute(f"create role {name} login".encode())
            db.execute("alter role admin createrole")
            db.execute("create database template_team owner admin")
        with psycopg.connect(
            host=str(self.folder), port=self.port, user="admin", dbname="template_team"
        ) as db:
            db.execute(read_schema_sql().encode())
        with self.connect_as_superuser("postgres") as db:
            db.execute("grant rh_member to alice, bob, mallory")

    @property
    def _data_folder(self) -> str:
        return str(self.folder / "data")

    def start(self) -> None:
        """Start the server and wait until it accepts connections."""
        settings = {
            "unix_socket_directories": str(self.folder), "listen_addresses": "127.0.0.1", "fsync": "off", "ssl": "on",
            "shared_buffers": "32MB", "log_min_messages": "fatal", "max_connections": "60",
        }  # fmt: skip
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        self.process = subprocess.Popen(
            [*self._as, self.bin / "postgres", "-D", self._data_folder, "-p", str(self.port), *options],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/",
        )  # fmt: skip
        until = time.monotonic() + 30
        while True:
            try:
                self.connect_as_superuser("postgres").close()
            except psycopg.OperationalError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.05)
            else:
                return

    def stop(self) -> None:
        """Stop the server immediately, as in a crash. Committed data is not lost."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(30)

    def close(self) -> None:
        """Stop the server and remove its folder."""
        self.stop()
        shutil.rmtree(self.folder)

    def connect_as_superuser(self, database: str) -> Connection:
        """Return a connection as superuser, in autocommit mode."""
        return psycopg.connect(
            host=str(self.folder), port=self.port, user="postgres", dbname=database, autocommit=True
        )

    def create_database(self) -> str:
        """Create a database for a team and return its name."""
        self._number += 1
        name = f"team_{os.getpid()}_{self._number}"
        with self.connect_as_superuser("postgres") as db:
            db.execute(f"create database {name} template template_team".encode())
        return name

    def drop_database(self, database: str) -> None:
        """Drop a database, even if there are connections to it."""
        with self.connect_as_superuser("postgres") as db:
            db.execute(f"drop database {database} with (force)".encode())

    def write_service_file(self, database: str, file: Path, **parameters: str) -> None:
        """Write a libpq service file with one service for each role. Each service has the name of its role."""
        own = {"host": str(self.folder), "port": str(self.port), "dbname": database, **parameters}
        lines = "\n".join(f"{key}={value}" for key, value in own.items())
        file.write_text(
            "".join(
                f"[{name}]\n{lines}\nuser={name}\n"
                for name in (*LOGIN_ROLES, STRANGER_ROLE, "postgres")
            )
        )

    def dump_database(self, database: str) -> bytes:
        """Return the whole content of a database as text."""
        where = ["-h", str(self.folder), "-p", str(self.port), "-U", "postgres", database]
        return subprocess.run(
            [self.bin / "pg_dump", *where], capture_output=True, check=True, cwd="/"
        ).stdout

    def restore_database(self, database: str, dump: bytes) -> None:
        """Run the SQL of a dump in an empty database."""
        where = ["-h", str(self.folder), "-p", str(self.port), "-U", "postgres", "-qd", database]
        subprocess.run(
            [self.bin / "psql", "-v", "ON_ERROR_STOP=1", *where],
            input=dump,
            capture_output=True,
            check=True,
            cwd="/",
        )

    def _run_program(self, program: str, *arguments: str) -> None:
        subprocess.run(
            [*self._as, self.bin / program, *arguments], check=True, capture_output=True, cwd="/"
        )

    def _create_certificate(self) -> None:
        """Create a self-signed certificate for the host name ``team.test``.

        Clients that trust the server use the certificate file ``root.crt``.
        """
        data, key, certificate = (
            Path(self._data_folder),
            str(self.folder / "server.key"),
            str(self.folder / "root.crt"),
        )
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key,
             "-out", certificate,
             "-subj", "/CN=team.test", "-addext", "subjectAltName=DNS:team.test"],
            check=True, capture_output=True,
        )  # fmt: skip
        shutil.copy(key, data / "server.key")
        shutil.copy(certificate, data / "server.crt")
        owner = data.stat()
        for name in ("server.key", "server.crt"):
            os.chown(data / name, owner.st_uid, owner.st_gid)
            (data / name).chmod(0o600)
