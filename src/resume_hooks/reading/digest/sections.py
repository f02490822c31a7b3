"""The sections of a digest out of a story, each within its bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest

import orjson

from resume_hooks.reading.digest import commands, files, shell, statements
from resume_hooks.reading.digest.collector import Story
from resume_hooks.reading.digest.entries import SECTIONS, Digest, Entry
from resume_hooks.reading.digest.facts import Change
from resume_hooks.reading.digest.inherited import Merged, Since, with_older
from resume_hooks.reading.digest.repository import State

ROOM = 44_000
"""Bytes of a whole digest as it is kept, about 10,000 tokens: with the opening before it and the title behind it the
record stays within the part of a file that is glanced at."""

SHARES = {
    "goal": 9_000, "constraints": 4_000, "plan": 1_500, "todos": 2_500, "decisions": 5_000, "changed": 7_000,
    "commands": 6_000, "failures": 3_000, "errors": 1_200, "last": 1_300, "questions": 1_000, "artefacts": 1_500,
    "read": 1_000,
}  # fmt: skip
"""Bytes that each section has before what is left goes to those that need more, the most useful first."""

_BRIEF = ("last", "questions", "errors")
"""Sections of few entries, which others would leave no room for where their script takes more bytes."""


def sections_of(
    story: Story, folder: str, git: State, helped: Sequence[Change] = (), before: Digest | None = None
) -> Merged:
    """Every section that has something in it, and what had no room in the digest before.

    Paths are told from ``folder``; ``helped`` are the changes that sub-agents made, ``before`` is what was known when
    the session began.
    """
    runs = commands.commands_of(story)
    paths = files.Paths(folder, git)
    own = _own(story, runs, paths, helped)
    if before is None:
        return Merged(own, {})
    failed = {shell.at_home(command.run.command, folder) for command in runs if not command.worked}
    since = Since(
        prompted=bool(story.prompts.said),
        listed=story.open_list.used,
        ran=bool(runs),
        failed=failed,
        is_dirty=paths.is_dirty,
    )
    return with_older(own, before, since)


def _own(
    story: Story, runs: Sequence[commands.Command], paths: files.Paths, helped: Sequence[Change]
) -> dict[str, tuple[Entry, ...]]:
    sentences = statements.latest_sentences(story)
    found = files.touched([*story.changes, *helped], runs, paths)
    makers: Mapping[str, Iterable[Entry]] = {
        "goal": statements.goal(story),
        "constraints": statements.constraints(story),
        "plan": statements.plan(story),
        "todos": statements.todos(story),
        "decisions": statements.decisions(story, sentences),
        "changed": files.changed(found, paths),
        "commands": commands.worked(runs, paths.folder),
        "failures": chain(
            statements.refused(story, with_words=True),
            _in_turn(commands.replaced(runs), statements.told_failures(sentences)),
            statements.refused(story, with_words=False),
        ),
        "errors": commands.errors(runs, statements.turns_ago(story, commands.TURNS)),
        "last": statements.last(story),
        "questions": statements.questions(story),
        "artefacts": files.artefacts(story),
        "read": files.read(story, paths, found),
    }
    return {name: _once(entries) for name, entries in makers.items()}


def _in_turn(first: Iterable[Entry], second: Iterable[Entry]) -> Iterable[Entry]:
    """Now one of the first kind, now one of the second."""
    pairs = zip_longest(first, second)
    return (entry for pair in pairs for entry in pair if entry is not None)


def _once(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Entries without those that are empty, or say what one before them says."""
    found: dict[str, Entry] = {}
    for entry in entries:
        if entry.text:
            found.setdefault(entry.text, entry)
    return tuple(found.values())


def fitted(found: Merged) -> tuple[dict[str, tuple[Entry, ...]], dict[str, int]]:
    """As many entries as ``ROOM`` holds, and how many each section had to leave out."""
    rows = {name: found.sections.get(name, ()) for name in SECTIONS}
    counts = {name: _holds(rows[name], SHARES[name]) for name in SECTIONS}
    used = sum(_size(entry) for name, count in counts.items() for entry in rows[name][:count])
    for name in (*_BRIEF, *SECTIONS):
        rest = rows[name][counts[name] :]
        more = _holds(rest, ROOM - used)
        used += sum(map(_size, rest[:more]))
        counts[name] += more
    kept = {name: rows[name][:count] for name, count in counts.items() if count}
    left = {name: len(rows[name]) - counts[name] + found.omitted.get(name, 0) for name in SECTIONS}
    return kept, {name: count for name, count in left.items() if count}


def _holds(entries: Iterable[Entry], room: int) -> int:
    """How many entries fit, from the front."""
    count = 0
    for entry in entries:
        room -= _size(entry)
        if room < 0:
            break
        count += 1
    return count


def _size(entry: Entry) -> int:
    return len(orjson.dumps(list(entry))) + 1
