"""Connect to the team's database; libpq's service file defines the server and the user.

Our settings contain none of that.

This module alone imports ``psycopg``, on the first connection. Network connections require
``verify-full``. ``rows`` parses everything that the server sends.
"""

from __future__ import annotations

import contextlib
import functools
import ipaddress
import logging
import os
import re
import shlex
import sys
import time
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.parts.team.rows import Database, limit_memory, parse_whole_number
from resume_hooks.system.plugin_files import CHECKOUT
from resume_hooks.system.text import plain_line
from resume_hooks.untrusted_folders import is_outside_projects, project_roots

if TYPE_CHECKING:
    import psycopg

DRIVER = "psycopg"  # the Python package

SCHEMA_VERSION = 5
"""The schema version that this release reads and writes.

A SQL file upgrades each version to the next.
"""

OLDEST_SERVER = 150_000
"""The oldest supported server, as libpq numbers versions."""

NO_RIGHT, OTHER_ROLE, NO_SUCH_OBJECT, OTHER_GENERATION, FORGOTTEN = (
    "42501",
    "RH403",
    "RH404",
    "RH409",
    "RH410",
)
SCRUBBED, EXPIRED = "RH411", "RH412"
"""The SQLSTATEs with which the database's functions refuse a request.

They mean, in this order: missing rights, a role that took over a member's name, no such object,
another live generation, forgotten, scrubbed on another machine, ended before the retention period.
"""

_SETUP_REMEDIES = {
    "certificate verify failed": "Name the provider's own root certificate in the service of ~/.pg_service.conf: "
    "sslrootcert=/path/to/root.pem",
    "definition of service": "Describe it in ~/.pg_service.conf: [NAME], host=, dbname=, user=",
    "password": "Put it into ~/.pgpass, readable only by you: HOST:PORT:DBNAME:USER:PASSWORD",
    "startup parameter": "The server is behind pgbouncer, whose settings need ignore_startup_parameters = options",
}
"""Remedies for problems in a team's setup, by words in the messages of libpq, the server or pgbouncer."""

_SERVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_CONNECT_SECONDS = 3
_STATEMENT_SECONDS = 30
_LIMIT_OPTIONS = f"-c statement_timeout={_STATEMENT_SECONDS}s -c lock_timeout=2s"
_ANSWER_SECONDS = 60.0
"""Seconds to wait for an answer, because a server may ignore the limit on a statement."""

READ_SECONDS = 60.0
"""Seconds to wait for all answers of a search or lineage, because the server decides their number."""

_MOST_SHOWN = 300
"""The maximum characters of a server error that are shown."""

_parse_version = parse_whole_number(0, 1_000_000)


class TeamFailed(ResumeHooksError, code="team-failed"):
    """The team's database is unreachable or refused a request.

    ``state`` is the SQLSTATE, or ``""`` if there is none.
    """

    def __init__(self, message: str, remedy: str = "", state: str = "") -> None:
        super().__init__(message, remedy)
        self.state = state


class DriverMissing(TeamFailed):
    """The database driver is not installed in this Python."""


def driver_remedy() -> str:
    """Return how to add the driver to the running Python; the plugin's own venv only supports its own installer."""
    if os.path.isfile(os.path.join(sys.prefix, "requirements.lock")):
        return (
            f"Install it: sh {shlex.quote(os.path.join(CHECKOUT, 'hooks', 'engine'))} "
            "--install --team"
        )
    return f"Install it: {shlex.quote(sys.executable)} -m pip install '{DRIVER}[binary]>=3.2'"


def validate_service(text: str) -> str:
    """Return the validated name of a libpq service.

    Raise UsageError for anything else, especially a connection string with a password.
    """
    if not _SERVICE.fullmatch(text):
        raise UsageError(
            "A team is named by a service of libpq, never by an address or a password",
            (
                "Describe it in ~/.pg_service.conf ([NAME], host=, dbname=, user=), the "
                "password in ~/.pgpass."
            ),
        )
    return text


@contextlib.contextmanager
def connect_to_team(service: str, *, any_version: bool = False) -> Iterator[Database]:
    """Open a connection in autocommit mode for the duration of the block.

    Errors of the server inside the block become TeamFailed.

    An unsupported schema version also raises TeamFailed, unless ``any_form`` is true.
    """
    driver = _import_driver()
    with translate_errors():
        with limit_memory(), _hide_project_variables():
            connection = _bounded_connection_class(driver).connect(
                **_connection_options(service), autocommit=True
            )
        with connection:
            if connection.info.server_version < OLDEST_SERVER:
                raise TeamFailed(
                    "The server is older than PostgreSQL 15",
                    "Use a newer server for the team's sessions.",
                )
            db = connection.asked_by = Database(connection)
            if not any_version:
                _check_schema_version(db)
            yield db


@contextlib.contextmanager
def stop_when_late(db: Database) -> Iterator[None]:
    """End the block and the connection quietly if the time for all answers ran out; earlier answers stay valid."""
    try:
        yield
    except TeamFailed:
        if not db.is_late():
            raise
        db.close()


def _check_schema_version(db: Database) -> None:
    version = read_schema_version(db)
    if version < SCHEMA_VERSION:
        message = (
            f"The team's database has the older schema version {version}, and this "
            f"resume-hooks needs {SCHEMA_VERSION}"
        )
        raise TeamFailed(message, "An administrator runs: resume-hooks team init SERVICE --upgrade")
    least = db.value("select least::text from team.about", (), _parse_version)
    if least is None or least > SCHEMA_VERSION:
        message = (
            f"The team's database has the newer schema version {version}, and this "
            f"resume-hooks supports {SCHEMA_VERSION}"
        )
        raise TeamFailed(message, "Update resume-hooks.")


@functools.cache
def _bounded_connection_class(driver: Any) -> Any:
    """Return a connection class of the driver that limits the time and memory of each answer.

    ``asked_by`` is the Database whose limit for all answers also applies.
    """

    class BoundedConnection(driver.Connection):  # type: ignore[misc]
        asked_by: Database | None = None

        def wait(self, gen: Any, *arguments: Any, **keywords: Any) -> Any:
            end = time.monotonic() + _ANSWER_SECONDS
            if self.asked_by is not None:
                end = min(end, self.asked_by.end)
            with limit_memory():
                return super().wait(_run_until(gen, end), *arguments, **keywords)

    return BoundedConnection


def _run_until(steps: Any, end: float) -> Any:
    """Run the steps of an answer until the deadline. Raise TeamFailed after it."""
    try:
        event = next(steps)
        while True:
            ready = yield event
            if time.monotonic() > end:
                raise _timeout_error()
            event = steps.send(ready)
    except StopIteration as ended:
        return ended.value


def _timeout_error() -> TeamFailed:
    return TeamFailed("The team's database does not answer", "Check the network and the server.")


@contextlib.asynccontextmanager
async def connect_async(service: str) -> AsyncIterator[psycopg.AsyncConnection[tuple[Any, ...]]]:
    """Open an asyncio connection for at most the time limit of one answer."""
    import asyncio  # 30 ms, only needed for asyncio

    driver = _import_driver()
    with translate_errors():
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                async with await driver.AsyncConnection.connect(
                    **_connection_options(service), autocommit=True
                ) as connection:
                    yield connection
        except TimeoutError as error:
            raise _timeout_error() from error


@contextlib.contextmanager
def translate_errors() -> Iterator[None]:
    """Turn errors of the server and failed connections inside the block into TeamFailed."""
    driver = _import_driver()
    try:
        yield
    except driver.Error as error:
        raise _translate_error(error) from error
    except MemoryError as error:
        raise TeamFailed(
            "The answer of the team's database is larger than any valid one", "Who runs it?"
        ) from error


def read_schema_version(db: Database) -> int:
    """Return the schema version of the database. Raise TeamFailed if it has no team schema or we have no access."""
    return db.value("select version::text from team.about", (), _parse_version) or 0


def schema_sql(version: int = 0) -> str:
    """Return the SQL that creates the team schema or upgrades it from version ``form``.

    An administrator can also run it alone.
    """
    import importlib.resources  # 10 ms, only needed by administrators

    folder = importlib.resources.files(__package__)
    names = ("schema.sql", *(f"schema-{number}.sql" for number in range(2, SCHEMA_VERSION + 1)))
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names[version:])


def _import_driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise DriverMissing(
            f"{DRIVER}, which speaks to the team's database, is not installed", driver_remedy()
        ) from error
    # The driver logs server messages unescaped, and without a handler Python prints them.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    return psycopg


def _connection_options(service: str) -> dict[str, Any]:
    """Return the connection options of a service, which require encryption and verification over a network."""
    parameters = _read_service_parameters(service)
    options: dict[str, Any] = {
        "service": validate_service(service),
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "resume-hooks",
        "options": f"{parameters.get('options', '')} {_LIMIT_OPTIONS}".strip(),
    }
    if not (_is_local(parameters.get("host", "")) and _is_local(parameters.get("hostaddr", ""))):
        options["sslmode"] = "verify-full"
        root_certificate = os.path.expanduser("~/.postgresql/root.crt")
        if not parameters.get("sslrootcert") and not os.path.exists(root_certificate):
            options["sslrootcert"] = "system"
            _set_certificate_paths()
    return options


_FILE_VARIABLES = frozenset(
    {
        "PGSERVICEFILE",
        "PGSYSCONFDIR",
        "PGPASSFILE",
        "PGSSLROOTCERT",
        "PGSSLCERT",
        "PGSSLKEY",
        "PGSSLCRL",
        "PGSSLCRLDIR",
    }
)
"""libpq variables that name a file or a folder of files."""


@contextlib.contextmanager
def _hide_project_variables() -> Iterator[None]:
    """Hide libpq's variables during the block. A repository could set them and choose the server and its certificates.

    The password stays, and so do variables that name a file outside the project.
    """
    projects = project_roots(os.environ)
    hidden_variables = {}
    for name, value in os.environ.items():
        if (
            name.startswith("PG")
            and name != "PGPASSWORD"
            and not (name in _FILE_VARIABLES and is_outside_projects(value, projects))
        ):
            hidden_variables[name] = value
    for name in hidden_variables:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden_variables)


def _set_certificate_paths() -> None:
    """Tell OpenSSL where this system keeps its trusted certificate authorities, unless the environment already does.

    The driver's wheel contains its own OpenSSL, which looks for them where it was built.
    """
    import ssl  # 10 ms, only needed over a network

    default_paths = ssl.get_default_verify_paths()
    for variable, path in (
        (default_paths.openssl_cafile_env, default_paths.cafile),
        (default_paths.openssl_capath_env, default_paths.capath),
    ):
        if path:
            os.environ.setdefault(variable, path)


def _read_service_parameters(service: str) -> dict[str, str]:
    """Return the parameters that libpq reads for a service from its files and the environment."""
    from psycopg import pq

    previous = os.environ.get("PGSERVICE")
    os.environ["PGSERVICE"] = service
    try:
        defaults = pq.Conninfo.get_defaults()
    finally:
        del os.environ["PGSERVICE"]
        if previous is not None:
            os.environ["PGSERVICE"] = previous
    return {option.keyword.decode(): option.val.decode() for option in defaults if option.val}


def _is_local(hosts: str) -> bool:
    """Check whether every host is this machine: a socket's folder or a loopback address."""
    return all(host.startswith(("/", "@")) or _is_loopback(host) for host in hosts.split(","))


def _is_loopback(host: str) -> bool:
    if host in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a host name
        return False


def _translate_error(error: Exception) -> TeamFailed:
    """Return a driver error as TeamFailed, without the values that were sent and without control characters."""
    state = getattr(error, "sqlstate", None) or ""
    words = (
        getattr(getattr(error, "diag", None), "message_primary", None)
        or str(error).strip().partition("\n")[0]
    )
    message = plain_line(words)[:_MOST_SHOWN]
    if state in {"3F000", "42P01"} or (state == NO_RIGHT and "schema team" in message):
        return TeamFailed(
            "The database has no team, or your role is not one of its members",
            (
                "An administrator runs: resume-hooks team init SERVICE; and: grant rh_member "
                "to YOUR_ROLE"
            ),
            state,
        )
    remedies = {
        NO_RIGHT: "Only its owner can do that.",
        OTHER_ROLE: (
            "The team's admin says who you are: resume-hooks team member keep LOGIN, or "
            "retire LOGIN"
        ),
        NO_SUCH_OBJECT: "A member has joined before, and a session is pushed: resume-hooks team sessions",
        FORGOTTEN: "A forgotten session is not sent again.",
        "": "Check the service in ~/.pg_service.conf, the network and the certificate.",
        "55P03": "An open transaction holds a lock that this needs. Try again.",
        "57014": "The server took too long. Try again.",
        "53100": "The server's disk is full.",
    }
    remedy = next(
        (remedy for words, remedy in _SETUP_REMEDIES.items() if words in message),
        remedies.get(state, ""),
    )
    return TeamFailed(f"The team's database: {message}", remedy, state)
