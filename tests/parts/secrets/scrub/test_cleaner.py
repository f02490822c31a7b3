"""Tests of removing secrets from lines and texts.

Secrets are removed in every form, and all other bytes are unchanged.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resume_hooks.errors import UsageError
from resume_hooks.parts.secrets.cleaner import SecretCleaner
from resume_hooks.parts.secrets.literals import (
    KIND_OF_SUPPLIED_SECRETS,
    MAX_SECRET_INPUT_BYTES,
    KnownSecrets,
    is_distinctive_secret,
    is_searchable_token,
    iterate_secret_forms,
    parse_supplied_secrets,
    split_encoded_lines,
)
from resume_hooks.redaction.texts import redact
from tests.builders import assistant, line, user
from tests.needs import one_in
from tests.parts.secrets.scrub.planting import SECRETS, THINKING_BLOCK, make_secret
from tests.redaction.hostile import hostile_texts
from tests.redaction.test_hostile import MAX_CALLS_PER_BYTE, count_calls, make_record_with_text

FIRST_SECRET, SECOND_SECRET, _ = SECRETS
KNOWN_SECRET_CLEANER = SecretCleaner(
    known_secrets=KnownSecrets({FIRST_SECRET: "github-pat"}), scanning=False
)

UNCHANGED_LINES = {
    "no secret": line(user("hello", uuid="u")),
    "odd spaces": b'{ "type" : "x",  "n": 1e400 }  ',
    "blank": b"",
    "garbage": b"\xff\xfe no JSON",
    "torn": b'{"torn":"li',
    "raw separators": '{"t":"\u2028"}'.encode(),
    "thinking": line(assistant([{**THINKING_BLOCK, "thinking": "of nothing"}], uuid="a")),
}


@pytest.mark.parametrize("raw", UNCHANGED_LINES.values(), ids=UNCHANGED_LINES)
def test_a_file_without_secrets_keeps_its_bytes(raw: bytes) -> None:
    """A line or text without secrets keeps its bytes, whatever its encoding and line ending are."""
    for cleaner in (SecretCleaner(), KNOWN_SECRET_CLEANER):
        for ending in (b"", b"\n", b"\r\n"):
            assert cleaner.clean_record(raw + ending).cleaned_bytes == raw + ending
        assert cleaner.clean_text(raw).cleaned_bytes == raw


SECRET_FORMS = {
    "as it is": FIRST_SECRET,
    "within words": f"x{FIRST_SECRET}y",
    "JSON in JSON": json.dumps({"a": json.dumps({"b": FIRST_SECRET})}),
    "base64": base64.b64encode(f"user:{FIRST_SECRET}".encode()).decode(),
    "base64 of something around": base64.b64encode(f"ab{FIRST_SECRET}cdefg".encode()).decode(),
    "an address": f"https://x/?t={quote(FIRST_SECRET)}",
    "hex": FIRST_SECRET.encode().hex(),
    "cut short": f"{FIRST_SECRET[:30]}...",
}


@pytest.mark.parametrize("text", SECRET_FORMS.values(), ids=SECRET_FORMS)
def test_known_secrets_are_removed_in_every_form(text: str) -> None:
    """A known secret is removed from lines, keys, texts and incomplete lines, whatever its form."""
    for raw in (
        line(user(text, uuid="u")),
        json.dumps({"type": "x", "deep": [{text: 1}]}).encode(),
        b'{"torn": "' + json.dumps(text).encode(),
    ):
        cleaned = KNOWN_SECRET_CLEANER.clean_record(raw)
        assert cleaned.removed_secrets
        assert not cleaned.has_unremovable_secret
        assert b"[secret removed: github-pat]" in cleaned.cleaned_bytes
        assert FIRST_SECRET[4:24].encode() not in cleaned.cleaned_bytes
        assert (
            KNOWN_SECRET_CLEANER.clean_record(cleaned.cleaned_bytes).cleaned_bytes
            == cleaned.cleaned_bytes
        )
    assert KNOWN_SECRET_CLEANER.clean_text(text.encode()).cleaned_bytes != text.encode()


def test_a_secret_with_escaped_letters_is_removed() -> None:
    r"""A secret whose letters are escaped as ``\u...`` is removed."""
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in FIRST_SECRET)
    cleaned = KNOWN_SECRET_CLEANER.clean_record(
        f'{{"type":"x","t":"a {escaped} b","n":1.50}}'.encode()
    )
    assert cleaned.cleaned_bytes == b'{"type":"x","t":"a [secret removed: github-pat] b","n":1.50}'


def test_only_strings_with_a_secret_change() -> None:
    """Numbers, spaces and strings without a secret keep their bytes."""
    raw = (
        b'{"type" : "x", "big": 123456789012345678901234567890, "o": "\\u00e9", "t": "'
        + FIRST_SECRET.encode()
        + b'"}\r\n'
    )
    for cleaner in (SecretCleaner(), KNOWN_SECRET_CLEANER):
        assert cleaner.clean_record(raw).cleaned_bytes == raw.replace(
            FIRST_SECRET.encode(), b"[secret removed: github-pat]"
        )


def test_secrets_in_images_and_ids_are_only_reported() -> None:
    """A secret in an image or id is not removed but reported in ``has_unremovable_secret``."""
    data = base64.b64encode(b"\0" * 30 + FIRST_SECRET.encode() + b"\0" * 30).decode()
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}}
    raw = line(user([image], uuid="u"))
    assert KNOWN_SECRET_CLEANER.clean_record(raw) == (raw, (), True)


def test_thinking_with_a_secret_is_removed_completely() -> None:
    """Thinking with a secret is removed, because its signature is valid only for the original text."""
    told = {**THINKING_BLOCK, "thinking": f"use {FIRST_SECRET}"}
    kept = {**THINKING_BLOCK, "thinking": "of nothing"}
    record = assistant([told, kept, {"type": "text", "text": "yes"}], uuid="a")
    assert json.loads(SecretCleaner().clean_record(line(record)).cleaned_bytes)["message"][
        "content"
    ] == [
        kept,
        {"type": "text", "text": "yes"},
    ]


def test_only_secrets_of_requested_kinds_are_removed() -> None:
    """Only secrets of the requested kinds are removed."""
    raw = line(user(f"{FIRST_SECRET} here", uuid="u"))
    assert SecretCleaner(["aws-access-token"]).clean_record(raw).cleaned_bytes == raw
    assert SecretCleaner(["github-pat"]).clean_record(raw).cleaned_bytes != raw


def test_a_secret_of_several_lines_is_removed() -> None:
    """A private key over several lines is removed from its first to its last line."""
    body = "\n".join(
        base64.b64encode(bytes((n * 7 + m * 13) % 251 for m in range(48))).decode()
        for n in range(6)
    )
    key = f"-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----"
    cleaned = SecretCleaner().clean_text(f"before\n{key}\nafter\n".encode())
    assert cleaned.cleaned_bytes.startswith(b"before\n[secret removed: ")
    assert cleaned.cleaned_bytes.endswith(b"]\nafter\n")
    assert body.split("\n", maxsplit=1)[0].encode() not in cleaned.cleaned_bytes


def test_common_words_are_not_searched_as_secrets() -> None:
    """``is_distinctive_secret`` is false for common words, ids and placeholders.

    A secret that is a common word is removed only where a rule finds it.
    """
    told = [
        value
        for value in (
            "hunter2",
            "correcthorse",
            "toolu_01AbCdEf123456",
            make_secret(),
            "a1b2c3d4e5f6",
        )
        if is_distinctive_secret(value)
    ]
    assert told == [make_secret(), "a1b2c3d4e5f6"]
    assert not is_distinctive_secret("5e12a303-c989-4291-a42d-bc1eb620afea")
    assert not is_distinctive_secret("[secret removed: github-pat] 1")


@pytest.mark.parametrize(
    "named_secret",
    [
        b"",
        b"\n \n",
        b"short",
        b"long enough\nshort",
        b"\xff" * 9,
        b"x" * (MAX_SECRET_INPUT_BYTES + 1),
    ],
)
def test_an_invalid_secret_is_refused_without_printing_it(named_secret: bytes) -> None:
    """If a named secret is empty, short or too long, it is refused, and the error does not contain it."""
    with pytest.raises(UsageError) as refused:
        parse_supplied_secrets(named_secret)
    assert "long enough" not in f"{refused.value} {refused.value.remedy}"


def test_a_word_that_begins_with_a_shortened_secret_is_removed() -> None:
    """If a title has only the start of a secret, each word that begins with this start is removed.

    A secret that the user named is removed exactly as given, without the rest of the word.
    """
    key = "sk-ant-api03-" + "Ab3dE" * 18 + "xxAA"
    raw = line({"type": "ai-title", "aiTitle": f"kiwi token {key}"[:80] + "…"})
    (found,) = SecretCleaner().clean_record(raw).removed_secrets
    known = SecretCleaner(
        known_secrets=KnownSecrets(dict.fromkeys(found.values, found.kind)), scanning=False
    )
    assert key.startswith(found.values[0])
    assert (
        known.clean_record(f"see {key}, then".encode()).cleaned_bytes
        == b"see [secret removed: anthropic-api-key], then"
    )
    assert (
        known.clean_record(f"see {key[:50]}XY_1 then".encode()).cleaned_bytes
        == b"see [secret removed: anthropic-api-key] then"
    )
    given = SecretCleaner(
        known_secrets=KnownSecrets({"hunter": KIND_OF_SUPPLIED_SECRETS}), scanning=False
    )
    assert given.clean_record(b"the hunters").cleaned_bytes == b"the [secret removed: named]s", (
        "what was given is meant as it is"
    )


@given(st.text(min_size=6, max_size=60).filter(lambda text: text.strip() and "\0" not in text))
def test_any_secret_is_found_in_all_its_forms(text: str) -> None:
    """A secret with any characters is found and removed in each of its encoded forms."""
    known_secrets = KnownSecrets({text: "named"})
    for form in iterate_secret_forms(text):
        cleaned, kinds = known_secrets.replace_secrets(f"({form})")
        assert kinds
        assert form not in cleaned or form in "([secret removed: named])"


@given(st.binary(max_size=200), st.sampled_from(SECRETS))
def test_the_bytes_before_a_secret_stay_unchanged(bytes_before: bytes, secret: str) -> None:
    """The bytes before a removed secret are unchanged, whatever they are."""
    known = SecretCleaner(known_secrets=KnownSecrets(dict.fromkeys(SECRETS, "k")), scanning=False)
    body = bytes_before.replace(b"\n", b"").replace(b"\r", b"")
    cleaned = known.clean_record(b"#" + body + b" " + secret.encode() + b"\n")
    assert cleaned.cleaned_bytes == b"#" + body + b" [secret removed: k]\n"


def test_short_secrets_are_removed_only_as_whole_words() -> None:
    """A known short password is removed only where it is a whole word."""
    assert [
        is_searchable_token(value)
        for value in ("q7!Zk2pWx", "hunter2", "secret", "my-app", "a b 2 c", "a1b2")
    ] == [
        True,
        True,
        False,
        False,
        False,
        False,
    ]
    cleaner = SecretCleaner(
        known_secrets=KnownSecrets({}, {"q7!Zk2pWx": "password", "hunter2": "password"}),
        scanning=False,
    )
    cleaned = cleaner.clean_record(b'{"t":"use\\nq7!Zk2pWx now, hunter2.","o":"hunter22 xhunter2"}')
    told = b"[secret removed: password]"
    assert cleaned.cleaned_bytes == b'{"t":"use\\n%s now, %s.","o":"hunter22 xhunter2"}' % (
        told,
        told,
    )
    assert not cleaned.has_unremovable_secret
    assert cleaner.clean_record(cleaned.cleaned_bytes).cleaned_bytes == cleaned.cleaned_bytes
    assert cleaner.clean_text(b"hunter2").cleaned_bytes == told


def test_each_line_of_a_key_is_a_secret() -> None:
    """Each line of a private key except its markers is a secret of its own."""
    body = [f"{'MIIEowIBAAKCAQEAzZ3kQ9mW7x'}{n}" for n in range(3)]
    for between in ("\n", "\\n", "\\\\n"):
        key = between.join(
            ["-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----"]
        )
        assert list(split_encoded_lines(key)) == body
    assert list(split_encoded_lines(body[0])) == []


@pytest.mark.parametrize(
    "text", list(hostile_texts(4_000)), ids=lambda text: text[:16].encode("unicode_escape").decode()
)
def test_the_cost_of_any_text_is_limited(text: str) -> None:
    """Cleaning calls at most ``2 * MAX_CALLS_PER_BYTE + 1`` functions for each byte of a text."""
    dirty = make_record_with_text(f"password: Hx7kQ2mZp9Lr4Tw8 {text}")
    assert count_calls(lambda: SecretCleaner().clean_record(dirty)) <= (
        2 * MAX_CALLS_PER_BYTE + 1
    ) * len(dirty)


def test_blank_lines_are_cleaned_quickly() -> None:
    """Cleaning a blank line calls at most eight functions."""
    cleaner = SecretCleaner()
    assert count_calls(lambda: cleaner.clean_record(b"\r\n")) <= 8


REPEATED_TEXT_CHARACTERS = 350_000
PASSWORD = 'password: "Hx7kQ2mZp9Lr4Tw8" '

REPEATED_TEXTS = [
    '{"a":"b"} ', '"', '\\"', '"\\"', 'Z"', "eyJY0mN2zapBW6tgd. ", "é password: Hx7kQ2mZp9Lr4Tw8 ", "-u",
    "cookie: sid=a;", "AccountKey=0R2Jp9RRv6IOIHTKddDs3wMITFUD6SJqt8J/g8z ", "-----begin private key-----\n",
    "-----END PRIVATE KEY-----\n", "private-lines: 2",
]  # fmt: skip
"""Texts that once took quadratic time, or would take it if the search were slightly different."""

WIDE_RUN_REPEATED_TEXTS = [
    '{"a":', "[[", "\\\\", "\\u0041", "AKIA", "ghp_", "sk-ant-", "secret_", "xoxb-1", "eyJaaaaaaaaaaaaaaaaaaa.",
    "ZXlK+",
    "A1b2/", ".a1b2c3d4e5f6g7h8", "token=a1b2c3d4e5f6g7h8i9j0.", "password=", "password: Hx7kQ2mZp9Lr4Tw8\n", "://a:b@",
    "://a:Hx7kQ2mZp9@b ", " -p", "@", "cookie:", "login a password ", "<secret>", "$2b$", "$", "MIIEpAIBAAKCAQEA\n",
    "net use \\\\a ", "-----BEGIN PRIVATE KEY-----\n", "\x1b[", "\x1b]8;;", "\x1b[1ma",
]  # fmt: skip
WIDE_REPEATED_TEXTS = [
    pytest.param(text, marks=pytest.mark.wide) for text in WIDE_RUN_REPEATED_TEXTS
]

CLEANERS_BY_NAME: dict[str, Callable[[str], object]] = {
    "text": redact,
    "scrubbed text": lambda text: SecretCleaner().clean_text(f"{PASSWORD}{text}".encode()),
    "scrubbed line": lambda text: SecretCleaner().clean_record(
        json.dumps({"message": {"content": PASSWORD + text}}).encode()
    ),
    "torn line": lambda text: SecretCleaner().clean_record(
        f'{{"content":"{PASSWORD}{text}}}'.encode()
    ),
    "key": lambda text: SecretCleaner().clean_record(
        json.dumps({PASSWORD + text: [PASSWORD] * 9}).encode()
    ),
}


@pytest.mark.parametrize("repeated_text", [*one_in(3, REPEATED_TEXTS), *WIDE_REPEATED_TEXTS])
def test_a_line_of_repeated_text_is_cleaned_quickly(repeated_text: str) -> None:
    """A line of 350 KB with a repeated text is cleaned within the test's time limit."""
    CLEANERS_BY_NAME["scrubbed line"](
        repeated_text * (REPEATED_TEXT_CHARACTERS // len(repeated_text))
    )


@pytest.mark.parametrize(
    "cleaner_name",
    [cleaner_name for cleaner_name in CLEANERS_BY_NAME if cleaner_name != "scrubbed line"],
)
@pytest.mark.parametrize("repeated_text", [*REPEATED_TEXTS[:3], *WIDE_REPEATED_TEXTS])
def test_repeated_text_in_other_places_is_cleaned_quickly(
    repeated_text: str, cleaner_name: str
) -> None:
    """A repeated phrase in a text, a partial line or a JSON key is cleaned within the time limit."""
    CLEANERS_BY_NAME[cleaner_name](repeated_text * (REPEATED_TEXT_CHARACTERS // len(repeated_text)))


def test_many_known_secrets_are_removed_quickly() -> None:
    """Thousands of known secrets are removed within the test's time limit."""
    secrets = {
        f"{number * 7919 % 100_003:05d}-Hx7kQ2mZp9": "password"
        for number in range(REPEATED_TEXT_CHARACTERS // 50)
    }
    cleaner = SecretCleaner(known_secrets=KnownSecrets(secrets), scanning=False)
    text = "\n".join(f"it is {secret} today" for secret in secrets)
    assert len(cleaner.clean_text(text.encode()).removed_secrets) == len(secrets)


def test_many_shortened_secrets_are_removed_quickly() -> None:
    """A cut secret that is repeated thousands of times is removed within the test's time limit."""
    secret = "Hx7kQ2mZp9Lr4Tw8Vb3nYc6dEs5gAu1j"
    cleaner = SecretCleaner(known_secrets=KnownSecrets({secret: "password"}), scanning=False)
    assert (
        len(
            cleaner.clean_text(
                f"{secret[:24]} ".encode() * (REPEATED_TEXT_CHARACTERS // 25)
            ).removed_secrets
        )
        == REPEATED_TEXT_CHARACTERS // 25
    )
