"""A session as an untrim reads it: which records of its live chain lack contents, and where these are.

Records that a client built anew in a trim in place have no mark that says so, their placeholders alone do. One such
record may hold what were several, so each block comes back by itself. What a placeholder names is untrusted: it counts
only where it leads to the same call, its result, or something that the model said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import dropwhile

from resume_hooks.derive.child.rewrite_chain import Edit
from resume_hooks.derive.originals import Originals, is_marked, origins_in
from resume_hooks.errors import NothingToTrim, SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.sessions.client_window import window_of
from resume_hooks.sessions.record_references import SHORT, RecordLine
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.transcripts import records
from resume_hooks.transcripts.calibration import Scale, weigh
from resume_hooks.transcripts.chain import chain_to
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.placeholders import is_placeholder, stands_for_answer
from resume_hooks.transcripts.records import ASSISTANT, Record, message, string, with_content
from resume_hooks.transcripts.tokens import ContextUse
from resume_hooks.transcripts.transcript import Transcript, scan
from resume_hooks.transcripts.trimmable_pieces import Pieces
from resume_hooks.transcripts.write_scan import WriteScan, mend

_PLACE = re.compile(r"; original: ([0-9a-f-]{8,36}):(\d{1,9})[^\[\]\n]{0,200}\]\Z")  # the end of a placeholder of ours
_WORDS = (b'"truncated"', b"See line ", b"; original: ")  # one of which stands in every record that lacks contents


def lacking(record: Record) -> dict[int, tuple[str, int]]:
    """Where the originals of blocks are of which a placeholder is all that is left, by the block's place."""
    content = message(record).get("content")
    found = {}
    for place, block in enumerate(content if isinstance(content, list) else ()):
        for text in _texts(block) if isinstance(block, dict) else ():
            if match := _PLACE.search(text[-300:]):
                found[place] = match.group(1), int(match.group(2))
    return found


def _texts(block: Record) -> Iterator[str]:
    kind = string(block, "type")
    if kind == records.RESULT:
        # What was several parts is one text, a line of which may stand for a picture.
        yield from filter(is_placeholder, records.result_text(block).split("\n"))
    elif kind == records.CALL:
        yield from (value for value in records.mapping(block, "input").values() if isinstance(value, str))
    elif stands_for_answer(string(block, "text")):
        yield string(block, "text")


def originals_of(record: Record, originals: Originals) -> dict[int, RecordLine]:
    """The records that hold what each block lacks; SessionNotFound where one is gone or holds something else."""
    found = {place: originals.named(*reference) for place, reference in lacking(record).items()}
    for place, line in found.items():
        if _original(message(record)["content"][place], line.record() or {}) is None:
            raise SessionNotFound(f"{line.reference} holds something else")
    return found


class Refilling:
    """The edit of one record: its blocks as in the originals, after ``first``, another edit."""

    def __init__(self, found: Mapping[int, RecordLine], first: Edit | None = None) -> None:
        self._found = found
        self._first = first

    def __call__(self, record: Record) -> Record | None:
        """The record with its blocks back. SessionNotFound if an original is gone since it was found."""
        edited = self._first(record) if self._first else record
        if edited is None:
            return None
        content = list(message(edited)["content"])
        for place, line in self._found.items():
            block = _original(content[place], line.record() or {})
            if block is None:
                raise SessionNotFound(f"{line.file} changed while it was read", "Run the command again.")
            content[place] = block
        return mend(with_content(edited, content))


def _original(block: Record, original: Record) -> Record | None:
    kind, call = string(block, "type"), records.call_id(block)
    if kind == records.TEXT:
        said = records.text(original) if records.kind(original) == records.ASSISTANT else ""
        return {**block, "text": said} if said else None
    return next(
        (one for one in records.blocks(original) if (one.get("type"), records.call_id(one)) == (kind, call)), None
    )


@dataclass(frozen=True, slots=True)
class TrimmedSession:
    """What one scan tells; ``trimmed`` are the records of the live chain that lack contents.

    Where the running client was trimmed in place the chain is what it would be without that: ``undone`` times, which
    brings ``back`` so many characters, and makes of the context ``whole_tokens`` (0 where nothing is undone).
    ``earlier`` are those before the compaction.
    """

    session: SessionFile
    transcript: Transcript
    pieces: Pieces
    survey: WriteScan
    context: ContextUse
    scale: Scale
    trimmed: tuple[Node, ...]
    undone: int = 0
    back: int = 0
    whole_tokens: int = 0
    earlier: int = 0

    @property
    def nothing(self) -> NothingToTrim:
        """What is said where nothing can come back."""
        if not self.earlier:
            return NothingToTrim("Nothing in this session is trimmed")
        fork = f"resume-hooks fork {self.session.session_id[:SHORT]} --before-compaction"
        return NothingToTrim(
            "What was trimmed here lies before the last compaction, and is not sent any more",
            f"A fork from before it can be untrimmed: {fork}",
        )


def read_trimmed(session: SessionFile) -> TrimmedSession:
    """Scan a session for what is trimmed in it."""
    pieces, survey, marked = Pieces(), WriteScan(), _Marked()
    transcript = scan(session.path, observers=(pieces, survey, marked))
    live, window = transcript.chain, window_of(session.session_id, Where())
    context, scale = weigh(session.path, live, pieces, window)
    before, since, undone = _untrimmed(transcript)
    chain = [*before, *since]
    trimmed = tuple(node for node in chain if node.number in marked.numbers)
    if not undone:
        floor = live[0].number if live and live[0].boundary else 0
        earlier = sum(number < floor for number in marked.numbers)
        return TrimmedSession(session, transcript, pieces, survey, context, scale, trimmed, earlier=earlier)
    # Counts that the client wrote since are of what the trim left.
    counted, scale = weigh(session.path, before, pieces, window)
    added = sum(node.characters for node in since)
    return TrimmedSession(
        session, transcript.ending(chain), pieces, survey, context, scale, trimmed, undone,
        back=added + sum(node.characters for node in before) - sum(node.characters for node in live),
        whole_tokens=counted.tokens + round(added / scale.ratio),
    )  # fmt: skip


def _untrimmed(transcript: Transcript) -> tuple[list[Node], list[Node], int]:
    """What stood before the trims of the running client, what was said since, and how many these were."""
    chain: list[Node] = transcript.chain
    later: list[Node] = []
    undone = 0
    said = [node for node in transcript.nodes if node.spoken and not node.sidechain]
    while chain and chain[0].boundary and any(node.copied for node in chain):
        number = chain[0].number
        before = next((node for node in reversed(said) if node.number < number), None)
        if before is None:
            break
        since = (node for node in chain[1:] if not node.copied)
        own = dropwhile(lambda node: not (node.prompt or node.kind == ASSISTANT), since)
        chain, later, undone = chain_to(transcript.nodes, before), [*own, *later], undone + 1
    return chain, later, undone


class _Marked:
    """An observer of ``transcript.scan``: the numbers of records that lack contents by their own words."""

    def __init__(self) -> None:
        self.numbers: set[int] = set()

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        if node is None or not any(word in line.raw for word in _WORDS):
            return
        if is_marked(record) or origins_in(record) or lacking(record):
            self.numbers.add(node.number)
