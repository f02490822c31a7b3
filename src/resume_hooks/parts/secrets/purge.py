"""Remove secrets from every place that contains them. Each place is changed completely or not at all.

The session's own transcript is cleaned last. Until then the secrets can be found in it, so an
interrupted purge can be finished by running it again. Other processes may create children and
copies during the purge. These are searched after the transcript is clean, because no new ones can
contain secrets from then on.

A file is rewritten like a trim in place: the new content is checked after it was written, and
replaces the file as a new file, so that hard links to the old file keep the old content. The old
content is copied to a separate folder for the comparison. This copy is always removed. If the scrub
is killed, the next scrub removes it.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping

from resume_hooks.archive.vault import commit, rewrite
from resume_hooks.archive.vault.trash import list_deleted
from resume_hooks.derive.child import claims
from resume_hooks.errors import ResumeHooksError, SessionOpen, WriteFailed
from resume_hooks.parts.secrets.cleaner import Cleaner
from resume_hooks.parts.secrets.findings import (
    LEFT,
    REMOVED,
    STUCK_REASON,
    UNCHANGED,
    PlaceWithSecrets,
    ScrubFindings,
    search_again,
    search_place,
)
from resume_hooks.parts.secrets.locations import (
    INDEXED,
    OWN_SESSION,
    RECORD_KINDS,
    TRANSCRIPT,
    TRASHED,
    UNPACKED_COPY,
    VAULT_COPY,
    Location,
    archived_session_at,
    has_record_lines,
)
from resume_hooks.paths import Where, make_private_folder
from resume_hooks.search.index.connect import forget_index, opened_index
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.archived.layout import archive_folder, unpacked_folder
from resume_hooks.sessions.held_links import remove_links
from resume_hooks.storage import backups, removal
from resume_hooks.storage.atomic import replace_session
from resume_hooks.storage.backups import open_with_copy
from resume_hooks.storage.state_file import MODE, remove_stale_temporaries, temporary_path
from resume_hooks.transcripts import invariants
from resume_hooks.transcripts.invariants import Check, check_same_shape
from resume_hooks.transcripts.transcript import scan_transcript

MAX_ROUNDS = 5
"""The maximum number of searches for copies that other processes created."""

SCRUB_FOLDER = "scrub"
"""The folder in the state folder for copies of files that are being rewritten.

It only exists during a scrub.
"""

RUN_AGAIN = "Run the command once more."
APPEARED = "It appeared during the rewrite. Run the command again."


def purge_secrets(findings: ScrubFindings, where: Where) -> list[PlaceWithSecrets]:
    """Remove the secrets from every place that must be changed.

    Return each place with its new state, in the same order.

    If a place cannot be changed, its result contains the reason, and the other places are still
    changed. The session must not be open, see ``found.open``.
    """
    rewritten: dict[Location, PlaceWithSecrets] = {}
    order: dict[Location, None] = {}
    for _ in range(MAX_ROUNDS):
        order |= dict.fromkeys(row.place for row in findings.rows)
        # the index is changed after its source files, and the session's own transcript last
        rows = sorted(
            findings.rows,
            key=lambda row: (
                (row.place.kind, row.place.relation) == (TRANSCRIPT, OWN_SESSION),
                row.place.kind == INDEXED,
            ),
        )
        for row in rows:
            if _must_rewrite(row, rewritten):
                rewritten[row.place] = _rewrite_place(row, findings, where)
        busy = _wait_for_archiving(findings, where)
        findings = search_again(findings, where)
        if findings.open or not any(
            _must_rewrite(row, rewritten) for row in findings.places_to_change
        ):
            break
    last_states = {row.place: row for row in (*findings.rows, *busy)}
    final_states = (
        _final_state(rewritten.get(place), last_states.get(place))
        for place in order | dict.fromkeys(last_states)
    )
    return [
        _rebuild_index(row, where) if row.place.kind == INDEXED else row
        for row in final_states
        if row
    ]


def _must_rewrite(row: PlaceWithSecrets, rewritten: Mapping[Location, PlaceWithSecrets]) -> bool:
    """Check whether a place must be rewritten. A place that failed is not tried again."""
    return row.state == UNCHANGED and (
        row.place not in rewritten or rewritten[row.place].state == REMOVED
    )


def _wait_for_archiving(findings: ScrubFindings, where: Where) -> list[PlaceWithSecrets]:
    """Wait for other processes that are archiving one of the sessions with its secrets.

    Return the sessions for which archiving takes too long.
    """
    seen_ids: set[str] = set()
    busy = []
    for place in (row.place for row in findings.rows if row.state == UNCHANGED):
        if place.session_id and place.session_id not in seen_ids:
            seen_ids.add(place.session_id)
            try:
                with commit.lock_archived(place.session_id, where):
                    pass
            except SessionOpen as error:
                vault_place = place._replace(
                    kind=VAULT_COPY, path=archive_folder(place.session_id, where)
                )
                busy.append(
                    PlaceWithSecrets(vault_place, {}, LEFT, f"{error.message}. {error.remedy}")
                )
            except ResumeHooksError:
                continue  # the next search reports the reason
    return busy


def _final_state(
    rewritten: PlaceWithSecrets | None, latest: PlaceWithSecrets | None
) -> PlaceWithSecrets | None:
    """Return the final state of a place, given the result of its rewrite and the last search.

    Return None if the place no longer exists.
    """
    if rewritten is not None and rewritten.state == LEFT:
        return rewritten
    if latest is None or latest.place.kind == INDEXED:
        return rewritten or latest
    if latest.state == UNCHANGED:
        return latest._replace(state=LEFT, why=APPEARED)
    return latest


def sweep_scrub_leftovers(where: Where) -> None:
    """Remove the remains of a killed scrub: copies, and files that the vault's notes no longer mention."""
    folder = os.path.join(where.state, SCRUB_FOLDER)
    if not os.path.islink(folder):
        remove_stale_temporaries(folder)
        with contextlib.suppress(OSError):
            removal.remove_empty(folder, where.state)
    claims.sweep_claims(where)
    commit.sweep_leftovers(where)
    for archived in (*manifest.all_archived(where), *list_deleted(where)):
        with (
            contextlib.suppress(ResumeHooksError),
            commit.lock_for_change(archived, where, "cleared"),
        ):
            pass


def _rewrite_place(
    row: PlaceWithSecrets, findings: ScrubFindings, where: Where
) -> PlaceWithSecrets:
    cleaner = findings.cleaner_of(row.place)
    remove_stale_temporaries(os.path.dirname(row.place.path))
    if not os.path.lexists(row.place.path):
        return row._replace(state=REMOVED)
    try:
        _remove_from_place(row.place, cleaner, where)
        if os.path.lexists(row.place.path):
            remaining = search_place(row.place, cleaner, where)
        else:
            remaining = None
    except ResumeHooksError as error:
        return row._replace(state=LEFT, why=f"{error.message.rstrip('.')}. {error.remedy}".strip())
    except OSError as error:
        return row._replace(
            state=LEFT, why=f"{error.filename or row.place.path}: {error.strerror or error}."
        )
    if remaining is not None and remaining.found:
        return row._replace(state=LEFT, why="It still contains secrets. Run the command again.")
    if remaining is not None and remaining.stuck:
        return row._replace(state=LEFT, why=STUCK_REASON)
    return row._replace(state=REMOVED)


def _remove_from_place(place: Location, cleaner: Cleaner, where: Where) -> None:
    if archived := archived_session_at(place, where):
        rewrite.rewrite_archived(
            archived,
            lambda line: cleaner.clean_record(line).raw,
            where,
            text=lambda text: cleaner.clean_text(text).raw,
        )
    elif place.kind == UNPACKED_COPY and place.session_id:
        removal.remove_if_possible(
            os.path.join(unpacked_folder(where), place.session_id), where.state
        )
    elif place.kind == TRASHED:
        raise WriteFailed(
            f"{place.path} can't be assigned to a deleted session: its manifest can't be read",
            "Update resume-hooks, or move it away.",
        )
    elif place.kind == INDEXED:
        forget_index(where)
    elif place.kind == TRANSCRIPT:
        with backups.lock_rewrite(place.session_id, where):
            replace_scrubbed(place, cleaner, where)
    else:
        replace_scrubbed(place, cleaner, where)


def _rebuild_index(row: PlaceWithSecrets, where: Where) -> PlaceWithSecrets:
    """Rebuild the index from the current files.

    A search by another process may have built it from the files with secrets.
    """
    if row.state == LEFT:
        return row
    try:
        forget_index(where)
    except ResumeHooksError as error:
        return row._replace(state=LEFT, why=f"{error.message}. {error.remedy}")
    row = row._replace(state=REMOVED)
    try:
        with opened_index(where):
            return row
    except ResumeHooksError as error:
        return row._replace(why=f"The next search will rebuild it: {error.message}")


def replace_scrubbed(place: Location, cleaner: Cleaner, where: Where) -> None:
    """Replace a file by a copy without its secrets. A file without secrets is not changed.

    After OSError, WriteFailed or CheckFailed, the file is unchanged unless the error message says
    otherwise.
    """
    folder = make_private_folder(os.path.join(where.state, SCRUB_FOLDER), where)
    copy = temporary_path(folder)
    try:
        with open_with_copy(place.path, copy) as original:
            _write_scrubbed(place, original, copy, cleaner, where)
    finally:
        with contextlib.suppress(OSError):
            removal.remove_empty(folder, where.state)


def _write_scrubbed(
    place: Location, original: int, copy: str, cleaner: Cleaner, where: Where
) -> None:
    lines = has_record_lines(place.path)
    if not cleaner.finds_in(copy, lines=lines):
        return

    def check(path: str) -> None:
        os.chmod(
            path, MODE if place.kind in RECORD_KINDS else stat.S_IMODE(os.fstat(original).st_mode)
        )
        secret_check = Check("no secret is found in it", not cleaner.finds_in(path, lines=lines))
        if place.kind in RECORD_KINDS:
            form_checks = check_same_shape(scan_transcript(copy), scan_transcript(path))
        else:
            form_checks = []
        invariants.require_all_checks([secret_check, *form_checks], place.path)

    chunks = (cleaned.raw for cleaned in cleaner.clean_file(copy, lines=lines))
    remove_links(place.path, where)  # otherwise our hard link would keep the secrets
    replace_session(place.path, original, copy, chunks, check)
    if cleaner.finds_in(place.path, lines=lines):
        raise WriteFailed(
            f"{place.path} was written to during the rewrite, and contains secrets again", RUN_AGAIN
        )
