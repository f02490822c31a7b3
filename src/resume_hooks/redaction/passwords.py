"""Secrets that the name before them identifies, in all notations, and the meaning of such names.

A name can mean a password that a person chose, a random key, or something that is not secret. Names
in any notation are split into words: ``dbPassword``, ``DB_PASSWORD``, ``db-pass``.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator
from functools import lru_cache

from resume_hooks.redaction.credentials import is_basic
from resume_hooks.redaction.false_positives import (
    is_id,
    is_key,
    is_mixed,
    is_password,
    is_phrase,
    is_random_letters,
    is_wordy,
    stands_for,
)
from resume_hooks.redaction.lazy_patterns import late
from resume_hooks.redaction.program_text import NAMED, is_kind_of_many, is_variable
from resume_hooks.redaction.spans import GENERIC, Span
from resume_hooks.redaction.ways import (
    ANY,
    BY_SIGN,
    CHANCE,
    CHANGED,
    CHANGED_TO,
    HEAD,
    IN_BRACKETS,
    LIKELY,
    LINE,
    NOT_A_GRAMMAR_WORD,
    PAIRS,
    PLAIN,
    QUOTED,
    SET,
    TOLD,
    WORDS,
    Way,
)

NONE, KEY, LOGIN, PASSWORD = range(4)
"""The meanings of a name: no secret, a random secret, a user's name and a password in one value, or
a password.

A person may have chosen the password.
"""

_HUMP = late(rb"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PARTS = late(rb"[^A-Za-z0-9]+|(?<=[A-Za-z])(?=\d)")

_SUFFIXES = frozenset(
    b"value prod production dev development staging stage test testing live default primary secondary main old "
    b"new current "
    b"plain plaintext text raw base base64 b64 hex str string env var cleartext clear confirm confirmation again "
    b"2nd".split()
)
"""Words after the significant word that do not change its meaning."""

_PASSWORDS = frozenset(
    b"pass password passwd passphrase passcode pwd pw psk secret authtok passw passin passout sshpass pasword psswd "
    b"kennwort passwort contrasena community".split()
)
_PASSWORD_ENDS = (
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
_STRONG = late(
    rb"(?:encrypt(?:ion)?|signing|master|secret|shared|auth|authentication|authorization|crypt|crypto|cipher|aes"
    rb"|hmac|jwt|session|cookie|wpa|"
    rb"wep|network|encryption|decryption|security|account|machine|validation)$"
)
"""Words before ``key`` in the name of a key that a person may have chosen."""

_OPEN = tuple(
    b"pub public recv site s3 fips property pair bucket config setting field column item state route attr param meta "
    b"flag data dict cert bind".split()
)
"""Words before ``key`` in the name of a public key or an identifier."""

_COMMUNITIES = frozenset(
    b"snmp ro rw read write only trap string get set agent auth v1 v2 v2c snmpv2 snmpv2c".split()
)
"""Words before ``community`` in the name of an SNMP password, as opposed to an edition of a
program."""

_TOKENS = frozenset(
    b"token pat salt pepper jwt apikey authkey accesskey secretkey privatekey appkey licensekey seed otp totp "
    b"bearer sas nonce signature "
    b"credential cred dsn webhook mnemonic hash sig apitoken authtoken accesstoken refreshtoken seckey "
    b"apisecret".split()
)
_LOGIN_ENDS = (b"auth", b"authident", b"creds", b"credentials")
_LOGINS = frozenset(
    (
        b"authorization logins auth creds credentials userpwd ident login basic basicauth userpass"
    ).split()
)
HARMLESS = late(
    rb"(?:primary|foreign|partition|sort|row|group|object|index|map|dict|registry|hot|page|change|forward"
    rb"|backward|start(?:ing)?|client|request|idempotency|import|export|next|prev|csrf|xsrf|sync"
    rb"|cancel(?:lation)?|cursor|continuation|max|num|input|output|total|eos|bos|pad|"
    rb"stop|public|md_?5|sha_?\d{1,3}|design|color|cache|lock|resume|delivery|event|first|last|current|leaf|action|web[_.-]?socket)[_.-]?(?:token|key|secret)s?"
)
"""Tokens and keys that are not secrets."""

_NEGATED = frozenset(
    b"no without is has use show hide forgot reset require required allow missing invalid wrong incorrect "
    b"existing image label i18n change "
    b"error message hint validate check verify".split()
)
"""Words before the significant word that give the name another meaning."""

_NO_PASS = (b"bypass", b"compass", b"surpass", b"trespass", b"overpass")

_WORD = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-"
_LONGEST_NAME = 64
_SHORTEST = 6
_LONG = 24
"""The minimum size in bytes of a generated value, which letters outside ASCII end."""

BEFORE_PASS = 160
"""The number of bytes before a name to examine for its context."""

_REST = late(rb"(?i)[\w-]{0,48}+(?: (?:id|key|token|phrase|string)\b)?")
_ESCAPE = late(rb"[ntr]|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}")
"""The end of an escape before a name, which looks like a part of the name."""

_SPACED = late(
    rb"(?i)\b(?:api|access|auth|secret|private|encryption|signing|license|bearer|connection|recovery|security"
    rb"|deploy|session) \Z"
)
_SPACED_ENDS = (b"key", b"token", b"string", b"code")
_KINDS = ("", "token", "password", "password")
_NAMES_ID = late(
    rb"(?i)(?:api[_.-]?key|(?:auth|access|api|deploy)[_.-]?token|secret(?:[_.\s-]?(?:key|id))?|\w[_-](?:token"
    rb"|key|pat|secret|password|secret[_-]id)|authorization)\Z"
)
"""A name whose value is secret even if it is a UUID; most UUIDs are only identifiers."""

_SETTING = late(
    LINE
    + rb"(?:[-\"'#;>] {0,3}|export |set |declare -x |ENV |ARG |-e |[\w.-]{1,40}: {0,3}\{ )?[\"']?"
)
"""The text before a name in a line of settings."""

_TECHNICAL = late(
    rb"(?i)v?\d+(?:\.\w+)+\Z|(?:sha|md|aes|rsa|utf|base|rfc|cve|http|tls|ssl|pbkdf|pkcs|ed|des|ipv|ntlm|python"
    rb"|oauth|iso|win|tcp|udp|socks)[-_]?v?\d|[\w.]+=[^=]"
)
"""Names of standards and version numbers, which occur in sentences about passwords."""

_ASCII = late(rb"[!-~]+")
_STANDARD = late(
    rb"(?i)(?<![a-z0-9])(?:hmac|sha-?\d{1,3}|pbkdf2|ed25519|hkdf)(?![a-z0-9])"
    rb"|\A(?:id-)?(?:pbes2|base-?\d\d|x\d{3,5}|md5|ieee-?\d{3,5}x?|aes-?\d{3}-\w{3}|\d{1,2}-(?:bit|byte))\Z"
)
_DIGIT = late(rb"\d")
_TOPIC = late(
    rb"form|field|input|label|hash|update|reset|change|error|message|page|policy|manager|store|service|file|hint"
    rb"|name|secret|token|config|prompt|user|login|auth|pass|self|this|option|setting|state"
)
_ENV = late(rb"[A-Z][A-Z0-9_]{2,60}\Z")
_MANY = late(rb"[a-z]{3,14}(?:([._-])[a-z]{3,14})(?:\1[a-z]{3,14}){1,5}")
"""A password of three or more words, such as programs generate."""

_OWN = late(rb"(?:self|this|cls|conf|config|settings|options|args|state|request|env)\.")
"""The beginning of a path that leads to a value in a program."""

_CONSTANT = late(rb"(?=(?:\w*_)?[A-Z]{3,}(?:_|\Z))[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
_TYPE = late(rb"[A-Z]+[a-z]+\d{0,3}(?:[A-Z]+[a-z]*\d{0,3})+")
"""The name of a type in a program: capitalised words and numbers."""

_TYPE_ENDS = late(rb"[ \t]*[,)|\[}=]")
_JOINED = late(rb"(?:[A-Za-z-]+:)+\Z")
_WORDS_JOINED = late(rb"[A-Za-z-]*(?::[A-Za-z-]+)+")
"""Words separated by colons, as in names of commands and types: ``user:login:list``."""

_FIELDS_JOINED = late(rb"[a-z]+\d?(?::[a-z]+\d?)+")
"""The further fields of a format: ``name:password:gid:member1``."""

_CONDITION = late(
    rb"(?i) (?:when|if|unless) |\b(?:fail(?:ed|s|ure)?|errors?|denied|refused|rejected|aborted)\b"
)
"""Words of a sentence about a condition, or of a failure report followed by its reason."""

_IDENTIFIER = late(rb"(?:\b[Ii]d|\wId|\bID)s?:?[ \t]+\Z")
"""The end of the text before an id."""

_SENTENCES = (CHANGED_TO, IN_BRACKETS)
"""Notations with an arbitrary name that occur in sentences about passwords."""

_ADDRESS = late(rb"[a-z][a-z0-9+.-]{1,20}://")
_OTHER_SETTING = late(rb"[a-z_]{2,20}=[\w.:]+")
"""Another name with its value, as they occur in a program's settings and logs."""

_GOES_ON = late(rb"[ \t]+(?!#|//)\S")
"""Further words after a value on the same line."""

_BADGE = late(rb"\.(?:svg|png)\?\Z")
"""The end of an image's address, in which the token is public."""

_NUMBERED = late(rb"(?:CVE|GHSA|RFC|ISO|DSA|USN)-[\d-]+")
"""The number of a report or of a standard."""

_IN_BRACKETS = late(rb"[\"'`\\]{0,4}\]")
_ONE_JOINT = bytes.maketrans(b"-.", b"__")
_NAME_ALONE = late(rb"[\w-]+")
_TELLING_WORD = 3
"""The minimum number of letters in a word that by itself shows the topic of a value."""

_OF_A_TYPE = late(rb"(?:[*}:]|\d{7}):\Z")
"""The text before a name that is a type in a program, or part of the name that AWS gives a
secret."""

_PARAMETERS = late(rb"&[\w.]{1,60}=")
_HYPHENED = late(rb"[a-z]+(?:-[a-z]+)*")
_ENDS = frozenset([b"", b"\n", b"\r", b";", b"&", b"<", b'"', b"'"])
_USER = late(
    rb"(?i)(?:^|[\s\"',;{(_.?&-])(?:user(?:[ _-]?name|[ _-]?id)?|login|host(?:name)?|port|dbname|database|adapter)"
    rb"[\"']?(?:[ \t]{0,4}(?:=>|=|:)[ \t]{0,4}|[ \t]{1,8}"
    + NOT_A_GRAMMAR_WORD
    + rb")[\"']?[\w.@-]{1,80}"
)
"""An assignment to a user, a host or a database."""

_SET_AS_SECURE = late(rb"(?i)securestring\\{0,3}\"\s*,\s*\\{0,3}\"value\\{0,3}\"\s*:\s*" + QUOTED)
"""The output of AWS for an encrypted parameter."""

_SECURE_STRING = late(rb"(?i)securestring(?:[ \t]+-(?:string|asplaintext|force))*[ \t]+" + QUOTED)


@lru_cache(maxsize=8192)
def meaning_of_name(name: bytes) -> int:
    """Return the meaning of a name: ``NONE``, ``KEY``, ``LOGIN`` or ``PASSWORD``."""
    words = list(_words_of_name(name))
    if words[-2:] == [b"connection", b"string"]:
        return KEY
    while len(words) > 1 and (words[-1] in _SUFFIXES or words[-1].isdigit()):
        words.pop()
    if not words or words[0] in _NEGATED or (len(words) > 1 and words[-2] in _NEGATED):
        return NONE
    last = words[-1]
    if words[-2:-1] and last == b"community" and words[-2] not in _COMMUNITIES:
        return NONE
    if last in _PASSWORDS or (last.endswith(_PASSWORD_ENDS) and not last.endswith(_NO_PASS)):
        return PASSWORD
    if HARMLESS.search(b"_".join(words[-4:])):
        return NONE
    if last in _LOGINS or (last.endswith(_LOGIN_ENDS) and not last.endswith(b"oauth")):
        return LOGIN
    if last.endswith(b"key"):
        return _meaning_of_key(b"".join(words[-3:-1]) + last[:-3])
    return (
        KEY
        if last in _TOKENS or last.endswith(b"token") or words[-2:] == [b"secret", b"id"]
        else NONE
    )


@lru_cache(maxsize=8192)
def _words_of_name(name: bytes) -> tuple[bytes, ...]:
    """Split a name in any notation into lower-case words."""
    return tuple(word.lower() for word in _PARTS.split(_HUMP.sub(b"_", name)) if word)


def _meaning_of_key(words: bytes) -> int:
    """Return the meaning of a name that ends in ``key`` after ``words``."""
    if not words or words.endswith(_OPEN):
        return NONE
    if _STRONG.search(words):
        return PASSWORD
    return KEY


def name_at(raw: bytes, place: int) -> tuple[int, int, int]:
    """Return the start, end and meaning of the name with a significant word at ``place``."""
    before = raw[max(0, place - _LONGEST_NAME) : place]
    start = place - len(before) + len(before.rstrip(_WORD))
    rest = _REST.match(raw, place)
    end = rest.end() if rest else place
    if raw[start - 1 : start] == b"\\" and (escape := _ESCAPE.match(raw, start)):
        start = min(escape.end(), place)
    name = raw[start:end].lstrip(b"-.")
    start = end - len(name)
    if name.lower() in _SPACED_ENDS and (spaced := _SPACED.search(raw, max(0, start - 16), start)):
        name = spaced[0] + name
    return start, end, meaning_of_name(name)


def assigned_spans(raw: bytes, start: int, end: int, what: int) -> Generator[Span, None, int]:
    """Yield the secret, if any, that belongs to a name with a meaning.

    Return the end of the examined text.
    """
    looked = 0
    before = max(0, start - BEFORE_PASS)
    line = raw.rfind(b"\n", before, start) + 1 or (0 if before == 0 else -1)
    if _names_something_else(raw, line, start, end):
        return 0
    for way in BY_SIGN[raw[end]] if end < len(raw) else ():
        if way.joint in PAIRS and what != LOGIN:
            continue
        found = way.joint.match(raw, end)
        if found and _stands_before_name(way, raw, before, line, start):
            looked = found.end()
            at, value = value_of_match(found)
            if raw[start - 1 : start] in {b"?", b"&"} or _PARAMETERS.search(value):
                value = value.partition(b"&")[0]
            least = (
                _least_for_password(raw, line, start, end, way, found)
                if what == PASSWORD
                else way.least
            )
            plain = _ASCII.match(value)
            if plain and (what == KEY or len(plain[0]) >= _LONG):
                value = plain[0]
            begin = at
            if what == LOGIN and way.joint not in PAIRS:
                at, value = _password_in(at, value, b":/" if way.joint is SET else b":")
            kind = (
                KEY
                if what == LOGIN and at == begin and way.joint not in PAIRS and not is_basic(value)
                else what
            )
            if _is_about_something_else(raw, start, end, way, found, at):
                continue
            secret = b" " not in value and _is_secret_value(kind, value, least, raw[start:end])
            if secret and not is_kind_of_many(raw, at, value):
                yield Span(_KINDS[what], at, at + len(value), GENERIC)
                yield from _new_value_spans(raw, found.end(), what, raw[start:end])
                return looked
    return looked


def _new_value_spans(raw: bytes, end: int, what: int, name: bytes) -> Iterator[Span]:
    """Yield the new value after an old value, as in Terraform's plans: ``"old" -> "new"``."""
    found = CHANGED.match(raw, end)
    if found and what != LOGIN and _is_secret_value(what, found["quoted"], ANY, name):
        yield Span(_KINDS[what], *found.span("quoted"), GENERIC)


def _stands_before_name(way: Way, raw: bytes, before: int, line: int, start: int) -> bool:
    """Check whether the text before a name matches a notation."""
    if way.before is None:
        return True
    if way.before is HEAD:
        return line >= 0 and way.before.fullmatch(raw, line, start) is not None
    return way.before.search(raw, before, start) is not None


def _is_verb(way: Way, found: re.Match[bytes], value: bytes) -> bool:
    """Check whether ``pass`` is a verb or a test's result rather than a name."""
    quote = found["quote"] if "quote" in found.re.groupindex else b""
    told = way.least == TOLD and b":" not in found[0] and (quote is None or NAMED.fullmatch(value))
    return b"/" in value or quote == b"`" or b"`" in found[0] or bool(told)


def _is_about_something_else(
    raw: bytes, start: int, end: int, way: Way, found: re.Match[bytes], at: int
) -> bool:
    """Check whether the text after a name is about something other than its value."""
    place, value = value_of_match(found)
    if raw[start:end].lower() == b"pass" and _is_verb(way, found, value[at - place :]):
        return True
    if value.startswith(b"urn:"):
        return True
    if way.joint is SET:
        return bool(found["bare"]) and _is_text_of_program(raw, start, found)
    if way.joint in _SENTENCES and _DIGIT.search(value) is None:
        return True
    return way.least == TOLD and _is_said_of_something_else(found)


def _is_text_of_program(raw: bytes, start: int, found: re.Match[bytes]) -> bool:
    """Check whether an unquoted value is a type, a variable, or the next word of a longer name."""
    value = found["bare"]
    if is_variable(raw, found):
        return True
    if found[0].lstrip()[:1] == b":":
        if value.endswith(b":") or _OTHER_SETTING.fullmatch(value) is not None:
            return True
        if raw[start - 1 : start] == b"/" and _GOES_ON.match(raw, found.end()):
            return True
    if b"=" in found[0]:
        return False
    if _TYPE.fullmatch(value) and is_wordy(value) and _TYPE_ENDS.match(raw, found.end()):
        return True
    return _is_word_of_longer_name(raw, start, found)


def _is_word_of_longer_name(raw: bytes, start: int, found: re.Match[bytes]) -> bool:
    """Check whether a name and its value are between colons, as in command names and file formats."""
    before = _JOINED.search(raw, max(0, start - _LONGEST_NAME), start)
    if before and found[0][:1] == b":" and _FIELDS_JOINED.fullmatch(found["bare"]):
        return True
    joined = (before[0] if before else b"") + b"name" + found[0]
    return joined.count(b":") > 1 and _WORDS_JOINED.fullmatch(joined) is not None


def _is_said_of_something_else(found: re.Match[bytes]) -> bool:
    """Check whether a sentence after a name is about a condition, a failure, an id or another setting."""
    at, value = value_of_match(found)
    between = found[0][: at - found.start()]
    if _NUMBERED.fullmatch(value):
        return True
    if between.isspace() and is_id(value) and _GOES_ON.match(found.string, found.end()):
        return True
    if _CONDITION.search(between) or _OTHER_SETTING.fullmatch(value):
        return True
    return is_id(value) and _IDENTIFIER.search(between) is not None


def _names_something_else(raw: bytes, line: int, start: int, end: int) -> bool:
    """Check whether a name is part of a type, the user in an address, or a test runner's output."""
    if raw[start - 3 : start] == b"://" or _OF_A_TYPE.search(raw, max(0, start - 8), start):
        return True
    if _BADGE.search(raw, max(0, start - 8), start):
        return True
    return _is_verdict(raw, line, start, end)


def _is_verdict(raw: bytes, line: int, start: int, end: int) -> bool:
    """Check whether ``PASS:`` begins a line of a test runner, such as ``--- PASS: TestPush``."""
    return (
        raw[start:end] == b"PASS"
        and raw[end : end + 2] == b": "
        and line >= 0
        and not raw[line:start].strip(b" \t-")
    )


def _least_for_password(
    raw: bytes, line: int, start: int, end: int, way: Way, found: re.Match[bytes]
) -> int:
    """Return the requirement for a password's value. In an environment or a settings file, plain words are enough."""
    if way.joint is SET and not found["quoted"] and _IN_BRACKETS.match(found[0]):
        return LIKELY
    if (
        way.joint is SET
        and found[0][:1] == b"="
        and b"`" not in found[0]
        and _ENV.match(raw, start, end)
    ):
        return WORDS
    if (
        way.joint is SET
        and found["quoted"]
        and b"=" in (before := found[0].partition(found["quoted"])[0])
    ):
        return ANY if b"==" in before or b"=>" in before else PLAIN
    if (
        way.least in {ANY, LIKELY}
        and b"`" not in found[0]
        and _ENV.match(raw, start, end)
        and b"_" in raw[start:end]
    ):
        return WORDS
    if (
        way.least in {ANY, LIKELY, TOLD}
        and b"`" not in found[0]
        and _has_user(raw, start, found.end())
    ):
        return ANY if way.least == TOLD or not _value_ends_setting(raw, found) else PLAIN
    if (
        way.joint is SET
        and line >= 0
        and _SETTING.fullmatch(raw, line, start)
        and b"`" not in found[0]
    ):
        if _ENV.match(raw, start, end):
            return ANY
        return ANY if b"-" in value_of_match(found)[1] else LIKELY
    return ANY if way.joint is SET and found["quoted"] else way.least


def _value_ends_setting(raw: bytes, found: re.Match[bytes]) -> bool:
    """Check whether a value is quoted, or ends its line or setting. A name in a program would continue."""
    return (
        bool(found.re.groupindex.get("quoted") and found["quoted"])
        or raw[found.end() : found.end() + 1] in _ENDS
    )


def _has_user(raw: bytes, start: int, end: int) -> bool:
    """Check whether a user or a host is set near a password, as in the settings of a connection."""
    before = _USER.search(raw, max(0, start - BEFORE_PASS), start)
    return before is not None or _USER.search(raw, end, end + BEFORE_PASS) is not None


def _password_in(at: int, value: bytes, signs: bytes) -> tuple[int, bytes]:
    """Return the password after a user's name and a separator.

    Return the whole value if the user's name is random.
    """
    found = re.match(rb"([\w.@-]{1,60})[" + signs + rb"]", value)
    if found is None or (len(found[1]) >= 8 and _DIGIT.search(found[1])):
        return at, value
    if b"@" in found[1] and found[0].endswith(b"/"):
        return at, value  # the value is an address
    return at + found.end(), value[found.end() :]


def _is_secret_value(what: int, value: bytes, least: int, name: bytes = b"") -> bool:
    """Check whether a value is a secret for a name with this meaning."""
    if what == NONE or _STANDARD.search(value) or _is_another_name(value, name):
        return False
    if what == PASSWORD and _ADDRESS.match(value):
        return False
    if is_id(value):
        return _NAMES_ID.search(name) is not None and not stands_for(value)
    if what == KEY and NAMED.fullmatch(value):
        return False
    if is_key(value) or is_mixed(value) or (what == LOGIN and is_basic(value)):
        return what == PASSWORD or len(value) >= (16 if name.lower().endswith(b"key") else 8)
    if what == KEY or least == CHANCE or (least != WORDS and _CONSTANT.fullmatch(value)):
        return False
    if is_password(value):
        return least != TOLD or (_DIGIT.search(value) is not None and not _TECHNICAL.match(value))
    return _is_of_words(value, least) and not _OWN.match(value) and not _shares_word(value, name)


def _is_another_name(value: bytes, name: bytes) -> bool:
    """Check whether a value is a shorter or longer form of its own name: ``client_secret_arn``."""
    value, name = value.lower().translate(_ONE_JOINT), name.lower().translate(_ONE_JOINT)
    if value.startswith(name + b":"):
        return True
    return value in name or (
        name in value and len(_words_of_name(name)) > 1 and _NAME_ALONE.fullmatch(value) is not None
    )


def _shares_word(value: bytes, name: bytes) -> bool:
    """Check whether a value made of words describes its name, as in ``SESSION_KEY = "account-session"``."""
    told = {word for word in _words_of_name(name) if len(word) >= _TELLING_WORD}
    return not told.isdisjoint(_words_of_name(value))


def _is_of_words(value: bytes, least: int) -> bool:
    """Check whether a value that consists only of letters is a password under the requirement ``least``."""
    if is_random_letters(value):
        return least != TOLD
    by_env = least == WORDS and not value.isupper()
    if (by_env or (least == PLAIN and _HYPHENED.fullmatch(value))) and is_phrase(value):
        return True
    return (
        least <= ANY
        and _MANY.fullmatch(value) is not None
        and not _TOPIC.search(value)
        and not stands_for(value)
    )


def secure_string_spans(raw: bytes, place: int) -> Generator[Span, None, None]:
    """Plain text that is passed to PowerShell's ``ConvertTo-SecureString``."""
    if found := _SECURE_STRING.match(raw, place) or _SET_AS_SECURE.match(raw, place):
        yield from password_spans(found, sure=True)


def is_secret_field(name: bytes, value: bytes) -> bool:
    """Check whether ``value`` in a field called ``name`` is a secret."""
    what = meaning_of_name(name)
    what = KEY if what == LOGIN and not is_basic(value) else what
    return (
        b" " not in value and len(value) >= _SHORTEST and _is_secret_value(what, value, ANY, name)
    )


def is_said_password(value: bytes) -> bool:
    """Check whether a value in a sentence is a password: it contains a digit and is neither a name nor a standard."""
    value = value.rstrip(b".:!?")
    if _DIGIT.search(value) is None or _TECHNICAL.match(value) or NAMED.fullmatch(value):
        return False
    return not is_id(value) and not _ADDRESS.match(value)


def password_spans(found: re.Match[bytes], *, sure: bool = False) -> Iterator[Span]:
    """Yield the value of a match if it is a password. A value with spaces is a sentence about passwords.

    If ``sure``, nothing but a password occurs at that position, so plain words also count.
    """
    start, value = value_of_match(found)
    chosen = (is_password(value) and not _STANDARD.search(value)) or is_random_letters(value)
    if (chosen or (sure and b"`" not in found[0] and is_phrase(value))) and b" " not in value:
        yield Span("password", start, start + len(value), GENERIC)


def value_of_match(found: re.Match[bytes]) -> tuple[int, bytes]:
    """Return the start of a match's value, and the value."""
    groups = found.re.groupindex
    if "quoted" in groups and found["quoted"]:
        return found.start("quoted"), found["quoted"]
    return found.start("bare"), found["bare"].rstrip(b".:")
