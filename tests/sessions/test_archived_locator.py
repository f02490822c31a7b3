"""Tests of locators of archived sessions: they are found if no present session matches."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive.vault import locate_archived
from resume_hooks.errors import AmbiguousLocator, SessionNotFound, UsageError, WriteFailed
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.sessions.archived.layout import MANIFEST, archive_folder, unpacked_folder
from resume_hooks.sessions.locate import resolve_transcript
from resume_hooks.sessions.locator_forms import RESOLVERS, resolve_title_part
from resume_hooks.sessions.record_references import names_of_transcript
from tests.archive.vault.full_sessions import session_with_every_file
from tests.builders import (
    CWD,
    SESSION,
    ConfigHome,
    conversation,
    custom_title,
    session_id,
    user,
    write_session,
)
from tests.sessions.archived.removed_sessions import archive_and_remove
from tests.sessions.test_lineage import opened_paths

PULL = {
    "type": "pr-link",
    "prNumber": 72,
    "prUrl": "https://github.com/o/r/pull/72",
    "sessionId": SESSION,
}


def find_session(home: ConfigHome, words: str, cwd: str = "/") -> locate.SessionFile:
    """Return the session that the words name."""
    return locate.resolve_locator(words, cwd, home.where)


def write_titled_session(
    home: ConfigHome, number: str = SESSION, title: str = "Fix the parser", cwd: str = CWD
) -> str:
    """Write a session with a title, a tag and a pull request."""
    rows: list[Any] = [*conversation(2, session_id=number), custom_title(title, number)]
    rows += [{"type": "tag", "tag": "Later", "sessionId": number}, {**PULL, "sessionId": number}]
    return write_session(home.project(cwd), number, rows, mtime=1_000_000)


@pytest.mark.parametrize(
    "words",
    [
        SESSION, SESSION.upper(), SESSION[:6], "Fix the parser", "title:fix the", "parser", "tag:later", "later", "#72",
        "72", "pr:72", "https://github.com/o/r/pull/72",
    ],
)  # fmt: skip
def test_every_locator_finds_an_archived_session(config_home: ConfigHome, words: str) -> None:
    """They are an id, a prefix, a title, a part of one, a tag and a pull request. The found copy can be read."""
    path = write_titled_session(config_home)
    raw = Path(path).read_bytes()
    archive_and_remove(path, config_home.environ)
    found = find_session(config_home, words)
    assert (found.session_id, found.size) == (SESSION, len(raw))
    assert Path(found.path).read_bytes() == raw
    assert names_of_transcript(found, config_home.where) == (SESSION, SESSION[:8])


def test_paths_find_an_archived_session(config_home: ConfigHome) -> None:
    """They are the client's path and the path of the copy, for a session and its sub-agent."""
    session = session_with_every_file(config_home)
    agent = config_home.project() / SESSION / "subagents" / "deep" / "agent-a1.jsonl"
    raw = agent.read_bytes()
    archive_and_remove(session.path, config_home.environ)
    found = find_session(config_home, session.path)
    assert find_session(config_home, found.path).path == found.path
    assert Path(find_session(config_home, str(agent)).path).read_bytes() == raw
    inside = {**config_home.environ, "CLAUDECODE": "1"}
    assert locate.resolve_locator(found.path, "/", Where(inside)).session_id == SESSION
    shutil.rmtree(
        unpacked_folder(config_home.where), ignore_errors=True
    )  # what was unpacked may go at any time
    assert find_session(config_home, found.path).session_id == SESSION
    with pytest.raises(SessionNotFound):
        find_session(config_home, f"{config_home.project('/else')}/{SESSION}.jsonl")


def test_a_models_shell_opens_only_transcripts_of_the_vault(config_home: ConfigHome) -> None:
    """Manifests and targets of links are refused."""
    kept = archive_and_remove(session_with_every_file(config_home).path, config_home.environ)
    inside = {**config_home.environ, "CLAUDECODE": "1"}
    with pytest.raises(UsageError, match="is not a transcript"):
        locate.resolve_locator(os.path.join(kept.folder, MANIFEST), "/", Where(inside))
    link = os.path.join(kept.folder, f"{session_id(9)}.jsonl")
    os.symlink("/etc/passwd", link)
    with pytest.raises(UsageError, match="is not a transcript"):
        locate.resolve_locator(link, "/", Where(inside))


def test_locators_find_archived_sub_agents(config_home: ConfigHome) -> None:
    """They are in or next to the session's folder. Their references lead back to them."""
    archive_and_remove(session_with_every_file(config_home).path, config_home.environ)
    for name in ("agent-a1", f"agent-{SESSION[:4]}"):
        found = resolve_transcript(f"{SESSION[:6]}/{name}", "/", config_home.where)
        assert found.session_id == f"{SESSION}/{name}"
        assert names_of_transcript(found, config_home.where).full == found.session_id
        assert (
            resolve_transcript(
                names_of_transcript(found, config_home.where).short, "/", config_home.where
            )
            == found
        )


def test_a_locator_prefers_the_project_folders(config_home: ConfigHome) -> None:
    """This is true for any form, even if the archived title is no longer the session's title."""
    path = write_titled_session(config_home)
    raw = Path(path).read_bytes()
    archive_and_remove(path, config_home.environ)
    Path(path).write_bytes(raw.replace(b"Fix the parser", b"Fix the lexer."))
    assert find_session(config_home, SESSION).path == path
    assert find_session(config_home, "Fix the lexer.").path == path
    with pytest.raises(SessionNotFound):
        find_session(config_home, "Fix the parser")
    Path(path).write_bytes(b"")  # clients leave stubs: no session
    assert find_session(config_home, "Fix the parser").path != path


def test_a_present_session_makes_no_locator_ambiguous(config_home: ConfigHome) -> None:
    """A title, a part of one or a prefix that matches it does not count for archived ones."""
    archive_and_remove(write_titled_session(config_home), config_home.environ)
    other = f"{SESSION[:-1]}2"
    path = write_session(
        config_home.project(), other, [*conversation(1), custom_title("Fix the parser too", other)]
    )
    for words in ("parser", SESSION[:6], "Fix the parser"):
        assert find_session(config_home, words).path == path
    assert find_session(config_home, SESSION).session_id == SESSION


def test_an_ambiguous_locator_prefers_this_project(config_home: ConfigHome) -> None:
    """Otherwise the error lists the sessions by id."""
    archive_and_remove(write_titled_session(config_home, session_id(1)), config_home.environ)
    archive_and_remove(
        write_titled_session(config_home, session_id(2), cwd="/other"), config_home.environ
    )
    with pytest.raises(AmbiguousLocator) as caught:
        find_session(config_home, "Fix the parser")
    assert {row["session_id"] for row in caught.value.candidates} == {session_id(1), session_id(2)}
    assert {row["title"] for row in caught.value.candidates} == {"Fix the parser"}


def test_a_title_prefers_the_session_of_this_project(config_home: ConfigHome) -> None:
    """The beginning of an id must be unique."""
    other = f"{SESSION[:-1]}2"
    archive_and_remove(write_titled_session(config_home, SESSION), config_home.environ)
    archive_and_remove(write_titled_session(config_home, other, cwd="/other"), config_home.environ)
    assert find_session(config_home, "parser", CWD).session_id == SESSION
    assert find_session(config_home, "#72", "/other").session_id == other
    with pytest.raises(AmbiguousLocator):
        find_session(config_home, SESSION[:8], CWD)


def test_every_locator_finds_a_restorable_session(config_home: ConfigHome) -> None:
    """All forms work, and so does the path of a former project. An empty one is refused."""
    path = write_titled_session(config_home)
    kept = archive_and_remove(path, config_home.environ)
    for words in (
        SESSION[:6],
        path,
        "FIX the parser",
        "tag:LATER",
        "#072",
        "72",
        "https://github.com/o/r/pull/72/files",
    ):
        assert locate_archived.find_archived(words, config_home.where) == kept
    for words in ("title:", "tag:", "#73", "7", "pa", "https://github.com/o/r/pull/73"):
        with pytest.raises(SessionNotFound):
            locate_archived.find_archived(words, config_home.where)
    assert locate_archived.find_archived("FIX the parser", config_home.where, by_part=False) == kept
    with pytest.raises(SessionNotFound):
        locate_archived.find_archived("parser", config_home.where, by_part=False)
    exact = tuple(form for form in RESOLVERS if form is not resolve_title_part)
    assert (
        locate.resolve_locator("later", "/", config_home.where, resolvers=exact).session_id
        == SESSION
    )
    with pytest.raises(SessionNotFound):  # words to be searched for
        locate.resolve_locator("FIX the parser", "/", config_home.where, resolvers=exact)


def test_the_latest_session_is_never_an_archived_one(config_home: ConfigHome) -> None:
    """The client could not resume it."""
    archive_and_remove(write_titled_session(config_home), config_home.environ)
    for words in ("latest", "latest~1", None):
        with pytest.raises(SessionNotFound):
            locate.resolve_locator(words, CWD, config_home.where)


def test_no_manifest_is_read_if_a_session_matches(config_home: ConfigHome) -> None:
    """For an id only one manifest is read."""
    for number in range(1, 6):
        archive_and_remove(
            write_titled_session(config_home, session_id(number)), config_home.environ
        )
    path = write_session(
        config_home.project(), SESSION, [user("hello", uuid="u"), custom_title("Here")]
    )
    with opened_paths() as opened:
        assert find_session(config_home, "Here").path == path
        assert find_session(config_home, SESSION[:5]).path == path
    assert not [each for each in opened if each.endswith(MANIFEST)]
    with opened_paths() as opened:
        find_session(config_home, session_id(3))
    assert {each for each in opened if each.endswith(MANIFEST)} == {manifest_path(config_home, 3)}


def manifest_path(home: ConfigHome, number: int) -> str:
    """Return the path of a manifest."""
    return os.path.join(archive_folder(session_id(number), home.where), MANIFEST)


def test_a_copy_that_cant_be_opened_is_reported(config_home: ConfigHome) -> None:
    """The error gives the cause, and does not claim that the session never existed."""
    kept = archive_and_remove(write_titled_session(config_home), config_home.environ)
    pack = Path(kept.folder, kept.transcript.where)
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes()[:200])
    with pytest.raises(WriteFailed, match="could not be unpacked"):
        find_session(config_home, SESSION)


def test_a_malformed_manifest_is_ignored(config_home: ConfigHome) -> None:
    """It leads to no other file."""
    kept = archive_and_remove(write_titled_session(config_home), config_home.environ)
    path = os.path.join(kept.folder, MANIFEST)
    row = json.loads(Path(path).read_bytes())
    for change in (
        {"place": "projects/../../x.jsonl"},
        {"about": 7},
        {"about": [1] * 7},
        {"session_id": session_id(7)},
    ):
        Path(path).write_text(json.dumps({**row, **change}))
        if "about" in change:
            assert find_session(config_home, SESSION).session_id == SESSION
        else:
            with pytest.raises(SessionNotFound):
                find_session(config_home, SESSION)
