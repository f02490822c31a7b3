"""Rename, tag and delete against the official SDK: the same lists afterwards; where not, why."""

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

OLD = 1_700_000_000
SAMPLE = 60  # corpus sessions that are copied: every tenth or so, of every project
LARGEST = 5_000_000  # bytes of a file that is copied

Home = tuple[ConfigHome, list[str]]


@pytest.fixture
def copies(config_home: ConfigHome) -> Home:
    """A config home with corpus sessions as one project's, an hour apart.

    None that ends in half a line.
    """
    corpus()
    found = [file for file in corpus_sessions() if file.stat().st_size < LARGEST]
    chosen = [
        file for file in found[:: max(1, len(found) // SAMPLE)] if file.read_bytes().endswith(b"\n")
    ]
    paths = []
    for number, file in enumerate(chosen, 1):
        path = config_home.project() / f"{session_id(number)}.jsonl"
        shutil.copyfile(file, path)
        os.utime(path, (OLD, OLD + 3_600 * number))
        paths.append(str(path))
    return config_home, paths


def sdk_list(drop: tuple[str, ...] = ("last_modified",)) -> list[dict[str, Any]]:
    """Return the SDK's list, without documented differences."""
    rows = [
        {key: value for key, value in vars(row).items() if key not in drop}
        for row in list_sessions()
    ]
    return sorted(rows, key=lambda row: str(row["session_id"]))


def with_ours(
    sessions: list[str], change: Callable[[SessionFile, str], rename.LabelChange]
) -> list[dict[str, Any]]:
    """Change every session with our verb; what the SDK then lists, sizes apart."""
    for number, path in enumerate(sessions):
        rename.write_label(change(locate.session_file(path), f"name {number}"))
    return sdk_list(("last_modified", "file_size"))


def with_the_sdk(sessions: list[str], change: Callable[[str, str], None]) -> list[dict[str, Any]]:
    """Change every session with the SDK's function; what it then lists, sizes apart."""
    for number, path in enumerate(sessions):
        change(Path(path).stem, f"name {number}")
    return sdk_list(("last_modified", "file_size"))


def restore_sessions(sessions: list[str], contents: list[bytes]) -> None:
    """Restore every session to its original state."""
    for path, content in zip(sessions, contents, strict=True):
        Path(path).write_bytes(content)


@pytest.mark.parametrize("verb", ["rename", "tag", "clear"])
def test_the_same_lists_afterwards(copies: Home, verb: str) -> None:
    """Whoever gives the titles and tags of real sessions, the SDK lists the same, and our own glance as well."""
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
    after_ours = with_ours(paths, ours)
    glances = [(HeadTail(path).title, HeadTail(path).tag) for path in paths]
    restore_sessions(paths, contents)
    after_theirs = with_the_sdk(paths, theirs)
    assert after_ours == after_theirs
    assert glances == [(HeadTail(path).title, HeadTail(path).tag) for path in paths]
    assert len(after_ours) > SAMPLE // 2


def test_deleted_and_restored_sessions_are_listed_as_before(copies: Home) -> None:
    """After our delete and the SDK's the same rest is listed.

    Only ours can be withdrawn, byte for byte.
    """
    home, paths = copies
    before = sdk_list(())
    contents = {path: Path(path).read_bytes() for path in paths}
    for path in paths[::2]:
        delete.move_to_trash(delete.plan_delete(locate.session_file(path), home.where), home.where)
    after_ours = sdk_list(())
    for entry in trash.list_deleted(home.where):
        restore.restore_session(restore.plan_restore(entry, home.where), home.where)
    assert {path: Path(path).read_bytes() for path in paths} == contents
    assert sdk_list() == [
        {key: value for key, value in row.items() if key != "last_modified"}
        for row in sorted(before, key=lambda row: str(row["session_id"]))
    ]
    for path, content in contents.items():
        os.utime(path, (OLD, OLD))
        assert content
    for path in paths[::2]:
        delete_session(Path(path).stem)
    assert sdk_list() == [
        {key: value for key, value in row.items() if key != "last_modified"} for row in after_ours
    ]


@pytest.fixture
def one(config_home: ConfigHome) -> SessionFile:
    """A session that was last written long ago."""
    return locate.session_file(
        write_session(config_home.project(), SESSION, conversation(1), mtime=OLD)
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
    one: SessionFile, config_home: ConfigHome, tag: str
) -> None:
    """NFKC, and nothing that can't be seen: joined emoji come apart, too."""
    rename.write_label(rename.plan_tag(one, tag, config_home.where))
    ours = HeadTail(one.path).tag
    tag_session(SESSION, tag)
    assert HeadTail(one.path).tag == ours


@pytest.mark.parametrize("empty", ["", "  ", "\n"])
def test_a_title_and_a_tag_must_not_be_empty(
    one: SessionFile, config_home: ConfigHome, empty: str
) -> None:
    """An empty title is refused, and an empty tag unless the tag is removed."""
    for sdk in (rename_session, tag_session):
        with pytest.raises(ValueError, match="non-empty"):
            sdk(SESSION, empty)
    with pytest.raises(UsageError):
        rename.plan_title(one, empty, config_home.where)


def test_difference_the_sdk_makes_a_renamed_session_the_newest(
    one: SessionFile, config_home: ConfigHome
) -> None:
    """It would be the latest, and kept 30 days longer; with us nothing was said in it since."""
    rename.write_label(rename.plan_title(one, "ours", config_home.where))
    assert os.stat(one.path).st_mtime == OLD
    rename_session(SESSION, "theirs")
    assert os.stat(one.path).st_mtime > OLD


def test_difference_the_sdk_leaves_the_name_above_the_box(
    one: SessionFile, config_home: ConfigHome
) -> None:
    """It writes no agent-name, as /rename of the client does since 2.1.112: the old one stays on the screen."""
    rename.write_label(rename.plan_title(one, "ours", config_home.where))
    rename_session(SESSION, "theirs")
    assert (HeadTail(one.path).custom_title, HeadTail(one.path).agent_name) == ("theirs", "ours")
    rename.write_label(rename.plan_title(one, "theirs", config_home.where))
    assert HeadTail(one.path).agent_name == "theirs"


def test_difference_the_sdk_keeps_line_ends_and_controls_in_titles(
    one: SessionFile, config_home: ConfigHome
) -> None:
    """A title is one line here, and drives no terminal."""
    title = "two\nlines \x1b[31mred"
    rename_session(SESSION, title)
    assert HeadTail(one.path).custom_title == title
    rename.write_label(rename.plan_title(one, title, config_home.where))
    assert HeadTail(one.path).custom_title == "two lines red"


def test_difference_the_sdk_gives_a_title_twice(one: SessionFile, config_home: ConfigHome) -> None:
    """Names are locators here."""
    other = session_id(2)
    write_session(config_home.project(), other, conversation(1, session_id=other))
    for each in (SESSION, other):
        rename_session(each, "same")
    rows = list_sessions()
    assert [row.custom_title for row in rows] == ["same", "same"]


def test_difference_the_sdk_writes_behind_half_a_line(
    one: SessionFile, config_home: ConfigHome
) -> None:
    """A torn last line swallows its title; ours ends that line first."""
    torn = b'{"type":"user","mess'
    Path(one.path).write_bytes(Path(one.path).read_bytes() + torn)
    rename_session(SESSION, "theirs")
    assert HeadTail(one.path).custom_title == ""
    rename.write_label(rename.plan_title(one, "ours", config_home.where))
    assert HeadTail(one.path).custom_title == "ours"


def test_difference_the_sdk_writes_through_a_link(
    one: SessionFile, config_home: ConfigHome, tmp_path: Path
) -> None:
    """A link in a project folder leads anywhere; here it is not a session."""
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


def test_difference_the_sdk_leaves_the_backups_and_deletes_for_good(
    one: SessionFile, config_home: ConfigHome
) -> None:
    """What belongs to a session goes with it, and comes back."""
    backup = config_home.config / "file-history" / SESSION / "a@v1"
    backup.parent.mkdir(parents=True)
    backup.write_bytes(b"the user's")
    content = Path(one.path).read_bytes()
    delete_session(SESSION)
    assert backup.exists()
    assert get_session_info(SESSION) is None
    Path(one.path).write_bytes(content)
    os.utime(one.path, (OLD, OLD))
    delete.move_to_trash(
        delete.plan_delete(locate.session_file(one.path), config_home.where), config_home.where
    )
    assert not backup.exists()
    restore.restore_session(
        restore.plan_restore(trash.list_deleted(config_home.where)[0], config_home.where),
        config_home.where,
    )
    assert backup.read_bytes() == b"the user's"
    assert Path(one.path).read_bytes() == content
