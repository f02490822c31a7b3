"""The parts of long prompts that a later prompt repeats, such as a specification that was pasted again."""

from __future__ import annotations

from itertools import islice

from resume_hooks.reading.digest.facts import RecordPlace
from resume_hooks.reading.digest.prose import PASTE_END
from resume_hooks.redaction.lazy_patterns import compile_lazily

MIN_PROMPT_CHARACTERS = 1_000  # a shorter prompt is shown as it is
MAX_WORDS = 20_000  # the maximum number of words of a prompt that are compared
COMPARED_WORDS = 12  # the number of successive words that two prompts share in a repeated part
MIN_REPEATED_WORDS = 60  # a part with fewer words is shown again
_WORD = compile_lazily(r"[^\W_]+")


class LaterPrompts:
    """The word sequences of the prompts that were added so far, from the end of a session backwards."""

    def __init__(self) -> None:
        self._places: dict[str, RecordPlace] = {}

    def shorten_prompt(self, text: str, place: RecordPlace) -> str:
        """Return the prompt at ``place`` with references for the parts that a later prompt repeats.

        Markup and line breaks may differ. The prompt is then one of the later ones.
        """
        if len(text) < MIN_PROMPT_CHARACTERS:
            return text
        searched_text = text.replace(PASTE_END, " " * len(PASTE_END))  # it stays where it is
        words = list(islice(_WORD.finditer(searched_text), MAX_WORDS))
        lower_words = [word[0].lower() for word in words]
        sequences: list[str] = []
        for start in range(len(words) - COMPARED_WORDS + 1):
            sequences.append(" ".join(lower_words[start : start + COMPARED_WORDS]))
        pieces: list[str] = []
        shown_end = 0
        for start, end in self._find_repeated_parts(sequences):
            first, last = words[start].start(), words[end - 1].end()
            later_place = self._places[sequences[start]]
            if later_place.session_id == place.session_id:
                later_name = f":{later_place.number}"
            else:
                later_name = "a later prompt"
            pieces.append(text[shown_end:first])
            pieces.append(f"[... {end - start:,} words as in {later_name} ...]")
            shown_end = last
        for sequence in sequences:
            self._places.setdefault(sequence, place)
        return "".join([*pieces, text[shown_end:]])

    def _find_repeated_parts(self, sequences: list[str]) -> list[tuple[int, int]]:
        """Return the first word of each part that one later prompt repeats, and the word after the part."""
        parts: list[tuple[int, int]] = []
        for start, sequence in enumerate(sequences):
            place = self._places.get(sequence)
            if place is None:
                continue
            end = start + COMPARED_WORDS
            if parts and start <= parts[-1][1] and place == self._places[sequences[parts[-1][0]]]:
                parts[-1] = (parts[-1][0], end)
            elif not parts or start >= parts[-1][1]:
                parts.append((start, end))
        return [part for part in parts if part[1] - part[0] >= MIN_REPEATED_WORDS]
