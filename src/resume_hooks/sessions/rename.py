"""Set the title or the tag of a session.

A record is appended to the session's file, as ``/rename`` in the client and the official SDK do.
The existing records do not change. A title must be unique in a project, because titles are
locators.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import unicodedata
from typing import NamedTuple

import orjson

from resume_hooks.errors import SessionNotFound, TitleTaken, UsageError, WriteFailed
from resume_hooks.paths import Where, is_session_file
from resume_hooks.sessions.archived.sessions import require_client_file
from resume_hooks.sessions.locator_forms import find_sessions_titled
from resume_hooks.sessions.open_sessions import describe_open_session
from resume_hooks.sessions.session_files import SessionFile, sessions_in_project_folder
from resume_hooks.storage.atomic import append_records
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.metadata_records import (
    AGENT_NAME,
    CUSTOM_TITLE,
    TAG,
    make_label_record,
)
from resume_hooks.transcripts.records import Record

MAX_LABEL_CHARACTERS = 200  # maximum number of characters of a title or a tag
# Maximum number of times that a tag is cleaned; the SDK uses the same number. Removing one
# character may produce another character that must be removed.
MAX_CLEANING_PASSES = 10
OPEN_SESSION_WARNING = (
    "A client may have the session open ({why}), and may write the old value again. In Claude Code, "
    "type /rename instead."
)

_LOCATOR_LIKE_PATTERN = re.compile(
    r"latest(?:~\d*)?|[0-9a-f-]{4,36}|\d+|#\d+|pr:#?\d+|(?:tag|title):.*|https?://.*|.*\.jsonl|~?/.*|-.*",
    re.IGNORECASE | re.DOTALL,
)
"""Matches text that is not allowed as a title or a tag, because it looks like an id, a path, a pull
request or a command-line option."""

# The SDK removes characters of these Unicode categories from tags: format characters, private-use
# characters and unassigned ones.
_REMOVED_UNICODE_CATEGORIES = frozenset({"Cf", "Co", "Cn"})


class LabelChange(NamedTuple):
    """A change of a session's title or tag. ``""`` means no tag.

    ``records`` must be appended to the session's file. It is empty if the label is unchanged.
    """

    session: SessionFile
    old_label: str
    new_label: str
    records: tuple[Record, ...]
    warnings: tuple[str, ...]


def plan_title(
    session: SessionFile, title: str, where: Where, *, force: bool = False
) -> LabelChange:
    """Return the change for a new title without writing it.

    The change also sets the agent name, which clients from 2.1.112 on show above the input box.
    Raise UsageError if the title is invalid or the session can't be renamed. Raise TitleTaken if
    another session of the project has the title, unless ``force`` is true.
    """
    new = _normalize_title(title)
    ends = _read_ends_of_writable_session(session, where)
    if not force:
        others = []
        for other in sessions_in_project_folder(os.path.dirname(session.path)):
            if other.path != session.path:
                others.append(other)
        sessions_with_title = find_sessions_titled(new, others)
        if sessions_with_title:
            if len(sessions_with_title) > 1:
                more = f" and {len(sessions_with_title) - 1} more"
            else:
                more = ""
            raise TitleTaken(
                f"'{new}' is the title of {sessions_with_title[0].session_id}{more} already",
                "Choose another title, rename that session first, or add --force to give both the same title.",
            )
    records = []
    if ends.custom_title != new:
        records.append(make_label_record(CUSTOM_TITLE, new, session.session_id))
    if ends.agent_name != new:
        records.append(make_label_record(AGENT_NAME, new, session.session_id))
    return _make_label_change(session, ends.title, new, records, where)


def plan_tag(session: SessionFile, tag: str, where: Where) -> LabelChange:
    """Return the change that would set a tag, without writing it.

    If ``tag`` is ``""``, the change removes the tag. Raise UsageError if the tag is invalid or
    can't be set.
    """
    new = _normalize_tag(tag) if tag else ""
    ends = _read_ends_of_writable_session(session, where)
    records = []
    if ends.tag != new:
        records.append(make_label_record(TAG, new, session.session_id))
    return _make_label_change(session, ends.tag, new, records, where)


def write_label(change: LabelChange) -> None:
    """Append the records of a change to the session's file.

    Raise WriteFailed if writing fails, or if another program sets a different label at the same
    time.
    """
    path = change.session.path
    if not change.records:
        return
    append_records(path, [orjson.dumps(record) for record in change.records])
    ends = HeadTail(path)
    current_labels = {CUSTOM_TITLE: ends.custom_title, AGENT_NAME: ends.agent_name, TAG: ends.tag}
    if any(current_labels[record["type"]] != change.new_label for record in change.records):
        raise WriteFailed(
            f"Another program renamed {path} at the same time",
            "Look at it, and run the command again.",
        )


def _make_label_change(
    session: SessionFile, old_label: str, new_label: str, records: list[Record], where: Where
) -> LabelChange:
    why = describe_open_session(session, where) if records else ""
    warnings = (OPEN_SESSION_WARNING.format(why=why),) if why else ()
    return LabelChange(session, old_label, new_label, tuple(records), warnings)


def _read_ends_of_writable_session(session: SessionFile, where: Where) -> HeadTail:
    """Check that a session may be changed, and return the beginning and the end of its file.

    If it must not be changed, raise UsageError, OnlyArchived, WriteFailed or SessionNotFound.
    """
    require_client_file(session, where)
    if not is_session_file(session.path):
        raise UsageError(
            f"{session.path} is not the main transcript of a session",
            "Only <session id>.jsonl has a title and a tag of its own.",
        )
    try:
        writable = os.stat(session.path).st_mode & stat.S_IWUSR
    except OSError as error:
        raise SessionNotFound(
            f"{session.path} can't be read: {error.strerror}", "Was it just deleted?"
        ) from error
    if not writable:
        raise WriteFailed(
            f"{session.path} is read-only, so nothing was added to it",
            f"chmod u+w {shlex.quote(session.path)}",
        )
    ends = HeadTail(session.path)
    if ends.is_sidechain:
        raise UsageError(
            "This is a sub-agent's transcript", "Name the session that started the sub-agent."
        )
    return ends


def _normalize_title(text: str) -> str:
    return _require_usable_label(plain_line(_require_utf8(text)).strip(), "title")


def _normalize_tag(text: str) -> str:
    """Return a tag in the form in which the SDK stores it: NFKC without invisible characters.

    Raise UsageError if no character remains.
    """
    tag = _require_utf8(text)
    for _ in range(MAX_CLEANING_PASSES):
        previous, normalized = tag, unicodedata.normalize("NFKC", tag)
        tag = "".join(
            c for c in normalized if unicodedata.category(c) not in _REMOVED_UNICODE_CATEGORIES
        )
        if tag == previous:
            break
    return _require_usable_label(plain_line(tag).strip(), "tag")


def _require_utf8(text: str) -> str:
    if text != replace_surrogates(text):
        raise UsageError("That is not UTF-8 text", "Type it again, in a terminal that uses UTF-8.")
    return text


def _require_usable_label(text: str, label_name: str) -> str:
    """Return the text. Raise UsageError if it can't be a label.

    It must not be empty or too long, and must not look like an id, a path, an option or another
    locator.
    """
    if not text:
        raise UsageError(f"An empty {label_name}", "Give at least one visible character.")
    if len(text) > MAX_LABEL_CHARACTERS:
        raise UsageError(
            f"A {label_name} of {len(text):,} characters",
            f"Give at most {MAX_LABEL_CHARACTERS} characters.",
        )
    if _LOCATOR_LIKE_PATTERN.fullmatch(text):
        raise UsageError(
            (
                f"'{text}' can't be a {label_name}: it looks like an id, a path, an option or another locator"
            ),
            "Choose other words, or add one.",
        )
    return text
