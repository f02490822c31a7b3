"""``resume`` and ``continue`` on a terminal with a fake client."""

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
from tests.cli.desk import HOUR, Desk


def client_output(number: int, folder: Path) -> str:
    """Return a pattern for the output of the fake client that resumes a session."""
    return f"STARTED --resume {session_id(number)} IN {folder.name}$"


def test_resume_starts_the_client_with_the_chosen_session(desk: Desk) -> None:
    """In the chooser, typed words filter the list, and Enter chooses a session.

    A second Enter starts the client with this session.
    """
    screen = desk.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.type("fix lex")
    screen.wait_for("^> Fix the lexer")
    screen.key("Enter")
    screen.wait_for(r"How do you want to continue\?")
    assert "Nothing needed" in screen.text()
    screen.key("Enter")
    screen.wait_for(client_output(3, desk.project))
    assert screen.wait_for_end() == 0
    assert screen.is_terminal_restored()


def test_the_chooser_shows_matching_turns_while_typing(desk: Desk) -> None:
    """While the user types, matching turns appear after matching titles and can be chosen.

    Each turn has its strength and some of its text.
    """
    folder = str(desk.project)
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
    write_session(desk.home.project(folder), session_id(7), rows, mtime=time.time() - 9 * HOUR)
    desk.write_session(8, "Lease a pool", age=HOUR)
    screen = desk.run("resume", "--way", "go on", columns=150)
    screen.wait_for("^> Fix the parser")
    screen.type("lease")
    screen.wait_for(r"^> Lease a pool")
    screen.wait_for(r"^  Look around +(strong|fair|weak)  a lease is never")
    screen.key("Down")
    screen.wait_for(r"(strong|fair|weak) · the model · turn 1")
    screen.key("Enter")
    screen.wait_for(client_output(7, desk.project))
    assert screen.wait_for_end() == 0
    assert screen.is_terminal_restored()


def test_keys_move_the_selection_and_change_the_preview(desk: Desk) -> None:
    """Arrow keys move the selection, and Tab shows the outline, the lineage or the cost."""
    screen = desk.run("resume")
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


def test_the_footer_names_available_keys(desk: Desk) -> None:
    """The footer names keys, and F1 shows all of them. In a low window, the footer is shorter."""
    screen = desk.run("resume")
    screen.wait_for(r"F1 or \? all keys")
    screen.type("?")
    screen.wait_for("delete the words")
    screen.wait_for("in turns")  # These words are at the end of a long line.
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
def test_the_chooser_works_in_a_window_of_any_size(desk: Desk, columns: int, rows: int) -> None:
    """In a window of any size, the selected session is visible and can be chosen."""
    screen = desk.run("resume", "--way", "go on", columns=columns, rows=rows)
    screen.wait_for("^> Fix" if columns > 10 else "^> F")
    if rows > 2:
        screen.wait_for("^  Writ")  # The second row appears after the first one.
    screen.key("Down")
    screen.wait_for("^> Writ" if columns > 10 else "^> W")
    screen.key("Enter")
    assert screen.wait_for_end() == 0
    assert b"STARTED --resume " + session_id(2).encode() in screen.raw
    assert screen.is_terminal_restored()


def test_the_chooser_follows_a_change_of_the_window(desk: Desk) -> None:
    """After a change of the window's size, the preview is shown if there is enough space."""
    screen = desk.run("resume", columns=160, rows=30)
    screen.wait_for("2 turns, newest first")
    screen.resize(30, 5)
    screen.wait_for("^> Fix the par")
    assert "newest first" not in screen.text()
    screen.resize(100, 30)
    screen.wait_for("2 turns, newest first")


def test_the_chooser_obeys_no_color(desk: Desk) -> None:
    """With NO_COLOR, the chooser prints no colour."""
    screen = desk.run("resume", NO_COLOR="1")
    screen.wait_for("2 turns, newest first")
    screen.key("Escape")
    assert screen.wait_for_end() == 130
    assert not re.search(rb"\x1b\[[0-9;]*(?<![0-9])(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]", screen.raw)


def test_a_dumb_terminal_gets_a_numbered_list(desk: Desk) -> None:
    """A dumb terminal gets a numbered list instead of the chooser, and no escape sequence."""
    screen = desk.run("resume", "docs", TERM="dumb", NO_COLOR="1")
    screen.wait_for(r"1  Write the docs")
    screen.key("Enter")
    screen.wait_for(r"How do you want to continue\?")
    screen.key("Enter")
    screen.wait_for(client_output(2, desk.project))
    assert screen.wait_for_end() == 0
    assert b"\x1b" not in screen.raw


@pytest.mark.parametrize("key", ["C-c", "Escape", "C-d"])
def test_leaving_the_chooser_changes_nothing(desk: Desk, key: str) -> None:
    """Ctrl+C, Esc or Ctrl+D leaves the chooser with exit code 130 and makes no session.

    The terminal is restored.
    """
    before = desk.session_ids()
    screen = desk.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.key(key)
    assert screen.wait_for_end() == 130
    assert screen.is_terminal_restored()
    assert desk.session_ids() == before
    assert b"STARTED" not in screen.raw


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_the_chooser(desk: Desk, number: signal.Signals) -> None:
    """A signal ends the chooser with the signal's exit code and restores the terminal."""
    screen = desk.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.signal(number)
    assert screen.wait_for_end() == (130 if number is signal.SIGINT else 128 + number)
    assert screen.is_terminal_restored()


def test_closing_the_terminal_ends_the_chooser(desk: Desk) -> None:
    """Closing the terminal ends the chooser, and is not logged as a bug."""
    screen = desk.run("resume")
    screen.wait_for("^> Fix the parser")
    assert screen.close_terminal() in {0, 128 + signal.SIGHUP}
    assert not list(desk.home.config.rglob("errors.log"))


@pytest.mark.parametrize(
    "words", ["wip", "tag:wip", "#91", "pr:91", "https://github.com/o/r/pull/91", "Same title"]
)
def test_resume_offers_all_sessions_with_an_exact_match(desk: Desk, words: str) -> None:
    """If several sessions have the tag, the pull request or the title, ``resume`` asks which one.

    It does not search the text of sessions.
    """
    for number in (5, 6):
        path = desk.write_session(number, "Same title")
        pull = {
            "type": "pr-link",
            "prNumber": 91,
            "prUrl": "https://github.com/o/r/pull/91",
            "prRepository": "o/r",
        }
        with path.open("ab") as stream:
            stream.write(session_bytes([{"type": "tag", "tag": "wip"}, pull]))
        os.utime(path, (time.time() - number * HOUR,) * 2)
    screen = desk.run("resume", words, "--way", "go on")
    screen.wait_for(r"fits 2 sessions:\n > +1  00000005")
    screen.type("2\r")
    screen.wait_for(client_output(6, desk.project))


@pytest.mark.parametrize(
    "words", ["tag:nope", "#92", "pr:92", "https://github.com/o/r/pull/92", "title:nope"]
)
def test_resume_of_an_unknown_tag_or_title_exits_with_1(desk: Desk, words: str) -> None:
    """``resume`` of an unknown tag, pull request or ``title:`` exits with code 1, without a text search."""
    screen = desk.run("resume", words, columns=200)
    assert screen.wait_for_end() == 1
    assert b"No session" in screen.raw
    assert b"search:" not in screen.raw


def test_a_title_locator_ignores_case(desk: Desk) -> None:
    """``resume title:WORDS`` finds a part of a title in any case."""
    screen = desk.run("resume", "title:THE LEX", "--way", "go on")
    screen.wait_for(client_output(3, desk.project))


def test_leaving_the_question_restores_the_terminal(desk: Desk) -> None:
    """Ctrl+C, q or Esc at the question how to continue exits with 130 and restores the terminal."""
    for answer in ("C-c", "q", "Escape"):
        screen = desk.run("resume", session_id(1)[:8])
        screen.wait_for(r"q to leave \[1\]:")
        screen.key(answer)
        if answer == "q":
            screen.key("Enter")
        assert screen.wait_for_end() == 130
        assert screen.is_terminal_restored()


def test_esc_returns_to_the_list(desk: Desk) -> None:
    """After a choice in the list, Esc returns to the list with the typed words."""
    screen = desk.run("resume")
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
    screen.wait_for(client_output(2, desk.project))
    assert screen.wait_for_end() == 0
    assert screen.is_terminal_restored()


def test_resume_searches_for_its_words(desk: Desk) -> None:
    """``resume WORDS`` opens the chooser with the words in its search field."""
    screen = desk.run("resume", "fix")
    screen.wait_for("2 of 3")
    screen.wait_for("search: fix")
    screen.key("C-u")
    screen.wait_for("^> Fix the parser")
    screen.wait_for("^  Write the docs")


def test_resume_true_is_not_searched(desk: Desk) -> None:
    """``resume true`` opens the whole list, unless a session has the title "true".

    Programs that start the client may pass "true".
    """
    screen = desk.run("resume", "true")
    screen.wait_for("^  Write the docs")
    screen.key("Escape")
    screen.wait_for_end()
    desk.write_session(4, "true")
    screen = desk.run("resume", "true", "--way", "go on")
    screen.wait_for(client_output(4, desk.project))


def test_an_exact_title_skips_the_list(desk: Desk) -> None:
    """``resume TITLE --way "go on"`` starts the client without the list and without a question."""
    screen = desk.run("resume", "Write the docs", "--way", "go on", cwd=desk.empty_folder())
    screen.wait_for(client_output(2, desk.project))
    assert b"search:" not in screen.raw


def test_resume_of_an_unknown_id_exits_with_1(desk: Desk) -> None:
    """``resume`` of an unknown id exits with code 1, without a text search."""
    screen = desk.run("resume", session_id(99))
    assert screen.wait_for_end() == 1
    assert b"No session" in screen.raw


def test_resume_fork_starts_the_client_on_a_child(desk: Desk) -> None:
    """``resume --fork`` starts the client with a new session."""
    before = desk.session_ids()
    screen = desk.run("resume", session_id(1), "--fork")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert desk.session_ids() - before == {found.group(1)}


def test_resume_can_start_the_client_on_a_handoff(desk: Desk) -> None:
    """The user can type "handoff" at the question, and the client starts with the checked handoff."""
    before = desk.session_ids()
    screen = desk.run("resume", session_id(1))
    screen.wait_for(r"q to leave")
    screen.type("handoff\r")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert desk.session_ids() - before == {found.group(1)}
    assert b"checks passed" in screen.raw


def test_resume_asks_again_if_a_trim_would_not_pay(desk: Desk) -> None:
    """If a trim would not pay off, ``resume`` writes nothing and asks again."""
    screen = desk.run("resume", session_id(1))
    screen.wait_for(r"q to leave")
    screen.type("2\r")
    screen.wait_for(r"Nothing was written\.(.|\n)*How do you want to continue\?")
    screen.type("1\r")
    screen.wait_for(client_output(1, desk.project))


def test_resume_proposes_a_fork_of_an_open_session(desk: Desk) -> None:
    """For a session that was written a moment ago, ``resume`` proposes a fork, which Enter chooses."""
    desk.write_session(1, "Fix the parser", age=0)
    screen = desk.run("resume", session_id(1))
    screen.wait_for(r"may be open in a client: it was written \d+ seconds ago")
    screen.wait_for(r"> +\d  fork")
    screen.key("Enter")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert found.group(1) != session_id(1)


def test_resume_proposes_a_fork_of_a_file_too_large_for_clients(desk: Desk) -> None:
    """For a session larger than 50 MB, ``resume`` proposes a fork of the live conversation.

    Clients read only 50 MB of a file.
    """
    path = desk.write_session(4, "Large")
    rows = path.read_bytes().splitlines()
    compacted = [
        boundary(uuid="b", before="r3", ts=4, session_id=session_id(4)),
        summary("what was", uuid="s", parent="b", ts=5, session_id=session_id(4)),
        assistant("fine", uuid="z", parent="s", ts=6, session_id=session_id(4)),
    ]
    filler = user("x" * 51_000_000, uuid="f", parent="r3", ts=3.5, session_id=session_id(4))
    path.write_bytes(
        session_bytes([*rows, filler, *({**row, "cwd": str(desk.project)} for row in compacted)])
    )
    os.utime(path, (time.time() - HOUR,) * 2)
    screen = desk.run("resume", session_id(4), columns=150)
    screen.wait_for(
        r"> +\d  fork +a copy of the live conversation alone.* reads only 50 MB of its 51\.\d MB"
    )
    screen.key("Enter")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert (path.parent / f"{found.group(1)}.jsonl").stat().st_size < 10_000


def test_the_started_client_gets_no_variables_of_an_outer_client(desk: Desk) -> None:
    """The started client inherits the user's settings, but not the variables of an outer client.

    These variables would hide the session.
    """
    screen = desk.run(
        "resume", session_id(1), "--way", "go on",
        CLAUDECODE="1", CLAUDE_CODE_CHILD_SESSION="1", CLAUDE_CODE_USE_BEDROCK="yes",
    )  # fmt: skip
    screen.wait_for("CONFIG .claude OUTER none none\nKEPT yes")


def test_resume_prints_or_copies_the_command(desk: Desk) -> None:
    """``--print``, ``--copy`` and Ctrl+Y in the list print or copy the command."""
    command = f"cd {desk.project} && claude --resume {session_id(1)}"
    screen = desk.run("resume", session_id(1), "--way", "go on", "--print", columns=200)
    screen.wait_for(f"^{re.escape(command)}$")
    screen = desk.run("resume", session_id(1), "--way", "go on", "--copy", columns=200)
    screen.wait_for(f"not copied\n{re.escape(command)}$")
    screen = desk.run("resume", columns=200)
    screen.wait_for("^> Fix the parser")
    screen.key("C-y")
    screen.wait_for(f"not copied\n{re.escape(command)}$")


def test_the_chooser_lists_all_projects_on_request(desk: Desk) -> None:
    """Ctrl+A or ``--all`` lists the sessions of all projects. The client starts in the session's folder."""
    other = desk.home.root / "other"
    other.mkdir()
    desk.write_session(9, "Elsewhere", folder=other)
    screen = desk.run("resume", "--way", "go on")
    screen.wait_for("^> Fix the parser")
    assert "Elsewhere" not in screen.text()
    screen.key("C-a")
    screen.wait_for("^  Elsewhere")
    screen.type("elsew")
    screen.wait_for("^> Elsewhere")
    screen.key("Enter")
    screen.wait_for(client_output(9, other))
    screen = desk.run("resume", "elsewh", "--all")
    screen.wait_for("^> Elsewhere")


def test_the_chooser_reports_a_project_without_sessions(desk: Desk) -> None:
    """In a project without sessions, the chooser names the key for all projects, and Enter does nothing."""
    empty = desk.home.root / "empty"
    empty.mkdir()
    screen = desk.run("resume", cwd=empty)
    screen.wait_for(r"No session of this project: Ctrl\+A lists all projects")
    screen.key("Enter")
    screen.key("C-a")
    screen.wait_for("^> Fix the parser")


def test_the_chooser_removes_control_characters_of_titles(desk: Desk) -> None:
    """The chooser removes escape sequences, colours and line breaks from titles."""
    desk.write_session(4, "\x1b[31mred\x1b]0;owned\x07 a\nb \u202e", age=10)
    screen = desk.run("resume", columns=100)
    screen.wait_for("^> red a b")
    assert b"owned" not in screen.raw


def test_resume_without_a_client_prints_the_command(desk: Desk) -> None:
    """If the client is not on PATH, ``resume`` reports it, prints the command, and exits with code 1."""
    (desk.bin / "claude").unlink()
    screen = desk.run("resume", session_id(1), "--way", "go on", columns=200)
    screen.wait_for("claude is not installed, or not on PATH")
    assert f"cd {desk.project} && claude --resume {session_id(1)}" in screen.text()
    assert screen.wait_for_end() == 1


class TestContinue:
    """``continue`` asks only if a running client has the session open."""

    def test_continue_starts_the_latest_session(self, desk: Desk) -> None:
        """Without a locator, ``continue`` starts the client with the latest session of the folder."""
        screen = desk.run("continue")
        screen.wait_for(client_output(1, desk.project))
        assert screen.wait_for_end() == 0

    def test_continue_forks_a_named_session(self, desk: Desk) -> None:
        """``continue TITLE --fork`` forks a session from any folder."""
        before = desk.session_ids()
        screen = desk.run("continue", "Write the docs", "--fork", cwd=desk.empty_folder())
        found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
        assert desk.session_ids() - before == {found.group(1)}

    def test_continue_reports_an_open_session(self, desk: Desk) -> None:
        """``continue`` starts the client with a session that may be open, and prints a note."""
        desk.write_session(1, "Fix the parser", age=0)
        screen = desk.run("continue")
        screen.wait_for(client_output(1, desk.project))
        assert b"may be open in a client" in screen.raw

    def test_continue_asks_about_a_session_of_a_running_client(self, desk: Desk) -> None:
        """If a running client has the session open, ``continue`` asks first, and Enter means no.

        Without the question, the new client would remove the note from the screen.
        """
        write_running_client_file(desk.home.config, session_id(1))
        screen = desk.run("continue")
        screen.wait_for(
            r"^note: The running client \d+ has the session open\. Quit that client first"
        )
        screen.wait_for(r"Start a second client in this session\? \[y/N\]")
        screen.key("Enter")
        assert screen.wait_for_end() == 130
        assert b"STARTED" not in screen.raw
        screen = desk.run("continue")
        screen.wait_for(r"\[y/N\]")
        screen.type("y\r")
        screen.wait_for(client_output(1, desk.project))


def test_resume_copies_a_file_outside_the_clients_folders(desk: Desk) -> None:
    """``resume`` of a file outside the client's folders writes a child that the client can find."""
    source = Path(desk.write_session(5, "Abroad"))
    abroad = desk.home.root / "abroad.jsonl"
    os.rename(source, abroad)
    screen = desk.run("resume", str(abroad), "--way", "go on", columns=250)
    screen.wait_for("lies outside of the client's folders")
    screen.key("Enter")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36}) IN (\S+)")
    assert found.group(2) == desk.project.name
    assert found.group(1) in desk.session_ids()
