"""Tests of which records a document has, and in which order."""

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
from tests.derive.test_orders import SimulatedClient, given_session_and_steps
from tests.parts.share.export.conftest import records_of_every_kind


def selected_line_numbers(path: Path | str, record_range: str = CONVERSATION) -> list[int]:
    """Return the line numbers of the records that ``select_conversation`` selects, in order."""
    return [
        row.line_number
        for row in select_conversation(session_file(str(path)), record_range, set()).nodes
    ]


def test_the_whole_conversation_includes_compacted_turns(session_of_every_kind: Path) -> None:
    """A document includes the turns before a compaction by default.

    With ``LIVE_ONLY`` the document starts after the compaction.
    """
    assert selected_line_numbers(session_of_every_kind) == list(range(20))
    assert selected_line_numbers(session_of_every_kind, LIVE_ONLY) == list(range(5, 20))
    found = select_conversation(session_file(str(session_of_every_kind)), CONVERSATION, set())
    assert (found.record_states_by_line_number[0], found.record_states_by_line_number[7]) == (
        COMPACTED,
        LIVE,
    )
    assert [turn.number for turn in found.turns_by_line.values()] == [1, 2, 3]
    assert (found.context_tokens, found.damaged_line_count, found.repeated_record_count) == (
        2_500,
        0,
        0,
    )


def test_an_abandoned_branch_is_marked(config_home: ConfigHome) -> None:
    """Records of an abandoned branch are exported only with ``ALL_RECORDS``, and are marked."""
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
    assert selected_line_numbers(path) == [0, 1, 4, 5]
    assert selected_line_numbers(path, ALL_RECORDS) == [0, 1, 2, 3, 4, 5]
    assert (
        select_conversation(session_file(path), ALL_RECORDS, set()).record_states_by_line_number[2]
        == BRANCH
    )


def test_copied_records_are_not_exported_again(config_home: ConfigHome) -> None:
    """Records that a child copied from its parent are not exported a second time.

    A copied record has a new uuid and names the original's uuid in ``forkedFrom``.
    """
    parent = write_session(config_home.project(), SESSION, records_of_every_kind())
    known = set[str]()
    select_conversation(session_file(parent), CONVERSATION, known)
    rows = records_of_every_kind()[:3]
    copied = [
        {**row, "uuid": f"new-{n}", "forkedFrom": {"messageUuid": row["uuid"]}}
        for n, row in enumerate(rows)
    ]
    links = [{**row, "parentUuid": f"new-{n - 1}" if n else None} for n, row in enumerate(copied)]
    fresh = assistant("more", uuid="new-3", parent="new-2", ts=30)
    child = write_session(config_home.project("/home/user/other"), SESSION, [*links, fresh])
    found = select_conversation(session_file(child), CONVERSATION, known)
    assert ([row.line_number for row in found.nodes], found.repeated_record_count) == ([3], 3)


def test_a_cycle_of_compactions_ends(config_home: ConfigHome) -> None:
    """Compactions that refer to each other in a forged session are exported without an endless loop."""
    rows = records_of_every_kind()[:8]
    rows[5] = {**rows[5], "logicalParentUuid": rows[7]["uuid"]}
    path = write_session(config_home.project(), SESSION, rows)
    assert selected_line_numbers(path) == [0, 1, 2, 3, 4, 5, 6, 7] or selected_line_numbers(
        path
    ) == [5, 6, 7]


def test_records_without_links_keep_the_file_order(config_home: ConfigHome) -> None:
    """Records without links, as in a plain export, are exported in the order of the file."""
    rows = [
        {"type": kind, "sessionId": SESSION, "message": {"role": kind, "content": kind}}
        for kind in ("user", "assistant")
    ]
    path = write_session(config_home.project(), SESSION, [*rows, b"no record"])
    assert selected_line_numbers(path) == [0, 1]
    assert select_conversation(session_file(path), CONVERSATION, set()).damaged_line_count == 1


@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@example(None, ["trim here", "prompt", "trim"])
@given_session_and_steps
def test_each_call_is_exported_once(first_session: Path | None, steps: list[str]) -> None:
    """Each call is exported once, even if a trim in place wrote it again."""
    with tempfile.TemporaryDirectory() as home:
        client = SimulatedClient(home, first_session)
        client.append_steps(steps)
        for path in client.list_session_files():
            calls = [
                call
                for row in select_conversation(session_file(path), CONVERSATION, set()).nodes
                for call in row.call_ids
            ]
            assert len(calls) == len(set(calls))
