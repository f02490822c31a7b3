"""Tests of ``back`` in a fork.

The child starts at the point where the fork branched off from its parent, and reports what the fork did.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.transcripts import records
from resume_hooks.transcripts.records import Record
from resume_hooks.transcripts.transcript import scan_transcript
from tests.builders import (
    SESSION,
    ConfigHome,
    assistant,
    boundary,
    conversation,
    custom_title,
    session_bytes,
    session_id,
    summary,
    tool_result,
    tool_use,
    user,
    write_session,
)
from tests.cli.conftest import Cli, Document
from tests.crashes import kill_before_each_change
from tests.derive.trim.test_crash import run_command_line
from tests.hooks.conftest import RunHook, list_children, read_block_reason
from tests.hooks.test_client_module import ask_engine
from tests.sessions.archived.removed_sessions import archive_and_remove

SECRET = "ghp_" + "Ab3dE5gH9" * 4


@pytest.fixture
def parent(config_home: ConfigHome) -> Iterator[Path]:
    """Yield the path of a session of two turns, and check that a test only appends to it."""
    path = Path(
        write_session(
            config_home.project(), SESSION, [*conversation(2), custom_title("Fix the parser")]
        )
    )
    before = path.read_bytes()
    yield path
    assert not path.exists() or path.read_bytes().startswith(before)


def fork_session_file(document: Document, *words: str) -> Path:
    """Fork a session and return the fork's path."""
    return Path(document("fork", *words)["data"]["file"])


def test_four_parallel_rewinds_of_a_fork_make_one_child(
    parent: Path, document: Document, run_hook: RunHook
) -> None:
    """Four parallel ``>back`` prompts in a fork make one child, and each reply names that child."""
    fork = fork_session_file(document, SESSION)
    continue_session(fork, start_second=-6)
    event = {
        "session_id": fork.stem,
        "transcript_path": str(fork),
        "prompt": ">back the lexer is faster",
    }
    before = set(list_children(parent))
    with ThreadPoolExecutor(4) as pool:
        replies = list(
            pool.map(
                lambda _: read_block_reason(run_hook("prompt", event, python=sys.executable)),
                range(4),
            )
        )
    assert len(set(list_children(parent)) - before) == 1
    assert sum(reply.startswith("back") for reply in replies) == 1


def time_after_now(seconds: int) -> str:
    """Return the time ``seconds`` after now."""
    return (
        (datetime.now(UTC) + timedelta(seconds=seconds))
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def continue_session(
    path: Path,
    topic: str = "EXPLORE",
    parent_uuid: str = "r3",
    uuid_prefix: str = "x",
    start_second: int = 1,
) -> None:
    """Append a prompt, a command, an edit and an answer to a session."""
    own = [f"{uuid_prefix}{number}" for number in range(6)]
    edit = {"file_path": "/home/user/proj/lexer.py", "old_string": "a", "new_string": "b"}
    rows: list[Record] = [
        user(
            f"{topic}, and never touch main.py",
            uuid=own[0],
            parent=parent_uuid,
            ts=time_after_now(start_second),
        ),
        tool_use(
            f"c{uuid_prefix}",
            uuid=own[1],
            parent=own[0],
            name="Bash",
            tool_input={"command": "pytest -q"},
        ),
        tool_result(f"c{uuid_prefix}", "3 passed", uuid=own[2], parent=own[1]),
        tool_use(f"d{uuid_prefix}", uuid=own[3], parent=own[2], name="Edit", tool_input=edit),
        tool_result(f"d{uuid_prefix}", "done", uuid=own[4], parent=own[3]),
        assistant(f"We decided to use the lexer of {topic}.", uuid=own[5], parent=own[4]),
    ]
    with path.open("ab") as stream:
        for number, row in enumerate(rows):
            stream.write(
                session_bytes(
                    [
                        {
                            **row,
                            "sessionId": path.stem,
                            "timestamp": time_after_now(start_second + number),
                        }
                    ]
                )
            )


def read_live_message_texts(path: str | Path) -> list[str]:
    """Return the text of each message of the live chain."""
    transcript = scan_transcript(str(path))
    return [
        records.join_text_blocks(transcript.read_record(node))
        for node in transcript.chain
        if node.is_message
    ]


CONVERSATION_TEXTS = ["prompt 0", "answer 1", "prompt 2", "answer 3"]


def test_back_returns_a_fork_to_its_parent(
    parent: Path, document: Document, cli: Cli, config_home: ConfigHome
) -> None:
    """``back`` in a fork makes a child with the parent's conversation and a digest of the fork.

    The digest has the fork's files, commands and last messages with references. The fork is
    unchanged.
    """
    fork = fork_session_file(document, SESSION)
    continue_session(fork)
    before, rows = fork.read_bytes(), len(read_live_message_texts(parent))
    shown = document("back", fork.stem, "--dry-run")["data"]
    assert (shown["written"], shown["back"]["left"], shown["back"]["resolved"]) == (
        False,
        SESSION,
        True,
    )
    assert sorted(config_home.project().iterdir()) == sorted([parent, fork])
    made = document("back", fork.stem)["data"]
    assert read_live_message_texts(made["file"])[:rows] == read_live_message_texts(parent)
    told, card = read_live_message_texts(made["file"])[rows:]
    number = fork.read_bytes().count(b"\n") - 6
    reference = f"{fork.stem[:8]}"
    assert f"when the parent session, which is a fork, branched off from {SESSION}" in told
    assert f":N is record {reference}:N" in told
    assert f"- lexer.py (:{number + 3})" in told
    assert f"- pytest -q (edited since: lexer.py, :{number + 1})" in told
    assert f"ASSISTANT :{number + 5}\n  We decided to use the lexer of EXPLORE." in told
    assert "prompt 0" not in told
    assert "The user's report" not in told
    assert card.startswith(f"**Back** to where the fork branched off from `{SESSION[:8]}`")
    assert (made["back"]["first_left_out"], made["back"]["report_characters"]) == (
        f"{fork.stem}:{number}",
        0,
    )
    assert made["title"] == "Fix the parser · back"
    assert all(check["ok"] for check in made["checks"])
    assert [row.session_id for row in LineageFinder(config_home.where).find_lineage(made["file"])][
        :2
    ] == [
        SESSION,
        fork.stem,
    ]
    assert fork.read_bytes() == before
    text = cli("back", fork.stem, "--report", "the lexer is the way").stdout.decode()
    assert f"where this fork branched off from {SESSION}" in text


def test_the_verb_back_accepts_a_report_in_a_fork(parent: Path, document: Document) -> None:
    """``back --report`` in a fork puts the user's report after the digest."""
    fork = fork_session_file(document, SESSION)
    continue_session(fork)
    made = document("back", fork.stem, "--report", "the lexer is the way")["data"]
    assert read_live_message_texts(made["file"])[-2].endswith(":\nthe lexer is the way")
    assert "- pytest -q" in read_live_message_texts(made["file"])[-2]


def test_the_report_of_a_fork_has_no_secret(parent: Path, document: Document) -> None:
    """The report of ``back`` in a fork contains no secret of the fork."""
    fork = fork_session_file(document, SESSION)
    continue_session(fork, f"use the token {SECRET}")
    assert SECRET not in Path(document("back", fork.stem)["data"]["file"]).read_text()


def test_back_in_a_fork_ignores_later_turns_of_the_parent(parent: Path, document: Document) -> None:
    """``back`` in a fork leaves out later turns of the parent, and a warning says so."""
    fork = fork_session_file(document, SESSION)
    continue_session(fork)
    continue_session(parent, "MEANWHILE", uuid_prefix="m", start_second=2)
    found = document("back", fork.stem)
    (warning,) = found["warnings"]
    assert "The parent got more turns after this fork was made" in warning
    assert f"/resume {SESSION}" in warning
    assert "MEANWHILE" not in Path(found["data"]["file"]).read_text()


def test_back_in_a_fork_of_a_fork_returns_to_the_first_fork(
    parent: Path, document: Document
) -> None:
    """``back`` in a fork of a fork returns to the first fork."""
    first = fork_session_file(document, SESSION)
    continue_session(first, "FIRST")
    second = fork_session_file(document, first.stem)
    continue_session(second, "SECOND", parent_uuid="x5", uuid_prefix="y", start_second=20)
    made = document("back", second.stem)["data"]
    rows = read_live_message_texts(made["file"])
    assert rows[:-2] == read_live_message_texts(first)
    assert "SECOND" in rows[-2]
    assert made["back"]["left"] == first.stem


def test_back_in_a_fork_of_the_first_turn_returns_to_that_turn(
    parent: Path, document: Document
) -> None:
    """``back`` in a fork that was cut after the first turn returns to that turn.

    A warning mentions that the parent was continued.
    """
    fork = fork_session_file(document, SESSION, "--turn", "1")
    continue_session(fork, parent_uuid="r1")
    found = document("back", fork.stem)
    assert (
        read_live_message_texts(found["data"]["file"])[:-2] == read_live_message_texts(parent)[:2]
    )
    assert "The parent got more turns" in found["warnings"][0]


def test_back_in_a_compacted_fork_returns_to_the_parent(parent: Path, document: Document) -> None:
    """``back`` in a fork that was compacted returns to the parent's conversation."""
    fork = fork_session_file(document, SESSION)
    continue_session(fork)
    rows = [
        boundary(uuid="b", before="x5", ts=time_after_now(10)),
        summary("all of it", uuid="s", parent="b", ts=time_after_now(11)),
        user("AFTERWARDS", uuid="z0", parent="s", ts=time_after_now(12)),
        assistant("fine", uuid="z1", parent="z0", ts=time_after_now(13)),
    ]
    with fork.open("ab") as stream:
        stream.write(session_bytes([{**row, "sessionId": fork.stem} for row in rows]))
    found = document("back", fork.stem)
    assert read_live_message_texts(found["data"]["file"])[:-2] == read_live_message_texts(parent)
    assert "The cut is before a compaction" in found["warnings"][0]
    assert "- pytest -q" in read_live_message_texts(found["data"]["file"])[-2]


@pytest.mark.parametrize("parent_state", ["archived", "deleted"])
def test_back_in_a_fork_needs_no_parent(
    parent: Path, document: Document, config_home: ConfigHome, parent_state: str
) -> None:
    """``back`` works in a fork whose parent is archived or deleted, because it needs only the fork."""
    fork, rows = fork_session_file(document, SESSION), read_live_message_texts(parent)
    continue_session(fork)
    if parent_state == "archived":
        archive_and_remove(parent, config_home.environ)
    else:
        parent.unlink()
        shutil.rmtree(config_home.config / "resume-hooks" / "vault", ignore_errors=True)
    found = document("back", fork.stem)
    assert read_live_message_texts(found["data"]["file"])[:-2] == rows
    assert found["warnings"] == []


def test_back_works_in_a_fork_of_the_client_or_the_sdk(
    parent: Path, document: Document, config_home: ConfigHome
) -> None:
    """``back`` works in a fork by the client or the SDK, in which each record names its original."""
    name = session_id(7)
    rows = [
        {**row, "uuid": f"n{row['uuid']}", "parentUuid": row["parentUuid"] and f"n{row['parentUuid']}",
         "forkedFrom": {"sessionId": SESSION, "messageUuid": row["uuid"]}}
        for row in conversation(2, session_id=name)
    ]  # fmt: skip
    fork = Path(write_session(config_home.project(), name, rows))
    continue_session(fork, parent_uuid="nr3")
    made = document("back", name)["data"]
    assert read_live_message_texts(made["file"])[:-2] == read_live_message_texts(parent)
    assert made["back"]["left"] == SESSION


def test_back_without_new_messages_is_refused(parent: Path, document: Document) -> None:
    """``back`` is refused in a fork without new messages, and in a session without a mark."""
    fork = fork_session_file(document, SESSION)
    shown = (
        "<command-name>/lineage</command-name>",
        "<local-command-stdout>a card</local-command-stdout>",
    )
    with fork.open("ab") as stream:  # The fork's only new records are a command's output.
        for number, text in enumerate(shown):
            row = user(
                text,
                uuid=f"l{number}",
                parent=f"l{number - 1}" if number else "r3",
                ts=time_after_now(number),
            )
            stream.write(session_bytes([{**row, "sessionId": fork.stem}]))
    error = document("back", fork.stem, code=1)["error"]
    assert (
        "Nothing has been said in this fork since it branched off from its parent"
        in error["message"]
    )
    assert f"resume {SESSION}" in error["remedy"]
    error = document("back", SESSION, code=1)["error"]
    assert error["message"] == "No active mark."
    assert "resume-hooks mark" in error["remedy"]
    assert "Only a fork can go back without a mark" in error["remedy"]


def test_a_mark_in_a_fork_has_precedence_over_the_fork_point(
    parent: Path, document: Document
) -> None:
    """In a fork with a mark, ``back`` returns to the mark and not to the parent, and needs a report."""
    fork = fork_session_file(document, SESSION)
    continue_session(fork)
    document("mark", fork.stem)
    assert document("back", fork.stem, code=2)["error"]["message"] == "The report cannot be empty."
    continue_session(fork, "MORE", parent_uuid="x5", uuid_prefix="y", start_second=30)
    made = document("back", fork.stem, "--report", "no")["data"]
    assert made["back"]["left"] is None
    assert any("EXPLORE" in row for row in read_live_message_texts(made["file"]))


def test_the_client_command_back_opens_one_child(
    parent: Path, document: Document, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``/back`` in a fork opens a child, and the same ``/back`` again opens the same child."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    fork = fork_session_file(document, SESSION)
    # The fork's turn has a time in the past. If a turn came after the first child, the next
    # ``/back`` would make a second child.
    continue_session(fork, start_second=-20)
    back = ask_engine("back", session_id=fork.stem)
    assert back["fill"] == ""
    assert read_live_message_texts(fork.with_name(f"{back['open']}.jsonl"))[
        :4
    ] == read_live_message_texts(parent)
    assert ask_engine("back", session_id=fork.stem)["open"] == back["open"]
    told = ask_engine("back", session_id=fork.stem, args="it was\nthe ZEBRA")["open"]
    assert told != back["open"]
    assert "the ZEBRA" in fork.with_name(f"{told}.jsonl").read_text()
    assert ask_engine("back", session_id=fork.stem, args="it was\nthe ZEBRA")["open"] == told
    assert "No active mark" in ask_engine("back")["text"]


def test_a_killed_rewind_of_a_fork_leaves_a_complete_child_or_none(config_home: ConfigHome) -> None:
    """A ``back`` that is killed at any step leaves a complete child or none.

    Fork and parent are unchanged.
    """
    before: dict[str, bytes] = {}

    def session_files() -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in config_home.project().iterdir()
            if path.is_file()
        }

    def prepare_rewind() -> Callable[[], object]:
        shutil.rmtree(config_home.root, ignore_errors=True)
        write_session(config_home.project(), SESSION, conversation(2))
        marked = [
            {**row, "forkedFrom": {"sessionId": SESSION, "messageUuid": row["uuid"]}}
            for row in conversation(2)
        ]
        fork = Path(write_session(config_home.project(), session_id(7), marked))
        continue_session(fork)
        before.clear()
        before.update(session_files())
        return lambda: run_command_line(config_home, "back", session_id(7))

    counts = []
    for _ in kill_before_each_change(prepare_rewind, every=3):
        now = session_files()
        assert now.items() >= before.items()
        counts.append(
            [
                now[name].count(b"\n")
                for name in now
                if name.endswith(".jsonl") and name not in before
            ]
        )
    assert len(counts[-1]) == 1
    assert all(found in ([], counts[-1]) for found in counts)
    assert len(counts) > 5


def test_a_trimmed_copy_has_the_mark_of_its_parent(
    parent: Path, document: Document, cli: Cli
) -> None:
    """``back`` in a trimmed copy returns to the mark of the copy's parent and deletes this mark."""
    assert cli("mark", SESSION).returncode == 0
    continue_session(parent, start_second=-6)
    rows = [
        tool_use("big", uuid="b0", parent="x5"),
        tool_result("big", "a long line\n" * 1_000, uuid="b1", parent="b0"),
    ]
    with parent.open("ab") as stream:
        stream.write(session_bytes([{**row, "timestamp": time_after_now(0)} for row in rows]))
    copy = document("trim", SESSION, "--keep-recent", "0")["data"]
    made = document("back", copy["session_id"], "--report", "a dead end")["data"]
    assert made["parent_session_id"] == copy["session_id"]
    assert [node.uuid for node in scan_transcript(made["file"]).chain if node.is_prompt] == [
        "r0",
        "r2",
    ]
    assert cli("back", SESSION, "--report", "again").returncode == 1
