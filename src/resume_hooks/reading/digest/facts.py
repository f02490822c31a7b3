"""The facts of a digest, such as words, commands and calls, each with its position in a session.

A queue record reports what happened to a prompt that was typed while the model was busy. The client
either sent the prompt later, with a record of its own, or passed it to the model between two calls,
or returned it to the user for editing. If a client up to version 2.1.112 passed a prompt to the
model between two calls, the queue record is the only record of the prompt.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from resume_hooks.reading.digest.prose import keep_typed_text, mark_pastes
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.transcripts import records
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import FILE_PATH_INPUT_NAMES, Record, get_string, list_objects

_PATH_INPUT_NAMES = (
    *FILE_PATH_INPUT_NAMES,
    "path",
    "destination",
    "relative_path",
    "target_file",
    "filename",
)
# This many characters are kept at each end of a long output: at its start and at its end.
MAX_OUTPUT_END_CHARACTERS = 2_000
OMITTED_MIDDLE_LINE = "[... the middle of the output is left out ...]"
"""The line that replaces the middle of a long output."""
_EXIT_CODE_PATTERN = compile_lazily(r"\s*(?:Error: )?Exit code (\d{1,9})\b")
_BACKGROUND_MESSAGE_PATTERN = compile_lazily(
    r"Command (?:running in background|did not complete within|was manually backgrounded)"
)
_TASK_ID_PATTERN = compile_lazily(r"\bID: ([\w-]{1,40})")
_NOTIFICATION_TAG = "<task-notification"

_TASK_NOTIFICATION_PATTERN = compile_lazily(
    r"<task-id>([\w-]{1,40})</task-id>.*?<status>(completed|failed|killed)</status>(?:.*?\(exit code (\d{1,9})\))?",
    re.DOTALL,
)

SERVER_TOOL_PREFIX = "mcp__"  # The names of MCP servers' tools start with this prefix.
_USER_ANSWER_PREFIXES = (
    "User has answered your questions",
    "The user answered",
    "Your questions have been answered",
)
_CHOSEN_ANSWER_PATTERN = compile_lazily(r'\s*=\s*"((?:[^"\\]|\\.)*)(?:"|\Z)', re.DOTALL)
_REJECTION_PREFIXES = (
    f"{records.REJECTION_BEGINNING} proceed with this tool use",
    f"{records.REJECTION_BEGINNING} take this action right now",
)

EMPTY_RESULT_TEXTS = frozenset({"[]", "{}", "null"})
"""JSON texts that a program prints for an empty result."""

_CLARIFICATION_REQUEST_PREFIX = "The user wants to clarify these questions."
"""The start of the client's text if the user wants to discuss the questions before answering them.
"""

_CLARIFIED_ANSWER_PATTERN = compile_lazily(
    r'^[ \t]*- "([^\n]{1,2000})"\n[ \t]*Answer: ([^\n]{1,2000})', re.MULTILINE
)

_FORBIDDEN_CALL_PATTERN = compile_lazily(
    r"(?:Error: )?PreToolUse:|Hook PreToolUse:|Permission to use |Claude requested permissions? to |"
    r"\w{1,40} operation blocked by hook|This command requires approval|"
    r"Permission for this action (?:was|has been) denied"
)
"""The start of a call's result if a rule or a hook forbade the call.

Recent clients also store this in a field of the record.
"""

# The start of the result of a call that the client could not execute.
_INVALID_CALL_TAG = "<tool_use_error>"
_TASK_NUMBER_PATTERN = compile_lazily(r"#(\w{1,20})")
_DONE_STATUSES = frozenset({"completed", "deleted", "cancelled"})

# A queued prompt is compared with the latest prompts, at most this many.
MAX_COMPARED_PROMPTS = 4
# A prompt that left the queue is compared with at most this number of queued prompts.
MAX_COMPARED_QUEUED_PROMPTS = 50

INTERRUPTION_PREFIX = "[Request interrupted"
"""The start of the note in which the client records that the user interrupted a turn."""

_INSERTED_TEXT_PREFIXES = (
    "<channel ",
    "<task-notification",
    "<agent-notification",
    "<agent-message",
    "<teammate-message",
    "<local-command",
    "<bash-",
    "<command-name>",
    "<codex_internal_context",
    INTERRUPTION_PREFIX,
    "Operation stopped by hook",
    "Stop hook feedback:",
    "This session is being continued",
    "Another Claude session sent",
    "Unknown command: /",  # 2.1.112
    "/resume-hooks:",  # Such a prompt is for this plugin and not for the model.
)
"""The beginnings of texts that the client records as prompts although the user did not type them
for the model."""

_PLUGIN_TRIGGER_PATTERN = compile_lazily(r">[a-z]+(?:-[a-z]+)*(?!\S)")
"""A trigger of this plugin, such as ``>continue``. A hook blocks a prompt that starts with a
trigger, but with ``-p``, the client records a blocked prompt in the same way as any other prompt.
"""

_CLIENT_COMMAND_PATTERN = compile_lazily(
    r"/(?:clear|compact|model|resume|continue|exit|quit|login|logout|help|cost|usage|status|config|doctor|memory|mcp|hooks|"
    r"permissions|context|export|rewind|branch|rename|plugin|agents|theme|ide|add-dir)(?!\S)"
)
"""Commands that the client executes itself.

Some versions of the client record them in the same way as commands for the model.
"""

_COMMAND_NAME_PATTERN = compile_lazily(r"\A\s*<command-name>(/[^<\s]{1,80})</command-name>")
_COMMAND_ARGS_PATTERN = compile_lazily(r"<command-args>(.*?)</command-args>", re.DOTALL)
_BASH_INPUT_PATTERN = compile_lazily(r"\A\s*<bash-input>(.*?)</bash-input>", re.DOTALL)
_BASH_OUTPUT_PATTERN = compile_lazily(
    r"<bash-(?:stdout|stderr)>(.*?)</bash-(?:stdout|stderr)>", re.DOTALL
)


def read_slash_command(text: str) -> str:
    """Return a client command with its arguments if these are about the work, else ``""``.

    An example is ``/compact <text>``.
    """
    command, arguments = _COMMAND_NAME_PATTERN.match(text), _COMMAND_ARGS_PATTERN.search(text)
    words = arguments[1].strip() if arguments else ""
    if (
        command is None
        or len(words.split()) < records.MIN_PLAN_WORDS
        or command[1].startswith("/resume-hooks:")
    ):
        return ""
    if _CONFIGURATION_COMMAND_PATTERN.match(command[1]) is None:
        return f"{command[1]} {words}"
    return ""


def read_user_shell_command(text: str) -> str:
    """Return the shell command that the user ran with ``!``, or ``""`` if the text contains none."""
    match = _BASH_INPUT_PATTERN.match(text)
    if match and match[1].strip():
        return f"! {match[1].strip()}"
    return ""


def read_user_shell_output(text: str) -> str:
    """Return the output of a command that the user ran with ``!``, or ``""`` if the text contains none."""
    if not text.lstrip().startswith(("<bash-stdout>", "<bash-stderr>")):
        return ""
    return "\n".join(part.strip() for part in _BASH_OUTPUT_PATTERN.findall(text) if part.strip())


_CONFIGURATION_COMMAND_PATTERN = compile_lazily(
    r"/(?:model|rename|resume|continue|add-dir|ide|config|theme|effort|mcp|plugin|agents|hooks|memory)\Z"
)
"""Commands that configure the client. Their arguments are not about the work."""

_PROMPT_DELIVERY_REASONS = frozenset({"", "attached", "delivered_as_tool_result"})
"""The reasons in queue records that remove a prompt because the prompt reached the model.

Older clients give no reason. Any other reason means that the prompt was cancelled or blocked by a
hook.
"""

# A queued text with one of these prefixes may be for the client or for this plugin.
_QUEUED_COMMAND_PREFIXES = (
    "/",
    ">",
)


class RecordPosition(NamedTuple):
    """The position of a record: its session's id, and its number in that session, counted from 0.

    ``order`` is the sequence number of the record among all records that were read.
    """

    session_id: str
    record_number: int
    order: int

    def __str__(self) -> str:
        """Return the reference ``<session id>:<record>``."""
        return f"{self.session_id}:{self.record_number}"


class Quote(NamedTuple):
    """A quoted text with its position and the uuid of its record (or ``""``).

    ``is_correction`` means that the user stopped or refused the current work with this text.
    ``text_with_pastes`` is the prompt with its pasted texts, or ``""`` if the prompt contains none.
    """

    text: str
    position: RecordPosition
    uuid: str = ""
    is_correction: bool = False
    text_with_pastes: str = ""

    @property
    def full_text(self) -> str:
        """The text including its pasted texts."""
        return self.text_with_pastes or self.text


class ShellRun(NamedTuple):
    """A shell command that ran.

    ``folder`` is the folder in which the command ran, or ``""`` if it is unknown. ``status`` is the
    exit status, or None if it is unknown. ``has_failed`` is a separate field, because old clients
    report no status for a failed command. ``output`` is the command's output, at the position
    ``result_position``.
    """

    command: str
    position: RecordPosition
    result_position: RecordPosition
    folder: str
    status: int | None
    has_failed: bool
    output: str
    is_background: bool = False


class PendingCall(NamedTuple):
    """A tool call that has no result yet, and the folder in which it runs."""

    tool_name: str
    inputs: Mapping[str, Any]
    position: RecordPosition
    folder: str = ""

    def find_first_text(self, *keys: str) -> str:
        """Return the first of the named inputs that is a non-empty text, or ``""``."""
        return next(
            (value for key in keys if isinstance(value := self.inputs.get(key), str) and value), ""
        )

    def list_paths(self) -> list[str]:
        """Return the paths of the files in the call's inputs."""
        given = self.inputs
        return [
            path for key in _PATH_INPUT_NAMES if (path := given.get(key)) and isinstance(path, str)
        ]


class Refusal(NamedTuple):
    """A call that was refused and did not run. ``quote`` says why.

    If ``is_by_user`` is True, the quote contains the user's words. Otherwise, it contains the text
    that a rule or a hook gave.
    """

    call: PendingCall
    quote: Quote
    is_by_user: bool


class FileChange(NamedTuple):
    """A file that a tool wrote: its path, the folder of the tool call, and the position of the call.

    ``is_new`` means that the file did not exist before. ``is_known_only_from_report`` means that the change is
    known only from a sub-agent's report.
    """

    path: str
    folder: str
    position: RecordPosition
    is_new: bool = False
    is_known_only_from_report: bool = False


class TaskEnding(NamedTuple):
    """The end of a background command. ``status`` is its exit status, or None if it is unknown."""

    task_id: str
    status: int | None
    has_failed: bool


def find_refusal(
    call: PendingCall, record: Record, block: Record, text: str, position: RecordPosition
) -> Refusal | None:
    """Return the refusal of a call by the user or by a rule of the client, or None if there is none.

    A file's contents or a server's error may start with the same words as a refusal. Therefore a
    refusal is recognized only in results that come from the client: in the result of a tool that
    changes files, and in an error of any tool except a server's tool.
    """
    uuid, denial_kind = get_string(record, "uuid"), get_string(record, "toolDenialKind")
    is_from_client = call.tool_name in records.WRITING_TOOLS or (
        records.is_error(block) and not call.tool_name.startswith(SERVER_TOOL_PREFIX)
    )
    if denial_kind == "user-rejected" or (is_from_client and text.startswith(_REJECTION_PREFIXES)):
        words = text.partition("the user said:\n")[2].strip()
        if words.startswith(_CLARIFICATION_REQUEST_PREFIX):
            return None
        return Refusal(call, Quote(words, position, uuid), is_by_user=True)
    if records.is_error(block) and (
        denial_kind not in {"", "interrupted"} or _FORBIDDEN_CALL_PATTERN.match(text)
    ):
        return Refusal(
            call, Quote(text[:MAX_OUTPUT_END_CHARACTERS], position, uuid), is_by_user=False
        )
    return None


def find_chosen_answers(call: PendingCall, details: Record, text: str) -> list[tuple[str, str]]:
    """Return pairs of a question and the chosen answer, or an empty list if the user did not answer.

    Newer clients record the answers in ``details``. Older clients only put them into ``text``. In
    this case, the questions are used to find the answers, because an answer may contain any
    characters, even quotes.
    """
    recorded_answers = records.get_mapping(details, "answers")
    pairs = [
        (question, answer[: len(text)])
        for question, answer in recorded_answers.items()
        if isinstance(answer, str)
    ]
    if pairs or not text.startswith(_USER_ANSWER_PREFIXES):
        return pairs
    search_start = 0
    for row in records.list_objects(call.inputs.get("questions")):
        question = get_string(row, "question")
        question_start = text.find(f'"{question}"', search_start)
        if question and question_start >= 0:
            answer = _CHOSEN_ANSWER_PATTERN.match(text, question_start + len(question) + 2)
        else:
            answer = None
        if answer is not None:
            pairs.append((question, answer[1]))
            search_start = answer.end()
    return pairs


def find_clarified_answers(text: str) -> list[tuple[str, str]]:
    """Return the answers that a user gave before asking to discuss the remaining questions.

    Each answer is preceded by its question.
    """
    if _CLARIFICATION_REQUEST_PREFIX in text:
        return _CLARIFIED_ANSWER_PATTERN.findall(text)
    return []


def make_shell_run(
    call: PendingCall, record: Record, block: Record, text: str, position: RecordPosition
) -> ShellRun | None:
    """Return the outcome of a shell command, or None if the command did not run or its result was trimmed."""
    command = call.find_first_text("command")
    if not command or is_placeholder(command) or text.startswith(_INVALID_CALL_TAG):
        return None
    details = records.tool_details(record)
    has_failed = (
        records.is_error(block)
        or details.get("interrupted") is True
        or text.startswith(INTERRUPTION_PREFIX)
    )
    is_background = records.TASK_FIELD in block or _runs_in_background(details, text)
    match = _EXIT_CODE_PATTERN.match(text)
    if records.EXIT_STATUS_FIELD in block:
        status = _read_recorded_exit_status(block, has_failed=has_failed)
    elif match:
        status = int(match[1])
    elif has_failed or is_background:
        status = None
    else:
        status = 0
    output = _shorten_output(text)
    return ShellRun(
        command,
        call.position,
        position,
        call.folder,
        status,
        has_failed or bool(status),
        output,
        is_background,
    )


def _read_recorded_exit_status(block: Record, *, has_failed: bool) -> int | None:
    """Return the exit status from a converted result of another agent's session, or None if unknown."""
    status = block[records.EXIT_STATUS_FIELD]
    if status is None or (has_failed and not records.parse_positive_count(status)):
        return None
    return records.parse_positive_count(status) if has_failed else 0


INTERRUPTED_EXIT_STATUS = 130  # The exit status of a command that Ctrl-C ended.
_CTRL_C_CHARACTER = "\x03"


def update_polled_run(
    run: ShellRun, poll: PendingCall, block: Record, text: str, position: RecordPosition
) -> ShellRun:
    """Update the run of a command with the output that a later poll shows, and return it.

    The command may already have ended at the time of the poll, even if no exit status is known,
    because some scripts print none. If the session sent Ctrl-C to the command, the command is
    treated as interrupted, unless it ended with status 0.
    """
    status: int | None = None
    if block.get(records.EXIT_STATUS_FIELD) is not None:
        status = records.parse_positive_count(block[records.EXIT_STATUS_FIELD])
    was_sent_ctrl_c = _CTRL_C_CHARACTER in poll.find_first_text(records.KEYBOARD_TEXT_INPUT_NAME)
    if status != 0 and (was_sent_ctrl_c or run.status == INTERRUPTED_EXIT_STATUS):
        status = INTERRUPTED_EXIT_STATUS
    return run._replace(
        result_position=position,
        status=status,
        has_failed=records.is_error(block),
        output=_shorten_output("\n".join(filter(None, (run.output, text)))),
        is_background=records.TASK_FIELD in block,
    )


def _shorten_output(text: str) -> str:
    """Return the text of a result. If the text is long, return only its start and its end.

    If the result was trimmed, return ``""``.
    """
    if is_placeholder(text):
        return ""
    if len(text) > 2 * MAX_OUTPUT_END_CHARACTERS:
        return _keep_start_and_end_of_output(text)
    return text


def _keep_start_and_end_of_output(output: str) -> str:
    """Return the start and the end of a long output, without the incomplete lines next to the cut."""
    head, tail = output[:MAX_OUTPUT_END_CHARACTERS], output[-MAX_OUTPUT_END_CHARACTERS:]
    head_end, tail_start = head.rfind("\n"), tail.find("\n")
    if head_end > 0:
        head = head[:head_end]
    if tail_start >= 0:
        tail = tail[tail_start + 1 :]
    return f"{head}\n{OMITTED_MIDDLE_LINE}\n{tail}"


def find_task_id(record: Record, block: Record, text: str) -> str:
    """Return the task id of a background command, or ``""`` if it is unknown."""
    if task := get_string(block, records.TASK_FIELD):
        return task
    details = records.tool_details(record)
    match = _TASK_ID_PATTERN.search(text[:MAX_OUTPUT_END_CHARACTERS])
    return get_string(details, "backgroundTaskId") or (match[1] if match else "")


def parse_task_ending(text: str) -> TaskEnding | None:
    """Return what a notification of the client says about the end of a background command, or None."""
    if text.startswith(_NOTIFICATION_TAG):
        match = _TASK_NOTIFICATION_PATTERN.search(text[: 2 * MAX_OUTPUT_END_CHARACTERS])
    else:
        match = None
    if match is None:
        return None
    has_succeeded = match[2] == "completed" and int(match[3] or 0) == 0
    return TaskEnding(
        match[1], int(match[3]) if match[3] else 0 if has_succeeded else None, not has_succeeded
    )


def _runs_in_background(details: Record, text: str) -> bool:
    return "backgroundTaskId" in details or _BACKGROUND_MESSAGE_PATTERN.match(text) is not None


_SKILL_FOLDER_PATTERN = compile_lazily(r"Base directory for this skill: (?:[^\n]*/)?([^/\n]{1,80})")
_SUBAGENT_REPORT_PATTERN = compile_lazily(r"<result>(.*?)</result>", re.DOTALL)


def find_skill_name(text: str) -> str:
    """Return the name of the skill whose text the client loaded, or ``""`` if the text is not a skill's."""
    match = _SKILL_FOLDER_PATTERN.match(text)
    if match:
        return match[1].strip()
    return ""


def find_report(text: str) -> str:
    """Return the report of a background sub-agent in a notification, or ``""`` if there is none."""
    match = _SUBAGENT_REPORT_PATTERN.search(text)
    if match:
        return match[1].strip()
    return ""


class Todo(NamedTuple):
    """A task in the session's todo list, with its position and the client's name for its status."""

    text: str
    status: str
    position: RecordPosition
    last_update_order: int
    """The sequence number of the record that set this todo's status last."""


class TodoList:
    """The todo lists and tasks of a lineage. The numbers of tasks start at 1 again in each session."""

    def __init__(self) -> None:
        self.was_used = False
        """Whether any of the sessions wrote a todo list or a task."""
        self._todos: list[Todo] = []
        self._tasks: dict[tuple[str, str], Todo] = {}
        self._latest: dict[str, tuple[str, str]] = {}

    def replace_todos(self, call: PendingCall) -> None:
        """Replace the todo list with the list that a call contains."""
        self.was_used = True
        self._todos = [
            Todo(
                get_string(row, "content"),
                get_string(row, "status"),
                call.position,
                call.position.order,
            )
            for row in list_objects(call.inputs.get("todos"))
            if get_string(row, "content")
        ]

    def create_task(self, call: PendingCall, answer: str) -> None:
        """Add a task. ``answer`` is the call's result, which contains the task's number."""
        self.was_used = True
        number = _TASK_NUMBER_PATTERN.search(answer)
        key = call.position.session_id, number[1] if number else str(len(self._tasks) + 1)
        text = call.find_first_text("subject", "description")
        self._tasks[key] = Todo(text, "pending", call.position, call.position.order)
        self._latest[key[1]] = key

    def update_task(self, call: PendingCall) -> None:
        """Change the status or the subject of the task whose number the call names.

        If the session itself has no task with this number, change the ancestors' task with this
        number. If there are several, change the latest.
        """
        number = call.inputs.get("taskId")
        own = call.position.session_id, str(number) if isinstance(number, (str, int)) else ""
        key = own if own in self._tasks else self._latest.get(own[1])
        if not key:
            return
        task = self._tasks[key]
        if subject := call.find_first_text("subject"):
            task = task._replace(text=subject)
        if status := call.find_first_text("status"):
            task = task._replace(status=status, last_update_order=call.position.order)
        self._tasks[key] = task

    def list_open_todos(self) -> list[Todo]:
        """Return the unfinished todos in the order in which they were written."""
        rows = (*self._tasks.values(), *self._todos)
        todos = []
        for row in rows:
            if row.text and row.status not in _DONE_STATUSES:
                todos.append(row)
        return todos

    @property
    def last_update_order(self) -> int:
        """The sequence number of the record that last changed a status, or 0 if there are no todos."""
        rows = (*self._tasks.values(), *self._todos)
        return max((row.last_update_order for row in rows), default=0)

    def is_done_after(self, record_order: int) -> bool:
        """Check whether all todos written after the record with this sequence number are done.

        If no todo was written after that record, return False.
        """
        rows = []
        for row in (*self._tasks.values(), *self._todos):
            if row.position.order > record_order:
                rows.append(row)
        return bool(rows) and all(row.status in _DONE_STATUSES for row in rows)


def _is_command_for_client_or_plugin(queued_prompt: Quote) -> bool:
    """Check whether a queued prompt is a command for the client or for this plugin.

    A prompt without a text is such a command, because newer clients do not record a queued
    command's text.
    """
    return not queued_prompt.text or queued_prompt.text.lstrip().startswith(
        _QUEUED_COMMAND_PREFIXES
    )


class Prompts:
    """The prompts of a lineage, oldest first."""

    def __init__(self) -> None:
        self.quotes: list[Quote] = []
        self._queue: deque[Quote] = deque()
        # The command that the last queue record removed from the queue, or None if it removed no
        # command.
        self._dequeued_command: Quote | None = None
        self._is_command_running = False

    def add_prompt(self, quote: Quote) -> bool:
        """Add a prompt. Return whether it was added.

        A text is not added if it is not a prompt, or if the same prompt was already added from the
        queue.
        """
        text, full_text = keep_typed_text(quote.text), mark_pastes(quote.text)
        if (
            text.startswith(_INSERTED_TEXT_PREFIXES)
            or _CLIENT_COMMAND_PATTERN.match(text)
            or _PLUGIN_TRIGGER_PATTERN.match(text)
        ):
            return False
        self._restore_command_if_prompt_was_dequeued(quote.text)
        if not full_text or any(
            not prompt.uuid and prompt.full_text == full_text
            for prompt in self.quotes[-MAX_COMPARED_PROMPTS:]
        ):
            return False
        self.quotes.append(
            quote._replace(text=text, text_with_pastes="" if full_text == text else full_text)
        )
        return True

    def add_quote_of_user_command(self, quote: Quote) -> None:
        """Add words that the user wrote outside a prompt, for example a command's arguments."""
        self.quotes.append(quote)

    def append_shell_output(self, output: str, position: RecordPosition) -> None:
        """Append the output of a command that the user ran with ``!`` to the quote of that command.

        If the last quote is not that of a command, nothing is appended.
        """
        last_quote = self.quotes[-1] if self.quotes else None
        if (
            last_quote is not None
            and last_quote.text.startswith("! ")
            and last_quote.position.session_id == position.session_id
        ):
            self.quotes[-1] = last_quote._replace(
                text_with_pastes=f"{last_quote.full_text}\n[it printed:]\n{output}"
            )

    def process_queue_record(self, record: Record, position: RecordPosition) -> Quote | None:
        """Process a queue record. If it passed a queued prompt to the model, return the prompt, else None."""
        operation, content = get_string(record, "operation"), get_string(record, "content")
        self._is_command_running = False
        if operation == "enqueue":
            self._queue.append(Quote(content, position))
        elif operation == "popAll":
            self._queue.clear()
        elif operation in {"dequeue", "remove"} and self._queue:
            queued_prompt = self._find_queued_prompt(content, operation)
            self._queue.remove(queued_prompt)
            self._is_command_running = _is_command_for_client_or_plugin(queued_prompt)
            self._dequeued_command = None
            if self._is_command_running:
                self._dequeued_command = queued_prompt
            was_delivered = (
                operation == "remove" and get_string(record, "reason") in _PROMPT_DELIVERY_REASONS
            )
            if was_delivered and self.add_prompt(queued_prompt):
                return queued_prompt
        return None

    def _find_queued_prompt(self, content: str, operation: str) -> Quote:
        """Return the queued prompt to which a record about a removal refers.

        A ``dequeue`` record without text removes the first command in the queue. Prompts are queued
        when their hooks finish, so prompts that were typed later may precede that command.
        """
        for queued_prompt in islice(self._queue, MAX_COMPARED_QUEUED_PROMPTS):
            if content:
                is_match = queued_prompt.text == content
            else:
                is_match = operation == "dequeue" and _is_command_for_client_or_plugin(
                    queued_prompt
                )
            if is_match:
                return queued_prompt
        return self._queue[0]

    def _restore_command_if_prompt_was_dequeued(self, prompt: str) -> None:
        """Put the command that was removed last back into the queue if the client removed ``prompt`` instead.

        The client did so if it sends ``prompt`` although the prompt is still in this queue.
        """
        command = self._dequeued_command
        if command is None:
            return
        for entry in islice(self._queue, MAX_COMPARED_QUEUED_PROMPTS):
            if entry.text == prompt:
                self._queue.remove(entry)
                self._queue.appendleft(command)
                self._dequeued_command = None
                self._is_command_running = False
                return

    def remove_prompts_on_abandoned_branches(
        self, is_quote_on_live_branch: Callable[[Quote], bool]
    ) -> bool:
        """Remove the prompts for which ``is_quote_on_live_branch`` returns False, and add the queued prompts.

        Return whether a queued prompt was added. If the last queue record removed a command, no
        prompt is added, because the client handles the queued prompts only after that command. It
        then sends them, or puts them into the input box of the session that the command opens.
        """
        self.quotes = [quote for quote in self.quotes if is_quote_on_live_branch(quote)]
        if self._is_command_running:
            self._queue.clear()
            self._is_command_running = False
        self._dequeued_command = None
        remaining = []
        for quote in self._queue:
            if not _is_command_for_client_or_plugin(quote):
                remaining.append(quote)
        self._queue.clear()
        return sum(self.add_prompt(quote) for quote in remaining) > 0
