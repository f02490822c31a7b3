"""The sections of a digest out of a story, each within its bounds."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

import orjson

from resume_hooks.reading.digest import commands, files, shell, statements
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import SECTIONS, Digest, DigestEntry
from resume_hooks.reading.digest.facts import FileChange
from resume_hooks.reading.digest.files import UNCOMMITTED
from resume_hooks.reading.digest.repository import RepositoryState

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

FAILED_SINCE = "failed since"


def sections_of(
    story: LineageFacts,
    folder: str,
    git: RepositoryState,
    helped: Sequence[FileChange] = (),
    before: Digest | None = None,
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
    story: LineageFacts, runs: Sequence[commands.ShellCommand], paths: files.Paths, helped: Sequence[FileChange]
) -> dict[str, tuple[DigestEntry, ...]]:
    sentences = statements.latest_sentences(story)
    found = files.touched([*story.changes, *helped], runs, paths)
    makers: Mapping[str, Iterable[DigestEntry]] = {
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


def _in_turn(first: Iterable[DigestEntry], second: Iterable[DigestEntry]) -> Iterable[DigestEntry]:
    """Now one of the first kind, now one of the second."""
    pairs = zip_longest(first, second)
    return (entry for pair in pairs for entry in pair if entry is not None)


def _once(entries: Iterable[DigestEntry]) -> tuple[DigestEntry, ...]:
    """Entries without those that are empty, or say what one before them says."""
    found: dict[str, DigestEntry] = {}
    for entry in entries:
        if entry.text:
            found.setdefault(entry.text, entry)
    return tuple(found.values())


def fitted(found: Merged) -> tuple[dict[str, tuple[DigestEntry, ...]], dict[str, int]]:
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


def _holds(entries: Iterable[DigestEntry], room: int) -> int:
    """How many entries fit, from the front."""
    count = 0
    for entry in entries:
        room -= _size(entry)
        if room < 0:
            break
        count += 1
    return count


def _size(entry: DigestEntry) -> int:
    return len(orjson.dumps(list(entry))) + 1


class Since(NamedTuple):
    """What the session did itself since the digest before it was made.

    ``failed`` are its commands that did not work; ``is_dirty`` says of a path whether it has changes now.
    """

    prompted: bool
    listed: bool
    ran: bool
    failed: Collection[str]
    is_dirty: Callable[[str], bool]


class Merged(NamedTuple):
    """The entries by section, and how many of each the digest before had no room for."""

    sections: Mapping[str, tuple[DigestEntry, ...]]
    omitted: Mapping[str, int]


def with_older(own: Mapping[str, tuple[DigestEntry, ...]], before: Digest, since: Since) -> Merged:
    """The session's own entries first, then what its ancestors left that still counts."""
    replaced = {
        "todos": since.listed,
        "questions": since.prompted,
        "errors": since.ran,
        "last": bool(own.get("last")),
        "plan": bool(own.get("plan")),
    }
    taken = [name for name in SECTIONS if not replaced.get(name, False)]
    merged = {name: own.get(name, ()) for name in SECTIONS}
    for name in taken:
        mine, older = merged[name], before.of(name)
        known = {entry.text for entry in mine}
        left = (_as_of_now(name, entry, since) for entry in older if entry.text not in known)
        merged[name] = _goal(mine, older) if name == "goal" else (*mine, *left)
    return Merged(merged, {name: count for name in taken if (count := before.omitted.get(name, 0))})


def _goal(mine: tuple[DigestEntry, ...], older: tuple[DigestEntry, ...]) -> tuple[DigestEntry, ...]:
    """The very first prompt, then the others from the latest on; both come with the first one ahead."""
    if not mine or not older:
        return mine or older
    rows = (*older[:1], *mine[1:], *mine[:1], *older[1:])
    notes = ("first", "latest")
    return tuple(entry._replace(note=notes[at] if at < len(notes) else "") for at, entry in enumerate(rows))


def _as_of_now(name: str, entry: DigestEntry, since: Since) -> DigestEntry:
    notes = [note for note in entry.note.split(", ") if note not in {"", UNCOMMITTED, FAILED_SINCE}]
    if name == "changed" and since.is_dirty(entry.text):
        notes.append(UNCOMMITTED)
    if name == "commands" and entry.text in since.failed:
        notes.append(FAILED_SINCE)
    return entry._replace(note=", ".join(notes))
