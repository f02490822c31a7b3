"""Find secrets in sessions by rules, so that they can be removed from all output about these sessions.

Before a session leaves the machine, all of it is searched (``make_redactor_for_sessions``). While a
prompt waits for an answer, only the start and the end of the session are searched
(``make_redactor_for_ends``).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from resume_hooks.paths import TOOL_RESULTS_FOLDER_NAME, open_regular, read_regular_file
from resume_hooks.redaction.known_secrets import Redactor
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.positional_secrets import PRINT_COMMAND_EXPRESSION
from resume_hooks.sessions.session_files import SessionFile
from resume_hooks.sessions.transcript_files import subagents_of_session
from resume_hooks.transcripts.head_tail import BYTES_READ_AT_EACH_END, HeadTail
from resume_hooks.transcripts.lines import read_lines
from resume_hooks.transcripts.records import (
    Record,
    get_mapping,
    get_string,
    list_calls,
    list_results,
    parse_record,
    result_text,
)

MAX_SEARCHED_FILE_BYTES = 32 * 1024 * 1024
"""At most this many bytes of an accompanying file are searched."""

_COMMAND_PATTERN = compile_lazily(rb'"command":\s?"(?=[^"\n]{3,300})' + PRINT_COMMAND_EXPRESSION)
"""Matches the command of a call in a line of a transcript, if the command may print a secret."""

_RESULT_KEY = b'"tool_use_id"'

_RESULT_PATTERN = compile_lazily(_RESULT_KEY)

_MAX_COMMAND_CHARACTERS = 200
"""The maximum length of a command. A longer command is a script, which prints more than one value.
"""

_MAX_OUTPUT_CHARACTERS = 2_000
"""At most this many characters of an output are searched."""

_MAX_PENDING_COMMANDS = 200
"""The maximum number of commands whose outputs can be pending at the same time."""


class PrintedOutputs:
    """Puts the command in front of an output if the command may print a secret.

    The caller passes the lines of one transcript in order. A transcript contains the command and
    its output in separate records, and the output of ``printenv DB_PASSWORD``, seen without its
    command, is just a word. The rules recognize the output as a secret if a shell prompt and the
    command precede it.
    """

    def __init__(self) -> None:
        self._commands: dict[str, str] = {}
        """Maps the ids of calls to their commands. A command is removed when its output is found.
        """

    def list_outputs_with_commands(self, line: bytes) -> Iterator[str]:
        """Yield the outputs in a line that may be secrets, each after its command, as in a terminal."""
        if _COMMAND_PATTERN.search(line):
            self._remember_commands(parse_record(line) or {})
        elif _RESULT_KEY in line and any(call_id.encode() in line for call_id in self._commands):
            yield from self._list_command_outputs(parse_record(line) or {})

    def find_output_offsets(self, block: bytes) -> list[int]:
        """Return the offsets in ``block`` at which outputs, or commands that may print secrets, start."""
        offsets = [match.start() for match in _COMMAND_PATTERN.finditer(block)]
        if offsets or self._commands:
            offsets += [match.start() for match in _RESULT_PATTERN.finditer(block)]
        return offsets

    def _remember_commands(self, record: Record) -> None:
        for call in list_calls(record):
            call_id, command = (
                get_string(call, "id"),
                get_string(get_mapping(call, "input"), "command"),
            )
            if call_id and command and len(command) <= _MAX_COMMAND_CHARACTERS:
                self._commands[call_id] = " ".join(command.split())
        while len(self._commands) > _MAX_PENDING_COMMANDS:
            del self._commands[next(iter(self._commands))]

    def _list_command_outputs(self, record: Record) -> Iterator[str]:
        for result in list_results(record):
            command = self._commands.pop(get_string(result, "tool_use_id"), "")
            if command:
                output = _remove_quotes(result_text(result)[:_MAX_OUTPUT_CHARACTERS])
                yield f"$ {command}\n{output}\n"


def _remove_quotes(output: str) -> str:
    """Remove the quotes around an output that is a single value."""
    value = output.strip()
    if len(value) > 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return output


def make_redactor_for_sessions(sessions: Iterable[SessionFile]) -> Redactor:
    """Return a redactor that knows the secrets in sessions.

    The sub-agents' transcripts and the large results are searched too. An unreadable file is
    skipped, because a caller that exports the file fails anyway.
    """
    redactor = Redactor()
    for session in sessions:
        learn_secrets_in_file(redactor, session.path)
        for path in _list_accompanying_files(session.path):
            learn_secrets_in_file(redactor, path)
    return redactor


def learn_secrets_in_file(redactor: Redactor, path: str, offset: int = 0) -> None:
    """Learn the secrets in a file, or in the lines of a transcript from the byte ``offset`` on.

    A line must start at ``offset``.
    """
    try:
        if not path.endswith(".jsonl"):
            redactor.learn_text(
                read_regular_file(path, MAX_SEARCHED_FILE_BYTES).decode("utf-8", "replace")
            )
            return
        outputs = PrintedOutputs()
        with open_regular(path) as stream:
            stream.seek(offset)
            for line in read_lines(stream, offset):
                _learn_secrets_in_line(redactor, outputs, line.body)
    except OSError:
        return


def _learn_secrets_in_line(redactor: Redactor, outputs: PrintedOutputs, line: bytes) -> None:
    """Learn the secrets in a line, including secrets that commands printed."""
    redactor.learn_line(line)
    for text in outputs.list_outputs_with_commands(line):
        redactor.learn_text(text)


def make_redactor_for_ends(*session_ends: HeadTail, harmless_texts: Iterable[str] = ()) -> Redactor:
    """Return a redactor that knows the secrets in the first and the last part of each session.

    Texts in ``harmless_texts``, such as session ids, are never treated as secrets.
    """
    redactor = Redactor()
    redactor.exclude_names(harmless_texts)
    for ends in {ends.path: ends for ends in session_ends}.values():
        outputs = PrintedOutputs()
        for part in dict.fromkeys(
            (ends.head[:BYTES_READ_AT_EACH_END], ends.tail[-BYTES_READ_AT_EACH_END:])
        ):
            for line in part.splitlines():
                _learn_secrets_in_line(redactor, outputs, line)
    return redactor


def _list_accompanying_files(path: str) -> list[str]:
    """Return the paths of a session's large results and of its sub-agents' transcripts."""
    folder = os.path.join(path.removesuffix(".jsonl"), TOOL_RESULTS_FOLDER_NAME)
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        names = []
    return [
        *(os.path.join(folder, name) for name in names),
        *(agent.path for agent in subagents_of_session(path)),
    ]
