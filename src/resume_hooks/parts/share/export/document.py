"""Plan a document of one or more sessions with one scan of each file, then write it in chunks.

The records are selected before the first byte is written. Only their positions are kept in memory,
not their texts.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.errors import SessionNotFound
from resume_hooks.parts.share.export import HTML, JSON
from resume_hooks.parts.share.export.as_markdown import document_as_markdown
from resume_hooks.parts.share.export.build_parts import PartBuilder
from resume_hooks.parts.share.export.page import document_as_page
from resume_hooks.parts.share.export.parts import CarriedSession, EndPart, Part, SessionPart
from resume_hooks.parts.share.export.redact import ExportRedactor
from resume_hooks.parts.share.export.select_records import ExportConversation, select_conversation
from resume_hooks.paths import Where
from resume_hooks.reading.bundle import BundleRedactor
from resume_hooks.reading.bundle import export_bundle as bundle
from resume_hooks.reading.session_secrets import find_secrets_in_sessions
from resume_hooks.sessions.agents.registry import readable_session
from resume_hooks.sessions.lineage import Family
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import Observer

BATCH_SIZE = 64 * 1024  # the number of characters per write
NAME_LENGTH = 60  # the maximum number of characters from the title in a file name
# the maximum number of characters shown of a folder, and the maximum number of models shown
MAX_FOLDER, MAX_MODELS = 4_096, 20

_UNSAFE_CHARACTERS = re.compile(r"[^\w]+|_+")


class DocumentOptions(NamedTuple):
    """The options of a document: its format, the selected records, and the maximum number of characters in a text."""

    form: str
    redact: bool
    thoughts: bool
    what: str
    limit: int


class Document:
    """A document that can be written once. ``left_out`` and ``pictures`` are complete after it was written.

    ``folders`` are the home folders in its sessions. Each session is read once. Raise
    SessionNotFound if a session cannot be read, and NotATranscript if a file belongs to another
    program.
    """

    def __init__(
        self,
        sessions: Sequence[SessionFile],
        choice: DocumentOptions,
        where: Where,
        observers: Sequence[Observer] = (),
    ) -> None:
        self.sessions = tuple(sessions)
        self.choice = choice
        self.turns = 0
        self._where = where
        self.known = find_secrets_in_sessions(sessions) if choice.redact else None
        self._hide = BundleRedactor(self.known) if self.known else None
        heads_tails = [HeadTail(session.path) for session in sessions]
        self.folders = [home_folder(ends, where) for ends in heads_tails]
        self._redactor = ExportRedactor(where, self.folders, self.known, limit=choice.limit)
        self._builder = PartBuilder(self._redactor, thoughts=choice.thoughts)
        self._told: list[tuple[SessionPart, ExportConversation]] = []
        family, known_ids = Family(where), set[str]()
        inputs = (
            zip(sessions, heads_tails, self.folders, strict=True) if choice.form != JSON else ()
        )
        for session, ends, folder in inputs:
            conversation = select_conversation(session, choice.what, known_ids, observers)
            head = self._session_part(session, ends, folder, conversation, family)
            self.turns += len(head.turns)
            self._told.append((head, conversation))
        title = self._clean_title(heads_tails[-1])
        plain_letters = self._redactor.export_line(
            unicodedata.normalize("NFKC", title)
        )  # also in the form in which it appears in a file name
        self.name = document_file_name(plain_letters, sessions[-1].session_id, choice.form)

    def _session_part(
        self,
        session: SessionFile,
        ends: HeadTail,
        folder: str,
        conversation: ExportConversation,
        family: Family,
    ) -> SessionPart:
        parent = family.find_parent(session.path)
        shorten_name = self._builder.shorten_name
        return SessionPart(
            session_id=session.session_id,
            title=self._clean_title(ends),
            project=self._redactor.export_line(plain_line(folder[:MAX_FOLDER])),
            branch=shorten_name(ends.branch),
            created=ends.created,
            ended=ends.ended,
            kind=shorten_name(parent.kind) if parent else "",
            parent=shorten_name(parent.session_id) if parent else "",
            tokens=conversation.tokens,
            models=tuple(shorten_name(model) for model in conversation.models[:MAX_MODELS]),
            versions=shorten_name(ends.version),
            turns=tuple(
                self._builder.turn_part(conversation, node.number)
                for node in conversation.rows
                if node.number in conversation.turns
            ),
            taken_over=conversation.taken_over,
            damaged=conversation.damaged,
        )

    def _clean_title(self, ends: HeadTail) -> str:
        """Return a session's title, redacted before and after it is shortened."""
        return self._redactor.export_line(plain_line(ends.title_by(self._redactor.export_line)))

    @property
    def left_out(self) -> dict[str, int] | None:
        """The number of removed secrets by kind, or None if redaction is off."""
        if self._hide:
            return dict(self._redactor.left_out + self._hide.kinds)
        return None

    @property
    def pictures(self) -> int:
        """The number of images and documents in it, which are not checked for secrets."""
        return self._builder.pictures

    @property
    def cut_count(self) -> int:
        """The number of texts that were too long and were cut with a notice."""
        return self._redactor.cut

    def chunks(self, carried: CarriedSession | None = None) -> Iterator[bytes]:
        """Yield the bytes of the document. A page may include a session as a bundle (``carried``).

        Raise SessionNotFound if a file has changed since it was scanned.
        """
        if self.choice.form == JSON:
            yield from bundle(self.sessions, self._where, self._hide)
            return
        parts, heads = self._parts_of_sessions(carried), [head for head, _ in self._told]
        batch, size = list[str](), 0
        for piece in (
            document_as_page(parts, heads, carried)
            if self.choice.form == HTML
            else document_as_markdown(parts)
        ):
            batch.append(piece)
            size += len(piece)
            if size >= BATCH_SIZE:
                yield replace_surrogates("".join(batch)).encode()
                batch, size = [], 0
        yield replace_surrogates("".join(batch)).encode()

    def _parts_of_sessions(self, carried: CarriedSession | None) -> Iterator[Part]:
        for head, conversation in self._told:
            yield head
            yield from self._builder.parts_of_conversation(conversation)
        if carried:
            end = carried.taken
        else:
            end = EndPart(self.left_out, self.pictures if self.choice.form == HTML else 0, 0)
        yield end._replace(cut=self.cut_count)


def document_file_name(title: str, session_id: str, form: str) -> str:
    """Return a document's default file name: words of the title and the id, valid on every file system."""
    words = (
        _UNSAFE_CHARACTERS.sub("-", unicodedata.normalize("NFKC", title).lower())
        .strip("-")[:NAME_LENGTH]
        .rstrip("-")
    )
    while len(words.encode()) > 2 * NAME_LENGTH:
        words = words[:-1]
    short_id = session_id.rpartition("/")[2].removeprefix("agent-")[:SHORT_ID_CHARACTERS]
    return f"{words or 'session'}-{_UNSAFE_CHARACTERS.sub('', short_id)}.{form}"


def sessions_of_lineage(session: SessionFile, where: Where) -> tuple[list[SessionFile], list[str]]:
    """Return a session and its ancestors, oldest first, and the ids of deleted ancestors."""
    sessions, deleted_ids = [], []
    family = Family(where)
    for ancestor in family.lineage(session.path):
        path = (
            session.path
            if ancestor.session_id == session.session_id
            else family.transcript_path(ancestor)
        )
        try:
            sessions += [readable_session(path, where)] if path else []
            deleted_ids += [] if path else [ancestor.session_id]
        except SessionNotFound:  # deleted after it was listed
            deleted_ids.append(ancestor.session_id)
    return sessions, deleted_ids
