"""Find every place that contains secrets, and decide whether a scrub will rewrite it.

Nothing is changed.

The secrets are learned from the sessions of the family. Then all places are searched for them,
including places in which the scanner would not recognise them.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from resume_hooks.errors import ResumeHooksError, WriteFailed
from resume_hooks.parts.secrets.cleaner import Cleaner, RemovedSecret
from resume_hooks.parts.secrets.literals import (
    NAMED,
    Literals,
    encoded_lines_of,
    is_telling,
    is_token,
)
from resume_hooks.parts.secrets.locations import (
    CHILD,
    CLIENT,
    DOCUMENT,
    FILE_BACKUP,
    INDEXED,
    KEPT,
    LINE,
    OTHER,
    OWN,
    PARENT,
    READABLE,
    TEXT,
    TRANSCRIPT,
    TRASHED,
    Location,
    Piece,
    archived_at,
    is_lines,
    pieces_of_file,
    pieces_of_kept,
    places_of_client_files,
    places_of_documents,
    places_of_notes,
    places_of_sessions,
    regular_files_below,
    relations_of_family,
)
from resume_hooks.paths import Where
from resume_hooks.reading.session_secrets import PrintedOutputs
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import agent_of, original_path
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.open_sessions import Clients
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail

HELD, REMOVED, LEFT, OUTSIDE = "held", "removed", "left", "outside"
"""The state of a place: not changed yet, all secrets removed, still with secrets, not selected."""

SETTINGS = (
    ".claude.json",
    ".credentials.json",
    "settings.json",
    "settings.local.json",
    ".mcp.json",
)
"""The beginnings of the names of the client's settings files, whose secrets may be in use."""


STUCK = "It is in an image, a record's id, or the folder's name, which can't be changed."


class LocationContents(NamedTuple):
    """The secrets in a place; ``stuck`` if some cannot be removed, such as in an image or an id.

    ``printed`` are secrets in the output of commands, which a single record does not reveal.
    """

    found: tuple[RemovedSecret, ...]
    stuck: bool
    printed: tuple[RemovedSecret, ...]


def look_at_place(place: Location, cleaner: Cleaner, where: Where) -> LocationContents:
    """Return the secrets in a place.

    Raise OSError, or WriteFailed with the reason why the place cannot be read.
    """
    if os.path.islink(place.path):
        raise WriteFailed(
            "It is a symbolic link, which is not followed", "Check its target by hand."
        )
    found: list[RemovedSecret] = []
    printed: list[RemovedSecret] = []
    stuck = False
    outputs = PrintedOutputs()
    for piece in _pieces_of_place(place, where):
        cleaned = cleaner.clean_piece(piece)
        found += cleaned.found
        stuck = stuck or cleaned.stuck
        if piece.form == LINE:
            for text in outputs.texts_of_line(piece.raw):
                printed += cleaner.clean_text(text.encode("utf-8", "surrogatepass")).found
    return LocationContents(tuple(found), stuck, tuple(printed))


def _pieces_of_place(place: Location, where: Where) -> Iterator[Piece]:
    """Yield the pieces of all files in a place, and the texts in an archived session's note."""
    kept = archived_at(place, where)
    if kept is None and place.kind == KEPT:
        raise WriteFailed(
            manifest.why_unreadable(place.session_id, where)
            or "It has no note, or can't be listed",
            "Its content is unknown: update resume-hooks, or move it away.",
        )
    if kept is not None:
        yield from pieces_of_kept(kept)
        for text in (kept.title, kept.about.tag, *kept.about.titles):
            yield Piece(text.encode("utf-8", "replace"), TEXT)
    elif place.kind != INDEXED:  # the index is rebuilt in any case
        yield from pieces_of_file(place.path, lines=is_lines(place.path))


def _state_of_place(place: Location) -> object:
    """Return a value that differs after any change to a place."""
    found: list[object] = []
    for path in (
        [place.path, *regular_files_below(place.path)]
        if place.kind in {KEPT, TRASHED}
        else [place.path]
    ):
        found.append(path)
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            found.append((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return found


class ScrubReach(NamedTuple):
    """The places that a scrub in place covers besides the session, its copies and its children."""

    parents: bool = False
    others: bool = False
    file_backups: bool = False
    documents: bool = False
    client: bool = False


class Holding(NamedTuple):
    """A place with its secrets by kind; ``state`` is one of the four states above, ``why`` a sentence or ""."""

    place: Location
    kinds: dict[str, int]
    state: str
    why: str


@dataclass(frozen=True, slots=True)
class ScrubFindings:
    """The findings of a scrub; ``scanner`` removes all secrets, ``known`` only the ``values`` known from the family.

    ``relations`` include every session that ever belonged to the family. ``clean`` maps places
    without secrets to their state, and they are read again only if it changes. ``title`` is the
    session's title without known secrets. ``short`` secrets could be any word, so only the scanner
    finds them.
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
    def places_to_change(self) -> list[Holding]:
        """The places to change, without the index."""
        return [row for row in self.rows if row.state == HELD and row.place.kind != INDEXED]

    def cleaner_of(self, place: Location) -> Cleaner:
        """Return the cleaner for a place; the family's own files are also scanned."""
        if place.relation in {OWN, CHILD, PARENT} and place.kind != FILE_BACKUP:
            return self.scanner
        return self.known


def look_everywhere(
    session: SessionFile,
    where: Where,
    *,
    kinds: Collection[str] = (),
    named: Mapping[str, str] | None = None,
    wanted: ScrubReach = ScrubReach(),  # noqa: B008 - a value that nobody can change
) -> ScrubFindings:
    """Search every place. ``named`` are the user's own secrets with their kind.

    Empty ``kinds`` select all kinds.
    """
    values = named or {}
    cleaner = Cleaner(kinds, Literals(values))
    nothing = ScrubFindings(session, kinds, wanted, {}, values, {}, (), cleaner, cleaner, "", "")
    return look_again(nothing, where)


def look_again(before: ScrubFindings, where: Where) -> ScrubFindings:
    """Search every existing place for the known secrets, and for others that a scan finds.

    An unchanged place without secrets is not read again.
    """
    session, wanted = before.session, before.wanted
    relations = {**relations_of_family(session, where), **before.relations}
    places = places_of_sessions(relations, where)
    if not is_archived_copy(session.path, where) and all(
        place.path != session.path for place in places
    ):
        places.append(
            Location(TRANSCRIPT, session.path, session.session_id, OWN)
        )  # a transcript outside the projects
    values, short = dict(before.values), set(before.short)
    for place in places:
        if (
            place.relation != OTHER
            and is_reached(place.relation, wanted)
            and place.kind not in {FILE_BACKUP, READABLE}
        ):
            held: tuple[RemovedSecret, ...] = ()
            if before.clean.get(place) != _state_of_place(place):
                with contextlib.suppress(OSError, ResumeHooksError):
                    contents = look_at_place(place, before.scanner, where)
                    held = contents.found + contents.printed
            values |= _searchable(held)
            short |= {each.values[-1] for each in held if each.values and not _searchable([each])}
    texts = {value: kind for value, kind in values.items() if kind == NAMED or not is_token(value)}
    literals = Literals(
        texts, {value: kind for value, kind in values.items() if value not in texts}
    )
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
    everywhere = [
        *places_of_documents(session, where),
        *places_of_client_files(where),
        *places_of_notes(where),
        *places,
    ]
    rows = [row for place in everywhere if (row := _holding(place, found, where, clients))]
    # Another agent's session is searched in a copy; the user needs the path of the original.
    rows = [
        row._replace(place=row.place._replace(path=original_path(row.place.path, where)))
        for row in rows
    ]
    if not os.path.lexists(session.path):
        return replace(found, rows=tuple(rows), open="")
    if session.agent != NAME:
        why = agent_of(session, where).why_open(session)
    elif is_archived_copy(session.path, where):
        why = ""
    else:
        why = clients.why_open(session)
    return replace(
        found,
        rows=tuple(rows),
        open=why,
        title=found.known.clean_words(HeadTail(session.path).title),
    )


def is_reached(relation: str, wanted: ScrubReach) -> bool:
    """Check whether a scrub covers the sessions with this relation."""
    return {PARENT: wanted.parents, OTHER: wanted.others}.get(relation, True)


def _searchable(found: Iterable[RemovedSecret]) -> dict[str, str]:
    """Return the secrets that can be searched for as text, with their kinds."""
    told: dict[str, str] = {}
    for each in found:
        for value in each.values:
            if is_telling(value) or is_token(value):
                looked_for = [value]
            else:
                looked_for = []
            told |= dict.fromkeys([*looked_for, *encoded_lines_of(value)], each.kind)
    return told


def _holding(
    place: Location, found: ScrubFindings, where: Where, clients: Clients
) -> Holding | None:
    """Return a place that contains secrets or cannot be read, or None for any other place."""
    state, wanted = _state_of_place(place), found.wanted
    if found.clean.get(place) == state:
        return None
    try:
        held = look_at_place(place, found.cleaner_of(place), where)
    except (OSError, ResumeHooksError) as error:
        if not os.path.lexists(place.path):
            return None
        if isinstance(error, OSError):
            why = error.strerror or str(error)
        else:
            why = f"{error.message}. {error.remedy}"
        outside = _why_outside(
            place, wanted._replace(others=True)
        )  # include other sessions, because the relation of an unreadable place is unknown
        said = f"It could not be read: {why.rstrip('.')}. {outside}".strip()
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
                why = (
                    f"It may be open: {reason}. When it is not: resume-hooks scrub "
                    f"{place.session_id} --in-place"
                )
                return Holding(place, kinds, LEFT, why)
    stuck = held.stuck and not held.found
    return Holding(place, kinds, LEFT if stuck else HELD, STUCK if stuck else "")


def _why_outside(place: Location, wanted: ScrubReach) -> str:
    """Return why a place is not scrubbed, with the option for it, or "" if it is scrubbed."""
    if place.kind == CLIENT and os.path.basename(place.path).startswith(SETTINGS):
        return "It is a settings file, where a secret may be in use: change it by hand."
    asked = {
        FILE_BACKUP: (
            wanted.file_backups,
            "It is a backup of your file for rewind-files: --backups.",
        ),
        DOCUMENT: (wanted.documents, "It is a file of the project: --documents."),
        CLIENT: (wanted.client, "It belongs to the client: --client."),
    }.get(place.kind)
    if asked is not None and not asked[0]:
        return asked[1]
    if not is_reached(place.relation, wanted):
        return {
            PARENT: "It is an ancestor of the session: --lineage.",
            OTHER: "Another session: --everywhere.",
        }[place.relation]
    return ""
