"""Tests of the chooser without a terminal: its keys, its result, and its threads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prompt_toolkit.application import Application, create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from resume_hooks.cli.picker import chooser_threads
from resume_hooks.cli.picker.chooser_threads import ContentSearch, SearchAnswer
from resume_hooks.cli.picker.screen import (
    Chooser,
    KeyAction,
    OfferedSessions,
    find_preview_position,
)
from resume_hooks.cli.picker.sequences import KeyParser
from resume_hooks.hooks.session_list.state import ListEntry, TurnHit
from resume_hooks.paths import Where
from tests.builders import session_id
from tests.hooks.session_list.rows import make_listed_session

ListSessions = Callable[[bool], Iterator[ListEntry]]


def three_entries(_everywhere: bool) -> Iterator[ListEntry]:
    """Yield the list entries of three sessions."""
    return (ListEntry(make_listed_session(number)) for number in (1, 2, 3))


@contextmanager
def chooser_with_keys(
    sessions: ListSessions, make_content_search: Any = None, **options: Any
) -> Iterator[tuple[Chooser, PipeInput]]:
    """Yield a chooser and the pipe through which the test sends keys to the chooser."""
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        deeds: dict[str, KeyAction] = {"c-y": lambda one, _: f"GO {one.title.upper()}"}
        yield (
            Chooser(
                OfferedSessions(sessions, "/home/me/proj", deeds, make_content_search),
                Where({}),
                **options,
            ),
            keys,
        )


def chosen_title(chooser: Chooser) -> str | None:
    """Run the chooser and return the title of the chosen session, or None."""
    chosen = chooser.run_until_closed()
    return chosen.title if chosen else None


def run_when(condition: Callable[[], bool], action: Callable[[], object]) -> None:
    """In a thread, wait until ``condition`` returns True, and then call ``action``."""

    def wait_and_act() -> None:
        deadline = time.monotonic() + 20
        while not condition() and time.monotonic() < deadline:
            time.sleep(0.005)
        action()

    threading.Thread(target=wait_and_act, daemon=True).start()


@pytest.mark.parametrize(
    ("keys", "title"),
    [
        ("\r", "Title 1"),
        ("\x1b[B\x1b[B\r", "Title 3"),
        ("\x1b[F\x1b[A\r", "Title 2"),
        ("title 2\r", "Title 2"),
        ("nothing so called\r\x15\r", "Title 1"),
        ("\x1b", None),
        ("\x1b\x1b", None),
        ("\x03", None),
        ("\r\r\r", "Title 1"),
    ],
)
def test_keys_choose_a_session(keys: str, title: str | None) -> None:
    """Enter chooses the selected session, and later keys change nothing."""
    with chooser_with_keys(three_entries) as (chooser, pipe):
        run_when(lambda: chooser.choices.session_count == 3, lambda: pipe.send_text(keys))
        assert chosen_title(chooser) == title


UNKNOWN_KEYS = (
    "\x1b[I", "\x1b[O", "\x1b[<0;10;10M", "\x1b[M !!", "\x1b]11;rgb:0000/0000/0000\x07", "\x1bP1$r0m\x1b\\",
    "\x1b[?1;2c", "\x1b[57414u", "\x1bx", "\x1b\x1b[A", "\x1b[1;3A", "\x1b[1;5C", "\x1b[[A",
)  # fmt: skip
"""Key sequences with no meaning in the chooser.

Among them are reports about the focus and the mouse, replies of the terminal, function keys, and
keys with Ctrl, Shift or Alt.
"""


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("sequence", UNKNOWN_KEYS)
def test_an_unknown_key_has_no_effect(sequence: str, pieces: int) -> None:
    """An unknown key sequence does not close the screen or type a letter, even if it arrives in pieces."""
    with chooser_with_keys(three_entries) as (chooser, pipe):

        def send_sequence() -> None:
            cut = len(sequence) if pieces == 1 else 2
            for piece in (sequence[:cut], f"{sequence[cut:]}title 3\r"):
                pipe.send_text(piece)

        run_when(lambda: chooser.choices.session_count == 3, send_sequence)
        assert chosen_title(chooser) == "Title 3"


@pytest.mark.parametrize("sequence", UNKNOWN_KEYS)
def test_a_sequence_may_arrive_byte_by_byte(sequence: str) -> None:
    """A key sequence that arrives byte by byte is not read as Escape or as letters."""
    heard: list[object] = []
    parser = KeyParser(lambda press: heard.append(press.key))
    for byte in sequence:
        parser.feed(byte)
    assert set(heard) <= {Keys.F1, Keys.ControlRight}


def test_pasted_text_is_not_read_as_keys() -> None:
    """Pasted text is not read as keys, even if it contains key sequences. Later keys work as usual."""
    with chooser_with_keys(three_entries) as (chooser, pipe):
        text = "\x1b[200~title\x1b[I\x1b[201~\x15title 2\r"
        run_when(lambda: chooser.choices.session_count == 3, lambda: pipe.send_text(text))
        assert chosen_title(chooser) == "Title 2"


def test_the_chooser_describes_its_list() -> None:
    """The screen shows the project, the number of listed sessions, and the number of all sessions.

    A key copies the command that resumes the chosen session.
    """
    told: list[str] = []
    with chooser_with_keys(three_entries, typed_text="2") as (chooser, pipe):

        def store_description_and_press_copy_key() -> None:
            told.append(chooser.describe_list())
            pipe.send_text("\x19")
            run_when(lambda: bool(chooser.message), store_message_and_press_enter)

        def store_message_and_press_enter() -> None:
            told.append(chooser.message)
            pipe.send_text("\r")

        run_when(
            lambda: chooser.describe_list().endswith("3"), store_description_and_press_copy_key
        )
        chooser.run_until_closed()
    assert told == ["Resume a session · /home/me/proj · 1 of 3", "GO TITLE 2"]


def test_leaving_does_not_wait_for_the_listing() -> None:
    """Escape closes the chooser even if the listing has not found any session yet."""
    never = threading.Event()

    def list_forever(_everywhere: bool) -> Iterator[ListEntry]:
        never.wait(60)
        yield ListEntry(make_listed_session())

    with chooser_with_keys(list_forever) as (chooser, pipe):
        pipe.send_text("\x1b")
        since = time.monotonic()
        assert chooser.run_until_closed() is None
    assert time.monotonic() - since < 30
    never.set()


def test_an_exception_in_the_listing_closes_the_chooser() -> None:
    """If the listing raises an exception, the chooser closes and raises the same exception."""

    def list_and_fail(_everywhere: bool) -> Iterator[ListEntry]:
        yield ListEntry(make_listed_session())
        raise ZeroDivisionError

    with chooser_with_keys(list_and_fail) as (chooser, _pipe), pytest.raises(ZeroDivisionError):
        chooser.run_until_closed()


def test_an_outdated_listing_adds_no_sessions() -> None:
    """After Ctrl+A, sessions that the interrupted first listing still finds are not added to the list."""
    go = threading.Event()

    def list_sessions(everywhere: bool) -> Iterator[ListEntry]:
        if not everywhere:
            go.wait(20)
        yield ListEntry(make_listed_session(2 if everywhere else 1))

    with chooser_with_keys(list_sessions) as (chooser, pipe):
        pipe.send_text("\x01")

        def release_first_listing() -> None:
            go.set()
            time.sleep(0.2)
            pipe.send_text("\r")

        run_when(
            lambda: chooser.shows_all_projects and chooser.choices.session_count == 1,
            release_first_listing,
        )
        assert (chosen_title(chooser), chooser.choices.session_count) == ("Title 2", 1)


class FakeContentSearch(ContentSearch):
    """A content search that gets its hits from a function."""

    def __init__(
        self,
        on_answer: Callable[[SearchAnswer | None], None],
        find_hits: Callable[[str], list[TurnHit]],
    ) -> None:
        super().__init__("/home/me/proj", Where({}), on_answer)
        self._find_hits = find_hits

    def _open_index_and_answer(self) -> None:
        while (asked := self._wait_for_next_request()) is not None:
            self._on_answer(SearchAnswer(asked, self._find_hits(asked.text), 7))


def turns_of_sessions(*numbers: int) -> list[TurnHit]:
    """Return one matching turn for each of the session numbers."""
    return [
        TurnHit((session_id(number),), "strong", "reply · turn 4", "it was said", 0)
        for number in numbers
    ]


def test_matching_turns_can_be_chosen() -> None:
    """The list shows the hits of a search and the number of files that are not indexed.

    The user can choose a hit.
    """
    heads: list[str] = []

    def has_match() -> bool:
        return [row.title for row in chooser.choices.matches] == ["Title 2"]

    def choose_match() -> None:
        heads.append(chooser.describe_list())
        pipe.send_text("\r")

    with chooser_with_keys(
        three_entries,
        make_content_search=lambda on_answer: FakeContentSearch(
            on_answer, lambda text: turns_of_sessions(2) if text == "pool" else []
        ),
    ) as found:
        chooser, pipe = found
        run_when(lambda: chooser.choices.session_count == 3, lambda: pipe.send_text("pool"))
        run_when(has_match, choose_match)
        assert chosen_title(chooser) == "Title 2"
    assert heads == ["Resume a session · /home/me/proj · 1 of 3 · 7 files not indexed yet"]


def test_an_answer_to_an_earlier_query_is_ignored() -> None:
    """If the user has typed another letter, hits for the earlier text are not shown.

    The screen shows that a search is running until the search for the newest text is answered.
    """
    go, told = threading.Event(), list[str]()

    def search_slowly(text: str) -> list[TurnHit]:
        if text == "pool":
            go.wait(20)
        return turns_of_sessions(1 if text == "pool" else 2) if text else []

    def type_another_letter() -> None:
        told.append(chooser.describe_empty_list())
        pipe.send_text("s")
        run_when(lambda: chooser._input_buffer.text == "pools", go.set)
        run_when(lambda: bool(chooser.choices.matches), lambda: pipe.send_text("\r"))

    with chooser_with_keys(
        three_entries,
        make_content_search=lambda on_answer: FakeContentSearch(on_answer, search_slowly),
    ) as (chooser, pipe):
        run_when(lambda: chooser.choices.session_count == 3, lambda: pipe.send_text("pool"))
        run_when(
            lambda: (
                chooser._input_buffer.text == "pool"
                and chooser._loader is not None
                and chooser._loader.is_done
            ),
            type_another_letter,
        )
        assert chosen_title(chooser) == "Title 2"
    assert told == ["  Searching the turns ..."]


def test_a_failed_search_does_not_prevent_a_choice() -> None:
    """If a search fails, the screen shows the error, and a session can be chosen by its title."""
    messages: list[str] = []

    def fail_to_search(text: str) -> list[TurnHit]:
        if text:
            raise ZeroDivisionError
        return []

    def choose_by_title() -> None:
        messages.extend([chooser.message, chooser.describe_empty_list()])
        pipe.send_text("\x15title 3\r")

    with chooser_with_keys(
        three_entries,
        make_content_search=lambda on_answer: FakeContentSearch(on_answer, fail_to_search),
    ) as (chooser, pipe):
        run_when(lambda: chooser.choices.session_count == 3, lambda: pipe.send_text("zzz"))
        run_when(
            lambda: (
                bool(chooser.message)
                and chooser._current_search is None
                and not chooser.choices.matches
            ),
            choose_by_title,
        )
        assert chosen_title(chooser) == "Title 3"
    assert messages == [
        "The turns can't be searched: ZeroDivisionError",
        "  No session contains these words.",
    ]


def test_leaving_does_not_wait_for_a_search() -> None:
    """Escape closes the chooser even while an endless search is running."""
    never = threading.Event()

    def search_forever(_text: str) -> list[TurnHit]:
        never.wait(60)
        return []

    with chooser_with_keys(
        three_entries,
        make_content_search=lambda on_answer: FakeContentSearch(on_answer, search_forever),
    ) as (chooser, pipe):
        run_when(lambda: chooser._content_search is not None and chooser._content_search.thread.is_alive(),
             lambda: pipe.send_text("\x1b"))  # fmt: skip
        since = time.monotonic()
        assert chooser.run_until_closed() is None
    assert time.monotonic() - since < 30
    never.set()


@pytest.mark.parametrize(
    ("columns", "rows", "is_beside_list", "is_below_list"),
    [
        (200, 50, True, False),
        (120, 40, False, True),
        (80, 17, False, False),
        (40, 40, False, False),
    ],
)
def test_the_position_of_the_preview_depends_on_the_terminal(
    columns: int, rows: int, is_beside_list: bool, is_below_list: bool
) -> None:
    """The preview is beside the list on a wide terminal and below the list on a tall one.

    On a small terminal, there is no preview.
    """
    assert find_preview_position(columns, rows) == (is_beside_list, is_below_list)


def test_the_preview_thread_does_not_redraw_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a preview is ready, the event loop redraws the screen.

    In the preview's thread, prompt_toolkit's redraw fails while the screen closes.
    """
    threads: list[threading.Thread] = []
    preview_threads: list[threading.Thread] = []
    redraw = Application[Any].invalidate

    def record_redraw(app: Application[Any]) -> None:
        threads.append(threading.current_thread())
        redraw(app)

    def make_preview(*_: object) -> list[str]:
        preview_threads.append(threading.current_thread())
        return ["a preview"]

    monkeypatch.setattr(Application, "invalidate", record_redraw)
    monkeypatch.setattr(chooser_threads, "make_preview", make_preview)
    with chooser_with_keys(three_entries) as (chooser, pipe):
        run_when(
            lambda: bool(preview_threads) and not preview_threads[0].is_alive(),
            lambda: pipe.send_text("\x1b"),
        )
        assert chosen_title(chooser) is None
    assert preview_threads
    assert threads
    assert not set(threads) & set(preview_threads)
