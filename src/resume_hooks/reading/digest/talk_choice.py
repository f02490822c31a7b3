"""Choose the messages of a talk for an opening, and the part of each message that fits the opening's space.

The order is as follows. First come the messages since the last request, then the user's messages,
the latest first. Then come the assistant's last words before each prompt: the latest third whole,
and the conclusions of the others. Then come the assistant's words between calls and the sub-agents'
reports, both shortened. If there is still space, these reports and the other last words are shown
whole. The client's summary replaces omitted messages. A large opening contains everything whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from resume_hooks.reading.digest import talk
from resume_hooks.reading.digest.entries import Kind, TalkMessage

RECENT = 3  # the number of latest answers that are shown whole before any older ones
LAST_PART = (
    # one part in this many of the last words of turns, the latest, is shown whole; of the others
    # only the conclusions
    3
)
BRIEF = 600  # the maximum characters of words between two calls
LARGE = 56_000  # if this many characters are available, the whole talk is shown
BEGINNING = 400  # the maximum characters of a request that does not fit whole
CURRENT_PART = 0.25  # the fraction of the space for messages since the last request
SUMMARY_PART = 0.15  # the fraction of the space for a summary if messages are omitted
LEAST = 60  # if fewer characters are available, no further message is tried

# a function that returns the number of characters of a message with its heading
Size = Callable[[TalkMessage, str], int]


def chosen_talk(
    messages: Sequence[TalkMessage], room: int, size: Size, current: int, *, is_whole: bool = False
) -> dict[int, str]:
    """Return the indexes of the messages to show, each with its text.

    If ``is_whole``, all texts are whole. Messages from the index ``current`` on came after the last
    request.
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
        first[at] = messages[at].text if at in recent else talk.find_conclusion(messages[at].text)
    choice.add_summary(sum(size(messages[at], text) for at, text in first.items()))
    choice.add_current(current)
    for at in requests:
        choice.show_message(at, first[at]) or choice.show_message(
            at, talk.keep_beginning(messages[at].text, BEGINNING)
        )
    for at in closings:
        choice.show_message(at, first[at]) or choice.show_message(
            at, talk.find_conclusion(messages[at].text)
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
    """The messages that were chosen so far, and the remaining space."""

    def __init__(self, messages: Sequence[TalkMessage], room: int, size: Size) -> None:
        self.texts: dict[int, str] = {}
        self._messages = messages
        self._room = room
        self._size = size

    def places_of_kind(self, kind: Kind) -> list[int]:
        """Return the indexes of the messages of a kind, the latest first."""
        found: Iterable[int] = range(len(self._messages) - 1, -1, -1)
        return [at for at in found if self._messages[at].kind is kind]

    def add_summary(self, needed: int) -> None:
        """Show the client's last summary if the talk, which has ``needed`` characters, exceeds the space."""
        summaries = self.places_of_kind(Kind.SUMMARY)
        if needed > self._room and summaries:
            text = self._messages[summaries[0]].text
            self.show_message(
                summaries[0], talk.shorten_text(text, round(self._room * SUMMARY_PART))
            )

    def add_current(self, current: int) -> None:
        """Show the messages since the last request, the latest first, in a fraction of the space."""
        least = self._room - round(self._room * CURRENT_PART)
        for at in range(len(self._messages) - 1, current - 1, -1):
            if self._room > least:
                self.show_message(at, self._messages[at].text)

    def show_message(self, at: int, text: str) -> bool:
        """Show this text of a message in place of an earlier choice. Return whether the text fits."""
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
