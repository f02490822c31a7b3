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

POLICY_FILE = "policy.json"
"""The name of a file in the vault. A run of the policy stores data in it for the next run."""

POLICY_VERSION = 1

MIN_SECONDS_BETWEEN_POLICY_RUNS = 20 * 60 * 60
"""A session is removed only if two runs, at least this number of seconds apart, find it too old. A
single wrong clock time therefore can't empty the vault."""

DAILY_REMOVAL_DIVISOR = 10
"""If the vault is too large, at most its size divided by this number is removed per day."""

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


class DroppedSession(NamedTuple):
    """An archived session that the policy has removed or will remove.

    ``reason`` is the end of a sentence.
    """

    session_id: str
    title: str
    stored_bytes: int
    reason: str

    @property
    def removal_sentence(self) -> str:
        """A sentence that tells the user about the removal."""
        size = format_bytes(self.stored_bytes)
        return (
            f"{self.title} ({self.session_id}, {size}) was removed from the vault: {self.reason}."
        )


class RemovedSession(NamedTuple):
    """An entry in the vault's record of removed sessions.

    ``stored_bytes`` is the session's size in the vault, and ``reason`` is the end of a sentence.
    """

    session_id: str
    removed_at: str
    stored_bytes: int
    reason: str


class DueSession(NamedTuple):
    """An archived session that is due for removal.

    ``reason`` is the end of a sentence. If ``is_too_old`` is false, the vault is too large.
    """

    session: ArchivedSession
    reason: str
    is_too_old: bool


def find_due_sessions(where: Where, kept_session_ids: Collection[str] = ()) -> list[DueSession]:
    """Return the sessions that the policy removes, oldest first.

    Sessions in ``kept_session_ids`` are not removed because of the vault's size. All manifests are
    read.
    """
    archived_sessions = list_archived(where)[::-1]
    path, managed_period = read_managed_retention()
    if managed_period:
        reason = f"{path} has sessions deleted after {format_count(managed_period, 'day')}"
        end_times = (
            (session, clock.to_milliseconds(session.ended)) for session in archived_sessions
        )
        cutoff_ms = (time.time() - managed_period * DAY) * 1000
        return [
            DueSession(session, reason, is_too_old=True)
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
        list[DueSession](),
        {*kept_session_ids, *_find_needed_ancestors(archived_sessions, where)},
    )
    for session in archived_sessions:
        if (
            total_bytes > size_limit
            and session.session_id not in kept_ids
            and not is_other_config_home(session.home, where)
        ):
            due_sessions.append(
                DueSession(
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


def apply_policy(where: Where, *, kept_session_ids: Collection[str] = ()) -> list[DroppedSession]:
    """Remove, record and return the sessions that are due for removal.

    A session that has just become due is not removed yet. If a session cannot be removed, the next
    run tries again.
    """
    removed_sessions: list[DroppedSession] = []
    due_sessions, now = find_due_sessions(where, kept_session_ids), time.time()
    too_old_ids = record_due_sessions(
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
                    DroppedSession(each.session_id, each.title, each.stored, reason)
                )
    if removed_sessions:
        removed_ids, due_since = (
            {each.session_id for each in removed_sessions},
            _read_policy(where).get("since"),
        )
        if isinstance(due_since, dict):
            remaining_since = {
                each: due_time for each, due_time in due_since.items() if each not in removed_ids
            }
        else:
            remaining_since = {}
        rows = [
            RemovedSession(each.session_id, clock.now(), each.stored_bytes, each.reason)
            for each in removed_sessions
        ]
        _write_policy(where, remaining_since, [*read_removed_sessions(where), *rows])
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
        _parse_past_instant(_read_policy(where).get(name), now) for name in ("announced", "shrunk")
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


def claim_removal_announcement(where: Where) -> str:
    """Return the announcement of the coming removals if it has not been made yet, else ``""``."""
    announcement_note = os.path.join(where.state, ANNOUNCEMENT_DUE_MARKER_FILE)
    if not os.path.lexists(announcement_note):
        return ""
    oversize_sessions = []
    for each, _, is_too_old in find_due_sessions(where):
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
    deleted_sessions = trash.list_deleted(where)
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


def record_due_sessions(due_ids: Sequence[str], where: Where, now: float) -> set[str]:
    """Record when sessions became due for removal. Return the ids of those due for long enough.

    These have been due for at least ``MIN_SECONDS_BETWEEN_POLICY_RUNS`` seconds. ``now`` is in
    seconds since the epoch. Only the first ``MAX_DUE_SESSIONS`` sessions are recorded. Sessions that
    are no longer due are removed from the record.
    """
    row = _read_policy(where)
    since = row.get("since")
    recorded_times = since if isinstance(since, dict) else {}
    past_times = {}
    for session_id, since_time in recorded_times.items():
        if type(since_time) is int and 0 < since_time <= now:
            past_times[session_id] = since_time
    due_since = {
        session_id: past_times.get(session_id, int(now))
        for session_id in due_ids[:MAX_DUE_SESSIONS]
    }
    if due_since != recorded_times:
        _write_policy(where, due_since, read_removed_sessions(where))
    return {
        session_id
        for session_id, first_due_time in due_since.items()
        if now - first_due_time >= MIN_SECONDS_BETWEEN_POLICY_RUNS
    }


def read_removed_sessions(where: Where) -> list[RemovedSession]:
    """Return the sessions that the policy removed, as far as they are recorded, oldest removal first."""
    rows = _read_policy(where).get("went")
    if isinstance(rows, list):
        sessions = [parse_row(RemovedSession, row) for row in rows]
    else:
        sessions = []
    return [row for row in sessions if row and is_session_id(row.session_id)][
        -MAX_REMOVED_SESSIONS:
    ]


def _read_policy(where: Where) -> dict[str, object]:
    if is_private_folder(vault_folder(where), where):
        row = read_json_object(_policy_path(where))
    else:
        row = {}
    if row.get("version") == POLICY_VERSION:
        return row
    return {}


def _write_policy(
    where: Where, due_since: Mapping[str, object], removed_sessions: Sequence[RemovedSession]
) -> None:
    """Record when sessions became due, and which sessions were removed.

    If the file cannot be written, the next run does not know how long sessions have been due, and
    therefore removes no session because of its age.
    """
    previous_policy = _read_policy(where)
    instants: dict[str, object] = {}
    for name in ("announced", "shrunk"):
        if name in previous_policy:
            instants[name] = previous_policy[name]
    _write_policy_fields(
        where,
        {
            "since": due_since,
            "went": [list(each) for each in removed_sessions[-MAX_REMOVED_SESSIONS:]],
            **instants,
        },
    )


def _record_policy_times(where: Where, **instants: int) -> None:
    """Record when removals were announced (``announced``) or last made (``shrunk``).

    Only removals because of the vault's size count. The times are in seconds since the epoch.
    """
    _write_policy_fields(where, {"since": {}, "went": [], **_read_policy(where), **instants})


def _write_policy_fields(where: Where, values: Mapping[str, object]) -> None:
    row, path = {**values, "version": POLICY_VERSION}, _policy_path(where)
    with contextlib.suppress(OSError):
        if is_private_folder(vault_folder(where), where):
            state_file.replace_state_file(path, orjson.dumps(row) + b"\n", where)


def _policy_path(where: Where) -> str:
    return os.path.join(vault_folder(where), POLICY_FILE)
