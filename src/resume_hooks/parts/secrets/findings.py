"""Find all files that contain secrets, and decide which of them a scrub rewrites.

The session, its children and its ancestors are searched first. All other files are then searched
for the text of the secrets that were found, because the scanner may not recognise the secrets in
these files. This module changes no files.
"""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

from resume_hooks.errors import ResumeHooksError, WriteFailed
from resume_hooks.parts.secrets.cleaner import RemovedSecret, SecretCleaner
from resume_hooks.parts.secrets.literals import (
    KIND_OF_SUPPLIED_SECRETS,
    KnownSecrets,
    is_distinctive_secret,
    is_searchable_token,
    split_encoded_lines,
)
from resume_hooks.parts.secrets.locations import (
    CHILD,
    CLIENT,
    DOCUMENT,
    FILE_BACKUP,
    INDEXED,
    LINE_FORMAT,
    OTHER_SESSION,
    OWN_SESSION,
    PARENT,
    TEXT_FORMAT,
    TRANSCRIPT,
    TRASHED,
    UNPACKED_COPY,
    VAULT_COPY,
    FileChunk,
    Location,
    find_archived_session,
    find_client_locations,
    find_document_locations,
    find_locations_in_state_folder,
    find_related_sessions,
    find_session_locations,
    is_record_file,
    list_regular_files,
    read_archived_chunks,
    read_file_chunks,
)
from resume_hooks.paths import Where
from resume_hooks.reading.session_secrets import PrintedOutputs
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import agent_of_session, original_path
from resume_hooks.sessions.archived import manifest
from resume_hooks.sessions.archived.sessions import is_archived_copy
from resume_hooks.sessions.open_sessions import RunningClients
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail

UNCHANGED_STATE, REMOVED_STATE, REMAINING_STATE, EXCLUDED_STATE = (
    "held",
    "removed",
    "left",
    "outside",
)
"""The possible states of a file with secrets.

``UNCHANGED_STATE``: the file has not been changed yet. ``REMOVED_STATE``: all its secrets were
removed. ``REMAINING_STATE``: some secrets remain. ``EXCLUDED_STATE``: the file was not selected.
"""

SETTINGS_FILE_NAME_PREFIXES = (
    ".claude.json",
    ".credentials.json",
    "settings.json",
    "settings.local.json",
    ".mcp.json",
)
"""Prefixes of the names of the client's settings files. The client may still need the secrets in
these files."""


UNREMOVABLE_REASON = (
    "The secret is in a place that can't be changed: an image, a record's id, or the folder's name."
)


class SecretsInLocation(NamedTuple):
    """The secrets in a file.

    ``has_unremovable_secret`` is true if the file contains a secret that cannot be removed, for
    example in an image or an id. ``secrets_in_command_output`` are secrets in the output of
    commands. The scanner can recognise them only if it knows the command.
    """

    secrets: tuple[RemovedSecret, ...]
    has_unremovable_secret: bool
    secrets_in_command_output: tuple[RemovedSecret, ...]


def find_secrets_in_file(
    location: Location, cleaner: SecretCleaner, where: Where
) -> SecretsInLocation:
    """Return the secrets in a file or an archived session.

    Raise OSError or WriteFailed if it cannot be read.
    """
    if os.path.islink(location.path):
        raise WriteFailed(
            "The file is a symbolic link, which is not followed", "Check the link's target by hand."
        )
    secrets: list[RemovedSecret] = []
    secrets_in_command_output: list[RemovedSecret] = []
    has_unremovable_secret = False
    outputs = PrintedOutputs()
    for chunk in _read_location_chunks(location, where):
        cleaned_chunk = cleaner.clean_chunk(chunk)
        secrets += cleaned_chunk.removed_secrets
        has_unremovable_secret = has_unremovable_secret or cleaned_chunk.has_unremovable_secret
        if chunk.format == LINE_FORMAT:
            for text in outputs.list_outputs_with_commands(chunk.raw_bytes):
                secrets_in_command_output += cleaner.clean_text(
                    text.encode("utf-8", "surrogatepass")
                ).removed_secrets
    return SecretsInLocation(
        tuple(secrets), has_unremovable_secret, tuple(secrets_in_command_output)
    )


def _read_location_chunks(location: Location, where: Where) -> Iterator[FileChunk]:
    """Yield the chunks of a file. For an archived session, yield the chunks of all its files and titles."""
    archived = find_archived_session(location, where)
    if archived is None and location.kind == VAULT_COPY:
        raise WriteFailed(
            manifest.unreadable_reason(location.session_id, where)
            or "The folder contains no note, or it can't be listed",
            "It is unknown what the folder contains. Update resume-hooks, or move the folder somewhere else.",
        )
    if archived is not None:
        yield from read_archived_chunks(archived)
        for text in (archived.title, archived.about.tag, *archived.about.titles):
            yield FileChunk(text.encode("utf-8", "replace"), TEXT_FORMAT)
    elif location.kind != INDEXED:
        # The index is always rebuilt, so its content need not be searched.
        yield from read_file_chunks(location.path, is_read_by_line=is_record_file(location.path))


def _read_change_stamp(location: Location) -> object:
    """Return a value that differs from the earlier value if the file or archived session has changed."""
    file_states: list[object] = []
    for path in (
        [location.path, *list_regular_files(location.path)]
        if location.kind in {VAULT_COPY, TRASHED}
        else [location.path]
    ):
        file_states.append(path)
        with contextlib.suppress(OSError):
            status = os.lstat(path)
            file_states.append(
                (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
            )
    return file_states


class ScrubScope(NamedTuple):
    """The kinds of additional files that a scrub in place changes.

    The files of the session, its copies and the session's children are always changed.
    """

    includes_ancestors: bool = False
    includes_other_sessions: bool = False
    includes_file_backups: bool = False
    includes_documents: bool = False
    includes_client_files: bool = False


class LocationWithSecrets(NamedTuple):
    """A file or archived session with secrets.

    ``counts_by_kind`` maps each kind of secret to the number of secrets. ``scrub_state`` is one of
    the four states, for example ``REMOVED_STATE``. ``state_reason`` is a sentence that explains the
    state, or ``""``.
    """

    location: Location
    counts_by_kind: dict[str, int]
    scrub_state: str
    state_reason: str


@dataclass(frozen=True, slots=True)
class ScrubFindings:
    """The files that contain the secrets of a session, and the cleaners that remove these secrets.

    ``relations_by_session_id`` maps the id of each related session to its relation, and
    ``kinds_by_secret`` maps each secret to its kind. ``scanning_cleaner`` removes these secrets and
    any others that the scanner recognises. ``known_secret_cleaner`` removes only the secrets in
    ``kinds_by_secret``. ``change_stamp_by_clean_location`` maps each file in which no secret was
    found to its change stamp. Such a file is read again only if its change stamp is different.
    ``session_title`` is the session's title without secrets. ``short_secrets`` are secrets that are
    too short to search for as text.
    """

    session: SessionFile
    selected_kinds: Collection[str]
    scope: ScrubScope
    relations_by_session_id: Mapping[str, str]
    kinds_by_secret: Mapping[str, str]
    change_stamp_by_clean_location: dict[Location, object]
    locations_with_secrets: tuple[LocationWithSecrets, ...]
    scanning_cleaner: SecretCleaner
    known_secret_cleaner: SecretCleaner
    open_reason: str
    session_title: str
    short_secrets: frozenset[str] = frozenset()

    @property
    def locations_to_change(self) -> list[LocationWithSecrets]:
        """The files and archived sessions that the scrub must change, except for the search index."""
        return [
            row
            for row in self.locations_with_secrets
            if row.scrub_state == UNCHANGED_STATE and row.location.kind != INDEXED
        ]

    def choose_cleaner(self, location: Location) -> SecretCleaner:
        """Return the cleaner for a file.

        In the files of the session, its children and its ancestors, the cleaner also scans for
        unknown secrets.
        """
        if location.relation in {OWN_SESSION, CHILD, PARENT} and location.kind != FILE_BACKUP:
            return self.scanning_cleaner
        return self.known_secret_cleaner


def search_all_files(
    session: SessionFile,
    where: Where,
    *,
    kinds: Collection[str] = (),
    supplied_secrets: Mapping[str, str] | None = None,
    scope: ScrubScope = ScrubScope(),  # noqa: B008 - a value that nobody can change
) -> ScrubFindings:
    """Search all files for the secrets of a session and for ``supplied_secrets``.

    ``supplied_secrets`` maps each secret that the user supplied to its kind. If ``kinds`` is empty,
    secrets of all kinds are searched for.
    """
    values = supplied_secrets or {}
    cleaner = SecretCleaner(kinds, KnownSecrets(values))
    empty_findings = ScrubFindings(
        session, kinds, scope, {}, values, {}, (), cleaner, cleaner, "", ""
    )
    return search_again_for_known_secrets(empty_findings, where)


def search_again_for_known_secrets(previous_findings: ScrubFindings, where: Where) -> ScrubFindings:
    """Search all files again for the secrets in ``previous_findings``, and for new secrets.

    A file that contained no secrets is read only if it has changed.
    """
    session, scope = previous_findings.session, previous_findings.scope
    relations = {
        **find_related_sessions(session, where),
        **previous_findings.relations_by_session_id,
    }
    locations = find_session_locations(relations, where)
    if not is_archived_copy(session.path, where) and all(
        location.path != session.path for location in locations
    ):
        # The transcript is outside the project folders.
        locations.append(Location(TRANSCRIPT, session.path, session.session_id, OWN_SESSION))
    values, short_secrets = (
        dict(previous_findings.kinds_by_secret),
        set(previous_findings.short_secrets),
    )
    for location in locations:
        if (
            location.relation != OTHER_SESSION
            and is_relation_in_scope(location.relation, scope)
            and location.kind not in {FILE_BACKUP, UNPACKED_COPY}
        ):
            secrets: tuple[RemovedSecret, ...] = ()
            if previous_findings.change_stamp_by_clean_location.get(location) != _read_change_stamp(
                location
            ):
                with contextlib.suppress(OSError, ResumeHooksError):
                    contents = find_secrets_in_file(
                        location, previous_findings.scanning_cleaner, where
                    )
                    secrets = contents.secrets + contents.secrets_in_command_output
            values |= _map_searchable_secrets_to_kinds(secrets)
            short_secrets |= {
                secret.values[-1]
                for secret in secrets
                if secret.values and not _map_searchable_secrets_to_kinds([secret])
            }
    texts_by_value = {
        value: kind
        for value, kind in values.items()
        if kind == KIND_OF_SUPPLIED_SECRETS or not is_searchable_token(value)
    }
    known_secrets = KnownSecrets(
        texts_by_value,
        {value: kind for value, kind in values.items() if value not in texts_by_value},
    )
    findings = replace(
        previous_findings,
        relations_by_session_id=relations,
        kinds_by_secret=values,
        change_stamp_by_clean_location=previous_findings.change_stamp_by_clean_location
        if values == previous_findings.kinds_by_secret
        else {},
        short_secrets=frozenset(short_secrets),
        scanning_cleaner=SecretCleaner(previous_findings.selected_kinds, known_secrets),
        known_secret_cleaner=SecretCleaner(known_secrets=known_secrets, scanning=False),
    )
    client_processes = RunningClients(where)
    all_locations = [
        *find_document_locations(session, where),
        *find_client_locations(where),
        *find_locations_in_state_folder(where),
        *locations,
    ]
    rows = [
        row
        for location in all_locations
        if (row := _find_secrets_and_state(location, findings, where, client_processes))
    ]
    # For other agents, copies of the sessions were searched, but the user needs the paths of the
    # originals.
    rows = [
        row._replace(location=row.location._replace(path=original_path(row.location.path, where)))
        for row in rows
    ]
    if not os.path.lexists(session.path):
        return replace(findings, locations_with_secrets=tuple(rows), open_reason="")
    if session.agent != CLAUDE_NAME:
        open_reason = agent_of_session(session, where).describe_open_state(session)
    elif is_archived_copy(session.path, where):
        open_reason = ""
    else:
        open_reason = client_processes.describe_open_state(session)
    return replace(
        findings,
        locations_with_secrets=tuple(rows),
        open_reason=open_reason,
        session_title=findings.known_secret_cleaner.clean_generated_text(
            HeadTail(session.path).title
        ),
    )


def is_relation_in_scope(relation: str, scope: ScrubScope) -> bool:
    """Check whether a scrub includes sessions with this relation to the scrubbed session."""
    return {PARENT: scope.includes_ancestors, OTHER_SESSION: scope.includes_other_sessions}.get(
        relation, True
    )


def _map_searchable_secrets_to_kinds(secrets: Iterable[RemovedSecret]) -> dict[str, str]:
    """Return the secrets that can be searched for as text, and map each of them to its kind.

    Short secrets are omitted, because they could be ordinary words.
    """
    kinds_by_text: dict[str, str] = {}
    for secret in secrets:
        for value in secret.values:
            if is_distinctive_secret(value) or is_searchable_token(value):
                searchable_values = [value]
            else:
                searchable_values = []
            kinds_by_text |= dict.fromkeys(
                [*searchable_values, *split_encoded_lines(value)], secret.kind
            )
    return kinds_by_text


def _find_secrets_and_state(
    location: Location, findings: ScrubFindings, where: Where, client_processes: RunningClients
) -> LocationWithSecrets | None:
    """Return a file or archived session with its state, or None if it contains no secrets.

    A file that exists but cannot be read is also returned, with the reason why it cannot be read.
    """
    state, scope = _read_change_stamp(location), findings.scope
    if findings.change_stamp_by_clean_location.get(location) == state:
        return None
    try:
        contents = find_secrets_in_file(location, findings.choose_cleaner(location), where)
    except (OSError, ResumeHooksError) as error:
        if not os.path.lexists(location.path):
            return None
        if isinstance(error, OSError):
            why = error.strerror or str(error)
        else:
            why = f"{error.message}. {error.remedy}"
        excluded_reason = _explain_exclusion(
            location,
            scope._replace(includes_other_sessions=True),
            # The file could not be read, so its relation to the session is uncertain. Therefore, files
            # of other sessions are not excluded.
        )
        reason_text = f"It could not be read: {why.rstrip('.')}. {excluded_reason}".strip()
        return LocationWithSecrets(
            location, {}, EXCLUDED_STATE if excluded_reason else REMAINING_STATE, reason_text
        )
    if not contents.secrets and not contents.has_unremovable_secret and location.kind != INDEXED:
        findings.change_stamp_by_clean_location[location] = state
        return None
    kinds = dict(Counter(secret.kind for secret in contents.secrets))
    if why := _explain_exclusion(location, scope):
        return LocationWithSecrets(location, kinds, EXCLUDED_STATE, why)
    if location.kind == TRANSCRIPT and location.relation != OWN_SESSION:
        with contextlib.suppress(OSError):
            status = os.stat(location.path)
            file = SessionFile(location.session_id, location.path, status.st_mtime, status.st_size)
            if reason := client_processes.describe_open_state(file):
                why = (
                    f"The session may be open: {reason}. Once it is closed: resume-hooks scrub "
                    f"{location.session_id} --in-place"
                )
                return LocationWithSecrets(location, kinds, REMAINING_STATE, why)
    is_unremovable = contents.has_unremovable_secret and not contents.secrets
    return LocationWithSecrets(
        location,
        kinds,
        REMAINING_STATE if is_unremovable else UNCHANGED_STATE,
        UNREMOVABLE_REASON if is_unremovable else "",
    )


def _explain_exclusion(location: Location, scope: ScrubScope) -> str:
    """Return the reason why a scrub excludes a file, and the option that would include the file.

    Return ``""`` if the scrub includes the file.
    """
    if location.kind == CLIENT and os.path.basename(location.path).startswith(
        SETTINGS_FILE_NAME_PREFIXES
    ):
        return "It is a settings file, where a secret may be in use: change it by hand."
    reasons_by_kind = {
        FILE_BACKUP: (
            scope.includes_file_backups,
            "It is a backup from which rewind-files restores. To include it, add --backups.",
        ),
        DOCUMENT: (
            scope.includes_documents,
            "It is a file of the project. To include it, add --documents.",
        ),
        CLIENT: (
            scope.includes_client_files,
            "It belongs to the client. To include it, add --client.",
        ),
    }.get(location.kind)
    if reasons_by_kind is not None and not reasons_by_kind[0]:
        return reasons_by_kind[1]
    if not is_relation_in_scope(location.relation, scope):
        return {
            PARENT: "It is an ancestor of the session. To include it, add --lineage.",
            OTHER_SESSION: "It belongs to another session. To include it, add --everywhere.",
        }[location.relation]
    return ""
