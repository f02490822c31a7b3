"""Quote the loaded skills: the remaining steps of an active skill, then its rules.

It is better to miss a step or a rule than to quote one that does not apply. A skill is active until
the user asks for something else. Its current step is the one whose command ran last, or the one
that the assistant mentioned last.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from resume_hooks.reading.digest import prose, replies, shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_remember_secrets
from resume_hooks.reading.digest.facts import Quote
from resume_hooks.reading.digest.statements import (
    HEADING_PATTERN,
    find_start_order_of_last_turns,
    only_looks_like_demand,
)
from resume_hooks.redaction.lazy_patterns import compile_lazily

# The maximum number of skills that are quoted, and the maximum number of rules quoted from each.
MAX_SKILLS, MAX_RULES = 2, 24
# After this number of prompts, the rules of a loaded skill are no longer quoted.
MAX_SKILL_TURNS = 3
# The maximum number of characters that are read from a skill's text, and the maximum number of
# characters in a rule.
MAX_SKILL_CHARACTERS, MAX_RULE_CHARACTERS = 12_000, 400
MIN_RULE_WORDS = 4  # A sentence with fewer words is not quoted as a rule.
MIN_SIGNIFICANT_WORDS = 2  # A sentence with fewer significant words is not quoted as a rule.
_LONG_WORD_PATTERN = compile_lazily(r"[^\W\d_]{4,}")
_MODAL_WORDS = frozenset(
    {"must", "never", "always", "only", "don't", "should", "your", "this", "that"}
)
_TAG_PATTERN = compile_lazily(r"^[ \t]*</?[a-z_-]{1,40}>", re.MULTILINE)
# The note on the entry that contains a skill's name.
SKILL_TEXT_NOTE = "its text may contain rules: read it"
_RULES_SECTION_PATTERN = compile_lazily(
    r"^#{1,6}[ \t][^\n]*"
    r"\b(?:rules?|guidelines?|requirements?|conventions?|constraints?|guardrails?|never|style)\b[^\n]*\n"
    r"((?:(?!#{1,6}[ \t])[^\n]*\n?){1,40})",
    re.IGNORECASE | re.MULTILINE,
)
"""A part of a document with a heading that announces rules."""
_RULE_WORD_PATTERN = compile_lazily(
    r"\b(?:MUST(?:\s+NOT)?|NEVER|ALWAYS|DO\s+NOT)\b|\A\W*(?:[Nn]ever|[Aa]lways|[Dd]o\s+not|[Dd]on't|[Oo]nly)\s"
)
"""Words that mark a rule, such as "MUST"."""

ACTIVE_SKILL_NOTE = "active: its steps"
STEP_REACHED_NOTE = "active: it has reached the first of these steps"
OMITTED_ROWS_MARK = " …"  # The mark at the end of a step that is not quoted completely.
MAX_SKILL_STEPS = 12  # At most this many steps are read from a skill.
# This many characters at the start of a skill's text are searched for its steps.
MAX_STEPS_CHARACTERS = 40_000
_STEP_HEADING_PATTERN = compile_lazily(
    r"^#{1,6}[ \t]+((?:(?:step|phase|stage)[ \t]+)?(\d{1,2})"
    r"(?:[.:)][ \t]|[ \t]*[\u2013\u2014-][ \t]|(?=[ \t]*$))[^\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_BOLD_STEP_PATTERN = compile_lazily(
    r"^(\*\*(?:step[ \t]+)?(\d{1,2})[.:)][^\n]*)", re.IGNORECASE | re.MULTILINE
)
_TABLE_STEP_PATTERN = compile_lazily(r"^\|[ \t]*((\d{1,2})[ \t]*\|[^\n]*)", re.MULTILINE)
_CODE_TEXT_PATTERN = compile_lazily(r"```[^\n]*\n([\s\S]*?)```|`([^`\n]{3,200})`")
_STEP_MENTION_PATTERN = compile_lazily(r"\b(?:step|phase|stage)[ \t]+(\d{1,2})\b", re.IGNORECASE)
_REPORT_PART_PATTERN = compile_lazily(
    r"^(?:#{1,6}[ \t]|\*\*[^*\n]+\*\*:?[ \t]*$|\|[ \t]*:?-)", re.MULTILINE
)
"""A heading, a bold row or a table, as they occur in reports."""
# The minimum number of characters in a report, and the minimum number of headings, bold rows and
# tables in it.
MIN_REPORT_CHARACTERS, MIN_REPORT_PARTS = 400, 2
_HOSTING_PROGRAMS = ("gh", "glab")


class SkillStep(NamedTuple):
    """A step of a skill.

    ``rows`` starts with the heading. ``programs`` contains the programs that the step's code runs.
    """

    number: int
    rows: tuple[str, ...]
    programs: frozenset[str]

    @property
    def text(self) -> str:
        """The step on one line."""
        return " ".join(self.rows)

    def shorten_text(self) -> str:
        """Return the step's first rows on one line, up to MAX_RULE_CHARACTERS characters.

        At least one row is returned. " …" replaces the remaining rows.
        """
        count = len(self.rows)
        while count > 1 and len(" ".join(self.rows[:count])) > MAX_RULE_CHARACTERS - len(
            OMITTED_ROWS_MARK
        ):
            count -= 1
        return " ".join(self.rows[:count]) + (OMITTED_ROWS_MARK if count < len(self.rows) else "")


def list_skills(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield the skills that were loaded last, each with its remaining steps and its rules.

    The first entry of each skill refers to the skill's text. If a skill has steps, or if the user
    called it with a command, it is quoted until the request for which it was loaded is done. Any
    other skill is quoted for a few more prompts. If the last answer is a report, the remaining
    steps are unknown, so no steps are listed.
    """
    first_active_order = find_start_order_of_last_turns(facts, MAX_SKILL_TURNS)
    for name, quote in [*facts.skills.items()][-MAX_SKILLS:]:
        has_moved_on = _has_new_request(facts, quote)
        is_old = quote.position.order < first_active_order
        if has_moved_on and (is_old or name.startswith("/")):
            continue
        steps = find_skill_steps(quote.text)
        if (is_old and not steps) or (
            steps and (has_moved_on or _is_skill_finished(facts, quote, steps))
        ):
            continue
        passed_text = ""
        if steps and not _is_answered_with_report(facts):
            step_index = _find_current_step(facts, quote, steps)
            passed_text = "\n".join(step.text for step in steps[: step_index or 0])
            yield make_entry(
                name, quote.position, ACTIVE_SKILL_NOTE if step_index is None else STEP_REACHED_NOTE
            )
            for step in steps[step_index or 0 :]:
                yield make_entry(
                    step.shorten_text(), quote.position, f"of {name}", MAX_RULE_CHARACTERS
                )
        else:
            yield make_entry(name, quote.position, SKILL_TEXT_NOTE)
        yield from _list_rules(name, quote, passed_text)


def _list_rules(name: str, quote: Quote, passed_text: str) -> Iterator[DigestEntry]:
    """Yield the rules of a skill, except those that occur in ``passed_text``.

    ``passed_text`` is the text of the skill's finished steps.
    """
    body = _TAG_PATTERN.sub(
        "",
        redact_and_remember_secrets(quote.text[: 2 * MAX_SKILL_CHARACTERS])[:MAX_SKILL_CHARACTERS],
    )
    if len(quote.text) > MAX_SKILL_CHARACTERS:
        body = body.rpartition("\n")[0]
    rules: set[str] = set()
    for rule in _find_rules(body):
        if rule in rules or " ".join(rule.split()) in passed_text:
            continue
        rules.add(rule)
        yield make_entry(rule, quote.position, f"of {name}", MAX_RULE_CHARACTERS)
        if len(rules) == MAX_RULES:
            break


def _has_new_request(facts: LineageFacts, skill: Quote) -> bool:
    """Check whether the user asked for something new after a skill was loaded.

    A short reply such as "yes" is not a new request.
    """
    answer_positions = {answer.position for answer in facts.answers}
    for quote in reversed(facts.prompts.quotes):
        if quote.position.order <= skill.position.order:
            return False
        if quote.position in answer_positions or quote.is_correction:
            continue
        if quote.text.startswith("/") or not replies.is_simple_reply(quote.text):
            return True
    return False


def _is_skill_finished(facts: LineageFacts, quote: Quote, steps: Sequence[SkillStep]) -> bool:
    """Check whether a skill's work is finished.

    The work is finished if the last prompt was answered, the answer neither asks nor offers
    anything, and the last step was reached. If the current step is unknown, the last step need not
    have been reached.
    """
    answer = _find_final_answer(facts)
    if answer is None:
        return False
    # If the current step is unknown, the skill counts as finished when the request is answered.
    is_reached = _find_current_step(facts, quote, steps) in {None, len(steps) - 1}
    return is_reached and not prose.ends_with_question_or_offer(answer.text)


def _find_final_answer(facts: LineageFacts) -> Quote | None:
    """Return the answer to the last prompt, or None if a call followed it or a command is still running."""
    is_running = any(
        run.is_background and run.status is None and not run.has_failed for run in facts.runs
    )
    last_words = facts.words_since_prompt
    if is_running or last_words is None or facts.last_call_order > last_words.position.order:
        return None
    return last_words


def _is_answered_with_report(facts: LineageFacts) -> bool:
    """Check whether the last prompt was answered with a report, such as a review, that mentions no step."""
    answer = _find_final_answer(facts)
    return (
        answer is not None
        and len(answer.text) >= MIN_REPORT_CHARACTERS
        and len(_REPORT_PART_PATTERN.findall(answer.text)) >= MIN_REPORT_PARTS
        and _STEP_MENTION_PATTERN.search(answer.text) is None
    )


def find_skill_steps(text: str) -> list[SkillStep]:
    """Return the numbered steps in a skill's headings, bold lines or table rows.

    If the numbers are not consecutive, the result is empty.
    """
    searched_text = text[:MAX_STEPS_CHARACTERS]
    for pattern in (_STEP_HEADING_PATTERN, _BOLD_STEP_PATTERN, _TABLE_STEP_PATTERN):
        matches = list(pattern.finditer(searched_text))
        numbers = [int(match[2]) for match in matches]
        if len(matches) < 2 or numbers != list(range(numbers[0], numbers[0] + len(matches))):
            continue
        if numbers[0] not in {0, 1}:
            continue
        ends = [match.start() for match in matches[1:]]
        ends.append(_find_last_step_end(searched_text, matches[-1], pattern))
        steps = []
        for match, end in list(zip(matches, ends, strict=True))[:MAX_SKILL_STEPS]:
            body = searched_text[match.end() : end]
            text = redact_and_remember_secrets(
                f"{match[1].strip()}\n{prose.join_wrapped_rows(body)}"
            )
            rows = [" ".join(row.split()) for row in text.split("\n") if row.strip()]
            steps.append(SkillStep(int(match[2]), tuple(rows), _find_programs(body)))
        return steps
    return []


def _find_last_step_end(text: str, step: re.Match[str], pattern: re.Pattern[str]) -> int:
    """Return the index in ``text`` at which ``step``, the last step, ends.

    It ends at the next heading of the same or a higher level. A step in a table ends with its row.
    """
    if pattern is _TABLE_STEP_PATTERN:
        return step.end()
    level = len(step[0]) - len(step[0].lstrip("#")) or 6
    end = re.compile(rf"^#{{1,{level}}}[ \t]", re.MULTILINE).search(text, step.end())
    if end is None:
        return len(text)
    return end.start()


def _find_programs(body: str) -> frozenset[str]:
    """Return the programs that the code in a step runs."""
    programs: set[str] = set()
    for block, inline in _CODE_TEXT_PATTERN.findall(body):
        programs |= _list_programs(block or inline)
    return frozenset(programs)


def _list_programs(command: str) -> set[str]:
    """Return the programs that a command runs. For ``gh`` and ``glab``, include the subcommand."""
    programs: set[str] = set()
    for part in shell.parse_simple_commands(command):
        program = shell.find_program((part,))
        if program and part.words[0] in _HOSTING_PROGRAMS:
            program = " ".join(part.words[:3])
        if program:
            programs.add(program)
    return programs


def _find_current_step(facts: LineageFacts, quote: Quote, steps: Sequence[SkillStep]) -> int | None:
    """Return the index of the step that a skill has reached, or None if the step is unknown."""
    step_index, last_order = None, quote.position.order
    commands = [(run.command, run.position.order) for run in facts.runs]
    if facts.unanswered_call is not None:
        commands.append(
            (facts.unanswered_call.find_first_text("command"), facts.unanswered_call.position.order)
        )
    for command, run_order in commands:
        if run_order < last_order:
            continue
        programs = _list_programs(command)
        for index, step in enumerate(steps):
            if not programs.isdisjoint(step.programs):
                step_index, last_order = index, run_order
                break
    for reply in facts.assistant_quotes:
        if reply.position.order >= last_order and (
            step_numbers := _STEP_MENTION_PATTERN.findall(reply.text)
        ):
            for index, step in enumerate(steps):
                if step.number == int(step_numbers[-1]):
                    step_index, last_order = index, reply.position.order
    return step_index


def _find_rules(body: str) -> Iterator[str]:
    """Yield the rules in a document: the items of lists of rules, then sentences that demand something."""
    whole_rows = prose.join_wrapped_rows(prose.remove_code_blocks(body))
    for part in _RULES_SECTION_PATTERN.findall(whole_rows):
        yield from _list_rule_items(part)
    yield from filter(_is_rule_sentence, prose.split_sentences(HEADING_PATTERN.sub("", whole_rows)))


def _list_rule_items(text: str) -> Iterator[str]:
    """Yield the list items in a part of a document, except items that are too long to be quoted whole."""
    for row in text.split("\n"):
        if prose.MARKUP_PATTERN.match(row) and len(row.split()) > MIN_RULE_WORDS:
            item = " ".join(prose.split_sentences(row))
            if len(item) <= MAX_RULE_CHARACTERS and _is_complete_rule(item):
                yield item


def _is_complete_rule(rule: str) -> bool:
    """Check whether a rule is complete, which means that it was not cut and does not end with a colon."""
    return "…" not in rule and not rule.rstrip("*_` ").endswith(":")


def _is_rule_sentence(sentence: str) -> bool:
    """Check whether a sentence in a document clearly demands or forbids something."""
    find_significant_words = []
    for word in _LONG_WORD_PATTERN.findall(sentence.lower()):
        if word not in _MODAL_WORDS:
            find_significant_words.append(word)
    is_long_enough = (
        len(sentence.split()) >= MIN_RULE_WORDS
        and len(find_significant_words) >= MIN_SIGNIFICANT_WORDS
    )
    is_rule = _RULE_WORD_PATTERN.search(sentence) is not None and not only_looks_like_demand(
        sentence
    )
    return is_long_enough and is_rule and _is_complete_rule(sentence)
