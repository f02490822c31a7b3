"""``resume``: a session and the ways on from it, for people and for programs."""

from __future__ import annotations

import pytest

from tests.builders import SESSION, ConfigHome, assistant, custom_title, session_id, user, write_session
from tests.cli.conftest import Cli, Document

SHORT = SESSION[:8]


@pytest.fixture
def parent(config_home: ConfigHome) -> str:
    """A titled session, nearly full, that was counted years ago."""
    counts = {"input_tokens": 5, "cache_read_input_tokens": 20_000, "cache_creation_input_tokens": 145_000}
    rows = [user("hello", uuid="u"), assistant("hi", uuid="a", parent="u", ts=1, tokens=counts)]
    return write_session(config_home.project(), SESSION, [*rows, custom_title("Fix the parser")])


def test_for_people(cli: Cli, parent: str) -> None:
    """Title, id, context, what fits best, the table, and what to type for each way, here and in the client."""
    done = cli("resume", SESSION)
    assert (done.returncode, done.stderr) == (0, b"")
    text = done.stdout.decode()
    for part in (
        "Fix the parser",
        SESSION,
        "165,005 tokens, 83 % of 200,000",
        "Nearly full",
        "estimated   tokens after",
        "go on            165,005              165,005",
        "its cache is cold (kept 5 minutes, last request",
        f"claude --resume {SESSION}",
        f"/resume {SESSION}",
        f"resume-hooks trim {SHORT}",
        f"resume-hooks handoff {SHORT}",
        f"resume-hooks rollover {SHORT}",
    ):
        assert part in text


def test_for_programs(document: Document, parent: str) -> None:
    """Every figure, and the ratios behind the costs."""
    data = document("resume", SESSION)["data"]
    assert (data["session_id"], data["session_file"], data["title"]) == (SESSION, parent, "Fix the parser")
    assert data["context"]["percent"] == 83
    assert data["cache"]["warm"] is False
    assert (data["cache"]["lifetime_seconds"], data["cache"]["tokens"]) == (300, 0)
    assert data["cache"]["age_seconds"] > 1_000
    assert data["typical_turn"] == {"requests": 1, "tokens": 0}
    assert data["base"] == {"tokens": 165_004, "shared": 20_000}
    assert data["rates"] == {"input": 1.0, "cache_read": 0.1, "uncached": 1.25, "output": 5.0}
    assert [row["name"] for row in data["estimates"]] == ["go on", "trim", "handoff", "rollover", "compact"]
    assert data["estimates"][0] == {
        "name": "go on",
        "after": 165_005,
        "uncached": 165_005,
        "next_turn": 206_256,
        "pays_after": None,
    }
    assert data["advice"]["way"] == "handoff"
    assert data["commands"]["in_client"] == f"/resume {SESSION}"


def test_while_there_is_room_nothing_is_recommended(config_home: ConfigHome, cli: Cli, document: Document) -> None:
    """A small session, never counted, by its title."""
    rows = [user("hello", uuid="u"), custom_title("Small one", session_id(3))]
    write_session(config_home.project(), session_id(3), rows)
    assert document("resume", "Small one")["data"]["advice"] is None
    assert b"fits best" not in cli("resume", "Small one").stdout


def test_what_is_not_there(cli: Cli, document: Document) -> None:
    """One sentence and its code: no session, no such locator."""
    assert cli("resume").returncode == 1
    assert document("resume", "nothing so called", code=1)["error"]["code"] == "session-not-found"
