"""Tests that the original of a trimmed record is found even if it moved.

Files outside the plugin's and the client's folders are never opened.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from resume_hooks.derive.originals import (
    MAX_FOLLOWED_PLACEHOLDERS,
    OriginalFinder,
    find_origins,
    look_up_original,
    restore_record,
)
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.paths import session_id_from_path
from resume_hooks.sessions.record_references import Reference
from resume_hooks.storage.backups import backup_folder
from resume_hooks.transcripts.placeholders import Origin
from tests.builders import (
    ConfigHome,
    Record,
    assistant,
    call,
    result,
    session_id,
    tool_result,
    user,
    write_session,
)

PARENT_ID, CHILD_ID, GRANDCHILD_ID = session_id(1), session_id(2), session_id(3)
UNTRIMMED_RECORD = tool_result(
    "c1", "the whole output", uuid="r1", parent=None, session_id=PARENT_ID
)


def make_trimmed_record(file_path: str, line_number: int = 0, **other_fields: object) -> Record:
    """Return ``UNTRIMMED_RECORD`` in a trimmed form that names a line of ``file_path`` as the original."""
    marks = Origin(
        session_id_from_path(file_path) or "", file_path, "r1", line_number
    ).make_trim_fields(0)
    return {**tool_result("c1", "[placeholder]", uuid="r1", parent=None), **marks, **other_fields}


def make_record_with_notice(text: str) -> Record:
    """Return a tool result that has no fields about its original and ends with another tool's notice."""
    return tool_result("c1", text, uuid="r1", parent=None)


def find_original_location(home: ConfigHome, record: Record, file: str | None = None) -> str | None:
    """Return the file and the line of a record's original.

    ``file`` is the file of the record itself. By default, it is a child's file in the project.
    """
    entry = OriginalFinder(home.where).find_original(
        record, file or str(home.project() / f"{CHILD_ID}.jsonl")
    )
    return f"{entry.file_path}:{entry.number}" if entry else None


@pytest.fixture
def parent(config_home: ConfigHome) -> str:
    """Write the session with the original on line 0."""
    return write_session(config_home.project(), PARENT_ID, [UNTRIMMED_RECORD])


def test_an_original_is_found_by_the_fields_of_the_trimmed_record(
    config_home: ConfigHome, parent: str
) -> None:
    """An original is found by the fields of the trimmed record, even if its line number has changed.

    With invalid fields, no original is found.
    """
    assert find_original_location(config_home, make_trimmed_record(parent)) == f"{parent}:0"
    assert find_original_location(config_home, make_trimmed_record(parent, 7)) == f"{parent}:0"
    others: list[Record] = [{"original_index": odd} for odd in (-1, True, "0", None)]
    for other in (*others, {"original_uuid": "r2"}, {"type": "assistant"}):
        assert find_original_location(config_home, make_trimmed_record(parent, **other)) is None
    assert (
        find_original_location(config_home, {**make_record_with_notice("x"), "truncated": True})
        is None
    )


def test_an_original_is_found_in_another_project(config_home: ConfigHome, parent: str) -> None:
    """An original is found by its session's id after the session moved to another project."""
    moved = shutil.move(parent, config_home.project("/elsewhere"))
    assert find_original_location(config_home, make_trimmed_record(parent)) == f"{moved}:0"


def test_an_original_is_found_next_to_its_child(
    config_home: ConfigHome, parent: str, tmp_path: Path
) -> None:
    """An original is found in the folder of the trimmed session, even if its file was renamed."""
    there = tmp_path / "copies"
    there.mkdir()
    moved = shutil.move(parent, there)
    assert (
        find_original_location(
            config_home, make_trimmed_record(parent), str(there / f"{CHILD_ID}.jsonl")
        )
        == f"{moved}:0"
    )
    odd = shutil.move(moved, there / "my session.jsonl")
    assert (
        find_original_location(
            config_home, make_trimmed_record(str(odd)), str(there / f"{CHILD_ID}.jsonl")
        )
        == f"{odd}:0"
    )


def test_an_original_is_found_in_another_copy(config_home: ConfigHome, parent: str) -> None:
    """If the file that a trimmed record names lacks the original, another copy of the session is searched."""
    copy = shutil.copy(parent, config_home.project("/elsewhere"))
    Path(parent).write_bytes(b"{}\n")
    assert find_original_location(config_home, make_trimmed_record(parent)) == f"{copy}:0"


def test_an_original_is_found_through_several_trims(config_home: ConfigHome, parent: str) -> None:
    """If a record was trimmed several times, its original is found in the first session.

    If the first session is gone, the oldest existing form of the record is found.
    """
    middle = write_session(config_home.project(), CHILD_ID, [make_trimmed_record(parent)])
    assert find_original_location(config_home, make_trimmed_record(middle)) == f"{parent}:0"
    os.unlink(parent)
    assert find_original_location(config_home, make_trimmed_record(middle)) == f"{middle}:0"


def test_the_search_ends_at_circular_references(config_home: ConfigHome) -> None:
    """The search ends if trimmed records refer to each other or form a very long chain."""
    folder = config_home.project()
    one, two = (str(folder / f"{name}.jsonl") for name in (PARENT_ID, CHILD_ID))
    write_session(folder, PARENT_ID, [make_trimmed_record(two)])
    write_session(folder, CHILD_ID, [make_trimmed_record(one)])
    assert find_original_location(config_home, make_trimmed_record(one)) is not None
    uuids = [f"r{number}" for number in range(MAX_FOLLOWED_PLACEHOLDERS + 2)]
    rows = [{**UNTRIMMED_RECORD, "uuid": uuid} for uuid in uuids]
    for number, row in enumerate(rows[:-1]):
        row.update(Origin(PARENT_ID, one, uuids[number + 1], number + 1).make_trim_fields(0))
    write_session(folder, PARENT_ID, rows)
    assert find_original_location(config_home, rows[2]) == f"{one}:{MAX_FOLLOWED_PLACEHOLDERS + 1}"
    assert find_original_location(config_home, rows[0]) == f"{one}:{MAX_FOLLOWED_PLACEHOLDERS}"


@pytest.fixture
def session_outside_projects(tmp_path: Path) -> str:
    """Write a session that contains the original record to a folder outside the known folders."""
    return write_session(tmp_path / "outside", PARENT_ID, [UNTRIMMED_RECORD])


def test_a_trimmed_record_cannot_lead_outside_known_folders(
    config_home: ConfigHome, session_outside_projects: str, tmp_path: Path
) -> None:
    """A trimmed record can't lead to a file outside the known folders, either by a path or by a link."""
    project = config_home.project()
    assert (
        find_original_location(config_home, make_trimmed_record(session_outside_projects)) is None
    )
    linked = project / f"{PARENT_ID}.jsonl"
    linked.symlink_to(session_outside_projects)
    assert find_original_location(config_home, make_trimmed_record(str(linked))) is None
    linked.unlink()
    (config_home.config / "projects" / "-linked").symlink_to(tmp_path / "outside")
    assert (
        find_original_location(
            config_home,
            make_trimmed_record(
                str(config_home.config / "projects" / "-linked" / f"{PARENT_ID}.jsonl")
            ),
        )
        is None
    )
    odd = shutil.copy(session_outside_projects, tmp_path / "outside" / "odd.jsonl")
    (project / "odd.jsonl").symlink_to(odd)
    for path in (
        str(odd),
        str(project / "odd.jsonl"),
        f"{config_home.config}/projects/../../../outside/odd.jsonl",
    ):
        assert (
            find_original_location(
                config_home, make_trimmed_record(path, original_session_id=PARENT_ID)
            )
            is None
        )
    shutil.copy(session_outside_projects, config_home.config / "odd.jsonl")
    dotted = f"{config_home.config}/projects/../odd.jsonl"
    assert (
        find_original_location(
            config_home, make_trimmed_record(dotted, original_session_id=PARENT_ID)
        )
        is None
    )


def test_an_invalid_path_leads_to_no_original(config_home: ConfigHome) -> None:
    """If the path in a trimmed record is invalid, no original is found and no error is raised."""
    for odd in (
        "\0.jsonl",
        f"/\ud800/{PARENT_ID}.jsonl",
        str(config_home.config),
        "x" * 10_000,
        f"a\0/{PARENT_ID}.jsonl",
    ):
        assert (
            find_original_location(config_home, make_trimmed_record(odd, original_session_id=""))
            is None
        )


@pytest.fixture
def backup(config_home: ConfigHome) -> Path:
    """Write a backup with the untrimmed record, at the path where a trim in place would write it."""
    path = Path(backup_folder(PARENT_ID, config_home.where)) / "2026-01-31T09-30-00.000Z.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(
        Path(write_session(config_home.root / "x", PARENT_ID, [UNTRIMMED_RECORD])).read_bytes()
    )
    return path


def test_an_original_is_found_in_a_backup(config_home: ConfigHome, backup: Path) -> None:
    """The original of a record that was trimmed in place is found in the session's backup.

    The original is also found if the trimmed record names the session instead of the backup, and
    after the session was deleted.
    """
    said = make_trimmed_record(str(backup), original_session_id=PARENT_ID)
    session = write_session(config_home.project(), PARENT_ID, [said])
    assert find_original_location(config_home, said, session) == f"{backup}:0"
    assert find_original_location(config_home, make_trimmed_record(session)) == f"{backup}:0"
    os.unlink(session)
    assert find_original_location(config_home, make_trimmed_record(session)) == f"{backup}:0"
    # This record names a backup in a state folder that has moved since.
    moved = make_trimmed_record("/gone/backups/x.jsonl", original_session_id=PARENT_ID)
    assert find_original_location(config_home, moved) == f"{backup}:0"


def test_a_linked_backup_is_not_opened(
    config_home: ConfigHome, backup: Path, session_outside_projects: str
) -> None:
    """A backup is not opened if it is a symbolic link or is in a linked folder."""
    backup.unlink()
    backup.symlink_to(session_outside_projects)
    assert (
        find_original_location(
            config_home, make_trimmed_record(str(backup), original_session_id=PARENT_ID)
        )
        is None
    )
    shutil.rmtree(backup.parent)
    backup.parent.symlink_to(Path(session_outside_projects).parent)
    assert (
        find_original_location(
            config_home, make_trimmed_record(str(backup), original_session_id=PARENT_ID)
        )
        is None
    )


def test_fields_of_another_tool_lead_to_the_original(config_home: ConfigHome, parent: str) -> None:
    """A path and line stored by another tool lead to the original if that line has the record's uuid."""
    said = {
        **make_record_with_notice("cut"),
        "truncated": True,
        "original_session": parent,
        "original_index": 0,
    }
    assert find_original_location(config_home, said) == f"{parent}:0"
    write_session(config_home.project(), PARENT_ID, [{**UNTRIMMED_RECORD, "uuid": "other"}])
    assert find_original_location(config_home, said) is None


@pytest.mark.parametrize(
    "notice",
    [
        "the\n\n[...truncated - original content was 16 characters, showing first. See line 1 of {} for full content]",
        "the wh\n\n[...truncated content - was 16 chars. See line 1 of {}]",
        "[Assistant message trimmed - original content was 1,016 characters. See line 1 of {} for full content]",
        "First 6 chars: the wh... [truncated]\nSee line 1 of {} for full content (original was 16 chars).",
    ],
)
def test_a_notice_of_another_tool_leads_to_the_original(
    config_home: ConfigHome, parent: str, notice: str
) -> None:
    """The file and the line in another tool's notice lead to the original. The notice counts lines from 1."""
    assert (
        find_original_location(config_home, make_record_with_notice(notice.format(parent)))
        == f"{parent}:0"
    )
    inner = [{"type": "text", "text": notice.format(parent)}]
    assert (
        find_original_location(
            config_home, {**UNTRIMMED_RECORD, "message": {"content": [result("c1", inner)]}}
        )
        == f"{parent}:0"
    )
    written = assistant([call("c1", "Write", content=notice.format(parent))], uuid="r1")
    assert [origin.line_number for origin in find_origins(written)] == [0]


def test_a_backup_made_by_another_tool_is_used_only_next_to_the_session(
    config_home: ConfigHome, parent: str, session_outside_projects: str
) -> None:
    """A backup made by another tool is used only if it is next to the session."""
    name = f"{PARENT_ID}.pre-trim-20260131-093000.jsonl.bak"
    beside = shutil.copy(parent, Path(parent).parent / name)
    os.unlink(parent)
    assert (
        find_original_location(
            config_home, make_record_with_notice(f"[... See line 1 of {beside} for full content]")
        )
        == f"{beside}:0"
    )
    away = shutil.move(beside, Path(session_outside_projects).parent)
    assert (
        find_original_location(
            config_home,
            make_record_with_notice(f"[... See line 1 of {away}/{name} for full content]"),
        )
        is None
    )


def test_a_text_that_resembles_a_notice_leads_to_no_original(
    config_home: ConfigHome, parent: str
) -> None:
    """A text that only resembles a notice leads to no original.

    Examples are a notice that is not at the end, a notice that names line 0, and a notice about a
    record with a different uuid.
    """
    for text in (
        f"See line 1 of {parent} for full content] and so on",
        f"See line 0 of {parent} for full content]",
    ):
        assert find_origins(make_record_with_notice(text)) == []
    other = {
        **make_record_with_notice(f"See line 1 of {parent} for full content]"),
        "uuid": "other",
    }
    assert find_original_location(config_home, other) is None


def test_an_original_that_ends_like_a_notice_is_found(config_home: ConfigHome) -> None:
    """An original whose own text ends like a notice of omitted text is found."""
    said = make_record_with_notice("See line 1 of /gone.jsonl for full content]")
    parent = write_session(config_home.project(), PARENT_ID, [said])
    assert find_original_location(config_home, make_trimmed_record(parent)) == f"{parent}:0"


def test_a_reference_to_a_placeholder_leads_to_the_original(
    config_home: ConfigHome, parent: str
) -> None:
    """A reference to a placeholder leads to its original. Any other reference leads to the record itself."""
    write_session(
        config_home.project(), CHILD_ID, [user("hello", uuid="r0"), make_trimmed_record(parent)]
    )
    for number, file in ((0, CHILD_ID), (1, PARENT_ID)):
        looked_up = look_up_original(Reference(CHILD_ID[:8], number), "/", config_home.where)
        assert (looked_up.requested_line.reference, looked_up.original.session_id) == (
            f"{CHILD_ID}:{number}",
            file,
        )


def test_a_lost_original_is_an_error(config_home: ConfigHome, parent: str) -> None:
    """If an original is gone, the error names its former line and the line of the trimmed record."""
    child = write_session(config_home.project(), CHILD_ID, [make_trimmed_record(parent, 5)])
    os.unlink(parent)
    with pytest.raises(SessionNotFound) as caught:
        look_up_original(Reference(CHILD_ID, 0), "/", config_home.where)
    assert (
        caught.value.message == f"The original of {CHILD_ID}:0 is gone: it was line 5 of {parent}"
    )
    assert caught.value.remedy == f"Only the trimmed record is left: line 0 of {child}."


def test_a_reference_leads_to_a_backup_of_a_deleted_session(
    config_home: ConfigHome, backup: Path
) -> None:
    """If a reference names a deleted session, the line is read from the oldest backup that has the line."""
    later = backup.with_name("2026-02-01T09-30-00.000Z.jsonl")
    later.write_bytes(backup.read_bytes() + b"{}\n")
    for number, path in ((0, backup), (1, later)):
        assert look_up_original(
            Reference(PARENT_ID[:8], number), "/", config_home.where
        ).requested_line.file_path == str(path)
    with pytest.raises(SessionNotFound):
        look_up_original(Reference(PARENT_ID[:8], 2), "/", config_home.where)
    with pytest.raises(SessionNotFound):
        look_up_original(Reference("ffffffff", 0), "/", config_home.where)
    with pytest.raises(UsageError):
        look_up_original(
            Reference(write_session(config_home.project(), CHILD_ID, [UNTRIMMED_RECORD]), 9),
            "/",
            config_home.where,
        )


def test_restoring_a_record_replaces_its_contents() -> None:
    """Restoring a record replaces its message and result, and removes the fields about the original.

    All other fields are kept.
    """
    original = {**UNTRIMMED_RECORD, "toolUseResult": {"stdout": "x"}, "cwd": "/old", "version": "1"}
    trimmed = {**make_trimmed_record("/x.jsonl"), "cwd": "/new", "rendered": [{"content": "cut"}]}
    whole = restore_record(trimmed, original)
    assert whole is not None
    assert whole["message"] == original["message"]
    assert (whole["toolUseResult"], whole["cwd"]) == ({"stdout": "x"}, "/new")
    assert not {"truncated", "original_index", "rendered"} & set(whole)
    assert next(iter(whole)) == "parentUuid"


def test_restoring_a_record_omits_invalid_blocks() -> None:
    """A restored record contains no blank texts, no thinking, and no calls that the trimmed record lacks."""
    blocks = [
        {"type": "text", "text": " "},
        {"type": "thinking", "thinking": "t"},
        call("c1"),
        call("c2", path="/x"),
    ]
    original, trimmed = assistant(blocks, uuid="a"), assistant([call("c2", path="[...]")], uuid="a")
    whole = restore_record(trimmed, original)
    assert whole is not None
    assert whole["message"]["content"] == [call("c2", path="/x")]
    assert restore_record(assistant("[...]", uuid="a"), assistant(blocks[:2], uuid="a")) is None
