"""What a digest takes over from the one before it: of a lineage what still matters, told as of now."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from resume_hooks.reading.digest.entries import SECTIONS, Digest, Entry
from resume_hooks.reading.digest.files import UNCOMMITTED

FAILED_SINCE = "failed since"


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

    sections: Mapping[str, tuple[Entry, ...]]
    omitted: Mapping[str, int]


def with_older(own: Mapping[str, tuple[Entry, ...]], before: Digest, since: Since) -> Merged:
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


def _goal(mine: tuple[Entry, ...], older: tuple[Entry, ...]) -> tuple[Entry, ...]:
    """The very first prompt, then the others from the latest on; both come with the first one ahead."""
    if not mine or not older:
        return mine or older
    rows = (*older[:1], *mine[1:], *mine[:1], *older[1:])
    notes = ("first", "latest")
    return tuple(entry._replace(note=notes[at] if at < len(notes) else "") for at, entry in enumerate(rows))


def _as_of_now(name: str, entry: Entry, since: Since) -> Entry:
    notes = [note for note in entry.note.split(", ") if note not in {"", UNCOMMITTED, FAILED_SINCE}]
    if name == "changed" and since.is_dirty(entry.text):
        notes.append(UNCOMMITTED)
    if name == "commands" and entry.text in since.failed:
        notes.append(FAILED_SINCE)
    return entry._replace(note=", ".join(notes))
