"""Tests of locators that find an archived session if no session in the project folders matches."""

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
from resume_hooks.sessions.archived.layout import MANIFEST_NAME, archive_folder, unpacked_folder
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

PULL_REQUEST_RECORD = {
    "type": "pr-link",
    "prNumber": 72,
    "prUrl": "https://github.com/o/r/pull/72",
    "sessionId": SESSION,
}


def find_session(home: ConfigHome, locator: str, cwd: str = "/") -> locate.SessionFile:
    """Return the session that a locator names."""
    return locate.resolve_locator(locator, cwd, home.where)


def write_titled_session(
    home: ConfigHome, session_uuid: str = SESSION, title: str = "Fix the parser", cwd: str = CWD
) -> str:
    """Write a session with a title, a tag and a pull request, and return its path."""
    rows: list[Any] = [*conversation(2, session_id=session_uuid), custom_title(title, session_uuid)]
    rows += [
        {"type": "tag", "tag": "Later", "sessionId": session_uuid},
        {**PULL_REQUEST_RECORD, "sessionId": session_uuid},
    ]
    return write_session(home.project(cwd), session_uuid, rows, mtime=1_000_000)


@pytest.mark.parametrize(
    "locator",
    [
        SESSION, SESSION.upper(), SESSION[:6], "Fix the parser", "title:fix the", "parser", "tag:later", "later", "#72",
        "72", "pr:72", "https://github.com/o/r/pull/72",
    ],
)  # fmt: skip
def test_every_locator_finds_an_archived_session(config_home: ConfigHome, locator: str) -> None:
    """Each form of a locator finds an archived session, and its unpacked copy can be read.

    The forms are id, id prefix, title, part of a title, tag and pull request.
    """
    path = write_titled_session(config_home)
    raw = Path(path).read_bytes()
    archive_and_remove(path, config_home.environ)
    found = find_session(config_home, locator)
    assert (found.session_id, found.size) == (SESSION, len(raw))
    assert Path(found.path).read_bytes() == raw
    assert names_of_transcript(found, config_home.where) == (SESSION, SESSION[:8])


def test_paths_find_an_archived_session(config_home: ConfigHome) -> None:
    """The old path and the path of the unpacked copy find an archived session.

    The old path of a sub-agent finds the sub-agent.
    """
    session = session_with_every_file(config_home)
    agent = config_home.project() / SESSION / "subagents" / "deep" / "agent-a1.jsonl"
    raw = agent.read_bytes()
    archive_and_remove(session.path, config_home.environ)
    found = find_session(config_home, session.path)
    assert find_session(config_home, found.path).path == found.path
    assert Path(find_session(config_home, str(agent)).path).read_bytes() == raw
    inside = {**config_home.environ, "CLAUDECODE": "1"}
    assert locate.resolve_locator(found.path, "/", Where(inside)).session_id == SESSION
    # Unpacked copies may be deleted at any time.
    shutil.rmtree(unpacked_folder(config_home.where), ignore_errors=True)
    assert find_session(config_home, found.path).session_id == SESSION
    with pytest.raises(SessionNotFound):
        find_session(config_home, f"{config_home.project('/else')}/{SESSION}.jsonl")


def test_a_models_shell_opens_only_transcripts_of_the_vault(config_home: ConfigHome) -> None:
    """In a shell that the model runs, a path to a manifest or a link in the vault is refused."""
    kept = archive_and_remove(session_with_every_file(config_home).path, config_home.environ)
    inside = {**config_home.environ, "CLAUDECODE": "1"}
    with pytest.raises(UsageError, match="is not a transcript"):
        locate.resolve_locator(os.path.join(kept.folder, MANIFEST_NAME), "/", Where(inside))
    link = os.path.join(kept.folder, f"{session_id(9)}.jsonl")
    os.symlink("/etc/passwd", link)
    with pytest.raises(UsageError, match="is not a transcript"):
        locate.resolve_locator(link, "/", Where(inside))


def test_locators_find_archived_sub_agents(config_home: ConfigHome) -> None:
    """A locator finds the sub-agents of an archived session.

    The full name and the short name of a sub-agent are also locators.
    """
    archive_and_remove(session_with_every_file(config_home).path, config_home.environ)
    for name in ("agent-a1", f"agent-{SESSION[:4]}"):
        found = resolve_transcript(f"{SESSION[:6]}/{name}", "/", config_home.where)
        assert found.session_id == f"{SESSION}/{name}"
        assert names_of_transcript(found, config_home.where).full_name == found.session_id
        assert (
            resolve_transcript(
                names_of_transcript(found, config_home.where).short_name, "/", config_home.where
            )
            == found
        )


def test_a_locator_prefers_a_session_in_the_project_folders(config_home: ConfigHome) -> None:
    """A locator finds a session in the project folders, not its archived copy.

    If only the archived copy has the title, no session is found.
    """
    path = write_titled_session(config_home)
    raw = Path(path).read_bytes()
    archive_and_remove(path, config_home.environ)
    Path(path).write_bytes(raw.replace(b"Fix the parser", b"Fix the lexer."))
    assert find_session(config_home, SESSION).path == path
    assert find_session(config_home, "Fix the lexer.").path == path
    with pytest.raises(SessionNotFound):
        find_session(config_home, "Fix the parser")
    Path(path).write_bytes(b"")  # An empty file, which clients sometimes leave, is no session.
    assert find_session(config_home, "Fix the parser").path != path


def test_a_present_session_precedes_a_matching_archived_one(config_home: ConfigHome) -> None:
    """If a locator matches both an archived session and one in a project folder, it finds the latter."""
    archive_and_remove(write_titled_session(config_home), config_home.environ)
    other = f"{SESSION[:-1]}2"
    path = write_session(
        config_home.project(), other, [*conversation(1), custom_title("Fix the parser too", other)]
    )
    for words in ("parser", SESSION[:6], "Fix the parser"):
        assert find_session(config_home, words).path == path
    assert find_session(config_home, SESSION).session_id == SESSION


def test_a_title_of_several_archived_sessions_is_refused(config_home: ConfigHome) -> None:
    """A title of several archived sessions is refused, and the error lists the sessions."""
    archive_and_remove(write_titled_session(config_home, session_id(1)), config_home.environ)
    archive_and_remove(
        write_titled_session(config_home, session_id(2), cwd="/other"), config_home.environ
    )
    with pytest.raises(AmbiguousLocator) as caught:
        find_session(config_home, "Fix the parser")
    assert {row["session_id"] for row in caught.value.candidates} == {session_id(1), session_id(2)}
    assert {row["title"] for row in caught.value.candidates} == {"Fix the parser"}


def test_a_title_prefers_the_session_of_this_project(config_home: ConfigHome) -> None:
    """A title or pull request finds the archived session of the current project.

    An id prefix must be unique across all projects.
    """
    other = f"{SESSION[:-1]}2"
    archive_and_remove(write_titled_session(config_home, SESSION), config_home.environ)
    archive_and_remove(write_titled_session(config_home, other, cwd="/other"), config_home.environ)
    assert find_session(config_home, "parser", CWD).session_id == SESSION
    assert find_session(config_home, "#72", "/other").session_id == other
    with pytest.raises(AmbiguousLocator):
        find_session(config_home, SESSION[:8], CWD)


def test_every_locator_finds_a_restorable_session(config_home: ConfigHome) -> None:
    """Each form of a locator finds the archived session to restore, in any letter case.

    An empty title or tag, a part of a pull request's number, and a different pull request find no
    session.
    """
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
    assert (
        locate_archived.find_archived("FIX the parser", config_home.where, match_title_parts=False)
        == kept
    )
    with pytest.raises(SessionNotFound):
        locate_archived.find_archived("parser", config_home.where, match_title_parts=False)
    exact = tuple(form for form in RESOLVERS if form is not resolve_title_part)
    assert (
        locate.resolve_locator("later", "/", config_home.where, resolvers=exact).session_id
        == SESSION
    )
    with pytest.raises(SessionNotFound):  # The forms in ``exact`` do not include a part of a title.
        locate.resolve_locator("FIX the parser", "/", config_home.where, resolvers=exact)


def test_latest_never_finds_an_archived_session(config_home: ConfigHome) -> None:
    """``latest`` finds no archived session, because the client could not resume it."""
    archive_and_remove(write_titled_session(config_home), config_home.environ)
    for words in ("latest", "latest~1", None):
        with pytest.raises(SessionNotFound):
            locate.resolve_locator(words, CWD, config_home.where)


def test_no_manifest_is_read_if_a_session_matches(config_home: ConfigHome) -> None:
    """If a session in a project folder matches, no manifest is read.

    For the full id of an archived session, only one manifest is read.
    """
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
    assert not [each for each in opened if each.endswith(MANIFEST_NAME)]
    with opened_paths() as opened:
        find_session(config_home, session_id(3))
    assert {each for each in opened if each.endswith(MANIFEST_NAME)} == {
        manifest_path(config_home, 3)
    }


def manifest_path(home: ConfigHome, session_number: int) -> str:
    """Return the path of the manifest of a session."""
    return os.path.join(archive_folder(session_id(session_number), home.where), MANIFEST_NAME)


def test_a_copy_that_cannot_be_opened_is_reported(config_home: ConfigHome) -> None:
    """If an archived copy cannot be unpacked, finding its session raises an error with the reason."""
    kept = archive_and_remove(write_titled_session(config_home), config_home.environ)
    pack = Path(kept.folder, kept.transcript.where)
    pack.chmod(0o600)
    pack.write_bytes(pack.read_bytes()[:200])
    with pytest.raises(WriteFailed, match="could not be unpacked"):
        find_session(config_home, SESSION)


def test_a_malformed_manifest_is_ignored(config_home: ConfigHome) -> None:
    """A manifest with an invalid path or id is ignored. Other invalid fields have no effect."""
    kept = archive_and_remove(write_titled_session(config_home), config_home.environ)
    path = os.path.join(kept.folder, MANIFEST_NAME)
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
