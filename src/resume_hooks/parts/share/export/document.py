"""Plan a document of one or more sessions, and then write it.

Before anything is written, each file is scanned once to select its records. Only the positions of
the records, and not their texts, are kept in memory.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.errors import SessionNotFound
from resume_hooks.parts.share.export import HTML, JSON
from resume_hooks.parts.share.export.as_markdown import format_document
from resume_hooks.parts.share.export.build_parts import PartBuilder
from resume_hooks.parts.share.export.page import build_page
from resume_hooks.parts.share.export.parts import EmbeddedSession, EndPart, Part, SessionPart
from resume_hooks.parts.share.export.redact import ExportRedactor
from resume_hooks.parts.share.export.select_records import ExportConversation, select_conversation
from resume_hooks.paths import Where
from resume_hooks.reading.bundle import BundleRedactor
from resume_hooks.reading.bundle import export_bundle as bundle
from resume_hooks.reading.session_secrets import make_redactor_for_sessions
from resume_hooks.sessions.agents.registry import readable_session
from resume_hooks.sessions.lineage import LineageFinder
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import home_folder_of_session
from resume_hooks.sessions.record_references import SHORT_ID_CHARACTERS
from resume_hooks.system.text import plain_line, replace_surrogates
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.transcript import RecordObserver

CHARACTERS_PER_WRITE = 64 * 1024  # Number of characters to write in one step.
MAX_FILE_NAME_CHARACTERS = 60  # Maximum number of characters of the title in a file name.
# The maximum number of characters of a folder's path, and the maximum number of models, in the
# header of a session.
MAX_FOLDER_CHARACTERS, MAX_MODELS = 4_096, 20

_UNSAFE_CHARACTERS_PATTERN = re.compile(r"[^\w]+|_+")


class DocumentOptions(NamedTuple):
    """The format of a document, the records that it contains, and how much of each text it shows."""

    format: str
    must_redact: bool
    includes_thinking: bool
    record_range: str
    max_text_characters: int


class Document:
    """A document of one or more sessions. It can be written only once.

    ``folders`` are the home folders of the sessions. The counts, for example ``removed_secret_counts``,
    are complete only after the document has been written. The constructor raises SessionNotFound if
    a session cannot be read, and NotATranscript if a file belongs to another program.
    """

    def __init__(
        self,
        sessions: Sequence[SessionFile],
        options: DocumentOptions,
        where: Where,
        observers: Sequence[RecordObserver] = (),
    ) -> None:
        self.sessions = tuple(sessions)
        self.options = options
        self.turns = 0
        self._where = where
        self.redactor = make_redactor_for_sessions(sessions) if options.must_redact else None
        self._bundle_redactor = BundleRedactor(self.redactor) if self.redactor else None
        session_ends = [HeadTail(session.path) for session in sessions]
        self.folders = [home_folder_of_session(ends, where) for ends in session_ends]
        self._export_redactor = ExportRedactor(
            where, self.folders, self.redactor, max_characters=options.max_text_characters
        )
        self._builder = PartBuilder(
            self._export_redactor, includes_thinking=options.includes_thinking
        )
        self._session_parts: list[tuple[SessionPart, ExportConversation]] = []
        lineage_finder, known_ids = LineageFinder(where), set[str]()
        inputs = (
            zip(sessions, session_ends, self.folders, strict=True) if options.format != JSON else ()
        )
        for session, ends, folder in inputs:
            conversation = select_conversation(session, options.record_range, known_ids, observers)
            head = self._build_session_part(session, ends, folder, conversation, lineage_finder)
            self.turns += len(head.turns)
            self._session_parts.append((head, conversation))
        title = self._make_redacted_title(session_ends[-1])
        # The file name will contain the normalized title, so that form of the title is redacted.
        redacted_title = self._export_redactor.redact_line(unicodedata.normalize("NFKC", title))
        self.name = build_file_name(redacted_title, sessions[-1].session_id, options.format)

    def _build_session_part(
        self,
        session: SessionFile,
        ends: HeadTail,
        folder: str,
        conversation: ExportConversation,
        lineage_finder: LineageFinder,
    ) -> SessionPart:
        parent = lineage_finder.find_parent(session.path)
        shorten_name = self._builder.shorten_name
        return SessionPart(
            session_id=session.session_id,
            title=self._make_redacted_title(ends),
            project_folder=self._export_redactor.redact_line(
                plain_line(folder[:MAX_FOLDER_CHARACTERS])
            ),
            branch=shorten_name(ends.branch),
            created_at=ends.created_at,
            ended_at=ends.ended_at,
            kind=shorten_name(parent.kind) if parent else "",
            parent_id=shorten_name(parent.session_id) if parent else "",
            context_tokens=conversation.context_tokens,
            models=tuple(shorten_name(model) for model in conversation.models[:MAX_MODELS]),
            client_version=shorten_name(ends.version),
            turns=tuple(
                self._builder.build_turn_header(conversation, node.line_number)
                for node in conversation.nodes
                if node.line_number in conversation.turns_by_line
            ),
            repeated_record_count=conversation.repeated_record_count,
            damaged_line_count=conversation.damaged_line_count,
        )

    def _make_redacted_title(self, ends: HeadTail) -> str:
        """Return a session's title without secrets. It is redacted once before and once after it is shortened."""
        return self._export_redactor.redact_line(
            plain_line(ends.make_title(self._export_redactor.redact_line))
        )

    @property
    def removed_secret_counts(self) -> dict[str, int] | None:
        """The number of removed secrets by kind, or None if secrets are not removed."""
        if self._bundle_redactor:
            return dict(
                self._export_redactor.removed_secret_counts + self._bundle_redactor.counts_by_kind
            )
        return None

    @property
    def picture_count(self) -> int:
        """The number of images and documents in the sessions. Such contents are not searched for secrets."""
        return self._builder.picture_count

    @property
    def shortened_text_count(self) -> int:
        """The number of texts that were too long and were therefore cut. Each of them ends with a notice."""
        return self._export_redactor.shortened_text_count

    def build_chunks(self, embedded_session: EmbeddedSession | None = None) -> Iterator[bytes]:
        """Yield the bytes of the document.

        ``embedded_session`` is a bundle of the sessions for ``import``. If it is given, the page
        ends with it. Raise SessionNotFound if a file has changed since its records were selected.
        """
        if self.options.format == JSON:
            yield from bundle(self.sessions, self._where, self._bundle_redactor)
            return
        document_parts, session_headers = (
            self._build_parts(embedded_session),
            [head for head, _ in self._session_parts],
        )
        batch, batch_characters = list[str](), 0
        for text_chunk in (
            build_page(document_parts, session_headers, embedded_session)
            if self.options.format == HTML
            else format_document(document_parts)
        ):
            batch.append(text_chunk)
            batch_characters += len(text_chunk)
            if batch_characters >= CHARACTERS_PER_WRITE:
                yield replace_surrogates("".join(batch)).encode()
                batch, batch_characters = [], 0
        yield replace_surrogates("".join(batch)).encode()

    def _build_parts(self, embedded_session: EmbeddedSession | None) -> Iterator[Part]:
        for head, conversation in self._session_parts:
            yield head
            yield from self._builder.build_conversation_parts(conversation)
        if embedded_session:
            end = embedded_session.end_part
        else:
            end = EndPart(
                self.removed_secret_counts,
                self.picture_count if self.options.format == HTML else 0,
                0,
            )
        yield end._replace(shortened_text_count=self.shortened_text_count)


def build_file_name(title: str, session_id: str, extension: str) -> str:
    """Return a document's default file name, which consists of words from the title and the session id.

    The name is valid on every file system.
    """
    title_words = (
        _UNSAFE_CHARACTERS_PATTERN.sub("-", unicodedata.normalize("NFKC", title).lower())
        .strip("-")[:MAX_FILE_NAME_CHARACTERS]
        .rstrip("-")
    )
    while len(title_words.encode()) > 2 * MAX_FILE_NAME_CHARACTERS:
        title_words = title_words[:-1]
    short_id = session_id.rpartition("/")[2].removeprefix("agent-")[:SHORT_ID_CHARACTERS]
    return f"{title_words or 'session'}-{_UNSAFE_CHARACTERS_PATTERN.sub('', short_id)}.{extension}"


def find_lineage_sessions(
    session: SessionFile, where: Where
) -> tuple[list[SessionFile], list[str]]:
    """Return a session and its ancestors, oldest first, and the ids of deleted ancestors."""
    sessions, deleted_ids = [], []
    lineage_finder = LineageFinder(where)
    for ancestor in lineage_finder.find_lineage(session.path):
        path = (
            session.path
            if ancestor.session_id == session.session_id
            else lineage_finder.find_transcript(ancestor)
        )
        try:
            sessions += [readable_session(path, where)] if path else []
            deleted_ids += [] if path else [ancestor.session_id]
        except SessionNotFound:  # The ancestor was deleted after it was listed.
            deleted_ids.append(ancestor.session_id)
    return sessions, deleted_ids
