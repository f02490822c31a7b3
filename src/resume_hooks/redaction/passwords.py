"""Find secrets that follow a name such as ``password``, and determine the meaning of names.

A name can mean a password that a person chose, a random key, or a value that is not secret. Names
in all notations are split into words, for example ``dbPassword``, ``DB_PASSWORD`` and ``db-pass``.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from functools import lru_cache

from resume_hooks.redaction.credentials import is_basic_auth
from resume_hooks.redaction.false_positives import (
    consists_of_words,
    has_random_case,
    is_likely_password,
    is_placeholder,
    is_random_key,
    is_random_letters,
    is_uuid,
    is_word_password,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.redaction.notations import (
    ANY_WORDS,
    ASSIGNED_VALUE_PATTERN,
    CHANGED_TO_VALUE_PATTERN,
    LIKELY_PASSWORD,
    LINE_START_EXPRESSION,
    LOGIN_PATTERNS,
    LOWER_CASE_WORDS,
    NEW_VALUE_PATTERN,
    NO_GRAMMAR_WORD_EXPRESSION,
    NOTATIONS_BY_FIRST_CHARACTER,
    PROSE_PASSWORD,
    QUOTED_VALUE_EXPRESSION,
    RANDOM_CHARACTERS,
    THREE_WORDS,
    VALUE_BELOW_NAME_PATTERN,
    VALUE_IN_PARENTHESES_PATTERN,
    VALUE_SET_BY_COMMAND_PATTERN,
    WORDS_BEFORE_NAME_PATTERN,
    Notation,
)
from resume_hooks.redaction.program_text import (
    PROGRAM_NAME_PATTERN,
    VIM_SYNTAX_LINE_STARTS,
    is_value_of_many_names,
    is_variable,
)
from resume_hooks.redaction.spans import GENERIC, Span

NONE, KEY, LOGIN, PASSWORD = range(4)
"""The meanings of a name: no secret, a random key, a user name with a password, or a password that
a person may have chosen."""

_CAMEL_CASE_BOUNDARY_PATTERN = compile_lazily(rb"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_WORD_SEPARATOR_PATTERN = compile_lazily(rb"[^A-Za-z0-9]+|(?<=[A-Za-z])(?=\d)")

_NEUTRAL_SUFFIXES = frozenset(
    b"value prod production dev development staging stage test testing live default primary secondary main old "
    b"new current "
    b"plain plaintext text raw base base64 b64 hex str string env var cleartext clear confirm confirmation again "
    b"2nd".split()
)
"""The last words of names that do not change the meaning of the words before them."""

_PASSWORD_WORDS = frozenset(
    b"pass password passwd passphrase passcode pwd pw psk secret authtok passw passin passout sshpass pasword psswd "
    b"kennwort passwort contrasena community".split()
)
_PASSWORD_SUFFIXES = (
    b"pass",
    b"password",
    b"passwd",
    b"passphrase",
    b"passcode",
    b"passwort",
    b"secret",
    b"userpw",
    b"bindpw",
    b"rootpw",
    b"adminpw",
    b"dbpw",
    b"pwd",
)
_CHOSEN_KEY_WORDS_PATTERN = compile_lazily(
    rb"(?:encrypt(?:ion)?|signing|master|secret|shared|auth|authentication|authorization|crypt|crypto|cipher|aes"
    rb"|hmac|jwt|session|cookie|wpa|"
    rb"wep|network|encryption|decryption|security|account|machine|validation)$"
)
"""Matches the words before ``key`` in the name of a key that a person may have chosen."""

_PUBLIC_KEY_WORDS = tuple(
    b"pub public recv site s3 fips property pair bucket config setting field column item state route attr param meta "
    b"form resource flag data dict cert bind derencoded".split()
)
"""The words before ``key`` in the name of a public key or an identifier."""

_SNMP_WORDS = frozenset(
    b"snmp ro rw read write only trap string get set agent auth v1 v2 v2c snmpv2 snmpv2c".split()
)
"""The words before ``community`` in the name of an SNMP password. After other words, for example in
the name of a program's edition, ``community`` does not mean a password."""

_TOKEN_WORDS = frozenset(
    b"token pat salt pepper jwt apikey authkey accesskey secretkey privatekey appkey licensekey seed otp totp "
    b"bearer sas nonce signature "
    b"credential cred dsn webhook mnemonic hash sig apitoken authtoken accesstoken refreshtoken seckey "
    b"apisecret".split()
)
_LOGIN_SUFFIXES = (b"auth", b"authident", b"creds", b"credentials")
_LOGIN_WORDS = frozenset(
    (
        b"authorization logins auth creds credentials userpwd ident login basic basicauth userpass"
    ).split()
)
_LINTER_COMMENT_PATTERN = compile_lazily(rb"# ?(?:noqa|nosec|type|pragma|pylint|mypy|ruff|fmt)\b")
"""Matches the beginning of a comment for a linter, which may follow the Python statement ``pass``.
"""

HARMLESS_NAME_PATTERN = compile_lazily(
    rb"(?:primary|foreign|partition|sort|row|group|object|index|map|dict|registry|hot|page|change|forward"
    rb"|backward|start(?:ing)?|client|request|idempotency|import|export|next|prev|csrf|xsrf|sync"
    rb"|cancel(?:lation)?|cursor|continuation|max|num|input|output|total|eos|bos|pad|"
    rb"stop|public|md_?5|sha_?\d{1,3}|design|color|cache|lock|resume|delivery|event|first|last|current|leaf|action|hashed|web[_.-]?socket)[_.-]?(?:token|key|secret)s?"
)
"""Matches the names of tokens and keys that are not secret."""

_NEGATING_WORDS = frozenset(
    b"no top without is has use show hide forgot reset require required allow missing invalid wrong incorrect "
    b"existing hashed image label i18n change "
    b"error message hint validate check verify".split()
)
"""Words that mean, at the beginning of a name or before its last word, that the name does not
belong to a secret, for example in ``has_password``."""

_HARMLESS_WORDS_ENDING_IN_PASS = (
    b"bypass",
    b"buypass",
    b"compass",
    b"surpass",
    b"trespass",
    b"overpass",
)

_NAME_CHARACTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_MAX_NAME_BYTES = 64
_MIN_VALUE_BYTES = 6
_MIN_GENERATED_BYTES = 24
"""Minimum number of bytes in a generated value. A generated value ends before the first letter that
is not in ASCII."""

CONTEXT_BYTES = 160
"""The number of bytes before a name that are examined."""

_REST_OF_NAME_PATTERN = compile_lazily(rb"(?i)[\w-]{0,48}+(?: (?:id|key|token|phrase|string)\b)?")
_ESCAPE_END_PATTERN = compile_lazily(rb"[ntr]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}")
r"""Matches the end of an escape before a name, for example the ``n`` in ``\n``, which looks like
part of the name."""

_FIRST_WORD_OF_TWO_WORD_NAME_PATTERN = compile_lazily(
    rb"(?i)\b(?:api|access|auth|secret|private|encryption|signing|license|bearer|connection|recovery|security"
    rb"|deploy|session) \Z"
)
_SECOND_WORDS_OF_TWO_WORD_NAME = (b"key", b"token", b"string", b"code")
_KIND_BY_MEANING = ("", "token", "password", "password")
_SECRET_UUID_NAME_PATTERN = compile_lazily(
    rb"(?i)(?:api[_.-]?key|(?:auth|access|api|deploy)[_.-]?token|secret(?:[_.\s-]?(?:key|id))?|\w[_-](?:token"
    rb"|key|pat|secret|password|secret[_-]id)|authorization)\Z"
)
"""Matches a name whose value is a secret even if it is a UUID. Most other UUIDs are only
identifiers."""

_SETTING_START_PATTERN = compile_lazily(
    LINE_START_EXPRESSION
    + rb"(?:[-\"'#;>] {0,3}|export |set |declare -x |ENV |ARG |-e |[\w.-]{1,40}: {0,3}\{ )?[\"']?"
)
"""Matches the text before a name in a line of settings."""

_STANDARD_OR_VERSION_PATTERN = compile_lazily(
    rb"(?i)v?\d+(?:\.\w+)+\Z|(?:sha|md|aes|rsa|utf|base|rfc|cve|http|tls|ssl|pbkdf|pkcs|ed|des|ipv|ntlm|python"
    rb"|oauth|iso|win|tcp|udp|socks)[-_]?v?\d|[\w.]+=[^=]"
)
"""Matches version numbers and the names of standards. Both occur in sentences about passwords."""

_ASCII_RUN_PATTERN = compile_lazily(rb"[!-~]+")
_STANDARD_NAME_PATTERN = compile_lazily(
    rb"(?i)(?<![a-z0-9])(?:hmac|sha-?\d{1,3}|pbkdf2|ed25519|hkdf|argon2(?:id?|d)?)(?![a-z0-9])"
    rb"|\A(?:id-)?(?:pbes2|base-?\d\d(?:-encoded)?|aes-?\d{3}|pkcs-?#?\d{1,2}|x\d{3,5}|md5|ieee-?\d{3,5}x?|aes-?\d{3}-\w{3}|\d{1,2}-(?:bit|byte))\Z"
)
_DIGIT_PATTERN = compile_lazily(rb"\d")
_TOPIC_WORD_PATTERN = compile_lazily(
    rb"form|field|input|label|hash|update|reset|change|error|message|page|policy|manager|store|service|file|hint"
    rb"|name|secret|token|config|prompt|user|login|auth|pass|self|this|option|setting|state|(?<![a-z])keys?(?![a-z])"
)
_ENV_VARIABLE_PATTERN = compile_lazily(rb"[A-Z][A-Z0-9_]{2,60}\Z")
_GENERATED_WORDS_PATTERN = compile_lazily(
    rb"[a-z]{3,14}(?:([._-])[a-z]{3,14})(?:\1[a-z]{3,14}){1,5}"
)
"""Matches a password of three or more words, as generated by some programs."""

_OBJECT_PATH_PATTERN = compile_lazily(
    rb"(?:self|this|cls|conf|config|settings|options|args|state|request|env)\."
)
"""Matches the beginning of an expression that refers to a value in a program, for example
``self.``."""

_CONSTANT_NAME_PATTERN = compile_lazily(
    rb"(?=(?:\w*_)?[A-Z]{3,}(?:_|\Z))[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+"
)
_TYPE_NAME_PATTERN = compile_lazily(rb"[A-Z]+[a-z]+\d{0,3}(?:[A-Z][a-z]*\d{0,3})+")
"""Matches the name of a type in a program: capitalised words and numbers."""

_NUMBERED_TYPE_NAME_PATTERN = compile_lazily(
    rb"(?=[A-Za-z]*\d)(?:[A-Z]\d{0,2}[a-z]*){2,}[A-Z][a-z]{3,}"
)
"""Matches the name of a type with a number before its last word, for example
``V1SecretVolumeSource``."""

_CODE_NAME_PATTERN = compile_lazily(rb"[a-z]+(?:[A-Z][a-z]*\d{0,2})+")
_TEXT_AFTER_CODE_NAME_PATTERN = compile_lazily(rb"[ \t]*[;,)]")
_OPERATOR_AFTER_NAME_PATTERN = compile_lazily(rb"[ \t]+(?:\?|[=!]=|\+|\|\||&&)[ \t]")
"""Matches the operator after a variable in an expression, such as the ``?`` in
``expect_failure ? "XPASS" : "PASS"``."""

_PROSE_AFTER_VALUE_PATTERN = compile_lazily(rb"[ \t]+[a-z]{2,}[ \t]+[a-z]{2,}")
_OPENPGP_ID_PATTERN = compile_lazily(rb"(?=[0-9]*[A-F])(?:[0-9A-F]{8}|[0-9A-F]{40})")
"""Matches the short or the complete id of an OpenPGP key."""

_AMAZON_NAME_PATTERN = compile_lazily(rb"\barn:[^\s\"'<>]{1,90}:\Z")
_COMPARISON_PATTERN = compile_lazily(rb"\\?\"[ \t]+!?=[ \t]")
"""Matches the text after the last variable in a string that a shell compares: ``"$mode,$pass" = ``.
"""

_TEXT_AFTER_TYPE_PATTERN = compile_lazily(rb"[ \t]*[,;)|\[}=]")
_COLON_SEPARATED_WORDS_BEFORE_NAME_PATTERN = compile_lazily(rb"(?:[A-Za-z-]+:)+\Z")
_COLON_SEPARATED_WORDS_PATTERN = compile_lazily(rb"[A-Za-z-]*(?::[A-Za-z-]+)+")
"""Matches words separated by colons, as in names of commands and types: ``user:login:list``."""

_COLON_SEPARATED_FORMAT_PATTERN = compile_lazily(rb"[A-Za-z_-]+(?::[A-Za-z_-]+)+:?")
"""Matches words separated by colons. Names of settings have this form, and so do formats, for
example ``user:password_hash:``."""

_COLON_SEPARATED_FIELDS_PATTERN = compile_lazily(rb"[A-Za-z_+-]+\d?(?::[A-Za-z_+-]+\d?)+")
"""Matches fields separated by colons, as in the format ``name:password:gid:member1``."""

_CONDITION_OR_FAILURE_PATTERN = compile_lazily(
    rb"(?i) (?:when|if|unless) |\b(?:fail(?:ed|s|ure)?|errors?|denied|refused|rejected|aborted)\b"
)
"""Matches the beginning of a condition in a sentence, or a word that reports a failure."""

_ID_LABEL_PATTERN = compile_lazily(rb"(?:\b[Ii]d|\wId|\bID)s?:?[ \t]+\Z")
"""Matches the label of an id, for example ``ID:``, before the id."""

_SENTENCE_PATTERNS = (CHANGED_TO_VALUE_PATTERN, VALUE_IN_PARENTHESES_PATTERN)
"""The patterns of values in sentences about passwords. A value in these positions is a password
only if it contains a digit."""

_ADDRESS_PATTERN = compile_lazily(rb"[a-z][a-z0-9+.-]{1,20}://")
_OTHER_SETTING_PATTERN = compile_lazily(rb"[a-z_]{2,20}=[\w.:]+")
"""Matches a name with its value, as in the settings and logs of a program."""

_FURTHER_WORDS_PATTERN = compile_lazily(rb"[ \t]+(?!#|//)\S")
"""Matches text with further words after a value on the same line."""

_MIN_UNDERSCORES_OF_IDENTIFIER = 4
"""A name with at least this many underscores is too long to be a password."""

_MIN_WORDS_IN_LIST = 3
"""Minimum number of words before a name in a line that lists names of settings."""

_BADGE_ADDRESS_PATTERN = compile_lazily(rb"\.(?:svg|png)\?\Z")
"""Matches the end of the address of an image. A token in this address is public."""

_REPORT_NUMBER_PATTERN = compile_lazily(rb"(?:CVE|GHSA|RFC|ISO|DSA|USN)-[\d-]+")
"""Matches the number of a report or of a standard."""

_CLOSING_BRACKET_PATTERN = compile_lazily(rb"[\"'`\\]{0,4}\]")
_TO_UNDERSCORE_TABLE = bytes.maketrans(b"-.", b"__")
_NAME_ONLY_PATTERN = compile_lazily(rb"[\w-]+")
_MIN_TOPIC_LETTERS = 3
"""Words of a name that have fewer letters than this are not compared with the words of the value."""

_TYPE_PREFIX_PATTERN = compile_lazily(rb"(?:[*}:]|\d{7}):\Z")
"""Matches the text before a name that is a type in a program, or part of AWS's name for a secret.
"""

_QUERY_PARAMETER_PATTERN = compile_lazily(rb"&[\w.]{1,60}=")
_HYPHENATED_WORDS_PATTERN = compile_lazily(rb"[a-z]+(?:-[a-z]+)*")
_STORE_BEFORE_PASS_PATTERN = compile_lazily(
    rb"(?i)(?:provider|backend|store|driver)[\\\"' \t]{0,6}[=:][\\\"' \t]{0,6}\Z"
)
"""Matches the text before ``pass`` in a setting such as ``backend: pass``. There, ``pass`` is the
name of a password manager."""

_OPTION_NAME_PATTERN = compile_lazily(rb"[a-z]{2,}\d?(?:-[a-z]{2,}\d?){2,}")
"""Matches the name of an option, for example ``mschapv2-and-ntlmv2-only``."""

_VIM_OR_CONDITIONAL_PATTERN = compile_lazily(
    rb"[abglstvw]:[A-Za-z]\w*[_.\[][\w.\[\]]+|[A-Za-z_$][\w$]{0,3}\?[\w$.]+:\S+"
)
"""Matches a Vim variable or a conditional expression in a minified program: ``s:last_password``,
``ho?ho.isBuffer:e``."""

_PROMPT_PATTERN = compile_lazily(rb"[\w.@()-]+[#>$%]")
"""Matches the prompt of a shell or device, which may be printed after a prompt for a password."""

_MIN_NAME_LETTERS = 2
_NOISE_CHARACTERS_BEFORE_NAME = frozenset(bytes([sign]) for sign in b")!}~`^%+<=*#/")
"""Characters before a short name, such as ``pw``, that occur only in encoded data."""

_CHARACTERS_AFTER_SETTING = frozenset([b"", b"\n", b"\r", b";", b"&", b"<", b'"', b"'"])
_LOGIN_ASSIGNMENT_PATTERN = compile_lazily(
    rb"(?i)(?:^|[\s\"',;{(_.?&-])(?:user(?:[ _-]?name|[ _-]?id)?|login|host(?:name)?|port|dbname|database|adapter)"
    rb"[\"']?(?:[ \t]{0,4}(?:=>|=|:)[ \t]{0,4}|[ \t]{1,8}"
    + NO_GRAMMAR_WORD_EXPRESSION
    + rb")[\"']?[\w.@-]{1,80}"
)
"""Matches an assignment to a user, a host or a database."""

_AWS_SECURE_STRING_PATTERN = compile_lazily(
    rb"(?i)securestring\\{0,3}\"\s*,\s*\\{0,3}\"value\\{0,3}\"\s*:\s*" + QUOTED_VALUE_EXPRESSION
)
"""Matches the output of AWS for an encrypted parameter."""

_POWERSHELL_SECURE_STRING_PATTERN = compile_lazily(
    rb"(?i)securestring(?:[ \t]+-(?:string|asplaintext|force))*[ \t]+" + QUOTED_VALUE_EXPRESSION
)


@lru_cache(maxsize=8192)
def meaning_of_name(name: bytes) -> int:
    """Return what kind of secret a name stands for: ``NONE``, ``KEY``, ``LOGIN`` or ``PASSWORD``."""
    words = list(_words_of_name(name))
    if words[-2:] == [b"connection", b"string"]:
        return KEY
    while len(words) > 1 and (words[-1] in _NEUTRAL_SUFFIXES or words[-1].isdigit()):
        words.pop()
    if (
        not words
        or words[0] in _NEGATING_WORDS
        or (len(words) > 1 and words[-2] in _NEGATING_WORDS)
    ):
        return NONE
    last = words[-1]
    if words[-2:-1] and last == b"community" and words[-2] not in _SNMP_WORDS:
        return NONE
    if last in _PASSWORD_WORDS or (
        last.endswith(_PASSWORD_SUFFIXES) and not last.endswith(_HARMLESS_WORDS_ENDING_IN_PASS)
    ):
        return PASSWORD
    if HARMLESS_NAME_PATTERN.search(b"_".join(words[-4:])):
        return NONE
    if last in _LOGIN_WORDS or (last.endswith(_LOGIN_SUFFIXES) and not last.endswith(b"oauth")):
        return LOGIN
    if last.endswith(b"key"):
        return _meaning_of_key(b"".join(words[-3:-1]) + last[:-3])
    return (
        KEY
        if last in _TOKEN_WORDS or last.endswith(b"token") or words[-2:] == [b"secret", b"id"]
        else NONE
    )


@lru_cache(maxsize=8192)
def _words_of_name(name: bytes) -> tuple[bytes, ...]:
    """Return the words of a name in lower case. The name may have any notation."""
    return tuple(
        word.lower()
        for word in _WORD_SEPARATOR_PATTERN.split(_CAMEL_CASE_BOUNDARY_PATTERN.sub(b"_", name))
        if word
    )


def _meaning_of_key(words_before_key: bytes) -> int:
    """Return the meaning of a name that consists of ``words_before_key`` and ``key``."""
    if words_before_key in {b"", b"by"} or words_before_key.endswith(_PUBLIC_KEY_WORDS):
        return NONE
    if _CHOSEN_KEY_WORDS_PATTERN.search(words_before_key):
        return PASSWORD
    return KEY


def range_and_meaning_of_name(raw: bytes, position: int) -> tuple[int, int, int]:
    """Return the start, the end and the meaning of the name that contains a word at ``position``."""
    text_before = raw[max(0, position - _MAX_NAME_BYTES) : position]
    start = position - len(text_before) + len(text_before.rstrip(_NAME_CHARACTERS))
    rest = _REST_OF_NAME_PATTERN.match(raw, position)
    end = rest.end() if rest else position
    if raw[start - 1 : start] == b"\\" and (escape := _ESCAPE_END_PATTERN.match(raw, start)):
        start = min(escape.end(), position)
    name = raw[start:end].lstrip(b"-.")
    start = end - len(name)
    if name.lower() in _SECOND_WORDS_OF_TWO_WORD_NAME and (
        first_word := _FIRST_WORD_OF_TWO_WORD_NAME_PATTERN.search(raw, max(0, start - 16), start)
    ):
        name = first_word[0] + name
    return start, end, meaning_of_name(name)


def assigned_secret_spans(
    raw: bytes, start: int, end: int, meaning: int
) -> Generator[Span, None, int]:
    """Yield the secret that belongs to the name from ``start`` to ``end``, if there is one.

    ``meaning`` is the meaning of the name. Return the end of the text that was examined.
    """
    examined_end = 0
    context_start = max(0, start - CONTEXT_BYTES)
    line_start = raw.rfind(b"\n", context_start, start) + 1 or (0 if context_start == 0 else -1)
    if _is_not_name_of_value(raw, line_start, start, end):
        return 0
    for notation in NOTATIONS_BY_FIRST_CHARACTER[raw[end]] if end < len(raw) else ():
        if notation.value_pattern in LOGIN_PATTERNS and meaning != LOGIN:
            continue
        match = notation.value_pattern.match(raw, end)
        if match and _matches_before_name(notation, raw, context_start, line_start, start):
            examined_end = match.end()
            value_start, value = start_and_value_of_match(match)
            if raw[start - 1 : start] in {b"?", b"&"} or _QUERY_PARAMETER_PATTERN.search(value):
                value = value.partition(b"&")[0]
            requirement = (
                _requirement_for_password(raw, line_start, start, end, notation, match)
                if meaning == PASSWORD
                else notation.requirement
            )
            ascii_run = _ASCII_RUN_PATTERN.match(value)
            if ascii_run and (meaning == KEY or len(ascii_run[0]) >= _MIN_GENERATED_BYTES):
                value = ascii_run[0]
            match_start = value_start
            if meaning == LOGIN and notation.value_pattern not in LOGIN_PATTERNS:
                value_start, value = _find_password_after_user(
                    value_start,
                    value,
                    b":/" if notation.value_pattern is ASSIGNED_VALUE_PATTERN else b":",
                )
            value_meaning = (
                KEY
                if meaning == LOGIN
                and value_start == match_start
                and notation.value_pattern not in LOGIN_PATTERNS
                and not is_basic_auth(value)
                else meaning
            )
            if _is_text_after_name_unrelated(raw, start, end, notation, match, value_start):
                continue
            is_secret = b" " not in value and _is_secret_value(
                value_meaning, value, requirement, raw[start:end]
            )
            if is_secret and not is_value_of_many_names(raw, value_start, value):
                yield Span(
                    _KIND_BY_MEANING[meaning], value_start, value_start + len(value), GENERIC
                )
                yield from _new_value_spans(raw, match.end(), meaning, raw[start:end])
                return examined_end
    return examined_end


def _new_value_spans(raw: bytes, end: int, meaning: int, name: bytes) -> Iterator[Span]:
    """Yield the new value after an old value, as in Terraform's plans: ``"old" -> "new"``."""
    match = NEW_VALUE_PATTERN.match(raw, end)
    if match and meaning != LOGIN and _is_secret_value(meaning, match["quoted"], THREE_WORDS, name):
        yield Span(_KIND_BY_MEANING[meaning], *match.span("quoted"), GENERIC)


def _matches_before_name(
    notation: Notation, raw: bytes, context_start: int, line_start: int, start: int
) -> bool:
    """Check whether the text before a name matches the notation."""
    if notation.before_name_pattern is None:
        return True
    if notation.before_name_pattern is WORDS_BEFORE_NAME_PATTERN:
        if line_start < 0 or raw.startswith(VIM_SYNTAX_LINE_STARTS, line_start):
            return False
        return notation.before_name_pattern.fullmatch(raw, line_start, start) is not None
    return notation.before_name_pattern.search(raw, context_start, start) is not None


def _is_pass_verb_or_test_result(notation: Notation, match: re.Match[bytes], value: bytes) -> bool:
    """Check whether ``pass`` is a verb or the result of a test, and not a name."""
    quote = match["quote"] if "quote" in match.re.groupindex else b""
    is_prose = (
        notation.requirement == PROSE_PASSWORD
        and b":" not in match[0]
        and (quote is None or PROGRAM_NAME_PATTERN.fullmatch(value))
    )
    return b"/" in value or quote == b"`" or b"`" in match[0] or bool(is_prose)


def _is_text_after_name_unrelated(
    raw: bytes, start: int, end: int, notation: Notation, match: re.Match[bytes], value_start: int
) -> bool:
    """Check whether the text after a name has nothing to do with the name's value."""
    match_start, value = start_and_value_of_match(match)
    if raw[start:end].lower() == b"pass" and (
        _is_pass_verb_or_test_result(notation, match, value[value_start - match_start :])
        or _STORE_BEFORE_PASS_PATTERN.search(raw, max(0, start - 24), start)
    ):
        return True
    if value.startswith(b"urn:") or (
        b"#" in raw[end:value_start] and _LINTER_COMMENT_PATTERN.search(raw, end, value_start)
    ):
        return True
    if notation.value_pattern is ASSIGNED_VALUE_PATTERN:
        return bool(match["bare"]) and _is_program_text(raw, start, match)
    if notation.value_pattern in _SENTENCE_PATTERNS and _DIGIT_PATTERN.search(value) is None:
        return True
    if notation.value_pattern is VALUE_BELOW_NAME_PATTERN:
        return _PROMPT_PATTERN.fullmatch(value) is not None
    if notation.value_pattern is LOGIN_PATTERNS[0]:
        text_before_value = match[0][: match_start - match.start()]
        return _CONDITION_OR_FAILURE_PATTERN.search(text_before_value) is not None
    if notation.value_pattern is VALUE_SET_BY_COMMAND_PATTERN:
        return _is_emphasised_word(value) or (
            value.isalpha() and _FURTHER_WORDS_PATTERN.match(raw, match.end()) is not None
        )
    return notation.requirement == PROSE_PASSWORD and (
        (
            notation.before_name_pattern is WORDS_BEFORE_NAME_PATTERN
            and _is_word_in_line(raw, start, match)
        )
        or _is_in_unrelated_sentence(match)
    )


def _is_word_in_line(raw: bytes, start: int, match: re.Match[bytes]) -> bool:
    """Check whether a value after a space is one of many words in its line, not a setting's value."""
    _, value = start_and_value_of_match(match)
    line_start = raw.rfind(b"\n", max(0, start - CONTEXT_BYTES), start) + 1
    if _FURTHER_WORDS_PATTERN.match(raw, match.end()):
        return consists_of_words(value) or value.isupper() or _is_emphasised_word(value)
    words_before = raw[line_start:start].split()
    return len(words_before) >= _MIN_WORDS_IN_LIST and b"-" in value and consists_of_words(value)


def _is_program_text(raw: bytes, start: int, match: re.Match[bytes]) -> bool:
    """Check whether an unquoted value is a type, a variable, or the next word of a longer name."""
    value = match["bare"]
    if is_variable(raw, match) or _is_name_in_expression(raw, start, match):
        return True
    if b":" in value and _VIM_OR_CONDITIONAL_PATTERN.fullmatch(value):
        return True
    if match[0].lstrip()[:1] == b":" and _is_word_after_colon(raw, start, match):
        return True
    if b"=" in match[0]:
        return False
    if (
        _TYPE_NAME_PATTERN.fullmatch(value)
        and consists_of_words(value)
        and _TEXT_AFTER_TYPE_PATTERN.match(raw, match.end())
    ):
        return True
    return _is_word_of_longer_name(raw, start, match)


def _is_word_after_colon(raw: bytes, start: int, match: re.Match[bytes]) -> bool:
    """Check whether a value after a colon begins another setting or a sentence."""
    value = match["bare"]
    if value.endswith(b":") or _OTHER_SETTING_PATTERN.fullmatch(value) is not None:
        return True
    if raw[start - 1 : start] == b"/" and _FURTHER_WORDS_PATTERN.match(raw, match.end()):
        return True
    return (
        _PROSE_AFTER_VALUE_PATTERN.match(raw, match.end()) is not None
        and consists_of_words(value)
        and _DIGIT_PATTERN.search(value) is None
    )


def _is_name_in_expression(raw: bytes, start: int, match: re.Match[bytes]) -> bool:
    """Check whether the text around an unquoted value shows that it is a variable or part of a statement."""
    value = match["bare"]
    if b"===" in match[0] or raw[start - 5 : start] == b"case ":
        return True
    if PROGRAM_NAME_PATTERN.fullmatch(value):
        is_long = value.count(b"_") >= _MIN_UNDERSCORES_OF_IDENTIFIER and consists_of_words(value)
        if _OPERATOR_AFTER_NAME_PATTERN.match(raw, match.end()) or (
            is_long and _FURTHER_WORDS_PATTERN.match(raw, match.end())
        ):
            return True
    return (
        _CODE_NAME_PATTERN.fullmatch(value) is not None
        and _TOPIC_WORD_PATTERN.search(value.lower()) is not None
        and consists_of_words(value)
        and _TEXT_AFTER_CODE_NAME_PATTERN.match(raw, match.end()) is not None
    )


def _is_word_of_longer_name(raw: bytes, start: int, match: re.Match[bytes]) -> bool:
    """Check whether a name and its value are only parts of a longer name with colons.

    Commands and formats, for example, have such names.
    """
    if match[0].startswith(
        (b":" + match["bare"], b"::")
    ) and _COLON_SEPARATED_FIELDS_PATTERN.fullmatch(match["bare"].lstrip(b":")):
        return True
    if raw[start - 1 : start] == b":" and match[0].startswith(b":" + match["bare"]):
        return consists_of_words(match["bare"])
    words_before = _COLON_SEPARATED_WORDS_BEFORE_NAME_PATTERN.search(
        raw, max(0, start - _MAX_NAME_BYTES), start
    )
    joined_words = (words_before[0] if words_before else b"") + b"name" + match[0]
    return (
        joined_words.count(b":") > 1
        and _COLON_SEPARATED_WORDS_PATTERN.fullmatch(joined_words) is not None
    )


def _is_in_unrelated_sentence(match: re.Match[bytes]) -> bool:
    """Check whether a sentence after a name is about a condition, a failure, an id or another setting."""
    value_start, value = start_and_value_of_match(match)
    text_between = match[0][: value_start - match.start()]
    if _REPORT_NUMBER_PATTERN.fullmatch(value) or _STANDARD_OR_VERSION_PATTERN.match(value):
        return True
    if _is_emphasised_word(value):
        return True
    if (
        text_between.isspace()
        and is_uuid(value)
        and _FURTHER_WORDS_PATTERN.match(match.string, match.end())
    ):
        return True
    if _CONDITION_OR_FAILURE_PATTERN.search(text_between) or _OTHER_SETTING_PATTERN.fullmatch(
        value
    ):
        return True
    return is_uuid(value) and _ID_LABEL_PATTERN.search(text_between) is not None


def _is_emphasised_word(value: bytes) -> bool:
    """Check whether a value is a word with marks of emphasis, for example ``immediately**`` or ``empty!``."""
    word = value.strip(b"!?*_")
    if word == value or not word.isalpha():
        return False
    return not is_random_letters(word) and not has_random_case(word)


def _is_not_name_of_value(raw: bytes, line_start: int, start: int, end: int) -> bool:
    """Check whether a name is not the name of a value.

    It may instead be part of a type, the user in an address, or a word in a test runner's output.
    """
    if raw[start - 3 : start] == b"://" or _TYPE_PREFIX_PATTERN.search(
        raw, max(0, start - 8), start
    ):
        return True
    name_size = len(raw[start:end].strip(b"_"))
    if name_size == _MIN_NAME_LETTERS and raw[start - 1 : start] in _NOISE_CHARACTERS_BEFORE_NAME:
        return True
    if raw[start - 1 : start] == b"$" and _COMPARISON_PATTERN.match(raw, end):
        return True
    if raw[start - 1 : start] == b":" and _AMAZON_NAME_PATTERN.search(
        raw, max(0, start - 100), start
    ):
        return True
    if _BADGE_ADDRESS_PATTERN.search(raw, max(0, start - 8), start):
        return True
    return _is_test_verdict(raw, line_start, start, end)


def _is_test_verdict(raw: bytes, line_start: int, start: int, end: int) -> bool:
    """Check whether ``PASS:`` begins a line in the output of a test runner: ``--- PASS: TestPush``."""
    return (
        raw[start:end] == b"PASS"
        and raw[end : end + 2] == b": "
        and line_start >= 0
        and not raw[line_start:start].strip(b" \t-")
    )


def _requirement_for_password(
    raw: bytes, line_start: int, start: int, end: int, notation: Notation, match: re.Match[bytes]
) -> int:
    """Return the requirement that a value must meet to be a password (see ``Notation.requirement``).

    The value of an environment variable, or of a setting in a file, may consist of plain words.
    """
    if (
        notation.value_pattern is ASSIGNED_VALUE_PATTERN
        and not match["quoted"]
        and _CLOSING_BRACKET_PATTERN.match(match[0])
    ):
        return LIKELY_PASSWORD
    if (
        notation.value_pattern is ASSIGNED_VALUE_PATTERN
        and match[0][:1] == b"="
        and b"`" not in match[0]
        and _ENV_VARIABLE_PATTERN.match(raw, start, end)
    ):
        return ANY_WORDS
    if (
        notation.value_pattern is ASSIGNED_VALUE_PATTERN
        and match["quoted"]
        and b"=" in (text_before := match[0].partition(match["quoted"])[0])
    ):
        return THREE_WORDS if b"==" in text_before or b"=>" in text_before else LOWER_CASE_WORDS
    if (
        notation.requirement in {THREE_WORDS, LIKELY_PASSWORD}
        and b"`" not in match[0]
        and _ENV_VARIABLE_PATTERN.match(raw, start, end)
        and b"_" in raw[start:end]
    ):
        return ANY_WORDS
    if (
        notation.requirement in {THREE_WORDS, LIKELY_PASSWORD, PROSE_PASSWORD}
        and b"`" not in match[0]
        and _has_login_nearby(raw, start, match.end())
    ):
        return (
            THREE_WORDS
            if notation.requirement == PROSE_PASSWORD or not _value_ends_setting(raw, match)
            else LOWER_CASE_WORDS
        )
    if (
        notation.value_pattern is ASSIGNED_VALUE_PATTERN
        and line_start >= 0
        and _SETTING_START_PATTERN.fullmatch(raw, line_start, start)
        and b"`" not in match[0]
    ):
        if _ENV_VARIABLE_PATTERN.match(raw, start, end):
            return THREE_WORDS
        return THREE_WORDS if b"-" in start_and_value_of_match(match)[1] else LIKELY_PASSWORD
    return (
        THREE_WORDS
        if notation.value_pattern is ASSIGNED_VALUE_PATTERN and match["quoted"]
        else notation.requirement
    )


def _value_ends_setting(raw: bytes, match: re.Match[bytes]) -> bool:
    """Check whether a value is quoted, or is followed by the end of its line or setting.

    An identifier in a program is followed by other text.
    """
    return (
        bool(match.re.groupindex.get("quoted") and match["quoted"])
        or raw[match.end() : match.end() + 1] in _CHARACTERS_AFTER_SETTING
    )


def _has_login_nearby(raw: bytes, start: int, end: int) -> bool:
    """Check whether a user or a host is set near a password, as in the settings of a connection."""
    login_before = _LOGIN_ASSIGNMENT_PATTERN.search(raw, max(0, start - CONTEXT_BYTES), start)
    return (
        login_before is not None
        or _LOGIN_ASSIGNMENT_PATTERN.search(raw, end, end + CONTEXT_BYTES) is not None
    )


def _find_password_after_user(start: int, value: bytes, separators: bytes) -> tuple[int, bytes]:
    """Return the start and text of the password after a user name and a separator.

    If the user name is random, or if the value is an address, return the whole value.
    """
    match = re.match(rb"([\w.@-]{1,60})[" + separators + rb"]", value)
    if match is None or (len(match[1]) >= 8 and _DIGIT_PATTERN.search(match[1])):
        return start, value
    if b"@" in match[1] and match[0].endswith(b"/"):
        return start, value  # The value is an address.
    return start + match.end(), value[match.end() :]


def _is_secret_value(meaning: int, value: bytes, requirement: int, name: bytes = b"") -> bool:
    """Check whether a value is a secret, given the meaning of its name.

    ``requirement`` says how strictly the value is checked (see ``Notation.requirement``).
    """
    if meaning == NONE or _is_name_or_number(meaning, value, name):
        return False
    if is_uuid(value):
        return _SECRET_UUID_NAME_PATTERN.search(name) is not None and not is_placeholder(value)
    if meaning == KEY and (
        PROGRAM_NAME_PATTERN.fullmatch(value) or _OPTION_NAME_PATTERN.fullmatch(value)
    ):
        return False
    if (
        is_random_key(value)
        or has_random_case(value)
        or (meaning == LOGIN and is_basic_auth(value))
    ):
        return meaning == PASSWORD or len(value) >= (16 if name.lower().endswith(b"key") else 8)
    if (
        meaning == KEY
        or requirement == RANDOM_CHARACTERS
        or (requirement != ANY_WORDS and _CONSTANT_NAME_PATTERN.fullmatch(value))
    ):
        return False
    if is_likely_password(value):
        return requirement != PROSE_PASSWORD or (
            _DIGIT_PATTERN.search(value) is not None
            and not _STANDARD_OR_VERSION_PATTERN.match(value)
        )
    return (
        _is_alphabetic_password(value, requirement)
        and not _OBJECT_PATH_PATTERN.match(value)
        and not _shares_word_with_name(value, name)
    )


def _is_name_or_number(meaning: int, value: bytes, name: bytes) -> bool:
    """Check whether a value is not secret because it is a name or a number.

    Examples are the name of a standard or type, an address, the value's own name, and the id of a
    public key.
    """
    if _STANDARD_NAME_PATTERN.search(value) or _is_form_of_own_name(value, name):
        return True
    if meaning == PASSWORD and _ADDRESS_PATTERN.match(value):
        return True
    if _OPENPGP_ID_PATTERN.fullmatch(value) and name.lower().endswith(b"key"):
        return True
    may_be_names = _NUMBERED_TYPE_NAME_PATTERN.fullmatch(value) or (
        meaning == LOGIN and b":" in value
    )
    return bool(may_be_names) and consists_of_words(value)


def _is_form_of_own_name(value: bytes, name: bytes) -> bool:
    """Check whether a value repeats its own name: ``client_secret_arn``, ``settings:clientSecret``."""
    if (
        b":" in value
        and _COLON_SEPARATED_FORMAT_PATTERN.fullmatch(value)
        and _shares_word_with_name(value, name)
    ):
        return True
    name = name.rpartition(b".")[2] or name
    value, name = (
        value.lower().rstrip(b"]?!").translate(_TO_UNDERSCORE_TABLE),
        name.lower().translate(_TO_UNDERSCORE_TABLE),
    )
    if value.startswith(name + b":") or value.replace(b"_", b"") == name.replace(b"_", b""):
        return True
    return value in name or (
        name in value
        and len(_words_of_name(name)) > 1
        and _NAME_ONLY_PATTERN.fullmatch(value) is not None
    )


def _shares_word_with_name(value: bytes, name: bytes) -> bool:
    """Check whether a value contains a word of its name, as in ``SESSION_KEY = "account-session"``."""
    topic_words = {word for word in _words_of_name(name) if len(word) >= _MIN_TOPIC_LETTERS}
    return not topic_words.isdisjoint(_words_of_name(value))


def _is_alphabetic_password(value: bytes, requirement: int) -> bool:
    """Check whether a value that consists only of letters is a password that meets the ``requirement``."""
    if is_random_letters(value):
        return requirement != PROSE_PASSWORD
    from_environment = requirement == ANY_WORDS and not value.isupper()
    if (
        from_environment
        or (requirement == LOWER_CASE_WORDS and _HYPHENATED_WORDS_PATTERN.fullmatch(value))
    ) and is_word_password(value):
        return True
    return (
        requirement <= THREE_WORDS
        and _GENERATED_WORDS_PATTERN.fullmatch(value) is not None
        and not _TOPIC_WORD_PATTERN.search(value)
        and not is_placeholder(value)
    )


def secure_string_spans(raw: bytes, position: int) -> Generator[Span, None, None]:
    """Yield the secret that a PowerShell command or an output of AWS marks as a secure string.

    The PowerShell command is ``ConvertTo-SecureString``.
    """
    if match := _POWERSHELL_SECURE_STRING_PATTERN.match(
        raw, position
    ) or _AWS_SECURE_STRING_PATTERN.match(raw, position):
        yield from password_spans(match, only_passwords=True)


def is_secret_field(name: bytes, value: bytes) -> bool:
    """Check whether ``value`` is a secret in a field called ``name``."""
    meaning = meaning_of_name(name)
    meaning = KEY if meaning == LOGIN and not is_basic_auth(value) else meaning
    return (
        b" " not in value
        and len(value) >= _MIN_VALUE_BYTES
        and _is_secret_value(meaning, value, THREE_WORDS, name)
    )


def is_password_in_sentence(value: bytes) -> bool:
    """Check whether a value in a sentence is a password.

    A password contains a digit, and is not a name, standard, UUID or address.
    """
    value = value.rstrip(b".:!?")
    if (
        _DIGIT_PATTERN.search(value) is None
        or _STANDARD_OR_VERSION_PATTERN.match(value)
        or PROGRAM_NAME_PATTERN.fullmatch(value)
    ):
        return False
    return not is_uuid(value) and not _ADDRESS_PATTERN.match(value)


def password_spans(match: re.Match[bytes], *, only_passwords: bool = False) -> Iterator[Span]:
    """Yield the value of a match if it is a password.

    A value with spaces is part of a sentence and is not a password. If ``only_passwords`` is true,
    only a password can be in that position, so a value of plain words is also accepted.
    """
    start, value = start_and_value_of_match(match)
    is_likely = (
        is_likely_password(value) and not _STANDARD_NAME_PATTERN.search(value)
    ) or is_random_letters(value)
    if (
        is_likely or (only_passwords and b"`" not in match[0] and is_word_password(value))
    ) and b" " not in value:
        yield Span("password", start, start + len(value), GENERIC)


def start_and_value_of_match(match: re.Match[bytes]) -> tuple[int, bytes]:
    """Return the start of the value in a match, and the value."""
    groups = match.re.groupindex
    if "quoted" in groups and match["quoted"]:
        return match.start("quoted"), match["quoted"]
    return match.start("bare"), match["bare"].rstrip(b".:")
