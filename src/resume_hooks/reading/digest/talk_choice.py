"""Choose the messages of a talk for an opening, and the part of each message that fits the opening's space.

The order is as follows. First come the messages since the last request, then the user's messages,
the latest first. Then come the assistant's last words before each prompt: the latest third whole,
and the conclusions of the others. Then come the assistant's words between calls and the sub-agents'
reports, both shortened. If there is still space, these reports and the other last words are shown
whole, but leave room for the latest calls, as does the narration of long turns. The client's summary
replaces omitted messages. A large opening contains everything whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from resume_hooks.reading.digest import talk
from resume_hooks.reading.digest.entries import MessageKind, TalkMessage

MAX_RECENT_ANSWERS = 3  # the number of latest answers that are shown whole before any older ones
# one part in this many of the last words of turns, the latest, is shown whole; of the others only
# the conclusions
WHOLE_ANSWERS_DIVISOR = 3
MAX_NARRATION_CHARACTERS = 600  # the maximum number of characters in words between two calls
MIN_WHOLE_TALK_CHARACTERS = 56_000  # if this many characters are available, the whole talk is shown
# if this many characters are available, older texts leave room for calls
MIN_SHARED_CHARACTERS = 20_000
# the maximum number of characters in a sub-agent's report that does not fit whole
MAX_REPORT_CHARACTERS = 4_000
# the fraction of the space that whole reports, whole older answers and the narration of long turns
# leave for the calls after the talk
CALLS_FRACTION = 0.3
# the fraction of the space for the words between the calls of one turn, before they must leave that
TURN_NARRATION_FRACTION = 0.1
# the maximum number of characters in a request that does not fit whole
MAX_BEGINNING_CHARACTERS = 400
CURRENT_FRACTION = 0.25  # the fraction of the space for messages since the last request
SUMMARY_FRACTION = 0.15  # the fraction of the space for a summary if messages are omitted
MIN_MESSAGE_CHARACTERS = 60  # if fewer characters are available, no further message is tried

# a function that returns the number of characters of a message with its heading
CountCharacters = Callable[[TalkMessage, str], int]


def choose_talk(
    messages: Sequence[TalkMessage],
    max_characters: int,
    count_characters: CountCharacters,
    first_current: int,
    *,
    is_whole: bool = False,
) -> dict[int, str]:
    """Return the indexes of the messages to show, each with its text.

    If ``is_whole``, all texts are whole. Messages from the index ``first_current`` on came after the last
    request.
    """
    if is_whole:
        return {index: message.text for index, message in enumerate(messages)}
    choice = _TalkChoice(messages, max_characters, count_characters)
    requests, closings = (
        choice.indexes_of_kind(MessageKind.REQUEST),
        choice.indexes_of_kind(MessageKind.CLOSING),
    )
    first_texts = {}
    for index in requests:
        first_texts[index] = talk.shorten_pastes(messages[index].text)
    recent_closings = closings[:MAX_RECENT_ANSWERS]
    for index in closings:
        first_texts[index] = (
            messages[index].text
            if index in recent_closings
            else talk.find_conclusion(messages[index].text)
        )
    choice.add_summary(
        sum(count_characters(messages[index], text) for index, text in first_texts.items())
    )
    choice.add_current_messages(first_current)
    for index in requests:
        beginning = talk.keep_beginning(messages[index].text, MAX_BEGINNING_CHARACTERS)
        choice.show_longest(index, first_texts[index], beginning)
    for index in closings:
        conclusion = talk.find_conclusion(messages[index].text)
        choice.show_longest(index, first_texts[index], conclusion)
    for index in (*closings[: -(-len(closings) // WHOLE_ANSWERS_DIVISOR)], *requests):
        choice.show_message(index, messages[index].text)
    _add_narration(choice, messages, max_characters)
    for index in choice.indexes_of_kind(MessageKind.REPORT):
        choice.show_message(
            index, talk.shorten_text(messages[index].text, MAX_NARRATION_CHARACTERS)
        )
    _add_whole_texts(choice, messages, closings, max_characters)
    return choice.texts


def _add_narration(
    choice: _TalkChoice, messages: Sequence[TalkMessage], max_characters: int
) -> None:
    """Show the assistant's words between calls, the latest first, and few of a long turn's if calls need the space."""
    turn_numbers = list(accumulate(message.kind is MessageKind.REQUEST for message in messages))
    turn_characters: Counter[int] = Counter()
    later_texts: dict[int, str] = {}
    for index in choice.indexes_of_kind(MessageKind.NARRATION):
        text = talk.shorten_text(messages[index].text, MAX_NARRATION_CHARACTERS)
        if turn_characters[turn_numbers[index]] <= max_characters * TURN_NARRATION_FRACTION:
            choice.show_message(index, text)
        else:
            later_texts[index] = text
        turn_characters[turn_numbers[index]] += len(text)
    for index, text in later_texts.items():
        choice.show_in_spare_space(index, text, _count_calls_characters(max_characters))


def _count_calls_characters(max_characters: int) -> int:
    """Return the number of characters that older texts leave for the calls.

    The number is 0 in a small opening, where the talk is more useful, and in a large opening, where
    both the talk and the calls fit.
    """
    if MIN_SHARED_CHARACTERS <= max_characters < MIN_WHOLE_TALK_CHARACTERS:
        return round(max_characters * CALLS_FRACTION)
    return 0


def _add_whole_texts(
    choice: _TalkChoice,
    messages: Sequence[TalkMessage],
    closings: Sequence[int],
    max_characters: int,
) -> None:
    """Show more of the sub-agents' reports, and whole texts: last words of turns, narration, last reports."""
    reports = choice.indexes_of_kind(MessageKind.REPORT)
    for index in reports:
        choice.show_message(index, talk.shorten_text(messages[index].text, MAX_REPORT_CHARACTERS))
    whole_indexes = list(closings)
    if max_characters >= MIN_WHOLE_TALK_CHARACTERS:
        whole_indexes += choice.indexes_of_kind(MessageKind.NARRATION)
    reserved_characters = _count_calls_characters(max_characters)
    for index in whole_indexes:
        choice.show_in_spare_space(index, messages[index].text, reserved_characters)
    reserved_characters = round(max_characters * CALLS_FRACTION)
    for index in reports:
        choice.show_in_spare_space(index, messages[index].text, reserved_characters)


class _TalkChoice:
    """The messages that were chosen so far, and the remaining space."""

    def __init__(
        self,
        messages: Sequence[TalkMessage],
        max_characters: int,
        count_characters: CountCharacters,
    ) -> None:
        self.texts: dict[int, str] = {}
        self._messages = messages
        self._remaining_characters = max_characters
        self._count_characters = count_characters

    def indexes_of_kind(self, kind: MessageKind) -> list[int]:
        """Return the indexes of the messages of a kind, the latest first."""
        indexes: Iterable[int] = range(len(self._messages) - 1, -1, -1)
        return [index for index in indexes if self._messages[index].kind is kind]

    def add_summary(self, talk_characters: int) -> None:
        """Show the client's last summary if the talk, of ``talk_characters``, exceeds the space."""
        summaries = self.indexes_of_kind(MessageKind.SUMMARY)
        if talk_characters > self._remaining_characters and summaries:
            text = self._messages[summaries[0]].text
            self.show_message(
                summaries[0],
                talk.shorten_text(text, round(self._remaining_characters * SUMMARY_FRACTION)),
            )

    def add_current_messages(self, first_current: int) -> None:
        """Show the messages since the last request, the latest first, in a fraction of the space."""
        min_remaining = self._remaining_characters - round(
            self._remaining_characters * CURRENT_FRACTION
        )
        for index in range(len(self._messages) - 1, first_current - 1, -1):
            if self._remaining_characters > min_remaining:
                self.show_message(index, self._messages[index].text)

    def show_in_spare_space(self, index: int, text: str, reserved_characters: int) -> None:
        """Show this text of a message if this many characters remain, for the calls after the talk."""
        added_characters = len(text) - len(self.texts.get(index, ""))
        if added_characters + reserved_characters < self._remaining_characters:
            self.show_message(index, text)

    def show_longest(self, index: int, *texts: str) -> None:
        """Show the first of these texts of a message, given longest first, that fits."""
        for text in texts:
            if self.show_message(index, text):
                return

    def show_message(self, index: int, text: str) -> bool:
        """Show this text of a message in place of an earlier choice. Return whether the text fits."""
        if self._remaining_characters < MIN_MESSAGE_CHARACTERS:
            return False
        message = self._messages[index]
        if index in self.texts:
            former_characters = self._count_characters(message, self.texts[index])
        else:
            former_characters = 0
        added_characters = self._count_characters(message, text) - former_characters
        if added_characters > self._remaining_characters:
            return False
        self.texts[index] = text
        self._remaining_characters -= added_characters
        return True
