"""Tests of titles and tags.

Titles and tags are appended as complete records without control characters. Titles must be unique.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.errors import SessionNotFound, TitleTaken, UsageError, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.sessions import rename as rename_module
from resume_hooks.sessions.rename import (
    MAX_LABEL_CHARACTERS,
    LabelChange,
    plan_tag,
    plan_title,
    write_label,
)
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.storage.atomic import append_records
from resume_hooks.transcripts.head_tail import HeadTail
from tests.builders import (
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_bytes,
    session_id,
    write_session,
)

OLD_FILE_TIME = 1_700_000_000
OTHER_ID = session_id(2)
OTHER_LOCATOR_FORMS = (
    "latest", "latest~", "LATEST~2", "dead", "DEAD-beef", "11111111", "2026-11-22", "7", "#72", "pr:72", "PR:#72",
    "tag:x", "Title: x", "https://example.com/x", "notes.jsonl", "/clear", "~/x", "-x",
)  # fmt: skip
"""Words that are tried as another form of a locator before they are tried as a title."""


@pytest.fixture
def old_session(config_home: ConfigHome) -> SessionFile:
    """Write a session whose file has not changed for a long time."""
    return locate.session_file(
        write_session(config_home.project(), SESSION, conversation(2), mtime=OLD_FILE_TIME)
    )


def read_appended_records(session: SessionFile, earlier_content: bytes) -> list[object]:
    """Check that the earlier content of a session is unchanged, and return the appended records."""
    now = Path(session.path).read_bytes()
    assert now.startswith(earlier_content)
    assert now.endswith(b"\n")
    return [json.loads(line) for line in now[len(earlier_content) :].split(b"\n") if line]


def rename_session(
    session: SessionFile, title: str, environ: dict[str, str], **options: bool
) -> None:
    """Plan and write a title."""
    write_label(plan_title(session, title, Where(environ), **options))


def test_a_title_is_written_as_two_records(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A title is written as two records, as ``/rename`` of client 2.1.112 and later does.

    The second record contains the name that is shown above the input box.
    """
    before = Path(old_session.path).read_bytes()
    rename_session(old_session, "  Fix the parser ", config_home.environ)
    assert (
        Path(old_session.path).read_bytes()[len(before) :]
        == (
            f'{{"type":"custom-title","customTitle":"Fix the parser","sessionId":"{SESSION}"}}\n'
            f'{{"type":"agent-name","agentName":"Fix the parser","sessionId":"{SESSION}"}}\n'
        ).encode()
    )


def test_a_tag_is_written_as_one_record_and_an_empty_tag_removes_it(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A tag is written as one record. An empty tag removes the previous tag."""
    before = Path(old_session.path).read_bytes()
    write_label(plan_tag(old_session, "experiment", config_home.where))
    assert HeadTail(old_session.path).tag == "experiment"
    write_label(plan_tag(old_session, "", config_home.where))
    assert read_appended_records(old_session, before) == [
        {"type": "tag", "tag": "experiment", "sessionId": SESSION},
        {"type": "tag", "tag": "", "sessionId": SESSION},
    ]
    assert not HeadTail(old_session.path).tag


def test_a_rename_keeps_the_modification_time(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A new title or tag does not change the file's time, so the session does not look recently used."""
    rename_session(old_session, "Fix the parser", config_home.environ)
    write_label(plan_tag(old_session, "x", config_home.where))
    assert os.stat(old_session.path).st_mtime == OLD_FILE_TIME


def test_an_unchanged_label_is_not_written(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A title or tag that the session already has is not written again."""
    rename_session(old_session, "Fix", config_home.environ)
    write_label(plan_tag(old_session, "x", config_home.where))
    before = Path(old_session.path).read_bytes()
    assert not plan_title(old_session, "Fix", config_home.where).records
    assert not plan_tag(old_session, "x", config_home.where).records
    rename_session(old_session, "Fix", config_home.environ)
    write_label(plan_tag(old_session, "", config_home.where))
    assert not plan_tag(old_session, "", config_home.where).records
    assert len(read_appended_records(old_session, before)) == 1


def test_an_outdated_agent_name_is_updated(config_home: ConfigHome) -> None:
    """If only the name above the input box is outdated, only the record of that name is written.

    The SDK writes titles without that name.
    """
    name = {"type": "agent-name", "agentName": "Old", "sessionId": SESSION}
    path = write_session(
        config_home.project(), SESSION, [*conversation(1), name, custom_title("New")]
    )
    change = plan_title(locate.session_file(path), "New", config_home.where)
    assert [record["type"] for record in change.records] == ["agent-name"]


def test_a_title_of_another_session_is_refused(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A new title is refused if it is the title or first prompt of another session in the project.

    With ``force``, the title is accepted.
    """
    write_session(
        config_home.project(),
        OTHER_ID,
        [*conversation(1, session_id=OTHER_ID), custom_title("Fix", OTHER_ID)],
    )
    with pytest.raises(TitleTaken, match=OTHER_ID):
        plan_title(old_session, "Fix", config_home.where)
    rename_session(old_session, "Fix", config_home.environ, force=True)
    assert HeadTail(old_session.path).custom_title == "Fix"
    write_session(config_home.project(), OTHER_ID, conversation(1, session_id=OTHER_ID))
    with pytest.raises(TitleTaken):
        plan_title(old_session, "prompt 0", config_home.where)
    third = session_id(3)
    far = write_session(config_home.project("/elsewhere"), third, conversation(1, session_id=third))
    assert plan_title(locate.session_file(far), "Fix", config_home.where).records


INVALID_TITLES = (
    "",
    " \n",
    "\u200b\u202e",
    "x" * (MAX_LABEL_CHARACTERS + 1),
    SESSION,
    SESSION.upper(),
    "--json",
    "a\udcff",
)
INVALID_TAGS = ("\u200b", "\ue000", " \t ", "y" * (MAX_LABEL_CHARACTERS + 1), "\udcff")


@pytest.mark.parametrize(
    ("plan_label", "label"),
    [
        (plan_label, label)
        for plan_label, own in ((plan_title, INVALID_TITLES), (plan_tag, INVALID_TAGS))
        for label in own + OTHER_LOCATOR_FORMS
    ],
)
def test_invalid_titles_and_tags_are_refused(
    old_session: SessionFile,
    config_home: ConfigHome,
    plan_label: Callable[..., LabelChange],
    label: str,
) -> None:
    """A title or tag is refused if it is invisible, too long, or like another form of a locator.

    Invalid bytes are also refused, and so is a title that looks like an option.
    """
    before = Path(old_session.path).read_bytes()
    with pytest.raises(UsageError):
        plan_label(old_session, label, config_home.where)
    assert Path(old_session.path).read_bytes() == before


@pytest.mark.parametrize(
    ("given_title", "title"),
    [
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("right\u202eleft", "rightleft"),
        ("café \u2028 été", "café   été"),
        ("👩\u200d💻 works", "👩\u200d💻 works"),
        ("latest news", "latest news"),
        ("bad", "bad"),
        ("PR: fix 72", "PR: fix 72"),
        ("fix #72", "fix #72"),
        ("either/or", "either/or"),
    ],
)
def test_a_title_is_one_clean_line(
    old_session: SessionFile, config_home: ConfigHome, given_title: str, title: str
) -> None:
    """Control characters, line breaks and characters that reorder text are removed from a title.

    Letters of all scripts and joined emoji are kept.
    """
    rename_session(old_session, given_title, config_home.environ)
    assert HeadTail(old_session.path).custom_title == title


@given(st.text(min_size=1, max_size=MAX_LABEL_CHARACTERS))
def test_cleaning_a_title_is_idempotent(text: str) -> None:
    """Cleaning a title or tag twice gives the same line as cleaning it once."""
    for clean in (rename_module._normalize_title, rename_module._normalize_tag):
        try:
            once = clean(text)
        except UsageError:
            continue
        assert clean(once) == once
        assert len(once.splitlines()) == 1


def test_other_files_cannot_be_renamed(config_home: ConfigHome, tmp_path: Path) -> None:
    """A file not named after its session, a link, a missing file and a sub-agent's file get no title."""
    folder = config_home.project()
    foreign = tmp_path / "copy.jsonl"
    foreign.write_bytes(session_bytes(conversation(1)))
    link = folder / f"{OTHER_ID}.jsonl"
    link.symlink_to(foreign)
    third = session_id(3)
    side = write_session(
        folder, third, [record | {"isSidechain": True} for record in conversation(1)]
    )
    for path in (str(foreign), str(link), side):
        with pytest.raises(UsageError):
            plan_title(SessionFile(OTHER_ID, path, 0, 1), "x", config_home.where)
    with pytest.raises((UsageError, SessionNotFound)):
        plan_title(
            SessionFile(OTHER_ID, str(folder / f"{session_id(4)}.jsonl"), 0, 1),
            "x",
            config_home.where,
        )


def test_a_read_only_session_is_not_renamed(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A read-only session gets no title, even if root runs the command."""
    os.chmod(old_session.path, 0o400)
    with pytest.raises(WriteFailed, match="read-only"):
        plan_title(old_session, "x", config_home.where)


@pytest.mark.parametrize("is_replaced_by_link", [False, True])
def test_a_session_deleted_before_the_write_gets_no_title(
    old_session: SessionFile, config_home: ConfigHome, tmp_path: Path, *, is_replaced_by_link: bool
) -> None:
    """If the session is deleted before the write, no file is created and no link is followed."""
    change = plan_title(old_session, "x", config_home.where)
    target = tmp_path / "target"
    target.write_bytes(b"theirs\n")
    os.unlink(old_session.path)
    if is_replaced_by_link:
        os.symlink(target, old_session.path)
    with pytest.raises(WriteFailed):
        write_label(change)
    assert os.path.lexists(old_session.path) is is_replaced_by_link
    assert target.read_bytes() == b"theirs\n"


def test_a_line_break_is_added_to_an_unfinished_last_line(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """A line break is added to an unfinished last line before the title is written."""
    with open(old_session.path, "ab") as stream:
        stream.write(b'{"type":"user","mess')
    rename_session(old_session, "Fix", config_home.environ)
    assert HeadTail(old_session.path).custom_title == "Fix"
    assert b'{"type":"user","mess\n{"type":"custom-title"' in Path(old_session.path).read_bytes()


def test_a_rename_waits_for_a_line_being_written(
    old_session: SessionFile, config_home: ConfigHome
) -> None:
    """If a client is writing a line, the title is written only when the line is finished."""
    record = b'{"type":"system","content":"' + b"x" * 1_000 + b'"}\n'
    with open(old_session.path, "ab", buffering=0) as stream:
        stream.write(record[:500])
        later = threading.Timer(0.1, stream.write, [record[500:]])
        later.start()
        rename_session(old_session, "Fix", config_home.environ)
        later.join()
    assert record in Path(old_session.path).read_bytes()
    assert HeadTail(old_session.path).custom_title == "Fix"


def test_parallel_renames_lose_no_record(old_session: SessionFile, config_home: ConfigHome) -> None:
    """Titles and tags that are written in parallel are all kept, each on its own line."""
    before = Path(old_session.path).read_bytes()
    changes = [plan_tag(old_session, f"tag {n}", config_home.where) for n in range(8)]

    def append_label(change: LabelChange) -> None:
        append_records(
            change.session.path, [json.dumps(record).encode() for record in change.records]
        )

    threads = [threading.Thread(target=append_label, args=(change,)) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = read_appended_records(old_session, before)
    assert sorted(str(row) for row in found) == sorted(str(change.records[0]) for change in changes)


def test_a_concurrent_title_of_another_program_is_reported(
    old_session: SessionFile, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If another program writes a title directly after ours, an error says so."""
    change = plan_title(old_session, "Ours", config_home.where)

    def append_records_and_another_title(path: str, lines: list[bytes]) -> None:
        append_records(path, lines)
        append_records(path, [json.dumps(custom_title("Theirs")).encode()])

    monkeypatch.setattr(rename_module, "append_records", append_records_and_another_title)
    with pytest.raises(WriteFailed, match="Another program"):
        write_label(change)


def test_renaming_an_open_session_gives_a_warning(config_home: ConfigHome) -> None:
    """A new title for an open session causes a warning that recommends the client's ``/rename``.

    The session's client (2.1.329) may write the old title again.
    """
    session = locate.session_file(write_session(config_home.project(), SESSION, conversation(1)))
    change = plan_title(session, "x", config_home.where)
    assert "/rename" in change.warnings[0]
    write_label(change)
    assert not plan_title(session, "x", config_home.where).warnings
