"""A trim of the conversation that a running client holds: what it is to hold instead, message by message.

The rule is measured: an answer or a tool's result that stays as it stands is right in the next
request, but after a resume the client reads what it was before as well. So every one of them is
built anew, consecutive ones as one, and only what a person said stays as it stands. A built message
holds texts and calls alone, no thinking and no pictures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, NamedTuple

from resume_hooks.derive.trim.options import MIN_SAVINGS, WORTH, Options
from resume_hooks.derive.trim.plan import Decision, SessionScan, decision_of
from resume_hooks.derive.trim.rules import Pick
from resume_hooks.derive.trim.selection import choice_of, choose_pieces, edits_of_choices
from resume_hooks.errors import PlanOutdated
from resume_hooks.paths import Where
from resume_hooks.transcripts import placeholders, records
from resume_hooks.transcripts.placeholders import OriginalReference
from resume_hooks.transcripts.records import Record, string
from resume_hooks.transcripts.tokens import media_tokens
from resume_hooks.transcripts.trimmable_pieces import ATTACHMENT, MEDIA, PROMPT, THINKING

STAY_IN_PLACE = frozenset({PROMPT, ATTACHMENT})
"""The kinds of contents that a running client can't be told to drop: what a person said, and what came with it."""


MUCH = 0.1
"""Of the larger one: what a copy and a trim in place free differs by more than that where each is told by itself."""


class ShownMessage(NamedTuple):
    """A message as the client shows it: the uuid of its record, and the calls that it makes or answers."""

    handle: str
    role: str
    calls: tuple[str, ...]
    results: tuple[str, ...]

    @property
    def stays(self) -> bool:
        """Whether a person said it."""
        return self.role == records.USER and not self.results


class Reach(NamedTuple):
    """Which messages are built anew: what stands before ``start`` goes, what stands from ``end`` on stays as it is."""

    start: int
    end: int


class InClient(NamedTuple):
    """What the client is to hold: ``messages`` are places in what it showed, one that stays or several that become one.

    ``texts`` are what answers say instead, by handle; ``results`` and ``inputs`` by call; ``gone``
    are calls without a result, or the other way round.
    """

    messages: tuple[int | tuple[int, ...], ...]
    texts: Mapping[str, str]
    results: Mapping[str, str]
    inputs: Mapping[str, Any]
    gone: tuple[str, ...]
    decision: Decision


def plan_in_client(
    scanned: SessionScan,
    shown: Sequence[ShownMessage],
    options: Options,
    where: Where,
    reach: Reach | None = None,
) -> InClient:
    """Decide what the client is to hold, of all messages or within ``reach``.

    PlanOutdated, UsageError.
    """
    nodes = {node.uuid: node for node in scanned.transcript.chain}
    start, end = reach or Reach(0, len(shown))
    rebuilt = shown[start:end]
    for message in rebuilt:
        node = nodes.get(message.handle)
        if node is None or (node.kind, node.calls, node.results) != message[1:]:
            raise PlanOutdated(
                "What Claude Code holds is not what its file holds", "Nothing was changed."
            )
    numbers = {nodes[message.handle].number for message in rebuilt if not message.stays}
    decision = _decision(scanned, options, where, numbers)
    edits = edits_of_choices(decision.choices, decision.origins)
    texts: dict[str, str] = {}
    results: dict[str, str] = {}
    inputs: dict[str, Any] = {}
    silent: set[str] = set()
    for message in rebuilt:
        if message.stays:
            continue
        node = nodes[message.handle]
        record = scanned.transcript.read(node)
        edit = edits.get(node.number)
        edited = (edit(record) if edit else None) or record
        if message.role == records.ASSISTANT:
            text = records.text(edited).strip()
            if record.get("isApiErrorMessage") is True or not (text or message.calls):
                silent.add(message.handle)
            elif edit and text:
                texts[message.handle] = text
            inputs |= {
                string(call, "id"): call.get("input") for call in records.calls(edited) if edit
            }
        else:
            reference = decision.origins.of(node.number).reference
            results |= {
                string(block, "tool_use_id"): _as_text(block, reference)
                for block in records.results(edited)
            }
    called = {call for message in shown[start:] for call in message.calls}
    answered = {call for message in shown[start:] for call in message.results}
    return InClient(
        messages=(
            *_group_messages(shown, range(start, end), silent),
            *_group_messages(
                shown, range(end, len(shown)), set(), thinks=_thinks(scanned, shown[end:])
            ),
        ),
        texts=texts,
        results=results,
        inputs=inputs,
        gone=tuple(
            sorted(called ^ answered)
        ),  # calls that nobody answered, answers that nobody asked for
        decision=decision,
    )


def decide(scanned: SessionScan, options: Options, where: Where) -> Decision:
    """What goes of all messages, as ``plan_in_client`` decides it for a client that holds what its file does.

    UsageError.
    """
    rebuilt = set()
    for node in scanned.transcript.chain:
        if node.kind == records.ASSISTANT or (node.kind == records.USER and node.results):
            rebuilt.add(node.number)
    return _decision(scanned, options, where, rebuilt)


def pays_in_client(decision: Decision, options: Options) -> bool:
    """Whether a trim in place frees enough: the whole conversation leaves the cache for it.

    Less can be asked for.
    """
    if options.min_savings == MIN_SAVINGS:
        least = WORTH
    else:
        least = options.min_savings
    return decision.savings.tokens >= least


def is_different_saving(copy: int, in_place: int) -> bool:
    """Whether a copy and a trim in place free so differently that one figure can't stand for both."""
    return abs(copy - in_place) > MUCH * max(copy, in_place)


def _decision(scanned: SessionScan, options: Options, where: Where, numbers: set[int]) -> Decision:
    """What goes: what the rules choose among the records that are built anew, and what none of those can hold."""
    origins, trimmable = scanned.origins(where), scanned.material(options)
    chosen = choose_pieces(trimmable, options, origins, scanned.scale, scanned.context.tokens)
    choices = []
    for c in chosen:
        if c.piece.number in numbers and c.piece.kind not in STAY_IN_PLACE:
            choices.append(c)
    taken = {(choice.piece.number, choice.piece.address) for choice in choices}
    for piece in trimmable.pieces:
        unfit = piece.kind in {THINKING, MEDIA} and piece.number in numbers
        if unfit and (piece.number, piece.address) not in taken:
            rule = "thinking" if piece.kind == THINKING else "media"
            choice = choice_of(trimmable, Pick(piece), rule, origins)
            choices += [choice] if choice is not None else []
    return decision_of(scanned, options, trimmable, choices, origins)


def _as_text(block: Record, original: OriginalReference) -> str:
    parts = []
    for part in records.result_blocks(block):
        kind = string(part, "type")
        if kind == records.TEXT:
            parts.append(string(part, "text"))
        elif kind in records.MEDIA:
            parts.append(placeholders.for_media(media_tokens(part), original))
        else:
            parts.append(string(part, "tool_name"))
    return "\n".join(filter(None, parts)) or "(nothing)"


def _group_messages(
    shown: Sequence[ShownMessage], places: range, silent: set[str], *, thinks: bool = False
) -> Iterator[int | tuple[int, ...]]:
    """The places of what stays, and of what becomes one message: consecutive answers, consecutive results."""
    rows = [place for place in places if shown[place].handle not in silent]

    def stays(message: ShownMessage) -> bool:
        return message.stays or (thinks and message.role == records.ASSISTANT)

    for (as_it_is, _), group in groupby(
        rows, key=lambda place: (stays(shown[place]), shown[place].role)
    ):
        if as_it_is:
            yield from group
        else:
            yield tuple(group)


def _thinks(scanned: SessionScan, turn: Sequence[ShownMessage]) -> bool:
    """Whether answers of a running turn hold thinking, which the API wants to see again there.

    Also if unknown.
    """
    known = scanned.transcript.by_uuid
    answers = []
    for message in turn:
        if message.role == records.ASSISTANT:
            answers.append(known.get(message.handle))
    return any(node is None or node.number in scanned.pieces.thinking_in for node in answers)
