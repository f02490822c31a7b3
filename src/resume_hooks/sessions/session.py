"""A session whose facts are read once, on first use, and then kept for every later reader.

An entry point (the prompt hook, the module, the command line, the API) creates it and passes it to
a verb.
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
    """A session with its cached facts and its open file, so that all readers see the same file.

    An unreadable fact raises SessionNotFound on first use.
    """

    where: Where

    @classmethod
    def from_file(cls, session: SessionFile, where: Where) -> Session:
        """Return the session of a file; a loaded session is returned as is."""
        if isinstance(session, Session):
            return session
        loaded = cls(*session)
        loaded.where = where
        return loaded

    @classmethod
    def open_path(cls, path: str, where: Where) -> Session:
        """Return any agent's session at a path, in the common record format.

        Raise SessionNotFound, NotATranscript or WriteFailed.
        """
        return cls.from_file(readable_session(path, where), where)

    def read_again(self) -> Session:
        """Return a fresh object for the same session, for a file that may have changed."""
        return Session.from_file(SessionFile(*self), self.where)

    def _replace(self, **fields: Any) -> SessionFile:  # type: ignore[override]
        """Return a copy with another file, without this session's cached facts."""
        return SessionFile(*self)._replace(**fields)

    @cached_property
    def file(self) -> SharedFile:
        """The transcript, opened once."""
        return SharedFile(self.path)

    @cached_property
    def head_tail(self) -> HeadTail:
        """The two ends of the transcript in the common record format."""
        return HeadTail(self.file)

    @cached_property
    def ends(self) -> HeadTail:
        """The two ends of the agent's own transcript."""
        if self.agent == CLAUDE_NAME:
            return self.head_tail
        return read_ends(self, self.where)

    @property
    def title(self) -> str:
        """The title in lists."""
        return self.ends.title

    @cached_property
    def lineage(self) -> tuple[Ancestor, ...]:
        """The session and its ancestors, oldest first."""
        return tuple(self.lineage_finder.find_lineage(self.path))

    @cached_property
    def lineage_finder(self) -> LineageFinder:
        """The lookup of its parents."""
        return LineageFinder(self.where, {os.path.abspath(self.path): self.ends})

    @cached_property
    def is_quick_to_read(self) -> bool:
        """Whether its live part is small enough to read while a prompt waits."""
        # imported late, as in ``context``
        from resume_hooks.transcripts.transcript import MAX_QUICK_BYTES, is_live_part_within

        return is_live_part_within(self.file, MAX_QUICK_BYTES)

    @cached_property
    def context(self) -> ContextSize:
        """The context size: the tokens of a resume, in the client's effective window.

        Read the live part, or only its end if it is too long for a waiting prompt.
        """
        # Imported late, because few verbs need it.
        from resume_hooks.sessions.client_window import session_window
        from resume_hooks.transcripts.context_size import measure_tail
        from resume_hooks.transcripts.transcript import scan_live_part
        from resume_hooks.transcripts.trimmable_pieces import PieceCollector

        if self.is_quick_to_read:
            transcript, (pieces,) = scan_live_part(self.file, lambda: (PieceCollector(),))
            return self.measure_chain(transcript.chain, pieces)[0]
        window = session_window(self.session_id, self.where)
        return self._apply_window(measure_tail(self.file, window), window)

    def measure_chain(
        self, chain: list[Node], pieces: PieceCollector
    ) -> tuple[ContextSize, TokenScale]:
        """Return the context size of a chain that was already read, and the scale of its pieces."""
        # imported late, as in ``context``
        from resume_hooks.sessions.client_window import session_window
        from resume_hooks.transcripts.context_size import measure_chain

        window = session_window(self.session_id, self.where)
        context, scale = measure_chain(self.file, chain, pieces, window)
        return self._apply_window(context, window), scale

    def _apply_window(self, context: ContextSize, window: int) -> ContextSize:
        # imported late, as in ``context``
        from resume_hooks.sessions.client_window import apply_window, window_limit

        if self.agent != CLAUDE_NAME:  # other agents have no setting for the window
            return context
        return apply_window(
            context, self.head_tail, window_limit(self.head_tail, window, self.where)
        )

    @property
    def is_unchanged(self) -> bool:
        """Whether the transcript has not changed since its ends were read."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_mtime, status.st_size) == (self.head_tail.mtime, self.head_tail.size)
