"""Find passwords in the arguments of programs.

Examples are ``mysql -p``, ``docker login -p``, ``curl -u`` and ``net use``.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Generator, Iterable, Iterator
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.notations import VALUE_EXPRESSION, any_character_except
from resume_hooks.redaction.passwords import password_spans
from resume_hooks.redaction.spans import Span


class PasswordOption(NamedTuple):
    """An option that takes a password.

    ``programs`` are the names of the programs that have this option. ``after_program_pattern``
    matches the text after the program's name, and ``argument_pattern`` matches the option and the
    password.
    """

    name: bytes
    programs: tuple[bytes, ...]
    after_program_pattern: re.Pattern[bytes]
    argument_pattern: re.Pattern[bytes]


_SPACE_EXPRESSION = rb"[ \t]{1,4}"
_NAME_END_EXPRESSION = rb"(?:\s|\Z)"
PASSWORD_OPTIONS = [
    PasswordOption(
        b" -p",
        (b"mysql", b"mariadb"),
        compile_lazily(rb"[\w-]{0,12}" + _NAME_END_EXPRESSION),
        compile_lazily(rb" -p" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" -p",
        (b" login", b"\tlogin", b"sshpass"),
        compile_lazily(_NAME_END_EXPRESSION),
        compile_lazily(rb" -p[ \t=]{0,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" -p",
        (
            b"mongo",
            b"7z",
            b"winrm",
            b"mapexec",
            b"netexec",
            b"rar",
            b"veracrypt",
            b"usermod",
            b"keychain",
        ),
        compile_lazily(rb"[\w-]{0,12}" + _NAME_END_EXPRESSION),
        compile_lazily(rb" -p[ \t]{0,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" -p",
        (b"sqlcmd", b"zip", b"mosquitto_", b"bcp"),
        compile_lazily(rb"[\w-]{0,12}" + _NAME_END_EXPRESSION),
        compile_lazily(rb" -P[ \t]{0,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b"-u",
        (b"smb", b"lftp"),
        compile_lazily(rb"[\w-]{0,12}" + _NAME_END_EXPRESSION),
        compile_lazily(
            rb"-[uU]"
            + _SPACE_EXPRESSION
            + rb"[\"']?[^\s%,\"']{1,60}[%,](?P<bare>"
            + any_character_except(b"\"'\\")
            + rb"{6,200})"
        ),
    ),
    PasswordOption(
        b" -p",
        (b" -u", b" -U", b" --user", b" --login", b" --admin-user", b" -l", b" -n"),
        compile_lazily(rb"(?:ser|sername|name)?[ =]"),
        compile_lazily(rb" -[pP][ \t=]{0,2}(?![^\s]{0,40}:\d)" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" -w",
        (b"security ",),
        compile_lazily(rb"[a-z]{2,12}-[a-z-]{2,40}" + _NAME_END_EXPRESSION),
        compile_lazily(rb" -w[ \t]{0,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" -w",
        (b"ipa-",),
        compile_lazily(rb"[\w-]{0,20}" + _NAME_END_EXPRESSION),
        compile_lazily(rb" -w[ \t]{0,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" -w",
        (b" -U", b" -D", b" -d"),
        compile_lazily(rb"[ ]"),
        compile_lazily(rb" -w[ \t]{0,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" /rp",
        (b" /ru",),
        compile_lazily(_NAME_END_EXPRESSION),
        compile_lazily(rb" /rp[ \t]{1,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" -p",
        (b"psexec", b"rdesktop"),
        compile_lazily(_NAME_END_EXPRESSION),
        compile_lazily(rb" -p[ \t]{1,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" /p:",
        (b"freerdp",),
        compile_lazily(_NAME_END_EXPRESSION),
        compile_lazily(rb" /p:" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b"-creds",
        (b"skopeo",),
        compile_lazily(_NAME_END_EXPRESSION),
        compile_lazily(rb"-creds[ =]{1,4}[\w.-]{1,60}:" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" -w",
        (b"ldap",),
        compile_lazily(rb"[a-z]{3,8}" + _NAME_END_EXPRESSION),
        compile_lazily(rb" -w[ \t]{0,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b" -a",
        (b"redis-cli",),
        compile_lazily(_NAME_END_EXPRESSION),
        compile_lazily(rb" -a[ \t]{1,4}" + VALUE_EXPRESSION),
    ),
    PasswordOption(
        b"-u",
        (b"curl", b"wget", b"http ", b"httpie"),
        compile_lazily(rb"\s"),
        compile_lazily(
            rb"-u(?:ser)?[ =]?\\{0,3}[\"']?[^\s:/\"'\\]{1,128}:(?P<bare>"
            + any_character_except(b"\"'\\")
            + rb"{6,200})"
        ),
    ),
]

_PROGRAM_SEARCH_BYTES = 300
"""The number of bytes before an option in which the name of its program is searched for."""

_CHARACTERS_AFTER_COMMAND = (b"\n", b";", b"|", b"&")
_COMMAND_END_PATTERN = compile_lazily(rb"[\n;|&]")


def argument_spans(raw: bytes, positions: Iterable[int], option: bytes) -> Iterator[Span]:
    """Yield the passwords that follow a password option of a program.

    ``positions`` are the positions at which ``option`` occurs.
    """
    for position, row in _positions_of_option(raw, positions, option):
        if match := row.argument_pattern.match(raw, position):
            yield from password_spans(match, only_passwords=b" -u" not in row.programs)


def password_option_positions(
    lower: bytes, positions: Iterable[int], option: bytes
) -> Iterator[int]:
    """Yield the positions at which an option belongs to a program that takes a password."""
    return (position for position, _ in _positions_of_option(lower, positions, option))


def _positions_of_option(
    raw: bytes, positions: Iterable[int], option: bytes
) -> Iterator[tuple[int, PasswordOption]]:
    """Yield the positions at which an option follows one of its programs in the same command.

    Each position is followed by the matching ``PasswordOption``.
    """
    rows = [row for row in PASSWORD_OPTIONS if row.name == option]
    program_ends_by_option: list[tuple[PasswordOption, list[int]]] = []
    command_end = 0
    for position in positions:
        if position >= command_end:
            command_start = (
                max(
                    raw.rfind(sign, max(0, position - _PROGRAM_SEARCH_BYTES), position)
                    for sign in _CHARACTERS_AFTER_COMMAND
                )
                + 1
            )
            command_start = max(command_start, position - _PROGRAM_SEARCH_BYTES, 0)
            end_match = _COMMAND_END_PATTERN.search(raw, position)
            command_end = end_match.start() if end_match else len(raw)
            program_ends_by_option = [
                (row, program_ends)
                for row in rows
                if (program_ends := _ends_of_programs(raw, row, command_start, command_end))
            ]
        for row, program_ends in program_ends_by_option:
            count = bisect(program_ends, position)
            if count and position - program_ends[count - 1] <= _PROGRAM_SEARCH_BYTES:
                yield position, row
                break


def _ends_of_programs(
    raw: bytes, row: PasswordOption, command_start: int, command_end: int
) -> list[int]:
    """Return the positions at which the names of the option's programs end in a command, in order."""
    positions = sorted(
        position
        for program in row.programs
        for position in _ends_of_word(raw, program, command_start, command_end)
    )
    return [position for position in positions if row.after_program_pattern.match(raw, position)]


def _ends_of_word(raw: bytes, word: bytes, range_start: int, range_end: int) -> Iterator[int]:
    """Yield the end of each occurrence of a word between ``range_start`` and ``range_end``."""
    position = raw.find(word, range_start, range_end)
    while position >= 0:
        yield position + len(word)
        position = raw.find(word, position + len(word), range_end)


SECRET_WORD_COMMAND_PATTERNS = [
    compile_lazily(
        rb"(?<=ldap)passwd(?=[ \t])[^\n|;&]{0,200}?[ \t]-s[ \t]{0,4}" + VALUE_EXPRESSION
    ),
    compile_lazily(
        rb"(?<=wpa_)passphrase[ \t]+(?:\"[^\"\n]{1,60}\"|\S{1,60})[ \t]+" + VALUE_EXPRESSION
    ),
    compile_lazily(
        rb"(?<=ht)passwd[ \t]+-[a-zA-Z]{0,6}n[a-zA-Z]{0,6}[ \t]+[^\s-]\S{0,60}[ \t]+"
        + VALUE_EXPRESSION
    ),
    compile_lazily(
        rb"(?<=ht)passwd(?:[ \t]+-\w{1,8}){1,4}[ \t]+[^\s-]\S{0,100}[ \t]+\S{1,60}[ \t]+"
        + VALUE_EXPRESSION
    ),
    compile_lazily(rb"secrets set[ \t]+\w{1,60}=" + VALUE_EXPRESSION),
]
"""Patterns of commands whose names contain a word that means a secret. A match begins at this word.
"""

_READER_NAMES_EXPRESSION = rb"(?<=ch)passwd|passwd --stdin|password-stdin|passphrase-fd|secret put"
_PASSWORD_READER_PATTERN = compile_lazily(_READER_NAMES_EXPRESSION)
"""Matches the name of a program that reads a password from its input. The match begins at the word
in the name that means a password."""

_SECRET_WORD_COMMAND_PATTERN = compile_lazily(
    _READER_NAMES_EXPRESSION + rb"|(?<=wpa_)passphrase|(?<=ht)passwd|(?<=ldap)passwd|secrets set"
)
"""Matches the names of the commands in ``SECRET_WORD_COMMAND_PATTERNS`` and of the programs that
read a password from their input."""

_PIPED_PASSWORD_PATTERN = compile_lazily(
    rb"(?:echo|printf)[ \t]+(?:-\w{1,3}[ \t]+|[\"']%s(?:\\n)?[\"'][ \t]+){0,3}"
    rb"(?:(?P<quote>[\"'])(?:[\w.@-]{1,60}:)?(?P<quoted>[^\"'\r\n\\:]{6,200})(?P=quote)"
    rb"|(?:[\w.@-]{1,60}:)?(?P<bare>"
    + any_character_except(b"\"'`,;<>(){}|\\:")
    + rb"{6,200}))[ \t]{0,4}\|[^|\n]{0,100}\Z"
)
_HERE_STRING_PATTERN = compile_lazily(rb"[^|\n<]{1,60}<<<[ \t]*" + VALUE_EXPRESSION)


def is_command_name(lower: bytes, position: int) -> bool:
    """Check whether the word at ``position``, which means a secret, is part of the name of a command."""
    return _SECRET_WORD_COMMAND_PATTERN.match(lower, position) is not None


def named_command_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the password in a command whose name contains, at ``position``, a word that means a secret.

    At most one password is yielded.
    """
    if not _SECRET_WORD_COMMAND_PATTERN.match(raw, position):
        return
    if _PASSWORD_READER_PATTERN.match(raw, position):
        yield from piped_input_spans(raw, position)
    elif match := next(
        filter(None, (pattern.match(raw, position) for pattern in SECRET_WORD_COMMAND_PATTERNS)),
        None,
    ):
        yield from password_spans(match)


def piped_input_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the input of the program at ``position``, which reads a password.

    The input comes from a pipe, or follows the program after ``<<<``. At most one password is
    yielded.
    """
    if match := _PIPED_PASSWORD_PATTERN.search(
        raw, max(0, position - _PROGRAM_SEARCH_BYTES), position
    ) or _HERE_STRING_PATTERN.match(raw, position):
        yield from password_spans(match, only_passwords=True)
