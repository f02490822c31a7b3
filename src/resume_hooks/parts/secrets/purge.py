"""Remove secrets from all files that contain them. Each file is changed completely or not at all.

The session's own transcript is cleaned last. Until then, it contains the secrets, so the same
command can find them again after an interruption. While the files are being cleaned, other
processes may create children and copies with secrets. A further search finds these files after the
transcript has been cleaned, when new copies of the transcript no longer contain secrets.

A file is rewritten as in a trim in place: the new content is written to a new file, checked, and
moved over the old file. Other hard links to the old file keep the old content. The checks need the
old content, which is therefore copied to a separate folder. The copy is always removed afterwards.
If the scrub is killed, the next scrub removes the copy.
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
from resume_hooks.parts.secrets.cleaner import SecretCleaner
from resume_hooks.parts.secrets.findings import (
    REMAINING_STATE,
    REMOVED_STATE,
    UNCHANGED_STATE,
    UNREMOVABLE_REASON,
    LocationWithSecrets,
    ScrubFindings,
    find_secrets_in_file,
    search_again_for_known_secrets,
)
from resume_hooks.parts.secrets.locations import (
    INDEXED,
    OWN_SESSION,
    TRANSCRIPT,
    TRANSCRIPT_FILE_KINDS,
    TRASHED,
    UNPACKED_COPY,
    VAULT_COPY,
    Location,
    find_archived_session,
    is_record_file,
)
from resume_hooks.paths import Where, make_private_folder
from resume_hooks.search.index.connect import delete_index, opened_index
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.archived.layout import archive_folder, unpacked_folder
from resume_hooks.sessions.held_links import remove_links
from resume_hooks.storage import backups, removal
from resume_hooks.storage.atomic import replace_session
from resume_hooks.storage.backups import open_and_copy
from resume_hooks.storage.state_file import PRIVATE_MODE, remove_stale_temporaries, temporary_path
from resume_hooks.transcripts import invariants
from resume_hooks.transcripts.invariants import Check, check_same_structure
from resume_hooks.transcripts.transcript import scan_transcript

MAX_SEARCH_ROUNDS = 5
"""The maximum number of searches for files that other processes created during the scrub."""

SCRUB_FOLDER_NAME = "scrub"
"""The name of a folder in the state folder. During a scrub, it contains copies of the files that
are being rewritten. At other times it does not exist."""

RETRY_HINT = "Run the command once more."
FILE_APPEARED_MESSAGE = "The file appeared during the rewrite. Run the command again."


def remove_secrets_from_files(findings: ScrubFindings, where: Where) -> list[LocationWithSecrets]:
    """Remove the secrets from all files that ``findings`` selects.

    Return each file or archived session with its new state, in the order of ``findings``. If a file
    cannot be changed, its result contains the reason, and the remaining files are still changed.
    The session must not be open (see ``findings.open_reason``).
    """
    rewritten_rows: dict[Location, LocationWithSecrets] = {}
    location_order: dict[Location, None] = {}
    for _ in range(MAX_SEARCH_ROUNDS):
        location_order |= dict.fromkeys(row.location for row in findings.locations_with_secrets)
        # The search index is rewritten after the files from which it is built. The session's
        # transcript comes last.
        rows = sorted(
            findings.locations_with_secrets,
            key=lambda row: (
                (row.location.kind, row.location.relation) == (TRANSCRIPT, OWN_SESSION),
                row.location.kind == INDEXED,
            ),
        )
        for row in rows:
            if _must_rewrite(row, rewritten_rows):
                rewritten_rows[row.location] = _rewrite_location(row, findings, where)
        busy_rows = _wait_for_archiving(findings, where)
        findings = search_again_for_known_secrets(findings, where)
        if findings.open_reason or not any(
            _must_rewrite(row, rewritten_rows) for row in findings.locations_to_change
        ):
            break
    last_states = {row.location: row for row in (*findings.locations_with_secrets, *busy_rows)}
    final_states = (
        _choose_final_state(rewritten_rows.get(location), last_states.get(location))
        for location in location_order | dict.fromkeys(last_states)
    )
    return [
        _rebuild_index(row, where) if row.location.kind == INDEXED else row
        for row in final_states
        if row
    ]


def _must_rewrite(
    row: LocationWithSecrets, rewritten_rows: Mapping[Location, LocationWithSecrets]
) -> bool:
    """Check whether a file's secrets must be removed now. A rewrite that failed is not tried again."""
    return row.state == UNCHANGED_STATE and (
        row.location not in rewritten_rows or rewritten_rows[row.location].state == REMOVED_STATE
    )


def _wait_for_archiving(findings: ScrubFindings, where: Where) -> list[LocationWithSecrets]:
    """Wait until no other process is archiving a session that has secrets.

    If another process takes too long, the result contains the session that it is archiving.
    """
    seen_ids: set[str] = set()
    busy_rows = []
    for location in (
        row.location for row in findings.locations_with_secrets if row.state == UNCHANGED_STATE
    ):
        if location.session_id and location.session_id not in seen_ids:
            seen_ids.add(location.session_id)
            try:
                with commit.lock_archived(location.session_id, where):
                    pass
            except SessionOpen as error:
                vault_location = location._replace(
                    kind=VAULT_COPY, path=archive_folder(location.session_id, where)
                )
                busy_rows.append(
                    LocationWithSecrets(
                        vault_location, {}, REMAINING_STATE, f"{error.message}. {error.remedy}"
                    )
                )
            except ResumeHooksError:
                continue  # The next search will report this error.
    return busy_rows


def _choose_final_state(
    rewritten_row: LocationWithSecrets | None, latest_row: LocationWithSecrets | None
) -> LocationWithSecrets | None:
    """Return the final state of a file, given the results of its rewrite and of the last search.

    Return None if the file no longer exists.
    """
    if rewritten_row is not None and rewritten_row.state == REMAINING_STATE:
        return rewritten_row
    if latest_row is None or latest_row.location.kind == INDEXED:
        return rewritten_row or latest_row
    if latest_row.state == UNCHANGED_STATE:
        return latest_row._replace(state=REMAINING_STATE, reason=FILE_APPEARED_MESSAGE)
    return latest_row


def remove_scrub_leftovers(where: Where) -> None:
    """Remove the files that a killed scrub left: copies, and archived files that no manifest mentions."""
    folder = os.path.join(where.state, SCRUB_FOLDER_NAME)
    if not os.path.islink(folder):
        remove_stale_temporaries(folder)
        with contextlib.suppress(OSError):
            removal.remove_empty_folder(folder, where.state)
    claims.remove_sidecars_of_killed_commands(where)
    commit.remove_leftover_files(where)
    for archived in (*manifest.list_archived(where), *list_deleted(where)):
        with (
            contextlib.suppress(ResumeHooksError),
            commit.lock_for_change(archived, where, "cleared"),
        ):
            pass


def _rewrite_location(
    row: LocationWithSecrets, findings: ScrubFindings, where: Where
) -> LocationWithSecrets:
    cleaner = findings.choose_cleaner(row.location)
    remove_stale_temporaries(os.path.dirname(row.location.path))
    if not os.path.lexists(row.location.path):
        return row._replace(state=REMOVED_STATE)
    try:
        _remove_secrets_from_location(row.location, cleaner, where)
        if os.path.lexists(row.location.path):
            remaining_contents = find_secrets_in_file(row.location, cleaner, where)
        else:
            remaining_contents = None
    except ResumeHooksError as error:
        return row._replace(
            state=REMAINING_STATE, reason=f"{error.message.rstrip('.')}. {error.remedy}".strip()
        )
    except OSError as error:
        return row._replace(
            state=REMAINING_STATE,
            reason=f"{error.filename or row.location.path}: {error.strerror or error}.",
        )
    if remaining_contents is not None and remaining_contents.secrets:
        return row._replace(
            state=REMAINING_STATE, reason="The file still contains secrets. Run the command again."
        )
    if remaining_contents is not None and remaining_contents.has_unremovable_secret:
        return row._replace(state=REMAINING_STATE, reason=UNREMOVABLE_REASON)
    return row._replace(state=REMOVED_STATE)


def _remove_secrets_from_location(location: Location, cleaner: SecretCleaner, where: Where) -> None:
    if archived := find_archived_session(location, where):
        rewrite.rewrite_archived(
            archived,
            lambda line: cleaner.clean_record(line).raw,
            where,
            change_text=lambda text: cleaner.clean_text(text).raw,
        )
    elif location.kind == UNPACKED_COPY and location.session_id:
        removal.remove_if_possible(
            os.path.join(unpacked_folder(where), location.session_id), where.state
        )
    elif location.kind == TRASHED:
        raise WriteFailed(
            f"{location.path} can't be assigned to a deleted session: its manifest can't be read",
            "Update resume-hooks, or move the folder away.",
        )
    elif location.kind == INDEXED:
        delete_index(where)
    elif location.kind == TRANSCRIPT:
        with backups.lock_rewrite(location.session_id, where):
            write_scrubbed_file(location, cleaner, where)
    else:
        write_scrubbed_file(location, cleaner, where)


def _rebuild_index(row: LocationWithSecrets, where: Where) -> LocationWithSecrets:
    """Rebuild the search index from the current files.

    Another process may have built the index for a search while the files still contained secrets.
    """
    if row.state == REMAINING_STATE:
        return row
    try:
        delete_index(where)
    except ResumeHooksError as error:
        return row._replace(state=REMAINING_STATE, reason=f"{error.message}. {error.remedy}")
    row = row._replace(state=REMOVED_STATE)
    try:
        with opened_index(where):
            return row
    except ResumeHooksError as error:
        return row._replace(reason=f"The next search will rebuild it: {error.message}")


def write_scrubbed_file(location: Location, cleaner: SecretCleaner, where: Where) -> None:
    """Replace a file with a copy without secrets. A file without secrets is not changed.

    Raise OSError, WriteFailed or CheckFailed. After such an error, the file is unchanged, unless
    the error message says that it was changed.
    """
    folder = make_private_folder(os.path.join(where.state, SCRUB_FOLDER_NAME), where)
    copy_path = temporary_path(folder)
    try:
        with open_and_copy(location.path, copy_path) as original:
            _replace_by_scrubbed_copy(location, original, copy_path, cleaner, where)
    finally:
        with contextlib.suppress(OSError):
            removal.remove_empty_folder(folder, where.state)


def _replace_by_scrubbed_copy(
    location: Location,
    original_descriptor: int,
    copy_path: str,
    cleaner: SecretCleaner,
    where: Where,
) -> None:
    by_line = is_record_file(location.path)
    if not cleaner.file_has_secret(copy_path, by_line=by_line):
        return

    def check_written_file(path: str) -> None:
        os.chmod(
            path,
            PRIVATE_MODE
            if location.kind in TRANSCRIPT_FILE_KINDS
            else stat.S_IMODE(os.fstat(original_descriptor).st_mode),
        )
        secret_check = Check(
            "no secret is found in it", not cleaner.file_has_secret(path, by_line=by_line)
        )
        if location.kind in TRANSCRIPT_FILE_KINDS:
            shape_checks = check_same_structure(scan_transcript(copy_path), scan_transcript(path))
        else:
            shape_checks = []
        invariants.require_all_checks([secret_check, *shape_checks], location.path)

    chunks = (
        cleaned_chunk.raw
        for cleaned_chunk in cleaner.read_cleaned_chunks(copy_path, by_line=by_line)
    )
    remove_links(location.path, where)  # A hard link to the old file would preserve the secrets.
    replace_session(location.path, original_descriptor, copy_path, chunks, check_written_file)
    if cleaner.file_has_secret(location.path, by_line=by_line):
        raise WriteFailed(
            f"{location.path} was written to during the rewrite, and contains secrets again",
            RETRY_HINT,
        )
