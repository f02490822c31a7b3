"""A connection to the team's database: libpq's service file says where, who and how.

Nothing of it is in our settings.

``psycopg`` is imported here alone, when somebody connects. Over a network nothing less than
``verify-full`` is taken. What the server sends is read by ``rows``.
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
from resume_hooks.parts.team.rows import Database, bounded_memory, parse_whole_number
from resume_hooks.system.plugin_files import CHECKOUT
from resume_hooks.system.text import plain_line
from resume_hooks.untrusted_folders import is_outside_projects, project_roots

if TYPE_CHECKING:
    import psycopg

DRIVER = "psycopg"  # the package

VERSION = 5
"""The form of the database that this version reads and writes.

A file of SQL makes each of the one before.
"""

OLDEST = 150_000
"""The oldest server, as libpq numbers them."""

NOT_YOURS, OTHER_ROLE, NOT_THERE, MOVED, FORGOTTEN = "42501", "RH403", "RH404", "RH409", "RH410"
SCRUBBED, EXPIRED = "RH411", "RH412"
"""What the database's functions refuse with: rights, a role that took a member's name, no such thing, another
generation lives, it was forgotten, it was scrubbed on another machine, it ended before what the team keeps."""

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
_LIMITS = f"-c statement_timeout={_STATEMENT_SECONDS}s -c lock_timeout=2s"
_ANSWER_SECONDS = 60.0
"""Seconds that an answer is waited for: the limit on a statement is the server's to keep, or not."""

READ_SECONDS = 60.0
"""Seconds that all answers to a search, or of a lineage, are waited for: their number is the server's."""

_MOST_SAID = 300
"""Characters of a server's error that are shown."""

_form = parse_whole_number(0, 1_000_000)


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
        return (
            f"Install it: sh {shlex.quote(os.path.join(CHECKOUT, 'hooks', 'engine'))} "
            "--install --team"
        )
    return f"Install it: {shlex.quote(sys.executable)} -m pip install '{DRIVER}[binary]>=3.2'"


def service_named(text: str) -> str:
    """The name of a libpq service.

    UsageError for anything else, a connection string with its password above all.
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
def connected(service: str, *, any_form: bool = False) -> Iterator[Database]:
    """A connection in autocommit for the length of the block.

    What the server refuses in it is a TeamFailed.

    So is a database of a form that we don't know, unless ``any_form`` will do.
    """
    driver = _driver()
    with refusals():
        with bounded_memory(), _without_variables_of_a_project():
            connection = _bounded(driver).connect(**_options(service), autocommit=True)
        with connection:
            if connection.info.server_version < OLDEST:
                raise TeamFailed(
                    "The server is older than PostgreSQL 15",
                    "Let a newer one hold the team's sessions.",
                )
            db = connection.asked_by = Database(connection)
            if not any_form:
                _require_form(db)
            yield db


@contextlib.contextmanager
def until_late(db: Database) -> Iterator[None]:
    """End the block, and the connection, where an answer in it came too late for all: what it had by then counts."""
    try:
        yield
    except TeamFailed:
        if not db.is_late():
            raise
        db.close()


def _require_form(db: Database) -> None:
    form = form_of(db)
    if form < VERSION:
        said = (
            f"The team's database has the older form {form}, and this resume-hooks needs {VERSION}"
        )
        raise TeamFailed(said, "An administrator runs: resume-hooks team init SERVICE --upgrade")
    least = db.value("select least::text from team.about", (), _form)
    if least is None or least > VERSION:
        said = (
            f"The team's database has the newer form {form}, and this resume-hooks knows {VERSION}"
        )
        raise TeamFailed(said, "Update resume-hooks.")


@functools.cache
def _bounded(driver: Any) -> Any:
    """The driver's connection, which waits for no answer without end, and gives none without bound the memory.

    ``asked_by`` is whose limit on all answers counts beside that of each.
    """

    class Bounded(driver.Connection):  # type: ignore[misc]
        asked_by: Database | None = None

        def wait(self, gen: Any, *given: Any, **more: Any) -> Any:
            end = time.monotonic() + _ANSWER_SECONDS
            if self.asked_by is not None:
                end = min(end, self.asked_by.end)
            with bounded_memory():
                return super().wait(_until(gen, end), *given, **more)

    return Bounded


def _until(steps: Any, end: float) -> Any:
    """The steps of an answer, until an instant. TeamFailed after it."""
    try:
        wanted = next(steps)
        while True:
            ready = yield wanted
            if time.monotonic() > end:
                raise _no_answer()
            wanted = steps.send(ready)
    except StopIteration as ended:
        return ended.value


def _no_answer() -> TeamFailed:
    return TeamFailed("The team's database does not answer", "Check the network and the server.")


@contextlib.asynccontextmanager
async def connected_async(service: str) -> AsyncIterator[psycopg.AsyncConnection[tuple[Any, ...]]]:
    """A connection for a program that waits by ``await``, for as long as an answer is waited for in all."""
    import asyncio  # 30 ms, for such a program alone

    driver = _driver()
    with refusals():
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                async with await driver.AsyncConnection.connect(
                    **_options(service), autocommit=True
                ) as connection:
                    yield connection
        except TimeoutError as error:
            raise _no_answer() from error


@contextlib.contextmanager
def refusals() -> Iterator[None]:
    """What the server refuses within the block, or that it can't be reached, is a TeamFailed."""
    driver = _driver()
    try:
        yield
    except driver.Error as error:
        raise _refusal(error) from error
    except MemoryError as error:
        raise TeamFailed(
            "The team's database answers with more than anybody asked for", "Who runs it?"
        ) from error


def form_of(db: Database) -> int:
    """The form of the team's database. TeamFailed where it holds no team, or is closed to us."""
    return db.value("select version::text from team.about", (), _form) or 0


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
        raise DriverMissing(
            f"{DRIVER}, which speaks to the team's database, is not installed", how_to_add()
        ) from error
    # It logs what a server said as it stands, and without a handler Python prints that.
    logging.getLogger("psycopg").addHandler(logging.NullHandler())
    return psycopg


def _options(service: str) -> dict[str, Any]:
    """How to connect: as the service says, but never unencrypted or unchecked over a network."""
    named = _of_service(service)
    options: dict[str, Any] = {
        "service": service_named(service),
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "resume-hooks",
        "options": f"{named.get('options', '')} {_LIMITS}".strip(),
    }
    if not (_is_local(named.get("host", "")) and _is_local(named.get("hostaddr", ""))):
        options["sslmode"] = "verify-full"
        own = os.path.expanduser("~/.postgresql/root.crt")
        if not named.get("sslrootcert") and not os.path.exists(own):
            options["sslrootcert"] = "system"
            _name_authorities()
    return options


_FILES = frozenset(
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
"""Variables of libpq that name a file, or a folder of files."""


@contextlib.contextmanager
def _without_variables_of_a_project() -> Iterator[None]:
    """Leave libpq's variables out within the block: a repository may set them, and they say whom it trusts and asks.

    Those stay that name a file outside the project, and a password.
    """
    projects = project_roots(os.environ)
    left_out = {}
    for name, value in os.environ.items():
        if (
            name.startswith("PG")
            and name != "PGPASSWORD"
            and not (name in _FILES and is_outside_projects(value, projects))
        ):
            left_out[name] = value
    for name in left_out:
        del os.environ[name]
    try:
        yield
    finally:
        os.environ.update(left_out)


def _name_authorities() -> None:
    """Tell OpenSSL where this system keeps the authorities that it trusts, unless somebody said so.

    The driver's wheel brings an OpenSSL of its own, which looks for them where it was built, in vain.
    """
    import ssl  # 10 ms, for who connects over a network

    known = ssl.get_default_verify_paths()
    for variable, place in (
        (known.openssl_cafile_env, known.cafile),
        (known.openssl_capath_env, known.capath),
    ):
        if place:
            os.environ.setdefault(variable, place)


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
    return all(host.startswith(("/", "@")) or _is_loopback(host) for host in hosts.split(","))


def _is_loopback(host: str) -> bool:
    if host in {"", "localhost"}:
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:  # a name
        return False


def _refusal(error: Exception) -> TeamFailed:
    """An error of the driver in a sentence, without the values that were sent, nor what could drive a terminal."""
    state = getattr(error, "sqlstate", None) or ""
    words = (
        getattr(getattr(error, "diag", None), "message_primary", None)
        or str(error).strip().partition("\n")[0]
    )
    said = plain_line(words)[:_MOST_SAID]
    if state in {"3F000", "42P01"} or (state == NOT_YOURS and "schema team" in said):
        return TeamFailed(
            "The database holds no team, or your role is not one of its members",
            (
                "An administrator runs: resume-hooks team init SERVICE; and: grant rh_member "
                "to YOUR_ROLE"
            ),
            state,
        )
    remedies = {
        NOT_YOURS: "That is for its owner to do.",
        OTHER_ROLE: (
            "The team's admin says who you are: resume-hooks team member keep LOGIN, or "
            "retire LOGIN"
        ),
        NOT_THERE: "A member has joined before, and a session is pushed: resume-hooks team sessions",
        FORGOTTEN: "What was forgotten is not sent again.",
        "": "Check the service in ~/.pg_service.conf, the network and the certificate.",
        "55P03": "Somebody's transaction is open there and holds what this needs. Try again.",
        "57014": "The server took too long. Try again.",
        "53100": "The server's disk is full.",
    }
    way = next((way for words, way in _SET_UP.items() if words in said), remedies.get(state, ""))
    return TeamFailed(f"The team's database: {said}", way, state)
