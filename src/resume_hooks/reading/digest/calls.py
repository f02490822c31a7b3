"""The latest tool calls of a session with their results, for the room that an opening has left.

Read backwards from the end of the file, so that it costs what is shown and not what the session
holds.
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
from resume_hooks.reading.digest.work import has_word_of_check
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.system.text import collapse_line, plain_line
from resume_hooks.transcripts import records, script_calls
from resume_hooks.transcripts.lines import lines_before, open_transcript
from resume_hooks.transcripts.placeholders import is_placeholder
from resume_hooks.transcripts.records import Record, string

RESULT = 1_500  # characters of a result; of a longer one the middle is cut
PRINTED = 700  # the same of what a command printed that worked
BRIEFLY_PRINTED = 160  # the same of an old check that passed
NEAR = 4  # times the characters that are shown of an end which are looked at there: a secret in them ends long before
LOOKED_THROUGH = 2  # times the room: the calls among which those to show are chosen
EDITS = 0.35  # part of the room for the latest edits, before the latest other calls
OLD_RESULT = (
    300  # characters of a file that was read before the last request, which is not about it
)
HUNKS = 4_000  # characters of the parts of a diff that the last request is about
DIFF_READ = 40_000  # characters of a diff in which these are looked for
FEW_WORDS = 3  # words of a request below which those of the last answer count, too
LATEST = 2  # searches that come with the latest calls, and checks that passed whose log does
ABOUT = 0.35  # part of the room for earlier calls that the last request is about
RARE = 0.25  # part of the calls that may have a word which still says what a call is about
REQUEST = 2_000  # characters of the last request that are searched for words
CHANGES = 2  # changes of one file that are shown, the latest
TOOL, INPUT = 80, 600  # characters of the name of a tool, and of what a call was given
REACH = 24_000_000  # bytes at the end of a file that are looked through
_BRIEFLY = ("command", "file_path", "pattern", "query", "url", "prompt", "description")
_COMMITS = late(r"\bgit\b[^\n;&|]*\scommit\b")
_IMPORTS = late(r"\s*(?:import\b|from \S+ import\b|use \S+;|#include\b|\"[\w./-]+\"\Z|[)(]\s*\Z)")
_FAILS = late(
    r"(?i:(?<!\b0 )(?<!\bno )(?<!\bwithout )\b(?:fail(?:ed|ing|s|ures?)?|error(?:ed|s)?)\b(?!\s?[:=]?\s?0\b)|"
    r"\b(?:panic|fatal|cannot|could not))"
)
"""The words of a failure, without those of "0 failed" and "no errors"."""

_HUNK = late(r"^@@ [^\n]* @@", re.MULTILINE)
_PARTS_OF_DIFF = late(r"^(?=@@ |diff --git )", re.MULTILINE)
DIFF_HEAD = 160  # characters of the first row of a part of a diff that is left out
_FAILED = ("Exit code", "Error")
_CHANGE = ("new_string", "content", "new_source")  # what a call writes into a file
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
    """The use of a call for whoever goes on."""

    EDIT = "edit"
    OTHER = "other"
    BRIEF = "brief"
    """An old check that passed: of its log the ends say enough."""
    LOW = "low"
    """An old search: its result is known, or out of date."""


class _FoundCall(NamedTuple):
    """A call as it is shown, and its use.

    ``is_old``: it read something before the last request, and somebody can read it again.
    """

    message: TalkMessage
    value: Value
    is_old: bool


class _Answer(NamedTuple):
    """The answer to a call, and whether the call failed or was refused."""

    text: str
    is_error: bool


def latest_calls(session: SessionFile, digest: Digest, room: int) -> list[TalkMessage]:
    """The latest answered calls, oldest first, in about ``room`` characters.

    A part of the room is for earlier ones that have the words of the last request. Empty for a file
    that is gone.

    They end where the ``digest`` does that was made of the session. A file that was written after
    it was read is shown by what was written.
    """
    results: dict[str, _Answer] = {}
    found: list[_FoundCall] = []
    later = _LaterCalls()
    left = round(room * LOOKED_THROUGH)
    wanted, asked_at = _words_of_request(digest), _number_of_request(digest, session)
    try:
        with open_transcript(session.file) as stream:
            end, number = digest.read_to
            for line in lines_before(stream, end):
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
                    text = _text_of_call(block, answer.text, printed, wanted)
                    message = TalkMessage(Kind.CALL, f"{session.session_id}:{number}", text)
                    is_old = number < asked_at and not answer.is_error
                    is_read = string(block, "name") in records.READERS
                    found.append(_FoundCall(message, value, is_old and is_read))
                    left -= len(text) if value is not Value.LOW else len(text) // 4
    except OSError:
        return []
    return _chosen_calls(found, room, wanted)[::-1]


def _words_of_request(digest: Digest) -> frozenset[str]:
    """The telling words of the last request in a digest, and of the last answer where these are few."""
    words: frozenset[str] = frozenset()
    for kind in (Kind.REQUEST, Kind.CLOSING):
        latest = next((each for each in reversed(digest.talk) if each.kind is kind), None)
        if latest is not None and len(words) < FEW_WORDS:
            words |= prose.telling_words(latest.text[:REQUEST])
    return words


def _number_of_request(digest: Digest, session: SessionFile) -> int:
    """The record of the last request, where it is one of this session; else 0."""
    for message in reversed(digest.talk):
        owner, _, number = message.ref.rpartition(":")
        if message.kind is Kind.REQUEST:
            return int(number) if owner == session.session_id else 0
    return 0


def _chosen_calls(
    found: Sequence[_FoundCall], room: int, wanted: frozenset[str]
) -> list[TalkMessage]:
    """The calls to show, the latest first: the latest edits, the latest others, and those that the request is about.

    Old searches come last.
    """
    messages = [each.message for each in found]
    weights = _weights_of_calls(messages, wanted)
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
    """The first of some calls that the room holds; the last may exceed it, as the room is a rough one."""
    fitting: list[int] = []
    for at in places:
        if room <= 0:
            break
        fitting.append(at)
        room -= len(found[at].text)
    return fitting


def _weights_of_calls(found: Sequence[TalkMessage], wanted: frozenset[str]) -> list[float]:
    """How much each call has to do with some words: the fewer calls have a word, the more it weighs."""
    words = [prose.telling_words(call.text) & wanted for call in found]
    counts = Counter(word for each in words for word in each)
    weights: list[float] = []
    for each in words:
        rare = []
        for word in each:
            if counts[word] <= max(2, len(found) * RARE):
                rare.append(word)
        weights.append(fsum([1 / counts[word] for word in rare]))  # the same in any order
    return weights


class _LaterCalls:
    """The calls that were decided on so far, from the end backwards: what they supersede is not shown."""

    def __init__(self) -> None:
        self._written: Counter[str] = Counter()
        self._seen: set[tuple[str, str]] = set()
        self._is_committed = False
        self._searches = 0
        self._checks = 0

    def value_of(self, block: Record, answer: _Answer) -> Value:
        """The use of a call that is shown: a search or the log of a check that passed has one only among the latest."""
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
        if passed and any(part.words and has_word_of_check(part.words) for part in parts):
            self._checks += 1
            return Value.OTHER if self._checks <= LATEST else Value.BRIEF
        return Value.OTHER

    def note_commit(self, block: Record) -> None:
        """Note whether a call is a commit: everything written before lies in the repository."""
        command = string(records.mapping(block, "input"), "command")
        if _COMMITS.search(command) is not None:
            self._is_committed = True

    def is_shown(self, block: Record, answer: _Answer) -> bool:
        """Whether a call is shown: none that changed little, or that worked and was done again."""
        self.note_commit(block)
        tool, given = string(block, "name"), records.mapping(block, "input")
        path = records.file_in(given)
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
        if not key[1]:
            return True
        is_again = key in self._seen
        self._seen.add(key)
        return not is_again or answer.is_error or _FAILS.search(answer.text) is not None


def _searches(parts: Sequence[shell.SimpleCommand]) -> bool:
    """Whether a command only looks for something: by the first program in it that is not ``cd``."""
    programs = []
    for part in parts:
        if part.words and part.words[0] != "cd":
            programs.append(part.words[0])
    return bool(programs) and programs[0] in _SEARCH_PROGRAMS


def _again_key(tool: str, given: Record) -> str:
    """What two calls have in common of which the later one tells all; ``""`` for a call of its own."""
    if tool == "Bash":
        return shell.core_of_command(string(given, "command"))
    if tool in records.READERS and not given.get("offset"):
        return records.file_in(given)
    return ""


def _changes_more(given: Record) -> bool:
    """Whether an edit changes more than the imports of a file."""
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
    """Whether a call is useless for going on: it failed to write, or searched without a hit."""
    if string(block, "name") in records.WRITERS:
        return answer.is_error
    if answer.text.startswith(_STOPPED):
        return True
    return not answer.is_error and answer.text.strip() in _EMPTY


_STOPPED = ("Operation stopped by hook", "Stop hook feedback")
"""How the answer begins where a hook stopped the work: its words are for that moment alone."""

_EMPTY = EMPTY_ANSWERS | {
    "",
    "No matches found",
    "No files found",
    "(Bash completed with no output)",
}
"""The output of a search without a hit."""


def _text_of_call(block: Record, answer: str, printed: int, wanted: frozenset[str]) -> str:
    """A call as it is shown: its input, and the text that it wrote, or its answer.

    Of what a command ``printed`` that worked so many characters are shown, and of a diff the parts
    that have the ``wanted`` words.
    """
    given = records.mapping(block, "input")
    named = next((value for key in _BRIEFLY if (value := string(given, key))), "")
    what = talk.shown_text(named or json.dumps(given, ensure_ascii=False), INPUT)
    head = f"{collapse_line(plain_line(string(block, 'name')), TOOL)}: {what}"
    written = next((value for key in _CHANGE if (value := string(given, key))), "")
    removed = "" if written else string(given, "old_string")
    if removed:
        return f"{head}\nremoved:\n{_both_ends_of_output(removed, RESULT)}"
    got = (
        written or answer
    )  # that a file was written is said by the call: what was written tells more than the answer
    if string(block, "name") == "Bash" and not got.startswith(_FAILED):
        most = printed
    else:
        most = RESULT
    if is_placeholder(got):
        shown = ""
    else:
        shown = _hunks_about(got, most, wanted) or _both_ends_of_output(got, most)
    if shown:
        return f"{head}\n{'wrote' if written else 'got'}:\n{shown}"
    return head


def _hunks_about(text: str, most: int, wanted: frozenset[str]) -> str:
    """The parts of a long diff that have some words, whole, in place of its two ends; ``""`` for any other text."""
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
    """A call as it is shown, with the beginning of its result."""
    head, mark, got = text.partition("\ngot:\n")
    if len(got) <= OLD_RESULT:
        return text
    short = talk.beginning_of(got, OLD_RESULT)
    return f"{head}{mark}{short}\n[... {len(got) - len(short):,} characters ...]"


def _both_ends_of_output(text: str, most: int) -> str:
    """A text as it is shown, in about ``most`` characters.

    Of a long text only the ends are read.
    """
    near = NEAR * most
    if len(text) <= 2 * near:
        return talk.shown_text(text, most)
    head = talk.beginning_of(talk.shown_text(text[:near], near), most * 2 // 3)
    tail = talk.ending_of(talk.shown_text(text[-near:], near), most // 3)
    left = len(text) - len(head) - len(tail)
    return "\n".join(part for part in (head, f"[... {left:,} characters ...]", tail) if part)
