"""Tests of lineages with archived sessions, which are shown without unpacking the sessions."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from resume_hooks import api
from resume_hooks.archive.vault.archive_session import archive_session
from resume_hooks.derive import agents, fork
from resume_hooks.derive.child.write_child import write_child
from resume_hooks.derive.fresh_child import ChildContents
from resume_hooks.errors import WriteFailed
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.layout import unpacked_folder
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.link_log import links_file
from resume_hooks.transcripts.provenance import read_parent
from tests.archive.vault.full_sessions import session_with_every_file
from tests.builders import SESSION, ConfigHome, line, session_id, user, write_session
from tests.sessions.archived.removed_sessions import archive_and_remove
from tests.sessions.test_lineage import write_continued_session

SESSION_NUMBERS = [1, 2, 3, 4]


def session_numbers_and_statuses(home: ConfigHome, path: str) -> list[tuple[int, str]]:
    """Return the number and the status of each session in a lineage."""
    return [
        (int(row.session_id[:8], 16), row.status)
        for row in LineageFinder(home.where).find_lineage(path)
    ]


def write_four_generations(home: ConfigHome) -> list[str]:
    """Write four sessions, each continued from the one before it, and return their paths."""
    return [write_continued_session(home, number, number - 1 or None) for number in SESSION_NUMBERS]


def test_a_lineage_shows_archived_sessions_like_present_ones(config_home: ConfigHome) -> None:
    """A lineage shows an archived session like a present one, with its path in the client's folder.

    Only the status differs: it is "kept". The same holds for descendants. No session is unpacked.
    """
    paths = write_four_generations(config_home)
    lineage_finder = LineageFinder(config_home.where)
    before, after_first = (
        lineage_finder.find_lineage(paths[-1]),
        lineage_finder.find_descendants(session_id(1)),
    )
    for path in (paths[0], paths[1], paths[2]):
        archive_and_remove(path, config_home.environ)
    lineage_finder = LineageFinder(config_home.where)
    rows = lineage_finder.find_lineage(paths[-1])
    assert [row.status for row in rows] == ["kept", "kept", "kept", "present"]
    assert [_row_without_status(row) for row in rows] == [
        _row_without_status(row) for row in before
    ]
    again = lineage_finder.find_descendants(session_id(1))
    assert [(_row_without_status(each.row), each.parent_session_id) for each in again] == [
        (_row_without_status(each.row), each.parent_session_id) for each in after_first
    ]
    assert [each.row.status for each in again] == ["kept", "kept", "present"]
    assert not os.path.exists(unpacked_folder(config_home.where)), "no pack is opened to tell of it"


def _row_without_status(row: object) -> dict[str, object]:
    return {name: getattr(row, name) for name in row.__slots__ if name != "status"}  # type: ignore[attr-defined]


def test_a_session_that_was_not_archived_is_missing(config_home: ConfigHome) -> None:
    """A deleted session without an archived copy is shown as missing, and ends the lineage."""
    paths = write_four_generations(config_home)
    archive_and_remove(paths[0], config_home.environ)
    archive_and_remove(paths[2], config_home.environ)
    os.unlink(paths[1])
    assert session_numbers_and_statuses(config_home, paths[3]) == [
        (2, "missing"),
        (3, "kept"),
        (4, "present"),
    ]


def test_an_archived_session_that_still_exists_is_shown_as_present(config_home: ConfigHome) -> None:
    """A session that is archived and still exists in the client's folder is shown as present."""
    paths = write_four_generations(config_home)
    raw = Path(paths[0]).read_bytes()
    archive_and_remove(paths[0], config_home.environ)
    Path(paths[0]).write_bytes(raw)
    assert session_numbers_and_statuses(config_home, paths[1]) == [(1, "present"), (2, "present")]


def test_links_may_lead_to_archived_sessions(config_home: ConfigHome) -> None:
    """A recorded link may lead to an archived session.

    If a session's file and the link name different parents, the parent that can be read is used.
    """
    first = write_continued_session(config_home, 1)
    second = write_continued_session(config_home, 2, 9, file="")
    Path(links_file(config_home.where)).parent.mkdir(parents=True, exist_ok=True)
    Path(links_file(config_home.where)).write_text(
        f'{{"child_id":"{session_id(2)}","parent_id":"{session_id(1)}","kind":"clear","at":"2026"}}\n'
    )
    archive_and_remove(first, config_home.environ)
    assert session_numbers_and_statuses(config_home, second) == [(1, "kept"), (2, "present")]
    archive_and_remove(second, config_home.environ)
    assert [
        row.row.session_id
        for row in LineageFinder(config_home.where).find_descendants(session_id(1))
    ] == [session_id(2)]


def test_the_lineage_block_marks_archived_ancestors(config_home: ConfigHome) -> None:
    """The lineage block marks an archived ancestor with "(archived copy)" and shows its original path."""
    paths = write_four_generations(config_home)
    archive_and_remove(paths[0], config_home.environ)
    decided = agents.plan_fresh_child(locate.session_file(paths[1]), config_home.where)
    assert f"1. title 1 · {session_id(1)} · " in decided.opening
    assert f" · first session (archived copy)\n   {paths[0]}\n2. title 2 · " in decided.opening


def test_the_python_api_finds_archived_ancestors(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``get_parent_info`` returns a readable copy of an archived parent.

    ``get_full_lineage_chain`` returns the paths in the client's folder, even of archived sessions.
    """
    for name, value in config_home.environ.items():
        monkeypatch.setenv(name, value)
    paths = write_four_generations(config_home)
    raw = Path(paths[2]).read_bytes()
    archive_and_remove(paths[2], config_home.environ)
    parent, how, _ = api.get_parent_info(paths[3])
    assert parent is not None
    assert (parent.read_bytes(), how) == (raw, "continued")
    assert [str(path) for path, _ in api.get_full_lineage_chain(paths[3])] == paths[::-1]


def test_a_digest_contains_the_goal_of_an_archived_ancestor(config_home: ConfigHome) -> None:
    """A digest contains the goal of an ancestor that has since been archived and deleted.

    The digest is the same as before the deletion.
    """
    first = write_session(
        config_home.project(),
        session_id(1),
        [user("Mend the wheel of the cart", uuid="w", session_id=session_id(1))],
        mtime=1e9,
    )
    second = write_continued_session(config_home, 2, 1)
    before = build_digest(locate.session_file(second), config_home.where)
    archive_and_remove(first, config_home.environ)
    after = build_digest(locate.session_file(second), config_home.where)
    assert after == before
    assert "Mend the wheel" in repr(after)


def test_children_of_an_archived_session_are_written_to_its_folder(config_home: ConfigHome) -> None:
    """Children of an archived session are written to the folder in which the client stored the session.

    The children have their own copies of tool outputs, and name their parent's id and original
    path.
    """
    session = session_with_every_file(config_home)
    tracked = {"type": "file-history-snapshot", "messageId": "r3", "isSnapshotUpdate": False}
    named = {
        "messageId": "r3",
        "trackedFileBackups": {"a": {"backupFileName": "abc@v1", "version": 1}},
    }
    with open(session.path, "ab") as stream:
        stream.write(line({**tracked, "snapshot": named}))
    os.utime(session.path, (1e9, 1e9))
    cwd = fork.plan_fork(locate.session_file(session.path), config_home.where).draft.attributes.cwd
    archive_and_remove(session.path, config_home.environ)
    shutil.rmtree(config_home.project())
    kept = locate.resolve_locator(SESSION, "/", config_home.where)
    made = write_child(fork.plan_fork(kept, config_home.where), config_home.where)
    assert (os.path.dirname(made.file), made.parent_file, made.folder) == (
        os.path.dirname(session.path), session.path, cwd,
    )  # fmt: skip
    parent = read_parent(made.file)
    assert parent is not None
    assert (parent.session_id, parent.file_path) == (SESSION, session.path)
    assert made.warnings == ()
    outputs = Path(made.file).with_suffix("") / "tool-results" / "toolu_1.txt"
    assert outputs.read_bytes() == b"large\n" * 10
    assert outputs.stat().st_nlink == 1
    backup = config_home.config / "file-history" / made.session_id / "abc@v1"
    assert not backup.exists() or backup.stat().st_nlink == 1
    contents = ChildContents(build_digest(kept, config_home.where))
    handed = agents.plan_fresh_child(
        kept, config_home.where, kind="handoff", next_step="on", contents=contents
    )
    assert write_child(handed, config_home.where).file.startswith(str(config_home.project()))


def test_a_child_gets_deleted_outputs_from_the_vault(config_home: ConfigHome) -> None:
    """If the client deleted tool outputs, a fork gets them from the archived copy.

    The fork gets the remaining outputs from the client's folder.
    """
    session = session_with_every_file(config_home)
    outputs = config_home.project() / SESSION / "tool-results"
    (outputs / "toolu_2.txt").write_bytes(b"younger")
    archive_session(session, config_home.where)
    (outputs / "toolu_1.txt").unlink()
    made = write_child(fork.plan_fork(session, config_home.where), config_home.where)
    assert made.warnings == ()
    found = {
        path.name: path for path in (Path(made.file).with_suffix("") / "tool-results").iterdir()
    }
    assert {name: path.read_bytes() for name, path in found.items()} == {
        "toolu_1.txt": b"large\n" * 10,
        "toolu_2.txt": b"younger",
    }
    assert found["toolu_1.txt"].stat().st_nlink == 1


def test_a_failed_child_leaves_no_folder(
    config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If writing a child fails, the new project folder is deleted again.

    If the project folder was replaced with a link, writing the child is refused.
    """
    session = session_with_every_file(config_home)
    archive_and_remove(session.path, config_home.environ)
    folder = config_home.project()
    shutil.rmtree(folder)
    kept = locate.resolve_locator(SESSION, "/", config_home.where)
    decided = fork.plan_fork(kept, config_home.where)
    with monkeypatch.context() as patch:
        patch.setattr("resume_hooks.derive.child.write_child.create_session", _raise_error)
        with pytest.raises(WriteFailed):
            write_child(decided, config_home.where)
    assert not folder.exists()
    elsewhere = config_home.root / "elsewhere"
    elsewhere.mkdir()
    folder.symlink_to(elsewhere)
    with pytest.raises(WriteFailed, match="is a symbolic link"):
        write_child(decided, config_home.where)
    assert list(elsewhere.iterdir()) == []


def _raise_error(*_: object) -> None:
    raise WriteFailed("no")
