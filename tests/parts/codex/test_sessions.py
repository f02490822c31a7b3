"""Tests of Codex threads as sessions: they are found, listed and copied to readable records."""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import stat
import tracemalloc
from pathlib import Path

import pytest

from resume_hooks.errors import ResumeHooksError, SessionNotFound, UsageError, WriteFailed
from resume_hooks.parts.codex.sessions import copies, files
from resume_hooks.parts.codex.sessions.ends import RolloutEnds
from resume_hooks.parts.codex.transcripts.lines import can_decompress
from resume_hooks.paths import Where
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.locate import resolve_locator
from resume_hooks.sessions.record_references import names_of_transcript
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile, session_file
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.api_usage import measure_first_request
from resume_hooks.transcripts.context_size import measure_chain, measure_last_records
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import CWD, SESSION, ConfigHome, conversation, session_id, write_session
from tests.parts.codex.rollouts import (
    OTHER_THREAD_ID,
    THIRD_THREAD_ID,
    THREAD_ID,
    Line,
    call_line,
    codex_rollouts,
    event_line,
    message_line,
    meta_line,
    number_lines,
    output_line,
    token_count_line,
    write_rollout,
)

THREAD_LINES = [
    meta_line(),
    message_line("user", "Fix the flaky test", 1),
    message_line("assistant", "Fixed", 2),
    token_count_line(9_000, 3),
]


@pytest.fixture
def home(config_home: ConfigHome) -> Path:
    """Return the CODEX_HOME at its default path."""
    (config_home.root / ".codex").mkdir()
    return config_home.root / ".codex"


def find_thread(home: ConfigHome, locator: str = THREAD_ID) -> SessionFile:
    """Return the thread that a locator names."""
    return resolve_locator(locator, CWD, home.where, allow_other_agents=True)


def permissions_of(path: str) -> int:
    """Return the permissions of a file."""
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_thread_has_the_agent_codex(home: Path, config_home: ConfigHome) -> None:
    """A thread has the agent "codex", whether it is found by id, by a path or in a list.

    The path is that of the rollout or of its readable copy.
    """
    rollout, where = str(write_rollout(home, THREAD_LINES)), config_home.where
    thread = find_thread(config_home)
    ways = [
        thread,
        find_thread(config_home, rollout),
        find_thread(config_home, thread.path),
        registry.readable_session(thread.path, where),
    ]
    assert {(one.agent, one.path, one.original_path) for one in ways} == {
        ("codex", thread.path, rollout)
    }
    (listed,) = registry.store_of_agents(where).sessions()
    assert (listed.agent, listed.path, listed.original_path) == ("codex", rollout, rollout)
    own = session_file(write_session(config_home.project(), SESSION, conversation(2)))
    assert (own.agent, own.original_path) == (CLAUDE_NAME, own.path)


def test_context_percent_uses_the_window_of_the_session(
    home: Path, config_home: ConfigHome
) -> None:
    """The percentage of the context is computed from the window size in the thread's records."""
    write_rollout(
        home,
        [
            meta_line(),
            message_line("user", "Fix the flaky test", 1),
            message_line("assistant", "Fixed", 2),
            token_count_line(246_000, 3),
        ],
    )
    context = Session.open_path(find_thread(config_home).path, config_home.where).context
    assert (context.tokens, context.window) == (246_000, 258_400)
    assert (context.percent or 0) > 100


@pytest.mark.parametrize("fork_maker", ["Codex", "us"])
def test_a_new_fork_has_its_parents_window(
    fork_maker: str, home: Path, config_home: ConfigHome
) -> None:
    """A new fork without a token count has its parent's window, whether Codex or the plugin made the fork."""
    write_rollout(home, number_lines(THREAD_LINES))
    base = {"thread_id": THREAD_ID, "end_ordinal_exclusive": 4, "end_byte_offset": 0}
    if fork_maker == "Codex":
        write_rollout(
            home,
            number_lines(
                [meta_line(OTHER_THREAD_ID, forked_from_id=THREAD_ID, history_base=base)], 4
            ),
            OTHER_THREAD_ID,
        )
    else:
        write_rollout(
            home,
            [meta_line(OTHER_THREAD_ID, forked_from_id=THREAD_ID), *THREAD_LINES[1:3]],
            OTHER_THREAD_ID,
        )
    assert (
        Session.open_path(
            find_thread(config_home, OTHER_THREAD_ID).path, config_home.where
        ).context.window
        == 258_400
    )


def test_a_missing_codex_home_hides_the_agent(config_home: ConfigHome) -> None:
    """Without a CODEX_HOME, the agent "codex" is not listed. If the user names it, the error says why."""
    assert [agent.name for agent in registry.list_agents(config_home.where)] == [CLAUDE_NAME]
    assert registry.store_of_agents(config_home.where) is not None
    assert registry.calling_session_id(config_home.where) == ""
    with pytest.raises(UsageError, match=r"\.codex does not exist"):
        registry.list_agents(config_home.where, "codex")


def test_codex_home_sets_the_folder_of_threads(config_home: ConfigHome, tmp_path: Path) -> None:
    """``CODEX_HOME`` sets the folder for threads, and ``CODEX_THREAD_ID`` sets the current session."""
    path = write_rollout(tmp_path / "elsewhere", THREAD_LINES)
    where = Where(
        {
            **config_home.environ,
            "CODEX_HOME": str(tmp_path / "elsewhere"),
            "CODEX_THREAD_ID": THREAD_ID,
        }
    )
    assert registry.original_path(
        resolve_locator(None, CWD, where, allow_other_agents=True).path, where
    ) == str(path)
    with pytest.raises(UsageError, match="is a Codex session, which this verb does not support"):
        resolve_locator(None, CWD, where)


def test_locators_find_threads(config_home: ConfigHome, home: Path) -> None:
    """A thread is found by its id, the beginning of the id, its title, a part of the title, or its path."""
    path = write_rollout(home, THREAD_LINES)
    write_session(config_home.project(), SESSION, conversation(2))
    for words in (THREAD_ID, THREAD_ID[:8], "Fix the flaky test", "flaky", str(path)):
        session = find_thread(config_home, words)
        assert (session.session_id, registry.original_path(session.path, config_home.where)) == (
            THREAD_ID,
            str(path),
        )
        assert session.mtime == path.stat().st_mtime
    assert resolve_locator(SESSION, CWD, config_home.where).session_id == SESSION
    assert (
        resolve_locator(None, CWD, config_home.where, allow_other_agents=True).session_id == SESSION
    )
    assert (
        names_of_transcript(find_thread(config_home), config_home.where).short_name == THREAD_ID[:8]
    )
    (home / "session_index.jsonl").write_text(
        json.dumps({"id": THREAD_ID, "thread_name": "Tame the test"}) + "\n"
    )
    assert HeadTail(find_thread(config_home, "Tame the test").path).custom_title == "Tame the test"
    write_rollout(
        home, [meta_line(OTHER_THREAD_ID), message_line("user", "Other")], OTHER_THREAD_ID
    )
    assert names_of_transcript(find_thread(config_home), config_home.where).short_name == THREAD_ID
    with pytest.raises(SessionNotFound):
        find_thread(config_home, session_id(9))


def test_a_model_may_name_only_rollouts_by_path(config_home: ConfigHome, home: Path) -> None:
    """A model may name a rollout by its path, but no other file in CODEX_HOME."""
    path = write_rollout(home, THREAD_LINES)
    (home / "history.jsonl").write_text(
        json.dumps({"session_id": THREAD_ID, "ts": 1, "text": "mine"}) + "\n"
    )
    where = Where({**config_home.environ, "CLAUDECODE": "1"})
    assert resolve_locator(str(path), CWD, where, allow_other_agents=True).session_id == THREAD_ID
    with pytest.raises(UsageError, match="is not a transcript"):
        resolve_locator(str(home / "history.jsonl"), CWD, where, allow_other_agents=True)


def test_titles_come_from_the_database(config_home: ConfigHome, home: Path) -> None:
    """A thread's title comes from the index file, else from the database, else from the first prompt.

    A database with a different schema is ignored.
    """
    write_rollout(home, THREAD_LINES)
    (agent,) = registry.list_other_agents(config_home.where)
    with sqlite3.connect(home / "state_5.sqlite") as db:
        db.execute("CREATE TABLE threads(id TEXT, more TEXT, name TEXT)")
        db.execute("INSERT INTO threads VALUES(?, '', 'From the table')", (THREAD_ID,))
    db.close()
    path = agent.store.sessions()[0].path
    assert registry.agent_of_path(path, config_home.where).read_ends(path).title == "From the table"
    (home / "session_index.jsonl").write_text(
        json.dumps({"id": THREAD_ID, "thread_name": "From the list"})
    )
    assert registry.agent_of_path(path, config_home.where).read_ends(path).title == "From the list"
    (home / "session_index.jsonl").unlink()
    (home / "state_5.sqlite").write_bytes(b"no database")
    assert (
        registry.agent_of_path(path, config_home.where).read_ends(path).title
        == "Fix the flaky test"
    )


def test_a_new_scan_reads_the_names_again(config_home: ConfigHome, home: Path) -> None:
    """If a thread was renamed after the first scan, a new scan reads its new name."""
    write_rollout(home, THREAD_LINES)
    (agent,) = registry.list_other_agents(config_home.where)
    path = agent.store.sessions()[0].path
    assert agent.read_ends(path).title == "Fix the flaky test"
    (home / "session_index.jsonl").write_text(
        json.dumps({"id": THREAD_ID, "thread_name": "Tame the test"}) + "\n"
    )
    assert agent.list_files()
    assert agent.read_ends(path).title == "Tame the test"


def test_a_thread_of_several_files_is_one_session(config_home: ConfigHome, home: Path) -> None:
    """A thread with several files is one session, whose file is the newest of them.

    Archived threads are listed. Symbolic links and foreign files are not.
    """
    first = write_rollout(
        home,
        number_lines(
            [
                meta_line(),
                message_line("user", "one"),
                message_line("assistant", "two"),
                message_line("user", "gone"),
            ]
        ),
    )
    base = {"thread_id": THREAD_ID, "end_ordinal_exclusive": 3}
    newest = write_rollout(
        home,
        number_lines([meta_line(history_base=base), message_line("user", "again")], 3),
        rollout_id=THIRD_THREAD_ID,
    )
    archived = write_rollout(
        home, [meta_line(OTHER_THREAD_ID), message_line("user", "old")], OTHER_THREAD_ID
    )
    (home / "archived_sessions").mkdir()
    archived.rename(home / "archived_sessions" / archived.name)
    (first.parent / first.name.replace(THREAD_ID, session_id(7))).symlink_to(first)
    (first.parent / "rollout-notes.jsonl").write_text("{}")
    (agent,) = registry.list_other_agents(config_home.where)
    assert {session.path for session in agent.store.sessions()} == {
        str(newest),
        str(home / "archived_sessions" / archived.name),
    }
    transcript = scan_transcript(find_thread(config_home).path)
    assert [transcript.read_record(node)["message"]["content"] for node in transcript.chain] == [
        "one",
        [{"type": "text", "text": "two"}],
        "again",
    ]
    assert agent.store.projects() == ["-home-user-proj"]
    assert agent.store.sessions(["-elsewhere"]) == []


def test_a_copy_is_private_and_has_the_time_of_its_thread(
    config_home: ConfigHome, home: Path
) -> None:
    """A copy has mode 0600 in a folder with mode 0700, and is made again only if the thread has grown.

    If the thread's file is deleted, the copy is removed.
    """
    path = write_rollout(home, THREAD_LINES)
    copy = find_thread(config_home).path
    assert (permissions_of(copy), permissions_of(os.path.dirname(copy))) == (0o600, 0o700)
    inode, lines = os.stat(copy).st_ino, Path(copy).read_bytes().splitlines()
    assert find_thread(config_home).path == copy
    assert os.stat(copy).st_ino == inode
    with path.open("a") as stream:
        stream.write(json.dumps(message_line("user", "go on", 4)) + "\n")
    assert find_thread(config_home).path == copy
    assert Path(copy).read_bytes().splitlines()[1 : len(lines)] == lines[1:]
    assert measure_chain(copy, scan_transcript(copy).chain)[0] == tokens.ContextSize(
        9_001, 258_400, added_tokens=1
    )
    path.unlink()
    registry.list_all_transcripts(config_home.where)
    assert not os.path.exists(copy)


def test_a_large_thread_is_copied_with_little_memory(config_home: ConfigHome, home: Path) -> None:
    """A thread of more than 30 MB is copied with less than 10 MB of memory."""
    rows = [
        row
        for n in range(300)
        for row in (call_line(f"c{n}", "ls", n), output_line(f"c{n}", "x" * 100_000, n))
    ]
    write_rollout(home, [*THREAD_LINES, *rows])
    tracemalloc.start()
    copy = find_thread(config_home)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert copy.size > 30_000_000
    assert peak < 10_000_000


def test_the_space_for_copies_is_limited(
    config_home: ConfigHome, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the copies exceed their limit, the least recently used one is removed."""
    for thread_id in (THREAD_ID, OTHER_THREAD_ID, THIRD_THREAD_ID):
        write_rollout(home, [meta_line(thread_id), message_line("user", "x" * 1_000)], thread_id)
    old, young = find_thread(config_home).path, find_thread(config_home, OTHER_THREAD_ID).path
    os.utime(old, (1, 1))
    monkeypatch.setattr(copies, "MAX_COPIES_BYTES", 2_000)
    find_thread(config_home, THIRD_THREAD_ID)
    assert (os.path.exists(old), os.path.exists(young)) == (False, True)


def test_a_read_only_state_folder_raises_a_clear_error(config_home: ConfigHome, home: Path) -> None:
    """If the state folder can't be used, the error says that the copy could not be written."""
    write_rollout(home, THREAD_LINES)
    (config_home.config / "resume-hooks").write_text("in the way")
    with pytest.raises(WriteFailed, match="could not be written"):
        find_thread(config_home)


def test_the_lineage_of_a_fork_has_its_parent(config_home: ConfigHome, home: Path) -> None:
    """The lineage of a fork contains its parent, and the fork's copy contains the parent's messages.

    If the parent's file is missing, the copy contains a note.
    """
    parent = write_rollout(home, number_lines(THREAD_LINES))
    base = {"thread_id": THREAD_ID, "end_ordinal_exclusive": 4}
    write_rollout(
        home,
        number_lines(
            [
                meta_line(OTHER_THREAD_ID, forked_from_id=THREAD_ID, history_base=base),
                message_line("user", "on", 5),
            ],
            4,
        ),
        OTHER_THREAD_ID,
    )
    fork = find_thread(config_home, OTHER_THREAD_ID).path
    rows = LineageFinder(config_home.where).find_lineage(fork)
    assert [(row.session_id, row.kind, row.status) for row in rows] == [
        (THREAD_ID, "original", "present"),
        (OTHER_THREAD_ID, "fork", "present"),
    ]
    assert rows[0].session_file == str(parent)
    assert len(scan_transcript(fork).chain) == 3
    parent.unlink()
    fork = find_thread(config_home, OTHER_THREAD_ID).path
    assert b"The earlier conversation is missing" in Path(fork).read_bytes()
    assert len(scan_transcript(fork).chain) == 1
    assert [row.status for row in LineageFinder(config_home.where).find_lineage(fork)] == [
        "missing",
        "present",
    ]


def test_the_second_line_of_an_old_fork_names_its_parent(
    config_home: ConfigHome, home: Path
) -> None:
    """The second line of an old fork names its parent.

    Clients such as 0.36 had no field for the parent. Instead, they copied the parent's first line.
    """
    write_rollout(home, THREAD_LINES)
    write_rollout(
        home,
        [meta_line(OTHER_THREAD_ID), *THREAD_LINES, message_line("user", "on", 5)],
        OTHER_THREAD_ID,
    )
    rows = LineageFinder(config_home.where).find_lineage(
        find_thread(config_home, OTHER_THREAD_ID).path
    )
    assert [row.session_id for row in rows] == [THREAD_ID, OTHER_THREAD_ID]


def test_a_locked_thread_is_open(config_home: ConfigHome, home: Path) -> None:
    """A thread is open if it has a lock or was written a few seconds ago."""
    path = write_rollout(home, THREAD_LINES)
    (agent,) = registry.list_other_agents(config_home.where)
    (session,) = agent.store.sessions()
    assert "seconds ago" in agent.describe_open_state(session)
    os.utime(path, (1, 1))
    assert agent.describe_open_state(session) == ""
    (home / "thread-writer-locks").mkdir()
    with (home / "thread-writer-locks" / f"{THREAD_ID}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert agent.describe_open_state(session) == "Codex has the session open"
    assert agent.describe_open_state(session) == ""
    assert agent.resume_commands(THREAD_ID, "/a b") == (
        f"/resume {THREAD_ID}",
        f"cd '/a b' && codex resume {THREAD_ID}",
    )


def test_an_archived_thread_is_marked_and_must_be_unarchived(
    config_home: ConfigHome, home: Path
) -> None:
    """An archived thread is marked, and its resume commands unarchive the thread first."""
    path = write_rollout(home, THREAD_LINES)
    (home / "archived_sessions").mkdir()
    moved = path.rename(home / "archived_sessions" / path.name)
    (agent,) = registry.list_other_agents(config_home.where)
    assert agent.read_ends(str(moved)).tag == "archived"
    back = f"codex unarchive {THREAD_ID}"
    assert agent.resume_commands(THREAD_ID, "/a b") == (
        f"in a shell: {back}",
        f"cd '/a b' && {back} && codex resume {THREAD_ID}",
    )


def test_the_base_size_of_a_thread_excludes_the_first_prompt(
    config_home: ConfigHome, home: Path
) -> None:
    """A thread's base size is the size of its first request without the prompt.

    The size includes the messages that contain instructions.
    """
    rules = message_line("user", f"<environment_context>{'r' * 8_000}</environment_context>", 1)
    rows = [
        meta_line(),
        rules,
        message_line("user", "p" * 4_000, 2),
        message_line("assistant", "Fixed", 3),
        token_count_line(20_020, 4),
    ]
    path = write_rollout(home, rows)
    (agent,) = registry.list_other_agents(config_home.where)
    assert agent.read_ends(str(path)).tag == ""
    assert measure_first_request(agent.read_ends(str(path)), config_home.where).tokens == 19_000


@pytest.mark.parametrize(
    ("copied_lines", "base_tokens"),
    [([], 19_000), (THREAD_LINES[1:3], tokens.USUAL_FIRST_REQUEST_TOKENS)],
)
def test_the_first_request_is_found_after_long_lines(
    copied_lines: list[Line], base_tokens: int, config_home: ConfigHome, home: Path
) -> None:
    """The first request is found after very long lines.

    If a fork copied answers before the first request, the usual base size is used.
    """
    rules = message_line("user", f"<environment_context>{'r' * 70_000}</environment_context>", 1)
    rows = [
        meta_line(),
        rules,
        *copied_lines,
        message_line("user", "p" * 4_000, 3),
        message_line("assistant", "Fixed", 4),
    ]
    rows += [
        token_count_line(20_020, 5),
        *(message_line("assistant", "x" * 70_000, 6) for _ in range(2)),
    ]
    path = write_rollout(home, rows)
    (agent,) = registry.list_other_agents(config_home.where)
    assert (
        measure_first_request(agent.read_ends(str(path)), config_home.where).tokens == base_tokens
    )
    readable = agent.to_common_format(agent.open_session(str(path)))
    assert measure_first_request(HeadTail(readable.path), config_home.where).tokens == base_tokens


def test_compressed_threads_are_read_with_the_optional_package(
    config_home: ConfigHome, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compressed threads are read if the optional package is installed. Otherwise they are only counted."""
    path = write_rollout(home, THREAD_LINES)
    packed = path.with_suffix(".jsonl.zst")
    if can_decompress():
        import zstandard

        packed.write_bytes(zstandard.compress(path.read_bytes()))
        path.unlink()
        assert len(scan_transcript(find_thread(config_home).path).chain) == 2
        assert (
            registry.agent_of_path(str(packed), config_home.where).read_ends(str(packed)).title
            == "Fix the flaky test"
        )
    monkeypatch.setattr(files, "can_decompress", lambda: False)
    packed.write_bytes(b"\x28\xb5\x2f\xfd")
    (agent,) = registry.list_other_agents(config_home.where)
    assert agent.build_listing_notes() == (
        []
        if path.exists()
        else [
            "1 compressed Codex session skipped; to read them, install the Python package zstandard"
        ]
    )


def _thread_with_long_lines() -> list[Line]:
    long = [
        message_line("user", "Start here", 1),
        *(call_line(f"{n}", "ls " * 900, 2 + n) for n in range(60)),
    ]
    return [
        meta_line(),
        *long,
        *(output_line(f"{n}", "x", 70 + n) for n in range(60)),
        message_line("assistant", "done", 200),
    ]


def test_listing_converts_no_thread(config_home: ConfigHome, home: Path) -> None:
    """Listing threads converts none of them.

    Title, folder, model and tokens come from both ends of each file. The first prompt is found
    after long instructions.
    """
    write_rollout(home, [*_thread_with_long_lines(), token_count_line(7_000, 201)])
    write_rollout(
        home,
        [
            meta_line(OTHER_THREAD_ID, base_instructions={"text": "i" * 90_000}),
            *_thread_with_long_lines()[1:],
        ],
        OTHER_THREAD_ID,
    )
    for path in (
        session.path for session in registry.store_of_agents(config_home.where).sessions()
    ):
        ends = registry.agent_of_path(path, config_home.where).read_ends(path)
        assert (ends.title, ends.cwd, ends.branch, ends.is_whole_file) == (
            "Start here",
            "/home/user/proj",
            "",
            False,
        )
        assert ends.has_own_turns
        assert ends.project == "-home-user-proj"
    thread = registry.list_other_agents(config_home.where)[0].store.find(THREAD_ID)
    assert thread is not None
    ends = registry.read_ends(thread, config_home.where)
    context = measure_last_records(ends.last_records)
    assert context is not None
    assert context.tokens == 7_000
    assert not (config_home.config / "resume-hooks").exists()


@pytest.mark.skipif(
    not codex_rollouts(), reason="the corpus of rollouts is missing: set RESUME_HOOKS_CODEX"
)
def test_the_ends_of_a_rollout_and_its_copy_give_the_same_title(
    config_home: ConfigHome, home: Path
) -> None:
    """The two ends of a real rollout give the same folder, version and title as its readable copy.

    The title may differ if the rollout begins with lines of another thread.
    """
    for path in codex_rollouts():
        (home / "sessions").mkdir(exist_ok=True)
        (home / "sessions" / path.name).write_bytes(path.read_bytes())
    (agent,) = registry.list_other_agents(config_home.where)
    for session in agent.store.sessions():
        ends, whole = agent.read_ends(session.path), HeadTail(agent.to_common_format(session).path)
        assert (ends.cwd, ends.version) == (whole.cwd, whole.version)
        assert ends.title == whole.title or ends.meta.base  # type: ignore[attr-defined]
        assert ends.has_own_turns is whole.has_own_turns is True


def test_an_archived_thread_is_not_started(config_home: ConfigHome, home: Path) -> None:
    """Starting an archived thread raises an error that names the command for unarchiving it."""
    path = write_rollout(home, THREAD_LINES)
    (home / "archived_sessions").mkdir()
    path.rename(home / "archived_sessions" / path.name)
    (agent,) = registry.list_other_agents(config_home.where)
    with pytest.raises(ResumeHooksError, match="archived") as refused:
        agent.launch_command(THREAD_ID)
    assert f"codex unarchive {THREAD_ID}" in refused.value.remedy


def test_a_tail_without_a_message_has_an_end_time(home: Path) -> None:
    """If the last message is in a line that is too long to read, the next line gives the end time."""
    talk = [
        *THREAD_LINES,
        message_line("assistant", "x" * 200_000, 2_900),
        event_line("task_started", 3_000),
    ]
    ends = RolloutEnds(str(write_rollout(home, talk)), "codex")
    assert ends.ended_at == "2026-11-22T09:50:00.000Z"
