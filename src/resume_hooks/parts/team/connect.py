"""A connection to the team's database: libpq's service file says where, who and how; nothing of it is in our settings.

``psycopg`` is imported here alone, when somebody connects. Over a network nothing less than ``verify-full`` is taken.
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING, Any

from resume_hooks.errors import ResumeHooksError, UsageError
from resume_hooks.system.plugin_files import CHECKOUT

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]
else:
    Connection = Any  # nobody who has no team waits for the driver

DRIVER = "psycopg"  # the package

VERSION = 4
"""The form of the database that this version reads and writes; a file of SQL makes each of the one before."""

OLDEST = 150_000
"""The oldest server, as libpq numbers them."""

NOT_YOURS, OTHER_ROLE, NOT_THERE, MOVED, FORGOTTEN = "42501", "RH403", "RH404", "RH409", "RH410"
"""What the database's functions refuse with: rights, a role that took a member's name, no such thing, another
generation lives, it was forgotten."""

_SET_UP = {
    "certificate verify failed": "Name the provider's own root certificate in the service of ~/.pg_service.conf: "
    "sslrootcert=/path/to/root.pem",
    "definition of service": "Describe it in ~/.pg_service.conf: [NAME], host=, dbname=, user=",
    "password": "Put it into ~/.pgpass, which nobody else may read: HOST:PORT:DBNAME:USER:PASSWORD",
    "startup parameter": "pgbouncer stands before it: its settings need ignore_startup_parameters = options",
}
"""What is missing in a team's set-up, by words of libpq, of the server or of pgbouncer."""

_SERVICE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")
_CONNECT_SECONDS = 3
_STATEMENT_SECONDS = 30
_LOCAL = ("localhost", "127.", "::1")


class TeamFailed(ResumeHooksError, code="team-failed"):
    """The team's database can't be reached, or refused; ``state`` is the SQLSTATE, ``""`` where there was none."""

    def __init__(self, message: str, remedy: str = "", state: str = "") -> None:
        super().__init__(message, remedy)
        self.state = state


class DriverMissing(TeamFailed):
    """What speaks to the database is not installed where this runs."""


def how_to_add() -> str:
    """What adds the driver to the Python that runs this: the plugin's own venv has no other way in."""
    if os.path.isfile(os.path.join(sys.prefix, "requirements.lock")):
        return f"Install it: sh {shlex.quote(os.path.join(CHECKOUT, 'hooks', 'engine'))} --install --team"
    return f"Install it: {shlex.quote(sys.executable)} -m pip install '{DRIVER}[binary]>=3.2'"


def service_named(text: str) -> str:
    """The name of a libpq service. UsageError for anything else, a connection string with its password above all."""
    if not _SERVICE.fullmatch(text):
        raise UsageError(
            "A team is named by a service of libpq, never by an address or a password",
            "Describe it in ~/.pg_service.conf ([NAME], host=, dbname=, user=), the password in ~/.pgpass.",
        )
    return text


@contextlib.contextmanager
def connected(service: str, *, any_form: bool = False) -> Iterator[Connection]:
    """A connection in autocommit for the length of the block; what the server refuses in it is a TeamFailed.

    So is a database of a form that we don't know, unless ``any_form`` will do.
    """
    driver = _driver()
    with refusals(), driver.connect(**_options(service), autocommit=True) as connection:
        if connection.info.server_version < OLDEST:
            raise TeamFailed("The server is older than PostgreSQL 15", "Let a newer one hold the team's sessions.")
        if not any_form:
            form = form_of(connection)
            if form < VERSION:
                said = f"The team's database has the older form {form}, and this resume-hooks needs {VERSION}"
                raise TeamFailed(said, "An administrator runs: resume-hooks team init SERVICE --upgrade")
            row = connection.execute("select least from team.about").fetchone()
            if row is None or row[0] > VERSION:
                said = f"The team's database has the newer form {form}, and this resume-hooks knows {VERSION}"
                raise TeamFailed(said, "Update resume-hooks.")
        yield connection


@contextlib.asynccontextmanager
async def connected_async(service: str) -> AsyncIterator[psycopg.AsyncConnection[tuple[Any, ...]]]:
    """The same for a program that waits by ``await``."""
    driver = _driver()
    with refusals():
        async with await driver.AsyncConnection.connect(**_options(service), autocommit=True) as connection:
            yield connection


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """What the server refuses within the block, or that it can't be reached, is a TeamFailed."""
    driver = _driver()
    try:
        yield
    except driver.Error as error:
        raise _told(error) from error


def form_of(connection: Connection) -> int:
    """The form of the team's database. TeamFailed where it holds no team, or is closed to us."""
    row = connection.execute("select version from team.about").fetchone()
    return int(row[0]) if row else 0


def schema(form: int = 0) -> str:
    """What makes a database a team's, or one of a form today's: SQL, which an administrator may also run without us."""
    import importlib.resources  # 10 ms, for which only an administrator waits

    folder = importlib.resources.files(__package__)
    names = ("schema.sql", *(f"schema-{number}.sql" for number in range(2, VERSION + 1)))
    return "".join(folder.joinpath(name).read_text(encoding="utf-8") for name in names[form:])


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise DriverMissing(f"{DRIVER}, which speaks to the team's database, is not installed", how_to_add()) from error
    return psycopg


def _options(service: str) -> dict[str, Any]:
    """How to connect: as the service says, but never unencrypted or unchecked over a network."""
    named = _of_service(service)
    options: dict[str, Any] = {
        "service": service_named(service),
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "resume-hooks",
        "options": f"{named.get('options', '')} -c statement_timeout={_STATEMENT_SECONDS}s".strip(),
    }
    if not (_is_local(named.get("host", "")) and _is_local(named.get("hostaddr", ""))):
        options["sslmode"] = "verify-full"
        own = os.path.expanduser("~/.postgresql/root.crt")
        if not named.get("sslrootcert") and not os.path.exists(own):
            options["sslrootcert"] = "system"
    return options


def _of_service(service: str) -> dict[str, str]:
    """What libpq itself takes from its files and the environment for a service."""
    from psycopg import pq

    before = os.environ.get("PGSERVICE")
    os.environ["PGSERVICE"] = service
    try:
        found = pq.Conninfo.get_defaults()
    finally:
        del os.environ["PGSERVICE"]
        if before is not None:
            os.environ["PGSERVICE"] = before
    return {option.keyword.decode(): option.val.decode() for option in found if option.val}


def _is_local(hosts: str) -> bool:
    """Whether every host is this machine: a socket's folder, or its loopback."""
    return all(host.startswith(("/", "@")) or host == "" or host.startswith(_LOCAL) for host in hosts.split(","))


def _told(error: Exception) -> TeamFailed:
    """An error of the driver in a sentence, without the values that were sent."""
    state = getattr(error, "sqlstate", None) or ""
    said = getattr(getattr(error, "diag", None), "message_primary", None) or str(error).strip().partition("\n")[0]
    if state in {"3F000", "42P01"} or (state == NOT_YOURS and "schema team" in said):
        return TeamFailed(
            "The database holds no team, or your role is none of its members",
            "An administrator runs: resume-hooks team init SERVICE; and: grant rh_member to YOUR_ROLE",
            state,
        )
    remedies = {
        NOT_YOURS: "That is for its owner to do.",
        OTHER_ROLE: "The team's admin says who you are: resume-hooks team member keep LOGIN, or retire LOGIN",
        NOT_THERE: "A member has joined before, and a session is pushed: resume-hooks team sessions",
        FORGOTTEN: "What was forgotten is not sent again.",
        "": "Check the service in ~/.pg_service.conf, the network and the certificate.",
        "57014": "The server took too long. Try again.",
        "53100": "The server's disk is full.",
    }
    way = next((way for words, way in _SET_UP.items() if words in said), remedies.get(state, ""))
    return TeamFailed(f"The team's database: {said}", way, state)
