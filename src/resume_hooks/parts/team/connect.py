"""Connect to the team's database.

The address and the user of the database are in a libpq service (``~/.pg_service.conf``), and never
in the settings of resume-hooks. Only this module imports ``psycopg``, when it opens the first
connection. A connection over a network requires ``sslmode=verify-full``. The values that the server
sends are parsed by the module ``rows``.
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
from resume_hooks.parts.team.rows import Database, limit_memory, make_whole_number_parser
from resume_hooks.system.plugin_files import CHECKOUT_FOLDER
from resume_hooks.system.text import plain_line
from resume_hooks.untrusted_folders import is_outside_projects, project_roots

if TYPE_CHECKING:
    import psycopg

DRIVER_PACKAGE = "psycopg"  # The name of the Python package.

SCHEMA_VERSION = 5
"""The version of the database schema that this release needs.

For each earlier version, there is a SQL file that upgrades a database to the next version.
"""

MIN_SERVER_VERSION = 150_000
"""The oldest supported version of PostgreSQL, in libpq's numeric format."""

NO_RIGHT_STATE, OTHER_ROLE_STATE, NO_SUCH_OBJECT_STATE, OTHER_GENERATION_STATE, FORGOTTEN_STATE = (
    "42501",
    "RH403",
    "RH404",
    "RH409",
    "RH410",
)
SCRUBBED_STATE, EXPIRED_STATE = "RH411", "RH412"
"""The SQLSTATEs that the database's functions return when they refuse a request.

``NO_RIGHT_STATE``: you lack the rights. ``OTHER_ROLE_STATE``: your role has the same name as an
earlier member's role, but is a different role. ``NO_SUCH_OBJECT_STATE``: the object does not exist.
``OTHER_GENERATION_STATE``: another generation of the session is active. ``FORGOTTEN_STATE``: the
session was forgotten. ``SCRUBBED_STATE``: the session was scrubbed on another machine.
``EXPIRED_STATE``: the session ended before the start of the retention period.
"""

_REMEDIES_BY_ERROR_TEXT = {
    "certificate verify failed": "In ~/.pg_service.conf, add your provider's root certificate to the service: "
    "sslrootcert=/path/to/root.pem",
    "definition of service": "Describe the service in ~/.pg_service.conf: [NAME], host=, dbname=, user=",
    "password": "Put it into ~/.pgpass, readable only by you: HOST:PORT:DBNAME:USER:PASSWORD",
    "startup parameter": "The server is behind pgbouncer. Add to pgbouncer's settings: "
    "ignore_startup_parameters = options",
}
"""Maps part of an error message from libpq, the server or pgbouncer to instructions for solving the
problem."""

_SERVICE_NAME_PATTERN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_MAX_CONNECT_SECONDS = 3
_MAX_STATEMENT_SECONDS = 30
_TIMEOUT_OPTIONS = f"-c statement_timeout={_MAX_STATEMENT_SECONDS}s -c lock_timeout=2s"
_MAX_ANSWER_SECONDS = 60.0
"""The maximum number of seconds to wait for an answer. The client enforces this limit, because a
server may ignore the statement timeout."""

MAX_READ_SECONDS = 60.0
"""The maximum total number of seconds to wait for the answers to a search or to a request for a
lineage. A limit for each answer is not enough, because the server decides how many answers it
sends."""

MAX_PUSH_SECONDS = 240.0
"""The maximum total number of seconds to wait for the server's answers while one session is pushed.

After a timeout, the next push continues where the interrupted push stopped. A background push that
has run for this number of seconds does not start to push another session.
"""

_MAX_MESSAGE_CHARACTERS = 300
"""An error message of the server is cut to this number of characters."""

INVALID_SERVER_ANSWER_ADVICE = "Ask the person who manages the team's database."
"""What to do if the server returns data that it should never return."""

_parse_version = make_whole_number_parser(0, 1_000_000)


class TeamRequestFailed(ResumeHooksError, code="team-failed"):
    """Raised if the team's database is unreachable or refuses a request.

    ``sqlstate`` is the SQLSTATE of the error, or ``""`` if the error has none.
    """

    def __init__(self, message: str, remedy: str = "", state: str = "") -> None:
        super().__init__(message, remedy)
        self.sqlstate = state


class DriverMissing(TeamRequestFailed):
    """Raised if the database driver is not installed for this Python."""


def format_driver_install_advice() -> str:
    """Return instructions for installing the driver for this Python.

    The plugin's virtual environment may be changed only by the plugin's own installer, not by pip.
    """
    if os.path.isfile(os.path.join(sys.prefix, "requirements.lock")):
        return (
            f"Install it: sh {shlex.quote(os.path.join(CHECKOUT_FOLDER, 'hooks', 'engine'))} "
            "--install --team"
        )
    return (
        f"Install it: {shlex.quote(sys.executable)} -m pip install '{DRIVER_PACKAGE}[binary]>=3.2'"
    )


def validate_service_name(text: str) -> str:
    """Return ``text`` if it is a valid name of a libpq service.

    Raise UsageError for any other text, for example for a connection string with a password.
    """
    if not _SERVICE_NAME_PATTERN.fullmatch(text):
        raise UsageError(
            "The name of a team is the name of a libpq service, never an address or a password",
            (
                "Describe the service in ~/.pg_service.conf ([NAME], host=, dbname=, user=), and "
                "put the password into ~/.pgpass."
            ),
        )
    return text


@contextlib.contextmanager
def connect_to_team(service: str, *, allows_any_version: bool = False) -> Iterator[Database]:
    """Open a connection in autocommit mode for the duration of the block.

    Database errors inside the block are raised as TeamRequestFailed. TeamRequestFailed is also
    raised if the database has an unsupported schema version, unless ``allows_any_version`` is true.
    """
    driver = _import_driver()
    with convert_driver_errors():
        with limit_memory(), _hide_project_variables():
            connection = _build_limited_connection_class(driver).connect(
                **_build_connection_options(service), autocommit=True
            )
        with connection:
            connection.add_notify_handler(_discard_notification)
            if connection.info.server_version < MIN_SERVER_VERSION:
                raise TeamRequestFailed(
                    "The server is older than PostgreSQL 15",
                    "Use a newer server for the team's sessions.",
                )
            db = connection.database = Database(connection)
            if not allows_any_version:
                _check_schema_version(db)
            yield db


@contextlib.contextmanager
def suppress_answer_timeout(db: Database) -> Iterator[None]:
    """If the database's deadline passes during the block, leave the block without an error.

    The connection is then closed. The answers that arrived in time can still be used.
    """
    try:
        yield
    except TeamRequestFailed:
        if not db.has_passed_deadline():
            raise
        db.close()


def _check_schema_version(db: Database) -> None:
    version = read_schema_version(db)
    if version < SCHEMA_VERSION:
        message = (
            f"The schema of the team's database has version {version}, but this version of "
            f"resume-hooks needs {SCHEMA_VERSION}"
        )
        raise TeamRequestFailed(
            message, "Ask an administrator to run: resume-hooks team init SERVICE --upgrade"
        )
    oldest_reader = db.fetch_value("select least::text from team.about", (), _parse_version)
    if oldest_reader is None or oldest_reader > SCHEMA_VERSION:
        message = (
            f"The schema of the team's database has version {version}, but this version of "
            f"resume-hooks supports at most {SCHEMA_VERSION}"
        )
        raise TeamRequestFailed(message, "Update resume-hooks.")


@functools.cache
def _build_limited_connection_class(driver: Any) -> Any:
    """Return a subclass of ``driver.Connection`` that limits the time and memory for each answer.

    The caller sets the attribute ``database`` to the Database that owns the connection. Each answer
    must arrive before the deadline of this Database.
    """

    class LimitedConnection(driver.Connection):  # type: ignore[misc]
        database: Database | None = None

        def wait(self, steps: Any, *arguments: Any, **keywords: Any) -> Any:
            deadline = time.monotonic() + _MAX_ANSWER_SECONDS
            if self.database is not None:
                deadline = min(deadline, self.database.deadline)
            try:
                with limit_memory():
                    return super().wait(
                        _run_until_deadline(steps, deadline), *arguments, **keywords
                    )
            except TeamRequestFailed:
                self.close()  # Otherwise, a late answer to this query could be read as the answer to the next query.
                raise

    return LimitedConnection


def _run_until_deadline(answer_generator: Any, deadline: float) -> Any:
    """Wait for an answer until the deadline. Raise TeamRequestFailed if the deadline passes."""
    try:
        event = next(answer_generator)
        while True:
            readiness = yield event
            if time.monotonic() > deadline:
                raise _build_timeout_error()
            event = answer_generator.send(readiness)
    except StopIteration as ended:
        return ended.value


def _build_timeout_error() -> TeamRequestFailed:
    return TeamRequestFailed(
        "The team's database does not answer", "Check the network and the server."
    )


@contextlib.asynccontextmanager
async def connect_async(service: str) -> AsyncIterator[psycopg.AsyncConnection[tuple[Any, ...]]]:
    """Open an asyncio connection, and close it at the end of the block.

    Raise TeamRequestFailed if connecting and the block together take longer than
    ``_MAX_ANSWER_SECONDS``.
    """
    import asyncio  # Imported here because the import takes 30 ms and only the asyncio connection needs it.

    driver = _import_driver()
    with convert_driver_errors():
        try:
            async with asyncio.timeout(_MAX_ANSWER_SECONDS):
                async with await driver.AsyncConnection.connect(
                    **_build_connection_options(service), autocommit=True
                ) as connection:
                    connection.add_notify_handler(_discard_notification)
                    yield connection
        except TimeoutError as error:
            raise _build_timeout_error() from error


def _discard_notification(notification: object) -> None:
    """Discard a notification from the server. Without this handler, the driver would keep it in memory."""


@contextlib.contextmanager
def convert_driver_errors() -> Iterator[None]:
    """Turn server errors and connection failures inside the block into TeamRequestFailed."""
    driver = _import_driver()
    try:
        yield
    except driver.Error as error:
        raise _translate_error(error) from error
    except MemoryError as error:
        raise TeamRequestFailed(
            "The answer from the team's database is larger than any valid answer",
            INVALID_SERVER_ANSWER_ADVICE,
        ) from error


def read_schema_version(db: Database) -> int:
    """Return the version of the team schema in the database.

    Raise TeamRequestFailed if the database has no team schema or if the user's role may not read
    the version.
    """
    return db.fetch_value("select version::text from team.about", (), _parse_version) or 0


def read_schema_sql(version: int = 0) -> str:
    """Return the SQL that creates the team schema, or that upgrades a schema of the given version.

    An administrator can also run this SQL without resume-hooks.
    """
    import importlib.resources  # Imported here because the import takes 10 ms and only administrators need it.

    folder = importlib.resources.files(__package__)
    file_names = (
        "schema.sql",
        *(f"schema-{number}.sql" for number in range(2, SCHEMA_VERSION + 1)),
    )
    return "".join(
        folder.joinpath(name).read_text(encoding="utf-8") for name in file_names[version:]
    )


def _import_driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise DriverMissing(
            f"{DRIVER_PACKAGE}, which connects to the team's database, is not installed",
            format_driver_install_advice(),
        ) from error
    # The driver logs the server's messages without escaping control characters. Python prints them
    # on stderr if no log handler exists.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    return psycopg


def _build_connection_options(service: str) -> dict[str, Any]:
    """Return connection options that require encryption and a verified certificate over a network."""
    parameters = _read_service_parameters(service)
    options: dict[str, Any] = {
        "service": validate_service_name(service),
        "connect_timeout": _MAX_CONNECT_SECONDS,
        "application_name": "resume-hooks",
        "options": f"{parameters.get('options', '')} {_TIMEOUT_OPTIONS}".strip(),
    }
    if not (
        _are_all_hosts_local(parameters.get("host", ""))
        and _are_all_hosts_local(parameters.get("hostaddr", ""))
    ):
        options["sslmode"] = "verify-full"
        # libpq prefers Kerberos encryption to TLS, and does not verify certificates when it uses
        # Kerberos.
        options["gssencmode"] = "disable"
        root_certificate = os.path.expanduser("~/.postgresql/root.crt")
        if not parameters.get("sslrootcert") and not os.path.exists(root_certificate):
            options["sslrootcert"] = "system"
            _set_certificate_paths()
    return options


_FILE_PATH_VARIABLE_NAMES = frozenset(
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
"""The environment variables of libpq that contain the path of a file or folder."""


@contextlib.contextmanager
def _hide_project_variables() -> Iterator[None]:
    """Hide libpq's environment variables inside the block.

    A repository's settings could set these variables to make libpq use another server.
    ``PGPASSWORD`` stays visible, and so does a variable that contains the path of a file outside
    the project.
    """
    project_folders = project_roots(os.environ)
    hidden_variables = {}
    for name, value in os.environ.items():
        if (
            name.startswith("PG")
            and name != "PGPASSWORD"
            and not (
                name in _FILE_PATH_VARIABLE_NAMES and is_outside_projects(value, project_folders)
            )
        ):
            hidden_variables[name] = value
    for name in hidden_variables:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(hidden_variables)


def _set_certificate_paths() -> None:
    """Tell OpenSSL where this system stores its trusted certificate authorities.

    The driver's wheel contains its own copy of OpenSSL, which looks for the authorities in the
    folder where they were on the machine that built the wheel. Environment variables that are
    already set stay unchanged.
    """
    import ssl  # Imported here because the import takes 10 ms and only network connections need it.

    default_paths = ssl.get_default_verify_paths()
    for variable, path in (
        (default_paths.openssl_cafile_env, default_paths.cafile),
        (default_paths.openssl_capath_env, default_paths.capath),
    ):
        if path:
            os.environ.setdefault(variable, path)


def _read_service_parameters(service: str) -> dict[str, str]:
    """Return the connection parameters of a service.

    libpq reads them from its configuration files and from environment variables.
    """
    from psycopg import pq

    previous_service = os.environ.get("PGSERVICE")
    os.environ["PGSERVICE"] = service
    try:
        defaults = pq.Conninfo.get_defaults()
    finally:
        del os.environ["PGSERVICE"]
        if previous_service is not None:
            os.environ["PGSERVICE"] = previous_service
    return {option.keyword.decode(): option.val.decode() for option in defaults if option.val}


def _are_all_hosts_local(host_list: str) -> bool:
    """Check whether every host in a comma-separated list is this machine.

    A loopback address, the name ``localhost``, and the folder of a Unix socket stand for this
    machine.
    """
    return all(
        host.startswith(("/", "@")) or _is_loopback_address(host) for host in host_list.split(",")
    )


def _is_loopback_address(host: str) -> bool:
    if host in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # The host is a name, not an address.
        return False


def _translate_error(error: Exception) -> TeamRequestFailed:
    """Return a TeamRequestFailed for an error of the driver.

    The message of the TeamRequestFailed contains no control characters, and none of the values that
    were sent to the server.
    """
    sqlstate = getattr(error, "sqlstate", None) or ""
    driver_message = (
        getattr(getattr(error, "diag", None), "message_primary", None)
        or str(error).strip().partition("\n")[0]
    )
    message = plain_line(driver_message)[:_MAX_MESSAGE_CHARACTERS]
    if sqlstate in {"3F000", "42P01"} or (sqlstate == NO_RIGHT_STATE and "schema team" in message):
        return TeamRequestFailed(
            "The database has no team, or your role is not one of its members",
            (
                "Ask an administrator to run: resume-hooks team init SERVICE; and in SQL: grant rh_member "
                "to YOUR_ROLE"
            ),
            sqlstate,
        )
    remedies = {
        NO_RIGHT_STATE: "Your role has no right to do this: ask the team's admin.",
        OTHER_ROLE_STATE: (
            "The team does not know whether your role still belongs to the same person. Ask the team's admin "
            "to run: resume-hooks team member keep LOGIN (or: retire LOGIN)"
        ),
        NO_SUCH_OBJECT_STATE: (
            "The member must have joined and the session must have been pushed. See: "
            "resume-hooks team sessions"
        ),
        FORGOTTEN_STATE: "A session that was forgotten will not be sent again.",
        "": "Check the service in ~/.pg_service.conf, the network and the certificate.",
        "55P03": "An open transaction holds a lock that this command needs. Try again.",
        "57014": "The server took too long. Try again.",
        "53100": "The server's disk is full.",
    }
    remedy = next(
        (
            remedy
            for driver_message, remedy in _REMEDIES_BY_ERROR_TEXT.items()
            if driver_message in message
        ),
        remedies.get(sqlstate, ""),
    )
    return TeamRequestFailed(f"The team's database: {message}", remedy, sqlstate)
