"""Tests of redaction in an export: secrets, home folders and very long texts."""

from __future__ import annotations

import random
import string

import pytest

from resume_hooks.parts.share.export.redact import (
    LOOKAHEAD_CHARACTERS,
    MAX_NESTING_DEPTH,
    ExportRedactor,
)
from resume_hooks.paths import Where
from resume_hooks.redaction.known_secrets import Redactor
from tests.parts.share.export.conftest import GITHUB_TOKEN

HOME_ENVIRONMENT = {"HOME": "/home/ann"}


def make_redactor(max_characters: int = 0, *, redact: bool = True) -> ExportRedactor:
    """Return the redactor of a document."""
    return ExportRedactor(
        Where(HOME_ENVIRONMENT),
        ["/Users/bob/src", r"C:\Users\cy\src"],
        Redactor() if redact else None,
        max_characters=max_characters,
    )


@pytest.mark.parametrize(
    ("text", "expected_text"),
    [
        ("/home/ann/src/a.py", "~/src/a.py"),
        ("cd /home/ann", "cd ~"),
        ("/home/anna/src", "~/src"),
        (
            "file:///home/anna.b. And https://x.test/home/page",
            "file://~. And https://x.test/home/page",
        ),
        (r'{"content":"see\n/home/anna/src"}', r'{"content":"see\n~/src"}'),
        ("/srv/home/ann.txt", "/srv/home/ann.txt"),
        ("/Users/bob/src and /Users/bobby", "~/src and ~"),
        (r"C:\Users\cy\src", r"~\src"),
        (r"C:\\Users\\cy\\src", r"~\\src"),
        ("~/.claude/projects/-home-ann-src/x", "~/.claude/projects/-~-src/x"),
        ("~/.claude/projects/-Users-the-other-src/x", "~/.claude/projects/-~/x"),
        ("grep -home-ann", "grep -home-ann"),
    ],
)
def test_home_folders_are_redacted(text: str, expected_text: str) -> None:
    """All home folders become "~": the user's own, those of the sessions, and others."""
    assert make_redactor().redact_and_cut_text(text) == expected_text
    assert make_redactor(redact=False).redact_and_cut_text(text) == text


def test_each_secret_is_counted_once() -> None:
    """A secret that is in a text and also in a title is removed from both but counted once."""
    found = make_redactor()
    assert GITHUB_TOKEN not in found.redact_and_cut_text(f"token {GITHUB_TOKEN} here")
    assert sum(found.removed_secret_counts.values()) == 1
    assert GITHUB_TOKEN not in found.redact_line(f"token {GITHUB_TOKEN} here")
    assert sum(found.removed_secret_counts.values()) == 1
    assert GITHUB_TOKEN in make_redactor(redact=False).redact_and_cut_text(
        f"token {GITHUB_TOKEN} here"
    )


def test_every_text_in_a_block_is_redacted() -> None:
    """Secrets are removed from keys and values at any depth.

    A value whose key is "password" is removed, too.
    """
    found = make_redactor()
    deep: object = f"token {GITHUB_TOKEN}"
    for _ in range(MAX_NESTING_DEPTH * 10):
        deep = {"x": [deep]}
    shown = found.redact_block(
        {
            "input": {
                GITHUB_TOKEN: 1,
                "list": [f"x {GITHUB_TOKEN}"],
                "password": "hunter2Kx9vQ7",
                "deep": deep,
            }
        }
    )
    assert GITHUB_TOKEN not in repr(shown)
    assert "hunter2Kx9vQ7" not in repr(shown)


def test_an_image_stays_unchanged() -> None:
    """The base64 data of an image is not redacted."""
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 300_000}
    assert make_redactor(10).redact_block({"source": source}) == {"source": source}


def test_a_long_text_is_shortened_with_a_notice() -> None:
    """A long text is cut, and a notice states the number of missing characters."""
    found = make_redactor(10)
    assert found.redact_and_cut_text("0123456789") == "0123456789"
    assert found.redact_and_cut_text("0123456789abc") == "0123456789\n[cut: 3 more characters]"
    assert found.shortened_text_count == 1


@pytest.mark.parametrize(
    "secret_start", [*range(0, 50, 7), 45, LOOKAHEAD_CHARACTERS, LOOKAHEAD_CHARACTERS + 20]
)
def test_no_part_of_a_secret_remains_before_a_cut(secret_start: int) -> None:
    """Wherever a text is cut, the shown part contains no part of a secret."""
    text = "x " * (secret_start // 2) + f"{GITHUB_TOKEN} " + "y " * LOOKAHEAD_CHARACTERS
    shown = make_redactor(50).redact_and_cut_text(text)
    assert not any(GITHUB_TOKEN[:length] in shown for length in range(12, len(GITHUB_TOKEN)))


def test_short_placeholders_do_not_extend_the_shown_text() -> None:
    """A text whose secrets became short placeholders is cut no later than a text without secrets.

    Text that was not searched for secrets is therefore never shown.
    """
    signs = string.ascii_letters + string.digits
    body = "\n".join("MIIE" + "".join(random.Random(row).choices(signs, k=60)) for row in range(25))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"
    text = key * 20 + f" {GITHUB_TOKEN} " * 3_000
    for limit in (1_000, 20_000, 30_000):
        shown = make_redactor(limit).redact_and_cut_text(text)
        assert GITHUB_TOKEN[:12] not in shown
        assert "MIIE" not in shown


def test_a_cut_title_loses_its_last_word() -> None:
    """A title that was cut loses its last word, which may be a part of a secret."""
    assert make_redactor().redact_line(f"Use the token {GITHUB_TOKEN[:20]}…") == "Use the token …"
    assert make_redactor().redact_line("Use the token …") == "Use the token …"
    assert make_redactor(redact=False).redact_line("Use the tok…") == "Use the tok…"
