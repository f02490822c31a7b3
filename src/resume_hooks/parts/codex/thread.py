"""Read a Codex session as the parent of a child.

The child receives the items that Codex would send to the model, and the lines in which Codex
described the environment. Only these items and lines are kept in memory. A trimmed child has the
same items, but placeholders replace their large contents: outputs, inputs, images, pasted texts and
long answers. Encrypted content is never trimmed, because the provider would reject the changed
content.
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
from resume_hooks.derive.trim.plan import (
    ASSISTANT,
    EARLIER_SUMMARY,
    USER,
    ConversationMessage,
    TrimDecision,
)
from resume_hooks.derive.trim.rules import TrimMaterial, find_start_of_protected_records
from resume_hooks.derive.trim.selection import (
    HEAD_CHARACTERS,
    TAIL_CHARACTERS,
    Choice,
    RecordOrigins,
)
from resume_hooks.errors import NotATranscript, SessionNotFound
from resume_hooks.parts.codex.rollout import RolloutBody, build_body, build_item_record
from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.goal import COMPLETE_STATUS, GoalTracker
from resume_hooks.parts.codex.transcripts.history import HistoryItem, ThreadHistory
from resume_hooks.parts.codex.transcripts.lines import (
    COMPACTION_LINE,
    ITEM_LINE,
    SETTINGS_EVENT_TYPE,
    TURN_CONTEXT_LINE,
    WORLD_STATE_LINE,
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
from resume_hooks.transcripts.context_size import NO_ANSWER_COUNTED_REASON
from resume_hooks.transcripts.placeholders import (
    MIN_PLACEHOLDER_CHARACTERS,
    TRIM_FIELD_NAMES,
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

# The size of the context window in tokens that is assumed if the session does not contain the size.
DEFAULT_CONTEXT_WINDOW_TOKENS = 258_400
# Maximum number of characters to read from a prompt.
MAX_PROMPT_CHARACTERS = 2_000
MAX_PREVIEW_CHARACTERS = 200
OUTPUT_LIMIT_KEY = "fallback_token_limit_override"
"""The key of the maximum length of an output, in the metadata of a line.

Clients that do not know the model use this limit. A child copies the limit of each output from the
parent.
"""

# The maximum number of tokens that an image can have. Every image is counted with this number.
MAX_TOKENS_PER_IMAGE = 1_600

_CALL_TARGET_ARGUMENT_NAMES = ("cmd", "command", "path", "file_path", "query", "url", "input")
_FAILURE_EXIT_CODE_PATTERN = re.compile(r'(?:exited with code|Exit code:|"exit_code":)\s*[1-9]')
# Number of characters at the beginning of an output that are searched for the exit code.
_CHARACTERS_SEARCHED_FOR_EXIT_CODE = 400


@dataclass(frozen=True, slots=True)
class CodexThread:
    """A Codex session with the items that Codex would send to the model, oldest first (``items``).

    ``child_records`` are the lines to write for these items in a child, and ``meta`` is the payload
    of the session's first line. ``environment_lines`` describe the environment to the model.
    ``has_goal`` is true if the session has a goal that is not complete. ``line_numbers_by_id`` maps
    the id of an item to its line number, by which references name the item.
    """

    session: SessionFile
    meta: Record
    items: tuple[HistoryItem, ...]
    child_records: tuple[Record, ...]
    environment_lines: tuple[RolloutLine, ...]
    context: ContextSize
    has_goal: bool
    line_numbers_by_id: Mapping[str, int] = field(default_factory=dict)

    @property
    def scale(self) -> TokenScale:
        """The ratio of characters to tokens.

        The ratio is always an estimate. Even a token count from the client does not help, because
        it includes text that is not in any file.
        """
        return TokenScale(CHARACTERS_PER_TOKEN, {}, {})

    @property
    def origins_of_trimmed_items(self) -> dict[int, Origin]:
        """The origins of the items that an earlier trim replaced. The keys are the indexes of the items."""
        origins = {}
        for index, record in enumerate(self.child_records):
            trim_fields = {key: record[key] for key in TRIM_FIELD_NAMES & record.keys()}
            if trim_fields and (origin := read_origin(trim_fields)):
                origins[index] = origin
        return origins

    def collect_trim_material(self, options: Options) -> TrimMaterial:
        """Return the pieces of content that a trim can replace, and the data for choosing among them."""
        payloads = [payload.payload for payload in self.items]
        pieces: list[Piece] = []
        calls: dict[str, ToolCall] = {}
        output_indexes: dict[str, int] = {}
        failed_call_ids: set[str] = set()
        for index, payload in enumerate(payloads):
            kind, call_id = codex_items.item_type(payload), codex_items.call_id(payload)
            if kind in codex_items.TOOL_CALL_TYPES:
                calls[call_id] = _build_tool_call(payload, index)
                pieces += _find_call_pieces(payload, index, call_id)
            elif kind in codex_items.TOOL_OUTPUT_TYPES and call_id in calls:
                output_indexes[call_id] = index
                if _FAILURE_EXIT_CODE_PATTERN.search(
                    codex_items.item_text(payload)[:_CHARACTERS_SEARCHED_FOR_EXIT_CODE]
                ):
                    failed_call_ids.add(call_id)
                pieces += _find_output_pieces(payload, index, call_id)
            elif kind == codex_items.MESSAGE_TYPE:
                pieces += _find_message_pieces(payload, index)
        prompts = []
        for index, payload in enumerate(payloads):
            if codex_items.is_prompt(payload):
                prompts.append(index)
        return TrimMaterial(
            pieces=tuple(pieces),
            chain_indexes_by_line_number={index: index for index in range(len(payloads))},
            protected_start_index=find_start_of_protected_records(
                prompts, sorted(output_indexes.values()), len(payloads), options
            ),
            last_turn_start_index=prompts[-1] if prompts else 0,
            calls=calls,
            answered_call_ids=frozenset(output_indexes),
            failed_call_ids=frozenset(failed_call_ids),
            already_trimmed_answer_count=sum(
                get_string(payload, "role") == "assistant"
                and is_response_placeholder(codex_items.item_text(payload))
                for payload in payloads
            ),
            prompt_indexes=tuple(prompts),
        )

    def find_origins(self, where: Where) -> RecordOrigins:  # noqa: ARG002 - as of any session
        """Return the origin of each item.

        If an item was trimmed, the trim has recorded its origin. Otherwise the origin is the item's
        own line.
        """
        session_id = str(self.meta.get("id"))
        uuids = {index: item.uuid for index, item in enumerate(self.items)}
        file, line_numbers_by_id = self.session.original_path, self.line_numbers_by_id
        origins = {}
        for index, uuid in uuids.items():
            origins[index] = Origin(session_id, file, uuid, line_numbers_by_id.get(uuid, 0))
        return RecordOrigins(
            session_id, file, origins | self.origins_of_trimmed_items, uuids, lambda _: True
        )

    def read_contents(self, pieces: Iterable[Piece]) -> Iterator[Any]:
        """Yield the content of each piece."""
        for piece in pieces:
            value: Any = self.items[piece.line_number].payload
            for step in piece.address:
                if step == "arguments":
                    value = codex_items.call_arguments(value)
                else:
                    value = value[step]
            yield value

    def read_messages(self) -> Iterator[ConversationMessage]:
        """Yield the prompts, the answers and the summaries of compactions, in the order of the conversation."""
        for index, item in enumerate(self.items):
            if speaker := _find_item_speaker(item.payload):
                if speaker == USER:
                    text = codex_items.request_text(item.payload)
                else:
                    text = codex_items.item_text(item.payload)
                yield ConversationMessage(
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
        first_line: bytes,
        options: Options,  # noqa: ARG002
        decision: TrimDecision,
    ) -> RolloutBody:
        """Return the content of a trimmed child. Placeholders replace the pieces that ``decision`` contains."""
        choices_by_item: defaultdict[int, list[Choice]] = defaultdict(list)
        for choice in decision.choices:
            choices_by_item[choice.piece.line_number].append(choice)
        edited = {}
        for index, choices in choices_by_item.items():
            payload = self.items[index].payload
            for choice in choices:
                payload = _replace_content_at_address(payload, choice.piece.address, choice)
            edited[index] = {
                **self.child_records[index],
                "payload": payload,
                **decision.origins.find_origin_of_record(index).make_trim_fields(0),
            }
        return self.make_child_body(child, first_line, edited)

    def make_child_body(
        self, child: Draft, first_line: bytes, edited_records: Mapping[int, Record]
    ) -> RolloutBody:
        """Return the content of a child.

        The content consists of ``child_records``. ``edited_records`` maps the index of each record
        that must be replaced to its replacement.
        """
        item_records = []
        for index, record in enumerate(self.child_records):
            item_records.append(edited_records.get(index, record))
        return build_body(
            child,
            first_line,
            self.meta,
            item_records,
            self.environment_lines,
            drops_goal=self.has_goal,
        )


def _build_tool_call(item: Record, index: int) -> ToolCall:
    """Return a call as a ``ToolCall`` with its target, for example its command or path.

    If the command is a list of words, the target contains these words separated by spaces.
    """
    arguments = codex_items.call_arguments(item)
    name = get_string(item, "name") or codex_items.item_type(item)
    for key in _CALL_TARGET_ARGUMENT_NAMES:
        value = arguments.get(key)
        command_words = value if isinstance(value, list) else [value]
        target = " ".join(
            command_word for command_word in command_words if isinstance(command_word, str)
        )
        if target:
            return ToolCall(index, name, target, ())
    return ToolCall(index, name, "", ())


def _find_call_pieces(item: Record, index: int, call_id: str) -> Iterator[Piece]:
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
            yield Piece(index, (*address, key), INPUT_PIECE, len(text), call_id=call_id)


def _find_output_pieces(item: Record, index: int, call_id: str) -> Iterator[Piece]:
    output = item.get("output")
    if isinstance(output, str):
        if len(output) > MIN_PLACEHOLDER_CHARACTERS and not was_trimmed(output):
            yield Piece(
                index,
                ("output",),
                RESULT_PIECE,
                len(output),
                call_id=call_id,
                content_hash=hash(output),
            )
        return
    for part_index, content_part in enumerate(output if isinstance(output, list) else ()):
        if not isinstance(content_part, dict):
            continue
        if get_string(content_part, "type") == "input_image":
            yield Piece(
                index, ("output", part_index), MEDIA_PIECE, 0, MAX_TOKENS_PER_IMAGE, call_id=call_id
            )
        elif len(
            text := get_string(content_part, "text")
        ) > MIN_PLACEHOLDER_CHARACTERS and not was_trimmed(text):
            yield Piece(
                index,
                ("output", part_index, "text"),
                RESULT_PIECE,
                len(text),
                call_id=call_id,
                content_hash=hash(text),
            )


def _find_message_pieces(item: Record, index: int) -> Iterator[Piece]:
    is_assistant, is_prompt = get_string(item, "role") == "assistant", codex_items.is_prompt(item)
    content = item.get("content")
    for part_index, content_part in enumerate(content if isinstance(content, list) else ()):
        if not isinstance(content_part, dict) or not (is_assistant or is_prompt):
            continue
        if get_string(content_part, "type") == "input_image":
            yield Piece(index, ("content", part_index), MEDIA_PIECE, 0, MAX_TOKENS_PER_IMAGE)
        elif len(
            text := get_string(content_part, "text")
        ) > MIN_PLACEHOLDER_CHARACTERS and not contains_placeholder(text):
            yield Piece(
                index,
                ("content", part_index, "text"),
                TEXT_PIECE if is_assistant else PROMPT_PIECE,
                len(text),
            )


def _replace_content_at_address(value: Any, address: Address, choice: Choice) -> Any:
    """Return a copy of ``value`` in which a placeholder replaces the content at ``address``.

    Only the containers along the address are copied.
    """
    if not address:
        if choice.piece.kind == MEDIA_PIECE:
            return {"type": "input_text", "text": choice.placeholder}
        if choice.piece.kind == PROMPT_PIECE:
            return f"{value[:HEAD_CHARACTERS]}\n{choice.placeholder}\n{value[-TAIL_CHARACTERS:]}"
        return choice.placeholder
    key, *inner_address = address
    if key == "arguments":
        return {
            **value,
            key: orjson.dumps(
                {**codex_items.call_arguments(value), str(inner_address[0]): choice.placeholder}
            ).decode(),
        }
    changed_copy: Any = list(value) if isinstance(value, list) else dict(value)
    changed_copy[key] = _replace_content_at_address(value[key], tuple(inner_address), choice)
    return changed_copy


def _find_item_speaker(item: Record) -> str:
    """Return the speaker of a message.

    Return ``""`` if the item is not a message, or if the message is from the harness.
    """
    if codex_items.is_prompt(item):
        return USER
    if codex_items.is_summary(item):
        return EARLIER_SUMMARY
    if codex_items.item_type(item) == codex_items.MESSAGE_TYPE and item.get("role") == "assistant":
        return ASSISTANT
    return ""


def read_thread(session: SessionFile, find_rollout: RolloutFinder) -> CodexThread:
    """Return the thread of a session. Raise SessionNotFound or NotATranscript if a file is unusable."""
    return _build_thread(session, read_thread_lines(session.original_path, find_rollout))


def read_partial_thread(session: SessionFile, find_rollout: RolloutFinder) -> CodexThread:
    """Return the readable part of a thread.

    If an older file of the thread is unusable, only the newest file is read. Outputs whose calls
    are missing are omitted.
    """
    try:
        thread = read_thread(session, find_rollout)
    except (NotATranscript, SessionNotFound):
        thread = _build_thread(session, read_rollout_lines(session.original_path))
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
        ThreadHistory(session.original_path),
        _ItemMetadataReader(),
        GoalTracker(),
        settings.read_number_setting("context_window"),
    )
    # These lines describe the environment to the model: the last complete description with its
    # later changes, the context of the last turn, and the most recent settings of the thread.
    world_state_lines, turn_context_lines, settings_lines = (
        list[RolloutLine](),
        list[RolloutLine](),
        list[RolloutLine](),
    )
    for line in lines:
        history.add_line(line)
        metadata.add_line(line)
        goal_state.add_line(line)
        if line.kind == TURN_CONTEXT_LINE:
            turn_context_lines = [line]
        elif line.event_type() == SETTINGS_EVENT_TYPE:
            settings_lines = [line]
        elif line.kind == WORLD_STATE_LINE:
            if line.payload.get("full"):
                world_state_lines.clear()
            world_state_lines.append(line)
    return CodexThread(
        session=session,
        meta=read_meta(session.original_path).payload,
        items=tuple(history.items),
        child_records=tuple(
            build_item_record(
                item.payload, item.timestamp, item.uuid, metadata.read_item_fields(item)
            )
            for item in history.items
        ),
        environment_lines=(*world_state_lines, *turn_context_lines, *settings_lines),
        context=ContextSize(
            history.token_count,
            window_setting or history.window or DEFAULT_CONTEXT_WINDOW_TOKENS,
            MEASURED if history.has_token_count_from_client else ESTIMATED,
            uncertainty_reason=""
            if history.has_token_count_from_client
            else NO_ANSWER_COUNTED_REASON,
        ),
        has_goal=goal_state.goal is not None and goal_state.goal.status != COMPLETE_STATUS,
    )


class _ItemMetadataReader:
    """Collects those fields of an item's line that are not in the line's payload.

    The fields tell where trimmed content came from, and how long an output may be.
    """

    def __init__(self) -> None:
        self._fields_by_location: dict[tuple[str, int, int], Record] = {}

    def add_line(self, line: RolloutLine) -> None:
        """Process the next line. A compaction discards the fields of earlier lines."""
        if line.kind == ITEM_LINE:
            trim_fields = {}
            for key, value in line.record.items():
                if key in TRIM_FIELD_NAMES:
                    trim_fields[key] = value
            self._store_item_fields(line, -1, trim_fields, get_mapping(line.record, "metadata"))
        elif line.kind == COMPACTION_LINE:
            self._fields_by_location.clear()
            for part_index, metadata in enumerate(
                list_objects(line.payload.get("replacement_history_metadata"))
            ):
                self._store_item_fields(line, part_index, {}, metadata)

    def _store_item_fields(
        self, line: RolloutLine, index: int, fields: Record, metadata: Record
    ) -> None:
        if isinstance(metadata.get(OUTPUT_LIMIT_KEY), int):
            fields["metadata"] = {OUTPUT_LIMIT_KEY: metadata[OUTPUT_LIMIT_KEY]}
        if fields:
            self._fields_by_location[line.file_path, line.line_number, index] = fields

    def read_item_fields(self, item: HistoryItem) -> Record:
        """Return those fields of an item's line that are not in the line's payload."""
        return self._fields_by_location.get((item.file_path, item.line_number, item.part_index), {})
