"""Values that the name before them makes secret: ``API_KEY=...``, ``"clientSecret": "..."``, ``Bearer ...``."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from resume_hooks.redaction.credentials import is_basic
from resume_hooks.redaction.false_positives import entropy, is_id, is_key, stands_for
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.load_rules import Rule, token_rules
from resume_hooks.redaction.passwords import HARMLESS, is_secret_field
from resume_hooks.redaction.spans import ASSIGNED, GENERIC, Span
from resume_hooks.redaction.ways import PAIRED

_REACH = 64
"""The number of bytes before a value to search for its name."""

LONGEST = 400
"""The maximum size in bytes of a value that is secret by its name alone."""

_BETWEEN = b"\"'`\\ \t=:>,?|]"
_SCHEMES = (b"bearer", b"basic", b"token", b"apikey", b"ssws")
"""The last word before the credentials in an ``Authorization`` header."""

_ENV = late(rb"(?:env|setx|setenv|configure set) +[\w.-]+\Z")
"""Commands, including a Dockerfile's, in which a space separates a name from its value."""

_OPTION = late(rb"(?:\A|[ \t])--[a-z][a-z-]*\Z")
"""A long option that is followed by a space and its value."""

_DEFINED = late(rb"define +[\w.-]+\Z")
"""A definition in C, in which an unquoted value is a name."""

_SHORTEST_PAT = 30
"""The minimum size in bytes of a personal access token; shorter values with that name are something else."""

_SIGNS = late(rb"[=:>]|[\"'] ?, ?\\*[\"']")
_NAME = bytes(sign if chr(sign).isalnum() or sign in b"_.-" else 0 for sign in range(128)) + bytes(
    128
)
_PHRASE = bytes(sign or (32 if place in b" \t" else 0) for place, sign in enumerate(_NAME))
_NAMED = late(
    rb"(?:api|app|access|secret|private|auth|encryption|signing|master|account|shared|service|license|deploy|admin|"
    rb"fernet|storage|subscription|consumer|client|write|webhook|integration|hmac|jwt"
    rb"|session[_.-]?secret)[_.-]?(?:secret[_.-]?)?"
    rb"key(?:[_.-]?base)?|(?<!key)(?<!key.)(?:token|secret|(?<=_)pat|passw(?:or)?d|passphrase|pwd|credentials?)"
)
_ENDING = late(
    rb"(?:[_.-]?(?:\d{1,2}|value|prod|production|dev|staging|test|live|default|primary|secondary|old|new))?\Z"
)
_ENV_NAME = late(
    rb"(?<![\w$-])[A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*(?:KEY|SALT|AUTH|PAT|PW|SIGNATURE|SEED|CREDS?|COOKIE|SESSION)"
    rb"[\"'`\\ \t]*[=:][\"'`\\ \t]*\Z"
)
_ENV_ENDS = (
    b"_key",
    b"_salt",
    b"_auth",
    b"_pat",
    b"_pw",
    b"_signature",
    b"_seed",
    b"_cred",
    b"_creds",
    b"_cookie",
    b"_session",
)
"""An environment variable with a significant last word. In a program's own names, the same word is
less significant."""

_CALLED = late(
    rb"(?:new (?!\w{0,12}(?:number|integer|buffer|big))[\w.]{4,40}"
    rb"|[\w.]{0,30}(?:client|credentials?|auth\w{0,12}|login|connect\w{0,8}"
    rb"|fernet|cipher|bot\w{0,8}|resend|openai|anthropic|jwt\.\w{3,8}))"
    rb"\((?:\w{1,20} ?= ?)?(?:b?[\"'][^\"'\n]{1,60}[\"'], ?){0,2}b?[\"']\Z"
)
"""A call with a key as one of its arguments."""

_PARAMETER = late(rb"[?&](?:key|code|sid|ticket|assertion)=\Z")
_NO_NAMES = tuple(
    sign + b":secret" for sign in (*(b"%d" % digit for digit in range(10)), b"*", b"}")
)
"""The text before a secret's name in AWS notation."""

_FIELDS = (b"value", b"default", b"content", b"secretstring", b"plaintext", b"body")
_FARTHEST = 200
_PAIRED = late(
    rb"(?<![\w.-])([\w.-]{3,60}+)[\\\"'`]{0,8}"
    rb"(?:[ \t]{0,4},?(?:\s|\\+[nrt]|\d{1,6}(?:\xe2\x86\x92|\\+u2192)){1,60}|[ \t]{0,4},|[ \t]{0,4}\{[^{}]{0,160}?\W)"
    rb"[\\\"'` -]{0,16}" + PAIRED + rb"\Z"
)
"""A name that is in the field before the value's field."""

_TYPED = late(rb"([\w-]+)[ \t]*:[ \t]*&?[\w<>&']{1,24}\Z")
"""A name followed by its type."""

_UUID_NAME = late(
    rb"(?:api[_.-]?key|(?:auth|access|api|deploy)[_.-]?token|secret(?:[_.-]?key)?|_(?:token|key|pat|secret"
    rb"|password))\Z"
)
"""A name whose value is secret even if it is a UUID; most UUIDs are only identifiers."""

_RAW_KEY = late(rb"[A-Za-z0-9+/_-]{43}=(?![\w=])")
"""Thirty-two random bytes."""

_VALUE = late(rb"[\w.=+/~-]{16,400}")
_GAP = rb"(?:\s|\d{1,6}(?:\xe2\x86\x92|\\+u2192)){0,60}"

_OVER = late(
    rb"[=:][ \t]*(?:[|>][+-]?|\\+|\()[ \t]*(?:\r?\n|\\+n)(?:[\s\"'`\\]|\d{1,6}(?:\xe2\x86\x92|\\+u2192)){0,50}\Z"
)
"""The text between a name and a value on the next line."""

_PIECE = late(
    rb"(?:\\?[\"'](?:[ \t]*[+\\]"
    + _GAP
    + rb"|[ \t]*\n"
    + _GAP
    + rb")\\?[\"']|\\\n[ \t]*)([\w.=+/~-]{8,400})"
)
"""The continuation of a value: the next string literal, or the next line after a backslash."""

_BELOW = {b"  ", b' "', b" '", b'\t"', b"\t'", b"\t\t", b'\\"'}
"""The characters directly before a value on its own line."""

_INDENT = 40
"""The number of bytes before a value to search for the end of the previous line."""

_FOLDED = late(rb"\n" + _GAP + rb"[ \t]([\w.=+/~-]{16,400})[ \t]*(?=\n|\Z)")
"""The next line of a value in YAML."""

_MOST_PIECES = 40
ENDS = {b'"', b"'", b"\\"}
"""The character that follows a value which may continue."""

INDENTS = {b"  ", b"\t\t"}
"""The characters before a value that begins on the line below its name."""


def continuing_spans(raw: bytes, start: int, first: Span) -> Iterator[Span]:
    """Yield the continuations of the value at ``start`` in further string literals and lines."""
    if raw[start - 2 : start] not in INDENTS:
        pattern = _PIECE
    elif _OVER.search(raw[max(0, start - _REACH) : start]):
        pattern = _FOLDED
    else:
        return
    end = first.end
    for _ in range(_MOST_PIECES):
        piece = pattern.match(raw, end)
        if piece is None or not is_key(piece[1]):
            break
        yield Span(first.kind, *piece.span(1), first.rank)
        end = piece.end()


def assigned_run_spans(raw: bytes, lower: bytes, start: int) -> list[Span]:
    """Return the secret at ``start`` that the name before it identifies, as a list of at most one item."""
    name, between = _name_before_value(lower, start)
    if not between:
        return []
    if not _is_set(name, between):
        return [] if b"|" in between else _authorization_spans(raw, start, name)
    numbers, generic = _kinds_of_name(name)
    generic = generic or _kind_of_chance_value(raw, start, name)
    for number in numbers:
        for rule in token_rules().vendors[number]:
            found = rule.regex.match(raw, start)
            if found and _is_value_of_rule(rule, found[1], name):
                return [Span(rule.kind, found.start(1), found.end(1), ASSIGNED)]
    value = _VALUE.match(raw, start)
    if value and _is_auth(name) and is_basic(value[0]):
        return [Span("basic-credentials", start, value.end(), GENERIC)]
    if not generic or not value or raw[value.end() : value.end() + 1] == b"(":
        return []
    if name.endswith(b"_pat") and len(value[0]) < _SHORTEST_PAT:
        return []
    if not (_UUID_NAME.search(name) if is_id(value[0]) else is_key(value[0])) or name.endswith(
        value[0].lower()
    ):
        return []
    return [Span(generic, start, value.end(), GENERIC)]


def _is_value_of_rule(rule: Rule, value: bytes, name: bytes) -> bool:
    """Check whether a value of the rule's shape is a secret, not an example or the end of its own name."""
    if entropy(value) < rule.entropy or stands_for(value):
        return False
    return not name.endswith(value.lower())


def _kind_of_chance_value(raw: bytes, start: int, name: bytes) -> str:
    """Return the kind of secret for a random key or an environment variable's value, or ``""``."""
    if name.endswith(b"key") and _RAW_KEY.match(raw, start):
        return "secret"
    if name.endswith(_ENV_ENDS) and not HARMLESS.search(name):
        if _ENV_NAME.search(raw, max(0, start - _REACH), start):
            return "secret"
        return ""
    return ""


def _authorization_spans(raw: bytes, start: int, name: bytes) -> list[Span]:
    """Return the credentials in an ``Authorization`` header, or in a command that contains one."""
    if name.endswith(_SCHEMES):
        value = _VALUE.match(raw, start)
    else:
        value = None
    if not value:
        return []
    if name.endswith(b"basic"):
        secret = is_basic(value[0])
    else:
        secret = is_key(value[0]) and not HARMLESS.search(name)
    if secret:
        return [Span("authorization-header", start, value.end(), GENERIC)]
    return []


def is_named(lower: bytes, start: int) -> bool:
    """Check whether the name before the value at ``start`` may make it secret."""
    name, between = _name_before_value(lower, start)
    if not between:
        return False
    if _is_set(name, between):
        numbers, generic = _kinds_of_name(name)
    else:
        numbers, generic = ((), "")
    return (
        bool(numbers or generic) or _is_auth(name) or name.endswith((*_SCHEMES, *_ENV_ENDS, b"key"))
    )


def field_spans(key: bytes, value: bytes) -> list[Span]:
    """Return the secret in the string ``value`` of a JSON object that its ``key`` identifies.

    The list has at most one item.
    """
    if not 6 <= len(value) <= LONGEST:
        return []
    opening = key[-_REACH:] + b'": "'
    text = opening + value + b'"'
    found = assigned_run_spans(text, text.lower(), len(opening))
    if not found and is_secret_field(key, value):
        found = [Span("password", len(opening), len(opening) + len(value), GENERIC)]
    return [
        Span(span.kind, span.start - len(opening), span.end - len(opening), span.rank)
        for span in found
    ]


def _is_set(name: bytes, between: bytes) -> bool:
    """Check whether the text between a name and a value is an assignment."""
    return bool(
        _SIGNS.search(between)
        or _ENV.search(name)
        or _OPTION.search(name)
        or (_DEFINED.search(name) and between.strip())
    )


def _is_auth(name: bytes) -> bool:
    """Check whether a name belongs to credentials in Docker's and npm's settings."""
    return name in {b"auth", b"_auth", b"identitytoken"}


def _name_before_value(lower: bytes, start: int) -> tuple[bytes, bytes]:
    """Return the words before a value on the same line, and the text between the words and the value."""
    if lower[start - 1] not in _BETWEEN:
        return b"", b""
    before = lower[max(0, start - _REACH) : start]
    if before[-2:] in _BELOW and (b"\n" in before[-_INDENT:] or b"\\n" in before[-_INDENT:]):
        over = _OVER.search(before)
        before = before[: over.start() + 1] if over else before
    name = before.rstrip(_BETWEEN)
    if before.endswith((b'"', b"'")) and _CALLED.search(before):
        return b"api_key", b"="
    phrase, between = name.translate(_PHRASE).rpartition(b"\0")[2][-40:], before[len(name) :]
    if phrase.endswith(_FIELDS) and (
        paired := _PAIRED.search(lower, max(0, start - _FARTHEST), start - len(between))
    ):
        return paired[1], b"="
    if b"=" in between and (typed := _TYPED.search(name, max(0, len(name) - 60))):
        return typed[1], between
    if _PARAMETER.search(lower, start - 12, start):
        return b"api_key", between
    if name.endswith(_NO_NAMES) or name.endswith(b"::" + phrase):
        return b"", b""  # a type in a program, or a name that is assigned to itself
    return phrase, between


@lru_cache(maxsize=4096)
def _kinds_of_name(phrase: bytes) -> tuple[tuple[int, ...], str]:
    """Return the vendors in a name's last words, as indexes of the rules, and the generic kind or ``""``."""
    numbers = tuple(
        found.lastindex - 1 for found in token_rules().names.finditer(phrase) if found.lastindex
    )
    name = phrase.rpartition(b" ")[2].strip(b".-")
    if HARMLESS.search(name):
        return numbers, ""
    for found in _NAMED.finditer(name):
        if _ENDING.match(name, found.end()):
            return numbers, _generic_kind(found[0])
    return numbers, ""


def _generic_kind(word: bytes) -> str:
    if word.startswith((b"passw", b"pwd", b"passph")):
        return "password"
    if b"token" in word:
        return "token"
    if word.endswith(b"key") and word.startswith(b"api"):
        return "api-key"
    return "secret"
