"""Tests of reading selected turns, failures and commands of a transcript."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.cli.read_text import (
    commands_text,
    make_error_gap_describer,
    make_record_gap_describer,
    passages_text,
)
from resume_hooks.reading.passages import TurnReader
from resume_hooks.sessions import locate
from resume_hooks.sessions.record_references import TranscriptNames
from resume_hooks.transcripts.turns import parse_turns
from tests.builders import (
    SESSION,
    Record,
    assistant,
    call,
    conversation,
    result,
    summary,
    system,
    tool_use,
    user,
    write_session,
)
from tests.corpus import RealSession

TRANSCRIPT_NAMES = TranscriptNames(SESSION, SESSION[:8])


def make_turn_reader(folder: Path, lines: list[Record | bytes]) -> TurnReader:
    """Return a reader of a session with these records."""
    return TurnReader(locate.session_file(write_session(folder, SESSION, lines)))


def shell_call(
    number: int, answer: str | None, *, failed: bool = False, **result_fields: object
) -> list[Record]:
    """Return a shell call and its result. If ``answer`` is None, return only the call."""
    asked = tool_use(
        f"c{number}",
        uuid=f"a{number}",
        parent=None,
        name="Bash",
        tool_input={"command": f"cmd {number}"},
    )
    if answer is None:
        return [asked]
    extra: Record = {"toolUseResult": result_fields} if result_fields else {}
    return [
        asked,
        user(
            [result(f"c{number}", answer, is_error=failed)],
            uuid=f"u{number}",
            parent=f"a{number}",
            **extra,
        ),
    ]


def test_requested_turns_are_read(tmp_path: Path) -> None:
    """The requested turns are read. Records before the first prompt are turn 0."""
    found = make_turn_reader(
        tmp_path, [summary("s", uuid="s", parent=None), *conversation(3), b"garbage"]
    )
    assert found.turn_count == 3
    assert [row.line_number for row in found.list_rows_of_turns()] == [0, 1, 2, 3, 4, 5, 6]
    assert [row.line_number for row in found.list_rows_of_turns(parse_turns("2-3"))] == [3, 4, 5, 6]
    assert [row.line_number for row in found.list_rows_of_turns(parse_turns("0"))] == [0]
    assert [
        one.text
        for one in found.read_passages_of_rows(
            found.list_rows_of_turns(parse_turns("last")), TRANSCRIPT_NAMES
        )
    ] == [
        "prompt 4",
        "answer 5",
    ]


def test_commands_are_read_with_their_result(tmp_path: Path) -> None:
    """Each command is read with its state, its exit status if the client recorded one, and its turn."""
    lines: list[Record | bytes] = [
        user("go", uuid="p"),
        *shell_call(1, "fine", stdout="fine", interrupted=False),
        *shell_call(2, "Exit code 127\nnot found", failed=True),
        *shell_call(3, "no code here", failed=True),
        *shell_call(4, "The user doesn't want to proceed with this tool use.", failed=True),
        *shell_call(5, "started", backgroundTaskId="b1"),
        *shell_call(6, "cut", interrupted=True),
        user("more", uuid="q"),
        *shell_call(7, None),
        tool_use("r1", uuid="z", parent=None),
    ]
    found = make_turn_reader(tmp_path, lines).list_commands_of_turns()
    assert [(one.command, one.state, one.exit_code, one.turn_number) for one in found] == [
        ("cmd 1", "ok", None, 1),
        ("cmd 2", "failed", 127, 1),
        ("cmd 3", "failed", None, 1),
        ("cmd 4", "rejected", None, 1),
        ("cmd 5", "background", None, 1),
        ("cmd 6", "interrupted", None, 1),
        ("cmd 7", "unanswered", None, 2),
    ]
    assert [one.result_line_number for one in found][-2:] == [12, -1]
    assert [
        one.command
        for one in make_turn_reader(tmp_path, lines).list_commands_of_turns(parse_turns("2"))
    ] == ["cmd 7"]


def test_failed_results_and_api_errors_are_read(tmp_path: Path) -> None:
    """Failed tool results and API errors are read as failures. A failed result names its call."""
    lines: list[Record | bytes] = [
        user("go", uuid="p"),
        *shell_call(1, "fine"),
        *shell_call(2, "Exit code 1", failed=True),
        assistant("API Error: 529", uuid="e", isApiErrorMessage=True),
        system("api_error", uuid="f", error={"status": 529}),
    ]
    found = make_turn_reader(tmp_path, lines)
    rows = found.list_rows_of_turns(only_failures=True)
    assert [row.line_number for row in rows] == [4, 5, 6]
    shown = found.read_passages_of_rows(rows, TRANSCRIPT_NAMES)
    assert [one.speaker for one in shown] == [
        "failed result of Bash cmd 2",
        "assistant, API error",
        "system api_error",
    ]
    assert found.line_numbers_of_calls(shown[0].entry.parse_record() or {}) == [3]


def test_a_plain_export_is_read(tmp_path: Path) -> None:
    """Turns, failures and commands are read from an export without record ids."""
    lines: list[Record | bytes] = [
        {"type": "user", "message": {"content": "go"}},
        {"type": "assistant", "message": {"content": [call("c", "Bash", command="ls")]}},
        {"type": "user", "message": {"content": [result("c", "Exit code 2", is_error=True)]}},
        {
            "type": "tool_result",
            "message": {"tool_name": "Read", "content": "gone", "is_error": True},
        },
    ]
    found = make_turn_reader(tmp_path, lines)
    assert [row.line_number for row in found.list_rows_of_turns(only_failures=True)] == [2, 3]
    assert [(one.command, one.exit_code) for one in found.list_commands_of_turns()] == [("ls", 2)]
    assert (
        found.read_passages_of_rows(found.list_rows_of_turns(only_failures=True), TRANSCRIPT_NAMES)[
            0
        ].speaker
        == "failed result of Bash ls"
    )


LONG_SESSIONS: list[TurnReader] = []


@pytest.fixture(autouse=True, scope="module")
def _write_long_session(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Write a session with many turns and one huge output for the test that tries all limits."""
    lines: list[Record | bytes] = []
    for turn in range(40):
        lines.append(user(f"prompt {turn} " * 20, uuid=f"p{turn}"))
        lines += shell_call(2 * turn, "x\n" * (20_000 if turn == 20 else 30))
        lines += shell_call(2 * turn + 1, "Exit code 1\n" + "y" * 400, failed=True)
        lines.append(assistant(f"answer {turn} " * 30, uuid=f"z{turn}"))
    LONG_SESSIONS.append(make_turn_reader(tmp_path_factory.mktemp("long"), lines))


@settings(max_examples=50)
@given(st.integers(1, 60_000))
def test_a_selection_always_fits_its_limit(limit: int) -> None:
    """A selection of turns, errors or commands, including its notices, is shorter than any given limit."""
    found = LONG_SESSIONS[0]
    every = found.read_passages_of_rows(found.list_rows_of_turns(), TRANSCRIPT_NAMES)
    failed = [one for one in every if one.is_failure]
    assert (
        len(
            passages_text(
                "all",
                every,
                TRANSCRIPT_NAMES,
                limit,
                make_record_gap_describer(every, TRANSCRIPT_NAMES),
            )
        )
        < limit
    )
    assert (
        len(
            passages_text(
                "errors",
                failed,
                TRANSCRIPT_NAMES,
                limit,
                make_error_gap_describer(failed, TRANSCRIPT_NAMES),
            )
        )
        < limit
    )
    assert (
        len(commands_text("commands", found.list_commands_of_turns(), TRANSCRIPT_NAMES, limit))
        < limit
    )


def test_omitted_turns_can_be_read() -> None:
    """The line about omitted turns names a command that reads them.

    A single long turn is shown with all its messages. A long output in it is shortened and followed
    by the command that prints the whole output.
    """
    found = LONG_SESSIONS[0]
    every = found.read_passages_of_rows(found.list_rows_of_turns(), TRANSCRIPT_NAMES)
    text = passages_text(
        "all", every, TRANSCRIPT_NAMES, 6_000, make_record_gap_describer(every, TRANSCRIPT_NAMES)
    )
    last = text.split("\n")[-1]
    assert last.startswith("… ")
    assert ": resume-hooks read 11111111" in last
    turn = found.read_passages_of_rows(
        found.list_rows_of_turns(parse_turns("21")), TRANSCRIPT_NAMES
    )
    text = passages_text(
        "one", turn, TRANSCRIPT_NAMES, 4_000, make_record_gap_describer(turn, TRANSCRIPT_NAMES)
    )
    assert text.count("prompt 20") == 20
    assert text.count("answer 20") == 30
    assert "more characters: resume-hooks read 11111111:122 --max-chars 0" in text


def test_one_omitted_error_or_command_is_mentioned() -> None:
    """A single omitted error or command is mentioned with the command that reads its turn."""
    found = LONG_SESSIONS[0]
    failed = [
        one
        for one in found.read_passages_of_rows(found.list_rows_of_turns(), TRANSCRIPT_NAMES)
        if one.is_failure
    ]
    assert (
        make_error_gap_describer(failed, TRANSCRIPT_NAMES)(4, 4)
        == "… 1 error left out: resume-hooks read 11111111 --errors --turns 5"
    )
    wide = [
        one._replace(command="x " * 45)
        for one in found.list_commands_of_turns(parse_turns("3"))[:1]
    ]
    last = commands_text("commands", wide, TRANSCRIPT_NAMES, 175).split("\n")[-1]
    assert (
        last
        == "… 1 command left out: resume-hooks read 11111111 --commands --turns 3 --max-chars 0"
    )


def test_commands_without_a_limit_are_complete(tmp_path: Path) -> None:
    """Without a limit, a long command is shown in full."""
    lines: list[Record | bytes] = [user("go", uuid="p"), *shell_call(1, "ok")]
    long = [
        one._replace(command="x" * 300)
        for one in make_turn_reader(tmp_path, lines).list_commands_of_turns()
    ]
    assert commands_text("commands", long, TRANSCRIPT_NAMES, 0).endswith("x" * 300)


def test_every_real_session_is_read(real_session: RealSession) -> None:
    """A real session is read without an error, within the limit, and without control characters."""
    found = TurnReader(real_session.file)
    shown = found.read_passages_of_rows(found.list_rows_of_turns(), TRANSCRIPT_NAMES)
    text = passages_text(
        "all", shown, TRANSCRIPT_NAMES, 20_000, make_record_gap_describer(shown, TRANSCRIPT_NAMES)
    )
    assert len(text) < 20_000
    assert not [sign for sign in text if sign < " " and sign not in "\n\t"]
    commands_text("commands", found.list_commands_of_turns(), TRANSCRIPT_NAMES, 5_000)


def test_a_tool_without_a_name_is_not_a_shell(tmp_path: Path) -> None:
    """A tool call whose name is not a string is not a shell command."""
    damaged = tool_use("c1", uuid="a1", parent=None, tool_input={"command": "ls"})
    damaged["message"]["content"][0]["name"] = {"odd": []}
    found = make_turn_reader(tmp_path, [*conversation(1), damaged])
    assert "ls" not in "".join(
        one.text
        for one in found.read_passages_of_rows(found.list_rows_of_turns(), TRANSCRIPT_NAMES)
        if one.speaker == "shell"
    )
    assert found.list_commands_of_turns() is not None
