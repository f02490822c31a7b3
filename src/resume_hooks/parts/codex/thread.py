"""A Codex session as the source of a child: the items that Codex sends, and the environment that it described.

Memory is bounded by the size of these items; the rest of the files is streamed. A trimmed child has
the same items with placeholders for bulky contents: outputs, inputs, images, pastes, long answers.
Encrypted content is never trimmed, because the provider accepts it only unchanged.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import orjson

from resume_hooks import settings
from resume_hooks.derive.child.draft import Draft
from resume_hooks.derive.trim.options import Options
from resume_hooks.derive.trim.plan import ASSISTANT, BEFORE, USER, Decision, Words
from resume_hooks.derive.trim.rules import TrimMaterial, protected_from
from resume_hooks.derive.trim.selection import HEAD, TAIL, Choice, Origins
from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.rollout import RolloutBody, item_record, told_body
from resume_hooks.parts.codex.transcripts import items as of_items
from resume_hooks.parts.codex.transcripts.goal import COMPLETE, GoalState
from resume_hooks.parts.codex.transcripts.history import History, Item
from resume_hooks.parts.codex.transcripts.lines import (
    COMPACTED,
    CONTEXT,
    ITEM,
    SETTINGS,
    WORLD,
    RolloutLine,
    rollout_lines,
)
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.parts.codex.transcripts.segments import Finder, chain_lines
from resume_hooks.paths import Where
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import one_line, plain_line
from resume_hooks.transcripts.attachments import Address
from resume_hooks.transcripts.calibration import Scale
from resume_hooks.transcripts.context_size import UNCOUNTED
from resume_hooks.transcripts.placeholders import (
    MARKS,
    SHORTEST,
    Origin,
    origin_of,
    stands_for_answer,
    stands_for_something,
    was_trimmed,
)
from resume_hooks.transcripts.records import Record, mapping, objects, string
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN, ESTIMATED, MEASURED, ContextSize
from resume_hooks.transcripts.trimmable_pieces import (
    INPUT,
    MEDIA,
    PROMPT,
    RESULT,
    TEXT,
    Piece,
    ToolCall,
)

WINDOW = 258_400  # tokens, if no response reported the model's window
READ, FIRST = 2_000, 200  # characters of a prompt that are read, and that a preview shows
LIMIT = "fallback_token_limit_override"
"""The key that limits how much of an output a client sends to an unknown model.

The limit belongs to its output, so a child copies it.
"""

IMAGE_TOKENS = 1_600  # the maximum for an image, whatever its size

_TARGETS = ("cmd", "command", "path", "file_path", "query", "url", "input")
_FAILED = re.compile(r'(?:exited with code|Exit code:|"exit_code":)\s*[1-9]')
_REACH = 400  # characters at the start of an output that are searched for its exit code


@dataclass(frozen=True, slots=True)
class CodexThread:
    """A thread; ``items`` are the items that Codex sends, oldest first, ``told`` the line of each item in a child.

    ``meta`` is its first line. ``has_goal`` is true if its goal is not complete. ``numbers`` maps
    item ids to the line numbers that references use.
    """

    session: SessionFile
    meta: Record
    items: tuple[Item, ...]
    told: tuple[Record, ...]
    surroundings: tuple[RolloutLine, ...]
    context: ContextSize
    has_goal: bool
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def scale(self) -> Scale:
        """The scale from characters to tokens.

        The client's count includes text that no file contains, so it gives no ratio.
        """
        return Scale(CHARACTERS_PER_TOKEN, {}, {})

    @property
    def trimmed_origins(self) -> dict[int, Origin]:
        """The origins of items that were trimmed earlier, by item index."""
        origins = {}
        for place, record in enumerate(self.told):
            marks = {key: record[key] for key in MARKS & record.keys()}
            if marks and (origin := origin_of(marks)):
                origins[place] = origin
        return origins

    def material(self, options: Options) -> TrimMaterial:
        """Return the pieces of its items that a trim can replace."""
        payloads = [item.payload for item in self.items]
        found: list[Piece] = []
        calls: dict[str, ToolCall] = {}
        answered: dict[str, int] = {}
        failed: set[str] = set()
        for place, item in enumerate(payloads):
            kind, own = of_items.kind(item), of_items.call_id(item)
            if kind in of_items.CALLS:
                calls[own] = _tool_call(item, place)
                found += _pieces_of_call(item, place, own)
            elif kind in of_items.OUTPUTS and own in calls:
                answered[own] = place
                if _FAILED.search(of_items.text(item)[:_REACH]):
                    failed.add(own)
                found += _pieces_of_output(item, place, own)
            elif kind == of_items.MESSAGE:
                found += _pieces_of_message(item, place)
        prompts = []
        for place, item in enumerate(payloads):
            if of_items.is_prompt(item):
                prompts.append(place)
        return TrimMaterial(
            pieces=tuple(found),
            places={place: place for place in range(len(payloads))},
            protected=protected_from(prompts, sorted(answered.values()), len(payloads), options),
            last_turn=prompts[-1] if prompts else 0,
            calls=calls,
            answered=frozenset(answered),
            failed=frozenset(failed),
            answers_gone=sum(
                string(item, "role") == "assistant" and stands_for_answer(of_items.text(item))
                for item in payloads
            ),
            prompts=tuple(prompts),
        )

    def origins(self, where: Where) -> Origins:  # noqa: ARG002 - as of any session
        """Return the origins of its items: their own lines, or for trimmed items the recorded origins."""
        own = str(self.meta.get("id"))
        uuids = {place: item.uuid for place, item in enumerate(self.items)}
        file, lines = self.session.original, self.numbers
        here = {}
        for place, uuid in uuids.items():
            here[place] = Origin(own, file, uuid, lines.get(uuid, 0))
        return Origins(own, file, here | self.trimmed_origins, uuids, lambda _: True)

    def values(self, pieces: Iterable[Piece]) -> Iterator[Any]:
        """Yield the contents of these pieces."""
        for piece in pieces:
            found: Any = self.items[piece.number].payload
            for step in piece.address:
                if step == "arguments":
                    found = of_items.arguments(found)
                else:
                    found = found[step]
            yield found

    def spoken_words(self) -> Iterator[Words]:
        """Yield the prompts, answers and compaction summaries."""
        for place, item in enumerate(self.items):
            if who := _speaker_of_item(item.payload):
                if who == USER:
                    text = of_items.request_text(item.payload)
                else:
                    text = of_items.text(item.payload)
                yield Words(
                    place,
                    who,
                    text,
                    one_line(plain_line(text[:READ]), FIRST) if who == USER else text,
                )

    def body(self, child: Draft, head: bytes, options: Options, decision: Decision) -> RolloutBody:  # noqa: ARG002
        """Return the items of a child, with placeholders for the chosen pieces."""
        chosen: defaultdict[int, list[Choice]] = defaultdict(list)
        for choice in decision.choices:
            chosen[choice.piece.number].append(choice)
        edited = {}
        for place, choices in chosen.items():
            payload = self.items[place].payload
            for choice in choices:
                payload = _replace_piece(payload, choice.piece.address, choice)
            edited[place] = {
                **self.told[place],
                "payload": payload,
                **decision.origins.of(place).marks(0),
            }
        return self.child_body(child, head, edited)

    def child_body(self, child: Draft, head: bytes, edited: Mapping[int, Record]) -> RolloutBody:
        """Return a child's items, with the records in ``edited`` replacing those at their index."""
        told = []
        for place, record in enumerate(self.told):
            told.append(edited.get(place, record))
        return told_body(child, head, self.meta, told, self.surroundings, leaves_goal=self.has_goal)


def _tool_call(item: Record, place: int) -> ToolCall:
    """Return a call with its target; a command may be a list of words."""
    given = of_items.arguments(item)
    name = string(item, "name") or of_items.kind(item)
    for key in _TARGETS:
        value = given.get(key)
        words = value if isinstance(value, list) else [value]
        target = " ".join(word for word in words if isinstance(word, str))
        if target:
            return ToolCall(place, name, target, ())
    return ToolCall(place, name, "", ())


def _pieces_of_call(item: Record, place: int, own: str) -> Iterator[Piece]:
    if of_items.kind(item) == "custom_tool_call":
        given: Record = {"input": item.get("input")}
        at: tuple[str, ...] = ()
    elif isinstance(item.get("arguments"), str):
        given, at = of_items.arguments(item), ("arguments",)
    else:
        return
    for key, text in given.items():
        if isinstance(text, str) and len(text) > SHORTEST and not stands_for_something(text):
            yield Piece(place, (*at, key), INPUT, len(text), call=own)


def _pieces_of_output(item: Record, place: int, own: str) -> Iterator[Piece]:
    told = item.get("output")
    if isinstance(told, str):
        if len(told) > SHORTEST and not was_trimmed(told):
            yield Piece(place, ("output",), RESULT, len(told), call=own, digest=hash(told))
        return
    for index, part in enumerate(told if isinstance(told, list) else ()):
        if not isinstance(part, dict):
            continue
        if string(part, "type") == "input_image":
            yield Piece(place, ("output", index), MEDIA, 0, IMAGE_TOKENS, call=own)
        elif len(text := string(part, "text")) > SHORTEST and not was_trimmed(text):
            yield Piece(
                place, ("output", index, "text"), RESULT, len(text), call=own, digest=hash(text)
            )


def _pieces_of_message(item: Record, place: int) -> Iterator[Piece]:
    assistant, prompt = string(item, "role") == "assistant", of_items.is_prompt(item)
    content = item.get("content")
    for index, part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(part, dict) or not (assistant or prompt):
            continue
        if string(part, "type") == "input_image":
            yield Piece(place, ("content", index), MEDIA, 0, IMAGE_TOKENS)
        elif len(text := string(part, "text")) > SHORTEST and not stands_for_something(text):
            yield Piece(place, ("content", index, "text"), TEXT if assistant else PROMPT, len(text))


def _replace_piece(value: Any, path: Address, choice: Choice) -> Any:
    """Return ``value`` with the piece at ``path`` replaced; only the containers along the path are copied."""
    if not path:
        if choice.piece.kind == MEDIA:
            return {"type": "input_text", "text": choice.placeholder}
        if choice.piece.kind == PROMPT:
            return f"{value[:HEAD]}\n{choice.placeholder}\n{value[-TAIL:]}"
        return choice.placeholder
    step, *rest = path
    if step == "arguments":
        return {
            **value,
            step: orjson.dumps(
                {**of_items.arguments(value), str(rest[0]): choice.placeholder}
            ).decode(),
        }
    changed: Any = list(value) if isinstance(value, list) else dict(value)
    changed[step] = _replace_piece(value[step], tuple(rest), choice)
    return changed


def _speaker_of_item(item: Record) -> str:
    """Return the speaker of a message, or "" for other items and for messages of the harness."""
    if of_items.is_prompt(item):
        return USER
    if of_items.is_summary(item):
        return BEFORE
    if of_items.kind(item) == of_items.MESSAGE and item.get("role") == "assistant":
        return ASSISTANT
    return ""


def read(session: SessionFile, find: Finder) -> CodexThread:
    """Return the thread of a session. Raise SessionNotFound or NotATranscript like ``chain_lines``."""
    return _read(session, chain_lines(session.original, find))


def read_left(session: SessionFile, find: Finder) -> CodexThread:
    """Return the readable part of a thread: only its newest file if others are missing.

    Outputs without a call are left out.
    """
    try:
        whole = read(session, find)
    except (NotATranscript, SessionNotFound):
        whole = _read(session, rollout_lines(session.original))
    orphans = of_items.orphans([item.payload for item in whole.items])
    kept = []
    for place in range(len(whole.items)):
        if place not in orphans:
            kept.append(place)
    return replace(
        whole,
        items=tuple(whole.items[at] for at in kept),
        told=tuple(whole.told[at] for at in kept),
    )


def _read(session: SessionFile, lines: Iterable[RolloutLine]) -> CodexThread:
    history, marks, goals, window = (
        History(session.original),
        _Marks(),
        GoalState(),
        settings.number("context_window"),
    )
    # What the client told the model about its environment: the last full state and the changes
    # since, the turn's own context, and the thread's settings, such as how its reasoning is
    # summarized.
    world, turn, applied = list[RolloutLine](), list[RolloutLine](), list[RolloutLine]()
    for line in lines:
        history.take(line)
        marks.take(line)
        goals.take(line)
        if line.kind == CONTEXT:
            turn = [line]
        elif line.event() == SETTINGS:
            applied = [line]
        elif line.kind == WORLD:
            if line.payload.get("full"):
                world.clear()
            world.append(line)
    return CodexThread(
        session=session,
        meta=read_meta(session.original).payload,
        items=tuple(history.items),
        told=tuple(
            item_record(item.payload, item.timestamp, item.uuid, marks.of(item))
            for item in history.items
        ),
        surroundings=(*world, *turn, *applied),
        context=ContextSize(
            history.tokens,
            window or history.window or WINDOW,
            MEASURED if history.measured else ESTIMATED,
            reason="" if history.measured else UNCOUNTED,
        ),
        has_goal=goals.goal is not None and goals.goal.status != COMPLETE,
    )


class _Marks:
    """The metadata of items outside their payload: our own marks, and the limit on how much of an output is sent."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[str, int, int], Record] = {}

    def take(self, line: RolloutLine) -> None:
        """Process the next line; a compaction discards everything before it."""
        if line.kind == ITEM:
            own = {}
            for key, value in line.record.items():
                if key in MARKS:
                    own[key] = value
            self._keep(line, -1, own, mapping(line.record, "metadata"))
        elif line.kind == COMPACTED:
            self._by_place.clear()
            for part, metadata in enumerate(
                objects(line.payload.get("replacement_history_metadata"))
            ):
                self._keep(line, part, {}, metadata)

    def _keep(self, line: RolloutLine, part: int, own: Record, metadata: Record) -> None:
        if isinstance(metadata.get(LIMIT), int):
            own["metadata"] = {LIMIT: metadata[LIMIT]}
        if own:
            self._by_place[line.file, line.number, part] = own

    def of(self, item: Item) -> Record:
        """Return the metadata of an item."""
        return self._by_place.get((item.file, item.number, item.part), {})
