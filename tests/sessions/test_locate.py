"""Tests of finding a session by a locator, and of ``latest``."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from resume_hooks.errors import AmbiguousLocator, NotATranscript, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions import locate
from resume_hooks.sessions.locate import resolve_locator
from tests.builders import (
    CWD,
    ConfigHome,
    Record,
    conversation,
    custom_title,
    iso_time,
    session_id,
    summary,
    user,
    write_session,
)

FIRST_ID, SECOND_ID, THIRD_ID = (
    "aaaa1111-0000-4000-8000-000000000001",
    "aaaa2222-0000-4000-8000-000000000002",
    session_id(3),
)
CHILD_METADATA: Record = {
    "continue_metadata": {"parent_session_id": FIRST_ID, "continued_at": iso_time(100)}
}
CHILD_RECORDS = [
    CHILD_METADATA,
    summary("lineage", uuid="s", parent=None, ts=100),
    custom_title("child"),
]
CODEX_RECORD = {"timestamp": "2026-01-01T00:00:00Z", "type": "session_meta", "payload": {"id": "x"}}


def resolve_session_id(home: ConfigHome, locator: str | None, cwd: str = CWD) -> str:
    """Return the id of the session that a locator names."""
    return resolve_locator(locator, cwd, home.where).session_id


def write_talk(
    home: ConfigHome,
    session_uuid: str,
    *more_records: Record,
    cwd: str = CWD,
    age_seconds: float = 0,
) -> str:
    """Write a session of two turns that was started in ``cwd``, and return its path.

    The session was last written ``age_seconds`` seconds ago.
    """
    records = [{**record, "cwd": cwd} for record in conversation(2, session_id=session_uuid)]
    return write_session(
        home.project(cwd), session_uuid, [*records, *more_records], mtime=time.time() - age_seconds
    )


def test_a_full_id_finds_a_session(config_home: ConfigHome) -> None:
    """A full id finds a session in any project, in upper or lower case."""
    path = write_talk(config_home, FIRST_ID, cwd="/elsewhere")
    for locator in (FIRST_ID, FIRST_ID.upper(), f"  {FIRST_ID}\n"):
        found = resolve_locator(locator, CWD, config_home.where)
        assert (found.session_id, found.path, found.size) == (FIRST_ID, path, os.path.getsize(path))
    with pytest.raises(SessionNotFound, match=SECOND_ID):
        resolve_session_id(config_home, SECOND_ID)


def test_an_id_prefix_finds_a_session(config_home: ConfigHome) -> None:
    """An id prefix of four or more characters finds a session if the prefix is unique.

    Several copies of a session are treated as one session.
    """
    write_talk(config_home, FIRST_ID)
    write_talk(config_home, FIRST_ID, cwd="/copy", age_seconds=50)
    write_talk(config_home, SECOND_ID, age_seconds=100)
    assert resolve_session_id(config_home, "aaaa1") == FIRST_ID
    assert resolve_session_id(config_home, "AAAA2222-0") == SECOND_ID
    assert "copy" not in resolve_locator("aaaa1", CWD, config_home.where).path
    with pytest.raises(SessionNotFound):
        resolve_session_id(config_home, "aaa")
    with pytest.raises(SessionNotFound):
        resolve_session_id(config_home, "bbbb")


@pytest.mark.parametrize(
    "title",
    ["Fix it", "a/b", 'quoted "x" \\ y', "caf\u00e9 \U0001f680 \u65e5\u672c", "\u65e5\u672c", "notes.jsonl", "x" * 80,
     "latest news", "../up", "50% (done)", "tab\tand  spaces"],
)  # fmt: skip
def test_a_title_finds_a_session(config_home: ConfigHome, title: str) -> None:
    """A title finds its session, whatever its characters are and however JSON escapes them."""
    write_talk(config_home, FIRST_ID)
    write_talk(config_home, THIRD_ID, custom_title(title + " and more"))
    write_talk(config_home, SECOND_ID, custom_title(title))
    assert resolve_session_id(config_home, title) == SECOND_ID
    escaped = json.dumps({"type": "custom-title", "customTitle": title}).encode()
    write_session(config_home.project(), SECOND_ID, [*conversation(1), escaped])
    assert resolve_session_id(config_home, title) == SECOND_ID


def test_a_first_prompt_finds_an_untitled_session(config_home: ConfigHome) -> None:
    """The first prompt, as the list shows it, finds a session without a title."""
    command = "<command-message>go</command-message><command-name>/go</command-name><command-args>on now</command-args>"
    write_session(
        config_home.project(),
        FIRST_ID,
        [user("please\n\n  fix the " + "very " * 30 + "bad bug", uuid="u")],
    )
    write_session(config_home.project(), SECOND_ID, [user(command, uuid="u")])
    for row in locate.candidate_rows(locate.all_sessions(config_home.where), config_home.where):
        assert resolve_session_id(config_home, str(row["title"])) == row["session_id"]
    assert (
        resolve_session_id(config_home, "please fix the " + "very " * 12 + "very\u2026") == FIRST_ID
    )
    assert resolve_session_id(config_home, "/go on now") == SECOND_ID


def test_a_title_copied_by_clear_finds_the_first_session(config_home: ConfigHome) -> None:
    """A title that ``/clear`` copied to a new session finds the earlier session.

    The new session is found by the title followed by "· clear".
    """
    write_talk(config_home, FIRST_ID, custom_title("X \u00b7 trim"))
    clear = user("<command-name>/clear</command-name>", uuid="k")
    write_session(
        config_home.project(),
        SECOND_ID,
        [custom_title("X \u00b7 trim", SECOND_ID), clear, *conversation(1)],
    )
    assert resolve_session_id(config_home, "X \u00b7 trim") == FIRST_ID
    assert resolve_session_id(config_home, "X \u00b7 trim \u00b7 clear") == SECOND_ID


def test_a_title_copied_by_clear_to_two_sessions_is_ambiguous(config_home: ConfigHome) -> None:
    """A title that ``/clear`` copied to two sessions is refused, and the error lists both."""
    write_talk(config_home, FIRST_ID, custom_title("Mine"))
    clear = user("<command-name>/clear</command-name>", uuid="k")
    for number in (SECOND_ID, session_id(3)):
        write_session(
            config_home.project(), number, [custom_title("Mine", number), clear, *conversation(1)]
        )
    with pytest.raises(AmbiguousLocator) as caught:
        resolve_session_id(config_home, "Mine \u00b7 clear")
    assert {row["session_id"] for row in caught.value.candidates} == {SECOND_ID, session_id(3)}
    assert str(caught.value).startswith("'Mine \u00b7 clear' fits 2 sessions")
    assert resolve_session_id(config_home, "Mine") == FIRST_ID


def test_a_path_finds_a_session(
    config_home: ConfigHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path finds a session, even if the path is relative or begins with ``~``.

    The file may have any name.
    """
    path = write_talk(config_home, FIRST_ID)
    folder = tmp_path / "w"
    backup = write_session(folder, "backup", conversation(1, session_id=SECOND_ID))
    assert resolve_session_id(config_home, path) == FIRST_ID
    assert resolve_locator(backup, CWD, config_home.where) == resolve_locator(
        "./backup.jsonl", str(folder), config_home.where
    )
    assert resolve_session_id(config_home, backup) == SECOND_ID
    (config_home.root / "x.jsonl").write_bytes(Path(backup).read_bytes())
    assert resolve_session_id(config_home, "~/x.jsonl") == SECOND_ID


@pytest.mark.parametrize(
    ("content", "expected_id"),
    [
        ([user("x", uuid="u", session_id="../../etc/passwd")], "odd"),
        ([{"type": "user", "sessionId": None}], "odd"),
        ([b"garbage", {"type": "mode", "sessionId": SECOND_ID}], SECOND_ID),
    ],
)
def test_a_valid_id_in_a_file_is_used(
    config_home: ConfigHome, tmp_path: Path, content: list[Record], expected_id: str
) -> None:
    """If the session id in a file is valid, it is used. Otherwise the file's name is used."""
    assert resolve_session_id(config_home, write_session(tmp_path, "odd", content)) == expected_id


def test_files_of_other_programs_are_refused(config_home: ConfigHome, tmp_path: Path) -> None:
    """A Codex rollout and a file without records are refused with one sentence."""
    rollout = write_session(tmp_path, "rollout-2026-01-01", [CODEX_RECORD])
    with pytest.raises(
        NotATranscript,
        match=r"^rollout-2026-01-01\.jsonl is a Codex rollout file, not a Claude Code",
    ):
        resolve_session_id(config_home, rollout)
    others = {
        "empty": b"",
        "text": b"hello\nworld\n",
        "numbers": b"[1]\n2\n",
        "binary": bytes(range(256)),
    }
    for name, content in others.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(content)
        with pytest.raises(NotATranscript, match="has no record"):
            resolve_session_id(config_home, str(path))


@pytest.mark.parametrize("locator", ["", "  ", "\n"])
def test_an_empty_locator_is_a_usage_error(config_home: ConfigHome, locator: str) -> None:
    """An empty locator raises ``UsageError``."""
    with pytest.raises(UsageError):
        resolve_session_id(config_home, locator)


def test_the_latest_session_of_this_folder_is_the_default(config_home: ConfigHome) -> None:
    """Without a locator, the latest session is used: the one that was last written in this folder."""
    write_talk(config_home, FIRST_ID, age_seconds=100)
    write_talk(config_home, SECOND_ID, age_seconds=50)
    write_talk(config_home, THIRD_ID, cwd="/elsewhere")
    assert resolve_session_id(config_home, None) == SECOND_ID
    with pytest.raises(SessionNotFound, match="No session of /nowhere yet"):
        resolve_session_id(config_home, None, "/nowhere")


def test_latest_skips_unsuitable_sessions(config_home: ConfigHome) -> None:
    """``latest`` skips headless sessions, unopened children, sub-agents, links and empty files."""
    project = config_home.project()
    write_talk(config_home, FIRST_ID, age_seconds=100)
    others: dict[int, list[Record]] = {
        10: [custom_title("nothing yet")],
        11: [{**record, "isSidechain": True} for record in conversation(1)],
        12: [{**record, "entrypoint": "sdk-cli"} for record in conversation(1)],
        13: [{**record, "entrypoint": "sdk-py"} for record in conversation(1)],
        14: CHILD_RECORDS,
        15: [CHILD_METADATA, *conversation(2)],
        16: [],
    }
    for number, records in others.items():
        write_session(project, session_id(number), records)
    write_session(project, "agent-abc", conversation(1))
    write_session(project, f"{SECOND_ID}.orphaned-1", conversation(1))
    (project / f"{session_id(17)}.jsonl").symlink_to(
        write_session(config_home.root, THIRD_ID, conversation(1))
    )
    (project / f"{session_id(18)}.jsonl").mkdir()
    assert resolve_session_id(config_home, None) == FIRST_ID


def test_latest_includes_a_continued_child(config_home: ConfigHome) -> None:
    """``latest`` includes a handoff that the user has continued."""
    write_talk(config_home, FIRST_ID, age_seconds=100)
    write_session(
        config_home.project(), SECOND_ID, [*CHILD_RECORDS, user("go", uuid="u", parent="s", ts=200)]
    )
    assert resolve_session_id(config_home, None) == SECOND_ID


def test_latest_distinguishes_folders_stored_in_the_same_place(config_home: ConfigHome) -> None:
    """If the client stores two folders in the same place, ``latest`` tells their sessions apart.

    A session that names neither folder belongs to both.
    """
    write_talk(config_home, FIRST_ID, cwd="/w/a_b", age_seconds=100)
    write_talk(config_home, SECOND_ID, cwd="/w/a-b")
    assert resolve_session_id(config_home, None, "/w/a_b") == FIRST_ID
    assert resolve_session_id(config_home, None, "/w/a-b") == SECOND_ID
    moved = [{**record, "cwd": "/somewhere/else"} for record in conversation(1)]
    write_session(config_home.project("/w/a-b"), THIRD_ID, moved, mtime=time.time() + 60)
    assert resolve_session_id(config_home, None, "/w/a_b") == THIRD_ID


def test_latest_finds_a_session_whose_model_left_the_folder(config_home: ConfigHome) -> None:
    """``latest`` finds a session in the folder where it was started, even if the model left the folder."""
    write_talk(config_home, FIRST_ID, user("x", uuid="x", parent="r3", ts=50, cwd=f"{CWD}/deep"))
    assert resolve_session_id(config_home, None) == FIRST_ID


def test_the_default_session_inside_the_client_is_the_current_one(config_home: ConfigHome) -> None:
    """Inside the client, the session in ``CLAUDE_CODE_SESSION_ID`` is found without a locator.

    If the session has no file yet, an error is raised.
    """
    write_talk(config_home, FIRST_ID)
    write_talk(config_home, SECOND_ID, cwd="/elsewhere", age_seconds=100)
    environ = {**config_home.environ, "CLAUDE_CODE_SESSION_ID": SECOND_ID}
    assert resolve_locator(None, CWD, Where(environ)).session_id == SECOND_ID
    with pytest.raises(SessionNotFound, match="has no file yet"):
        resolve_locator(None, CWD, Where({**environ, "CLAUDE_CODE_SESSION_ID": THIRD_ID}))
    assert (
        resolve_locator(None, CWD, Where({**environ, "CLAUDE_CODE_SESSION_ID": "../x"})).session_id
        == FIRST_ID
    )


def test_a_missing_folder_has_no_sessions(config_home: ConfigHome) -> None:
    """A missing project folder has no sessions and raises no error."""
    assert locate.sessions_in_project_folder("/nowhere") == []
    (config_home.config / "projects").rmdir()
    assert locate.all_sessions(config_home.where) == []
    assert locate.sessions_of_directory(CWD, config_home.where) == []


def test_a_missing_folder_is_not_reported_as_unreadable(config_home: ConfigHome) -> None:
    """Neither a missing folder nor a readable folder is reported as unreadable."""
    write_talk(config_home, FIRST_ID)
    (config_home.config / "projects" / "file").write_text("no folder")
    assert locate.unlistable_folders(config_home.where) == []
    assert locate.unlistable_folders(Where({"HOME": "/nowhere"})) == []
    with pytest.raises(SessionNotFound) as caught:
        resolve_session_id(config_home, SECOND_ID)
    assert (
        caught.value.remedy
        == "It may have been deleted, because the client deletes sessions after 30 days."
    )


def test_all_sessions_lists_the_newest_session_first(config_home: ConfigHome) -> None:
    """``all_sessions`` lists the sessions of all projects, newest first, and skips linked folders."""
    write_talk(config_home, FIRST_ID, age_seconds=100)
    write_talk(config_home, SECOND_ID, cwd="/b", age_seconds=50)
    write_talk(config_home, THIRD_ID, cwd="/c", age_seconds=75)
    write_session(config_home.root / "outside", session_id(9), conversation(1))
    (config_home.config / "projects" / "-linked").symlink_to(config_home.root / "outside")
    assert [session.session_id for session in locate.all_sessions(config_home.where)] == [
        SECOND_ID,
        THIRD_ID,
        FIRST_ID,
    ]


def test_a_session_deleted_during_a_listing_is_omitted(config_home: ConfigHome) -> None:
    """A session that is deleted during a listing is skipped without an error."""
    write_talk(config_home, FIRST_ID, custom_title("here"))
    listed = locate.all_sessions(config_home.where)
    os.unlink(listed[0].path)
    assert locate.find_sessions_titled("here", listed) == []
    assert locate.candidate_rows(listed, config_home.where) == []
    assert not locate.belongs_to_folder(listed[0].path, CWD)


def test_only_files_in_project_folders_are_resumable(
    config_home: ConfigHome, tmp_path: Path
) -> None:
    """The client can resume a session in a project folder, but not a file elsewhere."""
    inside = resolve_locator(write_talk(config_home, FIRST_ID), CWD, config_home.where)
    outside = resolve_locator(
        write_session(tmp_path, SECOND_ID, conversation(1)), CWD, config_home.where
    )
    assert locate.can_client_resume(inside, config_home.where)
    assert not locate.can_client_resume(outside, config_home.where)


def test_a_models_shell_opens_only_transcripts(config_home: ConfigHome, tmp_path: Path) -> None:
    """In a shell that the model runs, a path is accepted only if it is a project's transcript.

    The model can run this plugin's commands there without permission. In other shells the user may
    name any file.
    """
    inside = write_session(config_home.project(), session_id(1), conversation(1))
    model = {**config_home.environ, "CLAUDECODE": "1"}
    outside = tmp_path / "notes.jsonl"
    outside.write_bytes(Path(inside).read_bytes())
    link = config_home.project() / f"{session_id(9)}.jsonl"
    link.symlink_to(outside)
    other = config_home.project() / "memory.txt"
    other.write_bytes(Path(inside).read_bytes())
    assert locate.resolve_locator(str(inside), "/", Where(model)).session_id == session_id(1)
    for path in (outside, link, other, tmp_path / "x" / ".." / "notes.jsonl"):
        with pytest.raises((UsageError, SessionNotFound)):
            locate.resolve_locator(str(path), "/", Where(model))
    assert locate.resolve_locator(str(outside), "/", config_home.where).path == str(outside)
