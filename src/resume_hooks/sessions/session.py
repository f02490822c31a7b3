"""Define the class of a session. Its data is read when it is first needed, and then cached.

An entry point (the prompt hook, the plugin's module, the command line, the API) creates the session
and passes it to a verb.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import CLAUDE_NAME
from resume_hooks.sessions.agents.registry import read_ends, readable_session
from resume_hooks.sessions.lineage import Ancestor, LineageFinder
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import SharedFile
from resume_hooks.transcripts.tokens import ContextSize

if TYPE_CHECKING:
    from resume_hooks.transcripts.calibration import TokenScale
    from resume_hooks.transcripts.nodes import Node
    from resume_hooks.transcripts.trimmable_pieces import PieceCollector


class Session(SessionFile):
    """A session with its open file and with cached data, so that all readers see the same file.

    A property raises SessionNotFound if the data can't be read.
    """

    where: Where

    @classmethod
    def from_file(cls, session: SessionFile, where: Where) -> Session:
        """Return a ``Session`` for a session file.

        If ``session`` is already a ``Session``, return it unchanged.
        """
        if isinstance(session, Session):
            return session
        loaded = cls(*session)
        loaded.where = where
        return loaded

    @classmethod
    def open_path(cls, path: str, where: Where) -> Session:
        """Return a session, which may belong to any agent, in the common record format.

        ``path`` is the path of the session's file. Raise SessionNotFound, NotATranscript or
        WriteFailed.
        """
        return cls.from_file(readable_session(path, where), where)

    def reload(self) -> Session:
        """Return a new ``Session`` without cached data, because the file may have changed."""
        return Session.from_file(SessionFile(*self), self.where)

    def _replace(self, **fields: Any) -> SessionFile:  # type: ignore[override]
        """Return a ``SessionFile`` with changed fields. It has no cached data."""
        return SessionFile(*self)._replace(**fields)

    @cached_property
    def file(self) -> SharedFile:
        """The transcript, which is opened only once."""
        return SharedFile(self.path)

    @cached_property
    def head_tail(self) -> HeadTail:
        """The beginning and the end of the transcript in the common record format."""
        return HeadTail(self.file)

    @cached_property
    def ends(self) -> HeadTail:
        """The beginning and the end of the transcript in the agent's own format."""
        if self.agent == CLAUDE_NAME:
            return self.head_tail
        return read_ends(self, self.where)

    @property
    def title(self) -> str:
        """The title as lists show it."""
        return self.ends.title

    @cached_property
    def lineage(self) -> tuple[Ancestor, ...]:
        """The session and its ancestors, oldest first."""
        return tuple(self.lineage_finder.find_lineage(self.path))

    @cached_property
    def lineage_finder(self) -> LineageFinder:
        """The finder for this session's ancestors."""
        return LineageFinder(self.where, {os.path.abspath(self.path): self.ends})

    @cached_property
    def is_quick_to_read(self) -> bool:
        """Whether the session's live part is small enough to be read while a prompt waits."""
        # Imported here because few verbs need it.
        from resume_hooks.transcripts.transcript import (
            MAX_QUICK_SCAN_BYTES,
            is_live_part_within_bytes,
        )

        return is_live_part_within_bytes(self.file, MAX_QUICK_SCAN_BYTES)

    @cached_property
    def context(self) -> ContextSize:
        """The size of the context: the tokens that a resume would send, and the client's window.

        If the live part is too long to read while the user's prompt waits, only the end of the
        transcript is measured.
        """
        # Imported here because few verbs need these modules.
        from resume_hooks.sessions.client_window import context_window_of_session
        from resume_hooks.transcripts.context_size import measure_context_from_tail
        from resume_hooks.transcripts.transcript import scan_live_records
        from resume_hooks.transcripts.trimmable_pieces import PieceCollector

        if self.is_quick_to_read:
            transcript, (pieces,) = scan_live_records(self.file, lambda: (PieceCollector(),))
            return self.measure_chain(transcript.chain, pieces)[0]
        window = context_window_of_session(self.session_id, self.where)
        return self._limit_context_window(measure_context_from_tail(self.file, window), window)

    def measure_chain(
        self, chain: list[Node], pieces: PieceCollector
    ) -> tuple[ContextSize, TokenScale]:
        """Return the context size of a chain that was already read, and a TokenScale.

        The TokenScale converts the sizes of the chain's pieces to tokens.
        """
        # Imported here because few commands need to measure a chain.
        from resume_hooks.sessions.client_window import context_window_of_session
        from resume_hooks.transcripts.context_size import measure_chain

        window = context_window_of_session(self.session_id, self.where)
        context, scale = measure_chain(self.file, chain, pieces, window)
        return self._limit_context_window(context, window), scale

    def _limit_context_window(self, context: ContextSize, window: int) -> ContextSize:
        # Imported here because few verbs need it.
        from resume_hooks.sessions.client_window import fill_in_model_window, max_context_window

        if self.agent != CLAUDE_NAME:  # Other agents have no setting for the window.
            return context
        return fill_in_model_window(
            context, self.head_tail, max_context_window(self.head_tail, window, self.where)
        )

    @property
    def is_unchanged(self) -> bool:
        """Whether the transcript is the same as when its beginning and end were read."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_mtime, status.st_size) == (self.head_tail.mtime, self.head_tail.size)
