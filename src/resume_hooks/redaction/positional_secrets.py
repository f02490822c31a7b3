"""Find secrets that are recognised only by their position.

They occur in commands, statements, sentences, printed output and table columns.
"""

from __future__ import annotations

from collections.abc import Generator

from resume_hooks.redaction.false_positives import (
    consists_of_words,
    is_likely_password,
    is_placeholder,
    is_random_key,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.notations import (
    LOGIN_ARGUMENTS_EXPRESSION,
    QUOTED_VALUE_EXPRESSION,
    VALUE_EXPRESSION,
    any_character_except,
)
from resume_hooks.redaction.passwords import (
    is_password_in_sentence,
    is_secret_field,
    password_spans,
)
from resume_hooks.redaction.program_text import VIM_SYNTAX_LINE_STARTS
from resume_hooks.redaction.spans import GENERIC, Span

_NEXT_ARGUMENT_EXPRESSION = rb"[ \t]{1,4}\S{1,100}"
_NEXT_LINE_EXPRESSION = rb"(?:\s|\d{1,6}\xe2\x86\x92){1,20}"
"""The start of the next line, with or without a line number from a tool."""

_LOGIN_CALL_PATTERN = compile_lazily(rb"(?i)[\w.>-]{2,20}" + LOGIN_ARGUMENTS_EXPRESSION)
_LOGIN_CALL_STARTS = (
    b"mysqli( pdo( connect( connection( hmac( user( algoliasearch( wifi.begin(".split()
)
_USER_VERB_PATTERN = compile_lazily(
    rb"(?i)(?:add|create|new|make|register|insert|login|auth(?:enticate)?|super)_?\Z"
)
"""Matches the word before ``user(`` in the name of a function that takes a password. Other
functions whose names end with ``user(`` take any values."""

_EXPECT_SCRIPT_PATTERN = compile_lazily(
    rb"(?i)expect\b[^\n]{0,20}(?:ass(?:word|phrase|code)|secret)[^\n]{0,20}[\n{;][^\n]{0,30}send(?:line)?[ \t(]{1,3}"
    rb"(?:-- )?[\"']?(?P<bare>" + any_character_except(b"\"'\\") + rb"{6,200})"
)
_ERLANG_COOKIE_PATTERN = compile_lazily(
    rb"(?i)(?:set|erlang[_.]?)cookie[\"']?(?:[ \t]{0,4}[=:][ \t]{0,4}|[ \t]{1,4}|"
    + _NEXT_LINE_EXPRESSION
    + rb")(?P<phrase>[\w-]{12,255})"
)
_MAIL_ADDRESS_PATTERN = compile_lazily(rb"[\w.+-]{1,60}@[\w-]{1,60}\.[\w.-]{2,60}")
_POSTFIX_LOGIN_PATTERN = compile_lazily(rb"\]:\d{2,4}[ \t]{1,30}\S{1,80}:" + VALUE_EXPRESSION)
_REDIS_PASSWORD_PATTERN = compile_lazily(rb"masterauth[ \t]{1,30}" + VALUE_EXPRESSION)
_BUNDLER_LOGIN_PATTERN = compile_lazily(
    rb"(?i)bundle(?:[ \t]{1,4}config(?:[ \t]{1,4}[\w.:/-]{1,80}){1,4}[ \t]{1,4}|_\w{2,80}[\"']?[:=][ \t]{0,4}[\"']?)"
    rb"[\w-]{1,60}:" + VALUE_EXPRESSION
)

_PIPED_VALUE_EXPRESSION = (
    rb"(?:echo|printf)[ \t]+(?:-\w{1,3}[ \t]+|[\"']%s(?:\\n)?[\"'][ \t]+){0,3}"
    rb"(?:(?P<quote>[\"'])(?:[\w.@-]{1,60}:)?(?P<quoted>[^\"'\r\n\\:]{6,200})(?P=quote)"
    rb"|(?:[\w.@-]{1,60}:)?(?P<bare>"
    + any_character_except(b"\"'`,;<>(){}|\\:")
    + rb"{6,200}))[ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t]{1,4}(?!-S))?"
    rb"(?:[\w./-]{0,60}(?:pass|keystore|secret|vault|cryptsetup|kinit|su\b|sudo -S|login|credential)"
    rb"|[^|\n]{0,100}(?:-stdin|--pass|-fd\b|passwd|secrets? (?:put|create|set|add)| login| unlock))"
)
"""A value that is piped to a command that reads a secret."""

_SECRET_READER_PATTERN = compile_lazily(
    rb"pass|sudo|secret|kinit|keyring|login|env add|token|unlock|crypt[^\n]{0,70}\Z"
)

_LOGIN_SENTENCE_PATTERN = compile_lazily(
    rb"(?i)log ?in as [\w.@-]{2,40} (?:with|using)(?: the)?(?: pass(?:word|phrase|code)?| pw)?:? [\"'`]?(?P<bare>"
    + any_character_except(b"\"'`,;<>(){}|\\")
    + rb"{6,60})"
)

_PASSWORD_SENTENCE_PATTERN = compile_lazily(
    rb"(?i)(?<![^\s\"'`(\x80-\xff])(?P<bare>"
    + any_character_except(b"\"'`,;<>(){}|\\")
    + rb"{6,60})[\"'`]? is (?:the|your|my) (?:(?:new|current|root|admin|\w{1,12}'s) )?pass(?:word|phrase|code|wd)?"
    rb"(?=[.,;!?)\"'`\\<\x80-\xff]|\s*\n|\s*\Z| (?:for|of|to|on|there)\b)"
)
"""Matches a value before the words that describe it, for example ``is the password``."""

_WORDS_AFTER_VALUE = frozenset([b" is the pass", b" is your pass", b" is my pass"])
_SENTENCE_WORDS = _WORDS_AFTER_VALUE | {b"log in as ", b"login as "}
"""Words of a sentence that contains a value. The value is a password only if it contains a digit
and is not a name."""

_VALUE_SEARCH_BYTES = 64
"""The number of bytes before words such as ``is the password`` in which the value is searched for.
"""

_CREATE_SECRET_COMMAND_PATTERN = compile_lazily(rb"create[ \t]+secret\b(?:[^\n]|\\\n)*\Z")
"""Matches the command that creates a Kubernetes secret, up to an argument. The command may span
several lines."""

_FIXED_FORMAT_WORDS = frozenset([b"codecov", b"kubeadm"])
"""Words after which only the format of the value decides whether it is a secret."""

_AMBIGUOUS_WORDS = frozenset(
    [
        *_LOGIN_CALL_STARTS,
        *_SENTENCE_WORDS,
        b"--from-literal",
        b" -u ",
        b"--user ",
        b"<<<",
        b"snmp",
        b"user create",
        b"--plaintext ",
    ]
)
"""Words that may be followed by values other than passwords. Plain words after them are not
accepted as passwords."""

_ELASTIC_PASSWORD_PATTERN = compile_lazily(
    rb"(?i)password[ \t]+\w{2,30}[ \t]+=[ \t]+" + VALUE_EXPRESSION
)
_ELASTIC_USER_NAMES = (
    b"elastic kibana logstash_system beats_system apm_system remote_monitoring".split()
)

COMMAND_PATTERNS = {
    b"kubeadm": compile_lazily(
        rb"(?i)kubeadm[^\n]{0,80}?\btoken[\"']?(?:[ \t]{0,4}[=:][ \t]{0,4}|[ \t]{1,4})"
        rb"(?P<bare>[a-z0-9]{6}\.[a-z0-9]{16})\b"
    ),
    b"codecov": compile_lazily(
        rb"(?i)codecov[^\n|;&]{0,100}?[ \t](?:-t|--token)[ =]{1,3}[\"']?(?P<bare>[0-9a-f-]{36})\b"
    ),
    b"random_password": compile_lazily(
        rb"random_password[^}]{0,800}?\bresult[\"']?[ \t]{0,20}[=:][ \t]{0,4}"
        + QUOTED_VALUE_EXPRESSION
    ),
    **dict.fromkeys(
        [b"password " + name for name in _ELASTIC_USER_NAMES], _ELASTIC_PASSWORD_PATTERN
    ),
    b"net use": compile_lazily(
        rb"(?i)(?<![a-z])net use(?:[ \t]+(?:[a-z*]:?[ \t]+)?\\{2,8}\S{1,200}(?:[ \t]+/\S{1,100}+){0,4}"
        rb"|r[ \t]+[^\s/]{1,60})[ \t]+(?!/)" + VALUE_EXPRESSION
    ),
    b"rabbitmqctl": compile_lazily(
        rb"rabbitmqctl(?:[ \t]+-\S{1,60}){0,4}[ \t]+(?:add_user|change_password"
        rb"|authenticate_user)[ \t]+\S{1,60}[ \t]+" + VALUE_EXPRESSION
    ),
    b"identified": compile_lazily(
        rb"(?i)identified[ \t]+(?:with[ \t]+\S{1,60}[ \t]+(?:by|as)|by)[ \t]+(?:password[ \t]+)?(?!\\{0,3}`)"
        + QUOTED_VALUE_EXPRESSION
    ),
    b"fied by ": compile_lazily(
        rb"(?-i:FIED BY )(?P<bare>(?=\S{0,40}\d)"
        + any_character_except(b"\"'`,;<>(){}|\\%")
        + rb"{6,200})"
    ),
    b":5432:": compile_lazily(rb"(?<=[\w*-]):5432:[\w.*-]{1,60}:[\w.*-]{1,60}:" + VALUE_EXPRESSION),
    **dict.fromkeys(_LOGIN_CALL_STARTS, _LOGIN_CALL_PATTERN),
    b"masterauth": _REDIS_PASSWORD_PATTERN,
    **dict.fromkeys([b"bundle config", b"bundle_"], _BUNDLER_LOGIN_PATTERN),
    **dict.fromkeys([b"]:25", b"]:465", b"]:587"], _POSTFIX_LOGIN_PATTERN),
    b"expect": _EXPECT_SCRIPT_PATTERN,
    b"echo ": compile_lazily(_PIPED_VALUE_EXPRESSION),
    b"printf ": compile_lazily(_PIPED_VALUE_EXPRESSION),
    **dict.fromkeys([b"{plain}"], compile_lazily(rb"(?i)\{plain\}" + VALUE_EXPRESSION)),
    **dict.fromkeys(
        [b"sqlplus", b"rman target"],
        compile_lazily(
            rb"\w{4,7}[^\n/]{0,60}[ \t][\"']?(?:userid=)?\w{1,40}/[\"']?(?P<bare>"
            + any_character_except(b"\"'@/\\")
            + rb"{6,200})(?=[@\s\"'\x80-\xff\\]|\Z)"
        ),
    ),
    **dict.fromkeys(
        [b" -u ", b"--user "],
        compile_lazily(
            rb"[ -]-\w{1,6}[ \t]{1,4}[\"']?[\w.@-]{1,60}:(?P<bare>"
            + any_character_except(b"\"'\\;|&<>")
            + rb"{6,200})"
        ),
    ),
    b"snmp": compile_lazily(
        rb"snmp\w{2,10}(?=[ \t])[^\n|;&]{0,100}?[ \t]-[cAX][ \t]{0,4}(?!\[secret)"
        + VALUE_EXPRESSION
    ),
    b"ssh-keygen": compile_lazily(
        rb"ssh-keygen(?=[ \t])[^\n|;&]{0,100}?[ \t]-[NP][ \t]{0,4}(?!\[secret)" + VALUE_EXPRESSION
    ),
    b"openssl enc": compile_lazily(
        rb"openssl enc[^\n|;&]{0,100}?[ \t]-k[ \t]{1,4}" + VALUE_EXPRESSION
    ),
    b"user create": compile_lazily(
        rb"user create[ \t]+[\w.@-]{1,60}[ \t]+(?!-)" + VALUE_EXPRESSION
    ),
    b"--plaintext ": compile_lazily(rb"--plaintext[ \t]+(?!-)" + VALUE_EXPRESSION),
    b"jwt.": compile_lazily(
        rb"(?i)jwt\.\w{4,8}\((?:\{[^{}]{0,200}\}|[\w.]{1,40}),[ \t]{0,4}" + QUOTED_VALUE_EXPRESSION
    ),
    b"nickserv": compile_lazily(
        rb"(?i)nickserv[ :]{1,3}identify[ \t]+(?:[\w-]{1,30}[ \t]+(?=\S))?" + VALUE_EXPRESSION
    ),
    b"<<<": compile_lazily(rb"<<<[ \t]*" + VALUE_EXPRESSION),
    b" on >": compile_lazily(rb" on >(?P<bare>[^\s\"'<>|&;]{8,200})(?=[ \t]{1,4}[~+&%])"),
    b"chpasswd:": compile_lazily(
        rb"chpasswd:"
        + _NEXT_LINE_EXPRESSION
        + rb"(?:expire:[^\n]{1,10}"
        + _NEXT_LINE_EXPRESSION
        + rb")?(?:list|users):(?:[ \t]{0,4}\|)?"
        + _NEXT_LINE_EXPRESSION
        + rb"(?:[\w.-]{1,60}:[^\n]{1,80}"
        + _NEXT_LINE_EXPRESSION
        + rb"){0,6}?[\w.-]{1,60}:(?!\[secret)"
        + VALUE_EXPRESSION
    ),
    b"mc alias set": compile_lazily(
        rb"mc alias set" + _NEXT_ARGUMENT_EXPRESSION * 3 + rb"[ \t]{1,4}" + VALUE_EXPRESSION
    ),
    b"--from-literal": compile_lazily(
        rb"--from-literal[ =][\"']?[\w.-]{1,80}=(?P<bare>"
        + any_character_except(b"\"'`,;<>(){}|\\")
        + rb"{6,200})"
    ),
    b"secret set ": compile_lazily(
        rb"secret set[ \t]+\w{1,80}(?:[ \t]+(?!-b|--body)--?\w{1,20}[ =]\S{1,80}){0,4}[ \t]+(?:-b|--body)[ =]"
        + VALUE_EXPRESSION
    ),
    **dict.fromkeys([b"log in as ", b"login as "], _LOGIN_SENTENCE_PATTERN),
    **dict.fromkeys(
        [b" is the pass", b" is your pass", b" is my pass"], _PASSWORD_SENTENCE_PATTERN
    ),
    b"jdbc:oracle:thin:": compile_lazily(
        rb"(?i)jdbc:oracle:thin:[\w.-]{1,60}/(?P<bare>[^\s\"'@]{6,200})(?=@)"
    ),
}
"""Maps the first word of a command to the pattern of the secret in the command."""

_MNEMONIC_WORDS_EXPRESSION = rb"(?P<phrase>[a-z]{3,8}(?:[ \t]+[a-z]{3,8}){11,23})(?![\w-]|'[a-z])"
_LETTER_GROUPS_EXPRESSION = rb"[a-z]{4}(?:[ -][a-z]{4}){3}(?![\w-])"
_RECOVERY_CODE_EXPRESSION = rb"(?=[a-z0-9-]{0,40}\d)[a-z0-9]{4,10}(?:-[a-z0-9]{4,10}){0,6}(?![\w-])"
_PHRASE_SEPARATOR_EXPRESSION = rb"[\"']?(?:[ \t]{0,4}[=:(]|[ \t]{1,4}is)[ \t]{0,4}[\"'`]?"

PHRASE_PATTERNS = {
    b"private_key_id": compile_lazily(
        rb"(?i)private_key_id[\"']?\s{0,4}[:=]\s{0,4}[\"'](?P<phrase>[0-9a-f]{40})(?P<bare>)"
    ),
    **dict.fromkeys(
        [b"setcookie", b"erlang_cookie", b"erlang.cookie", b"erlangcookie"], _ERLANG_COOKIE_PATTERN
    ),
    b"mnemonic": compile_lazily(
        rb"(?i)mnemonic" + _PHRASE_SEPARATOR_EXPRESSION + _MNEMONIC_WORDS_EXPRESSION
    ),
    b"phrase": compile_lazily(
        rb"(?i)phrase" + _PHRASE_SEPARATOR_EXPRESSION + _MNEMONIC_WORDS_EXPRESSION
    ),
    b"app pass": compile_lazily(
        rb"(?i)app pass(?:word)?[^\n:=]{0,40}[:=][ \t]{0,4}[\"'`]?(?P<phrase>"
        + _LETTER_GROUPS_EXPRESSION
        + rb")"
    ),
    b"host_pass": compile_lazily(
        rb"(?i)host_pass(?:word)?[\"']?[ \t]{0,4}[=:][ \t]{0,4}[\"'`]?(?P<phrase>"
        + _LETTER_GROUPS_EXPRESSION
        + rb")"
    ),
    b"pass: ": compile_lazily(
        rb"(?i)pass: [\"'`](?P<phrase>" + _LETTER_GROUPS_EXPRESSION + rb")(?=[\"'`])"
    ),
    **dict.fromkeys(
        [b"recovery code", b"recovery key", b"backup code"],
        compile_lazily(
            rb"(?i)(?:recovery|backup) (?:code|key)s?[^\n:]{0,40}:\s{1,4}(?P<phrase>"
            + _RECOVERY_CODE_EXPRESSION
            + rb"(?:\s{1,4}"
            + _RECOVERY_CODE_EXPRESSION
            + rb"){0,30})"
        ),
    ),
    **dict.fromkeys(
        [
            b"auth_key",
            b"logged_in_key",
            b"nonce_key",
            b"auth_salt",
            b"logged_in_salt",
            b"nonce_salt",
        ],
        compile_lazily(
            rb"(?i)(?:auth|logged_in|nonce)_(?:key|salt)(?:[\"'][ \t]{0,4},[ \t]{0,20}(?P<quote>[\"'])"
            rb"(?P<phrase>[^\"'\r\n]{40,120})(?P=quote)"
            rb"|[ \t]{0,4}=[ \t]{0,4}[\"']?(?![\w.]+\()(?P<bare>[^\s\"']{40,120}))"
        ),
    ),
}
"""Maps the word before a secret to the pattern of the secret, for secrets that contain spaces or
consist only of words or digits."""

PRINT_COMMAND_EXPRESSION = (
    rb"(?=[^\n]{0,160}(?:(?i:pass|secret|token|key|cred)|\brand\b|pwgen))(?=[^\n]{0,160}\b"
    rb"(?:cat|get|show|read|print(?:env)?|echo|gen\w{0,12}|find-\w+-password|pwgen|rand|reveal|view|output|access"
    rb"|decrypt|cut|pass|\w{0,12}-(?:password|token)|\w{0,8}:generate)\b)"
)
"""A look-ahead expression for a command that may print a secret."""

_PRINTED_SECRET_PATTERN = compile_lazily(
    rb"\$ "
    + PRINT_COMMAND_EXPRESSION
    + rb"[^\n]{3,200}\n(?:\s{0,6}\d{1,6}\xe2\x86\x92)?[ \t]{0,8}(?:base64:)?(?P<bare>"
    + any_character_except(b"\"'`,;<>(){}|\\")
    + rb"{8,200})[ \t]{0,4}(?=[\n\"\x80-\xff]|\Z)"
)
"""Matches a shell prompt with a command that prints a secret, and the next line with the secret."""

_MAX_TABLE_ROWS = 40
_MAX_TABLE_ROW_BYTES = 400
_TABLE_HEADER_PATTERN = compile_lazily(
    rb"[\w \t.*-]{1,40}(?:[|\t][\w \t.*-]{1,40}){1,20}|[A-Za-z_]\w{0,30}(?:([,;])[A-Za-z_][\w ]{0,30}){1,20}"
)
_LINE_PREFIX_PATTERN = compile_lazily(
    rb"(?:\s{0,6}\d{1,6}\xe2\x86\x92|(?:[^\n\"]{0,20}\"\w{1,20}\": ?)?\")?[\x80-\xff]{0,12}"
)
"""Matches the text before the content of a line: a line number, or the name of a JSON field."""

_CELL_VALUE_PATTERN = compile_lazily(any_character_except(b"\"'`") + rb"{1,200}")
_HORIZONTAL_RULE_PATTERN = compile_lazily(rb"[\s|+:=-]{3,400}")
_COLUMN_SEPARATORS = (b"|", b",", b"\t", b";")
"""The separators of columns in a table, most reliable first."""

_CHARACTERS_BEFORE_CELL = frozenset([b",", b"|", b"\t", b";", b"("])
_CHARACTERS_AFTER_CELL = frozenset([b",", b"|", b";", b")"])
_INSERT_VALUES_PATTERN = compile_lazily(
    rb"(?i)[^()\n]{0,300}\)\s{0,20}values\s{0,20}\((?P<row>[^()\n]{1,400})\)"
)


def command_spans(raw: bytes, position: int, word: bytes) -> Generator[Span, None, None]:
    """Yield the password in a command that begins with ``word`` at ``position``, if there is one."""
    if word == b"<<<" and not _SECRET_READER_PATTERN.search(raw, max(0, position - 80), position):
        return
    if word == b"--from-literal" and not _CREATE_SECRET_COMMAND_PATTERN.search(
        raw, max(0, position - 400), position
    ):
        return
    if word in _WORDS_AFTER_VALUE:
        match = COMMAND_PATTERNS[word].search(
            raw, max(0, position - _VALUE_SEARCH_BYTES), position + _VALUE_SEARCH_BYTES
        )
    else:
        match = COMMAND_PATTERNS[word].match(raw, position)
    if match and word in _SENTENCE_WORDS and not is_password_in_sentence(match["bare"]):
        return
    if match and word == b"identified" and _is_prose(raw, position, match["quoted"]):
        return
    if match and word in _LOGIN_CALL_STARTS:
        is_mail_address = _MAIL_ADDRESS_PATTERN.fullmatch(match["quoted"]) is not None
        takes_no_password = word == b"user(" and not _USER_VERB_PATTERN.search(
            raw, max(0, position - 14), position
        )
        if is_mail_address or takes_no_password:
            return
    if match and word in _FIXED_FORMAT_WORDS and not is_placeholder(match["bare"]):
        yield Span("token", *match.span("bare"), GENERIC)
    elif match:
        yield from password_spans(match, only_passwords=word not in _AMBIGUOUS_WORDS)


def _is_prose(raw: bytes, position: int, value: bytes) -> bool:
    """Check whether ``identified by`` is part of a sentence: ``the module identified by 'fullname'``."""
    if not value.replace(b"_", b"").isalpha() or not raw.startswith(b"identified", position):
        return False
    return _USER_STATEMENT_PATTERN.search(raw, max(0, position - 200), position) is None


_USER_STATEMENT_PATTERN = compile_lazily(rb"(?i)\b(?:user|role|grant|login)\b")


def secret_phrase_spans(raw: bytes, position: int, word: bytes) -> Generator[Span, None, None]:
    """Yield the secret phrase, recovery codes or salt after a word at ``position``, if there is one."""
    match = PHRASE_PATTERNS[word].match(raw, position)
    if match:
        group = "phrase" if match["phrase"] else "bare"
        if not is_placeholder(match[group]) and not _is_camel_case_name(match[group]):
            yield Span("secret-phrase", *match.span(group), GENERIC)


def _is_camel_case_name(value: bytes) -> bool:
    """Check whether a value is an identifier of several words, for example ``getSetCookie``."""
    return (
        value.isalpha()
        and _CAMEL_HUMP_PATTERN.search(value) is not None
        and consists_of_words(value)
    )


_CAMEL_HUMP_PATTERN = compile_lazily(rb"[a-z][A-Z]")
_FILE_NAME_PATTERN = compile_lazily(rb"(?:[\w.~-]*/)*[A-Za-z_-]{1,60}\.[A-Za-z]{1,6}")


def printed_secret_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the output of the command after the prompt at ``position`` if the output is a secret."""
    match = _PRINTED_SECRET_PATTERN.match(raw, position)
    if match is None or _FILE_NAME_PATTERN.fullmatch(match["bare"]):
        return
    if (
        is_random_key(match["bare"])
        or is_likely_password(match["bare"])
        or is_secret_field(b"password", match["bare"])
    ):
        yield Span("password", *match.span("bare"), GENERIC)


def table_cell_spans(raw: bytes, start: int, end: int) -> Generator[Span, None, None]:
    """Yield the secrets in a table column whose name means a secret.

    The table may be CSV text or the values of an SQL ``INSERT``. The column's name is from
    ``start`` to ``end``.
    """
    if (
        raw[start - 1 : start] not in _CHARACTERS_BEFORE_CELL
        and raw[end : end + 2].strip()[:1] not in _CHARACTERS_AFTER_CELL
    ):
        return
    insert_match = _INSERT_VALUES_PATTERN.match(raw, end)
    bracket = raw.rfind(b"(", max(0, start - _MAX_TABLE_ROW_BYTES), start)
    if insert_match and bracket >= 0:
        row = insert_match["row"].split(b",")
        yield from _column_value_spans(
            raw, (start, end), row, raw.count(b",", bracket, start), insert_match.start("row")
        )
        return
    line_start = _start_of_line_text(
        raw, raw.rfind(b"\n", max(0, start - _MAX_TABLE_ROW_BYTES), start) + 1
    )
    line_end = raw.find(b"\n", end, end + _MAX_TABLE_ROW_BYTES)
    if line_end < 0 or start - line_start > _MAX_TABLE_ROW_BYTES:
        return
    header = raw[line_start:line_end].strip(b"\r")
    separator = next((separator for separator in _COLUMN_SEPARATORS if separator in header), b";")
    if header.startswith(VIM_SYNTAX_LINE_STARTS):
        return
    if separator not in header or not _TABLE_HEADER_PATTERN.fullmatch(
        header.strip(b"| \r") if separator == b"|" else header
    ):
        return
    if any(cell.strip().isdigit() for cell in header.split(separator)):
        return  # The line is a row of values and not the table's heading.
    column, separator_count = raw.count(separator, line_start, start), header.count(separator)
    for _ in range(_MAX_TABLE_ROWS):
        line_start, line_end = (
            _start_of_line_text(raw, line_end + 1),
            raw.find(b"\n", line_end + 1, line_end + 1 + _MAX_TABLE_ROW_BYTES),
        )
        line_end = (
            len(raw) if line_end < 0 and len(raw) - line_start < _MAX_TABLE_ROW_BYTES else line_end
        )
        if line_end > line_start and _HORIZONTAL_RULE_PATTERN.fullmatch(raw, line_start, line_end):
            continue
        row = raw[line_start:line_end].split(separator) if line_end > line_start else []
        if len(row) != separator_count + 1:
            return
        yield from _column_value_spans(raw, (start, end), row, column, line_start)


def _start_of_line_text(raw: bytes, line_start: int) -> int:
    """Return the start of the text in the line that begins at ``line_start``, after its line number."""
    prefix = _LINE_PREFIX_PATTERN.match(raw, line_start)
    if prefix:
        return prefix.end()
    return line_start


def _column_value_spans(
    raw: bytes, name_range: tuple[int, int], row: list[bytes], column: int, row_start: int
) -> Generator[Span, None, None]:
    """Yield the value in a column of a row if the name of the column marks it as a secret.

    The row begins at ``row_start``, and the column's name is at ``name_range``.
    """
    if column < len(row):
        match = _CELL_VALUE_PATTERN.search(row[column])
        value = match[0] if match else b""
        if value and is_secret_field(raw[slice(*name_range)], value):
            value_start = (
                row_start + sum(len(cell) + 1 for cell in row[:column]) + row[column].index(value)
            )
            yield Span("password", value_start, value_start + len(value), GENERIC)
