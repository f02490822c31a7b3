"""The form of search."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resume_hooks.cli.schema.base import FieldsLike, StrictModel
from resume_hooks.search.hits import Hit
from resume_hooks.search.result import Provisional
from resume_hooks.sessions.agents.registry import RUNNING


class SearchCommands(StrictModel):
    """The commands for a hit's record and session."""

    read: str
    resume: str
    handoff: str


class SearchForm(StrictModel):
    """The hits, best first."""

    query: str
    also: list[str] = Field(description="the further wordings, of --or")
    scope: str = Field(
        description="all, session, lineage, or the folder whose project was searched"
    )
    how: str
    nothing_close: bool = Field(description="no hit is more than weak: ask again in other words")
    suggestions: list[str] = Field(
        description="words that may help where nothing is close: two that stand near the hits"
    )
    total: int = Field(description="turns that fit; hits are the best of them")
    more: bool = Field(description="more may fit than were counted")
    hits: list[
        Annotated[
            Hit,
            FieldsLike(
                marks=None,
                short=None,
                resume=None,
                agent=f"whose session it is: {', '.join(RUNNING)}",
                reference="<session id>[/agent-<id>]:<0-based line>; read takes it",
                file="the transcript that holds the record: the session's, or a sub-agent's",
                turn="by prompts in the file's order, from 1; 0 before the first",
                words="of the query, found in the turn",
                confidence="how likely it answers, 0 to 1, as measured",
                found_by=(
                    "the wordings that found it, where there were several: 1 is query, 2 the "
                    "first of also"
                ),
                sessions="all that hold the record, the one it was first said in first",
                same="further turns that say the very same",
                commands=SearchCommands,
            ),
        ]
    ]
    helpers_left_out: int
    provisional: list[Annotated[Provisional, FieldsLike()]] = Field(
        description=(
            "sessions that are not indexed yet, by the words in their files, what holds most first"
        )
    )
    unread: int = Field(description="files that are not indexed yet, and may hold what was meant")
