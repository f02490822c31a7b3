"""What is gone on in: the session, and what starts the client on it."""

from __future__ import annotations

from pydantic import Field

from resume_hooks.cli.schema.base import Strict
from resume_hooks.cli.schema.writes import Commands


class Continued(Strict):
    """A session to go on in."""

    session_id: str
    parent_session_id: str | None = Field(description="the session that was forked; null without --fork")
    folder: str = Field(description="where the client is started")
    commands: Commands
