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
from resume_hooks.reading.digest.entries import Digest, Kind, TalkMessage
from resume_hooks.reading.digest.facts import EMPTY_ANSWERS
from resume_hooks.reading.digest.work import has_check_word
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts import records, script_calls
from resume_hooks.transcripts.lines import open_transcript, read_lines_backwards
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, string

RESULT = 1_500  # the maximum characters of a result; the middle of a longer result is cut out
PRINTED = 700  # the maximum characters of a successful command's output
BRIEFLY_PRINTED = 160  # the maximum characters of the output of an older check that passed
# an end of this many times its shown length is redacted, because a secret in it is shorter than
# that
NEAR = 4
# calls that fill this many times the available space are collected before the calls to show are
# chosen
LOOKED_THROUGH = 2
# the fraction of the available space for the latest edits, which come before the latest other calls
EDITS = 0.35
OLD_RESULT = (
    # the maximum characters of a file that was read before the last request and is not related to
    # that request
    300
)
HUNKS = 4_000  # the maximum characters of the parts of a diff that are related to the last request
DIFF_READ = 40_000  # the maximum characters of a diff that are searched for these parts
FEW_WORDS = 3  # if the request has fewer words, the words of the last answer also count
# the maximum number of searches that count as latest calls, and of passed checks that are shown
# with their logs
LATEST = 2
# the fraction of the available space for earlier calls that are related to the last request
ABOUT = 0.35
RARE = 0.25  # a word that occurs in a larger fraction of the calls is not significant
REQUEST = 2_000  # the maximum characters of the last request that are searched for words
CHANGES = 2  # the maximum number of changes shown for each file; the latest are shown
TOOL, INPUT = 80, 600  # the maximum characters of a tool's name, and of a call's input
REACH = 24_000_000  # the maximum bytes at the end of a file that are searched
_BRIEFLY = ("command", "file_path", "pattern", "query", "url", "prompt", "description", "code")
_COMMITS = compile_lazily(r"\bgit\b[^\n;&|]*\scommit\b")
_IMPORTS = compile_lazily(
    r"\s*(?:import\b|from \S+ import\b|use \S+;|#include\b|\"[\w./-]+\"\Z|[)(]\s*\Z)"
)
_FAILS = compile_lazily(
    r"(?i:(?<!\b0 )(?<!\bno )(?<!\bwithout )\b(?:fail(?:ed|ing|s|ures?)?|error(?:ed|s)?)\b(?!\s?[:=]?\s?0\b)|"
    r"\b(?:panic|fatal|cannot|could not))"
)
"""Words that report a failure, except in "0 failed" and "no errors"."""

_HUNK = compile_lazily(r"^@@ [^\n]* @@", re.MULTILINE)
_PARTS_OF_DIFF = compile_lazily(r"^(?=@@ |diff --git )", re.MULTILINE)
DIFF_HEAD = 160  # the maximum characters of the first row of an omitted part of a diff
_FAILED = ("Exit code", "Error")
_CHANGE = ("new_string", "content", "new_source")  # the inputs whose text a call writes into a file
_NEVER = frozenset(
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


_SEARCHES = frozenset({"Grep", "Glob", "LS", "WebSearch", "ToolSearch"})
_SEARCH_PROGRAMS = frozenset({"grep", "rg", "ag", "find", "fd", "ls", "tree", "wc"})


class Value(Enum):
    """How useful a call is for continuing the work."""

    EDIT = "edit"
    OTHER = "other"
    BRIEF = "brief"
    """An older check that passed. The start and end of its log are enough."""
    LOW = "low"
    """An older search. Its result is already used or outdated."""


_CallKey = tuple[str, str]
"""The tool, and a text that is equal for calls of which the latest supersedes the others, or ``""``."""


class _FoundCall(NamedTuple):
    """A call as it is shown, and its usefulness.

    ``is_old`` means that the call read a file before the last request. The file can be read again.
    """

    message: TalkMessage
    value: Value
    is_old: bool
    key: _CallKey


class _Answer(NamedTuple):
    """The result of a call, and whether the call failed or was refused."""

    text: str
    is_error: bool


def latest_calls(session: SessionFile, digest: Digest, room: int) -> list[TalkMessage]:
    """Return the latest calls with results, oldest first, in about ``room`` characters.

    A part of the space is used for earlier calls that contain words of the last request. The result
    is empty if the file is gone.

    The calls end at the same record as ``digest``. If a file was read and later written, the
    written text is shown.
    """
    results: dict[str, _Answer] = {}
    found: list[_FoundCall] = []
    later = _LaterCalls()
    left = round(room * LOOKED_THROUGH)
    wanted, asked_at = _request_words(digest), _request_number(digest, session)
    try:
        with open_transcript(session.file) as stream:
            end, number = digest.read_to
            for line in read_lines_backwards(stream, end):
                number -= 1
                if left <= 0 or end - line.offset > REACH:
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
                results |= _results_in_record(record)
                for block in reversed(records.calls(record)):
                    answer = results.pop(string(block, "id"), None)
                    if answer is None or _says_nothing(block, answer):
                        later.note_commit(block)
                        continue
                    if not later.is_shown(block, answer):
                        continue
                    value = later.value_of(block, answer)
                    printed = BRIEFLY_PRINTED if value is Value.BRIEF else PRINTED
                    text = _format_call(block, answer.text, printed, wanted)
                    message = TalkMessage(Kind.CALL, f"{session.session_id}:{number}", text)
                    is_old = number < asked_at and not answer.is_error
                    is_read = string(block, "name") in records.READERS
                    key = later.key_to_count(block)
                    found.append(_FoundCall(message, value, is_old and is_read, key))
                    left -= len(text) if value is not Value.LOW else len(text) // 4
    except OSError:
        return []
    found = [_with_count(each, later.count_equal_calls(each.key)) for each in found]
    return _chosen_calls(found, room, wanted)[::-1]


def _request_words(digest: Digest) -> frozenset[str]:
    """Return the significant words of the last request in a digest. If there are few, add those of the last answer."""
    words: frozenset[str] = frozenset()
    for kind in (Kind.REQUEST, Kind.CLOSING):
        latest = next((each for each in reversed(digest.talk) if each.kind is kind), None)
        if latest is not None and len(words) < FEW_WORDS:
            words |= prose.telling_words(latest.text[:REQUEST])
    return words


def _request_number(digest: Digest, session: SessionFile) -> int:
    """Return the record number of the last request if it is in this session, else 0."""
    for message in reversed(digest.talk):
        owner, _, number = message.ref.rpartition(":")
        if message.kind is Kind.REQUEST:
            return int(number) if owner == session.session_id else 0
    return 0


def _chosen_calls(
    found: Sequence[_FoundCall], room: int, wanted: frozenset[str]
) -> list[TalkMessage]:
    """Return the calls to show, latest first: latest edits, latest other calls, calls related to the request.

    Older searches come last.
    """
    messages = [each.message for each in found]
    weights = _weigh_calls(messages, wanted)
    for at, each in enumerate(found):
        if each.is_old and not weights[at]:
            messages[at] = each.message._replace(text=_with_short_result(each.message.text))
    edits = [at for at, each in enumerate(found) if each.value is Value.EDIT]
    others = [at for at, each in enumerate(found) if each.value in {Value.OTHER, Value.BRIEF}]
    chosen = _fitting_calls(edits, messages, round(room * EDITS))
    left = round(room * (1 - ABOUT)) - sum(len(messages[at].text) for at in chosen)
    latest = sorted({*edits, *others} - {*chosen})
    chosen += _fitting_calls(latest, messages, left)
    left = room - sum(len(messages[at].text) for at in chosen)
    rest = [at for at in range(len(found)) if at not in chosen]
    rest.sort(key=lambda at: (-weights[at], found[at].value is Value.LOW, at))
    chosen += _fitting_calls(rest, messages, left)
    return [messages[at] for at in sorted(chosen)]


def _fitting_calls(places: Iterable[int], found: Sequence[TalkMessage], room: int) -> list[int]:
    """Return the first calls that fit into the available space.

    The last call may exceed the space, because the space is approximate.
    """
    fitting: list[int] = []
    for at in places:
        if room <= 0:
            break
        fitting.append(at)
        room -= len(found[at].text)
    return fitting


def _weigh_calls(found: Sequence[TalkMessage], wanted: frozenset[str]) -> list[float]:
    """Return for each call how strongly it is related to some words. A rarer word counts more."""
    words = [prose.telling_words(call.text) & wanted for call in found]
    counts = Counter(word for each in words for word in each)
    weights: list[float] = []
    for each in words:
        rare = []
        for word in each:
            if counts[word] <= max(2, len(found) * RARE):
                rare.append(word)
        # ``fsum`` returns the same result for any order
        weights.append(fsum([1 / counts[word] for word in rare]))
    return weights


class _LaterCalls:
    """The calls that were processed so far, from the end of the file backwards.

    Earlier calls that these calls supersede are not shown.
    """

    def __init__(self) -> None:
        self._written: Counter[str] = Counter()
        self._seen: Counter[_CallKey] = Counter()
        self._is_repeated = False
        self._is_committed = False
        self._searches = 0
        self._checks = 0

    def value_of(self, block: Record, answer: _Answer) -> Value:
        """Return the value of a shown call.

        A search, or the log of a passed check, is useful only if it is one of the latest calls.
        """
        tool = string(block, "name")
        if tool in records.WRITERS:
            return Value.EDIT
        parts: tuple[shell.SimpleCommand, ...] = ()
        if tool == "Bash":
            parts = shell.simple_commands(string(records.mapping(block, "input"), "command"))
        if tool in _SEARCHES or _searches(parts):
            self._searches += 1
            return Value.OTHER if self._searches <= LATEST else Value.LOW
        passed = not answer.is_error and _FAILS.search(answer.text) is None
        if passed and any(part.words and has_check_word(part.words) for part in parts):
            self._checks += 1
            return Value.OTHER if self._checks <= LATEST else Value.BRIEF
        return Value.OTHER

    def note_commit(self, block: Record) -> None:
        """Record whether a call is a commit. Everything that was written before the commit is in the repository."""
        command = string(records.mapping(block, "input"), "command")
        if _COMMITS.search(command) is not None:
            self._is_committed = True

    def is_shown(self, block: Record, answer: _Answer) -> bool:
        """Check whether to show a call.

        A call is not shown if it changed little, or if it succeeded and was later repeated.
        """
        self.note_commit(block)
        tool, given = string(block, "name"), records.mapping(block, "input")
        path = records.file_from_input(given)
        if tool in _NEVER:
            return False
        if tool in records.WRITERS:
            self._written[path] += 1
            return (
                self._written[path] <= CHANGES and not self._is_committed and _changes_more(given)
            )
        if tool in records.READERS and path in self._written:
            return False
        key = tool, _again_key(tool, given)
        self._is_repeated = False
        if not key[1]:
            return True
        is_again = self._is_repeated = key in self._seen
        self._seen[key] += 1
        if tool == records.POLL:
            return not is_again
        return not is_again or answer.is_error or _FAILS.search(answer.text) is not None

    def key_to_count(self, block: Record) -> _CallKey:
        """Return the key of the call that was processed last if it is the latest of its kind, else an empty one."""
        tool = string(block, "name")
        if self._is_repeated or tool in records.WRITERS:
            return "", ""
        return tool, _again_key(tool, records.mapping(block, "input"))

    def count_equal_calls(self, key: _CallKey) -> int:
        """Return how many calls have a key."""
        return self._seen[key]


def _with_count(found: _FoundCall, count: int) -> _FoundCall:
    """Return a call with a note on how many equal calls it is the latest of."""
    if count < 2:
        return found
    head, mark, rest = found.message.text.partition("\n")
    text = f"{head}\n[the latest of {count} such calls]{mark}{rest}"
    return found._replace(message=found.message._replace(text=text))


def _searches(parts: Sequence[shell.SimpleCommand]) -> bool:
    """Check whether a command only searches. The first program other than ``cd`` decides."""
    programs = []
    for part in parts:
        if part.words and part.words[0] != "cd":
            programs.append(part.words[0])
    return bool(programs) and programs[0] in _SEARCH_PROGRAMS


def _again_key(tool: str, given: Record) -> str:
    """Return a key that is equal for two calls if the later call supersedes the earlier one, or ``""``."""
    if tool == "Bash":
        return shell.command_core(string(given, "command"))
    if tool == records.POLL:
        return string(given, records.POLLED)
    if tool in records.READERS and not given.get("offset"):
        return records.file_from_input(given)
    return ""


def _changes_more(given: Record) -> bool:
    """Check whether an edit changes more than the imports of a file."""
    before, after = string(given, "old_string"), string(given, "new_string")
    if not before or not after:
        return True
    rows = set(after.split("\n")) ^ set(before.split("\n"))
    changed = [row for row in rows if row.strip()]
    return not changed or not all(_IMPORTS.match(row) for row in changed)


def _results_in_record(record: Record) -> dict[str, _Answer]:
    return {
        string(block, "tool_use_id"): _Answer(records.result_text(block), records.is_error(block))
        for block in script_calls.results(record)
    }


def _says_nothing(block: Record, answer: _Answer) -> bool:
    """Check whether a call is useless: a write that failed, or a search without a match."""
    if string(block, "name") in records.WRITERS:
        return answer.is_error
    if answer.text.startswith(_STOPPED):
        return True
    return not answer.is_error and answer.text.strip() in _EMPTY


_STOPPED = ("Operation stopped by hook", "Stop hook feedback")
"""The start of the result after a hook stopped the work. The result matters only at that moment."""

_EMPTY = EMPTY_ANSWERS | {
    "",
    "No matches found",
    "No files found",
    "(Bash completed with no output)",
}
"""The output of a search without a match."""


def _format_call(block: Record, answer: str, printed: int, wanted: frozenset[str]) -> str:
    """Format a call: its input, and the text that it wrote or its result.

    ``printed`` is the maximum characters of a successful command's output. If the output is a diff,
    the parts with the ``wanted`` words are shown.
    """
    given = records.mapping(block, "input")
    named = next((value for key in _BRIEFLY if (value := string(given, key))), "")
    what = talk.shown_text(named or json.dumps(given, ensure_ascii=False), INPUT)
    head = f"{collapse_line(plain_line(string(block, 'name')), TOOL)}: {what}"
    written = next((value for key in _CHANGE if (value := string(given, key))), "")
    removed = "" if written else string(given, "old_string")
    if removed:
        return f"{head}\nremoved:\n{_shorten_output(removed, RESULT)}"
    got = written or answer  # the text that was written says more than the result of the write
    if string(block, "name") == "Bash" and not got.startswith(_FAILED):
        most = printed
    else:
        most = RESULT
    if is_placeholder(got):
        shown = ""
    else:
        shown = _hunks_about(got, most, wanted) or _shorten_output(got, most)
    if shown:
        return f"{head}\n{'wrote' if written else 'got'}:\n{shown}"
    return head


def _hunks_about(text: str, most: int, wanted: frozenset[str]) -> str:
    """Return the whole parts of a long diff that contain some words, or ``""`` for any other text."""
    if len(text) <= most or _HUNK.search(text[:DIFF_READ]) is None:
        return ""
    rows: list[str] = []
    left = HUNKS
    is_about = False
    for part in _PARTS_OF_DIFF.split(talk.shown_text(text[:DIFF_READ], DIFF_READ)):
        shares = prose.telling_words(part) & wanted
        if len(shares) >= min(2, len(wanted)) and 0 < len(part) <= left:
            is_about = is_about or part.startswith("@@")
            rows.append(part.rstrip("\n"))
            left -= len(part)
        else:
            rows.append(part.partition("\n")[0][:DIFF_HEAD])
    shown = "\n".join(row for row in rows if row.strip())
    if is_about and len(shown) <= 2 * HUNKS:
        return shown
    return ""


def _with_short_result(text: str) -> str:
    """Shorten the result of a formatted call."""
    head, mark, got = text.partition("\ngot:\n")
    if len(got) <= OLD_RESULT:
        return text
    short = talk.keep_beginning(got, OLD_RESULT)
    return f"{head}{mark}{short}\n[... {len(got) - len(short):,} characters ...]"


def _shorten_output(text: str, most: int) -> str:
    """Format a text in about ``most`` characters.

    If the text is long, only its start and end are used.
    """
    near = NEAR * most
    if len(text) <= 2 * near:
        return talk.shown_text(text, most)
    head = talk.keep_beginning(talk.shown_text(text[:near], near), most * 2 // 3)
    tail = talk.keep_ending(talk.shown_text(text[-near:], near), most // 3)
    left = len(text) - len(head) - len(tail)
    return "\n".join(part for part in (head, f"[... {left:,} characters ...]", tail) if part)
