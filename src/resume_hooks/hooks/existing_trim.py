"""A trim that stands already: a stray Enter on the ``>trim yes`` that came back into the input box makes nothing."""

from __future__ import annotations

from resume_hooks.clock import normal
from resume_hooks.derive.child.receipt import Receipt
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where, find_session
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.project_folder import home_folder
from resume_hooks.transcripts import records
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.provenance import read_parent
from resume_hooks.transcripts.records import Record


def standing_trim(parent: SessionFile, child_id: str) -> Receipt | None:
    """The receipt of a trimmed child of ``parent``; None where it is gone, or somebody went on in either since."""
    path = find_session(child_id, Where())
    named = read_parent(path) if path else None
    if path is None or named is None or named.session_id != parent.session_id:
        return None
    try:
        child, glance = HeadTail(path), HeadTail(parent.path)
    except SessionNotFound:
        return None  # gone since it was found
    if child.touched or any(_goes_on(record, child.derived_at) for record in glance.last_records):
        return None
    stats = _stats(child)
    return Receipt(
        session_id=child_id,
        file=path,
        title=child.title,
        parent_session_id=parent.session_id,
        parent_file=parent.path,
        kind=named.kind,
        written=False,
        folder=home_folder(child),
        tokens_before=stats.get("original_tokens", 0),
        tokens_after=stats.get("trimmed_tokens", 0),
        chars_saved=stats.get("chars_saved", 0),
        tools_trimmed=stats.get("tools_trimmed", 0),
    )


def _goes_on(record: Record, at: str) -> bool:
    """Whether a record is of a conversation after an instant: a prompt, an answer, the output of a tool."""
    spoken = records.kind(record) == records.ASSISTANT or records.is_prompt(record)
    answered = bool(records.results(record))
    return (spoken or answered) and normal(record.get("timestamp")) > at


def _stats(child: HeadTail) -> dict[str, int]:
    """What the child's first line tells of its trim; anybody may have edited it."""
    metadata = records.mapping(child.first_records[0], "trim_metadata") if child.first_records else {}
    return {key: value for key, value in records.mapping(metadata, "stats").items() if type(value) is int}
