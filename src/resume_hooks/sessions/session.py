"""A session that is read once: each fact on its first use, then kept and passed down.

A door (the prompt hook, the module, the command line, the API) makes it, and a verb is given it.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

from resume_hooks.paths import Where
from resume_hooks.sessions.agents.claude import NAME
from resume_hooks.sessions.agents.registry import ends_of, readable_session
from resume_hooks.sessions.lineage import Ancestor, Family
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.lines import OneOpen
from resume_hooks.transcripts.tokens import ContextUse


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
    def context(self) -> ContextUse:
        """How full it is: what a resume would send, as far as a prompt can wait for it."""
        from resume_hooks.transcripts.calibration import quick_context  # not every verb asks

        return quick_context(self.file)

    @property
    def is_unchanged(self) -> bool:
        """Whether its transcript is still as its ends were read: nobody appended to it or replaced it."""
        try:
            status = os.stat(self.path)
        except OSError:
            return False
        return (status.st_mtime, status.st_size) == (self.head_tail.mtime, self.head_tail.size)
