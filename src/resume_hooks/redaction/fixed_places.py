"""Secrets recognised only by their position: in commands, statements, files, printed output, table columns."""

from __future__ import annotations

from collections.abc import Generator

from resume_hooks.redaction.false_positives import is_key, is_password, stands_for
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.passwords import is_said_password, is_secret_field, password_spans
from resume_hooks.redaction.spans import GENERIC, Span
from resume_hooks.redaction.ways import ARGUMENTS, QUOTED, VALUE, any_except

_NEXT = rb"[ \t]{1,4}\S{1,100}"
_LINE = rb"(?:\s|\d{1,6}\xe2\x86\x92){1,20}"
"""The start of the next line, possibly with a line number from a tool."""

_LOGIN = late(rb"(?i)[\w.>-]{2,20}" + ARGUMENTS)
_LOGINS = b"mysqli( pdo( connect( connection( hmac( user( algoliasearch( wifi.begin(".split()
_ASKED = late(
    rb"(?i)expect\b[^\n]{0,20}(?:ass(?:word|phrase|code)|secret)[^\n]{0,20}[\n{;][^\n]{0,30}send(?:line)?[ \t(]{1,3}"
    rb"(?:-- )?[\"']?(?P<bare>" + any_except(b"\"'\\") + rb"{6,200})"
)
_COOKIE = late(
    rb"(?i)(?:set|erlang[_.]?)cookie[\"']?(?:[ \t]{0,4}[=:][ \t]{0,4}|[ \t]{1,4}|"
    + _LINE
    + rb")(?P<phrase>[\w-]{12,255})"
)
_POSTFIX = late(rb"\]:\d{2,4}[ \t]{1,30}\S{1,80}:" + VALUE)
_REDIS = late(rb"masterauth[ \t]{1,30}" + VALUE)
_BUNDLE = late(
    rb"(?i)bundle(?:[ \t]{1,4}config(?:[ \t]{1,4}[\w.:/-]{1,80}){1,4}[ \t]{1,4}|_\w{2,80}[\"']?[:=][ \t]{0,4}[\"']?)"
    rb"[\w-]{1,60}:" + VALUE
)

_PIPED = (
    rb"(?:echo|printf)[ \t]+(?:-\w{1,3}[ \t]+|[\"']%s(?:\\n)?[\"'][ \t]+){0,3}"
    rb"(?:(?P<quote>[\"'])(?:[\w.@-]{1,60}:)?(?P<quoted>[^\"'\r\n\\:]{6,200})(?P=quote)"
    rb"|(?:[\w.@-]{1,60}:)?(?P<bare>"
    + any_except(b"\"'`,;<>(){}|\\:")
    + rb"{6,200}))[ \t]{0,4}\|[ \t]{0,4}(?:sudo[ \t]{1,4}(?!-S))?"
    rb"(?:[\w./-]{0,60}(?:pass|keystore|secret|vault|cryptsetup|kinit|su\b|sudo -S|login|credential)"
    rb"|[^|\n]{0,100}(?:-stdin|--pass|-fd\b|passwd|secrets? (?:put|create|set|add)| login| unlock))"
)
"""A value that is piped to a command that reads a secret."""

_ASKING = late(rb"pass|sudo|secret|kinit|keyring|login|env add|token|unlock|crypt[^\n]{0,70}\Z")

_LOG_IN_AS = late(
    rb"(?i)log ?in as [\w.@-]{2,40} (?:with|using)(?: the)?(?: pass(?:word|phrase|code)?| pw)?:? [\"'`]?(?P<bare>"
    + any_except(b"\"'`,;<>(){}|\\")
    + rb"{6,60})"
)

_SAID_BEFORE = late(
    rb"(?i)(?<![^\s\"'`(\x80-\xff])(?P<bare>"
    + any_except(b"\"'`,;<>(){}|\\")
    + rb"{6,60})[\"'`]? is (?:the|your|my) (?:(?:new|current|root|admin|\w{1,12}'s) )?pass(?:word|phrase|code|wd)?"
    rb"(?=[.,;!?)\"'`\\<\x80-\xff]|\s*\n|\s*\Z| (?:for|of|to|on|there)\b)"
)
"""A value that precedes the words that describe it."""

_BEFORE_WORDS = frozenset([b" is the pass", b" is your pass", b" is my pass"])
_SENTENCES = _BEFORE_WORDS | {b"log in as ", b"login as "}
"""Words in a sentence after which a value counts only if it contains a digit and is not a name."""

_LONGEST_SAID = 64
"""The number of bytes before such words to search for the value."""

_OF_A_SECRET = late(rb"create[ \t]+secret\b(?:[^\n]|\\\n)*\Z")
"""The command that creates a Kubernetes secret, up to an argument. The command may extend over
several lines."""

_EXACT = frozenset([b"codecov", b"kubeadm"])
"""Words after which only the value's format decides: a UUID, or two words of letters and digits."""

_UNSURE = frozenset(
    [*_LOGINS, *_SENTENCES, b"--from-literal", b" -u ", b"--user ", b"<<<", b"snmp", b"user create"]
)
"""Words that values other than passwords may follow, so that ordinary words after them do not
count."""

_ELASTIC = late(rb"(?i)password[ \t]+\w{2,30}[ \t]+=[ \t]+" + VALUE)
_ELASTIC_USERS = b"elastic kibana logstash_system beats_system apm_system remote_monitoring".split()

COMMANDS = {
    b"kubeadm": late(
        rb"(?i)kubeadm[^\n]{0,80}?\btoken[\"']?(?:[ \t]{0,4}[=:][ \t]{0,4}|[ \t]{1,4})"
        rb"(?P<bare>[a-z0-9]{6}\.[a-z0-9]{16})\b"
    ),
    b"codecov": late(
        rb"(?i)codecov[^\n|;&]{0,100}?[ \t](?:-t|--token)[ =]{1,3}[\"']?(?P<bare>[0-9a-f-]{36})\b"
    ),
    b"random_password": late(
        rb"random_password[^}]{0,800}?\bresult[\"']?[ \t]{0,20}[=:][ \t]{0,4}" + QUOTED
    ),
    **dict.fromkeys([b"password " + name for name in _ELASTIC_USERS], _ELASTIC),
    b"net use": late(
        rb"(?i)net use(?:[ \t]+(?:[a-z*]:?[ \t]+)?\\{2,8}\S{1,200}(?:[ \t]+/\S{1,100}+){0,4}|r[ \t]+[^\s/]{1,60})"
        rb"[ \t]+(?!/)" + VALUE
    ),
    b"rabbitmqctl": late(
        rb"rabbitmqctl(?:[ \t]+-\S{1,60}){0,4}[ \t]+(?:add_user|change_password"
        rb"|authenticate_user)[ \t]+\S{1,60}[ \t]+" + VALUE
    ),
    b"identified": late(
        rb"(?i)identified[ \t]+(?:with[ \t]+\S{1,60}[ \t]+)?(?:by|as)[ \t]+(?:password[ \t]+)?"
        + QUOTED
    ),
    b"fied by ": late(
        rb"(?-i:FIED BY )(?P<bare>(?=\S{0,40}\d)" + any_except(b"\"'`,;<>(){}|\\%") + rb"{6,200})"
    ),
    b":5432:": late(rb"(?<=[\w*-]):5432:[\w.*-]{1,60}:[\w.*-]{1,60}:" + VALUE),
    **dict.fromkeys(_LOGINS, _LOGIN),
    b"masterauth": _REDIS,
    **dict.fromkeys([b"bundle config", b"bundle_"], _BUNDLE),
    **dict.fromkeys([b"]:25", b"]:465", b"]:587"], _POSTFIX),
    b"expect": _ASKED,
    b"echo ": late(_PIPED),
    b"printf ": late(_PIPED),
    **dict.fromkeys([b"{plain}"], late(rb"(?i)\{plain\}" + VALUE)),
    **dict.fromkeys(
        [b"sqlplus", b"rman target"],
        late(
            rb"\w{4,7}[^\n/]{0,60}[ \t][\"']?(?:userid=)?\w{1,40}/[\"']?(?P<bare>"
            + any_except(b"\"'@/\\")
            + rb"{6,200})(?=[@\s\"'\x80-\xff\\]|\Z)"
        ),
    ),
    **dict.fromkeys(
        [b" -u ", b"--user "],
        late(
            rb"[ -]-\w{1,6}[ \t]{1,4}[\"']?[\w.@-]{1,60}:(?P<bare>"
            + any_except(b"\"'\\;|&<>")
            + rb"{6,200})"
        ),
    ),
    b"snmp": late(
        rb"snmp\w{2,10}(?=[ \t])[^\n|;&]{0,100}?[ \t]-[cAX][ \t]{0,4}(?!\[secret)" + VALUE
    ),
    b"ssh-keygen": late(
        rb"ssh-keygen(?=[ \t])[^\n|;&]{0,100}?[ \t]-[NP][ \t]{0,4}(?!\[secret)" + VALUE
    ),
    b"openssl enc": late(rb"openssl enc[^\n|;&]{0,100}?[ \t]-k[ \t]{1,4}" + VALUE),
    b"user create": late(rb"user create[ \t]+[\w.@-]{1,60}[ \t]+(?!-)" + VALUE),
    b"--plaintext ": late(rb"--plaintext[ \t]+(?!-)" + VALUE),
    b"jwt.": late(rb"(?i)jwt\.\w{4,8}\((?:\{[^{}]{0,200}\}|[\w.]{1,40}),[ \t]{0,4}" + QUOTED),
    b"nickserv": late(rb"(?i)nickserv[ :]{1,3}identify[ \t]+(?:[\w-]{1,30}[ \t]+(?=\S))?" + VALUE),
    b"<<<": late(rb"<<<[ \t]*" + VALUE),
    b" on >": late(rb" on >(?P<bare>[^\s\"'<>|&;]{8,200})(?=[ \t]{1,4}[~+&%])"),
    b"chpasswd:": late(
        rb"chpasswd:"
        + _LINE
        + rb"(?:expire:[^\n]{1,10}"
        + _LINE
        + rb")?(?:list|users):(?:[ \t]{0,4}\|)?"
        + _LINE
        + rb"(?:[\w.-]{1,60}:[^\n]{1,80}"
        + _LINE
        + rb"){0,6}?[\w.-]{1,60}:(?!\[secret)"
        + VALUE
    ),
    b"mc alias set": late(rb"mc alias set" + _NEXT * 3 + rb"[ \t]{1,4}" + VALUE),
    b"--from-literal": late(
        rb"--from-literal[ =][\"']?[\w.-]{1,80}=(?P<bare>"
        + any_except(b"\"'`,;<>(){}|\\")
        + rb"{6,200})"
    ),
    b"secret set ": late(
        rb"secret set[ \t]+\w{1,80}(?:[ \t]+(?!-b|--body)--?\w{1,20}[ =]\S{1,80}){0,4}[ \t]+(?:-b|--body)[ =]"
        + VALUE
    ),
    **dict.fromkeys([b"log in as ", b"login as "], _LOG_IN_AS),
    **dict.fromkeys([b" is the pass", b" is your pass", b" is my pass"], _SAID_BEFORE),
    b"jdbc:oracle:thin:": late(
        rb"(?i)jdbc:oracle:thin:[\w.-]{1,60}/(?P<bare>[^\s\"'@]{6,200})(?=@)"
    ),
}
"""The notation of a secret, by the word with which the notation begins."""

_WORDS = rb"(?P<phrase>[a-z]{3,8}(?:[ \t]+[a-z]{3,8}){11,23})(?![\w-]|'[a-z])"
_GROUPS = rb"[a-z]{4}(?:[ -][a-z]{4}){3}(?![\w-])"
_CODE = rb"(?=[a-z0-9-]{0,40}\d)[a-z0-9]{4,10}(?:-[a-z0-9]{4,10}){0,6}(?![\w-])"
_SAID = rb"[\"']?(?:[ \t]{0,4}[=:(]|[ \t]{1,4}is)[ \t]{0,4}[\"'`]?"

PHRASES = {
    b"private_key_id": late(
        rb"(?i)private_key_id[\"']?\s{0,4}[:=]\s{0,4}[\"'](?P<phrase>[0-9a-f]{40})(?P<bare>)"
    ),
    **dict.fromkeys([b"setcookie", b"erlang_cookie", b"erlang.cookie", b"erlangcookie"], _COOKIE),
    b"mnemonic": late(rb"(?i)mnemonic" + _SAID + _WORDS),
    b"phrase": late(rb"(?i)phrase" + _SAID + _WORDS),
    b"app pass": late(
        rb"(?i)app pass(?:word)?[^\n:=]{0,40}[:=][ \t]{0,4}[\"'`]?(?P<phrase>" + _GROUPS + rb")"
    ),
    b"host_pass": late(
        rb"(?i)host_pass(?:word)?[\"']?[ \t]{0,4}[=:][ \t]{0,4}[\"'`]?(?P<phrase>" + _GROUPS + rb")"
    ),
    b"pass: ": late(rb"(?i)pass: [\"'`](?P<phrase>" + _GROUPS + rb")(?=[\"'`])"),
    **dict.fromkeys(
        [b"recovery code", b"recovery key", b"backup code"],
        late(
            rb"(?i)(?:recovery|backup) (?:code|key)s?[^\n:]{0,40}:\s{1,4}(?P<phrase>"
            + _CODE
            + rb"(?:\s{1,4}"
            + _CODE
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
        late(
            rb"(?i)(?:auth|logged_in|nonce)_(?:key|salt)(?:[\"'][ \t]{0,4},[ \t]{0,20}(?P<quote>[\"'])"
            rb"(?P<phrase>[^\"'\r\n]{40,120})(?P=quote)"
            rb"|[ \t]{0,4}=[ \t]{0,4}[\"']?(?P<bare>[^\s\"']{40,120}))"
        ),
    ),
}
"""The notation of a secret that has spaces, or consists only of words or digits, by its first
word."""

PRINTING = (
    rb"(?=[^\n]{0,160}(?:(?i:pass|secret|token|key|cred)|\brand\b|pwgen))(?=[^\n]{0,160}\b"
    rb"(?:cat|get|show|read|print(?:env)?|echo|gen\w{0,12}|find-\w+-password|pwgen|rand|reveal|view|output|access"
    rb"|decrypt|cut|pass|\w{0,12}-(?:password|token)|\w{0,8}:generate)\b)"
)
"""A lookahead for a command that may print a secret."""

_PRINTED = late(
    rb"\$ "
    + PRINTING
    + rb"[^\n]{3,200}\n(?:\s{0,6}\d{1,6}\xe2\x86\x92)?[ \t]{0,8}(?:base64:)?(?P<bare>"
    + any_except(b"\"'`,;<>(){}|\\")
    + rb"{8,200})[ \t]{0,4}(?=[\n\"\x80-\xff]|\Z)"
)
"""A command after a prompt that prints a secret, followed by a line that contains nothing else."""

_MOST_ROWS = 40
_LONGEST_ROW = 400
_HEAD = late(
    rb"[\w \t.*-]{1,40}(?:[|\t][\w \t.*-]{1,40}){1,20}|[A-Za-z_]\w{0,30}(?:([,;])[A-Za-z_][\w ]{0,30}){1,20}"
)
_FRONT = late(
    rb"(?:\s{0,6}\d{1,6}\xe2\x86\x92|(?:[^\n\"]{0,20}\"\w{1,20}\": ?)?\")?[\x80-\xff]{0,12}"
)
"""The text before a line's content: a number, or the name of a JSON field."""

_VALUE = late(any_except(b"\"'`") + rb"{1,200}")
_RULE = late(rb"[\s|+:=-]{3,400}")
_COLUMN_SIGNS = (b"|", b",", b"\t", b";")
"""The separators of a table's columns, the most reliable first."""

_BEFORE = frozenset([b",", b"|", b"\t", b";", b"("])
_BEHIND = frozenset([b",", b"|", b";", b")"])
_INSERTED = late(rb"(?i)[^()\n]{0,300}\)\s{0,20}values\s{0,20}\((?P<row>[^()\n]{1,400})\)")


def command_spans(raw: bytes, place: int, word: bytes) -> Generator[Span, None, None]:
    """Yield the password, if any, in a command that begins at ``place``."""
    if word == b"<<<" and not _ASKING.search(raw, max(0, place - 80), place):
        return
    if word == b"--from-literal" and not _OF_A_SECRET.search(raw, max(0, place - 400), place):
        return
    if word in _BEFORE_WORDS:
        found = COMMANDS[word].search(raw, max(0, place - _LONGEST_SAID), place + _LONGEST_SAID)
    else:
        found = COMMANDS[word].match(raw, place)
    if found and word in _SENTENCES and not is_said_password(found["bare"]):
        return
    if found and word in _EXACT and not stands_for(found["bare"]):
        yield Span("token", *found.span("bare"), GENERIC)
    elif found:
        yield from password_spans(found, sure=word not in _UNSURE)


def phrase_spans(raw: bytes, place: int, word: bytes) -> Generator[Span, None, None]:
    """Yield the phrase, the codes or the salt, if any, after a word at ``place``."""
    found = PHRASES[word].match(raw, place)
    if found:
        group = "phrase" if found["phrase"] else "bare"
        if not stands_for(found[group]):
            yield Span("secret-phrase", *found.span(group), GENERIC)


_FILE = late(rb"(?:[\w.~-]*/)*[A-Za-z_-]{1,60}\.[A-Za-z]{1,6}")


def printed_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Yield the output of the command after the prompt at ``place`` if the output is a secret."""
    found = _PRINTED.match(raw, place)
    if found is None or _FILE.fullmatch(found["bare"]):
        return
    if (
        is_key(found["bare"])
        or is_password(found["bare"])
        or is_secret_field(b"password", found["bare"])
    ):
        yield Span("password", *found.span("bare"), GENERIC)


def table_cell_spans(raw: bytes, start: int, end: int) -> Generator[Span, None, None]:
    """Yield the secrets in a table's or a CSV text's column whose name indicates secrets."""
    if raw[start - 1 : start] not in _BEFORE and raw[end : end + 2].strip()[:1] not in _BEHIND:
        return
    inserted = _INSERTED.match(raw, end)
    opened = raw.rfind(b"(", max(0, start - _LONGEST_ROW), start)
    if inserted and opened >= 0:
        row = inserted["row"].split(b",")
        yield from _cell_spans(
            raw, (start, end), row, raw.count(b",", opened, start), inserted.start("row")
        )
        return
    line = _start_of_line_text(raw, raw.rfind(b"\n", max(0, start - _LONGEST_ROW), start) + 1)
    stop = raw.find(b"\n", end, end + _LONGEST_ROW)
    if stop < 0 or start - line > _LONGEST_ROW:
        return
    head = raw[line:stop].strip(b"\r")
    sign = next((sign for sign in _COLUMN_SIGNS if sign in head), b";")
    if sign not in head or not _HEAD.fullmatch(head.strip(b"| \r") if sign == b"|" else head):
        return
    if any(cell.strip().isdigit() for cell in head.split(sign)):
        return  # a row of values
    column, number = raw.count(sign, line, start), head.count(sign)
    for _ in range(_MOST_ROWS):
        line, stop = (
            _start_of_line_text(raw, stop + 1),
            raw.find(b"\n", stop + 1, stop + 1 + _LONGEST_ROW),
        )
        stop = len(raw) if stop < 0 and len(raw) - line < _LONGEST_ROW else stop
        if stop > line and _RULE.fullmatch(raw, line, stop):
            continue
        row = raw[line:stop].split(sign) if stop > line else []
        if len(row) != number + 1:
            return
        yield from _cell_spans(raw, (start, end), row, column, line)


def _start_of_line_text(raw: bytes, line: int) -> int:
    """Return the start of the text in the line that begins at ``line``."""
    front = _FRONT.match(raw, line)
    if front:
        return front.end()
    return line


def _cell_spans(
    raw: bytes, name: tuple[int, int], row: list[bytes], column: int, start: int
) -> Generator[Span, None, None]:
    """Yield the value in a column of the row at ``start`` if the column's name makes it a secret."""
    if column < len(row):
        found = _VALUE.search(row[column])
        value = found[0] if found else b""
        if value and is_secret_field(raw[slice(*name)], value):
            at = start + sum(len(each) + 1 for each in row[:column]) + row[column].index(value)
            yield Span("password", at, at + len(value), GENERIC)
