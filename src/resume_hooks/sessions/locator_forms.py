"""The forms of a locator: an id, a path, a title, a tag, ``latest~2``, ``#72``.

Each form has a resolver; they are tried in order.

A locator is untrusted: it becomes part of a path only if it has the shape of an id, or was typed as
a path. The names of the candidate sessions, newest first, are read once. They are filtered before
any record is parsed, by searching both ends of each file as bytes, at a tenth of the cost.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import NamedTuple

import orjson

from resume_hooks import clock
from resume_hooks.errors import AmbiguousLocator, SessionNotFound, UsageError
from resume_hooks.paths import (
    TRANSCRIPT_SUFFIX,
    Where,
    is_session_id,
    project_folder_names,
    read_bytes_at,
)
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import (
    agent_of,
    agent_of_path,
    calling_session_id,
    folders_of_other_agents,
    read_ends,
    store_of,
)
from resume_hooks.sessions.archived.layout import unpacked_folder, vault_folder
from resume_hooks.sessions.session_files import (
    SessionFile,
    belongs_to_folder,
    ends_belong_to_folder,
    latest_session,
    newest_first,
    where_hidden,
    where_linked,
)
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import REACH, HeadTail

_KINDS = (b'-title"', b'"pr-link"', b'"tag"')
"""Bytes in the lines that can name a session, and rarely elsewhere, because quotes within text are escaped."""

_CUSTOM = re.compile(rb"""^\{.*"customTitle":\s?"[^"]""", re.MULTILINE)
_ADDED = re.compile(
    r" · (?:clear|handoff)\Z"
)  # the suffix of a title carried over by /clear, which is not in its file
_CLEARED = re.compile(rb'"customTitle":\s?""')
_TITLE = re.compile(rb"""^\{.*"(?:customTitle|aiTitle)":\s?"[^"]""", re.MULTILINE)


class Facts(NamedTuple):
    """The names of a session; ``listed`` is whether a listing shows it.

    ``pulls`` are pull requests by number and address.
    """

    titles: frozenset[str]
    tag: str
    pulls: frozenset[str]
    listed: bool


class Surroundings:
    """The folder where words were typed, with its sessions and their cached names."""

    def __init__(self, cwd: str, where: Where) -> None:
        self.cwd = cwd
        self.where = where
        self.store = store_of(where)
        self._facts: dict[str, Facts | None] = {}
        self._names: dict[str, bytes] = {}
        self._sifted: dict[tuple[re.Pattern[bytes], bool], list[SessionFile]] = {}

    @cached_property
    def projects(self) -> list[str]:
        """The names of the working directory's project folders."""
        return project_folder_names(self.cwd, self.where, self.store.projects)

    @property
    def hidden(self) -> str:
        """The last sentences of a remedy about folders that can't be read; ``""`` if all can."""
        return where_hidden(self.store.unreadable_folders(), self.store.linked_paths())

    @cached_property
    def near(self) -> list[SessionFile]:
        """The sessions in the working directory's project folders, newest first.

        Some may belong to another directory with the same key.
        """
        return self.store.sessions(self.projects)

    def nearest_copy(self, copies: Sequence[SessionFile]) -> SessionFile:
        """Return the copy of a session in this project, or the newest one; ``copies`` are newest first."""
        if len({copy.path for copy in copies}) == 1:
            return copies[0]
        near = (
            copy for copy in copies if os.path.basename(os.path.dirname(copy.path)) in self.projects
        )
        return next((copy for copy in near if belongs_to_folder(copy.path, self.cwd)), copies[0])

    @cached_property
    def far(self) -> list[SessionFile]:
        """All other sessions, newest first."""
        known = {session.path for session in self.near}
        return [session for session in self.store.sessions() if session.path not in known]

    def nearest(
        self, pattern: re.Pattern[bytes], fits: Callable[[Facts], bool]
    ) -> list[SessionFile]:
        """Return the matching sessions (by ``pattern``, then ``fits``): those of this project, or else all others."""
        near = self._fitting(pattern, fits, near=True)
        here = []
        for session in near:
            if self.is_of_this_folder(session):
                here.append(session)
        return here or newest_first([*near, *self._fitting(pattern, fits, near=False)])

    def is_of_this_folder(self, session: SessionFile) -> bool:
        """Check whether a session belongs to the working directory, not to one with the same key."""
        try:
            return ends_belong_to_folder(read_ends(session, self.where), self.cwd)
        except SessionNotFound:
            return False  # deleted since the listing

    def _naming(self, session: SessionFile) -> bytes:
        if session.agent == CLAUDE_NAME:
            return naming_lines(session)
        return agent_of(session, self.where).read_naming_lines(session.path)

    def _fitting(
        self, pattern: re.Pattern[bytes], fits: Callable[[Facts], bool], *, near: bool
    ) -> list[SessionFile]:
        if (pattern, near) not in self._sifted:
            sessions = self.near if near else self.far
            self._sifted[pattern, near] = sessions_matching(
                pattern, sessions, self._names, self._naming
            )
        sifted = self._sifted[pattern, near]
        return [
            session
            for session in sifted
            if (facts := self._facts_of(session)) is not None and fits(facts)
        ]

    def _facts_of(self, session: SessionFile) -> Facts | None:
        if session.path not in self._facts:
            self._facts[session.path] = None
            with contextlib.suppress(SessionNotFound):  # deleted since the listing
                ends = read_ends(session, self.where)
                self._facts[session.path] = Facts(
                    titles_of(ends), ends.tag, ends.pull_requests, ends.is_listed
                )
        return self._facts[session.path]


def candidate_rows(sessions: Iterable[SessionFile], where: Where) -> list[dict[str, object]]:
    """Return rows that help a user to choose between sessions, in the given order.

    Each title is itself a locator.
    """
    rows: list[dict[str, object]] = []
    for session in sessions:
        with contextlib.suppress(SessionNotFound):  # deleted since the listing
            row = {"session_id": session.session_id, "title": read_ends(session, where).title}
            rows.append(
                {**row, "ended": clock.from_epoch(session.mtime), "session_file": session.path}
            )
    return rows


def sessions_matching(
    pattern: re.Pattern[bytes],
    sessions: Iterable[SessionFile],
    read: dict[str, bytes],
    naming: Callable[[SessionFile], bytes] | None = None,
) -> list[SessionFile]:
    """Return the sessions with a naming line at their ends that matches ``pattern``; the lines are in lower case.

    Tags and pull requests are searched in the last 64 KB, where clients keep them, titles at both
    ends. ``read`` caches the lines by path.
    """
    sifted = []
    for session in sessions:
        if session.path not in read:
            read[session.path] = (naming or naming_lines)(session)
        if pattern.search(read[session.path]):
            sifted.append(session)
    return sifted


def sessions_titled(title: str, sessions: Iterable[SessionFile]) -> list[SessionFile]:
    """Return the sessions whose custom, generated or derived title is exactly ``title``."""
    return [
        session
        for session in sessions_matching(as_written(title), sessions, {})
        if title in _titles_at(session.path)
    ]


def titles_of(ends: HeadTail) -> frozenset[str]:
    """Return the titles that match a session: its own custom title, and the title that listings show."""
    return frozenset({"" if ends.is_carried_over else ends.custom_title, ends.title}) - {""}


def _titles_at(path: str) -> frozenset[str]:
    try:
        return titles_of(HeadTail(path))
    except SessionNotFound:
        return frozenset()  # deleted since the listing


def as_written(words: str) -> re.Pattern[bytes]:
    """Return a pattern that matches these words in a string, whatever its escapes: their plain letters in order."""
    plain = []
    for word in re.findall("[0-9A-Za-z]+", _ADDED.sub("", words)):
        plain.append(word.lower().encode())
    if words.startswith("/"):
        plain = plain[:1]  # a slash command is stored in pieces
    between = rb"""(?:[^0-9a-z"\\]|\\u[0-9a-f]{4}|\\.)+"""
    return re.compile(between.join(plain))


def naming_lines(session: SessionFile) -> bytes:
    """Return the lines that may name a session, in lower case.

    Use as few calls as possible, because there may be thousands of sessions.
    """
    try:
        descriptor = os.open(session.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""  # deleted since the listing
    try:
        tail = read_bytes_at(descriptor, REACH, max(0, session.size - REACH))
        lines = _lines_with(_KINDS, tail)
        cleared = _CLEARED.search(lines)
        if cleared or not _CUSTOM.search(lines):
            if session.size > REACH:
                head = read_bytes_at(descriptor, REACH, 0)
            else:
                head = tail
            lines += _lines_with(_KINDS[:1], head)
            if cleared or not _TITLE.search(lines):  # then a summary or a prompt serves as title
                lines += orjson.dumps(HeadTail(session.path).title)
    except (OSError, SessionNotFound):
        return b""
    finally:
        os.close(descriptor)
    return lines.lower()


def _lines_with(kinds: Iterable[bytes], region: bytes) -> bytes:
    lines = []
    for kind in kinds:
        place = region.find(kind)
        while place >= 0:
            end = region.find(b"\n", place)
            end = len(region) if end < 0 else end
            lines.append(region[region.rfind(b"\n", 0, place) + 1 : end] + b"\n")
            place = region.find(kind, end)
    return b"".join(lines)


MIN_PREFIX = 4  # the length of an id's prefix; shorter ones would match by chance
MIN_PART = 3  # bytes of a title's part: three letters, or one character that is a whole word

SEEN = "See resume-hooks sessions for what there is."

MOST_CANDIDATES = 20  # the most candidates to show for an ambiguous locator
_HEX = frozenset("0123456789abcdef-")
_LATEST = re.compile(r"latest(?:~([0-9]{0,6}))?", re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PULL_ADDRESS = re.compile(
    r"(https?://[^/?#\s]+/[^/?#\s]+/[^/?#\s]+/pull/[0-9]{1,9})(?:[/?#]\S*)?", re.IGNORECASE
)
_PULL_NUMBER = re.compile(r"(?:#|pr:#?)([0-9]{1,9})", re.IGNORECASE)

IMPORT_ADDRESS = "curl URL | resume-hooks import -"  # no verb downloads an address

Resolver = Callable[[str, Surroundings], SessionFile | None]
"""A form of a locator: a function that returns the session for the words, or None.

It raises AmbiguousLocator for several sessions, or another ResumeHooksError if no other form may be
tried.
"""


def by_latest(words: str, around: Surroundings) -> SessionFile | None:
    """Resolve ``latest``, and ``latest~2`` for the second session before it.

    The word is never a title; ``title:latest`` is.
    """
    match = _LATEST.fullmatch(words)
    if match is None:
        return None
    back = int(match[1] or 1) if match[1] is not None else 0
    current = current_session(around)
    if current is None:
        return latest_session(around.cwd, around.where, back=back)
    if back:
        return latest_session(around.cwd, around.where, back=back - 1, but=current.session_id)
    return current


def by_id(words: str, around: Surroundings) -> SessionFile | None:
    """Resolve a full id in any project; prefer the copy in this project, then the newest."""
    session_id = words.lower()
    if not is_session_id(session_id):
        return None
    session = around.store.find(session_id)
    if session is not None:
        return around.nearest_copy([session, *around.store.sessions(around.projects, session_id)])
    missing = f"No session {words} under {around.where.projects}"
    if linked := around.store.linked_paths(session_id):
        raise SessionNotFound(f"{missing} itself", where_linked(linked))
    raise SessionNotFound(missing, f"Was it deleted after 30 days?{around.hidden}")


def by_path(words: str, around: Surroundings) -> SessionFile | None:
    """Resolve the path of a .jsonl file, or any path with a slash.

    Titles may also contain slashes, so a path without a file may still be a title.

    In a model's shell, where verbs run without the user's consent, only transcripts are allowed:
    UsageError for other files.
    """
    path = typed_path(words, around)
    if path is None:
        return None
    try:
        if "CLAUDECODE" in around.where.environ:
            _refuse_others_files(path, around.where)
        return agent_of_path(path, around.where).open_session(path)
    except SessionNotFound:
        return None


def by_prefix(words: str, around: Surroundings) -> SessionFile | None:
    """Resolve a unique prefix of an id, with at least four characters."""
    prefix = words.lower()
    if len(prefix) < MIN_PREFIX or not _HEX.issuperset(prefix):
        return None
    return _only_session(words, around.store.sessions(prefix=prefix), around)


def by_title(words: str, around: Surroundings) -> SessionFile | None:
    """Resolve an exact title, also as ``title:words``; this project's sessions come first."""
    title = text_after_prefix("title", words)
    return _only_session(
        words, around.nearest(as_written(title), lambda facts: title in facts.titles), around
    )


def by_tag(words: str, around: Surroundings) -> SessionFile | None:
    """Resolve a tag, ignoring case.

    ``tag:words`` can only be a tag or a whole title.
    """
    tag = text_after_prefix("tag", words)
    sessions = around.nearest(
        as_written(tag), lambda facts: facts.tag.casefold() == tag.casefold() != ""
    )
    if not sessions and tag != words:
        raise SessionNotFound(
            f"No session has the tag '{collapse_line(plain_line(tag), 80)}'", SEEN
        )
    return _only_session(words, sessions, around)


def by_part_of_title(words: str, around: Surroundings) -> SessionFile | None:
    """Resolve a part of a title that is unique among listed sessions.

    Ignore case; a whole title comes first.
    """
    title = text_after_prefix("title", words)
    part = title.casefold()
    if len(part.encode("utf-8", "replace")) < MIN_PART:
        return None
    ends = as_written(title)
    whole = around.nearest(
        ends, lambda facts: facts.listed and any(t.casefold() == part for t in facts.titles)
    )
    some = whole or around.nearest(
        ends, lambda facts: facts.listed and any(part in t.casefold() for t in facts.titles)
    )
    return _only_session(words, some, around)


def by_pull_request(words: str, around: Surroundings, named: str = "") -> SessionFile | None:
    """Resolve a pull request that the client linked: ``#72``, ``pr:72`` or its address."""
    if not (pull := pull_of(named or words)):
        return None
    linked = re.compile(rb'"prnumber":\s?%d\b' % int(pull.rpartition("/")[2]))
    return _only_session(words, around.nearest(linked, lambda facts: pull in facts.pulls), around)


def by_address(words: str, around: Surroundings) -> SessionFile | None:  # noqa: ARG001 - as all resolvers
    """Reject an address: UsageError explains how to import its content."""
    if _PULL_ADDRESS.fullmatch(words):
        raise SessionNotFound("No session is linked to this pull request", SEEN)
    if is_address(words):
        raise UsageError("An address must be imported first", IMPORT_ADDRESS)
    return None


def by_bare_number(words: str, around: Surroundings) -> SessionFile | None:
    """Resolve the bare number of a pull request, as the last form."""
    return by_pull_request(words, around, f"#{words}")


RESOLVERS: tuple[Resolver, ...] = (
    by_latest,
    by_id,
    by_path,
    by_pull_request,
    by_prefix,
    by_title,
    by_address,
    by_tag,
    by_part_of_title,
    by_bare_number,
)
"""The forms in the order in which they are tried."""


def is_address(words: str) -> bool:
    """Check whether words are an address with any scheme, rather than a file or a title."""
    return _ADDRESS.match(words) is not None


def is_one_form(words: str) -> bool:
    """Check whether words can have only one form: an id, a path, an address, latest, a tag, a pull request."""
    small = words.lower()
    named = (
        small.endswith(TRANSCRIPT_SUFFIX)
        or "://" in small
        or small.startswith(("latest", "tag:", "title:"))
    )
    return named or is_session_id(small) or _PULL_NUMBER.fullmatch(words) is not None


def current_session(around: Surroundings) -> SessionFile | None:
    """Return the session of the client that runs us, or None outside any client."""
    session_id = around.where.environ.get("CLAUDE_CODE_SESSION_ID", "") or calling_session_id(
        around.where
    )
    if not is_session_id(session_id):
        return None
    session = around.store.find(session_id)
    if session is None:
        raise SessionNotFound(
            f"This session ({session_id}) has no file yet",
            f"Ask something in it first.{around.hidden}",
        )
    return session


def not_found_error(words: str, around: Surroundings) -> SessionNotFound:
    """Return the error for words without a match in any form."""
    path = typed_path(words, around)
    if path is not None:
        try:
            agent_of_path(path, around.where).open_session(path)
        except SessionNotFound as error:
            return error
    return SessionNotFound(
        (
            "No session is called "
            f"'{collapse_line(plain_line(words), 80)}'{', and no id starts so' if len(words) > 3 else ''}"
        ),
        "Use a session id or four or more of its first characters, a title or three letters of one, a tag, latest, "
        f"'#72' for a pull request, or the path of a .jsonl file. {SEEN}{around.hidden}",
    )


def _only_session(
    words: str, sessions: list[SessionFile], around: Surroundings
) -> SessionFile | None:
    copies: dict[str, list[SessionFile]] = {}
    for session in sessions:
        copies.setdefault(session.session_id, []).append(session)
    if len(copies) > 1:
        shown = []
        for of_one in islice(copies.values(), MOST_CANDIDATES):
            shown.append(around.nearest_copy(of_one))
        raise AmbiguousLocator(words, candidate_rows(shown, around.where), len(copies))
    if sessions:
        return around.nearest_copy(sessions)
    return None


def pull_of(words: str) -> str:
    """Return the address or number of the pull request in the words, or ``""``."""
    if address := _PULL_ADDRESS.fullmatch(words):
        return address[1].lower()
    number = _PULL_NUMBER.fullmatch(words)
    return str(int(number[1])) if number else ""  # drops leading zeros, as in #0072


def text_after_prefix(form: str, words: str) -> str:
    """Return the text after the prefix ``<form>:``, such as ``tag:``; the whole text without one."""
    named, colon, rest = words.partition(":")
    if colon and named.lower() == form:
        return rest.strip()
    return words


def typed_path(words: str, around: Surroundings) -> str | None:
    """Return the words as an absolute path, or None if they do not look like a path."""
    if not (words.endswith(TRANSCRIPT_SUFFIX) or os.sep in words):
        return None
    return absolute_path(words, around.cwd)


def absolute_path(words: str, cwd: str) -> str:
    """Return the absolute path for a path typed in a folder; expand ``~``."""
    try:
        return os.path.join(cwd, os.path.expanduser(words))
    except ValueError:  # ~ and a NUL
        return os.path.join(cwd, words)


def _refuse_others_files(path: str, where: Where) -> None:
    """Raise UsageError for a path outside the transcripts, for a model's shell, where verbs run without consent."""
    homes = (
        where.projects,
        vault_folder(where),
        unpacked_folder(where),
        *folders_of_other_agents(where),
    )
    below = tuple(os.path.realpath(home) + os.sep for home in homes)
    inside = os.path.realpath(path).startswith(below) and path.endswith(TRANSCRIPT_SUFFIX)
    if os.path.lexists(path) and (not inside or os.path.islink(path)):
        remedy = "Other files are for the user to open, in a shell."
        raise UsageError(f"{path} is not a transcript under {where.projects}", remedy)
