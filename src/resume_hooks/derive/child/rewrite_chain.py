"""A child that goes on with its parent's own records: its lines, in a form that every client takes.

Invariant: a record that no edit names is copied byte for byte, but for the session's id, the link
to the record before it, an instant that would go back, token counts where the session shrank, and
what a mark adds.
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
]  # a record as it shall stand in the child; None leaves it out

DROPPED = "Prompt dropped by a hook: "
"""How the record begins that a client keeps of a prompt that a module stopped; our reasons follow."""

BLOCKED = "UserPromptSubmit operation blocked by hook"
"""How the record begins that a client keeps of a card; the model is never sent it."""

CHILD_LINES = ("in Claude Code   /resume ", "in this client   /resume ")
"""What a card of a child holds that need not name us; the second is that of 0.2.0."""

OPENING_REACH = 4  # records at the start of a chain among which a lineage block of ours may stand


def edits_of(
    row: Linear, transcript: Transcript, survey: WriteScan, wanted: Mapping[int, Edit]
) -> dict[int, list[Edit]]:
    """The edits of each record: what the caller wants, what must be mended, what no API takes.

    In that order: the caller's go by the places of blocks, and mending takes blocks out. The first
    record of a headless session is made one of the interactive client, or pickers hide the child.
    """
    by_record: dict[int, list[Edit]] = {}
    for node in row.nodes:
        number = node.number
        each: list[Edit] = [
            *([wanted[number]] if number in wanted else []),
            *([mend] if number in survey.mends else []),
            *([_without_segment] if node.boundary and node.segment is not None else []),
            *([_Dropping(row.dropped[number])] if number in row.dropped else []),
            # As it was parsed: U+FFFD stands for what is no character, and the API refuses.
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
    """An equal record, which is written as it was parsed: what no edit replaces keeps its bytes."""
    return dict(record)


class _Dropping:
    """Leaves out calls that nobody answered, and answers that nobody asked for."""

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
    """None for what the screen showed of a trigger, a dropped prompt or a cold cache: in a child that misleads."""
    said = string(record, "content")
    ours = "resume-hooks" in said or any(line in said for line in CHILD_LINES)
    if ours and said.startswith(BLOCKED):
        return None
    if said in (DROPPED + HELD, DROPPED + LISTED) or _is_cold_notice(said):
        return None
    return record


def _without_cold_notice(record: Record) -> Record | None:
    """None for the same notice of a cold cache as a hook said it."""
    if _is_cold_notice(string(mapping(record, "attachment"), "content")):
        return None
    return record


def _is_cold_notice(said: str) -> bool:
    return said.startswith(f"{PLUGIN}: ") and COLD_SENTENCE in said


def _without_segment(record: Record) -> Record:
    """A boundary without its marks of kept messages: they stand in the chain now."""
    metadata = mapping(record, "compactMetadata")
    kept = {}
    for key, value in metadata.items():
        if not key.startswith("preserved"):
            kept[key] = value
    return {**record, "compactMetadata": kept}


def opening_with(words: str, nodes: Sequence[Node], transcript: Transcript) -> Node | None:
    """The opening of ours that begins with a lineage and holds ``words``, and no prompt of a person's; else None."""
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
    """An opening of ours with its block renewed; what stands after the block stays."""
    _, _, after_block = lineage.partition(lineage_block.CLOSING)
    _, _, rest = message(record)["content"].partition(lineage_block.CLOSING)
    return with_content(record, lineage + rest.removeprefix(after_block))


LATEST_MS = 4_102_444_800_000  # the year 2100: what claims to be later is no instant, and nothing could come after it

MEETINGS = (
    "{count} directly after another: what stood between is lost, and the API takes them for one."
)


class ParentScan(NamedTuple):
    """A session as a child that takes it over reads it, once; ``read_back`` are the calls and the thinking in it.

    ``context`` is what the client would send of it, ``ratio`` characters to a token.
    """

    session: SessionFile
    transcript: Transcript
    survey: WriteScan
    read_back: ReadBack
    ends: HeadTail
    context: ContextSize
    ratio: float

    def tokens_sent(self, chain: list[Node], where: Where) -> int:
        """Tokens that the client would send of ``chain``, a beginning of its own, with what every request begins with.

        What was never counted there are its records alone.
        """
        counted, later = tokens.tokens_of_chain(chain, self.ratio)
        if not counted:
            counted = min(base_of(self.ends, where).tokens, self.context.tokens)
        return counted + later

    def size(self, after: int) -> ChildSize:
        """What a child of it that comes to so many tokens says of its size."""
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
    """The scan of a session, with what its pieces weigh."""
    loaded = Session.of(session, Where())
    context, scale = loaded.weigh(transcript.chain, pieces)
    return ParentScan(
        session, transcript, survey, read_back, loaded.head_tail, context, scale.ratio
    )


class EveryRecord:
    """A watcher: whether something holds for every line of a child."""

    def __init__(self, name: str, holds: Callable[[Line, Record, Node | None], bool]) -> None:
        self._name = name
        self._holds = holds
        self._sound = True

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:
        """Take in one record."""
        self._sound = self._sound and self._holds(line, record, node)

    def checks(self) -> list[Check]:
        """What was seen."""
        return [Check(self._name, self._sound)]


def lineage_if_needed(draft: Draft, transcript: Transcript) -> str:
    """The lineage block, ``""`` for none: a conversation that begins with a user's words needs none before it."""
    first = next(node for node in transcript.chain if node.spoken)
    if first.kind == USER and not first.results:
        return ""
    return draft.block


Mark = Callable[[bytes, Node], bytes]  # a line of the parent with what the child adds to it


class Closing(NamedTuple):
    """What a child tells after the records that it took over: ``text`` to the model, ``card`` on the screen."""

    text: str
    card: str


@dataclass(frozen=True, slots=True)
class ChainRewrite(Body):
    """The live chain of the file ``source`` as the lines of a child.

    ``edits`` go by line number of the parent's file, the first is done first; ``lineage`` becomes a
    record of its own before the node at the place ``introduced``, unless it is ``""``; ``books``
    are lines after the chain. ``shrunk``: token counts are set to zero, since they tell of a larger
    context, and old clients would compact at once. ``closing`` ends the chain; ``mark`` is asked
    last for each record of the parent. ``thoughts`` are digests of the thinking that it may hold,
    None: any.
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
    """Answers right behind another one, what stood between being lost: the API takes them for one."""

    def edited(self, node: Node, record: Record) -> Record | None:
        """The record of a node as it stands in the child; None for one that is left out."""
        result: Record | None = record
        for edit in self.edits.get(node.number, ()):
            result = edit(result) if result is not None else None
        return result

    def lines(self) -> Iterator[bytes]:
        """The child's lines with their endings.

        SessionNotFound where the source is gone or changed under us.
        """
        yield self.head + b"\n"
        thread = _Thread(self)
        try:
            with open(self.source, "rb", buffering=BUFFER) as stream:
                staying = self._staying(stream)
                row = next(staying, None)
                while row is not None:
                    following = next(staying, None)  # what is left out at the end is not the end
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
        """Every session's invariants, every call, no thinking but the parent's, and what the watchers saw."""
        read_back, watchers = ReadBack(), plan.watchers()
        checks = check_session(path, plan.draft.session_id, [read_back, *watchers])
        checks += read_back.checks(
            self.linear, read_back.thoughts if self.thoughts is None else self.thoughts
        )
        return checks + [check for watcher in watchers for check in watcher.checks()]

    def sidecars(self, draft: Draft, where: Where) -> contextlib.AbstractContextManager[list[str]]:
        """The parent's large tool outputs, and the file backups that the child's lines name, under its own id."""
        if draft.parent is NOBODY:
            return contextlib.nullcontext([])
        return sidecars_of(draft, backups_named(self.books), where)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Where what was said between two answers is lost."""
        if self.meetings:
            return (MEETINGS.format(count=plural(self.meetings, "answer")),)
        return ()

    def _staying(self, stream: BinaryIO) -> Iterator[tuple[int, Node, bytes]]:
        """The records that stay: their places in the row, and their lines as edited."""
        for place, node in enumerate(self.linear.nodes):
            body = Line(node.number, node.offset, read_at(stream, node.offset, node.length)).body
            # An id may be written with escapes.
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
    """Plan a child of ``transcript`` that holds its live chain. Reads, writes nothing.

    Without a ``lineage`` a block that stands there stays as it is: what an API has cached begins
    with it. ``shrunk`` None: as the counts that stay tell, those from before a compaction are of a
    larger context.
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
    if row.nodes and row.nodes[0].boundary:  # a compaction's summary has to follow its boundary
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
    """How many answers follow another one that no record of the parent links them to, among the records that stay."""

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
    """The chain as it is written: what the next record hangs on, and how late it has to be."""

    def __init__(self, child: ChainRewrite) -> None:
        self._child = child
        self._last: str | None = None
        self._time = next(
            filter(None, map(_time_ms, child.linear.nodes)), 0
        )  # nothing stands before the first instant
        self.introduced = False

    def lineage(self, node: Node) -> bytes:
        self._time = max(self._time, _time_ms(node))
        self.introduced = True
        return self._own(
            lambda setting, above, own: lineage_line(setting, above, own, self._child.lineage)
        )

    def closing(self) -> Iterator[bytes]:
        """Answers to the calls that still wait for one at the end, and what the child tells behind them."""
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
        """A record of the parent as it stands in the child.

        The ``last`` one is later than all others.
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
    """When a record was written, in milliseconds; 0 where it tells nothing that can be."""
    if node.time_ms is not None and 0 < node.time_ms < LATEST_MS:
        return node.time_ms
    return 0
