"""Define the JSON schemas of ``scrub`` and ``scrub --list``.

An answer contains the locations of secrets, but never their text.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from pydantic import Field, RootModel

from resume_hooks.cli.schema.base import FieldDeclarer, ReceiptSchema, StrictModel
from resume_hooks.parts.secrets import audit
from resume_hooks.parts.secrets.findings import LocationWithSecrets

LEAK_FIELD_DECLARER = FieldDeclarer[audit.Leak]()


class Leak(StrictModel):
    """A secret in a file.

    ``place`` is the kind of the file, for example ``transcript`` or ``trash``. If the secret is in
    the folder name that every record of the file repeats, ``place`` is ``folder name``, and the
    secret is reported once per file. ``reference`` is an argument for ``resume-hooks read``, or
    ``""`` if ``read`` cannot print the record. ``line`` is the line number, counted from 0, and
    ``length`` is the size of the secret in the file in bytes. ``time`` is the record's time, or the
    file's time if the file has no records.
    """

    kind: str = LEAK_FIELD_DECLARER(lambda leak: leak.kind)
    place: str = LEAK_FIELD_DECLARER(
        lambda leak: leak.place,
        "the kind of the file: transcript, sub-agent, sidecar, copy, file backup, backup, trash, vault, note",
    )
    session_id: str = LEAK_FIELD_DECLARER(
        lambda leak: leak.session_id, "empty if the place belongs to no session"
    )
    reference: str = LEAK_FIELD_DECLARER(
        lambda leak: leak.record_reference,
        "the record as an argument for read; empty if read can't print it",
    )
    file: str = LEAK_FIELD_DECLARER(lambda leak: leak.file_path)
    line: int = LEAK_FIELD_DECLARER(
        lambda leak: leak.line_number, "the line number, counted from 0"
    )
    offset: int = LEAK_FIELD_DECLARER(
        lambda leak: leak.offset, "the offset of the secret's first byte in the file"
    )
    length: int = LEAK_FIELD_DECLARER(
        lambda leak: leak.length, "the length of the secret in the file, in bytes"
    )
    uuid: str = LEAK_FIELD_DECLARER(
        lambda leak: leak.record_uuid, "the uuid of the record; empty if the record has none"
    )
    time: str = LEAK_FIELD_DECLARER(
        lambda leak: leak.time, "the time of the record, or of the file if the file has no records"
    )


AUDIT_FIELD_DECLARER = FieldDeclarer[audit.Audit]()


class SecretList(StrictModel):
    """The secrets in sessions, oldest first."""

    secrets: list[Leak] = AUDIT_FIELD_DECLARER(lambda audit: audit.leaks)
    kinds: dict[str, int] = AUDIT_FIELD_DECLARER(
        lambda audit: dict(Counter(leak.kind for leak in audit.leaks).most_common()),
        "secrets by kind, the most frequent first",
    )
    files: int = AUDIT_FIELD_DECLARER(
        lambda audit: audit.file_count,
        "the number of searched files, including those that have not changed since an earlier search",
    )
    bytes: int = AUDIT_FIELD_DECLARER(
        lambda audit: audit.total_bytes,
        "the total size of the searched files, in bytes",
    )
    bytes_read: int = AUDIT_FIELD_DECLARER(
        lambda audit: audit.bytes_read, "the number of bytes that were read by this command"
    )


PLACE_FIELD_DECLARER = FieldDeclarer[LocationWithSecrets]()


class ScrubPlace(StrictModel):
    """A file or archived session that contains secrets, or that contained secrets before the scrub.

    The text of the secrets is not included.
    """

    kind: str = PLACE_FIELD_DECLARER(
        lambda row: row.location.kind,
        "transcript, sub-agent, sidecar, backup, trash, vault, index, client ...",
    )
    path: str = PLACE_FIELD_DECLARER(lambda row: row.location.path)
    session_id: str = PLACE_FIELD_DECLARER(
        lambda row: row.location.session_id,
        "the session that the file belongs to; empty if the file belongs to no session",
    )
    relation: str = PLACE_FIELD_DECLARER(
        lambda row: row.location.relation,
        "how this session is related to the scrubbed one: own (the same session), child, parent, other",
    )
    secrets: dict[str, int] = PLACE_FIELD_DECLARER(
        lambda row: row.counts_by_kind, "the number of secrets of each kind"
    )
    state: Literal["held", "removed", "left", "outside"] = PLACE_FIELD_DECLARER(
        lambda row: row.scrub_state,
        (
            "held: not changed yet; left: could not be changed; outside: not selected. "
            "For a file that is outside, the field ``why`` names the option that would select it."
        ),
    )
    why: str = PLACE_FIELD_DECLARER(lambda row: row.state_reason)


class ScrubResult(StrictModel):
    """The files with secrets that a scrub found, and the child that it wrote."""

    session_id: str
    file: str
    in_place: bool
    written: bool
    open: str = Field(description="why the session counts as open; empty if it does not")
    places: list[ScrubPlace] = Field(
        description="the files in the order in which they are rewritten"
    )
    receipt: ReceiptSchema | None = Field(
        description="the receipt of the child; null with --in-place or if nothing was found"
    )


class ScrubSchema(RootModel[ScrubResult | SecretList]):
    """The result of a scrub or, with ``--list``, the list of secrets."""
