"""The loaded skills. For the active skill its remaining steps are quoted, then its rules.

Precision comes before recall: a skill is active until the user asks for something else. Its current
step is the step whose command ran last, or which the assistant named last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.reading.digest import prose, replies, shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_learn
from resume_hooks.reading.digest.facts import Quote
from resume_hooks.reading.digest.statements import HEADING, is_aside, turns_ago
from resume_hooks.redaction.lazy_patterns import compile_lazily

SKILLS, RULES = 2, 24  # the maximum number of skills that are quoted, and of rules for each skill
SKILL_TURNS = 3  # the number of prompts for which the rules of a loaded skill are quoted
# the maximum characters of a skill's text that are read, and the maximum characters of a rule
SKILL, RULE = 12_000, 400
RULE_WORDS = 4  # the minimum number of words in a rule
TELLING = 2  # the minimum number of significant words in a rule
_LONG_WORD = compile_lazily(r"[^\W\d_]{4,}")
_MODAL = frozenset({"must", "never", "always", "only", "don't", "should", "your", "this", "that"})
_TAG = compile_lazily(r"^[ \t]*</?[a-z_-]{1,40}>", re.MULTILINE)
READ_SKILL = "its text may bind: read it"  # the note on the entry for a skill itself
_RULES_PART = compile_lazily(
    r"^#{1,6}[ \t][^\n]*"
    r"\b(?:rules?|guidelines?|requirements?|conventions?|constraints?|guardrails?|never|style)\b[^\n]*\n"
    r"((?:(?!#{1,6}[ \t])[^\n]*\n?){1,40})",
    re.IGNORECASE | re.MULTILINE,
)
"""A part of a document whose heading announces rules."""
_RULE = compile_lazily(
    r"\b(?:MUST(?:\s+NOT)?|NEVER|ALWAYS|DO\s+NOT)\b|\A\W*(?:[Nn]ever|[Aa]lways|[Dd]o\s+not|[Dd]on't|[Oo]nly)\s"
)
"""Words that mark a rule in a text that is written as rules."""

AT_WORK = "at work: its steps"
STEP_REACHED = "at work: it reached the first of these steps"
STEPS = 12  # the maximum number of a skill's steps that are listed
STEPS_READ = 40_000  # the maximum characters of a skill that are searched for its steps
_STEP_HEADING = compile_lazily(
    r"^#{1,6}[ \t]+((?:(?:step|phase|stage)[ \t]+)?(\d{1,2})"
    r"(?:[.:)][ \t]|[ \t]*[\u2013\u2014-][ \t]|(?=[ \t]*$))[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_STEP_IN_BOLD = compile_lazily(
    r"^(\*\*(?:step[ \t]+)?(\d{1,2})[.:)][^\n]*)", re.IGNORECASE | re.MULTILINE
)
_STEP_IN_TABLE = compile_lazily(r"^\|[ \t]*((\d{1,2})[ \t]*\|[^\n]*)", re.MULTILINE)
_CODE = compile_lazily(r"```[^\n]*\n([\s\S]*?)```|`([^`\n]{3,200})`")
_NAMED_STEP = compile_lazily(r"\b(?:step|phase|stage)[ \t]+(\d{1,2})\b", re.IGNORECASE)
_FORGES = ("gh", "glab")


class SkillStep(NamedTuple):
    """A step of a skill: its number, its heading and text on one line, and the programs in its code."""

    number: int
    heading: str
    text: str
    programs: frozenset[str]


def entries_of_skills(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield the skills that were loaded last: for each skill first the reference of its text, then its steps and rules.

    If a skill has steps, or if the user called it by a command, it ends with the request for which
    it was loaded. Other skills are binding for a few more prompts.
    """
    since = turns_ago(facts, SKILL_TURNS)
    for name, text in [*facts.skills.items()][-SKILLS:]:
        is_left = _was_left(facts, text)
        is_old = text.place.order < since
        if is_left and (is_old or name.startswith("/")):
            continue
        steps = find_steps(text.text)
        if (is_old and not steps) or (steps and (is_left or _is_at_end(facts, text, steps))):
            continue
        passed = ""
        if steps:
            at = _find_current_step(facts, text, steps)
            passed = "\n".join(step.text for step in steps[: at or 0])
            yield make_entry(name, text.place, AT_WORK if at is None else STEP_REACHED)
            for step in steps[at or 0 :]:
                yield make_entry(step.text, text.place, f"of {name}", RULE)
        else:
            yield make_entry(name, text.place, READ_SKILL)
        yield from _entries_of_rules(name, text, passed)


def _entries_of_rules(name: str, text: Quote, passed: str) -> Iterator[DigestEntry]:
    """Yield the rules of a skill, without the rules of steps that have ``passed``."""
    body = _TAG.sub("", redact_and_learn(text.text[: 2 * SKILL])[:SKILL])
    rules: set[str] = set()
    for rule in _find_rules(body):
        if rule in rules or " ".join(rule.split()) in passed:
            continue
        rules.add(rule)
        yield make_entry(rule, text.place, f"of {name}", RULE)
        if len(rules) == RULES:
            break


def _was_left(facts: LineageFacts, text: Quote) -> bool:
    """Check whether the user asked for something else after a skill was loaded, instead of only replying."""
    chosen = {answer.place for answer in facts.answers}
    for said in reversed(facts.prompts.said):
        if said.place.order <= text.place.order:
            return False
        if said.place in chosen or said.correcting:
            continue
        if said.text.startswith("/") or not replies.is_assent(said.text):
            return True
    return False


def _is_at_end(facts: LineageFacts, text: Quote, steps: Sequence[SkillStep]) -> bool:
    """Check whether the last step of a skill was reached and answered and nothing is pending."""
    waits = any(run.background and run.status is None and not run.failed for run in facts.runs)
    last = facts.words_since_prompt
    if waits or last is None or facts.last_call_order > last.place.order:
        return False
    is_reached = _find_current_step(facts, text, steps) == len(steps) - 1
    return is_reached and not prose.asks_at_end(last.text)


def find_steps(text: str) -> list[SkillStep]:
    """Return the numbered steps in a skill's headings, bold lines or table rows, or none if the numbers have gaps."""
    read = text[:STEPS_READ]
    for pattern in (_STEP_HEADING, _STEP_IN_BOLD, _STEP_IN_TABLE):
        found = list(pattern.finditer(read))
        numbers = [int(step[2]) for step in found]
        if len(found) < 2 or numbers != list(range(numbers[0], numbers[0] + len(found))):
            continue
        if numbers[0] not in {0, 1}:
            continue
        ends = [step.start() for step in found[1:]]
        ends.append(_find_last_step_end(read, found[-1], pattern))
        steps = []
        for step, end in list(zip(found, ends, strict=True))[:STEPS]:
            body = read[step.end() : end]
            heading = step[1].strip()
            steps.append(
                SkillStep(
                    int(step[2]),
                    heading,
                    " ".join(redact_and_learn(f"{heading} {body}").split()),
                    _find_programs(body),
                )
            )
        return steps
    return []


def _find_last_step_end(text: str, step: re.Match[str], pattern: re.Pattern[str]) -> int:
    """Return the end of the last step: the next heading of the same level, or the end of its table row."""
    if pattern is _STEP_IN_TABLE:
        return step.end()
    level = len(step[0]) - len(step[0].lstrip("#")) or 6
    end = re.compile(rf"^#{{1,{level}}}[ \t]", re.MULTILINE).search(text, step.end())
    if end is None:
        return len(text)
    return end.start()


def _find_programs(body: str) -> frozenset[str]:
    """Return the programs that the code in a step runs."""
    programs: set[str] = set()
    for block, inline in _CODE.findall(body):
        programs |= _command_programs(block or inline)
    return frozenset(programs)


def _command_programs(command: str) -> set[str]:
    """Return the programs that a command runs. For a forge's program, include the subcommand."""
    programs: set[str] = set()
    for part in shell.simple_commands(command):
        program = shell.find_program((part,))
        if program and part.words[0] in _FORGES:
            program = " ".join(part.words[:3])
        if program:
            programs.add(program)
    return programs


def _find_current_step(facts: LineageFacts, text: Quote, steps: Sequence[SkillStep]) -> int | None:
    """Return the index of the step that a skill has reached, or None if it is unknown."""
    at, order = None, text.place.order
    commands = [(run.command, run.place.order) for run in facts.runs]
    if facts.unanswered_call is not None:
        commands.append(
            (facts.unanswered_call.first_text("command"), facts.unanswered_call.place.order)
        )
    for command, ran_at in commands:
        if ran_at < order:
            continue
        programs = _command_programs(command)
        for place, step in enumerate(steps):
            if not programs.isdisjoint(step.programs):
                at, order = place, ran_at
                break
    for said in facts.assistant_quotes:
        if said.place.order >= order and (named := _NAMED_STEP.findall(said.text)):
            for place, step in enumerate(steps):
                if step.number == int(named[-1]):
                    at, order = place, said.place.order
    return at


def _find_rules(body: str) -> Iterator[str]:
    """Yield the rules in a document: first the items of its lists of rules, then sentences with a demand."""
    for part in _RULES_PART.findall(body):
        yield from _list_items(part)
    yield from filter(_is_rule, prose.split_sentences(HEADING.sub("", body)))


def _list_items(part: str) -> Iterator[str]:
    """Yield the items of the lists in a part of a document."""
    for row in part.split("\n"):
        if prose.MARKUP.match(row) and len(row.split()) > RULE_WORDS:
            sentences = list(prose.split_sentences(row))
            whole = " ".join(sentences)
            if len(whole) <= RULE:
                yield whole
            else:
                yield from sentences[:1]


def _is_rule(sentence: str) -> bool:
    """Check whether a sentence of a document clearly forbids or demands something."""
    telling = []
    for word in _LONG_WORD.findall(sentence.lower()):
        if word not in _MODAL:
            telling.append(word)
    is_long_enough = len(sentence.split()) >= RULE_WORDS and len(telling) >= TELLING
    return is_long_enough and _RULE.search(sentence) is not None and not is_aside(sentence)
