"""A child with its parent's own records: its lines, in a form that every client accepts.

Invariant: a record without an edit is copied byte for byte, except for the session's id, the link
to the previous record, an instant before the previous one, token counts of a smaller session, and
the fields that a mark adds.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import BinaryIO, NamedTuple

from resume_hooks import clock
from resume_hooks.derive.child.copy_files import backups_named, sidecars_of
from resume_hooks.derive.child.draft import NOBODY, Draft
from resume_hooks.derive.child.write import Body, ChildPlan
from resume_hooks.errors import SessionNotFound
from resume_hooks.paths import Where
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.opening_layout import (
    ChildSetting,
    closing_lines,
    lineage_line,
    stub_line,
)
from resume_hooks.sessions.session import Session
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.shared_values import COLD_SENTENCE, HELD, LISTED, PLUGIN
from resume_hooks.storage.atomic import BUFFER
from resume_hooks.system.text import plural
from resume_hooks.transcripts import tokens
from resume_hooks.transcripts.api_usage import base_of
from resume_hooks.transcripts.head_tail import HeadTail
from resume_hooks.transcripts.invariants import Check, ReadBack, check_session
from resume_hooks.transcripts.linearize import Linear, answers_meet, linearize
from resume_hooks.transcripts.lines import Line, read_at
from resume_hooks.transcripts.nodes import Node, ancestors
from resume_hooks.transcripts.provenance import ChildSize
from resume_hooks.transcripts.raw_edit import encode, with_fields, without_usage
from resume_hooks.transcripts.records import (
    ATTACHMENT,
    CALL,
    RESULT,
    USER,
    Record,
    call_id,
    mapping,
    message,
    parse,
    string,
    with_content,
)
from resume_hooks.transcripts.tokens import ContextSize
from resume_hooks.transcripts.transcript import Transcript, scan_live
from resume_hooks.transcripts.trimmable_pieces import Pieces
from resume_hooks.transcripts.write_scan import WriteScan, mend

Edit = Callable[
    [Record], Record | None
]  # returns the record for the child, or None to leave it out

DROPPED = "Prompt dropped by a hook: "
"""The start of a client's record for a prompt that a module stopped. Our reason follows it."""

BLOCKED = "UserPromptSubmit operation blocked by hook"
"""The start of a client's record for a card. The client never sends that record to the model."""

CHILD_LINES = ("in Claude Code   /resume ", "in this client   /resume ")
"""Lines in the card of a child that may not name this plugin. The second is from 0.2.0."""

OPENING_REACH = 4  # records at the start of a chain that may contain our lineage block


def edits_of(
    row: Linear, transcript: Transcript, survey: WriteScan, wanted: Mapping[int, Edit]
) -> dict[int, list[Edit]]:
    """Return the edits of each record: the caller's, then repairs, then removals of blocks that no API accepts.

    The caller's edits come first because they address blocks by position, and repairs remove
    blocks. The first record of a headless session becomes one of the interactive client, or pickers
    would hide the child.
    """
    by_record: dict[int, list[Edit]] = {}
    for node in row.nodes:
        number = node.number
        each: list[Edit] = [
            *([wanted[number]] if number in wanted else []),
            *([mend] if number in survey.mends else []),
            *([_without_segment] if node.boundary and node.segment is not None else []),
            *([_Dropping(row.dropped[number])] if number in row.dropped else []),
            # Write the parsed record: an invalid character became U+FFFD, and the API refuses the
            # original.
            *([_written_anew] if number in transcript.lenient_lines else []),
            *([_without_notices] if node.subtype == "informational" else []),
            *([_without_cold_notice] if node.kind == ATTACHMENT else []),
        ]
        if each:
            by_record[number] = each
    if row.nodes and string(transcript.read(row.nodes[0]), "entrypoint").startswith("sdk"):
        by_record.setdefault(row.nodes[0].number, []).append(
            lambda record: {**record, "entrypoint": "cli"}
        )
    return by_record


def _written_anew(record: Record) -> Record:
    """Return a copy of the record.

    An edited record is serialized; an unedited one keeps its bytes.
    """
    return dict(record)


class _Dropping:
    """Removes calls without results, and results without calls."""

    def __init__(self, calls: frozenset[str]) -> None:
        self._calls = calls

    def __call__(self, record: Record) -> Record | None:
        content = message(record).get("content")
        if isinstance(content, list):
            kept = []
            for block in content:
                if not self._is_of_dropped_call(block):
                    kept.append(block)
        else:
            kept = []
        if kept:
            return with_content(record, kept)
        return None

    def _is_of_dropped_call(self, block: object) -> bool:
        return (
            isinstance(block, dict)
            and block.get("type") in (CALL, RESULT)
            and call_id(block) in self._calls
        )


def _without_notices(record: Record) -> Record | None:
    """Return None for a trigger's card, a dropped prompt or a cold cache notice, which mislead in a child."""
    said = string(record, "content")
    ours = "resume-hooks" in said or any(line in said for line in CHILD_LINES)
    if ours and said.startswith(BLOCKED):
        return None
    if said in (DROPPED + HELD, DROPPED + LISTED) or _is_cold_notice(said):
        return None
    return record


def _without_cold_notice(record: Record) -> Record | None:
    """Return None for a cold cache notice from a hook."""
    if _is_cold_notice(string(mapping(record, "attachment"), "content")):
        return None
    return record


def _is_cold_notice(said: str) -> bool:
    return said.startswith(f"{PLUGIN}: ") and COLD_SENTENCE in said


def _without_segment(record: Record) -> Record:
    """Return a boundary without its preserved-message marks, because those messages are now in the chain."""
    metadata = mapping(record, "compactMetadata")
    kept = {}
    for key, value in metadata.items():
        if not key.startswith("preserved"):
            kept[key] = value
    return {**record, "compactMetadata": kept}


def opening_with(words: str, nodes: Sequence[Node], transcript: Transcript) -> Node | None:
    """Return our opening that begins with a lineage and contains ``words``, or None.

    It is never a user's prompt.
    """
    for node in nodes[:OPENING_REACH]:
        if node.meta or node.summary:
            content = message(transcript.read(node)).get("content")
        else:
            content = None
        if (
            isinstance(content, str)
            and content.startswith(lineage_block.OPENING)
            and words in content
        ):
            return node
    return None


def renew_block(record: Record, lineage: str) -> Record:
    """Return our opening with a new lineage block. The text after the block stays."""
    _, _, after_block = lineage.partition(lineage_block.CLOSING)
    _, _, rest = message(record)["content"].partition(lineage_block.CLOSING)
    return with_content(record, lineage + rest.removeprefix(after_block))


# the year 2100: a later time is invalid, and no later record could follow it
LATEST_MS = 4_102_444_800_000

MEETINGS = "{count} directly after another: the records between them are lost, and the API treats them as one."


class ParentScan(NamedTuple):
    """One scan of a session for a child with its records. ``read_back`` has its calls and thinking.

    ``context`` is the context that the client would send, ``ratio`` the characters per token.
    """

    session: SessionFile
    transcript: Transcript
    survey: WriteScan
    read_back: ReadBack
    ends: HeadTail
    context: ContextSize
    ratio: float

    def tokens_sent(self, chain: list[Node], where: Where) -> int:
        """Return the tokens that the client would send for ``chain``, a beginning of this session's chain.

        They include the base of every request. If the API counted no request in ``chain``, they are
        estimated from its records.
        """
        counted, later = tokens.tokens_of_chain(chain, self.ratio)
        if not counted:
            counted = min(base_of(self.ends, where).tokens, self.context.tokens)
        return counted + later

    def size(self, after: int) -> ChildSize:
        """Return the size to record in a child of ``after`` tokens."""
        window = tokens.window_shown(self.session.file, self.context.tokens)
        return ChildSize(after, round(self.ratio, 2), window)


def scan_parent(session: SessionFile) -> ParentScan:
    """Scan the live part of a session."""
    transcript, (survey, read_back, pieces) = scan_live(
        session.file, lambda: (WriteScan(), ReadBack(), Pieces())
    )
    return weigh_session(session, transcript, survey, read_back, pieces)


def weigh_session(
    session: SessionFile,
    transcript: Transcript,
    survey: WriteScan,
    read_back: ReadBack,
    pieces: Pieces,
) -> ParentScan:
    """Return the scan of a session with the sizes of its pieces."""
    loaded = Session.of(session, Where())
    context, scale = loaded.weigh(transcript.chain, pieces)
    return ParentScan(
        session, transcript, survey, read_back, loaded.head_tail, context, scale.ratio
    )


class EveryRecord:
    """A watcher that checks a condition on every line of a child."""

    def __init__(self, name: str, holds: Callable[[Line, Record, Node | None], bool]) -> None:
        self._name = name
        self._holds = holds
        self._sound = True

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Check one record."""
        self._sound = self._sound and self._holds(line, record, node)

    def checks(self) -> list[Check]:
        """Return the result."""
        return [Check(self._name, self._sound)]


def lineage_if_needed(draft: Draft, transcript: Transcript) -> str:
    """Return the lineage block, or ``""`` for a conversation that begins with the user's words."""
    first = next(node for node in transcript.chain if node.spoken)
    if first.kind == USER and not first.results:
        return ""
    return draft.block


Mark = Callable[[bytes, Node], bytes]  # adds the child's fields to a line of the parent


class Closing(NamedTuple):
    """The end of a child after the parent's records: ``text`` for the model, ``card`` for the screen."""

    text: str
    card: str


@dataclass(frozen=True, slots=True)
class ChainRewrite(Body):
    """The live chain of the file ``source`` as the lines of a child.

    ``edits`` are keyed by line number in the parent's file and applied in order. ``lineage``,
    unless ``""``, becomes a record of its own before the node at index ``introduced``. ``books``
    are lines after the chain. If ``shrunk``, token counts become zero: they describe a larger
    context, and old clients would compact at once. ``closing`` ends the chain. ``mark`` is applied
    last to each record of the parent. ``thoughts`` are digests of the thinking that the child may
    contain; None allows any.
    """

    source: str
    setting: ChildSetting
    head: bytes
    lineage: str
    introduced: int
    linear: Linear
    edits: Mapping[int, Sequence[Edit]]
    books: tuple[bytes, ...]
    shrunk: bool
    closing: Closing | None
    mark: Mark | None
    thoughts: frozenset[int] | None
    meetings: int
    """The number of answers that directly follow another one because the records between them are lost.

    The API treats such a pair as one answer.
    """

    def edited(self, node: Node, record: Record) -> Record | None:
        """Return a node's record as it appears in the child, or None if it is left out."""
        result: Record | None = record
        for edit in self.edits.get(node.number, ()):
            result = edit(result) if result is not None else None
        return result

    def lines(self) -> Iterator[bytes]:
        """Yield the child's lines with their endings.

        Raises SessionNotFound if the source is gone or changes during the read.
        """
        yield self.head + b"\n"
        thread = _Thread(self)
        try:
            with open(self.source, "rb", buffering=BUFFER) as stream:
                staying = self._staying(stream)
                row = next(staying, None)
                while row is not None:
                    # the last kept record is the end, even if others follow it
                    following = next(staying, None)
                    place, node, body = row
                    if self.lineage and place >= self.introduced and not thread.introduced:
                        yield thread.lineage(node) + b"\n"
                    yield thread.record(node, body, last=following is None) + b"\n"
                    row = following
        except OSError as error:
            raise SessionNotFound(
                f"{self.source} can't be read: {error.strerror}", "Check the path."
            ) from error
        for body in (*thread.closing(), *self.books):
            yield body + b"\n"

    def checks(self, path: str, plan: ChildPlan) -> list[Check]:
        """Check every session's invariants, the calls, that all thinking is the parent's, and the watchers' results."""
        read_back, watchers = ReadBack(), plan.watchers()
        checks = check_session(path, plan.draft.session_id, [read_back, *watchers])
        checks += read_back.checks(
            self.linear, read_back.thoughts if self.thoughts is None else self.thoughts
        )
        return checks + [check for watcher in watchers for check in watcher.checks()]

    def sidecars(self, draft: Draft, where: Where) -> contextlib.AbstractContextManager[list[str]]:
        """Write the parent's large tool outputs and the file backups in the child's lines, under the child's id."""
        if draft.parent is NOBODY:
            return contextlib.nullcontext([])
        return sidecars_of(draft, backups_named(self.books), where)

    @property
    def warnings(self) -> tuple[str, ...]:
        """A warning if records between two answers are lost."""
        if self.meetings:
            return (MEETINGS.format(count=plural(self.meetings, "answer")),)
        return ()

    def _staying(self, stream: BinaryIO) -> Iterator[tuple[int, Node, bytes]]:
        """Yield the kept records: their index in the row, their node and their edited line."""
        for place, node in enumerate(self.linear.nodes):
            body = Line(node.number, node.offset, read_at(stream, node.offset, node.length)).body
            # The id may contain escapes.
            if node.uuid.encode("utf-8", "replace") not in body and not node.is_of(parse(body)):
                raise SessionNotFound(
                    "The session changed while it was read", "Run the command again."
                )
            if node.number in self.edits:
                record = parse(body)
                if record is not None:
                    edited = self.edited(node, record)
                else:
                    edited = None
                if edited is None:
                    continue
                if edited is not record:
                    body = encode(edited)
            yield place, node, body


def chain_rewrite(  # noqa: PLR0913 - what a child is made of
    draft: Draft,
    transcript: Transcript,
    survey: WriteScan,
    *,
    head: bytes,
    lineage: str = "",
    edits: Mapping[int, Edit] | None = None,
    books: Sequence[bytes] = (),
    shrunk: bool | None = None,
    closing: Closing | None = None,
    mark: Mark | None = None,
    thoughts: frozenset[int] | None = None,
) -> ChainRewrite:
    """Plan a child with the live chain of ``transcript``. Reads, writes nothing.

    Without ``lineage`` an existing block stays unchanged, because the API's cache begins with it.
    If ``shrunk`` is None, it depends on the remaining counts: those from before a compaction belong
    to a larger context.
    """
    row = linearize(transcript.chain)
    by_record = edits_of(row, transcript, survey, edits or {})
    if lineage:
        older = opening_with(lineage_block.CLOSING, row.nodes, transcript)
    else:
        older = None
    if older is not None:
        by_record.setdefault(older.number, []).append(lambda record: renew_block(record, lineage))
    introduced = 0
    if row.nodes and row.nodes[0].boundary:  # a compaction's summary must follow its boundary
        introduced = next(
            (at + 1 for at, node in enumerate(row.nodes[:OPENING_REACH]) if node.summary), 1
        )
    rewrite = ChainRewrite(
        source=transcript.path,
        setting=draft.setting,
        head=head,
        lineage="" if older is not None else lineage,
        introduced=introduced,
        linear=row,
        edits=by_record,
        books=tuple(books),
        shrunk=tokens.last_counted(transcript.chain) is None if shrunk is None else shrunk,
        closing=closing,
        mark=mark,
        thoughts=thoughts,
        meetings=0,
    )
    return replace(rewrite, meetings=_count_unlinked_answers(rewrite, transcript, survey))


def _count_unlinked_answers(
    rewrite: ChainRewrite, transcript: Transcript, survey: WriteScan
) -> int:
    """Count the kept answers that follow another answer without a link between them in the parent."""

    def stays(node: Node) -> bool:
        touched = node.number in rewrite.linear.dropped or node.number in survey.mends
        return not touched or rewrite.edited(node, transcript.read(node)) is not None

    known = {node.uuid: node for node in rewrite.linear.nodes}

    def parent(node: Node) -> Node | None:
        return known.get(node.parent or "")

    def is_linked(before: Node, node: Node) -> bool:
        above = ancestors(parent(node), parent)
        return next((one for one in above if one.spoken), None) is before

    spoken = [node for node in rewrite.linear.nodes if node.spoken and stays(node)]
    pairs = ((before, node) for before, node in pairwise(spoken) if answers_meet(before, node))
    return sum(not is_linked(before, node) for before, node in pairs)


class _Thread:
    """The state of the chain while it is written: the id and the time of the last record."""

    def __init__(self, child: ChainRewrite) -> None:
        self._child = child
        self._last: str | None = None
        self._time = next(
            filter(None, map(_time_ms, child.linear.nodes)), 0
        )  # no record is earlier than the first instant
        self.introduced = False

    def lineage(self, node: Node) -> bytes:
        self._time = max(self._time, _time_ms(node))
        self.introduced = True
        return self._own(
            lambda setting, above, own: lineage_line(setting, above, own, self._child.lineage)
        )

    def closing(self) -> Iterator[bytes]:
        """Yield results for the calls that are still open at the end, and the child's closing records."""
        for call in self._child.linear.open_calls:
            self._time += 1
            yield self._own(partial(stub_line, call=call))
        ending = self._child.closing
        if ending is None:
            return
        self._time = max(self._time + 1, clock.milliseconds(self._child.setting.at) or 0)
        setting = self._child.setting._replace(at=clock.from_milliseconds(self._time))
        yield from closing_lines(setting, self._last, ending.text, ending.card)

    def record(self, node: Node, body: bytes, *, last: bool) -> bytes:
        """Return a record of the parent as it appears in the child.

        The ``last`` record is later than all others.
        """
        at = max(self._time + (last and self._last is not None), _time_ms(node))
        body = self._threaded(node, body, at)
        if self._child.shrunk and node.context_tokens:
            body = without_usage(body)
        if self._child.mark is not None:
            body = self._child.mark(body, node)
        self._last, self._time = node.uuid, at
        return body

    def _threaded(self, node: Node, body: bytes, at: int) -> bytes:
        session_id = self._child.setting.session_id
        new = {"parentUuid": None if node.boundary else self._last, "sessionId": session_id}
        if at == node.time_ms and node.session_id and not node.given_uuid:
            return with_fields(body, {"parentUuid": node.parent, "sessionId": node.session_id}, new)
        record = parse(body) or {}
        if "sessionId" not in record:
            del new["sessionId"]
        if at != node.time_ms:
            new["timestamp"] = clock.from_milliseconds(at)
        if node.given_uuid:
            new["uuid"] = node.uuid
        return with_fields(body, {key: record.get(key) for key in new}, new)

    def _own(self, write: Callable[[ChildSetting, str | None, str], bytes]) -> bytes:
        own = str(uuid.uuid4())
        body = write(
            self._child.setting._replace(at=clock.from_milliseconds(self._time)), self._last, own
        )
        self._last = own
        return body


def _time_ms(node: Node) -> int:
    """Return a record's time in milliseconds, or 0 if it has no valid one."""
    if node.time_ms is not None and 0 < node.time_ms < LATEST_MS:
        return node.time_ms
    return 0
