"""Convert a Codex thread to records in Claude Code's format.

The records contain the history that Codex would send to the model, and the earlier conversation. A
compaction becomes a compaction in Claude Code's format, and turns that were rolled back become an
abandoned branch. Texts are read only from items, because events repeat them. The ids come from
``history``. They are therefore the same in every conversion, and a fork has the ids of its parent.
An encrypted summary is replaced by a record that says that the summary is encrypted.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.goal import GoalTracker, parse_goal_text_and_status
from resume_hooks.parts.codex.transcripts.history import (
    ORIGINAL_ID_KEY,
    ItemIdAssigner,
    apply_compaction,
)
from resume_hooks.parts.codex.transcripts.lines import (
    COMPACTION_LINE,
    EVENT_LINE,
    ITEM_LINE,
    META_LINE,
    OPENING_KEY,
    PLUGIN_LINE_TYPE,
    TURN_CONTEXT_LINE,
    RolloutLine,
)
from resume_hooks.parts.codex.transcripts.meta import ThreadMeta, parse_meta
from resume_hooks.parts.codex.transcripts.tools import read_tool_uses
from resume_hooks.transcripts import records
from resume_hooks.transcripts.placeholders import TRIM_FIELD_NAMES
from resume_hooks.transcripts.records import Record, get_mapping, get_string, parse_positive_count

ENCRYPTED_SUMMARY_TEXT = (
    "[What was said before is a summary that only the model's provider can read.]"
)
FIRST_RECORD_TYPE = "agent-session"  # The type of the first line in a converted transcript.
# The entrypoint of a headless run. Claude Code uses the same name.
HEADLESS_ENTRYPOINT = "sdk-exec"
# The text that records an interruption by the user. Claude Code uses the same text.
INTERRUPTION_TEXT = "[Request interrupted by user]"
READ_ONLY_SANDBOX = "read-only"  # The mode of a sandbox that allows no changes.
UNKNOWN_MODEL = "unknown"  # The model's name if the rollout does not contain a name.


def build_first_record(meta: ThreadMeta, first_line: Record, agent: str) -> Record:
    """Return the first record of a converted transcript. It names the agent and the thread's parent.

    ``first_line`` is the complete first line of the rollout. If this plugin wrote the rollout, the
    parent is in ``first_line``. If Codex forked the thread, the parent is in ``meta``.
    """
    parent_fields: Record = {}
    for key in ("continue_metadata", "trim_metadata"):
        if isinstance(first_line.get(key), dict):
            parent_fields[key] = first_line[key]
    if not parent_fields and meta.forked_from_id:
        parent_fields["continue_metadata"] = {
            "parent_session_id": meta.forked_from_id,
            "continued_at": meta.created_at,
            "continuation_type": "fork",
        }
    return {"type": FIRST_RECORD_TYPE, "agent": agent, "sessionId": meta.thread_id, **parent_fields}


def convert_lines(lines: Iterable[RolloutLine], thread_id: str) -> Iterator[Record]:
    """Yield the records of a thread. ``lines`` are the lines of all its files.

    Only the records of one response are kept in memory at a time.
    """
    converter = RecordConverter(thread_id)
    for line in lines:
        yield from converter.add_line(line)
    yield from converter.finish_response()


class RecordConverter:
    """Converts the lines of a thread to records one by one.

    The token count of a response usually follows the response. The records of a response are
    therefore returned when the line with its token count is added. If no token count follows,
    ``finish_response`` returns the records. ``usage_comes_first`` is true if the client writes the
    token count before the response, as old clients did. It is None until a token count has been
    read.
    """

    def __init__(self, thread_id: str, *, usage_comes_first: bool | None = None) -> None:
        self.usage_comes_first = usage_comes_first
        # The token count of a response that follows. Some clients write it before the response.
        self._usage: Record = {}
        self._has_answer = False
        self._thread_id = thread_id
        self._ids = ItemIdAssigner()
        self._parent: str | None = None
        # For each turn, the id of the record before it and the turn's prompt.
        self._turns: list[tuple[str | None, Record | None]] = []
        # The records of a response whose token count has not been read yet.
        self._pending_records: list[Record] = []
        self._has_result = False
        # Maps the id of each unanswered call with several tool uses to the number of its tool uses.
        self._use_counts: dict[str, int] = {}
        # The command of each tool use that has no output yet, by the id of the tool use.
        self._commands: dict[str, str] = {}
        self._tasks: dict[str, str] = {}  # The running commands, by their task ids.
        self._session_fields: Record = {"cwd": "", "gitBranch": "", "version": "", "entrypoint": ""}
        self._model = ""
        self._goal = GoalTracker()
        self._is_interrupted = False
        # The fields that are added to the next prompts. They contain the permission mode.
        self._prompt_fields: dict[str, str] = {}
        # The fields that describe the sandbox of the current turn. Empty if the sandbox allows
        # changes.
        self._sandbox_fields: dict[str, str] = {}

    def add_line(self, line: RolloutLine) -> list[Record]:
        """Process a line, and return the records that it completes."""
        completed_records = self._convert_line(line)
        if self._goal.add_line(line):
            return [*completed_records, self._build_goal_record(line)]
        return completed_records

    def _build_goal_record(self, line: RolloutLine) -> Record:
        """Return a record of the current goal.

        The record has no parent, because a rollback of turns does not change the goal.
        """
        goal = self._goal.goal
        if goal:
            text = f"The session's goal, {goal.status}: {goal.objective}"
        else:
            text = "The session's goal was cleared."
        message_fields = {"type": records.SYSTEM, "subtype": records.GOAL_SUBTYPE, "content": text}
        if goal:
            goal_fields = {"goal": goal.objective, "status": goal.status}
        else:
            goal_fields = {}
        return {
            "parentUuid": None,
            "isSidechain": False,
            **message_fields,
            **goal_fields,
            "timestamp": line.timestamp,
        }

    def _convert_line(self, line: RolloutLine) -> list[Record]:
        payload = line.payload
        if line.kind == ITEM_LINE:
            if codex_items.item_type(payload):
                return list(self._convert_item(line, payload))
            return []
        if line.kind == COMPACTION_LINE:
            return [*self.finish_response(), *self._convert_compaction(line)]
        if line.kind == EVENT_LINE:
            return self._convert_event(line)
        if line.kind == PLUGIN_LINE_TYPE:
            return [*self.finish_response(), {"type": PLUGIN_LINE_TYPE, **payload}]
        if line.kind == META_LINE:
            self._ids.add_meta_line(line)
            self.update_session_fields(parse_meta(payload))
        elif line.kind == TURN_CONTEXT_LINE:
            self._session_fields["cwd"] = get_string(payload, "cwd") or self._session_fields["cwd"]
            self._model = get_string(payload, "model") or self._model
            if mode := get_string(get_mapping(payload, "collaboration_mode"), "mode"):
                self._prompt_fields = {"permissionMode": mode}
            self._sandbox_fields = _build_sandbox_fields(payload)
        return []

    def finish_response(self) -> list[Record]:
        """Return the records of the last response without waiting for its token count.

        Call this method if no token count can follow.
        """
        finished_records, self._pending_records, self._has_result = self._pending_records, [], False
        return finished_records

    def update_session_fields(self, meta: ThreadMeta) -> None:
        """Use the metadata of a first line for the following records.

        Later metadata replaces earlier metadata, except for the working directory.
        """
        fields = {
            "cwd": self._session_fields["cwd"] or meta.cwd,
            "gitBranch": meta.git_branch,
            "version": meta.cli_version and f"Codex {meta.cli_version}",
            "entrypoint": HEADLESS_ENTRYPOINT if meta.source == "exec" else meta.source,
        }
        for key, value in fields.items():
            if value:
                self._session_fields[key] = value

    def _convert_item(self, line: RolloutLine, item: Record) -> Iterator[Record]:
        kind, uuid = (
            codex_items.item_type(item),
            self._ids.assign_next_id(item, line.record.get(ORIGINAL_ID_KEY)),
        )
        if kind == codex_items.MESSAGE_TYPE and get_string(item, "role") != "assistant":
            yield from self.finish_response()
            self._begin_turn(item)
            yield from self._build_user_records(line, uuid, item)
        elif kind in codex_items.ENCRYPTED_SUMMARY_TYPES:
            yield from self.finish_response()
            yield self._build_message_record(
                line, uuid, records.USER, ENCRYPTED_SUMMARY_TEXT, isCompactSummary=True
            )
        elif kind in codex_items.TOOL_OUTPUT_TYPES:
            result_records = self._build_result_records(item)
            flags = {"toolDenialKind": "user-rejected"} if _was_rejected(item) else {}
            record = self._build_message_record(line, uuid, records.USER, result_records, **flags)
            if not self._pending_records:
                yield record
                return
            self._pending_records.append(record)
            self._has_result = True
        elif blocks := self._build_answer_blocks(item, kind):
            if self._has_result:
                yield from self.finish_response()
            self._pending_records.append(
                self._build_message_record(line, uuid, records.ASSISTANT, blocks)
            )

    def _begin_turn(self, item: Record) -> None:
        if codex_items.opens_turn(item):
            self._turns.append((self._parent, item if codex_items.is_prompt(item) else None))

    def _build_user_records(self, line: RolloutLine, uuid: str, item: Record) -> Iterator[Record]:
        """Yield the records of a message with the user's role.

        If an editor added text before the user's request, yield two records: a meta record with the
        whole message, and a record with only the request.
        """
        blocks = build_message_blocks(item)
        if not blocks:
            return
        if codex_items.is_summary(item) or line.record.get(OPENING_KEY) is True:
            yield self._build_message_record(
                line, uuid, records.USER, blocks, isCompactSummary=True
            )
        elif codex_items.is_goal_notice(item):
            yield self._build_message_record(line, uuid, records.USER, _format_goal_command(item))
        elif codex_items.is_interruption(item):
            self._is_interrupted = True
            yield self._build_message_record(line, uuid, records.USER, INTERRUPTION_TEXT)
        elif not codex_items.is_prompt(item):
            flags = _build_harness_fields(item)
            yield self._build_message_record(line, uuid, records.USER, blocks, **flags)
        elif _has_text_from_editor(item):
            request = codex_items.request_text(item)
            yield self._build_message_record(
                line, derive_second_id_of_split_item(uuid), records.USER, blocks, isMeta=True
            )
            yield self._build_message_record(
                line, uuid, records.USER, request, **self._prompt_fields
            )
        elif plan := codex_items.approved_plan(item):
            yield self._build_message_record(
                line, uuid, records.USER, blocks, planContent=plan, **self._prompt_fields
            )
        else:
            yield self._build_message_record(
                line, uuid, records.USER, blocks, **self._prompt_fields
            )

    def _build_answer_blocks(self, item: Record, kind: str) -> list[Record]:
        """Return the content blocks of an item from the model. The list is empty for encrypted content."""
        if kind == codex_items.REASONING_TYPE:
            thinking = codex_items.item_text(item)
            if thinking:
                return [{"type": records.THINKING, "thinking": thinking, "signature": ""}]
            return []
        if kind in codex_items.HOSTED_CALL_TYPES:
            tool_use = read_tool_uses(item)[0]
            call_id = get_string(item, "id") or get_string(item, "call_id")
            return [
                {
                    "type": records.SERVER_CALL,
                    "id": call_id,
                    "name": tool_use.name,
                    "input": tool_use.arguments,
                }
            ]
        if kind not in codex_items.TOOL_CALL_TYPES:
            if kind in {codex_items.MESSAGE_TYPE, "agent_message"}:
                return build_message_blocks(item)
            return []
        call_id, tool_uses = codex_items.call_id(item), read_tool_uses(item)
        if len(tool_uses) > 1:
            self._use_counts[call_id] = len(tool_uses)
        blocks = []
        for index, tool_use in enumerate(tool_uses):
            use_id = _format_tool_use_id(call_id, index)
            arguments = tool_use.arguments
            if tool_use.name == records.POLL_TOOL and (
                command := self._tasks.get(get_string(arguments, records.POLLED_TASK_FIELD))
            ):
                arguments = {**arguments, "command": command}
            if command := get_string(arguments, "command"):
                self._commands[use_id] = command
            blocks.append(
                {"type": records.CALL, "id": use_id, "name": tool_use.name, "input": arguments}
            )
        return blocks

    def _build_result_records(self, item: Record) -> list[Record]:
        """Return a result block for each tool use into which the answered call was converted.

        ``item`` is the output of the call. If a script printed one output per command, each block
        contains the output of its command. Otherwise the first block contains the whole output, and
        the other blocks are empty.
        """
        call_id, use_count = (
            codex_items.call_id(item),
            self._use_counts.pop(codex_items.call_id(item), 1),
        )
        outputs = read_tool_outputs(item, use_count)
        results: list[Record] = []
        for index, output in enumerate(outputs):
            use_id = _format_tool_use_id(call_id, index)
            command = self._commands.pop(use_id, "")
            if task := get_string(output.extra_fields, records.TASK_FIELD):
                self._tasks[task] = command
            results.append(
                {
                    "tool_use_id": use_id,
                    "type": records.RESULT,
                    "content": output.content,
                    **output.extra_fields,
                }
            )
            results[-1] |= {"is_error": True} if output.is_failure else {}
        return results

    def _convert_compaction(self, line: RolloutLine) -> Iterator[Record]:
        """Yield the records of a compaction.

        These are the boundary, the messages from the harness that the compaction keeps, and a
        summary record that contains all other items.
        """
        compacted = apply_compaction(line.payload, [prompt for _, prompt in self._turns if prompt])
        uuid, summary_id = (
            self._ids.derive_record_id("boundary"),
            self._ids.derive_record_id("summary"),
        )
        last_parent, self._parent, self._turns = self._parent, None, []
        boundary_fields = {
            "subtype": records.COMPACTION,
            "content": "Conversation compacted",
            "logicalParentUuid": last_parent,
        }
        yield self._build_linked_record(
            line, uuid, records.SYSTEM, boundary_fields, {"compactMetadata": {"trigger": "auto"}}
        )
        summary_blocks: list[Record] = []
        for item in compacted:
            uuid = self._ids.assign_next_id(item)
            self._begin_turn(item)
            if codex_items.item_type(item) in codex_items.ENCRYPTED_SUMMARY_TYPES:
                summary_blocks.append({"type": records.TEXT, "text": ENCRYPTED_SUMMARY_TEXT})
            elif _has_text_from_editor(item):
                request = codex_items.request_text(item)
                summary_blocks.append({"type": records.TEXT, "text": request})
            elif codex_items.opens_turn(item) or get_string(item, "role") == "assistant":
                summary_blocks += build_message_blocks(item)
            elif codex_items.item_type(item) == codex_items.MESSAGE_TYPE and (
                blocks := build_message_blocks(item)
            ):
                flags = _build_harness_fields(item)
                yield self._build_message_record(line, uuid, records.USER, blocks, **flags)
        if summary_blocks:
            yield self._build_message_record(
                line, summary_id, records.USER, summary_blocks, isCompactSummary=True
            )

    def _convert_event(self, line: RolloutLine) -> list[Record]:
        kind, payload = line.event_type(), line.payload
        if kind == "thread_rolled_back":
            finished_records, turn_count = (
                self.finish_response(),
                parse_positive_count(payload.get("num_turns")),
            )
            if turn_count and self._turns:
                index = max(0, len(self._turns) - turn_count)
                self._parent = self._turns[index][0]
                del self._turns[index:]
            return finished_records
        if kind == "turn_aborted" and get_string(payload, "reason") == "interrupted":
            return [*self.finish_response(), *self._convert_interruption(line)]
        if kind == "token_count":
            usage = _convert_to_claude_usage(
                get_mapping(get_mapping(payload, "info"), "last_token_usage")
            )
        else:
            usage = {}
        if not usage:
            return []
        if self.usage_comes_first is None:
            self.usage_comes_first = not self._has_answer
        if self.usage_comes_first:
            self._usage = usage
        for record in self._pending_records if not self.usage_comes_first else ():
            if record["type"] == records.ASSISTANT:
                record["message"]["usage"] = usage
        return self.finish_response()

    def _convert_interruption(self, line: RolloutLine) -> Iterator[Record]:
        """Yield a record of the user's interruption, unless a message to the model has already reported it."""
        if not self._is_interrupted:
            uuid = self._ids.derive_record_id(f"interruption {line.timestamp}")
            yield self._build_message_record(line, uuid, records.USER, INTERRUPTION_TEXT)
        self._is_interrupted = False

    def _build_message_record(
        self, line: RolloutLine, uuid: str, kind: str, content: object, **flags: bool | str
    ) -> Record:
        """Return the record of a message.

        If a user message consists of a single text block, its content is the text, as in Claude
        Code.
        """
        if kind == records.ASSISTANT:
            if self._pending_records:
                response_id = self._pending_records[0]["message"]["id"]
            else:
                response_id = f"msg_{uuid}"
            message: Record = {
                "id": response_id,
                "type": "message",
                "role": kind,
                "model": self._model or UNKNOWN_MODEL,
            }
            self._has_answer = True
            if self._usage:
                message["usage"] = self._usage
        else:
            message = {"role": kind}
            if (
                isinstance(content, list)
                and len(content) == 1
                and content[0]["type"] == records.TEXT
            ):
                content = content[0]["text"]
        return self._build_linked_record(
            line, uuid, kind, {"message": {**message, "content": content}}, flags
        )

    def _build_linked_record(
        self, line: RolloutLine, uuid: str, kind: str, content_fields: Record, extra_fields: Record
    ) -> Record:
        """Return a record whose parent is the previous record.

        The keys are in the same order as in Claude Code, because some readers do not parse the
        whole line.
        """
        parent_id, self._parent = self._parent, uuid
        session_fields = {
            "userType": "external",
            "sessionId": self._thread_id,
            **self._session_fields,
        }
        id_fields = {"uuid": uuid, "timestamp": line.timestamp}
        extra_fields = extra_fields | {
            key: line.record[key] for key in TRIM_FIELD_NAMES & line.record.keys()
        }
        return {
            "parentUuid": parent_id,
            "isSidechain": False,
            **session_fields,
            "type": kind,
            **content_fields,
            **id_fields,
            **self._sandbox_fields,
            **extra_fields,
        }


def _build_sandbox_fields(context: Record) -> dict[str, str]:
    """Return a field that describes the sandbox of a turn, or no field if the sandbox allows changes."""
    policy = get_mapping(context, "sandbox_policy")
    mode = get_string(policy, "type") or get_string(policy, "mode")
    if mode != READ_ONLY_SANDBOX:
        return {}
    approval = get_string(context, "approval_policy")
    description = f"{mode}, approval {approval}" if approval else mode
    return {records.SANDBOX_FIELD: description}


def _was_rejected(item: Record) -> bool:
    """Check whether an output says that the user rejected the call."""
    return codex_items.item_text(item).startswith(_REJECTION_PREFIXES)


def _has_text_from_editor(item: Record) -> bool:
    """Check whether an item is a prompt with text that an editor added before the user's request."""
    is_prompt = codex_items.is_prompt(item)
    return is_prompt and codex_items.request_text(item) != codex_items.item_text(item)


def _build_harness_fields(item: Record) -> dict[str, bool | str]:
    """Return the fields that mark a record as a message from the harness instead of the user."""
    if name := codex_items.instructions_name(item):
        return {"isMeta": True, records.INSTRUCTIONS_FIELD: name}
    return {"isMeta": True}


def _format_goal_command(goal_notice: Record) -> str:
    """Return Codex's notice about the user's goal as a ``/goal`` command of Claude Code.

    If the notice sets a goal, the model starts to work on it. A ``command-message`` then precedes
    the command.
    """
    objective, status = parse_goal_text_and_status(goal_notice)
    command = (
        f"<command-name>/goal</command-name>\n<command-args>{objective or status}</command-args>"
    )
    if objective:
        return f"<command-message>goal</command-message>\n{command}"
    return command


def _format_tool_use_id(call_id: str, index: int) -> str:
    if index:
        return f"{call_id}.{index + 1}"
    return call_id


def derive_second_id_of_split_item(item_id: str) -> str:
    """Return the id of the second record that is made from one item."""
    return f"{item_id[:-1]}{(int(item_id[-1], 16) + 8) % 16:x}"


def _convert_to_claude_usage(token_counts: Record) -> Record:
    """Return the token counts of a response in Claude Code's format.

    Return ``{}`` if ``token_counts`` contains no input tokens.
    """
    input_tokens, cached_tokens = (
        parse_positive_count(token_counts.get("input_tokens")),
        parse_positive_count(token_counts.get("cached_input_tokens")),
    )
    if not input_tokens:
        return {}
    cached_tokens = min(input_tokens, cached_tokens)
    return {
        "input_tokens": input_tokens - cached_tokens,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached_tokens,
        "output_tokens": max(
            parse_positive_count(token_counts.get("output_tokens")),
            parse_positive_count(token_counts.get("total_tokens")) - input_tokens,
        ),
    }


# The maximum number of encoded characters in a picture. A larger picture is replaced by a text.
MAX_ENCODED_IMAGE_CHARACTERS = 8 * 1024 * 1024
_IMAGE_TAG_PATTERN = re.compile(r"</?image\b[^>]{0,200}>")
_DATA_URL_PATTERN = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,")
_EXIT_CODE_PATTERN = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})\b")
_RUNNING_TASK_ID_PATTERN = re.compile(r"running with (session ID \d{1,9}|cell ID \d{1,9})\b")
_TRUNCATED_RESULT_PATTERN = re.compile(
    r'Warning: truncated[^{]{0,200}\{"chunk_id":[^{}]{0,200}?"exit_code":(\d{1,9})\b'
)
"""Matches the beginning of a command's result that was printed by a script and shortened by the
client."""

_PRINTED_SESSION_ID_PATTERN = re.compile(r"(?:\A|\n)session_?id[=:] ?(\d{1,9})\s*\Z", re.IGNORECASE)
_PRINTED_EXIT_CODE_PATTERN = re.compile(
    r"(?:\A|\n)\[?exit(?:[_ ]?(?:code|status))?[=:] ?(-?\d{1,9})\]?\s*\Z", re.IGNORECASE
)
"""Matches an exit code that a script printed as the last line of an output."""

_OUTPUT_HEADER_PATTERN = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process exited with code|Exit code|Original token count|"
    r"Total output lines|Script completed)\b[^\n]{0,80}\n){1,8}(?:Output:(?:\n|\Z))?"
)
"""Matches the lines that the client writes before the output of a finished command."""

_SCRIPT_OUTPUT_PREFIX = "Script "  # The beginning of the output of a script.
_ABORTED_OUTPUT_PATTERN = re.compile(r"(?:\A|\n)aborted(?: by user[^\n]{0,80})?\s*\Z")
"""Matches the output of a call that the user interrupted."""

INTERRUPTED_STATUS = 130  # The exit status of a command that was interrupted with Ctrl-C.
_REJECTION_PREFIXES = ("exec command rejected by user", "patch rejected by user")
"""The texts with which the output of a call can begin if the user rejected the call."""

# The beginning of the output of a script that succeeded.
_SCRIPT_SUCCESS_PREFIX = "Script completed"
_SCRIPT_FAILURE_PREFIX = "Script failed"  # The beginning of the output of a script that failed.
_CALL_FAILURE_PREFIXES = (
    "apply_patch verification failed",
    "failed in sandbox ",
    "exec_command failed",
    "write_stdin failed",
)
"""The beginnings of outputs that report a failure: a patch did not apply, the sandbox denied a
command, or a command could not run."""

# The beginning of an output if a script printed the whole result of a command.
_COMMAND_RESULT_PREFIX = '{"chunk_id":'
# Number of characters at the beginning and at the end of an output that are searched for the exit
# code.
CHARACTERS_SEARCHED_FOR_EXIT_CODE = 400


def build_message_blocks(item: Record) -> list[Record]:
    """Return the texts and pictures of a message as content blocks. Omit the tags around pictures."""
    part_blocks = [_build_block(part) for part in codex_items.content_parts(item)]
    blocks = []
    for block in part_blocks:
        if block and not _IMAGE_TAG_PATTERN.fullmatch(get_string(block, "text").strip()):
            blocks.append(block)
    return blocks


def _build_block(part: Record) -> Record | None:
    if get_string(part, "type") != "input_image":
        text = get_string(part, "text")
        if text.strip():
            return {"type": records.TEXT, "text": text}
        return None
    url = get_string(part, "image_url")
    match = _DATA_URL_PATTERN.match(url)
    if len(url) > MAX_ENCODED_IMAGE_CHARACTERS:
        return {
            "type": records.TEXT,
            "text": f"[A picture of {len(url):,} characters, which is left out here.]",
        }
    if match is None:
        return {"type": records.IMAGE, "source": {"type": "url", "url": url}}
    source = {"type": "base64", "media_type": match[1], "data": url[match.end() :]}
    return {"type": records.IMAGE, "source": source}


class ToolOutput(NamedTuple):
    """The content of a tool's output, and whether the tool failed.

    If the command is still running, ``extra_fields`` contains its task id. Otherwise, it contains
    the exit code if that is known.
    """

    content: str | list[Record]
    is_failure: bool
    extra_fields: Record


def read_tool_outputs(item: Record, tool_use_count: int) -> list[ToolOutput]:
    """Return one output for each of the ``tool_use_count`` tool uses that ``item`` answers."""
    head, *parts = codex_items.content_parts(item) or [{}]
    if tool_use_count > 1 and len(parts) == tool_use_count:
        return [read_output({**item, "output": [head, part]}) for part in parts]
    first_output = read_output(item)
    return [first_output, *[ToolOutput("", first_output.is_failure, {})] * (tool_use_count - 1)]


def read_output(item: Record) -> ToolOutput:
    """Return the output in an item, without the lines that the client writes before it.

    As in Claude Code, the output of a failed command begins with its exit code.
    """
    blocks = [block for part in codex_items.content_parts(item) if (block := _build_block(part))]
    text = get_string(blocks[0], "text") if blocks else ""
    is_failure = get_mapping(item, "output").get("success") is False
    extra_fields: Record = {}
    # Old clients report the exit code of a command in this format.
    if text.startswith('{"output":') and (inner_output := records.parse_record(text.encode())):
        text = get_string(inner_output, "output")
        blocks[0] = {"type": records.TEXT, "text": text}
        if status := parse_positive_count(get_mapping(inner_output, "metadata").get("exit_code")):
            extra_fields[records.EXIT_STATUS_FIELD] = status
    is_failure = is_failure or text.startswith(
        (_SCRIPT_FAILURE_PREFIX, *_CALL_FAILURE_PREFIXES, *_REJECTION_PREFIXES)
    )
    extra_fields |= _parse_exit_code_or_task_id(
        text, get_string(blocks[-1], "text") if blocks else ""
    )
    if len(blocks) == 2 and "text" in blocks[1]:
        printed_text, printed_fields = _split_output_and_result_fields(
            get_string(blocks[1], "text")
        )
        extra_fields |= printed_fields
        blocks[1] = {**blocks[1], "text": printed_text}
    if not extra_fields and text.startswith(_SCRIPT_SUCCESS_PREFIX):
        extra_fields[records.EXIT_STATUS_FIELD] = None  # The script did not print the exit code.
    status = extra_fields.get(records.EXIT_STATUS_FIELD) or 0
    if text:
        blocks = _remove_output_header(blocks, status)
    is_failure = is_failure or status != 0
    if len(blocks) == 1 and "text" in blocks[0]:
        return ToolOutput(get_string(blocks[0], "text"), is_failure, extra_fields)
    return ToolOutput(blocks or "", is_failure, extra_fields)


def _remove_output_header(blocks: list[Record], exit_code: int) -> list[Record]:
    """Return an output without the lines that the client writes before it.

    If ``exit_code`` is not 0, a line such as ``Exit code 1`` is added at the beginning.
    """
    text = get_string(blocks[0], "text")
    head = _OUTPUT_HEADER_PATTERN.match(text)
    if head is not None:
        text = text[head.end() :]
    output_body = blocks[1:]
    if head is not None and output_body and not text.strip():
        if "text" not in output_body[0] and not exit_code:
            return output_body
        text = get_string(output_body[0], "text")
        output_body = output_body[1:] if "text" in output_body[0] else output_body
    if exit_code:
        text = f"Exit code {exit_code}\n{text}"
    return [{"type": records.TEXT, "text": text}, *output_body]


def _parse_exit_code_or_task_id(first_text: str, last_text: str) -> Record:
    """Return the task id or exit code that an output contains, as fields of a result block.

    ``first_text`` and ``last_text`` are the texts of the first and the last part of the output.
    """
    if match := _EXIT_CODE_PATTERN.search(first_text[:CHARACTERS_SEARCHED_FOR_EXIT_CODE]):
        return {records.EXIT_STATUS_FIELD: int(match[1])}
    if _ABORTED_OUTPUT_PATTERN.search(first_text[-CHARACTERS_SEARCHED_FOR_EXIT_CODE:]):
        return {records.EXIT_STATUS_FIELD: INTERRUPTED_STATUS}
    if match := _TRUNCATED_RESULT_PATTERN.match(last_text):
        return {records.EXIT_STATUS_FIELD: int(match[1])}
    if match := _RUNNING_TASK_ID_PATTERN.search(first_text[:CHARACTERS_SEARCHED_FOR_EXIT_CODE]):
        return {
            records.TASK_FIELD: match[1].replace("cell ID ", "cell ").removeprefix("session ID ")
        }
    ending = last_text[-CHARACTERS_SEARCHED_FOR_EXIT_CODE:]
    if match := _PRINTED_SESSION_ID_PATTERN.search(ending):
        return {records.TASK_FIELD: match[1]}
    if first_text.startswith(_SCRIPT_OUTPUT_PREFIX) and (
        match := _PRINTED_EXIT_CODE_PATTERN.search(ending)
    ):
        return {records.EXIT_STATUS_FIELD: int(match[1])}
    return {}


def _split_output_and_result_fields(text: str) -> tuple[str, Record]:
    """Split the result of a command into its output and the fields of a result block.

    The fields contain the exit code or the task id. ``text`` is expected to be a whole command
    result that a script printed. Any other text is returned unchanged and without fields.
    """
    inner_output = (
        records.parse_record(text.encode()) if text.startswith(_COMMAND_RESULT_PREFIX) else None
    )
    if inner_output is None or not isinstance(inner_output.get("output"), str):
        return text, {}
    extra_fields: Record = {}
    if "exit_code" in inner_output:
        extra_fields[records.EXIT_STATUS_FIELD] = parse_positive_count(inner_output["exit_code"])
    elif session := parse_positive_count(inner_output.get("session_id")):
        extra_fields[records.TASK_FIELD] = str(session)
    return get_string(inner_output, "output"), extra_fields
