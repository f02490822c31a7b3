"""Tests of the chooser's keys that change sessions on disk."""

from __future__ import annotations

from resume_hooks.cli.picker.choose import FORK_CONFIRMATION_HINT, KEY_ACTIONS
from resume_hooks.search.listing import ListedSession
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    boundary,
    conversation,
    summary,
    write_session,
)
from tests.hooks.session_list.rows import make_listed_session


def test_undoing_a_compaction_needs_two_presses(config_home: ConfigHome) -> None:
    """The first Ctrl+B shows a hint, or says that the session has no compaction.

    The second Ctrl+B writes a fork that ends before the compaction.
    """
    rows = [
        *conversation(2),
        boundary(uuid="b", before="r3", ts=100),
        summary("all of it", uuid="s", parent="b", ts=101),
        assistant("done", uuid="d", parent="s", ts=102, tokens=31_000),
    ]
    folder, fork = config_home.project(), KEY_ACTIONS["c-b"]
    one = make_listed_session(1)._replace(
        session_id=SESSION, path=write_session(folder, SESSION, rows)
    )
    assert fork(one, "") == FORK_CONFIRMATION_HINT
    assert len(list(folder.glob("*.jsonl"))) == 1
    made = fork(one, FORK_CONFIRMATION_HINT)
    assert isinstance(made, ListedSession)
    assert made.session_id != SESSION
    write_session(folder, SESSION, conversation(2))
    assert fork(one, "") == "The session has no compaction to undo."
