"""Define the JSON schema of the answers of all ``team`` actions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import ByteCount, FieldDeclarer, ReceiptSchema, StrictModel
from resume_hooks.parts.team import pushing, read_turns, sessions

SESSION_FIELD_DECLARER = FieldDeclarer[sessions.TeamSession]()


class TeamSession(StrictModel):
    """A session that one machine pushed, as recorded on the server.

    ``row`` is the id of the session's row on the server. ``visible`` is ``private``, ``project`` or
    ``team``. ``shared_with`` lists individual members who can also read the session. ``given`` is
    true if an admin transferred the session to you from a former member. The text of a transferred
    session is unverified. ``pushed`` is the time of the last push.
    """

    row: int = SESSION_FIELD_DECLARER(
        lambda session: session.row_id, "the id of the session's row on the server"
    )
    session_id: str = SESSION_FIELD_DECLARER(lambda session: session.session_id)
    owner: str = SESSION_FIELD_DECLARER(lambda session: session.owner)
    machine: str = SESSION_FIELD_DECLARER(lambda session: session.machine)
    title: str = SESSION_FIELD_DECLARER(lambda session: session.title)
    folder: str = SESSION_FIELD_DECLARER(lambda session: session.folder)
    project: str = SESSION_FIELD_DECLARER(lambda session: session.project)
    created: str = SESSION_FIELD_DECLARER(lambda session: session.creation_time)
    ended: str = SESSION_FIELD_DECLARER(lambda session: session.end_time)
    parent: str = SESSION_FIELD_DECLARER(lambda session: session.parent_id)
    kind: str = SESSION_FIELD_DECLARER(lambda session: session.kind)
    visible: str = SESSION_FIELD_DECLARER(
        lambda session: session.visibility,
        "private, project or team; shared_with lists further members",
    )
    records: int = SESSION_FIELD_DECLARER(lambda session: session.record_count)
    raw: ByteCount = SESSION_FIELD_DECLARER(lambda session: session.raw_byte_count)
    mine: bool = SESSION_FIELD_DECLARER(lambda session: session.is_own)
    given: bool = SESSION_FIELD_DECLARER(
        lambda session: session.is_transferred,
        "true: transferred to you from a former member; its text is unverified",
    )
    shared_with: tuple[str, ...] = SESSION_FIELD_DECLARER(lambda session: session.shared_with)
    pushed: str = SESSION_FIELD_DECLARER(
        lambda session: session.push_time, "the time of the machine's last push"
    )


PUSH_FIELD_DECLARER = FieldDeclarer[pushing.PushResult]()


class PushResult(StrictModel):
    """The result of pushing one session.

    ``records`` is the number of records that were sent, and ``pieces`` is the number of chunks.
    ``raw`` is the size of the records in bytes, and ``stored`` is their size after compression.
    ``secrets`` maps each kind of secret to the number of secrets that were removed.
    """

    session_id: str = PUSH_FIELD_DECLARER(lambda push: push.session_id)
    title: str = PUSH_FIELD_DECLARER(lambda push: push.title)
    result: Literal[
        "sent", "unchanged", "replaced", "shorter", "forgotten", "scrubbed", "expired", "busy"
    ] = PUSH_FIELD_DECLARER(
        lambda push: push.result,
        "sent, unchanged, replaced, shorter, forgotten, scrubbed (elsewhere), expired or busy",
    )
    pieces: int = PUSH_FIELD_DECLARER(lambda push: push.piece_count)
    records: int = PUSH_FIELD_DECLARER(lambda push: push.record_count)
    raw: ByteCount = PUSH_FIELD_DECLARER(lambda push: push.raw_byte_count)
    stored: ByteCount = PUSH_FIELD_DECLARER(lambda push: push.stored_byte_count)
    secrets: dict[str, int] = PUSH_FIELD_DECLARER(
        lambda push: push.secret_counts_by_kind, "the number of omitted secrets, by kind"
    )


HIT_FIELD_DECLARER = FieldDeclarer[read_turns.TeamHit]()


class TeamHit(StrictModel):
    """A turn in the team's sessions that contains the words of a search.

    ``reference`` has the form ``<owner>:<session>[/agent]:<line>``. ``mine`` is true if the session
    is your own. The text of another member's session is unverified.
    """

    reference: str = HIT_FIELD_DECLARER(
        lambda hit: hit.reference, "<owner>:<session id>[/agent-<id>]:<0-based line>"
    )
    session_id: str = HIT_FIELD_DECLARER(lambda hit: hit.session_id)
    owner: str = HIT_FIELD_DECLARER(lambda hit: hit.owner)
    machine: str = HIT_FIELD_DECLARER(lambda hit: hit.machine)
    title: str = HIT_FIELD_DECLARER(lambda hit: hit.title)
    project: str = HIT_FIELD_DECLARER(lambda hit: hit.project)
    time: str = HIT_FIELD_DECLARER(lambda hit: hit.time)
    snippet: str = HIT_FIELD_DECLARER(lambda hit: hit.snippet)
    words: tuple[str, ...] = HIT_FIELD_DECLARER(lambda hit: hit.words)
    missing: tuple[str, ...] = HIT_FIELD_DECLARER(
        lambda hit: hit.missing_words, "the query's words that are missing from the turn"
    )
    score: float = HIT_FIELD_DECLARER(lambda hit: hit.score)
    mine: bool = HIT_FIELD_DECLARER(
        lambda hit: hit.is_own,
        "false: the session belongs to another member; its text is unverified",
    )


class TeamSchema(StrictModel):
    """The result of a ``team`` action. If ``written`` is false, the action was only previewed."""

    act: str = Field(
        description=(
            "init, join, projects, status, push, pull, search, sessions, resume, share, ... leave"
        )
    )
    service: str = Field(
        description="the libpq service of the team; empty if this machine has not joined a team"
    )
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
        description="with status: the number of sessions in pushed projects that have not been sent completely"
    )
    failing: str = Field(
        description="with status: when pushes began to fail, and why; empty if pushes succeed"
    )
    copies: int = Field(
        description="with forget: the number of removed copies on the server, one for each machine"
    )
    sql: str = Field(description="with init --sql: the statements for an administrator")
    receipt: ReceiptSchema | None = Field(description="with resume: the imported session")
