"""Find the archived session to which a locator refers.

``@`` and a time after the locator select an earlier state.
"""

from __future__ import annotations

import re

from resume_hooks.errors import AmbiguousLocator, SessionNotFound, UsageError
from resume_hooks.paths import Where
from resume_hooks.sessions.archived.layout import path_in_archive
from resume_hooks.sessions.archived.manifest import ArchivedSession, EarlierState, list_archived
from resume_hooks.sessions.locate import candidate_row, match_archived

LONGER_ID_ADVICE = "Give more characters of the id, or the path of the file."
EARLIER_STATE_ADVICE = "Choose one of these by its id and time: resume-hooks restore ID@TIME"

_LOCATOR_WITH_TIME_PATTERN = re.compile(r"(.*)@([0-9TZ:.-]+)")


def find_archived(
    locator: str,
    where: Where,
    deleted_sessions: list[ArchivedSession] | None = None,
    *,
    match_title_parts: bool = True,
) -> ArchivedSession:
    """Return the archived session to which a locator refers, as in ``match_archived``.

    ``@`` and a time after the locator select an earlier state, or one of several deletions of a
    session. If ``deleted_sessions`` is given, only these sessions are searched.

    Raises UsageError if the locator is empty, SessionNotFound if no session matches, and
    AmbiguousLocator if several sessions match.
    """
    locator_text = locator.strip()
    if not locator_text:
        raise UsageError("The locator is empty", "Give an id or a title.")
    candidates = list_archived(where) if deleted_sessions is None else deleted_sessions
    matches = match_archived(locator_text, candidates, where, match_title_parts=match_title_parts)
    if not matches and (state_match := _LOCATOR_WITH_TIME_PATTERN.fullmatch(locator_text)):
        matches_without_state = match_archived(
            state_match[1], candidates, where, match_title_parts=match_title_parts
        )
        instant = state_match[2].replace(":", "-")
        matches = []
        for match in matches_without_state:
            if match.deleted_at and match.deletion_folder_name == instant:
                matches.append(match)
        archived_matches = (match for match in matches_without_state if not match.deleted_at)
        for match in archived_matches:
            for earlier in list_earlier_states(match):
                if make_earlier_state_name(earlier) == instant:
                    matches.append(select_earlier_state(match, earlier))
    if not matches:
        raise SessionNotFound(
            f"The vault has no session '{locator_text}'",
            "List its sessions: resume-hooks archive --list",
        )
    if len(matches) > 1:
        raise AmbiguousLocator(
            locator_text,
            [candidate_row(archived, where) for archived in matches],
            remedy=EARLIER_STATE_ADVICE if deleted_sessions else LONGER_ID_ADVICE,
        )
    return matches[0]


def list_earlier_states(archived: ArchivedSession) -> list[EarlierState]:
    """Return the earlier states in which the session's transcript differs from the current one.

    The oldest state comes first.
    """
    transcript_place = path_in_archive(archived.place)
    return [
        earlier
        for earlier in archived.earlier
        if any(path_in_archive(part.place) == transcript_place for part in earlier.parts)
    ]


def make_earlier_state_name(earlier_state: EarlierState) -> str:
    """Return the name of an earlier state: the time at which that state was archived.

    In a locator, the name follows the session's id and ``@``.
    """
    return earlier_state.archived_at.replace(":", "-")


def select_earlier_state(archived: ArchivedSession, earlier_state: EarlierState) -> ArchivedSession:
    """Return a session as it was in one of its earlier states.

    A file that is not stored in the earlier state is taken from the current state.
    """
    # In the earlier state, the session may have been in another project. Therefore the files get
    # the paths that they have in the current state.
    places = {path_in_archive(part.place): part.place for part in archived.parts}
    earlier_parts = {
        place: part._replace(place=place)
        for part in earlier_state.parts
        if (place := places.get(path_in_archive(part.place)))
    }
    parts = {part.place: part for part in archived.parts} | earlier_parts
    return archived._replace(
        parts=(parts.pop(archived.place), *parts.values()),
        archived_at=earlier_state.archived_at,
        earlier=(),
    )
