"""The facts of a digest, each with its position: words, commands, calls.

A queue record reports what happened to a prompt that was typed while the model was busy. It was
sent as a prompt of its own (with a record), passed to the model between two calls (clients up to
2.1.112 write no other record of it), or withdrawn for editing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from resume_hooks.reading.digest.prose import typed_text, with_pastes
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.transcripts import records
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import FILE_KEYS, Record, objects, string

_PATHS = (*FILE_KEYS, "path", "destination", "relative_path", "target_file", "filename")
TELLING = 2_000  # the number of characters at each end of an output that are inspected
MIDDLE_LEFT_OUT = "[... the middle of the output is left out ...]"
"""The row that replaces the middle of a long output."""
_EXIT = compile_lazily(r"\s*(?:Error: )?Exit code (\d{1,9})\b")
_BACKGROUND = compile_lazily(
    r"Command (?:running in background|did not complete within|was manually backgrounded)"
)
_TASK = compile_lazily(r"\bID: ([\w-]{1,40})")
_NOTIFICATION = "<task-notification"

_NOTIFIED = compile_lazily(
    r"<task-id>([\w-]{1,40})</task-id>.*?<status>(completed|failed|killed)</status>(?:.*?\(exit code (\d{1,9})\))?",
    re.DOTALL,
)

SERVER_TOOL = "mcp__"  # the prefix of a server tool's name
_ANSWERED = (
    "User has answered your questions",
    "The user answered",
    "Your questions have been answered",
)
_CHOSEN = compile_lazily(r'\s*=\s*"((?:[^"\\]|\\.)*)(?:"|\Z)', re.DOTALL)
_REJECTED = (
    f"{records.REJECTION_BEGINNING} proceed with this tool use",
    f"{records.REJECTION_BEGINNING} take this action right now",
)

EMPTY_ANSWERS = frozenset({"[]", "{}", "null"})
"""The JSON that a program prints if its result is empty."""

_CLARIFY = "The user wants to clarify these questions."
"""The client's text if the user wants to discuss the questions instead of answering them."""

_CLARIFIED = compile_lazily(
    r'^[ \t]*- "([^\n]{1,2000})"\n[ \t]*Answer: ([^\n]{1,2000})', re.MULTILINE
)

_NOT_RUN = compile_lazily(
    r"(?:Error: )?PreToolUse:|Hook PreToolUse:|Permission to use |Claude requested permissions? to |"
    r"\w{1,40} operation blocked by hook|This command requires approval|"
    r"Permission for this action (?:was|has been) denied"
)
"""The start of the result of a call that a rule or a hook forbade.

Recent clients also mark the record.
"""

_MISFIT = "<tool_use_error>"  # the start of the result of a call that the client could not execute
_NUMBER = compile_lazily(r"#(\w{1,20})")
_DONE = frozenset({"completed", "deleted", "cancelled"})

RECENT = 4  # the number of latest prompts that are compared with a queued prompt
WAITING = 50  # the maximum number of queued prompts that are compared by their text

INTERRUPTION = "[Request interrupted"
"""How the client's note of an interruption by the user begins."""

_INSERTED = (
    "<channel ",
    "<task-notification",
    "<agent-notification",
    "<agent-message",
    "<teammate-message",
    "<local-command",
    "<bash-",
    "<command-name>",
    "<codex_internal_context",
    INTERRUPTION,
    "Operation stopped by hook",
    "Stop hook feedback:",
    "This session is being continued",
    "Another Claude session sent",
    "Unknown command: /",  # 2.1.112
    "/resume-hooks:",  # the prompt is for this program, not for the model
)
"""The prefixes of texts that are recorded as prompts but were not typed for the model."""

_TRIGGER = compile_lazily(r">[a-z]+(?:-[a-z]+)*(?!\S)")
"""The other form of our triggers. With `-p`, clients record blocked prompts like all other
prompts."""

_FOR_CLIENT = compile_lazily(
    r"/(?:clear|compact|model|resume|continue|exit|quit|login|logout|help|cost|usage|status|config|doctor|memory|mcp|hooks|"
    r"permissions|context|export|rewind|branch|rename|plugin|agents|theme|ide|add-dir)(?!\S)"
)
"""Commands that the client executes itself.

Some versions record them like commands for the model.
"""

_COMMAND_NAME = compile_lazily(r"\A\s*<command-name>(/[^<\s]{1,80})</command-name>")
_COMMAND_ARGS = compile_lazily(r"<command-args>(.*?)</command-args>", re.DOTALL)
_BASH_INPUT = compile_lazily(r"\A\s*<bash-input>(.*?)</bash-input>", re.DOTALL)
_BASH_OUTPUT = compile_lazily(r"<bash-(?:stdout|stderr)>(.*?)</bash-(?:stdout|stderr)>", re.DOTALL)


def words_of_command(text: str) -> str:
    """Return the words about the work in a client command such as ``/compact <text>``, or ``""`` if there are none."""
    name, given = _COMMAND_NAME.match(text), _COMMAND_ARGS.search(text)
    words = given[1].strip() if given else ""
    if (
        name is None
        or len(words.split()) < records.MIN_PLAN_WORDS
        or name[1].startswith("/resume-hooks:")
    ):
        return ""
    if _SETS_CLIENT.match(name[1]) is None:
        return f"{name[1]} {words}"
    return ""


def shell_command_of_user(text: str) -> str:
    """Return the shell command that the user ran with ``!``, or ``""`` for any other text."""
    match = _BASH_INPUT.match(text)
    if match and match[1].strip():
        return f"! {match[1].strip()}"
    return ""


def shell_output_of_user(text: str) -> str:
    """Return the output of a command that the user ran with ``!``, or ``""`` for any other text."""
    if not text.lstrip().startswith(("<bash-stdout>", "<bash-stderr>")):
        return ""
    return "\n".join(part.strip() for part in _BASH_OUTPUT.findall(text) if part.strip())


_SETS_CLIENT = compile_lazily(
    r"/(?:model|rename|resume|continue|add-dir|ide|config|theme|effort|mcp|plugin|agents|hooks|memory)\Z"
)
"""Commands that configure the client, so their arguments are not about the work."""

_HANDED = frozenset({"", "attached", "delivered_as_tool_result"})
"""The reasons in queue records of prompts that reached the model.

Older clients give no reason. With any other reason, the prompt was cancelled or blocked by a hook.
"""

_FOR_US = ("/", ">")  # the prefixes of queued texts that may be for the client or for this program


class RecordPlace(NamedTuple):
    """A record's session id, its line counted from 0, and its ``order`` among all records that were read."""

    session_id: str
    number: int
    order: int

    def __str__(self) -> str:
        """Format the position as a reference."""
        return f"{self.session_id}:{self.number}"


class Quote(NamedTuple):
    """A text, its position, and the uuid of its record, or ``""``.

    ``correcting`` means that the user stopped or refused the current work. ``shown`` is a prompt
    with its pasted texts, or ``""`` if there are none.
    """

    text: str
    place: RecordPlace
    uuid: str = ""
    correcting: bool = False
    shown: str = ""

    @property
    def full(self) -> str:
        """Return the text with its pasted texts."""
        return self.shown or self.text


class ShellRun(NamedTuple):
    """A shell command that ran.

    ``folder`` is the folder in which the command ran, or ``""`` if it is unknown. ``status`` is its
    exit status, or None if it is unknown. ``failed`` is a separate field, because old clients
    report no status for a failed command. ``answered`` is the position of its ``output``.
    """

    command: str
    place: RecordPlace
    answered: RecordPlace
    folder: str
    status: int | None
    failed: bool
    output: str
    background: bool = False


class PendingCall(NamedTuple):
    """A tool call that has no result yet, and the call's folder."""

    tool: str
    given: Mapping[str, Any]
    place: RecordPlace
    folder: str = ""

    def first_text(self, *keys: str) -> str:
        """Return the first of some inputs that is a non-empty text, or ``""``."""
        return next(
            (value for key in keys if isinstance(value := self.given.get(key), str) and value), ""
        )

    def paths(self) -> list[str]:
        """Return the files that the call names."""
        given = self.given
        return [path for key in _PATHS if (path := given.get(key)) and isinstance(path, str)]


class Refusal(NamedTuple):
    """A call that was not executed, with the words of the user or, if ``by_user`` is false, of a rule."""

    call: PendingCall
    said: Quote
    by_user: bool


class FileChange(NamedTuple):
    """A file that a tool wrote: its path, the folder of the call, and the position of the call.

    ``is_new`` means that the file did not exist before. ``is_reported`` means that only a
    sub-agent's report mentions it.
    """

    path: str
    folder: str
    place: RecordPlace
    is_new: bool = False
    is_reported: bool = False


class TaskEnding(NamedTuple):
    """The end of a background command: its ``task``, and its exit status if that is known."""

    task: str
    status: int | None
    failed: bool


def refusal_in_answer(
    call: PendingCall, record: Record, block: Record, text: str, place: RecordPlace
) -> Refusal | None:
    """Return the refusal by the user, or by a rule of the client, that a result contains.

    Return None for any other result.

    The contents of a file or a server's error can begin like a refusal. Older clients mark a
    refusal only as an error, and a server may use the same words. The result of a file change
    always comes from the client.
    """
    uuid, denied = string(record, "uuid"), string(record, "toolDenialKind")
    is_clients = call.tool in records.WRITING_TOOLS or (
        records.is_error(block) and not call.tool.startswith(SERVER_TOOL)
    )
    if denied == "user-rejected" or (is_clients and text.startswith(_REJECTED)):
        said = text.partition("the user said:\n")[2].strip()
        if said.startswith(_CLARIFY):
            return None
        return Refusal(call, Quote(said, place, uuid), by_user=True)
    if records.is_error(block) and (denied not in {"", "interrupted"} or _NOT_RUN.match(text)):
        return Refusal(call, Quote(text[:TELLING], place, uuid), by_user=False)
    return None


def chosen_answers(call: PendingCall, details: Record, text: str) -> list[tuple[str, str]]:
    """Return the questions of a call with the chosen answers, or an empty list if the user did not answer.

    Clients record the answers in ``details``. For older clients, ``text`` is searched for the
    questions' own words, which may contain anything, including quotes.
    """
    noted = records.mapping(details, "answers")
    pairs = [
        (question, answer[: len(text)])
        for question, answer in noted.items()
        if isinstance(answer, str)
    ]
    if pairs or not text.startswith(_ANSWERED):
        return pairs
    place = 0
    for row in records.objects(call.given.get("questions")):
        question = string(row, "question")
        asked = text.find(f'"{question}"', place)
        if question and asked >= 0:
            answer = _CHOSEN.match(text, asked + len(question) + 2)
        else:
            answer = None
        if answer is not None:
            pairs.append((question, answer[1]))
            place = answer.end()
    return pairs


def clarified_answers(text: str) -> list[tuple[str, str]]:
    """Return the questions that a user answered before asking to discuss the others."""
    if _CLARIFY in text:
        return _CLARIFIED.findall(text)
    return []


def make_run(
    call: PendingCall, record: Record, block: Record, text: str, place: RecordPlace
) -> ShellRun | None:
    """Return the outcome of a shell command, or None if it did not run or its result was trimmed."""
    command = call.first_text("command")
    if not command or is_placeholder(command) or text.startswith(_MISFIT):
        return None
    more = records.tool_details(record)
    failed = (
        records.is_error(block) or more.get("interrupted") is True or text.startswith(INTERRUPTION)
    )
    background = records.TASK_FIELD in block or _runs_in_background(more, text)
    match = _EXIT.match(text)
    if records.EXIT_STATUS_FIELD in block:
        status = _recorded_status(block, failed=failed)
    elif match:
        status = int(match[1])
    elif failed or background:
        status = None
    else:
        status = 0
    output = _shorten_output(text)
    return ShellRun(
        command, call.place, place, call.folder, status, failed or bool(status), output, background
    )


def _recorded_status(block: Record, *, failed: bool) -> int | None:
    """Return the exit status on a converted result, or None if it is unknown."""
    status = block[records.EXIT_STATUS_FIELD]
    if status is None or (failed and not records.positive_count(status)):
        return None
    return records.positive_count(status) if failed else 0


def update_polled_run(run: ShellRun, block: Record, text: str, place: RecordPlace) -> ShellRun:
    """Return a running command after a poll, whose result may be the end of the command.

    Some scripts print neither an exit status nor that the command still runs.
    """
    status: int | None = None
    if block.get(records.EXIT_STATUS_FIELD) is not None:
        status = records.positive_count(block[records.EXIT_STATUS_FIELD])
    return run._replace(
        answered=place,
        status=status,
        failed=records.is_error(block),
        output=_shorten_output("\n".join(filter(None, (run.output, text)))),
        background=records.TASK_FIELD in block,
    )


def _shorten_output(text: str) -> str:
    """Return the output of a command from the text of its result: the ends of a long one."""
    if is_placeholder(text):
        return ""
    if len(text) > 2 * TELLING:
        return _keep_output_ends(text)
    return text


def _keep_output_ends(output: str) -> str:
    """Return the start and the end of a long output, without partial rows."""
    head, tail = output[:TELLING], output[-TELLING:]
    last_end, first_end = head.rfind("\n"), tail.find("\n")
    if last_end > 0:
        head = head[:last_end]
    if first_end >= 0:
        tail = tail[first_end + 1 :]
    return f"{head}\n{MIDDLE_LEFT_OUT}\n{tail}"


def find_task_id(record: Record, block: Record, text: str) -> str:
    """Return the task id of a background command, or ``""`` if it is unknown."""
    if task := string(block, records.TASK_FIELD):
        return task
    more = records.tool_details(record)
    match = _TASK.search(text[:TELLING])
    return string(more, "backgroundTaskId") or (match[1] if match else "")


def task_ending(text: str) -> TaskEnding | None:
    """Return the end of a background command, as the client's notification reports it."""
    if text.startswith(_NOTIFICATION):
        match = _NOTIFIED.search(text[: 2 * TELLING])
    else:
        match = None
    if match is None:
        return None
    worked = match[2] == "completed" and int(match[3] or 0) == 0
    return TaskEnding(match[1], int(match[3]) if match[3] else 0 if worked else None, not worked)


def _runs_in_background(more: Record, text: str) -> bool:
    return "backgroundTaskId" in more or _BACKGROUND.match(text) is not None


_SKILL = compile_lazily(r"Base directory for this skill: (?:[^\n]*/)?([^/\n]{1,80})")
_REPORT = compile_lazily(r"<result>(.*?)</result>", re.DOTALL)


def skill_loaded(text: str) -> str:
    """Return the name of the skill whose text the client loaded, or ``""`` for any other text."""
    match = _SKILL.match(text)
    if match:
        return match[1].strip()
    return ""


def find_report(text: str) -> str:
    """Return a background sub-agent's report from the client's notification, or ``""`` for any other text."""
    match = _REPORT.search(text)
    if match:
        return match[1].strip()
    return ""


class Todo(NamedTuple):
    """A task, its status in the client's words, and its position."""

    text: str
    status: str
    place: RecordPlace
    updated_at: int
    """The order of the record that last set its status."""


class OpenList:
    """The todos and tasks of a lineage. Tasks are numbered separately in each session."""

    def __init__(self) -> None:
        self.used = False
        """Whether a todo list or task was ever written."""
        self._todos: list[Todo] = []
        self._tasks: dict[tuple[str, str], Todo] = {}
        self._latest: dict[str, tuple[str, str]] = {}

    def write_todos(self, call: PendingCall) -> None:
        """Replace the todo list by the list that a call contains."""
        self.used = True
        self._todos = [
            Todo(string(row, "content"), string(row, "status"), call.place, call.place.order)
            for row in objects(call.given.get("todos"))
            if string(row, "content")
        ]

    def create_task(self, call: PendingCall, answer: str) -> None:
        """Add a task. Its number is in the result."""
        self.used = True
        number = _NUMBER.search(answer)
        key = call.place.session_id, number[1] if number else str(len(self._tasks) + 1)
        text = call.first_text("subject", "description")
        self._tasks[key] = Todo(text, "pending", call.place, call.place.order)
        self._latest[key[1]] = key

    def update_task(self, call: PendingCall) -> None:
        """Change the status or the subject of the task with this number.

        If the session has no such task, its latest ancestor's task is changed.
        """
        number = call.given.get("taskId")
        own = call.place.session_id, str(number) if isinstance(number, (str, int)) else ""
        key = own if own in self._tasks else self._latest.get(own[1])
        if not key:
            return
        task = self._tasks[key]
        if subject := call.first_text("subject"):
            task = task._replace(text=subject)
        if status := call.first_text("status"):
            task = task._replace(status=status, updated_at=call.place.order)
        self._tasks[key] = task

    def open_todos(self) -> list[Todo]:
        """Return the unfinished todos in the order in which they were written."""
        rows = (*self._tasks.values(), *self._todos)
        todos = []
        for row in rows:
            if row.text and row.status not in _DONE:
                todos.append(row)
        return todos

    @property
    def updated_at(self) -> int:
        """Return the order of the record that last changed any status, or 0 if there is no list."""
        rows = (*self._tasks.values(), *self._todos)
        return max((row.updated_at for row in rows), default=0)

    def is_done_since(self, order: int) -> bool:
        """Check whether a list was written after a record and everything in it is done."""
        rows = []
        for row in (*self._tasks.values(), *self._todos):
            if row.place.order > order:
                rows.append(row)
        return bool(rows) and all(row.status in _DONE for row in rows)


def _is_for_client(entry: Quote) -> bool:
    """Check whether a queued entry is for the client or for this program. Newer clients omit a command's text."""
    return not entry.text or entry.text.lstrip().startswith(_FOR_US)


class Prompts:
    """The prompts of a lineage, oldest first."""

    def __init__(self) -> None:
        self.said: list[Quote] = []
        self._queue: deque[Quote] = deque()
        # The command that the last record took out of the queue, as far as is known.
        self._dequeued_command: Quote | None = None
        self._is_command_running = False

    def take_prompt(self, said: Quote) -> bool:
        """Process a prompt. Return False if the text is not a prompt, or if it is already known from the queue."""
        text, shown = typed_text(said.text), with_pastes(said.text)
        if text.startswith(_INSERTED) or _FOR_CLIENT.match(text) or _TRIGGER.match(text):
            return False
        self._return_command(said.text)
        if not shown or any(
            not known.uuid and known.full == shown for known in self.said[-RECENT:]
        ):
            return False
        self.said.append(said._replace(text=text, shown="" if shown == text else shown))
        return True

    def take_words(self, said: Quote) -> None:
        """Process words of the user that are not a prompt: a command's arguments, or the output of the user's shell."""
        self.said.append(said)

    def extend_last(self, more: str, place: RecordPlace) -> None:
        """Add the output of the user's own command to the command, if there was no message in between."""
        last = self.said[-1] if self.said else None
        if (
            last is not None
            and last.text.startswith("! ")
            and last.place.session_id == place.session_id
        ):
            self.said[-1] = last._replace(shown=f"{last.full}\n[it printed:]\n{more}")

    def take_queue_record(self, record: Record, place: RecordPlace) -> Quote | None:
        """Process a queue record. Return the prompt that it passed to the model, or None."""
        operation, content = string(record, "operation"), string(record, "content")
        self._is_command_running = False
        if operation == "enqueue":
            self._queue.append(Quote(content, place))
        elif operation == "popAll":
            self._queue.clear()
        elif operation in {"dequeue", "remove"} and self._queue:
            entry = self._find_entry(content, operation)
            self._queue.remove(entry)
            self._is_command_running = _is_for_client(entry)
            self._dequeued_command = None
            if self._is_command_running:
                self._dequeued_command = entry
            handed = operation == "remove" and string(record, "reason") in _HANDED
            if handed and self.take_prompt(entry):
                return entry
        return None

    def _find_entry(self, content: str, operation: str) -> Quote:
        """Return the entry that a record takes out of the queue.

        A ``dequeue`` record without a text takes the first command. The client records the entries
        in the order in which its hooks finish, so a command can follow prompts that it precedes.
        """
        for entry in islice(self._queue, WAITING):
            if content:
                is_match = entry.text == content
            else:
                is_match = operation == "dequeue" and _is_for_client(entry)
            if is_match:
                return entry
        return self._queue[0]

    def _return_command(self, prompt: str) -> None:
        """Return the last command to the queue if the client sent a queued prompt instead of it."""
        command = self._dequeued_command
        if command is None:
            return
        for entry in islice(self._queue, WAITING):
            if entry.text == prompt:
                self._queue.remove(entry)
                self._queue.appendleft(command)
                self._dequeued_command = None
                self._is_command_running = False
                return

    def end_file(self, counts: Callable[[Quote], bool]) -> bool:
        """Keep only the prompts that ``counts`` accepts.

        Return whether a queued prompt is now the latest. A prompt behind the command that last left
        the queue does not count: the client sends it after the command, or the session that the
        command opens has it in its input box.
        """
        self.said = [said for said in self.said if counts(said)]
        if self._is_command_running:
            self._queue.clear()
            self._is_command_running = False
        self._dequeued_command = None
        left = []
        for said in self._queue:
            if not _is_for_client(said):
                left.append(said)
        self._queue.clear()
        return sum(self.take_prompt(said) for said in left) > 0
