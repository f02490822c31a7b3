"""The forms of a locator: an id, a path, a title, a tag, ``latest~2``, ``#72``.

One resolver each, tried in order.

A locator is data: it never reaches a path before it has the shape of an id, unless it was typed as
a path. Of the sessions that it may mean, newest first, the names that each goes by are read once;
they are sifted before any record is parsed: both ends of each file are searched as bytes, at a
tenth of the cost.
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
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import (
    agent_at,
    agent_of,
    asking_session,
    ends_of,
    homes_of_others,
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
"""What stands in the lines that a session can be named by, and hardly elsewhere: quotes within text are escaped."""

_CUSTOM = re.compile(rb"""^\{.*"customTitle":\s?"[^"]""", re.MULTILINE)
_ADDED = re.compile(
    r" · (?:clear|handoff)\Z"
)  # what a title carried over by /clear has in no line of its file
_CLEARED = re.compile(rb'"customTitle":\s?""')
_TITLE = re.compile(rb"""^\{.*"(?:customTitle|aiTitle)":\s?"[^"]""", re.MULTILINE)


class Facts(NamedTuple):
    """What a session may be named by; ``listed`` is whether a listing shows it.

    ``pulls`` are numbers and addresses.
    """

    titles: frozenset[str]
    tag: str
    pulls: frozenset[str]
    listed: bool


class Surroundings:
    """Where words were typed, and what was already read there."""

    def __init__(self, cwd: str, where: Where) -> None:
        self.cwd = cwd
        self.where = where
        self.store = store_of(where)
        self._facts: dict[str, Facts | None] = {}
        self._names: dict[str, bytes] = {}
        self._sifted: dict[tuple[re.Pattern[bytes], bool], list[SessionFile]] = {}

    @cached_property
    def projects(self) -> list[str]:
        """The names of the project folders of the working directory."""
        return project_folder_names(self.cwd, self.where, self.store.projects)

    @property
    def hidden(self) -> str:
        """A remedy's last sentences where something can't be looked into; ``""`` where all can."""
        return where_hidden(self.store.hidden(), self.store.linked())

    @cached_property
    def near(self) -> list[SessionFile]:
        """The sessions in the project folders of the working directory, newest first.

        Keys collide.
        """
        return self.store.sessions(self.projects)

    def nearest_copy(self, copies: Sequence[SessionFile]) -> SessionFile:
        """Of one session's copies, newest first, the one that lies in this project, else the newest."""
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
        """The sessions whose ends match ``pattern`` and that fit: those of this project, else those of all others."""
        near = self._fitting(pattern, fits, near=True)
        here = []
        for session in near:
            if self.is_of_this_folder(session):
                here.append(session)
        return here or newest_first([*near, *self._fitting(pattern, fits, near=False)])

    def is_of_this_folder(self, session: SessionFile) -> bool:
        """Whether a session is of the working directory, and not of one with the same key."""
        try:
            return ends_belong_to_folder(ends_of(session, self.where), self.cwd)
        except SessionNotFound:
            return False  # deleted since it was listed

    def _naming(self, session: SessionFile) -> bytes:
        if session.agent == NAME:
            return naming_lines(session)
        return agent_of(session, self.where).naming(session.path)

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
            with contextlib.suppress(SessionNotFound):  # deleted since it was listed
                ends = ends_of(session, self.where)
                self._facts[session.path] = Facts(
                    titles_of(ends), ends.tag, ends.pull_requests, ends.is_listed
                )
        return self._facts[session.path]


def candidate_rows(sessions: Iterable[SessionFile], where: Where) -> list[dict[str, object]]:
    """Rows that let a person choose between sessions, in the order given.

    Each title is a locator itself.
    """
    rows: list[dict[str, object]] = []
    for session in sessions:
        with contextlib.suppress(SessionNotFound):  # deleted since the folder was listed
            row = {"session_id": session.session_id, "title": ends_of(session, where).title}
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
    """The sessions in whose ends a line that names them matches ``pattern``, which sees small letters alone.

    Tags and pull requests are looked for in the last 64 KB, where clients keep them, titles at both
    ends. What ``read`` holds by path is not read again, and what was read is added to it.
    """
    sifted = []
    for session in sessions:
        if session.path not in read:
            read[session.path] = (naming or naming_lines)(session)
        if pattern.search(read[session.path]):
            sifted.append(session)
    return sifted


def sessions_titled(title: str, sessions: Iterable[SessionFile]) -> list[SessionFile]:
    """The sessions whose custom, generated or derived title is exactly ``title``."""
    return [
        session
        for session in sessions_matching(as_written(title), sessions, {})
        if title in _titles_at(session.path)
    ]


def titles_of(ends: HeadTail) -> frozenset[str]:
    """The titles that a session answers to: its own custom one as it is, and the line that listings show."""
    return frozenset({"" if ends.is_carried_over else ends.custom_title, ends.title}) - {""}


def _titles_at(path: str) -> frozenset[str]:
    try:
        return titles_of(HeadTail(path))
    except SessionNotFound:
        return frozenset()  # deleted since the folder was listed


def as_written(words: str) -> re.Pattern[bytes]:
    """What a file matches that holds these words in one string, however it was escaped: the plain ones in order."""
    plain = []
    for word in re.findall("[0-9A-Za-z]+", _ADDED.sub("", words)):
        plain.append(word.lower().encode())
    if words.startswith("/"):
        plain = plain[:1]  # a slash command is stored in pieces
    between = rb"""(?:[^0-9a-z"\\]|\\u[0-9a-f]{4}|\\.)+"""
    return re.compile(between.join(plain))


def naming_lines(session: SessionFile) -> bytes:
    """The lines that may name a session, in small letters.

    By the fewest calls, for there may be thousands.
    """
    try:
        descriptor = os.open(session.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""  # gone since it was listed
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
            if cleared or not _TITLE.search(lines):  # then a summary or a prompt stands for one
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


MIN_PREFIX = 4  # characters of an id that a prefix needs; fewer would fit by chance
MIN_PART = (
    3  # bytes of a title that a part of it needs: three letters, or one that writes a whole word
)

SEEN = "See resume-hooks sessions for what there is."

MOST_CANDIDATES = 20  # sessions that are shown of those that words fit
_HEX = frozenset("0123456789abcdef-")
_LATEST = re.compile(r"latest(?:~([0-9]{0,6}))?", re.IGNORECASE)
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PULL_ADDRESS = re.compile(
    r"(https?://[^/?#\s]+/[^/?#\s]+/[^/?#\s]+/pull/[0-9]{1,9})(?:[/?#]\S*)?", re.IGNORECASE
)
_PULL_NUMBER = re.compile(r"(?:#|pr:#?)([0-9]{1,9})", re.IGNORECASE)

IMPORT_ADDRESS = "curl URL | resume-hooks import -"  # no verb fetches an address

Resolver = Callable[[str, Surroundings], SessionFile | None]
"""One form of a locator: the session that the words name in it; None if they don't.

AmbiguousLocator where they name several, another ResumeHooksError where no other form may be tried.
"""


def by_latest(words: str, around: Surroundings) -> SessionFile | None:
    """``latest``, and ``latest~2`` for the second before it.

    The word is never a title: ``title:latest`` is.
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
    """A full id, in any project; of several copies the one in this project, else the newest."""
    session_id = words.lower()
    if not is_session_id(session_id):
        return None
    session = around.store.find(session_id)
    if session is not None:
        return around.nearest_copy([session, *around.store.sessions(around.projects, session_id)])
    missing = f"No session {words} under {around.where.projects}"
    if linked := around.store.linked(session_id):
        raise SessionNotFound(f"{missing} itself", where_linked(linked))
    raise SessionNotFound(missing, f"Was it deleted after 30 days?{around.hidden}")


def by_path(words: str, around: Surroundings) -> SessionFile | None:
    """The path of a .jsonl file, or any with a slash.

    Titles may hold slashes too, so other words may still be a title.

    In a model's shell, which runs our verbs unasked, only of a transcript: UsageError for other
    files.
    """
    path = typed_path(words, around)
    if path is None:
        return None
    try:
        if "CLAUDECODE" in around.where.environ:
            _refuse_others_files(path, around.where)
        return agent_at(path, around.where).session(path)
    except SessionNotFound:
        return None


def by_prefix(words: str, around: Surroundings) -> SessionFile | None:
    """Four or more characters that one id alone begins with."""
    prefix = words.lower()
    if len(prefix) < MIN_PREFIX or not _HEX.issuperset(prefix):
        return None
    return _only_session(words, around.store.sessions(prefix=prefix), around)


def by_title(words: str, around: Surroundings) -> SessionFile | None:
    """An exact title, also as ``title:words``; one of this project before all others."""
    title = text_after_prefix("title", words)
    return _only_session(
        words, around.nearest(as_written(title), lambda facts: title in facts.titles), around
    )


def by_tag(words: str, around: Surroundings) -> SessionFile | None:
    """A tag; capitals don't matter.

    ``tag:words`` is that, or the whole of a title, and nothing else.
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
    """A part of the title of one session that a listing shows.

    Capitals don't matter, and a whole title comes first.
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
    """A pull request that the client linked: ``#72``, ``pr:72`` or its address."""
    if not (pull := pull_of(named or words)):
        return None
    linked = re.compile(rb'"prnumber":\s?%d\b' % int(pull.rpartition("/")[2]))
    return _only_session(words, around.nearest(linked, lambda facts: pull in facts.pulls), around)


def by_address(words: str, around: Surroundings) -> SessionFile | None:  # noqa: ARG001 - as all resolvers
    """An address names no session: UsageError says how to import what it leads to."""
    if _PULL_ADDRESS.fullmatch(words):
        raise SessionNotFound("No session is linked to this pull request", SEEN)
    if is_address(words):
        raise UsageError("An address names no session before it is brought in", IMPORT_ADDRESS)
    return None


def by_bare_number(words: str, around: Surroundings) -> SessionFile | None:
    """The number of a pull request alone, where it is nothing else."""
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
    """Whether words are an address, of whatever scheme, rather than a file or a title."""
    return _ADDRESS.match(words) is not None


def is_one_form(words: str) -> bool:
    """Whether words are of a form that is nothing else: an id, a path, an address, latest, a tag, a pull request."""
    small = words.lower()
    named = (
        small.endswith(TRANSCRIPT_SUFFIX)
        or "://" in small
        or small.startswith(("latest", "tag:", "title:"))
    )
    return named or is_session_id(small) or _PULL_NUMBER.fullmatch(words) is not None


def current_session(around: Surroundings) -> SessionFile | None:
    """The session of the client that runs us, or None outside of one."""
    session_id = around.where.environ.get("CLAUDE_CODE_SESSION_ID", "") or asking_session(
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
    """What to say of words that name nothing in any form."""
    path = typed_path(words, around)
    if path is not None:
        try:
            agent_at(path, around.where).session(path)
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
    """The pull request that words name, its address or its number; ``""`` for none."""
    if address := _PULL_ADDRESS.fullmatch(words):
        return address[1].lower()
    number = _PULL_NUMBER.fullmatch(words)
    return str(int(number[1])) if number else ""  # nothing is called #0072


def text_after_prefix(form: str, words: str) -> str:
    """The text after the prefix ``<form>:``, such as ``tag:``; the whole text without one."""
    named, colon, rest = words.partition(":")
    if colon and named.lower() == form:
        return rest.strip()
    return words


def typed_path(words: str, around: Surroundings) -> str | None:
    """The path that words are; None where they have not the form of one."""
    if not (words.endswith(TRANSCRIPT_SUFFIX) or os.sep in words):
        return None
    return absolute_path(words, around.cwd)


def absolute_path(words: str, cwd: str) -> str:
    """A path as it was typed in a folder, a home in it expanded."""
    try:
        return os.path.join(cwd, os.path.expanduser(words))
    except ValueError:  # ~ and a NUL, which is no user's name
        return os.path.join(cwd, words)


def _refuse_others_files(path: str, where: Where) -> None:
    """UsageError for a path outside the transcripts: a model's shell runs our verbs unasked, so they open no more."""
    homes = (where.projects, vault_folder(where), unpacked_folder(where), *homes_of_others(where))
    below = tuple(os.path.realpath(home) + os.sep for home in homes)
    inside = os.path.realpath(path).startswith(below) and path.endswith(TRANSCRIPT_SUFFIX)
    if os.path.lexists(path) and (not inside or os.path.islink(path)):
        remedy = "Other files are for the user to open, in a shell."
        raise UsageError(f"{path} is not a transcript under {where.projects}", remedy)
