"""``resume`` and ``continue`` on a terminal, with a stand-in for the client: choose, go on, and nothing left behind."""

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
    list_client,
    session_bytes,
    session_id,
    summary,
    user,
    write_session,
)
from tests.cli.desk import HOUR, Desk


def client_output(number: int, folder: Path) -> str:
    """Return the output of the stand-in client for a session."""
    return f"STARTED --resume {session_id(number)} IN {folder.name}$"


def test_type_choose_and_the_client_starts(desk: Desk) -> None:
    """Words narrow the list, Enter chooses the marked session, Enter again continues it."""
    screen = desk.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.type("fix lex")
    screen.wait_for("^> Fix the lexer")
    screen.key("Enter")
    screen.wait_for(r"How do you want to continue\?")
    assert "Nothing needed" in screen.text()
    screen.key("Enter")
    screen.wait_for(client_output(3, desk.project))
    assert screen.ended() == 0
    assert screen.left_as_it_was()


def test_matching_turns_are_found_while_typing(desk: Desk) -> None:
    """Behind titles, with how sure that is and the words around it.

    The preview has more of it, Enter takes it.
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
    desk.session(8, "Lease a pool", age=HOUR)
    screen = desk.run("resume", "--way", "go on", columns=150)
    screen.wait_for("^> Fix the parser")
    screen.type("lease")
    screen.wait_for(r"^> Lease a pool")
    screen.wait_for(r"^  Look around +(strong|fair|weak)  a lease is never")
    screen.key("Down")
    screen.wait_for(r"(strong|fair|weak) · the model · turn 1")
    screen.key("Enter")
    screen.wait_for(client_output(7, desk.project))
    assert screen.ended() == 0
    assert screen.left_as_it_was()


def test_keys_move_and_the_preview_turns(desk: Desk) -> None:
    """Down, End, Home; outline, lineage, cost."""
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


def test_the_foot_names_the_keys_that_answer(desk: Desk) -> None:
    """F1 shows all keys, also after typing; a window without space for them names none."""
    screen = desk.run("resume")
    screen.wait_for(r"F1 or \? all keys")
    screen.type("?")
    screen.wait_for("clear the words")
    screen.wait_for("was said")  # the end of a long line
    screen.type("?parser")
    screen.wait_for("search: parser")
    screen.wait_for(r"Esc closes")
    assert "clear the words" not in screen.text()
    screen.type("\x1bOP")
    screen.wait_for("clear the words")
    screen.resize(80, 10)
    screen.wait_for(r"Esc closes$")


@pytest.mark.parametrize(
    ("columns", "rows"), [(200, 60), (150, 12), (80, 24), (40, 10), (20, 4), (10, 2)]
)
def test_windows_of_any_size(desk: Desk, columns: int, rows: int) -> None:
    """The chosen session is visible and can be chosen."""
    screen = desk.run("resume", "--way", "go on", columns=columns, rows=rows)
    screen.wait_for("^> Fix" if columns > 10 else "^> F")
    if rows > 2:
        screen.wait_for("^  Writ")  # rows are listed one after another
    screen.key("Down")
    screen.wait_for("^> Writ" if columns > 10 else "^> W")
    screen.key("Enter")
    assert screen.ended() == 0
    assert b"STARTED --resume " + session_id(2).encode() in screen.raw
    assert screen.left_as_it_was()


def test_a_window_that_changes_its_size(desk: Desk) -> None:
    """The preview appears and disappears with the space for it."""
    screen = desk.run("resume", columns=160, rows=30)
    screen.wait_for("2 turns, newest first")
    screen.resize(30, 5)
    screen.wait_for("^> Fix the par")
    assert "newest first" not in screen.text()
    screen.resize(100, 30)
    screen.wait_for("2 turns, newest first")


def test_no_colour(desk: Desk) -> None:
    """NO_COLOR leaves bold and reverse, but no colour at all."""
    screen = desk.run("resume", NO_COLOR="1")
    screen.wait_for("2 turns, newest first")
    screen.key("Escape")
    assert screen.ended() == 130
    assert not re.search(rb"\x1b\[[0-9;]*(?<![0-9])(3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]", screen.raw)


def test_a_terminal_that_can_do_nothing(desk: Desk) -> None:
    """A numbered list, and no sequence at all."""
    screen = desk.run("resume", "docs", TERM="dumb", NO_COLOR="1")
    screen.wait_for(r"1  Write the docs")
    screen.key("Enter")
    screen.wait_for(r"How do you want to continue\?")
    screen.key("Enter")
    screen.wait_for(client_output(2, desk.project))
    assert screen.ended() == 0
    assert b"\x1b" not in screen.raw


@pytest.mark.parametrize("key", ["C-c", "Escape", "C-d"])
def test_left_without_a_choice(desk: Desk, key: str) -> None:
    """130, and the terminal as it was; nothing was made."""
    before = desk.ids()
    screen = desk.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.key(key)
    assert screen.ended() == 130
    assert screen.left_as_it_was()
    assert desk.ids() == before
    assert b"STARTED" not in screen.raw


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_ended_from_outside(desk: Desk, number: signal.Signals) -> None:
    """A signal ends it as it ends any program, and the terminal is as it was."""
    screen = desk.run("resume")
    screen.wait_for("^> Fix the parser")
    screen.signal(number)
    assert screen.ended() == (130 if number is signal.SIGINT else 128 + number)
    assert screen.left_as_it_was()


def test_the_terminal_goes_away(desk: Desk) -> None:
    """A window that is closed ends it as a hang-up does; nothing is logged as a bug."""
    screen = desk.run("resume")
    screen.wait_for("^> Fix the parser")
    assert screen.closed() in {0, 128 + signal.SIGHUP}
    assert not list(desk.home.config.rglob("errors.log"))


@pytest.mark.parametrize(
    "words", ["wip", "tag:wip", "#91", "pr:91", "https://github.com/o/r/pull/91", "Same title"]
)
def test_words_that_name_several_exactly(desk: Desk, words: str) -> None:
    """Those are offered, and no text is searched."""
    for number in (5, 6):
        path = desk.session(number, "Same title")
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
def test_forms_that_fit_nothing(desk: Desk, words: str) -> None:
    """One sentence, 1: they are not text to be searched."""
    screen = desk.run("resume", words, columns=200)
    assert screen.ended() == 1
    assert b"No session" in screen.raw
    assert b"search:" not in screen.raw


def test_a_part_of_a_title_by_its_form(desk: Desk) -> None:
    """Capitals do not matter."""
    screen = desk.run("resume", "title:THE LEX", "--way", "go on")
    screen.wait_for(client_output(3, desk.project))


def test_the_question_is_left_too(desk: Desk) -> None:
    """Ctrl+C, q, and Esc at the choice of a way."""
    for answer in ("C-c", "q", "Escape"):
        screen = desk.run("resume", session_id(1)[:8])
        screen.wait_for(r"q to leave \[1\]:")
        screen.key(answer)
        if answer == "q":
            screen.key("Enter")
        assert screen.ended() == 130
        assert screen.left_as_it_was()


def test_esc_leads_back_to_the_list(desk: Desk) -> None:
    """From the choice of a way, with the words typed there; a second Esc leaves that."""
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
    assert screen.ended() == 0
    assert screen.left_as_it_was()


def test_text_that_names_nothing_exactly_is_searched(desk: Desk) -> None:
    """It is in the box, and can be changed."""
    screen = desk.run("resume", "fix")
    screen.wait_for("2 of 3")
    screen.wait_for("search: fix")
    screen.key("C-u")
    screen.wait_for("^> Fix the parser")
    screen.wait_for("^  Write the docs")


def test_a_bare_true_is_not_words(desk: Desk) -> None:
    """Programs around the client pass it on; a session with this title can still be named."""
    screen = desk.run("resume", "true")
    screen.wait_for("^  Write the docs")
    screen.key("Escape")
    screen.ended()
    desk.session(4, "true")
    screen = desk.run("resume", "true", "--way", "go on")
    screen.wait_for(client_output(4, desk.project))


def test_an_exact_title_skips_the_list(desk: Desk) -> None:
    """And ``--way`` skips the question."""
    screen = desk.run("resume", "Write the docs", "--way", "go on", cwd=desk.elsewhere())
    screen.wait_for(client_output(2, desk.project))
    assert b"search:" not in screen.raw


def test_an_id_that_is_nowhere_is_not_a_search(desk: Desk) -> None:
    """A sentence, not an empty list."""
    screen = desk.run("resume", session_id(99))
    assert screen.ended() == 1
    assert b"No session" in screen.raw


def test_a_fork_first(desk: Desk) -> None:
    """The client starts on a child with its own id."""
    before = desk.ids()
    screen = desk.run("resume", session_id(1), "--fork")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert desk.ids() - before == {found.group(1)}


def test_a_handoff_by_its_number(desk: Desk) -> None:
    """The verb's own code makes it, and the client starts on it."""
    before = desk.ids()
    screen = desk.run("resume", session_id(1))
    screen.wait_for(r"q to leave")
    screen.type("handoff\r")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert desk.ids() - before == {found.group(1)}
    assert b"checks passed" in screen.raw


def test_where_nothing_is_made_it_is_asked_again(desk: Desk) -> None:
    """A trim that would not pay."""
    screen = desk.run("resume", session_id(1))
    screen.wait_for(r"q to leave")
    screen.type("2\r")
    screen.wait_for(r"Nothing was written\.(.|\n)*How do you want to continue\?")
    screen.type("1\r")
    screen.wait_for(client_output(1, desk.project))


def test_a_live_session_is_reported_and_forked_unless_one_says_else(desk: Desk) -> None:
    """It was written a moment ago, so an empty line forks it."""
    desk.session(1, "Fix the parser", age=0)
    screen = desk.run("resume", session_id(1))
    screen.wait_for(r"may be open in a client: it was written \d+ seconds ago")
    screen.wait_for(r"> +\d  fork")
    screen.key("Enter")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
    assert found.group(1) != session_id(1)


def test_a_file_that_readers_of_clients_give_up_on(desk: Desk) -> None:
    """It was compacted: only a fork of the live part is offered, also for an empty line."""
    path = desk.session(4, "Large")
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


def test_nothing_of_a_client_around_us_reaches_the_one_that_starts(desk: Desk) -> None:
    """It would hide the session; the user's own settings stay."""
    screen = desk.run(
        "resume", session_id(1), "--way", "go on",
        CLAUDECODE="1", CLAUDE_CODE_CHILD_SESSION="1", CLAUDE_CODE_USE_BEDROCK="yes",
    )  # fmt: skip
    screen.wait_for("CONFIG .claude OUTER none none\nKEPT yes")


def test_the_command_instead_of_the_client(desk: Desk) -> None:
    """Printed, or copied with a word on which way; from the list, too."""
    command = f"cd {desk.project} && claude --resume {session_id(1)}"
    screen = desk.run("resume", session_id(1), "--way", "go on", "--print", columns=200)
    screen.wait_for(f"^{re.escape(command)}$")
    screen = desk.run("resume", session_id(1), "--way", "go on", "--copy", columns=200)
    screen.wait_for(f"not copied\n{re.escape(command)}$")
    screen = desk.run("resume", columns=200)
    screen.wait_for("^> Fix the parser")
    screen.key("C-y")
    screen.wait_for(f"not copied\n{re.escape(command)}$")


def test_all_projects(desk: Desk) -> None:
    """A key, or an option; the client starts in the other folder."""
    other = desk.home.root / "other"
    other.mkdir()
    desk.session(9, "Elsewhere", folder=other)
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


def test_no_session_at_all(desk: Desk) -> None:
    """The screen reports it, with the key for more sessions; nothing can be chosen."""
    empty = desk.home.root / "empty"
    empty.mkdir()
    screen = desk.run("resume", cwd=empty)
    screen.wait_for(r"No session of this project: Ctrl\+A lists all projects")
    screen.key("Enter")
    screen.key("C-a")
    screen.wait_for("^> Fix the parser")


def test_titles_cannot_drive_the_terminal(desk: Desk) -> None:
    """Control characters, colours and line feeds of a hostile title."""
    desk.session(4, "\x1b[31mred\x1b]0;owned\x07 a\nb \u202e", age=10)
    screen = desk.run("resume", columns=100)
    screen.wait_for("^> red a b")
    assert b"owned" not in screen.raw


def test_no_client(desk: Desk) -> None:
    """One sentence and the command, 1."""
    (desk.bin / "claude").unlink()
    screen = desk.run("resume", session_id(1), "--way", "go on", columns=200)
    screen.wait_for("claude is not installed, or not on PATH")
    assert f"cd {desk.project} && claude --resume {session_id(1)}" in screen.text()
    assert screen.ended() == 1


class TestContinue:
    """``continue`` asks only about a session that is open elsewhere."""

    def test_the_latest(self, desk: Desk) -> None:
        """It is the latest of this folder, without a question."""
        screen = desk.run("continue")
        screen.wait_for(client_output(1, desk.project))
        assert screen.ended() == 0

    def test_a_named_one_forked(self, desk: Desk) -> None:
        """From any folder."""
        before = desk.ids()
        screen = desk.run("continue", "Write the docs", "--fork", cwd=desk.elsewhere())
        found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36})")
        assert desk.ids() - before == {found.group(1)}

    def test_a_live_one_is_reported(self, desk: Desk) -> None:
        """It is started anyway."""
        desk.session(1, "Fix the parser", age=0)
        screen = desk.run("continue")
        screen.wait_for(client_output(1, desk.project))
        assert b"may be open in a client" in screen.raw

    def test_one_that_a_client_has_open(self, desk: Desk) -> None:
        """It is started after a yes: the client would clear a note from the screen."""
        list_client(desk.home.config, session_id(1))
        screen = desk.run("continue")
        screen.wait_for(r"^note: The running client \d+ has it open\. Quit it first")
        screen.wait_for(r"Start a second client in it\? \[y/N\]")
        screen.key("Enter")
        assert screen.ended() == 130
        assert b"STARTED" not in screen.raw
        screen = desk.run("continue")
        screen.wait_for(r"\[y/N\]")
        screen.type("y\r")
        screen.wait_for(client_output(1, desk.project))


def test_a_file_outside_of_the_clients_folders(desk: Desk) -> None:
    """The client would not find it: a child of it, in the folder that it names, is."""
    source = Path(desk.session(5, "Abroad"))
    abroad = desk.home.root / "abroad.jsonl"
    os.rename(source, abroad)
    screen = desk.run("resume", str(abroad), "--way", "go on", columns=250)
    screen.wait_for("lies outside of the client's folders")
    screen.key("Enter")
    found = screen.wait_for(r"STARTED --resume ([0-9a-f-]{36}) IN (\S+)")
    assert found.group(2) == desk.project.name
    assert found.group(1) in desk.ids()
