"""Read a Codex session as the source of a child: the items that Codex sends, and its description of the environment.

Only these items are kept in memory; the rest of the files is streamed. A trimmed child has the same
items, with placeholders for large contents: outputs, inputs, images, pastes and long answers.
Encrypted content is never trimmed, because the provider rejects it if it was changed.
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
from resume_hooks.derive.trim.plan import ASSISTANT, EARLIER_SUMMARY, USER, Decision, SpokenMessage
from resume_hooks.derive.trim.rules import TrimMaterial, find_protected_start
from resume_hooks.derive.trim.selection import HEAD_CHARACTERS, TAIL_CHARACTERS, Choice, Origins
from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.rollout import RolloutBody, build_body, build_item_record
from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.goal import COMPLETE_STATUS, GoalState
from resume_hooks.parts.codex.transcripts.history import History, Item
from resume_hooks.parts.codex.transcripts.lines import (
    COMPACTED,
    CONTEXT,
    ITEM,
    SETTINGS_EVENT,
    WORLD_STATE,
    RolloutLine,
    read_rollout_lines,
)
from resume_hooks.parts.codex.transcripts.meta import read_meta
from resume_hooks.parts.codex.transcripts.segments import RolloutFinder, read_thread_lines
from resume_hooks.paths import Where
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts.attachments import Address
from resume_hooks.transcripts.calibration import TokenScale
from resume_hooks.transcripts.context_size import NEVER_COUNTED
from resume_hooks.transcripts.placeholders import (
    MIN_PLACEHOLDER_CHARACTERS,
    TRIM_FIELDS,
    Origin,
    contains_placeholder,
    is_response_placeholder,
    read_origin,
    was_trimmed,
)
from resume_hooks.transcripts.records import Record, get_mapping, get_string, list_objects
from resume_hooks.transcripts.tokens import CHARACTERS_PER_TOKEN, ESTIMATED, MEASURED, ContextSize
from resume_hooks.transcripts.trimmable_pieces import (
    INPUT_PIECE,
    MEDIA_PIECE,
    PROMPT_PIECE,
    RESULT_PIECE,
    TEXT_PIECE,
    Piece,
    ToolCall,
)

DEFAULT_WINDOW_TOKENS = 258_400  # the window in tokens if no response reported it
# The maximum number of characters to read from a prompt.
MAX_PROMPT_CHARACTERS = 2_000
MAX_PREVIEW_CHARACTERS = 200
OUTPUT_LIMIT_KEY = "fallback_token_limit_override"
"""The key for the maximum length of an output that a client sends to an unknown model.

The limit belongs to its output, so it is copied to a child.
"""

IMAGE_TOKENS = 1_600  # the maximum for an image of any size

_TARGET_ARGUMENTS = ("cmd", "command", "path", "file_path", "query", "url", "input")
_FAILED_EXIT = re.compile(r'(?:exited with code|Exit code:|"exit_code":)\s*[1-9]')
# the number of characters at the start of an output that are searched for the exit code
_EXIT_CODE_SEARCH_CHARACTERS = 400


@dataclass(frozen=True, slots=True)
class CodexThread:
    """A thread: ``items`` are the items that Codex sends, oldest first, ``child_records`` their lines in a child.

    ``meta`` is its first line. ``has_goal`` is true if the thread has an incomplete goal.
    ``line_numbers`` maps item ids to the line numbers in references.
    """

    session: SessionFile
    meta: Record
    items: tuple[Item, ...]
    child_records: tuple[Record, ...]
    environment_lines: tuple[RolloutLine, ...]
    context: ContextSize
    has_goal: bool
    line_numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def scale(self) -> TokenScale:
        """The ratio of characters to tokens.

        The ratio is always an estimate: the client's token count includes text that is not in any file.
        """
        return TokenScale(CHARACTERS_PER_TOKEN, {}, {})

    @property
    def trimmed_origins(self) -> dict[int, Origin]:
        """The origins of items that an earlier trim replaced, by item index."""
        origins = {}
        for index, record in enumerate(self.child_records):
            trim_fields = {key: record[key] for key in TRIM_FIELDS & record.keys()}
            if trim_fields and (origin := read_origin(trim_fields)):
                origins[index] = origin
        return origins

    def collect_material(self, options: Options) -> TrimMaterial:
        """Return the pieces of its items that a trim can replace."""
        payloads = [payload.payload for payload in self.items]
        pieces: list[Piece] = []
        calls: dict[str, ToolCall] = {}
        output_indexes: dict[str, int] = {}
        failed_call_ids: set[str] = set()
        for index, payload in enumerate(payloads):
            kind, call_id = codex_items.item_type(payload), codex_items.call_id(payload)
            if kind in codex_items.CALL_TYPES:
                calls[call_id] = _build_tool_call(payload, index)
                pieces += _call_pieces(payload, index, call_id)
            elif kind in codex_items.OUTPUT_TYPES and call_id in calls:
                output_indexes[call_id] = index
                if _FAILED_EXIT.search(
                    codex_items.item_text(payload)[:_EXIT_CODE_SEARCH_CHARACTERS]
                ):
                    failed_call_ids.add(call_id)
                pieces += _output_pieces(payload, index, call_id)
            elif kind == codex_items.MESSAGE_TYPE:
                pieces += _message_pieces(payload, index)
        prompts = []
        for index, payload in enumerate(payloads):
            if codex_items.is_prompt(payload):
                prompts.append(index)
        return TrimMaterial(
            pieces=tuple(pieces),
            chain_indexes={index: index for index in range(len(payloads))},
            protected_start=find_protected_start(
                prompts, sorted(output_indexes.values()), len(payloads), options
            ),
            last_turn_start=prompts[-1] if prompts else 0,
            calls=calls,
            answered_calls=frozenset(output_indexes),
            failed_calls=frozenset(failed_call_ids),
            trimmed_answer_count=sum(
                get_string(payload, "role") == "assistant"
                and is_response_placeholder(codex_items.item_text(payload))
                for payload in payloads
            ),
            prompts=tuple(prompts),
        )

    def find_origins(self, where: Where) -> Origins:  # noqa: ARG002 - as of any session
        """Return the origin of each item: its own line, or for a trimmed item the recorded origin."""
        session_id = str(self.meta.get("id"))
        uuids = {index: item.uuid for index, item in enumerate(self.items)}
        file, line_numbers = self.session.original, self.line_numbers
        origins = {}
        for index, uuid in uuids.items():
            origins[index] = Origin(session_id, file, uuid, line_numbers.get(uuid, 0))
        return Origins(session_id, file, origins | self.trimmed_origins, uuids, lambda _: True)

    def read_contents(self, pieces: Iterable[Piece]) -> Iterator[Any]:
        """Yield the contents of these pieces."""
        for piece in pieces:
            value: Any = self.items[piece.number].payload
            for step in piece.address:
                if step == "arguments":
                    value = codex_items.call_arguments(value)
                else:
                    value = value[step]
            yield value

    def read_messages(self) -> Iterator[SpokenMessage]:
        """Yield the thread's prompts, answers and compaction summaries."""
        for index, item in enumerate(self.items):
            if speaker := _item_speaker(item.payload):
                if speaker == USER:
                    text = codex_items.request_text(item.payload)
                else:
                    text = codex_items.item_text(item.payload)
                yield SpokenMessage(
                    index,
                    speaker,
                    text,
                    collapse_line(plain_line(text[:MAX_PROMPT_CHARACTERS]), MAX_PREVIEW_CHARACTERS)
                    if speaker == USER
                    else text,
                )

    def make_body(
        self,
        child: Draft,
        head: bytes,
        options: Options,  # noqa: ARG002
        decision: Decision,
    ) -> RolloutBody:
        """Return the items of a child, with placeholders for the chosen pieces."""
        choices_by_item: defaultdict[int, list[Choice]] = defaultdict(list)
        for choice in decision.choices:
            choices_by_item[choice.piece.number].append(choice)
        edited = {}
        for index, choices in choices_by_item.items():
            payload = self.items[index].payload
            for choice in choices:
                payload = _replace_piece(payload, choice.piece.address, choice)
            edited[index] = {
                **self.child_records[index],
                "payload": payload,
                **decision.origins.origin_of_record(index).trim_fields(0),
            }
        return self.child_body(child, head, edited)

    def child_body(
        self, child: Draft, head: bytes, edited_records: Mapping[int, Record]
    ) -> RolloutBody:
        """Return a child's items; the records in ``edited_records`` replace the items at their indexes."""
        item_records = []
        for index, record in enumerate(self.child_records):
            item_records.append(edited_records.get(index, record))
        return build_body(
            child, head, self.meta, item_records, self.environment_lines, drops_goal=self.has_goal
        )


def _build_tool_call(item: Record, index: int) -> ToolCall:
    """Return a call with its target; a command may be a list of words."""
    arguments = codex_items.call_arguments(item)
    name = get_string(item, "name") or codex_items.item_type(item)
    for key in _TARGET_ARGUMENTS:
        value = arguments.get(key)
        command_words = value if isinstance(value, list) else [value]
        target = " ".join(
            command_word for command_word in command_words if isinstance(command_word, str)
        )
        if target:
            return ToolCall(index, name, target, ())
    return ToolCall(index, name, "", ())


def _call_pieces(item: Record, index: int, call_id: str) -> Iterator[Piece]:
    if codex_items.item_type(item) == "custom_tool_call":
        inputs: Record = {"input": item.get("input")}
        address: tuple[str, ...] = ()
    elif isinstance(item.get("arguments"), str):
        inputs, address = codex_items.call_arguments(item), ("arguments",)
    else:
        return
    for key, text in inputs.items():
        if (
            isinstance(text, str)
            and len(text) > MIN_PLACEHOLDER_CHARACTERS
            and not contains_placeholder(text)
        ):
            yield Piece(index, (*address, key), INPUT_PIECE, len(text), call=call_id)


def _output_pieces(item: Record, index: int, call_id: str) -> Iterator[Piece]:
    output = item.get("output")
    if isinstance(output, str):
        if len(output) > MIN_PLACEHOLDER_CHARACTERS and not was_trimmed(output):
            yield Piece(
                index, ("output",), RESULT_PIECE, len(output), call=call_id, digest=hash(output)
            )
        return
    for part_index, content_part in enumerate(output if isinstance(output, list) else ()):
        if not isinstance(content_part, dict):
            continue
        if get_string(content_part, "type") == "input_image":
            yield Piece(index, ("output", part_index), MEDIA_PIECE, 0, IMAGE_TOKENS, call=call_id)
        elif len(
            text := get_string(content_part, "text")
        ) > MIN_PLACEHOLDER_CHARACTERS and not was_trimmed(text):
            yield Piece(
                index,
                ("output", part_index, "text"),
                RESULT_PIECE,
                len(text),
                call=call_id,
                digest=hash(text),
            )


def _message_pieces(item: Record, index: int) -> Iterator[Piece]:
    is_assistant, is_prompt = get_string(item, "role") == "assistant", codex_items.is_prompt(item)
    content = item.get("content")
    for part_index, content_part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(content_part, dict) or not (is_assistant or is_prompt):
            continue
        if get_string(content_part, "type") == "input_image":
            yield Piece(index, ("content", part_index), MEDIA_PIECE, 0, IMAGE_TOKENS)
        elif len(
            text := get_string(content_part, "text")
        ) > MIN_PLACEHOLDER_CHARACTERS and not contains_placeholder(text):
            yield Piece(
                index,
                ("content", part_index, "text"),
                TEXT_PIECE if is_assistant else PROMPT_PIECE,
                len(text),
            )


def _replace_piece(value: Any, path: Address, choice: Choice) -> Any:
    """Return ``value`` with the piece at ``path`` replaced; only the containers along the path are copied."""
    if not path:
        if choice.piece.kind == MEDIA_PIECE:
            return {"type": "input_text", "text": choice.placeholder}
        if choice.piece.kind == PROMPT_PIECE:
            return f"{value[:HEAD_CHARACTERS]}\n{choice.placeholder}\n{value[-TAIL_CHARACTERS:]}"
        return choice.placeholder
    key, *inner_path = path
    if key == "arguments":
        return {
            **value,
            key: orjson.dumps(
                {**codex_items.call_arguments(value), str(inner_path[0]): choice.placeholder}
            ).decode(),
        }
    changed_copy: Any = list(value) if isinstance(value, list) else dict(value)
    changed_copy[key] = _replace_piece(value[key], tuple(inner_path), choice)
    return changed_copy


def _item_speaker(item: Record) -> str:
    """Return the speaker of a message, or ``""`` for other items and for messages from the harness."""
    if codex_items.is_prompt(item):
        return USER
    if codex_items.is_summary(item):
        return EARLIER_SUMMARY
    if codex_items.item_type(item) == codex_items.MESSAGE_TYPE and item.get("role") == "assistant":
        return ASSISTANT
    return ""


def read_thread(session: SessionFile, find_rollout: RolloutFinder) -> CodexThread:
    """Return the thread of a session. Raise SessionNotFound or NotATranscript like ``read_thread_lines``."""
    return _build_thread(session, read_thread_lines(session.original, find_rollout))


def read_partial_thread(session: SessionFile, find_rollout: RolloutFinder) -> CodexThread:
    """Return the readable part of a thread. If other files are missing, only the newest file is read.

    Outputs whose calls are missing are left out.
    """
    try:
        thread = read_thread(session, find_rollout)
    except (NotATranscript, SessionNotFound):
        thread = _build_thread(session, read_rollout_lines(session.original))
    orphan_indexes = codex_items.find_orphan_indexes([item.payload for item in thread.items])
    kept_indexes = []
    for index in range(len(thread.items)):
        if index not in orphan_indexes:
            kept_indexes.append(index)
    return replace(
        thread,
        items=tuple(thread.items[index] for index in kept_indexes),
        child_records=tuple(thread.child_records[index] for index in kept_indexes),
    )


def _build_thread(session: SessionFile, lines: Iterable[RolloutLine]) -> CodexThread:
    history, metadata, goal_state, window_setting = (
        History(session.original),
        _ItemMetadataReader(),
        GoalState(),
        settings.read_number("context_window"),
    )
    # The client's description of the environment for the model: the last full state and the later
    # changes, the turn's own context, and the thread's settings, such as the style of reasoning
    # summaries.
    world_state_lines, turn_context_lines, settings_lines = (
        list[RolloutLine](),
        list[RolloutLine](),
        list[RolloutLine](),
    )
    for line in lines:
        history.add_line(line)
        metadata.add_line(line)
        goal_state.add_line(line)
        if line.kind == CONTEXT:
            turn_context_lines = [line]
        elif line.event_type() == SETTINGS_EVENT:
            settings_lines = [line]
        elif line.kind == WORLD_STATE:
            if line.payload.get("full"):
                world_state_lines.clear()
            world_state_lines.append(line)
    return CodexThread(
        session=session,
        meta=read_meta(session.original).payload,
        items=tuple(history.items),
        child_records=tuple(
            build_item_record(
                item.payload, item.timestamp, item.uuid, metadata.fields_for_item(item)
            )
            for item in history.items
        ),
        environment_lines=(*world_state_lines, *turn_context_lines, *settings_lines),
        context=ContextSize(
            history.tokens,
            window_setting or history.window or DEFAULT_WINDOW_TOKENS,
            MEASURED if history.has_client_count else ESTIMATED,
            reason="" if history.has_client_count else NEVER_COUNTED,
        ),
        has_goal=goal_state.goal is not None and goal_state.goal.status != COMPLETE_STATUS,
    )


class _ItemMetadataReader:
    """Collects the metadata of items outside their payload: our trim fields, and the maximum length of an output."""

    def __init__(self) -> None:
        self._fields_by_location: dict[tuple[str, int, int], Record] = {}

    def add_line(self, line: RolloutLine) -> None:
        """Process the next line; a compaction discards everything before it."""
        if line.kind == ITEM:
            trim_fields = {}
            for key, value in line.record.items():
                if key in TRIM_FIELDS:
                    trim_fields[key] = value
            self._store_fields(line, -1, trim_fields, get_mapping(line.record, "metadata"))
        elif line.kind == COMPACTED:
            self._fields_by_location.clear()
            for part_index, metadata in enumerate(
                list_objects(line.payload.get("replacement_history_metadata"))
            ):
                self._store_fields(line, part_index, {}, metadata)

    def _store_fields(
        self, line: RolloutLine, index: int, fields: Record, metadata: Record
    ) -> None:
        if isinstance(metadata.get(OUTPUT_LIMIT_KEY), int):
            fields["metadata"] = {OUTPUT_LIMIT_KEY: metadata[OUTPUT_LIMIT_KEY]}
        if fields:
            self._fields_by_location[line.file, line.line_number, index] = fields

    def fields_for_item(self, item: Item) -> Record:
        """Return an item's metadata."""
        return self._fields_by_location.get((item.file, item.line_number, item.part_index), {})
