"""The sections of a digest out of a story, each within its bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain

from resume_hooks.digest import commands, files, spoken
from resume_hooks.digest.entries import SECTIONS, Entry
from resume_hooks.digest.repository import State
from resume_hooks.digest.story import Story

ROOM = 40_000
"""Characters of a whole digest: 10,000 tokens. Its record stays within the part of a file that is glanced at."""

SHARES = {
    "goal": 9_000, "constraints": 4_000, "plan": 1_500, "todos": 2_500, "decisions": 5_000, "changed": 7_000,
    "commands": 6_000, "failures": 3_000, "errors": 1_200, "last": 1_300, "questions": 1_000, "artefacts": 1_500,
    "read": 1_000,
}  # fmt: skip
"""Characters that each section has before what is left goes to those that need more, the most useful first."""


def sections_of(story: Story, folder: str, git: State) -> dict[str, tuple[Entry, ...]]:
    """Every section that has something in it; paths are told from ``folder``."""
    sentences = spoken.latest_sentences(story)
    makers: Mapping[str, Callable[[], Iterable[Entry]]] = {
        "goal": lambda: spoken.goal(story),
        "constraints": lambda: spoken.constraints(story),
        "plan": lambda: spoken.plan(story),
        "todos": lambda: spoken.todos(story),
        "decisions": lambda: spoken.decisions(story, sentences),
        "changed": lambda: files.changed(story, folder, git),
        "commands": lambda: commands.worked(story),
        "failures": lambda: chain(spoken.told_failures(story, sentences), commands.replaced(story)),
        "errors": lambda: commands.errors(story),
        "last": lambda: spoken.last(story),
        "questions": lambda: spoken.questions(story),
        "artefacts": lambda: files.artefacts(story),
        "read": lambda: files.read(story, folder),
    }
    return {
        name: tuple({entry.text: entry for entry in reversed([*make()])}.values())[::-1]
        for name, make in makers.items()
    }


def fitted(sections: Mapping[str, tuple[Entry, ...]]) -> tuple[dict[str, tuple[Entry, ...]], dict[str, int]]:
    """As many entries as ``ROOM`` holds, and how many each section had to leave out."""
    counts = {name: _holds(sections.get(name, ()), 0, SHARES[name]) for name in SECTIONS}
    used = sum(_size(entry) for name, count in counts.items() for entry in sections.get(name, ())[:count])
    for name in SECTIONS:
        rest = sections.get(name, ())[counts[name] :]
        more = _holds(rest, 0, ROOM - used)
        used += sum(map(_size, rest[:more]))
        counts[name] += more
    kept = {name: sections[name][:count] for name, count in counts.items() if count}
    return kept, {name: left for name, count in counts.items() if (left := len(sections.get(name, ())) - count)}


def _holds(entries: Iterable[Entry], used: int, room: int) -> int:
    """How many entries fit, from the front."""
    count = 0
    for entry in entries:
        used += _size(entry)
        if used > room:
            break
        count += 1
    return count


def _size(entry: Entry) -> int:
    return len(entry.text) + len(entry.note) + len(entry.ref)
