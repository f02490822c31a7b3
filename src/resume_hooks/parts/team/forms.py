"""Define the JSON schema of the answers of all ``team`` actions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import ByteCount, FieldDeclarer, ReceiptSchema, StrictModel
from resume_hooks.parts.team import pushing, read_turns, sessions

declare_session_field = FieldDeclarer[sessions.TeamSession]()


class TeamSession(StrictModel):
    """A session that one machine pushed, as recorded on the server.

    ``row`` is the id of the session's row on the server. ``visible`` is ``private``, ``project`` or
    ``team``. ``shared_with`` lists individual members who can also read the session. ``given`` is
    true if an admin transferred the session to you from a former member. The text of a transferred
    session is unverified. ``pushed`` is the time of the last push.
    """

    row: int = declare_session_field(
        lambda session: session.row_id, "the id of the session's row on the server"
    )
    session_id: str = declare_session_field(lambda session: session.session_id)
    owner: str = declare_session_field(lambda session: session.owner)
    machine: str = declare_session_field(lambda session: session.machine)
    title: str = declare_session_field(lambda session: session.title)
    folder: str = declare_session_field(lambda session: session.folder)
    project: str = declare_session_field(lambda session: session.project)
    created: str = declare_session_field(lambda session: session.creation_time)
    ended: str = declare_session_field(lambda session: session.end_time)
    parent: str = declare_session_field(lambda session: session.parent_id)
    kind: str = declare_session_field(lambda session: session.kind)
    visible: str = declare_session_field(
        lambda session: session.visibility,
        "private, project or team; shared_with lists further members",
    )
    records: int = declare_session_field(lambda session: session.record_count)
    raw: ByteCount = declare_session_field(lambda session: session.raw_bytes)
    mine: bool = declare_session_field(lambda session: session.is_own)
    given: bool = declare_session_field(
        lambda session: session.is_transferred,
        "true: transferred to you from a former member; its text is unverified",
    )
    shared_with: tuple[str, ...] = declare_session_field(lambda session: session.shared_with)
    pushed: str = declare_session_field(
        lambda session: session.push_time, "the time of the machine's last push"
    )


declare_push_field = FieldDeclarer[pushing.PushResult]()


class PushResult(StrictModel):
    """The result of pushing one session.

    ``records`` is the number of records that were sent, in ``pieces`` chunks. ``raw`` is the number
    of bytes of these records, and ``stored`` their number of bytes after compression. ``secrets``
    maps each kind of secret to the number of secrets that were removed.
    """

    session_id: str = declare_push_field(lambda push: push.session_id)
    title: str = declare_push_field(lambda push: push.title)
    result: Literal[
        "sent", "unchanged", "replaced", "shorter", "forgotten", "scrubbed", "expired", "busy"
    ] = declare_push_field(
        lambda push: push.result,
        "sent, unchanged, replaced, shorter, forgotten, scrubbed (elsewhere), expired or busy",
    )
    pieces: int = declare_push_field(lambda push: push.piece_count)
    records: int = declare_push_field(lambda push: push.record_count)
    raw: ByteCount = declare_push_field(lambda push: push.raw_bytes)
    stored: ByteCount = declare_push_field(lambda push: push.stored_bytes)
    secrets: dict[str, int] = declare_push_field(
        lambda push: push.secrets, "the number of omitted secrets, by kind"
    )


declare_hit_field = FieldDeclarer[read_turns.TeamHit]()


class TeamHit(StrictModel):
    """A turn in the team's sessions that contains the words of a search.

    ``reference`` has the form ``<owner>:<session>[/agent]:<line>``. ``mine`` is true if the session
    is your own. The text of another member's session is unverified.
    """

    reference: str = declare_hit_field(
        lambda hit: hit.reference, "<owner>:<session id>[/agent-<id>]:<0-based line>"
    )
    session_id: str = declare_hit_field(lambda hit: hit.session_id)
    owner: str = declare_hit_field(lambda hit: hit.owner)
    machine: str = declare_hit_field(lambda hit: hit.machine)
    title: str = declare_hit_field(lambda hit: hit.title)
    project: str = declare_hit_field(lambda hit: hit.project)
    time: str = declare_hit_field(lambda hit: hit.time)
    snippet: str = declare_hit_field(lambda hit: hit.snippet)
    words: tuple[str, ...] = declare_hit_field(lambda hit: hit.words)
    missing: tuple[str, ...] = declare_hit_field(
        lambda hit: hit.missing_words, "words of the query that the turn lacks"
    )
    score: float = declare_hit_field(lambda hit: hit.score)
    mine: bool = declare_hit_field(
        lambda hit: hit.is_own, "false: the session of another member, whose text is unverified"
    )


class TeamSchema(StrictModel):
    """The result of a ``team`` action. If ``written`` is false, the action was only previewed."""

    act: str = Field(
        description=(
            "init, join, projects, status, push, pull, search, sessions, resume, share, ... leave"
        )
    )
    service: str = Field(description="the libpq service of the team; empty if none was joined")
    login: str
    written: bool
    projects: list[str] = Field(description="the projects that are pushed after each turn")
    sessions: list[TeamSession]
    pushed: list[PushResult]
    hits: list[TeamHit]
    files: list[str] = Field(description="the copies that were stored for reading")
    gone: list[str] = Field(
        description="sessions whose copies were removed because you may no longer read them"
    )
    behind: int = Field(
        description="with status: sessions of pushed projects that have not been sent completely"
    )
    failing: str = Field(
        description="with status: since when pushes have been failing, and why; empty if they work"
    )
    copies: int = Field(
        description="with forget: the number of removed copies on the server, one for each machine"
    )
    sql: str = Field(description="with init --sql: the statements for an administrator")
    receipt: ReceiptSchema | None = Field(description="with resume: the imported session")
