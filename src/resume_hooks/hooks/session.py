"""The hooks SessionStart and SessionEnd: link sessions across ``/clear``, and inform the user.

At ``/clear``, the client ends one session and starts another in the same process. The ended session
becomes the parent of the new one. The hooks run even before the engine is installed, so this module
uses only the standard library and must run on Python 3.9.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Callable, Collection, Dict, List, Optional

from resume_hooks import questions, seam
from resume_hooks.archive.retention import pending
from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import hook_replies, hook_state, pending_handoff, start_parts
from resume_hooks.hooks.pending_handoff import PendingHandoff
from resume_hooks.paths import TASKS_FOLDER_NAME, Where, is_session_id, open_regular
from resume_hooks.sessions.link_log import Link, record_link, record_successor
from resume_hooks.shared_values import COLD_CACHE_NOTICE_TOKENS, COLD_CACHE_SENTENCE, COMMAND_PREFIX
from resume_hooks.system.invocation import shell_command
from resume_hooks.system.processes import find_client_pid
from resume_hooks.transcripts.lines import MIN_GIANT_FILE_BYTES
from resume_hooks.transcripts.metadata_records import OPENING_AFTER_CLEAR_PREFIX

if TYPE_CHECKING:
    from resume_hooks.transcripts.tokens import ContextSize

MAX_INPUT_BYTES = 1024 * 1024
MAX_END_TO_START_SECONDS = 60
"""Maximum number of seconds between the end of a session and the start that follows it at ``/clear``.

A note about an earlier end was left by a client that crashed.
"""

MIN_SHOWN_DOLLARS = 0.01

# Prefix of notes which record that the module has shown the cost of a cold cache. A session's id
# follows.
_COLD_CACHE_NOTE_PREFIX = "cold-"

_CONTINUED_AT_PATTERN = re.compile(rb'"continued_at":"([0-9TZ:.-]+)"')

EXPIRING_ARGUMENT, NEW_FOLDER_ARGUMENT = "near-end", "new-folder"
"""Arguments that the shell script passes when a session starts: the first if sessions expire soon, the
second if the folder has no sessions."""

# The engine's minimum version of Python. This module also runs with older versions.
MIN_ENGINE_PYTHON_VERSION = 3, 11


def main() -> None:
    """Handle the event on stdin and print the reply. Raise no exception, so that the client always starts."""
    event = hook_replies.read_stdin(MAX_INPUT_BYTES)
    if event is None:
        return
    try:
        answer = handle_session_event(event, sys.argv[1:])
    except OSError as error:  # If the state folder is full or read-only, only the link between two sessions is lost.
        answer = _warn_of_lost_link(event, error)
    with contextlib.suppress(OSError):
        hook_replies.write_reply(answer)


def handle_session_event(event: Dict[str, Any], arguments: Collection[str] = ()) -> bytes:
    """Handle an event, and return the reply to print. The reply may be empty.

    ``arguments`` come from the shell script: ``EXPIRING_ARGUMENT`` and ``NEW_FOLDER_ARGUMENT``.
    Raise OSError if the state folder can't be written.
    """
    session_id = hook_replies.text_field(event, "session_id")
    if not is_session_id(session_id):
        return b""
    name, path = (
        hook_replies.text_field(event, "hook_event_name"),
        hook_replies.text_field(event, "transcript_path"),
    )
    if name == "SessionEnd" and hook_replies.text_field(event, "reason") == "clear":
        _record_cleared_session(session_id)
    source = hook_replies.text_field(event, "source") if name == "SessionStart" else ""
    if source in ("clear", "compact"):
        start_parts.delete_old_start_notes()
        if source == "clear":
            return _reply_to_start_after_clear(session_id, path)
        return _reply_to_start_after_compaction(session_id, path)
    lines = []
    if source == "startup" and path:
        lines.append(_describe_pending_handoff(os.path.dirname(path)))
    if source == "resume":
        lines += _lines_at_resume(session_id, path, event)
    archive_line = ""
    if source and EXPIRING_ARGUMENT in arguments:
        archive_line = _make_line_with_engine(_archive_and_describe_at_start, event)
    if NEW_FOLDER_ARGUMENT in arguments:
        lines.append(_make_line_with_engine(describe_start_in_new_folder, event))
    lines.append(archive_line)
    if source:
        lines += _collect_part_lines()
    line = " · ".join(filter(None, lines))
    return hook_replies.start_reply("", f"resume-hooks: {line}" if line else "")


def _warn_of_lost_link(event: Dict[str, Any], error: OSError) -> bytes:
    """Return a warning for the user if the session before ``/clear`` could not be recorded."""
    if hook_replies.text_field(event, "source") != "clear":
        return b""
    return hook_replies.start_reply(
        "",
        f"resume-hooks: the session before this one could not be recorded in {Where().state} "
        f"({error.strerror or error}), so {COMMAND_PREFIX}lineage will not show it. Check free space and the "
        "permissions of the folder.",
    )


def _lines_at_resume(session_id: str, path: str, event: Dict[str, Any]) -> List[str]:
    """Return a line about the cold cache and one about a very large file, each ``""`` if it is not needed."""
    pending_handoff.consume_handoff_to_child(session_id)
    if hook_state.consume_fresh_note(
        _name_of_cold_cache_note(session_id), MAX_END_TO_START_SECONDS
    ):
        cold_cache_line = ""  # The module has shown this line already.
    else:
        cold_cache_line = describe_cold_cache(event, path)
    return [cold_cache_line, _describe_giant_file(session_id, path)]


def _reply_to_start_after_clear(session_id: str, path: str) -> bytes:
    """Link the session that ``/clear`` started to the previous session, and return the reply.

    If a handoff is pending, the reply is the opening of its child.
    """
    pid = find_client_pid()
    if pid is None:
        return b""
    parent_id = _consume_clear_note(pid)
    if path:
        handoff = pending_handoff.consume_cleared_handoff(pid, os.path.dirname(path), parent_id)
    else:
        handoff = None
    if handoff is None:
        if parent_id is None:
            _check_notes_can_be_written()
        elif parent_id != session_id:
            record_link(Link(session_id, parent_id, "clear", _current_timestamp(), pid), Where())
        return b""
    # A lost link does little harm here, because the opening also names the parent.
    with contextlib.suppress(OSError):
        record_link(
            Link(session_id, handoff.parent_id, handoff.kind, _current_timestamp(), pid), Where()
        )
        record_successor(handoff.child_id, session_id, _current_timestamp(), Where())
    _copy_tasks_of_child(handoff.child_id, session_id)
    is_outdated = pending_handoff.is_handoff_outdated(handoff)
    outdated_text = "; your later work is not in it" if is_outdated else ""
    message = (
        f"the {handoff.kind} of {handoff.parent_id[:8]} is loaded{outdated_text}; /clear again "
        "starts without it"
    )
    opening = _opening_after_clear(handoff, session_id, path, is_outdated=is_outdated)
    return start_parts.deliver_start_text(opening, f"resume-hooks: {message}", session_id)


def _copy_tasks_of_child(child_id: str, session_id: str) -> None:
    """Copy the task list of the child whose opening this session gets. Do nothing if there is no list."""
    if sys.version_info < MIN_ENGINE_PYTHON_VERSION or not os.path.isdir(
        os.path.join(Where().config, TASKS_FOLDER_NAME, child_id)
    ):
        return
    # If the engine is not installed yet, the tasks stay only in the child.
    with contextlib.suppress(ImportError):
        # Imported late because most sessions have no tasks.
        from resume_hooks.derive.child.copy_files import copy_tasks

        copy_tasks(child_id, session_id, Where())


def _opening_after_clear(
    handoff: PendingHandoff, session_id: str, path: str, *, is_outdated: bool
) -> str:
    """Return the child's opening, with the child's id and file replaced by those of this session."""
    creation_time = datetime.fromtimestamp(handoff.at, timezone.utc).strftime("%Y-%m-%d %H:%M")
    opening = handoff.opening.replace(handoff.child_file, path).replace(
        handoff.child_id, session_id
    )
    if is_outdated:
        later_work = " (later work in that session is not included)"
    else:
        later_work = ""
    return f"{OPENING_AFTER_CLEAR_PREFIX}({creation_time} UTC) that left this{later_work}:\n\n{opening}"


def _reply_to_start_after_compaction(session_id: str, path: str) -> bytes:
    """Return a reply with the facts that a compaction removed.

    Return ``b""`` if the engine is not installed, or if the plugin's module made the compaction. In
    the second case nothing was lost.
    """
    if sys.version_info < MIN_ENGINE_PYTHON_VERSION or hook_state.consume_fresh_note(
        hook_state.compaction_note_name(session_id), MAX_END_TO_START_SECONDS
    ):
        return b""
    try:
        # Imported late because other events do not need it.
        from resume_hooks.hooks.after_compaction import describe_lost_facts
    except ImportError:
        # The engine is not installed yet, or its venv was installed for an earlier version.
        _mark_venv_broken()
        return b""
    return start_parts.deliver_start_text(describe_lost_facts(session_id, path), "", session_id)


def _describe_pending_handoff(folder: str) -> str:
    """Return a line about a pending handoff in this folder, or ``""`` if there is none.

    In a headless run, return ``""`` and leave the handoff pending, because the user sees no lines.
    """
    if hook_replies.is_headless():
        handoff = None
    else:
        handoff = pending_handoff.find_handoff_to_announce(folder)
    if handoff:
        return f"a handoff waits here: /resume {handoff.child_id}"
    return ""


def claim_cold_cache_line(event: Dict[str, Any]) -> str:
    """Return the line about the cold cache for the module to show. The hook then does not show it again.

    Clients up to 2.1.332 hide a hook's lines at a resume if a hook wrote to the session at an
    earlier start. The module can show the line even then. Raise OSError if the note for the hook
    can't be written.
    """
    session_id, path = (
        hook_replies.text_field(event, "session_id"),
        hook_replies.text_field(event, "transcript_path"),
    )
    if is_session_id(session_id):
        line = describe_cold_cache(event, path, sign="/")
    else:
        line = ""
    if line:
        hook_state.delete_old_notes(_COLD_CACHE_NOTE_PREFIX, MAX_END_TO_START_SECONDS)
        hook_state.write_note(_name_of_cold_cache_note(session_id), {"at": time.time()})
    return line


def _name_of_cold_cache_note(session_id: str) -> str:
    return f"{_COLD_CACHE_NOTE_PREFIX}{session_id}.json"


def describe_cold_cache(event: Dict[str, Any], path: str, *, sign: str = COMMAND_PREFIX) -> str:
    """Return a line about the cost of continuing a large session without a cache.

    Return ``""`` for a small cost or a new child. The number of tokens comes from the session's
    file if possible, because the client's number includes tokens that are not in the file. ``sign``
    is the prefix of the commands in the line.
    """
    tokens, dollars = event.get("context_tokens"), event.get("estimated_cache_write_usd")
    if (
        event.get("prompt_cache_likely_expired") is not True
        or not isinstance(tokens, int)
        or tokens < COLD_CACHE_NOTICE_TOKENS
    ):
        return ""
    if hook_replies.is_headless() or _is_new_child(path):
        return ""
    if isinstance(dollars, (int, float)) and dollars >= MIN_SHOWN_DOLLARS:
        cost_text = f" (about ${dollars:.2f})"
    else:
        cost_text = ""
    size_text = f"{tokens:,} tokens{cost_text}"
    context = _read_context(path)
    if context is not None:
        if context.tokens < COLD_CACHE_NOTICE_TOKENS:
            return ""
        if context.is_estimate:
            size_text = f"(about {context.tokens:,} tokens)"
        else:
            size_text = f"{context.tokens:,} tokens{cost_text}"
    cost_sentence = f"{COLD_CACHE_SENTENCE} {size_text}"
    return f"{cost_sentence}; to send less, first type {sign}trim or {sign}handoff"


def _describe_giant_file(session_id: str, path: str) -> str:
    """Return a warning if a session's file is so large that clients may hang, else ``""``.

    The warning contains the command that creates a small copy.
    """
    try:
        size = os.stat(path).st_size
    except (OSError, ValueError):
        return ""
    if size < MIN_GIANT_FILE_BYTES or hook_replies.is_headless():
        return ""
    command = shell_command(f"archive --slim {session_id[:8]}")
    return (
        f"this session's file is {size // 1_000_000:,} MB long, and a client may hang on it; "
        f"for a small copy: {command}"
    )


def _is_new_child(path: str) -> bool:
    """Check whether a session is a child that was created a moment ago.

    Only the first line of the session's file is read.
    """
    try:
        with open_regular(path) as stream:
            match = _CONTINUED_AT_PATTERN.search(stream.readline(MAX_INPUT_BYTES))
    except OSError:
        return False
    return match is not None and match[1].decode() > _format_timestamp(
        time.time() - MAX_END_TO_START_SECONDS
    )


def _archive_and_describe_at_start(event: Dict[str, Any]) -> str:
    # Imported late because most starts do not need it.
    from resume_hooks.hooks.expiring_sessions import archive_and_describe_at_start

    return archive_and_describe_at_start(event)


def describe_start_in_new_folder(event: Dict[str, Any]) -> str:
    """Return, as one line, what installed parts show when a session starts in a folder without sessions."""
    lines = []
    for line in seam.find_answers(questions.start_notice_in_new_folder):
        lines.append(line(event))
    return " · ".join(filter(None, lines))


def _make_line_with_engine(
    make_line: Callable[[Dict[str, Any]], str], event: Dict[str, Any]
) -> str:
    """Return the line from the function ``make_line``, or ``""`` if the engine is not installed."""
    if sys.version_info < MIN_ENGINE_PYTHON_VERSION:
        return ""
    try:
        return make_line(event)
    except ImportError:
        _mark_venv_broken()
    except OSError:  # If this line fails, the other lines are shown without it.
        pass
    return ""


def _read_context(path: str) -> Optional[ContextSize]:
    """Return the size of a session's context. Return None if the file at ``path`` can't be read."""
    if sys.version_info < MIN_ENGINE_PYTHON_VERSION:
        return None
    try:
        # Imported late because most starts do not need it.
        from resume_hooks.sessions.session import Session
        from resume_hooks.sessions.session_files import session_file

        return Session.from_file(session_file(path), Where()).context
    except ImportError:
        _mark_venv_broken()
    except (OSError, ResumeHooksError):  # The line then uses the client's number of tokens.
        pass
    return None


def _collect_part_lines() -> List[str]:
    """Return the lines that installed parts show when a session starts.

    In a headless run, return an empty list, because its user would not see the lines.
    """
    if hook_replies.is_headless():
        return []
    lines = []
    for line in seam.find_answers(questions.session_start_notice):
        lines.append(line(Where()))
    return lines


def _mark_venv_broken() -> None:
    """Mark the plugin's venv as broken, so that the installer rebuilds it."""
    # Imported late because most starts do not need it.
    from resume_hooks.hooks.fallback import mark_venv_broken

    mark_venv_broken()


def _record_cleared_session(session_id: str) -> None:
    pid = find_client_pid()
    if pid is not None:
        hook_state.write_note(
            _note_name_of_slash_clear(pid), {"session_id": session_id, "at": time.time()}
        )
        # The old session is a parent now. The next start archives it in the background.
        pending.record_pending_session(session_id, Where())


def _check_notes_can_be_written() -> None:
    """Raise OSError if no note can be written. In that case the note about ``/clear`` is missing too."""
    name = _note_name_of_slash_clear(os.getpid())
    hook_state.write_note(name, {})
    hook_state.consume_note(name)


def _consume_clear_note(pid: int) -> Optional[str]:
    """Return the id of the session that this client has just cleared, and delete the note about it.

    Return None if there is no such note, or if the note is old or damaged.
    """
    note = hook_state.read_note(_note_name_of_slash_clear(pid))
    hook_state.consume_note(_note_name_of_slash_clear(pid))
    session_id, cleared_at = note.get("session_id"), note.get("at", 0)
    is_fresh = (
        hook_state.is_valid_timestamp(cleared_at)
        and abs(time.time() - cleared_at) <= MAX_END_TO_START_SECONDS
    )
    if is_session_id(session_id) and is_fresh:
        return session_id
    return None


def _note_name_of_slash_clear(pid: int) -> str:
    return f"clear-{pid}.json"


def _current_timestamp() -> str:
    return _format_timestamp(time.time())


def _format_timestamp(seconds: float) -> str:
    return (
        datetime.fromtimestamp(seconds, timezone.utc)
        .isoformat(timespec="milliseconds")
        .replace("+00:00", "Z")
    )
