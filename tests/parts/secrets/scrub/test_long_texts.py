"""Hostile text of any kind takes time in proportion to its length: nothing here ends within the timeout otherwise.

Each form is one on which a search could begin anew at every repetition. ``python -m benchmarks.redaction --growth``
builds such forms from every pattern, and measures what happens to the time when they are twice as long.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from resume_hooks.parts.secrets.cleaner import Cleaner
from resume_hooks.parts.secrets.literals import Literals
from resume_hooks.redaction.texts import redact
from tests.needs import one_in

SIZE = 350_000
PASSWORD = 'password: "Hx7kQ2mZp9Lr4Tw8" '

REPEATED = [
    '{"a":"b"} ', '"', '\\"', '"\\"', 'Z"', "eyJY0mN2zapBW6tgd. ", "é password: Hx7kQ2mZp9Lr4Tw8 ", "-u",
    "cookie: sid=a;", "AccountKey=0R2Jp9RRv6IOIHTKddDs3wMITFUD6SJqt8J/g8z ", "-----begin private key-----\n",
    "-----END PRIVATE KEY-----\n", "private-lines: 2",
]  # fmt: skip
"""What took quadratic time once, or would if its search were written a little differently."""

MORE_REPEATED = [
    '{"a":', "[[", "\\\\", "\\u0041", "AKIA", "ghp_", "sk-ant-", "secret_", "xoxb-1", "eyJaaaaaaaaaaaaaaaaaaa.",
    "ZXlK+",
    "A1b2/", ".a1b2c3d4e5f6g7h8", "token=a1b2c3d4e5f6g7h8i9j0.", "password=", "password: Hx7kQ2mZp9Lr4Tw8\n", "://a:b@",
    "://a:Hx7kQ2mZp9@b ", " -p", "@", "cookie:", "login a password ", "<secret>", "$2b$", "$", "MIIEpAIBAAKCAQEA\n",
    "net use \\\\a ", "-----BEGIN PRIVATE KEY-----\n", "\x1b[", "\x1b]8;;", "\x1b[1ma",
]  # fmt: skip
WIDE = [pytest.param(text, marks=pytest.mark.wide) for text in MORE_REPEATED]

WAYS: dict[str, Callable[[str], object]] = {
    "text": redact,
    "scrubbed text": lambda text: Cleaner().text(f"{PASSWORD}{text}".encode()),
    "scrubbed line": lambda text: Cleaner().line(json.dumps({"message": {"content": PASSWORD + text}}).encode()),
    "torn line": lambda text: Cleaner().line(f'{{"content":"{PASSWORD}{text}}}'.encode()),
    "key": lambda text: Cleaner().line(json.dumps({PASSWORD + text: [PASSWORD] * 9}).encode()),
}


@pytest.mark.parametrize("repeated", [*one_in(3, REPEATED), *WIDE])
def test_repeated_text(repeated: str) -> None:
    """350 KB of it in a line end; what began anew at every quote took minutes."""
    WAYS["scrubbed line"](repeated * (SIZE // len(repeated)))


@pytest.mark.parametrize("way", [way for way in WAYS if way != "scrubbed line"])
@pytest.mark.parametrize("repeated", [*REPEATED[:3], *WIDE])
def test_repeated_text_elsewhere(repeated: str, way: str) -> None:
    """In a text, a line that is torn, a key of JSON."""
    WAYS[way](repeated * (SIZE // len(repeated)))


def test_many_known_secrets() -> None:
    """As many secrets as lines: a place is not compared with all of them."""
    secrets = {f"{number * 7919 % 100_003:05d}-Hx7kQ2mZp9": "password" for number in range(SIZE // 50)}
    cleaner = Cleaner(literals=Literals(secrets), scanning=False)
    text = "\n".join(f"it is {secret} today" for secret in secrets)
    assert len(cleaner.text(text.encode()).found) == len(secrets)


def test_many_cut_secrets() -> None:
    """What is left of a secret that was cut short, over and over."""
    secret = "Hx7kQ2mZp9Lr4Tw8Vb3nYc6dEs5gAu1j"
    cleaner = Cleaner(literals=Literals({secret: "password"}), scanning=False)
    assert len(cleaner.text(f"{secret[:24]} ".encode() * (SIZE // 25)).found) == SIZE // 25
