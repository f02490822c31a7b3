"""Remove secrets from all files that contain them. Each file is changed completely or not at all.

The session's own transcript is cleaned last. As long as it contains the secrets, the same command
can find them again after an interruption. Meanwhile, other processes may create children and copies
with secrets. After the transcript has been cleaned, new copies of it contain no secrets, and
another search finds the files that were created before.

A file is rewritten in the same way as by ``trim --in-place``: the new content is written to a new
file, checked, and moved over the old file. Other hard links to the old file keep the old content.
The checks need the old content, so it is first copied to a separate folder. This copy is always
removed afterwards. If the scrub is killed, the next scrub removes the copy.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping

from resume_hooks.archive.vault import commit, rewrite
from resume_hooks.archive.vault.trash import list_trashed_sessions
from resume_hooks.derive.child import claims
from resume_hooks.errors import ResumeHooksError, SessionInUse, WriteFailed
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
from resume_hooks.search.index.connect import delete_index, open_index
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

MAX_REPEATED_SEARCHES = 5
"""The maximum number of searches for files that other processes created during the scrub."""

SCRUB_FOLDER_NAME = "scrub"
"""The name of a folder in the state folder. During a scrub, it contains copies of the files that
are being rewritten. At other times it does not exist."""

RETRY_HINT = "Run the command once more."
FILE_APPEARED_DURING_REWRITE_MESSAGE = (
    "The file appeared during the rewrite. Run the command again."
)


def remove_secrets_from_files(findings: ScrubFindings, where: Where) -> list[LocationWithSecrets]:
    """Remove the secrets from all files that ``findings`` selects.

    Return each file or archived session with its new state, in the order of ``findings``. If a file
    cannot be changed, its result contains the reason, and the remaining files are still changed.
    The session must not be open (see ``findings.open_reason``).
    """
    rewritten_files: dict[Location, LocationWithSecrets] = {}
    location_order: dict[Location, None] = {}
    for _ in range(MAX_REPEATED_SEARCHES):
        location_order |= dict.fromkeys(
            affected_file.location for affected_file in findings.locations_with_secrets
        )
        # The search index is rewritten after the files from which it is built. The session's
        # transcript comes last.
        affected_files = sorted(
            findings.locations_with_secrets,
            key=lambda affected_file: (
                (affected_file.location.kind, affected_file.location.relation)
                == (TRANSCRIPT, OWN_SESSION),
                affected_file.location.kind == INDEXED,
            ),
        )
        for affected_file in affected_files:
            if _must_rewrite_file(affected_file, rewritten_files):
                rewritten_files[affected_file.location] = _rewrite_file_at_location(
                    affected_file, findings, where
                )
        busy_files = _wait_and_list_busy_archives(findings, where)
        findings = search_again_for_known_secrets(findings, where)
        if findings.open_reason or not any(
            _must_rewrite_file(affected_file, rewritten_files)
            for affected_file in findings.locations_to_change
        ):
            break
    last_states = {
        affected_file.location: affected_file
        for affected_file in (*findings.locations_with_secrets, *busy_files)
    }
    final_states = (
        _choose_result_to_report(rewritten_files.get(location), last_states.get(location))
        for location in location_order | dict.fromkeys(last_states)
    )
    return [
        _rebuild_index_and_update_state(affected_file, where)
        if affected_file.location.kind == INDEXED
        else affected_file
        for affected_file in final_states
        if affected_file
    ]


def _must_rewrite_file(
    affected_file: LocationWithSecrets, rewritten_files: Mapping[Location, LocationWithSecrets]
) -> bool:
    """Check whether the secrets of a file still have to be removed.

    If an earlier attempt to rewrite the file failed, no other attempt is made.
    """
    return affected_file.scrub_state == UNCHANGED_STATE and (
        affected_file.location not in rewritten_files
        or rewritten_files[affected_file.location].scrub_state == REMOVED_STATE
    )


def _wait_and_list_busy_archives(
    findings: ScrubFindings, where: Where
) -> list[LocationWithSecrets]:
    """Wait until no other process is archiving a session that has secrets.

    If another process takes too long, the result contains the session that it is archiving.
    """
    seen_ids: set[str] = set()
    busy_files = []
    for location in (
        affected_file.location
        for affected_file in findings.locations_with_secrets
        if affected_file.scrub_state == UNCHANGED_STATE
    ):
        if location.session_id and location.session_id not in seen_ids:
            seen_ids.add(location.session_id)
            try:
                with commit.lock_archived(location.session_id, where):
                    pass
            except SessionInUse as error:
                vault_location = location._replace(
                    kind=VAULT_COPY, path=archive_folder(location.session_id, where)
                )
                busy_files.append(
                    LocationWithSecrets(
                        vault_location, {}, REMAINING_STATE, f"{error.message}. {error.remedy}"
                    )
                )
            except ResumeHooksError:
                continue  # The next search will report this error.
    return busy_files


def _choose_result_to_report(
    rewritten_file: LocationWithSecrets | None, latest_file: LocationWithSecrets | None
) -> LocationWithSecrets | None:
    """Return the final state of a file, given the results of its rewrite and of the last search.

    Return None if the file no longer exists.
    """
    if rewritten_file is not None and rewritten_file.scrub_state == REMAINING_STATE:
        return rewritten_file
    if latest_file is None or latest_file.location.kind == INDEXED:
        return rewritten_file or latest_file
    if latest_file.scrub_state == UNCHANGED_STATE:
        return latest_file._replace(
            scrub_state=REMAINING_STATE, state_reason=FILE_APPEARED_DURING_REWRITE_MESSAGE
        )
    return latest_file


def remove_scrub_leftovers(where: Where) -> None:
    """Remove what an interrupted scrub left: temporary copies, and archived files that are in no manifest."""
    folder = os.path.join(where.state, SCRUB_FOLDER_NAME)
    if not os.path.islink(folder):
        remove_stale_temporaries(folder)
        with contextlib.suppress(OSError):
            removal.remove_empty_folder(folder, where.state)
    claims.remove_sidecars_of_killed_commands(where)
    commit.remove_leftover_files(where)
    for archived in (*manifest.list_archived(where), *list_trashed_sessions(where)):
        with (
            contextlib.suppress(ResumeHooksError),
            commit.lock_for_change(archived, where, "cleared"),
        ):
            pass


def _rewrite_file_at_location(
    affected_file: LocationWithSecrets, findings: ScrubFindings, where: Where
) -> LocationWithSecrets:
    cleaner = findings.choose_cleaner(affected_file.location)
    remove_stale_temporaries(os.path.dirname(affected_file.location.path))
    if not os.path.lexists(affected_file.location.path):
        return affected_file._replace(scrub_state=REMOVED_STATE)
    try:
        _remove_secrets_from_location(affected_file.location, cleaner, where)
        if os.path.lexists(affected_file.location.path):
            remaining_contents = find_secrets_in_file(affected_file.location, cleaner, where)
        else:
            remaining_contents = None
    except ResumeHooksError as error:
        return affected_file._replace(
            scrub_state=REMAINING_STATE,
            state_reason=f"{error.message.rstrip('.')}. {error.remedy}".strip(),
        )
    except OSError as error:
        return affected_file._replace(
            scrub_state=REMAINING_STATE,
            state_reason=f"{error.filename or affected_file.location.path}: {error.strerror or error}.",
        )
    if remaining_contents is not None and remaining_contents.secrets:
        return affected_file._replace(
            scrub_state=REMAINING_STATE,
            state_reason="The file still contains secrets. Run the command again.",
        )
    if remaining_contents is not None and remaining_contents.has_unremovable_secret:
        return affected_file._replace(scrub_state=REMAINING_STATE, state_reason=UNREMOVABLE_REASON)
    return affected_file._replace(scrub_state=REMOVED_STATE)


def _remove_secrets_from_location(location: Location, cleaner: SecretCleaner, where: Where) -> None:
    if archived := find_archived_session(location, where):
        rewrite.rewrite_archived(
            archived,
            lambda line: cleaner.clean_record(line).cleaned_bytes,
            where,
            change_text=lambda text: cleaner.clean_text(text).cleaned_bytes,
        )
    elif location.kind == UNPACKED_COPY and location.session_id:
        removal.remove_if_possible(
            os.path.join(unpacked_folder(where), location.session_id), where.state
        )
    elif location.kind == TRASHED:
        raise WriteFailed(
            f"It is unknown which deleted session {location.path} belongs to: its manifest can't be read",
            "Update resume-hooks, or move the folder somewhere else.",
        )
    elif location.kind == INDEXED:
        delete_index(where)
    elif location.kind == TRANSCRIPT:
        with backups.lock_rewrite(location.session_id, where):
            write_scrubbed_file(location, cleaner, where)
    else:
        write_scrubbed_file(location, cleaner, where)


def _rebuild_index_and_update_state(
    affected_file: LocationWithSecrets, where: Where
) -> LocationWithSecrets:
    """Rebuild the search index from the current files.

    Another process may have built the index for a search while the files still contained secrets.
    """
    if affected_file.scrub_state == REMAINING_STATE:
        return affected_file
    try:
        delete_index(where)
    except ResumeHooksError as error:
        return affected_file._replace(
            scrub_state=REMAINING_STATE, state_reason=f"{error.message}. {error.remedy}"
        )
    affected_file = affected_file._replace(scrub_state=REMOVED_STATE)
    try:
        with open_index(where):
            return affected_file
    except ResumeHooksError as error:
        return affected_file._replace(
            state_reason=f"The index could not be rebuilt ({error.message}). The next search will rebuild it."
        )


def write_scrubbed_file(location: Location, cleaner: SecretCleaner, where: Where) -> None:
    """Replace a file with a copy without secrets. A file without secrets is not changed.

    Raise OSError, WriteFailed or CheckFailed. The file is then unchanged, unless the error message
    says otherwise.
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
    is_read_by_line = is_record_file(location.path)
    if not cleaner.file_has_secret(copy_path, is_read_by_line=is_read_by_line):
        return

    def check_written_file(path: str) -> None:
        os.chmod(
            path,
            PRIVATE_MODE
            if location.kind in TRANSCRIPT_FILE_KINDS
            else stat.S_IMODE(os.fstat(original_descriptor).st_mode),
        )
        secret_check = Check(
            "no secret was found in it",
            not cleaner.file_has_secret(path, is_read_by_line=is_read_by_line),
        )
        if location.kind in TRANSCRIPT_FILE_KINDS:
            shape_checks = check_same_structure(scan_transcript(copy_path), scan_transcript(path))
        else:
            shape_checks = []
        invariants.require_all_checks([secret_check, *shape_checks], location.path)

    chunks = (
        cleaned_chunk.cleaned_bytes
        for cleaned_chunk in cleaner.read_cleaned_chunks(copy_path, is_read_by_line=is_read_by_line)
    )
    remove_links(location.path, where)  # A hard link to the old file would preserve the secrets.
    replace_session(location.path, original_descriptor, copy_path, chunks, check_written_file)
    if cleaner.file_has_secret(location.path, is_read_by_line=is_read_by_line):
        raise WriteFailed(
            f"{location.path} was written to during the rewrite, and contains secrets again",
            RETRY_HINT,
        )
