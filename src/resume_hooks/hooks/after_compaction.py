"""Tell the model after a compaction what it lost: the lineage, and facts that the summary omits.

A compaction removes the first message, which contains the lineage, and writes only a short summary.
Messages that the user removed with ``/clear`` stay removed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from resume_hooks.errors import ResumeHooksError
from resume_hooks.hooks import pending_handoff
from resume_hooks.hooks.time_limit import time_limit
from resume_hooks.paths import Where, find_session, verify_session_path
from resume_hooks.reading.digest.build import build_digest
from resume_hooks.reading.digest.entries import (
    Digest,
    DigestEntry,
    MessageKind,
    TalkMessage,
    filter_digest,
)
from resume_hooks.reading.digest.opening import Opening, format_opening
from resume_hooks.reading.digest.sections import NOW_SECTION
from resume_hooks.reading.session_secrets import make_redactor_for_ends
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.sessions import lineage_block, session_files
from resume_hooks.sessions.lineage import Ancestor, LineageFinder
from resume_hooks.transcripts.head_tail import HeadTail

MAX_BUILD_SECONDS = 2.0  # the time limit in seconds for building the text; the client waits for it
MAX_FACTS_CHARACTERS = pending_handoff.MAX_OPENING_CHARACTERS
"""Maximum number of characters of the restored text. Hooks that run when a session starts can't
print more."""

MAX_LINEAGE_CHARACTERS = 1_900
FIRST_READ_BYTES = 12_000_000
"""Number of bytes at the end of a session's file that are read first.

They contain about eight compactions, whose text usually fills the available characters.
"""

_FACTS_HEADING = "Facts about this session from before it was compacted:"
_WORD_PATTERN = compile_lazily(r"[^\W_][\w./-]{2,}")
# A message is left out if the summary contains at least this fraction of its words.
MIN_REPEATED_WORDS_FRACTION = 0.8


def describe_lost_facts(
    session_id: str,
    transcript_path: str,
    max_characters: int = MAX_FACTS_CHARACTERS,
    max_seconds: float = MAX_BUILD_SECONDS,
) -> str:
    """Return the lineage and the facts that a compaction removed and its summary omits.

    The text has at most ``max_characters`` characters. Return ``""`` if nothing was lost, or if
    building the text takes more than ``max_seconds`` seconds.
    """
    path = verify_session_path(transcript_path, session_id, Where()) or find_session(
        session_id, Where()
    )
    if path is None:
        return ""
    try:
        with time_limit(seconds=max_seconds):
            return _build_lost_facts(path, max_characters)
    except (ResumeHooksError, OSError):
        return ""


def _build_lost_facts(path: str, max_characters: int) -> str:
    session = session_files.session_file(path)
    lineage = LineageFinder(Where()).find_lineage(path)
    rows = lineage[_count_sessions_before_clear(lineage) :]
    lineage_text = _build_lineage_text(rows, path) if len(rows) > 1 else ""
    cleared_ids = set()
    for row in lineage[: _count_sessions_before_clear(lineage)]:
        cleared_ids.add(row.session_id)
    max_digest = max_characters - len(_FACTS_HEADING) - len(lineage_text) - len("\n\n") * 2
    opening = Opening("")
    for max_bytes in (FIRST_READ_BYTES, None):
        full_digest = build_digest(session, Where(), max_read_bytes=max_bytes)
        digest = remove_summary(_remove_sessions(full_digest, cleared_ids))
        # Facts about the folder are useful only together with messages or actions.
        if digest.talk or digest.sections.keys() - {NOW_SECTION.name}:
            opening = format_opening(digest, max_digest)
        else:
            opening = Opening("")
        if not full_digest.skipped_bytes or opening.omitted_message_count:
            break  # The text is full, so earlier records would not be included.
    if lineage_text or opening.text:
        return "\n\n".join([_FACTS_HEADING, *filter(None, (lineage_text, opening.text))])
    return ""


def remove_summary(digest: Digest) -> Digest:
    """Return the digest without the client's latest summary and without messages that the summary repeats.

    The model already has the summary.
    """
    summary = next(
        (message for message in reversed(digest.talk) if message.kind is MessageKind.SUMMARY), None
    )
    if summary is None:
        return digest
    summary_words = {word.lower() for word in _WORD_PATTERN.findall(summary.text)}

    def adds_words_to_summary(row: DigestEntry | TalkMessage) -> bool:
        words = {word.lower() for word in _WORD_PATTERN.findall(row.text)}
        is_summary = isinstance(row, TalkMessage) and row.kind is MessageKind.SUMMARY
        return not is_summary and len(words & summary_words) < MIN_REPEATED_WORDS_FRACTION * len(
            words
        )

    return filter_digest(digest, adds_words_to_summary)


def _count_sessions_before_clear(lineage: Sequence[Ancestor]) -> int:
    """Return the number of sessions before the last ``/clear``. Their messages are not restored."""
    return next(
        (index for index in range(len(lineage) - 1, 0, -1) if lineage[index].kind == "clear"), 0
    )


def _build_lineage_text(rows: Sequence[Ancestor], path: str) -> str:
    ends = HeadTail(path)
    secrets = make_redactor_for_ends(ends, harmless_texts=[row.session_id for row in rows])
    title, session_id = secrets.redact(ends.title), rows[-1].session_id
    block = lineage_block.render_lineage_block(
        rows[:-1], title=title, session_id=session_id, file=path, created_at=ends.created_at
    )
    return lineage_block.shorten_lineage_block(secrets.redact(block), MAX_LINEAGE_CHARACTERS)


def _remove_sessions(digest: Digest, session_ids: Collection[str]) -> Digest:
    """Return the digest without entries from the sessions with these ids and from their sub-agents."""
    return filter_digest(
        digest, lambda row: row.ref.partition(":")[0].partition("/")[0] not in session_ids
    )
