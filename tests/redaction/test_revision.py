"""What our own code finds has a number, and who changes the one changes the other."""

from __future__ import annotations

import ast
import hashlib
import io
import tokenize
from pathlib import Path

from resume_hooks.redaction.load_rules import FILE, REVISION

RECORD = Path(__file__).with_name("revisions.txt")


def code(text: str) -> str:
    """A module's text without comments, docstrings and layout, which find nothing."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "".join("".join(lines).split())


def digest() -> str:
    """A digest of all that says what a secret is."""
    sources = sorted(Path(FILE).parent.glob("*.py"))
    found = hashlib.sha256(Path(FILE).read_bytes())
    for source in sources:
        text = source.read_text(encoding="utf-8").replace(f"REVISION = {REVISION}", "")
        found.update(f"{source.name} {code(text)}".encode())
    return found.hexdigest()[:16]


def test_a_changed_rule_has_a_new_number() -> None:
    """Else ``audit`` would not look again at what it looked at with the old rules."""
    rows = [row.split() for row in RECORD.read_text(encoding="ascii").splitlines()]
    numbers = [int(number) for number, _ in rows]
    assert numbers == sorted(set(numbers)), "each revision has one digest"
    assert rows[-1] == [str(REVISION), digest()], "a rule changed: raise REVISION in load_rules and add a row here"


def test_words_about_the_code_are_no_rule() -> None:
    """Comments and docstrings may change."""
    assert code('"""A."""\nA = 1  # b\n') == code('"""Other\nwords."""\n\nA = 1\n') != code('"""A."""\nA = 2\n')
