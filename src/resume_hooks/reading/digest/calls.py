"""The latest tool calls of a session with their results. They fill the remaining space of an opening.

The file is read backwards from its end, so the cost depends on the size of the output and not on
the session's size.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import Enum
from math import fsum
from typing import NamedTuple

from resume_hooks.reading.digest import prose, shell, talk
from resume_hooks.reading.digest.entries import Digest, MessageKind, TalkMessage
from resume_hooks.reading.digest.facts import EMPTY_ANSWERS
from resume_hooks.reading.digest.script_writes import find_files_written_by_scripts
from resume_hooks.reading.digest.session_commands import has_check_word
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts import records, script_calls
from resume_hooks.transcripts.lines import open_transcript, read_lines_backwards
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, string

# the maximum number of characters in a result; the middle of a longer result is cut out
MAX_RESULT_CHARACTERS = 1_500
MAX_OUTPUT_CHARACTERS = 700  # the maximum number of characters in a successful command's output
# the maximum number of characters in the output of an older check that passed
MAX_PASSED_CHECK_CHARACTERS = 160
# an end of this many times its shown length is redacted, because a secret in it is shorter than
# that
REDACTED_MULTIPLE = 4
# calls that fill this many times the available space are collected before the calls to show are
# chosen
COLLECTED_MULTIPLE = 2
# the fraction of the available space for edits, which come before the latest other calls
EDITS_FRACTION = 0.35
# the fraction for committed edits, if the last request is about them and there are no others
COMMITTED_FRACTION = 0.3
# the maximum number of characters in a file that was read before the last request and is not
# related to that request
MAX_OLD_RESULT_CHARACTERS = 300
# the maximum number of characters in the parts of a diff that are related to the last request
MAX_HUNKS_CHARACTERS = 4_000
# the maximum number of characters in a diff that are searched for these parts
MAX_DIFF_CHARACTERS = 40_000
MIN_REQUEST_WORDS = 3  # if the request has fewer words, the words of the last answer also count
# the maximum number of searches that count as latest calls, and of passed checks that are shown
# with their logs
MAX_LATEST_CALLS = 2
# the fraction of the available space for earlier calls that are related to the last request
RELATED_FRACTION = 0.35
MAX_RARE_FRACTION = 0.25  # a word that occurs in a larger fraction of the calls is not significant
# the maximum number of characters in the last request that are searched for words
MAX_REQUEST_CHARACTERS = 2_000
MAX_CHANGES_PER_FILE = 2  # the maximum number of changes shown for each file; the latest are shown
# the maximum number of characters in a tool's name, and of a call's input
MAX_TOOL_NAME_CHARACTERS, MAX_INPUT_CHARACTERS = 80, 600
# the maximum number of bytes at the end of a file that are searched
MAX_SEARCHED_BYTES = 24_000_000
_MAIN_INPUTS = ("command", "file_path", "pattern", "query", "url", "prompt", "description", "code")
_COMMIT_COMMAND = compile_lazily(r"\bgit\b[^\n;&|]*\scommit\b")
_IMPORT_LINE = compile_lazily(
    r"\s*(?:import\b|from \S+ import\b|use \S+;|#include\b|\"[\w./-]+\"\Z|[)(]\s*\Z)"
)
_FAILURE_WORD = compile_lazily(
    r"(?i:(?<!\b0 )(?<!\bno )(?<!\bwithout )\b(?:fail(?:ed|ing|s|ures?)?|error(?:ed|s)?)\b(?!\s?[:=]?\s?0\b)|"
    r"\b(?:panic|fatal|cannot|could not))"
)
"""Words that report a failure, except in "0 failed" and "no errors"."""

_HUNK_HEADER = compile_lazily(r"^@@ [^\n]* @@", re.MULTILINE)
_DIFF_PART_START = compile_lazily(r"^(?=@@ |diff --git )", re.MULTILINE)
# the maximum number of characters in the first row of an omitted part of a diff
MAX_DIFF_HEADER_CHARACTERS = 160
_FAILURE_PREFIXES = ("Exit code", "Error")
_PROGRESS_ROWS = compile_lazily(
    r"\n[ \t]*(?:(?:Compiling|Downloading|Downloaded|Checking|Fresh|Locking|Adding) \S+ v\d[^\n]*\n[ \t]*){3,}"
)
"""At least three rows of progress of a build, which hide its errors in a shortened output."""

# the inputs whose text a call writes into a file
_WRITTEN_TEXT_INPUTS = ("new_string", "content", "new_source")
_EXCLUDED_TOOLS = frozenset(
    {
        "TodoWrite",
        "TodoRead",
        "TaskCreate",
        "TaskUpdate",
        "TaskList",
        "TaskGet",
        "AskUserQuestion",
        "ExitPlanMode",
        "Task",
        "Agent",
    }
)
"""Tools whose calls are in other sections."""


_SEARCH_TOOLS = frozenset({"Grep", "Glob", "LS", "WebSearch", "ToolSearch"})
_SEARCH_PROGRAMS = frozenset({"grep", "rg", "ag", "find", "fd", "ls", "tree", "wc"})


class CallValue(Enum):
    """How useful a call is for continuing the work."""

    EDIT = "edit"
    OTHER = "other"
    BRIEF = "brief"
    """An older check that passed. The start and end of its log are enough."""
    LOW = "low"
    """An older search. Its result is already used or outdated."""
    COMMITTED = "committed"
    """An edit that was committed afterwards. It comes last, unless the last request is about it or a review."""


_REVIEW_WORDS = frozenset({"feedback", "review", "reviews", "reviewer"})
"""Words of a request about edits that were committed."""

_UNLIKELY_VALUES = frozenset({CallValue.LOW, CallValue.COMMITTED})
"""The values of calls that are not among the latest calls."""


_CallKey = tuple[str, str]
"""The tool, and a text that is equal for calls of which the latest supersedes the others, or ``""``."""


class _CandidateCall(NamedTuple):
    """A call as it is shown, and its usefulness.

    ``is_old_read`` means that the call read a file or the state of git before the last request. It can be
    read again.
    """

    message: TalkMessage
    value: CallValue
    is_old_read: bool
    key: _CallKey


class _Answer(NamedTuple):
    """The result of a call, and whether the call failed or was refused."""

    text: str
    is_error: bool


def collect_latest_calls(
    session: SessionFile, digest: Digest, max_characters: int
) -> list[TalkMessage]:
    """Return the latest calls with results, oldest first, in about ``max_characters``.

    A part of the space is used for earlier calls that contain words of the last request. The result
    is empty if the file is gone.

    The calls end at the same record as ``digest``. If a file was read and later written, the
    written text is shown.
    """
    results: dict[str, _Answer] = {}
    candidates: list[_CandidateCall] = []
    later_calls = _LaterCalls()
    remaining_characters = round(max_characters * COLLECTED_MULTIPLE)
    request_words, request_number = (
        _last_request_words(digest),
        _last_request_number(digest, session),
    )
    try:
        with open_transcript(session.file) as stream:
            end, line_number = digest.read_end
            for line in read_lines_backwards(stream, end):
                line_number -= 1
                if remaining_characters <= 0 or end - line.offset > MAX_SEARCHED_BYTES:
                    break
                if b'"tool_' in line.raw:
                    record = records.parse(line.body)
                else:
                    record = None
                if (
                    record is None
                    or record.get("isSidechain") is True
                    or script_calls.is_copy_of_error(record)
                ):
                    continue
                results |= _read_results(record)
                for block in reversed(records.calls(record)):
                    answer = results.pop(string(block, "id"), None)
                    if answer is None or _is_useless(block, answer):
                        later_calls.record_commit(block)
                        continue
                    if not later_calls.register_call(block, answer):
                        continue
                    value = later_calls.rate_call(block, answer)
                    max_output_characters = (
                        MAX_PASSED_CHECK_CHARACTERS
                        if value is CallValue.BRIEF
                        else MAX_OUTPUT_CHARACTERS
                    )
                    text = _format_call(block, answer.text, max_output_characters, request_words)
                    message = TalkMessage(
                        MessageKind.CALL, f"{session.session_id}:{line_number}", text
                    )
                    is_old = line_number < request_number and not answer.is_error
                    is_old_read = is_old and _reads_or_reports(block)
                    key = later_calls.latest_call_key(block)
                    candidates.append(_CandidateCall(message, value, is_old_read, key))
                    is_likely = value not in _UNLIKELY_VALUES and not is_old_read
                    remaining_characters -= len(text) if is_likely else len(text) // 4
    except OSError:
        return []
    candidates = [
        _add_count_note(candidate, later_calls.count_equal_calls(candidate.key))
        for candidate in candidates
    ]
    return _choose_calls(candidates, max_characters, request_words)[::-1]


def _last_request_words(digest: Digest) -> frozenset[str]:
    """Return the significant words of the last request in a digest. If there are few, add those of the last answer.

    A name from the code is significant enough by itself.
    """
    words: frozenset[str] = frozenset()
    for kind in (MessageKind.REQUEST, MessageKind.CLOSING):
        latest = next((message for message in reversed(digest.talk) if message.kind is kind), None)
        has_identifier = any("_" in word for word in words)
        if latest is not None and len(words) < MIN_REQUEST_WORDS and not has_identifier:
            words |= prose.significant_words(latest.text[:MAX_REQUEST_CHARACTERS])
    return words


def _last_request_number(digest: Digest, session: SessionFile) -> int:
    """Return the record number of the last request if it is in this session, else 0."""
    for message in reversed(digest.talk):
        owner, _, number = message.ref.rpartition(":")
        if message.kind is MessageKind.REQUEST:
            return int(number) if owner == session.session_id else 0
    return 0


def _choose_calls(
    candidates: Sequence[_CandidateCall], max_characters: int, request_words: frozenset[str]
) -> list[TalkMessage]:
    """Return the calls to show, latest first: latest edits, latest other calls, calls related to the request.

    Searches, files that were read before the request, and committed edits come last.
    """
    messages = [candidate.message for candidate in candidates]
    scores = _score_calls(messages, request_words)
    for index, candidate in enumerate(candidates):
        if candidate.is_old_read and not scores[index]:
            messages[index] = candidate.message._replace(
                text=_shorten_old_result(candidate.message.text)
            )
    edit_indexes, committed_indexes, useful_indexes = [], [], []
    for index, candidate in enumerate(candidates):
        if candidate.value is CallValue.EDIT:
            edit_indexes.append(index)
        if candidate.value is CallValue.COMMITTED:
            committed_indexes.append(index)
        if candidate.value not in _UNLIKELY_VALUES and not candidate.is_old_read:
            useful_indexes.append(index)
    committed_indexes.sort(key=lambda index: (-scores[index], index))
    chosen_indexes = _select_fitting_calls(
        edit_indexes, messages, round(max_characters * EDITS_FRACTION)
    )
    if not edit_indexes and not request_words.isdisjoint(_REVIEW_WORDS):
        chosen_indexes = _select_fitting_calls(
            committed_indexes, messages, round(max_characters * COMMITTED_FRACTION)
        )
    remaining_characters = round(max_characters * (1 - RELATED_FRACTION))
    remaining_characters -= _count_characters(chosen_indexes, messages)
    latest_indexes = [index for index in useful_indexes if index not in chosen_indexes]
    chosen_indexes += _select_fitting_calls(latest_indexes, messages, remaining_characters)
    remaining_characters = max_characters - _count_characters(chosen_indexes, messages)
    remaining_indexes = [index for index in range(len(candidates)) if index not in chosen_indexes]
    remaining_indexes.sort(key=lambda index: (-scores[index], _rank_call(candidates[index]), index))
    chosen_indexes += _select_fitting_calls(remaining_indexes, messages, remaining_characters)
    return [messages[index] for index in sorted(chosen_indexes)]


def _rank_call(candidate: _CandidateCall) -> int:
    """Return the rank of a call that is not related to the last request; the lowest rank comes first."""
    if candidate.value is CallValue.COMMITTED:
        return 2
    return 1 if candidate.value is CallValue.LOW or candidate.is_old_read else 0


def _count_characters(indexes: Iterable[int], messages: Sequence[TalkMessage]) -> int:
    """Return the number of characters in the messages with these indexes."""
    return sum(len(messages[index].text) for index in indexes)


def _select_fitting_calls(
    indexes: Iterable[int], messages: Sequence[TalkMessage], max_characters: int
) -> list[int]:
    """Return the first calls that fit into the available space.

    The last call may exceed the space, because the space is approximate.
    """
    fitting_indexes: list[int] = []
    for index in indexes:
        if max_characters <= 0:
            break
        fitting_indexes.append(index)
        max_characters -= len(messages[index].text)
    return fitting_indexes


def _score_calls(messages: Sequence[TalkMessage], request_words: frozenset[str]) -> list[float]:
    """Return for each call how strongly it is related to some words. A rarer word counts more."""
    shared_words = [prose.significant_words(message.text) & request_words for message in messages]
    counts: Counter[str] = Counter()
    for call_words in shared_words:
        counts.update(call_words)
    scores: list[float] = []
    for call_words in shared_words:
        rare_words = []
        for word in call_words:
            if counts[word] <= max(2, len(messages) * MAX_RARE_FRACTION):
                rare_words.append(word)
        # ``fsum`` returns the same result for any order
        scores.append(fsum([1 / counts[word] for word in rare_words]))
    return scores


class _LaterCalls:
    """The calls that were processed so far, from the end of the file backwards.

    Earlier calls that these calls supersede are not shown.
    """

    def __init__(self) -> None:
        self._edit_counts: Counter[str] = Counter()
        self._whole_files: set[str] = set()
        self._longest_edits: dict[str, int] = {}
        self._call_counts: Counter[_CallKey] = Counter()
        self._is_repeated = False
        self._is_committed = False
        self._search_count = 0
        self._check_count = 0

    def rate_call(self, block: Record, answer: _Answer) -> CallValue:
        """Return the value of a shown call.

        A search, or the log of a passed check, is useful only if it is one of the latest calls.
        """
        tool = string(block, "name")
        if tool in records.WRITING_TOOLS:
            return CallValue.COMMITTED if self._is_committed else CallValue.EDIT
        parts: tuple[shell.SimpleCommand, ...] = ()
        if tool == "Bash":
            parts = shell.parse_simple_commands(string(records.mapping(block, "input"), "command"))
        if tool in _SEARCH_TOOLS or _is_search(parts):
            self._search_count += 1
            return CallValue.OTHER if self._search_count <= MAX_LATEST_CALLS else CallValue.LOW
        has_passed = not answer.is_error and _FAILURE_WORD.search(answer.text) is None
        if has_passed and any(part.words and has_check_word(part.words) for part in parts):
            self._check_count += 1
            return CallValue.OTHER if self._check_count <= MAX_LATEST_CALLS else CallValue.BRIEF
        return CallValue.OTHER

    def record_commit(self, block: Record) -> None:
        """Record whether a call is a commit. Everything that was written before the commit is in the repository."""
        command = string(records.mapping(block, "input"), "command")
        if _COMMIT_COMMAND.search(command) is not None:
            self._is_committed = True

    def register_call(self, block: Record, answer: _Answer) -> bool:
        """Count a call. Return whether to show the call.

        A call is not shown if it changed little, or if it succeeded and was later repeated.
        """
        self.record_commit(block)
        tool, inputs = string(block, "name"), records.mapping(block, "input")
        path = records.file_from_input(inputs)
        if tool in _EXCLUDED_TOOLS:
            return False
        if path in self._whole_files:
            return False  # a later call wrote the whole file
        if tool == "Write":
            self._whole_files.add(path)
        if tool in records.WRITING_TOOLS:
            self._edit_counts[path] += 1
            edit_length = len(string(inputs, "new_string"))
            self._longest_edits[path] = max(self._longest_edits.get(path, 0), edit_length)
            is_latest = self._edit_counts[path] <= MAX_CHANGES_PER_FILE
            return (is_latest or self._is_committed) and _changes_more_than_imports(inputs)
        if tool in records.READING_TOOLS and path in self._edit_counts:
            return False
        if tool == "Bash" and self._is_outdated(string(inputs, "command"), answer):
            return False
        key = tool, _repetition_key(tool, inputs)
        self._is_repeated = False
        if not key[1]:
            return True
        is_repeated = self._is_repeated = key in self._call_counts
        self._call_counts[key] += 1
        if tool == records.POLL_TOOL:
            return not is_repeated
        return not is_repeated or answer.is_error or _FAILURE_WORD.search(answer.text) is not None

    def _is_outdated(self, command: str, answer: _Answer) -> bool:
        """Check whether a command only reads or writes files that later calls wrote anew.

        An edit that writes more than the whole call shows counts, too: the call shows a stub.
        """
        parts = shell.parse_simple_commands(command)
        paths = [path for path, _ in shell.find_changed_paths(parts)]
        paths += find_files_written_by_scripts(command)
        if not paths:
            for words, _ in parts:
                if words and words[0] not in _FILE_READERS:
                    return False
                operands = shell.select_operands(words[1:])
                paths += [word for word in operands if _FILE_NAME.search(word)]
        rewritten_files = set(self._whole_files)
        for path, characters in self._longest_edits.items():
            if characters > len(command) + len(answer.text):
                rewritten_files.add(path)
        return bool(paths) and all(_is_among(path, rewritten_files) for path in paths)

    def latest_call_key(self, block: Record) -> _CallKey:
        """Return the key of the call that was processed last if it is the latest of its kind, else an empty one."""
        tool = string(block, "name")
        if self._is_repeated or tool in records.WRITING_TOOLS:
            return "", ""
        return tool, _repetition_key(tool, records.mapping(block, "input"))

    def count_equal_calls(self, key: _CallKey) -> int:
        """Return how many calls have a key."""
        return self._call_counts[key]


_FILE_READERS = frozenset({"cat", "sed", "head", "tail", "nl"})
_FILE_NAME = compile_lazily(r"[\w-]\.\w{1,8}\Z")


def _is_among(path: str, other_paths: Iterable[str]) -> bool:
    """Check whether a path is one of some paths. Each of them may be relative."""
    tail = f"/{path.removeprefix('./')}"
    return any(
        f"/{other_path}".endswith(tail) or tail.endswith(f"/{other_path}")
        for other_path in other_paths
    )


def _add_count_note(candidate: _CandidateCall, count: int) -> _CandidateCall:
    """Return a call with a note if it is the latest of several equal calls.

    The note has no number, because only the end of the file is searched.
    """
    if count < 2:
        return candidate
    head, separator, body = candidate.message.text.partition("\n")
    text = f"{head}\n[the latest of several such calls]{separator}{body}"
    return candidate._replace(message=candidate.message._replace(text=text))


def _reads_or_reports(block: Record) -> bool:
    """Check whether a call only reads files, by a tool or by commands, or only commits, pushes or shows git's state."""
    tool = string(block, "name")
    if tool != "Bash":
        return tool in records.READING_TOOLS
    parts = shell.parse_simple_commands(string(records.mapping(block, "input"), "command"))
    commands = [" ".join(part.words) for part in parts if part.words and part.words[0] != "cd"]
    return bool(commands) and all(map(_ROUTINE_COMMAND.match, commands))


_ROUTINE_COMMAND = compile_lazily(
    r"(?:cat|sed|head|tail|nl|echo|pwd|true)\b|git\s+(?:-C\s+\S+\s+)?(?:add|fetch|status|log|branch|"
    r"rev-parse|remote|diff\s+--(?:stat|name-only|name-status|check))\b|gh\s+(?:auth|pr\s+(?:create|edit))\b"
)
"""Commands that read files, and those whose results are in the lists of files and commits."""


def _is_search(parts: Sequence[shell.SimpleCommand]) -> bool:
    """Check whether a command only searches. The first program other than ``cd`` decides."""
    programs = []
    for part in parts:
        if part.words and part.words[0] != "cd":
            programs.append(part.words[0])
    return bool(programs) and programs[0] in _SEARCH_PROGRAMS


def _repetition_key(tool: str, inputs: Record) -> str:
    """Return a key that is equal for two calls if the later call supersedes the earlier one, or ``""``."""
    if tool == "Bash":
        return shell.make_command_key(string(inputs, "command"))
    if tool == records.POLL_TOOL:
        return string(inputs, records.POLLED_TASK_FIELD)
    if tool in records.READING_TOOLS and not inputs.get("offset"):
        return records.file_from_input(inputs)
    return ""


def _changes_more_than_imports(inputs: Record) -> bool:
    """Check whether an edit changes more than the imports of a file."""
    old_text, new_text = string(inputs, "old_string"), string(inputs, "new_string")
    if not old_text or not new_text:
        return True
    rows = set(new_text.split("\n")) ^ set(old_text.split("\n"))
    changed_rows = [row for row in rows if row.strip()]
    return not changed_rows or not all(_IMPORT_LINE.match(row) for row in changed_rows)


def _read_results(record: Record) -> dict[str, _Answer]:
    answers = {}
    for block in script_calls.results(record):
        answer = _Answer(records.result_text(block), records.is_error(block))
        answers[string(block, "tool_use_id")] = answer
    return answers


def _is_useless(block: Record, answer: _Answer) -> bool:
    """Check whether a call is useless: a write that failed, or a search without a match."""
    if string(block, "name") in records.WRITING_TOOLS:
        return answer.is_error
    if answer.text.startswith(_EMPTY_RESULT_PREFIXES):
        return True
    return not answer.is_error and answer.text.strip() in _EMPTY_OUTPUTS


_EMPTY_RESULT_PREFIXES = ("Operation stopped by hook", "Stop hook feedback", "Launching skill:")
"""The start of a result without contents: a hook stopped the work, or a skill was loaded."""

_EMPTY_OUTPUTS = EMPTY_ANSWERS | {
    "",
    "No matches found",
    "No files found",
    "(Bash completed with no output)",
}
"""The output of a search without a match."""


def _format_call(
    block: Record, answer: str, max_output_characters: int, request_words: frozenset[str]
) -> str:
    """Format a call: its input, and the text that it wrote or its result.

    ``max_output_characters`` limits the output of a successful command. If the output is a diff,
    its parts with some of the ``request_words`` are shown.
    """
    inputs = records.mapping(block, "input")
    main_input = next((value for key in _MAIN_INPUTS if (value := string(inputs, key))), "")
    shown_input = talk.format_text(
        main_input or json.dumps(inputs, ensure_ascii=False), MAX_INPUT_CHARACTERS
    )
    head = f"{collapse_line(plain_line(string(block, 'name')), MAX_TOOL_NAME_CHARACTERS)}: {shown_input}"
    written_text = next(
        (value for key in _WRITTEN_TEXT_INPUTS if (value := string(inputs, key))), ""
    )
    removed_text = "" if written_text else string(inputs, "old_string")
    if removed_text:
        return f"{head}\nremoved:\n{_shorten_output(removed_text, MAX_RESULT_CHARACTERS)}"
    output = (
        written_text or answer
    )  # the text that was written says more than the result of the write
    max_characters = MAX_RESULT_CHARACTERS
    if string(block, "name") == "Bash":
        output = _PROGRESS_ROWS.sub("\n", output)
        if not output.startswith(_FAILURE_PREFIXES):
            max_characters = max_output_characters
    if is_placeholder(output):
        shown_output = ""
    else:
        shown_output = _select_related_hunks(
            output, max_characters, request_words
        ) or _shorten_output(output, max_characters)
    if shown_output:
        return f"{head}\n{'wrote' if written_text else 'got'}:\n{shown_output}"
    return head


def _select_related_hunks(text: str, max_characters: int, request_words: frozenset[str]) -> str:
    """Return the whole parts of a long diff that contain some words, or ``""`` for any other text."""
    if len(text) <= max_characters or _HUNK_HEADER.search(text[:MAX_DIFF_CHARACTERS]) is None:
        return ""
    rows: list[str] = []
    remaining_characters = MAX_HUNKS_CHARACTERS
    has_related_hunk = False
    for part in _DIFF_PART_START.split(
        talk.format_text(text[:MAX_DIFF_CHARACTERS], MAX_DIFF_CHARACTERS)
    ):
        shared_words = prose.significant_words(part) & request_words
        if (
            len(shared_words) >= min(2, len(request_words))
            and 0 < len(part) <= remaining_characters
        ):
            has_related_hunk = has_related_hunk or part.startswith("@@")
            rows.append(part.rstrip("\n"))
            remaining_characters -= len(part)
        else:
            rows.append(part.partition("\n")[0][:MAX_DIFF_HEADER_CHARACTERS])
    selected_text = "\n".join(row for row in rows if row.strip())
    if has_related_hunk and len(selected_text) <= 2 * MAX_HUNKS_CHARACTERS:
        return selected_text
    return ""


def _shorten_old_result(text: str) -> str:
    """Shorten the result of a formatted call."""
    head, separator, result = text.partition("\ngot:\n")
    if len(result) <= MAX_OLD_RESULT_CHARACTERS:
        return text
    shortened = talk.keep_beginning(result, MAX_OLD_RESULT_CHARACTERS)
    if len(shortened) < MAX_OLD_RESULT_CHARACTERS // 3:  # for example, the number of a list item
        shortened = f"{result[: MAX_OLD_RESULT_CHARACTERS - 1].rstrip()}…"
    return f"{head}{separator}{shortened}\n[... {len(result) - len(shortened):,} characters ...]"


def _shorten_output(text: str, max_characters: int) -> str:
    """Format a text in about ``max_characters``.

    If the text is long, only its start and end are used.
    """
    redacted_characters = REDACTED_MULTIPLE * max_characters
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
