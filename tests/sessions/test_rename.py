"""Titles and tags: appended as whole records, cleaned, unique.

And nothing else of the file touched.
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

OLD = 1_700_000_000
OTHER = session_id(2)
READS_AS_ANOTHER = (
    "latest", "latest~", "LATEST~2", "dead", "DEAD-beef", "11111111", "2026-11-22", "7", "#72", "pr:72", "PR:#72",
    "tag:x", "Title: x", "https://example.com/x", "notes.jsonl", "/clear", "~/x", "-x",
)  # fmt: skip
"""Words that another form of locator takes first."""


@pytest.fixture
def session(config_home: ConfigHome) -> SessionFile:
    """A session that was last written long ago."""
    return locate.session_file(
        write_session(config_home.project(), SESSION, conversation(2), mtime=OLD)
    )


def records_after(session: SessionFile, before: bytes) -> list[object]:
    """Return the records that were appended to an otherwise unchanged session."""
    now = Path(session.path).read_bytes()
    assert now.startswith(before)
    assert now.endswith(b"\n")
    return [json.loads(line) for line in now[len(before) :].split(b"\n") if line]


def rename(session: SessionFile, title: str, environ: dict[str, str], **how: bool) -> None:
    """Plan and write."""
    write_label(plan_title(session, title, Where(environ), **how))


def test_a_title_is_two_records(session: SessionFile, config_home: ConfigHome) -> None:
    """As ``/rename`` of 2.1.112 and later has it: the title, and the name above the input box.

    At column 0.
    """
    before = Path(session.path).read_bytes()
    rename(session, "  Fix the parser ", config_home.environ)
    assert (
        Path(session.path).read_bytes()[len(before) :]
        == (
            f'{{"type":"custom-title","customTitle":"Fix the parser","sessionId":"{SESSION}"}}\n'
            f'{{"type":"agent-name","agentName":"Fix the parser","sessionId":"{SESSION}"}}\n'
        ).encode()
    )


def test_a_tag_is_one_record_and_an_empty_one_clears_it(
    session: SessionFile, config_home: ConfigHome
) -> None:
    """The last one wins."""
    before = Path(session.path).read_bytes()
    write_label(plan_tag(session, "experiment", config_home.where))
    assert HeadTail(session.path).tag == "experiment"
    write_label(plan_tag(session, "", config_home.where))
    assert records_after(session, before) == [
        {"type": "tag", "tag": "experiment", "sessionId": SESSION},
        {"type": "tag", "tag": "", "sessionId": SESSION},
    ]
    assert not HeadTail(session.path).tag


def test_the_session_gets_no_newer(session: SessionFile, config_home: ConfigHome) -> None:
    """It does not become the latest, is not open, and expires when it would have."""
    rename(session, "Fix the parser", config_home.environ)
    write_label(plan_tag(session, "x", config_home.where))
    assert os.stat(session.path).st_mtime == OLD


def test_an_unchanged_label_is_not_written(session: SessionFile, config_home: ConfigHome) -> None:
    """This applies to a title, a tag, and the absence of a tag."""
    rename(session, "Fix", config_home.environ)
    write_label(plan_tag(session, "x", config_home.where))
    before = Path(session.path).read_bytes()
    assert not plan_title(session, "Fix", config_home.where).records
    assert not plan_tag(session, "x", config_home.where).records
    rename(session, "Fix", config_home.environ)
    write_label(plan_tag(session, "", config_home.where))
    assert not plan_tag(session, "", config_home.where).records
    assert len(records_after(session, before)) == 1


def test_a_name_that_stayed_behind_is_brought_along(config_home: ConfigHome) -> None:
    """The SDK writes the title alone: clients then continue showing the old name above the input box."""
    name = {"type": "agent-name", "agentName": "Old", "sessionId": SESSION}
    path = write_session(
        config_home.project(), SESSION, [*conversation(1), name, custom_title("New")]
    )
    change = plan_title(locate.session_file(path), "New", config_home.where)
    assert [record["type"] for record in change.records] == ["agent-name"]


def test_a_title_of_another_session_is_refused(
    session: SessionFile, config_home: ConfigHome
) -> None:
    """Names are locators, a first prompt too; ``force`` gives it all the same.

    Other projects do not count.
    """
    write_session(
        config_home.project(),
        OTHER,
        [*conversation(1, session_id=OTHER), custom_title("Fix", OTHER)],
    )
    with pytest.raises(TitleTaken, match=OTHER):
        plan_title(session, "Fix", config_home.where)
    rename(session, "Fix", config_home.environ, force=True)
    assert HeadTail(session.path).custom_title == "Fix"
    write_session(config_home.project(), OTHER, conversation(1, session_id=OTHER))
    with pytest.raises(TitleTaken):
        plan_title(session, "prompt 0", config_home.where)
    third = session_id(3)
    far = write_session(config_home.project("/elsewhere"), third, conversation(1, session_id=third))
    assert plan_title(locate.session_file(far), "Fix", config_home.where).records


NO_TITLES = (
    "",
    " \n",
    "\u200b\u202e",
    "x" * (MAX_LABEL_CHARACTERS + 1),
    SESSION,
    SESSION.upper(),
    "--json",
    "a\udcff",
)
NO_TAGS = ("\u200b", "\ue000", " \t ", "y" * (MAX_LABEL_CHARACTERS + 1), "\udcff")


@pytest.mark.parametrize(
    ("decide", "words"),
    [
        (decide, words)
        for decide, own in ((plan_title, NO_TITLES), (plan_tag, NO_TAGS))
        for words in own + READS_AS_ANOTHER
    ],
)
def test_invalid_titles_and_tags(
    session: SessionFile, config_home: ConfigHome, decide: Callable[..., LabelChange], words: str
) -> None:
    """Invisible text, a long text, another session's locator, an option, and invalid bytes."""
    before = Path(session.path).read_bytes()
    with pytest.raises(UsageError):
        decide(session, words, config_home.where)
    assert Path(session.path).read_bytes() == before


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
    session: SessionFile, config_home: ConfigHome, given_title: str, title: str
) -> None:
    """Controls and what reorders text go; letters of all scripts and joined emoji stay."""
    rename(session, given_title, config_home.environ)
    assert HeadTail(session.path).custom_title == title


@given(st.text(min_size=1, max_size=MAX_LABEL_CHARACTERS))
def test_cleaning_twice_is_cleaning_once(text: str) -> None:
    """Whatever is given, what is left names the same again, on one line, or is refused."""
    for clean in (rename_module._normalize_title, rename_module._normalize_tag):
        try:
            once = clean(text)
        except UsageError:
            continue
        assert clean(once) == once
        assert len(once.splitlines()) == 1


def test_other_files_have_no_title(config_home: ConfigHome, tmp_path: Path) -> None:
    """A file of another name, a link, a stub, a sub-agent's transcript.

    And one that went meanwhile.
    """
    folder = config_home.project()
    foreign = tmp_path / "copy.jsonl"
    foreign.write_bytes(session_bytes(conversation(1)))
    link = folder / f"{OTHER}.jsonl"
    link.symlink_to(foreign)
    third = session_id(3)
    side = write_session(
        folder, third, [record | {"isSidechain": True} for record in conversation(1)]
    )
    for path in (str(foreign), str(link), side):
        with pytest.raises(UsageError):
            plan_title(SessionFile(OTHER, path, 0, 1), "x", config_home.where)
    with pytest.raises((UsageError, SessionNotFound)):
        plan_title(
            SessionFile(OTHER, str(folder / f"{session_id(4)}.jsonl"), 0, 1), "x", config_home.where
        )


def test_a_read_only_session_is_left_alone(session: SessionFile, config_home: ConfigHome) -> None:
    """By whoever runs it: root could write."""
    os.chmod(session.path, 0o400)
    with pytest.raises(WriteFailed, match="read-only"):
        plan_title(session, "x", config_home.where)


@pytest.mark.parametrize("linked", [False, True])
def test_a_session_that_went_or_became_a_link_gets_no_title(
    session: SessionFile, config_home: ConfigHome, tmp_path: Path, *, linked: bool
) -> None:
    """Between plan and write: no file is made again, which would be listed as a session, and no link is followed."""
    change = plan_title(session, "x", config_home.where)
    target = tmp_path / "target"
    target.write_bytes(b"theirs\n")
    os.unlink(session.path)
    if linked:
        os.symlink(target, session.path)
    with pytest.raises(WriteFailed):
        write_label(change)
    assert os.path.lexists(session.path) is linked
    assert target.read_bytes() == b"theirs\n"


def test_a_torn_last_line_is_ended_first(session: SessionFile, config_home: ConfigHome) -> None:
    """An interrupted client's half record does not swallow the title."""
    with open(session.path, "ab") as stream:
        stream.write(b'{"type":"user","mess')
    rename(session, "Fix", config_home.environ)
    assert HeadTail(session.path).custom_title == "Fix"
    assert b'{"type":"user","mess\n{"type":"custom-title"' in Path(session.path).read_bytes()


def test_a_line_that_is_being_written_is_waited_for(
    session: SessionFile, config_home: ConfigHome
) -> None:
    """A client that writes a long record in two parts gets it whole."""
    record = b'{"type":"system","content":"' + b"x" * 1_000 + b'"}\n'
    with open(session.path, "ab", buffering=0) as stream:
        stream.write(record[:500])
        later = threading.Timer(0.1, stream.write, [record[500:]])
        later.start()
        rename(session, "Fix", config_home.environ)
        later.join()
    assert record in Path(session.path).read_bytes()
    assert HeadTail(session.path).custom_title == "Fix"


def test_many_writers_lose_nothing(session: SessionFile, config_home: ConfigHome) -> None:
    """Titles and tags from several at once are all there, each on a line of its own."""
    before = Path(session.path).read_bytes()
    changes = [plan_tag(session, f"tag {n}", config_home.where) for n in range(8)]

    def add(change: LabelChange) -> None:
        append_records(
            change.session.path, [json.dumps(record).encode() for record in change.records]
        )

    threads = [threading.Thread(target=add, args=(change,)) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = records_after(session, before)
    assert sorted(str(row) for row in found) == sorted(str(change.records[0]) for change in changes)


def test_a_concurrent_title_of_another_program_is_reported(
    session: SessionFile, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that sets its own title right after ours wins, and the user is informed."""
    change = plan_title(session, "Ours", config_home.where)

    def then_theirs(path: str, lines: list[bytes]) -> None:
        append_records(path, lines)
        append_records(path, [json.dumps(custom_title("Theirs")).encode()])

    monkeypatch.setattr(rename_module, "append_records", then_theirs)
    with pytest.raises(WriteFailed, match="Another program"):
        write_label(change)


def test_a_live_session_is_warned_of(config_home: ConfigHome) -> None:
    """A client that has it open (2.1.329) may write the title that it knew again."""
    session = locate.session_file(write_session(config_home.project(), SESSION, conversation(1)))
    change = plan_title(session, "x", config_home.where)
    assert "/rename" in change.warnings[0]
    write_label(change)
    assert not plan_title(session, "x", config_home.where).warnings
