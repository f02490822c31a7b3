"""Find values that are secret because of the name before them.

Examples are ``API_KEY=...``, ``"clientSecret": "..."`` and ``Bearer ...``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from resume_hooks.redaction.credentials import is_basic_auth
from resume_hooks.redaction.false_positives import entropy, is_placeholder, is_random_key, is_uuid
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.load_rules import Rule, token_rules
from resume_hooks.redaction.notations import VALUE_FIELD_NAME_EXPRESSION
from resume_hooks.redaction.passwords import HARMLESS_NAME_PATTERN, is_secret_field
from resume_hooks.redaction.spans import ASSIGNED, GENERIC, Span

_NAME_SEARCH_BYTES = 64
"""The number of bytes before a value in which its name is searched for."""

MAX_VALUE_BYTES = 400
"""Maximum number of bytes in a value that is a secret only because of its name."""

_SEPARATOR_CHARACTERS = b"\"'`\\ \t=:>,?|]"
_AUTH_SCHEMES = (b"bearer", b"basic", b"token", b"apikey", b"ssws")
"""The words that may precede the credentials in an ``Authorization`` header."""

_SCHEME_SEPARATOR_CHARACTERS = b" \t:\"'`\\"
"""The characters between the scheme, such as ``bearer``, and the credentials in an
``Authorization`` header."""

_SET_COMMAND_PATTERN = compile_lazily(rb"(?:env|setx|setenv|configure set) +[\w.-]+\Z")
"""Matches a command with a space between a name and its value, for example ``setenv NAME value``.
"""

_LONG_OPTION_PATTERN = compile_lazily(rb"(?:\A|[ \t])--[a-z][a-z-]*\Z")
"""Matches a long option before a space and the option's value."""

_C_DEFINE_PATTERN = compile_lazily(rb"define +[\w.-]+\Z")
"""Matches the beginning of a macro definition in C. An unquoted value in the definition is a name.
"""

_MIN_PERSONAL_ACCESS_TOKEN_BYTES = 30
"""Minimum number of bytes in a personal access token. A shorter value is not a token, even if its
name is, for example, ``GITHUB_PAT``."""

_ASSIGNMENT_SIGN_PATTERN = compile_lazily(rb"[=:>]|[\"'] ?, ?\\*[\"']")
_NAME_BYTE_TABLE = bytes(
    sign if chr(sign).isalnum() or sign in b"_.-" else 0 for sign in range(128)
) + bytes(128)
_PHRASE_BYTE_TABLE = bytes(
    sign or (32 if place in b" \t" else 0) for place, sign in enumerate(_NAME_BYTE_TABLE)
)
_SECRET_WORD_PATTERN = compile_lazily(
    rb"(?:api|app|access|secret|private|auth|encryption|signing|master|account|shared|service|license|deploy|admin|"
    rb"fernet|storage|subscription|consumer|client|write|webhook|integration|hmac|jwt"
    rb"|session[_.-]?secret)[_.-]?(?:secret[_.-]?)?"
    rb"key(?:[_.-]?base)?|(?<!key)(?<!key.)(?:token|secret|(?<=_)pat|passw(?:or)?d|passphrase|pwd|credentials?)"
)
_NAME_SUFFIX_PATTERN = compile_lazily(
    rb"(?:[_.-]?(?:\d{1,2}|value|prod|production|dev|staging|test|live|default|primary|secondary|old|new))?\Z"
)
_ENV_VARIABLE_PATTERN = compile_lazily(
    rb"(?<![\w$-])[A-Z][A-Z0-9]*_(?:[A-Z0-9]+_)*(?:KEY|SALT|AUTH|PAT|PW|SIGNATURE|SEED|CREDS?|COOKIE|SESSION)"
    rb"[\"'`\\ \t]*[=:][\"'`\\ \t]*\Z"
)
_ENV_VARIABLE_SUFFIXES = (
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
"""The last words of environment variables that contain a secret. In other names in a program, these
words do not mean a secret."""

_CALL_WITH_KEY_PATTERN = compile_lazily(
    rb"(?:new [\w.]{0,30}(?:api|sdk|key|token)[\w.]{0,20}|new (?:stripe|pusher|octokit)[\w.]{0,20}"
    rb"|[\w.]{0,30}(?:client|credentials?|auth\w{0,12}|login|connect\w{0,8}"
    rb"|fernet|cipher|bot\w{0,8}|resend|openai|anthropic|jwt\.\w{3,8}))"
    rb"\((?:\w{1,20} ?= ?)?(?:b?[\"'][^\"'\n]{1,60}[\"'], ?){0,2}b?[\"']\Z"
)
"""Matches the beginning of a call up to an argument that is a key."""

_QUERY_PARAMETER_PATTERN = compile_lazily(rb"[?&](?:key|code|sid|ticket|assertion)=\Z")
_TEXTS_BEFORE_AWS_SECRET_NAME = tuple(
    sign + b":secret" for sign in (*(b"%d" % digit for digit in range(10)), b"*", b"}")
)
"""The text before the name of a secret in an AWS resource name."""

_VALUE_FIELD_NAMES = (b"value", b"default", b"content", b"secretstring", b"plaintext", b"body")
_NAME_FIELD_SEARCH_BYTES = 200
_NAME_FIELD_PATTERN = compile_lazily(
    rb"(?<![\w.-])([\w.-]{3,60}+)[\\\"'`]{0,8}"
    rb"(?:[ \t]{0,4},?(?:\s|\\+[nrt]|\d{1,6}(?:\xe2\x86\x92|\\+u2192)){1,60}|[ \t]{0,4},|[ \t]{0,4}\{[^{}]{0,160}?\W)"
    rb"[\\\"'` -]{0,16}" + VALUE_FIELD_NAME_EXPRESSION + rb"\Z"
)
"""Matches a field that contains a name and comes before the field that contains the value."""

_TYPED_NAME_PATTERN = compile_lazily(rb"([\w-]+)[ \t]*:[ \t]*&?[\w<>&']{1,24}\Z")
"""Matches a name followed by its type."""

_SECRET_UUID_NAME_PATTERN = compile_lazily(
    rb"(?:api[_.-]?key|(?:auth|access|api|deploy)[_.-]?token|secret(?:[_.-]?key)?|_(?:token|key|pat|secret"
    rb"|password))\Z"
)
"""Matches a name whose value is a secret even if it is a UUID. Most other UUIDs are only
identifiers."""

_RAW_KEY_PATTERN = compile_lazily(rb"[A-Za-z0-9+/_-]{43}=(?![\w=])")
"""Matches a key of 32 random bytes in base64."""

_VALUE_PATTERN = compile_lazily(rb"[\w.=+/~-]{16,400}")
_LINE_GAP_EXPRESSION = rb"(?:\s|\d{1,6}(?:\xe2\x86\x92|\\+u2192)){0,60}"

_LINE_BREAK_BEFORE_VALUE_PATTERN = compile_lazily(
    rb"[=:][ \t]*(?:[|>][+-]?|\\+|\()[ \t]*(?:\r?\n|\\+n)(?:[\s\"'`\\]|\d{1,6}(?:\xe2\x86\x92|\\+u2192)){0,50}\Z"
)
"""Matches the text between a name and a value on the next line."""

_CONTINUATION_PATTERN = compile_lazily(
    rb"(?:\\?[\"'](?:[ \t]*[+\\]"
    + _LINE_GAP_EXPRESSION
    + rb"|[ \t]*\n"
    + _LINE_GAP_EXPRESSION
    + rb")\\?[\"']|\\\n[ \t]*)([\w.=+/~-]{8,400})"
)
"""Matches the continuation of a value: another string literal, or the next line after a backslash.
"""

_INDENTED_VALUE_STARTS = {b"  ", b' "', b" '", b'\t"', b"\t'", b"\t\t", b'\\"'}
"""The two characters before a value on its own line."""

_LINE_END_SEARCH_BYTES = 40
"""The number of bytes before a value in which the end of the previous line is searched for."""

_FOLDED_YAML_LINE_PATTERN = compile_lazily(
    rb"\n" + _LINE_GAP_EXPRESSION + rb"[ \t]([\w.=+/~-]{16,400})[ \t]*(?=\n|\Z)"
)
"""Matches the next line of a value in YAML that has several lines."""

_MAX_CONTINUATIONS = 40
CHARACTERS_AFTER_CONTINUED_VALUE = {b'"', b"'", b"\\"}
"""The characters that may directly follow a value that is continued, for example on the next line.
"""

NEXT_LINE_INDENTS = {b"  ", b"\t\t"}
"""The characters before a value that begins on the line below its name."""


def continuation_spans(raw: bytes, start: int, first_span: Span) -> Iterator[Span]:
    """Yield the further parts of the value at ``start``, in the string literals or lines that continue it."""
    if raw[start - 2 : start] not in NEXT_LINE_INDENTS:
        pattern = _CONTINUATION_PATTERN
    elif _LINE_BREAK_BEFORE_VALUE_PATTERN.search(raw[max(0, start - _NAME_SEARCH_BYTES) : start]):
        pattern = _FOLDED_YAML_LINE_PATTERN
    else:
        return
    end = first_span.end
    for _ in range(_MAX_CONTINUATIONS):
        continuation = pattern.match(raw, end)
        if continuation is None or not is_random_key(continuation[1]):
            break
        yield Span(first_span.kind, *continuation.span(1), first_span.rank)
        end = continuation.end()


def assigned_run_spans(raw: bytes, lower: bytes, start: int) -> list[Span]:
    """Return the value at ``start`` if the name before it marks the value as a secret.

    The list has at most one item. ``lower`` is ``raw`` in lower case.
    """
    name, separator = _name_and_separator(lower, start)
    if not separator:
        return []
    if not _is_assignment(name, separator):
        return (
            []
            if separator.strip(_SCHEME_SEPARATOR_CHARACTERS)
            else _authorization_spans(raw, start, name)
        )
    vendor_numbers, generic_kind = _vendor_numbers_and_generic_kind(name)
    generic_kind = generic_kind or _kind_of_random_value(raw, start, name)
    for number in vendor_numbers:
        for rule in token_rules().vendor_rules[number]:
            match = rule.pattern.match(raw, start)
            if match and _is_value_of_rule(rule, match[1], name):
                return [Span(rule.kind, match.start(1), match.end(1), ASSIGNED)]
    value = _VALUE_PATTERN.match(raw, start)
    if value and _is_auth_name(name) and is_basic_auth(value[0]):
        return [Span("basic-credentials", start, value.end(), GENERIC)]
    if not generic_kind or not value or raw[value.end() : value.end() + 1] == b"(":
        return []
    if name.endswith(b"_pat") and len(value[0]) < _MIN_PERSONAL_ACCESS_TOKEN_BYTES:
        return []
    if not (
        _SECRET_UUID_NAME_PATTERN.search(name) if is_uuid(value[0]) else is_random_key(value[0])
    ) or name.endswith(value[0].lower()):
        return []
    return [Span(generic_kind, start, value.end(), GENERIC)]


def _is_value_of_rule(rule: Rule, value: bytes, name: bytes) -> bool:
    """Check whether a value is a secret, given that the rule's expression matches it.

    The value is not a secret if it is an example, or if the name before it ends with the value.
    """
    if entropy(value) < rule.min_entropy or is_placeholder(value):
        return False
    return not name.endswith(value.lower())


def _kind_of_random_value(raw: bytes, start: int, name: bytes) -> str:
    """Return the kind of secret at ``start``: a random key, or the value of an environment variable.

    Return ``""`` if the name does not mark the value as a secret.
    """
    if name.endswith(b"key") and _RAW_KEY_PATTERN.match(raw, start):
        return "secret"
    if name.endswith(_ENV_VARIABLE_SUFFIXES) and not HARMLESS_NAME_PATTERN.search(name):
        if _ENV_VARIABLE_PATTERN.search(raw, max(0, start - _NAME_SEARCH_BYTES), start):
            return "secret"
        return ""
    return ""


def _authorization_spans(raw: bytes, start: int, name: bytes) -> list[Span]:
    """Return the credentials in an ``Authorization`` header, which may be part of a command."""
    if name.endswith(_AUTH_SCHEMES):
        value = _VALUE_PATTERN.match(raw, start)
    else:
        value = None
    if not value:
        return []
    if name.endswith(b"basic"):
        is_secret = is_basic_auth(value[0])
    else:
        is_secret = is_random_key(value[0]) and not HARMLESS_NAME_PATTERN.search(name)
    if is_secret:
        return [Span("authorization-header", start, value.end(), GENERIC)]
    return []


def may_have_secret_name(lower: bytes, start: int) -> bool:
    """Check whether the name before the value at ``start`` may mark the value as a secret."""
    name, separator = _name_and_separator(lower, start)
    if not separator:
        return False
    if _is_assignment(name, separator):
        vendor_numbers, generic_kind = _vendor_numbers_and_generic_kind(name)
    else:
        vendor_numbers, generic_kind = ((), "")
    return (
        bool(vendor_numbers or generic_kind)
        or _is_auth_name(name)
        or name.endswith((*_AUTH_SCHEMES, *_ENV_VARIABLE_SUFFIXES, b"key"))
    )


def field_spans(key: bytes, value: bytes) -> list[Span]:
    """Return the secret in ``value``, a string in a JSON object, if ``key`` marks it as a secret.

    ``key`` is the key of the string. The list has at most one item.
    """
    if not 6 <= len(value) <= MAX_VALUE_BYTES:
        return []
    prefix = key[-_NAME_SEARCH_BYTES:] + b'": "'
    text = prefix + value + b'"'
    spans = assigned_run_spans(text, text.lower(), len(prefix))
    if not spans and is_secret_field(key, value):
        spans = [Span("password", len(prefix), len(prefix) + len(value), GENERIC)]
    return [
        Span(span.kind, span.start - len(prefix), span.end - len(prefix), span.rank)
        for span in spans
    ]


def _is_assignment(name: bytes, separator: bytes) -> bool:
    """Check whether the text between a name and a value assigns the value to the name."""
    return bool(
        _ASSIGNMENT_SIGN_PATTERN.search(separator)
        or _SET_COMMAND_PATTERN.search(name)
        or _LONG_OPTION_PATTERN.search(name)
        or (_C_DEFINE_PATTERN.search(name) and separator.strip())
    )


def _is_auth_name(name: bytes) -> bool:
    """Check whether a name is one that holds credentials in the settings of Docker or npm."""
    return name in {b"auth", b"_auth", b"identitytoken"}


def _name_and_separator(lower: bytes, start: int) -> tuple[bytes, bytes]:
    """Return the words before a value, and the text between these words and the value.

    Both are empty if no name precedes the value.
    """
    if lower[start - 1] not in _SEPARATOR_CHARACTERS:
        return b"", b""
    text_before = lower[max(0, start - _NAME_SEARCH_BYTES) : start]
    if text_before[-2:] in _INDENTED_VALUE_STARTS and (
        b"\n" in text_before[-_LINE_END_SEARCH_BYTES:]
        or b"\\n" in text_before[-_LINE_END_SEARCH_BYTES:]
    ):
        line_break = _LINE_BREAK_BEFORE_VALUE_PATTERN.search(text_before)
        text_before = text_before[: line_break.start() + 1] if line_break else text_before
    name = text_before.rstrip(_SEPARATOR_CHARACTERS)
    if text_before.endswith((b'"', b"'")) and _CALL_WITH_KEY_PATTERN.search(text_before):
        return b"api_key", b"="
    phrase, separator = (
        name.translate(_PHRASE_BYTE_TABLE).rpartition(b"\0")[2][-40:],
        text_before[len(name) :],
    )
    if phrase.endswith(_VALUE_FIELD_NAMES) and (
        name_field := _NAME_FIELD_PATTERN.search(
            lower, max(0, start - _NAME_FIELD_SEARCH_BYTES), start - len(separator)
        )
    ):
        return name_field[1], b"="
    if b"=" in separator and (
        typed_name := _TYPED_NAME_PATTERN.search(name, max(0, len(name) - 60))
    ):
        return typed_name[1], separator
    if _QUERY_PARAMETER_PATTERN.search(lower, start - 12, start):
        return b"api_key", separator
    if name.endswith(_TEXTS_BEFORE_AWS_SECRET_NAME) or name.endswith(b"::" + phrase):
        # The text before the value is a type in a program, or a name that is assigned to itself.
        return b"", b""
    return phrase, separator


@lru_cache(maxsize=4096)
def _vendor_numbers_and_generic_kind(phrase: bytes) -> tuple[tuple[int, ...], str]:
    """Return the vendors that are named in a phrase before a value, and the name's generic kind.

    Each vendor is an index in ``Rules.vendor_rules``. The name is the last word of the phrase. Its
    kind is, for example, ``token``, or ``""`` if the name does not mean a secret.
    """
    vendor_numbers = tuple(
        match.lastindex - 1
        for match in token_rules().name_pattern.finditer(phrase)
        if match.lastindex
    )
    name = phrase.rpartition(b" ")[2].strip(b".-")
    if HARMLESS_NAME_PATTERN.search(name):
        return vendor_numbers, ""
    for match in _SECRET_WORD_PATTERN.finditer(name):
        if _NAME_SUFFIX_PATTERN.match(name, match.end()):
            return vendor_numbers, _kind_of_secret_word(match[0])
    return vendor_numbers, ""


def _kind_of_secret_word(word: bytes) -> str:
    if word.startswith((b"passw", b"pwd", b"passph")):
        return "password"
    if b"token" in word:
        return "token"
    if word.endswith(b"key") and word.startswith(b"api"):
        return "api-key"
    return "secret"
