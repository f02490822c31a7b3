"""The export's redaction: secrets, home folders, very long texts."""

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
from tests.parts.share.export.conftest import GITHUB

HOME = {"HOME": "/home/ann"}


def make_redactor(limit: int = 0, *, redact: bool = True) -> ExportRedactor:
    """Return the redactor of a document."""
    return ExportRedactor(
        Where(HOME),
        ["/Users/bob/src", r"C:\Users\cy\src"],
        Redactor() if redact else None,
        max_characters=limit,
    )


@pytest.mark.parametrize(
    ("text", "shown"),
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
def test_home_folders(text: str, shown: str) -> None:
    """This user's, those that the sessions are in, and everybody else's."""
    assert make_redactor().redact_and_cut_text(text) == shown
    assert make_redactor(redact=False).redact_and_cut_text(text) == text


def test_secrets_are_counted_where_they_are_reported() -> None:
    """Titles and words that stand elsewhere, too, lose their secrets but are not counted."""
    found = make_redactor()
    assert GITHUB not in found.redact_and_cut_text(f"token {GITHUB} here")
    assert sum(found.removed_secrets.values()) == 1
    assert GITHUB not in found.redact_line(f"token {GITHUB} here")
    assert sum(found.removed_secrets.values()) == 1
    assert GITHUB in make_redactor(redact=False).redact_and_cut_text(f"token {GITHUB} here")


def test_every_text_in_a_block() -> None:
    """Keys and values, however deep, and a word that is a secret by its key."""
    found = make_redactor()
    deep: object = f"token {GITHUB}"
    for _ in range(MAX_NESTING_DEPTH * 10):
        deep = {"x": [deep]}
    shown = found.redact_block(
        {"input": {GITHUB: 1, "list": [f"x {GITHUB}"], "password": "hunter2Kx9vQ7", "deep": deep}}
    )
    assert GITHUB not in repr(shown)
    assert "hunter2Kx9vQ7" not in repr(shown)


def test_an_image_stays_unchanged() -> None:
    """Base64 is not a text."""
    source = {"type": "base64", "media_type": "image/png", "data": "A" * 300_000}
    assert make_redactor(10).redact_block({"source": source}) == {"source": source}


def test_a_long_text_is_cut_with_a_notice() -> None:
    """What is shown and what is mentioned the rest are the whole."""
    found = make_redactor(10)
    assert found.redact_and_cut_text("0123456789") == "0123456789"
    assert found.redact_and_cut_text("0123456789abc") == "0123456789\n[cut: 3 characters more]"
    assert found.cut_text_count == 1


@pytest.mark.parametrize(
    "before", [*range(0, 50, 7), 45, LOOKAHEAD_CHARACTERS, LOOKAHEAD_CHARACTERS + 20]
)
def test_no_half_of_a_secret_stays_before_a_cut(before: int) -> None:
    """Wherever it lies, the cut or the end of what is read among them."""
    text = "x " * (before // 2) + f"{GITHUB} " + "y " * LOOKAHEAD_CHARACTERS
    shown = make_redactor(50).redact_and_cut_text(text)
    assert not any(GITHUB[:length] in shown for length in range(12, len(GITHUB)))


def test_many_secrets_before_a_cut() -> None:
    """Placeholders that are shorter than what they stand for draw nothing near that was not looked through."""
    signs = string.ascii_letters + string.digits
    body = "\n".join("MIIE" + "".join(random.Random(row).choices(signs, k=60)) for row in range(25))
    key = f"-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"
    text = key * 20 + f" {GITHUB} " * 3_000
    for limit in (1_000, 20_000, 30_000):
        shown = make_redactor(limit).redact_and_cut_text(text)
        assert GITHUB[:12] not in shown
        assert "MIIE" not in shown


def test_half_a_secret_at_the_end_of_a_title() -> None:
    """A title, or the words of a turn, may be cut within one: its last word goes."""
    assert make_redactor().redact_line(f"Use the token {GITHUB[:20]}…") == "Use the token …"
    assert make_redactor().redact_line("Use the token …") == "Use the token …"
    assert make_redactor(redact=False).redact_line("Use the tok…") == "Use the tok…"
