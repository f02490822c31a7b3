"""Tests of sessions without a transcript whose prompts are in the client's history.

Such sessions are listed, read and continued.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
from pathlib import Path
from typing import Any

import pytest

from resume_hooks.archive.vault import permission
from resume_hooks.parts.lost import history
from resume_hooks.parts.lost.strategy import build_note_on_lost_sessions, describe_lost_prompts
from resume_hooks.sessions.agents import registry
from resume_hooks.sessions.agents.registry import list_all_transcripts, store_of_agents
from tests.builders import CWD, SESSION, ConfigHome, conversation, session_id, write_session
from tests.cli.conftest import Cli, Document
from tests.cli.terminal_home import TerminalHome

LOST_SESSION, YOUNG_SESSION, COMMANDS_SESSION = session_id(7), session_id(8), session_id(9)
LOST_TIME_MS = 1_700_000_000_000
PASTED_TEXT = "def parse(): " + "x" * 2_000


def history_line(own_id: str, text: str, time_ms: int = LOST_TIME_MS, **more: object) -> str:
    """Return a line of the client's history."""
    return json.dumps(
        {
            "display": text,
            "pastedContents": {},
            "timestamp": time_ms,
            "project": CWD,
            "sessionId": own_id,
        }
        | more
    )


HISTORY_LINES = [
    history_line(SESSION, "Still there"),
    history_line(LOST_SESSION, "/clear", LOST_TIME_MS),
    history_line(
        LOST_SESSION, "Why does the zebra parser loop? [Pasted text #1 +40 lines]", LOST_TIME_MS + 1_000,
        pastedContents={"1": {"id": 1, "type": "text", "contentHash": "0123456789abcdef"}},
    ),
    "{damaged",
    history_line(COMMANDS_SESSION, "/model opus"[:6]),
    history_line(COMMANDS_SESSION, ">resume "),
    history_line(YOUNG_SESSION, "Just asked", 100 * LOST_TIME_MS),
    history_line("../../evil", "No id"),
    history_line(LOST_SESSION, "Use [Pasted text #1] and [Pasted text #2 +3 lines]", LOST_TIME_MS + 2_000,
        pastedContents={
        "1": {"id": 1, "type": "text", "content": "a short paste"}, "2": {"type": "text", "contentHash": "f" * 16}}),
    json.dumps({"display": "Before ids", "timestamp": LOST_TIME_MS, "project": CWD}),
]  # fmt: skip


@pytest.fixture
def lost_and_present_sessions(config_home: ConfigHome) -> Path:
    """Write a session that exists, an unrelated file, and a history with prompts of a deleted session."""
    write_session(config_home.project(), SESSION, conversation(2))
    (config_home.config / "paste-cache").mkdir()
    (config_home.config / "paste-cache" / "0123456789abcdef.txt").write_text(PASTED_TEXT)
    path = config_home.config / "history.jsonl"
    path.write_text("".join(f"{line}\n" for line in HISTORY_LINES) + '{"display": "half a li')
    return path


def test_a_lost_session_is_found_read_and_continued(
    lost_and_present_sessions: Path, cli: Cli, document: Document, config_home: ConfigHome
) -> None:
    """A lost session is marked in each list, can be searched and read, and is continued by a handoff.

    Its pastes are included, and the history is unchanged.
    """
    before = lost_and_present_sessions.read_bytes()
    rows = document("sessions", "--project", CWD)["data"]["sessions"]
    assert [(row["agent"], row["session_id"]) for row in rows] == [
        ("claude", SESSION),
        ("prompts", LOST_SESSION),
    ]
    assert (rows[1]["turns"], rows[1]["ended"][:10], rows[1]["open"]) == (2, "2023-11-14", False)
    assert "prompts only" in cli("sessions", "--all", environ={"COLUMNS": "200"}).stdout.decode()
    (hit,) = document("search", "zebra parser", "--all")["data"]["hits"]
    assert (hit["agent"], hit["session_id"], hit["role"]) == ("prompts", LOST_SESSION, "prompt")
    told = cli("search", "zebra", "--all").stdout.decode()
    assert f"{LOST_SESSION} · prompts only" in told
    assert "resume:" not in told
    assert (
        document("read", hit["reference"])["data"]["text"]
        == f"Why does the zebra parser loop? {PASTED_TEXT}"
    )
    shown = cli("read", LOST_SESSION, "--turns", "2").stdout.decode()
    assert "· prompts only ·" in shown
    assert "Use a short paste and [Pasted text #2 +3 lines]" in shown
    for verb in ("outline", "info"):
        assert "Only its prompts are left" in cli(verb, LOST_SESSION[:8]).stderr.decode()
    (row,) = document("lineage", LOST_SESSION)["data"]["rows"]
    assert row["status"] == "prompts"
    made = document("handoff", LOST_SESSION, "-n", "Go on with it")["data"]
    child = Path(made["file"])
    assert child.parent == config_home.project()
    assert "zebra parser" in child.read_text()
    assert "Only its prompts are left" in child.read_text()
    rows = document("lineage", made["session_id"])["data"]["rows"]
    assert [row["status"] for row in rows] == ["prompts", "present"]
    assert "(prompts only)" in cli("lineage", made["session_id"]).stdout.decode()
    assert "2 prompts of 1 lost session still exist" in cli("doctor").stdout.decode()
    assert "2 prompts of 1 lost session still exist" in permission.make_first_archive_notice(
        config_home.where
    )
    assert lost_and_present_sessions.read_bytes() == before
    copies = [Path(file) for file, *_ in os.walk(config_home.config / "resume-hooks" / "mirrors")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in copies} == {0o700}


@pytest.mark.part("stats")
def test_stats_exclude_lost_sessions(lost_and_present_sessions: Path, document: Document) -> None:
    """``stats`` does not count lost sessions, because their requests are unknown."""
    assert document("stats", "--all")["data"]["sessions"] == 1


@pytest.mark.parametrize(
    "words",
    [
        ["trim"],
        ["fork"],
        ["rollover"],
        ["rollover", "--with-summary"],
        pytest.param(["smart-trim"], marks=pytest.mark.part("smart_trim")),
        ["continue"],
        ["delete", "--yes"],
        ["resume"],
    ],
)
def test_a_verb_that_needs_a_transcript_refuses_a_lost_session(
    lost_and_present_sessions: Path, cli: Cli, words: list[str]
) -> None:
    """A verb that needs a transcript refuses a lost session and suggests a handoff."""
    done = cli(words[0], LOST_SESSION, *words[1:])
    assert done.returncode == 2
    assert b"Only its prompts are left" in done.stderr
    assert f"resume-hooks handoff {LOST_SESSION}".encode() in done.stderr


def test_only_the_new_lines_of_the_history_are_read(
    lost_and_present_sessions: Path, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If lines were appended to the client's history, only these lines are read.

    A history that was rewritten is read again as a whole.
    """

    def lost_sessions() -> dict[str, Path]:
        found = store_of_agents(config_home.where, "prompts").sessions()
        return {session.session_id: Path(session.path) for session in found}

    path = lost_sessions()[LOST_SESSION]
    note = config_home.config / "resume-hooks" / "mirrors" / "prompts" / "read.json"
    before = path.stat().st_ino, note.read_bytes()
    read: list[object] = []
    told = history._parse_entry

    def record_and_parse_entry(record: dict[str, Any]) -> history.HistoryEntry | None:
        read.append(record)
        return told(record)

    monkeypatch.setattr(history, "_parse_entry", record_and_parse_entry)
    assert lost_sessions() == {LOST_SESSION: path}
    assert (path.stat().st_ino, note.read_bytes()) == before
    assert read == []
    with lost_and_present_sessions.open("a") as stream:
        stream.write(f'ne"}}\n{history_line(LOST_SESSION, "One more", LOST_TIME_MS + 9_000)}\n')
    assert lost_sessions() == {LOST_SESSION: path}
    assert "One more" in path.read_text()
    assert (
        len(
            [
                file
                for file in list_all_transcripts(config_home.where)
                if file.session_id == LOST_SESSION
            ]
        )
        == 1
    )
    lost_and_present_sessions.write_text(
        "\n".join(line for line in HISTORY_LINES if "zebra" not in line) + "\n"
    )
    assert "zebra" not in lost_sessions()[LOST_SESSION].read_text()
    write_session(config_home.project(), LOST_SESSION, conversation(2))
    assert lost_sessions() == {}
    assert not path.exists()
    (config_home.project() / f"{LOST_SESSION}.jsonl").unlink()
    (config_home.config / "resume-hooks" / "trash" / LOST_SESSION).mkdir(parents=True)
    assert lost_sessions() == {}
    (config_home.config / "resume-hooks" / "trash" / LOST_SESSION).rmdir()
    assert lost_sessions() == {LOST_SESSION: path}
    lost_and_present_sessions.unlink()
    assert lost_sessions() == {}
    assert not path.exists()


def test_a_start_hook_does_not_read_a_large_history(
    lost_and_present_sessions: Path, config_home: ConfigHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start hook does not read a large history that no verb has read yet.

    The hook only says that lost sessions may exist.
    """
    monkeypatch.setattr(registry, "MAX_FIRST_READ_BYTES", 10)
    assert (
        describe_lost_prompts(config_home.where, is_user_waiting=True)
        == "prompts of lost sessions may still exist"
    )
    assert describe_lost_prompts(config_home.where) == "2 prompts of 1 lost session still exist"
    assert (
        describe_lost_prompts(config_home.where, is_user_waiting=True)
        == "2 prompts of 1 lost session still exist"
    )
    assert build_note_on_lost_sessions(config_home.where).startswith(
        "2 prompts of 1 lost session still exist; list them: "
    )


def test_the_message_about_a_single_lost_prompt_is_singular(
    lost_and_present_sessions: Path, config_home: ConfigHome
) -> None:
    """The message about one lost prompt says "1 prompt" and "exists"."""
    lost_and_present_sessions.write_text(
        history_line(LOST_SESSION, "One only", LOST_TIME_MS) + "\n"
    )
    assert describe_lost_prompts(config_home.where) == "1 prompt of 1 lost session still exists"


def test_unsafe_paths_give_no_lost_sessions(
    lost_and_present_sessions: Path, config_home: ConfigHome
) -> None:
    """No lost sessions are found if a path is unsafe.

    A path is unsafe if the project, the history or the state folder is a link or has an unexpected
    type.
    """
    folder, moved = config_home.project(), config_home.root / "moved"
    folder.rename(moved)
    folder.symlink_to(moved)
    assert store_of_agents(config_home.where, "prompts").sessions() == []
    folder.unlink()
    assert len(store_of_agents(config_home.where, "prompts").sessions()) == 2
    lost_and_present_sessions.unlink()
    lost_and_present_sessions.mkdir()
    assert store_of_agents(config_home.where, "prompts").sessions() == []
    lost_and_present_sessions.rmdir()
    lost_and_present_sessions.write_text(f"{HISTORY_LINES[2]}\n")
    mirrors = config_home.config / "resume-hooks" / "mirrors"
    shutil.rmtree(mirrors)
    mirrors.symlink_to(config_home.root)
    assert store_of_agents(config_home.where, "prompts").sessions() == []
    assert not (config_home.root / "prompts").exists()


def test_a_lost_session_can_be_chosen_in_the_picker(terminal_home: TerminalHome) -> None:
    """The list of ``resume`` marks a lost session. Choosing or naming it shows how to continue it."""
    said = {
        "display": "why does the zebra loop",
        "timestamp": 1_700_000_000_000,
        "project": str(terminal_home.project),
    }
    line = json.dumps({**said, "pastedContents": {}, "sessionId": session_id(7)})
    (terminal_home.home.config / "history.jsonl").write_text(f"{line}\n")
    screen = terminal_home.run("resume", "zebra")
    screen.wait_for(r"> prompts only · why does the zebra loop")
    screen.key("Enter")
    screen.wait_for("Only its prompts are left")
    # The terminal may break the long line anywhere.
    screen.wait_for("handoff " + r"\s*".join(session_id(7)))
    assert screen.wait_for_end() == 2
    named = terminal_home.run("resume", session_id(7))
    named.wait_for("Only its prompts are left")
    assert named.wait_for_end() == 2
