"""The form of everything that ``team`` answers: what was done, and the lists that the act is about."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resume_hooks.cli.schema.base import Bytes, FieldsLike, ReceiptForm, StrictModel
from resume_hooks.parts.team.pushing import Pushed
from resume_hooks.parts.team.sessions import TeamSession
from resume_hooks.parts.team.turn_reading import TeamHit

Hit = Annotated[
    TeamHit,
    FieldsLike(
        reference="<owner>:<session id>[/agent-<id>]:<0-based line>",
        mine="false: somebody else's words, which nobody verified",
        missing="words of the query that the turn lacks",
    ),
]


class TeamForm(StrictModel):
    """What an act did, or would do where ``written`` is false."""

    act: str = Field(
        description=(
            "init, join, projects, status, push, pull, search, sessions, resume, share, ... leave"
        )
    )
    service: str = Field(description="the libpq service of the team; empty where none was joined")
    login: str
    written: bool
    projects: list[str] = Field(description="that turns' ends push")
    sessions: list[
        Annotated[
            TeamSession,
            FieldsLike(
                row="its number on the server",
                visible="private, project or team; shared_with are single members beside",
                given="true: one's own that was a member's who left; nobody verified his words",
                pushed="when the machine sent of it last",
                raw=Bytes,
            ),
        ]
    ]
    pushed: list[
        Annotated[
            Pushed,
            FieldsLike(
                result=(
                    "sent, unchanged, replaced, shorter, forgotten, scrubbed (elsewhere), "
                    "expired or busy"
                ),
                raw=Bytes,
                stored=Bytes,
                secrets="left out, by kind",
            ),
        ]
    ]
    hits: list[Hit]
    files: list[str] = Field(description="copies for reading that were made")
    gone: list[str] = Field(
        description="sessions of which copies went, since they may not be read any more"
    )
    behind: int = Field(
        description="with status: sessions of pushed projects that are not sent, or not whole"
    )
    failing: str = Field(
        description="with status: since when turns' ends push nothing, and why; empty where they do"
    )
    copies: int = Field(description="with forget: how many machines' copies the server had")
    sql: str = Field(description="with init --sql: what an administrator may run")
    receipt: ReceiptForm | None = Field(description="with resume: the session that came")
