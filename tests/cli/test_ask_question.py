"""Tests of an ambiguous locator, which leads to a question on a terminal and otherwise to an error."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pexpect
import pytest

from resume_hooks.cli.ask_question import AnswerChoice, ask_question, choose_candidate_in_command
from resume_hooks.errors import AmbiguousLocator
from resume_hooks.sessions.locator_forms import MAX_SUGGESTED_SESSIONS
from tests.builders import ConfigHome, conversation, custom_title, session_id, write_session
from tests.cli.conftest import Cli, Document
from tests.needs import REPO

CANDIDATE_ROWS: list[dict[str, object]] = [
    {"session_id": session_id(n), "title": "t", "ended": "", "session_file": ""} for n in (1, 2)
]


@pytest.fixture(autouse=True)
def write_two_similar_sessions(config_home: ConfigHome) -> None:
    """Write two sessions with similar titles. The first session is newer."""
    for number in (1, 2):
        records = [
            *conversation(number, session_id=session_id(number)),
            custom_title(f"Fix the parser {number}\x1b[2J"),
        ]
        write_session(
            config_home.project(), session_id(number), records, mtime=time.time() - 100 * number
        )


@contextmanager
def run_command_on_terminal(home: ConfigHome, *words: str) -> Iterator[pexpect.spawn[str]]:
    """Run the command line on a pseudo-terminal."""
    environ = {
        **os.environ,
        "PYTHONPATH": str(REPO / "src"),
        "TERM": "xterm-256color",
        **home.environ,
    }
    process = pexpect.spawn(
        sys.executable,
        ["-m", "resume_hooks", *words],
        env=environ,
        cwd="/",
        encoding="utf-8",
        timeout=30,
    )
    try:
        yield process
    finally:
        process.close(force=True)


def output_and_exit_code(process: pexpect.spawn[str]) -> tuple[str, int | None]:
    """Wait for the command to end, and return the rest of its output and its exit code."""
    process.expect(pexpect.EOF)
    text = str(process.before)
    process.close()
    return text, process.exitstatus


@pytest.mark.parametrize(("typed_text", "number"), [("", 1), ("1", 1), ("2", 2)])
def test_a_number_chooses_a_session(config_home: ConfigHome, typed_text: str, number: int) -> None:
    """The number that the user types chooses the session, and Enter alone chooses the newest one."""
    with run_command_on_terminal(config_home, "info", "parser") as process:
        process.expect("'parser' fits 2 sessions:")
        process.expect("1 +00000001 .*Fix the parser 1")
        process.expect("2 +00000002 .*Fix the parser 2")
        process.expect("Number, or q to leave")
        process.sendline(typed_text)
        text, code = output_and_exit_code(process)
    assert (code, session_id(number) in text, "\x1b[2J" in text) == (0, True, False)


def test_an_invalid_answer_repeats_the_question(config_home: ConfigHome) -> None:
    """After an invalid answer, the question is repeated until the user types a valid number."""
    with run_command_on_terminal(config_home, "info", "parser") as process:
        for typed in ("3", "x", "0"):
            process.expect("Number, or q to leave")
            process.sendline(typed)
            process.expect("is not an answer")
        process.sendline("2")
        assert output_and_exit_code(process)[1] == 0


@pytest.mark.parametrize("key_name", ["q", "ctrl-c", "ctrl-d"])
def test_leaving_a_question_does_nothing(config_home: ConfigHome, key_name: str) -> None:
    """``q``, Ctrl+C and Ctrl+D leave the question without running the verb. The exit code is 130."""
    with run_command_on_terminal(config_home, "info", "parser") as process:
        process.expect("Number, or q to leave")
        if key_name == "q":
            process.sendline("q")
        else:
            process.sendcontrol(key_name[-1])
        text, code = output_and_exit_code(process)
    assert (code, session_id(1) in text) == (130, False)


@pytest.mark.parametrize(
    "words",
    [
        ["outline", "parser"],
        ["search", "prompt", "--session", "parser"],
        ["read", "parser:0"],
        ["info", " parser"],
    ],
)
def test_verbs_ask_about_an_ambiguous_session(config_home: ConfigHome, words: list[str]) -> None:
    """``outline``, ``search``, ``read`` and ``info`` ask which of two similar sessions is meant."""
    with run_command_on_terminal(config_home, *words) as process:
        process.expect("Number, or q to leave")
        process.sendline("2")
        text, code = output_and_exit_code(process)
    assert (code, "00000002" in text or "prompt 0" in text) == (0, True)


def test_a_question_does_not_go_to_stdout(config_home: ConfigHome, tmp_path: Path) -> None:
    """If stdout is a file, the question still appears on the terminal, and the file gets only the output."""
    caught = tmp_path / "out"
    script = f"exec {sys.executable} -m resume_hooks info parser > {caught}"
    environ = {**os.environ, "PYTHONPATH": str(REPO / "src"), **config_home.environ}
    process = pexpect.spawn("/bin/sh", ["-c", script], env=environ, encoding="utf-8", timeout=30)
    process.expect("Number, or q to leave")
    process.sendline("2")
    assert output_and_exit_code(process)[1] == 0
    assert f" {session_id(2)}\n" in caught.read_text(encoding="utf-8")


def test_candidates_are_listed_without_a_terminal(
    config_home: ConfigHome, cli: Cli, document: Document
) -> None:
    """Without a terminal, an ambiguous locator is an error that lists the candidates, newest first.

    The exit code is 2. The list is limited, and the error states how many candidates are not
    listed.
    """
    found = document("lineage", "0000", code=2)["error"]["candidates"]
    assert [row["session_id"] for row in found] == [session_id(1), session_id(2)]
    assert set(found[0]) == {"session_id", "title", "ended", "session_file"}
    done = cli("info", "parser")
    assert (done.returncode, done.stdout) == (2, b"")
    said = done.stderr.decode().splitlines()
    assert said[0] == "resume-hooks: 'parser' fits 2 sessions"
    assert [line.split()[0] for line in said[1:3]] == [session_id(1), session_id(2)]
    for number in range(3, MAX_SUGGESTED_SESSIONS + 4):
        records = [*conversation(1), custom_title(f"A parser {number}")]
        write_session(
            config_home.project(), session_id(number), records, mtime=time.time() - 100 * number
        )
    assert b"  and 3 older ones\n" in cli("info", "parser").stderr
    error = document("info", "parser", code=2)["error"]
    assert (error["code"], len(error["candidates"])) == (
        "ambiguous-locator",
        MAX_SUGGESTED_SESSIONS,
    )


def test_json_output_never_asks(config_home: ConfigHome) -> None:
    """With ``--json``, an ambiguous locator is an error that lists the candidates, even on a terminal."""
    with run_command_on_terminal(config_home, "info", "parser", "--json") as process:
        text, code = output_and_exit_code(process)
    assert (code, '"ambiguous-locator"' in text) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "expected_arguments"),
    [
        (["trim", "parser"], ["trim", session_id(2)]),
        (["trim", "--at=parser", "x"], ["trim", f"--at={session_id(2)}", "x"]),
        (["read", "parser:12"], ["read", f"{session_id(2)}:12"]),
        (["read", "parser/agent-1"], ["read", f"{session_id(2)}/agent-1"]),
        (["read", "--session", " parser "], ["read", "--session", f" {session_id(2)} "]),
        (["read", "--json", "parser"], None),
        (["read", "parsers"], None),
        (["rollover", "-p", "parser", "parser"], None),
        (["read"], None),
    ],
)
def test_an_answer_replaces_the_ambiguous_word(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], expected_arguments: list[str] | None
) -> None:
    """The user's answer replaces the ambiguous locator in the word that contains it.

    If two words contain the locator, or no word does, the command is not changed.
    """
    terminal = SimpleNamespace(isatty=lambda: True)
    monkeypatch.setattr(
        "resume_hooks.cli.ask_question.sys", SimpleNamespace(stdin=terminal, stderr=terminal)
    )
    monkeypatch.setattr("resume_hooks.cli.ask_question.ask_question", lambda *_, **__: 1)
    assert (
        choose_candidate_in_command(arguments, AmbiguousLocator("parser", CANDIDATE_ROWS))
        == expected_arguments
    )


def test_answer_choices_are_wrapped_between_words(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a narrow terminal, the description of an answer is wrapped between words, in its own column."""
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setattr("click.prompt", lambda *_, **__: "1")
    about = (
        "a copy without the content that a model considers unneeded; asking a model costs tokens"
    )
    assert ask_question("How?", [AnswerChoice("trim --smart", about), AnswerChoice("fork")]) == 0
    rows = capsys.readouterr().out.split("\n")[1:-2]
    assert all(len(row) <= 50 for row in rows)
    assert " ".join(" ".join(rows).split()) == f"> 1 trim --smart {about}"
    assert all(row.startswith(" " * 18) for row in rows[1:])
