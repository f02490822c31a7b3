"""The forms of audit and scrub: where secrets lie, never what they are."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Like, ReceiptForm, Strict
from resume_hooks.parts.secrets.audit.report import Leak


class AuditForm(Strict):
    """The secrets of sessions, oldest first."""

    secrets: list[
        Annotated[
            Leak,
            Like(
                place="transcript, sub-agent, sidecar, copy, file backup, backup, trash, vault, note",
                session_id="empty where the place belongs to no session",
                reference="what read prints the record of; empty where it can't",
                line="0-based; of what the vault or a whole text holds, counted from its start",
                offset="first byte",
                length="bytes, as written there",
                uuid="of the record; empty where there is none",
                time="of the record, else of the file",
            ),
        ]
    ]
    kinds: dict[str, int] = Field(description="secrets by kind, the most frequent first")
    files: int = Field(description="looked at, or known from before and unchanged")
    bytes: int = Field(description="of these files")
    bytes_read: int = Field(description="read this time")


class ScrubPlace(Strict):
    """A place that holds, or held, secrets; never what they are."""

    kind: str = Field(description="transcript, sub-agent, sidecar, backup, trash, vault, index, client ...")
    path: str
    session_id: str = Field(description="the session that it is of; empty for none")
    relation: str = Field(description="how that session stands to the scrubbed one: own, child, parent, other")
    secrets: dict[str, int] = Field(description="how many, by kind")
    state: Literal["held", "removed", "left", "outside"] = Field(
        description="held: nothing was done; left: it could not be done; outside: not asked for, why says how to"
    )
    why: str


class ScrubForm(Strict):
    """What a scrub found, and what it wrote."""

    session_id: str
    file: str
    in_place: bool
    written: bool
    live: str = Field(description="why the session counts as live; empty where it does not")
    places: list[ScrubPlace] = Field(description="in the order in which they are dealt with")
    receipt: ReceiptForm | None = Field(description="of the child; null in place, and where nothing was found")
