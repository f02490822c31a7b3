"""Remove sessions from the vault according to the setting ``vault`` and an employer's retention.

The oldest sessions are removed first. A session is kept if one of its descendants is in the
client's folder or in our trash. A session from another config home is also kept, because its
descendants are unknown here. An employer's retention overrides these exceptions.

A session that is too old is removed only if it was also too old about a day earlier. If the vault
is too large, the user is informed, and removals begin a day later. From then on, at most a tenth of
the vault is removed per day, or a single session if it is larger than that. The size limit is the
stored setting. An environment variable can only raise it.

The vault records when sessions became due and which sessions were removed. This record contains
only ids, sizes and reasons, so that no title outlives its session.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import orjson

from resume_hooks import clock, settings
from resume_hooks.archive.vault import trash
from resume_hooks.archive.vault.commit import remove_archived
from resume_hooks.clock import DAY
from resume_hooks.errors import ResumeHooksError, SessionNotFound
from resume_hooks.paths import Where, is_private_folder, is_session_id, read_json_object
from resume_hooks.sessions.archived.layout import is_other_config_home, vault_folder
from resume_hooks.sessions.archived.manifest import ArchivedSession, list_archived
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.link_log import read_links
from resume_hooks.sessions.session_files import all_sessions
from resume_hooks.storage import removal, state_file
from resume_hooks.storage.typed_rows import parse_row
from resume_hooks.system.claude_settings import read_managed_retention
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.text import format_count

POLICY_STATE_FILE = "policy.json"
"""The name of a file in the vault. A run of the policy stores data in it for the next run."""

POLICY_STATE_VERSION = 1

MIN_SECONDS_BETWEEN_POLICY_RUNS = 20 * 60 * 60
"""A session is removed only if two runs, at least this number of seconds apart, find it too old. A
single wrong clock time therefore can't empty the vault."""

DAILY_REMOVAL_DIVISOR = 10
"""The vault's size is divided by this number. If the vault is too large, at most the result is
removed per day."""

ANNOUNCEMENT_VALIDITY_SECONDS = 30 * DAY
"""The number of seconds for which an announcement is valid. Removals during this time are not
announced again, because a full vault removes sessions every few days."""

ANNOUNCEMENT_DUE_MARKER_FILE = os.path.join("pending", "vault-shrinks")
"""The name of an empty file in the state folder. It exists until the user has been informed of the
coming removals."""

MAX_REMOVED_SESSIONS = 100
"""The maximum number of removed sessions in the record. Older removals are dropped from the record.
"""

MAX_DUE_SESSIONS = 5_000
"""The maximum number of due sessions in the record. Further sessions are recorded once these have
been removed."""


class RemovedSession(NamedTuple):
    """An archived session that the policy has removed from the vault.

    ``reason`` is the end of a sentence.
    """

    session_id: str
    title: str
    stored_bytes: int
    reason: str

    def describe_removal(self) -> str:
        """Return a sentence that tells the user about the removal."""
        size = format_bytes(self.stored_bytes)
        return (
            f"{self.title} ({self.session_id}, {size}) was removed from the vault: {self.reason}."
        )


class RemovalRecord(NamedTuple):
    """An entry in the vault's record of removed sessions.

    ``stored_bytes`` is the session's size in the vault, and ``reason`` is the end of a sentence.
    """

    session_id: str
    removed_at: str
    stored_bytes: int
    reason: str


class SessionDueForRemoval(NamedTuple):
    """An archived session that is due for removal.

    ``reason`` is the end of a sentence. If ``is_too_old`` is false, the vault is too large.
    """

    session: ArchivedSession
    reason: str
    is_too_old: bool


def find_sessions_due_for_removal(
    where: Where, kept_session_ids: Collection[str] = ()
) -> list[SessionDueForRemoval]:
    """Return the sessions that the policy removes, oldest first.

    Sessions in ``kept_session_ids`` are not removed because of the vault's size. All manifests are
    read.
    """
    archived_sessions = list_archived(where)[::-1]
    path, managed_period = read_managed_retention()
    if managed_period:
        reason = (
            f"according to {path}, sessions are deleted after {format_count(managed_period, 'day')}"
        )
        end_times = (
            (session, clock.to_milliseconds(session.ended)) for session in archived_sessions
        )
        cutoff_ms = (time.time() - managed_period * DAY) * 1000
        return [
            SessionDueForRemoval(session, reason, is_too_old=True)
            for session, end_time in end_times
            if end_time is not None and end_time <= cutoff_ms
        ]
    size_limit, total_bytes = (
        _read_size_limit(where),
        sum(session.stored for session in archived_sessions),
    )
    if not 0 < size_limit < total_bytes:
        return []
    due_sessions, kept_ids = (
        list[SessionDueForRemoval](),
        {*kept_session_ids, *_find_needed_ancestors(archived_sessions, where)},
    )
    for session in archived_sessions:
        if (
            total_bytes > size_limit
            and session.session_id not in kept_ids
            and not is_other_config_home(session.home, where)
        ):
            due_sessions.append(
                SessionDueForRemoval(
                    session,
                    f"archived copies exceed {format_bytes(size_limit)}, the limit in the setting vault",
                    is_too_old=False,
                )
            )
            total_bytes -= session.stored
    return due_sessions


def _read_size_limit(where: Where) -> int:
    """Return the vault's size limit in bytes, or 0 if there is no limit.

    This is the stored setting or the limit in an environment variable, whichever is larger.
    """
    limits = []
    for each in (where, settings.remove_setting_variables(where)):
        limits.append(settings.vault_limit(each))
    if None in limits or 0 in limits:
        return 0
    return max(limit_bytes or 0 for limit_bytes in limits)


def apply_policy(where: Where, *, kept_session_ids: Collection[str] = ()) -> list[RemovedSession]:
    """Remove, record and return the sessions that are due for removal.

    A session that has just become due is not removed yet. If a session cannot be removed, the next
    run tries again.
    """
    removed_sessions: list[RemovedSession] = []
    due_sessions, now = find_sessions_due_for_removal(where, kept_session_ids), time.time()
    too_old_ids = record_and_find_removable_ids(
        [each.session_id for each, _, is_too_old in due_sessions if is_too_old], where, now
    )
    todays_ids = _choose_sessions_to_remove(
        [each for each, _, is_too_old in due_sessions if not is_too_old], where, now
    )
    for each, reason, _ in due_sessions:
        if each.session_id in too_old_ids or each.session_id in todays_ids:
            with contextlib.suppress(ResumeHooksError):
                remove_archived(each, where)
                removed_sessions.append(
                    RemovedSession(each.session_id, each.title, each.stored, reason)
                )
    if removed_sessions:
        removed_ids, due_since = (
            {each.session_id for each in removed_sessions},
            _read_policy_state(where).get("since"),
        )
        if isinstance(due_since, dict):
            remaining_since = {
                each: due_time for each, due_time in due_since.items() if each not in removed_ids
            }
        else:
            remaining_since = {}
        rows = [
            RemovalRecord(each.session_id, clock.now(), each.stored_bytes, each.reason)
            for each in removed_sessions
        ]
        _write_policy_state(where, remaining_since, [*read_removed_sessions(where), *rows])
    return removed_sessions


def _choose_sessions_to_remove(
    oversize_sessions: Sequence[ArchivedSession], where: Where, now: float
) -> set[str]:
    """Return the ids of the sessions to remove today because the vault is too large.

    No session is removed before the user has been informed.
    """
    announcement_note = os.path.join(where.state, ANNOUNCEMENT_DUE_MARKER_FILE)
    if not oversize_sessions:
        removal.remove_if_possible(announcement_note, where.state)
        return set()
    announcement_time, last_removal_time = (
        _parse_past_instant(_read_policy_state(where).get(name), now)
        for name in ("announced", "shrunk")
    )
    if not announcement_time or (
        now - announcement_time > ANNOUNCEMENT_VALIDITY_SECONDS
        and not os.path.lexists(announcement_note)
    ):
        # If the file cannot be written, the next run tries to make the announcement again. Until
        # then, no session is removed.
        with contextlib.suppress(OSError):
            state_file.create_marker(announcement_note, where)
            _record_policy_times(where, announced=int(now))
        return set()
    if (
        os.path.lexists(announcement_note)
        or now - announcement_time < MIN_SECONDS_BETWEEN_POLICY_RUNS
        or now - last_removal_time < MIN_SECONDS_BETWEEN_POLICY_RUNS
    ):
        return set()
    daily_bytes = sum(each.stored for each in list_archived(where)) // DAILY_REMOVAL_DIVISOR
    chosen_ids, chosen_bytes = set[str](), 0
    for each in oversize_sessions:
        if chosen_ids and chosen_bytes + each.stored > daily_bytes:
            break
        chosen_ids.add(each.session_id)
        chosen_bytes += each.stored
    _record_policy_times(where, announced=int(announcement_time), shrunk=int(now))
    return chosen_ids


def take_pending_removal_announcement(where: Where) -> str:
    """Return the announcement of upcoming removals, or ``""`` if it was already made."""
    announcement_note = os.path.join(where.state, ANNOUNCEMENT_DUE_MARKER_FILE)
    if not os.path.lexists(announcement_note):
        return ""
    oversize_sessions = []
    for each, _, is_too_old in find_sessions_due_for_removal(where):
        if not is_too_old:
            oversize_sessions.append(each)
    with contextlib.suppress(OSError):
        removal.remove_permanently(announcement_note, where.state)
    if not oversize_sessions:
        return ""
    limit_text, session_count = (
        format_bytes(_read_size_limit(where)),
        format_count(len(oversize_sessions), "session"),
    )
    return (
        f"archived copies exceed {limit_text}, the limit in the setting vault. From tomorrow on, the "
        f"oldest {session_count} are removed, a tenth of them each day. To keep them, in a shell: "
        f"{shell_command('config vault 40G')}"
    )


def _parse_past_instant(value: object, now: float) -> float:
    """Return a recorded time in seconds since the epoch, or 0 if it is invalid or in the future."""
    if isinstance(value, int) and 0 < value <= now:
        return float(value)
    return 0.0


def _find_needed_ancestors(archived_sessions: list[ArchivedSession], where: Where) -> set[str]:
    """Return the ids of all ancestors of the sessions in the client's folders and in our trash.

    The manifests of ``archived_sessions`` are also used to find the parents of sessions.
    """
    linked_parents = {}
    for link in read_links(where):
        linked_parents[link.child_id] = link.parent_id
    deleted_sessions = trash.list_trashed_sessions(where)
    recorded_parents = {}
    for each in (*archived_sessions, *deleted_sessions):
        if each.about.parent:
            recorded_parents[each.session_id] = each.about.parent[0]
    parents, lineage_finder, ancestor_ids = (
        linked_parents | recorded_parents,
        LineageFinder(where),
        set[str](),
    )
    living_sessions = {}
    for session in all_sessions(where):
        living_sessions[session.session_id] = session.path
    for session_id, path in living_sessions.items():
        with contextlib.suppress(SessionNotFound):  # The session was deleted after it was listed.
            parent = lineage_finder.find_parent(path)
            parents |= {session_id: parent.session_id} if parent else {}
    for session_id in (*living_sessions, *(entry.session_id for entry in deleted_sessions)):
        parent_id = parents.get(session_id, "")
        while parent_id and parent_id not in ancestor_ids:
            ancestor_ids.add(parent_id)
            parent_id = parents.get(parent_id, "")
    return ancestor_ids


def record_and_find_removable_ids(too_old_ids: Sequence[str], where: Where, now: float) -> set[str]:
    """Record when sessions were first found too old. Return the ids of those that can be removed.

    A session can be removed if it was first found too old at least
    ``MIN_SECONDS_BETWEEN_POLICY_RUNS`` seconds ago. ``now`` is in seconds since the epoch. Only the
    first ``MAX_DUE_SESSIONS`` sessions are recorded. Sessions that are no longer too old are removed
    from the record.
    """
    row = _read_policy_state(where)
    since = row.get("since")
    recorded_times = since if isinstance(since, dict) else {}
    past_times = {}
    for session_id, since_time in recorded_times.items():
        if type(since_time) is int and 0 < since_time <= now:
            past_times[session_id] = since_time
    due_since = {
        session_id: past_times.get(session_id, int(now))
        for session_id in too_old_ids[:MAX_DUE_SESSIONS]
    }
    if due_since != recorded_times:
        _write_policy_state(where, due_since, read_removed_sessions(where))
    return {
        session_id
        for session_id, first_due_time in due_since.items()
        if now - first_due_time >= MIN_SECONDS_BETWEEN_POLICY_RUNS
    }


def read_removed_sessions(where: Where) -> list[RemovalRecord]:
    """Return the recorded sessions that the policy removed, in the order of removal."""
    rows = _read_policy_state(where).get("went")
    if isinstance(rows, list):
        sessions = [parse_row(RemovalRecord, row) for row in rows]
    else:
        sessions = []
    return [row for row in sessions if row and is_session_id(row.session_id)][
        -MAX_REMOVED_SESSIONS:
    ]


def _read_policy_state(where: Where) -> dict[str, object]:
    if is_private_folder(vault_folder(where), where):
        row = read_json_object(_policy_state_path(where))
    else:
        row = {}
    if row.get("version") == POLICY_STATE_VERSION:
        return row
    return {}


def _write_policy_state(
    where: Where, due_since: Mapping[str, object], removed_sessions: Sequence[RemovalRecord]
) -> None:
    """Record when sessions became due, and which sessions were removed.

    If the file cannot be written, the next run does not know how long sessions have been due, and
    therefore removes no session because of its age.
    """
    previous_state = _read_policy_state(where)
    instants: dict[str, object] = {}
    for name in ("announced", "shrunk"):
        if name in previous_state:
            instants[name] = previous_state[name]
    _write_policy_state_fields(
        where,
        {
            "since": due_since,
            "went": [list(each) for each in removed_sessions[-MAX_REMOVED_SESSIONS:]],
            **instants,
        },
    )


def _record_policy_times(where: Where, **instants: int) -> None:
    """Record when removals were announced (``announced``) or last made (``shrunk``).

    The times concern only removals that are made because the vault is too large. They are in
    seconds since the epoch.
    """
    _write_policy_state_fields(
        where, {"since": {}, "went": [], **_read_policy_state(where), **instants}
    )


def _write_policy_state_fields(where: Where, values: Mapping[str, object]) -> None:
    row, path = {**values, "version": POLICY_STATE_VERSION}, _policy_state_path(where)
    with contextlib.suppress(OSError):
        if is_private_folder(vault_folder(where), where):
            state_file.replace_state_file(path, orjson.dumps(row) + b"\n", where)


def _policy_state_path(where: Where) -> str:
    return os.path.join(vault_folder(where), POLICY_STATE_FILE)
