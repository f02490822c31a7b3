"""The chooser without a terminal: keys in, a session out, and what its threads may do to it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from resume_hooks.cli.picker.chooser_threads import ContentSearch, SearchAnswer
from resume_hooks.cli.picker.screen import Chooser, KeyAction, OfferedSessions, find_preview_place
from resume_hooks.cli.picker.sequences import KeyParser
from resume_hooks.hooks.session_list.state import ListEntry, TurnHit
from resume_hooks.paths import Where
from tests.builders import session_id
from tests.hooks.session_list.rows import row

Sessions = Callable[[bool], Iterator[ListEntry]]


def three(_everywhere: bool) -> Iterator[ListEntry]:
    """Three sessions."""
    return (ListEntry(row(number)) for number in (1, 2, 3))


@contextmanager
def chooser_with_keys(
    sessions: Sessions, contents: Any = None, **options: Any
) -> Iterator[tuple[Chooser, PipeInput]]:
    """Return a chooser that gets these keys."""
    with create_pipe_input() as keys, create_app_session(input=keys, output=DummyOutput()):
        deeds: dict[str, KeyAction] = {"c-y": lambda one, _: f"GO {one.title.upper()}"}
        yield (
            Chooser(
                OfferedSessions(sessions, "/home/me/proj", deeds, contents), Where({}), **options
            ),
            keys,
        )


def chosen_title(chooser: Chooser) -> str | None:
    """Return the title of the chosen session."""
    chosen = chooser.run()
    return chosen.title if chosen else None


def when(holds: Callable[[], bool], act: Callable[[], object]) -> None:
    """Run a function in a thread when a condition is true."""

    def wait() -> None:
        deadline = time.monotonic() + 20
        while not holds() and time.monotonic() < deadline:
            time.sleep(0.005)
        act()

    threading.Thread(target=wait, daemon=True).start()


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
def test_keys(keys: str, title: str | None) -> None:
    """The chosen session; keys after the last one change nothing."""
    with chooser_with_keys(three) as (chooser, pipe):
        when(lambda: chooser.choices.count == 3, lambda: pipe.send_text(keys))
        assert chosen_title(chooser) == title


NO_KEYS = (
    "\x1b[I", "\x1b[O", "\x1b[<0;10;10M", "\x1b[M !!", "\x1b]11;rgb:0000/0000/0000\x07", "\x1bP1$r0m\x1b\\",
    "\x1b[?1;2c", "\x1b[57414u", "\x1bx", "\x1b\x1b[A", "\x1b[1;3A", "\x1b[1;5C", "\x1b[[A",
)  # fmt: skip
"""Reports of focus and of the mouse, replies, keys with modifiers, Alt with a key, function keys."""


@pytest.mark.parametrize("pieces", [1, 2])
@pytest.mark.parametrize("sequence", NO_KEYS)
def test_an_unknown_key_has_no_effect(sequence: str, pieces: int) -> None:
    """It neither closes the screen nor types a letter, whole or in two pieces."""
    with chooser_with_keys(three) as (chooser, pipe):

        def send() -> None:
            cut = len(sequence) if pieces == 1 else 2
            for piece in (sequence[:cut], f"{sequence[cut:]}title 3\r"):
                pipe.send_text(piece)

        when(lambda: chooser.choices.count == 3, send)
        assert chosen_title(chooser) == "Title 3"


@pytest.mark.parametrize("sequence", NO_KEYS)
def test_a_sequence_that_comes_byte_by_byte(sequence: str) -> None:
    """It produces no Escape and no letter, wherever a read ends."""
    heard: list[object] = []
    parser = KeyParser(lambda press: heard.append(press.key))
    for byte in sequence:
        parser.feed(byte)
    assert set(heard) <= {Keys.F1, Keys.ControlRight}


def test_a_paste_is_text() -> None:
    """This applies to any content; input after it is keys again."""
    with chooser_with_keys(three) as (chooser, pipe):
        text = "\x1b[200~title\x1b[I\x1b[201~\x15title 2\r"
        when(lambda: chooser.choices.count == 3, lambda: pipe.send_text(text))
        assert chosen_title(chooser) == "Title 2"


def test_the_list_is_described() -> None:
    """The project, the number of listed sessions and the total; the command is copied on request."""
    told: list[str] = []
    with chooser_with_keys(three, typed_text="2") as (chooser, pipe):

        def look() -> None:
            told.append(chooser.describe_list())
            pipe.send_text("\x19")
            when(lambda: bool(chooser.message), leave)

        def leave() -> None:
            told.append(chooser.message)
            pipe.send_text("\r")

        when(lambda: chooser.describe_list().endswith("3"), look)
        chooser.run()
    assert told == ["Resume a session · /home/me/proj · 1 of 3", "GO TITLE 2"]


def test_leaving_waits_for_no_listing() -> None:
    """One that never ends, before its first session."""
    never = threading.Event()

    def stuck(_everywhere: bool) -> Iterator[ListEntry]:
        never.wait(60)
        yield ListEntry(row())

    with chooser_with_keys(stuck) as (chooser, pipe):
        pipe.send_text("\x1b")
        since = time.monotonic()
        assert chooser.run() is None
    assert time.monotonic() - since < 30
    never.set()


def test_a_bug_of_the_listing_is_a_bug() -> None:
    """It ends the chooser, and is reported like every bug."""

    def broken(_everywhere: bool) -> Iterator[ListEntry]:
        yield ListEntry(row())
        raise ZeroDivisionError

    with chooser_with_keys(broken) as (chooser, _pipe), pytest.raises(ZeroDivisionError):
        chooser.run()


def test_a_listing_that_was_left_adds_nothing() -> None:
    """Ctrl+A while the first one is under way."""
    go = threading.Event()

    def listing(everywhere: bool) -> Iterator[ListEntry]:
        if not everywhere:
            go.wait(20)
        yield ListEntry(row(2 if everywhere else 1))

    with chooser_with_keys(listing) as (chooser, pipe):
        pipe.send_text("\x01")

        def release() -> None:
            go.set()
            time.sleep(0.2)
            pipe.send_text("\r")

        when(lambda: chooser.in_all_projects and chooser.choices.count == 1, release)
        assert (chosen_title(chooser), chooser.choices.count) == ("Title 2", 1)


class Saying(ContentSearch):
    """Contents that are looked through as a test says."""

    def __init__(
        self, told: Callable[[SearchAnswer | None], None], say: Callable[[str], list[TurnHit]]
    ) -> None:
        super().__init__("/home/me/proj", Where({}), told)
        self._say = say

    def _open_and_serve(self) -> None:
        while (asked := self._next_request()) is not None:
            self._on_answer(SearchAnswer(asked, self._say(asked.text), 7))


def turn_of_each_session(*numbers: int) -> list[TurnHit]:
    """Return a turn for each session."""
    return [
        TurnHit((session_id(number),), "strong", "reply · turn 4", "it was said", 0)
        for number in numbers
    ]


def test_matching_turns_can_be_chosen() -> None:
    """They appear after a search; the number of unsearched files is shown."""
    heads: list[str] = []

    def ready() -> bool:
        return [row.title for row in chooser.choices.matches] == ["Title 2"]

    def take() -> None:
        heads.append(chooser.describe_list())
        pipe.send_text("\r")

    with chooser_with_keys(
        three,
        contents=lambda told: Saying(
            told, lambda text: turn_of_each_session(2) if text == "pool" else []
        ),
    ) as found:
        chooser, pipe = found
        when(lambda: chooser.choices.count == 3, lambda: pipe.send_text("pool"))
        when(ready, take)
        assert chosen_title(chooser) == "Title 2"
    assert heads == ["Resume a session · /home/me/proj · 1 of 3 · 7 files not indexed yet"]


def test_answers_to_earlier_words_are_ignored() -> None:
    """The words were replaced. While no answer exists, the screen says so."""
    go, told = threading.Event(), list[str]()

    def slow(text: str) -> list[TurnHit]:
        if text == "pool":
            go.wait(20)
        return turn_of_each_session(1 if text == "pool" else 2) if text else []

    def type_on() -> None:
        told.append(chooser.describe_empty_list())
        pipe.send_text("s")
        when(lambda: chooser._input_buffer.text == "pools", go.set)
        when(lambda: bool(chooser.choices.matches), lambda: pipe.send_text("\r"))

    with chooser_with_keys(three, contents=lambda told: Saying(told, slow)) as (chooser, pipe):
        when(lambda: chooser.choices.count == 3, lambda: pipe.send_text("pool"))
        when(
            lambda: (
                chooser._input_buffer.text == "pool"
                and chooser._loader is not None
                and chooser._loader.is_done
            ),
            type_on,
        )
        assert chosen_title(chooser) == "Title 2"
    assert told == ["  Searching the turns ..."]


def test_a_search_bug_does_not_prevent_a_choice() -> None:
    """Titles can still be searched, and the bug is reported."""
    messages: list[str] = []

    def broken(text: str) -> list[TurnHit]:
        if text:
            raise ZeroDivisionError
        return []

    def take() -> None:
        messages.extend([chooser.message, chooser.describe_empty_list()])
        pipe.send_text("\x15title 3\r")

    with chooser_with_keys(three, contents=lambda told: Saying(told, broken)) as (chooser, pipe):
        when(lambda: chooser.choices.count == 3, lambda: pipe.send_text("zzz"))
        when(
            lambda: (
                bool(chooser.message)
                and chooser._current_search is None
                and not chooser.choices.matches
            ),
            take,
        )
        assert chosen_title(chooser) == "Title 3"
    assert messages == [
        "The turns can't be searched: ZeroDivisionError",
        "  No session contains these words.",
    ]


def test_leaving_waits_for_no_search() -> None:
    """The search never ends."""
    never = threading.Event()

    def stuck(_text: str) -> list[TurnHit]:
        never.wait(60)
        return []

    with chooser_with_keys(three, contents=lambda told: Saying(told, stuck)) as (chooser, pipe):
        when(lambda: chooser._content_search is not None and chooser._content_search.thread.is_alive(),
             lambda: pipe.send_text("\x1b"))  # fmt: skip
        since = time.monotonic()
        assert chooser.run() is None
    assert time.monotonic() - since < 30
    never.set()


@pytest.mark.parametrize(
    ("columns", "rows", "beside", "below"),
    [
        (200, 50, True, False),
        (120, 40, False, True),
        (80, 17, False, False),
        (40, 40, False, False),
    ],
)
def test_where_the_preview_is(columns: int, rows: int, beside: bool, below: bool) -> None:
    """Next to a wide list, below a high one, or nowhere."""
    assert find_preview_place(columns, rows) == (beside, below)
