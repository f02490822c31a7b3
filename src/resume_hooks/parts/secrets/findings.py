"""What a scrub would do: every place that holds secrets, and whether it will be rewritten. Nothing is changed.

The secrets themselves are learned from the family's sessions, and then looked for everywhere, also where the scanner
would not know them.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from resume_hooks.errors import ResumeHooksError, WriteFailed
from resume_hooks.parts.secrets.cleaner import Cleaned, Cleaner, RemovedSecret
from resume_hooks.parts.secrets.literals import NAMED, Literals, is_telling, is_token, lines_of
from resume_hooks.parts.secrets.locations import (
    CHILD,
    CLIENT,
    DOCUMENT,
    FILE_BACKUP,
    INDEXED,
    KEPT,
    OTHER,
    OWN,
    PARENT,
    READABLE,
    TRANSCRIPT,
    TRASHED,
    Location,
    archived_at,
    client_files,
    documents_of,
    family,
    files_in,
    inventory,
    is_lines,
    notes_of,
    pieces_of_kept,
)
from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import agent_of, original
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.open_sessions import Clients
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail

HELD, REMOVED, LEFT, OUTSIDE = "held", "removed", "left", "outside"
"""What a place came to: nothing was done yet, all is gone, it still holds secrets, it was not asked for."""

SETTINGS = (".claude.json", ".credentials.json", "settings.json", "settings.local.json", ".mcp.json")
"""How the names of the client's files begin in which a secret may stand because somebody put it there to be used."""


STUCK = "It stands in an image, in what names a record, or in the folder's name: nothing was changed there."


class LocationContents(NamedTuple):
    """What a place holds; ``stuck`` where some of it stands in what can't be changed: no text, an image, an id."""

    found: tuple[RemovedSecret, ...]
    stuck: bool


def look(place: Location, cleaner: Cleaner, where: Where) -> LocationContents:
    """The secrets that a place holds. OSError or WriteFailed, which says why, where that can't be told."""
    if os.path.islink(place.path):
        raise WriteFailed("It is a symbolic link, which is not followed", "Look at what is behind it by hand.")
    found: list[RemovedSecret] = []
    stuck = False
    for cleaned in _contents(place, cleaner, where):
        found += cleaned.found
        stuck = stuck or cleaned.stuck
    return LocationContents(tuple(found), stuck)


def _contents(place: Location, cleaner: Cleaner, where: Where) -> Iterator[Cleaned]:
    kept = archived_at(place, where)
    if kept is None and place.kind == KEPT:
        raise WriteFailed(
            manifest.why_unreadable(place.session_id, where) or "It has no note, or can't be listed",
            "What it holds can't be told: update this resume-hooks, or move it away.",
        )
    if kept is not None:
        yield from map(cleaner.piece, pieces_of_kept(kept))
        for text in (kept.title, kept.about.tag, *kept.about.titles):
            yield cleaner.text(text.encode("utf-8", "replace"))
    elif place.kind != INDEXED:  # built anew in any case
        yield from cleaner.file(place.path, lines=is_lines(place.path))


def _state(place: Location) -> object:
    """What changes with any change of a place."""
    found: list[object] = []
    for path in [place.path, *files_in(place.path)] if place.kind in {KEPT, TRASHED} else [place.path]:
        found.append(path)
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            found.append((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return found


class ScrubReach(NamedTuple):
    """What a scrub in place reaches beyond the session, its copies and its children."""

    parents: bool = False
    others: bool = False
    file_backups: bool = False
    documents: bool = False
    client: bool = False


class Holding(NamedTuple):
    """A place with what it holds: secrets by kind. ``state`` is one of four words, ``why`` a sentence or ""."""

    place: Location
    kinds: dict[str, int]
    state: str
    why: str


@dataclass(frozen=True, slots=True)
class ScrubFindings:
    """What was found. ``scanner`` takes out all, ``known`` only what is known from the family: the ``values``.

    ``relations`` are of the sessions that were ever seen to be of the family, ``clean`` are the places that held
    nothing, as they were then, and are not read again as long as they stay so. ``title`` is the session's, without what
    is known. ``short`` are secrets that could be any word: nowhere but where the scanner finds them are they known.
    """

    session: SessionFile
    kinds: Collection[str]
    wanted: ScrubReach
    relations: Mapping[str, str]
    values: Mapping[str, str]
    clean: dict[Location, object]
    rows: tuple[Holding, ...]
    scanner: Cleaner
    known: Cleaner
    open: str
    title: str
    short: frozenset[str] = frozenset()

    @property
    def held(self) -> list[Holding]:
        """The places that are to be changed, the index aside."""
        return [row for row in self.rows if row.state == HELD and row.place.kind != INDEXED]

    def cleaner_of(self, place: Location) -> Cleaner:
        """What takes secrets out of a place: the family's own files are scanned, too."""
        return self.scanner if place.relation in {OWN, CHILD, PARENT} and place.kind != FILE_BACKUP else self.known


def look_everywhere(
    session: SessionFile,
    where: Where,
    *,
    kinds: Collection[str] = (),
    named: Mapping[str, str] | None = None,
    wanted: ScrubReach = ScrubReach(),  # noqa: B008 - a value that nobody can change
) -> ScrubFindings:
    """Look at every place. ``named`` are secrets that the user gave, with their kind; without ``kinds`` all count."""
    values = named or {}
    cleaner = Cleaner(kinds, Literals(values))
    nothing = ScrubFindings(session, kinds, wanted, {}, values, {}, (), cleaner, cleaner, "", "")
    return look_again(nothing, where)


def look_again(before: ScrubFindings, where: Where) -> ScrubFindings:
    """Look at every place that is there now for what was found, and for what else a scan finds.

    What held nothing, and nobody has changed since, is not read again.
    """
    session, wanted = before.session, before.wanted
    relations = {**family(session, where), **before.relations}
    places = inventory(relations, where)
    if not is_archived_copy(session.path, where) and all(place.path != session.path for place in places):
        places.append(Location(TRANSCRIPT, session.path, session.session_id, OWN))  # a file that lies elsewhere
    values, short = dict(before.values), set(before.short)
    for place in places:
        if place.relation != OTHER and is_reached(place.relation, wanted) and place.kind not in {FILE_BACKUP, READABLE}:
            held: tuple[RemovedSecret, ...] = ()
            if before.clean.get(place) != _state(place):
                with contextlib.suppress(OSError, ResumeHooksError):
                    held = look(place, before.scanner, where).found
            values |= _searchable(held)
            short |= {each.values[-1] for each in held if each.values and not _searchable([each])}
    texts = {value: kind for value, kind in values.items() if kind == NAMED or not is_token(value)}
    literals = Literals(texts, {value: kind for value, kind in values.items() if value not in texts})
    found = replace(
        before,
        relations=relations,
        values=values,
        clean=before.clean if values == before.values else {},
        short=frozenset(short),
        scanner=Cleaner(before.kinds, literals),
        known=Cleaner(literals=literals, scanning=False),
    )
    clients = Clients(where)
    everywhere = [*documents_of(session, where), *client_files(where), *notes_of(where), *places]
    rows = [row for place in everywhere if (row := _holding(place, found, where, clients))]
    # Another agent's session is looked at in a copy; people find it where the original is.
    rows = [row._replace(place=row.place._replace(path=original(row.place.path, where))) for row in rows]
    if not os.path.lexists(session.path):
        return replace(found, rows=tuple(rows), open="")
    if session.agent != NAME:
        why = agent_of(session, where).why_open(session)
    else:
        why = "" if is_archived_copy(session.path, where) else clients.why_open(session)
    return replace(found, rows=tuple(rows), open=why, title=found.known.words(HeadTail(session.path).title))


def is_reached(relation: str, wanted: ScrubReach) -> bool:
    """Whether the places of sessions with this relation are scrubbed."""
    return {PARENT: wanted.parents, OTHER: wanted.others}.get(relation, True)


def _searchable(found: Iterable[RemovedSecret]) -> dict[str, str]:
    """The secrets that can be looked for as text, with their kinds."""
    told: dict[str, str] = {}
    for each in found:
        for value in each.values:
            looked_for = [value] if is_telling(value) or is_token(value) else []
            told |= dict.fromkeys([*looked_for, *lines_of(value)], each.kind)
    return told


def _holding(place: Location, found: ScrubFindings, where: Where, clients: Clients) -> Holding | None:
    """A place that holds secrets, or can't be read; None for any other."""
    state, wanted = _state(place), found.wanted
    if found.clean.get(place) == state:
        return None
    try:
        held = look(place, found.cleaner_of(place), where)
    except (OSError, ResumeHooksError) as error:
        if not os.path.lexists(place.path):
            return None
        why = error.strerror or str(error) if isinstance(error, OSError) else f"{error.message}. {error.remedy}"
        outside = _why_outside(place, wanted._replace(others=True))  # another's counts only if that is known
        said = f"It could not be looked at: {why.rstrip('.')}. {outside}".strip()
        return Holding(place, {}, OUTSIDE if outside else LEFT, said)
    if not held.found and not held.stuck and place.kind != INDEXED:
        found.clean[place] = state
        return None
    kinds = dict(Counter(each.kind for each in held.found))
    if why := _why_outside(place, wanted):
        return Holding(place, kinds, OUTSIDE, why)
    if place.kind == TRANSCRIPT and place.relation != OWN:
        with contextlib.suppress(OSError):
            status = os.stat(place.path)
            file = SessionFile(place.session_id, place.path, status.st_mtime, status.st_size)
            if reason := clients.why_open(file):
                why = f"It may be open: {reason}. When it is not: resume-hooks scrub {place.session_id} --in-place"
                return Holding(place, kinds, LEFT, why)
    stuck = held.stuck and not held.found
    return Holding(place, kinds, LEFT if stuck else HELD, STUCK if stuck else "")


def _why_outside(place: Location, wanted: ScrubReach) -> str:
    """Why a place is not to be scrubbed, and which option asks for it; "" if it is to be."""
    if place.kind == CLIENT and os.path.basename(place.path).startswith(SETTINGS):
        return "It is a file of settings, where a secret may be in use: change it by hand."
    asked = {
        FILE_BACKUP: (
            wanted.file_backups,
            "It is a copy of a file of yours, to be put back by rewind-files: --backups.",
        ),
        DOCUMENT: (wanted.documents, "It is a file of the project: --documents."),
        CLIENT: (wanted.client, "It is the client's own: --client."),
    }.get(place.kind)
    if asked is not None and not asked[0]:
        return asked[1]
    if not is_reached(place.relation, wanted):
        return {PARENT: "The session came from it: --lineage.", OTHER: "Another session: --everywhere."}[place.relation]
    return ""
