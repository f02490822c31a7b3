"""Load the rules for tokens when they are first used.

Each expression is compiled when its keyword first occurs in a text.
"""

from __future__ import annotations

import json
import os
import re
from functools import cache, cached_property
from typing import Any

from resume_hooks.redaction.extra_token_rules import TOKEN_RULES
from resume_hooks.redaction.lazy_patterns import compile_lazily

REVISION = 45
"""The revision of the rules in this package.

Increase it with every change to the rules, so that files are searched again.
"""

RULES_FILE = os.path.join(os.path.dirname(__file__), "rules.json")


_LOOKAHEAD_BY_KEYWORD = {
    b"sk": rb"(?=[0-9a-f]{32})",
    b"sk-": rb"(?=[a-z0-9]{32})",
    b"pat": rb"(?=[a-z0-9]{14}\.)",
    b"-us": rb"(?=\d)",
    b"api-": rb"(?=[a-z0-9]{26})",
    b"eaaa": rb"(?=[\w-]{22})",
    **dict.fromkeys((b"akia", b"asia", b"abia", b"acca", b"akcp"), rb"(?=[a-z0-9]{16})"),
    b"a3t": rb"(?=[a-z0-9]{17})",
    b"key-": rb"(?=[a-f0-9]{32})",
    b"hf_": rb"(?=[a-z0-9]{34})",
    b"ltai": rb"(?=[a-z0-9]{20})",
    b"fm1": rb"(?=[ar]_)",
    b"eaam": rb"(?=[a-z0-9]{90})",
    b"eaac": rb"(?=[a-z0-9]{90})",
    b"ext_": rb"(?=[a-z0-9]{5,30}\.)",
    b"sc_": rb"(?=[a-z0-9]{5,30}\.)",
    b"xapp": rb"(?=-\d)",
    b"migh": rb"(?=[a-z0-9+/]{4}mbmgbyqgsm49)",
    **dict.fromkeys(
        (b"mt", b"mj", b"mz", b"nd", b"nt", b"nj", b"nz", b"od", b"ot"),
        rb"(?=[\w-]{21,26}\.[\w-]{6}\.)",
    ),
}
"""Maps a keyword that is common in names or in base64 to a look-ahead expression for the text that
follows the keyword in a token."""


_REPEAT_COUNT_PATTERN = re.compile(r"[{,](\d+)\}")
MAX_MATCH_BYTES = 13_000


class Rule:
    """A rule for one kind of secret.

    ``min_entropy`` is the minimum entropy of a match in bits per byte, ``pattern`` matches the
    secret, and ``exception_pattern`` matches exceptions.
    """

    def __init__(self, data: dict[str, Any], expression: str) -> None:
        self.kind: str = data["kind"]
        self.min_entropy: float = data["entropy"]
        self.expression = expression
        self.pattern = compile_lazily(expression.encode())
        """The expression for secrets of this kind. If it has a group, the first group is the secret
        itself."""
        exceptions = "|".join(f"(?:{text})" for text in data.get("allowed", []))
        self.exception_pattern = compile_lazily(exceptions.encode()) if exceptions else None
        """The exceptions that the original authors of the rule defined, or None."""

    @cached_property
    def max_match_bytes(self) -> int:
        """The approximate maximum number of bytes in a match, counted from a keyword.

        It is computed from the repeat counts in the expression.
        """
        return min(
            MAX_MATCH_BYTES,
            300 + 3 * max(map(int, _REPEAT_COUNT_PATTERN.findall(self.expression)), default=0),
        )


class Rules:
    """All rules for tokens. ``rules_by_keyword`` maps keywords that occur in tokens to rules.

    ``rules_by_vendor_name`` maps the names of vendors to rules for values that are assigned to
    these names.
    """

    def __init__(self, data: dict[str, Any]) -> None:
        self.version = f"{REVISION}/{data['origin']['version']}"
        self.rules_by_keyword: dict[bytes, list[Rule]] = {}
        for entry in [*data["tokens"], *TOKEN_RULES]:
            rule = Rule(entry, entry["regex"])
            for keyword in entry["keywords"]:
                self.rules_by_keyword.setdefault(keyword.encode(), []).append(rule)
        self.rules_by_vendor_name: dict[str, list[Rule]] = {}
        for entry in data["assigned"]:
            self.rules_by_vendor_name.setdefault(entry["words"], []).append(
                Rule(entry, entry["value"])
            )

    @cached_property
    def vendor_rules(self) -> list[list[Rule]]:
        """The rules for each vendor name, in the order of ``rules_by_vendor_name``."""
        return list(self.rules_by_vendor_name.values())

    @cached_property
    def keyword_pattern(self) -> re.Pattern[bytes]:
        """An expression that matches any keyword.

        It branches at each letter of the keywords, so that it quickly skips bytes that begin no
        keyword.
        """
        words = {word: _LOOKAHEAD_BY_KEYWORD.get(word, b"") for word in self.rules_by_keyword}
        return re.compile(build_branching_expression(words))

    @cached_property
    def name_pattern(self) -> re.Pattern[bytes]:
        """An expression that matches any vendor name. Each name is a group.

        The groups have the order of ``rules_by_vendor_name``.
        """
        return re.compile("|".join(f"({words})" for words in self.rules_by_vendor_name).encode())


def build_branching_expression(words: dict[bytes, bytes], depth: int = 0) -> bytes:
    """Return an expression that matches any of ``words``, each followed by the text to which it is mapped.

    The expression branches at each letter. ``depth`` is the number of letters that are already
    matched.
    """
    followers: list[bytes] = []
    words_by_letter: dict[bytes, dict[bytes, bytes]] = {}
    for word, follower in words.items():
        if len(word) == depth:
            followers.append(follower)
        else:
            words_by_letter.setdefault(word[depth : depth + 1], {})[word] = follower
    branches = [
        re.escape(letter) + build_branching_expression(group, depth + 1)
        for letter, group in words_by_letter.items()
    ]
    alternatives = [*branches, *followers]
    if len(alternatives) == 1:
        return alternatives[0]
    return b"(?:" + b"|".join(alternatives) + b")"


@cache
def token_rules() -> Rules:
    """Return the rules of this version. They are loaded only once."""
    with open(RULES_FILE, encoding="utf-8") as stream:
        return Rules(json.load(stream))
