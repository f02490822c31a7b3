"""Build the parts of a document, such as messages and calls, in the order of the conversation.

Records are read and redacted one by one. A call and its result form one part, even if there are
other records between them. A sub-agent's conversation belongs to the call that started the
sub-agent. Text that the client added, such as reminders and the output of hooks, is omitted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import BinaryIO

from resume_hooks import clock
from resume_hooks.errors import SessionNotFound
from resume_hooks.parts.share.export.parts import (
    ASSISTANT,
    SUMMARY,
    USER,
    AgentPart,
    CallPart,
    MediaPart,
    NotePart,
    Part,
    ResultPart,
    TextPart,
    ThinkingPart,
    TurnHeader,
)
from resume_hooks.parts.share.export.redact import ExportRedactor
from resume_hooks.parts.share.export.select_records import (
    CONVERSATION,
    ExportConversation,
    select_conversation,
)
from resume_hooks.reading.passages import remove_reminders
from resume_hooks.reading.render import render_block_text, render_record_text
from resume_hooks.sessions.lineage_block import format_bytes
from resume_hooks.sessions.locate import SessionFile
from resume_hooks.sessions.transcript_files import (
    SUBAGENT_PREFIX,
    Subagent,
    read_subagent_type,
    subagents_of_session,
)
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts import records, script_calls
from resume_hooks.transcripts.attachments import QUEUED, attachment_kind
from resume_hooks.transcripts.lines import open_transcript
from resume_hooks.transcripts.nodes import Node
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.transcript import read_record
from resume_hooks.transcripts.trimmable_pieces import tool_calls_of_record

MAX_DESCRIPTION_CHARACTERS = 300  # Maximum number of characters of a call's description.
# Maximum number of characters of a name, for example of a tool, a sub-agent or a branch.
MAX_NAME_CHARACTERS = 100
MAX_TOOLS_PER_TURN = 100  # Maximum number of tools to list per turn.
MAX_SUBAGENT_DEPTH = 4  # Maximum depth of nested sub-agents.
MAX_ENCODED_IMAGE_CHARACTERS = 8 * 1024 * 1024  # Maximum number of base64 characters of an image.

_CLIENT_TAG_PATTERN = re.compile(r"</?(?:local-command|command|bash)-[a-z]+>")
"""Matches the tags that the client writes around its own commands and their output."""


class PartBuilder:
    """Builds the parts of conversations. Each sub-agent appears only once in the document.

    If ``includes_thinking`` is true, the parts include the model's thinking.
    """

    def __init__(self, redactor: ExportRedactor, *, includes_thinking: bool) -> None:
        self.redactor = redactor
        self.includes_thinking = includes_thinking
        self.picture_count = 0
        self._agents: set[str] = set()

    def build_turn_header(self, conversation: ExportConversation, line_number: int) -> TurnHeader:
        """Return the header of the turn whose prompt is in line ``line_number``."""
        turn = conversation.turns_by_line[line_number]
        return TurnHeader(
            turn_number=turn.number,
            time=clock.normalize_timestamp(turn.timestamp),
            first_words=self.redactor.redact_line(turn.first_words),
            state=conversation.record_states_by_line_number[line_number],
            context_tokens=turn.token_count,
            call_counts={
                self.shorten_name(tool): count
                for tool, count in list(turn.call_counts.items())[:MAX_TOOLS_PER_TURN]
            },
            failed_call_count=turn.failure_count,
        )

    def shorten_name(self, name: str) -> str:
        """Remove the secrets from a name. Return it as one line of at most ``MAX_NAME_CHARACTERS`` characters."""
        return collapse_line(
            plain_line(self.redactor.redact_line(name[: 4 * MAX_NAME_CHARACTERS])),
            MAX_NAME_CHARACTERS,
        )

    def build_conversation_parts(
        self, conversation: ExportConversation, depth: int = 0
    ) -> Iterator[Part]:
        """Yield the parts of a conversation.

        Raise SessionNotFound if the file has changed since its records were selected.
        """
        agents = {}
        for agent in subagents_of_session(conversation.path):
            agents[agent.name.removeprefix(SUBAGENT_PREFIX)] = agent
        with open_transcript(conversation.path) as stream:
            builder = _ConversationBuilder(
                self, conversation, stream, agents if depth < MAX_SUBAGENT_DEPTH else {}, depth
            )
            for node in conversation.nodes:
                if node.line_number in conversation.turns_by_line and not depth:
                    yield self.build_turn_header(conversation, node.line_number)
                yield from builder.build_record_parts(node)
        for agent in builder.agents.values():
            if part := self.build_agent_part(agent, depth):
                yield part

    def build_agent_part(self, agent: Subagent, depth: int) -> AgentPart | None:
        """Return the part with a sub-agent's conversation, or None if that is already in the document."""
        if agent.path in self._agents:
            return None
        self._agents.add(agent.path)
        return AgentPart(
            self.shorten_name(agent.name),
            self.shorten_name(read_subagent_type(agent.path)),
            self._build_agent_parts(agent, depth + 1),
        )

    def _build_agent_parts(self, agent: Subagent, depth: int) -> Iterator[Part]:
        try:
            conversation = select_conversation(
                SessionFile(agent.name, agent.path, 0, 0), CONVERSATION, set()
            )
            yield from self.build_conversation_parts(conversation, depth)
        except SessionNotFound:
            yield NotePart("sub-agent", "The transcript can't be read.")


class _ConversationBuilder:
    """Builds the parts of one conversation.

    ``agents`` contains, by id, the sub-agents whose calls have not been found yet.
    """

    def __init__(
        self,
        builder: PartBuilder,
        conversation: ExportConversation,
        stream: BinaryIO,
        agents: dict[str, Subagent],
        depth: int,
    ) -> None:
        self.agents = agents
        self._builder = builder
        self._redactor = builder.redactor
        self._stream = stream
        self._depth = depth
        self._result_nodes: dict[str, Node] = {}
        for node in reversed(conversation.nodes):
            self._result_nodes.update(dict.fromkeys(node.answered_call_ids, node))
        self._call_ids: set[str] = set()
        for node in conversation.nodes:
            self._call_ids |= self._result_nodes.keys() & set(node.call_ids)
        self._last_record: tuple[int, Record] = (-1, {})

    def build_record_parts(self, node: Node) -> Iterator[Part]:
        """Yield the parts for one record."""
        record = self._read_record(node)
        kind = records.get_kind(record)
        if kind == records.SYSTEM:
            yield from self._build_system_parts(record)
        elif kind == records.ATTACHMENT:
            if attachment_kind(record) == QUEUED:
                yield self._build_text_part(USER, render_record_text(record), record)
        elif not (message := records.get_message(record)):
            return
        elif kind == records.ASSISTANT:
            yield from self._build_assistant_parts(record)
        elif record.get("isCompactSummary"):
            yield self._build_text_part(SUMMARY, render_record_text(record), record)
        elif kind == records.USER and not record.get("isMeta"):
            yield from self._build_user_parts(record)
        elif kind not in records.CHAIN_RECORD_KINDS:
            # The record was written by a program that exports plain messages.
            yield from self._build_note_parts(
                get_string(message, "role") or kind, render_record_text(record)
            )

    def _build_assistant_parts(self, record: Record) -> Iterator[Part]:
        calls = tool_calls_of_record(record)
        for block in records.list_blocks(record):
            kind = get_string(block, "type")
            if kind == records.CALL:
                call = calls.get(get_string(block, "id"))
                yield self._build_call_part(block, call.target if call else "")
            elif kind == records.TEXT and record.get("isApiErrorMessage"):
                yield from self._build_note_parts("API error", get_string(block, "text"))
            elif kind == records.TEXT:
                if get_string(block, "text").strip():
                    yield self._build_text_part(ASSISTANT, get_string(block, "text"), record)
            elif kind in records.THINKING_TYPES:
                thinking = get_string(block, "thinking").strip()
                if thinking and self._builder.includes_thinking:
                    yield ThinkingPart(self._redactor.redact_and_cut_text(thinking))
            else:
                yield from self._build_note_parts(kind or "block", render_block_text(block))

    def _build_user_parts(self, record: Record) -> Iterator[Part]:
        is_prompt = records.is_prompt(record) or bool(record.get("isSidechain"))
        for block in records.list_blocks(record):
            kind = get_string(block, "type")
            if kind == records.RESULT:
                if get_string(block, "tool_use_id") not in self._call_ids:
                    yield CallPart("", "", {}, self._build_result_part(block), None)
            elif kind in records.MEDIA_TYPES:
                yield self._build_picture_part(block)
            elif is_prompt:
                is_command = records.join_text_blocks(record).lstrip().startswith("<command-")
                if is_command:
                    text = records.prompt_text(record)
                else:
                    text = render_block_text(block)
                yield self._build_text_part(USER, remove_reminders(text), record)
            else:
                yield from self._build_note_parts("from the client", render_block_text(block))

    def _build_system_parts(self, record: Record) -> Iterator[Part]:
        subtype = get_string(record, "subtype")
        if subtype == records.COMPACTION:
            tokens = records.tokens_before_compaction(record)
            yield NotePart("compaction", f"{tokens:,} tokens before" if tokens else "")
        else:
            yield from self._build_note_parts(
                plain_line(subtype) or "system", get_string(record, "content")
            )

    def _build_call_part(self, block: Record, target: str) -> CallPart:
        answer, agent = self._build_call_result(get_string(block, "id"))
        return CallPart(
            tool=self._builder.shorten_name(get_string(block, "name")),
            description=collapse_line(
                plain_line(self._redactor.redact_line(target[: 4 * MAX_DESCRIPTION_CHARACTERS])),
                MAX_DESCRIPTION_CHARACTERS,
            ),
            arguments=records.get_mapping(
                self._redactor.redact_block({"input": block.get("input")}), "input"
            ),
            result=answer,
            agent=agent,
        )

    def _build_call_result(self, call_id: str) -> tuple[ResultPart | None, AgentPart | None]:
        # If the conversation contains a call twice, its result is shown only once.
        node = self._result_nodes.pop(call_id, None) if call_id in self._call_ids else None
        if node is None:
            return None, None
        record = self._read_record(node)
        block = next(
            (block for block in records.list_results(record) if records.call_id(block) == call_id),
            None,
        )
        agent = self.agents.pop(records.agent_id_of_result(record), None)
        if agent:
            part = self._builder.build_agent_part(agent, self._depth)
        else:
            part = None
        return (self._build_result_part(block) if block else None), part

    def _build_result_part(self, block: Record) -> ResultPart:
        parts: list[str | MediaPart] = []
        for inner_block in records.result_blocks(block):
            if get_string(inner_block, "type") in records.MEDIA_TYPES:
                parts.append(self._build_picture_part(inner_block))
            elif text := remove_reminders(render_block_text(inner_block)):
                parts.append(self._redactor.redact_and_cut_text(text))
        return ResultPart(tuple(parts), is_failure=records.is_error(block))

    def _build_picture_part(self, block: Record) -> MediaPart:
        description = render_block_text({**block, "type": get_string(block, "type")}).partition(
            "\n"
        )[0][1:-1]
        source = records.get_mapping(block, "source")
        if source.get("type") == "base64":
            data = get_string(source, "data")
        else:
            data = ""
        if len(data) > MAX_ENCODED_IMAGE_CHARACTERS:
            description, data = f"{description}, left out: {format_bytes(len(data))}", ""
        self._builder.picture_count += bool(data)
        description = self._redactor.redact_line(plain_line(description))
        return MediaPart(
            get_string(block, "type"), get_string(source, "media_type"), data, description
        )

    def _build_text_part(self, speaker: str, text: str, record: Record) -> TextPart:
        return TextPart(
            speaker,
            self._redactor.redact_and_cut_text(text),
            clock.normalize_timestamp(record.get("timestamp")),
        )

    def _build_note_parts(self, name: str, text: str) -> Iterator[Part]:
        if note := _CLIENT_TAG_PATTERN.sub("", remove_reminders(text)).strip():
            yield NotePart(
                self._builder.shorten_name(name), self._redactor.redact_and_cut_text(note)
            )

    def _read_record(self, node: Node) -> Record:
        if self._last_record[0] != node.line_number:
            self._last_record = (
                node.line_number,
                script_calls.fill_empty_result(read_record(self._stream, node)),
            )
        return self._last_record[1]
