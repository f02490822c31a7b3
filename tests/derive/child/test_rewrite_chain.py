"""Tests that a rewritten chain has the parent's records in a form that every client accepts."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.child.rewrite_chain import (
    DROPPED_PROMPT_PREFIX,
    ChainRewrite,
    Edit,
    plan_chain_rewrite,
)
from resume_hooks.errors import SessionNotFound
from resume_hooks.sessions.lineage_block import LINEAGE_END_MARKER, LINEAGE_START_MARKER
from resume_hooks.sessions.opening_layout import ChildAttributes
from resume_hooks.shared_values import PROMPT_HELD_MESSAGE
from resume_hooks.transcripts.invariants import check_session
from resume_hooks.transcripts.placeholders import MISSING_RESULT_TEXT
from resume_hooks.transcripts.records import Record, get_message, join_text_blocks, parse_record
from resume_hooks.transcripts.transcript import scan_transcript
from resume_hooks.transcripts.write_scan import CopyPreparationObserver
from tests.builders import (
    CLIENT_VERSION,
    CWD,
    SESSION,
    assistant,
    attachment,
    boundary,
    call,
    conversation,
    iso_time,
    line,
    progress,
    result,
    session_bytes,
    session_id,
    summary,
    system,
    tool_result,
    tool_use,
    user,
)

CHILD_ID = session_id(5)
CHILD_ATTRIBUTES = ChildAttributes(CHILD_ID, CWD, "main", CLIENT_VERSION, iso_time(10_000))
LINEAGE_BLOCK = f"{LINEAGE_START_MARKER}\nnew\n{LINEAGE_END_MARKER}"


def plan_rewrite(
    folder: Path, rows: list[Any], edits: Mapping[int, Edit] | None = None, **rewrite_options: Any
) -> ChainRewrite:
    """Write a parent with these records and plan the rewritten chain of a child."""
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(session_bytes(rows))
    survey = CopyPreparationObserver()
    transcript = scan_transcript(str(path), observers=[survey])
    how = {
        "first_line": b'{"head":1}',
        "lineage": LINEAGE_BLOCK,
        "edits": edits,
        "clears_token_counts": True,
        **rewrite_options,
    }
    return plan_chain_rewrite(
        Draft("trim", CHILD_ATTRIBUTES, str(folder / "child.tmp"), "child"),
        transcript,
        survey,
        **how,
    )


def write_and_read_child_lines(
    folder: Path, rows: list[Any], edits: Mapping[int, Edit] | None = None, **rewrite_options: Any
) -> list[bytes]:
    """Write a child, check it, and return its lines without line breaks."""
    found = list(plan_rewrite(folder, rows, edits, **rewrite_options).lines())
    path = folder / "child.tmp"
    path.write_bytes(b"".join(found))
    path.chmod(0o600)
    assert [check.name for check in check_session(str(path), CHILD_ID) if not check.ok] == []
    return [body.removesuffix(b"\n") for body in found]


def write_and_read_child_records(
    folder: Path, rows: list[Any], edits: Mapping[int, Edit] | None = None, **rewrite_options: Any
) -> list[Record]:
    """Write a child and return those of its records that have a uuid, except the lineage."""
    whole = [
        parse_record(body) or {}
        for body in write_and_read_child_lines(folder, rows, edits, **rewrite_options)
    ]
    return [row for row in whole if "uuid" in row and join_text_blocks(row) != LINEAGE_BLOCK]


def list_record_uuids(rows: list[Record]) -> list[str]:
    """Return the uuids of the records."""
    return [row["uuid"] for row in rows]


def test_lines_are_copied_byte_for_byte(tmp_path: Path) -> None:
    """The parent's lines are copied with the child's session id. All other bytes are unchanged.

    The metadata line and the lineage come first, and the parent's first record follows the lineage.
    """
    rows = conversation(2)
    found = write_and_read_child_lines(tmp_path, rows, clears_token_counts=False)
    lineage = parse_record(found[1])
    assert lineage is not None
    assert found[0] == b'{"head":1}'
    wanted = [line(row).replace(SESSION.encode(), CHILD_ID.encode()) for row in rows]
    wanted[0] = wanted[0].replace(
        b'"parentUuid":null', f'"parentUuid":"{lineage["uuid"]}"'.encode()
    )
    assert found[2:5] == wanted[:3]
    assert found[5] == wanted[3]


def test_token_counts_are_zeroed_if_the_session_shrank(tmp_path: Path) -> None:
    """Token counts are set to zero if the session shrank, and kept otherwise."""
    assert (
        get_message(write_and_read_child_records(tmp_path, conversation(1))[1])["usage"][
            "cache_read_input_tokens"
        ]
        == 0
    )
    assert (
        get_message(
            write_and_read_child_records(tmp_path, conversation(1), clears_token_counts=False)[1]
        )["usage"]["cache_read_input_tokens"]
        > 0
    )


@pytest.mark.parametrize("call_count", [1, 2, 3])
def test_each_record_follows_the_previous_one(tmp_path: Path, call_count: int) -> None:
    """Each record of the child follows the previous one, and parallel calls are next to each other.

    Progress records are omitted.
    """
    rows = [user("go", uuid="u"), progress(uuid="p", parent="u", ts=1)]
    for number in range(call_count):
        above = "p" if not number else f"a{number - 1}"
        rows.append(
            tool_use(f"t{number}", uuid=f"a{number}", parent=above, ts=2 + number, message_id="m")
        )
    rows += [
        tool_result(f"t{n}", uuid=f"r{n}", parent=f"a{n}", ts=9 + n) for n in range(call_count)
    ]
    rows.append(assistant("done", uuid="end", parent=f"r{call_count - 1}", ts=20))
    found = write_and_read_child_records(tmp_path, rows)
    calls, results = [f"a{n}" for n in range(call_count)], [f"r{n}" for n in range(call_count)]
    assert list_record_uuids(found) == ["u", *calls, *results, "end"]
    assert [row["parentUuid"] for row in found[1:]] == list_record_uuids(found)[:-1]


@pytest.mark.parametrize(
    ("parent_seconds", "child_seconds"),
    [
        ([0, 1, 2, 3], [0, 1, 2, 3]),
        ([5, 1, 2, 3], [5, 5, 5, 5.001]),
        ([1, 1, 1, 1], [1, 1, 1, 1.001]),
        ([None, 4, None, 9], [4, 4, 4, 9]),
    ],
)
def test_timestamps_never_decrease(
    tmp_path: Path, parent_seconds: list[float | None], child_seconds: list[float]
) -> None:
    """Timestamps never decrease, and the last timestamp is later than all others.

    A missing timestamp is copied from a neighbouring record.
    """
    rows = conversation(2)
    for row, at in zip(rows, parent_seconds, strict=True):
        row["timestamp"] = None if at is None else iso_time(at)
    assert [row["timestamp"] for row in write_and_read_child_records(tmp_path, rows)] == [
        iso_time(at) for at in child_seconds
    ]


def test_the_last_kept_record_has_the_latest_timestamp(tmp_path: Path) -> None:
    """If a blank answer at the end is dropped, the answer before it gets the latest timestamp."""
    rows = [*conversation(1), assistant(" ", uuid="z", parent="r1", ts=1)]
    rows[1]["timestamp"] = rows[0]["timestamp"]
    found = write_and_read_child_records(tmp_path, rows)
    assert list_record_uuids(found) == ["r0", "r1"]
    assert found[1]["timestamp"] == iso_time(0.001)


def test_unanswered_calls_get_an_error_result(tmp_path: Path) -> None:
    """If calls have no result, an error result for each of them is added at the end of the child."""
    rows = [user("go", uuid="u"), assistant([call("t1"), call("t2")], uuid="a", parent="u", ts=1)]
    stubs = write_and_read_child_records(tmp_path, rows)[2:]
    blocks = [block for row in stubs for block in row["message"]["content"]]
    assert blocks == [result(name, MISSING_RESULT_TEXT, is_error=True) for name in ("t1", "t2")]


def test_an_edit_finds_the_blocks_of_the_parent(tmp_path: Path) -> None:
    """An edit of a record finds its blocks at their original positions, including blank ones."""
    rows = [user("go", uuid="u"), tool_use("t", uuid="a", parent="u", ts=1)]
    rows.append(
        user([{"type": "text", "text": ""}, result("t", "long")], uuid="r", parent="a", ts=2)
    )

    def shorten_result(record: Record) -> Record:
        record["message"]["content"][1]["content"] = "short"
        return record

    assert write_and_read_child_records(tmp_path, rows, {2: shorten_result})[2]["message"][
        "content"
    ] == [result("t", "short")]


def test_an_edit_may_remove_a_record(tmp_path: Path) -> None:
    """If an edit removes records, the next record follows the record before the removed ones.

    The lineage still comes first.
    """
    rows = conversation(2)
    found = write_and_read_child_records(
        tmp_path, rows, {0: lambda record: None, 1: lambda record: None}
    )
    assert list_record_uuids(found) == ["r2", "r3"]
    assert (
        join_text_blocks(
            parse_record(write_and_read_child_lines(tmp_path, rows, {0: lambda record: None})[1])
            or {}
        )
        == LINEAGE_BLOCK
    )


def make_session_start_message(text: str) -> Record:
    """Return the record of a message that a hook shows when a session starts."""
    body = {"type": "hook_system_message", "content": text, "hookName": "SessionStart:resume"}
    return attachment("", uuid="s", parent="a0") | {"attachment": body}


COLD_CACHE_NOTICE = (
    "resume-hooks: The prompt cache expired; your next prompt resends all 124,878 tokens"
)


@pytest.mark.parametrize(
    ("record", "is_copied"),
    [
        (system("informational", uuid="s", parent="a0", content=COLD_CACHE_NOTICE), False),
        (make_session_start_message(COLD_CACHE_NOTICE), False),
        (make_session_start_message("x"), True),
        (
            system(
                "informational", uuid="s", parent="a0", content=f"Not ours. {COLD_CACHE_NOTICE}"
            ),
            True,
        ),
        (
            system(
                "informational",
                uuid="s",
                parent="a0",
                content=f"{DROPPED_PROMPT_PREFIX}{PROMPT_HELD_MESSAGE}",
            ),
            False,
        ),
        (
            system(
                "informational", uuid="s", parent="a0", content=f"{DROPPED_PROMPT_PREFIX}another's"
            ),
            True,
        ),
    ],
)
def test_the_plugins_notices_about_the_parent_are_not_copied(
    tmp_path: Path, record: Record, *, is_copied: bool
) -> None:
    """This plugin's notices about a cold cache or a held prompt are not copied. Other notices are copied."""
    rows = [
        user("go", uuid="u0"),
        assistant("done", uuid="a0", parent="u0", ts=1),
        {**record, "timestamp": iso_time(2)},
        user("on", uuid="u1", parent="s", ts=3),
        assistant("done", uuid="a1", parent="u1", ts=4),
    ]
    found = write_and_read_child_records(tmp_path, rows)
    assert list_record_uuids(found) == ["u0", "a0", *(["s"] if is_copied else []), "u1", "a1"]
    assert [row["parentUuid"] for row in found[1:]] == list_record_uuids(found)[:-1]


def test_unmatched_calls_and_results_are_removed(tmp_path: Path) -> None:
    """A call without a result and a result without a call are removed.

    A record is also removed if it contains no other block.
    """
    rows = [
        user("go", uuid="u"),
        assistant([{"type": "text", "text": "try"}, call("t1")], uuid="a", parent="u", ts=1),
    ]
    rows += [
        user("stop", uuid="b", parent="a", ts=2),
        tool_result("t9", uuid="c", parent="b", ts=3),
    ]
    rows.append(assistant("so", uuid="d", parent="c", ts=4))
    found = write_and_read_child_records(tmp_path, rows)
    assert list_record_uuids(found) == ["u", "a", "b", "d"]
    assert found[1]["message"]["content"] == [{"type": "text", "text": "try"}]


def test_a_compacted_session_starts_at_its_boundary(tmp_path: Path) -> None:
    """The child of a compacted session starts with the boundary, the summary and the lineage.

    Then come the messages that the compaction kept. The boundary no longer lists them.
    """
    kept = {"anchorUuid": "s", "uuids": ["r2", "r3"], "allUuids": ["r2", "r3"]}
    marks = [
        boundary(uuid="b", before="r3", ts=5, preserved=kept),
        summary("sum", uuid="s", parent="b", ts=6),
    ]
    rows = [*conversation(2), *marks, user("on", uuid="n", parent="s", ts=7)]
    whole = [parse_record(body) or {} for body in write_and_read_child_lines(tmp_path, rows)]
    chain = [row for row in whole if "uuid" in row]
    assert [row["uuid"] for row in chain if join_text_blocks(row) != LINEAGE_BLOCK] == [
        "b",
        "s",
        "r2",
        "r3",
        "n",
    ]
    assert join_text_blocks(chain[2]) == LINEAGE_BLOCK
    assert chain[0]["parentUuid"] is None
    assert chain[0]["compactMetadata"] == {"trigger": "auto", "preTokens": 150_000}


@pytest.mark.parametrize(
    "record_fields",
    [{"isMeta": True}, {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}],
)
def test_the_lineage_in_an_opening_is_replaced(
    tmp_path: Path, record_fields: dict[str, Any]
) -> None:
    """The child's lineage replaces the lineage in the parent's opening.

    The text after the lineage is kept.
    """
    said = f"{LINEAGE_START_MARKER}\nold\n{LINEAGE_END_MARKER}\n\nNext step, as the user put it:\ngo on"
    rows = [user(said, uuid="o", **record_fields), assistant("card", uuid="a", parent="o", ts=1)]
    found = write_and_read_child_records(tmp_path, rows)
    assert list_record_uuids(found) == ["o", "a"]
    assert join_text_blocks(found[0]) == f"{LINEAGE_BLOCK}\n\nNext step, as the user put it:\ngo on"


@pytest.mark.parametrize(
    "prompt",
    [
        f"{LINEAGE_START_MARKER}\nold\n{LINEAGE_END_MARKER} hm?",
        f"{LINEAGE_START_MARKER} without an end",
    ],
)
def test_a_text_that_only_resembles_an_opening_is_kept(tmp_path: Path, prompt: str) -> None:
    """A prompt that contains an opening's markers, or a block without an end, is copied unchanged."""
    meta = LINEAGE_END_MARKER not in prompt
    rows = [
        user("go", uuid="u"),
        user(prompt, uuid="q", parent="u", ts=1, isMeta=meta),
        assistant("x", uuid="a", parent="q", ts=2),
    ]
    assert join_text_blocks(write_and_read_child_records(tmp_path, rows)[1]) == prompt


def test_a_prompt_sent_with_another_uuid_gets_that_uuid(tmp_path: Path) -> None:
    """If a prompt was sent with a uuid other than its own, the child has the uuid that was sent.

    The answer to the prompt stays linked to it.
    """
    rows = [
        user("go", uuid="own", sentAsUuid="sent"),
        assistant("x", uuid="a", parent="sent", ts=1),
    ]
    assert list_record_uuids(write_and_read_child_records(tmp_path, rows)) == ["sent", "a"]


@pytest.mark.parametrize("value", [None, "", 5, "else"])
def test_a_record_gets_the_childs_session_id(tmp_path: Path, value: object) -> None:
    """Each record gets the child's session id, unless the record has no session id at all."""
    rows = conversation(2)
    rows[1]["sessionId"] = value
    del rows[2]["sessionId"]
    found = write_and_read_child_records(tmp_path, rows)
    assert [row.get("sessionId") for row in found] == [CHILD_ID, CHILD_ID, None, CHILD_ID]


@pytest.mark.parametrize(
    ("parent_entrypoint", "child_entrypoint"),
    [("sdk-cli", "cli"), ("cli", "cli"), ("claude-vscode", "claude-vscode"), (None, None)],
)
def test_the_child_of_a_headless_session_is_listed(
    tmp_path: Path, parent_entrypoint: str | None, child_entrypoint: str | None
) -> None:
    """The first record of a headless session's child has the entrypoint of a terminal.

    Otherwise the client would not list the child.
    """
    rows = conversation(2)
    for row in rows:
        row.pop("entrypoint", None)
        if parent_entrypoint:
            row["entrypoint"] = parent_entrypoint
    found = write_and_read_child_records(tmp_path, rows)
    assert [row.get("entrypoint") for row in found] == [child_entrypoint, *[parent_entrypoint] * 3]


@pytest.mark.parametrize("invalid_bytes", [b"\\ud83d", b"\xe9"])
def test_an_invalid_character_is_replaced(tmp_path: Path, invalid_bytes: bytes) -> None:
    """An unpaired surrogate or an invalid byte is replaced with U+FFFD, because the API refuses it."""
    prompt, answer = conversation(1)
    found = write_and_read_child_records(
        tmp_path, [line(prompt).replace(b"prompt 0", b"prompt " + invalid_bytes), answer]
    )
    assert join_text_blocks(found[0]) == "prompt \ufffd"


@pytest.mark.parametrize("value", ["", 5, "gone"])
def test_the_first_record_follows_the_lineage(tmp_path: Path, value: object) -> None:
    """The child's first record follows the lineage, whatever its own parent was."""
    rows = [*conversation(1)]
    rows[0]["parentUuid"] = value
    found = [
        row
        for body in write_and_read_child_lines(tmp_path, rows)
        if "uuid" in (row := parse_record(body) or {})
    ]
    assert found[1]["parentUuid"] == found[0]["uuid"]


def test_a_session_that_changes_during_the_rewrite_is_an_error(tmp_path: Path) -> None:
    """If the parent changes or disappears during the rewrite, ``SessionNotFound`` is raised."""
    child = plan_rewrite(tmp_path, conversation(2))
    path = Path(child.source_path)
    path.write_bytes(b"x" * path.stat().st_size)
    with pytest.raises(SessionNotFound, match="changed while it was read"):
        list(child.lines())
    path.unlink()
    with pytest.raises(SessionNotFound, match="can't be read"):
        list(child.lines())


def test_metadata_lines_follow_the_chain(tmp_path: Path) -> None:
    """The given metadata lines are written unchanged after the chain."""
    assert (
        write_and_read_child_lines(
            tmp_path, conversation(1), metadata_lines=[b'{"type":"tag","tag":"x"}']
        )[-1]
        == b'{"type":"tag","tag":"x"}'
    )


@pytest.mark.parametrize("instant", ["9999-12-31T23:59:59.999Z", "0001-01-01T00:00:00.000Z"])
def test_impossible_timestamps_are_replaced(tmp_path: Path, instant: str) -> None:
    """Timestamps at the limits of the calendar are replaced.

    Afterwards the timestamps don't decrease, and the last one is the latest.
    """
    rows = conversation(2)
    rows[1]["timestamp"] = rows[3]["timestamp"] = instant
    found = [
        row["timestamp"]
        for body in write_and_read_child_lines(tmp_path, rows)
        if "timestamp" in (row := parse_record(body) or {})
    ]
    assert found == sorted(found)
    assert found[-1] > found[-2]
    assert instant not in found


def test_a_uuid_with_escapes_is_the_same_uuid(tmp_path: Path) -> None:
    """A record whose uuid is written with an escaped character is linked correctly."""
    rows = [line(row).replace(b'"uuid":"r1"', b'"uuid":"\\u00721"') for row in conversation(1)]
    found = [
        row["uuid"]
        for body in write_and_read_child_lines(tmp_path, rows)
        if "uuid" in (row := parse_record(body) or {})
    ]
    assert found[-2:] == ["r0", "r1"]
