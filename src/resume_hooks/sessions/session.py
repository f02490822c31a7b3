"""A session that is read once: each fact on its first use, then kept and passed down.

A door (the prompt hook, the module, the command line, the API) makes it, and a verb is given it.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any

from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import ends_of, readable_session
from resume_hooks.sessions.lineage import Ancestor, Family
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import OneOpen
from resume_hooks.transcripts.tokens import ContextSize

if TYPE_CHECKING:
    from resume_hooks.transcripts.calibration import Scale
    from resume_hooks.transcripts.nodes import Node
    from resume_hooks.transcripts.trimmable_pieces import Pieces


class Session(SessionFile):
    """A session file, what is known of it, and its file held open, so that all read the same one.

    What fails to be read raises SessionNotFound at the first use.
    """

    where: Where

    @classmethod
    def of(cls, session: SessionFile, where: Where) -> Session:
        """The session of a file; one that is loaded already is itself."""
        if isinstance(session, Session):
            return session
        loaded = cls(*session)
        loaded.where = where
        return loaded

    @classmethod
    def at(cls, path: str, where: Where) -> Session:
        """The session at a path, whoever wrote it, in our form of record.

        SessionNotFound, NotATranscript, WriteFailed.
        """
        return cls.of(readable_session(path, where), where)

    def read_again(self) -> Session:
        """The same session as its file is now, where time passed since it was read."""
        return Session.of(SessionFile(*self), self.where)

    def _replace(self, **fields: Any) -> SessionFile:  # type: ignore[override]
        """A file that differs; nothing that was read of this one is told of it."""
        return SessionFile(*self)._replace(**fields)

    @cached_property
    def file(self) -> OneOpen:
        """Its transcript, which is opened once."""
        return OneOpen(self.path)

    @cached_property
    def head_tail(self) -> HeadTail:
        """The two ends of its transcript in our form of record."""
        return HeadTail(self.file)

    @cached_property
    def ends(self) -> HeadTail:
        """The two ends as its agent has them."""
        if self.agent == NAME:
            return self.head_tail
        return ends_of(self, self.where)

    @property
    def title(self) -> str:
        """The title that lists show."""
        return self.ends.title

    @cached_property
    def lineage(self) -> tuple[Ancestor, ...]:
        """The session and its ancestors, oldest first."""
        return tuple(self.family.lineage(self.path))

    @cached_property
    def family(self) -> Family:
        """What tells of its parents."""
        return Family(self.where, {os.path.abspath(self.path): self.ends})

    @cached_property
    def is_quick_to_read(self) -> bool:
        """Whether its live part has no more bytes than a prompt may wait for."""
        from resume_hooks.transcripts.transcript import QUICK_LIMIT, is_live_part_within

        return is_live_part_within(self.file, QUICK_LIMIT)

    @cached_property
    def context(self) -> ContextSize:
        """How full it is: what a resume would send, in the window that its client acts on.

        Its live part is read for it; of one that is too long for a prompt to wait, its end.
        """
        # Not every verb asks.
        from resume_hooks.sessions.client_window import window_of
        from resume_hooks.transcripts.context_size import size_of_tail
        from resume_hooks.transcripts.transcript import scan_live
        from resume_hooks.transcripts.trimmable_pieces import Pieces

        if self.is_quick_to_read:
            transcript, (pieces,) = scan_live(self.file, lambda: (Pieces(),))
            return self.weigh(transcript.chain, pieces)[0]
        window = window_of(self.session_id, self.where)
        return self._in_its_window(size_of_tail(self.file, window), window)

    def weigh(self, chain: list[Node], pieces: Pieces) -> tuple[ContextSize, Scale]:
        """The same of its live chain, for who has read that, or of another one, and the scale of its pieces."""
        from resume_hooks.sessions.client_window import window_of
        from resume_hooks.transcripts.context_size import size_of_chain

        window = window_of(self.session_id, self.where)
        context, scale = size_of_chain(self.file, chain, pieces, window)
        return self._in_its_window(context, window), scale

    def _in_its_window(self, context: ContextSize, window: int) -> ContextSize:
        from resume_hooks.sessions.client_window import in_window, window_set

        if self.agent != NAME:  # other agents' settings name none
            return context
        return in_window(context, self.head_tail, window_set(self.head_tail, window, self.where))

    @property
    def is_unchanged(self) -> bool:
        """Whether its transcript is still as its ends were read: nobody appended to it or replaced it."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_mtime, status.st_size) == (self.head_tail.mtime, self.head_tail.size)
