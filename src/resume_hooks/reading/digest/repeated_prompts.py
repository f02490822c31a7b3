"""Shorten long prompts if a later prompt repeats parts of them, such as a pasted specification."""

from __future__ import annotations

from itertools import islice

from resume_hooks.reading.digest.facts import RecordPosition
from resume_hooks.reading.digest.prose import PASTE_END
from resume_hooks.redaction.lazy_patterns import compile_lazily

MIN_PROMPT_CHARACTERS = 1_000  # Shorter prompts are not changed.
MAX_PROMPT_WORDS = 20_000  # At most this many words in a prompt are compared.
# The minimum number of successive words that a repeated part and a later prompt have in common.
MIN_COMMON_WORDS = 12
MIN_REPEATED_WORDS = 60  # The minimum number of words in a repeated part that is replaced.
_WORD_PATTERN = compile_lazily(r"[^\W_]+")


class LaterPrompts:
    """The sequences of words in later prompts. The prompts are processed from the last to the first."""

    def __init__(self) -> None:
        self._positions: dict[str, RecordPosition] = {}

    def shorten_prompt(self, text: str, position: RecordPosition) -> str:
        """Replace parts of a prompt with references to a later prompt that contains the same words.

        The markup and line breaks of the two prompts may differ. ``position`` is the position of
        the prompt ``text``. The method must be called for the latest prompt first, because each
        call also remembers the prompt for the comparison with earlier prompts.
        """
        if len(text) < MIN_PROMPT_CHARACTERS:
            return text
        # Spaces replace the mark at a paste's end, because the words in the mark must not be
        # compared.
        searched_text = text.replace(PASTE_END, " " * len(PASTE_END))
        words = list(islice(_WORD_PATTERN.finditer(searched_text), MAX_PROMPT_WORDS))
        lower_words = [word[0].lower() for word in words]
        sequences: list[str] = []
        for start in range(len(words) - MIN_COMMON_WORDS + 1):
            sequences.append(" ".join(lower_words[start : start + MIN_COMMON_WORDS]))
        pieces: list[str] = []
        shown_end = 0
        for start, end in self._find_repeated_parts(sequences):
            first, last = words[start].start(), words[end - 1].end()
            later_position = self._positions[sequences[start]]
            if later_position.session_id == position.session_id:
                later_name = f":{later_position.record_number}"
            else:
                later_name = "a later prompt"
            pieces.append(text[shown_end:first])
            pieces.append(f"[... {end - start:,} words as in {later_name} ...]")
            shown_end = last
        for sequence in sequences:
            self._positions.setdefault(sequence, position)
        return "".join([*pieces, text[shown_end:]])

    def _find_repeated_parts(self, sequences: list[str]) -> list[tuple[int, int]]:
        """Return the start and the end of each part that a later prompt repeats, as indexes of words.

        All words of a part come from the same later prompt.
        """
        parts: list[tuple[int, int]] = []
        for start, sequence in enumerate(sequences):
            position = self._positions.get(sequence)
            if position is None:
                continue
            end = start + MIN_COMMON_WORDS
            if (
                parts
                and start <= parts[-1][1]
                and position == self._positions[sequences[parts[-1][0]]]
            ):
                parts[-1] = (parts[-1][0], end)
            elif not parts or start >= parts[-1][1]:
                parts.append((start, end))
        return [part for part in parts if part[1] - part[0] >= MIN_REPEATED_WORDS]
