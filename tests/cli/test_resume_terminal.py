"""Tests of ``resume`` and ``continue`` on a terminal, with a fake client."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

import pytest

from tests.builders import (
    assistant,
    boundary,
    custom_title,
    session_bytes,
    session_id,
    summary,
    user,
    write_running_client_file,
    write_session,
)
from tests.cli.terminal_home import HOUR_SECONDS, TerminalHome


def client_output_pattern(number: int, folder: Path) -> str:
    """Return a pattern that matches the fake client's output when it resumes the session."""
    return f"STARTED --resume {session_id(number)} IN {folder.name}$"


def test_resume_starts_the_client_with_the_chosen_session(
    terminal_home: TerminalHome,
) -> None:
    """In the chooser, typed words filter the list, and Enter chooses a session.

    A second Enter starts the client with this session.
    """
    screen = terminal_home.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.type("fix lex")
    screen.wait_for("^> Fix the lexer")
    screen.key("Enter")
    screen.wait_for(r"How do you want to continue\?")
    assert "Nothing needed" in screen.text()
    screen.key("Enter")
    screen.wait_for(client_output_pattern(3, terminal_home.project))
    assert screen.wait_for_end() == 0
    assert screen.is_terminal_restored()


def test_the_chooser_shows_matching_turns_while_typing(terminal_home: TerminalHome) -> None:
    """While the user types, matching turns appear below matching titles and can be chosen.

    Each turn is shown with the strength of the match and a part of its text.
    """
    folder = str(terminal_home.project)
    rows = [
        user("why does the connection pool leak?", uuid="a", session_id=session_id(7), cwd=folder),
        assistant(
            "a lease is never given back",
            uuid="b",
            parent="a",
            session_id=session_id(7),
            cwd=folder,
        ),
        custom_title("Look around", session_id(7)),
    ]
    write_session(
        terminal_home.home.project(folder),
        session_id(7),
        rows,
        mtime=time.time() - 9 * HOUR_SECONDS,
    )
    terminal_home.write_session(8, "Lease a pool", age=HOUR_SECONDS)
    screen = terminal_home.run("resume", "--way", "go on", columns=150)
    screen.wait_for("^> Fix the parser")
    screen.type("lease")
    screen.wait_for(r"^> Lease a pool")
    screen.wait_for(r"^  Look around +(strong|fair|weak)  a lease is never")
    screen.key("Down")
    screen.wait_for(r"(strong|fair|weak) · the model · turn 1")
    screen.key("Enter")
    screen.wait_for(client_output_pattern(7, terminal_home.project))
    assert screen.wait_for_end() == 0
    assert screen.is_terminal_restored()


def test_keys_move_the_selection_and_change_the_preview(terminal_home: TerminalHome) -> None:
    """Arrow keys move the selection, and Tab shows the outline, the lineage or the cost."""
    screen = terminal_home.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.wait_for("2 turns, newest first")
    for key, title in (
        ("Down", "Write the docs"),
        ("End", "Fix the lexer"),
        ("Home", "Fix the parser"),
    ):
        screen.key(key)
        screen.wait_for(f"^> {title}")
    screen.key("Tab")
    screen.wait_for("1 session, oldest first")
    screen.key("Tab")
    screen.wait_for("warm cold")


def test_the_footer_names_available_keys(terminal_home: TerminalHome) -> None:
    """The footer lists some keys, and F1 lists all keys. In a window with few rows, the footer is shorter."""
    screen = terminal_home.run("resume")
    screen.wait_for(r"F1 or \? all keys")
    screen.type("?")
    screen.wait_for("delete the words")
    screen.wait_for("in turns")  # The words that this line waits for are at the end of a long line.
    screen.type("?parser")
    screen.wait_for("search: parser")
    screen.wait_for(r"Esc closes")
    assert "delete the words" not in screen.text()
    screen.type("\x1bOP")
    screen.wait_for("delete the words")
    screen.resize(80, 10)
    screen.wait_for(r"Esc closes$")


@pytest.mark.parametrize(
    ("columns", "rows"), [(200, 60), (150, 12), (80, 24), (40, 10), (20, 4), (10, 2)]
)
def test_the_chooser_works_in_a_window_of_any_size(
    terminal_home: TerminalHome, columns: int, rows: int
) -> None:
    """In a window of any size, the selected session is visible and can be chosen."""
    screen = terminal_home.run("resume", "--way", "go on", columns=columns, rows=rows)
    screen.wait_for("^> Fix" if columns > 10 else "^> F")
    if rows > 2:
        screen.wait_for("^  Writ")  # The second row appears after the first one.
    screen.key("Down")
    screen.wait_for("^> Writ" if columns > 10 else "^> W")
    screen.key("Enter")
    assert screen.wait_for_end() == 0
    assert b"STARTED --resume " + session_id(2).encode() in screen.raw
    assert screen.is_terminal_restored()


def test_the_chooser_adapts_to_a_change_of_the_window_size(terminal_home: TerminalHome) -> None:
    """If the window's size changes, the preview is shown only if the window has enough space for it."""
    screen = terminal_home.run("resume", columns=160, rows=30)
    screen.wait_for("2 turns, newest first")
    screen.resize(30, 5)
    screen.wait_for("^> Fix the par")
    assert "newest first" not in screen.text()
    screen.resize(100, 30)
    screen.wait_for("2 turns, newest first")


def test_the_chooser_obeys_no_color(terminal_home: TerminalHome) -> None:
    """With NO_COLOR, the chooser prints no colour."""
    screen = terminal_home.run("resume", NO_COLOR="1")
    screen.wait_for("2 turns, newest first")
    screen.key("Escape")
    assert screen.wait_for_end() == 130
    assert not re.search(rb"\x1b\[[0-9;]*(?<![0-9])(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]", screen.raw)


def test_a_dumb_terminal_gets_a_numbered_list(terminal_home: TerminalHome) -> None:
    """A dumb terminal gets a numbered list without escape sequences instead of the chooser."""
    screen = terminal_home.run("resume", "docs", TERM="dumb", NO_COLOR="1")
    screen.wait_for(r"1  Write the docs")
    screen.key("Enter")
    screen.wait_for(r"How do you want to continue\?")
    screen.key("Enter")
    screen.wait_for(client_output_pattern(2, terminal_home.project))
    assert screen.wait_for_end() == 0
    assert b"\x1b" not in screen.raw


@pytest.mark.parametrize("key", ["C-c", "Escape", "C-d"])
def test_leaving_the_chooser_changes_nothing(terminal_home: TerminalHome, key: str) -> None:
    """Ctrl+C, Esc or Ctrl+D leaves the chooser with exit code 130 and makes no session.

    The terminal is restored.
    """
    before = terminal_home.session_ids()
    screen = terminal_home.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.key(key)
    assert screen.wait_for_end() == 130
    assert screen.is_terminal_restored()
    assert terminal_home.session_ids() == before
    assert b"STARTED" not in screen.raw


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_chooser(terminal_home: TerminalHome, number: signal.Signals) -> None:
    """A signal ends the chooser with the signal's exit code and restores the terminal."""
    screen = terminal_home.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.send_signal(number)
    assert screen.wait_for_end() == (130 if number is signal.SIGINT else 128 + number)
    assert screen.is_terminal_restored()


def test_closing_the_terminal_ends_the_chooser(terminal_home: TerminalHome) -> None:
    """Closing the terminal ends the chooser. This is not logged as a bug."""
    screen = terminal_home.run("resume")
    screen.wait_for("^> Fix the parser")
    assert screen.close_terminal() in {0, 128 + signal.SIGHUP}
    assert not list(terminal_home.home.config.rglob("errors.log"))


@pytest.mark.parametrize(
    "words", ["wip", "tag:wip", "#91", "pr:91", "https://github.com/o/r/pull/91", "Same title"]
)
def test_resume_offers_all_sessions_with_an_exact_match(
    terminal_home: TerminalHome, words: str
) -> None:
    """If several sessions match a tag, a pull request or a title, ``resume`` asks which one to resume.

    It does not search the text of the sessions.
    """
    for number in (5, 6):
        path = terminal_home.write_session(number, "Same title")
        pull = {
            "type": "pr-link",
            "prNumber": 91,
            "prUrl": "https://github.com/o/r/pull/91",
            "prRepository": "o/r",
        }
        with path.open("ab") as stream:
            stream.write(session_bytes([{"type": "tag", "tag": "wip"}, pull]))
        os.utime(path, (time.time() - number * HOUR_SECONDS,) * 2)
    screen = terminal_home.run("resume", words, "--way", "go on")
    screen.wait_for(r"fits 2 sessions:\n > +1  00000005")
    screen.type("2\r")
    screen.wait_for(client_output_pattern(6, terminal_home.project))


@pytest.mark.parametrize(
    "words", ["tag:nope", "#92", "pr:92", "https://github.com/o/r/pull/92", "title:nope"]
)
def test_resume_of_an_unknown_tag_or_title_exits_with_1(
    terminal_home: TerminalHome, words: str
) -> None:
    """If a tag, pull request or ``title:`` is unknown, ``resume`` exits with code 1.

    It does not search the text of the sessions.
    """
    screen = terminal_home.run("resume", words, columns=200)
    assert screen.wait_for_end() == 1
    assert b"No session" in screen.raw
    assert b"search:" not in screen.raw


def test_a_title_locator_ignores_case(terminal_home: TerminalHome) -> None:
    """``resume title:WORDS`` finds a part of a title, whether its letters are upper or lower case."""
    screen = terminal_home.run("resume", "title:THE LEX", "--way", "go on")
    screen.wait_for(client_output_pattern(3, terminal_home.project))


def test_leaving_the_question_restores_the_terminal(terminal_home: TerminalHome) -> None:
    """At the question of how to continue, Ctrl+C, q or Esc ends ``resume`` with exit code 130.

    The terminal is restored.
    """
    for answer in ("C-c", "q", "Escape"):
        screen = terminal_home.run("resume", session_id(1)[:8])
        screen.wait_for(r"q to leave \[1\]:")
        screen.key(answer)
        if answer == "q":
            screen.key("Enter")
        assert screen.wait_for_end() == 130
        assert screen.is_terminal_restored()


def test_esc_returns_to_the_list(terminal_home: TerminalHome) -> None:
    """After the user has chosen a session in the list, Esc returns to the list with the typed words."""
    screen = terminal_home.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.type("parser")
    screen.wait_for("^> Fix the parser")
    screen.key("Enter")
    screen.wait_for(r"q to leave \[1\]:")
    screen.key("Escape")
    screen.wait_for("search: parser")
    screen.wait_for("^> Fix the parser")
    screen.key("C-u")
    screen.type("docs")
    screen.wait_for("^> Write the docs")
    screen.key("Enter")
    screen.wait_for(r"q to leave \[1\]:")
    screen.key("Enter")
    screen.wait_for(client_output_pattern(2, terminal_home.project))
    assert screen.wait_for_end() == 0
    assert screen.is_terminal_restored()


def test_resume_searches_for_its_words(terminal_home: TerminalHome) -> None:
    """``resume WORDS`` opens the chooser with the words in its search field."""
    screen = terminal_home.run("resume", "fix")
    screen.wait_for("2 of 3")
    screen.wait_for("search: fix")
    screen.key("C-u")
    screen.wait_for("^> Fix the parser")
    screen.wait_for("^  Write the docs")


def test_resume_does_not_search_for_true(terminal_home: TerminalHome) -> None:
    """``resume true`` opens the list of all sessions, unless a session has the title "true".

    It does not search for "true", because programs that start the client may pass this word.
    """
    screen = terminal_home.run("resume", "true")
    screen.wait_for("^  Write the docs")
    screen.key("Escape")
    screen.wait_for_end()
    terminal_home.write_session(4, "true")
    screen = terminal_home.run("resume", "true", "--way", "go on")
    screen.wait_for(client_output_pattern(4, terminal_home.project))


def test_an_exact_title_skips_the_list(terminal_home: TerminalHome) -> None:
    """``resume TITLE --way "go on"`` starts the client without the list and without a question."""
    screen = terminal_home.run(
        "resume", "Write the docs", "--way", "go on", cwd=terminal_home.empty_folder()
    )
    screen.wait_for(client_output_pattern(2, terminal_home.project))
    assert b"search:" not in screen.raw


def test_resume_of_an_unknown_id_exits_with_1(terminal_home: TerminalHome) -> None:
    """If an id is unknown, ``resume`` exits with code 1 and does not search the text of the sessions."""
    screen = terminal_home.run("resume", session_id(99))
    assert screen.wait_for_end() == 1
    assert b"No session" in screen.raw


def test_resume_fork_starts_the_client_on_a_child(terminal_home: TerminalHome) -> None:
    """``resume --fork`` starts the client in a new session."""
    before = terminal_home.session_ids()
    screen = terminal_home.run("resume", session_id(1), "--fork")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert terminal_home.session_ids() - before == {found.group(1)}


def test_resume_can_start_the_client_on_a_handoff(terminal_home: TerminalHome) -> None:
    """If the user answers "handoff", ``resume`` makes and checks a handoff and starts the client on it."""
    before = terminal_home.session_ids()
    screen = terminal_home.run("resume", session_id(1))
    screen.wait_for(r"q to leave")
    screen.type("handoff\r")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert terminal_home.session_ids() - before == {found.group(1)}
    assert b"checks passed" in screen.raw


def test_resume_asks_again_if_a_trim_would_not_pay_off(terminal_home: TerminalHome) -> None:
    """If a trim would not pay off, ``resume`` writes nothing and asks again."""
    screen = terminal_home.run("resume", session_id(1))
    screen.wait_for(r"q to leave")
    screen.type("2\r")
    screen.wait_for(r"Nothing was written\.(.|\n)*How do you want to continue\?")
    screen.type("1\r")
    screen.wait_for(client_output_pattern(1, terminal_home.project))


def test_resume_proposes_a_fork_of_an_open_session(terminal_home: TerminalHome) -> None:
    """If a session was written a moment ago, ``resume`` proposes a fork, and Enter accepts the proposal."""
    terminal_home.write_session(1, "Fix the parser", age=0)
    screen = terminal_home.run("resume", session_id(1))
    screen.wait_for(r"may be open in a client: it was written \d+ seconds ago")
    screen.wait_for(r"> +\d  fork")
    screen.key("Enter")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert found.group(1) != session_id(1)


def test_resume_proposes_a_fork_of_a_file_too_large_for_clients(
    terminal_home: TerminalHome,
) -> None:
    """If a session is larger than 50 MB, ``resume`` proposes a fork of the live conversation.

    The reason is that clients read only 50 MB of a file.
    """
    path = terminal_home.write_session(4, "Large")
    rows = path.read_bytes().splitlines()
    compacted = [
        boundary(uuid="b", before="r3", ts=4, session_id=session_id(4)),
        summary("what was", uuid="s", parent="b", ts=5, session_id=session_id(4)),
        assistant("fine", uuid="z", parent="s", ts=6, session_id=session_id(4)),
    ]
    filler = user("x" * 51_000_000, uuid="f", parent="r3", ts=3.5, session_id=session_id(4))
    path.write_bytes(
        session_bytes(
            [*rows, filler, *({**row, "cwd": str(terminal_home.project)} for row in compacted)]
        )
    )
    os.utime(path, (time.time() - HOUR_SECONDS,) * 2)
    screen = terminal_home.run("resume", session_id(4), columns=150)
    screen.wait_for(
        r"> +\d  fork +a copy of only the live conversation.* reads only 50 MB of its 51\.\d MB"
    )
    screen.key("Enter")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert (path.parent / f"{found.group(1)}.jsonl").stat().st_size < 10_000


def test_the_started_client_gets_no_variables_of_an_outer_client(
    terminal_home: TerminalHome,
) -> None:
    """The new client inherits the user's settings, but no variables that an outer client has set.

    These variables would hide the session in the new client.
    """
    screen = terminal_home.run(
        "resume", session_id(1), "--way", "go on",
        CLAUDECODE="1", CLAUDE_CODE_CHILD_SESSION="1", CLAUDE_CODE_USE_BEDROCK="yes",
    )  # fmt: skip
    screen.wait_for("CONFIG .claude OUTER none none\nKEPT yes")


def test_resume_prints_or_copies_the_command(terminal_home: TerminalHome) -> None:
    """``--print``, ``--copy`` and Ctrl+Y in the list print or copy the command."""
    command = f"cd {terminal_home.project} && claude --resume {session_id(1)}"
    screen = terminal_home.run("resume", session_id(1), "--way", "go on", "--print", columns=200)
    screen.wait_for(f"^{re.escape(command)}$")
    screen = terminal_home.run("resume", session_id(1), "--way", "go on", "--copy", columns=200)
    screen.wait_for(f"not copied\n{re.escape(command)}$")
    screen = terminal_home.run("resume", columns=200)
    screen.wait_for("^> Fix the parser")
    screen.key("C-y")
    screen.wait_for(f"not copied\n{re.escape(command)}$")


def test_the_chooser_lists_all_projects_on_request(terminal_home: TerminalHome) -> None:
    """Ctrl+A or ``--all`` lists the sessions of all projects.

    The client starts in the folder of the chosen session.
    """
    other = terminal_home.home.root / "other"
    other.mkdir()
    terminal_home.write_session(9, "Elsewhere", folder=other)
    screen = terminal_home.run("resume", "--way", "go on")
    screen.wait_for("^> Fix the parser")
    assert "Elsewhere" not in screen.text()
    screen.key("C-a")
    screen.wait_for("^  Elsewhere")
    screen.type("elsew")
    screen.wait_for("^> Elsewhere")
    screen.key("Enter")
    screen.wait_for(client_output_pattern(9, other))
    screen = terminal_home.run("resume", "elsewh", "--all")
    screen.wait_for("^> Elsewhere")


def test_the_chooser_reports_a_project_without_sessions(terminal_home: TerminalHome) -> None:
    """If a project has no sessions, the chooser names the key that lists all projects.

    Enter does nothing.
    """
    empty = terminal_home.home.root / "empty"
    empty.mkdir()
    screen = terminal_home.run("resume", cwd=empty)
    screen.wait_for(r"No session of this project: Ctrl\+A lists all projects")
    screen.key("Enter")
    screen.key("C-a")
    screen.wait_for("^> Fix the parser")


def test_the_chooser_removes_control_characters_of_titles(
    terminal_home: TerminalHome,
) -> None:
    """The chooser removes escape sequences, colours and line breaks from the titles that it shows."""
    terminal_home.write_session(4, "\x1b[31mred\x1b]0;owned\x07 a\nb \u202e", age=10)
    screen = terminal_home.run("resume", columns=100)
    screen.wait_for("^> red a b")
    assert b"owned" not in screen.raw


def test_resume_without_a_client_prints_the_command(terminal_home: TerminalHome) -> None:
    """If the client is not on PATH, ``resume`` says so, prints the command, and exits with code 1."""
    (terminal_home.bin / "claude").unlink()
    screen = terminal_home.run("resume", session_id(1), "--way", "go on", columns=200)
    screen.wait_for("claude is not installed, or not on PATH")
    assert f"cd {terminal_home.project} && claude --resume {session_id(1)}" in screen.text()
    assert screen.wait_for_end() == 1


class TestContinue:
    """Tests of ``continue``, which asks a question only if a running client has the session open."""

    def test_continue_starts_the_latest_session(self, terminal_home: TerminalHome) -> None:
        """Without a locator, ``continue`` starts the client with the folder's latest session."""
        screen = terminal_home.run("continue")
        screen.wait_for(client_output_pattern(1, terminal_home.project))
        assert screen.wait_for_end() == 0

    def test_continue_forks_a_named_session(self, terminal_home: TerminalHome) -> None:
        """``continue TITLE --fork`` forks the session with this title, whatever folder it belongs to."""
        before = terminal_home.session_ids()
        screen = terminal_home.run(
            "continue", "Write the docs", "--fork", cwd=terminal_home.empty_folder()
        )
        found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
        assert terminal_home.session_ids() - before == {found.group(1)}

    def test_continue_reports_an_open_session(self, terminal_home: TerminalHome) -> None:
        """If a session may be open, ``continue`` prints a note and starts the client with the session."""
        terminal_home.write_session(1, "Fix the parser", age=0)
        screen = terminal_home.run("continue")
        screen.wait_for(client_output_pattern(1, terminal_home.project))
        assert b"may be open in a client" in screen.raw

    def test_continue_asks_about_a_session_of_a_running_client(
        self, terminal_home: TerminalHome
    ) -> None:
        """If a running client has the session open, ``continue`` asks first, and Enter alone means no.

        Without the question, the user would not see the note, because the new client clears the
        screen.
        """
        write_running_client_file(terminal_home.home.config, session_id(1))
        screen = terminal_home.run("continue")
        screen.wait_for(
            r"^note: The running client \d+ has the session open\. Quit that client first"
        )
        screen.wait_for(r"Start a second client in this session\? \[y/N\]")
        screen.key("Enter")
        assert screen.wait_for_end() == 130
        assert b"STARTED" not in screen.raw
        screen = terminal_home.run("continue")
        screen.wait_for(r"\[y/N\]")
        screen.type("y\r")
        screen.wait_for(client_output_pattern(1, terminal_home.project))


def test_resume_copies_a_file_outside_the_clients_folders(
    terminal_home: TerminalHome,
) -> None:
    """If a file is outside the client's folders, ``resume`` writes a child that the client can find."""
    source = Path(terminal_home.write_session(5, "Abroad"))
    abroad = terminal_home.home.root / "abroad.jsonl"
    os.rename(source, abroad)
    screen = terminal_home.run("resume", str(abroad), "--way", "go on", columns=250)
    screen.wait_for("is outside the client's folders")
    screen.key("Enter")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36}) IN (\S+)")
    assert found.group(2) == terminal_home.project.name
    assert found.group(1) in terminal_home.session_ids()
