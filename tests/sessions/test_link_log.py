"""Tests of links.jsonl, which records the parents that no transcript names."""

from __future__ import annotations

import os

import pytest

from resume_hooks.paths import Where
from resume_hooks.sessions.link_log import (
    MAX_LINKS_FILE_BYTES,
    Link,
    links_file,
    read_links,
    read_successors,
    record_link,
    record_successor,
)
from tests.builders import ConfigHome, line, session_id

CLEAR_LINK = Link(session_id(2), session_id(1), "clear", "2026-01-31T09:30:00.000Z", 4711)
HANDOFF_LINK = Link(session_id(3), session_id(2), "handoff", "2026-01-31T09:31:00.000Z")


def test_links_are_read_in_order(config_home: ConfigHome) -> None:
    """Links are read with all their fields, in the order in which they were recorded."""
    record_link(CLEAR_LINK, Where())
    record_link(HANDOFF_LINK, config_home.where)
    assert read_links(Where()) == read_links(config_home.where) == [CLEAR_LINK, HANDOFF_LINK]


def test_links_are_private(config_home: ConfigHome) -> None:
    """links.jsonl has mode 0600, and its folder 0700."""
    record_link(CLEAR_LINK, Where())
    path = links_file(Where())
    assert os.stat(path).st_mode & 0o777 == 0o600
    assert os.stat(os.path.dirname(path)).st_mode & 0o777 == 0o700


def test_a_missing_state_folder_has_no_links(config_home: ConfigHome) -> None:
    """Without the state folder, no links are read."""
    assert read_links(Where()) == []


@pytest.mark.parametrize(
    "damage",
    [
        b"not json\n",
        b"\xff\xfe\n",
        b"[]\n",
        b"null\n",
        b"\n\n",
        b'{"child_id":1,"parent_id":2}\n',
        b'{"child_id":"../x","parent_id":"%s"}\n' % session_id(1).encode(),
        b'{"child_id":"%s","parent_id":"%s"}\n' % (session_id(1).encode(), session_id(1).encode()),
        b"[" * 100_000 + b"\n",
        b'{"child_id":"torn',
    ],
)
def test_a_damaged_row_is_skipped(config_home: ConfigHome, damage: bytes) -> None:
    """A damaged row is skipped, and the rows before and after it are read."""
    record_link(CLEAR_LINK, Where())
    with open(links_file(Where()), "ab") as stream:
        stream.write(damage)
    record_link(HANDOFF_LINK, Where())
    assert read_links(Where()) == [CLEAR_LINK, HANDOFF_LINK]


def test_invalid_fields_of_a_link_are_read_as_empty(config_home: ConfigHome) -> None:
    """A link's invalid field is read as empty, and fields of newer versions are ignored."""
    record_link(CLEAR_LINK, Where())
    with open(links_file(Where()), "ab") as stream:
        row = {"child_id": session_id(5), "parent_id": session_id(4), "client_pid": "x", "new": 1}
        stream.write(line(row) + b"\n")
    assert read_links(Where())[1] == Link(session_id(5), session_id(4), "", "", None)


@pytest.mark.parametrize("file_kind", ["pipe", "device", "too large"])
def test_an_unusable_links_file_is_ignored(config_home: ConfigHome, file_kind: str) -> None:
    """A links file is ignored if it is a pipe, a device or too large. Opening it does not block."""
    os.makedirs(os.path.dirname(links_file(Where())))
    if file_kind == "pipe":
        os.mkfifo(links_file(Where()))
    elif file_kind == "device":
        os.symlink("/dev/zero", links_file(Where()))
    else:
        record_link(CLEAR_LINK, Where())
        os.truncate(links_file(Where()), MAX_LINKS_FILE_BYTES + 1)
    assert read_links(Where()) == []


def test_a_row_about_a_superseded_child_is_not_a_link(config_home: ConfigHome) -> None:
    """A row that marks a child as replaced by another session is not read as a link.

    If a child has several such rows, the last one is used.
    """
    record_link(CLEAR_LINK, Where())
    for by in (4, 5):
        record_successor(CLEAR_LINK.child_id, session_id(by), "2026-01-31T09:32:00.000Z", Where())
    record_successor(
        HANDOFF_LINK.child_id, HANDOFF_LINK.child_id, "2026-01-31T09:32:00.000Z", Where()
    )
    record_successor("../x", session_id(4), "2026-01-31T09:32:00.000Z", Where())
    assert read_links(Where()) == [CLEAR_LINK]
    assert read_successors(config_home.where) == {CLEAR_LINK.child_id: session_id(5)}
