"""Tests of ``HeadTail``, which reads a session's values from both ends of its file."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.errors import SessionNotFound
from resume_hooks.system.text import collapse_line
from resume_hooks.transcripts import records
from resume_hooks.transcripts.context_size import measure_last_records
from resume_hooks.transcripts.head_tail import (
    BYTES_READ_AT_EACH_END,
    BYTES_READ_AT_EACH_END_ON_RETRY,
    HeadTail,
)
from resume_hooks.transcripts.metadata_records import OPENING_AFTER_CLEAR_PREFIX
from resume_hooks.transcripts.parted_text import split_into_parts
from tests.builders import (
    CWD,
    SESSION,
    Record,
    assistant,
    attachment,
    conversation,
    custom_title,
    iso_time,
    line,
    session_bytes,
    session_id,
    summary,
    user,
    write_session,
)

OPENED_FILE_NOTE = (
    "<ide_opened_file>The user opened the file /a/b.toml in the IDE.</ide_opened_file>"
)
PADDING_RECORD: Record = {
    "type": "file-history-snapshot",
    "messageId": "x",
    "snapshot": {"padding": "x" * 3 * BYTES_READ_AT_EACH_END},
}
TITLE: Record = custom_title("Mine")
GENERATED_TITLE: Record = {"type": "ai-title", "aiTitle": "Generated", "sessionId": SESSION}
SUMMARY: Record = {"type": "summary", "summary": "Summed up", "leafUuid": "x"}
HANDOFF_NOTICE = (
    f"{OPENING_AFTER_CLEAR_PREFIX}that left this:\n\n1. Old · {session_id(1)}\n"
    f"2. fix it · handoff · {SESSION} · this session"
)
CLEAR_RECORD: Record = user("<command-name>/clear</command-name>", uuid="k")
CHILD_METADATA: Record = {
    "continue_metadata": {"parent_session_id": session_id(9), "continued_at": iso_time(100)}
}
OPENING_RECORD = summary("lineage", uuid="s", parent=None, ts=100)
CARD_RECORD = assistant("card", uuid="c", parent="s", ts=100.001, model="<synthetic>")


def head_tail_of_records(
    folder: Path, records: Sequence[Record | bytes], **options: Any
) -> HeadTail:
    """Write a session file with these records and return its ``HeadTail``."""
    return HeadTail(write_session(folder, SESSION, records, **options))


@pytest.mark.parametrize(
    ("records", "title"),
    [
        ([*conversation(1), TITLE, GENERATED_TITLE, SUMMARY], "Mine"),
        ([*conversation(1), GENERATED_TITLE, SUMMARY], "Generated"),
        ([SUMMARY, *conversation(1)], "Summed up"),
        (conversation(1), "prompt 0"),
        ([], "(no prompt yet)"),
        ([TITLE, PADDING_RECORD, *conversation(1)], "Mine"),
        ([*conversation(1), PADDING_RECORD, TITLE], "Mine"),
        ([TITLE, *conversation(1), PADDING_RECORD, custom_title("Newer")], "Newer"),
        ([*conversation(1), TITLE, custom_title("")], "prompt 0"),
        ([custom_title("a\n  b\t" + "c " * 100)], "a b " + "c " * 37 + "c\u2026"),
        ([custom_title("a\n  b\t" + "c" * 100)], "a b\u2026"),
        ([user("caveat", uuid="m", isMeta=True), user("real", uuid="u", parent="m")], "real"),
        (
            [user("<command-message>x</command-message><command-name>/x</command-name>", uuid="u")],
            "/x",
        ),
        (
            [user(f"{OPENED_FILE_NOTE}\nfix the pool", uuid="u")],
            "fix the pool",
        ),
        (
            [user(OPENED_FILE_NOTE, uuid="u"), user("mend it", uuid="v", parent="u")],
            "mend it",
        ),
        ([user('<pasted_content id="1">\na trace</pasted_content>', uuid="u")], "a trace"),
        (
            [user('say "custom-title"', uuid="u"), {"type": "custom-title", "customTitle": 7}],
            'say "custom-title"',
        ),
        ([custom_title("\ud7ff\U0001f680")], "\ud7ff\U0001f680"),
        ([PADDING_RECORD, *conversation(1), PADDING_RECORD], "prompt 0"),
        ([user("x" * 3 * BYTES_READ_AT_EACH_END, uuid="u"), PADDING_RECORD], "x" * 8 + "\u2026"),
        (
            [
                {"pad": "x" * BYTES_READ_AT_EACH_END_ON_RETRY},
                *conversation(1),
                PADDING_RECORD,
                {"type": "last-prompt", "lastPrompt": "Last"},
            ],
            "Last",
        ),
        (
            [{"pad": "x" * BYTES_READ_AT_EACH_END_ON_RETRY}, *conversation(1), PADDING_RECORD],
            "(no prompt yet)",
        ),
        ([*conversation(1), {"type": "last-prompt", "lastPrompt": "Last"}], "prompt 0"),
        ([TITLE, CLEAR_RECORD], "Mine \u00b7 clear"),
        (
            [TITLE, attachment(OPENING_AFTER_CLEAR_PREFIX, uuid="h", parent=None), CLEAR_RECORD],
            "Mine \u00b7 handoff",
        ),
        (
            [
                TITLE,
                attachment(HANDOFF_NOTICE, uuid="h", parent=None),
                CLEAR_RECORD,
                GENERATED_TITLE,
            ],
            "fix it \u00b7 handoff",
        ),
        (
            [
                attachment(HANDOFF_NOTICE, uuid="h", parent=None),
                CLEAR_RECORD,
                custom_title("Newer"),
            ],
            "Newer",
        ),
        ([TITLE, CLEAR_RECORD, PADDING_RECORD, TITLE], "Mine \u00b7 clear"),
        ([TITLE, CLEAR_RECORD, custom_title("Newer")], "Newer"),
        ([CLEAR_RECORD, TITLE], "Mine"),
    ],
)
def test_the_best_kind_of_title_is_used(tmp_path: Path, records: list[Record], title: str) -> None:
    """The title is the last custom title, or else a generated title, a summary, or the first prompt.

    The title is a single line. A title that ``/clear`` copied gets the ending "· clear" or "·
    handoff".
    """
    assert head_tail_of_records(tmp_path, records).title == title


def test_the_title_of_a_handoff_in_several_parts_is_found(tmp_path: Path) -> None:
    """The title of a handoff is found in an opening that was passed to the client in several parts."""
    first, *others = split_into_parts(HANDOFF_NOTICE + "\n" + "what was said\n" * 2_500)
    told = [hook_success(part, number) for number, part in enumerate([first, *others])]
    whole = attachment("", uuid="h", parent=None)
    whole["attachment"]["content"] = [first, *others]
    whole["rendered"][0]["content"] = "\n".join([first, *others])
    behind = head_tail_of_records(tmp_path, [TITLE, *told, whole, CLEAR_RECORD, GENERATED_TITLE])
    assert len(session_bytes([*told, whole])) > BYTES_READ_AT_EACH_END
    assert behind.title == "fix it \u00b7 handoff"
    odd: list[Record] = [
        {**told[0], "attachment": {**told[0]["attachment"], "stdout": text}} for text in ("x", "[]")
    ]
    assert head_tail_of_records(tmp_path, [TITLE, *odd, CLEAR_RECORD]).title == "Mine \u00b7 clear"


def hook_success(context: str, number: int) -> Record:
    """Return the client's record of a hook that ran when the session started after ``/clear``."""
    output = {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": context}}
    row = attachment("", uuid=f"s{number}", parent=None)
    del row["rendered"]
    said = {
        "type": "hook_success",
        "hookName": "SessionStart:clear",
        "content": "",
        "stdout": json.dumps(output),
    }
    return {**row, "attachment": said}


def test_an_answer_before_long_client_records_is_found(tmp_path: Path) -> None:
    """The model is found even if the client writes a long record after the first answer.

    Client 2.1.330 writes a record of 67 KB there, with the names of models.
    """
    snapshot = attachment('"model": ' * 8_000, uuid="p", parent="a1")
    end = head_tail_of_records(
        tmp_path, [PADDING_RECORD, *conversation(2), snapshot, PADDING_RECORD | {"snapshot": {}}]
    )
    assert end.model == "claude-opus-4-5"


@pytest.mark.parametrize(("recorded", "shown"), [("HEAD", ""), ("", ""), ("main", "main")])
def test_no_branch_is_shown_outside_a_repository(tmp_path: Path, recorded: str, shown: str) -> None:
    """The branch HEAD, which the client records outside a repository, is not shown.

    ``recorded_branch`` returns it nevertheless, for use in a new session.
    """
    found = head_tail_of_records(tmp_path, [user("a", uuid="a", ts=1, gitBranch=recorded)])
    assert (found.branch, found.recorded_branch) == (shown, recorded)


def test_each_value_is_read_from_one_end_of_the_file(tmp_path: Path) -> None:
    """The folder and the start time come from the beginning of a file, and the other values from its end.

    The other values are the branch, the version, the tag and the end time.
    """
    first = user(
        "a", uuid="a", ts=1, version="2.1.1", gitBranch="old", cwd="/first", entrypoint="cli"
    )
    later = {"version": "2.1.9", "gitBranch": "new", "cwd": "/last", "entrypoint": "sdk-cli"}
    last = {**assistant("z", uuid="z", parent="a", ts=99), **later}
    tags: list[Record] = [{"type": "tag", "tag": "draft"}, {"type": "tag", "tag": "final"}]
    found = head_tail_of_records(tmp_path, [first, PADDING_RECORD, last, *tags], mtime=5)
    assert (found.cwd, found.branch, found.version, found.entrypoint) == (
        "/first",
        "new",
        "2.1.9",
        "cli",
    )
    assert found.tag == "final"
    assert (found.created_at, found.ended_at) == (iso_time(1), iso_time(99))
    assert (found.folders, found.mtime, found.size) == (
        ["/first", "/last"],
        5,
        os.path.getsize(found.path),
    )


def test_a_file_without_dates_has_the_time_of_the_file(tmp_path: Path) -> None:
    """If a file contains no valid times, the time of the file itself is used.

    An ISO time with an offset, such as "+01:00", is valid and is converted to UTC.
    """
    assert head_tail_of_records(tmp_path, [TITLE], mtime=0).created_at == "1970-01-01T00:00:00.000Z"
    odd = [
        {"type": "x", "timestamp": value}
        for value in (7, "soon", "2026-01-31T10:30:00+01:00", None)
    ]
    found = head_tail_of_records(tmp_path, odd, mtime=0)
    assert found.created_at == found.ended_at == "2026-01-31T09:30:00.000Z"


def test_the_end_is_the_time_of_the_last_message(tmp_path: Path) -> None:
    """A session ends at the time of its last message, but never before its start.

    The time of a record that was copied after the last message is ignored.
    """
    link: Record = {"type": "pr-link", "prNumber": 7, "timestamp": iso_time(1)}
    found = head_tail_of_records(
        tmp_path,
        [{**CHILD_METADATA, "timestamp": iso_time(100)}, OPENING_RECORD, CARD_RECORD, link],
    )
    assert (found.created_at, found.ended_at) == (iso_time(100), iso_time(100.001))
    copied = head_tail_of_records(
        tmp_path, [{**CHILD_METADATA, "timestamp": iso_time(100)}, user("a", uuid="a", ts=3), link]
    )
    assert (copied.created_at, copied.ended_at) == (iso_time(100), iso_time(100))
    assert head_tail_of_records(tmp_path, [TITLE, link]).ended_at == iso_time(1)


def test_a_first_line_longer_than_the_head_is_read(tmp_path: Path) -> None:
    """Fields at the start of a very long first line are found, even if the line is longer than the head."""
    found = head_tail_of_records(
        tmp_path,
        [
            user("x" * 3 * BYTES_READ_AT_EACH_END, uuid="u", ts=1),
            assistant("y", uuid="a", parent="u", ts=2),
        ],
    )
    assert (found.first_records, found.cwd) == ([], CWD)
    assert (found.ended_at, found.has_own_turns, found.is_sidechain) == (iso_time(2), True, False)
    big = user("x" * 3 * BYTES_READ_AT_EACH_END, uuid="u", isSidechain=True)
    assert head_tail_of_records(tmp_path, [big]).is_sidechain


@pytest.mark.parametrize(
    "size",
    [
        BYTES_READ_AT_EACH_END - 1,
        BYTES_READ_AT_EACH_END,
        BYTES_READ_AT_EACH_END + 1,
        BYTES_READ_AT_EACH_END + 2,
        2 * BYTES_READ_AT_EACH_END,
        2 * BYTES_READ_AT_EACH_END + 1,
    ],
)
def test_first_and_last_record_are_read_at_any_file_size(tmp_path: Path, size: int) -> None:
    """Whatever the size of a file is, its first and last record are read, and no record is read in part."""
    ends = [custom_title("first"), {**custom_title("last"), "type": "ai-title", "aiTitle": "last"}]
    room = size - len(session_bytes(ends)) - len(line({"pad": ""})) - 1
    found = head_tail_of_records(tmp_path, [ends[0], {"pad": "x" * room}, ends[1]])
    assert found.size == size
    assert found.first_records[0] == ends[0]
    assert found.last_records[-1] == ends[1]
    assert found.custom_title == "first"


def test_a_record_that_fills_the_tail_is_found(tmp_path: Path) -> None:
    """A record that exactly fills the part read from the end of the file is found."""
    title = line(custom_title("Exact")) + b"\n"
    filling = b'{"pad":"' + b"x" * (BYTES_READ_AT_EACH_END - len(title) - 11) + b'"}\n'
    assert len(title + filling) == BYTES_READ_AT_EACH_END
    content: list[Record | bytes] = [PADDING_RECORD, title[:-1], filling[:-1]]
    assert head_tail_of_records(tmp_path, content).custom_title == "Exact"


@pytest.mark.parametrize("first_attachment_characters", [0, 60_000, 1_200_000])
def test_an_answer_before_large_attachments_is_found(
    tmp_path: Path, first_attachment_characters: int
) -> None:
    """The model and the tokens are found before a long attachment, and each prompt is counted once.

    Client 2.1.330 writes such a long attachment in the first turn.
    """
    path = tmp_path / f"{SESSION}.jsonl"
    rows = [
        user("read it", uuid="u"),
        attachment("s" * first_attachment_characters, uuid="a", parent="u"),
        assistant("done", uuid="r", parent="a", tokens=30_000),
        attachment("t" * 66_000, uuid="b", parent="r"),
    ]
    path.write_bytes(session_bytes(rows))
    ends = HeadTail(str(path))
    assert (ends.model, ends.prompt_count) == ("claude-opus-4-5", 1)
    assert (context := measure_last_records(ends.last_records)) is not None
    assert context.tokens == 30_000


def test_damaged_lines_hide_no_record(tmp_path: Path) -> None:
    """Invalid lines, a byte order mark, CRLF and a partial last line hide no record."""
    path = tmp_path / f"{SESSION}.jsonl"
    content = session_bytes([*conversation(1), TITLE]).replace(b"\n", b"\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + content + b'\xff\n{"torn')
    found = HeadTail(str(path))
    assert (found.title, found.first_prompt, found.has_own_turns) == ("Mine", "prompt 0", True)


@pytest.mark.parametrize(
    ("records", "has_own_turns", "was_continued"),
    [
        ([], False, False),
        ([TITLE], False, False),
        (conversation(1), True, True),
        ([user("caveat", uuid="m", isMeta=True)], False, False),
        ([user("<local-command-stdout>x</local-command-stdout>", uuid="m")], False, False),
        ([TITLE, PADDING_RECORD, TITLE], False, False),
        ([TITLE, PADDING_RECORD, *conversation(1), PADDING_RECORD, TITLE], True, True),
        (
            [CHILD_METADATA, PADDING_RECORD, user("go", uuid="u", ts=200), PADDING_RECORD, TITLE],
            True,
            True,
        ),
        ([CHILD_METADATA, OPENING_RECORD, CARD_RECORD, TITLE], False, False),
        ([CHILD_METADATA, OPENING_RECORD, CARD_RECORD, TITLE, PADDING_RECORD], False, False),
        (
            [CHILD_METADATA, OPENING_RECORD, CARD_RECORD, user("go", uuid="u", parent="c", ts=200)],
            True,
            True,
        ),
        ([CHILD_METADATA, *conversation(2)], True, False),
        ([CHILD_METADATA, *conversation(2), user("go", uuid="u", parent="r3", ts=200)], True, True),
        ([{"trim_metadata": {"trimmed_at": iso_time(100)}}, *conversation(2)], True, False),
        ([{"continue_metadata": {"continued_at": "soon"}}, *conversation(2)], True, True),
    ],
)
def test_was_continued_is_true_only_after_a_new_prompt(
    tmp_path: Path, records: list[Record], has_own_turns: bool, was_continued: bool
) -> None:
    """``was_continued`` is true for an original session with a prompt, and for a child with a new prompt."""
    found = head_tail_of_records(tmp_path, records)
    assert (found.has_own_turns, found.was_continued) == (has_own_turns, was_continued)


def test_all_records_of_a_small_file_are_returned_once(tmp_path: Path) -> None:
    """``all_records`` contains each record of a small file once. For a larger file, it is None."""
    for size in (
        100,
        BYTES_READ_AT_EACH_END,
        BYTES_READ_AT_EACH_END + 1,
        2 * BYTES_READ_AT_EACH_END - 1,
        2 * BYTES_READ_AT_EACH_END,
        2 * BYTES_READ_AT_EACH_END + 1,
    ):
        first, last = custom_title("first"), assistant("last", uuid="a")
        room = max(0, size - len(session_bytes([first, last])) - len(line({"pad": ""})) - 1)
        found = head_tail_of_records(tmp_path, [first, {"pad": "x" * room}, last])
        whole = [first, {"pad": "x" * room}, last]
        assert found.all_records == (whole if found.size <= 2 * BYTES_READ_AT_EACH_END else None)


@pytest.mark.parametrize(
    ("records", "is_listed", "is_headless_run", "prompt_count"),
    [
        ([], False, False, 0),
        ([TITLE], False, False, 0),
        (conversation(2), True, False, 2),
        ([CHILD_METADATA, OPENING_RECORD, CARD_RECORD, TITLE], True, False, 0),
        ([{**record, "isSidechain": True} for record in conversation(2)], False, False, 0),
        ([{**record, "entrypoint": "sdk-cli"} for record in conversation(1)], False, True, 1),
        ([{**record, "entrypoint": "sdk-py"} for record in conversation(2)], True, False, 2),
        ([TITLE, PADDING_RECORD, TITLE], False, False, 0),
        ([TITLE, {"pad": "x" * 2 * BYTES_READ_AT_EACH_END_ON_RETRY}, TITLE], True, False, 0),
    ],
)
def test_sessions_without_their_own_message_are_not_listed(
    tmp_path: Path,
    records: list[Record],
    *,
    is_listed: bool,
    is_headless_run: bool,
    prompt_count: int,
) -> None:
    """``is_listed`` is false for sub-agents, headless runs of one question, and empty sessions.

    A session without a message is empty. A long file is assumed to contain a message.
    """
    found = head_tail_of_records(tmp_path, records)
    assert (found.is_shown_in_lists, found.is_headless_run, found.prompt_count) == (
        is_listed,
        is_headless_run,
        prompt_count,
    )


def test_the_agent_name_and_the_pull_requests_are_found(tmp_path: Path) -> None:
    """The most recent name of a session's agent and all pull requests of the session are found."""
    links: list[Record] = [
        {"type": "pr-link", "prNumber": n, "prUrl": f"https://GitHub.com/a/b/pull/{n}"}
        for n in (1, 2)
    ]
    agents: list[Record] = [{"type": "agent-name", "agentName": name} for name in ("first", "last")]
    found = head_tail_of_records(tmp_path, [*conversation(1), *links, *agents])
    assert found.agent_name == "last"
    assert found.pull_requests == {
        "1",
        "2",
        "https://github.com/a/b/pull/1",
        "https://github.com/a/b/pull/2",
    }


def test_a_title_is_looked_up_without_parsing_other_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading a title parses only lines that have the words ``custom-title``."""
    said = [user('"custom-title"', uuid="q"), *conversation(2), custom_title("Old"), TITLE]
    ends = head_tail_of_records(
        tmp_path,
        [*said, user('Rename the "custom-title"?', uuid="r"), PADDING_RECORD, GENERATED_TITLE],
    )
    parsed: list[bytes] = []

    def parse_record(body: bytes) -> Record | None:
        parsed.append(body)
        return original_parse(body)

    original_parse = records.parse_record
    monkeypatch.setattr(records, "parse_record", parse_record)
    assert ends.custom_title == "Mine"
    assert [json.loads(body)["type"] for body in parsed] == ["custom-title"]


def test_a_missing_file_raises_session_not_found(tmp_path: Path) -> None:
    """A path without a file raises ``SessionNotFound`` with the path."""
    for path in (tmp_path / "gone.jsonl", tmp_path):
        with pytest.raises(SessionNotFound, match=str(path)):
            HeadTail(str(path))


def test_collapse_line_collapses_white_space() -> None:
    """``collapse_line`` replaces white space with single spaces and shortens the line with an ellipsis.

    There is no space before the ellipsis.
    """
    assert collapse_line(" a\n\u2028 b\u00a0c ", 80) == "a b c"
    assert collapse_line("ab cdef", 4) == "ab\u2026"
    assert collapse_line("abcd", 4) == "abcd"


def test_a_child_with_a_future_date_counts_as_continued(tmp_path: Path) -> None:
    """A child whose creation time is in the future is treated as continued.

    The child's new messages can't be distinguished from the copied messages.
    """
    head = {"continue_metadata": {"continued_at": "9999-01-01T00:00:00.000Z"}, "type": "system"}
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(session_bytes([head, *conversation(2)]))
    assert HeadTail(str(path)).was_continued
