"""What a digest is made of, gathered in one pass over the files of a lineage, oldest first.

Every fact keeps its place, the session and the line that it was found in. What a child copied of its parent is
passed over: it was found there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from resume_hooks import lineage_block, records
from resume_hooks.digest.prose import typed
from resume_hooks.digest.skim import Answer
from resume_hooks.records import FILE_KEYS, Record, string

TELLING = 2_000
"""Characters at each end of a command's output that are looked at."""

ANSWERS = 8_000
"""Characters of a user's answers to questions."""

_EXIT = re.compile(r"\A\s*(?:Error: )?Exit code (\d+)")
_ANSWERED = ("User has answered your questions", "The user answered", "Your questions have been answered")
_APPROVED = "User has approved your plan"
_INSERTED = (
    "<task-notification",
    "<agent-",
    "<system-",
    "<teammate-",
    "<local-command",
    "<bash-",
    "<command-name>",
    "This session is being continued",
    "Another Claude session sent",
)
_PAIR = re.compile(r'"((?:[^"\\]|\\.)*)"\s*=\s*"((?:[^"\\]|\\.)*)"')
_WRITERS = frozenset({"Edit", "Write", "MultiEdit", "NotebookEdit", "Update"})
_TEXT_MATTERS = frozenset({"Bash", "AskUserQuestion", "ExitPlanMode", "TaskCreate"})
_READERS = frozenset({"Read", "NotebookRead"})
_FOREIGN_WRITER = re.compile(
    r"(?:write|edit|create|move|rename|delete|remove|replace|insert|patch).*file|file.*(?:write|edit)", re.IGNORECASE
)
_PATHS = (*FILE_KEYS, "path", "destination", "relative_path", "target_file", "filename")


class Place(NamedTuple):
    """A record: the session's id, the 0-based line, and which in ``order`` it was of all that were read."""

    session_id: str
    number: int
    order: int

    def __str__(self) -> str:
        """As a reference."""
        return f"{self.session_id}:{self.number}"


class Said(NamedTuple):
    """A text and where it was said. ``correcting``: by a user who stopped or refused what was going on."""

    text: str
    place: Place
    correcting: bool = False
    uuid: str = ""


class Run(NamedTuple):
    """A shell command that ran: how it ended (exit status, 0 where nothing else was told), and what it printed."""

    command: str
    place: Place
    status: int
    output: str
    waiting: bool = False

    @property
    def failed(self) -> bool:
        """Whether it ended in an error."""
        return self.status != 0


class Call(NamedTuple):
    """A tool call that waits for its answer."""

    tool: str
    given: Mapping[str, Any]
    place: Place

    def paths(self) -> list[str]:
        """The files that it names."""
        return [path for key in _PATHS if isinstance(path := self.given.get(key), str) and path]


class Story:
    """The facts of a lineage. ``cwd`` is the folder that paths are told from, the last session's."""

    def __init__(self) -> None:
        self.prompts: list[Said] = []
        self.said: list[Said] = []
        self.closing: list[Said] = []
        """What the assistant said last before each prompt."""
        self.answers: list[Said] = []
        self.refusals: list[tuple[Call, Said]] = []
        self.runs: list[Run] = []
        self.changed: dict[str, list[Place]] = {}
        self.looked_at: dict[str, Place] = {}
        self.plans: list[Said] = []
        self.links: dict[str, Place] = {}
        self.summaries: list[Place] = []
        self.questions: list[Said] = []
        self.todos: list[tuple[str, str, Place]] = []
        """The open list as (what, status, where): the last that was written."""
        self.tasks: dict[str, tuple[str, str, Place]] = {}
        self._open: dict[str, Call] = {}
        self._seen: set[str] = set()
        self._parents: dict[str, str] = {}
        self._leaf = ""
        self._last_said: Said | None = None
        self._order = 0

    def end_file(self) -> None:
        """A file was read to its end: prompts on branches that were abandoned in it are taken out again."""
        self._open.clear()
        live, uuid = set(), self._leaf
        while uuid and uuid not in live:
            live.add(uuid)
            uuid = self._parents.get(uuid, "")
        # Where the way from the leaf upward is broken, nobody can tell what was abandoned.
        if self._leaf and self._whole(live):
            self.prompts = [said for said in self.prompts if said.uuid not in self._parents or said.uuid in live]
        self._parents.clear()
        self._leaf = ""

    def _whole(self, live: set[str]) -> bool:
        return any(not self._parents.get(uuid, "?") for uuid in live)

    def take(self, record: Record, session_id: str, number: int) -> None:
        """Take in one record, the 0-based line ``number`` of a session."""
        kind = record.get("type")
        handler = _HANDLERS.get(kind) if isinstance(kind, str) else None
        if record.get("isSidechain") is True or self._is_copy(record) or handler is None:
            return
        self._order += 1
        handler(self, record, Place(session_id, number, self._order))

    def take_answer(self, answer: Answer, session_id: str, number: int) -> bool:
        """Take in an answer by its call alone; False where its text matters too."""
        call = self._open.get(answer.call)
        if call is not None and call.tool in _TEXT_MATTERS:
            return False
        if not self._is_known(answer.uuid, answer.parent) and call is not None:
            del self._open[answer.call]
            self._order += 1
            self._worked(call, "", Place(session_id, number, self._order))
        return True

    def _is_copy(self, record: Record) -> bool:
        uuid = record.get("uuid")
        if not isinstance(uuid, str):
            return False
        return self._is_known(uuid, string(record, "parentUuid") or string(record, "logicalParentUuid"))

    def _is_known(self, uuid: str, parent: str) -> bool:
        """Whether a child only copied a record of what was read before; if not, its link is noted."""
        if uuid in self._seen:
            return True
        self._seen.add(uuid)
        self._parents[uuid] = parent
        self._leaf = uuid
        return False

    def _linked(self, record: Record, place: Place) -> None:
        if url := string(record, "prUrl"):
            self.links[url] = place

    def _enqueued(self, record: Record, place: Place) -> None:
        if record.get("operation") == "enqueue":
            self._typed(string(record, "content"), place)

    def _assistant(self, record: Record, place: Place) -> None:
        if not records.model(record) and not records.counted_tokens(record)[1]:
            return  # the client's own words, or our card
        for block in records.blocks(record):
            kind = block.get("type")
            if kind == "text":
                if text := string(block, "text").strip():
                    self._last_said = Said(text, place)
                    self.said.append(self._last_said)
            elif kind == "tool_use":
                given = block.get("input")
                self._open[string(block, "id")] = call = Call(
                    string(block, "name"), given if isinstance(given, dict) else {}, place
                )
                if call.tool == "TodoWrite":
                    self._todos(call)
                elif call.tool == "AskUserQuestion":
                    self.questions += [Said(q, place) for q in _questions(call.given)]

    def _user(self, record: Record, place: Place) -> None:
        if record.get("isCompactSummary") is True:
            if not records.text(record).startswith(lineage_block.OPENING):  # else it is the opening of a child of ours
                self.summaries.append(place)
            return
        content = records.message(record).get("content")
        if isinstance(content, list):
            for block in content:
                if isinstance(block, dict) and block.get("type") == "tool_result":
                    self._result(record, block, place)
        plan = record.get("planContent")
        if isinstance(plan, str) and plan.strip():
            self.plans.append(Said(plan, place))
        if records.is_prompt(record):
            self._typed(records.prompt_text(record), place, uuid=string(record, "uuid"))

    def _typed(self, text: str, place: Place, *, correcting: bool = False, uuid: str = "") -> None:
        text = typed(text)
        if not text or text.startswith(_INSERTED) or text.startswith("[Request interrupted"):
            return
        if any(said.text == text for said in self.prompts[-4:]):
            return  # queued first, then sent
        if self._last_said is not None:
            self.closing.append(self._last_said)
            self._last_said = None
        self.questions.clear()
        self.prompts.append(Said(text, place, correcting, uuid))

    def _queued(self, record: Record, place: Place) -> None:
        found = record.get("attachment")
        if isinstance(found, dict) and found.get("type") == "queued_command":
            prompt = found.get("prompt")
            self._typed(prompt if isinstance(prompt, str) else "", place)

    def _result(self, record: Record, block: Record, place: Place) -> None:
        call = self._open.pop(string(block, "tool_use_id"), None)
        if call is None:
            return
        text = _text(block.get("content"))
        failed = block.get("is_error") is True
        if failed and text.startswith(records.REJECTION):
            self._refused(call, text, place)
        elif call.tool == "Bash":
            self._ran(call, record, text, failed=failed)
        elif not failed:
            self._worked(call, text, place)

    def _refused(self, call: Call, text: str, place: Place) -> None:
        words = text.partition("the user said:\n")[2].strip()
        self.refusals.append((call, Said(words, place)))
        if words:
            self._typed(words, place, correcting=True)

    def _worked(self, call: Call, text: str, place: Place) -> None:
        """A tool other than the shell did what it was called for."""
        if call.tool in _WRITERS or (call.tool.startswith("mcp__") and _FOREIGN_WRITER.search(call.tool)):
            for path in call.paths():
                self.changed.setdefault(path, []).append(call.place)
        elif call.tool in _READERS:
            self.looked_at.update(dict.fromkeys(call.paths(), call.place))
        elif text.startswith(_ANSWERED):
            self.questions.clear()
            pairs = _PAIR.findall(text[:ANSWERS])
            self.answers += [Said(f"{asked} -> {answered}", place) for asked, answered in pairs]
            self._typed("\n".join(answered for _, answered in pairs), place)
        elif call.tool == "ExitPlanMode":
            plan, inside = string(dict(call.given), "plan"), text.partition("## Approved Plan:\n")[2]
            self.plans.append(Said(plan or inside, call.place if plan else place))
        elif call.tool in {"TaskCreate", "TaskUpdate"}:
            self._task(call, text)

    def _ran(self, call: Call, record: Record, text: str, *, failed: bool) -> None:
        command = string(dict(call.given), "command")
        if not command:
            return
        told = _EXIT.match(text)
        more = record.get("toolUseResult")
        interrupted = isinstance(more, dict) and more.get("interrupted") is True
        status = int(told.group(1)) if told else int(failed or interrupted)
        waiting = call.given.get("run_in_background") is True or text.startswith("Command running in background")
        output = text if len(text) <= 2 * TELLING else f"{text[:TELLING]}\n{text[-TELLING:]}"
        self.runs.append(Run(command, call.place, status, output, waiting))

    def _todos(self, call: Call) -> None:
        rows = call.given.get("todos")
        self.todos = [
            (string(row, "content"), string(row, "status"), call.place)
            for row in (rows if isinstance(rows, list) else [])
            if isinstance(row, dict) and string(row, "content")
        ]

    def _task(self, call: Call, text: str) -> None:
        given = dict(call.given)
        if call.tool == "TaskCreate":
            number = re.search(r"#(\w+)", text)
            key = number.group(1) if number else str(len(self.tasks) + 1)
            self.tasks[key] = (string(given, "subject") or string(given, "description"), "pending", call.place)
        elif (known := self.tasks.get(str(given.get("taskId")))) and (status := string(given, "status")):
            self.tasks[str(given.get("taskId"))] = (known[0], status, call.place)

    @property
    def open_todos(self) -> list[tuple[str, str, Place]]:
        """What was still to be done, in the order in which it was written down."""
        rows = [*self.tasks.values(), *self.todos]
        return [row for row in rows if row[1] not in {"completed", "deleted", "cancelled"}]

    @property
    def unanswered(self) -> Said | None:
        """What the assistant said since the last prompt, its last words."""
        return self._last_said

    @property
    def last_said(self) -> Said | None:
        """What the assistant said last, after the last prompt or before it."""
        return self._last_said or (self.said[-1] if self.said else None)


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    rows: Iterable[Any] = content if isinstance(content, list) else ()
    return "\n".join(string(row, "text") for row in rows if isinstance(row, dict))


def _questions(given: Mapping[str, Any]) -> list[str]:
    rows = given.get("questions")
    found = [string(row, "question") for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    return [question for question in found if question]


_HANDLERS: dict[str, Callable[[Story, Record, Place], None]] = {
    "assistant": Story._assistant,  # noqa: SLF001 - the table belongs to the class
    "user": Story._user,  # noqa: SLF001
    "attachment": Story._queued,  # noqa: SLF001
    "pr-link": Story._linked,  # noqa: SLF001
    "queue-operation": Story._enqueued,  # noqa: SLF001
}
