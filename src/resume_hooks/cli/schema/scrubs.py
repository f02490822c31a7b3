"""What a scrub found and took out."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from resume_hooks.cli.schema.base import Strict
from resume_hooks.cli.schema.writes import Receipt


class ScrubPlace(Strict):
    """A place that holds, or held, secrets; never what they are."""

    kind: str = Field(description="transcript, sub-agent, companion, backup, trash, vault, index, client ...")
    path: str
    session_id: str = Field(description="the session that it is of; empty for none")
    relation: str = Field(description="how that session stands to the scrubbed one: own, child, parent, other")
    secrets: dict[str, int] = Field(description="how many, by kind")
    state: Literal["held", "removed", "left", "outside"] = Field(
        description="held: nothing was done; left: it could not be done; outside: not asked for, why says how to"
    )
    why: str


class Scrub(Strict):
    """What a scrub found, and what it wrote."""

    session_id: str
    file: str
    in_place: bool
    written: bool
    live: str = Field(description="why the session counts as live; empty where it does not")
    places: list[ScrubPlace] = Field(description="in the order in which they are dealt with")
    receipt: Receipt | None = Field(description="of the child; null in place, and where nothing was found")
