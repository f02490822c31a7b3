"""Tests that the calls of a REPL script are read like ordinary calls."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.reading.digest.calls import collect_latest_calls
from resume_hooks.reading.outline import make_outline
from resume_hooks.reading.render import render_record
from resume_hooks.sessions.locate import session_file
from resume_hooks.transcripts import records
from resume_hooks.transcripts.script_calls import fill_empty_result
from resume_hooks.transcripts.transcript import scan_transcript
from resume_hooks.transcripts.trimmable_pieces import INPUT_PIECE, RESULT_PIECE, PieceCollector
from tests.builders import (
    CWD,
    ConfigHome,
    Record,
    assistant,
    call,
    repl_script,
    result,
    user,
    write_session,
)
from tests.reading.digest.talk import Talk, entry_line_numbers, entry_notes, entry_texts

NOTES_PATH = f"{CWD}/notes.txt"
SCRIPT_CALLS = [
    (
        "Read",
        {"file_path": NOTES_PATH},
        {"type": "text", "file": {"filePath": NOTES_PATH, "content": "beta two"}},
    ),
    ("Bash", {"command": "make test"}, {"stdout": "5 passed", "stderr": "", "interrupted": False}),
    ("Bash", {"command": "make lint"}, ValueError("Exit code 2\nerror: unused import")),
    (
        "Edit",
        {"file_path": NOTES_PATH, "old_string": "beta two", "new_string": "beta three"},
        {
            "filePath": NOTES_PATH,
            "oldString": "beta two",
            "newString": "beta three",
            "structuredPatch": [],
        },
    ),
]


def talk_with_records(rows: list[Record]) -> Talk:
    """Return a session with a prompt and these records."""
    talk = Talk().prompt("go")
    for row in rows:
        talk.add(row)
    return talk


def talk_with_script(*more_records: Record) -> Talk:
    """Return a session with a script that reads and edits files and runs two commands, one of which fails."""
    return talk_with_records([*repl_script(SCRIPT_CALLS, uuid="s", parent="r0"), *more_records])


def talk_with_separate_calls() -> Talk:
    """Return a session with the calls of the script as separate records, without the script itself.

    Clients up to 2.1.112 stored such calls in this form.
    """
    rows = repl_script(SCRIPT_CALLS, uuid="s", parent="r0")[2:]
    return talk_with_records(
        [{key: value for key, value in row.items() if key != "isVirtual"} for row in rows]
    )


@pytest.mark.parametrize("talk", [talk_with_script(), talk_with_separate_calls()])
def test_a_digest_lists_a_scripts_actions(config_home: ConfigHome, talk: Talk) -> None:
    """A digest lists a script's changed files, commands and errors, each with its own record."""
    digest = talk.digest(config_home)
    first = talk.last_line_number - 2 * len(SCRIPT_CALLS)
    assert entry_line_numbers(digest, "changed") == {"notes.txt": first + 6}
    assert entry_notes(digest, "commands") == {"make test": ""}
    assert entry_line_numbers(digest, "commands") == {"make test": first + 2}
    assert entry_texts(digest, "errors") == ["`make lint` exit 2: error: unused import"]


def test_the_latest_calls_show_their_outputs(config_home: ConfigHome) -> None:
    """The latest calls contain a script and each of its calls with its output."""
    talk = talk_with_script()
    found = collect_latest_calls(
        session_file(str(talk.write(config_home))), talk.digest(config_home), 9_000
    )
    assert [each.text for each in found] == [
        "REPL: Run a script\ngot:\ndone",
        "Bash: make test\n[since then: 1 file edited]\ngot:\n5 passed",
        "Bash: make lint\n[since then: 1 file edited]\ngot:\nExit code 2\nerror: unused import",
        f"Edit: {NOTES_PATH}\nwrote:\nbeta three",
    ]


def test_an_outline_counts_a_scripts_actions(config_home: ConfigHome) -> None:
    """The outline counts a script and each of its calls.

    If the client records an error a second time for display, the error is counted once.
    """
    used = assistant(
        [call("repl-error-1", "REPL")],
        uuid="e",
        parent="s-end",
        model="<synthetic>",
        isVirtual=True,
    )
    told = user(
        [result("repl-error-1", "boom", is_error=True)], uuid="e-out", parent="e", isVirtual=True
    )
    (turn,) = make_outline(session_file(str(talk_with_script(used, told).write(config_home)))).turns
    assert turn.call_counts == {"REPL": 1, "Read": 1, "Bash": 2, "Edit": 1}
    assert (turn.edited_files, turn.files, turn.failure_count) == ((NOTES_PATH,), (NOTES_PATH,), 1)


def test_calls_of_a_script_are_not_trimmed(tmp_path: Path) -> None:
    """The calls of a script can't be trimmed, because the client never sends them.

    The result of the script can be trimmed.
    """
    long = "word " * 500
    made = [
        (
            "Write",
            {"file_path": NOTES_PATH, "content": long},
            {"type": "create", "structuredPatch": []},
        )
    ]
    rows = repl_script(made, uuid="s", parent="r0", output=long)
    pieces = PieceCollector()
    path = write_session(tmp_path, "1" * 8, [user("go", uuid="r0"), *rows])
    nodes = scan_transcript(path, observers=[pieces]).nodes
    assert [
        (piece.kind, piece.line_number)
        for piece in pieces.pieces
        if piece.kind in {INPUT_PIECE, RESULT_PIECE}
    ] == [(RESULT_PIECE, 2)]
    assert [node.character_count for node in nodes[3:5]] == [0, 0]


@pytest.mark.parametrize(
    ("result_fields", "shown"),
    [
        ({"stdout": "a", "stderr": "b"}, "a\nb"),
        ({"stdout": "", "stderr": ""}, ""),
        ({"type": "text", "file": {"content": "beta"}}, "beta"),
        ({"filenames": ["a.py", "b.py"], "numFiles": 2}, "a.py\nb.py"),
        ({"content": [{"type": "text", "text": "report"}]}, "report"),
        ([{"type": "text", "text": "of a server"}], "of a server"),
        ("plain", "plain"),
        ({"type": "create", "content": "long", "structuredPatch": []}, ""),
        (None, ""),
        ({"file": 3, "content": {"x": 1}, "filenames": [None, 2]}, ""),
    ],
)
def test_the_text_of_a_result_without_text_is_found(result_fields: object, shown: str) -> None:
    """If a tool result has no text, its text is taken from the record's ``toolUseResult``."""
    record = user([result("c", "")], uuid="u", toolUseResult=result_fields)
    assert records.result_text(records.list_results(fill_empty_result(record))[0]) == shown
    assert render_record(record, {}).text == shown


def test_the_text_of_a_result_is_not_replaced() -> None:
    """If a tool result has text, ``toolUseResult`` does not replace it."""
    record = user([result("c", "given")], uuid="u", toolUseResult={"stdout": "noted", "stderr": ""})
    assert fill_empty_result(record) is record
