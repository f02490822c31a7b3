"""Tests of the rule that finds the edit that wrote a line. The rule compares only texts."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.parts.attribution.edits import EditHunk, FileChange, read_file_changes_of_call
from resume_hooks.parts.attribution.match_edits import (
    DIFFERENT_CONTEXT_REASON,
    LINE_NO_LONGER_PRESENT_REASON,
    NO_EDIT_FOUND_REASON,
    FileEdit,
    find_edit_that_wrote_line,
)
from tests.builders import Record, call, result

CLASS_TEXT = "class BasketOfRows:\n    def add_row(self, row):\n        self.rows.append(row)\n"
PARSE_FUNCTION_TEXT = "def parse_all(text):\n    return None\n"
FORMAT_FUNCTION_TEXT = "def format_all(rows):\n    return None\n"


def file_edit(
    number: int,
    before: str,
    after: str,
    *,
    session_number: int = 0,
    is_whole_file: bool = True,
    branch: str = "main",
    path: str = "/a",
) -> FileEdit[int]:
    """Return an edit at the time ``number``, by default in a session of its own."""
    named = str(session_number or number)
    return FileEdit(
        number,
        named,
        path,
        branch,
        f"{number:03}",
        (EditHunk(before, after, is_whole_file=is_whole_file),),
    )


def writer_of_line(text: str, line: str, *edits: FileEdit[int], nth: int = 0) -> int | None:
    """Return the number of the edit that wrote a line with the text ``line``.

    If several lines have this text, ``nth`` selects one of them, counted from 0.
    """
    lines = text.removesuffix("\n").split("\n")
    places = [number for number, each in enumerate(lines, 1) if each == line]
    return find_edit_that_wrote_line(lines, places[nth], edits).edit_record


def test_the_latest_edit_that_wrote_a_line_is_named() -> None:
    """The writer of a line is the latest edit that added it, whatever order the edits are given in."""
    first, again = (
        file_edit(1, "", CLASS_TEXT),
        file_edit(3, PARSE_FUNCTION_TEXT, PARSE_FUNCTION_TEXT + CLASS_TEXT),
    )
    found = file_edit(4, PARSE_FUNCTION_TEXT + CLASS_TEXT, CLASS_TEXT)
    assert (
        writer_of_line(
            CLASS_TEXT,
            "class BasketOfRows:",
            file_edit(2, CLASS_TEXT, PARSE_FUNCTION_TEXT),
            again,
            first,
            found,
        )
        == 3
    )
    assert (
        writer_of_line(
            CLASS_TEXT,
            "        self.rows.append(row)",
            first,
            file_edit(2, CLASS_TEXT, PARSE_FUNCTION_TEXT + CLASS_TEXT),
        )
        == 1
    )


def test_moving_a_line_does_not_count_as_writing_it() -> None:
    """An edit that only moves a line does not count as the edit that wrote the line."""
    assert (
        writer_of_line(
            PARSE_FUNCTION_TEXT + CLASS_TEXT,
            "class BasketOfRows:",
            file_edit(1, CLASS_TEXT + PARSE_FUNCTION_TEXT, PARSE_FUNCTION_TEXT + CLASS_TEXT),
        )
        is None
    )


def test_common_lines_need_their_neighbors() -> None:
    """For a common line such as ``return None``, the neighboring lines must match, too."""
    text = PARSE_FUNCTION_TEXT + "\n\n" + FORMAT_FUNCTION_TEXT
    edits = file_edit(1, FORMAT_FUNCTION_TEXT, PARSE_FUNCTION_TEXT + "\n\n" + FORMAT_FUNCTION_TEXT)
    assert [writer_of_line(text, "    return None", edits, nth=nth) for nth in (0, 1)] == [1, None]
    assert [writer_of_line(text, "", edits, nth=nth) for nth in (0, 1)] == [1, 1]
    verdict = find_edit_that_wrote_line(text.split("\n"), 6, [edits])
    assert (verdict.edit_record, verdict.reason) == (None, DIFFERENT_CONTEXT_REASON)
    assert find_edit_that_wrote_line(text.split("\n"), 5, [edits]) == (None, NO_EDIT_FOUND_REASON)


def test_neighbors_must_identify_one_line() -> None:
    """If the neighboring lines are repeated as well, no writer is named."""
    text = "}\n" * 12
    assert writer_of_line(text, "}", file_edit(1, "", text), nth=6) is None


def test_neighbors_distinguish_a_new_line_from_an_equal_old_one() -> None:
    """If a file has two equal lines, their neighboring lines show which of them the edit added."""
    before, line = CLASS_TEXT, "        self.rows.append(row)"
    after = CLASS_TEXT + "    def put(self, row):\n" + line + "\n"
    assert writer_of_line(CLASS_TEXT, line, file_edit(1, before, after)) is None
    assert (
        writer_of_line(
            after.removeprefix("class BasketOfRows:\n    def add_row(self, row):\n"),
            line,
            file_edit(1, before, after),
            nth=1,
        )
        == 1
    )


def test_a_repeated_line_with_another_indent_is_ambiguous() -> None:
    """A line that occurs several times with different indents is not attributed to a writer.

    A formatter may have changed the indent.
    """
    text = "if first_of_all:\n    call_something()\n        call_something()\n"
    assert (
        writer_of_line(
            text,
            "    call_something()",
            file_edit(1, "", "\n    call_something()\n\n", is_whole_file=False),
        )
        is None
    )


def test_restoring_a_deleted_line_does_not_count_as_writing_it() -> None:
    """A session that deletes a line and restores it does not count as the line's writer.

    If a line was deleted and has returned without a session, no writer is named.
    """
    undone = (
        file_edit(1, CLASS_TEXT, PARSE_FUNCTION_TEXT, session_number=7),
        file_edit(2, PARSE_FUNCTION_TEXT, CLASS_TEXT, session_number=7),
    )
    assert writer_of_line(CLASS_TEXT, "class BasketOfRows:", *undone) is None
    assert (
        writer_of_line(
            CLASS_TEXT,
            "class BasketOfRows:",
            file_edit(0, "", CLASS_TEXT, session_number=7),
            *undone,
        )
        == 2
    )
    gone = (
        file_edit(1, "", CLASS_TEXT),
        file_edit(2, PARSE_FUNCTION_TEXT, PARSE_FUNCTION_TEXT + FORMAT_FUNCTION_TEXT),
    )
    assert find_edit_that_wrote_line(CLASS_TEXT.split("\n"), 1, gone) == (
        None,
        LINE_NO_LONGER_PRESENT_REASON,
    )
    removed = file_edit(1, "", CLASS_TEXT), file_edit(2, CLASS_TEXT, "", is_whole_file=False)
    assert find_edit_that_wrote_line(CLASS_TEXT.split("\n"), 1, removed) == (
        None,
        LINE_NO_LONGER_PRESENT_REASON,
    )


def test_a_checkout_without_the_line_does_not_count() -> None:
    """A line that another checkout lacks keeps its writer if the line's neighbors match the edit.

    If the line is between lines of the other checkout, no writer is named.
    """
    wrote = file_edit(1, "", CLASS_TEXT, branch="topic")
    assert (
        writer_of_line(
            CLASS_TEXT,
            "class BasketOfRows:",
            wrote,
            file_edit(2, PARSE_FUNCTION_TEXT, PARSE_FUNCTION_TEXT + FORMAT_FUNCTION_TEXT),
        )
        == 1
    )
    assert (
        writer_of_line(
            f"{PARSE_FUNCTION_TEXT}class BasketOfRows:\n{FORMAT_FUNCTION_TEXT}",
            "class BasketOfRows:",
            wrote,
            file_edit(2, PARSE_FUNCTION_TEXT, PARSE_FUNCTION_TEXT + FORMAT_FUNCTION_TEXT),
        )
        is None
    )
    assert (
        writer_of_line(
            f"{PARSE_FUNCTION_TEXT}class BasketOfRows:\n{FORMAT_FUNCTION_TEXT}",
            "class BasketOfRows:",
            wrote,
            file_edit(2, PARSE_FUNCTION_TEXT, FORMAT_FUNCTION_TEXT, path="/b"),
        )
        == 1
    )


def test_an_edit_of_an_unknown_file_counts_only_if_it_is_the_first() -> None:
    """An edit of a file with unknown content counts only if no session has seen the file before."""
    blind = file_edit(2, "", CLASS_TEXT)._replace(is_content_unknown=True)
    assert writer_of_line(CLASS_TEXT, "class BasketOfRows:", blind) == 2
    assert (
        writer_of_line(
            CLASS_TEXT, "class BasketOfRows:", file_edit(1, "", "")._replace(hunks=()), blind
        )
        is None
    )


# Four numbers describe an edit: its author (0 is a person), its line number, and the counts of
# deleted and new lines.
RandomEdit = tuple[int, int, int, int]
RANDOM_EDITS_STRATEGY = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 4), st.integers(0, 4)),
    max_size=12,
)


@given(
    random_edits=RANDOM_EDITS_STRATEGY,
    are_whole_files=st.booleans(),
    rotated_line_count=st.integers(0, 30),
)
def test_each_unique_line_belongs_to_its_writer(
    random_edits: list[RandomEdit], are_whole_files: bool, rotated_line_count: int
) -> None:
    """Each unique line belongs to its writer, whatever other edits there are.

    Lines that people wrote belong to no session.
    """
    lines: list[str] = [f"a line of the first file {number}" for number in range(5)]
    authors: dict[str, int | None] = dict.fromkeys(lines)
    edits = []
    for number, (actor, about, fewer, more) in enumerate(random_edits, 1):
        place = min(about, len(lines))
        new = [f"line {at} of those that were written at {number}" for at in range(more)]
        after = [*lines[:place], *new, *lines[place + fewer :]]
        authors |= dict.fromkeys(new, number if actor else None)
        if actor:
            old, put = (lines, after) if are_whole_files else (lines[place : place + fewer], new)
            edits.append(
                file_edit(
                    number,
                    "\n".join(old),
                    "\n".join(put),
                    session_number=actor,
                    is_whole_file=are_whole_files,
                )
            )
        lines = after
    if lines:
        start = rotated_line_count % len(lines)
        lines = [*lines[start:], *lines[:start]]
    assert [
        find_edit_that_wrote_line(lines, at, edits).edit_record for at in range(1, len(lines) + 1)
    ] == [authors[line] for line in lines]


FILE_LINES_STRATEGY = st.lists(
    st.sampled_from(["}", "", "    return None", "call_of_something(1)", "call_of_something(2)"]),
    max_size=9,
)


@given(
    texts=st.lists(st.tuples(FILE_LINES_STRATEGY, FILE_LINES_STRATEGY), max_size=5),
    lines=FILE_LINES_STRATEGY,
)
def test_the_named_edit_added_the_line(
    texts: list[tuple[list[str], list[str]]], lines: list[str]
) -> None:
    """In a file with many repeated lines, an edit is named only if it added a line with that text."""
    edits = [
        file_edit(number, "\n".join(old), "\n".join(new)) for number, (old, new) in enumerate(texts)
    ]
    for at, line in enumerate(lines, 1):
        named = find_edit_that_wrote_line(lines, at, edits).edit_record
        if named is not None:
            old, new = (
                side.removesuffix("\n").split("\n") if side else []
                for side in edits[named].hunks[0][:2]
            )
            assert new.count(line) > old.count(line)


FILE_PATH = "/p/a.py"


def changes_of_call(
    name: str,
    arguments: Record,
    details: Record | None = None,
    answer: str = "ok",
    **result_fields: Any,
) -> list[FileChange]:
    """Return the changes that a call made to files."""
    return list(
        read_file_changes_of_call(
            call("t", name, **arguments), result("t", answer, **result_fields), details or {}
        )
    )


@pytest.mark.parametrize(
    ("arguments", "details", "hunk"),
    [
        ({}, {"originalFile": "a\nb\n"}, EditHunk("a\nb\n", "a\nc\n", is_whole_file=True)),
        ({}, {}, EditHunk("b", "c")),
        ({}, {"originalFile": None, "oldString": "b!", "newString": "c!"}, EditHunk("b!", "c!")),
        ({}, {"originalFile": "another text"}, EditHunk("b", "c")),
        (
            {"replace_all": True},
            {"originalFile": "b\nb\n"},
            EditHunk("b\nb\n", "c\nc\n", is_whole_file=True),
        ),
        ({"old_string": ""}, {"originalFile": ""}, EditHunk("", "c", is_whole_file=True)),
        (
            {},
            {"originalFile": "b\n", "structuredPatch": [{"lines": ["-  b", "+  c"]}]},
            EditHunk("b\n", "c\n", is_whole_file=True),
        ),
    ],
)
def test_an_edit_changes_the_whole_file(arguments: Record, details: Record, hunk: EditHunk) -> None:
    """The change of an Edit covers the whole file if the client recorded the file's content.

    Without this record, the change covers only the edited text.
    """
    whole = {"file_path": FILE_PATH, "old_string": "b", "new_string": "c", **arguments}
    assert changes_of_call("Edit", whole, details) == [FileChange(FILE_PATH, (hunk,))]


def test_a_multi_edit_is_read_step_by_step() -> None:
    """The steps of a MultiEdit are one change of the whole file if the client recorded the file.

    Without this record, each step is a change of its own.
    """
    steps = [{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "c"}]
    given = {"file_path": FILE_PATH, "edits": steps}
    whole = EditHunk("a", "c", is_whole_file=True)
    assert changes_of_call("MultiEdit", given, {"originalFileContents": "a"}) == [
        FileChange(FILE_PATH, (whole,))
    ]
    assert changes_of_call("MultiEdit", given, {}) == [
        FileChange(FILE_PATH, (EditHunk("a", "b"), EditHunk("b", "c")))
    ]


@pytest.mark.parametrize(
    ("details", "answer", "old_text"),
    [
        ({"type": "create", "originalFile": None}, "", ""),
        ({"type": "update", "originalFile": "old"}, "", "old"),
        ({"type": "update", "originalFile": None}, "", "new"),
        ({}, "The file /p/a.py has been updated.", "new"),
        ({}, "File created successfully at: /p/a.py", ""),
    ],
)
def test_a_write_adds_the_lines_of_a_new_file(details: Record, answer: str, old_text: str) -> None:
    """A Write of a new file adds all lines of the file. A Write of a file with unknown content adds none."""
    wrote = changes_of_call("Write", {"file_path": FILE_PATH, "content": "new"}, details, answer)
    assert wrote == [FileChange(FILE_PATH, (EditHunk(old_text, "new", is_whole_file=True),))]


@pytest.mark.parametrize("name", ["Edit", "Write", "Bash", "Read"])
def test_a_failed_call_changes_no_file(name: str) -> None:
    """A failed call does not count as a change of a file."""
    given = {"file_path": FILE_PATH, "content": "x", "command": "cat > a <<'E'\nx\nE"}
    assert changes_of_call(name, given, is_error=True) == []


def test_a_notebook_edit_gives_no_change() -> None:
    """A Read gives a change without edits, and a NotebookEdit gives no change."""
    assert changes_of_call("Read", {"file_path": FILE_PATH}) == [FileChange(FILE_PATH, ())]
    assert changes_of_call("NotebookEdit", {"notebook_path": FILE_PATH, "new_source": "x"}) == []


def test_here_documents_count_as_changes() -> None:
    """A here-document that a command writes to a file is a change of that file.

    If the command has changed its folder with ``cd``, a relative path starts in that folder.
    """
    command = "cd sub\ncat > a <<'E'\nx\n\nE\ncat << F >> '/b c'\ny\nF\ncat > d <<G\n$z\nG\n"
    assert changes_of_call("Bash", {"command": command}) == [
        FileChange("sub/a", (EditHunk("", "x\n\n", is_whole_file=True),), is_content_unknown=True),
        FileChange("/b c", (EditHunk("", "y\n"),)),
    ]
    assert changes_of_call("Bash", {"command": "cat > a <<E\n" * 100_000}) == []
