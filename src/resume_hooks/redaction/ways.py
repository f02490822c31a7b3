"""The notations that assign a value to the name before it: assignments, fields, calls, options, elements."""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import late

NOT_A_GRAMMAR_WORD = (
    rb"(?!(?i:a|all|also|an|and|any|are|as|at|be|by|can|for|from|has|if|in|into|is|it|its|must|nor|not|of|on|or"
    rb"|so|than|that|the|then|this|to|using|via|was|when|will|with|without|you|your)(?![\w.@-]))"
)
"""Conjunctions and similar words of a sentence, which are never the name of a user or a host."""

QUOTED = rb"(?P<quote>\\{0,3}[\"'`])(?P<quoted>[^\"'`\r\n\\]{6,200})(?P=quote)"
LETTER = rb"[\xc3-\xdf][\x80-\xbf]|\xe1[\xb8-\xbb][\x80-\xbf]"
"""A whole letter or accent beyond ASCII.

Dashes, arrows and pictures do not match, because they are not part of a value.
"""


def any_except(signs: bytes) -> bytes:
    """Return an expression for a value's characters: all except white space and these signs, or non-ASCII letters."""
    return rb"(?:[^\s\x7f-\xff" + re.escape(signs) + rb"]|" + LETTER + rb")"


_BARE = rb"(?P<bare>" + any_except(b"\"'`,;<>(){}|\\") + rb"{6,200}+)"
VALUE = rb"(?:" + QUOTED + rb"|(?:\xe2\x80[\x98-\x9f])?" + _BARE + rb"(?![(]))"
_STRING = rb"(?:[bBrRuULfF@$]{1,2}(?=[\"'`]))?"
"""The prefixes of strings in programming languages."""

GAP = rb"(?:\s|\d{1,6}\xe2\x86\x92)"
"""White space, or a line number in the output of the client's tools."""

_INDENT = rb"\s{0,6}(?:\d{1,6}\xe2\x86\x92)?[ \t]{1,20}"
_TYPE = rb"(?::[ \t]{0,3}[&A-Za-z][\w.<>&' ]{0,20}[ \t]{0,10}(?==))?"
_SIGN = (
    rb"[ \t]{0,30}"
    + _TYPE
    + rb"(?:=>|:=|\?=|={1,3}+|:|<-|->)[ \t]{0,30}(?:[|>][+-]?[ \t]{0,4}\n[ \t]{1,20}|\\\r?\n[ \t]{0,40})?"
)
PAIRED = rb"(?:[a-z]{0,12}value|default|content|secretstring|plaintext|body)"
"""The name of the value's field if an earlier field contains the name."""

_OPENS = rb"[\w.:$]{0,40}[(\[]"
"""The beginning of a call."""


class Way(NamedTuple):
    """A notation of a name and its value: the text between them, and the text before the name.

    ``least`` is the requirement for the value. ``WORDS`` accepts words of any kind, ``PLAIN``
    lower-case words, ``ANY`` three words, ``LIKELY`` a likely password, ``TOLD`` a password from
    prose with a digit, and ``CHANCE`` random characters.
    """

    signs: bytes
    joint: re.Pattern[bytes]
    before: re.Pattern[bytes] | None
    least: int


WORDS, PLAIN, ANY, LIKELY, TOLD, CHANCE = range(6)
_QUOTES = b"\"'`\\"
_CLOSED = rb"(?:[\"'`\\]{1,4}\]?|\[\d{0,4}\]|\](?=[ \t]*=))?"
LINE = (
    rb"[\s\x80-\xff]{0,12}(?:\d{1,6}\xe2\x86\x92)?[ \t\x80-\xff]*"
    rb"(?:\{?[\"']\w{1,20}[\"']: ?)?[\"'`]?[\x80-\xff]{0,12}"
)
"""The beginning of a line, possibly with a line number from the client's tools."""

SET = late(_CLOSED + _SIGN + _STRING + VALUE)

ARGUMENTS = (
    rb"\((?:[ \t]{0,4}(?:[\"'][^\"'\r\n]{1,100}[\"']|\$\w{1,40})[ \t]{0,4},){1,2}"
    rb"[ \t]{0,4}(?:\w{1,20}\(|\w{0,9}pass\w{0,6}=)?" + QUOTED
)
"""The arguments of a function that takes a name and a password."""

HEAD = late(LINE + rb"(?:[$#>!] )?(?:[\w.:/*@=-]{1,40}+[ \t]+){0,6}(?:[\w.-]{1,40}+/){0,4}")
"""The words before a name on its line."""

CHANGED = late(rb"[\"']?[ \t]{1,4}->[ \t]{1,4}" + QUOTED)
"""A new value after the old value."""

_ENTITY = rb"(?:&(?:quot|#0?34|#x22);|\\{1,2}x22)"
"""A quotation mark as written in a web page or a server log."""

PAIRS = (
    late(
        rb"(?:[ \t]+(?:is|are|with|for \S{1,40} (?:is|are))"
        rb"|[ \t]{0,4}:)[ \t]+[\"'`]?[\w.@-]{2,40}[\"'`]?[ \t]{0,2}[/:][ \t]{0,2}" + VALUE
    ),
    late(ARGUMENTS),
    late(
        _CLOSED + _SIGN + rb"\w{0,20}[(\[{][ \t]{0,4}[\"'][^\"'\n]{1,60}[\"'],[ \t]{0,4}" + QUOTED
    ),
)
"""A user's name and a password."""

CHANGED_TO = late(rb"[ \t]{1,4}to[ \t]{1,4}" + VALUE)
IN_BRACKETS = late(rb"[ \t:=]{1,4}(?P<bare>" + any_except(b"\"'`,;<>(){}|\\") + rb"{6,200})(?=\))")
"""In a sentence that sets a password, and as the last word in parentheses."""

WAYS = [
    Way(_QUOTES + b" \t=:-<?][", SET, None, LIKELY),
    Way(
        b" \t=",
        late(
            rb"[ \t]{0,30}=[ \t]{0,4}(?:\"[^\"\n]{0,200}\"|null|\([^()\n]{1,30}\))[ \t]{1,4}->[ \t]{1,4}"
            + QUOTED
        ),
        None,
        ANY,
    ),
    Way(
        b"&\\",
        late(
            _ENTITY
            + rb"[ \t]{0,4}[:=][ \t]{0,4}"
            + _ENTITY
            + rb"(?P<bare>"
            + any_except(b"\"'`,;<>(){}|\\&")
            + rb"{6,200}+)(?=[&\\])"
        ),
        None,
        ANY,
    ),
    Way(
        _QUOTES + b" \t=:]",
        late(_CLOSED + _SIGN + rb"(?:new )?(?:" + _OPENS + rb"){1,3}" + _STRING + QUOTED),
        None,
        CHANCE,
    ),
    Way(
        _QUOTES + b" \t\r\n,{:",
        late(
            rb"[\"'`]{0,2}[ \t]{0,4}(?::[ \t]{0,4}\n(?:"
            + _INDENT
            + rb"\w{1,30}:[^\n]{0,80}\n){0,5}"
            + _INDENT
            + rb"|,?"
            + GAP
            + rb"{1,40}|,|(?::[ \t]{0,4})?\{[^{}]{0,200}?\s)[\"'`-]{0,3}(?i:"
            + PAIRED
            + rb")[\"'`]{0,2}(?:\s{0,10}[:=]|(?<=[ \t]--value))\s{0,4}"
            + VALUE
        ),
        None,
        LIKELY,
    ),
    Way(
        _QUOTES + b" \t|?:)]o",
        late(
            rb"[\"'`)\]]{0,4}[ \t]{0,4}(?:(?:\|\||\?\?|\?:|or\b)[ \t]{0,4}(?=[\"'`\\])|:[-=][ \t]{0,4})"
            + VALUE
        ),
        None,
        LIKELY,
    ),
    Way(_QUOTES, late(rb"[\"'][ \t]{0,4},[ \t]{0,4}" + QUOTED), late(rb"[\"']--?\Z"), LIKELY),
    Way(
        b" \t:",
        late(rb"(?:[ \t]+|:)(?![\"']?(?:env|file|fd|stdin|prompt)\b)(?:[\"']?pass:)?" + VALUE),
        late(rb"(?<![\w-])--?\Z"),
        ANY,
    ),
    Way(
        _QUOTES,
        late(rb"[\"'`]{1,4}[ \t]{0,4},[ \t]{0,30}" + _STRING + QUOTED),
        late(
            rb"(?i)(?:fill|type|select|define|set|put|add|prop|param|header|append|with|env|const|get|field|var"
            rb"|config|secret)"
            rb"[\w.]{0,20}[ \t]{0,2}\([ \t]{0,2}"
            rb"[\"'`](?:[#.\[]|input\[|name=){0,3}[\"']?\Z"
        ),
        LIKELY,
    ),
    Way(
        _QUOTES + b" \t",
        late(
            rb"[\"']?(?:[ \t]+--?[\w-]{1,30}[ =][^\s-]\S{0,60}){0,3}"
            rb"[ \t]+--(?:value|data|body|secret-string|literal)[ =]" + VALUE
        ),
        None,
        LIKELY,
    ),
    Way(
        _QUOTES + b" \t=:",
        late(_CLOSED + _SIGN + rb"[\"'\\]{0,3}[A-Za-z][\w-]{2,16}[ \t]+(?:\w{2,8}=)?" + VALUE),
        None,
        CHANCE,
    ),
    Way(b" \t:", PAIRS[0], None, LIKELY),
    Way(b"(", PAIRS[1], None, LIKELY),
    Way(_QUOTES + b" \t:=", PAIRS[2], None, LIKELY),
    Way(_QUOTES + b" \t", late(rb"[\"']?[ \t]+(?:as[ \t]+)?" + _STRING + QUOTED), None, TOLD),
    Way(
        b" \t",
        late(rb"[ \t]+" + VALUE),
        late(
            rb"(?i)(?:setx|setenv|set|set -g?x|env|arg|set-secret|defaults write \S{1,60}|export)[ \t]+[\"']?\Z"
        ),
        LIKELY,
    ),
    Way(
        b" \t",
        late(
            rb"[ \t]{1,30}(?:\d[ \t]{1,4})?(?!-)"
            + VALUE
            + rb"(?=[ \t]*(?:[\r\n;,#}\\\"\x80-\xff]|\Z|(?:[\w./*-]+[ \t]*){1,4}(?:[\r\n\"\x80-\xff]|\Z)))"
        ),
        HEAD,
        TOLD,
    ),
    Way(
        _QUOTES + b"])",
        late(
            rb"[\"'`\])]{1,4}\.(?:type|fill|send_?keys|set_?value|set|value|input)\([ \t]{0,2}"
            + QUOTED
        ),
        None,
        LIKELY,
    ),
    Way(b"(", late(rb"\([ \t]{0,2}" + _STRING + QUOTED + rb"[ \t]{0,2}\)"), None, LIKELY),
    Way(
        _QUOTES + b" >",
        late(
            rb"(?:[\"']?[^<>\n]{0,60}>|</(?:key|name)>"
            + GAP
            + rb"{0,30}<(?:string|value)[^<>\n]{0,30}>)"
            + GAP
            + rb"{0,20}(?:<[Vv]alue>)?(?P<bare>"
            + any_except(b"<>")
            + rb"{6,200})\s{0,20}"
            + GAP
            + rb"{0,20}</"
        ),
        late(rb"<[^<>\n]{0,60}\Z"),
        ANY,
    ),
    Way(
        b"<",
        late(
            rb"</(?:key|name)>"
            + GAP
            + rb"{0,30}<(?:string|value)[^<>\n]{0,30}>(?P<bare>"
            + any_except(b"<>")
            + rb"{6,200})</"
        ),
        late(rb"<(?:key|name)>\Z"),
        LIKELY,
    ),
    Way(
        b":",
        late(
            rb":[ \t]*\r?\n(?:\s{0,6}\d{1,6}\xe2\x86\x92)?[ \t]{0,8}(?P<bare>"
            + any_except(b"\"'`,;<>(){}|\\")
            + rb"{8,64})(?<!:)[ \t]*(?=[\r\n\"\x80-\xff]|\Z)"
        ),
        None,
        CHANCE,
    ),
    Way(
        b" \t",
        CHANGED_TO,
        late(
            rb"(?i)\b(?:set|chang|reset|switch|updat)(?:e|ed|ing|ting)?"
            rb"(?: (?:the|your|my|its|our|their|new|\w{1,20}'s|\w{1,20})){0,3} \Z"
        ),
        TOLD,
    ),
    Way(
        b" \t:=",
        IN_BRACKETS,
        late(rb"\([^()\n]{0,60}\Z"),
        TOLD,
    ),
    Way(
        b" \t\r\n",
        late(rb"\s{1,20}" + VALUE),
        late(
            rb"\b(?:login|user|machine)\s{1,20}"
            + NOT_A_GRAMMAR_WORD
            + rb"\S{1,100}"
            + GAP
            + rb"{1,20}\Z"
        ),
        LIKELY,
    ),
    Way(
        b" \t(",
        late(
            rb"[ \t]\(?(?:[^\n:={}()<>;|.]|\.(?!\s)){0,50}?\)?"
            rb"(?:\b(?:(?:is|was)(?: (?:still|now))?|(?:set|changed|reset) to)\b:?|:)[ \t]{1,4}"
            + VALUE
        ),
        None,
        TOLD,
    ),
]
"""The notations, by the first character after the name.

In order: assigned; assigned to a literal in a call; in a field beside the name; as a substitute; in
a list of arguments; by a function; as the string after a word; by a command that sets variables; as
a word in a settings line; by a method; in an XML element or after its key; on the next line; by a
sentence that changes it; in parentheses; netrc; in a sentence.
"""

BY_SIGN = {sign: [way for way in WAYS if sign in way.signs] for sign in range(256)}
