"""doctor's check of a team: what it says in each case, and the remedy."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from resume_hooks.maintenance.doctor import Finding, diagnose
from resume_hooks.parts.team import answers, team_file
from resume_hooks.paths import Where
from tests.builders import ConfigHome


def found(cwd: Path) -> Finding:
    """What doctor says of the team."""
    return next(finding for finding in diagnose(str(cwd)) if finding.name == "team")


def test_a_team_that_is_sent_nothing(config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None was joined; one is pushed to; the driver is missing; a push failed."""
    assert found(tmp_path).code == "team-none"
    team = {"version": 1, "service": "work", "login": "alice", "machine": "m", "projects": ["h/o/r"]}
    file = config_home.config / "resume-hooks" / "team" / "team.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(team))
    assert (
        found(tmp_path).detail == "work as alice; turns' ends push 1 project, last push never; the server was not asked"
    )
    monkeypatch.setattr(answers, "find_spec", lambda _: None)
    assert "-m pip install" in found(tmp_path).remedy
    monkeypatch.setattr(sys, "prefix", str(config_home.config))
    (config_home.config / "requirements.lock").touch()
    assert found(tmp_path).remedy.endswith("hooks/engine --install --team")
    team_file.note_failing(("the server is away", "Wait."), 1, Where(), at_once=False)
    assert found(tmp_path).code == "team-failing"
    assert found(tmp_path).detail.startswith("1 session waits")
