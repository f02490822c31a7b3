"""Choose the messages of the talk that an opening shows, and how much of each message.

Messages are added in this order while space is left:

1. the messages after the last request
2. the user's messages, the latest first
3. the assistant's last words before each prompt: completely in the latest third of the turns, and
   only the conclusions in older turns
4. the assistant's words between calls and the reports of sub-agents, both shortened

If space is still left, the last words and the reports are shown completely, and the remaining words
between the calls in long turns are added. These texts leave some of the space for the latest calls.
If messages do not fit, the client's summary is shown instead. In a large opening, all messages are
shown completely.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from resume_hooks.reading.digest import talk
from resume_hooks.reading.digest.entries import MessageKind, TalkMessage

# How many of the latest answers are shown completely before any older answer.
MAX_RECENT_ANSWERS = 3
# If there are N turns, the last words of the latest N / TURNS_PER_WHOLE_ANSWER turns are shown
# completely. For older turns, only the conclusions are shown.
TURNS_PER_WHOLE_ANSWER = 3
# At most this many characters of the words between two calls are shown.
MAX_NARRATION_CHARACTERS = 600
# If fewer characters are available, the talk is not shown as a whole.
MIN_WHOLE_TALK_CHARACTERS = 56_000
# If fewer characters are available, no space is reserved for the calls.
MIN_CHARACTERS_WITH_RESERVED_CALLS = 20_000
# At most this many characters of a sub-agent's report are shown if it does not fit as a whole.
MAX_REPORT_CHARACTERS = 4_000
# This fraction of the space is reserved for the latest calls. Complete reports, complete older
# answers, and words between the calls of long turns cannot use it.
MIN_CALLS_SPACE_FRACTION = 0.3
# The words between the calls of a single turn may use this fraction of the available space. More
# words are added only if enough space is left for the latest calls.
TURN_NARRATION_SPACE_FRACTION = 0.1
# At most this many characters of a request are shown if it does not fit as a whole.
MAX_BEGINNING_CHARACTERS = 400
CURRENT_MESSAGES_SPACE_FRACTION = (
    0.25  # The fraction of the space for messages after the last request.
)
# If messages do not fit, the client's summary may take this fraction of the space.
SUMMARY_SPACE_FRACTION = 0.15
MIN_MESSAGE_CHARACTERS = 60  # If fewer characters are available, no more messages are added.

# A function that returns how many characters a message and its heading need. Its second argument is
# the text that is shown for the message.
CountCharacters = Callable[[TalkMessage, str], int]


def choose_talk(
    messages: Sequence[TalkMessage],
    max_characters: int,
    count_characters: CountCharacters,
    first_current_index: int,
    *,
    is_whole: bool = False,
) -> dict[int, str]:
    """Return the texts of the messages to show, by the index of each message.

    If ``is_whole`` is True, all messages are shown completely. ``first_current_index`` is the index
    of the first message after the last request.
    """
    if is_whole:
        return {index: message.text for index, message in enumerate(messages)}
    choice = _TalkChoice(messages, max_characters, count_characters)
    requests, closing_indexes = (
        choice.list_indexes_of_kind(MessageKind.REQUEST),
        choice.list_indexes_of_kind(MessageKind.CLOSING),
    )
    first_texts = {}
    for index in requests:
        first_texts[index] = talk.shorten_pastes(messages[index].text)
    recent_closings = closing_indexes[:MAX_RECENT_ANSWERS]
    for index in closing_indexes:
        first_texts[index] = (
            messages[index].text
            if index in recent_closings
            else talk.find_conclusion(messages[index].text)
        )
    choice.add_summary(
        sum(count_characters(messages[index], text) for index, text in first_texts.items())
    )
    choice.add_current_messages(first_current_index)
    for index in requests:
        beginning = talk.keep_beginning(messages[index].text, MAX_BEGINNING_CHARACTERS)
        choice.show_longest_fitting_text(index, first_texts[index], beginning)
    for index in closing_indexes:
        conclusion = talk.find_conclusion(messages[index].text)
        choice.show_longest_fitting_text(index, first_texts[index], conclusion)
    for index in (
        *closing_indexes[: -(-len(closing_indexes) // TURNS_PER_WHOLE_ANSWER)],
        *requests,
    ):
        choice.show_message(index, messages[index].text)
    _add_narration(choice, messages, max_characters)
    for index in choice.list_indexes_of_kind(MessageKind.REPORT):
        choice.show_message(
            index, talk.shorten_text(messages[index].text, MAX_NARRATION_CHARACTERS)
        )
    _add_whole_texts(choice, messages, closing_indexes, max_characters)
    return choice.texts


def _add_narration(
    choice: _TalkChoice, messages: Sequence[TalkMessage], max_characters: int
) -> None:
    """Show the assistant's words between calls, the latest first.

    If the latest calls need the space, only some of the words in a long turn are shown.
    """
    turn_numbers = list(accumulate(message.kind is MessageKind.REQUEST for message in messages))
    turn_characters: Counter[int] = Counter()
    later_texts: dict[int, str] = {}
    for index in choice.list_indexes_of_kind(MessageKind.NARRATION):
        text = talk.shorten_text(messages[index].text, MAX_NARRATION_CHARACTERS)
        if turn_characters[turn_numbers[index]] <= max_characters * TURN_NARRATION_SPACE_FRACTION:
            choice.show_message(index, text)
        else:
            later_texts[index] = text
        turn_characters[turn_numbers[index]] += len(text)
    for index, text in later_texts.items():
        choice.show_in_spare_space(index, text, _compute_calls_characters(max_characters))


def _compute_calls_characters(max_characters: int) -> int:
    """Return the number of characters that older texts leave for the latest calls.

    It is 0 in a small opening, because the talk is more useful than the calls, and in a large
    opening, because both fit.
    """
    if MIN_CHARACTERS_WITH_RESERVED_CALLS <= max_characters < MIN_WHOLE_TALK_CHARACTERS:
        return round(max_characters * MIN_CALLS_SPACE_FRACTION)
    return 0


def _add_whole_texts(
    choice: _TalkChoice,
    messages: Sequence[TalkMessage],
    closing_indexes: Sequence[int],
    max_characters: int,
) -> None:
    """Replace shortened texts with longer ones as long as space is left.

    First, the sub-agents' reports become longer. Then the last words of turns are shown completely
    and, in a large opening, the words between calls. At the end, the reports are shown completely.
    """
    reports = choice.list_indexes_of_kind(MessageKind.REPORT)
    for index in reports:
        choice.show_message(index, talk.shorten_text(messages[index].text, MAX_REPORT_CHARACTERS))
    whole_indexes = list(closing_indexes)
    if max_characters >= MIN_WHOLE_TALK_CHARACTERS:
        whole_indexes += choice.list_indexes_of_kind(MessageKind.NARRATION)
    reserved_characters = _compute_calls_characters(max_characters)
    for index in whole_indexes:
        choice.show_in_spare_space(index, messages[index].text, reserved_characters)
    reserved_characters = round(max_characters * MIN_CALLS_SPACE_FRACTION)
    for index in reports:
        choice.show_in_spare_space(index, messages[index].text, reserved_characters)


class _TalkChoice:
    """The messages that have been chosen so far, their shown texts, and the remaining space."""

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

    def list_indexes_of_kind(self, kind: MessageKind) -> list[int]:
        """Return the indexes of the messages of one kind, the latest first."""
        indexes: Iterable[int] = range(len(self._messages) - 1, -1, -1)
        return [index for index in indexes if self._messages[index].kind is kind]

    def add_summary(self, talk_characters: int) -> None:
        """Show a part of the client's last summary if the talk does not fit.

        ``talk_characters`` is the number of characters that the talk needs.
        """
        summaries = self.list_indexes_of_kind(MessageKind.SUMMARY)
        if talk_characters > self._remaining_characters and summaries:
            text = self._messages[summaries[0]].text
            self.show_message(
                summaries[0],
                talk.shorten_text(text, round(self._remaining_characters * SUMMARY_SPACE_FRACTION)),
            )

    def add_current_messages(self, first_current_index: int) -> None:
        """Show messages, starting with the latest one and ending with the one at ``first_current_index``.

        These messages may use a fraction of the remaining space.
        """
        min_remaining = self._remaining_characters - round(
            self._remaining_characters * CURRENT_MESSAGES_SPACE_FRACTION
        )
        for index in range(len(self._messages) - 1, first_current_index - 1, -1):
            if self._remaining_characters > min_remaining:
                self.show_message(index, self._messages[index].text)

    def show_in_spare_space(self, index: int, text: str, reserved_characters: int) -> None:
        """Show ``text`` for a message if this leaves enough space for the latest calls.

        The calls need ``reserved_characters``.
        """
        added_characters = len(text) - len(self.texts.get(index, ""))
        if added_characters + reserved_characters < self._remaining_characters:
            self.show_message(index, text)

    def show_longest_fitting_text(self, index: int, *texts: str) -> None:
        """Show the first of these texts that fits. They are versions of a message, the longest first."""
        for text in texts:
            if self.show_message(index, text):
                return

    def show_message(self, index: int, text: str) -> bool:
        """Show ``text`` for a message, instead of any earlier text. Return whether ``text`` fits."""
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
