"""Titles and tags of sessions, appended as records, as ``/rename`` of the client and the official SDK append them.

Nothing of a session is changed but for its end. Titles stay unique within a project: they are
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
from resume_hooks.sessions.archived.sessions import require_own
from resume_hooks.sessions.locator_forms import sessions_titled
from resume_hooks.sessions.open_sessions import why_session_is_open
from resume_hooks.sessions.session_files import SessionFile, sessions_in
from resume_hooks.storage.atomic import append_records
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.bookkeeping import AGENT_NAME, CUSTOM_TITLE, TAG, label
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.records import Record

MAX_LENGTH = 200  # characters of a title or a tag: what is longer nobody types
MAX_PASSES = 10  # how often the SDK cleans a tag: what it takes out may join what stood apart
IS_OPEN = (
    "A client may have it open ({why}), and may write what it knew again. In Claude Code, "
    "type /rename instead."
)

_LOCATORS = re.compile(
    r"latest(?:~\d*)?|[0-9a-f-]{4,36}|\d+|#\d+|pr:#?\d+|(?:tag|title):.*|https?://.*|.*\.jsonl|~?/.*|-.*",
    re.IGNORECASE | re.DOTALL,
)
"""Words that may name another session in another way: an id or its beginning, a path, a pull request; or an option."""

_UNSEEN = frozenset(
    {"Cf", "Co", "Cn"}
)  # the SDK takes these out of tags: format, private use, unassigned


class LabelChange(NamedTuple):
    """What a session was and will be called, ``""`` for no tag.

    No ``records`` where it is called so already.
    """

    session: SessionFile
    old: str
    new: str
    records: tuple[Record, ...]
    warnings: tuple[str, ...]


def plan_title(
    session: SessionFile, title: str, where: Where, *, force: bool = False
) -> LabelChange:
    """Decide on a new title; nothing is written.

    Beside the title, the name that clients from 2.1.112 show above the input box. UsageError if it
    can't be a title or be renamed; TitleTaken where another session of the project has it, unless
    ``force``.
    """
    new = _as_title(title)
    ends = _ends_of_own_session(session, where)
    if not force:
        others = []
        for other in sessions_in(os.path.dirname(session.path)):
            if other.path != session.path:
                others.append(other)
        taken = sessions_titled(new, others)
        if taken:
            if len(taken) > 1:
                more = f" and {len(taken) - 1} more"
            else:
                more = ""
            raise TitleTaken(
                f"'{new}' is the title of {taken[0].session_id}{more} already",
                "Choose another, rename that one first, or add --force: then the title names both.",
            )
    records = []
    if ends.custom_title != new:
        records.append(label(CUSTOM_TITLE, new, session.session_id))
    if ends.agent_name != new:
        records.append(label(AGENT_NAME, new, session.session_id))
    return _label_change(session, ends.title, new, records, where)


def plan_tag(session: SessionFile, tag: str, where: Where) -> LabelChange:
    """Decide on a new tag, ``""`` for none; nothing is written.

    UsageError if it can't be one, or be set.
    """
    new = _as_tag(tag) if tag else ""
    ends = _ends_of_own_session(session, where)
    records = []
    if ends.tag != new:
        records.append(label(TAG, new, session.session_id))
    return _label_change(session, ends.tag, new, records, where)


def write_label(change: LabelChange) -> None:
    """Append the records of a change, if any.

    WriteFailed where that can't be done, or was undone at once.
    """
    path = change.session.path
    if not change.records:
        return
    append_records(path, [orjson.dumps(record) for record in change.records])
    now = HeadTail(path)
    held = {CUSTOM_TITLE: now.custom_title, AGENT_NAME: now.agent_name, TAG: now.tag}
    if any(held[record["type"]] != change.new for record in change.records):
        raise WriteFailed(
            f"Another program gave {path} another name at the same moment",
            "Look at it, and run the command again.",
        )


def _label_change(
    session: SessionFile, old: str, new: str, records: list[Record], where: Where
) -> LabelChange:
    why = why_session_is_open(session, where) if records else ""
    warnings = (IS_OPEN.format(why=why),) if why else ()
    return LabelChange(session, old, new, tuple(records), warnings)


def _ends_of_own_session(session: SessionFile, where: Where) -> HeadTail:
    """The head and tail of a session that may be added to.

    UsageError, OnlyKept, WriteFailed, SessionNotFound.
    """
    require_own(session, where)
    if not is_session_file(session.path):
        raise UsageError(
            f"{session.path} is not a session's own file",
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
        raise UsageError("This is a sub-agent's transcript", "Name the session that it belongs to.")
    return ends


def _as_title(text: str) -> str:
    return _usable_label(plain_line(_utf8_text(text)).strip(), "title")


def _as_tag(text: str) -> str:
    """A tag as the SDK writes it: NFKC, and nothing in it that can't be seen.

    UsageError where nothing is left.
    """
    tag = _utf8_text(text)
    for _ in range(MAX_PASSES):
        before, normal = tag, unicodedata.normalize("NFKC", tag)
        tag = "".join(c for c in normal if unicodedata.category(c) not in _UNSEEN)
        if tag == before:
            break
    return _usable_label(plain_line(tag).strip(), "tag")


def _utf8_text(text: str) -> str:
    if text != replace_surrogates(text):
        raise UsageError(
            "That is not UTF-8 text", "Type it again, in a terminal that speaks UTF-8."
        )
    return text


def _usable_label(text: str, what: str) -> str:
    """The text. UsageError where it is empty or too long, and where it may name another session in another way."""
    if not text:
        raise UsageError(f"An empty {what}", "Give at least one character that can be seen.")
    if len(text) > MAX_LENGTH:
        raise UsageError(f"A {what} of {len(text):,} characters", f"Give at most {MAX_LENGTH}.")
    if _LOCATORS.fullmatch(text):
        raise UsageError(
            (
                f"'{text}' can't be a {what}: as a locator it reads as an id, a path, an "
                "option or something else"
            ),
            "Choose other words, or add one.",
        )
    return text
