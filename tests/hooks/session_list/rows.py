"""Build rows of the session list for tests that need no session files."""

from __future__ import annotations

from typing import Any

from resume_hooks.search.listing import ListedSession
from resume_hooks.sessions.agents.claude import ResumeCommands
from resume_hooks.transcripts.tokens import ContextSize
from tests.builders import CWD, iso_time, session_id


def make_listed_session(number: int = 1, **fields: Any) -> ListedSession:
    """Return the list row of a small session that was one hour old at the time ``NOW``.

    ``fields`` replace the usual values.
    """
    name = session_id(number)
    usual: dict[str, Any] = {
        "agent": "claude", "session_id": name, "path": f"/nowhere/{name}.jsonl", "title": f"Title {number}", "tag": "",
        "agent_name": "", "branch": "main", "folder": CWD, "creation_time": iso_time(0), "end_time": iso_time(10),
        "size": 4_100, "mtime": NOW - 3_600, "turn_count": 3, "min_turn_count": 3,
        "context": ContextSize(20_000, 200_000), "kind": "original", "derivation_type": "original", "parent_id": None,
        "days_to_expiry": 20, "expiry_time": None, "is_archived": False, "is_open": False,
        "commands": ResumeCommands(f"/resume {name}", f"cd {CWD} && claude --resume {name}"),
    }  # fmt: skip
    return ListedSession(**{**usual, **fields})


NOW = 2_000_000_000.0
