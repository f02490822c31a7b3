"""Find every file that contains secrets, and decide whether a scrub will rewrite it.

This module changes no files.

The secrets are first found in the sessions of the family. All other files are then searched for
these secrets as text, because the scanner may not recognise them there.
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
    encoded_lines,
    is_distinctive,
    is_token,
)
from resume_hooks.parts.secrets.locations import (
    CHILD,
    CLIENT,
    DOCUMENT,
    FILE_BACKUP,
    INDEXED,
    LINE,
    OTHER_SESSION,
    OWN_SESSION,
    PARENT,
    TEXT,
    TRANSCRIPT,
    TRASHED,
    UNPACKED_COPY,
    VAULT_COPY,
    Location,
    Piece,
    archived_session_at,
    family_relations,
    has_record_lines,
    pieces_of_archived,
    pieces_of_file,
    places_of_client_files,
    places_of_documents,
    places_of_notes,
    places_of_sessions,
    regular_files_below,
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

UNCHANGED, REMOVED, LEFT, OUTSIDE = "held", "removed", "left", "outside"
"""The state of a file: not changed yet, all secrets removed, secrets remaining, or not selected."""

SETTINGS_FILES = (
    ".claude.json",
    ".credentials.json",
    "settings.json",
    "settings.local.json",
    ".mcp.json",
)
"""The prefixes of the names of the client's settings files, whose secrets may be in use."""


STUCK_REASON = "It is in an image, a record's id, or the folder's name, which can't be changed."


class LocationContents(NamedTuple):
    """The secrets in a file; ``stuck`` is true if some cannot be removed, for example from an image or an id.

    ``printed`` are secrets in the output of commands, which cannot be recognised in the output's
    record alone.
    """

    found: tuple[RemovedSecret, ...]
    stuck: bool
    printed: tuple[RemovedSecret, ...]


def search_place(place: Location, cleaner: Cleaner, where: Where) -> LocationContents:
    """Return the secrets in a file.

    Raise OSError, or WriteFailed with the reason why the file cannot be read.
    """
    if os.path.islink(place.path):
        raise WriteFailed(
            "It is a symbolic link, which is not followed", "Check its target by hand."
        )
    secrets: list[RemovedSecret] = []
    printed: list[RemovedSecret] = []
    stuck = False
    outputs = PrintedOutputs()
    for piece in _pieces_of_place(place, where):
        cleaned = cleaner.clean_piece(piece)
        secrets += cleaned.found
        stuck = stuck or cleaned.stuck
        if piece.form == LINE:
            for text in outputs.texts_of_line(piece.raw):
                printed += cleaner.clean_text(text.encode("utf-8", "surrogatepass")).found
    return LocationContents(tuple(secrets), stuck, tuple(printed))


def _pieces_of_place(place: Location, where: Where) -> Iterator[Piece]:
    """Yield the pieces of all files in a place, and the texts in the note of an archived session."""
    archived = archived_session_at(place, where)
    if archived is None and place.kind == VAULT_COPY:
        raise WriteFailed(
            manifest.why_unreadable(place.session_id, where)
            or "It has no note, or can't be listed",
            "Its content is unknown: update resume-hooks, or move it away.",
        )
    if archived is not None:
        yield from pieces_of_archived(archived)
        for text in (archived.title, archived.about.tag, *archived.about.titles):
            yield Piece(text.encode("utf-8", "replace"), TEXT)
    elif place.kind != INDEXED:  # the index is always rebuilt
        yield from pieces_of_file(place.path, lines=has_record_lines(place.path))


def _place_state(place: Location) -> object:
    """Return a value that changes whenever the place changes."""
    state: list[object] = []
    for path in (
        [place.path, *regular_files_below(place.path)]
        if place.kind in {VAULT_COPY, TRASHED}
        else [place.path]
    ):
        state.append(path)
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            state.append((status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return state


class ScrubReach(NamedTuple):
    """The places that a scrub in place includes besides the session, its copies and its children."""

    parents: bool = False
    others: bool = False
    file_backups: bool = False
    documents: bool = False
    client: bool = False


class PlaceWithSecrets(NamedTuple):
    """A place with its secrets by kind; ``state`` is one of the four states above, ``why`` is a sentence or ``""``."""

    place: Location
    kinds: dict[str, int]
    state: str
    why: str


@dataclass(frozen=True, slots=True)
class ScrubFindings:
    """The findings of a scrub; ``scanner`` removes all secrets, ``known`` removes only the family's ``values``.

    ``relations`` includes every session that ever belonged to the family. ``clean`` maps places
    without secrets to their state; such a place is only read again if its state changes. ``title``
    is the session's title without known secrets. ``short`` secrets could be any word, so only the
    scanner finds them.
    """

    session: SessionFile
    kinds: Collection[str]
    wanted: ScrubReach
    relations: Mapping[str, str]
    values: Mapping[str, str]
    clean: dict[Location, object]
    rows: tuple[PlaceWithSecrets, ...]
    scanner: Cleaner
    known: Cleaner
    open: str
    title: str
    short: frozenset[str] = frozenset()

    @property
    def places_to_change(self) -> list[PlaceWithSecrets]:
        """The places to change, without the index."""
        return [row for row in self.rows if row.state == UNCHANGED and row.place.kind != INDEXED]

    def cleaner_of(self, place: Location) -> Cleaner:
        """Return the cleaner for a place. In the family's own files, it also removes secrets that a scan finds."""
        if place.relation in {OWN_SESSION, CHILD, PARENT} and place.kind != FILE_BACKUP:
            return self.scanner
        return self.known


def search_everywhere(
    session: SessionFile,
    where: Where,
    *,
    kinds: Collection[str] = (),
    named_secrets: Mapping[str, str] | None = None,
    reach: ScrubReach = ScrubReach(),  # noqa: B008 - a value that nobody can change
) -> ScrubFindings:
    """Search every place. ``named_secrets`` contains the secrets that the user supplied, with their kinds.

    If ``kinds`` is empty, all kinds are selected.
    """
    values = named_secrets or {}
    cleaner = Cleaner(kinds, Literals(values))
    empty_findings = ScrubFindings(
        session, kinds, reach, {}, values, {}, (), cleaner, cleaner, "", ""
    )
    return search_again(empty_findings, where)


def search_again(previous: ScrubFindings, where: Where) -> ScrubFindings:
    """Search every existing place for the known secrets and for secrets that a scan finds.

    An unchanged place without secrets is not read again.
    """
    session, reach = previous.session, previous.wanted
    relations = {**family_relations(session, where), **previous.relations}
    places = places_of_sessions(relations, where)
    if not is_archived_copy(session.path, where) and all(
        place.path != session.path for place in places
    ):
        places.append(
            Location(TRANSCRIPT, session.path, session.session_id, OWN_SESSION)
        )  # a transcript outside the projects
    values, short = dict(previous.values), set(previous.short)
    for place in places:
        if (
            place.relation != OTHER_SESSION
            and is_covered(place.relation, reach)
            and place.kind not in {FILE_BACKUP, UNPACKED_COPY}
        ):
            secrets: tuple[RemovedSecret, ...] = ()
            if previous.clean.get(place) != _place_state(place):
                with contextlib.suppress(OSError, ResumeHooksError):
                    contents = search_place(place, previous.scanner, where)
                    secrets = contents.found + contents.printed
            values |= _searchable_values(secrets)
            short |= {
                secret.values[-1]
                for secret in secrets
                if secret.values and not _searchable_values([secret])
            }
    texts = {value: kind for value, kind in values.items() if kind == NAMED or not is_token(value)}
    literals = Literals(
        texts, {value: kind for value, kind in values.items() if value not in texts}
    )
    findings = replace(
        previous,
        relations=relations,
        values=values,
        clean=previous.clean if values == previous.values else {},
        short=frozenset(short),
        scanner=Cleaner(previous.kinds, literals),
        known=Cleaner(literals=literals, scanning=False),
    )
    clients = Clients(where)
    all_places = [
        *places_of_documents(session, where),
        *places_of_client_files(where),
        *places_of_notes(where),
        *places,
    ]
    rows = [row for place in all_places if (row := _find_in_place(place, findings, where, clients))]
    # Another agent's session is searched in its copy, but the user needs the path of the original.
    rows = [
        row._replace(place=row.place._replace(path=original_path(row.place.path, where)))
        for row in rows
    ]
    if not os.path.lexists(session.path):
        return replace(findings, rows=tuple(rows), open="")
    if session.agent != NAME:
        why = agent_of(session, where).why_open(session)
    elif is_archived_copy(session.path, where):
        why = ""
    else:
        why = clients.why_open(session)
    return replace(
        findings,
        rows=tuple(rows),
        open=why,
        title=findings.known.clean_words(HeadTail(session.path).title),
    )


def is_covered(relation: str, reach: ScrubReach) -> bool:
    """Check whether a scrub includes the sessions with this relation."""
    return {PARENT: reach.parents, OTHER_SESSION: reach.others}.get(relation, True)


def _searchable_values(secrets: Iterable[RemovedSecret]) -> dict[str, str]:
    """Return the secrets that are distinctive enough to be searched for as text, with their kinds."""
    kinds_by_text: dict[str, str] = {}
    for secret in secrets:
        for value in secret.values:
            if is_distinctive(value) or is_token(value):
                searchable = [value]
            else:
                searchable = []
            kinds_by_text |= dict.fromkeys([*searchable, *encoded_lines(value)], secret.kind)
    return kinds_by_text


def _find_in_place(
    place: Location, findings: ScrubFindings, where: Where, clients: Clients
) -> PlaceWithSecrets | None:
    """Return a place that contains secrets or cannot be read. Return None for any other place."""
    state, reach = _place_state(place), findings.wanted
    if findings.clean.get(place) == state:
        return None
    try:
        contents = search_place(place, findings.cleaner_of(place), where)
    except (OSError, ResumeHooksError) as error:
        if not os.path.lexists(place.path):
            return None
        if isinstance(error, OSError):
            why = error.strerror or str(error)
        else:
            why = f"{error.message}. {error.remedy}"
        outside = _why_outside(
            place,
            reach._replace(others=True),
            # include places of other sessions, because the relation of an unreadable place is unknown
        )
        reason_text = f"It could not be read: {why.rstrip('.')}. {outside}".strip()
        return PlaceWithSecrets(place, {}, OUTSIDE if outside else LEFT, reason_text)
    if not contents.found and not contents.stuck and place.kind != INDEXED:
        findings.clean[place] = state
        return None
    kinds = dict(Counter(secret.kind for secret in contents.found))
    if why := _why_outside(place, reach):
        return PlaceWithSecrets(place, kinds, OUTSIDE, why)
    if place.kind == TRANSCRIPT and place.relation != OWN_SESSION:
        with contextlib.suppress(OSError):
            status = os.stat(place.path)
            file = SessionFile(place.session_id, place.path, status.st_mtime, status.st_size)
            if reason := clients.why_open(file):
                why = (
                    f"It may be open: {reason}. When it is not: resume-hooks scrub "
                    f"{place.session_id} --in-place"
                )
                return PlaceWithSecrets(place, kinds, LEFT, why)
    stuck = contents.stuck and not contents.found
    return PlaceWithSecrets(
        place, kinds, LEFT if stuck else UNCHANGED, STUCK_REASON if stuck else ""
    )


def _why_outside(place: Location, reach: ScrubReach) -> str:
    """Return why a place is not scrubbed and which option includes it, or ``""`` if it is scrubbed."""
    if place.kind == CLIENT and os.path.basename(place.path).startswith(SETTINGS_FILES):
        return "It is a settings file, where a secret may be in use: change it by hand."
    option_reason = {
        FILE_BACKUP: (
            reach.file_backups,
            "It is a backup of your file for rewind-files: --backups.",
        ),
        DOCUMENT: (reach.documents, "It is a file of the project: --documents."),
        CLIENT: (reach.client, "It belongs to the client: --client."),
    }.get(place.kind)
    if option_reason is not None and not option_reason[0]:
        return option_reason[1]
    if not is_covered(place.relation, reach):
        return {
            PARENT: "It is an ancestor of the session: --lineage.",
            OTHER_SESSION: "Another session: --everywhere.",
        }[place.relation]
    return ""
