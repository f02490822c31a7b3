"""What a call wrote: texts before and after, of every form in which clients tell of it."""

from __future__ import annotations

from typing import Any

import pytest

from resume_hooks.parts.attribution.edits import Change, Hunk, changes_of
from tests.builders import Record, call, result

PATH = "/p/a.py"


def changed(name: str, given: Record, details: Record | None = None, answer: str = "ok", **more: Any) -> list[Change]:
    """What a call comes to."""
    return list(changes_of(call("t", name, **given), result("t", answer, **more), details or {}))


@pytest.mark.parametrize(
    ("given", "details", "hunk"),
    [
        ({}, {"originalFile": "a\nb\n"}, Hunk("a\nb\n", "a\nc\n", whole=True)),
        ({}, {}, Hunk("b", "c")),
        ({}, {"originalFile": None, "oldString": "b!", "newString": "c!"}, Hunk("b!", "c!")),
        ({}, {"originalFile": "another text"}, Hunk("b", "c")),
        ({"replace_all": True}, {"originalFile": "b\nb\n"}, Hunk("b\nb\n", "c\nc\n", whole=True)),
        ({"old_string": ""}, {"originalFile": ""}, Hunk("", "c", whole=True)),
        ({}, {"originalFile": "b\n", "structuredPatch": [{"lines": ["-  b", "+  c"]}]}, Hunk("b\n", "c\n", whole=True)),
    ],
)
def test_edit(given: Record, details: Record, hunk: Hunk) -> None:
    """The whole file where the client recorded it, else the stretch that was replaced; never its patch."""
    whole = {"file_path": PATH, "old_string": "b", "new_string": "c", **given}
    assert changed("Edit", whole, details) == [Change(PATH, (hunk,))]


def test_multi_edit() -> None:
    """One step after the other, in the file or apart."""
    steps = [{"old_string": "a", "new_string": "b"}, {"old_string": "b", "new_string": "c"}]
    given = {"file_path": PATH, "edits": steps}
    whole = Hunk("a", "c", whole=True)
    assert changed("MultiEdit", given, {"originalFileContents": "a"}) == [Change(PATH, (whole,))]
    assert changed("MultiEdit", given, {}) == [Change(PATH, (Hunk("a", "b"), Hunk("b", "c")))]


@pytest.mark.parametrize(
    ("details", "answer", "before"),
    [
        ({"type": "create", "originalFile": None}, "", ""),
        ({"type": "update", "originalFile": "old"}, "", "old"),
        ({"type": "update", "originalFile": None}, "", "new"),
        ({}, "The file /p/a.py has been updated.", "new"),
        ({}, "File created successfully at: /p/a.py", ""),
    ],
)
def test_write(details: Record, answer: str, before: str) -> None:
    """All of a new file; where it lay over one that nobody recorded, none of its lines is known to be new."""
    wrote = changed("Write", {"file_path": PATH, "content": "new"}, details, answer)
    assert wrote == [Change(PATH, (Hunk(before, "new", whole=True),))]


@pytest.mark.parametrize("name", ["Edit", "Write", "Bash", "Read"])
def test_what_failed(name: str) -> None:
    """Wrote nothing."""
    given = {"file_path": PATH, "content": "x", "command": "cat > a <<'E'\nx\nE"}
    assert changed(name, given, is_error=True) == []


def test_looks_and_other_tools() -> None:
    """A file that was read is known; notebooks and all else tell of no lines."""
    assert changed("Read", {"file_path": PATH}) == [Change(PATH, ())]
    assert changed("NotebookEdit", {"notebook_path": PATH, "new_source": "x"}) == []


def test_documents_in_a_command() -> None:
    """Each file that the shell writes from one, in the folder that the command goes to."""
    command = "cd sub\ncat > a <<'E'\nx\n\nE\ncat << F >> '/b c'\ny\nF\ncat > d <<G\n$z\nG\n"
    assert changed("Bash", {"command": command}) == [
        Change("sub/a", (Hunk("", "x\n\n", whole=True),), blind=True),
        Change("/b c", (Hunk("", "y\n"),)),
    ]
    assert changed("Bash", {"command": "cat > a <<E\n" * 100_000}) == []
