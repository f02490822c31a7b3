"""Collect the facts of a digest in one pass over the files of a lineage, oldest first.

Every fact has its position: the session and the line. The following records are skipped:
placeholders from a trim, records on abandoned branches, and records that a child copied from its
parent (with the same uuids or, in a fork with new uuids, with a reference to the source).

Most bytes of a session are the contents of files that were read. For these, the digest only needs
to know that the read succeeded. A prescan finds that in a line as clients write it, because quotes
inside a text are always escaped. The parser processes lines of any other form.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from resume_hooks import clock
from resume_hooks.reading.digest import agent_reports, facts
from resume_hooks.reading.digest.facts import (
    FileChange,
    OpenList,
    PendingCall,
    Prompts,
    Quote,
    RecordPlace,
    Refusal,
    ShellRun,
)
from resume_hooks.reading.digest.written_marks import WrittenMarks
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.opening_layout import NEW_TASK, next_step_of
from resume_hooks.transcripts import bookkeeping, records, script_calls
from resume_hooks.transcripts.attachments import HOOK_CONTEXT, QUEUED, hook_texts
from resume_hooks.transcripts.bookkeeping import AFTER_CLEAR
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import REJECTION, Record, copied_from, string
from resume_hooks.transcripts.transcript import CopyDetector

SHORTEST = 3_000  # the minimum bytes of a line for which a prescan is faster than parsing
# the number of bytes at the start of a line that contain its envelope and the message's own keys
REACH = 2_000
TELLING = frozenset(
    kind.encode() for kind in (QUEUED, HOOK_CONTEXT)
)  # the kinds of attachments with relevant text

_HEAD = compile_lazily(
    rb'\{"parentUuid":(?:null|"([0-9a-f-]{36})"),"isSidechain":(false|true),(?:"attachment":\{"type":"(\w+)")?'
)
_MESSAGE = b'"message":'
_USER = b'"type":"user",' + _MESSAGE
_CALL = compile_lazily(
    _USER + rb'\{(?:"role":"user",)?"content":\[\{'
    rb'(?:"type":"tool_result","tool_use_id":"([\w.-]{1,100})"|"tool_use_id":"([\w.-]{1,100})","type":"tool_result"[,}])'
)
_OWN = compile_lazily(rb'([0-9a-f-]{36})","timestamp":"')
_UUID = b'"uuid":"'
_THOUGHT = b'"content":[{"type":"thinking",'
_BLOCKS = (b'"type":"text"', b'"type":"tool_use"', b'"type":"tool_result"')
_NEXT = compile_lazily(rb'"(?:uuid":"|is_error":true|tool_use_id"|toolUseResult")')
"""The key of the record's own id after a result, or an earlier key that shows more than that the
call succeeded."""

_REFUSED = REJECTION.encode()
_BESIDE = b'},{"type":"text","text":"'
"""The start of a text after another block. The user may have typed the text together with a
result."""


class Prescan(NamedTuple):
    """A record's id and its parent's id.

    ``call`` is the id of the call whose successful result the record contains, or ``""``.
    """

    uuid: str
    parent: str
    sidechain: bool
    call: str = ""


def prescan_line(raw: bytes) -> Prescan | None:
    """Return the prescan of a line, or None if the line must be parsed."""
    head = _HEAD.match(raw) if len(raw) >= SHORTEST else None
    if head is None or head[3] in TELLING or not raw.endswith((b"}\n", b"}")):
        return None
    if head[3] is None:
        inner = raw.find(
            b"{", 1, REACH
        )  # deeper levels belong to another record, which reports a sub-agent's progress
        call = _CALL.match(raw, inner - len(_USER))
        if call is not None:
            return _prescan_answer(raw, head, call)
        thinks = (
            raw.startswith(_MESSAGE, inner - len(_MESSAGE)) and raw.find(_THOUGHT, inner, REACH) > 0
        )
        if not thinks or any(block in raw for block in _BLOCKS):
            return None
    at = raw.find(_UUID)
    if at >= 0 and raw.find(_UUID, at + 1) < 0:
        own = _OWN.match(raw, at + len(_UUID))
    else:
        own = None
    if own:
        return _prescan_call(head, own)
    return None


def _prescan_answer(raw: bytes, head: re.Match[bytes], call: re.Match[bytes]) -> Prescan | None:
    """Return the prescan of a result.

    The client's copy of the result, which is equally long, comes after the record's id.
    """
    following = _NEXT.search(raw, call.end())
    if following and following[0] == _UUID:
        own = _OWN.match(raw, following.end())
    else:
        own = None
    if own is None or _REFUSED in raw[:REACH] or raw.find(_UUID, 0, call.start()) >= 0:
        return None
    if _BESIDE in raw:
        return None
    return _prescan_call(head, own, call[1] or call[2])


def _prescan_call(head: re.Match[bytes], own: re.Match[bytes], call: bytes = b"") -> Prescan:
    return Prescan(own[1].decode(), (head[1] or b"").decode(), head[2] == b"true", call.decode())


ANSWERS = 8_000  # the maximum characters of a user's answers to questions

_WRITERS = records.WRITERS | {"Update"}
_WORKS_IN = "workdir"  # the name of an agent's own input for a command's folder
_AGENT_TOOLS = frozenset({"Task", "Agent"})
_TEXT_MATTERS = (
    frozenset({"Bash", records.POLL, "AskUserQuestion", "ExitPlanMode", "TaskCreate"})
    | _AGENT_TOOLS
)
_PLAN_MODE, _PLAN_LEFT = "plan", "plan_mode_exit"
_PLAN_REMINDERS = frozenset({"plan_mode", "plan_mode_reentry", _PLAN_LEFT})
_COLLECTORS = frozenset({"TaskOutput", "AgentOutput", "AgentOutputTool", "TaskStop"})
"""Tools that get the report of a background sub-agent, or stop it."""

_ONLY_READS = compile_lazily(r"explor|plan|review|research|search|guide|analy|audit", re.IGNORECASE)
"""Words in the types of sub-agents that change no files."""

_NOTHING_READ = "<system-reminder>Warning: the file exists but"
"""How the answer begins to a read behind the end of a file, or of an empty one."""

_RECAP = "away_summary"
_SOON = 2  # the maximum number of records between a command and its loaded text
_RULES = 400  # the minimum characters of a loaded text that counts as rules
_STARTED = ("Async agent launched", "Spawned successfully")
"""The start of the result of a call that starts a background sub-agent."""

_FOREIGN_WRITER = compile_lazily(
    r"(?:write|edit|create|move|rename|delete|remove|replace|insert|patch).*file|file.*(?:write|edit)",
    re.IGNORECASE,
)


class Branches:
    """The links between the records of all files that were read so far."""

    def __init__(self) -> None:
        self._orders: dict[str, int] = {}
        self._parents: dict[str, str] = {}
        self._last = ""
        self._hint = ""
        self._copied_until = 0

    def is_copy(self, record: Record, order: int) -> bool:
        """Check whether a record was processed before. If not, record its link.

        A record without a uuid is not a copy.
        """
        uuid = record.get("uuid")
        if not isinstance(uuid, str):
            return False
        if "forkedFrom" in record:
            source = self._orders.get(copied_from(record))
            if source is not None:
                self._orders.setdefault(uuid, source)
        return self.is_known(
            uuid, string(record, "parentUuid") or string(record, "logicalParentUuid"), order
        )

    def is_known(self, uuid: str, parent: str, order: int) -> bool:
        """Do the same check for a record that is given by its ids. ``order`` counts the records that were read."""
        found = self._orders.setdefault(uuid, order)
        if uuid in self._parents:
            return True  # the record is repeated in one file
        if found != order:
            self._copied_until = max(self._copied_until, found)
            return True
        self._parents[uuid] = parent
        self._last = uuid
        return False

    def note_leaf(self, leaf: str) -> None:
        """Record which record the client reports as the current leaf."""
        self._hint = leaf

    def end_branches_of_file(self, session_id: str) -> Callable[[Quote], bool]:
        """Finish a file. Return a function that checks whether a quote still counts.

        Quotes do not count if they are on a branch of this file that leaves the live branch, or in
        a parent after the point at which this file was copied from it. If a record has another
        root, or no root, it is not known to be abandoned.
        """
        live = self._records_upward(self._last)
        if self._hint in self._parents and self._hint not in live:
            live = self._records_upward(self._hint)
        parents, copied_until = self._parents, self._copied_until
        self._parents, self._last, self._hint, self._copied_until = {}, "", "", 0
        leaves: dict[str, bool] = {}

        def counts(said: Quote) -> bool:
            if said.place.session_id != session_id:
                return not copied_until or said.place.order <= copied_until
            return not _leaves_live_branch(said.uuid, live, parents, leaves)

        return counts

    def _records_upward(self, leaf: str) -> set[str]:
        """Return the records from a leaf upward, including the copied record at their root."""
        live: set[str] = set()
        uuid = leaf
        parent = self._parents.get(uuid)
        while parent is not None and uuid not in live:
            live.add(uuid)
            uuid = parent
            parent = self._parents.get(uuid)
        if uuid in self._orders:
            live.add(uuid)
        return live


def _leaves_live_branch(
    uuid: str, live: Collection[str], parents: Mapping[str, str], known: dict[str, bool]
) -> bool:
    """Check whether a record is on a branch that leaves the live one."""
    way: list[str] = []
    at = uuid
    while at in parents and at not in live and at not in known:
        known[at] = False  # a provisional value, which also stops at a cycle
        way.append(at)
        at = parents[at]
    found = known.get(at, False) or (at in live and at != uuid)
    known.update(dict.fromkeys(way, found))
    if way:
        return found
    return known.get(uuid, False)


class LineageFacts:
    """The facts of a lineage or, if ``sidechain``, of a sub-agent."""

    goal_status = ""
    interruption: Quote | None = None
    """The user's last interruption."""
    holds_imported = False
    is_imported = False
    """Whether the current file was imported. If so, its model is unknown."""
    said_at_work: Quote | None = None
    """The last words of the latest turn that a prompt ended in the middle of its calls."""
    has_unseen_agents = False
    """Whether there are reports of sub-agents whose transcripts are missing."""
    agents_may_write = False
    """Whether a sub-agent was started that may write files."""

    def __init__(self, *, sidechain: bool = False) -> None:
        self.prompts = Prompts()
        self.open_list = OpenList()
        self.marks = WrittenMarks()
        self.said: list[Quote] = []
        self.closing: list[Quote] = []
        """The assistant's last words before each prompt."""
        self.answers: list[Quote] = []
        self.refusals: list[Refusal] = []
        self.runs: list[ShellRun] = []
        self.changes: list[FileChange] = []
        self.looked_at: dict[tuple[str, str], RecordPlace] = {}
        """Files that were read, by path and the folder that they were read from."""
        self.plans: list[Quote] = []
        self.links: dict[str, RecordPlace] = {}
        self.summaries: list[Quote] = []
        """The client's summaries from compactions, and its recaps."""
        self.questions: list[Quote] = []
        self.agents: dict[str, int] = {}
        """The order of each sub-agent's result, by the sub-agent's id."""
        self.running: dict[str, Quote] = {}
        """The tasks of sub-agents that were started and have not reported, by the sub-agent's
        id."""
        self.skills: dict[str, Quote] = {}
        """The texts of loaded skills by name. The skill that was loaded last is the last one."""
        self.cut_off: PendingCall | None = None
        """The last call, if the file ends before the call's result."""
        self.reports: list[Quote] = []
        """The reports of sub-agents."""
        self.reports_of_writers: list[tuple[Quote, str]] = []
        """The reports of sub-agents that may write files, each with the folder that the sub-agent
        was called in."""
        self.tool_errors: dict[str, Quote] = {}
        """The server tools whose last call failed, with the error."""
        self.goal: Quote | None = None
        self.plan_mode = False
        self.plan_file = ""
        self.read_to = (0, 0)
        """The numbers of bytes and lines of the last file that were read."""
        self.unanswered: Quote | None = None
        """The assistant's last words since the last prompt."""
        self._open: dict[str, PendingCall] = {}
        self._in_background: dict[str, int] = {}
        self.strangers: set[RecordPlace] = set()
        """The prompts in the imported part of a file, which another user wrote."""
        self._imported_at = ""
        self._sidechain = sidechain
        self._branches = Branches()
        self._copies = CopyDetector()
        self.called_at = 0
        """The order of the last call."""
        self._order = 0

    @property
    def last_said(self) -> Quote | None:
        """The assistant's last words, after the last prompt or before it."""
        return self.unanswered or (self.said[-1] if self.said else None)

    def begin_imported(self, at: str) -> None:
        """Mark the current file as imported ``at`` an instant. The prompts before it are another user's."""
        self.is_imported = self.holds_imported = True
        self._imported_at = at

    def end_file(self, session_id: str) -> None:
        """Finish a file, and remove the facts of abandoned branches.

        The commands of abandoned branches, and the files that they changed, are kept, because the
        commands did run.
        """
        self.running |= {
            call_id: Quote(call.first_text("description", "prompt"), call.place)
            for call_id, call in self._open.items()
            if call.tool in _AGENT_TOOLS
        }
        last = next(reversed(self._open.values()), None)
        if last is not None and last.place.order >= self.called_at:
            self.cut_off = last
        else:
            self.cut_off = None
        self._open.clear()
        self.is_imported = False
        self._copies = CopyDetector()
        counts = self._branches.end_branches_of_file(session_id)
        for rows in (
            self.said,
            self.closing,
            self.answers,
            self.plans,
            self.questions,
            self.summaries,
            self.reports,
        ):
            rows[:] = filter(counts, rows)
        self.refusals[:] = (refusal for refusal in self.refusals if counts(refusal.said))
        if self.unanswered and not counts(self.unanswered):
            self.unanswered = None
        if self.interruption and not counts(self.interruption):
            self.interruption = None
        if self.prompts.end_file(counts):
            self._end_turn()

    def take(self, record: Record, session_id: str, number: int) -> None:
        """Process one record. ``number`` is its line in the session, counted from 0."""
        if (record.get("isSidechain") is True) != self._sidechain:
            return
        self._order += 1
        again = self._copies.holds(record)
        if self._branches.is_copy(record, self._order) or again:
            return
        handler = _HANDLERS.get(string(record, "type"))
        if handler is not None:
            handler(self, record, RecordPlace(session_id, number, self._order))

    def take_prescan(self, brief: Prescan, session_id: str, number: int) -> bool:
        """Process the prescan of a record. Return False if the whole record is needed."""
        if brief.sidechain != self._sidechain:
            return True
        call = self._open.get(brief.call) if brief.call else None
        if call is not None and call.tool in _TEXT_MATTERS:
            return False
        self._order += 1
        if not self._branches.is_known(brief.uuid, brief.parent, self._order) and call is not None:
            del self._open[brief.call]
            self._on_tool_success(
                call, {}, Quote("", RecordPlace(session_id, number, self._order), brief.uuid)
            )
        return True

    def _take_answer(self, record: Record, place: RecordPlace) -> None:
        spoken = (
            self.is_imported or bool(records.model(record)) or records.counted_tokens(record)[1] > 0
        )
        if not spoken and not script_calls.is_made_by_script(record):
            return  # the client's own text, or our card
        for block in records.blocks(record):
            kind = block.get("type")
            if kind == records.TEXT:
                text = string(block, "text").strip()
                if text and not is_placeholder(text):
                    self.unanswered = Quote(text, place, string(record, "uuid"))
                    self.said.append(self.unanswered)
            elif kind == records.CALL:
                self._take_call(record, block, place)

    def _take_call(self, record: Record, block: Record, place: RecordPlace) -> None:
        given = records.mapping(block, "input")
        folder = _call_folder(given, string(record, "cwd"))
        call = PendingCall(string(block, "name"), given, place, folder)
        self.called_at = place.order
        self._open[string(block, "id")] = call
        if call.tool == "AskUserQuestion":
            rows = records.objects(call.given.get("questions"))
            asked = filter(None, (string(row, "question") for row in rows))
            self.questions += [Quote(question, place, string(record, "uuid")) for question in asked]

    def _take_user_record(self, record: Record, place: RecordPlace) -> None:
        if (
            record.get("isCompactSummary") is True
            or record.get("isVisibleInTranscriptOnly") is True
        ):
            self._take_summary(record, place)
            return
        if (
            self.is_imported
            and clock.normalize_timestamp(record.get("timestamp")) <= self._imported_at
        ):
            self.strangers.add(place)
        content = records.message(record).get("content")
        if answers := script_calls.results(record):
            for block in answers:
                self._take_result(record, block, place)
            is_alone = isinstance(content, list) and len(content) == len(answers)
            beside = "" if is_alone else records.text(record)
            if beside:  # text that the user typed during the call, as older clients send it
                self._take_typed(Quote(beside, place, string(record, "uuid")))
            return
        uuid = string(record, "uuid")
        if mode := string(record, "permissionMode"):
            self.plan_mode = mode == _PLAN_MODE
        if isinstance(content, str):
            self._take_notification(content, place)
        plan = string(record, "planContent")
        if plan.strip():
            self.plans.append(Quote(plan, place, uuid))
        if record.get("isMeta") is True:
            self._take_skill(records.text(record), place)
        self._take_prompt(record, Quote(records.prompt_text(record), place, uuid))

    def _take_prompt(self, record: Record, said: Quote) -> None:
        """Process a prompt, or other words of the user: a client command's arguments, or a shell command."""
        content = records.message(record).get("content")
        if said.text.startswith(facts.INTERRUPTION):
            self.interruption = said
        if records.is_prompt(record):
            self._take_typed(said)
        elif isinstance(content, str):
            self._take_command(content, said)

    def _take_skill(self, text: str, place: RecordPlace) -> None:
        """Process the text of a skill. It was loaded by the client or for the user's preceding command."""
        last = self.prompts.said[-1] if self.prompts.said else None
        name = facts.skill_loaded(text)
        if (
            last is not None
            and last.text.startswith("/")
            and place.order - last.place.order <= _SOON
        ):
            name = last.text.split()[0]
        if name and len(text) >= _RULES:
            self.skills.pop(name, None)
            self.skills[name] = Quote(text, place)

    def _take_command(self, content: str, said: Quote) -> None:
        """Process a client command that has words about the work, and commands in the user's own shell."""
        if words := facts.words_of_command(content) or facts.shell_command_of_user(content):
            self.prompts.take_words(said._replace(text=words))
            self._end_turn()
        elif output := facts.shell_output_of_user(content):
            self.prompts.extend_last(output, said.place)

    def _take_summary(self, record: Record, place: RecordPlace) -> None:
        """Process a summary of the client, or our child's opening. In an opening only the user's words count."""
        text = records.text(record)
        if text.startswith(lineage_block.OPENING):
            self._take_typed(Quote(_user_words(text), place, string(record, "uuid")))
        elif record.get("isCompactSummary") is True:
            self.summaries.append(Quote(text, place, string(record, "uuid")))

    def _take_recap(self, record: Record, place: RecordPlace) -> None:
        """Process the recap that the client writes for a user who was away.

        Also process the session's goal.
        """
        if string(record, "subtype") == records.GOAL:
            words = string(record, "goal")
            self.goal = Quote(words, place) if words else None
            self.goal_status = string(record, "status")
        elif string(record, "subtype") == _RECAP:
            text = string(record, "content").partition("(disable recaps")[0].strip()
            self.summaries.append(Quote(text, place, string(record, "uuid")))

    def _take_typed(self, said: Quote) -> None:
        if self.prompts.take_prompt(said):
            if self.unanswered is not None and self.called_at > self.unanswered.place.order:
                self.said_at_work = self.unanswered
            self._end_turn()

    def _end_turn(self) -> None:
        """End a turn at the user's words: the questions are answered, and the assistant's last words ended the turn."""
        if self.unanswered is not None:
            self.closing.append(self.unanswered)
            self.unanswered = None
        self.questions.clear()

    def _take_attachment(self, record: Record, place: RecordPlace) -> None:
        found = records.mapping(record, "attachment")
        kind, uuid = string(found, "type"), string(record, "uuid")
        if kind == QUEUED:
            prompt = string(found, "prompt")
            self._take_notification(prompt, place)
            self._take_typed(Quote(prompt, place, uuid))
        elif kind in _PLAN_REMINDERS:
            self.plan_mode = kind != _PLAN_LEFT
            self.plan_file = string(found, "planFilePath") or self.plan_file
        elif kind == HOOK_CONTEXT:
            for text in hook_texts(record):
                if text.startswith((AFTER_CLEAR, lineage_block.OPENING)):
                    self._take_typed(Quote(_user_words(text), place, uuid))

    def _take_queue(self, record: Record, place: RecordPlace) -> None:
        if self.prompts.take_queue_record(record, place):
            self._end_turn()
        self._take_notification(string(record, "content"), place)

    def _take_link(self, record: Record, place: RecordPlace) -> None:
        if url := string(record, "prUrl"):
            self.links[url] = place

    def _take_leaf_hint(self, record: Record, _place: RecordPlace) -> None:
        self._branches.note_leaf(string(record, "leafUuid"))

    def _take_result(self, record: Record, block: Record, place: RecordPlace) -> None:
        call = self._open.pop(string(block, "tool_use_id"), None)
        if call is None:
            return
        text, uuid = records.result_text(block), string(record, "uuid")
        if call.tool == "AskUserQuestion" and (pairs := facts.clarified_answers(text[:ANSWERS])):
            self._take_choices(pairs, place, uuid)
        if refused := facts.refusal_in_answer(call, record, block, text, place):
            self.refusals.append(refused)
            if refused.by_user and refused.said.text:
                self._take_typed(refused.said._replace(correcting=True))
        elif call.tool == "Bash":
            self._take_run(call, record, block, text, place)
        elif call.tool == records.POLL:
            self._take_poll(call, block, text, place)
        elif records.is_error(block):
            if call.tool.startswith(facts.SERVER_TOOL):
                self.tool_errors[call.tool] = Quote(text, place, uuid)
        else:
            self._on_tool_success(call, records.tool_details(record), Quote(text, place, uuid))
            self._on_agent(call, record, Quote(text, place, uuid))

    def _take_run(
        self, call: PendingCall, record: Record, block: Record, text: str, place: RecordPlace
    ) -> None:
        """Process the outcome of a shell command."""
        if run := facts.make_run(call, record, block, text, place):
            task = facts.find_task_id(record, block, text) if run.background else ""
            if task:
                self._in_background[task] = len(self.runs)
            self.runs.append(run)

    def _take_poll(self, call: PendingCall, block: Record, text: str, place: RecordPlace) -> None:
        """Process a poll of a running command, which may go on as another task."""
        at = self._in_background.get(call.first_text(records.POLLED))
        if at is None:
            return
        self.runs[at] = facts.update_polled_run(self.runs[at], block, text, place)
        if task := string(block, records.TASK):
            self._in_background[task] = at

    def _on_agent(self, call: PendingCall, record: Record, said: Quote) -> None:
        """Process the report of a sub-agent, or the start of a background one."""
        may_write = not _ONLY_READS.search(call.first_text("subagent_type"))
        if call.tool in _AGENT_TOOLS and may_write:
            self.agents_may_write = True
        if call.tool in _COLLECTORS:
            self.running.pop(call.first_text("task_id", "agentId", "agent_id"), None)
        agent = records.answering_agent(record)
        if agent:
            self.agents[agent] = self._order
        if agent and records.tool_details(record).get("isAsync") is True:
            self.running[agent] = Quote(call.first_text("description", "prompt"), call.place)
        elif call.tool in _AGENT_TOOLS and not said.text.startswith(_STARTED):
            self._take_report(said, call.folder, may_write=may_write)

    def _take_report(self, said: Quote, folder: str, *, may_write: bool) -> None:
        """Process the report of a sub-agent that was called in ``folder``."""
        self.reports.append(said._replace(text=agent_reports.without_trailer(said.text)))
        if may_write:
            self.reports_of_writers.append((said, folder))

    def take_reported_changes(self) -> None:
        """Count the files that sub-agents reported as changed, because their transcripts are missing."""
        for said, folder in self.reports_of_writers:
            for path in agent_reports.files_changed(said.text):
                self.changes.append(FileChange(path, folder, said.place, is_reported=True))

    def _on_tool_success(self, call: PendingCall, details: Record, said: Quote) -> None:
        text, place, uuid = said.text, said.place, said.uuid
        self.tool_errors.pop(call.tool, None)
        if call.tool in _WRITERS or (
            call.tool.startswith(facts.SERVER_TOOL) and _FOREIGN_WRITER.search(call.tool[:200])
        ):
            is_new = string(details, "type") == "create"
            self.changes += [
                FileChange(path, call.folder, call.place, is_new) for path in call.paths()
            ]
            self.marks.take_call(call, is_new=is_new)
        elif call.tool in records.READERS and not text.startswith(_NOTHING_READ):
            self.looked_at.update({(path, call.folder): call.place for path in call.paths()})
        elif call.tool == "AskUserQuestion":
            self._take_choices(facts.chosen_answers(call, details, text[:ANSWERS]), place, uuid)
        elif call.tool == "ExitPlanMode":
            plan, inside = call.first_text("plan"), text.partition("## Approved Plan:\n")[2]
            self.plan_mode = False
            if not is_placeholder(plan):
                self.plans.append(Quote(plan or inside, call.place if plan else place, uuid))
        elif call.tool == "EnterPlanMode":
            self.plan_mode = True
        elif call.tool == "TodoWrite":
            self.open_list.write_todos(call)
        elif call.tool == "TaskCreate":
            self.open_list.create_task(call, text)
        elif call.tool == "TaskUpdate":
            self.open_list.update_task(call)

    def _take_choices(
        self, pairs: Sequence[tuple[str, str]], place: RecordPlace, uuid: str
    ) -> None:
        """Process the user's choices: pairs of question and answer.

        The list is empty if the user did not answer.
        """
        if not pairs:
            return
        self.answers += [Quote(f"{asked} -> {answered}", place, uuid) for asked, answered in pairs]
        self._end_turn()
        self._take_typed(Quote("\n".join(answered for _, answered in pairs), place, uuid))

    def _take_notification(self, text: str, place: RecordPlace) -> None:
        ending = facts.task_ending(text)
        if ending is not None:
            self.running.pop(ending.task, None)
            if report := facts.find_report(text):
                self._take_report(Quote(report, place), "", may_write=self.agents_may_write)
        at = self._in_background.get(ending.task) if ending else None
        if ending is not None and at is not None:
            self.runs[at] = self.runs[at]._replace(
                status=ending.status, failed=ending.failed, answered=place
            )


def _call_folder(given: Record, cwd: str) -> str:
    """Return the folder of a call: the session's folder, unless the call names another folder."""
    named = string(given, _WORKS_IN)
    if not named:
        return cwd
    is_windows = bool(ntpath.splitdrive(named)[0])
    if is_windows and ntpath.normcase(named) == ntpath.normcase(cwd):
        return cwd
    if is_windows:
        return named
    return posixpath.join(cwd, named).rstrip("/")


def _user_words(text: str) -> str:
    """Return the user's words in our child's opening: a next step, or the report after a mark."""
    from resume_hooks.sessions.opening_layout import (
        FORMER_REPORT,
        REPORT,
    )  # needed only for our children

    text = text[max(0, text.find(lineage_block.OPENING)) :]  # /clear reports its own result first
    step = (next_step_of(text) or "").removeprefix(f"{NEW_TASK}\n")
    return step or next(
        filter(None, (text.partition(f"\n\n{each}\n")[2] for each in (REPORT, FORMER_REPORT))), ""
    )


_HANDLERS: dict[str, Callable[[LineageFacts, Record, RecordPlace], None]] = {
    records.ASSISTANT: LineageFacts._take_answer,  # noqa: SLF001 - the table belongs to the class
    records.USER: LineageFacts._take_user_record,  # noqa: SLF001
    records.ATTACHMENT: LineageFacts._take_attachment,  # noqa: SLF001
    records.SYSTEM: LineageFacts._take_recap,  # noqa: SLF001
    bookkeeping.PR_LINK: LineageFacts._take_link,  # noqa: SLF001
    bookkeeping.QUEUE_OPERATION: LineageFacts._take_queue,  # noqa: SLF001
    bookkeeping.LAST_PROMPT: LineageFacts._take_leaf_hint,  # noqa: SLF001
}
