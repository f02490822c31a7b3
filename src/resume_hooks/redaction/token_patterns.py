"""Secrets with a shape of their own: tokens by their keyword, private keys, what stands in addresses and headers."""

from __future__ import annotations

import re

from resume_hooks.redaction.false_positives import entropy, is_key, is_password, stands_for
from resume_hooks.redaction.prefilter_patterns import begin
from resume_hooks.redaction.rules import Rule, rules
from resume_hooks.redaction.spans import SHAPE, Span

LONGEST = 20_000
"""Bytes of the longest secret that is looked for, a private key."""

_BACK = 96
"""Bytes before its keyword in which a token may begin."""

_BEGIN = re.compile(rb"-----BEGIN (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
_END = re.compile(rb"-----END (?:[A-Z0-9]{1,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----", re.IGNORECASE)
_TORN = re.compile(rb"[A-Za-z0-9+/=\s\\:,.-]{0,16000}")
_BODY = re.compile(rb"[A-Za-z0-9+/]{24}")
_USERINFO = re.compile(rb"://[^\s:/?#\"'`@\\<>\[\]]{0,100}:([^\s/?#\"'`@\\<>]{3,200})@[\w.\[$-]")

_TAIL = re.compile(rb"(?:\.?[\w-]){0,300}")
"""What goes on directly after a token: a newer form of it is longer than the rule knows."""


def is_called(raw: bytes, lower: bytes, start: int, end: int) -> bool:
    """Whether a keyword of a token stands in a long run, or close before it."""
    return rules().keywords.search(lower, _from(raw, start), end) is not None


def tokens(raw: bytes, lower: bytes, start: int, end: int) -> list[Span]:
    """The tokens in a long run of letters and digits, or around it; ``lower`` is ``raw`` in lower case."""
    wanted: dict[Rule, tuple[int, int]] = {}
    for keyword in rules().keywords.finditer(lower, _from(raw, start), end):
        for rule in rules().by_keyword[keyword[0]]:
            wanted[rule] = (wanted.get(rule, (keyword.start(), 0))[0], keyword.start())
    found = []
    for rule, (first, last) in wanted.items():
        for match in rule.regex.finditer(raw, max(0, first - _BACK), last + rule.reach):
            if match.start() > last:
                break
            group = 1 if match.lastindex else 0
            if match.end() > first and _counts(rule, match[group]):
                tail = _TAIL.match(raw, match.end(group))
                end_ = tail.end() if tail else match.end(group)
                found.append(Span(rule.kind, match.start(group), end_, SHAPE))
    return found


def private_keys(raw: bytes, place: int) -> list[Span]:
    """The private key that begins at ``place``, up to its last line; a torn one as far as it looks like one."""
    begin = _BEGIN.match(raw, place)
    if not begin:
        return []
    following = raw.find(b"-----BEGIN", begin.end(), begin.end() + LONGEST)
    limit = following if following >= 0 else begin.end() + LONGEST
    end = _END.search(raw, begin.end(), limit)
    torn = _TORN.match(raw, begin.end(), limit)
    stop = end.end() if end else (torn.end() if torn else begin.end())
    body = raw[begin.end() : stop]
    if not _BODY.search(body) or len(set(body)) < 16:
        return []
    return [Span("private-key", place, stop, SHAPE)]


def userinfo(raw: bytes, place: int) -> list[Span]:
    """The password in an address whose ``://`` stands at ``place``."""
    found = _USERINFO.match(raw, place)
    if not found or not (is_password(found[1]) or (len(found[1]) >= 12 and is_key(found[1]))):
        return []
    return [Span("password-in-address", found.start(1), found.end(1), SHAPE)]


def _from(raw: bytes, start: int) -> int:
    """Where a keyword may begin; in the address of a hook it stands some parts before."""
    start = begin(raw, start)
    before = raw[start - 1 : start]
    far = before == b"=" or (before == b"/" and raw.rfind(b"hook", max(0, start - 64), start) >= 0)
    return max(0, start - (64 if far else 12))


def _counts(rule: Rule, value: bytes) -> bool:
    if stands_for(value) or entropy(value) < rule.entropy:
        return False
    return rule.allowed is None or not rule.allowed.search(value)
