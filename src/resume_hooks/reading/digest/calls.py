"""Collect the latest tool calls of a session, with results, for the remaining space of an opening.

The file is read backwards from its end. So the cost depends on the available space and not on the
session's size.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from resume_hooks.reading.digest import prose, shell, talk
from resume_hooks.reading.digest.call_choice import CallUsefulness, CandidateCall, choose_calls
from resume_hooks.reading.digest.entries import Digest, MessageKind, TalkMessage
from resume_hooks.reading.digest.facts import EMPTY_RESULT_TEXTS
from resume_hooks.reading.digest.later_edits import (
    LaterEdits,
    find_removed_lines,
    find_replaced_text,
    find_written_text,
    list_edits,
)
from resume_hooks.reading.digest.open_calls import PLAN_TOOL
from resume_hooks.reading.digest.script_writes import find_files_written_by_scripts
from resume_hooks.reading.digest.session_commands import (
    TEMPORARY_PATH_PATTERN,
    has_check_word,
    is_check_part,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import collapse_line, format_count, plain_line
from resume_hooks.transcripts import records, script_calls
from resume_hooks.transcripts.lines import open_transcript, read_lines_backwards
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, get_string

# The maximum number of characters shown of a result. The middle of a longer result is left out.
MAX_RESULT_CHARACTERS = 1_500
# The maximum number of characters shown of a command's output if its failure is unresolved.
MAX_UNRESOLVED_ERROR_CHARACTERS = 3_000
# The number of characters of a command that are compared. A later call may show more output of a
# command that was started earlier. Such a call belongs to a listed failure if the failure's text
# contains the start of that command.
MAX_COMPARED_COMMAND_CHARACTERS = 60
# The maximum number of characters shown of a successful command's output.
MAX_OUTPUT_CHARACTERS = 700
# The maximum number of characters shown for an edit that concerns the last request or the last
# answer, and for a whole file that is shown instead of its edits.
MAX_RELEVANT_EDIT_CHARACTERS, MAX_WHOLE_FILE_CHARACTERS = 4_000, 6_000
# At most this many characters of the lines that an edit removed are shown.
MAX_REMOVED_TEXT_CHARACTERS = 600
# The maximum number of characters shown of the output of an older check that passed.
MAX_PASSED_CHECK_CHARACTERS = 160
# The maximum number of characters shown from the output of a failed command that later passed.
MAX_RESOLVED_FAILURE_CHARACTERS = 700
# A long output is redacted only at its start and its end. The text that is redacted is this many
# times as long as the text that is shown, so that a secret at the cut is still recognized.
REDACTED_LENGTH_FACTOR = 4
# The total length of the calls that are collected, as a multiple of the available space. The calls
# to show are chosen from them.
COLLECTED_CALLS_LENGTH_FACTOR = 2
# If a file was read before the last request and is unrelated to it, at most this many characters of
# the result are shown.
MAX_OLD_RESULT_CHARACTERS = 300
# The maximum total number of characters shown from the hunks of a diff that are related to the last
# request.
MAX_HUNKS_CHARACTERS = 4_000
# At most this many characters of a diff are searched for related hunks.
MAX_DIFF_CHARACTERS = 40_000
# If the last request contains fewer significant words, those in the last answer are used too.
MIN_REQUEST_WORDS = 3
# The maximum number of searches that are listed among the latest calls. Also the maximum number of
# passed checks whose output is shown.
MAX_LATEST_CALLS_PER_KIND = 2
# At most this many characters of the last request are searched for significant words.
MAX_REQUEST_CHARACTERS = 2_000
# The maximum number of edits shown for an ordinary file, and for a file that the last turn is
# about.
MAX_CHANGES_PER_FILE, MAX_CHANGES_PER_SUBJECT_FILE = 2, 4
# The maximum numbers of characters shown of a tool's name and of a call's input.
MAX_TOOL_NAME_CHARACTERS, MAX_INPUT_CHARACTERS = 80, 600
# The maximum number of characters shown of a pull request's description in a call.
MAX_DESCRIPTION_CHARACTERS = 2_000
# A call may show more output of a command that an earlier call started. This label is then shown
# before the command.
LATER_OUTPUT_LABEL = "later output of"
# At most this many bytes are read from the end of a file.
MAX_SEARCHED_BYTES = 24_000_000
_MAIN_INPUT_NAMES = (
    "command",
    "file_path",
    "pattern",
    "query",
    "url",
    "prompt",
    "description",
    "code",
)
_COMMIT_COMMAND_PATTERN = compile_lazily(r"\bgit\b[^\n;&|]*\scommit\b")
_IMPORT_LINE_PATTERN = compile_lazily(
    r"\s*(?:import\b|from \S+ import\b|use \S+;|#include\b|\"[\w./-]+\"\Z|[)(]\s*\Z)"
)
_FAILURE_WORD_PATTERN = compile_lazily(
    r"(?i:(?<!\b0 )(?<!\bno )(?<!\bwithout )\b(?:fail(?:ed|ing|s|ures?)?|error(?:ed|s)?)\b(?!\s?[:=]?\s?0\b)|"
    r"\b(?:panic|fatal|cannot|could not))"
)
"""Words that report a failure. "0 failed" and "no errors" are excluded."""

_HUNK_HEADER_PATTERN = compile_lazily(r"^@@ [^\n]* @@", re.MULTILINE)
_DIFF_PART_START_PATTERN = compile_lazily(r"^(?=@@ |diff --git )", re.MULTILINE)
# The maximum number of characters shown of a hunk's first line if the rest of the hunk is omitted.
MAX_DIFF_HEADER_CHARACTERS = 160
_FAILURE_PREFIXES = ("Exit code", "Error")
_FILE_NAME_IN_TEXT_PATTERN = compile_lazily(r"[\w-]+(?:\.[\w-]+)*\.\w{1,8}\b")
_PROGRESS_ROWS_PATTERN = compile_lazily(
    r"\n[ \t]*(?:(?:Compiling|Downloading|Downloaded|Checking|Fresh|Locking|Adding) \S+ v\d[^\n]*\n[ \t]*){3,}"
)
"""At least three successive rows of a build's progress. They are removed because a shortened output
would show them instead of the errors."""

_TOOLS_SHOWN_IN_OTHER_SECTIONS = frozenset(
    {
        "TodoWrite",
        "TodoRead",
        "TaskCreate",
        "TaskUpdate",
        "TaskList",
        "TaskGet",
        "AskUserQuestion",
        PLAN_TOOL,
        "Task",
        "Agent",
    }
)
"""Tools whose calls are shown in other sections."""


_PLANS_FOLDER = "/.claude/plans/"
"""The folder in which the client writes plans. Its files are left out, because the talk already
quotes each plan that was shown to the user."""

_SEARCH_TOOLS = frozenset({"Grep", "Glob", "LS", "WebSearch", "ToolSearch"})
_SEARCH_PROGRAMS = frozenset({"grep", "rg", "ag", "find", "fd", "ls", "tree", "wc"})


_CallKey = tuple[str, str]
"""The name of a tool, and a text made from the call's input. If two calls have the same key, the
later call supersedes the earlier one. If the text is ``""``, the call does not supersede other
calls."""


class _CallResult(NamedTuple):
    """The result of a call.

    ``is_error`` means that the call failed or was refused. ``is_running`` means that the command
    was still running.
    """

    text: str
    is_error: bool
    is_running: bool


class _LastTurnTopics(NamedTuple):
    """The topics of the last turn.

    ``request_words`` are the significant words in the last request. ``request_record_number`` is
    the record number of the request. ``file_names`` are the file names, without folders, that the
    last request and the last answer mention. ``unresolved_error_texts`` contains, for each failed
    command that has not succeeded since, the digest's entry about the command. The keys are the
    record numbers of these commands.
    """

    request_words: frozenset[str]
    request_record_number: int
    file_names: frozenset[str]
    unresolved_error_texts: Mapping[int, str]


class _ListedCall(NamedTuple):
    """A call that an opening may show, with its record number and its key.

    ``written_file`` is the path of the file that the call wrote, or ``""``.
    """

    candidate: CandidateCall
    record_number: int
    key: _CallKey
    written_file: str


def collect_latest_calls(
    session: SessionFile, digest: Digest, max_characters: int
) -> list[TalkMessage]:
    """Return the latest calls with their results, oldest first, in about ``max_characters``.

    Some of the space is used for earlier calls that contain words from the last request. The result
    is empty if the session's file is gone.

    Calls after the last record of ``digest`` are ignored. If a file was read and later written,
    only the written text is shown.
    """
    topics = _find_last_turn_topics(digest, session)
    later_calls = _CallsLaterInFile(topics)
    try:
        listed = _list_calls(
            session, digest, later_calls, max_characters * COLLECTED_CALLS_LENGTH_FACTOR
        )
    except OSError:
        return []
    texts = choose_calls(
        [call.candidate for call in listed],
        max_characters,
        topics.request_words,
        _shorten_old_result,
    )
    messages: list[TalkMessage] = []
    for index in sorted(texts, reverse=True):
        call = listed[index]
        text = _add_repetition_note(texts[index], later_calls.count_equal_calls(call.key))
        messages.append(
            TalkMessage(MessageKind.CALL, f"{session.session_id}:{call.record_number}", text)
        )
    return messages


def _list_calls(
    session: SessionFile, digest: Digest, later_calls: _CallsLaterInFile, max_characters: int
) -> list[_ListedCall]:
    """Return the calls that may be shown, latest first, in about ``max_characters``.

    Raise OSError if the file cannot be read.
    """
    results: dict[str, _CallResult] = {}
    listed: list[_ListedCall] = []
    remaining_characters = max_characters
    with open_transcript(session.file) as stream:
        end, line_number = digest.read_extent
        for line in read_lines_backwards(stream, end):
            line_number -= 1
            if remaining_characters <= 0 or end - line.offset > MAX_SEARCHED_BYTES:
                break
            if b'"tool_' in line.raw:
                record = records.parse_record(line.body)
            else:
                record = None
            if (
                record is None
                or record.get("isSidechain") is True
                or script_calls.is_copied_error_record(record)
            ):
                continue
            results |= _read_results(record)
            for block in reversed(records.list_calls(record)):
                answer = results.pop(get_string(block, "id"), None)
                if answer is None:
                    continue
                call = later_calls.register_call(block, answer, line_number)
                if call is None:
                    continue
                if _shows_whole_file(block, call):
                    listed = [one for one in listed if one.written_file != call.written_file]
                listed.append(call)
                characters = len(call.candidate.text)
                remaining_characters -= (
                    characters if call.candidate.is_shown_first else characters // 4
                )
    return listed


def _shows_whole_file(block: Record, call: _ListedCall) -> bool:
    """Check whether a call is shown as the complete text of a file, with the later edits applied."""
    return (
        get_string(block, "name") == "Write"
        and call.candidate.usefulness is CallUsefulness.RELEVANT_EDIT
    )


def _find_last_turn_topics(digest: Digest, session: SessionFile) -> _LastTurnTopics:
    names: set[str] = set()
    for kind in (MessageKind.REQUEST, MessageKind.CLOSING):
        latest = next((message for message in reversed(digest.talk) if message.kind is kind), None)
        if latest is not None:
            names.update(_FILE_NAME_IN_TEXT_PATTERN.findall(latest.text))
    unresolved_errors: dict[int, str] = {}
    for entry in digest.section_entries("errors"):
        owner, _, number = entry.ref.rpartition(":")
        if owner == session.session_id:
            unresolved_errors[int(number)] = entry.text
    return _LastTurnTopics(
        _find_last_request_words(digest),
        _find_last_request_record_number(digest, session),
        frozenset(names),
        unresolved_errors,
    )


def _find_last_request_words(digest: Digest) -> frozenset[str]:
    """Return the significant words in the last request and, if they are few, those in the last answer.

    The words in the last answer are not added if a word in the request contains an underscore,
    because such a word is a name from the code.
    """
    words: frozenset[str] = frozenset()
    for kind in (MessageKind.REQUEST, MessageKind.CLOSING):
        latest = next((message for message in reversed(digest.talk) if message.kind is kind), None)
        has_identifier = any("_" in word for word in words)
        if latest is not None and len(words) < MIN_REQUEST_WORDS and not has_identifier:
            words |= prose.find_significant_words(latest.text[:MAX_REQUEST_CHARACTERS])
    return words


def _find_last_request_record_number(digest: Digest, session: SessionFile) -> int:
    """Return the record number of the last request if it is in this session, else 0."""
    for message in reversed(digest.talk):
        owner, _, number = message.ref.rpartition(":")
        if message.kind is MessageKind.REQUEST:
            return int(number) if owner == session.session_id else 0
    return 0


class _CallsLaterInFile:
    """The calls that come later in the file than the current one. The file is read backwards.

    These calls decide whether an earlier call is superseded and therefore not shown.
    """

    def __init__(self, topics: _LastTurnTopics) -> None:
        self._topics = topics
        self._later_edits = LaterEdits()
        self._edit_counts: Counter[str] = Counter()
        self._whole_files: set[str] = set()
        self._longest_edits: dict[str, int] = {}
        self._call_counts: Counter[_CallKey] = Counter()
        # Maps a call's key to the record number of the last such call that passed.
        self._passed_numbers: dict[_CallKey, int] = {}
        # The first folder that the last passed call entered with ``cd``, by the call's key.
        self._passed_folders: dict[_CallKey, str] = {}
        self._polled_commands: set[str] = set()
        self._shown_errors: set[int] = set()
        # A note on each file that a later command changed or removed.
        self._change_notes: dict[str, str] = {}
        # The files that later calls changed, except temporary files. The dict serves as a set that
        # keeps the order in which the calls were processed.
        self._edited_paths: dict[str, None] = {}
        self._is_committed = False
        self._branches = _BranchTracker()
        # The files in later diffs of the work tree, up to the next commit.
        self._files_in_later_diffs: set[str] = set()
        self._has_plan = False
        self._search_count = 0
        self._check_count = 0

    def register_call(
        self, block: Record, answer: _CallResult, record_number: int
    ) -> _ListedCall | None:
        """Register a call. Return it in the form in which the opening shows it, or None if it is useless.

        ``record_number`` is the call's record number. A call is useless if it changed little, if it
        succeeded and was repeated later, or if later calls made its text obsolete.
        """
        tool, inputs = get_string(block, "name"), records.get_mapping(block, "input")
        self._has_plan = self._has_plan or tool == PLAN_TOOL
        if tool in records.WRITING_TOOLS:
            return None if answer.is_error else self._register_edit(block, record_number)
        key = tool, _make_repetition_key(tool, inputs)
        age_note = self._make_age_note(key, inputs, answer)
        if tool == "Bash" and not answer.is_error:
            self._register_effects_of_command(get_string(inputs, "command"), record_number)
            self._branches.update_branch_from_switch_output(answer.text)
        has_passed = not answer.is_error and (
            _is_diff(block) or _FAILURE_WORD_PATTERN.search(answer.text) is None
        )
        has_passed_later = key in self._passed_numbers
        if key[1] and has_passed:
            self._passed_numbers.setdefault(key, record_number)
            self._passed_folders.setdefault(key, _find_cd_folder(inputs))
        is_partial = self._was_polled_later(block) and answer.is_running
        if is_partial or _is_result_useless(answer) or self._is_superseded(block, answer):
            return None
        is_repeated = key in self._call_counts
        if key[1]:
            self._call_counts[key] += 1
        if is_repeated and (has_passed or tool == records.POLL_TOOL):
            return None
        if self._shows_unresolved_error(block, record_number):
            value = CallUsefulness.UNRESOLVED_ERROR
        elif has_passed_later:
            value = CallUsefulness.OLD_RUN
        else:
            value = self._rate_call(block, has_passed=has_passed)
        shown_key = ("", "") if is_repeated or has_passed_later else key
        return self._make_listed_call(block, answer, record_number, value, shown_key, age_note)

    def _shows_unresolved_error(self, block: Record, record_number: int) -> bool:
        """Check whether a call shows the output of an unresolved failure.

        ``record_number`` is the call's record number. If the call shows more output of a command
        that was started earlier, check whether a listed failure contains the start of that command.
        """
        numbers = {record_number} & self._topics.unresolved_error_texts.keys()
        command = get_string(records.get_mapping(block, "input"), "command")
        if get_string(block, "name") == records.POLL_TOOL and command:
            beginning = shell.make_command_key(command)[:MAX_COMPARED_COMMAND_CHARACTERS]
            for error_number, text in self._topics.unresolved_error_texts.items():
                if beginning in text:
                    numbers.add(error_number)
        numbers -= self._shown_errors
        self._shown_errors |= numbers
        return bool(numbers)

    def _was_polled_later(self, block: Record) -> bool:
        """Check whether a later call shows more output of this call's command.

        If this call is itself a poll, remember the polled command for the earlier calls.
        """
        command = get_string(records.get_mapping(block, "input"), "command")
        was_polled_later = command in self._polled_commands
        if get_string(block, "name") == records.POLL_TOOL and command:
            self._polled_commands.add(command)
        return was_polled_later

    def _make_listed_call(
        self,
        block: Record,
        answer: _CallResult,
        record_number: int,
        value: CallUsefulness,
        key: _CallKey,
        note: str,
    ) -> _ListedCall:
        """Return a call that wrote no file, in the form in which the opening shows it.

        ``note`` is a line to add to the call's text, or ``""``.
        """
        is_recent = record_number >= self._topics.request_record_number
        format_result = partial(
            _format_result, block, note, answer.text, self._topics.request_words
        )
        is_failure = answer.text.startswith(_FAILURE_PREFIXES)
        if value is CallUsefulness.OLD_RUN:
            if is_failure or _FAILURE_WORD_PATTERN.search(answer.text) is not None:
                max_characters = MAX_RESOLVED_FAILURE_CHARACTERS
            else:
                max_characters = MAX_PASSED_CHECK_CHARACTERS
        elif value is CallUsefulness.UNRESOLVED_ERROR:
            max_characters = MAX_UNRESOLVED_ERROR_CHARACTERS
        elif get_string(block, "name") != "Bash" or is_failure:
            max_characters = MAX_RESULT_CHARACTERS
        else:
            max_characters = MAX_OUTPUT_CHARACTERS
        candidate = CandidateCall(
            format_result(max_characters),
            value,
            is_recent=is_recent,
            is_read_before_last_request=not is_recent
            and not answer.is_error
            and _is_routine_call(block),
            format_with_limit=format_result,
            is_worth_extending=value is not CallUsefulness.OLD_RUN and _shows_file_contents(block),
        )
        return _ListedCall(candidate, record_number, key, "")

    def _make_age_note(self, key: _CallKey, inputs: Record, answer: _CallResult) -> str:
        """Return a note if later calls may have made a call's result obsolete, else ``""``.

        Only results that depend on files or on the state of git get a note.
        """
        tool = key[0]
        if tool == "Grep":
            searched_paths = [get_string(inputs, "path")]
            return _format_age_note(
                [_format_count_of_edited_files(self._select_edited_paths(searched_paths))]
            )
        if tool != "Bash":
            return ""
        parts = shell.parse_simple_commands(get_string(inputs, "command"))
        is_check = any(map(is_check_part, parts))
        is_failure = answer.is_error or (
            is_check and _FAILURE_WORD_PATTERN.search(answer.text) is not None
        )
        passed_number = self._passed_numbers.get(key)
        folders = {_find_cd_folder(inputs), self._passed_folders.get(key, "")} - {""}
        if is_failure and passed_number is not None and len(folders) <= 1:
            return f"[it worked later, at :{passed_number}]"
        git_verbs = _list_git_verbs(parts)
        if is_check or not git_verbs.isdisjoint(_WORK_TREE_QUERY_SUBCOMMANDS):
            edited_paths = list(self._edited_paths)
        else:
            edited_paths = self._select_edited_paths(_list_read_files(parts))
        events = [_format_count_of_edited_files(edited_paths)]
        is_failed_commit = answer.is_error and "commit" in git_verbs
        if self._is_committed and (
            is_failed_commit or not git_verbs.isdisjoint(_COMMIT_QUERY_SUBCOMMANDS)
        ):
            events.append("a commit")
        if not answer.is_error:
            self._branches.update_from_query_output(git_verbs, answer.text)
        if self._branches.is_on_other_branch and not git_verbs.isdisjoint(
            _BRANCH_QUERY_SUBCOMMANDS
        ):
            events.append("another branch")
        return _format_age_note(events)

    def _add_edited_path(self, path: str) -> None:
        if TEMPORARY_PATH_PATTERN.search(path) is None:
            self._edited_paths[path] = None

    def _select_edited_paths(self, searched_paths: Iterable[str]) -> list[str]:
        """Return the changed files that are among ``searched_paths`` or inside a folder among them."""
        searched_parts = []
        for searched_path in searched_paths:
            name = searched_path.removeprefix("./").strip("/")
            if name not in {"", "."}:
                searched_parts.append(f"/{name}/")
        selected_paths = []
        for path in self._edited_paths:
            if any(part in f"/{path}/" for part in searched_parts):
                selected_paths.append(path)
        return selected_paths

    def _register_effects_of_command(self, command: str, record_number: int) -> None:
        """Register a command's commit, and the files that the command changed or removed.

        ``record_number`` is the number of the command's record.
        """
        if _COMMIT_COMMAND_PATTERN.search(command) is not None:
            self._is_committed = True  # The edits before this commit were committed.
        for path, is_removed in shell.find_changed_paths(shell.parse_simple_commands(command)):
            verb = "removed" if is_removed else "changed"
            self._add_edited_path(path)
            self._change_notes.setdefault(
                path, f"[a command {verb} the file later, at :{record_number}]"
            )

    def _find_change_note(self, path: str) -> str:
        """Return a note if a later command changed or removed the file, else ``""``."""
        for changed_path, note in self._change_notes.items():
            if _matches_any_path(path, [changed_path]):
                return note
        return ""

    def _register_edit(self, block: Record, record_number: int) -> _ListedCall | None:
        """Register a call that wrote a file.

        Return the call in the form in which the opening shows it, or None if the call is not worth
        showing.
        """
        tool, inputs = get_string(block, "name"), records.get_mapping(block, "input")
        path = records.file_path_from_input(inputs)
        present_text = self._later_edits.find_current_text(inputs)
        self._later_edits.add_edit(inputs)
        if path in self._whole_files or (self._has_plan and _PLANS_FOLDER in path):
            return None
        was_edited_later = path in self._edit_counts
        self._edit_counts[path] += 1
        self._add_edited_path(path)
        edit_length = sum(len(get_string(edit, "new_string")) for edit in list_edits(inputs))
        self._longest_edits[path] = max(self._longest_edits.get(path, 0), edit_length)
        if tool == "Write":
            self._whole_files.add(path)
        is_superseded = not present_text and find_written_text(inputs) != ""
        if is_superseded or not any(map(_changes_more_than_imports, list_edits(inputs))):
            return None
        is_recent = record_number >= self._topics.request_record_number
        value = self._rate_edit(path, is_recent=is_recent)
        max_characters = MAX_RESULT_CHARACTERS
        if value is CallUsefulness.RELEVANT_EDIT and tool != "Write":
            max_characters = MAX_RELEVANT_EDIT_CHARACTERS if is_recent else MAX_RESULT_CHARACTERS
        elif value is CallUsefulness.RELEVANT_EDIT:
            max_characters = MAX_WHOLE_FILE_CHARACTERS
            if was_edited_later and len(present_text) > max_characters:
                value = CallUsefulness.LOW  # The later edits show the relevant parts of the file.
        format_edit = partial(_format_edit, block, present_text, self._find_change_note(path))
        is_worth_extending = value in {CallUsefulness.RELEVANT_EDIT, CallUsefulness.OTHER_EDIT}
        candidate = CandidateCall(
            format_edit(max_characters),
            value,
            is_recent=is_recent,
            is_read_before_last_request=False,
            format_with_limit=format_edit,
            is_worth_extending=is_worth_extending,
        )
        return _ListedCall(candidate, record_number, ("", ""), path)

    def _rate_edit(self, path: str, *, is_recent: bool) -> CallUsefulness:
        """Return how useful it is to show an edit of the file ``path``.

        The caller has already counted this edit.
        """
        if self._edit_counts[path] > MAX_CHANGES_PER_SUBJECT_FILE:
            return CallUsefulness.LOW
        if self._is_committed and not is_recent:
            return CallUsefulness.COMMITTED_EDIT
        is_latest = self._edit_counts[path] <= MAX_CHANGES_PER_FILE
        is_named = posixpath.basename(path) in self._topics.file_names
        if is_named or is_recent:
            return CallUsefulness.RELEVANT_EDIT
        return CallUsefulness.OTHER_EDIT if is_latest else CallUsefulness.LOW

    def _rate_call(self, block: Record, *, has_passed: bool) -> CallUsefulness:
        """Return the value of a call that did not write a file.

        A search or the log of a passed check is useful only if it is one of the latest calls.
        """
        tool = get_string(block, "name")
        parts: tuple[shell.SimpleCommand, ...] = ()
        if tool == "Bash":
            parts = shell.parse_simple_commands(
                get_string(records.get_mapping(block, "input"), "command")
            )
        if tool in _SEARCH_TOOLS or _is_search(parts):
            self._search_count += 1
            return (
                CallUsefulness.OTHER
                if self._search_count <= MAX_LATEST_CALLS_PER_KIND
                else CallUsefulness.LOW
            )
        if has_passed and any(part.words and has_check_word(part.words) for part in parts):
            self._check_count += 1
            return (
                CallUsefulness.OTHER
                if self._check_count <= MAX_LATEST_CALLS_PER_KIND
                else CallUsefulness.OLD_RUN
            )
        return CallUsefulness.OTHER

    def _is_superseded(self, block: Record, answer: _CallResult) -> bool:
        """Check whether a call need not be shown, because later calls or another section replace it."""
        tool, inputs = get_string(block, "name"), records.get_mapping(block, "input")
        path = records.file_path_from_input(inputs)
        if tool in _TOOLS_SHOWN_IN_OTHER_SECTIONS or path in self._whole_files:
            return True
        if tool in records.READING_TOOLS and path in self._edit_counts:
            return True
        if tool != "Bash":
            return False
        command = get_string(inputs, "command")
        return self._is_outdated(command, answer) or self._do_later_diffs_contain(command, answer)

    def _do_later_diffs_contain(self, command: str, answer: _CallResult) -> bool:
        """Check whether a command is a diff of the work tree whose files all appear in later diffs.

        Also remember the files in this diff, for the comparison with earlier diffs.
        """
        parts = shell.parse_simple_commands(command)
        if _COMMIT_COMMAND_PATTERN.search(command) is not None:
            # Diffs from before this commit do not show the same changes as diffs after it, so they
            # do not replace each other.
            self._files_in_later_diffs.clear()
            return False
        if answer.is_error or not any(map(_diffs_work_tree, parts)):
            return False
        files = set(_FILE_IN_DIFF_PATTERN.findall(answer.text))
        is_covered = bool(files) and files <= self._files_in_later_diffs
        self._files_in_later_diffs |= files
        has_other_contents = any(
            not is_check_part(part) and part.words[:2] not in _GIT_STATE_QUERY_COMMANDS
            for part in parts
        )
        return is_covered and not has_other_contents

    def _is_outdated(self, command: str, answer: _CallResult) -> bool:
        """Check whether a command only reads or writes files that later calls rewrote.

        A file is treated as rewritten if a later call wrote the whole file, or if a later edit of
        the file is longer than the command and its output together.
        """
        parts = shell.parse_simple_commands(command)
        paths = [path for path, _ in shell.find_changed_paths(parts)]
        paths += find_files_written_by_scripts(command)
        if not paths:
            for words, _ in parts:
                if words and words[0] not in _FILE_READING_PROGRAMS:
                    return False
                operands = shell.select_operands(words[1:])
                paths += [word for word in operands if _FILE_NAME_AT_END_PATTERN.search(word)]
        rewritten_files = set(self._whole_files)
        for path, characters in self._longest_edits.items():
            if characters > len(command) + len(answer.text):
                rewritten_files.add(path)
        return bool(paths) and all(_matches_any_path(path, rewritten_files) for path in paths)

    def count_equal_calls(self, key: _CallKey) -> int:
        """Return how many of the useful calls processed so far have this key."""
        return self._call_counts[key]


def _find_cd_folder(inputs: Record) -> str:
    """Return the first folder to which a command changes with ``cd``, or ``""`` if it has no ``cd``."""
    parts = shell.parse_simple_commands(get_string(inputs, "command"))
    return shell.find_start_folder(parts) or ""


def _list_read_files(simple_commands: Sequence[shell.SimpleCommand]) -> list[str]:
    """Return the files that the simple commands in ``simple_commands`` show or search."""
    names: list[str] = []
    for words, _ in simple_commands:
        if words and words[0] in _FILE_READING_PROGRAMS | _SEARCH_PROGRAMS:
            operands = shell.select_operands(words[1:])
            names += [word for word in operands if _FILE_NAME_AT_END_PATTERN.search(word)]
    return names


def _format_count_of_edited_files(paths: Sequence[str]) -> str:
    return f"{format_count(len(paths), 'file')} edited" if paths else ""


def _format_age_note(events: Iterable[str]) -> str:
    """Return a row such as ``[since then: 2 files edited]``, or ``""`` if all events are empty."""
    known_events = ", ".join(filter(None, events))
    return f"[since then: {known_events}]" if known_events else ""


_WORK_TREE_QUERY_SUBCOMMANDS = frozenset({"status", "diff"})
_COMMIT_QUERY_SUBCOMMANDS = _WORK_TREE_QUERY_SUBCOMMANDS | {"log"}
_BRANCH_QUERY_SUBCOMMANDS = _COMMIT_QUERY_SUBCOMMANDS | {"branch", "rev-parse"}
"""Git subcommands whose output is outdated after an edit, a commit or a switch to another branch.
"""

_SWITCH_MESSAGE_PATTERN = compile_lazily(r"(?:\A|\n)Switched to (a new )?branch '([^'\n]+)'")
_BRANCH_PATTERNS = {
    "status": compile_lazily(r"(?:\A|\n)(?:On branch |## )(\S+?)(?=\.\.\.|\s|\Z)"),
    "branch": compile_lazily(r"(?:\A|\n)\* (\S+)"),
    "log": compile_lazily(r"\(HEAD -> ([^,)\s]+)"),
    "show": compile_lazily(r"\(HEAD -> ([^,)\s]+)"),
}
"""Maps a git subcommand to the pattern that finds the current branch in its output."""


class _BranchTracker:
    """Determines the current branch at each call. The calls are processed from the last to the first."""

    def __init__(self) -> None:
        self._last_branch = ""  # The branch to which the session switched last.
        self._next_branch = ""  # The branch to which the session first switched after the call.
        # The branch on which the current call ran, or "" if it is unknown.
        self._branch_at_call = ""
        # The branches that were created after the current call.
        self._created_branches: set[str] = set()

    @property
    def is_on_other_branch(self) -> bool:
        """Whether the call certainly ran on a branch other than the session's last branch.

        Git reports a switch only if it changes the branch. So if the next switch after the call
        goes to the last branch, the call ran on a different one.
        """
        if self._last_branch in self._created_branches:
            return True
        if self._branch_at_call:
            return self._last_branch not in {"", self._branch_at_call}
        return self._last_branch != "" and self._last_branch == self._next_branch

    def update_from_query_output(self, git_verbs: frozenset[str], output: str) -> None:
        """Read the current branch from git's output, if the output shows the branch."""
        for verb, pattern in _BRANCH_PATTERNS.items():
            match = pattern.search(output) if verb in git_verbs else None
            if match is not None:
                self._branch_at_call = match[1]

    def update_branch_from_switch_output(self, output: str) -> None:
        """Read the switches between branches from git's output.

        The branch before the first switch is unknown.
        """
        for new_mark, branch in reversed(_SWITCH_MESSAGE_PATTERN.findall(output)):
            self._last_branch = self._last_branch or branch
            self._next_branch = branch
            self._branch_at_call = ""
            if new_mark:
                self._created_branches.add(branch)


def _list_git_verbs(simple_commands: Sequence[shell.SimpleCommand]) -> frozenset[str]:
    """Return the git subcommands in a command, leaving out comparisons such as ``git diff a..b``."""
    verbs: set[str] = set()
    for part in simple_commands:
        if part.words[:1] == ("git",) and not any(".." in word for word in part.words):
            verbs.update([*shell.iterate_git_arguments(part.words)][:1])
    return frozenset(verbs)


_FILE_READING_PROGRAMS = frozenset({"cat", "sed", "head", "tail", "nl"})
_FILE_NAME_AT_END_PATTERN = compile_lazily(r"[\w-]\.\w{1,8}\Z")


def _matches_any_path(path: str, other_paths: Iterable[str]) -> bool:
    """Check whether ``path`` is one of ``other_paths``.

    Two paths are treated as equal even if one of them lacks the first folders of the other.
    """
    tail = f"/{path.removeprefix('./')}"
    return any(
        f"/{other_path}".endswith(tail) or tail.endswith(f"/{other_path}")
        for other_path in other_paths
    )


def _add_repetition_note(text: str, equal_call_count: int) -> str:
    """If there are several equal calls, add a note to the text of the latest one.

    The note does not contain ``equal_call_count``, because calls far from the end of the file are
    not counted.
    """
    if equal_call_count < 2:
        return text
    head, separator, body = text.partition("\n")
    return f"{head}\n[the latest of several such calls]{separator}{body}"


def _is_routine_call(block: Record) -> bool:
    """Check whether a call only reads files or only runs routine commands such as ``git status``."""
    tool = get_string(block, "name")
    if tool != "Bash":
        return tool in records.READING_TOOLS
    parts = shell.parse_simple_commands(get_string(records.get_mapping(block, "input"), "command"))
    commands = [" ".join(part.words) for part in parts if part.words and part.words[0] != "cd"]
    return bool(commands) and all(map(_ROUTINE_COMMAND_PATTERN.match, commands))


_ROUTINE_COMMAND_PATTERN = compile_lazily(
    r"(?:cat|sed|head|tail|nl|echo|pwd|true)\b|git\s+(?:-C\s+\S+\s+)?(?:add|fetch|status|log|branch|"
    r"rev-parse|remote|diff\s+--(?:stat|name-only|name-status|check))\b|gh\s+(?:auth|pr\s+(?:create|edit))\b"
)
"""Commands that read files, and commands whose results are in the digest's lists of files and
commits."""


def _is_search(simple_commands: Sequence[shell.SimpleCommand]) -> bool:
    """Check whether the first program of a command is a search program, ignoring ``cd``."""
    programs = []
    for part in simple_commands:
        if part.words and part.words[0] != "cd":
            programs.append(part.words[0])
    return bool(programs) and programs[0] in _SEARCH_PROGRAMS


def _shows_file_contents(block: Record) -> bool:
    """Check whether a call's result is a text that is worth reading whole, and not the log of a command."""
    if get_string(block, "name") != "Bash":
        return get_string(block, "name") not in _SEARCH_TOOLS
    command = get_string(records.get_mapping(block, "input"), "command")
    for words, _ in shell.parse_simple_commands(command):
        if words and (
            words[0] in _FILE_READING_PROGRAMS
            or not _CONTENT_SHOWING_SUBCOMMANDS.isdisjoint(words[1:3])
        ):
            return True
    return False


def _is_diff(block: Record) -> bool:
    """Check whether a call is a ``git diff``.

    Words such as "error" in a diff do not mean that the call failed.
    """
    command = get_string(records.get_mapping(block, "input"), "command")
    parts = shell.parse_simple_commands(command) if get_string(block, "name") == "Bash" else ()
    return any(part.words[:1] == ("git",) and "diff" in part.words[1:3] for part in parts)


def _diffs_work_tree(simple_command: shell.SimpleCommand) -> bool:
    """Check whether a simple command is a ``git diff`` that does not name a commit."""
    operands = [
        word for word in simple_command.words[2:] if not word.startswith("-") or word == "--"
    ]
    is_of_commits = (
        operands[:1] != ["--"]
        and bool(operands)
        and not _FILE_NAME_AT_END_PATTERN.search(operands[0])
    )
    return simple_command.words[:2] == ("git", "diff") and not is_of_commits


_GIT_STATE_QUERY_COMMANDS = (("git", "diff"), ("git", "status"))
_FILE_IN_DIFF_PATTERN = compile_lazily(r"^diff --git a/(\S+) b/", re.MULTILINE)

_CONTENT_SHOWING_SUBCOMMANDS = frozenset({"diff", "show", "view"})
"""The subcommands of git and gh that show contents, as in ``gh pr diff``."""


def _make_repetition_key(tool: str, inputs: Record) -> str:
    """Return a key for a call. If two calls have the same key, the later call supersedes the earlier one.

    The key is ``""`` if the call does not supersede other calls.
    """
    if tool == "Bash":
        return shell.make_command_key(get_string(inputs, "command"))
    if tool == records.POLL_TOOL:
        return get_string(inputs, records.POLLED_TASK_FIELD)
    if tool in records.READING_TOOLS and not inputs.get("offset"):
        return records.file_path_from_input(inputs)
    return ""


def _changes_more_than_imports(edit: Record) -> bool:
    """Check whether an edit changes more than the imports of a file."""
    old_text, new_text = get_string(edit, "old_string"), get_string(edit, "new_string")
    if not old_text or not new_text:
        return True
    rows = set(new_text.split("\n")) ^ set(old_text.split("\n"))
    changed_rows = [row for row in rows if row.strip()]
    return not changed_rows or not all(_IMPORT_LINE_PATTERN.match(row) for row in changed_rows)


def _read_results(record: Record) -> dict[str, _CallResult]:
    answers = {}
    for block in script_calls.list_results_with_output(record):
        is_running = records.TASK_FIELD in block
        answer = _CallResult(records.result_text(block), records.is_error(block), is_running)
        answers[get_string(block, "tool_use_id")] = answer
    return answers


def _is_result_useless(answer: _CallResult) -> bool:
    """Check whether the result of a call contains nothing of interest."""
    if answer.text.startswith(_EMPTY_RESULT_PREFIXES):
        return True
    return not answer.is_error and answer.text.strip() in _EMPTY_OUTPUTS


_EMPTY_RESULT_PREFIXES = ("Operation stopped by hook", "Stop hook feedback", "Launching skill:")
"""The beginnings of useless results. Examples are the results of a call that a hook stopped and of
a call that loaded a skill."""

_EMPTY_OUTPUTS = EMPTY_RESULT_TEXTS | {
    "",
    "No matches found",
    "No files found",
    "(Bash completed with no output)",
}
"""The complete results of calls that found nothing or printed nothing."""


def _format_edit(block: Record, present_text: str, note: str, max_characters: int) -> str:
    """Return the text that an opening shows for a call that wrote a file.

    ``present_text`` is the part of the written text that is still in the file. If it is empty, the
    opening shows the text that the call removed. ``note`` is a line about later changes to the
    file, or ``""``.
    """
    inputs = records.get_mapping(block, "input")
    rows = [_format_call_head(block)]
    if note:
        rows.append(note)
    if not present_text:
        rows += ["removed:", _shorten_output(find_replaced_text(inputs), max_characters)]
    elif not is_placeholder(present_text):
        is_unchanged = present_text == find_written_text(inputs)
        rows.append("wrote:" if is_unchanged else "wrote, with later edits:")
        rows.append(_shorten_output(present_text, max_characters))
        removed_lines = find_removed_lines(inputs)
        if removed_lines.strip():
            rows += ["removed:", _shorten_output(removed_lines, MAX_REMOVED_TEXT_CHARACTERS)]
    return "\n".join(rows)


def _format_result(
    block: Record, note: str, answer: str, request_words: frozenset[str], max_characters: int
) -> str:
    """Return the text that an opening shows for a call and its result.

    If the result is a long diff, the text contains only those parts of the diff in which some of
    the ``request_words`` occur. ``note`` is added to the text if it is not empty.
    """
    head = "\n".join(filter(None, (_format_call_head(block), note)))
    if is_placeholder(answer):
        return head
    output = answer
    if get_string(block, "name") == "Bash":
        output = _PROGRESS_ROWS_PATTERN.sub("\n", answer)
    related_hunks = _select_related_hunks(
        output, min(max_characters, MAX_RESULT_CHARACTERS), request_words
    )
    shown_output = related_hunks or _shorten_output(output, max_characters)
    if shown_output:
        return f"{head}\ngot:\n{shown_output}"
    return head


def _format_call_head(block: Record) -> str:
    """Return the name of a call's tool and the call's main input, for example ``Bash: ls``."""
    inputs = records.get_mapping(block, "input")
    main_input = next(
        (value for key in _MAIN_INPUT_NAMES if (value := get_string(inputs, key))), ""
    )
    name = get_string(block, "name")
    if name == records.POLL_TOOL and "command" in inputs:
        name = LATER_OUTPUT_LABEL
    is_description = _DESCRIBING_COMMAND_PATTERN.search(main_input) is not None
    shown_input = talk.format_text(
        main_input or json.dumps(inputs, ensure_ascii=False),
        MAX_DESCRIPTION_CHARACTERS if is_description else MAX_INPUT_CHARACTERS,
    )
    return f"{collapse_line(plain_line(name), MAX_TOOL_NAME_CHARACTERS)}: {shown_input}"


_DESCRIBING_COMMAND_PATTERN = compile_lazily(r"\b(?:gh|glab)\s+(?:pr|mr)\s+(?:create|edit)\b")
"""Commands that contain the description of a pull request. A later request may ask to change it."""


def _select_related_hunks(text: str, max_characters: int, request_words: frozenset[str]) -> str:
    """Return those hunks of a long diff in which some of the ``request_words`` occur.

    A line with the number of omitted lines replaces each omitted hunk. The result is ``""`` if the
    text is not a long diff or no hunk is related to the request.
    """
    if (
        len(text) <= max_characters
        or _HUNK_HEADER_PATTERN.search(text[:MAX_DIFF_CHARACTERS]) is None
    ):
        return ""
    rows: list[str] = []
    omitted_hunks: list[str] = []
    remaining_characters = MAX_HUNKS_CHARACTERS
    has_related_hunk = False
    for part in _DIFF_PART_START_PATTERN.split(
        talk.format_text(text[:MAX_DIFF_CHARACTERS], MAX_DIFF_CHARACTERS)
    ):
        shared_words = prose.find_significant_words(part) & request_words
        if (
            len(shared_words) >= min(2, len(request_words))
            and 0 < len(part) <= remaining_characters
        ):
            has_related_hunk = has_related_hunk or part.startswith("@@")
            rows += [*_format_omitted_hunks(omitted_hunks), part.rstrip("\n")]
            omitted_hunks = []
            remaining_characters -= len(part)
        elif part.startswith("@@"):
            omitted_hunks.append(part)
        else:
            rows += _format_omitted_hunks(omitted_hunks)
            omitted_hunks = []
            header, _, body = part.rstrip("\n").partition("\n")
            rows.append(header[:MAX_DIFF_HEADER_CHARACTERS])
            if body and not part.startswith("diff "):
                rows.append(f"[... {format_count(body.count(chr(10)) + 1, 'line')} ...]")
    rows += _format_omitted_hunks(omitted_hunks)
    selected_text = "\n".join(row for row in rows if row.strip())
    if has_related_hunk and len(selected_text) <= 2 * MAX_HUNKS_CHARACTERS:
        return selected_text
    return ""


def _format_omitted_hunks(hunks: Sequence[str]) -> list[str]:
    """Return the lines that stand in for a run of omitted hunks of a diff.

    A single hunk is replaced by its header and its number of lines. Several hunks are replaced by
    one line with the number of hunks and their total number of lines.
    """
    line_count = sum(hunk.rstrip("\n").count("\n") for hunk in hunks)
    if len(hunks) > 1:
        return [f"[... {len(hunks)} hunks, {format_count(line_count, 'line')} ...]"]
    headers = [hunk.partition("\n")[0][:MAX_DIFF_HEADER_CHARACTERS] for hunk in hunks]
    if headers and line_count:
        headers.append(f"[... {format_count(line_count, 'line')} ...]")
    return headers


def _shorten_old_result(text: str) -> str:
    """Shorten the result of an old call. ``text`` contains the call and the result."""
    head, separator, result = text.partition("\ngot:\n")
    if len(result) <= MAX_OLD_RESULT_CHARACTERS:
        return text
    shortened = talk.keep_beginning(result, MAX_OLD_RESULT_CHARACTERS)
    # The kept beginning may be useless. For example, it may consist only of the number of a list
    # item.
    if len(shortened) < MAX_OLD_RESULT_CHARACTERS // 3:
        shortened = f"{result[: MAX_OLD_RESULT_CHARACTERS - 1].rstrip()}…"
    return f"{head}{separator}{shortened}\n[... {len(result) - len(shortened):,} characters ...]"


def _shorten_output(text: str, max_characters: int) -> str:
    """Redact and shorten a text to about ``max_characters``.

    Only the start and the end of a long text are redacted and shown.
    """
    redacted_characters = REDACTED_LENGTH_FACTOR * max_characters
    if len(text) <= 2 * redacted_characters:
        return talk.format_text(text, max_characters)
    head = talk.keep_beginning(
        talk.format_text(text[:redacted_characters], redacted_characters), max_characters * 2 // 3
    )
    tail = talk.keep_ending(
        talk.format_text(text[-redacted_characters:], redacted_characters), max_characters // 3
    )
    omitted_characters = len(text) - len(head) - len(tail)
    return "\n".join(
        part for part in (head, f"[... {omitted_characters:,} characters ...]", tail) if part
    )
