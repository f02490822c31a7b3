"""List the calls that were refused by the user or by a rule and that were not allowed later."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, make_entry
from resume_hooks.reading.digest.facts import PendingCall, Refusal
from resume_hooks.reading.digest.open_calls import PLAN_TOOL, was_call_replaced
from resume_hooks.reading.digest.prose import cut_line
from resume_hooks.reading.digest.session_commands import ShellCommand
from resume_hooks.reading.digest.shell import (
    MAX_CACHED_COMMANDS,
    SimpleCommand,
    find_program,
    iterate_git_arguments,
    make_command_key,
    parse_simple_commands,
)
from resume_hooks.transcripts.records import WRITING_TOOLS, get_string, list_objects

# At most this many characters of a refused call's subject are shown.
MAX_SUBJECT_CHARACTERS = 120
_MESSAGE_OPTIONS = frozenset(
    {"-m", "-am", "-F", "--message", "--file", "-b", "--body", "--body-file", "-t", "--title"}
)
"""Options of git and gh whose value is a message. Two commands that differ only in a message are
treated as equal."""
_STAGING_COMMAND_WORDS = ("git", "add")


def list_refusals(
    facts: LineageFacts, commands: Sequence[ShellCommand], *, with_reason: bool
) -> Iterator[DigestEntry]:
    """Yield the refused calls that were not allowed later.

    If ``with_reason`` is True, yield the calls that the user refused with a reason. If it is False,
    yield the calls that a rule refused or that the user refused without words. A plan to which the
    user replied with words is never included, because the talk contains these words.
    """
    for refusal in reversed(facts.refusals):
        call, quote, is_by_user = refusal
        if call.tool_name == PLAN_TOOL and quote.text:
            continue
        has_user_words = is_by_user and bool(quote.text)
        if has_user_words == with_reason and not _was_allowed_later(refusal, facts, commands):
            subject = cut_line(_find_subject_of_call(call), MAX_SUBJECT_CHARACTERS)
            label = f"refused by {'the user' if is_by_user else 'a rule'}: {call.tool_name} {subject}".rstrip()
            yield make_entry(f"{label}: {quote.text}".rstrip(": "), quote.position)


def _find_subject_of_call(call: PendingCall) -> str:
    """Return the subject of a refused call. For a call with questions, this is the first question."""
    for row in list_objects(call.inputs.get("questions")):
        return get_string(row, "question")
    return call.find_first_text(
        "command", "file_path", "plan", "url", "query", "pattern", "description"
    )


def _was_allowed_later(
    refusal: Refusal, facts: LineageFacts, commands: Sequence[ShellCommand]
) -> bool:
    """Check whether the user later allowed what was refused.

    The user did so if a later call changed the same file or ran the same commands. For a refused
    question, any later prompt is enough.
    """
    call, order = refusal.call, refusal.quote.position.order
    if call.tool_name in WRITING_TOOLS:
        return was_call_replaced(call, facts)
    if call.tool_name == "AskUserQuestion" and not refusal.quote.text:
        return any(quote.position.order > order for quote in facts.prompts.quotes)
    if call.tool_name == "Bash":
        later_commands = [command for command in commands if command.run.position.order > order]
        return _has_run_later(call.find_first_text("command"), later_commands)
    return False


def _has_run_later(refused_command: str, later_commands: Sequence[ShellCommand]) -> bool:
    """Check whether a refused command, or all of its parts that change something, ran later."""
    refused_key = make_command_key(refused_command)
    if any(command.command_key == refused_key for command in later_commands):
        return True
    refused_calls: Sequence[tuple[str, ...]] = _list_words_of_changing_commands(
        parse_simple_commands(refused_command)
    )
    if any(words[:2] != _STAGING_COMMAND_WORDS for words in refused_calls):
        refused_calls = [words for words in refused_calls if words[:2] != _STAGING_COMMAND_WORDS]
    later_calls: set[tuple[str, ...]] = set()
    for command in later_commands:
        later_calls.update(_list_words_of_changing_commands(command.parts))
    return bool(refused_calls) and later_calls.issuperset(refused_calls)


@lru_cache(maxsize=MAX_CACHED_COMMANDS)
def _list_words_of_changing_commands(
    parts: tuple[SimpleCommand, ...],
) -> tuple[tuple[str, ...], ...]:
    """Return the words of each simple command that does more than read files.

    Commit messages and folder arguments are omitted from the words.
    """
    calls: list[tuple[str, ...]] = []
    for part in parts:
        if find_program((part,)):
            words = (
                ["git", *iterate_git_arguments(part.words)]
                if part.words[0] == "git"
                else part.words
            )
            calls.append(_remove_message_options(words))
    return tuple(calls)


def _remove_message_options(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words of a command without its message options and their values."""
    kept_words = []
    previous = ""
    for word in words:
        if previous not in _MESSAGE_OPTIONS and word not in _MESSAGE_OPTIONS:
            kept_words.append(word)
        previous = word
    return tuple(kept_words)
