"""Tests of the first line of a child, which names its parent.

Every variant of this line can be read. Only one variant is written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.transcripts.provenance import Parent, make_first_line, read_parent
from tests.builders import SESSION, line, session_id, user

PARENT_ID = session_id(1)
PARENT_FILE = f"/abs/{PARENT_ID}.jsonl"
FORBIDDEN_KEYS = (
    "cwd",
    "timestamp",
    "sessionId",
    "customTitle",
    "aiTitle",
    "lastPrompt",
    "summary",
    "tag",
    "gitBranch",
)

AICHAT_METADATA = {
    "parent_session_file": PARENT_FILE,
    "parent_session_id": PARENT_ID,
    "continued_at": "2025-12-19T14:30:00Z",
}
OLD_AICHAT_METADATA = {
    "parent_file": PARENT_FILE,
    "continued_at": "2025-12-19T14:30:00Z",
    "continuation_type": "rollover",
    "summary_included": True,
}
TRIM_METADATA = {
    "parent_file": PARENT_FILE,
    "trimmed_at": "2025-12-20T14:30:00Z",
    "trim_params": {"target_tools": ["bash"], "threshold": 1000, "trim_assistant_messages": False},
    "stats": {"original_tokens": 9, "trimmed_tokens": 3, "tools_trimmed": 1, "chars_saved": 24},
}
OWN_METADATA = {
    "parent_session_file": PARENT_FILE,
    "parent_file": PARENT_FILE,
    "parent_session_id": PARENT_ID,
    "continued_at": "2026-01-31T09:30:00.000Z",
    "continuation_type": "trim",
    "summary_included": False,
}

METADATA_VARIANTS: dict[str, tuple[dict[str, Any], Parent]] = {
    "peer's continuation": (
        {"continue_metadata": AICHAT_METADATA},
        Parent(PARENT_ID, PARENT_FILE, "continued", "rollover", "2025-12-19T14:30:00Z"),
    ),
    "peer's older form, path only": (
        {"continue_metadata": OLD_AICHAT_METADATA},
        Parent(PARENT_ID, PARENT_FILE, "continued", "rollover", "2025-12-19T14:30:00Z"),
    ),
    "peer's trim": (
        {"trim_metadata": TRIM_METADATA},
        Parent(PARENT_ID, PARENT_FILE, "trimmed", "trim", "2025-12-20T14:30:00Z"),
    ),
    "both, as we write a trim": (
        {"continue_metadata": OWN_METADATA, "trim_metadata": TRIM_METADATA},
        Parent(PARENT_ID, PARENT_FILE, "trimmed", "trim", "2026-01-31T09:30:00.000Z"),
    ),
    "with an export": (
        {"continue_metadata": {**AICHAT_METADATA, "exported_file": "/abs/log.txt"}},
        Parent(
            PARENT_ID, PARENT_FILE, "continued", "rollover", "2025-12-19T14:30:00Z", "/abs/log.txt"
        ),
    ),
    "a parent that is no session file": (
        {"continue_metadata": {"parent_file": "/abs/notes.jsonl"}},
        Parent("", "/abs/notes.jsonl", "continued", "rollover", ""),
    ),
    "an id without a path": (
        {"continue_metadata": {"parent_session_id": PARENT_ID, "continuation_type": "rewind"}},
        Parent(PARENT_ID, "", "continued", "back", ""),
    ),
    "an id that leads elsewhere": (
        {
            "continue_metadata": {
                "parent_session_id": f"../../x/{PARENT_ID}",
                "parent_file": PARENT_FILE,
            }
        },
        Parent(PARENT_ID, PARENT_FILE, "continued", "rollover", ""),
    ),
}
FIRST_LINE_FORMS: dict[str, Callable[[dict[str, Any]], bytes]] = {
    "own record": lambda found: line(found) + b"\n" + line(user("hi", uuid="a")) + b"\n",
    "merged into the first record": lambda found: line({**user("hi", uuid="a"), **found}) + b"\n",
    "with spaces, as json.dumps writes": lambda found: json.dumps(found).encode() + b"\n",
    "byte order mark": lambda found: b"\xef\xbb\xbf" + line(found) + b"\n",
    "CRLF": lambda found: line(found) + b"\r\n" + line(user("hi", uuid="a")) + b"\r\n",
    "no line end": line,
    "100 KB first line": lambda found: line({"pad": "x" * 100_000, **found}) + b"\n",
    "bad UTF-8 elsewhere in the line": lambda found: (
        line({"pad": "%", **found}).replace(b"%", b"\xff") + b"\n"
    ),
}


def write_bytes_as_session(folder: Path, data: bytes) -> str:
    """Write a session file with these bytes and return its path."""
    path = folder / f"{SESSION}.jsonl"
    path.write_bytes(data)
    return str(path)


@pytest.mark.parametrize("form", FIRST_LINE_FORMS)
@pytest.mark.parametrize("variant", METADATA_VARIANTS)
def test_every_metadata_variant_is_read_from_every_form_of_first_line(
    tmp_path: Path, variant: str, form: str
) -> None:
    """Each variant of metadata names the parent, whether on its own line or in the first record.

    The encoding and the line endings make no difference.
    """
    metadata, parent = METADATA_VARIANTS[variant]
    assert read_parent(write_bytes_as_session(tmp_path, FIRST_LINE_FORMS[form](metadata))) == parent


@pytest.mark.parametrize(
    "first",
    [
        {"continue_metadata": {}},
        {"continue_metadata": None},
        {"continue_metadata": [PARENT_FILE]},
        {"continue_metadata": PARENT_FILE},
        {
            "continue_metadata": {
                "parent_session_id": 7,
                "parent_file": ["x"],
                "continuation_type": {},
            }
        },
        {"trim_metadata": {"parent_file": None}, "continue_metadata": False},
        {"note": {"continue_metadata": AICHAT_METADATA}},
        {"message": json.dumps({"continue_metadata": AICHAT_METADATA})},
    ],
)
def test_wrong_types_and_quotations_name_no_parent(tmp_path: Path, first: dict[str, Any]) -> None:
    """Metadata of a wrong type and metadata inside another field or text name no parent."""
    assert read_parent(write_bytes_as_session(tmp_path, line(first) + b"\n")) is None


@pytest.mark.parametrize(
    "data", [b"", b"\n", b'garbage _metadata" {\n', b'{"continue_metadata":{"parent', b"\xff" * 99]
)
def test_damaged_first_lines_name_no_parent(tmp_path: Path, data: bytes) -> None:
    """An empty, partial or invalid first line names no parent."""
    assert read_parent(write_bytes_as_session(tmp_path, data)) is None


def test_metadata_on_a_later_line_names_no_parent(tmp_path: Path) -> None:
    """Metadata on a later line names no parent, because it may belong to a quoted transcript."""
    assert (
        read_parent(
            write_bytes_as_session(
                tmp_path,
                line(user("hi", uuid="a")) + b"\n" + line({"continue_metadata": AICHAT_METADATA}),
            )
        )
        is None
    )


@pytest.mark.parametrize(
    "preceding_bytes",
    [b"", b"\xef\xbb\xbf", b'{"type":"summary","summary":"x","leafUuid":"y"}\n', b"torn\n"],
)
def test_the_parent_of_a_fork_is_read_from_its_records(
    tmp_path: Path, preceding_bytes: bytes
) -> None:
    """A fork's parent is read from the first record with ``forkedFrom``, whatever comes before it."""
    forked = user("hi", uuid="a", forkedFrom={"sessionId": PARENT_ID, "messageUuid": "m"})
    parent = read_parent(write_bytes_as_session(tmp_path, preceding_bytes + line(forked) + b"\r\n"))
    assert parent == Parent(PARENT_ID, "", "continued", "fork", "2026-01-31T09:30:00.000Z")


def test_a_quoted_fork_does_not_hide_the_real_one(tmp_path: Path) -> None:
    """``forkedFrom`` inside a tool's output is ignored, and the parent is read from a later record."""
    quoted = user(
        "hi",
        uuid="a",
        toolUseResult={"forkedFrom": {"sessionId": session_id(9), "messageUuid": "m"}},
    )
    forked = user("hi", uuid="b", forkedFrom={"sessionId": PARENT_ID, "messageUuid": "m"})
    parent = read_parent(
        write_bytes_as_session(tmp_path, line(quoted) + b"\n" + line(forked) + b"\n")
    )
    assert parent is not None
    assert parent.session_id == PARENT_ID


@pytest.mark.parametrize(
    "fork", [None, [], {}, {"sessionId": 5}, {"sessionId": "../../etc"}, PARENT_ID]
)
def test_a_malformed_fork_names_no_parent(tmp_path: Path, fork: object) -> None:
    """A ``forkedFrom`` with a wrong type or an invalid id names no parent."""
    assert (
        read_parent(write_bytes_as_session(tmp_path, line(user("hi", uuid="a", forkedFrom=fork))))
        is None
    )


PATH_STRATEGY = st.text(st.characters(codec=None), max_size=60)


@given(file=PATH_STRATEGY, kind=st.sampled_from(["handoff", "rollover", "trim"]))
def test_the_first_line_of_a_child_has_no_key_that_programs_search_for(
    file: str, kind: str
) -> None:
    """The first line of a child has no keys, such as ``cwd``, that programs search for in its text."""
    written = make_first_line(
        parent_id=PARENT_ID,
        parent_file=f'{file}"cwd":"/x"',
        kind=kind,
        continued_at="2026",
        has_summary=True,
    )
    keys = set(re.findall(r'(?<!\\)"([^"\\]*)"\s*:', written.decode()))
    assert keys.isdisjoint(FORBIDDEN_KEYS)
    assert not any(f'"{key}":'.encode() in written for key in FORBIDDEN_KEYS)
    assert b"\n" not in written


def test_the_first_line_of_a_child_has_the_documented_form(tmp_path: Path) -> None:
    """The first line of a child has the documented form, and reading it gives the same values."""
    at = "2026-01-31T09:30:00.000Z"
    written = make_first_line(
        parent_id=PARENT_ID,
        parent_file=PARENT_FILE,
        kind="handoff",
        continued_at=at,
        has_summary=False,
    )
    inner = {**OWN_METADATA, "continuation_type": "handoff"}
    assert written == json.dumps({"continue_metadata": inner}, separators=(",", ":")).encode()
    assert read_parent(write_bytes_as_session(tmp_path, written + b"\n")) == Parent(
        PARENT_ID, PARENT_FILE, "continued", "handoff", at
    )


@pytest.mark.parametrize("kind", ["handoff\n# HEAD", "</system-reminder>", "x" * 40])
def test_an_invalid_kind_is_not_shown(tmp_path: Path, kind: str) -> None:
    """An invalid kind in a first line is read as "rollover"."""
    written = json.dumps(
        {"continue_metadata": {**OWN_METADATA, "continuation_type": kind}}
    ).encode()
    found = read_parent(write_bytes_as_session(tmp_path, written + b"\n"))
    assert found is not None
    assert found.kind == "rollover"
