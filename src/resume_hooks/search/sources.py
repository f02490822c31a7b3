"""Look up the files, sessions, texts and copies of indexed records.

Texts are read from the transcripts, because the index does not contain them.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.search.index.archived_transcripts import TranscriptPaths
from resume_hooks.search.index.connect import OpenIndex
from resume_hooks.search.index.postings import Posting
from resume_hooks.search.record_text import read_record_text_and_byte_count
from resume_hooks.sessions.agents.registry import agent_of_path, original_path
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS, ShortIds
from resume_hooks.transcripts.head_tail import HeadTail

# With this depth, copies in files that no longer exist are sorted after all other copies.
SORT_DEPTH_OF_MISSING_FILES = 1_000_000


class IndexedFile(NamedTuple):
    """A file in the index.

    ``parent_id`` is the id of the session from which the file's session was derived, or ``""``.
    """

    path: str
    session_id: str
    agent: str
    inode: int
    parent_id: str
    mtime: int


class HitSession(NamedTuple):
    """A session as a hit shows it.

    ``short_id`` is its shortest unique id, and ``resume_command`` is the command that resumes it.
    """

    path: str
    short_id: str
    title: str
    folder: str
    agent: str
    resume_command: str


class Sources:
    """Looks up where records come from, in an open index and in the transcripts.

    Each file and session is looked up only once. If a record is in several files of a session, a
    file in ``files_in_scope`` is preferred. ``read_bytes`` is the number of bytes of texts read so
    far.
    """

    def __init__(self, index: OpenIndex, files_in_scope: Collection[int], where: Where) -> None:
        self._db = index.db
        self._words = index.postings
        self._files_in_scope = files_in_scope
        self._where = where
        self._transcript_paths = TranscriptPaths(where)
        self._files: dict[int, IndexedFile | None] = {}
        self.read_bytes = 0
        self._sessions: dict[str, HitSession] = {}
        self._copies: dict[int, list[Posting]] = {}

    def read_text(self, record: Posting) -> str | None:
        """Return the text of a record, or None if the record has changed since it was indexed."""
        if (file := self.indexed_file(record)) is None:
            return None
        words, size = read_record_text_and_byte_count(
            self.readable_path(file), file.inode, record, is_subagent=bool(file.agent)
        )
        self.read_bytes += size
        return words

    def indexed_file(self, record: Posting) -> IndexedFile | None:
        """Return the file that contains a record, or None if the index no longer contains the file."""
        if record.file_id not in self._files:
            query = "SELECT path, session, agent, inode, parent, mtime FROM files WHERE id=?"
            row = self._db.execute(query, (record.file_id,)).fetchone()
            self._files[record.file_id] = IndexedFile(*row) if row else None
        return self._files[record.file_id]

    def readable_path(self, file: IndexedFile) -> str:
        """Return the path at which a file's records can be read in Claude Code's format."""
        return self._transcript_paths.readable_path(file.path, file.session_id)

    def original_path(self, file: IndexedFile) -> str:
        """Return the path of a file. For a copy of another agent's session, return the path of the original."""
        return original_path(self.readable_path(file), self._where)

    def tool_names(self, record: Posting) -> str:
        """Return the names of a record's tools, separated by commas.

        These are the tools that the record calls, and the tools whose output it contains.
        """
        return self._words.tool_names(record)

    def fetch_copies(self, records: Iterable[Posting]) -> None:
        """Look up the copies of many records together, because single lookups take several times as long."""
        keys = {record.key for record in records if record.key} - self._copies.keys()
        if keys:
            self._copies.update(self._words.find_copies(keys))

    def find_copies(self, record: Posting) -> list[Posting]:
        """Return this record and its copies in other sessions, the original first.

        A record in a fork made by the client contains the id of the record from which it was
        copied. A child made by us contains the id of its parent. If neither id is known, the
        original is the record whose file was changed earliest. A record with the same id but a
        different text is not a copy, unless it was trimmed.
        """
        if not record.key:
            return [record]
        self.fetch_copies([record])
        digests = (record.text_checksum, 0)
        copies = [
            posting
            for posting in self._copies[record.key]
            if not record.text_checksum or posting.text_checksum in digests
        ]
        files = {posting.file_id: self.indexed_file(posting) for posting in copies}
        parents = {file.session_id: file.parent_id for file in files.values() if file}

        def copy_age_key(posting: Posting) -> tuple[bool, bool, int, int, int]:
            file = files[posting.file_id]
            if file:
                depth = _count_known_ancestors(file.session_id, parents)
            else:
                depth = SORT_DEPTH_OF_MISSING_FILES
            return (
                not posting.text_checksum,
                bool(posting.copy_key),
                depth,
                file.mtime if file else 0,
                posting.line_number,
            )

        sorted_copies = sorted(
            (posting for posting in copies if files[posting.file_id]), key=copy_age_key
        )
        return sorted_copies or [record]

    def session_id_of_posting(self, record: Posting) -> str:
        """Return the id of a record's session."""
        file = self.indexed_file(record)
        if file:
            return file.session_id
        return ""

    def choose_original(self, copies: Sequence[Posting]) -> Posting:
        """Return the copy that a hit shows.

        The first of ``copies`` is the original. If the original's session has the record in several
        files, prefer a file in scope, then the file that was changed last.
        """

        def find_session_and_agent(posting: Posting) -> tuple[str, str]:
            file = self.indexed_file(posting)
            if file:
                return (file.session_id, file.agent)
            return ("", "")

        def copy_preference_key(posting: Posting) -> tuple[bool, int]:
            file = self.indexed_file(posting)
            return posting.file_id in self._files_in_scope, file.mtime if file else 0

        same_source = (
            other
            for other in copies
            if other.text_checksum
            and find_session_and_agent(other) == find_session_and_agent(copies[0])
        )
        return max(same_source, key=copy_preference_key, default=copies[0])

    def find_hit_session(self, session_id: str, path: str) -> HitSession:
        """Return the session as a hit shows it. ``path`` is the path of one of the session's files."""
        if session_id not in self._sessions:
            rows = self._db.execute(
                "SELECT path, id, mtime FROM files WHERE session=? AND agent=''", (session_id,)
            )
            session_row = max(
                rows, key=lambda row: (row[1] in self._files_in_scope, row[2]), default=None
            )
            start = session_id[:SHORT_ID_CHARACTERS]
            similar_ids = self._db.execute(
                "SELECT DISTINCT session FROM files WHERE session>=? AND session<?",
                (start, f"{start}~"),
            )
            short_id = ShortIds(other_id for (other_id,) in similar_ids).shorten(session_id)
            if session_row:
                file = self._transcript_paths.readable_path(str(session_row[0]), session_id)
            else:
                file = path
            agent = agent_of_path(file, self._where)
            try:
                ends = HeadTail(file)
                title, folder = ends.make_title(Redactor().redact), ends.cwd
            except SessionNotFound:
                title, folder = "(file gone)", os.path.dirname(file)
            resume = agent.resume_commands(session_id, folder).shell_command
            self._sessions[session_id] = HitSession(
                agent.original_path(file), short_id, title, folder, agent.name, resume
            )
        return self._sessions[session_id]


def _count_known_ancestors(session_id: str, parents: Mapping[str, str]) -> int:
    """Count the ancestors of a session that are keys of ``parents``.

    The loop ends even if sessions were manipulated to be each other's parents.
    """
    visited: set[str] = set()
    while (parent := parents.get(session_id, "")) in parents and session_id not in visited:
        visited.add(session_id)
        session_id = parent
    return len(visited)
