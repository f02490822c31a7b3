"""Define the notations in which a value belongs to the name before it.

Examples are assignments, fields, calls, options and XML elements.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from resume_hooks.redaction.lazy_patterns import compile_lazily

NO_GRAMMAR_WORD_EXPRESSION = (
    rb"(?!(?i:a|all|also|an|and|any|are|as|at|be|by|can|for|from|has|if|in|into|is|it|its|must|nor|not|of|on|or"
    rb"|so|than|that|the|then|this|to|using|via|was|when|will|with|without|you|your)(?![\w.@-]))"
)
"""Matches if no conjunction or similar word follows. Such words are never user or host names."""

QUOTED_VALUE_EXPRESSION = rb"(?P<quote>\\{0,3}[\"'`])(?P<quoted>[^\"'`\r\n\\]{6,200})(?P=quote)"
NON_ASCII_LETTER_EXPRESSION = rb"[\xc3-\xdf][\x80-\xbf]|\xe1[\xb8-\xbb][\x80-\xbf]"
"""Matches a whole letter with an accent, or another letter that is not in ASCII.

Dashes, arrows and emoji do not match, because they are not part of a value.
"""


def any_character_except(excluded: bytes) -> bytes:
    """Return an expression for one character of a value.

    The expression matches letters that are not in ASCII, and all other characters except white
    space and the ``excluded`` characters.
    """
    return rb"(?:[^\s\x7f-\xff" + re.escape(excluded) + rb"]|" + NON_ASCII_LETTER_EXPRESSION + rb")"


_BARE_VALUE_EXPRESSION = rb"(?P<bare>" + any_character_except(b"\"'`,;<>(){}|\\") + rb"{6,200}+)"
VALUE_EXPRESSION = (
    rb"(?:"
    + QUOTED_VALUE_EXPRESSION
    + rb"|(?:\xe2\x80[\x98-\x9f])?"
    + _BARE_VALUE_EXPRESSION
    + rb"(?![(]))"
)
_STRING_PREFIX_EXPRESSION = rb"(?:[bBrRuULfF@$]{1,2}(?=[\"'`]))?"
"""The letters before a string literal in programming languages."""

LINE_GAP_EXPRESSION = rb"(?:\s|\d{1,6}\xe2\x86\x92)"
"""White space, or a line number in the output of the client's tools."""

_LINE_INDENT_EXPRESSION = rb"\s{0,6}(?:\d{1,6}\xe2\x86\x92)?[ \t]{1,20}"
_TYPE_ANNOTATION_EXPRESSION = rb"(?::[ \t]{0,3}[&A-Za-z][\w.<>&' ]{0,20}[ \t]{0,10}(?==))?"
_ASSIGNMENT_SIGN_EXPRESSION = (
    rb"[ \t]{0,30}"
    + _TYPE_ANNOTATION_EXPRESSION
    + rb"(?:=>|:=|\?=|={1,3}+|:|<-|->)[ \t]{0,30}(?:[|>][+-]?[ \t]{0,4}\n[ \t]{1,20}|\\\r?\n[ \t]{0,40})?"
)
VALUE_FIELD_NAME_EXPRESSION = rb"(?:[a-z]{0,12}value|default|content|secretstring|plaintext|body)"
"""The name of a field that contains a value if another field contains the value's name."""

_AUTHORIZATION_SCHEME_EXPRESSION = (
    rb"(?i:bearer|basic|token|oauth2?|api-?key|key|digest|ssws|splunk|bot|genie-?key|sso-key|jwt|hmac"
    rb"|negotiate|ntlm)"
)
"""The first word in the value of an ``Authorization`` header."""

_CALL_START_EXPRESSION = rb"[\w.:$]{0,40}[(\[]"
"""The beginning of a call up to its bracket."""


class Notation(NamedTuple):
    """A notation of a name and its value.

    ``first_characters`` are the characters that can follow the name. ``value_pattern`` matches the
    text from the end of the name to the end of the value, and ``before_name_pattern`` matches the
    text before the name. ``requirement`` determines which values are accepted: words of any kind,
    words in lower case, three words, a likely password, a password with a digit from a sentence, or
    random characters.
    """

    first_characters: bytes
    value_pattern: re.Pattern[bytes]
    before_name_pattern: re.Pattern[bytes] | None
    requirement: int


ANY_WORDS, LOWER_CASE_WORDS, THREE_WORDS, LIKELY_PASSWORD, PROSE_PASSWORD, RANDOM_CHARACTERS = (
    range(6)
)
_QUOTE_CHARACTERS = b"\"'`\\"
_CLOSING_QUOTE_EXPRESSION = rb"(?:[\"'`\\]{1,4}\]?|\[\d{0,4}\]|\](?=[ \t]*=))?"
LINE_START_EXPRESSION = (
    rb"[\s\x80-\xff]{0,12}(?:\d{1,6}\xe2\x86\x92)?[ \t\x80-\xff]*"
    rb"(?:\{?[\"']\w{1,20}[\"']: ?)?[\"'`]?[\x80-\xff]{0,12}"
)
"""Matches the beginning of a line, with or without a line number from the client's tools."""

ASSIGNED_VALUE_PATTERN = compile_lazily(
    _CLOSING_QUOTE_EXPRESSION
    + _ASSIGNMENT_SIGN_EXPRESSION
    + _STRING_PREFIX_EXPRESSION
    + VALUE_EXPRESSION
)

LOGIN_ARGUMENTS_EXPRESSION = (
    rb"\((?:[ \t]{0,4}(?:[\"'][^\"'\r\n]{1,100}[\"']|\$\w{1,40})[ \t]{0,4},){1,2}"
    rb"[ \t]{0,4}(?:\w{1,20}\(|\w{0,9}pass\w{0,6}=)?" + QUOTED_VALUE_EXPRESSION
)
"""Matches the arguments of a function that takes a user name and a password."""

WORDS_BEFORE_NAME_PATTERN = compile_lazily(
    LINE_START_EXPRESSION + rb"(?:[$#>!] )?(?:[\w.:/*@=-]{1,40}+[ \t]+){0,6}(?:[\w.-]{1,40}+/){0,4}"
)
"""Matches the words before a name on its line."""

NEW_VALUE_PATTERN = compile_lazily(rb"[\"']?[ \t]{1,4}->[ \t]{1,4}" + QUOTED_VALUE_EXPRESSION)
"""Matches the arrow and the new value after an old value, for example in ``"old" -> "new"``."""

_QUOTE_ENTITY_EXPRESSION = rb"(?:&(?:quot|#0?34|#x22);|\\{1,2}x22)"
"""A quotation mark as an HTML entity, as in web pages and server logs."""

LOGIN_PATTERNS = (
    compile_lazily(
        rb"(?:[ \t]+(?:is|are|with|for \S{1,40} (?:is|are))"
        rb"|[ \t]{0,4}:)[ \t]+[\"'`]?[\w.@-]{2,40}[\"'`]?[ \t]{0,2}[/:][ \t]{0,2}"
        + VALUE_EXPRESSION
    ),
    compile_lazily(LOGIN_ARGUMENTS_EXPRESSION),
    compile_lazily(
        _CLOSING_QUOTE_EXPRESSION
        + _ASSIGNMENT_SIGN_EXPRESSION
        + rb"\w{0,20}[(\[{][ \t]{0,4}[\"'][^\"'\n]{1,60}[\"'],[ \t]{0,4}"
        + QUOTED_VALUE_EXPRESSION
    ),
)
"""The notations of a user name with a password."""

VALUE_SET_BY_COMMAND_PATTERN = compile_lazily(rb"[ \t]+" + VALUE_EXPRESSION)
VALUE_BELOW_NAME_PATTERN = compile_lazily(
    rb":[ \t]*\r?\n(?:\s{0,6}\d{1,6}\xe2\x86\x92)?[ \t]{0,8}(?P<bare>"
    + any_character_except(b"\"'`,;<>(){}|\\")
    + rb"{8,64})(?<!:)[ \t]*(?=[\r\n\"\x80-\xff]|\Z)"
)
CHANGED_TO_VALUE_PATTERN = compile_lazily(rb"[ \t]{1,4}to[ \t]{1,4}" + VALUE_EXPRESSION)
VALUE_IN_PARENTHESES_PATTERN = compile_lazily(
    rb"[ \t:=]{1,4}(?P<bare>" + any_character_except(b"\"'`,;<>(){}|\\") + rb"{6,200})(?=\))"
)
"""Matches a value that is the last word in parentheses, in a sentence that sets a password."""

NOTATIONS = [
    Notation(_QUOTE_CHARACTERS + b" \t=:-<?][", ASSIGNED_VALUE_PATTERN, None, LIKELY_PASSWORD),
    Notation(
        b" \t=",
        compile_lazily(
            rb"[ \t]{0,30}=[ \t]{0,4}(?:\"[^\"\n]{0,200}\"|null|\([^()\n]{1,30}\))[ \t]{1,4}->[ \t]{1,4}"
            + QUOTED_VALUE_EXPRESSION
        ),
        None,
        THREE_WORDS,
    ),
    Notation(
        b"&\\",
        compile_lazily(
            _QUOTE_ENTITY_EXPRESSION
            + rb"[ \t]{0,4}[:=][ \t]{0,4}"
            + _QUOTE_ENTITY_EXPRESSION
            + rb"(?P<bare>"
            + any_character_except(b"\"'`,;<>(){}|\\&")
            + rb"{6,200}+)(?=[&\\])"
        ),
        None,
        THREE_WORDS,
    ),
    Notation(
        _QUOTE_CHARACTERS + b" \t=:]",
        compile_lazily(
            _CLOSING_QUOTE_EXPRESSION
            + _ASSIGNMENT_SIGN_EXPRESSION
            + rb"(?:new )?(?:"
            + _CALL_START_EXPRESSION
            + rb"){1,3}"
            + _STRING_PREFIX_EXPRESSION
            + QUOTED_VALUE_EXPRESSION
        ),
        None,
        RANDOM_CHARACTERS,
    ),
    Notation(
        _QUOTE_CHARACTERS + b" \t\r\n,{:",
        compile_lazily(
            rb"[\"'`]{0,2}[ \t]{0,4}(?::[ \t]{0,4}\n(?:"
            + _LINE_INDENT_EXPRESSION
            + rb"\w{1,30}:[^\n]{0,80}\n){0,5}"
            + _LINE_INDENT_EXPRESSION
            + rb"|,?"
            + LINE_GAP_EXPRESSION
            + rb"{1,40}|,|(?::[ \t]{0,4})?\{[^{}]{0,200}?\s)[\"'`-]{0,3}(?i:"
            + VALUE_FIELD_NAME_EXPRESSION
            + rb")[\"'`]{0,2}(?:\s{0,10}[:=]|(?<=[ \t]--value))\s{0,4}"
            + VALUE_EXPRESSION
        ),
        None,
        LIKELY_PASSWORD,
    ),
    Notation(
        _QUOTE_CHARACTERS + b" \t|?:)]o",
        compile_lazily(
            rb"[\"'`)\]]{0,4}[ \t]{0,4}(?:(?:\|\||\?\?|\?:|or\b)[ \t]{0,4}(?=[\"'`\\])|:[-=][ \t]{0,4})"
            + VALUE_EXPRESSION
        ),
        None,
        LIKELY_PASSWORD,
    ),
    Notation(
        _QUOTE_CHARACTERS,
        compile_lazily(rb"[\"'][ \t]{0,4},[ \t]{0,4}" + QUOTED_VALUE_EXPRESSION),
        compile_lazily(rb"[\"']--?\Z"),
        LIKELY_PASSWORD,
    ),
    Notation(
        b" \t:",
        compile_lazily(
            rb"(?:[ \t]+|:)(?![\"']?(?:env|file|fd|stdin|prompt)\b)(?:[\"']?pass:)?"
            + VALUE_EXPRESSION
        ),
        compile_lazily(rb"(?<![\w-])--?\Z"),
        THREE_WORDS,
    ),
    Notation(
        _QUOTE_CHARACTERS,
        compile_lazily(
            rb"[\"'`]{1,4}[ \t]{0,4},[ \t]{0,30}"
            + _STRING_PREFIX_EXPRESSION
            + QUOTED_VALUE_EXPRESSION
        ),
        compile_lazily(
            rb"(?i)(?:fill|type|select|define|set|put|add|prop|param|header|append|with|env|const|get|field|var"
            rb"|config|secret)"
            rb"[\w.]{0,20}[ \t]{0,2}\([ \t]{0,2}"
            rb"[\"'`](?:[#.\[]|input\[|name=){0,3}[\"']?\Z"
        ),
        LIKELY_PASSWORD,
    ),
    Notation(
        _QUOTE_CHARACTERS + b" \t",
        compile_lazily(
            rb"[\"']?(?:[ \t]+--?[\w-]{1,30}[ =][^\s-]\S{0,60}){0,3}"
            rb"[ \t]+--(?:value|data|body|secret-string|literal)[ =]" + VALUE_EXPRESSION
        ),
        None,
        LIKELY_PASSWORD,
    ),
    Notation(
        _QUOTE_CHARACTERS + b" \t=:",
        compile_lazily(
            _CLOSING_QUOTE_EXPRESSION
            + _ASSIGNMENT_SIGN_EXPRESSION
            + rb"[\"'\\]{0,3}"
            + _AUTHORIZATION_SCHEME_EXPRESSION
            + rb"[ \t]+(?:\w{2,8}=)?"
            + VALUE_EXPRESSION
        ),
        None,
        RANDOM_CHARACTERS,
    ),
    Notation(b" \t:", LOGIN_PATTERNS[0], None, LIKELY_PASSWORD),
    Notation(b"(", LOGIN_PATTERNS[1], None, LIKELY_PASSWORD),
    Notation(_QUOTE_CHARACTERS + b" \t:=", LOGIN_PATTERNS[2], None, LIKELY_PASSWORD),
    Notation(
        _QUOTE_CHARACTERS + b" \t",
        compile_lazily(
            rb"[\"']?[ \t]+(?:as[ \t]+)?" + _STRING_PREFIX_EXPRESSION + QUOTED_VALUE_EXPRESSION
        ),
        None,
        PROSE_PASSWORD,
    ),
    Notation(
        b" \t",
        VALUE_SET_BY_COMMAND_PATTERN,
        compile_lazily(
            rb"(?i)(?:setx|setenv|set|set -g?x|env|arg|set-secret|defaults write \S{1,60}|export)[ \t]+[\"']?\Z"
        ),
        LIKELY_PASSWORD,
    ),
    Notation(
        b" \t",
        compile_lazily(
            rb"[ \t]{1,30}(?:\d[ \t]{1,4})?(?!-)"
            + VALUE_EXPRESSION
            + rb"(?=[ \t]*(?:[\r\n;,#}\\\"\x80-\xff]|\Z|(?:[\w./*-]+[ \t]*){1,4}(?:[\r\n\"\x80-\xff]|\Z)))"
        ),
        WORDS_BEFORE_NAME_PATTERN,
        PROSE_PASSWORD,
    ),
    Notation(
        _QUOTE_CHARACTERS + b"])",
        compile_lazily(
            rb"[\"'`\])]{1,4}\.(?:type|fill|send_?keys|set_?value|set|value|input)\([ \t]{0,2}"
            + QUOTED_VALUE_EXPRESSION
        ),
        None,
        LIKELY_PASSWORD,
    ),
    Notation(
        b"(",
        compile_lazily(
            rb"\([ \t]{0,2}"
            + _STRING_PREFIX_EXPRESSION
            + QUOTED_VALUE_EXPRESSION
            + rb"[ \t]{0,2}\)"
        ),
        None,
        LIKELY_PASSWORD,
    ),
    Notation(
        _QUOTE_CHARACTERS + b" >",
        compile_lazily(
            rb"(?:[\"']?[^<>\n]{0,60}>|</(?:key|name)>"
            + LINE_GAP_EXPRESSION
            + rb"{0,30}<(?:string|value)[^<>\n]{0,30}>)"
            + LINE_GAP_EXPRESSION
            + rb"{0,20}(?:<[Vv]alue>)?(?P<bare>"
            + any_character_except(b"<>")
            + rb"{6,200})\s{0,20}"
            + LINE_GAP_EXPRESSION
            + rb"{0,20}</"
        ),
        compile_lazily(rb"<[^<>\n]{0,60}\Z"),
        THREE_WORDS,
    ),
    Notation(
        b"<",
        compile_lazily(
            rb"</(?:key|name)>"
            + LINE_GAP_EXPRESSION
            + rb"{0,30}<(?:string|value)[^<>\n]{0,30}>(?P<bare>"
            + any_character_except(b"<>")
            + rb"{6,200})</"
        ),
        compile_lazily(rb"<(?:key|name)>\Z"),
        LIKELY_PASSWORD,
    ),
    Notation(
        b":",
        VALUE_BELOW_NAME_PATTERN,
        None,
        RANDOM_CHARACTERS,
    ),
    Notation(
        b" \t",
        CHANGED_TO_VALUE_PATTERN,
        compile_lazily(
            rb"(?i)\b(?:set|chang|reset|switch|updat)(?:e|ed|ing|ting)?"
            rb"(?: (?:the|your|my|its|our|their|new|\w{1,20}'s|\w{1,20})){0,3} \Z"
        ),
        PROSE_PASSWORD,
    ),
    Notation(
        b" \t:=",
        VALUE_IN_PARENTHESES_PATTERN,
        compile_lazily(rb"\([^()\n]{0,60}\Z"),
        PROSE_PASSWORD,
    ),
    Notation(
        b" \t\r\n",
        compile_lazily(rb"\s{1,20}" + VALUE_EXPRESSION),
        compile_lazily(
            rb"\b(?:login|user|machine)\s{1,20}"
            + NO_GRAMMAR_WORD_EXPRESSION
            + rb"\S{1,100}"
            + LINE_GAP_EXPRESSION
            + rb"{1,20}\Z"
        ),
        LIKELY_PASSWORD,
    ),
    Notation(
        b" \t(",
        compile_lazily(
            rb"[ \t]\(?(?:[^\n:={}()<>;|.]|\.(?!\s)){0,50}?\)?"
            rb"(?:\b(?:(?:is|was)(?: (?:still|now))?|(?:set|changed|reset) to)\b:?|:)[ \t]{1,4}"
            + VALUE_EXPRESSION
        ),
        None,
        PROSE_PASSWORD,
    ),
]
"""The notations, in the order in which they are tried.

A value may be:

- assigned to the name, directly or as an argument of a call,
- in the field after the name, a default value after the name, or the next item in a list of
  arguments,
- set by a function, by a method, or by a command that sets variables,
- a string after the name, or a word after the name in a line of settings,
- the content of an XML element, or on the line below the name,
- in parentheses, in a netrc file, or in a sentence.
"""

NOTATIONS_BY_FIRST_CHARACTER = {
    sign: [way for way in NOTATIONS if sign in way.first_characters] for sign in range(256)
}
