"""Tests of ``slash``, which runs a slash command without a hook and reads its text from stdin."""

from __future__ import annotations

from pathlib import Path

import pytest

from resume_hooks.derive.fresh_child import OPENING_RECORD_LINE_NUMBER
from tests.builders import SESSION, ConfigHome, conversation, custom_title, write_session
from tests.cli.conftest import Cli


@pytest.fixture
def parent(config_home: ConfigHome) -> Path:
    """Write a session with a title and return its path."""
    return Path(
        write_session(
            config_home.project(), SESSION, [*conversation(2), custom_title("Fix the parser")]
        )
    )


def slash_card(
    cli: Cli, verb: str, text: str | bytes = "", session: str = SESSION, **environ: str
) -> str:
    """Run ``slash`` and return the card that it prints."""
    stdin = text if isinstance(text, bytes) else text.encode()
    done = cli("slash", verb, session, stdin=stdin, environ=environ)
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout.decode()


@pytest.mark.parametrize(
    ("verb", "words"),
    [
        ("resume", "Fix the parser"),
        ("continue", "Fix the parser"),
        ("session", SESSION),
        ("lineage", "lineage, oldest first"),
        ("help", "after /resume-hooks:"),
    ],
)
def test_slash_prints_the_card_of_the_hook(cli: Cli, parent: Path, verb: str, words: str) -> None:
    """``slash`` prints the same card as the hook, with or without text after the command."""
    assert words in slash_card(cli, verb)
    assert words in slash_card(cli, verb, "words that it takes no notice of")


@pytest.mark.parametrize(
    "text",
    ["fix the tests", "fix\n`x` $(rm -rf /) \"'", "explain /clear", f"see /resume {SESSION}"],
)
def test_handoff_takes_every_word_as_the_next_step(cli: Cli, parent: Path, text: str) -> None:
    """``slash handoff`` uses the whole text as the next step, even if the text looks like a command."""
    import json

    card = slash_card(cli, "handoff", f"{text}\n")
    assert " · handoff" in card
    assert "Ctrl+C" not in card
    (child,) = [path for path in parent.parent.iterdir() if path != parent]
    assert json.loads(child.read_bytes().splitlines()[OPENING_RECORD_LINE_NUMBER])["message"][
        "content"
    ].endswith(f"\n{text}")


def test_slash_replaces_invalid_bytes(cli: Cli, parent: Path) -> None:
    """``slash`` accepts text that is not UTF-8, and removes control characters from the card."""
    card = slash_card(cli, "handoff", b"a\xff\x1b[2Jb")
    assert "· handoff" in card
    assert "\x1b" not in card


def test_slash_prints_a_failure_as_a_card(cli: Cli, parent: Path) -> None:
    """``slash`` prints a failure to stdout and exits with code 0, because the model sees only stdout."""
    assert "Claude Code sent no session id" in slash_card(
        cli, "handoff", "words", session="${CLAUDE_SESSION_ID}"
    )
    assert "words" in slash_card(cli, "handoff", "words", session="x")


def test_slash_reports_a_disabled_trigger(cli: Cli, parent: Path) -> None:
    """If a trigger is turned off, ``slash`` says so, because it cannot pass the prompt to the model."""
    assert "switched off" in slash_card(cli, "handoff", RESUME_HOOKS_TRIGGERS_OFF="handoff")


@pytest.mark.parametrize("verb", ["doctor", "rm", "", "handoff x", "session text"])
def test_slash_refuses_verbs_without_a_slash_command(cli: Cli, verb: str) -> None:
    """``slash`` refuses verbs that are not slash commands of the plugin."""
    assert cli("slash", verb, SESSION).returncode in {1, 2}


def test_the_help_does_not_list_slash(cli: Cli) -> None:
    """The general help does not list ``slash``."""
    assert b"slash  " not in cli("--help").stdout
