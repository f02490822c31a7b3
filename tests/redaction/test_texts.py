"""Secrets in texts: what is one, what is none, and the text without them."""

from __future__ import annotations

import json
import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from resume_hooks.redaction.texts import find, left_out, redact
from tests.redaction.planted import FORMS, WAYS, Form, private_key, some

RNG = random.Random(3)
GITHUB = "ghp_" + some(RNG, 36)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_every_form_is_found_in_every_way(form: Form, way: object) -> None:
    """However a secret is wrapped, nothing of it is left, and nothing is found in what is returned."""
    secret = form.make(RNG)
    text = way(form.words.format(secret))  # type: ignore[operator]
    clean, found = redact(text)
    assert found
    assert secret not in clean
    assert redact(clean) == (clean, [])


@pytest.mark.parametrize(
    "text",
    [
        "AKIAIOSFODNN7EXAMPLE",
        "export GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "export GITHUB_TOKEN=$GITHUB_PAT",
        'api_key = os.environ["API_KEY_1234567890"]',
        "password: ${{ secrets.DB_PASSWORD_2 }}",
        "API_KEY=<your-api-key-of-32-characters>",
        'password = getpass.getpass("Password: ")',
        "password: string;",
        "PASSWORD=changeme123",
        "self.password = make_password(user.password1)",
        "username, password = get_auth_from_url2(url)",
        "commit 5f3c9c1d2e4b6a7980c1d2e3f4a5b6c7d8e9f0a1",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        '"integrity": "sha512-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08=="',
        '"requestId": "req_011CSkYzZmrLKTfC5kKrttht", "uuid": "62e0bdc0-a1e4-4d5c-8509-3b9d0d57cc67"',
        "session token: 62e0bdc0-a1e4-4d5c-8509-3b9d0d57cc67",
        '"nextPageToken": "CAUQAA1b2c3d4e5f6g7h8i9j0"',
        "https://example.com/path?query=abc:def@ghi",
        "postgres://postgres:postgres@localhost:5432/app",
        "git@github.com:owner/repository.git",
        "max_tokens: 4096, input_tokens: 123456789012345678",
        "toolu_01AbCdEfGhIjKlMnOpQrStUv",
        "the password is required and must be 8 characters long",
        "[secret removed: 1password-service-account-token]",
        "password=[secret removed: password]",
        "eyJhbGciOiJIUzI1NiJ9",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEA\n-----END PUBLIC KEY-----",
        "-----BEGIN PRIVATE KEY-----\n...\n-----END PRIVATE KEY-----",
    ],
)
def test_what_only_looks_like_one(text: str) -> None:
    """Placeholders, examples, names, ids and hashes stay."""
    assert redact(text) == (text, [])


def test_a_torn_private_key_goes_as_far_as_it_reaches() -> None:
    """A result that was cut in the middle of a key holds no line of it."""
    key = private_key(RNG)[:600]
    clean, found = redact(f"before\n{key}")
    assert (clean, [secret.kind for secret in found]) == ("before\n[secret removed: private-key]", ["private-key"])


def test_places_are_characters() -> None:
    """Where other scripts stand before a secret, its place is still that in the text."""
    text = f"schlüssel — \U0001f511 {GITHUB}"
    (secret,) = find(text)
    assert text[secret.start : secret.end] == GITHUB


def test_lone_surrogates_survive() -> None:
    """Text that UTF-8 can't hold is read and returned as it was."""
    assert redact(f"\ud83d {GITHUB} \udc00") == ("\ud83d [secret removed: github-pat] \udc00", find(f"x {GITHUB}"))


def test_placeholders_are_counted() -> None:
    """A receipt says how many were left out."""
    clean, _ = redact(f"{GITHUB} and PASSWORD=Zx91kkqW22")
    assert left_out([clean, "nothing here"]) == 2


@given(st.text(max_size=60), st.text(max_size=60), st.sampled_from(FORMS), st.integers(0, 10_000))
@settings(max_examples=60, deadline=None)
def test_whatever_stands_around_it(before: str, after: str, form: Form, seed: int) -> None:
    """Lines around a secret stay as they are, and a second look finds nothing."""
    text = f"{before}\n\n{form.words.format(form.make(random.Random(seed)))}\n\n{after}"
    clean, found = redact(text)
    assert found
    assert redact(clean) == (clean, [])


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_text_comes_back(text: str) -> None:
    """No text breaks the scanner; without a secret it is the same text."""
    clean, found = redact(text)
    assert found or clean == text


@pytest.mark.parametrize(
    "unit",
    [
        "AKIA", "ghp_", "sk-ant-", "password=", "://a:b@", "-----BEGIN PRIVATE KEY-----\n", "\\u0041", "\\\\", '\\"',
        "eyJaaaaaaaaaaaaaaaaaaa.", "token=a1b2c3d4e5f6g7h8i9j0.", "A1b2/", ".a1b2c3d4e5f6g7h8", "secret_", "xoxb-1",
    ],
)  # fmt: skip
def test_hostile_text_takes_bounded_time(unit: str) -> None:
    """Time grows with the length of a text, whatever it repeats: 100 KB within two seconds of a slow core."""
    started = time.process_time()
    redact(json.dumps(unit * (100_000 // len(unit))))
    assert time.process_time() - started < 4
