"""Chooses the messages of a talk for an opening, and the part of each, within the opening's room.

First what was said since the last request; then what the user said, the latest first; then what the
assistant said last before each next prompt, the last third of it whole and the conclusions of the
rest; then, briefly, what it said between calls and what sub-agents reported; then all of what
sub-agents reported and of that rest. What the client summed up stands in for what is left out. A
large opening has all of it whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from resume_hooks.reading.digest import talk
from resume_hooks.reading.digest.entries import Kind, TalkMessage

RECENT = (
    3  # answers that ended a turn, the latest, that come whole before the older ones come at all
)
LAST_PART = (
    3  # the last part of what ended turns, one of so many, comes whole; of the rest the conclusions
)
BRIEF = 600  # characters of what was said between two calls
LARGE = 56_000  # characters of room from which on all that was said comes whole
BEGINNING = 400  # characters of a request that does not fit whole
CURRENT_PART = 0.25  # part of the room that is for what was said since the last request
SUMMARY_PART = 0.15  # part of the room that a summary may take where talk is left out
LEAST = 60  # characters of room below which no further message is tried

Size = Callable[[TalkMessage, str], int]  # characters that a message takes with its heading


def chosen_talk(
    messages: Sequence[TalkMessage], room: int, size: Size, current: int, *, is_whole: bool = False
) -> dict[int, str]:
    """The places of the shown messages, each with the text to show; ``is_whole``: all texts whole.

    From the place ``current`` on they were said since the last request.
    """
    if is_whole:
        return {at: message.text for at, message in enumerate(messages)}
    choice = _Choice(messages, room, size)
    requests, closings = choice.places_of_kind(Kind.REQUEST), choice.places_of_kind(Kind.CLOSING)
    first = {}
    for at in requests:
        first[at] = talk.with_short_pastes(messages[at].text)
    recent = closings[:RECENT]
    for at in closings:
        first[at] = messages[at].text if at in recent else talk.conclusion_of(messages[at].text)
    choice.add_summary(sum(size(messages[at], text) for at, text in first.items()))
    choice.add_current(current)
    for at in requests:
        choice.show_message(at, first[at]) or choice.show_message(
            at, talk.beginning_of(messages[at].text, BEGINNING)
        )
    for at in closings:
        choice.show_message(at, first[at]) or choice.show_message(
            at, talk.conclusion_of(messages[at].text)
        )
    for at in (*closings[: -(-len(closings) // LAST_PART)], *requests):
        choice.show_message(at, messages[at].text)
    for at in (*choice.places_of_kind(Kind.NARRATION), *choice.places_of_kind(Kind.REPORT)):
        choice.show_message(at, talk.shorten_text(messages[at].text, BRIEF))
    if room >= LARGE:
        narration = choice.places_of_kind(Kind.NARRATION)
    else:
        narration = []
    for at in (*choice.places_of_kind(Kind.REPORT), *closings, *narration):
        choice.show_message(at, messages[at].text)
    return choice.texts


class _Choice:
    """The messages chosen so far, and the room that is left."""

    def __init__(self, messages: Sequence[TalkMessage], room: int, size: Size) -> None:
        self.texts: dict[int, str] = {}
        self._messages = messages
        self._room = room
        self._size = size

    def places_of_kind(self, kind: Kind) -> list[int]:
        """The places of the messages of a kind, the latest first."""
        found: Iterable[int] = range(len(self._messages) - 1, -1, -1)
        return [at for at in found if self._messages[at].kind is kind]

    def add_summary(self, needed: int) -> None:
        """Show the client's last summary if the talk, of ``needed`` characters, exceeds the room."""
        summaries = self.places_of_kind(Kind.SUMMARY)
        if needed > self._room and summaries:
            text = self._messages[summaries[0]].text
            self.show_message(
                summaries[0], talk.shorten_text(text, round(self._room * SUMMARY_PART))
            )

    def add_current(self, current: int) -> None:
        """Show the messages since the last request, the latest first, in a part of the room."""
        least = self._room - round(self._room * CURRENT_PART)
        for at in range(len(self._messages) - 1, current - 1, -1):
            if self._room > least:
                self.show_message(at, self._messages[at].text)

    def show_message(self, at: int, text: str) -> bool:
        """Show this text of a message, in place of an earlier choice; whether there was room."""
        if self._room < LEAST:
            return False
        message = self._messages[at]
        if at in self.texts:
            before = self._size(message, self.texts[at])
        else:
            before = 0
        more = self._size(message, text) - before
        if more > self._room:
            return False
        self.texts[at] = text
        self._room -= more
        return True
