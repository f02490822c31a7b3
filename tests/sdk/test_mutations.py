"""Compares rename, tag and delete with those of the official SDK.

After a change by us or by the SDK, the SDK's list of sessions must be the same. There is one test
for each difference.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import (
    delete_session,
    get_session_info,
    list_sessions,
    rename_session,
    tag_session,
)

from resume_hooks.archive.vault import delete, restore, trash
from resume_hooks.errors import SessionNotFound, UsageError
from resume_hooks.sessions import locate, rename
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail
from tests.builders import SESSION, ConfigHome, conversation, session_id, write_session
from tests.needs import corpus, corpus_sessions

OLD_MTIME = 1_700_000_000
COPIED_SESSION_COUNT = 60  # Approximate number of copied sessions, taken from the whole corpus.
MAX_COPIED_BYTES = 5_000_000  # Maximum number of bytes in a copied file.

CopiedSessions = tuple[ConfigHome, list[str]]


@pytest.fixture
def copies(config_home: ConfigHome) -> CopiedSessions:
    """Return a config home with copied sessions of the corpus, an hour apart, and their paths.

    Sessions with an incomplete last line are left out.
    """
    corpus()
    found = [file for file in corpus_sessions() if file.stat().st_size < MAX_COPIED_BYTES]
    chosen = [
        file
        for file in found[:: max(1, len(found) // COPIED_SESSION_COUNT)]
        if file.read_bytes().endswith(b"\n")
    ]
    paths = []
    for number, file in enumerate(chosen, 1):
        path = config_home.project() / f"{session_id(number)}.jsonl"
        shutil.copyfile(file, path)
        os.utime(path, (OLD_MTIME, OLD_MTIME + 3_600 * number))
        paths.append(str(path))
    return config_home, paths


def sdk_list(omitted_fields: tuple[str, ...] = ("last_modified",)) -> list[dict[str, Any]]:
    """Return the SDK's list, sorted by id and without ``omitted_fields``."""
    rows = [
        {key: value for key, value in vars(row).items() if key not in omitted_fields}
        for row in list_sessions()
    ]
    return sorted(rows, key=lambda row: str(row["session_id"]))


def list_sessions_after_our_change(
    sessions: list[str], plan_change: Callable[[SessionFile, str], rename.LabelChange]
) -> list[dict[str, Any]]:
    """Change every session with our function, and return the SDK's list without times and sizes."""
    for number, path in enumerate(sessions):
        rename.write_label(plan_change(locate.session_file(path), f"name {number}"))
    return sdk_list(("last_modified", "file_size"))


def list_sessions_after_sdk_change(
    sessions: list[str], change_label: Callable[[str, str], None]
) -> list[dict[str, Any]]:
    """Change every session with the SDK's function, and return the SDK's list without times and sizes."""
    for number, path in enumerate(sessions):
        change_label(Path(path).stem, f"name {number}")
    return sdk_list(("last_modified", "file_size"))


def restore_sessions(sessions: list[str], contents: list[bytes]) -> None:
    """Write the original content of every session back."""
    for path, content in zip(sessions, contents, strict=True):
        Path(path).write_bytes(content)


@pytest.mark.parametrize("verb", ["rename", "tag", "clear"])
def test_lists_agree_after_a_rename_or_a_tag(copies: CopiedSessions, verb: str) -> None:
    """After a change of a title or a tag, the SDK's list is the same whether we or the SDK changed it.

    The title and the tag that we show are also the same.
    """
    home, paths = copies
    contents = [Path(path).read_bytes() for path in paths]
    ours = {
        "rename": lambda session, name: rename.plan_title(session, name, home.where),
        "tag": lambda session, name: rename.plan_tag(session, name, home.where),
        "clear": lambda session, _: rename.plan_tag(session, "", home.where),
    }[verb]
    theirs: Callable[[str, str], None] = {
        "rename": rename_session,
        "tag": tag_session,
        "clear": lambda session, _: tag_session(session, None),
    }[verb]
    after_ours = list_sessions_after_our_change(paths, ours)
    glances = [(HeadTail(path).title, HeadTail(path).tag) for path in paths]
    restore_sessions(paths, contents)
    after_theirs = list_sessions_after_sdk_change(paths, theirs)
    assert after_ours == after_theirs
    assert glances == [(HeadTail(path).title, HeadTail(path).tag) for path in paths]
    assert len(after_ours) > COPIED_SESSION_COUNT // 2


def test_deleted_and_restored_sessions_are_listed_as_before(copies: CopiedSessions) -> None:
    """The SDK's list after a deletion is the same whether we or the SDK deleted the sessions.

    We can restore a deleted session byte for byte, and the SDK then lists it as before.
    """
    home, paths = copies
    before = sdk_list(())
    contents = {path: Path(path).read_bytes() for path in paths}
    for path in paths[::2]:
        delete.move_to_trash(delete.plan_delete(locate.session_file(path), home.where), home.where)
    after_ours = sdk_list(())
    for entry in trash.list_trashed_sessions(home.where):
        restore.execute_restore_plan(restore.plan_restore(entry, home.where), home.where)
    assert {path: Path(path).read_bytes() for path in paths} == contents
    assert sdk_list() == [
        {key: value for key, value in row.items() if key != "last_modified"}
        for row in sorted(before, key=lambda row: str(row["session_id"]))
    ]
    for path, content in contents.items():
        os.utime(path, (OLD_MTIME, OLD_MTIME))
        assert content
    for path in paths[::2]:
        delete_session(Path(path).stem)
    assert sdk_list() == [
        {key: value for key, value in row.items() if key != "last_modified"} for row in after_ours
    ]


@pytest.fixture
def old_session(config_home: ConfigHome) -> SessionFile:
    """Write a session that was last changed long ago."""
    return locate.session_file(
        write_session(config_home.project(), SESSION, conversation(1), mtime=OLD_MTIME)
    )


@pytest.mark.parametrize(
    "tag",
    [
        "plain",
        " spaced ",
        "ﬁne ① ²",
        "e\u0301",
        "a\u200bb",
        "\ufeffx",
        "\u202eabc",
        "日本語",
        "👩\u200d💻",
    ],
)
def test_tags_are_cleaned_as_the_sdk_does(
    old_session: SessionFile, config_home: ConfigHome, tag: str
) -> None:
    """We normalize a tag like the SDK: to the form NFKC, without invisible characters."""
    rename.write_label(rename.plan_tag(old_session, tag, config_home.where))
    ours = HeadTail(old_session.path).tag
    tag_session(SESSION, tag)
    assert HeadTail(old_session.path).tag == ours


@pytest.mark.parametrize("blank", ["", "  ", "\n"])
def test_a_blank_title_is_refused(
    old_session: SessionFile, config_home: ConfigHome, blank: str
) -> None:
    """The SDK and we refuse a title without visible characters."""
    with pytest.raises(ValueError, match="non-empty"):
        rename_session(SESSION, blank)
    with pytest.raises(UsageError):
        rename.plan_title(old_session, blank, config_home.where)


@pytest.mark.parametrize("blank", ["  ", "\n"])
def test_a_blank_tag_is_refused(
    old_session: SessionFile, config_home: ConfigHome, blank: str
) -> None:
    """The SDK and we refuse a tag without visible characters."""
    with pytest.raises(ValueError, match="non-empty"):
        tag_session(SESSION, blank)
    with pytest.raises(UsageError):
        rename.plan_tag(old_session, blank, config_home.where)


def test_unlike_the_sdks_our_empty_tag_removes_the_tag(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """The SDK refuses the tag ``""``. If our command gets this tag, it removes the session's tag."""
    with pytest.raises(ValueError, match="non-empty"):
        tag_session(SESSION, "")
    tag_session(SESSION, "theirs")
    rename.write_label(rename.plan_tag(old_session, "", config_home.where))
    assert not HeadTail(old_session.path).tag


def test_unlike_ours_the_sdk_makes_a_renamed_session_the_newest(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A rename by the SDK changes the time of the session's file. A rename by us does not.

    With a new time, the session would become the latest one and expire 30 days later, although
    nothing new was said in it.
    """
    rename.write_label(rename.plan_title(old_session, "ours", config_home.where))
    assert os.stat(old_session.path).st_mtime == OLD_MTIME
    rename_session(SESSION, "theirs")
    assert os.stat(old_session.path).st_mtime > OLD_MTIME


def test_unlike_ours_the_sdk_leaves_the_name_above_the_box(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A rename by the SDK leaves the old name above the input box, because it writes no ``agent-name``.

    The client's ``/rename`` has written a record ``agent-name`` since 2.1.112, and so do we.
    """
    rename.write_label(rename.plan_title(old_session, "ours", config_home.where))
    rename_session(SESSION, "theirs")
    assert (HeadTail(old_session.path).custom_title, HeadTail(old_session.path).agent_name) == (
        "theirs",
        "ours",
    )
    rename.write_label(rename.plan_title(old_session, "theirs", config_home.where))
    assert HeadTail(old_session.path).agent_name == "theirs"


def test_unlike_ours_the_sdk_keeps_control_characters_in_titles(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """The SDK keeps line breaks and control characters in a title. We remove them."""
    title = "two\nlines \x1b[31mred"
    rename_session(SESSION, title)
    assert HeadTail(old_session.path).custom_title == title
    rename.write_label(rename.plan_title(old_session, title, config_home.where))
    assert HeadTail(old_session.path).custom_title == "two lines red"


def test_unlike_ours_the_sdk_gives_two_sessions_the_same_title(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """The SDK lets two sessions have the same title. We refuse this, because titles are locators."""
    other = session_id(2)
    write_session(config_home.project(), other, conversation(1, session_id=other))
    for each in (SESSION, other):
        rename_session(each, "same")
    rows = list_sessions()
    assert [row.custom_title for row in rows] == ["same", "same"]


def test_unlike_ours_the_sdk_appends_to_an_incomplete_line(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """The SDK appends a title to an incomplete last line, which makes the line unreadable.

    We end the incomplete line first.
    """
    torn = b'{"type":"user","mess'
    Path(old_session.path).write_bytes(Path(old_session.path).read_bytes() + torn)
    rename_session(SESSION, "theirs")
    assert HeadTail(old_session.path).custom_title == ""
    rename.write_label(rename.plan_title(old_session, "ours", config_home.where))
    assert HeadTail(old_session.path).custom_title == "ours"


def test_unlike_ours_the_sdk_writes_through_a_link(
    old_session: SessionFile, config_home: ConfigHome, tmp_path: Path
) -> None:
    """The SDK writes to the target of a link in a project's folder. For us, a link is not a session."""
    target, other = tmp_path / "theirs", session_id(2)
    target.write_bytes(b"precious\n")
    link = config_home.project() / f"{other}.jsonl"
    link.symlink_to(target)
    rename_session(other, "x")
    assert target.read_bytes() != b"precious\n"
    with pytest.raises(SessionNotFound):
        locate.resolve_locator(other, "/", config_home.where)
    with pytest.raises(UsageError):
        rename.plan_title(SessionFile(other, str(link), 0, 1), "x", config_home.where)


def test_unlike_ours_the_sdk_leaves_the_backups_and_deletes_for_good(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A deletion by the SDK leaves the backups of files and cannot be undone.

    A deletion by us moves the backups too, and ``restore`` writes them back.
    """
    backup = config_home.config / "file-history" / SESSION / "a@v1"
    backup.parent.mkdir(parents=True)
    backup.write_bytes(b"the user's")
    content = Path(old_session.path).read_bytes()
    delete_session(SESSION)
    assert backup.exists()
    assert get_session_info(SESSION) is None
    Path(old_session.path).write_bytes(content)
    os.utime(old_session.path, (OLD_MTIME, OLD_MTIME))
    delete.move_to_trash(
        delete.plan_delete(locate.session_file(old_session.path), config_home.where),
        config_home.where,
    )
    assert not backup.exists()
    restore.execute_restore_plan(
        restore.plan_restore(trash.list_trashed_sessions(config_home.where)[0], config_home.where),
        config_home.where,
    )
    assert backup.read_bytes() == b"the user's"
    assert Path(old_session.path).read_bytes() == content
