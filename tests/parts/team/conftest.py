"""Fixtures for the team tests: a PostgreSQL server, a database for each test, and members' homes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from resume_hooks.parts.team.connect import connect_to_team
from resume_hooks.parts.team.membership import join_team
from resume_hooks.parts.team.team_file import Team
from resume_hooks.paths import Where
from tests.builders import ConfigHome
from tests.hook_scripts.conftest import plugin
from tests.hook_scripts.test_install import quick_plugin
from tests.hooks.conftest import any_python, run_hook
from tests.needs import require_for_test
from tests.parts.team.server import Connection, Server, find_postgres_folder

__all__ = ["any_python", "plugin", "quick_plugin", "run_hook"]


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """Start a PostgreSQL server for the whole test run and yield it."""
    found = find_postgres_folder()
    require_for_test("PostgreSQL", found, "install the system package postgresql")
    assert found is not None
    running = Server(found)
    yield running
    running.close()


@pytest.fixture
def database(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Create a team's database, set ``PGSERVICEFILE`` for it, and yield the name of the database.

    The service file has a service for each role, with the role's name. ``admin`` has already
    joined.
    """
    name = server.create_database()
    server.write_service_file(name, tmp_path / "services.conf")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services.conf"))
    with connect_to_team("admin") as db:
        db.connection.execute("select team.enter(gen_random_uuid(), 'office')")
    yield name
    server.drop_database(name)


class Machine:
    """A team member's home directory on one machine, with the membership that ``join`` records there."""

    def __init__(self, folder: Path, login: str) -> None:
        (folder / ".claude" / "projects").mkdir(parents=True)
        self.home = ConfigHome(
            folder,
            folder / ".claude",
            {"HOME": str(folder), "CLAUDE_CONFIG_DIR": str(folder / ".claude")},
        )
        self.team: Team = join_team(login, self.where, label=folder.name)

    @property
    def where(self) -> Where:
        """Return the paths and the environment of this home, as the engine's functions expect them."""
        return self.home.where


@pytest.fixture
def alice(database: str, tmp_path: Path) -> Machine:
    """Return Alice's first machine."""
    return Machine(tmp_path / "laptop", "alice")


@pytest.fixture
def desk(database: str, tmp_path: Path) -> Machine:
    """Return Alice's second machine."""
    return Machine(tmp_path / "desk", "alice")


@pytest.fixture
def mallory(database: str, tmp_path: Path) -> Machine:
    """Return the machine of a hostile member, Mallory."""
    return Machine(tmp_path / "dark", "mallory")


@pytest.fixture
def root(server: Server, database: str) -> Iterator[Connection]:
    """Yield a connection of the database superuser, who can read every row."""
    with server.connect_as_superuser(database) as db:
        yield db
