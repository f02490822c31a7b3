"""Define the forms of a locator: an id, a path, a title, a tag, ``latest~2``, ``#72``.

Each form has a resolver, a function that looks for the session. The resolvers are called in order.

A locator is untrusted. It becomes part of a path only if it has the form of an id, or if the user
typed it as a path. The titles, tags and pull requests of sessions are read only once for all
resolvers. For each file, the beginning and the end are searched for the locator's words, and their
records are parsed only if the words occur. This is ten times as fast as parsing every file.
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
    agent_of_path,
    agent_of_session,
    calling_session_id,
    folders_of_other_agents,
    read_ends,
    store_of_agents,
)
from resume_hooks.sessions.archived.layout import unpacked_folder, vault_folder
from resume_hooks.sessions.session_files import (
    SessionFile,
    belongs_to_folder,
    ends_belong_to_folder,
    hidden_folders_remedy,
    latest_session,
    linked_paths_remedy,
    sort_newest_first,
)
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.head_tail import BYTES_READ_AT_EACH_END, HeadTail

_NAME_FIELD_MARKERS = (b'-title"', b'"pr-link"', b'"tag"')
"""Every line that can contain a session's name contains one of these byte strings. They are rare in
ordinary text, because its quotes are escaped."""

_CUSTOM_TITLE_PATTERN = re.compile(rb"""^\{.*"customTitle":\s?"[^"]""", re.MULTILINE)
_DISPLAYED_KIND_SUFFIX_PATTERN = re.compile(
    r" · (?:clear|handoff)\Z"
    # Matches the suffix that is displayed after a title that /clear took over from another session.
    # The session's file contains the title without this suffix.
)
_CLEARED_TITLE_PATTERN = re.compile(rb'"customTitle":\s?""')
_ANY_TITLE_PATTERN = re.compile(rb"""^\{.*"(?:customTitle|aiTitle)":\s?"[^"]""", re.MULTILINE)


class SessionNames(NamedTuple):
    """The names by which a session can be found.

    ``pull_requests`` contains the numbers and addresses of the session's pull requests.
    ``is_listed`` is true if the session is shown in lists.
    """

    titles: frozenset[str]
    tag: str
    pull_requests: frozenset[str]
    is_listed: bool


class LocatorScope:
    """The folder in which a locator was typed, and the sessions to which the locator may refer.

    The names of the sessions are cached.
    """

    def __init__(self, cwd: str, where: Where) -> None:
        self.cwd = cwd
        self.where = where
        self.store = store_of_agents(where)
        self._names_by_path: dict[str, SessionNames | None] = {}
        self._lines_by_path: dict[str, bytes] = {}
        self._candidates_by_pattern: dict[tuple[re.Pattern[bytes], bool], list[SessionFile]] = {}

    @cached_property
    def projects(self) -> list[str]:
        """The names of the project folders for the working directory."""
        return project_folder_names(self.cwd, self.where, self.store.projects)

    @property
    def hidden_folders_note(self) -> str:
        """Sentences about folders that can't be read, to append to a remedy.

        ``""`` if all folders can be read.
        """
        return hidden_folders_remedy(self.store.unreadable_folders(), self.store.linked_paths())

    @cached_property
    def local_sessions(self) -> list[SessionFile]:
        """The sessions in the working directory's project folders, newest first.

        Some may belong to another directory whose project folder has the same name.
        """
        return self.store.sessions(self.projects)

    def preferred_copy(self, copies: Sequence[SessionFile]) -> SessionFile:
        """Return the copy of a session that is in this project, or else the newest copy.

        ``copies`` must be sorted, newest first.
        """
        if len({copy.path for copy in copies}) == 1:
            return copies[0]
        local_copies = (
            copy for copy in copies if os.path.basename(os.path.dirname(copy.path)) in self.projects
        )
        return next(
            (copy for copy in local_copies if belongs_to_folder(copy.path, self.cwd)), copies[0]
        )

    @cached_property
    def other_sessions(self) -> list[SessionFile]:
        """The sessions in all other project folders, newest first."""
        local_paths = {session.path for session in self.local_sessions}
        return [session for session in self.store.sessions() if session.path not in local_paths]

    def find_preferred_sessions(
        self, pattern: re.Pattern[bytes], has_name: Callable[[SessionNames], bool]
    ) -> list[SessionFile]:
        """Return the sessions whose naming lines match ``pattern`` and whose names satisfy ``has_name``.

        If some of these sessions belong to this project, return only those.
        """
        local_matches = self._filter_sessions(pattern, has_name, is_local=True)
        matches = []
        for session in local_matches:
            if self.belongs_to_current_folder(session):
                matches.append(session)
        return matches or sort_newest_first(
            [*local_matches, *self._filter_sessions(pattern, has_name, is_local=False)]
        )

    def belongs_to_current_folder(self, session: SessionFile) -> bool:
        """Check whether a session belongs to the working directory.

        Another directory may have a project folder with the same name.
        """
        try:
            return ends_belong_to_folder(read_ends(session, self.where), self.cwd)
        except SessionNotFound:
            return False  # The file was deleted after it was listed.

    def _read_title_lines(self, session: SessionFile) -> bytes:
        if session.agent == CLAUDE_NAME:
            return read_title_lines(session)
        return agent_of_session(session, self.where).read_title_lines(session.path)

    def _filter_sessions(
        self,
        pattern: re.Pattern[bytes],
        has_name: Callable[[SessionNames], bool],
        *,
        is_local: bool,
    ) -> list[SessionFile]:
        if (pattern, is_local) not in self._candidates_by_pattern:
            sessions = self.local_sessions if is_local else self.other_sessions
            self._candidates_by_pattern[pattern, is_local] = filter_by_name_lines(
                pattern, sessions, self._lines_by_path, self._read_title_lines
            )
        candidates = self._candidates_by_pattern[pattern, is_local]
        return [
            session
            for session in candidates
            if (names := self._read_session_names(session)) is not None and has_name(names)
        ]

    def _read_session_names(self, session: SessionFile) -> SessionNames | None:
        if session.path not in self._names_by_path:
            self._names_by_path[session.path] = None
            # The file may have been deleted since it was listed.
            with contextlib.suppress(SessionNotFound):
                ends = read_ends(session, self.where)
                self._names_by_path[session.path] = SessionNames(
                    session_titles(ends), ends.tag, ends.pull_requests, ends.is_shown_in_lists
                )
        return self._names_by_path[session.path]


def candidate_rows(sessions: Iterable[SessionFile], where: Where) -> list[dict[str, object]]:
    """Return rows that help a user to choose between sessions, in the given order.

    The title in each row can be used as a locator.
    """
    rows: list[dict[str, object]] = []
    for session in sessions:
        with contextlib.suppress(
            SessionNotFound
        ):  # The file may have been deleted since it was listed.
            row = {"session_id": session.session_id, "title": read_ends(session, where).title}
            rows.append(
                {
                    **row,
                    "ended": clock.timestamp_from_epoch(session.mtime),
                    "session_file": session.path,
                }
            )
    return rows


def filter_by_name_lines(
    pattern: re.Pattern[bytes],
    sessions: Iterable[SessionFile],
    lines_by_path: dict[str, bytes],
    read_lines: Callable[[SessionFile], bytes] | None = None,
) -> list[SessionFile]:
    """Return the sessions with a naming line that matches ``pattern``.

    A naming line is a line with a title, a tag or a pull request. It is compared in lower case.
    Titles are searched for at both ends of a file. Tags and pull requests are searched for in the
    last 64 KB, where clients repeat them. ``lines_by_path`` is a cache of the naming lines.
    """
    matches = []
    for session in sessions:
        if session.path not in lines_by_path:
            lines_by_path[session.path] = (read_lines or read_title_lines)(session)
        if pattern.search(lines_by_path[session.path]):
            matches.append(session)
    return matches


def find_sessions_titled(title: str, sessions: Iterable[SessionFile]) -> list[SessionFile]:
    """Return the sessions that have this title.

    A session has up to three titles: one from the user, one from the model, and the one that is
    displayed in lists.
    """
    return [
        session
        for session in filter_by_name_lines(pattern_of_words(title), sessions, {})
        if title in _read_titles(session.path)
    ]


def session_titles(ends: HeadTail) -> frozenset[str]:
    """Return the titles by which a session can be found: its custom title, and the title in lists."""
    return frozenset(
        {"" if ends.is_title_from_previous_session else ends.custom_title, ends.title}
    ) - {""}


def _read_titles(path: str) -> frozenset[str]:
    try:
        return session_titles(HeadTail(path))
    except SessionNotFound:
        return frozenset()  # The file was deleted after it was listed.


def pattern_of_words(words: str) -> re.Pattern[bytes]:
    """Return a pattern that matches the letters and digits of these words in order, in lower case.

    The pattern allows other characters between the words, so that it also matches words that are
    escaped in JSON.
    """
    words_of_text = []
    for word in re.findall("[0-9A-Za-z]+", _DISPLAYED_KIND_SUFFIX_PATTERN.sub("", words)):
        words_of_text.append(word.lower().encode())
    if words.startswith("/"):
        # Search only for the command's name, because the client stores its arguments separately.
        words_of_text = words_of_text[:1]
    separator = rb"""(?:[^0-9a-z"\\]|\\u[0-9a-f]{4}|\\.)+"""
    return re.compile(separator.join(words_of_text))


def read_title_lines(session: SessionFile) -> bytes:
    """Return the lines of a file that may contain a title, a tag or a pull request, in lower case.

    There may be thousands of sessions, so a file is read with as few system calls as possible.
    """
    try:
        descriptor = os.open(session.path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
    except OSError:
        return b""  # The file was deleted after it was listed.
    try:
        tail = read_bytes_at(
            descriptor, BYTES_READ_AT_EACH_END, max(0, session.size - BYTES_READ_AT_EACH_END)
        )
        lines = _find_lines_containing(_NAME_FIELD_MARKERS, tail)
        is_cleared = _CLEARED_TITLE_PATTERN.search(lines)
        if is_cleared or not _CUSTOM_TITLE_PATTERN.search(lines):
            if session.size > BYTES_READ_AT_EACH_END:
                head = read_bytes_at(descriptor, BYTES_READ_AT_EACH_END, 0)
            else:
                head = tail
            lines += _find_lines_containing(_NAME_FIELD_MARKERS[:1], head)
            # If the session has no title, a summary or a prompt serves as the title.
            if is_cleared or not _ANY_TITLE_PATTERN.search(lines):
                lines += orjson.dumps(HeadTail(session.path).title)
    except (OSError, SessionNotFound):
        return b""
    finally:
        os.close(descriptor)
    return lines.lower()


def _find_lines_containing(markers: Iterable[bytes], region: bytes) -> bytes:
    lines = []
    for marker in markers:
        position = region.find(marker)
        while position >= 0:
            end = region.find(b"\n", position)
            end = len(region) if end < 0 else end
            lines.append(region[region.rfind(b"\n", 0, position) + 1 : end] + b"\n")
            position = region.find(marker, end)
    return b"".join(lines)


MIN_ID_PREFIX_CHARACTERS = (
    # The minimum number of characters of an id that a locator must contain. Fewer characters would
    # often match by chance.
    4
)
# Minimum length in bytes of a locator that may match part of a title: three ASCII letters, or one
# character of a script in which a single character can be a word.
MIN_TITLE_PART_BYTES = 3

LIST_SESSIONS_REMEDY = "List the sessions: resume-hooks sessions."

MAX_SUGGESTED_SESSIONS = 20  # maximum number of candidates to show for an ambiguous locator
_ID_CHARACTERS = frozenset("0123456789abcdef-")
_LATEST_LOCATOR_PATTERN = re.compile(r"latest(?:~([0-9]{0,6}))?", re.IGNORECASE)
_ADDRESS_START_PATTERN = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_PULL_REQUEST_ADDRESS_PATTERN = re.compile(
    r"(https?://[^/?#\s]+/[^/?#\s]+/[^/?#\s]+/pull/[0-9]{1,9})(?:[/?#]\S*)?", re.IGNORECASE
)
_PULL_REQUEST_NUMBER_PATTERN = re.compile(r"(?:#|pr:#?)([0-9]{1,9})", re.IGNORECASE)

# The command to suggest if a locator is a web address. The user must download the content, because
# our commands download nothing.
IMPORT_REMEDY = "curl URL | resume-hooks import -"

Resolver = Callable[[str, LocatorScope], SessionFile | None]
"""A function that returns the session to which a locator of one form refers, or None.

AmbiguousLocator is raised if several sessions match. A different ResumeHooksError is raised if the
search must stop because the locator can have no other form.
"""


def resolve_latest(locator: str, scope: LocatorScope) -> SessionFile | None:
    """Resolve ``latest``, or for example ``latest~2`` for the session two before the latest one.

    A session with the title "latest" must be referred to as ``title:latest``.
    """
    match = _LATEST_LOCATOR_PATTERN.fullmatch(locator)
    if match is None:
        return None
    count = int(match[1] or 1) if match[1] is not None else 0
    current = current_session(scope)
    if current is None:
        return latest_session(scope.cwd, scope.where, skip_count=count)
    if count:
        return latest_session(
            scope.cwd,
            scope.where,
            skip_count=count - 1,
            excluded_id=current.session_id,
        )
    return current


def resolve_id(locator: str, scope: LocatorScope) -> SessionFile | None:
    """Resolve a full id. If several copies exist, prefer the copy in this project, then the newest copy."""
    session_id = locator.lower()
    if not is_session_id(session_id):
        return None
    session = scope.store.find(session_id)
    if session is not None:
        return scope.preferred_copy([session, *scope.store.sessions(scope.projects, session_id)])
    message = f"No session {locator} under {scope.where.projects}"
    if linked_paths := scope.store.linked_paths(session_id):
        raise SessionNotFound(f"{message} itself", linked_paths_remedy(linked_paths))
    raise SessionNotFound(
        message,
        f"It may have been deleted, because the client deletes sessions after 30 days.{scope.hidden_folders_note}",
    )


def resolve_path(locator: str, scope: LocatorScope) -> SessionFile | None:
    """Resolve the path of a .jsonl file, or any path with a slash.

    If there is no file at the path, return None, because a title may contain a slash. If the file
    is not a transcript, a verb in a model's shell raises UsageError, because verbs run without
    the user's consent there.
    """
    path = typed_path(locator, scope)
    if path is None:
        return None
    try:
        if "CLAUDECODE" in scope.where.environ:
            _require_path_of_transcript(path, scope.where)
        return agent_of_path(path, scope.where).open_session(path)
    except SessionNotFound:
        return None


def resolve_id_prefix(locator: str, scope: LocatorScope) -> SessionFile | None:
    """Resolve the beginning of an id, which must have at least four characters.

    No other id may begin with the same characters.
    """
    prefix = locator.lower()
    if len(prefix) < MIN_ID_PREFIX_CHARACTERS or not _ID_CHARACTERS.issuperset(prefix):
        return None
    return _choose_single_match(locator, scope.store.sessions(prefix=prefix), scope)


def resolve_title(locator: str, scope: LocatorScope) -> SessionFile | None:
    """Resolve an exact title, with or without the prefix ``title:``.

    Sessions of this project are preferred.
    """
    title = text_after_prefix("title", locator)
    return _choose_single_match(
        locator,
        scope.find_preferred_sessions(pattern_of_words(title), lambda names: title in names.titles),
        scope,
    )


def resolve_tag(locator: str, scope: LocatorScope) -> SessionFile | None:
    """Resolve a tag, with or without the prefix ``tag:``. Case is ignored.

    With the prefix, raise SessionNotFound if no session has the tag.
    """
    tag = text_after_prefix("tag", locator)
    sessions = scope.find_preferred_sessions(
        pattern_of_words(tag), lambda names: names.tag.casefold() == tag.casefold() != ""
    )
    if not sessions and tag != locator:
        raise SessionNotFound(
            f"No session has the tag '{collapse_line(plain_line(tag), 80)}'", LIST_SESSIONS_REMEDY
        )
    return _choose_single_match(locator, sessions, scope)


def resolve_title_part(locator: str, scope: LocatorScope) -> SessionFile | None:
    """Resolve a whole title or a part of a title, ignoring case. A whole title is preferred.

    Only sessions that lists show are considered.
    """
    title = text_after_prefix("title", locator)
    title_part = title.casefold()
    if len(title_part.encode("utf-8", "replace")) < MIN_TITLE_PART_BYTES:
        return None
    pattern = pattern_of_words(title)
    exact_matches = scope.find_preferred_sessions(
        pattern,
        lambda names: (
            names.is_listed
            and any(title_text.casefold() == title_part for title_text in names.titles)
        ),
    )
    matches = exact_matches or scope.find_preferred_sessions(
        pattern,
        lambda names: (
            names.is_listed
            and any(title_part in title_text.casefold() for title_text in names.titles)
        ),
    )
    return _choose_single_match(locator, matches, scope)


def resolve_pull_request(
    locator: str, scope: LocatorScope, typed_number: str = ""
) -> SessionFile | None:
    """Resolve a pull request that the client linked to a session: ``#72``, ``pr:72`` or its address.

    If ``typed_number`` is given, it is used instead of ``locator``.
    """
    if not (pull_request := parse_pull_request(typed_number or locator)):
        return None
    link_pattern = re.compile(rb'"prnumber":\s?%d\b' % int(pull_request.rpartition("/")[2]))
    return _choose_single_match(
        locator,
        scope.find_preferred_sessions(
            link_pattern, lambda names: pull_request in names.pull_requests
        ),
        scope,
    )


def reject_address(locator: str, scope: LocatorScope) -> SessionFile | None:  # noqa: ARG001 - as all resolvers
    """Raise UsageError for an address. The error explains how to import the address's content.

    For the address of a pull request, raise SessionNotFound.
    """
    if _PULL_REQUEST_ADDRESS_PATTERN.fullmatch(locator):
        raise SessionNotFound("No session is linked to this pull request", LIST_SESSIONS_REMEDY)
    if is_address(locator):
        raise UsageError("An address must be imported first", IMPORT_REMEDY)
    return None


def resolve_bare_number(locator: str, scope: LocatorScope) -> SessionFile | None:
    """Resolve the number of a pull request without ``#``. This is the last form to try."""
    return resolve_pull_request(locator, scope, f"#{locator}")


RESOLVERS: tuple[Resolver, ...] = (
    resolve_latest,
    resolve_id,
    resolve_path,
    resolve_pull_request,
    resolve_id_prefix,
    resolve_title,
    reject_address,
    resolve_tag,
    resolve_title_part,
    resolve_bare_number,
)
"""The resolvers in the order in which they are called."""


def is_address(locator: str) -> bool:
    """Check whether a locator is an address such as ``https://...``."""
    return _ADDRESS_START_PATTERN.match(locator) is not None


def has_unmistakable_form(locator: str) -> bool:
    """Check whether a locator clearly has the form of an id, a path or another special form.

    These forms are an id, the path of a .jsonl file, an address, a pull request such as ``#72``,
    and a locator that begins with ``latest``, ``tag:`` or ``title:``.
    """
    lower_locator = locator.lower()
    has_prefix_or_suffix = (
        lower_locator.endswith(TRANSCRIPT_SUFFIX)
        or "://" in lower_locator
        or lower_locator.startswith(("latest", "tag:", "title:"))
    )
    return (
        has_prefix_or_suffix
        or is_session_id(lower_locator)
        or _PULL_REQUEST_NUMBER_PATTERN.fullmatch(locator) is not None
    )


def current_session(scope: LocatorScope) -> SessionFile | None:
    """Return the session of the client in which this command runs, or None outside a client.

    Raise SessionNotFound if the session has no file yet.
    """
    session_id = scope.where.environ.get("CLAUDE_CODE_SESSION_ID", "") or calling_session_id(
        scope.where
    )
    if not is_session_id(session_id):
        return None
    session = scope.store.find(session_id)
    if session is None:
        raise SessionNotFound(
            f"This session ({session_id}) has no file yet",
            f"Ask something in it first.{scope.hidden_folders_note}",
        )
    return session


def make_not_found_error(locator: str, scope: LocatorScope) -> SessionNotFound:
    """Return the error for a locator that matches no session."""
    path = typed_path(locator, scope)
    if path is not None:
        try:
            agent_of_path(path, scope.where).open_session(path)
        except SessionNotFound as error:
            return error
    return SessionNotFound(
        (
            "No session is called "
            f"'{collapse_line(plain_line(locator), 80)}'{', and no id starts with it' if len(locator) > 3 else ''}"
        ),
        "Use a session id or at least its first four characters, a title or at least three letters of it, a tag, "
        "'latest', '#72' for a pull request, or the path of a .jsonl file. "
        f"{LIST_SESSIONS_REMEDY}{scope.hidden_folders_note}",
    )


def _choose_single_match(
    locator: str, sessions: list[SessionFile], scope: LocatorScope
) -> SessionFile | None:
    copies_by_id: dict[str, list[SessionFile]] = {}
    for session in sessions:
        copies_by_id.setdefault(session.session_id, []).append(session)
    if len(copies_by_id) > 1:
        candidates = []
        for session_copies in islice(copies_by_id.values(), MAX_SUGGESTED_SESSIONS):
            candidates.append(scope.preferred_copy(session_copies))
        raise AmbiguousLocator(locator, candidate_rows(candidates, scope.where), len(copies_by_id))
    if sessions:
        return scope.preferred_copy(sessions)
    return None


def parse_pull_request(locator: str) -> str:
    """Return the pull request's address or number from a locator, or ``""`` for any other locator."""
    if address := _PULL_REQUEST_ADDRESS_PATTERN.fullmatch(locator):
        return address[1].lower()
    number = _PULL_REQUEST_NUMBER_PATTERN.fullmatch(locator)
    # The conversion removes leading zeros, as in #0072.
    return str(int(number[1])) if number else ""


def text_after_prefix(prefix: str, locator: str) -> str:
    """Return the text after ``prefix`` and a colon, as in ``tag:urgent``.

    If ``locator`` does not begin with the prefix and a colon, return ``locator`` unchanged.
    """
    word_before_colon, colon, rest = locator.partition(":")
    if colon and word_before_colon.lower() == prefix:
        return rest.strip()
    return locator


def typed_path(locator: str, scope: LocatorScope) -> str | None:
    """Return a path-like locator as an absolute path, or None if the locator does not look like a path."""
    if not (locator.endswith(TRANSCRIPT_SUFFIX) or os.sep in locator):
        return None
    return absolute_path(locator, scope.cwd)


def absolute_path(path: str, cwd: str) -> str:
    """Return the absolute form of a path that was typed in the folder ``cwd``, with ``~`` expanded."""
    try:
        return os.path.join(cwd, os.path.expanduser(path))
    except ValueError:  # A path with ~ contains a NUL character.
        return os.path.join(cwd, path)


def _require_path_of_transcript(path: str, where: Where) -> None:
    """Raise UsageError if there is no transcript at a path.

    In a model's shell, verbs run without the user's consent. This check prevents them from reading
    other files.
    """
    allowed_folders = (
        where.projects,
        vault_folder(where),
        unpacked_folder(where),
        *folders_of_other_agents(where),
    )
    allowed_prefixes = tuple(os.path.realpath(home) + os.sep for home in allowed_folders)
    is_inside = os.path.realpath(path).startswith(allowed_prefixes) and path.endswith(
        TRANSCRIPT_SUFFIX
    )
    if os.path.lexists(path) and (not is_inside or os.path.islink(path)):
        remedy = "Other files are for the user to open, in a shell."
        raise UsageError(f"{path} is not a transcript under {where.projects}", remedy)
