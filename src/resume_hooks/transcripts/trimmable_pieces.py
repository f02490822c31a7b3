"""Collect the pieces of a transcript: the parts of its content that a placeholder can replace.

Each piece has an address in its record, and a size. A scan of the transcript collects the pieces.
The pieces contain no reference to a record, so that the records need not stay in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from resume_hooks.transcripts import records, script_calls
from resume_hooks.transcripts.attachments import (
    TRIMMABLE_ATTACHMENT_KINDS,
    Address,
    attachment_kind,
    iterate_sent_texts,
)
from resume_hooks.transcripts.lines import Line
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.placeholders import (
    MIN_PLACEHOLDER_CHARACTERS,
    MISSING_RESULT_TEXT,
    Origin,
    contains_placeholder,
    is_response_placeholder,
    read_origin,
    was_trimmed,
)
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.tokens import media_tokens

RESULT_PIECE, INPUT_PIECE, MEDIA_PIECE, THINKING_PIECE, PROMPT_PIECE, ATTACHMENT_PIECE, TEXT_PIECE = (
    "result", "input", "media", "thinking", "prompt", "attachment", "text",
)  # fmt: skip
"""The kinds of pieces."""

LONG_INPUT_NAMES_BY_TOOL: dict[str, tuple[str, ...]] = {
    "Write": ("content",),
    "Edit": ("old_string", "new_string"),
    "MultiEdit": ("edits",),
    "NotebookEdit": ("new_source",),
    "Bash": ("command",),
}
"""Maps each tool to those of its inputs that can be long."""

SIGNATURE_OVERHEAD_CHARACTERS = 232
"""Number of characters in a thinking block's signature that encode no thinking.

The other characters are the encrypted thinking, in base64. Recent clients record only the signature
of most thinking blocks. The number is the median of 139 blocks in the corpus.
"""

_INPUTS_NAMING_THE_TARGET = (
    "file_path",
    "notebook_path",
    "path",
    "command",
    "pattern",
    "url",
    "query",
    "description",
)
_READ_RANGE_INPUT_NAMES = ("offset", "limit", "pages")


class ToolCall(NamedTuple):
    """A tool call.

    ``line_number`` is the line number of the record with the call. ``target`` is what the call
    works on, for example a file or a command. ``read_range`` is the part of a file that the call
    read.
    """

    line_number: int
    tool: str
    target: str
    read_range: tuple[object, ...]


class Piece(NamedTuple):
    """A piece of content that can be trimmed.

    ``line_number`` is that of the piece's record, and ``address`` leads to the piece in the record.
    ``character_count`` is the number of characters that reach the API. ``tokens`` is the size of an
    image or a document, and 0 for other pieces. ``call_id`` is the id of the tool call to which the
    piece belongs, or ``""``. Results with equal content have the same ``content_hash``.
    """

    line_number: int
    address: Address
    kind: str
    character_count: int
    tokens: int = 0
    call_id: str = ""
    content_hash: int = 0

    @property
    def block_index(self) -> int:
        """The index of the piece's block in the message, or 0 if the message is a string."""
        if len(self.address) > 2 and isinstance(self.address[2], int):
            return self.address[2]
        return 0


class PieceCollector:
    """An observer of a scan that collects the pieces and the tool calls of a file.

    ``calls`` maps the id of a call to the call, and ``result_lines`` maps it to the line number of
    the call's result. ``failed_calls`` contains the ids of calls whose result is an error.
    ``origins`` maps the line number of a trimmed record to its original.

    ``thinking_characters`` maps a record's line number to the number of characters of its thinking.
    ``answers_of_thinking`` maps the line number of a record with thinking to the id of its answer.
    ``lines_of_other_content`` maps the id of an answer to the line numbers of its records with
    content other than thinking. ``placeholder_answers`` contains the line numbers of records whose
    text is already a placeholder.
    """

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self.calls: dict[str, ToolCall] = {}
        self.failed_calls: set[str] = set()
        self.result_lines: dict[str, int] = {}
        self.origins: dict[int, Origin] = {}
        self.thinking_characters: dict[int, int] = {}
        self.lines_of_other_content: dict[str, list[int]] = {}
        self.answers_of_thinking: dict[int, str] = {}
        self.placeholder_answers: list[int] = []

    def __call__(self, line: Line, record: Record, node: Node | None) -> None:  # noqa: ARG002 - an observer's form
        """Collect the pieces and calls of one record."""
        if node is None or node.is_sidechain or node.is_broken or script_calls.is_unsent(record):
            return
        if record.get("truncated") is True and (origin := read_origin(record)):
            self.origins[node.line_number] = origin
        if (
            node.kind == records.ATTACHMENT
            and attachment_kind(record) in TRIMMABLE_ATTACHMENT_KINDS
        ):
            for address, text in iterate_sent_texts(record):
                if len(text) > MIN_PLACEHOLDER_CHARACTERS and not was_trimmed(text):
                    self.pieces.append(
                        Piece(node.line_number, address, ATTACHMENT_PIECE, len(text))
                    )
        elif node.is_message:
            self.pieces += self._iterate_pieces_of_message(node, record)

    def _iterate_pieces_of_message(self, node: Node, record: Record) -> Iterator[Piece]:
        content = records.get_message(record).get("content")
        if isinstance(content, str):
            yield from self._iterate_pieces_of_text(node, content, ("message", "content"))
            return
        for index, block in enumerate(content if isinstance(content, list) else ()):
            if isinstance(block, dict):
                yield from self._iterate_pieces_of_block(node, block, ("message", "content", index))

    def _iterate_pieces_of_block(
        self, node: Node, block: Record, address: Address
    ) -> Iterator[Piece]:
        kind = get_string(block, "type")
        if node.kind == records.ASSISTANT and kind not in records.THINKING_TYPES:
            self.lines_of_other_content.setdefault(node.message_id or node.uuid, []).append(
                node.line_number
            )
        if kind == records.RESULT:
            yield from self._iterate_pieces_of_result(node, block, address)
        elif kind == records.CALL:
            yield from self._iterate_pieces_of_call(node, block, address)
        elif kind == records.THINKING:
            visible_characters = len(get_string(block, "thinking"))
            size = max(
                visible_characters,
                (len(get_string(block, "signature")) - SIGNATURE_OVERHEAD_CHARACTERS) * 3 // 4,
            )
            self.thinking_characters[node.line_number] = (
                self.thinking_characters.get(node.line_number, 0) + visible_characters
            )
            self.answers_of_thinking[node.line_number] = node.message_id or node.uuid
            yield Piece(
                node.line_number,
                address,
                THINKING_PIECE,
                size,
                content_hash=hash_thinking_block(block),
            )
        elif kind in records.MEDIA_TYPES:
            yield Piece(node.line_number, address, MEDIA_PIECE, 0, media_tokens(block))
        elif kind == records.TEXT:
            yield from self._iterate_pieces_of_text(
                node, get_string(block, "text"), (*address, "text")
            )

    def _iterate_pieces_of_text(self, node: Node, text: str, address: Address) -> Iterator[Piece]:
        if len(text) <= MIN_PLACEHOLDER_CHARACTERS or not (
            node.is_prompt or node.kind == records.ASSISTANT
        ):
            return
        if node.kind == records.ASSISTANT and is_response_placeholder(text):
            self.placeholder_answers.append(node.line_number)
        elif not contains_placeholder(text):
            yield Piece(
                node.line_number, address, PROMPT_PIECE if node.is_prompt else TEXT_PIECE, len(text)
            )

    def _iterate_pieces_of_call(
        self, node: Node, block: Record, block_address: Address
    ) -> Iterator[Piece]:
        if not isinstance(block.get("input"), dict):
            return
        call = get_string(block, "id")
        self.calls[call] = tool_call = _parse_tool_call(block, node.line_number)
        for key in LONG_INPUT_NAMES_BY_TOOL.get(tool_call.tool, ()):
            for address, text in _iterate_input_strings(
                block["input"].get(key), (*block_address, "input", key)
            ):
                if len(text) > MIN_PLACEHOLDER_CHARACTERS and not contains_placeholder(text):
                    yield Piece(node.line_number, address, INPUT_PIECE, len(text), call_id=call)

    def _iterate_pieces_of_result(
        self, node: Node, block: Record, address: Address
    ) -> Iterator[Piece]:
        call, content = get_string(block, "tool_use_id"), block.get("content")
        if content == MISSING_RESULT_TEXT:
            return  # The content is a text that we wrote into a child, and may still be needed.
        self.result_lines[call] = node.line_number
        if records.is_error(block):
            self.failed_calls.add(call)
        if isinstance(content, str):
            is_refused = call in self.failed_calls and content.startswith(
                records.REJECTION_BEGINNING
            )
            if (
                len(content) > MIN_PLACEHOLDER_CHARACTERS
                and not is_refused
                and not was_trimmed(content)
            ):
                yield Piece(
                    node.line_number,
                    (*address, "content"),
                    RESULT_PIECE,
                    len(content),
                    call_id=call,
                    content_hash=hash(content),
                )
            return
        for index, inner in enumerate(content if isinstance(content, list) else ()):
            if not isinstance(inner, dict):
                continue
            inner_address = (*address, "content", index)
            if get_string(inner, "type") in records.MEDIA_TYPES:
                yield Piece(
                    node.line_number,
                    inner_address,
                    MEDIA_PIECE,
                    0,
                    media_tokens(inner),
                    call_id=call,
                )
            elif len(
                text := get_string(inner, "text")
            ) > MIN_PLACEHOLDER_CHARACTERS and not was_trimmed(text):
                yield Piece(
                    node.line_number,
                    (*inner_address, "text"),
                    RESULT_PIECE,
                    len(text),
                    call_id=call,
                    content_hash=hash(text),
                )


def tool_calls_of_record(record: Record) -> dict[str, ToolCall]:
    """Return the tool calls in a record, by id.

    The record may also be from a sub-agent or from an exported transcript.
    """
    if records.get_kind(record) == records.ASSISTANT:
        call_blocks = records.list_calls(record)
    else:
        call_blocks = []
    return {
        get_string(block, "id"): _parse_tool_call(block, 0)
        for block in call_blocks
        if isinstance(block.get("input"), dict)
    }


def _parse_tool_call(block: Record, line_number: int) -> ToolCall:
    tool_input: Record = block["input"]
    target = next(
        (value for key in _INPUTS_NAMING_THE_TARGET if (value := get_string(tool_input, key))), ""
    )
    # Lists and objects are replaced by the name of their type, because they may be nested too
    # deeply.
    read_range = (tool_input.get(key) for key in _READ_RANGE_INPUT_NAMES)
    plain_extent = (
        value_of_range
        if value_of_range is None or isinstance(value_of_range, (str, int, float))
        else type(value_of_range).__name__
        for value_of_range in read_range
    )
    return ToolCall(line_number, get_string(block, "name"), target, tuple(plain_extent))


def _iterate_input_strings(value: object, address: Address) -> Iterator[tuple[Address, str]]:
    """Yield the strings in an input's value, each with its address.

    The value is a string, or a list of edits with two strings each.
    """
    if isinstance(value, str):
        yield address, value
    elif isinstance(value, list):
        for index, edit in enumerate(value):
            for key in ("old_string", "new_string"):
                if isinstance(edit, dict) and isinstance(text := edit.get(key), str):
                    yield (*address, index, key), text


def hash_thinking_block(block: Record) -> int:
    """Return a number that is equal for equal thinking blocks in this process."""
    return hash((get_string(block, "thinking"), get_string(block, "signature")))
