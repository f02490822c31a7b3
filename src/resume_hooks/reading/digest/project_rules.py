"""The project's instructions as a session was given them: the rules and commands that concern its work.

Only other agents write these instructions into their transcripts, as Codex does with AGENTS.md. A
rule concerns the work if the talk or the commands of the session share words with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from resume_hooks.reading.digest import prose, shell
from resume_hooks.reading.digest.collector import LineageFacts
from resume_hooks.reading.digest.entries import DigestEntry, make_entry, redact_and_collect
from resume_hooks.reading.digest.facts import INTERRUPTED_STATUS
from resume_hooks.reading.digest.statements import HEADING
from resume_hooks.reading.digest.work import has_check_word
from resume_hooks.redaction.lazy_patterns import compile_lazily

MAX_READ_CHARACTERS = 40_000  # the maximum number of characters in the instructions that are read
MAX_RULES, MAX_COMMANDS = 12, 12  # the maximum numbers of rules and commands that are quoted
MAX_RULE_CHARACTERS = 400  # the maximum number of characters in a rule
MAX_TALK_CHARACTERS = 20_000  # the maximum number of characters in the talk whose words count
MAX_COUNTED_RUNS = 200  # the maximum number of commands whose words count
MIN_SHARED_WORDS = 2  # the number of words shared with the work that are enough
MIN_RULE_WORDS = 4  # the minimum number of words in a rule
RELOAD_NOTE = "the client loads the file again"

_INSTRUCTIONS_BODY = compile_lazily(r"<INSTRUCTIONS>(.*)</INSTRUCTIONS>", re.DOTALL)
_SKILL_LIST = "\n## Skills\nA skill is a set of local instructions"
"""The start of the client's own part, which lists the skills and is written again in each session."""

_RULE_START = compile_lazily(
    r"\b(?:must|never|always|do not|don't|avoid|ensure|make sure|requires?|instead of|prefer)\b|"
    r"\A\W*(?:use|run|keep|follow|only)\s",
    re.IGNORECASE,
)
_STRICT_WORD = compile_lazily(
    r"\b(?:must|never|always|do not|don't|avoid|ensure|make sure|requires?)\b", re.IGNORECASE
)
_DESCRIPTION = compile_lazily(r"\W*(?:`[^`\n]{1,80}`\s*:|(?:[\w -]{1,60}:\W*)?[A-Za-z]+[^s\W]s\s)")
"""The start of a sentence that describes the program: an option with its meaning, or "Uses ..."."""

_FILE_PATH = compile_lazily(r"[\w.-]{1,80}/(?:[\w.-]{1,80}/){0,12}([\w-]{1,80})\.\w{1,5}\b")
_CODE_BLOCK = compile_lazily(
    r"^[ \t]*```(?:bash|sh|shell|console|zsh)?[ \t]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE
)
_NOT_COMMAND = compile_lazily(r"\S*[:(]|\w+\s*=\s")
"""A commit subject such as ``fix(api): check it``, or a setting."""

_COMMAND_ITEM = compile_lazily(r"^[ \t]*[-*][ \t]+`([^`\n]{3,160})`[^\n]*", re.MULTILINE)


def list_instructions(facts: LineageFacts) -> Iterator[DigestEntry]:
    """Yield the name and folder of the instructions, then the rules and commands that concern the work."""
    instructions = facts.instructions
    if instructions is None:
        return
    yield make_entry(facts.instructions_of, instructions.place, RELOAD_NOTE)
    body_match = _INSTRUCTIONS_BODY.search(instructions.text)
    body = body_match[1] if body_match is not None else instructions.text
    body = redact_and_collect(body.partition(_SKILL_LIST)[0][:MAX_READ_CHARACTERS])
    for text in _select_relevant_rules(body, facts):
        yield make_entry(text, "", max_characters=MAX_RULE_CHARACTERS)
    for text in _find_commands(body):
        note = _describe_last_failure(text, facts)
        yield make_entry(text, "", note, max_characters=MAX_RULE_CHARACTERS)


def _describe_last_failure(row: str, facts: LineageFacts) -> str:
    """Return a note if the last run of a command failed, or ``""``. More arguments do not matter."""
    parts = shell.parse_simple_commands(row.partition(" #")[0])
    command_words = parts[0].words if parts else ()
    for run in reversed(facts.runs[-MAX_COUNTED_RUNS:]):
        run_parts = shell.parse_simple_commands(run.command)
        if command_words and any(
            part.words[: len(command_words)] == command_words for part in run_parts
        ):
            if run.failed and run.status != INTERRUPTED_STATUS:
                return f"its last run failed, :{run.place.number}"
            return ""
    return ""


def _select_relevant_rules(body: str, facts: LineageFacts) -> list[str]:
    """Return the rules that share the most words with the session's talk and commands, in their own order."""
    work_words = _collect_work_words(facts)
    rules: list[tuple[float, int, str]] = []
    sentences = list(prose.split_sentences(HEADING.sub("", body)))
    for index, sentence in enumerate(sentences):
        sentence_words = prose.significant_words(sentence)
        shared_words = sentence_words & work_words
        if len(sentence.split()) < MIN_RULE_WORDS or not _is_rule(sentence):
            continue
        if _names_other_files(sentence, work_words):
            continue
        if len(shared_words) >= MIN_SHARED_WORDS or 2 * len(shared_words) >= max(
            1, len(sentence_words)
        ):
            end = index + 2 if sentence.endswith(":") else index + 1
            rules.append(
                (-len(shared_words) / len(sentence_words), index, " ".join(sentences[index:end]))
            )
    best_rules = sorted(rules)[:MAX_RULES]
    return [sentence for _, _, sentence in sorted(best_rules, key=lambda rule: rule[1])]


def _is_rule(sentence: str) -> bool:
    """Check whether a sentence asks for something, and does not only describe the program."""
    if _STRICT_WORD.search(sentence):
        return True
    return _RULE_START.search(sentence) is not None and _DESCRIPTION.match(sentence) is None


def _names_other_files(sentence: str, words: frozenset[str]) -> bool:
    """Check whether a sentence names files, and none whose name is among the words of the work."""
    names = [prose.significant_words(name) for name in _FILE_PATH.findall(sentence)]
    return bool(names) and not any(name <= words for name in names)


def _collect_work_words(facts: LineageFacts) -> frozenset[str]:
    """Return the significant words of the session's prompts, closing messages and commands, the latest first."""
    texts: list[str] = []
    remaining_characters = MAX_TALK_CHARACTERS
    for quote in sorted(
        (*facts.prompts.quotes, *facts.closing_quotes), key=lambda quote: -quote.place.order
    ):
        if remaining_characters <= 0:
            break
        texts.append(quote.text[:remaining_characters])
        remaining_characters -= len(quote.text)
    texts += [run.command[:MAX_RULE_CHARACTERS] for run in facts.runs[-MAX_COUNTED_RUNS:]]
    texts += [change.path for change in facts.changes]
    return prose.significant_words("\n".join(texts))


def _find_commands(body: str) -> list[str]:
    """Return the rows of the commands that check, build or start something."""
    rows = [row.strip() for block in _CODE_BLOCK.findall(body) for row in block.split("\n")]
    commands: list[str] = []
    for row in rows:
        if row and not row.startswith("#") and _is_check(row):
            commands.append(" ".join(row.split()))
    for item in _COMMAND_ITEM.finditer(body):
        if _is_check(item[1]):
            commands.append(prose.MARKUP.sub("", item[0]).strip())
    return list(dict.fromkeys(commands))[:MAX_COMMANDS]


def _is_check(command: str) -> bool:
    if _NOT_COMMAND.match(command):
        return False
    parts = shell.parse_simple_commands(command)
    return any(part.words and has_check_word(part.words) for part in parts)
