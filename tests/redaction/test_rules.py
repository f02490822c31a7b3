"""Tests of the rules: they are complete, have a known origin, and are fast for any text.

A change of a rule needs a new revision.
"""

from __future__ import annotations

import ast
import hashlib
import io
import json
import re
import tokenize
from collections.abc import Iterator
from importlib import import_module
from itertools import product
from pathlib import Path

import pytest

from resume_hooks.redaction.extra_token_rules import TOKEN_RULES
from resume_hooks.redaction.lazy_patterns import _LazyPattern
from resume_hooks.redaction.load_rules import MAX_MATCH_BYTES, REVISION, RULES_FILE, token_rules

ALL_RULES = list(
    {
        id(rule): rule
        for group in (
            *token_rules().rules_by_keyword.values(),
            *token_rules().rules_by_vendor_name.values(),
        )
        for rule in group
    }.values()
)
MODULE_FILES = sorted(Path(RULES_FILE).parent.glob("[!_]*.py"))
HOSTILE_BYTE_TEXTS = [
    b"a" * MAX_MATCH_BYTES,
    b"a." * 6_000,
    b"A1-" * 4_000,
    b"1" * MAX_MATCH_BYTES,
    b"-1" * 6_000,
    b"_a1" * 4_000,
    b" " * MAX_MATCH_BYTES,
]


def test_the_data_names_its_origin_and_licence() -> None:
    """``rules.json`` names the version and the licence of the rules that were copied from another project."""
    with open(RULES_FILE, encoding="utf-8") as stream:
        data = json.load(stream)
    assert data["origin"]["licence"].startswith("MIT License")
    assert data["origin"]["version"] == "8.30.1"
    assert len(data["origin"]["sha256"]) == 64
    assert len(data["tokens"]) > 90
    assert len(data["assigned"]) > 70


@pytest.mark.parametrize("share_index", range(4))
def test_no_rule_backtracks_without_limit(share_index: int) -> None:
    """Each rule searches the longest hostile texts within the test's time limit."""
    for rule in ALL_RULES[share_index::4]:
        keywords = [
            word for word, group in token_rules().rules_by_keyword.items() if rule in group
        ] or [b""]
        for tail, keyword in product(HOSTILE_BYTE_TEXTS, keywords):
            for raw in (
                keyword + tail,
                keyword.upper() + tail,
                keyword * (6_000 // max(1, len(keyword))),
            ):
                for _ in rule.pattern.finditer(raw, 0, MAX_MATCH_BYTES):
                    pass


def values_that_almost_match() -> Iterator[str]:
    """Yield values of about 60 characters. Each consists of a beginning, a repeated form and an end."""
    beginnings = ("", "Aa", "a", "A1", "_", "http://")
    forms = ("A", "a", "1", "A1", "a1", "Aa", "AAa1", "a.", "a-", "a_", "a:", "1.", "1:", "a=b,")
    ends = ("", "!", "1", "A", "A1!")
    for beginning, form, end in product(beginnings, forms, ends):
        yield beginning + form * (60 // len(form)) + end


@pytest.mark.parametrize("module_file", MODULE_FILES, ids=lambda file: file.stem)
def test_no_pattern_takes_exponential_time(module_file: Path) -> None:
    """Within the test's time limit, each pattern searches values that almost match it.

    A pattern with exponential time would need years.
    """
    module = import_module(f"resume_hooks.redaction.{module_file.stem}")
    for pattern in vars(module).values():
        if not isinstance(pattern, (re.Pattern, _LazyPattern)):
            continue
        is_of_bytes = isinstance(pattern.pattern, bytes)
        for value in values_that_almost_match():
            text = value.encode() if is_of_bytes else value
            pattern.fullmatch(text)
            pattern.search(text)


def test_keywords_are_lower_case() -> None:
    """The keywords of rules are lower-case, because they are searched for in a lower-case text."""
    assert not [word for data in TOKEN_RULES for word in data["keywords"] if word != word.lower()]


def test_the_kind_of_a_rule_fits_into_a_placeholder() -> None:
    """The kind of a rule has only characters that a placeholder may contain."""
    assert all(rule.kind.replace("-", "").isalnum() and len(rule.kind) <= 60 for rule in ALL_RULES)


REVISIONS_FILE = Path(__file__).with_name("revisions.txt")


def code_without_comments(text: str) -> str:
    """Return the code of a module without comments, docstrings and white space."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            lines[token.start[0] - 1] = lines[token.start[0] - 1][: token.start[1]]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            end = node.end_lineno or node.lineno
            lines[node.lineno - 1 : end] = [""] * (end - node.lineno + 1)
    return "".join("".join(lines).split())


def digest_of_rules() -> str:
    """Return a digest of all code and data that define what a secret is."""
    sources = sorted(Path(RULES_FILE).parent.glob("*.py"))
    found = hashlib.sha256(Path(RULES_FILE).read_bytes())
    for source in sources:
        text = source.read_text(encoding="utf-8").replace(f"REVISION = {REVISION}", "")
        found.update(f"{source.name} {code_without_comments(text)}".encode())
    return found.hexdigest()[:16]


def test_a_changed_rule_needs_a_new_revision() -> None:
    """A change of a rule needs a new revision, so that ``audit`` reads all files again."""
    rows = [row.split() for row in REVISIONS_FILE.read_text(encoding="ascii").splitlines()]
    numbers = [int(number) for number, _ in rows]
    assert numbers == sorted(set(numbers)), "each revision has one digest"
    assert rows[-1] == [str(REVISION), digest_of_rules()], (
        "a rule changed: raise REVISION in load_rules and add a row here"
    )


def test_comments_and_docstrings_do_not_change_the_digest() -> None:
    """Comments and docstrings do not change the digest of the code."""
    assert (
        code_without_comments('"""A."""\nA = 1  # b\n')
        == code_without_comments('"""Other\nwords."""\n\nA = 1\n')
        != code_without_comments('"""A."""\nA = 2\n')
    )
