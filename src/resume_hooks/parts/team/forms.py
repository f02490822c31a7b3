"""The JSON schema of all ``team`` answers: the action's result and its lists."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from resume_hooks.cli.schema.base import ByteCount, FieldsLike, ReceiptSchema, StrictModel
from resume_hooks.parts.team.pushing import PushResult
from resume_hooks.parts.team.sessions import TeamSession
from resume_hooks.parts.team.turn_reading import TeamHit

Hit = Annotated[
    TeamHit,
    FieldsLike(
        reference="<owner>:<session id>[/agent-<id>]:<0-based line>",
        mine="false: another member's words, which are unverified",
        missing="words of the query that the turn lacks",
    ),
]


class TeamSchema(StrictModel):
    """The result of an action, or its preview if ``written`` is false."""

    act: str = Field(
        description=(
            "init, join, projects, status, push, pull, search, sessions, resume, share, ... leave"
        )
    )
    service: str = Field(description="the libpq service of the team; empty if none was joined")
    login: str
    written: bool
    projects: list[str] = Field(description="that are pushed after each turn")
    sessions: list[
        Annotated[
            TeamSession,
            FieldsLike(
                row="its number on the server",
                visible="private, project or team; shared_with lists further members",
                given="true: transferred to you from a former member; its words are unverified",
                pushed="the time of the machine's last push",
                raw=ByteCount,
            ),
        ]
    ]
    pushed: list[
        Annotated[
            PushResult,
            FieldsLike(
                result=(
                    "sent, unchanged, replaced, shorter, forgotten, scrubbed (elsewhere), "
                    "expired or busy"
                ),
                raw=ByteCount,
                stored=ByteCount,
                secrets="left out, by kind",
            ),
        ]
    ]
    hits: list[Hit]
    files: list[str] = Field(description="the copies that were stored for reading")
    gone: list[str] = Field(
        description="sessions whose copies were removed because you may no longer read them"
    )
    behind: int = Field(
        description="with status: sessions of pushed projects that are not sent completely"
    )
    failing: str = Field(
        description="with status: since when pushes fail, and why; empty if they work"
    )
    copies: int = Field(description="with forget: how many machines' copies the server had")
    sql: str = Field(description="with init --sql: the statements for an administrator")
    receipt: ReceiptSchema | None = Field(description="with resume: the imported session")
