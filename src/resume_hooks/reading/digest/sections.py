"""The sections of a digest: those of the session itself, what its ancestors left, as many entries as there is room."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import NamedTuple

import orjson

from resume_hooks.reading.digest import commands, files, shell, statements
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import SECTIONS, Digest, DigestEntry
from resume_hooks.reading.digest.repository import RepositoryState

ROOM = 44_000
"""Bytes of a whole digest as it is kept, about 10,000 tokens: with the opening before it and the title behind it the
record stays within the part of a file that is read."""

SHARES = {
    "goal": 9_000, "constraints": 4_000, "plan": 1_500, "todos": 2_500, "decisions": 5_000, "changed": 7_000,
    "commands": 6_000, "failures": 3_000, "errors": 1_200, "last": 1_300, "questions": 1_000, "artefacts": 1_500,
    "read": 1_000,
}  # fmt: skip
"""Bytes that each section has before what is left goes to those that need more, the most useful first."""

_BRIEF = ("last", "questions", "errors")
"""Sections of few entries, which others would leave no room for where their script takes more bytes."""

FAILED_SINCE = "failed since"


class MergedSections(NamedTuple):
    """The entries by section, and how many of each the digest before had no room for."""

    entries: Mapping[str, tuple[DigestEntry, ...]]
    omitted: Mapping[str, int]


def sections_of(
    facts: LineageFacts,
    folder: str,
    git: RepositoryState,
    before: Digest | None = None,
    wanted: Collection[str] = SECTIONS,
) -> MergedSections:
    """The sections that are ``wanted``, paths told from ``folder``; ``before`` is what was known at the beginning."""
    runs = commands.commands_of(facts)
    paths = files.Paths(folder, git)
    own = _own(facts, runs, paths, wanted)
    if before is None:
        return MergedSections(own, {})
    replaced = {
        "todos": facts.open_list.used,
        "questions": bool(facts.prompts.said),
        "errors": bool(runs),
        "last": bool(own.get("last")),
        "plan": bool(own.get("plan")),
    }
    failed = {shell.at_home(command.run.command, folder) for command in runs if not command.worked}

    def as_of_now(name: str, entry: DigestEntry) -> DigestEntry:
        notes = [note for note in entry.note.split(", ") if note not in {"", files.UNCOMMITTED, FAILED_SINCE}]
        if name == "changed" and paths.is_dirty(entry.text):
            notes.append(files.UNCOMMITTED)
        if name == "commands" and entry.text in failed:
            notes.append(FAILED_SINCE)
        return entry._replace(note=", ".join(notes))

    inherited = [name for name in own if not replaced.get(name, False)]
    merged = dict(own)
    for name in inherited:
        known = {entry.text for entry in own[name]}
        older = (as_of_now(name, entry) for entry in before.of(name) if entry.text not in known)
        merged[name] = _goal(own[name], before.of(name)) if name == "goal" else (*own[name], *older)
    return MergedSections(merged, {name: count for name in inherited if (count := before.omitted.get(name, 0))})


def _own(
    facts: LineageFacts,
    runs: Sequence[commands.ShellCommand],
    paths: files.Paths,
    wanted: Collection[str],
) -> dict[str, tuple[DigestEntry, ...]]:
    sentences = statements.latest_sentences(facts) if {"decisions", "failures"} & {*wanted} else []
    found = files.touched_files(facts.changes, runs, paths) if {"changed", "read"} & {*wanted} else {}
    failures = zip_longest(commands.replaced_commands(runs), statements.stated_failures(sentences))
    makers: Mapping[str, Iterable[DigestEntry]] = {
        "goal": statements.goal(facts),
        "constraints": statements.constraints(facts),
        "plan": statements.plan(facts),
        "todos": statements.todos(facts),
        "decisions": statements.decisions(facts, sentences),
        "changed": files.changed_files(found, paths),
        "commands": commands.working_commands(runs, paths.folder),
        "failures": chain(
            statements.refusals(facts, with_words=True),
            filter(None, chain.from_iterable(failures)),
            statements.refusals(facts, with_words=False),
        ),
        "errors": commands.open_errors(runs, statements.turns_ago(facts, commands.TURNS)),
        "last": statements.last(facts),
        "questions": statements.questions(facts),
        "artefacts": files.artefacts(facts),
        "read": files.read_files(facts, paths, found),
    }
    return {name: _once(entries) for name, entries in makers.items() if name in wanted}


def _once(entries: Iterable[DigestEntry]) -> tuple[DigestEntry, ...]:
    """Entries without those that are empty, or say what one before them says."""
    found: dict[str, DigestEntry] = {}
    for entry in entries:
        if entry.text:
            found.setdefault(entry.text, entry)
    return tuple(found.values())


def fit_sections(merged: MergedSections) -> tuple[dict[str, tuple[DigestEntry, ...]], dict[str, int]]:
    """As many entries as ``ROOM`` holds, and how many each section had to leave out."""
    rows = {name: merged.entries.get(name, ()) for name in SECTIONS}
    counts = {name: _holds(rows[name], SHARES[name]) for name in SECTIONS}
    used = sum(_size(entry) for name, count in counts.items() for entry in rows[name][:count])
    for name in (*_BRIEF, *SECTIONS):
        rest = rows[name][counts[name] :]
        more = _holds(rest, ROOM - used)
        used += sum(map(_size, rest[:more]))
        counts[name] += more
    kept = {name: rows[name][:count] for name, count in counts.items() if count}
    left = {name: len(rows[name]) - counts[name] + merged.omitted.get(name, 0) for name in SECTIONS}
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


def _goal(mine: tuple[DigestEntry, ...], older: tuple[DigestEntry, ...]) -> tuple[DigestEntry, ...]:
    """The very first prompt, then the others from the latest on; both come with the first one ahead."""
    if not mine or not older:
        return mine or older
    rows = (*older[:1], *mine[1:], *mine[:1], *older[1:])
    notes = ("first", "latest")
    return tuple(entry._replace(note=notes[at] if at < len(notes) else "") for at, entry in enumerate(rows))
