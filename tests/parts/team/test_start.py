"""What a session's start says of a team, on any Python that a hook may meet."""

from __future__ import annotations

import json

from resume_hooks.parts.team import team_file
from tests.builders import SESSION, ConfigHome
from tests.hooks.conftest import Run


def test_a_team_that_is_sent_nothing_is_told_once(config_home: ConfigHome, run_hook: Run, any_python: str) -> None:
    """At the next start of somebody who can read it: how much waits, since when, why."""
    where = config_home.where

    def say(source: str, client: str = "cli") -> str:
        event = {"hook_event_name": "SessionStart", "session_id": SESSION, "source": source}
        done = run_hook("session", event, environ={"CLAUDE_CODE_ENTRYPOINT": client}, python=any_python)
        assert (done.returncode, done.stderr) == (0, b"")
        return str(json.loads(done.stdout)["systemMessage"]) if done.stdout else ""

    team_file.note_failing(("the server is away", "Wait."), 3, where, at_once=False)
    assert say("startup") == ""
    team_file.note_failing(("no driver", "Install it."), 4, where, at_once=True)
    assert say("startup", "sdk-cli") == ""
    line = say("resume")
    assert line.startswith("resume-hooks: 4 sessions wait to be pushed to the team since 20")
    assert "UTC: no driver; what to do: " in line
    team_file.note_failing(("no driver", "Install it."), 5, where, at_once=True)
    assert say("startup") == ""
    team_file.note_pushed(where)
    assert team_file.failing(where) is None
