"""The records of a document, and their order."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, example, settings

from resume_hooks.parts.share.export.select_records import (
    ALL_RECORDS,
    CONVERSATION,
    LIVE_ONLY,
    select_conversation,
)
from resume_hooks.reading.outline import BRANCH, COMPACTED, LIVE
from resume_hooks.sessions.locate import session_file
from tests.builders import SESSION, ConfigHome, assistant, last_prompt, user, write_session
from tests.derive.test_orders import Client, of_any_order
from tests.parts.share.export.conftest import talk


def numbers(path: Path | str, what: str = CONVERSATION) -> list[int]:
    """The lines that are reported, in their order."""
    return [row.number for row in select_conversation(session_file(str(path)), what, set()).nodes]


def test_the_whole_conversation_includes_compacted_turns(session: Path) -> None:
    """By default everything that led to the end; a resume would send only messages since the compaction."""
    assert numbers(session) == list(range(20))
    assert numbers(session, LIVE_ONLY) == list(range(5, 20))
    found = select_conversation(session_file(str(session)), CONVERSATION, set())
    assert (found.places_by_line[0], found.places_by_line[7]) == (COMPACTED, LIVE)
    assert [turn.number for turn in found.turns_by_line.values()] == [1, 2, 3]
    assert (found.tokens, found.damaged_line_count, found.repeated_record_count) == (2_500, 0, 0)


def test_a_branch_that_was_left(config_home: ConfigHome) -> None:
    """It is reported only where everything is, and says what it is."""
    records = [
        user("first", uuid="u0"),
        assistant("one", uuid="a1", parent="u0", ts=1),
        user("left", uuid="u2", parent="a1", ts=2),
        assistant("gone", uuid="a3", parent="u2", ts=3),
        user("taken", uuid="u4", parent="a1", ts=4),
        assistant("end", uuid="a5", parent="u4", ts=5),
        last_prompt("a5"),
    ]
    path = write_session(config_home.project(), SESSION, records)
    assert numbers(path) == [0, 1, 4, 5]
    assert numbers(path, ALL_RECORDS) == [0, 1, 2, 3, 4, 5]
    assert select_conversation(session_file(path), ALL_RECORDS, set()).places_by_line[2] == BRANCH


def test_copied_records_are_not_exported_again(config_home: ConfigHome) -> None:
    """A child contains its parent's records, under the same ids or with a reference to them."""
    parent = write_session(config_home.project(), SESSION, talk())
    known = set[str]()
    select_conversation(session_file(parent), CONVERSATION, known)
    rows = talk()[:3]
    copied = [
        {**row, "uuid": f"new-{n}", "forkedFrom": {"messageUuid": row["uuid"]}}
        for n, row in enumerate(rows)
    ]
    links = [{**row, "parentUuid": f"new-{n - 1}" if n else None} for n, row in enumerate(copied)]
    fresh = assistant("more", uuid="new-3", parent="new-2", ts=30)
    child = write_session(config_home.project("/home/user/other"), SESSION, [*links, fresh])
    found = select_conversation(session_file(child), CONVERSATION, known)
    assert ([row.number for row in found.nodes], found.repeated_record_count) == ([3], 3)


def test_compactions_that_lead_in_a_circle(config_home: ConfigHome) -> None:
    """A forged way back ends."""
    rows = talk()[:8]
    rows[5] = {**rows[5], "logicalParentUuid": rows[7]["uuid"]}
    path = write_session(config_home.project(), SESSION, rows)
    assert numbers(path) == [0, 1, 2, 3, 4, 5, 6, 7] or numbers(path) == [5, 6, 7]


def test_records_without_links(config_home: ConfigHome) -> None:
    """A plain export is reported in the order of its file."""
    rows = [
        {"type": kind, "sessionId": SESSION, "message": {"role": kind, "content": kind}}
        for kind in ("user", "assistant")
    ]
    path = write_session(config_home.project(), SESSION, [*rows, b"no record"])
    assert numbers(path) == [0, 1]
    assert select_conversation(session_file(path), CONVERSATION, set()).damaged_line_count == 1


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@example(None, ["trim here", "prompt", "trim"])
@of_any_order
def test_each_call_stands_once(begun: Path | None, steps: list[str]) -> None:
    """Also where a trim in place wrote it a second time."""
    with tempfile.TemporaryDirectory() as home:
        client = Client(home, begun)
        client.play(steps)
        for path in client.sessions():
            calls = [
                call
                for row in select_conversation(session_file(path), CONVERSATION, set()).nodes
                for call in row.calls
            ]
            assert len(calls) == len(set(calls))
