"""Write and read the first line of a child, which describes the child's origin.

The module reads all known forms of this line, and writes one. The written line must not contain
certain keys, such as ``cwd``, ``timestamp``, ``sessionId``, ``tag`` and those of titles. Programs
that list sessions search the start of a file for these keys, and would show our values as if they
were the session's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from resume_hooks.paths import is_session_id, session_id_from_path
from resume_hooks.system.text import replace_surrogates
from resume_hooks.transcripts import records
from resume_hooks.transcripts.lines import Line, SharedFile
from resume_hooks.transcripts.records import Record, get_string

_KIND_PATTERN = re.compile(r"[a-z][a-z_-]{0,30}")

# At most this number of bytes of a first line is read. The first line may be long if metadata was
# merged into a long record.
MAX_FIRST_LINE_BYTES = 4 * 1024 * 1024
# This number of bytes at the start of a file is searched for the source of a fork.
BYTES_SEARCHED_FOR_FORK = 64 * 1024


class Parent(NamedTuple):
    """The parent that a session's file names.

    ``session_id`` may be ``""``. ``file_path`` is not trusted: before you open it, check that it is a
    session with this id. If the child continues a sub-agent of the parent, ``subagent`` is that
    sub-agent, otherwise ``""``.
    """

    session_id: str
    file_path: str
    derivation_type: str
    kind: str
    derived_at: str
    exported_file: str = ""
    subagent: str = ""


class ChildSize(NamedTuple):
    """The size of a child. It is used until the child contains an answer with a token count from the API.

    ``window`` is the parent's context window if it is larger than the default, else 0.
    """

    context_tokens: int
    characters_per_token: float
    window: int = 0


class RewindTimestamps(NamedTuple):
    """The time at which a mark was set, and the time at which the user went back to it."""

    started_at: str
    rewound_at: str


class TrimRecord(NamedTuple):
    """A trim's options and results, as recorded in the first line of a child."""

    parameters: Mapping[str, object]
    stats: Mapping[str, int]


def read_parent(file: str | SharedFile) -> Parent | None:
    """Return the parent that a session's file names, or None. Raises OSError if the file is unreadable."""
    with file.stream() if isinstance(file, SharedFile) else open(file, "rb") as stream:
        first = Line(0, 0, stream.readline(MAX_FIRST_LINE_BYTES)).body
        if b'_metadata"' in first and (parent := parent_from_record(records.parse_record(first))):
            return parent
        rest = stream.read(max(0, BYTES_SEARCHED_FOR_FORK - len(first)))
    lines = rest.split(b"\n") if b'"forkedFrom"' in rest else []
    for record in (
        records.parse_record(body) or {} for body in (first, *lines) if b'"forkedFrom"' in body
    ):
        session_id = get_string(records.get_mapping(record, "forkedFrom"), "sessionId")
        if is_session_id(session_id):
            return Parent(session_id, "", "continued", "fork", get_string(record, "timestamp"))
    return None


def make_first_line(  # noqa: PLR0913 - what a first line may tell
    *,
    parent_id: str,
    parent_file: str,
    kind: str,
    continued_at: str,
    has_summary: bool = False,
    size: ChildSize | None = None,
    trim: TrimRecord | None = None,
    rewind_times: RewindTimestamps | None = None,
    subagent: str = "",
    opening_tokens: int = 0,
) -> bytes:
    """Return the first line of a child, without its line ending.

    Related tools can read this line too.
    """
    file = replace_surrogates(
        parent_file
        # JSON cannot contain a file name that is not valid UTF-8, so the name is left out. The id still
        # identifies the parent.
    )
    line: dict[str, Any] = {
        "continue_metadata": {
            "parent_session_file": file,
            "parent_file": file,
            "parent_session_id": parent_id,
            "continued_at": continued_at,
            "continuation_type": kind,
            "summary_included": has_summary,
        }
    }
    if size is not None:
        count, ratio, window = size
        line["continue_metadata"] |= {"context_tokens": count, "characters_per_token": ratio}
        line |= {"context_window": window} if window else {}
    if rewind_times is not None:
        line["continue_metadata"] |= {
            "startedAt": rewind_times.started_at,
            "rewoundAt": rewind_times.rewound_at,
        }
    if subagent:
        line["continue_metadata"]["subagent"] = subagent
    if opening_tokens:
        line["continue_metadata"]["opening_tokens"] = opening_tokens
    if trim is not None:
        line["trim_metadata"] = {
            "parent_file": file,
            "trimmed_at": continued_at,
            "trim_params": dict(trim.parameters),
            "stats": dict(trim.stats),
        }
    # Imported here because the import takes 10 ms, and programs that only read records may not need
    # it.
    import orjson

    return orjson.dumps(line)


def parent_from_record(record: Record | None) -> Parent | None:
    """Return the parent that the first record of a session names, or None."""
    if record is None:
        return None
    trim, derivation = (
        records.get_mapping(record, "trim_metadata"),
        records.get_mapping(record, "continue_metadata"),
    )
    file = (
        get_string(derivation, "parent_session_file")
        or get_string(derivation, "parent_file")
        or get_string(trim, "parent_file")
    )
    candidate_ids = (
        get_string(derivation, "parent_session_id"),
        get_string(trim, "parent_session_id"),
        session_id_from_path(file),
    )
    session_id = next((text for text in candidate_ids if text and is_session_id(text)), "")
    if not file and not session_id:
        return None
    return Parent(
        session_id=session_id,
        file_path=file,
        derivation_type="trimmed" if trim else "continued",
        kind=convert_to_current_kind_name(get_string(derivation, "continuation_type"))
        or ("trim" if trim else "rollover"),
        derived_at=get_string(derivation, "continued_at") or get_string(trim, "trimmed_at"),
        exported_file=get_string(derivation, "exported_file")
        or get_string(derivation, "exported_chat_log"),
        subagent=get_string(derivation, "subagent"),
    )


def convert_to_current_kind_name(kind: str) -> str:
    """Return the current name of a kind of child, for example ``back`` for ``rewind``.

    The name is shown to users, so an invalid name is replaced by ``""``.
    """
    if not _KIND_PATTERN.fullmatch(kind):
        return ""
    if kind == "rewind":
        return "back"
    return kind
