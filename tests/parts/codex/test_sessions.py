"""Codex as an agent: which threads there are, what lists show of them, and the copies that they are read through."""

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
from resume_hooks.transcripts.api_usage import read_session_base
from resume_hooks.transcripts.context_size import measure_chain, measure_last_records
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import CWD, SESSION, ConfigHome, conversation, session_id, write_session
from tests.parts.codex.rollouts import (
    OTHER,
    THIRD,
    THREAD,
    Line,
    call,
    codex_rollouts,
    event,
    message_line,
    meta,
    numbered,
    output,
    token_count_line,
    write,
)

TALK = [
    meta(),
    message_line("user", "Fix the flaky test", 1),
    message_line("assistant", "Fixed", 2),
    token_count_line(9_000, 3),
]


@pytest.fixture
def home(config_home: ConfigHome) -> Path:
    """Return a CODEX_HOME at Codex's default place."""
    (config_home.root / ".codex").mkdir()
    return config_home.root / ".codex"


def find_thread(home: ConfigHome, words: str = THREAD) -> SessionFile:
    """Return the thread that the words name, ready to read."""
    return resolve_locator(words, CWD, home.where, foreign=True)


def mode(path: str) -> int:
    """The permissions of a file."""
    return stat.S_IMODE(os.stat(path).st_mode)


def test_a_session_knows_whose_it_is(home: Path, config_home: ConfigHome) -> None:
    """By its id, by either path, and in a list; with its path in its agent."""
    rollout, where = str(write(home, TALK)), config_home.where
    thread = find_thread(config_home)
    ways = [
        thread,
        find_thread(config_home, rollout),
        find_thread(config_home, thread.path),
        registry.readable_session(thread.path, where),
    ]
    assert {(one.agent, one.path, one.original) for one in ways} == {
        ("codex", thread.path, rollout)
    }
    (listed,) = registry.store_of_agents(where).sessions()
    assert (listed.agent, listed.path, listed.original) == ("codex", rollout, rollout)
    own = session_file(write_session(config_home.project(), SESSION, conversation(2)))
    assert (own.agent, own.original) == (CLAUDE_NAME, own.path)


def test_a_full_session_counts_against_the_window_that_it_names(
    home: Path, config_home: ConfigHome
) -> None:
    """Also above 200,000 tokens, where a Claude Code session would need a million."""
    write(
        home,
        [
            meta(),
            message_line("user", "Fix the flaky test", 1),
            message_line("assistant", "Fixed", 2),
            token_count_line(246_000, 3),
        ],
    )
    context = Session.open_path(find_thread(config_home).path, config_home.where).context
    assert (context.tokens, context.window) == (246_000, 258_400)
    assert (context.percent or 0) > 100


@pytest.mark.parametrize("by", ["Codex", "us"])
def test_a_fork_counts_in_its_parents_window_before_its_first_prompt(
    by: str, home: Path, config_home: ConfigHome
) -> None:
    """It has no count of its own yet: Codex's names its parent's file, ours stands alone."""
    write(home, numbered(TALK))
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 4, "end_byte_offset": 0}
    if by == "Codex":
        write(home, numbered([meta(OTHER, forked_from_id=THREAD, history_base=base)], 4), OTHER)
    else:
        write(home, [meta(OTHER, forked_from_id=THREAD), *TALK[1:3]], OTHER)
    assert (
        Session.open_path(find_thread(config_home, OTHER).path, config_home.where).context.window
        == 258_400
    )


def test_without_a_home_there_is_one_agent(config_home: ConfigHome) -> None:
    """Nothing is searched, listed or said of an agent that is not here.

    Naming it says what is missing.
    """
    assert [agent.name for agent in registry.list_agents(config_home.where)] == [CLAUDE_NAME]
    assert registry.store_of_agents(config_home.where) is not None
    assert registry.calling_session_id(config_home.where) == ""
    with pytest.raises(UsageError, match=r"\.codex is not there"):
        registry.list_agents(config_home.where, "codex")


def test_another_home(config_home: ConfigHome, tmp_path: Path) -> None:
    """CODEX_HOME names it; the thread whose shell we run in is the current session."""
    path = write(tmp_path / "elsewhere", TALK)
    where = Where(
        {
            **config_home.environ,
            "CODEX_HOME": str(tmp_path / "elsewhere"),
            "CODEX_THREAD_ID": THREAD,
        }
    )
    assert registry.original_path(
        resolve_locator(None, CWD, where, foreign=True).path, where
    ) == str(path)
    with pytest.raises(UsageError, match="is a Codex session, which this verb does not support"):
        resolve_locator(None, CWD, where)


def test_locators(config_home: ConfigHome, home: Path) -> None:
    """An id, its beginning, a title, a part of it, the path.

    Both agents' sessions are named side by side.
    """
    path = write(home, TALK)
    write_session(config_home.project(), SESSION, conversation(2))
    for words in (THREAD, THREAD[:8], "Fix the flaky test", "flaky", str(path)):
        session = find_thread(config_home, words)
        assert (session.session_id, registry.original_path(session.path, config_home.where)) == (
            THREAD,
            str(path),
        )
        assert session.mtime == path.stat().st_mtime
    assert resolve_locator(SESSION, CWD, config_home.where).session_id == SESSION
    assert resolve_locator(None, CWD, config_home.where, foreign=True).session_id == SESSION
    assert names_of_transcript(find_thread(config_home), config_home.where).short == THREAD[:8]
    (home / "session_index.jsonl").write_text(
        json.dumps({"id": THREAD, "thread_name": "Tame the test"}) + "\n"
    )
    assert HeadTail(find_thread(config_home, "Tame the test").path).custom_title == "Tame the test"
    write(home, [meta(OTHER), message_line("user", "Other")], OTHER)
    assert names_of_transcript(find_thread(config_home), config_home.where).short == THREAD
    with pytest.raises(SessionNotFound):
        find_thread(config_home, session_id(9))


def test_paths_in_a_models_shell(config_home: ConfigHome, home: Path) -> None:
    """A model may name a rollout by its path, and no other file of that home."""
    path = write(home, TALK)
    (home / "history.jsonl").write_text(
        json.dumps({"session_id": THREAD, "ts": 1, "text": "mine"}) + "\n"
    )
    where = Where({**config_home.environ, "CLAUDECODE": "1"})
    assert resolve_locator(str(path), CWD, where, foreign=True).session_id == THREAD
    with pytest.raises(UsageError, match="is not a transcript"):
        resolve_locator(str(home / "history.jsonl"), CWD, where, foreign=True)


def test_names_of_the_database(config_home: ConfigHome, home: Path) -> None:
    """Names are taken from it by their column, the list's come before.

    A database of another form is skipped.
    """
    write(home, TALK)
    (agent,) = registry.list_other_agents(config_home.where)
    with sqlite3.connect(home / "state_5.sqlite") as db:
        db.execute("CREATE TABLE threads(id TEXT, more TEXT, name TEXT)")
        db.execute("INSERT INTO threads VALUES(?, '', 'From the table')", (THREAD,))
    db.close()
    path = agent.store.sessions()[0].path
    assert registry.agent_of_path(path, config_home.where).read_ends(path).title == "From the table"
    (home / "session_index.jsonl").write_text(
        json.dumps({"id": THREAD, "thread_name": "From the list"})
    )
    assert registry.agent_of_path(path, config_home.where).read_ends(path).title == "From the list"
    (home / "session_index.jsonl").unlink()
    (home / "state_5.sqlite").write_bytes(b"no database")
    assert (
        registry.agent_of_path(path, config_home.where).read_ends(path).title
        == "Fix the flaky test"
    )


def test_a_new_scan_reads_the_names_again(config_home: ConfigHome, home: Path) -> None:
    """A name that is given after the first scan is found by the next one."""
    write(home, TALK)
    (agent,) = registry.list_other_agents(config_home.where)
    path = agent.store.sessions()[0].path
    assert agent.read_ends(path).title == "Fix the flaky test"
    (home / "session_index.jsonl").write_text(
        json.dumps({"id": THREAD, "thread_name": "Tame the test"}) + "\n"
    )
    assert agent.list_files()
    assert agent.read_ends(path).title == "Tame the test"


def test_threads_of_several_files(config_home: ConfigHome, home: Path) -> None:
    """A rewound thread is one session, by its newest file; archived ones count.

    Links and strangers don't.
    """
    first = write(
        home,
        numbered(
            [
                meta(),
                message_line("user", "one"),
                message_line("assistant", "two"),
                message_line("user", "gone"),
            ]
        ),
    )
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 3}
    newest = write(
        home,
        numbered([meta(history_base=base), message_line("user", "again")], 3),
        rollout_id=THIRD,
    )
    archived = write(home, [meta(OTHER), message_line("user", "old")], OTHER)
    (home / "archived_sessions").mkdir()
    archived.rename(home / "archived_sessions" / archived.name)
    (first.parent / first.name.replace(THREAD, session_id(7))).symlink_to(first)
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


def test_a_copy_is_private_and_as_new_as_its_thread(config_home: ConfigHome, home: Path) -> None:
    """0600 in 0700; the same file as long as nothing changed, made again when the thread grows.

    Ids stay.
    """
    path = write(home, TALK)
    copy = find_thread(config_home).path
    assert (mode(copy), mode(os.path.dirname(copy))) == (0o600, 0o700)
    inode, lines = os.stat(copy).st_ino, Path(copy).read_bytes().splitlines()
    assert find_thread(config_home).path == copy
    assert os.stat(copy).st_ino == inode
    with path.open("a") as stream:
        stream.write(json.dumps(message_line("user", "go on", 4)) + "\n")
    assert find_thread(config_home).path == copy
    assert Path(copy).read_bytes().splitlines()[1 : len(lines)] == lines[1:]
    assert measure_chain(copy, scan_transcript(copy).chain)[0] == tokens.ContextSize(
        9_001, 258_400, added=1
    )
    path.unlink()
    registry.list_all_transcripts(config_home.where)
    assert not os.path.exists(copy)


def test_a_copy_is_made_line_by_line(config_home: ConfigHome, home: Path) -> None:
    """Only a few of 30 MB are in memory at a time."""
    rows = [
        row
        for n in range(300)
        for row in (call(f"c{n}", "ls", n), output(f"c{n}", "x" * 100_000, n))
    ]
    write(home, [*TALK, *rows])
    tracemalloc.start()
    copy = find_thread(config_home)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert copy.size > 30_000_000
    assert peak < 10_000_000


def test_the_room_for_copies_is_bounded(
    config_home: ConfigHome, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The least recently used copies are removed; a copy that was just used stays at any size."""
    for thread_id in (THREAD, OTHER, THIRD):
        write(home, [meta(thread_id), message_line("user", "x" * 1_000)], thread_id)
    old, young = find_thread(config_home).path, find_thread(config_home, OTHER).path
    os.utime(old, (1, 1))
    monkeypatch.setattr(copies, "MAX_COPIES_BYTES", 2_000)
    find_thread(config_home, THIRD)
    assert (os.path.exists(old), os.path.exists(young)) == (False, True)


def test_a_state_folder_that_cannot_be_written(config_home: ConfigHome, home: Path) -> None:
    """The error names the copy's path."""
    write(home, TALK)
    (config_home.config / "resume-hooks").write_text("in the way")
    with pytest.raises(WriteFailed, match="could not be written"):
        find_thread(config_home)


def test_lineage(config_home: ConfigHome, home: Path) -> None:
    """A fork's parent is found; without it the fork is read alone, with a note."""
    parent = write(home, numbered(TALK))
    base = {"thread_id": THREAD, "end_ordinal_exclusive": 4}
    write(
        home,
        numbered(
            [meta(OTHER, forked_from_id=THREAD, history_base=base), message_line("user", "on", 5)],
            4,
        ),
        OTHER,
    )
    fork = find_thread(config_home, OTHER).path
    rows = LineageFinder(config_home.where).find_lineage(fork)
    assert [(row.session_id, row.kind, row.status) for row in rows] == [
        (THREAD, "original", "present"),
        (OTHER, "fork", "present"),
    ]
    assert rows[0].session_file == str(parent)
    assert len(scan_transcript(fork).chain) == 3
    parent.unlink()
    fork = find_thread(config_home, OTHER).path
    assert b"What was said before is not there" in Path(fork).read_bytes()
    assert len(scan_transcript(fork).chain) == 1
    assert [row.status for row in LineageFinder(config_home.where).find_lineage(fork)] == [
        "missing",
        "present",
    ]


def test_an_old_fork_shows_its_parent_in_its_second_line(
    config_home: ConfigHome, home: Path
) -> None:
    """Clients such as 0.36 copied the parent's first line behind their own, and named it nowhere."""
    write(home, TALK)
    write(home, [meta(OTHER), *TALK, message_line("user", "on", 5)], OTHER)
    rows = LineageFinder(config_home.where).find_lineage(find_thread(config_home, OTHER).path)
    assert [row.session_id for row in rows] == [THREAD, OTHER]


def test_open_threads(config_home: ConfigHome, home: Path) -> None:
    """A thread is open if its writer has the lock; without a lock the time of the last write counts."""
    path = write(home, TALK)
    (agent,) = registry.list_other_agents(config_home.where)
    (session,) = agent.store.sessions()
    assert "seconds ago" in agent.describe_open_state(session)
    os.utime(path, (1, 1))
    assert agent.describe_open_state(session) == ""
    (home / "thread-writer-locks").mkdir()
    with (home / "thread-writer-locks" / f"{THREAD}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert agent.describe_open_state(session) == "Codex has it open"
    assert agent.describe_open_state(session) == ""
    assert agent.resume_commands(THREAD, "/a b") == (
        f"/resume {THREAD}",
        f"cd '/a b' && codex resume {THREAD}",
    )


def test_an_archived_thread_is_marked_and_comes_back_first(
    config_home: ConfigHome, home: Path
) -> None:
    """Codex refuses to resume it before that."""
    path = write(home, TALK)
    (home / "archived_sessions").mkdir()
    moved = path.rename(home / "archived_sessions" / path.name)
    (agent,) = registry.list_other_agents(config_home.where)
    assert agent.read_ends(str(moved)).tag == "archived"
    back = f"codex unarchive {THREAD}"
    assert agent.resume_commands(THREAD, "/a b") == (
        f"in a shell: {back}",
        f"cd '/a b' && {back} && codex resume {THREAD}",
    )


def test_a_thread_begins_with_its_own_first_request(config_home: ConfigHome, home: Path) -> None:
    """The instructions that Codex sends as messages belong to what a new one begins with.

    The prompt doesn't.
    """
    rules = message_line("user", f"<environment_context>{'r' * 8_000}</environment_context>", 1)
    rows = [
        meta(),
        rules,
        message_line("user", "p" * 4_000, 2),
        message_line("assistant", "Fixed", 3),
        token_count_line(20_020, 4),
    ]
    path = write(home, rows)
    (agent,) = registry.list_other_agents(config_home.where)
    assert agent.read_ends(str(path)).tag == ""
    assert read_session_base(agent.read_ends(str(path)), config_home.where).tokens == 19_000


@pytest.mark.parametrize(
    ("copied", "expected"), [([], 19_000), (TALK[1:3], tokens.USUAL_BASE_TOKENS)]
)
def test_a_first_request_may_stand_behind_long_lines(
    copied: list[Line], expected: int, config_home: ConfigHome, home: Path
) -> None:
    """As behind the output of a first call.

    A count behind an answer that a fork copied is of the conversation.
    """
    rules = message_line("user", f"<environment_context>{'r' * 70_000}</environment_context>", 1)
    rows = [
        meta(),
        rules,
        *copied,
        message_line("user", "p" * 4_000, 3),
        message_line("assistant", "Fixed", 4),
    ]
    rows += [
        token_count_line(20_020, 5),
        *(message_line("assistant", "x" * 70_000, 6) for _ in range(2)),
    ]
    path = write(home, rows)
    (agent,) = registry.list_other_agents(config_home.where)
    assert read_session_base(agent.read_ends(str(path)), config_home.where).tokens == expected
    readable = agent.to_common_format(agent.open_session(str(path)))
    assert read_session_base(HeadTail(readable.path), config_home.where).tokens == expected


def test_packed_threads(
    config_home: ConfigHome, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read with the optional package, else counted; an unpacked one counts once."""
    path = write(home, TALK)
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
    assert agent.listing_notes() == (
        []
        if path.exists()
        else ["1 Codex session, compressed: skipped (1); the Python package zstandard reads them"]
    )


def _big() -> list[Line]:
    long = [
        message_line("user", "Start here", 1),
        *(call(f"{n}", "ls " * 900, 2 + n) for n in range(60)),
    ]
    return [
        meta(),
        *long,
        *(output(f"{n}", "x", 70 + n) for n in range(60)),
        message_line("assistant", "done", 200),
    ]


def test_listing_converts_nothing(config_home: ConfigHome, home: Path) -> None:
    """Both ends tell the title, the folder, the model's tokens.

    A first prompt behind long instructions is found.
    """
    write(home, [*_big(), token_count_line(7_000, 201)])
    write(home, [meta(OTHER, base_instructions={"text": "i" * 90_000}), *_big()[1:]], OTHER)
    for path in (
        session.path for session in registry.store_of_agents(config_home.where).sessions()
    ):
        ends = registry.agent_of_path(path, config_home.where).read_ends(path)
        assert (ends.title, ends.cwd, ends.branch, ends.small) == (
            "Start here",
            "/home/user/proj",
            "",
            False,
        )
        assert ends.has_own_turns
        assert ends.project == "-home-user-proj"
    thread = registry.list_other_agents(config_home.where)[0].store.find(THREAD)
    assert thread is not None
    ends = registry.read_ends(thread, config_home.where)
    context = measure_last_records(ends.last_records)
    assert context is not None
    assert context.tokens == 7_000
    assert not (config_home.config / "resume-hooks").exists()


@pytest.mark.skipif(
    not codex_rollouts(), reason="the corpus of rollouts is missing: set RESUME_HOOKS_CODEX"
)
def test_ends_agree_with_the_whole(config_home: ConfigHome, home: Path) -> None:
    """For each real rollout the ends have the title and the folder of its whole copy."""
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
    """Codex would only refuse it; our error names the command that unarchives it."""
    path = write(home, TALK)
    (home / "archived_sessions").mkdir()
    path.rename(home / "archived_sessions" / path.name)
    (agent,) = registry.list_other_agents(config_home.where)
    with pytest.raises(ResumeHooksError, match="archived") as refused:
        agent.launch_command(THREAD)
    assert f"codex unarchive {THREAD}" in refused.value.remedy


def test_a_tail_without_a_message_still_has_an_end(home: Path) -> None:
    """A line as long as the tail hides the last messages; the line after it has a time."""
    talk = [*TALK, message_line("assistant", "x" * 200_000, 2_900), event("task_started", 3_000)]
    ends = RolloutEnds(str(write(home, talk)), "codex")
    assert ends.ended == "2026-11-22T09:50:00.000Z"
