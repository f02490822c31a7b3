"""Convert a thread to our records: its effective history and the earlier conversation.

The newest compaction becomes a compaction in our format, and a rolled-back turn becomes an
abandoned branch. Texts come from items, never from events, because events repeat them. Ids come
from ``history``: they are the same in every run, and a fork has the ids of its parent. Encrypted
content has no text. If a summary is encrypted, a record says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from resume_hooks.parts.codex.transcripts import items as codex_items
from resume_hooks.parts.codex.transcripts.goal import GoalState, parse_goal_note
from resume_hooks.parts.codex.transcripts.history import OWN_ID, Ids, compacted_items
from resume_hooks.parts.codex.transcripts.lines import (
    COMPACTED,
    CONTEXT,
    DIGEST,
    EVENT,
    ITEM,
    META,
    OPENING_KEY,
    RolloutLine,
)
from resume_hooks.parts.codex.transcripts.meta import ThreadMeta, parse_meta
from resume_hooks.parts.codex.transcripts.tools import uses_of_call
from resume_hooks.transcripts import records
from resume_hooks.transcripts.placeholders import TRIM_FIELDS
from resume_hooks.transcripts.records import Record, mapping, positive_count, string

ENCRYPTED = "[What was said before is a summary that only the model's provider can read.]"
TRANSCRIPT_MARK = "agent-session"  # the type of a converted transcript's first line
HEADLESS = "sdk-exec"  # the entrypoint of a run without a screen, named as in Claude Code
UNKNOWN = "unknown"  # the model's name if the rollout does not contain one


def first_record(meta: ThreadMeta, first: Record, agent: str) -> Record:
    """Return the first record of a converted transcript, which names its agent and the thread's parent.

    ``first`` is the rollout's complete first line, because our own children name their parent in
    it.
    """
    parent_fields: Record = {}
    for key in ("continue_metadata", "trim_metadata"):
        if isinstance(first.get(key), dict):
            parent_fields[key] = first[key]
    if not parent_fields and meta.forked_from:
        parent_fields["continue_metadata"] = {
            "parent_session_id": meta.forked_from,
            "continued_at": meta.created,
            "continuation_type": "fork",
        }
    return {"type": TRANSCRIPT_MARK, "agent": agent, "sessionId": meta.thread_id, **parent_fields}


def as_records(lines: Iterable[RolloutLine], thread_id: str) -> Iterator[Record]:
    """Yield the records of a thread from the lines of all its segments.

    Only one response of the model is kept in memory at a time.
    """
    converter = RecordConverter(thread_id)
    for line in lines:
        yield from converter.add_line(line)
    yield from converter.end()


class RecordConverter:
    """Converts lines to records one by one. ``end`` returns the records that still wait for a token count.

    ``early`` is true if the client writes a token count before its response, as old clients did. It
    is None until the first count.
    """

    def __init__(self, thread_id: str, *, early: bool | None = None) -> None:
        self.early = early
        self._usage: Record = {}  # a token count that was written before its response
        self._answers = False
        self._thread_id = thread_id
        self._ids = Ids()
        self._parent: str | None = None
        self._turns: list[
            tuple[str | None, Record | None]
        ] = []  # for each turn, the id of the record before it, and its prompt
        # the records of a response whose token count has not been read yet
        self._held: list[Record] = []
        self._answered = False
        self._uses: dict[
            str, int
        ] = {}  # the number of tool uses in each unanswered call with more than one, by call id
        self._commands: dict[
            str, str
        ] = {}  # the command of each tool use that waits for its output
        self._tasks: dict[str, str] = {}  # the running commands, by their task ids
        self._around: Record = {"cwd": "", "gitBranch": "", "version": "", "entrypoint": ""}
        self._model = ""
        self._goal = GoalState()

    def add_line(self, line: RolloutLine) -> list[Record]:
        """Return the records that this line completes."""
        completed = self._records_of_line(line)
        if self._goal.add_line(line):
            return [*completed, self._goal_record(line)]
        return completed

    def _goal_record(self, line: RolloutLine) -> Record:
        """Return a record of the current goal. It has no parent, because rollbacks do not change the goal."""
        goal = self._goal.goal
        if goal:
            text = f"The session's goal, {goal.status}: {goal.objective}"
        else:
            text = "The session's goal was cleared."
        message_fields = {"type": records.SYSTEM, "subtype": records.GOAL, "content": text}
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

    def _records_of_line(self, line: RolloutLine) -> list[Record]:
        payload = line.payload
        if line.kind == ITEM:
            if codex_items.item_kind(payload):
                return list(self._records_of_item(line, payload))
            return []
        if line.kind == COMPACTED:
            return [*self.end(), *self._compaction(line)]
        if line.kind == EVENT:
            return self._records_of_event(line.event(), payload)
        if line.kind == DIGEST:
            return [*self.end(), {"type": DIGEST, **payload}]
        if line.kind == META:
            self._ids.begin(line)
            self.apply_meta(parse_meta(payload))
        elif line.kind == CONTEXT:
            self._around["cwd"] = string(payload, "cwd") or self._around["cwd"]
            self._model = string(payload, "model") or self._model
        return []

    def end(self) -> list[Record]:
        """Return the records that waited for a token count."""
        pending, self._held, self._answered = self._held, [], False
        return pending

    def apply_meta(self, meta: ThreadMeta) -> None:
        """Apply the metadata of a first line. Later metadata overrides earlier metadata, except for the folder."""
        fields = {
            "cwd": self._around["cwd"] or meta.cwd,
            "gitBranch": meta.branch,
            "version": meta.version and f"Codex {meta.version}",
            "entrypoint": HEADLESS if meta.source == "exec" else meta.source,
        }
        for key, value in fields.items():
            if value:
                self._around[key] = value

    def _records_of_item(self, line: RolloutLine, item: Record) -> Iterator[Record]:
        kind, uuid = codex_items.item_kind(item), self._ids.next_id(item, line.record.get(OWN_ID))
        if kind == codex_items.MESSAGE and string(item, "role") != "assistant":
            yield from self.end()
            self._open_turn(item)
            yield from self._user_records(line, uuid, item)
        elif kind in codex_items.ENCRYPTED:
            yield from self.end()
            yield self._record(line, uuid, records.USER, ENCRYPTED, isCompactSummary=True)
        elif kind in codex_items.OUTPUTS:
            record = self._record(line, uuid, records.USER, self._result_records(item))
            if not self._held:
                yield record
                return
            self._held.append(record)
            self._answered = True
        elif blocks := self._answer_blocks(item, kind):
            if self._answered:
                yield from self.end()
            self._held.append(self._record(line, uuid, records.ASSISTANT, blocks))

    def _open_turn(self, item: Record) -> None:
        if codex_items.opens_turn(item):
            self._turns.append((self._parent, item if codex_items.is_prompt(item) else None))

    def _user_records(self, line: RolloutLine, uuid: str, item: Record) -> Iterator[Record]:
        """Yield the records of a user message.

        Text that an editor added before the request becomes a separate meta record.
        """
        blocks = message_blocks(item)
        if not blocks:
            return
        if codex_items.is_summary(item) or line.record.get(OPENING_KEY) is True:
            yield self._record(line, uuid, records.USER, blocks, isCompactSummary=True)
        elif codex_items.is_goal_note(item):
            yield self._record(line, uuid, records.USER, _goal_command(item))
        elif not codex_items.is_prompt(item):
            yield self._record(line, uuid, records.USER, blocks, isMeta=True)
        elif (request := codex_items.request_text(item)) != codex_items.item_text(item):
            yield self._record(line, second_id(uuid), records.USER, blocks, isMeta=True)
            yield self._record(line, uuid, records.USER, request)
        else:
            yield self._record(line, uuid, records.USER, blocks)

    def _answer_blocks(self, item: Record, kind: str) -> list[Record]:
        """Return the content blocks of a model item, or an empty list for encrypted content."""
        if kind == codex_items.REASONING:
            thought = codex_items.item_text(item)
            if thought:
                return [{"type": records.THINKING, "thinking": thought, "signature": ""}]
            return []
        if kind in codex_items.HOSTED:
            use = uses_of_call(item)[0]
            call_id = string(item, "id") or string(item, "call_id")
            return [
                {"type": records.SERVER_CALL, "id": call_id, "name": use.name, "input": use.given}
            ]
        if kind not in codex_items.CALLS:
            if kind in {codex_items.MESSAGE, "agent_message"}:
                return message_blocks(item)
            return []
        call_id, uses = codex_items.call_id(item), uses_of_call(item)
        if len(uses) > 1:
            self._uses[call_id] = len(uses)
        blocks = []
        for index, use in enumerate(uses):
            use_id = _id_of_use(call_id, index)
            given = use.given
            if use.name == records.POLL and (
                command := self._tasks.get(string(given, records.POLLED))
            ):
                given = {**given, "command": command}
            if command := string(given, "command"):
                self._commands[use_id] = command
            blocks.append({"type": records.CALL, "id": use_id, "name": use.name, "input": given})
        return blocks

    def _result_records(self, item: Record) -> list[Record]:
        """Return a result block for each tool use of a call.

        If a script printed one part per command, each block has its part. Otherwise only the first
        block has the output.
        """
        call_id, uses = codex_items.call_id(item), self._uses.pop(codex_items.call_id(item), 1)
        answers = output_of_uses(item, uses)
        results: list[Record] = []
        for index, answer in enumerate(answers):
            use_id = _id_of_use(call_id, index)
            command = self._commands.pop(use_id, "")
            if task := string(answer.marks, records.TASK):
                self._tasks[task] = command
            results.append(
                {
                    "tool_use_id": use_id,
                    "type": records.RESULT,
                    "content": answer.content,
                    **answer.marks,
                }
            )
            results[-1] |= {"is_error": True} if answer.failed else {}
        return results

    def _compaction(self, line: RolloutLine) -> Iterator[Record]:
        """Yield the compaction boundary, the messages that the harness repeated, and the rest as a summary."""
        remaining = compacted_items(line.payload, [prompt for _, prompt in self._turns if prompt])
        uuid, summary_id = self._ids.derived_id("boundary"), self._ids.derived_id("summary")
        parent, self._parent, self._turns = self._parent, None, []
        extra = {
            "subtype": records.COMPACTION,
            "content": "Conversation compacted",
            "logicalParentUuid": parent,
        }
        yield self._link_record(
            line, uuid, records.SYSTEM, extra, {"compactMetadata": {"trigger": "auto"}}
        )
        summary_blocks: list[Record] = []
        for item in remaining:
            uuid = self._ids.next_id(item)
            self._open_turn(item)
            if codex_items.item_kind(item) in codex_items.ENCRYPTED:
                summary_blocks.append({"type": records.TEXT, "text": ENCRYPTED})
            elif codex_items.opens_turn(item) or string(item, "role") == "assistant":
                summary_blocks += message_blocks(item)
            elif codex_items.item_kind(item) == codex_items.MESSAGE and (
                blocks := message_blocks(item)
            ):
                yield self._record(line, uuid, records.USER, blocks, isMeta=True)
        if summary_blocks:
            yield self._record(
                line, summary_id, records.USER, summary_blocks, isCompactSummary=True
            )

    def _records_of_event(self, kind: str, payload: Record) -> list[Record]:
        if kind == "thread_rolled_back":
            completed, count = self.end(), positive_count(payload.get("num_turns"))
            if count and self._turns:
                index = max(0, len(self._turns) - count)
                self._parent = self._turns[index][0]
                del self._turns[index:]
            return completed
        if kind == "token_count":
            usage = _usage(mapping(mapping(payload, "info"), "last_token_usage"))
        else:
            usage = {}
        if not usage:
            return []
        if self.early is None:
            self.early = not self._answers
        if self.early:
            self._usage = usage
        for record in self._held if not self.early else ():
            if record["type"] == records.ASSISTANT:
                record["message"]["usage"] = usage
        return self.end()

    def _record(
        self, line: RolloutLine, uuid: str, kind: str, content: object, **marks: bool
    ) -> Record:
        """Return a message record. A single text block becomes a string, like the user's messages in Claude Code."""
        if kind == records.ASSISTANT:
            if self._held:
                response = self._held[0]["message"]["id"]
            else:
                response = f"msg_{uuid}"
            message: Record = {
                "id": response,
                "type": "message",
                "role": kind,
                "model": self._model or UNKNOWN,
            }
            self._answers = True
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
        return self._link_record(
            line, uuid, kind, {"message": {**message, "content": content}}, marks
        )

    def _link_record(
        self, line: RolloutLine, uuid: str, kind: str, content_fields: Record, marks: Record
    ) -> Record:
        """Return a record with its keys in the client's order, because some readers do not parse the whole line."""
        parent, self._parent = self._parent, uuid
        session_fields = {"userType": "external", "sessionId": self._thread_id, **self._around}
        id_fields = {"uuid": uuid, "timestamp": line.timestamp}
        marks = marks | {key: line.record[key] for key in TRIM_FIELDS & line.record.keys()}
        return {
            "parentUuid": parent,
            "isSidechain": False,
            **session_fields,
            "type": kind,
            **content_fields,
            **id_fields,
            **marks,
        }


def _goal_command(note: Record) -> str:
    """Return the goal as the ``/goal`` command of Claude Code.

    If the goal starts the model, the command begins with a ``command-message``.
    """
    objective, words = parse_goal_note(note)
    command = (
        f"<command-name>/goal</command-name>\n<command-args>{objective or words}</command-args>"
    )
    if objective:
        return f"<command-message>goal</command-message>\n{command}"
    return command


def _id_of_use(call_id: str, index: int) -> str:
    if index:
        return f"{call_id}.{index + 1}"
    return call_id


def second_id(uuid: str) -> str:
    """Return the id for a second record of the same item."""
    return f"{uuid[:-1]}{(int(uuid[-1], 16) + 8) % 16:x}"


def _usage(counted: Record) -> Record:
    """Return a response's token counts in Claude's format, or ``{}`` if it has none."""
    input_tokens, cached = (
        positive_count(counted.get("input_tokens")),
        positive_count(counted.get("cached_input_tokens")),
    )
    if not input_tokens:
        return {}
    cached = min(input_tokens, cached)
    return {
        "input_tokens": input_tokens - cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": max(
            positive_count(counted.get("output_tokens")),
            positive_count(counted.get("total_tokens")) - input_tokens,
        ),
    }


# the maximum number of encoded characters of a picture; larger pictures are replaced
MAX_PICTURE = 8 * 1024 * 1024
_PICTURE_TAG = re.compile(r"</?image\b[^>]{0,200}>")
_DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,")
_EXIT_CODE = re.compile(r"(?:Process exited with code|Exit code:) (-?\d{1,9})\b")
_RUNNING = re.compile(r"running with (session ID \d{1,9}|cell ID \d{1,9})\b")
_CUT_RESULT = re.compile(
    r'Warning: truncated[^{]{0,200}\{"chunk_id":[^{}]{0,200}?"exit_code":(\d{1,9})\b'
)
"""The beginning of a command's result that a script printed, if the client cut its middle out."""

_PRINTED_SESSION = re.compile(r"(?:\A|\n)session_?id[=:] ?(\d{1,9})\s*\Z", re.IGNORECASE)
_PRINTED_EXIT_CODE = re.compile(
    r"(?:\A|\n)\[?exit(?:[_ ]?(?:code|status))?[=:] ?(-?\d{1,9})\]?\s*\Z", re.IGNORECASE
)
"""The last line of an output in which a script printed a running command's session or an exit code."""

_OUTPUT_HEAD = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process exited with code|Exit code|Original token count|"
    r"Total output lines|Script completed)\b[^\n]{0,80}\n){1,8}(?:Output:(?:\n|\Z))?"
)
"""The rows that the client writes before a finished command's output."""

_SCRIPT = "Script "  # the start of the output of a script
_SCRIPT_FAILED = "Script failed"  # the start of the output if a script ended with an error
_PATCH_FAILED = ("apply_patch verification failed", "failed in sandbox ")
"""The prefixes of an output that reports a patch that did not apply, or a command that did not start."""

_COMMAND_OUTPUT = (
    '{"chunk_id":'  # the beginning of the output if a script printed a command's whole result
)
# the number of characters at the start of an output that are searched for the exit code
EXIT_CODE_REACH = 400


def message_blocks(item: Record) -> list[Record]:
    """Return the texts and pictures of a message without the tags around pictures."""
    candidates = [_block(part) for part in codex_items.content_parts(item)]
    blocks = []
    for block in candidates:
        if block and not _PICTURE_TAG.fullmatch(string(block, "text").strip()):
            blocks.append(block)
    return blocks


def _block(part: Record) -> Record | None:
    if string(part, "type") != "input_image":
        text = string(part, "text")
        if text.strip():
            return {"type": records.TEXT, "text": text}
        return None
    url = string(part, "image_url")
    match = _DATA_URL.match(url)
    if len(url) > MAX_PICTURE:
        return {
            "type": records.TEXT,
            "text": f"[A picture of {len(url):,} characters, which is left out here.]",
        }
    if match is None:
        return {"type": records.IMAGE, "source": {"type": "url", "url": url}}
    source = {"type": "base64", "media_type": match[1], "data": url[match.end() :]}
    return {"type": records.IMAGE, "source": source}


class Output(NamedTuple):
    """The content of an output, and whether it reports a failure.

    ``marks`` contains the task id of a command that was still running, or a known exit code.
    """

    content: str | list[Record]
    failed: bool
    marks: Record


def output_of_uses(item: Record, uses: int) -> list[Output]:
    """Return the output of each tool use in a call."""
    head, *parts = codex_items.content_parts(item) or [{}]
    if uses > 1 and len(parts) == uses:
        return [output_blocks({**item, "output": [head, part]}) for part in parts]
    first = output_blocks(item)
    return [first, *[Output("", first.failed, {})] * (uses - 1)]


def output_blocks(item: Record) -> Output:
    """Return the output in an item.

    The client's rows before the output are left out. As in Claude Code, a failed command's output
    begins with its exit code.
    """
    blocks = [block for part in codex_items.content_parts(item) if (block := _block(part))]
    text = string(blocks[0], "text") if blocks else ""
    failed = mapping(item, "output").get("success") is False
    marks: Record = {}
    # the format in which old clients report a command's exit code
    if text.startswith('{"output":') and (inner := records.parse(text.encode())):
        text = string(inner, "output")
        blocks[0] = {"type": records.TEXT, "text": text}
        if status := positive_count(mapping(inner, "metadata").get("exit_code")):
            marks[records.EXIT_STATUS] = status
    failed = failed or text.startswith((_SCRIPT_FAILED, *_PATCH_FAILED))
    marks |= _marks_of_output(text, string(blocks[-1], "text") if blocks else "")
    if len(blocks) == 2 and "text" in blocks[1]:
        printed, printed_marks = _unwrap_command(string(blocks[1], "text"))
        marks |= printed_marks
        blocks[1] = {**blocks[1], "text": printed}
    if text:
        blocks = _without_head(blocks, marks.get(records.EXIT_STATUS, 0))
    failed = failed or marks.get(records.EXIT_STATUS, 0) != 0
    if len(blocks) == 1 and "text" in blocks[0]:
        return Output(string(blocks[0], "text"), failed, marks)
    return Output(blocks or "", failed, marks)


def _without_head(blocks: list[Record], status: int) -> list[Record]:
    """Return an output without the client's rows before it; one with a nonzero status begins with that."""
    text = string(blocks[0], "text")
    head = _OUTPUT_HEAD.match(text)
    if head is not None:
        text = text[head.end() :]
    rest = blocks[1:]
    if head is not None and rest and not text.strip():
        if "text" not in rest[0] and not status:
            return rest
        text = string(rest[0], "text")
        rest = rest[1:] if "text" in rest[0] else rest
    if status:
        text = f"Exit code {status}\n{text}"
    return [{"type": records.TEXT, "text": text}, *rest]


def _marks_of_output(head: str, last: str) -> Record:
    """Return the marks in an output, given the texts of its first and last parts."""
    if match := _EXIT_CODE.search(head[:EXIT_CODE_REACH]):
        return {records.EXIT_STATUS: int(match[1])}
    if match := _CUT_RESULT.match(last):
        return {records.EXIT_STATUS: int(match[1])}
    if match := _RUNNING.search(head[:EXIT_CODE_REACH]):
        return {records.TASK: match[1].replace("cell ID ", "cell ").removeprefix("session ID ")}
    ending = last[-EXIT_CODE_REACH:]
    if match := _PRINTED_SESSION.search(ending):
        return {records.TASK: match[1]}
    if head.startswith(_SCRIPT) and (match := _PRINTED_EXIT_CODE.search(ending)):
        return {records.EXIT_STATUS: int(match[1])}
    return {}


def _unwrap_command(text: str) -> tuple[str, Record]:
    """Return a command's output and its marks from the text that a script printed."""
    inner = records.parse(text.encode()) if text.startswith(_COMMAND_OUTPUT) else None
    if inner is None or not isinstance(inner.get("output"), str):
        return text, {}
    marks: Record = {}
    if "exit_code" in inner:
        marks[records.EXIT_STATUS] = positive_count(inner["exit_code"])
    elif session := positive_count(inner.get("session_id")):
        marks[records.TASK] = str(session)
    return string(inner, "output"), marks
