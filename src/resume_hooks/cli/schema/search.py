"""The schema of search."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resume_hooks.cli.schema.base import FieldsLike, StrictModel
from resume_hooks.search.hits import Hit
from resume_hooks.search.result import ProvisionalSession
from resume_hooks.sessions.agents.registry import RESUMABLE_AGENTS


class SearchCommands(StrictModel):
    """The commands for a hit's record and session."""

    read: str
    resume: str
    handoff: str


class SearchSchema(StrictModel):
    """The hits, best first."""

    query: str
    also: list[str] = Field(description="the other wordings, from --or")
    scope: str = Field(
        description="all, session, lineage, or the folder whose project was searched"
    )
    how: str
    nothing_close: bool = Field(description="no hit is more than weak: ask again in other words")
    suggestions: list[str] = Field(
        description="two words near the hits that may help if nothing is close"
    )
    total: int = Field(description="matching turns; hits are the best of them")
    more: bool = Field(description="more turns may match than were counted")
    hits: list[
        Annotated[
            Hit,
            FieldsLike(
                marks=None,
                short=None,
                resume=None,
                agent=f"the session's agent: {', '.join(RESUMABLE_AGENTS)}",
                reference="<session id>[/agent-<id>]:<0-based line>, for read",
                file="the transcript with the record: the session's, or a sub-agent's",
                turn="by prompts in the file's order, from 1; 0 before the first",
                words="words of the query in the turn",
                confidence="the measured probability that it answers, 0 to 1",
                found_by=(
                    "the wordings that found it, if there were several: 1 is query, 2 the "
                    "first of also"
                ),
                sessions="all sessions with the record, the original first",
                same="other turns with the same text",
                commands=SearchCommands,
            ),
        ]
    ]
    helpers_left_out: int
    provisional: list[Annotated[ProvisionalSession, FieldsLike()]] = Field(
        description=(
            "sessions that are not indexed yet but contain some of the words, most words first"
        )
    )
    unread: int = Field(description="files that are not indexed yet and may contain a match")
