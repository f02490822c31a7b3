"""Tests of the pane with a lost session."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from resume_hooks.hooks.client_module import answer_module_request
from resume_hooks.hooks.session_list.pane import HITS_STEP, PREVIEW_STEP
from resume_hooks.sessions.agents import registry
from tests.builders import SESSION, ConfigHome, session_id
from tests.hooks.session_list.test_pane import TITLES, ask_pane, listed_ids, project

__all__ = ["project"]


def test_the_pane_lists_a_lost_session(
    project: Path, config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pane lists a lost session last, marks it, and finds it by its prompts.

    A lost session cannot be opened or forked, but a handoff of it can be made.
    """
    lost = session_id(7)
    said = {
        "display": "why does the zebra loop",
        "timestamp": 1_700_000_000_000,
        "project": str(tmp_path),
    }
    line = json.dumps({**said, "pastedContents": {}, "sessionId": lost})
    (config_home.config / "history.jsonl").write_text(f"{line}\n")
    with monkeypatch.context() as large:
        large.setattr(registry, "MAX_FIRST_READ_BYTES", 10)
        assert len(ask_pane(project)["rows"]) == len(TITLES), (
            "a list is not the first to read a large history"
        )
    *_, row = ask_pane(project)["rows"]
    assert (row[0], row[1][0][:40]) == (lost, "  prompts only · why does the zebra loop")
    found = ask_pane(project, "zebra", HITS_STEP)
    assert (listed_ids(found), "prompts only" in found["rows"][0][1][0]) == ([lost], True)
    assert any(
        "why does the zebra loop" in line
        for line in ask_pane(project, step=PREVIEW_STEP, at=lost)["preview"]
    )
    for key in ("open", "fork"):
        assert "Only its prompts are left" in ask_pane(project, at=lost, key=key)["head"]
    there = Path(config_home.project(str(tmp_path)))
    child = there / f"{ask_pane(there, at=lost, key='handoff')['open']}.jsonl"
    assert "why does the zebra loop" in child.read_text()
    card = answer_module_request(
        "sessions", {"screen": False, "session_id": SESSION, "args": "--all"}
    )["text"]
    assert re.search(rf"prompts only · 2023.*\n  in a shell: resume-hooks handoff {lost}", card)
    card = answer_module_request(
        "search", {"screen": False, "session_id": SESSION, "args": "--all zebra loop"}
    )["text"]
    assert "prompts only, " in card
    assert f"in a shell: resume-hooks handoff {lost}" in card
