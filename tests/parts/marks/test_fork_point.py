"""The way back of a fork to where it left its parent, with what it found, whatever became of the parent."""

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
from tests.crashes import crashes
from tests.derive.trim.test_crash import run
from tests.hooks.conftest import Run, children, reason
from tests.hooks.test_client_module import ask
from tests.sessions.archived.away import archive_and_remove

SECRET = "ghp_" + "Ab3dE5gH9" * 4


@pytest.fixture
def parent(config_home: ConfigHome) -> Iterator[Path]:
    """A session of two turns, which no test may change but by continuing in it."""
    path = Path(
        write_session(
            config_home.project(), SESSION, [*conversation(2), custom_title("Fix the parser")]
        )
    )
    before = path.read_bytes()
    yield path
    assert not path.exists() or path.read_bytes().startswith(before)


def fork_session_file(document: Document, *words: str) -> Path:
    """Return a fork of a session."""
    return Path(document("fork", *words)["data"]["file"])


def test_requested_four_times_at_once_it_is_one_child(
    parent: Path, document: Document, run_hook: Run
) -> None:
    """Where a fork left is used up by nothing, so who comes second waits, and names the first one's."""
    fork = fork_session_file(document, SESSION)
    go_on(fork, at=-6)
    event = {
        "session_id": fork.stem,
        "transcript_path": str(fork),
        "prompt": ">back the lexer is faster",
    }
    before = set(children(parent))
    with ThreadPoolExecutor(4) as pool:
        replies = list(
            pool.map(lambda _: reason(run_hook("prompt", event, python=sys.executable)), range(4))
        )
    assert len(set(children(parent)) - before) == 1
    assert sum(reply.startswith("back") for reply in replies) == 1


def later(seconds: int) -> str:
    """An instant after now."""
    return (
        (datetime.now(UTC) + timedelta(seconds=seconds))
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )


def go_on(
    path: Path, words: str = "EXPLORE", after: str = "r3", prefix: str = "x", at: int = 1
) -> None:
    """Continue a session with a prompt, a command, an edit and an answer."""
    own = [f"{prefix}{number}" for number in range(6)]
    edit = {"file_path": "/home/user/proj/lexer.py", "old_string": "a", "new_string": "b"}
    rows: list[Record] = [
        user(f"{words}, and never touch main.py", uuid=own[0], parent=after, ts=later(at)),
        tool_use(
            f"c{prefix}",
            uuid=own[1],
            parent=own[0],
            name="Bash",
            tool_input={"command": "pytest -q"},
        ),
        tool_result(f"c{prefix}", "3 passed", uuid=own[2], parent=own[1]),
        tool_use(f"d{prefix}", uuid=own[3], parent=own[2], name="Edit", tool_input=edit),
        tool_result(f"d{prefix}", "done", uuid=own[4], parent=own[3]),
        assistant(f"We decided to use the lexer of {words}.", uuid=own[5], parent=own[4]),
    ]
    with path.open("ab") as stream:
        for number, row in enumerate(rows):
            stream.write(
                session_bytes([{**row, "sessionId": path.stem, "timestamp": later(at + number)}])
            )


def live_texts(path: str | Path) -> list[str]:
    """Return the text of each record of the live conversation."""
    transcript = scan_transcript(str(path))
    return [
        records.join_text_blocks(transcript.read_record(node))
        for node in transcript.chain
        if node.is_message
    ]


CONVERSATION = ["prompt 0", "answer 1", "prompt 2", "answer 3"]


def test_a_fork_comes_back(
    parent: Path, document: Document, cli: Cli, config_home: ConfigHome
) -> None:
    """At where it left, with its files, commands and last words by their references.

    The fork stays as it is.
    """
    fork = fork_session_file(document, SESSION)
    go_on(fork)
    before, rows = fork.read_bytes(), len(live_texts(parent))
    shown = document("back", fork.stem, "--dry-run")["data"]
    assert (shown["written"], shown["back"]["left"], shown["back"]["resolved"]) == (
        False,
        SESSION,
        True,
    )
    assert sorted(config_home.project().iterdir()) == sorted([parent, fork])
    made = document("back", fork.stem)["data"]
    assert live_texts(made["file"])[:rows] == live_texts(parent)
    told, card = live_texts(made["file"])[rows:]
    number = fork.read_bytes().count(b"\n") - 6
    reference = f"{fork.stem[:8]}"
    assert f"where a fork, the parent session, left {SESSION}" in told
    assert f":N is record {reference}:N" in told
    assert f"- lexer.py (:{number + 3})" in told
    assert f"- pytest -q (edited since: lexer.py, :{number + 1})" in told
    assert f"ASSISTANT :{number + 5}\n  We decided to use the lexer of EXPLORE." in told
    assert "prompt 0" not in told
    assert "The user's report" not in told
    assert card.startswith(f"**Back** to where the fork left `{SESSION[:8]}`")
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
    assert f"where this fork left {SESSION}" in text


def test_with_a_report_of_the_users_own(parent: Path, document: Document) -> None:
    """It is last."""
    fork = fork_session_file(document, SESSION)
    go_on(fork)
    made = document("back", fork.stem, "--report", "the lexer is the way")["data"]
    assert live_texts(made["file"])[-2].endswith(":\nthe lexer is the way")
    assert "- pytest -q" in live_texts(made["file"])[-2]


def test_no_secret_comes_back(parent: Path, document: Document) -> None:
    """As in any digest."""
    fork = fork_session_file(document, SESSION)
    go_on(fork, f"use the token {SECRET}")
    assert SECRET not in Path(document("back", fork.stem)["data"]["file"]).read_text()


def test_a_parent_that_continued(parent: Path, document: Document) -> None:
    """The new session is at where the fork left.

    The receipt says so, and how to continue in the parent as it stands.
    """
    fork = fork_session_file(document, SESSION)
    go_on(fork)
    go_on(parent, "MEANWHILE", prefix="m", at=2)
    found = document("back", fork.stem)
    (warning,) = found["warnings"]
    assert "The parent was continued after this fork left it" in warning
    assert f"/resume {SESSION}" in warning
    assert "MEANWHILE" not in Path(found["data"]["file"]).read_text()


def test_a_fork_of_a_fork(parent: Path, document: Document) -> None:
    """It goes back to its parent, a fork, at the point where it left that."""
    first = fork_session_file(document, SESSION)
    go_on(first, "FIRST")
    second = fork_session_file(document, first.stem)
    go_on(second, "SECOND", after="x5", prefix="y", at=20)
    made = document("back", second.stem)["data"]
    rows = live_texts(made["file"])
    assert rows[:-2] == live_texts(first)
    assert "SECOND" in rows[-2]
    assert made["back"]["left"] == first.stem


def test_a_fork_up_to_a_turn(parent: Path, document: Document) -> None:
    """Its parent had continued before the fork, which the text mentions."""
    fork = fork_session_file(document, SESSION, "--turn", "1")
    go_on(fork, after="r1")
    found = document("back", fork.stem)
    assert live_texts(found["data"]["file"])[:-2] == live_texts(parent)[:2]
    assert "The parent was continued" in found["warnings"][0]


def test_a_fork_that_was_compacted(parent: Path, document: Document) -> None:
    """Its copies of the parent's records are still in its file."""
    fork = fork_session_file(document, SESSION)
    go_on(fork)
    rows = [
        boundary(uuid="b", before="x5", ts=later(10)),
        summary("all of it", uuid="s", parent="b", ts=later(11)),
        user("AFTERWARDS", uuid="z0", parent="s", ts=later(12)),
        assistant("fine", uuid="z1", parent="z0", ts=later(13)),
    ]
    with fork.open("ab") as stream:
        stream.write(session_bytes([{**row, "sessionId": fork.stem} for row in rows]))
    found = document("back", fork.stem)
    assert live_texts(found["data"]["file"])[:-2] == live_texts(parent)
    assert "The cut is before a compaction" in found["warnings"][0]
    assert "- pytest -q" in live_texts(found["data"]["file"])[-2]


@pytest.mark.parametrize("gone", ["archived", "deleted"])
def test_a_parent_that_is_gone(
    parent: Path, document: Document, config_home: ConfigHome, gone: str
) -> None:
    """The fork has its copy of the parent's records."""
    fork, rows = fork_session_file(document, SESSION), live_texts(parent)
    go_on(fork)
    if gone == "archived":
        archive_and_remove(parent, config_home.environ)
    else:
        parent.unlink()
        shutil.rmtree(config_home.config / "resume-hooks" / "vault", ignore_errors=True)
    found = document("back", fork.stem)
    assert live_texts(found["data"]["file"])[:-2] == rows
    assert found["warnings"] == []


def test_one_that_the_client_or_the_sdk_made(
    parent: Path, document: Document, config_home: ConfigHome
) -> None:
    """With new ids, and no line of ours: each record names its original."""
    name = session_id(7)
    rows = [
        {**row, "uuid": f"n{row['uuid']}", "parentUuid": row["parentUuid"] and f"n{row['parentUuid']}",
         "forkedFrom": {"sessionId": SESSION, "messageUuid": row["uuid"]}}
        for row in conversation(2, session_id=name)
    ]  # fmt: skip
    fork = Path(write_session(config_home.project(), name, rows))
    go_on(fork, after="nr3")
    made = document("back", name)["data"]
    assert live_texts(made["file"])[:-2] == live_texts(parent)
    assert made["back"]["left"] == SESSION


def test_where_there_is_nothing_to_bring_back(parent: Path, document: Document) -> None:
    """A fork without new messages, and a session that is not a fork: the error names other ways."""
    fork = fork_session_file(document, SESSION)
    shown = (
        "<command-name>/lineage</command-name>",
        "<local-command-stdout>a card</local-command-stdout>",
    )
    with fork.open("ab") as stream:  # what a command alone leaves
        for number, text in enumerate(shown):
            row = user(
                text,
                uuid=f"l{number}",
                parent=f"l{number - 1}" if number else "r3",
                ts=later(number),
            )
            stream.write(session_bytes([{**row, "sessionId": fork.stem}]))
    error = document("back", fork.stem, code=1)["error"]
    assert "Nothing was said in this fork since it left its parent" in error["message"]
    assert f"resume {SESSION}" in error["remedy"]
    error = document("back", SESSION, code=1)["error"]
    assert error["message"] == "No active mark."
    assert "resume-hooks mark" in error["remedy"]
    assert "Only a fork goes back without one" in error["remedy"]


def test_a_mark_is_first(parent: Path, document: Document) -> None:
    """A mark in a fork has precedence, and needs a report."""
    fork = fork_session_file(document, SESSION)
    go_on(fork)
    document("mark", fork.stem)
    assert document("back", fork.stem, code=2)["error"]["message"] == "Report cannot be empty."
    go_on(fork, "MORE", after="x5", prefix="y", at=30)
    made = document("back", fork.stem, "--report", "no")["data"]
    assert made["back"]["left"] is None
    assert any("EXPLORE" in row for row in live_texts(made["file"]))


def test_in_the_client(parent: Path, document: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    """The command for going back to a mark opens the child, once."""
    monkeypatch.setenv("RESUME_HOOKS_CLIPBOARD", "none")
    fork = fork_session_file(document, SESSION)
    go_on(fork, at=-20)  # who goes on after the child was made gets another one
    back = ask("back", session_id=fork.stem)
    assert back["fill"] == ""
    assert live_texts(fork.with_name(f"{back['open']}.jsonl"))[:4] == live_texts(parent)
    assert ask("back", session_id=fork.stem)["open"] == back["open"]
    told = ask("back", session_id=fork.stem, args="it was\nthe ZEBRA")["open"]
    assert told != back["open"]
    assert "the ZEBRA" in fork.with_name(f"{told}.jsonl").read_text()
    assert ask("back", session_id=fork.stem, args="it was\nthe ZEBRA")["open"] == told
    assert "No active mark" in ask("back")["text"]


def test_killed_on_the_way(config_home: ConfigHome) -> None:
    """The new session is there whole or not at all; fork and parent are as they were."""
    before: dict[str, bytes] = {}

    def files() -> dict[str, bytes]:
        return {
            path.name: path.read_bytes()
            for path in config_home.project().iterdir()
            if path.is_file()
        }

    def prepare() -> Callable[[], object]:
        shutil.rmtree(config_home.root, ignore_errors=True)
        write_session(config_home.project(), SESSION, conversation(2))
        marked = [
            {**row, "forkedFrom": {"sessionId": SESSION, "messageUuid": row["uuid"]}}
            for row in conversation(2)
        ]
        fork = Path(write_session(config_home.project(), session_id(7), marked))
        go_on(fork)
        before.clear()
        before.update(files())
        return lambda: run(config_home, "back", session_id(7))

    counts = []
    for _ in crashes(prepare, every=3):
        now = files()
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
    """It has the same records; after a way back the parent has no mark any more."""
    assert cli("mark", SESSION).returncode == 0
    go_on(parent, at=-6)
    rows = [
        tool_use("big", uuid="b0", parent="x5"),
        tool_result("big", "a long line\n" * 1_000, uuid="b1", parent="b0"),
    ]
    with parent.open("ab") as stream:
        stream.write(session_bytes([{**row, "timestamp": later(0)} for row in rows]))
    copy = document("trim", SESSION, "--keep-recent", "0")["data"]
    made = document("back", copy["session_id"], "--report", "a dead end")["data"]
    assert made["parent_session_id"] == copy["session_id"]
    assert [node.uuid for node in scan_transcript(made["file"]).chain if node.prompt] == [
        "r0",
        "r2",
    ]
    assert cli("back", SESSION, "--report", "again").returncode == 1
