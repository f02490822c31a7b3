"""What a team costs those who wait, with one or without."""

from __future__ import annotations

import sys

from tests.builders import SESSION, ConfigHome
from tests.test_import_budget import HEAVY, loaded, roots


def test_the_help_of_a_group(config_home: ConfigHome) -> None:
    """The acts of ``team`` are declared where they are; what reads, sends and imports sessions is not loaded."""
    found = roots(loaded(config_home, "helps", None, "team"))
    engine = {
        f"resume_hooks.{name}"
        for name in ("derive", "reading.bundle", "redaction", "search.engine", "archive", "cli.child")
    }
    assert found.isdisjoint(HEAVY | engine | {"psycopg"})


def test_a_start_without_a_team(config_home: ConfigHome) -> None:
    """It looks for one file of ours: the standard library alone, and of the part what reads that."""
    event = {"session_id": SESSION, "hook_event_name": "SessionStart", "source": "startup"}
    found = loaded(config_home, "session", event)
    foreign = {name.partition(".")[0] for name in found} - set(sys.stdlib_module_names) - {"resume_hooks"}
    assert foreign == set()
    ours = {name for name in found if name.startswith("resume_hooks.parts.team")}
    assert ours == {"resume_hooks.parts.team", "resume_hooks.parts.team.team_file"}
