"""Examples of every rule, which are generated from the rules themselves."""

from __future__ import annotations

import importlib
import random
import re
import string
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from resume_hooks.redaction.load_rules import Rule, token_rules
from resume_hooks.redaction.texts import redact
from tests.redaction.placed_forms import PLACED_FORMS
from tests.redaction.planted import FORMS

re_parser: Any = importlib.import_module("re._parser")
re_constants: Any = importlib.import_module("re._constants")

TRIED_CHARACTERS = string.ascii_letters + string.digits + "_-./+=:;,@~%!&?#' "
MAX_MATCH_TRIES = 400


class Example(NamedTuple):
    """A text that ends with a secret.

    ``allows_any_letter`` is true if the secret may have letters other than ASCII.
    """

    name: str
    text: str
    allows_any_letter: bool


@cache
def examples() -> tuple[Example, ...]:
    """Return at least one example of each rule in ``rules.json`` and of each form of secret."""
    return tuple(_list_examples())


def _list_examples() -> Iterator[Example]:
    for group in token_rules().rules_by_keyword.values():
        yield from (
            Example(rule.kind, _matching_text(rule, "{}"), allows_any_letter=False)
            for rule in group
        )
    for words, group in token_rules().rules_by_vendor_name.items():
        name = _random_match(words, random.Random(words))
        yield from (
            Example(rule.kind, _matching_text(rule, name + "_token={}"), allows_any_letter=False)
            for rule in group
        )
    for form in [*FORMS, *PLACED_FORMS]:
        secret = form.make_secret(random.Random(form.name))
        torn = form.template.partition("{}")[0].replace("{{", "{").rstrip("\"'") + secret
        for text in (form.template.format(secret), torn):
            if redact(text)[1]:
                yield Example(form.name, text, allows_any_letter=True)


def _matching_text(rule: Rule, template: str) -> str:
    """Return a text with a secret that the rule finds and that is not a placeholder."""
    for seed in range(MAX_MATCH_TRIES):
        text = template.format(_random_match(rule.expression, random.Random(f"{rule.kind} {seed}")))
        if redact(text)[1]:
            return text
    raise AssertionError(f"no example of {rule.kind}")


def _random_match(pattern: str, rng: random.Random) -> str:
    """Return a random text that matches ``pattern``. Lookarounds in the pattern are ignored."""
    return "".join(_draw_text_pieces(re_parser.parse(pattern), rng))


def _draw_text_pieces(tree: Any, rng: random.Random) -> Iterator[str]:
    for operation, value in tree:
        if operation is re_constants.LITERAL:
            yield chr(value)
        elif operation is re_constants.ANY:
            yield "."
        elif operation is re_constants.IN:
            yield rng.choice(
                _list_allowed_letters("".join(_text_of_class_member(*member) for member in value))
            )
        elif operation is re_constants.SUBPATTERN:
            yield from _draw_text_pieces(value[3], rng)
        elif operation is re_constants.BRANCH:
            yield from _draw_text_pieces(rng.choice(value[1]), rng)
        elif operation in {
            re_constants.MAX_REPEAT,
            re_constants.MIN_REPEAT,
            re_constants.POSSESSIVE_REPEAT,
        }:
            least, most, inner = value
            for _ in range(rng.randint(least, min(most, least + 40))):
                yield from _draw_text_pieces(inner, rng)


@cache
def _list_allowed_letters(members: str) -> list[str]:
    allowed = re.compile(f"[{members}]")
    return [sign for sign in TRIED_CHARACTERS if allowed.match(sign)]


def _text_of_class_member(operation: Any, value: Any) -> str:
    if operation is re_constants.NEGATE:
        return "^"
    if operation is re_constants.RANGE:
        return f"\\x{value[0]:02x}-\\x{value[1]:02x}"
    if operation is re_constants.CATEGORY:
        return {
            re_constants.CATEGORY_WORD: r"\w",
            re_constants.CATEGORY_DIGIT: r"\d",
            re_constants.CATEGORY_SPACE: r"\s",
        }.get(value, r"\S")
    return f"\\x{value:02x}"
