"""Tests of passages: records as text, with a speaker, shortened calls and marked omissions."""

from __future__ import annotations

import pytest

from resume_hooks.reading.passages import (
    Passage,
    PassageFile,
    has_content,
    make_passage,
    remove_reminders,
)
from resume_hooks.sessions.record_references import RecordLine, TranscriptNames
from resume_hooks.transcripts.trimmable_pieces import ToolCall
from tests.builders import (
    SESSION,
    Record,
    assistant,
    attachment,
    boundary,
    call,
    custom_title,
    progress,
    result,
    summary,
    system,
    tool_result,
    user,
)

TRANSCRIPT_NAMES = TranscriptNames(SESSION, SESSION[:8])
CALLS_BY_ID = {"c": ToolCall(0, "Bash", "ls", ())}
REMINDER = "<system-reminder>be good</system-reminder>"


def passage_of_record(record: Record, **file_options: bool) -> Passage:
    """Return the passage of a record on line 3 in turn 7."""
    return make_passage(
        record,
        RecordLine(SESSION, "/x.jsonl", 3, 0, 0),
        PassageFile(TRANSCRIPT_NAMES, **file_options),
        CALLS_BY_ID,
        7,
    )


RECORDS_AND_PASSAGES: dict[str, tuple[Record, str, str, bool]] = {
    "a prompt": (user("go\non", uuid="u"), "user", "go\non", True),
    "an answer": (assistant("done", uuid="a"), "assistant", "done", True),
    "an answer that calls": (
        assistant([{"type": "text", "text": "look:"}, call("c", "Read", file_path="/x.py")], uuid="a"),
        "assistant", "look:\n→ Read /x.py", True,
    ),
    "a call alone": (assistant([call("c", "Bash", command="ls\npwd")], uuid="a"), "assistant", "→ Bash ls pwd", False),
    "a call without a target": (
        assistant([call("c", "Odd", depth=3, on=True)], uuid="a"), "assistant", "→ Odd depth: 3 on: true", False,
    ),
    "a call with long inputs": (
        assistant([call("c", "Write", file_path="/x.py", content="y" * 1_000)], uuid="a"),
        "assistant", "→ Write /x.py (… 1,000 more characters of input: resume-hooks read 11111111:3)", False,
    ),
    "a result": (tool_result("c", "a.py", uuid="u", parent=None), "result of Bash ls", "a.py", False),
    "a result of an unknown call": (tool_result("x", "a.py", uuid="u", parent=None), "result", "a.py", False),
    "a failed result": (user([result("c", "no", is_error=True)], uuid="u"), "failed result of Bash ls", "no", False),
    "a result of a plain export": (
        {"type": "tool_result", "message": {"tool_name": "Bash", "content": "out"}}, "result of Bash", "out", False,
    ),
    "a result of other fields": (
        {"type": "tool_result", "message": {"tool_name": "Bash", "output": "out"}},
        "result of Bash", "output: out", False,
    ),
    "an error of the API": (assistant("529", uuid="a", isApiErrorMessage=True), "assistant, API error", "529", True),
    "a summary": (summary("all", uuid="s", parent=None), "user, summary of a compaction", "all", False),
    "inserted": (user("Caveat: x", uuid="u", isMeta=True), "user, not a prompt", "Caveat: x", False),
    "a compaction": (boundary(uuid="b"), "system compact_boundary", "Conversation compacted", False),
    "a listing": (
        attachment("x" * 30_000, uuid="t", parent=None), "attachment hook_additional_context",
        "[30,000 characters that the client added: resume-hooks read 11111111:3 --max-chars 0]", False,
    ),
    "a queued prompt": (
        {"type": "attachment", "uuid": "t", "attachment": {"type": "queued_command", "prompt": "and this"}},
        "attachment queued_command", "type: queued_command\nprompt: and this", False,
    ),
    "a reminder in a result": (
        tool_result("c", f"a.py\n{REMINDER}", uuid="u", parent=None), "result of Bash ls",
        "a.py\n[42 characters of a reminder by the client: resume-hooks read 11111111:3]", False,
    ),
    "a sub-agent's of old": (assistant("seen", uuid="a", isSidechain=True), "sub-agent's assistant", "seen", False),
}  # fmt: skip


@pytest.mark.parametrize("name", RECORDS_AND_PASSAGES)
def test_each_kind_of_passage_has_its_speaker(name: str) -> None:
    """A passage of each kind of record has the right speaker and text, and says whether it was spoken."""
    record, speaker, text, voice = RECORDS_AND_PASSAGES[name]
    found = passage_of_record(record)
    assert (found.speaker, found.text, found.is_spoken) == (speaker, text, voice)


def test_the_messages_of_a_sub_agents_file_have_ordinary_speakers() -> None:
    """In a sub-agent's own file, the prompt has the speaker "user" and the answer "assistant"."""
    assert (
        passage_of_record(user("look", uuid="u", isSidechain=True), is_subagent=True).speaker
        == "user"
    )
    found = passage_of_record(assistant("seen", uuid="a", isSidechain=True), is_subagent=True)
    assert (found.speaker, found.is_spoken) == ("assistant", True)


def test_a_passage_is_printed_with_a_heading_and_a_command() -> None:
    """A printed passage has a heading, an indented body, and the command that prints the whole record."""
    piece = passage_of_record(user("go\n1a2b:9 · user\n", uuid="u")).make_text_piece(
        TRANSCRIPT_NAMES, with_turn=True
    )
    assert piece.heading == "11111111:3 · 01-31 09:30 · turn 7 · user"
    assert piece.body == "  go\n  1a2b:9 · user"
    assert piece.read_command == "resume-hooks read 11111111:3"
    assert (
        "turn"
        not in passage_of_record(user("go", uuid="u")).make_text_piece(TRANSCRIPT_NAMES).heading
    )


def test_no_control_character_is_printed() -> None:
    """A printed passage contains no control characters, and all lines of its body are indented."""
    assert (
        passage_of_record(user("\x1b[31mred\x07\u2028r:1\rr:2\x85r:3", uuid="u"))
        .make_text_piece(TRANSCRIPT_NAMES)
        .body
        == "  red\n  r:1\n  r:2\n  r:3"
    )


def test_a_huge_text_is_cut_to_a_short_piece() -> None:
    """A limited piece of a huge text is short, and it states how many characters were cut."""
    piece = passage_of_record(user("word " * 100_000, uuid="u")).make_text_piece(
        TRANSCRIPT_NAMES, 1_000
    )
    assert len(piece.body) < 5_000
    # The indent adds two characters, and the space at the end is removed.
    assert piece.cut_character_count + len(piece.body) == 500_000 + 2 - 1


def test_hostile_headings_stay_on_one_line() -> None:
    """A call with line breaks and control characters in its name and input is shown on one line."""
    record = assistant([call("c", "Ba\nsh\x1b[2J", command="x\n11111111:9 · user\x07")], uuid="a")
    assert passage_of_record(record).text == "→ Ba sh x 11111111:9 · user"


@pytest.mark.parametrize(
    ("record", "is_passage"),
    [
        (user("go", uuid="u"), True),
        (user(" \n", uuid="u"), False),
        (assistant([{"type": "thinking", "thinking": "", "signature": "s"}], uuid="a"), False),
        (assistant([{"type": "thinking", "thinking": "hm", "signature": "s"}], uuid="a"), True),
        (system("turn_duration", uuid="s", durationMs=3), False),
        (system("api_error", uuid="s", error={}), True),
        (system("informational", uuid="s", content="blocked"), True),
        (attachment("told", uuid="t", parent=None), True),
        (
            {"type": "attachment", "attachment": {"type": "total_tokens_reminder", "text": "9"}},
            False,
        ),
        (progress(uuid="p", parent=None), False),
        (custom_title("x"), False),
        ({"type": "api-request-blob", "message": {"content": "a log"}}, False),
        ({"type": "tool_result", "message": {"content": "x"}}, True),
        ({}, False),
    ],
)
def test_messages_and_results_are_passages(record: Record, is_passage: bool) -> None:
    """Messages and results are passages. Metadata, empty thinking and logs are not."""
    assert has_content(record) is is_passage


def test_reminders_are_removed() -> None:
    """Reminders that the client inserted are removed from a text. A reminder that is not closed is kept."""
    assert remove_reminders(f"a{REMINDER}b{REMINDER}c") == "abc"
    assert remove_reminders("a<system-reminder>b") == "a<system-reminder>b"
    hostile = "<system-reminder>" * 200_000
    assert remove_reminders(hostile) == hostile
