"""Quote the project's instructions: their headings, and the rules and commands that concern the work.

Only the transcripts of other agents contain such instructions, for example AGENTS.md in a Codex
session. A rule concerns the work in three cases: its heading is about commits, tests or the like,
its heading contains words from the user's requests, or the rule mentions a file or folder that the
session changed. If the instructions contain few rules, all of them are quoted. If the session did
not work in the project in which it was started, only the user's own preferences are quoted.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple

from resume_hooks.reading.digest import prose, shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_remember_secrets
from resume_hooks.reading.digest.failed_commands import describe_last_failure
from resume_hooks.reading.digest.session_commands import (
    TEMPORARY_PATH_PATTERN,
    ShellCommand,
    has_check_word,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily
from resume_hooks.system.text import format_count

# At most this many characters are read from the instructions.
MAX_INSTRUCTIONS_CHARACTERS = 40_000
# The maximum numbers of rules and of commands that are quoted.
MAX_RULES, MAX_COMMANDS = 12, 12
MAX_RULE_CHARACTERS = 400  # The maximum number of characters in a rule.
MAX_HEADINGS_CHARACTERS = 700  # The maximum number of characters in the row of headings.
# The words of this many of the latest prompts are compared with headings.
MAX_COMPARED_PROMPTS = 12
MAX_PROMPT_CHARACTERS = 2_000  # At most this many characters are read from each prompt.
GAP_MARK = " …"  # The mark after a quoted list item if the next item is not quoted.
MIN_RULE_WORDS = 4  # A sentence with fewer words is not quoted.
# This many characters at the start of two words are compared. If they are the same, the words are
# treated as equal.
MAX_STEM_CHARACTERS = 6
_BLOCK_NOTE_START = "["  # The first character of the row that replaces a code block.
RELOAD_NOTE = "the client loads the file again"
WORK_ELSEWHERE_NOTE = "the session changed no file of this project"

_INSTRUCTIONS_BODY_PATTERN = compile_lazily(r"<INSTRUCTIONS>(.*)</INSTRUCTIONS>", re.DOTALL)
_SKILL_LIST_START = "\n## Skills\nA skill is a set of local instructions"
"""The start of the list of skills that the client writes into each session."""

_HEADING_ROW_PATTERN = compile_lazily(r"(#{1,6})[ \t]+(\S[^\n]*)")
_FENCE_ROW_PATTERN = compile_lazily(r"[ \t]*(?:```|~~~)")
_FENCED_BLOCK_PATTERN = compile_lazily(
    r"^[ \t]*(```|~~~)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.DOTALL | re.MULTILINE
)
_RULE_START_PATTERN = compile_lazily(
    r"\b(?:must|never|always|do not|don't|avoid|ensure|make sure|requires?|instead of|prefer)\b|"
    r"\A\W*(?:use|run|keep|follow|only)\s",
    re.IGNORECASE,
)
_STRICT_WORD_PATTERN = compile_lazily(
    r"\b(?:must|never|always|do not|don't|avoid|ensure|make sure|requires?)\b", re.IGNORECASE
)
_DESCRIPTION_START_PATTERN = compile_lazily(
    r"\W*(?:`[^`\n]{1,80}`\s*(?::|-+\s)|(?:[\w -]{1,60}:\W*)?[A-Za-z]+[^s\W]s\s)"
)
"""The start of a sentence that describes the program, for example ``Uses ...`` or an option's name.
"""

_GENERAL_HEADING_PATTERN = compile_lazily(
    r"\A(?:github|gitlab)\b|\b(?:commits?|pull requests?|prs?|reviews?|tests?|testing|styles?|lint(?:ing)?|"
    r"format(?:ting)?|pre-commit|preferences|conventions?|contributing|workflow)\b",
    re.IGNORECASE,
)
"""A heading whose rules apply to any work in the project."""

_PERSONAL_HEADING_PATTERN = compile_lazily(r"\b(?:global|personal|preferences)\b", re.IGNORECASE)
"""A heading in the user's own instructions, which the client puts before the project's
instructions."""

_COMMON_HEADING_WORDS = frozenset({
    "active", "agent", "agents", "architecture", "available", "build", "changes", "commands", "component", "components",
    "core", "design", "development", "environment", "examples", "features", "first", "general", "guide", "guideline",
    "guidelines", "high", "implementation", "important", "instructions", "key", "level", "notes", "organization",
    "overview", "patterns", "policy", "process", "project", "read", "recent", "repository", "required", "requirements",
    "rules", "setup", "standards", "structure", "system", "technologies", "tools", "types", "variables",
})  # fmt: skip
"""Words in headings that do not say what the text below the heading is about."""

_PURPOSE_ROW_PATTERN = compile_lazily(r"\W*(?:to|when|for) [^.]{3,80}:\W*", re.IGNORECASE)
"""A line before a list of steps that only apply to one purpose, such as "To add a new check:"."""

_NUMBERED_ROW_PATTERN = compile_lazily(r"\s*\d{1,2}[.)]\s")
_PATH_PATTERN = compile_lazily(r"[\w.@-]{1,80}(?:/[\w.@-]{1,80}){0,12}/?")
_CODE_BLOCK_PATTERN = compile_lazily(
    r"^[ \t]*```(?:bash|sh|shell|console|zsh)?[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE
)
_NON_COMMAND_START_PATTERN = compile_lazily(r"\S*[:(]|\w+\s*=\s")
"""A text that is not a command although it looks like one: a setting, or a commit's subject such as
``fix(api): check it``."""

_COMMAND_ITEM_PATTERN = compile_lazily(r"^[ \t]*[-*][ \t]+`([^`\n]{3,160})`[^\n]*", re.MULTILINE)


class _Rank(IntEnum):
    """How closely a sentence is related to the work. Sentences with a lower number are quoted first."""

    REQUESTED = 0
    """A rule that mentions a changed file, or whose heading contains words from the user's
    requests."""
    GENERAL = 1
    """A rule for any work."""
    STEP = 2
    """Any other sentence below a heading with words from the user's requests, such as a step in a
    procedure."""
    OTHER = 3
    """Any other rule. It is quoted only if there are few rules."""


class _HeadingText(NamedTuple):
    """The text below a heading of the instructions.

    ``headings`` are the headings above the text, the outermost first.
    """

    headings: tuple[str, ...]
    text: str


class _Rule(NamedTuple):
    """A sentence in the instructions.

    ``topic`` is the heading above the sentence, or ``""`` if only the document's title is above
    the sentence.
    """

    topic: str
    text: str


def list_instructions(
    facts: LineageFacts, commands: Sequence[ShellCommand]
) -> Iterator[DigestEntry]:
    """Yield a line about the instructions, and the rules and commands in them that concern the work."""
    instructions = facts.instructions
    if instructions is None:
        return
    body_match = _INSTRUCTIONS_BODY_PATTERN.search(instructions.text)
    body = body_match[1] if body_match is not None else instructions.text
    body = redact_and_remember_secrets(
        body.partition(_SKILL_LIST_START)[0][:MAX_INSTRUCTIONS_CHARACTERS]
    )
    body = body.strip()
    if not body:
        return  # The client sent its list of skills without any instructions.
    is_elsewhere = _is_work_elsewhere(facts)
    note = f"{WORK_ELSEWHERE_NOTE}; {RELOAD_NOTE}" if is_elsewhere else RELOAD_NOTE
    yield make_entry(facts.instructions_name, instructions.position, note)
    parts = _split_at_headings(body)
    if is_elsewhere:
        parts = [
            part for part in parts if any(map(_PERSONAL_HEADING_PATTERN.search, part.headings))
        ]
        command_rows = []
    else:
        command_rows = _find_commands(body)
    rules, rule_count = _select_and_count_rules(parts, facts)
    has_quotes = bool(rules or command_rows)
    headings = [prose.MARKUP_PATTERN.sub("", part.headings[-1]) for part in parts if part.headings]
    if rule_count > len(rules) or (headings and not (has_quotes or is_elsewhere)):
        row = f"its headings: {'; '.join(headings)}"
        note = f"{len(rules)} of {format_count(rule_count, 'rule')} quoted" if has_quotes else ""
        yield make_entry(row, "", note, max_characters=MAX_HEADINGS_CHARACTERS)
    incomplete_texts = _find_texts_before_gaps(parts, [rule.text for rule in rules])
    for rule in rules:
        if rule.text not in command_rows:
            mark = GAP_MARK if rule.text in incomplete_texts else ""
            row = f"{_format_rule_with_topic(rule)}{mark}"
            yield make_entry(row, "", max_characters=MAX_RULE_CHARACTERS)
    for text in command_rows:
        note = describe_last_failure(_extract_command(text), commands)
        yield make_entry(text, "", note, max_characters=MAX_RULE_CHARACTERS)


def _is_work_elsewhere(facts: LineageFacts) -> bool:
    """Check whether the session changed files, but none in the project that has the instructions.

    A checkout in a different folder with the same name, such as a worktree, is the same project.
    """
    folder = facts.instructions_name.rpartition(" of ")[2]
    name = posixpath.basename(folder.rstrip("/"))
    if not posixpath.isabs(folder) or not name:
        return False
    paths = [posixpath.join(change.folder, change.path) for change in facts.changes]
    if any(name in path.split("/") for path in paths):
        return False
    return any(TEMPORARY_PATH_PATTERN.search(path) is None for path in paths)


def _split_at_headings(body: str) -> list[_HeadingText]:
    """Split the instructions at their headings. A ``#`` in a code block is not a heading."""
    parts: list[_HeadingText] = []
    open_headings: list[tuple[int, str]] = []
    rows: list[str] = []
    is_code = False

    def add_text_below_heading() -> None:
        if rows or open_headings:
            parts.append(_HeadingText(tuple(text for _, text in open_headings), "\n".join(rows)))

    for row in body.split("\n"):
        is_code ^= _FENCE_ROW_PATTERN.match(row) is not None
        heading = None if is_code else _HEADING_ROW_PATTERN.fullmatch(row.rstrip())
        if heading is None:
            rows.append(row)
            continue
        add_text_below_heading()
        rows = []
        level = len(heading[1])
        open_headings = [outer for outer in open_headings if outer[0] < level]
        open_headings.append((level, heading[2]))
    add_text_below_heading()
    return parts


def _format_rule_with_topic(rule: _Rule) -> str:
    """Put a rule's topic before its text, unless the text already contains the topic."""
    if not rule.topic or rule.topic.lower() in rule.text.lower():
        return rule.text
    return f"{rule.topic}: {rule.text}"


def _select_and_count_rules(
    parts: Sequence[_HeadingText], facts: LineageFacts
) -> tuple[list[_Rule], int]:
    """Return the rules that concern the work, in their original order, and the number of all rules."""
    request_stems = _collect_request_stems(facts)
    changed_paths = {change.path for change in facts.changes}
    title = parts[0].headings[:1] if parts else ()
    ranked_rules: list[tuple[_Rank, bool, int, _Rule]] = []
    rule_count = 0
    for part in parts:
        headings = [heading for heading in part.headings if heading not in title]
        is_requested = any(_is_about_requests(heading, request_stems) for heading in headings)
        is_general = not headings or _GENERAL_HEADING_PATTERN.search(headings[-1]) is not None
        topic = prose.MARKUP_PATTERN.sub("", headings[-1]).rstrip(" :") if headings else ""
        procedure_steps = _find_procedure_steps(part)
        for text in _list_sentences(part):
            is_rule = _is_rule(text) and text not in procedure_steps
            rule_count += is_rule
            if is_rule and (is_requested or _mentions_changed_path(text, changed_paths)):
                rank = _Rank.REQUESTED
            elif is_rule and is_general:
                rank = _Rank.GENERAL
            elif is_requested and _DESCRIPTION_START_PATTERN.match(text) is None:
                rank = _Rank.STEP
            elif is_rule:
                rank = _Rank.OTHER
            else:
                continue
            is_not_strict = _STRICT_WORD_PATTERN.search(text) is None
            ranked_rules.append((rank, is_not_strict, len(ranked_rules), _Rule(topic, text)))
    if rule_count > MAX_RULES:
        ranked_rules = [rule for rule in ranked_rules if rule[0] is not _Rank.OTHER]
    best_rules = sorted(ranked_rules)[:MAX_RULES]
    rules = [rule for *_, rule in sorted(best_rules, key=lambda ranked: ranked[2])]
    return list(dict.fromkeys(rules)), rule_count


def _find_texts_before_gaps(parts: Sequence[_HeadingText], quoted_texts: Sequence[str]) -> set[str]:
    """Return those items of numbered lists that are quoted although the next item is not."""
    incomplete_texts: set[str] = set()
    for part in parts:
        last_quoted = ""
        for row in part.text.split("\n"):
            if _NUMBERED_ROW_PATTERN.match(row):
                sentences = tuple(prose.split_sentences(row))
                item_texts = [text for text in quoted_texts if text.endswith(sentences)]
                if item_texts:
                    last_quoted = item_texts[-1]
                elif last_quoted:
                    incomplete_texts.add(last_quoted)
            elif row.strip() and not row.startswith((" ", "\t")):
                last_quoted = ""
    return incomplete_texts


def _list_sentences(part: _HeadingText) -> Iterator[str]:
    """Yield the sentences in a part. If one ends with a colon, the next sentence is joined to it."""
    text = _FENCED_BLOCK_PATTERN.sub(_describe_code_block, part.text)
    sentences = list(prose.split_sentences(text))
    is_included = False
    for index, sentence in enumerate(sentences):
        if is_included:
            is_included = False
        elif sentence.endswith(":") and index + 1 < len(sentences):
            is_included = True
            yield f"{sentence} {sentences[index + 1]}"
        elif len(sentence.split()) >= MIN_RULE_WORDS and not sentence.startswith(_BLOCK_NOTE_START):
            yield sentence


def _find_procedure_steps(part: _HeadingText) -> frozenset[str]:
    """Return the sentences of the numbered lists below a row such as "To add a test:"."""
    steps: set[str] = set()
    is_in_procedure = False
    for row in part.text.split("\n"):
        if _PURPOSE_ROW_PATTERN.fullmatch(row.strip()):
            is_in_procedure = True
        elif _NUMBERED_ROW_PATTERN.match(row):
            if is_in_procedure:
                steps.update(prose.split_sentences(row))
        elif row.strip() and not row.startswith((" ", "\t")):
            is_in_procedure = False
    return frozenset(steps)


def _describe_code_block(block: re.Match[str]) -> str:
    """Return a line such as ``[3 lines of code]`` to replace a code block."""
    return f"{_BLOCK_NOTE_START}{format_count(block[2].count(chr(10)), 'line')} of code]\n"


def _is_rule(sentence: str) -> bool:
    """Check whether a sentence asks for something, rather than only describing the program."""
    if _STRICT_WORD_PATTERN.search(sentence):
        return True
    return (
        _RULE_START_PATTERN.search(sentence) is not None
        and _DESCRIPTION_START_PATTERN.match(sentence) is None
    )


def _collect_request_stems(facts: LineageFacts) -> frozenset[str]:
    """Return the first characters of each significant word in the latest prompts and the last answer."""
    quotes = [*facts.prompts.quotes[-MAX_COMPARED_PROMPTS:], *facts.closing_quotes[-1:]]
    texts = [quote.text[:MAX_PROMPT_CHARACTERS] for quote in quotes]
    words = prose.find_significant_words("\n".join(texts))
    return frozenset(word[:MAX_STEM_CHARACTERS] for word in words)


def _is_about_requests(heading: str, request_stems: frozenset[str]) -> bool:
    """Check whether all words of a heading occur in the requests.

    Common words such as "guide" are ignored.
    """
    if _GENERAL_HEADING_PATTERN.search(heading):
        return False
    words = prose.find_significant_words(heading) - _COMMON_HEADING_WORDS
    return bool(words) and all(word[:MAX_STEM_CHARACTERS] in request_stems for word in words)


def _mentions_changed_path(sentence: str, changed_paths: Collection[str]) -> bool:
    """Check whether a sentence mentions a changed file or a folder with changed files.

    The folder ``src/`` does not count.
    """
    for name in _PATH_PATTERN.findall(sentence):
        is_folder = name.endswith("/") and name != "src/"
        for path in changed_paths:
            if is_folder and f"/{name}" in f"/{posixpath.dirname(path)}/":
                return True
            if "." in name and f"/{path}".endswith(f"/{name}"):
                return True
    return False


def _find_commands(body: str) -> list[str]:
    """Return the commands in the instructions that check, build or start something."""
    rows = [row.strip() for block in _CODE_BLOCK_PATTERN.findall(body) for row in block.split("\n")]
    commands: list[str] = []
    for row in rows:
        if row and not row.startswith("#") and _is_check(row):
            commands.append(" ".join(row.split()))
    for item in _COMMAND_ITEM_PATTERN.finditer(body):
        if _is_check(item[1]):
            commands.append(prose.MARKUP_PATTERN.sub("", item[0]).strip())
    return list(dict.fromkeys(commands))[:MAX_COMMANDS]


def _extract_command(row: str) -> str:
    """Return the command in a row: the text in the first backticks, or the row without its comment."""
    if row.startswith("`"):
        return row[1:].partition("`")[0]
    return row.partition(" #")[0]


def _is_check(command: str) -> bool:
    if _NON_COMMAND_START_PATTERN.match(command):
        return False
    parts = shell.parse_simple_commands(command)
    return any(part.words and has_check_word(part.words) for part in parts)
