"""Collect the facts of a digest in one pass over the files of a lineage, oldest first.

Each fact has a position: its session and its line. Three kinds of records are skipped: placeholders
from a trim, records on abandoned branches, and records that a child copied from its parent. A
copied record has the same uuid as its source or, in a fork with new uuids, a reference to it.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
from collections.abc import Callable, Sequence

from resume_hooks import clock
from resume_hooks.reading.digest import agent_reports, facts
from resume_hooks.reading.digest.branches import Branches
from resume_hooks.reading.digest.entries import ReadExtent
from resume_hooks.reading.digest.facts import (
    FileChange,
    PendingCall,
    Prompts,
    Quote,
    RecordPosition,
    Refusal,
    ShellRun,
    TodoList,
)
from resume_hooks.reading.digest.git_seen import SessionCheckout
from resume_hooks.reading.digest.prescan import Prescan
from resume_hooks.reading.digest.prose import mark_pastes
from resume_hooks.reading.digest.written_marks import WrittenTodosAndPlans
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.sessions import lineage_block
from resume_hooks.sessions.opening_layout import NEW_TASK_NOTICE, extract_next_step
from resume_hooks.transcripts import metadata_records, records, script_calls
from resume_hooks.transcripts.attachments import HOOK_CONTEXT, QUEUED, list_hook_texts
from resume_hooks.transcripts.metadata_records import OPENING_AFTER_CLEAR_PREFIX
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, get_string
from resume_hooks.transcripts.transcript import CopyDetector

# At most this many characters are kept from a user's answers to questions.
MAX_ANSWER_CHARACTERS = 8_000
_WRITING_TOOLS = records.WRITING_TOOLS | {"Update"}
# The name of the input that contains a command's folder, in sessions of a different agent.
_FOLDER_INPUT_NAME = "workdir"
_AGENT_TOOLS = frozenset({"Task", "Agent"})
_TOOLS_WITH_RELEVANT_RESULTS = (
    frozenset({"Bash", records.POLL_TOOL, "AskUserQuestion", "ExitPlanMode", "TaskCreate"})
    | _AGENT_TOOLS
)
_PLAN_MODE, _PLAN_MODE_EXIT = "plan", "plan_mode_exit"
_PLAN_REMINDER_TYPES = frozenset({"plan_mode", "plan_mode_reentry", _PLAN_MODE_EXIT})
_REPORT_TOOLS = frozenset({"TaskOutput", "AgentOutput", "AgentOutputTool", "TaskStop"})
"""Tools that fetch the report of a background sub-agent or stop the sub-agent."""

_READ_ONLY_AGENT_TYPE_PATTERN = compile_lazily(
    r"explor|plan|review|research|search|guide|analy|audit", re.IGNORECASE
)
"""A sub-agent whose type contains one of these words changes no files."""

_EMPTY_READ_RESULT_PREFIX = "<system-reminder>Warning: the file exists but"
"""The beginning of the result if the file that was read is empty or ends before the requested line.
"""

_RECAP_SUBTYPE = "away_summary"
# A skill's text belongs to a command if at most this number of records lies between the two.
_MAX_RECORDS_BEFORE_SKILL_TEXT = 2
# A loaded text with fewer characters is not treated as a skill.
_MIN_SKILL_TEXT_CHARACTERS = 400
_BACKGROUND_START_PREFIXES = ("Async agent launched", "Spawned successfully")
"""The beginnings of the result of a call that starts a background sub-agent."""

_WRITING_SERVER_TOOL_PATTERN = compile_lazily(
    r"(?:write|edit|create|move|rename|delete|remove|replace|insert|patch).*file|file.*(?:write|edit)",
    re.IGNORECASE,
)


_CLIENT_NOTICE_PATTERN = compile_lazily(r"\[[^\[\]\n]{1,300}\]")
"""A notice in brackets. Some summaries contain only such a notice and no other text."""


class LineageFacts:
    """The facts of a lineage, or of a sub-agent if ``is_sidechain`` is True."""

    goal_status = ""
    interruption: Quote | None = None
    """The user's last interruption of a turn."""
    has_imported_file = False
    is_imported = False
    """Whether the current file was imported. In an imported file, the records do not name the
    model."""
    words_before_interruption: Quote | None = None
    """The assistant's last words in a turn that the user's prompt interrupted during a tool call."""
    has_agents_without_transcripts = False
    """Whether there are reports of sub-agents whose transcripts are missing."""
    agents_may_write = False
    """Whether the session started a sub-agent that may write files."""

    client_checkout: SessionCheckout | None = None
    """The folder and the branch in the client's records, updated whenever the branch changes."""
    later_branch = ""
    """A branch that the client recorded after the last message or result, or ``""`` if the last
    message or result already has that branch."""
    instructions: Quote | None = None
    """The project's instructions, as the client last sent them."""
    instructions_name = ""
    """A name for the file with the project's instructions, such as ``AGENTS.md of /home/me/app``.
    """

    sidechain_facts: LineageFacts | None = None
    """The facts of sub-agents whose records are in the session's own file. Old clients wrote them
    there."""

    def __init__(self, *, is_sidechain: bool = False) -> None:
        self.prompts = Prompts()
        self.todo_list = TodoList()
        self.marks = WrittenTodosAndPlans()
        self.assistant_quotes: list[Quote] = []
        self.closing_quotes: list[Quote] = []
        """The assistant's last words before each prompt."""
        self.answers: list[Quote] = []
        self.refusals: list[Refusal] = []
        self.runs: list[ShellRun] = []
        self.changes: list[FileChange] = []
        self.read_files: dict[tuple[str, str], RecordPosition] = {}
        """The position at which each file was last read, by the file's path and the folder to which
        the path is relative."""
        self.plans: list[Quote] = []
        self.pull_request_links: dict[str, RecordPosition] = {}
        self.summaries: list[Quote] = []
        """The client's summaries from compactions and its recaps for a user who was away."""
        self.questions: list[Quote] = []
        self.agent_orders: dict[str, int] = {}
        """Maps a sub-agent's id to the sequence number of the record that contains its result."""
        self.running_agents: dict[str, Quote] = {}
        """The tasks of sub-agents that have not reported yet, by the sub-agent's id."""
        self.skills: dict[str, Quote] = {}
        """The texts of loaded skills, by name. The skill that was loaded last is the last entry."""
        self.unanswered_call: PendingCall | None = None
        """The last call, if the file ends before the call's result."""
        self.reports: list[Quote] = []
        """The reports that sub-agents wrote."""
        self.reports_of_writers: list[tuple[Quote, str]] = []
        """The reports of sub-agents that may write files, each with the folder in which the
        sub-agent was started."""
        self.tool_errors: dict[str, Quote] = {}
        """The last error message of each server tool whose last call failed, by the tool's name."""
        self.goal: Quote | None = None
        self.sandbox: Quote | None = None
        """The restricted sandbox that the last message describes, or None. If several messages in a
        row describe the same sandbox, the first of them is quoted."""
        self.plan_mode, self.plan_file = False, ""
        self.read_extent = ReadExtent()
        """How far the last file was read: the number of bytes and the number of lines."""
        self.words_since_prompt: Quote | None = None
        """The assistant's last words after the last prompt."""
        self._open_calls: dict[str, PendingCall] = {}
        self._background_runs: dict[str, int] = {}
        self.foreign_prompts: set[RecordPosition] = set()
        """The prompts in the imported part of a file, which another user wrote."""
        self._imported_at = ""
        self._is_sidechain = is_sidechain
        self._branches = Branches()
        self._copy_detector = CopyDetector()
        self.last_call_order = 0
        """The sequence number of the record with the last call."""
        self._order = 0

    @property
    def last_words(self) -> Quote | None:
        """The assistant's last words after the last prompt or, if there are none, before it."""
        return self.words_since_prompt or (
            self.assistant_quotes[-1] if self.assistant_quotes else None
        )

    def mark_file_imported(self, imported_at: str) -> None:
        """Mark the current file as imported. The prompts before ``imported_at`` are another user's."""
        self.is_imported = self.has_imported_file = True
        self._imported_at = imported_at

    def finish_session_file(self, session_id: str) -> None:
        """Finish a file, and remove the facts that come from abandoned branches.

        The commands on abandoned branches and the files that they changed are kept, because their
        effects remain.
        """
        if self.sidechain_facts is not None:
            self.sidechain_facts.finish_session_file(session_id)
        for call_id, call in self._open_calls.items():
            if call.tool_name in _AGENT_TOOLS:
                task = call.find_first_text("description", "prompt")
                self.running_agents[call_id] = Quote(task, call.position)
        last_call = next(reversed(self._open_calls.values()), None)
        if last_call is not None and last_call.position.order >= self.last_call_order:
            self.unanswered_call = last_call
        else:
            self.unanswered_call = None
        self._open_calls.clear()
        self.is_imported = False
        self._copy_detector = CopyDetector()
        is_quote_on_live_branch = self._branches.finish_file_and_make_branch_check(session_id)
        for rows in (
            self.assistant_quotes,
            self.closing_quotes,
            self.answers,
            self.plans,
            self.questions,
            self.summaries,
            self.reports,
        ):
            rows[:] = filter(is_quote_on_live_branch, rows)
        self.refusals[:] = (
            refusal for refusal in self.refusals if is_quote_on_live_branch(refusal.quote)
        )
        if self.words_since_prompt and not is_quote_on_live_branch(self.words_since_prompt):
            self.words_since_prompt = None
        if self.interruption and not is_quote_on_live_branch(self.interruption):
            self.interruption = None
        if self.prompts.remove_prompts_on_abandoned_branches(is_quote_on_live_branch):
            self._end_turn()

    def process_record(self, record: Record, session_id: str, line_number: int) -> None:
        """Process one record. ``line_number`` is its line in the session, counted from 0."""
        if (record.get("isSidechain") is True) != self._is_sidechain:
            if not self._is_sidechain:
                self._make_sidechain_facts().process_record(record, session_id, line_number)
            return
        self._order += 1
        is_repeated = self._copy_detector.is_copy_of_earlier_record(record)
        if self._branches.is_copy_of_earlier_record(record, self._order) or is_repeated:
            return
        position = RecordPosition(session_id, line_number, self._order)
        self._process_branch(record, position)
        self._process_sandbox(record, position)
        handler = _HANDLERS_BY_RECORD_TYPE.get(get_string(record, "type"))
        if handler is not None:
            handler(self, record, position)

    def _make_sidechain_facts(self) -> LineageFacts:
        """Return the facts of the sub-agents whose records are in the session's own file.

        The sequence numbers in these facts continue from the session's records.
        """
        if self.sidechain_facts is None:
            self.sidechain_facts = LineageFacts(is_sidechain=True)
        self.sidechain_facts.set_record_count(self._order)
        self._order += 1
        return self.sidechain_facts

    def set_record_count(self, record_count: int) -> None:
        """Set the number of records that have been counted so far."""
        self._order = record_count

    def _process_branch(self, record: Record, position: RecordPosition) -> None:
        """Process the git branch in a record. The branch may have changed without a command in the session."""
        branch = get_string(record, "gitBranch")
        former = self.client_checkout
        if not branch:
            return
        is_other = former is not None and branch != former.branch
        if is_other and not _is_part_of_work(record):
            self.later_branch = branch
            return
        self.later_branch = ""
        if former is None or is_other:
            self.client_checkout = SessionCheckout(get_string(record, "cwd"), branch, position)

    def _process_sandbox(self, record: Record, position: RecordPosition) -> None:
        """Process the description of the sandbox in a message. Without a description, there is no sandbox."""
        if get_string(record, "type") not in {records.USER, records.ASSISTANT}:
            return
        description = get_string(record, records.SANDBOX_FIELD)
        if not description:
            self.sandbox = None
        elif self.sandbox is None or self.sandbox.text != description:
            self.sandbox = Quote(description, position)

    def process_prescan(self, prescan: Prescan, session_id: str, line_number: int) -> bool:
        """Process the fields that a prescan read. Return False if the whole record must be parsed."""
        if prescan.is_sidechain != self._is_sidechain:
            if self._is_sidechain:
                return True
            return self._make_sidechain_facts().process_prescan(prescan, session_id, line_number)
        call = self._open_calls.get(prescan.call_id) if prescan.call_id else None
        if call is not None and call.tool_name in _TOOLS_WITH_RELEVANT_RESULTS:
            return False
        self._order += 1
        if (
            not self._branches.is_uuid_of_earlier_record(
                prescan.uuid, prescan.parent_uuid, self._order
            )
            and call is not None
        ):
            del self._open_calls[prescan.call_id]
            self._process_success(
                call,
                {},
                Quote("", RecordPosition(session_id, line_number, self._order), prescan.uuid),
            )
        return True

    def _process_assistant_record(self, record: Record, position: RecordPosition) -> None:
        is_from_model = (
            self.is_imported
            or bool(records.answering_model(record))
            or records.read_token_counts(record)[1] > 0
        )
        if not is_from_model and not script_calls.was_written_by_script(record):
            return  # The text was written by the client or printed by this plugin.
        for block in records.list_blocks(record):
            kind = block.get("type")
            if kind == records.TEXT:
                text = get_string(block, "text").strip()
                if text and not is_placeholder(text):
                    self.words_since_prompt = Quote(text, position, get_string(record, "uuid"))
                    self.assistant_quotes.append(self.words_since_prompt)
            elif kind == records.CALL:
                self._process_call(record, block, position)

    def _process_call(self, record: Record, block: Record, position: RecordPosition) -> None:
        inputs = records.get_mapping(block, "input")
        folder = _find_call_folder(inputs, get_string(record, "cwd"))
        call = PendingCall(get_string(block, "name"), inputs, position, folder)
        self.last_call_order = position.order
        self._open_calls[get_string(block, "id")] = call
        if call.tool_name == "AskUserQuestion":
            rows = records.list_objects(call.inputs.get("questions"))
            questions = filter(None, (get_string(row, "question") for row in rows))
            self.questions += [
                Quote(question, position, get_string(record, "uuid")) for question in questions
            ]

    def _process_user_record(self, record: Record, position: RecordPosition) -> None:
        if (
            record.get("isCompactSummary") is True
            or record.get("isVisibleInTranscriptOnly") is True
        ):
            self._process_summary(record, position)
            return
        if (
            self.is_imported
            and clock.normalize_timestamp(record.get("timestamp")) <= self._imported_at
        ):
            self.foreign_prompts.add(position)
        content = records.get_message(record).get("content")
        if results := script_calls.list_results_with_output(record):
            for block in results:
                self._process_result(record, block, position)
            has_only_results = isinstance(content, list) and len(content) == len(results)
            extra_text = "" if has_only_results else records.join_text_blocks(record)
            # Older clients put a text that the user typed during a call into the record of the
            # call's result.
            if extra_text:
                self._process_typed_words(Quote(extra_text, position, get_string(record, "uuid")))
            return
        uuid = get_string(record, "uuid")
        if mode := get_string(record, "permissionMode"):
            self.plan_mode = mode == _PLAN_MODE
        if isinstance(content, str):
            self._process_notification(content, position)
        plan = get_string(record, "planContent")
        if plan.strip():
            self.plans.append(Quote(plan, position, uuid))
        if record.get("isMeta") is True:
            self._process_text_added_by_client(record, position)
        self._process_prompt(record, Quote(records.prompt_text(record), position, uuid))

    def _process_prompt(self, record: Record, quote: Quote) -> None:
        """Process a prompt, the arguments of a client command, or a command that the user ran with ``!``."""
        content = records.get_message(record).get("content")
        if quote.text.startswith(facts.INTERRUPTION_PREFIX):
            self.interruption = quote
        if records.is_prompt(record):
            self._process_typed_words(quote)
        elif isinstance(content, str):
            self._process_command(content, quote)

    def _process_text_added_by_client(self, record: Record, position: RecordPosition) -> None:
        """Process a text that the client added for the model, which is a skill or the project's instructions."""
        text, name = (
            records.join_text_blocks(record),
            get_string(record, records.INSTRUCTIONS_FIELD),
        )
        if name:
            self.instructions, self.instructions_name = Quote(text, position), name
        else:
            self._process_skill(text, position)

    def _process_skill(self, text: str, position: RecordPosition) -> None:
        """Process the text of a skill.

        Either the client loaded the skill itself, or the user loaded it with the command just
        before the text.
        """
        last_prompt = self.prompts.quotes[-1] if self.prompts.quotes else None
        name = facts.find_skill_name(text)
        if (
            last_prompt is not None
            and last_prompt.text.startswith("/")
            and position.order - last_prompt.position.order <= _MAX_RECORDS_BEFORE_SKILL_TEXT
        ):
            name = last_prompt.text.split()[0]
        if name and len(text) >= _MIN_SKILL_TEXT_CHARACTERS:
            self.skills.pop(name, None)
            self.skills[name] = Quote(text, position)

    def _process_command(self, content: str, quote: Quote) -> None:
        """Process a client command that is about the work, or a command that the user ran with ``!``."""
        if words := facts.read_slash_command(content) or facts.read_user_shell_command(content):
            self.prompts.add_quote_of_user_command(quote._replace(text=words))
            self._end_turn()
        elif output := facts.read_user_shell_output(content):
            self.prompts.append_shell_output(output, quote.position)

    def _process_summary(self, record: Record, position: RecordPosition) -> None:
        """Process a summary that the client wrote, or an opening that this plugin wrote.

        In an opening, only the user's own words are processed.
        """
        text = records.join_text_blocks(record)
        if text.startswith(lineage_block.LINEAGE_START_MARKER):
            self._process_typed_words(
                Quote(_extract_user_words(text), position, get_string(record, "uuid"))
            )
        elif record.get("isCompactSummary") is True and (new_text := self._find_new_text(record)):
            self.summaries.append(Quote(new_text, position, get_string(record, "uuid")))

    def _find_new_text(self, record: Record) -> str:
        """Return the text of a summary without the messages that it repeats.

        If only a notice in brackets remains, return ``""``.
        """
        known_texts = {quote.full_text.strip() for quote in self.prompts.quotes}
        known_texts |= {quote.text for quote in self.assistant_quotes}
        new_texts = []
        for block in records.list_blocks(record):
            text = get_string(block, "text").strip()
            if text and known_texts.isdisjoint({text, mark_pastes(text)}):
                new_texts.append(text)
        if all(map(_CLIENT_NOTICE_PATTERN.fullmatch, new_texts)):
            return ""
        return "\n".join(new_texts)

    def _process_system_record(self, record: Record, position: RecordPosition) -> None:
        """Process the session's goal, or the recap that the client writes for a user who was away."""
        if get_string(record, "subtype") == records.GOAL_SUBTYPE:
            words = get_string(record, "goal")
            self.goal = Quote(words, position) if words else None
            self.goal_status = get_string(record, "status")
        elif get_string(record, "subtype") == _RECAP_SUBTYPE:
            text = get_string(record, "content").partition("(disable recaps")[0].strip()
            self.summaries.append(Quote(text, position, get_string(record, "uuid")))

    def _process_typed_words(self, quote: Quote) -> None:
        if self.prompts.add_prompt(quote):
            if (
                self.words_since_prompt is not None
                and self.last_call_order > self.words_since_prompt.position.order
            ):
                self.words_before_interruption = self.words_since_prompt
            self._end_turn()

    def _end_turn(self) -> None:
        """End the turn, because the user wrote something.

        The open questions are treated as answered. The assistant's last words become the closing
        words of the turn.
        """
        if self.words_since_prompt is not None:
            self.closing_quotes.append(self.words_since_prompt)
            self.words_since_prompt = None
        self.questions.clear()

    def _process_attachment(self, record: Record, position: RecordPosition) -> None:
        attachment = records.get_mapping(record, "attachment")
        kind, uuid = get_string(attachment, "type"), get_string(record, "uuid")
        if kind == QUEUED:
            prompt = get_string(attachment, "prompt")
            self._process_notification(prompt, position)
            self._process_typed_words(Quote(prompt, position, uuid))
        elif kind in _PLAN_REMINDER_TYPES:
            self.plan_mode = kind != _PLAN_MODE_EXIT
            self.plan_file = get_string(attachment, "planFilePath") or self.plan_file
        elif kind == HOOK_CONTEXT:
            for text in list_hook_texts(record):
                if text.startswith(
                    (OPENING_AFTER_CLEAR_PREFIX, lineage_block.LINEAGE_START_MARKER)
                ):
                    self._process_typed_words(Quote(_extract_user_words(text), position, uuid))

    def _process_queue_record(self, record: Record, position: RecordPosition) -> None:
        if self.prompts.process_queue_record(record, position):
            self._end_turn()
        self._process_notification(get_string(record, "content"), position)

    def _process_pull_request_link(self, record: Record, position: RecordPosition) -> None:
        if url := get_string(record, "prUrl"):
            self.pull_request_links[url] = position

    def _process_leaf_record(self, record: Record, _position: RecordPosition) -> None:
        self._branches.set_reported_leaf(get_string(record, "leafUuid"))

    def _process_result(self, record: Record, block: Record, position: RecordPosition) -> None:
        call = self._open_calls.pop(get_string(block, "tool_use_id"), None)
        if call is None:
            return
        text, uuid = records.result_text(block), get_string(record, "uuid")
        if call.tool_name == "AskUserQuestion" and (
            pairs := facts.find_clarified_answers(text[:MAX_ANSWER_CHARACTERS])
        ):
            self._process_chosen_answers(pairs, position, uuid)
        if refusal := facts.find_refusal(call, record, block, text, position):
            self.refusals.append(refusal)
            if refusal.is_by_user and refusal.quote.text:
                self._process_typed_words(refusal.quote._replace(is_correction=True))
        elif call.tool_name == "Bash":
            self._process_run(call, record, block, text, position)
        elif call.tool_name == records.POLL_TOOL:
            self._process_poll(call, block, text, position)
        elif records.is_error(block):
            if call.tool_name.startswith(facts.SERVER_TOOL_PREFIX):
                self.tool_errors[call.tool_name] = Quote(text, position, uuid)
        else:
            self._process_success(call, records.tool_details(record), Quote(text, position, uuid))
            self._process_agent_result(call, record, Quote(text, position, uuid))

    def _process_run(
        self, call: PendingCall, record: Record, block: Record, text: str, position: RecordPosition
    ) -> None:
        """Process the outcome of a shell command."""
        if run := facts.make_shell_run(call, record, block, text, position):
            task = facts.find_task_id(record, block, text) if run.is_background else ""
            if task:
                self._background_runs[task] = len(self.runs)
            self.runs.append(run)

    def _process_poll(
        self, call: PendingCall, block: Record, text: str, position: RecordPosition
    ) -> None:
        """Process a poll of a running command. The command may then continue under another task id."""
        run_index = self._background_runs.get(call.find_first_text(records.POLLED_TASK_FIELD))
        if run_index is None:
            return
        run = self.runs[run_index]
        self.runs[run_index] = facts.update_polled_run(run, call, block, text, position)
        if task := get_string(block, records.TASK_FIELD):
            self._background_runs[task] = run_index

    def _process_agent_result(self, call: PendingCall, record: Record, quote: Quote) -> None:
        """Process the report of a sub-agent, or the start of a background sub-agent."""
        may_write = not _READ_ONLY_AGENT_TYPE_PATTERN.search(call.find_first_text("subagent_type"))
        if call.tool_name in _AGENT_TOOLS and may_write:
            self.agents_may_write = True
        if call.tool_name in _REPORT_TOOLS:
            self.running_agents.pop(call.find_first_text("task_id", "agentId", "agent_id"), None)
        agent = records.agent_id_of_result(record)
        if agent:
            self.agent_orders[agent] = self._order
        if agent and records.tool_details(record).get("isAsync") is True:
            self.running_agents[agent] = Quote(
                call.find_first_text("description", "prompt"), call.position
            )
        elif call.tool_name in _AGENT_TOOLS and not quote.text.startswith(
            _BACKGROUND_START_PREFIXES
        ):
            self._process_report(quote, call.folder, may_write=may_write)

    def _process_report(self, quote: Quote, folder: str, *, may_write: bool) -> None:
        """Process the report of a sub-agent that was started in ``folder``."""
        self.reports.append(quote._replace(text=agent_reports.strip_agent_id(quote.text)))
        if may_write:
            self.reports_of_writers.append((quote, folder))

    def add_reported_changes(self) -> None:
        """Add the files that were changed according to the reports of sub-agents without a transcript."""
        for report, folder in self.reports_of_writers:
            for path in agent_reports.find_changed_files(report.text):
                self.changes.append(
                    FileChange(path, folder, report.position, is_known_only_from_report=True)
                )

    def _process_success(self, call: PendingCall, details: Record, quote: Quote) -> None:
        text, position, uuid = quote.text, quote.position, quote.uuid
        self.tool_errors.pop(call.tool_name, None)
        if call.tool_name in _WRITING_TOOLS or (
            call.tool_name.startswith(facts.SERVER_TOOL_PREFIX)
            and _WRITING_SERVER_TOOL_PATTERN.search(call.tool_name[:200])
        ):
            is_new = get_string(details, "type") == "create"
            self.changes += [
                FileChange(path, call.folder, call.position, is_new) for path in call.list_paths()
            ]
            self.marks.process_call(call, is_new=is_new)
        elif call.tool_name in records.READING_TOOLS and not text.startswith(
            _EMPTY_READ_RESULT_PREFIX
        ):
            self.read_files.update(
                {(path, call.folder): call.position for path in call.list_paths()}
            )
        elif call.tool_name == "AskUserQuestion":
            self._process_chosen_answers(
                facts.find_chosen_answers(call, details, text[:MAX_ANSWER_CHARACTERS]),
                position,
                uuid,
            )
        elif call.tool_name == "ExitPlanMode":
            plan, approved_plan = (
                call.find_first_text("plan"),
                text.partition("## Approved Plan:\n")[2],
            )
            self.plan_mode = False
            if not is_placeholder(plan):
                self.plans.append(
                    Quote(plan or approved_plan, call.position if plan else position, uuid)
                )
        elif call.tool_name == "EnterPlanMode":
            self.plan_mode = True
        elif call.tool_name == "TodoWrite":
            self.todo_list.replace_todos(call)
        elif call.tool_name == "TaskCreate":
            self.todo_list.create_task(call, text)
        elif call.tool_name == "TaskUpdate":
            self.todo_list.update_task(call)

    def _process_chosen_answers(
        self, questions_and_answers: Sequence[tuple[str, str]], position: RecordPosition, uuid: str
    ) -> None:
        """Process the user's answers to the assistant's questions.

        Each pair consists of a question and its answer. If the user did not answer, there are no
        pairs.
        """
        if not questions_and_answers:
            return
        self.answers += [
            Quote(f"{question} -> {answer}", position, uuid)
            for question, answer in questions_and_answers
        ]
        self._end_turn()
        self._process_typed_words(
            Quote("\n".join(answer for _, answer in questions_and_answers), position, uuid)
        )

    def _process_notification(self, text: str, position: RecordPosition) -> None:
        ending = facts.parse_task_ending(text)
        if ending is not None:
            self.running_agents.pop(ending.task_id, None)
            if report := facts.find_report(text):
                self._process_report(Quote(report, position), "", may_write=self.agents_may_write)
        run_index = self._background_runs.get(ending.task_id) if ending else None
        if ending is not None and run_index is not None:
            self.runs[run_index] = self.runs[run_index]._replace(
                status=ending.status, has_failed=ending.has_failed, result_position=position
            )


def _is_part_of_work(record: Record) -> bool:
    """Check whether a record is an answer, a prompt or a result, rather than a notice from the client."""
    if get_string(record, "type") == records.ASSISTANT or records.is_prompt(record):
        return True
    return any(block.get("type") == records.RESULT for block in records.list_blocks(record))


def _find_call_folder(inputs: Record, cwd: str) -> str:
    """Return the folder in which a call runs: the session's folder, unless the call names a different one."""
    named_folder = get_string(inputs, _FOLDER_INPUT_NAME)
    if not named_folder:
        return cwd
    is_windows = bool(ntpath.splitdrive(named_folder)[0])
    if is_windows and ntpath.normcase(named_folder) == ntpath.normcase(cwd):
        return cwd
    if is_windows:
        return named_folder
    return posixpath.join(cwd, named_folder).rstrip("/")


def _extract_user_words(text: str) -> str:
    """Return the user's words in an opening of this plugin.

    These words are the next step or, if there is none, the text under the heading of a report.
    """
    # Imported here because only this plugin's children need it.
    from resume_hooks.sessions.opening_layout import (
        FORMER_REPORT_HEADING,
        REPORT_HEADING,
    )

    # The output of /clear comes before the opening.
    text = text[max(0, text.find(lineage_block.LINEAGE_START_MARKER)) :]
    next_step = (extract_next_step(text) or "").removeprefix(f"{NEW_TASK_NOTICE}\n")
    if next_step:
        return next_step
    for heading in (REPORT_HEADING, FORMER_REPORT_HEADING):
        report = text.partition(f"\n\n{heading}\n")[2]
        if report:
            return report
    return ""


_HANDLERS_BY_RECORD_TYPE: dict[str, Callable[[LineageFacts, Record, RecordPosition], None]] = {
    records.ASSISTANT: LineageFacts._process_assistant_record,  # noqa: SLF001 - the table belongs to the class
    records.USER: LineageFacts._process_user_record,  # noqa: SLF001
    records.ATTACHMENT: LineageFacts._process_attachment,  # noqa: SLF001
    records.SYSTEM: LineageFacts._process_system_record,  # noqa: SLF001
    metadata_records.PR_LINK: LineageFacts._process_pull_request_link,  # noqa: SLF001
    metadata_records.QUEUE_OPERATION: LineageFacts._process_queue_record,  # noqa: SLF001
    metadata_records.LAST_PROMPT: LineageFacts._process_leaf_record,  # noqa: SLF001
}
