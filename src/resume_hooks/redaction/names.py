"""What a name says of the value it stands for: a password that a person may have chosen, a key of chance, or none.

A name is taken apart into its words, however it is written: ``dbPassword``, ``DB_PASSWORD``, ``db-pass``.
"""

from __future__ import annotations

import re
from functools import lru_cache

NONE, KEY, LOGIN, PASSWORD = range(4)
"""No secret; one made by chance; a user's name and a password in one value; one that a person may have chosen."""

_HUMP = re.compile(rb"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_PARTS = re.compile(rb"[^A-Za-z0-9]+|(?<=[A-Za-z])(?=\d)")

_SUFFIXES = frozenset(
    b"value prod production dev development staging stage test testing live default primary secondary main old "
    b"new current "
    b"plain plaintext text raw base base64 b64 hex str string env var cleartext clear confirm confirmation again "
    b"2nd".split()
)
"""Words behind the one that tells, which change nothing."""

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
    b"pwd",
)
_STRONG = re.compile(
    rb"(?:encrypt(?:ion)?|signing|master|secret|shared|auth|authentication|authorization|crypt|crypto|cipher|aes"
    rb"|hmac|jwt|session|cookie|wpa|"
    rb"wep|network|encryption|decryption|security|account|machine|validation)$"
)
"""Words before ``key`` with which it is one that a person may have chosen."""

_OPEN = tuple(
    b"pub public site s3 fips property pair bucket config setting field column item state route attr param meta flag "
    b"data dict cert bind".split()
)
"""Words before ``key`` with which it is open, or only names something."""

_TOKENS = frozenset(
    b"token pat salt pepper jwt apikey authkey accesskey secretkey privatekey appkey licensekey seed otp totp "
    b"bearer sas nonce signature "
    b"credential cred dsn webhook mnemonic hash sig apitoken authtoken accesstoken refreshtoken seckey "
    b"apisecret".split()
)
_LOGIN_ENDS = (b"auth", b"authident", b"creds", b"credentials")
_LOGINS = frozenset(b"authorization logins auth creds credentials userpwd ident login basic basicauth userpass".split())
HARMLESS = re.compile(
    rb"(?:primary|foreign|partition|sort|row|group|object|index|map|dict|registry|hot|page|change|forward"
    rb"|backward|start(?:ing)?|client|request|idempotency|import|export|next|prev|csrf|xsrf|sync"
    rb"|cancel(?:lation)?|cursor|continuation|max|num|input|output|total|eos|bos|pad|"
    rb"stop|public|design|color|cache|lock|resume|delivery|event|first|last|current|leaf|action)[_.-]?(?:token|key|secret)s?"
)
"""Tokens and keys that are no secrets."""

_NEGATED = frozenset(
    b"no without is has use show hide forgot reset require required allow missing invalid wrong incorrect "
    b"existing image label i18n "
    b"error message hint validate check verify".split()
)
"""Words before the one that tells, with which the name stands for something else."""

_NO_PASS = (b"bypass", b"compass", b"surpass", b"trespass", b"overpass")


@lru_cache(maxsize=8192)
def meaning(name: bytes) -> int:
    """Which of ``NONE``, ``KEY``, ``LOGIN`` and ``PASSWORD`` the value of a name is."""
    words = [word.lower() for word in _PARTS.split(_HUMP.sub(b"_", name)) if word]
    if words[-2:] == [b"connection", b"string"]:
        return KEY
    while len(words) > 1 and (words[-1] in _SUFFIXES or words[-1].isdigit()):
        words.pop()
    if not words or words[0] in _NEGATED or (len(words) > 1 and words[-2] in _NEGATED):
        return NONE
    last = words[-1]
    if last in _PASSWORDS or (last.endswith(_PASSWORD_ENDS) and not last.endswith(_NO_PASS)):
        return PASSWORD
    if HARMLESS.search(b"_".join(words[-4:])):
        return NONE
    if last in _LOGINS or (last.endswith(_LOGIN_ENDS) and not last.endswith(b"oauth")):
        return LOGIN
    if last.endswith(b"key"):
        return _key(b"".join(words[-3:-1]) + last[:-3])
    return KEY if last in _TOKENS or last.endswith(b"token") or words[-2:] == [b"secret", b"id"] else NONE


def _key(words: bytes) -> int:
    """What a key is that is called so with ``words`` before."""
    if not words or words.endswith(_OPEN):
        return NONE
    return PASSWORD if _STRONG.search(words) else KEY
