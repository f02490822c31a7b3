"""Find the archived session for a user's locator.

``@`` and an instant after it select an earlier state.
"""

from __future__ import annotations

import re

from resume_hooks.errors import AmbiguousLocator, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import place_beside
from resume_hooks.sessions.archived.manifest import ArchivedSession, EarlierState, all_archived
from resume_hooks.sessions.locate import archived_by_words, candidate_row

LONGER = "Use more of the id, or the path of the file."
ANOTHER = "Give one of these, with its instant: resume-hooks restore ID@INSTANT"

_STATE = re.compile(r"(.*)@([0-9TZ:.-]+)")


def find_archived(
    locator: str,
    where: Where,
    deleted: list[ArchivedSession] | None = None,
    *,
    by_part: bool = True,
) -> ArchivedSession:
    """Return the archived session for a locator, in one of the forms of ``named_by``.

    ``@`` and an instant select an earlier state or, among ``deleted`` sessions, one of several
    deletions. Raises UsageError, SessionNotFound and AmbiguousLocator.
    """
    wanted = locator.strip()
    if not wanted:
        raise UsageError("The locator is empty", "Give an id or a title.")
    everything = all_archived(where) if deleted is None else deleted
    found = archived_by_words(wanted, everything, where, by_part=by_part)
    if not found and (state := _STATE.fullmatch(wanted)):
        named = archived_by_words(state[1], everything, where, by_part=by_part)
        at = state[2].replace(":", "-")
        found = []
        for each in named:
            if each.deleted_at and each.instant == at:
                found.append(each)
        kept = (each for each in named if not each.deleted_at)
        for each in kept:
            for earlier in earlier_states(each):
                if name_earlier_state(earlier) == at:
                    found.append(session_at_state(each, earlier))
    if not found:
        raise SessionNotFound(
            f"The vault has no session '{wanted}'",
            "List its sessions: resume-hooks archive --list",
        )
    if len(found) > 1:
        raise AmbiguousLocator(
            wanted,
            [candidate_row(archived, where) for archived in found],
            remedy=ANOTHER if deleted else LONGER,
        )
    return found[0]


def earlier_states(archived: ArchivedSession) -> list[EarlierState]:
    """Return the earlier states of a session with another transcript, the oldest first."""
    own = place_beside(archived.place)
    return [
        earlier
        for earlier in archived.earlier
        if any(place_beside(part.place) == own for part in earlier.parts)
    ]


def name_earlier_state(earlier: EarlierState) -> str:
    """Return the name of an earlier state, for use after the session's id and ``@``."""
    return earlier.archived_at.replace(":", "-")


def session_at_state(archived: ArchivedSession, earlier: EarlierState) -> ArchivedSession:
    """Return a session with the files of an earlier state.

    Files that the state does not have stay current.
    """
    places = {
        place_beside(part.place): part.place for part in archived.parts
    }  # it may have been in another project
    before = {
        place: part._replace(place=place)
        for part in earlier.parts
        if (place := places.get(place_beside(part.place)))
    }
    parts = {part.place: part for part in archived.parts} | before
    return archived._replace(
        parts=(parts.pop(archived.place), *parts.values()),
        archived_at=earlier.archived_at,
        earlier=(),
    )
