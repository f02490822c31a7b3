"""The JSON schemas of ``scrub`` and ``scrub --list``: the places of secrets, but never their text."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Literal

from pydantic import Field, RootModel

from resume_hooks.cli.schema.base import CommonFields, FieldsLike, ReceiptSchema, StrictModel
from resume_hooks.parts.secrets.audit import Audit, Leak
from resume_hooks.parts.secrets.findings import PlaceWithSecrets

audit_field = CommonFields[Audit]()
place_field = CommonFields[PlaceWithSecrets]()


class SecretList(StrictModel):
    """The secrets in sessions, oldest first."""

    secrets: list[
        Annotated[
            Leak,
            FieldsLike(
                place=(
                    "transcript, sub-agent, sidecar, copy, file backup, backup, trash, vault, note"
                ),
                session_id="empty if the place belongs to no session",
                reference="the record as an argument for read; empty if read can't print it",
                line="0-based, from the start of the file",
                offset="first byte",
                length="bytes, as written there",
                uuid="of the record; empty if it has none",
                time="of the record or else of the file",
            ),
        ]
    ] = audit_field(lambda found: found.leaks)
    kinds: dict[str, int] = audit_field(
        lambda found: dict(Counter(leak.kind for leak in found.leaks).most_common()),
        "secrets by kind, the most frequent first",
    )
    files: int = Field(description="files searched now, or unchanged since an earlier search")
    bytes: int = audit_field(lambda found: found.total_bytes, "of these files")
    bytes_read: int = audit_field(lambda found: found.bytes_read, "read this time")


class ScrubPlace(StrictModel):
    """A place that contains secrets, or that contained them before the scrub, without their text."""

    kind: str = place_field(
        lambda row: row.place.kind,
        "transcript, sub-agent, sidecar, backup, trash, vault, index, client ...",
    )
    path: str = place_field(lambda row: row.place.path)
    session_id: str = place_field(
        lambda row: row.place.session_id, "the session that it belongs to; empty if none"
    )
    relation: str = place_field(
        lambda row: row.place.relation,
        "that session's relation to the scrubbed one: own, child, parent, other",
    )
    secrets: dict[str, int] = place_field(lambda row: row.kinds, "how many, by kind")
    state: Literal["held", "removed", "left", "outside"] = Field(
        description=(
            "held: not changed yet; left: could not be changed; outside: not selected, why "
            "says how to"
        )
    )
    why: str


class ScrubResult(StrictModel):
    """The findings of a scrub, and the files that it wrote."""

    session_id: str
    file: str
    in_place: bool
    written: bool
    open: str = Field(description="why the session counts as open; empty if it does not")
    places: list[ScrubPlace] = Field(description="in the order of the rewrite")
    receipt: ReceiptSchema | None = Field(
        description="of the child; null with --in-place, and if nothing was found"
    )


class ScrubSchema(RootModel[ScrubResult | SecretList]):
    """The findings and the result of a scrub, or with ``--list`` the list of secrets."""
